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
        let message = format!("{what}: axis {axis} of a grid with {axes} axes");
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

/// `nl.nc(2)` and `nl.spmd_dim(...)`: an extent of a launch grid, which the host evaluates.
pub(super) fn extent(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    if !interp.in_kernel {
        return Ok(interp.host("an extent of a launch grid".into(), args.span));
    }
    let message = "an extent of a launch grid in a kernel, which runs in the grid of its own launch";
    Err(Raise::at("launch-grid", message, args.span, "here")
        .help("launch the kernel with it: kernel[nl.nc(2), 4](...)"))
}

/// `nl.all_reduce(x, op, program_axes)`: no program of a core has the tiles of later programs.
pub(super) fn all_reduce(_interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let message = "nl.all_reduce needs the tiles of all programs of the grid at once; here each program ends before the next begins";
    Err(Raise::at("unsupported-api", message, args.span, "in this call").help(
        "loop over the parts in one program, or store partial results to nl.shared_hbm and combine them in a second kernel",
    ))
}
