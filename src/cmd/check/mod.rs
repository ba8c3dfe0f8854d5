//! `nki-sim check FILE`: specialise, validate and place, without running.

mod formats;

use nki_diag::{Applied, Mode};

use crate::cli::{CheckArgs, CheckFormat};
use crate::kernel::{Disk, Sink, add_run_line, finish, session, show};
use crate::measure::check;
use crate::output::{eprint, print, print_document};
use crate::places::{Inputs, check_places};
use crate::report::{self, Checked};
use crate::session::{Compilation, Numerics};
use crate::{Failure, count};

/// Compiles the kernel and says what is wrong with it.
pub(crate) fn run(mut args: CheckArgs) -> Result<(), Failure> {
    let session = session(&args.kernel, Mode::Check, Numerics::Never, None)?;
    let (json, format) = (args.json.clone(), args.format);
    let document = |compiled: &Compilation, applied: &Applied| write(format, &Checked::new(compiled, applied));
    let sink = Sink { json: json.as_deref(), document: Some(&document) };
    // Other programs read standard output if it has a format.
    let tell = if format == CheckFormat::Text { print } else { eprint };
    add_run_line(&session, &mut args.kernel, sink)?;
    check_places(&[("--json", sink.json)], &Inputs::of_kernel(&args.kernel))?;
    let (compiled, kernel, applied) = check(&session, &args.kernel, &Disk)?;
    compiled.prints.iter().for_each(|line| tell(&format!("{line}\n")));
    check_places(&[("--json", sink.json)], &Inputs::of_sources(&compiled.sources))?;
    show(&applied, &compiled.sources);
    sink.write(&compiled, &applied)?;
    finish(&applied)?;
    let Some(kernel) = kernel else { return Err(Failure::Kernel) };
    let statements: usize = kernel.program.cores.iter().map(Vec::len).sum();
    if let Some(needs) = kernel.needs_data() {
        tell(&format!(
            "{}: what it executes depends on values ({}), so only `run` finds reads of unwritten or overwritten bytes, races, partly written outputs and lost results\n",
            compiled.name, needs.what
        ));
    }
    tell(&format!(
        "{}: no errors ({}, {} on {})\n",
        compiled.name,
        count(applied.diagnostics.len(), "warning"),
        count(statements, "statement"),
        compiled.target
    ));
    // The process ends: to free every instruction takes longer than the system does.
    std::mem::forget(kernel);
    Ok(())
}

/// Writes the findings to standard output.
fn write(format: CheckFormat, checked: &Checked) -> Result<(), String> {
    let text = match format {
        CheckFormat::Text => return Ok(()),
        CheckFormat::Json => report::json(checked)?,
        CheckFormat::Sarif => report::json(&formats::sarif(checked))?,
        CheckFormat::Github => formats::github(checked).into_bytes(),
        CheckFormat::Junit => formats::junit(checked).into_bytes(),
    };
    print_document(&String::from_utf8_lossy(&text));
    Ok(())
}
