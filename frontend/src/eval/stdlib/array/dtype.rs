//! Element types: their names, and the conversion of numbers to them.

use nki_diag::{Diagnostic, Span};
use nki_isa::dtype::{bits_to_f32, bits_to_i64, f32_to_bits};
use nki_isa::{DType, Imm};

use super::{Array, float};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::stdlib::dtype;
use crate::eval::value::{BuiltinType, Value};
use crate::host::HostDtype;

impl HostDtype {
    /// Converts a number to this type, as `astype` does: floats are truncated to integers, integers
    /// wrap.
    pub(crate) fn fit(self, value: Imm) -> Imm {
        let integer = match value {
            Imm::Int(i) => i,
            Imm::Float(x) => x as i64,
        };
        let float = float(value);
        match self {
            HostDtype::F64 => Imm::Float(float),
            HostDtype::I64 | HostDtype::U64 => Imm::Int(integer),
            HostDtype::Device(DType::Bool) => Imm::Int(i64::from(float != 0.0)),
            HostDtype::Device(d) if d.is_float() => {
                let single = if d == DType::F16 { round_to_odd(float) } else { float as f32 };
                Imm::Float(f64::from(bits_to_f32(d, f32_to_bits(d, single))))
            }
            HostDtype::Device(d) => Imm::Int(bits_to_i64(d, (integer & wrap_mask(d)) as u32)),
        }
    }

    /// Whether an integer type (or bool) can represent this integer. Always true for floating-point
    /// types.
    pub(crate) fn has(self, value: i64) -> bool {
        self.is_float()
            || self == HostDtype::Device(DType::Bool)
            || match self {
                HostDtype::U64 => value >= 0,
                _ => self.fit(Imm::Int(value)) == Imm::Int(value),
            }
    }

    /// Rejects an integer that the type cannot represent, as NumPy does.
    pub(super) fn check(self, value: i64, span: Span) -> EvalResult<()> {
        if self.has(value) {
            return Ok(());
        }
        let message = format!("{value} is out of bounds for {self}");
        Err(Raise::at("integer-overflow", message, span, "here"))
    }
}

/// Rounds to float32 such that rounding the result to float16 equals a single rounding.
fn round_to_odd(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    if back == x || !near.is_finite() {
        return near;
    }
    // Of the two neighbours of `x`, choose the one whose last bit is 1: it is not on a rounding
    // boundary of float16.
    let towards_zero = near.to_bits() - u32::from(back.abs() > x.abs());
    f32::from_bits(towards_zero | 1)
}

fn wrap_mask(dtype: DType) -> i64 {
    (1i64 << (8 * dtype.size())) - 1
}

/// The dtype for one of NumPy's names or codes of native byte order.
fn named(name: &str) -> Option<HostDtype> {
    let device = match name.strip_prefix(['<', '=', '|']).unwrap_or(name) {
        "float64" | "double" | "float" | "f8" | "d" => return Some(HostDtype::F64),
        "int64" | "int" | "i8" | "l" | "q" => return Some(HostDtype::I64),
        "uint64" | "uint" | "u8" | "L" | "Q" => return Some(HostDtype::U64),
        "f4" | "f" | "single" => DType::F32,
        "f2" | "e" | "half" => DType::F16,
        "i4" | "i" => DType::I32,
        "i2" | "h" => DType::I16,
        "i1" | "b" => DType::I8,
        "u4" | "I" => DType::U32,
        "u2" | "H" => DType::U16,
        "u1" | "B" => DType::U8,
        "b1" | "?" => DType::Bool,
        _ => return None,
    };
    Some(HostDtype::Device(device))
}

/// A dtype argument: `np.float32`, `float`, `'int8'`, `'f4'`.
pub(crate) fn dtype_of(value: &Value, what: &str, span: Span) -> EvalResult<HostDtype> {
    match value {
        Value::Type(BuiltinType::Float) => Ok(HostDtype::F64),
        Value::Type(BuiltinType::Int) => Ok(HostDtype::I64),
        Value::Str(s) if let Some(dtype) = named(s) => Ok(dtype),
        Value::Object(_) if let Some(dtype) = dtype::host_of(value) => Ok(dtype),
        other => dtype::dtype(other, format_args!("{what}: dtype"), span).map(HostDtype::Device),
    }
}

/// The device type for a constant in HBM.
pub(crate) fn device_dtype(array: &Array, span: Span) -> EvalResult<DType> {
    match array.dtype {
        HostDtype::Device(d) => Ok(d),
        wide => {
            let instead = if wide.is_float() { "float32" } else { "int32" };
            Err(Raise::new(
                Diagnostic::error("unsupported-dtype", format!("a constant of {wide}: the machine has no such type"))
                    .at(span, "here")
                    .help(format!("choose a supported type: array.astype(np.{instead})")),
            ))
        }
    }
}
