//! Converts Python values to values of a trace, and back.

use std::rc::Rc;

use nki_frontend::Arg;
use nki_frontend::trace::{Args, Callable, Content, Failure, Item, Located, Selected, Selector, Trace};
use nki_isa::names::Named;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDict, PyEllipsis, PyFloat, PyFrozenSet, PyInt, PyList, PyRange, PySet, PySlice, PyString, PyTuple, PyType,
};

use super::active::Tracing;
use super::handles::Handle;
use crate::convert::{Conversion, is_constant, library_path, tracer};
use crate::names::path_of;

/// Maximum nesting depth of containers.
const MAX_DEPTH: u32 = 100;

/// The arguments of a call.
pub(super) fn arguments(
    tracing: &Rc<Tracing>,
    args: &Bound<'_, PyTuple>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Args> {
    let mut out = Args::default();
    for value in args.iter_borrowed() {
        out.push(item_of(tracing, &value)?);
    }
    if let Some(keywords) = keywords {
        for (name, value) in keywords.iter() {
            let name = name.cast::<PyString>()?;
            let value = item_of(tracing, &value)?;
            out.set(tracing.with(|trace| tracing.name(trace, name))?, value);
        }
    }
    Ok(out)
}

/// Converts a Python value to a value of the trace.
pub(super) fn item_of(tracing: &Rc<Tracing>, object: &Bound<'_, PyAny>) -> PyResult<Item> {
    nested(tracing, object, 0)
}

fn nested(tracing: &Rc<Tracing>, object: &Bound<'_, PyAny>, depth: u32) -> PyResult<Item> {
    let py = object.py();
    if let Ok(handle) = object.cast::<Handle>() {
        return Ok(handle.get().open(py)?.1);
    }
    if object.is_none() {
        return Ok(Item::none());
    }
    if let Ok(value) = object.cast_exact::<PyInt>() {
        return integer(value);
    }
    if let Ok(value) = object.cast_exact::<PyBool>() {
        return Ok(Item::bool(value.is_true()));
    }
    if let Ok(value) = object.cast_exact::<PyFloat>() {
        return Ok(Item::float(value.value()));
    }
    if let Ok(value) = object.cast_exact::<PyString>() {
        return Ok(Item::text(&value.to_string_lossy()));
    }
    if depth > MAX_DEPTH {
        let reason = format!("it is nested more than {MAX_DEPTH} levels deep");
        return Ok(Item::opaque("a container".into(), Some(reason)));
    }
    if let Ok(items) = object.cast_exact::<PyTuple>() {
        return items
            .iter_borrowed()
            .map(|item| nested(tracing, &item, depth + 1))
            .collect::<PyResult<_>>()
            .map(Item::tuple);
    }
    if let Ok(slice) = object.cast_exact::<PySlice>() {
        let part = |name: &Bound<'_, PyString>| nested(tracing, &slice.getattr(name)?, depth + 1);
        let (start, stop, step) = (intern!(py, "start"), intern!(py, "stop"), intern!(py, "step"));
        return Ok(Item::slice(part(start)?, part(stop)?, part(step)?));
    }
    if let Some(known) = tracing.api.borrow().get(&(object.as_ptr() as usize)) {
        return Ok(known.clone());
    }
    if let Some(path) = path_of(object) {
        return tracing.named(object, &path);
    }
    other(tracing, object, depth)
}

fn integer(value: &Bound<'_, PyInt>) -> PyResult<Item> {
    if let Ok(value) = value.extract::<i64>() {
        return Ok(Item::int(value));
    }
    // Python refuses to print integers of thousands of digits.
    let bits: u64 = value.call_method0(intern!(value.py(), "bit_length"))?.extract()?;
    let shown = if bits <= 128 { value.to_string() } else { format!("an integer of {bits} bits") };
    Ok(Item::opaque(shown, Some("the integer does not fit in 64 bits".into())))
}

