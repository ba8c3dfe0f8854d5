//! What a remedy changes.

use std::sync::Arc;

use nki_isa::names::Engine;

/// What to do, with the numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Fewer and larger transfers.
    LargerDma {
        /// Transfers in place of those.
        before: u32,
        /// That many.
        after: u32,
    },
    /// Bytes that are loaded again stay in SBUF.
    RedundantLoads {
        /// Loads that are left out.
        loads: usize,
        /// Bytes that they load.
        bytes: u64,
        /// Bytes of SBUF that it takes for each partition.
        kept: u64,
    },
    /// Each partition is one run in HBM.
    FewerDescriptors {
        /// Bytes of the shortest run now.
        shortest: u32,
    },
    /// Every other load has hardware descriptors, triggered by another engine.
    DmaQueue {
        /// NKI's name of that engine.
        engine: &'static str,
    },
    /// Two buffers in turn.
    DoubleBuffering {
        /// Names of the tensors, the first few.
        tensors: Vec<Arc<str>>,
        /// More bytes of SBUF for each partition.
        sbuf: usize,
        /// More bytes of PSUM for each partition.
        psum: usize,
    },
    /// Instructions of one line run on another engine.
    IdleEngine {
        /// Which of them.
        moved: Moved,
        /// NKI's name of the instruction.
        label: &'static str,
        /// The engine that is busy.
        from: Engine,
        /// The engine that is not.
        to: Engine,
    },
    /// The same multiplications in full tiles.
    FullMatmuls {
        /// Matmuls less.
        merged: usize,
    },
    /// All partitions and longer rows in each instruction.
    FullRows {
        /// Instructions less.
        merged: usize,
    },
    /// bfloat16 for float32.
    LowerPrecision {
        /// Of the instructions, those that use float32.
        percent: usize,
    },
}

/// Which instructions of a line are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The only one.
    All,
    /// Every other one, so many.
    EveryOther(u32),
}

impl Change {
    /// `larger-dma`, `fewer-descriptors`, `double-buffering`, `tile-shape`, `lower-precision`, `idle-engine`, `redundant-loads` or `dma-queues`.
    pub fn kind(&self) -> &'static str {
        match self {
            Change::LargerDma { .. } => "larger-dma",
            Change::RedundantLoads { .. } => "redundant-loads",
            Change::FewerDescriptors { .. } => "fewer-descriptors",
            Change::DmaQueue { .. } => "dma-queues",
            Change::DoubleBuffering { .. } => "double-buffering",
            Change::IdleEngine { .. } => "idle-engine",
            Change::FullMatmuls { .. } | Change::FullRows { .. } => "tile-shape",
            Change::LowerPrecision { .. } => "lower-precision",
        }
    }
}
