//! A thread's plan for the rows of an instruction: their locations, conversions, and the functions applied to them.

use nki_isa::machine::{BatchF32, RowF32, RowsF32};
use smallvec::SmallVec;
use std::ops::Range;

use super::run::{BLOCK, Step, StepKind, Transient};
use crate::Buffer;
use crate::exec::values::Watch;
use crate::memory::Memory;
use crate::memory::access::Access;
use crate::memory::elements::{self, Codec, Steps};

/// The location of an operand's rows.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// Position of the first row in the storage.
    first: usize,
    /// Bytes to the next row.
    pitch: isize,
}

impl Rows {
    pub(super) fn of(memory: &Memory<'_>, a: &Access) -> Rows {
        let pitch = a.row_step * memory.storages[a.storage].pitch as isize + a.column_step * memory.scale as isize;
        Rows { first: memory.position(a, 0).unwrap_or(0), pitch }
    }

    pub(super) fn at(self, i: usize) -> usize {
        self.first.wrapping_add_signed(self.pitch * i as isize)
    }
}

/// A source of the rows.
struct Input<'m> {
    codec: Codec,
    steps: Steps,
    count: usize,
    /// Dense fp32 that is read in place.
    plain: bool,
    rows: Rows,
    from: InputSource<'m>,
}

#[derive(Clone, Copy)]
enum InputSource<'m> {
    /// A storage that the run does not write.
    Elsewhere(&'m [u8]),
    /// A storage that the run writes, by number.
    Here(usize),
    /// The storage of a destination of the same instruction: 0 or 1.
    Beside(usize),
}

/// A destination of the rows.
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

pub(super) struct Plan<'m> {
    inputs: SmallVec<[Input<'m>; 4]>,
    outputs: SmallVec<[Output; 2]>,
    what: &'m StepKind,
    watch: Option<&'m Watch<'m>>,
    /// Elements of a row that need scratch memory: of sources, and of destinations.
    space: (usize, usize),
}

/// A thread's part of a storage: its bytes, and their start in the storage.
pub(super) struct Piece<'d> {
    pub(super) bytes: &'d mut [u8],
    pub(super) start: usize,
}

/// Buffers that a thread keeps.
#[derive(Default)]
pub(super) struct Scratch {
    packed: Vec<u8>,
    floats: Vec<f32>,
}

/// The first `count` elements of a buffer, extended if necessary.
fn at_least(floats: &mut Vec<f32>, count: usize) -> &mut [f32] {
    if floats.len() < count {
        floats.resize(count, 0.0);
    }
    &mut floats[..count]
}

pub(super) fn aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(4) == 0
}

/// Whether rows in aligned memory can be used in place.
fn is_plain(codec: Codec, steps: &Steps, rows: Rows) -> bool {
    rows.first.is_multiple_of(4) && rows.pitch % 4 == 0 && codec.is_f32() && elements::is_dense(steps, codec)
}

pub(super) fn plan<'m>(
    memory: &'m Memory<'_>,
    written: &[&Access],
    buffers: &[Option<Buffer>],
    step: &'m Step<'_>,
) -> Plan<'m> {
    let piece = |a: &Access| written.iter().position(|w| w.storage == a.storage);
    let slot = |a: &Access| step.to.iter().position(|o| o.storage == a.storage);
    // Rows of transient storages are aligned.
    let all_aligned = |k: usize| buffers[k].as_deref().is_none_or(aligned);
    let input = |a: &'m Access| {
        let (steps, rows) = (memory.steps(a), Rows::of(memory, a));
        let (from, aligned) = match (slot(a), piece(a)) {
            (Some(n), _) => (InputSource::Beside(n), false),
            (None, Some(k)) => (InputSource::Here(k), all_aligned(k)),
            (None, None) => {
                let bytes = memory.storages[a.storage].bytes();
                (InputSource::Elsewhere(bytes), aligned(bytes))
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
        watch: step.watch.as_deref(),
        space: (0, 0),
    }
}

