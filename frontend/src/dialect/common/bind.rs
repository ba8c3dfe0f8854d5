//! The binder: from `nisa.<name>(...)` to an instruction, driven by the registry's schemas alone.

use std::fmt;
use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use nki_isa::inst::{Entry, REGISTRY};
use nki_isa::schema::{Kind, OperandSchema, Role, Schema};
use nki_isa::{Arg, Inst, Violation};
use smallvec::SmallVec;

use super::errors::raise;
use super::handles::Handle;
use super::registers::Register;
use super::repeat;
use super::state::{site, state};
use super::strict::reject;
use super::values::{self, to_arg};
use crate::build::builder::NodeAt;
use crate::build::grid::Grid;
use crate::build::scalar::Scalar;
use crate::build::tensor::{Storage, Tensor};
use crate::eval::Interp;
use crate::eval::convert::wrong;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;
use crate::syntax::{Argument, ExprKind, StmtKind, Symbol, sym};

/// A dialect's treatment of calls that deviate from an instruction's schema.
pub(crate) struct Policy {
    /// A keyword that the schema does not list: the position of its operand, or none if it has no effect.
    pub(crate) keyword: fn(&mut Interp<'_>, &Schema, Symbol, &CallArgs) -> EvalResult<Option<usize>>,
    /// The operand index of a positional argument.
    pub(crate) position: fn(&Schema, usize) -> Option<usize>,
    /// An operand with a dialect-specific spelling.
    pub(crate) operand: fn(&Value, &OperandSchema) -> Option<Arg>,
    /// The error of a call that lacks an operand.
    pub(crate) missing: fn(&Interp<'_>, &Schema, &CallArgs, &str) -> Box<Raise>,
    /// Operands that the dialect adds to calls without them.
    pub(crate) completes: &'static [&'static str],
    /// The suggested replacement for the result of an instruction as an operand.
    pub(crate) handle_help: &'static str,
}

/// Fills in missing operands of a call, before the instruction is built.
pub(crate) type Complete<'c> = &'c mut dyn FnMut(&mut Interp<'_>, &Entry, &mut [Option<Arg>]) -> EvalResult<()>;

/// Runs `nisa.<REGISTRY[data]>(...)`, which returns a [`Handle`]. `complete` is not called for a call that repeats another one.
pub(crate) fn call(
    interp: &mut Interp<'_>,
    policy: &Policy,
    args: CallArgs,
    complete: Complete<'_>,
) -> EvalResult<Value> {
    if let Some(again) = repeat::instruction(interp, &args) {
        let at =
            again.map_err(|violation| explain(interp, policy, &REGISTRY[args.data as usize], &args, &violation))?;
        return Ok(Value::object(Handle(at)));
    }
    let wanted = repeat::wants_instruction(interp, &args);
    let built = build(interp, policy, &args, complete)?;
    let kept = (wanted && built.is_plain).then(|| built.inst.clone());
    let at = append(interp, policy, &args, built)?;
    if let Some(inst) = kept {
        let schema = inst.schema();
        let keywords = keywords(interp, args.data as usize);
        let by_position = (0..args.positional.len()).map(|at| (policy.position)(schema, at));
        let by_name = args.keyword.iter().map(|(name, _)| keywords.iter().position(|k| k == name));
        let given: SmallVec<[Option<usize>; 8]> = by_position.chain(by_name).collect();
        repeat::learn_instruction(interp, args, inst, |operand| {
            let wanted = schema.position(operand);
            given.iter().position(|&at| at.is_some() && at == wanted)
        });
    }
    Ok(Value::object(Handle(at)))
}

/// The operands of a call, without creating an instruction.
pub(crate) fn operands(interp: &mut Interp<'_>, policy: &Policy, args: CallArgs) -> EvalResult<Vec<Option<Arg>>> {
    let entry = &REGISTRY[args.data as usize];
    let keywords = keywords(interp, args.data as usize);
    let mut slots = vec![None; entry.schema.operands.len()];
    fill(interp, policy, entry, &keywords, &args, &mut slots)?;
    Ok(slots)
}

/// The keywords of an instruction.
fn keywords(interp: &mut Interp<'_>, index: usize) -> Rc<[Symbol]> {
    match &state(interp).keywords[index] {
        Some(known) => known.clone(),
        None => {
            let made: Rc<[Symbol]> = REGISTRY[index].schema.operands.iter().map(|o| interp.sym(o.name)).collect();
            state(interp).keywords[index] = Some(made.clone());
            made
        }
    }
}

/// Emits the instruction of a call.
pub(crate) fn place(
    interp: &mut Interp<'_>,
    policy: &Policy,
    args: CallArgs,
    complete: Complete<'_>,
) -> EvalResult<NodeAt> {
    let built = build(interp, policy, &args, complete)?;
    append(interp, policy, &args, built)
}

/// The instruction of a call.
struct Built {
    inst: Inst,
    name: Option<Rc<str>>,
    /// Whether the call follows the schema in every argument and has no name.
    is_plain: bool,
}

fn build(interp: &mut Interp<'_>, policy: &Policy, args: &CallArgs, complete: Complete<'_>) -> EvalResult<Built> {
    let index = args.data as usize;
    let entry = &REGISTRY[index];
    let keywords = keywords(interp, index);
    let mut slots = std::mem::take(&mut state(interp).slots);
    slots.clear();
    slots.resize(entry.schema.operands.len(), None);
    let result = fill(interp, policy, entry, &keywords, args, &mut slots).and_then(|(name, is_plain)| {
        complete(interp, entry, &mut slots)?;
        match state(interp).builder.make(entry, &mut slots) {
            Ok(inst) => Ok(Built { inst, name, is_plain }),
            Err(violation) => Err(explain(interp, policy, entry, args, &violation)),
        }
    });
    state(interp).slots = slots;
    result
}

/// Checks an instruction and adds it to the program.
fn append(interp: &mut Interp<'_>, policy: &Policy, args: &CallArgs, built: Built) -> EvalResult<NodeAt> {
    let place = site(interp, args.span);
    if let Err(violation) = state(interp).builder.emit(built.inst, place) {
        return Err(explain(interp, policy, &REGISTRY[args.data as usize], args, &violation));
    }
    let builder = &mut state(interp).builder;
    let at = builder.last_node();
    if let Some(name) = built.name {
        builder.name_node(at, &name).map_err(|v| raise("", &v, args.span, &[]))?;
    }
    Ok(at)
}

/// Sorts arguments into schema positions. Returns the instruction's name, if any, and whether the schema has all arguments.
fn fill(
    interp: &mut Interp<'_>,
    policy: &Policy,
    entry: &Entry,
    keywords: &[Symbol],
    args: &CallArgs,
    slots: &mut [Option<Arg>],
) -> EvalResult<(Option<Rc<str>>, bool)> {
    let schema = entry.schema;
    if interp.options.strict {
        strict(interp, policy, schema, args);
    }
    let most = (0..).take_while(|&at| (policy.position)(schema, at).is_some()).count();
    let mut name = None;
    let mut is_plain = true;
    // `name` is the last parameter of every signature.
    let last = if most == schema.operands.len() { args.positional.get(most) } else { None };
    if args.positional.len() == most + 1
        && let Some(given @ (Value::None | Value::Str(_))) = last
    {
        (name, is_plain) = (instruction_name(format_args!("{}", schema.path()), given, args.span)?, false);
    } else if args.positional.len() > most {
        return Err(Raise::new(
            Diagnostic::error(
                "arguments",
                format!("{} takes at most {} arguments, {} given", schema.path(), most, args.positional.len()),
            )
            .at(args.span, "in this call")
            .note(signature(schema)),
        ));
    }
    for (at, value) in args.positional.iter().enumerate() {
        let Some(at) = (policy.position)(schema, at) else { continue };
        slots[at] = Some(operand(policy, schema, at, value, args.span)?);
    }
    for (symbol, value) in &args.keyword {
        if *symbol == sym::plain_name {
            if last.is_some() {
                let message = format!("{} got `name` twice", schema.path());
                return Err(Raise::at("arguments", message, args.span, "by position and by name"));
            }
            (name, is_plain) = (instruction_name(format_args!("{}", schema.path()), value, args.span)?, false);
            continue;
        }
        let at = match keywords.iter().position(|k| k == symbol) {
            Some(at) => at,
            None => {
                is_plain = false;
                match (policy.keyword)(interp, schema, *symbol, args)? {
                    Some(at) => at,
                    None => continue,
                }
            }
        };
        if slots[at].is_some() {
            let message = format!("{} got `{}` twice", schema.path(), schema.operands[at].name);
            return Err(Raise::at("arguments", message, args.span, "by position and by name"));
        }
        slots[at] = Some(operand(policy, schema, at, value, args.span)?);
    }
    Ok((name, is_plain))
}

/// The name in the argument `name` of the function `what`; `None` and the empty string are none.
pub(super) fn instruction_name(what: impl fmt::Display, value: &Value, span: Span) -> EvalResult<Option<Rc<str>>> {
    match value {
        Value::None => Ok(None),
        Value::Str(text) => Ok((!text.is_empty()).then(|| text.clone())),
        other => Err(wrong(format_args!("{what}: `name`"), "a string", other, span)),
    }
}

/// One argument, with the checks that depend on the value itself.
fn operand(policy: &Policy, schema: &Schema, at: usize, value: &Value, span: Span) -> EvalResult<Arg> {
    let frozen = value.downcast::<Register>().is_some_and(|r| r.frozen);
    if matches!(schema.operands[at].role, Role::Out | Role::InOut) && (frozen || value.downcast::<Scalar>().is_some()) {
        let (what, label) = match frozen || value.downcast::<Scalar>().is_some_and(|s| s.loop_variable) {
            true => ("a loop variable", "this is the variable of a dynamic loop"),
            false => ("a scalar", "this scalar keeps its value"),
        };
        return Err(Raise::at(
            "frozen-register",
            format!("{} writes {what}, which cannot be written", schema.path()),
            span,
            label,
        )
        .help("copy it first: r = nisa.register_alloc(); nisa.register_move(r, i)"));
    }
    (policy.operand)(value, &schema.operands[at]).or_else(|| to_arg(value)).ok_or_else(|| {
        let o = &schema.operands[at];
        if let Some(t) = value.downcast::<Tensor>()
            && let Err(empty) = values::not_empty(t, format_args!("{}: `{}`", schema.path(), o.name), span)
        {
            return empty;
        }
        let got = match value {
            Value::Host(host) => format!("`{}`, which has no value in a kernel", host.path),
            _ => format!("a value of type {}", value.type_name()),
        };
        let message = format!("{}: `{}` takes {}, got {got}", schema.path(), o.name, kind_text(o.kind));
        let raise = Raise::at("operand-kind", message, span, format!("`{}`", o.name));
        match value {
            Value::Object(_) if value.downcast::<Handle>().is_some() => raise.help(policy.handle_help),
            Value::Object(_) if value.downcast::<Grid>().is_some() => {
                raise.help("a grid has only the coordinates of tiles: write `.data`, the tensor of its cells")
            }
            Value::Native(f) => match f.name.split_once('.') {
                Some(("numpy", name)) => raise.help(format!("NumPy functions are not operators: write nl.{name}")),
                _ if f.name == "nki.language.sum" => raise.help("the operator is nl.add"),
                _ => raise,
            },
            Value::Host(host) => match host.path.split_once('.') {
                Some(("numpy" | "operator", name)) => {
                    raise.help(format!("Python functions are not operators: write nl.{name}"))
                }
                _ => match &host.reason {
                    Some(reason) => raise.note(reason.clone()),
                    None => raise,
                },
            },
            _ => raise,
        }
    })
}

/// Rejected by the official compiler: integers and strings instead of enum members (migration guide, 0.2 to 0.3).
fn strict(interp: &mut Interp<'_>, policy: &Policy, schema: &Schema, args: &CallArgs) {
    for o in schema.operands {
        let of_enum = matches!(o.kind, Kind::Name(what) if what != "math operator");
        if of_enum && matches!(given(interp, policy, schema, args, o.name), Some(Value::Int(_) | Value::Str(_))) {
            let text = format!("{}: `{}` given as a number or string instead of an enum member", schema.path(), o.name);
            reject(
                interp,
                args.span,
                &text,
                "numbers stood for enum members up to NKI 0.2: write the member, as in nisa.engine.vector",
            );
        }
    }
}

/// The signature as in source code: `nisa.tensor_copy(dst, src, engine=unknown)`.
pub(crate) fn signature(schema: &Schema) -> String {
    let parameters: Vec<String> = schema
        .operands
        .iter()
        .map(|o| match o.default {
            None => o.name.to_owned(),
            Some(default) => format!("{}={}", o.name, default_text(&default())),
        })
        .collect();
    format!("{}({}, name=None)", schema.path(), parameters.join(", "))
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
        Kind::Name(what) if what.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {what}"),
        Kind::Name(what) => format!("a {what}"),
        Kind::Register => "a register".into(),
        Kind::RegisterOrInt => "a register or an int".into(),
        Kind::Ints => "an int or a tuple of ints".into(),
        Kind::Pattern => "a list of [step, count] pairs with counts from 1".into(),
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
pub(crate) fn given<'a>(
    interp: &Interp<'_>,
    policy: &Policy,
    schema: &Schema,
    args: &'a CallArgs,
    operand: &str,
) -> Option<&'a Value> {
    let operand_at = schema.position(operand)?;
    let at = (0..args.positional.len()).find(|&at| (policy.position)(schema, at) == Some(operand_at));
    match at {
        Some(at) => args.positional.get(at),
        None => args.keyword.iter().find(|(s, _)| &*interp.name(*s) == operand).map(|(_, v)| v),
    }
}

/// The tensor given for an operand.
pub(crate) fn given_tensor<'a>(
    interp: &Interp<'_>,
    policy: &Policy,
    schema: &Schema,
    args: &'a CallArgs,
    operand: &str,
) -> Option<&'a Tensor> {
    given(interp, policy, schema, args, operand)?.downcast()
}

