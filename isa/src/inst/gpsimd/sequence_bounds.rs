//! `nisa.sequence_bounds`: where the segment of each element begins and ends.

use crate::arch::Arch;
use crate::dtype::DType;
use crate::inst::result::{Given, ResultTile};
use crate::inst::stream::{on, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Algorithm, Law, Start, Term, Work};

operands! {
    /// For each element the start of its segment and the position after its end; `n` and -1 for padding, which has segment id 0.
    pub struct SequenceBounds: "sequence_bounds" on [GpSimd] {
        /// Starts, then ends: shape (1, 2, n), float32 or int32.
        [Out Sbuf; F32 I32] dst: View,
        /// Segment ids: shape (1, n), float32 or int32. A segment is a run of equal ids.
        [In Sbuf; F32 I32] segment_ids: View,
    }
    numerics: "Exact for int32; with a float32 operand positions are fp32, exact up to 2^24.",
    cost: Assumed "A fixed part, then two passes over the segment ids: starts forwards, ends backwards.",
    rules: {
        "one-partition": "both tiles have one partition",
        "dst-size": "`dst` has two elements for each segment id",
    },
}

/// Writes the starts and the ends; `of` converts a position to an element.
fn bounds<T: Copy + PartialEq>(ids: &[T], padding: T, out: &mut [T], of: impl Fn(i64) -> T) {
    let n = ids.len();
    let (starts, ends) = out.split_at_mut(n.min(out.len()));
    let mut first = 0;
    for run in ids.chunk_by(|a, b| a == b) {
        let end = first + run.len();
        let pad = run[0] == padding;
        let (start_value, end_value) = if pad { (n as i64, -1) } else { (first as i64, end as i64) };
        starts[first..end].fill(of(start_value));
        ends[first..end].fill(of(end_value));
        first = end;
    }
}

impl Instruction for SequenceBounds {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.view("segment_ids").map(|s| ResultTile::sbuf([s.partitions(), 2, s.free_elements() as u32], s.dtype))
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::GpSimd
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        for (name, view) in [("segment_ids", &self.segment_ids), ("dst", &self.dst)] {
            if view.partitions() != 1 {
                return Err(Violation::new(
                    "partition-size",
                    name,
                    format!("`{name}` has {} partitions, it must have 1", view.partitions()),
                ));
            }
        }
        let n = self.segment_ids.free_elements();
        if self.dst.free_elements() != 2 * n {
            return Err(Violation::new(
                "shape-mismatch",
                "dst",
                format!(
                    "`dst` has shape {:?}; for {n} segment ids it must be [1, 2, {n}]: a start and an end each",
                    self.dst.shape()
                ),
            ));
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let (dst, ids) = (&self.dst, &self.segment_ids);
        if dst.dtype == DType::I32 && ids.dtype == DType::I32 {
            return machine.map_i64(&[dst], &[ids], &|_, ins, outs| bounds(ins[0], 0, outs[0], |i| i));
        }
        let row = |_: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| bounds(ins[0], 0.0, outs[0], |i| i as f32);
        machine.map_f32(&[dst], &[ids], Box::new(row), None)
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        on(
            Engine::GpSimd,
            stream(
                Law::Algorithm(Algorithm { start: Start::Once, terms: &[Term::Elements("sequence_bounds")] }),
                &[&self.segment_ids],
                &[&self.dst],
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::names::Space;
    use crate::testing::TestMachine;

    #[test]
    fn segments_are_runs_of_equal_ids() {
        for (from, to) in [(DType::I32, DType::I32), (DType::F32, DType::F32), (DType::I32, DType::F32)] {
            let mut m = TestMachine::new(Target::Trn2);
            let ids = m.tensor_f32("s", Space::Sbuf, from, &[1, 8], &[0., 0., 7., 7., 2., 0., 7., 1.]);
            let dst = m.tensor("d", Space::Sbuf, to, &[1, 2, 8]);
            m.run(SequenceBounds { dst: dst.clone(), segment_ids: ids }).unwrap();
            let want = [8., 8., 2., 2., 4., 8., 6., 7., -1., -1., 4., 4., 5., -1., 7., 8.];
            assert_eq!(m.f32s(&dst), want, "{from} to {to}");
        }
    }

    #[test]
    fn large_integer_ids_are_told_apart() {
        let mut m = TestMachine::new(Target::Trn2);
        let ids = m.tensor_bits("s", Space::Sbuf, DType::I32, &[1, 2], &[16_777_216, 16_777_217]);
        let dst = m.tensor("d", Space::Sbuf, DType::I32, &[1, 2, 2]);
        m.run(SequenceBounds { dst: dst.clone(), segment_ids: ids }).unwrap();
        assert_eq!(m.bits(&dst), [0, 1, 1, 2]);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let mut tile = |dtype, shape: &[u32]| m.tensor("t", Space::Sbuf, dtype, shape);
        let (ids, two, half) = (tile(DType::F32, &[1, 4]), tile(DType::F32, &[2, 4]), tile(DType::BF16, &[1, 4]));
        let (dst, short) = (tile(DType::F32, &[1, 2, 4]), tile(DType::F32, &[1, 2, 3]));
        let said = |dst: &View, ids: &View| {
            m.check(SequenceBounds { dst: dst.clone(), segment_ids: ids.clone() }).unwrap_err()
        };
        assert!(said(&dst, &two).contains("`segment_ids` has 2 partitions, it must have 1"));
        assert!(said(&dst, &half).contains("`segment_ids` is bfloat16"));
        assert!(said(&short, &ids).contains("`dst` has shape [1, 2, 3]; for 4 segment ids it must be [1, 2, 4]"));
    }
}
