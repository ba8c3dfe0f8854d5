//! The command `nki-sim`; the implementation is in the library, which the Python package shares.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(nki_sim::command_line(std::env::args_os().collect(), None))
}
