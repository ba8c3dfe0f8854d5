//! Finds earlier accesses to the same bytes of one memory.
//!
//! Accesses are listed by cell. The level of a region has cells of a suitable size: short regions are in many small cells, which avoids visiting
//! their neighbours, long ones in a few large cells.

use nki_isa::view::Dim;
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
            let dim = Dim { stride: x.stride, count: x.count as u32 };
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
    /// `None` for all bytes of `lo..hi`.
    pattern: Option<Box<Pattern>>,
}

impl Region {
    pub(crate) fn new(partitions: Partitions, pattern: Pattern) -> Self {
        let (lo, hi) = pattern.bounds();
        Region { partitions, lo, hi, pattern: (!pattern.is_dense()).then(|| Box::new(pattern)) }
    }

    /// The bytes of `dims` (in elements of `size` bytes) from element `offset` on, as in [`Pattern::new`].
    pub(crate) fn of(partitions: Partitions, dims: &[Dim], offset: i64, size: i64, base: i64) -> Self {
        // Most patterns are a single run.
        let mut width = size;
        for d in dims.iter().rev().filter(|d| d.count > 1 && d.stride != 0) {
            let stride = d.stride * size;
            if !(0..=width).contains(&stride) {
                return Region::new(partitions, Pattern::new(dims, offset, size, base));
            }
            width += stride * (i64::from(d.count) - 1);
        }
        let lo = base + offset * size;
        Region { partitions, lo, hi: lo + width, pattern: None }
    }

    /// Whether the regions share a byte.
    pub(crate) fn overlaps(&self, other: &Region) -> bool {
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

    /// The bytes of `self` that are not in `other`, as a few regions; `None` if a few regions cannot describe them.
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

    /// Whether `other` is certainly within `self`.
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
    level: u8,
    write: bool,
    state: State,
    /// Number of cells that still list this record; at 0 it is recycled.
    cells: u32,
    /// The last query that visited this record: regions span several cells.
    seen: u32,
    subject: Subject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Live,
    /// [`Index::insert`] drops it. Until then, it still conflicts.
    Hidden,
    Dead,
}

/// Cells of one size.
#[derive(Debug)]
struct Level {
    /// log2 of the bytes of a cell.
    shift: u32,
    cells: Vec<SmallVec<[u32; 4]>>,
    /// Number of records in its cells.
    named: u32,
}

impl Level {
    /// The first and the last cell of a region.
    fn span(&self, region: &Region) -> (usize, usize) {
        ((region.lo.max(0) >> self.shift) as usize, ((region.hi - 1).max(0) >> self.shift) as usize)
    }
}

#[derive(Debug)]
pub(crate) struct Index {
    levels: Vec<Level>,
    records: Vec<Record>,
    unused: Vec<u32>,
    query: u32,
    /// The hidden records.
    hidden: Vec<u32>,
    /// What is left of the hidden records that writes cover in part. The next [`Self::conflicts`] after an insertion makes them records.
    rest: Vec<Rest>,
    /// Whether an access was inserted since `rest` was last made records.
    inserted: bool,
}

/// A part of a hidden record.
#[derive(Debug)]
struct Rest {
    region: Region,
    by: By,
    subject: Subject,
}

/// An operation that accesses a memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct By {
    pub(crate) op: u32,
    pub(crate) queue: u8,
    /// The maximum departure of its queue from program order, see [`super::Reach`].
    pub(crate) reach: u32,
    pub(crate) write: bool,
}

/// log2 of the bytes of the smallest cell: addresses in SBUF are multiples of 32.
const SMALLEST: u32 = 5;

/// log2 of the maximum number of cells of a memory: creating more costs more than it saves.
const MOST: u32 = 16;

/// log2 of the number of cells of one level per cell of the next.
const STEP: u32 = 3;

/// Maximum length of a region in cells of its level: each additional cell is another list to search at every access.
const LONGEST: i64 = 2;

