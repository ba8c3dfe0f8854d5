//! The tensor engine: cells of 32x32, the weights that they hold, and the power limiter.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::core::Core;
use crate::deps::Dep;
use crate::timeline::{Cause, EventId, Hazard, Phase, PhaseKind, Ps, Release, State, Subject};
use crate::timing::cost::{Cost, CostKind};
use crate::timing::limiter::slowed;

/// Cells of the array: who computes there last, and whose weights are loaded.
#[derive(Debug, Default)]
pub(super) struct Array {
    pub(super) free: [Ps; 16],
    pub(super) weights: [Option<u32>; 16],
    /// When matmuls waited for a transfer first, the last few times, and for how long it needed the busiest DMA engine.
    pub(super) waits: VecDeque<(Ps, Ps)>,
    /// For how long a transfer that came late held up the last matmul.
    pub(super) late: Ps,
}

/// Transfers that an instruction is the first of its engine to wait for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waited {
    /// How many.
    pub(super) count: u32,
    /// The one that completed last.
    pub(super) last: Dep,
    /// When it did.
    pub(super) there: Ps,
    /// How long they need the busiest DMA engine.
    pub(super) engines: Ps,
}

/// Over how many waits the time between them is averaged: more than a block of operands has.
const WAITS: usize = 64;

impl Core<'_> {
    /// Weights (unless they are there already) and columns. The weights load while the previous matmul still runs.
    #[allow(clippy::type_complexity, reason = "the parts of one cost")]
    pub(super) fn matmul(
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
        let late = self.lateness(q, op, now, busy_until);
        let ready = now + slowed(weights, rate);
        let in_time = ready.max(busy_until);
        let begin = in_time.max(busy_until + late.map_or(0, |l| l.0));
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
        self.array.late = begin - in_time;
        let start = if begin == ready { now.max(busy_until) } else { begin };
        if let Some((_, dep)) = late.filter(|_| begin > in_time) {
            self.wait_lane(q, op, now.max(busy_until), None);
            let cause = Cause::Semaphore { from: EventId(dep.on), hazard: dep.hazard, subject: dep.subject };
            self.queues[q].lane.stall(start, cause);
        }
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

    /// How late the transfers come, on average, that `op` is the first to wait for, and one of them.
    ///
    /// The compiler starts a transfer when it takes it to be just in time. Whether the queue then issues another one is as good as chance: it
    /// does for the share of time that issuing takes, and then for half an issue on average. Where the DMA engines have no time to spare, or the
    /// transfer can only just be there by `needed`, it starts as soon as it can, and what delays it is simulated.
    fn lateness(&mut self, q: usize, op: u32, now: Ps, needed: Ps) -> Option<(Ps, Dep)> {
        let Waited { count, last, there, engines } = self.first_waits(q, op)?;
        let waits = &mut self.array.waits;
        let n = waits.len() as f64;
        let between = waits.front().map_or(0, |w| now.saturating_sub(w.0)) as f64;
        let moving: Ps = waits.iter().map(|w| w.1).sum();
        waits.extend(std::iter::repeat_n((now, engines / Ps::from(count)), count as usize));
        waits.drain(..waits.len().saturating_sub(WAITS));
        let issue = self.machine.collision as f64;
        if between <= 0.0 || issue <= 0.0 {
            return None;
        }
        // The latest of `count` that are each late with this probability, by up to an issue.
        let chance = (issue * n / between).min(1.0);
        let sure = f64::from(count) + 1.0;
        let late = issue * (1.0 - (1.0 - (1.0 - chance).powi(count as i32 + 1)) / (chance * sure));
        let spare = f64::from(count) * (between - moving as f64) / n;
        let late = late.min(spare).max(0.0) as Ps;
        Some((late.min(needed.saturating_sub(there)), last))
    }

    /// Whether the cells hold the weights that `op` wants: same view, loaded by the last matmul there, and not written since.
    pub(super) fn has_weights(&self, op: u32, cells: &[usize]) -> bool {
        let Some(before) = cells.first().and_then(|c| self.array.weights[*c]) else { return false };
        if !cells.iter().all(|c| self.array.weights[*c] == Some(before)) {
            return false;
        }
        let stationary = |op: u32| match self.cost(op) {
            Some(Cost { kind: CostKind::Matmul { stationary: Some(view), cells, .. }, .. }) => Some((view, *cells)),
            _ => None,
        };
        let (Some(a), Some(b)) = (stationary(before), stationary(op)) else { return false };
        // Both read what the same instructions wrote.
        let made_by = |op: u32| {
            let deps = self.low.deps.of(op as usize).iter();
            deps.filter(|d| d.hazard == Hazard::Raw && d.subject == Subject::Tensor(a.0.tensor)).map(|d| d.on)
        };
        a == b && made_by(before).eq(made_by(op))
    }
}
