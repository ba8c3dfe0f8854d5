//! `nki-sim check`.

use crate::Failure;
use crate::cli::KernelArgs;

pub(crate) fn run(_args: &KernelArgs) -> Result<(), Failure> {
    Err(Failure::Call("not there yet".into()))
}
