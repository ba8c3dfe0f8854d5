//! Conversions between values of the language and what instructions and views take.

use std::fmt::Display;

use nki_diag::Span;
use nki_isa::names::Named;
use nki_isa::{Arg, DType, Imm, Index, Space};

use super::beta2::region::Region;
use super::vocab::ApiEnum;
use super::{RegisterRef, Tensor};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::value::Value;

/// Operands are lists of lists at most, and short: lists may hold themselves, or one list many times.
const MAX_DEPTH: u32 = 8;
const MAX_ITEMS: u32 = 1 << 16;

/// An operand of an instruction. `None` for a value that no operand takes.
pub(crate) fn to_arg(value: &Value) -> Option<Arg> {
    nested_arg(value, 0, &mut 0)
}

fn nested_arg(value: &Value, depth: u32, items: &mut u32) -> Option<Arg> {
    *items += 1;
    if depth > MAX_DEPTH || *items > MAX_ITEMS {
        return None;
    }
    let mut list = |values: &[Value]| -> Option<Arg> {
        Some(Arg::List(values.iter().map(|v| nested_arg(v, depth + 1, items)).collect::<Option<_>>()?))
    };
    Some(match value {
        Value::Tensor(t) if t.is_empty() => return None,
        Value::Tensor(t) => Arg::View(t.view.clone()),
        Value::Int(i) => Arg::Int(*i),
        Value::Float(x) => Arg::Float(*x),
        Value::NlOp(op) => Arg::Name(op.op().name.into()),
        Value::ApiEnum(e) => Arg::Name(e.name().into()),
        Value::None => Arg::None,
        Value::Bool(b) => Arg::Bool(*b),
        Value::Str(s) => Arg::Text((&**s).into()),
        Value::Dtype(d) => Arg::DType(*d),
        Value::Register(r) => Arg::Register(r.id),
        Value::Tuple(items) => list(items)?,
        Value::List(items) => list(&items.items.borrow())?,
        Value::Object(o) => o.as_any().downcast_ref::<super::beta2::ReplicaGroup>()?.to_arg(),
        // The manual of tensor_scalar_reduce names these two as operators; they are reductions elsewhere.
        Value::Native(f) => match &*f.name {
            "nki.language.max" => Arg::Name("maximum".into()),
            "nki.language.min" => Arg::Name("minimum".into()),
            _ => return None,
        },
        _ => return None,
    })
}

/// An error about an argument of the wrong kind.
pub(crate) fn wrong(what: impl Display, expected: &str, got: &Value, span: Span) -> Box<Raise> {
    let shown = match got {
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_) => format!("{got:?}"),
        other => format!("a value of type {}", other.type_name()),
    };
    Raise::at("operand-kind", format!("{what} takes {expected}, got {shown}"), span, "here")
}

/// An integer.
pub(crate) fn int(value: &Value, what: impl Display, span: Span) -> EvalResult<i64> {
    match value {
        Value::Float(x) if x.fract() == 0.0 && x.abs() < 9e15 => Err(wrong(what, "an int", value, span)
            .help(format!("write {} or int(...); `/` makes floats, `//` ints", *x as i64))),
        Value::Register(_) => Err(wrong(what, "an int that is known at specialisation", value, span)
            .help("a register's value exists only on the device")),
        other => other.as_int().ok_or_else(|| wrong(what, "an int", value, span)),
    }
}

/// A list or tuple of integers; one integer counts as a list of one.
pub(crate) fn ints(value: &Value, what: impl Display, span: Span) -> EvalResult<Vec<i64>> {
    if let Some(i) = value.as_int() {
        return Ok(vec![i]);
    }
    match value.sequence() {
        Some(items) => items.iter().map(|v| int(v, &what, span)).collect(),
        None => Err(wrong(what, "an int or a tuple of ints", value, span)),
    }
}

/// A shape.
pub(crate) fn shape(value: &Value, what: impl Display, span: Span) -> EvalResult<Vec<i64>> {
    ints(value, what, span)
}

