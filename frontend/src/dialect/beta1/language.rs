//! The functions of `neuronxcc.nki.language`.

use std::rc::Rc;

use nki_diag::Span;
use nki_isa::{Arg, DType, Space};

use super::access::Place;
use super::arithmetic::{opt_bool_dtype, truth};
use super::assign::LoopReduce;
use super::calls::{
    all_or_nothing, bind_known, compute, either_dtype, lower, masked, need, operand, opt_dtype, take, tile_of,
};
use super::mask::{Mask, clip_of, clips_of, clips_of_reduced, one_clip};
use super::mgrid::arange;
use super::{make, matmul, memory, ops, programs, selection};
use crate::build::lower::Operand;
use crate::build::tensor::Tensor;
use crate::dialect::common::clip::Clip;
use crate::dialect::common::errors::raise;
use crate::dialect::common::state::state;
use crate::dialect::common::tensor::option;
use crate::eval::Interp;
use crate::eval::convert::{given, int, ints, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::{CallArgs, NativeFn};
use crate::eval::stdlib;
use crate::eval::value::{Range, Value};

/// Functions that are not operators.
pub(super) static FUNCTIONS: &[(&str, NativeFn)] = &[
    ("ndarray", make::ndarray),
    ("zeros", make::zeros),
    ("ones", make::ones),
    ("full", make::full),
    ("zeros_like", make::zeros_like),
    ("empty_like", make::empty_like),
    ("rand", make::rand),
    ("par_dim", make::par_dim),
    ("arange", arange),
    ("affine_range", affine_range),
    ("sequential_range", sequential_range),
    ("static_range", static_range),
    ("load", memory::load),
    ("store", memory::store),
    ("load_transpose2d", memory::load_transpose2d),
    ("sum", |i, a| reduce(i, a, "sum")),
    ("max", |i, a| reduce(i, a, "max")),
    ("min", |i, a| reduce(i, a, "min")),
    ("mean", |i, a| reduce(i, a, "mean")),
    ("prod", |i, a| reduce(i, a, "prod")),
    ("var", |i, a| reduce(i, a, "var")),
    ("all", |i, a| reduce(i, a, "all")),
    ("softmax", softmax),
    ("rms_norm", rms_norm),
    ("where", selection::select),
    ("transpose", transpose),
    ("matmul", matmul::matmul),
    ("broadcast_to", broadcast_to),
    ("expand_dims", expand_dims),
    ("gather_flattened", gather_flattened),
    ("dropout", dropout),
    ("random_seed", random_seed),
    ("loop_reduce", loop_reduce),
    ("atomic_rmw", memory::atomic_rmw),
    ("finfo", stdlib::finfo),
    ("static_cast", static_cast),
    ("device_print", device_print),
    ("program_id", programs::program_id),
    ("num_programs", programs::num_programs),
    ("program_ndim", programs::program_ndim),
];

fn affine_range(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    range(interp, args, "nl.affine_range")
}

fn sequential_range(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    range(interp, args, "nl.sequential_range")
}

fn static_range(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    range(interp, args, "nl.static_range")
}

fn range(interp: &mut Interp<'_>, mut args: CallArgs, what: &str) -> EvalResult<Value> {
    let span = args.span;
    for advice in ["directives", "body_no_reorder"] {
        // For the old compiler's scheduler.
        take(interp, &mut args, advice);
    }
    let [start, stop, step] = bind_known(interp, args, what, ["start", "stop", "step"], 1)?;
    let bound = |v: &Value| int(v, "a range that is unrolled", span);
    let start = need(start);
    let (start, stop) = match given(stop) {
        None => (0, bound(&start)?),
        Some(stop) => (bound(&start)?, bound(&stop)?),
    };
    let step = given(step).map_or(Ok(1), |s| bound(&s))?;
    if step == 0 {
        return Err(Raise::at("arguments", "a range with step 0", span, "in this call"));
    }
    state(interp).offset_loops |= start != 0;
    Ok(Value::Range(Rc::new(Range { start, stop, step })))
}

fn reduce(interp: &mut Interp<'_>, args: CallArgs, name: &'static str) -> EvalResult<Value> {
    let span = args.span;
    let what = format!("nl.{name}");
    let [x, axis, d, mask, keepdims, _] =
        bind_known(interp, args, &what, ["x", "axis", "dtype", "mask", "keepdims", "name"], 2)?;
    let axis = ints(&need(axis), format_args!("{what}: axis"), span)?;
    let of_truth = name == "all";
    let dtype = opt_bool_dtype(d, &what, span)?.or(of_truth.then_some(DType::U8));
    let keepdims = option(keepdims, format_args!("{what}: keepdims"), false, span)?;
    let x = need(x);
    let rank = Place::of(&x, &what, span)?.map_or(0, |place| place.rank());
    let clips = clips_of_reduced(mask.as_ref(), &axis, rank, span)?;
    let made = masked(interp, &what, span, clips, &[&x], Some(&axis), |l, o| {
        let x = tile_of(&o[0])?;
        // "`float32` intermediate and return values are used for integer inputs" (nl.mean).
        let own = (name == "mean" && x.view.dtype.is_int()).then_some(DType::F32);
        l.reduce_any(name, x, &axis, dtype.or(own), keepdims)
    })?;
    Ok(if of_truth { truth(interp, made, dtype) } else { made })
}

fn softmax(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.softmax";
    let [x, axis, d, computed, mask, _] =
        bind_known(interp, args, what, ["x", "axis", "dtype", "compute_dtype", "mask", "name"], 2)?;
    let axis = ints(&need(axis), "nl.softmax: axis", span)?;
    let dtype = either_dtype(d, computed, what, span)?;
    compute(interp, what, span, one_clip(mask.as_ref(), span)?, &[&need(x)], |l, o| {
        l.softmax(tile_of(&o[0])?, &axis, dtype)
    })
}

fn rms_norm(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.rms_norm";
    let [x, w, axis, n, epsilon, d, computed, mask, _] = bind_known(
        interp,
        args,
        what,
        ["x", "w", "axis", "n", "epsilon", "dtype", "compute_dtype", "mask", "name"],
        4,
    )?;
    let axis = ints(&need(axis), "nl.rms_norm: axis", span)?;
    let float = |v: Option<Value>, default: f64| match given(v) {
        None => Ok(default),
        Some(v) => v.as_float().ok_or_else(|| wrong(what, "a number", &v, span)),
    };
    let (n, epsilon) = (float(n, 1.0)?, float(epsilon, 1e-6)?);
    let dtype = either_dtype(d, computed, what, span)?;
    compute(interp, what, span, one_clip(mask.as_ref(), span)?, &[&need(x), &need(w)], |l, o| {
        let (x, w) = (tile_of(&o[0])?, tile_of(&o[1])?);
        let rows = x.view.partitions();
        let w = if w.view.partitions() == 1 && rows > 1 { l.spread(w, rows)? } else { w.clone() };
        l.rms_norm(x, &w, &axis, n, epsilon, dtype)
    })
}

fn transpose(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, d, mask, _] = bind_known(interp, args, "nl.transpose", ["x", "dtype", "mask", "name"], 1)?;
    all_or_nothing(mask.as_ref(), "nl.transpose", span)?;
    let dtype = opt_dtype(d, "nl.transpose", span)?;
    compute(interp, "nl.transpose", span, one_clip(mask.as_ref(), span)?, &[&need(x)], |l, o| {
        let x = tile_of(&o[0])?;
        let source = l.in_sbuf(x)?;
        let turned = l.transpose(&source, None)?;
        l.copy(&turned, Some(dtype.unwrap_or(x.view.dtype)))
    })
}

