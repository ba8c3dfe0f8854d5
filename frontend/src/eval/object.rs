//! Classes, objects and their attributes.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use nki_diag::Span;

use super::value::{BuiltinType, Value};
use crate::syntax::{ClassDef, Symbol};

/// The kind of a class, determined by its bases and decorators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassKind {
    /// `class C:`; attributes are set only by `__init__`.
    Plain,
    /// A subclass of the dialect's base class of records: `__init__` is generated from the fields.
    Record,
    /// `@dataclass`
    Dataclass(DataclassKind),
    /// A subclass of `Enum`.
    Enum(EnumKind),
    /// A subclass of `NamedTuple`.
    NamedTuple,
    /// A subclass of this Python exception class.
    Exception(Symbol),
}

impl ClassKind {
    /// Whether a class of this kind has a constructor generated from its fields.
    pub(crate) fn makes_init(self) -> bool {
        match self {
            ClassKind::Dataclass(told) => told.init,
            ClassKind::Record | ClassKind::NamedTuple => true,
            ClassKind::Plain | ClassKind::Enum(_) | ClassKind::Exception(_) => false,
        }
    }
}

/// The options of `@dataclass`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataclassKind {
    /// Whether assignments after construction are rejected.
    pub(crate) frozen: bool,
    /// Whether objects are compared by their fields.
    pub(crate) eq: bool,
    /// Whether objects are ordered.
    pub(crate) order: bool,
    /// Whether objects are hashed by their fields even if not frozen.
    pub(crate) unsafe_hash: bool,
    /// Whether the constructor is generated from the fields.
    pub(crate) init: bool,
    /// Whether objects are shown with their fields.
    pub(crate) repr: bool,
}

/// The properties of the members of an Enum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EnumKind {
    /// The type of which the members are also values: `class Mode(str, Enum)`.
    pub(crate) mixin: Option<BuiltinType>,
    /// Whether members combine with `|`: `Flag`, `IntFlag`.
    pub(crate) flag: bool,
    /// Whether the text of a member is that of its value: `IntEnum`, `StrEnum`, `IntFlag`.
    pub(crate) shows_value: bool,
}

impl EnumKind {
    /// The properties that an Enum inherits from a standard-library base class.
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

    /// Whether members are instances of a standard-library type.
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

/// A declared field of a class.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) name: Symbol,
    pub(crate) default: FieldDefault,
    /// Whether the constructor accepts it.
    pub(crate) init: bool,
    pub(crate) kw_only: bool,
    /// Whether comparisons include it.
    pub(crate) compare: bool,
    /// Whether the hash includes it; `None` means the same as `compare`.
    pub(crate) hash: Option<bool>,
    /// Whether `repr` shows it.
    pub(crate) repr: bool,
    /// Whether it is only an argument of `__post_init__` (`InitVar`), not an attribute.
    pub(crate) init_only: bool,
}

impl Field {
    /// A field that the constructor accepts.
    pub(crate) fn new(name: Symbol, default: FieldDefault) -> Self {
        Self { name, default, init: true, kw_only: false, compare: true, hash: None, repr: true, init_only: false }
    }
}

/// The value of a field that the caller omits.
#[derive(Clone)]
pub(crate) enum FieldDefault {
    /// The caller must provide it (in a lenient class it becomes None).
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
    /// The members of an Enum, in order.
    pub(crate) members: RefCell<Vec<Rc<EnumMember>>>,
    /// Members of a Flag that have several bits or none, if declared or already computed.
    pub(crate) combinations: RefCell<Vec<Rc<EnumMember>>>,
    /// Whether it derives from the base class of records: omitted fields without a default become
    /// None.
    pub(crate) lenient: bool,
    /// Its statement, unless a function created it.
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

    /// The Python exception class from which it derives.
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
    /// Whether construction is complete and the class is frozen.
    pub(crate) frozen: Cell<bool>,
}

/// A member of an Enum.
pub(crate) struct EnumMember {
    pub(crate) class: Rc<Class>,
    /// Empty for an unnamed combination of flags.
    pub(crate) name: Symbol,
    pub(crate) value: Value,
    /// Attributes that `__init__` of its class has set.
    pub(crate) attrs: RefCell<AttrMap>,
}

/// A class attribute that attribute access transforms.
pub(crate) enum Descriptor {
    Static(Value),
    Class(Value),
    Property {
        get: Value,
        set: Option<Value>,
        delete: Option<Value>,
    },
    /// A function implemented in Rust that takes the receiver as its first argument.
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

/// The result of `super()` in a method.
pub(crate) struct Super {
    /// The class whose bases are searched.
    pub(crate) class: Rc<Class>,
    pub(crate) receiver: Value,
}

/// Attributes. There are few, and they are looked up by symbol, so a linear scan of packed keys is
/// fastest.
#[derive(Default, Clone)]
pub(crate) struct AttrMap {
    keys: Vec<Symbol>,
    values: Vec<Value>,
}

impl AttrMap {
    /// The value for a name.
    pub(crate) fn get(&self, name: Symbol) -> Option<&Value> {
        self.keys.iter().position(|k| *k == name).map(|i| &self.values[i])
    }

    /// The values, mutably.
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

    /// The attributes in order of first assignment.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Symbol, &Value)> {
        self.keys.iter().copied().zip(&self.values)
    }
}
