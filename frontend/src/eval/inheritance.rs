//! Inheritance: the order of base classes, their fields, and the attributes that `__slots__` allow.

use std::cell::RefCell;
use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::native::CallArgs;
use super::protocol::of_class;
use super::value::*;
use crate::syntax::parse::private;
use crate::syntax::*;

impl ClassKind {
    /// Whether the annotated names of such a class are fields.
    fn has_fields(self) -> bool {
        matches!(self, ClassKind::Dataclass(_) | ClassKind::Record | ClassKind::NamedTuple)
    }
}

impl Class {
    /// This class and its bases in method resolution order.
    pub(super) fn order(&self) -> impl Iterator<Item = &Rc<Class>> {
        self.mro.get().into_iter().flatten()
    }

    /// The class that defines the fields: this one, or the first base that makes fields of
    /// annotated names.
    fn with_fields(&self) -> Option<&Rc<Class>> {
        self.order().find(|class| class.kind.get().has_fields())
    }

    /// The fields of its objects. A class without a decorator has the fields of the dataclass from
    /// which it derives.
    pub(crate) fn declared_fields(&self) -> Vec<Field> {
        self.with_fields().map(|class| class.fields.borrow().clone()).unwrap_or_default()
    }

    /// Whether it is a dataclass or derives from one.
    pub(crate) fn is_dataclass(&self) -> bool {
        self.order().any(|class| matches!(class.kind.get(), ClassKind::Dataclass(_)))
    }

    /// The options of `@dataclass` on the class that defines the fields.
    pub(super) fn dataclass_kind(&self) -> Option<DataclassKind> {
        match self.with_fields()?.kind.get() {
            ClassKind::Dataclass(told) => Some(told),
            _ => None,
        }
    }

    /// Whether its objects are frozen after construction.
    pub(super) fn is_frozen(&self) -> bool {
        self.dataclass_kind().is_some_and(|told| told.frozen)
    }

    /// The fields of its bases in the order of first declaration; the last declaration in
    /// resolution order applies.
    pub(super) fn inherited_fields(&self) -> Vec<Field> {
        let mut fields: Vec<Field> = Vec::new();
        let bases: Vec<&Rc<Class>> = self.order().skip(1).collect();
        for base in bases.into_iter().rev().filter(|base| base.kind.get().has_fields()) {
            for field in base.fields.borrow().iter() {
                match fields.iter_mut().find(|known| known.name == field.name) {
                    Some(known) => *known = field.clone(),
                    None => fields.push(field.clone()),
                }
            }
        }
        fields
    }
}

impl Instance {
    /// Whether the attribute cannot be assigned: in a frozen dataclass all of them, in a
    /// class derived from one, the fields.
    pub(super) fn is_fixed(&self, name: Symbol) -> bool {
        if self.class.kind.get() == ClassKind::NamedTuple {
            return true;
        }
        let is_own = matches!(self.class.kind.get(), ClassKind::Dataclass(_)) || self.class.with_fields().is_none();
        self.frozen.get() && (is_own || self.class.declared_fields().iter().any(|field| field.name == name))
    }
}

/// The bases of a class in method resolution order (C3): each class before its bases, and the bases
/// of a class in its order. `None` if no such order exists.
fn linearised(bases: &[Rc<Class>]) -> Option<Vec<Rc<Class>>> {
    let mut lists: Vec<Vec<Rc<Class>>> = bases.iter().map(|base| base.order().cloned().collect()).collect();
    lists.push(bases.to_vec());
    let mut out = Vec::new();
    loop {
        lists.retain(|list| !list.is_empty());
        if lists.is_empty() {
            return Some(out);
        }
        let is_free = |class: &Rc<Class>| !lists.iter().any(|list| list.iter().skip(1).any(|c| Rc::ptr_eq(c, class)));
        let next = lists.iter().map(|list| &list[0]).find(|class| is_free(class))?.clone();
        lists.iter_mut().for_each(|list| list.retain(|class| !Rc::ptr_eq(class, &next)));
        out.push(next);
    }
}

