//! A broken rule of the ISA, before its source location is known.

/// A rule that an instruction's operands break. The frontend (or the text form's reader) adds the location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Diagnostic slug, for example `partition-size`.
    pub id: &'static str,
    /// The operand, by its NKI keyword; empty when the rule is about the whole instruction.
    pub operand: &'static str,
    /// The rule with the actual number and the limit: `partition size 256 exceeds 128`.
    pub message: String,
    /// How to fix it; may be empty.
    pub help: String,
}

impl Violation {
    /// A violation of a rule about `operand`.
    pub fn new(id: &'static str, operand: &'static str, message: impl Into<String>) -> Self {
        Violation { id, operand, message: message.into(), help: String::new() }
    }

    /// Adds a suggested fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.operand.is_empty() {
            write!(f, "{}: ", self.operand)?;
        }
        f.write_str(&self.message)
    }
}
