//! NumPy functions that create arrays, to the extent that kernels need constants. For the arrays
//! themselves, see [`super::array`].

use nki_diag::Span;
use nki_isa::{DType, Imm};

use super::super::Interp;
use super::super::convert::{self, given};
use super::super::error::{EvalResult, Raise};
use super::super::foreign::Object;
use super::super::native::{CallArgs, NativeFn};
use super::super::value::*;
use super::array::{self, Array, MOST_ELEMENTS, NdArray, dtype_of as array_dtype, of as array_of};
use crate::host::HostDtype;

/// The function with this name that creates or takes arrays.
pub(super) fn function(name: &str) -> Option<NativeFn> {
    Some(match name {
        "array" => |i, a| array(i, a, true),
        "asarray" => |i, a| array(i, a, false),
        "ascontiguousarray" => contiguous,
        "zeros" => |i, a| filled(i, a, "zeros", Imm::Int(0)),
        "ones" => |i, a| filled(i, a, "ones", Imm::Int(1)),
        "full" => full,
        "zeros_like" => |i, a| like(i, a, "zeros_like", Imm::Int(0)),
        "ones_like" => |i, a| like(i, a, "ones_like", Imm::Int(1)),
        "full_like" => full_like,
        "eye" => eye,
        "identity" => identity,
        "arange" => arange,
        "linspace" => linspace,
        "tri" => tri,
        "tril" => |i, a| triangle(i, a, "tril", |row, column, k| column <= row + k),
        "triu" => |i, a| triangle(i, a, "triu", |row, column, k| column >= row + k),
        "where" => choose,
        "concatenate" => concatenate,
        "reshape" => |i, a| method(i, a, "reshape"),
        "transpose" => |i, a| method(i, a, "transpose"),
        "ravel" => |i, a| method(i, a, "ravel"),
        "argsort" => |i, a| method(i, a, "argsort"),
        "cumsum" => |i, a| method(i, a, "cumsum"),
        "sum" => |i, a| total(i, a, "sum"),
        "mean" => |i, a| method(i, a, "mean"),
        "any" => |i, a| method(i, a, "any"),
        "all" => |i, a| method(i, a, "all"),
        "min" | "amin" => |i, a| total(i, a, "min"),
        "max" | "amax" => |i, a| total(i, a, "max"),
        "minimum" => |i, a| pairs(i, a, "minimum", array::minimum),
        "maximum" => |i, a| pairs(i, a, "maximum", array::maximum),
        "gcd" => |i, a| integers(i, a, "gcd", gcd),
        "lcm" => |i, a| integers(i, a, "lcm", lcm),
        "hypot" => hypot,
        "sign" => sign,
        "abs" | "absolute" => abs,
        "dtype" => element_type,
        "round" | "around" => round,
        "ceil" => |i, a| whole(i, a, "ceil", f64::ceil),
        "floor" => |i, a| whole(i, a, "floor", f64::floor),
        "trunc" => |i, a| whole(i, a, "trunc", f64::trunc),
        "prod" => product,
        _ => return None,
    })
}

/// `np.dtype(x)` of an element type, its name, or a Python type.
fn element_type(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = args.bind(interp, "dtype", ["dtype"], 1)?;
    array_dtype(&x.unwrap_or(Value::None), "np.dtype", span).map(super::dtype::element)
}

fn dtype(value: Option<Value>, what: &str, default: HostDtype, span: Span) -> EvalResult<HostDtype> {
    given(value).map_or(Ok(default), |v| array_dtype(&v, &format!("np.{what}"), span))
}

fn size(value: &Value, what: &str, span: Span) -> EvalResult<usize> {
    match value.as_int().and_then(|n| usize::try_from(n).ok()) {
        Some(n) => Ok(n),
        None => Err(Raise::at("value-error", format!("np.{what}: a size must be an int of at least 0"), span, "here")),
    }
}

