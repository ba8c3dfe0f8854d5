//! Interface to the Python package: runs scripts, and lets Python execute kernels.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use nki_diag::SourceMap;
use nki_frontend::{Arguments, Compiled, Options};
use nki_isa::DType;

use crate::Failure;
use crate::cli::{Command as Subcommand, Frontend, KernelArgs};
use crate::compare::Tolerance;
use crate::inputs::Given;
use crate::session::{Kernel, Session};

/// The interpreter that has the package. The package's own command sets it to the interpreter in which it is installed.
pub(crate) const PYTHON: &str = "NKI_SIM_PYTHON";

/// Instructions for installing the package with an interpreter.
pub(crate) fn installation(python: &str) -> String {
    format!(
        "install it: {python} -m pip install DIRECTORY, a clone of nki-sim, or its wheel ({PYTHON} names another interpreter)"
    )
}

/// A breakpoint in the source of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// The file; `None` for the kernel's.
    pub file: Option<String>,
    /// The line.
    pub line: u32,
    /// The execution of the line, from 0.
    pub iteration: u64,
}

/// A compiled kernel, and its run-time inputs.
#[expect(missing_debug_implementations, reason = "what makes inputs has none")]
pub struct Stepped<'a> {
    /// The settings of the run.
    pub session: &'a Session,
    /// The most recently compiled kernel.
    pub kernel: &'a Kernel,
    /// The sources that diagnostics refer to.
    pub sources: &'a SourceMap,
    /// Creates its inputs.
    pub inputs: &'a dyn Fn() -> Result<Vec<Given>, String>,
}

/// Lets Python execute kernels; available in the process of the Python package.
pub trait Tracer: Sync {
    /// Compiles the kernel of a file with this text.
    ///
    /// # Errors
    /// The reason why the file cannot be imported.
    fn compile(
        &self,
        file: &Path,
        text: &str,
        arguments: &dyn Arguments,
        options: &Options,
    ) -> Result<Compiled, String>;

    /// Whether the kernel compiled last calls `breakpoint()`.
    fn breaks(&self) -> bool;

    /// Lets Python execute that kernel again, instruction by instruction, with a debugger that stops at a place; without a place, where the kernel
    /// calls `breakpoint()`.
    ///
    /// # Errors
    /// The user has ended the session, or the place is not reached.
    fn step(&self, what: &Stepped<'_>, at: Option<&Break>) -> Result<(), String>;

    /// Searches the points of a sweep; request and result are JSON (`cmd::sweep::search`, the rows of a sweep).
    ///
    /// # Errors
    /// Optuna is not installed, or the request is invalid.
    fn search(&self, request: &str) -> Result<String, String>;
}

/// The default relative and absolute tolerance for an output of this dtype, as in `--expect`.
pub fn tolerance(dtype: DType) -> (f64, f64) {
    let tolerance = Tolerance::of(dtype);
    (tolerance.rtol, tolerance.atol)
}

static TRACER: OnceLock<&'static dyn Tracer> = OnceLock::new();

/// Registers this process's tracer for its commands.
pub(crate) fn offer(tracer: &'static dyn Tracer) {
    // Every call registers the same one.
    let _ = TRACER.set(tracer);
}

/// The registered tracer of this process, if any.
pub(crate) fn offered() -> Option<&'static dyn Tracer> {
    TRACER.get().copied()
}

/// The tracer that compiles the kernel; `None` for the built-in evaluator.
pub(crate) fn tracer(args: &KernelArgs) -> Option<&'static dyn Tracer> {
    if args.frontend == Frontend::Builtin { None } else { TRACER.get().copied() }
}

/// The interpreter for scripts and kernels.
pub(crate) fn interpreter() -> String {
    std::env::var(PYTHON).ok().filter(|p| !p.is_empty()).unwrap_or_else(|| "python3".into())
}

/// The program and first words that start this command.
///
/// # Errors
/// If the system does not report this program's path.
pub(crate) fn own_command() -> Result<(OsString, Vec<OsString>), String> {
    if TRACER.get().is_some() {
        return Ok((interpreter().into(), vec!["-m".into(), "nki_sim".into()]));
    }
    let program = std::env::current_exe().map_err(|e| format!("cannot tell which program this is: {e}"))?;
    Ok((program.into(), Vec::new()))
}

/// Whether an interpreter has the package.
pub(crate) fn has_package(python: &str) -> bool {
    Command::new(python)
        .args(["-c", "import importlib.util as u, sys; sys.exit(u.find_spec('nki_sim') is None)"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Delegates a command to the package's command if Python is to execute its kernel or Optuna to choose its points, and returns the exit code; `None`
/// if this process executes it.
///
/// # Errors
/// The package is not installed, and there is no fallback.
pub(crate) fn hand_over(words: &[OsString], command: &Subcommand) -> Result<Option<u8>, Failure> {
    let frontend =
        command.kernel().filter(|args| args.file.extension().is_none_or(|e| e != "nkir")).map(|args| args.frontend);
    let frontend = frontend.unwrap_or(Frontend::Builtin);
    if TRACER.get().is_some() || (frontend == Frontend::Builtin && !command.is_for_python()) {
        return Ok(None);
    }
    let python = interpreter();
    if !has_package(&python) {
        if command.is_for_python() {
            return Err(Failure::Call(format!(
                "--search: Optuna chooses the points, which needs the Python package, and `{python}` does not have it\n  {}",
                installation(&python)
            )));
        }
        if frontend == Frontend::Auto {
            return Ok(None);
        }
        return Err(Failure::Call(format!(
            "--frontend python: Python executes the kernel, which needs the Python package, and `{python}` does not have it\n  {}\n  \
             or use the built-in evaluator: --frontend builtin",
            installation(&python)
        )));
    }
    let mut command = Command::new(&python);
    command.args(["-m", "nki_sim"]).args(words.iter().skip(1));
    if frontend == Frontend::Builtin {
        // Python must not execute code of the current folder if it does not execute the kernel. Python 3.10 ignores the variable.
        command.env("PYTHONSAFEPATH", "1");
    }
    continue_as(&mut command).map(Some)
}

/// Continues as another command. On Unix it replaces this process, so that signals reach it; elsewhere it is a child process, whose exit code is
/// returned.
///
/// # Errors
/// The command cannot be run.
pub(crate) fn continue_as(command: &mut Command) -> Result<u8, Failure> {
    let failure = |command: &Command, e: std::io::Error| {
        Failure::Call(format!("cannot run `{}`: {e}", command.get_program().display()))
    };
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let error = command.exec();
        Err(failure(command, error))
    }
    #[cfg(not(unix))]
    {
        let status = command.status().map_err(|e| failure(command, e))?;
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
    }
}
