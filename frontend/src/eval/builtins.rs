//! Built-in functions and types.

use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::arithmetic::{inverse_modulo, power_modulo, round_float, round_int};
use super::error::{EvalResult, Raise};
use super::generator::Sent;
use super::iterator::{Iter, Source};
use super::native::{CallArgs, NativeFn};
use super::stdlib::{self, dtype, scalar};
use super::value::*;
use crate::host::HostDtype;
use crate::syntax::*;

/// Names of exception classes.
const EXCEPTIONS: &[&str] = &[
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "Exception",
    "ImportError",
    "IndexError",
    "KeyError",
    "LookupError",
    "ModuleNotFoundError",
    "NameError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "RecursionError",
    "RuntimeError",
    "StopIteration",
    "SyntaxError",
    "TypeError",
    "ValueError",
    "ZeroDivisionError",
    "FileNotFoundError",
    "GeneratorExit",
    "Warning",
    "UserWarning",
    "DeprecationWarning",
    "FutureWarning",
    "RuntimeWarning",
];

const TYPES: &[BuiltinType] = &[
    BuiltinType::Int,
    BuiltinType::Float,
    BuiltinType::Bool,
    BuiltinType::Str,
    BuiltinType::Tuple,
    BuiltinType::List,
    BuiltinType::Dict,
    BuiltinType::Set,
    BuiltinType::FrozenSet,
    BuiltinType::Slice,
    BuiltinType::Range,
    BuiltinType::Object,
    BuiltinType::Type,
];

const FUNCTIONS: &[(&str, NativeFn)] = &[
    ("len", len),
    ("abs", abs),
    ("min", |interp, args| extremum(interp, args, "min", CmpOp::Lt)),
    ("max", |interp, args| extremum(interp, args, "max", CmpOp::Gt)),
    ("sum", sum),
    ("round", round),
    ("divmod", divmod),
    ("pow", pow),
    ("any", |interp, args| any_all(interp, args, true)),
    ("all", |interp, args| any_all(interp, args, false)),
    ("enumerate", enumerate),
    ("zip", zip),
    ("map", map),
    ("filter", filter),
    ("sorted", sorted),
    ("reversed", reversed),
    ("isinstance", isinstance),
    ("issubclass", issubclass),
    ("hasattr", hasattr),
    ("getattr", getattr),
    ("setattr", setattr),
    ("callable", callable),
    ("ascii", |interp, args| {
        args.positional_only(interp, "ascii", 1, 1)?;
        Ok(Value::str(interp.ascii(&args.positional[0])?))
    }),
    ("repr", |interp, args| {
        args.positional_only(interp, "repr", 1, 1)?;
        Ok(Value::str(interp.repr(&args.positional[0])?))
    }),
    ("format", |interp, args| {
        args.positional_only(interp, "format", 1, 2)?;
        let spec = match args.positional.get(1) {
            Some(Value::Str(spec)) => spec.clone(),
            _ => "".into(),
        };
        Ok(Value::str(interp.format_value(&args.positional[0], &spec, args.span)?))
    }),
    ("hash", |interp, args| {
        args.positional_only(interp, "hash", 1, 1)?;
        interp.hash_of(&args.positional[0], args.span).map(Value::Int)
    }),
    ("id", id),
    ("print", print),
    ("chr", |interp, args| {
        args.positional_only(interp, "chr", 1, 1)?;
        let c = args.positional[0].as_int().and_then(|x| u32::try_from(x).ok()).and_then(char::from_u32);
        c.map(|c| Value::str(c.to_string()))
            .ok_or_else(|| Raise::at("value-error", "chr() needs a character code", args.span, "here"))
    }),
    ("ord", |interp, args| {
        args.positional_only(interp, "ord", 1, 1)?;
        match &args.positional[0] {
            Value::Str(text) if text.chars().count() == 1 => {
                Ok(Value::Int(text.chars().next().map_or(0, |c| c as i64)))
            }
            _ => Err(Raise::at("type-error", "ord() needs one character", args.span, "here")),
        }
    }),
    ("hex", |interp, args| radix(interp, args, "hex", "#x")),
    ("bin", |interp, args| radix(interp, args, "bin", "#b")),
    ("oct", |interp, args| radix(interp, args, "oct", "#o")),
    ("iter", |interp, args| {
        args.positional_only(interp, "iter", 1, 2)?;
        if let [function, end] = &args.positional[..] {
            return Ok(Iter::value("callable_iterator", Source::Until(function.clone(), end.clone())));
        }
        interp.iter(&args.positional[0], args.span).map(Value::Iterator)
    }),
    ("next", |interp, args| {
        args.positional_only(interp, "next", 1, 2)?;
        let iterator = interp.as_iterator(&args.positional[0], args.span)?;
        match args.positional.get(1) {
            Some(default) => Ok(interp.next(&iterator, args.span)?.unwrap_or_else(|| default.clone())),
            None => interp.send(&iterator, Sent::Value(Value::None), args.span),
        }
    }),
    ("vars", |interp, args| {
        args.positional_only(interp, "vars", 1, 1)?;
        interp.get_attr(&args.positional[0], sym::dict, args.span)
    }),
    ("staticmethod", |interp, args| descriptor(interp, args, "staticmethod", Descriptor::Static)),
    ("classmethod", |interp, args| descriptor(interp, args, "classmethod", Descriptor::Class)),
    ("property", |interp, args| {
        descriptor(interp, args, "property", |get| Descriptor::Property { get, set: None, delete: None })
    }),
];

