//! `nki-sim run FILE`: outputs, findings, comparison and timeline.

use std::path::Path;

use nki_diag::Diagnostic;
use nki_isa::Program;
use nki_sim_core::analysis::counters::Facts;
use nki_sim_core::analysis::remedies::{self, Case};
use nki_sim_core::exec::{self, ExecOptions};
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
use crate::kernel::{Prepared, any_error, prepare};
use crate::npy::{self, Array, Elem};
use crate::output::{check_places, eprint, print, write_file};
use crate::report::{Failed, Report, outputs_of, page};
use crate::{Failure, memory, settings, stage};

/// Runs the kernel and reports.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    // In force before the first file is read.
    memory::limit(args.kernel.max_memory.as_deref())?;
    check_places(&[
        ("--json", args.json.as_deref()),
        ("--csv", args.csv.as_deref()),
        ("--trace", args.trace.as_deref()),
        ("--html", args.html.as_deref()),
    ])?;
    if let Some(ranks) = args.ranks {
        return super::ranks::run(args, ranks as usize);
    }
    if script::wanted(args) {
        return script::run(args);
    }
    let precise = settings::precise_fp()?;
    // A wrong --expect file is found before the work.
    let expected = read_expected(args)?;
    let mut prepared = stage("compile", || prepare("run", &args.kernel))?;
    let mut findings = std::mem::take(&mut prepared.diagnostics);
    let program = match prepared.program.take() {
        Some(program) if !any_error(&findings) => program,
        _ => return fail(args, &prepared, &findings),
    };
    check_expected_names(&program, &expected.iter().collect::<Vec<_>>())?;
    let params = settings::timing_params(program.target, &args.timing)?;
    let (placed, (facts, traced)) = rayon::join(
        || stage("place", || place::place_with(&program, prepared.capacity)),
        || (Facts::of(&program), args.no_numerics.then(|| exec::trace_only(&program).ok()).flatten()),
    );
    let placement = match placed {
        Ok(placement) => placement,
        Err(errors) => {
            findings.extend(errors);
            return fail(args, &prepared, &findings);
        }
    };
    let tensors = std::mem::take(&mut prepared.tensors);
    let limits = ExecOptions { precise, memory: prepared.memory, ..ExecOptions::default() };
    let Ok(ran) = execute(args, &program, &placement, traced, limits, tensors, &mut findings) else {
        return fail(args, &prepared, &findings);
    };
    let timeline = stage("time", || timing::simulate(&program, &placement, &ran.trace, &params))
        .map_err(|e| Failure::Call(format!("timing parameters: {e}")))?;

    prepared.show(&findings);
    if let Some(directory) = &args.out {
        write_outputs(directory, &ran.outputs)?;
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
    let shown = crate::report::findings(&findings, &prepared.sources);
    if let Some(path) = &args.html {
        let page = page(&program, &prepared.sources, &shown);
        let text =
            stage("html", || report::html(&analysis, &page)).map_err(|e| format!("cannot write the page: {e}"))?;
        write_file(path, &[text.as_bytes()])?;
    }
    if let Some(path) = &args.json {
        let whole = Report {
            kernel: prepared.name.clone(),
            target: program.target.to_string(),
            lnc: program.cores.len(),
            outputs: outputs_of(&program),
            summary: report::summary(&timeline, &placement),
            detail: Some(report::detail(&analysis).map_err(|e| format!("cannot write the report: {e}"))?),
            findings: shown,
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
    if differs || any_error(&findings) { Err(Failure::Kernel) } else { Ok(()) }
}

/// The kernel is wrong: its diagnostics on the terminal and in the JSON file.
pub(super) fn fail(args: &RunArgs, prepared: &Prepared, findings: &[Diagnostic]) -> Result<(), Failure> {
    prepared.show(findings);
    if let Some(path) = &args.json {
        let failed = Failed {
            kernel: prepared.name.clone(),
            target: prepared.target.to_string(),
            findings: crate::report::findings(findings, &prepared.sources),
        };
        write_file(path, &[&crate::report::json(&failed)?])?;
    }
    Err(Failure::Kernel)
}

/// The kernel faulted while it ran; the findings say how.
struct Stopped;

struct Ran {
    outputs: Vec<HostTensor>,
    trace: Trace,
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
        findings.extend(stage("findings", || lint::without_run(program, placement, &trace)));
        if let Some(error) = exec::check_trace(&trace, options.memory) {
            findings.push(error);
            return Err(Stopped);
        }
        return Ok(Ran { outputs: Vec::new(), trace });
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
    findings.extend(stage("findings", || lint::accesses(program, placement, &trace)));
    Ok(Ran { outputs, trace })
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

pub(super) fn write_outputs(directory: &Path, outputs: &[HostTensor]) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)
        .map_err(|e| Failure::Call(format!("cannot make directory `{}`: {e}", directory.display())))?;
    for output in outputs {
        let header = npy::header(output.dtype, &output.shape);
        write_file(&directory.join(format!("{}.npy", output.name)), &[&header, &output.data])?;
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
