//! Operators on exact integers: bitvec operators on bit patterns, and GpSimd's native 32-bit arithmetic.

use super::alu::Rhs;
use crate::names::AluOp;

/// `out = x op y` (`y op x` if `reverse`) on values of `bits` bits that are sign- or zero-extended to 64.
///
/// Results are not wrapped: the write to memory does that. Shifts use the pattern of `bits` bits; a shift by `bits` or more
/// (or by a negative amount) results in 0, or the sign for the arithmetic right shift. Division truncates, `mod` floors, `fmod`
/// truncates, and dividing by 0 results in 0. Comparisons and logical operators return 1 or 0. Power wraps and is 0 for a negative exponent.
pub fn apply(op: AluOp, reverse: bool, bits: u32, x: &[i64], y: Rhs<'_, i64>, out: &mut [i64]) {
    let swap = reverse && !op.is_unary();
    each(x, y, out, move |x, y| if swap { scalar(op, bits, y, x) } else { scalar(op, bits, x, y) });
}

/// `row = row op y`, or `y op row` if `reverse`; as [`apply`].
pub fn apply_in_place(op: AluOp, reverse: bool, bits: u32, row: &mut [i64], y: Rhs<'_, i64>) {
    let x = row.to_vec();
    apply(op, reverse, bits, &x, y, row);
}

fn each(x: &[i64], y: Rhs<'_, i64>, out: &mut [i64], f: impl Fn(i64, i64) -> i64) {
    match y {
        Rhs::Row(y) => {
            for ((o, &x), &y) in out.iter_mut().zip(x).zip(y) {
                *o = f(x, y);
            }
        }
        Rhs::One(y) => {
            for (o, &x) in out.iter_mut().zip(x) {
                *o = f(x, y);
            }
        }
    }
}

/// One element of [`apply`].
pub fn scalar(op: AluOp, bits: u32, x: i64, y: i64) -> i64 {
    let pattern = x & ((1i64 << bits) - 1);
    let shift = u32::try_from(y).ok().filter(|&s| s < bits);
    match op {
        AluOp::Bypass => x,
        AluOp::Add => x.wrapping_add(y),
        AluOp::Subtract => x.wrapping_sub(y),
        AluOp::Multiply => x.wrapping_mul(y),
        AluOp::Divide => x.checked_div(y).unwrap_or(0),
        AluOp::Max => x.max(y),
        AluOp::Min => x.min(y),
        AluOp::AbsMax => {
            if x.abs() > y.abs() {
                x
            } else {
                y
            }
        }
        AluOp::AbsMin => {
            if x.abs() < y.abs() {
                x
            } else {
                y
            }
        }
        AluOp::Power => u32::try_from(y).map_or(0, |y| x.wrapping_pow(y)),
        AluOp::Mod => match x.checked_rem(y) {
            Some(r) if r != 0 && (r < 0) != (y < 0) => r + y,
            Some(r) => r,
            None => 0,
        },
        AluOp::Fmod => x.checked_rem(y).unwrap_or(0),
        AluOp::Equal => i64::from(x == y),
        AluOp::NotEqual => i64::from(x != y),
        AluOp::Greater => i64::from(x > y),
        AluOp::GreaterEqual => i64::from(x >= y),
        AluOp::Less => i64::from(x < y),
        AluOp::LessEqual => i64::from(x <= y),
        AluOp::LogicalAnd => i64::from(x != 0 && y != 0),
        AluOp::LogicalOr => i64::from(x != 0 || y != 0),
        AluOp::LogicalXor => i64::from((x != 0) != (y != 0)),
        AluOp::LogicalNot => i64::from(x == 0),
        AluOp::BitwiseAnd => x & y,
        AluOp::BitwiseOr => x | y,
        AluOp::BitwiseXor => x ^ y,
        AluOp::Invert => !x,
        AluOp::LeftShift | AluOp::ArithmeticLeftShift => shift.map_or(0, |s| pattern << s),
        AluOp::RightShift => shift.map_or(0, |s| pattern >> s),
        AluOp::ArithmeticRightShift => {
            // The sign of the pattern, even for unsigned element types.
            let signed = pattern << (64 - bits) >> (64 - bits);
            signed >> shift.unwrap_or(63)
        }
        AluOp::Rsqrt | AluOp::Reciprocal => scalar_float(op, x),
        AluOp::Abs => x.abs(),
        AluOp::Square => x.wrapping_mul(x),
        AluOp::Relu => x.max(0),
    }
}

/// Operators without an integer definition are computed in fp32.
fn scalar_float(op: AluOp, x: i64) -> i64 {
    super::alu::scalar(op, x as f32, 0.0).round_ties_even() as i64
}

/// Reduces a row. The result of an empty row is the operator's neutral element.
pub fn reduce(op: AluOp, row: &[i64]) -> i64 {
    let neutral = match op {
        AluOp::BitwiseAnd => -1,
        AluOp::Multiply | AluOp::LogicalAnd => 1,
        _ => 0,
    };
    match row.split_first() {
        None => neutral,
        Some((&first, rest)) => {
            let first = if matches!(op, AluOp::LogicalAnd | AluOp::LogicalOr | AluOp::LogicalXor) {
                i64::from(first != 0)
            } else {
                first
            };
            rest.iter().fold(first, |acc, &x| scalar(op, 32, acc, x))
        }
    }
}
