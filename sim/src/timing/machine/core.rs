//! The state of one core: its pending dependences, and the event heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Core;
use super::rendezvous::Standing;
use super::tensor::Array;
use crate::deps::Dep;
use crate::timeline::{Cause, EventId, Ps, Release};
use crate::timing::cost::{Cost, MachineConstants};
use crate::timing::dma::Engines;
use crate::timing::limiter;
use crate::timing::lower::{ENGINES, Lowered, OpKind};
use crate::timing::order::Order;
use crate::timing::record::Observer;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    /// An engine may start its next instruction.
    Start(u8),
    /// A transfer reaches the DMA engines.
    Arrive(u32),
    /// A transfer on a class of DMA engines may be complete.
    Tick(u32, u32),
}

/// The resolved part of an operation's dependences.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Dependences not yet resolved.
    pub(super) pending: u32,
    /// The earliest start that the resolved dependences allow.
    pub(super) ready: Ps,
    /// The position of the dependence that determines `ready` in the list of dependences, or [`Progress::NONE`].
    last: u32,
}

// Each operation has one.
const _: () = assert!(size_of::<Progress>() <= 16);

impl Progress {
    const NONE: u32 = u32::MAX;
}

/// An engine and its instruction queue.
#[derive(Debug)]
pub(super) struct Queue {
    /// Number of operations taken, and the segment of the next one.
    pub(super) taken: u32,
    pub(super) segment: u32,
    /// Posted operations whose rendezvous has since completed: they start before any other.
    pub(super) resumed: BinaryHeap<Reverse<u32>>,
    /// The operation that has been taken and starts next.
    pub(super) chosen: Option<u32>,
    /// Planned start of the next instruction, if known.
    pub(super) planned: Option<Ps>,
    /// Earliest issue of the next operation.
    pub(super) free: Ps,
    /// Time when the results of all operations so far are available.
    pub(super) complete: Ps,
    /// The activity of the engine until `free`.
    pub(super) release: Release,
}

/// The operations between two barriers.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SegmentState {
    /// Operations not yet completed.
    pub(super) pending: u32,
    pub(super) ready: Ps,
    pub(super) last: Option<u32>,
    /// The time when the barrier at its end opens.
    pub(super) open: Option<Ps>,
}

impl<'a, O: Observer> Core<'a, O> {
    pub(super) fn new(low: &'a Lowered<'a>, order: &'a Order, machine: &'a MachineConstants, observer: O) -> Self {
        let n = low.ops.len();
        let queue = || Queue {
            taken: 0,
            segment: 0,
            resumed: BinaryHeap::new(),
            chosen: None,
            planned: None,
            free: machine.head,
            complete: machine.head,
            release: Release::Start,
        };
        let mut segments: Vec<SegmentState> =
            low.segments.iter().map(|s| SegmentState { pending: s.count, ..SegmentState::default() }).collect();
        if let Some(first) = segments.first_mut() {
            first.ready = machine.head;
        }
        Core {
            engines: Engines::new(&low.classes, ENGINES),
            low,
            order,
            machine,
            progress: (0..n)
                .map(|i| Progress { pending: low.graph.deps.of(i).len() as u32, ready: 0, last: Progress::NONE })
                .collect(),
            segments,
            queues: std::array::from_fn(|_| queue()),
            transferred: [machine.head; ENGINES],
            collectives: 0,
            moving: vec![0; n],
            array: Array::default(),
            limiter: limiter::State::new(machine.limiter),
            table: None,
            ports: Default::default(),
            heap: BinaryHeap::new(),
            sequence: 0,
            standing: Standing::new(&low.rendezvous),
            now: 0,
            end: machine.head,
            observer,
        }
    }

    pub(super) fn at(&mut self, time: Ps, moment: Moment) {
        self.sequence += 1;
        self.heap.push(Reverse((time, self.sequence, moment)));
    }

    /// Plans the first instructions.
    pub(super) fn begin(&mut self) {
        self.open_segments(0);
        for q in 0..ENGINES {
            self.consider(q);
        }
    }

    /// The time of the next step.
    pub(super) fn next(&self) -> Option<Ps> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    /// Processes the next event.
    pub(super) fn step(&mut self) {
        let Some(Reverse((now, _, moment))) = self.heap.pop() else { return };
        self.now = now;
        match moment {
            Moment::Start(q) => self.start(q as usize, now),
            Moment::Arrive(op) => self.arrive(op, now),
            Moment::Tick(class, version) => self.tick(class, version, now),
        }
    }

    /// The resolved dependence that determines the start of `op`.
    pub(super) fn last(&self, op: u32) -> Option<Dep> {
        self.low.graph.deps.of(op as usize).get(self.progress[op as usize].last as usize).copied()
    }

    pub(super) fn cost(&self, op: u32) -> Option<&'a Cost> {
        self.low.cost(op)
    }

    /// Opens the barriers of completed segments, from segment `s` on.
    pub(super) fn open_segments(&mut self, mut s: usize) {
        while s + 1 < self.segments.len() && self.segments[s].pending == 0 && self.segments[s].open.is_none() {
            let (ready, last) = (self.segments[s].ready, self.segments[s].last);
            let open = ready + self.low.segments[s].barrier;
            self.segments[s].open = Some(open);
            self.end = self.end.max(open);
            let next = &mut self.segments[s + 1];
            next.ready = next.ready.max(open);
            next.last = last;
            s += 1;
        }
    }

    /// Passes open barriers; returns whether the queue has operations left in its new segment.
    pub(super) fn advance(&mut self, q: usize) -> bool {
        loop {
            let queue = &mut self.queues[q];
            let segment = &self.low.segments[queue.segment as usize];
            if queue.taken < segment.taken[q] {
                return true;
            }
            let SegmentState { open: Some(open), last, .. } = self.segments[queue.segment as usize] else {
                return false;
            };
            self.observer.stall(q, open, Cause::Barrier);
            queue.free = queue.free.max(open);
            queue.release = Release::Barrier(last.map(EventId));
            queue.segment += 1;
        }
    }

    /// The results of `op` are available at `complete`.
    pub(super) fn completed(&mut self, op: u32, complete: Ps) {
        self.end = self.end.max(complete);
        let low = self.low;
        for (waiter, edge) in low.waiters(op) {
            let OpKind::Inst { queue: there } = low.ops[waiter as usize].kind else { continue };
            let dep = low.graph.deps.of(waiter as usize)[edge as usize];
            let wait = low.wait(op, waiter, dep.hazard, self.machine);
            let p = &mut self.progress[waiter as usize];
            p.pending -= 1;
            if let Some(latency) = wait
                && complete + latency >= p.ready
            {
                p.ready = complete + latency;
                p.last = edge;
            }
            if p.pending == 0 {
                self.consider(there as usize);
            }
        }
        let s = low.segment_of(op);
        let segment = &mut self.segments[s];
        segment.pending -= 1;
        if complete >= segment.ready {
            segment.ready = complete;
            segment.last = Some(op);
        }
        if segment.pending == 0 && s + 1 < self.segments.len() {
            self.open_segments(s);
            for q in 0..ENGINES {
                self.consider(q);
            }
        }
    }
}
