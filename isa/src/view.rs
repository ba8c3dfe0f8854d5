//! Views: the elements of a tensor that an operand names, and their order.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use arrayvec::ArrayVec;
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::ids::{RegId, TensorId};
use crate::names::{Engine, Space};

/// Maximum number of dimensions of a view.
pub const MAX_DIMS: usize = 8;

/// One dimension of an access pattern: `count` steps of `stride` elements (of partitions for dimension 0 on chip). Packed: a long program has
/// millions of them.
#[repr(Rust, packed(4))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dim {
    /// Step between neighbours, in elements of the view's dtype (partitions for dimension 0 on chip). 0 repeats.
    pub stride: i64,
    /// Number of steps; at least 1.
    pub count: u32,
}

/// The dimensions of a view, outermost first. A long program has few distinct ones, so views may share them; a change makes a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Dims(Arc<SmallVec<[Dim; 3]>>);

impl Dims {
    /// No dimensions.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Deref for Dims {
    type Target = SmallVec<[Dim; 3]>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Dims {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl FromIterator<Dim> for Dims {
    fn from_iter<I: IntoIterator<Item = Dim>>(dims: I) -> Self {
        Dims(Arc::new(dims.into_iter().collect()))
    }
}

impl IntoIterator for Dims {
    type Item = Dim;
    type IntoIter = smallvec::IntoIter<[Dim; 3]>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'d> IntoIterator for &'d Dims {
    type Item = &'d Dim;
    type IntoIter = std::slice::Iter<'d, Dim>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// An operand: elements of one tensor's storage.
///
/// On chip, `dims[0]` is the partition dimension and the others address elements inside a partition.
/// In HBM all dimensions address elements of the flat storage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View {
    /// The storage.
    pub tensor: TensorId,
    /// The storage's memory (a copy of the tensor's).
    pub space: Space,
    /// Element type of the access; may differ from the tensor's dtype.
    pub dtype: DType,
    /// First partition, counted from the tensor's first partition; 0 in HBM.
    pub partition: u32,
    /// First element, in elements of `dtype`, inside the partition (on chip) or the storage (HBM).
    pub offset: i64,
    /// Dimensions, outermost first; at least one, on chip at least two.
    pub dims: Dims,
    /// Offset that is known only at run time.
    pub indirect: Option<Box<Indirect>>,
}

// Every instruction has several (docs/performance.md, memory of an instruction).
const _: () = assert!(size_of::<View>() <= 40 && size_of::<Option<View>>() <= 40);

/// A dynamic part of a view's address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Indirect {
    /// The index's source.
    pub index: Index,
    /// Elements (of the view's dtype) per unit of the index.
    pub stride: i64,
    /// Extent of the indexed dimension of the base tensor: index values from `0` to `bound - 1` are in bounds.
    pub bound: u32,
}

/// Source of a dynamic index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Index {
    /// The value of a register, the same for all elements.
    Register(RegId),
    /// One element in SBUF or HBM, the same for all elements.
    Scalar(View),
    /// One index for each step of dimension 0, the only dimension it can replace: the index takes the place of its stride.
    Vector(View),
    /// Tensor indirection, on chip: an offset for each element of a partition, in place of dimension 1 (the only free one).
    /// Groups of partitions share offsets; the group depends on the engine: see [`column_group`] and [`column_position`].
    Columns(View),
}

impl Indirect {
    /// The index of [`Index::Columns`].
    pub fn columns(&self) -> Option<&View> {
        match &self.index {
            Index::Columns(v) => Some(v),
            _ => None,
        }
    }
}

/// Number of partitions that share offsets (docstring of `NkiTensor.indirect`).
pub fn column_group(engine: Engine) -> usize {
    if engine == Engine::Tensor { 32 } else { 16 }
}

/// Position of a partition's offset `i` in a row-major index of `columns` columns: a group's offsets run down its rows first.
pub fn column_position(group: usize, columns: usize, partition: usize, i: usize) -> usize {
    let first = partition / group * group;
    (first + i % group) * columns + i / group
}

impl View {
    /// Element counts, outermost first.
    pub fn shape(&self) -> ArrayVec<u32, MAX_DIMS> {
        self.dims.iter().map(|d| d.count).collect()
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.dims.iter().map(|d| d.count as usize).product()
    }

    /// Number of bytes named (repeats counted).
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }

    /// Number of partitions on chip; for HBM the size of the first dimension.
    pub fn partitions(&self) -> u32 {
        self.dims.first().map_or(1, |d| d.count)
    }

    /// `count` partitions of an on-chip view, from number `start` of its own.
    pub(crate) fn rows(&self, start: u32, count: u32) -> View {
        let mut rows = self.clone();
        if let Some(d) = rows.dims.first_mut() {
            rows.partition = self.partition.saturating_add_signed(d.stride as i32 * start as i32);
            d.count = count;
        }
        rows
    }

