//! `nisa.tensor_scalar`: one or two operators between a tile and scalars.

use crate::arch::Arch;
use crate::arg::{Imm, ScalarOperand};
use crate::dtype::DType;
use crate::inst::doubt;
use crate::inst::indirection::columns;
use crate::inst::inert;
use crate::inst::math::alu::{self, Rhs};
use crate::inst::math::integer::{self, Widths};
use crate::inst::result::{Given, ResultTile};
use crate::inst::scalars::{self, Sources};
use crate::inst::stream::{TILE_AND_SCALARS, on, stream};
use crate::inst::values::{Exact, Feeds, Values, makes};
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Stream, Work};

operands! {
    /// `dst = (data <op0> operand0) <op1> operand1`, scalars broadcast along the free dimensions.
    pub struct TensorScalar: "tensor_scalar" on [Vector, Scalar, GpSimd] {
        /// The result.
        [Out Sbuf Psum] dst: View,
        /// Input tile.
        [In Sbuf Psum] data: View,
        /// First operator.
        [Attr] op0: AluOp,
        /// Its scalar: a number or a tile of shape (P, 1). `None` or 0 for a unary operator.
        [In Sbuf Psum] operand0: Option<ScalarOperand>,
        /// The scalar is the left operand of `op0`.
        [Attr] reverse0: bool = false,
        /// Second operator.
        [Attr] op1: Option<AluOp> = None,
        /// Its scalar.
        [In Sbuf Psum] operand1: Option<ScalarOperand> = None,
        /// The scalar is the left operand of `op1`.
        [Attr] reverse1: bool = false,
        /// Engine to use.
        [Attr] engine: Engine = Engine::Unknown,
    }
    numerics: "Arithmetic in fp32, rounded after each operator and once to the dtype of `dst`. Bitwise operators on bit \
        patterns. 32-bit integers throughout, scalars included, with add, subtract and multiply are exact (the manual's \
        address arithmetic, `tensor_scalar_addr`); with a float as scalar, even a whole one, it is fp32.",
    cost: Measured "One pass over the elements of a partition, with one operator as with two. Vector: 16-bit floats in SBUF \
        go faster, PSUM slower.",
    rules: {
        "same-size": "`data` and `dst` have the same number of partitions and of elements per partition",
        "per-partition": "`operand0`, `operand1`: a tile has one element per partition, and as many partitions as the input",
        "operand": "an operator of two operands requires its scalar, and a scalar requires its operator",
        "unary-operand": "the scalar of a unary operator is None or 0",
        "unary-reverse": "a unary operator is not reversed",
        "op-target": "`op0`, `op1`: abs_max and abs_min need trn3",
        "op-mix": "`op0` and `op1` are both bitwise or both arithmetic",
        "bitvec-ints": "bitwise operators take integers only, scalars included",
        "bitvec-width": "a number of a bitwise operator has at most as many bits as the wider of `data` and `dst`",
        "bitvec-engine": "bitwise operators run on the vector engine",
        "operand-float32": "the scalar tile of an arithmetic operator is float32 (int32 or uint32 in address arithmetic)",
        "scalar-engine": "the scalar engine supports multiply followed by add, multiply alone, and add alone",
        "gpsimd-operators": "`engine=gpsimd` is for rsqrt and for address arithmetic",
        "gpsimd-psum": "on GpSimd no operand is in PSUM",
    },
}

impl TensorScalar {
    /// Rules of the selected engine.
    fn validate_engine(&self, context: &Context<'_>) -> Result<(), Violation> {
        if self.engine == Engine::Scalar {
            let legal = matches!((self.op0, self.op1), (AluOp::Multiply, Some(AluOp::Add) | None) | (AluOp::Add, None));
            if !legal {
                return Err(Violation::new(
                    "engine-unsupported",
                    "engine",
                    "on the scalar engine the operators are multiply and add, multiply alone or add alone".to_owned(),
                )
                .help("use the vector engine or nisa.activation"));
            }
        }
        // Manual of 2.26 to 2.33: `nki.isa.engine.gpsimd` is "only allowed for rsqrt".
        let gpsimd = self.ops().any(|op| op == AluOp::Rsqrt) || self.is_address_arithmetic();
        if self.engine == Engine::GpSimd && !gpsimd {
            return Err(Violation::new(
                "engine-unsupported",
                "engine",
                format!("GpSimd runs tensor_scalar only with rsqrt, not with {}", self.op0),
            )
            .help("use the vector engine, or leave `engine` out"));
        }
        let engine = self.engine(context.arch);
        check::gpsimd_psum(engine, &[("data", &self.data), ("dst", &self.dst)])?;
        for (name, view) in self.scalars().filter_map(|(n, o)| o.view().map(|v| (n, v))) {
            check::gpsimd_psum(engine, &[(name, view)])?;
        }
        Ok(())
    }

