//! KLR's dialect: what its reader makes of the language where it does not follow Python.
//!
//! A program that imports `klr` is written for KLR's front end, and is read by its rules:
//!
//! - text in f-strings and `str()` has no blanks and no quotes inside of containers; objects show their fields, `A(x:1,y:2)`;
//! - a dict is true even if it is empty;
//! - `list.count()` without an argument is the length; `list.index` of what is not there is None; `list.remove` removes all
//!   equal items; `dict.pop` of a key that is not there gives None;
//! - `.ap()` is for tensors, not for views of them.
//!
//! Source: github.com/leanprover/KLR, `KLR/Trace/Types.lean`, `KLR/Trace/Python.lean` and its tests of the front end.

use std::rc::Rc;

use super::Interp;
use super::compare::MAX_DEPTH;
use super::error::EvalResult;
use super::native::CallArgs;
use super::value::*;

impl Interp<'_> {
    /// `str(value)` as KLR writes it; `None` for what it writes as Python does.
    pub(crate) fn klr_text(&mut self, value: &Value, depth: u32) -> EvalResult<Option<String>> {
        if depth > MAX_DEPTH {
            return Ok(Some("...".into()));
        }
        let item = |interp: &mut Self, value: &Value| match interp.klr_text(value, depth + 1)? {
            Some(text) => Ok(text),
            None => interp.str(value),
        };
        let list = |interp: &mut Self, items: &[Value]| -> EvalResult<String> {
            Ok(items.iter().map(|v| item(interp, v)).collect::<EvalResult<Vec<_>>>()?.join(","))
        };
        Ok(Some(match value {
            Value::List(items) => format!("[{}]", list(self, &items.items.borrow().clone())?),
            Value::Tuple(items) => format!("({})", list(self, items)?),
            Value::Dict(dict) => {
                let entries: Vec<(Value, Value)> =
                    dict.borrow().iter().map(|(_, k, v)| (k.clone(), v.clone())).collect();
                let mut parts = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    parts.push(format!("{}:{}", list(self, &[key])?, list(self, &[value])?));
                }
                format!("{{{}}}", parts.join(","))
            }
            Value::Instance(instance)
                if matches!(instance.class.kind.get(), ClassKind::Plain | ClassKind::NkiObject) =>
            {
                let fields: Vec<_> = instance.class.fields.borrow().iter().map(|f| f.name).collect();
                let mut parts = Vec::with_capacity(fields.len());
                for name in fields {
                    let own = instance.attrs.borrow().get(name).cloned();
                    let value = own.or_else(|| instance.class.lookup(name)).unwrap_or(Value::None);
                    parts.push(format!("{}:{}", self.name(name), list(self, &[value])?));
                }
                format!("{}({})", instance.class.name, parts.join(","))
            }
            _ => return Ok(None),
        }))
    }

    /// A method of a list that KLR has otherwise; `None` for the others.
    pub(crate) fn klr_list_method(&mut self, list: &Rc<List>, name: &str, args: &CallArgs) -> Option<Value> {
        let mut items = list.items.borrow_mut();
        match (name, args.positional.as_slice()) {
            ("count", []) => Some(Value::Int(items.len() as i64)),
            ("index", [wanted]) if !items.iter().any(|v| self.equals(v, wanted)) => Some(Value::None),
            ("remove", [wanted]) => {
                items.retain(|v| !self.equals(v, wanted));
                Some(Value::None)
            }
            _ => None,
        }
    }
}
