//! `nisa.rand_get_state`: reads the state of random number generators.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use crate::arch::Arch;
use crate::inst::random::{Generators, check_state};
use crate::inst::stream::{on, rows, stream};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// Stores the state of an engine's random number generators, lane by lane (trn2 and later).
    pub struct RandGetState: "rand_get_state" on [GpSimd from Trn2, Vector from Trn3] {
        /// The state: uint32, 6 words per partition for gpsimd, 24 for vector. In PSUM only from the vector engine.
        [Out Sbuf Psum; U32] dst: View,
        /// Engine: gpsimd, or from trn3 vector.
        [Attr] engine: Engine = Engine::GpSimd,
    }
    numerics: "Bits move unchanged.",
    cost: Assumed "One pass over the words of a lane.",
    rules: {
        "words": "`dst` has two dimensions, (lanes, 6) for gpsimd and (lanes, 24) for vector",
        "psum-target": "`dst` in PSUM requires trn3",
        "gpsimd-psum": "on GpSimd no operand is in PSUM",
    },
}

/// The engine that is meant.
fn engine(requested: Engine) -> Engine {
    if requested == Engine::Unknown { Engine::GpSimd } else { requested }
}

impl Instruction for RandGetState {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        engine(self.engine)
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::engine_allowed(self.engine, &Self::SCHEMA, context.arch)?;
        if check::in_psum(&self.dst) && !context.arch.random_state_psum {
            return Err(Violation::new(
                "operand-memory",
                "dst",
                format!("`dst` is in psum, on {} it must be in sbuf", context.arch.target),
            ));
        }
        check::gpsimd_psum(engine(self.engine), &[("dst", &self.dst)])?;
        check_state("dst", &self.dst, engine(self.engine))
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let generators = Generators::of(engine(self.engine));
        let (lanes, words) = (self.dst.partitions() as usize, generators.words());
        let state = generators.state(machine);
        let tile =
            Array2::from_shape_fn((lanes, words), |(lane, word)| state.get(lane * words + word).copied().unwrap_or(0));
        machine.write_bits(&self.dst, tile.view())
    }

    fn action(&self) -> Action<'_> {
        Action::Sequenced
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        on(self.engine(context.arch), stream(rows("generator_state", "typical"), &[], &[&self.dst]))
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
        let check = |target, space, words, engine| {
            let mut m = TestMachine::new(target);
            let dst = m.tensor("d", space, DType::U32, &[1, words]);
            m.check(RandGetState { dst, engine })
        };
        check(Target::Trn3, Space::Psum, 24, Engine::Vector).unwrap();
        check(Target::Trn2, Space::Sbuf, 6, Engine::GpSimd).unwrap();
        let e = check(Target::Trn2, Space::Psum, 6, Engine::GpSimd).unwrap_err();
        assert!(e.contains("`dst` is in psum, on trn2 it must be in sbuf"), "{e}");
        let e = check(Target::Trn3, Space::Psum, 6, Engine::GpSimd).unwrap_err();
        assert!(e.contains("GpSimd engine cannot access"), "{e}");
        let e = check(Target::Trn3, Space::Sbuf, 24, Engine::GpSimd).unwrap_err();
        assert!(e.contains("lane of the gpsimd engine have 6 words"), "{e}");
        let e = check(Target::Trn1, Space::Sbuf, 6, Engine::GpSimd).unwrap_err();
        assert!(e.contains("rand_get_state needs trn2"), "{e}");
    }
}
