//! The parts of the standard library and of NumPy that kernels use.

pub(crate) mod array;
pub(crate) mod dtype;
mod library;
mod math;
mod numpy;
mod numpy_functions;
mod numpy_places;
mod numpy_types;
mod objects;
pub(crate) mod ordering;
pub(crate) mod scalar;
mod tools;

use std::rc::Rc;

use nki_diag::Span;
use nki_isa::names::Named;
use nki_isa::{DType, Imm};

pub(crate) use self::math::finfo;
pub(crate) use self::numpy::magnitude;
use self::numpy_types::NumpyClass;
pub(crate) use self::objects::{namedtuple, object_init_subclass, object_setattr};
pub(crate) use self::tools::chain_from;
use self::{math::*, objects::*, tools::*};
use super::Interp;
use super::error::{EvalResult, Raise};
use super::native::{CallArgs, NativeFn};
use super::value::*;
use crate::host::HostDtype;

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
    "contextlib",
    "copy",
    "builtins",
    "ml_dtypes",
    "types",
];

type Unary = fn(f64) -> f64;

/// Functions of one float in both `math` and NumPy.
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
    ("asinh", libm::asinh),
    ("acosh", libm::acosh),
    ("atanh", libm::atanh),
    ("erf", libm::erf),
    ("erfc", libm::erfc),
    ("gamma", libm::tgamma),
    ("lgamma", libm::lgamma),
    ("log", f64::ln),
];

/// An attribute of one of [`MODULES`].
pub(crate) fn attr(interp: &mut Interp<'_>, module: &str, name: &str, span: Span) -> Option<Value> {
    let native = |func: NativeFn| Some(Value::native(format!("{module}.{name}"), func, 0));
    if library::has(module, name) {
        return Some(interp.library(name, span).unwrap_or_else(|_| interp.host(format!("{module}.{name}"), span)));
    }
    match (module, name) {
        ("math" | "numpy", "pi") => Some(Value::Float(std::f64::consts::PI)),
        ("math" | "numpy", "e") => Some(Value::Float(std::f64::consts::E)),
        ("math", "tau") => Some(Value::Float(std::f64::consts::TAU)),
        ("math" | "numpy", "inf") => Some(Value::Float(f64::INFINITY)),
        ("math" | "numpy", "nan") => Some(Value::Float(f64::NAN)),
        ("math", "ceil") => native(|i, a| rounded(i, a, "ceil", f64::ceil)),
        ("math", "floor") => native(|i, a| rounded(i, a, "floor", f64::floor)),
        ("math", "trunc") => native(|i, a| rounded(i, a, "trunc", f64::trunc)),
        ("math", "gcd") => native(gcd),
        ("math", "lcm") => native(lcm),
        ("math", "prod") => native(prod),
        ("math", "log") => native(log),
        ("math", "pow") => native(|i, a| binary_float(i, a, "pow", f64::powf)),
        ("math", "fmod") => native(|i, a| binary_float(i, a, "fmod", |x, y| x % y)),
        ("math", "copysign") => native(|i, a| binary_float(i, a, "copysign", f64::copysign)),
        ("math", "hypot") => native(hypot),
        ("math", "dist") => native(dist),
        ("math", "atan2") => native(|i, a| binary_float(i, a, "atan2", f64::atan2)),
        ("math", "isnan" | "isinf" | "isfinite") => native(match name {
            "isnan" => |i, a| Ok(Value::Bool(number(i, &a, "isnan")?.is_nan())),
            "isinf" => |i, a| Ok(Value::Bool(number(i, &a, "isinf")?.is_infinite())),
            _ => |i, a| Ok(Value::Bool(number(i, &a, "isfinite")?.is_finite())),
        }),
        ("math", "modf") => native(|i, a| {
            let x = number(i, &a, "modf")?;
            let fraction = if x.is_infinite() { 0.0 } else { x.fract() };
            Ok(Value::tuple(vec![Value::Float(fraction.copysign(x)), Value::Float(x.trunc())]))
        }),
        ("math", "isclose") => native(isclose),
        ("math", "fsum") => native(fsum),
        ("math", "ldexp") => native(ldexp),
        ("math", "remainder") => native(|i, a| binary_float(i, a, "remainder", libm::remainder)),
        ("math", "nextafter") => native(|i, a| binary_float(i, a, "nextafter", libm::nextafter)),
        ("math", "frexp") => native(|i, a| {
            let (mantissa, exponent) = libm::frexp(number(i, &a, "frexp")?);
            Ok(Value::tuple(vec![Value::Float(mantissa), Value::Int(exponent.into())]))
        }),
        ("math", "isqrt") => native(isqrt),
        ("math", "factorial") => native(factorial),
        ("math", "comb") => native(comb),
        ("numpy", "erf" | "erfc" | "gamma" | "lgamma") => None,
        ("math" | "numpy", _) if UNARY.iter().any(|(n, _)| *n == name) => {
            let index = UNARY.iter().position(|(n, _)| *n == name)?;
            let func = if module == "math" { unary } else { numpy_unary };
            Some(Value::native(format!("{module}.{name}"), func, index as u32))
        }
        ("numpy", _) => numpy_attr(interp, name, span),
        ("ml_dtypes", _) => match DType::from_name(name).filter(|d| d.is_float() && !d.is_packed()) {
            Some(dtype) => Some(dtype::class(HostDtype::Device(dtype))),
            None => Some(interp.host(format!("ml_dtypes.{name}"), span)),
        },

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
        ("abc", "abstractmethod") => native(abstract_method),
        ("abc", "ABC") => Some(Value::Type(BuiltinType::Object)),

        ("dataclasses" | "enum", _) if let Some(value) = class_attr(interp, module, name) => Some(value),
        ("functools", "partial") => native(partial),
        ("functools", "reduce") => native(reduce),
        ("functools", "cache") => native(super::cached::cache),
        ("functools", "lru_cache") => native(super::cached::lru_cache),
        ("functools", "wraps") => native(tools::wraps),
        ("functools", "update_wrapper") => native(tools::update_wrapper),
        ("functools", "total_ordering") => native(ordering::total_ordering),
        ("functools", "singledispatchmethod") => native(no_dispatch),
        ("functools", "cached_property") => native(|i, mut a| {
            a.positional_only(i, "cached_property", 1, 1)?;
            let function = a.positional.pop().unwrap_or(Value::None);
            Ok(Value::Descriptor(Rc::new(Descriptor::CachedProperty(function))))
        }),
        ("contextlib", "contextmanager") => native(super::context::contextmanager),
        ("contextlib", "_GeneratorContextManager") => native(super::context::of_python),
        ("itertools", _) if itertools(name).is_some() => itertools(name).and_then(native),
        ("operator", _) => operator(name).and_then(native),
        ("collections", "defaultdict") => native(defaultdict),
        ("collections", "namedtuple") => native(namedtuple),
        ("copy", "copy" | "deepcopy") => {
            native(if name == "copy" { |i, a| copy(i, a, false) } else { |i, a| copy(i, a, true) })
        }
        ("builtins", _) => interp.builtin(name),
        // Mostly types for annotations.
        _ => Some(interp.host(format!("{module}.{name}"), span)),
    }
}

