//! The state of one core: what was executed, what waits for what, and the heap of moments.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use nki_isa::names::Engine;
use nki_isa::program::NodeKind;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::array::Array;
use super::peers::Attendance;
use super::renumber::{Renumber, hand_over};
use crate::deps;
use crate::timeline::{Cause, Event, Lane, Phase, Ps, Release, RowId, Subject, Transfer};
use crate::timing::cost::{Cost, CostKind, Machine};
use crate::timing::dma::Engines;
use crate::timing::limiter;
use crate::timing::lower::{ENGINES, Lowered, Op, OpKind};
use crate::timing::params::Confidence;

/// A moment to look at something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    /// An engine may start its next instruction.
    Start(u8),
    /// A transfer reaches the DMA engines.
    Arrive(u32),
    /// A transfer on a class of DMA engines may be done.
    Tick(u32, u32),
    /// The bytes of a transfer have moved: its queue has a place again.
    Place(u8, u32),
}

/// What is known of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Dependences not yet resolved.
    pub(super) pending: u32,
    /// When the resolved ones allow it to start.
    pub(super) ready: Ps,
    /// The one that decides `ready`.
    pub(super) last: Option<deps::Dep>,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) ops: Vec<u32>,
    /// The first that has not started.
    pub(super) at: usize,
    /// Those that wait for nothing unknown, but are too far ahead of the first or behind a barrier; in program order.
    pub(super) parked: BinaryHeap<Reverse<u32>>,
    /// Those that may start at a known time; by time.
    pub(super) future: BinaryHeap<Reverse<(Ps, u32, u32)>>,
    /// Those that may start now; the most urgent first.
    pub(super) ready: BinaryHeap<Reverse<(u32, u32)>>,
    /// The one chosen to start next.
    pub(super) chosen: Option<u32>,
    /// When to look at the queue again.
    pub(super) planned: Option<Ps>,
    /// When the next operation can be issued.
    pub(super) free: Ps,
    /// Results of all operations so far are there.
    pub(super) complete: Ps,
    pub(super) release: Release,
    pub(super) lane: Lane,
}

/// A barrier and the operations that it waits for.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Segment {
    pub(super) pending: u32,
    pub(super) ready: Ps,
    pub(super) last: Option<u32>,
    /// When the barrier at its end opens.
    pub(super) open: Option<Ps>,
}

#[derive(Debug, Default)]
pub(super) struct DmaQueue {
    pub(super) free: Ps,
    pub(super) behind: Option<u32>,
    /// Triggered, not yet issued: operation, time to issue it, why the queue had to wait for the trigger.
    pub(super) waiting: VecDeque<(u32, Ps, Cause)>,
    /// Transfers between issue and the end of their payload.
    pub(super) under_way: u32,
    /// The transfer whose payload ended last.
    pub(super) freed: Option<u32>,
    pub(super) complete: Ps,
    pub(super) transfers: Vec<Transfer>,
}

pub(super) struct Core<'a> {
    pub(super) low: &'a Lowered<'a>,
    pub(super) machine: &'a Machine,
    pub(super) progress: Vec<Progress>,
    /// What the compiler starts first when it may choose.
    pub(super) urgency: Vec<u32>,
    /// How many of the transfers into a tensor were waited for.
    pub(super) arrived: FxHashMap<Subject, u32>,
    /// Operations that wait for one, and the position of the edge in their list.
    pub(super) waiters: Vec<(u32, u32)>,
    pub(super) waiters_of: Vec<u32>,
    pub(super) segment_of: Vec<u32>,
    pub(super) segments: Vec<Segment>,
    pub(super) queues: Vec<Queue>,
    pub(super) dma: Vec<DmaQueue>,
    pub(super) engines: Engines,
    /// Parts of a transfer still moving; index into the transfers of its queue.
    pub(super) moving: Vec<(u32, u32)>,
    pub(super) array: Array,
    pub(super) limiter: limiter::State,
    pub(super) table: Option<u32>,
    /// Transfers that an engine has waited for, by operation: a bit for each engine.
    pub(super) met: Vec<u8>,
    /// Vector, GpSimd: until when they hold the shared port, and with which operation.
    pub(super) port: [(Ps, u32); 2],
    pub(super) heap: BinaryHeap<Reverse<(Ps, u64, Moment)>>,
    pub(super) sequence: u64,
    pub(super) events: Vec<Option<Event>>,
    pub(super) core: u32,
    pub(super) row_base: u32,
    pub(super) attendance: Attendance,
    /// The time of the last step.
    pub(super) now: Ps,
    pub(super) end: Ps,
}

