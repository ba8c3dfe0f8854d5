//! Conversions from values to the operands of instructions and views.

use std::fmt::Display;

use nki_diag::Span;
use nki_isa::names::Named;
use nki_isa::{Arg, Index, Space};

use super::enums::{ApiEnum, NlOp};
use super::handles::ReplicaGroup;
use super::registers::Register;
use crate::build::scalar::Scalar;
use crate::build::tensor::Tensor;
use crate::eval::convert::wrong;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::stdlib::dtype;
use crate::eval::value::Value;

/// Operands are at most lists of lists, and short: a list may contain itself, or another list many times.
const MAX_DEPTH: u32 = 8;
const MAX_ITEMS: u32 = 1 << 16;

/// An operand of an instruction. `None` for a value that cannot be an operand.
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
        Value::Int(i) => Arg::Int(*i),
        Value::Float(x) => Arg::Float(*x),
        Value::None => Arg::None,
        Value::Bool(b) => Arg::Bool(*b),
        Value::Str(s) => Arg::Text((&**s).into()),
        Value::Tuple(items) => list(items)?,
        Value::List(items) => list(&items.items.borrow())?,
        Value::Object(object) => match object.number() {
            Some(number) => return nested_arg(number, depth, items),
            None => return object_arg(value),
        },
        // Functions that name operators in the manual: max and min of tensor_scalar_reduce, mean of tensor_partition_reduce.
        Value::Native(f) => match &*f.name {
            "nki.language.max" => Arg::Name("maximum".into()),
            "nki.language.min" => Arg::Name("minimum".into()),
            "nki.language.mean" => Arg::Name("average".into()),
            _ => return None,
        },
        _ => return None,
    })
}

fn object_arg(value: &Value) -> Option<Arg> {
    if let Some(t) = value.downcast::<Tensor>() {
        return (!t.is_empty()).then(|| Arg::View(t.view.clone()));
    }
    if let Some(op) = value.downcast::<NlOp>() {
        return Some(Arg::Name(op.op().name.into()));
    }
    if let Some(member) = value.downcast::<ApiEnum>() {
        return Some(Arg::Name(member.name().into()));
    }
    if let Some(register) = value.downcast::<Register>() {
        return Some(Arg::Register(register.id));
    }
    if let Some(scalar) = value.downcast::<Scalar>() {
        return scalar.narrow("an operand").ok().map(Arg::Register);
    }
    if let Some(dtype) = dtype::of(value) {
        return Some(Arg::DType(dtype));
    }
    value.downcast::<ReplicaGroup>().map(ReplicaGroup::to_arg)
}

/// Rejects the use of a view without elements.
pub(crate) fn not_empty(t: &Tensor, what: impl Display, span: Span) -> EvalResult<()> {
    match t.is_empty() {
        true => Err(super::errors::raise("", &t.nothing(&what.to_string()), span, &[&t.storage])),
        false => Ok(()),
    }
}

/// A tensor.
pub(crate) fn tensor(value: &Value, what: impl Display, span: Span) -> EvalResult<&Tensor> {
    value.downcast().ok_or_else(|| wrong(what, "a tensor", value, span))
}

/// A memory: `nl.sbuf`, or the strings of older releases.
pub(crate) fn memory(value: &Value, what: impl Display, span: Span) -> EvalResult<Space> {
    let found = match value {
        Value::Str(s) => Space::from_name(s),
        other => other.downcast::<ApiEnum>().filter(|e| e.is_memory()).and_then(|e| Space::from_name(e.name())),
    };
    found.ok_or_else(|| wrong(what, "nl.sbuf, nl.psum, nl.hbm, nl.private_hbm or nl.shared_hbm", value, span))
}

/// The value of a memory.
pub(crate) fn memory_value(space: Space) -> Value {
    let name = match space {
        Space::Hbm => "private_hbm",
        other => other.name(),
    };
    ApiEnum::memory(name).map_or(Value::None, Value::object)
}

/// A run-time index into `t`: a register, a scalar or a tensor of one element.
pub(crate) fn index(t: &Tensor, value: &Value, what: impl Display, span: Span) -> EvalResult<Index> {
    if let Some(register) = value.downcast::<Register>() {
        return Ok(Index::Register(register.id));
    }
    if let Some(scalar) = value.downcast::<Scalar>() {
        let register = scalar.offset_into(t, &what.to_string());
        return register.map(Index::Register).map_err(|v| super::errors::raise("", &v, span, &[&t.storage]));
    }
    match value.downcast::<Tensor>() {
        Some(t) if t.view.dtype.is_float() => {
            let message = format!("{what} takes integers; `{}` is {}", t.storage.name, t.view.dtype);
            Err(Raise::at("operand-dtype", message, span, "here")
                .help("convert the index first: nisa.tensor_copy into an int32 tile"))
        }
        Some(t) if t.view.elements() == 1 => Ok(Index::Scalar(t.view.clone())),
        Some(t) => Err(Raise::at(
            "operand-kind",
            format!(
                "{what} takes a register or a tensor of one element; `{}` has shape {}",
                t.storage.name,
                t.shape_text()
            ),
            span,
            "here",
        )),
        None => Err(wrong(what, "a register, a scalar or a tensor of shape (1, 1)", value, span)),
    }
}

/// Whether a value is a run-time index: a register, a scalar or a tensor.
pub(crate) fn is_run_time(value: &Value) -> bool {
    value.downcast::<Register>().is_some()
        || value.downcast::<Scalar>().is_some()
        || value.downcast::<Tensor>().is_some()
}
