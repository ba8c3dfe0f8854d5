//! `nisa.reciprocal`: `1 / x` on the vector engine.

use crate::arch::Arch;
use crate::inst::math::activation::ActFn;
use crate::inst::math::alu::{self, Rhs};
use crate::inst::result::{Given, ResultTile};
use crate::inst::stream::rows;
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing, check, doubt, facts, stream};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// Element-wise `dst = 1.0 / data` in fp32.
    pub struct Reciprocal: "reciprocal" on [Vector] {
        /// The result.
        [Out Sbuf Psum] dst: View,
        /// Input.
        [In Sbuf Psum] data: View,
    }
    numerics: facts::FP32,
    cost: Measured "6 steps for each element of a partition; the manual says 8, which trn1 takes.",
    rules: {
        "same-size": "`data` and `dst` have the same number of partitions and of elements per partition",
    },
}

impl Instruction for Reciprocal {
    const PLACING: Placing = Placing::InPlace;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("data")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_shape(("data", &self.data), ("dst", &self.dst))
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let row = |_: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            alu::apply(AluOp::Reciprocal, false, ins[0], Rhs::One(0.0), outs[0]);
        };
        machine.map_f32(&[&self.dst], &[&self.data], Box::new(row), None)
    }

    fn doubt(&self) -> Option<Violation> {
        doubt::fractions_as_integers(ActFn::Reciprocal, None, ("data", &self.data), &self.dst)
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Elements)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        stream::on(Engine::Vector, stream::stream(rows("reciprocal", "reciprocal"), &[&self.data], &[&self.dst]))
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
    fn divides_one() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[1, 4], &[2.0, -4.0, 0.0, 3.0]);
        let d = m.tensor("d", Space::Psum, DType::F32, &[1, 4]);
        m.run(Reciprocal { dst: d.clone(), data: a.clone() }).unwrap();
        assert_eq!(m.f32s(&d), [0.5, -0.25, f32::INFINITY, 1.0 / 3.0]);
        let short = m.tensor("short", Space::Sbuf, DType::F32, &[1, 3]);
        assert!(m.check(Reciprocal { dst: short, data: a }).is_err());
    }

    #[test]
    fn works_in_place_and_on_integers() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::BF16, &[2, 1], &[8.0, 0.5]);
        m.run(Reciprocal { dst: a.clone(), data: a.clone() }).unwrap();
        assert_eq!(m.f32s(&a), [0.125, 2.0]);
        let i = m.tensor_bits("i", Space::Sbuf, DType::U8, &[2, 1], &[4, 2]);
        m.run(Reciprocal { dst: a.clone(), data: i }).unwrap();
        assert_eq!(m.f32s(&a), [0.25, 0.5]);
    }
}
