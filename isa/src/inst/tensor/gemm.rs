//! The multiplication that the tensor engine's numerics rest on.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, CowArray, Ix2};

use crate::dtype::DType;

/// What the engine sees of an operand: tfloat32 keeps 10 bits of mantissa.
pub(crate) fn tensor_operand(tile: ArrayView2<'_, f32>, dtype: DType) -> CowArray<'_, f32, Ix2> {
    if dtype == DType::TF32 { CowArray::from(tile.mapv(round_tf32)) } else { CowArray::from(tile) }
}

/// Rounds to 10 mantissa bits, ties to even.
fn round_tf32(x: f32) -> f32 {
    const DROPPED: u32 = 13;
    if !x.is_finite() {
        return x;
    }
    let bits = x.to_bits();
    let half = (1 << (DROPPED - 1)) - 1 + ((bits >> DROPPED) & 1);
    f32::from_bits((bits + half) & !((1 << DROPPED) - 1))
}

/// Below this many multiply-adds a second thread costs more than it saves.
const SPLIT_ABOVE: usize = 1 << 20;

/// `out = stationary.T @ moving`, or `out +=` it. Each element's sum runs over the rows in order, whatever the tiling or the
/// number of threads; it is added to what `out` holds at the end.
pub(crate) fn multiply(
    stationary: ArrayView2<'_, f32>,
    moving: ArrayView2<'_, f32>,
    add: bool,
    out: ArrayViewMut2<'_, f32>,
) {
    multiply_on(rayon::current_num_threads(), stationary, moving, add, out);
}

fn multiply_on(
    threads: usize,
    stationary: ArrayView2<'_, f32>,
    moving: ArrayView2<'_, f32>,
    add: bool,
    mut out: ArrayViewMut2<'_, f32>,
) {
    let columns = moving.ncols();
    if threads > 1 && stationary.len() * columns >= SPLIT_ABOVE {
        // Halves of whole registers of the inner loop.
        let middle = (columns / 2).next_multiple_of(16).min(columns);
        let (left, right) = moving.split_at(Axis(1), middle);
        let (out_left, out_right) = out.split_at(Axis(1), middle);
        rayon::join(
            || multiply_on(threads / 2, stationary, left, add, out_left),
            || multiply_on(threads - threads / 2, stationary, right, add, out_right),
        );
        return;
    }
    let beta = if add { 1.0 } else { 0.0 };
    general_mat_mul(1.0, &stationary.t(), &moving, beta, &mut out);
}

/// The product as a new array.
pub(crate) fn product(stationary: ArrayView2<'_, f32>, moving: ArrayView2<'_, f32>) -> Array2<f32> {
    let mut out = Array2::zeros((stationary.ncols(), moving.ncols()));
    multiply(stationary, moving, false, out.view_mut());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that need all 24 bits, so that the order of a sum shows.
    fn noise(n: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
        (0..n)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                (state as f32 / u32::MAX as f32 - 0.5) * 4.0
            })
            .collect()
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let (k, m, n) = (128, 128, 500);
        let s = Array2::from_shape_vec((k, m), noise(k * m, 1)).unwrap();
        let x = Array2::from_shape_vec((k, n), noise(k * n, 2)).unwrap();
        for add in [false, true] {
            let mut one = Array2::from_elem((m, n), 0.1);
            multiply_on(1, s.view(), x.view(), add, one.view_mut());
            for threads in [2, 3, 4] {
                let mut many = Array2::from_elem((m, n), 0.1);
                multiply_on(threads, s.view(), x.view(), add, many.view_mut());
                assert!(one.iter().zip(&many).all(|(a, b)| a.to_bits() == b.to_bits()), "{threads} threads");
            }
        }
    }

    #[test]
    fn tfloat32_rounds_to_ten_bits() {
        let ulp = 1.0 / 1024.0;
        assert_eq!(round_tf32(1.0 + ulp / 2.0), 1.0);
        assert_eq!(round_tf32(1.0 + ulp * 1.5), 1.0 + 2.0 * ulp);
        assert_eq!(round_tf32(-1.0 - ulp * 0.51), -1.0 - ulp);
        assert_eq!(round_tf32(f32::MAX), f32::INFINITY);
        assert!(round_tf32(f32::from_bits(0x7F80_0001)).is_nan());
    }
}
