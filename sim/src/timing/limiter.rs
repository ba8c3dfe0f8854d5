//! The tensor engine's power limiter: the work of one period selects one of two rates for the next.
//!
//! Source: the limiter's track in eight public trn2 profiles (24 transitions, no exception).

use std::collections::VecDeque;

use super::cost::Limiter;
use super::fixed::{Millionths, Thousandths};
use crate::timeline::Ps;

/// State of the limiter.
#[derive(Debug)]
pub(crate) struct State {
    law: Limiter,
    /// Whether the engine has its full rate.
    released: bool,
    /// The number of the period of the first entry of `work`.
    period: Ps,
    /// By period, starting with `period`: work as time at the full rate with all rows, times [`Thousandths::FULL`].
    work: VecDeque<u64>,
}

impl State {
    pub(crate) fn new(law: Limiter) -> Self {
        State { law, released: false, period: 0, work: VecDeque::new() }
    }

    fn off(&self) -> bool {
        self.law.rate >= Millionths::FULL
    }

    /// The rate for a matmul that starts at `now`. Calls must be in ascending order of `now`.
    pub(crate) fn rate(&mut self, now: Ps) -> Millionths {
        if self.off() {
            return Millionths::FULL;
        }
        let period = now / self.law.period;
        while self.period < period {
            let Some(work) = self.work.pop_front() else {
                // Nothing was executed since.
                self.period = period;
                self.released = false;
                break;
            };
            let limit = if self.released { self.law.engage } else { self.law.release };
            self.released = work >= limit.parts() * self.law.period;
            self.period += 1;
        }
        if self.released { Millionths::FULL } else { self.law.rate }
    }

    /// Records work from `start` to `end` that takes `full` at the full rate and uses `load` of the rows. `start` must not be earlier than the last
    /// call of [`Self::rate`].
    pub(crate) fn used(&mut self, start: Ps, end: Ps, full: Ps, load: Thousandths) {
        if self.off() || end <= start {
            return;
        }
        let mut at = start;
        while at < end {
            let period = at / self.law.period;
            let until = ((period + 1) * self.law.period).min(end);
            let slot = (period - self.period) as usize;
            if self.work.len() <= slot {
                self.work.resize(slot + 1, 0);
            }
            let share = u128::from(full) * u128::from(until - at) / u128::from(end - start);
            self.work[slot] += share as u64 * load.parts();
            at = until;
        }
    }
}
