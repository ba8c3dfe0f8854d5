//! `nisa.scalar_tensor_tensor`: a scalar operation followed by a tile operation, optionally with a reduction of the result.

use crate::arch::Arch;
use crate::arg::ScalarOperand;
use crate::inst::accumulators::{self, Reduction};
use crate::inst::math::alu::{self, Rhs};
use crate::inst::result::{Given, ResultTile};
use crate::inst::scalars::{self, Sources};
use crate::inst::stream::{modes, on, stream, two_tiles};
use crate::inst::values::{Feeds, Values, makes};
use crate::inst::{AccumulatorUse, Footprint, Instruction, Operands, Placing, check};
use crate::inst::{doubt, inert};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine, ReduceCmd};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Stream, Work};

operands! {
    /// `dst = (data <op0> operand0) <op1> operand1` where `operand0` is a scalar and `operand1` a tile; with `reduce_op` also
    /// `reduce_res = reduce_op(dst)` along all free dimensions.
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
        /// What happens to the accumulators if there is a `reduce_op`: reset_reduce or reduce.
        [Attr] reduce_cmd: ReduceCmd = ReduceCmd::ResetReduce,
        /// Reduction operator: add, multiply, maximum or minimum; without one nothing is reduced.
        [Attr] reduce_op: Option<AluOp> = None,
        /// The reduction's result, shape (P, 1); `None` leaves it in the accumulators.
        [Out Sbuf Psum] reduce_res: Option<View> = None,
    }
    numerics: "fp32; the reduction sees the fp32 result before it is rounded once to the dtype of `dst`.",
    cost: Measured "One pass over the elements of a partition with two tiles read, as tensor_tensor. On trn1, tiles in SBUF take twice as \
        long. Reading the accumulators takes as long as for tensor_scalar_reduce.",
    rules: {
        "same-size": "`data`, `operand1` and `dst` have the same number of partitions and of elements per partition",
        "per-partition": "`operand0`: a tile has one element per partition, and as many partitions as the input",
        "arithmetic": "`op0` and `op1` are arithmetic",
        "op-target": "`op0`, `op1`: abs_max and abs_min need trn3",
        "both-psum": "`data` and `operand1` are not both in PSUM",
        "unary": "a unary `op0` has no scalar: `operand0` is 0",
        "reduce-op": "`reduce_op` is add, multiply, maximum or minimum",
        "reduce-cmd": "`reduce_cmd` is reset_reduce or reduce",
        "reduce-op-given": "`reduce_res`, and a `reduce_cmd` other than reset_reduce, need `reduce_op`",
        "reduce-result": "`reduce_res` has one element per partition, and as many partitions as the input",
    },
}

/// The operators and commands of tensor_scalar_reduce, without the command that needs an initial value (scalar_tensor_tensor reference of 2.33).
const OPS: [AluOp; 4] = [AluOp::Add, AluOp::Multiply, AluOp::Max, AluOp::Min];
const CMDS: [ReduceCmd; 2] = [ReduceCmd::ResetReduce, ReduceCmd::Reduce];

