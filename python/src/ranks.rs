//! Running a compiled program on several ranks, each with arrays of its own.

use nki_diag::{Applied, ColorChoice, Diagnostic, SourceMap, render_all};
use nki_sim::session::{self, RankView};
use nki_sim_core::exec::{ExecOptions, Rank, run_ranks as execute};
use nki_sim_core::lint;
use nki_sim_core::timing::{self, Laws, Params, RankTrace};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::Array;
use crate::cache::Compiled;
use crate::errors::{kernel_error, ours, value_error};
use crate::run::Outcome;
use crate::threads::detached;

/// What a run of several ranks gave.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug)]
pub(crate) struct RanksOutcome {
    /// By rank.
    #[pyo3(get)]
    ranks: Vec<Py<Outcome>>,
}

/// Runs one program a rank, from 0, at the same time; they meet at collectives.
#[pyfunction]
pub(crate) fn run_ranks(py: Python<'_>, ranks: Vec<Py<Compiled>>, timed: bool) -> PyResult<RanksOutcome> {
    let ranks: Vec<&Compiled> = ranks.iter().map(Py::get).collect();
    let precise = nki_sim::settings::precise_fp().map_err(value_error)?;
    let arrays: Vec<Vec<&Array>> = ranks.iter().map(|r| r.in_order()).collect::<PyResult<_>>()?;
    check_apart(py, &ranks, &arrays)?;
    let inputs = ranks.iter().zip(&arrays).map(|(r, a)| r.inputs_of(py, a)).collect::<PyResult<Vec<_>>>()?;
    let to_run: Vec<Rank<'_>> = ranks
        .iter()
        .zip(inputs)
        .map(|(r, inputs)| {
            let session = &r.ready.session;
            Rank { program: &session.program, placement: &session.placement, inputs }
        })
        .collect();
    let Some(first) = ranks.first() else { return Err(value_error("there is no rank to run")) };
    let memory = nki_sim::memory::limit(None).map_err(value_error)?;
    let options = ExecOptions { precise, memory, checks: first.judge.checks(), ..ExecOptions::default() };
    let target = first.ready.session.program.target;
    let done = detached(py, || {
        let mut results = execute(to_run, &options)?;
        for (rank, result) in ranks.iter().zip(&mut results) {
            let session = &rank.ready.session;
            result.findings.extend(lint::accesses(&session.program, &session.placement, &result.trace));
        }
        let timelines = timed.then(|| {
            let params = Params::of(target);
            let laws = Laws::new(&params).map_err(|e| e.to_string())?;
            let traces: Vec<RankTrace<'_>> = ranks
                .iter()
                .zip(&results)
                .map(|(r, result)| {
                    let session = &r.ready.session;
                    RankTrace { program: &session.program, placement: &session.placement, trace: &result.trace }
                })
                .collect();
            Ok::<_, String>(timing::simulate_ranks(&traces, &laws))
        });
        Ok((results, timelines))
    })?;
    let (results, timelines) = done.map_err(|failed: Box<nki_sim_core::exec::RanksFailure>| {
        let mut all = failed.failure.findings;
        let note = |d: Diagnostic| d.note(format!("on rank {}", failed.rank));
        all.extend(failed.failure.errors.into_iter().map(note));
        kernel_error(py, ranks[failed.rank].judge.judge(all), &ranks[failed.rank].ready.sources)
    })?;
    let mut found: Vec<Applied> = ranks.iter().zip(&results).map(|(r, result)| r.judged(result)).collect();
    if let Some(rank) = found.iter().position(|a| a.diagnostics.iter().any(Diagnostic::is_error)) {
        let mut applied = found.swap_remove(rank);
        for d in &mut applied.diagnostics {
            d.notes.push(format!("on rank {rank}"));
        }
        return Err(kernel_error(py, applied, &ranks[rank].ready.sources));
    }
    let timelines = timelines.transpose().map_err(PyRuntimeError::new_err)?;
    let mut timelines = timelines.map(Vec::into_iter);
    let mut outcomes = Vec::with_capacity(ranks.len());
    for (((rank, arrays), result), applied) in ranks.iter().zip(&arrays).zip(results).zip(found) {
        let timeline = timelines.as_mut().and_then(Iterator::next);
        outcomes.push(Py::new(py, rank.finish(py, arrays, result, applied, timeline)?)?);
    }
    Ok(RanksOutcome { ranks: outcomes })
}

/// Each rank has memory of its own: an array that one writes cannot be that of another.
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
                    let name = &compiled.ready.session.program.inputs[*input].name;
                    let with = &ranks[other].ready.session.program.inputs[with].name;
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

/// Diagnostics of ranks, each once: ranks run one kernel, and mostly find the same.
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
        out.push((new, &outcome.ready.sources));
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

    /// The report as `nki-sim run --ranks N --json` writes it.
    fn json(&self) -> PyResult<String> {
        let outcomes = self.outcomes();
        let mut found = Vec::new();
        for (new, sources) in once(&outcomes) {
            found.extend(new.into_iter().map(|d| nki_diag::to_json(d, sources)));
        }
        // What is denied was raised.
        session::ranks_json(&views(&outcomes)?, found, Vec::new()).map_err(PyRuntimeError::new_err)
    }

    /// A line for each rank, and the table of the slowest.
    fn table(&self) -> PyResult<String> {
        Ok(session::ranks_table(&views(&self.outcomes())?))
    }

    /// The timelines as one Perfetto trace.
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &session::ranks_trace(&views(&self.outcomes())?)))
    }
}

impl RanksOutcome {
    fn outcomes(&self) -> Vec<&Outcome> {
        self.ranks.iter().map(Py::get).collect()
    }
}

fn views<'a>(outcomes: &[&'a Outcome]) -> PyResult<Vec<RankView<'a>>> {
    outcomes.iter().map(|o| Ok(RankView { session: &o.ready.session, timeline: o.timeline()? })).collect()
}