impl<'a> Core<'a> {
    pub(super) fn new(
        low: &'a Lowered<'a>,
        machine: &'a Machine,
        core: u32,
        row_base: u32,
        attendance: Attendance,
    ) -> Self {
        let n = low.ops.len();
        let mut queues: Vec<Queue> = (0..ENGINES)
            .map(|_| {
                let mut lane = Lane::default();
                lane.stall(machine.head, Cause::StartUp);
                Queue {
                    ops: Vec::new(),
                    at: 0,
                    parked: BinaryHeap::new(),
                    future: BinaryHeap::new(),
                    ready: BinaryHeap::new(),
                    chosen: None,
                    planned: None,
                    free: machine.head,
                    complete: machine.head,
                    release: Release::Start,
                    lane,
                }
            })
            .collect();
        let mut segments = vec![Segment { ready: machine.head, ..Segment::default() }];
        let mut segment_of = Vec::with_capacity(n);
        let mut progress = Vec::with_capacity(n);
        let mut counts = vec![0u32; n + 1];
        for (i, op) in low.ops.iter().enumerate() {
            let s = segments.len() - 1;
            segment_of.push(s as u32);
            match op.kind {
                OpKind::Inst { queue } => {
                    queues[queue as usize].ops.push(i as u32);
                    segments[s].pending += 1;
                }
                OpKind::Barrier(_) => {
                    for q in &mut queues {
                        q.ops.push(i as u32);
                    }
                    segments.push(Segment::default());
                }
            }
            let deps = low.deps.of(i);
            for d in deps {
                counts[d.on as usize + 1] += 1;
            }
            progress.push(Progress { pending: deps.len() as u32, ready: 0, last: None });
        }
        for i in 0..n {
            counts[i + 1] += counts[i];
        }
        let mut fill = counts.clone();
        let mut waiters = vec![(0, 0); low.deps.len()];
        for i in 0..n {
            for (k, d) in low.deps.of(i).iter().enumerate() {
                let slot = &mut fill[d.on as usize];
                waiters[*slot as usize] = (i as u32, k as u32);
                *slot += 1;
            }
        }
        let urgency = urgency(low, machine.window);
        let dma_costs = low.costs.iter().flatten().filter_map(|c| match &c.kind {
            CostKind::Dma(d) => Some(&**d),
            _ => None,
        });
        Core {
            engines: Engines::new(machine.dma_engines, ENGINES, dma_costs),
            low,
            machine,
            progress,
            urgency,
            arrived: FxHashMap::default(),
            waiters,
            waiters_of: counts,
            segment_of,
            segments,
            queues,
            dma: (0..ENGINES)
                .map(|_| DmaQueue { free: machine.head, complete: machine.head, ..DmaQueue::default() })
                .collect(),
            moving: vec![(0, 0); n],
            array: Array::default(),
            limiter: limiter::State::new(machine.limiter),
            table: None,
            met: vec![0; n],
            port: [(0, 0); 2],
            heap: BinaryHeap::new(),
            sequence: 0,
            events: vec![None; n],
            core,
            row_base,
            attendance,
            now: 0,
            end: machine.head,
        }
    }

    pub(super) fn at(&mut self, time: Ps, moment: Moment) {
        self.sequence += 1;
        self.heap.push(Reverse((time, self.sequence, moment)));
    }

