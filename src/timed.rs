//! From a compiled kernel to its timeline without values: what `whatif` and `sweep` share.

use nki_diag::Diagnostic;
use nki_isa::Program;
use nki_sim_core::exec::{self, ExecOptions};
use nki_sim_core::lint;
use nki_sim_core::place::{self, Placement};
use nki_sim_core::timeline::Timeline;
use nki_sim_core::timing::{self, Params};
use nki_sim_core::trace::Trace;

use crate::cli::TimingArgs;
use crate::inputs::{Given, in_order};
use crate::kernel::{Prepared, any_error};
use crate::{Failure, settings};

/// A kernel that was timed.
pub(crate) struct Timed {
    pub(crate) program: Program,
    pub(crate) placement: Placement,
    pub(crate) trace: Trace,
    pub(crate) params: Params,
    pub(crate) timeline: Timeline,
    /// Of compiling it, and of what it executes; levels are not applied yet.
    pub(crate) findings: Vec<Diagnostic>,
}

/// The kernel is wrong; the diagnostics say how. Levels are not applied yet.
pub(crate) struct Stop(pub(crate) Vec<Diagnostic>);

/// Places, traces and times what was prepared. Values are computed only if the control flow or addresses need them.
pub(crate) fn time(
    prepared: &mut Prepared,
    timing: &TimingArgs,
    max_steps: Option<u64>,
) -> Result<Result<Timed, Stop>, Failure> {
    let mut findings = std::mem::take(&mut prepared.diagnostics);
    let program = match prepared.program.take() {
        Some(program) if !any_error(&findings) => program,
        _ => return Ok(Err(Stop(findings))),
    };
    let params = settings::timing_params(program.target, timing)?;
    let placement = match place::place_with(&program, prepared.capacity) {
        Ok(placement) => placement,
        Err(errors) => {
            findings.extend(errors);
            return Ok(Err(Stop(findings)));
        }
    };
    let trace = match exec::trace_only(&program) {
        Ok(trace) => {
            if let Some(error) = exec::check_trace(&trace, prepared.memory) {
                findings.push(error);
                return Ok(Err(Stop(findings)));
            }
            findings.extend(lint::without_run(&program, &placement, &trace));
            trace
        }
        Err(_) => {
            let tensors: Vec<Given> = std::mem::take(&mut prepared.tensors);
            let mut options = ExecOptions {
                precise: settings::precise_fp()?,
                memory: prepared.memory,
                checks: prepared.judge.checks(),
                ..ExecOptions::default()
            };
            if let Some(steps) = max_steps {
                options.step_limit = steps;
            }
            if let Some(error) = exec::check_memory(&program, &placement, &options) {
                findings.push(error);
                return Ok(Err(Stop(findings)));
            }
            match exec::run(&program, &placement, in_order(&program, tensors), &options) {
                Ok(ran) => {
                    findings.extend(ran.findings);
                    findings.extend(lint::accesses(&program, &placement, &ran.trace));
                    ran.trace
                }
                Err(failed) => {
                    findings.extend(failed.findings);
                    findings.extend(failed.errors);
                    return Ok(Err(Stop(findings)));
                }
            }
        }
    };
    let timeline = timing::simulate(&program, &placement, &trace, &params)
        .map_err(|e| Failure::Call(format!("timing parameters: {e}")))?;
    Ok(Ok(Timed { program, placement, trace, params, timeline, findings }))
}
