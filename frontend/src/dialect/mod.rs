//! The dialects of NKI, and which file is written in which.

pub(crate) mod beta2;
pub(crate) mod common;
mod klr;

use self::beta2::Beta2;
use self::common::state::State;
use self::klr::Klr;
use crate::eval::Interp;
use crate::eval::foreign::Dialect;
use crate::{Loader, Options};

/// The dialect of a file that imports these modules.
fn of_file(imports: &[&str]) -> &'static dyn Dialect {
    let imports_package = |name: &str| imports.iter().any(|path| path.split('.').next() == Some(name));
    if imports_package("klr") { &Klr } else { &Beta2 }
}

/// An evaluation with nothing loaded, to be made on the thread that evaluates.
pub(crate) fn evaluation<'a>(loader: &'a dyn Loader, options: &'a Options) -> Interp<'a> {
    Interp::new(loader, options, of_file, Box::new(State::new(options)))
}
