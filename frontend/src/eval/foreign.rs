//! The evaluator's interfaces to values that are not Python's.
//!
//! [`Object`] is a value that defines its own operations. [`super::language`] has the interfaces to
//! the language of a file and to the output of evaluation. Tensors, registers and instructions
//! implement these interfaces outside the evaluator, which refers to none of them.

use std::any::Any;
use std::fmt;
use std::rc::Rc;

use nki_diag::{Diagnostic, Span};

use super::Interp;
use super::error::{EvalResult, Raise, closest};
use super::language::Hint;
use super::native::CallArgs;
use super::value::{BuiltinType, Key, Slice, Value};
use crate::syntax::{BinOp, CmpOp, Symbol, UnaryOp};

/// A block of statements that the device runs; it is evaluated once to emit its body.
pub(crate) type Block<'b> = &'b mut dyn FnMut(&mut Interp<'_>) -> EvalResult<()>;

/// A value of a kind that is unknown to the evaluator. Every operation is an error unless the kind
/// defines it.
///
/// `this` is the value that holds the object.
pub(crate) trait Object: Any + fmt::Debug {
    /// The name of its Python type, for messages and `isinstance`.
    fn type_name(&self) -> &'static str;

    /// `repr(this)`
    fn repr(&self) -> String {
        format!("<{}>", self.type_name())
    }

    /// `str(this)`, if it differs from `repr(this)`.
    fn text(&self) -> Option<String> {
        None
    }

    /// `type(this)`; without it, the type has only a name.
    fn class(&self) -> Option<Value> {
        None
    }

    /// The Python number that it represents, where its own type does not matter.
    fn number(&self) -> Option<&Value> {
        None
    }

    /// Whether its operators and indexing accept NumPy scalars; other objects receive Python
    /// numbers.
    fn knows_scalars(&self) -> bool {
        false
    }

    /// Its key in a dict or set; `None` if it is not hashable.
    fn hash_key(&self) -> Option<Key> {
        None
    }

    /// Whether it represents data on the device, whose values are unknown during specialisation.
    fn is_device_data(&self) -> bool {
        false
    }

    /// For a number on the device: why its value is unknown during specialisation.
    fn unknown_number(&self) -> Option<&'static str> {
        None
    }

    /// Whether the dialect of the file defines its operators.
    fn follows_dialect(&self) -> bool {
        false
    }

    /// Whether it stands for a missing name, whose use is a separate error.
    fn is_absent(&self) -> bool {
        false
    }

    /// Whether a statement that only creates it has no effect.
    fn is_inert(&self) -> bool {
        self.is_device_data()
    }

    /// The names of its attributes, excluding methods.
    fn attributes(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The names of its methods.
    fn methods(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it has a method of this name.
    fn has_method(&self, _interp: &Interp<'_>, name: &str) -> bool {
        self.methods().contains(&name)
    }

    /// `this.name`, where `name` is not a method.
    fn attribute(&self, _interp: &Interp<'_>, _name: &str) -> Option<Value> {
        None
    }

    /// The error of a missing attribute.
    fn no_attribute(&self, _interp: &Interp<'_>, name: &str, span: Span) -> Box<Raise> {
        unknown_attribute(self, name, span)
    }

    /// `this.name(...)` for one of [`Self::methods`].
    fn call_method(&self, interp: &mut Interp<'_>, _this: &Value, name: &str, args: CallArgs) -> EvalResult<Value> {
        Err(self.no_attribute(interp, name, args.span))
    }

    /// `this.name = value`
    fn set_attribute(&self, name: &str, span: Span) -> EvalResult<()> {
        let message = format!("`{name}` of {} cannot be assigned", article(self.type_name()));
        Err(Raise::at("tensor-assignment", message, span, "here")
            .help("attributes of tensors and enums are fixed; view methods such as reshape make new tensors"))
    }

    /// Whether `callable(this)` holds.
    fn is_callable(&self) -> bool {
        false
    }

    /// `this(...)`
    fn call(&self, _interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let message = format!("{} cannot be called", article(self.type_name()));
        Err(Raise::at("not-callable", message, args.span, "in this call"))
    }

    /// `this[index]`
    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, _index: &Value, span: Span) -> EvalResult<Value> {
        let message = format!("{} cannot be indexed", article(self.type_name()));
        Err(Raise::at("not-indexable", message, span, "here"))
    }

    /// `this[index] = value`
    fn set_item(
        &self,
        _interp: &mut Interp<'_>,
        _this: &Value,
        _index: &Value,
        _value: &Value,
        span: Span,
    ) -> EvalResult<()> {
        let message = format!("items of {} cannot be assigned", article(self.type_name()));
        Err(Raise::at("not-indexable", message, span, "here"))
    }

    /// `left op right`, where one of the operands is this; `None` defers to the other operand.
    fn binary(
        &self,
        interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        if self.follows_dialect() { interp.dialect.binary(interp, op, left, right, span) } else { Ok(None) }
    }

    /// `this op= value` in place: the new value of the target; `None` computes a new value.
    fn in_place(
        &self,
        interp: &mut Interp<'_>,
        op: BinOp,
        this: &Value,
        value: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        if self.follows_dialect() { interp.dialect.in_place(interp, op, this, value, span) } else { Ok(None) }
    }

    /// The destination of `name = this`, if the assignment does more than bind the name.
    fn replacement(&self) -> Option<&dyn Replacement> {
        None
    }

    /// `op this`; `not` calls [`Self::truth`].
    fn unary(&self, interp: &mut Interp<'_>, op: UnaryOp, this: &Value, span: Span) -> EvalResult<Value> {
        if self.follows_dialect() {
            return interp.dialect.unary(interp, op, this, span);
        }
        Err(unsupported(op.text(), this, &Value::None, span))
    }

    /// `left op right`, where one of the operands is this; `None` defers to the other operand, and
    /// then to [`Self::equals`]. Not called for `is` and `in`.
    fn compare(
        &self,
        interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        if self.follows_dialect() { interp.dialect.compare(interp, op, left, right, span) } else { Ok(None) }
    }

    /// Whether it equals a different value, for `==` and in containers.
    fn equals(&self, _other: &Value) -> bool {
        false
    }

    /// Its truth value.
    fn truth(&self, _interp: &mut Interp<'_>, _this: &Value, _span: Span) -> EvalResult<bool> {
        Ok(true)
    }

    /// Whether `this and other` means `this & other`, because the values are unknown during
    /// specialisation.
    fn joins_undecided(&self) -> bool {
        false
    }

    /// `len(this)`
    fn len(&self, span: Span) -> EvalResult<i64> {
        Err(Raise::at("type-error", format!("{} has no len()", article(self.type_name())), span, "here"))
    }

    /// Its items, for a loop that is unrolled.
    fn iterate(&self, span: Span) -> EvalResult<Vec<Value>> {
        let message = format!("{} cannot be iterated over", article(self.type_name()));
        Err(Raise::at("not-iterable", message, span, "here"))
    }

    /// Whether it is the base class of records: their `__init__` is generated from their fields,
    /// and omitted fields are None.
    fn is_record_base(&self) -> bool {
        false
    }

    /// `isinstance(value, this)`
    fn has_instance(&self, _value: &Value) -> bool {
        false
    }

    /// `issubclass(class, this)`
    fn has_subclass(&self, _class: &Value) -> bool {
        false
    }

    /// Enters `with this:`. Returns the value that `as` binds.
    fn enter(&self, interp: &mut Interp<'_>, span: Span) -> EvalResult<Value> {
        let message = format!("`with` on {}", article(self.type_name()));
        Err(Raise::at("unsupported-with", message, span, "here").help(interp.dialect.hint(Hint::Context)))
    }

    /// The variables of enclosing functions that this function uses, with their values if these are
    /// numbers.
    fn captured_numbers(&self) -> Vec<(String, Option<f64>)> {
        Vec::new()
    }

    /// The items of objects outside of this function that it carries from one call to the next, as text, with their present values.
    fn carried_items(&self, _interp: &Interp<'_>) -> Vec<(String, Value)> {
        Vec::new()
    }

    /// Leaves `with this:`.
    fn exit(&self, _interp: &mut Interp<'_>) {}

    /// The condition that the device evaluates, if `if this:` and `while this:` run on the device.
    fn condition(&self) -> Option<&dyn DeviceCondition> {
        None
    }

    /// The loop that the device runs, if `for i in this:` runs on the device.
    fn range(&self) -> Option<&dyn DeviceRange> {
        None
    }
}

/// The type of objects that have no class: it equals itself and has a name.
#[derive(Debug)]
pub(super) struct NamedType(pub(super) &'static str);

impl Object for NamedType {
    fn type_name(&self) -> &'static str {
        "type"
    }

    fn repr(&self) -> String {
        format!("<class '{}'>", self.0)
    }

    fn class(&self) -> Option<Value> {
        Some(Value::Type(BuiltinType::Type))
    }

    fn hash_key(&self) -> Option<Key> {
        Some(Key::Name(self.0.to_owned()))
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        matches!(name, "__name__" | "__qualname__").then(|| Value::str(self.0))
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<NamedType>().is_some_and(|other| other.0 == self.0)
    }

    fn has_instance(&self, value: &Value) -> bool {
        matches!(value, Value::Object(object) if object.class().is_none() && object.type_name() == self.0)
    }
}

/// A value whose assignment to a variable modifies the variable's current value.
pub(crate) trait Replacement {
    /// `name = this` where the name has the value `old` ([`Value::Unset`] if none): the new value
    /// of the name.
    ///
    /// # Errors
    /// If the value does not fit the current one.
    fn replace(&self, interp: &mut Interp<'_>, old: &Value, span: Span) -> EvalResult<Value>;
}

/// Follows an evaluation with a run of the same kernel, and therefore knows the trip counts of
/// dynamic loops.
pub(crate) trait Follower {
    /// Begins a dynamic loop, whose header is at `header` in the core's instruction stream.
    fn begin_loop(&self, interp: &mut Interp<'_>, header: u64) -> EvalResult<()>;

    /// Called after the body of that loop has been evaluated. Returns whether there is another
    /// iteration, for which the body is evaluated again.
    fn next_iteration(&self, interp: &mut Interp<'_>, header: u64) -> EvalResult<bool>;
}

/// The effect of a function, which a loop that calls it must know before its iterations can be
/// copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acts {
    /// Emits an instruction with these operands.
    Emits,
    /// Creates and returns a tensor.
    Makes,
    /// Returns a slice with its arguments as bounds.
    Slices,
    /// Returns one or more numbers computed from its arguments.
    Computes,
}

/// The iterations of a loop that is being unrolled. Iterations that are not evaluated are copied
/// from the last one that was.
pub(crate) trait Iterations {
    /// Called after an iteration has been evaluated. `None` if it cannot be compared with others.
    fn ended(&mut self, interp: &mut Interp<'_>) -> Option<()>;

    /// Compares the last two iterations: the second must have emitted the same as the first, except
    /// for its tensors and the offsets of views. `value` is the loop variable in the second.
    fn are_alike(&mut self, interp: &mut Interp<'_>, value: i64) -> Option<()>;

    /// Runs a closure, and discards what it emits.
    fn rehearse(&self, interp: &mut Interp<'_>, run: &mut dyn FnMut(&mut Interp<'_>));

    /// Whether the code emitted since the last iteration equals a copy for the iteration `turns`
    /// later, in which the loop variable is `value`.
    fn foretell(&self, interp: &mut Interp<'_>, turns: i64, value: i64) -> Option<()>;

    /// Emits the iteration `turns` after the last one, in which the loop variable is `value`.
    /// `None`, with nothing emitted, if the copy would break a rule.
    fn copy(&self, interp: &mut Interp<'_>, turns: i64, value: i64) -> Option<()>;
}

/// A condition that the device evaluates.
pub(crate) trait DeviceCondition {
    /// `if this:`. Both blocks are evaluated once.
    fn branch(&self, interp: &mut Interp<'_>, span: Span, then: Block<'_>, otherwise: Block<'_>) -> EvalResult<()>;

    /// `while this:`. The body is evaluated once.
    fn repeat(&self, interp: &mut Interp<'_>, span: Span, body: Block<'_>) -> EvalResult<()>;
}

/// A range over which the device loops.
pub(crate) trait DeviceRange {
    /// Begins the loop; returns its variable. Everything emitted until [`Self::end`] is the body.
    fn begin(&self, interp: &mut Interp<'_>, span: Span) -> EvalResult<Value>;

    /// Called after the body of the innermost loop has been evaluated. Returns whether the body is
    /// evaluated again, as a [`Follower`] decides.
    fn again(&self, interp: &mut Interp<'_>) -> EvalResult<bool>;

    /// Ends the innermost loop, which has this variable. A body that failed (`complete` is false)
    /// leaves nothing.
    fn end(&self, interp: &mut Interp<'_>, variable: &Value, span: Span, complete: bool);

    /// `for target in this:`. `body` is called once with the loop variable; it binds the target and evaluates the block.
    fn for_each(
        &self,
        interp: &mut Interp<'_>,
        span: Span,
        body: &mut dyn FnMut(&mut Interp<'_>, Value) -> EvalResult<()>,
    ) -> EvalResult<()> {
        let variable = self.begin(interp, span)?;
        let result = body(interp, variable.clone());
        self.end(interp, &variable, span, result.is_ok());
        result
    }
}

/// The error of an operator that neither operand defines.
pub(crate) fn unsupported(op: &str, left: &Value, right: &Value, span: Span) -> Box<Raise> {
    let message = format!("`{op}` of {} and {}", left.type_name(), right.type_name());
    Raise::at("unsupported-operator", message, span, "here")
}

/// The error of an attribute that an object lacks, with the most similar one that exists.
pub(crate) fn unknown_attribute<T: Object + ?Sized>(object: &T, name: &str, span: Span) -> Box<Raise> {
    unknown_among(object, object.methods().iter().copied(), name, span)
}

/// [`unknown_attribute`] of an object with these methods.
pub(crate) fn unknown_among<T: Object + ?Sized>(
    object: &T,
    methods: impl IntoIterator<Item = &'static str>,
    name: &str,
    span: Span,
) -> Box<Raise> {
    let message = format!("{} has no attribute `{name}`", article(object.type_name()));
    let mut diagnostic = Diagnostic::error("unknown-attribute", message).at(span, "here");
    let mut names = object.attributes();
    names.extend(methods);
    if let Some(near) = closest(name, names.iter().copied()) {
        diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
    } else if !names.is_empty() {
        diagnostic = diagnostic.help(format!("it has: {}", names.join(", ")));
    }
    Raise::new(diagnostic)
}

/// A type name with its indefinite article: "an int", "a tensor".
pub(crate) fn article(name: &str) -> String {
    match name.chars().next() {
        Some('a' | 'e' | 'i' | 'o' | 'A' | 'E' | 'I' | 'O') => format!("an {name}"),
        // "an unbound", but "a uint8"
        Some('u') if name.starts_with("un") => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

impl Value {
    /// Wraps an object as a value.
    pub(crate) fn object(object: impl Object) -> Self {
        Self::Object(Rc::new(object))
    }

    /// The object of type `T` in this value.
    pub(crate) fn downcast<T: Object>(&self) -> Option<&T> {
        match self {
            Self::Object(object) => (&**object as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// The object of type `T` in this value, shared.
    pub(crate) fn downcast_rc<T: Object>(&self) -> Option<Rc<T>> {
        match self {
            Self::Object(object) => (object.clone() as Rc<dyn Any>).downcast().ok(),
            _ => None,
        }
    }
}

impl Value {
    /// The number that an object represents.
    pub(crate) fn number(&self) -> Option<&Value> {
        match self {
            Self::Object(object) => object.number(),
            _ => None,
        }
    }

    /// This operand as passed to an operator of the other operand: see [`Object::knows_scalars`].
    pub(crate) fn beside(&self, other: &Value) -> &Value {
        match other {
            Value::Object(object) if !object.knows_scalars() => self.number().unwrap_or(self),
            _ => self,
        }
    }

    /// This index as passed to an object: see [`Object::knows_scalars`].
    pub(crate) fn index_of(&self, object: &dyn Object) -> Value {
        let part = |value: &Value| value.index_of(object);
        match self {
            _ if object.knows_scalars() => self.clone(),
            Value::Tuple(items) if items.iter().any(|item| item.index_holds_scalar()) => {
                Value::tuple(items.iter().map(part).collect::<Vec<_>>())
            }
            Value::Slice(slice) if self.index_holds_scalar() => Value::Slice(Rc::new(Slice {
                start: part(&slice.start),
                stop: part(&slice.stop),
                step: part(&slice.step),
            })),
            other => other.number().unwrap_or(other).clone(),
        }
    }

    fn index_holds_scalar(&self) -> bool {
        match self {
            Value::Slice(slice) => [&slice.start, &slice.stop, &slice.step].into_iter().any(|v| v.number().is_some()),
            other => other.number().is_some(),
        }
    }
}

impl Interp<'_> {
    /// `base.name`
    pub(crate) fn object_attribute(
        &self,
        base: &Value,
        object: &dyn Object,
        name: Symbol,
        span: Span,
    ) -> EvalResult<Value> {
        let text = self.name(name);
        if let Some(value) = object.attribute(self, &text) {
            return Ok(value);
        }
        if object.has_method(self, &text) {
            return Ok(Value::BoundBuiltin(Rc::new((base.clone(), name))));
        }
        Err(object.no_attribute(self, &text, span))
    }

    /// Whether an object has this attribute or method.
    pub(crate) fn object_has(&self, object: &dyn Object, name: Symbol) -> bool {
        let text = self.name(name);
        object.has_method(self, &text) || object.attribute(self, &text).is_some()
    }

    /// `base.name(...)`
    pub(crate) fn call_object_method(
        &mut self,
        base: &Value,
        object: &dyn Object,
        name: Symbol,
        mut args: CallArgs,
    ) -> EvalResult<Value> {
        let text = self.name(name);
        if args.has_members() {
            args.take_plain_values();
        }
        if object.has_method(self, &text) {
            return object.call_method(self, base, &text, args);
        }
        let callee = self.object_attribute(base, object, name, args.span)?;
        self.call(&callee, args)
    }

    /// `left op right` where at least one operand is an object.
    pub(crate) fn object_binary(&mut self, op: BinOp, left: &Value, right: &Value, span: Span) -> EvalResult<Value> {
        let (left, right) = (left.beside(right), right.beside(left));
        for side in [left, right] {
            if let Value::Object(object) = side
                && let Some(value) = object.binary(self, op, left, right, span)?
            {
                return Ok(value);
            }
        }
        Err(unsupported(op.text(), left, right, span))
    }

    /// `left op right` where at least one operand is an object.
    pub(crate) fn object_compare(&mut self, op: CmpOp, left: &Value, right: &Value, span: Span) -> EvalResult<Value> {
        let (left, right) = (left.beside(right), right.beside(left));
        for side in [left, right] {
            if let Value::Object(object) = side
                && let Some(value) = object.compare(self, op, left, right, span)?
            {
                return Ok(value);
            }
        }
        match op {
            CmpOp::Eq | CmpOp::Ne => Ok(Value::Bool(object_equals(left, right) == (op == CmpOp::Eq))),
            _ => Err(unsupported(op.text(), left, right, span)),
        }
    }
}

/// Equality of two values of which at least one is an object, for `==`, `is` and in containers.
pub(crate) fn object_equals(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => Rc::ptr_eq(a, b) || a.equals(right) || b.equals(left),
        (Value::Object(object), other) | (other, Value::Object(object)) => object.equals(other),
        _ => false,
    }
}
