//! The operands of `nisa.<instruction>(...)`, converted to tensors with the types, memories and dimensions that the instruction supports.

use nki_diag::Span;
use nki_isa::names::AluOp;
use nki_isa::schema::{Role, Schema};
use nki_isa::{DType, Dim, Space};

use super::access::Place;
use super::arithmetic::{aligned, compatible, widened};
use super::calls::lower;
use super::clips::{of_partitions, of_rank};
use super::instruction::{DOUBLE_ROW, POLICY, position};
use super::ops;
use crate::build::lower::extents;
use crate::build::lower::results::reduced_last;
use crate::build::ops::OpKind;
use crate::build::tensor::Tensor;
use crate::dialect::common::bind::given;
use crate::dialect::common::clip::Clip;
use crate::dialect::common::enums::ApiEnum;
use crate::dialect::common::errors::raise;
use crate::dialect::common::state::arch;
use crate::eval::Interp;
use crate::eval::convert::ints;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

/// Operands with 8 elements in each partition, which share only the partitions with the others.
const PARTITIONS_ONLY: &[(&str, &str)] =
    &[("nc_find_index8", "vals"), ("nc_match_replace8", "vals"), ("nc_match_replace8", "dst_idx")];

/// The arguments with each access and table as a tensor, clipped.
pub(super) fn tensors(
    interp: &Interp<'_>,
    schema: &Schema,
    args: &CallArgs,
    clip: Option<&Clip>,
    span: Span,
) -> EvalResult<CallArgs> {
    let mut out = args.clone();
    let what = schema.path().to_string();
    let mut widest = 0;
    for value in out.positional.iter().chain(out.keyword.iter().map(|k| &k.1)) {
        widest = widest.max(Place::of(value, &what, span)?.map_or(0, |place| place.rank()));
    }
    let convert = |value: &mut Value, operand: Option<&str>| -> EvalResult<()> {
        if let Some(place) = Place::of(value, &what, span)? {
            // Axes of the mask that an operand lacks do not restrict it.
            let mut clip = clip.cloned();
            if let (Some(c), Place::Tile(tile)) = (&clip, &place)
                && operand.is_some_and(|o| PARTITIONS_ONLY.contains(&(schema.name, o)))
            {
                clip = Some(of_partitions(tile, c));
            }
            let clip = clip.map(|c| of_rank(&c, place.rank(), widest));
            *value = Value::object(place.tensor(clip.as_ref(), span)?);
        }
        Ok(())
    };
    for (at, value) in out.positional.iter_mut().enumerate() {
        let operand = position(schema, at).map(|i| schema.operands[i].name);
        convert(value, operand)?;
    }
    for (symbol, value) in &mut out.keyword {
        convert(value, Some(&interp.name(*symbol)))?;
    }
    Ok(out)
}

/// The argument for an operand, if it is a tile.
fn tile(interp: &Interp<'_>, schema: &Schema, args: &CallArgs, operand: &str) -> Option<Tensor> {
    given(interp, &POLICY, schema, args, operand).and_then(|v| v.downcast::<Tensor>()).cloned()
}

/// The arguments, with copies of those that the instruction cannot read: in PSUM, or with more dimensions than an access pattern. The old
/// compiler inserted such copies.
pub(super) fn readable(interp: &mut Interp<'_>, schema: &Schema, args: CallArgs) -> EvalResult<CallArgs> {
    let what = schema.path().to_string();
    let span = args.span;
    let mut args = arranged(interp, schema, args)?;
    let is_dma = schema.name.starts_with("dma_");
    let copied = |interp: &mut Interp<'_>, value: &mut Value, operand: Option<usize>| -> EvalResult<()> {
        let operand = operand.map(|at| &schema.operands[at]).filter(|o| o.role == Role::In);
        let (Some(operand), Some(tile)) = (operand, value.downcast::<Tensor>().cloned()) else { return Ok(()) };
        let in_psum = tile.view.space == Space::Psum;
        let to_sbuf = in_psum && operand.spaces.contains(&Space::Sbuf) && !operand.spaces.contains(&Space::Psum);
        if !to_sbuf && (is_dma || tile.ndim() <= arch(interp).free_dims_max as usize + 1) {
            return Ok(());
        }
        let made = lower(interp, &what, span, &[&tile.storage], |l| {
            let tile = if is_dma { tile.clone() } else { l.accessible(&tile)? };
            if to_sbuf { l.in_sbuf(&tile) } else { Ok(tile) }
        })?;
        if made.view != tile.view {
            *value = Value::object(made);
        }
        Ok(())
    };
    for (at, value) in args.positional.iter_mut().enumerate() {
        copied(interp, value, position(schema, at))?;
    }
    for (symbol, value) in &mut args.keyword {
        let name = interp.name(*symbol);
        copied(interp, value, schema.position(&name))?;
    }
    if schema.name == "nc_matmul" {
        widen_factors(interp, schema, &mut args)?;
    }
    Ok(args)
}

