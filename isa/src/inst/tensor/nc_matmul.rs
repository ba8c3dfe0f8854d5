//! `nisa.nc_matmul`: `dst = stationary.T @ moving` on the tensor engine.

use crate::inst::values::{Feeds, Values};
use ndarray::{ArrayView2, Axis};

use crate::arch::Arch;
use crate::arg::Ints;
use crate::dtype::DType;
use crate::gemm::{multiply, tensor_operand};
use crate::inst::result::{Given, ResultTile};
use crate::inst::tensor::array_tile;
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::{Engine, PerfMode, Space};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Matmul, Operand, Work, WorkKind};

operands! {
    /// Multiplies the transpose of `stationary` `[K, M]` with `moving` `[K, N]` into the PSUM tile `dst` `[M, N]`.
    /// The contraction runs over the partitions, in fp32.
    pub struct NcMatmul: "nc_matmul" on [Tensor] {
        /// The product, in PSUM.
        [Out Psum] dst: View,
        /// The operand loaded into the array: contraction over partitions, result rows over free elements.
        [In Sbuf] stationary: View,
        /// The operand streamed through the array: contraction over partitions, result columns over free elements.
        [In Sbuf] moving: View,
        /// Hint: `stationary` holds ones and zeros only.
        [Attr] is_stationary_onezero: bool = false,
        /// Hint: `moving` holds ones and zeros only.
        [Attr] is_moving_onezero: bool = false,
        /// Transpose mode: `moving` is an identity (or permutation), the bits of `stationary` are moved unchanged (Trn2 on).
        [Attr] is_transpose: bool = false,
        /// Add to `dst` (True), overwrite it (False), or overwrite what no matmul has written yet and add to the rest (None).
        [Attr] accumulate: Option<bool> = None,
        /// `(start_row, start_column)` of the array tile to use; set together with `tile_size`.
        [Attr] tile_position: Ints = Ints(Vec::new()),
        /// `(rows, columns)` of the array tile to use.
        [Attr] tile_size: Ints = Ints(Vec::new()),
        /// `double_row` contracts two FP8 rows at once: operands are `[K, 2, M]` and `[K, 2, N]`.
        [Attr] perf_mode: PerfMode = PerfMode::None,
    }
    numerics: "Operands are read exactly (tfloat32: rounded to 10 mantissa bits), products and their sum over the \
        partitions are fp32, and a sum is rounded once when it is written to PSUM. Accumulation adds to what \
        PSUM holds in the dtype of `dst`. The order of the fp32 sum is ours: the hardware's is not documented. \
        In transpose mode from trn2 on the bits of `stationary` move unchanged.",
    cost: Measured "Loads `stationary` (rows x columns of weights; not again while the same view stays), then streams the \
        columns of `moving`, at least 64. fp32 takes 4 passes, other types and transposes 1 (fp32 transposes 3); \
        double_row contracts two rows in one pass; a hint of ones and zeros halves fp32.",
    rules: {
        "double-row-target": "double_row needs trn2 or later",
        "double-row-transpose": "double_row is not combined with `is_transpose`",
        "double-row-columns": "double_row is not combined with column tiling",
        "double-row-dtypes": "double_row takes 8-bit floats",
        "double-row-shape": "with double_row the first free dimension of both operands is 2",
        "double-row-stride": "with double_row the two rows of `moving` are a multiple of 16 elements apart",
        "tile-pair": "`tile_position` and `tile_size` are (row, column) pairs and given together",
        "tile-size": "row and column tile sizes are 1 to 128",
        "tile-position": "a tile starts at a multiple of 32 (from trn2 on), 64 or 128, whichever holds it, within the array's 128",
        "inputs": "operands are float8_e4m3, float8_e5m2, bfloat16, float16, tfloat32 or float32; float8_e4m3fn from trn3 \
            on",
        "ocp-target": "float8_e4m3fn needs trn3",
        "fp32-mix": "float32 and tfloat32 are multiplied only with float32 or tfloat32",
        "e4m3-mix": "float8_e4m3 is not multiplied with float8_e4m3fn",
        "dst-dtype": "`dst` is float32; bfloat16 too from trn3 on; in transpose mode also the dtype of `stationary`",
        "fp8-transpose": "in transpose mode an 8-bit float is written as 16 bits from trn2 on: a `dst` of 8 bits has every second element of its \
            tile",
        "contraction": "`stationary` and `moving` have the same number of partitions",
        "rows": "`stationary` has at most as many partitions as the row tile (128 without tiling)",
        "columns": "`stationary` has at most as many elements per partition as the column tile (128 without tiling)",
        "moving-size": "`moving` has at most 512 elements per partition; from trn3 on 4096 for a float32 and 8192 for a bfloat16 \
            `dst`",
        "one-bank": "before trn3 `dst` is in one PSUM bank",
        "dst-size": "`dst` has a partition for each element of `stationary` and an element for each of `moving`",
    },
}

