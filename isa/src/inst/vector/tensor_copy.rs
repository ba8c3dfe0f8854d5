//! `nisa.tensor_copy`: copies a tile on chip.

use crate::arch::Arch;
use crate::inst::indirection::columns;
use crate::inst::result::{Given, ResultTile};
use crate::inst::stream::{COPY, modes, on, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{Engine, OobMode};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// Copies `src` to `dst`: bit for bit between equal dtypes, else through fp32.
    pub struct TensorCopy: "tensor_copy" on [Vector, Scalar from Trn2, GpSimd] {
        /// Destination.
        [Out Sbuf Psum] dst: View,
        /// Source, with as many partitions and elements per partition.
        [In Sbuf Psum] src: View,
        /// Engine to use.
        [Attr] engine: Engine = Engine::Unknown,
    }
    numerics: "Bits move unchanged between equal dtypes; else elements are converted to fp32 and rounded once to the \
        dtype of `dst`.",
    cost: Measured "One pass over the elements of a partition. Vector: 16-bit floats in SBUF go faster, PSUM slower; wide \
        strides slow all engines.",
    rules: {
        "packed-copy": "a packed dtype is copied only to the same dtype",
        "same-size": "`src` and `dst` have the same number of partitions and of elements per partition",
        "gpsimd-psum": "on GpSimd no operand is in PSUM",
    },
}

impl Instruction for TensorCopy {
    const PLACING: Placing = Placing::InPlace;
    const INDIRECT: &'static [&'static str] = &["dst", "src"];

    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("src")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        match self.engine {
            Engine::Unknown => Engine::Vector,
            engine => engine,
        }
    }

    const PACKED: &'static [&'static str] = &["dst", "src"];

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::engine_allowed(self.engine, &Self::SCHEMA, context.arch)?;
        if self.engine == Engine::GpSimd
            && let Some((name, _)) =
                [("dst", &self.dst), ("src", &self.src)].into_iter().find(|(_, v)| columns(v).is_some())
        {
            return Err(Violation::new(
                "engine-unsupported",
                "engine",
                format!(
                    "`{name}` is indirect; tensor_copy with tensor indirection runs on vector or scalar, not on gpsimd"
                ),
            ));
        }
        check::packed_copy(("dst", &self.dst), ("src", &self.src))?;
        check::same_shape(("src", &self.src), ("dst", &self.dst))?;
        check::gpsimd_psum(self.engine, &[("src", &self.src), ("dst", &self.dst)])
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        machine.copy(&self.dst, &self.src, OobMode::Error)
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Elements)
    }

    fn action(&self) -> Action<'_> {
        Action::Copies(&self.dst, &self.src)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        let stream = stream(modes(COPY, "copy"), &[&self.src], &[&self.dst]);
        on(self.engine(context.arch), stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;
    use crate::view::Dim;

    fn inst(dst: &View, src: &View, engine: Engine) -> TensorCopy {
        TensorCopy { dst: dst.clone(), src: src.clone(), engine }
    }

    #[test]
    fn keeps_bits_between_equal_dtypes() {
        let mut m = TestMachine::new(Target::Trn2);
        // A signalling NaN and an integer that fp32 cannot hold.
        let a = m.tensor_bits("a", Space::Sbuf, DType::F32, &[1, 2], &[0x7f80_0001, 0x8000_0000]);
        let d = m.tensor("d", Space::Psum, DType::F32, &[1, 2]);
        m.run(inst(&d, &a, Engine::Unknown)).unwrap();
        assert_eq!(m.bits(&d), [0x7f80_0001, 0x8000_0000]);
        let i = m.tensor_bits("i", Space::Sbuf, DType::I32, &[1, 1], &[16_777_217]);
        let u = m.tensor("u", Space::Sbuf, DType::U32, &[1, 1]);
        m.run(inst(&u, &i, Engine::Vector)).unwrap();
        assert_eq!(m.bits(&u), [16_777_216], "different dtypes go through fp32");
    }

    #[test]
    fn rounds_floats_to_integers() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[1, 4], &[0.5, 1.5, -2.7, 300.0]);
        let d = m.tensor("d", Space::Sbuf, DType::I8, &[1, 4]);
        m.run(inst(&d, &a, Engine::GpSimd)).unwrap();
        assert_eq!(m.f32s(&d), [0.0, 2.0, -3.0, 127.0]);
    }

    #[test]
    fn transposes_inside_a_partition() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor_f32("a", Space::Sbuf, DType::F32, &[1, 2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let mut t = a;
        t.dims.truncate(1);
        t.dims.extend([Dim { stride: 1, count: 3 }, Dim { stride: 3, count: 2 }]);
        let d = m.tensor("d", Space::Sbuf, DType::F32, &[1, 6]);
        m.run(inst(&d, &t, Engine::Unknown)).unwrap();
        assert_eq!(m.f32s(&d), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    }

    #[test]
    fn rules() {
        let mut m = TestMachine::new(Target::Trn1);
        let s = m.tensor("s", Space::Sbuf, DType::F32, &[4, 8]);
        let p = m.tensor("p", Space::Psum, DType::F32, &[4, 8]);
        assert!(m.check(inst(&s, &s, Engine::Scalar)).unwrap_err().contains("trn1"));
        assert!(m.check(inst(&s, &p, Engine::GpSimd)).unwrap_err().contains("PSUM"));
        assert!(m.check(inst(&s, &p, Engine::Vector)).is_ok());
        assert!(m.check(inst(&s, &s, Engine::Tensor)).unwrap_err().contains("runs on"));
    }
}
