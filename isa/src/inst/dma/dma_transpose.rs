//! `nisa.dma_transpose`: transposes during a transfer from memory to SBUF.

use crate::inst::values::{Feeds, Values};
use ndarray::{Array2, ArrayD, Axis, IxDyn};

use crate::arch::Arch;
use crate::arg::Ints;
use crate::dtype::DType;
use crate::inst::dma::dma_copy::{check_dge, check_priority, is_gather, is_indexed, trigger};
use crate::inst::dma::rows;
use crate::inst::result::{Given, ResultTile};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check, doubt};
use crate::machine::{Context, Fault, Machine};
use crate::names::{DgeMode, Engine, OobMode, Space};
use crate::operands;
use crate::view::{Dim, Index, View};
use crate::violation::Violation;
use crate::work::{Dma, DmaSide, Work, WorkKind};

operands! {
    /// Swaps the first and the last dimension of a tensor of 2, 3 or 4 dimensions (in 3, all are reversed), bit by bit. With a vector
    /// index on `src`, gathers its rows first.
    pub struct DmaTranspose: "dma_transpose" on [Sync, Scalar, GpSimd] {
        /// Destination tile.
        [Out Sbuf] dst: View,
        /// Source, of the dtype of `dst`.
        [In Sbuf Hbm] src: View,
        /// Axis `i` of `dst` is axis `axes[i]` of `src`: (1, 0), (2, 1, 0) or (3, 1, 2, 0).
        [Attr] axes: Ints = Ints(Vec::new()),
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
        /// Who makes the descriptors.
        [Attr] dge_mode: DgeMode = DgeMode::Unknown,
        /// What to do with a dynamic index out of bounds.
        [Attr] oob_mode: OobMode = OobMode::Error,
    }
    numerics: "Bits move unchanged.",
    cost: Documented "Bytes of `dst`, at up to 90% of the rate of a copy (50% between two SBUF tiles; measured, 30% for \
        4-byte types from HBM); a descriptor for each packet or row.",
    rules: {
        "rank": "`src` has 2, 3 or 4 dimensions",
        "axes": "`axes` is (1, 0), (2, 1, 0) or (3, 1, 2, 0)",
        "last": "the last dimension of `src`, which becomes the partitions of `dst`, is at most 128",
        "dst-shape": "`dst` has the shape of the transposed `src`",
        "packed-copy": "a packed dtype is copied only to the same dtype",
        "same-dtype": "`dst` has the dtype of `src`",
        "priority-target": "`priority` needs trn3",
        "priority": "`priority` is 0 to 3",
        "hwdge-target": "hwdge needs trn2 or later",
        "hwdge-dtype": "hwdge: the dtype has 2 bytes",
        "hwdge-rows": "hwdge, 2 dimensions: `src` has 16 rows",
        "hwdge-block": "hwdge, 3 or 4 dimensions: the first of `src` is 1, 2, 4, 8 or 16, and its product with the second last a \
            multiple of 16",
        "swdge": "swdge requires a `src` that is indexed at run time",
        "skip": "`oob_mode` skip requires a `src` that is indexed at run time",
        "gather-target": "gathered rows need trn2 or later",
        "gather-dge": "gathered rows: `dge_mode` is swdge or unknown",
        "gather-memory": "gathered rows: `src` is in HBM",
        "gather-dtype": "gathered rows: the dtype has 2 bytes",
        "gather-rows": "gathered rows: their number is a multiple of 16",
        "gather-4d": "gathered rows, 4 dimensions: the second or the third is 1",
        "index": "the index is uint32 in SBUF",
        "index-shape": "the index has 16 to 128 partitions, a multiple of 16; 128 for several columns",
        "index-count": "the index has at least as many elements as there are rows",
    },
}

/// The permutation for this many dimensions.
fn permutation(rank: usize) -> Option<&'static [usize]> {
    match rank {
        2 => Some(&[1, 0]),
        3 => Some(&[2, 1, 0]),
        4 => Some(&[3, 1, 2, 0]),
        _ => None,
    }
}

fn value(name: &'static str, message: String) -> Violation {
    Violation::new("operand-value", name, message)
}

