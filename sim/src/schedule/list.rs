//! The list scheduler: on its own clock, the queue that can start an operation first issues it.
//!
//! The clock uses the machine's costs with these differences: transfers have a more expensive trigger and a longer latency, an fp32 matmul takes a
//! single pass, function tables load instantly, all DMA engines are one server, and there is neither a power limiter nor another core.
//! Loads are in the order of their places ([`super::loads`]), stores in program order; a transfer overtakes transfers that wait for data.
//! Computation is, within a window, in the order in which a queue could start it if its own results had no latency; during that latency, one of
//! the next few is issued first. Of operations that can start at the same time a queue issues loads first, then stores; but computation that
//! precedes a transfer in the program is issued before it.
//!
//! *Invariants: each core's rendezvous are in program order, so that cores cannot deadlock. All dependences of an operation precede it
//! in one total order (the place of a load, the position of all others), so that every operation is scheduled.*

mod functions;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nki_diag::progress;

use super::loads::{Class, class, places};
use super::{Clock, Compiler, Schedule};
use crate::timeline::Ps;
use crate::timing::cost::{CostKind, MachineConstants};
use crate::timing::lower::{ENGINES, Lowered, Segment};
use crate::timing::order::Order;

/// The schedule of one core.
pub(super) fn schedule(low: &Lowered<'_>, machine: &MachineConstants, compiler: &Compiler) -> Schedule {
    let mut scheduler = Scheduler::new(low, machine, compiler);
    progress::begin("statements scheduled", low.ops.len() as u64);
    let mut from = [0; ENGINES];
    for segment in &low.segments {
        scheduler.segment(&from, segment);
        from = segment.taken;
    }
    Schedule { order: scheduler.order, clock: Some(scheduler.clock) }
}

/// Operations of one class in a fixed order.
#[derive(Debug, Default)]
struct Sequence {
    ops: Vec<u32>,
    next: usize,
}

impl Sequence {
    fn head(&self) -> Option<u32> {
        self.ops.get(self.next).copied()
    }
}

/// Computation of one queue.
#[derive(Debug, Default)]
struct Computation {
    /// All computation of the queue, in program order.
    ops: Vec<u32>,
    /// The first operation that has not been issued.
    first: usize,
    /// Released, but beyond the window; in program order.
    parked: BinaryHeap<Reverse<u32>>,
    /// Released and in the window, with `flowing` in the future; by that time. May contain issued operations.
    future: BinaryHeap<Reverse<(Ps, u32)>>,
    /// Released and in the window, with `flowing` reached; in program order. May contain issued operations.
    flowing: BinaryHeap<Reverse<u32>>,
}

/// The earliest start of an operation, from its resolved dependences.
#[derive(Debug, Clone, Copy, Default)]
struct Ready {
    at: Ps,
    /// The same if the results of its own queue had no latency.
    flowing: Ps,
    /// Whether the dependence that determines `at` is on data.
    by_data: bool,
}

/// One engine queue.
#[derive(Debug, Default)]
struct Queue {
    loads: Sequence,
    stores: Sequence,
    computation: Computation,
    /// Time when the engine is free.
    free: Ps,
    /// Earliest start of the next operation, if known.
    next: Option<Ps>,
    /// The next computation.
    candidate: Option<u32>,
    /// The loaded function table.
    table: Option<u32>,
}

impl Queue {
    fn transfers(&self, class: Class) -> &Sequence {
        if class == Class::Load { &self.loads } else { &self.stores }
    }
}

struct Scheduler<'a> {
    low: &'a Lowered<'a>,
    machine: &'a MachineConstants,
    compiler: Compiler,
    place: Vec<u32>,
    /// By operation: its position in the queue.
    position: Vec<u32>,
    /// By operation: the computation of its queue before it.
    computed: Vec<u32>,
    taken: Vec<bool>,
    /// By operation: whether it is computation that has been released and admitted to the window.
    admitted: Vec<bool>,
    /// By operation: dependences not yet resolved.
    pending: Vec<u32>,
    /// By operation: unresolved dependences on data, not space.
    data: Vec<u32>,
    /// By operation: the earliest start from its resolved dependences.
    ready: Vec<Ready>,
    queues: [Queue; ENGINES],
    /// The operation after the last one of the segment.
    end: u32,
    /// Time when the DMA engines are free.
    dma: Ps,
    /// Completion time of all operations so far.
    complete: Ps,
    /// Rendezvous taken.
    rendezvous: usize,
    /// Operations taken.
    count: u64,
    order: Order,
    clock: Clock,
}

