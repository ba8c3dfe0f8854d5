//! `nki-sim run FILE`: outputs, findings, comparison and timeline.

use std::path::Path;

use nki_diag::{Diagnostic, FileId, Mode, Span};
use nki_isa::Program;
use nki_sim_core::analysis::counters::Facts;
use nki_sim_core::analysis::remedies::{self, Case};
use nki_sim_core::exec::{self, ExecOptions, NeedsData};
use nki_sim_core::lint;
use nki_sim_core::place::{self, Placement};
use nki_sim_core::report::Analysis;
use nki_sim_core::timing;
use nki_sim_core::trace::Trace;
use nki_sim_core::{HostTensor, report};

use crate::cli::RunArgs;
use crate::cmd::script;
use crate::compare::{self, Comparison, Tolerance};
use crate::inputs::{Given, in_order};
use crate::kernel::{Prepared, any_error, finish, prepare};
use crate::npy::{self, Array, Elem};
use crate::output::{eprint, print, write_file};
use crate::places::{Inputs, check_places};
use crate::report::{Checked, Report, outputs_of, page};
use crate::{Failure, VERSION, memory, settings, stage};

/// Runs the kernel and reports.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    // In force before the first file is read.
    memory::limit(args.kernel.max_memory.as_deref())?;
    let inputs = inputs_of(args);
    check_places(&reports_of(args), &inputs)?;
    if let Some(ranks) = args.ranks {
        return super::ranks::run(args, ranks as usize);
    }
    if script::wanted(args) {
        return script::run(args);
    }
    let precise = settings::precise_fp()?;
    // A wrong --expect file is found before the work.
    let expected = read_expected(args)?;
    let mut prepared = stage("compile", || prepare("run", &args.kernel, Mode::Run))?;
    check_places(&reports_of(args), &Inputs::of_sources(&prepared.sources))?;
    let mut findings = std::mem::take(&mut prepared.diagnostics);
    let program = match prepared.program.take() {
        Some(program) if !any_error(&findings) => program,
        _ => return fail(args, &prepared, findings),
    };
    check_expected_names(&program, &expected.iter().collect::<Vec<_>>())?;
    let params = settings::timing_params(program.target, &args.timing)?;
    let (placed, (facts, traced)) = rayon::join(
        || stage("place", || place::place_with(&program, prepared.capacity)),
        || (Facts::of(&program), args.no_numerics.then(|| trace(&program, args.kernel.max_steps))),
    );
    let placement = match placed {
        Ok(placement) => placement,
        Err(errors) => {
            findings.extend(errors);
            return fail(args, &prepared, findings);
        }
    };
    let traced = match traced {
        Some(Err(needed)) => {
            findings.push(values_needed(&needed));
            None
        }
        other => other.and_then(Result::ok),
    };
    let tensors = std::mem::take(&mut prepared.tensors);
    let limits =
        ExecOptions { precise, memory: prepared.memory, checks: prepared.judge.checks(), ..ExecOptions::default() };
    let Ok(ran) = execute(args, &program, &placement, traced, limits, tensors, &mut findings) else {
        return fail(args, &prepared, findings);
    };
    let (timeline, found) = rayon::join(
        || stage("time", || timing::simulate(&program, &placement, &ran.trace, &params)),
        || stage("findings", || ran.findings(&program, &placement)),
    );
    let timeline = timeline.map_err(|e| Failure::Call(format!("timing parameters: {e}")))?;
    findings.extend(found);

    let applied = prepared.conclude(findings);
    if let Some(directory) = &args.out {
        write_outputs(args, directory, &ran.outputs)?;
    }
    let comparisons = compare_outputs(args, ran.outputs, &expected.iter().collect::<Vec<_>>());
    if let Some(path) = &args.trace {
        write_file(path, &[&report::perfetto(&timeline, &program)])?;
    }
    let budget = if args.json.is_some() || args.csv.is_some() || args.html.is_some() || args.critical_path {
        remedies::THOROUGH
    } else {
        remedies::QUICK
    };
    let case =
        Case { program: &program, placement: &placement, trace: &ran.trace, params: &params, timeline: &timeline };
    let (analysis, table) =
        rayon::join(|| stage("analyse", || Analysis::new(case, facts, budget)), || report::table(&timeline));
    if let Some(path) = &args.csv {
        write_file(path, &[report::csv(&analysis).as_bytes()])?;
    }
    let shown = crate::report::findings(&applied.diagnostics, &prepared.sources);
    if let Some(path) = &args.html {
        let page = page(&program, &prepared.sources, &shown);
        let text =
            stage("html", || report::html(&analysis, &page)).map_err(|e| format!("cannot write the page: {e}"))?;
        write_file(path, &[text.as_bytes()])?;
    }
    if let Some(path) = &args.json {
        let whole = Report {
            nki_sim_version: VERSION,
            kernel: prepared.name.clone(),
            target: program.target.to_string(),
            lnc: program.cores.len(),
            outputs: outputs_of(&program),
            summary: report::summary(&timeline, &placement),
            detail: Some(crate::report::detail(&analysis, &prepared.sources)?),
            findings: shown,
            denied: applied.denied.clone(),
            expected: comparisons.done.clone(),
        };
        write_file(path, &[&crate::report::json(&whole)?])?;
    }
    print(&table);
    print(&report::advice(&analysis));
    if args.critical_path {
        print(&report::critical_path(&analysis));
    }
    for c in &comparisons.done {
        print(&format!("{}\n", c.text()));
    }
    for problem in &comparisons.problems {
        eprint(&format!("error: {problem}\n"));
    }
    // The process ends: to give back the pieces of a long program one by one would take longer than anything that is left to do.
    std::mem::forget(analysis);
    std::mem::forget((timeline, ran.trace, placement, program, prepared));
    let differs = !comparisons.problems.is_empty() || comparisons.done.iter().any(|c| !c.passed);
    finish(&applied)?;
    if differs { Err(Failure::Kernel) } else { Ok(()) }
}

