//! `nisa.nc_matmul_mx`: a product of blocks of MXFP8 or MXFP4 on the tensor engine.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use crate::arch::Arch;
use crate::arg::Ints;
use crate::gemm::multiply;
use crate::inst::indirection::columns;
use crate::inst::mx::{self, BLOCK};
use crate::inst::tensor::array_tile;
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Matmul, Operand, Work, WorkKind};

operands! {
    /// Multiplies the transpose of `stationary` `[K, M]` with `moving` `[K, N]`, both in packed elements of four, into the PSUM tile
    /// `dst` `[M, N]`. The contraction runs over the partitions and the four numbers of each element; each number counts times the
    /// scale of its block of 8 partitions (Trn3).
    pub struct NcMatmulMx: "nc_matmul_mx" on [Tensor from Trn3] {
        /// The product, in PSUM, float32 or bfloat16.
        [Out Psum; F32 BF16] dst: View,
        /// The operand loaded into the array, packed.
        [In Sbuf; F8E5M2X4 F8E4M3FNX4 F4E2M1FNX4] stationary: View,
        /// The operand streamed through the array, packed.
        [In Sbuf; F8E5M2X4 F8E4M3FNX4 F4E2M1FNX4] moving: View,
        /// Scales of `stationary`: four rows in each quadrant of 32 partitions.
        [In Sbuf; F8E8M0 U8] stationary_scale: View,
        /// Scales of `moving`.
        [In Sbuf; F8E8M0 U8] moving_scale: View,
        /// `(start_row, 0)` of the rows of the array to use; set together with `tile_size`.
        [Attr] tile_position: Ints = Ints(Vec::new()),
        /// `(rows, 128)`: how many rows of the array to use.
        [Attr] tile_size: Ints = Ints(Vec::new()),
        /// Add to `dst` (True), overwrite it (False), or overwrite what no matmul has written yet and add to the rest (None).
        [Attr] accumulate: Option<bool> = None,
    }
    instead: "use nisa.nc_matmul with float8_e4m3",
    numerics: "Each number is exact in fp32 times the scale of its block; products and their sum over partitions and \
        packed elements are fp32, rounded once when written to PSUM. The order of the sum is ours: the \
        hardware's is not documented.",
    cost: Documented "Loads `stationary` and its scales (rows x columns of packed elements), then streams the columns of \
        `moving` in one pass: four rows of the contraction for each partition.",
    rules: {
        "tile-pair": "`tile_position` and `tile_size` are (row, column) pairs and given together",
        "tile-rows": "the row tile size is 1 to 128",
        "tile-columns": "the column tile size is 128, the start column 0",
        "tile-position": "a tile starts at a multiple of 32, 64 or 128, whichever holds it, within the array's 128",
        "quadrants": "`stationary` has 32, 64, 96 or 128 partitions",
        "contraction": "`stationary` and `moving` have the same number of partitions",
        "rows": "`stationary` has at most as many partitions as the row tile",
        "columns": "`stationary` has an even number of packed elements per partition, at most 128",
        "moving-size": "`moving` has at most 4096 packed elements per partition for a float32 `dst`, 8192 for bfloat16",
        "dst-size": "`dst` has a partition for each element of `stationary` and an element for each of `moving`",
        "scale-size": "scales have one element for each packed element",
        "scale-partitions": "scales span four partitions in each quadrant of the data",
        "scale-start": "scales start at partition 0, 4, 8 or 12 of a quadrant",
        "scale-quadrant": "scales are in the quadrant of their data",
        "scale-stride": "scales are in neighbouring partitions",
    },
}

impl NcMatmulMx {
    /// `(position, size)` of the array tile.
    fn tile(&self) -> ((u32, u32), (u32, u32)) {
        array_tile::tile(&self.tile_position, &self.tile_size)
    }

    fn validate_tile(&self, arch: &Arch) -> Result<(), Violation> {
        let Some(([row, column], [rows, columns])) = array_tile::given(&self.tile_position, &self.tile_size)? else {
            return Ok(());
        };
        let refuse = |name, message| Err(Violation::new("operand-value", name, message));
        if columns != 128 {
            return refuse(
                "tile_size",
                format!("column size {columns}, but must be 128: nc_matmul_mx tiles rows only"),
            );
        }
        if column != 0 {
            return refuse(
                "tile_position",
                format!("start column {column}, but must be 0: nc_matmul_mx tiles rows only"),
            );
        }
        array_tile::check_axis("row", row, rows, arch)
    }

