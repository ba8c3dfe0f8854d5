//! Index tiles (`nl.arange`, `nl.mgrid`) and the inequalities on them (`mask=`).
//!
//! An index tile is a table of integers that is affine in the positions of its frame: `constant + sum of coefficient * position`
//! over its axes. Arithmetic preserves this form; anything else is rejected.

use nki_diag::Span;
use smallvec::{SmallVec, smallvec};

use crate::build::tensor::Tensor;
use crate::dialect::common::clip::Clip;
use crate::eval::Interp;
use crate::eval::convert::int;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::{Object, unsupported};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;
use crate::syntax::{BinOp, CmpOp, UnaryOp};

/// Maximum number of axes of a frame.
const MAX_AXES: usize = 8;

/// An axis of a frame: its extent, and the increment per step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) count: u32,
    pub(super) coefficient: i64,
}

/// An index tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexTile {
    pub(super) constant: i64,
    pub(super) axes: SmallVec<[Axis; 4]>,
}

fn overflow(span: Span) -> Box<Raise> {
    Raise::at("bad-index", "an index tile exceeds 64 bits", span, "here")
}

impl IndexTile {
    /// A number, which fits any frame.
    pub(super) fn constant(constant: i64) -> Self {
        Self { constant, axes: SmallVec::new() }
    }

    /// The numbers from `start` with stride `step`, along one axis.
    fn line(start: i64, count: u32, step: i64) -> Self {
        Self { constant: start, axes: smallvec![Axis { count, coefficient: if count == 1 { 0 } else { step } }] }
    }

    /// Lowest and highest value.
    pub(super) fn range(&self) -> (i64, i64) {
        let (mut low, mut high) = (self.constant, self.constant);
        for axis in &self.axes {
            let reach = axis.coefficient.saturating_mul(i64::from(axis.count) - 1);
            if reach < 0 { low = low.saturating_add(reach) } else { high = high.saturating_add(reach) }
        }
        (low, high)
    }

    /// The same numbers in a larger frame; `None` if an axis has neither length 1 nor the same length.
    pub(super) fn spread(&self, frame: &[u32]) -> Option<Self> {
        let missing = frame.len().checked_sub(self.axes.len())?;
        let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
        for (at, &count) in frame.iter().enumerate() {
            let own = at.checked_sub(missing).map(|i| self.axes[i]);
            match own {
                Some(axis) if axis.count == count => axes.push(axis),
                None | Some(Axis { count: 1, .. }) => axes.push(Axis { count, coefficient: 0 }),
                Some(_) => return None,
            }
        }
        Some(Self { constant: self.constant, axes })
    }

    /// Restricts each of these axes to a part.
    pub(super) fn restrict(&mut self, kept: &[(usize, &(u32, u32))]) {
        for &(axis, &(from, to)) in kept {
            let axis = &mut self.axes[axis];
            self.constant += axis.coefficient * i64::from(from);
            axis.count = to - from;
        }
    }

    /// The same numbers in each of `rows` partitions, if the first of several axes has length 1.
    pub(super) fn in_partitions(&self, rows: u32) -> Self {
        let mut out = self.clone();
        if let [first, _, ..] = &mut out.axes[..]
            && first.count == 1
        {
            *first = Axis { count: rows, coefficient: 0 };
        }
        out
    }

    fn map(&self, f: impl Fn(i64) -> Option<i64>) -> Option<Self> {
        let mut out = self.clone();
        out.constant = f(out.constant)?;
        for axis in &mut out.axes {
            axis.coefficient = f(axis.coefficient)?;
        }
        Some(out)
    }

