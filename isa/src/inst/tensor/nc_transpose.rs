//! `nisa.nc_transpose`: swaps partitions and free elements, on the tensor or the vector engine.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use crate::arch::Arch;
use crate::dtype::DType;
use crate::gemm::product;
use crate::inst::result::{Given, ResultTile};
use crate::inst::stream::{self, stream};
use crate::inst::tensor::array_tile;
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{Engine, Space};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Matmul, Operand, Stream, Work, WorkKind};

operands! {
    /// Transposes the tile `data` `[P, F]` (free dimensions flattened) into `dst` `[F, P]`.
    pub struct NcTranspose: "nc_transpose" on [Tensor, Vector] {
        /// The result. In PSUM if the tensor engine makes it.
        [Out Sbuf Psum] dst: View,
        /// The tile to transpose. In SBUF for the tensor engine.
        [In Sbuf Psum] data: View,
        /// `tensor` (up to 128 x 128) or `vector` (up to 32 x 32).
        [Attr] engine: Engine = Engine::Unknown,
    }
    numerics: "Bits move unchanged, except on the tensor engine of trn1: there it is a product with an identity matrix \
        in fp32, in which a NaN or infinity spreads along its row.",
    cost: Measured "Tensor engine: a matmul of `data` as the weights with an identity of as many columns as `data` has \
        partitions, in one pass (fp32: 3; on trn1 as a matmul). Vector engine: one pass over the elements per \
        partition.",
    rules: {
        "dst-size": "`dst` has the partitions and elements of `data` exchanged",
        "same-dtype": "`dst` has the dtype of `data`; on trn1, where the tensor engine multiplies, it may be float32",
        "fp8": "from trn2 on the tensor engine writes an 8-bit float as 16 bits: `dst` has every second element of its tile",
        "tensor-size": "the tensor engine transposes up to 128 x 128",
        "tensor-memory": "the tensor engine reads SBUF and writes PSUM",
        "one-bank": "before trn3 the tensor engine writes to one PSUM bank",
        "vector-size": "the vector engine transposes up to 32 x 32",
    },
}

impl NcTranspose {
    fn extent(&self) -> (u32, u32) {
        (self.data.partitions(), self.data.free_elements() as u32)
    }

    fn validate_size(&self, arch: &Arch) -> Result<(), Violation> {
        let (p, f) = self.extent();
        let engine = self.engine(arch);
        let (max, help) = match engine {
            Engine::Vector => (arch.vector_transpose_max, "use engine=nisa.engine.tensor, or tiles of 32 x 32"),
            _ => (arch.stationary_free_max, "transpose it in tiles of 128 columns"),
        };
        if p > max || f > max {
            let message = format!("`data` is {p} x {f}, but the {engine} engine transposes up to {max} x {max}");
            return Err(Violation::new("tile-size", "data", message).help(help));
        }
        Ok(())
    }

    fn validate_tensor(&self) -> Result<(), Violation> {
        let (p, f) = self.extent();
        let why = if self.engine == Engine::Unknown {
            format!(" (a tile of {p} x {f} is too large for the vector engine's 32 x 32)")
        } else {
            String::new()
        };
        if self.data.space != Space::Sbuf {
            return Err(Violation::new(
                "operand-memory",
                "data",
                format!("`data` is in {}, but the tensor engine reads sbuf{why}", self.data.space),
            )
            .help("copy it to SBUF with nisa.tensor_copy"));
        }
        if self.dst.space != Space::Psum {
            return Err(Violation::new(
                "operand-memory",
                "dst",
                format!("`dst` is in {}, but the tensor engine writes psum{why}", self.dst.space),
            )
            .help("transpose into a PSUM tile and copy that with nisa.tensor_copy"));
        }
        Ok(())
    }
}

