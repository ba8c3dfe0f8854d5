//! `nki-sim`: compile an NKI kernel, run it on a software NeuronCore, say how long the hardware would take and why.
//!
//! Exit codes: 0 fine, 1 the kernel is wrong or results differ, 2 the call is wrong.

mod cli;
mod cmd;
mod codec;
mod compare;
mod generate;
mod inputs;
mod kernel;
mod npy;
mod output;
mod report;
mod settings;
mod value;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The kernel is wrong or results differ; everything has been said. Exit code 1.
    Kernel,
    /// The call is wrong: a file that is missing, an argument that cannot be read. Exit code 2.
    Call(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Call(message)
    }
}

fn main() -> ExitCode {
    report_bugs();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("NKI_SIM_LOG"))
        .with_writer(std::io::stderr)
        .init();
    let result = match Cli::parse().command {
        Command::Run(args) => cmd::run::run(&args),
        Command::Check(args) => cmd::check::run(&args),
        Command::Lower(args) => cmd::lower::run(&args),
        Command::Explain { slug } => cmd::explain::run(slug.as_deref()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Kernel) => ExitCode::from(1),
        Err(Failure::Call(message)) => {
            output::eprint(&format!("error: {message}\n"));
            ExitCode::from(2)
        }
    }
}

/// A panic is a bug of the simulator: one line says so and how to see it again.
fn report_bugs() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let words: Vec<String> = std::env::args_os().map(|a| shell_word(&a.to_string_lossy())).collect();
        output::eprint(&format!(
            "error: this is a bug in nki-sim {}; please report it with the kernel and this line: {}\n",
            env!("CARGO_PKG_VERSION"),
            words.join(" ")
        ));
        previous(info);
    }));
}

/// Quotes a word for a POSIX shell if it needs it.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// `1 warning`, `2 warnings`.
pub(crate) fn count(n: usize, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {what}{s}")
}

/// Runs a stage and logs how long it took, for `NKI_SIM_LOG=debug`: for the simulator's own speed, never in a report.
pub(crate) fn stage<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let start = std::time::Instant::now();
    let out = work();
    tracing::debug!(stage = name, us = start.elapsed().as_micros() as u64);
    out
}