impl Interp<'_> {
    /// Sets the method resolution order of a new class.
    pub(super) fn order_bases(&self, class: &Rc<Class>, bases: &[Rc<Class>], span: Span) -> EvalResult<()> {
        let names = bases.iter().map(|base| format!("`{}`", base.name)).collect::<Vec<_>>().join(", ");
        let is_twice = (1..bases.len()).any(|at| bases[..at].iter().any(|base| Rc::ptr_eq(base, &bases[at])));
        let order = if is_twice { None } else { linearised(bases) };
        let Some(order) = order else {
            let message = format!("the bases {names} of {} have no common method resolution order", class.name);
            return Err(Raise::at("type-error", message, span, "this class")
                .help("name each base once, and a derived class before the class that it derives from"));
        };
        let _ = class.mro.set([class.clone()].into_iter().chain(order).collect());
        Ok(())
    }

    /// Rejects a class that derives from an Enum with members, or whose `__slots__` name an
    /// attribute of the class.
    pub(super) fn check_class(&mut self, class: &Rc<Class>, bases: &[Rc<Class>], span: Span) -> EvalResult<()> {
        if let Some(base) = bases.iter().find(|base| !base.members.borrow().is_empty()) {
            let message = format!("{} derives from the Enum {}, which has members", class.name, base.name);
            return Err(Raise::at("type-error", message, span, "this class")
                .help("derive from an Enum without members, or list all members in one class"));
        }
        if class.attrs.borrow().get(sym::slots).is_none() {
            return Ok(());
        }
        self.has_slots = true;
        for name in self.own_slots(class, span)?.unwrap_or_default() {
            if class.attrs.borrow().get(name).is_some() {
                let message =
                    format!("`{}` in `__slots__` of {} is also a class variable", self.name(name), class.name);
                return Err(Raise::at("value-error", message, span, "this class")
                    .help("set the attribute in `__init__`, or leave it out of `__slots__`"));
            }
        }
        Ok(())
    }

    /// The names in the `__slots__` of the class itself.
    fn own_slots(&mut self, class: &Class, span: Span) -> EvalResult<Option<Vec<Symbol>>> {
        let Some(slots) = class.attrs.borrow().get(sym::slots).cloned() else { return Ok(None) };
        let items = match &slots {
            Value::Str(_) => vec![slots.clone()],
            other => self.iterate(other, span)?,
        };
        let mut names = Vec::new();
        for item in &items {
            let Value::Str(text) = item else {
                return Err(Raise::at(
                    "type-error",
                    "`__slots__` must hold strings",
                    span,
                    "for an object of this class",
                ));
            };
            names.push(match private(&class.name, text) {
                Some(name) => self.sym(&name),
                None => self.sym(text),
            });
        }
        Ok(Some(names))
    }

    /// The attributes that objects of a class can have; `None` if they can have any.
    fn slots_of(&mut self, class: &Rc<Class>, span: Span) -> EvalResult<Option<Vec<Symbol>>> {
        if !self.has_slots || class.builtin_base().is_some() || class.exception_base().is_some() {
            return Ok(None);
        }
        let mut names = Vec::new();
        for ancestor in class.order().cloned().collect::<Vec<_>>() {
            match self.own_slots(&ancestor, span)? {
                Some(own) if !own.contains(&sym::dict) => names.extend(own),
                _ => return Ok(None),
            }
        }
        Ok(Some(names))
    }

    /// Whether objects of the class have a `__dict__`.
    pub(super) fn has_dict(&mut self, class: &Rc<Class>, span: Span) -> EvalResult<bool> {
        Ok(self.slots_of(class, span)?.is_none())
    }

    /// Rejects an attribute that `__slots__` do not allow.
    pub(super) fn check_slot(&mut self, instance: &Instance, name: Symbol, span: Span) -> EvalResult<()> {
        let Some(names) = self.slots_of(&instance.class, span)? else { return Ok(()) };
        if names.contains(&name) {
            return Ok(());
        }
        let message = format!("`{}` is not in the `__slots__` of {}", self.name(name), instance.class.name);
        Err(Raise::at("no-attribute", message, span, "assigned here").help("add the name to `__slots__`"))
    }

    /// Rejects assignments to a class that would change its members or slots.
    pub(super) fn check_class_attribute(&mut self, class: &Rc<Class>, name: Symbol, span: Span) -> EvalResult<()> {
        let is_member = matches!(class.attrs.borrow().get(name), Some(Value::EnumMember(_)));
        if class.enum_kind().is_some() && is_member {
            let message = format!("the member `{}` of the Enum {} cannot be changed", self.name(name), class.name);
            return Err(Raise::at("no-attribute", message, span, "assigned here").help("make another Enum"));
        }
        if self.has_slots && self.own_slots(class, span)?.is_some_and(|names| names.contains(&name)) {
            let message = format!("`{}`, which is in `__slots__` of {}, is assigned", self.name(name), class.name);
            return Err(Raise::at("unsupported-syntax", message, span, "assigned here")
                .help("assign to the attribute of an object, or leave the name out of `__slots__`"));
        }
        Ok(())
    }

    /// Applies Python's checks for a class decorated with `@dataclass`.
    pub(super) fn check_dataclass(&mut self, class: &Rc<Class>, frozen: bool, span: Span) -> EvalResult<()> {
        for base in class.order().skip(1) {
            if let ClassKind::Dataclass(told) = base.kind.get()
                && told.frozen != frozen
            {
                let (own, other) = if frozen { ("frozen", "not frozen") } else { ("not frozen", "frozen") };
                let message = format!("the dataclass {} is {own}, but its base {} is {other}", class.name, base.name);
                return Err(Raise::at("type-error", message, span, "here").help("give both the same `frozen=`"));
            }
        }
        let mut with_default: Option<Symbol> = None;
        for field in class.fields.borrow().iter() {
            if let FieldDefault::Value(value) = &field.default
                && is_mutable(value)
            {
                let name = self.name(field.name);
                let message =
                    format!("the default of the field `{name}` is {}, which all objects would share", value.a_type());
                return Err(Raise::at("value-error", message, span, "in this dataclass")
                    .help(format!("write {name}: ... = field(default_factory={})", factory_of(value))));
            }
            if !field.init || field.kw_only {
                continue;
            }
            match (&field.default, with_default) {
                (FieldDefault::Required, Some(before)) => {
                    let (name, before) = (self.name(field.name), self.name(before));
                    let message = format!("the field `{name}` without a default follows `{before}`, which has one");
                    return Err(Raise::at("type-error", message, span, "in this dataclass")
                        .help("give it a default, or declare it first"));
                }
                (FieldDefault::Required, None) => {}
                _ => with_default = Some(field.name),
            }
        }
        Ok(())
    }

    /// `slots=True`: the fields that a class itself declares become its slots.
    pub(super) fn add_slots(&mut self, class: &Rc<Class>) {
        let inherited = class.inherited_fields();
        let is_own = |field: &&Field| !inherited.iter().any(|known| known.name == field.name);
        let names: Vec<Value> =
            class.fields.borrow().iter().filter(is_own).map(|field| Value::Str(self.name(field.name))).collect();
        class.attrs.borrow_mut().set(sym::slots, Value::tuple(names));
        self.has_slots = true;
    }

    /// `Class[index]` of a class that is not an Enum.
    pub(super) fn class_item(
        &mut self,
        base: &Value,
        class: &Rc<Class>,
        index: &Value,
        span: Span,
    ) -> EvalResult<Value> {
        if let Some(hook) = class.lookup(sym::class_getitem) {
            return self.call_with(&of_class(&hook), base.clone(), CallArgs::of([index.clone()], span));
        }
        let is_generic = class.order().any(|class| class.def.as_ref().is_some_and(|def| def.has_type_params));
        if is_generic || self.mro_of(class).is_none() {
            // `Generic[T]` and similar.
            return Ok(base.clone());
        }
        let message = format!("the class {} takes no index", class.name);
        Err(Raise::at("type-error", message, span, "here")
            .help("define `__class_getitem__`, or derive from `Generic[T]`"))
    }

    /// How an object is shown, as decided by the first class in resolution order that defines it.
    pub(super) fn shown_by(class: &Class) -> Shown {
        for class in class.order() {
            if let Some(method) = class.attrs.borrow().get(sym::repr) {
                return Shown::Method(method.clone());
            }
            match class.kind.get() {
                ClassKind::Dataclass(DataclassKind { repr: true, .. }) | ClassKind::NamedTuple => {
                    return Shown::Fields(class.fields.borrow().iter().filter(|f| f.repr).map(|f| f.name).collect());
                }
                ClassKind::Record => return Shown::Attributes,
                ClassKind::Exception(_) => return Shown::Exception,
                ClassKind::Dataclass(_) | ClassKind::Plain | ClassKind::Enum(_) => {}
            }
        }
        Shown::Name
    }
}