    /// Plans the first instructions.
    pub(super) fn begin(&mut self) {
        self.open_segments(0);
        for op in 0..self.progress.len() {
            if self.progress[op].pending == 0 {
                self.park(op as u32);
            }
        }
        for q in 0..ENGINES {
            self.consider(q);
        }
    }

    /// The time of the next step.
    pub(super) fn next(&self) -> Option<Ps> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    /// Does what is to be done next.
    pub(super) fn step(&mut self) {
        let Some(Reverse((now, _, moment))) = self.heap.pop() else { return };
        self.now = now;
        match moment {
            Moment::Start(q) => self.start(q as usize, now),
            Moment::Arrive(op) => self.arrive(op, now),
            Moment::Tick(class, version) => self.tick(class, version, now),
            Moment::Place(q, op) => {
                let queue = &mut self.dma[q as usize];
                queue.under_way -= 1;
                queue.freed = Some(op);
                self.issue(q as usize, now);
            }
        }
    }

    pub(super) fn cost(&self, op: u32) -> Option<&'a Cost> {
        let low: &'a Lowered<'a> = self.low;
        low.costs[low.ops[op as usize].node.0 as usize].as_ref()
    }

    /// Opens the barriers whose segments are complete, from segment `s` on.
    pub(super) fn open_segments(&mut self, mut s: usize) {
        while s + 1 < self.segments.len() && self.segments[s].pending == 0 && self.segments[s].open.is_none() {
            let barrier = self.segment_of.partition_point(|x| (*x as usize) <= s) - 1;
            let OpKind::Barrier(cost) = self.low.ops[barrier].kind else { return };
            let (ready, last) = (self.segments[s].ready, self.segments[s].last);
            let open = ready + cost;
            self.segments[s].open = Some(open);
            self.end = self.end.max(open);
            let next = &mut self.segments[s + 1];
            next.ready = next.ready.max(open);
            next.last = last;
            for q in &mut self.dma {
                q.free = q.free.max(open);
            }
            s += 1;
        }
    }

    /// The results of `op` are there at `complete`.
    pub(super) fn completed(&mut self, op: u32, complete: Ps) {
        self.end = self.end.max(complete);
        let OpKind::Inst { queue } = self.low.ops[op as usize].kind else { return };
        let is_dma = matches!(self.cost(op), Some(Cost { kind: CostKind::Dma(_), .. }));
        let (from, to) = (self.waiters_of[op as usize], self.waiters_of[op as usize + 1]);
        for w in from..to {
            let (waiter, edge) = self.waiters[w as usize];
            let OpKind::Inst { queue: there } = self.low.ops[waiter as usize].kind else { continue };
            let dep = self.low.deps.of(waiter as usize)[edge as usize];
            let latency = if is_dma || there == queue { 0 } else { self.machine.semaphore };
            // The engine's order alone settles it.
            let ordered = there == queue
                && !is_dma
                && deps::orders(Engine::QUEUES[queue as usize], dep.hazard)
                && !matches!(self.cost(waiter), Some(Cost { kind: CostKind::Dma(_), .. }));
            let p = &mut self.progress[waiter as usize];
            p.pending -= 1;
            if !ordered && complete + latency >= p.ready {
                p.ready = complete + latency;
                p.last = Some(dep);
            }
            if p.pending == 0 {
                self.park(waiter);
                self.consider(there as usize);
            }
        }
        let s = self.segment_of[op as usize] as usize;
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

    #[allow(clippy::too_many_arguments, reason = "the fields of one event")]
    pub(super) fn event(
        &self,
        op: u32,
        q: usize,
        cost: &Cost,
        start: Ps,
        end: Ps,
        complete: Ps,
        phases: SmallVec<[Phase; 4]>,
        released: Release,
    ) -> Event {
        let Op { trace, node, .. } = self.low.ops[op as usize];
        let n = self.low.nodes[node.0 as usize];
        let label = match &n.kind {
            NodeKind::Inst(inst) => inst.schema().name,
            _ => "",
        };
        let dma = match &cost.kind {
            CostKind::Dma(d) => Some(d.bytes),
            _ => None,
        };
        Event {
            core: self.core,
            trace,
            node,
            loc: n.loc,
            trail: n.trail,
            label,
            tag: n.tag,
            row: RowId(self.row_base + q as u32),
            queue: dma.map(|_| RowId(self.row_base + (ENGINES + q) as u32)),
            start,
            end,
            complete,
            phases,
            bytes: dma.unwrap_or(0),
            released,
            confidence: if dma.is_some() { cost.confidence } else { cost.confidence.max(Confidence::Documented) },
            held: 0,
        }
    }

    /// Hands the events over, and says how operations were renumbered.
    pub(super) fn finish(&mut self, out: &mut Vec<Event>) -> Renumber {
        let base = out.len() as u32;
        hand_over(std::mem::take(&mut self.events), base, out)
    }
}

