//! `nl.where` and `nisa.affine_select`: elements selected by a tile, or by comparisons of index tiles.

use nki_diag::Span;
use nki_isa::{Arg, DType, Imm, Space};

use super::access::Place;
use super::affine::IndexTile;
use super::arithmetic::promoted;
use super::calls::{bind_known, compute, lower, need, operand, opt_dtype, tile_of};
use super::clips::{narrowed, restrictions};
use super::mask::{Mask, Relation, clip_of, clips_of};
use crate::build;
use crate::build::lower::{Lower, Operand, extents};
use crate::build::tensor::Tensor;
use crate::dialect::common::clip::Clip;
use crate::dialect::common::state::state;
use crate::eval::Interp;
use crate::eval::convert::wrong;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

/// `nl.where(condition, x, y)`: the condition is a tile, or a comparison of index tiles.
pub(super) fn select(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.where";
    let [condition, x, y, d, mask, _] =
        bind_known(interp, args, what, ["condition", "x", "y", "dtype", "mask", "name"], 3)?;
    let (condition, x, y) = (need(condition), need(x), need(y));
    let dtype = opt_dtype(d, what, span)?;
    if condition.downcast::<Mask>().is_some() {
        return select_by_index(interp, [&condition, &x, &y], dtype, mask, span);
    }
    compute(interp, what, span, clips_of(mask.as_ref(), span)?, &[&condition, &x, &y], |l, o| {
        let condition = tile_of(&o[0])?;
        l.select(condition, &o[1], &o[2], Some(chosen_type(dtype, &o[1], &o[2])))
    })
}

/// Without `dtype=`, the common type of both branches (manual of `nl.where`).
fn chosen_type(given: Option<DType>, x: &Operand, y: &Operand) -> DType {
    given.unwrap_or_else(|| promoted(x, y))
}

/// `nl.where` of a comparison of index tiles.
fn select_by_index(
    interp: &mut Interp<'_>,
    [condition, x, y]: [&Value; 3],
    dtype: Option<DType>,
    mask: Option<Value>,
    span: Span,
) -> EvalResult<Value> {
    let what = "nl.where";
    let clip = clip_of(mask.as_ref(), span)?;
    let selection = |otherwise| Selection { otherwise, dtype, clip: clip.clone(), what, span };
    match (Place::of(x, what, span)?, operand(y, what, span)) {
        (Some(tile), Ok(number @ Operand::Number(otherwise))) => {
            let dtype = chosen_type(dtype, &Operand::Tile(tile.outline(span)?), &number);
            Selection { dtype: Some(dtype), ..selection(otherwise) }.run(interp, condition, &tile).map(Value::object)
        }
        (tile, _) => {
            // A tile of ones where the comparison holds is the condition of a selection between tiles.
            let Some(like) = tile.or(Place::of(y, what, span)?) else {
                return Err(wrong(what, "a tile among x and y", x, span));
            };
            let outline = like.outline(span)?;
            let chosen = Value::object(tile_of_mask(interp, condition, &extents(&outline), what, span)?);
            compute(interp, what, span, clips_of(mask.as_ref(), span)?, &[&chosen, x, y], |l, o| {
                l.select(tile_of(&o[0])?, &o[1], &o[2], Some(chosen_type(dtype, &o[1], &o[2])))
            })
        }
    }
}

/// A tile of this shape that is 1 where a comparison of index tiles holds, and 0 elsewhere.
pub(super) fn tile_of_mask(
    interp: &mut Interp<'_>,
    condition: &Value,
    shape: &[i64],
    what: &str,
    span: Span,
) -> EvalResult<Tensor> {
    let ones = lower(interp, what, span, &[], |l| {
        let ones = l.tile(shape, DType::U8, Space::Sbuf)?;
        l.fill(&ones, Imm::Int(1)).map(|()| ones)
    })?;
    let chosen = Selection { otherwise: Imm::Int(0), dtype: None, clip: None, what, span };
    chosen.run(interp, condition, &Place::Tile(ones))
}

/// `nisa.affine_select(pred, on_true_tile, on_false_value, mask=None, dtype=None)`
pub(super) fn affine_select(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (span, what) = (args.span, "nisa.affine_select");
    let names = ["pred", "on_true_tile", "on_false_value", "mask", "dtype", "name"];
    let [pred, tile, value, mask, d, _] = bind_known(interp, args, what, names, 3)?;
    let none = || Value::None;
    let value = value.unwrap_or_else(none);
    let otherwise = crate::eval::convert::number(&value, "nisa.affine_select: on_false_value", span)?;
    let selection =
        Selection { otherwise, dtype: opt_dtype(d, what, span)?, clip: clip_of(mask.as_ref(), span)?, what, span };
    let tile = Place::need(&tile.unwrap_or_else(none), what, span)?;
    selection.run(interp, &pred.unwrap_or_else(none), &tile).map(Value::object)
}

