//! The functions of `neuronxcc.nki.language`.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use nki_isa::names::AluOp;
use nki_isa::{Arg, DType, Imm, Space};

use super::access::Place;
use super::affine::{IndexTile, Moved, arange, check_reduced, clip_of, clips_of, clips_of_reduced, one_clip};
use super::assign::LoopReduce;
use super::clips::{narrowed, of_rank, of_reduction};
use super::instruction::iota_tile;
use super::{make, matmul, memory, ops, programs, selection};
use crate::build;
use crate::build::lower::{Lower, Operand, extents, is_column};
use crate::build::ops::{Op, OpKind};
use crate::build::tensor::{Storage, Tensor};
use crate::dialect::common::clip::Clip;
use crate::dialect::common::errors::raise;
use crate::dialect::common::state::{site, state, target_name};
use crate::dialect::common::tensor::option;
use crate::eval::Interp;
use crate::eval::convert::{int, ints, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::{CallArgs, NativeFn};
use crate::eval::stdlib::{self, dtype::dtype as to_dtype};
use crate::eval::value::{Range, Value};
use crate::syntax::{CmpOp, Symbol};

/// Functions that are not operators.
pub(super) static FUNCTIONS: &[(&str, NativeFn)] = &[
    ("ndarray", make::ndarray),
    ("zeros", make::zeros),
    ("ones", make::ones),
    ("full", make::full),
    ("zeros_like", make::zeros_like),
    ("empty_like", make::empty_like),
    ("rand", make::rand),
    ("par_dim", make::par_dim),
    ("arange", arange),
    ("affine_range", range),
    ("sequential_range", range),
    ("static_range", range),
    ("load", memory::load),
    ("store", memory::store),
    ("load_transpose2d", memory::load_transpose2d),
    ("sum", |i, a| reduce(i, a, "sum")),
    ("max", |i, a| reduce(i, a, "max")),
    ("min", |i, a| reduce(i, a, "min")),
    ("mean", |i, a| reduce(i, a, "mean")),
    ("prod", |i, a| reduce(i, a, "prod")),
    ("var", |i, a| reduce(i, a, "var")),
    ("all", |i, a| reduce(i, a, "all")),
    ("softmax", softmax),
    ("rms_norm", rms_norm),
    ("where", selection::select),
    ("transpose", transpose),
    ("matmul", matmul::matmul),
    ("broadcast_to", broadcast_to),
    ("expand_dims", expand_dims),
    ("gather_flattened", gather_flattened),
    ("dropout", dropout),
    ("random_seed", random_seed),
    ("loop_reduce", loop_reduce),
    ("atomic_rmw", memory::atomic_rmw),
    ("finfo", stdlib::finfo),
    ("static_cast", static_cast),
    ("device_print", device_print),
    ("program_id", programs::program_id),
    ("num_programs", programs::num_programs),
    ("program_ndim", programs::program_ndim),
];

pub(super) fn given(value: Option<Value>) -> Option<Value> {
    value.filter(|v| !v.is_none())
}

pub(super) fn opt_dtype(value: Option<Value>, what: &str, span: Span) -> EvalResult<Option<DType>> {
    given(value).map(|v| to_dtype(&v, format_args!("{what}: dtype"), span)).transpose()
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

/// Removes a keyword from the arguments.
pub(super) fn take(interp: &mut Interp<'_>, args: &mut CallArgs, name: &str) -> Option<Value> {
    let symbol = interp.sym(name);
    args.take_keyword(symbol).filter(|v| !v.is_none())
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

/// A function of tiles that returns one, of the parts left by a mask: [`clips_of`] for elementwise functions, else
/// [`one_clip`].
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
fn masked(
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

pub(super) fn need(value: Option<Value>) -> Value {
    value.unwrap_or(Value::None)
}

pub(super) fn tile_of(operand: &Operand) -> build::Result<&Tensor> {
    match operand {
        Operand::Tile(t) => Ok(t),
        Operand::Number(_) => Err(nki_isa::Violation::new("operand-kind", "", "takes a tile, got a number")),
    }
}

/// Whether a result is 1 or 0, of type bool.
fn comparison(alu: AluOp) -> bool {
    use AluOp::{LogicalAnd, LogicalOr, LogicalXor};
    alu.is_comparison() || matches!(alu, LogicalAnd | LogicalOr | LogicalXor)
}

/// The common type of both operands: Python's numbers count as int32 and float32.
pub(super) fn promoted(x: &Operand, y: &Operand) -> DType {
    own_type(x).promote(own_type(y))
}

fn own_type(operand: &Operand) -> DType {
    match operand {
        Operand::Tile(t) => t.view.dtype,
        Operand::Number(Imm::Int(_)) => DType::I32,
        Operand::Number(Imm::Float(_)) => DType::F32,
    }
}

/// The type of a binary operation's result.
fn binary_type(alu: AluOp, x: &Operand, y: &Operand) -> DType {
    if comparison(alu) {
        return DType::U8;
    }
    let promoted = promoted(x, y);
    if alu.is_bitvec() && !promoted.is_int() {
        // There is no wider type for bits of uint32 and int32.
        return [x, y].into_iter().map(own_type).find(|d| *d == DType::U32).unwrap_or(promoted);
    }
    // As in Python, the quotient of ints is not an int.
    if alu == AluOp::Divide && promoted.is_int() { DType::F32 } else { promoted }
}

/// An operation on two tiles, or a tile and a number. A function broadcasts an operand of one partition, an operator does not.
pub(super) fn binary(
    l: &mut Lower<'_>,
    name: &str,
    alu: AluOp,
    x: &Operand,
    y: &Operand,
    dtype: Option<DType>,
    spread: bool,
) -> build::Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| binary_type(alu, x, y));
    let (mut x, mut y) = (x.clone(), y.clone());
    let mut is_row = false;
    if let (Operand::Tile(a), Operand::Tile(b)) = (&x, &y) {
        let (rows, other) = (a.view.partitions(), b.view.partitions());
        is_row = !spread && rows != other && rows.min(other) == 1;
        let (a, b) = aligned(a, b)?;
        let wide = |l: &mut Lower<'_>, t: Tensor, n: u32| {
            if spread && t.view.partitions() == 1 && n > 1 { l.spread(&t, n) } else { Ok(t) }
        };
        (x, y) = (Operand::Tile(wide(l, a, other)?), Operand::Tile(wide(l, b, rows)?));
    }
    // At most one operand is read from PSUM.
    if let (Operand::Tile(a), Operand::Tile(b)) = (&x, &y)
        && a.view.space == Space::Psum
        && b.view.space == Space::Psum
    {
        y = Operand::Tile(l.copy(b, None)?);
    }
    if let (Operand::Tile(a), Operand::Tile(b)) = (&x, &y) {
        let widened = |l: &mut Lower<'_>, vector: &Tensor, data: &Tensor| {
            let is_read = vector_is_read(&[alu], vector.view.dtype, data.view.dtype, dtype);
            if is_read { Ok(vector.clone()) } else { l.copy(vector, Some(DType::F32)) }
        };
        if is_column(b, a) {
            y = Operand::Tile(widened(l, b, a)?);
        } else if is_column(a, b) {
            x = Operand::Tile(widened(l, a, b)?);
        }
    }
    let made = l.binary(name, alu, &x, &y, Some(dtype));
    let help =
        || format!("an operator does not repeat partitions: write nl.{name}(x, y), or x.broadcast_to((rows, columns))");
    made.map_err(|refused| if is_row { refused.help(help()) } else { refused })
}

