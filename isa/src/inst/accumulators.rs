//! Instructions that reduce their results into an engine's accumulators, one fp32 per lane.
//!
//! The accumulators persist between instructions of one engine. Source: "Accumulator behavior" in the `nki.isa` references of
//! exponential, range_select, select_reduce, tensor_scalar_reduce, tensor_scalar_cumulative and activate2.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::arg::ScalarOperand;
use crate::inst::check::{self, Named};
use crate::inst::math::{alu, reduce};
use crate::inst::scalars::{self, Scalar, Sources};
use crate::machine::{Fault, Machine, StateUpdate};
use crate::names::{AluOp, Engine, ReduceCmd};
use crate::view::View;
use crate::violation::Violation;

/// The vector engine's accumulators.
pub(crate) const VECTOR: &str = "vector.reduce_regs";
/// The scalar engine's accumulators, also used by `activation`.
pub(crate) const SCALAR: &str = "scalar.reduce_regs";
/// Accumulators of an engine.
const LANES: usize = 128;

/// How an instruction uses the accumulators of its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccumulatorUse {
    /// The engine.
    pub engine: Engine,
    /// Its result depends on the values left by earlier instructions.
    pub reads: bool,
    /// It leaves values that later instructions may use.
    pub sets: bool,
    /// It leaves unspecified values.
    pub clobbers: bool,
    /// It discards the values left by earlier instructions.
    pub resets: bool,
    /// It leaves a reduction that the kernel requested.
    pub reduces: bool,
    /// It reads them out.
    pub reads_out: bool,
}

/// The accumulators while an instruction runs. Each partition accesses only its own, so the order of partitions does not matter.
pub(crate) struct Lanes {
    name: &'static str,
    lanes: Vec<AtomicU32>,
}

impl Lanes {
    /// Reads the accumulators of an engine.
    pub(crate) fn load(machine: &mut dyn Machine, name: &'static str) -> Self {
        let state = machine.engine_state(name);
        state.resize(LANES, 0);
        Lanes { name, lanes: state.iter().map(|&bits| AtomicU32::new(bits)).collect() }
    }

    /// All accumulators of an engine, set to `value`.
    pub(crate) fn filled(name: &'static str, value: f32) -> Self {
        Lanes { name, lanes: (0..LANES).map(|_| AtomicU32::new(value.to_bits())).collect() }
    }

    /// The accumulator of a partition.
    pub(crate) fn get(&self, partition: usize) -> f32 {
        self.lanes.get(partition).map_or(0.0, |lane| f32::from_bits(lane.load(Ordering::Relaxed)))
    }

    /// Sets the accumulator of a partition.
    pub(crate) fn set(&self, partition: usize, value: f32) {
        if let Some(lane) = self.lanes.get(partition) {
            lane.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    /// Writes the accumulators of these partitions back once the instruction has been computed; the others are unchanged.
    pub(crate) fn into_update(self: Arc<Self>, partitions: Range<usize>) -> StateUpdate {
        let name = self.name;
        let update = move |state: &mut Vec<u32>| {
            state.resize(LANES, 0);
            let bits = self.bits();
            let partitions = partitions.start.min(LANES)..partitions.end.min(LANES);
            state[partitions.clone()].copy_from_slice(&bits[partitions]);
        };
        (name, Box::new(update))
    }

    fn bits(&self) -> Vec<u32> {
        self.lanes.iter().map(|lane| lane.load(Ordering::Relaxed)).collect()
    }
}

/// The partitions of a view.
pub(crate) fn partitions(view: &View) -> Range<usize> {
    let first = view.partition as usize;
    first..first + view.partitions() as usize
}

/// The reset value of an accumulator.
pub(crate) fn neutral(op: AluOp) -> f32 {
    match op {
        AluOp::AbsMin => f32::INFINITY,
        op => reduce::neutral(op),
    }
}

/// The reduction of a row.
fn fold(op: AluOp, row: &[f32]) -> f32 {
    match op {
        AluOp::AbsMax | AluOp::AbsMin => {
            let f = alu::function(op, false);
            row.iter().fold(neutral(op), |acc, &x| f(acc, x))
        }
        op => reduce::reduce(op, row),
    }
}

/// The reduction behind an instruction.
pub(crate) struct Reduction<'a> {
    /// Whose accumulators: [`VECTOR`] or [`SCALAR`].
    pub(crate) state: &'static str,
    pub(crate) op: AluOp,
    pub(crate) cmd: ReduceCmd,
    /// The initial value for `load_reduce`.
    pub(crate) init: Option<&'a ScalarOperand>,
    /// Destination of the accumulators' read-out.
    pub(crate) result: Option<&'a View>,
    /// The result is negated when it is read out.
    pub(crate) negate: bool,
    /// `idle` leaves unknown values in the accumulators ("may still be modified"): NaN here, so that no kernel relies on them.
    pub(crate) idle_clobbers: bool,
}

impl Reduction<'_> {
    /// Checks the operator, the command, the initial value, and the result against `tile`.
    ///
    /// # Errors
    /// `op-unsupported`, `missing-operand`, and those of [`check::reduction_result`].
    pub(crate) fn validate(&self, tile: Named<'_>, ops: &[AluOp], cmds: &[ReduceCmd]) -> Result<(), Violation> {
        if !ops.contains(&self.op) {
            return Err(one_of("reduce_op", self.op, ops));
        }
        if !cmds.contains(&self.cmd) {
            return Err(one_of("reduce_cmd", self.cmd, cmds));
        }
        if let Some(result) = self.result {
            check::reduction_result(tile, ("reduce_res", result))?;
            if self.cmd == ReduceCmd::Idle && self.state == VECTOR {
                return Err(Violation::new(
                    "missing-operand",
                    "reduce_cmd",
                    "`reduce_res` is given, but `reduce_cmd` is idle: nothing is accumulated, so nothing can be read out",
                )
                .help("set reduce_cmd=nisa.reduce_cmd.reset_reduce, or leave `reduce_res` out"));
            }
        }
        if let Some(init) = self.init {
            check::scalar_operand(tile, "reduce_init", init)?;
        }
        Ok(())
    }

