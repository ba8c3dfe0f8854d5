//! Reductions of rows of fp32.

use super::alu::{maximum, minimum};
use super::simd::{Kernel, dispatch};
use crate::names::AluOp;

/// Number of parallel partial results: element `i` goes to lane `i % LANES`, then lanes are combined in halves.
/// The order, and so the rounding, is the same on every CPU.
const LANES: usize = 32;
/// Rows up to this length leave the other lanes empty, and selecting an instruction set does not pay off for them.
const NARROW: usize = 8;

/// Reduces a row with an arithmetic operator for which [`AluOp::is_reduction`] holds; the result of others is 0.
/// The result of an empty row is the operator's neutral element. `subtract` is the first element minus the sum of the others.
pub fn reduce(op: AluOp, row: &[f32]) -> f32 {
    match op {
        AluOp::Add => fold(row, 0.0, |a, b| a + b),
        AluOp::Multiply => fold(row, 1.0, |a, b| a * b),
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

/// The neutral element of the operator, to which accumulators are reset.
pub fn neutral(op: AluOp) -> f32 {
    match op {
        AluOp::Multiply | AluOp::LogicalAnd => 1.0,
        AluOp::Max => f32::NEG_INFINITY,
        AluOp::Min => f32::INFINITY,
        _ => 0.0,
    }
}

/// Reduces with `quick`, which ignores NaN, or, if there is a NaN, with `careful`, which keeps the first one of a lane.
fn extreme(
    row: &[f32],
    neutral: f32,
    quick: impl Fn(f32, f32) -> f32 + Copy,
    careful: impl Fn(f32, f32) -> f32 + Copy,
) -> f32 {
    let value = fold(row, neutral, quick);
    if has_nan(row) { fold(row, neutral, careful) } else { value }
}

fn has_nan(row: &[f32]) -> bool {
    if row.len() <= NARROW { HasNan(row).run() } else { dispatch(HasNan(row)) }
}

struct HasNan<'a>(&'a [f32]);

impl Kernel for HasNan<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        self.0.iter().fold(0, |found, x| found | u32::from(x.is_nan())) != 0
    }
}

/// All elements of a row, combined in the order of [`LANES`].
#[inline]
fn fold(row: &[f32], neutral: f32, f: impl Fn(f32, f32) -> f32 + Copy) -> f32 {
    if row.len() > NARROW {
        return dispatch(Fold { row, neutral, f });
    }
    // Lanes without an element hold the neutral one, which has no effect.
    let mut lanes = [neutral; NARROW];
    for (lane, &x) in lanes.iter_mut().zip(row) {
        *lane = f(neutral, x);
    }
    halve(&mut lanes, f)
}

/// Combines lanes in halves.
#[inline(always)]
fn halve<const N: usize>(lanes: &mut [f32; N], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = N / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = f(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
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
        halve(&mut lanes, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn narrow_rows_are_reduced_like_wide_ones(
            row in prop::collection::vec(prop_oneof![
                any::<f32>(),
                prop::sample::select(vec![0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, f32::MAX]),
            ], 0..=NARROW),
        ) {
            let check = |name: &str, neutral: f32, f: fn(f32, f32) -> f32| {
                let (narrow, wide) = (fold(&row, neutral, f), Fold { row: &row, neutral, f }.run());
                let alike = narrow.to_bits() == wide.to_bits() || narrow.is_nan() && wide.is_nan();
                prop_assert!(alike, "{name}: {narrow} {wide}");
                Ok(())
            };
            check("add", 0.0, |a, b| a + b)?;
            check("multiply", 1.0, |a, b| a * b)?;
            check("maximum", f32::NEG_INFINITY, maximum)?;
            check("minimum", f32::INFINITY, minimum)?;
        }
    }
}
