//! `nisa.max8`: the eight largest values of each partition. Also contains shared rules of the instructions on eight values.

use super::bn_stats::elements;
use crate::arch::Arch;
use crate::inst::math::search::largest;
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
    /// The 8 largest values of each partition, in descending order.
    pub struct Max8: "max8" on [Vector] {
        /// The values: 8 elements per partition.
        [Out Sbuf Psum] dst: View,
        /// Input tile of 8 to 16384 elements per partition and at most 5 dimensions.
        [In Sbuf Psum] src: View,
    }
    numerics: "Values are converted to fp32 and compared there, NaN above all numbers (the manual does not say); a \
        result is rounded once to the dtype of `dst`.",
    cost: Documented "N steps for N elements of a partition.",
    rules: {
        "same-partitions": "`src` and `dst` have the same number of partitions",
        "src-size": "`src` has 8 to 16384 elements per partition",
        "rank": "`src` has at most 5 dimensions",
        "dst-rank": "`dst` has at most 3 dimensions",
        "dst-size": "`dst` has 8 elements per partition",
    },
}

/// Fewest elements per partition.
const FREE_MIN: usize = 8;
/// Most elements per partition.
const FREE_MAX: usize = 16 * 1024;

/// Most dimensions of `src` and `dst` (max8 reference of 2.33; 3 and 2 before).
const SRC_RANK: usize = 5;
const DST_RANK: usize = 3;

/// The searched tile has 8 to 16384 elements per partition and at most `rank` dimensions.
///
/// # Errors
/// `free-size`, `access-pattern`.
pub(super) fn searched(name: &'static str, view: &View, rank: usize) -> Result<(), Violation> {
    let n = view.free_elements();
    if !(FREE_MIN..=FREE_MAX).contains(&n) {
        return Err(Violation::new(
            "free-size",
            name,
            format!("`{name}` has {n} elements per partition, it must have {FREE_MIN} to {FREE_MAX}"),
        ));
    }
    check::rank(name, view, rank)
}

impl Instruction for Max8 {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.view("src").map(|s| ResultTile::sbuf([s.partitions(), 8], s.dtype))
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_partitions(("src", &self.src), ("dst", &self.dst))?;
        searched("src", &self.src, SRC_RANK)?;
        check::rank("dst", &self.dst, DST_RANK)?;
        elements("dst", &self.dst, 8)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// Open question: the engine's rank of NaN. Here it ranks above all numbers.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        machine.map_f32(&[&self.dst], &[&self.src], Box::new(|_, ins, outs| largest(ins[0], outs[0])), None)
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        on(Engine::Vector, stream(rows("max8", "typical"), &[&self.src], &[&self.dst]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    #[test]
    fn gives_the_largest_in_descending_order_with_repeats() {
        let mut m = TestMachine::new(Target::Trn2);
        let row = [3., -1., 7., 7., 0., 2., 9., -5., 4., 7., f32::INFINITY, 1.];
        let src = m.tensor_f32("s", Space::Psum, DType::F32, &[1, 2, 6], &row);
        let dst = m.tensor("d", Space::Sbuf, DType::BF16, &[1, 8]);
        m.run(Max8 { dst: dst.clone(), src }).unwrap();
        assert_eq!(m.f32s(&dst), [f32::INFINITY, 9., 7., 7., 7., 4., 3., 2.]);
    }

    #[test]
    fn a_nan_is_not_lost() {
        let mut out = [0.; 8];
        largest(&[1., 2., 3., 4., 5., 6., 7., 8., f32::NAN, 9.], &mut out);
        assert!(out[0].is_nan());
        assert_eq!(out[1..], [9., 8., 7., 6., 5., 4., 3.]);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let mut tile = |shape: &[u32]| m.tensor("t", Space::Sbuf, DType::F32, shape);
        let (eight, seven, long, deep) = (tile(&[1, 8]), tile(&[1, 7]), tile(&[1, 16385]), tile(&[1, 2, 2, 2, 2, 2]));
        let said = |dst: &View, src: &View| m.check(Max8 { dst: dst.clone(), src: src.clone() }).unwrap_err();
        assert_eq!(said(&eight, &seven), "src: `src` has 7 elements per partition, it must have 8 to 16384");
        assert!(said(&eight, &long).contains("16385"));
        assert!(said(&eight, &deep).contains("has 6 dimensions [1, 2, 2, 2, 2, 2], but can have at most 5"));
        assert!(said(&seven, &eight).contains("it must have 8"));
    }
}
