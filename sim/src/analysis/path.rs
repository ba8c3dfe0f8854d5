//! The critical path: from the last completion backwards, always to the last event that an instruction waited for.

use crate::timeline::{EventId, Ps, Release, RowId, Timeline};

/// One instruction on the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The instruction.
    pub event: EventId,
    /// Start of its part of the path: completion of the event it waited for.
    pub from: Ps,
    /// End of its part: the next step's `from`.
    pub to: Ps,
    /// The event it waited for.
    pub via: Release,
}

/// The critical path in chronological order. The steps partition the time from the kernel's head to its tail.
///
/// Events never wait for later events. If the links nevertheless form a cycle, the path ends before an instruction would repeat: that
/// step starts at the head.
pub fn critical_path(timeline: &Timeline) -> Vec<Step> {
    let mut path = Vec::new();
    let last = timeline.events.iter().enumerate().max_by_key(|(i, e)| (e.complete, std::cmp::Reverse(*i)));
    let Some((last, event)) = last else { return path };
    let mut at = Some(EventId(last as u32));
    // A barrier may end after the last completion.
    let mut to = event.complete.max(timeline.elapsed - timeline.tail);
    let mut seen = vec![false; timeline.events.len()];
    let queues = queues(timeline);
    while let Some(id) = at {
        let e = timeline.event(id);
        let before = |from: EventId, time: Ps| (Some(from), time);
        let via = behind(timeline, &queues, id, to).map_or(e.released, Release::Transfer);
        let (next, from) = match via {
            Release::Start => (None, timeline.head),
            Release::Engine(p) => before(p, timeline.event(p).end.min(e.start)),
            Release::Semaphore { from, .. } => before(from, timeline.event(from).complete),
            Release::Port(p) => before(p, timeline.event(p).end),
            Release::Barrier(Some(p)) => before(p, timeline.event(p).complete),
            Release::Barrier(None) => (None, timeline.head),
            Release::Peer(p) => before(p, timeline.event(p).start.min(e.start)),
            Release::Transfer(p) => before(p, moved(timeline, p)),
        };
        seen[id.0 as usize] = true;
        let (next, from) = match next {
            Some(next) if seen[next.0 as usize] => (None, timeline.head),
            _ => (next, from),
        };
        let from = from.min(to);
        path.push(Step { event: id, from, to, via });
        to = from;
        at = next;
    }
    path.reverse();
    path
}

/// All transfers by queue, in the order of their triggers.
fn queues(timeline: &Timeline) -> Vec<(RowId, Ps, EventId)> {
    let events = (0..).zip(&timeline.events);
    let mut queues: Vec<_> = events.filter_map(|(i, e)| Some((e.origin.queue?, e.start, EventId(i)))).collect();
    queues.sort_unstable();
    queues
}

/// The time when the bytes of a transfer had moved.
fn moved(timeline: &Timeline, id: EventId) -> Ps {
    let e = timeline.event(id);
    e.moving().map_or(e.complete, |(_, moved)| moved)
}

/// The previous transfer in the queue of `id`, if the bytes of `id` waited for it before `to`.
fn behind(timeline: &Timeline, queues: &[(RowId, Ps, EventId)], id: EventId, to: Ps) -> Option<EventId> {
    let e = timeline.event(id);
    let (queue, (arrive, _)) = (e.origin.queue?, e.moving()?);
    let at = queues.binary_search(&(queue, e.start, id)).ok()?;
    let (same, _, before) = *queues.get(at.checked_sub(1)?)?;
    let free = moved(timeline, before);
    (same == queue && e.is_delayed() && arrive < free && free < to).then_some(before)
}
