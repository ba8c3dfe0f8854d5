//! Functions applied to every partition.

use nki_isa::machine::{RowsF32, RowsI64};
use nki_isa::{Fault, View};
use smallvec::SmallVec;

use super::interpreter::Interpreter;
use crate::memory::access::Access;

/// Buffers kept between instructions.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    bytes: Vec<u8>,
}

type Accesses = SmallVec<[Access; 4]>;

impl Interpreter<'_> {
    fn operands(&mut self, dsts: &[&View], srcs: &[&View]) -> Result<(Accesses, Accesses), Fault> {
        let from = srcs.iter().map(|v| self.source(v)).collect::<Result<Accesses, _>>()?;
        let to = dsts.iter().map(|v| self.destination(v)).collect::<Result<Accesses, _>>()?;
        let rows = to.first().or(from.first()).map_or(0, |a| a.rows);
        if let Some(other) = from.iter().chain(&to).find(|a| a.rows != rows) {
            return Err(Fault::new(
                "partition-mismatch",
                format!("operands have {rows} and {} partitions", other.rows),
            ));
        }
        Ok((to, from))
    }

    /// See [`nki_isa::Machine::map_f32`].
    pub(super) fn rows_f32(&mut self, dsts: &[&View], srcs: &[&View], f: RowsF32<'_>) -> Result<(), Fault> {
        let (to, from) = self.operands(dsts, srcs)?;
        let mut bytes = std::mem::take(&mut self.scratch.bytes);
        let mut ins: SmallVec<[Vec<f32>; 4]> = SmallVec::new();
        for a in &from {
            bytes.clear();
            bytes.resize(a.elements() * a.codec.size(), 0);
            self.memory.gather(a, &mut bytes);
            let mut values = vec![0.0; a.elements()];
            a.codec.to_f32(&bytes, &mut values);
            ins.push(values);
        }
        let mut outs: SmallVec<[Vec<f32>; 2]> = to.iter().map(|a| vec![0.0; a.elements()]).collect();
        for row in 0..to.first().or(from.first()).map_or(0, |a| a.rows) {
            let part = |a: &Access| row * a.per_row..(row + 1) * a.per_row;
            let ins: SmallVec<[&[f32]; 4]> = ins.iter().zip(&from).map(|(v, a)| &v[part(a)]).collect();
            let mut outs: SmallVec<[&mut [f32]; 2]> = outs.iter_mut().zip(&to).map(|(v, a)| &mut v[part(a)]).collect();
            f(row, &ins, &mut outs);
        }
        for (a, values) in to.iter().zip(&outs) {
            bytes.clear();
            bytes.resize(a.elements() * a.codec.size(), 0);
            a.codec.write_f32(values, &mut bytes);
            self.memory.scatter(a, &bytes);
            self.memory.mark_written(a);
        }
        self.scratch.bytes = bytes;
        Ok(())
    }

    /// See [`nki_isa::Machine::map_i64`].
    pub(super) fn rows_i64(&mut self, dsts: &[&View], srcs: &[&View], f: RowsI64<'_>) -> Result<(), Fault> {
        let (to, from) = self.operands(dsts, srcs)?;
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
        for row in 0..to.first().or(from.first()).map_or(0, |a| a.rows) {
            let part = |a: &Access| row * a.per_row..(row + 1) * a.per_row;
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
