//! Statements without effect: expressions whose value is unused.

use nki_diag::Diagnostic;

use super::Interp;
use super::language::Hint;
use super::value::Value;
use crate::syntax::*;

/// Methods of containers and iterators that modify their receiver and return one of its elements.
const TAKE_OUT: [&str; 5] = ["pop", "popitem", "popleft", "setdefault", "send"];

impl Interp<'_> {
    /// Reports an expression statement that returned `value` but emitted no instruction and ran no
    /// user code.
    pub(super) fn note_inert(&mut self, expr: &Expr, value: &Value) {
        // An expression that was rejected was meant to have an effect.
        if matches!(value, Value::Poison) {
            return;
        }
        let (what, help) = match &expr.kind {
            ExprKind::Call(callee, arguments) => {
                let ExprKind::Attr(_, name) = &callee.kind else { return };
                if TAKE_OUT.contains(&&*self.name(*name)) || arguments.iter().any(|a| has_call(argument(a))) {
                    return;
                }
                match value {
                    Value::Object(object) if object.is_device_data() => {
                        ("this view or tensor is never used", "use it, or delete the statement")
                    }
                    Value::Object(object) if object.is_inert() => {
                        ("this value is never used", "use it, or delete the statement")
                    }
                    Value::Kernel(_) | Value::Native(_) | Value::Partial(_) | Value::Function(_) => {
                        ("this function is never called", self.dialect.hint(Hint::UnusedFunction))
                    }
                    _ => return,
                }
            }
            ExprKind::Compare(..) | ExprKind::Binary(..) | ExprKind::Unary(..) if !has_call(expr) => match value {
                Value::Host(_) | Value::Instance(_) | Value::Class(_) => return,
                _ => ("the value of this expression is not used", "assign it, assert it, or delete the statement"),
            },
            ExprKind::Name(..) | ExprKind::Attr(..) | ExprKind::Subscript(..) if !has_call(expr) => match value {
                Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                    ("the value of this expression is not used", "use it, or delete the statement")
                }
                Value::Object(object) if object.is_device_data() => {
                    ("the value of this expression is not used", "use it, or delete the statement")
                }
                Value::Function(_)
                | Value::Kernel(_)
                | Value::Native(_)
                | Value::BoundMethod(_)
                | Value::BoundBuiltin(_) => {
                    ("this function is named but not called", "add (), or delete the statement")
                }
                _ => return,
            },
            _ => return,
        };
        let diagnostic = Diagnostic::warning("inert-operand", format!("this statement has no effect: {what}"))
            .at(expr.span, "no effect")
            .help(help);
        self.report_once(diagnostic, expr.span);
    }
}

fn argument(argument: &Argument) -> &Expr {
    match argument {
        Argument::Positional(e) | Argument::Keyword(_, e) | Argument::Star(e) | Argument::DoubleStar(e) => e,
    }
}

/// Whether evaluation may have an effect: the expression contains a call, or is not a plain
/// expression.
fn has_call(expr: &Expr) -> bool {
    let opt = |e: &Option<Box<Expr>>| e.as_ref().is_some_and(|e| has_call(e));
    match &expr.kind {
        ExprKind::None
        | ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Ellipsis
        | ExprKind::Name(..)
        | ExprKind::Lambda(_) => false,
        ExprKind::Attr(base, _) | ExprKind::Unary(_, base) => has_call(base),
        ExprKind::Subscript(a, b) | ExprKind::Binary(_, a, b) => has_call(a) || has_call(b),
        ExprKind::Slice(a, b, c) => opt(a) || opt(b) || opt(c),
        ExprKind::Tuple(all) | ExprKind::List(all) => all.iter().any(has_call),
        ExprKind::Compare(first, rest) => has_call(first) || rest.iter().any(|(_, e)| has_call(e)),
        _ => true,
    }
}
