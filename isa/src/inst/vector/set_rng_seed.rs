//! `nisa.set_rng_seed`: seeds the vector engine's random number generators.

use crate::arch::Arch;
use crate::inst::random::Generators;
use crate::inst::stream::{on, rows, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// Seeds the vector engine's random number generators: the same seed gives the same numbers.
    pub struct SetRngSeed: "set_rng_seed" on [Vector] {
        /// The seed: shape (1, 1), 32 bits.
        [In Sbuf Psum; I32 U32 F32 TF32] src_seeds: View,
    }
    numerics: "The 32 bits as they are.",
    cost: Assumed "One element.",
    rules: {
        "one-element": "`src_seeds` has one element",
    },
}

impl Instruction for SetRngSeed {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        if self.src_seeds.elements() != 1 {
            return Err(Violation::new(
                "shape-mismatch",
                "src_seeds",
                format!("`src_seeds` has shape {:?}; it must be [1, 1]", self.src_seeds.shape()),
            ));
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let seed = machine.read_bits(&self.src_seeds)?.first().copied().unwrap_or(0);
        let generators = Generators::of(Engine::Vector);
        *generators.state(machine) = generators.seeded(seed);
        Ok(())
    }

    fn action(&self) -> Action<'_> {
        Action::Sequenced
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        on(Engine::Vector, stream(rows("generator_state", "typical"), &[&self.src_seeds], &[]))
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
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let two = m.tensor("t", Space::Sbuf, DType::U32, &[1, 2]);
        let half = m.tensor("h", Space::Sbuf, DType::U16, &[1, 1]);
        let float = m.tensor("f", Space::Psum, DType::F32, &[1, 1]);
        assert!(m.check(SetRngSeed { src_seeds: two }).unwrap_err().contains("has shape [1, 2]; it must be [1, 1]"));
        assert!(m.check(SetRngSeed { src_seeds: half }).unwrap_err().contains("is uint16; it must be int32"));
        m.check(SetRngSeed { src_seeds: float }).unwrap();
    }
}