/// Copies the factor of a matmul that is narrower than the other, if that is float32.
fn widen_factors(interp: &mut Interp<'_>, schema: &Schema, args: &mut CallArgs) -> EvalResult<()> {
    let names = ["stationary", "moving"];
    let tile = |name| tile(interp, schema, args, name);
    let [Some(stationary), Some(moving)] = names.map(tile) else { return Ok(()) };
    let (left, right) =
        lower(interp, "nisa.nc_matmul", args.span, &[&stationary.storage], |l| widened(l, &stationary, &moving))?;
    for (name, (before, after)) in names.into_iter().zip([(stationary, left), (moving, right)]) {
        if after.view != before.view {
            set(interp, schema, args, name, Value::object(after));
        }
    }
    Ok(())
}

/// The arguments with the dimensions that the instruction expects.
pub(super) fn arranged(interp: &mut Interp<'_>, schema: &Schema, mut args: CallArgs) -> EvalResult<CallArgs> {
    match schema.name {
        "tensor_copy_predicated" => repeat_predicate(interp, schema, &mut args),
        "tensor_tensor" => repeat_operands(interp, schema, &mut args),
        "tensor_reduce" => move_reduced(interp, schema, &mut args)?,
        _ => {}
    }
    Ok(args)
}

/// Moves the reduced dimensions to the end.
fn move_reduced(interp: &mut Interp<'_>, schema: &Schema, args: &mut CallArgs) -> EvalResult<()> {
    let (what, span) = ("nisa.tensor_reduce", args.span);
    let tile = tile(interp, schema, args, "data");
    let (Some(tile), Some(axis)) = (tile, given(interp, &POLICY, schema, args, "axis").cloned()) else { return Ok(()) };
    let axes = ints(&axis, "nisa.tensor_reduce: axis", span)?;
    let (moved, last) = reduced_last(&tile, &axes).map_err(|v| raise(what, &v, span, &[&tile.storage]))?;
    if moved.view != tile.view {
        set(interp, schema, args, "data", Value::object(moved));
    }
    set(interp, schema, args, "axis", Value::tuple(last.into_iter().map(Value::Int).collect::<Vec<_>>()));
    Ok(())
}

/// Broadcasts each of two operands along the free dimensions in which it has one element, or none, and the other more. Partitions are not
/// broadcast.
fn repeat_operands(interp: &mut Interp<'_>, schema: &Schema, args: &mut CallArgs) {
    let tile = |name| tile(interp, schema, args, name);
    let (Some(one), Some(other)) = (tile("data1"), tile("data2")) else { return };
    let (of_one, of_other) = (extents(&one), extents(&other));
    // (P, 1, n) and (P, n, 1) have as many elements, but each repeats along the axis of the other.
    let repeats = of_one.len() == of_other.len() && of_one != of_other && compatible(&of_one, &of_other);
    let fits = one.view.free_elements() == other.view.free_elements() && !repeats;
    if fits || of_one.first() != of_other.first() {
        return;
    }
    let Ok((one, other)) = aligned(&one, &other) else { return };
    let shape: Vec<i64> = extents(&one).iter().zip(extents(&other)).map(|(a, b)| *a.max(&b)).collect();
    let (Ok(one), Ok(other)) = (one.broadcast_to(&shape), other.broadcast_to(&shape)) else { return };
    set(interp, schema, args, "data1", Value::object(one));
    set(interp, schema, args, "data2", Value::object(other));
}

/// Repeats a predicate along the free dimensions in which it has one element, or which it lacks, as far as `dst` has more.
fn repeat_predicate(interp: &mut Interp<'_>, schema: &Schema, args: &mut CallArgs) {
    let tile = |name| tile(interp, schema, args, name);
    let (Some(dst), Some(predicate)) = (tile("dst"), tile("predicate")) else { return };
    if predicate.view.free_elements() == dst.view.free_elements() || predicate.ndim() > dst.ndim() {
        return;
    }
    let repeated = aligned(&predicate, &dst).and_then(|(predicate, dst)| predicate.broadcast_to(&extents(&dst)));
    if let Ok(repeated) = repeated {
        set(interp, schema, args, "predicate", Value::object(repeated));
    }
}

/// The arguments with each access as if it were inside its tensor: for the shape of the result.
pub(super) fn outlined(schema: &Schema, args: &CallArgs, span: Span) -> EvalResult<CallArgs> {
    let mut out = args.clone();
    let what = schema.path().to_string();
    for value in out.positional.iter_mut().chain(out.keyword.iter_mut().map(|k| &mut k.1)) {
        if let Some(place) = Place::of(value, &what, span)? {
            *value = Value::object(place.outline(span)?);
        }
    }
    Ok(out)
}

/// Replaces or adds an argument.
pub(super) fn set(interp: &mut Interp<'_>, schema: &Schema, args: &mut CallArgs, operand: &str, value: Value) {
    let symbol = interp.sym(operand);
    let at = (0..args.positional.len()).find(|&at| position(schema, at) == schema.position(operand));
    match (at, args.keyword.iter_mut().find(|(s, _)| *s == symbol)) {
        (Some(at), _) => args.positional[at] = value,
        (None, Some(keyword)) => keyword.1 = value,
        (None, None) => args.keyword.push((symbol, value)),
    }
}

