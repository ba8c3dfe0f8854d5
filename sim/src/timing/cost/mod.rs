//! What an instruction costs in time: the boundary between the machine and the laws.

mod dma;
mod laws;
mod rendezvous;
mod stream;
mod table;
mod tensor;

use nki_isa::View;
use nki_isa::names::{DgeMode, Engine};
use nki_isa::work::Work;
use smallvec::SmallVec;

use super::fixed::{Millionths, Thousandths};
use super::params::Confidence;
use crate::timeline::Ps;
use crate::trace::{CoreId, NodeIndex};

/// Engine queues.
const QUEUES: usize = Engine::QUEUES.len();

pub use laws::Laws;
pub(crate) use table::Costs;

/// Turns work into time. Implement it to swap the laws; the schedule, the machine and the reports stay.
pub trait CostModel: Sync {
    /// The cost of an instruction.
    fn cost(&self, work: &Work, place: Place) -> Cost;
    /// What the machine itself needs.
    fn machine(&self) -> &MachineConstants;
}

/// Where an instruction's operands lie, as far as its cost depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// First physical partition of the on-chip destination of a DMA, else of its on-chip source.
    pub partition: Option<u32>,
    /// The core that runs it.
    pub core: u32,
    /// The statement, for models that change the cost of some instructions only (see [`crate::analysis::remedies`]).
    pub node: NodeIndex,
}

/// The cost of one instruction. All times are for a machine without contention.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cost {
    /// The engine whose queue it goes through; `Unknown` for a DMA whose queue is open.
    pub engine: Engine,
    /// What it does there.
    pub kind: CostKind,
    /// The weakest parameter used.
    pub confidence: Confidence,
}

/// Kinds of cost.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CostKind {
    /// A pass through a compute engine or a sequencer.
    Compute {
        /// From its start until the engine can start another instruction.
        occupancy: Ps,
        /// From its start until its results are there.
        complete: Ps,
        /// The function table that it needs, by number.
        table: Option<u32>,
        /// Whether it uses the port that vector and GpSimd engine share.
        port: bool,
    },
    /// A pass through the tensor engine.
    Matmul {
        /// Loading the weights.
        weights: Ps,
        /// Moving the columns at the full rate.
        moving: Ps,
        /// The least time between two matmuls, which the power limiter does not stretch.
        least: Ps,
        /// From the last column until the result is there.
        drain: Ps,
        /// The cells of the array in use ([`nki_isa::Arch::tensor_cell`]), a bit each, row-major.
        cells: u16,
        /// Whether it multiplies in fp32, and not only moves.
        fp32: bool,
        /// Use of the array's rows, for the power limiter.
        load: Thousandths,
        /// Whose bytes the weights are: a repeated load is dropped. `None` if they cannot be compared.
        stationary: Option<Box<View>>,
    },
    /// A transfer.
    Dma(Box<DmaCost>),
    /// Nothing: the instruction is not on the timeline.
    Free,
}

/// The cost of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DmaCost {
    /// Between which memories it moves data.
    pub direction: Direction,
    /// Which queues it can take if its engine is open.
    pub open: OpenQueue,
    /// If the hardware makes the descriptors for the engine that triggers it.
    pub hardware: Trigger,
    /// If GpSimd makes them.
    pub software: Trigger,
    /// Part of the payload time that occupies no DMA engine.
    pub payload: Ps,
    /// From the last byte until the semaphore is visible.
    pub notify: Ps,
    /// Time on each DMA engine that carries a part of it.
    pub engines: SmallVec<[(u8, Ps); 16]>,
    /// Bytes, counted at the destination.
    pub bytes: u64,
    /// Bytes of the traffic that the cores of a logical core share: those read from HBM and written to it, and a little more for
    /// each descriptor and for rows that are apart; those copied inside SBUF.
    pub shared_load: u64,
}

/// What it takes to start a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Trigger {
    /// For how long the descriptors occupy the engine that triggers the transfer.
    pub occupancy: Ps,
    /// From then until the transfer reaches the DMA engines.
    pub dispatch: Ps,
}

