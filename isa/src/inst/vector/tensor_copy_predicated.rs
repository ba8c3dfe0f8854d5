//! `nisa.tensor_copy_predicated`: copies where a predicate holds.

use std::iter::repeat;

use smallvec::SmallVec;

use crate::arch::Arch;
use crate::arg::{Imm, ScalarOperand};
use crate::dtype::{f32_to_bits, i64_to_bits};
use crate::inst::doubt;
use crate::inst::math::moves;
use crate::inst::scalars;
use crate::inst::stream::{on, rows, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{Engine, OobMode};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Stream, Work};

operands! {
    /// `dst = src` where `predicate` is not zero; other elements of `dst` stay as they are.
    pub struct TensorCopyPredicated: "tensor_copy_predicated" on [Vector] {
        /// Destination.
        [InOut Sbuf Psum] dst: View,
        /// A tile of the dtype and shape of `dst`, or a number.
        [In Sbuf Psum] src: ScalarOperand,
        /// Which elements to copy: unsigned integers of the shape of `dst`.
        [In Sbuf Psum; U8 U16 U32 Bool] predicate: View,
        /// Copy where the predicate is zero instead.
        [Attr] reverse_pred: bool = false,
    }
    numerics: "Bits move unchanged.",
    cost: Measured "One pass over the elements of a partition with two tiles read.",
    rules: {
        "same-size": "`src`, `predicate` and `dst` have the same number of partitions and of elements per partition",
        "rank": "`dst`, `predicate` and a tile as `src` have at most 4 dimensions",
        "both-psum": "`src` and `predicate` are not both in PSUM",
        "same-dtype": "a tile as `src` has the dtype of `dst`",
        "number-range": "a number as `src` fits the dtype of `dst`, as a number or as a bit pattern",
    },
}

/// Most dimensions of the tiles (tensor_copy_predicated reference of 2.33).
const RANK: usize = 4;

