//! An instruction's cost in hardware terms: rows, columns, elements, bytes, descriptors, but never time.

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::names::{DgeMode, Engine, Space};
use crate::view::{Dim, View};

/// The work of one instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The engine whose queue it uses. For DMA: the engine that triggers it, `Unknown` if the program does not name it.
    pub engine: Engine,
    /// The kind of work.
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
    /// A wait for other cores or ranks, and transfers outside the core's DMA queues.
    Rendezvous(RendezvousWork),
    /// A sequencer instruction: register moves and arithmetic.
    Register(RegisterWork),
    /// Nothing on any engine (device_print, hints).
    Free,
}

/// The cost of a rendezvous once all members have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RendezvousWork {
    /// Each core writes the other's semaphore and waits for its own.
    Barrier,
    /// GpSimd's own DMA engine moves bytes from one core's SBUF to the other's.
    GpSimdDma {
        /// Bytes that this core receives.
        bytes: u64,
    },
    /// Ranks move data to each other.
    Collective(Collective),
}

/// The transfers of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collective {
    /// The communication pattern.
    pub kind: CollectiveKind,
    /// Bytes that one rank contributes to an all-gather, receives from a reduce-scatter, sends to each other rank, or permutes; for an all-reduce,
    /// the total divided by the number of ranks.
    pub chunk_bytes: u64,
    /// Ranks of the group.
    pub ranks: u32,
}

/// The communication pattern of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// All ranks receive the data of all ranks.
    AllGather,
    /// Each rank receives a part of the reduction.
    ReduceScatter,
    /// All ranks receive the reduction.
    AllReduce,
    /// Each rank sends a part to each rank.
    AllToAll,
    /// Each rank sends to one rank.
    Permute,
}

/// Sequencer work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterWork {
    /// Immediate or register to register.
    Move,
    /// SBUF to register.
    Load,
    /// HBM to register.
    LoadFromHbm,
    /// Register to memory.
    Store,
}

impl RegisterWork {
    /// A load from a tensor in this memory.
    pub fn load(space: Space) -> Self {
        if space.is_hbm() { RegisterWork::LoadFromHbm } else { RegisterWork::Load }
    }
}

/// The cost function of a pass. Names are rows of the timing parameters: an instruction reuses the rows of another one with the same timing,
/// or has its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// Elements through the vector engine.
    Vector(VectorLaw),
    /// A function of the scalar engine, by its name in the function tables.
    Function(&'static str),
    /// Elements through the GpSimd cores.
    GpSimd,
    /// An algorithm of the GpSimd cores.
    Algorithm(Algorithm),
}

/// The timing parameters of a pass through the vector engine. Another engine charges the pass by its size alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorLaw {
    /// Cycles for each element of a partition.
    pub cycles: Cycles,
    /// Row of `vector.fixed_ns`: completion latency of an instruction without elements.
    pub fixed: &'static str,
    /// Row of `vector.fixed_ns` added by each scalar operand read from memory, if any.
    pub scalar: Option<&'static str>,
    /// The issue of the instruction.
    pub issue: Issue,
}

/// The kind of an instruction whose issue by the vector engine takes a time of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issue {
    /// Most instructions.
    Usual,
    /// Transposes of blocks, which follow one another more slowly.
    BlockTranspose,
}

/// Rows of `vector.cycles` by performance mode. Narrow operands are 16-bit floats, and 8-bit ones on generations that stream them as fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cycles {
    /// No fast mode.
    pub general: &'static str,
    /// All operands are narrow, contiguous and in SBUF.
    pub narrow: &'static str,
    /// All are narrow and in SBUF, some strided.
    pub narrow_strided: &'static str,
    /// All are in SBUF; the inputs are narrow and the outputs wider.
    pub widening: &'static str,
    /// Some operand is in PSUM.
    pub psum: &'static str,
    /// Some operand is in PSUM; all are narrow and contiguous.
    pub psum_narrow: &'static str,
}

