//! The bottleneck of a kernel.

use nki_isa::names::Engine;

use super::{Line, Step, lines};
use crate::timeline::{PhaseKind, Ps, RowKind, Timeline};

/// A part of the machine that can be the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// An engine that computes.
    Engine(Engine),
    /// The tensor engine's power limiter.
    Limiter,
    /// Function tables of the scalar engine.
    TableLoad,
    /// Descriptors: queues issuing transfers.
    DmaIssue,
    /// Bytes moving.
    DmaBandwidth,
    /// Dispatch and notification of transfers.
    DmaLatency,
    /// Exchanges of data between ranks.
    Collectives,
    /// Semaphores and barriers.
    Synchronisation,
    /// Head and tail of the kernel.
    Fixed,
}

/// Resources that a single change to a kernel would affect together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bound {
    /// The tensor engine and its power limiter.
    Tensor,
    /// The vector engine.
    Vector,
    /// The scalar engine and its function tables.
    Scalar,
    /// The GpSimd engine.
    GpSimd,
    /// The sync engine.
    Sync,
    /// All stages of a transfer.
    Dma,
    /// Exchanges of data between ranks.
    Collectives,
    /// Semaphores and barriers.
    Synchronisation,
    /// Head and tail of the kernel.
    StartUp,
}

impl Resource {
    /// The bound that it belongs to.
    pub fn bound(self) -> Bound {
        match self {
            Resource::Engine(Engine::Tensor) | Resource::Limiter => Bound::Tensor,
            Resource::Engine(Engine::Vector) => Bound::Vector,
            Resource::Engine(Engine::Scalar) | Resource::TableLoad => Bound::Scalar,
            Resource::Engine(Engine::GpSimd) => Bound::GpSimd,
            Resource::Engine(_) => Bound::Sync,
            Resource::DmaIssue | Resource::DmaBandwidth | Resource::DmaLatency => Bound::Dma,
            Resource::Collectives => Bound::Collectives,
            Resource::Synchronisation => Bound::Synchronisation,
            Resource::Fixed => Bound::StartUp,
        }
    }
}

/// A resource's share of the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The resource.
    pub resource: Resource,
    /// Its time on the path.
    pub time: Ps,
}

/// The bottleneck of a kernel, with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The bottleneck: the largest share of the critical path.
    pub bound: Bound,
    /// Its time on the path.
    pub time: Ps,
    /// The critical path by resource, longest first; adds up to the elapsed time.
    pub shares: Vec<Share>,
    /// Source lines, most expensive first.
    pub lines: Vec<Line>,
}

/// Attributes a step's part `from..to` of the path to resources. Time without a phase is synchronisation.
fn attribute(timeline: &Timeline, step: &Step, out: &mut impl FnMut(Resource, Ps)) {
    let e = timeline.event(step.event);
    let RowKind::Engine(engine) = timeline.rows[e.origin.row.0 as usize].kind else { return };
    let mut covered = step.from;
    let mut phases = e.phases();
    phases.sort_unstable_by_key(|p| (p.start, p.end));
    for p in &phases {
        let (a, b) = (p.start.max(covered), p.end.min(step.to));
        if a >= b {
            continue;
        }
        if a > covered {
            out(Resource::Synchronisation, a - covered);
        }
        let resource = match p.kind {
            PhaseKind::TableLoad => Resource::TableLoad,
            PhaseKind::Weights | PhaseKind::Execute | PhaseKind::Drain => Resource::Engine(engine),
            PhaseKind::Limiter => Resource::Limiter,
            PhaseKind::Issue => Resource::DmaIssue,
            PhaseKind::Payload | PhaseKind::Bandwidth => Resource::DmaBandwidth,
            PhaseKind::Dispatch | PhaseKind::Notify => Resource::DmaLatency,
            PhaseKind::Collective => Resource::Collectives,
        };
        out(resource, b - a);
        covered = b;
    }
    if step.to > covered {
        out(Resource::Synchronisation, step.to - covered);
    }
}

/// Attributes the critical path to resources and determines the bottleneck.
pub fn verdict(timeline: &Timeline, path: &[Step]) -> Verdict {
    let mut shares: Vec<Share> = Vec::new();
    let mut add = |resource: Resource, time: Ps| match shares.iter_mut().find(|s| s.resource == resource) {
        Some(s) => s.time += time,
        None => shares.push(Share { resource, time }),
    };
    for step in path {
        attribute(timeline, step, &mut add);
    }
    let on_path: Ps = path.iter().map(|s| s.to - s.from).sum();
    add(Resource::Fixed, timeline.elapsed - on_path);
    shares.sort_by_key(|s| (std::cmp::Reverse(s.time), s.resource));

    let mut bounds: Vec<(Bound, Ps)> = Vec::new();
    for s in &shares {
        match bounds.iter_mut().find(|b| b.0 == s.resource.bound()) {
            Some(b) => b.1 += s.time,
            None => bounds.push((s.resource.bound(), s.time)),
        }
    }
    bounds.sort_by_key(|b| std::cmp::Reverse(b.1));
    let (bound, time) = bounds.first().copied().unwrap_or((Bound::StartUp, timeline.elapsed));
    Verdict { bound, time, shares, lines: lines(timeline, path) }
}
