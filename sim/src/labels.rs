//! Labels of diagnostics at places of the program.

use nki_diag::{Diagnostic, FileId, Span};
use nki_isa::Loc;

/// Labels at locations of instructions and tensors.
pub trait Labels {
    /// The place that the diagnostic is about, with a text.
    #[must_use]
    fn at_source(self, loc: Loc, text: impl Into<String>) -> Self;
    /// A further relevant place, with a text.
    #[must_use]
    fn with_source(self, loc: Loc, text: impl Into<String>) -> Self;
}

/// The location as a diagnostic's span.
fn span(loc: Loc) -> Span {
    Span::new(FileId(loc.file), loc.start, loc.end)
}

impl Labels for Diagnostic {
    fn at_source(self, loc: Loc, text: impl Into<String>) -> Self {
        self.at_loc(span(loc), loc.line, loc.column, text)
    }

    fn with_source(self, loc: Loc, text: impl Into<String>) -> Self {
        self.with_loc(span(loc), loc.line, loc.column, text)
    }
}
