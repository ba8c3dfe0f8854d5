//! `nki-sim`: compiles an NKI kernel, runs it on a software NeuronCore, and predicts and explains its run time on hardware.
//!
//! Exit codes: 0 success, 1 the kernel is wrong or results differ, 2 the call is wrong.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod cli;
mod cmd;
mod codec;
mod compare;
mod expected;
pub mod findings;
pub mod inputs;
mod intermediates;
mod jobs;
mod kernel;
mod markup;
mod measure;
pub mod memory;
mod npy;
mod other_file;
mod output;
mod places;
mod profile;
mod project;
pub mod python;
pub mod report;
mod row;
mod run_line;
pub mod session;
pub mod settings;
mod source_text;
mod sources;
mod tables;
mod value;

use std::ffi::OsString;

use clap::Parser;

use cli::{Cli, Command};
use nki_diag::Diagnostic;
use session::Stop;

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The kernel is wrong or results differ; all messages have been printed. Exit code 1.
    Kernel,
    /// The call is wrong, for example a missing file or an invalid argument. Exit code 2.
    Call(String),
}

impl Stop {
    /// The diagnostics of a wrong kernel; a wrong call ends the command.
    pub(crate) fn found(self) -> Result<Vec<Diagnostic>, Failure> {
        match self {
            Stop::Kernel(fault) => Ok(fault.found()),
            Stop::Call(message) => Err(Failure::Call(message)),
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Call(message)
    }
}

/// Runs the command with these words (the first is the program's name) and returns its exit code. A process that can let Python execute
/// kernels passes its tracer.
pub fn command_line(words: Vec<OsString>, tracer: Option<&'static dyn python::Tracer>) -> u8 {
    report_bugs(&words);
    tracer.into_iter().for_each(python::offer);
    output::start_log();
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(wrong) => {
            // Help and version are not errors and go to standard output, which clap takes care of.
            let _ = wrong.print();
            return u8::try_from(wrong.exit_code()).unwrap_or(2);
        }
    };
    output::begin(cli.color);
    let ours = match python::hand_over(&words, &cli.command) {
        Ok(Some(code)) => return code,
        Ok(None) => Ok(()),
        Err(failure) => Err(failure),
    };
    let result = ours.and_then(|()| match cli.command {
        Command::Run(args) => cmd::run::run(*args),
        Command::Check(args) => cmd::check::run(args),
        Command::Lower(args) => cmd::lower::run(args),
        Command::Migrate(args) => cmd::migrate::run(&args),
        Command::Whatif(args) => cmd::whatif::run(args),
        Command::Compare(args) => cmd::compare::run(&args),
        Command::Calibrate(args) => cmd::calibrate::run(&args),
        Command::Replay(args) => cmd::replay::run(&args),
        Command::Sweep(args) => cmd::sweep::run(*args),
        Command::Batch(args) => cmd::batch::run(&args),
        Command::Mcp(args) => cmd::mcp::run(&args),
        Command::Worker => cmd::worker::run(),
        Command::Explain { name } => cmd::explain::run(name.as_deref()),
        Command::Completions { shell } => {
            cmd::grammar::completions(shell);
            Ok(())
        }
        Command::Man { command } => cmd::grammar::man(command.as_deref()),
    });
    match result.and_then(|()| Ok(output::printed()?)) {
        Ok(()) => 0,
        Err(Failure::Kernel) => 1,
        Err(Failure::Call(message)) => {
            output::eprint(&format!("error: {message}\n"));
            2
        }
    }
}

/// A panic is a bug of the simulator: prints one line that says so and how to reproduce it.
fn report_bugs(words: &[OsString]) {
    let words: Vec<String> = words.iter().map(|a| shell_word(&a.to_string_lossy())).collect();
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        output::eprint(&format!(
            "error: this is a bug in nki-sim {}; please report it with the kernel and this line: {}\n",
            env!("CARGO_PKG_VERSION"),
            words.join(" ")
        ));
        previous(info);
    }));
}

/// Quotes a word for a POSIX shell if necessary.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The Pareto-optimal rows of a sweep, and an SVG plot of all rows. `rows` is JSON as written by `sweep --json`.
///
/// # Errors
/// If `rows` is not valid.
pub fn pareto(rows: &str) -> Result<(Vec<usize>, String), String> {
    cmd::sweep::pareto::of_json(rows)
}

/// The version in every report.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `1 warning`, `2 warnings`.
pub(crate) fn count(n: usize, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {what}{s}")
}

/// Runs a stage and logs its duration, for `NKI_SIM_LOG=debug`: for the simulator's own speed, never in a report.
pub(crate) fn stage<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let start = std::time::Instant::now();
    let out = work();
    tracing::debug!(stage = name, us = start.elapsed().as_micros() as u64);
    out
}
