//! Class protocols other than operators: attribute access, class creation, and `__dict__`.

use std::cell::RefCell;
use std::rc::Rc;

use nki_diag::Span;

use super::dict::Owner;
use super::error::{EvalResult, Raise};
use super::native::CallArgs;
use super::value::*;
use super::{Frame, Interp};
use crate::syntax::*;

/// Unsupported special methods, each with an alternative.
const UNSUPPORTED: [(Symbol, &str); 3] = [
    (sym::new, "make the object in `__init__`, or in a function that returns it"),
    (sym::delattr, "delete attributes in a method with another name"),
    (sym::getattribute, "define `__getattr__`, or a property for each attribute"),
];

impl Interp<'_> {
    /// Records the special methods that a new class defines.
    pub(super) fn note_class(&mut self, class: &Class) {
        let attrs = class.attrs.borrow();
        self.custom_attributes |= attrs.get(sym::setattr).is_some() || attrs.get(sym::set).is_some();
    }

    /// Notifies the bases and the attributes of a new class of it.
    pub(super) fn announce_class(&mut self, frame: &Frame<'_>, def: &ClassDef, class: &Rc<Class>) -> EvalResult<()> {
        self.note_class(class);
        let mut args = CallArgs::none(def.name_span);
        for (name, value) in &def.keywords {
            let value = self.eval(frame, value)?;
            if class.enum_kind().is_some() && *name != sym::metaclass {
                let message =
                    format!("the Enum {} has the keyword `{}=`, which is not supported", class.name, self.name(*name));
                return Err(Raise::at("unsupported-syntax", message, def.name_span, "this class")
                    .help("leave it out, or run the kernel through Python"));
            }
            if *name != sym::metaclass {
                args.keyword.push((*name, value));
            } else if let Value::Class(metaclass) = &value {
                let message =
                    format!("the class {} has the metaclass {}, which is not supported", class.name, metaclass.name);
                return Err(Raise::at("unsupported-syntax", message, def.name_span, "this class")
                    .help("define `__init_subclass__` in a base class, or decorate the class"));
            }
        }
        let attrs: Vec<(Symbol, Value)> = class.attrs.borrow().iter().map(|(n, v)| (n, v.clone())).collect();
        for (name, value) in attrs {
            if let Value::Instance(instance) = &value
                && let Some(method) = instance.class.lookup(sym::set_name)
            {
                let named = [Value::Class(class.clone()), Value::Str(self.name(name))];
                self.call_with(&method, value.clone(), CallArgs::of(named, def.name_span))?;
            }
        }
        let bases = class.order().skip(1);
        let hook = bases.into_iter().find_map(|base| base.attrs.borrow().get(sym::init_subclass).cloned());
        if let Some(hook) = hook {
            self.call_with(&of_class(&hook), Value::Class(class.clone()), args)?;
        } else if let Some((name, _)) = args.keyword.first()
            && self.mro_of(class).is_some()
        {
            let message = format!(
                "the class {} has the keyword `{}=`, which none of its bases takes",
                class.name,
                self.name(*name)
            );
            return Err(Raise::at("type-error", message, def.name_span, "this class")
                .help("define `__init_subclass__` with this parameter in a base class"));
        }
        Ok(())
    }

    /// Rejects objects of a class that customises their creation or attribute access in an
    /// unsupported way.
    pub(super) fn check_protocol(&self, class: &Class, span: Span) -> EvalResult<()> {
        for (name, instead) in UNSUPPORTED {
            if let (ClassKind::Plain | ClassKind::Dataclass(_), Some(Value::Function(_) | Value::Descriptor(_))) =
                (class.kind.get(), class.lookup(name))
            {
                let message = format!("the class {} has a `{}`, which is not supported", class.name, self.name(name));
                return Err(Raise::at("unsupported-syntax", message, span, "an object of this class is created here")
                    .help(instead));
            }
        }
        Ok(())
    }

    /// Rejects objects of a class that derives from `ABC` but does not implement an abstract
    /// method.
    pub(super) fn check_abstract(&self, class: &Class, span: Span) -> EvalResult<()> {
        let classes = || class.order();
        if !classes().any(|class| class.def.as_ref().is_some_and(|def| self.is_abc(def))) {
            return Ok(());
        }
        let is_missing = |name: &Symbol| class.lookup(*name).is_some_and(|value| is_abstract(&value));
        let mut missing: Vec<String> = Vec::new();
        for ancestor in classes() {
            let names: Vec<Symbol> = ancestor.attrs.borrow().iter().map(|(name, _)| name).collect();
            missing.extend(names.iter().filter(|name| is_missing(name)).map(|name| format!("`{}`", self.name(*name))));
        }
        missing.sort();
        missing.dedup();
        if missing.is_empty() {
            return Ok(());
        }
        let message =
            format!("{} is an abstract class without an implementation of {}", class.name, missing.join(", "));
        Err(Raise::at("type-error", message, span, "an object of this class is created here")
            .help("make an object of a class that derives from it and defines its abstract methods"))
    }

    /// Whether a class is declared with `ABC` as a base or `ABCMeta` as its metaclass.
    fn is_abc(&self, def: &ClassDef) -> bool {
        let named = |expr: &Expr, wanted: &str| match &expr.kind {
            ExprKind::Name(name, _) | ExprKind::Attr(_, name) => &*self.name(*name) == wanted,
            _ => false,
        };
        let metaclass = def.keywords.iter().any(|(name, value)| *name == sym::metaclass && named(value, "ABCMeta"));
        metaclass || def.bases.iter().any(|base| named(base, "ABC"))
    }

    /// The result of `__len__`, which must be a length.
    pub(super) fn checked_length(&self, length: Value, span: Span) -> EvalResult<Value> {
        match length.plain() {
            Value::Int(n) if *n < 0 => {
                Err(Raise::at("value-error", "__len__() should return >= 0", span, format!("it returned {n}")))
            }
            other if is_python(other) && !matches!(other, Value::Int(_) | Value::Bool(_)) => {
                let message = format!("__len__() should return an int, not {}", other.a_type());
                Err(Raise::at("type-error", message, span, "here"))
            }
            _ => Ok(length),
        }
    }

    /// The result of `__str__` or `__repr__`, which must be a string.
    pub(super) fn checked_text(&self, value: &Value, method: Symbol, span: Span) -> EvalResult<Rc<str>> {
        match &value.plain_value() {
            Value::Str(text) => Ok(text.clone()),
            Value::Poison => Err(Raise::reported()),
            other => {
                let message = format!("{} returned {}, not a str", self.name(method), other.a_type());
                Err(Raise::at("type-error", message, span, "in this class").help("return a string"))
            }
        }
    }

    /// The result of `__int__` or `__float__`, which must be a number of this type.
    pub(super) fn checked_number(&self, value: Value, method: Symbol, span: Span) -> EvalResult<Value> {
        let is_number = match (method, &value.plain_value()) {
            (sym::int_, number) => matches!(number, Value::Int(_) | Value::Bool(_)) || !is_python(number),
            (sym::float_, number) => matches!(number, Value::Float(_)) || !is_python(number),
            _ => true,
        };
        if is_number {
            return Ok(value);
        }
        let message = format!("{} returned {}", self.name(method), value.a_type());
        Err(Raise::at("type-error", message, span, "in this call").help("convert the number that it returns"))
    }

    /// Checks the result of `__init__`, which must be None.
    pub(super) fn check_init(&self, value: &Value, span: Span) -> EvalResult<()> {
        if is_python(value) && !value.is_none() {
            let message = format!("__init__() should return None, not {}", value.a_type());
            return Err(Raise::at("type-error", message, span, "in this call"));
        }
        Ok(())
    }

    /// The result of `__bool__`, which must be a bool.
    pub(super) fn checked_truth(&mut self, value: &Value, span: Span) -> EvalResult<bool> {
        if is_python(value) && !matches!(value, Value::Bool(_)) {
            let message = format!("__bool__ should return bool, returned {}", value.type_name());
            return Err(Raise::at("type-error", message, span, "here").help("return bool(...)"));
        }
        self.truth(value, span)
    }

    /// Rejects a format specification for a value without its own formatting.
    pub(super) fn check_formattable(&self, value: &Value, spec: &str, span: Span) -> EvalResult<()> {
        let has_none = match value {
            Value::Instance(instance) => instance.base_value().is_none(),
            Value::EnumMember(_) => false,
            Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Set(_) | Value::None | Value::Class(_) => true,
            _ => false,
        };
        if !has_none {
            return Ok(());
        }
        let message = format!("{} takes no format specification, got `{spec}`", value.a_type());
        Err(Raise::at("type-error", message, span, "formatted here").help("format its text: {x!s:>8}, or str(x)"))
    }

    /// The value of a class attribute as accessed through `receiver` (None for the class itself):
    /// calls the `__get__` of a descriptor.
    pub(super) fn ask_descriptor(
        &mut self,
        value: &Value,
        receiver: &Value,
        class: &Rc<Class>,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let Value::Instance(descriptor) = value else { return Ok(None) };
        let Some(method) = descriptor.class.lookup(sym::get) else { return Ok(None) };
        let args = CallArgs::of([receiver.clone(), Value::Class(class.clone())], span);
        self.call_with(&method, value.clone(), args).map(Some)
    }

    /// `instance.name = value` by a `__setattr__` or a descriptor of the class; false if there is
    /// neither.
    pub(super) fn set_by_protocol(
        &mut self,
        instance: &Rc<Instance>,
        name: Symbol,
        value: &Value,
        span: Span,
    ) -> EvalResult<bool> {
        if !self.custom_attributes {
            return Ok(false);
        }
        let base = Value::Instance(instance.clone());
        if let Some(method) = instance.class.lookup(sym::setattr) {
            let args = CallArgs::of([Value::Str(self.name(name)), value.clone()], span);
            self.call_with(&method, base, args)?;
            return Ok(true);
        }
        self.set_by_descriptor(&base, name, value, span)
    }

    /// `base.name = value` by a descriptor of the class; false if there is none.
    pub(super) fn set_by_descriptor(
        &mut self,
        base: &Value,
        name: Symbol,
        value: &Value,
        span: Span,
    ) -> EvalResult<bool> {
        let Value::Instance(instance) = base else { return Ok(false) };
        let Some(descriptor @ Value::Instance(_)) = instance.class.lookup(name) else { return Ok(false) };
        let Some(method) = descriptor.own_class().and_then(|class| class.lookup(sym::set)) else { return Ok(false) };
        self.call_with(&method, descriptor, CallArgs::of([base.clone(), value.clone()], span))?;
        Ok(true)
    }

    /// Whether a descriptor of the class takes precedence over the object's own attribute of this
    /// name.
    pub(super) fn is_data_descriptor(&self, instance: &Instance, name: Symbol) -> bool {
        self.custom_attributes
            && matches!(instance.class.lookup(name), Some(Value::Instance(ref it)) if it.class.lookup(sym::set).is_some())
    }

    /// `instance.__dict__`
    pub(super) fn dict_of(&self, instance: &Rc<Instance>) -> Value {
        let mut dict = Dict::default();
        dict.owner = Owner(Some(instance.clone()));
        self.read_attributes(instance, &mut dict);
        Value::dict(dict)
    }

    fn read_attributes(&self, instance: &Instance, dict: &mut Dict) {
        dict.clear();
        for (name, value) in instance.attrs.borrow().iter() {
            dict.set_str(self.names.name(name), value.clone());
        }
    }

    /// Modifies a dict; if it is the `__dict__` of an object, updates the object's attributes as
    /// well.
    pub(super) fn change_dict<R>(
        &mut self,
        dict: &Rc<RefCell<Dict>>,
        change: impl FnOnce(&mut Self) -> EvalResult<R>,
    ) -> EvalResult<R> {
        let owner = dict.borrow().owner.0.clone();
        let Some(owner) = owner else { return change(self) };
        self.read_attributes(&owner, &mut dict.borrow_mut());
        let result = change(self);
        self.set_attributes(&owner, &dict.borrow());
        result
    }

    /// Replaces all attributes of an object.
    pub(super) fn set_attributes(&mut self, instance: &Instance, dict: &Dict) {
        let mut attrs = AttrMap::default();
        for (key, _, value) in dict.iter() {
            if let Key::Str(name) = key {
                attrs.set(self.sym(name), value.clone());
            }
        }
        *instance.attrs.borrow_mut() = attrs;
    }
}

/// The function of a method that receives the class, with or without `@classmethod`.
pub(super) fn of_class(method: &Value) -> Value {
    match method {
        Value::Descriptor(descriptor) => match &**descriptor {
            Descriptor::Class(function) => function.clone(),
            _ => method.clone(),
        },
        _ => method.clone(),
    }
}

/// Whether a value is a plain Python value, not one of the device or the host.
fn is_python(value: &Value) -> bool {
    matches!(
        value,
        Value::None
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Str(_)
            | Value::Tuple(_)
            | Value::List(_)
            | Value::Dict(_)
    )
}

/// Whether a class attribute is a method or property marked by `abstractmethod`.
fn is_abstract(value: &Value) -> bool {
    match value {
        Value::Function(function) => function.attrs.borrow().get(sym::isabstractmethod).is_some(),
        Value::Descriptor(descriptor) => match &**descriptor {
            Descriptor::Static(f)
            | Descriptor::Class(f)
            | Descriptor::Property { get: f, .. }
            | Descriptor::Method(f)
            | Descriptor::CachedProperty(f) => is_abstract(f),
        },
        _ => false,
    }
}
