//! `nisa.<instruction>(...)`: calls that return their results.

use nki_diag::{Diagnostic, Span};
use nki_isa::inst::REGISTRY;
use nki_isa::inst::result::Given;
use nki_isa::schema::{Role, Schema};
use nki_isa::{Arg, DType, Space};

use super::access::Place;
use super::affine::IndexTile;
use super::calls::{bind_known, lower, no_mask, opt_dtype, take};
use super::clips::{narrowed, of_axes, of_partitions, of_reduction};
use super::mask::{check_reduced, clip_of, clips_of, clips_of_reduced, each_part, one_clip};
use super::matmul::{MaskedOperand, MatmulClips};
use super::operands::{arranged, outlined, prepare, readable, set, tensors};
use super::selection::pattern;
use super::{make, memory, ops, selection};
use crate::build::tensor::Tensor;
use crate::dialect::common::bind::{self, Policy, given, signature};
use crate::dialect::common::clip::Clip;
use crate::dialect::common::enums::ApiEnum;
use crate::dialect::common::state::state;
use crate::eval::Interp;
use crate::eval::convert::{ints, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::{CallArgs, NativeFn};
use crate::eval::value::Value;
use crate::syntax::Symbol;

pub(super) static POLICY: Policy = Policy {
    keyword,
    position,
    operand: ops::operand,
    missing,
    completes: &["dst"],
    handle_help: "an instruction that writes to its dst returns nothing: use dst",
};

/// Instructions with an explicit destination.
pub(crate) const WITH_DST: &[&str] =
    &["dma_copy", "nc_stream_shuffle", "select_reduce", "tensor_copy_predicated", "tensor_scalar_cumulative"];

/// Instructions whose operands and results have different layouts, so that no common axis can be masked.
const NO_MASK: &[&str] = &["local_gather", "sequence_bounds"];

/// Instructions that exchange the two axes of a tile: a mask of the operand leaves the transposed part of the result.
const TRANSPOSES: &[&str] = &["dma_transpose", "nc_transpose"];

/// Instructions whose result has the dtype of their data: with another `dtype`, a copy follows that casts.
/// Source: SDK 2.26.1, `nisa.nc_transpose`, "an additional nki.isa.cast instruction will be inserted".
const CAST_LATER: &[&str] = &["dma_transpose", "dropout", "nc_transpose"];

/// Elementwise instructions, so that a mask may leave several rectangles.
const OF_ELEMENTS: &[&str] = &[
    "activation",
    "dma_copy",
    "reciprocal",
    "scalar_tensor_tensor",
    "tensor_copy",
    "tensor_copy_predicated",
    "tensor_scalar",
    "tensor_tensor",
];

/// Instructions whose results share only the partitions with the operands, but not the free axis.
const OWN_FREE_AXIS: &[&str] = &["bn_aggr", "bn_stats", "max8", "nc_find_index8"];

/// The mode of a matmul that contracts two rows of fp8 at once.
pub(crate) const DOUBLE_ROW: &str = "double_row";

/// Functions of `nisa` that are not single instructions.
pub(super) static FUNCTIONS: &[(&str, NativeFn)] = &[
    ("memset", memset),
    ("iota", iota),
    ("affine_select", selection::affine_select),
    ("dma_copy", dma_copy),
    ("tensor_copy_dynamic_src", |i, a| alias(i, a, "tensor_copy")),
    ("tensor_copy_dynamic_dst", |i, a| alias(i, a, "tensor_copy")),
];

/// The operand index of a positional argument: `dst`, and operands that Beta 1 lacks, are left out.
pub(crate) fn position(schema: &Schema, at: usize) -> Option<usize> {
    let own: &[&str] = match schema.name {
        "nc_stream_shuffle" => &["src", "dst", "shuffle_mask"],
        _ => &[],
    };
    if let Some(name) = own.get(at) {
        return schema.position(name);
    }
    let taken = |name: &str| name != "dst" && name != "accumulate" && name != "engine" && name != "perf_mode";
    (0..schema.operands.len()).filter(|&i| taken(schema.operands[i].name)).nth(at)
}

/// Keywords that Beta 1's functions accepted and ignored.
fn keyword(interp: &mut Interp<'_>, schema: &Schema, symbol: Symbol, args: &CallArgs) -> EvalResult<Option<usize>> {
    let keyword = interp.name(symbol);
    ignore(interp, schema, &keyword, "Beta 1 ignored unknown keywords: leave it out", args.span);
    Ok(None)
}

/// Reports a keyword that has no effect.
fn ignore(interp: &mut Interp<'_>, schema: &Schema, keyword: &str, help: &str, span: Span) {
    let finding = Diagnostic::warning("ignored-argument", format!("{}: `{keyword}=` has no effect", schema.path()))
        .at(span, "in this call")
        .note(signature(schema))
        .help(help);
    interp.report_once(finding, span);
}

fn missing(interp: &Interp<'_>, schema: &Schema, args: &CallArgs, _operand: &str) -> Box<Raise> {
    let absent: Vec<String> = schema
        .operands
        .iter()
        .filter(|o| o.default.is_none() && o.name != "dst" && given(interp, &POLICY, schema, args, o.name).is_none())
        .map(|o| format!("`{}`", o.name))
        .collect();
    let message = format!("{} is missing {}", schema.path(), absent.join(", "));
    Raise::at("missing-operand", message, args.span, "in this call")
}

/// Whether a call has an explicit destination.
fn with_dst(schema: &Schema) -> bool {
    WITH_DST.contains(&schema.name)
}

/// Runs `nisa.<REGISTRY[data]>(...)`.
pub(super) fn call(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let schema = REGISTRY[args.data as usize].schema;
    let mask = take(interp, &mut args, "mask");
    let dtype = if with_dst(schema) { None } else { take(interp, &mut args, "dtype") };
    if !with_dst(schema) && take(interp, &mut args, "dst").is_some() {
        let call = schema.path();
        let help = format!("in neuronxcc.nki the instruction returns its result: write t[...] = {call}(...)");
        ignore(interp, schema, "dst", &help, span);
    }
    let dtype = opt_dtype(dtype, schema.name, span)?;
    if schema.name == "nc_matmul" {
        let clip = clip_of(mask.as_ref(), span)?;
        if let Some(made) = masked_matmul(interp, &args, clip.as_ref(), dtype)? {
            return Ok(made);
        }
    }
    prepare(interp, schema, &mut args)?;
    let is_of_elements = OF_ELEMENTS.contains(&schema.name)
        && ["reduce_op", "reduce_res"].iter().all(|name| given(interp, &POLICY, schema, &args, name).is_none());
    let clips = match reduced_axes(interp, schema, &args)? {
        Some((axes, rank)) => clips_of_reduced(mask.as_ref(), &axes, rank, span)?,
        None if is_of_elements => clips_of(mask.as_ref(), span)?,
        None => one_clip(mask.as_ref(), span)?,
    };
    if clips.is_none()
        && let Some(done) = transposed_in_blocks(interp, schema, &args, dtype)?
    {
        return Ok(done);
    }
    let restricts = |clip: &Clip| !clip.is_empty() && clip.restricts();
    let in_two_axes = || {
        let data = ["data", "src"].iter().find_map(|name| given(interp, &POLICY, schema, &args, name));
        let place = data.map(|data| Place::of(data, schema.name, span)).transpose();
        place.is_ok_and(|place| place.flatten().is_some_and(|place| place.rank() == 2))
            && given(interp, &POLICY, schema, &args, "axes").is_none_or(Value::is_none)
    };
    let no_mask_here = NO_MASK.contains(&schema.name) || TRANSPOSES.contains(&schema.name) && !in_two_axes();
    if no_mask_here && clips.iter().flatten().any(restricts) {
        return Err(no_mask(&schema.path().to_string(), span));
    }
    if !with_dst(schema) {
        return returning(interp, args, clips, dtype);
    }
    for clip in each_part(clips.as_deref()) {
        let args = readable(interp, schema, tensors(interp, schema, &args, clip, span)?)?;
        bind::place(interp, &POLICY, args, &mut |_, _, _| Ok(()))?;
    }
    Ok(Value::None)
}

/// The axes that a reduction of a tile reduces, and the number of those of its data.
fn reduced_axes(interp: &Interp<'_>, schema: &Schema, args: &CallArgs) -> EvalResult<Option<(Vec<i64>, usize)>> {
    let what = schema.path();
    let given = |name| given(interp, &POLICY, schema, args, name);
    let axes = match (schema.name, given("axis")) {
        ("tensor_partition_reduce", _) => vec![0],
        ("tensor_reduce", Some(axis)) => ints(axis, format_args!("{what}: axis"), args.span)?,
        _ => return Ok(None),
    };
    let Some(data) = given("data") else { return Ok(None) };
    let rank = Place::of(data, &what.to_string(), args.span)?.map_or(0, |place| place.rank());
    Ok(Some((axes, rank)))
}

/// A call that returns its result.
fn returning(
    interp: &mut Interp<'_>,
    args: CallArgs,
    clips: Option<Vec<Clip>>,
    dtype: Option<DType>,
) -> EvalResult<Value> {
    let span = args.span;
    let entry = &REGISTRY[args.data as usize];
    let schema = entry.schema;
    let Some(clips) = clips else {
        let args = readable(interp, schema, tensors(interp, schema, &args, None, span)?)?;
        let mut made = None;
        bind::place(interp, &POLICY, args, &mut |interp, entry, slots| {
            let tile = result(interp, entry, slots, dtype, span)?;
            destination(entry.schema, slots, &tile);
            made = Some(tile);
            Ok(())
        })?;
        let made = made.map(|tile| cast(interp, schema, tile, None, dtype, span)).transpose()?;
        return Ok(made.map_or(Value::None, Value::object));
    };
    // The result has its full shape, of which the instruction writes the part left by the mask.
    let outlines = outlined(schema, &args, span)?;
    let arranged = arranged(interp, schema, outlines.clone())?;
    let slots = bind::operands(interp, &POLICY, arranged)?;
    let whole = result(interp, entry, &slots, dtype, span)?;
    let mut all_left = Vec::new();
    for clip in &clips {
        all_left.push(of_result(interp, schema, &outlines, clip, &whole)?);
    }
    if matches!(schema.name, "tensor_reduce" | "tensor_partition_reduce") {
        check_reduced(&clips, &all_left, span)?;
    }
    for (clip, left) in clips.iter().zip(&all_left) {
        if !clip.is_empty() {
            let parts = readable(interp, schema, tensors(interp, schema, &args, Some(clip), span)?)?;
            let to = narrowed(&whole, left, span)?;
            bind::place(interp, &POLICY, parts, &mut |_, entry, slots| {
                destination(entry.schema, slots, &to);
                Ok(())
            })?;
        }
    }
    let whole = cast(interp, schema, whole, Some(&all_left), dtype, span)?;
    state(interp).note_mask(whole.storage.id, all_left);
    Ok(Value::object(whole))
}

/// A result in `dtype`: a copy if the instruction keeps the dtype of its data. `left` are its parts that are written, if not all of it is.
fn cast(
    interp: &mut Interp<'_>,
    schema: &Schema,
    made: Tensor,
    left: Option<&[Clip]>,
    dtype: Option<DType>,
    span: Span,
) -> EvalResult<Tensor> {
    let Some(dtype) = dtype.filter(|dtype| CAST_LATER.contains(&schema.name) && *dtype != made.view.dtype) else {
        return Ok(made);
    };
    let what = schema.path().to_string();
    let Some(left) = left else {
        return lower(interp, &what, span, &[&made.storage], |l| l.copy(&made, Some(dtype)));
    };
    let shape: Vec<i64> = made.view.shape().iter().map(|&n| i64::from(n)).collect();
    let whole = lower(interp, &what, span, &[], |l| l.tile(&shape, dtype, Space::Sbuf))?;
    for clip in left.iter().filter(|clip| !clip.is_empty()) {
        let (to, from) = (narrowed(&whole, clip, span)?, narrowed(&made, clip, span)?);
        let operands = [("dst", Arg::View(to.view)), ("src", Arg::View(from.view))];
        lower(interp, &what, span, &[&made.storage], |l| l.emit("tensor_copy", &operands))?;
    }
    Ok(whole)
}

/// `nisa.nc_matmul` with masks; `None` without.
fn masked_matmul(
    interp: &mut Interp<'_>,
    args: &CallArgs,
    clip: Option<&Clip>,
    dtype: Option<DType>,
) -> EvalResult<Option<Value>> {
    let (span, what) = (args.span, "nisa.nc_matmul");
    let entry = &REGISTRY[args.data as usize];
    let schema = entry.schema;
    let names = ["stationary", "moving"];
    let given = |interp: &Interp<'_>, name| given(interp, &POLICY, schema, args, name).cloned();
    let (Some(stationary), Some(moving)) = (given(interp, names[0]), given(interp, names[1])) else { return Ok(None) };
    if clip.is_none() && [&stationary, &moving].iter().all(|v| v.downcast::<MaskedOperand>().is_none()) {
        return Ok(None);
    }
    let stationary = MaskedOperand::parts(&stationary, what, span)?;
    let moving = MaskedOperand::parts(&moving, what, span)?;
    let with = |interp: &mut Interp<'_>, tiles: [Tensor; 2]| -> EvalResult<CallArgs> {
        let mut args = args.clone();
        for (name, tile) in names.into_iter().zip(tiles) {
            set(interp, schema, &mut args, name, Value::object(tile));
        }
        prepare(interp, schema, &mut args)?;
        Ok(args)
    };
    let outlines = with(interp, [stationary.0.outline(span)?, moving.0.outline(span)?])?;
    let slots = bind::operands(interp, &POLICY, outlines)?;
    let whole = result(interp, entry, &slots, dtype, span)?;
    let clips = MatmulClips::new(&stationary, &moving, 1, &whole, clip, span)?;
    clips.report(interp, span);
    if !clips.product.is_empty() {
        let tiles = [stationary.0.tensor(Some(&clips.first), span)?, moving.0.tensor(Some(&clips.second), span)?];
        let to = narrowed(&whole, &clips.product, span)?;
        let args = with(interp, tiles)?;
        let args = readable(interp, schema, args)?;
        bind::place(interp, &POLICY, args, &mut |_, entry, slots| {
            destination(entry.schema, slots, &to);
            Ok(())
        })?;
    }
    state(interp).note_mask(whole.storage.id, vec![clips.product]);
    Ok(Some(Value::object(whole)))
}