impl ScalarTensorTensor {
    /// The reduction, if there is one.
    fn reduction(&self) -> Option<Reduction<'_>> {
        Some(Reduction {
            state: accumulators::VECTOR,
            op: self.reduce_op?,
            cmd: self.reduce_cmd,
            init: None,
            result: self.reduce_res.as_ref(),
            negate: false,
            idle_clobbers: false,
        })
    }

    fn validate_reduction(&self) -> Result<(), Violation> {
        if let Some(reduction) = self.reduction() {
            return reduction.validate(("data", &self.data), &OPS, &CMDS);
        }
        let given = match (self.reduce_cmd, &self.reduce_res) {
            (_, Some(_)) => "`reduce_res` is given".to_owned(),
            (ReduceCmd::ResetReduce, None) => return Ok(()),
            (cmd, None) => format!("`reduce_cmd` is {cmd}"),
        };
        Err(Violation::new("missing-operand", "reduce_op", format!("{given}, which needs `reduce_op`"))
            .help("pass reduce_op=nl.add, nl.multiply, nl.maximum or nl.minimum"))
    }
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
        check::scalar_of(("op0", self.op0), "operand0", Some(&self.operand0))?;
        check::not_both_psum(("data", &self.data), ("operand1", &self.operand1))?;
        self.validate_reduction()
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::from_slice(&[&self.data, &self.operand1]);
        let s0 = scalars::scalar_f32(machine, Some(&self.operand0), &mut sources);
        let (op0, op1, reverse0, reverse1) = (self.op0, self.op1, self.reverse0, self.reverse1);
        let row = move |_: usize, ins: &[&[f32]], out: &mut [f32]| {
            alu::apply(op0, reverse0, ins[0], Rhs::One(s0.get(ins)), out);
            alu::apply_in_place(op1, reverse1, out, Rhs::Row(ins[1]));
        };
        match self.reduction() {
            Some(reduction) => reduction.run(machine, &self.dst, sources, row),
            None => {
                let row = move |p: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| row(p, ins, outs[0]);
                machine.map_f32(&[&self.dst], &sources, Box::new(row), None)
            }
        }
    }

    fn accumulators(&self) -> Option<AccumulatorUse> {
        self.reduction().map(|reduction| reduction.accumulators())
    }

    fn sets_engine_state(&self) -> bool {
        self.reduction().is_some_and(|reduction| reduction.sets_engine_state())
    }

    fn inert(&self) -> Option<Violation> {
        inert::first([
            inert::reversed(("reverse0", self.reverse0), ("op0", Some(self.op0))),
            inert::reversed(("reverse1", self.reverse1), ("op1", Some(self.op1))),
            inert::unused_scalar(("operand0", Some(&self.operand0)), ("op0", Some(self.op0))),
            inert::unused_tile("operand1", ("op1", self.op1)),
        ])
    }

    fn doubt(&self) -> Option<Violation> {
        doubt::inexact_comparison((self.op0, self.reverse0), ("operand0", Some(&self.operand0)), &self.data)
    }

    fn values(&self) -> Values<'_> {
        let values = Values::computed(Feeds::Elements)
            .arising(makes(self.op0) || makes(self.op1))
            .with_numbers([&self.operand0]);
        match self.reduce_op {
            Some(op) => values.reduced(op, self.reduce_cmd),
            None => values,
        }
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let simple = self.op0.is_simple() && self.op1.is_simple();
        let cycles = two_tiles(simple, true);
        let stream = stream(modes(cycles, "tensor_tensor"), &[&self.data, &self.operand1], &[&self.dst]);
        on(
            Engine::Vector,
            Stream {
                scalar_reads: scalars::reads([&self.operand0]),
                accumulator_read: self.reduce_res.is_some(),
                ..stream
            },
        )
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
            reduce_cmd: ReduceCmd::ResetReduce,
            reduce_op: None,
            reduce_res: None,
        }
    }

    #[test]
    fn an_operator_of_one_operand_has_no_second() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[1, 2], &[-1.0, 2.0]);
        let d = m.tensor("d", Space::Sbuf, DType::F32, &[1, 2]);
        let scalar = ScalarTensorTensor { op0: AluOp::Abs, ..inst(&d, &a, &a) };
        assert!(m.check(scalar.clone()).unwrap_err().contains("takes one operand"));
        let none = ScalarTensorTensor { operand0: ScalarOperand::Imm(Imm::Int(0)), ..scalar };
        m.run(none).unwrap();
        assert_eq!(m.f32s(&d), [-1.0, 4.0], "|a| * a");
        for (op1, unused) in [(AluOp::Abs, true), (AluOp::Bypass, true), (AluOp::Add, false)] {
            let i = ScalarTensorTensor { op1, ..inst(&d, &a, &a) };
            assert_eq!(i.inert().is_some_and(|v| v.operand == "operand1"), unused, "{op1}");
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
    fn reduces_what_both_steps_compute() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let b = m.tensor_f32("b", Space::Psum, DType::F32, &[2, 2], &[258.0, 1.0, 2.0, 3.0]);
        let d = m.tensor("d", Space::Sbuf, DType::BF16, &[2, 2]);
        let r = m.tensor("r", Space::Sbuf, DType::F32, &[2, 1]);
        let base = ScalarTensorTensor { op0: AluOp::Bypass, reduce_op: Some(AluOp::Add), ..inst(&d, &a, &b) };
        let result = Some(r.clone());
        m.run(ScalarTensorTensor { reduce_res: result.clone(), ..base.clone() }).unwrap();
        assert_eq!(m.f32s(&r), [260.0, 18.0]);
        // The sum continues in the accumulators, and a maximum starts anew.
        m.run(base.clone()).unwrap();
        let next = ScalarTensorTensor { reduce_cmd: ReduceCmd::Reduce, reduce_res: result.clone(), ..base.clone() };
        m.run(next).unwrap();
        assert_eq!(m.f32s(&r), [520.0, 36.0]);
        m.run(ScalarTensorTensor { reduce_op: Some(AluOp::Max), reduce_res: result, ..base }).unwrap();
        assert_eq!(m.f32s(&r), [258.0, 12.0]);
        assert!(inst(&d, &a, &b).accumulators().is_none());
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
        let e = m.check(ScalarTensorTensor { reduce_res: Some(s.clone()), ..inst(&s, &s, &s) }).unwrap_err();
        assert_eq!(e, "reduce_op: `reduce_res` is given, which needs `reduce_op`");
        let e = m.check(ScalarTensorTensor { reduce_cmd: ReduceCmd::Reduce, ..inst(&s, &s, &s) }).unwrap_err();
        assert_eq!(e, "reduce_op: `reduce_cmd` is reduce, which needs `reduce_op`");
    }
}
