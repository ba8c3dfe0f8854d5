//! Passes over rows of fp32 that find values out of range.

use super::simd::{Kernel, dispatch};

/// The magnitude of infinity; that of a NaN is larger.
pub const INFINITE: u32 = 0x7f80_0000;
/// The magnitude of the largest fp32 number, which kernels use in place of infinity.
pub const LARGEST: u32 = 0x7f7f_ffff;
/// The magnitude of 2^127: twice this value is beyond every finite fp32 number.
const TOP_BINADE: u32 = 0x7f00_0000;
/// For rows up to this length, selecting an instruction set does not pay off.
const SHORT: usize = 16;

/// The bits of `|x|`, which have the order of the magnitudes.
#[inline(always)]
pub fn magnitude(x: f32) -> u32 {
    x.to_bits() & 0x7fff_ffff
}

/// The largest magnitude of a row; 0 if it is empty.
#[inline]
pub fn max_magnitude(row: &[f32]) -> u32 {
    if row.len() > SHORT {
        return most_of_long(row);
    }
    row.iter().fold(0, |most, &x| most.max(magnitude(x)))
}

// Not inlined in other crates, which may be compiled without vectorisation.
#[inline(never)]
fn most_of_long(row: &[f32]) -> u32 {
    dispatch(Most(row))
}

/// Whether a row has a magnitude of at least `limit`; NaN counts.
///
/// The limits of fp32 and bfloat16 are first tested with the sum of the row: a finite sum of the values, or of the doubled values, proves that
/// each value is finite, or below 2^127. A sum takes one instruction per vector, a maximum of magnitudes two.
#[inline]
pub fn any_at_least(row: &[f32], limit: u32) -> bool {
    let suspect =
        row.len() <= SHORT || limit < TOP_BINADE || !sum_is_finite(row, if limit == INFINITE { 1.0 } else { 2.0 });
    suspect && max_magnitude(row) >= limit
}

#[inline(never)]
fn sum_is_finite(row: &[f32], factor: f32) -> bool {
    pulp::Arch::new().dispatch(Sum { row, factor }).is_finite()
}

/// `factor` times the sum of a row, in any order and rounding: only its finiteness matters.
struct Sum<'a> {
    row: &'a [f32],
    factor: f32,
}

impl pulp::WithSimd for Sum<'_> {
    type Output = f32;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) -> f32 {
        let (vectors, rest) = S::as_simd_f32s(self.row);
        let (groups, single) = pulp::as_arrays::<4, _>(vectors);
        let factor = simd.splat_f32s(self.factor);
        let mut sums = [simd.splat_f32s(0.0); 4];
        for group in groups {
            for (sum, &x) in sums.iter_mut().zip(group) {
                *sum = simd.mul_add_e_f32s(x, factor, *sum);
            }
        }
        let mut sum = simd.add_f32s(simd.add_f32s(sums[0], sums[1]), simd.add_f32s(sums[2], sums[3]));
        for &x in single {
            sum = simd.mul_add_e_f32s(x, factor, sum);
        }
        simd.reduce_sum_f32s(sum) + rest.iter().map(|x| x * self.factor).sum::<f32>()
    }
}

struct Most<'a>(&'a [f32]);

impl Kernel for Most<'_> {
    type Output = u32;
    #[inline(always)]
    fn run(self) -> u32 {
        // Magnitudes have no sign bit, and baseline CPUs have at most a signed maximum. The compiler vectorises a plain reduction well; with
        // manual lanes it gathers across them (measured, three times slower).
        self.0.iter().fold(0, |most: i32, &x| most.max(magnitude(x) as i32)) as u32
    }
}

/// Whether any value is outside `low..high`. NaN does not count.
#[inline(never)]
pub fn any_outside(row: &[f32], low: f32, high: f32) -> bool {
    dispatch(AnyOutside(row, low, high))
}

struct AnyOutside<'a>(&'a [f32], f32, f32);

impl Kernel for AnyOutside<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let AnyOutside(row, low, high) = self;
        row.iter().fold(0, |found, &x| found | u32::from(x < low) | u32::from(x >= high)) != 0
    }
}

/// Whether any magnitude is below `low` or above `high`, both magnitudes. NaN counts as above.
#[inline(never)]
pub fn any_magnitude_outside(row: &[f32], low: u32, high: u32) -> bool {
    dispatch(AnyMagnitudeOutside(row, low, high))
}

struct AnyMagnitudeOutside<'a>(&'a [f32], u32, u32);

impl Kernel for AnyMagnitudeOutside<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let AnyMagnitudeOutside(row, low, high) = self;
        let (low, high) = (low as i32, high as i32);
        let outside = |x: f32| u32::from((magnitude(x) as i32) < low) | u32::from(magnitude(x) as i32 > high);
        row.iter().fold(0, |found, &x| found | outside(x)) != 0
    }
}

/// Raises each element of `cover` to at least the magnitude of the corresponding element of `row`.
#[inline(never)]
pub fn raise_to(cover: &mut [u32], row: &[f32]) {
    dispatch(Raise(cover, row));
}

struct Raise<'a>(&'a mut [u32], &'a [f32]);

impl Kernel for Raise<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (c, &x) in self.0.iter_mut().zip(self.1) {
            *c = (*c as i32).max(magnitude(x) as i32) as u32;
        }
    }
}

