//! Runs a compiled program on several ranks, each with its own arrays.

use nki_diag::{Applied, ColorChoice, Diagnostic, SourceMap, render_all};
use nki_sim::report::{self, RankView};
use nki_sim::session::{Launch, Stop};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::Array;
use crate::cache::Compiled;
use crate::errors::{call_error, kernel_error, ours, value_error};
use crate::run::{Outcome, run_session};
use crate::values::{Wanted, recorders};

/// The result of a run of several ranks.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug)]
pub(crate) struct RanksOutcome {
    /// The outcomes, by rank.
    #[pyo3(get)]
    ranks: Vec<Py<Outcome>>,
}

/// Runs one program per rank, from 0, concurrently; they synchronise at collectives.
#[pyfunction]
#[pyo3(signature = (ranks, timed, wanted=None))]
pub(crate) fn run_ranks(
    py: Python<'_>,
    ranks: Vec<Py<Compiled>>,
    timed: bool,
    wanted: Option<Wanted>,
) -> PyResult<RanksOutcome> {
    let ranks: Vec<&Compiled> = ranks.iter().map(Py::get).collect();
    let Some(first) = ranks.first() else { return Err(value_error("there is no rank to run")) };
    let session = first.session()?;
    let arrays: Vec<Vec<&Array>> = ranks.iter().map(|r| r.in_order()).collect::<PyResult<_>>()?;
    check_apart(py, &ranks, &arrays)?;
    let inputs = ranks.iter().zip(&arrays).map(|(r, a)| r.inputs_of(py, a)).collect::<PyResult<Vec<_>>>()?;
    let mut recorders = recorders(py, &ranks, wanted.as_ref())?;
    let mut to_run: Vec<Launch<'_, '_>> =
        ranks.iter().zip(inputs).map(|(r, inputs)| Launch::new(&r.ready.kernel, inputs)).collect();
    if !recorders.is_empty() {
        to_run = to_run.into_iter().zip(&mut recorders).map(|(launch, recorder)| launch.observed(recorder)).collect();
    }
    let done = run_session(py, &session, to_run, timed, false)?.map_err(|stop| match stop {
        Stop::Kernel(fault) => {
            let Compiled { judge, ready, .. } = ranks[fault.rank];
            kernel_error(py, judge.judge(fault.found_on_rank()), &ready.compiled.sources)
        }
        Stop::Call(message) => call_error(message),
    })?;
    let mut found: Vec<Applied> = ranks.iter().zip(&done).map(|(r, (ran, _))| r.judged(ran)).collect();
    if let Some(rank) = found.iter().position(|a| a.diagnostics.iter().any(Diagnostic::is_error)) {
        let mut applied = found.swap_remove(rank);
        for d in &mut applied.diagnostics {
            d.notes.push(format!("on rank {rank}"));
        }
        return Err(kernel_error(py, applied, &ranks[rank].ready.compiled.sources));
    }
    let mut values = recorders.into_iter().map(|r| r.finish(py)).collect::<PyResult<Vec<_>>>()?.into_iter();
    let mut outcomes = Vec::with_capacity(ranks.len());
    for (((rank, arrays), (ran, timeline)), applied) in ranks.iter().zip(&arrays).zip(done).zip(found) {
        outcomes.push(Py::new(py, rank.finish(py, arrays, ran, applied, timeline, values.next())?)?);
    }
    Ok(RanksOutcome { ranks: outcomes })
}

/// Ranks have separate memory: an array that one rank writes must not belong to another.
fn check_apart(py: Python<'_>, ranks: &[&Compiled], arrays: &[Vec<&Array>]) -> PyResult<()> {
    for (rank, compiled) in ranks.iter().enumerate() {
        for (input, output) in &compiled.ready.written {
            let array = arrays[rank][*input];
            if array.immutable && *output < compiled.ready.outputs {
                // Its new contents are returned.
                continue;
            }
            for (other, theirs) in arrays.iter().enumerate().filter(|(other, _)| *other != rank) {
                let mut with = None;
                for (position, one) in theirs.iter().enumerate() {
                    if array.overlaps(py, one)? {
                        with = Some(position);
                        break;
                    }
                }
                if let Some(with) = with {
                    let name = &compiled.ready.kernel.program.inputs[*input].name;
                    let with = &ranks[other].ready.kernel.program.inputs[with].name;
                    let message = format!(
                        "the kernel writes its argument `{name}`, and rank {rank}'s array shares memory with `{with}` of rank {other}; \
                         pass a list with an array of its own for each rank"
                    );
                    return Err(ours(py, "ArgumentError", &message));
                }
            }
        }
    }
    Ok(())
}

/// Diagnostics of ranks without repeats: ranks run one kernel, and usually have the same findings.
fn once<'a>(outcomes: &[&'a Outcome]) -> Vec<(Vec<&'a Diagnostic>, &'a SourceMap)> {
    let mut seen: Vec<&Diagnostic> = Vec::new();
    let mut out = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        let mut new = Vec::new();
        for d in &outcome.applied.diagnostics {
            if !seen.contains(&d) {
                seen.push(d);
                new.push(d);
            }
        }
        out.push((new, &outcome.ready.compiled.sources));
    }
    out
}

#[pymethods]
impl RanksOutcome {
    /// Findings of compiling and running on any rank, rendered.
    fn findings(&self) -> String {
        let mut out = String::new();
        for (new, sources) in once(&self.outcomes()) {
            let new: Vec<Diagnostic> = new.into_iter().cloned().collect();
            out.push_str(&render_all(&new, sources, ColorChoice::Plain));
        }
        out
    }

    /// The report, as written by `nki-sim run --ranks N --json`.
    fn json(&self) -> PyResult<String> {
        let outcomes = self.outcomes();
        let mut found = Vec::new();
        for (new, sources) in once(&outcomes) {
            found.extend(new.into_iter().map(|d| nki_diag::to_json(d, sources)));
        }
        // Denied findings have already raised an exception.
        report::ranks_json(&views(&outcomes)?, found, Vec::new()).map_err(PyRuntimeError::new_err)
    }

    /// One line per rank, and the table of the slowest.
    fn table(&self) -> PyResult<String> {
        Ok(report::ranks_text(&views(&self.outcomes())?))
    }

    /// The timelines as one Perfetto trace.
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &report::ranks_trace(&views(&self.outcomes())?)))
    }
}

impl RanksOutcome {
    fn outcomes(&self) -> Vec<&Outcome> {
        self.ranks.iter().map(Py::get).collect()
    }
}

fn views<'a>(outcomes: &[&'a Outcome]) -> PyResult<Vec<RankView<'a>>> {
    outcomes.iter().map(|o| Ok(RankView { kernel: &o.ready.kernel, timeline: o.timeline()? })).collect()
}
