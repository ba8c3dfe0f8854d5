//! The Python process as the frontend's live host.
//!
//! All reads are recorded ([`Read`]): a compiled program stays valid as long as repeating the reads gives the same results.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use nki_frontend::{
    Arg, Host, HostArray, HostAttribute, HostClass, HostClassKind, HostDataclass, HostDefault, HostEnum, HostField,
    HostFunction, HostMixin, HostObject,
};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};
use rustc_hash::FxHashMap;

use crate::arrays::constant;
use crate::convert::{Conversion, helpers, opaque};

/// Objects by number, and numbers by address.
type Objects = (Vec<Py<PyAny>>, FxHashMap<usize, u64>);

/// Objects that the frontend knows by number. They are kept alive, so that their addresses are not reused.
#[derive(Debug, Default)]
pub(crate) struct Table {
    objects: Mutex<Objects>,
    kept: Mutex<FxHashMap<usize, Py<PyAny>>>,
    /// Whether the table is closed: new objects get no number, because the program was compiled with others.
    complete: AtomicBool,
}

/// The number of all objects added after the table was closed.
const UNKNOWN: u64 = u64::MAX;

fn locked<T, R>(mutex: &Mutex<T>, work: impl FnOnce(&mut T) -> R) -> R {
    // No code under this lock panics halfway: a poisoned lock holds valid data.
    work(&mut mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

impl Table {
    /// Visits the objects, for Python's garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(objects) = self.objects.try_lock() {
            objects.0.iter().try_for_each(|object| visit.call(object))?;
        }
        match self.kept.try_lock() {
            Ok(kept) => kept.values().try_for_each(|object| visit.call(object)),
            Err(_) => Ok(()),
        }
    }

    /// The number of an object.
    pub(crate) fn id(&self, object: &Bound<'_, PyAny>) -> u64 {
        let (address, object) = (object.as_ptr() as usize, object.clone().unbind());
        let complete = self.complete.load(Ordering::Relaxed);
        locked(&self.objects, |(objects, index)| {
            if complete {
                return index.get(&address).copied().unwrap_or(UNKNOWN);
            }
            *index.entry(address).or_insert_with(|| {
                objects.push(object);
                (objects.len() - 1) as u64
            })
        })
    }

    /// Closes the table for new objects.
    pub(crate) fn finish(&self) {
        self.complete.store(true, Ordering::Relaxed);
        self.release();
    }

    /// Keeps a value alive.
    pub(crate) fn keep(&self, object: &Bound<'_, PyAny>) {
        let object = object.clone().unbind();
        locked(&self.kept, |kept| {
            kept.entry(object.as_ptr() as usize).or_insert(object);
        });
    }

    /// Releases the values of a completed call.
    pub(crate) fn release(&self) {
        let kept = locked(&self.kept, std::mem::take);
        drop(kept);
    }

    fn object<'py>(&self, py: Python<'py>, id: u64) -> Option<Bound<'py, PyAny>> {
        locked(&self.objects, |(objects, _)| objects.get(id as usize).map(|o| o.clone_ref(py)))
            .map(|o| o.into_bound(py))
    }
}

/// A read during compilation, with its result.
#[derive(Debug, PartialEq)]
pub(crate) enum Read {
    Global(u64, String, Option<Arg>),
    Object(u64, HostObject),
    Import(u64, String, Option<Arg>),
    File(String, Result<HostArray, String>),
}

impl Read {
    /// Whether repeating the read gives the same result.
    pub(crate) fn still_holds(&self, py: Python<'_>, table: &Table) -> bool {
        match self {
            Read::Global(scope, name, arg) => same(global(py, table, *scope, name).as_ref(), arg.as_ref()),
            Read::Object(id, object) => describe(py, table, *id) == *object,
            Read::File(file, array) => array_of_file(py, file) == *array,
            Read::Import(scope, path, arg) => same(import(py, table, *scope, path).as_ref(), arg.as_ref()),
        }
    }
}

