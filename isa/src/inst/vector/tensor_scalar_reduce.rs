//! `nisa.tensor_scalar_reduce`: a tensor-scalar operation and the reduction of its result.

use crate::arch::Arch;
use crate::arg::ScalarOperand;
use crate::inst::accumulators::{self, Reduction};
use crate::inst::math::alu::{self, Rhs};
use crate::inst::result::{Given, ResultTile};
use crate::inst::scalars::{self, Sources};
use crate::inst::stream::{on, rows, stream};
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
    /// `dst = data <op0> operand0` and `reduce_res = reduce_op(dst)` along all free dimensions.
    pub struct TensorScalarReduce: "tensor_scalar_reduce" on [Vector] {
        /// The result of `op0`.
        [Out Sbuf Psum] dst: View,
        /// Input tile.
        [In Sbuf Psum] data: View,
        /// Arithmetic operator.
        [Attr] op0: AluOp,
        /// Its scalar (float32): a number or a tile of shape (P, 1). `None` or 0 for a unary operator.
        [In Sbuf Psum; F32] operand0: Option<ScalarOperand>,
        /// Reduction operator: add, multiply, maximum or minimum.
        [Attr] reduce_op: AluOp,
        /// The reduction's result, shape (P, 1); `None` leaves it in the accumulators.
        [Out Sbuf Psum] reduce_res: Option<View> = None,
        /// Not supported yet by any release.
        [Attr] reverse0: bool = false,
        /// What happens to the accumulators: reset_reduce, reduce or load_reduce.
        [Attr] reduce_cmd: ReduceCmd = ReduceCmd::ResetReduce,
        /// What load_reduce puts into the accumulators: a number or a float32 tile of shape (P, 1).
        [In Sbuf Psum; F32] reduce_init: Option<ScalarOperand> = None,
        /// The result is written negated; the accumulators are not.
        [Attr] reduce_res_negate: bool = false,
    }
    numerics: "fp32; the reduction sees the fp32 result before it is rounded once to the dtype of `dst`.",
    cost: Documented "N steps for N elements of a partition, at least 64, and 64 for reading the accumulators.",
    rules: {
        "same-size": "`data` and `dst` have the same number of partitions and of elements per partition",
        "rank": "`data` and `dst` have at most 4 dimensions",
        "op-target": "`op0`: abs_max and abs_min need trn3",
        "arithmetic": "`op0` is arithmetic",
        "operand": "an operator of two operands requires its scalar",
        "unary-operand": "the scalar of a unary operator is None or 0",
        "per-partition": "`operand0`, `reduce_res`, `reduce_init`: a tile has one element per partition, and as many partitions as \
            the input",
        "reverse": "`reverse0` is False",
        "reduce-op": "`reduce_op` is add, multiply, maximum or minimum",
        "reduce-cmd": "`reduce_cmd` is reset_reduce, reduce or load_reduce",
        "init": "load_reduce requires `reduce_init`, and no other command takes it",
    },
}

/// Most dimensions of `data` and `dst` (tensor_scalar_reduce reference of 2.33).
const RANK: usize = 4;
const OPS: [AluOp; 4] = [AluOp::Add, AluOp::Multiply, AluOp::Max, AluOp::Min];
const CMDS: [ReduceCmd; 3] = [ReduceCmd::ResetReduce, ReduceCmd::Reduce, ReduceCmd::LoadReduce];

impl TensorScalarReduce {
    fn reduction(&self) -> Reduction<'_> {
        Reduction {
            state: accumulators::VECTOR,
            op: self.reduce_op,
            cmd: self.reduce_cmd,
            init: self.reduce_init.as_ref(),
            result: self.reduce_res.as_ref(),
            negate: self.reduce_res_negate,
            idle_clobbers: false,
        }
    }
}