/// Converts a value of a type that is rarely an argument.
fn other(tracing: &Rc<Tracing>, object: &Bound<'_, PyAny>, depth: u32) -> PyResult<Item> {
    let py = object.py();
    let list = |items: Bound<'_, PyAny>| -> PyResult<Vec<Item>> {
        items.try_iter()?.map(|item| nested(tracing, &item?, depth + 1)).collect()
    };
    if object.cast::<PyList>().is_ok() {
        return list(object.clone()).map(Item::list);
    }
    if object.cast::<PyTuple>().is_ok() || object.cast::<PySet>().is_ok() || object.cast::<PyFrozenSet>().is_ok() {
        return list(object.clone()).map(Item::tuple);
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let mut items = Vec::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            items.push((key.str()?.to_string_lossy().into_owned(), nested(tracing, &value, depth + 1)?));
        }
        return Ok(Item::dict(items));
    }
    if object.cast::<PyEllipsis>().is_ok() {
        return Ok(Item::ellipsis());
    }
    if object.cast::<PyRange>().is_ok() {
        let part = |name: &str| object.getattr(name)?.extract::<i64>();
        return Ok(Item::range(part("start")?, part("stop")?, part("step")?));
    }
    if let Ok(value) = object.cast::<PyInt>() {
        return integer(value);
    }
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Item::float(value.value()));
    }
    if let Ok(value) = object.cast::<PyString>() {
        return Ok(Item::text(&value.to_string_lossy()));
    }
    let class = object.get_type();
    if let Some(path) = path_of(class.as_any())
        && let Ok(arguments) = object.getattr("__nki_arguments__")
    {
        // An object created by the API: recreated from its arguments.
        let function = tracing.named(class.as_any(), &path)?;
        let mut args = Args::default();
        for argument in arguments.call0()?.try_iter()? {
            args.push(nested(tracing, &argument?, depth + 1)?);
        }
        return tracing.operate(py, |trace, span| trace.call(&function, args, span));
    }
    if let Ok(make) = object.getattr("__nki_make__") {
        // Created on the host, and recreated here.
        return nested(tracing, &make.call0()?, depth + 1);
    }
    if let Some(path) = library_path(object) {
        return tracing.operate(py, |trace, span| trace.convert(&Arg::Api(path), span));
    }
    if object.is_instance_of::<PyType>() || is_constant(object)? {
        let arg = Conversion::new(&tracing.table).value(object, "a value")?;
        return tracing.operate(py, |trace, span| trace.convert(&arg, span));
    }
    if object.is_callable() {
        let function = Body { function: object.clone().unbind(), tracing: Rc::downgrade(tracing) };
        return Ok(Item::callable(Box::new(function)));
    }
    if object.hasattr("__index__")? {
        return Ok(Item::int(object.call_method0("__index__")?.extract()?));
    }
    let path = format!("a {} object", object.get_type().name()?);
    Ok(Item::opaque(path, Some("the device accepts only numbers, tensors, dtypes and names of the API".into())))
}

/// A Python function that the trace calls: the body of a dynamic loop, a rule for addresses.
struct Body {
    function: Py<PyAny>,
    tracing: std::rc::Weak<Tracing>,
}

impl Callable for Body {
    fn call(&self, trace: &mut Trace<'_, '_>, args: Vec<Item>, keywords: Vec<(String, Item)>) -> Result<Item, Failure> {
        let Some(tracing) = self.tracing.upgrade() else { return Err(Failure::of_driver()) };
        let run = || {
            Python::attach(|py| {
                let args: Vec<_> = args.iter().map(|arg| to_python(py, &tracing, arg)).collect::<PyResult<_>>()?;
                let named = PyDict::new(py);
                for (name, value) in &keywords {
                    named.set_item(name, to_python(py, &tracing, value)?)?;
                }
                let result = self.function.bind(py).call(PyTuple::new(py, args)?, Some(&named))?;
                tracing.check_fault(py)?;
                item_of(&tracing, &result)
            })
        };
        let depth = trace.depth();
        let result = tracing.lend(trace, run);
        // The called function has returned.
        trace.leave_to(depth);
        result.map_err(|error| {
            *tracing.raised_outside.borrow_mut() = Some(error);
            Failure::of_driver()
        })
    }

    fn captured_numbers(&self) -> Vec<(String, Option<f64>)> {
        Python::attach(|py| {
            let function = self.function.bind(py);
            let names =
                function.getattr("__code__").and_then(|code| code.getattr("co_freevars")?.extract::<Vec<String>>());
            let cells = function.getattr("__closure__").and_then(|cells| cells.extract::<Vec<Bound<'_, PyAny>>>());
            let (Ok(names), Ok(cells)) = (names, cells) else { return Vec::new() };
            let held = |cell: Bound<'_, PyAny>| {
                let value = cell.getattr("cell_contents").ok()?;
                // Extraction would request the number of a device value.
                let is_number = value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>();
                if is_number { value.extract().ok() } else { None }
            };
            names.into_iter().zip(cells.into_iter().map(held)).collect()
        })
    }

