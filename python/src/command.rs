//! Runs the command `nki-sim` in this process: Python executes its kernels if the user requests it.

use std::path::Path;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use nki_diag::{Diagnostic, SourceMap, Span};
use nki_frontend::{Arg, Arguments, Compiled, KernelInfo, Listing, Options, Param, Refused, Returned};
use nki_isa::Target;
use nki_isa::names::Named;
use nki_sim::python::{Break, Stepped, Tracer};
use nki_sim::session::Stop;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyList, PyModule, PyTuple};

use crate::convert::tracer;
use crate::errors::{kernel_error, value_error};
use crate::host::Live;
use crate::named_target;
use crate::trace::{Mode, Place, Run, specialise};

/// The tracer of this process.
pub(crate) static TRACER: OfCommand = OfCommand(Mutex::new(None));

/// Compiles the kernels of files, and keeps the last one.
pub(crate) struct OfCommand(Mutex<Option<Last>>);

/// The most recently compiled kernel.
struct Last {
    function: Py<PyFunction>,
    values: Vec<(String, Arg)>,
    options: Options,
    breaks: bool,
}

/// A kernel as described by `nki_sim._command.kernels`: name, function, its target, its parameters with default and annotation, its signature, and
/// the line and column of its name.
type Found =
    (String, Py<PyFunction>, Option<String>, Vec<(String, Option<String>, Option<String>)>, String, Option<(u32, u32)>);

impl Tracer for OfCommand {
    fn compile(
        &self,
        file: &Path,
        text: &str,
        arguments: &dyn Arguments,
        options: &Options,
    ) -> Result<Compiled, String> {
        Python::attach(|py| match self.compile_quietly(py, (file, text), arguments, options) {
            Ok(Ok(compiled)) => Ok(compiled),
            Ok(Err(refused)) => {
                Ok(Compiled { refused: Some(refused), ..wrong(options.target, Vec::new(), SourceMap::new()) })
            }
            Err(error) => Err(traceback(py, &error)),
        })
    }

    fn breaks(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|last| last.breaks)
    }

    fn step(&self, what: &Stepped<'_>, at: Option<&Break>) -> Result<(), String> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(last) = last else { return Ok(()) };
        Python::attach(|py| step(py, &last, what, at).map_err(|error| traceback(py, &error)))
    }

    fn search(&self, request: &str) -> Result<String, String> {
        Python::attach(|py| {
            let search = || -> PyResult<String> {
                PyModule::import(py, "nki_sim._search")?.getattr("of_command")?.call1((request,))?.extract()
            };
            // The error message comes from the package.
            search().map_err(|error: PyErr| error.value(py).to_string())
        })
    }
}

impl OfCommand {
    /// [`OfCommand::compile`], but prints during compilation are recorded in the compiled kernel: standard output may be a file of the command.
    /// If compilation fails, they go to standard error.
    fn compile_quietly(
        &self,
        py: Python<'_>,
        source: (&Path, &str),
        arguments: &dyn Arguments,
        options: &Options,
    ) -> PyResult<Result<Compiled, Refused>> {
        let printed = PyModule::import(py, "nki_sim._debug")?.getattr("Printed")?.call0()?;
        printed.call_method0("__enter__")?;
        let done = self.compile(py, source, arguments, options);
        printed.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
        match done {
            Ok(Ok(compiled)) => {
                let mut prints: Vec<String> = printed.call_method0("lines")?.extract()?;
                prints.extend(compiled.prints);
                Ok(Ok(Compiled { prints, ..compiled }))
            }
            nothing => {
                printed.call_method0("show")?;
                nothing
            }
        }
    }

    fn compile(
        &self,
        py: Python<'_>,
        (file, text): (&Path, &str),
        arguments: &dyn Arguments,
        options: &Options,
    ) -> PyResult<Result<Compiled, Refused>> {
        let module = PyModule::import(py, "nki_sim._command")?;
        // A pathlib path would lose the user's `./`.
        let found: Vec<Found> =
            module.getattr("kernels")?.call1((file.as_os_str(), options.kernel.as_deref()))?.extract()?;
        let listing = listing(file, text, &found)?;
        let chosen = listing.choose(options.kernel.as_deref()).and_then(|kernel| {
            kernel.check(&arguments.names())?;
            let values = arguments.values().map_err(Refused::Value)?.into_owned();
            Ok((kernel.clone(), values))
        });
        let (kernel, values) = match chosen {
            Ok(chosen) => chosen,
            Err(refused) => return Ok(Err(refused)),
        };
        let Some((_, function, ..)) = found.iter().find(|(name, ..)| *name == kernel.name) else {
            return Ok(Err(Refused::NoKernel));
        };
        let mut options = options.clone();
        if let Some(target) = kernel.target.filter(|_| options.decorated_target) {
            options.target = target;
        }
        let objects = objects(py, &values)?;
        let breaks = PyModule::import(py, "nki_sim._debug")?.getattr("Breaks")?.call0()?;
        breaks.call_method0("__enter__")?;
        let done = specialise(py, function.bind(py), &objects, &values, &options, &Live::default(), Mode::Whole);
        breaks.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
        let (target, breaks) = (options.target, breaks.getattr("hit")?.extract()?);
        let compiled = match done {
            Ok((compiled, _)) => compiled,
            Err(failed) if failed.diagnostics.is_empty() => return Err(failed.error),
            Err(failed) => wrong(target, failed.diagnostics, failed.sources),
        };
        let last = Last { function: function.clone_ref(py), values, options, breaks };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        let kernel = match &compiled.kernel {
            Some(k) => {
                KernelInfo { span: k.span, older_compiler: k.older_compiler, as_written: k.as_written, ..kernel }
            }
            None => kernel,
        };
        Ok(Ok(Compiled { kernel: Some(kernel), ..compiled }))
    }
}

