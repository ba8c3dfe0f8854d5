//! Resolves semaphore conditions to the operations that satisfy them.

use std::collections::{BTreeMap, BTreeSet};

use nki_isa::names::Engine;

use super::operands::{Change, Relation, Wait};
use super::stream::{Mapped, trigger_semaphore};
use super::{Core, Ns};

/// An in-order completion queue: an engine, or the transfers that it triggers.
type Queue = (Engine, bool);

/// The history of one semaphore, in chronological order.
#[derive(Default)]
struct Track {
    /// The operations that change it.
    ops: Vec<u32>,
    /// Its value after each change.
    values: Vec<i64>,
    times: Vec<Ns>,
    /// Whether it was ever decremented or set.
    goes_back: bool,
    queues: BTreeSet<Queue>,
}

impl Track {
    fn push(&mut self, op: u32, queue: Queue, change: Change, time: Ns) {
        let before = self.values.last().copied().unwrap_or(0);
        self.goes_back |= !matches!(change, Change::Add(n) if n > 0);
        self.ops.push(op);
        self.values.push(change.apply(before));
        self.times.push(time);
        self.queues.insert(queue);
    }

    /// The number of changes after which a condition of an instruction started at `start` holds; `None` if it never does.
    fn met(&self, condition: &Wait, waiter: u32, start: Ns) -> Option<usize> {
        if !self.goes_back && condition.relation == Relation::AtLeast {
            let below = self.values.partition_point(|v| *v < condition.value);
            return if condition.holds(0) { Some(0) } else { (below < self.values.len()).then_some(below + 1) };
        }
        // Later changes belong to another round, except for one, because a record may be late.
        let until = (self.times.partition_point(|t| *t <= start) + 1).min(self.values.len());
        let before = |i: usize| if i == 0 { 0 } else { self.values[i - 1] };
        let turns =
            |i: &usize| condition.holds(self.values[*i]) && !condition.holds(before(*i)) && self.ops[*i] != waiter;
        let last = (0..until).rev().find(turns).map(|i| i + 1);
        last.or(condition.holds(0).then_some(0))
    }
}

/// The semaphores of a core.
pub(super) struct Semaphores {
    tracks: BTreeMap<u32, Track>,
}

impl Semaphores {
    pub(super) fn of(mapped: &Mapped, core: &Core) -> Self {
        // A queue completes in order, whatever the recorded ends are.
        let mut last: BTreeMap<Queue, Ns> = BTreeMap::new();
        let mut order: Vec<(Ns, usize)> = Vec::with_capacity(mapped.ops.len());
        for (op, own) in mapped.ops.iter().enumerate() {
            let time = last.entry(mapped.queue(op)).or_insert(own.complete);
            *time = own.complete.max(*time);
            order.push((*time, op));
        }
        order.sort_unstable();
        let mut tracks: BTreeMap<u32, Track> = BTreeMap::new();
        for (time, op) in order {
            let mut note = |semaphore: u32, change: Change| {
                tracks.entry(semaphore).or_default().push(op as u32, mapped.queue(op), change, time);
            };
            for part in &mapped.ops[op].parts {
                let operands = &core.instructions[part.instruction].operands;
                if let Some((semaphore, by)) = trigger_semaphore(operands) {
                    note(semaphore, Change::Add(by));
                }
                operands.updates.iter().for_each(|u| note(u.semaphore, u.change));
            }
        }
        Semaphores { tracks }
    }

    /// The operations that satisfied a condition: for each queue the last one that had changed the semaphore. `None` if nothing satisfies it.
    pub(super) fn setters(&self, mapped: &Mapped, condition: &Wait, waiter: usize, start: Ns) -> Option<Vec<u32>> {
        let Some(track) = self.tracks.get(&condition.semaphore) else {
            return condition.holds(0).then(Vec::new);
        };
        let met = track.met(condition, waiter as u32, start)?;
        let mut found: BTreeMap<Queue, u32> = BTreeMap::new();
        for &op in track.ops[..met].iter().rev().filter(|op| **op as usize != waiter) {
            found.entry(mapped.queue(op as usize)).or_insert(op);
            if found.len() == track.queues.len() {
                break;
            }
        }
        Some(found.into_values().collect())
    }
}
