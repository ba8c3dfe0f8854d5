//! What kernels use of Python's library and of NumPy.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use nki_diag::Span;
use nki_isa::DType;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::native::{CallArgs, NativeFn};
use super::value::*;
use crate::api;
use crate::syntax::*;

/// The modules provided here.
pub(crate) const MODULES: &[&str] = &[
    "math",
    "numpy",
    "typing",
    "typing_extensions",
    "dataclasses",
    "enum",
    "abc",
    "functools",
    "itertools",
    "operator",
    "collections",
    "collections.abc",
    "copy",
    "builtins",
];

type Unary = fn(f64) -> f64;

/// Functions of one float, of `math` and NumPy alike.
const UNARY: &[(&str, Unary)] = &[
    ("sqrt", f64::sqrt),
    ("exp", f64::exp),
    ("exp2", f64::exp2),
    ("expm1", f64::exp_m1),
    ("log1p", f64::ln_1p),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("asin", f64::asin),
    ("acos", f64::acos),
    ("atan", f64::atan),
    ("sinh", f64::sinh),
    ("cosh", f64::cosh),
    ("tanh", f64::tanh),
    ("fabs", f64::abs),
    ("cbrt", f64::cbrt),
    ("degrees", f64::to_degrees),
    ("radians", f64::to_radians),
    ("erf", erf),
];

