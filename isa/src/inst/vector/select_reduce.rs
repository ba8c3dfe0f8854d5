//! `nisa.select_reduce`: selects by a predicate and computes the maximum of the selected elements.

use crate::arch::Arch;
use crate::arg::ScalarOperand;
use crate::inst::accumulators::{self, Reduction};
use crate::inst::math::alu;
use crate::inst::scalars::{self, Sources};
use crate::inst::stream::{on, rows, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{AccumulatorUse, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine, ReduceCmd};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Stream, Work};

operands! {
    /// `dst = on_true` where `predicate` is not zero, else `on_false`; optionally the maximum of `dst` along the free dimensions.
    pub struct SelectReduce: "select_reduce" on [Vector] {
        /// The selected elements.
        [Out Sbuf Psum] dst: View,
        /// Integers of 8 or 16 bits, of the shape of `dst`.
        [In Sbuf Psum; I8 U8 I16 U16 Bool] predicate: View,
        /// Taken where the predicate holds.
        [In Sbuf Psum; F8E4M3 F8E4M3FN F8E5M2 F16 BF16 F32 I8 I16 U8 U16 Bool] on_true: View,
        /// Taken elsewhere: a float32 number or a tile of shape (P, 1).
        [In Sbuf Psum] on_false: ScalarOperand,
        /// The maximum, shape (P, 1); `None` leaves it in the accumulators.
        [Out Sbuf Psum; F16 BF16 F32 TF32 F8E4M3 F8E4M3FN F8E5M2] reduce_res: Option<View> = None,
        /// What happens to the accumulators: idle, reset_reduce or reduce.
        [Attr] reduce_cmd: ReduceCmd = ReduceCmd::Idle,
        /// Reduction operator: maximum.
        [Attr] reduce_op: AluOp = AluOp::Max,
        /// The predicate holds where it is zero.
        [Attr] reverse_pred: bool = false,
    }
    numerics: "Through fp32, also between equal dtypes. With idle the accumulators are unknown afterwards (NaN here).",
    cost: Derived "As tensor_copy_predicated, which reads a tile and a predicate too; reading the accumulators adds 64 steps.",
    rules: {
        "same-size": "`on_true`, `predicate` and `dst` have the same number of partitions and of elements per partition",
        "both-psum": "`on_true` and `predicate` are not both in PSUM",
        "per-partition": "`on_false`, `reduce_res`: a tile has one element per partition, and as many partitions as the input",
        "reduce-op": "`reduce_op` is maximum",
        "reduce-cmd": "`reduce_cmd` is idle, reset_reduce or reduce",
        "result-idle": "idle takes no `reduce_res`",
    },
}

const CMDS: [ReduceCmd; 3] = [ReduceCmd::Idle, ReduceCmd::ResetReduce, ReduceCmd::Reduce];

impl SelectReduce {
    fn reduction(&self) -> Reduction<'_> {
        Reduction {
            state: accumulators::VECTOR,
            op: self.reduce_op,
            cmd: self.reduce_cmd,
            init: None,
            result: self.reduce_res.as_ref(),
            negate: false,
            idle_clobbers: true,
        }
    }
}

