//! `nki-sim run FILE`: outputs, findings, comparison and timeline, of one rank or of several that synchronise at collectives.

use std::path::{Path, PathBuf};

use nki_diag::{Applied, Diagnostic, Mode};
use nki_frontend::{Arg, Arguments as _};
use nki_isa::Program;
use nki_sim_core::analysis::remedies;
use nki_sim_core::exec::NeedsData;
use nki_sim_core::labels::Labels;
use nki_sim_core::report;
use nki_sim_core::timeline::Timeline;

use super::{ranks, script};
use crate::cli::{KernelArgs, RunArgs};
use crate::expected::{self, Comparisons, Expected};
use crate::inputs::Given;
use crate::intermediates::{self, Departure, Dump, Dumps};
use crate::kernel::{CommandArguments, Sink, add_run_line, compile, conclude, fail, finish, session};
use crate::output::{self, PendingOutput, eprint, output_file, print, write_file, write_outputs};
use crate::places::{Inputs, check_places};
use crate::python::{Stepped, Tracer};
use crate::report::{Report, page, trace_file};
use crate::session::{Compilation, Kernel, Launch, Numerics, Ran, Session, Stop, findings_of};
use crate::{Failure, memory, python, stage, tables};

/// A program of one or several ranks.
pub(super) struct Placed {
    pub(super) compiled: Compilation,
    pub(super) kernel: Kernel,
    /// The arguments for which it was compiled, except tensor values.
    arguments: Vec<(String, Arg)>,
}

/// Runs the kernel and reports.
pub(crate) fn run(mut args: RunArgs) -> Result<(), Failure> {
    // Sets the limit before the first file is read.
    memory::limit(args.kernel.max_memory.as_deref())?;
    if args.ranks.is_none() && script::wanted(&args) {
        return script::run(&args);
    }
    let is_lowered = args.kernel.file.extension().is_some_and(|e| e == "nkir");
    if args.stop.is_some() && (is_lowered || python::tracer(&args.kernel).is_none()) {
        let why = "--break stops in Python's debugger, so Python has to execute the kernel: add --frontend python, with the kernel's source";
        return Err(Failure::Call(why.into()));
    }
    if args.stop.is_some() {
        check_terminal("--break")?;
    }
    let numerics = if args.no_numerics { Numerics::IfNeeded } else { Numerics::Computed };
    let reported = args.parquet.is_some() || reports_of(&args, &[]).iter().any(|(_, file)| file.is_some());
    let session = Session { reported, ..session(&args.kernel, Mode::Run, numerics, Some(&args.timing))? };
    let dumps = intermediates::dumps_of(&args)?;
    // Before reading the run line: an invalid one is written to the report.
    check_places(&reports_of(&args, &dumps), &inputs_of(&args))?;
    add_run_line(&session, &mut args.kernel, Sink::file(args.json.as_deref()))?;
    let args = &args;
    if let Some(directory) = args.parquet.as_ref().filter(|_| args.ranks.is_none()) {
        tables::check(directory)?;
    }
    // Detects an invalid --expect file before the work.
    let expected = expected::read(&args.expected.expect)?;
    let waiting = PendingOutput::new("compiling");
    let (placed, of_rank) = place_all(args, &session, &expected)?;
    waiting.say("executing and timing");
    let mut found: Vec<Diagnostic> = placed.iter().flat_map(|p| p.compiled.diagnostics.iter().cloned()).collect();
    if let Some(needed) = placed[0].kernel.needs_data() {
        found.push(values_needed(needed));
    }
    let programs: Vec<&Placed> = of_rank.iter().map(|(program, _)| &placed[*program]).collect();
    let mut to_run: Vec<Launch<'_, '_>> =
        of_rank.into_iter().map(|(p, inputs)| Launch::new(&placed[p].kernel, inputs)).collect();
    let mut observer = Dumps::new(&placed[0].kernel.program, &dumps)?;
    if !dumps.is_empty() {
        // --dump excludes --ranks.
        to_run = to_run.pop().map(|launch| launch.observed(&mut observer)).into_iter().collect();
    }
    if let Some(tracer) = python::tracer(&args.kernel).filter(|t| args.stop.is_some() || t.breaks()) {
        check_terminal("`breakpoint()`")?;
        step(args, &session, &placed[0], tracer)?;
    }
    let mut outcomes = Vec::new();
    let done = session.run_timed(to_run, &mut |all| {
        outcomes = all.iter_mut().enumerate().map(|(rank, ran)| taken(args, rank, ran, &programs, &expected)).collect();
    });
    drop(waiting);
    let (mut all, timelines) = match done {
        Ok(done) => done,
        Err(Stop::Call(message)) => return Err(Failure::Call(message)),
        Err(Stop::Kernel(fault)) => {
            let compiled = &programs[fault.rank].compiled;
            if args.ranks.is_none() {
                print_lines(&fault.prints);
                found.extend(fault.found());
            } else {
                found.extend(fault.found_on_rank());
            }
            return Err(fail(&session, compiled, Sink::file(args.json.as_deref()), found));
        }
    };
    found.extend(findings_of(&all));
    let mut compared = outcomes.into_iter().collect::<Result<Vec<Comparisons>, Failure>>()?;
    observer.write()?;
    if args.ranks.is_some() {
        let applied = conclude(&session, found, &placed[0].compiled.sources);
        ranks::report(args, &programs, all, &timelines, &applied, compared)
    } else {
        let ran = all.swap_remove(0);
        print_lines(&ran.prints);
        let applied = conclude(&session, found, &placed[0].compiled.sources);
        let comparisons = compared.swap_remove(0);
        let outcome = report_alone(args, &session, &placed[0], ran, &timelines[0], &applied, &comparisons);
        // The process ends: freeing a long program piece by piece would take longer than all remaining work.
        std::mem::forget((placed, timelines));
        outcome
    }
}

