//! The syntax tree for the evaluator: a small, closed subset of Python.
//!
//! [`super::parse`] builds it from the parser crate's tree and is the only module that depends on that crate. Names are
//! interned to [`Symbol`]s, every node has its byte span, and unsupported constructs are kept as an `Unsupported`
//! node so that host-only code in the same file is harmless unless a kernel executes it.
//! [`super::resolve`] fills in the [`Slot`]s before evaluation.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use nki_diag::Span;
use rustc_hash::FxHashMap;

use super::carried::{Carried, carried};

/// An interned name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct Symbol(pub(crate) u32);

/// The table of interned names.
pub(crate) struct Interner {
    names: Vec<Rc<str>>,
    index: FxHashMap<Rc<str>, Symbol>,
}

impl Interner {
    /// A table that contains the names of [`sym`] at their fixed indices.
    pub(crate) fn new() -> Self {
        let mut table = Self { names: Vec::new(), index: FxHashMap::default() };
        for name in sym::ALL {
            table.intern(name);
        }
        table
    }

    /// The symbol of `name`, created if necessary.
    pub(crate) fn intern(&mut self, name: &str) -> Symbol {
        if let Some(&symbol) = self.index.get(name) {
            return symbol;
        }
        let text: Rc<str> = name.into();
        let symbol = Symbol(self.names.len() as u32);
        self.names.push(text.clone());
        self.index.insert(text, symbol);
        symbol
    }

    /// The symbol of `name` if it was ever interned.
    pub(crate) fn find(&self, name: &str) -> Option<Symbol> {
        self.index.get(name).copied()
    }

    /// The text of a symbol.
    pub(crate) fn name(&self, symbol: Symbol) -> &Rc<str> {
        &self.names[symbol.0 as usize]
    }
}

macro_rules! symbols {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// Names used by the evaluator itself.
        // The table is Python's: not every dunder is used.
        #[allow(non_upper_case_globals, missing_docs, dead_code)]
        pub(crate) mod sym {
            use super::Symbol;
            #[allow(non_camel_case_types, clippy::enum_variant_names)]
            enum Index { $($name),* }
            $(pub(crate) const $name: Symbol = Symbol(Index::$name as u32);)*
            pub(crate) const ALL: &[&str] = &[$($text),*];
        }
    };
}

