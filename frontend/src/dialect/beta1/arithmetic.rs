//! Operators of tiles and numbers: the type of the result, broadcasting, comparisons.

use nki_diag::Span;
use nki_isa::names::AluOp;
use nki_isa::{DType, Imm, Space};

use super::calls::{bind_known, compute, need, opt_dtype, tile_of};
use super::mask::clips_of;
use crate::build;
use crate::build::lower::{Lower, Operand, extents, is_column, mismatch};
use crate::build::ops::{Op, OpKind};
use crate::build::tensor::Tensor;
use crate::dialect::common::state::state;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;
use crate::syntax::CmpOp;

/// Whether a result is 1 or 0, of type bool.
fn comparison(alu: AluOp) -> bool {
    use AluOp::{LogicalAnd, LogicalOr, LogicalXor};
    alu.is_comparison() || matches!(alu, LogicalAnd | LogicalOr | LogicalXor)
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
    if let (Operand::Tile(a), Operand::Tile(b)) = (&x, &y) {
        let (rows, other) = (a.view.partitions(), b.view.partitions());
        let (a, b) = aligned(a, b)?;
        if !spread && rows != other && rows.min(other) == 1 {
            let help = format!(
                "an operator does not repeat partitions: write nl.{name}(x, y), or x.broadcast_to((rows, columns))"
            );
            return Err(mismatch(name, &a, &b).help(help));
        }
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
    l.binary(name, alu, &x, &y, Some(dtype))
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
pub(super) fn opt_bool_dtype(value: Option<Value>, what: &str, span: Span) -> EvalResult<Option<DType>> {
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
pub(super) fn truth(interp: &mut Interp<'_>, made: Value, dtype: Option<DType>) -> Value {
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
