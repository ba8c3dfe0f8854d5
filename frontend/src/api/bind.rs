//! The binder: `nisa.<name>(...)` to an instruction, driven by the registry's schemas alone.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use nki_isa::inst::{Entry, REGISTRY, find};
use nki_isa::schema::{Kind, Now, OperandSchema, Role, Schema};
use nki_isa::{Arg, Violation};

use super::beta2::Handle;
use super::errors::{closest, raise};
use super::state::site;
use super::values::{self, to_arg, wrong};
use super::view::Storage;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;
use crate::syntax::{Argument, ExprKind, StmtKind, Symbol, sym};

/// A documented instruction that the registry does not have.
pub(crate) fn not_yet(instruction: &str) -> Violation {
    Violation::new("unsupported-instruction", "", format!("nki.isa.{instruction} is not supported yet"))
        .help("the manual documents it, but this version has no model of it")
}

/// Runs `nisa.<REGISTRY[data]>(...)`.
pub(crate) fn call(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let index = args.data as usize;
    let entry = &REGISTRY[index];
    let keywords = match &interp.api.keywords[index] {
        Some(known) => known.clone(),
        None => {
            let made: Rc<[Symbol]> = entry.schema.operands.iter().map(|o| interp.sym(o.name)).collect();
            interp.api.keywords[index] = Some(made.clone());
            made
        }
    };
    let mut slots = std::mem::take(&mut interp.api.slots);
    slots.clear();
    slots.resize(entry.schema.operands.len(), None);
    let result = fill(interp, entry, &keywords, &args, &mut slots).and_then(|name| {
        let place = site(interp, args.span);
        match (entry.build)(&mut slots).and_then(|inst| interp.api.builder.emit(inst, place)) {
            Ok(()) => Ok(name),
            Err(violation) => Err(explain(interp, entry, &args, &violation)),
        }
    });
    interp.api.slots = slots;
    let name = result?;
    let at = interp.api.builder.last_node();
    if let Some(name) = name {
        interp.api.builder.name_node(at, &name).map_err(|v| super::errors::raise("", &v, args.span, &[]))?;
    }
    Ok(Value::Object(Rc::new(Handle(at))))
}

/// Sorts arguments into schema positions. Returns the instruction's name, if it has one.
fn fill(
    interp: &mut Interp<'_>,
    entry: &Entry,
    keywords: &[Symbol],
    args: &CallArgs,
    slots: &mut [Option<Arg>],
) -> EvalResult<Option<Rc<str>>> {
    let schema = entry.schema;
    if interp.options.strict {
        strict(interp, schema, args);
    }
    if args.positional.len() > slots.len() {
        return Err(Raise::new(
            Diagnostic::error(
                "arguments",
                format!(
                    "nisa.{} takes at most {} arguments, {} given",
                    schema.name,
                    slots.len(),
                    args.positional.len()
                ),
            )
            .at(args.span, "in this call")
            .note(signature(schema)),
        ));
    }
    for (at, value) in args.positional.iter().enumerate() {
        slots[at] = Some(operand(schema, at, value, args.span)?);
    }
    let mut name = None;
    for (symbol, value) in &args.keyword {
        if *symbol == sym::plain_name {
            match value {
                Value::None => {}
                Value::Str(text) => name = (!text.is_empty()).then(|| text.clone()),
                other => return Err(wrong(format_args!("nisa.{}: `name`", schema.name), "a string", other, args.span)),
            }
            continue;
        }
        let at = match keywords.iter().position(|k| k == symbol) {
            Some(at) => at,
            None => match irregular(interp, schema, *symbol, args)? {
                Some(at) => at,
                None => continue,
            },
        };
        if slots[at].is_some() {
            let message = format!("nisa.{} got `{}` twice", schema.name, schema.operands[at].name);
            return Err(Raise::at("arguments", message, args.span, "by position and by name"));
        }
        slots[at] = Some(operand(schema, at, value, args.span)?);
    }
    Ok(name)
}

