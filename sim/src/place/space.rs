//! Free space in one memory of one core: next-fit over intervals.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Free intervals of a range of addresses.
///
/// Allocation goes round: it takes the first free place after the previous one, so that an address is used again as late as possible
/// and a later use seldom waits for an earlier one. When nothing is free further on it begins again at 0.
#[derive(Debug, Clone)]
pub(super) struct Free {
    /// Start to length; intervals do not touch.
    blocks: BTreeMap<u32, u32>,
    cursor: u32,
    round_robin: bool,
}

impl Free {
    /// All of `capacity` but `reserved` (sorted, disjoint).
    pub(super) fn new(capacity: u32, reserved: &[(u32, u32)], round_robin: bool) -> Self {
        let mut blocks = BTreeMap::new();
        let mut at = 0;
        for &(start, end) in reserved {
            if start > at {
                blocks.insert(at, start - at);
            }
            at = at.max(end);
        }
        if at < capacity {
            blocks.insert(at, capacity - at);
        }
        Free { blocks, cursor: 0, round_robin }
    }

    /// Takes `length` bytes at a multiple of `align`; `avoid` may move a candidate on to a later address.
    pub(super) fn take(&mut self, length: u32, align: u32, avoid: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let at = if self.round_robin {
            let from = self.cursor;
            self.first_fit(from, u32::MAX, length, align, &avoid)
                .or_else(|| self.first_fit(0, from, length, align, &avoid))
        } else {
            self.best_fit(length, align, &avoid)
        }?;
        self.cut(at, length);
        self.cursor = at + length;
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
            .find_map(|(&start, &len)| Self::fit(start.max(from), start + len, length, align, avoid))
            .filter(|&at| at < until)
    }

    fn best_fit(&self, length: u32, align: u32, avoid: &impl Fn(u32) -> Option<u32>) -> Option<u32> {
        self.blocks
            .iter()
            .filter(|(_, len)| **len >= length)
            .filter_map(|(&start, &len)| Some((len, Self::fit(start, start + len, length, align, avoid)?)))
            .min()
            .map(|(_, at)| at)
    }

    fn cut(&mut self, at: u32, length: u32) {
        let Some((&start, &len)) = self.blocks.range(..=at).next_back() else { return };
        self.blocks.remove(&start);
        if at > start {
            self.blocks.insert(start, at - start);
        }
        if start + len > at + length {
            self.blocks.insert(at + length, start + len - (at + length));
        }
    }

    /// Gives back what [`Self::take`] gave.
    pub(super) fn give(&mut self, at: u32, length: u32) {
        let (mut start, mut end) = (at, at + length);
        if let Some((&s, &l)) = self.blocks.range(..at).next_back()
            && s + l == start
        {
            self.blocks.remove(&s);
            start = s;
        }
        if let Some(l) = self.blocks.remove(&end) {
            end += l;
        }
        self.blocks.insert(start, end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYWHERE: fn(u32) -> Option<u32> = |_| None;

    #[test]
    fn goes_round_before_it_uses_an_address_again() {
        let mut free = Free::new(100, &[], true);
        for i in 0..10 {
            let at = free.take(25, 1, ANYWHERE).unwrap();
            assert_eq!(at, i % 4 * 25);
            free.give(at, 25);
        }
    }

    #[test]
    fn reserved_places_and_alignment_are_kept() {
        let mut free = Free::new(256, &[(0, 40), (100, 120)], true);
        assert_eq!(free.take(32, 32, ANYWHERE), Some(64));
        assert_eq!(free.take(32, 32, ANYWHERE), Some(128));
        assert_eq!(free.take(100, 32, ANYWHERE), None);
        assert_eq!(free.take(32, 32, |at| (at < 200).then_some(200)), Some(224));
    }

    #[test]
    fn neighbours_join_when_given_back() {
        let mut free = Free::new(96, &[], false);
        let parts: Vec<u32> = (0..3).map(|_| free.take(32, 1, ANYWHERE).unwrap()).collect();
        assert_eq!(free.take(1, 1, ANYWHERE), None);
        for at in [parts[1], parts[0], parts[2]] {
            free.give(at, 32);
        }
        assert_eq!(free.take(96, 1, ANYWHERE), Some(0));
    }

    #[test]
    fn best_fit_takes_the_tightest_gap() {
        let mut free = Free::new(300, &[(100, 110), (130, 140)], false);
        assert_eq!(free.take(20, 1, ANYWHERE), Some(110));
    }
}