/// An attribute of one of [`MODULES`].
pub(crate) fn attr(interp: &mut Interp<'_>, module: &str, name: &str, span: Span) -> Option<Value> {
    let native = |func: NativeFn| Some(Value::native(format!("{module}.{name}"), func, 0));
    match (module, name) {
        ("math" | "numpy", "pi") => Some(Value::Float(std::f64::consts::PI)),
        ("math" | "numpy", "e") => Some(Value::Float(std::f64::consts::E)),
        ("math", "tau") => Some(Value::Float(std::f64::consts::TAU)),
        ("math" | "numpy", "inf") => Some(Value::Float(f64::INFINITY)),
        ("math" | "numpy", "nan") => Some(Value::Float(f64::NAN)),
        ("math" | "numpy", "ceil") => native(|i, a| rounded(i, a, "ceil", f64::ceil)),
        ("math" | "numpy", "floor") => native(|i, a| rounded(i, a, "floor", f64::floor)),
        ("math" | "numpy", "trunc") => native(|i, a| rounded(i, a, "trunc", f64::trunc)),
        ("math" | "numpy", "gcd") => native(gcd),
        ("math" | "numpy", "lcm") => native(lcm),
        ("math" | "numpy", "prod") => native(prod),
        ("math" | "numpy", "log") => native(log),
        ("math", "pow") | ("numpy", "power") => native(|i, a| binary_float(i, a, "pow", f64::powf)),
        ("math", "fmod") => native(|i, a| binary_float(i, a, "fmod", |x, y| x % y)),
        ("math", "copysign") => native(|i, a| binary_float(i, a, "copysign", f64::copysign)),
        ("math" | "numpy", "hypot") => native(|i, a| binary_float(i, a, "hypot", f64::hypot)),
        ("math", "atan2") => native(|i, a| binary_float(i, a, "atan2", f64::atan2)),
        ("math", "isnan" | "isinf" | "isfinite") | ("numpy", "isnan" | "isinf" | "isfinite") => native(match name {
            "isnan" => |i, a| Ok(Value::Bool(number(i, &a, "isnan")?.is_nan())),
            "isinf" => |i, a| Ok(Value::Bool(number(i, &a, "isinf")?.is_infinite())),
            _ => |i, a| Ok(Value::Bool(number(i, &a, "isfinite")?.is_finite())),
        }),
        ("math", "isclose") => native(isclose),
        ("math", "isqrt") => native(isqrt),
        ("math", "factorial") => native(factorial),
        ("math", "comb") => native(comb),
        ("math" | "numpy", _) if UNARY.iter().any(|(n, _)| *n == name) => {
            let index = UNARY.iter().position(|(n, _)| *n == name)?;
            Some(Value::native(format!("{module}.{name}"), unary, index as u32))
        }
        ("numpy", _) => numpy(interp, name, span),

        ("typing" | "typing_extensions", "TYPE_CHECKING") => Some(Value::Bool(false)),
        ("typing" | "typing_extensions", "NamedTuple") => Some(Value::Type(BuiltinType::NamedTuple)),
        ("typing" | "typing_extensions", "List") => Some(Value::Type(BuiltinType::List)),
        ("typing" | "typing_extensions", "Tuple") => Some(Value::Type(BuiltinType::Tuple)),
        ("typing" | "typing_extensions", "Dict") => Some(Value::Type(BuiltinType::Dict)),
        ("typing" | "typing_extensions", "cast") => native(|i, mut a| {
            a.positional_only(i, "cast", 2, 2)?;
            Ok(a.positional.pop().unwrap_or(Value::None))
        }),
        ("typing" | "typing_extensions", "overload" | "final" | "override" | "no_type_check" | "runtime_checkable") => {
            native(identity)
        }
        ("abc", "abstractmethod") => native(identity),
        ("abc", "ABC") => Some(Value::Type(BuiltinType::Object)),

        ("dataclasses", "dataclass") => native(dataclass),
        ("dataclasses", "field") => native(field),
        ("dataclasses", "replace") => native(replace),
        ("dataclasses", "asdict") => native(asdict),
        ("dataclasses", "fields") => native(fields),
        ("dataclasses", "is_dataclass") => native(|i, a| {
            a.positional_only(i, "is_dataclass", 1, 1)?;
            let class = match &a.positional[0] {
                Value::Class(class) => Some(class),
                Value::Instance(instance) => Some(&instance.class),
                _ => None,
            };
            Ok(Value::Bool(class.is_some_and(|c| matches!(c.kind.get(), ClassKind::Dataclass { .. }))))
        }),

        ("enum", "Enum" | "StrEnum") => Some(Value::Type(BuiltinType::Enum)),
        ("enum", "IntEnum" | "Flag" | "IntFlag") => Some(Value::Type(BuiltinType::IntEnum)),
        // Each use makes a new value when the class is made.
        ("enum", "auto") => native(|_, _| Ok(Value::native("enum.auto", identity, 0))),
        ("enum", "unique") => native(identity),

        ("functools", "partial") => native(partial),
        ("functools", "reduce") => native(reduce),
        ("functools", "cache" | "total_ordering" | "singledispatch") => native(identity),
        ("functools", "lru_cache" | "wraps") => native(decorator_factory),
        ("functools", "cached_property") => interp.builtin("property"),
        ("itertools", "product") => native(product),
        ("itertools", "chain") => native(chain),
        ("itertools", "combinations") => native(combinations),
        ("itertools", "permutations") => native(permutations),
        ("itertools", "zip_longest") => native(zip_longest),
        ("itertools", "accumulate") => native(accumulate),
        ("itertools", "repeat") => native(|i, a| {
            let [value, times] = a.bind(i, "repeat", ["object", "times"], 2)?;
            let n = times.and_then(|t| t.as_int()).unwrap_or(0).clamp(0, 10_000_000);
            Ok(Value::list(vec![value.unwrap_or(Value::None); n as usize]))
        }),
        ("operator", _) => operator(name).and_then(native),
        ("collections", "OrderedDict") => Some(Value::Type(BuiltinType::Dict)),
        ("collections", "defaultdict") => native(defaultdict),
        ("collections", "namedtuple") => native(namedtuple),
        ("collections", "deque") => Some(Value::Type(BuiltinType::List)),
        ("copy", "copy" | "deepcopy") => {
            native(if name == "copy" { |i, a| copy(i, a, false) } else { |i, a| copy(i, a, true) })
        }
        ("builtins", _) => interp.builtin(name),
        // Types for annotations, mostly.
        _ => Some(interp.host(format!("{module}.{name}"), span)),
    }
}

