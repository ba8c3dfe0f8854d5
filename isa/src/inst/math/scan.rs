//! Loops with a dependency chain within a row: several rows are processed in parallel to hide the latency.

use super::simd::{Kernel, dispatch};
use crate::machine::RowF32;

/// Rows processed in parallel.
pub const BATCH_ROWS: usize = 8;
/// One value for each of these rows.
pub type Batch = [f32; BATCH_ROWS];

struct Scan<'a, F> {
    state: Batch,
    rows: [&'a mut [f32]; BATCH_ROWS],
    others: [&'a [f32]; BATCH_ROWS],
    next: F,
}

impl<F: Fn(Batch, Batch, Batch) -> Batch> Kernel for Scan<'_, F> {
    type Output = Batch;
    #[inline(always)]
    fn run(self) -> Batch {
        let Scan { mut state, rows, others, next } = self;
        let length = rows[0].len();
        let mut rows = rows.map(|row| &mut row[..length]);
        let others = others.map(|row| &row[..length]);
        for i in 0..length {
            state = next(state, std::array::from_fn(|r| rows[r][i]), std::array::from_fn(|r| others[r][i]));
            for (row, state) in rows.iter_mut().zip(state) {
                row[i] = state;
            }
        }
        state
    }
}

/// Replaces each element of the first destination by the state after it: `next(state before, element, element of source number other)`.
/// `start` returns a row's initial state; `end` receives its final state. The source is as long as the destination.
pub fn scan(
    rows: &mut [RowF32<'_>],
    other: usize,
    start: impl Fn(&RowF32<'_>) -> f32,
    next: impl Fn(Batch, Batch, Batch) -> Batch + Copy,
    end: impl Fn(&RowF32<'_>, f32),
) {
    for rows in rows.chunks_mut(BATCH_ROWS) {
        // Spare rows in place of the missing ones.
        let length = rows[0].outs[0].len();
        let mut spare = vec![0.0; (BATCH_ROWS - rows.len()) * length];
        let others = std::array::from_fn(|r| rows.get(r).unwrap_or(&rows[0]).ins[other]);
        let state = std::array::from_fn(|r| rows.get(r).map_or(0.0, &start));
        let state = {
            let mut outs = rows.iter_mut().map(|r| &mut *r.outs[0]).chain(spare.chunks_exact_mut(length.max(1)));
            let rows = std::array::from_fn(|_| outs.next().unwrap_or_default());
            dispatch(Scan { state, rows, others, next })
        };
        for (row, state) in rows.iter().zip(state) {
            end(row, state);
        }
    }
}

/// Folds each `group` elements of the first source, in order, into an element of the first destination: `end(step(.. step(start, x0) ..))`.
/// Without `start` the first element is the initial value.
pub fn fold(
    rows: &mut [RowF32<'_>],
    group: usize,
    start: Option<f32>,
    step: impl Fn(f32, f32) -> f32 + Copy,
    end: impl Fn(f32) -> f32,
) {
    let skipped = usize::from(start.is_none());
    for rows in rows.chunks_mut(BATCH_ROWS) {
        // The first row in place of the missing ones.
        let ins: [&[f32]; BATCH_ROWS] = std::array::from_fn(|r| rows.get(r).unwrap_or(&rows[0]).ins[0]);
        for g in 0..rows[0].outs[0].len() {
            let groups = ins.map(|row| &row[g * group..(g + 1) * group]);
            let first = groups.map(|x| start.unwrap_or_else(|| x[0]));
            let state = fold_batch(groups.map(|x| &x[skipped..]), first, step);
            for (row, state) in rows.iter_mut().zip(state) {
                row.outs[0][g] = end(state);
            }
        }
    }
}

/// The final states of rows of equal length. Square blocks are transposed in registers, which is faster than loading column by column.
#[allow(clippy::needless_range_loop, reason = "an index is that of a column of all rows")]
fn fold_batch(rows: [&[f32]; BATCH_ROWS], mut state: Batch, step: impl Fn(f32, f32) -> f32 + Copy) -> Batch {
    let count = rows[0].len() / BATCH_ROWS;
    let blocks = rows.map(|row| &row.as_chunks::<BATCH_ROWS>().0[..count]);
    for i in 0..count {
        // `map` would pass the block through memory (measured, four times slower).
        let block: [[f32; BATCH_ROWS]; BATCH_ROWS] = std::array::from_fn(|r| blocks[r][i]);
        for column in 0..BATCH_ROWS {
            state = std::array::from_fn(|r| step(state[r], block[r][column]));
        }
    }
    for i in count * BATCH_ROWS..rows[0].len() {
        state = std::array::from_fn(|r| step(state[r], rows[r][i]));
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of very different sizes, so that every order of a sum rounds differently.
    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        (0..count).map(|_| (next() as f32 / 8_388_608.0 - 1.0) * 2f32.powi((next() % 20) as i32)).collect()
    }

    fn folded(
        data: &[Vec<f32>],
        group: usize,
        start: Option<f32>,
        step: impl Fn(f32, f32) -> f32 + Copy,
    ) -> Vec<Vec<f32>> {
        let mut out: Vec<Vec<f32>> = data.iter().map(|row| vec![9.0; row.len() / group]).collect();
        let mut rows: Vec<RowF32<'_>> = data
            .iter()
            .zip(&mut out)
            .enumerate()
            .map(|(partition, (row, out))| RowF32 {
                partition,
                ins: [&row[..]].into_iter().collect(),
                outs: [&mut out[..]].into_iter().collect(),
            })
            .collect();
        fold(&mut rows, group, start, step, |x| -x);
        drop(rows);
        out
    }

    fn bits(x: f32) -> u32 {
        if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
    }

    #[test]
    fn folds_go_from_element_to_element() {
        for rows in [1, 7, 8, 9, 20] {
            for (groups, group) in [(1, 1), (1, 7), (3, 8), (2, 9), (5, 16), (1, 513), (40, 3)] {
                let mut data: Vec<Vec<f32>> = (0..rows).map(|r| numbers(groups * group, 1000 * r + 7)).collect();
                // A non-finite value affects only its own group.
                data[0][0] = f32::INFINITY;
                if let Some(last) = data[rows as usize / 2].last_mut() {
                    *last = f32::NAN;
                }
                let sums = folded(&data, group, Some(0.0), |a, b| a + b);
                let differences = folded(&data, group, None, |a, b| a - b);
                for (r, row) in data.iter().enumerate() {
                    for (g, x) in row.chunks_exact(group).enumerate() {
                        let mut sum = 0.0;
                        for &x in x {
                            sum += x;
                        }
                        let mut difference = x[0];
                        for &x in &x[1..] {
                            difference -= x;
                        }
                        assert_eq!(bits(sums[r][g]), bits(-sum), "row {r} of {rows}, group {g} of {group}");
                        assert_eq!(
                            bits(differences[r][g]),
                            bits(-difference),
                            "row {r} of {rows}, group {g} of {group}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn no_rows_and_no_groups_give_nothing() {
        assert!(folded(&[], 4, Some(0.0), |a, b| a + b).is_empty());
        assert_eq!(folded(&[vec![], vec![]], 4, None, |a, b| a + b), [vec![0.0; 0], vec![]]);
    }
}