    /// The dimensions after the first.
    pub fn free_dims(&self) -> &[Dim] {
        self.dims.get(1..).unwrap_or(&[])
    }

    /// Elements per partition (per step of the first dimension).
    pub fn free_elements(&self) -> usize {
        self.free_dims().iter().map(|d| d.count as usize).product()
    }

    /// The dimensions with adjacent ones merged where they form one regular run of fewer than 2^32 elements; dimensions of size 1 are dropped.
    /// On chip the partition dimension is kept apart: only `free_dims` are merged. Never empty.
    pub fn merged(dims: &[Dim]) -> Dims {
        let mut out = Dims::new();
        for &d in dims {
            if d.count == 1 {
                continue;
            }
            if let Some(last) = out.last_mut()
                && last.stride == d.stride * i64::from(d.count)
                && let Some(count) = last.count.checked_mul(d.count)
            {
                *last = Dim { stride: d.stride, count };
                continue;
            }
            out.push(d);
        }
        if out.is_empty() {
            out.push(Dim { stride: 1, count: 1 });
        }
        out
    }

    /// Whether the elements of a partition (on chip) or all elements (HBM) are one contiguous run.
    pub fn is_contiguous(&self) -> bool {
        let dims = if self.space.is_on_chip() { self.free_dims() } else { &self.dims };
        let mut next = 1i64;
        dims.iter().rev().filter(|d| d.count != 1).all(|d| {
            let follows = d.stride == next;
            next = next.saturating_mul(i64::from(d.count));
            follows
        })
    }

    /// Lowest and highest element addressed by `dims`, relative to `offset`, both inclusive.
    pub fn span(dims: &[Dim]) -> (i64, i64) {
        let (mut lo, mut hi) = (0, 0);
        for d in dims {
            let reach = d.stride * i64::from(d.count - 1);
            if reach < 0 {
                lo += reach;
            } else {
                hi += reach;
            }
        }
        (lo, hi)
    }

    /// The contiguous byte runs of the view, in element order. Dynamic parts of the address are not included: add
    /// the index's displacement to each offset (for [`Index::Vector`], iterate over [`Self::row_runs`] once per index instead).
    ///
    /// On chip a run stays inside one partition. A repeat (stride 0) yields the same run again.
    pub fn runs(&self) -> Runs {
        let size = self.dtype.size() as i64;
        if self.space.is_on_chip() {
            let outer = self.dims.first().copied().unwrap_or(Dim { stride: 1, count: 1 });
            Runs::new(i64::from(self.partition), outer, self.offset, self.free_dims(), size)
        } else {
            Runs::new(0, Dim { stride: 0, count: 1 }, self.offset, &self.dims, size)
        }
    }

    /// The runs of one step of the first dimension, relative to that step's first element (offset 0, partition 0).
    pub fn row_runs(&self) -> Runs {
        Runs::new(0, Dim { stride: 0, count: 1 }, 0, self.free_dims(), self.dtype.size() as i64)
    }

    /// First byte and byte after the last, relative to the tensor (on chip, within a partition). Dynamic parts are not included.
    pub fn byte_span(&self) -> (i64, i64) {
        let (lo, hi) = Self::span(if self.space.is_on_chip() { self.free_dims() } else { &self.dims });
        let size = self.dtype.size() as i64;
        ((self.offset + lo) * size, (self.offset + hi + 1) * size)
    }

    /// First partition and partition after the last, relative to the tensor's first; `(0, 1)` in HBM.
    pub fn partition_span(&self) -> (i64, i64) {
        if !self.space.is_on_chip() {
            return (0, 1);
        }
        let (lo, hi) = Self::span(self.dims.get(..1).unwrap_or(&[]));
        (i64::from(self.partition) + lo, i64::from(self.partition) + hi + 1)
    }

    /// Whether the bounding boxes of both views overlap: `false` proves that they share no byte. Views with a
    /// dynamic address on the same tensor are assumed to overlap.
    pub fn may_intersect(&self, other: &View) -> bool {
        if self.tensor != other.tensor {
            return false;
        }
        if self.indirect.is_some() || other.indirect.is_some() {
            return true;
        }
        let cross = |a: (i64, i64), b: (i64, i64)| a.0 < b.1 && b.0 < a.1;
        cross(self.partition_span(), other.partition_span()) && cross(self.byte_span(), other.byte_span())
    }

