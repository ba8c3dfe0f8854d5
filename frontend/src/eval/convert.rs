//! Conversion of arguments for functions implemented in Rust: numbers, lists of numbers, and errors
//! for other values.

use std::fmt::Display;

use nki_diag::Span;
use nki_isa::Imm;

use super::error::{EvalResult, Raise};
use super::value::Value;

/// The error of an argument of the wrong type.
pub(crate) fn wrong(what: impl Display, expected: &str, got: &Value, span: Span) -> Box<Raise> {
    let shown = match got {
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_) => format!("{got:?}"),
        other => format!("a value of type {}", other.type_name()),
    };
    Raise::at("operand-kind", format!("{what} takes {expected}, got {shown}"), span, "here")
}

/// An argument that is given and not `None`.
pub(crate) fn given(value: Option<Value>) -> Option<Value> {
    value.filter(|v| !v.is_none())
}

/// An integer.
pub(crate) fn int(value: &Value, what: impl Display, span: Span) -> EvalResult<i64> {
    match value.number().unwrap_or(value) {
        Value::Float(x) if x.fract() == 0.0 && x.abs() < 9e15 => Err(wrong(what, "an int", value, span)
            .help(format!("write {} or int(...); `/` makes floats, `//` ints", *x as i64))),
        Value::Object(object) => Err(match object.unknown_number() {
            Some(why) => wrong(what, "an int that is known at specialisation", value, span).help(why),
            None => wrong(what, "an int", value, span),
        }),
        other => other.as_int().ok_or_else(|| wrong(what, "an int", value, span)),
    }
}

/// A list or tuple of integers; a single integer counts as a list of one.
pub(crate) fn ints(value: &Value, what: impl Display, span: Span) -> EvalResult<Vec<i64>> {
    if let Some(i) = value.as_int() {
        return Ok(vec![i]);
    }
    match value.sequence() {
        Some(items) => items.iter().map(|v| int(v, &what, span)).collect(),
        None => Err(wrong(what, "an int or a tuple of ints", value, span)),
    }
}

/// A number.
pub(crate) fn number(value: &Value, what: impl Display, span: Span) -> EvalResult<Imm> {
    match value.number().unwrap_or(value) {
        Value::Float(x) => Ok(Imm::Float(*x)),
        other => other.as_int().map(Imm::Int).ok_or_else(|| wrong(what, "a number", value, span)),
    }
}

/// A bool.
pub(crate) fn flag(value: &Value, what: impl Display, span: Span) -> EvalResult<bool> {
    match value.number().unwrap_or(value) {
        Value::Bool(b) => Ok(*b),
        Value::Int(i @ (0 | 1)) => Ok(*i == 1),
        other => Err(wrong(what, "True or False", other, span)),
    }
}
