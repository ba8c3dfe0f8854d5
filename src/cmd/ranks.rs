//! `nki-sim run FILE --ranks N`: one kernel on several ranks that meet at collectives.

use nki_diag::Mode;
use nki_sim_core::analysis::counters::Facts;
use nki_sim_core::analysis::remedies::Case;
use nki_sim_core::exec::{ExecOptions, Rank, check_memory};
use nki_sim_core::place::{self, Placement};
use nki_sim_core::ranks::{self, RanksError};
use nki_sim_core::report::{self, Analysis};

use super::run::{self, Expected};
use crate::cli::{KernelArgs, RunArgs};
use crate::inputs::{self, Given};
use crate::kernel::{Prepared, any_error, finish, prepare};
use crate::output::{eprint, print, write_file};
use crate::places::{Inputs, check_places};
use crate::report::{RankReport, RanksReport, ranks_text, slowest};
use crate::{Failure, settings, stage, value};

/// Arguments as the frontend takes them.
type Arguments = Vec<(String, nki_frontend::Arg)>;

/// A compiled kernel and where its tensors lie.
struct Compiled {
    prepared: Prepared,
    program: nki_isa::Program,
    placement: Placement,
    /// The arguments that it was compiled for, values of tensors aside.
    arguments: Arguments,
}

