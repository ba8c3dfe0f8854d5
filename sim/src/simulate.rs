//! From traces to timelines: what was executed is lowered, ordered by the schedule, and run by the machine.

use nki_isa::Program;

use crate::place::Placement;
use crate::schedule::{Policy, orders};
use crate::timeline::Timeline;
use crate::timing::lower::{Dependences, Lowered, lower};
use crate::timing::{self, CostModel, Laws, ParamError, Params};
use crate::trace::{CoreId, Trace};

/// What one rank executed.
#[derive(Debug, Clone, Copy)]
pub struct RankTrace<'a> {
    /// Its program.
    pub program: &'a Program,
    /// The addresses of its tensors.
    pub placement: &'a Placement,
    /// What it executed.
    pub trace: &'a Trace,
}

/// Times a trace with the laws and the scheduling policy of `params`.
///
/// # Errors
/// If a parameter has no meaning (see [`Laws::new`]).
pub fn simulate(
    program: &Program,
    placement: &Placement,
    trace: &Trace,
    params: &Params,
) -> Result<Timeline, ParamError> {
    simulate_again(program, placement, trace, params, &Dependences::default())
}

/// As [`simulate`], for a trace that is timed several times: `known` is one for all of them.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_again(
    program: &Program,
    placement: &Placement,
    trace: &Trace,
    params: &Params,
    known: &Dependences,
) -> Result<Timeline, ParamError> {
    let rank = RankTrace { program, placement, trace };
    Ok(simulate_cores(&[rank], &Laws::new(params)?, &Policy::of(params), &[known]).swap_remove(0))
}

/// Times a trace with any model of costs, and any policy.
pub fn simulate_with(
    program: &Program,
    placement: &Placement,
    trace: &Trace,
    model: &dyn CostModel,
    policy: &Policy,
) -> Timeline {
    simulate_ranks(&[RankTrace { program, placement, trace }], model, policy).swap_remove(0)
}

/// Times all ranks, from 0, on one clock: they start together and wait for each other at collectives. One timeline for each.
pub fn simulate_ranks(ranks: &[RankTrace<'_>], model: &dyn CostModel, policy: &Policy) -> Vec<Timeline> {
    let unknown: Vec<Dependences> = ranks.iter().map(|_| Dependences::default()).collect();
    simulate_cores(ranks, model, policy, &unknown.iter().collect::<Vec<_>>())
}

/// `known`: for each rank.
fn simulate_cores(
    ranks: &[RankTrace<'_>],
    model: &dyn CostModel,
    policy: &Policy,
    known: &[&Dependences],
) -> Vec<Timeline> {
    let reach = policy.reach();
    let mut lowered: Vec<(CoreId, Lowered<'_>)> = Vec::new();
    for (rank, r) in ranks.iter().enumerate() {
        for (c, trace) in r.trace.cores.iter().enumerate().take(r.program.cores.len()) {
            let low = lower(r.program, c, r.placement, trace, model, &reach, known[rank]);
            lowered.push((CoreId { rank, core: c as u32 }, low));
        }
    }
    let machine = model.machine();
    let orders = orders(&lowered, machine, policy);
    let programs: Vec<&Program> = ranks.iter().map(|r| r.program).collect();
    let mut timelines = timing::run(&programs, &lowered, &orders, machine);
    for (timeline, r) in timelines.iter_mut().zip(ranks) {
        timeline.over_capacity = !r.placement.over_capacity.is_empty();
    }
    timelines
}
