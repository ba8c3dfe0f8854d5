//! Python objects for names of the API, and their calls.

use std::rc::Rc;

use nki_diag::Span;
use nki_frontend::trace::{Content, Item, LoopOver, Trace};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::active::{Tracing, active};
use super::handles::Handle;
use super::places::current;
use super::values::{arguments, item_of, to_python};
use crate::convert::tracer;
use crate::errors::ours;

/// Calls a function of the API, or another callable item of the device.
pub(super) fn call(
    py: Python<'_>,
    tracing: &Rc<Tracing>,
    function: &Item,
    args: &Bound<'_, PyTuple>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let args = arguments(tracing, args, keywords)?;
    let (made, effect) = tracing.operate(py, |t, span| {
        let made = t.call(function, args, span)?;
        let effect = Effect::of(t, &made, span);
        Ok((made, effect))
    })?;
    let result = to_python(py, tracing, &made)?;
    match effect {
        Effect::None => Ok(result),
        Effect::Loop(carry, names) => Ok(tracer(py)?.getattr("read_once")?.call1((result, names, carry))?.unbind()),
        Effect::Variable => assigned(py, tracing, &made, result),
    }
}

/// The effect of a call's result on variables of the caller.
enum Effect {
    None,
    /// The result is an iterator of a loop in which these names hold inconsistent values.
    Loop(Carry, Vec<String>),
    /// The result changes the content of the variable to which it is assigned.
    Variable,
}

impl Effect {
    fn of(trace: &mut Trace<'_, '_>, made: &Item, span: Span) -> Effect {
        if trace.is_replacement(made) {
            return Effect::Variable;
        }
        let counted = trace.is_counted(made);
        let over = LoopOver { place: span, counted };
        let names = if counted || made.is_range() { trace.carried_by_loop_over(over) } else { Vec::new() };
        if names.is_empty() { Effect::None } else { Effect::Loop(Carry(over), names) }
    }
}

/// The values of names at the start of an iteration of a loop whose body is read once, and after it.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug)]
struct Carry(LoopOver);

#[pymethods]
impl Carry {
    fn __call__(
        &self,
        py: Python<'_>,
        name: &str,
        old: &Bound<'_, PyAny>,
        now: &Bound<'_, PyAny>,
        ended: bool,
    ) -> PyResult<Py<PyAny>> {
        let Some(tracing) = active() else { return Ok(now.clone().unbind()) };
        let (before, after) = (item_of(&tracing, old)?, item_of(&tracing, now)?);
        match tracing.with(|trace| trace.carry(self.0, name, &before, &after, ended))? {
            Some(held) if ended => to_python(py, &tracing, &held),
            // An int keeps its class.
            Some(_) => Ok(old.clone().unbind()),
            None => Ok(now.clone().unbind()),
        }
    }
}

/// The content of the variable after `variable = made`, if the call's result is assigned to one; else the result itself.
fn assigned(py: Python<'_>, tracing: &Rc<Tracing>, made: &Item, result: Py<PyAny>) -> PyResult<Py<PyAny>> {
    let held: Option<Vec<Py<PyAny>>> = tracer(py)?.getattr("held_by_target")?.call1((current(py),))?.extract()?;
    let Some(held) = held else { return Ok(result) };
    let old = held.first().map(|old| item_of(tracing, old.bind(py))).transpose()?;
    let now = tracing.operate(py, |t, span| t.replace(made, old.as_ref(), span))?;
    to_python(py, tracing, &now)
}

/// A function of the API: `nki.isa.dma_copy`.
#[pyclass(frozen, subclass, module = "nki_sim._native")]
#[derive(Debug)]
pub(crate) struct Function {
    #[pyo3(get)]
    module: String,
    #[pyo3(get)]
    name: String,
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (module, name, *_args, **_keywords))]
    fn new(module: String, name: String, _args: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Self {
        Function { module, name }
    }

    #[pyo3(signature = (*args, **keywords))]
    fn __call__(
        this: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = this.py();
        let Some(tracing) = active() else { return Err(outside(py, &this.get().path())) };
        let function = tracing.api(this.as_any(), &this.get().module, &this.get().name)?;
        call(py, &tracing, &function, args, keywords)
    }
}

impl Function {
    fn path(&self) -> String {
        format!("{}.{}", self.module, self.name)
    }
}

/// The error for a function of the API that is called outside of a kernel.
fn outside(py: Python<'_>, path: &str) -> PyErr {
    let what = match path {
        "nki.isa.get_nc_version" | "nki.isa.get_nc_sub_version" => "returns the target of the kernel that is compiled",
        _ => "is an instruction of the device",
    };
    let message = format!(
        "{path} was called outside of a kernel. It {what}: call it in a function decorated with @nki.jit, or in a function that one calls."
    );
    ours(py, "OutsideKernelError", &message)
}

/// A name of an API module in the traced kernel, for names that the module does not have outside of kernels; None without a
/// kernel.
#[pyfunction]
pub(crate) fn attribute_of_module(py: Python<'_>, module: &str, name: &str) -> PyResult<Option<Py<PyAny>>> {
    let Some(tracing) = active() else { return Ok(None) };
    let made = tracing.operate_as(py, Some("AttributeError"), |t, span| t.api(module, name, span))?;
    match made.content() {
        Content::Object | Content::Api(_) => Handle::object(py, &tracing, made).map(Some),
        _ => to_python(py, &tracing, &made).map(Some),
    }
}

/// Checks that a kernel with this `compile_config` may be called in the traced kernel.
#[pyfunction]
pub(crate) fn check_nested(config: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(tracing) = active() else { return Ok(()) };
    let (py, config) = (config.py(), item_of(&tracing, config)?);
    tracing.operate(py, |trace, span| trace.check_nested(&config, span))
}

/// Rejects a kernel with a grid in the traced kernel.
#[pyfunction]
pub(crate) fn refuse_grid(py: Python<'_>) -> PyResult<()> {
    let Some(tracing) = active() else { return Ok(()) };
    tracing.operate(py, |trace, span| trace.refuse_grid(span))
}

/// Whether this thread is tracing a kernel.
#[pyfunction]
pub(crate) fn is_tracing() -> bool {
    active().is_some()
}