fn shape(value: &Value, what: &str, span: Span) -> EvalResult<Vec<usize>> {
    match value.sequence() {
        Some(items) => items.iter().map(|v| size(v, what, span)).collect(),
        None => Ok(vec![size(value, what, span)?]),
    }
}

/// Checks the size of a constant. Outside kernels, larger arrays are left to the host.
pub(super) fn bounded(interp: &Interp<'_>, shape: &[usize], what: &str, span: Span) -> Result<(), EvalResult<Value>> {
    if shape.iter().fold(1, |n: usize, d| n.saturating_mul(*d)) <= MOST_ELEMENTS {
        return Ok(());
    }
    if !interp.in_kernel {
        return Err(Ok(interp.host(format!("numpy.{what}(...)"), span)));
    }
    let message =
        format!("np.{what}: an array of shape {shape:?} is too large for a constant ({MOST_ELEMENTS} elements)");
    Err(Err(Raise::at("value-error", message, span, "here").help("make it an argument of the kernel")))
}

/// `np.array(object)`, which copies, and `np.asarray(a)`, which returns the array itself if it has
/// the requested type.
fn array(interp: &mut Interp<'_>, args: CallArgs, copies: bool) -> EvalResult<Value> {
    let span = args.span;
    let [x, d, copy] = match copies {
        true => args.bind(interp, "array", ["object", "dtype", "copy"], 1)?,
        false => args.bind(interp, "asarray", ["a", "dtype", "copy"], 1)?,
    };
    let x = x.unwrap_or(Value::None);
    if let (Value::Host(_), false) = (&x, interp.in_kernel) {
        return Ok(x);
    }
    let dtype = given(d).map(|v| array_dtype(&v, "np.array", span)).transpose()?;
    let copies = copy.filter(|c| !c.is_none()).map_or(Ok(copies), |c| interp.truth(&c, span))?;
    let keeps = |own: &NdArray| dtype.is_none_or(|dtype| dtype == own.dtype());
    if !copies && x.downcast::<NdArray>().is_some_and(keeps) {
        return Ok(x);
    }
    Ok(Array::from_value(&x, dtype, span)?.value())
}

/// `np.ascontiguousarray(a)`: the array itself if it is contiguous and has the requested type.
fn contiguous(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let made = array(interp, args, false)?;
    Ok(match made.downcast::<NdArray>() {
        Some(array) if !array.is_contiguous() => array.copy(),
        _ => made,
    })
}

fn filled(interp: &mut Interp<'_>, args: CallArgs, what: &str, value: Imm) -> EvalResult<Value> {
    let span = args.span;
    let [s, d] = args.bind(interp, what, ["shape", "dtype"], 1)?;
    let shape = shape(&s.unwrap_or(Value::None), what, span)?;
    if let Err(done) = bounded(interp, &shape, what, span) {
        return done;
    }
    Ok(Array::filled(dtype(d, what, HostDtype::F64, span)?, shape, value).value())
}

fn full(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [s, v, d] = args.bind(interp, "full", ["shape", "fill_value", "dtype"], 2)?;
    let shape = shape(&s.unwrap_or(Value::None), "full", span)?;
    if let Err(done) = bounded(interp, &shape, "full", span) {
        return done;
    }
    let fill = Array::from_value(&v.unwrap_or(Value::None), None, span)?;
    let dtype = dtype(d, "full", fill.dtype, span)?;
    if array::broadcast(&fill.shape, &shape).as_ref() != Some(&shape) {
        let message = format!("np.full: an array of shape {:?} does not fill one of shape {shape:?}", fill.shape);
        return Err(Raise::at("value-error", message, span, "here"));
    }
    Ok(fill.spread(&shape).astype(dtype).value())
}

fn like(interp: &mut Interp<'_>, args: CallArgs, what: &str, value: Imm) -> EvalResult<Value> {
    let span = args.span;
    let [x, d] = args.bind(interp, what, ["a", "dtype"], 1)?;
    let x = Array::from_value(&x.unwrap_or(Value::None), None, span)?;
    Ok(Array::filled(dtype(d, what, x.dtype, span)?, x.shape.clone(), value).laid_out_as(&[&x]).value())
}

