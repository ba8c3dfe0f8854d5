//! `nisa.dma_copy`: moves elements between HBM and SBUF.

use crate::arch::Arch;
use crate::dtype::DType;
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, Transfer, check};
use crate::inst::{doubt, inert};
use crate::machine::{Context, Fault, Machine};
use crate::names::{DgeMode, Engine, OobMode, Space};
use crate::operands;
use crate::schema::{Former, Now};
use crate::view::{Index, View};
use crate::violation::Violation;
use crate::work::{Dma, DmaSide, Work, WorkKind};

operands! {
    /// Copies `src` to `dst` by DMA, converting the element type through fp32 if it differs.
    pub struct DmaCopy: "dma_copy" on [Sync, Scalar, GpSimd] {
        /// Destination.
        [Out Sbuf Hbm] dst: View,
        /// Source.
        [In Sbuf Hbm] src: View,
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
        /// What to do with a dynamic index out of bounds.
        [Attr] oob_mode: OobMode = OobMode::Error,
        /// Who makes the descriptors.
        [Attr] dge_mode: DgeMode = DgeMode::Unknown,
        /// The engine that triggers a hardware-DGE transfer.
        [Attr] engine: Engine = Engine::Unknown,
    }
    numerics: "Bits move unchanged between equal dtypes; else elements are converted to fp32 and rounded once to the \
        dtype of `dst`.",
    cost: Measured "Bytes of `dst`, over the DMA engines that serve its partitions (8 partitions each); a descriptor for \
        each run that is contiguous on both sides, cut at the packet size. Issue, dispatch and notification are \
        fixed.",
    rules: {
        "packed-copy": "a packed dtype is copied only to the same dtype",
        "int64-copy": "int64 is copied only to int64",
        "same-elements": "`src` and `dst` have the same number of elements",
        "index-memory": "a tensor indexed by a vector is in HBM and its index in SBUF",
        "index-dtype": "the index is int32 or uint32",
        "index-count": "the index has an element for each row",
        "hwdge-target": "hwdge needs trn2 or later",
        "hwdge-dtype": "hwdge converts floats only to floats, and integers not at all",
        "gather-swdge": "a gather or scatter by a vector index requires swdge (or unknown)",
        "dynamic-none": "`dge_mode` none requires an address known at compile time",
        "priority-target": "`priority` needs trn3",
        "priority": "`priority` is 0 to 3",
        "engine": "`engine` is sync or scalar and requires hwdge",
    },
}

/// Whether a view gathers or scatters by a vector of indices.
pub(crate) fn is_gather(view: &View) -> bool {
    matches!(view.indirect.as_deref().map(|i| &i.index), Some(Index::Vector(_)))
}

/// Whether a view's address is computed from an index in SBUF.
pub(crate) fn is_indexed(view: &View) -> bool {
    view.indirect.as_deref().is_some_and(|i| !matches!(i.index, Index::Register(_)))
}

/// The engine that triggers a transfer, derived from the descriptor mode.
pub(crate) fn trigger(requested: Engine, dge: DgeMode, gather: bool) -> Engine {
    match (requested, dge) {
        (Engine::Unknown, DgeMode::SwDge) => Engine::GpSimd,
        (Engine::Unknown, DgeMode::Unknown) if gather => Engine::GpSimd,
        (Engine::Unknown, _) => Engine::Sync,
        (engine, _) => engine,
    }
}

/// Rules of the descriptor mode. Source: the nki-dge deep dive.
pub(crate) fn check_dge(arch: &Arch, dge: DgeMode, gathers: Option<&'static str>) -> Result<(), Violation> {
    if dge == DgeMode::HwDge && !arch.hwdge {
        return Err(Violation::new(
            "unsupported-on-target",
            "dge_mode",
            format!("hwdge needs trn2 or later (target is {})", arch.target),
        )
        .help("use dge_mode=nisa.dge_mode.swdge or leave it unknown"));
    }
    if let Some(operand) = gathers
        && matches!(dge, DgeMode::HwDge | DgeMode::None)
    {
        return Err(Violation::new(
            "operand-value",
            "dge_mode",
            format!("`dge_mode` is {dge}, but `{operand}` is indexed by a vector: only swdge gathers and scatters"),
        )
        .help("leave `dge_mode` unknown or use nisa.dge_mode.swdge"));
    }
    Ok(())
}