impl<'a> Scheduler<'a> {
    fn new(low: &'a Lowered<'a>, machine: &'a MachineConstants, compiler: &Compiler) -> Self {
        let n = low.ops.len();
        let (mut position, mut computed) = (vec![0; n], vec![0; n]);
        for queue in &low.queues {
            let mut before = 0;
            for (i, op) in queue.iter().enumerate() {
                position[*op as usize] = i as u32;
                computed[*op as usize] = before;
                before += u32::from(class(low, *op) == Class::Compute);
            }
        }
        Scheduler {
            low,
            machine,
            compiler: *compiler,
            place: places(low, compiler.dma_window),
            position,
            computed,
            taken: vec![false; n],
            admitted: vec![false; n],
            pending: (0..n).map(|i| low.graph.deps.of(i).len() as u32).collect(),
            data: (0..n)
                .map(|i| low.graph.deps.of(i).iter().filter(|d| d.hazard.brings_data()).count() as u32)
                .collect(),
            ready: vec![Ready::default(); n],
            queues: Default::default(),
            end: 0,
            dma: 0,
            complete: 0,
            rendezvous: 0,
            count: 0,
            order: Order { queues: std::array::from_fn(|q| Vec::with_capacity(low.queues[q].len())) },
            clock: Clock { taken: Vec::with_capacity(n), times: vec![(0, 0); n] },
        }
    }

    /// Schedules the operations between two barriers. `from`: number of operations of each queue in earlier segments.
    fn segment(&mut self, from: &[u32; ENGINES], segment: &Segment) {
        let begin = std::mem::replace(&mut self.end, segment.end) as usize;
        for (q, &from) in from.iter().enumerate() {
            let ops = &self.low.queues[q][from as usize..segment.taken[q] as usize];
            let of = |wanted| -> Vec<u32> { ops.iter().copied().filter(|op| class(self.low, *op) == wanted).collect() };
            let mut loads = of(Class::Load);
            loads.sort_by_key(|op| (self.place[*op as usize], *op));
            let ops = of(Class::Compute);
            let parked = ops.iter().filter(|op| self.pending[**op as usize] == 0).map(|op| Reverse(*op)).collect();
            self.queues[q] = Queue {
                loads: Sequence { ops: loads, next: 0 },
                stores: Sequence { ops: of(Class::Store), next: 0 },
                computation: Computation { ops, parked, ..Computation::default() },
                free: self.queues[q].free,
                next: None,
                candidate: None,
                table: self.queues[q].table,
            };
        }
        for q in 0..ENGINES {
            self.consider(q);
        }
        while let Some((now, q)) = (0..ENGINES).filter_map(|q| Some((self.queues[q].next?, q))).min() {
            let Some(op) = self.take(q, now) else {
                self.consider(q);
                continue;
            };
            self.start(q, op, now);
        }
        let mut all = self.taken[begin..self.end as usize].iter().zip(&self.low.ops[begin..]);
        debug_assert!(all.all(|(taken, op)| *taken || op.is_barrier()));
        let open = self.complete + segment.barrier;
        for queue in &mut self.queues {
            queue.free = queue.free.max(open);
        }
    }