fn full_like(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, v, d] = args.bind(interp, "full_like", ["a", "fill_value", "dtype"], 2)?;
    let x = Array::from_value(&x.unwrap_or(Value::None), None, span)?;
    let one = Array::from_value(&v.unwrap_or(Value::None), None, span)?;
    let [value] = one.values[..] else {
        return Err(Raise::at("value-error", "np.full_like needs one number to fill with", span, "here"));
    };
    Ok(Array::filled(dtype(d, "full_like", x.dtype, span)?, x.shape.clone(), value).laid_out_as(&[&x]).value())
}

/// A matrix of zeros and ones.
fn zero_one(rows: usize, columns: usize, dtype: HostDtype, one: impl Fn(i64, i64) -> bool) -> Value {
    let at = |i: usize| Imm::Int(i64::from(one((i / columns.max(1)) as i64, (i % columns.max(1)) as i64)));
    Array::from_fn(dtype, vec![rows, columns], at).value()
}

fn eye(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [n, m, k, d] = args.bind(interp, "eye", ["N", "M", "k", "dtype"], 1)?;
    let n = size(&n.unwrap_or(Value::None), "eye", span)?;
    let m = given(m).map_or(Ok(n), |m| size(&m, "eye", span))?;
    if let Err(done) = bounded(interp, &[n, m], "eye", span) {
        return done;
    }
    let k = k.and_then(|k| k.as_int()).unwrap_or(0);
    Ok(zero_one(n, m, dtype(d, "eye", HostDtype::F64, span)?, |row, column| column - row == k))
}

fn identity(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [n, d] = args.bind(interp, "identity", ["n", "dtype"], 1)?;
    let n = size(&n.unwrap_or(Value::None), "identity", span)?;
    if let Err(done) = bounded(interp, &[n, n], "identity", span) {
        return done;
    }
    Ok(zero_one(n, n, dtype(d, "identity", HostDtype::F64, span)?, |row, column| row == column))
}

fn tri(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [n, m, k, d] = args.bind(interp, "tri", ["N", "M", "k", "dtype"], 1)?;
    let n = size(&n.unwrap_or(Value::None), "tri", span)?;
    let m = given(m).map_or(Ok(n), |m| size(&m, "tri", span))?;
    if let Err(done) = bounded(interp, &[n, m], "tri", span) {
        return done;
    }
    let k = k.and_then(|k| k.as_int()).unwrap_or(0);
    Ok(zero_one(n, m, dtype(d, "tri", HostDtype::F64, span)?, |row, column| column <= row + k))
}

fn triangle(
    interp: &mut Interp<'_>,
    args: CallArgs,
    what: &str,
    keep: impl Fn(i64, i64, i64) -> bool,
) -> EvalResult<Value> {
    let span = args.span;
    let [x, k] = args.bind(interp, what, ["m", "k"], 1)?;
    let x = Array::from_value(&x.unwrap_or(Value::None), None, span)?;
    let k = k.and_then(|k| k.as_int()).unwrap_or(0);
    let [.., rows, columns] = x.shape[..] else {
        return Err(Raise::at("value-error", format!("np.{what} needs an array of two dimensions"), span, "here"));
    };
    let of = |i: usize| {
        let (row, column) = (i / columns % rows, i % columns);
        if keep(row as i64, column as i64, k) { x.values[i] } else { Imm::Int(0) }
    };
    Ok(Array::from_fn(x.dtype, x.shape.clone(), of).value())
}

