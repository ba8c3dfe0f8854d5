//! Traces a kernel that Python executes: `nl.*` and `nisa.*` are Python functions that operate on the trace of their thread.

mod active;
mod follow;
mod functions;
mod handles;
mod numpy;
mod places;
mod turns;
mod values;

use nki_diag::{Diagnostic, FileId, SourceMap, Span};
use nki_frontend::trace::{Definition, Item, Trace, trace};
use nki_frontend::{Arg, Compiled, Host, HostArray, Loader, Options, Returned};
use nki_isa::DType;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction};

pub(crate) use self::active::active;
use self::active::{Tracing, begin};
pub(crate) use self::follow::{Place, Run};
pub(crate) use self::functions::{Function, attribute_of_module, check_nested, is_tracing, refuse_grid};
pub(crate) use self::handles::{Handle, Method};
use self::places::{Met, Places};
use self::values::{item_of, to_python};
use crate::convert::tracer;
use crate::errors::{raised, with_findings};
use crate::host::Live;

/// Files of the process for constants, and a record of the reads.
struct Files<'a>(&'a Live);

impl Loader for Files<'_> {
    fn read(&self, path: &std::path::Path) -> std::io::Result<String> {
        Err(std::io::Error::new(std::io::ErrorKind::NotFound, path.display().to_string()))
    }

    fn array(&self, path: &std::path::Path) -> Result<HostArray, String> {
        self.0.array(&path.to_string_lossy())
    }
}

/// A tensor among the arguments: its name, shape and dtype.
type Tensor<'a> = (String, &'a [usize], DType);

/// The tensors in an argument, with the names that the frontend uses.
fn tensors<'a>(arg: &'a Arg, name: &str, out: &mut Vec<Tensor<'a>>) {
    let mut member = |item: &'a Arg, key: &str| tensors(item, &format!("{name}.{key}"), out);
    match arg {
        Arg::Tensor { shape, dtype } => out.push((name.to_owned(), shape, *dtype)),
        Arg::Tuple(items) | Arg::List(items) => {
            items.iter().enumerate().for_each(|(i, item)| member(item, &i.to_string()));
        }
        Arg::Dict(items) | Arg::DefaultDict { entries: items, .. } => {
            for (key, value) in items {
                let key = match key {
                    Arg::Str(text) => text.clone(),
                    Arg::Int(i) => i.to_string(),
                    other => format!("{other:?}"),
                };
                member(value, &key);
            }
        }
        Arg::Instance { fields, .. } => fields.iter().for_each(|(key, value)| member(value, key)),
        Arg::Shared(_, inner) => tensors(inner, name, out),
        _ => {}
    }
}

/// The error of a kernel that could not be specialised.
#[derive(Debug)]
pub(crate) struct Failed {
    /// The exception that Python raises.
    pub(crate) error: PyErr,
    /// The findings; empty if the error is not the kernel's.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The sources that the diagnostics refer to.
    pub(crate) sources: SourceMap,
}

impl From<PyErr> for Failed {
    fn from(error: PyErr) -> Self {
        Failed { error, diagnostics: Vec::new(), sources: SourceMap::new() }
    }
}

impl From<Failed> for PyErr {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

/// How a kernel is specialised.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'a> {
    /// The whole kernel.
    Whole,
    /// The part before its first error.
    UpToError,
    /// Instruction by instruction, in parallel with a run.
    Beside(&'a Run<'a>),
}

