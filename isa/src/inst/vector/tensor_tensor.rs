//! `nisa.tensor_tensor`: element-wise operation of two tiles.

use crate::arch::Arch;
use crate::inst::{Footprint, Instruction, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Operand, Stream, StreamClass, Work, WorkKind};

operands! {
    /// Element-wise `dst = data1 <op> data2` of two tiles of equal size.
    pub struct TensorTensor: "tensor_tensor" on [Vector, GpSimd] {
        /// The result.
        [Out Sbuf Psum] dst: View,
        /// Left operand.
        [In Sbuf Psum] data1: View,
        /// Right operand.
        [In Sbuf Psum] data2: View,
        /// Operator.
        [Attr] op: AluOp,
        /// Engine to use.
        [Attr] engine: Engine = Engine::Unknown,
    }
}

impl Instruction for TensorTensor {
    fn engine(&self, _arch: &Arch) -> Engine {
        match self.engine {
            Engine::Unknown => Engine::Vector,
            engine => engine,
        }
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_partitions(("dst", &self.dst), ("data1", &self.data1))?;
        check::same_partitions(("dst", &self.dst), ("data2", &self.data2))?;
        check::same_free(("dst", &self.dst), ("data1", &self.data1))?;
        check::same_free(("dst", &self.dst), ("data2", &self.data2))
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        use crate::inst::Operands;
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        machine.map_f32(&[&self.dst], &[&self.data1, &self.data2], &|_, ins, outs| {
            for ((o, a), b) in outs[0].iter_mut().zip(ins[0]).zip(ins[1]) {
                *o = a + b;
            }
        })
    }

    fn work(&self, context: &Context<'_>) -> Work {
        Work {
            engine: self.engine(context.arch),
            kind: WorkKind::Stream(Stream {
                class: StreamClass::TensorTensor,
                elements: self.data1.free_elements() as u32,
                partitions: self.dst.partitions(),
                inputs: [Operand::of(&self.data1), Operand::of(&self.data2)].into_iter().collect(),
                outputs: [Operand::of(&self.dst)].into_iter().collect(),
                scalar_reads: 0,
                accumulator_read: false,
                simple_op: matches!(self.op, AluOp::Add | AluOp::Subtract | AluOp::Multiply),
            }),
        }
    }
}
