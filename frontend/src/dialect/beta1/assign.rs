//! `t[...] = value`, `t += value` and `nl.loop_reduce`.

use nki_diag::Span;
use nki_isa::names::AluOp;
use nki_isa::view::Dims;
use nki_isa::{Arg, DType, Dim, Imm, Space, Violation};

use super::access::Place;
use super::calls::operand;
use super::clips::{narrowed, parts_of_view};
use crate::build;
use crate::build::lower::{Lower, Operand, extents};
use crate::build::ops::OpKind;
use crate::build::tensor::Tensor;
use crate::dialect::common::clip::Clip;
use crate::dialect::common::enums::NlOp;
use crate::dialect::common::errors::raise;
use crate::dialect::common::state::{site, state};
use crate::eval::Interp;
use crate::eval::convert::wrong;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::{Object, Replacement};
use crate::eval::value::Value;
use crate::syntax::BinOp;

/// `base[index] = value`: a value that an instruction has just computed is redirected there; any other value is copied.
pub(super) fn assign(
    interp: &mut Interp<'_>,
    base: &Value,
    index: &Value,
    value: &Value,
    span: Span,
) -> EvalResult<()> {
    let before = state(interp).builder.next_node();
    let target = super::index::index(interp, base, index, span)?;
    if let Some(tile) = value.downcast::<Tensor>() {
        state(interp).note_target(tile, before);
    }
    let place = Place::need(&target, "an assignment", span)?;
    no_longer_truth(interp, &place, span)?;
    if let Some(reduction) = value.downcast::<LoopReduce>() {
        return reduction.write_to(interp, &place, span);
    }
    for (dst, value) in restricted(interp, &place, value, span)? {
        match value {
            Operand::Number(number) => fill(interp, &dst, number, span)?,
            Operand::Tile(tile) => put(interp, &dst, &tile, span)?,
        }
    }
    Ok(())
}

/// After a write, the elements of a comparison's result may be any numbers.
fn no_longer_truth(interp: &mut Interp<'_>, place: &Place, span: Span) -> EvalResult<()> {
    if !state(interp).truths.is_empty() {
        let tile = place.outline(span)?.storage.id;
        state(interp).truths.remove(&tile);
    }
    Ok(())
}

/// Target and value, both restricted to the parts left by the mask of the value's instruction: none if it leaves nothing, several
/// if the value is a view in which they form no rectangle.
fn restricted(interp: &mut Interp<'_>, place: &Place, value: &Value, span: Span) -> EvalResult<Vec<(Tensor, Operand)>> {
    let Some((tile, clips)) = value.downcast::<Tensor>().and_then(|tile| {
        let clips = state(interp).mask_of(tile.storage.id)?;
        Some((tile.clone(), clips.to_vec()))
    }) else {
        return Ok(vec![(place.tensor(None, span)?, operand(value, "an assignment", span)?)]);
    };
    // If the shapes differ only in the division of free dimensions, the mask applies to the target.
    let outline = place.outline(span)?;
    let tile = fitted(&tile, &extents(&outline)).unwrap_or(tile);
    let mut parts = Vec::new();
    for clip in clips {
        if tile.is_whole() { parts.push(clip) } else { parts.extend(parts_of_view(&tile, &clip, span)?) }
    }
    let part = |clip: &Clip| Ok((place.tensor(Some(clip), span)?, Operand::Tile(narrowed(&tile, clip, span)?)));
    parts.iter().filter(|clip| !clip.is_empty()).map(part).collect()
}

pub(super) fn fill(interp: &mut Interp<'_>, dst: &Tensor, number: Imm, span: Span) -> EvalResult<()> {
    on_chip(dst, span)?;
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: "" };
    let filled = match lower.fill(dst, number) {
        Err(v) if is_misplaced(&v, dst) => lower.tile(&extents(dst), dst.view.dtype, Space::Sbuf).and_then(|tile| {
            lower.fill(&tile, number)?;
            by_dma(&mut lower, dst, &tile)
        }),
        filled => filled,
    };
    filled.map_err(|v| raise("", &v, span, &[&dst.storage]))
}

/// Whether a tile in SBUF starts at a partition where a compute engine cannot start. DMA can.
fn is_misplaced(violation: &Violation, dst: &Tensor) -> bool {
    violation.id == "partition-start" && dst.view.space == Space::Sbuf
}

fn by_dma(lower: &mut Lower<'_>, dst: &Tensor, source: &Tensor) -> build::Result<()> {
    let source = lower.in_sbuf(source)?;
    let operands = [("dst", Arg::View(dst.view.clone())), ("src", Arg::View(source.view))];
    lower.emit("dma_copy", &operands)
}