impl DmaTranspose {
    /// Restrictions of hardware descriptors.
    fn validate_hardware(&self) -> Result<(), Violation> {
        let shape = self.src.shape();
        let first = shape[0];
        if self.src.dtype.size() != 2 {
            return Err(Violation::new(
                "operand-dtype",
                "src",
                format!("`src` is {}, but hwdge transposes 2-byte types", self.src.dtype),
            ));
        }
        if shape.len() == 2 {
            if first != 16 {
                return Err(Violation::new(
                    "tile-size",
                    "src",
                    format!("the first dimension of `src` is {first}, but hwdge transposes 16 rows"),
                ));
            }
        } else if ![1, 2, 4, 8, 16].contains(&first) || !(first * shape[shape.len() - 2]).is_multiple_of(16) {
            return Err(Violation::new(
                "tile-size",
                "src",
                format!(
                    "`src` is {:?}: for hwdge its first dimension must be 1, 2, 4, 8 or 16 and its product with the second last a multiple of 16",
                    &shape[..]
                ),
            ));
        }
        Ok(())
    }

    /// Restrictions of a gather by a vector of indices.
    fn validate_gather(&self, arch: &Arch, index: &View) -> Result<(), Violation> {
        if !arch.indirect_transpose {
            return Err(Violation::new(
                "unsupported-on-target",
                "src",
                format!("a transpose of gathered rows needs trn2 or later (target is {})", arch.target),
            ));
        }
        let shape = self.src.shape();
        let first = shape[0];
        let (p, n) = (index.partitions(), index.free_elements() as u32);
        let problem = if !self.src.space.is_hbm() {
            Some(format!("`src` is in {}, but rows are gathered from hbm", self.src.space))
        } else if self.src.dtype.size() != 2 {
            Some(format!("`src` is {}, but gathered rows must be of a 2-byte type", self.src.dtype))
        } else if !first.is_multiple_of(16) {
            Some(format!("`src` has {first} rows, but must be a multiple of 16"))
        } else if shape.len() == 4 && shape[1] != 1 && shape[2] != 1 {
            Some(format!("`src` is {:?}: its second or third dimension must be 1", &shape[..]))
        } else if index.space != Space::Sbuf || index.dtype != DType::U32 {
            Some(format!("the index is {} in {}, but must be uint32 in sbuf", index.dtype, index.space))
        } else if !(16..=128).contains(&p) || p % 16 != 0 || (n > 1 && p != 128) {
            Some(format!(
                "the index is {p} x {n}: its partitions must be a multiple of 16 up to 128, and 128 for several columns"
            ))
        } else if p * n < first {
            Some(format!("the index has {} elements, but `src` has {first} rows", p * n))
        } else {
            None
        };
        problem.map_or(Ok(()), |message| Err(value("src", message)))
    }

    fn index(&self) -> Option<&View> {
        match self.src.indirect.as_deref().map(|i| &i.index) {
            Some(Index::Vector(index)) => Some(index),
            _ => None,
        }
    }
}

/// The tile with its dimensions permuted, as partitions x free elements.
fn permuted(bits: Array2<u32>, shape: &[usize], axes: &[usize]) -> Result<Array2<u32>, Fault> {
    let fault = |e: ndarray::ShapeError| Fault::new("internal", e.to_string());
    let all: ArrayD<u32> = bits.into_shape_with_order(IxDyn(shape)).map_err(fault)?;
    let all = all.permuted_axes(IxDyn(axes)).as_standard_layout().into_owned();
    let rows = all.len_of(Axis(0));
    let columns = all.len() / rows.max(1);
    all.into_shape_with_order((rows, columns)).map_err(fault)
}