/// Equality that distinguishes `0.0` from `-0.0`.
pub(crate) fn same(a: Option<&Arg>, b: Option<&Arg>) -> bool {
    match (a, b) {
        (Some(Arg::Float(a)), Some(Arg::Float(b))) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// The host of one compilation.
#[derive(Debug, Default)]
pub(crate) struct Live {
    pub(crate) table: Table,
    pub(crate) reads: Mutex<Vec<Read>>,
}

impl Live {
    fn note(&self, read: Read) {
        locked(&self.reads, |reads| reads.push(read));
    }
}

impl Host for Live {
    fn global(&self, scope: u64, name: &str) -> Option<Arg> {
        let found = Python::attach(|py| global(py, &self.table, scope, name));
        self.note(Read::Global(scope, name.to_owned(), found.clone()));
        found
    }

    fn describe(&self, object: u64) -> HostObject {
        let found = Python::attach(|py| describe(py, &self.table, object));
        self.note(Read::Object(object, found.clone()));
        found
    }

    fn source(&self, file: &str) -> Option<String> {
        Python::attach(|py| {
            helpers(py).ok()?.bind(py).getattr("source_text").ok()?.call1((file,)).ok()?.extract().ok()?
        })
    }

    fn array(&self, file: &str) -> Result<HostArray, String> {
        let found = Python::attach(|py| array_of_file(py, file));
        self.note(Read::File(file.to_owned(), found.clone()));
        found
    }

    fn import(&self, scope: u64, path: &str) -> Option<Arg> {
        let found = Python::attach(|py| import(py, &self.table, scope, path));
        self.note(Read::Import(scope, path.to_owned(), found.clone()));
        found
    }

    fn modules(&self, scope: u64) -> Vec<String> {
        Python::attach(|py| modules(py, &self.table, scope)).unwrap_or_default()
    }
}

/// The names of the modules to which the global names of a scope belong.
fn modules(py: Python<'_>, table: &Table, scope: u64) -> Option<Vec<String>> {
    let scope = table.object(py, scope)?;
    let names = match scope.cast::<PyDict>() {
        Ok(dict) => dict.clone().into_any(),
        Err(_) => scope.getattr("__dict__").ok()?,
    };
    py.import("nki_sim._trace").ok()?.call_method1("modules_of", (names,)).ok()?.extract().ok()
}

fn global(py: Python<'_>, table: &Table, scope: u64, name: &str) -> Option<Arg> {
    let scope = table.object(py, scope)?;
    let found = match scope.cast::<PyDict>() {
        Ok(dict) => match dict.get_item(name).ok()? {
            Some(value) => value,
            None => match dict.get_item("__getattr__").ok()? {
                // A module may create its names on first use.
                Some(getattr) if !name.starts_with("__") => match getattr.call1((name,)) {
                    Ok(value) => value,
                    Err(_) => builtin(py, name)?,
                },
                _ => builtin(py, name)?,
            },
        },
        Err(_) => scope.getattr(name).ok()?,
    };
    Some(convert(table, &found, name))
}

fn array_of_file(py: Python<'_>, file: &str) -> Result<HostArray, String> {
    let load = || -> PyResult<HostArray> {
        let array = PyModule::import(py, "numpy")?.getattr("load")?.call1((file,))?;
        constant(&array)?.ok_or_else(|| {
            let dtype = array.getattr("dtype").map(|d| d.to_string()).unwrap_or_default();
            PyValueError::new_err(format!("its dtype {dtype} has no meaning in a kernel"))
        })
    };
    load().map_err(|e| format!("cannot read `{file}`: {}", e.value(py)))
}

fn builtin<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
    PyModule::import(py, "builtins").ok()?.getattr(name).ok()
}

fn import(py: Python<'_>, table: &Table, scope: u64, path: &str) -> Option<Arg> {
    let scope = table.object(py, scope)?;
    let module = helpers(py).ok()?.bind(py).getattr("import_module").ok()?.call1((scope, path)).ok()?;
    Some(convert(table, &module, path))
}

fn convert(table: &Table, value: &Bound<'_, PyAny>, name: &str) -> Arg {
    Conversion::new(table).value(value, name).unwrap_or_else(|e| opaque(name, &e.to_string()))
}

/// The description of an object by the Python helpers.
fn describe(py: Python<'_>, table: &Table, id: u64) -> HostObject {
    let Some(object) = table.object(py, id) else {
        return HostObject::Opaque { path: "an object".into(), reason: None };
    };
    described(py, table, &object).unwrap_or_else(|e| HostObject::Opaque {
        path: object.str().map_or_else(|_| "an object".into(), |s| s.to_string_lossy().into_owned()),
        reason: Some(e.to_string()),
    })
}

type Named<'py> = Vec<(String, Bound<'py, PyAny>)>;

