//! The list scheduler: of the next instructions of a queue (a window of the program) it takes first what can start first, and of several that
//! can, the most urgent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Compiler;
use super::prefetch::Prefetches;
use super::priority::urgency;
use crate::timeline::Ps;
use crate::timing::cost::MachineConstants;
use crate::timing::dispatch::{Dispatch, Hold, Matmul, Order, Progress};
use crate::timing::lower::{ENGINES, Lowered};

/// What may come next in one queue.
#[derive(Debug, Default)]
struct Candidates {
    /// The first instruction in program order that has not been taken, by position in the queue.
    first: usize,
    /// The queue may take operations before this one.
    end: u32,
    /// Those that wait for nothing unknown, but are too far ahead of the first or behind a barrier; in program order.
    parked: BinaryHeap<Reverse<u32>>,
    /// Those that may start at a known time; by time.
    future: BinaryHeap<Reverse<(Ps, u32, u32)>>,
    /// Those that may start now; the most urgent first.
    ready: BinaryHeap<Reverse<(u32, u32)>>,
}

/// Makes the order of one core while the machine runs.
pub(super) struct ListScheduler<'a> {
    low: &'a Lowered<'a>,
    window: u32,
    urgency: Vec<u32>,
    /// Operations that are a rendezvous.
    rendezvous: FxHashSet<u32>,
    candidates: [Candidates; ENGINES],
    /// By operation.
    taken: Vec<bool>,
    prefetches: Option<Prefetches<'a>>,
    order: Order,
}

impl<'a> ListScheduler<'a> {
    pub(super) fn new(low: &'a Lowered<'a>, machine: &'a MachineConstants, compiler: &Compiler) -> Self {
        ListScheduler {
            low,
            window: compiler.window,
            urgency: urgency(low, compiler.window),
            rendezvous: low.rendezvous.iter().map(|r| r.op).collect(),
            candidates: Default::default(),
            taken: vec![false; low.ops.len()],
            prefetches: (compiler.late_share > 0.0).then(|| Prefetches::new(low, machine, compiler)),
            order: Order {
                queues: std::array::from_fn(|q| Vec::with_capacity(low.queues[q].len())),
                holds: FxHashMap::default(),
                confidence: compiler.confidence,
            },
        }
    }

    pub(super) fn into_order(self) -> Order {
        self.order
    }
}

impl Dispatch for ListScheduler<'_> {
    fn enter(&mut self, queue: usize, end: u32) {
        self.candidates[queue].end = end;
    }

    fn released(&mut self, queue: usize, op: u32) {
        self.candidates[queue].parked.push(Reverse(op));
    }

    fn transferred(&mut self, op: u32, complete: Ps) {
        if let Some(prefetches) = &mut self.prefetches {
            prefetches.transferred(op, complete);
        }
    }

    fn earliest(&mut self, queue: usize, progress: &[Progress]) -> Option<Ps> {
        let candidates = &mut self.candidates[queue];
        let ops = &self.low.queues[queue];
        while ops.get(candidates.first).is_some_and(|op| self.taken[*op as usize]) {
            candidates.first += 1;
        }
        let first = *ops.get(candidates.first)?;
        let limit = candidates.end.min(first.saturating_add(self.window));
        // Cores come to their rendezvous in program order, or each could wait for the other at a different one.
        while let Some(&Reverse(op)) = candidates.parked.peek()
            && op < limit
            && (first == op || !self.rendezvous.contains(&op))
        {
            candidates.parked.pop();
            candidates.future.push(Reverse((progress[op as usize].ready, self.urgency[op as usize], op)));
        }
        match (candidates.ready.is_empty(), candidates.future.peek()) {
            (false, _) => Some(0),
            (true, Some(Reverse((ready, ..)))) => Some(*ready),
            (true, None) => None,
        }
    }

    fn take(&mut self, queue: usize, now: Ps) -> Option<u32> {
        let candidates = &mut self.candidates[queue];
        while let Some(&Reverse((ready, urgency, op))) = candidates.future.peek()
            && ready <= now
        {
            candidates.future.pop();
            candidates.ready.push(Reverse((urgency, op)));
        }
        let Reverse((_, op)) = candidates.ready.pop()?;
        self.taken[op as usize] = true;
        self.order.queues[queue].push(op);
        Some(op)
    }

    fn hold(&mut self, matmul: Matmul) -> Option<Hold> {
        let hold = self.prefetches.as_mut()?.hold(matmul).filter(|h| h.time > 0)?;
        self.order.holds.insert(matmul.op, hold);
        Some(hold)
    }
}
