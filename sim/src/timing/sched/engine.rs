//! The engine queues: one instruction at a time, in the order that the compiler chose.
//!
//! The compiler schedules: of the next instructions of an engine (a window of the program) it starts first what can start first, and of several
//! that can, the most urgent. It knows how long everything takes. With a window of one instruction the engine runs in program order.

use std::cmp::Reverse;

use nki_isa::names::Engine;
use smallvec::SmallVec;

use super::array::Waited;
use super::core::{Core, Moment};
use crate::deps::Dep;
use crate::timeline::{Cause, EventId, Hazard, Phase, PhaseKind, Ps, Release, State};
use crate::timing::cost::{Cost, CostKind};
use crate::timing::lower::OpKind;

impl Core<'_> {
    /// `op` waits for nothing unknown any more.
    pub(super) fn park(&mut self, op: u32) {
        if let OpKind::Inst { queue } = self.low.ops[op as usize].kind {
            self.queues[queue as usize].parked.push(Reverse(op));
        }
    }

    /// Passes what has started and open barriers; says up to which operation the queue may look.
    fn advance(&mut self, q: usize) -> Option<u32> {
        let queue = &mut self.queues[q];
        loop {
            let op = *queue.ops.get(queue.at)?;
            match self.low.ops[op as usize].kind {
                OpKind::Inst { .. } if self.events[op as usize].is_some() || self.attendance.is_left(op) => {
                    queue.at += 1
                }
                OpKind::Inst { .. } => {
                    let segment = self.segment_of[op as usize] + 1;
                    let barrier = self.segment_of.partition_point(|s| *s < segment) as u32;
                    return Some(barrier.min(op.saturating_add(self.machine.window)));
                }
                OpKind::Barrier(_) => {
                    let segment = self.segments[self.segment_of[op as usize] as usize];
                    let open = segment.open?;
                    queue.lane.stall(open, Cause::Barrier);
                    queue.free = queue.free.max(open);
                    queue.release = Release::Barrier(segment.last.map(EventId));
                    queue.at += 1;
                }
            }
        }
    }

    /// Looks at a queue: plans when to choose the next instruction.
    pub(super) fn consider(&mut self, q: usize) {
        if self.queues[q].chosen.is_some() {
            return;
        }
        let limit = self.advance(q);
        let (progress, urgency, attendance) = (&self.progress, &self.urgency, &self.attendance);
        let queue = &mut self.queues[q];
        let first = queue.ops.get(queue.at).copied();
        // Cores meet in program order, or each could wait for the other at a different meeting.
        while let Some(&Reverse(op)) = queue.parked.peek()
            && limit.is_some_and(|limit| op < limit)
            && (first == Some(op) || !attendance.is_meeting(op))
        {
            queue.parked.pop();
            queue.future.push(Reverse((progress[op as usize].ready, urgency[op as usize], op)));
        }
        let earliest = match (queue.ready.is_empty(), queue.future.peek()) {
            (false, _) => 0,
            (true, Some(Reverse((ready, ..)))) => *ready,
            (true, None) => return,
        };
        let time = earliest.max(queue.free);
        if queue.planned.is_none_or(|planned| time < planned) {
            queue.planned = Some(time);
            self.at(time, Moment::Start(q as u8));
        }
    }

    /// The engine chooses, if it has not, and starts what it chose.
    pub(super) fn start(&mut self, q: usize, now: Ps) {
        let queue = &mut self.queues[q];
        if queue.planned != Some(now) {
            return;
        }
        queue.planned = None;
        let op = match queue.chosen.take() {
            Some(op) => op,
            None => {
                while let Some(&Reverse((ready, urgency, op))) = queue.future.peek()
                    && ready <= now
                {
                    queue.future.pop();
                    queue.ready.push(Reverse((urgency, op)));
                }
                let Some(Reverse((_, op))) = queue.ready.pop() else { return };
                // A function table loads as soon as the engine is free.
                let free = queue.free;
                if let Some(Cost { kind: CostKind::Compute { table: Some(table), .. }, .. }) = self.cost(op)
                    && self.table != Some(*table)
                    && free + self.machine.table_load > now
                {
                    return self.choose(q, op, free + self.machine.table_load);
                }
                op
            }
        };
        if self.must_meet(q, op, now) {
            return;
        }
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
                        return self.choose(q, op, until);
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
        let mut event = self.event(op, q, cost, start, end, complete, phases, release);
        if matches!(cost.kind, CostKind::Matmul { .. }) {
            event.held = self.array.late;
        }
        self.events[op as usize] = Some(event);
        if matches!(cost.kind, CostKind::Dma(_)) {
            self.issue(q, now);
        } else {
            self.completed(op, complete);
        }
        self.consider(q);
    }

    /// The transfers that `op`, which takes `time`, is the first instruction of its engine to wait for, if the compiler chose when they start:
    /// into a tensor that was read before, a transfer starts when the program lets it.
    pub(super) fn first_waits(&mut self, q: usize, op: u32, time: Ps) -> Option<Waited> {
        let mut found: Option<Waited> = None;
        for dep in self.low.deps.of(op as usize) {
            let Some((queue, cost)) = self.dma_cost(dep.on) else { continue };
            let met = &mut self.met[dep.on as usize];
            if dep.hazard != Hazard::Raw || *met >> q & 1 == 1 {
                continue;
            }
            *met |= 1 << q;
            let reused = |d: &Dep| d.hazard == Hazard::War && d.subject == dep.subject;
            if self.low.deps.of(dep.on as usize).iter().any(reused) {
                continue;
            }
            let complete = self.events[dep.on as usize].as_ref().map_or(0, |e| e.complete);
            let issue = if Engine::QUEUES[queue] == Engine::GpSimd { cost.software.1 } else { cost.hardware.1 };
            let before = self.arrived.entry(dep.subject).or_default();
            let gained = Ps::from(*before) * time.saturating_sub(issue);
            *before += 1;
            let mut waited =
                found.unwrap_or(Waited { count: 0, last: *dep, there: 0, engines: 0, issue: 0, exposed: 0 });
            waited.count += 1;
            waited.engines += cost.longest();
            waited.issue += issue;
            waited.exposed += (cost.alone(issue) + self.machine.limiter.cold_start()).saturating_sub(gained);
            if complete >= waited.there {
                waited.last = *dep;
                waited.there = complete;
            }
            found = Some(waited);
        }
        found
    }

    /// `op` is next, and starts at `time`.
    pub(super) fn choose(&mut self, q: usize, op: u32, time: Ps) {
        let queue = &mut self.queues[q];
        queue.chosen = Some(op);
        queue.planned = Some(time);
        self.at(time, Moment::Start(q as u8));
    }

    /// Accounts for the time between the last span of an engine's row and `now`.
    pub(super) fn wait_lane(&mut self, q: usize, op: u32, now: Ps, table_until: Option<Ps>) {
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
}

/// The side of the shared port that an engine queue is.
fn port_side(q: usize) -> Option<usize> {
    match Engine::QUEUES[q] {
        Engine::Vector => Some(0),
        Engine::GpSimd => Some(1),
        _ => None,
    }
}
