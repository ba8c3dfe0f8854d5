//! `nisa.tensor_tensor_scan`: a running combination of two tiles along the free dimensions.

use crate::arch::Arch;
use crate::arg::ScalarOperand;
use crate::inst::math::alu::{self, WithLanes};
use crate::inst::math::scan::{BATCH_ROWS, Batch, scan};
use crate::inst::result::{Given, ResultTile};
use crate::inst::scalars::{self, Scalar, Sources};
use crate::inst::stream::{SCAN, on, stream};
use crate::inst::values::{Feeds, Values, makes};
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{BatchF32, Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Stream, Work};

operands! {
    /// `dst[i] = (data0[i] <op0> dst[i-1]) <op1> data1[i]` along the free dimensions, with `initial` before the first element.
    pub struct TensorTensorScan: "tensor_tensor_scan" on [Vector] {
        /// The running result.
        [Out Sbuf Psum] dst: View,
        /// Combined with the previous result by `op0`.
        [In Sbuf Psum] data0: View,
        /// Combined with that by `op1`.
        [In Sbuf Psum] data1: View,
        /// The previous result of the first element: a number or a tile of shape (P, 1).
        [In Sbuf Psum] initial: ScalarOperand,
        /// First operator, arithmetic and binary.
        [Attr] op0: AluOp,
        /// Second operator, arithmetic and binary.
        [Attr] op1: AluOp,
        /// `data0` is the right operand of `op0`.
        [Attr] reverse0: bool = false,
        /// `data1` is the left operand of `op1`.
        [Attr] reverse1: bool = false,
    }
    numerics: "fp32, the running value too; each element is rounded once to the dtype of `dst`.",
    cost: Measured "2 N steps for N elements of a partition, each after the one before.",
    rules: {
        "same-size": "`data0`, `data1` and `dst` have the same number of partitions and of elements per partition",
        "both-psum": "`data0` and `data1` are not both in PSUM",
        "per-partition": "`initial`: a tile has one element per partition, and as many partitions as the input",
        "arithmetic": "`op0` and `op1` are arithmetic, with two operands",
        "op-target": "`op0`, `op1`: abs_max and abs_min need trn3",
    },
}

/// The operator is arithmetic and takes two operands.
pub(super) fn binary_arithmetic(name: &'static str, op: AluOp, arch: &Arch) -> Result<(), Violation> {
    check::op_on_target(name, op, arch)?;
    // Bypass returns its left operand: the engine accepts it with one operand or two.
    if op.is_bitvec() || (op.is_unary() && op != AluOp::Bypass) {
        let what = if op.is_bitvec() { "a bitvec operator" } else { "an operator of one operand" };
        return Err(Violation::new(
            "op-unsupported",
            name,
            format!("`{op}` is {what}; `{name}` takes arithmetic operators of two operands"),
        ));
    }
    Ok(())
}

impl Instruction for TensorTensorScan {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        let (data0, data1) = (given.view("data0")?, given.view("data1")?);
        // "the same as the data type of data0 or data1, whichever has the highest precision" (manual of Beta 1).
        Some(ResultTile { dtype: data0.dtype.promote(data1.dtype), ..ResultTile::like(data0) })
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        let data0 = ("data0", &self.data0);
        check::same_shape(data0, ("data1", &self.data1))?;
        check::same_shape(data0, ("dst", &self.dst))?;
        check::not_both_psum(data0, ("data1", &self.data1))?;
        check::scalar_operand(data0, "initial", &self.initial)?;
        binary_arithmetic("op0", self.op0, context.arch)?;
        binary_arithmetic("op1", self.op1, context.arch)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// The running state is fp32, even if `dst` is narrower (manual: "the computation in float32 math.
    /// The float32 computation results are cast to dst.dtype").
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::from_slice(&[&self.data0, &self.data1]);
        let initial = scalars::scalar_f32(machine, Some(&self.initial), &mut sources);
        let batch = alu::with_lanes(self.op0, self.reverse0, First { scan: self, initial });
        machine.map_f32_batch(&[&self.dst], &sources, batch, None)
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Prefix).arising(makes(self.op0) || makes(self.op1)).with_numbers([&self.initial])
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let stream = stream(SCAN, &[&self.data0, &self.data1], &[&self.dst]);
        on(Engine::Vector, Stream { scalar_reads: scalars::reads([&self.initial]), ..stream })
    }
}

/// The scan, waiting for its first operator as a type.
struct First<'a> {
    scan: &'a TensorTensorScan,
    initial: Scalar<f32>,
}

/// The scan with first operator `f`, waiting for its second one as a type.
struct Second<F> {
    f: F,
    initial: Scalar<f32>,
}

impl WithLanes<BATCH_ROWS> for First<'_> {
    type Output = BatchF32;
    fn with(self, f: impl Fn(Batch, Batch) -> Batch + Copy + Send + Sync + 'static) -> BatchF32 {
        let First { scan, initial } = self;
        alu::with_lanes(scan.op1, scan.reverse1, Second { f, initial })
    }
}

