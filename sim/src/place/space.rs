//! Free space in one memory of one core: intervals, and allocation policies.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// The policy for selecting among free intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The first fit after the last allocation, wrapping around to 0: an address is reused as late as
    /// possible, so that later uses seldom wait for earlier ones.
    NextFit,
    /// As [`Order::NextFit`], but within the memory used so far, if possible.
    Within,
    /// As [`Order::NextFit`], but tensors that outlive a full rotation take the highest address: among the others they would leave holes.
    LongLivedHigh,
    /// The interval that has been free longest. Large tensors rotate through sufficiently large intervals, which a rotation through all of the memory
    /// would fragment.
    LongestFree,
    /// The best fit.
    BestFit,
}

/// Free intervals of a range of addresses.
#[derive(Debug, Clone)]
pub(crate) struct Free {
    /// By start; intervals are not adjacent.
    blocks: BTreeMap<u32, Block>,
    /// End of the last allocation.
    cursor: u32,
    order: Order,
    /// Highest end of all allocations so far.
    mark: u32,
    /// Number of deallocations so far.
    given: u32,
}

/// A free interval.
#[derive(Debug, Clone, Copy)]
struct Block {
    length: u32,
    /// Value of `given` when the last part of it was freed.
    since: u32,
}

impl Free {
    /// All of `capacity` except `reserved` (sorted, disjoint).
    pub(crate) fn new(capacity: u32, reserved: &[(u32, u32)], order: Order) -> Self {
        let mut blocks = BTreeMap::new();
        let mut at = 0;
        for &(start, end) in reserved {
            if start > at {
                blocks.insert(at, Block { length: start - at, since: 0 });
            }
            at = at.max(end);
        }
        if at < capacity {
            blocks.insert(at, Block { length: capacity - at, since: 0 });
        }
        Free { blocks, cursor: 0, mark: 0, order, given: 0 }
    }

    /// As [`Self::take`], at the highest address.
    pub(super) fn take_last(&mut self, length: u32, align: u32, avoid: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let at = self.blocks.iter().rev().find_map(|(&start, block)| {
            let end = start + block.length;
            let last = end.checked_sub(length)? / align * align;
            let is_free = last >= start && avoid(last).is_none_or(|later| later <= last);
            if is_free { Some(last) } else { Self::fit(start, end, length, align, &avoid) }
        })?;
        self.cut(at, length);
        Some(at)
    }

    /// Allocates `length` bytes at a multiple of `align`; `avoid` may move a candidate to a later address.
    pub(crate) fn take(&mut self, length: u32, align: u32, avoid: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let at = match self.order {
            Order::NextFit | Order::LongLivedHigh => {
                let from = self.cursor;
                self.first_fit(from, u32::MAX, length, align, &avoid)
                    .or_else(|| self.first_fit(0, from, length, align, &avoid))
            }
            Order::Within => {
                let mark = self.mark;
                let below = |at: u32| if at.saturating_add(length) > mark { Some(u32::MAX) } else { avoid(at) };
                let from = self.cursor;
                self.first_fit(from, mark, length, align, &below)
                    .or_else(|| self.first_fit(0, from.min(mark), length, align, &below))
                    .or_else(|| self.first_fit(0, u32::MAX, length, align, &avoid))
            }
            Order::LongestFree => self.least(length, align, &avoid, |block| (block.since, block.length)),
            Order::BestFit => self.least(length, align, &avoid, |block| (block.length, 0)),
        }?;
        self.cut(at, length);
        self.cursor = at + length;
        self.mark = self.mark.max(self.cursor);
        Some(at)
    }

    fn fit(start: u32, end: u32, length: u32, align: u32, avoid: &impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let mut at = start.checked_next_multiple_of(align)?;
        loop {
            if at.checked_add(length)? > end {
                return None;
            }
            match avoid(at) {
                Some(later) if later > at => at = later.checked_next_multiple_of(align)?,
                _ => return Some(at),
            }
        }
    }

    /// The first fit that starts in `from..until`.
    fn first_fit(
        &self,
        from: u32,
        until: u32,
        length: u32,
        align: u32,
        avoid: &impl Fn(u32) -> Option<u32>,
    ) -> Option<u32> {
        let before = self.blocks.range(..=from).next_back();
        let after = self.blocks.range((Excluded(from), Unbounded));
        before
            .into_iter()
            .chain(after)
            .take_while(|(start, _)| **start < until)
            .find_map(|(&start, block)| Self::fit(start.max(from), start + block.length, length, align, avoid))
            .filter(|&at| at < until)
    }

    /// The fit in the block with the smallest key, or the first of them.
    fn least(
        &self,
        length: u32,
        align: u32,
        avoid: &impl Fn(u32) -> Option<u32>,
        key: impl Fn(&Block) -> (u32, u32),
    ) -> Option<u32> {
        self.blocks
            .iter()
            .filter(|(_, block)| block.length >= length)
            .filter_map(|(&start, block)| {
                Some((key(block), Self::fit(start, start + block.length, length, align, avoid)?))
            })
            .min()
            .map(|(_, at)| at)
    }

