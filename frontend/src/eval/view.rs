//! Dict views: `keys()`, `values()` and `items()`, which show the current contents of the dict.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::foreign::Object;
use super::iterator::{Iter, Source};
use super::set::Operand;
use super::set_methods::change_set;
use super::value::{Dict, Value};
use crate::syntax::*;

/// The part of each dict entry that a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Keys,
    Values,
    Items,
}

impl Part {
    /// The part for a method of dicts.
    pub(crate) fn of_method(name: &str) -> Self {
        match name {
            "keys" => Self::Keys,
            "values" => Self::Values,
            _ => Self::Items,
        }
    }

    fn of(self, key: &Value, value: &Value) -> Value {
        match self {
            Self::Keys => key.clone(),
            Self::Values => value.clone(),
            Self::Items => Value::tuple([key.clone(), value.clone()]),
        }
    }
}

/// A view of a dict.
pub(crate) struct View {
    pub(crate) dict: Rc<RefCell<Dict>>,
    pub(crate) part: Part,
}

impl View {
    /// The current items.
    pub(crate) fn items(&self) -> Vec<Value> {
        self.dict.borrow().iter().map(|(_, key, value)| self.part.of(key, value)).collect()
    }

    /// An iterator over the view.
    pub(super) fn iter(&self) -> Rc<Iter> {
        Walk::start(&self.dict, self.part, "dictionary")
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())
    }
}

impl Object for View {
    fn type_name(&self) -> &'static str {
        match self.part {
            Part::Keys => "dict_keys",
            Part::Values => "dict_values",
            Part::Items => "dict_items",
        }
    }

    fn truth(&self, _interp: &mut Interp<'_>, _this: &Value, _span: Span) -> EvalResult<bool> {
        Ok(self.dict.borrow().len() > 0)
    }

    fn len(&self, _span: Span) -> EvalResult<i64> {
        Ok(self.dict.borrow().len() as i64)
    }

    fn iterate(&self, _span: Span) -> EvalResult<Vec<Value>> {
        Ok(self.items())
    }

    fn binary(
        &self,
        interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let is_set_operation = matches!(op, BinOp::BitOr | BinOp::BitAnd | BinOp::BitXor | BinOp::Sub);
        if !is_set_operation || self.part == Part::Values {
            return Ok(None);
        }
        if op == BinOp::BitAnd {
            return common(interp, left, right, span).map(Some);
        }
        let base = set_of(interp, left, span)?;
        let (base, _) = interp.set_operand(&base, span)?;
        let (other, operand) = interp.set_operand(right, span)?;
        change_set(&base, op, &other, operand);
        Ok(Some(Value::Set(base)))
    }

    fn compare(
        &self,
        interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        if !matches!(op, CmpOp::Eq | CmpOp::Ne) {
            return Ok(None);
        }
        let side = |value: &Value| match value {
            Value::Set(set) => Some((set.clone(), Part::Keys)),
            other => other.downcast::<View>().map(|view| (view.dict.clone(), view.part)),
        };
        let equal = match (side(left), side(right)) {
            (Some((a, Part::Keys)), Some((b, Part::Keys))) => {
                let (a, b) = (a.borrow(), b.borrow());
                a.len() == b.len() && a.iter().all(|(key, ..)| b.get(key).is_some())
            }
            (Some((a, Part::Items)), Some((b, Part::Items))) => interp.equal(&Value::Dict(a), &Value::Dict(b), span)?,
            (Some((_, a)), Some((_, b))) if a == Part::Values && b == Part::Values => return Ok(None),
            (Some(_), Some(_)) => return Err(interp.bad_operands(op.text(), left, right, span)),
            _ => return Ok(None),
        };
        Ok(Some(Value::Bool(equal == (op == CmpOp::Eq))))
    }
}

/// A set made from a view or another iterable.
fn set_of(interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<Value> {
    match value.downcast::<View>() {
        Some(View { dict, part: Part::Keys }) => interp.set_of(&Value::Dict(dict.clone()), false, span),
        None if matches!(value, Value::Set(_)) => interp.set_of(value, false, span),
        _ => {
            let items = interp.iterate(value, span)?;
            interp.make_set(items, span)
        }
    }
}

/// `left & right`, where one is a view.
fn common(interp: &mut Interp<'_>, left: &Value, right: &Value, span: Span) -> EvalResult<Value> {
    let (view, other) = if left.downcast::<View>().is_some() { (left, right) } else { (right, left) };
    let (own, _) = interp.set_operand(view, span)?;
    let (other_items, operand) = interp.set_operand(other, span)?;
    let (own, other_items) = (own.borrow(), other_items.borrow());
    let takes_own = match operand {
        Operand::Set => own.len() <= other_items.len(),
        _ => other.downcast::<View>().is_some() && own.len() < other_items.len(),
    };
    let (within, items) = if takes_own { (&other_items, &own) } else { (&own, &other_items) };
    Ok(Value::Set(Rc::new(RefCell::new(within.intersection(items, Operand::Items)))))
}

/// An iteration over the entries of a dict or set, whose size must not change meanwhile.
pub(crate) struct Walk {
    dict: Rc<RefCell<Dict>>,
    part: Part,
    /// The name in Python's error message.
    kind: &'static str,
    len: usize,
    next: usize,
}

impl Walk {
    /// An iterator over a part of the entries.
    pub(super) fn start(dict: &Rc<RefCell<Dict>>, part: Part, kind: &'static str) -> Rc<Iter> {
        let len = dict.borrow().len();
        Iter::new("iterator", Source::Dict(Walk { dict: dict.clone(), part, kind, len, next: 0 }))
    }

    /// The next entry.
    pub(super) fn step(&mut self, span: Span) -> EvalResult<Option<Value>> {
        let dict = self.dict.borrow();
        if dict.len() != self.len {
            let message =
                format!("{} changed size during iteration", if self.kind == "set" { "Set" } else { self.kind });
            let said = format!("RuntimeError: {message}");
            let mut raise = Raise::at("raised-exception", said, span, "the next item is taken here")
                .help("walk over a copy: list(...)");
            raise.exception = Some(Value::exception(sym::runtime_error, vec![Value::str(message)]));
            return Err(raise);
        }
        self.next += 1;
        Ok(dict.entry(self.next - 1).map(|(key, value)| self.part.of(key, value)))
    }
}