impl Interp<'_> {
    /// The built-in with this name.
    pub(crate) fn builtin(&self, name: &str) -> Option<Value> {
        if let Some(kind) = TYPES.iter().find(|t| t.name() == name) {
            return Some(Value::Type(*kind));
        }
        if let Some((_, func)) = FUNCTIONS.iter().find(|(n, _)| *n == name) {
            return Some(Value::native(name, *func, 0));
        }
        if EXCEPTIONS.contains(&name) {
            return self.names.find(name).map(Value::ExceptionClass);
        }
        match name {
            "super" => Some(Value::Type(BuiltinType::Object)),
            "NotImplemented" => Some(Value::NotImplemented),
            "__path__" | "__doc__" | "__package__" | "__spec__" | "__all__" => Some(Value::None),
            "__debug__" => Some(Value::Bool(true)),
            "open" | "input" | "exit" | "quit" | "globals" | "locals" | "eval" | "exec" | "bytes" | "bytearray"
            | "complex" | "memoryview" | "dir" | "compile" | "__import__" | "delattr" | "aiter" | "anext"
            | "help" => Some(Value::Host(Rc::new(Host {
                path: name.to_owned(),
                reason: Some(format!("the built-in `{name}` is not available in NKI")),
                span: None,
            }))),
            "breakpoint" => Some(Value::Host(Rc::new(Host {
                path: name.to_owned(),
                reason: Some("the built-in evaluator has no debugger: choose Python as the frontend, and breakpoint() stops in its own".into()),
                span: None,
            }))),
            _ => None,
        }
    }
}

fn len(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "len", 1, 1)?;
    let value = &args.positional[0];
    let n = match value {
        Value::List(list) => list.items.borrow().len(),
        Value::Tuple(items) => items.len(),
        Value::Str(text) => text.chars().count(),
        Value::Dict(dict) | Value::Set(dict) => dict.borrow().len(),
        Value::Range(range) => return Ok(Value::Int(range.len())),
        Value::Class(class) => class.members.borrow().len(),
        Value::EnumMember(member) => match interp.flags_in(member) {
            Some(flags) => flags.len(),
            None if member.kind().mixin.is_some() => {
                return len(interp, CallArgs::of([member.value.clone()], args.span));
            }
            None => return Err(no_length(value, args.span)),
        },
        Value::Instance(instance) => {
            if let Some(method) = instance.class.lookup(sym::len) {
                let length = interp.call_with(&method, value.clone(), CallArgs::none(args.span))?;
                return interp.checked_length(length, args.span);
            }
            match interp.named_tuple_items(value) {
                Some(items) => items.len(),
                None => return Err(no_length(value, args.span)),
            }
        }
        Value::Host(host) => {
            return if interp.in_kernel { Err(interp.host_error(host, args.span)) } else { Ok(value.clone()) };
        }
        Value::Object(object) => return object.len(args.span).map(Value::Int),
        other => return Err(no_length(other, args.span)),
    };
    Ok(Value::Int(n as i64))
}

fn no_length(value: &Value, span: Span) -> Box<Raise> {
    Raise::at("type-error", format!("{} has no length", value.a_type()), span, "in this call")
}

