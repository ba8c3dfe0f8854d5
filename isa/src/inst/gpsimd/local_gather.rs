//! `nisa.local_gather`: gathers by indices that the 16 partitions of a GpSimd core share.

use super::nc_n_gather::out_of_bounds;
use crate::arch::Arch;
use crate::inst::math::moves;
use crate::inst::result::{Given, ResultTile};
use crate::inst::stream::{on, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Algorithm, Law, Operand, Start, Stream, Term, Work};

operands! {
    /// Each group of 16 partitions gathers, in all of them, the elements at the indices in the group's slice of `index`.
    pub struct LocalGather: "local_gather" on [GpSimd] {
        /// The gathered elements: per partition `num_valid_indices * num_elem_per_idx`, of the dtype of `src_buffer`.
        [Out Sbuf] dst: View,
        /// Tile to gather from.
        [In Sbuf] src_buffer: View,
        /// Offsets of elements within a partition: uint16. A core takes those of its 16 partitions, column by column.
        [In Sbuf; U16] index: View,
        /// Neighbouring elements to take at each index: 1, 2, 4, 8, 16 or 32.
        [Attr] num_elem_per_idx: i64 = 1,
        /// How many indices of each core count; all by default.
        [Attr] num_valid_indices: Option<i64> = None,
    }
    numerics: "Bits move unchanged. An index out of bounds is undefined on the hardware and a run-time error here.",
    cost: Derived "150 + v (7 + e) / min(4 / b, e) steps for v indices of a core, with e elements of b bytes each; all cores at \
        once. That is the published formula with one quotient turned round: as printed, shorter runs would cost less.",
    rules: {
        "same-partitions": "`src_buffer`, `index` and `dst` have the same number of partitions",
        "cores": "the number of partitions is a multiple of 16",
        "same-dtype": "`dst` has the dtype of `src_buffer`",
        "run": "`num_elem_per_idx` is 1, 2, 4, 8, 16 or 32",
        "valid": "`num_valid_indices` is at least 1 and at most the number of indices of a core",
        "indices": "a core gathers at most 4096 indices",
        "dst-size": "`dst` has `num_elem_per_idx` elements for each valid index",
    },
}

/// Partitions of a GpSimd core.
pub(super) const CORE: u32 = 16;
const RUNS: [i64; 6] = [1, 2, 4, 8, 16, 32];
/// Most indices of a core.
const INDICES_MAX: i64 = 4096;

impl LocalGather {
    /// Indices that each core has.
    fn available(&self) -> i64 {
        self.index.free_elements() as i64 * i64::from(CORE)
    }

    fn valid(&self) -> i64 {
        self.num_valid_indices.unwrap_or_else(|| self.available())
    }
}

impl Instruction for LocalGather {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        let (src, index) = (given.view("src_buffer")?, given.view("index")?);
        let each = given.ints("num_elem_per_idx").first().copied().unwrap_or(1).max(1) as u32;
        let indices = given.ints("num_valid_indices").first().copied().unwrap_or(index.free_elements() as i64 * 16);
        let shape: [u32; 3] = [src.partitions(), indices.max(1) as u32, each];
        Some(ResultTile::sbuf(shape.into_iter().take(if each == 1 { 2 } else { 3 }), src.dtype))
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::GpSimd
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        let src = ("src_buffer", &self.src_buffer);
        check::same_partitions(src, ("index", &self.index))?;
        check::same_partitions(src, ("dst", &self.dst))?;
        let partitions = self.src_buffer.partitions();
        if !partitions.is_multiple_of(CORE) {
            return Err(Violation::new(
                "partition-size",
                "src_buffer",
                format!("`src_buffer` has {partitions} partitions, it must have a multiple of {CORE}"),
            ));
        }
        check::same_dtype(src, ("dst", &self.dst))?;
        if !RUNS.contains(&self.num_elem_per_idx) {
            return Err(Violation::new(
                "operand-value",
                "num_elem_per_idx",
                format!("`num_elem_per_idx` is {}; it must be 1, 2, 4, 8, 16 or 32", self.num_elem_per_idx),
            ));
        }
        let (valid, available) = (self.valid(), self.available());
        if valid < 1 || valid > available {
            return Err(Violation::new(
                "operand-value",
                "num_valid_indices",
                format!("`num_valid_indices` is {valid}, `index` has {available} for each core"),
            ));
        }
        if valid > INDICES_MAX {
            return Err(Violation::new(
                "operand-value",
                "index",
                format!("each core gathers {valid} indices, at most {INDICES_MAX} are possible"),
            )
            .help("gather in several instructions"));
        }
        let want = valid * self.num_elem_per_idx;
        if self.dst.free_elements() as i64 != want {
            return Err(Violation::new(
                "shape-mismatch",
                "dst",
                format!(
                    "`dst` has {} elements per partition; {valid} indices of {} elements give {want}",
                    self.dst.free_elements(),
                    self.num_elem_per_idx
                ),
            ));
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// An index counts elements even if it gathers several: the manual's example multiplies its indices by `num_elem_per_idx`.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let index = machine.read_bits(&self.index)?;
        let (run, valid, core) = (self.num_elem_per_idx as usize, self.valid() as usize, CORE as usize);
        let elements = self.src_buffer.free_elements();
        // The start indices of the current core, refilled at its first partition.
        let mut starts = vec![0; valid];
        machine.map_bits(&[&self.dst], &[&self.src_buffer], &mut |rows| {
            for row in rows {
                if row.partition % core == 0 {
                    for (at, start) in starts.iter_mut().enumerate() {
                        let holder = row.partition + at % core;
                        *start = index[(holder, at / core)];
                        if *start as usize + run > elements {
                            return Err(out_of_bounds("src_buffer", (holder, *start), run, elements));
                        }
                    }
                }
                moves::gather_runs(row.ins[0], &starts, run, row.outs[0]);
            }
            Ok(())
        })
    }