/// Checks that standard output is free for the debugger, whose text would otherwise be mixed with a report.
fn check_terminal(what: &str) -> Result<(), Failure> {
    if !output::stdout_is_reserved() {
        return Ok(());
    }
    Err(Failure::Call(format!(
        "{what} stops in Python's debugger, which uses standard output: write the report to a file"
    )))
}

/// Lets Python execute the kernel again in the debugger.
fn step(args: &RunArgs, session: &Session, placed: &Placed, tracer: &dyn Tracer) -> Result<(), Failure> {
    let inputs = || inputs_again(args);
    let sources = &placed.compiled.sources;
    let what = Stepped { session, kernel: &placed.kernel, sources, inputs: &inputs };
    Ok(tracer.step(&what, args.stop.as_ref())?)
}

/// Creates the kernel's inputs again: a run does not keep them.
fn inputs_again(args: &RunArgs) -> Result<Vec<Given>, String> {
    let arguments = CommandArguments::parse(&args.kernel.args).map_err(|_| "cannot read the arguments again")?;
    arguments.values()?;
    Ok(arguments.into_tensors())
}

/// A rank's program, by index, and its inputs.
type OfRank = (usize, Vec<Given>);

/// Compiles and places the programs of all ranks: the programs, and for each rank its program and inputs. Without `--ranks` there is one rank.
fn place_all(args: &RunArgs, session: &Session, expected: &[Expected]) -> Result<(Vec<Placed>, Vec<OfRank>), Failure> {
    let count = args.ranks.map_or(1, |n| n as usize);
    if args.ranks.is_some() {
        args.expected.expect.iter().try_for_each(|(name, _)| ranks::split(name, count).map(drop))?;
    }
    let mut placed: Vec<Placed> = Vec::new();
    let mut of_rank = Vec::with_capacity(count);
    for rank in 0..count {
        let mut own = args.kernel.clone();
        if args.ranks.is_some() {
            own.args = ranks::for_rank(&args.kernel.args, rank, count)?;
        }
        // Ranks with arguments of the same shapes and values share a program.
        if !placed.is_empty() {
            let arguments = CommandArguments::parse(&own.args)?;
            let values = arguments.values()?;
            if let Some(known) = placed.iter().position(|p| *p.arguments == *values) {
                of_rank.push((known, arguments.into_tensors()));
                continue;
            }
        }
        let (program, arguments) = place(args, session, &own, expected)?;
        of_rank.push((placed.len(), arguments.into_tensors()));
        placed.push(program);
    }
    Ok((placed, of_rank))
}