/// One argument, with the checks that need the value itself.
fn operand(schema: &Schema, at: usize, value: &Value, span: Span) -> EvalResult<Arg> {
    if let Value::Register(register) = value
        && register.frozen
        && matches!(schema.operands[at].role, Role::Out | Role::InOut)
    {
        return Err(Raise::at(
            "frozen-register",
            format!("nisa.{} writes a loop variable, which cannot be written", schema.name),
            span,
            "this register is the variable of a dynamic loop",
        )
        .help("copy it first: r = nisa.register_alloc(); nisa.register_move(r, i)"));
    }
    to_arg(value).ok_or_else(|| {
        let o = &schema.operands[at];
        if let Value::Tensor(t) = value
            && let Err(empty) = values::not_empty(t, format_args!("nisa.{}: `{}`", schema.name, o.name), span)
        {
            return empty;
        }
        let message = format!("nisa.{}: `{}` takes {}, got a value of type {}", schema.name, o.name, kind_text(o.kind), value.type_name());
        let raise = Raise::at("operand-kind", message, span, format!("`{}`", o.name));
        match value {
            Value::Object(o) if o.as_any().is::<Handle>() => raise.help(
                "instructions return no tensor: they write to dst=, which is the first argument. Make dst with nl.ndarray and pass it on",
            ),
            Value::Native(f) => match f.name.split_once('.') {
                Some(("numpy", name)) => raise.help(format!("NumPy's functions are no operators: write nl.{name}")),
                _ if f.name == "nki.language.sum" => raise.help("the operator is nl.add"),
                _ => raise,
            },
            _ => raise,
        }
    })
}

/// What the official compiler refuses: integers and strings where an enum member belongs (migration guide, 0.2 to 0.3).
fn strict(interp: &mut Interp<'_>, schema: &Schema, args: &CallArgs) {
    for o in schema.operands {
        let of_enum = matches!(o.kind, Kind::Name(what) if what != "math operator");
        if of_enum && matches!(given(interp, schema, args, o.name), Some(Value::Int(_) | Value::Str(_))) {
            let text =
                format!("nisa.{}: `{}` given as a number or string instead of an enum member", schema.name, o.name);
            interp.strict_instead(
                args.span,
                &text,
                "numbers were members of enums up to NKI 0.2: write the member, as in nisa.engine.vector",
            );
        }
    }
}

/// Keywords that no schema lists: older spellings, and what was removed.
fn irregular(interp: &mut Interp<'_>, schema: &Schema, symbol: Symbol, args: &CallArgs) -> EvalResult<Option<usize>> {
    let keyword = interp.name(symbol);
    let keyword = &*keyword;
    let refuse = |slug: &'static str, message: String, help: &str| {
        Err(Raise::new(Diagnostic::error(slug, message).at(args.span, "in this call").help(help)))
    };
    let former = find(schema.name).and_then(|e| e.former.iter().find(|f| f.keyword == keyword));
    match (former.map(|f| f.now), keyword) {
        (Some(Now::Called(operand)), _) => Ok(schema.position(operand)),
        (Some(Now::Removed { version, instead }), _) => {
            let message = format!("nisa.{}: `{keyword}=` was removed in {version}", schema.name);
            refuse("removed-beta1", message, instead)
        }
        (_, "mask") => refuse(
            "removed-mask",
            format!("nisa.{}: `mask=` was removed", schema.name),
            "bound the index instead: end = min(size, start + tile); use t[start:end] for every operand, so that the last tile is smaller",
        ),
        // NKI 0.1 took a dtype that says what dst says already. The current compiler has no such parameter.
        (_, "dtype") if says_what_dst_says(interp, schema, args, symbol) => {
            let text = format!("nisa.{}: `dtype=`, which was removed,", schema.name);
            interp.strict_instead(args.span, &text, "leave it out: the result has the dtype of dst");
            Ok(None)
        }
        (_, "dtype") => ignored_dtype(interp, schema, args, symbol),
        _ => {
            let mut diagnostic =
                Diagnostic::error("arguments", format!("nisa.{} has no parameter `{keyword}`", schema.name))
                    .at(args.span, "in this call")
                    .note(signature(schema));
            if let Some(name) = closest(keyword, schema.operands.iter().map(|o| o.name)) {
                diagnostic = diagnostic.help(format!("did you mean `{name}`?"));
            }
            Err(Raise::new(diagnostic))
        }
    }
}

