//! Shared code of `activation` and `activation_reduce`: `op(data * scale + bias)` and its accumulators.

use crate::arg::ScalarOperand;
use crate::dtype::DType;
use crate::inst::accumulators::{self, Reduction};
use crate::inst::check;
use crate::inst::math::activation::{self, ActFn};
use crate::inst::math::alu;
use crate::inst::scalars::{self, Scalar, Sources};
use crate::inst::stream::{on, stream};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine, Named, ReduceCmd};
use crate::schema::Schema;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Law, Stream, Work};

/// Slope of prelu for negative inputs. `activation` has no operand for it; this is the default of `relu_param` in `activate2`.
const PRELU_SLOPE: f32 = 0.0;

/// The accumulators of the engine add up, on every target (manual of NKI 0.7: "the Scalar Engine reduction registers can only sum"; until 0.6
/// it said so for trn1 only).
///
/// # Errors
/// `op-unsupported`.
pub(super) fn check_reduction(op: AluOp) -> Result<(), Violation> {
    if op == AluOp::Add {
        return Ok(());
    }
    let message = format!("`reduce_op` is {op}, but the accumulators of the scalar engine only add: it must be add");
    let help = "reduce the result with nisa.tensor_reduce; on trn3, nisa.activate2 takes maximum and minimum, too";
    Err(Violation::new("op-unsupported", "reduce_op", message).help(help))
}

/// The operands of either instruction.
pub(super) struct Activate<'a> {
    pub(super) dst: &'a View,
    pub(super) op: ActFn,
    pub(super) data: &'a View,
    pub(super) bias: Option<&'a ScalarOperand>,
    pub(super) scale: &'a ScalarOperand,
    pub(super) reduce_op: AluOp,
    pub(super) reduce_res: Option<&'a View>,
    pub(super) reduce_cmd: ReduceCmd,
    pub(super) engine: Engine,
}

/// Checks that the engine of an activation is the scalar engine, or gpsimd, which does not accumulate.
///
/// # Errors
/// `engine-unsupported`, `unsupported-on-target`.
pub(super) fn on_engine(
    engine: Engine,
    reduce_cmd: ReduceCmd,
    reduce_res: Option<&View>,
    schema: &Schema,
    context: &Context<'_>,
) -> Result<(), Violation> {
    check::engine_allowed(engine, schema, context.arch)?;
    if engine == Engine::Scalar || (reduce_cmd == ReduceCmd::Idle && reduce_res.is_none()) {
        return Ok(());
    }
    let message = format!("`reduce_*` on {engine}: only the scalar engine accumulates");
    Err(Violation::new("engine-unsupported", "engine", message)
        .help("leave `engine` out, or reduce with nisa.tensor_reduce"))
}

impl Activate<'_> {
    pub(super) fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        let data = ("data", self.data);
        if self.op == ActFn::Reciprocal && self.bias.is_some() && !context.arch.activation_bias_reciprocal {
            let message = format!("`op` is reciprocal, which takes no `bias` on {}", context.arch.target);
            return Err(
                Violation::new("op-unsupported", "bias", message).help("add the bias first, or use nisa.reciprocal")
            );
        }
        check::same_shape(data, ("dst", self.dst))?;
        check::scalar_operand(data, "scale", self.scale)?;
        if let Some(bias) = self.bias {
            check::scalar_operand(data, "bias", bias)?;
            // neuronx-cc rejects numbers (NCC_IBIR605), but takes them for copy (NCC_IBVF043, "only supports immediate bias").
            let takes_number = context.arch.activation_bias_number || self.op == ActFn::Copy;
            match bias.view() {
                None if !takes_number => {
                    return Err(Violation::new(
                        "operand-kind",
                        "bias",
                        format!("on {} `bias` must be a tile of shape (P, 1), not a number", context.arch.target),
                    )
                    .help("fill a (P, 1) tile with nisa.memset and pass it"));
                }
                Some(v) if v.dtype == DType::TF32 => {
                    return Err(Violation::new("operand-dtype", "bias", "`bias` cannot be tfloat32"));
                }
                _ => {}
            }
        }
        if let Some(result) = self.reduce_res {
            check::reduction_result(data, ("reduce_res", result))?;
        }
        Ok(())
    }

    pub(super) fn reduction(&self) -> Reduction<'_> {
        Reduction {
            state: accumulators::SCALAR,
            op: self.reduce_op,
            cmd: self.reduce_cmd,
            init: None,
            result: self.reduce_res,
            negate: false,
            idle_clobbers: false,
        }
    }

    pub(super) fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let mut sources = Sources::from_slice(&[self.data]);
        let scale = scalars::scalar_f32(machine, Some(self.scale), &mut sources);
        let bias = scalars::scalar_f32(machine, self.bias, &mut sources);
        let plain = matches!((scale, self.bias), (Scalar::Fixed(s), None) if s == 1.0);
        let op = self.op;
        let reduction = self.reduction();
        let watch = op.valid_range().and_then(|_| machine.watch_arguments(op));
        reduction.run(machine, self.dst, sources, move |partition, ins, out| {
            if plain {
                out.copy_from_slice(ins[0]);
            } else {
                alu::affine(ins[0], scale.get(ins), bias.get(ins), out);
            }
            if let Some(watch) = &watch {
                watch(partition, out);
            }
            activation::apply(op, PRELU_SLOPE, out);
        })
    }

    pub(super) fn work(&self) -> Work {
        let outputs: Vec<&View> = [self.dst].into_iter().chain(self.reduce_res).collect();
        let stream = stream(Law::Function(self.op.name()), &[self.data], &outputs);
        let scalar_reads = scalars::reads(self.bias.into_iter().chain([self.scale]));
        on(self.engine, Stream { scalar_reads, accumulator_read: self.reduce_res.is_some(), ..stream })
    }
}
