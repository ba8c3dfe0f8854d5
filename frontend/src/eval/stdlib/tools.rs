//! `functools`, `itertools`, `operator`, `collections`.

use std::rc::Rc;

use nki_diag::Span;

use super::super::Interp;
use super::super::convert::given;
use super::super::error::{EvalResult, Raise};
use super::super::iterator::{Iter, Source};
use super::super::native::{CallArgs, NativeFn};
use super::super::value::*;
use super::math::int_of;
use crate::syntax::*;

pub(super) fn partial(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional
        .first()
        .map(|_| ())
        .ok_or_else(|| Raise::at("arguments", "partial() needs a function", args.span, "in this call"))?;
    let _ = interp;
    let mut positional = args.positional.into_vec();
    let function = positional.remove(0);
    Ok(Value::Partial(Rc::new(Partial { function, positional, keyword: args.keyword.into_vec() })))
}

/// `@wraps(function)`
pub(super) fn wraps(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let [wrapped] = args.positional.as_slice() else {
        return Err(Raise::at("arguments", "wraps() takes the function that is wrapped", args.span, "in this call"));
    };
    let function = Value::native(
        "functools.wraps",
        |interp, mut args| {
            args.positional.reverse();
            update_wrapper(interp, args)
        },
        0,
    );
    Ok(Value::Partial(Rc::new(Partial { function, positional: vec![wrapped.clone()], keyword: Vec::new() })))
}

/// `update_wrapper(wrapper, wrapped)`: copies the name and the module of a function to another one.
pub(super) fn update_wrapper(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let [wrapper, wrapped] = args.positional.as_slice() else {
        let message = "update_wrapper() takes the wrapper and the function that is wrapped";
        return Err(Raise::at("arguments", message, args.span, "in this call"));
    };
    if let Value::Function(function) = wrapper {
        let mut taken = |name| {
            // If the wrapped object has no name, the wrapper keeps its own.
            let theirs = interp.find_attr(wrapped, name, args.span)?;
            let value = match theirs {
                Some(value) => Some(value),
                None => interp.find_attr(wrapper, name, args.span)?,
            };
            Ok::<_, Box<Raise>>(value.unwrap_or(Value::None))
        };
        let (name, module) = (taken(sym::name)?, taken(sym::module)?);
        *function.wrapped.borrow_mut() = Some(Wrapped { function: wrapped.clone(), name, module });
    }
    Ok(wrapper.clone())
}

pub(super) fn reduce(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    args.positional_only(interp, "reduce", 2, 3)?;
    let items = interp.iter(&args.positional[1], span)?;
    let first = match args.positional.get(2) {
        Some(start) => Some(start.clone()),
        None => interp.next(&items, span)?,
    };
    let Some(mut total) = first else {
        return Err(Raise::at("value-error", "reduce() of an empty sequence", span, "the sequence is empty"));
    };
    while let Some(item) = interp.next(&items, span)? {
        total = interp.call(&args.positional[0], CallArgs::of([total, item], span))?;
    }
    Ok(total)
}

fn product(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let repeat = args.take_keyword(sym::repeat).and_then(|r| r.as_int()).unwrap_or(1).clamp(0, 16) as usize;
    let mut columns = Vec::new();
    for value in &args.positional {
        columns.push(interp.iterate(value, args.span)?);
    }
    let columns: Vec<_> = std::iter::repeat_n(columns, repeat).flatten().collect();
    let total = columns.iter().fold(1usize, |n, c| n.saturating_mul(c.len()));
    if total > 10_000_000 {
        return Err(Raise::at(
            "value-error",
            format!("a product of {total} items is too long"),
            args.span,
            "in this call",
        ));
    }
    interp.charge_items(total.saturating_mul(2 * columns.len() + 4), args.span)?;
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for column in &columns {
        rows =
            rows.iter().flat_map(|row| column.iter().map(move |v| row.iter().chain([v]).cloned().collect())).collect();
    }
    Ok(Iter::of("product", rows.into_iter().map(Value::tuple).collect()))
}

