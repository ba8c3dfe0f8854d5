//! The interface to a live Python process around the kernel: the values that it provides, and requests for more.
//!
//! Without a host, a kernel's file is interpreted from the top. With one, the file has already run in Python: names that
//! the kernel does not bind itself are looked up there. Plain values are copied; functions and classes are passed
//! by their location in a source file, so that the evaluator interprets them, too.

use std::fmt;
use std::sync::Arc;

use nki_isa::DType;
use nki_isa::names::Named;

/// The element type of a [`HostArray`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostDtype {
    /// A type supported by the machine.
    Device(DType),
    /// `float64`
    F64,
    /// `int64`
    I64,
    /// `uint64`
    U64,
}

impl HostDtype {
    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            HostDtype::Device(d) => d.size(),
            HostDtype::F64 | HostDtype::I64 | HostDtype::U64 => 8,
        }
    }

    /// NumPy's name of it.
    pub fn name(self) -> &'static str {
        match self {
            HostDtype::Device(d) => d.name(),
            HostDtype::F64 => "float64",
            HostDtype::I64 => "int64",
            HostDtype::U64 => "uint64",
        }
    }

    /// The type of this name.
    pub fn from_name(name: &str) -> Option<HostDtype> {
        Some(match name {
            "float64" => HostDtype::F64,
            "int64" => HostDtype::I64,
            "uint64" => HostDtype::U64,
            name => HostDtype::Device(DType::from_name(name)?),
        })
    }

    /// Whether NumPy itself has the type; the others are those of ml_dtypes.
    pub fn is_of_numpy(self) -> bool {
        !self.is_float() || matches!(self, HostDtype::F64 | HostDtype::Device(DType::F16 | DType::F32))
    }

    /// Whether its numbers are integers without a sign.
    pub fn is_unsigned(self) -> bool {
        match self {
            HostDtype::Device(d) => !d.is_float() && !d.is_signed() && d != DType::Bool,
            HostDtype::U64 => true,
            HostDtype::F64 | HostDtype::I64 => false,
        }
    }

    /// Whether its numbers may have fractions.
    pub fn is_float(self) -> bool {
        match self {
            HostDtype::Device(d) => d.is_float(),
            HostDtype::F64 => true,
            HostDtype::I64 | HostDtype::U64 => false,
        }
    }
}

impl fmt::Display for HostDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl HostArray {
    /// Maximum elements of an array as a constant; a larger one is data, and an argument.
    pub const MOST_ELEMENTS: usize = 1 << 22;
}

/// An array with its contents: a constant of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct HostArray {
    /// Element type.
    pub dtype: HostDtype,
    /// Extents.
    pub shape: Vec<usize>,
    /// Little-endian bytes, row-major.
    pub data: Arc<[u8]>,
}

