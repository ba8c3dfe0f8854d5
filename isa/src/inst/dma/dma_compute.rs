//! `nisa.dma_compute`: sums tensors during a transfer between memories.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use crate::arch::Arch;
use crate::arg::{Imm, Numbers, Views};
use crate::inst::dma::dma_copy::{check_gather, is_gather};
use crate::inst::dma::rows;
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::inst::{doubt, inert};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, DgeMode, Engine, OobMode, Space};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Dma, DmaSide, Work, WorkKind};

operands! {
    /// Writes the sum of the sources to `dst`, computed in fp32 by the DMA engines. With a vector index on one source it reads, adds
    /// and writes back: scatter if `dst` has that index too, else gather.
    pub struct DmaCompute: "dma_compute" on [Sync, GpSimd] {
        /// Destination.
        [Out Sbuf Hbm] dst: View,
        /// Up to 16 tensors of as many elements as `dst`.
        [In Sbuf Hbm] srcs: Views,
        /// The operation: only `add`.
        [Attr] reduce_op: AluOp,
        /// A factor for each source: only 1.0.
        [Attr] scales: Option<Numbers> = None,
        /// No index occurs twice. With False, what goes to one place is added up: the older interface only (`dst_rmw_op` of `dma_copy`).
        [Attr] unique_indices: bool = true,
        /// What to do with a dynamic index out of bounds.
        [Attr] oob_mode: OobMode = OobMode::Error,
    }
    numerics: "Sources are converted to fp32, added in the order of `srcs` in fp32, and the sum is rounded once to the \
        dtype of `dst`.",
    cost: Derived "All bytes of all sources pass through the DMA engines; a descriptor for each contiguous run. With a \
        vector index a descriptor for each row, made by GpSimd.",
    rules: {
        "sources": "1 to 16 sources",
        "operator": "`reduce_op` is add",
        "scales": "`scales` is omitted, or 1.0 for each source",
        "same-elements": "each source has as many elements as `dst`",
        "static-address": "without a vector index, addresses are known at compile time",
        "two-sources": "with a vector index, there are two sources",
        "in-place": "with a vector index, one source is `dst` itself",
        "same-rows": "with a vector index, all operands have the same number of rows",
        "scatter-source": "scattered data is in SBUF",
        "index-memory": "a tensor indexed by a vector is in HBM and its index in SBUF",
        "index-dtype": "the index is int32 or uint32",
        "index-count": "the index has an element for each row",
    },
}

const MAX_SOURCES: usize = 16;

impl DmaCompute {
    fn gathers(&self) -> bool {
        is_gather(&self.dst) || self.srcs.0.iter().any(is_gather)
    }

    fn validate_gather(&self) -> Result<(), Violation> {
        check_gather("dst", &self.dst)?;
        for src in &self.srcs.0 {
            check_gather("srcs", src)?;
        }
        if self.srcs.0.len() != 2 {
            return Err(Violation::new(
                "operand-value",
                "srcs",
                format!("`srcs` has {} tensors, but must have 2 when one is indexed by a vector", self.srcs.0.len()),
            ));
        }
        if !self.srcs.0.contains(&self.dst) {
            return Err(Violation::new(
                "operand-value",
                "srcs",
                "with a vector index, one of `srcs` must be `dst` itself (read, add, write back)",
            ));
        }
        if is_gather(&self.dst)
            && let Some(other) = self.srcs.0.iter().find(|s| **s != self.dst && s.space != Space::Sbuf)
        {
            return Err(Violation::new(
                "operand-memory",
                "srcs",
                format!("the source that is scattered is in {}; it must be in sbuf", other.space),
            )
            .help("load it with nisa.dma_copy first"));
        }
        let rows = self.dst.partitions();
        match self.srcs.0.iter().find(|s| s.partitions() != rows) {
            Some(other) => Err(Violation::new(
                "shape-mismatch",
                "srcs",
                format!(
                    "a source has {:?}, `dst` has {:?}: with a vector index the rows must agree",
                    other.shape(),
                    self.dst.shape()
                ),
            )),
            None => Ok(()),
        }
    }

