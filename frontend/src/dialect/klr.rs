//! KLR's dialect: its deviations from Python.
//!
//! A file that imports `klr` is written for KLR's front end, and follows its rules. The API is that of [`Beta2`]:
//!
//! - text in f-strings and `str()` has no blanks and no quotes inside of containers; objects show their fields, `A(x:1,y:2)`;
//! - a dict is true even if it is empty;
//! - `list.count()` without an argument is the length; `list.index` of a missing item is None; `list.remove` removes all
//!   equal items; `dict.pop` of a missing key returns None;
//! - `.ap()` is for tensors, not for views of them.
//!
//! Source: github.com/leanprover/KLR, `KLR/Trace/Types.lean`, `KLR/Trace/Python.lean` and its tests of the front end.

use nki_diag::Span;

use super::beta2::Beta2;
use super::common::handles::NkiObject;
use crate::build::tensor::Tensor;
use crate::eval::Interp;
use crate::eval::compare::MAX_DEPTH;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::language::Dialect;
use crate::eval::native::CallArgs;
use crate::eval::value::*;
use crate::eval::view::{Part, View};

/// The dialect of KLR's front end.
pub(super) struct Klr;

impl Dialect for Klr {
    fn name(&self) -> &'static str {
        "klr"
    }

    fn base(&self) -> &'static dyn Dialect {
        &Beta2
    }

    fn has_module(&self, path: &str) -> bool {
        path == "klr" || Beta2.has_module(path)
    }

    fn attribute(&self, interp: &mut Interp<'_>, module: &str, name: &str, span: Span) -> Option<Value> {
        match (module, name) {
            ("klr", "NKIObject") => Some(Value::object(NkiObject)),
            ("klr", _) => Some(interp.host(format!("klr.{name}"), span)),
            _ => Beta2.attribute(interp, module, name, span),
        }
    }

    fn truth(&self, interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<Option<bool>> {
        match value {
            Value::Dict(_) => Ok(Some(true)),
            other => Beta2.truth(interp, other, span),
        }
    }

    fn method(&self, interp: &mut Interp<'_>, base: &Value, name: &str, args: &CallArgs) -> EvalResult<Option<Value>> {
        match base {
            Value::List(list) => Ok(list_method(interp, list, name, args)),
            Value::Dict(dict) => match (name, args.positional.as_slice()) {
                ("pop", [key]) if args.keyword.is_empty() => {
                    let key = interp.hash_key(key, args.span)?;
                    Ok(dict.borrow().get(&key).is_none().then_some(Value::None))
                }
                // Lists, not views as in Python.
                ("keys" | "values" | "items", []) => {
                    let view = View { dict: dict.clone(), part: Part::of_method(name) };
                    Ok(Some(Value::list(view.items())))
                }
                _ => Ok(None),
            },
            other => match other.downcast::<Tensor>() {
                Some(t) if name == "ap" && !t.is_whole() => {
                    let message = format!("`ap` of a view of `{}`", t.storage.name);
                    Err(Raise::at("access-pattern", message, args.span, "here").help("call `ap` on the tensor itself"))
                }
                _ => Beta2.method(interp, base, name, args),
            },
        }
    }

    fn text(&self, interp: &mut Interp<'_>, value: &Value) -> EvalResult<Option<String>> {
        text(interp, value, 0)
    }
}

/// `str(value)` in KLR; `None` if it is the same as in Python.
fn text(interp: &mut Interp<'_>, value: &Value, depth: u32) -> EvalResult<Option<String>> {
    if depth > MAX_DEPTH {
        return Ok(Some("...".into()));
    }
    let item = |interp: &mut Interp<'_>, value: &Value| match text(interp, value, depth + 1)? {
        Some(text) => Ok(text),
        None => interp.str(value),
    };
    let list = |interp: &mut Interp<'_>, items: &[Value]| -> EvalResult<String> {
        Ok(items.iter().map(|v| item(interp, v)).collect::<EvalResult<Vec<_>>>()?.join(","))
    };
    Ok(Some(match value {
        Value::List(items) => format!("[{}]", list(interp, &items.items.borrow().clone())?),
        Value::Tuple(items) => format!("({})", list(interp, items)?),
        Value::Dict(dict) => {
            let entries: Vec<(Value, Value)> = dict.borrow().iter().map(|(_, k, v)| (k.clone(), v.clone())).collect();
            let mut parts = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                parts.push(format!("{}:{}", list(interp, &[key])?, list(interp, &[value])?));
            }
            format!("{{{}}}", parts.join(","))
        }
        Value::Instance(instance) if matches!(instance.class.kind.get(), ClassKind::Plain | ClassKind::Record) => {
            let fields: Vec<_> = instance.class.fields.borrow().iter().map(|f| f.name).collect();
            let mut parts = Vec::with_capacity(fields.len());
            for name in fields {
                let own = instance.attrs.borrow().get(name).cloned();
                let value = own.or_else(|| instance.class.lookup(name)).unwrap_or(Value::None);
                parts.push(format!("{}:{}", interp.name(name), list(interp, &[value])?));
            }
            format!("{}({})", instance.class.name, parts.join(","))
        }
        _ => return Ok(None),
    }))
}

/// A method of a list that differs in KLR; `None` for the others.
fn list_method(interp: &Interp<'_>, list: &List, name: &str, args: &CallArgs) -> Option<Value> {
    let mut items = list.items.borrow_mut();
    match (name, args.positional.as_slice()) {
        ("count", []) => Some(Value::Int(items.len() as i64)),
        ("index", [wanted]) if !items.iter().any(|v| interp.equals(v, wanted)) => Some(Value::None),
        ("remove", [wanted]) => {
            items.retain(|v| !interp.equals(v, wanted));
            Some(Value::None)
        }
        _ => None,
    }
}