/// A value from outside: an argument of a kernel, or an object of a live host.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// A tensor in HBM; its contents are irrelevant here.
    Tensor {
        /// Extents.
        shape: Vec<usize>,
        /// Element type.
        dtype: DType,
    },
    /// An array that is a constant, not an input: its contents are part of the program.
    Array(HostArray),
    /// A scalar of NumPy (`np.float32(0.1)`): an array without dimensions.
    Scalar(HostArray),
    /// `None`
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(String),
    /// `...`
    Ellipsis,
    /// A tuple.
    Tuple(Vec<Arg>),
    /// A list.
    List(Vec<Arg>),
    /// A set.
    Set(Vec<Arg>),
    /// A frozenset.
    FrozenSet(Vec<Arg>),
    /// A dict in insertion order.
    Dict(Vec<(Arg, Arg)>),
    /// A `collections.defaultdict` with a factory.
    DefaultDict {
        /// The function that creates a missing value.
        factory: Box<Arg>,
        /// In insertion order.
        entries: Vec<(Arg, Arg)>,
    },
    /// `slice(start, stop, step)`
    Slice(Box<[Arg; 3]>),
    /// `range(start, stop, step)`
    Range([i64; 3]),
    /// An element type.
    Dtype(DType),
    /// An object of the simulator itself, by its dotted name: `nki.isa.engine.vector`, `math.sqrt`, `builtins.len`.
    Api(String),
    /// The result of calling a function of the simulator: `nki.collectives.ReplicaGroup([[0, 1]])`.
    Call {
        /// Its dotted name.
        function: String,
        /// The arguments.
        positional: Vec<Arg>,
    },
    /// A function, class or module of the host, to be described by [`Host::describe`].
    Object(u64),
    /// An object of a class of the host.
    Instance {
        /// Its class.
        class: Box<Arg>,
        /// Its attributes.
        fields: Vec<(String, Arg)>,
    },
    /// A member of an Enum class of the host.
    Member {
        /// Its class.
        class: Box<Arg>,
        /// Its name.
        name: String,
    },
    /// A bound method.
    Method {
        /// Its receiver.
        receiver: Box<Arg>,
        /// The function.
        function: Box<Arg>,
    },
    /// `functools.partial(...)`
    Partial {
        /// The function.
        function: Box<Arg>,
        /// Leading arguments.
        positional: Vec<Arg>,
        /// Keyword arguments.
        keyword: Vec<(String, Arg)>,
    },
    /// A list, dict, set or object: two values of the same identity are one object.
    Shared(Identity, Box<Arg>),
    /// A value that occurred before in the same value: the `n`-th [`Arg::Shared`].
    Again(Identity, usize),
    /// A value without meaning in a kernel.
    Opaque {
        /// Its origin: `torch.randn`.
        path: String,
        /// The reason why the kernel cannot use it.
        reason: Option<String>,
    },
}

/// The identity of a value of the host. Ignored by the equality of [`Arg`]s: an equal list is equivalent.
#[derive(Debug, Clone, Copy)]
pub struct Identity(pub u64);

impl PartialEq for Identity {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A function of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostFunction {
    /// Its name; `<lambda>` for a lambda.
    pub name: String,
    /// The file with its source, as accepted by [`Host::source`].
    pub file: String,
    /// Line of its first decorator or of `def` (Python's `co_firstlineno`).
    pub line: u32,
    /// Its parameters' names, to distinguish two lambdas of a line.
    pub params: Vec<String>,
    /// Start of a lambda's body, to distinguish lambdas of a line with the same parameters: its line
    /// (from 1) and its column in bytes of UTF-8 (from 0), as Python counts them. `None` if Python does not record it.
    pub body: Option<(u32, u32)>,
    /// The scope of its global names, for [`Host::global`].
    pub scope: u64,
    /// Defaults by parameter.
    pub defaults: Vec<(String, Arg)>,
    /// Captured variables; `None` is not assigned yet.
    pub closure: Vec<(String, Option<Arg>)>,
    /// If decorated with `nki.jit`: its `compile_config` and `specialization_config`.
    pub kernel: Option<Box<[Arg; 2]>>,
    /// Whether it is a kernel with a launch grid of the older language, which another kernel cannot call.
    pub has_grid: bool,
}

/// The kind of a class, by its bases and decorators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostClassKind {
    /// Attributes come from `__init__` alone.
    Plain,
    /// A subclass of the language's base class of records: `__init__` is generated from the fields.
    Record,
    /// `@dataclass`
    Dataclass(HostDataclass),
    /// A subclass of `Enum`.
    Enum(HostEnum),
    /// A subclass of `NamedTuple`.
    NamedTuple,
    /// A subclass of an exception class.
    Exception,
}

/// Further properties of an Enum class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostEnum {
    /// The type whose values the members also are.
    pub mixin: Option<HostMixin>,
    /// Whether members combine with `|`.
    pub flag: bool,
    /// Whether their text is that of their values.
    pub shows_value: bool,
}

/// The base type of the members of an Enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMixin {
    /// `int`
    Int,
    /// `str`
    Str,
    /// `float`
    Float,
}

