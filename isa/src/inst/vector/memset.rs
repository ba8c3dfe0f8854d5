//! `nisa.memset`: fills a tile with a constant.

use crate::arch::Arch;
use crate::arg::Imm;
use crate::dtype::DType;
use crate::inst::stream::{modes, on, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Cycles, Work};

operands! {
    /// Fills `dst` with a constant of its dtype.
    pub struct Memset: "memset" on [Vector, GpSimd] {
        /// The tile to fill.
        [Out Sbuf Psum] dst: View,
        /// The constant: an integer for integer dtypes.
        [Attr] value: Imm,
        /// Engine to use.
        [Attr] engine: Engine = Engine::Unknown,
    }
    numerics: "The value is converted once to the dtype of `dst`; integers are exact.",
    cost: Measured "One pass over the elements of a partition; zeros in 16-bit types go twice as fast.",
    rules: {
        "value-kind": "an integer tile takes an integer",
        "value-range": "the value fits the dtype, as a number or as a bit pattern",
        "packed-zero": "a tile of a packed dtype is filled with 0",
        "gpsimd-psum": "on GpSimd no operand is in PSUM",
    },
}

impl Instruction for Memset {
    const PLACING: Placing = Placing::SamePartition;
    fn engine(&self, _arch: &Arch) -> Engine {
        match self.engine {
            Engine::Unknown => Engine::Vector,
            engine => engine,
        }
    }

    const PACKED: &'static [&'static str] = &["dst"];

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::engine_allowed(self.engine, &Self::SCHEMA, context.arch)?;
        check::gpsimd_psum(self.engine, &[("dst", &self.dst)])?;
        if self.dst.dtype.is_packed() && self.value.as_f32() != 0.0 {
            return Err(Violation::new(
                "memset-value",
                "value",
                format!("the value {} for `dst` of {}: packed types take 0 only", self.value.as_f32(), self.dst.dtype),
            )
            .help("pass packed data to the kernel and load it with nisa.dma_copy"));
        }
        check::constant("value", self.value, self.dst.dtype)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let value = self.value.as_f32();
        if self.dst.dtype == DType::F8E8M0 && value <= 0.0 {
            let message = format!("`dst` is {}, which holds only powers of two: {value:?} becomes NaN", self.dst.dtype);
            let help = "fill with 1.0, or leave a tile of scales unfilled until the scales are written";
            machine.note_unexpected(Violation::new("non-finite", "value", message).help(help));
        }
        machine.fill(&self.dst, self.value)
    }

    fn action(&self) -> Action<'_> {
        Action::Fills(self.value)
    }

    fn doubt(&self) -> Option<Violation> {
        // The run reports values that only the dtype of `dst` does not hold.
        let (Some(i), Some((0, high))) = (self.value.as_i64().filter(|i| *i < 0), self.dst.dtype.int_range()) else {
            return None;
        };
        let (dtype, stored) = (self.dst.dtype, i + high + 1);
        let message = format!("`value` is {i}, which becomes {stored} in {dtype}");
        Some(
            Violation::new("wrapped-integer", "value", message)
                .help("write the number that is meant, or make `dst` a signed integer"),
        )
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Elements)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        // The fast mode of 16-bit types applies to zero (Beta-1 manual, `memset` cost).
        let narrow = if self.value.as_f32() == 0.0 { "memset_16bit_zero" } else { "memset" };
        let cycles = match self.dst.dtype.size() {
            1 => Cycles::all("memset_8bit"),
            _ => Cycles { narrow, psum_narrow: narrow, ..Cycles::all("memset") },
        };
        on(self.engine(context.arch), stream(modes(cycles, "memset"), &[], &[&self.dst]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn inst(dst: &View, value: Imm) -> Memset {
        Memset { dst: dst.clone(), value, engine: Engine::Unknown }
    }

    #[test]
    fn fills_with_the_value_in_the_dtype() {
        let mut m = TestMachine::new(Target::Trn2);
        let b = m.tensor("b", Space::Psum, DType::BF16, &[2, 3]);
        m.run(inst(&b, Imm::Float(0.1))).unwrap();
        assert_eq!(m.bits(&b), [0x3dcd; 6]);
        m.run(inst(&b, Imm::Int(-3))).unwrap();
        assert_eq!(m.f32s(&b), [-3.0; 6]);
        let i = m.tensor("i", Space::Sbuf, DType::I32, &[1, 2]);
        m.run(inst(&i, Imm::Int(16_777_217))).unwrap();
        assert_eq!(m.bits(&i), [16_777_217; 2]);
    }

    #[test]
    fn leaves_the_rest_alone() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[1, 4], &[1.0, 2.0, 3.0, 4.0]);
        let mut part = a.clone();
        part.offset = 1;
        part.dims[1].count = 2;
        m.run(inst(&part, Imm::Int(0))).unwrap();
        assert_eq!(m.f32s(&a), [1.0, 0.0, 0.0, 4.0]);
    }

    #[test]
    fn rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let i = m.tensor("i", Space::Sbuf, DType::U8, &[1, 2]);
        assert!(m.check(inst(&i, Imm::Float(1.5))).unwrap_err().contains("is not an integer"));
        assert!(m.check(inst(&i, Imm::Float(1e12))).unwrap_err().contains("is not an integer"));
        m.run(inst(&i, Imm::Float(3.0))).unwrap();
        assert_eq!(m.f32s(&i), [3.0, 3.0]);
        assert!(m.check(inst(&i, Imm::Int(256))).unwrap_err().contains("256, which is not an integer from 0 to 255"));
        assert!(m.check(inst(&i, Imm::Int(255))).is_ok());
        assert!(m.check(inst(&i, Imm::Int(-1))).is_ok(), "a bit pattern written as a signed number");
        let p = m.tensor("p", Space::Psum, DType::F32, &[1, 2]);
        assert!(m.check(Memset { dst: p, value: Imm::Int(0), engine: Engine::GpSimd }).unwrap_err().contains("GpSimd"));
    }
}
