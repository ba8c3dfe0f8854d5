//! Rendezvous: waits between cores and ranks.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Core;
use crate::timeline::{Cause, Peer, Ps};
use crate::timing::lower::{OpKind, Rendezvous};
use crate::timing::record::Observer;

/// The state of a core's rendezvous.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Rendezvous that have not completed, by operation.
    open: FxHashMap<u32, u32>,
    /// Posted operations: the engine continues with later operations if other members are missing.
    posted: FxHashSet<u32>,
    /// Posted operations that still wait.
    left: FxHashSet<u32>,
    /// A new arrival that is still to be announced: operation and rendezvous.
    pub(super) arrived: Option<(u32, u32)>,
}

impl Standing {
    pub(super) fn new(all: &[Rendezvous]) -> Self {
        Standing {
            open: all.iter().map(|r| (r.op, r.number)).collect(),
            posted: all.iter().filter(|r| r.posted).map(|r| r.op).collect(),
            ..Standing::default()
        }
    }

    /// Whether `op` is posted and waiting: later operations do not wait for it.
    pub(super) fn is_left(&self, op: u32) -> bool {
        self.left.contains(&op)
    }
}

impl<O: Observer> Core<'_, O> {
    /// Whether `op`, at the head of queue `q`, must wait for other members. If so, announces its arrival once.
    pub(super) fn awaits_others(&mut self, q: usize, op: u32, now: Ps) -> bool {
        let Some(&rendezvous) = self.standing.open.get(&op) else { return false };
        self.wait(q, op, now);
        self.standing.arrived = Some((op, rendezvous));
        if self.standing.posted.contains(&op) {
            self.standing.left.insert(op);
            self.consider(q);
        } else {
            self.queues[q].chosen = Some(op);
        }
        true
    }

    /// Starts `op`: its rendezvous completes at `now`. `last` is the last member to arrive, if it was another one.
    pub(super) fn resume(&mut self, op: u32, now: Ps, last: Option<Peer>) {
        let OpKind::Inst { queue } = self.low.ops[op as usize].kind else { return };
        self.standing.open.remove(&op);
        let q = queue as usize;
        let queue = &mut self.queues[q];
        if self.standing.left.remove(&op) {
            // It starts as soon as the engine is free.
            queue.free = queue.free.max(now);
            queue.resumed.push(Reverse(op));
            return self.consider(q);
        }
        if let Some(peer) = last {
            queue.free = now;
            self.observer.stall(q, now, Cause::Peer(peer));
        }
        self.choose(q, op, now);
    }
}
