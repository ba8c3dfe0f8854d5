//! `nisa.tensor_tensor`: element-wise operation of two tiles.

use crate::arch::Arch;
use crate::inst::math::alu::{self, Rhs};
use crate::inst::math::integer;
use crate::inst::{Footprint, Instruction, Operands, check};
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

impl TensorTensor {
    fn views(&self) -> [check::Named<'_>; 3] {
        [("data1", &self.data1), ("data2", &self.data2), ("dst", &self.dst)]
    }
}

impl Instruction for TensorTensor {
    /// Power runs on GpSimd, and so does arithmetic on 32-bit integers outside PSUM; all else on the vector engine.
    fn engine(&self, _arch: &Arch) -> Engine {
        let views = self.views();
        match self.engine {
            Engine::Unknown if self.op == AluOp::Power => Engine::GpSimd,
            Engine::Unknown
                if !self.op.is_bitvec()
                    && check::all_int32(views.iter().map(|v| v.1))
                    && !views.iter().any(|v| check::in_psum(v.1)) =>
            {
                Engine::GpSimd
            }
            Engine::Unknown => Engine::Vector,
            engine => engine,
        }
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        check::engine_allowed(self.engine, Self::SCHEMA.engines)?;
        check::same_shape(("dst", &self.dst), ("data1", &self.data1))?;
        check::same_shape(("dst", &self.dst), ("data2", &self.data2))?;
        check::op_on_target("op", self.op, context.arch)?;
        if self.op.is_unary() {
            return Err(Violation::new("op-unsupported", "op", format!("`{}` is not a binary operator", self.op))
                .help("use nisa.tensor_scalar or nisa.activation"));
        }
        check::bitvec_dtypes(self.op, &self.views())?;
        check::not_both_psum(("data1", &self.data1), ("data2", &self.data2))?;
        check::gpsimd_psum(self.engine(context.arch), &self.views())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// Bitvec operators work on bit patterns. Arithmetic goes through fp32, except on GpSimd with 32-bit integers only, which is
    /// exact (manual, `tensor_tensor`).
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let op = self.op;
        let native =
            self.engine(machine.context().arch) == Engine::GpSimd && check::all_int32(self.views().iter().map(|v| v.1));
        if op.is_bitvec() || native {
            let bits = 8 * self.data1.dtype.size() as u32;
            return machine.map_i64(&[&self.dst], &[&self.data1, &self.data2], &|_, ins, outs| {
                integer::apply(op, false, bits, ins[0], Rhs::Row(ins[1]), outs[0]);
            });
        }
        machine.map_f32(&[&self.dst], &[&self.data1, &self.data2], &|_, ins, outs| {
            alu::apply(op, false, ins[0], Rhs::Row(ins[1]), outs[0]);
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
                simple_op: self.op.is_simple(),
            }),
        }
    }
}
