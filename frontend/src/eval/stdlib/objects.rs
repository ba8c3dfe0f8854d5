//! `dataclasses`, named tuples, `copy`, properties.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use nki_diag::Span;
use rustc_hash::FxHashMap;

use super::super::Interp;
use super::super::error::{EvalResult, Raise};
use super::super::native::CallArgs;
use super::super::set::Operand;
use super::super::value::*;
use super::math::record;
use crate::syntax::*;

pub(super) fn dataclass(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let flag = |interp: &mut Interp<'_>, name: &str, default: bool| {
        let name = interp.sym(name);
        let given = args.keyword.iter().find(|(n, _)| *n == name).map(|(_, value)| value.clone());
        given.map_or(Ok(default), |value| interp.truth(&value, args.span))
    };
    let kind = DataclassKind {
        frozen: flag(interp, "frozen", false)?,
        eq: flag(interp, "eq", true)?,
        order: flag(interp, "order", false)?,
        unsafe_hash: flag(interp, "unsafe_hash", false)?,
        init: flag(interp, "init", true)?,
        repr: flag(interp, "repr", true)?,
    };
    let kw_only = flag(interp, "kw_only", false)?;
    let slots = flag(interp, "slots", false)?;
    if kind.order && !kind.eq {
        return Err(Raise::at("value-error", "eq must be true if order is true", args.span, "in this call"));
    }
    match args.positional.first() {
        Some(Value::Class(class)) => {
            class.kind.set(ClassKind::Dataclass(kind));
            if kw_only {
                let inherited = class.inherited_fields();
                let mut fields = class.fields.borrow_mut();
                let own = fields.iter_mut().filter(|f| !inherited.iter().any(|known| known.name == f.name));
                own.for_each(|f| f.kw_only = true);
            }
            interp.check_dataclass(class, kind.frozen, args.span)?;
            if slots {
                interp.add_slots(class);
            }
            Ok(Value::Class(class.clone()))
        }
        None => {
            let keyword = args.keyword.into_vec();
            let function = Value::native("dataclasses.dataclass", dataclass, 0);
            Ok(Value::Partial(Rc::new(Partial { function, positional: Vec::new(), keyword })))
        }
        Some(other) => {
            Err(Raise::at("type-error", format!("dataclass needs a class, not {}", other.a_type()), args.span, "here"))
        }
    }
}

