//! Expressions.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};

use super::error::{EvalResult, Raise, closest};
use super::exec::unsupported;
use super::language::{Construct, Hint};
use super::native::CallArgs;
use super::value::{Dict, Host, Kernel, Slice, Value};
use super::{Frame, Interp};
use crate::syntax::*;

impl Interp<'_> {
    /// Evaluates an expression.
    pub(crate) fn eval(&mut self, frame: &Frame<'_>, expr: &Expr) -> EvalResult<Value> {
        Ok(match &expr.kind {
            ExprKind::Name(name, slot) => return self.load(frame, *name, *slot, expr.span),
            ExprKind::Int(value) => Value::Int(*value),
            ExprKind::Attr(base, name) => {
                let base = self.eval(frame, base)?;
                return self.get_attr(&base, *name, expr.span);
            }
            ExprKind::Call(callee, arguments) => return self.eval_call(frame, callee, arguments, expr.span),
            ExprKind::Subscript(base, index) => {
                let nested = matches!(base.kind, ExprKind::Subscript(..));
                let base = self.eval(frame, base)?;
                let index = self.eval(frame, index)?;
                if nested && matches!(&base, Value::Object(o) if o.is_device_data()) {
                    self.check_strictly(Construct::NestedIndex(expr.span));
                }
                return self.get_item(&base, &index, expr.span);
            }
            ExprKind::Binary(op, left, right) => {
                let left = self.eval(frame, left)?;
                let right = self.eval(frame, right)?;
                return self.binary(*op, &left, &right, expr.span);
            }
            ExprKind::Compare(left, rest) => return self.eval_compare(frame, left, rest, expr.span),
            ExprKind::None => Value::None,
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Float(value) => Value::Float(*value),
            ExprKind::Str(text) => Value::Str(text.clone()),
            ExprKind::Ellipsis => Value::Ellipsis,
            // Fast path: shapes and indices mostly have two numbers.
            ExprKind::Tuple(items)
                if let [first, second] = &items[..]
                    && !matches!(first.kind, ExprKind::Starred(_))
                    && !matches!(second.kind, ExprKind::Starred(_)) =>
            {
                Value::Tuple(Rc::new([self.eval(frame, first)?, self.eval(frame, second)?]))
            }
            ExprKind::Tuple(items) => Value::tuple(self.eval_items(frame, items)?),
            ExprKind::List(items) => Value::list(self.eval_items(frame, items)?),
            ExprKind::Slice(start, stop, step) => {
                let mut part = |e: &Option<Box<Expr>>| e.as_ref().map_or(Ok(Value::None), |e| self.eval(frame, e));
                Value::Slice(Rc::new(Slice { start: part(start)?, stop: part(stop)?, step: part(step)? }))
            }
            ExprKind::Set(items) => return self.eval_set(frame, items, expr.span),
            ExprKind::Dict(items) => return self.eval_dict(frame, items),
            ExprKind::Unary(op, operand) => {
                let value = self.eval(frame, operand)?;
                return self.unary(*op, &value, expr.span);
            }
            ExprKind::And(items) => return self.eval_bool_op(frame, items, false),
            ExprKind::Or(items) => return self.eval_bool_op(frame, items, true),
            ExprKind::IfElse(test, then, otherwise) => {
                let value = self.eval(frame, test)?;
                if matches!(value, Value::Poison) {
                    return Ok(value);
                }
                let chosen = if self.truth(&value, test.span)? { then } else { otherwise };
                return self.eval(frame, chosen);
            }
            ExprKind::Lambda(def) => {
                return self.make_function(frame, def);
            }
            ExprKind::Walrus(target, value) => {
                let value = self.eval(frame, value)?;
                self.assign(frame, target, value.clone())?;
                value
            }
            ExprKind::Comp(comp) => {
                return self.eval_comp(frame, comp);
            }
            ExprKind::Generator(def, iterable) => {
                let value = self.eval_iterable(frame, iterable)?;
                // Python evaluates the first iterable immediately, and everything else when an item
                // is requested.
                let items = match &value {
                    Value::Host(_) | Value::Poison => value,
                    value => Value::Iterator(self.iter(value, iterable.span)?),
                };
                let Value::Function(function) = &self.make_function(frame, def)? else { return Ok(Value::None) };
                return self.call_function(function, None, CallArgs::of([items], expr.span));
            }
            ExprKind::Yield(..) => {
                let what = Unsupported { construct: "`yield` in this place", instead: "assign it to a name first" };
                return Err(unsupported(what, expr.span));
            }
            ExprKind::FString(parts) => {
                let mut text = String::new();
                self.format_parts(frame, parts, &mut text)?;
                Value::str(text)
            }
            ExprKind::Starred(inner) => {
                return Err(Raise::at(
                    "unsupported-syntax",
                    "a starred expression is not allowed here",
                    inner.span,
                    "here",
                ));
            }
            ExprKind::Unsupported(what) => return Err(unsupported(*what, expr.span)),
        })
    }

    /// Loads the value of a name.
    fn load(&mut self, frame: &Frame<'_>, name: Symbol, slot: Slot, span: Span) -> EvalResult<Value> {
        let value = match slot {
            Slot::Local(index) => match &self.stack[frame.base + index as usize] {
                Value::Cell(cell) => cell.borrow().clone(),
                value => value.clone(),
            },
            Slot::Global(index) => frame.module.globals.borrow()[index as usize].clone(),
            Slot::Free(index) => match &frame.captures[index as usize] {
                Value::Cell(cell) => cell.borrow().clone(),
                value => value.clone(),
            },
            Slot::Class(index, global) => match &self.stack[frame.base + index as usize] {
                Value::Unset => frame.module.globals.borrow()[global as usize].clone(),
                Value::Cell(cell) => cell.borrow().clone(),
                value => value.clone(),
            },
            Slot::Unresolved => Value::Unset,
        };
        if !matches!(value, Value::Unset) {
            if let Slot::Global(index) | Slot::Class(_, index) = slot
                && !frame.module.guesses.borrow().is_empty()
            {
                self.tell_guess(frame.module, index, &value, span);
            }
            return Ok(value);
        }
        if let Slot::Global(_) | Slot::Class(..) = slot
            && let Some(value) = self.host_global(frame.module, name, span)?
        {
            return Ok(value);
        }
        if !matches!(slot, Slot::Local(_) | Slot::Free(_))
            && let Some(value) = self.dialect.undefined(self, &self.name(name), span)
        {
            return Ok(value);
        }
        Err(self.undefined(frame, name, slot, span))
    }

    fn undefined(&mut self, frame: &Frame<'_>, name: Symbol, slot: Slot, span: Span) -> Box<Raise> {
        let text = self.name(name);
        if matches!(slot, Slot::Local(_) | Slot::Free(_)) {
            return Raise::at(
                "undefined-name",
                format!("`{text}` is used before it is assigned"),
                span,
                "not assigned on this path",
            )
            .help("assign it before the loop or in every branch");
        }
        if text.is_empty() {
            // The parser inserts this node where it reports a syntax error.
            return Raise::at("unsupported-syntax", "the expression is not valid Python", span, "not valid Python");
        }
        let mut candidates: Vec<Rc<str>> = Vec::new();
        for (symbol, value) in frame.module.symbols.borrow().iter().zip(frame.module.globals.borrow().iter()) {
            if !matches!(value, Value::Unset) {
                candidates.push(self.name(*symbol));
            }
        }
        candidates.extend(frame.names.iter().map(|s| self.name(*s)));
        let mut diagnostic =
            Diagnostic::error("undefined-name", format!("the name `{text}` is not defined")).at(span, "not found");
        let package = self.dialect.packages().first().copied().unwrap_or_default();
        if let Some(import) = crate::usual_import(&text, package) {
            diagnostic = diagnostic.help(format!("write `{import}` at the top of the file"));
        } else if let Some(near) = nearest(&text, candidates.iter().map(|c| &**c)) {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        Raise::new(diagnostic)
    }

    /// Evaluates the items of a display, expanding starred items.
    pub(super) fn eval_items(&mut self, frame: &Frame<'_>, items: &[Expr]) -> EvalResult<Vec<Value>> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            if let ExprKind::Starred(inner) = &item.kind {
                let value = self.eval(frame, inner)?;
                out.extend(self.iterate(&value, inner.span)?);
            } else {
                out.push(self.eval(frame, item)?);
            }
        }
        Ok(out)
    }

    /// Converts an object with `keys` and `__getitem__` to a dict; other values are returned
    /// unchanged.
    pub(crate) fn as_dict(&mut self, value: Value, span: Span) -> EvalResult<Value> {
        let Value::Instance(instance) = &value else { return Ok(value) };
        let keys = self.sym("keys");
        if instance.class.lookup(keys).is_none() {
            return Ok(value);
        }
        let keys = self.call_method(&value, keys, CallArgs::none(span))?;
        let mut dict = Dict::default();
        for key in self.iterate(&keys, span)? {
            let item = self.get_item(&value, &key, span)?;
            dict.set(self.new_key(&key, span)?, key, item);
        }
        Ok(Value::dict(dict))
    }

    fn eval_dict(&mut self, frame: &Frame<'_>, items: &[(Option<Expr>, Expr)]) -> EvalResult<Value> {
        let mut dict = Dict::default();
        for (key, value) in items {
            match key {
                Some(key) => {
                    let key_value = self.eval(frame, key)?;
                    let value = self.eval(frame, value)?;
                    dict.set(self.new_key(&key_value, key.span)?, key_value, value);
                }
                None => match self.eval(frame, value).and_then(|dict| self.as_dict(dict, value.span))? {
                    Value::Dict(ref other) => {
                        for (key, original, value) in other.borrow().iter() {
                            dict.set(key.clone(), original.clone(), value.clone());
                        }
                    }
                    other => {
                        return Err(Raise::at(
                            "type-error",
                            format!("`**` needs a dict, not {}", other.a_type()),
                            value.span,
                            "here",
                        ));
                    }
                },
            }
        }
        Ok(Value::dict(dict))
    }

    fn eval_bool_op(&mut self, frame: &Frame<'_>, items: &[Expr], stop_at: bool) -> EvalResult<Value> {
        let Some((last, rest)) = items.split_last() else { return Ok(Value::None) };
        for (at, item) in rest.iter().enumerate() {
            let value = self.eval(frame, item)?;
            if matches!(value, Value::Poison) {
                return Ok(value);
            }
            if let Value::Object(object) = &value
                && object.joins_undecided()
                && !stop_at
            {
                let mut joined = value;
                for next in &items[at + 1..] {
                    let right = self.eval(frame, next)?;
                    joined = self.binary(BinOp::BitAnd, &joined, &right, next.span)?;
                }
                return Ok(joined);
            }
            if self.truth(&value, item.span)? == stop_at {
                return Ok(value);
            }
        }
        self.eval(frame, last)
    }

    fn eval_compare(
        &mut self,
        frame: &Frame<'_>,
        left: &Expr,
        rest: &[(CmpOp, Expr)],
        span: Span,
    ) -> EvalResult<Value> {
        let mut left = self.eval(frame, left)?;
        for (index, (op, right)) in rest.iter().enumerate() {
            let right = self.eval(frame, right)?;
            let value = self.compare(*op, &left, &right, span)?;
            if index + 1 == rest.len() || matches!(value, Value::Poison) || !self.truth(&value, span)? {
                return Ok(value);
            }
            left = right;
        }
        Ok(left)
    }

    fn eval_comp(&mut self, frame: &Frame<'_>, comp: &Comp) -> EvalResult<Value> {
        let mut out = Vec::new();
        let mut dict = Dict::default();
        self.comp_clause(frame, comp, 0, &mut out, &mut dict)?;
        Ok(match comp.kind {
            CompKind::List => Value::list(out),
            CompKind::Dict => Value::dict(dict),
            CompKind::Set => return self.make_set(out, comp.element.span),
        })
    }

    fn comp_clause(
        &mut self,
        frame: &Frame<'_>,
        comp: &Comp,
        depth: usize,
        out: &mut Vec<Value>,
        dict: &mut Dict,
    ) -> EvalResult<()> {
        let Some(clause) = comp.clauses.get(depth) else {
            match &comp.key {
                Some(key) => {
                    let key_value = self.eval(frame, key)?;
                    let value = self.eval(frame, &comp.element)?;
                    dict.set(self.new_key(&key_value, key.span)?, key_value, value);
                }
                None => out.push(self.eval(frame, &comp.element)?),
            }
            return Ok(());
        };
        let iterable = self.eval_iterable(frame, &clause.iter)?;
        let items = self.iter(&iterable, clause.iter.span)?;
        'items: while let Some(item) = self.next(&items, clause.iter.span)? {
            self.step(clause.target.span)?;
            // As in Python, closures made in different iterations share the variable's cell.
            self.assign(frame, &clause.target, item)?;
            for test in &clause.ifs {
                let value = self.eval(frame, test)?;
                if !self.truth(&value, test.span)? {
                    continue 'items;
                }
            }
            self.comp_clause(frame, comp, depth + 1, out, dict)?;
        }
        Ok(())
    }

    fn format_parts(&mut self, frame: &Frame<'_>, parts: &[FPart], out: &mut String) -> EvalResult<()> {
        for part in parts {
            match part {
                FPart::Text(text) => out.push_str(text),
                FPart::Value { expr, conversion, spec } => {
                    let value = self.eval(frame, expr)?;
                    let value = match conversion {
                        None => value,
                        Some('s') => Value::str(self.str(&value)?),
                        Some('a') => Value::str(self.ascii(&value)?),
                        Some(_) => Value::str(self.repr(&value)?),
                    };
                    if let Value::Str(text) = &value {
                        self.charge_text(out.len().saturating_add(text.len()), expr.span)?;
                    }
                    match spec {
                        None => out.push_str(&self.format_value(&value, "", expr.span)?),
                        Some(spec) => {
                            let mut text = String::new();
                            self.format_parts(frame, spec, &mut text)?;
                            out.push_str(&self.format_value(&value, &text, expr.span)?);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// `base[index]`
    pub(crate) fn get_item(&mut self, base: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        if self.absorbs_index(base, index) {
            return Ok(Value::Poison);
        }
        if !matches!(base, Value::Dict(_)) && self.has_host_value([index]) {
            return Ok(self.host(format!("{}[...]", base.type_name()), span));
        }
        match base {
            Value::Object(object) => {
                let index = index.index_of(&**object);
                object.item(self, base, &index, span).or_else(|raise| self.recover(raise))
            }
            Value::List(list) => {
                if let Value::Slice(slice) = index {
                    let len = list.items.borrow().len();
                    let at = self.slice_indices(slice, len, span)?;
                    let items = list.items.borrow();
                    return Ok(Value::list(at.into_iter().map(|i| items[i].clone()).collect()));
                }
                let len = list.items.borrow().len();
                let at = self.index(index, len, "list", span)?;
                Ok(list.items.borrow()[at].clone())
            }
            Value::Tuple(items) => {
                if let Value::Slice(slice) = index {
                    let at = self.slice_indices(slice, items.len(), span)?;
                    return Ok(Value::tuple(at.into_iter().map(|i| items[i].clone()).collect::<Vec<_>>()));
                }
                let at = self.index(index, items.len(), "tuple", span)?;
                Ok(items[at].clone())
            }
            Value::Dict(dict) => {
                let key = self.key(index, span)?;
                if let Some(value) = dict.borrow().get(&key) {
                    return Ok(value.clone());
                }
                let factory = dict.borrow().factory.clone();
                if let Some(factory) = factory {
                    let value = self.call(&factory, CallArgs::none(span))?;
                    dict.borrow_mut().set(key, index.clone(), value.clone());
                    return Ok(value);
                }
                Err(self.missing_key(index, Some(base), span))
            }
            Value::Str(text) => {
                self.charge(text.len().saturating_mul(4), span)?;
                let chars: Vec<char> = text.chars().collect();
                if let Value::Slice(slice) = index {
                    let at = self.slice_indices(slice, chars.len(), span)?;
                    return Ok(Value::str(at.into_iter().map(|i| chars[i]).collect::<String>()));
                }
                let at = self.index(index, chars.len(), "str", span)?;
                Ok(Value::str(chars[at].to_string()))
            }
            Value::Range(range) => {
                let len = usize::try_from(range.len()).unwrap_or(usize::MAX);
                if let Value::Slice(slice) = index {
                    let (start, stop, step) = self.slice_bounds(slice, len, span)?;
                    let new_step = range.step.saturating_mul(step);
                    return Ok(Value::Range(Rc::new(super::value::Range {
                        start: range.at(start),
                        stop: range.at(stop),
                        step: new_step,
                    })));
                }
                let at = self.index(index, len, "range", span)?;
                Ok(Value::Int(range.at(at as i64)))
            }
            Value::Instance(instance) => {
                if let Some(method) = instance.class.lookup(sym::getitem) {
                    return self.call_with(&method, base.clone(), CallArgs::of([index.clone()], span));
                }
                match self.named_tuple_items(base) {
                    Some(items) => self.get_item(&Value::tuple(items), index, span),
                    None => Err(self.no_item(base, "read", span)),
                }
            }
            Value::EnumMember(member) if member.kind().mixin.is_some() => self.get_item(&member.value, index, span),
            Value::Class(class) => {
                let name = match index {
                    Value::Str(name) => self.names.find(name),
                    _ => None,
                };
                let named = class.named_members().into_iter().find(|(own, _)| Some(*own) == name);
                match named.map(|(_, member)| member) {
                    Some(member) => Ok(Value::EnumMember(member)),
                    None if class.enum_kind().is_none() => self.class_item(base, &class.clone(), index, span),
                    None => Err(self.missing_key(index, None, span)),
                }
            }
            // A grid would run the inner kernel several times.
            Value::Kernel(_) if self.in_kernel && self.dialect.is_older() => Err(Self::nested_grid(span)),
            Value::Kernel(kernel) if kernel.is_older() => {
                Ok(Value::Kernel(Rc::new(Kernel { has_grid: true, ..(**kernel).clone() })))
            }
            // `kernel[2](...)`: here the number of cores is the caller's choice.
            Value::Kernel(_) => Ok(base.clone()),
            Value::Type(_) | Value::Native(_) => Ok(base.clone()),
            Value::Host(host) if !self.in_kernel => Ok(self.host_part(host, format!("{}[...]", host.path), span)),
            Value::Host(host) => Err(self.host_error(host, span)),
            _ => Err(self.no_item(base, "read", span)),
        }
    }

    /// Start, stop and step of a slice of a sequence of `len` items, clamped.
    pub(crate) fn slice_bounds(&mut self, slice: &Slice, len: usize, span: Span) -> EvalResult<(i64, i64, i64)> {
        let mut part = |value: &Value| match value {
            Value::None => Ok(None),
            value => match self.position_of(value, span)? {
                Some(value) => Ok(Some(value)),
                None => Err(Raise::at(
                    "type-error",
                    format!("a slice bound must be an int, not {}", value.a_type()),
                    span,
                    "in this slice",
                )),
            },
        };
        let step = part(&slice.step)?.unwrap_or(1);
        if step == 0 {
            return Err(Raise::at("value-error", "the step of a slice must not be 0", span, "in this slice"));
        }
        let len = len as i64;
        let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
        let clamp = |value: i64| if value < 0 { value.saturating_add(len).max(low) } else { value.min(high) };
        let (start, stop) = (part(&slice.start)?, part(&slice.stop)?);
        let start = start.map_or(if step > 0 { low } else { high }, clamp);
        let stop = stop.map_or(if step > 0 { high } else { low }, clamp);
        Ok((start, stop, step))
    }

    pub(super) fn slice_indices(&mut self, slice: &Slice, len: usize, span: Span) -> EvalResult<Vec<usize>> {
        let (start, stop, step) = self.slice_bounds(slice, len, span)?;
        let range = super::value::Range { start, stop, step };
        self.charge_items(2 * range.len() as usize, span)?;
        Ok((0..range.len()).map(|i| range.at(i) as usize).collect())
    }

    /// An opaque value of the host program.
    pub(crate) fn host(&self, path: String, span: Span) -> Value {
        Value::Host(Rc::new(Host { path, reason: None, span: Some(span) }))
    }

    /// Outside kernels: whether one of these values is a host value, or a sequence or slice that
    /// contains one. A failure of an operation on it is not an error.
    pub(crate) fn has_host_value<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> bool {
        fn within(value: &Value, depth: usize) -> bool {
            match value {
                Value::Host(_) => true,
                Value::Slice(slice) => [&slice.start, &slice.stop, &slice.step].into_iter().any(|v| within(v, depth)),
                _ if depth < 8 => {
                    value.sequence().is_some_and(|items| items.iter().any(|item| within(item, depth + 1)))
                }
                _ => false,
            }
        }
        !self.in_kernel && values.into_iter().any(|value| within(value, 0))
    }

    /// A value derived from a host value: unknown for the same reason.
    pub(super) fn host_part(&self, host: &Host, path: String, span: Span) -> Value {
        Value::Host(Rc::new(Host { path, reason: host.reason.clone(), span: Some(span) }))
    }

    /// The error of a kernel with a grid that another kernel calls.
    pub(crate) fn nested_grid(span: Span) -> Box<Raise> {
        let message = "a kernel with a grid is called inside another kernel";
        Raise::at("launch-grid", message, span, "this grid")
            .help("call it without a grid, in a loop over its programs with their indices as arguments")
    }

    /// The result of an operation on a host value: another host value, or an error inside a kernel.
    pub(crate) fn host_value(&self, host: &Host, span: Span) -> EvalResult<Value> {
        if self.in_kernel {
            return Err(self.host_error(host, span));
        }
        Ok(match host.reason {
            // The problem is where the value came from.
            Some(_) => Value::Host(Rc::new(host.clone())),
            None => self.host(host.path.clone(), span),
        })
    }

    /// The error of a host value in a kernel.
    pub(crate) fn host_error(&self, host: &Host, span: Span) -> Box<Raise> {
        let mut diagnostic = Diagnostic::error(
            "host-value",
            format!("`{}` belongs to the host program and has no value in a kernel", host.path),
        )
        .at(span, "used here");
        if let Some(origin) = host.span {
            diagnostic = diagnostic.with(origin, "it comes from here");
        }
        diagnostic = match &host.reason {
            Some(reason) => diagnostic.note(reason.clone()),
            None => diagnostic.help(self.dialect.hint(Hint::HostValue)),
        };
        Raise::new(diagnostic)
    }
}

/// The candidate most similar to `name`, if any is close.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    closest(name, candidates.filter(|c| !c.is_empty() && *c != name))
}
