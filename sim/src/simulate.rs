//! From traces to timelines: executed instructions are lowered, ordered by the scheduler, and run by the machine.

use std::sync::Arc;

use nki_isa::Program;

use crate::place::Placement;
use crate::schedule::{Policy, Schedule, on_clock, schedules};
use crate::timeline::{Ps, Timeline};
use crate::timing::lower::{Dependences, Lowered, graph_in_order, lower};
use crate::timing::order::Order;
use crate::timing::{self, CostModel, Laws, ParamError, Params};
use crate::trace::{CoreId, Trace};

/// The trace of one rank, with its program.
#[derive(Debug, Clone, Copy)]
pub struct RankTrace<'a> {
    /// Its program.
    pub program: &'a Program,
    /// The addresses of its tensors.
    pub placement: &'a Placement,
    /// The executed instructions.
    pub trace: &'a Trace,
}

/// Times a trace with the laws and the scheduling policy of `params`.
///
/// # Errors
/// If a parameter is invalid (see [`Laws::new`]).
pub fn simulate(
    program: &Program,
    placement: &Placement,
    trace: &Trace,
    params: &Params,
) -> Result<Timeline, ParamError> {
    Ok(simulate_with(program, placement, trace, &Laws::new(params)?, &Policy::of(params)))
}

/// Times a trace with any cost model and policy.
pub fn simulate_with(
    program: &Program,
    placement: &Placement,
    trace: &Trace,
    model: &dyn CostModel,
    policy: &Policy,
) -> Timeline {
    simulate_ranks(&[RankTrace { program, placement, trace }], model, policy).swap_remove(0)
}

/// Times all ranks, from 0, on one clock: they start together and wait for each other at collectives. Returns one timeline per rank.
pub fn simulate_ranks(ranks: &[RankTrace<'_>], model: &dyn CostModel, policy: &Policy) -> Vec<Timeline> {
    let (lowered, orders) = scheduled(ranks, model, policy, None);
    let programs: Vec<&Program> = ranks.iter().map(|r| r.program).collect();
    let mut timelines = timing::run(&programs, lowered, orders, model.machine());
    for (timeline, r) in timelines.iter_mut().zip(ranks) {
        timeline.over_capacity = !r.placement.over_capacity.is_empty();
    }
    timelines
}

/// The latency of one rank: [`Timeline::elapsed`] without a timeline. `known` belongs to this trace and placement.
pub(crate) fn latency(rank: RankTrace<'_>, model: &dyn CostModel, policy: &Policy, known: Option<&Dependences>) -> Ps {
    let (lowered, orders) = scheduled(&[rank], model, policy, known);
    timing::latency(&lowered, &orders, model.machine())
}

/// The lowered operations of all cores, and their orders.
fn scheduled<'r>(
    ranks: &[RankTrace<'r>],
    model: &dyn CostModel,
    policy: &Policy,
    known: Option<&Dependences>,
) -> (Vec<(CoreId, Lowered<'r>)>, Vec<Order>) {
    let reach = policy.reach();
    let mut lowered = Vec::new();
    let mut seen = Vec::new();
    for (rank, r) in ranks.iter().enumerate() {
        for (c, trace) in r.trace.cores.iter().enumerate().take(r.program.cores.len()) {
            let (low, ops) = lower(r.program, c, r.placement, trace, model, &reach, known);
            lowered.push((CoreId { rank, core: c as u32 }, low));
            seen.push(ops);
        }
    }
    let schedules = schedules(&lowered, model.machine(), policy);
    let mut orders = Vec::with_capacity(schedules.len());
    for (((id, low), seen), Schedule { order, clock }) in lowered.iter_mut().zip(seen).zip(schedules) {
        let RankTrace { program, placement, .. } = ranks[id.rank];
        if let Some(clock) = clock
            && let Some(placement) = on_clock(program, id.core, placement, low, &clock)
        {
            low.graph = Arc::new(graph_in_order(program, &placement, low, seen, &clock.taken));
        }
        orders.push(order);
    }
    (lowered, orders)
}