    fn action(&self) -> Action<'_> {
        Action::Rearranges
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        // The cost grows with the indices of a core; the output determines the number of elements per index.
        let stream = stream(
            Law::Algorithm(Algorithm { start: Start::Once, terms: &[Term::Runs("gather_index")] }),
            &[&self.index],
            &[&self.dst],
        );
        let inputs = [Operand::of(&self.src_buffer), Operand::of(&self.index)].into_iter().collect();
        on(Engine::GpSimd, Stream { elements: self.valid() as u32, inputs, ..stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    #[test]
    fn cores_share_their_indices_column_by_column() {
        let mut m = TestMachine::new(Target::Trn2);
        // Element e of partition p is 100 p + e.
        let values: Vec<u32> = (0..32).flat_map(|p| (0..40).map(move |e| 100 * p + e)).collect();
        let src = m.tensor_bits("s", Space::Sbuf, DType::U16, &[32, 40], &values);
        // Index c of partition p is p + c for the first core, twice that modulo 40 for the second.
        let indices: Vec<u32> =
            (0..32).flat_map(|p| (0..2).map(move |c| if p < 16 { p + c } else { 2 * (p - 16) % 38 })).collect();
        let index = m.tensor_bits("i", Space::Sbuf, DType::U16, &[32, 2], &indices);
        let dst = m.tensor("d", Space::Sbuf, DType::U16, &[32, 18, 2]);
        let inst = LocalGather {
            dst: dst.clone(),
            src_buffer: src,
            index: index.clone(),
            num_elem_per_idx: 2,
            num_valid_indices: Some(18),
        };
        m.run(inst.clone()).unwrap();
        let got = m.bits(&dst);
        for (p, row) in got.chunks(36).enumerate() {
            let p = p as u32;
            for (i, pair) in row.chunks(2).enumerate() {
                let i = i as u32;
                let start = if p < 16 { i % 16 + i / 16 } else { 2 * (i % 16) % 38 };
                assert_eq!(pair, [100 * p + start, 100 * p + start + 1], "partition {p}, index {i}");
            }
        }
        // Only valid indices are read.
        let mut bad = indices.clone();
        bad[2 * 15 + 1] = 39;
        m.set_bits(&index, &bad);
        m.run(inst.clone()).unwrap();
        bad[2 * 15] = 39;
        m.set_bits(&index, &bad);
        assert!(m.run(inst).unwrap_err().contains("index 39 in partition 15"));
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let mut tile = |dtype, shape: &[u32]| m.tensor("t", Space::Sbuf, dtype, shape);
        let (src, index, dst) = (tile(DType::F32, &[16, 8]), tile(DType::U16, &[16, 2]), tile(DType::F32, &[16, 32]));
        let (odd, signed) = (tile(DType::F32, &[17, 8]), tile(DType::I16, &[16, 2]));
        let (odd_index, long) = (tile(DType::U16, &[17, 2]), tile(DType::U16, &[16, 257]));
        let odd_dst = tile(DType::F32, &[17, 32]);
        let base = LocalGather { dst, src_buffer: src, index, num_elem_per_idx: 1, num_valid_indices: None };
        let said = |inst: LocalGather| m.check(inst).unwrap_err();
        m.check(base.clone()).unwrap();
        let e = said(LocalGather { src_buffer: odd, index: odd_index, dst: odd_dst, ..base });
        assert!(e.contains("`src_buffer` has 17 partitions, it must have a multiple of 16"), "{e}");
        assert!(said(LocalGather { index: signed, ..base.clone() }).contains("`index` is int16; it must be uint16"));
        assert!(said(LocalGather { num_elem_per_idx: 3, ..base.clone() }).contains("`num_elem_per_idx` is 3"));
        let e = said(LocalGather { num_valid_indices: Some(33), ..base.clone() });
        assert!(e.contains("`num_valid_indices` is 33, `index` has 32 for each core"), "{e}");
        assert!(said(LocalGather { index: long, ..base.clone() }).contains("4112 indices, at most 4096"));
        let e = said(LocalGather { num_elem_per_idx: 2, ..base });
        assert!(e.contains("`dst` has 32 elements per partition; 32 indices of 2 elements give 64"), "{e}");
    }
}
