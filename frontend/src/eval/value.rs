//! Values of the meta-program.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use nki_diag::Span;
use rustc_hash::FxHashMap;

use super::cached::Cached;
pub(crate) use super::dict::{Dict, Key};
use super::foreign::{Object, article};
use super::guess::Guess;
use super::iterator::Iter;
use super::language::{Dialect, Edge};
use super::native::Native;
pub(crate) use super::object::{
    AttrMap, Class, ClassKind, DataclassKind, Descriptor, EnumKind, EnumMember, Field, FieldDefault, FieldSpec,
    Instance, Super,
};
use crate::syntax::{FuncDef, Symbol};

/// A value. Cloning is cheap: containers are references, as in Python.
#[derive(Clone)]
pub(crate) enum Value {
    /// An unbound slot; never seen by the program.
    Unset,
    /// A captured variable; only in frame slots.
    Cell(Rc<RefCell<Value>>),
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    Ellipsis,
    NotImplemented,
    Tuple(Rc<[Value]>),
    List(Rc<List>),
    Dict(Rc<RefCell<Dict>>),
    /// A set is a dict without values.
    Set(Rc<RefCell<Dict>>),
    Range(Rc<Range>),
    Iterator(Rc<Iter>),
    Slice(Rc<Slice>),
    Function(Rc<Function>),
    /// A function decorated as a kernel.
    Kernel(Rc<Kernel>),
    BoundMethod(Rc<BoundMethod>),
    /// A method of a built-in value that was not called immediately: receiver and name.
    BoundBuiltin(Rc<(Value, Symbol)>),
    Native(Rc<Native>),
    /// `functools.partial` and similar.
    Partial(Rc<Partial>),
    /// A function that caches its results.
    Cached(Rc<Cached>),
    Class(Rc<Class>),
    Instance(Rc<Instance>),
    EnumMember(Rc<EnumMember>),
    /// `@staticmethod`, `@classmethod`, `@property` in a class.
    Descriptor(Rc<Descriptor>),
    Super(Rc<Super>),
    /// A module in Python.
    Module(Rc<Module>),
    /// A module provided by the simulator (`nki.isa`, `math`).
    NativeModule(Rc<NativeModule>),
    /// A value of the host program: modules that the evaluator does not run, and their results.
    Host(Rc<Host>),
    /// `dataclasses.field(...)`, for a field of a dataclass or record.
    FieldSpec(Rc<FieldSpec>),
    /// An exception class by its name (`ValueError`).
    ExceptionClass(Symbol),
    /// An exception object.
    Exception(Rc<Exception>),
    /// A built-in type used as a value: `int`, `list`, ...
    Type(BuiltinType),
    /// A value of a type defined outside the evaluator: see [`super::foreign`].
    Object(Rc<dyn Object>),
    /// Stands for the result of a rejected operation: see [`super::recover`].
    Poison,
}

// Values are cloned and moved constantly.
const _: () = assert!(size_of::<Value>() <= 24);

/// Drops nested values iteratively: they may be nested deeper than the stack allows.
impl Drop for Value {
    fn drop(&mut self) {
        if !self.may_nest() {
            return;
        }
        let mut waiting = Vec::new();
        self.take_nested(&mut waiting);
        while let Some(mut next) = waiting.pop() {
            next.take_nested(&mut waiting);
        }
    }
}

/// A list.
#[derive(Default)]
pub(crate) struct List {
    pub(crate) items: RefCell<Vec<Value>>,
}

