//! Equality and order as classes define them: `__eq__` and related methods, their reflected forms,
//! and the fields of dataclasses.

use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::error::EvalResult;
use super::native::CallArgs;
use super::value::*;
use crate::syntax::*;

/// How objects of a class are compared.
pub(crate) enum Equality {
    /// An object equals only itself.
    Identity,
    /// Objects of the same class are equal if the fields of this class are equal; for a record, if
    /// all attributes are.
    Fields(Rc<Class>),
    /// By an `__eq__` method.
    Method(Value),
}

impl Class {
    /// How objects of this class are compared, as decided by the first class in resolution order
    /// that defines it.
    pub(crate) fn equality(&self) -> Equality {
        for class in self.order() {
            if let ClassKind::Dataclass(DataclassKind { eq: true, .. }) = class.kind.get()
                && class.attrs.borrow().get(sym::eq).is_none()
            {
                return Equality::Fields(class.clone());
            }
            if let Some(method) = class.attrs.borrow().get(sym::eq) {
                return Equality::Method(method.clone());
            }
            if let ClassKind::NamedTuple | ClassKind::Record = class.kind.get() {
                return Equality::Fields(class.clone());
            }
        }
        Equality::Identity
    }
}

impl Value {
    /// The class, defined in the kernel's source, of which this is an object or a member.
    pub(crate) fn own_class(&self) -> Option<&Rc<Class>> {
        match self {
            Value::Instance(instance) => Some(&instance.class),
            Value::EnumMember(member) => Some(&member.class),
            _ => None,
        }
    }

