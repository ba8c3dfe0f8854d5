//! Element types, their sizes and their conversions.
//!
//! The conversions are bit-equal with NumPy and ml_dtypes, with one exception that follows the hardware: a float becomes an integer by
//! rounding to nearest even and saturating ([`round_to_int`]).

mod codec;
mod fp8;
mod mx;

pub use codec::{
    bits_to_f32, bits_to_i64, decode_f32, decode_i64, encode_f32, encode_f32_with, encode_i64, f32_to_bits,
    i64_to_bits, read_bits, round_to_int, write_bits,
};
pub use fp8::{FP8, Fp8, Overflow};
pub use mx::{MxElement, mx_scale_bits, mx_scale_value};

crate::named_enum! {
    /// An element type, by its `nki.language` name.
    pub enum DType: "dtype" {
        /// One byte, 0 or 1.
        Bool "bool" | "bool_",
        /// 8-bit signed integer.
        I8 "int8",
        /// 16-bit signed integer.
        I16 "int16",
        /// 32-bit signed integer.
        I32 "int32",
        /// 64-bit signed integer: DMA moves it, and scalar loads and stores use it.
        I64 "int64",
        /// 8-bit unsigned integer.
        U8 "uint8",
        /// 16-bit unsigned integer.
        U16 "uint16",
        /// 32-bit unsigned integer.
        U32 "uint32",
        /// IEEE half.
        F16 "float16",
        /// bfloat16.
        BF16 "bfloat16",
        /// IEEE single.
        F32 "float32",
        /// Stored as single; the tensor engine rounds operands to 10 mantissa bits.
        TF32 "tfloat32",
        /// IEEE-like e4m3 (max 240, has infinities), the plain FP8 of Trn1 and Trn2.
        F8E4M3 "float8_e4m3",
        /// OCP e4m3fn (max 448, no infinities).
        F8E4M3FN "float8_e4m3fn",
        /// e5m2 (IEEE-like).
        F8E5M2 "float8_e5m2",
        /// A power of two from 2^-127 to 2^127, or NaN (0xff): the scale of an MX block (OCP Microscaling).
        F8E8M0 "float8_e8m0fnu",
        /// Four float8_e4m3fn values, the first in the lowest byte.
        F8E4M3FNX4 "float8_e4m3fn_x4",
        /// Four float8_e5m2 values, the first in the lowest byte.
        F8E5M2X4 "float8_e5m2_x4",
        /// Four float4_e2m1fn values, the first in the lowest four bits.
        F4E2M1FNX4 "float4_e2m1fn_x4",
    }
}

impl DType {
    /// Bytes per element.
    pub fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 | DType::F8E4M3 | DType::F8E4M3FN | DType::F8E5M2 | DType::F8E8M0 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 | DType::F4E2M1FNX4 => 2,
            DType::I32 | DType::U32 | DType::F32 | DType::TF32 | DType::F8E4M3FNX4 | DType::F8E5M2X4 => 4,
            DType::I64 => 8,
        }
    }

    /// Whether this is a floating-point type. Packed types are not: each of their elements is four numbers.
    pub fn is_float(self) -> bool {
        !self.is_int() && !self.is_packed()
    }

    /// Whether an element packs four small floats. Only copies and the MX instructions take these types.
    pub fn is_packed(self) -> bool {
        matches!(self, DType::F8E4M3FNX4 | DType::F8E5M2X4 | DType::F4E2M1FNX4)
    }

    /// Whether this is an integer type (bool included).
    pub fn is_int(self) -> bool {
        matches!(
            self,
            DType::Bool | DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U8 | DType::U16 | DType::U32
        )
    }

    /// Whether values are signed.
    pub fn is_signed(self) -> bool {
        !matches!(self, DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::F8E8M0)
    }

    /// The unsigned integers of the same width; of 32 bits for wider types.
    pub fn pattern(self) -> DType {
        match self.size() {
            1 => DType::U8,
            2 => DType::U16,
            _ => DType::U32,
        }
    }

    /// The result type of an operation on two types: a float wins over an integer, then the wider type. Two different types of one size promote
    /// to the smallest type that holds the values of both, if there is one.
    ///
    /// Source: the manual of Beta 1 (SDK 2.26), "NKI Type Promotion".
    pub fn promote(self, other: DType) -> DType {
        if self == other {
            return self;
        }
        match (self.is_float(), other.is_float()) {
            (true, false) => self,
            (false, true) => other,
            (true, true) if self.size() != other.size() => {
                if self.size() > other.size() {
                    self
                } else {
                    other
                }
            }
            (true, true) if self.size() == 1 => DType::BF16,
            (true, true) => DType::F32,
            _ => self.promote_integers(other),
        }
    }

    fn promote_integers(self, other: DType) -> DType {
        if self.size() != other.size() {
            let (wide, narrow) = if self.size() > other.size() { (self, other) } else { (other, self) };
            return match wide {
                DType::U16 if narrow.is_signed() => DType::I32,
                DType::U32 if narrow.is_signed() => DType::F32,
                _ => wide,
            };
        }
        match (self, other) {
            (DType::Bool, wide) | (wide, DType::Bool) => wide,
            _ => match self.size() {
                1 => DType::I16,
                2 => DType::I32,
                _ => DType::F32,
            },
        }
    }

    /// Lowest and highest value of an integer type (bool: 0 and 1); `None` for floats.
    pub fn int_range(self) -> Option<(i64, i64)> {
        Some(match self {
            DType::Bool => (0, 1),
            DType::I8 => (i8::MIN.into(), i8::MAX.into()),
            DType::I16 => (i16::MIN.into(), i16::MAX.into()),
            DType::I32 => (i32::MIN.into(), i32::MAX.into()),
            DType::I64 => (i64::MIN, i64::MAX),
            DType::U8 => (0, u8::MAX.into()),
            DType::U16 => (0, u16::MAX.into()),
            DType::U32 => (0, u32::MAX.into()),
            _ => return None,
        })
    }

    /// The value of unwritten memory: NaN for floats, 4 for integers (1 for bool), as the official CPU simulator
    /// fills fresh tensors (nki_simulator, "Uninitialized Memory Detection"); packed types hold four NaN, or the code 4 if the format
    /// has no NaN. Returns the element's bits, zero-extended.
    pub fn uninitialized_bits(self) -> u32 {
        match self {
            DType::Bool => 1,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U8 | DType::U16 | DType::U32 => 4,
            DType::F8E4M3FNX4 => 0x7f7f_7f7f,
            DType::F8E5M2X4 => 0x7e7e_7e7e,
            DType::F4E2M1FNX4 => 0x4444,
            _ => f32_to_bits(self, f32::NAN),
        }
    }
}