pub(super) fn field(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let default = match (args.take_keyword(sym::default), args.take_keyword(sym::default_factory)) {
        (Some(value), _) => FieldDefault::Value(value),
        (None, Some(factory)) => FieldDefault::Factory(factory),
        (None, None) => FieldDefault::Required,
    };
    let is = |value: Option<Value>, wanted: bool| matches!(value, Some(Value::Bool(b)) if b == wanted);
    let init = !is(args.take_keyword(sym::init_false), false);
    let kw_only = is(args.take_keyword(sym::kw_only), true);
    let repr = !is(args.take_keyword(sym::repr_kw), false);
    let compare = !is(args.take_keyword(interp.sym("compare")), false);
    let hash = match args.take_keyword(interp.sym("hash")) {
        Some(Value::Bool(counts)) => Some(counts),
        _ => None,
    };
    Ok(Value::FieldSpec(Rc::new(FieldSpec { default, init, kw_only, compare, hash, repr })))
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

pub(super) fn fields(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let class = match args.positional.first() {
        Some(Value::Class(class)) => class.clone(),
        _ => instance_arg(interp, &args, "fields")?.class.clone(),
    };
    let fields = class.declared_fields();
    let names: Vec<Rc<str>> = fields.iter().filter(|f| !f.init_only).map(|f| interp.name(f.name)).collect();
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
        .map(|(i, n)| {
            let default = match i.checked_sub(first_default).and_then(|i| defaults.get(i)) {
                Some(value) => FieldDefault::Value(value.clone()),
                None => FieldDefault::Required,
            };
            Field::new(interp.sym(n), default)
        })
        .collect();
    let class = Rc::new(Class {
        name: name.clone(),
        kind: Cell::new(ClassKind::NamedTuple),
        mro: OnceCell::new(),
        attrs: RefCell::default(),
        fields: RefCell::new(fields),
        members: RefCell::default(),
        combinations: RefCell::default(),
        lenient: false,
        def: None,
        span,
    });
    let _ = class.mro.set(vec![class.clone()]);
    Ok(Value::Class(class))
}

pub(super) fn copy(interp: &mut Interp<'_>, args: CallArgs, deep: bool) -> EvalResult<Value> {
    args.positional_only(interp, "copy", 1, 2)?;
    let mut copies = Copies { deep, made: FxHashMap::default(), originals: Vec::new() };
    copies.copy(interp, &args.positional[0], args.span, 0)
}

/// A copy in progress.
struct Copies {
    /// Whether the items are copied, too.
    deep: bool,
    /// Copies by the address of the original: shared values stay shared, and a value may contain
    /// itself.
    made: FxHashMap<usize, Value>,
    /// Keeps the originals alive, so that their addresses are not reused.
    originals: Vec<Value>,
}

impl Copies {
    fn copy(&mut self, interp: &mut Interp<'_>, value: &Value, span: Span, depth: u32) -> EvalResult<Value> {
        let (address, items) = match value {
            Value::List(list) => (Rc::as_ptr(list) as usize, list.items.borrow().len()),
            Value::Tuple(items) if self.deep => (Rc::as_ptr(items).cast::<u8>() as usize, items.len()),
            Value::Dict(dict) | Value::Set(dict) => (Rc::as_ptr(dict) as usize, 4 * dict.borrow().len()),
            Value::Instance(instance) => (Rc::as_ptr(instance) as usize, 4 * instance.attrs.borrow().iter().count()),
            other => return Ok(other.clone()),
        };
        // Empty tuples may share an address.
        if items > 0
            && let Some(known) = self.made.get(&address)
        {
            return Ok(known.clone());
        }
        interp.count_steps(1);
        interp.is_too_deep(depth);
        interp.check_steps(span)?;
        interp.charge_items(items, span)?;
        self.originals.push(value.clone());
        Ok(match value {
            Value::List(list) => {
                let copy = Rc::new(List::default());
                self.made.insert(address, Value::List(copy.clone()));
                let items = list.items.borrow().clone();
                for item in &items {
                    let item = self.inner(interp, item, span, depth)?;
                    copy.items.borrow_mut().push(item);
                }
                Value::List(copy)
            }
            Value::Tuple(items) => {
                let copies: EvalResult<Vec<Value>> =
                    items.iter().map(|item| self.inner(interp, item, span, depth)).collect();
                let copy = Value::tuple(copies?);
                self.made.insert(address, copy.clone());
                copy
            }
            Value::Dict(dict) => {
                let copy = Rc::new(RefCell::new(Dict::default()));
                self.made.insert(address, Value::Dict(copy.clone()));
                copy.borrow_mut().factory = dict.borrow().factory.clone();
                let original = dict.borrow().clone();
                for (key, from, value) in original.iter() {
                    let value = self.inner(interp, value, span, depth)?;
                    copy.borrow_mut().set(key.clone(), from.clone(), value);
                }
                Value::Dict(copy)
            }
            Value::Set(set) => {
                let original = set.borrow();
                let mut items = Dict::empty_set(original.is_frozen);
                items.update(&original, if self.deep { Operand::Items } else { Operand::Set });
                let copy = Value::Set(Rc::new(RefCell::new(items)));
                self.made.insert(address, copy.clone());
                copy
            }
            Value::Instance(instance) if let Some(method) = self.own_method(interp, instance) => {
                let memo = self.deep.then(|| Value::dict(Dict::default()));
                let copy = interp.call_with(&method, value.clone(), CallArgs::of(memo, span))?;
                self.made.insert(address, copy.clone());
                copy
            }
            Value::Instance(instance) => {
                let attrs: Vec<(Symbol, Value)> = instance.attrs.borrow().iter().map(|(n, v)| (n, v.clone())).collect();
                let frozen = Cell::new(instance.frozen.get());
                let attributes = RefCell::new(AttrMap::default());
                let copy = Rc::new(Instance { class: instance.class.clone(), attrs: attributes, frozen });
                self.made.insert(address, Value::Instance(copy.clone()));
                for (name, value) in attrs {
                    let value = self.inner(interp, &value, span, depth)?;
                    copy.attrs.borrow_mut().set(name, value);
                }
                Value::Instance(copy)
            }
            other => other.clone(),
        })
    }

    /// The copy method that an object's class defines.
    fn own_method(&self, interp: &mut Interp<'_>, instance: &Instance) -> Option<Value> {
        let name = interp.sym(if self.deep { "__deepcopy__" } else { "__copy__" });
        instance.class.lookup(name)
    }

    fn inner(&mut self, interp: &mut Interp<'_>, item: &Value, span: Span, depth: u32) -> EvalResult<Value> {
        if self.deep { self.copy(interp, item, span, depth + 1) } else { Ok(item.clone()) }
    }
}

impl Interp<'_> {
    /// `p.setter`, `p.getter` and `p.deleter` of a property, which return a modified property.
    pub(crate) fn property_with(&self, property: &Value, part: &str) -> Value {
        let function = Value::native(format!("property.{part}"), property_with, 0);
        let positional = vec![property.clone(), Value::str(part)];
        Value::Partial(Rc::new(Partial { function, positional, keyword: Vec::new() }))
    }

    /// An attribute of a built-in type.
    pub(crate) fn type_attr(&mut self, kind: BuiltinType, name: Symbol) -> EvalResult<Option<Value>> {
        Ok(match (kind, &*self.name(name)) {
            // Used by frozen dataclasses to set a field in `__post_init__`.
            (BuiltinType::Object, "__setattr__") => Some(Value::native("object.__setattr__", object_setattr, 0)),
            (BuiltinType::Dict, "fromkeys") => Some(Value::native("dict.fromkeys", fromkeys, 0)),
            _ => return super::library::unbound(self, kind, name),
        })
    }
}

