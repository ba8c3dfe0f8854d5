//! Maps the operations of one core to the events of the timeline.

use crate::timeline::{Cause, Event, EventId, Release, Span, State};

/// Maps a core's operation numbers to event numbers of the timeline.
pub(super) struct Renumber {
    base: u32,
    /// Number of events before each operation (barriers are not events).
    of: Vec<u32>,
}

impl Renumber {
    pub(super) fn event(&self, op: EventId) -> EventId {
        EventId(self.base + self.of[op.0 as usize])
    }
    fn cause(&self, cause: Cause) -> Cause {
        match cause {
            Cause::Semaphore { from, hazard, subject } => Cause::Semaphore { from: self.event(from), hazard, subject },
            Cause::EngineOrder(e) => Cause::EngineOrder(self.event(e)),
            Cause::Port(e) => Cause::Port(self.event(e)),
            other => other,
        }
    }
    pub(super) fn span(&self, mut span: Span) -> Span {
        span.state = match span.state {
            State::Busy(e) => State::Busy(self.event(e)),
            State::Stalled(c) => State::Stalled(self.cause(c)),
        };
        span
    }
    fn release(&self, release: Release) -> Release {
        match release {
            Release::Start => Release::Start,
            Release::Engine(e) => Release::Engine(self.event(e)),
            Release::Semaphore { from, hazard, subject } => {
                Release::Semaphore { from: self.event(from), hazard, subject }
            }
            Release::Port(e) => Release::Port(self.event(e)),
            Release::Barrier(e) => Release::Barrier(e.map(|e| self.event(e))),
            // Renumbered after all cores.
            Release::Peer(e) => Release::Peer(e),
            Release::Transfer(e) => Release::Transfer(self.event(e)),
        }
    }
}

/// Moves the events to `out`, in program order, and returns the renumbering of operations.
pub(super) fn hand_over(events: Vec<Option<Event>>, out: &mut Vec<Event>) -> Renumber {
    let base = out.len() as u32;
    let mut of = Vec::with_capacity(events.len());
    let mut count = 0;
    for e in &events {
        of.push(count);
        count += u32::from(e.is_some());
    }
    let renumber = Renumber { base, of };
    let renumbered = events.into_iter().filter_map(|event| {
        let mut event = event?;
        event.released = renumber.release(event.released);
        Some(event)
    });
    if out.is_empty() {
        // Built in the memory of the operations' events: those of a long kernel are many pages.
        *out = renumbered.collect();
    } else {
        out.extend(renumbered);
    }
    renumber
}
