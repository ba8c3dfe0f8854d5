//! Destinations that give two elements one address.

use nki_isa::View;
use nki_isa::view::{Dim, Index};
use rustc_hash::FxHashMap;

use crate::trace::Resolved;

/// Most elements of which the addresses are compared one by one.
const MOST: usize = 1 << 22;

/// Two elements of a view, by their position in its order, that have one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Twice {
    pub(crate) first: usize,
    pub(crate) second: usize,
}

/// Two positions of `view` whose addresses are the same, as far as its static dimensions say so.
pub(crate) fn of_dims(view: &View) -> Option<Twice> {
    let on_chip = view.space.is_on_chip();
    let free = view.free_elements();
    let outer = view.dims.first().copied().unwrap_or(Dim { stride: 1, count: 1 });
    let indexed = match view.indirect.as_deref().map(|i| &i.index) {
        Some(Index::Columns(_)) => return None,
        Some(Index::Vector(_)) => true,
        _ => false,
    };
    if on_chip && !indexed && outer.stride == 0 && outer.count > 1 {
        return Some(Twice { first: 0, second: free });
    }
    let dims = if on_chip || indexed { view.free_dims() } else { &view.dims[..] };
    if surely_distinct(dims) {
        return None;
    }
    first_repeat(dims)
}

/// Whether each dimension steps over all that the smaller ones reach.
fn surely_distinct(dims: &[Dim]) -> bool {
    let mut reach = 0;
    let mut below = 0;
    let mut left = dims.iter().filter(|d| d.count > 1).count();
    // Nearly always the strides fall from the outermost to the innermost.
    for d in dims.iter().rev().filter(|d| d.count > 1) {
        let stride = d.stride.abs();
        if stride < below {
            break;
        }
        if stride <= reach {
            return false;
        }
        reach += stride * (i64::from(d.count) - 1);
        below = stride;
        left -= 1;
    }
    if left == 0 {
        return true;
    }
    let mut sorted: Vec<(i64, i64)> =
        dims.iter().filter(|d| d.count > 1).map(|d| (d.stride.abs(), i64::from(d.count))).collect();
    sorted.sort_unstable();
    let mut reach = 0;
    sorted.into_iter().all(|(stride, count)| {
        let apart = stride > reach;
        reach += stride * (count - 1);
        apart
    })
}

/// The first position whose address an earlier one has. Views beyond [`MOST`] elements are taken to have none unless a stride is 0.
fn first_repeat(dims: &[Dim]) -> Option<Twice> {
    let total: usize = dims.iter().map(|d| d.count as usize).product();
    let mut inner = 1;
    for d in dims.iter().rev() {
        if d.stride == 0 && d.count > 1 {
            return Some(Twice { first: 0, second: inner });
        }
        inner *= d.count as usize;
    }
    if total > MOST {
        return None;
    }
    let mut seen: FxHashMap<i64, usize> = FxHashMap::default();
    (0..total).find_map(|position| {
        let mut left = position;
        let address = dims.iter().rev().fold(0, |sum, d| {
            let i = left % d.count as usize;
            left /= d.count as usize;
            sum + d.stride * i as i64
        });
        seen.insert(address, position).map(|first| Twice { first, second: position })
    })
}

/// Two entries of an index that choose the same row of a destination (HBM), or two offsets the same element of a partition (on chip).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SameRow {
    /// With offsets for each partition: which partition.
    pub(crate) partition: Option<usize>,
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// The value of both entries.
    pub(crate) value: i64,
    /// How many entries repeat one before them.
    pub(crate) repeats: usize,
}

/// Entries of the resolved index of `view` that repeat an earlier one.
pub(crate) fn of_index(view: &View, resolved: &Resolved) -> Option<SameRow> {
    let (Some(indirect), Resolved::Rows(rows)) = (view.indirect.as_deref(), resolved) else { return None };
    let columns = matches!(indirect.index, Index::Columns(_));
    let width = if columns { view.free_elements().max(1) } else { rows.len().max(1) };
    let mut found: Option<SameRow> = None;
    let mut seen: FxHashMap<i64, usize> = FxHashMap::default();
    for (partition, part) in rows.chunks(width).enumerate() {
        seen.clear();
        for (i, offset) in part.iter().enumerate() {
            let Some(offset) = *offset else { continue };
            if let Some(&first) = seen.get(&offset) {
                let value = if indirect.stride == 0 { 0 } else { offset / indirect.stride };
                let partition = columns.then_some(partition);
                let found = found.get_or_insert(SameRow { partition, first, second: i, value, repeats: 0 });
                found.repeats += 1;
            } else {
                seen.insert(offset, i);
            }
        }
    }
    found
}

/// The indices of a position in a view: `[1, 0, 5]`.
pub(crate) fn indices(view: &View, position: usize) -> String {
    let mut left = position;
    let mut out: Vec<String> = view
        .dims
        .iter()
        .rev()
        .map(|d| {
            let i = left % d.count.max(1) as usize;
            left /= d.count.max(1) as usize;
            i.to_string()
        })
        .collect();
    out.reverse();
    format!("[{}]", out.join(", "))
}

#[cfg(test)]
mod tests {
    use nki_isa::{DType, Space, TensorId};
    use proptest::prelude::*;

    use super::*;

    fn view(space: Space, dims: &[(i64, u32)]) -> View {
        View {
            tensor: TensorId(0),
            space,
            dtype: DType::F32,
            partition: 0,
            offset: 0,
            dims: dims.iter().map(|&(stride, count)| Dim { stride, count }).collect(),
            indirect: None,
        }
    }

    #[test]
    fn a_broadcast_destination_repeats() {
        let v = view(Space::Sbuf, &[(1, 128), (0, 64)]);
        assert_eq!(of_dims(&v), Some(Twice { first: 0, second: 1 }));
        assert_eq!(indices(&v, 1), "[0, 1]");
        let v = view(Space::Sbuf, &[(0, 4), (1, 64)]);
        assert_eq!(of_dims(&v), Some(Twice { first: 0, second: 64 }));
        assert_eq!(indices(&v, 64), "[1, 0]");
        assert_eq!(of_dims(&view(Space::Sbuf, &[(1, 128), (64, 8), (1, 64)])), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn agrees_with_a_set_of_addresses(
            dims in prop::collection::vec((-6i64..13, 1u32..5), 2..5),
            on_chip in any::<bool>(),
        ) {
            let v = view(if on_chip { Space::Sbuf } else { Space::Hbm }, &dims);
            let address = |position: usize| {
                let (mut left, mut at) = (position, (0, 0));
                for (level, d) in v.dims.iter().enumerate().rev() {
                    let step = d.stride * (left % d.count as usize) as i64;
                    left /= d.count as usize;
                    if on_chip && level == 0 { at.0 += step } else { at.1 += step }
                }
                at
            };
            let all: std::collections::BTreeSet<_> = (0..v.elements()).map(address).collect();
            match of_dims(&v) {
                None => prop_assert_eq!(all.len(), v.elements()),
                Some(t) => {
                    prop_assert!(t.first < t.second);
                    prop_assert_eq!(address(t.first), address(t.second));
                }
            }
        }
    }
}
