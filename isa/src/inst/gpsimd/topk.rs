//! `nisa.topk`: the k largest values that the 16 partitions of a GpSimd core hold, and their positions.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use super::local_gather::CORE;
use crate::arch::Arch;
use crate::inst::stream::{on, stream};
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Algorithm, Law, Operand, Start, Stream, Term, Work};

operands! {
    /// The k largest of the first `n` elements that a group of 16 partitions holds, with their positions. Element `i` of a group is in
    /// its partition `i % 16`, column `i / 16`, and so is result `i`: results fill the first `ceil(k / 16)` columns.
    pub struct Topk: "topk" on [GpSimd] {
        /// The values: bfloat16. Its size per partition is k.
        [Out Sbuf; BF16] val_dst: View,
        /// Their positions in the group: uint32, of the size of `val_dst`.
        [Out Sbuf; U32] idx_dst: View,
        /// Input tile: bfloat16, a multiple of 16 partitions.
        [In Sbuf; BF16] src: View,
        /// Elements of a group that count: 8 to 65535.
        [Attr] n: i64,
        /// Results in descending order.
        [Attr] sorted: bool = false,
    }
    numerics: "Values keep their bits. Of equal values the lower position is taken first; NaN is above all numbers (the \
        manual says neither). Results that are not sorted are ascending, as in the manual of NKI 0.6; that of 0.7 \
        promises no order. Slots of the last column without a result hold NaN and the position 2^32 - 1; later \
        columns are unchanged.",
    cost: Documented "4 n + k steps for each group of 16 partitions, all groups at once.",
    rules: {
        "same-partitions": "`src`, `val_dst` and `idx_dst` have the same number of partitions",
        "same-size": "`val_dst` and `idx_dst` have the same number of elements per partition",
        "cores": "the number of partitions is a multiple of 16",
        "n": "`n` is 8 to 65535",
        "k": "k is 1 to 32767, and at most `n`",
        "dst-rank": "`val_dst` and `idx_dst` have 2 dimensions",
        "src-size": "`src` has at least n / 16 elements per partition, rounded up",
    },
}

/// The first columns of a tile of two dimensions.
fn first_columns(view: &View, columns: usize) -> View {
    let mut view = view.clone();
    view.dims[1].count = columns as u32;
    view
}