fn arange(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [start, stop, step, d] = args.bind(interp, "arange", ["start", "stop", "step", "dtype"], 1)?;
    let (start, stop) = match (start, given(stop)) {
        (Some(start), Some(stop)) => (start, stop),
        (start, _) => (Value::Int(0), start.unwrap_or(Value::Int(0))),
    };
    let step = given(step).unwrap_or(Value::Int(1));
    let mut common = HostDtype::I64;
    for value in [&start, &stop, &step] {
        common = array::common(common, numbers(interp, value, "arange", span)?.dtype, span)?;
    }
    let is_unsigned = |v: &Value| super::scalar::dtype_of(v).is_some_and(HostDtype::is_unsigned);
    if (is_unsigned(&start) || is_unsigned(&stop)) && stop.as_float() < start.as_float() {
        let message = "np.arange down from or to an unsigned scalar, whose difference wraps in NumPy";
        return Err(Raise::at("integer-overflow", message, span, "here").help("pass int(x)"));
    }
    let ints = [&start, &stop, &step].map(|v| v.as_int());
    let number = |v: &Value| super::math::float_of(interp, v, "arange", span);
    let (first, last, by) = (number(&start)?, number(&stop)?, number(&step)?);
    let count = ((last - first) / by).ceil();
    if by == 0.0 || !count.is_finite() {
        return Err(Raise::at("value-error", "np.arange: the step must not be 0", span, "here"));
    }
    let n = count.max(0.0) as usize;
    if let Err(done) = bounded(interp, &[n], "arange", span) {
        return done;
    }
    Ok(match ints {
        [Some(first), Some(_), Some(by)] => {
            let dtype = dtype(d, "arange", HostDtype::I64, span)?;
            Array::from_fn(dtype, vec![n], |i| Imm::Int(first + i as i64 * by))
        }
        _ => {
            let dtype = dtype(d, "arange", common, span)?;
            // NumPy computes the first two elements. Their difference, in the precision of the
            // type, determines the others.
            let [start, next] = [first, first + by].map(|x| dtype.fit(Imm::Float(x)));
            Array::from_fn(dtype, vec![n], |i| match (start, next) {
                _ if i < 2 => [start, next][i],
                (Imm::Int(a), Imm::Int(b)) => Imm::Int(a.wrapping_add((i as i64).wrapping_mul(b.wrapping_sub(a)))),
                (a, b) if dtype == HostDtype::F64 => {
                    let a = array::float(a);
                    Imm::Float(a + i as f64 * (array::float(b) - a))
                }
                (a, b) => {
                    let (a, b) = (array::float(a) as f32, array::float(b) as f32);
                    Imm::Float(f64::from(a + i as f32 * (b - a)))
                }
            })
        }
    }
    .value())
}

fn linspace(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [a, b, n, endpoint, d] = args.bind(interp, "linspace", ["start", "stop", "num", "endpoint", "dtype"], 2)?;
    let number = |v: Option<Value>| {
        let v = v.unwrap_or(Value::None);
        if super::scalar::dtype_of(&v).is_some_and(|dtype| dtype.is_float() && dtype != HostDtype::F64) {
            let message =
                format!("np.linspace between scalars of {}, in whose precision NumPy computes", v.type_name());
            return Err(Raise::at("value-error", message, span, "here").help("pass float(x)"));
        }
        super::math::float_of(interp, &v, "linspace", span)
    };
    let (a, b) = (number(a)?, number(b)?);
    let n = n.map_or(Ok(50), |n| size(&n, "linspace", span))?;
    if let Err(done) = bounded(interp, &[n], "linspace", span) {
        return done;
    }
    let endpoint = !matches!(endpoint, Some(Value::Bool(false)));
    let parts = if endpoint { n.saturating_sub(1) } else { n };
    let step = (b - a) / parts.max(1) as f64;
    let of = |i: usize| Imm::Float(if endpoint && n > 1 && i == n - 1 { b } else { a + i as f64 * step });
    Ok(Array::from_fn(dtype(d, "linspace", HostDtype::F64, span)?, vec![n], of).value())
}

/// `np.where(condition, x, y)`: like `condition * x + ~condition * y`, but correct for infinities.
fn choose(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    if args.positional.len() == 1 && args.keyword.is_empty() {
        return super::numpy_places::nonzero(interp, args);
    }
    args.positional_only(interp, "where", 3, 3)?;
    let [condition, x, y] = [0, 1, 2].map(|i| args.positional[i].clone());
    let condition = Array::from_value(&condition, Some(HostDtype::Device(DType::Bool)), span)?;
    array::choose(&condition, &x, &y, span)
}

