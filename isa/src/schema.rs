//! The interface of an instruction: operand names, kinds, memories and defaults.
//!
//! The schema drives the Python argument binder, the text form, the generated documentation and the fuzzers.

use std::fmt;

use crate::arch::{Arch, Target};
use crate::arg::Arg;
use crate::dtype::DType;
use crate::inst;
use crate::names::{Engine, Space};

/// The kind of value that an operand takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A tensor view.
    View,
    /// A number, a per-partition scalar view or a register.
    Scalar,
    /// A number.
    Number,
    /// An integer.
    Int,
    /// A bool.
    Bool,
    /// A member of the named vocabulary.
    Name(&'static str),
    /// A register.
    Register,
    /// A register or an integer.
    RegisterOrInt,
    /// A list of integers.
    Ints,
    /// A list of `[step, count]` pairs.
    Pattern,
    /// A list of lists of integers.
    IntLists,
    /// A list of tensor views.
    Views,
    /// A list of numbers.
    Numbers,
    /// A string.
    Text,
    /// Any of the kind in the brackets, or `None`.
    Optional(&'static Kind),
}

/// How the instruction uses an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads it.
    In,
    /// Writes it.
    Out,
    /// Reads and writes it.
    InOut,
    /// A parameter, not memory.
    Attr,
}

/// One operand.
#[derive(Debug, Clone, Copy)]
pub struct OperandSchema {
    /// NKI's keyword.
    pub name: &'static str,
    /// How the instruction uses it.
    pub role: Role,
    /// The kind of value it takes.
    pub kind: Kind,
    /// Names of the vocabulary's members if the kind is a (possibly optional) vocabulary; else empty.
    pub members: &'static [&'static str],
    /// Memories a view may be in; empty for [`Role::Attr`].
    pub spaces: &'static [Space],
    /// Element types a view may have; empty for any.
    pub dtypes: &'static [DType],
    /// The default; `None` if the operand is required.
    pub default: Option<fn() -> Arg>,
    /// Documentation.
    pub doc: &'static str,
}

/// An engine that can run an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// The engine.
    pub on: Engine,
    /// The first generation on which it can.
    pub since: Target,
}

/// A limit that the schema's types cannot express. For each rule, tests/refused has a call that breaks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name, unique within the instruction.
    pub id: &'static str,
    /// The condition, in words.
    pub text: &'static str,
}

/// A keyword of an instruction in an earlier version of NKI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Former {
    /// The keyword.
    pub keyword: &'static str,
    /// Its successor.
    pub now: Now,
}

/// The successor of an earlier keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// The operand was renamed.
    Called(&'static str),
    /// The operand was removed.
    Removed {
        /// The first version without it.
        version: &'static str,
        /// The replacement.
        instead: &'static str,
    },
}

/// How well a statement is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Confidence {
    /// Stated by the manual.
    Documented,
    /// Confirmed by measurements on hardware.
    Measured,
    /// Derived from documented or measured facts.
    Derived,
    /// A choice of this simulator.
    Assumed,
}

impl Confidence {
    /// All levels, best supported first.
    pub const ALL: [Confidence; 4] =
        [Confidence::Documented, Confidence::Measured, Confidence::Derived, Confidence::Assumed];

    /// The level with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }

    /// The word that the timing parameters use.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Documented => "documented",
            Confidence::Measured => "measured",
            Confidence::Derived => "derived",
            Confidence::Assumed => "assumed",
        }
    }
}

/// An instruction's cost in hardware terms: rows, columns, elements, passes, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// The quantities that determine its time.
    pub text: &'static str,
    /// How well the text is supported.
    pub confidence: Confidence,
}

/// One instruction.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// The name after `nki.isa.` or `nki.collectives.`.
    pub name: &'static str,
    /// Documentation.
    pub doc: &'static str,
    /// Engines that can run it, preferred first. The preferred one runs it when the program does not choose.
    pub engines: &'static [Runs],
    /// Operands in positional order.
    pub operands: &'static [OperandSchema],
    /// The precision it computes in and the points where it rounds.
    pub numerics: &'static str,
    /// Its cost.
    pub cost: Cost,
    /// Its limits, beyond those of every operand ([`COMMON_RULES`](crate::inst::every_operand::COMMON_RULES)).
    pub rules: &'static [Rule],
    /// The replacement on generations where no engine has it; may be empty.
    pub instead: &'static str,
}

impl Schema {
    /// The name with its module, as messages and documentation write it: `nisa.tensor_copy`, `nki.collectives.all_gather`.
    pub fn path(&self) -> impl fmt::Display {
        let collective = inst::find(self.name).is_some_and(|e| e.collective);
        let (module, name) = (if collective { "nki.collectives" } else { "nisa" }, self.name);
        fmt::from_fn(move |f| write!(f, "{module}.{name}"))
    }

    /// Position of the operand called `name`.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|o| o.name == name)
    }

    /// Whether `engine` can run it on some generation.
    pub fn runs_on(&self, engine: Engine) -> bool {
        self.engines.iter().any(|e| e.on == engine)
    }

    /// Whether an engine of the generation has it. Instructions without an engine (hints to the compiler) exist on all.
    pub fn exists_on(&self, arch: &Arch) -> bool {
        self.engines.is_empty() || arch.target >= self.since()
    }

    /// The first generation that has it.
    pub fn since(&self) -> Target {
        self.engines.iter().map(|e| e.since).min().unwrap_or(Target::OLDEST)
    }
}
