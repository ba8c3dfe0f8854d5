//! What an instruction looks like from outside: operand names, kinds, memories and defaults.
//!
//! The schema drives the Python argument binder, the text form, the generated documentation and the fuzzers.

use crate::arg::Arg;
use crate::names::Engine;
use crate::view::Space;

/// What kind of value an operand takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A tensor view.
    View,
    /// A number or a per-partition scalar view or a register.
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

/// What the instruction does with an operand.
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
    /// What the instruction does with it.
    pub role: Role,
    /// What it takes.
    pub kind: Kind,
    /// The names it takes if it is a vocabulary (or an optional one); else empty.
    pub members: &'static [&'static str],
    /// Memories a view may lie in; empty for [`Role::Attr`].
    pub spaces: &'static [Space],
    /// The default; `None` if the operand is required.
    pub default: Option<fn() -> Arg>,
    /// Documentation.
    pub doc: &'static str,
}

/// One instruction.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// The name after `nki.isa.`.
    pub name: &'static str,
    /// Documentation.
    pub doc: &'static str,
    /// Engines that can run it, preferred first. The preferred one runs it when the program leaves the choice open.
    pub engines: &'static [Engine],
    /// Operands in positional order.
    pub operands: &'static [OperandSchema],
}

impl Schema {
    /// Position of the operand called `name`.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|o| o.name == name)
    }
}
