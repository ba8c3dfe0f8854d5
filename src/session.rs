//! A program that is placed and can be run: what `nki-sim run` does, for callers that hold their tensors in memory.

use nki_diag::{Diagnostic, SourceMap};
use nki_isa::Program;
use nki_sim_core::exec::{self, ExecOptions, ExecResult, Failure, Rank};
use nki_sim_core::place::{self, Placement};
use nki_sim_core::ranks::{RankRun, RanksError};
use nki_sim_core::report::Analysis;
use nki_sim_core::timeline::Timeline;
use nki_sim_core::timing::{self, Params};
use nki_sim_core::trace::Trace;
use nki_sim_core::{HostTensor, report};

use crate::report::{Report, findings, json, outputs_of, page};

/// A program with its placement.
#[derive(Debug)]
pub struct Session {
    /// The program.
    pub program: Program,
    /// Where its tensors are.
    pub placement: Placement,
}

impl Session {
    /// Places a program.
    ///
    /// # Errors
    /// If it needs more memory than there is.
    pub fn new(program: Program) -> Result<Self, Vec<Diagnostic>> {
        let placement = place::place(&program)?;
        Ok(Session { program, placement })
    }

    /// Runs it on inputs in the order of [`Program::inputs`].
    ///
    /// # Errors
    /// If the kernel faults.
    pub fn run(&self, inputs: Vec<HostTensor>, options: &ExecOptions) -> Result<ExecResult, Box<Failure>> {
        exec::run(&self.program, &self.placement, inputs, options)
    }

    /// The timeline of a run, with the parameters that belong to the target.
    ///
    /// # Errors
    /// If the parameters do not fit together.
    pub fn time(&self, trace: &Trace) -> Result<Timeline, String> {
        timing::simulate(&self.program, &self.placement, trace, &Params::of(self.program.target))
            .map_err(|e| e.to_string())
    }

    /// What took the time of a run, and what could be gained: remedies are tried with at most `budget` instructions timed again.
    pub fn analyse<'a>(&'a self, trace: &Trace, timeline: &'a Timeline, budget: usize) -> Analysis<'a> {
        let params = Params::of(self.program.target);
        Analysis::new(&self.program, &self.placement, trace, &params, timeline, budget)
    }

    /// The report of a run as `nki-sim run --json` writes it; without an analysis, the summary alone.
    ///
    /// # Errors
    /// If a number cannot be written as JSON.
    pub fn json(
        &self,
        timeline: &Timeline,
        analysis: Option<&Analysis<'_>>,
        diagnostics: &[Diagnostic],
        sources: &SourceMap,
    ) -> Result<String, String> {
        let whole = Report {
            kernel: self.program.name.to_string(),
            target: self.program.target.to_string(),
            lnc: self.program.cores.len(),
            outputs: outputs_of(&self.program),
            summary: report::summary(timeline, &self.placement),
            detail: analysis.map(report::detail).transpose().map_err(|e| e.to_string())?,
            findings: findings(diagnostics, sources),
            expected: Vec::new(),
        };
        String::from_utf8(json(&whole)?).map_err(|e| e.to_string())
    }

    /// The page of a run as `nki-sim run --html` writes it.
    ///
    /// # Errors
    /// If a number cannot be written as JSON.
    pub fn html(
        &self,
        analysis: &Analysis<'_>,
        diagnostics: &[Diagnostic],
        sources: &SourceMap,
    ) -> Result<String, String> {
        report::html(analysis, &page(&self.program, sources, &findings(diagnostics, sources)))
            .map_err(|e| e.to_string())
    }
}

/// Runs and times several ranks at once: a session and its inputs for each, from rank 0. Ranks may share a session.
///
/// # Errors
/// As [`nki_sim_core::ranks::simulate_ranks`].
pub fn simulate_ranks(
    ranks: Vec<(&Session, Vec<HostTensor>)>,
    options: &ExecOptions,
    params: &Params,
) -> Result<Vec<RankRun>, RanksError> {
    let ranks = ranks.into_iter().map(|(session, inputs)| Rank {
        program: &session.program,
        placement: &session.placement,
        inputs,
    });
    nki_sim_core::ranks::simulate_ranks(ranks.collect(), options, params)
}