/// Rules of a DMA's priority.
pub(crate) fn check_priority(arch: &Arch, priority: Option<i64>) -> Result<(), Violation> {
    match priority {
        Some(p) if !arch.dma_priority => Err(Violation::new(
            "unsupported-on-target",
            "priority",
            format!("`priority` is {p}, but DMA priorities need trn3 (target is {})", arch.target),
        )
        .help("leave `priority` out")),
        Some(p) if !(0..=3).contains(&p) => {
            Err(Violation::new("operand-value", "priority", format!("`priority` is {p}, but must be 0 to 3")))
        }
        _ => Ok(()),
    }
}

/// Rules of a vector index: its memory, type and length, and the memory of the indexed tensor.
pub(crate) fn check_gather(name: &'static str, view: &View) -> Result<(), Violation> {
    let Some(indirect) = view.indirect.as_deref() else { return Ok(()) };
    let Index::Vector(index) = &indirect.index else { return Ok(()) };
    if view.space.is_on_chip() {
        return Err(Violation::new(
            "operand-memory",
            name,
            format!(
                "`{name}` is indexed by a vector and is in {}: only HBM tensors gather and scatter by DMA",
                view.space
            ),
        ));
    }
    if index.space != Space::Sbuf {
        return Err(Violation::new(
            "operand-memory",
            name,
            format!("the index of `{name}` is in {}, but must be in sbuf", index.space),
        )
        .help("load the index with nisa.dma_copy first"));
    }
    if !matches!(index.dtype, DType::I32 | DType::U32) {
        return Err(Violation::new(
            "operand-dtype",
            name,
            format!("the index of `{name}` is {}, but must be int32 or uint32", index.dtype),
        ));
    }
    let rows = view.dims.first().map_or(1, |d| d.count);
    if index.elements() != rows as usize {
        return Err(Violation::new(
            "shape-mismatch",
            name,
            format!("the index of `{name}` has {} elements, but the pattern has {rows} rows", index.elements()),
        ));
    }
    Ok(())
}

/// Replacement of the operands that made a transfer reduce.
const REDUCTION: Now =
    Now::Removed { version: "NKI 0.3", instead: "use nisa.dma_compute(dst, [src, dst], reduce_op=nl.add)" };

impl Instruction for DmaCopy {
    const PLACING: Placing = Placing::AnyPartition;
    const FORMER: &'static [Former] =
        &[Former { keyword: "dst_rmw_op", now: REDUCTION }, Former { keyword: "unique_indices", now: REDUCTION }];
    fn engine(&self, _arch: &Arch) -> Engine {
        trigger(self.engine, self.dge_mode, is_gather(&self.src) || is_gather(&self.dst))
    }

