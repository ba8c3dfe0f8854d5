//! `nki-sim run script.py`: a whole script, run by Python with our package in the place of `nki`.

use std::process::{Command, Stdio};

use crate::Failure;
use crate::cli::RunArgs;
use crate::settings;

/// Names the interpreter that runs scripts. The Python package's own command sets it to the interpreter it is installed in.
const PYTHON: &str = "NKI_SIM_PYTHON";

/// Whether FILE is to be run as a script: it has a main block, and neither a kernel nor an argument was asked for.
pub(crate) fn wanted(args: &RunArgs) -> bool {
    args.kernel.kernel.is_none()
        && args.kernel.args.is_empty()
        && args.kernel.file.extension().is_some_and(|e| e == "py")
        && std::fs::read_to_string(&args.kernel.file).is_ok_and(|text| has_main(&text))
}

fn has_main(text: &str) -> bool {
    text.lines()
        .any(|line| line.strip_prefix("if ").is_some_and(|test| test.contains("__name__") && test.contains("__main__")))
}

/// Runs the script; its output is the output.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let file = &args.kernel.file;
    let kernel_only = [
        ("--json", args.json.is_some()),
        ("--trace", args.trace.is_some()),
        ("--out", args.out.is_some()),
        ("--expect", !args.expect.is_empty()),
        ("--no-numerics", args.no_numerics),
        ("--strict", args.kernel.strict),
        ("--max-steps", args.kernel.max_steps.is_some()),
        ("--lnc", args.kernel.lnc != 1),
    ];
    if let Some((option, _)) = kernel_only.iter().find(|(_, given)| *given) {
        return Err(Failure::Call(format!(
            "`{}` is run as a script (it has an `if __name__ == \"__main__\":` block), and {option} is for one kernel: choose it with --kernel and --arg",
            file.display()
        )));
    }
    let target = settings::target(args.kernel.target)?;
    let python = std::env::var(PYTHON).ok().filter(|p| !p.is_empty()).unwrap_or_else(|| "python3".into());
    let installed = Command::new(&python)
        .args(["-c", "import importlib.util as u, sys; sys.exit(u.find_spec('nki_sim') is None)"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success());
    if !installed {
        return Err(Failure::Call(format!(
            "`{}` is run as a script (it has an `if __name__ == \"__main__\":` block), which needs the Python package, and `{python}` does not have it\n  \
             install it: {python} -m pip install DIRECTORY, a clone of nki-sim, or its wheel ({PYTHON} names another interpreter)\n  \
             or run one kernel of the file: choose it with --kernel and give its arguments with --arg",
            file.display()
        )));
    }
    let status = Command::new(&python)
        .args(["-m", "nki_sim.script"])
        .arg(file)
        .env("NEURON_PLATFORM_TARGET_OVERRIDE", target.to_string())
        .envs(args.kernel.max_memory.iter().map(|size| ("NKI_SIM_MAX_MEMORY", size)))
        .envs(args.kernel.capacity.iter().map(|word| ("NKI_SIM_CAPACITY", word)))
        .status()
        .map_err(|e| Failure::Call(format!("cannot run `{python}`: {e}")))?;
    if status.success() { Ok(()) } else { Err(Failure::Kernel) }
}

#[cfg(test)]
mod tests {
    use super::has_main;

    #[test]
    fn a_main_block_is_at_the_margin() {
        assert!(has_main("x = 1\nif __name__ == \"__main__\":\n    pass\n"));
        assert!(has_main("if '__main__' == __name__: pass"));
        assert!(!has_main("def f():\n    if __name__ == '__main__':\n        pass\n"));
        assert!(!has_main("# if __name__ == '__main__':"));
    }
}
