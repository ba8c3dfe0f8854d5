//! `nisa.tensor_scalar_cumulative`: a tensor-scalar operation and a running reduction of its result.

use crate::inst::values::{Feeds, Registers, Values, makes};
use std::sync::Arc;

use super::tensor_tensor_scan::binary_arithmetic;
use crate::arch::Arch;
use crate::arg::ScalarOperand;
use crate::inst::accumulators::{self, Lanes, one_of};
use crate::inst::math::alu::{self, WithLanes};
use crate::inst::math::scan::{BATCH_ROWS, Batch, scan};
use crate::inst::result::{Given, ResultTile};
use crate::inst::scalars::{self, Scalar, Sources};
use crate::inst::stream::{on, rows, stream};
use crate::inst::{AccumulatorUse, Footprint, Instruction, Operands, Placing, check, inert};
use crate::machine::{BatchF32, Context, Fault, Machine, RowF32};
use crate::names::{AluOp, Engine, ReduceCmd};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Stream, Work};

operands! {
    /// `reg = (src[i] <op0> imm0) <op1> reg; dst[i] = reg` along the free dimensions; `reg` is an accumulator of the engine.
    pub struct TensorScalarCumulative: "tensor_scalar_cumulative" on [Vector] {
        /// The running result.
        [Out Sbuf Psum; BF16 F16 F32 F8E4M3 F8E4M3FN F8E5M2 U8 U16 I8 I16] dst: View,
        /// Input tile.
        [In Sbuf Psum; BF16 F16 F32 F8E4M3 F8E4M3FN F8E5M2 U8 U16 I8 I16] src: View,
        /// Operator between an element and `imm0`.
        [Attr] op0: AluOp,
        /// Running operator: add, subtract, multiply, maximum or minimum.
        [Attr] op1: AluOp,
        /// A number or a float32 tile of shape (P, 1).
        [In Sbuf Psum; F32] imm0: ScalarOperand,
        /// What load_reduce puts into the accumulators: a number or a float32 tile of shape (P, 1).
        [In Sbuf Psum; F32] imm1: Option<ScalarOperand> = None,
        /// What happens to the accumulators before the first element.
        [Attr] reduce_cmd: ReduceCmd = ReduceCmd::ResetReduce,
    }
    numerics: "fp32, the accumulator too; each element is rounded once to the dtype of `dst`. The manual's pseudocode \
        uses a `reverse0` that the function does not have: it is False.",
    cost: Assumed "N steps for N elements of a partition, each after the one before: one operator in the chain, where \
        tensor_tensor_scan has two and takes 2 N.",
    rules: {
        "same-size": "`src` and `dst` have the same number of partitions and of elements per partition",
        "arithmetic": "`op0` is arithmetic, with two operands",
        "op-target": "`op0`: abs_max and abs_min need trn3",
        "running": "`op1` is add, subtract, multiply, maximum or minimum",
        "reduce-cmd": "`reduce_cmd` is reset_reduce, reduce or load_reduce",
        "per-partition": "`imm0`, `imm1`: a tile has one element per partition, and as many partitions as the input",
        "init": "load_reduce needs `imm1`",
    },
}

const OPS: [AluOp; 5] = [AluOp::Add, AluOp::Subtract, AluOp::Multiply, AluOp::Max, AluOp::Min];
const CMDS: [ReduceCmd; 3] = [ReduceCmd::ResetReduce, ReduceCmd::Reduce, ReduceCmd::LoadReduce];