fn numpy(interp: &mut Interp<'_>, name: &str, span: Span) -> Option<Value> {
    let native = |func: NativeFn| Some(Value::native(format!("numpy.{name}"), func, 0));
    match name {
        "float32" | "float16" | "int8" | "int16" | "int32" | "uint8" | "uint16" | "uint32" | "bool_" => {
            api::module_attr(interp, "nki.language", name)
        }
        "single" => api::module_attr(interp, "nki.language", "float32"),
        "half" => api::module_attr(interp, "nki.language", "float16"),
        "float64" | "double" => Some(Value::Type(BuiltinType::Float)),
        "int64" | "uint64" => Some(Value::Type(BuiltinType::Int)),
        "bool" => Some(Value::Type(BuiltinType::Bool)),
        "newaxis" => Some(Value::None),
        "Inf" | "infty" => Some(Value::Float(f64::INFINITY)),
        "NaN" => Some(Value::Float(f64::NAN)),
        "abs" | "absolute" => interp.builtin("abs"),
        "min" | "amin" | "minimum" => interp.builtin("min"),
        "max" | "amax" | "maximum" => interp.builtin("max"),
        "sum" => interp.builtin("sum"),
        "round" => interp.builtin("round"),
        "ceil_divide" => None,
        "finfo" => native(finfo),
        "iinfo" => native(iinfo),
        "sign" => native(|i, a| {
            let x = number(i, &a, "sign")?;
            Ok(Value::Float(if x == 0.0 { 0.0 } else { x.signum() }))
        }),
        _ => Some(interp.host(format!("numpy.{name}"), span)),
    }
}

