//! Element types as values: NumPy's, which are those of the machine.

use std::fmt::Display;

use nki_diag::Span;
use nki_isa::names::Named;
use nki_isa::{DType, Imm};

use super::super::Interp;
use super::super::convert::{number, wrong};
use super::super::error::{EvalResult, Raise};
use super::super::foreign::Object;
use super::super::native::CallArgs;
use super::super::value::{Key, Value};
use super::array;
use crate::host::HostDtype;

/// An element type.
#[derive(Debug)]
struct Dtype(DType);

/// The value of an element type.
pub(crate) fn value(dtype: DType) -> Value {
    Value::object(Dtype(dtype))
}

/// The element type that a value is.
pub(crate) fn of(value: &Value) -> Option<DType> {
    value.downcast::<Dtype>().map(|d| d.0)
}

impl Object for Dtype {
    fn type_name(&self) -> &'static str {
        "dtype"
    }

    /// As in the guide: "adding tensors of type float16 and shape (128, 512)".
    fn repr(&self) -> String {
        self.0.name().to_owned()
    }

    fn hash_key(&self) -> Option<Key> {
        Some(Key::Name(self.0.name().to_owned()))
    }

    fn is_inert(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["name", "itemsize", "type"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        match name {
            "name" | "__name__" => Some(Value::str(self.0.name())),
            "itemsize" => Some(Value::Int(self.0.size() as i64)),
            // What makes a number of it: `np.dtype(np.float32).type(0.1)`.
            "type" => Some(value(self.0)),
            _ => None,
        }
    }

    /// A number of this type: `np.int32(3)`.
    fn call(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let [x] = args.bind(interp, self.0.name(), ["x"], 1)?;
        let x = x.unwrap_or(Value::None);
        let dtype = HostDtype::Device(self.0);
        if let Some(array) = array::of(&x) {
            return Ok(array.astype(dtype).simple());
        }
        if interp.has_host_value([&x]) {
            return Ok(interp.host(format!("{}(...)", self.0.name()), span));
        }
        let given = number(&x, self.0.name(), span)?;
        let fitted = dtype.fit(given);
        let whole = match given {
            Imm::Int(i) => Some(i),
            Imm::Float(x) => (x.trunc() >= i64::MIN as f64 && x.trunc() < i64::MAX as f64).then_some(x as i64),
        };
        if self.0.is_int() && self.0 != DType::Bool && fitted.as_i64() != whole {
            let message = format!("{} is out of bounds for {}", interp.repr(&x)?, self.0.name());
            return Err(Raise::at("integer-overflow", message, span, "NumPy refuses this, or its result is undefined")
                .help(format!("write np.array(x).astype(np.{}) if an integer is meant to wrap", self.0.name())));
        }
        Ok(array::scalar(dtype, fitted))
    }

    /// Element types equal their names.
    fn equals(&self, other: &Value) -> bool {
        let other = match other {
            Value::Str(name) => Named::from_name(name),
            Value::Host(host) => host.path.rsplit('.').next().and_then(Named::from_name),
            other => of(other),
        };
        other == Some(self.0)
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
        Value::Type(t) => match t.name() {
            "bool" => Ok(DType::Bool),
            name => Err(unknown_dtype(name, span)),
        },
        other => Err(wrong(what, "a dtype such as nl.float32", other, span)),
    }
}

/// An error about a dtype that is not known.
pub(crate) fn unknown_dtype(name: &str, span: Span) -> Box<Raise> {
    let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
    Raise::at("unsupported-dtype", format!("dtype `{name}` is not supported"), span, "here")
        .help(format!("supported are {}", names.join(", ")))
}
