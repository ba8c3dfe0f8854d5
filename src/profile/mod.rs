//! Hardware profiles in the format of `neuron-profile view --output-format json`; the only reader of that format.
//!
//! `read` parses the tables, `operands` the operands of instructions, `transfers` assigns packets to transfers,
//! `waits` resolves semaphore conditions, and `stream` builds the recorded stream that the machine can run ([`nki_sim_core::timing::replay`]).

mod operands;
mod read;
mod stream;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod transfers;
mod waits;

use std::collections::BTreeMap;

use nki_isa::Target;
use nki_isa::names::{Engine, Named};

pub(crate) use operands::Operands;
pub(crate) use read::text;
pub(crate) use stream::{Mapped, Part, Role};
pub(crate) use transfers::Transfer;

/// Nanoseconds from the start of the profile.
pub(crate) type Ns = i64;

/// A profile of the hardware.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HardwareProfile {
    /// By core, in the order of the names of their subgraphs.
    pub(crate) cores: Vec<Core>,
    /// Numbers of the table `summary`, in its units.
    pub(crate) summary: BTreeMap<String, f64>,
    /// The instance type on which it was captured, such as `trn2.3xlarge`.
    pub(crate) instance: Option<String>,
    /// The total time.
    pub(crate) total: Ns,
    /// Relevant notes: missing tables, warnings of the profiler.
    pub(crate) notes: Vec<String>,
}

/// The recorded activity of one core.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Core {
    /// Its name in the profile.
    pub(crate) name: String,
    /// By engine queue, in queue order.
    pub(crate) instructions: Vec<Instruction>,
    /// In chronological order.
    pub(crate) packets: Vec<Packet>,
    /// Names of the DMA queues, by number.
    pub(crate) queues: BTreeMap<u32, String>,
    /// In chronological order: number of the semaphore, its new value.
    pub(crate) semaphores: Vec<(Ns, u32, i64)>,
    /// In chronological order: start, length, whether the tensor engine has its full rate.
    pub(crate) limiter: Vec<(Ns, Ns, bool)>,
}

/// An executed instruction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Instruction {
    pub(crate) engine: Engine,
    pub(crate) opcode: String,
    /// The parsed operands.
    pub(crate) operands: Operands,
    pub(crate) start: Ns,
    pub(crate) end: Ns,
    /// Time that it waited for semaphores, if the profile has it for this instruction.
    pub(crate) wait: Ns,
    pub(crate) pc: i64,
    /// Whether it belongs to the program, not to the runtime around it.
    pub(crate) of_kernel: bool,
    /// The tensor engine transposes.
    pub(crate) transpose: bool,
    /// The function of an `ACTIVATE`, as the profile names it.
    pub(crate) function: String,
}

/// A packet that a DMA engine moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) queue: u32,
    pub(crate) engine: u32,
    pub(crate) kind: PacketKind,
    pub(crate) bytes: u64,
    pub(crate) start: Ns,
    pub(crate) end: Ns,
}

/// The origin of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketKind {
    /// Descriptors of GpSimd.
    Software,
    /// Descriptors of the hardware.
    Hardware,
    /// Fetches of instructions.
    Instruction,
    /// Other packets: tables, descriptors built before the run.
    Other,
}

/// Size of the packet that ends a transfer on a DMA engine and writes the semaphore.
pub(crate) const SEMAPHORE_BYTES: u64 = 4;

impl Packet {
    /// Whether it moves data of the program.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self.kind, PacketKind::Software | PacketKind::Hardware | PacketKind::Other)
            && self.bytes > SEMAPHORE_BYTES
    }
}

impl HardwareProfile {
    /// The generation on which it was captured.
    pub(crate) fn target(&self) -> Option<Target> {
        let family = self.instance.as_deref()?.split('.').next()?;
        // `trn2u` and `trn2n` differ only in the network.
        Target::from_name(family).or_else(|| Target::from_name(family.trim_end_matches(['u', 'n'])))
    }

    /// The cores that executed instructions of the program.
    pub(crate) fn busy_cores(&self) -> impl Iterator<Item = (usize, &Core)> {
        self.cores.iter().enumerate().filter(|(_, c)| c.instructions.iter().any(|i| i.of_kernel))
    }
}
