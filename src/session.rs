//! A program that is placed and can be run: what `nki-sim run` does, for callers that hold their tensors in memory.

use nki_diag::{Applied, Denied, Diagnostic, JsonDiagnostic, SourceMap};
use nki_isa::Program;
use nki_sim_core::analysis::counters::Facts;
use nki_sim_core::analysis::remedies::Case;
use nki_sim_core::exec::{self, ExecOptions, ExecResult, Failure, Rank};
use nki_sim_core::lint;
use nki_sim_core::place::{self, Capacity, Placement};
use nki_sim_core::ranks::{RankRun, RanksError};
use nki_sim_core::report::Analysis;
use nki_sim_core::timeline::Timeline;
use nki_sim_core::timing::{self, Params};
use nki_sim_core::trace::Trace;
use nki_sim_core::{HostTensor, report};

use crate::VERSION;
use crate::report::{RankReport, RanksReport, Report, findings, json, outputs_of, page, ranks_text};

/// A program with its placement.
#[derive(Debug)]
pub struct Session {
    /// The program.
    pub program: Program,
    /// Where its tensors are.
    pub placement: Placement,
    /// The timing parameters of its target.
    params: Params,
}

impl Session {
    /// Places a program.
    ///
    /// # Errors
    /// If it needs more memory than there is.
    pub fn new(program: Program) -> Result<Self, Vec<Diagnostic>> {
        Session::with_capacity(program, Capacity::Error)
    }

    /// Places a program; `capacity` says what happens if it needs more memory than there is.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn with_capacity(program: Program, capacity: Capacity) -> Result<Self, Vec<Diagnostic>> {
        let placement = place::place_with(&program, capacity)?;
        let params = Params::of(program.target);
        Ok(Session { program, placement, params })
    }

    /// Runs it on inputs in the order of [`Program::inputs`].
    ///
    /// # Errors
    /// If the kernel faults.
    pub fn run(&self, inputs: Vec<HostTensor>, options: &ExecOptions) -> Result<ExecResult, Box<Failure>> {
        let mut ran = exec::run(&self.program, &self.placement, inputs, options)?;
        ran.findings.extend(lint::accesses(&self.program, &self.placement, &ran.trace));
        Ok(ran)
    }

    /// The timeline of a run, with the parameters that belong to the target.
    ///
    /// # Errors
    /// If the parameters do not fit together.
    pub fn time(&self, trace: &Trace) -> Result<Timeline, String> {
        timing::simulate(&self.program, &self.placement, trace, &self.params).map_err(|e| e.to_string())
    }

    /// What took the time of a run, and what could be gained: remedies are tried with at most `budget` instructions timed again.
    pub fn analyse<'a>(&'a self, trace: &'a Trace, timeline: &'a Timeline, budget: usize) -> Analysis<'a> {
        let (program, placement) = (&self.program, &self.placement);
        let case = Case { program, placement, trace, params: &self.params, timeline };
        Analysis::new(case, Facts::of(program), budget)
    }

    /// The report of a run as `nki-sim run --json` writes it; without an analysis, the summary alone.
    ///
    /// # Errors
    /// If a number cannot be written as JSON.
    pub fn json(
        &self,
        timeline: &Timeline,
        analysis: Option<&Analysis<'_>>,
        applied: &Applied,
        sources: &SourceMap,
    ) -> Result<String, String> {
        let whole = Report {
            nki_sim_version: VERSION,
            kernel: self.program.name.to_string(),
            target: self.program.target.to_string(),
            lnc: self.program.cores.len(),
            outputs: outputs_of(&self.program),
            summary: report::summary(timeline, &self.placement),
            detail: analysis.map(|a| crate::report::detail(a, sources)).transpose()?,
            findings: findings(&applied.diagnostics, sources),
            denied: applied.denied.clone(),
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

/// One rank of a run that is over.
#[derive(Debug, Clone, Copy)]
pub struct RankView<'a> {
    /// What it ran.
    pub session: &'a Session,
    /// When.
    pub timeline: &'a Timeline,
}

fn rank_reports(ranks: &[RankView<'_>]) -> Vec<RankReport> {
    let one =
        |(rank, v): (usize, &RankView<'_>)| RankReport::new(rank, &v.session.program, &v.session.placement, v.timeline);
    ranks.iter().enumerate().map(one).collect()
}

fn timelines<'a>(ranks: &[RankView<'a>]) -> Vec<&'a Timeline> {
    ranks.iter().map(|v| v.timeline).collect()
}

/// The report of several ranks, from 0, as `nki-sim run --ranks N --json` writes it.
///
/// # Errors
/// If there is no rank, or a number cannot be written as JSON.
pub fn ranks_json(
    ranks: &[RankView<'_>],
    findings: Vec<JsonDiagnostic>,
    denied: Vec<Denied>,
) -> Result<String, String> {
    let first = ranks.first().ok_or("there is no rank")?;
    let program = &first.session.program;
    let whole = RanksReport::new(&program.name, program, rank_reports(ranks), findings, denied);
    String::from_utf8(json(&whole)?).map_err(|e| e.to_string())
}

/// A line for each rank, from 0, and the table of engines of the slowest.
pub fn ranks_table(ranks: &[RankView<'_>]) -> String {
    ranks_text(&timelines(ranks), &rank_reports(ranks))
}

/// The timelines of all ranks, from 0, as one Perfetto trace.
pub fn ranks_trace(ranks: &[RankView<'_>]) -> Vec<u8> {
    let pairs: Vec<_> = ranks.iter().map(|v| (v.timeline, &v.session.program)).collect();
    report::perfetto_ranks(&pairs)
}
