//! Rendezvous: who waits for whom, across cores and ranks.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Core;
use crate::timeline::{Cause, Peer, Ps};
use crate::timing::lower::{OpKind, Rendezvous};
use crate::timing::record::Observer;

/// Where a core stands in its rendezvous.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Rendezvous still to be held, by operation.
    open: FxHashMap<u32, u32>,
    /// Operations that the engine leaves behind when the others are not there.
    posted: FxHashSet<u32>,
    /// Those of them that it has left behind.
    left: FxHashSet<u32>,
    /// The one it has come to, to be announced.
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

    /// Whether `op` has been left behind: what follows it does not wait for it.
    pub(super) fn is_left(&self, op: u32) -> bool {
        self.left.contains(&op)
    }
}

impl<O: Observer> Core<'_, O> {
    /// Whether `op`, at the head of queue `q`, must wait for others. If so its arrival is announced, once.
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

    /// The rendezvous of `op` is held now; it starts. `last` came last, if that was another.
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
