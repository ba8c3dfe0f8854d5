//! Stand-in for the conversions of `nki_isa::dtype` until they land.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use nki_isa::DType;

use super::elements::int_from;

/// Little-endian elements to fp32.
pub(crate) fn decode_f32(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        DType::BF16 => match bytemuck::try_cast_slice::<u8, bf16>(bytes) {
            Ok(b) => b.convert_to_f32_slice(out),
            Err(_) => {
                for (o, b) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                    *o = bf16::from_le_bytes([b[0], b[1]]).to_f32();
                }
            }
        },
        DType::F16 => {
            for (o, b) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                *o = f16::from_le_bytes([b[0], b[1]]).to_f32();
            }
        }
        DType::F32 | DType::TF32 => bytemuck::cast_slice_mut::<f32, u8>(out).copy_from_slice(bytes),
        _ => {
            for (o, b) in out.iter_mut().zip(bytes.chunks_exact(dtype.size())) {
                *o = int_from(dtype, b) as f32;
            }
        }
    }
}

/// fp32 to little-endian elements.
pub(crate) fn encode_f32(dtype: DType, values: &[f32], out: &mut [u8]) {
    match dtype {
        DType::BF16 => {
            for (o, v) in out.chunks_exact_mut(2).zip(values) {
                o.copy_from_slice(&bf16::from_f32(*v).to_le_bytes());
            }
        }
        DType::F16 => {
            for (o, v) in out.chunks_exact_mut(2).zip(values) {
                o.copy_from_slice(&f16::from_f32(*v).to_le_bytes());
            }
        }
        DType::F32 | DType::TF32 => out.copy_from_slice(bytemuck::cast_slice(values)),
        _ => {
            let size = dtype.size();
            for (o, v) in out.chunks_exact_mut(size).zip(values) {
                o.copy_from_slice(&(v.round_ties_even() as i64).to_le_bytes()[..size]);
            }
        }
    }
}
