//! Positions in arrays, and shapes, as numbers and as text.

use smallvec::SmallVec;

/// The index of an element in each dimension, from its row-major number. Dimensions of size 0 count as 1.
pub fn coordinates(shape: impl DoubleEndedIterator<Item = usize>, element: usize) -> SmallVec<[usize; 6]> {
    let mut rest = element;
    let mut index: SmallVec<[usize; 6]> = shape
        .rev()
        .map(|n| {
            let at = rest % n.max(1);
            rest /= n.max(1);
            at
        })
        .collect();
    index.reverse();
    index
}

/// An index as text: `[1, 0, 5]`.
pub fn index_text(index: &[usize]) -> String {
    format!("{index:?}")
}

/// A shape in Python's syntax: `(128, 512)`, `(4,)`.
pub fn tuple_text(shape: impl ExactSizeIterator<Item = impl ToString>) -> String {
    let comma = if shape.len() == 1 { "," } else { "" };
    let sizes: Vec<String> = shape.map(|n| n.to_string()).collect();
    format!("({}{comma})", sizes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_row_major() {
        let of = |element| coordinates([2, 3, 4].into_iter(), element).to_vec();
        assert_eq!((of(0), of(23), of(17)), (vec![0, 0, 0], vec![1, 2, 3], vec![1, 1, 1]));
        assert_eq!(index_text(&of(17)), "[1, 1, 1]");
        assert!(coordinates(std::iter::empty(), 0).is_empty());
    }

    #[test]
    fn a_tuple_of_one_has_a_comma() {
        assert_eq!(tuple_text([128, 512].iter()), "(128, 512)");
        assert_eq!(tuple_text([4u32].iter()), "(4,)");
        assert_eq!(tuple_text(std::iter::empty::<u32>()), "()");
    }
}
