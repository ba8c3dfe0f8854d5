//! `nisa.exponential`: the exponential function on the vector engine, with the sum that softmax needs.

use crate::arch::Arch;
use crate::arg::{Imm, ScalarOperand};
use crate::inst::accumulators::{self, Reduction};
use crate::inst::doubt;
use crate::inst::math::activation::{self, ActFn};
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
    /// `dst = exp(src - max_value)`, optionally summed along the free dimensions (trn3 and later).
    pub struct Exponential: "exponential" on [Vector from Trn3] {
        /// The result.
        [Out Sbuf Psum; F8E4M3 F8E5M2 F16 BF16 F32 TF32 I8 I16 I32 U8 U16] dst: View,
        /// Input tile of at most 4 dimensions.
        [In Sbuf Psum; F8E4M3 F8E5M2 F16 BF16 F32 I8 I16 I32 U8 U16 U32] src: View,
        /// Subtracted first: a number or a float32 tile of shape (P, 1).
        [In Sbuf Psum; F32] max_value: ScalarOperand = ScalarOperand::Imm(Imm::Float(0.0)),
        /// The sum, shape (P, 1); `None` leaves it in the accumulators.
        [Out Sbuf Psum; F16 BF16 F32 TF32 F8E4M3 F8E5M2] reduce_res: Option<View> = None,
        /// What happens to the accumulators: idle, reset_reduce, reduce or load_reduce.
        [Attr] reduce_cmd: ReduceCmd = ReduceCmd::Idle,
        /// What load_reduce puts into the accumulators: a number or a float32 tile of shape (P, 1).
        [In Sbuf Psum; F32] reduce_init: ScalarOperand = ScalarOperand::Imm(Imm::Float(0.0)),
    }
    instead: "use nisa.activation with op=nl.exp and bias=-max",
    numerics: "fp32: the difference is rounded, then its exponential; the sum sees the fp32 result before it is rounded \
        once to the dtype of `dst`. With idle the accumulators are unknown afterwards (NaN here).",
    cost: Documented "A step for four elements of a partition; reading the accumulators adds 64.",
    rules: {
        "same-size": "`src` and `dst` have the same number of partitions and of elements per partition",
        "rank": "`src` and `dst` have at most 4 dimensions",
        "per-partition": "`max_value`, `reduce_res`, `reduce_init`: a tile has one element per partition, and as many partitions \
            as the input",
        "reduce-cmd": "`reduce_cmd` is idle, reset_reduce, reduce or load_reduce",
        "result-idle": "idle takes no `reduce_res`",
        "init": "`reduce_init` is 0 unless `reduce_cmd` is load_reduce",
    },
}

const CMDS: [ReduceCmd; 4] = [ReduceCmd::Idle, ReduceCmd::ResetReduce, ReduceCmd::Reduce, ReduceCmd::LoadReduce];

impl Exponential {
    fn reduction(&self) -> Reduction<'_> {
        Reduction {
            state: accumulators::VECTOR,
            op: AluOp::Add,
            cmd: self.reduce_cmd,
            init: Some(&self.reduce_init),
            result: self.reduce_res.as_ref(),
            negate: false,
            idle_clobbers: true,
        }
    }
}