fn concatenate(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [parts, axis] = args.bind(interp, "concatenate", ["arrays", "axis"], 1)?;
    let parts = parts.and_then(|p| p.sequence()).unwrap_or_default();
    let mut arrays = Vec::new();
    let mut elements = 0;
    for part in parts.iter() {
        let array = Array::from_value(part, None, span)?;
        elements += array.values.len();
        // All arrays of a long list may be the same object.
        array::bounded(&[elements], span)?;
        arrays.push(array);
    }
    let axis = axis.and_then(|a| a.as_int()).unwrap_or(0);
    array::concatenate(&arrays, axis, span)
}

/// `np.name(array, ...)` as `array.name(...)`.
pub(super) fn method(interp: &mut Interp<'_>, mut args: CallArgs, name: &str) -> EvalResult<Value> {
    let span = args.span;
    if args.positional.is_empty() {
        return Err(Raise::at("arguments", format!("np.{name}() is missing its array"), span, "in this call"));
    }
    let x = args.positional.remove(0);
    if let Value::Host(host) = &x {
        return interp.host_value(host, span);
    }
    let array = match x.downcast::<NdArray>() {
        Some(array) => array.clone(),
        None => NdArray::new(Array::from_value(&x, None, span)?),
    };
    array.call_method(interp, &x, name, args)
}

/// A reduction; Python's own for anything but arrays.
fn total(interp: &mut Interp<'_>, args: CallArgs, name: &str) -> EvalResult<Value> {
    let is_array = match args.positional.first() {
        Some(items @ (Value::List(_) | Value::Tuple(_))) => Array::from_value(items, None, args.span).is_ok(),
        Some(Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Dict(_) | Value::Set(_)) => true,
        Some(other) => array::is(other) || super::scalar::dtype_of(other).is_some(),
        None => false,
    };
    if is_array {
        return method(interp, args, name);
    }
    match interp.builtin(name) {
        Some(function) => interp.call(&function, args),
        None => Ok(Value::None),
    }
}

/// A function's argument (a number, an array or a list) as an array.
pub(super) fn numbers(interp: &Interp<'_>, value: &Value, name: &str, span: Span) -> EvalResult<Array> {
    match value.plain_value() {
        _ if array::is(value) || super::scalar::dtype_of(value).is_some() => Array::from_value(value, None, span),
        items @ (Value::List(_) | Value::Tuple(_)) => Array::from_value(&items, None, span),
        number => {
            // Anything but a number is an error or a host value.
            super::math::float_of(interp, &number, name, span)?;
            Array::from_value(&number, None, span)
        }
    }
}

/// The only argument of a function, as an array.
fn only(interp: &Interp<'_>, args: &CallArgs, name: &str) -> EvalResult<Array> {
    args.positional_only(interp, name, 1, 1)?;
    numbers(interp, &args.positional[0], name, args.span)
}

/// The two arguments of a function. Python numbers have no type of their own.
fn two(interp: &Interp<'_>, args: &CallArgs, name: &str) -> EvalResult<[Value; 2]> {
    args.positional_only(interp, name, 2, 2)?;
    for value in &args.positional {
        numbers(interp, value, name, args.span)?;
    }
    Ok([0, 1].map(|at| args.positional[at].known_number()))
}

/// A function of two numbers of one type.
fn pairs(interp: &mut Interp<'_>, args: CallArgs, name: &str, of: impl Fn(Imm, Imm) -> Imm) -> EvalResult<Value> {
    let [x, y] = two(interp, &args, name)?;
    array::join(&x, &y, of, args.span)
}

