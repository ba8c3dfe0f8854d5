//! `nisa.nc_find_index8`: the positions of eight values in each partition.

use super::bn_stats::elements;
use super::max8::searched;
use crate::arch::Arch;
use crate::dtype::DType;
use crate::inst::math::search::position;
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
    /// The positions of the 8 values in the flattened free dimensions of `data`; all ones for a value that is not there.
    pub struct NcFindIndex8: "nc_find_index8" on [Vector] {
        /// The positions: 8 elements per partition, uint16 or uint32.
        [Out Sbuf Psum; U16 U32] dst: View,
        /// Searched tile of 8 to 16384 elements per partition and at most 3 dimensions.
        [In Sbuf Psum] data: View,
        /// The values: 8 elements per partition.
        [In Sbuf Psum] vals: View,
    }
    numerics: "Values are compared in fp32. Equal values in `vals` get successive positions, as the reference of \
        nc_match_replace8 says; that of nc_find_index8 says \"first occurrence\" only.",
    cost: Documented "N steps for N elements of a partition of `data`.",
    rules: {
        "same-partitions": "`data`, `vals` and `dst` have the same number of partitions",
        "data-size": "`data` has 8 to 16384 elements per partition",
        "rank": "`data` and `vals` have at most 3 dimensions",
        "vals-size": "`vals` has 8 elements per partition",
        "dst-rank": "`dst` has 2 dimensions",
        "dst-size": "`dst` has 8 elements per partition",
    },
}

/// The position of a value that was not found. Encoding saturates it to all ones of either index type.
pub(super) const NOT_FOUND: f32 = f32::INFINITY;

impl Instruction for NcFindIndex8 {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.view("data").map(|d| ResultTile::sbuf([d.partitions(), 8], DType::U32))
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        let data = ("data", &self.data);
        check::same_partitions(data, ("dst", &self.dst))?;
        check::same_partitions(data, ("vals", &self.vals))?;
        searched("data", &self.data, 3)?;
        check::rank("vals", &self.vals, 3)?;
        elements("vals", &self.vals, 8)?;
        check::rank("dst", &self.dst, 2)?;
        elements("dst", &self.dst, 8)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// Values are compared in fp32. If a value occurs in `vals` several times, its occurrences receive ascending positions
    /// (manual, `nc_match_replace8`: the note on duplicates; the reference of this instruction says "first occurrence" only).
    /// Open question: a value that occurs more often in `vals` than in `data`; here the surplus is "not found".
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let row = |_: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            let (data, vals) = (ins[0], ins[1]);
            for i in 0..vals.len().min(outs[0].len()) {
                let earlier = vals[..i].iter().rposition(|&v| v == vals[i]).map(|at| outs[0][at]);
                let start = match earlier {
                    None => 0,
                    Some(NOT_FOUND) => data.len(),
                    Some(at) => at as usize + 1,
                };
                let found = position(&data[start..], vals[i]);
                outs[0][i] = found.map_or(NOT_FOUND, |at| (start + at) as f32);
            }
        };
        machine.map_f32(&[&self.dst], &[&self.data, &self.vals], Box::new(row), None)
    }

    fn values(&self) -> Values<'_> {
        Values { marks_absence: [true, false], ..Values::moved(Feeds::Row) }
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        on(Engine::Vector, stream(rows("nc_find_index8", "typical"), &[&self.data, &self.vals], &[&self.dst]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn find(dtype: DType, data: &[f32], vals: &[f32]) -> Vec<u32> {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_f32("data", Space::Sbuf, DType::F32, &[1, data.len() as u32], data);
        let vals = m.tensor_f32("vals", Space::Sbuf, DType::F32, &[1, 8], vals);
        let dst = m.tensor("dst", Space::Sbuf, dtype, &[1, 8]);
        m.run(NcFindIndex8 { dst: dst.clone(), data, vals }).unwrap();
        m.bits(&dst)
    }

    #[test]
    fn duplicates_are_paired_in_ascending_order() {
        let data = [1., 2., 3., 4., 8., 8., 8., 8., 8., 8., 8.];
        assert_eq!(find(DType::U32, &data, &[3., 8., 8., 8., 8., 8., 8., 8.]), [2, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn what_is_not_there_is_all_ones() {
        let data = [5., 1., 2., 3., 4., 6., 7., 8.];
        let vals = [9., 5., f32::NAN, 8., 5., -1., 1., 0.];
        let no = u32::MAX;
        assert_eq!(find(DType::U32, &data, &vals), [no, 0, no, 7, no, no, 1, no]);
        let no = 0xFFFF;
        assert_eq!(find(DType::U16, &data, &vals), [no, 0, no, 7, no, no, 1, no]);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor("data", Space::Sbuf, DType::F32, &[2, 16]);
        let small = m.tensor("small", Space::Sbuf, DType::F32, &[2, 4]);
        let vals = m.tensor("vals", Space::Sbuf, DType::F32, &[2, 8]);
        let dst = m.tensor("dst", Space::Sbuf, DType::U32, &[2, 8]);
        let other = m.tensor("other", Space::Sbuf, DType::U32, &[1, 8]);
        let base = NcFindIndex8 { dst, data, vals: vals.clone() };
        let said = |inst: NcFindIndex8| m.check(inst).unwrap_err();
        assert!(said(NcFindIndex8 { data: small.clone(), ..base.clone() }).contains("it must have 8 to 16384"));
        assert!(
            said(NcFindIndex8 { vals: small, ..base.clone() }).contains("= 4 elements per partition, it must have 8")
        );
        assert!(said(NcFindIndex8 { dst: vals, ..base.clone() }).contains("`dst` is float32; it must be uint16 or"));
        assert!(said(NcFindIndex8 { dst: other, ..base }).contains("`dst` has 1 partition, `data` has 2"));
    }
}
