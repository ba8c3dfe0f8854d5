//! Calls of functions of tiles: their arguments, and how they run with a mask.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use nki_isa::names::AluOp;
use nki_isa::{DType, Imm};

use super::access::Place;
use super::affine::{IndexTile, Moved};
use super::arithmetic::operator;
use super::clips::{narrowed, of_rank, of_reduction};
use super::instruction::iota_tile;
use super::mask::{check_reduced, clip_of};
use crate::build;
use crate::build::lower::{Lower, Operand};
use crate::build::tensor::{Storage, Tensor};
use crate::dialect::common::clip::Clip;
use crate::dialect::common::errors::raise;
use crate::dialect::common::state::{site, state, target_name};
use crate::eval::Interp;
use crate::eval::convert::{given, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::stdlib::dtype::dtype as to_dtype;
use crate::eval::value::Value;
use crate::syntax::Symbol;

pub(super) fn opt_dtype(value: Option<Value>, what: &str, span: Span) -> EvalResult<Option<DType>> {
    given(value).map(|v| to_dtype(&v, format_args!("{what}: dtype"), span)).transpose()
}

/// "currently `dtype` and `compute_dtype` behave the same, both sets internal compute and return dtype" (nl.softmax, nl.rms_norm).
pub(super) fn either_dtype(
    dtype: Option<Value>,
    computed: Option<Value>,
    what: &str,
    span: Span,
) -> EvalResult<Option<DType>> {
    Ok(opt_dtype(dtype, what, span)?.or(opt_dtype(computed, what, span)?))
}

/// A tile or a number.
pub(super) fn operand(value: &Value, what: &str, span: Span) -> EvalResult<Operand> {
    if let Some(place) = Place::of(value, what, span)? {
        return place.tensor(None, span).map(Operand::Tile);
    }
    match value {
        Value::Float(x) => Ok(Operand::Number(Imm::Float(*x))),
        other => match other.as_int() {
            Some(i) => Ok(Operand::Number(Imm::Int(i))),
            None => Err(wrong(what, "a tile or a number", other, span)),
        },
    }
}

pub(super) fn tile_of(operand: &Operand) -> build::Result<&Tensor> {
    match operand {
        Operand::Tile(t) => Ok(t),
        Operand::Number(_) => Err(nki_isa::Violation::new("operand-kind", "", "takes a tile, got a number")),
    }
}

pub(super) fn need(value: Option<Value>) -> Value {
    value.unwrap_or(Value::None)
}

/// Removes a keyword from the arguments.
pub(super) fn take(interp: &mut Interp<'_>, args: &mut CallArgs, name: &str) -> Option<Value> {
    let symbol = interp.sym(name);
    given(args.take_keyword(symbol))
}

/// Sorts the arguments into the parameters `names`, of which the first `required` are mandatory. Other keywords have no effect: most functions took
/// `**kwargs`.
pub(super) fn bind_known<const N: usize>(
    interp: &mut Interp<'_>,
    mut args: CallArgs,
    what: &str,
    names: [&str; N],
    required: usize,
) -> EvalResult<[Option<Value>; N]> {
    let is_unknown = |symbol: &Symbol| !names.contains(&&*interp.name(*symbol));
    let unknown: Vec<Symbol> = args.keyword.iter().map(|(symbol, _)| *symbol).filter(is_unknown).collect();
    if !unknown.is_empty() {
        let quoted: Vec<String> = unknown.iter().map(|symbol| format!("`{}=`", interp.name(*symbol))).collect();
        let verb = if quoted.len() == 1 { "has" } else { "have" };
        let finding =
            Diagnostic::warning("ignored-argument", format!("{what}: {} {verb} no effect", quoted.join(", ")))
                .at(args.span, "in this call")
                .note(format!("it has: {}", names.join(", ")))
                .help("Beta 1 ignored unknown keywords: leave it out");
        interp.report_once(finding, args.span);
        for symbol in unknown {
            args.take_keyword(symbol);
        }
    }
    args.bind(interp, what, names, required)
}

/// Rejects a partial mask of an operation that moves elements to other axes.
pub(super) fn all_or_nothing(mask: Option<&Value>, what: &str, span: Span) -> EvalResult<()> {
    match clip_of(mask, span)? {
        Some(clip) if !clip.is_empty() && clip.restricts() => Err(no_mask(what, span)),
        _ => Ok(()),
    }
}

/// The error for `mask=` where it is not supported.
pub(super) fn no_mask(what: &str, span: Span) -> Box<Raise> {
    Raise::at("bad-mask", format!("{what} with mask="), span, "here")
        .help("restrict the operands instead: slices or index tiles of the part that is used")
}

/// Runs a lowering at the location of the call.
pub(super) fn lower<T>(
    interp: &mut Interp<'_>,
    what: &str,
    span: Span,
    about: &[&Storage],
    run: impl FnOnce(&mut Lower<'_>) -> build::Result<T>,
) -> EvalResult<T> {
    let name = target_name(interp, span);
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: &name };
    run(&mut lower).map_err(|v| raise(what, &v, span, about))
}

/// A function of tiles that returns one, of the parts left by a mask: [`super::mask::clips_of`] for elementwise functions, else
/// [`super::mask::one_clip`].
pub(super) fn compute(
    interp: &mut Interp<'_>,
    what: &str,
    span: Span,
    clips: Option<Vec<Clip>>,
    operands: &[&Value],
    run: impl Fn(&mut Lower<'_>, &[Operand]) -> build::Result<Tensor>,
) -> EvalResult<Value> {
    masked(interp, what, span, clips, operands, None, run)
}

/// [`compute`] whose result lacks the axes `reduced` of the first operand.
pub(super) fn masked(
    interp: &mut Interp<'_>,
    what: &str,
    span: Span,
    clips: Option<Vec<Clip>>,
    operands: &[&Value],
    reduced: Option<&[i64]>,
    run: impl Fn(&mut Lower<'_>, &[Operand]) -> build::Result<Tensor>,
) -> EvalResult<Value> {
    let operands = with_numbers(interp, operands, what, span)?;
    let places = operands.iter().map(|value| Place::of(value, what, span)).collect::<EvalResult<Vec<_>>>()?;
    let widest = places.iter().flatten().map(Place::rank).max().unwrap_or(0);
    let mut about: Vec<Rc<Storage>> = Vec::new();
    for place in places.iter().flatten() {
        about.push(place.outline(span)?.storage);
    }
    let about: Vec<&Storage> = about.iter().map(|s| &**s).collect();
    let each = |of: &dyn Fn(&Place) -> EvalResult<Tensor>| {
        let one = |(value, place): (&Value, &Option<Place>)| match place {
            Some(place) => of(place).map(Operand::Tile),
            None => operand(value, what, span),
        };
        operands.iter().zip(&places).map(one).collect::<EvalResult<Vec<_>>>()
    };
    let Some(clips) = clips else {
        let parts = each(&|place| place.tensor(None, span))?;
        let made = lower(interp, what, span, &about, |l| {
            let parts = l.all_accessible(&parts)?;
            run(l, &parts)
        });
        return made.map(Value::object);
    };
    let all = each(&|place| place.outline(span))?;
    let whole = lower(interp, what, span, &about, |l| l.rehearse(&all, &run))?;
    let of_result = |clip: &Clip| match (reduced, all.first()) {
        (Some(axes), Some(Operand::Tile(data))) => of_reduction(clip, data, axes, &whole, span),
        _ => Ok(clip.clone()),
    };
    let left = clips.iter().map(of_result).collect::<EvalResult<Vec<Clip>>>()?;
    if reduced.is_some() {
        check_reduced(&clips, &left, span)?;
    }
    for (clip, of_result) in clips.iter().zip(&left) {
        if !of_result.is_empty() {
            let parts = each(&|place| place.tensor(Some(&of_rank(clip, place.rank(), widest)), span))?;
            let to = narrowed(&whole, of_result, span)?;
            lower(interp, what, span, &about, |l| {
                let parts = l.all_accessible(&parts)?;
                let made = run(l, &parts)?;
                if l.builder.redirect(&made, &to.view)? { Ok(()) } else { l.assign(&to, &made) }
            })?;
        }
    }
    state(interp).note_mask(whole.storage.id, left);
    Ok(Value::object(whole))
}

/// The operands, with index tiles as tiles of their numbers in as many partitions as the others have.
fn with_numbers(interp: &mut Interp<'_>, operands: &[&Value], what: &str, span: Span) -> EvalResult<Vec<Value>> {
    let is_index = |value: &&Value| value.downcast::<IndexTile>().is_some() || value.downcast::<Moved>().is_some();
    if !operands.iter().any(is_index) {
        return Ok(operands.iter().map(|value| (*value).clone()).collect());
    }
    let mut rows = 1;
    for value in operands {
        if let Some(place) = Place::of(value, what, span)? {
            rows = rows.max(place.outline(span)?.view.partitions());
        }
    }
    operands.iter().map(|value| numbers(interp, value, rows, span)).collect()
}

/// An index tile as a tile of int32, which the old compiler made of it; other values unchanged.
pub(super) fn numbers(interp: &mut Interp<'_>, value: &Value, rows: u32, span: Span) -> EvalResult<Value> {
    if let Some(tile) = value.downcast::<IndexTile>() {
        return iota_tile(interp, &tile.in_partitions(rows), DType::I32, span).map(Value::object);
    }
    let Some(moved) = value.downcast::<Moved>() else { return Ok((*value).clone()) };
    let (offset, tile) = (Value::object(moved.by.clone()), Value::object(moved.tile.clone()));
    operator(interp, AluOp::Add, &offset, &tile, span)
}
