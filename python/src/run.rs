//! Runs a compiled program on arrays.

use nki_diag::{Applied, ColorChoice, Diagnostic, render_all};
use nki_frontend::Returned;
use nki_isa::names::Named;
use nki_sim::inputs::Given;
use nki_sim::report::{changes_text, run_html, run_json, run_parquet};
use nki_sim::session::{Launch, Ran, Session, Stop};
use nki_sim_core::analysis::remedies;
use nki_sim_core::timeline::Timeline;
use nki_sim_core::trace::Trace;
use nki_sim_core::{HostTensor, report};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;

use crate::arrays::{Array, Memory};
use crate::cache::{Compiled, Ready};
use crate::errors::{as_json, call_error, kernel_error, ours};
use crate::threads::{detached, in_this_process};
use crate::values::{Wanted, recorders};

/// The result of a run.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) ready: Arc<Ready>,
    /// The result in the structure that the kernel returned: a new array as `(memory, shape, dtype)`, where the memory may be a bytearray; an input
    /// as the caller's object in a list.
    #[pyo3(get)]
    pub(crate) result: Py<PyAny>,
    /// Lines that the kernel printed on the device.
    #[pyo3(get)]
    prints: Vec<String>,
    /// Findings of compiling and running, with their levels.
    pub(crate) applied: Applied,
    timeline: Option<Timeline>,
    trace: Trace,
    /// Intermediate values, as dicts, if requested.
    #[pyo3(get)]
    values: Option<Py<PyList>>,
}

/// Results up to this many bytes are copied into Python's memory: NumPy takes longer to import other memory.
const SMALL: usize = 4096;

/// The results of each rank, with its timeline if requested.
type Done<'k> = Vec<(Ran<'k>, Option<Timeline>)>;

/// Runs all ranks without the GIL. A `brief` run ends before anyone could press Ctrl-C, and stays on this thread.
pub(crate) fn run_session<'k>(
    py: Python<'_>,
    session: &Session,
    ranks: Vec<Launch<'k, '_>>,
    timed: bool,
    brief: bool,
) -> PyResult<Result<Done<'k>, Stop>> {
    let run = || {
        if timed {
            let (all, timelines) = session.run_timed(ranks, &mut |_| ())?;
            return Ok(all.into_iter().zip(timelines.into_iter().map(Some)).collect());
        }
        Ok(session.run(ranks)?.into_iter().map(|ran| (ran, None)).collect())
    };
    if brief { Ok(py.detach(|| in_this_process(run))) } else { detached(py, run) }
}

