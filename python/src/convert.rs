//! Converts Python values to arguments of the frontend.

use nki_frontend::{Arg, HostArray, Identity, python_modules};
use nki_isa::DType;
use nki_isa::names::Named;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyDict, PyEllipsis, PyFloat, PyFrozenSet, PyFunction, PyInt, PyList, PyModule, PyRange, PySet, PySlice,
    PyString, PyTuple, PyType,
};

use crate::arrays::{self, Array};
use crate::errors::ours;
use crate::host::Table;
use crate::names::path_of;

/// Classes recognised by identity.
struct Known {
    kernel: Py<PyAny>,
    ndarray: Py<PyAny>,
    spec: Py<PyAny>,
    generic: Py<PyAny>,
    dtype: Py<PyAny>,
    enum_type: Py<PyAny>,
    method: Py<PyAny>,
    partial: Py<PyAny>,
    cached: Py<PyAny>,
    builtin: Py<PyAny>,
    helpers: Py<PyModule>,
    tracer: Py<PyModule>,
    classes: Py<PyAny>,
}

fn known(py: Python<'_>) -> PyResult<&Known> {
    static KNOWN: PyOnceLock<Known> = PyOnceLock::new();
    KNOWN.get_or_try_init(py, || {
        let get = |module: &str, name: &str| PyModule::import(py, module)?.getattr(name).map(Bound::unbind);
        Ok(Known {
            kernel: get("nki_sim._kernel", "Kernel")?,
            ndarray: get("numpy", "ndarray")?,
            spec: get("nki_sim._arrays", "TensorSpec")?,
            generic: get("numpy", "generic")?,
            dtype: get("numpy", "dtype")?,
            enum_type: get("enum", "EnumMeta")?,
            method: get("types", "MethodType")?,
            partial: get("functools", "partial")?,
            cached: get("functools", "_lru_cache_wrapper")?,
            builtin: get("types", "BuiltinFunctionType")?,
            helpers: PyModule::import(py, "nki_sim._inspect")?.unbind(),
            tracer: PyModule::import(py, "nki_sim._trace")?.unbind(),
            classes: get("nki_sim._objects", "CLASSES")?,
        })
    })
}

/// The class of the API for device values of a type.
pub(crate) fn class_of_value<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    known(py)?.classes.bind(py).cast::<PyDict>()?.get_item(name)
}

/// The helper module written in Python.
pub(crate) fn helpers(py: Python<'_>) -> PyResult<&Py<PyModule>> {
    Ok(&known(py)?.helpers)
}

/// The helper module of the tracer.
pub(crate) fn tracer(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    Ok(known(py)?.tracer.bind(py))
}

/// Whether a value is exactly a NumPy array, not of a derived class.
pub(crate) fn is_ndarray(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.get_type().is(known(object.py())?.ndarray.bind(object.py())))
}

/// Whether a value is a NumPy array, number or dtype, or an object created by the API.
pub(crate) fn is_constant(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let known = known(py)?;
    for class in [&known.ndarray, &known.generic, &known.dtype] {
        if object.is_instance(class.bind(py))? {
            return Ok(true);
        }
    }
    let class = object.get_type();
    Ok(path_of(class.as_any()).is_some() || class.name()?.to_string_lossy() == "ufunc")
}

/// State of one conversion.
pub(crate) struct Conversion<'a> {
    table: &'a Table,
    /// Addresses of the mutable values visited, in order.
    seen: Vec<usize>,
    /// Arrays by name, if arrays are allowed as arguments.
    pub(crate) arrays: Option<Vec<(String, Array)>>,
    depth: u32,
    /// Values converted so far.
    count: usize,
}

/// Maximum nesting depth of values.
const MAX_DEPTH: u32 = 100;
/// Maximum number of values in one argument or global, because tuples with shared members can expand without bound.
const MAX_VALUES: usize = 1 << 20;

impl<'a> Conversion<'a> {
    /// For a value that is not an argument: arrays are not supported.
    pub(crate) fn new(table: &'a Table) -> Self {
        Conversion { table, seen: Vec::new(), arrays: None, depth: 0, count: 0 }
    }

    /// For an argument: arrays are collected.
    pub(crate) fn of_argument(table: &'a Table, arrays: Vec<(String, Array)>) -> Self {
        Conversion { table, seen: Vec::new(), arrays: Some(arrays), depth: 0, count: 0 }
    }

