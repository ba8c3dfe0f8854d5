//! `nisa.register_load`: reads one element from memory into a register.

use crate::arch::Arch;
use crate::dtype::DType;
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
    /// Loads the only element of `src` into a register. Signed integers are sign-extended; of floats the bits are loaded.
    pub struct RegisterLoad: "register_load" on [Sync] {
        /// The register to set.
        [Out] dst: RegId,
        /// A tensor of one element.
        [In Sbuf Hbm] src: View,
    }
    numerics: "An integer narrower than 32 bits is sign-extended; of a float the bits are loaded.",
    cost: Measured "One access to memory by the sequencer.",
    rules: {
        "one-element": "`src` has one element",
    },
}

impl Instruction for RegisterLoad {
    const PLACING: Placing = Placing::Fixed;
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
        let bits = machine.read_bits(&self.src)?.first().copied().unwrap_or(0);
        let value = match self.src.dtype {
            DType::I8 => i64::from(bits as u8 as i8),
            DType::I16 => i64::from(bits as u16 as i16),
            _ => i64::from(bits as i32),
        };
        machine.set_register(self.dst, value);
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        let work = RegisterWork::load(self.src.space);
        Work { engine: self.engine(context.arch), kind: WorkKind::Register(work) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn load(dtype: DType, space: Space, bits: u32) -> i64 {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor_bits("t", space, dtype, &[1, 1], &[bits]);
        m.run(RegisterLoad { dst: RegId(0), src }).unwrap();
        m.register(RegId(0))
    }

    #[test]
    fn extends_by_the_sign_of_the_type() {
        assert_eq!(load(DType::I8, Space::Sbuf, 0xFE), -2);
        assert_eq!(load(DType::U8, Space::Sbuf, 0xFE), 254);
        assert_eq!(load(DType::I16, Space::Hbm, 0x8000), -32768);
        assert_eq!(load(DType::I32, Space::SharedHbm, 0xFFFF_FFFF), -1);
        assert_eq!(load(DType::F32, Space::Sbuf, 0x3F80_0000), 0x3F80_0000);
    }

    #[test]
    fn takes_one_element() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor("t", Space::Sbuf, DType::I32, &[1, 2]);
        let e = m.check(RegisterLoad { dst: RegId(0), src }).unwrap_err();
        assert_eq!(e, "src: `src` has [1, 2] = 2 elements, but a register holds one");
    }

    #[test]
    fn reports_an_unwritten_element() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor("t", Space::Sbuf, DType::I32, &[1, 1]);
        m.run(RegisterLoad { dst: RegId(0), src: src.clone() }).unwrap();
        assert_eq!(m.uninitialized, [src.tensor]);
    }
}