/// The part that a mask leaves of the result of a call with these operands.
fn of_result(
    interp: &Interp<'_>,
    schema: &Schema,
    outlines: &CallArgs,
    clip: &Clip,
    whole: &Tensor,
) -> EvalResult<Clip> {
    if clip.is_empty() {
        return Ok(clip.clone());
    }
    if OWN_FREE_AXIS.contains(&schema.name) {
        return Ok(of_partitions(whole, clip));
    }
    if TRANSPOSES.contains(&schema.name) {
        return Ok(clip.reversed());
    }
    let data = given(interp, &POLICY, schema, outlines, "data").and_then(|v| v.downcast::<Tensor>());
    if let (Some(data), Some((axes, _))) = (data, reduced_axes(interp, schema, outlines)?) {
        return of_reduction(clip, data, &axes, whole, outlines.span);
    }
    Ok(of_axes(whole, clip))
}

fn destination(schema: &Schema, slots: &mut [Option<Arg>], to: &Tensor) {
    if let Some(at) = schema.position("dst") {
        slots[at] = Some(Arg::View(to.view.clone()));
    }
}

/// The tile filled by a call.
fn result(
    interp: &mut Interp<'_>,
    entry: &nki_isa::inst::Entry,
    slots: &[Option<Arg>],
    dtype: Option<DType>,
    span: Span,
) -> EvalResult<Tensor> {
    let schema = entry.schema;
    let Some(tile) = (entry.result)(&Given::new(schema, slots)) else {
        let required =
            schema.operands.iter().zip(slots).find(|(o, s)| o.default.is_none() && o.name != "dst" && s.is_none());
        let message = match required {
            Some((o, _)) => format!("{} is missing `{}`", schema.path(), o.name),
            None => format!("{} returns no value", schema.path()),
        };
        return Err(Raise::at("missing-operand", message, span, "in this call"));
    };
    let mut shape: Vec<i64> = tile.shape.iter().map(|&n| i64::from(n)).collect();
    let name_in = |operand: &str| match schema.position(operand).and_then(|at| slots[at].as_ref()) {
        Some(Arg::Name(name) | Arg::Text(name)) => Some(&**name),
        _ => None,
    };
    if name_in("perf_mode") == Some(DOUBLE_ROW) {
        // Two rows of the operands form one of the product.
        shape.iter_mut().for_each(|n| *n /= 2);
    }
    let what = schema.path().to_string();
    // On trn1 a transpose on the tensor engine is a product, which may be float32.
    let is_product = schema.name == "nc_transpose" && tile.space == Space::Psum;
    let casts_itself = is_product && dtype == Some(DType::F32) && !state(interp).builder.arch().exact_transpose;
    let keeps = CAST_LATER.contains(&schema.name) && !casts_itself;
    let dtype = dtype.filter(|_| !keeps).unwrap_or(tile.dtype);
    lower(interp, &what, span, &[], |l| match (&shape[..], is_product) {
        ([rows, columns], true) => l.transposed_tile(*rows, *columns, dtype),
        _ => l.tile(&shape, dtype, tile.space),
    })
}

