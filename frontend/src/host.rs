//! A live Python process around the kernel: what it provides, and how more is requested.
//!
//! Without one, a kernel's file is interpreted from the top. With one, the file has run already in Python: names that
//! the kernel does not bind itself are looked up there. Plain values are copied; functions and classes are handed over
//! by their place in a source file, so that the evaluator interprets them, too.

use std::fmt;
use std::sync::Arc;

use nki_isa::DType;
use nki_isa::names::Named;

/// The element type of a [`HostArray`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostDtype {
    /// A type that the machine has.
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
    /// Elements up to which an array is a constant; what is larger is data, and an argument.
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

/// A value from outside: an argument of a kernel, or something a live host hands over.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// A tensor in HBM; its contents do not matter here.
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
        /// What makes a missing value.
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
    /// Something that the simulator provides itself, by its dotted name: `nki.isa.engine.vector`, `math.sqrt`, `builtins.len`.
    Api(String),
    /// What calling something of the simulator gives: `nki.collectives.ReplicaGroup([[0, 1]])`.
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
        /// What it is bound to.
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
    /// A list, dict, set or object: two values of the same identity are one.
    Shared(Identity, Box<Arg>),
    /// A value that occurred before in the same value: the `n`-th [`Arg::Shared`].
    Again(Identity, usize),
    /// A value that has no meaning in a kernel.
    Opaque {
        /// How it came about: `torch.randn`.
        path: String,
        /// Why the kernel cannot use it.
        reason: Option<String>,
    },
}

/// Which object of the host a value is. Does not count for the equality of [`Arg`]s: an equal list is as good.
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
    /// The file with its source, as [`Host::source`] takes it.
    pub file: String,
    /// Line of its first decorator or of `def` (Python's `co_firstlineno`).
    pub line: u32,
    /// Its parameters' names, to distinguish two lambdas of a line.
    pub params: Vec<String>,
    /// Where the code of a lambda's body begins, to distinguish lambdas of a line with the same parameters: its line
    /// (from 1) and its column in bytes of UTF-8 (from 0), as Python counts them. `None` if Python does not record it.
    pub body: Option<(u32, u32)>,
    /// The scope of its global names, for [`Host::global`].
    pub scope: u64,
    /// Defaults by parameter.
    pub defaults: Vec<(String, Arg)>,
    /// Captured variables; `None` is not assigned yet.
    pub closure: Vec<(String, Option<Arg>)>,
    /// Decorated with `nki.jit`: its `compile_config` and `specialization_config`.
    pub kernel: Option<Box<[Arg; 2]>>,
    /// A kernel with a launch grid of the older language, which another kernel cannot call.
    pub has_grid: bool,
}

/// Which kind of class, by its bases and decorators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostClassKind {
    /// Attributes come from `__init__` alone.
    Plain,
    /// A subclass of the language's base class of records: `__init__` is made from the fields.
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

/// What the members of an Enum are besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostEnum {
    /// Members are integers or texts, too.
    pub mixin: Option<HostMixin>,
    /// They combine with `|`.
    pub flag: bool,
    /// Their text is that of their values.
    pub shows_value: bool,
}

/// The type whose values the members of an Enum are, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMixin {
    /// `int`
    Int,
    /// `str`
    Str,
    /// `float`
    Float,
}

/// What `@dataclass` was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostDataclass {
    /// The constructor is made from the fields.
    pub init: bool,
    /// Objects are shown with their fields.
    pub repr: bool,
    /// Objects are compared by their fields.
    pub eq: bool,
    /// Objects have an order.
    pub order: bool,
    /// Objects are hashed by their fields, frozen or not.
    pub unsafe_hash: bool,
    /// Assignments after construction are refused.
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
        /// What gives its value.
        get: Arg,
        /// What is called to assign it.
        set: Option<Arg>,
        /// What is called to delete it.
        delete: Option<Arg>,
    },
    /// `@cached_property`
    CachedProperty(Arg),
}

/// What a field is set to when the caller gives nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum HostDefault {
    /// The caller must give it.
    Required,
    /// This value.
    Value(Arg),
    /// What this function returns.
    Factory(Arg),
}

/// A field of a dataclass, record or NamedTuple.
#[derive(Debug, Clone, PartialEq)]
pub struct HostField {
    /// Its name.
    pub name: String,
    /// Its default.
    pub default: HostDefault,
    /// Whether the constructor takes it.
    pub init: bool,
    /// Only by keyword.
    pub kw_only: bool,
    /// Whether it counts when objects are compared.
    pub compare: bool,
    /// Whether it is shown.
    pub repr: bool,
    /// It is no attribute, but an argument of `__post_init__` (`InitVar`).
    pub init_only: bool,
}

/// A class of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostClass {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: HostClassKind,
    /// A record, or a dataclass that derives from one: fields that are not given are None.
    pub record: bool,
    /// The classes it derives from, nearest first (its method resolution order without itself), of those that have source.
    pub bases: Vec<Arg>,
    /// Its own attributes.
    pub attributes: Vec<(String, HostAttribute)>,
    /// All fields, inherited ones first.
    pub fields: Vec<HostField>,
    /// `@total_ordering`: the comparisons that it does not define follow from one that it does.
    pub total_ordering: bool,
    /// Members of an Enum: name, name of the member it is an alias of (its own if none), value.
    pub members: Vec<(String, String, Arg)>,
}

/// What an [`Arg::Object`] is.
#[derive(Debug, Clone, PartialEq)]
pub enum HostObject {
    /// A function.
    Function(HostFunction),
    /// A class.
    Class(HostClass),
    /// A function that keeps its results: `@cache`, `@lru_cache`.
    Cached {
        /// The function.
        function: Arg,
        /// Most results that it keeps; None is any number.
        limit: Option<usize>,
        /// Equal arguments of other types are others.
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
    /// No source, no meaning.
    Opaque {
        /// How it came about.
        path: String,
        /// Why a kernel cannot use it.
        reason: Option<String>,
    },
}

/// A live Python process. Called on the thread that evaluates.
pub trait Host: Sync {
    /// The value of a global name; `None` if it is not bound there (it may be a builtin).
    fn global(&self, scope: u64, name: &str) -> Option<Arg>;
    /// What an object is.
    fn describe(&self, object: u64) -> HostObject;
    /// The text of a file.
    fn source(&self, file: &str) -> Option<String>;
    /// The array in a `.npy` file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn array(&self, file: &str) -> Result<HostArray, String>;
    /// The module that `import path` finds in code of this scope; relative if `path` begins with dots.
    fn import(&self, scope: u64, path: &str) -> Option<Arg>;
    /// The modules that the global names of a scope belong to: those among them, and those of functions of the simulator.
    fn modules(&self, _scope: u64) -> Vec<String> {
        Vec::new()
    }
}