/// Runs the kernel on all ranks and reports.
pub(super) fn run(args: &RunArgs, count: usize) -> Result<(), Failure> {
    let precise = settings::precise_fp()?;
    let expected = run::read_expected(args)?;
    for (name, _) in args.kernel.args.iter().chain(&args.expect) {
        split(name, count)?;
    }
    // Ranks with arguments of the same shapes and values share a program.
    let mut compiled: Vec<Compiled> = Vec::new();
    let mut of_rank: Vec<(usize, Vec<Given>)> = Vec::with_capacity(count);
    for rank in 0..count {
        let own = KernelArgs { args: for_rank(&args.kernel.args, rank, count)?, ..args.kernel.clone() };
        let (arguments, tensors) = resolve(&own)?;
        let known = compiled.iter().position(|c| c.arguments == arguments);
        let program = match known {
            Some(program) => program,
            None => {
                compiled.push(compile(args, &own, arguments)?);
                compiled.len() - 1
            }
        };
        of_rank.push((program, tensors));
    }
    let Some(first) = compiled.first() else { return Err(Failure::Call("--ranks 0".into())) };
    let expected_of = |rank: usize| -> Result<Vec<&Expected>, Failure> {
        let mut out = Vec::new();
        for e in &expected {
            let (_, only) = split(&e.name, count)?;
            if only.is_none_or(|r| r == rank) {
                out.push(e);
            }
        }
        Ok(out)
    };
    let params = settings::timing_params(first.program.target, &args.timing)?;
    let memory = first.prepared.memory.shared_by(count);
    let mut options = ExecOptions { precise, memory, ..ExecOptions::default() };
    if let Some(steps) = args.kernel.max_steps {
        options.step_limit = steps;
    }
    let mut programs = Vec::with_capacity(count);
    let mut run_ranks = Vec::with_capacity(count);
    for (program, tensors) in of_rank {
        let c = &compiled[program];
        programs.push(c);
        if let Some(error) = check_memory(&c.program, &c.placement, &options) {
            return run::fail(args, &c.prepared, vec![error]);
        }
        let inputs_of = inputs::in_order(&c.program, tensors);
        run_ranks.push(Rank { program: &c.program, placement: &c.placement, inputs: inputs_of });
    }
    let mut findings: Vec<_> = Vec::new();
    for c in &compiled {
        findings.extend(c.prepared.diagnostics.iter().cloned());
    }
    let runs = match stage("execute", || ranks::simulate_ranks(run_ranks, &options, &params)) {
        Ok(runs) => runs,
        Err(RanksError::Params(e)) => return Err(Failure::Call(format!("timing parameters: {e}"))),
        Err(RanksError::Kernel(failed)) => {
            findings.extend(failed.failure.findings);
            let note = |d: nki_diag::Diagnostic| d.note(format!("on rank {}", failed.rank));
            findings.extend(failed.failure.errors.into_iter().map(note));
            return run::fail(args, &programs[failed.rank].prepared, findings);
        }
    };
    findings.extend(ranks::findings(&runs));
    let applied = first.prepared.conclude(findings);

    let mut reports = Vec::new();
    let mut problems = Vec::new();
    for (rank, run) in runs.iter().enumerate() {
        let c = programs[rank];
        for line in &run.result.prints {
            print(&format!("rank {rank}: {line}\n"));
        }
        if let Some(directory) = &args.out {
            run::write_outputs(args, &directory.join(format!("rank{rank}")), &run.result.outputs)?;
        }
        // Compared by the bare name.
        let mut named = Vec::new();
        for e in expected_of(rank)? {
            named.push(Expected {
                name: split(&e.name, count)?.0.to_owned(),
                file: e.file.clone(),
                array: e.array.clone(),
            });
        }
        let named: Vec<&Expected> = named.iter().collect();
        run::check_expected_names(&c.program, &named)?;
        let comparisons = run::compare_outputs(args, run.result.outputs.clone(), &named);
        problems.extend(comparisons.problems.into_iter().map(|p| format!("rank {rank}: {p}")));
        let report = RankReport::new(rank, &c.program, &c.placement, &run.timeline);
        reports.push(RankReport { expected: comparisons.done, ..report });
    }
    let timelines: Vec<_> = runs.iter().map(|r| &r.timeline).collect();
    if let Some(path) = &args.trace {
        let pairs: Vec<_> = timelines.iter().copied().zip(programs.iter().map(|c| &c.program)).collect();
        write_file(path, &[&report::perfetto_ranks(&pairs)])?;
    }
    print(&ranks_text(&timelines, &reports));
    let found = crate::report::findings(&applied.diagnostics, &first.prepared.sources);
    if args.csv.is_some() || args.html.is_some() || args.critical_path {
        // A remedy is tried by timing a kernel again alone; what it would do among ranks is not known.
        let analyses: Vec<Analysis<'_>> = runs
            .iter()
            .zip(&programs)
            .map(|(run, c)| {
                let (program, placement) = (&c.program, &c.placement);
                let case =
                    Case { program, placement, trace: &run.result.trace, params: &params, timeline: &run.timeline };
                Analysis::new(case, Facts::of(program), 0)
            })
            .collect();
        if let Some(path) = &args.csv {
            write_file(path, &[report::csv_ranks(&analyses).as_bytes()])?;
        }
        if let Some(path) = &args.html {
            let page = crate::report::page(&first.program, &first.prepared.sources, &found);
            let text = report::html_ranks(&analyses, &page).map_err(|e| format!("cannot write the page: {e}"))?;
            write_file(path, &[text.as_bytes()])?;
        }
        if args.critical_path {
            let rank = slowest(&timelines);
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
        let whole = RanksReport::new(&first.prepared.name, &first.program, reports, found, applied.denied.clone());
        write_file(path, &[&crate::report::json(&whole)?])?;
    }
    finish(&applied)?;
    if differs { Err(Failure::Kernel) } else { Ok(()) }
}

/// `NAME@RANK` or `NAME`.
fn split(name: &str, count: usize) -> Result<(&str, Option<usize>), Failure> {
    let Some((name, rank)) = name.rsplit_once('@') else { return Ok((name, None)) };
    match rank.parse::<usize>() {
        Ok(rank) if rank < count => Ok((name, Some(rank))),
        _ => Err(Failure::Call(format!("`{name}@{rank}`: ranks are 0 to {}", count - 1))),
    }
}

/// The arguments of one rank: those for all, replaced by those for it.
fn for_rank(all: &[(String, String)], rank: usize, count: usize) -> Result<Vec<(String, String)>, Failure> {
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

/// Values of arguments, and the tensors in them.
fn resolve(args: &KernelArgs) -> Result<(Arguments, Vec<Given>), Failure> {
    let mut tensors = Vec::new();
    let mut arguments = Vec::new();
    for (position, (name, text)) in args.args.iter().enumerate() {
        let value = value::parse(text).map_err(|e| Failure::Call(format!("--arg {name}={text}: {e}")))?;
        arguments.push((name.clone(), inputs::resolve(name, &value, position, &mut tensors)?));
    }
    Ok((arguments, tensors))
}

/// Compiles and places; what is wrong is reported.
fn compile(args: &RunArgs, own: &KernelArgs, arguments: Vec<(String, nki_frontend::Arg)>) -> Result<Compiled, Failure> {
    let mut prepared = stage("compile", || prepare("run", own, Mode::Run))?;
    check_places(&run::reports_of(args), &Inputs::of_sources(&prepared.sources))?;
    let mut wrong = prepared.diagnostics.clone();
    if let Some(program) = prepared.program.take()
        && !any_error(&wrong)
    {
        match stage("place", || place::place_with(&program, prepared.capacity)) {
            Ok(placement) => return Ok(Compiled { prepared, program, placement, arguments }),
            Err(errors) => wrong.extend(errors),
        }
    }
    run::fail(args, &prepared, wrong)?;
    Err(Failure::Kernel)
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