symbols! {
    empty = "", nki_validation_error = "NkiValidationError", init = "__init__", post_init = "__post_init__", name = "__name__", file = "__file__", doc = "__doc__",
    class = "__class__", module = "__module__", dict = "__dict__", qualname = "__qualname__",
    getitem = "__getitem__", setitem = "__setitem__", call = "__call__", len = "__len__", repr = "__repr__", str_ = "__str__",
    bool_ = "__bool__", iter = "__iter__", contains = "__contains__", hash = "__hash__", getattr = "__getattr__",
    enter = "__enter__", exit = "__exit__", format = "__format__", int_ = "__int__", float_ = "__float__", index = "__index__",
    eq = "__eq__", ne = "__ne__", lt = "__lt__", le = "__le__", gt = "__gt__", ge = "__ge__",
    add = "__add__", sub = "__sub__", mul = "__mul__", matmul = "__matmul__", truediv = "__truediv__", mod_ = "__mod__", pow = "__pow__",
    floordiv = "__floordiv__", lshift = "__lshift__", rshift = "__rshift__", or = "__or__", xor = "__xor__", and = "__and__",
    radd = "__radd__", rsub = "__rsub__", rmul = "__rmul__", rmatmul = "__rmatmul__", rtruediv = "__rtruediv__", rmod = "__rmod__",
    rpow = "__rpow__", rfloordiv = "__rfloordiv__", rlshift = "__rlshift__", rrshift = "__rrshift__", ror = "__ror__", rxor = "__rxor__",
    rand = "__rand__", iadd = "__iadd__", isub = "__isub__", imul = "__imul__", imatmul = "__imatmul__", itruediv = "__itruediv__",
    imod = "__imod__", ipow = "__ipow__", ifloordiv = "__ifloordiv__", ilshift = "__ilshift__", irshift = "__irshift__", ior = "__ior__",
    ixor = "__ixor__", iand = "__iand__", neg = "__neg__", pos = "__pos__", invert = "__invert__", abs = "__abs__",
    req = "__req__", rne = "__rne__", rlt = "__rlt__", rle = "__rle__", rgt = "__rgt__", rge = "__rge__",
    self_ = "self", value = "value", plain_name = "name", lambda = "<lambda>", module_body = "<module>", args = "args", kwargs = "kwargs",
    key = "key", reverse = "reverse", default = "default", default_factory = "default_factory", start = "start", stop = "stop", step = "step",
    sep = "sep", end = "end", strict = "strict", frozen = "frozen", fset = "fset", setter = "setter", initial = "initial", fields = "_fields",
    asdict = "_asdict", replace = "_replace", shape = "shape", dtype = "dtype", abstractmethods = "__abstractmethods__", init_false = "init",
    kw_only = "kw_only", repr_kw = "repr", message = "message", func = "func", wrapped = "__wrapped__", missing = "_missing_",
    new = "__new__", min = "min", max = "max", eps = "eps", tiny = "tiny", bits = "bits", message_attr = "msg", setdefault = "setdefault",
    slots = "__slots__", annotations = "__annotations__", members = "__members__", rel_tol = "rel_tol", abs_tol = "abs_tol",
    maxsplit = "maxsplit", repeat = "repeat", fillvalue = "fillvalue", axis = "axis", ndigits = "ndigits", base = "base", property_ = "property",
    super_ = "super", cls = "cls", object = "object", count = "count", plain_len = "len", plain_get = "get", next_ = "__next__",
    genexpr = "<genexpr>", iterable = ".0", stop_iteration = "StopIteration", cause = "__cause__", context = "__context__", suppress_context = "__suppress_context__",
    round = "__round__", floor = "__floor__", ceil = "__ceil__", trunc = "__trunc__", generator_exit = "GeneratorExit", match_args = "__match_args__",
    runtime_error = "RuntimeError", setattr = "__setattr__", delattr = "__delattr__", getattribute = "__getattribute__", get = "__get__", set = "__set__",
    set_name = "__set_name__", delitem = "__delitem__", base_value = "_base_value", init_subclass = "__init_subclass__", metaclass = "metaclass", isabstractmethod = "__isabstractmethod__", mro = "__mro__", class_getitem = "__class_getitem__",
}

/// The location of a name's value; filled in by the scope pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    /// Not resolved yet.
    Unresolved,
    /// A slot of the running frame (possibly holding a cell).
    Local(u32),
    /// A captured cell of the running function.
    Free(u32),
    /// A global of the module.
    Global(u32),
    /// A name of the class body being run; the second part is the module global as a fallback.
    Class(u32, u32),
}

/// Slots of one function, lambda, class body or module body.
#[derive(Default, Debug)]
pub(crate) struct Scope {
    /// Number of frame slots. Parameters come first, in the order of [`Params::all`].
    pub(crate) slots: u32,
    /// Name of each slot, for messages and for class bodies.
    pub(crate) names: Vec<Symbol>,
    /// Slots that nested functions capture.
    pub(crate) cells: Vec<u32>,
    /// Which cells of the enclosing frame this one captures.
    pub(crate) captures: Vec<Capture>,
    /// The captured variables' names.
    pub(crate) captured: Vec<Symbol>,
}

/// A cell of the enclosing frame, captured when a closure is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// From a slot of the enclosing frame.
    Slot(u32),
    /// From a capture of the enclosing function.
    Free(u32),
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum BinOp {
    Add,
    Sub,
    Mul,
    MatMul,
    Div,
    Mod,
    Pow,
    LShift,
    RShift,
    BitOr,
    BitXor,
    BitAnd,
    FloorDiv,
}

