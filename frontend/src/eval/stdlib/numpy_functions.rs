//! NumPy functions of arrays other than their methods: operators as functions, products,
//! repetition, joining. [`super::numpy`] creates arrays.

use nki_diag::Span;
use nki_isa::{DType, Imm};

use super::super::Interp;
use super::super::error::{EvalResult, Raise};
use super::super::native::{CallArgs, NativeFn};
use super::super::value::*;
use super::array::{self, Array};
use super::numpy::bounded;
use crate::host::HostDtype;
use crate::syntax::{BinOp, CmpOp, UnaryOp};

/// The function with this name.
pub(super) fn function(name: &str) -> Option<NativeFn> {
    Some(match name {
        "add" => |i, a| operator(i, a, "add", BinOp::Add),
        "subtract" => |i, a| operator(i, a, "subtract", BinOp::Sub),
        "multiply" => |i, a| operator(i, a, "multiply", BinOp::Mul),
        "divide" | "true_divide" => |i, a| operator(i, a, "divide", BinOp::Div),
        "floor_divide" => |i, a| operator(i, a, "floor_divide", BinOp::FloorDiv),
        "mod" | "remainder" => |i, a| operator(i, a, "mod", BinOp::Mod),
        "power" => |i, a| operator(i, a, "power", BinOp::Pow),
        "equal" => |i, a| comparison(i, a, "equal", CmpOp::Eq),
        "not_equal" => |i, a| comparison(i, a, "not_equal", CmpOp::Ne),
        "less" => |i, a| comparison(i, a, "less", CmpOp::Lt),
        "less_equal" => |i, a| comparison(i, a, "less_equal", CmpOp::Le),
        "greater" => |i, a| comparison(i, a, "greater", CmpOp::Gt),
        "greater_equal" => |i, a| comparison(i, a, "greater_equal", CmpOp::Ge),
        "logical_and" => |i, a| logical(i, a, "logical_and", BinOp::BitAnd),
        "logical_or" => |i, a| logical(i, a, "logical_or", BinOp::BitOr),
        "logical_xor" => |i, a| logical(i, a, "logical_xor", BinOp::BitXor),
        "logical_not" => logical_not,
        "negative" => negative,
        "square" => square,
        "isnan" => |i, a| class(i, a, "isnan", f64::is_nan),
        "isinf" => |i, a| class(i, a, "isinf", f64::is_infinite),
        "isfinite" => |i, a| class(i, a, "isfinite", f64::is_finite),
        "clip" => clip,
        "outer" => outer,
        "dot" => |i, a| product(i, a, "dot"),
        "matmul" => |i, a| product(i, a, "matmul"),
        "repeat" => repeat,
        "tile" => tile,
        "stack" => stack,
        "hstack" => |i, a| joined(i, a, "hstack"),
        "vstack" => |i, a| joined(i, a, "vstack"),
        "expand_dims" => expand_dims,
        "squeeze" => squeeze,
        "swapaxes" => swapaxes,
        "moveaxis" => moveaxis,
        "broadcast_to" => broadcast_to,
        "argmax" => |i, a| of_array(i, a, "argmax"),
        "argmin" => |i, a| of_array(i, a, "argmin"),
        _ => return None,
    })
}

/// Binds the arguments. If one of them is a host value, so is the result.
pub(super) fn parameters<const N: usize>(
    interp: &mut Interp<'_>,
    args: CallArgs,
    what: &str,
    names: [&str; N],
    required: usize,
) -> EvalResult<Result<[Option<Value>; N], Value>> {
    if interp.has_host_value(args.values()) {
        return Ok(Err(interp.host(format!("numpy.{what}(...)"), args.span)));
    }
    args.bind(interp, what, names, required).map(Ok)
}

/// Calls [`parameters`], and returns from the function if the result is a host value.
macro_rules! given {
    ($interp:expr, $args:expr, $what:expr, $names:expr, $required:expr) => {
        match $crate::eval::stdlib::numpy_functions::parameters($interp, $args, $what, $names, $required)? {
            Ok(values) => values,
            Err(host) => return Ok(host),
        }
    };
}
pub(super) use given;

