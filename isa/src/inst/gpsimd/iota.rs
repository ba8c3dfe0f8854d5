//! `nisa.iota`: writes an affine function of the position.

use crate::arch::Arch;
use crate::arg::{Pattern, RegisterOrInt};
use crate::dtype::{DType, bits_to_f32, f32_to_bits};
use crate::inst::gpsimd::Affine;
use crate::inst::stream::{on, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Law, Work};

operands! {
    /// Writes `offset + partition * channel_multiplier + sum of index * step` (32-bit integers) to each element.
    pub struct Iota: "iota" on [GpSimd] {
        /// The result.
        [Out Sbuf] dst: View,
        /// Up to four `[step, count]` pairs, outermost first; the counts multiply to the elements per partition.
        [Attr] pattern: Pattern,
        /// Added to every value (int32).
        [In] offset: RegisterOrInt = RegisterOrInt::Int(0),
        /// Multiplies the partition's number, counted from `dst`'s first (int32).
        [Attr] channel_multiplier: i64 = 0,
    }
    numerics: "32-bit integers, wrapping; converted once to the dtype of `dst`.",
    cost: Documented "150 + N steps for N elements of a partition.",
    rules: {
        "pattern-dims": "`pattern` has 1 to 4 dimensions",
        "int32": "`offset`, `channel_multiplier` and the steps of `pattern` fit 32 bits",
        "pattern-count": "the counts of `pattern` multiply to the elements per partition of `dst`",
    },
}

impl Iota {
    /// The steps and counts of all dimensions, the partitions last.
    fn steps(&self) -> impl Iterator<Item = (i64, u32)> + '_ {
        self.pattern.0.iter().copied().chain([(self.channel_multiplier, self.dst.partitions())])
    }

    /// Values that do not fit the 32 bits of the engine's counters.
    fn wraps(&self, offset: i64) -> Option<Violation> {
        let dtype = self.dst.dtype;
        let (low, high) = if dtype == DType::U32 { (0, u32::MAX.into()) } else { (i32::MIN.into(), i32::MAX.into()) };
        let ends = self.steps().map(|(step, count)| step.saturating_mul(i64::from(count.max(1) - 1)));
        let (least, most) = ends.fold((offset, offset), |(least, most), end| {
            (least.saturating_add(end.min(0)), most.saturating_add(end.max(0)))
        });
        let value = [least, most].into_iter().find(|value| !(low..=high).contains(value))?;
        let stored = if dtype == DType::U32 { i64::from(value as u32) } else { i64::from(value as i32) };
        let message = format!("the values go from {least} to {most}, beyond 32 bits: {value} wraps to {stored}");
        Some(
            Violation::new("wrapped-integer", "dst", message)
                .help("choose smaller steps, or an `offset` that keeps all values in range"),
        )
    }
}

