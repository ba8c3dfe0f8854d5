//! The order of activations by their function tables.
//!
//! An engine that needs another table loads it, which takes longer than most instructions. The scheduler does not interleave functions that the
//! program keeps apart: of a pass of exponentials and one of sigmoids, each sigmoid would overtake the exponentials whose data is on the way. No
//! measured kernel shows such an order. Without the rule, 32 tiles of both take twice as long as in program order.

use std::cmp::Reverse;

use super::{Queue, Scheduler};
use crate::timing::cost::CostKind;

impl Scheduler<'_> {
    /// The function table that computation needs.
    fn table(&self, op: u32) -> Option<u32> {
        match self.low.planned(op).map(|c| &c.kind) {
            Some(CostKind::Compute { table, .. }) => *table,
            _ => None,
        }
    }

    /// Whether computation would load another table and overtake some that needs the present one, and that can start before that table and the
    /// present one again are loaded.
    pub(super) fn costs_a_table(&self, q: usize, op: u32) -> bool {
        let Queue { computation, table, free, .. } = &self.queues[q];
        let needed = self.table(op);
        if table.is_none() || needed.is_none() || needed == *table {
            return false;
        }
        let soon = free + 2 * self.machine.table_load;
        let before = computation.ops[computation.first..].iter().take_while(|before| **before < op);
        before.map(|before| *before as usize).any(|before| {
            let waits = !self.taken[before] && self.pending[before] == 0 && self.ready[before].at <= soon;
            waits && self.table(before as u32) == *table
        })
    }

    /// The first computation in the window that costs no table.
    pub(super) fn without_table(&self, q: usize) -> Option<u32> {
        let computation = &self.queues[q].computation;
        let allowed = |op: &u32| !self.taken[*op as usize] && !self.costs_a_table(q, *op);
        let flowing = computation.flowing.iter().map(|Reverse(op)| *op).filter(allowed).min();
        let later = || computation.future.iter().map(|Reverse(later)| *later).filter(|(_, op)| allowed(op)).min();
        flowing.or_else(|| later().map(|(_, op)| op))
    }
}