/// Compiles and places the program for one rank's arguments; reports errors.
fn place(
    args: &RunArgs,
    session: &Session,
    own: &KernelArgs,
    expected: &[Expected],
) -> Result<(Placed, CommandArguments), Failure> {
    let (mut compiled, arguments) = stage("compile", || compile("run", session, own))?;
    let (dumps, results) = (intermediates::dumps_of(args)?, results_of(args, compiled.program.as_ref()));
    let mut files = reports_of(args, &dumps);
    files.extend(results.iter().map(|(option, path)| (*option, Some(path.as_path()))));
    check_places(&files, &Inputs::of_sources(&compiled.sources))?;
    if let Some(program) = compiled.program.as_ref().filter(|_| args.ranks.is_none() && !compiled.is_wrong()) {
        expected::check_names(program, expected)?;
    }
    match session.place(&mut compiled) {
        Ok(kernel) => {
            let values = arguments.values()?.into_owned();
            Ok((Placed { compiled, kernel, arguments: values }, arguments))
        }
        Err(stop) => Err(fail(session, &compiled, Sink::file(args.json.as_deref()), compiled.with(stop.found()?))),
    }
}

/// Processes a rank's outputs as soon as they are available: writes them, and compares them with expected values.
fn taken(
    args: &RunArgs,
    rank: usize,
    ran: &mut Ran<'_>,
    programs: &[&Placed],
    expected: &[Expected],
) -> Result<Comparisons, Failure> {
    let outputs = std::mem::take(&mut ran.outputs);
    let several = args.ranks.is_some();
    if let Some(directory) = &args.out {
        let own = several.then(|| directory.join(format!("rank{rank}")));
        write_outputs(&inputs_of(args), own.as_ref().unwrap_or(directory), &outputs)?;
    }
    let tolerances = args.expected.tolerances();
    if !several {
        return Ok(expected::compare(outputs, expected, tolerances));
    }
    let own = ranks::expected_of(expected, rank, programs.len())?;
    expected::check_names(&programs[rank].kernel.program, &own)?;
    Ok(expected::compare(outputs, &own, tolerances))
}

