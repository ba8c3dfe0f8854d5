//! Methods of tensors that the current language lacks, or has under another name.

use nki_diag::Span;

use super::calls::{lower, opt_dtype};
use super::language::{broadcast, expanded};
use super::make;
use crate::build::lower::extents;
use crate::build::tensor::{Tensor, tuple_text};
use crate::dialect::common::errors::raise;
use crate::dialect::common::handles::ApiClass;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

/// Names of methods in addition to those of all dialects.
pub(super) const METHODS: &[&str] = &["as_tile", "astype", "expand_dims", "assert_shape"];

/// `base.name(...)`; `None` if it is the same in all dialects.
pub(super) fn method(
    interp: &mut Interp<'_>,
    base: &Value,
    t: &Tensor,
    name: &str,
    args: &CallArgs,
) -> EvalResult<Option<Value>> {
    let span = args.span;
    let args = args.clone();
    Ok(Some(match name {
        "broadcast_to" => {
            let shape = several(interp, args, "broadcast_to", span)?;
            broadcast(interp, base, &shape, "broadcast_to", span)?
        }
        "reshape" => {
            let shape = several(interp, args, "reshape", span)?;
            t.reshape(&shape).map(Value::object).map_err(|v| raise("", &v, span, &[&t.storage]))?
        }
        // The result of indexing a tensor is already a tile.
        "as_tile" => {
            let [] = args.bind(interp, "as_tile", [], 0)?;
            base.clone()
        }
        "expand_dims" => {
            let [axis] = args.bind(interp, "expand_dims", ["axis"], 1)?;
            expanded(t, &axis.unwrap_or(Value::None), "expand_dims: axis", span)?
        }
        "astype" => {
            let [d] = args.bind(interp, "astype", ["dtype"], 1)?;
            let dtype = opt_dtype(d, "astype", span)?;
            Value::object(lower(interp, "astype", span, &[&t.storage], |l| l.copy(t, dtype))?)
        }
        "assert_shape" => assert_shape(interp, base, &extents(t), args)?,
        _ => return Ok(None),
    }))
}

/// A shape as one tuple, or as several arguments.
fn several(interp: &mut Interp<'_>, args: CallArgs, what: &str, span: Span) -> EvalResult<Vec<i64>> {
    let shape = if args.positional.len() > 1 && args.keyword.is_empty() {
        Value::tuple(args.positional.into_vec())
    } else {
        let [shape] = args.bind(interp, what, ["shape"], 1)?;
        shape.unwrap_or(Value::None)
    };
    // `n / 2` is a float, which the old compiler accepted if it is integral.
    let whole = |v: &Value| match v {
        Value::Float(x) if x.fract() == 0.0 && x.abs() < 1e9 => Value::Int(*x as i64),
        other => other.clone(),
    };
    let shape = match shape.sequence() {
        Some(items) => Value::tuple(items.iter().map(whole).collect::<Vec<_>>()),
        None => whole(&shape),
    };
    Ok(make::shape(&shape, what, span)?.0)
}

/// `t.assert_shape(shape)`: the tensor, if it has this shape.
pub(super) fn assert_shape(interp: &mut Interp<'_>, this: &Value, shape: &[i64], args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let expected = several(interp, args, "assert_shape", span)?;
    if expected == shape {
        return Ok(this.clone());
    }
    let text = |s: &[i64]| tuple_text(s.iter().copied());
    let message = format!("a tensor of shape {} is asserted to have shape {}", text(shape), text(&expected));
    Err(Raise::at("shape-mismatch", message, span, "here"))
}

/// `x: nt.tensor[128, 512] = ...`: the shape of the value.
pub(super) fn check_annotation(
    interp: &mut Interp<'_>,
    class: &Value,
    index: &Value,
    value: &Value,
    span: Span,
) -> EvalResult<()> {
    if class.downcast::<ApiClass>().is_none_or(|class| class.0 != "tensor") {
        return Ok(());
    }
    let Value::Object(object) = value else { return Ok(()) };
    let items = index.sequence().unwrap_or_else(|| vec![index.clone()]);
    let expected: Option<Vec<i64>> = items.iter().map(Value::as_int).collect();
    let found = object.attribute(interp, "shape").and_then(|shape| shape.sequence());
    let found: Option<Vec<i64>> = found.and_then(|shape| shape.iter().map(Value::as_int).collect());
    let (Some(expected), Some(found)) = (expected, found) else { return Ok(()) };
    if expected == found {
        return Ok(());
    }
    let text = |s: &[i64]| tuple_text(s.iter().copied());
    let message = format!("a value of shape {} is annotated with shape {}", text(&found), text(&expected));
    Err(Raise::at("shape-mismatch", message, span, "this annotation"))
}