/// Sides of the squares that the vector engine transposes.
const SQUARE: i64 = 32;

/// `nisa.nc_transpose` on the vector engine of more than a square: square by square.
fn transposed_in_blocks(
    interp: &mut Interp<'_>,
    schema: &Schema,
    args: &CallArgs,
    dtype: Option<DType>,
) -> EvalResult<Option<Value>> {
    let (span, what) = (args.span, "nisa.nc_transpose");
    if schema.name != "nc_transpose" {
        return Ok(None);
    }
    let on_vector = match given(interp, &POLICY, schema, args, "engine") {
        Some(Value::Str(name)) => &**name == "vector",
        Some(value) => value.downcast::<ApiEnum>().is_some_and(|e| e.name() == "vector"),
        None => false,
    };
    let Some(data) = given(interp, &POLICY, schema, args, "data").filter(|_| on_vector) else { return Ok(None) };
    let Some(place) = Place::of(data, what, span)? else { return Ok(None) };
    let data = place.tensor(None, span)?;
    let (rows, columns) = (i64::from(data.view.partitions()), data.view.free_elements() as i64);
    if rows <= SQUARE && columns <= SQUARE || data.ndim() != 2 {
        return Ok(None);
    }
    let made = lower(interp, what, span, &[&data.storage], |l| {
        let out = l.tile(&[columns, rows], data.view.dtype, Space::Sbuf)?;
        for row in (0..rows).step_by(SQUARE as usize) {
            for column in (0..columns).step_by(SQUARE as usize) {
                let (end, last) = (rows.min(row + SQUARE), columns.min(column + SQUARE));
                let from = data.slice(0, row, end, 1)?.slice(1, column, last, 1)?;
                let to = out.slice(0, column, last, 1)?.slice(1, row, end, 1)?;
                let operands = [
                    ("dst", Arg::View(to.view)),
                    ("data", Arg::View(from.view)),
                    ("engine", Arg::Name("vector".into())),
                ];
                l.emit("nc_transpose", &operands)?;
            }
        }
        Ok(out)
    })?;
    Ok(Some(Value::object(cast(interp, schema, made, None, dtype, span)?)))
}

