//! NumPy's functions and ufuncs as operations: as `op=` arguments, and as calls with tiles.

use nki_isa::Arg;
use nki_isa::names::Named;
use nki_isa::schema::{Kind, OperandSchema};

use super::arithmetic;
use crate::dialect::common::enums::NlOp;
use crate::eval::value::Value;

/// The operation of a name, as NumPy and `nl` spell it.
pub(crate) fn spelled(name: &str) -> &str {
    match name {
        "max" | "amax" => "maximum",
        "min" | "amin" => "minimum",
        "sum" => "add",
        "prod" => "multiply",
        "all" => "logical_and",
        "any" => "logical_or",
        "true_divide" => "divide",
        "absolute" => "abs",
        "pow" | "float_power" => "power",
        "remainder" => "mod",
        other => other,
    }
}

/// The function of `nl` for NumPy's function `name` called with tiles.
pub(crate) fn function(name: &str) -> Option<&str> {
    match name {
        "amax" => Some("max"),
        "amin" => Some("min"),
        "max" | "min" | "sum" | "prod" | "all" | "mean" | "var" | "where" | "transpose" | "matmul" | "broadcast_to"
        | "expand_dims" | "zeros_like" | "empty_like" => Some(name),
        "any" => None,
        other => Some(spelled(other)).filter(|op| NlOp::find(op, arithmetic::call_op).is_some()),
    }
}

/// The operation named by a value.
pub(super) fn named(value: &Value) -> Option<NlOp> {
    if let Some(op) = value.downcast::<NlOp>() {
        return Some(*op);
    }
    let path = match value {
        Value::Native(native) => native.name.clone(),
        Value::Host(host) => host.path.clone(),
        _ => return None,
    };
    let (package, name) = path.rsplit_once('.')?;
    let known = ["numpy", "np", "neuronxcc.nki.language"].contains(&package);
    known.then(|| NlOp::find(spelled(name), arithmetic::call_op)).flatten()
}

/// An operand that names an operation.
pub(super) fn operand(value: &Value, schema: &OperandSchema) -> Option<Arg> {
    let takes_name = matches!(schema.kind, Kind::Name(_) | Kind::Optional(Kind::Name(_)));
    let op = takes_name.then(|| named(value)).flatten()?;
    Some(Arg::Name(Named::from_name(op.op().name).map_or(op.op().name, |a: nki_isa::names::AluOp| a.name()).into()))
}
