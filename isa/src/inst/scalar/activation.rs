//! `nisa.activation`: an activation function with scale, bias and accumulation.

use super::activate::{self, Activate, on_engine};
use crate::arch::Arch;
use crate::arg::{Imm, ScalarOperand};
use crate::inst::doubt;
use crate::inst::math::activation::ActFn;
use crate::inst::result::{Given, ResultTile};
use crate::inst::values::{Feeds, Values, function_makes};
use crate::inst::{AccumulatorUse, Footprint, Instruction, Operands, Placing};
use crate::inst::{check, inert};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine, ReduceCmd};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// `dst = op(data * scale + bias)`, optionally summed along the free dimensions into the engine's accumulators.
    pub struct Activation: "activation" on [Scalar, GpSimd from Trn3] {
        /// The result.
        [Out Sbuf Psum] dst: View,
        /// Activation function.
        [Attr] op: ActFn,
        /// Input tile.
        [In Sbuf Psum] data: View,
        /// Added after scaling: a tile of shape (P, 1), or a number (not on trn1).
        [In Sbuf Psum] bias: Option<ScalarOperand> = None,
        /// Multiplied first: a number or a float32 tile of shape (P, 1).
        [In Sbuf Psum; F32] scale: ScalarOperand = ScalarOperand::Imm(Imm::Float(1.0)),
        /// Reduction along the free dimensions: add.
        [Attr] reduce_op: Option<AluOp> = None,
        /// Where the accumulators are read out to: shape (P, 1).
        [Out Sbuf Psum] reduce_res: Option<View> = None,
        /// What happens to the accumulators.
        [Attr] reduce_cmd: ReduceCmd = ReduceCmd::Idle,
        /// Engine: scalar, or gpsimd (trn3).
        [Attr] engine: Engine = Engine::Scalar,
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
        "reduce-cmd": "`reduce_cmd` is idle, reset, reduce or reset_reduce",
        "engine": "`engine` is scalar, or gpsimd on trn3, which does not reach PSUM",
        "reduce-engine": "only the scalar engine accumulates",
        "reduce-op-given": "`reduce_cmd` reduce or reset_reduce needs `reduce_op`",
    },
}

impl Activation {
    fn shared(&self) -> Activate<'_> {
        Activate {
            dst: &self.dst,
            op: self.op,
            data: &self.data,
            bias: self.bias.as_ref(),
            scale: &self.scale,
            reduce_op: AluOp::Add,
            reduce_res: self.reduce_res.as_ref(),
            reduce_cmd: self.reduce_cmd,
            engine: self.engine,
        }
    }
}

