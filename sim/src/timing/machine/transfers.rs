//! The DMA queues: issue one at a time, payloads that share the DMA engines, completion in order.

use smallvec::SmallVec;

use super::Core;
use super::core::Moment;
use crate::timeline::Ps;
use crate::timing::cost::DmaCost;
use crate::timing::dispatch::Dispatch;
use crate::timing::fixed::Millionths;
use crate::timing::record::{Issue, Observer};

impl<'a, D: Dispatch, O: Observer> Core<'a, D, O> {
    /// The queue takes the transfers that wait for it, as long as it may have more under way.
    pub(super) fn issue(&mut self, q: usize, now: Ps) {
        while self.dma[q].under_way < self.machine.queue_depth
            && let Some((op, issue, before)) = self.dma[q].waiting.pop_front()
        {
            let Some((_, cost)) = self.dma_cost(op) else { continue };
            let queue = &mut self.dma[q];
            queue.under_way += 1;
            let behind = queue.behind.filter(|_| queue.free > now);
            let start = now.max(queue.free);
            let end = start + issue;
            let arrive = end + cost.dispatch;
            queue.free = end;
            queue.behind = Some(op);
            self.observer.issued(op, q, Issue { now, start, end, arrive, behind, freed: queue.freed, before });
            self.at(arrive, Moment::Arrive(op));
        }
    }

    fn dma_cost(&self, op: u32) -> Option<(usize, &'a DmaCost)> {
        self.low.dma(op)
    }

    pub(super) fn arrive(&mut self, op: u32, now: Ps) {
        let Some((q, cost)) = self.dma_cost(op) else { return };
        let mut ticks = SmallVec::<[_; 16]>::new();
        let parts = self.engines.add(op, q, cost, now, &mut |t, c, v| ticks.push((t, c, v)));
        for (t, c, v) in ticks {
            self.at(t, Moment::Tick(c, v));
        }
        self.moving[op as usize] = parts;
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
            let parts = &mut self.moving[op as usize];
            *parts -= 1;
            if *parts == 0 {
                self.moved(op, now);
            }
        }
    }

    /// The last byte of a transfer has left the DMA engines.
    fn moved(&mut self, op: u32, now: Ps) {
        let Some((q, cost)) = self.dma_cost(op) else { return };
        let queue = &mut self.dma[q];
        let end = now + cost.payload;
        let complete = (end + cost.notify).max(queue.complete);
        queue.complete = complete;
        self.observer.moved(op, q, cost, end, complete);
        self.dispatch.transferred(op, complete);
        self.at(end, Moment::Place(q as u8, op));
        self.completed(op, complete);
    }

    /// The DMA engines move at `scale` of their rate from now on.
    pub(super) fn rescale(&mut self, scale: Millionths, now: Ps) {
        let mut ticks = Vec::new();
        self.engines.rescale(scale, now, &mut |t, c, v| ticks.push((t, c, v)));
        for (t, c, v) in ticks {
            self.at(t, Moment::Tick(c, v));
        }
    }
}