    /// Converts a value; `name` is the name for a tensor.
    pub(crate) fn value(&mut self, object: &Bound<'_, PyAny>, name: &str) -> PyResult<Arg> {
        if self.depth >= MAX_DEPTH {
            return Ok(opaque(name, &format!("it is nested more than {MAX_DEPTH} levels deep")));
        }
        self.count += 1;
        if self.count > MAX_VALUES {
            let text = format!("`{name}` is among more than {MAX_VALUES} values nested in one another; pass an array");
            return Err(ours(object.py(), "ArgumentError", &text));
        }
        self.depth += 1;
        let out = self.convert(object, name);
        self.depth -= 1;
        out
    }

    fn convert(&mut self, object: &Bound<'_, PyAny>, name: &str) -> PyResult<Arg> {
        if object.is_none() {
            return Ok(Arg::None);
        }
        if let Ok(value) = object.cast_exact::<PyBool>() {
            return Ok(Arg::Bool(value.is_true()));
        }
        if let Ok(value) = object.cast_exact::<PyInt>() {
            return Ok(match value.extract::<i64>() {
                Ok(value) => Arg::Int(value),
                Err(_) => opaque(name, "the integer does not fit in 64 bits"),
            });
        }
        if let Ok(value) = object.cast_exact::<PyFloat>() {
            return Ok(Arg::Float(value.value()));
        }
        if let Ok(value) = object.cast_exact::<PyString>() {
            return Ok(Arg::Str(value.to_string_lossy().into_owned()));
        }
        if let Some(path) = path_of(object) {
            return Ok(Arg::Api(path));
        }
        if let Ok(items) = object.cast_exact::<PyTuple>() {
            return Ok(Arg::Tuple(self.items(items.iter(), name)?));
        }
        let py = object.py();
        let known = known(py)?;
        if object.is_instance(known.ndarray.bind(py))? || object.get_type().is(known.spec.bind(py)) {
            return self.array(object, object, false, None, name);
        }
        if let Some(arg) = self.container(object, name)? {
            return Ok(arg);
        }
        if let Some(arg) = self.code(object, known, name)? {
            return Ok(arg);
        }
        if object.is_instance(known.generic.bind(py))? {
            return match arrays::constant(object)? {
                Some(constant) => Ok(Arg::Scalar(constant)),
                None => self.value(&object.call_method0("item")?, name),
            };
        }
        if object.is_instance(known.dtype.bind(py))? {
            return Ok(match arrays::device_dtype(object)? {
                Some(dtype) => Arg::Dtype(dtype),
                None => opaque(&object.str()?.to_string_lossy(), "it is not a device type"),
            });
        }
        if object.cast_exact::<PyEllipsis>().is_ok() {
            return Ok(Arg::Ellipsis);
        }
        let class = object.get_type();
        if class.is_instance(known.enum_type.bind(py))? {
            let member: String = object.getattr("name")?.extract()?;
            return Ok(Arg::Member { class: Box::new(self.class(&class)?), name: member });
        }
        let module = module_of(class.as_any());
        let root = module.split('.').next().unwrap_or("");
        if matches!(root, "torch" | "jax" | "jaxlib") && self.arrays.is_some() {
            let taken = known.helpers.bind(py).getattr("as_numpy")?.call1((object, name))?;
            if !taken.is_none() {
                let (array, immutable, dtype): (Bound<'_, PyAny>, bool, Option<String>) = taken.extract()?;
                let dtype = dtype.and_then(|d| DType::from_name(&d));
                return self.array(&array, object, immutable, dtype, name);
            }
        }
        if module == "numpy" {
            // A ufunc: numpy.sqrt.
            if let Ok(text) = object.getattr("__name__").and_then(|n| n.extract::<String>()) {
                return Ok(Arg::Api(format!("numpy.{text}")));
            }
        }
        self.instance(object, &class, name)
    }

    fn items<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>, name: &str) -> PyResult<Vec<Arg>> {
        items.enumerate().map(|(i, item)| self.value(&item, &format!("{name}.{i}"))).collect()
    }

    fn array(
        &mut self,
        array: &Bound<'_, PyAny>,
        original: &Bound<'_, PyAny>,
        immutable: bool,
        dtype: Option<DType>,
        name: &str,
    ) -> PyResult<Arg> {
        let Some(arrays) = &mut self.arrays else {
            // Not an argument: a constant.
            if array.getattr("size")?.extract::<usize>()? > HostArray::MOST_ELEMENTS {
                return Ok(opaque("an array", "it is too large for a constant: make it an argument of the kernel"));
            }
            return Ok(match arrays::constant(array)? {
                Some(constant) => Arg::Array(constant),
                None => opaque("an array", "its element type has no meaning in a kernel"),
            });
        };
        let (taken, shape, dtype) = arrays::take(array, original, immutable, dtype, name)?;
        arrays.push((name.to_owned(), taken));
        Ok(Arg::Tensor { shape, dtype })
    }

