//! Levels of findings from Python.

use std::path::PathBuf;

use nki_diag::Mode;
use nki_sim::findings::{self, Lists};
use pyo3::prelude::*;

use crate::errors::value_error;

/// The lists of one source: the user-visible name of a list, with `{}` for the level, then deny, warn and allow.
type Given = (String, Vec<String>, Vec<String>, Vec<String>);

/// Applies levels to the findings of a kernel.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug, Clone)]
pub(crate) struct Judge(pub(crate) findings::Judge);

#[pymethods]
impl Judge {
    /// `sources` take precedence over the environment and the project file of `file`, in descending order. `close` is for `assert_close`.
    #[new]
    #[pyo3(signature = (close, strict, sources, file=None))]
    fn new(close: bool, strict: bool, sources: Vec<Given>, file: Option<PathBuf>) -> PyResult<Self> {
        let mode = if close { Mode::AssertClose } else { Mode::Call };
        let mut given = Vec::with_capacity(sources.len());
        for (named, deny, warn, allow) in sources {
            let lists = Lists { deny, warn, allow };
            given.push(lists.source(|level| named.replace("{}", level.name())).map_err(value_error)?);
        }
        findings::Judge::new(mode, strict, given, file.as_deref()).map(Judge).map_err(value_error)
    }
}
