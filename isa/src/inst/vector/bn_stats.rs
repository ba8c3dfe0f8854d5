//! `nisa.bn_stats`: counts, means and variances of the even and the odd elements of each partition.

use crate::arch::Arch;
use crate::inst::math::simd::{Kernel, dispatch};
use crate::inst::result::{Given, ResultTile};
use crate::inst::stream::{on, rows, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// Six statistics per partition: count, mean and variance times count of the elements at even positions, then of those at odd
    /// positions. `bn_aggr` makes a mean and a variance of them.
    pub struct BnStats: "bn_stats" on [Vector] {
        /// The statistics: 6 elements per partition.
        [Out Sbuf Psum] dst: View,
        /// Input tile of at most 512 elements per partition (`nl.tile_size.bn_stats_fmax`).
        [In Sbuf Psum] data: View,
    }
    numerics: "fp32 inputs; sums in double precision here, each statistic rounded once (the engine's order of fp32 sums \
        is not documented).",
    cost: Documented "N steps for N elements of a partition, at least 64.",
    rules: {
        "same-partitions": "`data` and `dst` have the same number of partitions",
        "data-size": "`data` has at most 512 elements per partition",
        "dst-size": "`dst` has 6 elements per partition",
    },
}

/// Most elements per partition.
const FREE_MAX: usize = 512;

impl Instruction for BnStats {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.view("data").map(|d| ResultTile::sbuf([d.partitions(), 6], d.dtype))
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_partitions(("data", &self.data), ("dst", &self.dst))?;
        let n = self.data.free_elements();
        if n > FREE_MAX {
            return Err(Violation::new(
                "free-size",
                "data",
                format!("`data` has {n} elements per partition, but bn_stats takes at most {FREE_MAX}"),
            )
            .help("call it for each 512 elements, with a dst of its own each time, and aggregate all with one nisa.bn_aggr"));
        }
        elements("dst", &self.dst, 6)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// Open question: the engine computes in fp32 in an undocumented order. Here sums are computed in double precision and each
    /// statistic is rounded to fp32 once, which is within the rounding error of every order. A group without elements has mean 0.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let row = |_: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            let (pairs, rest) = ins[0].as_chunks::<2>();
            let counts = [pairs.len() + rest.len(), pairs.len()].map(|n| n as f64);
            let sums = dispatch(Sum { pairs, rest, f: |x, _| x, means: [0.0; 2] });
            let means = [0, 1].map(|i| if counts[i] == 0.0 { 0.0 } else { sums[i] / counts[i] });
            let spreads = dispatch(Sum { pairs, rest, f: |x, mean| (x - mean) * (x - mean), means });
            for (i, out) in outs[0].chunks_exact_mut(3).take(2).enumerate() {
                out.copy_from_slice(&[counts[i] as f32, means[i] as f32, spreads[i] as f32]);
            }
        };
        machine.map_f32(&[&self.dst], &[&self.data], Box::new(row), None)
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        on(Engine::Vector, stream(rows("bn_stats", "typical"), &[&self.data], &[&self.dst]))
    }
}

/// Sums of `f(element, mean)` in double precision, in order: of the elements at even positions, and at odd ones.
struct Sum<'a, F> {
    pairs: &'a [[f32; 2]],
    /// The last element, if it is at an even position.
    rest: &'a [f32],
    f: F,
    means: [f64; 2],
}

impl<F: Fn(f64, f64) -> f64> Kernel for Sum<'_, F> {
    type Output = [f64; 2];
    #[inline(always)]
    fn run(self) -> [f64; 2] {
        let Sum { pairs, rest, f, means } = self;
        let mut sums = [std::iter::empty::<f64>().sum(); 2];
        for pair in pairs {
            for i in 0..2 {
                sums[i] += f(f64::from(pair[i]), means[i]);
            }
        }
        for &x in rest {
            sums[0] += f(f64::from(x), means[0]);
        }
        sums
    }
}

/// The operand has a fixed number of elements per partition.
pub(super) fn elements(name: &'static str, view: &View, want: usize) -> Result<(), Violation> {
    if view.free_elements() == want {
        return Ok(());
    }
    Err(Violation::new(
        "shape-mismatch",
        name,
        format!(
            "`{name}` has shape {:?} = {} elements per partition, it must have {want}",
            view.shape(),
            view.free_elements()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    #[test]
    fn even_and_odd_positions_have_their_own_statistics() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_f32("s", Space::Sbuf, DType::BF16, &[2, 5], &[1., 10., 2., 30., 6., 0., 0., 0., 0., 0.]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[2, 6]);
        m.run(BnStats { dst: dst.clone(), data }).unwrap();
        // Even: 1, 2, 6 around 3: 4 + 1 + 9. Odd: 10, 30 around 20.
        assert_eq!(m.f32s(&dst), [3., 3., 14., 2., 20., 200., 3., 0., 0., 2., 0., 0.]);
    }

    #[test]
    fn one_element_leaves_the_odd_group_empty() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_f32("s", Space::Psum, DType::F32, &[1, 1], &[7.]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 6]);
        m.run(BnStats { dst: dst.clone(), data }).unwrap();
        assert_eq!(m.f32s(&dst), [1., 7., 0., 0., 0., 0.]);
    }

    #[test]
    fn sizes_are_limited() {
        let mut m = TestMachine::new(Target::Trn2);
        let long = m.tensor("s", Space::Sbuf, DType::F32, &[1, 513]);
        let data = m.tensor("t", Space::Sbuf, DType::F32, &[1, 512]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 6]);
        let e = m.check(BnStats { dst: dst.clone(), data: long }).unwrap_err();
        assert_eq!(e, "data: `data` has 513 elements per partition, but bn_stats takes at most 512");
        m.check(BnStats { dst, data: data.clone() }).unwrap();
        let e = m.check(BnStats { dst: data.clone(), data }).unwrap_err();
        assert!(e.contains("= 512 elements per partition, it must have 6"), "{e}");
    }
}
