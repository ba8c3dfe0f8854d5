//! `nki-sim lower FILE -o FILE.nkir`: the compiled kernel as text.

use nki_diag::Mode;

use crate::Failure;
use crate::cli::LowerArgs;
use crate::kernel::{finish, prepare};
use crate::output::write_file;
use crate::places::{Inputs, check_places};

/// Compiles the kernel and writes its program.
pub(crate) fn run(args: &LowerArgs) -> Result<(), Failure> {
    check_places(&[("--output", Some(&args.output))], &Inputs::of_kernel(&args.kernel))?;
    let prepared = prepare("lower", &args.kernel, Mode::Run)?;
    check_places(&[("--output", Some(&args.output))], &Inputs::of_sources(&prepared.sources))?;
    let applied = prepared.conclude(prepared.diagnostics.clone());
    finish(&applied)?;
    let Some(program) = &prepared.program else { return Err(Failure::Kernel) };
    let text = nki_isa::text::print(program);
    write_file(&args.output, &[text.as_bytes()])?;
    Ok(())
}