    /// A number that a bitvec operator takes: an integer, as wide as the tiles. How far to shift is not checked here: see [`doubt`].
    fn validate_bits(&self, op: AluOp, name: &'static str, operand: &ScalarOperand) -> Result<(), Violation> {
        let ScalarOperand::Imm(number) = operand else { return Ok(()) };
        let Some(integer) = number.as_i64() else {
            return Err(Violation::new(
                "bitvec-dtype",
                name,
                format!("`{op}` works on the bits of integers, but `{name}` is a float"),
            ));
        };
        let bits = 8 * self.data.dtype.size().max(self.dst.dtype.size());
        let fits = (-(1_i64 << (bits - 1))..1_i64 << bits).contains(&integer);
        if fits || !matches!(op, AluOp::BitwiseAnd | AluOp::BitwiseOr | AluOp::BitwiseXor) {
            return Ok(());
        }
        let message = format!("`{name}` is {integer}, which has more bits than `data` and `dst` ({bits})");
        Err(Violation::new("operand-value", name, message)
            .help("write a number of at most as many bits as the wider of the tiles"))
    }

    fn ops(&self) -> impl Iterator<Item = AluOp> {
        std::iter::once(self.op0).chain(self.op1)
    }

    fn scalars(&self) -> impl Iterator<Item = (&'static str, &ScalarOperand)> {
        let named = [("operand0", &self.operand0), ("operand1", &self.operand1)];
        named.into_iter().filter_map(|(n, o)| o.as_ref().map(|o| (n, o)))
    }

    /// The pattern that the manual calls address arithmetic (`tensor_scalar_addr`): 32-bit integers throughout and only add,
    /// subtract and multiply. It is computed in integers, so that addresses beyond 2^24 stay exact. With a float, even a whole one, or an integer
    /// of more than 32 bits, it is arithmetic in fp32 ("operand0 ... must be float32", tensor_scalar reference of 2.32).
    fn is_address_arithmetic(&self) -> bool {
        let whole = |o: &ScalarOperand| match o {
            ScalarOperand::Imm(Imm::Int(i)) => i32::try_from(*i).is_ok() || u32::try_from(*i).is_ok(),
            ScalarOperand::Imm(Imm::Float(_)) => false,
            ScalarOperand::Register(_) => true,
            ScalarOperand::View(v) => matches!(v.dtype, DType::I32 | DType::U32),
        };
        check::all_int32([&self.dst, &self.data].into_iter())
            && self.ops().all(|op| matches!(op, AluOp::Add | AluOp::Subtract | AluOp::Multiply))
            && self.scalars().all(|(_, o)| whole(o))
    }
}