impl BinOp {
    /// Python's spelling.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::MatMul => "@",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Pow => "**",
            Self::LShift => "<<",
            Self::RShift => ">>",
            Self::BitOr => "|",
            Self::BitXor => "^",
            Self::BitAnd => "&",
            Self::FloorDiv => "//",
        }
    }

    /// The method, its reflected form and its in-place form.
    pub(crate) fn methods(self) -> (Symbol, Symbol, Symbol) {
        match self {
            Self::Add => (sym::add, sym::radd, sym::iadd),
            Self::Sub => (sym::sub, sym::rsub, sym::isub),
            Self::Mul => (sym::mul, sym::rmul, sym::imul),
            Self::MatMul => (sym::matmul, sym::rmatmul, sym::imatmul),
            Self::Div => (sym::truediv, sym::rtruediv, sym::itruediv),
            Self::Mod => (sym::mod_, sym::rmod, sym::imod),
            Self::Pow => (sym::pow, sym::rpow, sym::ipow),
            Self::LShift => (sym::lshift, sym::rlshift, sym::ilshift),
            Self::RShift => (sym::rshift, sym::rrshift, sym::irshift),
            Self::BitOr => (sym::or, sym::ror, sym::ior),
            Self::BitXor => (sym::xor, sym::rxor, sym::ixor),
            Self::BitAnd => (sym::and, sym::rand, sym::iand),
            Self::FloorDiv => (sym::floordiv, sym::rfloordiv, sym::ifloordiv),
        }
    }
}

/// A unary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum UnaryOp {
    Neg,
    Pos,
    Invert,
    Not,
}

impl UnaryOp {
    /// As it is written.
    pub(crate) fn text(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::Pos => "+",
            UnaryOp::Invert => "~",
            UnaryOp::Not => "not",
        }
    }
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Is,
    IsNot,
    In,
    NotIn,
}

impl CmpOp {
    /// Python's spelling.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Is => "is",
            Self::IsNot => "is not",
            Self::In => "in",
            Self::NotIn => "not in",
        }
    }

    /// The method and its reflected form; none for identity and membership. The last is KLR's name of the
    /// reflected form (`__req__`), which Python does not have.
    pub(crate) fn methods(self) -> Option<(Symbol, Symbol, Symbol)> {
        Some(match self {
            Self::Eq => (sym::eq, sym::eq, sym::req),
            Self::Ne => (sym::ne, sym::ne, sym::rne),
            Self::Lt => (sym::lt, sym::gt, sym::rlt),
            Self::Le => (sym::le, sym::ge, sym::rle),
            Self::Gt => (sym::gt, sym::lt, sym::rgt),
            Self::Ge => (sym::ge, sym::le, sym::rge),
            _ => return None,
        })
    }
}

/// An expression.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

/// The kind of an expression.
#[derive(Debug)]
pub(crate) enum ExprKind {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    Ellipsis,
    Name(Symbol, Slot),
    Attr(Box<Expr>, Symbol),
    Subscript(Box<Expr>, Box<Expr>),
    Slice(Option<Box<Expr>>, Option<Box<Expr>>, Option<Box<Expr>>),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Set(Vec<Expr>),
    /// Pairs; no key means `**mapping`.
    Dict(Vec<(Option<Expr>, Expr)>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Compare(Box<Expr>, Vec<(CmpOp, Expr)>),
    /// test, then, else
    IfElse(Box<Expr>, Box<Expr>, Box<Expr>),
    Call(Box<Expr>, Vec<Argument>),
    Lambda(Rc<FuncDef>),
    /// `name := value`
    Walrus(Box<Expr>, Box<Expr>),
    Comp(Box<Comp>),
    /// A generator expression: a function of its first iterable, and the iterable.
    Generator(Rc<FuncDef>, Box<Expr>),
    /// `yield value`, or `yield from value`, before [`super::hoist`] makes it a statement.
    Yield(Option<Box<Expr>>, bool),
    FString(Vec<FPart>),
    Starred(Box<Expr>),
    Unsupported(Unsupported),
}

/// An unsupported construct of Python: its name and the suggested replacement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unsupported {
    pub(crate) construct: &'static str,
    pub(crate) instead: &'static str,
}

/// One argument of a call.
#[derive(Debug)]
pub(crate) enum Argument {
    Positional(Expr),
    Keyword(Symbol, Expr),
    /// `*value`
    Star(Expr),
    /// `**value`
    DoubleStar(Expr),
}

/// The result of a comprehension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum CompKind {
    List,
    Set,
    Dict,
}