fn on_chip(dst: &Tensor, span: Span) -> EvalResult<()> {
    if dst.on_chip() {
        return Ok(());
    }
    let name = &dst.storage.name;
    let message = format!("an assignment to `{name}`, which is in {}", dst.view.space);
    let help = format!("write nl.store({name}[...], value=tile); for a number, make a tile with nl.full");
    Err(Raise::at("operand-memory", message, span, "here").help(help))
}

/// A view with the extents of `shape`, of the same elements in the same order; `None` if free dimensions are neither equal, apart
/// from those of 1, nor joined or divided: a product of `[128, 196]` is one of `[128, 14, 14]`.
fn fitted(view: &Tensor, shape: &[i64]) -> Option<Tensor> {
    let own = extents(view);
    if own == shape {
        return Some(view.clone());
    }
    let fixed = usize::from(view.on_chip());
    if fixed == 1 && own.first() != shape.first() {
        return None;
    }
    let mut out = view.view.clone();
    out.dims =
        view.view.dims[..fixed].iter().copied().chain(regrouped(&view.view.dims[fixed..], &shape[fixed..])?).collect();
    Some(view.with_view(out))
}

/// Dimensions with the counts of `shape`, each of which is one of `dims`, several of them joined, or a part of one.
fn regrouped(dims: &[Dim], shape: &[i64]) -> Option<Dims> {
    let mut rest = dims.iter().copied().filter(|dim| dim.count != 1);
    let mut out = Dims::new();
    // The rest of a dimension that is being divided.
    let mut part: Option<Dim> = None;
    for &count in shape {
        let count = u32::try_from(count).ok()?;
        if count == 1 {
            out.push(Dim { stride: 1, count: 1 });
            continue;
        }
        let is_part = part.is_some();
        let mut dim = part.take().or_else(|| rest.next())?;
        while dim.count < count && !is_part {
            let inner = rest.next().filter(|inner| dim.stride == inner.stride * i64::from(inner.count))?;
            dim = Dim { stride: inner.stride, count: dim.count.checked_mul(inner.count)? };
            if dim.count > count {
                return None;
            }
        }
        if dim.count % count != 0 {
            return None;
        }
        let left = dim.count / count;
        out.push(Dim { stride: dim.stride * i64::from(left), count });
        part = (left > 1).then_some(Dim { stride: dim.stride, count: left });
    }
    (part.is_none() && rest.next().is_none()).then_some(out)
}

/// Writes a tile to a view: without a copy if the tile has just been computed.
pub(super) fn put(interp: &mut Interp<'_>, dst: &Tensor, value: &Tensor, span: Span) -> EvalResult<()> {
    on_chip(dst, span)?;
    if dst.view == value.view {
        return Ok(());
    }
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: "" };
    write(&mut lower, dst, value).map_err(|v| raise("", &v, span, &[&dst.storage, &value.storage]))
}

fn write(lower: &mut Lower<'_>, dst: &Tensor, value: &Tensor) -> build::Result<()> {
    if let Some(to) = fitted(dst, &extents(value))
        && lower.builder.redirect(value, &to.view)?
    {
        return Ok(());
    }
    let source = match fitted(value, &extents(dst)) {
        Some(same) => same,
        None => widened(value, dst)?,
    };
    let written = if source.on_chip() { lower.copy_in_parts(dst, &source) } else { lower.assign(dst, &source) };
    match written {
        Err(v) if is_misplaced(&v, dst) => by_dma(lower, dst, &source),
        written => written,
    }
}

/// A value repeated along the free dimensions of `dst`.
fn widened(value: &Tensor, dst: &Tensor) -> build::Result<Tensor> {
    let shape = extents(dst);
    let mut value = value.clone();
    while value.ndim() < shape.len() {
        value = value.expand_dim(i64::from(value.on_chip()))?;
    }
    value.broadcast_to(&shape).map_err(|_| {
        let message = format!(
            "`{}` of shape {} is assigned to {} of `{}`",
            value.storage.name,
            value.shape_text(),
            dst.shape_text(),
            dst.storage.name
        );
        Violation::new("shape-mismatch", "", message).help(
            "the shapes must be equal, or the value must have size 1 in a free dimension; partitions are repeated by nl.broadcast_to",
        )
    })
}

/// The operation of `op=`.
fn operation(op: BinOp) -> Option<AluOp> {
    Some(match op {
        BinOp::Add => AluOp::Add,
        BinOp::Sub => AluOp::Subtract,
        BinOp::Mul => AluOp::Multiply,
        BinOp::Div => AluOp::Divide,
        BinOp::BitAnd => AluOp::BitwiseAnd,
        BinOp::BitOr => AluOp::BitwiseOr,
        BinOp::BitXor => AluOp::BitwiseXor,
        BinOp::Pow => AluOp::Power,
        BinOp::Mod => AluOp::Mod,
        BinOp::LShift => AluOp::LeftShift,
        BinOp::RShift => AluOp::RightShift,
        _ => return None,
    })
}