impl NcMatmul {
    /// Whether each partition holds two contraction rows.
    pub(super) fn double(&self) -> bool {
        self.perf_mode == PerfMode::DoubleRow
    }

    /// Free elements of an operand, without the doubled row.
    pub(super) fn columns_of(&self, view: &View) -> usize {
        if self.double() { view.free_elements() / 2 } else { view.free_elements() }
    }

    /// Whether the bits of `stationary` are moved unchanged.
    pub(super) fn exact(&self, arch: &Arch) -> bool {
        self.is_transpose && arch.exact_transpose
    }

    /// `(position, size)` of the array tile.
    pub(super) fn tile(&self) -> ((u32, u32), (u32, u32)) {
        array_tile::tile(&self.tile_position, &self.tile_size)
    }
}

impl Instruction for NcMatmul {
    const PLACING: Placing = Placing::Fixed;
    const INDIRECT: &'static [&'static str] = &["dst", "stationary", "moving"];

    fn result(given: &Given<'_>) -> Option<ResultTile> {
        let (s, m) = (given.view("stationary")?, given.view("moving")?);
        Some(ResultTile {
            shape: [s.free_elements() as u32, m.free_elements() as u32].into_iter().collect(),
            dtype: DType::F32,
            space: Space::Psum,
        })
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Tensor
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        self.check_rules(context.arch)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
        if self.accumulate == Some(true) {
            footprint.reads.push(&self.dst);
        }
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        self.check_hints(machine)?;
        if self.exact(machine.context().arch) {
            let moving = machine.read_tile(&self.moving)?;
            match permutation(moving.view()) {
                // Transpose mode overwrites: there is no sum to add to.
                Some(sources) if self.accumulate != Some(true) => {
                    machine.begin_accumulate(&self.dst, Some(false))?;
                    return self.move_bits(machine, &sources);
                }
                Some(_) => {}
                None => self.note_no_permutation(machine, moving.view()),
            }
        }
        if !self.double() && self.stationary.dtype != DType::TF32 && self.moving.dtype != DType::TF32 {
            return machine.multiply(&self.dst, &self.stationary, &self.moving, self.accumulate);
        }
        let add = machine.begin_accumulate(&self.dst, self.accumulate)?;
        let (double, s_type, m_type) = (self.double(), self.stationary.dtype, self.moving.dtype);
        machine.contract(&self.dst, &self.stationary, &self.moving, &mut |stationary, moving, mut out| {
            let stationary = tensor_operand(stationary, s_type);
            let moving = tensor_operand(moving, m_type);
            if double {
                let (m, n) = (out.nrows(), out.ncols());
                let (s0, s1) = stationary.view().split_at(Axis(1), m);
                let (m0, m1) = moving.view().split_at(Axis(1), n);
                multiply(s0, m0, add, out.view_mut());
                multiply(s1, m1, true, out);
            } else {
                multiply(stationary.view(), moving.view(), add, out);
            }
        })
    }

    fn accumulation(&self, arch: &Arch) -> Option<(&View, Option<bool>)> {
        // Transpose mode overwrites: there is no sum to add to.
        let mode = if self.exact(arch) { self.accumulate.or(Some(false)) } else { self.accumulate };
        Some((&self.dst, mode))
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
                columns: self.columns_of(&self.stationary) as u32,
                moving: self.columns_of(&self.moving) as u32,
                stationary_dtype: self.stationary.dtype,
                moving_dtype: self.moving.dtype,
                moving_layout: Operand::of(&self.moving),
                transpose: self.exact(context.arch),
                double_row: self.double(),
                stationary_onezero: self.is_stationary_onezero,
                moving_onezero: self.is_moving_onezero,
                tile_position,
                tile_size,
                stationary: self.stationary.clone(),
            }),
        }
    }
}