impl Compiled {
    /// See [`Compiled::run`].
    pub(crate) fn execute(&self, py: Python<'_>, timed: bool, wanted: Option<&Wanted>) -> PyResult<Outcome> {
        let session = self.session()?;
        let arrays = self.in_order()?;
        let mut recorders = recorders(py, &[self], wanted)?;
        let rank = Launch::new(&self.ready.kernel, self.inputs_of(py, &arrays)?);
        let rank = match recorders.first_mut() {
            Some(recorder) => rank.observed(recorder),
            None => rank,
        };
        let done = run_session(py, &session, vec![rank], timed, self.ready.brief && !timed)?;
        let (ran, timeline) = done.map(|mut all| all.swap_remove(0)).map_err(|stop| match stop {
            Stop::Kernel(fault) => kernel_error(py, self.judge.judge(fault.found()), &self.ready.compiled.sources),
            Stop::Call(message) => call_error(message),
        })?;
        let applied = self.judged(&ran);
        if applied.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(kernel_error(py, applied, &self.ready.compiled.sources));
        }
        let values = recorders.pop().map(|recorder| recorder.finish(py)).transpose()?;
        self.finish(py, &arrays, ran, applied, timeline, values)
    }

    /// All findings of compiling and of a run, with their levels.
    pub(crate) fn judged(&self, ran: &Ran<'_>) -> Applied {
        self.judge.judge(self.ready.compiled.with(ran.findings.iter().cloned()))
    }

    /// The arrays as inputs of the program; arrays that cannot be written are rejected before the run.
    pub(crate) fn inputs_of(&self, py: Python<'_>, arrays: &[&Array]) -> PyResult<Vec<Given>> {
        self.check_written(py, arrays)?;
        let program = &self.ready.kernel.program;
        let inputs = program.inputs.iter().zip(arrays).map(|(input, array)| {
            let tensor = program.tensor(input.tensor);
            let shape = tensor.shape.iter().map(|&d| d as usize).collect();
            let tensor = HostTensor { name: input.name.clone(), shape, dtype: tensor.dtype, data: array.buffer(py)? };
            Ok(Given::from(tensor))
        });
        inputs.collect()
    }

    /// Delivers the results of a completed run: written arrays to the caller, the others as new ones.
    pub(crate) fn finish(
        &self,
        py: Python<'_>,
        arrays: &[&Array],
        ran: Ran<'_>,
        applied: Applied,
        timeline: Option<Timeline>,
        values: Option<Py<PyList>>,
    ) -> PyResult<Outcome> {
        let ready = &*self.ready;
        let mut outputs: Vec<Option<HostTensor>> = ran.outputs.into_iter().map(Some).collect();
        for (input, output) in &ready.written {
            if let Some(tensor) = &outputs[*output]
                && arrays[*input].writable
            {
                arrays[*input].write(py, &tensor.data)?;
            }
        }
        let result = self.shape(py, &ready.compiled.returned, arrays, &mut outputs)?;
        let ready = self.ready.clone();
        Ok(Outcome { ready, result, prints: ran.prints, applied, timeline, trace: ran.trace.into_owned(), values })
    }

    /// The arrays in the order of the program's inputs.
    pub(crate) fn in_order(&self) -> PyResult<Vec<&Array>> {
        let program = &self.ready.kernel.program;
        program
            .inputs
            .iter()
            .map(|input| {
                let found = self.arrays.iter().find(|(name, _)| **name == *input.name);
                found.map(|(_, array)| array).ok_or_else(|| {
                    PyRuntimeError::new_err(format!("there is no array for the program's input `{}`", input.name))
                })
            })
            .collect()
    }

    /// Rejects, before the run, arrays that could not be written afterwards.
    fn check_written(&self, py: Python<'_>, arrays: &[&Array]) -> PyResult<()> {
        let ready = &*self.ready;
        let inputs = &ready.kernel.program.inputs;
        let older = ready.compiled.older_compiler;
        if let Some(input) = arrays.iter().position(|array| array.valueless()) {
            let name = &inputs[input].name;
            let message = format!(
                "argument `{name}` has a shape and a dtype, but no values: the kernel can be compiled for it, not run"
            );
            return Err(ours(py, "ArgumentTypeError", &message));
        }
        for (input, output) in &ready.written {
            let (name, array) = (&inputs[*input].name, arrays[*input]);
            if array.immutable && *output < ready.outputs {
                // Its new contents are returned.
                continue;
            }
            if !array.writable || array.immutable {
                let kind = if array.immutable { "a jax array, which cannot be written" } else { "read-only" };
                let message = format!(
                    "the kernel writes its argument `{name}`, which is {kind}; pass a copy that can be written, or write to an output"
                );
                return Err(ours(py, "ArgumentError", &message));
            }
            if array.overlaps_itself() {
                let message = format!(
                    "the kernel writes its argument `{name}`, several elements of which share one address (a stride of 0, from \
                     broadcasting or expand); pass a copy: x.copy() in NumPy, x.contiguous() in torch"
                );
                return Err(ours(py, "ArgumentError", &message));
            }
            for (other, with) in arrays.iter().enumerate() {
                // The tensors of a kernel for the older compiler are apart: one argument may be passed twice, once to be written.
                let apart = older && array.is_same(with) && !ready.written.iter().any(|(input, _)| *input == other);
                if other != *input && !apart && array.overlaps(py, with)? {
                    let message = format!(
                        "arguments `{name}` and `{}` share memory and the kernel writes `{name}`; pass a copy of one",
                        inputs[other].name
                    );
                    return Err(ours(py, "ArgumentError", &message));
                }
            }
        }
        Ok(())
    }

    fn shape(
        &self,
        py: Python<'_>,
        returned: &Returned,
        arrays: &[&Array],
        outputs: &mut [Option<HostTensor>],
    ) -> PyResult<Py<PyAny>> {
        shaped(py, returned, &mut |index| self.output(py, index, arrays, outputs))
    }

    fn output(
        &self,
        py: Python<'_>,
        index: usize,
        arrays: &[&Array],
        outputs: &mut [Option<HostTensor>],
    ) -> PyResult<Py<PyAny>> {
        let program = &self.ready.kernel.program;
        let tensor = program.outputs[index].tensor;
        if let Some(input) = program.inputs.iter().position(|i| i.tensor == tensor) {
            let array = arrays[input];
            let changed = self.ready.written.iter().any(|(i, _)| *i == input);
            if !(array.immutable && changed) {
                return Ok(("input", array.original.clone_ref(py)).into_pyobject(py)?.into_any().unbind());
            }
        }
        // A tensor that is returned twice becomes two arrays: the second time its memory is copied.
        let first = (0..index).find(|i| program.outputs[*i].tensor == tensor && outputs[*i].is_some());
        let Some(host) = outputs[index].take().or_else(|| first.and_then(|i| outputs[i].clone())) else {
            return Err(PyRuntimeError::new_err(format!("output {index} was taken twice")));
        };
        let memory = if host.data.len() <= SMALL {
            PyByteArray::new(py, &host.data).into_any()
        } else {
            Bound::new(py, Memory(host.data))?.into_any()
        };
        let made = ("array", (memory, host.shape, host.dtype.name()));
        Ok(made.into_pyobject(py)?.into_any().unbind())
    }
}