/// Whether a dataclass rejects a value as a default, because it is unhashable.
fn is_mutable(value: &Value) -> bool {
    match value {
        Value::List(_) | Value::Dict(_) => true,
        Value::Set(set) => !set.borrow().is_frozen,
        Value::Instance(instance) => instance.base_value().is_none() && instance.class.is_unhashable(),
        _ => false,
    }
}

/// The name of a factory for values like this one.
fn factory_of(value: &Value) -> String {
    match value {
        Value::Instance(instance) => instance.class.name.to_string(),
        _ => value.type_name(),
    }
}

/// How an object is shown.
pub(super) enum Shown {
    /// By a `__repr__`.
    Method(Value),
    /// With the values of these fields.
    Fields(Vec<Symbol>),
    /// With all attributes.
    Attributes,
    /// With the arguments of the exception.
    Exception,
    /// As an object of its class.
    Name,
}

/// Records the class in its functions, where `super()` looks it up.
pub(super) fn adopt_functions(class: &Rc<Class>, attrs: &RefCell<AttrMap>) {
    for (_, value) in attrs.borrow().iter() {
        let function = match value {
            Value::Descriptor(descriptor) => match &**descriptor {
                Descriptor::Static(f)
                | Descriptor::Class(f)
                | Descriptor::Property { get: f, .. }
                | Descriptor::Method(f)
                | Descriptor::CachedProperty(f) => f.clone(),
            },
            Value::Cached(cached) => cached.function.clone(),
            other => other.clone(),
        };
        if let Value::Function(function) = &function {
            function.class.borrow_mut().get_or_insert(Rc::downgrade(class));
        }
    }
}
