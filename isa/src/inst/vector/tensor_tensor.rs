//! `nisa.tensor_tensor`: element-wise operation of two tiles.

use crate::arch::Arch;
use crate::inst::doubt;
use crate::inst::math::alu::{self, Rhs};
use crate::inst::math::integer::{self, Widths};
use crate::inst::result::{Given, ResultTile};
use crate::inst::stream::{modes, on, stream, two_tiles};
use crate::inst::values::{Exact, Feeds, Values, makes};
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// Element-wise `dst = data1 <op> data2` of two tiles of equal size.
    pub struct TensorTensor: "tensor_tensor" on [Vector, GpSimd] {
        /// The result.
        [Out Sbuf Psum] dst: View,
        /// Left operand.
        [In Sbuf Psum] data1: View,
        /// Right operand.
        [In Sbuf Psum] data2: View,
        /// Operator.
        [Attr] op: AluOp,
        /// Engine to use.
        [Attr] engine: Engine = Engine::Unknown,
    }
    numerics: "Arithmetic in fp32, rounded once to the dtype of `dst`. On GpSimd 32-bit integers throughout are exact. \
        Bitwise operators on bit patterns.",
    cost: Measured "One pass over the elements of a partition with two tiles read. Vector: 16-bit floats in SBUF with add, \
        subtract, multiply or maximum go twice as fast. On trn1, products of other types take twice as long.",
    rules: {
        "same-size": "`data1`, `data2` and `dst` have the same number of partitions and of elements per partition",
        "binary": "`op` is an operator of two operands",
        "op-target": "`op`: abs_max and abs_min need trn3",
        "bitvec-ints": "bitwise operators take integers only",
        "both-psum": "`data1` and `data2` are not both in PSUM",
        "same-start": "`data1` and `data2` in SBUF start on the same partition",
        "power-engine": "power runs on GpSimd",
        "gpsimd-psum": "on GpSimd no operand is in PSUM",
    },
}

impl TensorTensor {
    fn views(&self) -> [check::Named<'_>; 3] {
        [("data1", &self.data1), ("data2", &self.data2), ("dst", &self.dst)]
    }
}

