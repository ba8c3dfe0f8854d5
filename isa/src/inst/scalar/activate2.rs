//! `nisa.activate2`: an activation function after two configurable operators, with a reduction.

use super::activate::on_engine;
use crate::arch::Arch;
use crate::arg::{Imm, ScalarOperand};
use crate::inst::accumulators::{self, Reduction, one_of};
use crate::inst::math::activation::{self, ActFn};
use crate::inst::math::alu::{self, Rhs};
use crate::inst::scalars::{self, Sources};
use crate::inst::stream::{on, stream};
use crate::inst::values::{Feeds, Values, function_makes, makes};
use crate::inst::{AccumulatorUse, Footprint, Instruction, Operands, Placing, check};
use crate::inst::{doubt, inert};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine, Named, ReduceCmd};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Law, Stream, Work};

operands! {
    /// `dst = op((data <op0> imm0) <op1> imm1)`, optionally reduced along the free dimensions (trn3 and later).
    pub struct Activate2: "activate2" on [Scalar from Trn3, GpSimd from Trn3] {
        /// The result.
        [Out Sbuf Psum] dst: View,
        /// Activation function.
        [Attr] op: ActFn,
        /// Input tile.
        [In Sbuf Psum] data: View,
        /// Scalar of `op0`: a number or a tile of shape (P, 1).
        [In Sbuf Psum] imm0: Option<ScalarOperand>,
        /// Scalar of `op1`: a number or a tile of shape (P, 1).
        [In Sbuf Psum] imm1: Option<ScalarOperand>,
        /// First operator: multiply, add, subtract or bypass.
        [Attr] op0: Option<AluOp>,
        /// Second operator: add, subtract or bypass.
        [Attr] op1: Option<AluOp>,
        /// Parameter of parameterised functions (the slope of prelu): a number or a tile of shape (P, 1).
        [In Sbuf Psum] relu_param: ScalarOperand = ScalarOperand::Imm(Imm::Float(0.0)),
        /// `imm0` is the left operand of `op0`.
        [Attr] reverse0: bool = false,
        /// `imm1` is the left operand of `op1`.
        [Attr] reverse1: bool = false,
        /// Reduction operator: add, maximum, minimum, abs_max or abs_min.
        [Attr] reduce_op: Option<AluOp> = None,
        /// The reduction's result, shape (P, 1); `None` leaves it in the accumulators.
        [Out Sbuf Psum] reduce_res: Option<View> = None,
        /// What happens to the accumulators: idle, reset, reduce or reset_reduce.
        [Attr] reduce_cmd: ReduceCmd = ReduceCmd::Idle,
        /// Engine: scalar or gpsimd.
        [Attr] engine: Engine = Engine::Scalar,
    }
    instead: "use nisa.activation, with scale and bias",
    numerics: "fp32 throughout: operators, function and reduction, which sees the fp32 result before it is rounded once \
        to the dtype of `dst`. Functions are the exact ones, not the engine's piecewise polynomials.",
    cost: Derived "One pass over the elements of a partition; a function table is loaded when the function changes; tiles \
        as scalars and reading the accumulators add fixed parts.",
    rules: {
        "same-size": "`data` and `dst` have the same number of partitions and of elements per partition",
        "pairs": "`(op0, op1)` is (multiply, add), (multiply, subtract), (multiply, bypass), (add, bypass), (subtract, \
            bypass) or (bypass, bypass)",
        "op0": "`op1` requires `op0`",
        "reverse": "`reverse0` requires `op0`, `reverse1` requires `op1`",
        "immediates": "an operator other than bypass requires its scalar",
        "per-partition": "`imm0`, `imm1`, `relu_param`, `reduce_res`: a tile has one element per partition, and as many partitions \
            as the input",
        "same-dtype": "`imm0` and `imm1` have the same dtype if both are tiles",
        "reduce-op": "`reduce_op` is add, maximum, minimum, abs_max or abs_min",
        "reduce-op-given": "`reduce_cmd` other than idle needs `reduce_op`",
        "reduce-cmd": "`reduce_cmd` is idle, reset, reduce or reset_reduce",
        "engine": "`engine` is scalar, or gpsimd, which does not reach PSUM",
        "reduce-engine": "only the scalar engine accumulates",
    },
}

