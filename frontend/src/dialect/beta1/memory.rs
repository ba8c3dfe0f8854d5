//! Loads, stores, and accumulation in HBM.

use nki_diag::{Diagnostic, Span};
use nki_isa::{Arg, Space};

use super::access::Place;
use super::calls::{bind_known, lower, need, numbers, operand, opt_dtype};
use super::clips::narrowed;
use super::mask::{clip_of, clips_of, each_part};
use super::{assign, ops};
use crate::build;
use crate::build::builder::{Request, Sharing};
use crate::build::lower::{Lower, Operand, extents};
use crate::build::tensor::Tensor;
use crate::dialect::common::clip::Clip;
use crate::dialect::common::enums::ApiEnum;
use crate::dialect::common::errors::raise;
use crate::dialect::common::state::{site, state};
use crate::eval::Interp;
use crate::eval::convert::wrong;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;
use crate::syntax::Param;

/// Whether `mode=` skips rows whose index is out of bounds (`oob_mode.skip`); otherwise they are an error. Not in the manual: kernels of
/// nki-samples' history use it.
fn skips(mode: Option<Value>, what: &str, span: Span) -> EvalResult<bool> {
    let Some(mode) = mode.filter(|m| !m.is_none()) else { return Ok(false) };
    match mode.downcast::<ApiEnum>().map(|m| (m.class.name, m.name())) {
        Some(("oob_mode", member)) => Ok(member == "skip"),
        _ => Err(wrong(format_args!("{what}: mode"), "oob_mode.error or oob_mode.skip", &mode, span)),
    }
}

/// A transfer that skips rows whose index is out of bounds.
fn skipping(l: &mut Lower<'_>, dst: &Tensor, src: &Tensor) -> build::Result<()> {
    let view = |t: &Tensor| Arg::View(t.view.clone());
    l.emit("dma_copy", &[("dst", view(dst)), ("src", view(src)), ("oob_mode", Arg::Name("skip".into()))])
}

/// `nl.load(src, mask=None, dtype=None)`
pub(super) fn load(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.load";
    let [src, mask, d, mode, _] = bind_known(interp, args, what, ["src", "mask", "dtype", "mode", "name"], 1)?;
    let place = Place::need(&need(src), "nl.load: src", span)?;
    let dtype = opt_dtype(d, what, span)?;
    let skip = skips(mode, what, span)?;
    let clips = clips_of(mask.as_ref(), span)?;
    let outline = column(place.outline(span)?, span)?;
    let Some(clips) = clips else {
        let src = column(place.tensor(None, span)?, span)?;
        let load = |l: &mut Lower<'_>| {
            if !skip || src.on_chip() {
                return l.load(&src, dtype);
            }
            let tile = l.tile(&extents(&src), dtype.unwrap_or(src.view.dtype), Space::Sbuf)?;
            skipping(l, &tile, &src)?;
            Ok(tile)
        };
        return lower(interp, what, span, &[&outline.storage], load).map(Value::object);
    };
    let tile = lower(interp, what, span, &[&outline.storage], |l| {
        l.tile(&extents(&outline), dtype.unwrap_or(outline.view.dtype), Space::Sbuf)
    })?;
    for clip in clips.iter().filter(|clip| !clip.is_empty()) {
        let src = column(place.tensor(Some(clip), span)?, span)?;
        let dst = narrowed(&tile, clip, span)?;
        lower(interp, what, span, &[&src.storage], |l| {
            if skip && !src.on_chip() { skipping(l, &dst, &src) } else { l.load_to(&dst, &src) }
        })?;
    }
    state(interp).note_mask(tile.storage.id, clips);
    Ok(Value::object(tile))
}

/// A returned tile, stored to HBM: the old simulator returned tiles. In a grid, each program would store one.
pub(super) fn stored(interp: &mut Interp<'_>, name: &str, value: &Value, span: Span) -> EvalResult<Value> {
    let Some(tile) = value.downcast::<Tensor>().filter(|t| t.on_chip()) else { return Ok(value.clone()) };
    if state(interp).launch.counts.iter().product::<i64>() != 1 || interp.options.lnc > 1 {
        return Ok(value.clone());
    }
    let site = site(interp, span);
    let (shape, dtype) = (extents(tile), tile.view.dtype);
    let request = Request {
        name,
        sharing: Sharing::Order,
        space: Space::SharedHbm,
        shape: &shape,
        dtype,
        address: None,
        data: None,
    };
    let made = state(interp).builder.alloc(&request, site).map_err(|v| raise("", &v, span, &[&tile.storage]))?;
    lower(interp, "the return of a tile", span, &[&tile.storage], |l| l.store(&made, tile))?;
    Ok(Value::object(made))
}