    fn located(&self) -> Option<Located> {
        Python::attach(|py| {
            let found = tracer(py).ok()?.getattr("definition").ok()?.call1((&self.function,)).ok()?;
            let (file, name, line, parameters) = found.extract::<(String, String, u32, Vec<String>)>().ok()?;
            Some(Located { file, name, line, parameters })
        })
    }

    fn items(&self, selected: &[Selected]) -> Vec<Option<Item>> {
        let held = |py: Python<'_>| -> PyResult<Vec<Option<Item>>> {
            let wanted = PyList::empty(py);
            for Selected { base, by } in selected {
                match by {
                    Selector::Attribute(name) => wanted.append((base, "attribute", name))?,
                    Selector::Index(index) => wanted.append((base, "index", index))?,
                    Selector::Key(key) => wanted.append((base, "key", key))?,
                }
            }
            let found = tracer(py)?.getattr("items_of")?.call1((&self.function, wanted))?;
            found
                .try_iter()?
                .map(|item| Ok(item?.cast::<PyTuple>()?.iter().next().and_then(|item| plain(&item))))
                .collect()
        };
        Python::attach(held).unwrap_or_else(|_| selected.iter().map(|_| None).collect())
    }
}

/// A plain value or a value of the device, converted without the evaluation.
fn plain(object: &Bound<'_, PyAny>) -> Option<Item> {
    if let Ok(handle) = object.cast::<Handle>() {
        return handle.get().open(object.py()).ok().map(|(_, item)| item);
    }
    if let Ok(value) = object.cast_exact::<PyBool>() {
        return Some(Item::bool(value.is_true()));
    }
    if let Ok(value) = object.cast_exact::<PyInt>() {
        return value.extract().ok().map(Item::int);
    }
    if let Ok(value) = object.cast_exact::<PyFloat>() {
        return Some(Item::float(value.value()));
    }
    if let Ok(value) = object.cast_exact::<PyString>() {
        return Some(Item::text(&value.to_string_lossy()));
    }
    object.is_none().then(Item::none)
}

/// Converts a value of the trace to Python.
pub(super) fn to_python(py: Python<'_>, tracing: &Rc<Tracing>, item: &Item) -> PyResult<Py<PyAny>> {
    let all =
        |items: &[Item]| -> PyResult<Vec<Py<PyAny>>> { items.iter().map(|i| to_python(py, tracing, i)).collect() };
    Ok(match item.content() {
        Content::None => py.None(),
        Content::Bool(value) => PyBool::new(py, value).to_owned().into_any().unbind(),
        Content::Int(value) => value.into_pyobject(py)?.into_any().unbind(),
        Content::Float(value) => PyFloat::new(py, value).into_any().unbind(),
        Content::Str(text) => PyString::new(py, &text).into_any().unbind(),
        Content::Ellipsis => py.Ellipsis(),
        Content::Tuple(items) => PyTuple::new(py, all(&items)?)?.into_any().unbind(),
        Content::List(items) => PyList::new(py, all(&items)?)?.into_any().unbind(),
        Content::Dict(items) => {
            let dict = PyDict::new(py);
            for (key, value) in items {
                dict.set_item(to_python(py, tracing, &key)?, to_python(py, tracing, &value)?)?;
            }
            dict.into_any().unbind()
        }
        Content::Range([start, stop, step]) => {
            PyRange::new_with_step(py, start as isize, stop as isize, step as isize)?.into_any().unbind()
        }
        Content::Slice(parts) => {
            let [start, stop, step] = &*parts;
            let slice = py.get_type::<PySlice>();
            let parts = (to_python(py, tracing, start)?, to_python(py, tracing, stop)?, to_python(py, tracing, step)?);
            slice.call1(parts)?.unbind()
        }
        Content::Dtype(dtype) => tracer(py)?.getattr("named")?.call1(("nki.language", dtype.name()))?.unbind(),
        Content::Api(path) => {
            let (module, name) = path.rsplit_once('.').unwrap_or(("", &path));
            tracer(py)?.getattr("named")?.call1((module, name))?.unbind()
        }
        Content::Object => Handle::object(py, tracing, item.clone())?,
    })
}