    /// Whether both views share a byte of one tensor. Exact except for dynamic addresses (see [`Self::may_intersect`]).
    pub fn intersects(&self, other: &View) -> bool {
        if !self.may_intersect(other) {
            return false;
        }
        if self.indirect.is_some() || other.indirect.is_some() {
            return true;
        }
        let mut mine: Vec<Run> = self.runs().collect();
        let mut theirs: Vec<Run> = other.runs().collect();
        mine.sort_unstable();
        theirs.sort_unstable();
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (mine.get(i), theirs.get(j)) {
            if a.partition == b.partition && a.offset < b.end() && b.offset < a.end() {
                return true;
            }
            // All runs of a view have the same length, so the run that ends first overlaps no later one.
            if (a.partition, a.end()) <= (b.partition, b.end()) {
                i += 1;
            } else {
                j += 1;
            }
        }
        false
    }
}

/// A contiguous piece of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    /// Partition relative to the tensor's first; 0 in HBM. Negative only for a view that is out of bounds.
    pub partition: i64,
    /// First byte, in the partition (on chip) or the storage (HBM).
    pub offset: i64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Run {
    /// The byte after the last.
    pub fn end(&self) -> i64 {
        self.offset + self.bytes as i64
    }
}

/// Iterator over the contiguous runs of a view; see [`View::runs`].
#[derive(Debug, Clone)]
pub struct Runs {
    /// Outermost first, byte strides; the contiguous innermost dimension is excluded. Entry 0 steps partitions.
    dims: ArrayVec<Dim, { MAX_DIMS + 1 }>,
    at: ArrayVec<u32, { MAX_DIMS + 1 }>,
    next: Run,
    left: usize,
}

impl Runs {
    fn new(partition: i64, outer: Dim, offset: i64, free: &[Dim], size: i64) -> Self {
        let mut merged = View::merged(free);
        let mut bytes = size;
        if let Some(last) = merged.last().copied()
            && (last.stride == 1 || last.count == 1)
        {
            bytes = size * i64::from(last.count);
            merged.pop();
        }
        let mut dims = ArrayVec::new();
        dims.push(outer);
        dims.extend(merged.iter().map(|d| Dim { stride: d.stride * size, count: d.count }));
        Runs {
            at: dims.iter().map(|_| 0).collect(),
            left: dims.iter().map(|d: &Dim| d.count as usize).product(),
            next: Run { partition, offset: offset * size, bytes: bytes as u64 },
            dims,
        }
    }