/// A number.
pub(crate) fn number(value: &Value, what: impl Display, span: Span) -> EvalResult<Imm> {
    match value {
        Value::Float(x) => Ok(Imm::Float(*x)),
        other => other.as_int().map(Imm::Int).ok_or_else(|| wrong(what, "a number", value, span)),
    }
}

/// A bool.
pub(crate) fn flag(value: &Value, what: impl Display, span: Span) -> EvalResult<bool> {
    match value {
        Value::Bool(b) => Ok(*b),
        Value::Int(i @ (0 | 1)) => Ok(*i == 1),
        other => Err(wrong(what, "True or False", other, span)),
    }
}

/// An element type: `nl.float32`, `np.float32` or `'float32'`.
pub(crate) fn dtype(value: &Value, what: impl Display, span: Span) -> EvalResult<DType> {
    match value {
        Value::Dtype(d) => Ok(*d),
        Value::Str(s) => DType::from_name(s).ok_or_else(|| unknown_dtype(s, span)),
        Value::Host(h) => {
            let last = h.path.rsplit('.').next().unwrap_or("");
            DType::from_name(last).ok_or_else(|| wrong(what, "a dtype such as nl.float32", value, span))
        }
        Value::Type(t) => match t.name() {
            "bool" => Ok(DType::Bool),
            _ => Err(wrong(what, "a dtype such as nl.float32", value, span)),
        },
        other => Err(wrong(what, "a dtype such as nl.float32", other, span)),
    }
}

/// An error about a dtype that is not known.
pub(crate) fn unknown_dtype(name: &str, span: Span) -> Box<Raise> {
    let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
    Raise::at("unsupported-dtype", format!("dtype `{name}` is not supported"), span, "here")
        .help(format!("supported are {}", names.join(", ")))
}

/// Refuses a view without elements where it would be used.
pub(crate) fn not_empty(t: &Tensor, what: impl Display, span: Span) -> EvalResult<()> {
    match t.is_empty() {
        true => Err(super::errors::raise("", &t.nothing(&what.to_string()), span, &[&t.storage])),
        false => Ok(()),
    }
}

/// A tensor.
pub(crate) fn tensor(value: &Value, what: impl Display, span: Span) -> EvalResult<&Tensor> {
    match value {
        Value::Tensor(t) => Ok(t),
        other => Err(wrong(what, "a tensor", other, span)),
    }
}

/// A memory: `nl.sbuf`, or the strings of older releases.
pub(crate) fn memory(value: &Value, what: impl Display, span: Span) -> EvalResult<Space> {
    let found = match value {
        Value::ApiEnum(e) if e.vocabulary == super::vocab::MEMORY => Space::from_name(e.name()),
        Value::Str(s) => Space::from_name(s),
        Value::Object(o) => o.as_any().downcast_ref::<Region>().map(|region| region.space),
        _ => None,
    };
    found.ok_or_else(|| wrong(what, "nl.sbuf, nl.psum, nl.hbm, nl.private_hbm or nl.shared_hbm", value, span))
}

/// The value of a memory.
pub(crate) fn memory_value(space: Space) -> Value {
    let name = match space {
        Space::Hbm => "private_hbm",
        other => other.name(),
    };
    ApiEnum::memory(name).map_or(Value::None, Value::ApiEnum)
}

/// A run-time index: a register or a tensor of one element.
pub(crate) fn index(value: &Value, what: impl Display, span: Span) -> EvalResult<Index> {
    match value {
        Value::Register(RegisterRef { id, .. }) => Ok(Index::Register(*id)),
        Value::Tensor(t) if t.view.elements() == 1 => Ok(Index::Scalar(t.view.clone())),
        Value::Tensor(t) => Err(Raise::at(
            "operand-kind",
            format!(
                "{what} takes a register or a tensor of one element; `{}` has shape {}",
                t.storage.name,
                t.shape_text()
            ),
            span,
            "here",
        )),
        other => Err(wrong(what, "a register or a tensor of shape (1, 1)", other, span)),
    }
}