impl Instruction for TensorScalarReduce {
    const PLACING: Placing = Placing::Fixed;
    const INDIRECT: &'static [&'static str] = &["dst", "data"];

    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("data")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        let data = ("data", &self.data);
        check::same_shape(data, ("dst", &self.dst))?;
        check::rank("data", &self.data, RANK)?;
        check::rank("dst", &self.dst, RANK)?;
        check::op_on_target("op0", self.op0, context.arch)?;
        if self.op0.is_bitvec() {
            return Err(Violation::new(
                "op-unsupported",
                "op0",
                format!("`{}` is a bitvec operator; only arithmetic ones are supported", self.op0),
            )
            .help("use nisa.tensor_scalar and nisa.tensor_reduce"));
        }
        check::scalar_of(("op0", self.op0), "operand0", self.operand0.as_ref())?;
        if let Some(operand) = &self.operand0 {
            check::scalar_operand(data, "operand0", operand)?;
        }
        if self.reverse0 {
            return Err(Violation::new("op-unsupported", "reverse0", "`reverse0` is True, which is not supported yet")
                .help("use nisa.tensor_scalar with reverse0=True and then nisa.tensor_reduce"));
        }
        self.reduction().validate(data, &OPS, &CMDS)?;
        match (self.reduce_cmd, &self.reduce_init) {
            (ReduceCmd::LoadReduce, None) => Err(Violation::new(
                "missing-operand",
                "reduce_init",
                "`reduce_cmd` is load_reduce, which loads `reduce_init`",
            )),
            (ReduceCmd::LoadReduce, Some(_)) | (_, None) => Ok(()),
            (cmd, Some(_)) => Err(Violation::new(
                "operand-value",
                "reduce_init",
                format!("`reduce_init` is given, but `reduce_cmd` is {cmd}; only load_reduce loads it"),
            )),
        }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::from_slice(&[&self.data]);
        let operand = scalars::scalar_f32(machine, self.operand0.as_ref(), &mut sources);
        let op = self.op0;
        self.reduction().run(machine, &self.dst, sources, move |_, ins, out| {
            alu::apply(op, false, ins[0], Rhs::One(operand.get(ins)), out);
        })
    }

    fn accumulators(&self) -> Option<AccumulatorUse> {
        Some(self.reduction().accumulators())
    }

    fn sets_engine_state(&self) -> bool {
        self.reduction().sets_engine_state()
    }

    fn inert(&self) -> Option<Violation> {
        if self.reduce_res_negate && self.reduce_res.is_none() {
            return Some(inert::inert(
                "reduce_res_negate",
                "`reduce_res_negate` is True, but there is no `reduce_res`; the accumulators are not negated"
                    .to_owned(),
                "pass `reduce_res`, or leave it out",
            ));
        }
        inert::unused_scalar(("operand0", self.operand0.as_ref()), ("op0", Some(self.op0)))
    }

    fn doubt(&self) -> Option<Violation> {
        doubt::inexact_comparison((self.op0, self.reverse0), ("operand0", self.operand0.as_ref()), &self.data)
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Elements)
            .arising(makes(self.op0))
            .reduced(self.reduce_op, self.reduce_cmd)
            .with_numbers(self.operand0.iter().chain(&self.reduce_init))
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let stream = stream(rows("tensor_scalar_reduce", "tensor_scalar"), &[&self.data], &[&self.dst]);
        on(
            Engine::Vector,
            Stream {
                scalar_reads: scalars::reads(self.operand0.iter().chain(&self.reduce_init)),
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

    fn reduce(dst: &View, data: &View, reduce_op: AluOp, reduce_res: Option<&View>) -> TensorScalarReduce {
        TensorScalarReduce {
            dst: dst.clone(),
            data: data.clone(),
            op0: AluOp::Multiply,
            operand0: Some(ScalarOperand::Imm(Imm::Float(2.0))),
            reduce_op,
            reduce_res: reduce_res.cloned(),
            reverse0: false,
            reduce_cmd: ReduceCmd::ResetReduce,
            reduce_init: None,
            reduce_res_negate: false,
        }
    }

    #[test]
    fn reduces_all_free_dimensions() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_f32("s", Space::Psum, DType::F32, &[1, 2, 2], &[3., 1., 4., -2.]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 2, 2]);
        let res = m.tensor("r", Space::Sbuf, DType::F32, &[1, 1]);
        for (op, want) in [(AluOp::Add, 12.), (AluOp::Multiply, -384.), (AluOp::Max, 8.), (AluOp::Min, -4.)] {
            m.run(reduce(&dst, &data, op, Some(&res))).unwrap();
            assert_eq!((m.f32s(&dst), m.f32s(&res)), (vec![6., 2., 8., -4.], vec![want]), "{op}");
        }
    }

    #[test]
    fn accumulators_chain_over_tiles_and_can_be_loaded() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_f32("s", Space::Sbuf, DType::F32, &[2, 2], &[1., 2., 3., 4.]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[2, 2]);
        let res = m.tensor("r", Space::Sbuf, DType::F32, &[2, 1]);
        m.run(reduce(&dst, &data, AluOp::Add, None)).unwrap();
        let next = TensorScalarReduce {
            reduce_cmd: ReduceCmd::Reduce,
            reduce_res_negate: true,
            ..reduce(&dst, &data, AluOp::Add, Some(&res))
        };
        m.run(next.clone()).unwrap();
        assert_eq!(m.f32s(&res), [-12., -28.]);
        // Only the read-out was negated.
        m.run(TensorScalarReduce { reduce_res_negate: false, ..next.clone() }).unwrap();
        assert_eq!(m.f32s(&res), [18., 42.]);
        let reduce_init = Some(ScalarOperand::Imm(Imm::Int(100)));
        m.run(TensorScalarReduce { reduce_cmd: ReduceCmd::LoadReduce, reduce_init, ..next }).unwrap();
        assert_eq!(m.f32s(&res), [-106., -114.]);
    }

    #[test]
    fn reduces_before_the_result_is_rounded() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_f32("s", Space::Sbuf, DType::F32, &[1, 2], &[128.5, 0.5]);
        let dst = m.tensor("d", Space::Sbuf, DType::BF16, &[1, 2]);
        let res = m.tensor("r", Space::Sbuf, DType::F32, &[1, 1]);
        m.run(reduce(&dst, &data, AluOp::Add, Some(&res))).unwrap();
        assert_eq!((m.f32s(&dst), m.f32s(&res)), (vec![256., 1.], vec![258.]));
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor("s", Space::Sbuf, DType::F32, &[2, 2]);
        let ints = m.tensor("i", Space::Sbuf, DType::I32, &[2, 1]);
        let base = reduce(&data, &data, AluOp::Add, None);
        let said = |inst: TensorScalarReduce| m.check(inst).unwrap_err();
        assert!(said(TensorScalarReduce { op0: AluOp::BitwiseOr, ..base.clone() }).contains("bitvec"));
        assert!(said(TensorScalarReduce { operand0: None, ..base.clone() }).contains("`op0=multiply` needs"));
        let e = said(TensorScalarReduce { op0: AluOp::Abs, ..base.clone() });
        assert!(e.contains("`operand0` is 2.0; it must be None or 0"), "{e}");
        assert!(said(TensorScalarReduce { reverse0: true, ..base.clone() }).contains("not supported yet"));
        let e = said(TensorScalarReduce { reduce_op: AluOp::Subtract, ..base.clone() });
        assert_eq!(e, "reduce_op: `reduce_op` is subtract; it must be add, multiply, maximum, minimum");
        assert!(said(TensorScalarReduce { reduce_cmd: ReduceCmd::Idle, ..base.clone() }).contains("is idle"));
        assert!(said(TensorScalarReduce { reduce_cmd: ReduceCmd::LoadReduce, ..base.clone() }).contains("loads"));
        let init = Some(ScalarOperand::View(ints));
        assert!(said(TensorScalarReduce { reduce_init: init, ..base.clone() }).contains("is int32"));
        let init = Some(ScalarOperand::Imm(Imm::Int(0)));
        assert!(said(TensorScalarReduce { reduce_init: init, ..base.clone() }).contains("is reset_reduce"));
        let e = said(TensorScalarReduce { reduce_res: Some(data), ..base });
        assert!(e.starts_with("reduce_res: ") && e.contains("(2, 1)"), "{e}");
    }
}
