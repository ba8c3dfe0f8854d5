//! The formats of OCP Microscaling (MX): the shared scale, and the elements that are packed by four.
//!
//! Source: "OCP Microscaling Formats (MX) Specification" 1.0; nki.language for the packing; ml_dtypes where the specification leaves a choice.

use super::DType;
use super::codec::encode_f32;
use super::fp8::{E4M3FN, E4M3FN_VALUES, E5M2, E5M2_VALUES};

/// Values of the sixteen codes of float4_e2m1fn.
const E2M1FN_VALUES: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// The value of a float8_e8m0fnu code: `2^(code - 127)`, NaN for 255.
#[inline(always)]
pub fn mx_scale_value(code: u8) -> f32 {
    f32::from_bits(match code {
        // The smallest power, 2^-127, is a subnormal fp32.
        0 => 0x0040_0000,
        255 => 0x7fc0_0000,
        code => u32::from(code) << 23,
    })
}

/// The float8_e8m0fnu code nearest to `value`, as ml_dtypes rounds: ties round to the larger power; zero, negative values, infinity and values
/// that round above 2^127 become NaN; values below 2^-127 become 2^-127.
#[inline(always)]
pub fn mx_scale_bits(value: f32) -> u8 {
    let bits = value.to_bits();
    let normal = bits.wrapping_add(0x0040_0000) >> 23;
    // Subnormal: 2^-127 itself has code 0; larger subnormals round up.
    let small = u32::from(bits > 0x0040_0000);
    let code = if bits < 0x0080_0000 { small } else { normal };
    // With the sign bit set, `bits` is larger than every positive number.
    if bits == 0 || bits >= 0x7f40_0000 { 255 } else { code as u8 }
}

/// The element format of a packed type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MxElement {
    /// float8_e4m3fn.
    E4M3FN,
    /// float8_e5m2.
    E5M2,
    /// float4_e2m1fn.
    E2M1FN,
}

impl MxElement {
    /// The four values of a packed element, from its bits (zero-extended).
    #[inline(always)]
    pub fn unpack(self, bits: u32) -> [f32; 4] {
        let byte = |i: u32| usize::from((bits >> (8 * i)) as u8);
        match self {
            MxElement::E4M3FN => [0, 1, 2, 3].map(|i| E4M3FN_VALUES[byte(i)]),
            MxElement::E5M2 => [0, 1, 2, 3].map(|i| E5M2_VALUES[byte(i)]),
            MxElement::E2M1FN => [0, 1, 2, 3].map(|i| E2M1FN_VALUES[(bits >> (4 * i)) as usize & 15]),
        }
    }

    /// Packs values, each rounded as by [`encode`](Self::encode). Their number is a multiple of four.
    pub fn pack_all(self, values: &[f32]) -> Vec<u32> {
        let mut codes = vec![0; values.len()];
        match self {
            MxElement::E4M3FN => encode_f32(DType::F8E4M3FN, values, &mut codes),
            MxElement::E5M2 => encode_f32(DType::F8E5M2, values, &mut codes),
            MxElement::E2M1FN => codes.iter_mut().zip(values).for_each(|(code, &x)| *code = self.encode(x)),
        }
        codes.as_chunks().0.iter().map(|&four| self.pack(four)).collect()
    }

    /// The code of `value`, rounded to nearest even, as in ml_dtypes: float4_e2m1fn saturates, and encodes NaN as zero.
    pub fn encode(self, value: f32) -> u8 {
        match self {
            MxElement::E4M3FN => E4M3FN.encode(value, E4M3FN.overflow),
            MxElement::E5M2 => E5M2.encode(value, E5M2.overflow),
            MxElement::E2M1FN => {
                if value.is_nan() {
                    return if value.is_sign_negative() { 0 } else { 8 };
                }
                // Ties round to the even code: the bounds alternate between open and closed.
                let x = value.abs();
                let above = [x > 0.25, x >= 0.75, x > 1.25, x >= 1.75, x > 2.5, x >= 3.5, x > 5.0];
                let code = above.iter().filter(|a| **a).count() as u8;
                code | u8::from(value.is_sign_negative()) << 3
            }
        }
    }

    /// Packs four codes into an element.
    pub fn pack(self, codes: [u8; 4]) -> u32 {
        let bits = if self == MxElement::E2M1FN { 4 } else { 8 };
        codes.iter().rev().fold(0, |packed, &code| packed << bits | u32::from(code))
    }

    /// The largest exponent of a finite value.
    pub fn max_exponent(self) -> i32 {
        match self {
            MxElement::E4M3FN => 8,
            MxElement::E5M2 => 15,
            MxElement::E2M1FN => 2,
        }
    }
}

impl DType {
    /// The format of the four elements of a packed type.
    pub fn mx_element(self) -> Option<MxElement> {
        match self {
            DType::F8E4M3FNX4 => Some(MxElement::E4M3FN),
            DType::F8E5M2X4 => Some(MxElement::E5M2),
            DType::F4E2M1FNX4 => Some(MxElement::E2M1FN),
            _ => None,
        }
    }
}
