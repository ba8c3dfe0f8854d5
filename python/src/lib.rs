//! The native half of the Python package `nki_sim`: it connects frontend and simulator in the Python process.
//!
//! The Python half (`nki_sim/*.py`) defines the user interface. This half converts values ([`convert`]), is the live host of the
//! frontend ([`host`]), caches compiled programs ([`cache`]) and runs them on the memory of arrays ([`run`]; several ranks: [`ranks`]) or of
//! XLA ([`served`], [`xla`]). It also executes kernels for commands ([`command`]).

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod arrays;
mod cache;
mod command;
mod convert;
mod errors;
mod host;
mod levels;
mod loaded;
mod names;
mod ranks;
mod run;
mod served;
mod threads;
mod trace;
mod values;
mod xla;

use std::ffi::OsString;

use nki_isa::names::Named;
use nki_isa::{DType, Target};
use nki_sim_core::place::Capacity;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// Runs the command `nki-sim` with these words, the first being the program's name; returns its exit code.
#[pyfunction]
fn command_line(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| threads::in_this_process(|| nki_sim::command_line(words, Some(&command::TRACER))))
}

/// The name of the target with this name or alias, without one of that in the environment: `trn1`, `trn2` or `trn3`.
#[pyfunction]
#[pyo3(signature = (name=None))]
fn target(name: Option<&str>) -> PyResult<&'static str> {
    Ok(named_target(name)?.name())
}

/// The target with this name or alias.
fn named_target(name: Option<&str>) -> PyResult<Target> {
    match name {
        None => nki_sim::settings::target(None).map_err(errors::value_error),
        Some(name) => Target::from_name(name)
            .ok_or_else(|| errors::value_error(format!("`{name}` is not a target; the targets are {}", Target::NAMES))),
    }
}

/// Physical cores per logical core by default: the environment decides.
#[pyfunction]
fn logical_cores() -> PyResult<u32> {
    nki_sim::settings::logical_cores().map_err(errors::value_error)
}

/// Variables of the environment, None for unset ones: the same as in `os.environ`, which takes a microsecond per variable.
#[pyfunction]
#[pyo3(signature = (*names))]
fn variables<'py>(names: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    let value = |name: Bound<'py, PyAny>| Ok(std::env::var_os(name.cast::<PyString>()?.to_str()?));
    PyTuple::new(names.py(), names.iter().map(value).collect::<PyResult<Vec<_>>>()?)
}

/// The positions of the entries, each a dictionary with a key and a value, whose value is no longer the same object; `missing` is the value of a
/// missing key.
#[pyfunction]
fn changed(entries: &Bound<'_, PyList>, missing: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let mut changed = Vec::new();
    for (position, entry) in entries.iter().enumerate() {
        let entry = entry.cast::<PyTuple>()?;
        let now = entry.get_borrowed_item(0)?.cast::<PyDict>()?.get_item(entry.get_borrowed_item(1)?)?;
        if !now.as_ref().unwrap_or(missing).is(entry.get_borrowed_item(2)?) {
            changed.push(position);
        }
    }
    Ok(changed)
}

/// An attribute of `nl.tile_size` for the target of the traced kernel, else of the environment.
#[pyfunction]
fn tile_size(name: &str) -> PyResult<Option<i64>> {
    let target = match trace::active() {
        Some(tracing) => tracing.target,
        None => named_target(None)?,
    };
    Ok(nki_frontend::tile_size(target, name))
}

/// The relative and the absolute default tolerance for an output of the dtype with this name, as in `--expect`. None for another name.
#[pyfunction]
fn tolerance(dtype: &str) -> Option<(f64, f64)> {
    DType::from_name(dtype).map(nki_sim::python::tolerance)
}

/// The groups of `ReplicaGroup.from_partition_op`. `op` is the name of a member of `rg_partition_op`.
#[pyfunction]
fn partition(world_size: i64, op: &str, operand: i64) -> PyResult<Vec<Vec<i64>>> {
    nki_frontend::partition(world_size, op, operand)
        .map_err(|message| PyValueError::new_err(format!("ReplicaGroup.from_partition_op: {message}")))
}

