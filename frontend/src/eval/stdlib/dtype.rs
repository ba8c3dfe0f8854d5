//! NumPy's element types as values; these are also the machine's.

use std::fmt::Display;

use nki_diag::Span;
use nki_isa::names::Named;
use nki_isa::{DType, Imm};

use super::super::Interp;
use super::super::convert::{number, wrong};
use super::super::error::{EvalResult, Raise};
use super::super::foreign::Object;
use super::super::native::CallArgs;
use super::super::value::{BuiltinType, Key, Value};
use super::array::{self, Array};
use super::scalar;
use crate::host::HostDtype;

/// The form in which an element type is written, which determines its repr. All forms of a type are
/// equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `nl.float32`, and the `dtype` of a tensor.
    Machine,
    /// `np.float32`, the class of its scalars.
    Class,
    /// `np.dtype("float32")`, and the `dtype` of an array.
    Element,
}

/// An element type.
#[derive(Debug)]
struct Dtype {
    dtype: HostDtype,
    form: Form,
}

/// The value for an element type of the machine.
pub(crate) fn value(dtype: DType) -> Value {
    Value::object(Dtype { dtype: HostDtype::Device(dtype), form: Form::Machine })
}

/// The class of the scalars of an element type.
pub(crate) fn class(dtype: HostDtype) -> Value {
    Value::object(Dtype { dtype, form: Form::Class })
}

/// The `dtype` of an array.
pub(crate) fn element(dtype: HostDtype) -> Value {
    Value::object(Dtype { dtype, form: Form::Element })
}

/// The machine's element type in a value.
pub(crate) fn of(value: &Value) -> Option<DType> {
    match host_of(value)? {
        HostDtype::Device(dtype) => Some(dtype),
        _ => None,
    }
}

/// The element type in a value.
pub(crate) fn host_of(value: &Value) -> Option<HostDtype> {
    value.downcast::<Dtype>().map(|d| d.dtype)
}

impl Object for Dtype {
    fn type_name(&self) -> &'static str {
        "dtype"
    }

    fn repr(&self) -> String {
        match (self.form, self.dtype) {
            // As in the guide: "adding tensors of type float16 and shape (128, 512)".
            (Form::Machine, dtype) => dtype.name().to_owned(),
            (Form::Class, dtype) if dtype.is_of_numpy() => format!("<class 'numpy.{dtype}'>"),
            (Form::Class, dtype) => format!("<class 'ml_dtypes.{dtype}'>"),
            (Form::Element, dtype) if dtype.is_of_numpy() => format!("dtype('{dtype}')"),
            (Form::Element, dtype) => format!("dtype({dtype})"),
        }
    }

    fn text(&self) -> Option<String> {
        (self.form == Form::Element).then(|| self.dtype.name().to_owned())
    }

    /// That of its name, which it equals.
    fn hash_key(&self) -> Option<Key> {
        Some(Key::Str(self.dtype.name().into()))
    }

    fn is_inert(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["name", "itemsize", "type"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        match name {
            "name" | "__name__" => Some(Value::str(self.dtype.name())),
            "itemsize" => Some(Value::Int(self.dtype.size() as i64)),
            // The scalar class, which creates numbers: `np.dtype(np.float32).type(0.1)`.
            "type" => Some(class(self.dtype)),
            _ => None,
        }
    }

    fn is_callable(&self) -> bool {
        true
    }

    fn knows_scalars(&self) -> bool {
        true
    }

    /// Creates a number of this type: `np.int32(3)`.
    fn call(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let (span, dtype) = (args.span, self.dtype);
        let [x] = args.bind(interp, dtype.name(), ["x"], 0)?;
        let x = x.unwrap_or(Value::Int(0));
        // A scalar of another type is converted as by `astype`.
        if let Some(array) = array::of(&x).or_else(|| scalar::array_of(&x)) {
            return Ok(array.converted(dtype, span)?.simple());
        }
        if let Value::List(_) | Value::Tuple(_) = x {
            return Ok(Array::from_value(&x, Some(dtype), span)?.simple());
        }
        if interp.has_host_value([&x]) {
            return Ok(interp.host(format!("{}(...)", dtype.name()), span));
        }
        let given = number(&x, dtype.name(), span)?;
        let fitted = dtype.fit(given);
        let whole = match given {
            Imm::Int(i) => Some(i),
            Imm::Float(x) => (x.trunc() >= i64::MIN as f64 && x.trunc() < i64::MAX as f64).then_some(x as i64),
        };
        let is_int = !dtype.is_float() && dtype != HostDtype::Device(DType::Bool);
        if is_int && (fitted.as_i64() != whole || !dtype.has(whole.unwrap_or(0))) {
            let message = format!("{} is out of bounds for {dtype}", interp.repr(&x)?);
            return Err(Raise::at("integer-overflow", message, span, "NumPy refuses this, or its result is undefined")
                .help(format!("write np.array(x).astype(np.{dtype}) if an integer is meant to wrap")));
        }
        Ok(scalar::value(dtype, fitted))
    }

    /// Element types equal their names.
    fn equals(&self, other: &Value) -> bool {
        let other = match other {
            Value::Str(name) => HostDtype::from_name(name),
            Value::Host(host) => host.path.rsplit('.').next().and_then(HostDtype::from_name),
            // A NumPy dtype also equals the corresponding Python type.
            Value::Type(BuiltinType::Float) if self.form == Form::Element => Some(HostDtype::F64),
            Value::Type(BuiltinType::Int) if self.form == Form::Element => Some(HostDtype::I64),
            Value::Type(BuiltinType::Bool) if self.form == Form::Element => Some(HostDtype::Device(DType::Bool)),
            other => host_of(other),
        };
        other == Some(self.dtype)
    }

    fn has_instance(&self, value: &Value) -> bool {
        scalar::dtype_of(value) == Some(self.dtype)
    }

    fn has_subclass(&self, class: &Value) -> bool {
        host_of(class) == Some(self.dtype)
    }
}

/// An element type: `nl.float32`, `np.float32` or `'float32'`.
pub(crate) fn dtype(value: &Value, what: impl Display, span: Span) -> EvalResult<DType> {
    if let Some(dtype) = of(value) {
        return Ok(dtype);
    }
    match value {
        Value::Str(s) => DType::from_name(s).ok_or_else(|| unknown_dtype(s, span)),
        Value::Host(h) => {
            let last = h.path.rsplit('.').next().unwrap_or("");
            DType::from_name(last).ok_or_else(|| wrong(what, "a dtype such as nl.float32", value, span))
        }
        Value::Object(_) if let Some(wide) = host_of(value) => Err(unknown_dtype(wide.name(), span)),
        Value::Type(t) => match t.name() {
            "bool" => Ok(DType::Bool),
            name => Err(unknown_dtype(name, span)),
        },
        other => Err(wrong(what, "a dtype such as nl.float32", other, span)),
    }
}

/// Advice for float64.
pub(crate) const NO_FLOAT64: &str = "the device has no float64: float32 is its widest type for floats";

/// The error of an unknown dtype.
pub(crate) fn unknown_dtype(name: &str, span: Span) -> Box<Raise> {
    let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
    let raise = Raise::at("unsupported-dtype", format!("dtype `{name}` is not supported"), span, "here");
    match name {
        "float64" | "float" | "double" => raise.help(NO_FLOAT64),
        _ => raise.help(format!("supported are {}", names.join(", "))),
    }
}
