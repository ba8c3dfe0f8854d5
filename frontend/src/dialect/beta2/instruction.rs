//! `nisa.<instruction>(...)`: this dialect's diagnostics for calls that deviate from the schema.

use nki_diag::{Diagnostic, Span};
use nki_isa::inst::find;
use nki_isa::schema::{Now, Role, Schema};
use nki_isa::view::{Index, Indirect};
use nki_isa::{Arg, View};
use smallvec::SmallVec;

use crate::build::tensor::tuple_text;
use crate::dialect::common::bind::{self, Policy, given, given_tensor, signature};
use crate::dialect::common::errors::span_of;
use crate::dialect::common::strict::reject;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise, closest};
use crate::eval::native::CallArgs;
use crate::eval::stdlib::dtype::dtype;
use crate::eval::value::Value;
use crate::syntax::Symbol;

static POLICY: Policy = Policy {
    keyword,
    position: |schema, at| (at < schema.operands.len()).then_some(at),
    operand: |_, _| None,
    missing,
    completes: &[],
    handle_help: "instructions return no tensor: they write to dst=, which is the first argument. Make dst with nl.ndarray and pass it on",
};

/// Runs `nisa.<REGISTRY[data]>(...)`.
pub(super) fn call(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    bind::call(interp, &POLICY, args, &mut |interp, entry, slots| {
        let is_given =
            |operator: &str| slots.iter().flatten().any(|arg| matches!(arg, Arg::Name(name) if &**name == operator));
        if let Some(operator) = ["divide", "mod", "fmod"].into_iter().find(|operator| is_given(operator)) {
            report_divide(interp, entry.schema.name, operator, span);
        }
        report_order(interp, entry.schema, slots, span);
        predicated(interp, entry.schema, slots, span);
        unique(entry.schema, slots, span)
    })
}

/// "`reverse_pred` can only be set to True if `src` is a scalar", and a number as `src` is of the kind of `dst`, float or integer
/// (tensor_copy_predicated reference of 2.33). Older references have neither rule, so both are only findings of `--strict`.
fn predicated(interp: &mut Interp<'_>, schema: &Schema, slots: &[Option<Arg>], span: Span) {
    if schema.position("reverse_pred").is_none() {
        return;
    }
    let slot = |name: &str| schema.position(name).and_then(|at| slots.get(at)).and_then(Option::as_ref);
    let what = match (slot("src"), slot("dst")) {
        (Some(Arg::View(_)), _) if matches!(slot("reverse_pred"), Some(Arg::Bool(true) | Arg::Int(1))) => {
            let what = format!("{}: `reverse_pred=True` with a tile as `src`", schema.path());
            let instead = "0.7 reverses the predicate only for a number as `src`: compute the opposite predicate, for example with nisa.tensor_scalar and nl.equal to 0";
            return reject(interp, span, &what, instead);
        }
        (Some(Arg::Float(x)), Some(Arg::View(dst))) if dst.dtype.is_int() => {
            format!("the float {x:?} as `src` for a `dst` of {}", dst.dtype)
        }
        (Some(Arg::Int(i)), Some(Arg::View(dst))) if !dst.dtype.is_int() => {
            format!("the integer {i} as `src` for a `dst` of {}", dst.dtype)
        }
        _ => return,
    };
    let instead =
        "the number must match the dtype of `dst`: write a float for a float tile, and an integer for an integer tile";
    reject(interp, span, &format!("{}: {what}", schema.path()), instead);
}

/// The reference of `dma_compute`: with a vector index, `unique_indices` must be True.
fn unique(schema: &Schema, slots: &[Option<Arg>], span: Span) -> EvalResult<()> {
    let promised = schema.position("unique_indices").and_then(|at| slots.get(at));
    let is_gather = |view: &View| matches!(view.indirect.as_deref(), Some(Indirect { index: Index::Vector(_), .. }));
    let gathers = |arg: &Arg| match arg {
        Arg::View(view) => is_gather(view),
        Arg::List(all) => all.iter().any(|arg| matches!(arg, Arg::View(view) if is_gather(view))),
        _ => false,
    };
    if !matches!(promised, Some(Some(Arg::Bool(false)))) || !slots.iter().flatten().any(gathers) {
        return Ok(());
    }
    let message = format!("{}: `unique_indices` is False, but must be True with a vector index", schema.path());
    Err(Raise::at("operand-value", message, span, "in this call").help("add up the rows with the same index first"))
}

