//! Reductions of rows of fp32.

use super::alu::{maximum, minimum};
use super::simd::{Kernel, dispatch};
use crate::names::AluOp;

/// Partial results that are kept side by side: element `i` goes to lane `i % LANES`, then lanes are combined in halves.
/// The order, and so the rounding, is the same on every CPU.
const LANES: usize = 32;

/// Reduces a row with an operator for which [`AluOp::is_reduction`] holds and that is arithmetic; others give 0.
/// An empty row gives the operator's neutral element. `subtract` is the first element minus the sum of the others.
pub fn reduce(op: AluOp, row: &[f32]) -> f32 {
    match op {
        AluOp::Add => dispatch(Fold { row, neutral: 0.0, f: |a, b| a + b }),
        AluOp::Multiply => dispatch(Fold { row, neutral: 1.0, f: |a, b| a * b }),
        AluOp::Max => extreme(row, f32::NEG_INFINITY, |a, b| if a > b { a } else { b }, maximum),
        AluOp::Min => extreme(row, f32::INFINITY, |a, b| if a < b { a } else { b }, minimum),
        AluOp::Subtract => match row.split_first() {
            Some((&first, rest)) => first - reduce(AluOp::Add, rest),
            None => 0.0,
        },
        AluOp::LogicalAnd => f32::from(u8::from(row.iter().all(|&x| x != 0.0))),
        AluOp::LogicalOr => f32::from(u8::from(row.iter().any(|&x| x != 0.0))),
        AluOp::LogicalXor => f32::from(u8::from(row.iter().filter(|&&x| x != 0.0).count() % 2 == 1)),
        _ => 0.0,
    }
}

/// The value that changes nothing when it is combined with another: what an accumulator is reset to.
pub fn neutral(op: AluOp) -> f32 {
    match op {
        AluOp::Multiply | AluOp::LogicalAnd => 1.0,
        AluOp::Max => f32::NEG_INFINITY,
        AluOp::Min => f32::INFINITY,
        _ => 0.0,
    }
}

/// Reduces with `quick`, which does not look for NaN, or with `careful`, which keeps the first one of a lane, where there is a NaN.
fn extreme(
    row: &[f32],
    neutral: f32,
    quick: impl Fn(f32, f32) -> f32 + Copy,
    careful: impl Fn(f32, f32) -> f32 + Copy,
) -> f32 {
    let value = dispatch(Fold { row, neutral, f: quick });
    if dispatch(HasNan(row)) { dispatch(Fold { row, neutral, f: careful }) } else { value }
}

struct HasNan<'a>(&'a [f32]);

impl Kernel for HasNan<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        self.0.iter().fold(0, |found, x| found | u32::from(x.is_nan())) != 0
    }
}

struct Fold<'a, F> {
    row: &'a [f32],
    neutral: f32,
    f: F,
}

impl<F: Fn(f32, f32) -> f32 + Copy> Kernel for Fold<'_, F> {
    type Output = f32;
    #[inline(always)]
    fn run(self) -> f32 {
        let Fold { row, neutral, f } = self;
        let mut lanes = [neutral; LANES];
        let (chunks, rest) = row.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = f(*lane, x);
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = f(*lane, x);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                lanes[i] = f(lanes[i], lanes[i + width]);
            }
            width /= 2;
        }
        lanes[0]
    }
}