/// The error for an option that a decorator such as `nki.jit` does not have.
#[pyfunction]
fn unknown_option(decorator: &str, name: &str) -> Option<String> {
    nki_frontend::unknown_option(decorator, name)
}

/// The value of an argument `capacity`.
fn capacity_named(word: Option<&str>) -> PyResult<Option<Capacity>> {
    let parsed = word.map(str::parse).transpose();
    parsed.map_err(|e: String| errors::value_error(format!("capacity: {e}")))
}

/// Sets this process's memory and step limits of kernels, and the handling of an SBUF or PSUM that is too small. None resets a setting.
#[pyfunction]
#[pyo3(signature = (max_memory, capacity, max_steps))]
fn set_limits(max_memory: Option<&str>, capacity: Option<&str>, max_steps: Option<u64>) -> PyResult<()> {
    let capacity = capacity_named(capacity)?;
    nki_sim::memory::configure(max_memory).map_err(|e| errors::value_error(format!("max_memory: {e}")))?;
    nki_sim::settings::configure_capacity(capacity);
    nki_sim::settings::configure_max_steps(max_steps);
    Ok(())
}

/// The memory limit of this process's kernels in bytes.
#[pyfunction]
fn memory_limit() -> PyResult<u64> {
    Ok(nki_sim::memory::limit(None).map_err(errors::value_error)?.bytes)
}

/// The positions of the Pareto-optimal rows of a sweep, and an SVG plot of all rows.
#[pyfunction]
fn pareto(rows: &str) -> PyResult<(Vec<usize>, String)> {
    nki_sim::pareto(rows).map_err(errors::value_error)
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    threads::record_owner_process();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(command_line, module)?)?;
    module.add_function(wrap_pyfunction!(partition, module)?)?;
    module.add_function(wrap_pyfunction!(target, module)?)?;
    module.add_function(wrap_pyfunction!(tile_size, module)?)?;
    module.add_function(wrap_pyfunction!(logical_cores, module)?)?;
    module.add_function(wrap_pyfunction!(variables, module)?)?;
    module.add_function(wrap_pyfunction!(changed, module)?)?;
    module.add_function(wrap_pyfunction!(set_limits, module)?)?;
    module.add_function(wrap_pyfunction!(memory_limit, module)?)?;
    module.add_function(wrap_pyfunction!(tolerance, module)?)?;
    module.add_function(wrap_pyfunction!(unknown_option, module)?)?;
    module.add_function(wrap_pyfunction!(pareto, module)?)?;
    module.add_function(wrap_pyfunction!(names::api_names, module)?)?;
    module.add_function(wrap_pyfunction!(names::api_functions, module)?)?;
    module.add_function(wrap_pyfunction!(names::api_classes, module)?)?;
    module.add_function(wrap_pyfunction!(names::instructions, module)?)?;
    module.add_function(wrap_pyfunction!(names::register, module)?)?;
    module.add_function(wrap_pyfunction!(served::serve, module)?)?;
    module.add_function(wrap_pyfunction!(xla::ffi_handler, module)?)?;
    module.add_function(wrap_pyfunction!(xla::documented_call, module)?)?;
    module.add_function(wrap_pyfunction!(trace::attribute_of_module, module)?)?;
    module.add_function(wrap_pyfunction!(trace::is_tracing, module)?)?;
    module.add_function(wrap_pyfunction!(trace::check_nested, module)?)?;
    module.add_function(wrap_pyfunction!(trace::refuse_grid, module)?)?;
    module.add_class::<trace::Function>()?;
    module.add_class::<trace::Handle>()?;
    trace::Handle::complete(module.py())?;
    module.add_class::<trace::Method>()?;
    module.add_class::<levels::Judge>()?;
    module.add_class::<loaded::Loaded>()?;
    module.add_class::<cache::Cache>()?;
    module.add_class::<cache::Compiled>()?;
    module.add_function(wrap_pyfunction!(ranks::run_ranks, module)?)?;
    module.add_class::<run::Outcome>()?;
    module.add_class::<ranks::RanksOutcome>()?;
    module.add_class::<arrays::Memory>()?;
    Ok(())
}
