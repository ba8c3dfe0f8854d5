//! `nisa.activation_reduce`: an activation function and the reduction of its result.

use super::activate::{self, Activate};
use crate::arch::Arch;
use crate::arg::{Imm, ScalarOperand};
use crate::inst::doubt;
use crate::inst::math::activation::ActFn;
use crate::inst::result::{Given, ResultTile};
use crate::inst::values::{Feeds, Values, function_makes};
use crate::inst::{AccumulatorUse, Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine, ReduceCmd};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// `dst = op(data * scale + bias)` and `reduce_res = reduce_op(dst)` along all free dimensions.
    pub struct ActivationReduce: "activation_reduce" on [Scalar] {
        /// The result of the activation.
        [Out Sbuf Psum] dst: View,
        /// Activation function.
        [Attr] op: ActFn,
        /// Input tile.
        [In Sbuf Psum] data: View,
        /// Reduction operator: add.
        [Attr] reduce_op: AluOp,
        /// The reduction's result, shape (P, 1); `None` leaves it in the accumulators.
        [Out Sbuf Psum] reduce_res: Option<View>,
        /// Added after scaling: a tile of shape (P, 1), or a number (not on trn1).
        [In Sbuf Psum] bias: Option<ScalarOperand> = None,
        /// Multiplied first: a number or a float32 tile of shape (P, 1).
        [In Sbuf Psum; F32] scale: ScalarOperand = ScalarOperand::Imm(Imm::Float(1.0)),
    }
    numerics: "fp32 throughout: `data * scale + bias` with one rounding after the product and one after the sum, the \
        function, and the accumulators, which see the fp32 result before it is rounded once to the dtype of \
        `dst`. Functions are the exact ones, not the engine's piecewise polynomials.",
    cost: Measured "One pass over the elements of a partition; a function table is loaded when the function changes; tiles \
        as scale or bias and reading the accumulators add fixed parts.",
    rules: {
        "reciprocal-bias": "on trn1 reciprocal takes no `bias`",
        "same-size": "`data` and `dst` have the same number of partitions and of elements per partition",
        "per-partition": "`scale`, `bias`, `reduce_res`: a tile has one element per partition, and as many partitions as the input",
        "bias-target": "on trn1 `bias` is a tile",
        "bias-dtype": "`bias` is not tfloat32",
        "reduce-op": "`reduce_op` is add",
    },
}

impl ActivationReduce {
    fn shared(&self) -> Activate<'_> {
        Activate {
            dst: &self.dst,
            op: self.op,
            data: &self.data,
            bias: self.bias.as_ref(),
            scale: &self.scale,
            reduce_op: self.reduce_op,
            reduce_res: self.reduce_res.as_ref(),
            reduce_cmd: ReduceCmd::ResetReduce,
            engine: Engine::Scalar,
        }
    }
}

impl Instruction for ActivationReduce {
    const PLACING: Placing = Placing::Fixed;
    const INDIRECT: &'static [&'static str] = &["dst", "data"];

    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("data")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Scalar
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        activate::check_reduction(self.reduce_op)?;
        self.shared().validate(context)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        self.shared().execute(machine)
    }

    fn doubt(&self) -> Option<Violation> {
        doubt::fractions_as_integers(self.op, Some(&self.scale), ("data", &self.data), &self.dst)
    }

    fn accumulators(&self) -> Option<AccumulatorUse> {
        Some(self.shared().reduction().accumulators())
    }

    fn sets_engine_state(&self) -> bool {
        self.shared().reduction().sets_engine_state()
    }

    fn values(&self) -> Values<'_> {
        let affine = self.bias.is_some() || !matches!(&self.scale, ScalarOperand::Imm(i) if i.as_f32() == 1.0);
        Values::computed(Feeds::Elements)
            .arising(function_makes(self.op) || affine)
            .reduced(AluOp::Add, ReduceCmd::ResetReduce)
            .with_numbers(self.bias.iter().chain([&self.scale]))
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        self.shared().work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn inst(dst: &View, op: ActFn, data: &View, reduce_op: AluOp, result: Option<&View>) -> ActivationReduce {
        ActivationReduce {
            dst: dst.clone(),
            op,
            data: data.clone(),
            reduce_op,
            reduce_res: result.cloned(),
            bias: None,
            scale: ScalarOperand::Imm(Imm::Float(1.0)),
        }
    }

    #[test]
    fn reduces_in_fp32_and_starts_afresh() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[2, 2], &[1.0, 2.001, -3.0, 4.0]);
        let d = m.tensor("d", Space::Sbuf, DType::BF16, &[2, 2]);
        let r = m.tensor("r", Space::Psum, DType::F32, &[2, 1]);
        for _ in 0..2 {
            m.run(inst(&d, ActFn::Abs, &a, AluOp::Add, Some(&r))).unwrap();
            assert_eq!(m.f32s(&r), [3.001, 7.0], "before the rounding to bfloat16");
        }
    }

    #[test]
    fn reduces_all_free_dimensions() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[1, 2, 3], &[1.0; 6]);
        let r = m.tensor("r", Space::Sbuf, DType::F32, &[1, 1]);
        m.run(inst(&a, ActFn::Copy, &a, AluOp::Add, Some(&r))).unwrap();
        assert_eq!(m.f32s(&r), [6.0]);
    }

    #[test]
    fn rules() {
        for target in [Target::Trn1, Target::Trn2, Target::Trn3] {
            let mut m = TestMachine::new(target);
            let a = m.tensor("a", Space::Sbuf, DType::F32, &[2, 3]);
            let check = |op| m.check(inst(&a, ActFn::Exp, &a, op, None));
            for op in [AluOp::Max, AluOp::Min, AluOp::Multiply] {
                assert!(check(op).unwrap_err().contains("only add"), "{op} on {target}");
            }
            assert!(check(AluOp::Add).is_ok());
        }
    }
}