/// A function of two integers.
fn integers(interp: &mut Interp<'_>, args: CallArgs, name: &str, of: fn(i64, i64) -> i64) -> EvalResult<Value> {
    let span = args.span;
    for value in &args.positional {
        if numbers(interp, value, name, span)?.dtype.is_float() {
            return Err(Raise::at("type-error", format!("np.{name} of floats: it takes integers"), span, "here"));
        }
    }
    let int = |v: Imm| v.as_i64().unwrap_or(0);
    pairs(interp, args, name, |x, y| Imm::Int(of(int(x), int(y))))
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a.wrapping_abs()
}

fn lcm(a: i64, b: i64) -> i64 {
    if a == 0 { 0 } else { (a / gcd(a, b)).wrapping_mul(b).wrapping_abs() }
}

/// `np.hypot(x1, x2)`
fn hypot(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let [x, y] = two(interp, &args, "hypot")?;
    array::join_floats(&x, &y, f64::hypot, args.span)
}

/// `np.sign(x)`
fn sign(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let array = only(interp, &args, "sign")?;
    let of = |x: Imm| match x {
        Imm::Int(n) => Imm::Int(n.signum()),
        Imm::Float(x) => Imm::Float(if x == 0.0 { 0.0 } else { x.signum() }),
    };
    Ok(array.each(array.dtype, of).simple())
}

/// `np.ceil` and similar functions, which do not change integers.
fn whole(interp: &mut Interp<'_>, args: CallArgs, name: &str, of: fn(f64) -> f64) -> EvalResult<Value> {
    let array = only(interp, &args, name)?;
    Ok(if array.dtype.is_float() { array.map(of) } else { array }.simple())
}

/// `np.abs(x)`
fn abs(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    only(interp, &args, "abs").map(|array| absolute(&array))
}

fn absolute(array: &Array) -> Value {
    let of = |x: Imm| match x {
        Imm::Int(x) => Imm::Int(x.wrapping_abs()),
        Imm::Float(x) => Imm::Float(x.abs()),
    };
    array.each(array.dtype, of).simple()
}

/// `abs(value)` of an array or a scalar; `None` for other values.
pub(crate) fn magnitude(value: &Value) -> Option<Value> {
    array_of(value).or_else(|| super::scalar::array_of(value)).map(|array| absolute(&array))
}

/// `np.prod(a)`, also for sizes that only the device knows.
fn product(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    match args.positional.first() {
        Some(x) if Array::from_value(x, None, args.span).is_err() => super::math::prod(interp, args),
        _ => method(interp, args, "prod"),
    }
}

/// `np.round(a, decimals)`: NumPy scales, rounds half to even and scales back, each step in the
/// type of the array. Python's `round`, by contrast, rounds the exact value.
fn round(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, decimals] = args.bind(interp, "round", ["a", "decimals"], 1)?;
    let x = x.unwrap_or(Value::None);
    if let Value::Host(host) = &x {
        return interp.host_value(host, span);
    }
    let decimals = decimals.map_or(Ok(0), |d| convert::int(&d, "np.round: decimals", span))?;
    Ok(rounded(&Array::from_value(&x, None, span)?, decimals).simple())
}

/// Rounds the elements to this number of decimals.
pub(super) fn rounded(array: &Array, decimals: i64) -> Array {
    if array.dtype == HostDtype::Device(DType::Bool) {
        return array.astype(HostDtype::Device(DType::F16));
    }
    let scale = 10f64.powi(decimals.unsigned_abs().min(400) as i32);
    // The result of each step has the array's type; scaled integers are 64-bit floats.
    let step = if array.dtype.is_float() { array.dtype } else { HostDtype::F64 };
    let fit = |x: f64| array::float(step.fit(Imm::Float(x)));
    let scale = fit(scale);
    let of = |x: Imm| match x {
        Imm::Int(n) if decimals >= 0 => Imm::Int(n),
        value if decimals >= 0 => Imm::Float(fit(fit(array::float(value) * scale).round_ties_even()) / scale),
        value => Imm::Float(fit(fit(array::float(value) / scale).round_ties_even()) * scale),
    };
    array.each(array.dtype, of)
}
