//! `nisa.reciprocal`: `1 / x` on the vector engine.

use crate::arch::Arch;
use crate::inst::math::alu::{self, Rhs};
use crate::inst::{Footprint, Instruction, Operands, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Operand, Stream, StreamClass, Work, WorkKind};

operands! {
    /// Element-wise `dst = 1.0 / data` in fp32.
    pub struct Reciprocal: "reciprocal" on [Vector] {
        /// The result.
        [Out Sbuf Psum] dst: View,
        /// Input.
        [In Sbuf Psum] data: View,
    }
}

impl Instruction for Reciprocal {
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_shape(("data", &self.data), ("dst", &self.dst))
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        machine.map_f32(&[&self.dst], &[&self.data], &|_, ins, outs| {
            alu::apply(AluOp::Reciprocal, false, ins[0], Rhs::One(0.0), outs[0]);
        })
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        Work {
            engine: Engine::Vector,
            kind: WorkKind::Stream(Stream {
                class: StreamClass::Reciprocal,
                elements: self.data.free_elements() as u32,
                partitions: self.dst.partitions(),
                inputs: [Operand::of(&self.data)].into_iter().collect(),
                outputs: [Operand::of(&self.dst)].into_iter().collect(),
                scalar_reads: 0,
                accumulator_read: false,
                simple_op: false,
            }),
        }
    }
}
