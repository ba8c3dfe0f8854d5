//! Elements of arrays as doubles, for comparisons.

use nki_isa::dtype::{DType, decode_f32, decode_i64, read_bits};

use crate::npy::{Array, Elem};

/// Numbers per element of `dtype`: four for a packed type.
pub(crate) fn width(dtype: DType) -> usize {
    if dtype.is_packed() { 4 } else { 1 }
}

/// Decodes elements from `from` on as doubles, as many as fit in `out`; `unknown` is the element type if the array does not specify it
/// (`V1`) or is packed (four numbers per element).
pub(crate) fn numbers(array: &Array, unknown: DType, from: usize, out: &mut [f64]) {
    let size = array.elem.size();
    let bytes = &array.data[from * size..(from + out.len() / width(unknown)) * size];
    if let Some(element) = unknown.mx_element() {
        for (four, bits) in out.as_chunks_mut::<4>().0.iter_mut().zip(bytes.chunks_exact(size)) {
            *four = element.unpack(read_bits(bits)).map(f64::from);
        }
        return;
    }
    fn wide<T>(bytes: &[u8], out: &mut [f64], convert: impl Fn([u8; 8]) -> T, to_f64: impl Fn(T) -> f64) {
        for (o, b) in out.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *o = to_f64(convert(*b));
        }
    }
    match array.elem {
        Elem::Device(dtype) => device(bytes, dtype, out),
        Elem::Void1 => device(bytes, unknown, out),
        Elem::Void2 => device(bytes, DType::BF16, out),
        // Rejected earlier: only a packed `unknown` can interpret them.
        Elem::Packed(_) => out.fill(f64::NAN),
        Elem::F64 => wide(bytes, out, f64::from_le_bytes, |x| x),
        Elem::I64 => wide(bytes, out, i64::from_le_bytes, |x| x as f64),
        Elem::U64 => wide(bytes, out, u64::from_le_bytes, |x| x as f64),
    }
}

fn device(bytes: &[u8], dtype: DType, out: &mut [f64]) {
    if dtype.is_int() {
        // Decoded exactly: fp32 would round large integers.
        let mut values = vec![0i64; out.len()];
        decode_i64(dtype, bytes, &mut values);
        for (o, v) in out.iter_mut().zip(values) {
            *o = v as f64;
        }
    } else {
        let mut values = vec![0f32; out.len()];
        decode_f32(dtype, bytes, &mut values);
        for (o, v) in out.iter_mut().zip(values) {
            *o = v.into();
        }
    }
}

/// One number as a double; in packed arrays `index` counts the numbers.
pub(crate) fn number(array: &Array, index: usize, unknown: DType) -> f64 {
    let mut out = [0.0; 4];
    let width = width(unknown);
    numbers(array, unknown, index / width, &mut out[..width]);
    out[index % width]
}
