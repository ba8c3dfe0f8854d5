//! Destinations with two elements at one address.

use nki_isa::View;
use nki_isa::shape::{coordinates, index_text};
use nki_isa::view::{Dim, Index};
use rustc_hash::FxHashMap;

use crate::trace::Resolved;

/// Maximum number of elements whose addresses are compared one by one.
const MOST: usize = 1 << 22;

/// Two elements of a view, by position, with the same address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SameAddress {
    pub(crate) first: usize,
    pub(crate) second: usize,
}

/// Two positions of `view` with the same address, according to its static dimensions.
pub(crate) fn of_dims(view: &View) -> Option<SameAddress> {
    let on_chip = view.space.is_on_chip();
    let free = view.free_elements();
    let outer = view.dims.first().copied().unwrap_or(Dim { stride: 1, count: 1 });
    let indexed = match view.indirect.as_deref().map(|i| &i.index) {
        Some(Index::Columns(_)) => return None,
        Some(Index::Vector(_)) => true,
        _ => false,
    };
    if on_chip && !indexed && outer.stride == 0 && outer.count > 1 {
        return Some(SameAddress { first: 0, second: free });
    }
    let dims = if on_chip || indexed { view.free_dims() } else { &view.dims[..] };
    if surely_distinct(dims) {
        return None;
    }
    first_repeat(dims)
}

/// Whether the stride of each dimension exceeds the extent of the smaller ones.
fn surely_distinct(dims: &[Dim]) -> bool {
    let mut reach = 0;
    let mut below = 0;
    let mut left = dims.iter().filter(|d| d.count > 1).count();
    // In nearly all views strides descend from the outermost to the innermost dimension.
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

/// The first position that repeats an earlier address. Views beyond [`MOST`] elements are assumed to have none unless a stride is 0.
fn first_repeat(dims: &[Dim]) -> Option<SameAddress> {
    let total: usize = dims.iter().map(|d| d.count as usize).product();
    let mut inner = 1;
    for d in dims.iter().rev() {
        if d.stride == 0 && d.count > 1 {
            return Some(SameAddress { first: 0, second: inner });
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
        seen.insert(address, position).map(|first| SameAddress { first, second: position })
    })
}

/// Two entries of an index that select the same row of a destination (HBM), or two offsets that select the same element of a partition (on chip).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SameRow {
    /// The partition, for per-partition offsets.
    pub(crate) partition: Option<usize>,
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// The value of both entries.
    pub(crate) value: i64,
    /// Number of entries that repeat an earlier one.
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

/// An address shared by two accesses of an instruction: its destination and its source, or two destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedAddress {
    /// The position in the destination, or in the first of two.
    pub(crate) first: usize,
    /// The position in the source, or in the second destination.
    pub(crate) second: usize,
}

/// Maximum number of elements of two views of different shapes that are compared one by one.
const MOST_COMPARED: usize = 1 << 16;

/// The order in which an instruction processes its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElementOrder {
    /// Each partition's elements are processed in order; else the order is undefined.
    pub(crate) streams: bool,
    /// The result elements are copies of the source elements.
    pub(crate) copies: bool,
}

/// For two views of one tensor, an address of `dst` that `src` reads at another position: at a later one in the same lane, if the
/// instruction streams. Overwriting an element with itself does not count.
pub(crate) fn crossing(dst: &View, src: &View, passage: ElementOrder) -> Option<SharedAddress> {
    if !comparable(dst, src) {
        return None;
    }
    let on_chip = dst.space.is_on_chip();
    let lanes = usize::from(on_chip);
    let free = |view: &View| view.dims.get(lanes..).unwrap_or(&[]).iter().map(|d| d.count as usize).product::<usize>();
    let wrong = |written: usize, read: usize| match passage.streams && on_chip {
        true => read % free(src).max(1) > written % free(dst).max(1),
        false => read != written,
    };
    if dst.dims == src.dims {
        let shift = (i64::from(dst.partition) - i64::from(src.partition), dst.offset - src.offset);
        let (lane, rest) = dst.dims.split_at(lanes);
        let lane_steps = if on_chip { steps(lane, shift.0) } else { vec![Vec::new()] };
        let rest_steps = steps(rest, shift.1);
        let all = lane_steps.iter().flat_map(|lane| rest_steps.iter().map(move |rest| [&lane[..], rest].concat()));
        return all.into_iter().find_map(|steps| {
            // The first positions at this distance.
            let position = |sign: i64| {
                let index = steps.iter().zip(&dst.dims).map(|(k, d)| ((k * sign).max(0) as usize, d.count as usize));
                index.fold(0, |sum, (i, count)| sum * count + i)
            };
            let found = SharedAddress { first: position(-1), second: position(1) };
            wrong(found.first, found.second).then_some(found)
        });
    }
    if dst.elements() > MOST_COMPARED {
        return None;
    }
    let written: FxHashMap<(i64, i64), usize> = (0..dst.elements()).map(|p| (address(dst, p), p)).collect();
    (0..src.elements()).find_map(|read| {
        let written = *written.get(&address(src, read))?;
        let same = passage.copies && address(src, written) == address(dst, written);
        (!same && wrong(written, read)).then_some(SharedAddress { first: written, second: read })
    })
}