    /// Candidates for the next transfer of a class, in class order, with their earliest start. A transfer may overtake transfers that
    /// wait for data, but none that waits for space: space is allocated in class order.
    fn transfers(&self, q: usize, class: Class) -> impl Iterator<Item = (Ps, u32)> {
        let queue = &self.queues[q];
        let Compiler { trigger_window, transfer_window, dma_window, .. } = self.compiler;
        let first = queue.computation.ops.get(queue.computation.first);
        let near = first.map_or(u32::MAX, |op| self.computed[*op as usize].saturating_add(trigger_window));
        let other = if class == Class::Load { &queue.stores } else { &queue.loads };
        let mut reach = other.head().map_or(u32::MAX, |op| op.saturating_add(dma_window));
        let mut blocked = false;
        let turn = self.turn();
        let sequence = queue.transfers(class);
        let waiting = sequence.ops[sequence.next..].iter().filter(|op| !self.taken[**op as usize]);
        let candidate = move |&op: &u32| {
            if blocked || op >= reach {
                return None;
            }
            reach = reach.min(op.saturating_add(dma_window));
            if !turn(op) {
                return Some(None);
            }
            let resolved = self.pending[op as usize] == 0;
            let ready = self.ready[op as usize];
            blocked = if resolved { !ready.by_data } else { self.data[op as usize] == 0 };
            Some((resolved && self.computed[op as usize] <= near).then_some((ready.at, op)))
        };
        waiting.take(transfer_window as usize).map_while(candidate).flatten()
    }

    /// Determines the earliest start of queue `q`'s next operation.
    fn consider(&mut self, q: usize) {
        self.admit(q);
        let candidate = self.candidate(q);
        let free = self.queues[q].free;
        let mut first = candidate.map(|op| self.ready[op as usize].at);
        // Nothing starts before the queue is free, so candidates that are ready earlier make no difference.
        let is_free_later = |first: Option<Ps>| first.is_some_and(|ready| ready <= free);
        if !is_free_later(first) {
            for (ready, _) in self.transfers(q, Class::Load).chain(self.transfers(q, Class::Store)) {
                first = Some(first.map_or(ready, |f| f.min(ready)));
                if is_free_later(first) {
                    break;
                }
            }
        }
        self.queues[q].candidate = candidate;
        self.queues[q].next = first.map(|ready| ready.max(free));
    }