/// Reports a run of one rank.
fn report_alone(
    args: &RunArgs,
    session: &Session,
    placed: &Placed,
    ran: Ran<'_>,
    timeline: &Timeline,
    applied: &Applied,
    comparisons: &Comparisons,
) -> Result<(), Failure> {
    let Placed { compiled, kernel, .. } = placed;
    let departure = departure_of(args, session, kernel, comparisons);
    if let Some(path) = &args.trace {
        write_file(path, &[&trace_file(path, report::perfetto(timeline, &kernel.program))?])?;
    }
    let budget = if args.json.is_some() || args.csv.is_some() || args.html.is_some() || args.critical_path {
        remedies::THOROUGH
    } else {
        remedies::QUICK
    };
    let waiting = PendingOutput::new("analysing");
    let (analysis, table) = rayon::join(
        || stage("analyse", || kernel.analyse(&ran.trace, timeline, budget)),
        || report::table(timeline, kernel.error_bar(timeline).as_ref()),
    );
    if let Some(path) = &args.csv {
        write_file(path, &[report::csv(&analysis).as_bytes()])?;
    }
    if let Some(directory) = &args.parquet {
        tables::check_inputs(directory, &inputs_of(args))?;
        stage("parquet", || crate::report::run_parquet(directory, kernel, &analysis, applied, &compiled.sources))?;
    }
    if let Some(path) = &args.html {
        let page = page(kernel, applied, &compiled.sources);
        let text =
            stage("html", || report::html(&analysis, &page)).map_err(|e| format!("cannot write the page: {e}"))?;
        write_file(path, &[text.as_bytes()])?;
    }
    if let Some(path) = &args.json {
        let whole = Report {
            expected: comparisons.done.clone(),
            departure: departure.as_ref().and_then(|d| d.as_ref().ok()?.clone()),
            ..Report::new(kernel, timeline, Some(&analysis), applied, &compiled.sources)?
        };
        write_file(path, &[&crate::report::json(&whole)?])?;
    }
    drop(waiting);
    print(&table);
    print(&report::advice(&analysis));
    print(&crate::report::changes_text(kernel));
    if args.critical_path {
        print(&report::critical_path(&analysis));
    }
    for c in &comparisons.done {
        print(&format!("{}\n", c.text()));
    }
    if let Some(departure) = &departure {
        print(&match departure {
            Ok(Some(departure)) => format!("{}\n", departure.text()),
            Ok(None) => "no instruction departs from fp32 by more than the tolerance: rounding does not explain the difference\n".into(),
            Err(why) => format!("where values depart from fp32 is not known: {why}\n"),
        });
    }
    for problem in &comparisons.problems {
        eprint(&format!("error: {problem}\n"));
    }
    std::mem::forget(analysis);
    std::mem::forget(ran.trace);
    let differs = !comparisons.problems.is_empty() || comparisons.done.iter().any(|c| !c.passed);
    finish(applied)?;
    if differs { Err(Failure::Kernel) } else { Ok(()) }
}

fn print_lines(lines: &[String]) {
    for line in lines {
        print(&format!("{line}\n"));
    }
}

/// The input files of the command.
pub(super) fn inputs_of(args: &RunArgs) -> Inputs {
    Inputs::of_kernel(&args.kernel).and_timing(&args.timing).and_expected(&args.expected.expect)
}

/// The output files, except outputs of the kernel.
fn reports_of<'a>(args: &'a RunArgs, dumps: &'a [Dump]) -> Vec<(&'static str, Option<&'a Path>)> {
    let mut out = vec![
        ("--json", args.json.as_deref()),
        ("--csv", args.csv.as_deref()),
        ("--trace", args.trace.as_deref()),
        ("--html", args.html.as_deref()),
    ];
    out.extend(dumps.iter().map(|dump| ("--dump", Some(dump.path.as_path()))));
    out
}

/// The files in existing output directories: outputs and tables. Ranks have separate directories.
fn results_of(args: &RunArgs, program: Option<&Program>) -> Vec<(&'static str, PathBuf)> {
    let there = |directory: &Option<PathBuf>| directory.clone().filter(|d| args.ranks.is_none() && d.is_dir());
    let mut out = Vec::new();
    if let (Some(directory), Some(program)) = (there(&args.out), program) {
        out.extend(program.outputs.iter().map(|o| ("--out", output_file(&directory, &o.name))));
    }
    if let Some(directory) = there(&args.parquet) {
        out.extend(tables::files(&directory).map(|path| ("--parquet", path)));
    }
    out
}

/// The reason why `--no-numerics` could not be honoured.
fn values_needed(needed: &NeedsData) -> Diagnostic {
    Diagnostic::info("needs-data", format!("values were computed in spite of --no-numerics: {}", needed.what))
        .at_source(needed.loc, "needs values")
}

/// The first departure from an fp32 run, if an output differs from its expected value. Errors in the search do not prevent the report.
fn departure_of(
    args: &RunArgs,
    session: &Session,
    kernel: &Kernel,
    comparisons: &Comparisons,
) -> Option<Result<Option<Departure>, String>> {
    let failed = comparisons.done.iter().find(|c| !c.passed).filter(|_| session.precise)?;
    Some(stage("departure", || intermediates::departure(session, kernel, || inputs_again(args), failed.tolerance)))
}