/// Specialises a kernel by running its function for each core. `converted` are its arguments in the frontend's form. Also returns the code
/// encountered, with its globals; file reads are recorded in `live`.
pub(crate) fn specialise(
    py: Python<'_>,
    function: &Bound<'_, PyFunction>,
    args: &[(String, Bound<'_, PyAny>)],
    converted: &[(String, Arg)],
    options: &Options,
    live: &Live,
    mode: Mode<'_>,
) -> Result<(Compiled, Vec<Met>), Failed> {
    let code = function.getattr("__code__")?;
    let places = Places::new(py, &code);
    let (tracing, _ended) = begin(options.target, places);
    let compiled = trace(options, &Files(live), |trace| {
        let kernel = Kernel::new(&tracing, trace, function)?;
        let mut returned = Returned::None;
        for core in 0..options.lnc.max(1) {
            let programs = trace
                .begin_core(&kernel.name, core, kernel.span)
                .map_err(|failure| tracing.exception(py, trace, failure, None))
                .map_err(|error| finding(py, &tracing, trace, error))?;
            let mut work = |trace: &mut Trace<'_, '_>| {
                for (index, at) in (0..).zip(&programs) {
                    let first = core == 0 && index == 0;
                    trace.begin_program(at, index);
                    tracing.places.borrow_mut().restart();
                    let result = kernel.run(py, &tracing, trace, args, converted)?;
                    if first {
                        returned = kernel.take_result(py, &tracing, trace, &result)?;
                    } else if index == 0 {
                        trace
                            .compare_result(&result, core, kernel.span)
                            .map_err(|failure| tracing.exception(py, trace, failure, None))
                            .map_err(|error| finding(py, &tracing, trace, error))?;
                    }
                }
                Ok(())
            };
            match mode {
                Mode::Beside(run) => run.beside(py, &tracing, trace, core, work)?,
                Mode::Whole => work(trace)?,
                Mode::UpToError => {
                    if let Err(failed) = work(trace) {
                        return trace.finish(&kernel.name, Returned::None, kernel.span).map_err(|_| failed);
                    }
                }
            }
        }
        tracing.report_caught(trace, None);
        trace
            .finish(&kernel.name, returned, kernel.span)
            .map_err(|failure| tracing.exception(py, trace, failure, None))
            .map_err(|error| finding(py, &tracing, trace, error))
    })?;
    let met = std::mem::take(&mut tracing.places.borrow_mut().met);
    Ok((compiled, met))
}

/// The kernel that is traced.
struct Kernel<'a, 'py> {
    function: &'a Bound<'py, PyFunction>,
    name: String,
    span: Span,
    definition: Option<Definition>,
}

impl<'a, 'py> Kernel<'a, 'py> {
    fn new(tracing: &Tracing, trace: &mut Trace<'_, '_>, function: &'a Bound<'py, PyFunction>) -> PyResult<Self> {
        let code = function.getattr("__code__")?;
        let name: String = code.getattr("co_name")?.extract()?;
        let line: u32 = code.getattr("co_firstlineno")?.extract()?;
        let globals = function.getattr("__globals__")?;
        let file: FileId = tracing.places.borrow_mut().add_code(trace, &code, &globals)?;
        let params: Vec<String> = tracer(function.py())?.getattr("parameters")?.call1((&code,))?.extract()?;
        let definition = trace.definition(file, &name, line, &params);
        let whole = || trace.sources().line_span(file, line).unwrap_or(Span::new(file, 0, 0));
        let span = definition.as_ref().map_or_else(whole, |d| d.span);
        Ok(Kernel { function, name, span, definition })
    }

    /// The location of the parameter for an argument of this name, or for its enclosing argument.
    fn parameter(&self, name: &str) -> Span {
        let root = name.split('.').next().unwrap_or(name);
        let params = self.definition.iter().flat_map(|d| &d.params);
        params.into_iter().find(|(known, _)| known == root).map_or(self.span, |(_, span)| *span)
    }

    /// Runs the function once; returns its result.
    fn run(
        &self,
        py: Python<'_>,
        tracing: &std::rc::Rc<Tracing>,
        trace: &mut Trace<'_, '_>,
        args: &[(String, Bound<'_, PyAny>)],
        converted: &[(String, Arg)],
    ) -> Result<Item, Failed> {
        let inputs = PyDict::new(py);
        for (name, arg) in converted {
            trace.check_argument(arg, self.parameter(name));
            let mut found = Vec::new();
            tensors(arg, name, &mut found);
            for (name, shape, dtype) in found {
                let made = trace
                    .input(&name, shape, dtype, self.parameter(&name))
                    .map_err(|failure| tracing.exception(py, trace, failure, None))
                    .map_err(|error| finding(py, tracing, trace, error))?;
                inputs.set_item(name, to_python(py, tracing, &made)?)?;
            }
        }
        let run = || -> PyResult<Item> {
            let result = tracer(py)?.getattr("run")?.call1((self.function, args.to_vec(), inputs))?;
            tracing.check_fault(py)?;
            item_of(tracing, &result)
        };
        tracing.lend(trace, run).map_err(|error| finding(py, tracing, trace, error))
    }

    /// The return value of the function in the first program.
    fn take_result(
        &self,
        py: Python<'_>,
        tracing: &Tracing,
        trace: &mut Trace<'_, '_>,
        result: &Item,
    ) -> Result<Returned, Failed> {
        let names = self.returned_names(py, tracing, trace)?;
        trace
            .take_result(result, &names, self.span)
            .map_err(|failure| tracing.exception(py, trace, failure, None))
            .map_err(|error| finding(py, tracing, trace, error))
    }

    /// The names of the variables that the function returned.
    fn returned_names(
        &self,
        py: Python<'_>,
        tracing: &Tracing,
        trace: &mut Trace<'_, '_>,
    ) -> PyResult<Vec<Option<String>>> {
        let frame = tracing.places.borrow_mut().frame.take();
        let Some(frame) = frame else { return Ok(Vec::new()) };
        let span = tracing.places.borrow_mut().span_in(trace, frame.bind(py))?;
        trace.check_return(span).map_err(|failure| tracing.exception(py, trace, failure, None))?;
        Ok(trace.returned_names(span))
    }
}

/// Handles the exception that ends the trace: one of ours gets the other findings, one of Python's a diagnostic.
fn finding(py: Python<'_>, tracing: &Tracing, trace: &mut Trace<'_, '_>, error: PyErr) -> Failed {
    let value = error.value(py);
    if let Ok((id, index)) = value.getattr("_raised").and_then(|mark| mark.extract::<(u64, usize)>())
        && id == tracing.id
    {
        tracing.report_caught(trace, Some(index));
        let mut all: Vec<Diagnostic> = trace.diagnostics().to_vec();
        let own = tracing.raised.borrow().get(index).cloned();
        let alone = all.is_empty();
        all.extend(own);
        let error = if alone { error } else { with_findings(py, error, &all, trace.sources()) };
        return Failed { error, diagnostics: all, sources: trace.sources().clone() };
    }
    match described(py, tracing, trace, &error) {
        Ok(Some((diagnostic, class))) => {
            tracing.report_caught(trace, None);
            let mut all: Vec<Diagnostic> = trace.diagnostics().to_vec();
            all.push(diagnostic);
            let made = raised(py, &all, &class, trace.sources());
            made.set_cause(py, Some(error));
            Failed { error: made, diagnostics: all, sources: trace.sources().clone() }
        }
        _ => error.into(),
    }
}

/// The result of `nki_sim._trace.about_error`: the kind of the diagnostic, the class, the text, and the frames with instruction and name.
type AboutError<'py> = (String, String, String, Vec<(Bound<'py, PyAny>, u32, String)>);

/// A Python exception as a diagnostic, and the name of its class; `None` for an exception that is not an error of the kernel.
fn described(
    py: Python<'_>,
    tracing: &Tracing,
    trace: &mut Trace<'_, '_>,
    error: &PyErr,
) -> PyResult<Option<(Diagnostic, String)>> {
    let about = tracer(py)?.getattr("about_error")?.call1((error.value(py), error.traceback(py)))?;
    if about.is_none() {
        return Ok(None);
    }
    let (slug, class, text, entries): AboutError<'_> = about.extract()?;
    let mut places = Vec::new();
    for (frame, at, name) in &entries {
        if let Some(span) = tracing.places.borrow_mut().span_at(trace, frame, *at)? {
            places.push((span, name.clone()));
        }
    }
    let slug = SLUGS.iter().find(|known| **known == slug).copied().unwrap_or("raised-exception");
    let message = match (slug, &*text) {
        ("assertion-failed", "") => match places.last() {
            Some((span, _)) => format!("assertion failed: {}", condition(trace, *span)),
            None => "assertion failed".to_owned(),
        },
        ("assertion-failed", text) => format!("assertion failed: {text}"),
        ("raised-exception", "") => class.clone(),
        ("raised-exception", text) => format!("{class}: {text}"),
        (_, text) => text.to_owned(),
    };
    let mut diagnostic = Diagnostic::error(slug, message);
    let mut inner: Option<String> = None;
    let place = places.last().map(|(span, _)| *span);
    for (span, name) in places.into_iter().rev().take(7) {
        diagnostic = match inner {
            None => diagnostic.at(span, if slug == "assertion-failed" { "this is false" } else { "raised here" }),
            Some(callee) => diagnostic.with(span, format!("in this call of `{callee}`")),
        };
        inner = Some(name);
    }
    if slug == "undefined-name"
        && let Some(import) = usual_import(trace, &text, place)
    {
        diagnostic = diagnostic.help(format!("write `{import}` at the top of the file"));
    }
    Ok(Some((diagnostic, class)))
}

/// The import that is missing in the file at a place, if Python reports an unknown name.
fn usual_import(trace: &Trace<'_, '_>, said: &str, place: Option<Span>) -> Option<String> {
    let name = said.strip_prefix("name '")?.split('\'').next()?;
    let text = trace.sources().text(place?.file)?;
    let package =
        if text.contains("import neuronxcc") || text.contains("from neuronxcc") { "neuronxcc" } else { "nki" };
    nki_frontend::usual_import(name, package)
}

/// The text of a condition at a place.
fn condition(trace: &Trace<'_, '_>, span: Span) -> String {
    let text = trace.sources().text(span.file).and_then(|t| t.get(span.start as usize..span.end as usize));
    let text = text.unwrap_or("").trim();
    text.strip_prefix("assert").map_or(text, str::trim).to_owned()
}

/// Diagnostics of errors that Python itself raises.
const SLUGS: &[&str] = &[
    "assertion-failed",
    "index-out-of-range",
    "missing-key",
    "no-attribute",
    "undefined-name",
    "division-by-zero",
    "integer-overflow",
    "import-error",
    "type-error",
    "value-error",
    "recursion-limit",
    "raised-exception",
];

impl Tracing {
    /// The item represented by a Python object whose name is known.
    pub(crate) fn api(&self, object: &Bound<'_, PyAny>, module: &str, name: &str) -> PyResult<Item> {
        let address = object.as_ptr() as usize;
        if let Some(known) = self.api.borrow().get(&address) {
            return Ok(known.clone());
        }
        let made = self.operate(object.py(), |trace, span| trace.api(module, name, span))?;
        self.api.borrow_mut().insert(address, made.clone());
        Ok(made)
    }

    /// The same for a dotted name, possibly that of an enum member.
    pub(crate) fn named(&self, object: &Bound<'_, PyAny>, path: &str) -> PyResult<Item> {
        let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
        let arg = Arg::Api(path.to_owned());
        let address = object.as_ptr() as usize;
        let made = match module {
            "nki.language" | "nki.isa" | "nki.collectives" => return self.api(object, module, name),
            _ => self.operate(object.py(), |trace, span| trace.convert(&arg, span))?,
        };
        self.api.borrow_mut().insert(address, made.clone());
        Ok(made)
    }
}
