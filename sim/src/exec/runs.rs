//! Instructions that work partition by partition, executed together.
//!
//! Such an instruction is checked, traced and recorded as written when its turn comes, but computed only when something else is about to
//! touch memory ([`Interpreter::finish_runs`]). So a run of them is shared between threads once: each thread does all instructions of the
//! run for its own partitions, one partition after the other, and a partition's elements stay in its cache from the load to the store.
//!
//! Nobody can tell, because partition `i` of every instruction touches only what no other partition writes. A storage that the run writes is
//! on chip and accessed from one first row on, row by row; or it is in HBM, only one operand of the run touches it, and its rows lie apart.

use nki_isa::machine::{Leaves, OwnRowsF32};
use nki_isa::{Fault, View};
use rayon::prelude::*;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;

use super::interpreter::Interpreter;
use super::rows::{Accesses, PARALLEL_ABOVE};
use crate::Buffer;
use crate::memory::Memory;
use crate::memory::access::Access;
use crate::memory::elements::{self, Codec, Steps};

/// Partitions that a thread takes through the run at a time: their elements are to stay in its first cache.
const BLOCK: usize = 8;
/// Longest run: tensors that it uses are not given back before it ends.
const LONGEST: usize = 32;

/// Instructions that are not computed yet.
#[derive(Default)]
pub(super) struct Runs {
    steps: Vec<Step>,
    leaves: Vec<Leaves>,
    /// Storages in which nothing was written before the run.
    fresh: Vec<usize>,
    /// A result has been stored in HBM: the next load begins another run, in buffers that are used again.
    stored: bool,
}

struct Step {
    to: Accesses,
    from: Accesses,
    what: What,
}

enum What {
    Map(OwnRowsF32),
    /// One source to one destination, element by element.
    Copy,
}

/// Where the rows of an operand are.
#[derive(Clone, Copy)]
struct Rows {
    /// Position of the first in the storage.
    first: usize,
    /// Bytes to the next.
    pitch: isize,
}

impl Rows {
    fn of(memory: &Memory<'_>, a: &Access) -> Rows {
        let pitch = a.row_step * memory.storages[a.storage].pitch as isize + a.column_step * memory.scale as isize;
        Rows { first: memory.position(a, 0).unwrap_or(0), pitch }
    }

    fn at(self, i: usize) -> usize {
        self.first.wrapping_add_signed(self.pitch * i as isize)
    }
}

/// A source as the rows see it.
struct Input<'m> {
    codec: Codec,
    steps: Steps,
    count: usize,
    /// Dense fp32 that is read where it is.
    plain: bool,
    rows: Rows,
    from: From<'m>,
}

#[derive(Clone, Copy)]
enum From<'m> {
    /// A storage that the run does not write.
    Elsewhere(&'m [u8]),
    /// One that it writes, by number.
    Here(usize),
    /// That of a destination of the same instruction: 0 or 1.
    Beside(usize),
}

/// A destination as the rows see it.
struct Output {
    codec: Codec,
    steps: Steps,
    count: usize,
    /// Dense fp32, and the instruction's only one in its storage: computed in place.
    plain: bool,
    rows: Rows,
    /// The storage, by number.
    piece: usize,
    /// The first destination in the same storage: 0 or 1.
    slot: usize,
}

struct Plan<'m> {
    inputs: SmallVec<[Input<'m>; 4]>,
    outputs: SmallVec<[Output; 2]>,
    what: &'m What,
    /// Elements that have to be converted or computed elsewhere: of sources, and of all operands.
    space: (usize, usize),
}

/// A thread's part of a storage: bytes, and where in the storage they begin.
struct Piece<'d> {
    bytes: &'d mut [u8],
    start: usize,
}

#[derive(Default)]
struct Scratch {
    packed: Vec<u8>,
    floats: Vec<f32>,
}

/// A storage that the run makes and nobody reads after it: its rows need not exist for longer than they are computed with.
struct Passing {
    /// The storage, by number.
    piece: usize,
    /// Its row that is the first of the run.
    row: usize,
    pitch: usize,
}

