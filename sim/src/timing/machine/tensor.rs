//! The tensor engine: its cells, their weights, and the power limiter.

use smallvec::SmallVec;

use super::Core;
use crate::timeline::{Cause, Hazard, PhaseKind, Ps, Release, Subject};
use crate::timing::cost::{Cost, CostKind};
use crate::timing::fixed::Thousandths;
use crate::timing::record::{Observer, Started};

/// Maximum number of cells: a cost has one bit per cell.
const CELLS: usize = u16::BITS as usize;

/// Cells of the array: the time until which each is busy, and the operation that loaded its weights.
#[derive(Debug, Default)]
pub(super) struct Array {
    free: [Ps; CELLS],
    weights: [Option<u32>; CELLS],
}

impl<O: Observer> Core<'_, O> {
    /// Weights (unless already loaded) and columns. The weights load while the previous matmul still runs.
    pub(super) fn matmul(
        &mut self,
        q: usize,
        op: u32,
        now: Ps,
        (weights, moving, least, drain, cells, load): (Ps, Ps, Ps, Ps, u16, Thousandths),
        mut released: Release,
    ) -> Started {
        let used: SmallVec<[usize; CELLS]> = (0..CELLS).filter(|i| cells >> i & 1 == 1).collect();
        let busy_until = used.iter().map(|i| self.array.free[*i]).max().unwrap_or(0);
        let loaded = self.has_weights(op, &used);
        let rate = self.limiter.rate(now.max(busy_until));
        let weights = if loaded { 0 } else { weights };
        let ready = now + weights;
        let begin = ready.max(busy_until);
        let end = begin + rate.stretched(moving).max(least);
        for i in 0..CELLS {
            if cells >> i & 1 == 1 {
                self.array.free[i] = end;
                self.array.weights[i] = Some(op);
            } else if !loaded
                && self.array.weights[i].is_some_and(|o| used.iter().any(|u| self.array.weights[*u] == Some(o)))
            {
                self.array.weights[i] = None;
            }
        }
        self.limiter.used(begin, end, moving, load);
        if busy_until > ready
            && let Release::Engine(_) = self.queues[q].release
        {
            released = self.queues[q].release;
        }
        let start = if begin == ready { now.max(busy_until) } else { begin };
        self.wait(q, op, start);
        if weights > 0 {
            self.observer.phase(PhaseKind::Weights, now, ready);
        }
        // The visible time ends with the limiter's share.
        let full = begin + moving.max(least);
        self.observer.busy(q, full, op);
        self.observer.stall(q, end, Cause::Limiter);
        self.observer.phase(PhaseKind::Execute, begin, full);
        if end > full {
            self.observer.phase(PhaseKind::Limiter, full, end);
        }
        self.observer.phase(PhaseKind::Drain, end, end + drain);
        // The next one may use other cells, but is issued after this one.
        let free = begin.max(now + self.machine.matmul_issue);
        Started { start, end, complete: end + drain, free, released }
    }

    /// Whether the cells hold the weights of `op`: same view, loaded by the last matmul there, and not overwritten since.
    fn has_weights(&self, op: u32, cells: &[usize]) -> bool {
        let Some(before) = cells.first().and_then(|c| self.array.weights[*c]) else { return false };
        if !cells.iter().all(|c| self.array.weights[*c] == Some(before)) {
            return false;
        }
        let stationary = |op: u32| match self.cost(op) {
            Some(Cost { kind: CostKind::Matmul { stationary: Some(view), cells, .. }, .. }) => Some((view, *cells)),
            _ => None,
        };
        let (Some(a), Some(b)) = (stationary(before), stationary(op)) else { return false };
        // Both read the results of the same instructions.
        let made_by = |op: u32| {
            let deps = self.low.graph.deps.of(op as usize).iter();
            deps.filter(|d| d.hazard == Hazard::Raw && d.subject() == Subject::Tensor(a.0.tensor)).map(|d| d.on)
        };
        a == b && made_by(before).eq(made_by(op))
    }
}
