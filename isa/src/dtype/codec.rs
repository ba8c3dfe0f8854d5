//! Conversion of runs of elements between their bytes in memory (little-endian) and the engines' fp32 or exact integers.
//!
//! All loops are branch-free integer or float code that the compiler vectorises under the run-time dispatch of
//! [`crate::inst::math::simd`]; results are the same on every CPU.

use super::fp8::{E4M3, E4M3_VALUES, E4M3FN, E4M3FN_VALUES, E5M2, E5M2_VALUES};
use super::mx::{mx_scale_bits, mx_scale_value};
use super::{DType, Overflow};
use crate::inst::math::simd::{Kernel, dispatch};

/// Decodes `out.len()` elements.
///
/// Integers are rounded to nearest even in fp32; bool becomes 0 or 1. The bits of a packed type are read as an unsigned integer: no
/// instruction uses one as a number, but this keeps the function total.
/// Only as many elements are converted as both slices hold.
pub fn decode_f32(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    dispatch(Decode { dtype, bytes, out });
}

struct Decode<'a> {
    dtype: DType,
    bytes: &'a [u8],
    out: &'a mut [f32],
}

impl Kernel for Decode<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Decode { dtype, bytes, out } = self;
        match dtype {
            DType::F32 | DType::TF32 => each(bytes, out, f32::from_le_bytes),
            DType::BF16 => each(bytes, out, |b| bf16_to_f32(u16::from_le_bytes(b))),
            DType::F16 => each(bytes, out, |b| f16_to_f32(u16::from_le_bytes(b))),
            DType::F8E4M3 => each(bytes, out, |[b]| E4M3_VALUES[usize::from(b)]),
            DType::F8E4M3FN => each(bytes, out, |[b]| E4M3FN_VALUES[usize::from(b)]),
            DType::F8E5M2 => each(bytes, out, |[b]| E5M2_VALUES[usize::from(b)]),
            DType::F8E8M0 => each(bytes, out, |[b]| mx_scale_value(b)),
            DType::I32 => each(bytes, out, |b| i32::from_le_bytes(b) as f32),
            DType::I64 => each(bytes, out, |b| i64::from_le_bytes(b) as f32),
            DType::U32 | DType::F8E4M3FNX4 | DType::F8E5M2X4 => each(bytes, out, |b| u32::from_le_bytes(b) as f32),
            DType::I16 => each(bytes, out, |b| f32::from(i16::from_le_bytes(b))),
            DType::U16 | DType::F4E2M1FNX4 => each(bytes, out, |b| f32::from(u16::from_le_bytes(b))),
            DType::I8 => each(bytes, out, |b| f32::from(i8::from_le_bytes(b))),
            DType::U8 => each(bytes, out, |[b]| f32::from(b)),
            DType::Bool => each(bytes, out, |[b]| f32::from(u8::from(b != 0))),
        }
    }
}

/// Encodes `values` with the default overflow rule of each format (see [`Overflow`]).
///
/// Floats round to nearest even; integers as [`round_to_int`]; bool is 1 for everything but zero.
pub fn encode_f32(dtype: DType, values: &[f32], out: &mut [u8]) {
    let overflow = dtype.fp8().map_or(Overflow::ToInf, |f| f.overflow);
    encode_f32_with(dtype, values, out, overflow);
}

/// As [`encode_f32`] with an explicit overflow rule, which applies to 8-bit floats only.
pub fn encode_f32_with(dtype: DType, values: &[f32], out: &mut [u8], overflow: Overflow) {
    dispatch(Encode { dtype, values, out, overflow });
}

struct Encode<'a> {
    dtype: DType,
    values: &'a [f32],
    out: &'a mut [u8],
    overflow: Overflow,
}

