//! `nisa.rand_set_state`: sets the state of random number generators.

use crate::arch::Arch;
use crate::inst::random::{Generators, check_state};
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
    /// Sets the state of an engine's random number generators, lane by lane (trn2 and later).
    pub struct RandSetState: "rand_set_state" on [GpSimd from Trn2, Vector from Trn3] {
        /// The state: uint32, 6 words per partition for gpsimd, 24 for vector.
        [In Sbuf; U32] src_seeds: View,
        /// Engine: gpsimd, or from trn3 vector.
        [Attr] engine: Engine = Engine::GpSimd,
    }
    numerics: "Bits move unchanged.",
    cost: Assumed "One pass over the words of a lane.",
    rules: {
        "words": "`src_seeds` has two dimensions, (lanes, 6) for gpsimd and (lanes, 24) for vector",
    },
}

/// The engine that is meant.
fn engine(requested: Engine) -> Engine {
    if requested == Engine::Unknown { Engine::GpSimd } else { requested }
}

impl Instruction for RandSetState {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        engine(self.engine)
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::engine_allowed(self.engine, &Self::SCHEMA, context.arch)?;
        check_state("src_seeds", &self.src_seeds, engine(self.engine))
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let tile = machine.read_bits(&self.src_seeds)?;
        let state = Generators::of(engine(self.engine)).state(machine);
        for (word, &new) in state.iter_mut().zip(&tile) {
            *word = new;
        }
        Ok(())
    }

    fn action(&self) -> Action<'_> {
        Action::Sequenced
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        on(self.engine(context.arch), stream(rows("generator_state", "typical"), &[&self.src_seeds], &[]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::inst::gpsimd::rand_get_state::RandGetState;
    use crate::inst::math::xorwow;
    use crate::inst::vector::rng::Rng;
    use crate::names::Space;
    use crate::testing::TestMachine;

    #[test]
    fn a_saved_state_gives_the_same_numbers_again() {
        for (engine, words) in [(Engine::GpSimd, 6), (Engine::Vector, 24)] {
            let mut m = TestMachine::new(Target::Trn3);
            let seeds: Vec<u32> = (1..=2 * words).collect();
            let src_seeds = m.tensor_bits("s", Space::Sbuf, DType::U32, &[2, words], &seeds);
            let saved = m.tensor("g", Space::Sbuf, DType::U32, &[2, words]);
            let dst = m.tensor("d", Space::Sbuf, DType::U32, &[2, 3]);
            m.run(RandSetState { src_seeds, engine }).unwrap();
            m.run(RandGetState { dst: saved.clone(), engine }).unwrap();
            assert_eq!(m.bits(&saved), seeds);
            m.run(Rng { dst: dst.clone(), engine }).unwrap();
            let first = m.bits(&dst);
            assert_eq!(first[0], xorwow::next(&mut [1, 2, 3, 4, 5, 6]));
            m.run(RandSetState { src_seeds: saved, engine }).unwrap();
            m.run(Rng { dst: dst.clone(), engine }).unwrap();
            assert_eq!(m.bits(&dst), first);
        }
    }

    #[test]
    fn broken_rules() {
        let said = |target, dtype, words, engine| {
            let mut m = TestMachine::new(target);
            let src_seeds = m.tensor("s", Space::Sbuf, dtype, &[1, words]);
            m.check(RandSetState { src_seeds, engine }).unwrap_err()
        };
        let e = said(Target::Trn1, DType::U32, 6, Engine::GpSimd);
        assert!(e.contains("rand_set_state needs trn2 or later"), "{e}");
        let e = said(Target::Trn2, DType::U32, 24, Engine::Vector);
        assert!(e.contains("on the vector engine needs trn3 (target is trn2)"), "{e}");
        assert!(said(Target::Trn2, DType::I32, 6, Engine::GpSimd).contains("is int32; it must be uint32"));
        let e = said(Target::Trn3, DType::U32, 6, Engine::Vector);
        assert!(e.contains("has shape [1, 6]; the generators of a lane of the vector engine have 24 words"), "{e}");
        assert!(said(Target::Trn3, DType::U32, 6, Engine::Tensor).contains("not on tensor"));
    }
}