/// An attribute of `dataclasses` or `enum`.
fn class_attr(interp: &mut Interp<'_>, module: &str, name: &str) -> Option<Value> {
    let native = |func: NativeFn| Some(Value::native(format!("{module}.{name}"), func, 0));
    match (module, name) {
        ("dataclasses", "dataclass") => native(dataclass),
        ("dataclasses", "field") => native(field),
        ("dataclasses", "replace") => native(replace),
        ("dataclasses", "fields") => native(fields),
        ("dataclasses", "FrozenInstanceError") => Some(Value::ExceptionClass(interp.sym(name))),
        ("dataclasses", "is_dataclass") => native(|i, a| {
            a.positional_only(i, "is_dataclass", 1, 1)?;
            let class = match &a.positional[0] {
                Value::Class(class) => Some(class),
                Value::Instance(instance) => Some(&instance.class),
                _ => None,
            };
            Ok(Value::Bool(class.is_some_and(|c| c.is_dataclass())))
        }),

        ("enum", "Enum") => Some(Value::Type(BuiltinType::Enum)),
        ("enum", "IntEnum") => Some(Value::Type(BuiltinType::IntEnum)),
        ("enum", "StrEnum") => Some(Value::Type(BuiltinType::StrEnum)),
        ("enum", "Flag") => Some(Value::Type(BuiltinType::Flag)),
        ("enum", "IntFlag") => Some(Value::Type(BuiltinType::IntFlag)),
        // Each use is replaced by a new value when the class is created.
        ("enum", "auto") => native(|_, _| Ok(Value::native("enum.auto", identity, 0))),
        ("enum", "unique") => native(super::enums::unique),
        _ => None,
    }
}

/// The element type whose class has this name in NumPy.
fn numpy_dtype(name: &str) -> Option<HostDtype> {
    match name {
        "single" => Some(HostDtype::Device(DType::F32)),
        "half" => Some(HostDtype::Device(DType::F16)),
        "double" => Some(HostDtype::F64),
        "bool" | "bool_" => Some(HostDtype::Device(DType::Bool)),
        "int_" | "intp" => Some(HostDtype::I64),
        name => HostDtype::from_name(name).filter(|dtype| dtype.is_of_numpy() && dtype.name() == name),
    }
}

/// The class of arrays.
pub(crate) fn array_class() -> Value {
    Value::object(NumpyClass::NdArray)
}

fn numpy_attr(interp: &mut Interp<'_>, name: &str, span: Span) -> Option<Value> {
    let native = |func: NativeFn| Some(Value::native(format!("numpy.{name}"), func, 0));
    match name {
        _ if let Some(dtype) = numpy_dtype(name) => Some(dtype::class(dtype)),
        _ if let Some(class) = NumpyClass::named(name) => Some(Value::object(class)),
        "issubdtype" => native(numpy_types::issubdtype),
        "True_" | "False_" => Some(scalar::value(HostDtype::Device(DType::Bool), Imm::Int(i64::from(name == "True_")))),
        "newaxis" => Some(Value::None),
        "Inf" | "infty" => Some(Value::Float(f64::INFINITY)),
        "NaN" => Some(Value::Float(f64::NAN)),
        "ceil_divide" => None,
        "finfo" => native(numpy_finfo),
        "iinfo" => native(iinfo),
        _ => match numpy::function(name)
            .or_else(|| numpy_functions::function(name))
            .or_else(|| numpy_places::function(name))
        {
            Some(function) => native(function),
            None => Some(interp.host(format!("numpy.{name}"), span)),
        },
    }
}

/// `@abstractmethod`
fn abstract_method(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let method = args.positional.into_iter().next().unwrap_or(Value::None);
    if let Value::Function(function) = &method {
        function.attrs.borrow_mut().set(crate::syntax::sym::isabstractmethod, Value::Bool(true));
    }
    Ok(method)
}

fn identity(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    Ok(args.positional.into_iter().next().unwrap_or(Value::None))
}

/// `@singledispatchmethod`
fn no_dispatch(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let message = "functools.singledispatchmethod is not supported by the built-in evaluator";
    Err(Raise::at("unsupported-syntax", message, args.span, "here")
        .help("call a function that is decorated with functools.singledispatch, or run the kernel through Python"))
}
