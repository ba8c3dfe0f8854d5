//! Masks (`mask=`): inequalities on index tiles, and the rectangles that they leave.

use nki_diag::Span;
use smallvec::SmallVec;

use super::affine::{IndexTile, common_frame};
use crate::build::tensor::Tensor;
use crate::dialect::common::clip::Clip;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::value::Value;
use crate::syntax::BinOp;

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

    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, _index: &Value, span: Span) -> EvalResult<Value> {
        Err(Raise::at("not-indexable", "a mask cannot be indexed", span, "here")
            .help("index the arange before the comparison: nl.arange(n)[:, None] < k"))
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