fn abs(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "abs", 1, 1)?;
    if let Some(magnitude) = stdlib::magnitude(&args.positional[0]) {
        return Ok(magnitude);
    }
    match &args.positional[0] {
        Value::Float(x) => Ok(Value::Float(x.abs())),
        value => match interp.as_index(value) {
            Some(x) if x < 0 => interp.unary(UnaryOp::Neg, &Value::Int(x), args.span),
            Some(x) => Ok(Value::Int(x)),
            None => interp.convert(value, sym::abs, "its absolute value", args.span),
        },
    }
}

fn extremum(interp: &mut Interp<'_>, mut args: CallArgs, name: &str, op: CmpOp) -> EvalResult<Value> {
    let span = args.span;
    let key = args.take_keyword(sym::key).filter(|k| !k.is_none());
    let default = args.take_keyword(sym::default);
    args.positional_only(interp, name, 1, usize::MAX)?;
    // Fast path for two integers, without a list.
    if let ([Value::Int(a), Value::Int(b)], None) = (args.positional.as_slice(), &key) {
        return Ok(Value::Int(if op == CmpOp::Lt { *a.min(b) } else { *a.max(b) }));
    }
    let items = match args.positional.as_slice() {
        [items] => interp.iter(items, span)?,
        several => Iter::new("tuple_iterator", Source::Items(several.into(), 0)),
    };
    let mut best: Option<(Value, Value)> = None;
    while let Some(item) = interp.next(&items, span)? {
        interp.step(span)?;
        let rank = match &key {
            Some(key) => interp.call(key, CallArgs::of([item.clone()], span))?,
            None => item.clone(),
        };
        let better = match &best {
            None => true,
            Some((old, _)) => {
                let value = interp.compare(op, &rank, old, span)?;
                interp.truth(&value, span)?
            }
        };
        if better {
            best = Some((rank, item));
        }
    }
    match (best, default) {
        (Some((_, item)), _) => Ok(item),
        (None, Some(default)) => Ok(default),
        (None, None) => {
            Err(Raise::at("value-error", format!("{name}() of an empty sequence"), span, "the sequence is empty"))
        }
    }
}

fn sum(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [items, start] = args.bind(interp, "sum", ["iterable", "start"], 1)?;
    let mut total = start.unwrap_or(Value::Int(0));
    let items = interp.iter(&items.unwrap_or(Value::None), span)?;
    while let Some(item) = interp.next(&items, span)? {
        interp.step(span)?;
        total = interp.binary(BinOp::Add, &total, &item, span)?;
    }
    Ok(total)
}

fn round(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [number, digits] = args.bind(interp, "round", ["number", "ndigits"], 1)?;
    let number = number.unwrap_or(Value::None);
    if let Value::Instance(instance) = &number
        && let Some(method) = instance.class.lookup(sym::round)
    {
        return interp.call_with(&method, number.clone(), CallArgs::of(digits, span));
    }
    if let Some(rounded) = scalar::round(interp, &number, digits.as_ref(), span)? {
        return Ok(rounded);
    }
    let digits = match digits.filter(|d| !d.is_none()) {
        Some(value) => Some(interp.as_index(&value).ok_or_else(|| {
            let message = format!("round() needs the number of digits as an int, not {}", value.a_type());
            Raise::at("type-error", message, span, "in this call")
        })?),
        None => None,
    };
    // No float has more than 400 digits before the point.
    let places = |n: i64| n.unsigned_abs().min(400) as u32;
    match (&number, digits) {
        (Value::Float(x), None) => {
            let r = x.round_ties_even();
            if r.is_finite() && r.abs() < 9.2e18 {
                Ok(Value::Int(r as i64))
            } else {
                let slug = if x.is_nan() { "value-error" } else { "integer-overflow" };
                Err(Raise::at(slug, format!("{x} cannot be rounded to an int"), span, "in this call"))
            }
        }
        // No float has more than 1100 digits after the point.
        (Value::Float(x), Some(n)) if n >= 0 && x.is_finite() => {
            Ok(Value::Float(format!("{x:.*}", n.min(1100) as usize).parse().unwrap_or(*x)))
        }
        (Value::Float(x), Some(n)) => match round_float(*x, places(n)) {
            r if r.is_infinite() && x.is_finite() => Err(Raise::at(
                "float-overflow",
                format!("round({x:?}, {n}) is too large for a float"),
                span,
                "in this call",
            )),
            r => Ok(Value::Float(r)),
        },
        (other, digits) => match (interp.as_index(other), digits) {
            (Some(x), Some(n)) if n < 0 => round_int(x, places(n)).map(Value::Int).ok_or_else(|| {
                Raise::at("integer-overflow", format!("round({x}, {n}) does not fit in 64 bits"), span, "in this call")
            }),
            (Some(x), _) => Ok(Value::Int(x)),
            (None, _) => Err(Raise::at(
                "type-error",
                format!("round() does not work on {}", other.a_type()),
                span,
                "in this call",
            )),
        },
    }
}