thread_local! {
    /// Rows of passing storages.
    static PASSING: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// Whether row `i` of `b` can only touch what row `i` of `a` touches, where both are in one storage.
fn in_step(memory: &Memory<'_>, a: &Access, b: &Access) -> bool {
    memory.storages[a.storage].pitch > 0 && a.row == b.row && a.row_step == 1 && b.row_step == 1
}

/// Whether the instruction's partitions are apart from each other.
fn apart(memory: &Memory<'_>, to: &[Access], from: &[Access]) -> bool {
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

impl Runs {
    /// Whether the instruction, whose partitions are apart, may join the run.
    fn admits(&self, memory: &Memory<'_>, to: &[Access], from: &[Access]) -> bool {
        let Some(first) = self.steps.first() else { return true };
        let meets = |old: &Access, written: bool, new: &Access| {
            old.storage != new.storage || !written || in_step(memory, old, new)
        };
        self.steps.len() < LONGEST
            && first.to[0].rows == to[0].rows
            && self.steps.iter().all(|s| {
                to.iter().all(|n| s.to.iter().chain(&s.from).all(|o| meets(o, true, n)))
                    && from.iter().all(|n| s.to.iter().all(|o| meets(o, true, n)))
            })
    }
}

impl Interpreter<'_> {
    /// See [`nki_isa::Machine::map_f32_later`].
    pub(super) fn queue_rows(
        &mut self,
        dsts: &[&View],
        srcs: &[&View],
        f: OwnRowsF32,
        leaves: Option<Leaves>,
    ) -> Result<(), Fault> {
        let (to, from) = self.operands(dsts, srcs)?;
        if apart(&self.memory, &to, &from) {
            self.push(to, from, What::Map(f));
            self.runs.leaves.extend(leaves);
            return Ok(());
        }
        self.finish_runs();
        self.map_rows(&to, &from, &*f);
        if let Some((name, change)) = leaves {
            change(self.core.engine_state.entry(name).or_default());
        }
        Ok(())
    }

    /// Queues a copy; says whether it can be.
    pub(super) fn queue_copy(&mut self, to: &Access, from: &Access) -> bool {
        let (to, from) = (std::slice::from_ref(to), std::slice::from_ref(from));
        let same = to[0].per_row == from[0].per_row && to[0].storage != from[0].storage;
        if !same || !apart(&self.memory, to, from) {
            return false;
        }
        self.push(to.iter().cloned().collect(), from.iter().cloned().collect(), What::Copy);
        true
    }

    fn push(&mut self, to: Accesses, from: Accesses, what: What) {
        if !self.runs.admits(&self.memory, &to, &from) {
            self.finish_runs();
        }
        for (n, a) in to.iter().enumerate() {
            let storage = &self.memory.storages[a.storage];
            let before = self.runs.steps.iter().flat_map(|s| s.to.iter().chain(&s.from)).chain(&to[..n]).chain(&from);
            if storage.init.is_empty() && !before.into_iter().any(|b| b.storage == a.storage) {
                self.runs.fresh.push(a.storage);
            }
            self.memory.mark_written(a);
            self.runs.stored |= self.memory.storages[a.storage].pitch == 0;
        }
        self.runs.steps.push(Step { to, from, what });
    }

    /// Whether instructions wait to be computed: what they touch must stay.
    pub(super) fn has_runs(&self) -> bool {
        !self.runs.steps.is_empty()
    }

    /// Whether the run has come to its end with an instruction that loads from HBM.
    pub(super) fn run_ends(&self, loads: bool) -> bool {
        loads && self.runs.stored
    }

    /// Computes the instructions that wait.
    pub(super) fn finish_runs(&mut self) {
        self.compute_runs(&[]);
    }

    /// Computes the instructions that wait. Nobody will read the storages `dead` any more.
    pub(super) fn compute_runs(&mut self, dead: &[usize]) {
        if self.runs.steps.is_empty() {
            return;
        }
        let Runs { steps, leaves, fresh, .. } = std::mem::take(&mut self.runs);
        let rows = steps[0].to[0].rows;
        let elements: usize = steps.iter().flat_map(|s| s.to.iter().chain(&s.from)).map(Access::elements).sum();
        let threads = rayon::current_num_threads().min(rows);
        let shares = if elements < PARALLEL_ABOVE { 1 } else { threads };

        let mut written: Vec<&Access> = Vec::new();
        for a in steps.iter().flat_map(|s| &s.to) {
            if !written.iter().any(|w| w.storage == a.storage) {
                written.push(a);
            }
        }
        let passes = |a: &Access| dead.contains(&a.storage) && fresh.contains(&a.storage);
        let passing = |(piece, a): (usize, &&Access)| {
            let pitch = self.memory.storages[a.storage].pitch;
            (passes(a) && pitch.is_multiple_of(64)).then_some(Passing { piece, row: a.row, pitch })
        };
        let passing: Vec<Passing> = written.iter().enumerate().filter_map(passing).collect();
        let mut taken: Vec<Option<Buffer>> = Vec::new();
        for (k, a) in written.iter().enumerate() {
            let stays = !passing.iter().any(|p| p.piece == k);
            taken.push(stays.then(|| self.memory.storages[a.storage].take()));
        }
        let memory = &self.memory;
        let plans: Vec<Plan<'_>> = steps.iter().map(|s| plan(memory, &written, &taken, s)).collect();
        let plans = without_copies(plans, &passing, |k| taken[k].as_deref().is_none_or(aligned));
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
            let (mut scratch, mut space) = (SCRATCH.take(), PASSING.take());
            pass(rows, pieces, &plans, &passing, &mut scratch, &mut space);
            SCRATCH.set(scratch);
            PASSING.set(space);
        };
        if parts.len() > 1 {
            parts.into_par_iter().with_max_len(1).for_each(compute);
        } else {
            parts.into_iter().for_each(compute);
        }
        drop(plans);
        let storages: SmallVec<[usize; 8]> = written.iter().map(|a| a.storage).collect();
        for (storage, data) in storages.into_iter().zip(taken) {
            if let Some(data) = data {
                self.memory.storages[storage].put(data);
            }
        }
        for (name, change) in leaves {
            change(self.core.engine_state.entry(name).or_default());
        }
    }
}