fn described(py: Python<'_>, table: &Table, object: &Bound<'_, PyAny>) -> PyResult<HostObject> {
    let about = helpers(py)?.bind(py).getattr("describe")?.call1((object,))?;
    let about = about.cast::<PyDict>()?;
    let get = |key: &str| -> PyResult<Bound<'_, PyAny>> {
        about.get_item(key)?.ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(key.to_owned()))
    };
    let kind: String = get("kind")?.extract()?;
    let text = |key: &str| -> PyResult<String> { get(key)?.extract() };
    Ok(match &*kind {
        "function" => HostObject::Function(HostFunction {
            name: text("name")?,
            file: text("file")?,
            line: get("line")?.extract()?,
            params: get("params")?.extract()?,
            body: get("body")?.extract()?,
            scope: table.id(&get("globals")?),
            defaults: named(table, get("defaults")?.extract()?),
            closure: get("closure")?
                .extract::<Vec<(String, bool, Bound<'_, PyAny>)>>()?
                .into_iter()
                .map(|(name, bound, value)| {
                    let arg = bound.then(|| convert(table, &value, &name));
                    (name, arg)
                })
                .collect(),
            has_grid: get("has_grid")?.extract()?,
            kernel: match get("config")? {
                none if none.is_none() => None,
                given => {
                    let [compile, specialization]: [Bound<'_, PyAny>; 2] = given.extract()?;
                    let one = |value, name: &str| convert(table, value, name);
                    Some(Box::new([one(&compile, "compile_config"), one(&specialization, "specialization_config")]))
                }
            },
        }),
        "module" => HostObject::Module { name: text("name")?, file: text("file")?, scope: table.id(&get("globals")?) },
        "class" => HostObject::Class(class(table, &get, &text)?),
        "cached" => HostObject::Cached {
            function: convert(table, &get("function")?, "function"),
            limit: get("limit")?.extract()?,
            typed: get("typed")?.extract()?,
        },
        _ => HostObject::Opaque { path: text("path")?, reason: get("reason")?.extract()? },
    })
}

fn named(table: &Table, items: Named<'_>) -> Vec<(String, Arg)> {
    items
        .into_iter()
        .map(|(name, value)| {
            let arg = convert(table, &value, &name);
            (name, arg)
        })
        .collect()
}

fn class<'py>(
    table: &Table,
    get: &dyn Fn(&str) -> PyResult<Bound<'py, PyAny>>,
    text: &dyn Fn(&str) -> PyResult<String>,
) -> PyResult<HostClass> {
    let kind = match &*text("class_kind")? {
        "nki" => HostClassKind::Record,
        "dataclass" => {
            let [init, repr, eq, order, unsafe_hash, frozen] = get("dataclass")?.extract()?;
            HostClassKind::Dataclass(HostDataclass { init, repr, eq, order, unsafe_hash, frozen })
        }
        "enum" => {
            let (mixin, flag, shows_value): (Option<String>, _, _) = get("enum")?.extract()?;
            let mixin = match mixin.as_deref() {
                Some("int") => Some(HostMixin::Int),
                Some("str") => Some(HostMixin::Str),
                Some("float") => Some(HostMixin::Float),
                _ => None,
            };
            HostClassKind::Enum(HostEnum { mixin, flag, shows_value })
        }
        "named_tuple" => HostClassKind::NamedTuple,
        "exception" => HostClassKind::Exception,
        _ => HostClassKind::Plain,
    };
    let bases: Vec<Bound<'py, PyAny>> = get("bases")?.extract()?;
    let mut attributes = Vec::new();
    for (name, how, first, second) in
        get("attributes")?.extract::<Vec<(String, String, Bound<'py, PyAny>, Bound<'py, PyAny>)>>()?
    {
        let arg = convert(table, &first, &name);
        let attribute = match &*how {
            "static" => HostAttribute::Static(arg),
            "class" => HostAttribute::Class(arg),
            "property" => {
                let [set, delete]: [Option<Bound<'py, PyAny>>; 2] = second.extract()?;
                let [set, delete] = [set, delete].map(|f| f.map(|f| convert(table, &f, &name)));
                HostAttribute::Property { get: arg, set, delete }
            }
            "cached" => HostAttribute::CachedProperty(arg),
            _ => HostAttribute::Plain(arg),
        };
        attributes.push((name, attribute));
    }
    let mut fields = Vec::new();
    for (name, how, value, told) in get("fields")?.extract::<Vec<(String, String, Bound<'py, PyAny>, [bool; 5])>>()? {
        let [init, kw_only, compare, repr, init_only] = told;
        let default = match &*how {
            "value" => HostDefault::Value(convert(table, &value, &name)),
            "factory" => HostDefault::Factory(convert(table, &value, &name)),
            _ => HostDefault::Required,
        };
        fields.push(HostField { name, default, init, kw_only, compare, repr, init_only });
    }
    let mut members = Vec::new();
    for (name, canonical, value) in get("members")?.extract::<Vec<(String, String, Bound<'py, PyAny>)>>()? {
        let value = convert(table, &value, &name);
        members.push((name, canonical, value));
    }
    Ok(HostClass {
        record: get("nki_object")?.extract()?,
        name: text("name")?,
        kind,
        bases: bases.iter().map(|b| convert(table, b, "base")).collect(),
        attributes,
        fields,
        total_ordering: get("total_ordering")?.extract()?,
        members,
    })
}
