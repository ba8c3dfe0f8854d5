//! Numeric functions: `math`, `numpy.finfo` and others.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use nki_diag::Span;
use nki_isa::{DType, Imm};

use super::super::Interp;
use super::super::error::{EvalResult, Raise};
use super::super::language::Hint;
use super::super::native::CallArgs;
use super::super::value::*;
use super::array::dtype_of;
use super::{UNARY, Unary, dtype, scalar};
use crate::host::HostDtype;
use crate::syntax::*;

/// The only argument of a call, as a number.
pub(super) fn number(interp: &Interp<'_>, args: &CallArgs, name: &str) -> EvalResult<f64> {
    args.positional_only(interp, name, 1, 1)?;
    float_of(interp, &args.positional[0], name, args.span)
}

pub(super) fn float_of(interp: &Interp<'_>, value: &Value, name: &str, span: Span) -> EvalResult<f64> {
    if let Some(x) = value.as_float().or_else(|| interp.as_index(value).map(|x| x as f64)) {
        return Ok(x);
    }
    if let Value::Host(host) = value {
        return Err(interp.host_error(host, span));
    }
    let raise =
        Raise::at("type-error", format!("{name}() needs a number, not {}", value.a_type()), span, "in this call");
    Err(if matches!(value, Value::Object(o) if o.is_device_data()) {
        raise.help(interp.dialect.hint(Hint::DeviceMath))
    } else {
        raise
    })
}

/// The result of a function of `math`. Only NaN operands may give NaN, and only operands that are
/// not finite may give an infinity. An infinite result for finite operands is a pole or an
/// overflow.
fn checked(x: f64, operands: &[f64], name: &str, is_pole: bool, span: Span) -> EvalResult<Value> {
    let raise = |slug, message: String| Err(Raise::at(slug, message, span, "in this call"));
    if x.is_nan() && !operands.iter().any(|x| x.is_nan()) {
        return raise("value-error", format!("{name}() is not defined for this argument"));
    }
    if x.is_infinite() && operands.iter().all(|x| x.is_finite()) {
        return match is_pole {
            true => raise("value-error", format!("{name}() is infinite for this argument")),
            false => raise("float-overflow", format!("the result of {name}() is too large for a float")),
        };
    }
    Ok(Value::Float(x))
}

/// A function of one number in `math`, by its index in [`UNARY`].
pub(super) fn unary(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (name, func) = UNARY[args.data as usize];
    let x = number(interp, &args, name)?;
    let is_pole = match name {
        "gamma" => x <= 0.0,
        _ => matches!(name, "atanh" | "lgamma") || name.starts_with("log"),
    };
    checked(func(x), &[x], name, is_pole, args.span)
}

/// The same function in NumPy, for numbers and arrays: undefined results are NaN.
pub(super) fn numpy_unary(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (name, func) = UNARY[args.data as usize];
    args.positional_only(interp, name, 1, 1)?;
    Ok(super::numpy::numbers(interp, &args.positional[0], name, args.span)?.map(func).simple())
}

pub(super) fn rounded(interp: &mut Interp<'_>, args: CallArgs, name: &str, func: Unary) -> EvalResult<Value> {
    if let Some(value @ Value::Instance(instance)) = args.positional.first() {
        let method = match name {
            "ceil" => sym::ceil,
            "floor" => sym::floor,
            _ => sym::trunc,
        };
        if let Some(method) = instance.class.lookup(method) {
            return interp.call_with(&method, value.clone(), CallArgs::none(args.span));
        }
    }
    if let Some(Value::Int(x)) = args.positional.first() {
        return Ok(Value::Int(*x));
    }
    let x = func(number(interp, &args, name)?);
    if x.is_finite() && x.abs() < 9.2e18 {
        Ok(Value::Int(x as i64))
    } else {
        let slug = if x.is_nan() { "value-error" } else { "integer-overflow" };
        Err(Raise::at(slug, format!("{x} cannot be turned into an int"), args.span, "in this call"))
    }
}

/// `math.ldexp`
pub(super) fn ldexp(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "ldexp", 2, 2)?;
    let x = float_of(interp, &args.positional[0], "ldexp", args.span)?;
    let exponent = int_of(interp, &args.positional[1], "ldexp", args.span)?;
    // Exponents of floats have a smaller range.
    checked(libm::ldexp(x, exponent.clamp(-5000, 5000) as i32), &[x], "ldexp", false, args.span)
}

