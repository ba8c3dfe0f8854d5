//! `nki-sim run script.py`: a whole script, run by Python with our package in place of `nki`.

use std::process::Command;

use crate::Failure;
use crate::cli::{ExpectArgs, Frontend, InstructionOrder, KernelArgs, LevelArgs, ParamArgs, RunArgs, TimingArgs};
use crate::python::{continue_as, has_package, installation, interpreter};
use crate::settings;

/// Whether FILE is run as a script: it has a main block, and neither a kernel nor an argument was given.
pub(crate) fn wanted(args: &RunArgs) -> bool {
    args.kernel.kernel.is_none()
        && args.kernel.args.is_empty()
        && args.kernel.file.extension().is_some_and(|e| e == "py")
        && crate::source_text::read(&args.kernel.file).is_ok_and(|text| nki_frontend::has_main_block(&text))
}

/// An option that applies to a single kernel, and is not supported for a script.
fn kernel_only(args: &RunArgs) -> Option<&'static str> {
    // Without `..`, so that a new option must be handled here.
    let RunArgs {
        kernel,
        timing,
        ranks,
        out,
        expected: ExpectArgs { expect, rtol, atol },
        dump,
        stop,
        no_numerics,
        json,
        csv,
        parquet,
        trace,
        html,
        critical_path,
    } = args;
    let KernelArgs {
        file: _,
        kernel: name,
        args: values,
        target: _,
        lnc,
        beta1,
        frontend,
        as_written,
        disable_dge,
        programs,
        strict: _,
        levels: _,
        max_steps,
        // Python reads the variables of these two.
        max_memory: _,
        capacity: _,
        of_job: _,
    } = kernel;
    let TimingArgs { schedule, measure, changes: ParamArgs { set, params } } = timing;
    [
        ("--kernel", name.is_some()),
        ("--arg", !values.is_empty()),
        ("--lnc", lnc.is_some()),
        ("--beta1", *beta1),
        ("--frontend", *frontend != Frontend::Builtin),
        ("--as-written", *as_written),
        ("--disable-dge", *disable_dge),
        ("--programs", programs.is_some()),
        ("--max-steps", max_steps.is_some()),
        ("--schedule", *schedule != InstructionOrder::Compiler),
        ("--measure", measure.is_some()),
        ("--set", !set.is_empty()),
        ("--params", params.is_some()),
        ("--ranks", ranks.is_some()),
        ("--out", out.is_some()),
        ("--expect", !expect.is_empty()),
        ("--rtol", rtol.is_some()),
        ("--atol", atol.is_some()),
        ("--dump", !dump.is_empty()),
        ("--break", stop.is_some()),
        ("--no-numerics", *no_numerics),
        ("--json", json.is_some()),
        ("--csv", csv.is_some()),
        ("--parquet", parquet.is_some()),
        ("--trace", trace.is_some()),
        ("--html", html.is_some()),
        ("--critical-path", *critical_path),
    ]
    .iter()
    .find(|(_, given)| *given)
    .map(|(option, _)| *option)
}

/// The words that pass the levels of findings to Python.
fn levels(args: &KernelArgs) -> Vec<String> {
    let LevelArgs { deny, warn, allow } = &args.levels;
    let mut words = Vec::new();
    for (option, list) in [("--deny", deny), ("--warn", warn), ("--allow", allow)] {
        words.extend(list.iter().flat_map(|word| [option.to_owned(), word.clone()]));
    }
    if args.strict {
        words.push("--strict".to_owned());
    }
    words
}

/// Runs the script; its output is this command's output.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let file = &args.kernel.file;
    if let Some(option) = kernel_only(args) {
        return Err(Failure::Call(format!(
            "`{}` is run as a script (it has an `if __name__ == \"__main__\":` block), and {option} is for one kernel: choose it with --kernel and --arg",
            file.display()
        )));
    }
    let target = settings::target(args.kernel.target)?;
    // Invalid options are reported before the script starts.
    args.kernel.levels.source()?;
    crate::memory::limit(args.kernel.max_memory.as_deref())?;
    settings::capacity(args.kernel.capacity)?;
    let python = interpreter();
    if !has_package(&python) {
        return Err(Failure::Call(format!(
            "`{}` is run as a script (it has an `if __name__ == \"__main__\":` block), which needs the Python package, and `{python}` does not have it\n  \
             {}\n  or run one kernel of the file: choose it with --kernel and give its arguments with --arg",
            file.display(),
            installation(&python)
        )));
    }
    let mut command = Command::new(&python);
    command
        .args(["-m", "nki_sim.script"])
        .args(levels(&args.kernel))
        .arg(file)
        .env("NEURON_PLATFORM_TARGET_OVERRIDE", target.to_string())
        .envs(args.kernel.max_memory.iter().map(|limit| ("NKI_SIM_MAX_MEMORY", limit)))
        .envs(args.kernel.capacity.iter().map(|capacity| ("NKI_SIM_CAPACITY", capacity.to_string())));
    match continue_as(&mut command)? {
        0 => Ok(()),
        _ => Err(Failure::Kernel),
    }
}
