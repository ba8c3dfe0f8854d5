//! `nki-sim lower FILE -o FILE.nkir`: the compiled kernel as text.

use nki_diag::Mode;

use crate::Failure;
use crate::cli::LowerArgs;
use crate::kernel::{add_run_line, compile, conclude, finish, session};
use crate::output::write_file;
use crate::places::{Inputs, check_places};
use crate::session::Numerics;

/// Compiles the kernel and writes its program.
pub(crate) fn run(mut args: LowerArgs) -> Result<(), Failure> {
    let session = session(&args.kernel, Mode::Run, Numerics::Never, None)?;
    add_run_line(&session, &mut args.kernel, None)?;
    check_places(&[("--output", Some(&args.output))], &Inputs::of_kernel(&args.kernel))?;
    let (compiled, _) = compile("lower", &session, &args.kernel)?;
    check_places(&[("--output", Some(&args.output))], &Inputs::of_sources(&compiled.sources))?;
    let applied = conclude(&session, compiled.diagnostics, &compiled.sources);
    finish(&applied)?;
    let Some(program) = &compiled.program else { return Err(Failure::Kernel) };
    let text = nki_isa::text::print(program);
    write_file(&args.output, &[text.as_bytes()])?;
    Ok(())
}