impl Instruction for SelectReduce {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        let on_true = ("on_true", &self.on_true);
        check::same_shape(on_true, ("dst", &self.dst))?;
        check::same_shape(on_true, ("predicate", &self.predicate))?;
        check::not_both_psum(on_true, ("predicate", &self.predicate))?;
        check::scalar_operand(on_true, "on_false", &self.on_false)?;
        self.reduction().validate(on_true, &[AluOp::Max], &CMDS)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::from_slice(&[&self.on_true, &self.predicate]);
        let on_false = scalars::scalar_f32(machine, Some(&self.on_false), &mut sources);
        let reverse = self.reverse_pred;
        self.reduction().run(machine, &self.dst, sources, move |_, ins, out| {
            alu::select(ins[1], reverse, ins[0], on_false.get(ins), out);
        })
    }

    fn accumulators(&self) -> Option<AccumulatorUse> {
        Some(self.reduction().accumulators())
    }

    fn sets_engine_state(&self) -> bool {
        self.reduction().sets_engine_state()
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Elements)
            .reduced(self.reduce_op, self.reduce_cmd)
            .with_numbers([&self.on_false])
            .selecting(Some(&self.on_true))
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let stream = stream(rows("select_reduce", "predicated"), &[&self.on_true, &self.predicate], &[&self.dst]);
        on(
            Engine::Vector,
            Stream {
                scalar_reads: scalars::reads([&self.on_false]),
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

    fn select(dst: &View, predicate: &View, on_true: &View) -> SelectReduce {
        SelectReduce {
            dst: dst.clone(),
            predicate: predicate.clone(),
            on_true: on_true.clone(),
            on_false: ScalarOperand::Imm(Imm::Float(-1.0)),
            reduce_res: None,
            reduce_cmd: ReduceCmd::Idle,
            reduce_op: AluOp::Max,
            reverse_pred: false,
        }
    }

    #[test]
    fn selects_by_number_or_by_tile() {
        let mut m = TestMachine::new(Target::Trn2);
        let on_true = m.tensor_f32("t", Space::Psum, DType::F32, &[2, 2], &[1., 2., 3., 4.]);
        let pred = m.tensor_bits("p", Space::Sbuf, DType::U8, &[2, 2], &[1, 0, 0, 255]);
        let dst = m.tensor("d", Space::Sbuf, DType::BF16, &[2, 2]);
        m.run(select(&dst, &pred, &on_true)).unwrap();
        assert_eq!(m.f32s(&dst), [1., -1., -1., 4.]);
        let on_false = m.tensor_f32("f", Space::Sbuf, DType::F32, &[2, 1], &[10., 20.]);
        let on_false = ScalarOperand::View(on_false);
        m.run(SelectReduce { on_false, reverse_pred: true, ..select(&dst, &pred, &on_true) }).unwrap();
        assert_eq!(m.f32s(&dst), [10., 2., 3., 20.]);
    }

    #[test]
    fn the_maximum_goes_on_unless_idle_came_between() {
        let mut m = TestMachine::new(Target::Trn2);
        let on_true = m.tensor_f32("t", Space::Sbuf, DType::F32, &[1, 2], &[5., 2.]);
        let pred = m.tensor_bits("p", Space::Sbuf, DType::I16, &[1, 2], &[0, 1]);
        let all = m.tensor_bits("q", Space::Sbuf, DType::I16, &[1, 2], &[1, 1]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 2]);
        let res = m.tensor("r", Space::Sbuf, DType::F32, &[1, 1]);
        m.run(SelectReduce { reduce_cmd: ReduceCmd::ResetReduce, ..select(&dst, &all, &on_true) }).unwrap();
        let read = SelectReduce {
            reduce_cmd: ReduceCmd::Reduce,
            reduce_res: Some(res.clone()),
            ..select(&dst, &pred, &on_true)
        };
        m.run(read.clone()).unwrap();
        assert_eq!(m.f32s(&res), [5.]);
        m.run(select(&dst, &pred, &on_true)).unwrap();
        m.run(read.clone()).unwrap();
        assert!(m.f32s(&res)[0].is_nan());
        m.run(SelectReduce { reduce_cmd: ReduceCmd::ResetReduce, ..read }).unwrap();
        assert_eq!(m.f32s(&res), [2.]);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let tile = m.tensor("t", Space::Sbuf, DType::F32, &[2, 2]);
        let ints = m.tensor("i", Space::Sbuf, DType::I32, &[2, 2]);
        let pred = m.tensor("p", Space::Psum, DType::U8, &[2, 2]);
        let psum = m.tensor("q", Space::Psum, DType::F32, &[2, 2]);
        let res = m.tensor("r", Space::Sbuf, DType::I16, &[2, 1]);
        let float = m.tensor("s", Space::Sbuf, DType::F32, &[2, 1]);
        let base = select(&tile, &pred, &tile);
        let said = |inst: SelectReduce| m.check(inst).unwrap_err();
        assert!(said(select(&tile, &ints, &tile)).contains("`predicate` is int32"));
        assert!(said(select(&tile, &pred, &ints)).contains("`on_true` is int32"));
        assert!(said(select(&tile, &pred, &psum)).contains("both in PSUM"));
        assert!(said(SelectReduce { on_false: ScalarOperand::View(tile), ..base.clone() }).contains("(2, 1)"));
        assert!(said(SelectReduce { reduce_op: AluOp::Add, ..base.clone() }).contains("`reduce_op` is add"));
        let e = said(SelectReduce { reduce_cmd: ReduceCmd::LoadReduce, ..base.clone() });
        assert!(e.contains("is load_reduce; it must be idle, reset_reduce, reduce"), "{e}");
        let reduce = SelectReduce { reduce_cmd: ReduceCmd::Reduce, ..base.clone() };
        assert!(said(SelectReduce { reduce_res: Some(res), ..reduce }).contains("`reduce_res` is int16"));
        assert!(said(SelectReduce { reduce_res: Some(float), ..base }).contains("`reduce_cmd` is idle"));
    }
}
