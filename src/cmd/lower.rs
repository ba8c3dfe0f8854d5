//! `nki-sim lower`.

use crate::Failure;
use crate::cli::LowerArgs;

pub(crate) fn run(_args: &LowerArgs) -> Result<(), Failure> {
    Err(Failure::Call("not there yet".into()))
}