/// Whether the engines read a vector of this type unchanged: float32, any type for bitwise operators, and 32-bit integers if all tiles have them.
/// The older language accepted all types, which count as float32.
pub(super) fn vector_is_read(ops: &[AluOp], vector: DType, data: DType, result: DType) -> bool {
    let is_exact = |op: &AluOp| matches!(op, AluOp::Add | AluOp::Subtract | AluOp::Multiply);
    let is_wide_int = |d: DType| matches!(d, DType::I32 | DType::U32);
    vector == DType::F32
        || ops.iter().any(|op| op.is_bitvec())
        || ops.iter().all(is_exact) && [vector, data, result].into_iter().all(is_wide_int)
}

/// The operands of a matmul. The older compiler multiplied float32 by narrower types, which the current language does not: copied to float32.
pub(super) fn widened(l: &mut Lower<'_>, a: &Tensor, b: &Tensor) -> build::Result<(Tensor, Tensor)> {
    let is_wide = |t: &Tensor| matches!(t.view.dtype, DType::F32 | DType::TF32);
    let copied = |l: &mut Lower<'_>, t: &Tensor, other: &Tensor| match is_wide(other)
        && !is_wide(t)
        && t.view.dtype.is_float()
    {
        true => l.copy(t, Some(DType::F32)),
        false => Ok(t.clone()),
    };
    Ok((copied(l, a, b)?, copied(l, b, a)?))
}