    /// Marks a mutable value as visited; returns its reference if it was visited before.
    fn visit(&mut self, object: &Bound<'_, PyAny>) -> (Identity, Option<Arg>) {
        let address = object.as_ptr() as usize;
        let identity = Identity(address as u64);
        if let Some(index) = self.seen.iter().position(|a| *a == address) {
            return (identity, Some(Arg::Again(identity, index)));
        }
        self.table.keep(object);
        self.seen.push(address);
        (identity, None)
    }

    fn container(&mut self, object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Arg>> {
        let class = object.get_type();
        let inner =
            if object.cast::<PyList>().is_ok() || object.cast::<PyDict>().is_ok() || object.cast::<PySet>().is_ok() {
                let (identity, again) = self.visit(object);
                if again.is_some() {
                    return Ok(again);
                }
                let inner = if let Ok(list) = object.cast::<PyList>() {
                    Arg::List(self.items(list.iter(), name)?)
                } else if let Ok(dict) = object.cast::<PyDict>() {
                    let factory = match object.getattr("default_factory") {
                        Ok(factory) if !factory.is_none() => Some(Box::new(self.value(&factory, "default_factory")?)),
                        _ => None,
                    };
                    let mut entries = Vec::with_capacity(dict.len());
                    for (key, value) in dict.iter() {
                        let label = key.str()?.to_string_lossy().into_owned();
                        let key = self.value(&key, &label)?;
                        entries.push((key, self.value(&value, &format!("{name}.{label}"))?));
                    }
                    match factory {
                        Some(factory) => Arg::DefaultDict { factory, entries },
                        None => Arg::Dict(entries),
                    }
                } else {
                    Arg::Set(self.items(object.try_iter()?.flatten(), name)?)
                };
                Arg::Shared(identity, Box::new(inner))
            } else if let Ok(set) = object.cast::<PyFrozenSet>() {
                Arg::FrozenSet(self.items(set.iter(), name)?)
            } else if let Ok(slice) = object.cast::<PySlice>() {
                let mut part = |part: &str| self.value(&slice.getattr(part)?, part);
                Arg::Slice(Box::new([part("start")?, part("stop")?, part("step")?]))
            } else if let Ok(range) = object.cast::<PyRange>() {
                let part = |part: &str| range.getattr(part)?.extract::<i64>();
                Arg::Range([part("start")?, part("stop")?, part("step")?])
            } else if object.cast::<PyTuple>().is_ok() && !class.hasattr("_fields")? {
                Arg::Tuple(self.items(object.try_iter()?.flatten(), name)?)
            } else {
                return Ok(None);
            };
        Ok(Some(inner))
    }

    /// Functions, classes and modules.
    fn code(&mut self, object: &Bound<'_, PyAny>, known: &Known, name: &str) -> PyResult<Option<Arg>> {
        let py = object.py();
        if object.cast::<PyFunction>().is_ok() || object.is_instance(known.kernel.bind(py))? {
            if object.hasattr("registry")? && object.hasattr("dispatch")? {
                let reason = "functools.singledispatch dispatches on Python classes: call the intended function, or test isinstance";
                return Ok(Some(opaque(&object.getattr("__name__")?.str()?.to_string_lossy(), reason)));
            }
            return Ok(Some(match library_path(object) {
                Some(path) => Arg::Api(path),
                None => Arg::Object(self.table.id(object)),
            }));
        }
        if let Ok(module) = object.cast::<PyModule>() {
            let path: String = module.name()?.extract()?;
            return Ok(Some(if python_modules().contains(&&*path) {
                Arg::Api(path)
            } else {
                Arg::Object(self.table.id(object))
            }));
        }
        if let Ok(class) = object.cast::<PyType>() {
            return self.class(class).map(Some);
        }
        if object.is_instance(known.method.bind(py))? {
            let receiver = self.value(&object.getattr("__self__")?, name)?;
            let function = self.value(&object.getattr("__func__")?, name)?;
            return Ok(Some(Arg::Method { receiver: Box::new(receiver), function: Box::new(function) }));
        }
        if object.is_instance(known.partial.bind(py))? {
            let function = Box::new(self.value(&object.getattr("func")?, name)?);
            let positional = self.items(object.getattr("args")?.try_iter()?.flatten(), name)?;
            let mut keyword = Vec::new();
            for (key, value) in object.getattr("keywords")?.cast::<PyDict>()?.iter() {
                let key: String = key.extract()?;
                keyword.push((key.clone(), self.value(&value, &key)?));
            }
            return Ok(Some(Arg::Partial { function, positional, keyword }));
        }
        if object.is_instance(known.builtin.bind(py))? {
            return Ok(Some(match library_path(object) {
                Some(path) => Arg::Api(path),
                None => opaque(&object.repr()?.to_string_lossy(), "it is written in C"),
            }));
        }
        if object.is_instance(known.cached.bind(py))? {
            return Ok(Some(Arg::Object(self.table.id(object))));
        }
        Ok(None)
    }

    fn class(&mut self, class: &Bound<'_, PyType>) -> PyResult<Arg> {
        if let Some(path) = path_of(class.as_any()) {
            return Ok(Arg::Api(path));
        }
        let module = module_of(class.as_any());
        let name = class.name()?.to_string_lossy().into_owned();
        if module == "ml_dtypes"
            && let Some(dtype) = DType::from_name(&name)
        {
            return Ok(Arg::Dtype(dtype));
        }
        Ok(match library_path(class.as_any()) {
            Some(path) => Arg::Api(path),
            None => Arg::Object(self.table.id(class.as_any())),
        })
    }

    fn instance(&mut self, object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>, name: &str) -> PyResult<Arg> {
        let helpers = helpers(object.py())?.bind(object.py());
        let fields = helpers.getattr("instance_fields")?.call1((object,))?;
        let class_name = class.name()?.to_string_lossy().into_owned();
        if let Some(function) = path_of(class.as_any()) {
            // An object created by the API: recreated from its arguments.
            return Ok(match object.getattr("__nki_arguments__") {
                Ok(arguments) => {
                    let positional = self.items(arguments.call0()?.try_iter()?.flatten(), name)?;
                    Arg::Call { function, positional }
                }
                Err(_) => opaque(&format!("{class_name} object"), "it has a meaning only outside of kernels"),
            });
        }
        if module_of(class.as_any()).starts_with("nki_sim.")
            && let Ok(call) = object.getattr("__nki_call__")
        {
            // Created on the host, and recreated in the kernel.
            let (function, arguments): (Bound<'_, PyAny>, Bound<'_, PyAny>) = call.extract()?;
            return Ok(match path_of(&function).or_else(|| library_path(&function)) {
                Some(function) => {
                    let positional = self.items(arguments.try_iter()?.flatten(), name)?;
                    Arg::Call { function, positional }
                }
                None => opaque("an index tile", "it was made outside of the kernel by keywords: make it by position"),
            });
        }
        if fields.is_none() {
            return Ok(opaque(&format!("{class_name} object"), "its class is not written in Python"));
        }
        let (identity, again) = self.visit(object);
        if let Some(again) = again {
            return Ok(again);
        }
        let mut out = Vec::new();
        for (key, value) in fields.cast::<PyDict>()?.iter() {
            let key: String = key.extract()?;
            out.push((key.clone(), self.value(&value, &format!("{name}.{key}"))?));
        }
        let class = Box::new(self.class(class)?);
        Ok(Arg::Shared(identity, Box::new(Arg::Instance { class, fields: out })))
    }
}

/// A value that kernels do not support.
pub(crate) fn opaque(path: &str, reason: &str) -> Arg {
    Arg::Opaque { path: path.to_owned(), reason: Some(reason.to_owned()) }
}

fn module_of(object: &Bound<'_, PyAny>) -> String {
    object.getattr("__module__").and_then(|m| m.extract()).unwrap_or_default()
}

/// The dotted name of an object of Python's library that the evaluator provides: `math.sqrt`, `builtins.len`.
pub(crate) fn library_path(object: &Bound<'_, PyAny>) -> Option<String> {
    let module = module_of(object);
    // `_functools.reduce` is functools.reduce, `numpy._core.numeric.ones` is numpy.ones.
    let root = module.trim_start_matches('_');
    let root = if root.starts_with("numpy.") { "numpy" } else { root };
    if !python_modules().contains(&root) {
        return None;
    }
    let name: String = object.getattr("__name__").ok()?.extract().ok()?;
    Some(format!("{root}.{name}"))
}
