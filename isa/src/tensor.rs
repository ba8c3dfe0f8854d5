//! Allocated storage.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::ids::{Address, Loc, TensorId, TrailId};
use crate::names::Space;
use crate::view::{Dim, Dims, MAX_DIMS, View};

/// A piece of storage. Each iteration of an unrolled loop creates one, so the common fields are shared ([`Declaration`], to which
/// a tensor dereferences). Writing to a field gives the tensor its own copy of the declaration.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    declaration: Arc<Declaration>,
    /// The loop iterations and calls around its declaration.
    pub trail: TrailId,
}

/// The fields shared by all tensors that one statement creates.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Name for messages and reports: from `name=`, else the variable's. Not unique.
    pub name: Arc<str>,
    /// Memory.
    pub space: Space,
    /// Extents, outermost first. On chip the first is the partition dimension.
    pub shape: SmallVec<[u32; 4]>,
    /// Element type.
    pub dtype: DType,
    /// Shared HBM without `name=`. The device's compiler links the tensors of the two cores by name, so each core may have one of its own
    /// unless the kernel returns it.
    pub unnamed: bool,
    /// Explicit placement (on chip only).
    pub address: Option<Address>,
    /// The core that owns it (on chip and private HBM); 0 for shared tensors.
    pub core: u32,
    /// Initial contents, little-endian, row-major; `None` for an uninitialised tensor or an input.
    pub data: Option<Arc<[u8]>>,
    /// Number of dynamic loops around the declaration. Each iteration of the innermost one creates an on-chip tensor anew.
    pub loops: u32,
    /// Where it was declared.
    pub loc: Loc,
}

// An unrolled loop creates as many tensors as instructions (docs/performance.md, memory of an instruction).
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
    /// A tensor with this declaration, created inside `trail`.
    pub fn new(declaration: impl Into<Arc<Declaration>>, trail: TrailId) -> Self {
        Tensor { declaration: declaration.into(), trail }
    }

    /// The fields it shares with other tensors of the same statement.
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

    /// The partition at which a view of the tensor starts. A tensor without an address is taken to start at partition 0: its placement
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