    fn sum(&self, other: &Self, sign: i64, span: Span) -> EvalResult<Self> {
        let frame = common_frame(&[self, other], span)?;
        let (Some(mut a), Some(b)) = (self.spread(&frame), other.spread(&frame)) else { return Err(overflow(span)) };
        let add = |x: i64, y: i64| y.checked_mul(sign).and_then(|y| x.checked_add(y)).ok_or_else(|| overflow(span));
        a.constant = add(a.constant, b.constant)?;
        for (x, y) in a.axes.iter_mut().zip(&b.axes) {
            x.coefficient = add(x.coefficient, y.coefficient)?;
        }
        Ok(a)
    }

    fn shape_text(&self) -> String {
        crate::build::tensor::shape_text(self.axes.iter().map(|a| i64::from(a.count)))
    }

    /// A value as an index tile, or a number.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value.downcast::<IndexTile>() {
            Some(tile) => Some(tile.clone()),
            None => value.as_int().map(Self::constant),
        }
    }
}

/// The common frame of all of these, by NumPy's broadcasting.
pub(super) fn common_frame(tiles: &[&IndexTile], span: Span) -> EvalResult<SmallVec<[u32; 4]>> {
    let rank = tiles.iter().map(|t| t.axes.len()).max().unwrap_or(0);
    let mut frame: SmallVec<[u32; 4]> = smallvec![1; rank];
    for tile in tiles {
        let missing = rank - tile.axes.len();
        for (at, axis) in tile.axes.iter().enumerate() {
            let count = &mut frame[missing + at];
            if *count == 1 {
                *count = axis.count;
            } else if axis.count != 1 && axis.count != *count {
                let shapes: Vec<String> = tiles.iter().map(|t| t.shape_text()).collect();
                let message = format!("index tiles of shapes {} cannot be broadcast together", shapes.join(" and "));
                return Err(Raise::at("bad-index", message, span, "here")
                    .help("each axis must have the same length in all of them, or 1: nl.arange(n)[:, None] and nl.arange(m)[None, :]"));
            }
        }
    }
    Ok(frame)
}

