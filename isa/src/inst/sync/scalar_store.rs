//! `nisa.scalar_store`: writes a scalar to memory.

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
    /// Stores a scalar (`NkiScalar`) in the only element of `dst`, which has the scalar's width.
    pub struct ScalarStore: "scalar_store" on [Sync] {
        /// A tensor of one element.
        [Out Sbuf Hbm; I32 I64] dst: View,
        /// The register of the scalar.
        [In] value: RegId,
    }
    numerics: "The integer as it is, 32 or 64 bits.",
    cost: Assumed "As register_store.",
    rules: {
        "one-element": "`dst` has one element",
    },
}

impl Instruction for ScalarStore {
    const PLACING: Placing = Placing::Fixed;
    const WIDE: &'static [&'static str] = &["dst"];
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        one_element("dst", &self.dst)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let value = machine.register(self.value);
        machine.map_i64(&[&self.dst], &[], &|_, _, outs| outs[0][0] = value)
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        Work { engine: self.engine(context.arch), kind: WorkKind::Register(RegisterWork::Store) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::inst::sync::scalar_load::ScalarLoad;
    use crate::names::Space;
    use crate::testing::TestMachine;

    #[test]
    fn what_is_stored_is_loaded_again() {
        let mut m = TestMachine::new(Target::Trn2);
        for (dtype, value) in [(DType::I32, -7), (DType::I32, i64::from(i32::MIN))] {
            let dst = m.tensor("t", Space::SharedHbm, dtype, &[1, 1]);
            m.set_register(RegId(2), value);
            m.run(ScalarStore { dst: dst.clone(), value: RegId(2) }).unwrap();
            m.run(ScalarLoad { dst: RegId(3), src: dst }).unwrap();
            assert_eq!(m.register(RegId(3)), value);
        }
    }
}
