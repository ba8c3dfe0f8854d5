//! Arithmetic of scalars (`NkiScalar`), which a kernel writes with Python's operators.

use crate::arch::Arch;
use crate::arg::RegisterOrInt;
use crate::dtype::DType;
use crate::ids::RegId;
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::{Engine, ScalarOp};
use crate::operands;
use crate::violation::Violation;
use crate::work::{RegisterWork, Work, WorkKind};

operands! {
    /// Computes one integer from two on the sequencer. No kernel calls it: `a + b` of scalars is one of these.
    pub struct ScalarCompute: "scalar_compute" on [Sync] {
        /// The register of the new scalar.
        [Out] dst: RegId,
        /// The operation.
        [Attr] op: ScalarOp,
        /// The left operand.
        [In] x: RegisterOrInt,
        /// The right operand.
        [In] y: RegisterOrInt,
        /// int32 or int64: the width of the operands and of the result.
        [Attr] dtype: DType,
    }
    numerics: "Integers of 32 or 64 bits, wrapping. A comparison gives 0 or 1.",
    cost: Assumed "One step of the sequencer, as a register move.",
    rules: {},
}

impl Instruction for ScalarCompute {
    const PLACING: Placing = Placing::Fixed;
    const PUBLIC: bool = false;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        if !matches!(self.dtype, DType::I32 | DType::I64) {
            let message = format!("a scalar is int32 or int64, not {}", self.dtype);
            return Err(Violation::new("operand-dtype", "dtype", message));
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let (x, y) = (self.x.value(machine), self.y.value(machine));
        let value = match self.op {
            ScalarOp::Add => x.wrapping_add(y),
            ScalarOp::Subtract => x.wrapping_sub(y),
            ScalarOp::Multiply => x.wrapping_mul(y),
            ScalarOp::Less => i64::from(x < y),
            ScalarOp::LessEqual => i64::from(x <= y),
            ScalarOp::Greater => i64::from(x > y),
            ScalarOp::GreaterEqual => i64::from(x >= y),
            ScalarOp::Equal => i64::from(x == y),
            ScalarOp::NotEqual => i64::from(x != y),
        };
        // The low 32 bits of a sum, difference or product depend only on the low 32 bits of its operands.
        let value = if self.dtype == DType::I32 { i64::from(value as i32) } else { value };
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

    fn compute(op: ScalarOp, x: i64, y: i64, dtype: DType) -> i64 {
        let mut m = TestMachine::new(Target::Trn2);
        m.set_register(RegId(0), x);
        m.run(ScalarCompute {
            dst: RegId(1),
            op,
            x: RegisterOrInt::Register(RegId(0)),
            y: RegisterOrInt::Int(y),
            dtype,
        })
        .unwrap();
        m.register(RegId(1))
    }

    #[test]
    fn wraps_at_its_width() {
        assert_eq!(compute(ScalarOp::Multiply, 100_000, 100_000, DType::I32), 1_410_065_408);
        assert_eq!(compute(ScalarOp::Multiply, 100_000, 100_000, DType::I64), 10_000_000_000);
        assert_eq!(compute(ScalarOp::Add, i32::MAX.into(), 1, DType::I32), i32::MIN.into());
        assert_eq!(compute(ScalarOp::Add, i64::MAX, 1, DType::I64), i64::MIN);
        assert_eq!(compute(ScalarOp::Subtract, i32::MIN.into(), 1, DType::I32), i32::MAX.into());
    }

    #[test]
    fn compares() {
        for (op, expected) in [
            (ScalarOp::Less, [1, 0, 0]),
            (ScalarOp::LessEqual, [1, 1, 0]),
            (ScalarOp::Greater, [0, 0, 1]),
            (ScalarOp::GreaterEqual, [0, 1, 1]),
            (ScalarOp::Equal, [0, 1, 0]),
            (ScalarOp::NotEqual, [1, 0, 1]),
        ] {
            assert_eq!([-1, 0, 1].map(|x| compute(op, x, 0, DType::I32)), expected, "{op:?}");
        }
    }

    #[test]
    fn has_two_widths() {
        let m = TestMachine::new(Target::Trn2);
        let int = RegisterOrInt::Int(1);
        let e =
            m.check(ScalarCompute { dst: RegId(0), op: ScalarOp::Add, x: int, y: int, dtype: DType::F32 }).unwrap_err();
        assert!(e.contains("a scalar is int32 or int64, not float32"), "{e}");
    }
}
