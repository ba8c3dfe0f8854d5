//! Operators, truth and iteration.

use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::arithmetic;
use super::error::{EvalResult, Raise};
use super::native::CallArgs;
use super::set::Operand;
use super::value::*;
use crate::syntax::*;

impl Interp<'_> {
    /// `left op right`
    #[expect(clippy::too_many_lines, reason = "one arm for each pair of types")]
    pub(crate) fn binary(&mut self, op: BinOp, left: &Value, right: &Value, span: Span) -> EvalResult<Value> {
        match (left, right) {
            (Value::Int(a), Value::Int(b)) => self.int_op(op, *a, *b, span),
            (Value::Int(_) | Value::Float(_) | Value::Bool(_), Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
                match (left.as_int(), right.as_int(), op) {
                    (Some(a), Some(b), BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor)
                        if matches!((left, right), (Value::Bool(_), Value::Bool(_))) =>
                    {
                        Ok(Value::Bool(
                            match op {
                                BinOp::BitAnd => a & b,
                                BinOp::BitOr => a | b,
                                _ => a ^ b,
                            } != 0,
                        ))
                    }
                    (Some(a), Some(b), _) => self.int_op(op, a, b, span),
                    _ => self.float_op(op, left.as_float().unwrap_or(0.0), right.as_float().unwrap_or(0.0), span),
                }
            }
            (Value::Poison, _) | (_, Value::Poison) => Ok(Value::Poison),
            (l @ Value::Object(_), _) | (l, Value::Object(_)) => {
                if let Some(value) = self.operator_method(op, left, right, span)? {
                    return Ok(value);
                }
                match (l, op) {
                    (Value::Str(text), BinOp::Mod) => Ok(Value::str(self.percent(text, right, span)?)),
                    _ => self.object_binary(op, left, right, span).or_else(|raise| self.recover(raise)),
                }
            }
            (Value::Str(a), Value::Str(b)) if op == BinOp::Add => {
                self.charge_text(a.len() + b.len(), span)?;
                Ok(Value::str(format!("{a}{b}")))
            }
            (Value::Str(a), _) if op == BinOp::Mod => Ok(Value::str(self.percent(a, right, span)?)),
            (Value::List(a), Value::List(b)) if op == BinOp::Add => {
                self.charge_items(a.items.borrow().len() + b.items.borrow().len(), span)?;
                let (a, b) = (a.items.borrow(), b.items.borrow());
                let mut items = Vec::with_capacity(a.len() + b.len());
                items.extend(a.iter().chain(b.iter()).cloned());
                Ok(Value::list(items))
            }
            (Value::Tuple(a), Value::Tuple(b)) if op == BinOp::Add => {
                self.charge_items(2 * (a.len() + b.len()), span)?;
                Ok(Value::tuple(a.iter().chain(b.iter()).cloned().collect::<Vec<_>>()))
            }
            (Value::List(_) | Value::Tuple(_) | Value::Str(_), n)
            | (n, Value::List(_) | Value::Tuple(_) | Value::Str(_))
                if op == BinOp::Mul && n.as_int().is_some() =>
            {
                let sequence = if left.as_int().is_some() { right } else { left };
                self.repeat(sequence, n.as_int().unwrap_or(0), span)
            }
            (Value::Dict(a), Value::Dict(b)) if op == BinOp::BitOr => {
                self.charge_items(4 * (a.borrow().len() + b.borrow().len()), span)?;
                let mut dict = a.borrow().clone();
                for (key, original, value) in b.borrow().iter() {
                    dict.set(key.clone(), original.clone(), value.clone());
                }
                Ok(Value::dict(dict))
            }
            (Value::Set(a), Value::Set(b))
                if matches!(op, BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Sub) =>
            {
                self.charge_items(4 * (a.borrow().len() + b.borrow().len()), span)?;
                let is_same = Rc::ptr_eq(a, b);
                let (a, b) = (a.borrow(), b.borrow());
                let made = match op {
                    BinOp::BitAnd | BinOp::BitOr if is_same => a.copy_set(a.is_frozen),
                    BinOp::BitAnd => a.intersection(&b, Operand::Set),
                    BinOp::Sub => a.difference(&b, Operand::Set),
                    BinOp::BitXor => a.symmetric_difference(&b, Operand::Set),
                    _ => {
                        let mut union = a.copy_set(a.is_frozen);
                        union.update(&b, Operand::Set);
                        union
                    }
                };
                Ok(Value::Set(Rc::new(std::cell::RefCell::new(made))))
            }
            // `int | None` in a type alias or in `isinstance`.
            (Value::Type(_) | Value::Class(_) | Value::Tuple(_), Value::Type(_) | Value::Class(_) | Value::None)
                if op == BinOp::BitOr =>
            {
                let mut items = left.sequence().unwrap_or_else(|| vec![left.clone()]);
                items.push(right.clone());
                Ok(Value::tuple(items))
            }
            (Value::Host(host), _) | (_, Value::Host(host)) => self.host_value(host, span),
            _ => {
                if let Some(value) = self.operator_method(op, left, right, span)? {
                    return Ok(value);
                }
                if let Some(value) = self.flag_operation(op, left, right, span)? {
                    return Ok(value);
                }
                let (a, b) = (left.plain(), right.plain());
                if !std::ptr::eq(a, left) || !std::ptr::eq(b, right) {
                    return self.binary(op, a, b, span);
                }
                // Without its own methods, a NamedTuple is added and repeated as a tuple.
                match (self.named_tuple_items(left), self.named_tuple_items(right)) {
                    (None, None) => Err(self.bad_operands(op.text(), left, right, span)),
                    (a, b) => {
                        let a = a.map_or_else(|| left.clone(), Value::tuple);
                        let b = b.map_or_else(|| right.clone(), Value::tuple);
                        self.binary(op, &a, &b, span)
                    }
                }
            }
        }
    }

    pub(crate) fn bad_operands(&self, op: &str, left: &Value, right: &Value, span: Span) -> Box<Raise> {
        let (l, r) = (left.type_name(), right.type_name());
        Raise::at(
            "type-error",
            format!("`{op}` does not work between {} and {}", left.a_type(), right.a_type()),
            span,
            format!("{l} {op} {r}"),
        )
    }

    fn operator_method(&mut self, op: BinOp, left: &Value, right: &Value, span: Span) -> EvalResult<Option<Value>> {
        let (plain, reflected, _) = op.methods();
        let (own, other) = (left.own_class().cloned(), right.own_class().cloned());
        let mut attempts = [(&own, plain, left, right), (&other, reflected, right, left)];
        // If the right operand's class derives from the left one's and has its own reflected
        // method, that method is tried first.
        if let (Some(own), Some(other)) = (&own, &other)
            && !Rc::ptr_eq(own, other)
            && other.is_subclass(own)
            && other.attrs.borrow().get(reflected).is_some()
        {
            attempts.swap(0, 1);
        }
        for (class, name, receiver, argument) in attempts {
            let Some(method) = class.as_ref().and_then(|class| class.lookup(name)) else { continue };
            let answer = self.call_with(&method, receiver.clone(), CallArgs::of([argument.clone()], span))?;
            if !matches!(answer, Value::NotImplemented) {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    fn repeat(&mut self, sequence: &Value, n: i64, span: Span) -> EvalResult<Value> {
        let n = usize::try_from(n).unwrap_or(0);
        let len = match sequence {
            Value::List(list) => list.items.borrow().len(),
            Value::Tuple(items) => items.len(),
            Value::Str(text) => text.len(),
            _ => 0,
        };
        match sequence {
            Value::Str(_) => self.charge_text(len.saturating_mul(n), span)?,
            _ => self.charge_items(len.saturating_mul(n), span)?,
        }
        Ok(match sequence {
            Value::Str(text) => Value::str(text.repeat(n)),
            Value::Tuple(items) => Value::tuple(items.iter().cloned().cycle().take(len * n).collect::<Vec<_>>()),
            other => {
                let items = other.sequence().unwrap_or_default();
                Value::list(items.iter().cloned().cycle().take(len * n).collect())
            }
        })
    }

    fn int_op(&mut self, op: BinOp, a: i64, b: i64, span: Span) -> EvalResult<Value> {
        let result = match op {
            BinOp::Add => a.checked_add(b),
            BinOp::Sub => a.checked_sub(b),
            BinOp::Mul => a.checked_mul(b),
            BinOp::Div => {
                if b == 0 {
                    return Err(division_by_zero(span));
                }
                return Ok(Value::Float(arithmetic::true_divide(a, b)));
            }
            BinOp::FloorDiv if b == 0 => return Err(division_by_zero(span)),
            BinOp::Mod if b == 0 => return Err(division_by_zero(span)),
            // Python's floor division rounds towards minus infinity, unlike Rust's division.
            BinOp::FloorDiv => a.checked_div_euclid(b).map(|q| if b < 0 && a.rem_euclid(b) != 0 { q - 1 } else { q }),
            BinOp::Mod => a.checked_rem_euclid(b).map(|r| if b < 0 && r != 0 { r + b } else { r }),
            BinOp::Pow if b < 0 => {
                if a == 0 {
                    return Err(division_by_zero(span));
                }
                return Ok(Value::Float((a as f64).powf(b as f64)));
            }
            BinOp::Pow => match a {
                0 | 1 => Some(if b == 0 { 1 } else { a }),
                -1 => Some(if b % 2 == 0 { 1 } else { -1 }),
                _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            },
            BinOp::LShift | BinOp::RShift if b < 0 => {
                return Err(Raise::at("value-error", "negative shift count", span, format!("shifted by {b}")));
            }
            BinOp::LShift => {
                if a == 0 {
                    Some(0)
                } else {
                    u32::try_from(b).ok().filter(|b| *b < 63).and_then(|b| a.checked_mul(1i64 << b))
                }
            }
            BinOp::RShift => Some(a >> b.min(63)),
            BinOp::BitAnd => Some(a & b),
            BinOp::BitOr => Some(a | b),
            BinOp::BitXor => Some(a ^ b),
            BinOp::MatMul => return Err(self.bad_operands("@", &Value::Int(a), &Value::Int(b), span)),
        };
        match result {
            Some(value) => Ok(Value::Int(value)),
            // In module-level code, an integer may exceed 64 bits unless a kernel uses it.
            None if !self.in_kernel => Ok(Value::Host(Rc::new(Host {
                path: format!("{a} {} {b}", op.text()),
                reason: Some("integers in a kernel have 64 bits, which this one exceeds".to_owned()),
                span: Some(span),
            }))),
            None => Err(Raise::at(
                "integer-overflow",
                format!("{a} {} {b} does not fit in 64 bits", op.text()),
                span,
                "overflows",
            )
            .help("NKI integers are machine integers; use a float if the exact value does not matter")),
        }
    }

    fn float_op(&mut self, op: BinOp, a: f64, b: f64, span: Span) -> EvalResult<Value> {
        if b == 0.0 && matches!(op, BinOp::Div | BinOp::FloorDiv | BinOp::Mod) {
            return Err(division_by_zero(span));
        }
        Ok(Value::Float(match op {
            BinOp::Add => a + b,
            BinOp::Sub => a - b,
            BinOp::Mul => a * b,
            BinOp::Div => a / b,
            BinOp::FloorDiv => arithmetic::divmod_f64(a, b).0,
            BinOp::Mod => arithmetic::divmod_f64(a, b).1,
            BinOp::Pow => float_power(a, b, span)?,
            _ => return Err(self.bad_operands(op.text(), &Value::Float(a), &Value::Float(b), span)),
        }))
    }

    /// `op value`
    pub(crate) fn unary(&mut self, op: UnaryOp, value: &Value, span: Span) -> EvalResult<Value> {
        if matches!(value, Value::Poison) {
            return Ok(Value::Poison);
        }
        if op == UnaryOp::Not {
            return Ok(Value::Bool(!self.truth(value, span)?));
        }
        if let Value::Object(object) = value {
            return object.unary(self, op, value, span).or_else(|raise| self.recover(raise));
        }
        if let Value::Instance(instance) = value {
            let name = match op {
                UnaryOp::Neg => sym::neg,
                UnaryOp::Pos => sym::pos,
                _ => sym::invert,
            };
            if let Some(method) = instance.class.lookup(name) {
                return self.call_with(&method, value.clone(), CallArgs::none(span));
            }
        }
        if let Value::Host(host) = value {
            return if self.in_kernel { Err(self.host_error(host, span)) } else { Ok(value.clone()) };
        }
        let text = op.text();
        if let (UnaryOp::Invert, Value::EnumMember(member)) = (op, value)
            && let Some(inverse) = self.invert_flag(member, span)?
        {
            return Ok(inverse);
        }
        Ok(match (op, value.plain()) {
            (UnaryOp::Neg, Value::Float(x)) => Value::Float(-x),
            (UnaryOp::Pos, Value::Float(x)) => Value::Float(*x),
            (op, number) if number.as_int().is_some() => {
                let x = number.as_int().unwrap_or(0);
                match op {
                    UnaryOp::Neg => return self.int_op(BinOp::Sub, 0, x, span),
                    UnaryOp::Pos => Value::Int(x),
                    _ => Value::Int(!x),
                }
            }
            _ => {
                let kind = value.type_name();
                return Err(Raise::at(
                    "type-error",
                    format!("`{text}` does not work on {}", value.a_type()),
                    span,
                    format!("{text} {kind}"),
                ));
            }
        })
    }

    /// The truth value of a value.
    pub(crate) fn truth(&mut self, value: &Value, span: Span) -> EvalResult<bool> {
        Ok(match value {
            Value::Bool(value) => *value,
            Value::None | Value::Unset => false,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::Tuple(items) => !items.is_empty(),
            Value::List(list) => !list.items.borrow().is_empty(),
            Value::Dict(dict) => match self.dialect.truth(self, value, span)? {
                Some(truth) => truth,
                None => dict.borrow().len() > 0,
            },
            Value::Set(set) => set.borrow().len() > 0,
            Value::Range(range) => range.len() > 0,
            Value::Instance(instance) => {
                if let Some(method) = instance.class.lookup(sym::bool_) {
                    let value = self.call_with(&method, value.clone(), CallArgs::none(span))?;
                    return self.checked_truth(&value, span);
                }
                if let Some(method) = instance.class.lookup(sym::len) {
                    let value = self.call_with(&method, value.clone(), CallArgs::none(span))?;
                    let value = self.checked_length(value, span)?;
                    return self.truth(&value, span);
                }
                true
            }
            Value::EnumMember(member) => {
                if let Some(method) = member.class.lookup(sym::bool_) {
                    let value = self.call_with(&method, value.clone(), CallArgs::none(span))?;
                    return self.checked_truth(&value, span);
                }
                let counts = member.kind().flag || member.kind().mixin.is_some();
                !counts || self.truth(&member.value, span)?
            }
            Value::Host(host) if self.in_kernel => return Err(self.host_error(host, span)),
            Value::Host(host) => {
                if !host.path.ends_with("TYPE_CHECKING") {
                    self.guess_false(span);
                }
                false
            }
            Value::Poison => return Err(Raise::reported()),
            Value::Object(object) => return object.truth(self, value, span),
            _ => true,
        })
    }

    /// The items of any iterable.
    pub(crate) fn iterate(&mut self, value: &Value, span: Span) -> EvalResult<Vec<Value>> {
        if let Value::Iterator(iterator) = value {
            return self.drain(iterator, span);
        }
        let items = match value {
            Value::Tuple(items) => items.len(),
            Value::List(list) => list.items.borrow().len(),
            Value::Dict(dict) | Value::Set(dict) => dict.borrow().len(),
            Value::Range(range) => usize::try_from(range.len()).unwrap_or(usize::MAX),
            Value::Str(text) => text.len().saturating_mul(2),
            _ => 0,
        };
        self.charge_items(items, span)?;
        Ok(match value {
            Value::Tuple(items) => items.to_vec(),
            Value::List(list) => list.items.borrow().clone(),
            Value::Dict(dict) | Value::Set(dict) => dict.borrow().keys(),
            Value::Range(range) => {
                let n = range.len();
                (0..n).map(|i| Value::Int(range.at(i))).collect()
            }
            Value::Str(text) => text.chars().map(|c| Value::str(c.to_string())).collect(),
            Value::EnumMember(member) => match self.flags_in(member) {
                Some(flags) => flags,
                None if member.kind().mixin.is_some() => return self.iterate(&member.value, span),
                None => return Err(self.not_iterable(value, span)),
            },
            Value::Class(class) if class.enum_kind().is_some() => {
                class.members.borrow().iter().cloned().map(Value::EnumMember).collect()
            }
            Value::Instance(instance) => {
                if let Some(items) = self.named_tuple_items(value) {
                    return Ok(items);
                }
                if instance.class.lookup(sym::iter).is_some() {
                    let items = self.iter(value, span)?;
                    return self.drain(&items, span);
                }
                if let (Some(get), Some(len)) = (instance.class.lookup(sym::getitem), instance.class.lookup(sym::len)) {
                    let n = self.call_with(&len, value.clone(), CallArgs::none(span))?;
                    let mut out = Vec::new();
                    for i in 0..n.as_int().unwrap_or(0) {
                        self.step(span)?;
                        out.push(self.call_with(&get, value.clone(), CallArgs::of([Value::Int(i)], span))?);
                    }
                    return Ok(out);
                }
                if instance.class.lookup(sym::getitem).is_some() {
                    let items = self.iter(value, span)?;
                    return self.drain(&items, span);
                }
                return Err(self.not_iterable(value, span));
            }
            // An error even outside kernels: an empty list would be a value that the kernel could
            // use.
            Value::Host(host) => return Err(self.host_error(host, span)),
            Value::Poison => return Err(Raise::reported()),
            Value::Object(object) => return object.iterate(span),
            other => return Err(self.not_iterable(other, span)),
        })
    }

    pub(super) fn not_iterable(&self, value: &Value, span: Span) -> Box<Raise> {
        let kind = value.a_type();
        Raise::at("type-error", format!("cannot iterate over {kind}"), span, kind)
    }
}

fn float_power(a: f64, b: f64, span: Span) -> EvalResult<f64> {
    if a == 0.0 && b < 0.0 {
        return Err(division_by_zero(span));
    }
    if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 {
        return Err(Raise::at(
            "value-error",
            format!("{a:?} ** {b:?} is a complex number, which a kernel cannot use"),
            span,
            "a negative number to a fractional power",
        )
        .help("take the power of abs(...), and apply the sign to the result"));
    }
    let power = a.powf(b);
    if power.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(Raise::at(
            "float-overflow",
            format!("{a:?} ** {b:?} is too large for a float"),
            span,
            "Python raises OverflowError here",
        )
        .help("write float('inf') if infinity is meant"));
    }
    Ok(power)
}

fn division_by_zero(span: Span) -> Box<Raise> {
    Raise::at("division-by-zero", "division by zero", span, "the divisor is 0")
}
