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
/// usually the first reader of its data. A load that nothing reads follows the loads before it in the program, unless a load overwrites it. Loads with
/// the same place are in program order.
///
/// An operation that only overwrites the load's source counts, too: a store that waits for a load with a later place could hold the space for
/// which a load between them waits. A load never precedes another transfer that it depends on, so its place is no later than that of a load that
/// overwrites it: a reader of these bytes can be on record as a reader of both. An exchange between cores does not follow a later
/// rendezvous: the cores perform them in the same order.
pub(super) fn places(low: &Lowered<'_>, window: u32) -> Vec<u32> {
    let n = low.ops.len();
    let loads: Vec<bool> = (0..n as u32).map(|op| class(low, op) == Class::Load).collect();
    // Initially the first user, finally the operation's place.
    let mut place = vec![u32::MAX; n];
    // The place of the first load that overwrites an operation's result.
    let mut overwritten = vec![u32::MAX; n];
    let mut rendezvous = low.rendezvous.iter().rev().map(|r| r.op).peekable();
    // The place of the next rendezvous.
    let mut following = u32::MAX;
    let mut unused = Vec::new();
    for i in (0..n).rev() {
        let op = i as u32;
        let meets = rendezvous.next_if_eq(&op).is_some();
        if loads[i] && !meets && place[i] == u32::MAX && overwritten[i] == u32::MAX {
            unused.push(i);
        }
        let user = if place[i] == u32::MAX { op } else { place[i].min(op.saturating_add(window)) };
        let own = user.min(overwritten[i]);
        place[i] = if loads[i] { own } else { op };
        if meets {
            following = following.min(place[i]);
            place[i] = following;
        }
        let place_i = place[i];
        for dep in low.graph.deps.of(i).iter().filter(|dep| loads[dep.on as usize]) {
            // What only overwrites a load does not use it.
            let bound = if dep.hazard == Hazard::Waw { &mut overwritten } else { &mut place };
            let on = &mut bound[dep.on as usize];
            *on = place_i.min(*on);
        }
    }
    let mut latest = 0;
    let mut done = 0;
    for i in unused.into_iter().rev() {
        latest = (done..i).filter(|&earlier| loads[earlier]).map(|earlier| place[earlier]).fold(latest, u32::max);
        place[i] = place[i].max(latest);
        done = i;
    }
    place
}