pub(super) fn some(value: Option<Value>) -> Option<Value> {
    value.filter(|v| !v.is_none())
}

pub(super) fn wrong(message: impl Into<String>, span: Span) -> Box<Raise> {
    Raise::at("value-error", message.into(), span, "here")
}

pub(super) fn array_of(value: Option<Value>, span: Span) -> EvalResult<Array> {
    Array::from_value(&value.unwrap_or(Value::None), None, span)
}

/// An axis of an array of `n` dimensions.
pub(super) fn axis_of(value: &Value, n: usize, what: &str, span: Span) -> EvalResult<usize> {
    array::axis_of(value, n).map_err(|message| wrong(format!("np.{what}: {message}"), span))
}

pub(super) fn count(value: &Value, what: &str, span: Span) -> EvalResult<usize> {
    let count = value.as_int().and_then(|n| usize::try_from(n).ok());
    count.ok_or_else(|| wrong(format!("np.{what}: a count must be an int of at least 0"), span))
}

fn counts(value: &Value, what: &str, span: Span) -> EvalResult<Vec<usize>> {
    match value.sequence() {
        Some(items) => items.iter().map(|v| count(v, what, span)).collect(),
        None => Ok(vec![count(value, what, span)?]),
    }
}

/// `left op right` of arrays, lists and numbers.
fn operator(interp: &mut Interp<'_>, args: CallArgs, what: &str, op: BinOp) -> EvalResult<Value> {
    let span = args.span;
    let [a, b] = given!(interp, args, what, ["x1", "x2"], 2);
    let [a, b] = [a, b].map(|v| v.unwrap_or(Value::None));
    let made = array::operate(op, &a, &b, span)?;
    array::charged(interp, made, span)
}

/// `left op right` as an array of bools.
fn comparison(interp: &mut Interp<'_>, args: CallArgs, what: &str, op: CmpOp) -> EvalResult<Value> {
    let span = args.span;
    let [a, b] = given!(interp, args, what, ["x1", "x2"], 2);
    let made = array::compare(op, &a.unwrap_or(Value::None), &b.unwrap_or(Value::None), span)?;
    array::charged(interp, made, span)
}

/// Whether each element is nonzero.
fn truth(x: Option<Value>, span: Span) -> EvalResult<Array> {
    let x = array_of(x, span)?;
    Ok(x.each(HostDtype::Device(DType::Bool), |x| Imm::Int(i64::from(array::float(x) != 0.0))))
}

fn logical(interp: &mut Interp<'_>, args: CallArgs, what: &str, op: BinOp) -> EvalResult<Value> {
    let span = args.span;
    let [a, b] = given!(interp, args, what, ["x1", "x2"], 2);
    let made = array::operate(op, &truth(a, span)?.value(), &truth(b, span)?.value(), span)?;
    array::charged(interp, made, span)
}

fn logical_not(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = given!(interp, args, "logical_not", ["x"], 1);
    let x = truth(x, span)?;
    let made = x.each(x.dtype, |x| Imm::Int(i64::from(array::float(x) == 0.0))).simple();
    array::charged(interp, made, span)
}

/// `np.negative(x)`: `-x`
fn negative(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = given!(interp, args, "negative", ["x"], 1);
    interp.unary(UnaryOp::Neg, &array_of(x, span)?.simple(), span)
}

/// `np.square(x)`: `x * x`
fn square(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = given!(interp, args, "square", ["x"], 1);
    let mut x = array_of(x, span)?;
    if x.dtype == HostDtype::Device(DType::Bool) {
        x = x.astype(HostDtype::Device(DType::I8));
    }
    let x = x.simple();
    interp.binary(BinOp::Mul, &x, &x, span)
}

/// `np.isnan(x)` and similar functions.
fn class(interp: &mut Interp<'_>, args: CallArgs, what: &str, of: fn(f64) -> bool) -> EvalResult<Value> {
    let span = args.span;
    let [x] = given!(interp, args, what, ["x"], 1);
    let made = array_of(x, span)?.each(HostDtype::Device(DType::Bool), |x| Imm::Int(i64::from(of(array::float(x)))));
    array::charged(interp, made.simple(), span)
}

