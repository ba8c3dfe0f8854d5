//! `nisa.affine_select`: selects by an affine function of the position, as a causal mask does.

use crate::arch::Arch;
use crate::arg::{Imm, Pattern, RegisterOrInt};
use crate::dtype::round_to_int;
use crate::inst::gpsimd::Affine;
use crate::inst::math::simd::{Kernel, dispatch};
use crate::inst::result::{Given, ResultTile};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing, check, stream};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Law, Work};

operands! {
    /// Writes `on_true_tile` where `affine <cmp_op> 0` holds and `on_false_value` elsewhere; the affine value of an element is
    /// `offset + partition * channel_multiplier + sum of index * step` in 32-bit integers.
    pub struct AffineSelect: "affine_select" on [GpSimd] {
        /// The result.
        [Out Sbuf] dst: View,
        /// Up to four `[step, count]` pairs, outermost first; the counts multiply to the elements per partition.
        [Attr] pattern: Pattern,
        /// Multiplies the partition's number, counted from `dst`'s first (int32).
        [Attr] channel_multiplier: i64,
        /// Taken where the comparison holds.
        [In Sbuf] on_true_tile: View,
        /// Taken elsewhere (float32).
        [Attr] on_false_value: Imm,
        /// A comparison: equal, not_equal, greater, greater_equal, less or less_equal.
        [Attr] cmp_op: AluOp = AluOp::Equal,
        /// Added to every affine value (int32).
        [In] offset: RegisterOrInt = RegisterOrInt::Int(0),
    }
    numerics: "The affine value is a wrapping 32-bit integer. Selected integers of the dtype of `dst` stay exact; all \
        else is converted through fp32.",
    cost: Documented "150 + N steps for N elements of a partition.",
    rules: {
        "same-size": "`on_true_tile` and `dst` have the same number of partitions and of elements per partition",
        "comparison": "`cmp_op` is equal, not_equal, greater, greater_equal, less or less_equal",
        "pattern-dims": "`pattern` has 1 to 4 dimensions",
        "int32": "`offset`, `channel_multiplier` and the steps of `pattern` fit 32 bits",
        "pattern-count": "the counts of `pattern` multiply to the elements per partition",
    },
}

/// The result of a comparison with 0 for values below, at and above it; `None` if the operator is no comparison.
fn comparison(op: AluOp) -> Option<[bool; 3]> {
    Some(match op {
        AluOp::Equal => [false, true, false],
        AluOp::NotEqual => [true, false, true],
        AluOp::Greater => [false, false, true],
        AluOp::GreaterEqual => [false, true, true],
        AluOp::Less => [true, false, false],
        AluOp::LessEqual => [true, true, false],
        _ => return None,
    })
}

/// A row: an element of `x` where the comparison of the affine value holds, else `otherwise`.
struct Select<'a, T> {
    affine: &'a Affine,
    partition: usize,
    holds: [bool; 3],
    x: &'a [T],
    otherwise: T,
    out: &'a mut [T],
}

impl<T: Copy> Kernel for Select<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Select { affine, partition, holds: [below, at, above], x, otherwise, out } = self;
        for ((o, &x), v) in out.iter_mut().zip(x).zip(affine.row(partition)) {
            let holds = ((v < 0) & below) | ((v == 0) & at) | ((v > 0) & above);
            *o = if holds { x } else { otherwise };
        }
    }
}

impl AffineSelect {
    /// `on_false_value` in an integer `dst`: "must be float32, regardless of the input/output tile data types" (manual), so it is rounded and clipped
    /// like all results. An integer that fits stays exact.
    fn integer_otherwise(&self) -> i64 {
        let dtype = self.dst.dtype;
        match (self.on_false_value, dtype.int_range()) {
            (Imm::Int(i), Some((low, high))) if (low..=high).contains(&i) => i,
            (value, _) => round_to_int(dtype, value.as_f32()),
        }
    }

    fn note_clipped(&self, machine: &mut dyn Machine, stored: i64) {
        let value = self.on_false_value.as_f32();
        if !value.is_finite() || (value.round_ties_even() - stored as f32).abs() > f32::EPSILON * value.abs() {
            let message =
                format!("`on_false_value` is {value:?}, which becomes {stored} in `dst`, which is {}", self.dst.dtype);
            let help = "give a value that the type holds: int32 has no infinity";
            machine.note_unexpected(Violation::new("saturated-store", "on_false_value", message).help(help));
        }
    }
}

