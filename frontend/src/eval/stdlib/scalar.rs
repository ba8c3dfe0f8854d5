//! NumPy scalars: numbers with an element type, such as `np.float32(0.1)`, an element of an array,
//! or a sum.

use std::cmp::Ordering;

use nki_diag::{Diagnostic, Span};
use nki_isa::{DType, Imm};

use super::super::Interp;
use super::super::convert;
use super::super::error::{EvalResult, Raise};
use super::super::foreign::Object;
use super::super::native::CallArgs;
use super::super::value::Value;
use super::array::{self, Array, NdArray, show};
use super::dtype;
use crate::host::HostDtype;
use crate::syntax::{BinOp, CmpOp, UnaryOp};

/// A number with an element type.
#[derive(Debug, Clone)]
pub(crate) struct NumpyScalar {
    dtype: HostDtype,
    /// The equal Python number: a bool, an int or a float.
    number: Value,
}

/// The scalar of this type.
pub(crate) fn value(dtype: HostDtype, number: Imm) -> Value {
    Value::object(NumpyScalar { dtype, number: array::python_number(dtype, number) })
}

/// A scalar as an array without dimensions.
pub(super) fn array_of(value: &Value) -> Option<Array> {
    value.downcast().map(NumpyScalar::array)
}

/// The element type of a scalar.
pub(crate) fn dtype_of(value: &Value) -> Option<HostDtype> {
    value.downcast::<NumpyScalar>().map(|scalar| scalar.dtype)
}

/// The order of two numbers, at least one of which is a scalar; `None` if either is not a number,
/// `Some(None)` if one is NaN.
pub(crate) fn order(left: &Value, right: &Value) -> Option<Option<Ordering>> {
    let holds = |op| array::compare(op, left, right, Span::default()).ok().and_then(|made| made.number().map(is_true));
    if !is_operand(left) || !is_operand(right) {
        return None;
    }
    Some(match (holds(CmpOp::Lt)?, holds(CmpOp::Gt)?, holds(CmpOp::Eq)?) {
        (true, ..) => Some(Ordering::Less),
        (_, true, _) => Some(Ordering::Greater),
        (.., true) => Some(Ordering::Equal),
        _ => None,
    })
}

/// `left is right`, where one is a scalar: scalars of one type are compared by value, like other
/// numbers.
pub(crate) fn identical(left: &Value, right: &Value) -> bool {
    match (left.downcast::<NumpyScalar>(), right.downcast::<NumpyScalar>()) {
        (Some(a), Some(b)) => a.dtype == b.dtype && order(left, right) == Some(Some(Ordering::Equal)),
        _ => false,
    }
}

/// `round(number, digits)` of a scalar; `None` for other values.
pub(crate) fn round(
    interp: &mut Interp<'_>,
    number: &Value,
    digits: Option<&Value>,
    span: Span,
) -> EvalResult<Option<Value>> {
    let Some(scalar) = number.downcast::<NumpyScalar>() else { return Ok(None) };
    if scalar.dtype == HostDtype::Device(DType::Bool) || !scalar.dtype.is_of_numpy() {
        let message = format!("round() of {}, which has no `__round__`", number.a_type());
        return Err(Raise::at("type-error", message, span, "in this call"));
    }
    let Some(digits) = digits.filter(|digits| !digits.is_none()) else {
        let Some(function) = interp.builtin("round") else { return Ok(None) };
        return interp.call(&function, CallArgs::of([scalar.number.clone()], span)).map(Some);
    };
    let digits = convert::int(digits, "round", span)?;
    Ok(Some(super::numpy::rounded(&scalar.array(), digits).simple()))
}

fn is_true(number: &Value) -> bool {
    number.as_float().is_some_and(|x| x != 0.0) || matches!(number, Value::Bool(true))
}

/// Whether an operator of a scalar treats a value as a number.
fn is_operand(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_)) || value.downcast::<NumpyScalar>().is_some()
}

/// Whether an operator of a scalar treats a value as an array.
fn is_sequence(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Tuple(_))
}

impl NumpyScalar {
    /// Whether a value is a `float64`, the only scalar that is also a Python float.
    pub(crate) fn is_float64(value: &Value) -> bool {
        dtype_of(value) == Some(HostDtype::F64)
    }

    /// This scalar as an array without dimensions.
    fn array(&self) -> Array {
        let number = match &self.number {
            Value::Float(x) => Imm::Float(*x),
            Value::Bool(b) => Imm::Int(i64::from(*b)),
            other => Imm::Int(other.as_int().unwrap_or(0)),
        };
        Array::new(self.dtype, Vec::new(), vec![number])
    }

    /// `str(scalar)`
    fn digits(&self) -> String {
        show::text(&self.array())
    }

    fn is_bool(&self) -> bool {
        self.dtype == HostDtype::Device(DType::Bool)
    }
}

/// Repetition of strings, lists and tuples by an integer scalar, and NumPy's error for other
/// scalars.
fn repeated(
    interp: &mut Interp<'_>,
    scalar: &NumpyScalar,
    left: &Value,
    right: &Value,
    span: Span,
) -> EvalResult<Option<Value>> {
    if scalar.dtype.is_float() || scalar.is_bool() {
        let message = format!("can't multiply a sequence by a {}, which is not an integer", scalar.type_name());
        return Err(Raise::at("type-error", message, span, "here").help("np.array(...) makes an array of the sequence"));
    }
    let number = |value: &Value| value.number().unwrap_or(value).clone();
    interp.binary(BinOp::Mul, &number(left), &number(right), span).map(Some)
}

