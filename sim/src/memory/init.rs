//! Exact tracking of written bytes, cheap if tiles are written and read whole.

use std::ops::Range;

const WORD: usize = 64;
const MAX_RANGES: usize = 64;

/// A set of bytes of a storage of `rows` rows of `columns` bytes each.
///
/// Column ranges that are in the set in every row are kept as ranges (`full`), so that a tile that is written and read whole costs
/// only a lookup. Everything else is one bit per byte, allocated on demand.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByteSet {
    rows: usize,
    columns: usize,
    /// Sorted, disjoint, not adjacent.
    full: Vec<Range<usize>>,
    bits: Vec<u64>,
}

impl ByteSet {
    /// No bytes.
    pub(crate) fn empty(rows: usize, columns: usize) -> Self {
        ByteSet { rows, columns, full: Vec::new(), bits: Vec::new() }
    }

    /// All bytes.
    pub(crate) fn all(rows: usize, columns: usize) -> Self {
        ByteSet { rows, columns, full: std::iter::once(0..columns).collect(), bits: Vec::new() }
    }

    /// Removes all bytes, and changes the size of the storage.
    pub(crate) fn reset(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.columns = columns;
        self.full.clear();
        self.bits.clear();
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.full.is_empty() && self.bits.is_empty()
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    fn words(&self) -> usize {
        self.columns.div_ceil(WORD)
    }

    /// Adds `columns` of all rows.
    pub(crate) fn insert_columns(&mut self, columns: Range<usize>) {
        if columns.is_empty() {
            return;
        }
        let Range { mut start, mut end } = columns;
        // Ranges that touch the new one are merged into it.
        let first = self.full.partition_point(|r| r.end < start);
        let mut last = first;
        while let Some(r) = self.full.get(last).filter(|r| r.start <= end) {
            start = start.min(r.start);
            end = end.max(r.end);
            last += 1;
        }
        if last == first + 1 {
            self.full[first] = start..end;
        } else {
            self.full.splice(first..last, std::iter::once(start..end));
        }
    }

    /// Whether `columns` are in the set in all rows, as far as this is known without checking bits.
    pub(crate) fn has_columns(&self, columns: &Range<usize>) -> bool {
        let i = self.full.partition_point(|r| r.end < columns.end);
        columns.is_empty() || self.full.get(i).is_some_and(|r| r.start <= columns.start)
    }

    /// Adds `columns` of one row.
    pub(crate) fn insert(&mut self, row: usize, columns: Range<usize>) {
        if columns.is_empty() {
            return;
        }
        // A storage of one row (HBM) written in tiles would create a range per tile row: those are kept as bits.
        if self.rows == 1 && self.full.len() < MAX_RANGES {
            return self.insert_columns(columns);
        }
        let words = self.words();
        if self.bits.is_empty() {
            self.bits = vec![0; words * self.rows];
        }
        each_word(&columns, |word, mask| self.bits[row * words + word] |= mask);
    }

    /// The first of `columns` that is not in the set in `row`.
    pub(crate) fn first_missing(&self, row: usize, columns: Range<usize>) -> Option<usize> {
        let mut at = columns.start;
        let mut next = self.full.partition_point(|r| r.end <= at);
        while at < columns.end {
            let stop = match self.full.get(next) {
                Some(r) if r.start <= at => {
                    at = r.end;
                    next += 1;
                    continue;
                }
                Some(r) => r.start.min(columns.end),
                None => columns.end,
            };
            if self.bits.is_empty() {
                return Some(at);
            }
            let words = self.words();
            let mut missing = None;
            each_word(&(at..stop), |word, mask| {
                let gap = !self.bits[row * words + word] & mask;
                if missing.is_none() && gap != 0 {
                    missing = Some(word * WORD + gap.trailing_zeros() as usize);
                }
            });
            if missing.is_some() {
                return missing;
            }
            at = stop;
        }
        None
    }

    /// Whether none of `columns` is in the set in `row`.
    pub(crate) fn misses_all(&self, row: usize, columns: Range<usize>) -> bool {
        let i = self.full.partition_point(|r| r.end <= columns.start);
        if self.full.get(i).is_some_and(|r| r.start < columns.end) {
            return columns.is_empty();
        }
        if self.bits.is_empty() {
            return true;
        }
        let words = self.words();
        let mut none = true;
        each_word(&columns, |word, mask| none &= self.bits[row * words + word] & mask == 0);
        none
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.full.clear();
        self.bits.clear();
    }
}

/// Calls `f` with each 64-bit word that overlaps `range`, and the mask of its bits.
fn each_word(range: &Range<usize>, mut f: impl FnMut(usize, u64)) {
    if range.is_empty() {
        return;
    }
    let (first, last) = (range.start / WORD, (range.end - 1) / WORD);
    let low = !0 << (range.start % WORD);
    let high = !0 >> (WORD - 1 - (range.end - 1) % WORD);
    if first == last {
        f(first, low & high);
        return;
    }
    f(first, low);
    for word in first + 1..last {
        f(word, !0);
    }
    f(last, high);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Equals a plain array of bools.
        #[test]
        fn byte_set_is_exact(ops in prop::collection::vec((0..2_u8, 0..3_usize, 0..200_usize, 0..150_usize), 1..30)) {
            let (rows, columns) = (3, 300);
            let mut set = ByteSet::empty(rows, columns);
            let mut model = vec![vec![false; columns]; rows];
            for (kind, row, start, len) in ops {
                let range = start..(start + len).min(columns);
                if kind == 0 {
                    set.insert_columns(range.clone());
                    model.iter_mut().for_each(|r| r[range.clone()].fill(true));
                } else {
                    set.insert(row, range.clone());
                    model[row][range.clone()].fill(true);
                }
                for (r, bits) in model.iter().enumerate() {
                    for probe in [0..columns, range.clone(), start..columns] {
                        let missing = probe.clone().find(|&c| !bits[c]);
                        prop_assert_eq!(set.first_missing(r, probe.clone()), missing);
                        prop_assert_eq!(set.misses_all(r, probe.clone()), probe.clone().all(|c| !bits[c]));
                    }
                }
                if set.has_columns(&range) {
                    prop_assert!(model.iter().all(|r| r[range.clone()].iter().all(|&b| b)));
                }
            }
        }
    }
}
