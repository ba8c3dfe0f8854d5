//! Functions applied to every partition.

use nki_isa::machine::{RowsF32, RowsI64};
use nki_isa::{Fault, View};
use rayon::prelude::*;
use smallvec::SmallVec;

use super::interpreter::Interpreter;
use super::values::Watch;
use crate::Buffer;
use crate::memory::access::Access;
use crate::memory::elements::{self, Codec, Steps};

/// Elements (of all operands together) from which work is shared between threads.
pub(super) const PARALLEL_ABOVE: usize = 64 * 1024;

/// Buffers kept between instructions.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    bytes: Vec<u8>,
    floats: Vec<f32>,
}

pub(super) type Accesses = SmallVec<[Access; 4]>;

/// The bytes of one partition of each storage that is written.
type Chunks<'c, 'd> = &'c mut [&'d mut [u8]];

/// A source as the rows see it.
struct Input<'a> {
    codec: Codec,
    steps: Steps,
    /// Elements of a row.
    count: usize,
    dense: bool,
    from: From<'a>,
}

enum From<'a> {
    /// Another storage than those written: position of the first row, bytes to the next.
    Elsewhere(&'a [u8], usize, isize),
    /// The same partition of a storage that is written: which, and the position in the partition.
    Here(usize, usize),
}

/// A destination as the rows see it.
struct Output {
    codec: Codec,
    steps: Steps,
    count: usize,
    chunk: usize,
    position: usize,
    /// Rows can be computed in place: dense fp32, and nothing else writes to the storage.
    direct: bool,
}

