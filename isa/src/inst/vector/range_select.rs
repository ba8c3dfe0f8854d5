//! `nisa.range_select`: keeps the elements whose position is between bounds, and computes the maximum.

use crate::arch::Arch;
use crate::arg::{Imm, ScalarOperand};
use crate::inst::accumulators::{self, Reduction, one_of};
use crate::inst::math::alu::{self, Rhs};
use crate::inst::result::{Given, ResultTile};
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
    /// With `i` the position in the free dimensions plus `range_start`: `dst = on_true_tile` where `i <comp_op0> bound0` and
    /// `i <comp_op1> bound1`, else `on_false_value`; and the maximum of `dst` along the free dimensions.
    pub struct RangeSelect: "range_select" on [Vector from Trn2] {
        /// The selected elements.
        [Out Sbuf Psum] dst: View,
        /// Input tile of a float type.
        [In Sbuf Psum; F16 BF16 F32 TF32 F8E4M3 F8E4M3FN F8E5M2] on_true_tile: View,
        /// First comparison: equal, less, less_equal, greater or greater_equal.
        [Attr] comp_op0: AluOp,
        /// Second comparison.
        [Attr] comp_op1: AluOp,
        /// First bound: a float32 tile of shape (P, 1), or a number.
        [In Sbuf Psum; F32] bound0: ScalarOperand,
        /// Second bound: a float32 tile of shape (P, 1), or a number.
        [In Sbuf Psum; F32] bound1: ScalarOperand,
        /// What happens to the accumulators.
        [Attr] reduce_cmd: ReduceCmd = ReduceCmd::ResetReduce,
        /// The maximum, shape (P, 1); `None` leaves it in the accumulators.
        [Out Sbuf Psum] reduce_res: Option<View> = None,
        /// Reduction operator: maximum.
        [Attr] reduce_op: AluOp = AluOp::Max,
        /// The position of the first element.
        [Attr] range_start: i64 = 0,
        /// Taken where a comparison fails: the lowest fp32 number, -3.4028235e38, and no other.
        [Attr] on_false_value: Imm = Imm::Float(f32::MIN as f64),
    }
    instead: "use nisa.affine_select and nisa.tensor_reduce, or compare an nisa.iota tile",
    numerics: "Positions and bounds are compared in fp32. The reduction sees fp32: the lowest number stays finite in \
        it, also where it becomes -inf in a narrower `dst`.",
    cost: Documented "N steps for N elements of a partition, at least 64; reading the accumulators adds 64.",
    rules: {
        "same-size": "`on_true_tile` and `dst` have the same number of partitions and of elements per partition",
        "comparisons": "`comp_op0` and `comp_op1` are equal, less, less_equal, greater or greater_equal",
        "per-partition": "`bound0`, `bound1`, `reduce_res`: a tile has one element per partition, and as many partitions as the \
            input",
        "range": "positions stay within 2^24",
        "false-value": "`on_false_value` is the most negative finite fp32 number",
        "reduce-op": "`reduce_op` is maximum",
        "reduce-cmd": "`reduce_cmd` is idle, reset, reduce or reset_reduce",
        "result-idle": "idle takes no `reduce_res`",
    },
}

const COMPARISONS: [AluOp; 5] = [AluOp::Equal, AluOp::Less, AluOp::LessEqual, AluOp::Greater, AluOp::GreaterEqual];
const CMDS: [ReduceCmd; 4] = [ReduceCmd::Idle, ReduceCmd::Reset, ReduceCmd::Reduce, ReduceCmd::ResetReduce];
/// Positions are compared in fp32, which represents all integers up to here.
const EXACT: i64 = 1 << 24;

impl RangeSelect {
    fn reduction(&self) -> Reduction<'_> {
        Reduction {
            state: accumulators::VECTOR,
            op: self.reduce_op,
            cmd: self.reduce_cmd,
            init: None,
            result: self.reduce_res.as_ref(),
            negate: false,
            idle_clobbers: false,
        }
    }
}

