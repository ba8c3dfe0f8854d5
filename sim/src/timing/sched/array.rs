//! The tensor engine: cells of 32x32, the weights that they hold, and the power limiter.

use smallvec::SmallVec;

use super::core::Core;
use crate::timeline::{Cause, EventId, Hazard, Phase, PhaseKind, Ps, Release, State, Subject};
use crate::timing::cost::{Cost, CostKind};
use crate::timing::limiter::slowed;

/// Cells of the array: who computes there last, and whose weights are loaded.
#[derive(Debug, Default)]
pub(super) struct Array {
    pub(super) free: [Ps; 16],
    pub(super) weights: [Option<u32>; 16],
}

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
        // The engine cannot work ahead past a wait for a transfer.
        let waits = self.first_waits(q, op) * self.machine.dma_wait;
        let ready = now + slowed(weights, rate);
        let begin = ready.max(busy_until);
        let end = begin + slowed(moving, rate) + waits;
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
        let start = if ready > busy_until { now.max(busy_until.min(ready)) } else { begin };
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
