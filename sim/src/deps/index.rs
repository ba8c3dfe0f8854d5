//! Finds earlier accesses to the same bytes of one memory.

use smallvec::SmallVec;

use super::pattern::Pattern;
use super::{Hazard, Subject};

/// Partitions `start, start + stride, ...`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partitions {
    pub(crate) start: i64,
    pub(crate) stride: i64,
    pub(crate) count: i64,
}

impl Partitions {
    fn end(self) -> i64 {
        self.start + self.stride * (self.count - 1) + 1
    }
    fn is_dense(self) -> bool {
        self.stride == 1 || self.count == 1
    }
    fn overlaps(self, other: Self) -> bool {
        if self.start >= other.end() || other.start >= self.end() {
            return false;
        }
        if self.is_dense() && other.is_dense() {
            return true;
        }
        let p = |x: Self| {
            let dim = nki_isa::view::Dim { stride: x.stride, count: x.count as u32 };
            Pattern::new(&[dim], 0, 1, x.start)
        };
        p(self).intersects(&p(other))
    }
}

/// Bytes of one memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Region {
    pub(crate) partitions: Partitions,
    lo: i64,
    hi: i64,
    /// `None` when all bytes of `lo..hi` are meant.
    pattern: Option<Box<Pattern>>,
}

impl Region {
    pub(crate) fn new(partitions: Partitions, pattern: Pattern) -> Self {
        let (lo, hi) = pattern.bounds();
        Region { partitions, lo, hi, pattern: (!pattern.is_dense()).then(|| Box::new(pattern)) }
    }

    fn overlaps(&self, other: &Region) -> bool {
        if self.lo >= other.hi || other.lo >= self.hi || !self.partitions.overlaps(other.partitions) {
            return false;
        }
        match (&self.pattern, &other.pattern) {
            (None, None) => true,
            (Some(a), Some(b)) => a.intersects(b),
            (Some(a), None) => a.intersects(&Pattern::run(other.lo, other.hi)),
            (None, Some(b)) => b.intersects(&Pattern::run(self.lo, self.hi)),
        }
    }

    /// The bytes of `self` that are not in `other`, as a few regions; `None` where a few regions cannot describe them.
    pub(crate) fn minus(&self, other: &Region) -> Option<SmallVec<[Region; 4]>> {
        let mut out = SmallVec::new();
        if other.covers(self) {
            return Some(out);
        }
        let (p, q) = (self.partitions, other.partitions);
        let same_columns = self.lo == other.lo && self.hi == other.hi && self.pattern == other.pattern;
        let whole_columns = other.pattern.is_none() && other.lo <= self.lo && self.hi <= other.hi;
        let rectangles = self.pattern.is_none() && other.pattern.is_none();
        if !p.is_dense() || !q.is_dense() || !(same_columns || whole_columns || rectangles) {
            return None;
        }
        let mut add = |start: i64, end: i64, lo: i64, hi: i64| {
            if start < end && lo < hi {
                let partitions = Partitions { start, stride: 1, count: end - start };
                let pattern = if rectangles { None } else { self.pattern.clone() };
                out.push(Region { partitions, lo, hi, pattern });
            }
        };
        let (first, last) = (p.start.max(q.start), p.end().min(q.end()));
        if first >= last {
            return Some(SmallVec::from_elem(self.clone(), 1));
        }
        add(p.start, first, self.lo, self.hi);
        add(last, p.end(), self.lo, self.hi);
        if rectangles {
            add(first, last, self.lo, self.hi.min(other.lo));
            add(first, last, self.lo.max(other.hi), self.hi);
        }
        Some(out)
    }

    /// Whether all of `other` is certainly in `self`.
    fn covers(&self, other: &Region) -> bool {
        let (p, q) = (self.partitions, other.partitions);
        if !(p == q || p.is_dense() && p.start <= q.start && q.end() <= p.end()) {
            return false;
        }
        match &self.pattern {
            None => self.lo <= other.lo && other.hi <= self.hi,
            Some(_) => self.lo == other.lo && self.hi == other.hi && self.pattern == other.pattern,
        }
    }
}

#[derive(Debug)]
struct Record {
    region: Region,
    op: u32,
    queue: u8,
    write: bool,
    dead: bool,
    /// Cells whose lists still name this record; its place is used again when none does.
    cells: u32,
    /// The query that saw this record last: regions span several cells.
    seen: u32,
    subject: Subject,
}

impl Record {
    /// Whether a cell's list keeps record `id`, which this is; it drops dead ones.
    fn keep(&mut self, id: u32, unused: &mut Vec<u32>) -> bool {
        if self.dead {
            self.cells -= 1;
            if self.cells == 0 {
                unused.push(id);
            }
        }
        !self.dead
    }
}

/// Small regions are in fine cells, large ones in coarse cells, so that neither fills many lists.
#[derive(Debug)]
pub(crate) struct Index {
    fine: Vec<Vec<u32>>,
    coarse: Vec<Vec<u32>>,
    shift: u32,
    records: Vec<Record>,
    unused: Vec<u32>,
    query: u32,
    written: bool,
}

/// log2 of fine cells per coarse cell.
const COARSE: u32 = 3;

/// Most fine cells in the length of a region that lies in them: each more is another list to look through at every access.
const FINE: i64 = 2;

