//! Profiles of the hardware, as `neuron-profile view --output-format json` writes them: the only reader of that format.
//!
//! `read` takes the tables apart, `operands` the text of an instruction's operands, `transfers` finds the transfer that each packet belongs to,
//! `waits` what a condition on a semaphore waits for, and `stream` makes the recorded stream that the machine can run ([`nki_sim_core::timing::replay`]).

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
    /// The instance that it was captured on, as `trn2.3xlarge`.
    pub(crate) instance: Option<String>,
    /// The total time.
    pub(crate) total: Ns,
    /// What it says of itself that matters here: missing tables, warnings of the profiler.
    pub(crate) notes: Vec<String>,
}

/// What one core did.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Core {
    /// Its name in the profile.
    pub(crate) name: String,
    /// In order of their engines' queues, by time.
    pub(crate) instructions: Vec<Instruction>,
    /// By time.
    pub(crate) packets: Vec<Packet>,
    /// Names of the DMA queues, by number.
    pub(crate) queues: BTreeMap<u32, String>,
    /// By time: number of the semaphore, its new value.
    pub(crate) semaphores: Vec<(Ns, u32, i64)>,
    /// By time: start, length, whether the tensor engine has its full rate.
    pub(crate) limiter: Vec<(Ns, Ns, bool)>,
}

/// An instruction that an engine executed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Instruction {
    pub(crate) engine: Engine,
    pub(crate) opcode: String,
    /// The profile's text of the operands, taken apart.
    pub(crate) operands: Operands,
    pub(crate) start: Ns,
    pub(crate) end: Ns,
    /// For how long it waited for semaphores, where the profile says so of this instruction.
    pub(crate) wait: Ns,
    pub(crate) pc: i64,
    /// It belongs to the program, not to what the runtime puts around it.
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

/// What made a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketKind {
    /// Descriptors of GpSimd.
    Software,
    /// Descriptors of the hardware.
    Hardware,
    /// Fetches of instructions.
    Instruction,
    /// Anything else: tables, descriptors that were made before the run.
    Other,
}

/// Bytes of the packet at the end of a transfer on a DMA engine, which writes the semaphore.
pub(crate) const SEMAPHORE_BYTES: u64 = 4;

impl Packet {
    /// It moves data of the program.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self.kind, PacketKind::Software | PacketKind::Hardware | PacketKind::Other)
            && self.bytes > SEMAPHORE_BYTES
    }
}

impl HardwareProfile {
    /// The generation that it was captured on.
    pub(crate) fn target(&self) -> Option<Target> {
        let family = self.instance.as_deref()?.split('.').next()?;
        // `trn2u` and `trn2n` are machines with another network.
        Target::from_name(family).or_else(|| Target::from_name(family.trim_end_matches(['u', 'n'])))
    }

    /// The cores that executed instructions of the program.
    pub(crate) fn busy_cores(&self) -> impl Iterator<Item = (usize, &Core)> {
        self.cores.iter().enumerate().filter(|(_, c)| c.instructions.iter().any(|i| i.of_kernel))
    }
}
