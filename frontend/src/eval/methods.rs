//! Methods of strings, lists, dicts, sets, tuples and numbers.

use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::language::Construct;
use super::native::CallArgs;
use super::value::*;
use super::view::{Part, View};
use crate::syntax::*;

const LIST: &[&str] =
    &["append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"];
const DICT: &[&str] = &["clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"];
const SET: &[&str] = &[
    "add",
    "clear",
    "copy",
    "difference",
    "difference_update",
    "discard",
    "intersection",
    "intersection_update",
    "isdisjoint",
    "issubset",
    "issuperset",
    "pop",
    "remove",
    "symmetric_difference",
    "symmetric_difference_update",
    "union",
    "update",
];
/// The methods of a frozenset.
const FROZEN_SET: &[&str] =
    &["copy", "difference", "intersection", "isdisjoint", "issubset", "issuperset", "symmetric_difference", "union"];
const TUPLE: &[&str] = &["count", "index"];
const STR: &[&str] = &[
    "capitalize",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];
const INT: &[&str] = &["bit_length", "bit_count", "item", "as_integer_ratio", "is_integer", "conjugate"];
const FLOAT: &[&str] = &["is_integer", "item"];
const SLICE: &[&str] = &["indices"];

fn table(value: &Value) -> &'static [&'static str] {
    match value {
        Value::List(_) => LIST,
        Value::Dict(_) => DICT,
        Value::Set(set) if set.borrow().is_frozen => FROZEN_SET,
        Value::Set(_) => SET,
        Value::Tuple(_) => TUPLE,
        Value::Range(_) => TUPLE,
        Value::Str(_) => STR,
        Value::Int(_) | Value::Bool(_) => INT,
        Value::Float(_) => FLOAT,
        Value::Slice(_) => SLICE,
        _ => &[],
    }
}

/// Whether a built-in value has this method.
pub(crate) fn exists(value: &Value, name: &str) -> bool {
    table(value).contains(&name) || name == "__getitem__" && is_indexed(value)
}

fn is_indexed(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Dict(_) | Value::Tuple(_) | Value::Range(_) | Value::Str(_))
}

/// Whether values of a type have this method.
pub(crate) fn exists_for(kind: BuiltinType, name: &str) -> bool {
    let table = match kind {
        BuiltinType::List => LIST,
        BuiltinType::Dict => DICT,
        BuiltinType::Set => SET,
        BuiltinType::FrozenSet => FROZEN_SET,
        BuiltinType::Tuple => TUPLE,
        BuiltinType::Str => STR,
        BuiltinType::Int => INT,
        BuiltinType::Float => FLOAT,
        _ => &[],
    };
    table.contains(&name)
}