impl Value {
    /// Moves out the containers that are dropped with this value.
    fn take_nested(&mut self, out: &mut Vec<Value>) {
        let mut take = |value: &mut Value| {
            if value.may_nest() {
                out.push(std::mem::replace(value, Value::Unset));
            }
        };
        match self {
            Value::Tuple(items) => Rc::get_mut(items).into_iter().flatten().for_each(take),
            Value::List(list) => {
                Rc::get_mut(list).into_iter().for_each(|list| list.items.get_mut().iter_mut().for_each(&mut take));
            }
            Value::Dict(dict) => {
                Rc::get_mut(dict).into_iter().for_each(|dict| dict.get_mut().values_mut().for_each(&mut take));
            }
            Value::Cell(cell) => Rc::get_mut(cell).into_iter().for_each(|cell| take(cell.get_mut())),
            Value::Function(function) => {
                let Some(function) = Rc::get_mut(function) else { return };
                function.attrs.get_mut().values_mut().for_each(&mut take);
                let held = [&mut function.defaults, &mut function.captures];
                held.into_iter().filter_map(Rc::get_mut).flatten().for_each(take);
            }
            Value::Instance(instance) => {
                let attrs = Rc::get_mut(instance).map(|instance| instance.attrs.get_mut());
                attrs.into_iter().for_each(|attrs| attrs.values_mut().for_each(&mut take));
            }
            Value::Partial(partial) => {
                if let Some(Partial { function, positional, keyword }) = Rc::get_mut(partial) {
                    take(function);
                    positional.iter_mut().chain(keyword.iter_mut().map(|(_, value)| value)).for_each(take);
                }
            }
            Value::Exception(exception) => {
                if let Some(Exception(_, args, attrs)) = Rc::get_mut(exception) {
                    args.iter_mut().chain(attrs.get_mut().values_mut()).for_each(take);
                }
            }
            Value::Cached(cached) => Rc::get_mut(cached).into_iter().for_each(|cached| take(&mut cached.function)),
            _ => {}
        }
    }

    /// Whether values can be nested in it to any depth.
    fn may_nest(&self) -> bool {
        matches!(
            self,
            Value::Tuple(_)
                | Value::List(_)
                | Value::Dict(_)
                | Value::Cell(_)
                | Value::Function(_)
                | Value::Instance(_)
                | Value::Partial(_)
                | Value::Exception(_)
                | Value::Cached(_)
        )
    }

    /// A string value.
    pub(crate) fn str(text: impl AsRef<str>) -> Self {
        Self::Str(text.as_ref().into())
    }

    /// A list value.
    pub(crate) fn list(items: Vec<Value>) -> Self {
        Self::List(Rc::new(List { items: RefCell::new(items) }))
    }

    /// An exception of a Python class.
    pub(crate) fn exception(class: Symbol, args: Vec<Value>) -> Self {
        Self::Exception(Rc::new(Exception(class, args, RefCell::default())))
    }

    /// A tuple value.
    pub(crate) fn tuple(items: impl Into<Rc<[Value]>>) -> Self {
        Self::Tuple(items.into())
    }

    /// A dict value.
    pub(crate) fn dict(dict: Dict) -> Self {
        Self::Dict(Rc::new(RefCell::new(dict)))
    }

    /// A native function value.
    pub(crate) fn native(name: impl Into<String>, func: super::native::NativeFn, data: u32) -> Self {
        Self::Native(Rc::new(Native { name: name.into(), func, data }))
    }

    /// The value as an integer; a bool counts as one.
    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Instance(instance) => instance.base_int(),
            // A NumPy bool is not an index.
            Self::Object(object) => match object.number() {
                Some(Self::Int(value)) => Some(*value),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value as a float, if it is a number.
    pub(crate) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            Self::Instance(instance) if let Some(value) = instance.base_float() => Some(value),
            Self::Object(object) => object.number().and_then(Self::as_float),
            _ => self.as_int().map(|v| v as f64),
        }
    }

    /// Whether this is `None`.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The items of a list or tuple.
    pub(crate) fn sequence(&self) -> Option<Vec<Value>> {
        match self {
            Self::Tuple(items) => Some(items.to_vec()),
            Self::List(list) => Some(list.items.borrow().clone()),
            _ => None,
        }
    }

    /// The type with its article, for messages: "an int", "a tensor", "None".
    pub(crate) fn a_type(&self) -> String {
        if self.is_none() { self.type_name() } else { article(&self.type_name()) }
    }

    /// The Python name of the type, for messages.
    pub(crate) fn type_name(&self) -> String {
        match self {
            Self::Unset | Self::Cell(_) => "unbound".into(),
            Self::None => "None".into(),
            Self::Bool(_) => "bool".into(),
            Self::Int(_) => "int".into(),
            Self::Float(_) => "float".into(),
            Self::Str(_) => "str".into(),
            Self::Ellipsis => "ellipsis".into(),
            Self::NotImplemented => "NotImplementedType".into(),
            Self::Tuple(_) => "tuple".into(),
            Self::List(_) => "list".into(),
            Self::Dict(_) => "dict".into(),
            Self::Set(set) => if set.borrow().is_frozen { "frozenset" } else { "set" }.into(),
            Self::Range(_) => "range".into(),
            Self::Iterator(iterator) => iterator.name.into(),
            Self::Slice(_) => "slice".into(),
            Self::Function(_) | Self::Native(_) | Self::Partial(_) | Self::Cached(_) => "function".into(),
            Self::Kernel(_) => "kernel".into(),
            Self::BoundMethod(_) | Self::BoundBuiltin(_) => "method".into(),
            Self::Class(_) | Self::ExceptionClass(_) | Self::Type(_) => "type".into(),
            Self::Instance(instance) => instance.class.name.to_string(),
            Self::EnumMember(member) => member.class.name.to_string(),
            Self::Descriptor(_) => "descriptor".into(),
            Self::Super(_) => "super".into(),
            Self::Exception(_) => "exception".into(),
            Self::Module(_) | Self::NativeModule(_) => "module".into(),
            Self::Host(host) => format!("host value `{}`", host.path),
            Self::FieldSpec(_) => "field".into(),
            Self::Poison => "unknown".into(),
            Self::Object(object) => object.type_name().into(),
        }
    }
}

