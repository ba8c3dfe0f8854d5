//! Addresses for tensors that do not fit, if exceeding the capacity is only a warning.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::space::{Free, Order};
use super::{Item, Region};

/// Size of the address space beyond the memory, in capacities. Later tensors share it: no value depends on their addresses.
const BEYOND: u32 = 64;

/// Places in order of first use. A tensor that does not fit has unique addresses beyond the memory.
pub(super) fn beyond(region: Region, explicit: &[Item], automatic: &[Item]) -> Vec<u32> {
    let mut taken: Vec<(u32, u32)> =
        explicit.iter().filter_map(|i| i.address.map(|a| (a.byte, a.byte.saturating_add(i.bytes)))).collect();
    taken.sort_unstable();
    let mut free = Free::new(region.capacity, &taken, Order::NextFit);
    let mut dying: BinaryHeap<Reverse<(u32, u32, u32)>> = BinaryHeap::new();
    let first = region.capacity.next_multiple_of(region.align);
    let end = region.capacity.saturating_mul(BEYOND);
    let mut next = first;
    let mut out = Vec::with_capacity(automatic.len());
    for item in automatic {
        while let Some(&Reverse((last, at, length))) = dying.peek()
            && last < item.life.first
        {
            dying.pop();
            free.give(at, length);
        }
        let at = match free.take(item.taken, region.align, |_| None) {
            Some(at) => {
                dying.push(Reverse((item.life.last, at, item.taken)));
                at
            }
            None => {
                if next > end {
                    next = first;
                }
                let at = next;
                next = next.saturating_add(item.taken);
                at
            }
        };
        out.push(at);
    }
    out
}