/// Takes a thread's rows through the run.
fn pass<'d>(
    rows: Range<usize>,
    mut pieces: Vec<Option<Piece<'d>>>,
    plans: &[Plan<'_>],
    passing: &[Passing],
    scratch: &mut Scratch,
    space: &'d mut Vec<u64>,
) {
    let needed: usize = passing.iter().map(|p| BLOCK * p.pitch).sum();
    space.resize(space.len().max(needed / 8 + 8), 0);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(space);
    let aligned = bytes.as_ptr().align_offset(64).min(63);
    let mut rest = &mut bytes[aligned..];
    for p in passing {
        let (bytes, others) = rest.split_at_mut(BLOCK * p.pitch);
        rest = others;
        pieces[p.piece] = Some(Piece { bytes, start: 0 });
    }
    for first in rows.clone().step_by(BLOCK) {
        for p in passing {
            if let Some(piece) = &mut pieces[p.piece] {
                piece.start = (p.row + first) * p.pitch;
            }
        }
        for plan in plans {
            for i in first..rows.end.min(first + BLOCK) {
                match plan.what {
                    What::Map(f) => plan.map(i, &mut pieces, f, scratch),
                    What::Copy => plan.copy(i, &mut pieces, scratch),
                }
            }
        }
    }
}

/// The bytes of a storage that rows of a run may write: on chip whole rows.
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

fn aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(4) == 0
}

/// Whether rows in memory that is aligned can be used where they are.
fn is_plain(codec: Codec, steps: &Steps, rows: Rows) -> bool {
    rows.first.is_multiple_of(4) && rows.pitch % 4 == 0 && codec.is_f32() && elements::is_dense(steps, codec)
}

fn plan<'m>(memory: &'m Memory<'_>, written: &[&Access], buffers: &[Option<Buffer>], step: &'m Step) -> Plan<'m> {
    let piece = |a: &Access| written.iter().position(|w| w.storage == a.storage);
    let slot = |a: &Access| step.to.iter().position(|o| o.storage == a.storage);
    // Rows of passing storages are aligned.
    let all_aligned = |k: usize| buffers[k].as_deref().is_none_or(aligned);
    let input = |a: &'m Access| {
        let (steps, rows) = (memory.steps(a), Rows::of(memory, a));
        let (from, aligned) = match (slot(a), piece(a)) {
            (Some(n), _) => (From::Beside(n), false),
            (None, Some(k)) => (From::Here(k), all_aligned(k)),
            (None, None) => {
                let bytes = memory.storages[a.storage].bytes();
                (From::Elsewhere(bytes), aligned(bytes))
            }
        };
        let plain = aligned && is_plain(a.codec, &steps, rows);
        Input { codec: a.codec, steps, count: a.per_row, plain, rows, from }
    };
    let output = |a: &'m Access| {
        let (steps, rows) = (memory.steps(a), Rows::of(memory, a));
        let alone = step.to.iter().filter(|o| o.storage == a.storage).count() == 1;
        let (piece, slot) = (piece(a).unwrap_or(0), slot(a).unwrap_or(0));
        let plain = alone && all_aligned(piece) && is_plain(a.codec, &steps, rows);
        Output { codec: a.codec, steps, count: a.per_row, plain, rows, piece, slot }
    };
    Plan {
        inputs: step.from.iter().map(input).collect(),
        outputs: step.to.iter().map(output).collect(),
        what: &step.what,
        space: (0, 0),
    }
}