impl Instruction for TensorCopyPredicated {
    const PLACING: Placing = Placing::Fixed;
    const INDIRECT: &'static [&'static str] = &["dst", "predicate"];

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_shape(("dst", &self.dst), ("predicate", &self.predicate))?;
        check::rank("dst", &self.dst, RANK)?;
        check::rank("predicate", &self.predicate, RANK)?;
        if let ScalarOperand::View(src) = &self.src {
            check::same_shape(("dst", &self.dst), ("src", src))?;
            check::rank("src", src, RANK)?;
            check::not_both_psum(("src", src), ("predicate", &self.predicate))?;
            check::same_dtype(("dst", &self.dst), ("src", src))?;
        }
        match self.src {
            ScalarOperand::Imm(number) => check::constant("src", number, self.dst.dtype),
            _ => Ok(()),
        }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut mask: Vec<bool> = Vec::with_capacity(self.predicate.elements());
        machine.map_bits(&[], &[&self.predicate], &mut |rows| {
            rows.iter().for_each(|row| mask.extend(row.ins[0].iter().map(|&bits| (bits != 0) != self.reverse_pred)));
            Ok(())
        })?;
        let dtype = self.dst.dtype;
        // If nothing or everything is copied, the old content is not read: it may be unwritten.
        let count = mask.iter().filter(|m| **m).count();
        if count == 0 {
            return Ok(());
        }
        let fixed = match &self.src {
            ScalarOperand::View(src) if count == mask.len() => return machine.copy(&self.dst, src, OobMode::Error),
            ScalarOperand::View(_) => 0,
            ScalarOperand::Imm(Imm::Int(i)) if dtype.is_int() => i64_to_bits(dtype, *i),
            ScalarOperand::Imm(i) => f32_to_bits(dtype, i.as_f32()),
            ScalarOperand::Register(r) if dtype.is_int() => {
                let value = machine.register(*r);
                if let Err(lost) = check::constant("src", Imm::Int(value), dtype) {
                    machine.note_unexpected(Violation { id: "saturated-store", ..lost });
                }
                i64_to_bits(dtype, value)
            }
            ScalarOperand::Register(r) => f32_to_bits(dtype, machine.register(*r) as f32),
        };
        let fixed = machine.representation().bits(dtype, fixed);
        let mut sources: SmallVec<[&View; 2]> = SmallVec::new();
        sources.extend((count < mask.len()).then_some(&self.dst));
        sources.extend(self.src.view());
        let width = self.dst.free_elements();
        machine.map_bits(&[&self.dst], &sources, &mut |rows| {
            for row in rows {
                let mask = &mask[row.partition * width..][..width];
                let out = &mut *row.outs[0];
                match row.ins[..] {
                    [old, new] => moves::choose(mask, new.iter().copied(), old, out),
                    [old] => moves::choose(mask, repeat(fixed), old, out),
                    _ => out.fill(fixed),
                }
            }
            Ok(())
        })
    }

    fn doubt(&self) -> Option<Violation> {
        match self.src {
            ScalarOperand::Imm(number) => doubt::overflows("src", number, self.dst.dtype),
            _ => None,
        }
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Elements).with_numbers([&self.src]).selecting(self.src.view())
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let src = self.src.view().filter(|v| v.free_elements() > 1);
        let inputs: Vec<&View> = src.into_iter().chain([&self.predicate]).collect();
        let scalar_reads = if src.is_none() { scalars::reads([&self.src]) } else { 0 };
        let stream = stream(rows("predicated", "predicated"), &inputs, &[&self.dst]);
        on(Engine::Vector, Stream { scalar_reads, ..stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn inst(dst: &View, src: ScalarOperand, predicate: &View) -> TensorCopyPredicated {
        TensorCopyPredicated { dst: dst.clone(), src, predicate: predicate.clone(), reverse_pred: false }
    }

    #[test]
    fn copies_where_it_holds() {
        let mut m = TestMachine::new(Target::Trn2);
        let d = m.tensor_f32("d", Space::Sbuf, DType::F32, &[1, 4], &[1.0, 2.0, 3.0, 4.0]);
        // A NaN with payload: bits must be preserved.
        let s = m.tensor_bits("s", Space::Psum, DType::F32, &[1, 4], &[0x7f80_0001, 0, 0, 0x3f00_0000]);
        let p = m.tensor_bits("p", Space::Sbuf, DType::U8, &[1, 4], &[1, 0, 0, 255]);
        m.run(inst(&d, ScalarOperand::View(s), &p)).unwrap();
        assert_eq!(m.bits(&d), [0x7f80_0001, 0x4000_0000, 0x4040_0000, 0x3f00_0000]);
        let mut i = inst(&d, ScalarOperand::Imm(Imm::Float(-1.5)), &p);
        i.reverse_pred = true;
        m.run(i).unwrap();
        assert_eq!(m.f32s(&d)[1..], [-1.5, -1.5, 0.5]);
    }

    #[test]
    fn does_not_read_what_it_overwrites_completely() {
        let mut m = TestMachine::new(Target::Trn2);
        let d = m.tensor("d", Space::Sbuf, DType::I32, &[1, 2]);
        let p = m.tensor_bits("p", Space::Sbuf, DType::U32, &[1, 2], &[1, 1]);
        m.run(inst(&d, ScalarOperand::Imm(Imm::Int(16_777_217)), &p)).unwrap();
        assert_eq!(m.bits(&d), [16_777_217; 2]);
        assert!(m.uninitialized.is_empty());
    }

    #[test]
    fn rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let d = m.tensor("d", Space::Sbuf, DType::F32, &[1, 4]);
        let p = m.tensor("p", Space::Psum, DType::U8, &[1, 4]);
        let s = m.tensor("s", Space::Psum, DType::F32, &[1, 4]);
        let half = m.tensor("h", Space::Sbuf, DType::BF16, &[1, 4]);
        let error = |i: TensorCopyPredicated| m.check(i).unwrap_err();
        assert!(error(inst(&d, ScalarOperand::View(s), &p)).contains("both in PSUM"));
        assert!(error(inst(&d, ScalarOperand::View(half), &p)).contains("same dtype"));
        assert!(error(inst(&d, ScalarOperand::Imm(Imm::Int(0)), &d)).contains("uint8, uint16, uint32 or bool"));
    }
}