impl Instruction for TensorScalar {
    const PLACING: Placing = Placing::InPlace;
    const INDIRECT: &'static [&'static str] = &["dst", "data"];

    /// Reverse square root runs on GpSimd (manual, "NKI Engine Selection"), all else on the vector engine.
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("data")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        match self.engine {
            Engine::Unknown => {
                let psum = check::in_psum(&self.dst)
                    || check::in_psum(&self.data)
                    || self.scalars().any(|(_, o)| o.view().is_some_and(check::in_psum));
                let rsqrt = self.ops().any(|op| op == AluOp::Rsqrt);
                if rsqrt && !psum { Engine::GpSimd } else { Engine::Vector }
            }
            engine => engine,
        }
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        if self.is_address_arithmetic()
            && let Some((name, _)) =
                [("dst", &self.dst), ("data", &self.data)].into_iter().find(|(_, v)| columns(v).is_some())
        {
            return Err(Violation::new(
                "indirect-view",
                name,
                format!("`{name}` is indirect, which address arithmetic (32-bit integers throughout) does not take"),
            ));
        }
        check::engine_allowed(self.engine, &Self::SCHEMA, context.arch)?;
        check::same_shape(("data", &self.data), ("dst", &self.dst))?;
        let stages = [
            ("op0", "operand0", Some(self.op0), &self.operand0, self.reverse0),
            ("op1", "operand1", self.op1, &self.operand1, self.reverse1),
        ];
        for (op_name, name, op, operand, reverse) in stages {
            match (op, operand) {
                (Some(op), Some(operand)) => {
                    check::op_on_target(op_name, op, context.arch)?;
                    check::scalar_of((op_name, op), name, Some(operand))?;
                    check::scalar_operand(("data", &self.data), name, operand)?;
                    if op.is_bitvec() {
                        self.validate_bits(op, name, operand)?;
                    }
                }
                (Some(op), None) => check::scalar_of((op_name, op), name, None)?,
                (None, Some(_)) => {
                    return Err(Violation::new(
                        "missing-operand",
                        op_name,
                        format!("`{name}` is given but not `{op_name}`"),
                    ));
                }
                (None, None) => {}
            }
            if reverse && op.is_some_and(|op| op.is_unary() && op != AluOp::Bypass) {
                return Err(Violation::new(
                    "op-unsupported",
                    op_name,
                    "a unary operator has no operands to reverse".to_owned(),
                ));
            }
        }
        if let Some(op1) = self.op1
            && op1.is_bitvec() != self.op0.is_bitvec()
            && ![self.op0, op1].contains(&AluOp::Bypass)
        {
            return Err(Violation::new(
                "op-mix",
                "op1",
                format!("`{}` and `{op1}`: one works on bits, the other on numbers", self.op0),
            )
            .help("use two instructions"));
        }
        for op in self.ops() {
            check::bitvec_dtypes(op, &[("data", &self.data), ("dst", &self.dst)])?;
            for (name, view) in self.scalars().filter_map(|(n, o)| o.view().map(|v| (n, v))) {
                check::bitvec_dtypes(op, &[(name, view)])?;
            }
            if op.is_bitvec() && !matches!(self.engine, Engine::Unknown | Engine::Vector) {
                return Err(Violation::new(
                    "engine-unsupported",
                    "engine",
                    format!("`{op}` runs on vector only, not on {}", self.engine),
                ));
            }
        }
        let bits = self.ops().any(AluOp::is_bitvec);
        for (name, view) in self.scalars().filter_map(|(n, o)| o.view().map(|v| (n, v))) {
            if !bits && view.dtype != DType::F32 && !self.is_address_arithmetic() {
                return Err(Violation::new(
                    "operand-dtype",
                    name,
                    format!("`{name}` is {}, with arithmetic operators it must be float32", view.dtype),
                )
                .help("int32 and uint32 are taken if all tiles are 32-bit integers and the operators add, subtract or multiply"));
            }
        }
        self.validate_engine(context)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// Bitvec operators and address arithmetic in exact integers, all else in fp32.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let (op0, op1, reverse0, reverse1) = (self.op0, self.op1, self.reverse0, self.reverse1);
        if self.ops().any(AluOp::is_bitvec) || self.is_address_arithmetic() {
            let widths = Widths::of(self.data.dtype, self.dst.dtype);
            // Vectors are numbers, as immediates are.
            let data = &widths.patterns(&[&self.data])[0];
            let mut sources = Sources::from_slice(&[data]);
            let s0 = scalars::scalar_i64(machine, self.operand0.as_ref(), &mut sources);
            let s1 = scalars::scalar_i64(machine, self.operand1.as_ref(), &mut sources);
            return machine.map_i64(&[&self.dst], &sources, &|_, ins, outs| {
                integer::apply(op0, reverse0, widths, ins[0], Rhs::One(s0.get(ins)), outs[0]);
                if let Some(op1) = op1 {
                    integer::apply_in_place(op1, reverse1, widths, outs[0], Rhs::One(s1.get(ins)));
                }
            });
        }
        let mut sources = Sources::from_slice(&[&self.data]);
        let s0 = scalars::scalar_f32(machine, self.operand0.as_ref(), &mut sources);
        let s1 = scalars::scalar_f32(machine, self.operand1.as_ref(), &mut sources);
        let row = move |_: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            alu::apply(op0, reverse0, ins[0], Rhs::One(s0.get(ins)), outs[0]);
            if let Some(op1) = op1 {
                alu::apply_in_place(op1, reverse1, outs[0], Rhs::One(s1.get(ins)));
            }
        };
        machine.map_f32(&[&self.dst], &sources, Box::new(row), None)
    }

    fn inert(&self) -> Option<Violation> {
        inert::first([
            inert::reversed(("reverse0", self.reverse0), ("op0", Some(self.op0))),
            inert::reversed(("reverse1", self.reverse1), ("op1", self.op1)),
            inert::unused_scalar(("operand0", self.operand0.as_ref()), ("op0", Some(self.op0))),
            inert::unused_scalar(("operand1", self.operand1.as_ref()), ("op1", self.op1)),
        ])
    }

    fn doubt(&self) -> Option<Violation> {
        let last = self.op1.filter(|op| *op != AluOp::Bypass).unwrap_or(self.op0);
        let first = ((self.op0, self.reverse0), ("operand0", self.operand0.as_ref()));
        let second = self.op1.map(|op1| ((op1, self.reverse1), ("operand1", self.operand1.as_ref())));
        let bits = 8 * self.data.dtype.size().max(self.dst.dtype.size());
        doubt::quotients_as_integers(last, &[("data", &self.data)], &self.dst)
            .or_else(|| doubt::inexact_comparison(first.0, first.1, &self.data))
            .or_else(|| {
                [Some(first), second]
                    .into_iter()
                    .flatten()
                    .find_map(|(op, scalar)| doubt::shift_out_of_range(op, scalar, bits))
            })
    }

    fn values(&self) -> Values<'_> {
        let steps = [(Some(self.op0), &self.operand0, self.reverse0), (self.op1, &self.operand1, self.reverse1)];
        let steps = steps.into_iter().filter_map(|(op, operand, reverse)| Some((op?, operand.as_ref(), reverse)));
        Values::computed(Feeds::Elements)
            .arising(self.ops().any(makes))
            .with_numbers(self.operand0.iter().chain(&self.operand1))
            .with_exact(Exact::Scalars(steps.collect()))
    }

    fn work(&self, context: &Context<'_>) -> Work {
        // A per-partition scalar is read before the first element.
        let stream = stream(TILE_AND_SCALARS, &[&self.data], &[&self.dst]);
        let scalar_reads = scalars::reads(self.scalars().map(|(_, o)| o));
        on(self.engine(context.arch), Stream { scalar_reads, ..stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::ids::RegId;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn inst(dst: &View, data: &View, op0: AluOp, operand0: ScalarOperand) -> TensorScalar {
        TensorScalar {
            dst: dst.clone(),
            data: data.clone(),
            op0,
            operand0: Some(operand0),
            reverse0: false,
            op1: None,
            operand1: None,
            reverse1: false,
            engine: Engine::Unknown,
        }
    }

    fn float(x: f64) -> ScalarOperand {
        ScalarOperand::Imm(Imm::Float(x))
    }

    fn int(x: i64) -> ScalarOperand {
        ScalarOperand::Imm(Imm::Int(x))
    }

    #[test]
    fn two_operators_with_vectors_and_reversal() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let v = m.tensor_f32("v", Space::Psum, DType::F32, &[2, 1], &[10.0, 20.0]);
        let d = m.tensor("d", Space::Sbuf, DType::F32, &[2, 2]);
        let mut i = inst(&d, &a, AluOp::Subtract, ScalarOperand::View(v));
        m.run(i.clone()).unwrap();
        assert_eq!(m.f32s(&d), [-9.0, -8.0, -17.0, -16.0]);
        i.reverse0 = true;
        i.op1 = Some(AluOp::Divide);
        i.operand1 = Some(float(18.0));
        i.reverse1 = true;
        m.run(i).unwrap();
        assert_eq!(m.f32s(&d), [2.0, 2.25, 18.0 / 17.0, 1.125]);
    }

    #[test]
    fn comparisons_unary_operators_and_registers() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::BF16, &[1, 4], &[1.0, 4.0, 2.0, 16.0]);
        let d = m.tensor("d", Space::Sbuf, DType::U8, &[1, 4]);
        m.set_register(RegId(3), 2);
        m.run(inst(&d, &a, AluOp::GreaterEqual, ScalarOperand::Register(RegId(3)))).unwrap();
        assert_eq!(m.f32s(&d), [0.0, 1.0, 1.0, 1.0]);
        let r = m.tensor("r", Space::Sbuf, DType::F32, &[1, 4]);
        let mut i = inst(&r, &a, AluOp::Rsqrt, int(0));
        assert_eq!(i.engine(m.context().arch), Engine::GpSimd);
        i.operand0 = None;
        m.run(i).unwrap();
        assert_eq!(m.f32s(&r), [1.0, 0.5, 1.0 / 2f32.sqrt(), 0.25]);
    }

    #[test]
    fn narrow_operands_are_extended_by_zeros_and_wide_results_keep_all_bits() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_bits("a", Space::Sbuf, DType::I8, &[1, 3], &[0xff, 0x80, 5]);
        let d = m.tensor("d", Space::Sbuf, DType::I32, &[1, 3]);
        let mut bits = |op0, by0, op1: Option<(AluOp, i64)>| {
            let mut i = inst(&d, &a, op0, int(by0));
            i.op1 = op1.map(|(op, _)| op);
            i.operand1 = op1.map(|(_, by)| int(by));
            m.run(i).unwrap();
            m.bits(&d)
        };
        assert_eq!(bits(AluOp::BitwiseOr, 0, None), [255, 128, 5]);
        assert_eq!(bits(AluOp::LeftShift, 10, None), [255 << 10, 128 << 10, 5 << 10]);
        assert_eq!(bits(AluOp::LeftShift, 6, Some((AluOp::LeftShift, 4))), [255 << 10, 128 << 10, 5 << 10]);
        assert_eq!(bits(AluOp::RightShift, 1, None), [127, 64, 2]);
        let minus_one = u32::MAX;
        assert_eq!(bits(AluOp::ArithmeticRightShift, 7, None), [minus_one, minus_one, 0]);
    }

    #[test]
    fn bits_and_addresses_are_exact() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_bits("a", Space::Sbuf, DType::I32, &[1, 2], &[16_777_217, 0xffff_fff0]);
        let d = m.tensor("d", Space::Sbuf, DType::I32, &[1, 2]);
        let mut i = inst(&d, &a, AluOp::RightShift, int(4));
        i.op1 = Some(AluOp::BitwiseOr);
        i.operand1 = Some(int(1 << 30));
        m.run(i).unwrap();
        assert_eq!(m.bits(&d), [0x4010_0000, 0x4fff_ffff]);
        m.run(inst(&d, &a, AluOp::Add, int(2))).unwrap();
        assert_eq!(m.bits(&d), [16_777_219, 0xffff_fff2]);
        m.run(inst(&d, &a, AluOp::Max, int(2))).unwrap();
        assert_eq!(m.bits(&d), [16_777_216, 2], "other arithmetic goes through fp32");
        m.run(inst(&d, &a, AluOp::Add, float(2.0))).unwrap();
        assert_eq!(m.bits(&d), [16_777_218, 0xffff_fff2], "so does arithmetic with a float");
        m.run(inst(&d, &a, AluOp::Add, int(1 << 33))).unwrap();
        assert_eq!(m.bits(&d), [i32::MAX as u32; 2], "and with more than 32 bits");
    }

    #[test]
    fn rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let s = m.tensor("s", Space::Sbuf, DType::F32, &[4, 8]);
        let i32s = m.tensor("i", Space::Sbuf, DType::I32, &[4, 8]);
        let v = m.tensor("v", Space::Sbuf, DType::F32, &[4, 2]);
        let error = |i: TensorScalar| m.check(i).unwrap_err();
        assert!(error(inst(&s, &s, AluOp::Add, ScalarOperand::View(v))).contains("(4, 1)"));
        assert!(error(inst(&s, &s, AluOp::BitwiseAnd, int(1))).contains("float32"));
        assert!(error(inst(&i32s, &i32s, AluOp::BitwiseAnd, float(0.5))).contains("is a float"));
        assert!(error(inst(&i32s, &i32s, AluOp::BitwiseOr, int(1 << 32))).contains("more bits"));
        assert!(m.check(inst(&i32s, &i32s, AluOp::BitwiseOr, int((1 << 32) - 1))).is_ok());
        let mut mixed = inst(&i32s, &i32s, AluOp::BitwiseAnd, int(1));
        mixed.op1 = Some(AluOp::Add);
        assert!(error(mixed.clone()).contains("operand1"));
        mixed.operand1 = Some(int(1));
        assert!(error(mixed).contains("one works on bits, the other on numbers"));
        let mut on_scalar = inst(&s, &s, AluOp::Max, int(0));
        on_scalar.engine = Engine::Scalar;
        assert!(error(on_scalar.clone()).contains("multiply and add"));
        on_scalar.op0 = AluOp::Multiply;
        on_scalar.op1 = Some(AluOp::Add);
        on_scalar.operand1 = Some(float(1.0));
        assert!(m.check(on_scalar).is_ok());
        let mut missing = inst(&s, &s, AluOp::Add, int(0));
        missing.operand0 = None;
        assert!(error(missing).contains("needs `operand0`"));
    }
}
