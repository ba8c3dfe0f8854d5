//! `nki-sim check FILE`: specialise, validate and place, without running.

use nki_diag::Mode;

use crate::cli::CheckArgs;
use crate::kernel::{add_run_line, compile, conclude, fail, finish, session};
use crate::output::{print, write_file};
use crate::places::{Inputs, check_places};
use crate::report::Checked;
use crate::session::Numerics;
use crate::{Failure, count};

/// Compiles the kernel and says what is wrong with it.
pub(crate) fn run(mut args: CheckArgs) -> Result<(), Failure> {
    let session = session(&args.kernel, Mode::Check, Numerics::Never, None)?;
    add_run_line(&session, &mut args.kernel, args.json.as_deref())?;
    check_places(&[("--json", args.json.as_deref())], &Inputs::of_kernel(&args.kernel))?;
    let (mut compiled, _) = compile("check", &session, &args.kernel)?;
    check_places(&[("--json", args.json.as_deref())], &Inputs::of_sources(&compiled.sources))?;
    let json = args.json.as_deref();
    let kernel = match session.place(&mut compiled) {
        Ok(kernel) => kernel,
        Err(stop) => return Err(fail(&session, &compiled, json, compiled.with(stop.found()?))),
    };
    let ran = match session.run_alone(&kernel, Vec::new()) {
        Ok(ran) => ran,
        Err(stop) => return Err(fail(&session, &compiled, json, compiled.with(stop.found()?))),
    };
    let applied = conclude(&session, compiled.with(ran.findings), &compiled.sources);
    if let Some(path) = json {
        write_file(path, &[&crate::report::json(&Checked::new(&compiled, &applied))?])?;
    }
    finish(&applied)?;
    let statements: usize = kernel.program.cores.iter().map(Vec::len).sum();
    if let Some(needs) = kernel.needs_data() {
        print(&format!(
            "{}: what it executes depends on values ({}), so only `run` finds reads of unwritten or overwritten bytes, races, partly written outputs and lost results\n",
            compiled.name, needs.what
        ));
    }
    print(&format!(
        "{}: no errors ({}, {} on {})\n",
        compiled.name,
        count(applied.diagnostics.len(), "warning"),
        count(statements, "statement"),
        compiled.target
    ));
    Ok(())
}
