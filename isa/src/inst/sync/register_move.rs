//! `nisa.register_move`: sets a register to a constant or another register's value.

use crate::arch::Arch;
use crate::arg::RegisterOrInt;
use crate::ids::RegId;
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::schema::{Former, Now};
use crate::violation::Violation;
use crate::work::{RegisterWork, Work, WorkKind};

operands! {
    /// Moves an integer or another register's value into a register. `register_alloc` with an initial value is this too.
    pub struct RegisterMove: "register_move" on [Sync] {
        /// The register to set.
        [Out] dst: RegId,
        /// A 32-bit integer or a register.
        [In] src: RegisterOrInt,
    }
    numerics: "32-bit integers, wrapping.",
    cost: Measured "One step of the sequencer.",
    rules: {
        "int32": "`src` fits 32 bits",
    },
}

impl Instruction for RegisterMove {
    const PLACING: Placing = Placing::Fixed;
    // NKI 0.2 called it imm (migration guide, 0.2 to 0.3).
    const FORMER: &'static [Former] = &[Former { keyword: "imm", now: Now::Called("src") }];
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        match self.src {
            RegisterOrInt::Int(i) if i < i64::from(i32::MIN) || i > i64::from(u32::MAX) => {
                Err(Violation::new("operand-value", "src", format!("`src` is {i}, but a register holds 32 bits")))
            }
            _ => Ok(()),
        }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let value = match self.src {
            RegisterOrInt::Register(r) => machine.register(r),
            RegisterOrInt::Int(i) => i64::from(i as i32),
        };
        machine.set_register(self.dst, value);
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        Work { engine: self.engine(context.arch), kind: WorkKind::Register(RegisterWork::Move) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::testing::TestMachine;

    #[test]
    fn moves_constants_and_registers() {
        let mut m = TestMachine::new(Target::Trn2);
        m.run(RegisterMove { dst: RegId(0), src: RegisterOrInt::Int(-5) }).unwrap();
        m.run(RegisterMove { dst: RegId(1), src: RegisterOrInt::Register(RegId(0)) }).unwrap();
        assert_eq!(m.register(RegId(1)), -5);
    }

    #[test]
    fn takes_unsigned_32_bits_as_their_bits() {
        let mut m = TestMachine::new(Target::Trn2);
        m.run(RegisterMove { dst: RegId(0), src: RegisterOrInt::Int(0xFFFF_FFFF) }).unwrap();
        assert_eq!(m.register(RegId(0)), -1);
    }

    #[test]
    fn refuses_more_than_32_bits() {
        let m = TestMachine::new(Target::Trn2);
        let e = m.check(RegisterMove { dst: RegId(0), src: RegisterOrInt::Int(1 << 32) }).unwrap_err();
        assert_eq!(e, "src: `src` is 4294967296, but a register holds 32 bits");
    }

    #[test]
    fn footprint_is_the_registers() {
        let inst = RegisterMove { dst: RegId(3), src: RegisterOrInt::Register(RegId(4)) };
        let mut f = Footprint::default();
        inst.footprint(&mut f);
        assert_eq!((&f.register_reads[..], &f.register_writes[..]), (&[RegId(4)][..], &[RegId(3)][..]));
    }
}
