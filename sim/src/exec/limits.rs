//! Memory limits of a run: the size of its tensors is known in advance, the size of its trace is counted.

use nki_diag::memory::{size, sizes};
use nki_diag::{Advice, Diagnostic};
use nki_isa::{Arch, Fault, Program};

use super::ExecOptions;
use crate::labels::Labels;
use crate::place::Placement;
use crate::trace::Trace;

/// The diagnostic of a run that exceeds its memory limit.
pub(super) const MEMORY_LIMIT: &str = "memory-limit";

/// Bytes charged per trace event: the event, its dependences, its row of the timeline (docs/performance.md, memory of an instruction).
const EVENT: u64 = 768;
/// Additional bytes if reports list every event.
const REPORTED: u64 = 768;

/// Upper bound of the bytes of a run's tensors over all cores: HBM tensors whole, on-chip tensors at their peak.
fn tensor_bytes(program: &Program, placement: &Placement, precise: bool) -> u64 {
    let arch = Arch::of(program.target);
    let scale = if precise { 1 } else { 4 };
    let hbm = program.tensors.iter().filter(|t| t.space.is_hbm()).map(|t| t.bytes() as u64);
    let hbm = hbm.fold(0_u64, u64::saturating_add);
    let psum = u64::from(placement.psum_peak_banks) * u64::from(arch.psum_bank_bytes);
    let partition = u64::from(placement.sbuf_peak_bytes).saturating_add(psum);
    let on_chip = partition.saturating_mul(u64::from(arch.partitions)).saturating_mul(program.cores.len() as u64);
    hbm.saturating_add(on_chip).saturating_mul(scale)
}

/// An error if the tensors of a run exceed the memory limit. Must be called before allocating them.
pub fn check_memory(program: &Program, placement: &Placement, options: &ExecOptions) -> Option<Diagnostic> {
    let needed = tensor_bytes(program, placement, options.precise);
    if needed <= options.memory.bytes {
        return None;
    }
    let (needed, limit) = sizes(needed, options.memory.bytes);
    let message = format!("the kernel's tensors need {needed} of memory; the limit is {limit}");
    let mut out = Diagnostic::error(MEMORY_LIMIT, message);
    let largest = program.tensors.iter().filter(|t| t.space.is_hbm()).max_by_key(|t| t.bytes());
    if let Some(t) = largest {
        let label = format!("`{}` needs {}", t.name, size(t.bytes() as u64));
        out = out.at_source(t.loc, label);
    }
    Some(out.advise(Advice::MoreMemory))
}

/// An error if a trace is too long for the memory limit of the run, its timeline and its reports.
pub fn check_trace(trace: &Trace, options: &ExecOptions) -> Option<Diagnostic> {
    let events = trace.cores.iter().map(|c| c.events.len()).sum();
    let Fault { id, message } = Events::of(options).check(events).err()?;
    Some(Diagnostic::error(id, message).advise(Advice::MoreMemory))
}

/// Maximum number of events within the memory limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Events {
    limit: u64,
    reported: bool,
}

impl Events {
    pub(super) fn of(options: &ExecOptions) -> Self {
        Events { limit: options.memory.bytes, reported: options.reported }
    }

    /// An error if the number of events exceeds the limit.
    pub(super) fn check(self, events: usize) -> Result<(), Fault> {
        let each = if self.reported { EVENT + REPORTED } else { EVENT };
        let needed = (events as u64).saturating_mul(each);
        if needed <= self.limit {
            return Ok(());
        }
        let what = if self.reported { "timeline and reports" } else { "timeline" };
        let (needed, limit) = sizes(needed, self.limit);
        Err(Fault::new(
            MEMORY_LIMIT,
            format!("{events} executed statements and their {what} need {needed} of memory; the limit is {limit}"),
        ))
    }
}