/// What the compiler starts first: program order, with two exceptions. A transfer is as urgent as the first instruction that reads what it brings.
/// And where a burst of transfers replaces what matmuls read, and the tensor engine has too little to do until it needs the burst, those matmuls
/// take turns: first comes the one with the longest way to the end, over what waits for it. So accumulation groups advance together, and
/// their operands become free one after the other.
fn urgency(low: &Lowered<'_>, window: u32) -> Vec<u32> {
    let n = low.ops.len();
    let cost = |i: usize| low.costs[low.ops[i].node.0 as usize].as_ref().map(|c| &c.kind);
    let is_dma = |i: usize| matches!(cost(i), Some(CostKind::Dma(_)));
    let matmul = |i: usize| match cost(i) {
        Some(CostKind::Matmul { moving, .. }) => Some(*moving),
        _ => None,
    };
    // What matmuls before an operation take, and what the transfers up to it take that follow each other without computation.
    let mut work = vec![0; n + 1];
    let mut burst = vec![0; n];
    for i in 0..n {
        work[i + 1] = work[i] + matmul(i).unwrap_or(0);
        if let Some(CostKind::Dma(d)) = cost(i) {
            burst[i] = d.longest() + if i > 0 { burst[i - 1] } else { 0 };
        }
    }
    let mut urgency: Vec<u32> = (0..n as u32).collect();
    let mut way = vec![0; n];
    let mut takes_turns = vec![false; n];
    for i in (0..n).rev() {
        if i + 1 < n && is_dma(i + 1) {
            // All of the burst.
            burst[i] = burst[i].max(if is_dma(i) { burst[i + 1] } else { 0 });
        }
        way[i] += match cost(i) {
            Some(CostKind::Dma(d)) => d.alone(d.hardware.1),
            Some(CostKind::Matmul { moving, .. }) => *moving,
            Some(CostKind::Compute { complete, .. }) => *complete,
            Some(CostKind::Free) | None => 0,
        };
        let deps = low.deps.of(i);
        for dep in deps {
            let on = dep.on as usize;
            way[on] = way[on].max(way[i]);
            if dep.hazard == deps::Hazard::Raw && is_dma(on) {
                urgency[on] = i as u32;
            }
        }
        if is_dma(i) {
            let readers = || deps.iter().filter(|d| d.hazard == deps::Hazard::War && matmul(d.on as usize).is_some());
            let needed = work[urgency[i] as usize];
            if let Some(last) = readers().map(|d| d.on as usize).max()
                && needed.saturating_sub(work[last + 1]) < burst[i]
            {
                for dep in readers().filter(|d| i - d.on as usize <= window as usize) {
                    takes_turns[dep.on as usize] = true;
                }
            }
        }
    }
    let places: Vec<u32> = (0..n as u32).filter(|i| takes_turns[*i as usize]).collect();
    let mut turns = places.clone();
    turns.sort_by_key(|i| (std::cmp::Reverse(way[*i as usize]), *i));
    for (i, place) in turns.into_iter().zip(places) {
        urgency[i as usize] = place;
    }
    urgency
}
