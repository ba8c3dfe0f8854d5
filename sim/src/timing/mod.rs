//! The machine: an event-driven model of five in-order engine queues, DMA queues over shared DMA engines, and semaphores.
//!
//! Its input is the executed operations of the cores (with costs and dependences, which `lower` derives from program, placement and trace) and a
//! precomputed order for each queue (see [`crate::schedule`]), but never tensor values. Its only output is a timeline. Time is integer picoseconds.
//!
//! - An engine takes its instructions in the given order. An instruction starts when the engine is free and all its dependences have completed; the
//!   engine is free again after the instruction's occupancy, but the results are available only at its completion, which is later.
//! - A dependence on another engine adds the semaphore's latency, which depends on the waiting engine; the same holds for a DMA.
//! - A DMA is triggered by an instruction of an engine, which builds its descriptors (GpSimd) or leaves them to the hardware (the others), and is
//!   busy meanwhile; it is dispatched, shares the DMA engines, and notifies. A queue completes in order.
//! - Dynamic loops wait at a barrier of all engines and DMA queues after each iteration; so do branches.
//! - The fixed time of a kernel consists of a head before the first instruction and a tail after the last completion.
//! - The cores of a logical core, and ranks, run on one clock. Each core has its own engines, queues and DMA engines; the two cores of a
//!   logical core share an HBM stack. A rendezvous (`core_barrier`, `sendrecv`, a collective) starts when the last member has arrived: only
//!   the queue that contains it waits.
//!
//! `lower`: operations. `order`: the order of each queue. `machine`: the event loop. `record`: converts the machine's events to the
//! timeline. [`cost::CostModel`] is the boundary to the laws.

pub mod cost;
mod dma;
pub mod fixed;
mod limiter;
pub(crate) mod lower;
pub(crate) mod machine;
pub(crate) mod order;
pub mod params;
mod record;
mod renumber;
pub mod replay;
#[cfg(test)]
pub(crate) mod tests;

use nki_isa::Program;

use self::cost::MachineConstants;
use self::lower::Lowered;
use self::machine::Finished;
use self::order::Order;
use self::record::{Record, Recorder, Unobserved, timeline};
use crate::timeline::{Ps, Timeline};
use crate::trace::CoreId;

pub use cost::{CostModel, Laws};
pub use params::{Param, ParamError, Params};

/// The run time of all cores, without a recording.
pub(crate) fn latency(lowered: &[(CoreId, Lowered<'_>)], orders: &[Order], machine: &MachineConstants) -> Ps {
    let machine = &machine.of(lowered.iter().map(|(id, _)| *id));
    let finished = machine::run(lowered, orders, machine, |_| Unobserved);
    check_ended(&finished, lowered.iter().map(|(id, _)| *id));
    machine::elapsed(&finished, machine)
}

/// Checks that every operation of every core has run.
fn check_ended<O>(finished: &[Finished<O>], ids: impl Iterator<Item = CoreId>) {
    for (done, id) in finished.iter().zip(ids) {
        assert_eq!(
            done.waiting, 0,
            "core {} of rank {} waits forever: the orders of its queues form a cycle",
            id.core, id.rank
        );
    }
}

/// Runs the executed operations of all ranks' cores, each in its order, on one clock. One timeline per entry of `programs`: the ranks' programs.
pub(crate) fn run(
    programs: &[&Program],
    lowered: Vec<(CoreId, Lowered<'_>)>,
    orders: Vec<Order>,
    machine: &MachineConstants,
) -> Vec<Timeline> {
    let machine = &machine.of(lowered.iter().map(|(id, _)| *id));
    let finished = machine::run(&lowered, &orders, machine, |i| {
        let (id, low) = &lowered[i];
        Recorder::new(low, id.core, machine.head)
    });
    // The operations of a long program take as much memory as the timeline, so drop them first.
    let ids: Vec<CoreId> = lowered.iter().map(|(id, _)| *id).collect();
    let finished: Vec<Finished<Record>> = finished.into_iter().map(|f| f.map(Recorder::into_record)).collect();
    drop((lowered, orders));
    check_ended(&finished, ids.iter().copied());
    let mut cores = finished.into_iter().zip(&ids).peekable();
    let mut base = 0;
    let mut timelines = Vec::with_capacity(programs.len());
    for (rank, program) in programs.iter().enumerate() {
        let mut own = Vec::new();
        while let Some((core, _)) = cores.next_if(|(_, id)| id.rank == rank) {
            own.push(core);
        }
        let count = own.len();
        timelines.push(timeline(program, own, base, machine));
        base += count;
    }
    timelines
}
