//! When things happen: an event-driven model of five in-order engine queues, DMA queues over shared DMA engines, and semaphores.
//!
//! It consumes the program (what instructions cost and touch), the placement and the trace; never tensor values. Time is integer picoseconds.
//!
//! - An engine takes its instructions in order. One starts when the engine is free and everything that it depends on has completed; the
//!   engine is free again after the instruction's occupancy, while its results are there only at its completion, which is later.
//! - A dependence on another engine costs the semaphore's latency on top; one on a DMA is covered by the DMA's notification.
//! - A DMA is triggered by an instruction of an engine, waits for its queue to issue it, is dispatched, shares the DMA engines, notifies.
//!   A queue completes in order.
//! - Dynamic loops meet at a barrier of all engines and DMA queues after each iteration; so do branches.
//! - The fixed time of a kernel lies in a head before the first instruction and a tail after the last completion.
//! - The cores of a logical core, and ranks, run on one clock. Each core has engines, queues and DMA engines of its own; the two cores of a
//!   logical core share a stack of HBM. A meeting (`core_barrier`, `sendrecv`, a collective) starts when the last member has come to it: only
//!   the queue that it is in waits.
//!
//! [`cost::CostModel`] is the boundary to the laws: another model of costs can be put in with [`simulate_with`].

pub mod cost;
mod dma;
mod limiter;
mod lower;
mod meetings;
pub mod params;
mod sched;
#[cfg(test)]
pub(crate) mod tests;

use nki_isa::Program;

pub use cost::{CostModel, Laws};
pub use params::{Confidence, Param, ParamError, Params};

use crate::place::Placement;
use crate::timeline::Timeline;
use crate::trace::Trace;

/// Times a trace with the laws of `params`.
///
/// # Errors
/// If a parameter has no meaning (see [`Laws::new`]).
pub fn simulate(
    program: &Program,
    placement: &Placement,
    trace: &Trace,
    params: &Params,
) -> Result<Timeline, ParamError> {
    Ok(simulate_with(program, placement, trace, &Laws::new(params)?))
}

/// Times a trace with any model of costs.
pub fn simulate_with(program: &Program, placement: &Placement, trace: &Trace, model: &dyn CostModel) -> Timeline {
    simulate_ranks(&[RankTrace { program, placement, trace }], model).swap_remove(0)
}

/// What one rank executed.
#[derive(Debug, Clone, Copy)]
pub struct RankTrace<'a> {
    /// Its program.
    pub program: &'a Program,
    /// Where its tensors lie.
    pub placement: &'a Placement,
    /// What it executed.
    pub trace: &'a Trace,
}

/// Times all ranks, from 0, on one clock: they start together and wait for each other at collectives. One timeline for each.
pub fn simulate_ranks(ranks: &[RankTrace<'_>], model: &dyn CostModel) -> Vec<Timeline> {
    sched::run(ranks, model)
}