/// `dtype=` that is not the dtype of dst: with a dst it changes nothing, which is worth a warning; without, it is Beta 1's.
fn ignored_dtype(
    interp: &mut Interp<'_>,
    schema: &Schema,
    args: &CallArgs,
    keyword: Symbol,
) -> EvalResult<Option<usize>> {
    let given_dtype = args.keyword.iter().find(|(s, _)| *s == keyword).map(|(_, v)| v);
    if let (Some(Value::Tensor(dst)), Some(value)) = (given(interp, schema, args, "dst"), given_dtype)
        && let Ok(dtype) = values::dtype(value, "dtype", args.span)
    {
        let own = dst.view.dtype;
        let message = format!("nisa.{}: `dtype={dtype}` has no effect: the result has dst's dtype, {own}", schema.name);
        let finding = Diagnostic::warning("ignored-dtype", message)
            .at(args.span, "in this call")
            .with(super::errors::span_of(dst.storage.loc), format!("`{}` is made here", dst.storage.name))
            .help(format!(
                "leave `dtype=` out, which current releases do not have, or allocate dst with dtype=nl.{dtype}"
            ));
        interp.report_once(finding, args.span);
        return Ok(None);
    }
    let message = format!("nisa.{}: `dtype=` was removed", schema.name);
    Err(Raise::new(
        Diagnostic::error("removed-beta1", message).at(args.span, "in this call").help(
            "the result has the dtype of dst, and `dtype=` is not that: allocate dst=nl.ndarray(shape, dtype=...)",
        ),
    ))
}

/// Whether the value of this keyword is the dtype of the call's `dst`.
fn says_what_dst_says(interp: &Interp<'_>, schema: &Schema, args: &CallArgs, keyword: Symbol) -> bool {
    let given_dtype = args.keyword.iter().find(|(s, _)| *s == keyword).map(|(_, v)| v);
    match (given(interp, schema, args, "dst"), given_dtype) {
        (Some(Value::Tensor(dst)), Some(value)) => {
            values::dtype(value, "dtype", args.span).is_ok_and(|d| d == dst.view.dtype)
        }
        _ => false,
    }
}

/// The signature as one would write it: `nisa.tensor_copy(dst, src, engine=unknown)`.
pub(crate) fn signature(schema: &Schema) -> String {
    let parameters: Vec<String> = schema
        .operands
        .iter()
        .map(|o| match o.default {
            None => o.name.to_owned(),
            Some(default) => format!("{}={}", o.name, default_text(&default())),
        })
        .collect();
    format!("nisa.{}({}, name=None)", schema.name, parameters.join(", "))
}

fn default_text(arg: &Arg) -> String {
    match arg {
        Arg::None => "None".into(),
        Arg::Bool(b) => if *b { "True" } else { "False" }.into(),
        Arg::Int(i) => i.to_string(),
        Arg::Float(x) => format!("{x:?}"),
        Arg::Name(n) => n.to_string(),
        Arg::Text(t) => format!("{t:?}"),
        Arg::DType(d) => d.to_string(),
        Arg::List(l) if l.is_empty() => "()".into(),
        _ => "...".into(),
    }
}

fn kind_text(kind: Kind) -> String {
    match kind {
        Kind::View => "a tensor".into(),
        Kind::Scalar => "a number or a tensor of shape (P, 1)".into(),
        Kind::Number => "a number".into(),
        Kind::Int => "an int".into(),
        Kind::Bool => "a bool".into(),
        Kind::Name(what) => format!("an {what}").replace("an math", "a math").replace("an d", "a d"),
        Kind::Register => "a register".into(),
        Kind::RegisterOrInt => "a register or an int".into(),
        Kind::Ints => "an int or a tuple of ints".into(),
        Kind::Pattern => "a list of [step, count] pairs".into(),
        Kind::IntLists => "a list of lists of ints".into(),
        Kind::Views => "a list of tensors".into(),
        Kind::Numbers => "a list of numbers".into(),
        Kind::Text => "a string".into(),
        Kind::Optional(of) => format!("None or {}", kind_text(*of)),
        #[allow(unreachable_patterns, reason = "kinds may be added")]
        _ => "another kind of value".into(),
    }
}

/// The value given for an operand.
fn given<'a>(interp: &Interp<'_>, schema: &Schema, args: &'a CallArgs, operand: &str) -> Option<&'a Value> {
    let at = schema.position(operand)?;
    args.positional.get(at).or_else(|| args.keyword.iter().find(|(s, _)| &*interp.name(*s) == operand).map(|(_, v)| v))
}