/// The lazy functions of `itertools`.
pub(super) fn itertools(name: &str) -> Option<NativeFn> {
    Some(match name {
        "product" => product,
        "combinations" => combinations,
        "permutations" => permutations,
        "chain" => |interp, args| {
            let iterables = interp.iter(&Value::list(args.positional.to_vec()), args.span)?;
            Ok(Iter::value("chain", Source::Chain(iterables, None)))
        },
        "zip_longest" => |interp, mut args| {
            let fill = args.take_keyword(sym::fillvalue).unwrap_or(Value::None);
            let columns = interp.iterators(&args.positional, args.span)?.into_iter().map(Some).collect();
            Ok(Iter::value("zip_longest", Source::ZipLongest(columns, fill)))
        },
        "accumulate" => |interp, args| {
            let span = args.span;
            let [items, function, initial] = args.bind(interp, "accumulate", ["iterable", "func", "initial"], 1)?;
            let items = interp.iter(&items.unwrap_or(Value::None), span)?;
            let items = match given(initial) {
                Some(first) => {
                    let both = Value::list(vec![Value::list(vec![first]), Value::Iterator(items)]);
                    let both = interp.iter(&both, span)?;
                    interp.iter(&Iter::value("chain", Source::Chain(both, None)), span)?
                }
                None => items,
            };
            Ok(Iter::value("accumulate", Source::Accumulate(given(function), None, items)))
        },
        "starmap" => |interp, args| over(interp, args, "starmap", Source::Starmap),
        "takewhile" => |interp, args| over(interp, args, "takewhile", Source::Takewhile),
        "dropwhile" => |interp, args| over(interp, args, "dropwhile", Source::Dropwhile),
        "filterfalse" => |interp, args| over(interp, args, "filterfalse", |f, items| Source::Filter(f, items, false)),
        "pairwise" => |interp, args| {
            args.positional_only(interp, "pairwise", 1, 1)?;
            let items = interp.iter(&args.positional[0], args.span)?;
            Ok(Iter::value("pairwise", Source::Pairwise(items, None)))
        },
        "cycle" => |interp, args| {
            args.positional_only(interp, "cycle", 1, 1)?;
            let items = interp.iter(&args.positional[0], args.span)?;
            Ok(Iter::value("cycle", Source::Cycle(items, Vec::new(), None)))
        },
        "count" => |interp, args| {
            let [start, step] = args.bind(interp, "count", ["start", "step"], 0)?;
            Ok(Iter::value("count", Source::Count(start.unwrap_or(Value::Int(0)), step.unwrap_or(Value::Int(1)))))
        },
        "repeat" => |interp, args| {
            let span = args.span;
            let [value, times] = args.bind(interp, "repeat", ["object", "times"], 1)?;
            let times = times.map(|t| int_of(interp, &t, "repeat", span)).transpose()?;
            let times = times.map(|t| u64::try_from(t).unwrap_or(0));
            Ok(Iter::value("repeat", Source::Repeat(value.unwrap_or(Value::None), times)))
        },
        "islice" => islice,
        _ => return None,
    })
}

/// `chain.from_iterable(iterables)`
pub(crate) fn chain_from(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "from_iterable", 1, 1)?;
    let iterables = interp.iter(&args.positional[0], args.span)?;
    Ok(Iter::value("chain", Source::Chain(iterables, None)))
}

/// `name(function, iterable)`
fn over(
    interp: &mut Interp<'_>,
    args: CallArgs,
    name: &'static str,
    source: fn(Value, Rc<Iter>) -> Source,
) -> EvalResult<Value> {
    args.positional_only(interp, name, 2, 2)?;
    let items = interp.iter(&args.positional[1], args.span)?;
    Ok(Iter::value(name, source(args.positional[0].clone(), items)))
}

/// `islice(iterable, stop)` and `islice(iterable, start, stop, step)`
fn islice(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    args.positional_only(interp, "islice", 2, 4)?;
    let number = |at: usize| match args.positional.get(at).filter(|v| !v.is_none()) {
        None => Ok(None),
        Some(value) => match u64::try_from(int_of(interp, value, "islice", span)?) {
            Ok(n) => Ok(Some(n)),
            Err(_) => {
                let message = "islice() takes None or ints of 0 and more";
                Err(Raise::at("value-error", message, span, "in this call"))
            }
        },
    };
    let (start, stop, step) = match args.positional.len() {
        2 => (None, number(1)?, None),
        _ => (number(1)?, number(2)?, number(3)?),
    };
    if step == Some(0) {
        return Err(Raise::at("value-error", "the step of islice() must be positive", span, "in this call"));
    }
    let items = interp.iter(&args.positional[0], span)?;
    let source = Source::Slice { items, skip: start.unwrap_or(0), left: stop, step: step.unwrap_or(1) };
    Ok(Iter::value("islice", source))
}

