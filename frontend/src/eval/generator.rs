//! Generators.
//!
//! A generator consists of the frame of a function and the path to the point where it is suspended.
//! Evaluation is recursive, so a `yield` unwinds: each enclosing block, loop, `with` and `try`
//! saves its position ([`Saved`]), innermost first. On resumption, the body is entered again, and
//! each of them takes its saved position and continues there. [`crate::syntax`] makes every `yield`
//! a statement, so no expression is interrupted.

use std::rc::Rc;

use nki_diag::Span;

use super::error::{EvalResult, Raise};
use super::exec::Flow;
use super::iterator::{Iter, Source};
use super::native::CallArgs;
use super::value::*;
use super::{Frame, Interp, PendingStep, context};
use crate::syntax::*;

/// A generator that has not ended.
pub(crate) struct Coroutine {
    function: Rc<Function>,
    /// The slots of its frame.
    slots: Vec<Value>,
    /// The position where it is suspended, innermost statement first; empty before it starts.
    saved: Vec<Saved>,
    started: bool,
}

impl Coroutine {
    /// Whether its function may catch an exception thrown into it.
    pub(crate) fn may_catch(&self) -> bool {
        fn catches(body: &[Stmt]) -> bool {
            body.iter().any(|stmt| {
                matches!(&stmt.kind, StmtKind::Try(t) if !t.handlers.is_empty())
                    || stmt.blocks().into_iter().any(catches)
            })
        }
        catches(&self.function.def.body)
    }
}

/// The position of a statement around a `yield` when the generator was suspended.
pub(crate) enum Saved {
    /// At this statement of a block.
    Block(usize),
    /// In this arm of an `if` (the number of arms for `else`), or case of a `match`.
    Arm(usize),
    /// In the body of a `for`, with the remaining items and the value of the iteration; in its
    /// `else` without items.
    For(Option<Rc<Iter>>, i64),
    /// In the body of a `while` (the iteration), or in its `else`.
    While(Option<i64>),
    /// In the body of a `with`.
    With(Value),
    /// In a part of a `try`.
    Try(TryPart),
    /// At a `yield`.
    Yield,
    /// At a `yield from` of this iterator.
    From(Rc<Iter>),
}

/// A part of a `try` statement.
pub(crate) enum TryPart {
    Body,
    /// The index of the clause, and the exception.
    Handler(usize, Value),
    Else,
    /// The result of the statement if the block runs to its end.
    Finally(EvalResult<Flow>),
}

/// The value or error with which a generator is resumed.
pub(crate) enum Sent {
    Value(Value),
    Raise(Box<Raise>),
}

/// The way in which a generator stopped.
pub(crate) enum Resumed {
    Yielded(Value),
    Returned(Value),
}