/// A comprehension.
#[derive(Debug)]
pub(crate) struct Comp {
    pub(crate) kind: CompKind,
    /// Element, or value of a dict.
    pub(crate) element: Expr,
    /// Key of a dict.
    pub(crate) key: Option<Expr>,
    pub(crate) clauses: Vec<CompClause>,
}

/// `for target in iter if ...`
#[derive(Debug)]
pub(crate) struct CompClause {
    pub(crate) target: Expr,
    pub(crate) iter: Expr,
    pub(crate) ifs: Vec<Expr>,
}

/// A piece of an f-string.
#[derive(Debug)]
pub(crate) enum FPart {
    Text(Rc<str>),
    Value {
        expr: Expr,
        /// `r`, `s` or `a`
        conversion: Option<char>,
        spec: Option<Vec<FPart>>,
    },
}

/// The kind of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum ParamKind {
    PositionalOnly,
    Normal,
    KeywordOnly,
    /// `*args`
    Star,
    /// `**kwargs`
    DoubleStar,
}

/// A parameter.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: Symbol,
    pub(crate) kind: ParamKind,
    pub(crate) default: Option<Expr>,
    /// Span of the annotation.
    pub(crate) annotation: Option<Span>,
    pub(crate) span: Span,
}

/// A function or lambda.
#[derive(Debug)]
pub(crate) struct FuncDef {
    pub(crate) name: Symbol,
    /// Positional parameters first, then keyword-only, `*args`, `**kwargs`.
    pub(crate) params: Vec<Param>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) decorators: Vec<Expr>,
    pub(crate) scope: Scope,
    /// From `def` to the end of the signature's name.
    pub(crate) name_span: Span,
    /// The annotation of the result.
    pub(crate) returns: Option<Span>,
    /// Number of leading parameters that positional arguments fill.
    pub(crate) positional: usize,
    pub(crate) has_star: bool,
    pub(crate) has_double_star: bool,
    pub(crate) is_async: bool,
    /// Whether it contains a `yield`: calling it creates a generator.
    pub(crate) is_generator: bool,
}

/// A class.
#[derive(Debug)]
pub(crate) struct ClassDef {
    pub(crate) name: Symbol,
    pub(crate) bases: Vec<Expr>,
    /// Class keywords such as `metaclass=`.
    pub(crate) keywords: Vec<(Symbol, Expr)>,
    pub(crate) decorators: Vec<Expr>,
    pub(crate) body: Vec<Stmt>,
    /// `class C[T]`
    pub(crate) has_type_params: bool,
    pub(crate) scope: Scope,
    pub(crate) name_span: Span,
}

/// A statement.
#[derive(Debug)]
pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) span: Span,
}

/// The kind of a statement.
/// The annotation of a variable.
#[derive(Debug)]
pub(crate) struct Annotation {
    pub(crate) span: Span,
    /// `class[index]`, if it is that.
    pub(crate) item: Option<Expr>,
}

#[derive(Debug)]
pub(crate) enum StmtKind {
    Expr(Expr),
    Assign(Vec<Expr>, Expr),
    AugAssign(Expr, BinOp, Expr),
    AnnAssign(Expr, Annotation, Option<Expr>),
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    For(Box<For>),
    While(Expr, Vec<Stmt>, Vec<Stmt>),
    Break,
    Continue,
    Pass,
    Return(Option<Expr>),
    Assert(Expr, Option<Expr>),
    /// `raise exception from cause`
    Raise(Option<Expr>, Option<Expr>),
    With(Vec<(Expr, Option<Expr>)>, Vec<Stmt>),
    Try(Box<Try>),
    Match(Box<Match>),
    /// In the body of a generator.
    Yield(Box<Yield>),
    /// A function and the name it is bound to.
    Def(Rc<FuncDef>, Expr),
    Class(Rc<ClassDef>, Expr),
    Import(Vec<ImportName>),
    ImportFrom(ImportFrom),
    Delete(Vec<Expr>),
    Global(Vec<Symbol>),
    Nonlocal(Vec<Symbol>),
    Unsupported(Unsupported),
}

