//! Comparisons: order, equality, identity, membership.

use std::cmp::Ordering;
use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::arithmetic::compare_int_float;
use super::error::EvalResult;
use super::foreign::object_equals;
use super::native::CallArgs;
use super::stdlib::scalar;
use super::value::*;
use crate::syntax::*;

/// Nesting depth beyond which containers are not printed.
pub(crate) const MAX_DEPTH: u32 = 200;

impl Interp<'_> {
    /// One comparison.
    pub(crate) fn compare(&mut self, op: CmpOp, left: &Value, right: &Value, span: Span) -> EvalResult<Value> {
        if let (Value::Int(a), Value::Int(b)) = (left, right) {
            let order = a.cmp(b);
            if !matches!(op, CmpOp::In | CmpOp::NotIn) {
                return Ok(Value::Bool(ordered(op, order)));
            }
        }
        if self.either_poisoned(left, right) {
            return Ok(Value::Poison);
        }
        let of_host = !self.in_kernel && matches!((left, right), (Value::Host(_), _) | (_, Value::Host(_)));
        if of_host && matches!(op, CmpOp::In | CmpOp::NotIn) {
            // As with any condition on a host value, so that a check (`if MODE not in (...):
            // raise`) passes.
            self.guess_false(span);
            return Ok(Value::Bool(false));
        }
        if matches!(op, CmpOp::In | CmpOp::NotIn) {
            let found = self.contains(right, left, span)?;
            return Ok(Value::Bool(found == (op == CmpOp::In)));
        }
        if matches!(op, CmpOp::Is | CmpOp::IsNot) {
            let same = self.identical(left, right);
            self.check_steps(span)?;
            let answer = same == (op == CmpOp::Is);
            if of_host {
                self.guess(span, if answer { "assumed to be true" } else { "assumed to be false" });
            }
            return Ok(Value::Bool(answer));
        }
        if let Some(answer) = self.compare_by_methods(op, left, right, span)? {
            return Ok(answer);
        }
        if let (Value::Host(host), other) | (other, Value::Host(host)) = (left, right)
            && !matches!(op, CmpOp::Is | CmpOp::IsNot)
            && !other.is_none()
        {
            return if self.in_kernel { Err(self.host_error(host, span)) } else { Ok(Value::Host(host.clone())) };
        }
        let none = left.is_none() || right.is_none();
        if let (Value::Object(_), _) | (_, Value::Object(_)) = (left, right)
            && !none
        {
            return self.object_compare(op, left, right, span).or_else(|raise| self.recover(raise));
        }
        match op {
            CmpOp::Eq | CmpOp::Ne => {
                // A NaN equals itself only as an item of a container.
                let nan = matches!(left, Value::Float(x) if x.is_nan());
                let equal = !nan && self.equal(left, right, span)?;
                return Ok(Value::Bool(equal == (op == CmpOp::Eq)));
            }
            _ => {}
        }
        if let (Value::Set(a), Value::Set(b)) = (left, right) {
            let (a, b) = (a.borrow(), b.borrow());
            self.count_steps(a.len().max(b.len()) as u64);
            let within = |a: &Dict, b: &Dict| a.len() <= b.len() && a.iter().all(|(key, ..)| b.get(key).is_some());
            return Ok(Value::Bool(match op {
                CmpOp::Lt => a.len() < b.len() && within(&a, &b),
                CmpOp::Le => within(&a, &b),
                CmpOp::Gt => b.len() < a.len() && within(&b, &a),
                _ => within(&b, &a),
            }));
        }
        let order = self.order(left, right);
        self.check_steps(span)?;
        if let Some(order) = order {
            return Ok(Value::Bool(order.is_some_and(|o| ordered(op, o))));
        }
        match (left, right) {
            (Value::Tuple(_), Value::Tuple(_)) | (Value::List(_), Value::List(_)) => {
                self.compare_sequences(op, left, right, span)
            }
            _ => Err(self.bad_operands(op.text(), left, right, span)),
        }
    }

    /// Compares two sequences by their first unequal items.
    fn compare_sequences(&mut self, op: CmpOp, left: &Value, right: &Value, span: Span) -> EvalResult<Value> {
        let (a, b) = (left.sequence().unwrap_or_default(), right.sequence().unwrap_or_default());
        for (x, y) in a.iter().zip(&b) {
            self.step(span)?;
            let same = self.compare(CmpOp::Eq, x, y, span)?;
            if !self.identical(x, y) && !self.truth(&same, span)? {
                return self.compare(op, x, y, span);
            }
        }
        Ok(Value::Bool(ordered(op, a.len().cmp(&b.len()))))
    }

    /// The order of two values: `None` if they cannot be ordered, `Some(None)` if one is NaN.
    pub(crate) fn order(&self, left: &Value, right: &Value) -> Option<Option<Ordering>> {
        self.order_of(left, right, 0)
    }

    fn order_of(&self, left: &Value, right: &Value, depth: u32) -> Option<Option<Ordering>> {
        self.count_steps(1);
        if self.out_of_steps() || self.is_too_deep(depth) {
            return Some(None);
        }
        if let Some(order) = self.order_of_numbers(left, right) {
            return Some(order);
        }
        match (left.plain(), right.plain()) {
            (Value::Str(a), Value::Str(b)) => Some(Some(a.cmp(b))),
            (Value::Tuple(_), Value::Tuple(_)) | (Value::List(_), Value::List(_)) => {
                let (a, b) = (left.sequence()?, right.sequence()?);
                for (x, y) in a.iter().zip(&b) {
                    if !x.is_same(y) && !self.equals(x, y) {
                        return self.order_of(x, y, depth + 1);
                    }
                }
                Some(Some(a.len().cmp(&b.len())))
            }
            (Value::Instance(a), Value::Instance(b)) => {
                let (a, b) = match (self.named_tuple_items(left), self.named_tuple_items(right)) {
                    (Some(a), Some(b)) => (a, b),
                    _ => self.ordered_fields(a, b)?,
                };
                self.order_of(&Value::tuple(a), &Value::tuple(b), depth + 1)
            }
            _ => None,
        }
    }

    /// The order of two numbers by their exact values; `None` if either is not a number,
    /// `Some(None)` if one is NaN.
    fn order_of_numbers(&self, left: &Value, right: &Value) -> Option<Option<Ordering>> {
        Some(match (left.plain(), right.plain()) {
            (a, b) if a.number().is_some() || b.number().is_some() => scalar::order(a, b)?,
            (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
            (Value::Float(a), b) => compare_int_float(self.as_index(b)?, *a).map(Ordering::reverse),
            (a, Value::Float(b)) => compare_int_float(self.as_index(a)?, *b),
            (a, b) => Some(self.as_index(a)?.cmp(&self.as_index(b)?)),
        })
    }

    /// `left is right`; numbers and strings are compared by value, because NKI gives them no
    /// identity.
    fn identical(&self, left: &Value, right: &Value) -> bool {
        match (left, right) {
            (Value::List(a), Value::List(b)) => Rc::ptr_eq(a, b),
            (Value::Dict(a), Value::Dict(b)) => Rc::ptr_eq(a, b),
            (Value::Instance(a), Value::Instance(b)) => Rc::ptr_eq(a, b),
            (Value::Exception(a), Value::Exception(b)) => Rc::ptr_eq(a, b),
            (Value::Iterator(a), Value::Iterator(b)) => Rc::ptr_eq(a, b),
            (Value::Module(a), Value::Module(b)) => Rc::ptr_eq(a, b),
            (Value::NativeModule(a), Value::NativeModule(b)) => Rc::ptr_eq(a, b),
            (Value::Bool(_), Value::Bool(_)) | (Value::None, _) | (_, Value::None) => self.equals(left, right),
            (Value::Bool(_), _) | (_, Value::Bool(_)) => false,
            (Value::EnumMember(a), Value::EnumMember(b)) => Rc::ptr_eq(a, b),
            (Value::EnumMember(_), _) | (_, Value::EnumMember(_)) => false,
            _ if left.number().is_some() || right.number().is_some() => scalar::identical(left, right),
            _ => left.is_same(right) || self.equals(left, right),
        }
    }

    /// `left == right` for values whose classes define no `__eq__`. Each pair of items counts as a
    /// step. The result is false if the steps are used up or the values are nested too deeply,
    /// which [`Self::check_steps`] distinguishes.
    pub(crate) fn equals(&self, left: &Value, right: &Value) -> bool {
        self.equals_to(left, right, 0)
    }

    fn equals_to(&self, left: &Value, right: &Value, depth: u32) -> bool {
        if self.out_of_steps() || self.is_too_deep(depth) {
            return false;
        }
        if depth > 0 {
            self.count_steps(1);
        }
        let all = |a: &[Value], b: &[Value]| {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.is_same(y) || self.equals_to(x, y, depth + 1))
        };
        match (left.plain(), right.plain()) {
            (Value::None, Value::None)
            | (Value::Ellipsis, Value::Ellipsis)
            | (Value::NotImplemented, Value::NotImplemented) => true,
            (Value::None, _) | (_, Value::None) => false,
            (Value::Str(a), Value::Str(b)) => a == b,
            // As in Python, an object equals itself.
            (Value::Tuple(a), Value::Tuple(b)) => Rc::ptr_eq(a, b) || all(a, b),
            (Value::List(a), Value::List(b)) => Rc::ptr_eq(a, b) || all(&a.items.borrow(), &b.items.borrow()),
            (Value::Dict(a), Value::Dict(b)) | (Value::Set(a), Value::Set(b)) => {
                if Rc::ptr_eq(a, b) {
                    return true;
                }
                let (a, b) = (a.borrow(), b.borrow());
                a.len() == b.len()
                    && a.iter()
                        .all(|(k, _, x)| b.get(k).is_some_and(|y| x.is_same(y) || self.equals_to(x, y, depth + 1)))
            }
            (Value::Instance(a), Value::Instance(b)) => {
                if Rc::ptr_eq(a, b) {
                    return true;
                }
                if let (Some(a), Some(b)) = (self.named_tuple_items(left), self.named_tuple_items(right)) {
                    return all(&a, &b);
                }
                if !Rc::ptr_eq(&a.class, &b.class) {
                    return false;
                }
                match (self.structural_fields(a), self.structural_fields(b)) {
                    (Some(x), Some(y)) => all(&x, &y),
                    _ => false,
                }
            }
            (Value::Instance(_), Value::Tuple(b)) => self.named_tuple_items(left).is_some_and(|a| all(&a, b)),
            (Value::Tuple(a), Value::Instance(_)) => self.named_tuple_items(right).is_some_and(|b| all(a, &b)),
            (Value::EnumMember(a), Value::EnumMember(b)) => Rc::ptr_eq(a, b),
            (Value::Iterator(a), Value::Iterator(b)) => Rc::ptr_eq(a, b),
            (Value::Class(a), Value::Class(b)) => Rc::ptr_eq(a, b),
            (Value::Function(a), Value::Function(b)) => Rc::ptr_eq(a, b),
            (Value::Cached(a), Value::Cached(b)) => Rc::ptr_eq(a, b),
            (Value::ExceptionClass(a), Value::ExceptionClass(b)) => a == b,
            (Value::Native(a), Value::Native(b)) => Rc::ptr_eq(a, b) || a.name == b.name,
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::Range(a), Value::Range(b)) => a == b,
            (Value::Kernel(a), Value::Kernel(b)) => Rc::ptr_eq(a, b),
            (Value::Slice(a), Value::Slice(b)) => {
                self.equals_to(&a.start, &b.start, depth + 1)
                    && self.equals_to(&a.stop, &b.stop, depth + 1)
                    && self.equals_to(&a.step, &b.step, depth + 1)
            }
            (Value::Object(_), _) | (_, Value::Object(_)) => object_equals(left, right),
            _ => self.order_of_numbers(left, right) == Some(Some(Ordering::Equal)),
        }
    }

    /// `item in container`
    pub(super) fn contains(&mut self, container: &Value, item: &Value, span: Span) -> EvalResult<bool> {
        Ok(match container {
            Value::Dict(dict) | Value::Set(dict) => {
                let key = self.hash_key(item, span)?;
                dict.borrow().get(&key).is_some()
            }
            Value::Str(text) => match item.plain() {
                Value::Str(part) => text.contains(&**part),
                other => return Err(self.bad_operands("in", other, container, span)),
            },
            Value::Range(range) => whole(item).is_some_and(|x| {
                let (low, high) = if range.step > 0 {
                    (range.start, range.stop)
                } else {
                    (range.stop.saturating_add(1), range.start.saturating_add(1))
                };
                x >= low && x < high && x.wrapping_sub(range.start) % range.step == 0
            }),
            Value::Instance(instance) if instance.class.lookup(sym::contains).is_some() => {
                let method = instance.class.lookup(sym::contains).unwrap_or(Value::None);
                let value = self.call_with(&method, container.clone(), CallArgs::of([item.clone()], span))?;
                self.truth(&value, span)?
            }
            Value::EnumMember(_) => self.member_contains(container, item, span)?,
            // Since Python 3.12, `in` also accepts the value of a member.
            Value::Class(class) if class.enum_kind().is_some() => match item {
                Value::EnumMember(member) if Rc::ptr_eq(&member.class, class) => true,
                other => class.all_members().iter().any(|m| self.equals(&m.value, other)),
            },
            Value::Host(host) => return if self.in_kernel { Err(self.host_error(host, span)) } else { Ok(false) },
            other => {
                let items = self.iter(other, span)?;
                while let Some(candidate) = self.next(&items, span)? {
                    self.count_steps(1);
                    if self.equal(&candidate, item, span)? {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }
}

/// The integer that equals a number: `2.0` is an element of `range(3)`.
fn whole(number: &Value) -> Option<i64> {
    let is_whole = |x: &f64| x.trunc() == *x && x.abs() < 2f64.powi(63);
    number.as_int().or_else(|| number.as_float().filter(is_whole).map(|x| x as i64))
}

fn ordered(op: CmpOp, order: Ordering) -> bool {
    match op {
        CmpOp::Eq | CmpOp::Is => order.is_eq(),
        CmpOp::Ne | CmpOp::IsNot => order.is_ne(),
        CmpOp::Lt => order.is_lt(),
        CmpOp::Le => order.is_le(),
        CmpOp::Gt => order.is_gt(),
        CmpOp::Ge => order.is_ge(),
        CmpOp::In | CmpOp::NotIn => false,
    }
}
