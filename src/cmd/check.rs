//! `nki-sim check FILE`: specialise, validate and place, without running.

use nki_sim_core::{exec, lint, place};

use crate::cli::KernelArgs;
use crate::kernel::{any_error, prepare};
use crate::output::print;
use crate::{Failure, count};

/// Compiles the kernel and says what is wrong with it.
pub(crate) fn run(args: &KernelArgs) -> Result<(), Failure> {
    let prepared = prepare("check", args)?;
    let mut findings = prepared.diagnostics.clone();
    let mut needs_data = None;
    if let Some(program) = &prepared.program
        && !any_error(&findings)
    {
        let (placed, traced) =
            rayon::join(|| place::place_with(program, prepared.capacity), || exec::trace_only(program));
        match placed {
            Ok(placement) => {
                let checked = lint::check(program, &placement, traced);
                findings.extend(checked.findings);
                needs_data = checked.needs_data;
            }
            Err(errors) => findings.extend(errors),
        }
    }
    prepared.show(&findings);
    let program = match &prepared.program {
        Some(program) if !any_error(&findings) => program,
        _ => return Err(Failure::Kernel),
    };
    let statements: usize = program.cores.iter().map(Vec::len).sum();
    if let Some(needs) = needs_data {
        print(&format!(
            "{}: what it executes depends on values ({}), so only `run` finds reads of unwritten or overwritten bytes, races, partly written outputs and lost results\n",
            prepared.name, needs.what
        ));
    }
    print(&format!(
        "{}: no errors ({}, {} on {})\n",
        prepared.name,
        count(findings.len(), "warning"),
        count(statements, "statement"),
        prepared.target
    ));
    Ok(())
}