/// The manual's table of operators has neither `divide` nor `mod` and `fmod` (nki.api.shared.rst, SDK 2.27 to 2.32), the compiler of NKI 0.6 reports
/// "unsupported operator 'divide'" for trn2 (several public reports) and "unsupported operator 'mod'" (one), and nki-library uses none of them.
fn report_divide(interp: &mut Interp<'_>, what: &str, operator: &str, span: Span) {
    let help = if operator == "divide" {
        "multiply by the reciprocal: nisa.reciprocal(dst=r, data=y), then op=nl.multiply; for a number, operand0=1.0 / n"
    } else {
        "for integers and a power of two, op=nl.bitwise_and with n - 1; else subtract n times the whole quotient"
    };
    let message = format!("nisa.{what}: the compiler has no operator nl.{operator}");
    let finding = Diagnostic::warning("divide-operator", message).at(span, "in this call").help(help);
    interp.report_once(finding, span);
}

/// "The two tiles must have the same partition axis size and the same number of elements per partition" (`tensor_tensor` in the manual, SDK 2.32). So an
/// instruction that combines tiles accepts free sizes in another order, but most likely a `permute` is missing.
fn report_order(interp: &mut Interp<'_>, schema: &Schema, slots: &[Option<Arg>], span: Span) {
    let has_dimensions = |arg: &Arg| matches!(arg, Arg::View(view) if view.free_dims().len() > 1);
    if !slots.iter().flatten().any(has_dimensions) || !schema.rules.iter().any(|rule| rule.id == "same-size") {
        return;
    }
    let mut views: SmallVec<[_; 4]> = SmallVec::new();
    for (operand, slot) in schema.operands.iter().zip(slots) {
        if let Some(Arg::View(view)) = slot {
            views.push((operand.name, view));
        }
    }
    let most = views.iter().map(|(_, view)| view.free_elements()).max();
    views.retain(|(_, view)| Some(view.free_elements()) == most);
    // A copy of one tile may well be a reshape.
    if views.len() < 3 {
        return;
    }
    let mut pairs = views.iter().enumerate().flat_map(|(i, a)| views[i + 1..].iter().map(move |b| (a, b)));
    let Some(((name, view), (other_name, other))) = pairs.find(|((_, a), (_, b))| has_reordered_sizes(a, b)) else {
        return;
    };
    let [shape, other_shape] = [view, other].map(|v| tuple_text(v.shape().iter().map(|&size| i64::from(size))));
    let message = format!(
        "{}: `{name}` has shape {shape}, `{other_name}` {other_shape}; elements are paired by position, not by index",
        schema.path()
    );
    let finding = Diagnostic::warning("element-order", message).at(span, "in this call").help(
        "permute one of them, if its dimensions are in another order; reshape it to the other's shape, if the order of the elements is right",
    );
    interp.report_once(finding, span);
}

/// Whether the free sizes above 1 of two views are the same, but in another order.
fn has_reordered_sizes(a: &View, b: &View) -> bool {
    let sizes = |view: &View| -> SmallVec<[u32; 4]> {
        view.free_dims().iter().map(|d| d.count).filter(|&count| count > 1).collect()
    };
    let (mut a, mut b) = (sizes(a), sizes(b));
    if a == b || a.len() != b.len() {
        return false;
    }
    a.sort_unstable();
    b.sort_unstable();
    a == b
}

/// Keywords that no schema lists: older spellings, and removed ones.
fn keyword(interp: &mut Interp<'_>, schema: &Schema, symbol: Symbol, args: &CallArgs) -> EvalResult<Option<usize>> {
    let keyword = interp.name(symbol);
    let keyword = &*keyword;
    let refuse = |slug: &'static str, message: String, help: &str| {
        Err(Raise::new(Diagnostic::error(slug, message).at(args.span, "in this call").help(help)))
    };
    let former = find(schema.name).and_then(|e| e.former.iter().find(|f| f.keyword == keyword));
    match (former.map(|f| f.now), keyword) {
        (Some(Now::Called(operand)), _) => Ok(schema.position(operand)),
        (Some(Now::Removed { version, instead }), _) => {
            let message = format!("{}: `{keyword}=` was removed in {version}", schema.path());
            refuse("removed-beta1", message, instead)
        }
        (_, "mask") => refuse(
            "removed-mask",
            format!("{}: `mask=` was removed", schema.path()),
            "bound the index instead: end = min(size, start + tile); use t[start:end] for every operand, so that the last tile is smaller",
        ),
        // NKI 0.1 took a dtype that is redundant with dst. The current compiler has no such parameter.
        (_, "dtype") if says_what_dst_says(interp, schema, args, symbol) => {
            let text = format!("{}: `dtype=`, which was removed,", schema.path());
            reject(interp, args.span, &text, "leave it out: the result has the dtype of dst");
            Ok(None)
        }
        (_, "dtype") => ignored_dtype(interp, schema, args, symbol),
        _ => {
            let mut diagnostic =
                Diagnostic::error("arguments", format!("{} has no parameter `{keyword}`", schema.path()))
                    .at(args.span, "in this call")
                    .note(signature(schema));
            let other = |name| schema.operands.iter().map(|o| o.name).find(|n| *n == name);
            let other = match keyword {
                // Other instructions call their source so.
                "src" => other("data"),
                "data" => other("src"),
                _ => None,
            };
            if let Some(name) = other.or_else(|| closest(keyword, schema.operands.iter().map(|o| o.name))) {
                diagnostic = diagnostic.help(format!("did you mean `{name}`?"));
            }
            Err(Raise::new(diagnostic))
        }
    }
}