impl Object for IndexTile {
    fn type_name(&self) -> &'static str {
        "index tile"
    }

    fn repr(&self) -> String {
        format!("<index tile {}>", self.shape_text())
    }

    fn is_inert(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["shape", "ndim"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        match name {
            "shape" => Some(Value::tuple(self.axes.iter().map(|a| Value::Int(i64::from(a.count))).collect::<Vec<_>>())),
            "ndim" => Some(Value::Int(self.axes.len() as i64)),
            _ => None,
        }
    }

    /// `i[:, None]`: axes kept and axes of length 1.
    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        let keys = index.sequence().unwrap_or_else(|| vec![index.clone()]);
        let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
        let mut rest = self.axes.iter();
        for key in &keys {
            match key {
                Value::None => axes.push(Axis { count: 1, coefficient: 0 }),
                Value::Slice(s) if s.start.is_none() && s.stop.is_none() && s.step.is_none() => match rest.next() {
                    Some(axis) => axes.push(*axis),
                    None => {
                        let message =
                            format!("{} indices for an index tile of shape {}", keys.len(), self.shape_text());
                        return Err(Raise::at("bad-index", message, span, "here"));
                    }
                },
                Value::Ellipsis => axes.extend(rest.by_ref().copied()),
                _ => {
                    return Err(Raise::at(
                        "bad-index",
                        "an index tile can be indexed only with `:` and None",
                        span,
                        "here",
                    )
                    .help("write nl.arange(n)[:, None], or nl.arange(start, stop)[:, None] for a part"));
                }
            }
        }
        axes.extend(rest.copied());
        if axes.len() > MAX_AXES {
            return Err(Raise::at("bad-index", format!("an index tile of {} dimensions", axes.len()), span, "here")
                .help(format!("at most {MAX_AXES} are possible")));
        }
        Ok(Value::object(Self { constant: self.constant, axes }))
    }

    fn binary(
        &self,
        _interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let (Some(a), Some(b)) = (Self::of(left), Self::of(right)) else { return Moved::of(op, left, right, span) };
        let made = match op {
            BinOp::Add => a.sum(&b, 1, span)?,
            BinOp::Sub => a.sum(&b, -1, span)?,
            BinOp::Mul => match (a.axes.is_empty(), b.axes.is_empty()) {
                (true, _) => b.map(|x| x.checked_mul(a.constant)).ok_or_else(|| overflow(span))?,
                (_, true) => a.map(|x| x.checked_mul(b.constant)).ok_or_else(|| overflow(span))?,
                _ => return Err(not_affine("the product of two index tiles", span)),
            },
            _ => return Err(not_affine(&format!("`{}` of an index tile", op.text()), span)),
        };
        Ok(Some(Value::object(made)))
    }

    fn unary(&self, _interp: &mut Interp<'_>, op: UnaryOp, this: &Value, span: Span) -> EvalResult<Value> {
        match op {
            UnaryOp::Neg => self.map(i64::checked_neg).map(Value::object).ok_or_else(|| overflow(span)),
            UnaryOp::Pos => Ok(this.clone()),
            _ => Err(unsupported(op.text(), this, &Value::None, span)),
        }
    }

    fn compare(
        &self,
        _interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let (Some(a), Some(b)) = (Self::of(left), Self::of(right)) else { return Ok(None) };
        let one = IndexTile::constant(1);
        let (tile, relation) = match op {
            CmpOp::Ge => (a.sum(&b, -1, span)?, Relation::AtLeastZero),
            CmpOp::Gt => (a.sum(&b, -1, span)?.sum(&one, -1, span)?, Relation::AtLeastZero),
            CmpOp::Le => (b.sum(&a, -1, span)?, Relation::AtLeastZero),
            CmpOp::Lt => (b.sum(&a, -1, span)?.sum(&one, -1, span)?, Relation::AtLeastZero),
            CmpOp::Eq => (a.sum(&b, -1, span)?, Relation::Zero),
            CmpOp::Ne => (a.sum(&b, -1, span)?, Relation::NotZero),
            _ => return Ok(None),
        };
        Ok(Some(Value::object(Mask(vec![(tile, relation)]))))
    }

    fn truth(&self, _interp: &mut Interp<'_>, _this: &Value, span: Span) -> EvalResult<bool> {
        Err(Raise::at(
            "tile-condition",
            "an index tile stands for many numbers and is neither true nor false",
            span,
            "here",
        )
        .help("restrict an access with mask=, or compare loop variables"))
    }

    fn iterate(&self, span: Span) -> EvalResult<Vec<Value>> {
        Err(Raise::at("not-iterable", "an index tile cannot be iterated over", span, "here")
            .help("loop over nl.affine_range(n) or range(n)"))
    }
}

/// An index tile plus a number known only on the device: `offsets[0, i] + nl.arange(n)[None, :]`.
#[derive(Debug, Clone)]
pub(super) struct Moved {
    pub(super) tile: IndexTile,
    /// The number, or a column with one for each partition.
    pub(super) by: Tensor,
}

impl Moved {
    /// `left + right` if one side is a number of the device, or contains one; `None` for other operators and operands.
    pub(super) fn of(op: BinOp, left: &Value, right: &Value, span: Span) -> EvalResult<Option<Value>> {
        let (device, tile) = match (IndexTile::of(left), IndexTile::of(right)) {
            (Some(tile), None) if op == BinOp::Add => (right, tile),
            (None, Some(tile)) if op == BinOp::Add => (left, tile),
            (None, Some(tile)) if op == BinOp::Sub => (left, IndexTile::constant(0).sum(&tile, -1, span)?),
            _ => return Ok(None),
        };
        let moved = match (device.downcast::<Moved>(), device.downcast::<Tensor>()) {
            (Some(moved), _) => Moved { tile: moved.tile.sum(&tile, 1, span)?, by: moved.by.clone() },
            (None, Some(by)) if !tile.axes.is_empty() => Moved { tile, by: by.clone() },
            _ => return Ok(None),
        };
        Ok(Some(Value::object(moved)))
    }
}

