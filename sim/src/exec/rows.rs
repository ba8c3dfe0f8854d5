//! Functions of partitions that are computed immediately: integers, element bits, and functions whose partitions may access each other's results.

use nki_isa::machine::{RowBits, RowsBits, RowsF32, RowsI64};
use nki_isa::{Fault, View};
use smallvec::SmallVec;

use super::deferred::{BLOCK, apart};
use super::interpreter::Interpreter;
use super::values::Watch;
use crate::memory::Memory;
use crate::memory::access::Access;
use crate::memory::elements::{self, Steps};

pub(super) type Accesses = SmallVec<[Access; 4]>;

/// Passes all 32-bit integer sources to the watch.
pub(super) fn inspect_integers(memory: &Memory<'_>, watch: &Watch<'_>, from: &[Access]) {
    for (n, a) in from.iter().enumerate().filter(|(n, _)| watch.takes_integers(*n)) {
        let mut bytes = vec![0; a.elements() * a.codec.size()];
        memory.gather(a, &mut bytes);
        let mut values = vec![0; a.elements()];
        a.codec.to_i64(&bytes, &mut values);
        values.chunks_exact(a.width().max(1)).enumerate().for_each(|(row, v)| watch.integers(row, n, v));
    }
}

impl<'p> Interpreter<'p> {
    /// Resolves the operands of a function of rows, while earlier computations may still be deferred.
    pub(super) fn operands(&mut self, dsts: &[&View], srcs: &[&View]) -> Result<(Accesses, Accesses), Fault> {
        self.flush_matmuls();
        let from = srcs.iter().map(|v| self.source(v)).collect::<Result<Accesses, _>>()?;
        let to = dsts.iter().map(|v| self.destination(v)).collect::<Result<Accesses, _>>()?;
        let rows = to.first().or(from.first()).map_or(0, Access::partitions);
        if let Some(other) = from.iter().chain(&to).find(|a| a.partitions() != rows) {
            return Err(Fault::new(
                "partition-mismatch",
                format!("operands have {rows} and {} partitions", other.partitions()),
            ));
        }
        Ok((to, from))
    }

    /// Computes all rows: all partitions of all sources are read before anything is written.
    pub(super) fn map_rows(&mut self, to: &[Access], from: &[Access], f: &RowsF32, watch: Option<Box<Watch<'p>>>) {
        let watch = watch.as_deref();
        let memory = self.memory();
        if let Some(watch) = watch {
            inspect_integers(memory, watch, from);
        }
        let ins: SmallVec<[Vec<f32>; 4]> = from.iter().map(|a| memory.tile(a)).collect();
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
            memory.put_tile(a, values);
        }
        if let Some(watch) = watch {
            self.report_values(watch, to, from);
        }
        for a in to {
            self.memory().mark_written(a);
        }
    }

    /// See [`nki_isa::Machine::map_i64`].
    pub(super) fn map_rows_i64(&mut self, dsts: &[&View], srcs: &[&View], f: RowsI64<'_>) -> Result<(), Fault> {
        let (to, from) = self.operands(dsts, srcs)?;
        let memory = self.memory();
        let mut bytes = Vec::new();
        let mut ins: SmallVec<[Vec<i64>; 4]> = SmallVec::new();
        for a in &from {
            bytes.clear();
            bytes.resize(a.elements() * a.codec.size(), 0);
            memory.gather(a, &mut bytes);
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
            memory.scatter(a, &bytes);
            memory.mark_written(a);
        }
        self.inspect_integer_results(&to, &outs);
        Ok(())
    }

    /// See [`nki_isa::Machine::map_bits`].
    pub(super) fn map_rows_bits(&mut self, dsts: &[&View], srcs: &[&View], f: RowsBits<'_>) -> Result<(), Fault> {
        self.flush();
        let (to, from) = self.operands(dsts, srcs)?;
        if let Some(wide) = from.iter().chain(&to).find(|a| a.codec.size() > 4) {
            return Err(Fault::new("internal", format!("elements of {} have more than 32 bits", wide.codec.dtype)));
        }
        let memory = self.memory();
        // If no partition accesses what another one writes, process a few at a time, while they are in the cache.
        let is_regular = |a: &Access| a.starts.is_none() && a.per_row > 0;
        let by_blocks = if to.is_empty() { from.iter().all(is_regular) } else { apart(memory, &to, &from) };
        if by_blocks {
            memory.map_blocks(&to, &from, f)?
        } else {
            memory.map_tiles(&to, &from, f)?
        }
        to.iter().for_each(|a| memory.mark_written(a));
        Ok(())
    }
}

