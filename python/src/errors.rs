//! Converts errors of a call, and diagnostics of a kernel, to Python exceptions.

use nki_diag::{Applied, ColorChoice, Diagnostic, SourceMap, render_all, to_json};
use nki_sim::findings::{advise, denied_text};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyModule;

/// `ValueError`
pub(crate) fn value_error(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// The exception for an invalid call. Timing parameters come from `settings=` here, not from `--set`.
pub(crate) fn call_error(message: String) -> PyErr {
    let of_setting = message.strip_prefix("--set ").and_then(|rest| rest.split_once(": "));
    value_error(of_setting.map(|(name, what)| format!("settings['{name}']: {what}")).unwrap_or(message))
}

/// `nki_sim.NAME(message)`
pub(crate) fn ours(py: Python<'_>, name: &str, message: &str) -> PyErr {
    let made = PyModule::import(py, "nki_sim._errors").and_then(|m| m.getattr(name)).and_then(|c| c.call1((message,)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Diagnostics as JSON text, for parsing in Python.
pub(crate) fn as_json(diagnostics: &[Diagnostic], sources: &SourceMap) -> PyResult<String> {
    let list: Vec<_> = diagnostics.iter().map(|d| to_json(d, sources)).collect();
    serde_json::to_string(&list).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// The text of an exception. It starts with the errors, because many tools show only its first line.
fn message(diagnostics: &[Diagnostic], sources: &SourceMap) -> String {
    let (mut all, findings): (Vec<_>, Vec<_>) = diagnostics.iter().cloned().partition(Diagnostic::is_error);
    all.extend(findings);
    render_all(&all, sources, ColorChoice::Plain)
}

/// The exception for a wrong kernel, or for a denied finding: `nki_sim.KernelError`, combined with Python's own class for the same
/// error.
pub(crate) fn kernel_error(py: Python<'_>, applied: Applied, sources: &SourceMap) -> PyErr {
    let diagnostics = &applied.diagnostics;
    let mut rendered = message(diagnostics, sources);
    if !applied.denied.is_empty() {
        rendered.push('\n');
        rendered.push_str(&denied_text(&applied.denied));
    }
    let class = diagnostics.iter().find(|d| d.is_error()).map_or("RuntimeError", |d| {
        // `raise ValueError("...")` in a kernel: the message starts with the class.
        match d.message.split_once(':') {
            Some((class, _)) if d.id == "raised-exception" => class,
            _ if d.id == "raised-exception" => &d.message,
            _ => nki_frontend::exception_class(d.id),
        }
    });
    let made = as_json(diagnostics, sources).and_then(|json| {
        PyModule::import(py, "nki_sim._errors")?.getattr("kernel_error")?.call1((rendered.trim_end(), class, json))
    });
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The diagnostics with their advice.
fn advised(diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut all = diagnostics.to_vec();
    all.iter_mut().for_each(advise);
    all
}

/// The exception for an error of a kernel that Python executes, of Python's class with this name.
pub(crate) fn raised(py: Python<'_>, diagnostics: &[Diagnostic], class: &str, sources: &SourceMap) -> PyErr {
    let diagnostics = advised(diagnostics);
    let rendered = message(&diagnostics, sources);
    let made = as_json(&diagnostics, sources).and_then(|json| {
        PyModule::import(py, "nki_sim._errors")?.getattr("kernel_error")?.call1((rendered.trim_end(), class, json))
    });
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The same exception with all findings.
pub(crate) fn with_findings(py: Python<'_>, error: PyErr, diagnostics: &[Diagnostic], sources: &SourceMap) -> PyErr {
    let diagnostics = advised(diagnostics);
    let rendered = message(&diagnostics, sources);
    let changed = as_json(&diagnostics, sources).and_then(|json| {
        let extend = PyModule::import(py, "nki_sim._errors")?.getattr("extend")?;
        extend.call1((error.value(py), rendered.trim_end(), json))
    });
    changed.err().unwrap_or(error)
}
