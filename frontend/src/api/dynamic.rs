//! Registers and the loops and branches that run on the device.

use nki_diag::Span;
use nki_isa::program::{Bound, NodeKind};
use nki_isa::{Arg, RegId};

use super::errors::raise;
use super::lower::Lower;
use super::state::site;
use super::values::{int, wrong};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

/// A register handle (`VirtualRegister`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegisterRef {
    /// The register.
    pub(crate) id: RegId,
    /// A loop variable: it cannot be written.
    pub(crate) frozen: bool,
}

/// `nl.dynamic_range(...)`
#[derive(Debug, Clone, Copy)]
pub(crate) struct DynRange {
    pub(crate) lower: Bound,
    pub(crate) upper: Bound,
    pub(crate) step: i64,
}

/// Advice for whoever computes with registers.
pub(crate) const REGISTER_HELP: &str = "a register exists only on the device: store it with nisa.register_store(tensor, register), compute with \
     instructions on the (1, 1) tensor, and load the result with nisa.register_load";

/// Emits one instruction by its name and operands.
pub(crate) fn emit(
    interp: &mut Interp<'_>,
    name: &'static str,
    operands: &[(&'static str, Arg)],
    span: Span,
) -> EvalResult<()> {
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut interp.api.builder, site, name: "" };
    lower.emit(name, operands).map_err(|v| raise("", &v, span, &[]))
}

/// `nisa.register_alloc(x=None)`.
pub(crate) fn register_alloc(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = args.bind(interp, "nisa.register_alloc", ["x"], 0)?;
    let id = interp.api.builder.register();
    match x {
        None | Some(Value::None) => {}
        Some(Value::Tensor(t)) => {
            emit(interp, "register_load", &[("dst", Arg::Register(id)), ("src", Arg::View(t.view.clone()))], span)?;
        }
        Some(Value::Register(r)) => {
            emit(interp, "register_move", &[("dst", Arg::Register(id)), ("src", Arg::Register(r.id))], span)?;
        }
        Some(v) => {
            let i = v
                .as_int()
                .ok_or_else(|| wrong("nisa.register_alloc", "None, an int or a tensor of one element", &v, span))?;
            emit(interp, "register_move", &[("dst", Arg::Register(id)), ("src", Arg::Int(i))], span)?;
        }
    }
    Ok(Value::Register(RegisterRef { id, frozen: false }))
}

/// A loop bound: an int, a register, or a tensor of one element, which is loaded into a register.
fn bound(interp: &mut Interp<'_>, value: &Value, what: &str, span: Span) -> EvalResult<Bound> {
    match value {
        Value::Register(r) => Ok(Bound::Register(r.id)),
        Value::Tensor(t) => {
            let id = interp.api.builder.register();
            emit(interp, "register_load", &[("dst", Arg::Register(id)), ("src", Arg::View(t.view.clone()))], span)?;
            Ok(Bound::Register(id))
        }
        other => match other.as_int() {
            Some(i) => fits(i, what, "the bound", span).map(Bound::Static),
            None => Err(wrong(what, "an int or a register", other, span)),
        },
    }
}

/// Refuses what the counter of a loop, a signed register of 32 bits, cannot hold.
fn fits(value: i64, what: &str, part: &str, span: Span) -> EvalResult<i64> {
    if i32::try_from(value).is_ok() {
        return Ok(value);
    }
    let message = format!("{what}: {part} is {value}; a loop counts in a register of 32 bits, up to {}", i32::MAX);
    Err(Raise::at("dynamic-loop", message, span, "here").help("nest two loops, or count larger steps"))
}

fn step(value: Option<Value>, what: &str, span: Span) -> EvalResult<i64> {
    let step = match value {
        None => 1,
        Some(Value::Register(_)) => {
            return Err(Raise::at("dynamic-loop", format!("{what}: the step is a register"), span, "here")
                .help("the step is part of the loop instruction: give a positive int"));
        }
        Some(v) => int(&v, format_args!("{what}: step"), span)?,
    };
    if step < 1 {
        return Err(Raise::at(
            "dynamic-loop",
            format!("{what}: the step must be a positive int, got {step}"),
            span,
            "here",
        )
        .help("count up, and compute the descending index with instructions"));
    }
    fits(step, what, "the step", span)
}

/// `nl.dynamic_range(start, stop=None, step=1)`.
pub(crate) fn dynamic_range(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.dynamic_range";
    let [start, stop, by] = args.bind(interp, what, ["start", "stop", "step"], 1)?;
    let start = start.unwrap_or(Value::None);
    let (lower, upper) = match stop {
        None | Some(Value::None) => (Bound::Static(0), bound(interp, &start, what, span)?),
        Some(stop) => (bound(interp, &start, what, span)?, bound(interp, &stop, what, span)?),
    };
    let step = step(by, what, span)?;
    Ok(Value::DynRange(std::rc::Rc::new(DynRange { lower, upper, step })))
}

fn allowed(interp: &Interp<'_>, span: Span) -> EvalResult<()> {
    if interp.api.no_reorder == 0 {
        return Ok(());
    }
    Err(Raise::at("dynamic-loop", "a loop on a register inside nl.no_reorder()", span, "this loop")
        .help("put `with nl.no_reorder():` inside the loop"))
}

/// `for target in dynamic_range:`. `body` is run once with the loop variable; it binds the target and runs the block.
pub(crate) fn dynamic_for(
    interp: &mut Interp<'_>,
    range: &DynRange,
    span: Span,
    body: &mut dyn FnMut(&mut Interp<'_>, Value) -> EvalResult<()>,
) -> EvalResult<()> {
    allowed(interp, span)?;
    let place = site(interp, span);
    let variable = interp.api.builder.register();
    interp.api.builder.open();
    let result = body(interp, Value::Register(RegisterRef { id: variable, frozen: true }));
    let body = interp.api.builder.close();
    result?;
    let kind = NodeKind::For { variable, lower: range.lower, upper: range.upper, step: range.step, body };
    interp.api.builder.statement(kind, place);
    Ok(())
}

/// `while register:`. `body` is run once.
pub(crate) fn dynamic_while(
    interp: &mut Interp<'_>,
    register: RegisterRef,
    span: Span,
    body: &mut dyn FnMut(&mut Interp<'_>) -> EvalResult<()>,
) -> EvalResult<()> {
    allowed(interp, span)?;
    let place = site(interp, span);
    interp.api.builder.open();
    let result = body(interp);
    let body = interp.api.builder.close();
    result?;
    interp.api.builder.statement(NodeKind::While { condition: register.id, body }, place);
    Ok(())
}

/// `if register:`. Both bodies are run once.
pub(crate) fn dynamic_if(
    interp: &mut Interp<'_>,
    register: RegisterRef,
    span: Span,
    then: &mut dyn FnMut(&mut Interp<'_>) -> EvalResult<()>,
    otherwise: &mut dyn FnMut(&mut Interp<'_>) -> EvalResult<()>,
) -> EvalResult<()> {
    let place = site(interp, span);
    interp.api.builder.open();
    let result = then(interp);
    let then = interp.api.builder.close();
    result?;
    interp.api.builder.open();
    let result = otherwise(interp);
    let otherwise = interp.api.builder.close();
    result?;
    interp.api.builder.statement(NodeKind::If { condition: register.id, then, otherwise }, place);
    Ok(())
}

/// `nl.fori_loop(lower, upper, body_fun, step=1)`.
pub(crate) fn fori_loop(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.fori_loop";
    let [lower, upper, body, by] = args.bind(interp, what, ["lower", "upper", "body_fun", "step"], 3)?;
    let lower = bound(interp, &lower.unwrap_or(Value::None), what, span)?;
    let upper = bound(interp, &upper.unwrap_or(Value::None), what, span)?;
    let body = body.unwrap_or(Value::None);
    let range = DynRange { lower, upper, step: step(by, what, span)? };
    dynamic_for(interp, &range, span, &mut |interp, variable| {
        let result = interp.call(&body, CallArgs::of([variable], span))?;
        if result.is_none() {
            return Ok(());
        }
        Err(Raise::at("dynamic-loop", "the body of nl.fori_loop returned a value", span, "this loop")
            .help("keep what must outlive an iteration in an SBUF or HBM tensor made before the loop"))
    })?;
    Ok(Value::None)
}

/// `nl.while_loop(init, body_fun)`.
pub(crate) fn while_loop(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [init, body] = args.bind(interp, "nl.while_loop", ["init", "body_fun"], 2)?;
    let body = body.unwrap_or(Value::None);
    let init = match init {
        Some(Value::Register(r)) => r,
        other => return Err(wrong("nl.while_loop: init", "a register", &other.unwrap_or(Value::None), span)),
    };
    // The body gets the condition by value and returns the next one.
    let condition = RegisterRef { id: interp.api.builder.register(), frozen: false };
    emit(interp, "register_move", &[("dst", Arg::Register(condition.id)), ("src", Arg::Register(init.id))], span)?;
    dynamic_while(interp, condition, span, &mut |interp| match interp
        .call(&body, CallArgs::of([Value::Register(condition)], span))?
    {
        Value::Register(next) if next.id == condition.id => Ok(()),
        Value::Register(next) => emit(
            interp,
            "register_move",
            &[("dst", Arg::Register(condition.id)), ("src", Arg::Register(next.id))],
            span,
        ),
        other => Err(wrong("nl.while_loop", "a body that returns the next condition, a register", &other, span)),
    })?;
    Ok(Value::None)
}