impl Instruction for Activation {
    const PLACING: Placing = Placing::InPlace;
    const INDIRECT: &'static [&'static str] = &["dst", "data"];

    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("data")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        self.engine
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        self.reduce_op.map_or(Ok(()), activate::check_reduction)?;
        if self.reduce_cmd == ReduceCmd::LoadReduce {
            return Err(Violation::new(
                "op-unsupported",
                "reduce_cmd",
                "the scalar engine supports idle, reset, reduce and reset_reduce, not load_reduce",
            ));
        }
        if self.reduce_op.is_none() && matches!(self.reduce_cmd, ReduceCmd::Reduce | ReduceCmd::ResetReduce) {
            return Err(Violation::new(
                "missing-operand",
                "reduce_op",
                format!("`reduce_cmd` is {}, which needs `reduce_op`", self.reduce_cmd),
            )
            .help("pass reduce_op=nl.add"));
        }
        on_engine(self.engine, self.reduce_cmd, self.reduce_res.as_ref(), &Self::SCHEMA, context)?;
        check::gpsimd_psum(self.engine, &[("dst", &self.dst), ("data", &self.data)])?;
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
        // An operator with an idle command has no effect and is reported as inert.
        let idles = self.reduce_op.is_some() && self.reduce_cmd == ReduceCmd::Idle;
        (!idles).then(|| self.shared().reduction().accumulators())
    }

    fn sets_engine_state(&self) -> bool {
        self.shared().reduction().sets_engine_state()
    }

    fn inert(&self) -> Option<Violation> {
        inert::idle_reduction(self.reduce_op, self.reduce_cmd, self.reduce_res.as_ref())
    }

    fn values(&self) -> Values<'_> {
        let affine = self.bias.is_some() || !matches!(&self.scale, ScalarOperand::Imm(i) if i.as_f32() == 1.0);
        Values::computed(Feeds::Elements)
            .arising(function_makes(self.op) || affine)
            .reduced(AluOp::Add, self.reduce_cmd)
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

    fn inst(dst: &View, op: ActFn, data: &View) -> Activation {
        Activation {
            dst: dst.clone(),
            op,
            data: data.clone(),
            bias: None,
            scale: ScalarOperand::Imm(Imm::Float(1.0)),
            reduce_op: None,
            reduce_res: None,
            reduce_cmd: ReduceCmd::Idle,
            engine: Engine::Scalar,
        }
    }

    #[test]
    fn scales_then_adds_then_applies() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Psum, DType::F32, &[2, 2], &[1.0, -2.0, 3.0, 4.0]);
        let scale = m.tensor_f32("scale", Space::Sbuf, DType::F32, &[2, 1], &[2.0, 0.5]);
        let bias = m.tensor_f32("bias", Space::Sbuf, DType::BF16, &[2, 1], &[1.0, -1.0]);
        let d = m.tensor("d", Space::Sbuf, DType::BF16, &[2, 2]);
        let mut i = inst(&d, ActFn::Square, &a);
        i.scale = ScalarOperand::View(scale);
        i.bias = Some(ScalarOperand::View(bias));
        m.run(i).unwrap();
        assert_eq!(m.f32s(&d), [9.0, 9.0, 0.25, 1.0]);
        m.run(inst(&d, ActFn::Exp, &a)).unwrap();
        assert_eq!(m.f32s(&d)[0], 2.71875);
    }

    #[test]
    fn accumulates_over_instructions() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let d = m.tensor("d", Space::Sbuf, DType::BF16, &[2, 3]);
        let r = m.tensor("r", Space::Sbuf, DType::F32, &[2, 1]);
        let mut i = inst(&d, ActFn::Copy, &a);
        i.reduce_op = Some(AluOp::Add);
        i.reduce_cmd = ReduceCmd::ResetReduce;
        m.run(i.clone()).unwrap();
        i.reduce_cmd = ReduceCmd::Reduce;
        i.reduce_res = Some(r.clone());
        m.run(i.clone()).unwrap();
        assert_eq!(m.f32s(&r), [12.0, 30.0]);
        // idle reads out without adding; reset only clears.
        i.reduce_cmd = ReduceCmd::Idle;
        m.run(i.clone()).unwrap();
        assert_eq!(m.f32s(&r), [12.0, 30.0]);
        i.reduce_cmd = ReduceCmd::Reset;
        m.run(i).unwrap();
        assert_eq!(m.f32s(&r), [0.0, 0.0]);
    }

    #[test]
    fn a_reset_leaves_the_accumulators_of_other_partitions() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[64, 1], &[3.0; 64]);
        let d = m.tensor("d", Space::Sbuf, DType::F32, &[64, 1]);
        let r = m.tensor("r", Space::Sbuf, DType::F32, &[64, 1]);
        let mut i = inst(&d, ActFn::Copy, &a);
        i.reduce_op = Some(AluOp::Add);
        i.reduce_cmd = ReduceCmd::ResetReduce;
        for first in [0, 32] {
            let half = |v: &View| {
                let mut half = v.clone();
                (half.partition, half.dims[0].count) = (v.partition + first, 32);
                half
            };
            m.run(Activation { dst: half(&d), data: half(&a), ..i.clone() }).unwrap();
        }
        i.reduce_cmd = ReduceCmd::Reduce;
        i.reduce_res = Some(r.clone());
        m.run(i).unwrap();
        assert_eq!(m.f32s(&r), [6.0; 64]);
    }

    #[test]
    fn rules() {
        let mut m = TestMachine::new(Target::Trn1);
        let a = m.tensor("a", Space::Sbuf, DType::F32, &[2, 3]);
        let half = m.tensor("h", Space::Sbuf, DType::BF16, &[2, 1]);
        let error = |i: Activation| m.check(i).unwrap_err();
        let mut i = inst(&a, ActFn::Exp, &a);
        i.bias = Some(ScalarOperand::Imm(Imm::Float(1.0)));
        assert!(error(i.clone()).contains("trn1"));
        i.bias = None;
        i.scale = ScalarOperand::View(half.clone());
        assert!(error(i.clone()).contains("float32"));
        i.scale = ScalarOperand::View(a.clone());
        assert!(error(i.clone()).contains("(2, 1)"));
        i.scale = ScalarOperand::Imm(Imm::Int(2));
        i.reduce_op = Some(AluOp::Max);
        assert!(error(i.clone()).contains("must be add"));
        i.reduce_op = None;
        i.reduce_res = Some(a);
        assert!(error(i.clone()).contains("(2, 1)"));
        i.reduce_res = Some(half);
        assert!(m.check(i).is_ok());
    }

    #[test]
    fn work_names_the_table_and_the_reads() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor("a", Space::Psum, DType::F32, &[2, 3]);
        let v = m.tensor("v", Space::Sbuf, DType::F32, &[2, 1]);
        let mut i = inst(&a, ActFn::GeluApprxTanh, &a);
        i.bias = Some(ScalarOperand::View(v.clone()));
        i.reduce_res = Some(v);
        let crate::work::WorkKind::Stream(s) = i.work(&m.context()).kind else { panic!("a stream") };
        assert_eq!(s.law, crate::work::Law::Function("gelu_apprx_tanh"));
        assert_eq!((s.elements, s.partitions, s.scalar_reads, s.accumulator_read), (3, 2, 1, true));
    }
}
