//! The order of activations with respect to function tables.
//!
//! Loading another table takes longer than most instructions. The scheduler does not interleave functions that the program separates: with a
//! pass of exponentials and one of sigmoids, each sigmoid would overtake the exponentials whose data is in flight. No
//! measured kernel shows such an order. Without this rule, 32 tiles of both take twice as long as in program order.

use std::cmp::Reverse;

use super::{Queue, Scheduler};
use crate::timing::cost::CostKind;

impl Scheduler<'_> {
    /// The function table that a computation needs.
    fn table(&self, op: u32) -> Option<u32> {
        match self.low.planned(op).map(|c| &c.kind) {
            Some(CostKind::Compute { table, .. }) => *table,
            _ => None,
        }
    }

    /// Whether a computation would load another table and overtake one that needs the current table and could start before both tables have been
    /// loaded again.
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

    /// The first computation in the window that does not cost a table load.
    pub(super) fn without_table(&self, q: usize) -> Option<u32> {
        let computation = &self.queues[q].computation;
        let allowed = |op: &u32| !self.taken[*op as usize] && !self.costs_a_table(q, *op);
        let flowing = computation.flowing.iter().map(|Reverse(op)| *op).filter(allowed).min();
        let later = || computation.future.iter().map(|Reverse(later)| *later).filter(|(_, op)| allowed(op)).min();
        flowing.or_else(|| later().map(|(_, op)| op))
    }
}
