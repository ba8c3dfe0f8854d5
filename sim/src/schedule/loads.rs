//! The trigger order of a queue's transfers.

use crate::deps::Hazard;
use crate::timing::cost::{CostKind, Direction};
use crate::timing::lower::Lowered;

/// The class of an operation within its queue. Each class has its own order; the scheduler merges them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A transfer from HBM, or inside SBUF: on-chip operations depend on it.
    Load,
    /// A transfer to HBM.
    Store,
    /// Anything else.
    Compute,
}

pub(super) fn class(low: &Lowered<'_>, op: u32) -> Class {
    match low.planned(op).map(|c| &c.kind) {
        Some(CostKind::Dma(dma)) if dma.direction == Direction::Store => Class::Store,
        Some(CostKind::Dma(_)) => Class::Load,
        _ => Class::Compute,
    }
}

/// By operation: the place of a load in the order of loads. It is the first operation that depends on the load, at most `window` operations after it:
/// usually the first reader of its data. A load that nothing reads before it is overwritten stays in program order. Loads with the same place are in
/// program order.
///
/// An operation that only overwrites the load's source counts, too: a store that waits for a load with a later place could hold the space for
/// which a load between them waits. A load never precedes another transfer that it depends on. An exchange between cores does not follow a later
/// rendezvous: the cores perform them in the same order.
pub(super) fn places(low: &Lowered<'_>, window: u32) -> Vec<u32> {
    let n = low.ops.len();
    let loads: Vec<bool> = (0..n as u32).map(|op| class(low, op) == Class::Load).collect();
    // Initially the first reader, finally its place.
    let mut place = vec![u32::MAX; n];
    let mut rendezvous = low.rendezvous.iter().rev().map(|r| r.op).peekable();
    // The place of the next rendezvous.
    let mut following = u32::MAX;
    for i in (0..n).rev() {
        let op = i as u32;
        let own = if place[i] == u32::MAX { op } else { place[i].min(op.saturating_add(window)) };
        place[i] = if loads[i] { own } else { op };
        if rendezvous.next_if_eq(&op).is_some() {
            following = following.min(place[i]);
            place[i] = following;
        }
        // What only overwrites a load does not use it.
        for dep in low.graph.deps.of(i).iter().filter(|dep| dep.hazard != Hazard::Waw) {
            let on = dep.on as usize;
            if loads[on] {
                place[on] = place[on].min(place[i]);
            }
        }
    }
    place
}
