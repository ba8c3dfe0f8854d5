//! `nisa.bn_aggr`: combines the results of `bn_stats` into mean and variance.

use super::bn_stats::elements;
use crate::arch::Arch;
use crate::inst::result::{Given, ResultTile};
use crate::inst::stream::{on, rows, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// Combines `(count, mean, variance * count)` triples into one mean and one variance per partition.
    pub struct BnAggr: "bn_aggr" on [Vector] {
        /// Mean and variance: 2 elements per partition.
        [Out Sbuf Psum] dst: View,
        /// Results of one or more `bn_stats`: a multiple of 3 elements per partition.
        [In Sbuf Psum] data: View,
    }
    numerics: "fp32 inputs; sums in double precision here, each result rounded once (the engine's order of fp32 sums is \
        not documented). The variance divides by the count, not by one less.",
    cost: Documented "13 N / 3 steps for N elements of a partition, at least 64.",
    rules: {
        "same-partitions": "`data` and `dst` have the same number of partitions",
        "triples": "`data` has a multiple of 3 elements per partition",
        "rank": "`data` has at most 5 dimensions",
        "dst-rank": "`dst` has at most 3 dimensions",
        "dst-size": "`dst` has 2 elements per partition",
    },
}

/// Most dimensions of `data` and `dst` (bn_aggr reference of 2.33).
const DATA_RANK: usize = 5;
const DST_RANK: usize = 3;

impl Instruction for BnAggr {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.view("data").map(|d| ResultTile::sbuf([d.partitions(), 2], d.dtype))
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_partitions(("data", &self.data), ("dst", &self.dst))?;
        let n = self.data.free_elements();
        if !n.is_multiple_of(3) {
            return Err(Violation::new(
                "shape-mismatch",
                "data",
                format!(
                    "`data` has {n} elements per partition; it must be a multiple of 3: (count, mean, variance * count)"
                ),
            )
            .help("pass the results of nisa.bn_stats, 6 elements each, side by side"));
        }
        check::rank("data", &self.data, DATA_RANK)?;
        check::rank("dst", &self.dst, DST_RANK)?;
        elements("dst", &self.dst, 2)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// The variance is that of all elements (divided by their count, not by one less). Open question: the order of the engine's fp32
    /// sums; here they are computed in double precision and rounded once. Without any element the results are NaN.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let row = |_: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            let triples = || ins[0].chunks_exact(3).map(|t| (f64::from(t[0]), f64::from(t[1]), f64::from(t[2])));
            let count: f64 = triples().map(|t| t.0).sum();
            let mean = triples().map(|(n, mean, _)| n * mean).sum::<f64>() / count;
            let spread: f64 = triples().map(|(n, m, spread)| n * (m - mean) * (m - mean) + spread).sum();
            outs[0].copy_from_slice(&[mean as f32, (spread / count) as f32]);
        };
        machine.map_f32(&[&self.dst], &[&self.data], Box::new(row), None)
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        on(Engine::Vector, stream(rows("bn_aggr", "typical"), &[&self.data], &[&self.dst]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::bn_stats::BnStats;
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;
    use crate::view::Dim;

    #[test]
    fn aggregates_tiles_of_unequal_size() {
        let mut m = TestMachine::new(Target::Trn2);
        let values: Vec<f32> = (0..7u8).map(|i| f32::from(i * i)).collect();
        let data = m.tensor_f32("s", Space::Sbuf, DType::F32, &[1, 7], &values);
        let stats = m.tensor("t", Space::Sbuf, DType::F32, &[1, 2, 6]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 2]);
        for (i, (start, count)) in [(0, 4), (4, 3)].into_iter().enumerate() {
            let part = |v: &View, offset, count| {
                let dims = [Dim { stride: 1, count: 1 }, Dim { stride: 1, count }].into_iter().collect();
                View { offset, dims, ..v.clone() }
            };
            m.run(BnStats { dst: part(&stats, 6 * i as i64, 6), data: part(&data, start, count) }).unwrap();
        }
        m.run(BnAggr { dst: dst.clone(), data: stats }).unwrap();
        // The mean of 0, 1, 4, 9, 16, 25, 36 is 13, their variance 156.
        assert_eq!(m.f32s(&dst), [13., 156.]);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let four = m.tensor("s", Space::Sbuf, DType::F32, &[1, 4]);
        let six = m.tensor("t", Space::Sbuf, DType::F32, &[1, 6]);
        let e = m.check(BnAggr { dst: four.clone(), data: four.clone() }).unwrap_err();
        assert!(e.contains("has 4 elements per partition; it must be a multiple of 3"), "{e}");
        let e = m.check(BnAggr { dst: four, data: six }).unwrap_err();
        assert!(e.contains("it must have 2"), "{e}");
    }
}