impl Instruction for NcTranspose {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        let data = given.view("data")?;
        let space = if given.name("engine") == Some("vector") { Space::Sbuf } else { Space::Psum };
        Some(ResultTile {
            shape: [data.free_elements() as u32, data.partitions()].into_iter().collect(),
            dtype: data.dtype,
            space,
        })
    }

    fn engine(&self, arch: &Arch) -> Engine {
        let small = self.data.partitions() <= arch.vector_transpose_max
            && self.data.free_elements() <= arch.vector_transpose_max as usize;
        match self.engine {
            Engine::Unknown if small => Engine::Vector,
            Engine::Unknown => Engine::Tensor,
            engine => engine,
        }
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::engine_allowed(self.engine, &Self::SCHEMA, context.arch)?;
        self.validate_size(context.arch)?;
        let (p, f) = self.extent();
        let dst = (self.dst.partitions(), self.dst.free_elements() as u32);
        if dst != (f, p) {
            return Err(Violation::new(
                "shape-mismatch",
                "dst",
                format!("`dst` is {} x {}, the transpose of `data` {:?} is {f} x {p}", dst.0, dst.1, self.data.shape()),
            ));
        }
        // Public harnesses that ran on trn1 transpose bfloat16 into float32 (autocomp, trn-advanced-nki2).
        let is_product = self.engine(context.arch) == Engine::Tensor && !context.arch.exact_transpose;
        if self.dst.dtype != self.data.dtype && !(is_product && self.dst.dtype == DType::F32) {
            return Err(Violation::new(
                "dtype-mismatch",
                "dst",
                format!("`dst` is {}, `data` is {}: a transpose keeps the dtype", self.dst.dtype, self.data.dtype),
            ));
        }
        if self.engine(context.arch) == Engine::Tensor {
            self.validate_tensor()?;
            if !is_product {
                array_tile::check_fp8_transpose(&self.dst)?;
            }
            array_tile::check_bank(&self.dst, context.arch)?;
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let arch = machine.context().arch;
        let (engine, exact) = (self.engine(arch), arch.exact_transpose);
        if engine == Engine::Tensor {
            machine.begin_accumulate(&self.dst, Some(false))?;
            if !exact {
                // This transpose is a multiplication with an identity: a NaN or infinity spreads along its row.
                let data = machine.read_tile(&self.data)?;
                let result = product(data.view(), Array2::eye(data.nrows()).view());
                return machine.write_tile(&self.dst, result.view());
            }
        }
        machine.transpose(&self.dst, &self.data)
    }

    fn accumulation(&self, arch: &Arch) -> Option<(&View, Option<bool>)> {
        (self.engine(arch) == Engine::Tensor).then_some((&self.dst, Some(false)))
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Transposed)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        let engine = self.engine(context.arch);
        let (rows, columns) = self.extent();
        let kind = if engine == Engine::Tensor {
            let identity = Operand {
                space: Space::Sbuf,
                dtype: self.data.dtype,
                elements: rows,
                inner_stride_bytes: self.data.dtype.size() as u32,
            };
            WorkKind::Matmul(Matmul {
                rows,
                columns,
                moving: rows,
                stationary_dtype: self.data.dtype,
                moving_dtype: self.data.dtype,
                moving_layout: identity,
                transpose: context.arch.exact_transpose,
                double_row: false,
                stationary_onezero: false,
                moving_onezero: true,
                tile_position: (0, 0),
                tile_size: (128, 128),
                stationary: self.data.clone(),
            })
        } else {
            WorkKind::Stream(Stream { partitions: rows, ..stream(stream::TRANSPOSE, &[&self.data], &[&self.dst]) })
        };
        Work { engine, kind }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::testing::TestMachine;

    fn transpose(dst: &View, data: &View, engine: Engine) -> NcTranspose {
        NcTranspose { dst: dst.clone(), data: data.clone(), engine }
    }

    #[test]
    fn swaps_partitions_and_free_elements() {
        for engine in [Engine::Tensor, Engine::Vector, Engine::Unknown] {
            let mut m = TestMachine::new(Target::Trn2);
            let data = m.tensor_f32("s", Space::Sbuf, DType::BF16, &[2, 3], &[1., 2., 3., 4., 5., 6.]);
            let dst = m.tensor("d", Space::Psum, DType::BF16, &[3, 2]);
            m.run(transpose(&dst, &data, engine)).unwrap();
            assert_eq!(m.f32s(&dst), [1., 4., 2., 5., 3., 6.], "{engine}");
        }
    }

    #[test]
    fn free_dimensions_are_flattened() {
        let mut m = TestMachine::new(Target::Trn2);
        let values: Vec<f32> = (0..8).map(|i| i as f32).collect();
        let data = m.tensor_f32("s", Space::Sbuf, DType::F32, &[2, 2, 2], &values);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[4, 2]);
        m.run(transpose(&dst, &data, Engine::Unknown)).unwrap();
        assert_eq!(m.f32s(&dst), [0., 4., 1., 5., 2., 6., 3., 7.]);
    }

    #[test]
    fn trn1_multiplies_with_an_identity() {
        let mut m = TestMachine::new(Target::Trn1);
        let inf = f32::INFINITY;
        let data = m.tensor_f32("s", Space::Sbuf, DType::F32, &[2, 2], &[1., inf, 3., 4.]);
        let dst = m.tensor("d", Space::Psum, DType::F32, &[2, 2]);
        m.run(transpose(&dst, &data, Engine::Tensor)).unwrap();
        let got = m.f32s(&dst);
        assert_eq!(got[..3], [1., 3., inf]);
        assert!(got[3].is_nan(), "infinity times the identity's zero");
    }

    #[test]
    fn the_engine_follows_the_shape() {
        let mut m = TestMachine::new(Target::Trn2);
        let arch = Arch::of(Target::Trn2);
        for (shape, want) in [([32, 32], Engine::Vector), ([33, 32], Engine::Tensor), ([32, 33], Engine::Tensor)] {
            let data = m.tensor("s", Space::Sbuf, DType::F32, &shape);
            let dst = m.tensor("d", Space::Psum, DType::F32, &[shape[1], shape[0]]);
            assert_eq!(transpose(&dst, &data, Engine::Unknown).engine(arch), want);
        }
    }

    #[test]
    fn broken_rules_quote_the_numbers() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor("s", Space::Sbuf, DType::F32, &[64, 64]);
        let psum = m.tensor("p", Space::Psum, DType::F32, &[64, 64]);
        let sbuf = m.tensor("q", Space::Sbuf, DType::F32, &[64, 64]);
        let half = m.tensor("h", Space::Psum, DType::BF16, &[64, 64]);
        let e = m.check(transpose(&psum, &data, Engine::Vector)).unwrap_err();
        assert!(e.contains("64 x 64, but the vector engine transposes up to 32 x 32"), "{e}");
        let e = m.check(transpose(&sbuf, &data, Engine::Unknown)).unwrap_err();
        assert!(e.contains("`dst` is in sbuf, but the tensor engine writes psum"), "{e}");
        let e = m.check(transpose(&psum, &psum, Engine::Tensor)).unwrap_err();
        assert!(e.contains("`data` is in psum"), "{e}");
        let e = m.check(transpose(&half, &data, Engine::Tensor)).unwrap_err();
        assert!(e.contains("`dst` is bfloat16, `data` is float32"), "{e}");
        let wide = m.tensor("w", Space::Sbuf, DType::F32, &[64, 129]);
        let tall = m.tensor("t", Space::Psum, DType::F32, &[129, 64]);
        let e = m.check(transpose(&tall, &wide, Engine::Tensor)).unwrap_err();
        assert!(e.contains("129"), "{e}");
        let narrow = m.tensor("n", Space::Psum, DType::F32, &[32, 64]);
        let e = m.check(transpose(&narrow, &data, Engine::Tensor)).unwrap_err();
        assert!(e.contains("`dst` is 32 x 64, the transpose of `data` [64, 64] is 64 x 64"), "{e}");
    }

    #[test]
    fn the_tensor_engine_writes_8_bit_floats_as_16_bits() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_f32("s", Space::Sbuf, DType::F8E4M3, &[2, 2], &[1., 2., 3., 4.]);
        let mut compact = m.tensor("w", Space::Psum, DType::F8E4M3, &[2, 4]);
        compact.dims[1].count = 2;
        let e = m.check(transpose(&compact, &data, Engine::Tensor)).unwrap_err();
        assert!(e.contains("as 16 bits, the upper 8 of them 0"), "{e}");
        let mut second = compact.clone();
        second.dims[1].stride = 2;
        m.run(transpose(&second, &data, Engine::Tensor)).unwrap();
        assert_eq!(m.f32s(&second), [1., 3., 2., 4.]);
        m.check(transpose(&compact, &data, Engine::Vector)).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Transposing twice is the identity, bit for bit, for arbitrary bits.
        #[test]
        fn twice_is_the_identity(
            p in 1u32..40, f in 1u32..40, seed in any::<u32>(), by_tensor in any::<bool>(),
            dtype in prop_oneof![Just(DType::F32), Just(DType::BF16), Just(DType::I32), Just(DType::U8)],
        ) {
            let mut m = TestMachine::new(Target::Trn2);
            let engine = if by_tensor || p > 32 || f > 32 { Engine::Tensor } else { Engine::Vector };
            let mask = u32::MAX >> (32 - 8 * dtype.size());
            let bits: Vec<u32> = (0..p * f).map(|i| i.wrapping_mul(seed | 1).wrapping_mul(2_654_435_761) & mask).collect();
            let data = m.tensor_bits("s", Space::Sbuf, dtype, &[p, f], &bits);
            let once = m.tensor("p", Space::Psum, dtype, &[f, p]);
            m.run(transpose(&once, &data, engine)).unwrap();
            let back = m.bits(&once);
            let again = m.tensor_bits("b", Space::Sbuf, dtype, &[f, p], &back);
            let twice = m.tensor("q", Space::Psum, dtype, &[p, f]);
            m.run(transpose(&twice, &again, engine)).unwrap();
            prop_assert_eq!(m.bits(&twice), bits);
        }
    }
}