/// `math.fsum`: the sum of floats, rounded once. Shewchuk's partial sums do not overlap, and
/// represent the sum exactly.
pub(super) fn fsum(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "fsum", 1, 1)?;
    let mut partials: Vec<f64> = Vec::new();
    // The sum of the items that are not finite.
    let (mut special, mut has_nan) = (None, false);
    for item in interp.iterate(&args.positional[0], args.span)? {
        let mut x = float_of(interp, &item, "fsum", args.span)?;
        if !x.is_finite() {
            special = Some(special.unwrap_or(0.0) + x);
            has_nan |= x.is_nan();
            continue;
        }
        let mut kept = 0;
        for index in 0..partials.len() {
            let mut y = partials[index];
            if x.abs() < y.abs() {
                (x, y) = (y, x);
            }
            let high = x + y;
            let low = y - (high - x);
            if low != 0.0 {
                partials[kept] = low;
                kept += 1;
            }
            x = high;
        }
        if x.is_infinite() {
            return Err(Raise::at("float-overflow", "fsum() is too large for a float", args.span, "in this call"));
        }
        partials.truncate(kept);
        partials.push(x);
    }
    match special {
        Some(sum) if sum.is_nan() && !has_nan => {
            Err(Raise::at("value-error", "fsum() of infinities of both signs", args.span, "in this call"))
        }
        Some(sum) => Ok(Value::Float(sum)),
        None => Ok(Value::Float(rounded_once(&mut partials))),
    }
}

/// The sum of non-overlapping floats (largest last), rounded to the nearest float, half to even.
fn rounded_once(partials: &mut Vec<f64>) -> f64 {
    let Some(mut high) = partials.pop() else { return 0.0 };
    let mut low = 0.0;
    while let Some(y) = partials.pop() {
        let x = high;
        high = x + y;
        low = y - (high - x);
        if low != 0.0 {
            break;
        }
    }
    // In a tie, the next lower partial sum decides.
    if let Some(below) = partials.last()
        && (low < 0.0 && *below < 0.0 || low > 0.0 && *below > 0.0)
    {
        let twice = low * 2.0;
        let next = high + twice;
        if twice == next - high {
            return next;
        }
    }
    high
}

/// The length of a vector. The components are scaled so that no square overflows or underflows, and
/// the error is corrected as in CPython.
fn length(vector: &[f64]) -> f64 {
    if vector.iter().any(|x| x.is_infinite()) {
        return f64::INFINITY;
    }
    if vector.iter().any(|x| x.is_nan()) {
        return f64::NAN;
    }
    let largest = vector.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let exponent = libm::frexp(largest).1;
    let scaled = vector.iter().map(|x| libm::ldexp(*x, -exponent));
    // Each square as the sum of two floats, and the total as a sum and its rounding error.
    let (mut sum, mut rest) = (0.0f64, 0.0f64);
    let mut add = |x: f64| {
        let next = sum + x;
        rest += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    };
    for x in scaled {
        let square = x * x;
        add(square);
        add(x.mul_add(x, -square));
    }
    let root = (sum + rest).sqrt();
    let square = root * root;
    let missing = (sum - square) - root.mul_add(root, -square) + rest;
    libm::ldexp(root + missing / (2.0 * root), exponent)
}

/// `math.hypot`
pub(super) fn hypot(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "hypot", 0, usize::MAX)?;
    let vector =
        args.positional.iter().map(|x| float_of(interp, x, "hypot", args.span)).collect::<EvalResult<Vec<_>>>()?;
    checked(length(&vector), &vector, "hypot", false, args.span)
}

/// `math.dist`
pub(super) fn dist(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "dist", 2, 2)?;
    let (p, q) = (interp.iterate(&args.positional[0], args.span)?, interp.iterate(&args.positional[1], args.span)?);
    if p.len() != q.len() {
        let message = "both points must have the same number of dimensions";
        return Err(Raise::at("value-error", message, args.span, "in this call"));
    }
    let mut vector = Vec::new();
    for (p, q) in p.iter().zip(&q) {
        vector.push(float_of(interp, p, "dist", args.span)? - float_of(interp, q, "dist", args.span)?);
    }
    Ok(Value::Float(length(&vector)))
}