impl Instruction for DmaTranspose {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        let src = given.view("src")?;
        let shape = src.shape();
        let mut axes = given.ints("axes");
        if axes.is_empty() {
            axes = (0..shape.len() as i64).rev().collect();
        }
        let extents = axes.iter().map(|&a| usize::try_from(a).ok().and_then(|a| shape.get(a)).copied());
        Some(ResultTile::sbuf(extents.collect::<Option<Vec<u32>>>()?, src.dtype))
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        trigger(Engine::Unknown, self.dge_mode, is_gather(&self.src))
    }

    const PACKED: &'static [&'static str] = &["dst", "src"];

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::packed_copy(("dst", &self.dst), ("src", &self.src))?;
        let (src, dst) = (self.src.shape(), self.dst.shape());
        let Some(axes) = permutation(src.len()) else {
            return Err(Violation::new(
                "shape-mismatch",
                "src",
                format!("`src` has {} dimensions, but must have 2, 3 or 4", src.len()),
            ));
        };
        let given = &self.axes.0;
        if !given.is_empty() && !given.iter().copied().eq(axes.iter().map(|&a| a as i64)) {
            return Err(value(
                "axes",
                format!("`axes` is {given:?}, but must be {axes:?} for {} dimensions", src.len()),
            ));
        }
        let last = src[src.len() - 1];
        if last > context.arch.partitions {
            return Err(Violation::new(
                "tile-size",
                "src",
                format!(
                    "the last dimension of `src` is {last}; it becomes the partitions of `dst`, of which there are {}",
                    context.arch.partitions
                ),
            )
            .help("transpose it in tiles of 128 columns"));
        }
        if !dst.iter().copied().eq(axes.iter().map(|&a| src[a])) {
            let want: Vec<u32> = axes.iter().map(|&a| src[a]).collect();
            return Err(Violation::new(
                "shape-mismatch",
                "dst",
                format!("`dst` is {:?}, the transpose of `src` {:?} is {want:?}", &dst[..], &src[..]),
            ));
        }
        if self.src.dtype != self.dst.dtype {
            return Err(Violation::new(
                "dtype-mismatch",
                "dst",
                format!("`dst` is {}, `src` is {}: a transpose keeps the dtype", self.dst.dtype, self.src.dtype),
            ));
        }
        check_priority(context.arch, self.priority)?;
        check_dge(context.arch, self.dge_mode, self.index().map(|_| "src"))?;
        match self.index() {
            Some(index) => return self.validate_gather(context.arch, index),
            None if self.src.indirect.is_some() => {}
            None if self.dge_mode == DgeMode::SwDge => {
                let message = "`dge_mode` is swdge, but the address of `src` is known when the kernel is compiled";
                return Err(value("dge_mode", message.into()));
            }
            None if self.oob_mode == OobMode::Skip => {
                return Err(value("oob_mode", "`oob_mode` is skip, but `src` is not indexed at run time".into()));
            }
            None => {}
        }
        if self.dge_mode == DgeMode::HwDge { self.validate_hardware() } else { Ok(()) }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut shape: Vec<usize> = self.src.shape().iter().map(|&n| n as usize).collect();
        let Some(axes) = permutation(shape.len()) else { return Ok(()) };
        if self.index().is_none() {
            if self.oob_mode == OobMode::Skip && machine.is_outside(&self.src)? {
                return Ok(());
            }
            let bits = machine.read_bits(&self.src)?;
            let bits = permuted(bits, &shape, axes)?;
            return machine.write_bits(&self.dst, bits.view());
        }
        // A gathered row becomes one step of `dst`'s last dimension.
        shape[0] = 1;
        let rows = rows(machine, &self.src, self.oob_mode)?;
        for (i, row) in rows.iter().enumerate() {
            let Some(row) = row else { continue };
            let bits = permuted(machine.read_bits(row)?, &shape, axes)?;
            let mut column = self.dst.clone();
            if let Some(last) = column.dims.last_mut() {
                column.offset += last.stride * i as i64;
                *last = Dim { stride: 1, count: 1 };
            }
            machine.write_bits(&column, bits.view())?;
        }
        Ok(())
    }

    fn action(&self) -> Action<'_> {
        match permutation(self.src.shape().len()) {
            Some(axes) if self.oob_mode == OobMode::Error => Action::Transposes(&self.dst, &self.src, axes),
            _ => Action::Computes,
        }
    }

    fn doubt(&self) -> Option<Violation> {
        doubt::crosses_rows([("src", &self.src)])
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        let gathers = self.index().is_some();
        Work {
            engine: self.engine(context.arch),
            kind: WorkKind::Dma(Dma {
                src: DmaSide::of(&self.src),
                dst: DmaSide::of(&self.dst),
                bytes: self.dst.bytes() as u64,
                elements: self.dst.elements() as u64,
                dge: if gathers { DgeMode::SwDge } else { self.dge_mode },
                dynamic: self.src.indirect.is_some() || self.dst.indirect.is_some(),
                indexed: is_indexed(&self.src) || is_indexed(&self.dst),
                indirect: gathers,
                transpose: true,
                cast: false,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::ids::RegId;
    use crate::testing::TestMachine;
    use crate::view::Indirect;

    fn transpose(dst: &View, src: &View) -> DmaTranspose {
        DmaTranspose {
            dst: dst.clone(),
            src: src.clone(),
            axes: Ints::default(),
            priority: None,
            dge_mode: DgeMode::Unknown,
            oob_mode: OobMode::Error,
        }
    }

    #[test]
    fn swaps_two_dimensions_bit_by_bit() {
        let mut m = TestMachine::new(Target::Trn2);
        let bits = [0x7FA1_2345, 1, 2, 3, 4, 0xFFFF_FFFF];
        let src = m.tensor_bits("s", Space::Hbm, DType::F32, &[2, 3], &bits);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[3, 2]);
        m.run(transpose(&dst, &src)).unwrap();
        assert_eq!(m.bits(&dst), [0x7FA1_2345, 3, 1, 4, 2, 0xFFFF_FFFF]);
    }

    #[test]
    fn keeps_the_middle_of_four_dimensions() {
        let mut m = TestMachine::new(Target::Trn2);
        let bits: Vec<u32> = (0..24).collect();
        let src = m.tensor_bits("s", Space::Hbm, DType::I16, &[2, 3, 2, 2], &bits);
        let dst = m.tensor("d", Space::Sbuf, DType::I16, &[2, 3, 2, 2]);
        m.run(DmaTranspose { axes: Ints(vec![3, 1, 2, 0]), ..transpose(&dst, &src) }).unwrap();
        let got = m.bits(&dst);
        for (at, &x) in got.iter().enumerate() {
            let (a, b, c, d) = (at / 12, at / 4 % 3, at / 2 % 2, at % 2);
            assert_eq!(x as usize, d * 12 + b * 4 + c * 2 + a);
        }
    }

    #[test]
    fn gathers_rows_in_column_order_of_the_index() {
        let mut m = TestMachine::new(Target::Trn2);
        let values: Vec<u32> = (0..300).flat_map(|row| [row, 1000 + row]).collect();
        let table = m.tensor_bits("t", Space::Hbm, DType::U16, &[300, 2], &values);
        // Element (p, n) of the index selects row 255 - (n * 128 + p).
        let index: Vec<u32> = (0..256).map(|i| 255 - (i % 2 * 128 + i / 2)).collect();
        let index = m.tensor_bits("i", Space::Sbuf, DType::U32, &[128, 2], &index);
        let mut src = table;
        src.dims[0].count = 256;
        src.indirect = Some(Box::new(Indirect { index: Index::Vector(index), stride: 2, bound: 300 }));
        let dst = m.tensor("d", Space::Sbuf, DType::U16, &[2, 256]);
        m.run(transpose(&dst, &src)).unwrap();
        let want: Vec<u32> = (0..256).map(|i| 255 - i).chain((0..256).map(|i| 1255 - i)).collect();
        assert_eq!(m.bits(&dst), want);
    }

    #[test]
    fn skips_what_a_register_takes_out_of_bounds() {
        let mut m = TestMachine::new(Target::Trn2);
        let values: Vec<u32> = (0..32).collect();
        let src = m.tensor_bits("s", Space::Hbm, DType::BF16, &[2, 1, 16], &values);
        let mut row = View { dims: src.dims[1..].iter().copied().collect(), ..src.clone() };
        row.indirect = Some(Box::new(Indirect { index: Index::Register(RegId(0)), stride: 16, bound: 2 }));
        let dst = m.tensor_bits("d", Space::Sbuf, DType::BF16, &[16, 1], &[7; 16]);
        let i = DmaTranspose { oob_mode: OobMode::Skip, ..transpose(&dst, &row) };
        m.set_register(RegId(0), 2);
        m.run(i.clone()).unwrap();
        assert_eq!(m.bits(&dst), [7; 16]);
        m.set_register(RegId(0), 1);
        m.run(i).unwrap();
        assert_eq!(m.bits(&dst), (16..32).collect::<Vec<_>>());
    }

    #[test]
    fn broken_rules_quote_the_numbers() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor("s", Space::Hbm, DType::F32, &[16, 8]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[8, 16]);
        let e = m.check(transpose(&dst, &dst)).unwrap_err();
        assert!(e.contains("`dst` is [8, 16], the transpose of `src` [8, 16] is [16, 8]"), "{e}");
        let e = m.check(DmaTranspose { axes: Ints(vec![0, 1]), ..transpose(&dst, &src) }).unwrap_err();
        assert!(e.contains("`axes` is [0, 1], but must be [1, 0]"), "{e}");
        let e = m.check(DmaTranspose { dge_mode: DgeMode::HwDge, ..transpose(&dst, &src) }).unwrap_err();
        assert!(e.contains("`src` is float32, but hwdge transposes 2-byte types"), "{e}");
        let e = m.check(DmaTranspose { dge_mode: DgeMode::SwDge, ..transpose(&dst, &src) }).unwrap_err();
        assert!(e.contains("`dge_mode` is swdge, but the address of `src` is known"), "{e}");
        let half = m.tensor("h", Space::Sbuf, DType::BF16, &[8, 16]);
        let e = m.check(transpose(&half, &src)).unwrap_err();
        assert!(e.contains("`dst` is bfloat16, `src` is float32"), "{e}");
    }
}