/// The files that are read.
fn inputs_of(args: &RunArgs) -> Inputs {
    let mut inputs = Inputs::of_kernel(&args.kernel).and_timing(&args.timing);
    for (name, file) in &args.expect {
        inputs.add(&format!("--expect {name}"), file.as_ref());
    }
    inputs
}

/// The files that are written, outputs aside.
pub(super) fn reports_of(args: &RunArgs) -> [(&'static str, Option<&Path>); 4] {
    [
        ("--json", args.json.as_deref()),
        ("--csv", args.csv.as_deref()),
        ("--trace", args.trace.as_deref()),
        ("--html", args.html.as_deref()),
    ]
}

/// The kernel is wrong: its diagnostics on the terminal and in the JSON file.
pub(super) fn fail(args: &RunArgs, prepared: &Prepared, found: Vec<Diagnostic>) -> Result<(), Failure> {
    let applied = prepared.conclude(found);
    if let Some(path) = &args.json {
        let shown = crate::report::findings(&applied.diagnostics, &prepared.sources);
        let failed = Checked::new(&prepared.name, prepared.target, shown, applied.denied.clone());
        write_file(path, &[&crate::report::json(&failed)?])?;
    }
    finish(&applied)?;
    Err(Failure::Kernel)
}

/// The trace without values, within the steps that a run would have.
fn trace(program: &Program, max_steps: Option<u64>) -> Result<Trace, NeedsData> {
    match max_steps {
        Some(steps) => exec::trace_within(program, steps),
        None => exec::trace_only(program),
    }
}

/// Says that `--no-numerics` could not be honoured, and why.
fn values_needed(needed: &NeedsData) -> Diagnostic {
    let span = Span::new(FileId(needed.loc.file), needed.loc.start, needed.loc.end);
    Diagnostic::info("needs-data", format!("values were computed in spite of --no-numerics: {}", needed.what)).at_loc(
        span,
        needed.loc.line,
        needed.loc.column,
        "needs values",
    )
}

/// The kernel faulted while it ran; the findings say how.
struct Stopped;

struct Ran {
    outputs: Vec<HostTensor>,
    trace: Trace,
    /// Values were computed.
    values: bool,
}

impl Ran {
    /// What is found beside the run itself.
    fn findings(&self, program: &Program, placement: &Placement) -> Vec<Diagnostic> {
        let find = if self.values { lint::accesses } else { lint::without_run };
        find(program, placement, &self.trace)
    }
}

/// Runs the program; if its trace is there already, numbers are not wanted.
fn execute(
    args: &RunArgs,
    program: &Program,
    placement: &Placement,
    traced: Option<Trace>,
    mut options: ExecOptions,
    tensors: Vec<Given>,
    findings: &mut Vec<Diagnostic>,
) -> Result<Ran, Stopped> {
    if let Some(trace) = traced {
        if let Some(error) = exec::check_trace(&trace, options.memory) {
            findings.push(error);
            return Err(Stopped);
        }
        return Ok(Ran { outputs: Vec::new(), trace, values: false });
    }
    if let Some(steps) = args.kernel.max_steps {
        options.step_limit = steps;
    }
    // Made-up inputs are made below.
    if let Some(error) = exec::check_memory(program, placement, &options) {
        findings.push(error);
        return Err(Stopped);
    }
    let inputs = in_order(program, tensors);
    let (outputs, trace, found, prints, stopped) =
        match stage("execute", || exec::run(program, placement, inputs, &options)) {
            Ok(r) => (r.outputs, r.trace, r.findings, r.prints, false),
            Err(f) => {
                let mut found = f.findings;
                found.extend(f.errors);
                (Vec::new(), f.trace, found, f.prints, true)
            }
        };
    for line in prints {
        print(&format!("{line}\n"));
    }
    findings.extend(found);
    if stopped {
        return Err(Stopped);
    }
    Ok(Ran { outputs, trace, values: true })
}

/// An array that an output is to equal.
pub(super) struct Expected {
    pub(super) name: String,
    pub(super) file: String,
    pub(super) array: Array,
}

pub(super) fn read_expected(args: &RunArgs) -> Result<Vec<Expected>, Failure> {
    let mut out: Vec<Expected> = Vec::new();
    for (name, file) in &args.expect {
        if out.iter().any(|e| e.name == *name) {
            return Err(Failure::Call(format!("--expect {name} is given twice")));
        }
        let array = npy::read(file.as_ref()).map_err(|e| format!("--expect {name}: {e}"))?;
        out.push(Expected { name: name.clone(), file: file.clone(), array });
    }
    Ok(out)
}

pub(super) fn check_expected_names(program: &Program, expected: &[&Expected]) -> Result<(), Failure> {
    for e in expected {
        if !program.outputs.iter().any(|o| *o.name == *e.name) {
            let names: Vec<String> = program.outputs.iter().map(|o| format!("`{}`", o.name)).collect();
            return Err(Failure::Call(format!(
                "--expect {}: kernel `{}` has no output of that name; it has {}",
                e.name,
                program.name,
                if names.is_empty() { "no outputs".into() } else { names.join(", ") }
            )));
        }
    }
    Ok(())
}

pub(super) fn write_outputs(args: &RunArgs, directory: &Path, outputs: &[HostTensor]) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)
        .map_err(|e| Failure::Call(format!("cannot make directory `{}`: {e}", directory.display())))?;
    let paths: Vec<_> = outputs.iter().map(|o| directory.join(format!("{}.npy", o.name))).collect();
    let inputs = inputs_of(args);
    paths.iter().try_for_each(|path| inputs.check("--out", path))?;
    for (output, path) in outputs.iter().zip(paths) {
        let header = npy::header(output.dtype, &output.shape);
        write_file(&path, &[&header, &output.data])?;
    }
    Ok(())
}

/// What came of `--expect`.
pub(super) struct Comparisons {
    pub(super) done: Vec<Comparison>,
    pub(super) problems: Vec<String>,
}

pub(super) fn compare_outputs(args: &RunArgs, mut outputs: Vec<HostTensor>, expected: &[&Expected]) -> Comparisons {
    let mut out = Comparisons { done: Vec::new(), problems: Vec::new() };
    for e in expected {
        let Some(output) = outputs.iter().position(|o| *o.name == *e.name) else { continue };
        let output = outputs.swap_remove(output);
        let mut tolerance = Tolerance::of(output.dtype);
        tolerance.rtol = args.rtol.unwrap_or(tolerance.rtol);
        tolerance.atol = args.atol.unwrap_or(tolerance.atol);
        let got = Array { elem: Elem::Device(output.dtype), shape: output.shape, data: output.data };
        match compare::compare(&e.name, &e.file, &got, output.dtype, &e.array, tolerance) {
            Ok(c) => out.done.push(c),
            Err(problem) => out.problems.push(problem),
        }
    }
    out
}
