//! `raise` and `except`.

use std::rc::Rc;

use nki_diag::{Diagnostic, Place, Span};

use super::error::{EvalResult, Raise};
use super::native::CallArgs;
use super::value::{AttrMap, Partial, Value};
use super::{Frame, Interp};
use crate::syntax::*;

impl Interp<'_> {
    /// `raise value from cause`
    pub(super) fn exec_raise(
        &mut self,
        frame: &Frame<'_>,
        value: Option<&Expr>,
        cause: Option<&Expr>,
        span: Span,
    ) -> EvalResult<Box<Raise>> {
        let given = match value {
            Some(value) => Some(self.eval(frame, value)?),
            None => self.handling.last().cloned(),
        };
        let raise = self.raise_value(given, span)?;
        let (Some(value), Some(raised)) = (value, &raise.exception) else { return Ok(raise) };
        note_context(raised, self.handling.last());
        if let Some(cause) = cause {
            let cause = match self.eval(frame, cause)? {
                class @ (Value::ExceptionClass(_) | Value::Class(_)) => {
                    self.call(&class, CallArgs::none(value.span))?
                }
                other => other,
            };
            if let Some(attrs) = attributes(raised) {
                attrs.borrow_mut().set(sym::cause, cause);
                attrs.borrow_mut().set(sym::suppress_context, Value::Bool(true));
            }
        }
        Ok(raise)
    }

    /// An attribute that every exception has, if it was not assigned.
    pub(super) fn attr_of_exception(&self, base: &Value, name: Symbol) -> Option<Value> {
        match name {
            sym::cause | sym::context => Some(Value::None),
            sym::suppress_context => Some(Value::Bool(false)),
            _ if &*self.name(name) == "__traceback__" => Some(Value::None),
            _ if matches!(&*self.name(name), "with_traceback" | "add_note") => {
                let itself =
                    |_: &mut Interp<'_>, args: CallArgs| Ok(args.positional.into_iter().next().unwrap_or(Value::None));
                let function = Value::native("with_traceback", itself, 0);
                let positional = vec![base.clone()];
                Some(Value::Partial(Rc::new(Partial { function, positional, keyword: Vec::new() })))
            }
            _ => None,
        }
    }

    /// The error raised by `raise value`.
    pub(crate) fn raise_value(&mut self, value: Option<Value>, span: Span) -> EvalResult<Box<Raise>> {
        let value = match value {
            // `raise ValueError`
            Some(class @ (Value::ExceptionClass(_) | Value::Class(_))) => {
                Some(self.call(&class, CallArgs::none(span))?)
            }
            other => other,
        };
        let (class, text) = match &value {
            Some(exception @ Value::Exception(e)) => (self.name(e.0).to_string(), self.str(exception)?),
            Some(exception @ Value::Instance(i)) if i.class.exception_base().is_some() => {
                (i.class.name.to_string(), self.str(exception)?)
            }
            Some(Value::Host(host)) => (host.path.clone(), String::new()),
            Some(other) => {
                return Ok(Raise::at(
                    "type-error",
                    format!("{} cannot be raised", other.a_type()),
                    span,
                    "not an exception",
                ));
            }
            None => {
                return Ok(Raise::at(
                    "raised-exception",
                    "`raise` without an exception",
                    span,
                    "no exception is being handled",
                ));
            }
        };
        let message = if text.is_empty() { class } else { format!("{class}: {text}") };
        let mut raise = Raise::new(Diagnostic::error("raised-exception", message).at(span, "raised here"));
        raise.exception = value;
        Ok(raise)
    }

    /// The exception object for an error of the evaluator.
    pub(crate) fn exception_of(&mut self, raise: &Raise) -> Value {
        let class = self.names.intern(class_of(raise.diagnostic.id));
        Value::exception(class, vec![Value::str(&raise.diagnostic.message)])
    }

    /// Warns that the kernel caught an error which it did not raise and for which Python has no
    /// exception.
    pub(crate) fn report_caught(&mut self, diagnostic: &Diagnostic) {
        if !self.in_kernel || !is_refusal(diagnostic.id) {
            return;
        }
        let mut warning = Diagnostic::warning(
            "caught-error",
            format!("the kernel catches an error of the simulator ({}): {}", diagnostic.id, diagnostic.message),
        );
        warning.labels.clone_from(&diagnostic.labels);
        warning.notes.clone_from(&diagnostic.notes);
        let help = "compilation continues without what failed here; test the condition before the call, or catch \
                    only exceptions that the kernel itself raises";
        let span = diagnostic.primary().and_then(|label| match label.place {
            Place::Span(span) => Some(span),
            _ => None,
        });
        match span {
            Some(span) => self.report_once(warning.help(help), span),
            None => self.report(warning.help(help)),
        }
    }

    /// Whether an `except` clause catches this error.
    pub(crate) fn handles(&mut self, frame: &Frame<'_>, handler: &Handler, raise: &Raise) -> EvalResult<bool> {
        let Some(class) = &handler.class else { return Ok(true) };
        let class = self.eval(frame, class)?;
        let thrown = match &raise.exception {
            Some(value) => value.clone(),
            None => self.exception_of(raise),
        };
        let classes = match &class {
            Value::Tuple(items) => items.to_vec(),
            other => vec![other.clone()],
        };
        for class in classes {
            let matched = match (&class, &thrown) {
                (Value::ExceptionClass(name), Value::Exception(e)) => self.is_exception(e.0, *name),
                (Value::ExceptionClass(name), Value::Instance(i)) => {
                    i.class.exception_base().is_some_and(|base| self.is_exception(base, *name))
                }
                (Value::Class(class), Value::Instance(i)) => i.class.is_subclass(class),
                _ => false,
            };
            if matched {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the error is an `AttributeError`.
    pub(crate) fn is_attribute_error(&self, raise: &Raise) -> bool {
        let wanted = "AttributeError";
        let class = match &raise.exception {
            None => return is_derived(class_of(raise.diagnostic.id), wanted),
            Some(Value::Exception(exception)) => exception.0,
            Some(Value::Instance(instance)) => match instance.class.exception_base() {
                Some(base) => base,
                None => return false,
            },
            Some(_) => return false,
        };
        is_derived(&self.name(class), wanted)
    }

    /// Whether exception class `name` is `base` or derives from it.
    pub(crate) fn is_exception(&self, name: Symbol, base: Symbol) -> bool {
        is_derived(&self.name(name), &self.name(base))
    }
}

/// Whether Python's exception class `name` is `base` or derives from it.
fn is_derived(name: &str, base: &str) -> bool {
    name == base
        || matches!(
            (name, base),
            (_, "BaseException")
                | ("IndexError" | "KeyError", "LookupError")
                | ("ZeroDivisionError" | "OverflowError", "ArithmeticError")
                | ("ModuleNotFoundError", "ImportError")
                | ("NotImplementedError" | "RecursionError", "RuntimeError")
                | ("FileNotFoundError", "OSError")
                | ("FrozenInstanceError", "AttributeError")
        )
        || (base == "Exception" && name != "GeneratorExit")
}

/// Sets the context of a new exception to the one that was being handled.
pub(super) fn note_context(raised: &Value, handled: Option<&Value>) {
    let Some(handled) = handled else { return };
    // A cycle of exceptions would never be released.
    let mut link = Some(handled.clone());
    while let Some(exception) = link {
        if exception.is_same(raised) {
            return;
        }
        link = attributes(&exception).and_then(|attrs| attrs.borrow().get(sym::context).cloned());
    }
    if let Some(attrs) = attributes(raised) {
        attrs.borrow_mut().set(sym::context, handled.clone());
    }
}

/// The attributes of an exception object.
fn attributes(exception: &Value) -> Option<&std::cell::RefCell<AttrMap>> {
    match exception {
        Value::Exception(exception) => Some(&exception.2),
        Value::Instance(instance) => Some(&instance.attrs),
        _ => None,
    }
}

/// Whether the error is a limitation of the machine or the simulator rather than an error in the
/// kernel's Python code.
pub(crate) fn is_refusal(slug: &str) -> bool {
    match class_of(slug) {
        "NkiValidationError" => true,
        "RuntimeError" => !matches!(slug, "raised-exception" | "recursion-limit"),
        _ => false,
    }
}

/// The Python exception class of a diagnostic.
pub(crate) fn class_of(slug: &str) -> &'static str {
    match slug {
        "assertion-failed" => "AssertionError",
        "index-out-of-range" => "IndexError",
        "missing-key" => "KeyError",
        "no-attribute" | "unknown-attribute" => "AttributeError",
        "frozen-object" => "FrozenInstanceError",
        "undefined-name" => "NameError",
        "division-by-zero" => "ZeroDivisionError",
        "integer-overflow" | "float-overflow" => "OverflowError",
        "import-error" | "import-cycle" => "ImportError",
        "memory-limit" => "MemoryError",
        "type-error"
        | "arguments"
        | "dict-key"
        | "not-callable"
        | "not-indexable"
        | "not-iterable"
        | "register-arithmetic"
        | "tensor-operator"
        | "unsupported-operator" => "TypeError",
        "value-error" | "unpack-mismatch" => "ValueError",
        // Operations that the machine does not support, raised as by the SDK's `nisa`.
        "access-pattern"
        | "bad-address"
        | "bad-shape"
        | "bitvec-dtype"
        | "dtype-mismatch"
        | "dtype-view"
        | "engine-unsupported"
        | "free-size"
        | "indirect-view"
        | "memset-value"
        | "not-contiguous"
        | "op-mix"
        | "op-unsupported"
        | "operand-dtype"
        | "operand-memory"
        | "operand-value"
        | "out-of-bounds"
        | "overlapping-operands"
        | "overlapping-write"
        | "partition-dimension"
        | "partition-mismatch"
        | "partition-size"
        | "partition-start"
        | "partition-stride"
        | "psum-alignment"
        | "psum-capacity"
        | "psum-gpsimd"
        | "psum-operands"
        | "psum-overflow"
        | "reduce-axis"
        | "sbuf-capacity"
        | "sbuf-overflow"
        | "shape-mismatch"
        | "tile-size"
        | "unsupported-dtype"
        | "unsupported-on-target" => "NkiValidationError",
        _ => "RuntimeError",
    }
}