/// Two tiles with as many dimensions. Missing ones come after the partitions, as in NumPy, or last if only then the shapes are compatible: kernels
/// combine tiles with the results of reductions over the last axis, which lack it. Tiles that do not fit at all are unchanged.
pub(super) fn aligned(a: &Tensor, b: &Tensor) -> build::Result<(Tensor, Tensor)> {
    let rank = a.ndim().max(b.ndim());
    let ranked = |t: &Tensor, at_end: bool| {
        let mut t = t.clone();
        while t.ndim() < rank {
            t = t.expand_dim(if at_end { t.ndim() as i64 } else { 1 })?;
        }
        Ok(t)
    };
    let both = |at_end| Ok((ranked(a, at_end)?, ranked(b, at_end)?));
    let fit = |(a, b): &(Tensor, Tensor)| compatible(&extents(a)[1..], &extents(b)[1..]);
    let of_numpy = both(false)?;
    if a.ndim() == b.ndim() || fit(&of_numpy) {
        return Ok(of_numpy);
    }
    let at_end = both(true)?;
    Ok(if fit(&at_end) { at_end } else { (a.clone(), b.clone()) })
}

/// Whether shapes with as many dimensions can be broadcast.
pub(super) fn compatible(a: &[i64], b: &[i64]) -> bool {
    a.iter().zip(b).all(|(&m, &n)| m == n || m == 1 || n == 1)
}

/// `nl.add(...)` and all other called operators.
pub(super) fn call_op(interp: &mut Interp<'_>, op: &'static Op, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = format!("nl.{}", op.name);
    match op.kind {
        OpKind::Binary(alu) => {
            let [x, y, d, mask, _] = bind_known(interp, args, &what, ["x", "y", "dtype", "mask", "name"], 2)?;
            let dtype = opt_bool_dtype(d, &what, span)?;
            let made = compute(interp, &what, span, clips_of(mask.as_ref(), span)?, &[&need(x), &need(y)], |l, o| {
                binary(l, op.name, alu, &o[0], &o[1], dtype, true)
            })?;
            Ok(if comparison(alu) { truth(interp, made, dtype) } else { made })
        }
        OpKind::Unary if op.name == "copy" => {
            let [x, mask, d, _] = bind_known(interp, args, &what, ["src", "mask", "dtype", "name"], 1)?;
            let dtype = opt_dtype(d, &what, span)?;
            compute(interp, &what, span, clips_of(mask.as_ref(), span)?, &[&need(x)], |l, o| {
                l.copy(tile_of(&o[0])?, dtype)
            })
        }
        OpKind::Unary => {
            let [x, d, mask, _] = bind_known(interp, args, &what, ["x", "dtype", "mask", "name"], 1)?;
            let of_truth = op.name == "logical_not";
            let dtype = opt_bool_dtype(d, &what, span)?.or(of_truth.then_some(DType::U8));
            let made = compute(interp, &what, span, clips_of(mask.as_ref(), span)?, &[&need(x)], |l, o| {
                let x = tile_of(&o[0])?;
                // Where the current language uses GpSimd for precision, the old compiler used Scalar.
                if op.name == "rsqrt" || op.name == "square" {
                    l.activation(op.name, x, dtype)
                } else {
                    l.unary(op.name, x, dtype)
                }
            })?;
            Ok(if of_truth { truth(interp, made, dtype) } else { made })
        }
        OpKind::Name => Err(Raise::at(
            "unsupported-api",
            format!("{what} is a name for op= arguments and cannot be called"),
            span,
            "in this call",
        )),
    }
}