impl Object for Moved {
    fn type_name(&self) -> &'static str {
        "index tile"
    }

    fn is_inert(&self) -> bool {
        true
    }

    fn binary(
        &self,
        _interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        Moved::of(op, left, right, span)
    }
}

fn not_affine(what: &str, span: Span) -> Box<Raise> {
    Raise::at("bad-index", format!("{what} is not affine"), span, "here")
        .help("index tiles can be added, subtracted, and multiplied by ints: 2 * nl.arange(n)[:, None] + 1")
}

/// The comparison of an expression with 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    AtLeastZero,
    Zero,
    NotZero,
}

/// Conditions on index tiles, all of which hold where an instruction is effective: `(i < n) & (j < m)`.
#[derive(Debug, Clone)]
pub(super) struct Mask(pub(super) Vec<(IndexTile, Relation)>);

impl Object for Mask {
    fn type_name(&self) -> &'static str {
        "mask"
    }

    fn is_inert(&self) -> bool {
        true
    }

    fn binary(
        &self,
        _interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        if op != BinOp::BitAnd {
            let help = match op {
                BinOp::BitOr => {
                    "masks can be joined only by `&`: nl.where(a, x, nl.where(b, x, y)) selects where a or b holds"
                }
                _ => "masks are joined by `&`: mask=(i < n) & (j < m)",
            };
            return Err(Raise::at("bad-mask", format!("`{}` of masks", op.text()), span, "here").help(help));
        }
        let mut all = Vec::new();
        for side in [left, right] {
            match side {
                Value::Bool(true) => {}
                // Nothing is left if one side is false.
                Value::Bool(false) => all.push((IndexTile::constant(-1), Relation::AtLeastZero)),
                other => match other.downcast::<Mask>() {
                    Some(mask) => all.extend(mask.0.iter().cloned()),
                    None if other.downcast::<Tensor>().is_some() => {
                        let message = "`&` of a mask and a tile: a mask can only have conditions on indices";
                        return Err(Raise::at("bad-mask", message, span, "here")
                            .help("select twice: nl.where(mask, nl.where(tile, x, y), y)"));
                    }
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(Value::object(Mask(all))))
    }

    fn joins_undecided(&self) -> bool {
        true
    }

    fn truth(&self, _interp: &mut Interp<'_>, _this: &Value, span: Span) -> EvalResult<bool> {
        Err(Raise::at("tile-condition", "a mask is neither true nor false", span, "here")
            .help("join masks with `&`; pass them as mask="))
    }
}

/// Maximum number of pieces of a mask: each is a separate instruction.
const MOST_PIECES: usize = 128;

/// The part left by `mask=`, as one interval per axis; `None` without a mask.
pub(super) fn clip_of(mask: Option<&Value>, span: Span) -> EvalResult<Option<Clip>> {
    let Some(mut clips) = clips_of(mask, span)? else { return Ok(None) };
    if clips.len() > 1 {
        return Err(too_many(&clips, span));
    }
    Ok(clips.pop())
}

/// The error for a mask that leaves several rectangles.
fn too_many(clips: &[Clip], span: Span) -> Box<Raise> {
    let message = format!("mask= leaves {} rectangles, but this operation takes one", clips.len());
    Raise::at("bad-mask", message, span, "here")
        .help("compute the whole tile and mask its loads and stores; for a triangle use nisa.affine_select(pred=...) or nl.where")
}

/// Checks that each element of a reduction's result depends on one of the rectangles of its mask: the parts of the result are disjoint.
pub(super) fn check_reduced(clips: &[Clip], of_result: &[Clip], span: Span) -> EvalResult<()> {
    let apart = |a: &Clip, b: &Clip| {
        a.is_empty() || b.is_empty() || a.kept.iter().zip(&b.kept).any(|(a, b)| a.1 <= b.0 || b.1 <= a.0)
    };
    let all_apart = of_result.iter().enumerate().all(|(i, a)| of_result[..i].iter().all(|b| apart(a, b)));
    if all_apart { Ok(()) } else { Err(too_many(clips, span)) }
}

/// [`clip_of`] in the form of [`clips_of`].
pub(super) fn one_clip(mask: Option<&Value>, span: Span) -> EvalResult<Option<Vec<Clip>>> {
    Ok(clip_of(mask, span)?.map(|clip| vec![clip]))
}

/// The parts for which an instruction runs: everything without a mask, otherwise each non-empty rectangle of [`clips_of`].
pub(super) fn each_part(clips: Option<&[Clip]>) -> Vec<Option<&Clip>> {
    clips.map_or_else(|| vec![None], |clips| clips.iter().filter(|clip| !clip.is_empty()).map(Some).collect())
}

/// The part left by `mask=`: disjoint rectangles, several only if a comparison involves several axes, an empty one if nothing is
/// left. `None` without a mask.
pub(super) fn clips_of(mask: Option<&Value>, span: Span) -> EvalResult<Option<Vec<Clip>>> {
    clips_whole_along(mask, &|_, _| false, span)
}

/// [`clips_of`] for a reduction of a tile with `rank` axes over `reduced` ones: rectangles that differ along other free axes, if possible, so that
/// each element of the result depends on one of them.
pub(super) fn clips_of_reduced(
    mask: Option<&Value>,
    reduced: &[i64],
    rank: usize,
    span: Span,
) -> EvalResult<Option<Vec<Clip>>> {
    let is_reduced = |at: usize, of_mask: usize| {
        let axis = (at + rank).checked_sub(of_mask).map(|axis| axis as i64);
        at == 0 || axis.is_some_and(|axis| reduced.iter().any(|&r| r == axis || r + rank as i64 == axis))
    };
    clips_whole_along(mask, &is_reduced, span)
}

/// [`clips_of`] whose rectangles are cut along axes with `is_whole` only if no other axis is left; the axis is counted in a frame of the second number.
fn clips_whole_along(
    mask: Option<&Value>,
    is_whole: &dyn Fn(usize, usize) -> bool,
    span: Span,
) -> EvalResult<Option<Vec<Clip>>> {
    let conditions = match mask {
        None | Some(Value::None | Value::Bool(true)) => return Ok(None),
        Some(Value::Bool(false)) => &[(IndexTile::constant(-1), Relation::AtLeastZero)][..],
        Some(value) => match value.downcast::<Mask>() {
            Some(mask) => &mask.0,
            None => {
                return Err(Raise::at(
                    "bad-mask",
                    format!("mask= takes comparisons of index tiles, got {}", value.a_type()),
                    span,
                    "here",
                )
                .help("mask=nl.arange(128)[:, None] + offset < n"));
            }
        },
    };
    if conditions.iter().any(|(_, relation)| *relation == Relation::NotZero) {
        return Err(Raise::at("bad-mask", "a mask with `!=` does not leave an interval", span, "here")
            .help("use two instructions, one for each side, or nl.where"));
    }
    let tiles: Vec<&IndexTile> = conditions.iter().map(|c| &c.0).collect();
    let frame = common_frame(&tiles, span)?;
    let whole = Clip { kept: frame.iter().map(|&n| (0, n)).collect(), frame };
    let mut pieces = vec![whole.clone()];
    for (tile, relation) in conditions {
        let mut left = Vec::new();
        for piece in &pieces {
            left.extend(split(piece, tile, *relation, is_whole, span)?);
        }
        pieces = left;
    }
    if pieces.is_empty() {
        pieces.push(nothing(whole));
    }
    Ok(Some(pieces))
}

/// The rectangles of a rectangle in which a comparison holds.
fn split(
    clip: &Clip,
    tile: &IndexTile,
    relation: Relation,
    is_whole: &dyn Fn(usize, usize) -> bool,
    span: Span,
) -> EvalResult<Vec<Clip>> {
    let missing = clip.frame.len() - tile.axes.len();
    let coefficient = |at: usize| at.checked_sub(missing).map_or(0, |own| i128::from(tile.axes[own].coefficient));
    let ends = |at: usize| clip.kept[at];
    let (mut least, mut most) = (i128::from(tile.constant), i128::from(tile.constant));
    for at in 0..clip.kept.len() {
        let (from, to) = ends(at);
        if from >= to {
            return Ok(Vec::new());
        }
        let (a, b) = (coefficient(at) * i128::from(from), coefficient(at) * i128::from(to - 1));
        least += a.min(b);
        most += a.max(b);
    }
    let (everywhere, nowhere) = match relation {
        Relation::Zero => (least == 0 && most == 0, least > 0 || most < 0),
        _ => (least >= 0, most < 0),
    };
    if everywhere {
        return Ok(vec![clip.clone()]);
    }
    let moving = |at: &usize| coefficient(*at) != 0 && ends(*at).1 - ends(*at).0 > 1;
    let axes: SmallVec<[usize; 4]> = (0..clip.kept.len()).filter(moving).collect();
    let cut = axes.iter().rev().find(|&&at| !is_whole(at, clip.kept.len())).or(axes.last());
    let Some(&axis) = cut.filter(|_| !nowhere) else { return Ok(Vec::new()) };
    if axes.len() == 1 {
        // A half line, or a point: one interval. `least` and `most` are at its ends.
        let (from, to) = ends(axis);
        let c = coefficient(axis);
        let first = if c > 0 { least } else { most };
        let holds = |at: &u32| {
            let value = first + c * i128::from(at - from);
            if relation == Relation::Zero { value == 0 } else { value >= 0 }
        };
        let Some(start) = (from..to).find(holds) else { return Ok(Vec::new()) };
        let end = (start..to).rev().find(holds).map_or(start, |at| at + 1);
        let mut piece = clip.clone();
        piece.kept[axis] = (start, end);
        return Ok(vec![piece]);
    }
    // Along the last relevant axis that may be cut: neighbours with the same parts of the others form one rectangle. For partitions these are intervals, which
    // start at 0 if the mask is an upper bound, as engines require.
    let mut pieces: Vec<Clip> = Vec::new();
    let mut before: Vec<Clip> = Vec::new();
    for at in ends(axis).0..ends(axis).1 {
        let mut row = clip.clone();
        row.kept[axis] = (at, at + 1);
        let row = split(&row, tile, relation, is_whole, span)?;
        let continues = row.len() == before.len()
            && row.iter().zip(&before).all(|(a, b)| (0..a.kept.len()).all(|i| i == axis || a.kept[i] == b.kept[i]));
        if continues {
            let first = pieces.len() - row.len();
            pieces[first..].iter_mut().for_each(|piece| piece.kept[axis].1 = at + 1);
        } else {
            pieces.extend(row.iter().cloned());
        }
        if pieces.len() > MOST_PIECES {
            let message = format!("mask= leaves more than {MOST_PIECES} rectangles");
            return Err(Raise::at("bad-mask", message, span, "here").help(
                "each rectangle is an instruction of its own; for a triangle use nisa.affine_select(pred=...) or nl.where",
            ));
        }
        before = row;
    }
    Ok(pieces)
}

/// A clip that leaves nothing.
fn nothing(mut clip: Clip) -> Clip {
    if clip.kept.is_empty() {
        clip.kept.push((0, 0));
        clip.frame.push(1);
    }
    clip.kept.iter_mut().for_each(|kept| *kept = (0, 0));
    clip
}

/// `nl.mgrid`: `i, j = nl.mgrid[0:128, 0:512]`.
#[derive(Debug)]
pub(super) struct Mgrid;

impl Object for Mgrid {
    fn type_name(&self) -> &'static str {
        "nl.mgrid"
    }

    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        let keys = index.sequence().unwrap_or_else(|| vec![index.clone()]);
        let mut lines = Vec::new();
        for key in &keys {
            let Value::Slice(s) = key else {
                return Err(
                    Raise::at("bad-index", "nl.mgrid takes slices", span, "here").help("i, j = nl.mgrid[0:128, 0:512]")
                );
            };
            let bound = |v: &Value, default: i64| if v.is_none() { Ok(default) } else { int(v, "nl.mgrid", span) };
            lines.push(line(
                bound(&s.start, 0)?,
                int(&s.stop, "nl.mgrid: the end of a slice", span)?,
                bound(&s.step, 1)?,
                "nl.mgrid",
                span,
            )?);
        }
        if lines.len() > MAX_AXES {
            return Err(Raise::at("bad-index", format!("nl.mgrid of {} dimensions", lines.len()), span, "here"));
        }
        let counts: Vec<u32> = lines.iter().map(|l| l.axes[0].count).collect();
        let tile = |at: usize| {
            let axis = |i: usize| if i == at { lines[i].axes[0] } else { Axis { count: counts[i], coefficient: 0 } };
            IndexTile { constant: lines[at].constant, axes: (0..counts.len()).map(axis).collect() }
        };
        Ok(Value::object(MgridTiles((0..counts.len()).map(tile).collect())))
    }
}

