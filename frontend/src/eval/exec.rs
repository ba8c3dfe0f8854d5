//! Statements.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};

use super::error::{EvalResult, Raise};
use super::exception::note_context;
use super::generator::{Saved, TryPart};
use super::language::Hint;
use super::native::CallArgs;
use super::value::{Host, Value};
use super::{Frame, Interp};
use crate::syntax::*;

/// How a block ended.
pub(crate) enum Flow {
    /// Ran to its end.
    Next,
    Break,
    Continue,
    Return(Value),
    /// The generator is suspended here.
    Yield(Value),
}

impl Interp<'_> {
    /// Runs a block.
    pub(crate) fn exec_block(&mut self, frame: &Frame<'_>, body: &[Stmt]) -> EvalResult<Flow> {
        let first = match self.rewind.pop() {
            Some(Saved::Block(first)) => first,
            _ => 0,
        };
        for (index, stmt) in body.iter().enumerate().skip(first) {
            match self.exec(frame, stmt)? {
                Flow::Next => {}
                Flow::Yield(value) => {
                    self.suspended.push(Saved::Block(index));
                    return Ok(Flow::Yield(value));
                }
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    /// Runs one statement.
    pub(crate) fn exec(&mut self, frame: &Frame<'_>, stmt: &Stmt) -> EvalResult<Flow> {
        self.step(stmt.span)?;
        match &stmt.kind {
            StmtKind::Expr(expr) => {
                let before = (self.steps_taken.get(), self.backend.open_statements());
                let value = self.eval(frame, expr)?;
                if self.in_kernel && before == (self.steps_taken.get(), self.backend.open_statements()) {
                    self.note_inert(expr, &value);
                }
            }
            StmtKind::Assign(targets, value) => {
                let value = self.eval(frame, value)?;
                if let [target] = &targets[..] {
                    self.assign(frame, target, value)?;
                } else {
                    for target in targets {
                        self.assign(frame, target, value.clone())?;
                    }
                }
            }
            StmtKind::AugAssign(target, op, value) => self.aug_assign(frame, target, *op, value, stmt.span)?,
            StmtKind::AnnAssign(target, annotation, value) => {
                if let Some(value) = value {
                    let value = self.eval(frame, value)?;
                    self.check_annotation(frame, annotation, &value)?;
                    self.assign(frame, target, value)?;
                }
            }
            StmtKind::If(arms, orelse) => return self.exec_if(frame, arms, orelse),
            StmtKind::For(f) => return self.exec_for(frame, f, stmt.span),
            StmtKind::While(test, body, orelse) => return self.exec_while(frame, test, body, orelse, stmt.span),
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Pass | StmtKind::Global(_) | StmtKind::Nonlocal(_) => {}
            StmtKind::Return(value) => {
                let result = match value {
                    Some(value) => self.eval(frame, value)?,
                    None => Value::None,
                };
                if self.calls.len() == self.kernel_depth {
                    self.note_return(value.as_ref());
                }
                return Ok(Flow::Return(result));
            }
            StmtKind::Assert(test, message) => self.exec_assert(frame, test, message.as_ref(), stmt.span)?,
            StmtKind::Raise(value, cause) => {
                return Err(self.exec_raise(frame, value.as_ref(), cause.as_ref(), stmt.span)?);
            }
            StmtKind::With(items, body) => return self.exec_with(frame, items, body),
            StmtKind::Try(t) => return self.exec_try(frame, t),
            StmtKind::Match(m) => return self.exec_match(frame, m),
            StmtKind::Yield(y) => return self.exec_yield(frame, y, stmt.span),
            StmtKind::Def(def, bind) => {
                let decorators = self.eval_decorators(frame, &def.decorators)?;
                let function = self.make_function(frame, def)?;
                let value = self.decorate(decorators, function)?;
                self.assign(frame, bind, value)?;
            }
            StmtKind::Class(def, bind) => {
                let decorators = self.eval_decorators(frame, &def.decorators)?;
                let class = self.make_class(frame, def)?;
                let value = self.decorate(decorators, class)?;
                self.assign(frame, bind, value)?;
            }
            StmtKind::Import(names) => {
                for name in names {
                    let value = self.import_module(frame, &name.path, name.has_alias, stmt.span)?;
                    self.adopt_dialect(frame.module, &value);
                    self.assign(frame, &name.bind, value)?;
                }
            }
            StmtKind::ImportFrom(import) => {
                self.import_from(frame, import, stmt.span)?;
            }
            StmtKind::Delete(targets) => {
                for target in targets {
                    self.delete(frame, target)?;
                }
            }
            StmtKind::Unsupported(what) => return Err(unsupported(*what, stmt.span)),
        }
        Ok(Flow::Next)
    }

    /// The decorators of a definition with their positions, evaluated from top to bottom.
    fn eval_decorators(&mut self, frame: &Frame<'_>, decorators: &[Expr]) -> EvalResult<Vec<(Value, Span)>> {
        decorators.iter().map(|decorator| Ok((self.eval(frame, decorator)?, decorator.span))).collect()
    }

    /// Applies decorators from bottom to top. Host decorators (pytest marks and similar) are ignored.
    fn decorate(&mut self, decorators: Vec<(Value, Span)>, mut value: Value) -> EvalResult<Value> {
        for (decorator, span) in decorators.into_iter().rev() {
            if !matches!(decorator, Value::Host(_) | Value::Type(_)) {
                value = self.call(&decorator, CallArgs::of([value], span))?;
            }
        }
        Ok(value)
    }

    fn exec_assert(&mut self, frame: &Frame<'_>, test: &Expr, message: Option<&Expr>, span: Span) -> EvalResult<()> {
        let guessed = self.guessed;
        let value = self.eval(frame, test)?;
        // At module level only the loading of the module depends on the assertion.
        if matches!(value, Value::Host(_)) && !self.in_kernel {
            self.guessed = guessed;
            return Ok(());
        }
        if matches!(value, Value::Poison) || self.truth(&value, test.span)? {
            return Ok(());
        }
        let mut given = Vec::new();
        let text = match message {
            Some(message) => {
                let value = self.eval(frame, message)?;
                let text = self.str(&value)?;
                given.push(value);
                text
            }
            None => {
                let source =
                    self.sources.text(span.file).and_then(|t| t.get(test.span.start as usize..test.span.end as usize));
                source.unwrap_or("").to_owned()
            }
        };
        let mut diagnostic =
            Diagnostic::error("assertion-failed", format!("assertion failed: {text}")).at(test.span, "this is false");
        // The operands of a comparison explain the failure.
        if let ExprKind::Compare(left, rest) = &test.kind {
            for side in std::iter::once(&**left).chain(rest.iter().map(|(_, e)| e)) {
                if let Some(value) = self.peek(frame, side) {
                    diagnostic = diagnostic.note(format!("`{}` is {value}", self.source_text(side.span)));
                }
            }
        }
        if let ExprKind::Compare(left, rest) = &test.kind
            && let [(CmpOp::Eq, right)] = &rest[..]
            && let (ExprKind::List(_), other) | (other, ExprKind::List(_)) = (&left.kind, &right.kind)
            && !matches!(other, ExprKind::List(_))
        {
            let other = if matches!(left.kind, ExprKind::List(_)) { right } else { left };
            if self.peek(frame, other).is_some_and(|text| text.starts_with('(')) {
                let text = self.source_text(other.span);
                diagnostic =
                    diagnostic.help(format!("`{text}` is a tuple, which never equals a list: write (...) for [...]"));
            }
        }
        let mut raise = Raise::new(diagnostic);
        raise.exception = Some(Value::exception(self.sym("AssertionError"), given));
        Err(raise)
    }

    /// The repr of a simple expression, which is evaluated again; only for expressions without
    /// effects.
    fn peek(&mut self, frame: &Frame<'_>, expr: &Expr) -> Option<String> {
        fn simple(expr: &Expr) -> bool {
            match &expr.kind {
                ExprKind::Name(..)
                | ExprKind::Int(_)
                | ExprKind::Float(_)
                | ExprKind::Str(_)
                | ExprKind::Bool(_)
                | ExprKind::None => true,
                ExprKind::Attr(base, _) => simple(base),
                ExprKind::Subscript(base, index) => simple(base) && simple(index),
                ExprKind::Binary(_, a, b) => simple(a) && simple(b),
                ExprKind::Tuple(items) => items.iter().all(simple),
                ExprKind::Call(f, args) => {
                    matches!(&f.kind, ExprKind::Name(..))
                        && args.len() == 1
                        && matches!(&args[0], Argument::Positional(e) if simple(e))
                        && matches!(&f.kind, ExprKind::Name(s, _) if *s == sym::plain_len)
                }
                _ => false,
            }
        }
        if !simple(expr)
            || matches!(
                expr.kind,
                ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) | ExprKind::Bool(_) | ExprKind::None
            )
        {
            return None;
        }
        let value = self.handling_errors(|interp| interp.eval(frame, expr)).ok()?;
        if matches!(value, Value::Object(_)) { None } else { self.repr(&value).ok() }
    }

    fn exec_if(&mut self, frame: &Frame<'_>, arms: &[(Expr, Vec<Stmt>)], orelse: &[Stmt]) -> EvalResult<Flow> {
        if let Some(Saved::Arm(arm)) = self.rewind.pop() {
            let taken = arms.get(arm).map_or(orelse, |(_, body)| body);
            return self.exec_arm(frame, arm, taken);
        }
        let (mut taken, mut arm) = (orelse, arms.len());
        for (index, (test, body)) in arms.iter().enumerate() {
            let value = self.eval(frame, test)?;
            if let Value::Object(object) = &value
                && let Some(condition) = object.condition()
            {
                let rest = &arms[index + 1..];
                condition.branch(
                    self,
                    test.span,
                    &mut |interp| {
                        let flow = interp.exec_block(frame, body)?;
                        interp.no_escape(flow, "branch", test.span)
                    },
                    &mut |interp| {
                        let flow = interp.exec_if(frame, rest, orelse)?;
                        interp.no_escape(flow, "branch", test.span)
                    },
                )?;
                return Ok(Flow::Next);
            }
            if self.truth(&value, test.span)? {
                (taken, arm) = (body, index);
                break;
            }
        }
        self.exec_arm(frame, arm, taken)
    }

    /// Runs an arm of an `if` or a case of a `match`.
    pub(super) fn exec_arm(&mut self, frame: &Frame<'_>, arm: usize, body: &[Stmt]) -> EvalResult<Flow> {
        let flow = self.exec_block(frame, body)?;
        if let Flow::Yield(_) = flow {
            self.suspended.push(Saved::Arm(arm));
        }
        Ok(flow)
    }

    pub(super) fn exec_with(
        &mut self,
        frame: &Frame<'_>,
        items: &[(Expr, Option<Expr>)],
        body: &[Stmt],
    ) -> EvalResult<Flow> {
        let Some(((expr, target), rest)) = items.split_first() else {
            return self.exec_block(frame, body);
        };
        let resumed = match self.rewind.pop() {
            Some(Saved::With(context)) => Some(context),
            _ => None,
        };
        let entering = resumed.is_none();
        let context = match resumed {
            Some(context) => context,
            None => self.eval(frame, expr)?,
        };
        match &context {
            Value::Poison => {
                if let Some(target) = target.as_ref().filter(|_| entering) {
                    self.assign(frame, target, Value::Poison)?;
                }
                let flow = self.exec_with(frame, rest, body)?;
                if let Flow::Yield(_) = flow {
                    self.suspended.push(Saved::With(context));
                }
                Ok(flow)
            }
            Value::Host(host) => Err(self.host_error(host, expr.span)),
            Value::Instance(_) => {
                if entering {
                    let entered = self.call_method(&context, sym::enter, CallArgs::none(expr.span))?;
                    if let Some(target) = target {
                        self.assign(frame, target, entered)?;
                    }
                }
                self.exec_with_instance(frame, context, rest, body, expr.span)
            }
            Value::Iterator(iterator) if iterator.is_context() => {
                if entering {
                    let entered = self.enter_generator(iterator, expr.span)?;
                    if let Some(target) = target {
                        self.assign(frame, target, entered)?;
                    }
                }
                self.exec_with_generator(frame, iterator, rest, body, expr.span)
            }
            Value::Object(object) => {
                if entering {
                    let entered = object.enter(self, expr.span)?;
                    if let Some(target) = target {
                        self.assign(frame, target, entered)?;
                    }
                }
                let flow = self.exec_with(frame, rest, body)?;
                if let Flow::Yield(_) = flow {
                    self.suspended.push(Saved::With(context));
                    return Ok(flow);
                }
                object.exit(self);
                Ok(flow)
            }
            other => Err(Raise::at(
                "unsupported-syntax",
                format!("`with` cannot be used on {}", other.a_type()),
                expr.span,
                "not a context",
            )
            .help(self.dialect.hint(Hint::Context))),
        }
    }

    /// Runs the rest of a `with` statement after its context, an object of a class, has been
    /// entered.
    fn exec_with_instance(
        &mut self,
        frame: &Frame<'_>,
        context: Value,
        rest: &[(Expr, Option<Expr>)],
        body: &[Stmt],
        span: Span,
    ) -> EvalResult<Flow> {
        let (depth, trail) = (self.stack.len(), self.steps.len());
        let flow = match may_swallow(&context) {
            true => self.handling_errors(|interp| interp.exec_with(frame, rest, body)),
            false => self.exec_with(frame, rest, body),
        };
        match flow {
            Ok(Flow::Yield(value)) => {
                self.suspended.push(Saved::With(context));
                Ok(Flow::Yield(value))
            }
            Ok(flow) => {
                let args = CallArgs::of([Value::None, Value::None, Value::None], span);
                self.call_method(&context, sym::exit, args)?;
                Ok(flow)
            }
            Err(raise) if raise.fatal => Err(raise),
            Err(mut raise) => {
                self.stack.truncate(depth);
                self.pop_steps(trail);
                let of_kernel = raise.exception.is_some();
                let thrown = raise.exception.take().unwrap_or_else(|| self.exception_of(&raise));
                raise.exception = Some(thrown.clone());
                let class = self.type_of(&thrown, span);
                self.handling.push(thrown.clone());
                let args = CallArgs::of([class, thrown, no_traceback()], span);
                let swallows = self.call_method(&context, sym::exit, args).and_then(|answer| self.truth(&answer, span));
                self.handling.pop();
                if !swallows? {
                    return Err(raise);
                }
                if !of_kernel {
                    self.report_caught(&raise.diagnostic);
                }
                Ok(Flow::Next)
            }
        }
    }

    fn exec_try(&mut self, frame: &Frame<'_>, t: &Try) -> EvalResult<Flow> {
        let part = match self.rewind.pop() {
            Some(Saved::Try(part)) => part,
            _ => TryPart::Body,
        };
        let result = match part {
            TryPart::Body => self.exec_try_body(frame, t),
            TryPart::Handler(index, value) => self.exec_handler(frame, t, index, value),
            TryPart::Else => self.exec_try_else(frame, t),
            TryPart::Finally(result) => return self.exec_finally(frame, t, result),
        };
        match result {
            Ok(Flow::Yield(value)) => Ok(Flow::Yield(value)),
            Err(raise) if raise.fatal => Err(raise),
            result => self.exec_finally(frame, t, result),
        }
    }

    fn exec_try_body(&mut self, frame: &Frame<'_>, t: &Try) -> EvalResult<Flow> {
        let (depth, trail) = (self.stack.len(), self.steps.len());
        let result = if t.handlers.is_empty() {
            self.exec_block(frame, &t.body)
        } else {
            self.assumed_import = None;
            let result = self.handling_errors(|interp| interp.exec_block(frame, &t.body));
            self.mark_import(frame, t);
            result
        };
        match result {
            Err(mut raise) if !raise.fatal => {
                self.stack.truncate(depth);
                self.pop_steps(trail);
                for (index, handler) in t.handlers.iter().enumerate() {
                    if self.handles(frame, handler, &raise)? {
                        if raise.exception.is_none() {
                            self.report_caught(&raise.diagnostic);
                        }
                        let value = match raise.exception.take() {
                            Some(value) => value,
                            None => {
                                let value = self.exception_of(&raise);
                                note_context(&value, raise.context.as_ref());
                                value
                            }
                        };
                        if let Some(name) = &handler.name {
                            self.assign(frame, name, value.clone())?;
                        }
                        return self.exec_handler(frame, t, index, value);
                    }
                }
                Err(raise)
            }
            Ok(Flow::Next) => self.exec_try_else(frame, t),
            Ok(Flow::Yield(value)) => {
                self.suspended.push(Saved::Try(TryPart::Body));
                Ok(Flow::Yield(value))
            }
            other => other,
        }
    }

    fn exec_handler(&mut self, frame: &Frame<'_>, t: &Try, index: usize, value: Value) -> EvalResult<Flow> {
        let Some(handler) = t.handlers.get(index) else { return Ok(Flow::Next) };
        self.handling.push(value);
        let mut flow = self.exec_block(frame, &handler.body);
        let value = self.handling.pop().unwrap_or(Value::None);
        if let Err(raise) = &mut flow
            && raise.exception.is_none()
        {
            raise.context.get_or_insert_with(|| value.clone());
        }
        if let Ok(Flow::Yield(_)) = flow {
            self.suspended.push(Saved::Try(TryPart::Handler(index, value)));
        } else if let Some(Expr { kind: ExprKind::Name(_, slot), .. }) = &handler.name {
            // The name is unbound at the end of its clause.
            self.store(frame, *slot, Value::Unset);
        }
        flow
    }

    fn exec_try_else(&mut self, frame: &Frame<'_>, t: &Try) -> EvalResult<Flow> {
        let flow = self.exec_block(frame, &t.orelse)?;
        if let Flow::Yield(_) = flow {
            self.suspended.push(Saved::Try(TryPart::Else));
        }
        Ok(flow)
    }

    /// Runs the `finally` of a statement whose result would otherwise be `result`.
    fn exec_finally(&mut self, frame: &Frame<'_>, t: &Try, result: EvalResult<Flow>) -> EvalResult<Flow> {
        match self.exec_block(frame, &t.finally)? {
            Flow::Next => result,
            Flow::Yield(value) => {
                self.suspended.push(Saved::Try(TryPart::Finally(result)));
                Ok(Flow::Yield(value))
            }
            flow => Ok(flow),
        }
    }

    /// Rejects `break`, `continue`, `return` and `yield` inside a loop or branch that runs on the
    /// device.
    pub(super) fn no_escape(&mut self, flow: Flow, what: &str, span: Span) -> EvalResult<()> {
        let word = match flow {
            Flow::Next => return Ok(()),
            Flow::Break => "break",
            Flow::Continue => "continue",
            Flow::Return(_) => "return",
            Flow::Yield(_) => "yield",
        };
        self.suspended.clear();
        Err(Raise::at(
            "dynamic-control",
            format!("`{word}` inside a {what} that runs on the device"),
            span,
            format!("this {what} is decided by a register"),
        )
        .help("the device has no such jump: make the loop's bound or condition express it, or use a static loop"))
    }
}

/// Whether the `__exit__` of a context may suppress an exception: whether its source returns
/// anything but None or False.
fn may_swallow(context: &Value) -> bool {
    fn returns(body: &[Stmt]) -> bool {
        body.iter().any(|stmt| match &stmt.kind {
            StmtKind::Return(Some(value)) => !matches!(value.kind, ExprKind::None | ExprKind::Bool(false)),
            _ => stmt.blocks().into_iter().any(returns),
        })
    }
    let Value::Instance(instance) = context else { return false };
    match instance.class.lookup(sym::exit) {
        Some(Value::Function(ref function)) => returns(&function.def.body),
        _ => true,
    }
}

/// The value passed to `__exit__` as the traceback.
fn no_traceback() -> Value {
    let reason = Some("the built-in evaluator does not create traceback objects".to_owned());
    Value::Host(Rc::new(Host { path: "traceback".to_owned(), reason, span: None }))
}

/// The error of a construct that NKI does not support.
pub(crate) fn unsupported(what: Unsupported, span: Span) -> Box<Raise> {
    Raise::at("unsupported-syntax", format!("{} is not supported in NKI", what.construct), span, "not supported")
        .help(what.instead)
}