    /// Computes `dst` row by row with `f(partition, inputs, output)` and reduces the fp32 result, before it is rounded to the
    /// type of `dst`. `f` receives `sources`, followed by the reduction's own input. The call may be deferred
    /// (see [`Machine::map_f32`]).
    pub(crate) fn run<'s>(
        &'s self,
        machine: &mut dyn Machine,
        dst: &View,
        mut sources: Sources<'s>,
        f: impl Fn(usize, &[&[f32]], &mut [f32]) + Send + Sync + 'static,
    ) -> Result<(), Fault> {
        if self.touches_no_accumulator() {
            let row = move |p: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| f(p, ins, outs[0]);
            return machine.map_f32(&[dst], &sources, Box::new(row), None);
        }
        let (step, lanes) = self.prepare(machine, &mut sources);
        // Each partition has an accumulator.
        let first = dst.partition as usize;
        let lanes = Arc::new(lanes);
        let own = if self.cmd == ReduceCmd::Idle { 0..LANES } else { partitions(dst) };
        let update = Arc::clone(&lanes).into_update(own);
        let row = move |p: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
            f(p, ins, outs[0]);
            step.apply(&lanes, first + p, ins, outs);
        };
        match self.result {
            Some(result) => machine.map_f32(&[dst, result], &sources, Box::new(row), Some(update)),
            None => machine.map_f32(&[dst], &sources, Box::new(row), Some(update)),
        }
    }

    /// Whether a later instruction may read out this one's accumulators.
    pub(crate) fn sets_engine_state(&self) -> bool {
        match self.cmd {
            ReduceCmd::Idle => false,
            ReduceCmd::ResetReduce => self.result.is_none(),
            ReduceCmd::Reset | ReduceCmd::Reduce | ReduceCmd::LoadReduce => true,
        }
    }

    /// How it uses the accumulators.
    pub(crate) fn accumulators(&self) -> AccumulatorUse {
        let engine = if self.state == SCALAR { Engine::Scalar } else { Engine::Vector };
        let reads = match self.cmd {
            ReduceCmd::Reduce => true,
            ReduceCmd::Idle => self.result.is_some(),
            ReduceCmd::Reset | ReduceCmd::ResetReduce | ReduceCmd::LoadReduce => false,
        };
        let idle = self.cmd == ReduceCmd::Idle;
        AccumulatorUse {
            engine,
            reads,
            sets: !idle,
            clobbers: idle && self.idle_clobbers,
            resets: matches!(self.cmd, ReduceCmd::Reset | ReduceCmd::ResetReduce | ReduceCmd::LoadReduce),
            reduces: matches!(self.cmd, ReduceCmd::Reduce | ReduceCmd::ResetReduce | ReduceCmd::LoadReduce),
            reads_out: self.result.is_some(),
        }
    }

    fn touches_no_accumulator(&self) -> bool {
        self.cmd == ReduceCmd::Idle && self.result.is_none() && !self.idle_clobbers
    }

    /// The step for each row, and the initial accumulators.
    fn prepare<'s>(&'s self, machine: &mut dyn Machine, sources: &mut Sources<'s>) -> (Step, Lanes) {
        let init = scalars::scalar_f32(machine, self.init, sources);
        let lanes = match self.cmd {
            ReduceCmd::Reset | ReduceCmd::ResetReduce => Lanes::filled(self.state, neutral(self.op)),
            ReduceCmd::Idle if self.idle_clobbers => Lanes::filled(self.state, f32::NAN),
            _ => Lanes::load(machine, self.state),
        };
        let reduces = matches!(self.cmd, ReduceCmd::Reduce | ReduceCmd::ResetReduce | ReduceCmd::LoadReduce);
        let loads = self.cmd == ReduceCmd::LoadReduce;
        (Step { op: self.op, init, loads, reduces, negate: self.negate }, lanes)
    }
}

/// The reduction of a computed row.
#[derive(Clone, Copy)]
struct Step {
    op: AluOp,
    init: Scalar<f32>,
    loads: bool,
    reduces: bool,
    negate: bool,
}

impl Step {
    fn apply(&self, lanes: &Lanes, p: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]) {
        let mut value = if self.loads { self.init.get(ins) } else { lanes.get(p) };
        if self.reduces {
            value = alu::scalar(self.op, value, fold(self.op, outs[0]));
            lanes.set(p, value);
        }
        if let Some(out) = outs.get_mut(1).and_then(|o| o.first_mut()) {
            *out = if self.negate { -value } else { value };
        }
    }
}

/// The violation for a vocabulary member that the instruction does not support.
pub(crate) fn one_of<T: std::fmt::Display>(operand: &'static str, got: T, allowed: &[T]) -> Violation {
    let names: Vec<_> = allowed.iter().map(T::to_string).collect();
    Violation::new("op-unsupported", operand, format!("`{operand}` is {got}; it must be {}", names.join(", ")))
}