impl Instruction for RangeSelect {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("on_true_tile")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        let tile = ("on_true_tile", &self.on_true_tile);
        check::same_shape(tile, ("dst", &self.dst))?;
        for (name, op) in [("comp_op0", self.comp_op0), ("comp_op1", self.comp_op1)] {
            if !COMPARISONS.contains(&op) {
                return Err(one_of(name, op, &COMPARISONS));
            }
        }
        for (name, bound) in [("bound0", &self.bound0), ("bound1", &self.bound1)] {
            check::scalar_operand(tile, name, bound)?;
        }
        let last = self.range_start.saturating_add(self.on_true_tile.free_elements() as i64 - 1);
        if self.range_start < -EXACT || last > EXACT {
            return Err(Violation::new(
                "operand-value",
                "range_start",
                format!(
                    "positions go from {} to {last}; they are compared in fp32, which holds integers up to 2^24 = {EXACT} only",
                    self.range_start
                ),
            )
            .help("subtract the start from the bounds instead"));
        }
        if self.on_false_value.as_f32() != f32::MIN {
            return Err(Violation::new(
                "operand-value",
                "on_false_value",
                format!("`on_false_value` is {:?}, the hardware has {:?} only", self.on_false_value.as_f32(), f32::MIN),
            )
            .help("leave it out, or use nisa.select_reduce"));
        }
        self.reduction().validate(tile, &[AluOp::Max], &CMDS)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// The reduction operates on fp32: the lowest number stays finite in it, even if it becomes -inf in a narrower `dst`.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::from_slice(&[&self.on_true_tile]);
        let bounds = [&self.bound0, &self.bound1].map(|bound| scalars::scalar_f32(machine, Some(bound), &mut sources));
        let positions: Vec<f32> =
            (0..self.on_true_tile.free_elements()).map(|i| (self.range_start + i as i64) as f32).collect();
        let (first, second) = (self.comp_op0, self.comp_op1);
        self.reduction().run(machine, &self.dst, sources, move |_, ins, out| {
            const PIECE: usize = 256;
            let bound = |i: usize| Rhs::One(bounds[i].get(ins));
            let (mut inside, mut also) = ([0.0; PIECE], [0.0; PIECE]);
            let pieces = positions.chunks(PIECE).zip(ins[0].chunks(PIECE)).zip(out.chunks_mut(PIECE));
            for ((positions, data), out) in pieces {
                let (inside, also) = (&mut inside[..out.len()], &mut also[..out.len()]);
                alu::apply(first, false, positions, bound(0), inside);
                alu::apply(second, false, positions, bound(1), also);
                alu::apply_in_place(AluOp::LogicalAnd, false, inside, Rhs::Row(also));
                alu::select(inside, false, data, f32::MIN, out);
            }
        })
    }

    fn accumulators(&self) -> Option<AccumulatorUse> {
        // reset_reduce is the default, so it alone does not mean that the kernel requested a maximum.
        let by_default = self.reduce_cmd == ReduceCmd::ResetReduce;
        let use_ = self.reduction().accumulators();
        Some(AccumulatorUse { reduces: use_.reduces && !by_default, ..use_ })
    }

    fn sets_engine_state(&self) -> bool {
        self.reduction().sets_engine_state()
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Elements).reduced(self.reduce_op, self.reduce_cmd).selecting(Some(&self.on_true_tile))
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let stream = stream(rows("range_select", "typical"), &[&self.on_true_tile], &[&self.dst]);
        on(
            Engine::Vector,
            Stream {
                scalar_reads: scalars::reads([&self.bound0, &self.bound1]),
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
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    struct Case {
        m: TestMachine,
        inst: RangeSelect,
    }

    fn case(target: Target, dtype: DType) -> Case {
        let mut m = TestMachine::new(target);
        let tile = m.tensor_f32("t", Space::Psum, DType::F32, &[2, 4], &[1., 2., 3., 4., 5., 6., 7., 8.]);
        let dst = m.tensor("d", Space::Sbuf, dtype, &[2, 4]);
        let bound0 = m.tensor_f32("b0", Space::Sbuf, DType::F32, &[2, 1], &[11., 20.]);
        let bound1 = m.tensor_f32("b1", Space::Sbuf, DType::F32, &[2, 1], &[13., 30.]);
        let res = m.tensor("r", Space::Sbuf, DType::F32, &[2, 1]);
        let inst = RangeSelect {
            dst,
            on_true_tile: tile,
            comp_op0: AluOp::GreaterEqual,
            comp_op1: AluOp::Less,
            bound0: ScalarOperand::View(bound0),
            bound1: ScalarOperand::View(bound1),
            reduce_cmd: ReduceCmd::ResetReduce,
            reduce_res: Some(res),
            reduce_op: AluOp::Max,
            range_start: 10,
            on_false_value: Imm::Float(-3.4028235e38),
        };
        Case { m, inst }
    }

    #[test]
    fn keeps_what_lies_between_the_bounds() {
        let Case { mut m, inst } = case(Target::Trn2, DType::F32);
        m.run(inst.clone()).unwrap();
        let low = f32::MIN;
        assert_eq!(m.f32s(&inst.dst), [low, 2., 3., low, low, low, low, low]);
        assert_eq!(m.f32s(inst.reduce_res.as_ref().unwrap()), [3., low]);
    }

    #[test]
    fn a_bound_may_be_a_number() {
        let Case { mut m, inst } = case(Target::Trn2, DType::F32);
        m.run(RangeSelect { bound0: ScalarOperand::Imm(Imm::Int(12)), ..inst.clone() }).unwrap();
        let low = f32::MIN;
        assert_eq!(m.f32s(&inst.dst), [low, low, 3., low, low, low, 7., 8.]);
    }

    #[test]
    fn a_narrow_result_is_infinite_but_the_maximum_is_not() {
        let Case { mut m, inst } = case(Target::Trn3, DType::BF16);
        m.run(inst.clone()).unwrap();
        assert_eq!(m.f32s(&inst.dst)[4..], [f32::NEG_INFINITY; 4]);
        assert_eq!(m.f32s(inst.reduce_res.as_ref().unwrap()), [3., f32::MIN]);
    }

    #[test]
    fn the_maximum_goes_on_over_tiles() {
        let Case { mut m, inst } = case(Target::Trn2, DType::F32);
        m.run(RangeSelect { reduce_res: None, ..inst.clone() }).unwrap();
        let next = RangeSelect { reduce_cmd: ReduceCmd::Reduce, range_start: 9, ..inst.clone() };
        m.run(next).unwrap();
        assert_eq!(m.f32s(inst.reduce_res.as_ref().unwrap()), [4., f32::MIN]);
    }

    #[test]
    fn broken_rules() {
        let Case { m, inst } = case(Target::Trn1, DType::F32);
        assert!(m.check(inst).unwrap_err().contains("needs trn2 or later (target is trn1)"));
        let Case { mut m, inst } = case(Target::Trn2, DType::F32);
        let ints = m.tensor("i", Space::Sbuf, DType::I32, &[2, 4]);
        let half = m.tensor("h", Space::Sbuf, DType::BF16, &[2, 1]);
        let said = |inst: RangeSelect| m.check(inst).unwrap_err();
        assert!(said(RangeSelect { on_true_tile: ints, ..inst.clone() }).contains("`on_true_tile` is int32"));
        let e = said(RangeSelect { comp_op1: AluOp::NotEqual, ..inst.clone() });
        assert!(e.contains("`comp_op1` is not_equal; it must be equal, less, less_equal, greater"), "{e}");
        assert!(
            said(RangeSelect { bound0: ScalarOperand::View(half), ..inst.clone() }).contains("`bound0` is bfloat16")
        );
        assert!(
            said(RangeSelect { bound1: ScalarOperand::View(inst.dst.clone()), ..inst.clone() })
                .contains("one element per partition")
        );
        let e = said(RangeSelect { range_start: (1 << 24) - 2, ..inst.clone() });
        assert!(e.contains("from 16777214 to 16777217"), "{e}");
        let e = said(RangeSelect { on_false_value: Imm::Int(0), ..inst.clone() });
        assert!(e.contains("`on_false_value` is 0.0, the hardware has -3.4028235e38 only"), "{e}");
        assert!(said(RangeSelect { reduce_op: AluOp::Add, ..inst.clone() }).contains("`reduce_op` is add"));
        assert!(said(RangeSelect { reduce_cmd: ReduceCmd::LoadReduce, ..inst }).contains("is load_reduce"));
    }
}