/// Whether the elements of the views correspond one to one, at known addresses.
fn comparable(dst: &View, src: &View) -> bool {
    dst.dtype.size() == src.dtype.size()
        && dst.indirect.is_none()
        && src.indirect.is_none()
        && dst.elements() == src.elements()
}

/// Partition and offset of the element at a position of a view.
pub(crate) fn address(view: &View, position: usize) -> (i64, i64) {
    let on_chip = view.space.is_on_chip();
    let mut at = (i64::from(view.partition), view.offset);
    for (level, (d, index)) in view.dims.iter().zip(coordinates(counts(view), position)).enumerate() {
        let step = d.stride * index as i64;
        if on_chip && level == 0 { at.0 += step } else { at.1 += step }
    }
    at
}

/// The sizes of a view's dimensions.
fn counts(view: &View) -> impl DoubleEndedIterator<Item = usize> {
    view.dims.iter().map(|d| d.count as usize)
}

/// For two on-chip destinations of one instruction, a shared address: its positions in the first and in the second.
pub(crate) fn shared(a: &View, b: &View) -> Option<SharedAddress> {
    let known = a.tensor == b.tensor && a.indirect.is_none() && b.indirect.is_none() && a.space.is_on_chip();
    let [(a_low, a_high), (b_low, b_high)] = [a, b].map(free_bytes);
    if !known || a_high <= b_low || b_high <= a_low || a.free_elements().max(b.free_elements()) > MOST_COMPARED {
        return None;
    }
    // Partitions, and bytes of a partition, each with position.
    let lanes = |view: &View| -> Vec<(i64, usize)> {
        let outer = view.dims.first().copied().unwrap_or(Dim { stride: 1, count: 1 });
        (0..outer.count).map(|i| (i64::from(view.partition) + outer.stride * i64::from(i), i as usize)).collect()
    };
    let bytes = |view: &View| -> Vec<(i64, usize)> {
        let size = view.dtype.size() as i64;
        let each = |p: usize| (0..size).map(move |byte| (address(view, p).1 * size + byte, p));
        (0..view.free_elements()).flat_map(each).collect()
    };
    let common = |first: Vec<(i64, usize)>, second: Vec<(i64, usize)>| {
        let first: FxHashMap<i64, usize> = first.into_iter().collect();
        second.into_iter().find_map(|(at, position)| Some((*first.get(&at)?, position)))
    };
    let lane = common(lanes(a), lanes(b))?;
    let free = common(bytes(a), bytes(b))?;
    let position = |view: &View, lane: usize, free: usize| lane * view.free_elements() + free;
    Some(SharedAddress { first: position(a, lane.0, free.0), second: position(b, lane.1, free.1) })
}

/// The first byte of a view in a partition, and the byte after the last.
fn free_bytes(view: &View) -> (i64, i64) {
    let reach = |d: &Dim| d.stride * (i64::from(d.count) - 1);
    let size = view.dtype.size() as i64;
    let low: i64 = view.free_dims().iter().map(|d| reach(d).min(0)).sum();
    let high: i64 = view.free_dims().iter().map(|d| reach(d).max(0)).sum();
    ((view.offset + low) * size, (view.offset + high + 1) * size)
}

