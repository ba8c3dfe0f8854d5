//! Several ranks at once: run them, then time them on one clock.

use nki_diag::Diagnostic;
use nki_isa::Program;

use crate::exec::{self, ExecOptions, ExecResult, Rank, RanksFailure};
use crate::lint;
use crate::place::Placement;
use crate::timeline::Timeline;
use crate::timing::{Laws, ParamError, Params, RankTrace, simulate_ranks as time};

/// What one rank did.
#[derive(Debug, Clone, PartialEq)]
pub struct RankRun {
    /// Outputs, findings, trace, prints.
    pub result: ExecResult,
    /// When.
    pub timeline: Timeline,
}

/// Why there is no result.
#[derive(Debug)]
pub enum RanksError {
    /// The kernel is wrong.
    Kernel(Box<RanksFailure>),
    /// A timing parameter has no meaning.
    Params(ParamError),
}

/// Runs and times all ranks, from 0: one result for each. They start together and meet at collectives.
///
/// # Errors
/// If an input does not fit its rank's program, the kernel faults or its ranks wait for each other for ever; or if a parameter has no meaning.
pub fn simulate_ranks(
    ranks: Vec<Rank<'_>>,
    options: &ExecOptions,
    params: &Params,
) -> Result<Vec<RankRun>, RanksError> {
    let laws = Laws::new(params).map_err(RanksError::Params)?;
    let programs: Vec<(&Program, &Placement)> = ranks.iter().map(|r| (r.program, r.placement)).collect();
    let mut results = exec::run_ranks(ranks, options).map_err(RanksError::Kernel)?;
    for ((program, placement), result) in programs.iter().zip(&mut results) {
        result.findings.extend(lint::accesses(program, placement, &result.trace));
    }
    let traces: Vec<RankTrace<'_>> = programs
        .iter()
        .zip(&results)
        .map(|((program, placement), result)| RankTrace { program, placement, trace: &result.trace })
        .collect();
    let timelines = time(&traces, &laws);
    Ok(results.into_iter().zip(timelines).map(|(result, timeline)| RankRun { result, timeline }).collect())
}

/// The findings of all ranks, each once: ranks run one kernel, and mostly find the same.
pub fn findings(runs: &[RankRun]) -> Vec<Diagnostic> {
    let mut out: Vec<Diagnostic> = Vec::new();
    for found in runs.iter().flat_map(|r| &r.result.findings) {
        if !out.contains(found) {
            out.push(found.clone());
        }
    }
    out
}
