//! Registers and loops on them: `nisa.register_alloc`, `nl.dynamic_range`, `nl.fori_loop`, `nl.while_loop`.

use nki_diag::{Diagnostic, Span};
use nki_isa::Arg;
use nki_isa::program::Bound;

use crate::build::scalar::Scalar;
use crate::build::tensor::Tensor;
use crate::dialect::common::errors::raise;
use crate::dialect::common::handles::Handle;
use crate::dialect::common::registers::{DynamicRange, Register, emit, repeat};
use crate::dialect::common::state::state;
use crate::dialect::common::strict::reject;
use crate::eval::Interp;
use crate::eval::convert::{int, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::language::Hint;
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

/// `nisa.register_alloc(x=None)`.
pub(crate) fn register_alloc(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = args.bind(interp, "nisa.register_alloc", ["x"], 0)?;
    let id = state(interp).builder.register();
    let x = x.unwrap_or(Value::None);
    if let Some(t) = x.downcast::<Tensor>() {
        emit(interp, "register_load", &[("dst", Arg::Register(id)), ("src", Arg::View(t.view.clone()))], span)?;
    } else if let Some(r) = x.downcast::<Register>() {
        emit(interp, "register_move", &[("dst", Arg::Register(id)), ("src", Arg::Register(r.id))], span)?;
    } else if !x.is_none() {
        let i = x
            .as_int()
            .ok_or_else(|| wrong("nisa.register_alloc", "None, an int or a tensor of one element", &x, span))?;
        emit(interp, "register_move", &[("dst", Arg::Register(id)), ("src", Arg::Int(i))], span)?;
    }
    Ok(Register::value(id))
}

/// A loop bound: an int, a register, or a tensor of one element, which is loaded into a register.
fn bound(interp: &mut Interp<'_>, value: &Value, what: &str, span: Span) -> EvalResult<Bound> {
    if let Some(r) = value.downcast::<Register>() {
        return Ok(Bound::Register(r.id));
    }
    if let Some(scalar) = value.downcast::<Scalar>() {
        let register = scalar.narrow(&format!("{what}: the bound"));
        return register.map(Bound::Register).map_err(|v| raise("", &v, span, &[]));
    }
    if let Some(t) = value.downcast::<Tensor>() {
        let id = state(interp).builder.register();
        emit(interp, "register_load", &[("dst", Arg::Register(id)), ("src", Arg::View(t.view.clone()))], span)?;
        return Ok(Bound::Register(id));
    }
    match value.as_int() {
        Some(i) => fits(i, what, "the bound", span).map(Bound::Static),
        None => Err(wrong(what, "an int, a register or an int32 scalar", value, span)),
    }
}

/// Rejects values that do not fit the counter of a loop, a signed register of 32 bits.
fn fits(value: i64, what: &str, part: &str, span: Span) -> EvalResult<i64> {
    if i32::try_from(value).is_ok() {
        return Ok(value);
    }
    let message = format!("{what}: {part} is {value}; a loop counts in a 32-bit register, up to {}", i32::MAX);
    Err(Raise::at("dynamic-loop", message, span, "here").help("nest two loops, or count larger steps"))
}

fn step(value: Option<Value>, what: &str, span: Span) -> EvalResult<i64> {
    let step = match value {
        None => 1,
        Some(v) if v.downcast::<Register>().is_some() || v.downcast::<Scalar>().is_some() => {
            let message = format!("{what}: the step is a {}", v.type_name());
            return Err(Raise::at("dynamic-loop", message, span, "here")
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

/// Reports constant bounds in the wrong order. Equal ones are often computed: a remainder may be empty.
fn check_order(interp: &mut Interp<'_>, lower: Bound, upper: Bound, what: &str, span: Span) {
    let (Bound::Static(lower), Bound::Static(upper)) = (lower, upper) else { return };
    if lower <= upper {
        return;
    }
    let finding = Diagnostic::warning("empty-loop", format!("{what} from {lower} to {upper} never runs"))
        .at(span, "the first bound is above the second, and loops of the device count up")
        .help("give the lower bound first, and compute a descending index with instructions");
    interp.report_once(finding, span);
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
    reject(interp, span, what, "write nl.fori_loop(start, stop, body): it was removed in NKI 0.7");
    check_order(interp, lower, upper, what, span);
    Ok(Value::object(DynamicRange { lower, upper, step }))
}

/// `nl.fori_loop(lower, upper, body_fun, step=1)`.
pub(crate) fn fori_loop(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.fori_loop";
    let [lower, upper, body, by] = args.bind(interp, what, ["lower", "upper", "body_fun", "step"], 3)?;
    let (lower, upper) = (lower.unwrap_or(Value::None), upper.unwrap_or(Value::None));
    let by_register = [&lower, &upper].into_iter().any(|b| b.downcast::<Register>().is_some());
    let lower = bound(interp, &lower, what, span)?;
    let upper = bound(interp, &upper, what, span)?;
    let body = body.unwrap_or(Value::None);
    let range = DynamicRange { lower, upper, step: step(by, what, span)? };
    check_order(interp, lower, upper, what, span);
    let id = state(interp).builder.register();
    let variable = match by_register {
        true => Value::object(Register { id, frozen: true }),
        false => Value::object(Scalar::loop_variable(id)),
    };
    range.run(interp, id, Some(what), span, &mut |interp| {
        let result = call_body(interp, &body, variable.clone(), span)?;
        // A lambda returns the result of its instruction.
        if matches!(result, Value::None | Value::Poison) || result.downcast::<Handle>().is_some() {
            return Ok(());
        }
        Err(Raise::at("dynamic-loop", "the body of nl.fori_loop returned a value", span, "this loop")
            .help("keep what must outlive an iteration in an SBUF or HBM tensor allocated before the loop"))
    })?;
    Ok(Value::None)
}

/// Calls the body of a loop, once for all iterations. Changes to a number of an enclosing function, or to an item of an object from outside, do
/// not accumulate, which is reported.
fn call_body(interp: &mut Interp<'_>, body: &Value, variable: Value, span: Span) -> EvalResult<Value> {
    let (numbers, items) = (captured_numbers(interp, body), interp.items_of_function(body));
    let result = interp.call(body, CallArgs::of([variable], span))?;
    for ((name, old), (_, now)) in numbers.iter().zip(captured_numbers(interp, body)) {
        if matches!((old, now), (Some(old), Some(now)) if old.to_bits() != now.to_bits()) {
            report_change(interp, &format!("`{name}` of an enclosing function"), span);
        }
    }
    for ((item, old), (_, now)) in items.iter().zip(interp.items_of_function(body)) {
        if interp.is_carried(old, &now) {
            report_change(interp, &format!("`{item}`, of an object that was made outside of it"), span);
        }
    }
    Ok(result)
}

/// Reports what the body of a loop changes.
fn report_change(interp: &mut Interp<'_>, what: &str, span: Span) {
    let finding = Diagnostic::warning("loop-carried", format!("the body of this loop changes {what}"))
        .at(span, "the body is called once, and the device repeats its instructions")
        .help(interp.dialect.hint(Hint::LoopCarried));
    interp.report_once(finding, span);
}

/// The variables of enclosing functions that a function uses, and their numbers.
fn captured_numbers(interp: &Interp<'_>, function: &Value) -> Vec<(String, Option<f64>)> {
    match function {
        Value::Function(function) => {
            let held = |value: &Value| match value {
                Value::Cell(cell) => cell.borrow().as_float(),
                other => other.as_float(),
            };
            let names = function.def.scope.captured.iter().map(|name| interp.name(*name).to_string());
            names.zip(function.captures.iter().map(held)).collect()
        }
        Value::Object(object) => object.captured_numbers(),
        _ => Vec::new(),
    }
}

/// `nl.while_loop(init, body_fun)`.
pub(crate) fn while_loop(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [init, body] = args.bind(interp, "nl.while_loop", ["init", "body_fun"], 2)?;
    let body = body.unwrap_or(Value::None);
    let init = init.unwrap_or(Value::None);
    let Some(init) = init.downcast::<Register>() else {
        let refused = wrong("nl.while_loop: init", "a register", &init, span);
        return Err(match init.downcast::<Scalar>() {
            Some(_) => {
                refused.help("copy the scalar to a register: r = nisa.register_alloc(); nisa.register_move(r, scalar)")
            }
            None => refused,
        });
    };
    // The body gets the condition by value and returns the next one.
    let condition = Register { id: state(interp).builder.register(), frozen: false };
    emit(interp, "register_move", &[("dst", Arg::Register(condition.id)), ("src", Arg::Register(init.id))], span)?;
    repeat(interp, condition.id, Some("nl.while_loop"), span, &mut |interp| {
        let next = call_body(interp, &body, Value::object(condition), span)?;
        match next.downcast::<Register>() {
            None if matches!(next, Value::Poison) => Ok(()),
            Some(next) if next.id == condition.id => Ok(()),
            Some(next) => {
                let operands = [("dst", Arg::Register(condition.id)), ("src", Arg::Register(next.id))];
                emit(interp, "register_move", &operands, span)
            }
            None => Err(wrong("nl.while_loop", "a body that returns the next condition, a register", &next, span)),
        }
    })?;
    Ok(Value::None)
}