impl NcMatmul {
    /// Transpose mode: column `n` of the result is row `sources[n]` of `stationary`, bit by bit.
    fn move_bits(&self, machine: &mut dyn Machine, sources: &[usize]) -> Result<(), Fault> {
        if self.dst.dtype == self.stationary.dtype || self.stationary.dtype.size() == 1 {
            let bits = machine.read_bits(&self.stationary)?;
            // 8-bit data lands in the low half of 16-bit elements.
            if self.dst.dtype != DType::F32 {
                return machine.write_bits(&self.dst, bits.select(Axis(0), sources).t());
            }
        }
        let tile = machine.read_tile(&self.stationary)?;
        machine.write_tile(&self.dst, tile.select(Axis(0), sources).t())
    }
}

impl NcMatmul {
    /// Checks the hints of ones and zeros, which matter for float32 only.
    fn check_hints(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let hints = [
            ("is_stationary_onezero", "stationary", self.is_stationary_onezero, &self.stationary),
            ("is_moving_onezero", "moving", self.is_moving_onezero, &self.moving),
        ];
        for (hint, name, given, view) in hints {
            if !given || view.dtype != DType::F32 {
                continue;
            }
            let tile = machine.read_tile(view)?;
            // NaN comes from unwritten memory, which is reported separately.
            let other = tile.indexed_iter().find(|(_, x)| **x != 0.0 && **x != 1.0 && !x.is_nan());
            if let Some(((row, column), x)) = other {
                let message = format!(
                    "`{hint}` is True, but `{name}` has {x:?} in partition {row}, element {column}: with the hint it may hold 0 and 1 only"
                );
                let found = Violation::new("unexpected-values", hint, message);
                machine
                    .note_unexpected(found.help("leave the hint out; the simulator multiplies the values as they are"));
            }
        }
        Ok(())
    }

    /// Reports, in transpose mode, the first column of `moving` that selects no row of `stationary`. A column of zeros selects none, but is harmless.
    fn note_no_permutation(&self, machine: &mut dyn Machine, moving: ArrayView2<'_, f32>) {
        let bad = moving.columns().into_iter().enumerate().find_map(|(n, column)| {
            let mut set = column.iter().enumerate().filter(|(_, x)| **x != 0.0 && !x.is_nan());
            match (set.next(), set.next()) {
                (Some(first), Some(second)) => {
                    Some((n, format!("{:?} and {:?} in partitions {} and {}", first.1, second.1, first.0, second.0)))
                }
                (Some((row, x)), None) if *x != 1.0 => Some((n, format!("{x:?} in partition {row}"))),
                _ => None,
            }
        });
        if let Some((column, got)) = bad {
            let message = format!(
                "`is_transpose` is True, but `moving` is neither an identity nor a permutation: column {column} has {got}, it must have a single 1"
            );
            let help = "is_transpose=True moves `stationary` through an identity; leave it out to multiply. The simulator multiplies";
            machine.note_unexpected(Violation::new("unexpected-values", "is_transpose", message).help(help));
        }
    }
}