    fn cut(&mut self, at: u32, length: u32) {
        let Some((&start, &block)) = self.blocks.range(..=at).next_back() else { return };
        self.blocks.remove(&start);
        if at > start {
            self.blocks.insert(start, Block { length: at - start, ..block });
        }
        let (end, taken) = (start + block.length, at + length);
        if end > taken {
            self.blocks.insert(taken, Block { length: end - taken, ..block });
        }
    }

    /// Frees an interval allocated by [`Self::take`].
    pub(crate) fn give(&mut self, at: u32, length: u32) {
        let (mut start, mut end) = (at, at + length);
        if let Some((&s, block)) = self.blocks.range(..at).next_back()
            && s + block.length == start
        {
            self.blocks.remove(&s);
            start = s;
        }
        if let Some(block) = self.blocks.remove(&end) {
            end += block.length;
        }
        self.given += 1;
        self.blocks.insert(start, Block { length: end - start, since: self.given });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYWHERE: fn(u32) -> Option<u32> = |_| None;

    #[test]
    fn goes_round_before_it_uses_an_address_again() {
        let mut free = Free::new(100, &[], Order::NextFit);
        for i in 0..10 {
            let at = free.take(25, 1, ANYWHERE).unwrap();
            assert_eq!(at, i % 4 * 25);
            free.give(at, 25);
        }
    }

    #[test]
    fn reserved_places_and_alignment_are_kept() {
        let mut free = Free::new(256, &[(0, 40), (100, 120)], Order::NextFit);
        assert_eq!(free.take(32, 32, ANYWHERE), Some(64));
        assert_eq!(free.take(32, 32, ANYWHERE), Some(128));
        assert_eq!(free.take(100, 32, ANYWHERE), None);
        assert_eq!(free.take(32, 32, |at| (at < 200).then_some(200)), Some(224));
    }

    #[test]
    fn addresses_go_round_in_what_has_been_needed() {
        let mut free = Free::new(100, &[], Order::Within);
        assert_eq!([free.take(20, 1, ANYWHERE), free.take(20, 1, ANYWHERE)], [Some(0), Some(20)]);
        free.give(0, 20);
        assert_eq!(free.take(10, 1, ANYWHERE), Some(0));
        free.give(20, 20);
        // Continues after the last allocation, then wraps around before extending.
        assert_eq!([free.take(20, 1, ANYWHERE), free.take(10, 1, ANYWHERE)], [Some(10), Some(30)]);
        assert_eq!(free.take(10, 1, ANYWHERE), Some(40));
        // An allocation that does not fit starts in the free space at the end and extends it.
        free.give(30, 10);
        free.give(40, 10);
        assert_eq!(free.take(30, 1, ANYWHERE), Some(30));
        assert_eq!(free.take(50, 1, ANYWHERE), None);
    }

    #[test]
    fn neighbours_join_when_given_back() {
        let mut free = Free::new(96, &[], Order::BestFit);
        let parts: Vec<u32> = (0..3).map(|_| free.take(32, 1, ANYWHERE).unwrap()).collect();
        assert_eq!(free.take(1, 1, ANYWHERE), None);
        for at in [parts[1], parts[0], parts[2]] {
            free.give(at, 32);
        }
        assert_eq!(free.take(96, 1, ANYWHERE), Some(0));
    }

    #[test]
    fn the_tightest_gap_comes_first() {
        let mut free = Free::new(300, &[(100, 110), (130, 140)], Order::BestFit);
        assert_eq!(free.take(20, 1, ANYWHERE), Some(110));
    }

    #[test]
    fn the_last_place_does_not_move_the_round() {
        let mut free = Free::new(100, &[(90, 95)], Order::LongLivedHigh);
        assert_eq!(free.take(20, 4, ANYWHERE), Some(0));
        assert_eq!(free.take_last(8, 4, ANYWHERE), Some(80));
        assert_eq!(free.take(20, 4, ANYWHERE), Some(20));
        // If all later places are avoided, the first place of the block.
        assert_eq!(free.take_last(8, 4, |at| (at < 60).then_some(60)), Some(72));
        assert_eq!(free.take_last(8, 4, |at| (at == 64).then_some(68)), Some(40));
        assert_eq!(free.take_last(40, 4, ANYWHERE), None);
    }

    #[test]
    fn what_has_been_free_longest_comes_first() {
        let mut free = Free::new(90, &[], Order::LongestFree);
        for at in [0, 30, 60] {
            assert_eq!(free.take(30, 1, ANYWHERE), Some(at));
        }
        // Neither the first nor the tightest fit, but the order of deallocation. The rest of an interval is as old as the whole.
        for at in [60, 0] {
            free.give(at, 30);
        }
        assert_eq!(free.take(20, 1, ANYWHERE), Some(60));
        assert_eq!(free.take(10, 1, ANYWHERE), Some(80));
        assert_eq!(free.take(10, 1, ANYWHERE), Some(0));
        // A merged interval is as young as its youngest part.
        free.give(60, 20);
        free.give(30, 30);
        assert_eq!(free.take(10, 1, ANYWHERE), Some(10));
    }
}