    /// Data and scales are one logical tensor: one index selects both, or neither is indirect.
    fn validate_indirection(&self) -> Result<(), Violation> {
        let pairs = [
            (("stationary", &self.stationary), ("stationary_scale", &self.stationary_scale)),
            (("moving", &self.moving), ("moving_scale", &self.moving_scale)),
        ];
        for ((data_name, data), (name, scale)) in pairs {
            if columns(data).map(|c| c.1) != columns(scale).map(|c| c.1) {
                return Err(Violation::new(
                    "indirect-view",
                    name,
                    format!("`{data_name}` and `{name}` must be indirect by the same index, or both not be indirect"),
                ));
            }
        }
        array_tile::check_indirect(self.tile().0, [("dst", &self.dst), pairs[0].0, pairs[1].0])
    }

    fn validate_sizes(&self, arch: &Arch) -> Result<(), Violation> {
        mx::check_partitions("stationary", &self.stationary)?;
        array_tile::check_contraction(&self.stationary, &self.moving, self.tile().1.0)?;
        let (m, n) = (self.stationary.free_elements(), self.moving.free_elements());
        if !m.is_multiple_of(2) || m > arch.stationary_free_max as usize {
            return Err(Violation::new(
                "tile-size",
                "stationary",
                format!(
                    "`stationary` has {m} packed elements per partition, but must be even and at most {}",
                    arch.stationary_free_max
                ),
            )
            .help("tile the rows of the result"));
        }
        let n_max = arch.moving_max(self.dst.dtype);
        if n > n_max as usize {
            return Err(Violation::new(
                "tile-size",
                "moving",
                format!(
                    "`moving` has {n} packed elements per partition; the limit with a {} result is {n_max}",
                    self.dst.dtype
                ),
            )
            .help(format!("tile the columns of the result{}", arch.more_columns(self.dst.dtype))));
        }
        array_tile::check_result(&self.dst, &self.stationary, &self.moving, (m, n))
    }
}

/// The scaled numbers of an operand: `[4 K, columns]`, with the four of a packed element in consecutive rows.
fn dequantized(machine: &mut dyn Machine, data: &View, scale: &View) -> Result<Array2<f32>, Fault> {
    let Some(element) = data.dtype.mx_element() else {
        return Err(Fault::new("internal", "nc_matmul_mx of a type that is not packed"));
    };
    let bits = machine.read_bits(data)?;
    let scales = mx::read_scales(machine, scale, data.partitions())?;
    let mut out = Array2::zeros((4 * bits.nrows(), bits.ncols()));
    for ((row, column), &packed) in bits.indexed_iter() {
        let scale = scales[[row / BLOCK, column]];
        for (i, x) in element.unpack(packed).into_iter().enumerate() {
            out[[4 * row + i, column]] = x * scale;
        }
    }
    Ok(out)
}

