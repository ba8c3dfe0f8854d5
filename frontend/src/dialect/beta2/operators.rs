//! Operators on tensors and registers: all are rejected, with a suggested replacement.

use nki_diag::{Diagnostic, Span};

use crate::build::tensor::Tensor;
use crate::dialect::common::registers::{REGISTER_HELP, Register};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::unsupported;
use crate::eval::value::Value;
use crate::syntax::{CmpOp, UnaryOp};

/// The suggested replacement for an operator on a tensor or register.
pub(super) fn arithmetic(what: &str, left: &Value, right: &Value, span: Span) -> Box<Raise> {
    let is = |test: fn(&Value) -> bool| test(left) || test(right);
    if is(|v| v.downcast::<Register>().is_some()) {
        return Raise::at("register-arithmetic", format!("`{what}` on a register"), span, "here").help(REGISTER_HELP);
    }
    if is(|v| v.downcast::<Tensor>().is_some()) {
        let function = match what {
            "+" => "add",
            "-" => "subtract",
            "*" => "multiply",
            "/" => "divide",
            "@" => "matmul",
            "**" => "power",
            "%" => "mod",
            "<" => "less",
            "<=" => "less_equal",
            ">" => "greater",
            ">=" => "greater_equal",
            "&" => "bitwise_and",
            "|" => "bitwise_or",
            "^" => "bitwise_xor",
            _ => "...",
        };
        return Raise::at("tensor-operator", format!("`{what}` on a tensor"), span, "here").help(format!(
            "tensors have no Python operators: use nl.{function}(x, y), or nisa.tensor_tensor / nisa.tensor_scalar with a dst"
        ));
    }
    unsupported(what, left, right, span)
}

/// `op value`
pub(super) fn unary(op: UnaryOp, value: &Value, span: Span) -> EvalResult<Value> {
    let what = op.text();
    if value.downcast::<Tensor>().is_some() {
        return Err(Raise::at("tensor-operator", format!("`{what}` on a tensor"), span, "here").help(
            "tensors have no Python operators: use nl.negative(x), nl.invert(x) or nisa.tensor_scalar with a dst",
        ));
    }
    Err(arithmetic(what, value, &Value::None, span))
}

/// `left op right`: identities can be compared, values cannot.
pub(super) fn compare(
    interp: &mut Interp<'_>,
    op: CmpOp,
    left: &Value,
    right: &Value,
    span: Span,
) -> EvalResult<Option<Value>> {
    // Only the device can compare a register with a number.
    let number = |v: &Value| matches!(v, Value::Int(_) | Value::Float(_));
    let register = |v: &Value| v.downcast::<Register>().is_some();
    match op {
        CmpOp::Eq | CmpOp::Ne if register(left) && number(right) || number(left) && register(right) => {
            Err(arithmetic(op.text(), left, right, span))
        }
        CmpOp::Eq | CmpOp::Ne => {
            let tensor = |v: &Value| v.downcast::<Tensor>().map(|t| t.storage.name.clone());
            if let (Some(name), true) = (tensor(left).or_else(|| tensor(right)), number(left) || number(right)) {
                let always = if op == CmpOp::Eq { "false" } else { "true" };
                let message = format!("`{}` of tensor `{name}` and a number is always {always}", op.text());
                let finding = Diagnostic::warning("tensor-condition", message)
                    .at(span, "the tensor's values are not known when the kernel is specialised")
                    .help(
                        "compare on the device: nl.equal(x, y), or load the value into a register: nisa.register_load",
                    );
                interp.report_once(finding, span);
            }
            Ok(None)
        }
        _ => Err(arithmetic(op.text(), left, right, span)),
    }
}