/// `dtype=`; Python's `bool` is a byte.
fn opt_bool_dtype(value: Option<Value>, what: &str, span: Span) -> EvalResult<Option<DType>> {
    Ok(opt_dtype(value, what, span)?.map(|d| if d == DType::Bool { DType::U8 } else { d }))
}

/// `left op right` for tiles.
pub(super) fn operator(
    interp: &mut Interp<'_>,
    alu: AluOp,
    left: &Value,
    right: &Value,
    span: Span,
) -> EvalResult<Value> {
    let name = nki_isa::names::Named::name(alu);
    let made = compute(interp, &format!("`{name}`"), span, None, &[left, right], |l, o| {
        binary(l, name, alu, &o[0], &o[1], None, false)
    })?;
    let joins = matches!(alu, AluOp::BitwiseAnd | AluOp::BitwiseOr | AluOp::BitwiseXor);
    if comparison(alu) || joins && is_truth(interp, left) && is_truth(interp, right) {
        note_truth(interp, &made);
    }
    Ok(made)
}

/// `-tile` and `~tile`, of the tile's type. The result of a comparison had Python's type bool in the old language, whose `~` is `not`.
pub(super) fn unary(interp: &mut Interp<'_>, name: &'static str, value: &Value, span: Span) -> EvalResult<Value> {
    let of_truth = name == "invert" && is_truth(interp, value);
    let name = if of_truth { "logical_not" } else { name };
    let made =
        compute(interp, &format!("nl.{name}"), span, None, &[value], |l, o| l.unary(name, tile_of(&o[0])?, None))?;
    if of_truth {
        note_truth(interp, &made);
    }
    Ok(made)
}

fn is_truth(interp: &mut Interp<'_>, value: &Value) -> bool {
    let tile = value.downcast::<Tensor>().map(|t| t.storage.id);
    tile.is_some_and(|id| state(interp).truths.contains(&id))
}

/// The result of a comparison, of Python's type bool unless the call names another type.
fn truth(interp: &mut Interp<'_>, made: Value, dtype: Option<DType>) -> Value {
    if dtype.is_none_or(|d| d == DType::U8) {
        note_truth(interp, &made);
    }
    made
}

fn note_truth(interp: &mut Interp<'_>, made: &Value) {
    if let Some(tile) = made.downcast::<Tensor>() {
        state(interp).truths.insert(tile.storage.id);
    }
}

/// The operation of a comparison.
pub(super) fn relation(op: CmpOp) -> Option<AluOp> {
    Some(match op {
        CmpOp::Lt => AluOp::Less,
        CmpOp::Le => AluOp::LessEqual,
        CmpOp::Gt => AluOp::Greater,
        CmpOp::Ge => AluOp::GreaterEqual,
        CmpOp::Eq => AluOp::Equal,
        CmpOp::Ne => AluOp::NotEqual,
        _ => return None,
    })
}