/// `np.clip(a, a_min, a_max)`: None means no limit.
fn clip(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, low, high] = given!(interp, args, "clip", ["a", "a_min", "a_max"], 1);
    // Unlike in `np.maximum`, a Python number counts as an array.
    let made = array::clip(&array_of(x, span)?, [some(low), some(high)], span)?;
    array::charged(interp, made, span)
}

/// `np.outer(a, b)` over all elements of both.
fn outer(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [a, b] = given!(interp, args, "outer", ["a", "b"], 2);
    let (a, b) = (array_of(a, span)?, array_of(b, span)?);
    let (rows, columns) = (a.values.len(), b.values.len());
    if let Err(done) = bounded(interp, &[rows, columns], "outer", span) {
        return done;
    }
    let column = Array::new(a.dtype, vec![rows, 1], a.values).value();
    let row = Array::new(b.dtype, vec![1, columns], b.values).value();
    let made = array::operate(BinOp::Mul, &column, &row, span)?;
    array::charged(interp, made, span)
}

/// `np.dot(a, b)` and `np.matmul(a, b)` of vectors and matrices.
fn product(interp: &mut Interp<'_>, args: CallArgs, what: &str) -> EvalResult<Value> {
    let span = args.span;
    let [a, b] = given!(interp, args, what, ["a", "b"], 2);
    let [a, b] = [a, b].map(|v| v.unwrap_or(Value::None));
    let (left, right) = (Array::from_value(&a, None, span)?, Array::from_value(&b, None, span)?);
    if what == "dot" && (left.shape.is_empty() || right.shape.is_empty()) {
        // Unlike for an operator, Python numbers count as arrays.
        let made = array::operate(BinOp::Mul, &left.value(), &right.value(), span)?;
        return array::charged(interp, made, span);
    }
    let made = array::matmul(&left, &right, span)?;
    array::charged(interp, made, span)
}

/// `np.repeat(a, repeats, axis=None)`
fn repeat(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, repeats, axis] = given!(interp, args, "repeat", ["a", "repeats", "axis"], 2);
    let (x, at) = by_axis(array_of(x, span)?, axis, "repeat", span)?;
    let mut times = match some(repeats) {
        Some(list) if array::is(&list) => {
            array_of(Some(list), span)?.values.iter().map(|v| v.as_i64().unwrap_or(0).max(0) as usize).collect()
        }
        repeats => counts(&repeats.unwrap_or(Value::None), "repeat", span)?,
    };
    if times.len() == 1 {
        times = vec![times[0]; x.shape[at]];
    }
    if times.len() != x.shape[at] {
        let message = format!("np.repeat: {} counts for an axis of extent {}", times.len(), x.shape[at]);
        return Err(wrong(message, span));
    }
    let total = times.iter().fold(0, |sum: usize, n| sum.saturating_add(*n));
    let mut shape = x.shape.clone();
    shape[at] = total;
    if let Err(done) = bounded(interp, &shape, "repeat", span) {
        return done;
    }
    let sources: Vec<usize> = times.iter().enumerate().flat_map(|(i, n)| std::iter::repeat_n(i, *n)).collect();
    let made = picked(&x, at, &sources);
    array::charged(interp, made.value(), span)
}

/// The array and the index of the axis. Without an axis, all elements form one dimension.
pub(super) fn by_axis(x: Array, axis: Option<Value>, what: &str, span: Span) -> EvalResult<(Array, usize)> {
    match some(axis) {
        Some(axis) => axis_of(&axis, x.shape.len(), what, span).map(|at| (x, at)),
        None => Ok((x.flat(), 0)),
    }
}

/// The numbers of elements before an axis, along it, and after it.
pub(super) fn lines(x: &Array, axis: usize) -> (usize, usize, usize) {
    (x.shape[..axis].iter().product(), x.shape[axis], x.shape[axis + 1..].iter().product())
}

/// Selects these positions along an axis.
pub(super) fn picked(x: &Array, axis: usize, sources: &[usize]) -> Array {
    let (outer, extent, inner) = lines(x, axis);
    let mut values = Vec::with_capacity(outer * sources.len() * inner);
    for o in 0..outer {
        for &i in sources {
            let start = (o * extent + i) * inner;
            values.extend_from_slice(&x.values[start..start + inner]);
        }
    }
    let mut shape = x.shape.clone();
    shape[axis] = sources.len();
    Array::new(x.dtype, shape, values)
}