/// Replaces a part of a property. The arguments are the property, the name of the part, and the new
/// function.
fn property_with(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let [Value::Descriptor(property), Value::Str(part), function] = args.positional.as_slice() else {
        return Err(Raise::at("arguments", "a part of a property is one function", args.span, "in this call"));
    };
    let Descriptor::Property { get, set, delete } = &**property else { return Ok(Value::None) };
    let (mut get, mut set, mut delete) = (get.clone(), set.clone(), delete.clone());
    match &**part {
        "getter" => get = function.clone(),
        "setter" => set = Some(function.clone()),
        _ => delete = Some(function.clone()),
    }
    Ok(Value::Descriptor(Rc::new(Descriptor::Property { get, set, delete })))
}

pub(crate) fn object_init_subclass(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    if !args.keyword.is_empty() {
        let message = "object.__init_subclass__() takes no keyword arguments";
        return Err(Raise::at("type-error", message, args.span, "in this call")
            .help("take the keywords of a class as parameters of an `__init_subclass__`"));
    }
    Ok(Value::None)
}

pub(crate) fn object_setattr(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    if let [Value::Instance(instance), Value::Str(name), value] = args.positional.as_slice() {
        let name = interp.sym(name);
        if !interp.set_by_descriptor(&args.positional[0], name, value, args.span)? {
            interp.check_slot(instance, name, args.span)?;
            instance.attrs.borrow_mut().set(name, value.clone());
        }
    }
    Ok(Value::None)
}

pub(super) fn fromkeys(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "fromkeys", 1, 2)?;
    let value = args.positional.get(1).cloned().unwrap_or(Value::None);
    let mut dict = Dict::default();
    for item in interp.iterate(&args.positional[0], args.span)? {
        dict.set(interp.new_key(&item, args.span)?, item, value.clone());
    }
    Ok(Value::dict(dict))
}