/// Operands with one element in each partition.
const VECTORS: &[(&str, &[&str])] = &[
    ("activation", &["bias", "scale", "reduce_res"]),
    ("activation_reduce", &["bias", "scale", "reduce_res"]),
    ("scalar_tensor_tensor", &["operand0"]),
    ("tensor_scalar", &["operand0", "operand1"]),
    ("tensor_scalar_reduce", &["operand0", "reduce_res"]),
    ("tensor_tensor_scan", &["initial"]),
];

/// Replaces vectors that repeat along free axes, as `v[i, 0]` does by index tiles of two axes, by columns; and those of types that the
/// engines do not read by copies in float32, the type of the computation.
fn prepare_vectors(interp: &mut Interp<'_>, schema: &Schema, args: &mut CallArgs) -> EvalResult<()> {
    let what = schema.path().to_string();
    let span = args.span;
    let operator = |name| match given(interp, &POLICY, schema, args, name).and_then(ops::named)?.op().kind {
        OpKind::Binary(alu) => Some(alu),
        _ => None,
    };
    let operators: Vec<AluOp> = ["op0", "op1"].into_iter().filter_map(operator).collect();
    let of = VECTORS.iter().find(|(name, _)| *name == schema.name);
    for operand in of.into_iter().flat_map(|(_, operands)| *operands) {
        let tile = tile(interp, schema, args, operand);
        let Some(given) = tile.filter(Tensor::on_chip) else { continue };
        let mut vector = column(&given).unwrap_or_else(|| given.clone());
        let is_converted = !matches!(*operand, "bias" | "scale" | "reduce_res");
        if is_converted && vector.view.dtype != DType::F32 && !operators.iter().any(|op| op.is_bitvec()) {
            vector = lower(interp, &what, span, &[&vector.storage], |l| l.copy(&vector, Some(DType::F32)))?;
        }
        if vector.view != given.view {
            set(interp, schema, args, operand, Value::object(vector));
        }
    }
    Ok(())
}

/// One element of each partition of a tile that repeats it along free axes; `None` for other tiles.
fn column(tile: &Tensor) -> Option<Tensor> {
    let (rows, free) = tile.view.dims.split_first()?;
    let repeats = free.iter().all(|dim| dim.count == 1 || dim.stride == 0);
    if !repeats || tile.view.free_elements() == 1 {
        return None;
    }
    let mut view = tile.view.clone();
    view.dims = [*rows, Dim { stride: 1, count: 1 }].into_iter().collect();
    Some(tile.with_view(view))
}

/// Rejects biases of activations that the manual excludes: the current language accepts any type.
fn check_bias(interp: &Interp<'_>, schema: &Schema, args: &CallArgs) -> EvalResult<()> {
    let bias = tile(interp, schema, args, "bias");
    let Some(bias) = bias.filter(|b| !matches!(b.view.dtype, DType::F32 | DType::F16 | DType::BF16)) else {
        return Ok(());
    };
    let message = format!("{}: `bias` is {}; it must be float32, float16 or bfloat16", schema.path(), bias.view.dtype);
    Err(Raise::at("operand-dtype", message, args.span, "in this call")
        .help("copy it to a tile of float32 with nisa.tensor_copy, which converts"))
}

/// Operands that Beta 1 leaves to the instruction, or has another default for.
pub(super) fn prepare(interp: &mut Interp<'_>, schema: &Schema, args: &mut CallArgs) -> EvalResult<()> {
    let span = args.span;
    prepare_vectors(interp, schema, args)?;
    match schema.name {
        "activation" | "activation_reduce" => check_bias(interp, schema, args)?,
        "nc_matmul" => {
            // The mode had a separate name for each generation.
            let mode = given(interp, &POLICY, schema, args, "perf_mode").cloned();
            if let Some(Value::Str(mode)) = &mode
                && mode.starts_with(DOUBLE_ROW)
            {
                set(interp, schema, args, "perf_mode", Value::str(DOUBLE_ROW));
            }
        }
        "range_select" if given(interp, &POLICY, schema, args, "reduce_cmd").is_none() => {
            set(interp, schema, args, "reduce_cmd", Value::str("idle"));
        }
        "nc_transpose" => {
            let open = given(interp, &POLICY, schema, args, "engine")
                .is_none_or(|v| v.is_none() || v.downcast::<ApiEnum>().is_some_and(|e| e.name() == "unknown"));
            let data = given(interp, &POLICY, schema, args, "data").cloned();
            if let (true, Some(data)) = (open, data)
                && let Some(place) = Place::of(&data, "nisa.nc_transpose", span)?
            {
                // Up to 32x32 the vector engine, as documented.
                let t = place.outline(span)?;
                let small = t.view.partitions() <= 32 && t.view.free_elements() <= 32;
                set(interp, schema, args, "engine", Value::str(if small { "vector" } else { "tensor" }));
            }
        }
        _ => {}
    }
    Ok(())
}
