//! The DMA queues: issue one at a time, payloads that share the DMA engines, completion in order.

use smallvec::SmallVec;

use super::core::{Core, Moment};
use crate::timeline::{EventId, Phase, PhaseKind, Ps, Release, Transfer};
use crate::timing::cost::{Cost, CostKind, DmaCost};
use crate::timing::lower::OpKind;

impl<'a> Core<'a> {
    /// The queue takes the transfers that wait for it, as long as it may have more under way.
    pub(super) fn issue(&mut self, q: usize, now: Ps) {
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

    pub(super) fn dma_cost(&self, op: u32) -> Option<(usize, &'a DmaCost)> {
        let OpKind::Inst { queue } = self.low.ops[op as usize].kind else { return None };
        match self.cost(op) {
            Some(Cost { kind: CostKind::Dma(d), .. }) => Some((queue as usize, d)),
            _ => None,
        }
    }

    pub(super) fn arrive(&mut self, op: u32, now: Ps) {
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

    pub(super) fn tick(&mut self, class: u32, version: u32, now: Ps) {
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
    pub(super) fn moved(&mut self, op: u32, now: Ps) {
        let Some((q, cost)) = self.dma_cost(op) else { return };
        let alone = (u128::from(cost.longest()) * 1_000_000).div_ceil(u128::from(cost.rate)) as Ps;
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
}