/// The index tiles of `nl.mgrid[...]`, one for each slice.
#[derive(Debug)]
pub(super) struct MgridTiles(pub(super) Vec<IndexTile>);

/// The names of the tiles: the partition axis, then the free ones.
const AXIS_NAMES: &[&str] = &["p", "x", "y", "z", "w"];

impl Object for MgridTiles {
    fn type_name(&self) -> &'static str {
        "nl.mgrid"
    }

    fn attributes(&self) -> Vec<&'static str> {
        AXIS_NAMES.iter().take(self.0.len()).copied().collect()
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        let at = AXIS_NAMES.iter().position(|n| *n == name)?;
        self.0.get(at).cloned().map(Value::object)
    }

    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        let at = int(index, "an index of nl.mgrid", span)?;
        let found = usize::try_from(at).ok().and_then(|at| self.0.get(at));
        found.cloned().map(Value::object).ok_or_else(|| {
            Raise::at("bad-index", format!("index {at} of nl.mgrid of {} dimensions", self.0.len()), span, "here")
        })
    }

    fn len(&self, _span: Span) -> EvalResult<i64> {
        Ok(self.0.len() as i64)
    }

    fn iterate(&self, _span: Span) -> EvalResult<Vec<Value>> {
        Ok(self.0.iter().cloned().map(Value::object).collect())
    }
}

fn line(start: i64, stop: i64, step: i64, what: &str, span: Span) -> EvalResult<IndexTile> {
    let length = if step == 0 { 0 } else { (stop.saturating_sub(start) as f64 / step as f64).ceil() as i64 };
    let count = u32::try_from(length).ok().filter(|&n| n > 0);
    let Some(count) = count else {
        let message = format!("{what} from {start} to {stop} in steps of {step} has no elements");
        return Err(Raise::at("empty-slice", message, span, "here"));
    };
    Ok(IndexTile::line(start, count, step))
}

/// `nl.arange(stop)`, `nl.arange(start, stop)`, `nl.arange(start, stop, step)`
pub(super) fn arange(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    args.positional_only(interp, "nl.arange", 1, 3)?;
    let numbers = args.positional.iter().map(|v| int(v, "nl.arange", span)).collect::<EvalResult<Vec<_>>>()?;
    let (start, stop, step) = match numbers[..] {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] => (start, stop, step),
        _ => (0, 0, 1),
    };
    Ok(Value::object(line(start, stop, step, "nl.arange", span)?))
}