/// The operator pairs that the engine supports.
const PAIRS: [(AluOp, AluOp); 6] = [
    (AluOp::Multiply, AluOp::Add),
    (AluOp::Multiply, AluOp::Subtract),
    (AluOp::Multiply, AluOp::Bypass),
    (AluOp::Add, AluOp::Bypass),
    (AluOp::Subtract, AluOp::Bypass),
    (AluOp::Bypass, AluOp::Bypass),
];
const REDUCTIONS: [AluOp; 5] = [AluOp::Add, AluOp::Max, AluOp::Min, AluOp::AbsMax, AluOp::AbsMin];
const CMDS: [ReduceCmd; 4] = [ReduceCmd::Idle, ReduceCmd::Reset, ReduceCmd::Reduce, ReduceCmd::ResetReduce];

impl Activate2 {
    /// The operators; `None` means no operation, as bypass does.
    fn ops(&self) -> (AluOp, AluOp) {
        (self.op0.unwrap_or(AluOp::Bypass), self.op1.unwrap_or(AluOp::Bypass))
    }

    fn reduction(&self) -> Reduction<'_> {
        Reduction {
            state: accumulators::SCALAR,
            op: self.reduce_op.unwrap_or(AluOp::Add),
            cmd: self.reduce_cmd,
            init: None,
            result: self.reduce_res.as_ref(),
            negate: false,
            idle_clobbers: false,
        }
    }
}