    /// Writes the sum of the sources, added in order, to `dst`.
    fn sum(machine: &mut dyn Machine, dst: &View, srcs: &[View]) -> Result<(), Fault> {
        let mut sum: Option<Vec<f32>> = None;
        for src in srcs {
            let tile = machine.read_tile(src)?;
            sum = Some(match sum {
                None => tile.iter().copied().collect(),
                Some(mut sum) => {
                    sum.iter_mut().zip(&tile).for_each(|(s, x)| *s += x);
                    sum
                }
            });
        }
        let shape = (dst.partitions() as usize, dst.free_elements());
        let sum = Array2::from_shape_vec(shape, sum.unwrap_or_default())
            .map_err(|e| Fault::new("internal", e.to_string()))?;
        machine.write_tile(dst, sum.view())
    }
}

impl Instruction for DmaCompute {
    const PLACING: Placing = Placing::Fixed;

    /// The older compiler "automatically adds synchronization to avoid hazards" (`dma_copy` with `dst_rmw_op`, SDK 2.26.1).
    fn adds_repeated(&self) -> bool {
        !self.unique_indices
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        if self.gathers() { Engine::GpSimd } else { Engine::Sync }
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        let n = self.srcs.0.len();
        if n == 0 || n > MAX_SOURCES {
            return Err(Violation::new(
                "operand-value",
                "srcs",
                format!("`srcs` has {n} tensors, but must have 1 to {MAX_SOURCES}"),
            ));
        }
        if self.reduce_op != AluOp::Add {
            return Err(Violation::new(
                "operand-value",
                "reduce_op",
                format!("`reduce_op` is {}, only add is supported", self.reduce_op),
            ));
        }
        if let Some(Numbers(scales)) = &self.scales {
            let one = |s: &Imm| s.as_f32() == 1.0;
            if scales.len() != n || !scales.iter().all(one) {
                return Err(Violation::new(
                    "operand-value",
                    "scales",
                    format!("`scales` must be 1.0 for each of the {n} sources, or left out"),
                ));
            }
        }
        let want = self.dst.elements();
        if let Some(src) = self.srcs.0.iter().find(|s| s.elements() != want) {
            return Err(Violation::new(
                "shape-mismatch",
                "srcs",
                format!(
                    "a source has {:?} = {} elements, `dst` has {:?} = {want}",
                    src.shape(),
                    src.elements(),
                    self.dst.shape()
                ),
            ));
        }
        if self.gathers() {
            return self.validate_gather();
        }
        let views = std::iter::once(("dst", &self.dst)).chain(self.srcs.0.iter().map(|s| ("srcs", s)));
        match views.into_iter().find(|(_, v)| v.indirect.is_some()) {
            Some((name, _)) => Err(Violation::new(
                "operand-value",
                name,
                format!("`{name}` has an address that is known only at run time; dma_compute takes such an address only from a vector index"),
            )
            .help("copy the rows with nisa.dma_copy first")),
            None => Ok(()),
        }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        if !self.gathers() {
            return Self::sum(machine, &self.dst, &self.srcs.0);
        }
        let dst = rows(machine, &self.dst, self.oob_mode)?;
        let mut srcs = Vec::new();
        for src in &self.srcs.0 {
            srcs.push(rows(machine, src, self.oob_mode)?);
        }
        for (i, dst) in dst.iter().enumerate() {
            let row: Option<Vec<View>> = srcs.iter().map(|s| s.get(i).cloned().flatten()).collect();
            if let (Some(dst), Some(row)) = (dst, row) {
                Self::sum(machine, dst, &row)?;
            }
        }
        Ok(())
    }

    fn doubt(&self) -> Option<Violation> {
        let sides = || self.srcs.0.iter().map(|src| ("srcs", src)).chain([("dst", &self.dst)]);
        doubt::index_in_rows(sides()).or_else(|| doubt::crosses_rows(sides()))
    }

