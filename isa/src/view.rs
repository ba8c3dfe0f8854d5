//! Views: which elements of a tensor an operand names, in which order.

use arrayvec::ArrayVec;

use crate::dtype::DType;
use crate::program::{RegId, TensorId};

crate::named_enum! {
    /// A memory.
    pub enum Space: "memory" {
        /// On-chip state buffer: partitions of [`crate::Arch::sbuf_bytes`].
        Sbuf "sbuf",
        /// On-chip accumulation buffer: partitions of 8 banks of 2 KiB.
        Psum "psum",
        /// Device memory of one core.
        Hbm "hbm" | "private_hbm",
        /// Device memory shared by the cores of a logical core.
        SharedHbm "shared_hbm",
    }
}

impl Space {
    /// SBUF or PSUM: memory with partitions.
    pub fn is_on_chip(self) -> bool {
        matches!(self, Space::Sbuf | Space::Psum)
    }
    /// Either kind of HBM.
    pub fn is_hbm(self) -> bool {
        !self.is_on_chip()
    }
}

/// Most dimensions that a view can have.
pub const MAX_DIMS: usize = 8;

/// One dimension of an access pattern: `count` steps of `stride` elements (of partitions for dimension 0 on chip).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dim {
    /// Step between neighbours, in elements of the view's dtype (partitions for dimension 0 on chip). 0 repeats.
    pub stride: i64,
    /// Number of steps; at least 1.
    pub count: u32,
}

/// The dimensions of a view, outermost first.
pub type Dims = ArrayVec<Dim, MAX_DIMS>;

/// An operand: elements of one tensor's storage.
///
/// On chip, `dims[0]` is the partition dimension and the others address elements inside a partition.
/// In HBM all dimensions address elements of the flat storage.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The storage.
    pub tensor: TensorId,
    /// The storage's memory (a copy of the tensor's).
    pub space: Space,
    /// How the bytes are read; may differ from the tensor's dtype.
    pub dtype: DType,
    /// First partition, counted from the tensor's first partition; 0 in HBM.
    pub partition: u32,
    /// First element, in elements of `dtype`, inside the partition (on chip) or the storage (HBM).
    pub offset: i64,
    /// Dimensions, outermost first; at least one, on chip at least two.
    pub dims: Dims,
    /// Offset that is known only when the program runs.
    pub indirect: Option<Box<Indirect>>,
}

/// A dynamic part of a view's address.
#[derive(Debug, Clone, PartialEq)]
pub struct Indirect {
    /// Where the index comes from.
    pub index: Index,
    /// Elements (of the view's dtype) that one unit of the index moves.
    pub stride: i64,
    /// The indexed dimension of the view's `dims` for [`Index::Vector`] (always 0 at present).
    pub dim: u32,
    /// Extent of the indexed dimension of the base tensor: index values from `0` to `bound - 1` are in bounds.
    pub bound: u32,
}

/// Source of a dynamic index.
#[derive(Debug, Clone, PartialEq)]
pub enum Index {
    /// The value of a register, the same for all elements.
    Register(RegId),
    /// One element in SBUF or HBM, the same for all elements.
    Scalar(View),
    /// One index per step of dimension `dim`: replaces that dimension's own stride.
    Vector(View),
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

    /// The dimensions after the first.
    pub fn free_dims(&self) -> &[Dim] {
        self.dims.get(1..).unwrap_or(&[])
    }

    /// Elements per partition (per step of the first dimension).
    pub fn free_elements(&self) -> usize {
        self.free_dims().iter().map(|d| d.count as usize).product()
    }

    /// The dimensions with neighbours merged where they address one regular run, size-1 dimensions dropped.
    /// On chip the partition dimension is kept apart: only `free_dims` are merged. Never empty.
    pub fn merged(dims: &[Dim]) -> Dims {
        let mut out = Dims::new();
        for &d in dims {
            if d.count == 1 {
                continue;
            }
            if let Some(last) = out.last_mut()
                && last.stride == d.stride * i64::from(d.count)
            {
                *last = Dim { stride: d.stride, count: last.count * d.count };
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
        let m = Self::merged(if self.space.is_on_chip() { self.free_dims() } else { &self.dims });
        m.len() == 1 && (m[0].stride == 1 || m[0].count == 1)
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
}
