//! In which order NumPy lays out the axes of what it computes. It decides whether a reshaped result shares elements or is a copy.

use super::places::Dim;
use super::{Array, product};

/// For each axis its place from the slowest to the fastest, and `None` where an element is repeated or alone. Row-major if there are none.
#[derive(Clone, Default)]
pub(super) struct Layout(Vec<Option<usize>>);

impl Layout {
    /// The layout of these dimensions.
    pub(super) fn of_dims(dims: &[Dim]) -> Layout {
        let mut axes: Vec<usize> = (0..dims.len()).filter(|&a| dims[a].0 != 1 && dims[a].1 != 0).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(dims[axis].1.abs()));
        Layout((0..dims.len()).map(|axis| axes.iter().position(|&a| a == axis)).collect())
    }

    /// Of an array whose axes are made of these axes of its own.
    pub(super) fn spread(&self, sources: impl Iterator<Item = Option<usize>>) -> Layout {
        Layout(sources.map(|source| source.and_then(|axis| self.place(axis))).collect())
    }

    fn place(&self, axis: usize) -> Option<usize> {
        self.0.get(axis).copied().unwrap_or(Some(axis))
    }

    /// The layout of what is computed element by element, as the manual describes `order='K'`: as close as possible to that of the operands. Of
    /// two axes, the one that is faster in an operand is faster in the result. Row-major order holds where they disagree.
    pub(super) fn of_result(operands: &[&Array], dims: usize) -> Layout {
        let mut fastest_first: Vec<usize> = Vec::new();
        for axis in (0..dims).rev() {
            let mut at = fastest_first.len();
            for (i, &other) in fastest_first.iter().enumerate().rev() {
                match is_faster(operands, axis, other) {
                    Some(true) => at = i,
                    Some(false) => break,
                    None => {}
                }
            }
            fastest_first.insert(at, axis);
        }
        Layout((0..dims).map(|axis| fastest_first.iter().rev().position(|&a| a == axis)).collect())
    }

    /// Extent and stride of each axis of an array of this layout.
    pub(super) fn dims(&self, shape: &[usize]) -> Vec<Dim> {
        let rank = |axis: usize| (self.place(axis), axis);
        let faster = |axis: usize| (0..shape.len()).filter(move |&a| rank(a) > rank(axis));
        (0..shape.len())
            .map(|axis| (shape[axis], product(&faster(axis).map(|a| shape[a]).collect::<Vec<_>>()) as i64))
            .collect()
    }
}

/// Whether one axis is faster than another one in the operands; `None` if none of them tells.
fn is_faster(operands: &[&Array], axis: usize, other: usize) -> Option<bool> {
    let places = |array: &&Array| Some((array.layout.place(axis)?, array.layout.place(other)?));
    operands.iter().filter_map(places).map(|(own, other)| own > other).reduce(|all, one| all && one)
}