/// `np.tile(A, reps)`
fn tile(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, reps] = given!(interp, args, "tile", ["A", "reps"], 2);
    let mut x = array_of(x, span)?;
    let mut reps = counts(&reps.unwrap_or(Value::None), "tile", span)?;
    let dims = reps.len().max(x.shape.len());
    reps.splice(0..0, std::iter::repeat_n(1, dims - reps.len()));
    x.shape.splice(0..0, std::iter::repeat_n(1, dims - x.shape.len()));
    let shape: Vec<usize> = x.shape.iter().zip(&reps).map(|(n, times)| n.saturating_mul(*times)).collect();
    if let Err(done) = bounded(interp, &shape, "tile", span) {
        return done;
    }
    let mut made = Array::new(x.dtype, x.shape, x.values);
    for (axis, &times) in reps.iter().enumerate() {
        let extent = made.shape[axis];
        let sources: Vec<usize> = (0..times).flat_map(|_| 0..extent).collect();
        made = picked(&made, axis, &sources);
    }
    array::charged(interp, made.value(), span)
}

/// The arrays in a list.
fn listed(arrays: Option<Value>, what: &str, span: Span) -> EvalResult<Vec<Array>> {
    let arrays = arrays.unwrap_or(Value::None);
    let items = match arrays.sequence() {
        Some(items) => items.iter().map(|item| Array::from_value(item, None, span)).collect::<EvalResult<Vec<_>>>()?,
        None => Vec::new(),
    };
    if items.is_empty() {
        return Err(wrong(format!("np.{what} needs a list of arrays"), span));
    }
    let elements = items.iter().map(|item| item.values.len()).sum();
    array::bounded(&[elements], span)?;
    Ok(items)
}

/// Inserts an axis of extent 1.
fn with_axis(x: Array, at: usize) -> Array {
    let mut shape = x.shape;
    shape.insert(at, 1);
    Array::new(x.dtype, shape, x.values)
}

/// `np.stack(arrays, axis=0)`
fn stack(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [arrays, axis] = given!(interp, args, "stack", ["arrays", "axis"], 1);
    let arrays = listed(arrays, "stack", span)?;
    if arrays.iter().any(|x| x.shape != arrays[0].shape) {
        return Err(wrong("np.stack: all arrays must have the same shape", span));
    }
    let axis = axis_of(&some(axis).unwrap_or(Value::Int(0)), arrays[0].shape.len() + 1, "stack", span)?;
    let parts: Vec<Array> = arrays.into_iter().map(|x| with_axis(x, axis)).collect();
    let made = array::concatenate(&parts, axis as i64, span)?;
    array::charged(interp, made, span)
}

/// `np.hstack(arrays)` and `np.vstack(arrays)`
fn joined(interp: &mut Interp<'_>, args: CallArgs, what: &str) -> EvalResult<Value> {
    let span = args.span;
    let [arrays] = given!(interp, args, what, ["tup"], 1);
    let arrays = listed(arrays, what, span)?;
    let dims = if what == "vstack" { 2 } else { 1 };
    let fill = |mut x: Array| {
        while x.shape.len() < dims {
            x = with_axis(x, 0);
        }
        x
    };
    let parts: Vec<Array> = arrays.into_iter().map(fill).collect();
    let axis = i64::from(what == "hstack" && parts[0].shape.len() > 1);
    let made = array::concatenate(&parts, axis, span)?;
    array::charged(interp, made, span)
}

/// `np.expand_dims(a, axis)`
fn expand_dims(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, axis] = given!(interp, args, "expand_dims", ["a", "axis"], 2);
    let x = array_of(x, span)?;
    let at = axis_of(&axis.unwrap_or(Value::None), x.shape.len() + 1, "expand_dims", span)?;
    array::charged(interp, with_axis(x, at).value(), span)
}

