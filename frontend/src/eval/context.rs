//! `contextlib.contextmanager`: a generator's `yield` as the body of a `with` statement.

use std::rc::Rc;

use nki_diag::Span;

use super::error::{EvalResult, Raise};
use super::exec::Flow;
use super::generator::{Resumed, Saved, Sent};
use super::iterator::Iter;
use super::native::CallArgs;
use super::value::*;
use super::{Frame, Interp};
use crate::syntax::*;

/// Python's type name of these contexts, which identifies them here.
pub(super) const CONTEXT: &str = "_GeneratorContextManager";

impl Iter {
    /// Whether this is a context made by a function decorated with `contextmanager`.
    pub(super) fn is_context(&self) -> bool {
        self.name == CONTEXT
    }
}

/// `@contextmanager`
pub(super) fn contextmanager(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    match args.positional.as_slice() {
        [Value::Function(function)] if function.def.is_generator => {
            Ok(Value::Function(Rc::new(Function { context: true, ..Function::clone(function) })))
        }
        _ => Err(Raise::at("type-error", "contextmanager() takes a generator function", args.span, "in this call")
            .help("write a `yield` where the body of the `with` statement runs")),
    }
}

/// `_GeneratorContextManager(function, args, kwargs)`, as called by Python's own `contextmanager`.
pub(super) fn of_python(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [function, positional, keyword] = args.positional.as_slice() else {
        let message = "_GeneratorContextManager() takes a function and its arguments";
        return Err(Raise::at("arguments", message, span, "in this call"));
    };
    let mut call = CallArgs::of(positional.sequence().unwrap_or_default(), span);
    if let Value::Dict(named) = keyword {
        for (_, name, value) in named.borrow().iter() {
            if let Value::Str(name) = name {
                call.keyword.push((interp.sym(name), value.clone()));
            }
        }
    }
    match interp.call(function, call)? {
        Value::Iterator(ref generator) if generator.is_open_generator() => Ok(Iter::value(CONTEXT, generator.take())),
        other => {
            let message = format!("a context is made of a generator, not of {}", other.a_type());
            Err(Raise::at("type-error", message, span, "in this call"))
        }
    }
}

impl Interp<'_> {
    /// Runs the generator up to its `yield`, which provides the value of the context.
    pub(super) fn enter_generator(&mut self, context: &Rc<Iter>, span: Span) -> EvalResult<Value> {
        match self.resume(context, Sent::Value(Value::None), span)? {
            Resumed::Yielded(value) => Ok(value),
            Resumed::Returned(_) => Err(wrong(span, "generator didn't yield")),
        }
    }

    /// Runs the rest of a `with` statement after its context, a generator, has been entered.
    pub(super) fn exec_with_generator(
        &mut self,
        frame: &Frame<'_>,
        context: &Rc<Iter>,
        rest: &[(Expr, Option<Expr>)],
        body: &[Stmt],
        span: Span,
    ) -> EvalResult<Flow> {
        let (depth, trail) = (self.stack.len(), self.steps.len());
        let flow = match context.may_catch() {
            true => self.handling_errors(|interp| interp.exec_with(frame, rest, body)),
            false => self.exec_with(frame, rest, body),
        };
        match flow {
            Ok(Flow::Yield(value)) => {
                self.suspended.push(Saved::With(Value::Iterator(context.clone())));
                Ok(Flow::Yield(value))
            }
            Ok(flow) => match self.resume(context, Sent::Value(Value::None), span)? {
                Resumed::Returned(_) => Ok(flow),
                Resumed::Yielded(_) => Err(wrong(span, "generator didn't stop")),
            },
            Err(raise) if raise.fatal => Err(raise),
            Err(raise) => {
                self.stack.truncate(depth);
                self.pop_steps(trail);
                match self.resume(context, Sent::Raise(raise), span)? {
                    Resumed::Returned(_) => Ok(Flow::Next),
                    Resumed::Yielded(_) => Err(wrong(span, "generator didn't stop after throw()")),
                }
            }
        }
    }
}

fn wrong(span: Span, what: &str) -> Box<Raise> {
    Raise::at("raised-exception", format!("RuntimeError: {what}"), span, "in this context")
        .help("a function decorated with contextmanager yields once")
}
