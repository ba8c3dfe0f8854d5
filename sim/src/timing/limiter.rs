//! The tensor engine's power limiter: a low rate when cold, a ramp with activity, and a fall back to the low rate when the engine is little used.

use std::collections::VecDeque;

use super::cost::Limiter;
use crate::timeline::Ps;

/// Full rate in millionths.
const FULL: u64 = 1_000_000;

/// State of the limiter.
#[derive(Debug)]
pub(crate) struct State {
    law: Limiter,
    /// Active time since it engaged.
    warm: Ps,
    engaged: Option<Ps>,
    /// Busy intervals of the last window with their use in thousandths.
    recent: VecDeque<(Ps, Ps, u64)>,
}

impl State {
    pub(crate) fn new(law: Limiter) -> Self {
        State { law, warm: 0, engaged: None, recent: VecDeque::new() }
    }

    fn off(&self) -> bool {
        self.law.rate >= FULL
    }

    /// The rate in millionths for a matmul that starts at `now`.
    pub(crate) fn rate(&mut self, now: Ps) -> u64 {
        if self.off() {
            return FULL;
        }
        let from = now.saturating_sub(self.law.window);
        while self.recent.front().is_some_and(|r| r.1 <= from) {
            self.recent.pop_front();
        }
        match self.engaged {
            None => self.engaged = Some(now),
            Some(at) if now >= at + self.law.window => {
                let used: u64 =
                    self.recent.iter().map(|&(a, b, load)| (b.min(now) - a.max(from).min(b.min(now))) * load).sum();
                if used < self.law.threshold * self.law.window {
                    self.warm = 0;
                    self.engaged = Some(now);
                }
            }
            Some(_) => {}
        }
        let ramp = self.law.ramp.max(1);
        self.law.rate + (FULL - self.law.rate) * self.warm.min(ramp) / ramp
    }

    /// The engine was busy, using `load` thousandths of its rows.
    pub(crate) fn used(&mut self, start: Ps, end: Ps, load: u32) {
        if self.off() {
            return;
        }
        if u64::from(load) > self.law.threshold {
            self.warm += end - start;
        }
        self.recent.push_back((start, end, u64::from(load)));
    }
}

/// `time` at `rate` millionths of full speed.
pub(crate) fn slowed(time: Ps, rate: u64) -> Ps {
    if rate >= FULL { time } else { (u128::from(time) * u128::from(FULL)).div_ceil(u128::from(rate)) as Ps }
}
