//! The engine queues: in order, one instruction at a time.

use nki_isa::names::Engine;
use smallvec::SmallVec;

use super::core::{Core, Moment};
use crate::timeline::{Cause, EventId, Phase, PhaseKind, Ps, Release, State};
use crate::timing::cost::{Cost, CostKind};
use crate::timing::lower::OpKind;

impl Core<'_> {
    /// Looks at the head of a queue: passes open barriers, and plans the start of an instruction that waits for nothing unknown.
    pub(super) fn consider(&mut self, q: usize) {
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

    /// The head of queue `q` starts.
    pub(super) fn start(&mut self, q: usize, now: Ps) {
        self.queues[q].scheduled = false;
        let op = self.queues[q].ops[self.queues[q].at];
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