impl Instruction for NcMatmulMx {
    const PLACING: Placing = Placing::Fixed;
    const INDIRECT: &'static [&'static str] = &["dst", "stationary", "moving", "stationary_scale", "moving_scale"];

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Tensor
    }

    const OWN_LAYOUT: &'static [&'static str] = &["stationary_scale", "moving_scale"];
    const PACKED: &'static [&'static str] = &["stationary", "moving"];

    fn completed(self) -> Self {
        NcMatmulMx {
            stationary_scale: mx::completed(self.stationary_scale, &self.stationary),
            moving_scale: mx::completed(self.moving_scale, &self.moving),
            ..self
        }
    }

    fn partitions_read(&self, operand: &View) -> Option<Vec<u32>> {
        let is_scale = [&self.stationary_scale, &self.moving_scale].iter().any(|scale| std::ptr::eq(operand, *scale));
        is_scale.then(|| mx::scale_rows(self.stationary.partitions()))
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        self.validate_tile(context.arch)?;
        self.validate_indirection()?;
        self.validate_sizes(context.arch)?;
        for (data, scale) in [
            (("stationary", &self.stationary), ("stationary_scale", &self.stationary_scale)),
            (("moving", &self.moving), ("moving_scale", &self.moving_scale)),
        ] {
            mx::check_scale(data, data.1.free_elements(), scale, context)?;
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
        if self.accumulate == Some(true) {
            footprint.reads.push(&self.dst);
        }
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let stationary = dequantized(machine, &self.stationary, &self.stationary_scale)?;
        let moving = dequantized(machine, &self.moving, &self.moving_scale)?;
        let add = machine.begin_accumulate(&self.dst, self.accumulate)?;
        let mut out =
            if add { machine.read_tile(&self.dst)? } else { Array2::zeros((stationary.ncols(), moving.ncols())) };
        multiply(stationary.view(), moving.view(), add, out.view_mut());
        machine.write_tile(&self.dst, out.view())
    }

    fn accumulation(&self, _arch: &Arch) -> Option<(&View, Option<bool>)> {
        Some((&self.dst, self.accumulate))
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Product)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        let (tile_position, (rows, columns)) = self.tile();
        let tile_size = (array_tile::of_array(rows, context.arch), array_tile::of_array(columns, context.arch));
        Work {
            engine: self.engine(context.arch),
            kind: WorkKind::Matmul(Matmul {
                rows: self.stationary.partitions(),
                columns: self.stationary.free_elements() as u32,
                moving: self.moving.free_elements() as u32,
                stationary_dtype: self.stationary.dtype,
                moving_dtype: self.moving.dtype,
                moving_layout: Operand::of(&self.moving),
                transpose: false,
                double_row: false,
                stationary_onezero: false,
                moving_onezero: false,
                tile_position,
                tile_size,
                stationary: self.stationary.clone(),
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

    /// Operands of 32 partitions: each element packs 1, 2, 3 and 4 in the given format, scales are 1.
    fn ones(m: &mut TestMachine, packed: u32, dtype: DType) -> NcMatmulMx {
        let s = m.tensor_bits("s", Space::Sbuf, dtype, &[32, 2], &[packed; 64]);
        let x = m.tensor_bits("x", Space::Sbuf, dtype, &[32, 3], &[packed; 96]);
        let ss = m.tensor_bits("ss", Space::Sbuf, DType::F8E8M0, &[4, 2], &[127; 8]);
        let xs = m.tensor_bits("xs", Space::Sbuf, DType::U8, &[4, 3], &[127; 12]);
        let d = m.tensor("d", Space::Psum, DType::F32, &[2, 3]);
        NcMatmulMx {
            dst: d,
            stationary: s,
            moving: x,
            stationary_scale: ss,
            moving_scale: xs,
            tile_position: Ints::default(),
            tile_size: Ints::default(),
            accumulate: None,
        }
    }

    #[test]
    fn contracts_partitions_and_the_four_of_an_element() {
        // 1, 2, 3, 4 in each of the formats.
        for (dtype, packed) in
            [(DType::F8E4M3FNX4, 0x4844_4038), (DType::F8E5M2X4, 0x4442_403c), (DType::F4E2M1FNX4, 0x6542)]
        {
            let mut m = TestMachine::new(Target::Trn3);
            let mm = ones(&mut m, packed, dtype);
            m.run(mm.clone()).unwrap();
            assert_eq!(m.f32s(&mm.dst), [32.0 * 30.0; 6], "{dtype}");
            m.run(mm.clone()).unwrap();
            assert_eq!(m.f32s(&mm.dst), [2.0 * 32.0 * 30.0; 6], "accumulates by itself");
            m.run(NcMatmulMx { accumulate: Some(false), ..mm.clone() }).unwrap();
            assert_eq!(m.f32s(&mm.dst), [32.0 * 30.0; 6]);
            assert!(m.uninitialized.is_empty());
        }
    }

    #[test]
    fn a_scale_counts_for_its_block() {
        let mut m = TestMachine::new(Target::Trn3);
        let mm = ones(&mut m, 0x38, DType::F8E4M3FNX4);
        // Scale row 1 belongs to column 0 of the result's rows: 8 partitions count 4 times.
        m.set_bits(&mm.stationary_scale, &[127, 127, 129, 127, 127, 127, 127, 127]);
        m.set_bits(&mm.moving_scale, &[127, 127, 126, 127, 127, 126, 127, 127, 126, 127, 127, 126]);
        m.run(mm.clone()).unwrap();
        assert_eq!(m.f32s(&mm.dst), [56.0, 56.0, 28.0, 32.0, 32.0, 16.0]);
        m.set_bits(&mm.moving_scale, &[255; 12]);
        m.run(NcMatmulMx { accumulate: Some(false), ..mm.clone() }).unwrap();
        assert!(m.f32s(&mm.dst).iter().all(|x| x.is_nan()), "the scale 255 is NaN");
    }

    #[test]
    fn broken_rules_quote_the_numbers() {
        let check = |target, change: &dyn Fn(&mut TestMachine, &mut NcMatmulMx)| {
            let mut m = TestMachine::new(target);
            let mut mm = ones(&mut m, 0, DType::F8E4M3FNX4);
            change(&mut m, &mut mm);
            m.check(mm).err().unwrap_or_default()
        };
        let trn3 = |change: &dyn Fn(&mut TestMachine, &mut NcMatmulMx), want: &str| {
            let got = check(Target::Trn3, change);
            assert!(got.contains(want), "got {got:?}, want {want:?}");
        };
        assert_eq!(check(Target::Trn3, &|_, _| {}), "");
        assert!(check(Target::Trn2, &|_, _| {}).contains("needs trn3 (target is trn2)"));
        let sbuf = |m: &mut TestMachine, dtype, shape: &[u32]| m.tensor("o", Space::Sbuf, dtype, shape);
        let fp8 = DType::F8E4M3FNX4;
        trn3(&|m, mm| mm.stationary = sbuf(m, DType::BF16, &[32, 2]), "`stationary` is bfloat16");
        trn3(&|m, mm| mm.dst = m.tensor("o", Space::Psum, DType::F16, &[2, 3]), "`dst` is float16");
        trn3(&|m, mm| mm.stationary = sbuf(m, fp8, &[33, 2]), "`stationary` has 33 partitions");
        trn3(&|m, mm| mm.stationary = sbuf(m, fp8, &[64, 2]), "`moving` has 32 partitions, `stationary` has 64");
        trn3(&|m, mm| mm.stationary = sbuf(m, fp8, &[32, 3]), "3 packed elements per partition, but must be even");
        trn3(&|m, mm| mm.stationary = sbuf(m, fp8, &[32, 130]), "at most 128");
        trn3(&|m, mm| mm.moving = sbuf(m, fp8, &[32, 4097]), "the limit with a float32 result is 4096");
        trn3(&|m, mm| mm.moving = sbuf(m, fp8, &[32, 5]), "2 partitions x 3 elements");
        trn3(&|m, mm| mm.moving_scale = sbuf(m, DType::BF16, &[4, 3]), "`moving_scale` is bfloat16");
        trn3(&|m, mm| mm.moving_scale = sbuf(m, DType::U8, &[4, 4]), "= 4 scales per partition");
        trn3(&|m, mm| mm.moving_scale = sbuf(m, DType::U8, &[3, 3]), "spans 3 partitions");
        let tiled = |position: &[i64], size: &[i64], want: &str| {
            let (position, size) = (position.to_vec(), size.to_vec());
            trn3(
                &|_, mm| {
                    mm.tile_position = Ints(position.clone());
                    mm.tile_size = Ints(size.clone());
                },
                want,
            );
        };
        tiled(&[32, 0], &[32, 128], "");
        tiled(&[32, 0], &[], "`tile_size` has 0 values");
        tiled(&[0, 0], &[16, 128], "the row tile has 16");
        tiled(&[0, 0], &[32, 64], "column size 64, but must be 128");
        tiled(&[0, 32], &[32, 128], "start column 32, but must be 0");
        tiled(&[16, 0], &[32, 128], "start row 16");
        trn3(
            &|m, mm| {
                mm.stationary = sbuf(m, fp8, &[64, 2]);
                mm.moving = sbuf(m, fp8, &[64, 3]);
                mm.tile_position = Ints(vec![0, 0]);
                mm.tile_size = Ints(vec![32, 128]);
            },
            "64 partitions, but the row tile has 32",
        );
    }
}