/// A broken rule of a call.
fn explain(interp: &Interp<'_>, policy: &Policy, entry: &Entry, args: &CallArgs, violation: &Violation) -> Box<Raise> {
    let schema = entry.schema;
    let what = schema.path().to_string();
    // Rules of an instruction have this slug too, if one operand requires another: they have their own message.
    let absent = |o: &OperandSchema| {
        o.default.is_none()
            && !policy.completes.contains(&o.name)
            && given(interp, policy, schema, args, o.name).is_none()
    };
    // A missing operand is reported first: it shifts the positions of the others.
    if matches!(violation.id, "missing-operand" | "operand-kind" | "operand-memory")
        && let Some(first) = schema.operands.iter().find(|o| absent(o))
    {
        return (policy.missing)(interp, schema, args, first.name);
    }
    // The related tensors: the named operand, or those whose names are in the message.
    let mut made: Vec<&Storage> = Vec::new();
    for o in schema.operands {
        if let Some(t) = given_tensor(interp, policy, schema, args, o.name) {
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
        && let Some(t) = given_tensor(interp, policy, schema, args, violation.operand)
        && t.storage.space == nki_isa::Space::Sbuf
        && let made = interp.source_text(super::errors::span_of(t.storage.loc))
        && made.starts_with("nl.ndarray(")
        && !made.contains("buffer")
    {
        error = error.help(format!(
            "`{}` is allocated without `buffer=`, so it is in SBUF: add buffer=nl.psum if it should be in PSUM",
            t.storage.name
        ));
    }
    if let Some(at) = operand_span(interp, policy, schema, args, violation.operand) {
        // Point at the operand rather than at the whole call.
        let label = format!("`{}`", violation.operand);
        error.diagnostic.labels.retain(|l| !l.primary);
        let rest = std::mem::take(&mut error.diagnostic.labels);
        error.diagnostic = error.diagnostic.at(at, label);
        error.diagnostic.labels.extend(rest);
    }
    error
}

/// The location of an operand's expression. Only for messages: the call's text is parsed again.
fn operand_span(interp: &Interp<'_>, policy: &Policy, schema: &Schema, args: &CallArgs, operand: &str) -> Option<Span> {
    let at = schema.position(operand)?;
    let text = interp.sources.text(args.span.file)?.get(args.span.start as usize..args.span.end as usize)?;
    let mut names = crate::syntax::Interner::new();
    let (module, _) = crate::syntax::parse::parse(args.span.file, text, &mut names);
    let StmtKind::Expr(call) = &module.body.first()?.kind else { return None };
    let ExprKind::Call(_, arguments) = &call.kind else { return None };
    let mut position = 0;
    for argument in arguments {
        let expr = match argument {
            Argument::Positional(e) => {
                position += 1;
                if (policy.position)(schema, position - 1) != Some(at) {
                    continue;
                }
                e
            }
            Argument::Keyword(k, e) if &**names.name(*k) == operand => e,
            // Arguments after `*args` have no known position.
            Argument::Star(_) => return None,
            _ => continue,
        };
        let base = args.span.start;
        return Some(Span { file: args.span.file, start: base + expr.span.start, end: base + expr.span.end });
    }
    None
}