impl Instruction for Exponential {
    const PLACING: Placing = Placing::Fixed;
    const INDIRECT: &'static [&'static str] = &["dst", "src"];

    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("src")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        let src = ("src", &self.src);
        check::same_shape(src, ("dst", &self.dst))?;
        check::rank("src", &self.src, 4)?;
        check::rank("dst", &self.dst, 4)?;
        check::scalar_operand(src, "max_value", &self.max_value)?;
        self.reduction().validate(src, &[AluOp::Add], &CMDS)?;
        let unset = matches!(&self.reduce_init, ScalarOperand::Imm(x) if x.as_f32() == 0.0);
        if self.reduce_cmd != ReduceCmd::LoadReduce && !unset {
            return Err(Violation::new(
                "operand-value",
                "reduce_init",
                format!("`reduce_init` is set, but `reduce_cmd` is {}; only load_reduce loads it", self.reduce_cmd),
            ));
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::from_slice(&[&self.src]);
        let max = scalars::scalar_f32(machine, Some(&self.max_value), &mut sources);
        self.reduction().run(machine, &self.dst, sources, move |_, ins, out| {
            alu::apply(AluOp::Subtract, false, ins[0], Rhs::One(max.get(ins)), out);
            activation::apply(ActFn::Exp, 0.0, out);
        })
    }

    fn doubt(&self) -> Option<Violation> {
        doubt::fractions_as_integers(ActFn::Exp, None, ("src", &self.src), &self.dst)
    }

    fn accumulators(&self) -> Option<AccumulatorUse> {
        Some(self.reduction().accumulators())
    }

    fn sets_engine_state(&self) -> bool {
        self.reduction().sets_engine_state()
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Elements)
            .reduced(AluOp::Add, self.reduce_cmd)
            .with_numbers([&self.max_value, &self.reduce_init])
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let stream = stream(rows("exponential", "typical"), &[&self.src], &[&self.dst]);
        on(
            Engine::Vector,
            Stream {
                scalar_reads: scalars::reads([&self.max_value, &self.reduce_init]),
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

    fn exponential(dst: &View, src: &View) -> Exponential {
        Exponential {
            dst: dst.clone(),
            src: src.clone(),
            max_value: ScalarOperand::Imm(Imm::Float(0.0)),
            reduce_res: None,
            reduce_cmd: ReduceCmd::Idle,
            reduce_init: ScalarOperand::Imm(Imm::Float(0.0)),
        }
    }

    #[test]
    fn subtracts_and_sums() {
        let mut m = TestMachine::new(Target::Trn3);
        let src = m.tensor_f32("s", Space::Psum, DType::F32, &[2, 2], &[3., 3., 7., f32::NEG_INFINITY]);
        let max = m.tensor_f32("m", Space::Sbuf, DType::F32, &[2, 1], &[3., 7.]);
        let dst = m.tensor("d", Space::Sbuf, DType::BF16, &[2, 2]);
        let res = m.tensor("r", Space::Sbuf, DType::F32, &[2, 1]);
        let inst = Exponential {
            max_value: ScalarOperand::View(max),
            reduce_cmd: ReduceCmd::ResetReduce,
            reduce_res: Some(res.clone()),
            ..exponential(&dst, &src)
        };
        m.run(inst.clone()).unwrap();
        assert_eq!((m.f32s(&dst), m.f32s(&res)), (vec![1., 1., 1., 0.], vec![2., 1.]));
        m.run(Exponential { reduce_cmd: ReduceCmd::Reduce, ..inst.clone() }).unwrap();
        assert_eq!(m.f32s(&res), [4., 2.]);
        let reduce_init = ScalarOperand::Imm(Imm::Float(0.5));
        m.run(Exponential { reduce_cmd: ReduceCmd::LoadReduce, reduce_init, ..inst }).unwrap();
        assert_eq!(m.f32s(&res), [2.5, 1.5]);
    }

    #[test]
    fn broken_rules() {
        for target in [Target::Trn1, Target::Trn2] {
            let mut m = TestMachine::new(target);
            let tile = m.tensor("t", Space::Sbuf, DType::F32, &[2, 2]);
            assert!(m.check(exponential(&tile, &tile)).unwrap_err().contains("needs trn3"));
        }
        let mut m = TestMachine::new(Target::Trn3);
        let tile = m.tensor("t", Space::Sbuf, DType::F32, &[2, 2]);
        let ints = m.tensor("i", Space::Sbuf, DType::U32, &[2, 2]);
        let half = m.tensor("h", Space::Sbuf, DType::BF16, &[2, 1]);
        let deep = m.tensor("p", Space::Sbuf, DType::F32, &[2, 1, 1, 1, 2]);
        let base = exponential(&tile, &tile);
        m.check(exponential(&tile, &ints)).unwrap();
        let said = |inst: Exponential| m.check(inst).unwrap_err();
        assert!(said(exponential(&ints, &tile)).contains("`dst` is uint32"));
        assert!(said(exponential(&tile, &deep)).contains("`src` has 5 dimensions"));
        let e = said(Exponential { max_value: ScalarOperand::View(half.clone()), ..base.clone() });
        assert!(e.contains("`max_value` is bfloat16; it must be float32"), "{e}");
        assert!(said(Exponential { reduce_cmd: ReduceCmd::Reset, ..base.clone() }).contains("`reduce_cmd` is reset"));
        let reduce_init = ScalarOperand::Imm(Imm::Float(1.0));
        assert!(said(Exponential { reduce_init, ..base.clone() }).contains("`reduce_cmd` is idle; only load_reduce"));
        assert!(said(Exponential { reduce_res: Some(half), ..base }).contains("nothing is accumulated"));
    }
}
