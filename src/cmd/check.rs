//! `nki-sim check FILE`: specialise, validate and place, without running.

use nki_diag::Mode;
use nki_sim_core::{exec, lint, place};

use crate::cli::CheckArgs;
use crate::kernel::{any_error, finish, prepare};
use crate::output::{print, write_file};
use crate::places::{Inputs, check_places};
use crate::report::{Checked, findings};
use crate::{Failure, count};

/// Compiles the kernel and says what is wrong with it.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    check_places(&[("--json", args.json.as_deref())], &Inputs::of_kernel(&args.kernel))?;
    let prepared = prepare("check", &args.kernel, Mode::Check)?;
    check_places(&[("--json", args.json.as_deref())], &Inputs::of_sources(&prepared.sources))?;
    let mut found = prepared.diagnostics.clone();
    let mut needs_data = None;
    if let Some(program) = &prepared.program
        && !any_error(&found)
    {
        let (placed, traced) =
            rayon::join(|| place::place_with(program, prepared.capacity), || exec::trace_only(program));
        match placed {
            Ok(placement) => {
                let checked = lint::check(program, &placement, traced);
                found.extend(checked.findings);
                needs_data = checked.needs_data;
            }
            Err(errors) => found.extend(errors),
        }
    }
    let applied = prepared.conclude(found);
    if let Some(path) = &args.json {
        let shown = findings(&applied.diagnostics, &prepared.sources);
        let whole = Checked::new(&prepared.name, prepared.target, shown, applied.denied.clone());
        write_file(path, &[&crate::report::json(&whole)?])?;
    }
    finish(&applied)?;
    let Some(program) = &prepared.program else { return Err(Failure::Kernel) };
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
        count(applied.diagnostics.len(), "warning"),
        count(statements, "statement"),
        prepared.target
    ));
    Ok(())
}
