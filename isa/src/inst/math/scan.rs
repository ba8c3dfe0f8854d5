//! Loops whose steps wait for each other within a row: several rows go side by side, so that the processor has something to do meanwhile.

use super::simd::{Kernel, dispatch};
use crate::machine::RowF32;

/// Rows that go side by side.
pub const ABREAST: usize = 8;
/// A value of each of them.
pub type Abreast = [f32; ABREAST];

struct Scan<'a, F> {
    state: Abreast,
    rows: [&'a mut [f32]; ABREAST],
    others: [&'a [f32]; ABREAST],
    next: F,
}

impl<F: Fn(Abreast, Abreast, Abreast) -> Abreast> Kernel for Scan<'_, F> {
    type Output = Abreast;
    #[inline(always)]
    fn run(self) -> Abreast {
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
/// `start` gives a row's state before its first element, `end` takes the one after its last. The source is as long as the destination.
pub fn scan(
    rows: &mut [RowF32<'_>],
    other: usize,
    start: impl Fn(&RowF32<'_>) -> f32,
    next: impl Fn(Abreast, Abreast, Abreast) -> Abreast + Copy,
    end: impl Fn(&RowF32<'_>, f32),
) {
    for rows in rows.chunks_mut(ABREAST) {
        // In the place of rows that are missing: anything.
        let length = rows[0].outs[0].len();
        let mut spare = vec![0.0; (ABREAST - rows.len()) * length];
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
