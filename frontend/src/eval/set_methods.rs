//! Construction of sets, and their methods.

use std::cell::RefCell;
use std::rc::Rc;

use nki_diag::Span;

use super::error::{EvalResult, Raise};
use super::native::CallArgs;
use super::set::Operand;
use super::value::*;
use super::{Frame, Interp};
use crate::syntax::*;

/// From this number of constants on, CPython compiles a set display to a constant.
const FOLDED: usize = 3;

/// Whether CPython evaluates an expression at compile time.
fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::None
        | ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Ellipsis => true,
        ExprKind::Tuple(items) => items.iter().all(is_constant),
        ExprKind::Unary(_, operand) => is_constant(operand),
        ExprKind::Binary(_, left, right) => is_constant(left) && is_constant(right),
        _ => false,
    }
}

impl Interp<'_> {
    /// A set to which these items are added one by one.
    pub(crate) fn make_set(&mut self, items: Vec<Value>, span: Span) -> EvalResult<Value> {
        let mut set = Dict::empty_set(false);
        for item in items {
            set.set(self.key(&item, span)?, item, Value::None);
        }
        Ok(Value::Set(Rc::new(RefCell::new(set))))
    }

    /// `{a, b, *c}`
    pub(super) fn eval_set(&mut self, frame: &Frame<'_>, items: &[Expr], span: Span) -> EvalResult<Value> {
        if !items.iter().any(|item| matches!(item.kind, ExprKind::Starred(_))) {
            if items.len() >= FOLDED && items.iter().all(is_constant) {
                let constant = self.constant_set(frame, items, span)?;
                return self.set_of(&constant, false, span);
            }
            let values = self.eval_items(frame, items)?;
            return self.make_set(values, span);
        }
        let mut set = Dict::empty_set(false);
        for item in items {
            if let ExprKind::Starred(inner) = &item.kind {
                let value = self.eval(frame, inner)?;
                let (others, operand) = self.set_operand(&value, item.span)?;
                self.charge_items(4 * others.borrow().len(), span)?;
                set.update(&others.borrow(), operand);
                continue;
            }
            let value = self.eval(frame, item)?;
            set.set(self.key(&value, item.span)?, value, Value::None);
        }
        Ok(Value::Set(Rc::new(RefCell::new(set))))
    }

    /// The constant that CPython's compiler creates for a display of constants: it builds a
    /// frozenset, and then a second one from the first.
    fn constant_set(&mut self, frame: &Frame<'_>, items: &[Expr], span: Span) -> EvalResult<Value> {
        let values = self.eval_items(frame, items)?;
        let first = self.make_set(values, span)?;
        let (first, _) = self.set_operand(&first, span)?;
        let mut second = Dict::empty_set(true);
        second.update(&first.borrow(), Operand::Items);
        Ok(Value::Set(Rc::new(RefCell::new(second))))
    }

    /// Evaluates the iterable of a loop: CPython compiles a set display of constants there to a
    /// constant.
    pub(super) fn eval_iterable(&mut self, frame: &Frame<'_>, expr: &Expr) -> EvalResult<Value> {
        match &expr.kind {
            ExprKind::Set(items) if items.iter().all(is_constant) => self.constant_set(frame, items, expr.span),
            _ => self.eval(frame, expr),
        }
    }

    /// `set.name(...)` for a method of sets.
    pub(super) fn set_method(&mut self, set: &Rc<RefCell<Dict>>, name: &str, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        match name {
            "add" | "discard" | "remove" => {
                args.positional_only(self, name, 1, 1)?;
                let item = args.positional[0].clone();
                let key = self.hash_key(&item, span)?;
                if name == "add" {
                    set.borrow_mut().set(key, item, Value::None);
                } else if set.borrow_mut().remove(&key).is_none() && name == "remove" {
                    return Err(self.missing_key(&item, None, span));
                }
                Ok(Value::None)
            }
            "clear" => {
                set.borrow_mut().clear();
                Ok(Value::None)
            }
            "pop" => {
                args.positional_only(self, name, 0, 0)?;
                let item = set.borrow_mut().pop();
                item.ok_or_else(|| Raise::at("missing-key", "pop from an empty set", span, "in this call"))
            }
            "copy" => {
                self.charge_items(set.borrow().len().saturating_mul(4), span)?;
                let is_frozen = set.borrow().is_frozen;
                if is_frozen {
                    return Ok(Value::Set(set.clone()));
                }
                Ok(Value::Set(Rc::new(RefCell::new(set.borrow().copy_set(false)))))
            }
            "issubset" | "issuperset" | "isdisjoint" => {
                args.positional_only(self, name, 1, 1)?;
                let (other, _) = self.set_operand(&args.positional[0], span)?;
                let common = set.borrow().intersection(&other.borrow(), Operand::Items).len();
                Ok(Value::Bool(match name {
                    "issubset" => common == set.borrow().len(),
                    "issuperset" => common == other.borrow().len(),
                    _ => common == 0,
                }))
            }
            _ => self.combine_sets(set, name, args),
        }
    }

    /// `set(value)` and `frozenset(value)` of a set or a dict.
    pub(super) fn set_of(&mut self, value: &Value, is_frozen: bool, span: Span) -> EvalResult<Value> {
        if let Value::Set(set) = value
            && is_frozen
            && set.borrow().is_frozen
        {
            return Ok(value.clone());
        }
        let (items, operand) = self.set_operand(value, span)?;
        self.charge_items(4 * items.borrow().len(), span)?;
        let mut set = Dict::empty_set(is_frozen);
        set.update(&items.borrow(), operand);
        Ok(Value::Set(Rc::new(RefCell::new(set))))
    }

    /// The other operand of a set method.
    pub(super) fn set_operand(&mut self, value: &Value, span: Span) -> EvalResult<(Rc<RefCell<Dict>>, Operand)> {
        match value {
            Value::Set(set) => Ok((set.clone(), Operand::Set)),
            Value::Dict(dict) => Ok((dict.clone(), Operand::Dict)),
            other => {
                let mut items = Dict::default();
                for item in self.iterate(other, span)? {
                    items.set(self.key(&item, span)?, item, Value::None);
                }
                Ok((Rc::new(RefCell::new(items)), Operand::Items))
            }
        }
    }

    /// `union`, `update` and the other methods that accept several containers.
    fn combine_sets(&mut self, set: &Rc<RefCell<Dict>>, name: &str, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let op = match name.trim_end_matches("_update") {
            "difference" => BinOp::Sub,
            "intersection" => BinOp::BitAnd,
            "symmetric_difference" => BinOp::BitXor,
            _ => BinOp::BitOr,
        };
        if op == BinOp::BitXor {
            args.positional_only(self, name, 1, 1)?;
        }
        let changes = name.ends_with("update");
        // The other methods work on a copy, except that the first step of `difference` and
        // `intersection` creates a new set anyway.
        let result = match changes {
            true => set.clone(),
            false if matches!(op, BinOp::BitOr) || args.positional.is_empty() => {
                let is_frozen = set.borrow().is_frozen;
                Rc::new(RefCell::new(set.borrow().copy_set(is_frozen)))
            }
            false => set.clone(),
        };
        let mut made = Value::Set(result);
        for (index, value) in args.positional.iter().enumerate() {
            let (other, operand) = self.set_operand(value, span)?;
            if op == BinOp::BitOr && Rc::ptr_eq(&other, set) {
                continue;
            }
            let Value::Set(current) = &made else { break };
            self.charge_items(4 * (current.borrow().len() + other.borrow().len()), span)?;
            if changes || op == BinOp::BitOr || op == BinOp::Sub && index > 0 {
                change_set(&current.clone(), op, &other, operand);
                continue;
            }
            let next = {
                let (a, b) = (current.borrow(), other.borrow());
                match op {
                    BinOp::BitAnd if Rc::ptr_eq(current, &other) => a.copy_set(a.is_frozen),
                    BinOp::BitAnd => a.intersection(&b, operand),
                    BinOp::Sub => a.difference(&b, operand),
                    _ => a.symmetric_difference(&b, operand),
                }
            };
            made = Value::Set(Rc::new(RefCell::new(next)));
        }
        Ok(if changes { Value::None } else { made })
    }
}

/// `set op= other`
pub(super) fn change_set(set: &Rc<RefCell<Dict>>, op: BinOp, other: &Rc<RefCell<Dict>>, operand: Operand) {
    if Rc::ptr_eq(set, other) {
        match op {
            BinOp::Sub | BinOp::BitXor => set.borrow_mut().clear(),
            BinOp::BitAnd => {
                let copy = set.borrow().copy_set(false);
                *set.borrow_mut() = copy;
            }
            _ => {}
        }
        return;
    }
    let other = other.borrow();
    match op {
        BinOp::BitOr => set.borrow_mut().update(&other, operand),
        BinOp::Sub => set.borrow_mut().subtract(&other),
        // CPython first converts other iterables to a set.
        BinOp::BitXor if operand == Operand::Items => {
            let mut distinct = Dict::empty_set(false);
            distinct.update(&other, operand);
            set.borrow_mut().toggle(&distinct);
        }
        BinOp::BitXor => set.borrow_mut().toggle(&other),
        _ => {
            let common = set.borrow().intersection(&other, operand);
            *set.borrow_mut() = common;
        }
    }
}