impl Kernel for Encode<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Encode { dtype, values, out, overflow } = self;
        match dtype {
            DType::F32 | DType::TF32 => put(values, out, f32::to_le_bytes),
            DType::BF16 => put(values, out, |x| f32_to_bf16(x).to_le_bytes()),
            DType::F16 => put(values, out, |x| f32_to_f16(x).to_le_bytes()),
            DType::F8E4M3 => {
                let beyond = E4M3.beyond(overflow);
                put(values, out, |x| [E4M3.encode_with(x, beyond)])
            }
            DType::F8E4M3FN => {
                let beyond = E4M3FN.beyond(overflow);
                put(values, out, |x| [E4M3FN.encode_with(x, beyond)])
            }
            DType::F8E5M2 => {
                let beyond = E5M2.beyond(overflow);
                put(values, out, |x| [E5M2.encode_with(x, beyond)])
            }
            DType::F8E8M0 => put(values, out, |x| [mx_scale_bits(x)]),
            DType::I32 => put(values, out, |x| round32(x, i32::MIN.into(), i32::MAX.into()).to_le_bytes()),
            DType::U32 | DType::F8E4M3FNX4 | DType::F8E5M2X4 => {
                put(values, out, |x| round32(x, u32::MIN.into(), u32::MAX.into()).to_le_bytes())
            }
            DType::I64 => put(values, out, |x: f32| (x.round_ties_even() as i64).to_le_bytes()),
            DType::I16 => put(values, out, |x| (round16(x, i16::MIN.into(), i16::MAX.into()) as u16).to_le_bytes()),
            DType::U16 | DType::F4E2M1FNX4 => {
                put(values, out, |x| (round16(x, u16::MIN.into(), u16::MAX.into()) as u16).to_le_bytes())
            }
            DType::I8 => put(values, out, |x| [round16(x, i8::MIN.into(), i8::MAX.into()) as u8]),
            DType::U8 => put(values, out, |x| [round16(x, u8::MIN.into(), u8::MAX.into()) as u8]),
            DType::Bool => put(values, out, |x| [u8::from(x != 0.0)]),
        }
    }
}

/// Decodes integers exactly (sign- or zero-extended; bool 0 or 1). Floats are converted as [`round_to_int`] to 32 bits.
pub fn decode_i64(dtype: DType, bytes: &[u8], out: &mut [i64]) {
    match dtype {
        DType::I32 => each(bytes, out, |b| i64::from(i32::from_le_bytes(b))),
        DType::I64 => each(bytes, out, i64::from_le_bytes),
        DType::U32 | DType::F8E4M3FNX4 | DType::F8E5M2X4 => each(bytes, out, |b| i64::from(u32::from_le_bytes(b))),
        DType::I16 => each(bytes, out, |b| i64::from(i16::from_le_bytes(b))),
        DType::U16 | DType::F4E2M1FNX4 => each(bytes, out, |b| i64::from(u16::from_le_bytes(b))),
        DType::I8 => each(bytes, out, |b| i64::from(i8::from_le_bytes(b))),
        DType::U8 => each(bytes, out, |[b]| i64::from(b)),
        DType::Bool => each(bytes, out, |[b]| i64::from(b != 0)),
        _ => {
            for (chunk, o) in bytes.chunks_exact(dtype.size()).zip(out) {
                *o = round_to_int(DType::I32, bits_to_f32(dtype, read_bits(chunk)));
            }
        }
    }
}

/// Encodes integers: they wrap to the element type (bool: 1 for everything but zero). Float types store the rounded value.
pub fn encode_i64(dtype: DType, values: &[i64], out: &mut [u8]) {
    match dtype.size() {
        8 => put(values, out, i64::to_le_bytes),
        4 if !dtype.is_float() => put(values, out, |x| (x as u32).to_le_bytes()),
        2 if !dtype.is_float() => put(values, out, |x| (x as u16).to_le_bytes()),
        1 if dtype == DType::Bool => put(values, out, |x| [u8::from(x != 0)]),
        1 if dtype.is_int() => put(values, out, |x| [x as u8]),
        size => {
            for (&x, o) in values.iter().zip(out.chunks_exact_mut(size)) {
                write_bits(f32_to_bits(dtype, x as f32), o);
            }
        }
    }
}

/// The engines' only conversion from fp32 to an integer type: round to nearest even, saturate to the type's range, NaN becomes 0.
///
/// The rounding follows the hardware: nki-library's `_modulo` (attention_tkg) computes `floor(x / y)` as a copy of
/// `x / y - 0.5` from float32 to int32 and calls that "round". Saturation is assumed; the manual does not say.
pub fn round_to_int(dtype: DType, value: f32) -> i64 {
    match dtype.int_range() {
        _ if dtype == DType::Bool => i64::from(value != 0.0),
        Some((low, high)) => (value.round_ties_even() as i64).clamp(low, high),
        None => value.round_ties_even() as i64,
    }
}

