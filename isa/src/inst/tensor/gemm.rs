//! The multiplication that the tensor engine's numerics rest on.
//!
//! A tile of the tensor engine is small (at most 128 x 128 by 512) and its rows are contiguous, so a general matrix
//! multiplication, which packs its operands in the order its inner loop wants, spends an eighth of its time on that. This one packs less. Its
//! sums run over the rows in order with fused multiply-adds: the same bits on every CPU, for every tiling and number of threads.

use std::cell::Cell;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, CowArray, Ix2};
use pulp::Simd;

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

/// The product `stationary.T @ moving` as a new array.
pub(crate) fn product(stationary: ArrayView2<'_, f32>, moving: ArrayView2<'_, f32>) -> Array2<f32> {
    let mut out = Array2::zeros((stationary.ncols(), moving.ncols()));
    multiply(stationary, moving, false, out.view_mut());
    out
}

/// `out = stationary.T @ moving`, or `out +=` it. Each element's sum starts at zero and is added to what `out` holds at the end.
pub(crate) fn multiply(
    stationary: ArrayView2<'_, f32>,
    moving: ArrayView2<'_, f32>,
    add: bool,
    out: ArrayViewMut2<'_, f32>,
) {
    multiply_on(rayon::current_num_threads(), stationary, moving, add, out);
}

/// Below this many multiply-adds another thread costs more than it saves.
const SPLIT_ABOVE: usize = 1 << 20;

fn multiply_on(
    threads: usize,
    stationary: ArrayView2<'_, f32>,
    moving: ArrayView2<'_, f32>,
    add: bool,
    out: ArrayViewMut2<'_, f32>,
) {
    let work = stationary.len() * moving.ncols();
    let threads = threads.min(1 + work / SPLIT_ABOVE);
    let (k, m) = stationary.dim();
    let mut blocks = vec![0.0; m.div_ceil(ROWS) * k * ROWS];
    pack_stationary(threads, stationary, &mut blocks);
    split(threads, &blocks, moving, add, out);
}

/// Gives each thread a share of the columns.
fn split(threads: usize, blocks: &[f32], moving: ArrayView2<'_, f32>, add: bool, out: ArrayViewMut2<'_, f32>) {
    if threads <= 1 {
        return pulp::Arch::new().dispatch(Columns { blocks, moving, add, out });
    }
    let first = threads / 2;
    // Whole panels of the inner loop, of the widest kind.
    let middle = (moving.ncols() * first / threads).next_multiple_of(32).min(moving.ncols());
    let (left, right) = moving.split_at(Axis(1), middle);
    let (out_left, out_right) = out.split_at(Axis(1), middle);
    rayon::join(|| split(first, blocks, left, add, out_left), || split(threads - first, blocks, right, add, out_right));
}

/// Result rows that the inner loop holds in registers: 5 x 2 sums, 2 operands and a broadcast fit the 16 of AVX2, hide the latency of
/// the multiply-adds, and divide 128 with little left over.
const ROWS: usize = 5;
/// Registers per row.
const WIDTH: usize = 2;

/// The stationary operand as blocks of [`ROWS`] columns, each `[k][ROWS]`, the last filled with zeros, which `blocks` holds.
fn pack_stationary(threads: usize, stationary: ArrayView2<'_, f32>, blocks: &mut [f32]) {
    let (k, m) = stationary.dim();
    let half = m / ROWS / 2;
    if threads > 1 && half > 0 {
        let (left, right) = stationary.split_at(Axis(1), half * ROWS);
        let (to_left, to_right) = blocks.split_at_mut(half * k * ROWS);
        rayon::join(
            || pack_stationary(threads / 2, left, to_left),
            || pack_stationary(threads - threads / 2, right, to_right),
        );
        return;
    }
    for (row, values) in stationary.rows().into_iter().enumerate() {
        let at = |column: usize| (column / ROWS * k + row) * ROWS + column % ROWS;
        match values.as_slice() {
            Some(values) => {
                // Blocks of a known size: copies without a call.
                let (whole, rest) = values.as_chunks::<ROWS>();
                for (block, chunk) in whole.iter().enumerate() {
                    if let Some(to) = blocks[at(block * ROWS)..].first_chunk_mut::<ROWS>() {
                        *to = *chunk;
                    }
                }
                let start = at(whole.len() * ROWS);
                if !rest.is_empty() {
                    blocks[start..start + rest.len()].copy_from_slice(rest);
                }
            }
            None => {
                for (column, &x) in values.iter().enumerate() {
                    blocks[at(column)] = x;
                }
            }
        }
    }
}

