//! Partition-wise instructions, computed together.
//!
//! Such an instruction is deferred until something else accesses memory. A run of them is divided among threads once: each thread executes all
//! instructions of the run for its own partitions, one partition after the other, and a partition's elements stay in its cache from the load to the
//! store.
//!
//! Partition `i` of every instruction accesses only bytes that no other partition writes. A storage that the run writes is either on chip and
//! accessed from the same first row, row by row; or it is in HBM, only one operand of the run accesses it, and its rows are disjoint.

use nki_isa::machine::{BatchF32, RowsF32, StateUpdate, one_partition};
use nki_isa::share::{share, threads};
use nki_isa::{Fault, View};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;

use super::Pending;
use super::moves::is_load;
use super::plan::{Piece, Plan, Rows, Scratch, aligned, plan, without_copies};
use crate::Buffer;
use crate::exec::interpreter::Interpreter;
use crate::exec::rows::Accesses;
use crate::exec::values::Watch;
use crate::memory::Memory;
use crate::memory::access::Access;

/// Partitions that a thread processes together: their elements should stay in its L1 cache.
pub(in crate::exec) const BLOCK: usize = 8;
/// Number of elements (of all operands together) above which work is divided among threads.
const PARALLEL_ABOVE: usize = 64 * 1024;
/// Pieces of a run for each thread.
const PIECES: usize = 4;
/// Maximum length of a run: its tensors are not released before it ends.
const LONGEST: usize = 32;

/// Instructions that are not computed yet.
#[derive(Default)]
pub(super) struct Run<'p> {
    steps: Vec<Step<'p>>,
    updates: Vec<StateUpdate>,
    /// Storages without any written bytes before the run.
    fresh: Vec<usize>,
    /// Whether a result has been stored in HBM: the next load then starts another run, in reused buffers.
    stored: bool,
}

pub(super) struct Step<'p> {
    pub(super) to: Accesses,
    pub(super) from: Accesses,
    pub(super) what: StepKind,
    pub(super) watch: Option<Box<Watch<'p>>>,
}

/// The operation on the rows.
pub(in crate::exec) enum StepKind {
    Map(RowsF32),
    Batch(BatchF32),
    /// One source to one destination, element by element.
    Copy,
    /// One bit pattern to all elements of one destination.
    Fill([u8; 4]),
}

/// A storage that is local to the run: its rows exist only while they are in use.
pub(super) struct Transient {
    /// The storage, by number.
    pub(super) piece: usize,
    /// Its row for the first row of the run.
    row: usize,
    pitch: usize,
}

thread_local! {
    /// Rows of transient storages.
    static TRANSIENT: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// Whether row `i` of `b` can only access bytes of row `i` of `a`, if both are in one storage.
fn in_step(memory: &Memory<'_>, a: &Access, b: &Access) -> bool {
    memory.storages[a.storage].pitch > 0 && a.row == b.row && a.row_step == 1 && b.row_step == 1
}

/// Whether the instruction's partitions are independent of each other.
pub(in crate::exec) fn apart(memory: &Memory<'_>, to: &[Access], from: &[Access]) -> bool {
    let Some(rows) = to.first().map(|a| a.rows) else { return false };
    let regular = |a: &Access| a.starts.is_none() && a.rows == rows && a.per_row > 0;
    let written = |a: &Access| {
        let (lo, hi) = a.reach();
        if memory.storages[a.storage].pitch > 0 { a.row_step == 1 } else { rows == 1 || hi - lo <= a.column_step }
    };
    rows > 0
        && to.len() <= 2
        && to.iter().chain(from).all(regular)
        && to.iter().all(written)
        && to.iter().enumerate().all(|(i, w)| {
            let others = to[..i].iter().chain(from).filter(|a| a.storage == w.storage);
            others.into_iter().all(|a| in_step(memory, w, a))
        })
}

impl Run<'_> {
    /// Whether a result has been stored in HBM.
    pub(super) fn has_stored(&self) -> bool {
        self.stored
    }

    /// Whether it consists only of loads from HBM without conversion.
    pub(super) fn only_loads(&self, memory: &Memory<'_>) -> bool {
        self.updates.is_empty()
            && self
                .steps
                .iter()
                .all(|s| matches!(s.what, StepKind::Copy) && s.watch.is_none() && is_load(memory, &s.to[0], &s.from[0]))
    }

    /// Destinations and sources of a run of copies.
    pub(super) fn into_copies(self) -> impl Iterator<Item = (Access, Access)> {
        self.steps.into_iter().filter_map(|mut s| Some((s.to.pop()?, s.from.pop()?)))
    }

    /// Whether the instruction, whose partitions are independent, may join the run.
    fn admits(&self, memory: &Memory<'_>, to: &[Access], from: &[Access]) -> bool {
        let Some(first) = self.steps.first() else { return true };
        let overlaps = |old: &Access, written: bool, new: &Access| {
            old.storage != new.storage || !written || in_step(memory, old, new)
        };
        self.steps.len() < LONGEST
            && first.to[0].rows == to[0].rows
            && self.steps.iter().all(|s| {
                to.iter().all(|n| s.to.iter().chain(&s.from).all(|o| overlaps(o, true, n)))
                    && from.iter().all(|n| s.to.iter().all(|o| overlaps(o, true, n)))
            })
    }
}