/// One partition: borrows or converts the sources, calls `f`, writes what was not computed in place.
fn row(
    i: usize,
    chunks: Chunks<'_, '_>,
    inputs: &[Input<'_>],
    outputs: &[Output],
    (f, watch): (RowsF32<'_>, Option<&Watch<'_>>),
    scratch: &mut Scratch,
) {
    let Scratch { bytes: packed, floats } = scratch;
    let needed = inputs.iter().map(|i| i.count).sum::<usize>() + outputs.iter().map(|o| o.count).sum::<usize>();
    if floats.len() < needed {
        floats.resize(needed, 0.0);
    }
    let (sources, results) = floats.split_at_mut(inputs.iter().map(|i| i.count).sum());
    let mut rest = sources;
    let mut ins: SmallVec<[&[f32]; 4]> = SmallVec::new();
    for input in inputs {
        let (bytes, at): (&[u8], usize) = match input.from {
            From::Elsewhere(bytes, first, pitch) => (bytes, first.wrapping_add_signed(pitch * i as isize)),
            From::Here(chunk, at) => (&*chunks[chunk], at),
        };
        if let From::Elsewhere(bytes, ..) = input.from
            && input.dense
            && input.codec.is_f32()
            && let Ok(words) = bytemuck::try_cast_slice(&bytes[at..at + input.count * 4])
        {
            ins.push(words);
            continue;
        }
        let (mine, others) = std::mem::take(&mut rest).split_at_mut(input.count);
        rest = others;
        elements::read_f32(bytes, at, &input.steps, input.codec, packed, mine);
        ins.push(mine);
    }
    {
        let mut free: SmallVec<[Option<&mut [u8]>; 2]> = chunks.iter_mut().map(|c| Some(&mut **c)).collect();
        let mut rest = &mut *results;
        let mut outs: SmallVec<[&mut [f32]; 2]> = SmallVec::new();
        for output in outputs {
            let (mine, others) = std::mem::take(&mut rest).split_at_mut(output.count);
            rest = others;
            let place = if output.direct { free[output.chunk].take() } else { None };
            let place = place.and_then(|c| c.get_mut(output.position..output.position + output.count * 4));
            match place.map(bytemuck::try_cast_slice_mut) {
                Some(Ok(words)) => outs.push(words),
                _ => outs.push(mine),
            }
        }
        f(i, &ins, &mut outs);
        if let Some(watch) = watch {
            watch.row(i, &ins, &outs);
        }
    }
    let mut done = 0;
    for output in outputs {
        let values = &results[done..done + output.count];
        done += output.count;
        if !output.direct {
            elements::write_f32(chunks[output.chunk], output.position, &output.steps, output.codec, packed, values);
        }
    }
}

impl<'p> Interpreter<'p> {
    /// Resolves the operands of a function of rows, while earlier ones wait to be computed.
    pub(super) fn operands(&mut self, dsts: &[&View], srcs: &[&View]) -> Result<(Accesses, Accesses), Fault> {
        self.finish_products();
        let from = srcs.iter().map(|v| self.source_beside(v)).collect::<Result<Accesses, _>>()?;
        let to = dsts.iter().map(|v| self.destination_beside(v)).collect::<Result<Accesses, _>>()?;
        let rows = to.first().or(from.first()).map_or(0, Access::partitions);
        if let Some(other) = from.iter().chain(&to).find(|a| a.partitions() != rows) {
            return Err(Fault::new(
                "partition-mismatch",
                format!("operands have {rows} and {} partitions", other.partitions()),
            ));
        }
        Ok((to, from))
    }

    /// The storages written, each once with its first row, if every partition can be computed by itself: nothing that is written in one
    /// partition is read in another.
    fn partitionwise(&self, to: &[Access], from: &[Access]) -> Option<SmallVec<[(usize, usize); 2]>> {
        let mut written: SmallVec<[(usize, usize); 2]> = SmallVec::new();
        for a in to {
            let storage = &self.memory.storages[a.storage];
            if a.starts.is_some() || a.row_step != 1 || storage.pitch == 0 {
                return None;
            }
            match written.iter().find(|w| w.0 == a.storage) {
                Some(w) if w.1 != a.row => return None,
                Some(_) => {}
                None => written.push((a.storage, a.row)),
            }
        }
        let separate = |a: &Access| {
            a.starts.is_none()
                && written.iter().all(|&(storage, row)| a.storage != storage || (a.row == row && a.row_step == 1))
        };
        (written.len() <= 2 && !written.is_empty() && from.iter().all(separate)).then_some(written)
    }

    /// See [`nki_isa::Machine::map_f32`].
    pub(super) fn rows_f32(&mut self, dsts: &[&View], srcs: &[&View], f: RowsF32<'_>) -> Result<(), Fault> {
        let (to, from) = self.operands(dsts, srcs)?;
        self.finish_runs();
        let watch = self.watch(&to, &from, false);
        self.map_rows(&to, &from, f, watch);
        Ok(())
    }

    /// Computes all rows now.
    pub(super) fn map_rows(&mut self, to: &[Access], from: &[Access], f: RowsF32<'_>, watch: Option<Box<Watch<'p>>>) {
        let watch = watch.as_deref();
        if let Some(watch) = watch {
            self.look_at_integers(watch, from);
        }
        match self.partitionwise(to, from) {
            Some(written) => self.rows_in_place(to, from, &written, (f, watch)),
            None => self.rows_gathered(to, from, (f, watch)),
        }
        if let Some(watch) = watch {
            self.report_values(watch, to, from);
        }
        for a in to {
            self.memory.mark_written(a);
        }
    }

    /// Shows the watch all sources of 32-bit integers.
    pub(super) fn look_at_integers(&self, watch: &Watch<'_>, from: &[Access]) {
        for (n, a) in from.iter().enumerate().filter(|(n, _)| watch.wants_integers(*n)) {
            let mut bytes = vec![0; a.elements() * a.codec.size()];
            self.memory.gather(a, &mut bytes);
            let mut values = vec![0; a.elements()];
            a.codec.to_i64(&bytes, &mut values);
            values.chunks_exact(a.width().max(1)).enumerate().for_each(|(row, v)| watch.integers(row, n, v));
        }
    }

    fn rows_in_place(
        &mut self,
        to: &[Access],
        from: &[Access],
        written: &[(usize, usize)],
        f: (RowsF32<'_>, Option<&Watch<'_>>),
    ) {
        let rows = to.first().map_or(0, |a| a.rows);
        let mut taken: SmallVec<[Buffer; 2]> = written.iter().map(|&(s, _)| self.memory.storages[s].take()).collect();
        let memory = &self.memory;
        let chunk = |a: &Access| written.iter().position(|w| w.0 == a.storage);
        let inputs: SmallVec<[Input<'_>; 4]> = from
            .iter()
            .map(|a| {
                let steps = memory.steps(a);
                let storage = &memory.storages[a.storage];
                let first = memory.position(a, 0).unwrap_or(0);
                let from = match chunk(a) {
                    Some(c) => From::Here(c, a.column * memory.scale),
                    None => {
                        let pitch = a.row_step * storage.pitch as isize + a.column_step * memory.scale as isize;
                        From::Elsewhere(storage.bytes(), first, pitch)
                    }
                };
                Input { codec: a.codec, dense: elements::is_dense(&steps, a.codec), steps, count: a.per_row, from }
            })
            .collect();
        let outputs: SmallVec<[Output; 2]> = to
            .iter()
            .map(|a| {
                let steps = memory.steps(a);
                let alone = to.iter().filter(|o| o.storage == a.storage).count() == 1;
                let direct = alone
                    && a.codec.is_f32()
                    && elements::is_dense(&steps, a.codec)
                    && (a.column * memory.scale).is_multiple_of(4);
                Output {
                    codec: a.codec,
                    steps,
                    count: a.per_row,
                    chunk: chunk(a).unwrap_or(0),
                    position: a.column * memory.scale,
                    direct,
                }
            })
            .collect();
        let elements: usize = from.iter().chain(to).map(Access::elements).sum();
        let threads = rayon::current_num_threads();
        let parallel = threads > 1 && rows > 1 && elements >= PARALLEL_ABOVE;
        // One share for each thread: their rows cost the same, and another hand-over costs as much as several rows.
        let at_least = rows.div_ceil(threads);
        let pitch = |k: usize| memory.storages[written[k].0].pitch;
        let skip = |k: usize| written[k].1 * pitch(k);
        match &mut taken[..] {
            [one] => {
                let chunks = &mut one.bytes_mut()[skip(0)..];
                if parallel {
                    chunks
                        .par_chunks_mut(pitch(0))
                        .take(rows)
                        .with_min_len(at_least)
                        .enumerate()
                        .for_each_init(Scratch::default, |scratch, (i, c)| {
                            row(i, &mut [c], &inputs, &outputs, f, scratch)
                        });
                } else {
                    for (i, c) in chunks.chunks_mut(pitch(0)).take(rows).enumerate() {
                        row(i, &mut [c], &inputs, &outputs, f, &mut self.scratch);
                    }
                }
            }
            [one, two] => {
                let first = one.bytes_mut()[skip(0)..].par_chunks_mut(pitch(0));
                let second = two.bytes_mut()[skip(1)..].par_chunks_mut(pitch(1));
                let at_least = if parallel { at_least } else { rows };
                first
                    .zip(second)
                    .take(rows)
                    .with_min_len(at_least)
                    .enumerate()
                    .for_each_init(Scratch::default, |scratch, (i, (c, d))| {
                        row(i, &mut [c, d], &inputs, &outputs, f, scratch)
                    });
            }
            _ => {}
        }
        drop(inputs);
        for (&(storage, _), data) in written.iter().zip(taken) {
            self.memory.storages[storage].put(data);
        }
    }

    /// All partitions of all sources are read before anything is written.
    fn rows_gathered(&mut self, to: &[Access], from: &[Access], (f, watch): (RowsF32<'_>, Option<&Watch<'_>>)) {
        let ins: SmallVec<[Vec<f32>; 4]> = from.iter().map(|a| self.tile(a)).collect();
        let mut outs: SmallVec<[Vec<f32>; 2]> = to.iter().map(|a| vec![0.0; a.elements()]).collect();
        for row in 0..to.first().or(from.first()).map_or(0, Access::partitions) {
            let part = |a: &Access| row * a.width()..(row + 1) * a.width();
            let ins: SmallVec<[&[f32]; 4]> = ins.iter().zip(from).map(|(v, a)| &v[part(a)]).collect();
            let mut outs: SmallVec<[&mut [f32]; 2]> = outs.iter_mut().zip(to).map(|(v, a)| &mut v[part(a)]).collect();
            f(row, &ins, &mut outs);
            if let Some(watch) = watch {
                watch.row(row, &ins, &outs);
            }
        }
        for (a, values) in to.iter().zip(&outs) {
            self.put_tile(a, values);
        }
    }

    /// See [`nki_isa::Machine::map_i64`].
    pub(super) fn rows_i64(&mut self, dsts: &[&View], srcs: &[&View], f: RowsI64<'_>) -> Result<(), Fault> {
        let (to, from) = self.operands(dsts, srcs)?;
        self.finish_runs();
        let mut bytes = std::mem::take(&mut self.scratch.bytes);
        let mut ins: SmallVec<[Vec<i64>; 4]> = SmallVec::new();
        for a in &from {
            bytes.clear();
            bytes.resize(a.elements() * a.codec.size(), 0);
            self.memory.gather(a, &mut bytes);
            let mut values = vec![0; a.elements()];
            a.codec.to_i64(&bytes, &mut values);
            ins.push(values);
        }
        let mut outs: SmallVec<[Vec<i64>; 2]> = to.iter().map(|a| vec![0; a.elements()]).collect();
        for row in 0..to.first().or(from.first()).map_or(0, Access::partitions) {
            let part = |a: &Access| row * a.width()..(row + 1) * a.width();
            let ins: SmallVec<[&[i64]; 4]> = ins.iter().zip(&from).map(|(v, a)| &v[part(a)]).collect();
            let mut outs: SmallVec<[&mut [i64]; 2]> = outs.iter_mut().zip(&to).map(|(v, a)| &mut v[part(a)]).collect();
            f(row, &ins, &mut outs);
        }
        for (a, values) in to.iter().zip(&outs) {
            bytes.clear();
            bytes.resize(a.elements() * a.codec.size(), 0);
            a.codec.write_i64(values, &mut bytes);
            self.memory.scatter(a, &bytes);
            self.memory.mark_written(a);
        }
        self.scratch.bytes = bytes;
        Ok(())
    }
}