impl<F: Fn(Batch, Batch) -> Batch + Copy + Send + Sync + 'static> WithLanes<BATCH_ROWS> for Second<F> {
    type Output = BatchF32;
    fn with(self, g: impl Fn(Batch, Batch) -> Batch + Copy + Send + Sync + 'static) -> BatchF32 {
        let Second { f, initial } = self;
        Box::new(move |rows| {
            for row in rows.iter_mut() {
                row.outs[0].copy_from_slice(row.ins[0]);
            }
            scan(rows, 1, |row| initial.get(&row.ins), |state, x, y| g(f(x, state), y), |_, _| {});
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

    fn scan_of(dst: &View, data0: &View, data1: &View, op0: AluOp, op1: AluOp) -> TensorTensorScan {
        TensorTensorScan {
            dst: dst.clone(),
            data0: data0.clone(),
            data1: data1.clone(),
            initial: ScalarOperand::Imm(Imm::Float(0.0)),
            op0,
            op1,
            reverse0: false,
            reverse1: false,
        }
    }

    #[test]
    fn a_cumulative_sum_starts_at_each_partitions_initial_value() {
        let mut m = TestMachine::new(Target::Trn2);
        let ones = m.tensor_f32("ones", Space::Sbuf, DType::F32, &[2, 3], &[1.; 6]);
        let data = m.tensor_f32("data", Space::Psum, DType::F32, &[2, 3], &[1., 2., 3., 4., 5., 6.]);
        let initial = m.tensor_f32("initial", Space::Sbuf, DType::F32, &[2, 1], &[0., 100.]);
        let dst = m.tensor("dst", Space::Sbuf, DType::F32, &[2, 3]);
        let scan = scan_of(&dst, &ones, &data, AluOp::Multiply, AluOp::Add);
        m.run(TensorTensorScan { initial: ScalarOperand::View(initial), ..scan }).unwrap();
        assert_eq!(m.f32s(&dst), [1., 3., 6., 104., 109., 115.]);
    }

    #[test]
    fn reversal_exchanges_operands() {
        let mut m = TestMachine::new(Target::Trn2);
        let x = m.tensor_f32("x", Space::Sbuf, DType::F32, &[1, 2], &[1., 2.]);
        let y = m.tensor_f32("y", Space::Sbuf, DType::F32, &[1, 2], &[10., 20.]);
        let dst = m.tensor("dst", Space::Sbuf, DType::F32, &[1, 2]);
        let base = TensorTensorScan {
            initial: ScalarOperand::Imm(Imm::Float(5.0)),
            ..scan_of(&dst, &x, &y, AluOp::Subtract, AluOp::Subtract)
        };
        // (1 - 5) - 10 = -14, (2 + 14) - 20 = -4
        m.run(base.clone()).unwrap();
        assert_eq!(m.f32s(&dst), [-14., -4.]);
        // 5 - 1 - 10 = -6, -6 - 2 - 20 = -28
        m.run(TensorTensorScan { reverse0: true, ..base.clone() }).unwrap();
        assert_eq!(m.f32s(&dst), [-6., -28.]);
        // 10 - (1 - 5) = 14, 20 - (2 - 14) = 32
        m.run(TensorTensorScan { reverse1: true, ..base }).unwrap();
        assert_eq!(m.f32s(&dst), [14., 32.]);
    }

    #[test]
    fn the_state_is_fp32_and_only_the_result_is_rounded() {
        let mut m = TestMachine::new(Target::Trn2);
        let ones = m.tensor_f32("ones", Space::Sbuf, DType::F32, &[1, 3], &[1.; 3]);
        let data = m.tensor_f32("data", Space::Sbuf, DType::F32, &[1, 3], &[256., 1., 1.]);
        let dst = m.tensor("dst", Space::Sbuf, DType::BF16, &[1, 3]);
        m.run(scan_of(&dst, &ones, &data, AluOp::Multiply, AluOp::Add)).unwrap();
        // bf16 cannot represent 257: a bf16 state would stay at 256.
        assert_eq!(m.f32s(&dst), [256., 256., 258.]);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor("a", Space::Psum, DType::F32, &[2, 4]);
        let b = m.tensor("b", Space::Psum, DType::F32, &[2, 4]);
        let s = m.tensor("s", Space::Sbuf, DType::F32, &[2, 4]);
        let short = m.tensor("short", Space::Sbuf, DType::F32, &[2, 3]);
        let e = m.check(scan_of(&s, &a, &b, AluOp::Add, AluOp::Add)).unwrap_err();
        assert!(e.contains("`data0` and `data1` are both in PSUM"), "{e}");
        let e = m.check(scan_of(&s, &s, &short, AluOp::Add, AluOp::Add)).unwrap_err();
        assert!(e.starts_with("data1: ") && e.contains("= 3 elements"), "{e}");
        let e = m.check(scan_of(&s, &s, &a, AluOp::BitwiseAnd, AluOp::Add)).unwrap_err();
        assert!(e.contains("`bitwise_and` is a bitvec operator; `op0`"), "{e}");
        let e = m.check(scan_of(&s, &s, &a, AluOp::Add, AluOp::Rsqrt)).unwrap_err();
        assert!(e.contains("`rsqrt` is an operator of one operand; `op1`"), "{e}");
        let e = m.check(TensorTensorScan {
            initial: ScalarOperand::View(s.clone()),
            ..scan_of(&s, &s, &a, AluOp::Add, AluOp::Add)
        });
        assert!(e.unwrap_err().starts_with("initial: "));
    }
}