/// An instruction under an alias.
fn alias(interp: &mut Interp<'_>, args: CallArgs, name: &str) -> EvalResult<Value> {
    let at = REGISTRY.iter().position(|e| e.schema.name == name).unwrap_or_default();
    let mut args = CallArgs { data: at as u32, ..args };
    let schema = REGISTRY[at].schema;
    if with_dst(schema) {
        return call(interp, args);
    }
    let Some(dst) = take(interp, &mut args, "dst") else { return call(interp, args) };
    // The destination is explicit.
    let span = args.span;
    let dst = Place::need(&dst, "nisa.tensor_copy_dynamic_dst: dst", span)?.tensor(None, span)?;
    let args = tensors(interp, schema, &args, None, span)?;
    bind::place(interp, &POLICY, args, &mut |_, entry, slots| {
        destination(entry.schema, slots, &dst);
        Ok(())
    })?;
    Ok(Value::None)
}

/// `nisa.dma_copy(dst, src, mask, dst_rmw_op, oob_mode, dge_mode)`: with an operation the destination is read, combined and written.
fn dma_copy(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (span, what) = (args.span, "nisa.dma_copy");
    let Some(op) = take(interp, &mut args.clone(), "dst_rmw_op") else {
        let mut args = args;
        let symbol = interp.sym("dst_rmw_op");
        args.take_keyword(symbol);
        return alias(interp, args, "dma_copy");
    };
    if ops::named(&op).is_none_or(|op| op.op().name != "add") {
        return Err(Raise::at("op-unsupported", "nisa.dma_copy: dst_rmw_op is not np.add", span, "here")
            .help("DMA adds to its destination; load, combine and store for other operations"));
    }
    let names = ["dst", "src", "mask", "dst_rmw_op", "oob_mode", "dge_mode", "name"];
    let [dst, src, mask, ..] = bind_known(interp, args, what, names, 2)?;
    let clip = clip_of(mask.as_ref(), span)?;
    if clip.as_ref().is_some_and(Clip::is_empty) {
        return Ok(Value::None);
    }
    let dst = Place::need(&dst.unwrap_or(Value::None), "nisa.dma_copy: dst", span)?.tensor(clip.as_ref(), span)?;
    let src = Place::need(&src.unwrap_or(Value::None), "nisa.dma_copy: src", span)?.tensor(clip.as_ref(), span)?;
    memory::add_by_dma(interp, what, &dst, &src, span)
}

