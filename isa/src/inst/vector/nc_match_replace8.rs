//! `nisa.nc_match_replace8`: replaces eight values of each partition and returns their positions.

use super::bn_stats::elements;
use super::max8::searched;
use super::nc_find_index8::NOT_FOUND;
use crate::arch::Arch;
use crate::arg::Imm;
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
    /// Copies `data` with the first occurrence of each of the 8 values replaced by `imm`.
    pub struct NcMatchReplace8: "nc_match_replace8" on [Vector] {
        /// `data` with the replacements.
        [Out Sbuf Psum] dst: View,
        /// Searched tile of 8 to 16384 elements per partition and at most 3 dimensions.
        [In Sbuf Psum] data: View,
        /// The values: 8 elements per partition.
        [In Sbuf Psum] vals: View,
        /// What replaces them (float32).
        [Attr] imm: Imm,
        /// Where the values stood: 8 elements per partition, uint16 or uint32.
        [Out Sbuf Psum; U16 U32] dst_idx: Option<View> = None,
    }
    numerics: "Values are compared in fp32; what is not replaced is converted through fp32 if `dst` has another dtype.",
    cost: Documented "N steps for N elements of a partition of `data`.",
    rules: {
        "same-size": "`data` and `dst` have the same number of partitions and of elements per partition",
        "same-partitions": "`vals` and `dst_idx` have as many partitions as `data`",
        "data-size": "`data` has 8 to 16384 elements per partition",
        "rank": "`data` and `vals` have at most 3 dimensions",
        "vals-size": "`vals` has 8 elements per partition",
        "index-size": "`dst_idx` has 8 elements per partition",
    },
}

impl Instruction for NcMatchReplace8 {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("data")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        let data = ("data", &self.data);
        check::same_shape(data, ("dst", &self.dst))?;
        check::same_partitions(data, ("vals", &self.vals))?;
        // The sizes are those of max8 and nc_find_index8, with which it is used (nki.isa reference 2.20-2.26).
        searched("data", &self.data, 3)?;
        check::rank("vals", &self.vals, 3)?;
        elements("vals", &self.vals, 8)?;
        if let Some(index) = &self.dst_idx {
            check::same_partitions(data, ("dst_idx", index))?;
            elements("dst_idx", index, 8)?;
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// Values are compared in fp32, `vals` from its last to its first; each position is used once. Open question: `dst_idx` of a value
    /// that is not in `data`; here it is all ones, as `nc_find_index8` documents.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let imm = self.imm.as_f32();
        let row = move |_: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            let (data, vals) = (ins[0], ins[1]);
            let mut found = [NOT_FOUND; 8];
            for i in (0..vals.len().min(8)).rev() {
                let later = vals[i + 1..].iter().position(|&v| v == vals[i]).map(|at| found[i + 1 + at]);
                let start = match later {
                    None => 0,
                    Some(NOT_FOUND) => data.len(),
                    Some(at) => at as usize + 1,
                };
                if let Some(at) = position(&data[start..], vals[i]) {
                    found[i] = (start + at) as f32;
                }
            }
            outs[0].copy_from_slice(data);
            for &at in found.iter().filter(|&&at| at != NOT_FOUND) {
                outs[0][at as usize] = imm;
            }
            if let Some(index) = outs.get_mut(1) {
                index.copy_from_slice(&found[..index.len()]);
            }
        };
        let sources = [&self.data, &self.vals];
        match &self.dst_idx {
            Some(index) => machine.map_f32(&[&self.dst, index], &sources, Box::new(row), None),
            None => machine.map_f32(&[&self.dst], &sources, Box::new(row), None),
        }
    }

    fn values(&self) -> Values<'_> {
        // Only an index can be missing: `dst` holds data.
        let immediates = [self.imm.as_f32()].into_iter().collect();
        Values { marks_absence: [false, true], immediates, ..Values::moved(Feeds::Elements) }
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let outputs: Vec<&View> = [&self.dst].into_iter().chain(&self.dst_idx).collect();
        on(Engine::Vector, stream(rows("nc_match_replace8", "typical"), &[&self.data, &self.vals], &outputs))
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
    fn duplicates_are_paired_in_descending_order() {
        // The example of the manual.
        let mut m = TestMachine::new(Target::Trn2);
        let row = [1., 2., 3., 4., 8., 8., 8., 8., 8., 8., 8.];
        let data = m.tensor_f32("data", Space::Sbuf, DType::F32, &[1, 11], &row);
        let vals = m.tensor_f32("vals", Space::Sbuf, DType::F32, &[1, 8], &[3., 8., 8., 8., 8., 8., 8., 8.]);
        let index = m.tensor("index", Space::Sbuf, DType::U32, &[1, 8]);
        let imm = Imm::Float(f64::NEG_INFINITY);
        m.run(NcMatchReplace8 { dst: data.clone(), data: data.clone(), vals, imm, dst_idx: Some(index.clone()) })
            .unwrap();
        assert_eq!(m.bits(&index), [2, 10, 9, 8, 7, 6, 5, 4]);
        let x = f32::NEG_INFINITY;
        assert_eq!(m.f32s(&data), [1., 2., x, 4., x, x, x, x, x, x, x]);
    }

    #[test]
    fn only_as_many_as_asked_are_replaced() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_f32("data", Space::Psum, DType::BF16, &[1, 9], &[5., 5., 5., 1., 2., 3., 4., 6., 7.]);
        let vals = m.tensor_f32("vals", Space::Sbuf, DType::F32, &[1, 8], &[5., 9., 5., 10., 11., 12., 7., 13.]);
        let dst = m.tensor("dst", Space::Sbuf, DType::F32, &[1, 9]);
        let index = m.tensor("index", Space::Sbuf, DType::U16, &[1, 8]);
        let dst_idx = Some(index.clone());
        m.run(NcMatchReplace8 { dst: dst.clone(), data, vals, imm: Imm::Int(0), dst_idx }).unwrap();
        assert_eq!(m.f32s(&dst), [0., 0., 5., 1., 2., 3., 4., 6., 0.]);
        let no = 0xFFFF;
        assert_eq!(m.bits(&index), [1, no, 0, no, no, no, 8, no]);
    }

    #[test]
    fn data_is_never_absent() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor("data", Space::Sbuf, DType::F32, &[2, 16]);
        let vals = m.tensor("vals", Space::Sbuf, DType::F32, &[2, 8]);
        let inst = NcMatchReplace8 { dst: data.clone(), data, vals, imm: Imm::Int(0), dst_idx: None };
        assert_eq!(inst.values().marks_absence, [false, true]);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor("data", Space::Sbuf, DType::F32, &[2, 16]);
        let vals = m.tensor("vals", Space::Sbuf, DType::F32, &[2, 8]);
        let base = NcMatchReplace8 {
            dst: data.clone(),
            data: data.clone(),
            vals: vals.clone(),
            imm: Imm::Int(0),
            dst_idx: None,
        };
        let said = |inst: NcMatchReplace8| m.check(inst).unwrap_err();
        assert!(said(NcMatchReplace8 { dst: vals.clone(), ..base.clone() }).contains("`dst` has [2, 8]"));
        assert!(said(NcMatchReplace8 { vals: data, ..base.clone() }).contains("it must have 8"));
        assert!(said(NcMatchReplace8 { dst_idx: Some(vals), ..base }).contains("`dst_idx` is float32"));
    }
}
