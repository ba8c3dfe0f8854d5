//! `nisa.rand2`: uniformly distributed random numbers.

use crate::arch::Arch;
use crate::arg::ScalarOperand;
use crate::inst::math::xorwow;
use crate::inst::random::Generators;
use crate::inst::scalars::{self, Sources};
use crate::inst::stream::{on, rows, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Stream, Work};

operands! {
    /// Fills `dst` with random numbers that are uniformly distributed from `min` to `max` (trn3 and later).
    pub struct Rand2: "rand2" on [Vector from Trn3] {
        /// The tile to fill.
        [Out Sbuf Psum; F8E4M3 F8E5M2 F16 BF16 F32 TF32 I8 I16 I32 U8 U16 U32] dst: View,
        /// Lower end: a number or a float32 tile of shape (P, 1).
        [In Sbuf Psum; F32] min: ScalarOperand,
        /// Upper end: a number or a float32 tile of shape (P, 1).
        [In Sbuf Psum; F32] max: ScalarOperand,
    }
    instead: "draw bits with nisa.rng and scale them with nisa.tensor_scalar",
    numerics: "`min + (max - min) * u` in fp32 with u of 24 random bits, rounded once to the dtype of `dst`. How the \
        engine makes a float of its bits is not documented.",
    cost: Documented "A step for four elements of a partition.",
    rules: {
        "per-partition": "`min`, `max`: a tile has one element per partition, and as many partitions as the input",
        "order": "`min` is less than `max`",
    },
}

impl Instruction for Rand2 {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        for (name, end) in [("min", &self.min), ("max", &self.max)] {
            check::scalar_operand(("dst", &self.dst), name, end)?;
        }
        match (&self.min, &self.max) {
            (ScalarOperand::Imm(min), ScalarOperand::Imm(max)) if min.as_f32() >= max.as_f32() => Err(Violation::new(
                "operand-value",
                "min",
                format!("`min` is {:?} and `max` {:?}; `min` must be less", min.as_f32(), max.as_f32()),
            )),
            _ => Ok(()),
        }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// `min + (max - min) * u` in fp32, with `u` in `[0, 1)` from the upper 24 bits drawn. Open question: how the engine converts
    /// its bits to a float.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::new();
        let min = scalars::scalar_f32(machine, Some(&self.min), &mut sources);
        let max = scalars::scalar_f32(machine, Some(&self.max), &mut sources);
        let (partitions, elements) = (self.dst.partitions() as usize, self.dst.free_elements());
        let bits = Generators::of(Engine::Vector).draw(machine, partitions, elements);
        let row = move |p: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            let (min, max) = (min.get(ins), max.get(ins));
            for (o, &b) in outs[0].iter_mut().zip(bits.row(p)) {
                *o = min + (max - min) * xorwow::unit(b);
            }
        };
        machine.map_f32(&[&self.dst], &sources, Box::new(row), None)
    }

    fn action(&self) -> Action<'_> {
        Action::Sequenced
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Elements)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let stream = stream(rows("rand2", "typical"), &[], &[&self.dst]);
        on(Engine::Vector, Stream { scalar_reads: scalars::reads([&self.min, &self.max]), ..stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::arg::Imm;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn imm(x: f64) -> ScalarOperand {
        ScalarOperand::Imm(Imm::Float(x))
    }

    #[test]
    fn numbers_lie_between_each_partitions_ends() {
        let mut m = TestMachine::new(Target::Trn3);
        let dst = m.tensor("d", Space::Psum, DType::F32, &[2, 1000]);
        let min = m.tensor_f32("m", Space::Sbuf, DType::F32, &[2, 1], &[-2., 8.]);
        m.run(Rand2 { dst: dst.clone(), min: ScalarOperand::View(min), max: imm(10.) }).unwrap();
        let got = m.f32s(&dst);
        for (row, (low, mean)) in got.chunks(1000).zip([(-2., 4.), (8., 9.)]) {
            assert!(row.iter().all(|&x| (low..10.0).contains(&x)));
            let got = row.iter().sum::<f32>() / 1000.;
            assert!((got - mean).abs() < 0.3, "{got}");
        }
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 4]);
        let rand = |dst: &View, min, max| Rand2 { dst: dst.clone(), min, max };
        assert!(m.check(rand(&dst, imm(0.), imm(1.))).unwrap_err().contains("needs trn3 (target is trn2)"));
        let mut m = TestMachine::new(Target::Trn3);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 4]);
        let fn8 = m.tensor("e", Space::Sbuf, DType::F8E4M3FN, &[1, 4]);
        let half = m.tensor("h", Space::Sbuf, DType::BF16, &[1, 1]);
        assert!(m.check(rand(&dst, imm(1.), imm(1.))).unwrap_err().contains("`min` is 1.0 and `max` 1.0"));
        assert!(m.check(rand(&fn8, imm(0.), imm(1.))).unwrap_err().contains("`dst` is float8_e4m3fn"));
        let e = m.check(rand(&dst, imm(0.), ScalarOperand::View(half))).unwrap_err();
        assert!(e.contains("`max` is bfloat16; it must be float32"), "{e}");
    }
}