/// Warns if a result does not fit its type, as NumPy does for scalars.
fn check_range(interp: &mut Interp<'_>, op: BinOp, left: &Value, right: &Value, made: &Value, span: Span) {
    let Some(result) = made.downcast::<NumpyScalar>() else { return };
    let wraps = match (&result.number, left.as_int(), right.as_int()) {
        (Value::Int(made), Some(a), Some(b)) => {
            let (a, b) = (i128::from(a), i128::from(b));
            match op {
                BinOp::Add => a + b != i128::from(*made),
                BinOp::Sub => a - b != i128::from(*made),
                BinOp::Mul => a * b != i128::from(*made),
                _ => false,
            }
        }
        (Value::Float(made), ..) => {
            let is_finite = |value: &Value| value.as_float().is_some_and(f64::is_finite);
            !made.is_finite() && is_finite(left) && is_finite(right)
        }
        _ => false,
    };
    if wraps {
        let message = format!("`{}` of scalars of {} gives {}", op.text(), result.dtype, result.digits());
        interp.report_once(
            Diagnostic::warning("scalar-overflow", message)
                .at(span, "NumPy warns of an overflow, a division by zero or an undefined result here")
                .help("compute with Python numbers, int(x) and float(x), or with a wider type"),
            span,
        );
    }
}

impl Object for NumpyScalar {
    fn type_name(&self) -> &'static str {
        match self.dtype {
            HostDtype::Device(DType::Bool) => "numpy.bool",
            other => other.name(),
        }
    }

    fn repr(&self) -> String {
        let text = self.digits();
        match self.dtype {
            HostDtype::Device(DType::Bool) => format!("np.{text}_"),
            dtype if dtype.is_of_numpy() => format!("np.{dtype}({text})"),
            _ => text,
        }
    }

    fn text(&self) -> Option<String> {
        Some(self.digits())
    }

    fn class(&self) -> Option<Value> {
        Some(dtype::class(self.dtype))
    }

    fn number(&self) -> Option<&Value> {
        Some(&self.number)
    }

    fn knows_scalars(&self) -> bool {
        true
    }

    fn is_inert(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["dtype", "shape", "ndim", "size", "itemsize", "nbytes", "T", "real"]
    }

    fn methods(&self) -> &'static [&'static str] {
        &[
            "item",
            "tolist",
            "astype",
            "copy",
            "reshape",
            "flatten",
            "ravel",
            "sum",
            "prod",
            "mean",
            "min",
            "max",
            "any",
            "all",
            "is_integer",
        ]
    }

    fn attribute(&self, interp: &Interp<'_>, name: &str) -> Option<Value> {
        match name {
            "T" | "real" => Some(Value::object(self.clone())),
            "__class__" => self.class(),
            name => NdArray::new(self.array()).attribute(interp, name),
        }
    }

    fn call_method(&self, interp: &mut Interp<'_>, this: &Value, name: &str, args: CallArgs) -> EvalResult<Value> {
        if name == "is_integer" {
            args.positional_only(interp, name, 0, 0)?;
            let is_whole = self.number.as_float().is_some_and(|x| x.is_finite() && x.fract() == 0.0);
            return Ok(Value::Bool(is_whole));
        }
        let made = NdArray::new(self.array()).call_method(interp, this, name, args)?;
        // An array without dimensions becomes a scalar again.
        Ok(match array::of(&made) {
            Some(array) if matches!(name, "astype" | "copy") => array.simple(),
            _ => made,
        })
    }

    fn item(&self, interp: &mut Interp<'_>, this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        NdArray::new(self.array()).item(interp, this, index, span)
    }

    fn binary(
        &self,
        interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let other = if left.downcast::<NumpyScalar>().is_some() { right } else { left };
        if let Value::Host(host) = other {
            return interp.host_value(host, span).map(Some);
        }
        if op == BinOp::Mul && (is_sequence(other) || matches!(other, Value::Str(_))) {
            return repeated(interp, self, left, right, span);
        }
        let (plain_left, plain_right) = (left.known_number(), right.known_number());
        let (left, right) = (&plain_left, &plain_right);
        let fits = |value: &Value| is_operand(value) || is_sequence(value);
        if !fits(left) || !fits(right) {
            return Ok(None);
        }
        let made = array::operate(op, left, right, span)?;
        check_range(interp, op, left, right, &made, span);
        array::charged(interp, made, span).map(Some)
    }

    fn unary(&self, interp: &mut Interp<'_>, op: UnaryOp, this: &Value, span: Span) -> EvalResult<Value> {
        let made = array::unary(op, &self.array(), span)?;
        if op == UnaryOp::Neg {
            check_range(interp, BinOp::Sub, &Value::Int(0), this, &made, span);
        }
        Ok(made)
    }

    fn compare(
        &self,
        _interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let (left, right) = (left.known_number(), right.known_number());
        let fits = |value: &Value| is_operand(value) || is_sequence(value);
        if !fits(&left) || !fits(&right) {
            return Ok(None);
        }
        array::compare(op, &left, &right, span).map(Some)
    }

    fn equals(&self, other: &Value) -> bool {
        let this = Value::object(self.clone());
        order(&this, &other.known_number()) == Some(Some(Ordering::Equal))
    }

    fn truth(&self, _interp: &mut Interp<'_>, _this: &Value, _span: Span) -> EvalResult<bool> {
        Ok(is_true(&self.number))
    }
}

impl Value {
    /// The number that a NumPy operator uses for this value: for an object or an Enum member, the
    /// number that it is.
    pub(super) fn known_number(&self) -> Value {
        match self {
            Value::EnumMember(_) | Value::Instance(_) => self.plain_value(),
            other => other.clone(),
        }
    }
}
