//! Runs a program: numbers, findings and the dynamic trace.
//!
//! Semantics are those of program order. Cores, and ranks, run one after the other, each until it must wait for others: `rendezvous` pairs them,
//! `races` finds accesses that no rendezvous orders, `unlinked` those of a core to what the other has written to memory that the device may not
//! share. A fault of the kernel stops the run with a diagnostic; the trace until then is kept.

mod checks;
mod cores;
mod deferred;
mod disagreement;
mod findings;
mod inputs;
mod interpreter;
mod limits;
mod loop_local;
mod machine;
mod matmul_values;
mod observe;
mod overwrites;
mod pool;
mod races;
mod rendezvous;
mod rows;
mod taint;
mod trace_only;
mod trips;
mod unlinked;
mod value_findings;
mod values;
mod without_values;

use nki_diag::Diagnostic;
use nki_diag::memory::Limit;
use nki_isa::Program;

use crate::HostTensor;
use crate::memory::Memory;
pub use crate::memory::UnwrittenValue;
use crate::place::Placement;
use crate::trace::{CoreId, Trace};

pub use checks::Checks;
pub(crate) use findings::{iterations, name_of};
use interpreter::Interpreter;
pub use limits::{check_memory, check_trace};
pub(crate) use loop_local::common_loops;
pub use observe::{Extent, Inspect, Moment, Observed, Observer, Reached};
pub use pool::LITTLE;
use rendezvous::Pairing;
pub use trace_only::{NeedsData, check_rendezvous, trace_only, trace_within};
pub(crate) use without_values::{never_written, without_values};

/// The options of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecOptions {
    /// Round every written value to its element type. Off (`NKI_PRECISE_FP=0`), all floats are kept as fp32.
    pub precise: bool,
    /// Maximum number of statements executed inside dynamic loops, so that endless loops terminate.
    pub step_limit: u64,
    /// Memory that tensors and trace may use.
    pub memory: Limit,
    /// Whether reports will list every executed statement, which takes memory, too.
    pub reported: bool,
    /// The enabled findings about values.
    pub checks: Checks,
    /// The value of unwritten memory.
    pub unwritten: UnwrittenValue,
    /// Whether `uninitialized-read` includes reads that have no effect on arguments and results. In kernels for `neuronxcc.nki` these are
    /// common: a masked load leaves elements of a tile unwritten, functions process all of them, and a masked store drops the results.
    pub reads_without_effect: bool,
}

impl Default for ExecOptions {
    fn default() -> Self {
        ExecOptions {
            precise: true,
            step_limit: 4_000_000,
            memory: Limit::NONE,
            reported: false,
            checks: Checks::ALL,
            unwritten: UnwrittenValue::default(),
            reads_without_effect: true,
        }
    }
}

/// The result of a completed run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExecResult {
    /// The outputs, in the program's order.
    pub outputs: Vec<HostTensor>,
    /// The executed instructions.
    pub trace: Trace,
    /// Findings in execution order.
    pub findings: Vec<Diagnostic>,
    /// Lines that the kernel printed on the device.
    pub prints: Vec<String>,
}

/// A run that ended early.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The errors that ended it.
    pub errors: Vec<Diagnostic>,
    /// The instructions executed until then.
    pub trace: Trace,
    /// Findings until then.
    pub findings: Vec<Diagnostic>,
    /// Lines printed until then.
    pub prints: Vec<String>,
}

/// A rank of a run. All ranks may have the same program or separate ones.
pub struct Rank<'p> {
    /// The program that it executes.
    pub program: &'p Program,
    /// The addresses of its tensors.
    pub placement: &'p Placement,
    /// Its inputs, in the order of [`Program::inputs`].
    pub inputs: Vec<HostTensor>,
    /// Observes the values that its instructions write.
    pub observer: Option<&'p mut dyn Observer>,
}

/// A run of several ranks that ended early.
#[derive(Debug, Clone, PartialEq)]
pub struct RanksFailure {
    /// The rank that failed.
    pub rank: usize,
    /// Its error.
    pub failure: Failure,
}

/// Runs `program` on `inputs` (in the order of [`Program::inputs`]).
///
/// # Errors
/// If the inputs do not match the program, or the kernel faults (an access out of bounds, an endless loop, a deadlock).
pub fn run(
    program: &Program,
    placement: &Placement,
    inputs: Vec<HostTensor>,
    options: &ExecOptions,
) -> Result<ExecResult, Box<Failure>> {
    match run_ranks(vec![Rank { program, placement, inputs, observer: None }], options) {
        Ok(mut results) => Ok(results.pop().unwrap_or_default()),
        Err(failed) => Err(Box::new(failed.failure)),
    }
}

/// Runs all ranks concurrently; they synchronise at collectives. Returns one result per rank.
///
/// # Errors
/// As [`run`], for the first rank that fails.
pub fn run_ranks(ranks: Vec<Rank<'_>>, options: &ExecOptions) -> Result<Vec<ExecResult>, Box<RanksFailure>> {
    for (rank, r) in ranks.iter().enumerate() {
        let mut errors = inputs::check(r.program, &r.inputs);
        errors.extend(limits::check_memory(r.program, r.placement, options));
        if !errors.is_empty() {
            let failure = Failure { errors, trace: Trace::default(), findings: Vec::new(), prints: Vec::new() };
            return Err(Box::new(RanksFailure { rank, failure }));
        }
    }
    let elements = ranks.iter().flat_map(|r| &r.program.tensors).map(|t| t.elements()).fold(0, usize::saturating_add);
    pool::with_threads_awake(elements, || run_checked(ranks, options))
}

fn run_checked(ranks: Vec<Rank<'_>>, options: &ExecOptions) -> Result<Vec<ExecResult>, Box<RanksFailure>> {
    let mut running: Vec<Interpreter<'_>> = ranks
        .into_iter()
        .enumerate()
        .map(|(rank, Rank { program, placement, inputs, observer })| {
            let mut memory = Memory::new(program, placement, options.precise);
            memory.unwritten = options.unwritten;
            for (input, host) in program.inputs.iter().zip(inputs) {
                memory.load(input.tensor, host.data);
            }
            let mut interpreter = Interpreter::new(program, memory, rank as u32, options);
            interpreter.observer = observer;
            interpreter
        })
        .collect();
    let mut pairing = Pairing::default();
    let outcome = rendezvous::run(&mut running[..], &mut pairing);
    let mut take_trace = |rank: usize, run: &mut Interpreter<'_>| {
        let mut trace = run.take_trace();
        for (core, of_core) in trace.cores.iter_mut().enumerate() {
            of_core.rendezvous = pairing.take(CoreId { rank, core: core as u32 });
        }
        trace
    };
    if let Err(cores::Stopped { rank, error }) = outcome {
        let mut run = running.swap_remove(rank);
        let trace = take_trace(rank, &mut run);
        let (findings, prints) = run.into_messages();
        return Err(Box::new(RanksFailure {
            rank,
            failure: Failure { errors: vec![*error], trace, findings, prints },
        }));
    }
    let results = running.into_iter().enumerate().map(|(rank, mut run)| {
        let outputs = run.outputs();
        let trace = take_trace(rank, &mut run);
        run.findings.uneven_trips(run.program, &trace);
        let (findings, prints) = run.into_messages();
        ExecResult { outputs, trace, findings, prints }
    });
    Ok(results.collect())
}

#[cfg(test)]
mod differential;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod value_tests;
