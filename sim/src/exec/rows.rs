//! Functions of partitions that are computed at once: integers, and those of which a partition may touch what another one writes.

use nki_isa::machine::{RowsF32, RowsI64};
use nki_isa::{Fault, View};
use smallvec::SmallVec;

use super::interpreter::Interpreter;
use super::values::Watch;
use crate::memory::Memory;
use crate::memory::access::Access;

pub(super) type Accesses = SmallVec<[Access; 4]>;

/// Shows the watch all sources of 32-bit integers.
pub(super) fn look_at_integers(memory: &Memory<'_>, watch: &Watch<'_>, from: &[Access]) {
    for (n, a) in from.iter().enumerate().filter(|(n, _)| watch.takes_integers(*n)) {
        let mut bytes = vec![0; a.elements() * a.codec.size()];
        memory.gather(a, &mut bytes);
        let mut values = vec![0; a.elements()];
        a.codec.to_i64(&bytes, &mut values);
        values.chunks_exact(a.width().max(1)).enumerate().for_each(|(row, v)| watch.integers(row, n, v));
    }
}

impl<'p> Interpreter<'p> {
    /// Resolves the operands of a function of rows, while earlier ones may wait to be computed.
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
            look_at_integers(memory, watch, from);
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
        Ok(())
    }
}
