//! `match`.

use std::rc::Rc;

use nki_diag::Span;

use super::error::{EvalResult, Raise};
use super::exec::Flow;
use super::generator::Saved;
use super::value::*;
use super::{Frame, Interp};
use crate::syntax::*;

impl Interp<'_> {
    /// Runs a `match` statement: the first case whose pattern and guard match.
    pub(crate) fn exec_match(&mut self, frame: &Frame<'_>, m: &Match) -> EvalResult<Flow> {
        if let Some(Saved::Arm(arm)) = self.rewind.pop() {
            return match m.cases.get(arm) {
                Some(case) => self.exec_arm(frame, arm, &case.body),
                None => Ok(Flow::Next),
            };
        }
        let subject = self.eval(frame, &m.subject)?;
        if let Value::Poison = subject {
            return Err(Raise::reported());
        }
        if let (Value::Host(_), false) = (&subject, self.in_kernel) {
            self.guess_false(m.subject.span);
        }
        for (arm, case) in m.cases.iter().enumerate() {
            self.step(case.pattern.span)?;
            if !self.matches(frame, &case.pattern, &subject)? {
                continue;
            }
            if let Some(guard) = &case.guard {
                let holds = self.eval(frame, guard)?;
                if !self.truth(&holds, guard.span)? {
                    continue;
                }
            }
            return self.exec_arm(frame, arm, &case.body);
        }
        Ok(Flow::Next)
    }

    /// Whether a value matches a pattern. May bind names even if the match fails, as in Python.
    fn matches(&mut self, frame: &Frame<'_>, pattern: &Pattern, subject: &Value) -> EvalResult<bool> {
        let span = pattern.span;
        match &pattern.kind {
            PatternKind::Value(expr) => {
                let value = self.eval(frame, expr)?;
                let equal = self.compare(CmpOp::Eq, subject, &value, span)?;
                self.truth(&equal, span)
            }
            PatternKind::Singleton(expr) => {
                let value = self.eval(frame, expr)?;
                let same = self.compare(CmpOp::Is, subject, &value, span)?;
                self.truth(&same, span)
            }
            PatternKind::Sequence(patterns) => {
                let items = match subject {
                    Value::Tuple(items) => items.to_vec(),
                    Value::List(list) => list.items.borrow().clone(),
                    Value::Range(_) => self.iterate(subject, span)?,
                    Value::Instance(_) => match self.named_tuple_items(subject) {
                        Some(items) => items,
                        None => return Ok(false),
                    },
                    _ => return Ok(false),
                };
                self.matches_sequence(frame, patterns, &items)
            }
            // The enclosing sequence pattern handles it.
            PatternKind::Star(_) => Ok(false),
            PatternKind::Mapping { items, rest } => {
                let Value::Dict(dict) = subject else { return Ok(false) };
                self.matches_mapping(frame, items, rest.as_ref(), dict)
            }
            PatternKind::Class { class, positional, keyword } => {
                let class = self.eval(frame, class)?;
                self.matches_class(frame, (&class, span), (positional, keyword), subject)
            }
            PatternKind::As { pattern, name } => {
                if let Some(pattern) = pattern
                    && !self.matches(frame, pattern, subject)?
                {
                    return Ok(false);
                }
                if let Some(name) = name {
                    self.assign(frame, name, subject.clone())?;
                }
                Ok(true)
            }
            PatternKind::Or(patterns) => {
                for pattern in patterns {
                    if self.matches(frame, pattern, subject)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    fn matches_sequence(&mut self, frame: &Frame<'_>, patterns: &[Pattern], items: &[Value]) -> EvalResult<bool> {
        let star = patterns.iter().position(|p| matches!(p.kind, PatternKind::Star(_)));
        let Some(star) = star else {
            if patterns.len() != items.len() {
                return Ok(false);
            }
            for (pattern, item) in patterns.iter().zip(items) {
                if !self.matches(frame, pattern, item)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        };
        let after = patterns.len() - star - 1;
        let Some(rest) = items.len().checked_sub(after).filter(|rest| *rest >= star) else { return Ok(false) };
        let fixed = patterns[..star].iter().zip(&items[..star]).chain(patterns[star + 1..].iter().zip(&items[rest..]));
        for (pattern, item) in fixed {
            if !self.matches(frame, pattern, item)? {
                return Ok(false);
            }
        }
        if let PatternKind::Star(Some(name)) = &patterns[star].kind {
            self.assign(frame, name, Value::list(items[star..rest].to_vec()))?;
        }
        Ok(true)
    }

    fn matches_mapping(
        &mut self,
        frame: &Frame<'_>,
        items: &[(Expr, Pattern)],
        rest: Option<&Expr>,
        dict: &Rc<std::cell::RefCell<Dict>>,
    ) -> EvalResult<bool> {
        let mut left = dict.borrow().clone();
        for (key, pattern) in items {
            let value = self.eval(frame, key)?;
            let at = self.key(&value, key.span)?;
            let Some(found) = dict.borrow().get(&at).cloned() else { return Ok(false) };
            if !self.matches(frame, pattern, &found)? {
                return Ok(false);
            }
            left.remove(&at);
        }
        if let Some(rest) = rest {
            left.factory = None;
            self.assign(frame, rest, Value::dict(left))?;
        }
        Ok(true)
    }

    fn matches_class(
        &mut self,
        frame: &Frame<'_>,
        (class, span): (&Value, Span),
        (positional, keyword): (&[Pattern], &[(Symbol, Pattern)]),
        subject: &Value,
    ) -> EvalResult<bool> {
        if !matches!(
            class,
            Value::Class(_) | Value::Type(_) | Value::ExceptionClass(_) | Value::Host(_) | Value::Object(_)
        ) {
            let message = format!("a class pattern needs a class, not {}", class.a_type());
            return Err(Raise::at("type-error", message, span, "here"));
        }
        if !self.is_instance(subject, class, span)? {
            return Ok(false);
        }
        // `int(x)` binds the value itself.
        if let (Value::Type(kind), [only]) = (class, positional)
            && !matches!(kind, BuiltinType::Object | BuiltinType::Type)
        {
            if !self.matches(frame, only, subject)? {
                return Ok(false);
            }
        } else if !positional.is_empty() {
            let names = self.match_args(class, span)?;
            if positional.len() > names.len() {
                let message = format!(
                    "{} accepts {} positional sub-patterns, {} given",
                    self.str(class)?,
                    names.len(),
                    positional.len()
                );
                return Err(Raise::at("type-error", message, span, "in this pattern")
                    .help("declare the order of its attributes with `__match_args__`, or name them"));
            }
            for (name, pattern) in names.into_iter().zip(positional) {
                if !self.matches_attribute(frame, subject, name, pattern)? {
                    return Ok(false);
                }
            }
        }
        for (name, pattern) in keyword {
            if !self.matches_attribute(frame, subject, *name, pattern)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn matches_attribute(
        &mut self,
        frame: &Frame<'_>,
        subject: &Value,
        name: Symbol,
        pattern: &Pattern,
    ) -> EvalResult<bool> {
        let found = match subject {
            // API objects report a missing attribute themselves.
            Value::Object(object) if !self.object_has(&**object, name) => None,
            _ => self.find_attr(subject, name, pattern.span)?,
        };
        match found {
            Some(value) => self.matches(frame, pattern, &value),
            None => Ok(false),
        }
    }

    /// The attributes to which the positional patterns of a class refer.
    fn match_args(&mut self, class: &Value, span: Span) -> EvalResult<Vec<Symbol>> {
        let Value::Class(class) = class else { return Ok(Vec::new()) };
        let Some(declared) = class.lookup(sym::match_args) else {
            let in_order = class.is_dataclass() || class.kind.get() == ClassKind::NamedTuple;
            let fields = class.declared_fields();
            let positional = fields.iter().filter(|f| in_order && f.init && !f.kw_only);
            return Ok(positional.map(|f| f.name).collect());
        };
        let names = self.iterate(&declared, span)?;
        let name = |value: &Value| match value {
            Value::Str(text) => Some(self.names.intern(text)),
            _ => None,
        };
        match names.iter().map(name).collect() {
            Some(names) => Ok(names),
            None => Err(Raise::at("type-error", "`__match_args__` must be a tuple of strings", span, "of this class")),
        }
    }
}
