//! `nki-sim lower FILE -o FILE.nkir`: the compiled kernel as text.

use crate::Failure;
use crate::cli::LowerArgs;
use crate::kernel::{any_error, prepare};

/// Compiles the kernel and writes its program.
pub(crate) fn run(args: &LowerArgs) -> Result<(), Failure> {
    let prepared = prepare("lower", &args.kernel)?;
    prepared.show(&prepared.diagnostics);
    match &prepared.program {
        Some(_program) if !any_error(&prepared.diagnostics) => Err(Failure::Call("not there yet".into())),
        _ => Err(Failure::Kernel),
    }
}