/// `dtype=` that is not the dtype of dst: with a dst it has no effect, which is a warning; without, it is Beta 1's.
fn ignored_dtype(
    interp: &mut Interp<'_>,
    schema: &Schema,
    args: &CallArgs,
    keyword: Symbol,
) -> EvalResult<Option<usize>> {
    let given_dtype = args.keyword.iter().find(|(s, _)| *s == keyword).map(|(_, v)| v);
    if let (Some(dst), Some(value)) = (given_tensor(interp, &POLICY, schema, args, "dst"), given_dtype)
        && let Ok(dtype) = dtype(value, "dtype", args.span)
    {
        let own = dst.view.dtype;
        let message = format!("{}: `dtype={dtype}` has no effect: the result has dst's dtype, {own}", schema.path());
        let finding = Diagnostic::warning("ignored-dtype", message)
            .at(args.span, "in this call")
            .with(span_of(dst.storage.loc), format!("`{}` is allocated here", dst.storage.name))
            .help(format!(
                "leave `dtype=` out, which current releases do not have, or allocate dst with dtype=nl.{dtype}"
            ));
        interp.report_once(finding, args.span);
        return Ok(None);
    }
    let message = format!("{}: `dtype=` was removed", schema.path());
    Err(Raise::new(Diagnostic::error("removed-beta1", message).at(args.span, "in this call").help(
        "the result has the dtype of dst, which `dtype=` does not match: allocate dst=nl.ndarray(shape, dtype=...)",
    )))
}

/// Whether the value of this keyword is the dtype of the call's `dst`.
fn says_what_dst_says(interp: &Interp<'_>, schema: &Schema, args: &CallArgs, keyword: Symbol) -> bool {
    let given_dtype = args.keyword.iter().find(|(s, _)| *s == keyword).map(|(_, v)| v);
    match (given_tensor(interp, &POLICY, schema, args, "dst"), given_dtype) {
        (Some(dst), Some(value)) => dtype(value, "dtype", args.span).is_ok_and(|d| d == dst.view.dtype),
        _ => false,
    }
}

fn missing(interp: &Interp<'_>, schema: &Schema, args: &CallArgs, operand: &str) -> Box<Raise> {
    let writes_dst = schema.operands.first().is_some_and(|o| o.name == "dst" && o.role != Role::In);
    let dst_given_first = !args.positional.is_empty();
    let absent: Vec<&str> = schema
        .operands
        .iter()
        .filter(|o| o.default.is_none() && given(interp, &POLICY, schema, args, o.name).is_none())
        .map(|o| o.name)
        .collect();
    let beta1 = "instructions write to dst=..., which is the first argument, and return no tensor: make it with nl.ndarray, pass it as dst";
    if operand == "dst" {
        return Raise::new(
            Diagnostic::error("missing-dst", format!("{}: no `dst` to write the result to", schema.path()))
                .at(args.span, "in this call")
                .note(signature(schema))
                .help(format!("since Beta 2 {beta1}")),
        );
    }
    let list: Vec<String> = absent.iter().map(|n| format!("`{n}`")).collect();
    let slug = if writes_dst && dst_given_first && absent.len() == 1 { "missing-dst" } else { "missing-operand" };
    let mut diagnostic = Diagnostic::error(slug, format!("{} is missing {}", schema.path(), list.join(", ")))
        .at(args.span, "in this call")
        .note(signature(schema));
    if slug == "missing-dst" {
        diagnostic = diagnostic.help(format!("if this call was written for Beta 1: since Beta 2 {beta1}"));
    }
    Raise::new(diagnostic)
}
