//! Numbers: `math`, `numpy.finfo` and their kin.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use nki_diag::Span;
use nki_isa::DType;

use super::super::Interp;
use super::super::error::{EvalResult, Raise};
use super::super::language::Hint;
use super::super::native::CallArgs;
use super::super::value::*;
use super::{UNARY, Unary, dtype};
use crate::syntax::*;

/// The error function, to double precision: Abramowitz and Stegun 7.1.5 (series) and 7.1.14 (continued fraction).
pub(super) fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a < 2.5 {
        let (mut term, mut sum) = (a, a);
        for n in 1..100 {
            term *= -a * a / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        (2.0 / std::f64::consts::PI.sqrt() * sum).copysign(x)
    } else {
        let mut f = 0.0;
        for n in (1..60).rev() {
            f = f64::from(n) / 2.0 / (a + f);
        }
        (1.0 - (-a * a).exp() / std::f64::consts::PI.sqrt() / (a + f)).copysign(x)
    }
}

/// The single number of a call.
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

pub(super) fn finite(x: f64, name: &str, span: Span) -> EvalResult<Value> {
    Ok(match x {
        x if x.is_nan() => {
            return Err(Raise::at("value-error", format!("{name}() is not defined there"), span, "in this call"));
        }
        x => Value::Float(x),
    })
}

/// An array, or a list of numbers.
fn array_of(value: &Value, span: Span) -> Option<super::array::Array> {
    match value {
        Value::List(_) | Value::Tuple(_) => super::array::Array::from_value(value, None, span).ok(),
        other => super::array::of(other),
    }
}

pub(super) fn unary(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (name, func) = UNARY[args.data as usize];
    if let [one] = args.positional.as_slice()
        && let Some(array) = array_of(one, args.span)
    {
        return Ok(array.map(func).value());
    }
    let x = number(interp, &args, name)?;
    if x == 0.0 && name.starts_with("log") && name != "log1p" {
        return Err(Raise::at("value-error", format!("{name}(0) is not defined"), args.span, "in this call"));
    }
    if x.is_nan() { Ok(Value::Float(x)) } else { finite(func(x), name, args.span) }
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
        Err(Raise::at("value-error", format!("{x} cannot be turned into an int"), args.span, "in this call"))
    }
}

pub(super) fn binary_float(
    interp: &mut Interp<'_>,
    args: CallArgs,
    name: &str,
    func: fn(f64, f64) -> f64,
) -> EvalResult<Value> {
    args.positional_only(interp, name, 2, 2)?;
    let x = float_of(interp, &args.positional[0], name, args.span)?;
    let y = float_of(interp, &args.positional[1], name, args.span)?;
    finite(func(x, y), name, args.span)
}

pub(super) fn log(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "log", 1, 2)?;
    let x = float_of(interp, &args.positional[0], "log", args.span)?;
    if x <= 0.0 {
        return Err(Raise::at("value-error", format!("log({x}) is not defined"), args.span, "in this call"));
    }
    match args.positional.get(1) {
        Some(base) => finite(x.ln() / float_of(interp, base, "log", args.span)?.ln(), "log", args.span),
        None => Ok(Value::Float(x.ln())),
    }
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

pub(super) fn prod(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let mut total = Value::Int(1);
    let items = args.positional.first().cloned().unwrap_or(Value::None);
    for item in interp.iterate(&items, args.span)? {
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
    Ok(Value::Bool(x == y || (x - y).abs() <= (rel * x.abs().max(y.abs())).max(abs)))
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

/// A small object with attributes.
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

pub(crate) fn finfo(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
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
        (None, Value::Type(BuiltinType::Float)) => (f64::MAX, f64::EPSILON, f64::MIN_POSITIVE, 64),
        (_, other) => {
            return Err(Raise::at(
                "type-error",
                format!("finfo() needs a floating-point dtype, not {}", other.a_type()),
                args.span,
                "in this call",
            ));
        }
    };
    let float = Value::Float;
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
        (None, Value::Type(BuiltinType::Int)) => (i64::MIN, i64::MAX),
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
