//! Classes, objects and their attributes.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use nki_diag::Span;

use super::value::{BuiltinType, Value};
use crate::syntax::{ClassDef, Symbol};

/// Which kind of class, by its bases and decorators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassKind {
    /// `class C:`; attributes come from `__init__` alone.
    Plain,
    /// A subclass of the dialect's base class of records: `__init__` is made from the fields.
    Record,
    /// `@dataclass`
    Dataclass(DataclassKind),
    /// A subclass of `Enum`.
    Enum(EnumKind),
    /// A subclass of `NamedTuple`.
    NamedTuple,
    /// A subclass of this exception class of Python's.
    Exception(Symbol),
}

impl ClassKind {
    /// Whether a class of this kind has a constructor that is made from its fields.
    pub(crate) fn makes_init(self) -> bool {
        match self {
            ClassKind::Dataclass(told) => told.init,
            ClassKind::Record | ClassKind::NamedTuple => true,
            ClassKind::Plain | ClassKind::Enum(_) | ClassKind::Exception(_) => false,
        }
    }
}

/// What `@dataclass` was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataclassKind {
    /// Assignments after construction are refused.
    pub(crate) frozen: bool,
    /// Objects are compared by their fields.
    pub(crate) eq: bool,
    /// Objects have an order.
    pub(crate) order: bool,
    /// Objects are hashed by their fields, frozen or not.
    pub(crate) unsafe_hash: bool,
    /// The constructor is made from the fields.
    pub(crate) init: bool,
    /// Objects are shown with their fields.
    pub(crate) repr: bool,
}

/// What the members of an Enum are besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EnumKind {
    /// The type whose values they are, too: `class Mode(str, Enum)`.
    pub(crate) mixin: Option<BuiltinType>,
    /// They combine with `|`: `Flag`, `IntFlag`.
    pub(crate) flag: bool,
    /// Their text is that of their values: `IntEnum`, `StrEnum`, `IntFlag`.
    pub(crate) shows_value: bool,
}

impl EnumKind {
    /// What a base class in Python's library makes of an Enum.
    pub(crate) fn of_base(base: BuiltinType) -> Option<Self> {
        let (mixin, flag) = match base {
            BuiltinType::Enum => (None, false),
            BuiltinType::IntEnum => (Some(BuiltinType::Int), false),
            BuiltinType::StrEnum => (Some(BuiltinType::Str), false),
            BuiltinType::Flag => (None, true),
            BuiltinType::IntFlag => (Some(BuiltinType::Int), true),
            _ => return None,
        };
        Some(Self { mixin, flag, shows_value: mixin.is_some() })
    }

    /// Whether members are instances of a type of Python's library.
    pub(crate) fn is_of(self, class: BuiltinType) -> bool {
        let Self { mixin, flag, shows_value } = self;
        match class {
            BuiltinType::Enum => true,
            BuiltinType::Flag => flag,
            BuiltinType::IntEnum => mixin == Some(BuiltinType::Int) && shows_value && !flag,
            BuiltinType::StrEnum => mixin == Some(BuiltinType::Str) && shows_value,
            BuiltinType::IntFlag => mixin == Some(BuiltinType::Int) && flag,
            other => mixin == Some(other),
        }
    }
}

/// One declared field of a class.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) name: Symbol,
    pub(crate) default: FieldDefault,
    /// Whether the constructor takes it.
    pub(crate) init: bool,
    pub(crate) kw_only: bool,
    /// Whether it counts when objects are compared.
    pub(crate) compare: bool,
    /// Whether it counts for the hash; if nothing says so, as in comparisons.
    pub(crate) hash: Option<bool>,
    /// Whether it is shown.
    pub(crate) repr: bool,
    /// It is no attribute, but an argument of `__post_init__` (`InitVar`).
    pub(crate) init_only: bool,
}

impl Field {
    /// A field that the constructor takes.
    pub(crate) fn new(name: Symbol, default: FieldDefault) -> Self {
        Self { name, default, init: true, kw_only: false, compare: true, hash: None, repr: true, init_only: false }
    }
}

/// What a field is set to when the caller gives nothing.
#[derive(Clone)]
pub(crate) enum FieldDefault {
    /// The caller must give it (for a lenient class it becomes None).
    Required,
    Value(Value),
    Factory(Value),
}

/// `dataclasses.field(...)`
pub(crate) struct FieldSpec {
    pub(crate) default: FieldDefault,
    pub(crate) init: bool,
    pub(crate) kw_only: bool,
    pub(crate) compare: bool,
    pub(crate) hash: Option<bool>,
    pub(crate) repr: bool,
}

