//! `nisa.nc_n_gather`: gathers elements within each partition. Also contains the rules shared by the gathers.

use crate::arch::Arch;
use crate::inst::math::moves;
use crate::inst::stream::{on, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Algorithm, Law, Start, Term, Work};

operands! {
    /// `dst[p, i] = data[p, indices[p, i]]`, the free dimensions of each tile flattened.
    pub struct NcNGather: "nc_n_gather" on [GpSimd] {
        /// The gathered elements: the dtype of `data`, as many elements as `indices`.
        [Out Sbuf] dst: View,
        /// Tile to gather from.
        [In Sbuf] data: View,
        /// Which elements: uint32, each less than the elements per partition of `data`.
        [In Sbuf; U32] indices: View,
    }
    numerics: "Bits move unchanged. An index out of bounds is a run-time error.",
    cost: Derived "For each 512 indices of a partition a fixed part, then 8 steps for each index, as local_gather with runs of one element.",
    rules: {
        "same-partitions": "`data`, `indices` and `dst` have the same number of partitions",
        "same-indices": "`dst` has as many elements per partition as `indices`",
        "same-dtype": "`dst` has the dtype of `data`",
    },
}

/// The error for an index that points outside the `elements` per partition of the indexed operand and takes `run` elements. The hardware's
/// behaviour is undefined in this case.
pub(super) fn out_of_bounds(indexed: &str, (partition, index): (usize, u32), run: usize, elements: usize) -> Fault {
    let takes = if run > 1 { format!(", and each index takes {run}") } else { String::new() };
    Fault::new(
        "index-out-of-bounds",
        format!(
            "index {index} in partition {partition} is out of bounds: `{indexed}` has {elements} elements per partition{takes} (0 to {})",
            elements.saturating_sub(run)
        ),
    )
}

impl Instruction for NcNGather {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::GpSimd
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_partitions(("data", &self.data), ("indices", &self.indices))?;
        check::same_shape(("indices", &self.indices), ("dst", &self.dst))?;
        check::same_dtype(("data", &self.data), ("dst", &self.dst))
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let elements = self.data.free_elements();
        machine.map_bits(&[&self.dst], &[&self.data, &self.indices], &mut |rows| {
            rows.iter_mut().try_for_each(|row| {
                moves::gather(row.ins[0], row.ins[1], row.outs[0])
                    .map_err(|index| out_of_bounds("data", (row.partition, index), 1, elements))
            })
        })
    }

    fn action(&self) -> Action<'_> {
        Action::Rearranges
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        // The length is that of the gathered result, not of the source.
        on(
            Engine::GpSimd,
            stream(
                Law::Algorithm(Algorithm {
                    start: Start::EachGroup("n_gather_group"),
                    terms: &[Term::Elements("n_gather")],
                }),
                &[&self.indices],
                &[&self.dst],
            ),
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

    #[test]
    fn gathers_within_partitions_bit_for_bit() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_bits("s", Space::Sbuf, DType::I32, &[2, 2, 2], &[1, 2, 16_777_217, 4, 5, 6, 7, 8]);
        let indices = m.tensor_bits("i", Space::Sbuf, DType::U32, &[2, 3], &[2, 2, 0, 3, 1, 0]);
        let dst = m.tensor("d", Space::Sbuf, DType::I32, &[2, 3]);
        m.run(NcNGather { dst: dst.clone(), data: data.clone(), indices: indices.clone() }).unwrap();
        assert_eq!(m.bits(&dst), [16_777_217, 16_777_217, 1, 8, 6, 5]);
        m.set_bits(&indices, &[0, 0, 0, 0, 0, 4]);
        let e = m.run(NcNGather { dst, data, indices }).unwrap_err();
        assert!(e.contains("index 4 in partition 1") && e.contains("has 4 elements per partition (0 to 3)"), "{e}");
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor("s", Space::Sbuf, DType::F32, &[2, 4]);
        let indices = m.tensor("i", Space::Sbuf, DType::U32, &[2, 3]);
        let signed = m.tensor("j", Space::Sbuf, DType::I32, &[2, 3]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[2, 3]);
        let base = NcNGather { dst, data: data.clone(), indices: indices.clone() };
        let said = |inst: NcNGather| m.check(inst).unwrap_err();
        assert!(said(NcNGather { indices: signed, ..base.clone() }).contains("`indices` is int32; it must be uint32"));
        assert!(said(NcNGather { dst: indices, ..base.clone() }).contains("`dst` is uint32, `data` is float32"));
        assert!(said(NcNGather { dst: data, ..base }).contains("`dst` has [2, 4] = 4 elements"));
    }
}