fn broadcast_to(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, shape, _] = bind_known(interp, args, "nl.broadcast_to", ["src", "shape", "name"], 2)?;
    let (shape, _) = make::shape(&need(shape), "nl.broadcast_to", span)?;
    let x = need(x);
    if x.downcast::<Mask>().is_some() {
        return selection::tile_of_mask(interp, &x, &shape, "nl.broadcast_to", span).map(Value::object);
    }
    broadcast(interp, &x, &shape, "nl.broadcast_to", span)
}

/// A view that repeats elements along free dimensions; along partitions a new tile.
pub(super) fn broadcast(
    interp: &mut Interp<'_>,
    x: &Value,
    shape: &[i64],
    what: &str,
    span: Span,
) -> EvalResult<Value> {
    let t = Place::need(x, what, span)?.tensor(None, span)?;
    lower(interp, what, span, &[&t.storage], |l| {
        let mut t = t.clone();
        while t.ndim() < shape.len() {
            t = t.expand_dim(i64::from(t.on_chip()))?;
        }
        match shape.first().and_then(|&n| u32::try_from(n).ok()) {
            Some(rows) if t.on_chip() && t.view.partitions() == 1 && rows > 1 => {
                l.spread(&t, rows)?.broadcast_to(shape)
            }
            _ => t.broadcast_to(shape),
        }
    })
    .map(Value::object)
}

fn expand_dims(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, axis] = args.bind(interp, "nl.expand_dims", ["data", "axis"], 2)?;
    let t = Place::need(&need(x), "nl.expand_dims", span)?.tensor(None, span)?;
    expanded(&t, &need(axis), "nl.expand_dims: axis", span)
}

/// A tile with additional dimensions of 1.
pub(super) fn expanded(t: &Tensor, axis: &Value, what: &str, span: Span) -> EvalResult<Value> {
    let axes = ints(axis, what, span)?;
    // Positions refer to the result, so that lower ones come first.
    let rank = (t.ndim() + axes.len()) as i64;
    let mut axes: Vec<i64> = axes.iter().map(|&a| if a < 0 { a + rank } else { a }).collect();
    axes.sort_unstable();
    axes.iter()
        .try_fold(t.clone(), |t, &axis| t.expand_dim(axis))
        .map(Value::object)
        .map_err(|v| raise("", &v, span, &[&t.storage]))
}