/// A `for` statement.
#[derive(Debug)]
pub(crate) struct For {
    pub(crate) target: Expr,
    pub(crate) iter: Expr,
    pub(crate) body: Vec<Stmt>,
    pub(crate) orelse: Vec<Stmt>,
    /// See [`For::carried`].
    pub(crate) carried: OnceCell<Box<[Carried]>>,
    /// The names that are bound nowhere else in the function, once names are resolved.
    pub(crate) own: OnceCell<Box<[Symbol]>>,
    /// Whether its iterations have differed, so that they are not compared again.
    pub(crate) differs: Cell<bool>,
}

impl For {
    /// The names with loop-carried values, once names are resolved.
    pub(crate) fn carried(&self) -> &[Carried] {
        self.carried.get_or_init(|| carried(&self.target, &self.body))
    }

    /// Those that may have a value before the loop begins. The value of the others then comes from an earlier iteration of an enclosing loop.
    pub(crate) fn carried_into(&self) -> impl Iterator<Item = &Carried> {
        let own: &[Symbol] = self.own.get().map_or(&[], |own| own);
        let is_own = |carried: &Carried| matches!(carried.slot, Slot::Local(_)) && own.contains(&carried.name);
        self.carried().iter().filter(move |carried| !is_own(carried))
    }
}

/// A `try` statement.
#[derive(Debug)]
pub(crate) struct Try {
    pub(crate) body: Vec<Stmt>,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) orelse: Vec<Stmt>,
    pub(crate) finally: Vec<Stmt>,
}

/// `target = yield value`
#[derive(Debug)]
pub(crate) struct Yield {
    pub(crate) target: Option<Expr>,
    pub(crate) value: Option<Expr>,
    /// `yield from value`
    pub(crate) from: bool,
}

/// A `match` statement.
#[derive(Debug)]
pub(crate) struct Match {
    pub(crate) subject: Expr,
    pub(crate) cases: Vec<Case>,
}

/// A `case` clause.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) pattern: Pattern,
    pub(crate) guard: Option<Expr>,
    pub(crate) body: Vec<Stmt>,
}

/// A pattern of a `case`. Names that it binds are `Name` expressions.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) kind: PatternKind,
    pub(crate) span: Span,
}

/// The kind of a pattern.
#[derive(Debug)]
pub(crate) enum PatternKind {
    /// A literal or a dotted name: equality.
    Value(Expr),
    /// `None`, `True`, `False`: identity.
    Singleton(Expr),
    /// `[a, *rest, b]`
    Sequence(Vec<Pattern>),
    /// `*name` in a sequence; `*_` binds nothing.
    Star(Option<Expr>),
    /// `{key: pattern, **rest}`
    Mapping { items: Vec<(Expr, Pattern)>, rest: Option<Expr> },
    /// `Class(pattern, name=pattern)`
    Class { class: Expr, positional: Vec<Pattern>, keyword: Vec<(Symbol, Pattern)> },
    /// `pattern as name`; without a name, `_`.
    As { pattern: Option<Box<Pattern>>, name: Option<Expr> },
    /// `a | b`
    Or(Vec<Pattern>),
}

/// An `except` clause.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) class: Option<Expr>,
    pub(crate) name: Option<Expr>,
    pub(crate) body: Vec<Stmt>,
}

/// One name of an `import` statement.
#[derive(Debug)]
pub(crate) struct ImportName {
    /// `a.b.c`
    pub(crate) path: String,
    /// With `as`: the whole module is bound; else its first part.
    pub(crate) has_alias: bool,
    /// A `Name` expression.
    pub(crate) bind: Expr,
}

/// A `from ... import ...` statement.
#[derive(Debug)]
pub(crate) struct ImportFrom {
    /// Leading dots.
    pub(crate) level: u32,
    pub(crate) path: String,
    /// Imported name and the `Name` it is bound to.
    pub(crate) names: Vec<(Symbol, Expr)>,
    pub(crate) star: bool,
}

/// A file.
#[derive(Debug)]
pub(crate) struct ModuleAst {
    pub(crate) body: Vec<Stmt>,
    pub(crate) scope: Scope,
    /// Names used or bound as globals, in order of their index.
    pub(crate) globals: Vec<Symbol>,
    /// All functions and lambdas of the file, at every depth.
    pub(crate) functions: Vec<Rc<FuncDef>>,
}
