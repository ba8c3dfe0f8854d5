//! `nisa.rng`: random bits.

use crate::arch::Arch;
use crate::inst::random::Generators;
use crate::inst::stream::{on, rows, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// Fills `dst` with random bits: for each element the lowest of 32.
    pub struct Rng: "rng" on [Vector, GpSimd from Trn2] {
        /// The tile to fill, of an integer type.
        [Out Sbuf Psum; I8 I16 I32 U8 U16 U32] dst: View,
        /// Engine to use: vector, or from trn2 gpsimd.
        [Attr] engine: Engine = Engine::Vector,
    }
    numerics: "The low bits of 32 random ones. The generator is XORWOW (documented for trn3; the LFSR of trn1 and trn2 \
        is not published).",
    cost: Assumed "A step for each element of a partition; on trn3 for four (documented).",
    rules: {
        "gpsimd-psum": "on GpSimd no operand is in PSUM",
    },
}

impl Instruction for Rng {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        match self.engine {
            Engine::Unknown => Engine::Vector,
            engine => engine,
        }
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::engine_allowed(self.engine, &Self::SCHEMA, context.arch)?;
        check::gpsimd_psum(self.engine, &[("dst", &self.dst)])
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let (dtype, representation) = (self.dst.dtype, machine.representation());
        let mask = u32::MAX >> (32 - 8 * dtype.size() as u32);
        Generators::of(self.engine).map_bits(machine, &self.dst, &[], &mut |row| {
            if mask != u32::MAX {
                row.outs[0].iter_mut().for_each(|b| *b = representation.bits(dtype, *b & mask));
            }
        })
    }

    fn action(&self) -> Action<'_> {
        Action::Sequenced
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        on(self.engine(context.arch), stream(rows("rng", "typical"), &[], &[&self.dst]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::set_rng_seed::SetRngSeed;
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    #[test]
    fn a_seed_repeats_its_numbers_and_they_go_on() {
        let mut m = TestMachine::new(Target::Trn2);
        let seed = m.tensor_bits("seed", Space::Sbuf, DType::U32, &[1, 1], &[42]);
        let dst = m.tensor("d", Space::Sbuf, DType::U32, &[2, 5]);
        let mut draw = |seeded: bool, engine| {
            if seeded {
                m.run(SetRngSeed { src_seeds: seed.clone() }).unwrap();
            }
            m.run(Rng { dst: dst.clone(), engine }).unwrap();
            m.bits(&dst)
        };
        let first = draw(true, Engine::Vector);
        let second = draw(false, Engine::Vector);
        assert_ne!(first, second);
        assert_ne!(first[..5], first[5..]);
        // The seed belongs to the vector engine: GpSimd has its own generators.
        let other = draw(true, Engine::GpSimd);
        assert_eq!(draw(false, Engine::Vector), first);
        assert_ne!(draw(false, Engine::GpSimd), other);
    }

    #[test]
    fn narrow_types_take_the_lowest_bits() {
        let bits = |dtype| {
            let mut m = TestMachine::new(Target::Trn3);
            let dst = m.tensor("d", Space::Psum, dtype, &[1, 64]);
            m.run(Rng { dst: dst.clone(), engine: Engine::Vector }).unwrap();
            m.bits(&dst)
        };
        let wide = bits(DType::U32);
        assert_eq!(bits(DType::U8), wide.iter().map(|b| b & 0xFF).collect::<Vec<_>>());
        assert_eq!(bits(DType::I16), wide.iter().map(|b| b & 0xFFFF).collect::<Vec<_>>());
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn1);
        let sbuf = m.tensor("d", Space::Sbuf, DType::U32, &[1, 4]);
        let float = m.tensor("f", Space::Sbuf, DType::F32, &[1, 4]);
        let said = |m: &TestMachine, dst: &View, engine| m.check(Rng { dst: dst.clone(), engine }).unwrap_err();
        assert!(said(&m, &sbuf, Engine::GpSimd).contains("needs trn2 or later"));
        assert!(said(&m, &sbuf, Engine::Scalar).contains("it runs on vector, not on scalar"));
        assert!(said(&m, &float, Engine::Vector).contains("`dst` is float32"));
        let mut m = TestMachine::new(Target::Trn2);
        let psum = m.tensor("p", Space::Psum, DType::U32, &[1, 4]);
        assert!(said(&m, &psum, Engine::GpSimd).contains("`dst` is in PSUM"));
    }
}