fn range(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    // Advice for the old compiler's scheduler.
    take(interp, &mut args, "directives");
    let [start, stop, step] = args.bind(interp, "nl.affine_range", ["start", "stop", "step"], 1)?;
    let bound = |v: &Value| int(v, "a range that is unrolled", span);
    let start = need(start);
    let (start, stop) = match given(stop) {
        None => (0, bound(&start)?),
        Some(stop) => (bound(&start)?, bound(&stop)?),
    };
    let step = given(step).map_or(Ok(1), |s| bound(&s))?;
    if step == 0 {
        return Err(Raise::at("arguments", "a range with step 0", span, "in this call"));
    }
    state(interp).offset_loops |= start != 0;
    Ok(Value::Range(Rc::new(Range { start, stop, step })))
}

/// Rejects a partial mask of an operation that moves elements to other axes.
fn all_or_nothing(mask: Option<&Value>, what: &str, span: Span) -> EvalResult<()> {
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

fn reduce(interp: &mut Interp<'_>, args: CallArgs, name: &'static str) -> EvalResult<Value> {
    let span = args.span;
    let what = format!("nl.{name}");
    let [x, axis, d, mask, keepdims, _] =
        bind_known(interp, args, &what, ["x", "axis", "dtype", "mask", "keepdims", "name"], 2)?;
    let axis = ints(&need(axis), format_args!("{what}: axis"), span)?;
    let of_truth = name == "all";
    let dtype = opt_bool_dtype(d, &what, span)?.or(of_truth.then_some(DType::U8));
    let keepdims = option(keepdims, format_args!("{what}: keepdims"), false, span)?;
    let x = need(x);
    let rank = Place::of(&x, &what, span)?.map_or(0, |place| place.rank());
    let clips = clips_of_reduced(mask.as_ref(), &axis, rank, span)?;
    let made = masked(interp, &what, span, clips, &[&x], Some(&axis), |l, o| {
        let x = tile_of(&o[0])?;
        // "`float32` intermediate and return values are used for integer inputs" (nl.mean).
        let own = (name == "mean" && x.view.dtype.is_int()).then_some(DType::F32);
        l.reduce_any(name, x, &axis, dtype.or(own), keepdims)
    })?;
    Ok(if of_truth { truth(interp, made, dtype) } else { made })
}

fn softmax(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.softmax";
    let [x, axis, d, computed, mask, _] =
        bind_known(interp, args, what, ["x", "axis", "dtype", "compute_dtype", "mask", "name"], 2)?;
    let axis = ints(&need(axis), "nl.softmax: axis", span)?;
    let dtype = either_dtype(d, computed, what, span)?;
    compute(interp, what, span, one_clip(mask.as_ref(), span)?, &[&need(x)], |l, o| {
        l.softmax(tile_of(&o[0])?, &axis, dtype)
    })
}

/// "currently `dtype` and `compute_dtype` behave the same, both sets internal compute and return dtype" (nl.softmax, nl.rms_norm).
fn either_dtype(dtype: Option<Value>, computed: Option<Value>, what: &str, span: Span) -> EvalResult<Option<DType>> {
    Ok(opt_dtype(dtype, what, span)?.or(opt_dtype(computed, what, span)?))
}

fn rms_norm(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.rms_norm";
    let [x, w, axis, n, epsilon, d, computed, mask, _] = bind_known(
        interp,
        args,
        what,
        ["x", "w", "axis", "n", "epsilon", "dtype", "compute_dtype", "mask", "name"],
        4,
    )?;
    let axis = ints(&need(axis), "nl.rms_norm: axis", span)?;
    let float = |v: Option<Value>, default: f64| match given(v) {
        None => Ok(default),
        Some(v) => v.as_float().ok_or_else(|| wrong(what, "a number", &v, span)),
    };
    let (n, epsilon) = (float(n, 1.0)?, float(epsilon, 1e-6)?);
    let dtype = either_dtype(d, computed, what, span)?;
    compute(interp, what, span, one_clip(mask.as_ref(), span)?, &[&need(x), &need(w)], |l, o| {
        let (x, w) = (tile_of(&o[0])?, tile_of(&o[1])?);
        let rows = x.view.partitions();
        let w = if w.view.partitions() == 1 && rows > 1 { l.spread(w, rows)? } else { w.clone() };
        l.rms_norm(x, &w, &axis, n, epsilon, dtype)
    })
}

fn transpose(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, d, mask, _] = bind_known(interp, args, "nl.transpose", ["x", "dtype", "mask", "name"], 1)?;
    all_or_nothing(mask.as_ref(), "nl.transpose", span)?;
    let dtype = opt_dtype(d, "nl.transpose", span)?;
    compute(interp, "nl.transpose", span, one_clip(mask.as_ref(), span)?, &[&need(x)], |l, o| {
        let x = tile_of(&o[0])?;
        let source = l.in_sbuf(x)?;
        let turned = l.transpose(&source, None)?;
        l.copy(&turned, Some(dtype.unwrap_or(x.view.dtype)))
    })
}