    /// Whether both are the same object: for containers, objects of classes, and NaN, the only
    /// value that is the same but not equal.
    pub(crate) fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Tuple(a), Value::Tuple(b)) => Rc::ptr_eq(a, b),
            (Value::List(a), Value::List(b)) => Rc::ptr_eq(a, b),
            (Value::Dict(a), Value::Dict(b)) | (Value::Set(a), Value::Set(b)) => Rc::ptr_eq(a, b),
            (Value::Instance(a), Value::Instance(b)) => Rc::ptr_eq(a, b),
            (Value::EnumMember(a), Value::EnumMember(b)) => Rc::ptr_eq(a, b),
            (Value::Exception(a), Value::Exception(b)) => Rc::ptr_eq(a, b),
            // Numbers have no identity here: two NaNs are the same if their bits are.
            (Value::Float(a), Value::Float(b)) => a.is_nan() && a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl Interp<'_> {
    /// `left == right` inside a container: identical objects are equal, and `__eq__` is called.
    pub(crate) fn equal(&mut self, left: &Value, right: &Value, span: Span) -> EvalResult<bool> {
        let equal = self.equal_at(left, right, span, 0)?;
        self.check_steps(span)?;
        Ok(equal)
    }

    fn equal_at(&mut self, left: &Value, right: &Value, span: Span, depth: u32) -> EvalResult<bool> {
        if self.out_of_steps() || self.is_too_deep(depth) {
            return Ok(false);
        }
        if left.is_same(right) {
            return Ok(true);
        }
        match (left, right) {
            (Value::Tuple(a), Value::Tuple(b)) => self.all_equal(a, b, span, depth),
            (Value::List(a), Value::List(b)) => {
                // The comparison of items may change the lists.
                let (a, b) = (a.items.borrow().clone(), b.items.borrow().clone());
                self.all_equal(&a, &b, span, depth)
            }
            (Value::Dict(a), Value::Dict(b)) => {
                let (a, b) = (a.borrow().clone(), b.borrow().clone());
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (key, _, x) in a.iter() {
                    self.count_steps(1);
                    let Some(y) = b.get(key) else { return Ok(false) };
                    if !self.equal_at(x, y, span, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => {
                let asks = |value: &Value| {
                    value.own_class().is_some_and(|class| matches!(class.equality(), Equality::Method(_)))
                };
                if asks(left) || asks(right) {
                    let equal = self.compare(CmpOp::Eq, left, right, span)?;
                    return self.truth(&equal, span);
                }
                if let (Value::Instance(a), Value::Instance(b)) = (left, right)
                    && Rc::ptr_eq(&a.class, &b.class)
                {
                    return match (self.structural_fields(a), self.structural_fields(b)) {
                        (Some(a), Some(b)) => self.all_equal(&a, &b, span, depth),
                        _ => Ok(false),
                    };
                }
                Ok(self.equals(left, right))
            }
        }
    }

    fn all_equal(&mut self, left: &[Value], right: &[Value], span: Span, depth: u32) -> EvalResult<bool> {
        if left.len() != right.len() {
            return Ok(false);
        }
        for (x, y) in left.iter().zip(right) {
            self.count_steps(1);
            if !self.equal_at(x, y, span, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The result of `left op right` by methods of the operands' classes; `None` if these do not
    /// define it.
    pub(super) fn compare_by_methods(
        &mut self,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let Some((plain, reflected, klr)) = op.methods() else { return Ok(None) };
        let (own, other) = (left.own_class().cloned(), right.own_class().cloned());
        if own.is_none() && other.is_none() {
            return Ok(None);
        }
        let derived = match (&own, &other) {
            (Some(own), Some(other)) => !Rc::ptr_eq(own, other) && other.is_subclass(own),
            _ => false,
        };
        let mut attempts = vec![(&own, plain, left, right), (&other, reflected, right, left)];
        if derived {
            attempts.swap(0, 1);
        }
        attempts.push((&other, klr, right, left));
        let mut asked = false;
        for (class, name, receiver, argument) in attempts {
            let Some(class) = class else { continue };
            let args = CallArgs::of([argument.clone()], span);
            let (method, inverted) = match (name, class.equality()) {
                (sym::eq, Equality::Method(method)) => (method, false),
                (sym::eq, _) => continue,
                (sym::ne, equality) => match (class.lookup(sym::ne), equality) {
                    (Some(method), _) => (method, false),
                    // `!=` is the negation of a class's own `==`.
                    (None, Equality::Method(method)) => (method, true),
                    (None, _) => continue,
                },
                (name, _) => match class.lookup(name) {
                    Some(method) => (method, false),
                    None => continue,
                },
            };
            asked = true;
            let answer = self.call_with(&method, receiver.clone(), args)?;
            if matches!(answer, Value::NotImplemented) {
                continue;
            }
            return Ok(Some(if inverted { Value::Bool(!self.truth(&answer, span)?) } else { answer }));
        }
        // If every method returned NotImplemented, an object equals only itself.
        Ok(match op {
            CmpOp::Eq | CmpOp::Ne if asked => Some(Value::Bool(left.is_same(right) == (op == CmpOp::Eq))),
            _ => None,
        })
    }

    /// The values by which an object of a class is compared, if it is compared by value.
    pub(crate) fn structural_fields(&self, instance: &Instance) -> Option<Vec<Value>> {
        let Equality::Fields(class) = instance.class.equality() else { return None };
        let attrs = instance.attrs.borrow();
        if class.kind.get() == ClassKind::Record {
            return Some(attrs.iter().map(|(_, value)| value.clone()).collect());
        }
        let fields = class.fields.borrow();
        let compared = fields.iter().filter(|field| field.compare);
        Some(compared.map(|field| attrs.get(field.name).cloned().unwrap_or(Value::None)).collect())
    }

    /// The values by which an object is hashed, if it is compared by value.
    pub(super) fn hashed_fields(&self, instance: &Instance) -> Option<Vec<Value>> {
        match instance.class.equality() {
            Equality::Fields(class) if class.kind.get() != ClassKind::Record => {
                let attrs = instance.attrs.borrow();
                let fields = class.fields.borrow();
                let hashed = fields.iter().filter(|field| field.hash.unwrap_or(field.compare));
                Some(hashed.map(|field| attrs.get(field.name).cloned().unwrap_or(Value::None)).collect())
            }
            _ => self.structural_fields(instance),
        }
    }

    /// The values by which objects of a dataclass with `order=True` are ordered.
    pub(super) fn ordered_fields(&self, left: &Instance, right: &Instance) -> Option<(Vec<Value>, Vec<Value>)> {
        let has_order =
            |class: &&Rc<Class>| matches!(class.kind.get(), ClassKind::Dataclass(DataclassKind { order: true, .. }));
        let class = left.class.order().find(has_order).filter(|_| Rc::ptr_eq(&left.class, &right.class))?;
        let fields = class.fields.borrow();
        let of = |instance: &Instance| {
            let attrs = instance.attrs.borrow();
            let compared = fields.iter().filter(|field| field.compare);
            compared.map(|field| attrs.get(field.name).cloned().unwrap_or(Value::None)).collect()
        };
        Some((of(left), of(right)))
    }
}