fn choose(items: &[Value], k: usize, ordered: bool, span: Span) -> EvalResult<Value> {
    let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..k {
        let mut next = Vec::new();
        for row in &rows {
            let from = if ordered { 0 } else { row.last().map_or(0, |l| l + 1) };
            next.extend(
                (from..items.len())
                    .filter(|i| !row.contains(i))
                    .map(|i| row.iter().copied().chain([i]).collect::<Vec<_>>()),
            );
        }
        rows = next;
        if rows.len() > 1_000_000 {
            return Err(Raise::at("value-error", "too many combinations", span, "in this call"));
        }
    }
    let chosen = rows.iter().map(|row| Value::tuple(row.iter().map(|i| items[*i].clone()).collect::<Vec<_>>()));
    Ok(Iter::of(if ordered { "permutations" } else { "combinations" }, chosen.collect()))
}

fn combinations(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "combinations", 2, 2)?;
    let items = interp.iterate(&args.positional[0], args.span)?;
    let k = int_of(interp, &args.positional[1], "combinations", args.span)?;
    choose(&items, k.clamp(0, 64) as usize, false, args.span)
}

fn permutations(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "permutations", 1, 2)?;
    let items = interp.iterate(&args.positional[0], args.span)?;
    let k = args.positional.get(1).and_then(Value::as_int).map_or(items.len(), |k| k.clamp(0, 64) as usize);
    choose(&items, k, true, args.span)
}

pub(super) fn operator(name: &str) -> Option<NativeFn> {
    macro_rules! binary {
        ($op:ident) => {
            |interp, args| {
                args.positional_only(interp, "operator", 2, 2)?;
                interp.binary(BinOp::$op, &args.positional[0], &args.positional[1], args.span)
            }
        };
    }
    macro_rules! compare {
        ($op:ident) => {
            |interp, args| {
                args.positional_only(interp, "operator", 2, 2)?;
                interp.compare(CmpOp::$op, &args.positional[0], &args.positional[1], args.span)
            }
        };
    }
    Some(match name {
        "add" => binary!(Add),
        "sub" => binary!(Sub),
        "mul" => binary!(Mul),
        "truediv" => binary!(Div),
        "floordiv" => binary!(FloorDiv),
        "mod" => binary!(Mod),
        "pow" => binary!(Pow),
        "and_" => binary!(BitAnd),
        "or_" => binary!(BitOr),
        "xor" => binary!(BitXor),
        "lshift" => binary!(LShift),
        "rshift" => binary!(RShift),
        "eq" => compare!(Eq),
        "ne" => compare!(Ne),
        "lt" => compare!(Lt),
        "le" => compare!(Le),
        "gt" => compare!(Gt),
        "ge" => compare!(Ge),
        "neg" => |interp, args| {
            args.positional_only(interp, "neg", 1, 1)?;
            interp.unary(UnaryOp::Neg, &args.positional[0], args.span)
        },
        "contains" => |interp, args| {
            args.positional_only(interp, "contains", 2, 2)?;
            interp.contains(&args.positional[0], &args.positional[1], args.span).map(Value::Bool)
        },
        "not_" => |interp, args| {
            args.positional_only(interp, "not_", 1, 1)?;
            interp.unary(UnaryOp::Not, &args.positional[0], args.span)
        },
        "getitem" => |interp, args| {
            args.positional_only(interp, "getitem", 2, 2)?;
            interp.get_item(&args.positional[0], &args.positional[1], args.span)
        },
        _ => return None,
    })
}

pub(super) fn defaultdict(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let factory = (!args.positional.is_empty()).then(|| args.positional.remove(0)).filter(|f| !f.is_none());
    let mut dict = interp.make_dict(args)?;
    dict.factory = factory;
    Ok(Value::dict(dict))
}