fn divmod(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "divmod", 2, 2)?;
    let (a, b) = (&args.positional[0], &args.positional[1]);
    for (receiver, method, other) in [(a, "__divmod__", b), (b, "__rdivmod__", a)] {
        let method = interp.sym(method);
        let Some(method) = receiver.own_class().and_then(|class| class.lookup(method)) else { continue };
        let answer = interp.call_with(&method, receiver.clone(), CallArgs::of([other.clone()], args.span))?;
        if !matches!(answer, Value::NotImplemented) {
            return Ok(answer);
        }
    }
    let has_none = |value: &Value| matches!(value, Value::Instance(instance) if instance.base_value().is_none());
    if has_none(a) || has_none(b) {
        return Err(interp.bad_operands("divmod()", a, b, args.span));
    }
    let quotient = interp.binary(BinOp::FloorDiv, a, b, args.span)?;
    let rest = interp.binary(BinOp::Mod, a, b, args.span)?;
    Ok(Value::tuple(vec![quotient, rest]))
}

fn pow(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [base, exponent, modulus] = args.bind(interp, "pow", ["base", "exp", "mod"], 2)?;
    let (base, exponent) = (base.unwrap_or(Value::None), exponent.unwrap_or(Value::None));
    let Some(modulus) = modulus.filter(|m| !m.is_none()) else {
        return interp.binary(BinOp::Pow, &base, &exponent, span);
    };
    let ints = (interp.as_index(&base), interp.as_index(&exponent), interp.as_index(&modulus));
    let wrong = |slug, message: &str| Err(Raise::at(slug, message, span, "in this call"));
    match ints {
        (Some(_), Some(_), Some(0)) => wrong("value-error", "pow(): the modulus is 0"),
        (Some(x), Some(n), Some(m)) if n < 0 => match inverse_modulo(x, m) {
            Some(inverse) => Ok(Value::Int(power_modulo(inverse, n.unsigned_abs(), m))),
            None => wrong("value-error", "pow(): the base is not invertible for the given modulus"),
        },
        (Some(x), Some(n), Some(m)) => Ok(Value::Int(power_modulo(x, n as u64, m))),
        _ => wrong("type-error", "pow() with a modulus needs ints"),
    }
}

fn any_all(interp: &mut Interp<'_>, args: CallArgs, stop_at: bool) -> EvalResult<Value> {
    let span = args.span;
    args.positional_only(interp, if stop_at { "any" } else { "all" }, 1, 1)?;
    let items = interp.iter(&args.positional[0], span)?;
    while let Some(item) = interp.next(&items, span)? {
        if interp.truth(&item, span)? == stop_at {
            return Ok(Value::Bool(stop_at));
        }
    }
    Ok(Value::Bool(!stop_at))
}

fn enumerate(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [items, start] = args.bind(interp, "enumerate", ["iterable", "start"], 1)?;
    let start = start.map_or(Ok(0), |start| integer(interp, &start, "enumerate", span))?;
    let items = interp.iter(&items.unwrap_or(Value::None), span)?;
    Ok(Iter::value("enumerate", Source::Enumerate(items, start)))
}

fn zip(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let strict = args.take_keyword(sym::strict);
    let strict = strict.map_or(Ok(false), |s| interp.truth(&s, args.span))?;
    args.positional_only(interp, "zip", 0, usize::MAX)?;
    let columns = interp.iterators(&args.positional, args.span)?;
    Ok(Iter::value("zip", Source::Zip(columns, strict)))
}

fn map(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "map", 2, usize::MAX)?;
    let columns = interp.iterators(&args.positional[1..], args.span)?;
    Ok(Iter::value("map", Source::Map(args.positional[0].clone(), columns)))
}

