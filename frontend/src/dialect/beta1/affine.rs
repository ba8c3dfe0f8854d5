//! Index tiles: the values of `nl.arange` and `nl.mgrid`, and arithmetic on them.
//!
//! An index tile is a table of integers that is affine in the positions of its frame: `constant + sum of coefficient * position`
//! over its axes. Arithmetic preserves this form; anything else is rejected.

use nki_diag::Span;
use smallvec::{SmallVec, smallvec};

use super::mask::{Mask, Relation};
use crate::build::tensor::Tensor;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::{Object, unsupported};
use crate::eval::value::Value;
use crate::syntax::{BinOp, CmpOp, UnaryOp};

/// Maximum number of axes of a frame.
pub(super) const MAX_AXES: usize = 8;

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
    pub(super) fn line(start: i64, count: u32, step: i64) -> Self {
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
        crate::build::tensor::tuple_text(self.axes.iter().map(|a| i64::from(a.count)))
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