impl Interp<'_> {
    /// Creates the generator for a call whose arguments are in the slots from `base`.
    pub(crate) fn make_generator(&mut self, function: &Rc<Function>, base: usize, span: Span) -> EvalResult<Value> {
        let slots = self.stack.drain(base..).collect::<Vec<_>>();
        self.charge_items(slots.len() + 16, span)?;
        let coroutine = Coroutine { function: function.clone(), slots, saved: Vec::new(), started: false };
        let name = if function.context { context::CONTEXT } else { "generator" };
        Ok(Iter::value(name, Source::Generator(Box::new(coroutine))))
    }

    /// Runs a generator until it yields, returns or raises.
    pub(crate) fn resume(&mut self, iterator: &Iter, sent: Sent, span: Span) -> EvalResult<Resumed> {
        let mut coroutine = match iterator.take() {
            Source::Generator(coroutine) => coroutine,
            Source::Running => {
                return Err(Raise::at("value-error", "generator already executing", span, "here"));
            }
            ended => {
                iterator.put(ended);
                return match sent {
                    Sent::Value(_) => Ok(Resumed::Returned(Value::None)),
                    Sent::Raise(raise) => Err(raise),
                };
            }
        };
        let ready = self.step(span).and_then(|()| self.check_depth(coroutine.function.def.name, span));
        match (&sent, ready) {
            (_, Err(raise)) => {
                iterator.put(Source::Generator(coroutine));
                return Err(raise);
            }
            (Sent::Value(value), _) if !coroutine.started && !value.is_none() => {
                iterator.put(Source::Generator(coroutine));
                let message = "can't send non-None value to a just-started generator";
                return Err(Raise::at("type-error", message, span, "in this call"));
            }
            (Sent::Raise(_), _) if !coroutine.started => {
                iterator.put(Source::Ended);
                return match sent {
                    Sent::Raise(raise) => Err(raise),
                    Sent::Value(_) => Ok(Resumed::Returned(Value::None)),
                };
            }
            _ => {}
        }
        match self.run_generator(&mut coroutine, sent, span) {
            Ok(Flow::Yield(value)) => {
                iterator.put(Source::Generator(coroutine));
                Ok(Resumed::Yielded(value))
            }
            Ok(flow) => {
                iterator.put(Source::Ended);
                Ok(Resumed::Returned(if let Flow::Return(value) = flow { value } else { Value::None }))
            }
            Err(raise) => {
                iterator.put(Source::Ended);
                Err(if self.is_stop(&raise).is_some() { self.stopped_inside(raise, span) } else { raise })
            }
        }
    }

    /// Enters the body at the start or at the saved position.
    fn run_generator(&mut self, coroutine: &mut Coroutine, sent: Sent, span: Span) -> EvalResult<Flow> {
        let function = coroutine.function.clone();
        let def = &*function.def;
        let base = self.stack.len();
        self.stack.append(&mut coroutine.slots);
        let steps = self.steps.len();
        if self.in_kernel && !self.calls.is_empty() {
            self.steps.push((PendingStep::Call { function: def.name, span }, None));
        }
        self.calls.push((def.name, span));
        let frame = Frame {
            base,
            captures: &function.captures,
            module: &function.module,
            function: Some(&function),
            names: &def.scope.names,
        };
        let dialect = std::mem::replace(&mut self.dialect, function.module.dialect.get());
        let rewind = std::mem::replace(&mut self.rewind, std::mem::take(&mut coroutine.saved));
        let suspended = std::mem::take(&mut self.suspended);
        self.sent = coroutine.started.then_some(sent);
        coroutine.started = true;
        let mut result = self.exec_block(&frame, &def.body);
        self.dialect = dialect;
        self.rewind = rewind;
        let saved = std::mem::replace(&mut self.suspended, suspended);
        if matches!(result, Ok(Flow::Yield(_))) {
            coroutine.saved = saved;
            coroutine.slots = self.stack.drain(base..).collect();
        }
        self.stack.truncate(base);
        self.calls.pop();
        self.pop_steps(steps);
        if let Err(raise) = &mut result
            && raise.frames.len() < 64
            && def.name != sym::genexpr
        {
            raise.frames.push((self.name(def.name).to_string(), span));
        }
        result
    }

    /// `target = yield value`
    pub(crate) fn exec_yield(&mut self, frame: &Frame<'_>, y: &Yield, span: Span) -> EvalResult<Flow> {
        let (iterator, sent) = match self.rewind.pop() {
            Some(Saved::Yield) => {
                return match self.sent.take() {
                    Some(Sent::Raise(raise)) => Err(raise),
                    Some(Sent::Value(value)) => self.sent_value(frame, y, value),
                    None => self.sent_value(frame, y, Value::None),
                };
            }
            Some(Saved::From(iterator)) => (iterator, self.sent.take().unwrap_or(Sent::Value(Value::None))),
            _ => {
                let value = match &y.value {
                    Some(value) => self.eval(frame, value)?,
                    None => Value::None,
                };
                if !y.from {
                    self.suspended.push(Saved::Yield);
                    return Ok(Flow::Yield(value));
                }
                (self.iter(&value, span)?, Sent::Value(Value::None))
            }
        };
        match self.delegate(&iterator, sent, span)? {
            Resumed::Yielded(value) => {
                self.suspended.push(Saved::From(iterator));
                Ok(Flow::Yield(value))
            }
            Resumed::Returned(value) => self.sent_value(frame, y, value),
        }
    }

    fn sent_value(&mut self, frame: &Frame<'_>, y: &Yield, value: Value) -> EvalResult<Flow> {
        if let Some(target) = &y.target {
            self.assign(frame, target, value)?;
        }
        Ok(Flow::Next)
    }

    /// One step of `yield from`.
    fn delegate(&mut self, iterator: &Rc<Iter>, sent: Sent, span: Span) -> EvalResult<Resumed> {
        if iterator.is_open_generator() {
            return match sent {
                Sent::Raise(raise) if self.is_exit(&raise) => {
                    self.close(iterator, span)?;
                    Err(raise)
                }
                sent => self.resume(iterator, sent, span),
            };
        }
        match sent {
            Sent::Raise(raise) => Err(raise),
            Sent::Value(value) if !value.is_none() => {
                let message = format!("{} has no method `send`", iterator.name);
                Err(Raise::at("no-attribute", message, span, "the value sent has nowhere to go"))
            }
            Sent::Value(_) => Ok(match self.next(iterator, span)? {
                Some(value) => Resumed::Yielded(value),
                None => Resumed::Returned(Value::None),
            }),
        }
    }

    /// `generator.close()`
    pub(crate) fn close(&mut self, iterator: &Iter, span: Span) -> EvalResult<Value> {
        if !iterator.is_open_generator() {
            return Ok(Value::None);
        }
        let exit = Value::exception(sym::generator_exit, Vec::new());
        let mut raise = self.raise_value(Some(exit), span)?;
        raise.exception = Some(Value::exception(sym::generator_exit, Vec::new()));
        let resumed = self.handling_errors(|interp| interp.resume(iterator, Sent::Raise(raise), span));
        match resumed {
            Ok(Resumed::Returned(value)) => Ok(value),
            Ok(Resumed::Yielded(_)) => {
                let message = "generator ignored GeneratorExit";
                Err(Raise::at("raised-exception", message, span, "it yields while it is being closed"))
            }
            Err(raise) if !raise.fatal && (self.is_exit(&raise) || self.is_stop(&raise).is_some()) => Ok(Value::None),
            Err(raise) => Err(raise),
        }
    }

    /// A method of an iterator.
    pub(crate) fn iterator_method(&mut self, iterator: &Rc<Iter>, name: Symbol, args: CallArgs) -> EvalResult<Value> {
        let text = self.name(name);
        let span = args.span;
        let generator = iterator.name == "generator";
        match &*text {
            "__iter__" => {
                args.positional_only(self, &text, 0, 0)?;
                Ok(Value::Iterator(iterator.clone()))
            }
            "__next__" => {
                args.positional_only(self, &text, 0, 0)?;
                self.send(iterator, Sent::Value(Value::None), span)
            }
            "send" if generator => {
                args.positional_only(self, &text, 1, 1)?;
                self.send(iterator, Sent::Value(args.positional[0].clone()), span)
            }
            "throw" if generator => {
                args.positional_only(self, &text, 1, 1)?;
                let raise = self.raise_value(Some(args.positional[0].clone()), span)?;
                self.send(iterator, Sent::Raise(raise), span)
            }
            "close" if generator => {
                args.positional_only(self, &text, 0, 0)?;
                self.close(iterator, span)
            }
            _ => {
                let message = format!("{} has no method `{text}`", super::foreign::article(iterator.name));
                let raise = Raise::at("no-attribute", message, span, "here");
                Err(raise.help("an iterator gives its items one by one: make a list of it with list()"))
            }
        }
    }

    /// `next(iterator)` and `generator.send(value)`: the item, or StopIteration with the
    /// generator's return value.
    pub(crate) fn send(&mut self, iterator: &Rc<Iter>, sent: Sent, span: Span) -> EvalResult<Value> {
        let resumed = match iterator.is_open_generator() {
            true => self.resume(iterator, sent, span)?,
            false => match sent {
                Sent::Raise(raise) => return Err(raise),
                Sent::Value(_) => match self.next(iterator, span)? {
                    Some(value) => Resumed::Yielded(value),
                    None => Resumed::Returned(Value::None),
                },
            },
        };
        match resumed {
            Resumed::Yielded(value) => Ok(value),
            Resumed::Returned(value) => {
                let args = if value.is_none() { Vec::new() } else { vec![value] };
                let stop = Value::exception(sym::stop_iteration, args);
                let mut raise = Raise::at("raised-exception", "StopIteration", span, "no item is left");
                raise.exception = Some(stop);
                Err(raise)
            }
        }
    }

    /// The arguments of a StopIteration; `None` for another error.
    pub(crate) fn is_stop(&self, raise: &Raise) -> Option<Vec<Value>> {
        match &raise.exception {
            Some(Value::Exception(e)) if e.0 == sym::stop_iteration => Some(e.1.clone()),
            _ => None,
        }
    }

    fn is_exit(&self, raise: &Raise) -> bool {
        matches!(&raise.exception, Some(Value::Exception(e)) if e.0 == sym::generator_exit)
    }

    /// A StopIteration that leaves a generator becomes a RuntimeError.
    fn stopped_inside(&mut self, mut raise: Box<Raise>, span: Span) -> Box<Raise> {
        let message = "generator raised StopIteration";
        raise.exception = Some(Value::exception(sym::runtime_error, vec![Value::str(message)]));
        raise.diagnostic = nki_diag::Diagnostic::error("raised-exception", format!("RuntimeError: {message}"))
            .at(span, "resumed here")
            .help("end a generator with `return`");
        raise
    }
}