/// `nisa.affine_select`: elements of a tile where comparisons of index tiles hold, a number elsewhere.
struct Selection<'a> {
    otherwise: Imm,
    dtype: Option<DType>,
    clip: Option<Clip>,
    what: &'a str,
    span: Span,
}

impl Selection<'_> {
    /// The tile with the selected elements.
    fn run(&self, interp: &mut Interp<'_>, pred: &Value, tile: &Place) -> EvalResult<Tensor> {
        let (what, span) = (self.what, self.span);
        let refuse = |message: String, help: &str| Raise::at("bad-mask", message, span, "here").help(help);
        let Some(mask) = pred.downcast::<Mask>() else {
            return Err(refuse(
                format!("{what}: pred takes a comparison of index tiles, got {}", pred.a_type()),
                "pred=i_p >= i_f",
            ));
        };
        let outline = tile.outline(span)?;
        let shape: Vec<u32> = outline.view.dims.iter().map(|d| d.count).collect();
        let spread = |(condition, relation): &(IndexTile, Relation)| match condition.spread(&shape) {
            Some(condition) => Ok((condition, *relation)),
            None => Err(refuse(
                format!("{what}: pred does not have the shape {} of the tile", outline.shape_text()),
                "build pred from index tiles of the tile's shape",
            )),
        };
        let mut conditions = mask.0.iter().map(spread).collect::<EvalResult<Vec<_>>>()?;
        let dtype = self.dtype.unwrap_or(outline.view.dtype);
        let whole = lower(interp, what, span, &[&outline.storage], |l| l.tile(&extents(&outline), dtype, Space::Sbuf))?;
        if self.clip.as_ref().is_none_or(|c| !c.is_empty()) {
            let mut to = whole.clone();
            if let Some(clip) = &self.clip {
                to = narrowed(&whole, clip, span)?;
                let kept = restrictions(clip, &shape, &outline, span)?;
                conditions.iter_mut().for_each(|(condition, _)| condition.restrict(&kept));
            }
            let source = tile.tensor(self.clip.as_ref(), span)?;
            lower(interp, what, span, &[&source.storage], |l| {
                let mut source = l.in_sbuf(&source)?;
                // The result of one comparison is the input of the next.
                let last = conditions.len().saturating_sub(1);
                for (at, (condition, relation)) in conditions.iter().enumerate() {
                    let dst = if at == last { to.clone() } else { l.tile(&extents(&to), dtype, Space::Sbuf)? };
                    affine_selected(l, &dst, condition, *relation, &source, self.otherwise)?;
                    source = dst;
                }
                Ok(())
            })?;
        }
        if let Some(clip) = &self.clip {
            state(interp).note_mask(whole.storage.id, vec![clip.clone()]);
        }
        Ok(whole)
    }
}

fn affine_selected(
    l: &mut Lower<'_>,
    dst: &Tensor,
    condition: &IndexTile,
    relation: Relation,
    source: &Tensor,
    otherwise: Imm,
) -> build::Result<()> {
    let op = match relation {
        Relation::AtLeastZero => "greater_equal",
        Relation::Zero => "equal",
        Relation::NotZero => "not_equal",
    };
    let (offset, channel, pattern) = pattern(condition);
    let otherwise = match otherwise {
        Imm::Int(i) => Arg::Int(i),
        Imm::Float(x) => Arg::Float(x),
    };
    let operands = [
        ("dst", Arg::View(dst.view.clone())),
        ("pattern", Arg::List(pattern)),
        ("channel_multiplier", Arg::Int(channel)),
        ("on_true_tile", Arg::View(source.view.clone())),
        ("on_false_value", otherwise),
        ("cmp_op", Arg::Name(op.into())),
        ("offset", Arg::Int(offset)),
    ];
    l.emit("affine_select", &operands)
}

/// Constant, step for each partition, and `[step, count]` along the free axes.
pub(super) fn pattern(tile: &IndexTile) -> (i64, i64, Vec<Arg>) {
    let pair = |step: i64, count: u32| Arg::List(vec![Arg::Int(step), Arg::Int(i64::from(count))]);
    let free: Vec<Arg> = tile.axes.iter().skip(1).map(|a| pair(a.coefficient, a.count)).collect();
    let free = if free.is_empty() { vec![pair(0, 1)] } else { free };
    (tile.constant, tile.axes.first().map_or(0, |a| a.coefficient), free)
}