/// A function of two numbers in `math`.
pub(super) fn binary_float(
    interp: &mut Interp<'_>,
    args: CallArgs,
    name: &str,
    func: fn(f64, f64) -> f64,
) -> EvalResult<Value> {
    args.positional_only(interp, name, 2, 2)?;
    let x = float_of(interp, &args.positional[0], name, args.span)?;
    let y = float_of(interp, &args.positional[1], name, args.span)?;
    // A power of 0 has a pole; a power of any other float can only overflow.
    checked(func(x, y), &[x, y], name, x == 0.0, args.span)
}

pub(super) fn log(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "log", 1, 2)?;
    let logarithm = |value: &Value| {
        let x = float_of(interp, value, "log", args.span)?;
        checked(x.ln(), &[x], "log", true, args.span)
    };
    let x = logarithm(&args.positional[0])?;
    let Some(base) = args.positional.get(1) else { return Ok(x) };
    let base = logarithm(base)?;
    interp.binary(BinOp::Div, &x, &base, args.span)
}

pub(super) fn int_of(interp: &Interp<'_>, value: &Value, name: &str, span: Span) -> EvalResult<i64> {
    interp.as_index(value).ok_or_else(|| {
        Raise::at("type-error", format!("{name}() needs an int, not {}", value.a_type()), span, "in this call")
    })
}

pub(super) fn gcd(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let mut g = 0i64;
    for value in &args.positional {
        let mut b = int_of(interp, value, "gcd", args.span)?;
        while b != 0 {
            (g, b) = (b, g.wrapping_rem(b));
        }
    }
    Ok(Value::Int(g.wrapping_abs()))
}

pub(super) fn lcm(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let mut l = Value::Int(1);
    for value in args.positional {
        let g = gcd(interp, CallArgs::of([l.clone(), value.clone()], args.span))?;
        if g.as_int() == Some(0) {
            return Ok(Value::Int(0));
        }
        let part = interp.binary(BinOp::FloorDiv, &value, &g, args.span)?;
        l = interp.binary(BinOp::Mul, &l, &part, args.span)?;
    }
    Ok(l)
}

pub(super) fn prod(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let mut total = args.take_keyword(sym::start).unwrap_or(Value::Int(1));
    args.positional_only(interp, "prod", 1, 1)?;
    let items = interp.iter(&args.positional[0], args.span)?;
    while let Some(item) = interp.next(&items, args.span)? {
        interp.step(args.span)?;
        total = interp.binary(BinOp::Mul, &total, &item, args.span)?;
    }
    Ok(total)
}

pub(super) fn isclose(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [a, b, rel, abs] = args.bind(interp, "isclose", ["a", "b", "rel_tol", "abs_tol"], 2)?;
    let x = float_of(interp, &a.unwrap_or(Value::None), "isclose", span)?;
    let y = float_of(interp, &b.unwrap_or(Value::None), "isclose", span)?;
    let rel = rel.and_then(|v| v.as_float()).unwrap_or(1e-9);
    let abs = abs.and_then(|v| v.as_float()).unwrap_or(0.0);
    let near = (x - y).abs() <= (rel * x.abs().max(y.abs())).max(abs);
    Ok(Value::Bool(x == y || x.is_finite() && y.is_finite() && near))
}

pub(super) fn isqrt(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "isqrt", 1, 1)?;
    let n = int_of(interp, &args.positional[0], "isqrt", args.span)?;
    match u64::try_from(n) {
        Ok(n) => Ok(Value::Int(n.isqrt() as i64)),
        Err(_) => Err(Raise::at("value-error", "isqrt() of a negative number", args.span, "in this call")),
    }
}

pub(super) fn factorial(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "factorial", 1, 1)?;
    let n = int_of(interp, &args.positional[0], "factorial", args.span)?;
    if n > 20 {
        return Err(Raise::at("integer-overflow", format!("{n}! does not fit in 64 bits"), args.span, "in this call"));
    }
    Ok(Value::Int((1..=n).product()))
}

pub(super) fn comb(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "comb", 2, 2)?;
    let n = int_of(interp, &args.positional[0], "comb", args.span)?;
    let k = int_of(interp, &args.positional[1], "comb", args.span)?;
    if k < 0 || n < 0 || k > n {
        return Ok(Value::Int(0));
    }
    let mut c = 1i128;
    for i in 0..i128::from(k.min(n - k)) {
        c = c * (i128::from(n) - i) / (i + 1);
        if c > i128::from(i64::MAX) {
            return Err(Raise::at("integer-overflow", "the result does not fit in 64 bits", args.span, "in this call"));
        }
    }
    Ok(Value::Int(c as i64))
}

