//! `for` and `while`.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};

use super::error::{EvalResult, Raise};
use super::exec::Flow;
use super::foreign::Object;
use super::generator::Saved;
use super::iterator::Iter;
use super::language::Hint;
use super::unroll::Copies;
use super::value::Value;
use super::{Frame, Interp};
use crate::syntax::*;

impl Interp<'_> {
    pub(super) fn exec_for(&mut self, frame: &Frame<'_>, f: &For, span: Span) -> EvalResult<Flow> {
        let variable = match &f.target.kind {
            ExprKind::Name(name, _) => *name,
            _ => sym::empty,
        };
        let header = Span { end: f.iter.span.end, ..span };
        match self.rewind.pop() {
            Some(Saved::For(Some(items), value)) => {
                let flow = self.loop_lazily(frame, f, (variable, header), items, Some(value));
                return self.end_for(frame, f, flow);
            }
            Some(Saved::For(None, _)) => return self.end_for(frame, f, Ok(Flow::Next)),
            _ => {}
        }
        let iterable = self.eval_iterable(frame, &f.iter)?;
        if let Value::Object(object) = &iterable
            && let Some(range) = object.range()
        {
            if !f.orelse.is_empty() {
                return Err(Raise::at(
                    "unsupported-syntax",
                    "a dynamic loop cannot have an `else`",
                    span,
                    "this loop runs on the device",
                ));
            }
            let before: Vec<_> = f.carried_into().map(|carried| (*carried, self.held(frame, carried.slot))).collect();
            let items = self.items_before(frame, &f.body);
            range.for_each(self, f.iter.span, &mut |interp, index| {
                interp.assign(frame, &f.target, index)?;
                let flow = interp.exec_block(frame, &f.body)?;
                interp.no_escape(flow, "loop", f.iter.span)
            })?;
            for (carried, old) in &before {
                let now = self.held(frame, carried.slot);
                self.end_counted(carried, old, &now, f.iter.span);
            }
            self.end_items(frame, &items, f.iter.span);
            return Ok(Flow::Next);
        }
        if matches!(iterable, Value::Host(_)) && !self.in_kernel {
            self.guess_false(f.iter.span);
            return self.end_for(frame, f, Ok(Flow::Next));
        }
        let flow = match &iterable {
            Value::Range(range) if !frame.is_generator() => {
                let items = (0..range.len()).map(|i| Value::Int(range.at(i)));
                self.loop_over(frame, f, variable, header, items, Some(Copies::of(f, range)))
            }
            Value::Tuple(items) if !frame.is_generator() => {
                self.loop_over(frame, f, variable, header, items.iter().cloned(), None)
            }
            // Runs once: the body may have further errors.
            Value::Poison if !frame.is_generator() => {
                self.loop_over(frame, f, variable, header, std::iter::once(Value::Poison), None)
            }
            // A list may grow during iteration.
            Value::List(list) if !frame.is_generator() => {
                let mut index = 0;
                let items = std::iter::from_fn(|| {
                    index += 1;
                    list.items.borrow().get(index - 1).cloned()
                });
                self.loop_over(frame, f, variable, header, items, None)
            }
            other => {
                let items = self.iter(other, f.iter.span)?;
                drop(iterable);
                self.loop_lazily(frame, f, (variable, header), items, None)
            }
        };
        self.end_for(frame, f, flow)
    }

    /// Completes a `for` whose iterations ended with `flow`.
    fn end_for(&mut self, frame: &Frame<'_>, f: &For, flow: EvalResult<Flow>) -> EvalResult<Flow> {
        match flow? {
            Flow::Break => Ok(Flow::Next),
            flow @ (Flow::Return(_) | Flow::Yield(_)) => Ok(flow),
            _ if !f.orelse.is_empty() => {
                let flow = self.exec_block(frame, &f.orelse)?;
                if let Flow::Yield(_) = flow {
                    self.suspended.push(Saved::For(None, 0));
                }
                Ok(flow)
            }
            _ => Ok(Flow::Next),
        }
    }

    /// Takes items one by one. With `Some` value, the body of that iteration is being resumed.
    fn loop_lazily(
        &mut self,
        frame: &Frame<'_>,
        f: &For,
        (variable, header): (Symbol, Span),
        items: Rc<Iter>,
        resumed: Option<i64>,
    ) -> EvalResult<Flow> {
        let depth = self.push_iteration(variable, header, self.dialect.is_independent(self, &f.iter));
        let mut count = 0;
        // Whether the items are numbers, as far as a resumed loop knows.
        let mut numbers = true;
        let mut value = resumed;
        let result = loop {
            let ran = match value.take() {
                Some(again) => {
                    self.set_iteration(depth, again, !numbers);
                    count = again;
                    self.exec_block(frame, &f.body)
                }
                None => match self.next(&items, header) {
                    Ok(Some(item)) => {
                        numbers = item.as_int().is_some();
                        count = item.as_int().unwrap_or(count);
                        self.set_iteration(depth, count, !numbers);
                        self.step(header)
                            .and_then(|()| self.assign(frame, &f.target, item))
                            .and_then(|()| self.exec_block(frame, &f.body))
                    }
                    Ok(None) => break Ok(Flow::Next),
                    Err(raise) => break Err(raise),
                },
            };
            match ran {
                Ok(Flow::Next | Flow::Continue) => count = count.saturating_add(1),
                Ok(Flow::Yield(value)) => {
                    self.pop_steps(depth);
                    self.suspended.push(Saved::For(Some(items), count));
                    return Ok(Flow::Yield(value));
                }
                other => break other,
            }
        };
        self.pop_steps(depth);
        // A generator without other references is closed with the loop.
        if Rc::strong_count(&items) == 1 && items.is_open_generator() && !matches!(&result, Err(raise) if raise.fatal) {
            self.close(&items, header)?;
        }
        result
    }

    /// Runs the iterations of a loop, or copies them.
    fn loop_over(
        &mut self,
        frame: &Frame<'_>,
        f: &For,
        variable: Symbol,
        header: Span,
        mut items: impl Iterator<Item = Value>,
        mut copies: Option<Copies<'_>>,
    ) -> EvalResult<Flow> {
        let depth = self.push_iteration(variable, header, self.dialect.is_independent(self, &f.iter));
        let mut result = Ok(Flow::Next);
        // For a compiler that evaluates the body once, a `return` in it ends only that evaluation:
        // all iterations run.
        let is_read_once = self.in_kernel && self.dialect.reads_body_once(self, &f.iter);
        let before = if is_read_once { self.held_before(frame, f) } else { Vec::new() };
        let mut returned = None;
        let mut count = 0;
        while let Some(item) = items.next() {
            self.begin_again(frame, &before, f.iter.span);
            let mut ran = self.iteration(frame, f, (depth, header), item, count);
            if is_read_once && let Ok(Flow::Return(value)) = ran {
                returned.get_or_insert(value);
                ran = Ok(Flow::Next);
            }
            let copied = match (&ran, &mut copies) {
                (Ok(Flow::Next | Flow::Continue), Some(copies)) => copies.after(self, frame, (depth, header), count),
                _ => Ok(0),
            };
            match (ran, copied) {
                (Ok(Flow::Next | Flow::Continue), Ok(copied)) => {
                    count += 1 + copied as i64;
                    items.by_ref().take(copied).for_each(drop);
                }
                (Ok(_), Err(raise)) => {
                    result = Err(raise);
                    break;
                }
                (ended, _) => {
                    result = ended;
                    break;
                }
            }
        }
        self.pop_steps(depth);
        if result.is_ok() {
            self.end_held(frame, &before, f.iter.span);
        }
        match returned {
            Some(value) if result.is_ok() => Ok(Flow::Return(value)),
            _ => result,
        }
    }

    /// Runs one iteration, number `count`, of the loop at `depth`.
    pub(super) fn iteration(
        &mut self,
        frame: &Frame<'_>,
        f: &For,
        (depth, header): (usize, Span),
        item: Value,
        count: i64,
    ) -> EvalResult<Flow> {
        self.set_iteration(depth, item.as_int().unwrap_or(count), item.as_int().is_none());
        self.step(header)?;
        self.assign(frame, &f.target, item)?;
        self.exec_block(frame, &f.body)
    }

    /// The values of names at the start of each iteration, if the compiler evaluates the loop's
    /// body once.
    fn held_before(&self, frame: &Frame<'_>, f: &For) -> Vec<(Carried, Value)> {
        if f.carried().is_empty() {
            return Vec::new();
        }
        f.carried_into().map(|carried| (*carried, self.held(frame, carried.slot))).collect()
    }

    /// Restores the values that names had before the loop over `iterable`.
    fn begin_again(&mut self, frame: &Frame<'_>, before: &[(Carried, Value)], iterable: Span) {
        for (carried, old) in before {
            let now = self.held(frame, carried.slot);
            if let Some(value) = self.carry(carried, old, &now, iterable) {
                self.store(frame, carried.slot, value);
            }
        }
    }

    /// Invalidates the names whose tile differed in each iteration of the loop over `iterable`.
    fn end_held(&mut self, frame: &Frame<'_>, before: &[(Carried, Value)], iterable: Span) {
        for (carried, old) in before {
            let now = self.held(frame, carried.slot);
            if let Some(value) = self.carry_out(carried, old, &now, iterable) {
                self.store(frame, carried.slot, value);
            }
        }
    }

    /// The value of a name at the start of an iteration, if the compiler evaluates the loop's body
    /// once: `old` is the value before the loop, `now` the one after the previous iteration. `None`
    /// keeps `now`.
    pub(crate) fn carry(&mut self, carried: &Carried, old: &Value, now: &Value, iterable: Span) -> Option<Value> {
        if let (Some(before), Some(after)) = (old.as_float(), now.as_float()) {
            if before.to_bits() != after.to_bits() && !carried.is_counter {
                self.report_carried(
                    carried,
                    "is assigned in a loop that reads its value from the previous iteration",
                    iterable,
                );
            }
            return Some(old.clone());
        }
        if self.is_other_storage(old, now) {
            self.report_carried(carried, "is a different tile in each iteration of this loop", iterable);
            return Some(old.clone());
        }
        if self.is_other_value(old, now) {
            self.report_carried(
                carried,
                "is assigned in a loop that reads its value from the previous iteration",
                iterable,
            );
            return Some(old.clone());
        }
        None
    }

    /// Called after a loop that runs on the device, whose body was evaluated once: reports a name
    /// that the next iteration would find changed.
    pub(crate) fn end_counted(&mut self, carried: &Carried, old: &Value, now: &Value, iterable: Span) {
        if !carried.is_counter && self.is_carried(old, now) {
            self.report_carried(
                carried,
                "is assigned in a loop that reads its value from the previous iteration",
                iterable,
            );
        }
    }

    /// Whether a name or an item has another value or tile than before the loop.
    pub(crate) fn is_carried(&self, old: &Value, now: &Value) -> bool {
        self.is_other_storage(old, now) || self.is_other_value(old, now)
    }

    /// Whether a name's value changed from None, a number, a string or a tuple of them to another
    /// value, or vice versa.
    fn is_other_value(&self, old: &Value, now: &Value) -> bool {
        let is_plain = |v: &Value| matches!(v, Value::None | Value::Str(_) | Value::Tuple(_)) || v.as_float().is_some();
        match (old, now) {
            (Value::Unset, _) | (_, Value::Unset) | (Value::None, Value::None) => false,
            (Value::Str(a), Value::Str(b)) => a != b,
            (Value::Tuple(a), Value::Tuple(b)) => {
                let differ = |(a, b): (&Value, &Value)| self.is_other_storage(a, b) || self.is_other_value(a, b);
                a.len() != b.len() || a.iter().zip(b.iter()).any(differ)
            }
            _ => match (old.as_float(), now.as_float()) {
                (Some(a), Some(b)) => a.to_bits() != b.to_bits(),
                _ => is_plain(old) || is_plain(now),
            },
        }
    }

    /// The value of a name after such a loop, if not `now`: a tile that differs from the one before
    /// the loop belonged to an iteration.
    pub(crate) fn carry_out(&mut self, carried: &Carried, old: &Value, now: &Value, iterable: Span) -> Option<Value> {
        if !self.is_other_storage(old, now) {
            return None;
        }
        self.report_carried(carried, "is a different tile in each iteration of this loop", iterable);
        Some(Value::object(EndedTile))
    }

    fn is_other_storage(&self, old: &Value, now: &Value) -> bool {
        now.downcast::<EndedTile>().is_some() || self.dialect.is_other_storage(old, now)
    }

    fn report_carried(&mut self, carried: &Carried, what: &str, iterable: Span) {
        self.report_carried_as(&self.name(carried.name), carried.span, what, iterable);
    }

    /// Reports what is assigned at `span`.
    pub(super) fn report_carried_as(&mut self, name: &str, span: Span, what: &str, iterable: Span) {
        let finding = Diagnostic::warning("loop-carried", format!("`{name}` {what}"))
            .at(span, "each iteration starts with the value from before the loop")
            .with(iterable, "the body of this loop is compiled once")
            .help(self.dialect.hint(Hint::LoopCarried));
        self.report_once(finding, span);
    }

    pub(super) fn exec_while(
        &mut self,
        frame: &Frame<'_>,
        test: &Expr,
        body: &[Stmt],
        orelse: &[Stmt],
        span: Span,
    ) -> EvalResult<Flow> {
        let header = Span { end: test.span.end, ..span };
        let mut resumed = match self.rewind.pop() {
            Some(Saved::While(None)) => return self.exec_while_else(frame, orelse),
            Some(Saved::While(iteration)) => iteration,
            _ => None,
        };
        let depth = self.push_iteration(sym::empty, header, false);
        let mut count = 0;
        let result = loop {
            if let Some(iteration) = resumed.take() {
                self.set_iteration(depth, iteration, true);
                count = iteration + 1;
                match self.exec_block(frame, body) {
                    Ok(Flow::Next | Flow::Continue) => continue,
                    other => break other,
                }
            }
            let value = match self.eval(frame, test) {
                Ok(value) => value,
                Err(raise) => break Err(raise),
            };
            if let Value::Object(object) = &value
                && let Some(condition) = object.condition()
            {
                if count > 0 || !orelse.is_empty() {
                    break Err(Raise::at(
                        "unsupported-syntax",
                        "the condition of this loop became a register",
                        test.span,
                        "in a later iteration",
                    ));
                }
                self.pop_steps(depth);
                condition.repeat(self, test.span, &mut |interp| {
                    let flow = interp.exec_block(frame, body)?;
                    interp.no_escape(flow, "loop", test.span)
                })?;
                return Ok(Flow::Next);
            }
            match self.truth(&value, test.span) {
                Ok(true) => {}
                Ok(false) => break Ok(Flow::Next),
                Err(raise) => break Err(raise),
            }
            self.set_iteration(depth, count, true);
            count += 1;
            match self.step(header).and_then(|()| self.exec_block(frame, body)) {
                Ok(Flow::Next | Flow::Continue) => {}
                other => break other,
            }
        };
        self.pop_steps(depth);
        match result? {
            Flow::Break => Ok(Flow::Next),
            Flow::Yield(value) => {
                self.suspended.push(Saved::While(Some(count - 1)));
                Ok(Flow::Yield(value))
            }
            Flow::Return(value) => Ok(Flow::Return(value)),
            _ => self.exec_while_else(frame, orelse),
        }
    }

    fn exec_while_else(&mut self, frame: &Frame<'_>, orelse: &[Stmt]) -> EvalResult<Flow> {
        let flow = self.exec_block(frame, orelse)?;
        if let Flow::Yield(_) = flow {
            self.suspended.push(Saved::While(None));
        }
        Ok(flow)
    }
}

/// The value of a name after a loop in which its tile differed in each iteration.
#[derive(Debug)]
struct EndedTile;

impl Object for EndedTile {
    fn type_name(&self) -> &'static str {
        "tile of a loop that has ended"
    }
}
