//! Scalars as values: `nisa.scalar_load`, `nisa.scalar_store` and Python's operators.

use nki_diag::Span;
use nki_isa::names::ScalarOp;

use super::bind::instruction_name;
use super::errors::raise;
use super::handles::ApiClass;
use super::registers::{branch, repeat};
use super::state::{site, state};
use super::strict::reject;
use super::values;
use crate::build;
use crate::build::lower::Lower;
use crate::build::scalar::{SLUG, Scalar, Term};
use crate::eval::Interp;
use crate::eval::convert::wrong;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::{Block, DeviceCondition, Object};
use crate::eval::native::CallArgs;
use crate::eval::stdlib::dtype;
use crate::eval::value::Value;
use crate::syntax::{BinOp, CmpOp, UnaryOp};

/// Advice for unsupported uses of scalars.
const HELP: &str = "a scalar exists only on the device: it supports +, - and *, and can be a loop bound, an offset or an operand of nisa.scalar_store; \
     compute anything else with instructions on a tensor";

fn lower<T>(
    interp: &mut Interp<'_>,
    span: Span,
    build: impl FnOnce(&mut Lower<'_>) -> build::Result<T>,
) -> EvalResult<T> {
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: "" };
    build(&mut lower).map_err(|v| raise("", &v, span, &[]))
}

/// `nisa.scalar_load(src, name=None)`
pub(crate) fn scalar_load(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nisa.scalar_load";
    let [src, name] = args.bind(interp, what, ["src", "name"], 1)?;
    let src = src.unwrap_or(Value::None);
    let t = values::tensor(&src, format_args!("{what}: src"), span)?;
    values::not_empty(t, format_args!("{what}: `src`"), span)?;
    let scalar = lower(interp, span, |l| l.scalar_load(t))?;
    name_last(interp, what, name, span)?;
    Ok(Value::object(scalar))
}

/// Gives the last instruction the name of the argument `name`, if there is one.
fn name_last(interp: &mut Interp<'_>, what: &str, name: Option<Value>, span: Span) -> EvalResult<()> {
    let Some(text) = instruction_name(what, &name.unwrap_or(Value::None), span)? else { return Ok(()) };
    let builder = &mut state(interp).builder;
    builder.name_node(builder.last_node(), &text).map_err(|v| raise("", &v, span, &[]))
}

/// `nisa.scalar_store(dst, value, name=None)`
pub(crate) fn scalar_store(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nisa.scalar_store";
    let [dst, value, name] = args.bind(interp, what, ["dst", "value", "name"], 2)?;
    let (dst, value) = (dst.unwrap_or(Value::None), value.unwrap_or(Value::None));
    let t = values::tensor(&dst, format_args!("{what}: dst"), span)?;
    values::not_empty(t, format_args!("{what}: `dst`"), span)?;
    let Some(scalar) = value.downcast::<Scalar>() else {
        let raise = wrong(format_args!("{what}: value"), "a scalar, the result of nisa.scalar_load", &value, span);
        return Err(if value.as_int().is_some() { raise.help("write a constant with nisa.memset") } else { raise });
    };
    lower(interp, span, |l| l.scalar_store(t, *scalar))?;
    name_last(interp, what, name, span)?;
    Ok(Value::None)
}

fn term(value: &Value) -> Option<Term> {
    match value.downcast::<Scalar>() {
        Some(scalar) => Some(Term::Scalar(*scalar)),
        None => value.as_int().map(Term::Int),
    }
}

fn refuse(what: &str, span: Span) -> Box<Raise> {
    Raise::at(SLUG, format!("`{what}` on a scalar"), span, "here").help(HELP)
}