/// The multiplication of a share of the columns, compiled for each instruction set.
struct Columns<'a> {
    blocks: &'a [f32],
    moving: ArrayView2<'a, f32>,
    add: bool,
    out: ArrayViewMut2<'a, f32>,
}

thread_local! {
    /// The packed moving operand, kept from one multiplication to the next.
    static PACKED: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

impl pulp::WithSimd for Columns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Columns { blocks, moving, add, mut out } = self;
        let (k, n) = moving.dim();
        let width = WIDTH * S::F32_LANES;
        // Rows lie pages apart, often a power of two: read once, in order, they neither evict each other nor wait for memory one by one.
        let mut packed = PACKED.take();
        packed.resize(packed.len().max(n.div_ceil(width) * k * width), 0.0);
        pack_moving::<S>(moving, &mut packed);
        for (first, panel) in (0..n).step_by(width).zip(packed.chunks_exact((k * width).max(1))) {
            let columns = width.min(n - first);
            for (block, stationary) in blocks.chunks_exact((k * ROWS).max(1)).enumerate() {
                let sums = inner(simd, stationary, panel);
                for (i, sum) in sums.iter().enumerate() {
                    let row = block * ROWS + i;
                    if row >= out.nrows() {
                        break;
                    }
                    let mut target = out.row_mut(row);
                    match target.as_slice_mut() {
                        Some(target) => store(simd, sum, add, &mut target[first..first + columns]),
                        None => {
                            let mut whole = [0.0; 64];
                            let part = &mut whole[..columns];
                            store(simd, sum, false, part);
                            for (j, &x) in part.iter().enumerate() {
                                let y = &mut target[first + j];
                                *y = if add { *y + x } else { x };
                            }
                        }
                    }
                }
            }
        }
        PACKED.set(packed);
    }
}

/// Copies the moving operand to panels `[k][width]`, one after another; columns beyond the last keep what they held.
#[inline(always)]
fn pack_moving<S: Simd>(moving: ArrayView2<'_, f32>, packed: &mut [f32]) {
    let width = WIDTH * S::F32_LANES;
    let (k, n) = moving.dim();
    for (i, row) in moving.rows().into_iter().enumerate() {
        for (panel, first) in (0..n).step_by(width).enumerate() {
            let columns = width.min(n - first);
            let at = (panel * k + i) * width;
            let to = &mut packed[at..at + columns];
            let Some(row) = row.as_slice() else {
                for (j, x) in to.iter_mut().enumerate() {
                    *x = row[first + j];
                }
                continue;
            };
            let from = &row[first..first + columns];
            let (whole, _) = S::as_simd_f32s(from);
            let (into, _) = S::as_mut_simd_f32s(to);
            match (whole.first_chunk::<WIDTH>(), into.first_chunk_mut::<WIDTH>()) {
                // A known size: a copy without a call.
                (Some(whole), Some(into)) => *into = *whole,
                _ => to.copy_from_slice(from),
            }
        }
    }
}

