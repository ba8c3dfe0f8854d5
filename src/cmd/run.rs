//! `nki-sim run`.

use crate::Failure;
use crate::cli::RunArgs;

pub(crate) fn run(_args: &RunArgs) -> Result<(), Failure> {
    Err(Failure::Call("not there yet".into()))
}
