//! Runs a program: numbers, findings and the dynamic trace.
//!
//! Program order is the meaning. Cores run one after the other. A fault of the kernel stops the run with a diagnostic; everything that was
//! traced until then is kept.

mod findings;
mod inputs;
mod interpreter;
mod machine;
mod pool;
mod rows;
mod trace_only;

use nki_diag::Diagnostic;
use nki_isa::Program;

use crate::HostTensor;
use crate::memory::Memory;
use crate::place::Placement;
use crate::trace::{CoreTrace, Trace};

use interpreter::Interpreter;
pub use trace_only::{NeedsData, trace_only};

/// How to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecOptions {
    /// Round every written value to its element type. Off (`NKI_PRECISE_FP=0`), all floats are kept as fp32.
    pub precise: bool,
    /// Most statements that may be executed inside dynamic loops, so that an endless loop ends.
    pub step_limit: u64,
}

impl Default for ExecOptions {
    fn default() -> Self {
        ExecOptions { precise: true, step_limit: 4_000_000 }
    }
}

/// What a run gives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExecResult {
    /// In the program's order.
    pub outputs: Vec<HostTensor>,
    /// What was executed.
    pub trace: Trace,
    /// What is doubtful, in the order of execution.
    pub findings: Vec<Diagnostic>,
    /// What the kernel printed on the device, a line each.
    pub prints: Vec<String>,
}

/// A run that did not come to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Why.
    pub errors: Vec<Diagnostic>,
    /// What had been executed.
    pub trace: Trace,
    /// Findings until then.
    pub findings: Vec<Diagnostic>,
    /// Printed until then.
    pub prints: Vec<String>,
}

/// Runs `program` on `inputs` (in the order of [`Program::inputs`]).
///
/// # Errors
/// If the inputs do not match the program, or the kernel faults (an access out of bounds, an endless loop).
pub fn run(
    program: &Program,
    placement: &Placement,
    inputs: Vec<HostTensor>,
    options: &ExecOptions,
) -> Result<ExecResult, Box<Failure>> {
    let errors = inputs::check(program, &inputs);
    if !errors.is_empty() {
        return Err(Box::new(Failure { errors, trace: Trace::default(), findings: Vec::new(), prints: Vec::new() }));
    }
    pool::with_threads_awake(|| run_checked(program, placement, inputs, options))
}

fn run_checked(
    program: &Program,
    placement: &Placement,
    inputs: Vec<HostTensor>,
    options: &ExecOptions,
) -> Result<ExecResult, Box<Failure>> {
    let mut memory = Memory::new(program, placement, options.precise);
    for (input, host) in program.inputs.iter().zip(inputs) {
        memory.load(input.tensor, host.data);
    }
    let mut run = Interpreter::new(program, memory, options);
    let mut trace = Trace::default();
    for (core, stream) in program.cores.iter().enumerate() {
        let mut events = Vec::with_capacity(stream.len());
        let outcome = run.core(core as u32, stream, &mut events);
        trace.cores.push(CoreTrace { events });
        if let Err(error) = outcome {
            let (findings, prints) = run.into_messages();
            return Err(Box::new(Failure { errors: vec![*error], trace, findings, prints }));
        }
    }
    let outputs = run.outputs();
    let (findings, prints) = run.into_messages();
    Ok(ExecResult { outputs, trace, findings, prints })
}

#[cfg(test)]
mod differential;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod tests;