impl Instruction for TensorTensor {
    const PLACING: Placing = Placing::InPlace;
    const INDIRECT: &'static [&'static str] = &["dst", "data1"];

    /// Power runs on GpSimd, and so does arithmetic on 32-bit integers outside PSUM; all else on the vector engine.
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        let (a, b) = (given.view("data1")?, given.view("data2")?);
        Some(ResultTile { dtype: a.dtype.promote(b.dtype), ..ResultTile::like(a) })
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        let views = self.views();
        match self.engine {
            Engine::Unknown if self.op == AluOp::Power => Engine::GpSimd,
            Engine::Unknown
                if !self.op.is_bitvec()
                    && check::all_int32(views.iter().map(|v| v.1))
                    && !views.iter().any(|v| check::in_psum(v.1)) =>
            {
                Engine::GpSimd
            }
            Engine::Unknown => Engine::Vector,
            engine => engine,
        }
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::engine_allowed(self.engine, &Self::SCHEMA, context.arch)?;
        check::same_shape(("dst", &self.dst), ("data1", &self.data1))?;
        check::same_shape(("dst", &self.dst), ("data2", &self.data2))?;
        check::op_on_target("op", self.op, context.arch)?;
        if self.op.is_unary() {
            return Err(Violation::new("op-unsupported", "op", format!("`{}` is not a binary operator", self.op))
                .help("use nisa.tensor_scalar or nisa.activation"));
        }
        check::bitvec_dtypes(self.op, &self.views())?;
        check::not_both_psum(("data1", &self.data1), ("data2", &self.data2))?;
        check::same_start(context, ("data1", &self.data1), ("data2", &self.data2))?;
        if self.op == AluOp::Power && self.engine == Engine::Vector {
            return Err(Violation::new(
                "engine-unsupported",
                "engine",
                "`power` runs on the GpSimd engine, not on vector",
            )
            .help("leave `engine` out"));
        }
        check::gpsimd_psum(self.engine(context.arch), &self.views())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// Bitvec operators work on bit patterns. Arithmetic goes through fp32, except on GpSimd with 32-bit integers only, which is
    /// exact (manual, `tensor_tensor`).
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let op = self.op;
        let native =
            self.engine(machine.context().arch) == Engine::GpSimd && check::all_int32(self.views().iter().map(|v| v.1));
        if op.is_bitvec() || native {
            let widths = Widths::of(self.data1.dtype, self.dst.dtype);
            let patterns = widths.patterns(&[&self.data1, &self.data2]);
            return machine.map_i64(&[&self.dst], &[&patterns[0], &patterns[1]], &|_, ins, outs| {
                integer::apply(op, false, widths, ins[0], Rhs::Row(ins[1]), outs[0]);
            });
        }
        let row = move |_: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            alu::apply(op, false, ins[0], Rhs::Row(ins[1]), outs[0]);
        };
        machine.map_f32(&[&self.dst], &[&self.data1, &self.data2], Box::new(row), None)
    }

    fn doubt(&self) -> Option<Violation> {
        doubt::quotients_as_integers(self.op, &[("data1", &self.data1), ("data2", &self.data2)], &self.dst)
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Elements).arising(makes(self.op)).with_exact(Exact::Tiles(self.op))
    }

    fn work(&self, context: &Context<'_>) -> Work {
        let cycles = two_tiles(self.op.is_simple(), self.op == AluOp::Multiply);
        let stream = stream(modes(cycles, "tensor_tensor"), &[&self.data1, &self.data2], &[&self.dst]);
        on(self.engine(context.arch), stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn inst(dst: &View, data1: &View, data2: &View, op: AluOp) -> TensorTensor {
        TensorTensor { dst: dst.clone(), data1: data1.clone(), data2: data2.clone(), op, engine: Engine::Unknown }
    }

    #[test]
    fn rounds_to_the_destination() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let b = m.tensor_f32("b", Space::Psum, DType::F32, &[2, 2], &[0.001, 0.5, -3.0, 0.01]);
        let d = m.tensor("d", Space::Sbuf, DType::BF16, &[2, 2]);
        m.run(inst(&d, &a, &b, AluOp::Add)).unwrap();
        assert_eq!(m.f32s(&d), [1.0, 2.5, 0.0, 4.0]);
    }

    #[test]
    fn integers_are_exact_on_gpsimd_and_rounded_on_vector() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_bits("a", Space::Sbuf, DType::I32, &[1, 1], &[16_777_217]);
        let d = m.tensor("d", Space::Sbuf, DType::I32, &[1, 1]);
        let mut add = inst(&d, &a, &a, AluOp::Multiply);
        let context = m.context();
        assert_eq!(add.engine(context.arch), Engine::GpSimd);
        m.run(add.clone()).unwrap();
        assert_eq!(m.bits(&d), [16_777_217u32.wrapping_mul(16_777_217)]);
        add.op = AluOp::Subtract;
        add.engine = Engine::Vector;
        let one = m.tensor_bits("one", Space::Sbuf, DType::I32, &[1, 1], &[16_777_216]);
        add.data2 = one;
        m.run(add).unwrap();
        assert_eq!(m.bits(&d), [0], "fp32 does not tell 2^24 + 1 from 2^24");
    }

    #[test]
    fn quotients_that_are_stored_as_integers_are_doubtful() {
        let mut m = TestMachine::new(Target::Trn2);
        let int = m.tensor("i", Space::Sbuf, DType::I32, &[4, 8]);
        let float = m.tensor("f", Space::Sbuf, DType::F32, &[4, 8]);
        let doubt = |dst: &View, x: &View, op| inst(dst, x, &int, op).doubt().map(|v| v.id);
        assert_eq!(doubt(&int, &int, AluOp::Divide), Some("integer-function"));
        assert_eq!(doubt(&float, &int, AluOp::Divide), None);
        assert_eq!(doubt(&int, &float, AluOp::Divide), None);
        assert_eq!(doubt(&int, &int, AluOp::Multiply), None);
    }

    #[test]
    fn a_column_is_not_repeated() {
        let mut m = TestMachine::new(Target::Trn2);
        let (whole, column) =
            (m.tensor("w", Space::Sbuf, DType::F32, &[4, 8]), m.tensor("c", Space::Sbuf, DType::F32, &[4, 1]));
        let help = |dst: &View, x: &View| {
            inst(dst, &whole, x, AluOp::Add).validate(&m.context()).map_or_else(|v| v.help, |()| String::new())
        };
        assert!(help(&whole, &column).contains("`.broadcast(1, 8)`"), "{}", help(&whole, &column));
        assert_eq!(help(&column, &whole), "", "a result cannot be repeated");
    }

    #[test]
    fn bit_operators_take_patterns() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_bits("a", Space::Sbuf, DType::U8, &[1, 3], &[0xf0, 0x0f, 0x80]);
        let b = m.tensor_bits("b", Space::Sbuf, DType::U8, &[1, 3], &[0xff, 0x3c, 1]);
        let d = m.tensor("d", Space::Sbuf, DType::U8, &[1, 3]);
        m.run(inst(&d, &a, &b, AluOp::BitwiseXor)).unwrap();
        assert_eq!(m.bits(&d), [0x0f, 0x33, 0x81]);
        m.run(inst(&d, &a, &b, AluOp::LeftShift)).unwrap();
        assert_eq!(m.bits(&d), [0, 0, 0], "shifted beyond 8 bits, or out of them");
    }

    #[test]
    fn rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let s = m.tensor("s", Space::Sbuf, DType::F32, &[4, 8]);
        let p = m.tensor("p", Space::Psum, DType::F32, &[4, 8]);
        let short = m.tensor("short", Space::Sbuf, DType::F32, &[4, 7]);
        let narrow = m.tensor("narrow", Space::Sbuf, DType::F32, &[3, 8]);
        let error = |i: TensorTensor| m.check(i).unwrap_err();
        assert!(error(inst(&s, &p, &p, AluOp::Add)).contains("both in PSUM"));
        assert!(error(inst(&s, &s, &short, AluOp::Add)).contains("7 elements per partition"));
        assert!(error(inst(&s, &narrow, &s, AluOp::Add)).contains("3 partitions"));
        assert!(error(inst(&s, &s, &s, AluOp::BitwiseAnd)).contains("float32"));
        assert!(error(inst(&s, &s, &s, AluOp::Rsqrt)).contains("binary"));
        assert!(error(inst(&s, &s, &p, AluOp::Power)).contains("GpSimd"));
        assert!(error(inst(&s, &s, &s, AluOp::AbsMax)).contains("trn3"));
        assert!(m.check(inst(&p, &s, &p, AluOp::Add)).is_ok());
        let mut on_scalar = inst(&s, &s, &s, AluOp::Add);
        on_scalar.engine = Engine::Scalar;
        assert!(error(on_scalar).contains("vector or gpsimd"));
    }
}