impl Object for Scalar {
    fn type_name(&self) -> &'static str {
        "NkiScalar"
    }

    fn class(&self) -> Option<Value> {
        ApiClass::of(self)
    }

    fn repr(&self) -> String {
        format!("<NkiScalar {} {}>", self.id.0, self.dtype)
    }

    fn unknown_number(&self) -> Option<&'static str> {
        Some("a scalar's value exists only on the device")
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["dtype", "is_comparison"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        match name {
            "dtype" => Some(dtype::value(self.dtype)),
            "is_comparison" => Some(Value::Bool(self.comparison)),
            _ => None,
        }
    }

    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, _index: &Value, span: Span) -> EvalResult<Value> {
        Err(refuse("[]", span))
    }

    fn binary(
        &self,
        interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let computed = match op {
            BinOp::Add => ScalarOp::Add,
            BinOp::Sub => ScalarOp::Subtract,
            BinOp::Mul => ScalarOp::Multiply,
            _ => return Err(refuse(op.text(), span)),
        };
        let (Some(x), Some(y)) = (term(left), term(right)) else {
            let message = format!("`{}` of {} and {}", op.text(), left.type_name(), right.type_name());
            return Err(Raise::at(SLUG, message, span, "here")
                .help("the other side must be an int or a scalar of the same dtype"));
        };
        lower(interp, span, |l| l.scalar_compute(computed, x, y)).map(|s| Some(Value::object(s)))
    }

    fn unary(&self, interp: &mut Interp<'_>, op: UnaryOp, this: &Value, span: Span) -> EvalResult<Value> {
        match op {
            UnaryOp::Neg => {
                lower(interp, span, |l| l.scalar_compute(ScalarOp::Subtract, Term::Int(0), Term::Scalar(*self)))
                    .map(Value::object)
            }
            UnaryOp::Pos => Ok(this.clone()),
            UnaryOp::Invert | UnaryOp::Not => Err(refuse(op.text(), span)),
        }
    }

    fn compare(
        &self,
        interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let (Some(x), Some(y)) = (term(left), term(right)) else {
            // Against None and the like, identities are compared.
            return if matches!(op, CmpOp::Eq | CmpOp::Ne) { Ok(None) } else { Err(refuse(op.text(), span)) };
        };
        let compared = match op {
            CmpOp::Eq => ScalarOp::Equal,
            CmpOp::Ne => ScalarOp::NotEqual,
            CmpOp::Lt => ScalarOp::Less,
            CmpOp::Le => ScalarOp::LessEqual,
            CmpOp::Gt => ScalarOp::Greater,
            CmpOp::Ge => ScalarOp::GreaterEqual,
            CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn => return Ok(None),
        };
        lower(interp, span, |l| l.scalar_compute(compared, x, y)).map(|s| Some(Value::object(s)))
    }

    fn truth(&self, _interp: &mut Interp<'_>, _this: &Value, span: Span) -> EvalResult<bool> {
        let message = "the value of a scalar is not known when the kernel is specialised";
        Err(Raise::at(SLUG, message, span, "used as a condition here").help(
            "decide on the device: nl.while_loop with a register, or a mask computed with instructions on a tensor",
        ))
    }

    fn iterate(&self, span: Span) -> EvalResult<Vec<Value>> {
        Err(refuse("for", span))
    }

    /// Up to NKI 0.6 a loop variable is a register, on which `if` is a branch of the device.
    fn condition(&self) -> Option<&dyn DeviceCondition> {
        if self.loop_variable { Some(self) } else { None }
    }
}

impl DeviceCondition for Scalar {
    fn branch(&self, interp: &mut Interp<'_>, span: Span, then: Block<'_>, otherwise: Block<'_>) -> EvalResult<()> {
        reject(interp, span, "`if` on a loop variable", "it raises TypeError since NKI 0.7: compute a mask instead");
        branch(interp, self.id, span, then, otherwise)
    }

    fn repeat(&self, interp: &mut Interp<'_>, span: Span, body: Block<'_>) -> EvalResult<()> {
        reject(interp, span, "`while` on a loop variable", "it raises TypeError since NKI 0.7: write nl.while_loop");
        repeat(interp, self.id, None, span, body)
    }
}