/// The value of one element, from its zero-extended bits (for int64, only the low 32 are available).
pub fn bits_to_f32(dtype: DType, bits: u32) -> f32 {
    let mut out = [0.0];
    decode_f32(dtype, &u64::from(bits).to_le_bytes()[..dtype.size()], &mut out);
    out[0]
}

/// The bits (zero-extended) of one element; for int64, the low 32.
pub fn f32_to_bits(dtype: DType, value: f32) -> u32 {
    let mut out = [0; 8];
    encode_f32(dtype, &[value], &mut out[..dtype.size()]);
    u64::from_le_bytes(out) as u32
}

/// The integer value of one element, from its bits (for int64, only the low 32 are available).
pub fn bits_to_i64(dtype: DType, bits: u32) -> i64 {
    let mut out = [0];
    decode_i64(dtype, &u64::from(bits).to_le_bytes()[..dtype.size()], &mut out);
    out[0]
}

/// The bits of one integer element; wraps. For int64, the low 32.
pub fn i64_to_bits(dtype: DType, value: i64) -> u32 {
    let mut out = [0; 8];
    encode_i64(dtype, &[value], &mut out[..dtype.size()]);
    u64::from_le_bytes(out) as u32
}

/// An element's bytes (up to 4 of them) as bits, zero-extended.
pub fn read_bits(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).rev().fold(0, |bits, &b| bits << 8 | u32::from(b))
}

/// Stores an element's bits in its bytes (1, 2 or 4 of them).
pub fn write_bits(bits: u32, out: &mut [u8]) {
    for (o, b) in out.iter_mut().zip(bits.to_le_bytes()) {
        *o = b;
    }
}

#[inline(always)]
fn each<const N: usize, T>(bytes: &[u8], out: &mut [T], f: impl Fn([u8; N]) -> T) {
    for (o, b) in out.iter_mut().zip(bytes.as_chunks::<N>().0) {
        *o = f(*b);
    }
}

#[inline(always)]
fn put<const N: usize, T: Copy>(values: &[T], out: &mut [u8], f: impl Fn(T) -> [u8; N]) {
    for (&x, o) in values.iter().zip(out.as_chunks_mut::<N>().0) {
        *o = f(x);
    }
}

/// [`round_to_int`] for types of up to 16 bits: adding 1.5 * 2^23 leaves the rounded integer in the low bits. (A saturating `as` does not
/// vectorise.)
#[inline(always)]
fn round16(value: f32, low: f32, high: f32) -> u32 {
    let x = if value < low { low } else { value };
    let x = if x > high { high } else { x };
    let bits = (x + 12_582_912.0).to_bits();
    if value.is_nan() { 0 } else { bits }
}

/// [`round_to_int`] for 32-bit types, by the same trick in double precision.
#[inline(always)]
fn round32(value: f32, low: f64, high: f64) -> u32 {
    let x = f64::from(value);
    let x = if x < low { low } else { x };
    let x = if x > high { high } else { x };
    let bits = (x + 6_755_399_441_055_744.0).to_bits() as u32;
    if value.is_nan() { 0 } else { bits }
}

#[inline(always)]
fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds to nearest even; NaN becomes the quiet NaN of its sign, as in ml_dtypes.
#[inline(always)]
fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = ((bits >> 16) & 0x8000) | 0x7fc0;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { rounded }) as u16
}

/// Exact. The multiplication normalises subnormals.
#[inline(always)]
fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let scaled = (f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = 0x7f80_0000 | magnitude << 13;
    f32::from_bits(sign | if magnitude >= 0x7c00 { special } else { scaled })
}

/// Rounds to nearest even; a NaN keeps its upper payload bits and is made quiet.
#[inline(always)]
fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // The last place of 0.5 is 2^-24, the step of f16's subnormals.
    let half = 126 << 23;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(half)).to_bits().wrapping_sub(half);
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + ((magnitude >> 13) & 1)) >> 13;
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    let finite = if finite > 0x7c00 { 0x7c00 } else { finite };
    let nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    (sign | if magnitude > 0x7f80_0000 { nan } else { finite }) as u16
}