/// A kernel's return value in its original structure: `("tuple", [...])`, `("list", [...])`, `("dict", {...})`, None, with the result of `leaf`
/// for each output.
pub(crate) fn shaped(
    py: Python<'_>,
    returned: &Returned,
    leaf: &mut dyn FnMut(usize) -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let mut all = |items: &[Returned]| -> PyResult<Vec<_>> { items.iter().map(|i| shaped(py, i, leaf)).collect() };
    Ok(match returned {
        Returned::None => py.None(),
        Returned::Tuple(items) => ("tuple", PyTuple::new(py, all(items)?)?).into_pyobject(py)?.into_any().unbind(),
        Returned::List(items) => ("list", PyList::new(py, all(items)?)?).into_pyobject(py)?.into_any().unbind(),
        Returned::Dict(items) => {
            let dict = PyDict::new(py);
            for (key, value) in items {
                dict.set_item(key, shaped(py, value, leaf)?)?;
            }
            ("dict", dict).into_pyobject(py)?.into_any().unbind()
        }
        Returned::Output(index) => leaf(*index)?,
    })
}

#[pymethods]
impl Outcome {
    /// Findings of compiling and running: rendered, and as JSON.
    fn findings(&self) -> PyResult<(String, String)> {
        let all = &self.applied.diagnostics;
        Ok((
            render_all(all, &self.ready.compiled.sources, ColorChoice::Plain),
            as_json(all, &self.ready.compiled.sources)?,
        ))
    }

    /// Whether there are findings.
    fn has_findings(&self) -> bool {
        !self.applied.diagnostics.is_empty()
    }

    /// The report, as written by `nki-sim run --json`; the summary alone unless `detail`.
    fn json(&self, py: Python<'_>, detail: bool) -> PyResult<String> {
        let (ready, timeline) = (&self.ready, self.timeline()?);
        let text = detached(py, || {
            let analysis = detail.then(|| ready.kernel.analyse(&self.trace, timeline, remedies::THOROUGH));
            run_json(&ready.kernel, timeline, analysis.as_ref(), &self.applied, &ready.compiled.sources)
        })?;
        text.map_err(PyRuntimeError::new_err)
    }

    /// One line per instruction, as written by `nki-sim run --csv`.
    fn csv(&self, py: Python<'_>) -> PyResult<String> {
        let timeline = self.timeline()?;
        // The table holds no remedies.
        detached(py, || report::csv(&self.ready.kernel.analyse(&self.trace, timeline, 0)))
    }

    /// The page, as written by `nki-sim run --html`.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        let (ready, timeline) = (&self.ready, self.timeline()?);
        let text = detached(py, || {
            let analysis = ready.kernel.analyse(&self.trace, timeline, remedies::THOROUGH);
            run_html(&ready.kernel, &analysis, &self.applied, &ready.compiled.sources)
        })?;
        text.map_err(PyRuntimeError::new_err)
    }

    /// The tables, as written by `nki-sim run --parquet`.
    fn parquet(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        let (ready, timeline) = (&self.ready, self.timeline()?);
        let written = detached(py, || {
            // The tables hold no remedies.
            let analysis = ready.kernel.analyse(&self.trace, timeline, 0);
            run_parquet(&directory, &ready.kernel, &analysis, &self.applied, &ready.compiled.sources)
        })?;
        written.map_err(PyOSError::new_err)
    }

    /// The output of `nki-sim run`: the table of engines, the most expensive lines, the possible gains.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        let (kernel, timeline) = (&self.ready.kernel, self.timeline()?);
        detached(py, || {
            let analysis = kernel.analyse(&self.trace, timeline, remedies::QUICK);
            report::table(timeline, analysis.error.as_ref()) + &report::advice(&analysis) + &changes_text(kernel)
        })
    }

    /// The timeline as a Perfetto trace.
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &report::perfetto(self.timeline()?, &self.ready.kernel.program)))
    }
}

impl Outcome {
    pub(crate) fn timeline(&self) -> PyResult<&Timeline> {
        self.timeline.as_ref().ok_or_else(|| PyRuntimeError::new_err("the run was not timed"))
    }
}
