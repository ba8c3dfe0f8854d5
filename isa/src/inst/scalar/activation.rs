//! `nisa.activation`: an activation function with scale, bias and accumulation.

use super::activate::Activate;
use crate::arch::Arch;
use crate::arg::{Imm, ScalarOperand};
use crate::inst::math::activation::ActFn;
use crate::inst::{Footprint, Instruction, Operands};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine, ReduceCmd};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// `dst = op(data * scale + bias)`, optionally summed along the free dimensions into the engine's accumulators.
    pub struct Activation: "activation" on [Scalar] {
        /// The result.
        [Out Sbuf Psum] dst: View,
        /// Activation function.
        [Attr] op: ActFn,
        /// Input tile.
        [In Sbuf Psum] data: View,
        /// Added after scaling: a tile of shape (P, 1), or a number (not on trn1).
        [In Sbuf Psum] bias: Option<ScalarOperand> = None,
        /// Multiplied first: a number or a float32 tile of shape (P, 1).
        [In Sbuf Psum] scale: ScalarOperand = ScalarOperand::Imm(Imm::Float(1.0)),
        /// Reduction along the free dimensions: add.
        [Attr] reduce_op: Option<AluOp> = None,
        /// Where the accumulators are read out to: shape (P, 1).
        [Out Sbuf Psum] reduce_res: Option<View> = None,
        /// What happens to the accumulators.
        [Attr] reduce_cmd: ReduceCmd = ReduceCmd::Idle,
    }
}

impl Activation {
    fn shared(&self) -> Activate<'_> {
        Activate {
            dst: &self.dst,
            op: self.op,
            data: &self.data,
            bias: self.bias.as_ref(),
            scale: &self.scale,
            reduce_op: AluOp::Add,
            reduce_res: self.reduce_res.as_ref(),
            reduce_cmd: self.reduce_cmd,
        }
    }
}

impl Instruction for Activation {
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Scalar
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        if let Some(op) = self.reduce_op
            && op != AluOp::Add
        {
            return Err(Violation::new("op-unsupported", "reduce_op", format!("`reduce_op` is {op}, it must be add")));
        }
        if self.reduce_cmd == ReduceCmd::LoadReduce {
            return Err(Violation::new(
                "op-unsupported",
                "reduce_cmd",
                "the scalar engine knows idle, reset, reduce and reset_reduce, not load_reduce",
            ));
        }
        self.shared().validate(context)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        self.shared().execute(machine)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        self.shared().work()
    }
}
