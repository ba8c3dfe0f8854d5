//! The scheduler: engine queues, DMA queues and semaphores over one heap of moments.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use nki_isa::Program;
use nki_isa::names::Engine;
use nki_isa::program::NodeKind;
use smallvec::SmallVec;

use super::cost::{Cost, CostKind, CostModel, DmaCost, Machine};
use super::dma::Engines;
use super::limiter::{self, slowed};
use super::lower::{ENGINES, Lowered, Op, OpKind, lower};
use super::params::Confidence;
use crate::deps;
use crate::place::Placement;
use crate::timeline::{
    Cause, DmaStats, Event, EventId, Hazard, Lane, Names, Phase, PhaseKind, Ps, Release, Row, RowId, RowKind, State,
    Subject, Timeline, Transfer, dma_spans, union,
};
use crate::trace::Trace;

/// A moment to look at something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// The head of an engine's queue may start.
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
struct Progress {
    /// Dependences not yet resolved.
    pending: u32,
    /// When the resolved ones allow it to start.
    ready: Ps,
    /// The one that decides `ready`.
    last: Option<deps::Dep>,
}

#[derive(Debug)]
struct Queue {
    ops: Vec<u32>,
    at: usize,
    /// When the next operation can be issued.
    free: Ps,
    /// Results of all operations so far are there.
    complete: Ps,
    release: Release,
    scheduled: bool,
    lane: Lane,
}

/// A barrier and the operations that it waits for.
#[derive(Debug, Default, Clone, Copy)]
struct Segment {
    pending: u32,
    ready: Ps,
    last: Option<u32>,
    /// When the barrier at its end opens.
    open: Option<Ps>,
}

#[derive(Debug, Default)]
struct DmaQueue {
    free: Ps,
    behind: Option<u32>,
    /// Triggered, not yet issued: operation, time to issue it, why the queue had to wait for the trigger.
    waiting: VecDeque<(u32, Ps, Cause)>,
    /// Transfers between issue and the end of their payload.
    under_way: u32,
    /// The transfer whose payload ended last.
    freed: Option<u32>,
    complete: Ps,
    transfers: Vec<Transfer>,
}

/// Cells of the array: who computes there last, and whose weights are loaded.
#[derive(Debug, Default)]
struct Array {
    free: [Ps; 16],
    weights: [Option<u32>; 16],
}

struct Core<'a> {
    low: &'a Lowered<'a>,
    machine: &'a Machine,
    progress: Vec<Progress>,
    /// Operations that wait for one, and the position of the edge in their list.
    waiters: Vec<(u32, u32)>,
    waiters_of: Vec<u32>,
    segment_of: Vec<u32>,
    segments: Vec<Segment>,
    queues: Vec<Queue>,
    dma: Vec<DmaQueue>,
    engines: Engines,
    /// Parts of a transfer still moving; index into the transfers of its queue.
    moving: Vec<(u32, u32)>,
    array: Array,
    limiter: limiter::State,
    table: Option<u32>,
    /// Vector, GpSimd: until when they hold the shared port, and with which operation.
    port: [(Ps, u32); 2],
    heap: BinaryHeap<Reverse<(Ps, u64, Moment)>>,
    sequence: u64,
    events: Vec<Option<Event>>,
    core: u32,
    row_base: u32,
    event_base: u32,
    end: Ps,
}

