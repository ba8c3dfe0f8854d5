//! `nki-sim check FILE`: specialise and validate, without running.

use crate::cli::KernelArgs;
use crate::kernel::{any_error, prepare};
use crate::output::print;
use crate::{Failure, count};

/// Compiles the kernel and says what is wrong with it.
pub(crate) fn run(args: &KernelArgs) -> Result<(), Failure> {
    let prepared = prepare("check", args)?;
    prepared.show(&prepared.diagnostics);
    let program = match &prepared.program {
        Some(program) if !any_error(&prepared.diagnostics) => program,
        _ => return Err(Failure::Kernel),
    };
    let statements: usize = program.cores.iter().map(Vec::len).sum();
    print(&format!(
        "{}: no errors ({}, {} on {})\n",
        prepared.name,
        count(prepared.diagnostics.len(), "warning"),
        count(statements, "statement"),
        prepared.target
    ));
    Ok(())
}
