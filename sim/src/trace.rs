//! The dynamic trace: executed instructions in program order, with value-dependent addresses and rendezvous.
//!
//! It is timing's only view of a run. If the program has no dynamic control flow and no dynamic addresses, it is complete without data
//! (see [`crate::exec`]).

use std::num::NonZeroU32;

use nki_isa::program::{Node, visit_stream};

/// Dense index of a [`Node`] in pre-order over one core's stream, control nodes included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIndex(pub u32);

/// An event in the execution of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The statement.
    pub node: NodeIndex,
    /// The kind of the event.
    pub kind: EventKind,
}

// There is one per executed instruction, as for the other types with an asserted size.
const _: () = assert!(size_of::<Event>() <= 12);

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// An instruction ran.
    Inst {
        /// Its resolved dynamic addresses (see [`CoreTrace::resolved`]); `None` when there are none.
        resolved: Option<ResolvedId>,
    },
    /// A dynamic loop was entered.
    LoopEnter,
    /// An iteration starts (counted from 0).
    LoopIteration(u32),
    /// A dynamic loop was left.
    LoopExit,
    /// A dynamic branch was decided.
    Branch(bool),
}

/// Identifies the dynamic addresses of an event within its [`CoreTrace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedId(NonZeroU32);

/// A dynamic address, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// Elements added to the view's offset.
    Offset(i64),
    /// For each step of the indexed dimension, elements added to the view's offset; `None` if the access was skipped.
    Rows(Box<[Option<i64>]>),
    /// The whole access was skipped (index out of bounds with `oob_mode.skip`).
    Skipped,
}

/// A core of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CoreId {
    /// The rank.
    pub rank: usize,
    /// The core within the rank.
    pub core: u32,
}

impl CoreId {
    /// `core 1`, or `core 1 of rank 2` if the run has several ranks.
    pub(crate) fn name(self, several_ranks: bool) -> String {
        let Self { rank, core } = self;
        if several_ranks { format!("core {core} of rank {rank}") } else { format!("core {core}") }
    }
}

/// An instruction that waited for instructions of other cores or ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rendezvous {
    /// Its position in [`CoreTrace::events`].
    pub event: u32,
    /// The number of the rendezvous: the same for all its members, on all ranks of the run.
    pub number: u32,
    /// Whether the core did not wait there: it sent its data and continued until it needed the received data.
    pub posted: bool,
}

/// The trace of one core.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CoreTrace {
    /// The events in program order.
    pub events: Vec<Event>,
    /// The events that had to wait for other cores, in the same order.
    pub rendezvous: Vec<Rendezvous>,
    /// The resolved addresses of instructions with dynamic addresses. A [`ResolvedId`] is a position, counted from 1.
    addresses: Vec<Box<[Resolved]>>,
}

impl CoreTrace {
    /// An empty trace with capacity for a number of events.
    pub fn with_capacity(events: usize) -> Self {
        CoreTrace { events: Vec::with_capacity(events), ..CoreTrace::default() }
    }

    /// Records an event other than an instruction at a statement.
    pub fn push(&mut self, node: NodeIndex, kind: EventKind) {
        self.events.push(Event { node, kind });
    }

    /// Records an executed instruction. `resolved` has its dynamic addresses, in the form of [`CoreTrace::resolved`].
    pub fn push_instruction(&mut self, node: NodeIndex, resolved: Option<Box<[Resolved]>>) {
        let resolved = resolved.and_then(|addresses| {
            self.addresses.push(addresses);
            // There are at most as many as events, which have 32-bit numbers.
            NonZeroU32::new(self.addresses.len() as u32).map(ResolvedId)
        });
        self.push(node, EventKind::Inst { resolved });
    }

    /// The dynamic addresses of an instruction: one entry per view with an `indirect` part, in the order of the footprint's reads, then
    /// writes (index tensors themselves are never indirect). `None` if there are none, or if the event is not an instruction.
    pub fn resolved(&self, event: &Event) -> Option<&[Resolved]> {
        let EventKind::Inst { resolved: Some(id) } = event.kind else { return None };
        self.addresses.get(id.0.get() as usize - 1).map(|addresses| &**addresses)
    }

    /// Keeps the events for which `keep` holds; a dropped one takes part in no rendezvous.
    pub fn retain(&mut self, mut keep: impl FnMut(&Event) -> bool) {
        let mut kept = 0;
        let mut place_of = |event: &Event| {
            keep(event).then(|| {
                kept += 1;
                kept - 1
            })
        };
        let places: Vec<Option<u32>> = self.events.iter().map(&mut place_of).collect();
        let mut place = places.iter();
        self.events.retain(|_| place.next().is_some_and(Option::is_some));
        self.rendezvous.retain_mut(|r| match places[r.event as usize] {
            Some(at) => {
                r.event = at;
                true
            }
            None => false,
        });
    }
}

/// The trace of all cores.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// By core.
    pub cores: Vec<CoreTrace>,
}

/// The nodes of one core's stream by [`NodeIndex`].
pub fn index_nodes(stream: &[Node]) -> Vec<&Node> {
    let mut nodes = Vec::with_capacity(stream.len());
    visit_stream(stream, &mut |node| nodes.push(node));
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendezvous_follow_the_events_that_are_kept() {
        let event = |node| Event { node: NodeIndex(node), kind: EventKind::Inst { resolved: None } };
        let at = |event, number| Rendezvous { event, number, posted: false };
        let mut trace = CoreTrace { rendezvous: vec![at(1, 7), at(2, 8), at(4, 9)], ..CoreTrace::with_capacity(5) };
        for node in 0..5 {
            trace.push_instruction(NodeIndex(node), (node == 3).then(|| Box::from([Resolved::Offset(9)])));
        }
        let kept = trace.events[3];
        trace.retain(|e| ![0, 2].contains(&e.node.0));
        assert_eq!(trace.events, [event(1), kept, event(4)]);
        assert_eq!(trace.resolved(&kept), Some(&[Resolved::Offset(9)][..]));
        assert_eq!(trace.rendezvous, [at(0, 7), at(2, 9)]);
    }
}
