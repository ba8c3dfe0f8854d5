//! In which order the transfers of a queue are triggered.

use crate::timing::cost::{CostKind, Direction};
use crate::timing::lower::Lowered;

/// The class of an operation within its queue. Each class keeps an order of its own; the scheduler merges them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A transfer from HBM, or inside SBUF: something on the chip waits for it.
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

/// By operation: the place of a load in the order of loads. That is the first operation that waits for it, at most `window` operations behind it:
/// mostly the first that reads what it brings. Of two with the same place, the first in the program comes first.
///
/// One that only overwrites what the load reads counts, too: a store that waited for a load with a later place could hold the space for which
/// a load between them waits. A load never comes before another transfer that it depends on. An exchange between cores is not behind a later
/// rendezvous: the cores hold them in the same order.
pub(super) fn places(low: &Lowered<'_>, window: u32) -> Vec<u32> {
    let n = low.ops.len();
    let loads: Vec<bool> = (0..n as u32).map(|op| class(low, op) == Class::Load).collect();
    // First the operation that reads it first, then its place.
    let mut place = vec![u32::MAX; n];
    let mut rendezvous = low.rendezvous.iter().rev().map(|r| r.op).peekable();
    // The place of the rendezvous that follows.
    let mut following = u32::MAX;
    for i in (0..n).rev() {
        let op = i as u32;
        let own = if place[i] == u32::MAX { op } else { place[i].min(op.saturating_add(window)) };
        place[i] = if loads[i] { own } else { op };
        if rendezvous.next_if_eq(&op).is_some() {
            following = following.min(place[i]);
            place[i] = following;
        }
        for dep in low.graph.deps.of(i) {
            let on = dep.on as usize;
            if loads[on] {
                place[on] = place[on].min(place[i]);
            }
        }
    }
    place
}
