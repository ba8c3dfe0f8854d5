//! The order in which NumPy lays out the axes of its results. It determines whether a reshaped
//! result shares elements or is a copy.

use super::places::Dim;
use super::{Array, product};

/// The rank of each axis from slowest to fastest; `None` where elements are repeated or the extent
/// is 1. Empty for row-major order.
#[derive(Clone, Default)]
pub(super) struct Layout(Vec<Option<usize>>);

impl Layout {
    /// The layout of an array with these dimensions.
    pub(super) fn of_dims(dims: &[Dim]) -> Layout {
        let mut axes: Vec<usize> = (0..dims.len()).filter(|&a| dims[a].0 != 1 && dims[a].1 != 0).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(dims[axis].1.abs()));
        Layout((0..dims.len()).map(|axis| axes.iter().position(|&a| a == axis)).collect())
    }

    /// The layout of an array whose axes come from these axes of this layout.
    pub(super) fn spread(&self, sources: impl Iterator<Item = Option<usize>>) -> Layout {
        Layout(sources.map(|source| source.and_then(|axis| self.place(axis))).collect())
    }

    fn place(&self, axis: usize) -> Option<usize> {
        self.0.get(axis).copied().unwrap_or(Some(axis))
    }

    /// The layout of an elementwise result, as NumPy's manual describes `order='K'`: as close as
    /// possible to that of the operands. An axis that is faster than another in an operand is also
    /// faster in the result. If the operands disagree, the order is row-major.
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

    /// The extent and stride of each axis of an array with this layout.
    pub(super) fn dims(&self, shape: &[usize]) -> Vec<Dim> {
        let rank = |axis: usize| (self.place(axis), axis);
        let faster = |axis: usize| (0..shape.len()).filter(move |&a| rank(a) > rank(axis));
        (0..shape.len())
            .map(|axis| (shape[axis], product(&faster(axis).map(|a| shape[a]).collect::<Vec<_>>()) as i64))
            .collect()
    }
}

/// Whether one axis is faster than another in the operands; `None` if no operand determines this.
fn is_faster(operands: &[&Array], axis: usize, other: usize) -> Option<bool> {
    let places = |array: &&Array| Some((array.layout.place(axis)?, array.layout.place(other)?));
    operands.iter().filter_map(places).map(|(own, other)| own > other).reduce(|all, one| all && one)
}