impl Instruction for Iota {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::GpSimd
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        Affine::check(&self.pattern, self.offset, self.channel_multiplier, self.dst.free_elements())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let affine = Affine::new(&self.pattern, self.offset.value(machine), self.channel_multiplier);
        // 32-bit integers are stored unchanged, and converted to other types like all results: narrower integers are clipped.
        if self.dst.dtype.is_int() && self.dst.dtype.size() >= 4 {
            machine.map_i64(&[&self.dst], &[], &|partition, _, outs| {
                outs[0].iter_mut().zip(affine.row(partition)).for_each(|(o, v)| *o = i64::from(v));
            })
        } else {
            let row = move |partition: usize, _: &[&[f32]], outs: &mut [&mut [f32]]| {
                outs[0].iter_mut().zip(affine.row(partition)).for_each(|(o, v)| *o = v as f32);
            };
            machine.map_f32(&[&self.dst], &[], Box::new(row), None)
        }
    }

    fn doubt(&self) -> Option<Violation> {
        let dtype = self.dst.dtype;
        let RegisterOrInt::Int(offset) = self.offset else { return None };
        if dtype.is_int() {
            return self.wraps(offset);
        }
        if dtype.is_packed() {
            return None;
        }
        let reach = self.steps().fold(offset.unsigned_abs(), |reach, (step, count)| {
            reach.saturating_add(step.unsigned_abs().saturating_mul(u64::from(count.max(1) - 1)))
        });
        if dtype.size() >= 4 && reach <= 1 << f32::MANTISSA_DIGITS {
            return None;
        }
        let affine = Affine::new(&self.pattern, offset, self.channel_multiplier);
        let stored = |v: i32| bits_to_f32(dtype, f32_to_bits(dtype, v as f32));
        let (partition, value) = (0..self.dst.partitions() as usize)
            .find_map(|p| Some((p, affine.row(p).find(|v| f64::from(stored(*v)) != f64::from(*v))?)))?;
        let message = format!(
            "{value} becomes {:?} in `dst`, which is {dtype}: different positions become equal; first in partition {partition}",
            stored(value)
        );
        let help = "count in int32, and convert what is computed from the positions";
        Some(Violation::new("inexact-integer", "dst", message).help(help))
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Elements)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        on(Engine::GpSimd, stream(Law::GpSimd, &[], &[&self.dst]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::ids::RegId;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn iota(dst: &View, pattern: &[(i64, u32)], offset: i64, channel_multiplier: i64) -> Iota {
        let offset = RegisterOrInt::Int(offset);
        Iota { dst: dst.clone(), pattern: Pattern(pattern.to_vec()), offset, channel_multiplier }
    }

    #[test]
    fn counts_along_the_pattern_and_the_partitions() {
        let mut m = TestMachine::new(Target::Trn2);
        let dst = m.tensor("t", Space::Sbuf, DType::I32, &[2, 6]);
        m.run(iota(&dst, &[(100, 2), (-1, 3)], 5, 1000)).unwrap();
        assert_eq!(m.f32s(&dst), [5., 4., 3., 105., 104., 103., 1005., 1004., 1003., 1105., 1104., 1103.]);
    }

    #[test]
    fn counts_from_a_register() {
        let mut m = TestMachine::new(Target::Trn2);
        let dst = m.tensor("t", Space::Sbuf, DType::I32, &[1, 3]);
        m.set_register(RegId(2), -7);
        m.run(Iota { offset: RegisterOrInt::Register(RegId(2)), ..iota(&dst, &[(2, 3)], 0, 0) }).unwrap();
        assert_eq!(m.f32s(&dst), [-7., -5., -3.]);
    }

    #[test]
    fn writes_floats_rounded_from_32_bit_integers() {
        let mut m = TestMachine::new(Target::Trn2);
        let dst = m.tensor("t", Space::Sbuf, DType::BF16, &[1, 2]);
        m.run(iota(&dst, &[(1, 2)], 256, 0)).unwrap();
        assert_eq!(m.f32s(&dst), [256., 256.]);
    }

    #[test]
    fn positions_that_narrow_floats_round_are_doubtful() {
        let mut m = TestMachine::new(Target::Trn2);
        let mut doubt = |dtype, step: i64, offset| {
            let dst = m.tensor("t", Space::Sbuf, dtype, &[2, 129]);
            iota(&dst, &[(step, 129)], offset, 128).doubt().map(|v| v.message)
        };
        assert_eq!(doubt(DType::BF16, 1, 0), None);
        // 256, 258, ... are represented.
        assert_eq!(doubt(DType::BF16, 2, 0), None);
        assert!(
            doubt(DType::BF16, 1, 1).is_some_and(|m| m.starts_with("257 becomes 256.0 in `dst`, which is bfloat16"))
        );
        assert_eq!(doubt(DType::F16, 1, 1000), None);
        assert_eq!(doubt(DType::F32, 1, 1 << 20), None);
        assert_eq!(doubt(DType::U8, 1, 200), None);
    }

    #[test]
    fn wraps_at_32_bits() {
        let mut m = TestMachine::new(Target::Trn2);
        let dst = m.tensor("t", Space::Sbuf, DType::I32, &[1, 2]);
        m.run(iota(&dst, &[(1, 2)], i64::from(i32::MAX), 0)).unwrap();
        assert_eq!(m.bits(&dst), [i32::MAX as u32, i32::MIN as u32]);
    }

    #[test]
    fn broken_rules_quote_the_numbers() {
        let mut m = TestMachine::new(Target::Trn2);
        let dst = m.tensor("t", Space::Sbuf, DType::I32, &[2, 6]);
        let e = m.check(iota(&dst, &[(1, 5)], 0, 0)).unwrap_err();
        assert_eq!(e, "pattern: `pattern` counts [5] elements, `dst` has 6 per partition");
        let e = m.check(iota(&dst, &[(1, 6)], 1 << 40, 0)).unwrap_err();
        assert!(e.contains("1099511627776") && e.contains("offset"), "{e}");
        let e = m.check(iota(&dst, &[(1, 1); 5], 0, 0)).unwrap_err();
        assert!(e.contains("5 dimensions"), "{e}");
    }
}
