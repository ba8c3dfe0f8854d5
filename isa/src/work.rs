//! What an instruction costs, in the hardware's terms: rows, columns, elements, bytes, descriptors. Never time.

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::names::{DgeMode, Engine};
use crate::view::{Dim, Space, View};

/// The work of one instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The engine whose queue it goes through. For DMA: the engine that triggers it, `Unknown` where the program leaves that open.
    pub engine: Engine,
    /// What is to be done.
    pub kind: WorkKind,
}

/// Kinds of work.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkKind {
    /// Elements streamed through a vector, scalar or GpSimd engine.
    Stream(Stream),
    /// Weights loaded and columns moved through the tensor engine.
    Matmul(Matmul),
    /// Bytes moved by DMA.
    Dma(Dma),
    /// Waiting for others, and what moves without the core's DMA queues.
    Meet(Meet),
    /// A sequencer instruction: register moves and arithmetic.
    Register(RegisterWork),
    /// Nothing on any engine (device_print, hints).
    Free,
}

/// What a meeting costs when all have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meet {
    /// Each core writes a semaphore of the other and waits for its own.
    Barrier,
    /// GpSimd's own DMA engine moves bytes from one core's SBUF to the other's.
    GpSimdDma {
        /// Bytes that this core receives.
        bytes: u64,
    },
    /// Ranks move data to each other.
    Collective(Collective),
}

/// What a collective moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collective {
    /// Which way.
    pub kind: CollectiveKind,
    /// Bytes of what one rank has of an all-gather, gets of a reduce-scatter, sends to each other rank, or permutes; of an all-reduce, the
    /// whole divided by the ranks.
    pub chunk_bytes: u64,
    /// Ranks of the group.
    pub ranks: u32,
}

/// How a collective moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// All get what all have.
    AllGather,
    /// Each gets a part of the reduction.
    ReduceScatter,
    /// All get the reduction.
    AllReduce,
    /// Each sends a part to each.
    AllToAll,
    /// Each sends to one.
    Permute,
}

/// Sequencer work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterWork {
    /// Immediate or register to register.
    Move,
    /// Memory to register.
    Load,
    /// Register to memory.
    Store,
}

/// What a streaming instruction computes, as far as its cost depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamClass {
    /// A copy, possibly with conversion.
    Copy,
    /// One tensor input with scalars.
    TensorScalar,
    /// Two tensor inputs.
    TensorTensor,
    /// Two tensor inputs and a scalar.
    ScalarTensorTensor,
    /// A reduction along the free dimensions.
    Reduce,
    /// A tensor-scalar operation followed by a reduction.
    TensorScalarReduce,
    /// A running scan of two tensors.
    Scan,
    /// A running reduction of one tensor and scalars.
    Cumulative,
    /// `1 / x`.
    Reciprocal,
    /// A predicated copy.
    Predicated,
    /// A choice between a tile and a scalar, its maximum on the way.
    SelectReduce,
    /// A selection of positions between two bounds.
    RangeSelect,
    /// A selection by an affine predicate.
    AffineSelect,
    /// A generated pattern.
    Iota,
    /// A constant fill.
    Memset,
    /// A 32x32 block transpose on the vector engine.
    Transpose,
    /// An activation function of the scalar engine; the name selects the function table.
    Activation(&'static str),
    /// `exp` of the vector engine.
    Exponential,
    /// Counts, means and variances of a row.
    BnStats,
    /// One mean and variance of many.
    BnAggr,
    /// The eight largest of a row.
    Max8,
    /// Where eight values stand in a row.
    FindIndex8,
    /// Eight values of a row replaced.
    MatchReplace8,
    /// Partitions moved within groups of 32.
    Shuffle,
    /// Random zeros.
    Dropout,
    /// Random bits.
    Random,
    /// Random numbers between two bounds.
    RandomFloat,
    /// Words of the random number generators loaded or stored.
    GeneratorState,
    /// Conversion to MX types, with the scales.
    QuantizeMx,
    /// Runs of elements gathered; the partitions of a GpSimd core share the indices. As long as the indices of a core.
    LocalGather,
    /// Elements gathered; each partition has its own indices.
    NGather,
    /// Positions of what is not zero.
    Nonzero,
    /// Start and end of each element's segment.
    SequenceBounds,
    /// The largest of 16 partitions. As long as these have elements together.
    TopK,
    /// A reduction over the partitions.
    PartitionReduce,
}