fn filter(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "filter", 2, 2)?;
    let items = interp.iter(&args.positional[1], args.span)?;
    Ok(Iter::value("filter", Source::Filter(args.positional[0].clone(), items, true)))
}

fn sorted(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    if args.positional.len() != 1 {
        return Err(Raise::at("arguments", "sorted() takes one sequence", args.span, "in this call"));
    }
    let items = interp.iterate(&args.positional[0], args.span)?;
    args.positional.clear();
    Ok(Value::list(interp.sorted("sorted", items, args)?))
}

fn reversed(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "reversed", 1, 1)?;
    if let Value::Instance(instance) = &args.positional[0] {
        let method = interp.sym("__reversed__");
        if let Some(method) = instance.class.lookup(method) {
            return interp.call_with(&method, args.positional[0].clone(), CallArgs::none(args.span));
        }
    }
    let mut items = interp.iterate(&args.positional[0], args.span)?;
    items.reverse();
    Ok(Iter::of("reversed", items))
}

fn isinstance(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "isinstance", 2, 2)?;
    interp.is_instance(&args.positional[0], &args.positional[1], args.span).map(Value::Bool)
}

fn issubclass(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "issubclass", 2, 2)?;
    Ok(Value::Bool(match (&args.positional[0], &args.positional[1]) {
        (Value::Class(a), Value::Class(b)) => a.is_subclass(b),
        (_, Value::Type(BuiltinType::Object)) => true,
        (class, Value::Object(base)) => base.has_subclass(class),
        (class, Value::Type(BuiltinType::Float)) if dtype::host_of(class) == Some(HostDtype::F64) => true,
        (Value::Type(a), Value::Type(b)) => a == b || (*a, *b) == (BuiltinType::Bool, BuiltinType::Int),
        (Value::Class(class), Value::Type(base)) => {
            class.builtin_base() == Some(*base) || class.enum_kind().is_some_and(|kind| kind.is_of(*base))
        }
        (Value::ExceptionClass(a), Value::ExceptionClass(b)) => interp.is_exception(*a, *b),
        (Value::Class(class), Value::ExceptionClass(base)) => {
            class.exception_base().is_some_and(|own| interp.is_exception(own, *base))
        }
        (class, Value::Tuple(bases)) => {
            let mut found = false;
            for base in bases.iter() {
                let one = CallArgs::of([class.clone(), base.clone()], args.span);
                let derives = issubclass(interp, one)?;
                found |= interp.truth(&derives, args.span)?;
            }
            found
        }
        _ => false,
    }))
}

/// The attribute name passed to `getattr` and similar functions.
fn attr_name(interp: &mut Interp<'_>, args: &CallArgs, function: &str, min: usize, max: usize) -> EvalResult<Symbol> {
    args.positional_only(interp, function, min, max)?;
    match &args.positional[1] {
        Value::Str(name) => Ok(interp.sym(name)),
        other => Err(Raise::at(
            "type-error",
            format!("{function}() needs the name as a str, not {}", other.a_type()),
            args.span,
            "in this call",
        )),
    }
}

/// An attribute; `None` if there is none, or if the class's own code raises an `AttributeError`.
fn found_attr(interp: &mut Interp<'_>, base: &Value, name: Symbol, span: Span) -> EvalResult<Option<Value>> {
    if !matches!(base, Value::Instance(_) | Value::EnumMember(_) | Value::Class(_) | Value::Kernel(_)) {
        let is_there = |value: &Value| !matches!(value, Value::Object(object) if object.is_absent());
        return Ok(interp.find_attr(base, name, span)?.filter(is_there));
    }
    let (depth, trail) = (interp.stack.len(), interp.steps.len());
    match interp.handling_errors(|interp| interp.find_attr(base, name, span)) {
        Err(raise) if !raise.fatal && interp.is_attribute_error(&raise) => {
            interp.stack.truncate(depth);
            interp.pop_steps(trail);
            Ok(None)
        }
        found => found,
    }
}

fn hasattr(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let name = attr_name(interp, &args, "hasattr", 2, 2)?;
    let base = &args.positional[0];
    if let Value::Object(object) = base {
        return Ok(Value::Bool(interp.object_has(&**object, name)));
    }
    if matches!(base, Value::Host(_)) {
        interp.guess(args.span, "assumed to be false");
        return Ok(Value::Bool(false));
    }
    let found = found_attr(interp, base, name, args.span)?;
    if let Some(Value::Host(_)) = &found {
        interp.guess(args.span, "assumed to be true");
    }
    Ok(Value::Bool(found.is_some()))
}

