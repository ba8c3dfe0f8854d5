//! `nisa.scalar_load`: reads an integer from memory into a scalar.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::arch::Arch;
use crate::ids::RegId;
use crate::inst::sync::one_element;
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{RegisterWork, Work, WorkKind};

operands! {
    /// Loads the only element of `src` into a scalar of the same width. In a kernel `nisa.scalar_load(src)` returns the scalar (`NkiScalar`).
    pub struct ScalarLoad: "scalar_load" on [Sync] {
        /// The register of the new scalar.
        [Out] dst: RegId,
        /// A tensor of one element.
        [In Sbuf Hbm; I32 I64] src: View,
    }
    numerics: "The integer as it is, 32 or 64 bits.",
    cost: Assumed "As register_load.",
    rules: {
        "one-element": "`src` has one element",
    },
}

impl Instruction for ScalarLoad {
    const PLACING: Placing = Placing::Fixed;
    const WIDE: &'static [&'static str] = &["src"];
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        one_element("src", &self.src)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let value = AtomicI64::new(0);
        machine.map_i64(&[], &[&self.src], &|_, ins, _| value.store(ins[0][0], Ordering::Relaxed))?;
        machine.set_register(self.dst, value.into_inner());
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        Work { engine: self.engine(context.arch), kind: WorkKind::Register(RegisterWork::Load) }
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
    fn keeps_the_sign_of_32_bits() {
        let mut m = TestMachine::new(Target::Trn2);
        for space in [Space::Sbuf, Space::SharedHbm] {
            let src = m.tensor_bits("t", space, DType::I32, &[1, 1], &[0xFFFF_FFFE]);
            m.run(ScalarLoad { dst: RegId(0), src }).unwrap();
            assert_eq!(m.register(RegId(0)), -2);
        }
    }

    #[test]
    fn refuses_other_types_and_several_elements() {
        let mut m = TestMachine::new(Target::Trn2);
        for (dtype, shape, what) in
            [(DType::U32, [1, 1], "it must be int32 or int64"), (DType::I32, [1, 2], "2 elements")]
        {
            let src = m.tensor("t", Space::Sbuf, dtype, &shape);
            let e = m.check(ScalarLoad { dst: RegId(0), src }).unwrap_err();
            assert!(e.contains(what), "{e}");
        }
    }
}
