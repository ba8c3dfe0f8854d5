//! `dataclasses`, named tuples, `copy`, properties.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use super::super::Interp;
use super::super::error::{EvalResult, Raise};
use super::super::native::CallArgs;
use super::super::value::*;
use super::math::record;
use crate::syntax::*;

pub(super) fn dataclass(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
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
        Some(other) => {
            Err(Raise::at("type-error", format!("dataclass needs a class, not {}", other.a_type()), args.span, "here"))
        }
    }
}

pub(super) fn field(_: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
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

pub(super) fn instance_arg(interp: &Interp<'_>, args: &CallArgs, name: &str) -> EvalResult<Rc<Instance>> {
    match args.positional.first() {
        Some(Value::Instance(instance)) => Ok(instance.clone()),
        Some(Value::Host(host)) => Err(interp.host_error(host, args.span)),
        _ => {
            Err(Raise::at("type-error", format!("{name}() needs an object of a dataclass"), args.span, "in this call"))
        }
    }
}

pub(super) fn replace(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let instance = instance_arg(interp, &args, "replace")?;
    interp.replace_fields(&instance, &args.keyword, args.span)
}

pub(super) fn asdict(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let instance = instance_arg(interp, &args, "asdict")?;
    let value = interp.synthesized_method(&Value::Instance(instance), sym::asdict, &args)?;
    Ok(value.unwrap_or(Value::None))
}

pub(super) fn fields(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let class = match args.positional.first() {
        Some(Value::Class(class)) => class.clone(),
        _ => instance_arg(interp, &args, "fields")?.class.clone(),
    };
    let names: Vec<Rc<str>> = class.fields.borrow().iter().map(|f| interp.name(f.name)).collect();
    Ok(Value::tuple(names.into_iter().map(|n| record(interp, "Field", &[("name", Value::Str(n))])).collect::<Vec<_>>()))
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
        lenient: false,
        def: None,
        span,
    });
    let _ = class.mro.set(vec![class.clone()]);
    Ok(Value::Class(class))
}

pub(super) fn copy(interp: &mut Interp<'_>, args: CallArgs, deep: bool) -> EvalResult<Value> {
    args.positional_only(interp, "copy", 1, 2)?;
    Ok(copied(&args.positional[0], deep, 0))
}

pub(super) fn copied(value: &Value, deep: bool, depth: u32) -> Value {
    let inner = |v: &Value| {
        if deep && depth < crate::eval::compare::MAX_DEPTH { copied(v, true, depth + 1) } else { v.clone() }
    };
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

pub(super) fn set_property(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let mut parts = args.positional.into_iter();
    let get = parts.next().unwrap_or(Value::None);
    Ok(Value::Descriptor(Rc::new(Descriptor::Property { get, set: parts.next() })))
}

pub(super) fn object_setattr(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    if let [Value::Instance(instance), Value::Str(name), value] = args.positional.as_slice() {
        let name = interp.sym(name);
        instance.attrs.borrow_mut().set(name, value.clone());
    }
    Ok(Value::None)
}

pub(super) fn fromkeys(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "fromkeys", 1, 2)?;
    let value = args.positional.get(1).cloned().unwrap_or(Value::None);
    let mut dict = Dict::default();
    for item in interp.iterate(&args.positional[0], args.span)? {
        dict.set(interp.key(&item, true, args.span)?, item, value.clone());
    }
    Ok(Value::dict(dict))
}