fn gather_flattened(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.gather_flattened";
    let [data, indices, mask, d, _] = bind_known(interp, args, what, ["data", "indices", "mask", "dtype", "name"], 2)?;
    let dtype = opt_dtype(d, what, span)?;
    let (data, indices) = (need(data), need(indices));
    if let Some(place) = Place::of(&indices, what, span)? {
        let outline = place.outline(span)?;
        let dtype = outline.view.dtype;
        if dtype != DType::U32 {
            let message = format!("{what}: `{}` is {dtype}, but indices must be uint32", outline.storage.name);
            return Err(Raise::at("unsupported-dtype", message, span, "here")
                .help(format!("convert them first: nl.copy({}, dtype=nl.uint32)", outline.storage.name)));
        }
    }
    compute(interp, what, span, one_clip(mask.as_ref(), span)?, &[&data, &indices], |l, o| {
        l.gather_flattened(tile_of(&o[0])?, tile_of(&o[1])?, dtype)
    })
}

fn dropout(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.dropout";
    let [x, rate, d, mask, _] = bind_known(interp, args, what, ["x", "rate", "dtype", "mask", "name"], 2)?;
    let dtype = opt_dtype(d, what, span)?;
    compute(interp, what, span, clips_of(mask.as_ref(), span)?, &[&need(x), &need(rate)], |l, o| {
        l.dropout(tile_of(&o[0])?, &o[1], dtype)
    })
}

/// `nl.random_seed(seed)`: a number, or a tile of one element.
fn random_seed(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [seed, _mask] = bind_known(interp, args, "nl.random_seed", ["seed", "mask"], 1)?;
    let seed = operand(&need(seed), "nl.random_seed: seed", span)?;
    lower(interp, "nl.random_seed", span, &[], |l| match &seed {
        Operand::Tile(tile) => l.random_seed(tile),
        Operand::Number(number) => {
            let tile = l.tile(&[1, 1], DType::I32, Space::Sbuf)?;
            l.fill(&tile, *number)?;
            l.random_seed(&tile)
        }
    })?;
    Ok(Value::None)
}

/// `nl.loop_reduce(x, op, loop_indices, dtype=None, mask=None)`
fn loop_reduce(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.loop_reduce";
    let [x, op, indices, d, mask, _] =
        bind_known(interp, args, what, ["x", "op", "loop_indices", "dtype", "mask", "name"], 3)?;
    let clip = clip_of(mask.as_ref(), span)?;
    if state(interp).offset_loops {
        return Err(Raise::at(
            "loop-reduce",
            "nl.loop_reduce in a kernel with a loop that does not start at 0",
            span,
            "here",
        )
        .help("count loops from 0 and add the offset in the body, or accumulate with nl.add into a tile of zeros"));
    }
    let value = Place::need(&need(x), what, span)?;
    let op = ops::named(&need(op)).ok_or_else(|| {
        Raise::at("operand-kind", "nl.loop_reduce: op takes np.add, np.multiply, np.max or np.min", span, "here")
    })?;
    let indices = ints(&need(indices), "nl.loop_reduce: loop_indices", span)?;
    let dtype = opt_dtype(d, what, span)?;
    let first = indices.iter().all(|&i| i == 0);
    Ok(Value::object(LoopReduce { value, clip, op, dtype, first }))
}

/// `nl.static_cast(x, dtype)`: a tile in another type.
fn static_cast(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.static_cast";
    let [x, d] = args.bind(interp, what, ["input_data", "dtype"], 2)?;
    let dtype = opt_dtype(d, what, span)?;
    compute(interp, what, span, None, &[&need(x)], |l, o| l.copy(tile_of(&o[0])?, dtype))
}

fn device_print(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.device_print";
    let [prefix, x, mask] = bind_known(interp, args, what, ["prefix", "x", "mask"], 2)?;
    let prefix = match &need(prefix) {
        Value::Str(s) => s.clone(),
        other => return Err(wrong("nl.device_print: prefix", "a string", other, span)),
    };
    let clip = clip_of(mask.as_ref(), span)?;
    if clip.as_ref().is_some_and(Clip::is_empty) {
        return Ok(Value::None);
    }
    let tile = Place::need(&need(x), what, span)?.tensor(clip.as_ref(), span)?;
    lower(interp, what, span, &[&tile.storage], |l| {
        l.emit(
            "device_print",
            &[("print_prefix", Arg::Text((&*prefix).into())), ("tensor", Arg::View(tile.view.clone()))],
        )
    })?;
    Ok(Value::None)
}