/// The built-in types that are callable and usable in `isinstance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum BuiltinType {
    Int,
    Float,
    Bool,
    Str,
    Tuple,
    List,
    Dict,
    Set,
    FrozenSet,
    Slice,
    Range,
    Object,
    NoneType,
    Function,
    Type,
    Ellipsis,
    /// `enum.Enum`, as a base class.
    Enum,
    /// `enum.IntEnum`, as a base class.
    IntEnum,
    /// `enum.StrEnum`, as a base class.
    StrEnum,
    /// `enum.Flag`, as a base class.
    Flag,
    /// `enum.IntFlag`, as a base class.
    IntFlag,
    /// `typing.NamedTuple`, as a base class.
    NamedTuple,
}

impl BuiltinType {
    /// Whether its objects are immutable values.
    pub(crate) fn is_immutable(self) -> bool {
        matches!(self, Self::Int | Self::Float | Self::Str | Self::Tuple)
    }

    /// Its name in Python.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Str => "str",
            Self::Tuple => "tuple",
            Self::List => "list",
            Self::Dict => "dict",
            Self::Set => "set",
            Self::FrozenSet => "frozenset",
            Self::Slice => "slice",
            Self::Range => "range",
            Self::Object => "object",
            Self::NoneType => "NoneType",
            Self::Function => "function",
            Self::Type => "type",
            Self::Ellipsis => "ellipsis",
            Self::Enum => "Enum",
            Self::IntEnum => "IntEnum",
            Self::StrEnum => "StrEnum",
            Self::Flag => "Flag",
            Self::IntFlag => "IntFlag",
            Self::NamedTuple => "NamedTuple",
        }
    }
}

/// `range(start, stop, step)`; `step` is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: i64,
    pub(crate) stop: i64,
    pub(crate) step: i64,
}

impl Range {
    /// The number of items.
    pub(crate) fn len(&self) -> i64 {
        let (start, stop, step) = (i128::from(self.start), i128::from(self.stop), i128::from(self.step));
        let n = if step > 0 {
            (stop - start + step - 1).div_euclid(step)
        } else {
            (start - stop - step - 1).div_euclid(-step)
        };
        i64::try_from(n.max(0)).unwrap_or(i64::MAX)
    }

    /// The item at a position below [`Self::len`].
    pub(crate) fn at(&self, index: i64) -> i64 {
        self.start.wrapping_add(index.wrapping_mul(self.step))
    }
}

/// `start:stop:step`, each possibly None.
pub(crate) struct Slice {
    pub(crate) start: Value,
    pub(crate) stop: Value,
    pub(crate) step: Value,
}