/// `nisa.memset(shape, value, dtype, mask=None, engine=unknown)`
fn memset(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (span, what) = (args.span, "nisa.memset");
    let [shape, value, d, mask, engine, _] =
        bind_known(interp, args, what, ["shape", "value", "dtype", "mask", "engine", "name"], 3)?;
    let (shape, _) = make::shape(&shape.unwrap_or(Value::None), what, span)?;
    let value = value.unwrap_or(Value::None);
    let number = crate::eval::convert::number(&value, "nisa.memset: value", span)?;
    let dtype = opt_dtype(d, what, span)?.unwrap_or(DType::F32);
    let clips = clips_of(mask.as_ref(), span)?;
    let engine = engine.and_then(|e| e.downcast::<ApiEnum>().map(|e| e.name()));
    let tile = lower(interp, what, span, &[], |l| l.tile(&shape, dtype, Space::Sbuf))?;
    for clip in each_part(clips.as_deref()) {
        let dst = match clip {
            Some(clip) => narrowed(&tile, clip, span)?,
            None => tile.clone(),
        };
        lower(interp, what, span, &[&tile.storage], |l| match engine {
            Some(engine) if engine != "unknown" => {
                let value = match number.as_i64() {
                    Some(i) if !dtype.is_float() => Arg::Int(i),
                    _ => Arg::Float(f64::from(number.as_f32())),
                };
                let engine = Arg::Name(engine.into());
                l.emit("memset", &[("dst", Arg::View(dst.view.clone())), ("value", value), ("engine", engine)])
            }
            _ => l.fill(&dst, number),
        })?;
    }
    if let Some(clips) = clips {
        state(interp).note_mask(tile.storage.id, clips);
    }
    Ok(Value::object(tile))
}