/// [`ROWS`] rows of sums over all of `k`.
#[inline(always)]
fn inner<S: Simd>(simd: S, stationary: &[f32], panel: &[f32]) -> [[S::f32s; WIDTH]; ROWS] {
    let mut sums = [[simd.splat_f32s(0.0); WIDTH]; ROWS];
    let (panel, _) = S::as_simd_f32s(panel);
    let (panel, _) = panel.as_chunks::<WIDTH>();
    let (stationary, _) = stationary.as_chunks::<ROWS>();
    for (moving, column) in panel.iter().zip(stationary) {
        for (sum, &x) in sums.iter_mut().zip(column) {
            let x = simd.splat_f32s(x);
            for (s, &m) in sum.iter_mut().zip(moving) {
                *s = simd.mul_add_f32s(x, m, *s);
            }
        }
    }
    sums
}

/// Writes or adds a row of sums to as many elements as there are.
#[inline(always)]
fn store<S: Simd>(simd: S, sums: &[S::f32s; WIDTH], add: bool, target: &mut [f32]) {
    let (whole, rest) = S::as_mut_simd_f32s(target);
    if let (Some(whole), true) = (whole.first_chunk_mut::<WIDTH>(), rest.is_empty()) {
        for (t, &s) in whole.iter_mut().zip(sums) {
            *t = if add { simd.add_f32s(*t, s) } else { s };
        }
        return;
    }
    let sums = bytemuck::cast_slice::<S::f32s, f32>(sums);
    for (t, &s) in target.iter_mut().zip(sums) {
        *t = if add { *t + s } else { s };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values that need all 24 bits, so that the order of a sum shows.
    fn noise(shape: (usize, usize), seed: u32) -> Array2<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
        Array2::from_shape_simple_fn(shape, || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state as f32 / u32::MAX as f32 - 0.5) * 4.0
        })
    }

    /// The sums by their definition.
    fn reference(stationary: &Array2<f32>, moving: &Array2<f32>, start: Option<&Array2<f32>>) -> Array2<f32> {
        Array2::from_shape_fn((stationary.ncols(), moving.ncols()), |(i, j)| {
            let rows = stationary.column(i).into_iter().zip(moving.column(j));
            let sum = rows.fold(0.0, |sum: f32, (&s, &m)| s.mul_add(m, sum));
            start.map_or(sum, |c| c[[i, j]] + sum)
        })
    }

    fn same_bits(a: &Array2<f32>, b: &Array2<f32>) -> bool {
        a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()))
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let s = noise((128, 128), 1);
        let x = noise((128, 500), 2);
        for add in [false, true] {
            let start = noise((128, 500), 3);
            let want = reference(&s, &x, add.then_some(&start));
            for threads in 1..5 {
                let mut out = start.clone();
                multiply_on(threads, s.view(), x.view(), add, out.view_mut());
                assert!(same_bits(&out, &want), "{threads} threads, add {add}");
            }
        }
    }

    #[test]
    fn what_a_panel_held_before_does_not_leak() {
        let s = noise((3, 2), 1);
        let mut x = noise((3, 67), 2);
        x.column_mut(66).fill(0.0);
        x.column_mut(0).fill(f32::NAN);
        let out = product(s.view(), x.view());
        assert_eq!(out.column(66).to_vec(), [0.0, 0.0]);
        assert!(out.column(0).iter().all(|x| x.is_nan()));
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Bit for bit the definition, for all shapes and layouts.
        #[test]
        fn is_the_definition(
            k in 1usize..20, m in 1usize..20, n in 1usize..90, add in any::<bool>(), layout in 0u8..8, seed in any::<u32>(),
        ) {
            // The other memory order, by transposing the transpose's copy.
            let other = |a: &Array2<f32>, flip: bool| {
                if flip { a.t().as_standard_layout().into_owned().reversed_axes() } else { a.clone() }
            };
            let s = other(&noise((k, m), seed), layout & 1 != 0);
            let x = other(&noise((k, n), seed ^ 5), layout & 2 != 0);
            let start = noise((m, n), seed ^ 9);
            let mut out = other(&start, layout & 4 != 0);
            multiply(s.view(), x.view(), add, out.view_mut());
            let want = reference(&s, &x, add.then_some(&start));
            prop_assert!(same_bits(&out, &want), "{out} {want}");
        }
    }
}