/// A class.
pub(crate) struct Class {
    pub(crate) name: Rc<str>,
    pub(crate) kind: Cell<ClassKind>,
    /// This class first, then its bases in method resolution order.
    pub(crate) mro: OnceCell<Vec<Rc<Class>>>,
    pub(crate) attrs: RefCell<AttrMap>,
    /// Fields, inherited ones first.
    pub(crate) fields: RefCell<Vec<Field>>,
    /// Members of an Enum in order.
    pub(crate) members: RefCell<Vec<Rc<EnumMember>>>,
    /// Members of a Flag that have several bits or none, as far as they are declared or made.
    pub(crate) combinations: RefCell<Vec<Rc<EnumMember>>>,
    /// Derives from the base class of records: fields that have no default and get no value become None.
    pub(crate) lenient: bool,
    /// Its statement; made by a function otherwise.
    pub(crate) def: Option<Rc<ClassDef>>,
    pub(crate) span: Span,
}

impl Class {
    /// Looks an attribute up in the class and its bases.
    pub(crate) fn lookup(&self, name: Symbol) -> Option<Value> {
        if let Some(value) = self.attrs.borrow().get(name) {
            return Some(value.clone());
        }
        self.mro.get()?.iter().find_map(|class| class.attrs.borrow().get(name).cloned())
    }

    /// The exception class of Python's from which it derives.
    pub(crate) fn exception_base(&self) -> Option<Symbol> {
        match self.kind.get() {
            ClassKind::Exception(base) => Some(base),
            _ => None,
        }
    }

    /// Whether this is `other` or derives from it.
    pub(crate) fn is_subclass(&self, other: &Class) -> bool {
        std::ptr::eq(self, other)
            || self.mro.get().is_some_and(|mro| mro.iter().any(|c| std::ptr::eq(Rc::as_ptr(c), other)))
    }
}

/// An object.
pub(crate) struct Instance {
    pub(crate) class: Rc<Class>,
    pub(crate) attrs: RefCell<AttrMap>,
    /// Construction is over and the class is frozen.
    pub(crate) frozen: Cell<bool>,
}

/// A member of an Enum.
pub(crate) struct EnumMember {
    pub(crate) class: Rc<Class>,
    /// Empty for a combination of flags that has no name.
    pub(crate) name: Symbol,
    pub(crate) value: Value,
    /// What `__init__` of its class has set.
    pub(crate) attrs: RefCell<AttrMap>,
}

/// Something in a class that attribute access transforms.
pub(crate) enum Descriptor {
    Static(Value),
    Class(Value),
    Property {
        get: Value,
        set: Option<Value>,
        delete: Option<Value>,
    },
    /// A function in Rust that takes the receiver first.
    Method(Value),
    /// `@cached_property`
    CachedProperty(Value),
}

impl Value {
    /// Whether it is the descriptor of a `@cached_property`.
    pub(crate) fn is_cached_property(&self) -> bool {
        matches!(self, Value::Descriptor(descriptor) if matches!(**descriptor, Descriptor::CachedProperty(_)))
    }
}

/// `super()` of a method.
pub(crate) struct Super {
    /// The class whose bases are searched.
    pub(crate) class: Rc<Class>,
    pub(crate) receiver: Value,
}

/// Attributes: few and looked up by symbol, so a linear scan of packed keys is fastest.
#[derive(Default, Clone)]
pub(crate) struct AttrMap {
    keys: Vec<Symbol>,
    values: Vec<Value>,
}

impl AttrMap {
    /// The value of a name.
    pub(crate) fn get(&self, name: Symbol) -> Option<&Value> {
        self.keys.iter().position(|k| *k == name).map(|i| &self.values[i])
    }

    /// The values, to change them.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.values.iter_mut()
    }

    /// Sets a name.
    pub(crate) fn set(&mut self, name: Symbol, value: Value) {
        match self.keys.iter().position(|k| *k == name) {
            Some(index) => self.values[index] = value,
            None => {
                self.keys.push(name);
                self.values.push(value);
            }
        }
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, name: Symbol) -> Option<Value> {
        let index = self.keys.iter().position(|k| *k == name)?;
        self.keys.remove(index);
        Some(self.values.remove(index))
    }

    /// In order of first assignment.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Symbol, &Value)> {
        self.keys.iter().copied().zip(&self.values)
    }
}
