//! Where a kernel begins and ends: its arguments, its outputs, the finished program.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use nki_isa::{DType, Program};

use super::builder::Builder;
use super::errors::{raise, span_of};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::schedule::Edge;
use crate::eval::value::Value;

/// A tensor argument: an input of that name (the same one for each core).
pub(crate) fn argument(
    interp: &mut Interp<'_>,
    name: &str,
    shape: &[usize],
    dtype: DType,
    span: Span,
) -> EvalResult<Value> {
    let shape: Vec<i64> = shape.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
    let loc = interp.loc(span);
    match interp.api.builder.input(name, &shape, dtype, loc) {
        Ok(t) => Ok(Value::Tensor(Rc::new(t))),
        Err(v) => Err(raise("", &v, span, &[])),
    }
}

/// The kernel named so is about to be run for this core (0, then 1 with `lnc == 2`).
pub(crate) fn begin_core(interp: &mut Interp<'_>, kernel: &str, core: u32, schedule: &[Edge]) {
    let builder = &mut interp.api.builder;
    builder.set_name(kernel);
    builder.set_schedule(schedule.iter().map(|(later, earlier)| (&**later, &**earlier)));
    while builder.core() < core {
        builder.next_core();
    }
}

/// The kernel has been run for every core: `outputs` are core 0's returned tensors with their names. Builds the program.
pub(crate) fn finish(interp: &mut Interp<'_>, outputs: Vec<(String, Value)>, span: Span) -> EvalResult<Program> {
    interp.report_too_large();
    interp.api.builder.check_schedule().map_err(|v| raise("", &v, span, &[]))?;
    for (name, value) in outputs {
        output(interp, &name, &value, span)?;
    }
    let files = (0..interp.sources.len()).map(|i| interp.sources.path(nki_diag::FileId(i as u32)).into()).collect();
    let trails = interp.take_trails();
    let fresh = Builder::new("", interp.options.target, 1);
    let builder = std::mem::replace(&mut interp.api.builder, fresh);
    Ok(builder.finish(files, trails))
}

fn output(interp: &mut Interp<'_>, name: &str, value: &Value, span: Span) -> EvalResult<()> {
    let Value::Tensor(t) = value else {
        return Err(Raise::at(
            "kernel-output",
            format!("the kernel returns a value of type {} as `{name}`", value.type_name()),
            span,
            "kernels return tensors, or tuples of tensors",
        ));
    };
    let (made, id) = (span_of(t.storage.loc), t.storage.id);
    let is_input = interp.api.builder.is_input(id);
    // Up to NKI 0.2 a kernel could return what it made in `nl.hbm` (release notes of 0.3), and tutorials still do. With one core
    // there is nobody to share it with.
    if t.view.space == nki_isa::Space::Hbm && !is_input && interp.options.lnc == 1 {
        interp.report(
            Diagnostic::warning(
                "kernel-output",
                format!("the kernel returns `{}`, which is in private HBM", t.storage.name),
            )
            .at(made, "made here")
            .with(span, "of this kernel")
            .help("since NKI 0.3 the compiler takes outputs in shared HBM only: write buffer=nl.shared_hbm"),
        );
    } else if t.view.space != nki_isa::Space::SharedHbm && !is_input {
        return Err(Raise::new(
            Diagnostic::error("kernel-output", format!("the kernel returns `{}`, which is in {}", t.storage.name, t.view.space))
                .at(made, "made here")
                .with(span, "of this kernel")
                .help("outputs must be in shared HBM: nl.ndarray(shape, dtype, buffer=nl.shared_hbm), written with nisa.dma_copy or nl.store"),
        ));
    }
    let whole = t.view.offset == 0 && t.is_contiguous() && t.view.bytes() == interp.api.builder.bytes(id);
    if !whole || t.view.dtype != t.storage.dtype || t.view.indirect.is_some() {
        return Err(Raise::new(
            Diagnostic::error("kernel-output", format!("the kernel returns a part of `{}`", t.storage.name))
                .at(made, "the tensor is made here")
                .with(span, "of this kernel")
                .help("return whole tensors; make one of the size of the result"),
        ));
    }
    let shape = t.view.shape();
    if shape[..] != t.storage.shape[..] && !is_input {
        // HBM is flat, so a reshaped output is the same storage under another shape.
        interp.api.builder.set_shape(id, &shape);
    }
    interp.api.builder.output(name, id);
    Ok(())
}