/// Omits copies with a transient storage on one side that nothing else writes (a load) or accesses (a store): readers of a loaded
/// value read its source, and the producer of a stored value writes its destination, if nothing accesses that location in between.
pub(super) fn without_copies<'m>(
    mut plans: Vec<Plan<'m>>,
    transient: &[Transient],
    all_aligned: impl Fn(usize) -> bool,
) -> Vec<Plan<'m>> {
    let passes = |k: usize| transient.iter().any(|p| p.piece == k);
    let mut n = 0;
    while n < plans.len() {
        let writes = |k: usize| plans.iter().flat_map(|p| &p.outputs).filter(|o| o.piece == k).count();
        let is = |p: &Plan<'_>, i: &Input<'_>, k: usize| match i.from {
            InputSource::Elsewhere(_) => false,
            InputSource::Here(here) => here == k,
            InputSource::Beside(slot) => p.outputs[slot].piece == k,
        };
        let reads = |k: usize| plans.iter().map(|p| p.inputs.iter().filter(|i| is(p, i, k)).count()).sum::<usize>();
        let Plan { what: StepKind::Copy, inputs, outputs, .. } = &plans[n] else {
            n += 1;
            continue;
        };
        let (input, output) = (&inputs[0], &outputs[0]);
        let dense = elements::is_dense(&input.steps, input.codec) && elements::is_dense(&output.steps, output.codec);
        let same = dense && input.codec == output.codec;
        let (from, source, count, codec) = (input.from, input.rows, input.count, input.codec);
        let (to, target) = (output.piece, output.rows);
        match from {
            InputSource::Elsewhere(bytes) if same && passes(to) && writes(to) == 1 => {
                for input in plans.iter_mut().flat_map(|p| &mut p.inputs) {
                    if matches!(input.from, InputSource::Here(k) if k == to) {
                        let first = source.first + input.rows.first - target.first;
                        input.rows = Rows { first, pitch: source.pitch };
                        input.from = InputSource::Elsewhere(bytes);
                        input.plain = aligned(bytes) && is_plain(input.codec, &input.steps, input.rows);
                    }
                }
            }
            InputSource::Here(k) if same && passes(k) && writes(k) == 1 && reads(k) == 1 => {
                let made = plans[..n].iter().position(|p| p.outputs.iter().any(|o| o.piece == k));
                let touches =
                    |p: &Plan<'_>| p.outputs.iter().any(|o| o.piece == to) || p.inputs.iter().any(|i| is(p, i, to));
                let early = made.filter(|&m| !plans[m..n].iter().any(touches));
                let same = |o: &Output| {
                    let place = (o.rows.first, o.count, o.codec) == (source.first, count, codec);
                    place && elements::is_dense(&o.steps, codec)
                };
                let output = early.and_then(|m| plans[m].outputs.iter_mut().enumerate().find(|(_, o)| o.piece == k));
                let Some((slot, made)) = output.filter(|(_, o)| same(o)) else {
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
        p.space = (sources, results);
    }
    plans
}

/// Maximum number of sources of an instruction whose rows are used in place.
const MOST_PLAIN: usize = 6;

/// A row of fp32 in place.
fn words(bytes: &[u8], at: usize, count: usize) -> &[f32] {
    bytemuck::cast_slice(&bytes[at..at + count * 4])
}

/// The storages of an instruction's destinations, separate from those of its sources.
type Own<'d> = [Option<Piece<'d>>; 2];

impl Plan<'_> {
    /// Computes some rows.
    pub(super) fn compute(&self, rows: Range<usize>, pieces: &mut [Option<Piece<'_>>], scratch: &mut Scratch) {
        let mut own: Own<'_> = [None, None];
        for (n, o) in self.outputs.iter().enumerate() {
            if o.slot == n {
                own[n] = pieces[o.piece].take();
            }
        }
        match self.what {
            StepKind::Map(f) if self.is_plain() => self.map_plain(rows, &mut own, pieces, f),
            StepKind::Map(f) => rows.for_each(|i| self.map(i, &mut own, pieces, f, scratch)),
            StepKind::Batch(f) => self.batch(rows, &mut own, pieces, f, scratch),
            StepKind::Copy => rows.for_each(|i| self.copy(i, &mut own, pieces, scratch)),
            StepKind::Fill(value) => rows.for_each(|i| self.fill(i, &mut own, *value, scratch)),
        }
        for (o, piece) in self.outputs.iter().zip(own) {
            if piece.is_some() {
                pieces[o.piece] = piece;
            }
        }
    }

    /// Passes a row of 32-bit integers of a source to the watch.
    fn inspect_integers(&self, i: usize, source: usize, bytes: &[u8], at: usize) {
        if let Some(watch) = self.watch.filter(|w| w.takes_integers(source)) {
            let input = &self.inputs[source];
            let mut packed = vec![0; input.count * input.codec.size()];
            elements::gather(bytes, at, &input.steps, input.codec.size(), &mut packed);
            let mut values = vec![0; input.count];
            input.codec.to_i64(&packed, &mut values);
            watch.integers(i, source, &values);
        }
    }

    /// The sources' rows of a partition, borrowed, or converted in `space`.
    fn sources<'a>(
        &'a self,
        i: usize,
        own: &Own<'_>,
        pieces: &'a [Option<Piece<'_>>],
        mut space: &'a mut [f32],
        packed: &mut Vec<u8>,
    ) -> SmallVec<[&'a [f32]; 4]> {
        let mut ins = SmallVec::new();
        for (n, input) in self.inputs.iter().enumerate() {
            let at = input.rows.at(i);
            let convert = |bytes: &[u8], at: usize, space: &mut &'a mut [f32], packed: &mut Vec<u8>| {
                self.inspect_integers(i, n, bytes, at);
                let (mine, others) = std::mem::take(space).split_at_mut(input.count);
                *space = others;
                elements::read_f32(bytes, at, &input.steps, input.codec, packed, mine);
                &*mine
            };
            let (bytes, at): (&[u8], usize) = match input.from {
                InputSource::Elsewhere(bytes) => (bytes, at),
                InputSource::Here(k) => {
                    let Some(p) = &pieces[k] else { continue };
                    (p.bytes, at - p.start)
                }
                InputSource::Beside(n) => {
                    let Some(p) = &own[n] else { continue };
                    ins.push(convert(p.bytes, at - p.start, &mut space, packed));
                    continue;
                }
            };
            ins.push(if input.plain { words(bytes, at, input.count) } else { convert(bytes, at, &mut space, packed) });
        }
        ins
    }

    /// Whether every row can be used in place.
    fn is_plain(&self) -> bool {
        self.space == (0, 0) && self.inputs.len() <= MOST_PLAIN
    }

    /// Partitions whose rows are all used in place: only `f` remains, since rows may be short.
    fn map_plain(&self, rows: Range<usize>, own: &mut Own<'_>, pieces: &[Option<Piece<'_>>], f: &RowsF32) {
        let mut sources: [(&[u8], usize); MOST_PLAIN] = [(&[], 0); MOST_PLAIN];
        for (source, input) in sources.iter_mut().zip(&self.inputs) {
            *source = match input.from {
                InputSource::Elsewhere(bytes) => (bytes, 0),
                InputSource::Here(k) => {
                    let piece = pieces[k].as_ref().expect("what is read beside the destinations stays in its place");
                    (&*piece.bytes, piece.start)
                }
                InputSource::Beside(_) => unreachable!("sources beside a destination are copied"),
            };
        }
        let [first, second] = own;
        for i in rows {
            let mut ins: [&[f32]; MOST_PLAIN] = [&[]; MOST_PLAIN];
            for ((row, (bytes, start)), input) in ins.iter_mut().zip(&sources).zip(&self.inputs) {
                *row = words(bytes, input.rows.at(i) - start, input.count);
            }
            let mut outs: [&mut [f32]; 2] = [&mut [], &mut []];
            for ((row, o), place) in outs.iter_mut().zip(&self.outputs).zip([first.as_mut(), second.as_mut()]) {
                if let Some(p) = place {
                    let at = o.rows.at(i) - p.start;
                    *row = bytemuck::cast_slice_mut(&mut p.bytes[at..at + o.count * 4]);
                }
            }
            let (ins, outs) = (&ins[..self.inputs.len()], &mut outs[..self.outputs.len()]);
            f(i, ins, outs);
            if let Some(watch) = self.watch {
                watch.row(i, ins, outs);
            }
        }
    }

    /// One partition: calls `f` and writes the results that were not computed in place.
    fn map(&self, i: usize, own: &mut Own<'_>, pieces: &[Option<Piece<'_>>], f: &RowsF32, scratch: &mut Scratch) {
        let Scratch { packed, floats } = scratch;
        let (space, results) = at_least(floats, self.space.0 + self.space.1).split_at_mut(self.space.0);
        let ins = self.sources(i, own, pieces, space, packed);
        {
            let [first, second] = own;
            let mut rest = &mut *results;
            let mut outs: SmallVec<[&mut [f32]; 2]> = SmallVec::new();
            for (o, place) in self.outputs.iter().zip([first.as_mut(), second.as_mut()]) {
                match place {
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
            if let Some(watch) = self.watch {
                watch.row(i, &ins, &outs);
            }
        }
        let mut values = &*results;
        for o in self.outputs.iter().filter(|o| !o.plain) {
            values = self.store(i, o, own, values, packed);
        }
    }

    /// Writes a destination's row from the start of `values`; returns the rest.
    fn store<'v>(&self, i: usize, o: &Output, own: &mut Own<'_>, values: &'v [f32], packed: &mut Vec<u8>) -> &'v [f32] {
        let (mine, others) = values.split_at(o.count);
        if let Some(p) = &mut own[o.slot] {
            elements::write_f32(p.bytes, o.rows.at(i) - p.start, &o.steps, o.codec, packed, mine);
        }
        others
    }

    /// Several partitions at once: the results of `f` are always written afterwards.
    fn batch(
        &self,
        rows: Range<usize>,
        own: &mut Own<'_>,
        pieces: &[Option<Piece<'_>>],
        f: &BatchF32,
        scratch: &mut Scratch,
    ) {
        let Scratch { packed, floats } = scratch;
        let width: usize = self.outputs.iter().map(|o| o.count).sum();
        let floats = at_least(floats, rows.len() * (self.space.0 + width));
        let (space, results) = floats.split_at_mut(rows.len() * self.space.0);
        {
            let mut spaces = space.chunks_exact_mut(self.space.0.max(1));
            let mut rest = &mut *results;
            let mut set: SmallVec<[RowF32<'_>; BLOCK]> = SmallVec::new();
            for i in rows.clone() {
                let ins = self.sources(i, own, pieces, spaces.next().unwrap_or_default(), packed);
                let mut outs = SmallVec::new();
                for o in &self.outputs {
                    let (mine, others) = std::mem::take(&mut rest).split_at_mut(o.count);
                    rest = others;
                    outs.push(mine);
                }
                set.push(RowF32 { partition: i, ins, outs });
            }
            f(&mut set);
            if let Some(watch) = self.watch {
                set.iter().for_each(|row| watch.row(row.partition, &row.ins, &row.outs));
            }
        }
        let mut values = &*results;
        for i in rows {
            for o in &self.outputs {
                values = self.store(i, o, own, values, packed);
            }
        }
    }

    /// One row of a copy.
    fn copy(&self, i: usize, own: &mut Own<'_>, pieces: &[Option<Piece<'_>>], scratch: &mut Scratch) {
        let ([input], [output], Some(to)) = (&self.inputs[..], &self.outputs[..], &mut own[0]) else { return };
        let (bytes, at) = match input.from {
            InputSource::Elsewhere(bytes) => (bytes, input.rows.at(i)),
            InputSource::Here(k) | InputSource::Beside(k) => {
                let piece = pieces[k].as_ref().expect("a copy's source is in another storage");
                (&*piece.bytes, input.rows.at(i) - piece.start)
            }
        };
        let to_at = output.rows.at(i) - to.start;
        let Scratch { packed, floats } = scratch;
        let size = output.codec.size();
        let length = output.count * size;
        if input.codec != output.codec {
            let values = at_least(floats, output.count);
            self.inspect_integers(i, 0, bytes, at);
            elements::read_f32(bytes, at, &input.steps, input.codec, packed, values);
            if let Some(watch) = self.watch {
                watch.row(i, &[], &[&mut *values]);
            }
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
    }

    /// One row of equal elements.
    fn fill(&self, i: usize, own: &mut Own<'_>, value: [u8; 4], scratch: &mut Scratch) {
        let ([output], Some(to)) = (&self.outputs[..], &mut own[0]) else { return };
        let at = output.rows.at(i) - to.start;
        let size = output.codec.size();
        let length = output.count * size;
        if elements::is_dense(&output.steps, output.codec) {
            return elements::fill(&mut to.bytes[at..at + length], &value[..size]);
        }
        scratch.packed.resize(length, 0);
        elements::fill(&mut scratch.packed, &value[..size]);
        elements::scatter(to.bytes, at, &output.steps, size, &scratch.packed);
    }
}