    /// Bytes of each run: the same for all.
    pub fn run_bytes(&self) -> u64 {
        self.next.bytes
    }
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let run = self.next;
        for level in (0..self.dims.len()).rev() {
            let Dim { stride, count } = self.dims[level];
            let moved = if level == 0 { &mut self.next.partition } else { &mut self.next.offset };
            self.at[level] += 1;
            if self.at[level] < count {
                *moved += stride;
                break;
            }
            *moved -= stride * i64::from(count - 1);
            self.at[level] = 0;
        }
        Some(run)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Runs {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn view(space: Space, dtype: DType, offset: i64, dims: &[(i64, u32)]) -> View {
        View {
            tensor: TensorId(0),
            space,
            dtype,
            partition: 0,
            offset,
            dims: dims.iter().map(|&(stride, count)| Dim { stride, count }).collect(),
            indirect: None,
        }
    }

    fn run(partition: i64, offset: i64, bytes: u64) -> Run {
        Run { partition, offset, bytes }
    }

    #[test]
    fn a_run_of_more_than_u32_elements_stays_divided() {
        for n in [65_536, 65_537] {
            let square = view(Space::Hbm, DType::F32, 0, &[(i64::from(n), n), (1, n)]);
            assert_eq!(View::merged(&square.dims)[..], square.dims[..]);
            assert!(square.is_contiguous());
            let bytes: u64 = square.runs().map(|run| run.bytes).sum();
            assert_eq!(bytes, 4 * u64::from(n) * u64::from(n));
        }
    }

    #[test]
    fn a_tile_is_one_run_per_partition() {
        let v = View { partition: 4, ..view(Space::Sbuf, DType::BF16, 8, &[(1, 2), (64, 3), (1, 64)]) };
        assert_eq!(v.runs().collect::<Vec<_>>(), [run(4, 16, 384), run(5, 16, 384)]);
        assert_eq!(v.byte_span(), (16, 400));
        assert_eq!(v.partition_span(), (4, 6));
    }

    #[test]
    fn strided_and_reversed_elements_are_runs_of_one() {
        let v = view(Space::Hbm, DType::F32, 6, &[(-2, 3)]);
        assert_eq!(v.runs().collect::<Vec<_>>(), [run(0, 24, 4), run(0, 16, 4), run(0, 8, 4)]);
        assert_eq!(v.byte_span(), (8, 28));
    }

    #[test]
    fn a_broadcast_repeats_its_run() {
        let v = view(Space::Hbm, DType::U8, 0, &[(0, 3), (1, 5)]);
        assert_eq!(v.runs().collect::<Vec<_>>(), [run(0, 0, 5); 3]);
        assert_eq!(v.runs().len(), 3);
    }

    #[test]
    fn columns_that_interleave_do_not_intersect() {
        let even = view(Space::Sbuf, DType::F32, 0, &[(1, 8), (2, 4)]);
        let odd = view(Space::Sbuf, DType::F32, 1, &[(1, 8), (2, 4)]);
        assert!(even.may_intersect(&odd));
        assert!(!even.intersects(&odd));
        assert!(even.intersects(&view(Space::Sbuf, DType::U8, 3, &[(1, 1), (1, 1)])));
    }

    /// Every byte of the view, by the definition of a view.
    fn bytes_of(v: &View) -> Vec<(i64, i64)> {
        let size = v.dtype.size() as i64;
        let mut at = vec![(i64::from(v.partition), v.offset)];
        for (level, d) in v.dims.iter().enumerate() {
            let on_partition = level == 0 && v.space.is_on_chip();
            at = at
                .into_iter()
                .flat_map(|(p, o)| {
                    (0..i64::from(d.count))
                        .map(move |i| if on_partition { (p + i * d.stride, o) } else { (p, o + i * d.stride) })
                })
                .collect();
        }
        at.into_iter().flat_map(|(p, o)| (0..size).map(move |b| (p, o * size + b))).collect()
    }

    fn any_view() -> impl Strategy<Value = View> {
        let dim = (-6i64..7, 1u32..4).prop_map(|(stride, count)| Dim { stride, count });
        (
            proptest::collection::vec(dim, 2..5),
            any::<bool>(),
            prop_oneof![Just(DType::U8), Just(DType::BF16), Just(DType::F32)],
            0i64..40,
            0u32..3,
        )
            .prop_map(|(dims, on_chip, dtype, offset, partition)| View {
                tensor: TensorId(0),
                space: if on_chip { Space::Sbuf } else { Space::Hbm },
                dtype,
                partition: if on_chip { partition } else { 0 },
                offset,
                dims: dims.into_iter().collect(),
                indirect: None,
            })
    }

    proptest! {
        #[test]
        fn runs_name_the_bytes_in_order(v in any_view()) {
            let by_runs: Vec<_> =
                v.runs().flat_map(|r| (r.offset..r.end()).map(move |b| (r.partition, b))).collect();
            prop_assert_eq!(by_runs, bytes_of(&v));
        }

        #[test]
        fn rows_are_the_runs_of_a_step(v in any_view()) {
            let size = v.dtype.size() as i64;
            let outer = v.dims[0];
            let mut by_rows = Vec::new();
            for i in 0..i64::from(outer.count) {
                for r in v.row_runs() {
                    let (p, o) = if v.space.is_on_chip() { (i * outer.stride, 0) } else { (0, i * outer.stride) };
                    let start = r.offset + (v.offset + o) * size;
                    by_rows.extend((start..start + r.bytes as i64).map(|b| (i64::from(v.partition) + p, b)));
                }
            }
            prop_assert_eq!(by_rows, bytes_of(&v));
        }

        #[test]
        fn spans_are_tight(v in any_view()) {
            let bytes = bytes_of(&v);
            let (lo, hi) = v.byte_span();
            prop_assert_eq!(lo, bytes.iter().map(|b| b.1).min().unwrap());
            prop_assert_eq!(hi, bytes.iter().map(|b| b.1).max().unwrap() + 1);
            let (lo, hi) = v.partition_span();
            prop_assert_eq!(lo, bytes.iter().map(|b| b.0).min().unwrap());
            prop_assert_eq!(hi, bytes.iter().map(|b| b.0).max().unwrap() + 1);
        }

        #[test]
        fn merged_dims_address_the_same_elements(v in any_view()) {
            let merged = View { dims: View::merged(&v.dims), space: Space::Hbm, partition: 0, ..v.clone() };
            let plain = View { space: Space::Hbm, partition: 0, ..v };
            prop_assert_eq!(bytes_of(&merged), bytes_of(&plain));
            let is_run = matches!(merged.dims[..], [Dim { stride: 1, .. } | Dim { count: 1, .. }]);
            prop_assert_eq!(plain.is_contiguous(), is_run);
        }

        #[test]
        fn intersection_is_a_common_byte(a in any_view(), b in any_view()) {
            let b = View { space: a.space, partition: if a.space.is_on_chip() { b.partition } else { 0 }, ..b };
            let mine: BTreeSet<_> = bytes_of(&a).into_iter().collect();
            let common = bytes_of(&b).iter().any(|x| mine.contains(x));
            prop_assert_eq!(a.intersects(&b), common);
        }
    }
}