/// Simulates all cores. They run independently.
pub(super) fn run(program: &Program, placement: &Placement, trace: &Trace, model: &dyn CostModel) -> Timeline {
    let machine = model.machine();
    let written = deps::written_tensors(program);
    let mut rows = Vec::new();
    let mut events = Vec::new();
    let mut lanes = Vec::new();
    let mut end = machine.head;
    for (c, core_trace) in trace.cores.iter().enumerate().take(program.cores.len()) {
        let low = lower(program, c, placement, core_trace, model, &written);
        let mut core = Core::new(&low, machine, c as u32, (c * 2 * ENGINES) as u32, events.len() as u32);
        core.run();
        end = end.max(core.end);
        let renumber = core.finish(&mut events);
        lanes.push((core.queues, core.dma, renumber));
    }
    let elapsed = end + machine.tail;
    let mut dma = DmaStats::default();
    let mut moving = Vec::new();
    for (c, (queues, dma_queues, renumber)) in lanes.into_iter().enumerate() {
        for (queue, engine) in queues.into_iter().zip(Engine::QUEUES) {
            let spans = queue.lane.into_spans(elapsed).into_iter().map(|s| renumber.span(s)).collect();
            let row = RowId(rows.len() as u32);
            let count = events.iter().filter(|e: &&Event| e.row == row).count() as u64;
            rows.push(Row { core: c as u32, kind: RowKind::Engine(engine), count, spans });
        }
        for (queue, engine) in dma_queues.into_iter().zip(Engine::QUEUES) {
            let spans =
                dma_spans(&queue.transfers, machine.head, elapsed).into_iter().map(|s| renumber.span(s)).collect();
            dma.transfers += queue.transfers.len() as u64;
            moving.extend(queue.transfers.iter().map(|t| (t.payload, t.payload_end)));
            rows.push(Row {
                core: c as u32,
                kind: RowKind::DmaQueue(engine),
                count: queue.transfers.len() as u64,
                spans,
            });
        }
    }
    dma.bytes = events.iter().map(|e| e.bytes).sum();
    dma.active = union(moving);
    let mut timeline = Timeline {
        kernel: program.name.clone(),
        elapsed,
        rows,
        events,
        dma,
        head: machine.head,
        tail: machine.tail,
        confidence: [0; 4],
        names: Names {
            tensors: program.tensors.iter().map(|t| t.name.clone()).collect(),
            files: program.files.clone(),
        },
    };
    timeline.confidence = crate::analysis::confidence(&timeline, machine.fixed);
    timeline
}

/// Maps operation numbers of a core to event numbers of the timeline.
struct Renumber {
    base: u32,
    /// Events before each operation (barriers are none).
    of: Vec<u32>,
}

impl Renumber {
    fn event(&self, op: EventId) -> EventId {
        EventId(self.base + self.of[op.0 as usize])
    }
    fn cause(&self, cause: Cause) -> Cause {
        match cause {
            Cause::Semaphore { from, hazard, subject } => Cause::Semaphore { from: self.event(from), hazard, subject },
            Cause::EngineOrder(e) => Cause::EngineOrder(self.event(e)),
            Cause::DmaQueueOrder(e) => Cause::DmaQueueOrder(self.event(e)),
            Cause::Port(e) => Cause::Port(self.event(e)),
            other => other,
        }
    }
    fn span(&self, mut span: crate::timeline::Span) -> crate::timeline::Span {
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
            Release::DmaQueue(e) => Release::DmaQueue(self.event(e)),
            Release::Barrier(e) => Release::Barrier(e.map(|e| self.event(e))),
        }
    }
}

