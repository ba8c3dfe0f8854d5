//! The transpose of a matrix in memory, in squares that fit the processor's registers.

use pulp::Simd;

/// Rows and columns of a square: one row of 4-byte elements is a cache line.
const SQUARE: usize = 16;

/// Elements of a matrix, with the distance between the starts of its rows.
#[derive(Debug)]
pub struct Rows<S> {
    /// From the first element to the last.
    pub elements: S,
    /// From the start of a row to the start of the next.
    pub pitch: usize,
}

/// Writes element `[i, j]` of the `rows` x `columns` matrix `from` to `[j, i]` of `to`. The gaps between the rows of `to` stay unchanged.
///
/// # Panics
/// If one of the two ends before the last element.
pub fn transpose<T: Copy>(from: Rows<&[T]>, to: Rows<&mut [T]>, rows: usize, columns: usize) {
    pulp::Arch::new().dispatch(Transpose { from, to, rows, columns });
}

/// Compiled for each instruction set.
struct Transpose<'a, T> {
    from: Rows<&'a [T]>,
    to: Rows<&'a mut [T]>,
    rows: usize,
    columns: usize,
}

impl<T: Copy> pulp::WithSimd for Transpose<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Transpose { from, to, rows, columns } = self;
        for row in (0..rows).step_by(SQUARE) {
            for column in (0..columns).step_by(SQUARE) {
                if row + SQUARE <= rows && column + SQUARE <= columns {
                    let lines: [&[T]; SQUARE] =
                        std::array::from_fn(|i| &from.elements[(row + i) * from.pitch + column..][..SQUARE]);
                    for (j, start) in (column..column + SQUARE).map(|c| c * to.pitch + row).enumerate() {
                        let line: [T; SQUARE] = std::array::from_fn(|i| lines[i][j]);
                        to.elements[start..start + SQUARE].copy_from_slice(&line);
                    }
                    continue;
                }
                for i in row..rows.min(row + SQUARE) {
                    for j in column..columns.min(column + SQUARE) {
                        to.elements[j * to.pitch + i] = from.elements[i * from.pitch + j];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<T: Copy + PartialEq + std::fmt::Debug>(
        shape: (usize, usize),
        gaps: (usize, usize),
        value: impl Fn(usize) -> T,
    ) {
        let (rows, columns) = shape;
        let (pitch, to_pitch) = (columns + gaps.0, rows + gaps.1);
        let from: Vec<T> = (0..rows * pitch - gaps.0).map(&value).collect();
        let before: Vec<T> = (0..columns * to_pitch - gaps.1).map(|k| value(k * 7 + 3)).collect();
        let mut to = before.clone();
        let target = Rows { elements: &mut to[..], pitch: to_pitch };
        transpose(Rows { elements: &from, pitch }, target, rows, columns);
        for (k, (&got, &before)) in to.iter().zip(&before).enumerate() {
            let (j, i) = (k / to_pitch, k % to_pitch);
            assert_eq!(got, if i < rows { from[i * pitch + j] } else { before }, "{shape:?} {gaps:?} {i} {j}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Equals the definition, for all shapes, gaps and element sizes.
        #[test]
        fn is_the_definition(rows in 1usize..50, columns in 1usize..50, gap in 0usize..9, to_gap in 0usize..9) {
            check((rows, columns), (gap, to_gap), |k| (k * 77) as u8);
            check((rows, columns), (gap, to_gap), |k| (k * 777) as u16);
            check((rows, columns), (gap, to_gap), |k| (k * 7_777_777) as u32);
        }
    }
}