/// Leaves out copies whose one side is a passing storage that nothing else writes (a load) or else touches (a store): who reads what was
/// loaded reads it where it came from, and who made what is stored writes it where it goes.
fn without_copies<'m>(
    mut plans: Vec<Plan<'m>>,
    passing: &[Passing],
    all_aligned: impl Fn(usize) -> bool,
) -> Vec<Plan<'m>> {
    let passes = |k: usize| passing.iter().any(|p| p.piece == k);
    let mut n = 0;
    while n < plans.len() {
        let writes = |k: usize| plans.iter().flat_map(|p| &p.outputs).filter(|o| o.piece == k).count();
        let reads = |k: usize| {
            let is = |p: &Plan<'_>, i: &Input<'_>| match i.from {
                From::Elsewhere(_) => false,
                From::Here(here) => here == k,
                From::Beside(slot) => p.outputs[slot].piece == k,
            };
            plans.iter().map(|p| p.inputs.iter().filter(|i| is(p, i)).count()).sum::<usize>()
        };
        let Plan { what: What::Copy, inputs, outputs, .. } = &plans[n] else {
            n += 1;
            continue;
        };
        let (input, output) = (&inputs[0], &outputs[0]);
        let dense = elements::is_dense(&input.steps, input.codec) && elements::is_dense(&output.steps, output.codec);
        let same = dense && input.codec == output.codec;
        let (from, source, count, codec) = (input.from, input.rows, input.count, input.codec);
        let (to, target) = (output.piece, output.rows);
        match from {
            From::Elsewhere(bytes) if same && passes(to) && writes(to) == 1 => {
                for input in plans.iter_mut().flat_map(|p| &mut p.inputs) {
                    if matches!(input.from, From::Here(k) if k == to) {
                        let first = source.first + input.rows.first - target.first;
                        input.rows = Rows { first, pitch: source.pitch };
                        input.from = From::Elsewhere(bytes);
                        input.plain = aligned(bytes) && is_plain(input.codec, &input.steps, input.rows);
                    }
                }
            }
            From::Here(k) if same && passes(k) && writes(k) == 1 && reads(k) == 1 => {
                let made = plans.iter_mut().flat_map(|p| p.outputs.iter_mut().enumerate()).find(|(_, o)| o.piece == k);
                let same = |o: &Output| {
                    let place = (o.rows.first, o.count, o.codec) == (source.first, count, codec);
                    place && elements::is_dense(&o.steps, codec)
                };
                let Some((slot, made)) = made.filter(|(_, o)| same(o)) else {
                    n += 1;
                    continue;
                };
                (made.piece, made.rows, made.slot) = (to, target, slot);
                made.plain = all_aligned(to) && is_plain(made.codec, &made.steps, target);
            }
            _ => {
                n += 1;
                continue;
            }
        }
        plans.remove(n);
    }
    for p in &mut plans {
        let sources: usize = p.inputs.iter().filter(|i| !i.plain).map(|i| i.count).sum();
        let results: usize = p.outputs.iter().filter(|o| !o.plain).map(|o| o.count).sum();
        p.space = (sources, sources + results);
    }
    plans
}

/// A row of fp32 where it is.
fn words(bytes: &[u8], at: usize, count: usize) -> &[f32] {
    bytemuck::cast_slice(&bytes[at..at + count * 4])
}