/// `np.squeeze(a, axis=None)`: removes axes of extent 1.
fn squeeze(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, axis] = given!(interp, args, "squeeze", ["a", "axis"], 1);
    let x = array_of(x, span)?;
    let dims = x.shape.len();
    let gone = match some(axis) {
        None => (0..dims).filter(|&i| x.shape[i] == 1).collect(),
        Some(axis) => axes_of(&axis, dims, "squeeze", span)?,
    };
    if let Some(&axis) = gone.iter().find(|&&i| x.shape[i] != 1) {
        return Err(wrong(format!("np.squeeze: axis {axis} has the extent {}, not 1", x.shape[axis]), span));
    }
    let shape = (0..dims).filter(|i| !gone.contains(i)).map(|i| x.shape[i]).collect();
    array::charged(interp, Array::new(x.dtype, shape, x.values).value(), span)
}

/// One or more axes.
fn axes_of(value: &Value, dims: usize, what: &str, span: Span) -> EvalResult<Vec<usize>> {
    match value.sequence() {
        Some(items) => items.iter().map(|axis| axis_of(axis, dims, what, span)).collect(),
        None => Ok(vec![axis_of(value, dims, what, span)?]),
    }
}

/// Permutes the axes.
fn permuted(interp: &mut Interp<'_>, x: Array, order: &[usize], span: Span) -> EvalResult<Value> {
    let order = Value::tuple(order.iter().map(|&i| Value::Int(i as i64)).collect::<Vec<_>>());
    super::numpy::method(interp, CallArgs::of([x.value(), order], span), "transpose")
}

/// `np.swapaxes(a, axis1, axis2)`
fn swapaxes(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, one, other] = given!(interp, args, "swapaxes", ["a", "axis1", "axis2"], 3);
    let x = array_of(x, span)?;
    let axis = |axis: Option<Value>| axis_of(&axis.unwrap_or(Value::None), x.shape.len(), "swapaxes", span);
    let (one, other) = (axis(one)?, axis(other)?);
    let mut order: Vec<usize> = (0..x.shape.len()).collect();
    order.swap(one, other);
    permuted(interp, x, &order, span)
}

/// `np.moveaxis(a, source, destination)`
fn moveaxis(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, source, destination] = given!(interp, args, "moveaxis", ["a", "source", "destination"], 3);
    let x = array_of(x, span)?;
    let dims = x.shape.len();
    let axes = |axes: Option<Value>| axes_of(&axes.unwrap_or(Value::None), dims, "moveaxis", span);
    let (source, destination) = (axes(source)?, axes(destination)?);
    let repeats = |axes: &[usize]| axes.iter().enumerate().any(|(i, axis)| axes[..i].contains(axis));
    if source.len() != destination.len() || repeats(&source) || repeats(&destination) {
        return Err(wrong("np.moveaxis needs as many destinations as axes, without duplicates", span));
    }
    let mut order: Vec<usize> = (0..dims).filter(|i| !source.contains(i)).collect();
    let mut moves: Vec<(usize, usize)> = destination.into_iter().zip(source).collect();
    moves.sort_unstable();
    for (at, axis) in moves {
        order.insert(at, axis);
    }
    permuted(interp, x, &order, span)
}

/// `np.broadcast_to(array, shape)`
fn broadcast_to(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, shape] = given!(interp, args, "broadcast_to", ["array", "shape"], 2);
    let x = array_of(x, span)?;
    let shape = counts(&shape.unwrap_or(Value::None), "broadcast_to", span)?;
    if let Err(done) = bounded(interp, &shape, "broadcast_to", span) {
        return done;
    }
    if array::broadcast(&x.shape, &shape).as_ref() != Some(&shape) {
        let message = format!("np.broadcast_to: an array of shape {:?} does not fit into {shape:?}", x.shape);
        return Err(wrong(message, span));
    }
    array::charged(interp, x.spread(&shape).value(), span)
}

/// `np.name(array, ...)` as `array.name(...)`, also for a list.
fn of_array(interp: &mut Interp<'_>, mut args: CallArgs, name: &str) -> EvalResult<Value> {
    let span = args.span;
    if interp.has_host_value(args.values()) || args.positional.is_empty() {
        return super::numpy::method(interp, args, name);
    }
    let first = args.positional[0].clone();
    args.positional[0] = Array::from_value(&first, None, span)?.value();
    super::numpy::method(interp, args, name)
}
