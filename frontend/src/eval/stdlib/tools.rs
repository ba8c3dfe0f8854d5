//! `functools`, `itertools`, `operator`, `collections`.

use std::rc::Rc;

use nki_diag::Span;

use super::super::Interp;
use super::super::error::{EvalResult, Raise};
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

pub(super) fn reduce(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    args.positional_only(interp, "reduce", 2, 3)?;
    let mut items = interp.iterate(&args.positional[1], span)?.into_iter();
    let Some(mut total) = args.positional.get(2).cloned().or_else(|| items.next()) else {
        return Err(Raise::at("value-error", "reduce() of nothing", span, "the sequence is empty"));
    };
    for item in items {
        total = interp.call(&args.positional[0], CallArgs::of([total, item], span))?;
    }
    Ok(total)
}

pub(super) fn product(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
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
    Ok(Value::list(rows.into_iter().map(Value::tuple).collect()))
}

pub(super) fn chain(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let mut out = Vec::new();
    for value in &args.positional {
        out.extend(interp.iterate(value, args.span)?);
    }
    Ok(Value::list(out))
}

pub(super) fn choose(items: &[Value], k: usize, ordered: bool, span: Span) -> EvalResult<Value> {
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
    Ok(Value::list(
        rows.iter().map(|row| Value::tuple(row.iter().map(|i| items[*i].clone()).collect::<Vec<_>>())).collect(),
    ))
}

pub(super) fn combinations(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "combinations", 2, 2)?;
    let items = interp.iterate(&args.positional[0], args.span)?;
    let k = int_of(interp, &args.positional[1], "combinations", args.span)?;
    choose(&items, k.clamp(0, 64) as usize, false, args.span)
}

pub(super) fn permutations(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "permutations", 1, 2)?;
    let items = interp.iterate(&args.positional[0], args.span)?;
    let k = args.positional.get(1).and_then(Value::as_int).map_or(items.len(), |k| k.clamp(0, 64) as usize);
    choose(&items, k, true, args.span)
}

pub(super) fn zip_longest(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let fill = args.take_keyword(sym::fillvalue).unwrap_or(Value::None);
    let mut columns = Vec::new();
    for value in &args.positional {
        columns.push(interp.iterate(value, args.span)?);
    }
    let n = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = |i: usize| columns.iter().map(|c| c.get(i).cloned().unwrap_or_else(|| fill.clone())).collect::<Vec<_>>();
    Ok(Value::list((0..n).map(|i| Value::tuple(row(i))).collect()))
}

pub(super) fn accumulate(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "accumulate", 1, 2)?;
    let mut out: Vec<Value> = Vec::new();
    for item in interp.iterate(&args.positional[0], args.span)? {
        let next = match (out.last().cloned(), args.positional.get(1)) {
            (None, _) => item,
            (Some(total), Some(function)) => interp.call(function, CallArgs::of([total, item], args.span))?,
            (Some(total), None) => interp.binary(BinOp::Add, &total, &item, args.span)?,
        };
        out.push(next);
    }
    Ok(Value::list(out))
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