fn getattr(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let name = attr_name(interp, &args, "getattr", 2, 3)?;
    let base = &args.positional[0];
    if let Some(default) = args.positional.get(2) {
        if let Value::Object(object) = base
            && !interp.object_has(&**object, name)
        {
            return Ok(default.clone());
        }
        return Ok(found_attr(interp, base, name, args.span)?.unwrap_or_else(|| default.clone()));
    }
    interp.get_attr(base, name, args.span)
}

fn setattr(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let name = attr_name(interp, &args, "setattr", 3, 3)?;
    interp.set_attr(&args.positional[0], name, args.positional[2].clone(), args.span)?;
    Ok(Value::None)
}

fn callable(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "callable", 1, 1)?;
    Ok(Value::Bool(match &args.positional[0] {
        Value::Instance(instance) => instance.class.lookup(sym::call).is_some(),
        Value::Descriptor(descriptor) => matches!(**descriptor, Descriptor::Method(_)),
        Value::Function(_)
        | Value::Native(_)
        | Value::BoundMethod(_)
        | Value::BoundBuiltin(_)
        | Value::Kernel(_)
        | Value::Cached(_)
        | Value::Partial(_) => true,
        Value::Class(_) | Value::Type(_) | Value::ExceptionClass(_) => true,
        Value::Object(object) => object.is_callable(),
        _ => false,
    }))
}

fn id(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "id", 1, 1)?;
    Ok(Value::Int(interp.number_of(&args.positional[0])))
}

fn print(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let separator = print_option(&mut args, "sep", sym::sep, " ")?;
    let end = print_option(&mut args, "end", sym::end, "\n")?;
    // All prints of a kernel go to one place.
    for ignored in ["file", "flush"] {
        let name = interp.sym(ignored);
        args.take_keyword(name);
    }
    args.positional_only(interp, "print", 0, usize::MAX)?;
    let mut line = String::new();
    for (index, value) in args.positional.iter().enumerate() {
        if index > 0 {
            line.push_str(&separator);
        }
        line.push_str(&interp.str(value)?);
        interp.charge(line.len(), args.span)?;
    }
    interp.print_part(line, &end);
    Ok(Value::None)
}

/// The text of a keyword of `print`.
fn print_option(args: &mut CallArgs, name: &str, keyword: Symbol, default: &str) -> EvalResult<Rc<str>> {
    match &args.take_keyword(keyword) {
        None | Some(Value::None) => Ok(default.into()),
        Some(Value::Str(text)) => Ok(text.clone()),
        Some(other) => {
            let message = format!("print: `{name}` takes a string or None, got {}", other.a_type());
            Err(Raise::at("type-error", message, args.span, "in this call"))
        }
    }
}

/// The integer that a function takes, also from `__index__`.
fn integer(interp: &mut Interp<'_>, value: &Value, function: &str, span: Span) -> EvalResult<i64> {
    interp.position_of(value, span)?.ok_or_else(|| {
        let message = format!("{function}() takes an int, got {}", value.a_type());
        Raise::at("type-error", message, span, "in this call")
    })
}

fn radix(interp: &mut Interp<'_>, args: CallArgs, name: &str, spec: &str) -> EvalResult<Value> {
    args.positional_only(interp, name, 1, 1)?;
    let number = Value::Int(integer(interp, &args.positional[0], name, args.span)?);
    Ok(Value::str(interp.format_value(&number, spec, args.span)?))
}

fn descriptor(
    interp: &mut Interp<'_>,
    mut args: CallArgs,
    name: &str,
    make: impl Fn(Value) -> Descriptor,
) -> EvalResult<Value> {
    args.positional_only(interp, name, 1, 2)?;
    let setter = (args.positional.len() == 2).then(|| args.positional.pop()).flatten();
    let function = args.positional.pop().unwrap_or(Value::None);
    Ok(Value::Descriptor(Rc::new(match (make(function), setter) {
        (Descriptor::Property { get, .. }, Some(set)) => Descriptor::Property { get, set: Some(set), delete: None },
        (other, _) => other,
    })))
}
