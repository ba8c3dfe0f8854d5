//! `nisa.scalar_tensor_tensor`: a scalar operation followed by a tile operation.

use crate::arch::Arch;
use crate::arg::ScalarOperand;
use crate::inst::inert;
use crate::inst::math::alu::{self, Rhs};
use crate::inst::result::{Given, ResultTile};
use crate::inst::scalars::{self, Sources};
use crate::inst::stream::{modes, on, stream, two_tiles};
use crate::inst::values::{Feeds, Values, makes};
use crate::inst::{Footprint, Instruction, Operands, Placing, check, facts};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Stream, Work};

operands! {
    /// `dst = (data <op0> operand0) <op1> operand1` where `operand0` is a scalar and `operand1` a tile.
    pub struct ScalarTensorTensor: "scalar_tensor_tensor" on [Vector] {
        /// The result.
        [Out Sbuf Psum] dst: View,
        /// Input tile.
        [In Sbuf Psum] data: View,
        /// First operator.
        [Attr] op0: AluOp,
        /// Its scalar: a number or a tile of shape (P, 1).
        [In Sbuf Psum] operand0: ScalarOperand,
        /// Second operator.
        [Attr] op1: AluOp,
        /// Its tile, of the shape of `data`.
        [In Sbuf Psum] operand1: View,
        /// The scalar is the left operand of `op0`.
        [Attr] reverse0: bool = false,
        /// `operand1` is the left operand of `op1`.
        [Attr] reverse1: bool = false,
    }
    numerics: facts::FP32,
    cost: Measured "One pass over the elements of a partition with two tiles read, as tensor_tensor. On trn1, tiles in SBUF take twice as \
        long.",
    rules: {
        "same-size": "`data`, `operand1` and `dst` have the same number of partitions and of elements per partition",
        "per-partition": "`operand0`: a tile has one element per partition, and as many partitions as the input",
        "arithmetic": "`op0` and `op1` are arithmetic",
        "op-target": "`op0`, `op1`: abs_max and abs_min need trn3",
        "both-psum": "`data` and `operand1` are not both in PSUM",
    },
}

impl Instruction for ScalarTensorTensor {
    const PLACING: Placing = Placing::InPlace;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("data")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::same_shape(("data", &self.data), ("dst", &self.dst))?;
        check::same_shape(("data", &self.data), ("operand1", &self.operand1))?;
        check::scalar_operand(("data", &self.data), "operand0", &self.operand0)?;
        for (name, op) in [("op0", self.op0), ("op1", self.op1)] {
            check::op_on_target(name, op, context.arch)?;
            if op.is_bitvec() {
                return Err(Violation::new(
                    "op-unsupported",
                    name,
                    format!("`{op}` is a bitvec operator; only arithmetic ones are supported"),
                )
                .help("use nisa.tensor_scalar and nisa.tensor_tensor"));
            }
        }
        check::not_both_psum(("data", &self.data), ("operand1", &self.operand1))
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::from_slice(&[&self.data, &self.operand1]);
        let s0 = scalars::scalar_f32(machine, Some(&self.operand0), &mut sources);
        let (op0, op1, reverse0, reverse1) = (self.op0, self.op1, self.reverse0, self.reverse1);
        let row = move |_: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            alu::apply(op0, reverse0, ins[0], Rhs::One(s0.get(ins)), outs[0]);
            alu::apply_in_place(op1, reverse1, outs[0], Rhs::Row(ins[1]));
        };
        machine.map_f32(&[&self.dst], &sources, Box::new(row), None)
    }

    fn inert(&self) -> Option<Violation> {
        inert::first([
            inert::reversed(("reverse0", self.reverse0), ("op0", Some(self.op0))),
            inert::reversed(("reverse1", self.reverse1), ("op1", Some(self.op1))),
            inert::unused_scalar(("operand0", Some(&self.operand0)), ("op0", Some(self.op0))),
        ])
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Elements).arising(makes(self.op0) || makes(self.op1)).with_numbers([&self.operand0])
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let simple = self.op0.is_simple() && self.op1.is_simple();
        let cycles = two_tiles(simple, true);
        let stream = stream(modes(cycles, "tensor_tensor"), &[&self.data, &self.operand1], &[&self.dst]);
        on(Engine::Vector, Stream { scalar_reads: scalars::reads([&self.operand0]), ..stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::arg::Imm;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn inst(dst: &View, data: &View, operand1: &View) -> ScalarTensorTensor {
        ScalarTensorTensor {
            dst: dst.clone(),
            data: data.clone(),
            op0: AluOp::Subtract,
            operand0: ScalarOperand::Imm(Imm::Float(1.0)),
            op1: AluOp::Multiply,
            operand1: operand1.clone(),
            reverse0: false,
            reverse1: false,
        }
    }

    #[test]
    fn computes_both_steps_in_fp32() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::BF16, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let b = m.tensor_f32("b", Space::Psum, DType::F32, &[2, 2], &[0.5, 0.25, 2.0, 1.0]);
        let d = m.tensor("d", Space::Sbuf, DType::F32, &[2, 2]);
        m.run(inst(&d, &a, &b)).unwrap();
        assert_eq!(m.f32s(&d), [0.0, 0.25, 4.0, 3.0]);
        let mut i = inst(&d, &a, &b);
        i.reverse0 = true;
        i.op1 = AluOp::Subtract;
        i.reverse1 = true;
        m.run(i).unwrap();
        assert_eq!(m.f32s(&d), [0.5, 1.25, 4.0, 4.0]);
    }

    #[test]
    fn takes_a_vector() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[2, 1], &[5.0, 6.0]);
        let v = m.tensor_f32("v", Space::Sbuf, DType::F32, &[2, 1], &[1.0, 2.0]);
        let mut i = inst(&a, &a, &a);
        i.operand0 = ScalarOperand::View(v);
        m.run(i).unwrap();
        assert_eq!(m.f32s(&a), [20.0, 24.0]);
    }

    #[test]
    fn rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let s = m.tensor("s", Space::Sbuf, DType::F32, &[4, 8]);
        let p = m.tensor("p", Space::Psum, DType::F32, &[4, 8]);
        assert!(m.check(inst(&s, &p, &p)).unwrap_err().contains("both in PSUM"));
        let mut bits = inst(&s, &s, &s);
        bits.op1 = AluOp::BitwiseAnd;
        assert!(m.check(bits).unwrap_err().contains("bitvec"));
    }
}
