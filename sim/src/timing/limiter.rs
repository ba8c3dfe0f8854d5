//! The tensor engine's power limiter: a low rate when cold, a ramp with activity, and a fall back to the low rate when the engine is little used.

use std::collections::VecDeque;

use super::cost::Limiter;
use super::fixed::{Millionths, Thousandths};
use crate::timeline::Ps;

/// State of the limiter.
#[derive(Debug)]
pub(crate) struct State {
    law: Limiter,
    /// Active time since it engaged.
    warm: Ps,
    engaged: Option<Ps>,
    /// Busy intervals of the last window with their use of the rows.
    recent: VecDeque<(Ps, Ps, Thousandths)>,
}

impl State {
    pub(crate) fn new(law: Limiter) -> Self {
        State { law, warm: 0, engaged: None, recent: VecDeque::new() }
    }

    fn off(&self) -> bool {
        self.law.rate >= Millionths::FULL
    }

    /// The rate for a matmul that starts at `now`.
    pub(crate) fn rate(&mut self, now: Ps) -> Millionths {
        if self.off() {
            return Millionths::FULL;
        }
        let from = now.saturating_sub(self.law.window);
        while self.recent.front().is_some_and(|r| r.1 <= from) {
            self.recent.pop_front();
        }
        match self.engaged {
            None => self.engaged = Some(now),
            Some(at) if now >= at + self.law.window => {
                let used: u64 = self
                    .recent
                    .iter()
                    .map(|&(a, b, load)| (b.min(now) - a.max(from).min(b.min(now))) * load.parts())
                    .sum();
                if used < self.law.threshold.parts() * self.law.window {
                    self.warm = 0;
                    self.engaged = Some(now);
                }
            }
            Some(_) => {}
        }
        let ramp = self.law.ramp.max(1);
        let low = self.law.rate.parts();
        Millionths::from_parts(low + (Millionths::FULL.parts() - low) * self.warm.min(ramp) / ramp)
    }

    /// The engine was busy, using `load` of its rows.
    pub(crate) fn used(&mut self, start: Ps, end: Ps, load: Thousandths) {
        if self.off() {
            return;
        }
        if load > self.law.threshold {
            self.warm += end - start;
        }
        self.recent.push_back((start, end, load));
    }
}