impl Index {
    /// For a memory (or one of its partitions) of `bytes` bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let whole = bytes.max(1).next_power_of_two().trailing_zeros();
        let smallest = whole.saturating_sub(MOST).max(SMALLEST);
        let level = |shift| Level { shift, cells: Vec::new(), named: 0 };
        let levels = (smallest..=smallest.max(whole)).step_by(STEP as usize).map(level).collect();
        Index {
            levels,
            records: Vec::new(),
            unused: Vec::new(),
            query: 0,
            hidden: Vec::new(),
            rest: Vec::new(),
            inserted: false,
        }
    }

    /// Drops all accesses.
    pub(crate) fn clear(&mut self) {
        for record in self.records.drain(..).filter(|r| r.cells > 0) {
            let level = &mut self.levels[usize::from(record.level)];
            let (first, last) = level.span(&record.region);
            level.cells[first..=last].iter_mut().for_each(SmallVec::clear);
            level.named = 0;
        }
        self.unused.clear();
        self.hidden.clear();
        self.rest.clear();
        self.inserted = false;
        self.query = 0;
    }

    /// Calls `found` for each access that shares a byte with `region`, with its id.
    fn visit(&mut self, region: &Region, mut found: impl FnMut(u32, &mut Record)) {
        self.query += 1;
        let (query, records, unused) = (self.query, &mut self.records, &mut self.unused);
        let mut see = |id: u32, r: &mut Record| {
            if r.seen != query {
                r.seen = query;
                if r.region.overlaps(region) {
                    found(id, r);
                }
            }
        };
        for (number, level) in self.levels.iter_mut().enumerate().filter(|(_, level)| level.named > 0) {
            let (first, last) = level.span(region);
            if last - first > records.len() {
                let here = |r: &&mut Record| usize::from(r.level) == number && r.state != State::Dead;
                (0..).zip(records.iter_mut()).filter(|(_, r)| here(r)).for_each(|(id, r)| see(id, r));
                continue;
            }
            let Level { cells, named, .. } = level;
            for cell in cells.iter_mut().take(last + 1).skip(first).filter(|cell| !cell.is_empty()) {
                cell.retain(|&mut id| {
                    let r = &mut records[id as usize];
                    if r.state != State::Dead {
                        see(id, r);
                    }
                    if r.state == State::Dead {
                        r.cells -= 1;
                        if r.cells == 0 {
                            unused.push(id);
                            *named -= 1;
                        }
                    }
                    r.state != State::Dead
                });
            }
        }
    }

    /// Calls `found(op, queue, hazard, subject, region)` for the earlier accesses that conflict with this one, with their subjects and regions.
    ///
    /// A write hides the accesses that it covers: later users of the bytes depend on the write, which depends on these. Of an earlier write that it
    /// covers in part the other bytes stay. A read hides earlier reads of the same queue that the queue always issues before it: those `reach` or
    /// more positions earlier. [`Self::insert`] drops what is hidden.
    pub(crate) fn conflicts(
        &mut self,
        region: &Region,
        by: By,
        mut found: impl FnMut(u32, u8, Hazard, Subject, &Region),
    ) {
        if std::mem::take(&mut self.inserted) {
            let mut rest = std::mem::take(&mut self.rest);
            rest.drain(..).for_each(|Rest { region, by, subject }| self.add(region, by, subject));
            self.rest = rest;
        }
        let (mut hidden, mut rest) = (std::mem::take(&mut self.hidden), std::mem::take(&mut self.rest));
        self.visit(region, |id, r| {
            let before = !r.write && r.queue == by.queue && by.op - r.op >= by.reach;
            if r.state == State::Live && r.op != by.op {
                let covered = (by.write || before) && region.covers(&r.region);
                let in_part = !covered && by.write && r.write && r.region.minus(region).is_some();
                if in_part {
                    let by = By { op: r.op, queue: r.queue, reach: 0, write: true };
                    rest.push(Rest { region: r.region.clone(), by, subject: r.subject });
                }
                if covered || in_part {
                    hidden.push(id);
                    r.state = State::Hidden;
                }
            }
            let hazard = match (r.write, by.write) {
                (true, false) => Hazard::Raw,
                (true, true) => Hazard::Waw,
                (false, true) => Hazard::War,
                (false, false) => return,
            };
            found(r.op, r.queue, hazard, r.subject, &r.region);
        });
        (self.hidden, self.rest) = (hidden, rest);
    }

    /// Records an access after [`Self::conflicts`] has been called for all regions of the operation.
    pub(crate) fn insert(&mut self, region: Region, by: By, subject: Subject) {
        for id in self.hidden.drain(..) {
            self.records[id as usize].state = State::Dead;
        }
        if by.write && !self.rest.is_empty() {
            let left = |r: &Rest| if r.region.overlaps(&region) { r.region.minus(&region) } else { None };
            let mut rest = Vec::with_capacity(self.rest.len());
            for whole in self.rest.drain(..) {
                match left(&whole) {
                    None => rest.push(whole),
                    Some(parts) => rest.extend(parts.into_iter().map(|region| Rest { region, ..whole })),
                }
            }
            self.rest = rest;
        }
        self.inserted = true;
        self.add(region, by, subject);
    }

    /// Calls `keep(op, region)` for each access that shares a byte with `region`, and drops the access if it returns false.
    pub(crate) fn retain(&mut self, region: &Region, mut keep: impl FnMut(u32, &Region) -> bool) {
        self.visit(region, |_, r| {
            if !keep(r.op, &r.region) {
                r.state = State::Dead;
            }
        });
    }

    /// Records a write without dropping other accesses.
    pub(crate) fn push(&mut self, region: Region, op: u32, subject: Subject) {
        self.add(region, By { op, queue: 0, reach: 1, write: true }, subject);
    }

    fn add(&mut self, region: Region, by: By, subject: Subject) {
        let fits = |level: &Level| region.hi - region.lo <= LONGEST << level.shift;
        let number = self.levels.iter().position(fits).unwrap_or(self.levels.len() - 1);
        let level = &mut self.levels[number];
        let (first, last) = level.span(&region);
        if level.cells.len() <= last {
            level.cells.resize_with(last + 1, SmallVec::new);
        }
        let id = self.unused.pop().unwrap_or(self.records.len() as u32);
        level.cells[first..=last].iter_mut().for_each(|cell| cell.push(id));
        level.named += 1;
        let By { op, queue, write, .. } = by;
        let cells = (last + 1 - first) as u32;
        let record =
            Record { region, op, queue, level: number as u8, write, state: State::Live, cells, seen: 0, subject };
        match self.records.get_mut(id as usize) {
            Some(place) => *place = record,
            None => self.records.push(record),
        }
    }
}
