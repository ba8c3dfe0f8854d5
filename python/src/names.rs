//! Exposes the names of the API to Python, and registers the Python objects that represent them.

use std::sync::RwLock;

use nki_frontend::ApiKind;
use nki_frontend::reference::{self, Entry, Parameter};
use nki_isa::Arg;
use nki_isa::inst::REGISTRY;
use nki_isa::names::Named;
use nki_isa::schema::{Kind, Role};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rustc_hash::FxHashMap;

/// Python objects that represent API names, by address. They are never freed: the Python package keeps them alive.
static OBJECTS: RwLock<Option<Objects>> = RwLock::new(None);

type Objects = FxHashMap<usize, (Py<PyAny>, String)>;

/// Registers an object as the representation of a dotted name.
#[pyfunction]
pub(crate) fn register(object: Py<PyAny>, path: String) {
    if let Ok(mut objects) = OBJECTS.write() {
        objects.get_or_insert_default().insert(object.as_ptr() as usize, (object, path));
    }
}

/// The dotted name that an object represents.
pub(crate) fn path_of(object: &Bound<'_, PyAny>) -> Option<String> {
    let objects = OBJECTS.read().ok()?;
    objects.as_ref()?.get(&(object.as_ptr() as usize)).map(|(_, path)| path.clone())
}

/// All names as tuples: module, name, kind, details.
#[pyfunction]
pub(crate) fn api_names(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let out = PyList::empty(py);
    for (module, name, kind) in nki_frontend::api_names() {
        let (kind, details) = match kind {
            ApiKind::Function => ("function", py.None()),
            ApiKind::Operator => ("operator", py.None()),
            ApiKind::Class => ("class", py.None()),
            ApiKind::Dtype(dtype) => ("dtype", (dtype.name(), dtype.size()).into_pyobject(py)?.into_any().unbind()),
            ApiKind::Enum(members) => ("enum", members.into_pyobject(py)?.unbind()),
            ApiKind::Member(class, member) => ("member", (class, member).into_pyobject(py)?.into_any().unbind()),
            ApiKind::Lowest(lowest) => ("lowest", lowest.into_pyobject(py)?.into_any().unbind()),
            ApiKind::TileSize(names) => ("tile_size", names.into_pyobject(py)?.unbind()),
        };
        out.append((module, name, kind, details))?;
    }
    Ok(out)
}

/// A member of the API: name, parameters (name, type, default; None for an attribute), result, documentation.
type Member = (&'static str, Option<Vec<Parameter<'static>>>, &'static str, String);

fn member(entry: &Entry) -> Member {
    (entry.name, entry.each_parameter(), entry.result, entry.doc.to_string())
}

/// The functions of a module that are not instructions.
#[pyfunction]
pub(crate) fn api_functions(module: &str) -> Vec<Member> {
    reference::functions(module).iter().map(member).collect()
}

/// The classes of the API: module, name, base class or the empty string, documentation, members.
#[pyfunction]
pub(crate) fn api_classes() -> Vec<(&'static str, &'static str, &'static str, &'static str, Vec<Member>)> {
    let members = |class: &reference::Class| class.members.iter().map(member).collect();
    reference::CLASSES.iter().map(|c| (c.module, c.name, c.base, c.doc, members(c))).collect()
}

/// The schemas of `nki.isa` as dicts: name, doc, engines, operands (name, kind, role, doc, required, default, members, spaces).
#[pyfunction]
pub(crate) fn instructions(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let out = PyList::empty(py);
    for entry in REGISTRY {
        let schema = &entry.schema;
        let one = PyDict::new(py);
        one.set_item("name", schema.name)?;
        one.set_item("doc", schema.doc)?;
        one.set_item("engines", schema.engines.iter().map(|e| e.on.name()).collect::<Vec<_>>())?;
        let operands = PyList::empty(py);
        for operand in schema.operands {
            let o = PyDict::new(py);
            o.set_item("name", operand.name)?;
            o.set_item("kind", kind_text(operand.kind))?;
            o.set_item("writes", matches!(operand.role, Role::Out | Role::InOut))?;
            o.set_item("doc", operand.doc)?;
            o.set_item("default", operand.default.map(|d| default_text(&d())))?;
            o.set_item("members", operand.members.to_vec())?;
            o.set_item("spaces", operand.spaces.iter().map(|s| s.name()).collect::<Vec<_>>())?;
            operands.append(o)?;
        }
        one.set_item("operands", operands)?;
        out.append(one)?;
    }
    Ok(out)
}

fn kind_text(kind: Kind) -> String {
    match kind {
        Kind::View => "tensor".into(),
        Kind::Scalar => "number | tensor | register".into(),
        Kind::Number => "number".into(),
        Kind::Int => "int".into(),
        Kind::Bool => "bool".into(),
        Kind::Name(what) => what.into(),
        Kind::Register => "register".into(),
        Kind::RegisterOrInt => "register | int".into(),
        Kind::Ints => "ints".into(),
        Kind::Pattern => "pattern".into(),
        Kind::Views => "tensors".into(),
        Kind::Numbers => "numbers".into(),
        Kind::Text => "str".into(),
        Kind::Optional(inner) => format!("{} | None", kind_text(*inner)),
        #[allow(unreachable_patterns)]
        _ => "object".into(),
    }
}

/// A default in Python syntax; enum members as their names.
fn default_text(arg: &Arg) -> String {
    match arg {
        Arg::None => "None".into(),
        Arg::Bool(true) => "True".into(),
        Arg::Bool(false) => "False".into(),
        Arg::Int(i) => i.to_string(),
        Arg::Float(x) => format!("{x:?}"),
        Arg::Name(name) => format!("'{name}'"),
        Arg::Text(text) => format!("'{text}'"),
        Arg::List(items) => format!("[{}]", items.iter().map(default_text).collect::<Vec<_>>().join(", ")),
        _ => "...".into(),
    }
}