/// For a transpose within one tensor, an address that is read for another element than the one written there. The dimensions of
/// `dst` are those of `src` in the order `axes`.
pub(crate) fn transposed(dst: &View, src: &View, axes: &[usize]) -> Option<SharedAddress> {
    let known = dst.tensor == src.tensor && dst.elements() <= MOST_COMPARED && axes.len() == src.dims.len();
    if !known || !comparable(dst, src) {
        return None;
    }
    let written: FxHashMap<(i64, i64), usize> = (0..dst.elements()).map(|p| (address(dst, p), p)).collect();
    let mut index = vec![0; axes.len()];
    (0..src.elements()).find_map(|read| {
        let written = *written.get(&address(src, read))?;
        let mut left = read;
        for (i, d) in index.iter_mut().zip(&src.dims).rev() {
            *i = left % d.count.max(1) as usize;
            left /= d.count.max(1) as usize;
        }
        let place = axes.iter().fold(0, |sum, &a| sum * src.dims[a].count as usize + index[a]);
        (place != written).then_some(SharedAddress { first: written, second: read })
    })
}

/// All combinations of steps by dimension that add up to this distance; empty if no two elements have this distance.
fn steps(dims: &[Dim], distance: i64) -> Vec<Vec<i64>> {
    let mut order: Vec<usize> = (0..dims.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(dims[*i].stride.abs()));
    let mut out = Vec::new();
    solve(dims, &order, distance, &mut vec![0; dims.len()], &mut out);
    out
}

fn solve(dims: &[Dim], order: &[usize], distance: i64, found: &mut Vec<i64>, out: &mut Vec<Vec<i64>>) {
    let Some((&first, rest)) = order.split_first() else {
        if distance == 0 {
            out.push(found.clone());
        }
        return;
    };
    let Dim { stride, count } = dims[first];
    let reach = if stride == 0 { 0 } else { i64::from(count) - 1 };
    // The smaller strides contribute less than one step, of either sign.
    let middle = if stride == 0 { 0 } else { distance / stride };
    let mut tried = None;
    for k in [-1, 0, 1].map(|more| (middle + more).clamp(-reach, reach)) {
        if tried.replace(k) != Some(k) {
            found[first] = k;
            solve(dims, rest, distance - k * stride, found, out);
        }
    }
}

