//! Built-in types: calling them, `type`, `isinstance`.

use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::foreign::NamedType;
use super::language::Hint;
use super::native::CallArgs;
use super::stdlib::scalar::NumpyScalar;
use super::value::*;
use crate::syntax::*;

impl Interp<'_> {
    /// Calls a built-in type.
    pub(crate) fn call_type(&mut self, kind: BuiltinType, mut args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let name = kind.name();
        let none = args.positional.is_empty() && args.keyword.is_empty();
        Ok(match kind {
            BuiltinType::Range => return self.make_range(args),
            BuiltinType::Dict => Value::dict(self.make_dict(args)?),
            BuiltinType::List | BuiltinType::Tuple | BuiltinType::Set | BuiltinType::FrozenSet => {
                args.positional_only(self, name, 0, 1)?;
                let is_set = matches!(kind, BuiltinType::Set | BuiltinType::FrozenSet);
                if let (true, Some(Value::Set(_) | Value::Dict(_))) = (is_set, args.positional.first()) {
                    return self.set_of(&args.positional[0], kind == BuiltinType::FrozenSet, span);
                }
                let items = match args.positional.first() {
                    Some(value) => self.iterate(value, span)?,
                    None => Vec::new(),
                };
                match kind {
                    BuiltinType::List => Value::list(items),
                    BuiltinType::Tuple => Value::tuple(items),
                    _ => {
                        let made = self.make_set(items, span)?;
                        if let Value::Set(set) = &made {
                            set.borrow_mut().is_frozen = kind == BuiltinType::FrozenSet;
                        }
                        return Ok(made);
                    }
                }
            }
            BuiltinType::Str => {
                args.positional_only(self, name, 0, 1)?;
                match args.positional.first() {
                    Some(value) => Value::str(self.str(value)?),
                    None => Value::str(""),
                }
            }
            BuiltinType::Bool => {
                args.positional_only(self, name, 0, 1)?;
                match args.positional.first() {
                    Some(value) => Value::Bool(self.truth(value, span)?),
                    None => Value::Bool(false),
                }
            }
            BuiltinType::Int | BuiltinType::Float if none => {
                if kind == BuiltinType::Int {
                    Value::Int(0)
                } else {
                    Value::Float(0.0)
                }
            }
            BuiltinType::Int => return self.make_int(args),
            BuiltinType::Float => {
                args.positional_only(self, name, 1, 1)?;
                match &args.positional[0] {
                    Value::Str(text) => match text.trim().to_lowercase().replace('_', "").parse::<f64>() {
                        Ok(x) => Value::Float(x),
                        Err(_) => {
                            return Err(Raise::at(
                                "value-error",
                                format!("`{text}` is not a number"),
                                span,
                                "in this call",
                            ));
                        }
                    },
                    value => match value.as_float().or_else(|| self.as_index(value).map(|x| x as f64)) {
                        Some(x) => Value::Float(x),
                        None => return self.convert(value, sym::float_, "a float", span),
                    },
                }
            }
            BuiltinType::Slice => {
                args.positional_only(self, name, 1, 3)?;
                let one = args.positional.len() == 1;
                let mut parts = args.positional.into_iter();
                let [a, b, c] = [parts.next(), parts.next(), parts.next()].map(|p| p.unwrap_or(Value::None));
                // `slice(n)` ends at n; `slice(n, None)` starts at n.
                Value::Slice(Rc::new(match one {
                    true => Slice { start: Value::None, stop: a, step: Value::None },
                    false => Slice { start: a, stop: b, step: c },
                }))
            }
            BuiltinType::Type => {
                args.positional_only(self, name, 1, 1)?;
                self.type_of(&args.positional[0], span)
            }
            BuiltinType::Object => self.host("object()".into(), span),
            BuiltinType::NamedTuple => return super::stdlib::namedtuple(self, args),
            _ => {
                args.positional.clear();
                return Err(Raise::at("type-error", format!("`{name}` cannot be called"), span, "in this call"));
            }
        })
    }

    pub(crate) fn convert(&mut self, value: &Value, method: Symbol, what: &str, span: Span) -> EvalResult<Value> {
        if let Value::Instance(instance) = value
            && let Some(function) = instance.class.lookup(method)
        {
            let result = self.call_with(&function, value.clone(), CallArgs::none(span))?;
            return self.checked_number(result, method, span);
        }
        if let Value::Host(host) = value {
            return if self.in_kernel { Err(self.host_error(host, span)) } else { Ok(value.clone()) };
        }
        Err(Raise::at("type-error", format!("{} cannot be turned into {what}", value.a_type()), span, "in this call"))
    }

    fn make_int(&mut self, mut args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let base = args.take_keyword(sym::base);
        args.positional_only(self, "int", 1, 2)?;
        let base = args.positional.get(1).cloned().or(base).and_then(|b| b.as_int());
        let given = &args.positional[0];
        match given.number().unwrap_or(given) {
            Value::Str(text) => {
                let clean = text.trim().replace('_', "").to_lowercase();
                let (sign, digits) = clean.strip_prefix('-').map_or((1, &*clean), |rest| (-1, rest));
                let (radix, digits) = match (base, digits.get(..2)) {
                    (Some(16 | 0), Some("0x")) => (16, &digits[2..]),
                    (Some(2 | 0), Some("0b")) => (2, &digits[2..]),
                    (Some(8 | 0), Some("0o")) => (8, &digits[2..]),
                    (Some(base @ 2..=36), _) => (base as u32, digits),
                    _ => (10, digits),
                };
                match i64::from_str_radix(digits, radix) {
                    Ok(x) => Ok(Value::Int(sign * x)),
                    Err(_) => {
                        Err(Raise::at("value-error", format!("`{text}` is not an integer"), span, "in this call"))
                    }
                }
            }
            Value::Float(x) if x.is_nan() => {
                Err(Raise::at("value-error", format!("{x} cannot be turned into an int"), span, "in this call"))
            }
            Value::Float(x) if x.abs() >= 9.2e18 => {
                Err(Raise::at("integer-overflow", format!("{x} does not fit in 64 bits"), span, "in this call"))
            }
            Value::Float(x) => Ok(Value::Int(x.trunc() as i64)),
            Value::Instance(instance) if instance.class.lookup(sym::int_).is_some() => {
                self.convert(&args.positional[0], sym::int_, "an int", span)
            }
            value => match self.position_of(value, span)? {
                Some(x) => Ok(Value::Int(x)),
                None => self.convert(value, sym::int_, "an int", span),
            },
        }
    }

    /// `range(...)`
    pub(crate) fn make_range(&mut self, args: CallArgs) -> EvalResult<Value> {
        args.positional_only(self, "range", 1, 3)?;
        let mut parts = [0i64; 3];
        for (part, value) in parts.iter_mut().zip(&args.positional) {
            *part = match (self.position_of(value, args.span)?, value) {
                (Some(x), _) => x,
                (None, Value::Host(_)) if !self.in_kernel => return Ok(value.clone()),
                (None, Value::Object(o)) if o.unknown_number().is_some() => {
                    return Err(Raise::at(
                        "type-error",
                        format!("range() needs ints, but this bound is {}", value.a_type()),
                        args.span,
                        "in this call",
                    )
                    .help(self.dialect.hint(Hint::DeviceRange)));
                }
                (None, Value::Float(x)) if x.fract() == 0.0 => {
                    return Err(Raise::at(
                        "type-error",
                        format!("range() needs ints, {x:?} is a float"),
                        args.span,
                        "in this call",
                    )
                    .help("use `//` instead of `/`, or wrap it in int()"));
                }
                (None, other) => {
                    return Err(Raise::at(
                        "type-error",
                        format!("range() needs ints, not {}", other.a_type()),
                        args.span,
                        "in this call",
                    ));
                }
            };
        }
        let range = match args.positional.len() {
            1 => Range { start: 0, stop: parts[0], step: 1 },
            2 => Range { start: parts[0], stop: parts[1], step: 1 },
            _ => Range { start: parts[0], stop: parts[1], step: parts[2] },
        };
        if range.step == 0 {
            return Err(Raise::at("value-error", "the step of a range must not be 0", args.span, "in this call"));
        }
        Ok(Value::Range(Rc::new(range)))
    }

    /// `type(value)`
    pub(crate) fn type_of(&self, value: &Value, span: Span) -> Value {
        Value::Type(match value {
            Value::Instance(instance) => return Value::Class(instance.class.clone()),
            Value::EnumMember(member) => return Value::Class(member.class.clone()),
            Value::Exception(exception) => return Value::ExceptionClass(exception.0),
            Value::Object(object) => {
                return object.class().unwrap_or_else(|| Value::object(NamedType(object.type_name())));
            }
            Value::None => BuiltinType::NoneType,
            Value::Bool(_) => BuiltinType::Bool,
            Value::Int(_) => BuiltinType::Int,
            Value::Float(_) => BuiltinType::Float,
            Value::Str(_) => BuiltinType::Str,
            Value::Tuple(_) => BuiltinType::Tuple,
            Value::List(_) => BuiltinType::List,
            Value::Dict(_) => BuiltinType::Dict,
            Value::Set(set) if set.borrow().is_frozen => BuiltinType::FrozenSet,
            Value::Set(_) => BuiltinType::Set,
            Value::Range(_) => BuiltinType::Range,
            Value::Slice(_) => BuiltinType::Slice,
            Value::Ellipsis => BuiltinType::Ellipsis,
            Value::Class(_) | Value::Type(_) | Value::ExceptionClass(_) => BuiltinType::Type,
            Value::Function(_)
            | Value::Native(_)
            | Value::BoundMethod(_)
            | Value::Kernel(_)
            | Value::Partial(_)
            | Value::Cached(_)
            | Value::BoundBuiltin(_) => BuiltinType::Function,
            other => {
                return Value::Host(Rc::new(Host {
                    path: format!("type of {}", other.a_type()),
                    reason: None,
                    span: Some(span),
                }));
            }
        })
    }

    /// `isinstance(value, class)`
    pub(crate) fn is_instance(&mut self, value: &Value, class: &Value, span: Span) -> EvalResult<bool> {
        Ok(match class {
            Value::Tuple(classes) => {
                for class in classes.iter() {
                    if self.is_instance(value, class, span)? {
                        return Ok(true);
                    }
                }
                false
            }
            Value::Class(class) => match value {
                Value::Instance(instance) => instance.class.is_subclass(class),
                Value::EnumMember(member) => member.class.is_subclass(class),
                _ => false,
            },
            Value::None => value.is_none(),
            Value::Type(kind) => match (kind, value) {
                (BuiltinType::Object, _) => true,
                (BuiltinType::Int, Value::Bool(_)) => true,
                // Of NumPy's types, only float64 derives from a Python type.
                (BuiltinType::Float, scalar) if NumpyScalar::is_float64(scalar) => true,
                (kind, Value::EnumMember(member)) => member.kind().is_of(*kind),
                (kind, Value::Instance(instance)) if instance.class.builtin_base() == Some(*kind) => true,
                (BuiltinType::Tuple, Value::Instance(_)) => self.named_tuple_items(value).is_some(),
                _ => matches!(self.type_of(value, span), Value::Type(of) if of == *kind),
            },
            Value::ExceptionClass(name) => match value {
                Value::Exception(exception) => self.is_exception(exception.0, *name),
                Value::Instance(i) => i.class.exception_base().is_some_and(|base| self.is_exception(base, *name)),
                _ => false,
            },
            // `np.ndarray`, `torch.Tensor`: no value in a kernel is an instance of them.
            Value::Host(_) => false,
            Value::Object(object) => object.has_instance(value),
            _ => false,
        })
    }
}