/// A one-dimensional tensor in HBM as a column, one element per partition.
fn column(t: Tensor, span: Span) -> EvalResult<Tensor> {
    if t.ndim() != 1 || t.on_chip() {
        return Ok(t);
    }
    t.expand_dim(1).map_err(|v| raise("", &v, span, &[&t.storage]))
}

/// `nl.store(dst, value, mask=None)`
pub(super) fn store(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.store";
    let [dst, value, mask, mode, _] = bind_known(interp, args, what, ["dst", "value", "mask", "mode", "name"], 2)?;
    let skip = skips(mode, what, span)?;
    let (dst, value) = (need(dst), numbers(interp, &need(value), 1, span)?);
    let clips = clips_of(mask.as_ref(), span)?;
    for clip in each_part(clips.as_deref()) {
        store_part(interp, &dst, &value, clip, skip, span)?;
    }
    Ok(Value::None)
}

/// Stores the part left by a rectangle of a mask.
fn store_part(
    interp: &mut Interp<'_>,
    dst: &Value,
    value: &Value,
    clip: Option<&Clip>,
    skip: bool,
    span: Span,
) -> EvalResult<()> {
    let dst = Place::need(dst, "nl.store: dst", span)?.tensor(clip, span)?;
    let value = match Place::of(value, "nl.store: value", span)? {
        Some(place) => Operand::Tile(with_bits_of(place.tensor(clip, span)?, &dst)),
        None => operand(value, "nl.store: value", span)?,
    };
    if dst.on_chip() {
        // The old simulator copied.
        match &value {
            Operand::Tile(tile) => assign::put(interp, &dst, tile, span)?,
            Operand::Number(number) => assign::fill(interp, &dst, *number, span)?,
        }
        return Ok(());
    }
    let mut about = vec![&*dst.storage];
    if let Operand::Tile(t) = &value {
        about.push(&t.storage);
    }
    lower(interp, "nl.store", span, &about, |l| match &value {
        Operand::Tile(tile) if skip && tile.view.space == Space::Sbuf => skipping(l, &dst, tile),
        Operand::Tile(tile) if skip && tile.on_chip() => {
            let staged = l.copy(tile, None)?;
            skipping(l, &dst, &staged)
        }
        Operand::Tile(tile) => l.store(&dst, tile),
        Operand::Number(number) => l.fill(&dst, *number),
    })
}

/// Integers of the target's size are stored bit by bit: uint32 4294967295 becomes int32 -1. neuronx-distributed's test of find_index
/// (`find_index_shard_rows`) expects this of the device; other conversions go through float32.
fn with_bits_of(tile: Tensor, dst: &Tensor) -> Tensor {
    let (from, to) = (tile.view.dtype, dst.view.dtype);
    if from == to || !from.is_int() || !to.is_int() || from.size() != to.size() {
        return tile;
    }
    let mut view = tile.view.clone();
    view.dtype = to;
    tile.with_view(view)
}

/// `nl.load_transpose2d(src)`: a plain load, then a transpose on the tensor engine.
pub(super) fn load_transpose2d(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.load_transpose2d";
    let [src, mask, d, _] = bind_known(interp, args, what, ["src", "mask", "dtype", "name"], 1)?;
    let dtype = opt_dtype(d, what, span)?;
    let place = Place::need(&need(src), "nl.load_transpose2d: src", span)?;
    let Some(clip) = clip_of(mask.as_ref(), span)? else {
        let src = place.tensor(None, span)?;
        return lower(interp, what, span, &[&src.storage], |l| l.load_transposed(&src, dtype)).map(Value::object);
    };
    // The mask applies to the source: its rows are columns of the result.
    let outline = place.outline(span)?;
    let shape: Vec<i64> = extents(&outline).into_iter().rev().collect();
    let dtype = dtype.unwrap_or(outline.view.dtype);
    let whole = lower(interp, what, span, &[&outline.storage], |l| l.tile(&shape, dtype, Space::Sbuf))?;
    let turned = clip.reversed();
    if !clip.is_empty() {
        let src = place.tensor(Some(&clip), span)?;
        let to = narrowed(&whole, &turned, span)?;
        lower(interp, what, span, &[&src.storage], |l| {
            let made = l.load_transposed(&src, Some(dtype))?;
            if l.builder.redirect(&made, &to.view)? { Ok(()) } else { l.assign(&to, &made) }
        })?;
    }
    state(interp).note_mask(whole.storage.id, vec![turned]);
    Ok(Value::object(whole))
}