impl Instruction for TensorScalarCumulative {
    const PLACING: Placing = Placing::Fixed;
    const INDIRECT: &'static [&'static str] = &["dst", "src"];

    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("src")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::same_shape(("src", &self.src), ("dst", &self.dst))?;
        binary_arithmetic("op0", self.op0, context.arch)?;
        if !OPS.contains(&self.op1) {
            return Err(one_of("op1", self.op1, &OPS));
        }
        if !CMDS.contains(&self.reduce_cmd) {
            return Err(one_of("reduce_cmd", self.reduce_cmd, &CMDS));
        }
        for (name, scalar) in [("imm0", Some(&self.imm0)), ("imm1", self.imm1.as_ref())] {
            if let Some(scalar) = scalar {
                check::scalar_operand(("src", &self.src), name, scalar)?;
            }
        }
        match (self.reduce_cmd, &self.imm1) {
            (ReduceCmd::LoadReduce, None) => {
                Err(Violation::new("missing-operand", "imm1", "`reduce_cmd` is load_reduce, which loads `imm1`"))
            }
            // The manual defines imm1 for load_reduce only; its own example passes it with the other commands too.
            _ => Ok(()),
        }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// Computed in fp32, including the accumulator. Open question: the manual's pseudocode uses a `reverse0` that the function does not have;
    /// the order is that of `reverse0=False`. `subtract` subtracts the accumulator from the element, as in the pseudocode.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::from_slice(&[&self.src]);
        let imm0 = scalars::scalar_f32(machine, Some(&self.imm0), &mut sources);
        let loaded = self.imm1.as_ref().filter(|_| self.reduce_cmd == ReduceCmd::LoadReduce);
        let imm1 = scalars::scalar_f32(machine, loaded, &mut sources);
        let loads = loaded.is_some();
        let lanes = if self.reduce_cmd == ReduceCmd::ResetReduce {
            Lanes::filled(accumulators::VECTOR, accumulators::neutral(self.op1))
        } else {
            Lanes::load(machine, accumulators::VECTOR)
        };
        let lanes = Arc::new(lanes);
        let own = accumulators::partitions(&self.dst);
        let update = Arc::clone(&lanes).into_update(own.clone());
        let batch =
            alu::with_lanes(self.op1, false, Running { op: self.op0, imm0, loads, imm1, first: own.start, lanes });
        machine.map_f32_batch(&[&self.dst], &sources, batch, Some(update))
    }

    fn accumulators(&self) -> Option<AccumulatorUse> {
        Some(AccumulatorUse {
            engine: Engine::Vector,
            reads: self.reduce_cmd == ReduceCmd::Reduce,
            sets: true,
            clobbers: false,
            resets: self.reduce_cmd != ReduceCmd::Reduce,
            // `dst` holds all accumulated values.
            reduces: false,
            reads_out: true,
        })
    }

    /// The manual defines `imm1` for load_reduce only. Kernels may pass it to all steps of a chain in which only some load it.
    fn doubt(&self) -> Option<Violation> {
        let got = match self.imm1.as_ref()? {
            ScalarOperand::Imm(x) if x.as_f32() == 0.0 => return None,
            ScalarOperand::Imm(x) => format!("{:?}", x.as_f32()),
            ScalarOperand::Register(_) => "a register".into(),
            ScalarOperand::View(_) => "a tile".into(),
        };
        (self.reduce_cmd == ReduceCmd::ResetReduce).then(|| {
            let message = format!(
                "`imm1` is {got}, but `reduce_cmd` is reset_reduce, which begins with the neutral value of `op1`"
            );
            inert::inert("imm1", message, "set reduce_cmd=nisa.reduce_cmd.load_reduce, or leave `imm1` out")
        })
    }

    fn sets_engine_state(&self) -> bool {
        // The next instruction may continue from the last element.
        true
    }

    fn values(&self) -> Values<'_> {
        // It may start from the value that an earlier instruction left.
        let registers = Registers { carries: self.reduce_cmd == ReduceCmd::Reduce, updates: true };
        let values = Values::computed(Feeds::Prefix)
            .arising(makes(self.op0) || makes(self.op1))
            .with_numbers([&self.imm0].into_iter().chain(&self.imm1));
        Values { registers: Some(registers), ..values }
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let stream = stream(rows("tensor_scalar_cumulative", "scan"), &[&self.src], &[&self.dst]);
        let scalars = self.imm1.iter().chain([&self.imm0]);
        on(Engine::Vector, Stream { scalar_reads: scalars::reads(scalars), ..stream })
    }
}

/// The instruction, waiting for its second operator as a type.
struct Running {
    op: AluOp,
    imm0: Scalar<f32>,
    /// The accumulators begin with `imm1`.
    loads: bool,
    imm1: Scalar<f32>,
    /// The partition of the first row.
    first: usize,
    lanes: Arc<Lanes>,
}

