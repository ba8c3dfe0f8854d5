//! The dialects of NKI, and the choice of a file's dialect.

pub(crate) mod beta1;
pub(crate) mod beta2;
pub(crate) mod common;
mod klr;

use self::beta1::Beta1;
use self::beta2::Beta2;
use self::beta2::names::ApiName;
use self::common::state::State;
use self::klr::Klr;
use crate::eval::Interp;
use crate::eval::language::Dialect;
use crate::{Loader, Options};

/// The dialect of a file with these imports, unless the options choose one. A file that imports both languages has the current one, whose tool chain
/// also has parts under the older package, unless its kernel uses only the older one ([`Options::older_of_both`]).
fn of_file(options: &Options, imports: &[&str]) -> &'static dyn Dialect {
    let imports_package = |name: &str| imports.iter().any(|path| path.split('.').next() == Some(name));
    let is_beta1 = |path: &&str| *path == "neuronxcc" || *path == "neuronxcc.nki" || path.starts_with("neuronxcc.nki.");
    if options.beta1 {
        &Beta1
    } else if imports_package("klr") {
        &Klr
    } else if imports.iter().any(is_beta1) && (options.older_of_both || !imports_package("nki")) {
        &Beta1
    } else {
        &Beta2
    }
}

/// The usual import of a name, where `package` (`nki` or `neuronxcc`) provides the language.
pub fn usual_import(name: &str, package: &str) -> Option<String> {
    let nki = if package == "neuronxcc" { "neuronxcc.nki" } else { "nki" };
    Some(match name {
        "np" => "import numpy as np".to_owned(),
        "math" | "functools" | "itertools" => format!("import {name}"),
        "nki" if nki == "nki" => "import nki".to_owned(),
        "nki" => format!("import {nki} as nki"),
        "nl" => format!("import {nki}.language as nl"),
        "nisa" => format!("import {nki}.isa as nisa"),
        "ncc" if nki == "nki" => "import nki.collectives as ncc".to_owned(),
        _ => return None,
    })
}

/// The public names of the current language and of Beta 1, enums before their members.
pub fn api_names() -> Vec<ApiName> {
    let mut names = beta2::names::api_names();
    names.extend(beta1::names::api_names());
    names
}

/// An evaluation with nothing loaded, to be created on the evaluating thread.
pub(crate) fn evaluation<'a>(loader: &'a dyn Loader, options: &'a Options) -> Interp<'a> {
    Interp::new(loader, options, of_file, Box::new(State::new(options)))
}
