//! The 8-bit floats: one description per format, decoding by table, encoding by integer arithmetic.

use super::DType;

/// The result for a finite value that exceeds the largest finite one after rounding.
///
/// The default of each format follows ml_dtypes, so that results are bit-equal with it: infinity where the format has one,
/// else NaN. Infinities follow the same rule as overflowing values. NaN stays NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// Infinity of the same sign; NaN in a format without infinities.
    ToInf,
    /// The largest finite value of the same sign.
    Saturate,
    /// NaN of the same sign.
    ToNan,
}

/// An 8-bit float format: a sign bit, `7 - mantissa` exponent bits, `mantissa` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fp8 {
    /// Mantissa bits.
    pub mantissa: u32,
    /// Exponent bias.
    pub bias: u32,
    /// Code of the largest positive finite value.
    pub max: u8,
    /// Code of infinity, if there is one.
    pub infinity: Option<u8>,
    /// Code that a NaN encodes to; every code above infinity (or equal to this one) is NaN.
    pub nan: u8,
    /// ml_dtypes' overflow rule.
    pub overflow: Overflow,
}

/// The three formats, as `(dtype, format)`.
pub const FP8: [(DType, Fp8); 3] = [(DType::F8E4M3, E4M3), (DType::F8E4M3FN, E4M3FN), (DType::F8E5M2, E5M2)];

/// IEEE-like e4m3: max 240.
pub(super) const E4M3: Fp8 =
    Fp8 { mantissa: 3, bias: 7, max: 0x77, infinity: Some(0x78), nan: 0x7c, overflow: Overflow::ToInf };
/// OCP e4m3fn: max 448, no infinity, one NaN per sign.
pub(super) const E4M3FN: Fp8 =
    Fp8 { mantissa: 3, bias: 7, max: 0x7e, infinity: None, nan: 0x7f, overflow: Overflow::ToNan };
/// e5m2: max 57344.
pub(super) const E5M2: Fp8 =
    Fp8 { mantissa: 2, bias: 15, max: 0x7b, infinity: Some(0x7c), nan: 0x7e, overflow: Overflow::ToInf };

/// Values of all codes.
pub(super) static E4M3_VALUES: [f32; 256] = E4M3.table();
pub(super) static E4M3FN_VALUES: [f32; 256] = E4M3FN.table();
pub(super) static E5M2_VALUES: [f32; 256] = E5M2.table();

impl Fp8 {
    /// The value of `code`. NaN codes decode to a quiet NaN of the same sign.
    pub const fn decode(&self, code: u8) -> f32 {
        let sign = ((code as u32) & 0x80) << 24;
        let magnitude = (code & 0x7f) as u32;
        let exponent = magnitude >> self.mantissa;
        let fraction = magnitude & ((1 << self.mantissa) - 1);
        let is_infinity = matches!(self.infinity, Some(i) if i == code & 0x7f);
        let bits = if is_infinity {
            0x7f80_0000
        } else if code & 0x7f > self.max {
            0x7fc0_0000
        } else if exponent == 0 {
            // Subnormal: fraction * 2^(1 - bias - mantissa); exact, every fp8 value is a normal f32.
            let unit = f32::from_bits((127 + 1 - self.bias - self.mantissa) << 23);
            (fraction as f32 * unit).to_bits()
        } else {
            ((exponent + 127 - self.bias) << 23) | (fraction << (23 - self.mantissa))
        };
        f32::from_bits(bits | sign)
    }

    const fn table(&self) -> [f32; 256] {
        let mut out = [0.0; 256];
        let mut code = 0;
        while code < 256 {
            out[code] = self.decode(code as u8);
            code += 1;
        }
        out
    }

    /// The code of `value`, rounded to nearest even.
    pub fn encode(&self, value: f32, overflow: Overflow) -> u8 {
        self.encode_with(value, self.beyond(overflow))
    }

    /// The code for a positive value beyond the largest finite one.
    #[inline(always)]
    pub(super) fn beyond(&self, overflow: Overflow) -> u32 {
        u32::from(match overflow {
            Overflow::ToInf => self.infinity.unwrap_or(self.nan),
            Overflow::Saturate => self.max,
            Overflow::ToNan => self.nan,
        })
    }

    /// [`Self::encode`] with a precomputed [`Self::beyond`]. Branch-free, so that a loop over it vectorises.
    #[inline(always)]
    pub(super) fn encode_with(&self, value: f32, beyond: u32) -> u8 {
        let bits = value.to_bits();
        let sign = (bits >> 24) & 0x80;
        let magnitude = bits & 0x7fff_ffff;
        // Subnormals of the format: adding a power of two whose last place is the format's smallest step rounds to it.
        let magic = (127 + 1 - self.bias - self.mantissa + 23) << 23;
        let subnormal = (f32::from_bits(magnitude) + f32::from_bits(magic)).to_bits().wrapping_sub(magic);
        // Normals: rebias, round half to even at the mantissa's last bit.
        let drop = 23 - self.mantissa;
        let odd = (magnitude >> drop) & 1;
        let half = (1 << (drop - 1)) - 1;
        let rebias = (127 - self.bias) << 23;
        let normal = magnitude.wrapping_sub(rebias).wrapping_add(half + odd) >> drop;
        let smallest_normal = (127 + 1 - self.bias) << 23;
        let code = if magnitude < smallest_normal { subnormal } else { normal };
        let code = if code > u32::from(self.max) { beyond } else { code };
        let code = if magnitude > 0x7f80_0000 { u32::from(self.nan) } else { code };
        (code | sign) as u8
    }
}

impl DType {
    /// The format of an 8-bit float.
    pub fn fp8(self) -> Option<Fp8> {
        FP8.iter().find(|(d, _)| *d == self).map(|(_, f)| *f)
    }
}
