//! The changes that remedies make.

use std::sync::Arc;

use nki_isa::ids::Loc;
use nki_isa::names::Engine;

/// The recommended change, with its numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum RemedyChange {
    /// Fewer and larger transfers.
    LargerDma {
        /// Number of transfers that are merged.
        before: u32,
        /// Number of transfers after the change.
        after: u32,
    },
    /// Bytes that are loaded repeatedly stay in SBUF.
    RedundantLoads {
        /// Loads that are dropped.
        loads: usize,
        /// Bytes that they load.
        bytes: u64,
        /// Bytes of SBUF per partition for them.
        kept: u64,
    },
    /// Each partition is one run in HBM.
    FewerDescriptors {
        /// Bytes of the shortest current run.
        shortest: u32,
    },
    /// Alternate loads use hardware descriptors, triggered by another engine.
    DmaQueue {
        /// NKI's name of that engine.
        engine: &'static str,
    },
    /// All transfers of a line use hardware descriptors, triggered by another engine.
    DmaQueueOfLine {
        /// NKI's name of that engine.
        engine: &'static str,
    },
    /// Transfers are split: users of the first part do not wait for the last.
    SplitDma {
        /// Transfers that are split.
        before: u32,
        /// Transfers after the change.
        after: u32,
        /// How the first of them is split.
        first: Cut,
        /// NKI's name of the engine that triggers alternate parts with hardware descriptors, if any.
        engine: Option<&'static str>,
    },
    /// Loads issued earlier.
    EarlierLoads {
        /// Loads that move up.
        loads: u32,
        /// The first of them.
        first: Spot,
        /// The instruction before which it is issued then.
        before: Spot,
    },
    /// Two buffers used alternately.
    DoubleBuffering {
        /// Names of the first few tensors.
        tensors: Vec<Arc<str>>,
        /// Additional bytes of SBUF per partition.
        sbuf: usize,
        /// Additional bytes of PSUM per partition.
        psum: usize,
    },
    /// Instructions of one line run on another engine.
    IdleEngine {
        /// The moved instructions.
        moved: Moved,
        /// NKI's name of the instructions.
        label: &'static str,
        /// The busy engine.
        from: Engine,
        /// The idle engine.
        to: Engine,
    },
    /// The same multiplications in full tiles.
    FullMatmuls {
        /// Number of matmuls saved.
        merged: usize,
    },
    /// All partitions and longer rows per instruction.
    FullRows {
        /// Number of instructions saved.
        merged: usize,
    },
    /// bfloat16 for float32.
    LowerPrecision {
        /// Percentage of instructions that use float32.
        percent: usize,
    },
}

/// How a transfer is split.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Its line.
    pub loc: Loc,
    /// Number of equal parts.
    pub parts: u32,
    /// The split of its destination.
    pub dst: Slice,
    /// The split of its source.
    pub src: Slice,
}

/// A part of one side of a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// The tensor.
    pub tensor: Arc<str>,
    /// Whether the unsplit transfer moves all of it.
    pub whole: bool,
    /// The axis along which it is split, the outermost being 0.
    pub axis: usize,
    /// Extent of a part along that axis.
    pub step: u32,
}

/// An instruction of the source.
#[derive(Debug, Clone, PartialEq)]
pub struct Spot {
    /// NKI's name of the instruction; empty for control flow.
    pub label: &'static str,
    /// Its line.
    pub loc: Loc,
    /// The iterations around it, outermost first.
    pub iterations: Vec<(String, i64)>,
}

/// Which instructions of a line are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// All of them: there is only one.
    All,
    /// Every other one; the number of moved instructions.
    EveryOther(u32),
}

impl RemedyChange {
    /// `larger-dma`, `fewer-descriptors`, `double-buffering`, `tile-shape`, `lower-precision`, `idle-engine`, `redundant-loads`, `dma-queues`, `split-dma` or
    /// `earlier-loads`.
    pub fn kind(&self) -> &'static str {
        match self {
            RemedyChange::LargerDma { .. } => "larger-dma",
            RemedyChange::RedundantLoads { .. } => "redundant-loads",
            RemedyChange::FewerDescriptors { .. } => "fewer-descriptors",
            RemedyChange::DmaQueue { .. } | RemedyChange::DmaQueueOfLine { .. } => "dma-queues",
            RemedyChange::SplitDma { .. } => "split-dma",
            RemedyChange::EarlierLoads { .. } => "earlier-loads",
            RemedyChange::DoubleBuffering { .. } => "double-buffering",
            RemedyChange::IdleEngine { .. } => "idle-engine",
            RemedyChange::FullMatmuls { .. } | RemedyChange::FullRows { .. } => "tile-shape",
            RemedyChange::LowerPrecision { .. } => "lower-precision",
        }
    }
}
