//! Elements to and from numbers, at the edge of the program: generated inputs and comparisons.

use half::{bf16, f16};
use nki_isa::dtype::DType;

use crate::npy::{Array, Elem};

/// Exponent bits, mantissa bits and whether the all-ones exponent is infinity and NaN.
fn small_float(dtype: DType) -> Option<(u32, bool)> {
    match dtype {
        DType::F8E4M3 => Some((3, true)),
        DType::F8E4M3FN => Some((3, false)),
        DType::F8E5M2 => Some((2, true)),
        _ => None,
    }
}

/// The value of an 8-bit float.
fn decode_small(byte: u8, mantissa_bits: u32, ieee: bool) -> f32 {
    let exponent_bits = 7 - mantissa_bits;
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let sign = if byte & 0x80 != 0 { -1.0 } else { 1.0 };
    let exponent = i32::from((byte & 0x7f) >> mantissa_bits);
    let mantissa = f32::from(byte & ((1 << mantissa_bits) - 1));
    let scale = (1u32 << mantissa_bits) as f32;
    let top = (1 << exponent_bits) - 1;
    if ieee && exponent == top {
        return if mantissa == 0.0 { sign * f32::INFINITY } else { f32::NAN };
    }
    if !ieee && byte & 0x7f == 0x7f {
        return f32::NAN;
    }
    let (fraction, exponent) = if exponent == 0 { (mantissa / scale, 1) } else { (1.0 + mantissa / scale, exponent) };
    sign * fraction * 2f32.powi(exponent - bias)
}

/// The nearest 8-bit float, ties to even; too large becomes infinity or NaN, as ml_dtypes has it.
fn encode_small(x: f32, mantissa_bits: u32, ieee: bool) -> u8 {
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    if x.is_nan() {
        return sign | 0x7f;
    }
    let exponent_bits = 7 - mantissa_bits;
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let magnitude = x.abs();
    let largest = if ieee { ((1u32 << exponent_bits) - 1) << mantissa_bits } else { 0x7f };
    // The quantum at this magnitude, in f64 so that the division is exact.
    let exponent = if magnitude.is_infinite() { 200 } else { ((magnitude.to_bits() >> 23) as i32 - 127).max(1 - bias) };
    let quantum = 2f64.powi(exponent - mantissa_bits as i32);
    let steps = (f64::from(magnitude) / quantum).round_ties_even();
    let base = (exponent + bias - 1).min(1000) as f64 * f64::from(1u32 << mantissa_bits);
    let code = (base + steps).min(f64::from(largest)) as u32;
    sign | code as u8
}

/// Appends `x`, rounded to `dtype`. Integers are truncated towards zero and saturate.
pub(crate) fn encode(x: f32, dtype: DType, out: &mut Vec<u8>) {
    match dtype {
        DType::F32 | DType::TF32 => out.extend_from_slice(&x.to_le_bytes()),
        DType::F16 => out.extend_from_slice(&f16::from_f32(x).to_le_bytes()),
        DType::BF16 => out.extend_from_slice(&bf16::from_f32(x).to_le_bytes()),
        DType::I32 => out.extend_from_slice(&(x as i32).to_le_bytes()),
        DType::U32 => out.extend_from_slice(&(x as u32).to_le_bytes()),
        DType::I16 => out.extend_from_slice(&(x as i16).to_le_bytes()),
        DType::U16 => out.extend_from_slice(&(x as u16).to_le_bytes()),
        DType::I8 => out.push((x as i8) as u8),
        DType::U8 => out.push(x as u8),
        DType::Bool => out.push(u8::from(x != 0.0)),
        DType::F8E4M3 | DType::F8E4M3FN | DType::F8E5M2 => {
            let (m, ieee) = small_float(dtype).unwrap_or((3, true));
            out.push(encode_small(x, m, ieee));
        }
    }
}

/// One element as a double. `bytes` holds exactly one element.
fn element(bytes: &[u8], dtype: DType) -> f64 {
    fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&bytes[..N]);
        out
    }
    match dtype {
        DType::F32 | DType::TF32 => f32::from_le_bytes(fixed(bytes)).into(),
        DType::F16 => f16::from_le_bytes(fixed(bytes)).into(),
        DType::BF16 => bf16::from_le_bytes(fixed(bytes)).into(),
        DType::I32 => i32::from_le_bytes(fixed(bytes)).into(),
        DType::U32 => u32::from_le_bytes(fixed(bytes)).into(),
        DType::I16 => i16::from_le_bytes(fixed(bytes)).into(),
        DType::U16 => u16::from_le_bytes(fixed(bytes)).into(),
        DType::I8 => (bytes[0] as i8).into(),
        DType::U8 | DType::Bool => bytes[0].into(),
        DType::F8E4M3 | DType::F8E4M3FN | DType::F8E5M2 => {
            let (m, ieee) = small_float(dtype).unwrap_or((3, true));
            decode_small(bytes[0], m, ieee).into()
        }
    }
}

/// Element `index` of an array as a double; `unknown` is the type of `V1` elements.
pub(crate) fn number(array: &Array, index: usize, unknown: DType) -> f64 {
    let size = array.elem.size();
    let bytes = &array.data[index * size..(index + 1) * size];
    let wide = || {
        let mut out = [0u8; 8];
        out.copy_from_slice(bytes);
        out
    };
    match array.elem {
        Elem::Device(dtype) => element(bytes, dtype),
        Elem::Void1 => element(bytes, unknown),
        Elem::Void2 => element(bytes, DType::BF16),
        Elem::F64 => f64::from_le_bytes(wide()),
        Elem::I64 => i64::from_le_bytes(wide()) as f64,
        Elem::U64 => u64::from_le_bytes(wide()) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floats_round_trip_and_round_to_even() {
        for dtype in [DType::F8E4M3, DType::F8E4M3FN, DType::F8E5M2] {
            for byte in 0..=255u8 {
                let x = element(&[byte], dtype) as f32;
                let mut out = Vec::new();
                encode(x, dtype, &mut out);
                if x.is_nan() {
                    assert!(element(&out, dtype).is_nan());
                } else {
                    assert_eq!(out, [byte], "{dtype} {byte:#x} {x}");
                }
            }
        }
        let code = |x, dtype| {
            let mut out = Vec::new();
            encode(x, dtype, &mut out);
            element(&out, dtype)
        };
        assert_eq!(code(17.0, DType::F8E4M3), 16.0);
        assert_eq!(code(19.0, DType::F8E4M3), 20.0);
        assert_eq!(code(240.0, DType::F8E4M3), 240.0);
        assert_eq!(code(1e9, DType::F8E4M3), f64::INFINITY);
        assert_eq!(code(448.0, DType::F8E4M3FN), 448.0);
        assert!(code(1e9, DType::F8E4M3FN).is_nan());
    }
}