impl Instruction for AffineSelect {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("on_true_tile")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::GpSimd
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        if comparison(self.cmp_op).is_none() {
            return Err(Violation::new(
                "operand-value",
                "cmp_op",
                format!(
                    "`cmp_op` is {}, but must be equal, not_equal, greater, greater_equal, less or less_equal",
                    self.cmp_op
                ),
            ));
        }
        check::same_partitions(("dst", &self.dst), ("on_true_tile", &self.on_true_tile))?;
        check::same_free(("dst", &self.dst), ("on_true_tile", &self.on_true_tile))?;
        Affine::check(&self.pattern, self.offset, self.channel_multiplier, self.dst.free_elements())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let affine = Affine::new(&self.pattern, self.offset.value(machine), self.channel_multiplier);
        let holds = comparison(self.cmp_op).unwrap_or_default();
        if self.dst.dtype == self.on_true_tile.dtype && self.dst.dtype.is_int() {
            // Equal types are not converted: 32-bit integers stay exact.
            let otherwise = self.integer_otherwise();
            self.note_clipped(machine, otherwise);
            return machine.map_i64(&[&self.dst], &[&self.on_true_tile], &|partition, ins, outs| {
                let (x, out) = (ins[0], &mut *outs[0]);
                dispatch(Select { affine: &affine, partition, holds, x, otherwise, out });
            });
        }
        let otherwise = self.on_false_value.as_f32();
        let row = move |partition: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            let (x, out) = (ins[0], &mut *outs[0]);
            dispatch(Select { affine: &affine, partition, holds, x, otherwise, out });
        };
        machine.map_f32(&[&self.dst], &[&self.on_true_tile], Box::new(row), None)
    }

    fn values(&self) -> Values<'_> {
        let moved = Values::moved(Feeds::Elements).selecting(Some(&self.on_true_tile));
        Values { immediates: [self.on_false_value.as_f32()].into_iter().collect(), ..moved }
    }

    fn work(&self, context: &Context<'_>) -> Work {
        stream::on(self.engine(context.arch), stream::stream(Law::GpSimd, &[&self.on_true_tile], &[&self.dst]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::{DType, i64_to_bits};
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn select(dst: &View, src: &View, cmp_op: AluOp) -> AffineSelect {
        AffineSelect {
            dst: dst.clone(),
            pattern: Pattern(vec![(-1, dst.free_elements() as u32)]),
            channel_multiplier: 1,
            on_true_tile: src.clone(),
            on_false_value: Imm::Float(-1e30),
            cmp_op,
            offset: RegisterOrInt::Int(0),
        }
    }

    #[test]
    fn makes_a_causal_mask() {
        let mut m = TestMachine::new(Target::Trn2);
        let ones = [1.; 9];
        let src = m.tensor_f32("s", Space::Sbuf, DType::F32, &[3, 3], &ones);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[3, 3]);
        m.run(select(&dst, &src, AluOp::GreaterEqual)).unwrap();
        let n = -1e30;
        assert_eq!(m.f32s(&dst), [1., n, n, 1., 1., n, 1., 1., 1.]);
    }

    #[test]
    fn keeps_large_integers_exact() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor_bits("s", Space::Sbuf, DType::I32, &[1, 2], &[16_777_217, 16_777_219]);
        let dst = m.tensor("d", Space::Sbuf, DType::I32, &[1, 2]);
        m.run(AffineSelect { on_false_value: Imm::Int(-7), ..select(&dst, &src, AluOp::Equal) }).unwrap();
        assert_eq!(m.bits(&dst), [16_777_217, -7i32 as u32]);
    }

    #[test]
    fn the_other_value_is_rounded_and_clipped() {
        let mut m = TestMachine::new(Target::Trn2);
        for (value, dtype, expected) in [
            (f64::NEG_INFINITY, DType::I32, i64::from(i32::MIN)),
            (-3e9, DType::I32, i64::from(i32::MIN)),
            (9.6, DType::I32, 10),
            (70_000.7, DType::I16, 32_767),
            (-1.0, DType::U8, 0),
        ] {
            let src = m.tensor_bits("s", Space::Sbuf, dtype, &[1, 2], &[1, 2]);
            let dst = m.tensor("d", Space::Sbuf, dtype, &[1, 2]);
            m.run(AffineSelect { on_false_value: Imm::Float(value), ..select(&dst, &src, AluOp::Equal) }).unwrap();
            let bits = i64_to_bits(dtype, expected);
            assert_eq!(m.bits(&dst), [1, bits], "{value} as {dtype}");
        }
    }

    #[test]
    fn converts_through_fp32_when_types_differ() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor_f32("s", Space::Sbuf, DType::F32, &[1, 2], &[1.001, 2.]);
        let dst = m.tensor("d", Space::Sbuf, DType::BF16, &[1, 2]);
        m.run(AffineSelect { on_false_value: Imm::Int(3), ..select(&dst, &src, AluOp::Equal) }).unwrap();
        assert_eq!(m.f32s(&dst), [1., 3.]);
    }

    #[test]
    fn broken_rules_quote_the_numbers() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor("s", Space::Sbuf, DType::F32, &[3, 4]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[3, 3]);
        let e = m.check(select(&dst, &src, AluOp::Equal)).unwrap_err();
        assert!(e.starts_with("on_true_tile: ") && e.contains('4') && e.contains('3'), "{e}");
        let e = m.check(select(&dst, &dst, AluOp::Add)).unwrap_err();
        assert!(e.contains("`cmp_op` is add"), "{e}");
    }
}