/// The error function, to double precision: Abramowitz and Stegun 7.1.5 (series) and 7.1.14 (continued fraction).
fn erf(x: f64) -> f64 {
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

fn identity(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    Ok(args.positional.into_iter().next().unwrap_or(Value::None))
}

/// `@lru_cache` and `@lru_cache(maxsize=None)`
fn decorator_factory(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    match args.positional.first() {
        Some(function @ Value::Function(_))
            if args.keyword.is_empty() && args.positional.len() == 1 && args.data == 0 =>
        {
            Ok(function.clone())
        }
        _ => Ok(Value::native("decorator", identity, 0)),
    }
}

/// The single number of a call.
fn number(interp: &Interp<'_>, args: &CallArgs, name: &str) -> EvalResult<f64> {
    args.positional_only(interp, name, 1, 1)?;
    float_of(interp, &args.positional[0], name, args.span)
}

fn float_of(interp: &Interp<'_>, value: &Value, name: &str, span: Span) -> EvalResult<f64> {
    if let Some(x) = value.as_float().or_else(|| interp.as_index(value).map(|x| x as f64)) {
        return Ok(x);
    }
    if let Value::Host(host) = value {
        return Err(interp.host_error(host, span));
    }
    let raise =
        Raise::at("type-error", format!("{name}() needs a number, not a {}", value.type_name()), span, "in this call");
    Err(if matches!(value, Value::Tensor(_)) {
        raise.help("this runs at specialisation, where tensors have no values; use an `nl.*` or `nisa.*` operation")
    } else {
        raise
    })
}

fn finite(x: f64, name: &str, span: Span) -> EvalResult<Value> {
    Ok(match x {
        x if x.is_nan() => {
            return Err(Raise::at("value-error", format!("{name}() is not defined there"), span, "in this call"));
        }
        x => Value::Float(x),
    })
}

fn unary(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (name, func) = UNARY[args.data as usize];
    let x = number(interp, &args, name)?;
    if x == 0.0 && name.starts_with("log") && name != "log1p" {
        return Err(Raise::at("value-error", format!("{name}(0) is not defined"), args.span, "in this call"));
    }
    if x.is_nan() { Ok(Value::Float(x)) } else { finite(func(x), name, args.span) }
}

fn rounded(interp: &mut Interp<'_>, args: CallArgs, name: &str, func: Unary) -> EvalResult<Value> {
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

fn binary_float(interp: &mut Interp<'_>, args: CallArgs, name: &str, func: fn(f64, f64) -> f64) -> EvalResult<Value> {
    args.positional_only(interp, name, 2, 2)?;
    let x = float_of(interp, &args.positional[0], name, args.span)?;
    let y = float_of(interp, &args.positional[1], name, args.span)?;
    finite(func(x, y), name, args.span)
}

fn log(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
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

fn int_of(interp: &Interp<'_>, value: &Value, name: &str, span: Span) -> EvalResult<i64> {
    interp.as_index(value).ok_or_else(|| {
        Raise::at("type-error", format!("{name}() needs an int, not a {}", value.type_name()), span, "in this call")
    })
}

fn gcd(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let mut g = 0i64;
    for value in &args.positional {
        let mut b = int_of(interp, value, "gcd", args.span)?;
        while b != 0 {
            (g, b) = (b, g.wrapping_rem(b));
        }
    }
    Ok(Value::Int(g.wrapping_abs()))
}

fn lcm(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
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

fn prod(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let mut total = Value::Int(1);
    let items = args.positional.first().cloned().unwrap_or(Value::None);
    for item in interp.iterate(&items, args.span)? {
        total = interp.binary(BinOp::Mul, &total, &item, args.span)?;
    }
    Ok(total)
}

fn isclose(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [a, b, rel, abs] = args.bind(interp, "isclose", ["a", "b", "rel_tol", "abs_tol"], 2)?;
    let x = float_of(interp, &a.unwrap_or(Value::None), "isclose", span)?;
    let y = float_of(interp, &b.unwrap_or(Value::None), "isclose", span)?;
    let rel = rel.and_then(|v| v.as_float()).unwrap_or(1e-9);
    let abs = abs.and_then(|v| v.as_float()).unwrap_or(0.0);
    Ok(Value::Bool(x == y || (x - y).abs() <= (rel * x.abs().max(y.abs())).max(abs)))
}

fn isqrt(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "isqrt", 1, 1)?;
    let n = int_of(interp, &args.positional[0], "isqrt", args.span)?;
    match u64::try_from(n) {
        Ok(n) => Ok(Value::Int(n.isqrt() as i64)),
        Err(_) => Err(Raise::at("value-error", "isqrt() of a negative number", args.span, "in this call")),
    }
}

fn factorial(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "factorial", 1, 1)?;
    let n = int_of(interp, &args.positional[0], "factorial", args.span)?;
    if n > 20 {
        return Err(Raise::at("integer-overflow", format!("{n}! does not fit in 64 bits"), args.span, "in this call"));
    }
    Ok(Value::Int((1..=n).product()))
}

fn comb(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
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
fn record(interp: &mut Interp<'_>, name: &str, attrs: &[(&str, Value)]) -> Value {
    let class = Rc::new(Class {
        name: name.into(),
        kind: Cell::new(ClassKind::Plain),
        mro: OnceCell::new(),
        attrs: RefCell::default(),
        fields: RefCell::default(),
        members: RefCell::default(),
        span: Span::default(),
    });
    let mut map = AttrMap::default();
    for (name, value) in attrs {
        map.set(interp.sym(name), value.clone());
    }
    Value::Instance(Rc::new(Instance { class, attrs: RefCell::new(map), frozen: Cell::new(true) }))
}

fn finfo(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "finfo", 1, 1)?;
    // max, eps, smallest normal, bits
    let (max, eps, tiny, bits) = match &args.positional[0] {
        Value::Dtype(DType::F32 | DType::TF32) => {
            (f64::from(f32::MAX), f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE), 32)
        }
        Value::Dtype(DType::F16) => (65504.0, 2f64.powi(-10), 2f64.powi(-14), 16),
        Value::Dtype(DType::BF16) => {
            (f64::from(f32::from_bits(0x7f7f_0000)), 2f64.powi(-7), f64::from(f32::MIN_POSITIVE), 16)
        }
        Value::Dtype(DType::F8E4M3) => (240.0, 0.125, 2f64.powi(-6), 8),
        Value::Dtype(DType::F8E4M3FN) => (448.0, 0.125, 2f64.powi(-6), 8),
        Value::Dtype(DType::F8E5M2) => (57344.0, 0.25, 2f64.powi(-14), 8),
        Value::Type(BuiltinType::Float) => (f64::MAX, f64::EPSILON, f64::MIN_POSITIVE, 64),
        other => {
            return Err(Raise::at(
                "type-error",
                format!("finfo() needs a floating-point dtype, not a {}", other.type_name()),
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

fn iinfo(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "iinfo", 1, 1)?;
    let (min, max) = match &args.positional[0] {
        Value::Dtype(DType::I8) => (i64::from(i8::MIN), i64::from(i8::MAX)),
        Value::Dtype(DType::I16) => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Value::Dtype(DType::I32) => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Value::Dtype(DType::U8) => (0, i64::from(u8::MAX)),
        Value::Dtype(DType::U16) => (0, i64::from(u16::MAX)),
        Value::Dtype(DType::U32) => (0, i64::from(u32::MAX)),
        Value::Type(BuiltinType::Int) => (i64::MIN, i64::MAX),
        other => {
            return Err(Raise::at(
                "type-error",
                format!("iinfo() needs an integer dtype, not a {}", other.type_name()),
                args.span,
                "in this call",
            ));
        }
    };
    Ok(record(interp, "iinfo", &[("min", Value::Int(min)), ("max", Value::Int(max))]))
}

fn dataclass(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let frozen = match args.take_keyword(sym::frozen) {
        Some(value) => interp.truth(&value, args.span)?,
        None => false,
    };
    let kw_only = args.take_keyword(sym::kw_only).is_some_and(|v| matches!(v, Value::Bool(true)));
    match args.positional.first() {
        Some(Value::Class(class)) => {
            class.kind.set(ClassKind::Dataclass { frozen });
            if kw_only {
                class.fields.borrow_mut().iter_mut().for_each(|f| f.kw_only = true);
            }
            Ok(Value::Class(class.clone()))
        }
        None => {
            let keyword = vec![(sym::frozen, Value::Bool(frozen)), (sym::kw_only, Value::Bool(kw_only))];
            let function = Value::native("dataclasses.dataclass", dataclass, 0);
            Ok(Value::Partial(Rc::new(Partial { function, positional: Vec::new(), keyword })))
        }
        Some(other) => Err(Raise::at(
            "type-error",
            format!("dataclass needs a class, not a {}", other.type_name()),
            args.span,
            "here",
        )),
    }
}

fn field(_: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let default = match (args.take_keyword(sym::default), args.take_keyword(sym::default_factory)) {
        (Some(value), _) => FieldDefault::Value(value),
        (None, Some(factory)) => FieldDefault::Factory(factory),
        (None, None) => FieldDefault::Required,
    };
    let is = |value: Option<Value>, wanted: bool| matches!(value, Some(Value::Bool(b)) if b == wanted);
    let init = !is(args.take_keyword(sym::init_false), false);
    let kw_only = is(args.take_keyword(sym::kw_only), true);
    Ok(Value::FieldSpec(Rc::new(FieldSpec { default, init, kw_only })))
}

fn instance_arg(interp: &Interp<'_>, args: &CallArgs, name: &str) -> EvalResult<Rc<Instance>> {
    match args.positional.first() {
        Some(Value::Instance(instance)) => Ok(instance.clone()),
        Some(Value::Host(host)) => Err(interp.host_error(host, args.span)),
        _ => {
            Err(Raise::at("type-error", format!("{name}() needs an object of a dataclass"), args.span, "in this call"))
        }
    }
}

fn replace(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let instance = instance_arg(interp, &args, "replace")?;
    interp.replace_fields(&instance, &args.keyword, args.span)
}

fn asdict(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let instance = instance_arg(interp, &args, "asdict")?;
    let value = interp.synthesized_method(&Value::Instance(instance), sym::asdict, &args)?;
    Ok(value.unwrap_or(Value::None))
}

fn fields(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let class = match args.positional.first() {
        Some(Value::Class(class)) => class.clone(),
        _ => instance_arg(interp, &args, "fields")?.class.clone(),
    };
    let names: Vec<Rc<str>> = class.fields.borrow().iter().map(|f| interp.name(f.name)).collect();
    Ok(Value::tuple(names.into_iter().map(|n| record(interp, "Field", &[("name", Value::Str(n))])).collect::<Vec<_>>()))
}

fn partial(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional
        .first()
        .map(|_| ())
        .ok_or_else(|| Raise::at("arguments", "partial() needs a function", args.span, "in this call"))?;
    let _ = interp;
    let mut positional = args.positional.into_vec();
    let function = positional.remove(0);
    Ok(Value::Partial(Rc::new(Partial { function, positional, keyword: args.keyword.into_vec() })))
}

fn reduce(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    args.positional_only(interp, "reduce", 2, 3)?;
    let mut items = interp.iterate(&args.positional[1], span)?.into_iter();
    let Some(mut total) = args.positional.get(2).cloned().or_else(|| items.next()) else {
        return Err(Raise::at("value-error", "reduce() of nothing", span, "the sequence is empty"));
    };
    for item in items {
        total = interp.call(&args.positional[0], CallArgs::of([total, item], span))?;
    }
    Ok(total)
}

fn product(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let repeat = args.take_keyword(sym::repeat).and_then(|r| r.as_int()).unwrap_or(1).clamp(0, 16) as usize;
    let mut columns = Vec::new();
    for value in &args.positional {
        columns.push(interp.iterate(value, args.span)?);
    }
    let columns: Vec<_> = std::iter::repeat_n(columns, repeat).flatten().collect();
    let total = columns.iter().fold(1usize, |n, c| n.saturating_mul(c.len()));
    if total > 10_000_000 {
        return Err(Raise::at(
            "value-error",
            format!("a product of {total} items is too long"),
            args.span,
            "in this call",
        ));
    }
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for column in &columns {
        rows =
            rows.iter().flat_map(|row| column.iter().map(move |v| row.iter().chain([v]).cloned().collect())).collect();
    }
    Ok(Value::list(rows.into_iter().map(Value::tuple).collect()))
}

fn chain(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let mut out = Vec::new();
    for value in &args.positional {
        out.extend(interp.iterate(value, args.span)?);
    }
    Ok(Value::list(out))
}

fn choose(items: &[Value], k: usize, ordered: bool, span: Span) -> EvalResult<Value> {
    let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..k {
        let mut next = Vec::new();
        for row in &rows {
            let from = if ordered { 0 } else { row.last().map_or(0, |l| l + 1) };
            next.extend(
                (from..items.len())
                    .filter(|i| !row.contains(i))
                    .map(|i| row.iter().copied().chain([i]).collect::<Vec<_>>()),
            );
        }
        rows = next;
        if rows.len() > 1_000_000 {
            return Err(Raise::at("value-error", "too many combinations", span, "in this call"));
        }
    }
    Ok(Value::list(
        rows.iter().map(|row| Value::tuple(row.iter().map(|i| items[*i].clone()).collect::<Vec<_>>())).collect(),
    ))
}

fn combinations(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "combinations", 2, 2)?;
    let items = interp.iterate(&args.positional[0], args.span)?;
    let k = int_of(interp, &args.positional[1], "combinations", args.span)?;
    choose(&items, k.clamp(0, 64) as usize, false, args.span)
}

fn permutations(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "permutations", 1, 2)?;
    let items = interp.iterate(&args.positional[0], args.span)?;
    let k = args.positional.get(1).and_then(Value::as_int).map_or(items.len(), |k| k.clamp(0, 64) as usize);
    choose(&items, k, true, args.span)
}

fn zip_longest(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let fill = args.take_keyword(sym::fillvalue).unwrap_or(Value::None);
    let mut columns = Vec::new();
    for value in &args.positional {
        columns.push(interp.iterate(value, args.span)?);
    }
    let n = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = |i: usize| columns.iter().map(|c| c.get(i).cloned().unwrap_or_else(|| fill.clone())).collect::<Vec<_>>();
    Ok(Value::list((0..n).map(|i| Value::tuple(row(i))).collect()))
}

fn accumulate(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "accumulate", 1, 2)?;
    let mut out: Vec<Value> = Vec::new();
    for item in interp.iterate(&args.positional[0], args.span)? {
        let next = match (out.last().cloned(), args.positional.get(1)) {
            (None, _) => item,
            (Some(total), Some(function)) => interp.call(function, CallArgs::of([total, item], args.span))?,
            (Some(total), None) => interp.binary(BinOp::Add, &total, &item, args.span)?,
        };
        out.push(next);
    }
    Ok(Value::list(out))
}

fn operator(name: &str) -> Option<NativeFn> {
    macro_rules! binary {
        ($op:ident) => {
            |interp, args| {
                args.positional_only(interp, "operator", 2, 2)?;
                interp.binary(BinOp::$op, &args.positional[0], &args.positional[1], args.span)
            }
        };
    }
    macro_rules! compare {
        ($op:ident) => {
            |interp, args| {
                args.positional_only(interp, "operator", 2, 2)?;
                interp.compare(CmpOp::$op, &args.positional[0], &args.positional[1], args.span)
            }
        };
    }
    Some(match name {
        "add" => binary!(Add),
        "sub" => binary!(Sub),
        "mul" => binary!(Mul),
        "truediv" => binary!(Div),
        "floordiv" => binary!(FloorDiv),
        "mod" => binary!(Mod),
        "pow" => binary!(Pow),
        "and_" => binary!(BitAnd),
        "or_" => binary!(BitOr),
        "xor" => binary!(BitXor),
        "lshift" => binary!(LShift),
        "rshift" => binary!(RShift),
        "eq" => compare!(Eq),
        "ne" => compare!(Ne),
        "lt" => compare!(Lt),
        "le" => compare!(Le),
        "gt" => compare!(Gt),
        "ge" => compare!(Ge),
        "neg" => |interp, args| {
            args.positional_only(interp, "neg", 1, 1)?;
            interp.unary(UnaryOp::Neg, &args.positional[0], args.span)
        },
        "getitem" => |interp, args| {
            args.positional_only(interp, "getitem", 2, 2)?;
            interp.get_item(&args.positional[0], &args.positional[1], args.span)
        },
        _ => return None,
    })
}

fn defaultdict(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let factory = (!args.positional.is_empty()).then(|| args.positional.remove(0)).filter(|f| !f.is_none());
    let mut dict = interp.make_dict(args)?;
    dict.factory = factory;
    Ok(Value::dict(dict))
}

/// `namedtuple("Name", "a b")`, and `NamedTuple("Name", [("a", int)])`
pub(crate) fn namedtuple(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let (Some(Value::Str(name)), Some(fields)) = (args.positional.first(), args.positional.get(1)) else {
        return Err(Raise::at("arguments", "namedtuple() needs a name and the field names", span, "in this call"));
    };
    let names: Vec<Rc<str>> = match fields {
        Value::Str(text) => text.replace(',', " ").split_whitespace().map(Rc::from).collect(),
        other => {
            let mut names = Vec::new();
            for item in interp.iterate(other, span)? {
                match (&item, item.sequence()) {
                    (Value::Str(name), _) => names.push(name.clone()),
                    (_, Some(pair)) if matches!(pair.first(), Some(Value::Str(_))) => {
                        names.extend(
                            pair.first().and_then(|v| if let Value::Str(name) = v { Some(name.clone()) } else { None }),
                        );
                    }
                    _ => return Err(Raise::at("type-error", "field names must be str", span, "in this call")),
                }
            }
            names
        }
    };
    let defaults = match args.keyword.iter().find(|(n, _)| &*interp.name(*n) == "defaults") {
        Some((_, value)) => interp.iterate(&value.clone(), span)?,
        None => Vec::new(),
    };
    let first_default = names.len().saturating_sub(defaults.len());
    let fields = names
        .iter()
        .enumerate()
        .map(|(i, n)| Field {
            name: interp.sym(n),
            default: match i.checked_sub(first_default).and_then(|i| defaults.get(i)) {
                Some(value) => FieldDefault::Value(value.clone()),
                None => FieldDefault::Required,
            },
            init: true,
            kw_only: false,
        })
        .collect();
    let class = Rc::new(Class {
        name: name.clone(),
        kind: Cell::new(ClassKind::NamedTuple),
        mro: OnceCell::new(),
        attrs: RefCell::default(),
        fields: RefCell::new(fields),
        members: RefCell::default(),
        span,
    });
    let _ = class.mro.set(vec![class.clone()]);
    Ok(Value::Class(class))
}

fn copy(interp: &mut Interp<'_>, args: CallArgs, deep: bool) -> EvalResult<Value> {
    args.positional_only(interp, "copy", 1, 2)?;
    Ok(copied(&args.positional[0], deep, 0))
}

fn copied(value: &Value, deep: bool, depth: u32) -> Value {
    let inner = |v: &Value| if deep && depth < super::ops::MAX_DEPTH { copied(v, true, depth + 1) } else { v.clone() };
    match value {
        Value::List(list) => Value::list(list.items.borrow().iter().map(inner).collect()),
        Value::Tuple(items) if deep => Value::tuple(items.iter().map(inner).collect::<Vec<_>>()),
        Value::Dict(dict) => {
            let mut out = Dict::default();
            out.factory = dict.borrow().factory.clone();
            for (key, original, value) in dict.borrow().iter() {
                out.set(key.clone(), original.clone(), inner(value));
            }
            Value::dict(out)
        }
        Value::Set(set) => Value::Set(Rc::new(RefCell::new(set.borrow().clone()))),
        Value::Instance(instance) => {
            let mut attrs = AttrMap::default();
            for (name, value) in instance.attrs.borrow().iter() {
                attrs.set(name, inner(value));
            }
            let frozen = Cell::new(instance.frozen.get());
            Value::Instance(Rc::new(Instance { class: instance.class.clone(), attrs: RefCell::new(attrs), frozen }))
        }
        other => other.clone(),
    }
}

impl Interp<'_> {
    /// `property.setter`: a decorator that adds the setter.
    pub(crate) fn property_setter(&self, get: Value) -> Value {
        let function = Value::native("property.setter", set_property, 0);
        Value::Partial(Rc::new(Partial { function, positional: vec![get], keyword: Vec::new() }))
    }

    /// An attribute of a built-in type.
    pub(crate) fn type_attr(&mut self, kind: BuiltinType, name: Symbol) -> EvalResult<Option<Value>> {
        Ok(match (kind, &*self.name(name)) {
            // How a frozen dataclass sets a field in `__post_init__`.
            (BuiltinType::Object, "__setattr__") => Some(Value::native("object.__setattr__", object_setattr, 0)),
            (BuiltinType::Dict, "fromkeys") => Some(Value::native("dict.fromkeys", fromkeys, 0)),
            _ => None,
        })
    }
}

fn set_property(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let mut parts = args.positional.into_iter();
    let get = parts.next().unwrap_or(Value::None);
    Ok(Value::Descriptor(Rc::new(Descriptor::Property { get, set: parts.next() })))
}

fn object_setattr(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    if let [Value::Instance(instance), Value::Str(name), value] = args.positional.as_slice() {
        let name = interp.sym(name);
        instance.attrs.borrow_mut().set(name, value.clone());
    }
    Ok(Value::None)
}

fn fromkeys(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "fromkeys", 1, 2)?;
    let value = args.positional.get(1).cloned().unwrap_or(Value::None);
    let mut dict = Dict::default();
    for item in interp.iterate(&args.positional[0], args.span)? {
        dict.set(interp.key(&item, true, args.span)?, item, value.clone());
    }
    Ok(Value::dict(dict))
}