/// A kernel without a program.
fn wrong(target: Target, diagnostics: Vec<Diagnostic>, sources: SourceMap) -> Compiled {
    Compiled {
        kernel: None,
        target,
        program: None,
        refused: None,
        diagnostics,
        sources,
        prints: Vec::new(),
        returned: Returned::None,
    }
}

/// The kernels with their locations in the file.
fn listing(path: &Path, text: &str, found: &[Found]) -> PyResult<Listing> {
    let mut sources = SourceMap::new();
    let file = sources.add(path.display().to_string(), text);
    let kernel = |found: &Found| {
        let start = found.5.and_then(|(line, column)| sources.offset(file, line, column));
        let name = |start| Span::new(file, start, start + found.0.len() as u32);
        Ok(KernelInfo { span: start.map_or_else(Span::default, name), ..info(found)? })
    };
    let kernels = found.iter().map(kernel).collect::<PyResult<Vec<_>>>()?;
    Ok(Listing { kernels, sources, ..Listing::default() })
}

fn info((name, _, target, params, signature, _): &Found) -> PyResult<KernelInfo> {
    let param = |(name, default, annotation): &(String, Option<String>, Option<String>)| Param {
        name: name.clone(),
        default: default.clone(),
        annotation: annotation.clone(),
    };
    Ok(KernelInfo {
        name: name.clone(),
        params: params.iter().map(param).collect(),
        signature: signature.clone(),
        span: Span::default(),
        target: target.as_deref().map(|name| named_target(Some(name))).transpose()?,
        older_compiler: false,
        as_written: false,
        decorated: true,
    })
}

/// Executes a kernel again in the debugger, in step with a run.
fn step(py: Python<'_>, last: &Last, what: &Stepped<'_>, at: Option<&Break>) -> PyResult<()> {
    let given = |_: Python<'_>| Ok(vec![(what.inputs)().map_err(value_error)?]);
    let (judge, sources) = (what.session.judge.clone(), what.sources.clone());
    let explain = move |py: Python<'_>, why: Stop| match why {
        Stop::Call(message) => value_error(message),
        Stop::Kernel(fault) => kernel_error(py, judge.judge(fault.found()), &sources),
    };
    let departed = Place::default();
    let run = Run {
        session: what.session,
        kernels: vec![what.kernel],
        rank: 0,
        inputs: &given,
        explain: Some(Rc::new(explain)),
        departed: departed.clone(),
    };
    let function = last.function.bind(py);
    let objects = objects(py, &last.values)?;
    let debug = PyModule::import(py, "nki_sim._debug")?;
    let session = match at {
        None => py.None().into_bound(py),
        Some(at) => {
            let own = function.getattr("__code__")?.getattr("co_filename")?.extract()?;
            let file: String = at.file.clone().unwrap_or(own);
            debug.getattr("Session")?.call1((file, at.line, at.iteration))?
        }
    };
    if !session.is_none() {
        session.call_method0("begin")?;
    }
    let mode = Mode::Beside(&run);
    let done = specialise(py, function, &objects, &last.values, &last.options, &Live::default(), mode);
    if !session.is_none() {
        session.call_method0("end")?;
    }
    debug.getattr("end_of_step")?.call1((done.err().map(|failed| failed.error), departed.take()))?;
    Ok(())
}

/// The text of an exception with its traceback.
fn traceback(py: Python<'_>, error: &PyErr) -> String {
    let text = || {
        PyModule::import(py, "nki_sim._command")?
            .getattr("text_of")?
            .call1((error.value(py), error.traceback(py)))?
            .extract()
    };
    text().unwrap_or_else(|_: PyErr| error.to_string())
}

/// Arguments as Python objects. Tensors are None, which the tracer replaces.
fn objects<'py>(py: Python<'py>, values: &[(String, Arg)]) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    values.iter().map(|(name, value)| Ok((name.clone(), object(py, name, value)?))).collect()
}

fn object<'py>(py: Python<'py>, name: &str, value: &Arg) -> PyResult<Bound<'py, PyAny>> {
    let all = |items: &[Arg]| items.iter().map(|item| object(py, name, item)).collect::<PyResult<Vec<_>>>();
    Ok(match value {
        Arg::None | Arg::Tensor { .. } => py.None().into_bound(py),
        Arg::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Arg::Int(value) => value.into_pyobject(py)?.into_any(),
        Arg::Float(value) => value.into_pyobject(py)?.into_any(),
        Arg::Str(text) => text.into_pyobject(py)?.into_any(),
        Arg::Ellipsis => py.Ellipsis().into_bound(py),
        Arg::Tuple(items) => PyTuple::new(py, all(items)?)?.into_any(),
        Arg::List(items) => PyList::new(py, all(items)?)?.into_any(),
        Arg::Dict(items) => {
            let dict = PyDict::new(py);
            for (key, value) in items {
                dict.set_item(object(py, name, key)?, object(py, name, value)?)?;
            }
            dict.into_any()
        }
        Arg::Dtype(dtype) => tracer(py)?.getattr("named")?.call1(("nki.language", dtype.name()))?,
        Arg::Api(path) => {
            let (module, member) = path.rsplit_once('.').unwrap_or(("", path));
            tracer(py)?.getattr("named")?.call1((module, member))?
        }
        Arg::Shared(_, inner) => object(py, name, inner)?,
        _ => {
            return Err(value_error(format!(
                "--arg {name}: --frontend python takes no such value; use --frontend builtin"
            )));
        }
    })
}
