//! `nki-sim lower FILE -o FILE.nkir`: the compiled kernel as text.

use crate::Failure;
use crate::cli::LowerArgs;
use crate::kernel::{any_error, prepare};
use crate::output::write_file;

/// Compiles the kernel and writes its program.
pub(crate) fn run(args: &LowerArgs) -> Result<(), Failure> {
    let prepared = prepare("lower", &args.kernel)?;
    prepared.show(&prepared.diagnostics);
    match &prepared.program {
        Some(program) if !any_error(&prepared.diagnostics) => {
            let text = nki_isa::text::print(program);
            write_file(&args.output, &[text.as_bytes()])?;
            Ok(())
        }
        _ => Err(Failure::Kernel),
    }
}