/// `old op= value`, in place: a matmul accumulates in PSUM.
pub(super) fn in_place(
    interp: &mut Interp<'_>,
    op: BinOp,
    old: &Value,
    value: &Value,
    span: Span,
) -> EvalResult<Option<Value>> {
    let Some(place) = Place::of(old, "an assignment", span)? else { return Ok(None) };
    let Some(alu) = operation(op) else {
        return Err(Raise::at("unsupported-operator", format!("`{}=` on a tile", op.text()), span, "here")
            .help("write t[...] = nl.f(t, value)"));
    };
    no_longer_truth(interp, &place, span)?;
    for (dst, value) in restricted(interp, &place, value, span)? {
        on_chip(&dst, span)?;
        combine(interp, &dst, alu, &value, span)?;
    }
    Ok(Some(old.clone()))
}

/// `dst = dst op value`
fn combine(interp: &mut Interp<'_>, dst: &Tensor, alu: AluOp, value: &Operand, span: Span) -> EvalResult<()> {
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: "sum" };
    combined(&mut lower, dst, alu, value).map_err(|v| raise("", &v, span, &[&dst.storage]))
}

fn combined(lower: &mut Lower<'_>, dst: &Tensor, alu: AluOp, value: &Operand) -> build::Result<()> {
    let value = match value {
        Operand::Tile(tile) => {
            if alu == AluOp::Add
                && dst.view.space == Space::Psum
                && let Some(to) = fitted(dst, &extents(tile))
                && lower.builder.accumulate(tile, &to.view)?
            {
                return Ok(());
            }
            // An instruction reads at most one operand from PSUM, here the target.
            let tile = if dst.view.space == Space::Psum { lower.in_sbuf(tile)? } else { tile.clone() };
            Operand::Tile(match fitted(&tile, &extents(dst)) {
                Some(same) => same,
                None => widened(&tile, dst)?,
            })
        }
        number => number.clone(),
    };
    let operands = lower.all_accessible(&[Operand::Tile(dst.clone()), value])?;
    let made = lower.binary("assignment", alu, &operands[0], &operands[1], Some(dst.view.dtype))?;
    write(lower, dst, &made)
}

/// `nl.loop_reduce(x, op, loop_indices)`: the first value, or `op` of the target's content and the value.
#[derive(Debug)]
pub(super) struct LoopReduce {
    pub(super) value: Place,
    /// The part of it left by `mask=`.
    pub(super) clip: Option<Clip>,
    pub(super) op: NlOp,
    pub(super) dtype: Option<DType>,
    /// Whether all loops are at their first iteration.
    pub(super) first: bool,
}

impl LoopReduce {
    fn write_to(&self, interp: &mut Interp<'_>, place: &Place, span: Span) -> EvalResult<()> {
        if self.clip.as_ref().is_some_and(Clip::is_empty) {
            return Ok(());
        }
        let (dst, value) = (place.tensor(self.clip.as_ref(), span)?, self.value.tensor(self.clip.as_ref(), span)?);
        if self.first {
            return put(interp, &dst, &value, span);
        }
        let OpKind::Binary(alu) = self.op.op().kind else {
            return Err(Raise::at(
                "op-unsupported",
                format!("nl.loop_reduce with {}", self.op.op().name),
                span,
                "here",
            )
            .help("reductions are np.add, np.multiply, np.max and np.min"));
        };
        combine(interp, &dst, alu, &Operand::Tile(value), span)
    }
}

impl Object for LoopReduce {
    fn type_name(&self) -> &'static str {
        "nl.loop_reduce"
    }

    fn replacement(&self) -> Option<&dyn Replacement> {
        Some(self)
    }
}

impl Replacement for LoopReduce {
    /// `name = nl.loop_reduce(...)`: in place of the tile bound to the name.
    fn replace(&self, interp: &mut Interp<'_>, old: &Value, span: Span) -> EvalResult<Value> {
        if let Some(place) = Place::of(old, "nl.loop_reduce", span)? {
            self.write_to(interp, &place, span)?;
            return Ok(old.clone());
        }
        if !self.first {
            return Err(wrong(
                "nl.loop_reduce: the name it is assigned to",
                "a tile allocated before the loop",
                old,
                span,
            )
            .help("make it with nl.zeros before the loop"));
        }
        let outline = self.value.outline(span)?;
        let dtype = self.dtype.unwrap_or(outline.view.dtype);
        let site = site(interp, span);
        let mut lower = Lower { builder: &mut state(interp).builder, site, name: "reduced" };
        let made = lower.tile(&extents(&outline), dtype, Space::Sbuf);
        let made = made.map_err(|v| raise("", &v, span, &[&outline.storage]))?;
        self.write_to(interp, &Place::Tile(made.clone()), span)?;
        Ok(Value::object(made))
    }
}
