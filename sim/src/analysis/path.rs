//! The critical path: from the last completion back, always to what let an instruction start last.

use crate::timeline::{EventId, Ps, Release, Timeline};

/// One instruction on the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The instruction.
    pub event: EventId,
    /// Start of its part of the path: when what it waited for was there.
    pub from: Ps,
    /// End of its part: the next step's `from`.
    pub to: Ps,
    /// What it waited for.
    pub via: Release,
}

/// The critical path in order of time. The steps tile the time from the kernel's head to its tail.
///
/// Nothing can have waited for what came after it. Should the links say so anyway, the path ends where it would come to an instruction again: that
/// step starts at the head.
pub fn critical_path(timeline: &Timeline) -> Vec<Step> {
    let mut path = Vec::new();
    let last = timeline.events.iter().enumerate().max_by_key(|(i, e)| (e.complete, std::cmp::Reverse(*i)));
    let Some((last, event)) = last else { return path };
    let mut at = Some(EventId(last as u32));
    // A barrier may end after the last completion.
    let mut to = event.complete.max(timeline.elapsed - timeline.tail);
    let mut seen = vec![false; timeline.events.len()];
    while let Some(id) = at {
        let e = timeline.event(id);
        let before = |from: EventId, time: Ps| (Some(from), time);
        let (next, from) = match e.released {
            Release::Start => (None, timeline.head),
            Release::Engine(p) => before(p, timeline.event(p).end.min(e.start)),
            Release::Semaphore { from, .. } => before(from, timeline.event(from).complete),
            Release::Port(p) => before(p, timeline.event(p).end),
            Release::Barrier(Some(p)) => before(p, timeline.event(p).complete),
            Release::Barrier(None) => (None, timeline.head),
            Release::Peer(p) => before(p, timeline.event(p).start.min(e.start)),
        };
        seen[id.0 as usize] = true;
        let (next, from) = match next {
            Some(next) if seen[next.0 as usize] => (None, timeline.head),
            _ => (next, from),
        };
        let from = from.min(to);
        path.push(Step { event: id, from, to, via: e.released });
        to = from;
        at = next;
    }
    path.reverse();
    path
}
