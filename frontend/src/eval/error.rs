//! Errors raised during evaluation.

use nki_diag::{Diagnostic, Span};

use super::value::Value;

/// The result of an evaluation.
pub(crate) type EvalResult<T> = Result<T, Box<Raise>>;

/// An error that propagates: the diagnostic, and the calls that it left.
#[derive(Debug)]
pub(crate) struct Raise {
    /// The diagnostic to report.
    pub(crate) diagnostic: Diagnostic,
    /// For each call that was left, the callee's name and the call site; innermost first.
    pub(crate) frames: Vec<(String, Span)>,
    /// The exception object of a `raise` statement, for `except` clauses.
    pub(crate) exception: Option<Value>,
    /// The exception that was being handled, if this error has no exception object yet.
    pub(crate) context: Option<Value>,
    /// Cannot be caught, because a limit was exceeded.
    pub(crate) fatal: bool,
    /// The diagnostic has been reported; the error only ends the evaluation.
    pub(crate) reported: bool,
}

impl Raise {
    /// A boxed error.
    pub(crate) fn new(diagnostic: Diagnostic) -> Box<Self> {
        Box::new(Self { diagnostic, frames: Vec::new(), exception: None, context: None, fatal: false, reported: false })
    }

    /// An error with one label.
    pub(crate) fn at(
        slug: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Box<Self> {
        Self::new(Diagnostic::error(slug, message).at(span, label))
    }

    /// Adds advice.
    pub(crate) fn help(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.diagnostic = self.diagnostic.help(text);
        self
    }

    /// Adds a fact that explains the error.
    pub(crate) fn note(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.diagnostic = self.diagnostic.note(text);
        self
    }

    /// The diagnostic, with the call sites that it left as secondary labels.
    pub(crate) fn into_diagnostic(self) -> Diagnostic {
        let mut diagnostic = self.diagnostic;
        let shown = 6;
        for (index, (name, span)) in self.frames.iter().take(shown).enumerate() {
            let text = if index == 0 {
                format!("in this call of `{name}`")
            } else {
                format!("which is called from here (`{name}`)")
            };
            diagnostic = diagnostic.with(*span, text);
        }
        if self.frames.len() > shown {
            diagnostic = diagnostic.note(format!("{} more calls lead here", self.frames.len() - shown));
        }
        diagnostic
    }
}

impl From<Diagnostic> for Box<Raise> {
    fn from(diagnostic: Diagnostic) -> Self {
        Raise::new(diagnostic)
    }
}

/// The candidate most similar to a word, for "did you mean".
pub(crate) use nki_diag::slugs::nearest_of as closest;