/// A broken rule at a call.
fn explain(interp: &Interp<'_>, entry: &Entry, args: &CallArgs, violation: &Violation) -> Box<Raise> {
    let schema = entry.schema;
    let what = format!("nisa.{}", schema.name);
    // Rules of an instruction have this slug too, where one operand asks for another: they have a message of their own.
    let absent = |o: &OperandSchema| o.default.is_none() && given(interp, schema, args, o.name).is_none();
    // A call that lacks an operand is told so first: the others then stand at the wrong places.
    if matches!(violation.id, "missing-operand" | "operand-kind" | "operand-memory")
        && let Some(first) = schema.operands.iter().find(|o| absent(o))
    {
        return missing(interp, schema, args, first.name);
    }
    // The tensors it is about: the named operand, or those whose names the message has.
    let mut made: Vec<&Storage> = Vec::new();
    for o in schema.operands {
        if let Some(Value::Tensor(t)) = given(interp, schema, args, o.name) {
            let named = o.name == violation.operand
                || violation.message.contains(&format!("`{}`", o.name))
                || violation.message.contains(&format!("`{}`", t.storage.name));
            if named && !made.iter().any(|s| s.id == t.storage.id) {
                made.push(&t.storage);
            }
        }
    }
    let mut error = raise(&what, violation, args.span, &made);
    if violation.id == "operand-memory"
        && let Some(Value::Tensor(t)) = given(interp, schema, args, violation.operand)
        && t.storage.space == nki_isa::Space::Sbuf
        && let made = interp.source_text(super::errors::span_of(t.storage.loc))
        && made.starts_with("nl.ndarray(")
        && !made.contains("buffer")
    {
        error = error.help(format!(
            "`{}` is made without `buffer=`, so it is in SBUF: add buffer=nl.psum if it is to be in PSUM",
            t.storage.name
        ));
    }
    if let Some(at) = operand_span(interp, schema, args, violation.operand) {
        // Point at the operand rather than at the whole call.
        let label = format!("`{}`", violation.operand);
        error.diagnostic.labels.retain(|l| !l.primary);
        let rest = std::mem::take(&mut error.diagnostic.labels);
        error.diagnostic = error.diagnostic.at(at, label);
        error.diagnostic.labels.extend(rest);
    }
    error
}

fn missing(interp: &Interp<'_>, schema: &Schema, args: &CallArgs, operand: &str) -> Box<Raise> {
    let writes_dst = schema.operands.first().is_some_and(|o| o.name == "dst" && o.role != Role::In);
    let dst_given_first = !args.positional.is_empty();
    let absent: Vec<&str> = schema
        .operands
        .iter()
        .filter(|o| o.default.is_none() && given(interp, schema, args, o.name).is_none())
        .map(|o| o.name)
        .collect();
    let beta1 = "instructions write to dst=..., which is the first argument, and return no tensor: make it with nl.ndarray, pass it as dst";
    if operand == "dst" {
        return Raise::new(
            Diagnostic::error("missing-dst", format!("nisa.{}: no `dst` to write the result to", schema.name))
                .at(args.span, "in this call")
                .note(signature(schema))
                .help(format!("since Beta 2 {beta1}")),
        );
    }
    let list: Vec<String> = absent.iter().map(|n| format!("`{n}`")).collect();
    let slug = if writes_dst && dst_given_first && absent.len() == 1 { "missing-dst" } else { "missing-operand" };
    let mut diagnostic = Diagnostic::error(slug, format!("nisa.{} misses {}", schema.name, list.join(", ")))
        .at(args.span, "in this call")
        .note(signature(schema));
    if slug == "missing-dst" {
        diagnostic = diagnostic.help(format!("if this call was written for Beta 1: since Beta 2 {beta1}"));
    }
    Raise::new(diagnostic)
}

/// Where the expression of an operand is written. Only for messages: the call's text is parsed again.
fn operand_span(interp: &Interp<'_>, schema: &Schema, args: &CallArgs, operand: &str) -> Option<Span> {
    let at = schema.position(operand)?;
    let text = interp.sources.text(args.span.file)?.get(args.span.start as usize..args.span.end as usize)?;
    let mut names = crate::syntax::Interner::new();
    let (module, _) = crate::parse::parse(args.span.file, text, &mut names);
    let StmtKind::Expr(call) = &module.body.first()?.kind else { return None };
    let ExprKind::Call(_, arguments) = &call.kind else { return None };
    let mut position = 0;
    for argument in arguments {
        let expr = match argument {
            Argument::Positional(e) => {
                position += 1;
                if position - 1 != at {
                    continue;
                }
                e
            }
            Argument::Keyword(k, e) if &**names.name(*k) == operand => e,
            // What comes after `*args` has no known position.
            Argument::Star(_) => return None,
            _ => continue,
        };
        let base = args.span.start;
        return Some(Span { file: args.span.file, start: base + expr.span.start, end: base + expr.span.end });
    }
    None
}