/// One streaming pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// What is computed.
    pub class: StreamClass,
    /// Input elements per partition of the longest operand.
    pub elements: u32,
    /// Partitions.
    pub partitions: u32,
    /// Tensor inputs with more than one element per partition.
    pub inputs: SmallVec<[Operand; 3]>,
    /// Outputs.
    pub outputs: SmallVec<[Operand; 2]>,
    /// Per-partition scalar operands read from memory.
    pub scalar_reads: u32,
    /// A reduction result is read out of the accumulators afterwards (activation_reduce, tensor_scalar_reduce).
    pub accumulator_read: bool,
    /// Whether the ALU operators have the fast 16-bit modes (add, subtract, multiply, maximum).
    pub simple_op: bool,
}

/// How an operand lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Where.
    pub space: Space,
    /// Element type.
    pub dtype: DType,
    /// Elements per partition.
    pub elements: u32,
    /// Bytes between neighbours in the innermost dimension (the element size when contiguous, 0 for a broadcast).
    pub inner_stride_bytes: u32,
}

impl Operand {
    /// How `view` lies.
    pub fn of(view: &View) -> Self {
        let merged = View::merged(view.free_dims());
        let size = view.dtype.size() as u64;
        let stride = merged.last().map_or(1, |d: &Dim| if d.count == 1 { 1 } else { d.stride.unsigned_abs() });
        Operand {
            space: view.space,
            dtype: view.dtype,
            elements: view.free_elements() as u32,
            inner_stride_bytes: (stride * size).min(u64::from(u32::MAX)) as u32,
        }
    }
}

/// A pass through the tensor engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Matmul {
    /// Contraction rows in use (partitions of the operands).
    pub rows: u32,
    /// Columns in use (free size of the stationary operand).
    pub columns: u32,
    /// Moving columns streamed.
    pub moving: u32,
    /// Type of the stationary operand.
    pub stationary_dtype: DType,
    /// Type of the moving operand.
    pub moving_dtype: DType,
    /// How the moving operand lies.
    pub moving_layout: Operand,
    /// Transpose mode (single pass, exact).
    pub transpose: bool,
    /// FP8 double rate.
    pub double_row: bool,
    /// The stationary operand is ones and zeros (hint).
    pub stationary_onezero: bool,
    /// The moving operand is ones and zeros (hint).
    pub moving_onezero: bool,
    /// `(start_row, start_column)` in the array.
    pub tile_position: (u32, u32),
    /// `(rows, columns)` of the array tile.
    pub tile_size: (u32, u32),
    /// Identifies the stationary operand's bytes, so that a repeated load can be dropped: the view itself.
    pub stationary: View,
}

/// What a DMA moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Dma {
    /// Source side.
    pub src: DmaSide,
    /// Destination side.
    pub dst: DmaSide,
    /// Bytes moved, counted at the destination.
    pub bytes: u64,
    /// Elements moved.
    pub elements: u64,
    /// Who makes the descriptors, as asked by the program.
    pub dge: DgeMode,
    /// One side has a dynamic address.
    pub dynamic: bool,
    /// One side is a gather or scatter by a vector of indices.
    pub indirect: bool,
    /// The bytes are transposed on the way.
    pub transpose: bool,
    /// The element type changes.
    pub cast: bool,
}

/// One side of a DMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmaSide {
    /// Memory.
    pub space: Space,
    /// First SBUF partition relative to the tensor's and partitions touched (rows of the first dimension in HBM).
    pub partitions: (u32, u32),
    /// Bytes of one contiguous run.
    pub run_bytes: u32,
    /// Number of contiguous runs.
    pub runs: u64,
    /// Bytes from the start of one run to the next; 0 if there is only one.
    pub stride_bytes: u64,
}

impl DmaSide {
    /// How `view` splits into contiguous runs. On chip a run never crosses partitions.
    pub fn of(view: &View) -> Self {
        let dims = if view.space.is_on_chip() { view.free_dims() } else { &view.dims[..] };
        let merged = View::merged(dims);
        let (run, outer) = match merged.split_last() {
            Some((d, outer)) if d.stride == 1 || d.count == 1 => (u64::from(d.count), outer.last()),
            Some((d, _)) => (1, Some(d)),
            None => (1, None),
        };
        let total = view.elements() as u64;
        DmaSide {
            space: view.space,
            partitions: (view.partition, view.partitions()),
            run_bytes: (run * view.dtype.size() as u64).min(u64::from(u32::MAX)) as u32,
            runs: total / run.max(1),
            stride_bytes: outer.map_or(0, |d| d.stride.unsigned_abs() * view.dtype.size() as u64),
        }
    }
}
