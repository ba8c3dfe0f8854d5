//! `nl.program_id` and its relatives.

use crate::dialect::common::state::state;
use crate::eval::Interp;
use crate::eval::convert::int;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

fn axis(interp: &mut Interp<'_>, value: &Value, what: &str, args_span: nki_diag::Span) -> EvalResult<usize> {
    let axis = int(value, what, args_span)?;
    let axes = state(interp).launch.counts.len();
    usize::try_from(axis).ok().filter(|&a| a < axes).ok_or_else(|| {
        let message = format!("{what}: axis {axis} of a grid of {axes} axes");
        Raise::at("arguments", message, args_span, "here").help("launch the kernel with a grid: kernel[4, 2](...)")
    })
}

/// `nl.program_id(axis)`
pub(super) fn program_id(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [value] = args.bind(interp, "nl.program_id", ["axis"], 1)?;
    let axis = axis(interp, &value.unwrap_or(Value::None), "nl.program_id", span)?;
    Ok(Value::Int(state(interp).launch.at[axis]))
}

/// `nl.num_programs(axes=None)`: of all axes, or of some.
pub(super) fn num_programs(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [axes] = args.bind(interp, "nl.num_programs", ["axes"], 0)?;
    match axes.filter(|v| !v.is_none()) {
        None => Ok(Value::Int(state(interp).launch.counts.iter().product())),
        Some(value) => {
            let mut product = 1;
            for one in value.sequence().unwrap_or_else(|| vec![value.clone()]) {
                let axis = axis(interp, &one, "nl.num_programs", span)?;
                product *= state(interp).launch.counts[axis];
            }
            Ok(Value::Int(product))
        }
    }
}

/// `nl.program_ndim()`
pub(super) fn program_ndim(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "nl.program_ndim", 0, 0)?;
    Ok(Value::Int(state(interp).launch.counts.len() as i64))
}