/// The options of `@dataclass`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostDataclass {
    /// Whether the constructor is generated from the fields.
    pub init: bool,
    /// Whether `repr` shows the fields.
    pub repr: bool,
    /// Whether objects are compared by their fields.
    pub eq: bool,
    /// Whether objects are ordered.
    pub order: bool,
    /// Whether objects are hashed by their fields, frozen or not.
    pub unsafe_hash: bool,
    /// Whether assignments after construction are rejected.
    pub frozen: bool,
}

/// An attribute of a class.
#[derive(Debug, Clone, PartialEq)]
pub enum HostAttribute {
    /// A method or a value.
    Plain(Arg),
    /// `@staticmethod`
    Static(Arg),
    /// `@classmethod`
    Class(Arg),
    /// `@property`
    Property {
        /// The getter.
        get: Arg,
        /// The setter.
        set: Option<Arg>,
        /// The deleter.
        delete: Option<Arg>,
    },
    /// `@cached_property`
    CachedProperty(Arg),
}

/// The default of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum HostDefault {
    /// None: the caller must provide a value.
    Required,
    /// This value.
    Value(Arg),
    /// The result of this function.
    Factory(Arg),
}

/// A field of a dataclass, record or NamedTuple.
#[derive(Debug, Clone, PartialEq)]
pub struct HostField {
    /// Its name.
    pub name: String,
    /// Its default.
    pub default: HostDefault,
    /// Whether it is a parameter of the constructor.
    pub init: bool,
    /// Whether it is keyword-only.
    pub kw_only: bool,
    /// Whether comparisons of objects include it.
    pub compare: bool,
    /// Whether `repr` shows it.
    pub repr: bool,
    /// Whether it is not an attribute, but an argument of `__post_init__` (`InitVar`).
    pub init_only: bool,
}

/// A class of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostClass {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: HostClassKind,
    /// Whether it is a record, or a dataclass that derives from one: missing fields are None.
    pub record: bool,
    /// Its base classes with source, nearest first (its method resolution order without itself).
    pub bases: Vec<Arg>,
    /// Its own attributes.
    pub attributes: Vec<(String, HostAttribute)>,
    /// All fields, inherited ones first.
    pub fields: Vec<HostField>,
    /// `@total_ordering`: missing comparisons are derived from an existing one.
    pub total_ordering: bool,
    /// Members of an Enum: name, name of the member it is an alias of (its own if none), value.
    pub members: Vec<(String, String, Arg)>,
}

/// The description of an [`Arg::Object`].
#[derive(Debug, Clone, PartialEq)]
pub enum HostObject {
    /// A function.
    Function(HostFunction),
    /// A class.
    Class(HostClass),
    /// A function with cached results: `@cache`, `@lru_cache`.
    Cached {
        /// The function.
        function: Arg,
        /// Maximum number of cached results; None is unlimited.
        limit: Option<usize>,
        /// Whether equal arguments of different types are cached separately.
        typed: bool,
    },
    /// A module.
    Module {
        /// Dotted name.
        name: String,
        /// Its file, if it has one.
        file: String,
        /// The scope of its names.
        scope: u64,
    },
    /// An object without source or meaning.
    Opaque {
        /// Its origin.
        path: String,
        /// The reason why a kernel cannot use it.
        reason: Option<String>,
    },
}

/// A live Python process. Called on the evaluating thread.
pub trait Host: Sync {
    /// The value of a global name; `None` if it is not bound there (it may be a builtin).
    fn global(&self, scope: u64, name: &str) -> Option<Arg>;
    /// The description of an object.
    fn describe(&self, object: u64) -> HostObject;
    /// The text of a file.
    fn source(&self, file: &str) -> Option<String>;
    /// The array in a `.npy` file.
    ///
    /// # Errors
    /// If it cannot be read.
    fn array(&self, file: &str) -> Result<HostArray, String>;
    /// The module that `import path` imports in code of this scope; relative if `path` starts with dots.
    fn import(&self, scope: u64, path: &str) -> Option<Arg>;
    /// The modules of the global names of a scope: modules among them, and those of functions of the simulator.
    fn modules(&self, _scope: u64) -> Vec<String> {
        Vec::new()
    }
}