impl WithLanes<BATCH_ROWS> for Running {
    type Output = BatchF32;
    fn with(self, running: impl Fn(Batch, Batch) -> Batch + Copy + Send + Sync + 'static) -> BatchF32 {
        let Running { op, imm0, loads, imm1, first, lanes } = self;
        Box::new(move |rows| {
            for row in rows.iter_mut() {
                alu::apply(op, false, row.ins[0], alu::Rhs::One(imm0.get(&row.ins)), row.outs[0]);
            }
            let lane = |row: &RowF32<'_>| first + row.partition;
            let start = |row: &RowF32<'_>| if loads { imm1.get(&row.ins) } else { lanes.get(lane(row)) };
            scan(rows, 0, start, |state, x, _| running(x, state), |row, state| lanes.set(lane(row), state));
        })
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

    fn cumulative(dst: &View, src: &View, op1: AluOp) -> TensorScalarCumulative {
        TensorScalarCumulative {
            dst: dst.clone(),
            src: src.clone(),
            op0: AluOp::Add,
            op1,
            imm0: ScalarOperand::Imm(Imm::Float(0.0)),
            imm1: None,
            reduce_cmd: ReduceCmd::ResetReduce,
        }
    }

    #[test]
    fn each_partition_has_an_accumulator() {
        let mut m = TestMachine::new(Target::Trn2);
        let values: Vec<f32> = (0..64).map(|v| v as f32).collect();
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[64, 1], &values);
        let d = m.tensor("d", Space::Sbuf, DType::F32, &[64, 1]);
        let half = |v: &View, first: u32| {
            let mut half = v.clone();
            (half.partition, half.dims[0].count) = (v.partition + first, 32);
            half
        };
        for reduce_cmd in [ReduceCmd::ResetReduce, ReduceCmd::Reduce] {
            for first in [0, 32] {
                let part = cumulative(&half(&d, first), &half(&a, first), AluOp::Add);
                m.run(TensorScalarCumulative { reduce_cmd, ..part }).unwrap();
            }
        }
        assert_eq!(m.f32s(&d), values.iter().map(|v| 2.0 * v).collect::<Vec<_>>());
    }

    #[test]
    fn each_operator_runs_from_its_neutral_value() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor_f32("s", Space::Sbuf, DType::F32, &[1, 4], &[3., 1., 4., -2.]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 4]);
        for (op, want) in [
            (AluOp::Add, [3., 4., 8., 6.]),
            // 3 - 0, 1 - 3, 4 + 2, -2 - 6
            (AluOp::Subtract, [3., -2., 6., -8.]),
            (AluOp::Multiply, [3., 3., 12., -24.]),
            (AluOp::Max, [3., 3., 4., 4.]),
            (AluOp::Min, [3., 1., 1., -2.]),
        ] {
            m.run(cumulative(&dst, &src, op)).unwrap();
            assert_eq!(m.f32s(&dst), want, "{op}");
        }
    }

    #[test]
    fn the_accumulators_go_on_or_are_loaded() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor_f32("s", Space::Sbuf, DType::BF16, &[2, 2], &[1., 2., 3., 4.]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[2, 2]);
        let scale = ScalarOperand::Imm(Imm::Float(10.0));
        let base = TensorScalarCumulative { op0: AluOp::Multiply, imm0: scale, ..cumulative(&dst, &src, AluOp::Add) };
        m.run(base.clone()).unwrap();
        m.run(TensorScalarCumulative { reduce_cmd: ReduceCmd::Reduce, ..base.clone() }).unwrap();
        assert_eq!(m.f32s(&dst), [40., 60., 100., 140.]);
        let init = m.tensor_f32("i", Space::Sbuf, DType::F32, &[2, 1], &[1000., 2000.]);
        let imm1 = Some(ScalarOperand::View(init));
        m.run(TensorScalarCumulative { reduce_cmd: ReduceCmd::LoadReduce, imm1, ..base }).unwrap();
        assert_eq!(m.f32s(&dst), [1010., 1030., 2030., 2070.]);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor("s", Space::Sbuf, DType::F32, &[1, 4]);
        let ints = m.tensor("i", Space::Sbuf, DType::I32, &[1, 4]);
        let half = m.tensor("h", Space::Sbuf, DType::BF16, &[1, 1]);
        let base = cumulative(&src, &src, AluOp::Add);
        let said = |inst: TensorScalarCumulative| m.check(inst).unwrap_err();
        assert!(said(cumulative(&src, &ints, AluOp::Add)).contains("`src` is int32"));
        assert!(said(cumulative(&src, &src, AluOp::Divide)).contains("`op1` is divide"));
        let e = said(TensorScalarCumulative { reduce_cmd: ReduceCmd::Idle, ..base.clone() });
        assert_eq!(e, "reduce_cmd: `reduce_cmd` is idle; it must be reset_reduce, reduce, load_reduce");
        let e = said(TensorScalarCumulative { reduce_cmd: ReduceCmd::LoadReduce, ..base.clone() });
        assert!(e.contains("loads `imm1`"), "{e}");
        let e = said(TensorScalarCumulative { imm0: ScalarOperand::View(half), ..base.clone() });
        assert!(e.contains("`imm0` is bfloat16; it must be float32"), "{e}");
        assert!(said(TensorScalarCumulative { op0: AluOp::LeftShift, ..base }).contains("bitvec"));
    }
}