/// A simple object with these attributes.
pub(super) fn record(interp: &mut Interp<'_>, name: &str, attrs: &[(&str, Value)]) -> Value {
    let class = Rc::new(Class {
        name: name.into(),
        kind: Cell::new(ClassKind::Plain),
        mro: OnceCell::new(),
        attrs: RefCell::default(),
        fields: RefCell::default(),
        members: RefCell::default(),
        combinations: RefCell::default(),
        lenient: false,
        def: None,
        span: Span::default(),
    });
    let mut map = AttrMap::default();
    for (name, value) in attrs {
        map.set(interp.sym(name), value.clone());
    }
    Value::Instance(Rc::new(Instance { class, attrs: RefCell::new(map), frozen: Cell::new(true) }))
}

/// A dialect's `finfo(dtype)`, which returns floats.
pub(crate) fn finfo(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    float_limits(interp, args, Value::Float)
}

/// `np.finfo(dtype)`, which returns scalars of the type.
pub(super) fn numpy_finfo(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let dtype = args.positional.first().map(|given| dtype_of(given, "finfo", args.span)).transpose()?;
    float_limits(interp, args, |x| scalar::value(dtype.unwrap_or(HostDtype::F64), Imm::Float(x)))
}

fn float_limits(interp: &mut Interp<'_>, args: CallArgs, float: impl Fn(f64) -> Value) -> EvalResult<Value> {
    args.positional_only(interp, "finfo", 1, 1)?;
    // max, eps, smallest normal, bits
    let given = &args.positional[0];
    let (max, eps, tiny, bits) = match (dtype::of(given), given) {
        (Some(DType::F32 | DType::TF32), _) => {
            (f64::from(f32::MAX), f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE), 32)
        }
        (Some(DType::F16), _) => (65504.0, 2f64.powi(-10), 2f64.powi(-14), 16),
        (Some(DType::BF16), _) => {
            (f64::from(f32::from_bits(0x7f7f_0000)), 2f64.powi(-7), f64::from(f32::MIN_POSITIVE), 16)
        }
        (Some(DType::F8E4M3), _) => (240.0, 0.125, 2f64.powi(-6), 8),
        (Some(DType::F8E4M3FN), _) => (448.0, 0.125, 2f64.powi(-6), 8),
        (Some(DType::F8E5M2), _) => (57344.0, 0.25, 2f64.powi(-14), 8),
        (Some(DType::F8E8M0), _) => (2f64.powi(127), 1.0, 2f64.powi(-127), 8),
        (None, given) if dtype_of(given, "finfo", args.span).is_ok_and(|dtype| dtype == HostDtype::F64) => {
            (f64::MAX, f64::EPSILON, f64::MIN_POSITIVE, 64)
        }
        (_, other) => {
            return Err(Raise::at(
                "type-error",
                format!("finfo() needs a floating-point dtype, not {}", other.a_type()),
                args.span,
                "in this call",
            ));
        }
    };
    Ok(record(
        interp,
        "finfo",
        &[
            ("min", float(-max)),
            ("max", float(max)),
            ("eps", float(eps)),
            ("tiny", float(tiny)),
            ("bits", Value::Int(bits)),
        ],
    ))
}

pub(super) fn iinfo(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "iinfo", 1, 1)?;
    let given = &args.positional[0];
    let (min, max) = match (dtype::of(given), given) {
        (Some(DType::I8), _) => (i64::from(i8::MIN), i64::from(i8::MAX)),
        (Some(DType::I16), _) => (i64::from(i16::MIN), i64::from(i16::MAX)),
        (Some(DType::I32), _) => (i64::from(i32::MIN), i64::from(i32::MAX)),
        (Some(DType::U8), _) => (0, i64::from(u8::MAX)),
        (Some(DType::U16), _) => (0, i64::from(u16::MAX)),
        (Some(DType::U32), _) => (0, i64::from(u32::MAX)),
        (None, given) if dtype_of(given, "iinfo", args.span).is_ok_and(|dtype| dtype == HostDtype::I64) => {
            (i64::MIN, i64::MAX)
        }
        (_, other) => {
            return Err(Raise::at(
                "type-error",
                format!("iinfo() needs an integer dtype, not {}", other.a_type()),
                args.span,
                "in this call",
            ));
        }
    };
    Ok(record(interp, "iinfo", &[("min", Value::Int(min)), ("max", Value::Int(max))]))
}