impl<'a> Core<'a> {
    fn new(low: &'a Lowered<'a>, machine: &'a Machine, core: u32, row_base: u32, event_base: u32) -> Self {
        let n = low.ops.len();
        let mut queues: Vec<Queue> = (0..ENGINES)
            .map(|_| {
                let mut lane = Lane::default();
                lane.stall(machine.head, Cause::StartUp);
                Queue {
                    ops: Vec::new(),
                    at: 0,
                    free: machine.head,
                    complete: machine.head,
                    release: Release::Start,
                    scheduled: false,
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
        let dma_costs = low.costs.iter().flatten().filter_map(|c| match &c.kind {
            CostKind::Dma(d) => Some(&**d),
            _ => None,
        });
        Core {
            engines: Engines::new(machine.dma_engines, ENGINES, dma_costs),
            low,
            machine,
            progress,
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
            port: [(0, 0); 2],
            heap: BinaryHeap::new(),
            sequence: 0,
            events: vec![None; n],
            core,
            row_base,
            event_base,
            end: machine.head,
        }
    }

    fn at(&mut self, time: Ps, moment: Moment) {
        self.sequence += 1;
        self.heap.push(Reverse((time, self.sequence, moment)));
    }

    fn run(&mut self) {
        self.open_segments(0);
        for q in 0..ENGINES {
            self.consider(q);
        }
        while let Some(Reverse((now, _, moment))) = self.heap.pop() {
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
        debug_assert!(self.queues.iter().all(|q| q.at == q.ops.len()), "a queue is stuck");
    }

    /// Looks at the head of a queue: passes open barriers, and plans the start of an instruction that waits for nothing unknown.
    fn consider(&mut self, q: usize) {
        loop {
            let queue = &mut self.queues[q];
            let Some(&op) = queue.ops.get(queue.at) else { return };
            if queue.scheduled {
                return;
            }
            match self.low.ops[op as usize].kind {
                OpKind::Barrier(_) => {
                    let segment = self.segments[self.segment_of[op as usize] as usize];
                    let Some(open) = segment.open else { return };
                    queue.lane.stall(open, Cause::Barrier);
                    queue.free = queue.free.max(open);
                    queue.release = Release::Barrier(segment.last.map(EventId));
                    queue.at += 1;
                }
                OpKind::Inst { .. } => {
                    let p = self.progress[op as usize];
                    if p.pending > 0 {
                        return;
                    }
                    let mut start = queue.free;
                    if let Some(Cost { kind: CostKind::Compute { table: Some(table), .. }, .. }) = self.cost(op)
                        && self.table != Some(*table)
                    {
                        start += self.machine.table_load;
                    }
                    let start = start.max(p.ready);
                    self.queues[q].scheduled = true;
                    return self.at(start, Moment::Start(q as u8));
                }
            }
        }
    }

    fn cost(&self, op: u32) -> Option<&'a Cost> {
        let low: &'a Lowered<'a> = self.low;
        low.costs[low.ops[op as usize].node.0 as usize].as_ref()
    }

    /// Opens the barriers whose segments are complete, from segment `s` on.
    fn open_segments(&mut self, mut s: usize) {
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
    fn completed(&mut self, op: u32, complete: Ps) {
        self.end = self.end.max(complete);
        let OpKind::Inst { queue } = self.low.ops[op as usize].kind else { return };
        let is_dma = matches!(self.cost(op), Some(Cost { kind: CostKind::Dma(_), .. }));
        let (from, to) = (self.waiters_of[op as usize], self.waiters_of[op as usize + 1]);
        for w in from..to {
            let (waiter, edge) = self.waiters[w as usize];
            let OpKind::Inst { queue: there } = self.low.ops[waiter as usize].kind else { continue };
            let latency = if is_dma || there == queue { 0 } else { self.machine.semaphore };
            let p = &mut self.progress[waiter as usize];
            p.pending -= 1;
            if complete + latency >= p.ready {
                p.ready = complete + latency;
                p.last = Some(self.low.deps.of(waiter as usize)[edge as usize]);
            }
            if p.pending == 0 {
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

    /// The head of queue `q` starts.
    fn start(&mut self, q: usize, now: Ps) {
        self.queues[q].scheduled = false;
        let op = self.queues[q].ops[self.queues[q].at];
        let Some(cost) = self.cost(op) else { return };
        let p = self.progress[op as usize];
        let mut phases = SmallVec::new();
        let semaphore = match p.last {
            Some(d) if p.ready > self.queues[q].free => {
                Some(Release::Semaphore { from: EventId(d.on), hazard: d.hazard, subject: d.subject })
            }
            _ => None,
        };
        let mut release = semaphore.unwrap_or(self.queues[q].release);

        let (mut start, end, complete, mut free) = match &cost.kind {
            CostKind::Compute { occupancy, complete, table, port } => {
                if *port && let Some(side) = port_side(q) {
                    let (until, holder) = self.port[1 - side];
                    if until > now {
                        // Everything else is there; only the port is not.
                        self.wait_lane(q, op, now, None);
                        self.queues[q].lane.stall(until, Cause::Port(EventId(holder)));
                        let queue = &mut self.queues[q];
                        queue.free = until;
                        queue.release = Release::Port(EventId(holder));
                        queue.scheduled = true;
                        return self.at(until, Moment::Start(q as u8));
                    }
                    self.port[side] = (now + occupancy, op);
                }
                let loads = table.is_some() && self.table != *table;
                if loads {
                    let from = self.queues[q].free.min(now);
                    let until = from + self.machine.table_load;
                    phases.push(Phase { kind: PhaseKind::TableLoad, start: from, end: until });
                    self.wait_lane(q, op, now, Some(until));
                    self.table = *table;
                    if until >= p.ready {
                        release = self.queues[q].release;
                    }
                } else {
                    self.wait_lane(q, op, now, None);
                }
                let (end, complete) = (now + occupancy, now + complete);
                self.queues[q].lane.fill(end, State::Busy(EventId(op)));
                phases.push(Phase { kind: PhaseKind::Execute, start: now, end });
                phases.push(Phase { kind: PhaseKind::Drain, start: end, end: complete });
                (now, end, complete, end)
            }
            CostKind::Matmul { weights, moving, drain, cells, load, stationary: _ } => {
                self.matmul(q, op, now, (*weights, *moving, *drain, *cells, *load), &mut phases, &mut release)
            }
            CostKind::Dma(dma) => {
                let (occupancy, issue) = if Engine::QUEUES[q] == Engine::GpSimd { dma.software } else { dma.hardware };
                self.wait_lane(q, op, now, None);
                let end = now + occupancy;
                self.queues[q].lane.fill(end, State::Busy(EventId(op)));
                let before = match (semaphore, self.queues[q].release) {
                    (Some(Release::Semaphore { from, hazard, subject }), _) => {
                        Cause::Semaphore { from, hazard, subject }
                    }
                    (_, Release::Engine(e)) => Cause::EngineOrder(e),
                    (_, Release::Barrier(_)) => Cause::Barrier,
                    _ => Cause::StartUp,
                };
                self.dma[q].waiting.push_back((op, issue, before));
                (now, end, 0, end)
            }
            CostKind::Free => (now, now, now, now),
        };
        let queue = &mut self.queues[q];
        free = free.max(queue.free);
        start = start.min(end);
        let complete = if matches!(cost.kind, CostKind::Dma(_)) { 0 } else { complete.max(queue.complete) };
        queue.complete = queue.complete.max(complete);
        queue.free = free;
        queue.release = Release::Engine(EventId(op));
        queue.at += 1;
        self.events[op as usize] = Some(self.event(op, q, cost, start, end, complete, phases, release));
        if matches!(cost.kind, CostKind::Dma(_)) {
            self.issue(q, now);
        } else {
            self.completed(op, complete);
        }
        self.consider(q);
    }

    /// Accounts for the time between the last span of an engine's row and `now`.
    fn wait_lane(&mut self, q: usize, op: u32, now: Ps, table_until: Option<Ps>) {
        let p = self.progress[op as usize];
        let queue = &mut self.queues[q];
        if let Some(until) = table_until {
            queue.lane.stall(until.min(now), Cause::TableLoad);
        }
        let cause = match (p.last, queue.release) {
            (Some(d), _) => Cause::Semaphore { from: EventId(d.on), hazard: d.hazard, subject: d.subject },
            (None, Release::Port(e)) => Cause::Port(e),
            (None, Release::Barrier(_)) => Cause::Barrier,
            _ => Cause::StartUp,
        };
        queue.lane.stall(now, cause);
    }

    /// Weights (unless they are there already) and columns. The weights load while the previous matmul still runs.
    #[allow(clippy::type_complexity, reason = "the parts of one cost")]
    fn matmul(
        &mut self,
        q: usize,
        op: u32,
        now: Ps,
        (weights, moving, drain, cells, load): (Ps, Ps, Ps, u16, u32),
        phases: &mut SmallVec<[Phase; 4]>,
        release: &mut Release,
    ) -> (Ps, Ps, Ps, Ps) {
        let used: SmallVec<[usize; 16]> = (0..16).filter(|i| cells >> i & 1 == 1).collect();
        let busy_until = used.iter().map(|i| self.array.free[*i]).max().unwrap_or(0);
        let loaded = self.has_weights(op, &used);
        let rate = self.limiter.rate(now.max(busy_until));
        let weights = if loaded { 0 } else { weights };
        let ready = now + slowed(weights, rate);
        let begin = ready.max(busy_until);
        let end = begin + slowed(moving, rate);
        for i in 0..16 {
            if cells >> i & 1 == 1 {
                self.array.free[i] = end;
                self.array.weights[i] = Some(op);
            } else if !loaded
                && self.array.weights[i].is_some_and(|o| used.iter().any(|u| self.array.weights[*u] == Some(o)))
            {
                self.array.weights[i] = None;
            }
        }
        self.limiter.used(begin, end, load);
        if busy_until > ready
            && let Release::Engine(_) = self.queues[q].release
        {
            *release = self.queues[q].release;
        }
        let start = if ready > busy_until { now.max(busy_until.min(ready)) } else { begin };
        self.wait_lane(q, op, start, None);
        if weights > 0 {
            phases.push(Phase { kind: PhaseKind::Weights, start: now, end: ready });
        }
        // The limiter's share of the visible time lies at its end.
        let visible = end - start;
        let nominal = (u128::from(visible) * u128::from(rate) / 1_000_000) as Ps;
        let lane = &mut self.queues[q].lane;
        lane.fill(start + nominal, State::Busy(EventId(op)));
        lane.stall(end, Cause::Limiter);
        let full = (start + nominal).max(begin);
        phases.push(Phase { kind: PhaseKind::Execute, start: begin, end: full });
        if end > full {
            phases.push(Phase { kind: PhaseKind::Limiter, start: full, end });
        }
        phases.push(Phase { kind: PhaseKind::Drain, start: end, end: end + drain });
        (start, end, end + drain, begin)
    }

    /// Whether the cells hold the weights that `op` wants: same view, loaded by the last matmul there, and not written since.
    fn has_weights(&self, op: u32, cells: &[usize]) -> bool {
        let Some(before) = cells.first().and_then(|c| self.array.weights[*c]) else { return false };
        if !cells.iter().all(|c| self.array.weights[*c] == Some(before)) {
            return false;
        }
        let stationary = |op: u32| match self.cost(op) {
            Some(Cost { kind: CostKind::Matmul { stationary: Some(view), cells, .. }, .. }) => Some((view, *cells)),
            _ => None,
        };
        let (Some(a), Some(b)) = (stationary(before), stationary(op)) else { return false };
        a == b
            && !self
                .low
                .deps
                .of(op as usize)
                .iter()
                .any(|d| d.on > before && d.hazard == Hazard::Raw && d.subject == Subject::Tensor(a.0.tensor))
    }

    /// The queue takes the transfers that wait for it, as long as it may have more under way.
    fn issue(&mut self, q: usize, now: Ps) {
        while self.dma[q].under_way < self.machine.queue_depth
            && let Some((op, issue, before)) = self.dma[q].waiting.pop_front()
        {
            let Some((_, cost)) = self.dma_cost(op) else { continue };
            let queue = &mut self.dma[q];
            queue.under_way += 1;
            let behind = queue.behind.filter(|_| queue.free > now).or(queue.freed.filter(|_| {
                // It was triggered earlier and waited for a place.
                self.events[op as usize].as_ref().is_some_and(|e| e.start < now)
            }));
            let start = now.max(queue.free);
            let end = start + issue;
            let arrive = end + cost.dispatch;
            queue.free = end;
            queue.behind = Some(op);
            self.moving[op as usize] = (0, queue.transfers.len() as u32);
            queue.transfers.push(Transfer {
                event: EventId(op),
                issue: (start, end),
                payload: arrive,
                unloaded: arrive,
                payload_end: arrive,
                complete: arrive,
                before,
            });
            if let Some(event) = &mut self.events[op as usize] {
                event.phases.push(Phase { kind: PhaseKind::Issue, start, end });
                event.phases.push(Phase { kind: PhaseKind::Dispatch, start: end, end: arrive });
                if let Some(behind) = behind {
                    event.released = Release::DmaQueue(EventId(behind));
                }
            }
            self.at(arrive, Moment::Arrive(op));
        }
    }

    fn dma_cost(&self, op: u32) -> Option<(usize, &'a DmaCost)> {
        let OpKind::Inst { queue } = self.low.ops[op as usize].kind else { return None };
        match self.cost(op) {
            Some(Cost { kind: CostKind::Dma(d), .. }) => Some((queue as usize, d)),
            _ => None,
        }
    }

    fn arrive(&mut self, op: u32, now: Ps) {
        let Some((q, cost)) = self.dma_cost(op) else { return };
        let mut ticks = SmallVec::<[_; 16]>::new();
        let parts = self.engines.add(op, q, cost, now, &mut |t, c, v| ticks.push((t, c, v)));
        for (t, c, v) in ticks {
            self.at(t, Moment::Tick(c, v));
        }
        self.moving[op as usize].0 = parts;
        if parts == 0 {
            self.moved(op, now);
        }
    }

    fn tick(&mut self, class: u32, version: u32, now: Ps) {
        let mut ticks = SmallVec::<[_; 16]>::new();
        let mut done = SmallVec::<[u32; 8]>::new();
        self.engines.tick(class, version, now, &mut |t, c, v| ticks.push((t, c, v)), &mut |op| done.push(op));
        for (t, c, v) in ticks {
            self.at(t, Moment::Tick(c, v));
        }
        for op in done {
            let parts = &mut self.moving[op as usize].0;
            *parts -= 1;
            if *parts == 0 {
                self.moved(op, now);
            }
        }
    }

    /// The last byte of a transfer has left the DMA engines.
    fn moved(&mut self, op: u32, now: Ps) {
        let Some((q, cost)) = self.dma_cost(op) else { return };
        let longest = cost.engines.iter().map(|(_, t)| *t).max().unwrap_or(0);
        let alone = (u128::from(longest) * 1_000_000).div_ceil(u128::from(cost.rate)) as Ps;
        let queue = &mut self.dma[q];
        let transfer = &mut queue.transfers[self.moving[op as usize].1 as usize];
        transfer.payload_end = now + cost.payload;
        transfer.unloaded = (transfer.payload + alone + cost.payload).min(transfer.payload_end);
        transfer.complete = (transfer.payload_end + cost.notify).max(queue.complete);
        queue.complete = transfer.complete;
        let t = *transfer;
        if let Some(event) = &mut self.events[op as usize] {
            event.complete = t.complete;
            event.phases.push(Phase { kind: PhaseKind::Payload, start: t.payload, end: t.unloaded });
            if t.payload_end > t.unloaded {
                event.phases.push(Phase { kind: PhaseKind::Bandwidth, start: t.unloaded, end: t.payload_end });
            }
            event.phases.push(Phase { kind: PhaseKind::Notify, start: t.payload_end, end: t.complete });
        }
        self.at(t.payload_end.max(now), Moment::Place(q as u8, op));
        self.completed(op, t.complete);
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of one event")]
    fn event(
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
            row: RowId(self.row_base + q as u32),
            queue: dma.map(|_| RowId(self.row_base + (ENGINES + q) as u32)),
            start,
            end,
            complete,
            phases,
            bytes: dma.unwrap_or(0),
            released,
            confidence: if dma.is_some() { cost.confidence } else { cost.confidence.max(Confidence::Documented) },
        }
    }

    /// Hands the events over, in program order, and says how operations were renumbered.
    fn finish(&mut self, out: &mut Vec<Event>) -> Renumber {
        let mut of = Vec::with_capacity(self.events.len());
        let mut count = 0;
        for e in &self.events {
            of.push(count);
            count += u32::from(e.is_some());
        }
        let renumber = Renumber { base: self.event_base, of };
        for mut event in std::mem::take(&mut self.events).into_iter().flatten() {
            event.released = renumber.release(event.released);
            out.push(event);
        }
        renumber
    }
}

/// The side of the shared port that an engine queue is.
fn port_side(q: usize) -> Option<usize> {
    match Engine::QUEUES[q] {
        Engine::Vector => Some(0),
        Engine::GpSimd => Some(1),
        _ => None,
    }
}
