//! What bounds a kernel, in one sentence.

use nki_isa::names::Engine;

use super::{Line, Step, lines};
use crate::timeline::{PhaseKind, Ps, RowKind, Timeline};

/// A part of the machine that a kernel can be bound by.
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
    /// Semaphores and barriers.
    Synchronisation,
    /// Head and tail of the kernel.
    Fixed,
}

impl Resource {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Engine(Engine::Tensor) => "tensor engine",
            Resource::Engine(Engine::Vector) => "vector engine",
            Resource::Engine(Engine::Scalar) => "scalar engine",
            Resource::Engine(Engine::GpSimd) => "GpSimd engine",
            Resource::Engine(_) => "sync engine",
            Resource::Limiter => "power limiter",
            Resource::TableLoad => "function table loads",
            Resource::DmaIssue => "DMA issue",
            Resource::DmaBandwidth => "DMA bandwidth",
            Resource::DmaLatency => "DMA latency",
            Resource::Synchronisation => "synchronisation",
            Resource::Fixed => "start-up and end",
        }
    }

    /// The word before `-bound`.
    fn bound(self) -> &'static str {
        match self {
            Resource::Engine(Engine::Tensor) | Resource::Limiter => "tensor",
            Resource::Engine(Engine::Vector) => "vector",
            Resource::Engine(Engine::Scalar) | Resource::TableLoad => "scalar",
            Resource::Engine(Engine::GpSimd) => "GpSimd",
            Resource::Engine(_) => "sync",
            Resource::DmaIssue | Resource::DmaBandwidth | Resource::DmaLatency => "DMA",
            Resource::Synchronisation => "synchronisation",
            Resource::Fixed => "start-up",
        }
    }
}

/// A resource's part of the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The resource.
    pub resource: Resource,
    /// Its time on the path.
    pub time: Ps,
}

/// What bounds a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// One sentence.
    pub sentence: String,
    /// The critical path by resource, longest first; sums to elapsed.
    pub shares: Vec<Share>,
    /// Source lines, most expensive first.
    pub lines: Vec<Line>,
}

/// Which resource works on a step's part `from..to` of the path. What no phase covers is synchronisation.
fn attribute(timeline: &Timeline, step: &Step, out: &mut impl FnMut(Resource, Ps)) {
    let e = timeline.event(step.event);
    let RowKind::Engine(engine) = timeline.rows[e.row.0 as usize].kind else { return };
    let mut covered = step.from;
    let mut phases = e.phases.clone();
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
        };
        out(resource, b - a);
        covered = b;
    }
    if step.to > covered {
        out(Resource::Synchronisation, step.to - covered);
    }
}

/// Attributes the critical path to resources and says what bounds the kernel.
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

    let lines = lines(timeline, path);
    // Group what one change to the kernel would act on together, then name the largest group.
    let mut groups: Vec<(&'static str, Ps)> = Vec::new();
    for s in &shares {
        match groups.iter_mut().find(|g| g.0 == s.resource.bound()) {
            Some(g) => g.1 += s.time,
            None => groups.push((s.resource.bound(), s.time)),
        }
    }
    groups.sort_by_key(|g| std::cmp::Reverse(g.1));
    let percent = |t: Ps| (t * 100 + timeline.elapsed / 2) / timeline.elapsed.max(1);
    let (bound, time) = groups.first().copied().unwrap_or(("start-up", timeline.elapsed));
    let mut sentence = format!("{bound}-bound: {}% of the time on the critical path is ", percent(time));
    let parts: Vec<String> = shares
        .iter()
        .filter(|s| s.resource.bound() == bound && percent(s.time) > 0)
        .map(|s| format!("{} {}%", s.resource.name(), percent(s.time)))
        .collect();
    match &parts[..] {
        [_] | [] => {
            sentence += shares.iter().find(|s| s.resource.bound() == bound).map_or("start-up", |s| s.resource.name())
        }
        many => sentence += &format!("{bound} ({})", many.join(", ")),
    }
    if let Some(line) = lines.first() {
        let place = timeline.place(line.loc);
        let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
        sentence += &format!("; {}{at} costs most, {}%", line.label, percent(line.critical));
    }
    sentence.push('.');
    if let Some(first) = sentence.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    Verdict { sentence, shares, lines }
}
