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
    /// Transfers that matmuls waited for first, the last few.
    pub(super) waits: VecDeque<Wait>,
    /// For how long a transfer that came late held up the last matmul.
    pub(super) late: Ps,
}

/// A transfer that a matmul was the first to wait for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    at: Ps,
    /// For how long it occupies the busiest DMA engine.
    engines: Ps,
    /// How long it takes to issue it.
    issue: Ps,
    /// For how long it held the matmul up because it came late.
    late: Ps,
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
    /// For how long they occupy the busiest DMA engine.
    pub(super) engines: Ps,
    /// How long it takes to issue them.
    pub(super) issue: Ps,
    /// How late they would be, together, if the transfers into each tensor started when the first of them is needed.
    pub(super) exposed: Ps,
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
        let late = self.lateness(q, op, now, busy_until, moving);
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
    /// The compiler starts a transfer just in time, and its queue is then busy with issuing another one for the share of time that issuing takes.
    /// Of those that meet another one, a fixed share starts only when the engine already waits: the engine sees all of the transfer, and its
    /// power limiter engages again. Further ones into the same tensor are issued right behind the first, faster than one for each matmul,
    /// which takes `moving`: so they are less late. Where DMA engines or queue have no time to spare, or the transfer can only just be
    /// there by `needed`, it starts as soon as it can, and what delays it is simulated.
    fn lateness(&mut self, q: usize, op: u32, now: Ps, needed: Ps, moving: Ps) -> Option<(Ps, Dep)> {
        let share = self.machine.late_share;
        if share <= 0.0 {
            return None;
        }
        let Waited { count, last, there, engines, issue, exposed } = self.first_waits(q, op, moving)?;
        let waits = &mut self.array.waits;
        let sum = |part: fn(&Wait) -> Ps| waits.iter().map(part).sum::<Ps>() as f64;
        let (issued, moved, held) = (sum(|w| w.issue), sum(|w| w.engines), sum(|w| w.late));
        // The time that the engine would have taken if all had come in time.
        let time = waits.front().map_or(0, |w| now.saturating_sub(w.at)) as f64 - held;
        let mut late = 0;
        if time > 0.0 {
            let meets = (issued / time).min(1.0);
            let spare = f64::from(count) * (time - issued.max(moved)) / waits.len() as f64;
            late = (share * meets * exposed as f64).min(spare).max(0.0) as Ps;
            late = late.min(needed.saturating_sub(there));
        }
        let each = Ps::from(count);
        let wait = Wait { at: now, engines: engines / each, issue: issue / each, late: late / each };
        waits.extend(std::iter::repeat_n(wait, count as usize));
        waits.drain(..waits.len().saturating_sub(WAITS));
        Some((late, last))
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
