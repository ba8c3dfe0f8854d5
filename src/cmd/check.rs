//! `nki-sim check FILE`: specialise, validate and place, without running.

use nki_sim_core::place;

use crate::cli::KernelArgs;
use crate::kernel::{any_error, prepare};
use crate::output::print;
use crate::{Failure, count};

/// Compiles the kernel and says what is wrong with it.
pub(crate) fn run(args: &KernelArgs) -> Result<(), Failure> {
    let prepared = prepare("check", args)?;
    let mut findings = prepared.diagnostics.clone();
    if let Some(program) = &prepared.program
        && !any_error(&findings)
    {
        match place::place_with(program, prepared.capacity) {
            Ok(placement) => findings.extend(placement.findings),
            Err(errors) => findings.extend(errors),
        }
    }
    prepared.show(&findings);
    let program = match &prepared.program {
        Some(program) if !any_error(&findings) => program,
        _ => return Err(Failure::Kernel),
    };
    let statements: usize = program.cores.iter().map(Vec::len).sum();
    print(&format!(
        "{}: no errors ({}, {} on {})\n",
        prepared.name,
        count(findings.len(), "warning"),
        count(statements, "statement"),
        prepared.target
    ));
    Ok(())
}
