//! Given operands without effect, shared by several instructions.

use crate::arg::ScalarOperand;
use crate::names::{AluOp, OobMode, ReduceCmd};
use crate::view::View;
use crate::violation::Violation;

/// The violation for an operand without effect: the reason, with its value, and the replacement.
pub(crate) fn inert(operand: &'static str, message: String, help: &str) -> Violation {
    Violation::new("inert-operand", operand, message).help(help)
}

/// A `reverse` flag (name and value) of an operator that is missing or bypass.
pub(crate) fn reversed(
    (name, reverse): (&'static str, bool),
    (op_name, op): (&str, Option<AluOp>),
) -> Option<Violation> {
    let why = match op {
        _ if !reverse => return None,
        None => format!("there is no `{op_name}` whose operands it could swap"),
        Some(AluOp::Bypass) => format!("`{op_name}` is bypass, which passes its data through either way"),
        Some(_) => return None,
    };
    Some(inert(name, format!("`{name}` is True, but {why}"), "leave it out, or give the operator"))
}

/// A scalar of an operator that is missing or bypass. Callers write zero for "none".
pub(crate) fn unused_scalar(
    (name, scalar): (&'static str, Option<&ScalarOperand>),
    (op_name, op): (&str, Option<AluOp>),
) -> Option<Violation> {
    let got = match scalar? {
        ScalarOperand::Imm(x) if x.as_f32() == 0.0 => return None,
        ScalarOperand::Imm(x) => format!("{:?}", x.as_f32()),
        ScalarOperand::Register(_) => "a register".into(),
        ScalarOperand::View(_) => "a tile".into(),
    };
    let why = match op {
        None => format!("there is no `{op_name}` that uses it"),
        Some(AluOp::Bypass) => format!("`{op_name}` is bypass, which uses no scalar"),
        Some(_) => return None,
    };
    Some(inert(name, format!("`{name}` is {got}, but {why}"), "leave it out, or give the operator"))
}

/// A tile of an operator that takes one operand, which is the result of the operator before it.
pub(crate) fn unused_tile(name: &'static str, (op_name, op): (&str, AluOp)) -> Option<Violation> {
    op.is_unary()
        .then(|| inert(name, format!("`{op_name}` is {op}, which does not use `{name}`"), "use nisa.tensor_scalar"))
}

/// A reduction operator (scalar engine) with a command that does not reduce.
pub(crate) fn idle_reduction(op: Option<AluOp>, cmd: ReduceCmd, result: Option<&View>) -> Option<Violation> {
    let op = op.filter(|_| matches!(cmd, ReduceCmd::Idle | ReduceCmd::Reset))?;
    let (so, help) = match result {
        _ if cmd == ReduceCmd::Reset => (
            "the accumulators are cleared, and nothing is accumulated",
            "set reduce_cmd=nisa.reduce_cmd.reset_reduce; to only clear the accumulators, leave `reduce_op` out",
        ),
        Some(_) => (
            "nothing is accumulated, and `reduce_res` gets what the accumulators held before",
            "set reduce_cmd=nisa.reduce_cmd.reset_reduce; to only read the accumulators, leave `reduce_op` out",
        ),
        None => ("nothing is accumulated", "set reduce_cmd=nisa.reduce_cmd.reset_reduce, or leave `reduce_op` out"),
    };
    Some(inert("reduce_op", format!("`reduce_op` is {op}, but `reduce_cmd` is {cmd}: {so}"), help))
}

/// `oob_mode=skip` where no index can be out of bounds.
pub(crate) fn skip_without_index<'a>(oob: OobMode, views: impl IntoIterator<Item = &'a View>) -> Option<Violation> {
    if oob != OobMode::Skip || views.into_iter().any(|v| v.indirect.is_some()) {
        return None;
    }
    let message = "`oob_mode` is skip, but no operand has a dynamic index that could be out of bounds".to_owned();
    Some(inert("oob_mode", message, "leave it out, or index with `.ap(..., scalar_offset=)` or `vector_offset=`"))
}

/// Of several answers, the first.
pub(crate) fn first<const N: usize>(all: [Option<Violation>; N]) -> Option<Violation> {
    all.into_iter().flatten().next()
}