/// `nl.atomic_rmw(dst, value, op, mask=None)`: adds to a tensor in HBM.
pub(super) fn atomic_rmw(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (span, what) = (args.span, "nl.atomic_rmw");
    let [dst, value, op, mask] = bind_known(interp, args, what, ["dst", "value", "op", "mask"], 3)?;
    if ops::named(&need(op)).is_none_or(|op| op.op().name != "add") {
        return Err(Raise::at("op-unsupported", "nl.atomic_rmw: op is not np.add", span, "here")
            .help("DMA adds to its destination; load, combine and store for other operations"));
    }
    let clip = clip_of(mask.as_ref(), span)?;
    if clip.as_ref().is_some_and(Clip::is_empty) {
        return Ok(Value::None);
    }
    let dst = Place::need(&need(dst), "nl.atomic_rmw: dst", span)?.tensor(clip.as_ref(), span)?;
    let value = Place::need(&need(value), "nl.atomic_rmw: value", span)?.tensor(clip.as_ref(), span)?;
    add_by_dma(interp, what, &dst, &value, span)
}

/// `dst += src` during the DMA.
pub(super) fn add_by_dma(
    interp: &mut Interp<'_>,
    what: &str,
    dst: &Tensor,
    src: &Tensor,
    span: Span,
) -> EvalResult<Value> {
    lower(interp, what, span, &[&dst.storage, &src.storage], |l| {
        let (to, from) = (Arg::View(dst.view.clone()), Arg::View(src.view.clone()));
        let operands = [
            ("dst", to.clone()),
            ("srcs", Arg::List(vec![from, to])),
            ("reduce_op", Arg::Name("add".into())),
            ("unique_indices", Arg::Bool(false)),
        ];
        l.emit("dma_compute", &operands)
    })?;
    Ok(Value::None)
}

/// Reports arguments that a kernel writes but does not declare as `nt.mutable_tensor` or `nt.tensor[nt.mutable]`, or does not return, if it
/// returns others (err_cannot_update_immutable_parameter and err_mutable_parameter_not_returned of the manual).
pub(super) fn check_written(
    interp: &mut Interp<'_>,
    params: &[Param],
    written: &[(String, Value)],
    outputs: &[(String, Value)],
) {
    let storage = |value: &Value| value.downcast::<Tensor>().map(|t| t.storage.id);
    for (name, value) in written {
        let Some(param) = params.iter().find(|param| *interp.name(param.name) == **name) else { continue };
        let annotation = param.annotation.map(|span| interp.source_text(span)).unwrap_or_default();
        let is_returned = outputs.iter().any(|(_, output)| storage(output) == storage(value));
        let mut names = annotation.split(|c: char| !c.is_alphanumeric() && c != '_');
        let finding = if !names.any(|name| matches!(name, "mutable_tensor" | "mutable")) {
            Diagnostic::warning("immutable-argument", format!("the kernel writes to its argument `{name}`"))
                .at(param.span, "not declared as mutable")
                .help(format!(
                    "declare it as `{name}: nt.mutable_tensor` and return it; the older compiler rejects the store"
                ))
        } else if !is_returned {
            Diagnostic::warning(
                "immutable-argument",
                format!("the kernel writes to its argument `{name}`, but does not return it"),
            )
            .at(param.span, "declared as mutable")
            .help(format!("also return `{name}`; the older compiler rejects the kernel"))
        } else {
            continue;
        };
        interp.report_once(finding, param.span);
    }
}
