//! `nisa.core_barrier`: the physical cores of a logical core wait for each other.

use crate::arch::Arch;
use crate::arg::Ints;
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{Engine, Space};
use crate::operands;
use crate::rendezvous::Participants;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{RendezvousWork, Work, WorkKind};

operands! {
    /// Waits until all `cores` have come here. What a core has written to `data` before, the others see after.
    pub struct CoreBarrier: "core_barrier" on [GpSimd from Trn2, Sync from Trn2, Vector from Trn2, Scalar from Trn2, Tensor from Trn2] {
        /// The shared tensor that the cores synchronise on.
        [InOut Hbm Sbuf] data: View,
        /// The cores that wait for each other: `(0, 1)`. With one core there is nothing to wait for.
        [Attr] cores: Ints,
        /// The engine that waits; the others go on.
        [Attr] engine: Engine = Engine::GpSimd,
    }
    numerics: "It computes nothing.",
    cost: Assumed "Both cores wait for the later one; a fixed part for the semaphores.",
    rules: {
        "shared": "`data` is not in private HBM",
        "cores": "`cores` is (0, 1)",
    },
}

impl Instruction for CoreBarrier {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        match self.engine {
            Engine::Unknown => Engine::GpSimd,
            engine => engine,
        }
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::engine_allowed(self.engine, &Self::SCHEMA, context.arch)?;
        if self.data.space == Space::Hbm {
            return Err(Violation::new(
                "operand-memory",
                "data",
                "`data` is in private_hbm, which the other core cannot reach: it must be in shared_hbm",
            )
            .help("allocate it with buffer=nl.shared_hbm"));
        }
        let mut cores = self.cores.0.clone();
        cores.sort_unstable();
        match cores[..] {
            [0 | 1] | [0, 1] => Ok(()),
            _ => Err(Violation::new(
                "operand-value",
                "cores",
                format!("`cores` is {:?}, but a logical core has the cores 0 and 1", self.cores.0),
            )
            .help("write cores=(0, 1)")),
        }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        // It moves nothing, but accesses to `data` must not be reordered across it.
        footprint.read(&self.data);
        footprint.writes.push(&self.data);
    }

    fn execute(&self, _machine: &mut dyn Machine) -> Result<(), Fault> {
        Ok(())
    }

    fn action(&self) -> Action<'_> {
        Action::Orders
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        Work { engine: self.engine(context.arch), kind: WorkKind::Rendezvous(RendezvousWork::Barrier) }
    }

    fn participants(&self) -> Option<Participants<'_>> {
        (self.cores.0.len() > 1).then_some(Participants::Cores(&self.cores.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::testing::TestMachine;

    fn barrier(data: &View, cores: &[i64]) -> CoreBarrier {
        CoreBarrier { data: data.clone(), cores: Ints(cores.to_vec()), engine: Engine::GpSimd }
    }

    #[test]
    fn two_cores_meet_on_shared_data() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor("d", Space::SharedHbm, DType::F32, &[4]);
        let both = barrier(&data, &[0, 1]);
        m.run(both.clone()).unwrap();
        assert_eq!(both.participants().map(|x| x.members(1)), Some(vec![0, 1]));
        // It reads nothing: unwritten data is not a finding.
        assert!(m.uninitialized.is_empty());
        assert_eq!(barrier(&data, &[0]).participants(), None);
    }

    #[test]
    fn other_memories_cores_engines_and_targets_are_refused() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor("d", Space::SharedHbm, DType::F32, &[4]);
        let private = m.tensor("p", Space::Hbm, DType::F32, &[4]);
        let e = m.check(barrier(&private, &[0, 1])).unwrap_err();
        assert!(e.contains("must be in shared_hbm"), "{e}");
        for cores in [&[0, 2][..], &[], &[0, 0], &[0, 1, 2], &[-1]] {
            let e = m.check(barrier(&data, cores)).unwrap_err();
            assert!(e.contains("the cores 0 and 1"), "{e}");
        }
        let e = m.check(CoreBarrier { engine: Engine::Dma, ..barrier(&data, &[0, 1]) }).unwrap_err();
        assert!(e.contains("not on dma"), "{e}");
        let mut old = TestMachine::new(Target::Trn1);
        let data = old.tensor("d", Space::SharedHbm, DType::F32, &[4]);
        let e = old.check(barrier(&data, &[0, 1])).unwrap_err();
        assert!(e.contains("needs trn2 or later"), "{e}");
    }
}
