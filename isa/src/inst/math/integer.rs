//! Operators on exact integers: bitvec operators on bit patterns, and GpSimd's native 32-bit arithmetic.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::alu::Rhs;
use crate::dtype::DType;
use crate::names::AluOp;
use crate::view::View;

/// Widths in bits of the elements of an instruction.
#[derive(Debug, Clone, Copy)]
pub struct Widths {
    /// Of the first operand.
    operand: u32,
    /// In which it computes: of the first operand or of the result, whichever is wider.
    whole: u32,
}

impl Widths {
    /// Of an instruction with these types of its first operand and its result.
    pub fn of(operand: DType, dst: DType) -> Self {
        let [operand, dst] = [operand, dst].map(|dtype| 8 * dtype.size() as u32);
        Widths { operand, whole: operand.max(dst) }
    }

    /// Of the operator that follows.
    fn next(self) -> Self {
        Widths { operand: self.whole, ..self }
    }

    /// The tiles that a bitvec operator takes, narrower ones extended by zeros: the engine "treats all input elements as bit patterns without any data
    /// type casting" (manual, `tensor_tensor`). *Open*: the manual does not mention operands of several widths.
    pub(crate) fn patterns<'a>(self, operands: &[&'a View]) -> SmallVec<[Cow<'a, View>; 4]> {
        let pattern = |view: &&'a View| match 8 * (view.dtype.size() as u32) < self.whole {
            true => Cow::Owned(View { dtype: view.dtype.pattern(), ..(*view).clone() }),
            false => Cow::Borrowed(*view),
        };
        operands.iter().map(pattern).collect()
    }
}

/// `out = x op y` (`y op x` if `reverse`) on values that are sign- or zero-extended to 64 bits.
///
/// Results are not wrapped: the write to memory does that. Shifts to the left and logical shifts to the right use the pattern of `widths.whole`
/// bits; by as many bits or more (or by a negative amount) the result is 0. Arithmetic shifts to the right repeat the sign of the operand's
/// pattern. Division truncates, `mod` floors, `fmod` truncates, and dividing by 0 results in 0. Comparisons and logical operators
/// return 1 or 0. Power wraps and is 0 for a negative exponent.
pub fn apply(op: AluOp, reverse: bool, widths: Widths, x: &[i64], y: Rhs<'_, i64>, out: &mut [i64]) {
    let swap = reverse && !op.is_unary();
    each(x, y, out, move |x, y| if swap { scalar(op, widths, y, x) } else { scalar(op, widths, x, y) });
}

/// `row = row op y`, or `y op row` if `reverse`, of the result of another operator; as [`apply`].
pub fn apply_in_place(op: AluOp, reverse: bool, widths: Widths, row: &mut [i64], y: Rhs<'_, i64>) {
    let x = row.to_vec();
    apply(op, reverse, widths.next(), &x, y, row);
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
pub fn scalar(op: AluOp, widths: Widths, x: i64, y: i64) -> i64 {
    let pattern = |bits: u32| x & ((1i64 << bits) - 1);
    let shift = |bits: u32| u32::try_from(y).ok().filter(|&s| s < bits);
    let Widths { operand, whole } = widths;
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
        AluOp::LeftShift | AluOp::ArithmeticLeftShift => shift(whole).map_or(0, |s| pattern(whole) << s),
        AluOp::RightShift => shift(whole).map_or(0, |s| pattern(whole) >> s),
        AluOp::ArithmeticRightShift => {
            // The sign of the pattern, even for unsigned element types.
            let signed = pattern(operand) << (64 - operand) >> (64 - operand);
            signed >> shift(operand).unwrap_or(63)
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

/// Of 32-bit integers.
const WORD: Widths = Widths { operand: 32, whole: 32 };

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
            rest.iter().fold(first, |acc, &x| scalar(op, WORD, acc, x))
        }
    }
}
