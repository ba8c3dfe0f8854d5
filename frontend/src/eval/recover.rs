//! Several errors per run: after an error of a dialect, evaluation continues with [`Value::Poison`].
//!
//! An instruction returns nothing that the kernel needs, so a refused one is skipped. A view or a tensor that cannot be made has no known
//! shape: poison replaces it and absorbs what is done with it, so that no error follows from the first. Where the kernel could catch the
//! error, or where the next statement depends on the poison (`if`, `while`), evaluation ends as before.

use nki_diag::{Diagnostic, Place, Span};

use super::Interp;
use super::error::{EvalResult, Raise};
use super::native::{CallArgs, Native};
use super::value::Value;
use crate::syntax::Symbol;

/// Errors at different places after which evaluation ends.
const MOST_ERRORS: usize = 20;

/// Errors, repeated ones included, after which evaluation ends: a loop may refuse the same instruction a million times.
const MOST_RECOVERIES: u32 = 10_000;

/// Depth to which containers are searched for poison.
const MAX_DEPTH: u32 = 3;

/// Functions that take containers apart without looking at the items.
const TRANSPARENT: &[&str] =
    &["enumerate", "zip", "len", "reversed", "iter", "next", "isinstance", "getattr", "hasattr"];

/// What has gone wrong in the kernel so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// Errors at different places after which evaluation continued.
    errors: usize,
    /// Errors after which evaluation continued.
    recoveries: u32,
    /// Depth of code that handles errors itself.
    handled: u32,
}

impl Interp<'_> {
    /// Reports an error of a dialect once per place and continues with poison, unless the kernel could catch the error.
    ///
    /// # Errors
    /// The error itself, or the end of the evaluation.
    pub(crate) fn recover(&mut self, mut raise: Box<Raise>) -> EvalResult<Value> {
        // An error that passed a call of the kernel's own is not of the dialect: the body of nl.fori_loop failed.
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

    /// Whether an error was reported after which evaluation continued.
    pub(crate) fn has_recovered(&self) -> bool {
        self.recovery.errors > 0
    }

    /// Runs code whose errors are handled by the caller: none is reported.
    pub(crate) fn handling_errors<T>(&mut self, run: impl FnOnce(&mut Self) -> EvalResult<T>) -> EvalResult<T> {
        self.recovery.handled += 1;
        let result = run(self);
        self.recovery.handled -= 1;
        result
    }

    /// Whether a call of a function in Rust gives poison because an argument is.
    pub(crate) fn absorbs(&self, native: &Native, args: &CallArgs) -> bool {
        if !self.has_recovered() {
            return false;
        }
        let depth = if TRANSPARENT.contains(&&*native.name) { 0 } else { MAX_DEPTH };
        args.values().any(|v| v.is_poisoned(depth))
    }

    /// A driver outside of the evaluator handles the errors from now on: none is reported.
    pub(super) fn leave_errors_to_driver(&mut self) {
        self.recovery.handled += 1;
    }

    /// Whether a method of an object, a string or a number gives poison because an argument is.
    pub(crate) fn absorbs_method(&self, base: &Value, args: &CallArgs) -> bool {
        if !self.has_recovered() {
            return false;
        }
        match base {
            // Containers hold poison as any other value; only as a position or key it is unknown.
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

    /// Whether a comparison of these gives poison.
    pub(crate) fn either_poisoned(&self, left: &Value, right: &Value) -> bool {
        self.has_recovered() && (left.is_poisoned(MAX_DEPTH) || right.is_poisoned(MAX_DEPTH))
    }
}

impl Raise {
    /// The end of an evaluation whose errors are all reported.
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
    /// Whether this is poison, or a sequence or slice that holds some within `depth` levels.
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
