//! The time of instructions: the boundary between the machine and the laws.

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

pub use dma::engine_shares;
pub use laws::Laws;
pub(crate) use table::Costs;

/// Converts work to time. Implement it to replace the laws; the schedule, the machine and the reports remain.
pub trait CostModel: Sync {
    /// The cost of an instruction.
    fn cost(&self, work: &Work, place: Place) -> Cost;
    /// The constants of the machine.
    fn machine(&self) -> &MachineConstants;
}

/// The placement of an instruction's operands, as far as its cost depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// First physical partition of the on-chip destination of a DMA, else of its on-chip source.
    pub partition: Option<u32>,
    /// The core that runs it.
    pub core: u32,
    /// The statement, for models that change only some instructions' cost (see [`crate::analysis::remedies`]).
    pub node: NodeIndex,
}

/// The cost of one instruction, without contention.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cost {
    /// The engine whose queue it uses; `Unknown` for a DMA whose queue is open.
    pub engine: Engine,
    /// Its kind, with the times.
    pub kind: CostKind,
    /// The weakest parameter used.
    pub confidence: Confidence,
}

/// Kinds of cost.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CostKind {
    /// A pass through a compute engine or a sequencer.
    Compute {
        /// From its start until the engine can start the next instruction.
        occupancy: Ps,
        /// From its start until its results are available.
        complete: Ps,
        /// The number of the function table that it needs.
        table: Option<u32>,
        /// The shared ports that it uses.
        ports: Ports,
    },
    /// A pass through the tensor engine.
    Matmul {
        /// Loading the weights.
        weights: Ps,
        /// Moving the columns at the full rate.
        moving: Ps,
        /// The minimum time between two matmuls, which the power limiter does not stretch.
        least: Ps,
        /// From the last column until the result is available.
        drain: Ps,
        /// The cells of the array in use ([`nki_isa::Arch::tensor_cell`]), a bit each, row-major.
        cells: u16,
        /// Whether it multiplies in fp32 (not a pure move).
        fp32: bool,
        /// Share of the array's rows in use, for the power limiter.
        load: Thousandths,
        /// The view of the weights: a repeated load is dropped. `None` if views cannot be compared.
        stationary: Option<Box<View>>,
    },
    /// A transfer.
    Dma(Box<DmaCost>),
    /// A collective between ranks. Those of a rank run one after the other.
    Collective {
        /// From its start until the engine can start the next instruction.
        trigger: Ps,
        /// From then, or from the end of the rank's previous collective, until its results are available.
        time: Ps,
    },
    /// Nothing: the instruction is not on the timeline.
    Free,
}

/// Ports to memory that two engines share: one of the engines has a port at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The port to SBUF of the vector engine and GpSimd.
    pub sbuf: bool,
    /// The port to PSUM of the vector and the scalar engine.
    pub psum: bool,
}

/// The cost of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DmaCost {
    /// The memories of source and destination.
    pub direction: Direction,
    /// The possible queues if its engine is open.
    pub open: OpenQueue,
    /// The trigger if hardware builds the descriptors.
    pub hardware: Trigger,
    /// The trigger if GpSimd builds the descriptors.
    pub software: Trigger,
    /// Part of the payload time that occupies no DMA engine.
    pub payload: Ps,
    /// From the last byte until the semaphore is visible.
    pub notify: Ps,
    /// Time on each DMA engine that carries part of it.
    pub engines: SmallVec<[(u8, Ps); 16]>,
    /// Bytes, counted at the destination.
    pub bytes: u64,
    /// Load on the bandwidth shared by the cores of a logical core: bytes read from and written to HBM, with a surcharge for
    /// each descriptor and for separate rows; bytes copied inside SBUF.
    pub shared_load: u64,
}

/// The cost of starting a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Trigger {
    /// Time that the descriptors occupy the triggering engine.
    pub occupancy: Ps,
    /// From then until the transfer reaches the DMA engines.
    pub dispatch: Ps,
    /// The shared ports that the engine uses to write the descriptors.
    pub ports: Ports,
}

impl Cost {
    /// The cost of a transfer that moves this share of its rows and skips the others; all descriptors are built. `None` for other instructions.
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
    /// Time on the DMA engine with the largest part.
    pub fn longest(&self) -> Ps {
        self.engines.iter().map(|(_, t)| *t).max().unwrap_or(0)
    }

    /// Total time of all DMA engines.
    pub(crate) fn total(&self) -> Ps {
        self.engines.iter().map(|(_, t)| *t).sum()
    }

    /// The trigger from engine queue `queue`: GpSimd builds descriptors itself, the others leave them to the hardware.
    pub(crate) fn trigger(&self, queue: usize) -> Trigger {
        if Engine::QUEUES[queue] == Engine::GpSimd { self.software } else { self.hardware }
    }
}

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From HBM.
    Load,
    /// From SBUF to HBM.
    Store,
    /// Inside SBUF.
    OnChip,
}

/// The possible queues of a transfer for which the program names no engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenQueue {
    /// Queues of loads.
    Load,
    /// Queues of stores.
    Store,
    /// Queues of copies inside SBUF.
    OnChip,
    /// Queues that can trigger the hardware descriptors requested by the program.
    Hardware,
}

impl OpenQueue {
    /// Number of kinds.
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

/// Constants of the machine that are independent of instructions.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineConstants {
    /// Time before the first instruction, on one core.
    pub head: Ps,
    /// Additional delay of the first instruction if both cores of a logical core run the kernel.
    pub pair: Ps,
    /// Time after the last completion.
    pub tail: Ps,
    /// The confidence of head and tail.
    pub fixed: Confidence,
    /// From a completion on a compute engine until a dependent instruction can start, by the queue of that instruction.
    pub semaphore: [Ps; QUEUES],
    /// From the completion of a transfer, likewise.
    pub dma_semaphore: [Ps; QUEUES],
    /// Time of the barrier at the end of a dynamic loop's iteration.
    pub loop_iteration: Ps,
    /// Cost of a dynamic branch.
    pub branch: Ps,
    /// Loading a function table.
    pub table_load: Ps,
    /// The minimum time between two instructions of the tensor engine, whatever cells they use.
    pub matmul_issue: Ps,
    /// The power limiter.
    pub limiter: Limiter,
    /// Triggering engines of transfers with an open engine, by [`OpenQueue`]; used round-robin.
    pub queues: [Vec<Engine>; OpenQueue::COUNT],
    /// DMA engines of a core.
    pub dma_engines: u32,
    /// Bytes per microsecond shared by the cores of a logical core.
    pub shared: u64,
}

impl MachineConstants {
    /// The constants for a run on these cores, which start together.
    pub(crate) fn of(&self, mut cores: impl Iterator<Item = CoreId>) -> MachineConstants {
        let head = if cores.any(|id| id.core > 0) { self.head + self.pair } else { self.head };
        MachineConstants { head, ..self.clone() }
    }
}

/// The tensor engine's power limiter: the work of one period determines the rate of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limiter {
    /// The limited rate, which is also the initial rate.
    pub rate: Millionths,
    /// Length of a period. The first starts with the profile.
    pub period: Ps,
    /// Minimum work in a period, as a share of the full rate's, that raises the next period to the full rate.
    pub release: Thousandths,
    /// Work below which the limited rate returns.
    pub engage: Thousandths,
}

/// Nanoseconds as picoseconds.
pub(crate) fn ns(value: f64) -> Ps {
    (value * 1e3).round().max(0.0) as Ps
}