impl<'p> Interpreter<'p> {
    /// See [`nki_isa::Machine::map_f32`] and [`nki_isa::Machine::map_f32_batch`].
    pub(in crate::exec) fn defer_rows(
        &mut self,
        dsts: &[&View],
        srcs: &[&View],
        what: StepKind,
        update: Option<StateUpdate>,
    ) -> Result<(), Fault> {
        let (to, from) = self.operands(dsts, srcs)?;
        let watch = self.watch(&to, &from, false);
        if apart(&self.deferred.memory, &to, &from) {
            self.join_run(to, from, what, watch).updates.extend(update);
            return Ok(());
        }
        self.flush();
        match what {
            StepKind::Map(f) => self.map_rows(&to, &from, &f, watch),
            StepKind::Batch(f) => self.map_rows(&to, &from, &one_partition(f), watch),
            StepKind::Copy | StepKind::Fill(_) => unreachable!("they are deferred by functions of their own"),
        }
        if let Some((name, change)) = update {
            change(self.core.engine_state.entry(name).or_default());
        }
        Ok(())
    }

    /// Defers writing equal elements; returns whether that is possible.
    pub(in crate::exec) fn defer_fill(&mut self, to: &Access, value: [u8; 4]) -> bool {
        let to = std::slice::from_ref(to);
        let deferred = apart(&self.deferred.memory, to, &[]);
        if deferred {
            self.join_run(to.iter().cloned().collect(), Accesses::new(), StepKind::Fill(value), None);
        }
        deferred
    }

    /// Defers a copy; returns whether that is possible.
    pub(in crate::exec) fn defer_copy(&mut self, to: &Access, from: &Access) -> bool {
        if self.copy_behind_moves(to, from) {
            return true;
        }
        self.flush_matmuls();
        let (to, from) = (std::slice::from_ref(to), std::slice::from_ref(from));
        let same = to[0].per_row == from[0].per_row && to[0].storage != from[0].storage;
        if !same || !apart(&self.deferred.memory, to, from) {
            return false;
        }
        let converts = to[0].codec != from[0].codec;
        let watch = converts.then(|| self.watch(to, from, true)).flatten();
        self.join_run(to.iter().cloned().collect(), from.iter().cloned().collect(), StepKind::Copy, watch);
        true
    }