impl Instruction for Activate2 {
    const PLACING: Placing = Placing::Fixed;
    const INDIRECT: &'static [&'static str] = &["dst", "data"];

    fn engine(&self, _arch: &Arch) -> Engine {
        self.engine
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        on_engine(self.engine, self.reduce_cmd, self.reduce_res.as_ref(), &Self::SCHEMA, context)?;
        check::gpsimd_psum(self.engine, &[("dst", &self.dst), ("data", &self.data)])?;
        let data = ("data", &self.data);
        check::same_shape(data, ("dst", &self.dst))?;
        if self.op1.is_some_and(|op| op != AluOp::Bypass) && self.op0.is_none() {
            return Err(Violation::new("missing-operand", "op0", "`op1` is given, which requires `op0`"));
        }
        let (op0, op1) = self.ops();
        if !PAIRS.contains(&(op0, op1)) {
            let pairs: Vec<_> = PAIRS.iter().map(|(a, b)| format!("({a}, {b})")).collect();
            return Err(Violation::new(
                "op-unsupported",
                "op1",
                format!("(`op0`, `op1`) is ({op0}, {op1}); it must be one of {}", pairs.join(", ")),
            ));
        }
        let stages = [
            ("imm0", &self.imm0, "op0", self.op0, "reverse0", self.reverse0),
            ("imm1", &self.imm1, "op1", self.op1, "reverse1", self.reverse1),
        ];
        for (name, imm, op_name, op, reverse_name, reverse) in stages {
            if reverse && op.is_none() {
                let message = format!("`{reverse_name}` is True, which requires `{op_name}`");
                return Err(Violation::new("missing-operand", op_name, message));
            }
            match imm {
                Some(imm) => check::scalar_operand(data, name, imm)?,
                None if op.is_some_and(|op| op != AluOp::Bypass) => {
                    return Err(Violation::new("missing-operand", name, format!("`{op_name}` needs `{name}`")));
                }
                None => {}
            }
        }
        let dtype = |imm: &Option<ScalarOperand>| imm.as_ref().and_then(|i| i.view()).map(|v| v.dtype);
        if let (Some(a), Some(b)) = (dtype(&self.imm0), dtype(&self.imm1))
            && a != b
        {
            return Err(Violation::new(
                "operand-dtype",
                "imm1",
                format!("`imm1` is {b}, `imm0` is {a}; two tiles must have the same dtype"),
            ));
        }
        check::scalar_operand(data, "relu_param", &self.relu_param)?;
        if let Some(op) = self.reduce_op
            && !REDUCTIONS.contains(&op)
        {
            return Err(one_of("reduce_op", op, &REDUCTIONS));
        }
        if self.reduce_op.is_none() && self.reduce_cmd != ReduceCmd::Idle {
            return Err(Violation::new(
                "missing-operand",
                "reduce_op",
                format!("`reduce_cmd` is {}, which needs `reduce_op`", self.reduce_cmd),
            ));
        }
        self.reduction().validate(data, &REDUCTIONS, &CMDS)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::from_slice(&[&self.data]);
        let imm0 = scalars::scalar_f32(machine, self.imm0.as_ref(), &mut sources);
        let imm1 = scalars::scalar_f32(machine, self.imm1.as_ref(), &mut sources);
        let slope = scalars::scalar_f32(machine, Some(&self.relu_param), &mut sources);
        let (op0, op1) = self.ops();
        // A reversed bypass still passes the data: there is no operation to reverse.
        let (reverse0, reverse1) = (self.reverse0 && op0 != AluOp::Bypass, self.reverse1 && op1 != AluOp::Bypass);
        let op = self.op;
        let watch = op.valid_range().and_then(|_| machine.watch_arguments(op));
        self.reduction().run(machine, &self.dst, sources, move |partition, ins, out| {
            alu::apply(op0, reverse0, ins[0], Rhs::One(imm0.get(ins)), out);
            if op1 != AluOp::Bypass {
                alu::apply_in_place(op1, reverse1, out, Rhs::One(imm1.get(ins)));
            }
            if let Some(watch) = &watch {
                watch(partition, out);
            }
            activation::apply(op, slope.get(ins), out);
        })
    }

    fn doubt(&self) -> Option<Violation> {
        let scale = self.imm0.as_ref().filter(|_| self.op0.is_some_and(|op| op != AluOp::Bypass));
        doubt::fractions_as_integers(self.op, scale, ("data", &self.data), &self.dst)
    }

    fn accumulators(&self) -> Option<AccumulatorUse> {
        // An operator with an idle command has no effect and is reported as inert.
        let idles = self.reduce_op.is_some() && self.reduce_cmd == ReduceCmd::Idle;
        (!idles).then(|| self.reduction().accumulators())
    }

    fn sets_engine_state(&self) -> bool {
        self.reduction().sets_engine_state()
    }

    fn inert(&self) -> Option<Violation> {
        let slope = match (&self.relu_param, self.op) {
            (ScalarOperand::Imm(x), _) if x.as_f32() == 0.0 => None,
            (_, ActFn::Prelu) => None,
            (_, op) => Some(inert::inert(
                "relu_param",
                format!("`relu_param` is given, but `op` is {}, which has no parameter", Named::name(op)),
                "leave it out",
            )),
        };
        inert::first([
            inert::idle_reduction(self.reduce_op, self.reduce_cmd, self.reduce_res.as_ref()),
            inert::reversed(("reverse0", self.reverse0), ("op0", self.op0)),
            inert::reversed(("reverse1", self.reverse1), ("op1", self.op1)),
            inert::unused_scalar(("imm0", self.imm0.as_ref()), ("op0", self.op0)),
            inert::unused_scalar(("imm1", self.imm1.as_ref()), ("op1", self.op1)),
            slope,
        ])
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Elements)
            .arising(function_makes(self.op) || self.op0.is_some_and(makes))
            .reduced(self.reduce_op.unwrap_or(AluOp::Add), self.reduce_cmd)
            .with_numbers(self.imm0.iter().chain(&self.imm1))
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let stream = stream(Law::Function(self.op.name()), &[&self.data], &[&self.dst]);
        let scalars = self.imm0.iter().chain(&self.imm1).chain([&self.relu_param]);
        on(
            self.engine,
            Stream { scalar_reads: scalars::reads(scalars), accumulator_read: self.reduce_res.is_some(), ..stream },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn imm(x: f64) -> Option<ScalarOperand> {
        Some(ScalarOperand::Imm(Imm::Float(x)))
    }

    fn activate2(dst: &View, data: &View, op0: AluOp, op1: AluOp) -> Activate2 {
        Activate2 {
            dst: dst.clone(),
            op: ActFn::Copy,
            data: data.clone(),
            imm0: imm(2.0),
            imm1: imm(3.0),
            op0: Some(op0),
            op1: Some(op1),
            relu_param: ScalarOperand::Imm(Imm::Float(0.0)),
            reverse0: false,
            reverse1: false,
            reduce_op: None,
            reduce_res: None,
            reduce_cmd: ReduceCmd::Idle,
            engine: Engine::Scalar,
        }
    }

    #[test]
    fn all_pairs_of_operators() {
        let mut m = TestMachine::new(Target::Trn3);
        let data = m.tensor_f32("s", Space::Psum, DType::BF16, &[1, 1], &[10.]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 1]);
        for ((op0, op1), want) in PAIRS.into_iter().zip([23., 17., 20., 12., 8., 10.]) {
            m.run(activate2(&dst, &data, op0, op1)).unwrap();
            assert_eq!(m.f32s(&dst), [want], "({op0}, {op1})");
        }
        let base = activate2(&dst, &data, AluOp::Multiply, AluOp::Subtract);
        m.run(Activate2 { reverse1: true, ..base }).unwrap();
        assert_eq!(m.f32s(&dst), [-17.]);
        let base = Activate2 { reverse0: true, ..activate2(&dst, &data, AluOp::Subtract, AluOp::Bypass) };
        m.run(base).unwrap();
        assert_eq!(m.f32s(&dst), [-8.]);
    }

    #[test]
    fn the_parameter_is_the_slope_of_prelu() {
        let mut m = TestMachine::new(Target::Trn3);
        let data = m.tensor_f32("s", Space::Sbuf, DType::F32, &[2, 2], &[-4., 4., -4., 4.]);
        let slope = m.tensor_f32("r", Space::Sbuf, DType::F32, &[2, 1], &[0.5, 0.25]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[2, 2]);
        let relu_param = ScalarOperand::View(slope);
        let base = activate2(&dst, &data, AluOp::Bypass, AluOp::Bypass);
        m.run(Activate2 { op: ActFn::Prelu, relu_param, imm0: None, imm1: None, ..base }).unwrap();
        assert_eq!(m.f32s(&dst), [-2., 4., -1., 4.]);
    }

    #[test]
    fn reductions_go_on_in_the_scalar_engines_accumulators() {
        let mut m = TestMachine::new(Target::Trn3);
        let data = m.tensor_f32("s", Space::Sbuf, DType::F32, &[1, 3], &[1., -5., 3.]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 3]);
        let res = m.tensor("r", Space::Sbuf, DType::F32, &[1, 1]);
        let cases = [(AluOp::Add, -1.), (AluOp::Max, 3.), (AluOp::Min, -5.), (AluOp::AbsMax, -5.), (AluOp::AbsMin, 1.)];
        for (op, want) in cases {
            let inst = Activate2 {
                reduce_op: Some(op),
                reduce_res: Some(res.clone()),
                reduce_cmd: ReduceCmd::ResetReduce,
                ..activate2(&dst, &data, AluOp::Bypass, AluOp::Bypass)
            };
            m.run(inst.clone()).unwrap();
            assert_eq!(m.f32s(&res), [want], "{op}");
            // Reset alone leaves the neutral value.
            m.run(Activate2 { reduce_cmd: ReduceCmd::Reset, ..inst.clone() }).unwrap();
            m.run(Activate2 { reduce_cmd: ReduceCmd::Reduce, ..inst.clone() }).unwrap();
            assert_eq!(m.f32s(&res), [want], "{op} after reset");
            m.run(Activate2 { reduce_cmd: ReduceCmd::Idle, ..inst }).unwrap();
            assert_eq!(m.f32s(&res), [want], "{op} after idle");
        }
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let tile = m.tensor("t", Space::Sbuf, DType::F32, &[2, 2]);
        let e = m.check(activate2(&tile, &tile, AluOp::Add, AluOp::Bypass)).unwrap_err();
        assert!(e.contains("activate2 needs trn3 (target is trn2)"), "{e}");
        let mut m = TestMachine::new(Target::Trn3);
        let tile = m.tensor("t", Space::Sbuf, DType::F32, &[2, 2]);
        let float = m.tensor("f", Space::Sbuf, DType::F32, &[2, 1]);
        let half = m.tensor("h", Space::Sbuf, DType::BF16, &[2, 1]);
        let base = activate2(&tile, &tile, AluOp::Multiply, AluOp::Add);
        let said = |inst: Activate2| m.check(inst).unwrap_err();
        let e = said(activate2(&tile, &tile, AluOp::Add, AluOp::Multiply));
        assert!(e.contains("is (add, multiply); it must be one of (multiply, add)"), "{e}");
        assert!(said(Activate2 { op0: None, ..base.clone() }).contains("requires `op0`"));
        assert!(said(Activate2 { imm1: None, ..base.clone() }).contains("`op1` needs `imm1`"));
        let none = Activate2 { op0: None, op1: None, ..base.clone() };
        m.check(none.clone()).unwrap();
        assert!(said(Activate2 { reverse1: true, ..none }).contains("`reverse1` is True, which requires `op1`"));
        let (imm0, imm1) = (Some(ScalarOperand::View(float)), Some(ScalarOperand::View(half)));
        assert!(said(Activate2 { imm0, imm1, ..base.clone() }).contains("`imm1` is bfloat16, `imm0` is float32"));
        assert!(said(Activate2 { reduce_op: Some(AluOp::Multiply), ..base.clone() }).contains("is multiply"));
        assert!(said(Activate2 { reduce_cmd: ReduceCmd::Reduce, ..base.clone() }).contains("needs `reduce_op`"));
        let reduce = Activate2 { reduce_op: Some(AluOp::Add), reduce_cmd: ReduceCmd::LoadReduce, ..base };
        assert!(said(reduce).contains("`reduce_cmd` is load_reduce"));
    }
}