/// Rows of an operand and their bits, for a few partitions at a time.
struct Block<'a> {
    access: &'a Access,
    steps: Steps,
    bits: Vec<u32>,
}

impl<'a> Block<'a> {
    fn of(memory: &Memory<'_>, access: &'a Access) -> Self {
        Block { access, steps: memory.steps(access), bits: vec![0; BLOCK.min(access.rows) * access.per_row] }
    }

    fn at(&self, memory: &Memory<'_>, row: usize) -> usize {
        memory.position(self.access, row).expect("rows of a regular access are not skipped")
    }
}

impl Memory<'_> {
    /// Applies `f` to a few partitions at a time, none of which accesses what another one writes.
    fn map_blocks(&mut self, to: &[Access], from: &[Access], f: RowsBits<'_>) -> Result<(), Fault> {
        let mut ins: SmallVec<[Block<'_>; 4]> = from.iter().map(|a| Block::of(self, a)).collect();
        let mut outs: SmallVec<[Block<'_>; 2]> = to.iter().map(|a| Block::of(self, a)).collect();
        let mut packed = Vec::new();
        let rows = to.first().or(from.first()).map_or(0, |a| a.rows);
        for first in (0..rows).step_by(BLOCK) {
            let end = rows.min(first + BLOCK);
            let mut block: SmallVec<[RowBits<'_>; BLOCK]> = (first..end)
                .map(|partition| RowBits { partition, ins: SmallVec::new(), outs: SmallVec::new() })
                .collect();
            for input in &mut ins {
                let (codec, width) = (input.access.codec, input.access.per_row);
                let bytes = self.storages[input.access.storage].bytes();
                let places: SmallVec<[usize; BLOCK]> = (first..end).map(|row| input.at(self, row)).collect();
                for ((row, at), bits) in block.iter_mut().zip(places).zip(input.bits.chunks_exact_mut(width)) {
                    row.ins.push(elements::read_row_bits(bytes, at, &input.steps, codec, &mut packed, bits));
                }
            }
            for output in &mut outs {
                for (row, bits) in block.iter_mut().zip(output.bits.chunks_exact_mut(output.access.per_row)) {
                    row.outs.push(bits);
                }
            }
            f(&mut block)?;
            drop(block);
            for output in &outs {
                for (row, bits) in (first..end).zip(output.bits.chunks_exact(output.access.per_row)) {
                    let at = output.at(self, row);
                    let bytes = self.storages[output.access.storage].bytes_mut();
                    elements::write_row_bits(bytes, at, &output.steps, output.access.codec, &mut packed, bits);
                }
            }
        }
        Ok(())
    }

    /// Applies `f` to all partitions: all are read before anything is written.
    fn map_tiles(&mut self, to: &[Access], from: &[Access], f: RowsBits<'_>) -> Result<(), Fault> {
        let ins: SmallVec<[Vec<u32>; 4]> = from
            .iter()
            .map(|a| {
                let mut bytes = vec![0; a.elements() * a.codec.size()];
                self.gather(a, &mut bytes);
                elements::to_bits(&bytes, a.codec.size())
            })
            .collect();
        let mut outs: SmallVec<[Vec<u32>; 2]> = to.iter().map(|a| vec![0; a.elements()]).collect();
        for partition in 0..to.first().or(from.first()).map_or(0, Access::partitions) {
            let part = |a: &Access| partition * a.width()..(partition + 1) * a.width();
            let ins = ins.iter().zip(from).map(|(bits, a)| &bits[part(a)]).collect();
            let outs = outs.iter_mut().zip(to).map(|(bits, a)| &mut bits[part(a)]).collect();
            f(&mut [RowBits { partition, ins, outs }])?;
        }
        for (a, bits) in to.iter().zip(&outs) {
            self.scatter(a, &elements::from_bits(bits, a.codec.size()));
        }
        Ok(())
    }
}
