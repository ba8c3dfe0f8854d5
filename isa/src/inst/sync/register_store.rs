//! `nisa.register_store`: writes a register to memory.

use crate::inst::values::{Feeds, Values};
use ndarray::arr2;

use crate::arch::Arch;
use crate::dtype::{bits_to_f32, bits_to_i64};
use crate::ids::RegId;
use crate::inst::sync::one_element;
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{RegisterWork, Work, WorkKind};

operands! {
    /// Stores a register's bits in the only element of `dst`, the low ones if the element is narrower.
    pub struct RegisterStore: "register_store" on [Sync] {
        /// A tensor of one element.
        [Out Sbuf Hbm] dst: View,
        /// The register.
        [In] src: RegId,
    }
    numerics: "The low bits of the register, as many as the element has.",
    cost: Assumed "One access to memory by the sequencer, taken equal to a load.",
    rules: {
        "one-element": "`dst` has one element",
    },
}

impl RegisterStore {
    /// Reports that the stored element differs from the register's value.
    fn note_changed(&self, machine: &mut dyn Machine, value: i64, bits: u32) {
        let dtype = self.dst.dtype;
        if dtype.is_packed() || value == 0 {
            return;
        }
        let stored = if dtype.is_int() { bits_to_i64(dtype, bits) as f64 } else { f64::from(bits_to_f32(dtype, bits)) };
        // 32-bit integers differ only in the interpretation of the sign.
        if stored == value as f64 || dtype.is_int() && dtype.size() >= 4 {
            return;
        }
        let message = format!("the register holds {value}, and its bits are {stored} in `dst`, which is {dtype}");
        let help = "store to an int32 element, and convert it with nisa.tensor_copy";
        machine.note_unexpected(Violation::new("unexpected-values", "dst", message).help(help));
    }
}

impl Instruction for RegisterStore {
    const PLACING: Placing = Placing::Fixed;
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
        let value = machine.register(self.src);
        let bits = value as u32;
        let mask = u32::MAX >> (32 - 8 * self.dst.dtype.size().clamp(1, 4));
        self.note_changed(machine, value, bits & mask);
        let bits = machine.representation().bits(self.dst.dtype, bits & mask);
        machine.write_bits(&self.dst, arr2(&[[bits]]).view())
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
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn store(dtype: DType, space: Space, value: i64) -> u32 {
        let mut m = TestMachine::new(Target::Trn2);
        let dst = m.tensor("t", space, dtype, &[1, 1]);
        m.set_register(RegId(2), value);
        m.run(RegisterStore { dst: dst.clone(), src: RegId(2) }).unwrap();
        m.bits(&dst)[0]
    }

    #[test]
    fn stores_all_bits_of_32() {
        assert_eq!(store(DType::I32, Space::Sbuf, -3), 0xFFFF_FFFD);
        assert_eq!(store(DType::U32, Space::Hbm, 7), 7);
    }

    #[test]
    fn narrow_elements_take_the_low_bits() {
        assert_eq!(store(DType::I8, Space::Sbuf, -3), 0xFD);
        assert_eq!(store(DType::I16, Space::Sbuf, 0x1_0002), 2);
    }

    #[test]
    fn takes_one_element() {
        let mut m = TestMachine::new(Target::Trn2);
        let dst = m.tensor("t", Space::Hbm, DType::I32, &[3]);
        let e = m.check(RegisterStore { dst, src: RegId(0) }).unwrap_err();
        assert_eq!(e, "dst: `dst` has [3] = 3 elements, but a register holds one");
    }
}