    /// Adds an instruction to the pending run or to a new one; returns the run.
    fn join_run(
        &mut self,
        to: Accesses,
        from: Accesses,
        what: StepKind,
        watch: Option<Box<Watch<'p>>>,
    ) -> &mut Run<'p> {
        let admits = |run: &Run<'_>| run.admits(&self.deferred.memory, &to, &from);
        if !matches!(&self.deferred.pending, Pending::Rows(run) if admits(run)) {
            self.compute_pending();
            self.deferred.pending = Pending::Rows(Run::default());
        }
        self.fill_tiles_before(&to, &from);
        let memory = &mut self.deferred.memory;
        let Pending::Rows(run) = &mut self.deferred.pending else { unreachable!("a run has just been made") };
        for (n, a) in to.iter().enumerate() {
            let storage = &memory.storages[a.storage];
            let before = run.steps.iter().flat_map(|s| s.to.iter().chain(&s.from)).chain(&to[..n]).chain(&from);
            if storage.init.is_empty() && !before.into_iter().any(|b| b.storage == a.storage) {
                run.fresh.push(a.storage);
            }
            memory.mark_written(a);
            run.stored |= memory.storages[a.storage].pitch == 0;
        }
        run.steps.push(Step { to, from, what, watch });
        run
    }

    /// Computes a run. The `dead` storages are not read any more.
    pub(super) fn compute_run(&mut self, run: Run<'p>, dead: &[usize]) {
        let Run { steps, updates, fresh, .. } = run;
        let rows = steps[0].to[0].rows;
        let elements: usize = steps.iter().flat_map(|s| s.to.iter().chain(&s.from)).map(Access::elements).sum();
        let threads = threads().min(rows);
        let shares =
            if elements < PARALLEL_ABOVE || threads == 1 { 1 } else { rows.div_ceil(BLOCK).min(PIECES * threads) };

        let mut written: Vec<&Access> = Vec::new();
        for a in steps.iter().flat_map(|s| &s.to) {
            if !written.iter().any(|w| w.storage == a.storage) {
                written.push(a);
            }
        }
        let passes = |a: &Access| dead.contains(&a.storage) && fresh.contains(&a.storage);
        let transient = |(piece, a): (usize, &&Access)| {
            let pitch = self.deferred.memory.storages[a.storage].pitch;
            (passes(a) && pitch.is_multiple_of(64)).then_some(Transient { piece, row: a.row, pitch })
        };
        let transient: Vec<Transient> = written.iter().enumerate().filter_map(transient).collect();
        let mut taken: Vec<Option<Buffer>> = Vec::new();
        for (k, a) in written.iter().enumerate() {
            let stays = !transient.iter().any(|p| p.piece == k);
            taken.push(stays.then(|| self.deferred.memory.storages[a.storage].take()));
        }
        let memory = &self.deferred.memory;
        let plans: Vec<Plan<'_>> = steps.iter().map(|s| plan(memory, &written, &taken, s)).collect();
        let plans = without_copies(plans, &transient, |k| taken[k].as_deref().is_none_or(aligned));
        let mut parts: Vec<(Range<usize>, Vec<Option<Piece<'_>>>)> =
            (0..shares).map(|k| (rows * k / shares..rows * (k + 1) / shares, Vec::new())).collect();
        for (a, buffer) in written.iter().zip(&mut taken) {
            let Some(buffer) = buffer else {
                parts.iter_mut().for_each(|(_, pieces)| pieces.push(None));
                continue;
            };
            let mut rest = buffer.bytes_mut();
            let mut at = 0;
            for (rows, pieces) in &mut parts {
                let Range { start, end } = extent(memory, a, rows);
                let (piece, others) = std::mem::take(&mut rest)[start - at..].split_at_mut(end - start);
                (rest, at) = (others, end);
                pieces.push(Some(Piece { bytes: piece, start }));
            }
        }
        let compute = |(rows, pieces): (Range<usize>, Vec<Option<Piece<'_>>>)| {
            let (mut scratch, mut space) = (SCRATCH.take(), TRANSIENT.take());
            pass(rows, pieces, &plans, &transient, &mut scratch, &mut space);
            SCRATCH.set(scratch);
            TRANSIENT.set(space);
        };
        share(threads, parts, compute);
        drop(plans);
        let storages: SmallVec<[usize; 8]> = written.iter().map(|a| a.storage).collect();
        for (storage, data) in storages.into_iter().zip(taken) {
            if let Some(data) = data {
                self.deferred.memory.storages[storage].put(data);
            }
        }
        for (name, change) in updates {
            change(self.core.engine_state.entry(name).or_default());
        }
        for Step { to, from, watch, .. } in &steps {
            if let Some(watch) = watch {
                self.report_values(watch, to, from);
            }
        }
        self.release_dead();
    }
}

/// Computes a thread's rows of the run.
fn pass<'d>(
    rows: Range<usize>,
    mut pieces: Vec<Option<Piece<'d>>>,
    plans: &[Plan<'_>],
    transient: &[Transient],
    scratch: &mut Scratch,
    space: &'d mut Vec<u64>,
) {
    let needed: usize = transient.iter().map(|p| BLOCK * p.pitch).sum();
    space.resize(space.len().max(needed / 8 + 8), 0);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(space);
    let aligned = bytes.as_ptr().align_offset(64).min(63);
    let mut rest = &mut bytes[aligned..];
    for p in transient {
        let (bytes, others) = rest.split_at_mut(BLOCK * p.pitch);
        rest = others;
        pieces[p.piece] = Some(Piece { bytes, start: 0 });
    }
    for first in rows.clone().step_by(BLOCK) {
        for p in transient {
            if let Some(piece) = &mut pieces[p.piece] {
                piece.start = (p.row + first) * p.pitch;
            }
        }
        for plan in plans {
            plan.compute(first..rows.end.min(first + BLOCK), &mut pieces, scratch);
        }
    }
}

/// The bytes of a storage that rows of a run may write: whole rows on chip.
fn extent(memory: &Memory<'_>, a: &Access, rows: &Range<usize>) -> Range<usize> {
    let pitch = memory.storages[a.storage].pitch;
    if pitch > 0 {
        return (a.row + rows.start) * pitch..(a.row + rows.end) * pitch;
    }
    let (lo, hi) = a.reach();
    let (lo, hi) = (lo * memory.scale as isize, hi * memory.scale as isize);
    let place = Rows::of(memory, a);
    place.at(rows.start).wrapping_add_signed(lo)..place.at(rows.end - 1).wrapping_add_signed(hi)
}
