//! Searches in rows of fp32.

use super::simd::{Kernel, dispatch};

/// Position of the first element that equals `value`.
pub fn position(row: &[f32], value: f32) -> Option<usize> {
    struct K<'a>(&'a [f32], f32);
    impl Kernel for K<'_> {
        type Output = usize;
        /// Number of elements before the chunk that contains the value.
        #[inline(always)]
        fn run(self) -> usize {
            let (pieces, _) = self.0.as_chunks::<PIECE>();
            let has = |piece: &[f32; PIECE]| piece.iter().fold(false, |found, &x| found | (x == self.1));
            pieces.iter().take_while(|piece| !has(piece)).count() * PIECE
        }
    }
    const PIECE: usize = 64;
    let start = dispatch(K(row, value));
    row[start..].iter().position(|&x| x == value).map(|at| start + at)
}

/// The order of the search: NaN ranks above everything, so that a value computed from unwritten memory does not disappear.
fn above(x: f32, y: f32) -> bool {
    (x > y) | (x.is_nan() & !y.is_nan())
}

/// Writes the largest elements of `row` to `out`, descending; equal values count separately. NaN ranks above all numbers.
pub fn largest(row: &[f32], out: &mut [f32]) {
    if out.len() <= RANKS && row.len() >= 2 * LANES {
        let Ranked { best, nan } = dispatch(Rank(row));
        let best = best.as_flattened();
        one_by_one(best, out);
        // Zeros of both signs are equal but distinct, as are NaNs: these keep the order of the row.
        if !nan && !out.contains(&0.0) {
            return;
        }
    }
    one_by_one(row, out);
}

fn one_by_one(row: &[f32], out: &mut [f32]) {
    let (first, rest) = row.split_at(out.len().min(row.len()));
    out[..first.len()].copy_from_slice(first);
    out.sort_by(|&x, &y| above(y, x).cmp(&above(x, y)));
    for &x in rest {
        if out.last().is_some_and(|&least| above(x, least)) {
            let at = out.partition_point(|&o| !above(x, o));
            out[at..].rotate_right(1);
            out[at] = x;
        }
    }
}

/// Values that are kept.
const RANKS: usize = 8;
/// Every `LANES`th element of a row belongs to the same ranking, so that the rankings advance in parallel.
const LANES: usize = 16;

struct Rank<'a>(&'a [f32]);

struct Ranked {
    /// The largest value of each lane, then the next ones.
    best: [[f32; LANES]; RANKS],
    nan: bool,
}

impl Kernel for Rank<'_> {
    type Output = Ranked;
    #[inline(always)]
    fn run(self) -> Ranked {
        let mut best = [[f32::NEG_INFINITY; LANES]; RANKS];
        let mut nans = [false; LANES];
        let (pieces, rest) = self.0.as_chunks::<LANES>();
        let mut last = [f32::NEG_INFINITY; LANES];
        last[..rest.len()].copy_from_slice(rest);
        for piece in pieces.iter().chain([&last]) {
            let mut x = *piece;
            for (nan, x) in nans.iter_mut().zip(x) {
                *nan |= x.is_nan();
            }
            for rank in &mut best {
                for (kept, x) in rank.iter_mut().zip(&mut x) {
                    let (high, low) = if *x > *kept { (*x, *kept) } else { (*kept, *x) };
                    (*kept, *x) = (high, low);
                }
            }
        }
        Ranked { best, nan: nans.contains(&true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unordered numbers, some of them equal.
    fn row(length: u32) -> Vec<f32> {
        (0..length).map(|i| (i.wrapping_mul(2_654_435_761) >> 20) as f32 - 1000.5).collect()
    }

    #[test]
    fn the_largest_agree_with_a_sort() {
        for length in [8, 31, 32, 33, 100, 512, 1000] {
            let row = row(length);
            let mut sorted = row.clone();
            sorted.sort_by(|x, y| y.total_cmp(x));
            let mut out = [0.; 8];
            largest(&row, &mut out);
            assert_eq!(out, sorted[..8], "{length}");
        }
    }

    #[test]
    fn nans_and_zeros_come_as_one_by_one() {
        for special in [[f32::NAN, -f32::NAN], [0.0, -0.0], [-0.0, 0.0], [f32::INFINITY, f32::NEG_INFINITY]] {
            for at in [[0, 1], [3, 77], [99, 12]] {
                let mut row = vec![-1.0; 100];
                for (at, special) in at.into_iter().zip(special) {
                    row[at] = special;
                }
                let (mut fast, mut slow) = ([0.; 8], [0.; 8]);
                largest(&row, &mut fast);
                one_by_one(&row, &mut slow);
                assert_eq!(fast.map(f32::to_bits), slow.map(f32::to_bits), "{special:?} at {at:?}");
            }
        }
    }

    #[test]
    fn positions_agree_with_a_search_one_by_one() {
        let row = row(300);
        for (i, &x) in row.iter().enumerate() {
            assert_eq!(position(&row, x), row.iter().position(|&y| y == x));
            assert_eq!(position(&row[..i], x), row[..i].iter().position(|&y| y == x));
        }
        assert_eq!(position(&row, f32::NAN), None);
        assert_eq!(position(&[-0.0], 0.0), Some(0));
    }
}