/// A function or lambda with its environment.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) def: Rc<FuncDef>,
    /// The default of each parameter; `Unset` if there is none.
    pub(crate) defaults: Rc<[Value]>,
    /// Captured cells.
    pub(crate) captures: Rc<[Value]>,
    pub(crate) module: Rc<Module>,
    /// The class in which it was defined, for `super()`.
    pub(crate) class: RefCell<Option<std::rc::Weak<Class>>>,
    /// Whether the generator that it creates is a context for `with` statements.
    pub(crate) context: bool,
    /// The function that it wraps, set by `functools.wraps`.
    pub(crate) wrapped: RefCell<Option<Wrapped>>,
    /// Attributes assigned to it.
    pub(crate) attrs: RefCell<AttrMap>,
    /// The id of a function of a live host, which has its other attributes.
    pub(crate) live: Option<u64>,
}

/// The function that another one wraps, and the attributes taken from it.
#[derive(Clone)]
pub(crate) struct Wrapped {
    pub(crate) function: Value,
    pub(crate) name: Value,
    pub(crate) module: Value,
}

/// A function decorated as a kernel. Otherwise it behaves like the function.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) function: Value,
    /// Edges added to the order of its instructions.
    pub(crate) schedule: Rc<[Edge]>,
    /// The target that the decorator names.
    pub(crate) target: Option<nki_isa::Target>,
    /// Whether the compiler's middle end leaves it unchanged.
    pub(crate) as_written: bool,
    /// `compile_config=` of the decorator; None without.
    pub(crate) compile_config: Value,
    /// `specialization_config=` of the decorator; None without.
    pub(crate) specialization_config: Value,
    /// Whether it has a launch grid of the older language, so that only the host program can call
    /// it.
    pub(crate) has_grid: bool,
}

impl Kernel {
    /// Whether its function is written in a dialect of the older compiler.
    pub(crate) fn is_older(&self) -> bool {
        match &self.function {
            Value::Function(function) => function.module.dialect.get().is_older(),
            Value::Kernel(kernel) => kernel.is_older(),
            _ => false,
        }
    }
}

/// An exception object: its class, its arguments and other attributes.
pub(crate) struct Exception(pub(crate) Symbol, pub(crate) Vec<Value>, pub(crate) RefCell<AttrMap>);

/// A method with its receiver.
pub(crate) struct BoundMethod {
    pub(crate) receiver: Value,
    pub(crate) function: Value,
}

/// A function with some arguments given.
pub(crate) struct Partial {
    pub(crate) function: Value,
    pub(crate) positional: Vec<Value>,
    pub(crate) keyword: Vec<(Symbol, Value)>,
}

/// A module in Python.
pub(crate) struct Module {
    /// Dotted name.
    pub(crate) name: String,
    /// Path of the file.
    pub(crate) path: std::path::PathBuf,
    pub(crate) globals: RefCell<Vec<Value>>,
    pub(crate) index: RefCell<FxHashMap<Symbol, u32>>,
    /// Name of each global.
    pub(crate) symbols: RefCell<Vec<Symbol>>,
    /// The scope of a live host in which unbound names are looked up.
    pub(crate) live: Option<u64>,
    /// The language in which it is written.
    pub(crate) dialect: Cell<&'static dyn Dialect>,
    /// Whether it has imported no dialect's package so far: see [`super::Interp::adopt_dialect`].
    pub(crate) unnamed: Cell<bool>,
    /// Modules of the simulator from which it imports all names (`import *`). Names that it does
    /// not use are looked up when other modules use them.
    pub(crate) stars: RefCell<Vec<Value>>,
    /// Globals, by index, whose values are wrong if an assumption about the host is.
    pub(crate) guesses: RefCell<FxHashMap<u32, Guess>>,
}

/// A module the simulator provides.
pub(crate) struct NativeModule {
    /// Dotted name after aliases: `nki.isa`, `math`.
    pub(crate) path: String,
    /// The dialect that provides it; `None` for standard-library modules and packages.
    pub(crate) dialect: Option<&'static dyn Dialect>,
    /// Attributes looked up so far.
    pub(crate) attrs: RefCell<AttrMap>,
}

/// A value of the host program, which is not run here.
#[derive(Clone)]
pub(crate) struct Host {
    /// The expression that it comes from: `torch.randn`.
    pub(crate) path: String,
    /// Why there is no value: an import, or a statement that could not be run.
    pub(crate) reason: Option<String>,
    /// Where it came from.
    pub(crate) span: Option<Span>,
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Str(value) => write!(f, "{value:?}"),
            other => write!(f, "<{}>", other.type_name()),
        }
    }
}
