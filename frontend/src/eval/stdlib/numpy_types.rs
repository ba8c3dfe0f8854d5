//! NumPy's abstract scalar classes, such as `np.integer` and `np.floating`, and `np.ndarray`.

use nki_isa::DType;

use super::super::Interp;
use super::super::error::EvalResult;
use super::super::foreign::Object;
use super::super::native::CallArgs;
use super::super::value::{Key, Value};
use super::{array, dtype, scalar};
use crate::host::HostDtype;

/// An abstract class of scalars, or the class of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumpyClass {
    Generic,
    Number,
    Integer,
    SignedInteger,
    UnsignedInteger,
    Inexact,
    Floating,
    NdArray,
}

impl NumpyClass {
    const ALL: [NumpyClass; 8] = [
        NumpyClass::Generic,
        NumpyClass::Number,
        NumpyClass::Integer,
        NumpyClass::SignedInteger,
        NumpyClass::UnsignedInteger,
        NumpyClass::Inexact,
        NumpyClass::Floating,
        NumpyClass::NdArray,
    ];

    /// The class with this name.
    pub(super) fn named(name: &str) -> Option<NumpyClass> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            NumpyClass::Generic => "generic",
            NumpyClass::Number => "number",
            NumpyClass::Integer => "integer",
            NumpyClass::SignedInteger => "signedinteger",
            NumpyClass::UnsignedInteger => "unsignedinteger",
            NumpyClass::Inexact => "inexact",
            NumpyClass::Floating => "floating",
            NumpyClass::NdArray => "ndarray",
        }
    }

    /// The direct base class of an element type's scalars. Scalars of ml_dtypes derive from
    /// `np.generic`.
    fn of_scalars(dtype: HostDtype) -> NumpyClass {
        match dtype {
            HostDtype::Device(DType::Bool) => NumpyClass::Generic,
            dtype if !dtype.is_of_numpy() => NumpyClass::Generic,
            dtype if dtype.is_float() => NumpyClass::Floating,
            dtype if dtype.is_unsigned() => NumpyClass::UnsignedInteger,
            _ => NumpyClass::SignedInteger,
        }
    }

    fn base(self) -> Option<NumpyClass> {
        match self {
            NumpyClass::Generic | NumpyClass::NdArray => None,
            NumpyClass::Number => Some(NumpyClass::Generic),
            NumpyClass::Integer | NumpyClass::Inexact => Some(NumpyClass::Number),
            NumpyClass::SignedInteger | NumpyClass::UnsignedInteger => Some(NumpyClass::Integer),
            NumpyClass::Floating => Some(NumpyClass::Inexact),
        }
    }

    /// Whether a class is this one or derives from it.
    fn is_base_of(self, class: NumpyClass) -> bool {
        class == self || class.base().is_some_and(|base| self.is_base_of(base))
    }
}

impl Object for NumpyClass {
    fn type_name(&self) -> &'static str {
        "type"
    }

    fn repr(&self) -> String {
        format!("<class 'numpy.{}'>", self.name())
    }

    fn hash_key(&self) -> Option<Key> {
        Some(Key::Name(self.repr()))
    }

    fn is_inert(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["__name__"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        (name == "__name__").then(|| Value::str(self.name()))
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<NumpyClass>() == Some(self)
    }

    fn has_instance(&self, value: &Value) -> bool {
        match scalar::dtype_of(value) {
            Some(dtype) => self.is_base_of(Self::of_scalars(dtype)),
            None => *self == NumpyClass::NdArray && array::is(value),
        }
    }

    fn has_subclass(&self, class: &Value) -> bool {
        let class = match class.downcast::<NumpyClass>() {
            Some(class) => Some(*class),
            None => dtype::host_of(class).map(Self::of_scalars),
        };
        class.is_some_and(|class| self.is_base_of(class))
    }
}

/// `np.issubdtype(arg1, arg2)`
pub(super) fn issubdtype(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [class, base] = args.bind(interp, "issubdtype", ["arg1", "arg2"], 2)?;
    let [class, base] = [class, base].map(|v| v.unwrap_or(Value::None));
    if let (None, Value::Object(base)) = (dtype::host_of(&base), &base) {
        return Ok(Value::Bool(base.has_subclass(&class)));
    }
    let class = array::dtype_of(&class, "np.issubdtype", span)?;
    Ok(Value::Bool(class == array::dtype_of(&base, "np.issubdtype", span)?))
}
