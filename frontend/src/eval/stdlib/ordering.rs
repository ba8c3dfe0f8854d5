//! `functools.total_ordering`: derives the comparisons that a class does not define from one that
//! it does.

use std::rc::Rc;

use super::super::Interp;
use super::super::error::{EvalResult, Raise};
use super::super::native::CallArgs;
use super::super::value::*;
use crate::syntax::*;

/// A comparison derived from another one.
struct Derived {
    from: Symbol,
    name: Symbol,
    /// Whether the other comparison is negated first.
    negated: bool,
    /// Whether the comparison is then combined: `or` with `==`, or `and` with `!=`.
    joined: Option<CmpOp>,
}

const fn derived(from: Symbol, name: Symbol, negated: bool, joined: Option<CmpOp>) -> Derived {
    Derived { from, name, negated, joined }
}

/// Python uses the first of these that a class defines.
const ROOTS: [Symbol; 4] = [sym::lt, sym::le, sym::gt, sym::ge];

const DERIVED: &[Derived] = &[
    derived(sym::lt, sym::gt, true, Some(CmpOp::Ne)),
    derived(sym::lt, sym::le, false, Some(CmpOp::Eq)),
    derived(sym::lt, sym::ge, true, None),
    derived(sym::le, sym::ge, true, Some(CmpOp::Eq)),
    derived(sym::le, sym::lt, false, Some(CmpOp::Ne)),
    derived(sym::le, sym::gt, true, None),
    derived(sym::gt, sym::lt, true, Some(CmpOp::Ne)),
    derived(sym::gt, sym::ge, false, Some(CmpOp::Eq)),
    derived(sym::gt, sym::le, true, None),
    derived(sym::ge, sym::le, true, Some(CmpOp::Eq)),
    derived(sym::ge, sym::gt, false, Some(CmpOp::Ne)),
    derived(sym::ge, sym::lt, true, None),
];

/// `@total_ordering`
pub(crate) fn total_ordering(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "total_ordering", 1, 1)?;
    let Value::Class(class) = &args.positional[0] else {
        let message = format!("total_ordering needs a class, not {}", args.positional[0].a_type());
        return Err(Raise::at("type-error", message, args.span, "decorates this"));
    };
    let Some(root) = ROOTS.iter().find(|name| class.lookup(**name).is_some()) else {
        let message = "must define at least one ordering operation: < > <= >=";
        return Err(Raise::at("value-error", message, class.span, "this class"));
    };
    for (index, entry) in DERIVED.iter().enumerate().filter(|(_, entry)| entry.from == *root) {
        if class.lookup(entry.name).is_none() {
            let function = Value::native("functools.total_ordering", compare_derived, index as u32);
            let method = Value::Descriptor(Rc::new(Descriptor::Method(function)));
            class.attrs.borrow_mut().set(entry.name, method);
        }
    }
    Ok(args.positional[0].clone())
}

fn compare_derived(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    args.positional_only(interp, "comparison", 2, 2)?;
    let (this, other) = (&args.positional[0], &args.positional[1]);
    let entry = DERIVED.get(args.data as usize);
    let method = entry.and_then(|entry| this.own_class()?.lookup(entry.from));
    let (Some(entry), Some(method)) = (entry, method) else { return Ok(Value::NotImplemented) };
    let answer = interp.call_with(&method, this.clone(), CallArgs::of([other.clone()], span))?;
    if matches!(answer, Value::NotImplemented) {
        return Ok(answer);
    }
    let holds = interp.truth(&answer, span)? != entry.negated;
    match entry.joined {
        Some(op) if holds == (op == CmpOp::Ne) => {
            let joined = interp.compare(op, this, other, span)?;
            interp.truth(&joined, span).map(Value::Bool)
        }
        _ => Ok(Value::Bool(holds)),
    }
}
