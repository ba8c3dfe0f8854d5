//! The engines: each starts one instruction at a time, in the order of its queue.

use std::cmp::Reverse;

use nki_isa::names::Engine;
use smallvec::SmallVec;

use super::core::{Moment, Progress};
use super::{Core, Held, PORTS};
use crate::timeline::{Cause, EventId, PhaseKind, Ps, Release};
use crate::timing::cost::{Cost, CostKind, Ports};
use crate::timing::record::{Observer, Started};

impl<O: Observer> Core<'_, O> {
    /// Plans the start of a queue's next instruction.
    pub(super) fn consider(&mut self, q: usize) {
        if self.queues[q].chosen.is_some() {
            return;
        }
        let more = self.advance(q);
        let earliest = if !self.queues[q].resumed.is_empty() {
            0
        } else if more && let Some(op) = self.following(q) {
            let Progress { pending: 0, ready, .. } = self.progress[op as usize] else { return };
            ready
        } else {
            return;
        };
        let queue = &mut self.queues[q];
        let time = earliest.max(queue.free);
        if queue.planned.is_none_or(|planned| time < planned) {
            queue.planned = Some(time);
            self.at(time, Moment::Start(q as u8));
        }
    }

    /// The next operation of queue `q` in the order.
    fn following(&self, q: usize) -> Option<u32> {
        self.order.queues[q].get(self.queues[q].taken as usize).copied()
    }

    /// The operation that queue `q` starts at `now`, unless it plans a later start.
    fn take(&mut self, q: usize, now: Ps) -> Option<u32> {
        let queue = &mut self.queues[q];
        if let Some(op) = queue.chosen.take() {
            return Some(op);
        }
        if let Some(Reverse(op)) = queue.resumed.pop() {
            return Some(op);
        }
        let op = self.following(q)?;
        let queue = &mut self.queues[q];
        queue.taken += 1;
        // A function table starts to load as soon as the engine is free.
        let free = queue.free;
        if let Some(Cost { kind: CostKind::Compute { table: Some(table), .. }, .. }) = self.cost(op)
            && self.table != Some(*table)
            && free + self.machine.table_load > now
        {
            self.choose(q, op, free + self.machine.table_load);
            return None;
        }
        Some(op)
    }

    /// Takes an operation, unless one has been chosen, and starts it.
    pub(super) fn start(&mut self, q: usize, now: Ps) {
        let queue = &mut self.queues[q];
        if queue.planned != Some(now) {
            return;
        }
        queue.planned = None;
        let Some(op) = self.take(q, now) else { return };
        if self.awaits_others(q, op, now) {
            return;
        }
        let Some(cost) = self.cost(op) else { return };
        let p = self.progress[op as usize];
        let semaphore = match self.last(op) {
            Some(d) if p.ready > self.queues[q].free => {
                Some(Release::Semaphore { from: EventId(d.on), hazard: d.hazard, subject: d.subject() })
            }
            _ => None,
        };
        let released = semaphore.unwrap_or(self.queues[q].release);
        let started = match &cost.kind {
            CostKind::Compute { occupancy, complete, table, ports } => {
                if self.waits_for_port(q, op, now, *occupancy, *ports) {
                    return;
                }
                self.compute(q, op, now, (*occupancy, *complete, *table), released)
            }
            CostKind::Matmul { weights, moving, least, drain, cells, load, stationary: _, fp32: _ } => {
                self.matmul(q, op, now, (*weights, *moving, *least, *drain, *cells, *load), released)
            }
            CostKind::Dma(dma) => {
                let trigger = dma.trigger(q);
                if self.waits_for_port(q, op, now, trigger.occupancy, trigger.ports) {
                    return;
                }
                self.wait(q, op, now);
                let end = now + trigger.occupancy;
                self.observer.busy(q, end, op);
                Started { start: now, end, complete: 0, free: end, released }
            }
            CostKind::Collective { trigger, time } => {
                let complete = (now + trigger).max(self.collectives) + time;
                self.collectives = complete;
                self.wait(q, op, now);
                let end = now + trigger;
                self.observer.busy(q, end, op);
                self.observer.phase(PhaseKind::Execute, now, end);
                self.observer.phase(PhaseKind::Collective, end, complete);
                Started { start: now, end, complete, free: end, released }
            }
            CostKind::Free => Started { start: now, end: now, complete: now, free: now, released },
        };
        self.started(q, op, cost, started);
    }

    fn started(&mut self, q: usize, op: u32, cost: &Cost, mut started: Started) {
        let is_dma = matches!(cost.kind, CostKind::Dma(_));
        let queue = &mut self.queues[q];
        started.start = started.start.min(started.end);
        started.complete = if is_dma { 0 } else { started.complete.max(queue.complete) };
        let complete = started.complete;
        queue.complete = queue.complete.max(complete);
        queue.free = started.free.max(queue.free);
        queue.release = Release::Engine(EventId(op));
        self.observer.started(op, q, cost, started);
        if let CostKind::Dma(dma) = &cost.kind {
            let arrive = started.end + dma.trigger(q).dispatch;
            self.observer.triggered(op, q, arrive);
            self.at(arrive, Moment::Arrive(op));
        } else {
            self.completed(op, complete);
        }
        self.consider(q);
    }

    /// Whether another engine holds a port that `op` needs; if so, plans the start for when all are free.
    fn waits_for_port(&mut self, q: usize, op: u32, now: Ps, occupancy: Ps, used: Ports) -> bool {
        if used == Ports::default() {
            return false;
        }
        let needed: SmallVec<[(usize, usize); 2]> = [used.sbuf, used.psum]
            .into_iter()
            .enumerate()
            .filter(|&(_, used)| used)
            .filter_map(|(port, _)| Some((port, PORTS[port].iter().position(|&e| e == Engine::QUEUES[q])?)))
            .collect();
        let free = |core: &Self, (port, side): (usize, usize)| {
            let Held { from, until, by } = core.ports[port][1 - side];
            if from <= now && now < until { (until, Some(by)) } else { (now, None) }
        };
        let (start, by) = needed.iter().map(|&n| free(self, n)).max_by_key(|f| f.0).unwrap_or((now, None));
        // The engine that waits is the next to get each port, so that none starves.
        for &(port, side) in &needed {
            let from = free(self, (port, side)).0;
            self.ports[port][side] = Held { from, until: start + occupancy, by: op };
        }
        let Some(by) = by else { return false };
        self.wait(q, op, now);
        self.observer.stall(q, start, Cause::Port(EventId(by)));
        let queue = &mut self.queues[q];
        queue.free = start;
        queue.release = Release::Port(EventId(by));
        self.choose(q, op, start);
        true
    }

    /// A pass through a compute engine or a sequencer.
    fn compute(
        &mut self,
        q: usize,
        op: u32,
        now: Ps,
        (occupancy, complete, table): (Ps, Ps, Option<u32>),
        mut released: Release,
    ) -> Started {
        if table.is_some() && self.table != table {
            let queue = &self.queues[q];
            let from = queue.free.min(now);
            let until = from + self.machine.table_load;
            self.observer.phase(PhaseKind::TableLoad, from, until);
            if until >= self.progress[op as usize].ready {
                released = queue.release;
            }
            self.observer.stall(q, until.min(now), Cause::TableLoad);
            self.table = table;
        }
        self.wait(q, op, now);
        let (end, complete) = (now + occupancy, now + complete);
        self.observer.busy(q, end, op);
        self.observer.phase(PhaseKind::Execute, now, end);
        self.observer.phase(PhaseKind::Drain, end, complete);
        Started { start: now, end, complete, free: end, released }
    }

    /// Chooses `op` to start at `time`.
    pub(super) fn choose(&mut self, q: usize, op: u32, time: Ps) {
        let queue = &mut self.queues[q];
        queue.chosen = Some(op);
        queue.planned = Some(time);
        self.at(time, Moment::Start(q as u8));
    }

    /// Attributes the time between an engine's last span and `now` to a cause.
    pub(super) fn wait(&mut self, q: usize, op: u32, now: Ps) {
        let cause = match (self.last(op), self.queues[q].release) {
            (Some(d), _) => Cause::Semaphore { from: EventId(d.on), hazard: d.hazard, subject: d.subject() },
            (None, Release::Port(e)) => Cause::Port(e),
            (None, Release::Barrier(_)) => Cause::Barrier,
            _ => Cause::StartUp,
        };
        self.observer.stall(q, now, cause);
    }
}