impl Cycles {
    /// One row for all modes.
    pub const fn all(row: &'static str) -> Self {
        Cycles { general: row, narrow: row, narrow_strided: row, widening: row, psum: row, psum_narrow: row }
    }
}

/// Cycles of a GpSimd algorithm: a fixed part and some terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Algorithm {
    /// How often the fixed part is charged.
    pub start: Start,
    /// The terms of the sum.
    pub terms: &'static [Term],
}

/// The fixed part of a GpSimd algorithm (`gpsimd.fixed_cycles`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start {
    /// A constant.
    Once,
    /// Once per group of elements; this row of `gpsimd.cycles` is the group size.
    EachGroup(&'static str),
    /// It is not added; it is the minimum of the terms' sum.
    AtLeast,
}

/// A term of a GpSimd algorithm: cycles of a row of `gpsimd.cycles`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Term {
    /// For each element of a partition.
    Elements(&'static str),
    /// For each element of all partitions.
    AllPartitions(&'static str),
    /// For each result of a partition.
    Results(&'static str),
    /// For each element, which indexes a run of results. Each result takes one more cycle, and a core moves 32 bits per partition and cycle.
    Runs(&'static str),
}

/// One streaming pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// The cost function.
    pub law: Law,
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
}

/// The layout of an operand in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// The memory.
    pub space: Space,
    /// Element type.
    pub dtype: DType,
    /// Elements per partition.
    pub elements: u32,
    /// Bytes between adjacent elements of the innermost dimension (the element size when contiguous, 0 for a broadcast).
    pub inner_stride_bytes: u32,
}

impl Operand {
    /// The layout of `view`.
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
    /// The layout of the moving operand.
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
    /// The view of the stationary operand; it identifies the operand's bytes, so that a repeated load can be dropped.
    pub stationary: View,
}

/// The transfers of a DMA.
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
    /// The requested descriptor generator.
    pub dge: DgeMode,
    /// One side has a dynamic address.
    pub dynamic: bool,
    /// One side has an address computed from an index in SBUF, not from a register.
    pub indexed: bool,
    /// One side is a gather or scatter by a vector of indices.
    pub indirect: bool,
    /// The transfer transposes the bytes.
    pub transpose: bool,
    /// The element type changes.
    pub cast: bool,
}

/// One side of a DMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmaSide {
    /// Memory.
    pub space: Space,
    /// First SBUF partition relative to the tensor's, and number of partitions touched (rows of the first dimension in HBM).
    pub partitions: (u32, u32),
    /// Bytes of one contiguous run.
    pub run_bytes: u32,
    /// Number of contiguous runs.
    pub runs: u64,
    /// Bytes from the start of one run to that of the closest other run in the pattern; 0 if there is only one. The descriptors of a transfer
    /// may be in any order; the old compiler's merged transfers alternate between those of the closest rows (profiles of attention).
    pub stride_bytes: u64,
}

impl DmaSide {
    /// The contiguous runs of `view`. On chip a run never crosses partitions.
    pub fn of(view: &View) -> Self {
        let dims = if view.space.is_on_chip() { view.free_dims() } else { &view.dims[..] };
        let merged = View::merged(dims);
        let (run, outer) = match merged.split_last() {
            Some((d, outer)) if d.stride == 1 || d.count == 1 => (u64::from(d.count), outer),
            _ => (1, &merged[..]),
        };
        let apart = outer.iter().filter(|d| d.count > 1).map(|d| d.stride.unsigned_abs()).min();
        let total = view.elements() as u64;
        DmaSide {
            space: view.space,
            partitions: (view.partition, view.partitions()),
            run_bytes: (run * view.dtype.size() as u64).min(u64::from(u32::MAX)) as u32,
            runs: total / run.max(1),
            stride_bytes: apart.unwrap_or(0) * view.dtype.size() as u64,
        }
    }
}