impl Cost {
    /// The cost of a transfer that moves this share of its rows and skips the others: descriptors are made for all. `None` if it is none.
    ///
    /// Evidence: 256 dynamic transfers of a public trn1 kernel take 843, 673, 523 and 203 us if none, 64, 128 and all are skipped
    /// (foxl-ai/kiln, docs/neuron-notes.md).
    pub(crate) fn of_share(&self, share: f64) -> Option<Cost> {
        let CostKind::Dma(whole) = &self.kind else { return None };
        let part = |n: u64| (n as f64 * share).round() as u64;
        let engines = whole.engines.iter().map(|&(e, time)| (e, part(time))).collect();
        let (bytes, shared_load) = (part(whole.bytes), part(whole.shared_load));
        let dma = DmaCost { engines, bytes, shared_load, ..(**whole).clone() };
        Some(Cost { kind: CostKind::Dma(Box::new(dma)), ..self.clone() })
    }
}

impl DmaCost {
    /// Time on the DMA engine that carries most of it.
    pub fn longest(&self) -> Ps {
        self.engines.iter().map(|(_, t)| *t).max().unwrap_or(0)
    }

    /// Time on all DMA engines together.
    pub(crate) fn total(&self) -> Ps {
        self.engines.iter().map(|(_, t)| *t).sum()
    }

    /// How engine queue `queue` triggers it: GpSimd makes descriptors itself, the others leave that to the hardware.
    pub(crate) fn trigger(&self, queue: usize) -> Trigger {
        if Engine::QUEUES[queue] == Engine::GpSimd { self.software } else { self.hardware }
    }
}

/// Which way a transfer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From HBM.
    Load,
    /// From SBUF to HBM.
    Store,
    /// Inside SBUF.
    OnChip,
}

/// Which queues a transfer can take if the program names no engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenQueue {
    /// Those of loads.
    Load,
    /// Those of stores.
    Store,
    /// Those of copies inside SBUF.
    OnChip,
    /// Those that can trigger hardware descriptors, which the program asks for.
    Hardware,
}

impl OpenQueue {
    /// How many kinds there are.
    pub const COUNT: usize = 4;

    fn of(direction: Direction, dge: DgeMode) -> Self {
        match (dge, direction) {
            (DgeMode::HwDge, _) => OpenQueue::Hardware,
            (_, Direction::Load) => OpenQueue::Load,
            (_, Direction::Store) => OpenQueue::Store,
            (_, Direction::OnChip) => OpenQueue::OnChip,
        }
    }
}

/// The numbers of the machine that are no instruction's.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineConstants {
    /// Time before the first instruction, on one core.
    pub head: Ps,
    /// How much later the first instruction starts if both cores of a logical core run the kernel.
    pub pair: Ps,
    /// Time after the last completion.
    pub tail: Ps,
    /// How well head and tail are founded.
    pub fixed: Confidence,
    /// From a completion on a compute engine until an instruction that waits for it can start, by the queue of that instruction.
    pub semaphore: [Ps; QUEUES],
    /// From the completion of a transfer, likewise.
    pub dma_semaphore: [Ps; QUEUES],
    /// Cost of the barrier at the end of a dynamic loop's iteration.
    pub loop_iteration: Ps,
    /// Cost of a dynamic branch.
    pub branch: Ps,
    /// Loading a function table.
    pub table_load: Ps,
    /// The power limiter.
    pub limiter: Limiter,
    /// Triggering engines of transfers whose engine is open, by [`OpenQueue`]; used round-robin.
    pub queues: [Vec<Engine>; OpenQueue::COUNT],
    /// DMA engines of a core.
    pub dma_engines: u32,
    /// Bytes per microsecond of the traffic that the cores of a logical core share.
    pub shared: u64,
}

impl MachineConstants {
    /// Those of a run on these cores, which start together.
    pub(crate) fn of(&self, mut cores: impl Iterator<Item = CoreId>) -> MachineConstants {
        let head = if cores.any(|id| id.core > 0) { self.head + self.pair } else { self.head };
        MachineConstants { head, ..self.clone() }
    }
}

/// The tensor engine's power limiter: it sets the rate for each period by the work of the period before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limiter {
    /// The limited rate; the engine starts with it.
    pub rate: Millionths,
    /// Length of a period. The first begins with the profile.
    pub period: Ps,
    /// Work in a period, as a share of what the full rate does, from which on the next period has the full rate.
    pub release: Thousandths,
    /// Work below which the limited rate returns.
    pub engage: Thousandths,
}

/// Nanoseconds as picoseconds.
pub(crate) fn ns(value: f64) -> Ps {
    (value * 1e3).round().max(0.0) as Ps
}