fn broadcast_to(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, shape, _] = bind_known(interp, args, "nl.broadcast_to", ["src", "shape", "name"], 2)?;
    let (shape, _) = make::shape(&need(shape), "nl.broadcast_to", span)?;
    broadcast(interp, &need(x), &shape, "nl.broadcast_to", span)
}

/// A view that repeats elements along free dimensions; along partitions a new tile.
pub(super) fn broadcast(
    interp: &mut Interp<'_>,
    x: &Value,
    shape: &[i64],
    what: &str,
    span: Span,
) -> EvalResult<Value> {
    let t = Place::need(x, what, span)?.tensor(None, span)?;
    lower(interp, what, span, &[&t.storage], |l| {
        let mut t = t.clone();
        while t.ndim() < shape.len() {
            t = t.expand_dim(i64::from(t.on_chip()))?;
        }
        match shape.first().and_then(|&n| u32::try_from(n).ok()) {
            Some(rows) if t.on_chip() && t.view.partitions() == 1 && rows > 1 => {
                l.spread(&t, rows)?.broadcast_to(shape)
            }
            _ => t.broadcast_to(shape),
        }
    })
    .map(Value::object)
}

fn expand_dims(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, axis] = args.bind(interp, "nl.expand_dims", ["data", "axis"], 2)?;
    let t = Place::need(&need(x), "nl.expand_dims", span)?.tensor(None, span)?;
    expanded(&t, &need(axis), "nl.expand_dims: axis", span)
}

/// A tile with additional dimensions of 1.
pub(super) fn expanded(t: &Tensor, axis: &Value, what: &str, span: Span) -> EvalResult<Value> {
    let axes = ints(axis, what, span)?;
    // Positions refer to the result, so that lower ones come first.
    let rank = (t.ndim() + axes.len()) as i64;
    let mut axes: Vec<i64> = axes.iter().map(|&a| if a < 0 { a + rank } else { a }).collect();
    axes.sort_unstable();
    axes.iter()
        .try_fold(t.clone(), |t, &axis| t.expand_dim(axis))
        .map(Value::object)
        .map_err(|v| raise("", &v, span, &[&t.storage]))
}

fn gather_flattened(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.gather_flattened";
    let [data, indices, mask, d, _] = bind_known(interp, args, what, ["data", "indices", "mask", "dtype", "name"], 2)?;
    let dtype = opt_dtype(d, what, span)?;
    let (data, indices) = (need(data), need(indices));
    if let Some(place) = Place::of(&indices, what, span)? {
        let outline = place.outline(span)?;
        let dtype = outline.view.dtype;
        if dtype != DType::U32 {
            let message = format!("{what}: `{}` is {dtype}, but indices must be uint32", outline.storage.name);
            return Err(Raise::at("unsupported-dtype", message, span, "here")
                .help(format!("convert them first: nl.copy({}, dtype=nl.uint32)", outline.storage.name)));
        }
    }
    compute(interp, what, span, one_clip(mask.as_ref(), span)?, &[&data, &indices], |l, o| {
        l.gather_flattened(tile_of(&o[0])?, tile_of(&o[1])?, dtype)
    })
}