    const PACKED: &'static [&'static str] = &["dst", "src"];
    const WIDE: &'static [&'static str] = &["dst", "src"];

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::packed_copy(("dst", &self.dst), ("src", &self.src))?;
        if self.src.dtype != self.dst.dtype && (self.src.dtype == DType::I64 || self.dst.dtype == DType::I64) {
            let message =
                format!("`dst` is {}, `src` is {}: int64 is copied, not converted", self.dst.dtype, self.src.dtype);
            return Err(Violation::new("dtype-mismatch", "dst", message)
                .help("the low and high halves are int32 elements of `.view(nl.int32)`"));
        }
        let (s, d) = (self.src.elements(), self.dst.elements());
        if s != d {
            return Err(Violation::new(
                "shape-mismatch",
                "src",
                format!("`src` has {:?} = {s} elements, `dst` has {:?} = {d}", self.src.shape(), self.dst.shape()),
            ));
        }
        check_gather("src", &self.src)?;
        check_gather("dst", &self.dst)?;
        let gathers = [("src", &self.src), ("dst", &self.dst)].into_iter().find(|(_, v)| is_gather(v)).map(|(n, _)| n);
        check_dge(context.arch, self.dge_mode, gathers)?;
        let dynamic = [("src", &self.src), ("dst", &self.dst)].into_iter().find(|(_, v)| v.indirect.is_some());
        if let Some((name, _)) = dynamic
            && self.dge_mode == DgeMode::None
        {
            return Err(Violation::new(
                "operand-value",
                "dge_mode",
                format!("`dge_mode` is none, which makes descriptors before the program runs, but the address of `{name}` is known only then"),
            )
            .help("leave `dge_mode` out"));
        }
        // The NKI compiler's own rule: "HWDGE requires same src/dst element type". Its messages are known for integers; a published kernel
        // loads float32 into bfloat16 tiles with hwdge on trn2.
        let both_float = self.src.dtype.is_float() && self.dst.dtype.is_float();
        if self.dge_mode == DgeMode::HwDge && self.src.dtype != self.dst.dtype && !both_float {
            return Err(Violation::new(
                "dtype-mismatch",
                "src",
                format!(
                    "`src` is {} and `dst` is {}, but hardware descriptors (hwdge) convert only between floats",
                    self.src.dtype, self.dst.dtype
                ),
            )
            .help("leave `dge_mode` out, or copy first and convert with nisa.tensor_copy"));
        }
        check_priority(context.arch, self.priority)?;
        match (self.engine, self.dge_mode) {
            (Engine::Unknown, _) | (Engine::Sync | Engine::Scalar, DgeMode::HwDge) => Ok(()),
            (engine, DgeMode::HwDge) => Err(Violation::new(
                "operand-value",
                "engine",
                format!("`engine` is {engine}, but hwdge is triggered from sync or scalar"),
            )),
            (engine, dge) => Err(Violation::new(
                "operand-value",
                "engine",
                format!("`engine` is {engine}, but `dge_mode` is {dge}: only hwdge permits a choice of engine"),
            )
            .help("set dge_mode=nisa.dge_mode.hwdge, or leave `engine` out")),
        }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        machine.copy(&self.dst, &self.src, self.oob_mode)
    }

    fn doubt(&self) -> Option<Violation> {
        let sides = [("dst", &self.dst), ("src", &self.src)];
        doubt::index_in_rows(sides).or_else(|| doubt::crosses_rows(sides))
    }

    fn inert(&self) -> Option<Violation> {
        inert::skip_without_index(self.oob_mode, [&self.dst, &self.src])
    }

    fn action(&self) -> Action<'_> {
        Action::Transfers(Transfer { dst: &self.dst, src: &self.src, engine: self.engine, dge_mode: self.dge_mode })
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Elements)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        Work {
            engine: self.engine,
            kind: WorkKind::Dma(Dma {
                src: DmaSide::of(&self.src),
                dst: DmaSide::of(&self.dst),
                bytes: self.dst.bytes() as u64,
                elements: self.dst.elements() as u64,
                dge: self.dge_mode,
                dynamic: self.src.indirect.is_some() || self.dst.indirect.is_some(),
                indexed: is_indexed(&self.src) || is_indexed(&self.dst),
                indirect: is_gather(&self.src) || is_gather(&self.dst),
                transpose: false,
                cast: self.src.dtype != self.dst.dtype,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::arg::Arg;
    use crate::ids::RegId;
    use crate::testing::{TestMachine, build};
    use crate::view::{Dim, Indirect};

    fn copy(dst: &View, src: &View) -> DmaCopy {
        DmaCopy {
            dst: dst.clone(),
            src: src.clone(),
            priority: None,
            oob_mode: OobMode::Error,
            dge_mode: DgeMode::Unknown,
            engine: Engine::Unknown,
        }
    }

    fn indexed(view: &View, index: Index, rows: u32, bound: u32) -> View {
        let stride = view.dims[0].stride;
        let mut view = view.clone();
        view.dims[0].count = rows;
        View { indirect: Some(Box::new(Indirect { index, stride, bound })), ..view }
    }

    #[test]
    fn copies_and_converts_between_shapes() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor_f32("s", Space::Hbm, DType::F32, &[4], &[1., 2.001, -3.7, 400.]);
        let dst = m.tensor("d", Space::Sbuf, DType::I8, &[2, 2]);
        m.run(copy(&dst, &src)).unwrap();
        assert_eq!(m.f32s(&dst), [1., 2., -4., 127.]);
        let hbm = m.tensor("h", Space::SharedHbm, DType::F32, &[4]);
        m.run(copy(&hbm, &src)).unwrap();
        assert_eq!(m.f32s(&hbm), m.f32s(&src));
    }

    #[test]
    fn gathers_rows_and_skips_what_is_out_of_bounds() {
        let mut m = TestMachine::new(Target::Trn2);
        let table = m.tensor_f32("t", Space::Hbm, DType::F32, &[3, 2], &[0., 1., 10., 11., 20., 21.]);
        let index = m.tensor_bits("i", Space::Sbuf, DType::U32, &[3, 1], &[2, 9, 0]);
        let dst = m.tensor_f32("d", Space::Sbuf, DType::F32, &[3, 2], &[-1.; 6]);
        let gather = copy(&dst, &indexed(&table, Index::Vector(index), 3, 3));
        assert_eq!(gather.engine(Arch::of(Target::Trn2)), Engine::GpSimd);
        let e = m.run(gather.clone()).unwrap_err();
        assert!(e.contains('9') && e.contains('3'), "{e}");
        m.run(DmaCopy { oob_mode: OobMode::Skip, ..gather.clone() }).unwrap();
        assert_eq!(m.f32s(&dst), [20., 21., -1., -1., 0., 1.]);
        let e = m.check(DmaCopy { dge_mode: DgeMode::HwDge, ..gather }).unwrap_err();
        assert!(e.contains("only swdge gathers"), "{e}");
    }

    #[test]
    fn a_register_moves_the_start() {
        let mut m = TestMachine::new(Target::Trn2);
        let table = m.tensor_f32("t", Space::Hbm, DType::F32, &[3, 2], &[0., 1., 10., 11., 20., 21.]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 2]);
        m.set_register(RegId(0), 1);
        m.run(copy(&dst, &indexed(&table, Index::Register(RegId(0)), 1, 3))).unwrap();
        assert_eq!(m.f32s(&dst), [10., 11.]);
    }

    #[test]
    fn modes_have_their_generation_and_engine() {
        for (target, dge_mode, engine, priority, want) in [
            (Target::Trn1, DgeMode::HwDge, Engine::Unknown, None, "hwdge needs trn2 or later (target is trn1)"),
            (Target::Trn2, DgeMode::HwDge, Engine::GpSimd, None, "`engine` is gpsimd, but hwdge is triggered from"),
            (Target::Trn2, DgeMode::SwDge, Engine::Scalar, None, "`engine` is scalar, but `dge_mode` is swdge"),
            (Target::Trn2, DgeMode::Unknown, Engine::Unknown, Some(1), "need trn3 (target is trn2)"),
            (Target::Trn3, DgeMode::Unknown, Engine::Unknown, Some(4), "`priority` is 4, but must be 0 to 3"),
            (Target::Trn2, DgeMode::HwDge, Engine::Scalar, None, ""),
            (Target::Trn3, DgeMode::None, Engine::Unknown, Some(3), ""),
        ] {
            let mut m = TestMachine::new(target);
            let src = m.tensor("s", Space::Hbm, DType::F32, &[4]);
            let dst = m.tensor("d", Space::Hbm, DType::F32, &[4]);
            let result = m.check(DmaCopy { dge_mode, engine, priority, ..copy(&dst, &src) });
            match result {
                Ok(()) => assert_eq!(want, ""),
                Err(e) => assert!(!want.is_empty() && e.contains(want), "{e}"),
            }
        }
    }

    #[test]
    fn refuses_psum_and_other_sizes() {
        let mut m = TestMachine::new(Target::Trn2);
        let psum = m.tensor("p", Space::Psum, DType::F32, &[2, 2]);
        let hbm = m.tensor("h", Space::Hbm, DType::F32, &[3, 2]);
        let sbuf = m.tensor("s", Space::Sbuf, DType::F32, &[2, 2]);
        let e = build("dma_copy", &[("dst", Arg::View(hbm.clone())), ("src", Arg::View(psum))]).unwrap_err();
        assert!(e.contains("`src` is in psum, but must be in sbuf or hbm"), "{e}");
        let e = m.check(copy(&sbuf, &hbm)).unwrap_err();
        assert_eq!(e, "src: `src` has [3, 2] = 6 elements, `dst` has [2, 2] = 4");
    }

    #[test]
    fn the_index_must_fit_the_pattern() {
        let mut m = TestMachine::new(Target::Trn2);
        let table = m.tensor("t", Space::Hbm, DType::F32, &[3, 2]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[2, 2]);
        let short = m.tensor("i", Space::Sbuf, DType::U32, &[1, 1]);
        let e = m.check(copy(&dst, &indexed(&table, Index::Vector(short), 2, 3))).unwrap_err();
        assert!(e.contains("has 1 elements, but the pattern has 2 rows"), "{e}");
        let float = m.tensor("f", Space::Sbuf, DType::F32, &[2, 1]);
        let e = m.check(copy(&dst, &indexed(&table, Index::Vector(float), 2, 3))).unwrap_err();
        assert!(e.contains("is float32, but must be int32 or uint32"), "{e}");
    }

    #[test]
    fn the_work_counts_runs() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor("s", Space::Hbm, DType::BF16, &[128, 64]);
        let mut dst = m.tensor("d", Space::Sbuf, DType::F32, &[128, 128]);
        dst.dims[1] = Dim { stride: 2, count: 64 };
        let WorkKind::Dma(work) = copy(&dst, &src).work(&m.context()).kind else { panic!("no DMA") };
        assert_eq!((work.bytes, work.elements, work.cast), (128 * 64 * 4, 128 * 64, true));
        assert_eq!((work.src.run_bytes, work.src.runs), (128 * 64 * 2, 1));
        assert_eq!((work.dst.run_bytes, work.dst.runs), (4, 128 * 64));
        assert_eq!((work.src.stride_bytes, work.dst.stride_bytes), (0, 8));
    }
}
