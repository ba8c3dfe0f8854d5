//! Reporting several errors in one run: after an error of a dialect, evaluation continues with
//! [`Value::Poison`].
//!
//! An instruction returns nothing that the kernel needs, so a rejected one is skipped. A view or a
//! tensor that cannot be created has no known shape: poison replaces it and absorbs all operations
//! on it, so that the first error causes no others. Where the kernel could catch the error, or
//! where control flow depends on poison (`if`, `while`), evaluation ends.

use nki_diag::{Diagnostic, Place, Span};

use super::Interp;
use super::error::{EvalResult, Raise};
use super::native::{CallArgs, Native};
use super::value::Value;
use crate::syntax::Symbol;

/// The number of errors at different positions after which evaluation ends.
const MOST_ERRORS: usize = 20;

/// The number of errors, including repeated ones, after which evaluation ends: a loop may repeat a
/// rejected instruction a million times.
const MOST_RECOVERIES: u32 = 10_000;

/// Depth to which containers are searched for poison.
const MAX_DEPTH: u32 = 3;

/// Functions that process containers without inspecting the items.
const TRANSPARENT: &[&str] =
    &["enumerate", "zip", "len", "reversed", "iter", "next", "isinstance", "getattr", "hasattr"];

/// Errors in the kernel so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// Errors at different positions after which evaluation continued.
    errors: usize,
    /// All errors after which evaluation continued.
    recoveries: u32,
    /// The nesting depth of code that handles errors itself.
    handled: u32,
}

impl Interp<'_> {
    /// Reports an error of a dialect once per position and continues with poison, unless the kernel
    /// could catch the error.
    ///
    /// # Errors
    /// The error itself, or the end of the evaluation.
    pub(crate) fn recover(&mut self, mut raise: Box<Raise>) -> EvalResult<Value> {
        // An error that left a call of the kernel's own code is not the dialect's: for example, the
        // body of nl.fori_loop failed.
        let foreign = !raise.frames.is_empty() || raise.exception.is_some();
        if raise.fatal
            || foreign
            || !self.in_kernel
            || self.recovery.handled > 0
            || self.kernel_depth > self.calls.len()
        {
            return Err(raise);
        }
        let calls = self.kernel_calls().iter().rev();
        raise.frames = calls.map(|(name, span)| (self.names.name(*name).to_string(), *span)).collect();
        let primary = raise.diagnostic.labels.iter().find(|l| l.primary).and_then(|l| match &l.place {
            Place::Span(span) => Some(*span),
            _ => None,
        });
        if primary.is_none_or(|span| self.reported.insert((raise.diagnostic.id, span))) {
            let mut diagnostic = raise.into_diagnostic();
            self.recovery.errors += 1;
            let last = self.recovery.errors >= MOST_ERRORS;
            if last {
                diagnostic = diagnostic.note(format!("evaluation ends after {MOST_ERRORS} errors"));
            }
            self.report(diagnostic);
            if last {
                return Err(Raise::reported());
            }
        }
        self.recovery.recoveries += 1;
        if self.recovery.recoveries >= MOST_RECOVERIES {
            return Err(Raise::reported());
        }
        Ok(Value::Poison)
    }

    /// The active calls inside the kernel, outermost first: callee and call site.
    pub(crate) fn kernel_calls(&self) -> &[(Symbol, Span)] {
        self.calls.get(self.kernel_depth..).unwrap_or_default()
    }

    /// Whether evaluation continued after an error.
    pub(crate) fn has_recovered(&self) -> bool {
        self.recovery.errors > 0
    }

    /// Runs code whose caller handles errors: none is reported.
    pub(crate) fn handling_errors<T>(&mut self, run: impl FnOnce(&mut Self) -> EvalResult<T>) -> EvalResult<T> {
        self.recovery.handled += 1;
        let result = run(self);
        self.recovery.handled -= 1;
        result
    }

    /// Whether a call of a function implemented in Rust returns poison because of its arguments.
    pub(crate) fn absorbs(&self, native: &Native, args: &CallArgs) -> bool {
        if !self.has_recovered() {
            return false;
        }
        let depth = if TRANSPARENT.contains(&&*native.name) { 0 } else { MAX_DEPTH };
        args.values().any(|v| v.is_poisoned(depth))
    }

    /// Leaves error handling to a driver outside the evaluator: no error is reported.
    pub(super) fn leave_errors_to_driver(&mut self) {
        self.recovery.handled += 1;
    }

    /// Whether a method of an object, a string or a number returns poison because of its arguments.
    pub(crate) fn absorbs_method(&self, base: &Value, args: &CallArgs) -> bool {
        if !self.has_recovered() {
            return false;
        }
        match base {
            // Containers hold poison like any other value; only a poisoned position or key makes
            // the result unknown.
            Value::List(_) | Value::Dict(_) | Value::Set(_) => match &args.positional[..] {
                [only] => matches!(base, Value::Dict(_)) && only.is_poisoned(MAX_DEPTH),
                [first, ..] => first.is_poisoned(MAX_DEPTH),
                [] => false,
            },
            _ => args.values().any(|v| v.is_poisoned(MAX_DEPTH)),
        }
    }

    /// Whether an item at this index is unknown.
    pub(crate) fn absorbs_index(&self, base: &Value, index: &Value) -> bool {
        let unknown = || !matches!(base, Value::Instance(_)) && index.is_poisoned(MAX_DEPTH);
        self.has_recovered() && (matches!(base, Value::Poison) || unknown())
    }

    /// Whether a comparison of these values returns poison.
    pub(crate) fn either_poisoned(&self, left: &Value, right: &Value) -> bool {
        self.has_recovered() && (left.is_poisoned(MAX_DEPTH) || right.is_poisoned(MAX_DEPTH))
    }
}

impl Raise {
    /// The error that ends an evaluation whose errors have all been reported.
    pub(crate) fn reported() -> Box<Self> {
        let mut raise = Self::new(Diagnostic::error("raised-exception", "evaluation ended after the errors above"));
        raise.fatal = true;
        raise.reported = true;
        raise
    }
}

impl CallArgs {
    /// All arguments.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Value> {
        self.positional.iter().chain(self.keyword.iter().map(|(_, v)| v))
    }
}

impl Value {
    /// Whether this is poison, or a sequence or slice that contains poison within `depth` levels.
    fn is_poisoned(&self, depth: u32) -> bool {
        let inside = |v: &Value| depth > 0 && v.is_poisoned(depth - 1);
        match self {
            Self::Poison => true,
            Self::Tuple(items) => items.iter().any(inside),
            Self::List(list) => list.items.borrow().iter().any(inside),
            Self::Slice(slice) => [&slice.start, &slice.stop, &slice.step].into_iter().any(inside),
            _ => false,
        }
    }
}
