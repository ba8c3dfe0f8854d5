//! Pieces of storage.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::ids::{Address, Loc, TensorId, TrailId};
use crate::names::Space;
use crate::view::{Dim, Dims, MAX_DIMS, View};

/// A piece of storage. The iterations of an unrolled loop make one each, so that what they have in common is kept once ([`Declaration`], whose fields
/// a tensor dereferences to). Writing to a field gives the tensor a declaration of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    declaration: Arc<Declaration>,
    /// The loop iterations and calls around the place where it was made.
    pub trail: TrailId,
}

/// What tensors that are made by one statement have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Name for messages and reports: the `name=` given, else the variable's. Not unique.
    pub name: Arc<str>,
    /// Memory.
    pub space: Space,
    /// Extents, outermost first. On chip the first is the partition dimension.
    pub shape: SmallVec<[u32; 4]>,
    /// Element type.
    pub dtype: DType,
    /// Explicit placement (on chip only).
    pub address: Option<Address>,
    /// The core that owns it (on chip and private HBM); 0 for shared tensors.
    pub core: u32,
    /// Initial contents, little-endian, row-major; `None` is uninitialised (or an input).
    pub data: Option<Arc<[u8]>>,
    /// How many dynamic loops are around the place where it was made: on chip it is made anew in each iteration of the innermost one.
    pub loops: u32,
    /// Where it was made.
    pub loc: Loc,
}

// An unrolled loop makes as many tensors as instructions (docs/performance.md, memory of an instruction).
const _: () = assert!(size_of::<Tensor>() <= 16);

impl Deref for Tensor {
    type Target = Declaration;

    fn deref(&self) -> &Declaration {
        &self.declaration
    }
}

impl DerefMut for Tensor {
    fn deref_mut(&mut self) -> &mut Declaration {
        Arc::make_mut(&mut self.declaration)
    }
}

impl Tensor {
    /// A tensor with this declaration, made inside of `trail`.
    pub fn new(declaration: impl Into<Arc<Declaration>>, trail: TrailId) -> Self {
        Tensor { declaration: declaration.into(), trail }
    }

    /// What it has in common with the tensors that the same statement makes.
    pub fn declaration(&self) -> &Arc<Declaration> {
        &self.declaration
    }
}

impl Declaration {
    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().map(|&n| n as usize).product()
    }
    /// Bytes per partition on chip; all bytes in HBM.
    pub fn bytes(&self) -> usize {
        let n = if self.space.is_on_chip() {
            self.shape.iter().skip(1).map(|&n| n as usize).product()
        } else {
            self.elements()
        };
        n * self.dtype.size()
    }

    /// The partition at which a view of the tensor starts. A tensor without an address counts as one at partition 0: where it is placed
    /// satisfies the same rules.
    pub fn start_partition(&self, view: &View) -> u32 {
        self.address.map_or(0, |a| a.partition) + view.partition
    }
}

impl View {
    /// A view of a whole tensor.
    pub fn whole(id: TensorId, tensor: &Tensor) -> View {
        let mut dims = Dims::new();
        let mut stride = 1;
        for &count in tensor.shape.iter().rev().take(MAX_DIMS) {
            dims.insert(0, Dim { stride, count });
            stride *= i64::from(count);
        }
        if tensor.space.is_on_chip() {
            if let Some(partition) = dims.first_mut() {
                partition.stride = 1;
            }
            if dims.len() == 1 {
                dims.push(Dim { stride: 1, count: 1 });
            }
        }
        View { tensor: id, space: tensor.space, dtype: tensor.dtype, partition: 0, offset: 0, dims, indirect: None }
    }
}