impl Plan<'_> {
    /// One partition of an instruction: borrows or converts the sources, calls `f`, writes what was not computed in place.
    fn map(&self, i: usize, pieces: &mut [Option<Piece<'_>>], f: &OwnRowsF32, scratch: &mut Scratch) {
        let Scratch { packed, floats } = scratch;
        if floats.len() < self.space.1 {
            floats.resize(self.space.1, 0.0);
        }
        let (mut sources, results) = floats.split_at_mut(self.space.0);
        // The destinations' storages are set apart from those that the sources are read in.
        let mut own: [Option<Piece<'_>>; 2] = [None, None];
        for (n, o) in self.outputs.iter().enumerate() {
            if o.slot == n {
                own[n] = pieces[o.piece].take();
            }
        }
        let mut ins: SmallVec<[&[f32]; 4]> = SmallVec::new();
        for input in &self.inputs {
            let at = input.rows.at(i);
            let piece = match input.from {
                From::Elsewhere(_) => None,
                From::Here(k) => pieces[k].as_ref(),
                From::Beside(n) => {
                    let (mine, others) = std::mem::take(&mut sources).split_at_mut(input.count);
                    sources = others;
                    if let Some(p) = &own[n] {
                        elements::read_f32(p.bytes, at - p.start, &input.steps, input.codec, packed, mine);
                    }
                    ins.push(mine);
                    continue;
                }
            };
            let (bytes, at) = match (input.from, piece) {
                (From::Elsewhere(bytes), _) => (bytes, at),
                (_, Some(p)) => (&*p.bytes, at - p.start),
                _ => continue,
            };
            if input.plain {
                ins.push(words(bytes, at, input.count));
                continue;
            }
            let (mine, others) = std::mem::take(&mut sources).split_at_mut(input.count);
            sources = others;
            elements::read_f32(bytes, at, &input.steps, input.codec, packed, mine);
            ins.push(mine);
        }
        {
            let [first, second] = &mut own;
            let mut places = [first.as_mut(), second.as_mut()];
            let mut rest = &mut *results;
            let mut outs: SmallVec<[&mut [f32]; 2]> = SmallVec::new();
            for (o, place) in self.outputs.iter().zip(&mut places) {
                match place.take() {
                    Some(p) if o.plain => {
                        let at = o.rows.at(i) - p.start;
                        outs.push(bytemuck::cast_slice_mut(&mut p.bytes[at..at + o.count * 4]));
                    }
                    _ => {
                        let (mine, others) = std::mem::take(&mut rest).split_at_mut(o.count);
                        rest = others;
                        outs.push(mine);
                    }
                }
            }
            f(i, &ins, &mut outs);
        }
        drop(ins);
        let mut at = 0;
        for o in self.outputs.iter().filter(|o| !o.plain) {
            let values = &results[at..at + o.count];
            at += o.count;
            if let Some(p) = &mut own[o.slot] {
                elements::write_f32(p.bytes, o.rows.at(i) - p.start, &o.steps, o.codec, packed, values);
            }
        }
        for (o, piece) in self.outputs.iter().zip(own) {
            if piece.is_some() {
                pieces[o.piece] = piece;
            }
        }
    }

    /// One row of a copy.
    fn copy(&self, i: usize, pieces: &mut [Option<Piece<'_>>], scratch: &mut Scratch) {
        let ([input], [output]) = (&self.inputs[..], &self.outputs[..]) else { return };
        let Some(to) = pieces[output.piece].take() else { return };
        let (bytes, at) = match input.from {
            From::Elsewhere(bytes) => (bytes, input.rows.at(i)),
            From::Here(k) | From::Beside(k) => {
                let piece = pieces[k].as_ref().expect("a copy's source lies in another storage");
                (&*piece.bytes, input.rows.at(i) - piece.start)
            }
        };
        let to_at = output.rows.at(i) - to.start;
        let Scratch { packed, floats } = scratch;
        let size = output.codec.size();
        let length = output.count * size;
        if input.codec != output.codec {
            floats.resize(output.count.max(floats.len()), 0.0);
            let values = &mut floats[..output.count];
            elements::read_f32(bytes, at, &input.steps, input.codec, packed, values);
            elements::write_f32(to.bytes, to_at, &output.steps, output.codec, packed, values);
        } else if !elements::is_dense(&output.steps, output.codec) {
            packed.resize(length, 0);
            elements::gather(bytes, at, &input.steps, size, packed);
            elements::scatter(to.bytes, to_at, &output.steps, size, packed);
        } else if elements::is_dense(&input.steps, input.codec) {
            elements::copy_bytes(&mut to.bytes[to_at..to_at + length], &bytes[at..at + length]);
        } else {
            elements::gather(bytes, at, &input.steps, size, &mut to.bytes[to_at..to_at + length]);
        }
        pieces[output.piece] = Some(to);
    }
}