/// The row selected by each column, if each column has exactly one non-zero element, and that is 1.
fn permutation(moving: ArrayView2<'_, f32>) -> Option<Vec<usize>> {
    moving
        .columns()
        .into_iter()
        .map(|column| {
            let mut set = column.iter().enumerate().filter(|(_, x)| **x != 0.0);
            match (set.next(), set.next()) {
                (Some((row, &1.0)), None) => Some(row),
                _ => None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::Target;
    use crate::names::Space;
    use crate::testing::TestMachine;
    use crate::view::Dim;

    fn matmul(dst: &View, stationary: &View, moving: &View) -> NcMatmul {
        NcMatmul {
            dst: dst.clone(),
            stationary: stationary.clone(),
            moving: moving.clone(),
            is_stationary_onezero: false,
            is_moving_onezero: false,
            is_transpose: false,
            accumulate: None,
            tile_position: Ints::default(),
            tile_size: Ints::default(),
            perf_mode: PerfMode::None,
        }
    }

    /// Values that need all 24 bits, so that the order of a sum affects the result.
    fn noise(n: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
        (0..n)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                (state as f32 / u32::MAX as f32 - 0.5) * 4.0
            })
            .collect()
    }

    fn sbuf(m: &mut TestMachine, dtype: DType, shape: &[u32], values: &[f32]) -> View {
        m.tensor_f32("t", Space::Sbuf, dtype, shape, values)
    }

    /// Operands filled with zeros, for checks.
    fn operands(target: Target, k: u32, m: u32, n: u32, dtype: DType) -> (TestMachine, NcMatmul) {
        let mut machine = TestMachine::new(target);
        let s = machine.tensor("s", Space::Sbuf, dtype, &[k, m]);
        let x = machine.tensor("x", Space::Sbuf, dtype, &[k, n]);
        let d = machine.tensor("d", Space::Psum, DType::F32, &[m, n]);
        (machine, matmul(&d, &s, &x))
    }

    #[test]
    fn multiplies_the_transpose() {
        let mut m = TestMachine::new(Target::Trn2);
        let s = sbuf(&mut m, DType::F32, &[2, 3], &[1., 2., 3., 4., 5., 6.]);
        let x = sbuf(&mut m, DType::F32, &[2, 2], &[1., 10., 100., 1000.]);
        let d = m.tensor("d", Space::Psum, DType::F32, &[3, 2]);
        m.run(matmul(&d, &s, &x)).unwrap();
        assert_eq!(m.f32s(&d), [401., 4010., 502., 5020., 603., 6030.]);
        assert!(m.uninitialized.is_empty());
    }

    #[test]
    fn accumulates_by_the_flag_or_by_itself() {
        let mut m = TestMachine::new(Target::Trn2);
        let s = sbuf(&mut m, DType::BF16, &[1, 1], &[3.]);
        let x = sbuf(&mut m, DType::BF16, &[1, 2], &[1., 2.]);
        let d = m.tensor("d", Space::Psum, DType::F32, &[1, 2]);
        let mm = matmul(&d, &s, &x);
        m.run(mm.clone()).unwrap();
        assert_eq!(m.f32s(&d), [3., 6.]);
        m.run(mm.clone()).unwrap();
        assert_eq!(m.f32s(&d), [6., 12.]);
        m.run(NcMatmul { accumulate: Some(false), ..mm.clone() }).unwrap();
        assert_eq!(m.f32s(&d), [3., 6.]);
        m.run(NcMatmul { accumulate: Some(true), ..mm }).unwrap();
        assert_eq!(m.f32s(&d), [6., 12.]);
    }

    #[test]
    fn adds_only_where_a_matmul_has_written() {
        let mut m = TestMachine::new(Target::Trn2);
        let s = sbuf(&mut m, DType::BF16, &[1, 1], &[1.]);
        let x = sbuf(&mut m, DType::BF16, &[1, 4], &[1., 2., 3., 4.]);
        let d = m.tensor("d", Space::Psum, DType::F32, &[1, 4]);
        let mut half = d.clone();
        half.dims[1].count = 2;
        let mut x_half = x.clone();
        x_half.dims[1].count = 2;
        m.run(matmul(&half, &s, &x_half)).unwrap();
        m.run(matmul(&d, &s, &x)).unwrap();
        assert_eq!(m.f32s(&d), [2., 4., 3., 4.]);
    }

    #[test]
    fn tfloat32_operands_lose_mantissa() {
        let exact = 1.0 + 1.0 / 2048.0;
        let mut m = TestMachine::new(Target::Trn2);
        let s = sbuf(&mut m, DType::TF32, &[1, 2], &[exact, 1.0 + 3.0 / 2048.0]);
        let x = sbuf(&mut m, DType::F32, &[1, 1], &[exact]);
        let d = m.tensor("d", Space::Psum, DType::F32, &[2, 1]);
        m.run(matmul(&d, &s, &x)).unwrap();
        // Ties round to even: down to 1, up to 1 + 2/1024. The fp32 operand is not rounded.
        assert_eq!(m.f32s(&d), [exact, exact * (1.0 + 2.0 / 1024.0)]);
    }

    #[test]
    fn transpose_mode_moves_bits_on_trn2_and_multiplies_on_trn1() {
        let nan = 0x7FA1_2345;
        let values = [nan, 0x8000_0000, 0x7F80_0000, 0x3F80_0000];
        for (target, exact) in [(Target::Trn1, false), (Target::Trn2, true)] {
            let mut m = TestMachine::new(target);
            let s = m.tensor_bits("s", Space::Sbuf, DType::F32, &[2, 2], &values);
            let eye = sbuf(&mut m, DType::F32, &[2, 2], &[1., 0., 0., 1.]);
            let d = m.tensor("d", Space::Psum, DType::F32, &[2, 2]);
            m.run(NcMatmul { is_transpose: true, ..matmul(&d, &s, &eye) }).unwrap();
            if exact {
                assert_eq!(m.bits(&d), [nan, 0x7F80_0000, 0x8000_0000, 0x3F80_0000]);
            } else {
                // Infinity times zero is NaN: all values of the row are lost.
                assert!(m.f32s(&d)[..2].iter().all(|x| x.is_nan()));
            }
        }
    }

    #[test]
    fn transpose_mode_writes_the_input_type() {
        let mut m = TestMachine::new(Target::Trn2);
        let s = sbuf(&mut m, DType::BF16, &[2, 1], &[5., 7.]);
        let swap = sbuf(&mut m, DType::BF16, &[2, 2], &[0., 1., 1., 0.]);
        let d = m.tensor("d", Space::Psum, DType::BF16, &[1, 2]);
        m.run(NcMatmul { is_transpose: true, ..matmul(&d, &s, &swap) }).unwrap();
        assert_eq!(m.f32s(&d), [7., 5.]);
        let e = m.check(matmul(&d, &s, &swap)).unwrap_err();
        assert!(e.contains("`dst` is bfloat16") && e.contains("float32"), "{e}");
    }

    #[test]
    fn double_row_contracts_two_rows_per_partition() {
        let mut m = TestMachine::new(Target::Trn2);
        let s = sbuf(&mut m, DType::F8E4M3, &[1, 2, 2], &[1., 2., 3., 4.]);
        let mut values = [0.0; 32];
        (values[0], values[16]) = (10., 0.5);
        let whole = sbuf(&mut m, DType::F8E5M2, &[1, 2, 16], &values);
        let mut x = whole.clone();
        x.dims[2].count = 1;
        let d = m.tensor("d", Space::Psum, DType::F32, &[2, 1]);
        let mm = NcMatmul { perf_mode: PerfMode::DoubleRow, ..matmul(&d, &s, &x) };
        m.run(mm.clone()).unwrap();
        assert_eq!(m.f32s(&d), [11.5, 22.]);
        let mut old = TestMachine::new(Target::Trn1);
        for v in [&s, &whole] {
            old.tensor("t", Space::Sbuf, v.dtype, &v.shape());
        }
        old.tensor("d", Space::Psum, DType::F32, &[2, 1]);
        assert!(old.check(mm).unwrap_err().contains("trn2 or later (target is trn1)"));
    }

    #[test]
    fn broken_rules_quote_the_numbers() {
        let check = |k, m, n, want: &str| {
            let (machine, mm) = operands(Target::Trn2, k, m, n, DType::BF16);
            let e = machine.check(mm).unwrap_err();
            assert!(e.contains(want), "{e}");
        };
        check(128, 129, 512, "`d` spans 129 partitions, the memory has 128");
        check(128, 128, 513, "moving: `moving` has 513 elements per partition; the limit on trn2 is 512");

        let (mut machine, mm) = operands(Target::Trn2, 128, 128, 512, DType::BF16);
        let other = machine.tensor("o", Space::Sbuf, DType::BF16, &[64, 512]);
        let e = machine.check(NcMatmul { moving: other, ..mm.clone() }).unwrap_err();
        assert!(e.contains("`moving` has 64 partitions, `stationary` has 128"), "{e}");
        let narrow = machine.tensor("n", Space::Psum, DType::F32, &[128, 256]);
        let e = machine.check(NcMatmul { dst: narrow, ..mm.clone() }).unwrap_err();
        assert!(e.contains("128 partitions x 256 elements") && e.contains("128 x 512"), "{e}");
        let wide = machine.tensor("w", Space::Sbuf, DType::F32, &[128, 512]);
        let e = machine.check(NcMatmul { moving: wide, ..mm.clone() }).unwrap_err();
        assert!(e.contains("`stationary` is bfloat16 and `moving` is float32"), "{e}");
        let ints = machine.tensor("i", Space::Sbuf, DType::I32, &[128, 512]);
        let e = machine.check(NcMatmul { moving: ints, ..mm }).unwrap_err();
        assert!(e.contains("`moving` is int32"), "{e}");
    }

    #[test]
    fn trn3_takes_longer_columns() {
        let (machine, mm) = operands(Target::Trn3, 128, 128, 4096, DType::BF16);
        assert_eq!(machine.check(mm), Ok(()));
        let (machine, mm) = operands(Target::Trn3, 128, 128, 4097, DType::BF16);
        assert!(machine.check(mm).unwrap_err().contains("4096"));
    }

    #[test]
    fn array_tiles_are_aligned_and_large_enough() {
        let tiled = |target, k, position: &[i64], size: &[i64]| {
            let (machine, mm) = operands(target, k, 32, 512, DType::BF16);
            machine.check(NcMatmul { tile_position: Ints(position.to_vec()), tile_size: Ints(size.to_vec()), ..mm })
        };
        assert_eq!(tiled(Target::Trn2, 32, &[96, 64], &[32, 64]), Ok(()));
        // A tile of another size takes the next larger one of the array.
        assert_eq!(tiled(Target::Trn2, 16, &[96, 64], &[16, 48]), Ok(()));
        assert!(
            tiled(Target::Trn1, 32, &[96, 64], &[32, 64]).unwrap_err().contains("start row 96 is not a multiple of 64")
        );
        assert!(tiled(Target::Trn2, 32, &[0, 0], &[129, 64]).unwrap_err().contains("row size is 129"));
        assert!(
            tiled(Target::Trn2, 64, &[0, 0], &[32, 128])
                .unwrap_err()
                .contains("64 partitions, but the row tile has 32")
        );
        assert!(tiled(Target::Trn2, 32, &[16, 0], &[32, 128]).unwrap_err().contains("start row 16 is not a multiple"));
        assert!(tiled(Target::Trn2, 32, &[0, 0], &[]).unwrap_err().starts_with("tile_size"));
    }

    #[test]
    fn the_work_is_rows_columns_and_moving() {
        let (machine, mm) = operands(Target::Trn2, 96, 64, 300, DType::BF16);
        use crate::machine::Machine as _;
        let WorkKind::Matmul(work) = mm.work(&machine.context()).kind else { panic!("no matmul") };
        assert_eq!((work.rows, work.columns, work.moving), (96, 64, 300));
        assert_eq!(work.tile_size, (128, 128));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Tiling rows and columns of the result does not change a bit of it.
        #[test]
        fn tilings_agree(
            k in 1usize..40, m in 1usize..40, n in 1usize..70,
            row in 1usize..40, column in 1usize..70, seed in any::<u32>(),
        ) {
            let mut machine = TestMachine::new(Target::Trn2);
            let s = sbuf(&mut machine, DType::F32, &[k as u32, m as u32], &noise(k * m, seed));
            let x = sbuf(&mut machine, DType::F32, &[k as u32, n as u32], &noise(k * n, seed ^ 77));
            let whole = machine.tensor("w", Space::Psum, DType::F32, &[m as u32, n as u32]);
            let tiled = machine.tensor("t", Space::Psum, DType::F32, &[m as u32, n as u32]);
            machine.run(matmul(&whole, &s, &x)).unwrap();
            for r in (0..m).step_by(row) {
                for c in (0..n).step_by(column) {
                    let rows = Dim { stride: 1, count: row.min(m - r) as u32 };
                    let columns = Dim { stride: 1, count: column.min(n - c) as u32 };
                    let part = |v: &View, at: usize, d: Dim| View {
                        offset: at as i64,
                        dims: [v.dims[0], d].into_iter().collect(),
                        ..v.clone()
                    };
                    let d = View {
                        partition: r as u32,
                        offset: c as i64,
                        dims: [rows, columns].into_iter().collect(),
                        ..tiled.clone()
                    };
                    // Runs only the numerics: tiles of any size may start at partitions that the engine does not allow.
                    matmul(&d, &part(&s, r, rows), &part(&x, c, columns)).execute(&mut machine).unwrap();
                }
            }
            prop_assert_eq!(machine.bits(&whole), machine.bits(&tiled));
        }
    }
}