impl Instruction for Topk {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::GpSimd
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_partitions(("src", &self.src), ("val_dst", &self.val_dst))?;
        check::same_shape(("val_dst", &self.val_dst), ("idx_dst", &self.idx_dst))?;
        check::rank("val_dst", &self.val_dst, 2)?;
        check::rank("idx_dst", &self.idx_dst, 2)?;
        let partitions = self.src.partitions();
        if !partitions.is_multiple_of(CORE) {
            return Err(Violation::new(
                "partition-size",
                "src",
                format!("`src` has {partitions} partitions, it must have a multiple of {CORE}"),
            ));
        }
        if !(8..65536).contains(&self.n) {
            return Err(Violation::new("operand-value", "n", format!("`n` is {}; it must be 8 to 65535", self.n)));
        }
        let k = self.val_dst.free_elements() as i64;
        if !(1..32768).contains(&k) || k > self.n {
            return Err(Violation::new(
                "free-size",
                "val_dst",
                format!("`val_dst` takes k = {k} values; k must be 1 to 32767 and at most `n` = {}", self.n),
            ));
        }
        let (have, need) = (self.src.free_elements() as i64, (self.n + 15) / 16);
        if have < need {
            return Err(Violation::new(
                "free-size",
                "src",
                format!("`src` has {have} elements per partition; for `n` = {} it must have {need}", self.n),
            ));
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// The layout of results is that of the manual of NKI 0.7. That of 0.6 had "each partition operates independently", which contradicts its
    /// own layout of the source.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let tile = machine.read_tile(&self.src)?;
        let (core, n, k) = (CORE as usize, self.n as usize, self.val_dst.free_elements());
        let columns = k.div_ceil(core);
        let mut values = Array2::from_elem((tile.nrows(), columns), f32::NAN);
        let mut positions = Array2::from_elem((tile.nrows(), columns), u32::MAX);
        for first in (0..tile.nrows()).step_by(core) {
            let value = |i: usize| tile[(first + i % core, i / core)];
            let mut order: Vec<usize> = (0..n).collect();
            let rank = |x: f32| (x.is_nan(), if x.is_nan() || x == 0.0 { 0.0 } else { x });
            order.sort_by(|&a, &b| {
                let ((a_nan, x), (b_nan, y)) = (rank(value(a)), rank(value(b)));
                b_nan.cmp(&a_nan).then(y.total_cmp(&x)).then(a.cmp(&b))
            });
            order.truncate(k);
            if !self.sorted {
                order.reverse();
            }
            for (j, &i) in order.iter().enumerate() {
                let place = (first + j % core, j / core);
                values[place] = value(i);
                positions[place] = i as u32;
            }
        }
        machine.write_tile(&first_columns(&self.val_dst, columns), values.view())?;
        machine.write_bits(&first_columns(&self.idx_dst, columns), positions.view())
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let outputs = [&self.val_dst, &self.idx_dst].into_iter().map(Operand::of).collect();
        let stream = stream(
            Law::Algorithm(Algorithm {
                start: Start::AtLeast,
                terms: &[Term::Elements("topk"), Term::Results("topk_result")],
            }),
            &[&self.src],
            &[],
        );
        on(Engine::GpSimd, Stream { elements: self.n as u32, outputs, ..stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn topk(m: &mut TestMachine, partitions: u32, columns: u32, n: i64, k: u32) -> Topk {
        Topk {
            val_dst: m.tensor("v", Space::Sbuf, DType::BF16, &[partitions, k]),
            idx_dst: m.tensor("i", Space::Sbuf, DType::U32, &[partitions, k]),
            src: m.tensor("s", Space::Sbuf, DType::BF16, &[partitions, columns]),
            n,
            sorted: false,
        }
    }

    #[test]
    fn results_lie_as_the_source_does() {
        let mut m = TestMachine::new(Target::Trn2);
        let inst = topk(&mut m, 32, 2, 20, 18);
        // Element i of the first group is i; elements from 20 on are ignored. The second group is all ones except element 17.
        let element =
            |p: u8, c: u8| if p < 16 { f32::from(p + 16 * c) } else { f32::from(1 + u8::from(p == 17 && c == 1)) };
        let values: Vec<f32> = (0..32u8).flat_map(|p| (0..2u8).map(move |c| element(p, c))).collect();
        m.set_f32(&inst.src, &values);
        m.set_bits(&inst.idx_dst, &[5; 32 * 18]);
        m.run(inst.clone()).unwrap();
        let (values, positions) = (m.f32s(&inst.val_dst), m.bits(&inst.idx_dst));
        let result = |group: usize, j: usize| {
            let at = 18 * (16 * group + j % 16) + j / 16;
            (values[at], positions[at])
        };
        // Ascending; of equal values, the last positions are left out.
        let of_first: Vec<_> = (0..18).map(|j| result(0, j)).collect();
        assert_eq!(of_first, (2..20u8).map(|i| (f32::from(i), u32::from(i))).collect::<Vec<_>>());
        assert_eq!([result(1, 0), result(1, 16), result(1, 17)], [(1.0, 16), (1.0, 0), (2.0, 17)]);
        // The last column has two results; the columns behind it are not written.
        assert!(values[18 * 2 + 1].is_nan() && positions[18 * 2 + 1] == u32::MAX);
        assert_eq!(positions[2..18], [5; 16]);
    }

    #[test]
    fn sorted_results_are_descending() {
        let mut m = TestMachine::new(Target::Trn2);
        let inst = Topk { sorted: true, ..topk(&mut m, 16, 1, 16, 3) };
        let values: Vec<f32> = [3., 9., f32::NAN, 9., -1.].into_iter().chain([0.; 11]).collect();
        m.set_f32(&inst.src, &values);
        m.run(inst.clone()).unwrap();
        let positions: Vec<u32> = m.bits(&inst.idx_dst).into_iter().step_by(3).take(3).collect();
        assert_eq!(positions, [2, 1, 3]);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let mut said = |partitions, columns, n, k| {
            let inst = topk(&mut m, partitions, columns, n, k);
            m.check(inst).unwrap_err()
        };
        assert!(said(17, 2, 20, 3).contains("`src` has 17 partitions, it must have a multiple of 16"));
        assert!(said(16, 2, 7, 3).contains("`n` is 7; it must be 8 to 65535"));
        assert!(said(16, 5000, 65536, 3).contains("`n` is 65536"));
        assert!(said(16, 2, 20, 21).contains("k = 21 values; k must be 1 to 32767 and at most `n` = 20"));
        assert!(said(16, 2, 33, 3).contains("`src` has 2 elements per partition; for `n` = 33 it must have 3"));
        let base = topk(&mut m, 16, 2, 20, 3);
        let e = m.check(Topk { val_dst: base.idx_dst.clone(), ..base.clone() }).unwrap_err();
        assert!(e.contains("`val_dst` is uint32; it must be bfloat16"), "{e}");
        let e = m.check(Topk { src: base.idx_dst.clone(), ..base }).unwrap_err();
        assert!(e.contains("`src` is uint32; it must be bfloat16"), "{e}");
    }
}