    fn inert(&self) -> Option<Violation> {
        inert::skip_without_index(self.oob_mode, self.srcs.0.iter().chain([&self.dst]))
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Elements)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        let sides: Vec<DmaSide> = self.srcs.0.iter().map(DmaSide::of).collect();
        let dst = DmaSide::of(&self.dst);
        // One source represents all: they have the same run structure.
        let src = DmaSide { runs: sides.iter().map(|s| s.runs).sum(), ..sides.first().copied().unwrap_or(dst) };
        let gathers = self.gathers();
        Work {
            engine: self.engine(context.arch),
            kind: WorkKind::Dma(Dma {
                src,
                dst,
                // Every source passes through the DMA engines.
                bytes: (self.dst.bytes() * self.srcs.0.len()) as u64,
                elements: (self.dst.elements() * self.srcs.0.len()) as u64,
                dge: if gathers { DgeMode::SwDge } else { DgeMode::None },
                dynamic: gathers,
                indexed: gathers,
                indirect: gathers,
                transpose: false,
                cast: self.srcs.0.iter().any(|s| s.dtype != self.dst.dtype),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;
    use crate::view::{Index, Indirect};

    fn compute(dst: &View, srcs: &[&View]) -> DmaCompute {
        DmaCompute {
            dst: dst.clone(),
            srcs: Views(srcs.iter().map(|&v| v.clone()).collect()),
            reduce_op: AluOp::Add,
            scales: None,
            unique_indices: true,
            oob_mode: OobMode::Error,
        }
    }

    fn indexed(view: &View, index: &View, rows: u32) -> View {
        let (stride, bound) = (view.dims[0].stride, view.dims[0].count);
        let mut view = view.clone();
        view.dims[0].count = rows;
        View { indirect: Some(Box::new(Indirect { index: Index::Vector(index.clone()), stride, bound })), ..view }
    }

    #[test]
    fn sums_sources_of_any_memory_and_type() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Hbm, DType::BF16, &[4], &[1., 2., 3., 4.]);
        let b = m.tensor_f32("b", Space::Sbuf, DType::F32, &[2, 2], &[0.5, 0.25, 0., -4.]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[2, 2]);
        m.run(DmaCompute { scales: Some(Numbers(vec![Imm::Float(1.0); 3])), ..compute(&dst, &[&a, &b, &b]) }).unwrap();
        assert_eq!(m.f32s(&dst), [2., 2.5, 3., -4.]);
    }

    #[test]
    fn scatters_by_adding_to_rows() {
        let mut m = TestMachine::new(Target::Trn2);
        let table = m.tensor_f32("t", Space::Hbm, DType::F32, &[3, 2], &[0., 1., 10., 11., 20., 21.]);
        let index = m.tensor_bits("i", Space::Sbuf, DType::U32, &[3, 1], &[2, 7, 0]);
        let data = m.tensor_f32("x", Space::Sbuf, DType::F32, &[3, 2], &[100., 200., 0., 0., 300., 400.]);
        let rows = indexed(&table, &index, 3);
        let scatter = compute(&rows, &[&rows, &data]);
        let e = m.run(scatter.clone()).unwrap_err();
        assert_eq!(e, "index 7 is out of bounds: the tensor has 3 rows");
        m.run(DmaCompute { oob_mode: OobMode::Skip, ..scatter }).unwrap();
        assert_eq!(m.f32s(&table), [300., 401., 10., 11., 120., 221.]);
    }

    #[test]
    fn gathers_by_adding_rows() {
        let mut m = TestMachine::new(Target::Trn2);
        let table = m.tensor_f32("t", Space::Hbm, DType::F32, &[3, 2], &[0., 1., 10., 11., 20., 21.]);
        let index = m.tensor_bits("i", Space::Sbuf, DType::U32, &[2, 1], &[2, 1]);
        let sum = m.tensor_f32("s", Space::Sbuf, DType::F32, &[2, 2], &[1.; 4]);
        let rows = indexed(&table, &index, 2);
        m.run(compute(&sum, &[&rows, &sum])).unwrap();
        assert_eq!(m.f32s(&sum), [21., 22., 11., 12.]);
        let e = m.check(compute(&sum, &[&rows, &sum, &sum])).unwrap_err();
        assert!(e.contains("`srcs` has 3 tensors, but must have 2"), "{e}");
    }

    #[test]
    fn broken_rules_quote_the_numbers() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor("a", Space::Hbm, DType::F32, &[4]);
        let b = m.tensor("b", Space::Hbm, DType::F32, &[5]);
        let e = m.check(compute(&a, &[&b])).unwrap_err();
        assert_eq!(e, "srcs: a source has [5] = 5 elements, `dst` has [4] = 4");
        let e = m.check(compute(&a, &[&a; 17])).unwrap_err();
        assert!(e.contains("17") && e.contains("16"), "{e}");
        let e = m.check(DmaCompute { reduce_op: AluOp::Max, ..compute(&a, &[&a]) }).unwrap_err();
        assert!(e.contains("only add"), "{e}");
        let e = m.check(DmaCompute { scales: Some(Numbers(vec![Imm::Float(2.0)])), ..compute(&a, &[&a]) }).unwrap_err();
        assert!(e.contains("1.0"), "{e}");
    }
}