/// `nisa.iota(expr, dtype)`: the numbers of an index tile.
fn iota(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (span, what) = (args.span, "nisa.iota");
    let [expr, d, mask, _] = bind_known(interp, args, what, ["expr", "dtype", "mask", "name"], 2)?;
    let clips = clips_of(mask.as_ref(), span)?;
    let expr = expr.unwrap_or(Value::None);
    // A number (`nl.program_id(0)`) is a tile of one element.
    let Some(tile) = IndexTile::of(&expr) else {
        return Err(wrong("nisa.iota: expr", "an index tile", &expr, span));
    };
    let dtype = opt_dtype(d, what, span)?.unwrap_or(DType::I32);
    let made = iota_tile(interp, &tile, dtype, span)?;
    // All of it is computed; the part left by the mask is assigned.
    if let Some(clips) = clips {
        state(interp).note_mask(made.storage.id, clips);
    }
    Ok(Value::object(made))
}

/// A tile of the numbers of an index tile.
pub(super) fn iota_tile(interp: &mut Interp<'_>, tile: &IndexTile, dtype: DType, span: Span) -> EvalResult<Tensor> {
    let mut shape: Vec<i64> = tile.axes.iter().map(|a| i64::from(a.count)).collect();
    shape.resize(shape.len().max(2), 1);
    let (offset, channel, pattern) = pattern(tile);
    lower(interp, "nisa.iota", span, &[], |l| {
        let dst = l.tile(&shape, dtype, Space::Sbuf)?;
        let operands = [
            ("dst", Arg::View(dst.view.clone())),
            ("pattern", Arg::List(pattern)),
            ("offset", Arg::Int(offset)),
            ("channel_multiplier", Arg::Int(channel)),
        ];
        l.emit("iota", &operands).map(|()| dst)
    })
}

/// Whether Beta 1 has the instruction.
pub(super) fn exists(schema: &Schema) -> bool {
    let has_result = schema.operands.iter().any(|o| o.name == "dst" && o.role != Role::Attr);
    has_result && !LATER.contains(&schema.name)
}

/// Instructions introduced after Beta 1.
const LATER: &[&str] = &[
    "nc_matmul_mx",
    "quantize_mx",
    "dma_compute",
    "sendrecv",
    "sendrecv_compute",
    "core_barrier",
    "nc_n_gather",
    "nonzero_with_count",
    "topk",
    "rand2",
    "rng",
    "rand_get_state",
    "rand_set_state",
    "set_rng_seed",
    "activate2",
    "exponential",
    "register_load",
    "register_move",
    "register_store",
    "device_print",
];