fn dropout(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.dropout";
    let [x, rate, d, mask, _] = bind_known(interp, args, what, ["x", "rate", "dtype", "mask", "name"], 2)?;
    let dtype = opt_dtype(d, what, span)?;
    compute(interp, what, span, clips_of(mask.as_ref(), span)?, &[&need(x), &need(rate)], |l, o| {
        l.dropout(tile_of(&o[0])?, &o[1], dtype)
    })
}

/// `nl.random_seed(seed)`: a number, or a tile of one element.
fn random_seed(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [seed, _mask] = bind_known(interp, args, "nl.random_seed", ["seed", "mask"], 1)?;
    let seed = operand(&need(seed), "nl.random_seed: seed", span)?;
    lower(interp, "nl.random_seed", span, &[], |l| match &seed {
        Operand::Tile(tile) => l.random_seed(tile),
        Operand::Number(number) => {
            let tile = l.tile(&[1, 1], DType::I32, Space::Sbuf)?;
            l.fill(&tile, *number)?;
            l.random_seed(&tile)
        }
    })?;
    Ok(Value::None)
}

/// `nl.loop_reduce(x, op, loop_indices, dtype=None, mask=None)`
fn loop_reduce(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.loop_reduce";
    let [x, op, indices, d, mask, _] =
        bind_known(interp, args, what, ["x", "op", "loop_indices", "dtype", "mask", "name"], 3)?;
    let clip = clip_of(mask.as_ref(), span)?;
    if state(interp).offset_loops {
        return Err(Raise::at(
            "loop-reduce",
            "nl.loop_reduce in a kernel with a loop that does not start at 0",
            span,
            "here",
        )
        .help("count loops from 0 and add the offset in the body, or accumulate with nl.add into a tile of zeros"));
    }
    let value = Place::need(&need(x), what, span)?;
    let op = ops::named(&need(op)).ok_or_else(|| {
        Raise::at("operand-kind", "nl.loop_reduce: op takes np.add, np.multiply, np.max or np.min", span, "here")
    })?;
    let indices = ints(&need(indices), "nl.loop_reduce: loop_indices", span)?;
    let dtype = opt_dtype(d, what, span)?;
    let first = indices.iter().all(|&i| i == 0);
    Ok(Value::object(LoopReduce { value, clip, op, dtype, first }))
}

/// `nl.static_cast(x, dtype)`: a tile in another type.
fn static_cast(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.static_cast";
    let [x, d] = args.bind(interp, what, ["input_data", "dtype"], 2)?;
    let dtype = opt_dtype(d, what, span)?;
    compute(interp, what, span, None, &[&need(x)], |l, o| l.copy(tile_of(&o[0])?, dtype))
}

fn device_print(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.device_print";
    let [prefix, x, mask] = bind_known(interp, args, what, ["prefix", "x", "mask"], 2)?;
    let prefix = match &need(prefix) {
        Value::Str(s) => s.clone(),
        other => return Err(wrong("nl.device_print: prefix", "a string", other, span)),
    };
    let clip = clip_of(mask.as_ref(), span)?;
    if clip.as_ref().is_some_and(Clip::is_empty) {
        return Ok(Value::None);
    }
    let tile = Place::need(&need(x), what, span)?.tensor(clip.as_ref(), span)?;
    lower(interp, what, span, &[&tile.storage], |l| {
        l.emit(
            "device_print",
            &[("print_prefix", Arg::Text((&*prefix).into())), ("tensor", Arg::View(tile.view.clone()))],
        )
    })?;
    Ok(Value::None)
}