/// The indices of a position in a view: `[1, 0, 5]`.
pub(crate) fn indices(view: &View, position: usize) -> String {
    index_text(&coordinates(counts(view), position))
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
        assert_eq!(of_dims(&v), Some(SameAddress { first: 0, second: 1 }));
        assert_eq!(indices(&v, 1), "[0, 1]");
        let v = view(Space::Sbuf, &[(0, 4), (1, 64)]);
        assert_eq!(of_dims(&v), Some(SameAddress { first: 0, second: 64 }));
        assert_eq!(indices(&v, 64), "[1, 0]");
        assert_eq!(of_dims(&view(Space::Sbuf, &[(1, 128), (64, 8), (1, 64)])), None);
    }

    #[test]
    fn two_results_share_an_address() {
        let tile =
            |partition: u32, offset: i64, dims: &[(i64, u32)]| View { partition, offset, ..view(Space::Sbuf, dims) };
        let found = |a: &View, b: &View| shared(a, b).map(|c| (c.first, c.second));
        let wide = tile(0, 0, &[(1, 128), (1, 1024)]);
        assert_eq!(found(&wide, &tile(0, 1023, &[(1, 128), (1, 1)])), Some((1023, 0)));
        assert_eq!(found(&wide, &tile(4, 7, &[(1, 32), (1, 1)])), Some((4 * 1024 + 7, 0)));
        assert_eq!(found(&wide, &tile(0, 1024, &[(1, 128), (1, 1)])), None);
        assert_eq!(found(&tile(0, 0, &[(1, 32), (1, 8)]), &tile(32, 0, &[(1, 32), (1, 8)])), None);
        // Every other element.
        let odd = tile(0, 1, &[(1, 2), (2, 4)]);
        assert_eq!(found(&tile(0, 0, &[(1, 2), (2, 4)]), &odd), None);
        // Half as wide: bytes 4 to 7 are those of element 1 at offset 2.
        let half = View { dtype: DType::BF16, ..tile(0, 2, &[(1, 2), (1, 1)]) };
        assert_eq!(found(&odd, &half), Some((0, 0)));
    }

    #[test]
    fn a_shift_onto_what_is_read_crosses() {
        let tile = |partition: u32, offset: i64, count: u32| View {
            partition,
            offset,
            ..view(Space::Sbuf, &[(1, 8), (1, count)])
        };
        let found = |dst: &View, src: &View, streams| {
            crossing(dst, src, ElementOrder { streams, copies: true }).map(|c| (c.first, c.second))
        };
        // The element written at [0, 0] is read at [0, 1].
        assert_eq!(found(&tile(0, 1, 7), &tile(0, 0, 7), true), Some((0, 1)));
        // Reading ahead of the writes is a problem only for transfers, which have no order.
        assert_eq!(found(&tile(0, 0, 7), &tile(0, 1, 7), true), None);
        assert_eq!(found(&tile(0, 0, 7), &tile(0, 1, 7), false), Some((1, 0)));
        // Other lanes, in step.
        assert_eq!(found(&tile(4, 0, 7), &tile(0, 0, 7), true), None);
        assert_eq!(found(&tile(4, 0, 7), &tile(0, 0, 7), false), Some((0, 28)));
        assert_eq!(found(&tile(0, 0, 7), &tile(0, 0, 7), false), None);
        assert_eq!(found(&tile(0, 0, 7), &tile(0, 7, 7), false), None);
        assert_eq!(found(&tile(8, 0, 7), &tile(0, 0, 7), false), None);
        // A transpose in place.
        let (rows, columns) = (view(Space::Hbm, &[(4, 4), (1, 4)]), view(Space::Hbm, &[(1, 4), (4, 4)]));
        assert_eq!(found(&columns, &rows, false), Some((4, 1)));
        // A broadcast column is overwritten with itself, if nothing is computed.
        let (tile, column) = (view(Space::Sbuf, &[(1, 8), (1, 4)]), view(Space::Sbuf, &[(1, 8), (0, 4)]));
        assert_eq!(found(&tile, &column, true), None);
        assert!(crossing(&tile, &column, ElementOrder { streams: true, copies: false }).is_some());
    }

    #[test]
    fn a_transpose_onto_itself_crosses() {
        let tile =
            |offset: i64, rows: u32, columns: u32| View { offset, ..view(Space::Sbuf, &[(1, rows), (1, columns)]) };
        let found = |dst: &View, src: &View| transposed(dst, src, &[1, 0]).map(|c| (c.first, c.second));
        // [0, 1] is read for [1, 0].
        assert_eq!(found(&tile(0, 4, 4), &tile(0, 4, 4)), Some((1, 1)));
        assert_eq!(found(&tile(4, 4, 4), &tile(0, 4, 4)), None);
        assert_eq!(found(&tile(2, 4, 4), &tile(0, 4, 4)), Some((0, 2)));
        // A single element, and the transposed view of the same memory, keep all elements in place.
        assert_eq!(found(&tile(0, 1, 1), &tile(0, 1, 1)), None);
        let (rows, columns) = (view(Space::Hbm, &[(8, 4), (1, 8)]), view(Space::Hbm, &[(1, 8), (8, 4)]));
        assert_eq!(found(&columns, &rows), None);
        assert!(found(&view(Space::Hbm, &[(4, 8), (1, 4)]), &rows).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::with_cases(3000) })]
        #[test]
        fn crossings_are_those_of_the_addresses(
            dims in prop::collection::vec((-6i64..13, 1u32..5), 2..4),
            shift in (0u32..4, -8i64..9),
            (on_chip, streams) in any::<(bool, bool)>(),
        ) {
            let src = view(if on_chip { Space::Sbuf } else { Space::Hbm }, &dims);
            prop_assume!(of_dims(&src).is_none() && surely_distinct(&src.dims[usize::from(on_chip)..]));
            prop_assume!(!on_chip || src.dims[0].stride > 0);
            let dst = View { partition: if on_chip { shift.0 } else { 0 }, offset: shift.1, ..src.clone() };
            let address = |v: &View, position: usize| {
                let (mut left, mut at) = (position, (i64::from(v.partition), v.offset));
                for (level, d) in v.dims.iter().enumerate().rev() {
                    let step = d.stride * (left % d.count as usize) as i64;
                    left /= d.count as usize;
                    if on_chip && level == 0 { at.0 += step } else { at.1 += step }
                }
                at
            };
            let lane = if on_chip { src.free_elements() } else { src.elements() };
            let crosses = (0..dst.elements()).any(|w| {
                (0..src.elements()).any(|r| {
                    let late = if on_chip && streams { r % lane > w % lane } else { r != w };
                    late && address(&dst, w) == address(&src, r)
                })
            });
            let found = crossing(&dst, &src, ElementOrder { streams, copies: false });
            prop_assert_eq!(found.is_some(), crosses, "{:?}", found);
            if let Some(c) = found {
                prop_assert_eq!(address(&dst, c.first), address(&src, c.second));
            }
        }

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
