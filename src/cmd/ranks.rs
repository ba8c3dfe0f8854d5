//! `nki-sim run FILE --ranks N`: the arguments of each rank, and the combined report.

use nki_diag::Applied;
use nki_sim_core::analysis::Analysis;
use nki_sim_core::report;
use nki_sim_core::timeline::Timeline;

use super::run::{self, Placed};
use crate::cli::RunArgs;
use crate::expected::{Comparisons, Expected};
use crate::kernel::finish;
use crate::output::{eprint, print, write_file};
use crate::report::{RankReport, RankView, RanksReport, ranks_text, ranks_trace, slowest, trace_file};
use crate::session::Ran;
use crate::{Failure, tables};

/// Reports a run of several ranks, from 0.
pub(super) fn report(
    args: &RunArgs,
    placed: &[&Placed],
    all: Vec<Ran<'_>>,
    timelines: &[Timeline],
    applied: &Applied,
    compared: Vec<Comparisons>,
) -> Result<(), Failure> {
    let views: Vec<RankView<'_>> =
        placed.iter().zip(timelines).map(|(p, timeline)| RankView { kernel: &p.kernel, timeline }).collect();
    let mut reports = RankReport::all(&views);
    let mut problems = Vec::new();
    let mut traces = Vec::with_capacity(all.len());
    for (rank, (ran, comparisons)) in all.into_iter().zip(compared).enumerate() {
        for line in &ran.prints {
            print(&format!("rank {rank}: {line}\n"));
        }
        problems.extend(comparisons.problems.into_iter().map(|p| format!("rank {rank}: {p}")));
        reports[rank].expected = comparisons.done;
        traces.push(ran.trace);
    }
    if let Some(path) = &args.trace {
        write_file(path, &[&trace_file(path, ranks_trace(&views))?])?;
    }
    print(&ranks_text(&views));
    let first = placed[0];
    if args.csv.is_some() || args.parquet.is_some() || args.html.is_some() || args.critical_path {
        // A remedy is tried by timing a single kernel; its effect among ranks is unknown.
        let analyses: Vec<Analysis<'_>> =
            views.iter().zip(&traces).map(|(v, trace)| v.kernel.analyse(trace, v.timeline, 0)).collect();
        if let Some(path) = &args.csv {
            write_file(path, &[report::csv_ranks(&analyses).as_bytes()])?;
        }
        if let Some(directory) = &args.parquet {
            let findings = crate::report::findings(&applied.diagnostics, &first.compiled.sources);
            for (rank, (view, analysis)) in views.iter().zip(&analyses).enumerate() {
                let run = tables::Run { kernel: view.kernel, analysis, findings: &findings };
                let directory = directory.join(format!("rank{rank}"));
                tables::check_inputs(&directory, &run::inputs_of(args))?;
                tables::write(&directory, &run)?;
            }
        }
        if let Some(path) = &args.html {
            let page = crate::report::page(&first.kernel, applied, &first.compiled.sources);
            let text = report::html_ranks(&analyses, &page).map_err(|e| format!("cannot write the page: {e}"))?;
            write_file(path, &[text.as_bytes()])?;
        }
        if args.critical_path {
            let rank = slowest(&views);
            print(&format!("\nrank {rank}:\n{}", report::critical_path(&analyses[rank])));
        }
    }
    for r in &reports {
        for c in &r.expected {
            print(&format!("rank {}: {}\n", r.rank, c.text()));
        }
    }
    for problem in &problems {
        eprint(&format!("error: {problem}\n"));
    }
    let differs = !problems.is_empty() || reports.iter().flat_map(|r| &r.expected).any(|c| !c.passed);
    if let Some(path) = &args.json {
        let found = crate::report::findings(&applied.diagnostics, &first.compiled.sources);
        let whole = RanksReport::new(&first.kernel, reports, found, applied.denied.clone());
        write_file(path, &[&crate::report::json(&whole)?])?;
    }
    finish(applied)?;
    if differs { Err(Failure::Kernel) } else { Ok(()) }
}

/// The expected outputs of one rank, under their bare names.
pub(super) fn expected_of(expected: &[Expected], rank: usize, count: usize) -> Result<Vec<Expected>, Failure> {
    let mut out = Vec::new();
    for e in expected {
        let (name, only) = split(&e.name, count)?;
        if only.is_none_or(|r| r == rank) {
            out.push(Expected { name: name.to_owned(), ..e.clone() });
        }
    }
    Ok(out)
}

/// `NAME@RANK` or `NAME`.
pub(super) fn split(name: &str, count: usize) -> Result<(&str, Option<usize>), Failure> {
    let Some((name, rank)) = name.rsplit_once('@') else { return Ok((name, None)) };
    match rank.parse::<usize>() {
        Ok(rank) if rank < count => Ok((name, Some(rank))),
        _ => Err(Failure::Call(format!("`{name}@{rank}`: ranks are 0 to {}", count - 1))),
    }
}

/// The arguments of one rank: the common ones, overridden by the rank's own.
pub(super) fn for_rank(all: &[(String, String)], rank: usize, count: usize) -> Result<Vec<(String, String)>, Failure> {
    let mut out: Vec<(String, String, bool)> = Vec::new();
    for (name, text) in all {
        let (name, only) = split(name, count)?;
        if only.is_some_and(|r| r != rank) {
            continue;
        }
        match out.iter_mut().find(|(n, ..)| n == name) {
            Some((_, _, own)) if *own == only.is_some() => {
                return Err(Failure::Call(format!("--arg {name} is given twice")));
            }
            Some(known) if only.is_some() => *known = (name.to_owned(), text.clone(), true),
            Some(_) => {}
            None => out.push((name.to_owned(), text.clone(), only.is_some())),
        }
    }
    Ok(out.into_iter().map(|(name, text, _)| (name, text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn an_argument_for_one_rank_replaces_that_for_all() {
        let all = list(&[("x@1", "one"), ("x", "all"), ("n", "3")]);
        assert_eq!(for_rank(&all, 0, 2).ok(), Some(list(&[("x", "all"), ("n", "3")])));
        assert_eq!(for_rank(&all, 1, 2).ok(), Some(list(&[("x", "one"), ("n", "3")])));
        assert!(for_rank(&list(&[("x", "a"), ("x", "b")]), 0, 2).is_err());
        assert!(for_rank(&list(&[("x@2", "a")]), 0, 2).is_err());
        assert!(for_rank(&list(&[("x@y", "a")]), 0, 2).is_err());
    }
}