impl Interp<'_> {
    /// `base.name(...)` of a built-in value.
    pub(crate) fn call_builtin_method(&mut self, base: &Value, name: Symbol, args: CallArgs) -> EvalResult<Value> {
        let text = self.name(name);
        if !exists(base, &text) {
            let kind = base.a_type();
            let raise = Raise::at("no-attribute", format!("{kind} has no method `{text}`"), args.span, kind);
            return Err(match super::expr::nearest(&text, table(base).iter().copied()) {
                Some(near) => raise.help(format!("did you mean `{near}`?")),
                None => raise,
            });
        }
        self.check_strictly(Construct::Method(base, &text, args.span));
        if let Value::List(_) | Value::Dict(_) = base
            && let Some(result) = self.dialect.method(self, base, &text, &args)?
        {
            return Ok(result);
        }
        if &*text == "__getitem__" && is_indexed(base) {
            let span = args.span;
            let [index] = args.bind(self, "__getitem__", ["key"], 1)?;
            return self.get_item(base, &index.unwrap_or(Value::None), span);
        }
        match base {
            Value::List(list) => self.list_method(list, &text, args),
            Value::Dict(dict) if matches!(&*text, "setdefault" | "pop" | "clear" | "popitem" | "update") => {
                self.change_dict(dict, |interp| interp.dict_method(base, dict, &text, args))
            }
            Value::Dict(dict) => self.dict_method(base, dict, &text, args),
            Value::Set(set) => self.set_method(set, &text, args),
            Value::Str(string) => self.str_method(string, &text, args),
            Value::Int(_) | Value::Bool(_) | Value::Float(_) => self.number_method(base, &text, args),
            Value::Slice(slice) => self.slice_method(slice, args),
            other => {
                let items = self.iterate(other, args.span)?;
                self.sequence_method(&items, &text, args)
            }
        }
    }

    fn number_method(&mut self, base: &Value, name: &str, args: CallArgs) -> EvalResult<Value> {
        args.positional_only(self, name, 0, 0)?;
        let int = base.as_int().unwrap_or(0);
        Ok(match name {
            "bit_length" => Value::Int(i64::from(64 - int.unsigned_abs().leading_zeros())),
            "bit_count" => Value::Int(i64::from(int.unsigned_abs().count_ones())),
            "is_integer" => Value::Bool(base.as_float().is_some_and(|x| x.is_finite() && x.fract() == 0.0)),
            "as_integer_ratio" => Value::tuple(vec![Value::Int(int), Value::Int(1)]),
            _ => base.clone(),
        })
    }

    /// `slice.indices(length)`
    fn slice_method(&mut self, slice: &Slice, args: CallArgs) -> EvalResult<Value> {
        args.positional_only(self, "indices", 1, 1)?;
        let length = self.as_index(&args.positional[0]).and_then(|length| usize::try_from(length).ok());
        let Some(length) = length else {
            let message =
                format!("indices() needs a length that is not negative, got {}", self.repr(&args.positional[0])?);
            return Err(Raise::at("value-error", message, args.span, "in this call"));
        };
        let (start, stop, step) = self.slice_bounds(slice, length, args.span)?;
        Ok(Value::tuple(vec![Value::Int(start), Value::Int(stop), Value::Int(step)]))
    }

    fn sequence_method(&mut self, items: &[Value], name: &str, args: CallArgs) -> EvalResult<Value> {
        args.positional_only(self, name, 1, if name == "index" { 3 } else { 1 })?;
        let wanted = &args.positional[0];
        self.count_steps(items.len() as u64 / 16);
        if name == "count" {
            let mut n = 0;
            for item in items {
                n += i64::from(self.equal(item, wanted, args.span)?);
            }
            return Ok(Value::Int(n));
        }
        let from = args.positional.get(1).and_then(Value::as_int).unwrap_or(0);
        let from = usize::try_from(if from < 0 { from + items.len() as i64 } else { from }).unwrap_or(0);
        let to = args.positional.get(2).and_then(Value::as_int).unwrap_or(i64::MAX);
        let to = usize::try_from(if to < 0 { to + items.len() as i64 } else { to }).unwrap_or(0);
        for (index, item) in items.iter().enumerate().take(to).skip(from) {
            if self.equal(item, wanted, args.span)? {
                return Ok(Value::Int(index as i64));
            }
        }
        let text = self.repr(wanted)?;
        Err(Raise::at("value-error", format!("{text} is not in the sequence"), args.span, "searched here"))
    }

    fn list_method(&mut self, list: &Rc<List>, name: &str, mut args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        match name {
            "append" => {
                args.positional_only(self, name, 1, 1)?;
                list.items.borrow_mut().extend(args.positional.pop());
            }
            "extend" => {
                args.positional_only(self, name, 1, 1)?;
                let more = self.iterate(&args.positional[0], span)?;
                self.charge_items(list.items.borrow().len() + more.len(), span)?;
                list.items.borrow_mut().extend(more);
            }
            "insert" => {
                args.positional_only(self, name, 2, 2)?;
                let Some(at) = self.as_index(&args.positional[0]) else {
                    return Err(Raise::at("type-error", "insert() needs an int position", span, "in this call"));
                };
                let mut items = list.items.borrow_mut();
                let len = items.len() as i64;
                let at = if at < 0 { at.saturating_add(len).max(0) } else { at.min(len) };
                items.insert(at as usize, args.positional.remove(1));
            }
            "pop" => {
                args.positional_only(self, name, 0, 1)?;
                let len = list.items.borrow().len();
                if len == 0 {
                    return Err(Raise::at("index-out-of-range", "pop() from an empty list", span, "the list is empty"));
                }
                let at = match args.positional.first() {
                    Some(index) => self.index(index, len, "list", span)?,
                    None => len - 1,
                };
                return Ok(list.items.borrow_mut().remove(at));
            }
            "remove" => {
                let items = list.items.borrow().clone();
                let at = self.sequence_method(&items, "index", args)?;
                list.items.borrow_mut().remove(at.as_int().unwrap_or(0) as usize);
            }
            "clear" => list.items.borrow_mut().clear(),
            "reverse" => list.items.borrow_mut().reverse(),
            "copy" => {
                self.charge_items(list.items.borrow().len(), span)?;
                return Ok(Value::list(list.items.borrow().clone()));
            }
            "sort" => {
                let items = list.items.borrow().clone();
                let sorted = self.sorted("sort", items, args)?;
                *list.items.borrow_mut() = sorted;
            }
            _ => {
                let items = list.items.borrow().clone();
                return self.sequence_method(&items, name, args);
            }
        }
        Ok(Value::None)
    }

    /// Sorts the items, with `key=` and `reverse=`.
    pub(crate) fn sorted(&mut self, function: &str, items: Vec<Value>, mut args: CallArgs) -> EvalResult<Vec<Value>> {
        let span = args.span;
        let key = args.take_keyword(sym::key).filter(|k| !k.is_none());
        let reverse = match args.take_keyword(sym::reverse) {
            Some(value) => self.truth(&value, span)?,
            None => false,
        };
        args.positional_only(self, function, 0, 0)?;
        self.charge_items(items.len().saturating_mul(4), span)?;
        let mut keyed = Vec::with_capacity(items.len());
        for item in items {
            let key = match &key {
                Some(key) => self.call(key, CallArgs::of([item.clone()], span))?,
                None => item.clone(),
            };
            keyed.push((key, item));
        }
        merge_sort(&mut keyed, |a, b| if reverse { self.less(&a.0, &b.0, span) } else { self.less(&b.0, &a.0, span) })?;
        Ok(keyed.into_iter().map(|(_, item)| item).collect())
    }

    /// `left < right`, using the `__lt__` of classes.
    fn less(&mut self, left: &Value, right: &Value, span: Span) -> EvalResult<bool> {
        let smaller = self.compare(CmpOp::Lt, left, right, span)?;
        self.truth(&smaller, span)
    }

    fn dict_method(
        &mut self,
        base: &Value,
        dict: &Rc<std::cell::RefCell<Dict>>,
        name: &str,
        mut args: CallArgs,
    ) -> EvalResult<Value> {
        let span = args.span;
        if name == "copy" {
            self.charge_items(dict.borrow().len().saturating_mul(4), span)?;
        }
        match name {
            "get" | "setdefault" | "pop" => {
                let default = args.take_keyword(sym::default);
                args.positional_only(self, name, 1, 2)?;
                let key_value = args.positional[0].clone();
                let default = args.positional.get(1).cloned().or(default);
                let key = match name {
                    "setdefault" => self.new_key(&key_value, span)?,
                    _ => self.key(&key_value, span)?,
                };
                let found =
                    if name == "pop" { dict.borrow_mut().remove(&key) } else { dict.borrow().get(&key).cloned() };
                match (found, default) {
                    (Some(value), _) => Ok(value),
                    (None, None) if name == "pop" => Err(self.missing_key(&key_value, Some(base), span)),
                    (None, default) => {
                        let value = default.unwrap_or(Value::None);
                        if name == "setdefault" {
                            dict.borrow_mut().set(key, key_value, value.clone());
                        }
                        Ok(value)
                    }
                }
            }
            "keys" | "values" | "items" => {
                args.positional_only(self, name, 0, 0)?;
                Ok(Value::object(View { dict: dict.clone(), part: Part::of_method(name) }))
            }
            "clear" => {
                dict.borrow_mut().clear();
                Ok(Value::None)
            }
            "copy" => Ok(Value::dict(dict.borrow().clone())),
            "popitem" => match dict.borrow_mut().pop_last() {
                Some((key, value)) => Ok(Value::tuple(vec![key, value])),
                None => Err(Raise::at("missing-key", "popitem() of an empty dict", span, "the dict is empty")),
            },
            _ => {
                let other = self.make_dict(args)?;
                self.charge_items(other.len().saturating_mul(4), span)?;
                for (key, original, value) in other.iter() {
                    dict.borrow_mut().set(key.clone(), original.clone(), value.clone());
                }
                Ok(Value::None)
            }
        }
    }

    /// `dict(...)`
    pub(crate) fn make_dict(&mut self, args: CallArgs) -> EvalResult<Dict> {
        let span = args.span;
        let mut dict = Dict::default();
        let from = args.positional.first().cloned().map(|from| self.as_dict(from, span)).transpose()?;
        match &from {
            None => {}
            Some(Value::Dict(other)) => {
                self.charge_items(other.borrow().len().saturating_mul(4), span)?;
                for (key, original, value) in other.borrow().iter() {
                    dict.set(key.clone(), original.clone(), value.clone());
                }
            }
            Some(other) => {
                for pair in self.iterate(other, span)? {
                    let pair = self.iterate(&pair, span)?;
                    let [key, value] = &pair[..] else {
                        return Err(Raise::at(
                            "value-error",
                            "dict() needs pairs of key and value",
                            span,
                            "in this call",
                        ));
                    };
                    dict.set(self.new_key(key, span)?, key.clone(), value.clone());
                }
            }
        }
        for (name, value) in args.keyword {
            dict.set_str(self.names.name(name), value);
        }
        Ok(dict)
    }
}

/// A stable sort that tolerates inconsistent comparisons, on which the standard sort may panic.
///
/// `swapped` returns whether the second of two items belongs before the first.
fn merge_sort(
    items: &mut Vec<(Value, Value)>,
    mut swapped: impl FnMut(&(Value, Value), &(Value, Value)) -> EvalResult<bool>,
) -> EvalResult<()> {
    let n = items.len();
    let mut width = 1;
    while width < n {
        let mut out = Vec::with_capacity(n);
        for start in (0..n).step_by(2 * width) {
            let (mid, end) = ((start + width).min(n), (start + 2 * width).min(n));
            let (mut i, mut j) = (start, mid);
            while i < mid || j < end {
                let right = j < end && (i == mid || swapped(&items[i], &items[j])?);
                let from = if right { &mut j } else { &mut i };
                out.push(items[*from].clone());
                *from += 1;
            }
        }
        *items = out;
        width *= 2;
    }
    Ok(())
}