impl Index {
    /// For a memory (or one partition of it) of `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        let shift = (bytes / 1024).next_power_of_two().trailing_zeros().max(7);
        Index {
            fine: Vec::new(),
            coarse: Vec::new(),
            shift,
            records: Vec::new(),
            unused: Vec::new(),
            query: 0,
            written: false,
        }
    }

    /// Forgets all accesses.
    pub(crate) fn clear(&mut self) {
        self.fine.clear();
        self.coarse.clear();
        self.records.clear();
        self.unused.clear();
        self.query = 0;
        self.written = false;
    }

    fn cells(&self, region: &Region, shift: u32) -> (usize, usize) {
        ((region.lo.max(0) >> shift) as usize, ((region.hi - 1).max(0) >> shift) as usize)
    }

    /// Calls `found(op, queue, hazard, subject)` for the earlier accesses that conflict with this one.
    pub(crate) fn conflicts(&mut self, region: &Region, write: bool, found: &mut impl FnMut(u32, u8, Hazard, Subject)) {
        if !write && !self.written {
            return;
        }
        self.query += 1;
        let query = self.query;
        for (level, shift) in [(0, self.shift), (1, self.shift + COARSE)] {
            let (first, last) = self.cells(region, shift);
            let lists = if level == 0 { &mut self.fine } else { &mut self.coarse };
            for cell in lists.iter_mut().take(last + 1).skip(first) {
                let (records, unused) = (&mut self.records, &mut self.unused);
                cell.retain(|&i| {
                    let r = &mut records[i as usize];
                    if r.dead {
                        return r.keep(i, unused);
                    }
                    if (write || r.write) && r.seen != query {
                        r.seen = query;
                        if r.region.overlaps(region) {
                            let hazard = match (r.write, write) {
                                (true, false) => Hazard::Raw,
                                (true, true) => Hazard::Waw,
                                _ => Hazard::War,
                            };
                            found(r.op, r.queue, hazard, r.subject);
                        }
                    }
                    true
                });
            }
        }
    }

    /// Calls `keep(op, region)` for each access that shares a byte with `region`, and forgets the access where it returns false.
    pub(crate) fn retain(&mut self, region: &Region, keep: &mut impl FnMut(u32, &Region) -> bool) {
        self.query += 1;
        let query = self.query;
        for (level, shift) in [(0, self.shift), (1, self.shift + COARSE)] {
            let (first, last) = self.cells(region, shift);
            let lists = if level == 0 { &mut self.fine } else { &mut self.coarse };
            for cell in lists.iter_mut().take(last + 1).skip(first) {
                let (records, unused) = (&mut self.records, &mut self.unused);
                cell.retain(|&i| {
                    let r = &mut records[i as usize];
                    if !r.dead && r.seen != query {
                        r.seen = query;
                        if r.region.overlaps(region) && !keep(r.op, &r.region) {
                            r.dead = true;
                        }
                    }
                    r.keep(i, unused)
                });
            }
        }
    }

    /// Remembers a write and forgets nothing.
    pub(crate) fn push(&mut self, region: Region, op: u32, subject: Subject) {
        let id = self.unused.pop().unwrap_or(self.records.len() as u32);
        let fine = region.hi - region.lo <= FINE << self.shift;
        let shift = if fine { self.shift } else { self.shift + COARSE };
        let (first, last) = self.cells(&region, shift);
        let lists = if fine { &mut self.fine } else { &mut self.coarse };
        if lists.len() <= last {
            lists.resize_with(last + 1, Vec::new);
        }
        lists[first..=last].iter_mut().for_each(|cell| cell.push(id));
        let cells = (last + 1 - first) as u32;
        let record = Record { region, op, queue: 0, write: true, dead: false, cells, seen: 0, subject };
        match self.records.get_mut(id as usize) {
            Some(place) => *place = record,
            None => self.records.push(record),
        }
    }

    /// Remembers an access. A write makes what it covers unreachable: who uses those bytes later waits for the write, which has waited for
    /// them. A read makes earlier reads of the same queue unreachable that its queue takes before it: those `reach` or more positions earlier.
    pub(crate) fn insert(&mut self, region: Region, op: u32, queue: u8, write: bool, subject: Subject, reach: u32) {
        self.written |= write;
        let id = self.unused.pop().unwrap_or(self.records.len() as u32);
        let mut cells = 0;
        let fine = region.hi - region.lo <= FINE << self.shift;
        for (level, shift) in [(0, self.shift), (1, self.shift + COARSE)] {
            let (first, last) = self.cells(&region, shift);
            let lists = if level == 0 { &mut self.fine } else { &mut self.coarse };
            let here = (level == 0) == fine;
            if here && lists.len() <= last {
                lists.resize_with(last + 1, Vec::new);
            }
            let (records, unused) = (&mut self.records, &mut self.unused);
            for cell in lists.iter_mut().take(last + 1).skip(first) {
                cell.retain(|&i| {
                    let r = &mut records[i as usize];
                    let before = !r.write && r.queue == queue && op - r.op >= reach;
                    if !r.dead && (write || before) && r.op != op && region.covers(&r.region) {
                        r.dead = true;
                    }
                    r.keep(i, unused)
                });
                if here {
                    cell.push(id);
                    cells += 1;
                }
            }
        }
        let record = Record { region, op, queue, write, dead: false, cells, seen: 0, subject };
        match self.records.get_mut(id as usize) {
            Some(place) => *place = record,
            None => self.records.push(record),
        }
    }
}