/// Definition of a new value in a result (see [`first_new_non_finite`]).
#[derive(Debug, Clone, Copy)]
pub struct NewNonFinite {
    /// The smallest magnitude that the result's type stores as infinity or NaN.
    pub limit: u32,
    /// Whether the arithmetic can produce infinity or NaN; else only the rounding to the result's type can.
    pub arises: bool,
}

impl NewNonFinite {
    /// Whether the result `x` is infinite or NaN although its operands, of magnitude `cover` at most, are not.
    /// An operand of [`LARGEST`] counts as infinite.
    #[inline(always)]
    pub fn is_new(self, x: f32, cover: u32) -> bool {
        let m = magnitude(x);
        let rounded = (m >= self.limit) & (m < LARGEST);
        let infinite = (m == INFINITE) & (cover < LARGEST);
        let nan = (m > INFINITE) & (cover <= INFINITE);
        rounded | (self.arises & (infinite | nan))
    }
}

/// Position of the first new value of `row`; `cover` has the largest magnitude of each value's operands.
#[inline(never)]
pub fn first_new_non_finite(row: &[f32], cover: &[u32], new: NewNonFinite) -> Option<usize> {
    let all = || row.iter().zip(cover);
    dispatch(AnyNew(row, cover, new)).then(|| all().position(|(&x, &c)| new.is_new(x, c))).flatten()
}

struct AnyNew<'a>(&'a [f32], &'a [u32], NewNonFinite);

impl Kernel for AnyNew<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let AnyNew(row, cover, new) = self;
        row.iter().zip(cover).fold(0, |found, (&x, &c)| found | u32::from(new.is_new(x, c))) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: usize) -> Vec<f32> {
        (0..n).map(|i| i as f32 - 50.0).collect()
    }

    #[test]
    fn finds_the_largest_magnitude_at_every_place() {
        assert_eq!(max_magnitude(&[]), 0);
        for n in [1, 7, 16, 17, 100, 333] {
            for at in [0, n / 2, n - 1] {
                for special in [f32::NEG_INFINITY, f32::NAN, -f32::NAN, 1e30] {
                    let mut r = row(n);
                    r[at] = special;
                    assert_eq!(max_magnitude(&r), magnitude(special), "{n} {at} {special}");
                }
            }
        }
    }

    #[test]
    fn finds_magnitudes_that_reach_a_limit() {
        let bf16 = 0x7f7f_8000;
        for n in [0, 1, 16, 17, 63, 64, 100, 333] {
            for limit in [INFINITE, bf16, magnitude(65520.0)] {
                let mut r = row(n);
                assert!(!any_at_least(&r, limit), "{n} {limit:x}");
                let below = f32::from_bits(limit - 1);
                r.fill(below);
                assert!(!any_at_least(&r, limit), "{n} {limit:x}: all are just below");
                for at in if n == 0 { vec![] } else { vec![0, n / 2, n - 1] } {
                    for special in [f32::from_bits(limit), -f32::from_bits(limit), f32::NAN, f32::NEG_INFINITY] {
                        for others in [0.0, below, -below] {
                            let mut r = vec![others; n];
                            r[at] = special;
                            assert!(any_at_least(&r, limit), "{n} {at} {special} {limit:x} among {others}");
                        }
                    }
                }
            }
        }
        // The sum of infinities of both signs is NaN.
        let mut r = row(100);
        (r[3], r[67]) = (f32::INFINITY, f32::NEG_INFINITY);
        assert!(any_at_least(&r, INFINITE) && any_at_least(&r, bf16));
    }

    #[test]
    fn finds_values_outside() {
        let mut r = row(100);
        assert!(!any_outside(&r, -50.0, 50.0));
        assert!(any_outside(&r, -49.5, 50.0) && any_outside(&r, -50.0, 49.0));
        r[3] = f32::NAN;
        assert!(!any_outside(&r, -50.0, 50.0));
        let (low, high) = (magnitude(0.5), magnitude(2.0));
        assert!(!any_magnitude_outside(&[0.5, -2.0, 1.0], low, high));
        assert!(any_magnitude_outside(&[0.0], low, high) && any_magnitude_outside(&[-2.1], low, high));
        assert!(any_magnitude_outside(&[f32::NAN], low, high));
    }

    #[test]
    fn tells_new_values_from_those_that_the_operands_have() {
        let f32s = NewNonFinite { limit: INFINITE, arises: true };
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let finite = magnitude(3.0);
        assert!(f32s.is_new(inf, finite) && f32s.is_new(nan, finite) && f32s.is_new(nan, INFINITE));
        assert!(!f32s.is_new(inf, INFINITE) && !f32s.is_new(-inf, LARGEST) && !f32s.is_new(nan, magnitude(nan)));
        assert!(!f32s.is_new(3e38, finite));
        let half = NewNonFinite { limit: magnitude(65520.0), arises: false };
        assert!(half.is_new(70000.0, finite) && !half.is_new(inf, finite) && !half.is_new(f32::MIN, finite));
        let mut r = row(100);
        r[40] = inf;
        r[41] = nan;
        let mut cover = vec![0; 100];
        assert_eq!(first_new_non_finite(&r, &cover, f32s), Some(40));
        raise_to(&mut cover, &r);
        assert_eq!(first_new_non_finite(&r, &cover, f32s), None);
    }
}
