//! `nisa.tensor_copy`: copies a tile on chip.

use crate::arch::{Arch, Target};
use crate::inst::{Footprint, Instruction, Operands, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{Engine, OobMode};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Operand, Stream, StreamClass, Work, WorkKind};

operands! {
    /// Copies `src` to `dst`: bit for bit between equal dtypes, else through fp32.
    pub struct TensorCopy: "tensor_copy" on [Vector, Scalar, GpSimd] {
        /// Destination.
        [Out Sbuf Psum] dst: View,
        /// Source, with as many partitions and elements per partition.
        [In Sbuf Psum] src: View,
        /// Engine to use.
        [Attr] engine: Engine = Engine::Unknown,
    }
}

impl Instruction for TensorCopy {
    fn engine(&self, _arch: &Arch) -> Engine {
        match self.engine {
            Engine::Unknown => Engine::Vector,
            engine => engine,
        }
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::engine_allowed(self.engine, Self::SCHEMA.engines)?;
        check::same_shape(("src", &self.src), ("dst", &self.dst))?;
        if self.engine == Engine::Scalar && context.arch.target == Target::Trn1 {
            return Err(Violation::new("engine-unsupported", "engine", "the scalar engine of trn1 has no tensor_copy")
                .help("use nisa.activation with op=nl.copy, or another engine"));
        }
        check::gpsimd_psum(self.engine, &[("src", &self.src), ("dst", &self.dst)])
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        machine.copy(&self.dst, &self.src, OobMode::Error)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        Work {
            engine: self.engine(context.arch),
            kind: WorkKind::Stream(Stream {
                class: StreamClass::Copy,
                elements: self.src.free_elements() as u32,
                partitions: self.dst.partitions(),
                inputs: [Operand::of(&self.src)].into_iter().collect(),
                outputs: [Operand::of(&self.dst)].into_iter().collect(),
                scalar_reads: 0,
                accumulator_read: false,
                simple_op: true,
            }),
        }
    }
}
