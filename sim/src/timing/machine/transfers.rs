//! The DMA queues: payloads that share the DMA engines, in-order completion.

use smallvec::SmallVec;

use super::Core;
use super::core::Moment;
use crate::timeline::Ps;
use crate::timing::cost::DmaCost;
use crate::timing::fixed::Millionths;
use crate::timing::record::Observer;

impl<'a, O: Observer> Core<'a, O> {
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
        let end = now + cost.payload;
        let complete = (end + cost.notify).max(self.transferred[q]);
        self.transferred[q] = complete;
        self.observer.moved(op, q, cost, end, complete);
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