    /// Whether an operation is not a rendezvous, or is the next one.
    fn turn(&self) -> impl Fn(u32) -> bool + use<'a> {
        let rendezvous = &self.low.rendezvous;
        let next = rendezvous.get(self.rendezvous).map(|r| r.op);
        move |op| next.is_none_or(|next| op <= next) || rendezvous.binary_search_by_key(&op, |r| r.op).is_err()
    }

    /// Moves computation into the window.
    fn admit(&mut self, q: usize) {
        let turn = self.turn();
        let window = if q == TENSOR { u32::MAX } else { self.compiler.compute_window } as usize;
        let computation = &mut self.queues[q].computation;
        while computation.ops.get(computation.first).is_some_and(|op| self.taken[*op as usize]) {
            computation.first += 1;
        }
        let Some(&first) = computation.ops.get(computation.first) else { return };
        let last = computation.ops.get(computation.first.saturating_add(window - 1)).copied();
        while let Some(&Reverse(op)) = computation.parked.peek()
            && op < first.saturating_add(self.compiler.tensor_window)
            && last.is_none_or(|last| op <= last)
            && turn(op)
        {
            computation.parked.pop();
            computation.future.push(Reverse((self.ready[op as usize].flowing, op)));
            self.admitted[op as usize] = true;
        }
    }

    /// The next computation of queue `q`: the one that could start first if the queue's own results had no latency, or, during that latency, one
    /// that hides it. It never overtakes others at the cost of a function table load ([`functions`]).
    fn candidate(&mut self, q: usize) -> Option<u32> {
        let Queue { computation, free, .. } = &mut self.queues[q];
        let (free, taken) = (*free, &self.taken);
        while let Some(&Reverse((flowing, op))) = computation.future.peek()
            && (flowing <= free || taken[op as usize])
        {
            computation.future.pop();
            computation.flowing.push(Reverse(op));
        }
        while computation.flowing.peek().is_some_and(|Reverse(op)| taken[*op as usize]) {
            computation.flowing.pop();
        }
        let flowing = computation.flowing.peek().map(|Reverse(op)| *op);
        let next = flowing.or_else(|| computation.future.peek().map(|Reverse((_, op))| *op))?;
        let next = if self.costs_a_table(q, next) { self.without_table(q)? } else { next };
        let (computation, taken) = (&self.queues[q].computation, &self.taken);
        if self.ready[next as usize].at <= free {
            return Some(next);
        }
        let end = self.position[next as usize].saturating_add(self.compiler.latency_window);
        let from = computation.ops.partition_point(|op| *op < next);
        let near = computation.ops[from..].iter().copied().take_while(|op| self.position[*op as usize] < end);
        near.filter(|op| self.admitted[*op as usize] && !taken[*op as usize] && !self.costs_a_table(q, *op))
            .min_by_key(|op| (self.ready[*op as usize].at.max(free), *op))
    }

    /// The operation that queue `q` starts at `now`.
    fn take(&mut self, q: usize, now: Ps) -> Option<u32> {
        let computation = self.queues[q].candidate.filter(|op| self.ready[*op as usize].at <= now);
        let ready = |class| self.transfers(q, class).find(|(ready, _)| *ready <= now).map(|(_, op)| op);
        let Some(transfer) = ready(Class::Load).or_else(|| ready(Class::Store)) else { return computation };
        Some(computation.map_or(transfer, |op| op.min(transfer)))
    }

    /// Starts `op` on queue `q` at `now`.
    fn start(&mut self, q: usize, op: u32, now: Ps) {
        self.taken[op as usize] = true;
        self.count += 1;
        if self.count.is_multiple_of(progress::STEP) {
            progress::reach(self.count);
        }
        self.order.queues[q].push(op);
        for sequence in [&mut self.queues[q].loads, &mut self.queues[q].stores] {
            while sequence.head().is_some_and(|op| self.taken[op as usize]) {
                sequence.next += 1;
            }
        }
        let (free, complete) = match self.low.planned(op).map(|c| &c.kind) {
            Some(CostKind::Compute { occupancy, complete, table, .. }) => {
                self.queues[q].table = table.or(self.queues[q].table);
                (now + occupancy, now + complete)
            }
            Some(CostKind::Matmul { weights, moving, least, drain, fp32, .. }) => {
                let time = (*weights).max(*moving).max(*least);
                let end = now + if *fp32 { time * self.compiler.fp32_estimate / 1000 } else { time };
                (end, end + drain)
            }
            Some(CostKind::Dma(dma)) => {
                let trigger = dma.trigger(q);
                let free = now + trigger.occupancy * self.compiler.trigger_estimate / 1000;
                let begin = free + trigger.dispatch;
                // All engines serve transfers in turn; a transfer that uses few engines takes longer.
                let served = self.dma.max(begin) + dma.total() / Ps::from(self.machine.dma_engines);
                self.dma = served;
                let complete = served.max(begin + dma.longest()) + dma.payload + dma.notify;
                (free, complete + self.compiler.dma_latency)
            }
            Some(CostKind::Collective { trigger, time }) => (now + trigger, now + trigger + time),
            Some(CostKind::Free) | None => (now, now),
        };
        self.queues[q].free = free;
        self.complete = self.complete.max(complete);
        self.clock.taken.push(op);
        self.clock.times[op as usize] = (now, complete);
        let mut touched = 1u32 << q;
        if self.low.rendezvous.get(self.rendezvous).is_some_and(|r| r.op == op) {
            self.rendezvous += 1;
            touched = u32::MAX;
        }
        let low = self.low;
        for (waiter, edge) in low.waiters(op) {
            let Some(there) = low.queue(waiter) else { continue };
            let hazard = low.graph.deps.of(waiter as usize)[edge as usize].hazard;
            let by_data = hazard.brings_data();
            if let Some(wait) = low.wait(op, waiter, hazard, self.machine) {
                let ready = &mut self.ready[waiter as usize];
                let at = complete + wait;
                let flowing = if there == q && !low.is_dma(op) { free } else { at };
                (ready.at, ready.by_data) = (ready.at, ready.by_data).max((at, by_data));
                ready.flowing = ready.flowing.max(flowing);
            }
            self.data[waiter as usize] -= u32::from(by_data);
            self.pending[waiter as usize] -= 1;
            if self.pending[waiter as usize] == 0 {
                if waiter < self.end && !low.is_dma(waiter) {
                    self.queues[there].computation.parked.push(Reverse(waiter));
                }
                touched |= 1 << there;
            }
        }
        for q in (0..ENGINES).filter(|q| touched >> q & 1 == 1) {
            self.consider(q);
        }
    }
}

/// The tensor engine's queue.
const TENSOR: usize = 0;
