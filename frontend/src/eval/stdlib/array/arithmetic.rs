//! Operators of arrays, with NumPy's rules for types and shapes.

use nki_diag::Span;
use nki_isa::{DType, Imm};

use super::{Array, NdArray, bounded, float, product, text, wrong};
use crate::eval::arithmetic::{divmod_f32, divmod_f64};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::stdlib::scalar;
use crate::eval::value::Value;
use crate::host::HostDtype;
use crate::syntax::{BinOp, CmpOp, UnaryOp};

/// The type in which NumPy computes a floating-point function of integers.
pub(super) fn float_for(dtype: HostDtype) -> HostDtype {
    match dtype.size() {
        1 => HostDtype::Device(DType::F16),
        2 => HostDtype::Device(DType::F32),
        _ => HostDtype::F64,
    }
}

/// The common type of two arrays.
pub(crate) fn common(a: HostDtype, b: HostDtype, span: Span) -> EvalResult<HostDtype> {
    promote(a, b).ok_or_else(|| wrong(format!("{a} and {b} have no common type: use astype"), span))
}

/// The common type of two arrays, by NumPy's rules.
fn promote(a: HostDtype, b: HostDtype) -> Option<HostDtype> {
    use HostDtype::{Device, F64, I64};
    if a == b {
        return Some(a);
    }
    let standard = HostDtype::is_of_numpy;
    match (a.is_float(), b.is_float()) {
        (true, true) => {
            let wide = if a.size() >= b.size() { a } else { b };
            // ml_dtypes defines no common type for two of its own types, or for bfloat16 and
            // float16.
            (standard(wide) && wide.size() > a.size().min(b.size())).then_some(wide)
        }
        (true, false) | (false, true) => {
            let (f, i) = if a.is_float() { (a, b) } else { (b, a) };
            if i == Device(DType::Bool) || !standard(f) && i.size() == 1 {
                return Some(f);
            }
            let wide = float_for(i);
            Some(if wide.size() > f.size() || !standard(f) { wide } else { f })
        }
        (false, false) => {
            let signed = |d: HostDtype| matches!(d, I64) || matches!(d, Device(d) if d.is_signed());
            let of = |signed: bool, size: usize| {
                Device(match (signed, size) {
                    (true, 1) => DType::I8,
                    (true, 2) => DType::I16,
                    (true, 4) => DType::I32,
                    (false, 1) => DType::U8,
                    (false, 2) => DType::U16,
                    (false, 4) => DType::U32,
                    (true, _) => return I64,
                    (false, _) => return HostDtype::U64,
                })
            };
            if a == Device(DType::Bool) {
                return Some(b);
            }
            if b == Device(DType::Bool) {
                return Some(a);
            }
            let (sa, sb) = (signed(a), signed(b));
            if sa == sb {
                return Some(of(sa, a.size().max(b.size())));
            }
            let (s, u) = if sa { (a, b) } else { (b, a) };
            if s.size() > u.size() {
                return Some(s);
            }
            Some(if u.size() >= 8 { F64 } else { of(true, u.size() * 2) })
        }
    }
}

/// The type of a Python number used with an array: the array's, unless that is of a lesser kind.
fn beside(number: &Value, array: HostDtype) -> HostDtype {
    match number {
        Value::Float(_) if !array.is_float() => HostDtype::F64,
        // The ml_dtypes types are of a lesser kind than Python's floats.
        Value::Float(_) if !array.is_of_numpy() => HostDtype::Device(DType::F32),
        Value::Int(_) if array == HostDtype::Device(DType::Bool) => HostDtype::I64,
        _ => array,
    }
}

/// The types of two operands, one of which is an array: a Python number adapts to the array.
fn types(left: &Value, right: &Value, a: &Array, b: &Array) -> (HostDtype, HostDtype) {
    let number = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_));
    match (number(left), number(right)) {
        (true, false) => (beside(left, b.dtype), b.dtype),
        (false, true) => (a.dtype, beside(right, a.dtype)),
        _ => (a.dtype, b.dtype),
    }
}

/// Converts two operands to arrays of one type; also returns the shape of the result.
fn pair(left: &Value, right: &Value, span: Span) -> EvalResult<(Array, Array, HostDtype, Vec<usize>)> {
    let (a, b) = (Array::from_value(left, None, span)?, Array::from_value(right, None, span)?);
    let (own, other) = types(left, right, &a, &b);
    let dtype = common(own, other, span)?;
    for number in [left, right] {
        if let Value::Int(n) = number {
            dtype.check(*n, span)?;
        }
    }
    let (a, b) = (a.astype(dtype), b.astype(dtype));
    let shape = joined(&a, &b.shape, span)?;
    Ok((a.spread(&shape), b.spread(&shape), dtype, shape))
}

/// The broadcast shape of two arrays, if they are compatible.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let dims = a.len().max(b.len());
    let extent = |shape: &[usize], i: usize| (i + shape.len()).checked_sub(dims).map_or(1, |i| shape[i]);
    (0..dims)
        .map(|i| match (extent(a, i), extent(b, i)) {
            (1, n) | (n, 1) => Some(n),
            (m, n) => (m == n).then_some(n),
        })
        .collect()
}

/// The shape of the result for two arrays.
fn joined(a: &Array, b: &[usize], span: Span) -> EvalResult<Vec<usize>> {
    let shape = broadcast(&a.shape, b).ok_or_else(|| {
        wrong(format!("arrays of shapes {} and {} cannot be broadcast together", text(&a.shape), text(b)), span)
    })?;
    bounded(&shape, span)?;
    Ok(shape)
}

/// Floor division and its remainder. NumPy computes them in float32 for float16.
fn divmod(dtype: HostDtype, x: f64, y: f64) -> (f64, f64) {
    if dtype == HostDtype::F64 {
        return divmod_f64(x, y);
    }
    let (quotient, rest) = divmod_f32(x as f32, y as f32);
    (quotient.into(), rest.into())
}

/// `x ** n` of integers, with wraparound.
fn power(x: i64, n: i64, span: Span) -> EvalResult<i64> {
    if n < 0 {
        let message = "integers to negative integer powers are not allowed";
        return Err(Raise::at("value-error", message, span, "here").help("make one of them a float"));
    }
    let (mut result, mut square, mut n) = (1i64, x, n);
    while n > 0 {
        if n & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        n >>= 1;
    }
    Ok(result)
}

/// `left op right`, elementwise.
pub(super) fn binary(op: BinOp, left: &Value, right: &Value, span: Span) -> EvalResult<Array> {
    // A quotient of integers is a float, regardless of the range of their types.
    let (left, right) = if op == BinOp::Div { (&exact(left, right), &exact(right, left)) } else { (left, right) };
    let (a, b, mut dtype, shape) = pair(left, right, span)?;
    if dtype == HostDtype::Device(DType::Bool) {
        match op {
            BinOp::Sub => {
                let refused = Raise::at("type-error", "`-` of bool arrays", span, "here");
                return Err(
                    refused.help("write `a ^ b` for the elements that differ, or `a & ~b` for those of `a` alone")
                );
            }
            BinOp::FloorDiv | BinOp::Mod | BinOp::Pow | BinOp::LShift | BinOp::RShift => {
                dtype = HostDtype::Device(DType::I8);
            }
            _ => {}
        }
    }
    let divides = matches!(op, BinOp::FloorDiv | BinOp::Mod);
    if divides && !dtype.is_float() && b.values.iter().any(|v| v.as_i64() == Some(0)) {
        return Err(Raise::at("division-by-zero", "division by zero", span, "an element of the divisor is 0"));
    }
    if op == BinOp::Div && !dtype.is_float() {
        dtype = HostDtype::F64;
    }
    let floats = dtype.is_float();
    let unknown = || Raise::at("unsupported-operator", format!("`{}` of arrays", op.text()), span, "here");
    let mut values = Vec::with_capacity(a.values.len());
    for (&x, &y) in a.values.iter().zip(&b.values) {
        let v = if floats {
            let (x, y) = (float(x), float(y));
            Imm::Float(match op {
                BinOp::Add => x + y,
                BinOp::Sub => x - y,
                BinOp::Mul => x * y,
                BinOp::Div => x / y,
                BinOp::FloorDiv => divmod(dtype, x, y).0,
                BinOp::Mod => divmod(dtype, x, y).1,
                BinOp::Pow => x.powf(y),
                _ => return Err(unknown()),
            })
        } else {
            let (x, y) = (x.as_i64().unwrap_or(0), y.as_i64().unwrap_or(0));
            Imm::Int(match op {
                BinOp::Add => x.wrapping_add(y),
                BinOp::Sub => x.wrapping_sub(y),
                BinOp::Mul => x.wrapping_mul(y),
                BinOp::FloorDiv => x.wrapping_div(y) - i64::from(x.wrapping_rem(y) != 0 && (x < 0) != (y < 0)),
                BinOp::Mod => x.wrapping_rem(y).wrapping_add(y).wrapping_rem(y),
                BinOp::Pow => power(x, y, span)?,
                BinOp::BitAnd => x & y,
                BinOp::BitOr => x | y,
                BinOp::BitXor => x ^ y,
                // A shift by the full width or more leaves only the sign.
                BinOp::LShift => u32::try_from(y).ok().and_then(|y| x.checked_shl(y)).unwrap_or(0),
                BinOp::RShift => u32::try_from(y).ok().and_then(|y| x.checked_shr(y)).unwrap_or(x >> 63),
                _ => return Err(unknown()),
            })
        };
        values.push(dtype.fit(v));
    }
    Ok(Array::new(dtype, shape, values).laid_out_as(&[&a, &b]))
}

/// `left op right` of arrays, lists and numbers. The result is an array, or a number if both
/// operands are numbers.
pub(crate) fn operate(op: BinOp, left: &Value, right: &Value, span: Span) -> EvalResult<Value> {
    if op == BinOp::MatMul {
        return matmul(&Array::from_value(left, None, span)?, &Array::from_value(right, None, span)?, span);
    }
    binary(op, left, right, span).map(Array::simple)
}

/// The product of two vectors or matrices.
pub(crate) fn matmul(a: &Array, b: &Array, span: Span) -> EvalResult<Value> {
    let shapes = || format!("`@` of arrays of shapes {} and {}", text(&a.shape), text(&b.shape));
    let (rows, inner) = match a.shape[..] {
        [inner] => (None, inner),
        [rows, inner] => (Some(rows), inner),
        _ => return Err(wrong(format!("{}: only vectors and matrices are supported here", shapes()), span)),
    };
    let (depth, columns) = match b.shape[..] {
        [depth] => (depth, None),
        [depth, columns] => (depth, Some(columns)),
        _ => return Err(wrong(format!("{}: only vectors and matrices are supported here", shapes()), span)),
    };
    if depth != inner {
        return Err(wrong(format!("{}: {inner} columns do not match {depth} rows", shapes()), span));
    }
    let dtype = common(a.dtype, b.dtype, span)?;
    let shape: Vec<usize> = [rows, columns].into_iter().flatten().collect();
    bounded(&shape, span)?;
    let width = columns.unwrap_or(1);
    let of = |at: usize| {
        let (row, column) = (at / width, at % width);
        let left = (0..inner).map(|k| dtype.fit(a.values[row * inner + k]));
        let right = (0..inner).map(|k| dtype.fit(b.values[k * width + column]));
        dot(dtype, left, right)
    };
    Ok(Array::from_fn(dtype, shape, of).simple())
}

/// The dot product of two vectors. NumPy does not define the order of summation of floats here.
fn dot(dtype: HostDtype, a: impl Iterator<Item = Imm>, b: impl Iterator<Item = Imm>) -> Imm {
    if dtype.is_float() {
        return Imm::Float(a.zip(b).map(|(x, y)| float(x) * float(y)).sum());
    }
    let int = |v: Imm| v.as_i64().unwrap_or(0);
    if dtype == HostDtype::Device(DType::Bool) {
        return Imm::Int(i64::from(a.zip(b).any(|(x, y)| int(x) != 0 && int(y) != 0)));
    }
    Imm::Int(a.zip(b).fold(0, |sum: i64, (x, y)| sum.wrapping_add(int(x).wrapping_mul(int(y)))))
}

/// `op value`
pub(crate) fn unary(op: UnaryOp, array: &Array, span: Span) -> EvalResult<Value> {
    let each = |of: &dyn Fn(Imm) -> Imm| array.each(array.dtype, of).simple();
    match op {
        UnaryOp::Neg if array.dtype == HostDtype::Device(DType::Bool) => {
            Err(Raise::at("type-error", "`-` of a bool array", span, "here").help("write `~a`"))
        }
        UnaryOp::Pos if array.dtype == HostDtype::Device(DType::Bool) => {
            Err(Raise::at("type-error", "`+` of a bool array", span, "here"))
        }
        UnaryOp::Pos => Ok(array.clone().simple()),
        UnaryOp::Neg => Ok(each(&|v| match v {
            Imm::Int(i) => Imm::Int(i.wrapping_neg()),
            Imm::Float(x) => Imm::Float(-x),
        })),
        UnaryOp::Invert if !array.dtype.is_float() => Ok(each(&|v| match v {
            Imm::Int(i) if array.dtype == HostDtype::Device(DType::Bool) => Imm::Int(1 - i),
            Imm::Int(i) => Imm::Int(!i),
            Imm::Float(x) => Imm::Float(x),
        })),
        _ => Err(Raise::at("unsupported-operator", "this operator of an array", span, "here")),
    }
}

/// The element type of an array or scalar.
fn element_type(value: &Value) -> Option<HostDtype> {
    value.downcast().map(NdArray::dtype).or_else(|| scalar::dtype_of(value))
}

/// A number for an operator that uses an integer's exact value even if the type of the other
/// operand cannot represent it.
fn exact(number: &Value, beside: &Value) -> Value {
    match (number, element_type(beside)) {
        (Value::Int(n), Some(dtype)) if !dtype.has(*n) => {
            Array::filled(HostDtype::I64, Vec::new(), Imm::Int(*n)).value()
        }
        _ => number.clone(),
    }
}

/// `left op right`, elementwise.
pub(crate) fn compare(op: CmpOp, left: &Value, right: &Value, span: Span) -> EvalResult<Value> {
    let (a, b, _, shape) = pair(&exact(left, right), &exact(right, left), span)?;
    let holds = |x: Imm, y: Imm| {
        let order = match (x, y) {
            (Imm::Int(x), Imm::Int(y)) => Some(x.cmp(&y)),
            (x, y) => float(x).partial_cmp(&float(y)),
        };
        match op {
            CmpOp::Ne => order != Some(std::cmp::Ordering::Equal),
            CmpOp::Lt => order.is_some_and(|o| o.is_lt()),
            CmpOp::Le => order.is_some_and(|o| o.is_le()),
            CmpOp::Gt => order.is_some_and(|o| o.is_gt()),
            CmpOp::Ge => order.is_some_and(|o| o.is_ge()),
            _ => order == Some(std::cmp::Ordering::Equal),
        }
    };
    let of = |i: usize| Imm::Int(i64::from(holds(a.values[i], b.values[i])));
    Ok(Array::from_fn(HostDtype::Device(DType::Bool), shape, of).laid_out_as(&[&a, &b]).simple())
}

/// `np.where(condition, x, y)`.
pub(crate) fn choose(condition: &Array, x: &Value, y: &Value, span: Span) -> EvalResult<Value> {
    // A number adopts the type of the array operand; two numbers have types of their own.
    let own = |v: &Value| Array::from_value(v, None, span).map(Array::value);
    let is_float = |v: &Value| matches!(v, Value::Float(_));
    let follows = |number: &Value, other: &Value| {
        element_type(other).is_some_and(|dtype| dtype.is_of_numpy() || !is_float(number))
            || element_type(number).is_some()
    };
    let (a, b, dtype, shape) =
        if follows(x, y) && follows(y, x) { pair(x, y, span)? } else { pair(&own(x)?, &own(y)?, span)? };
    let shape = joined(condition, &shape, span)?;
    let (condition, a, b) = (condition.spread(&shape), a.spread(&shape), b.spread(&shape));
    let chosen = |i: usize| if float(condition.values[i]) != 0.0 { a.values[i] } else { b.values[i] };
    Ok(Array::from_fn(dtype, shape, chosen).laid_out_as(&[&condition, &a, &b]).value())
}

/// Applies a function of two numbers of one type to each pair of elements.
pub(crate) fn join(left: &Value, right: &Value, of: impl Fn(Imm, Imm) -> Imm, span: Span) -> EvalResult<Value> {
    let (a, b, dtype, shape) = pair(left, right, span)?;
    let made = Array::from_fn(dtype, shape, |i| of(a.values[i], b.values[i]));
    Ok(made.laid_out_as(&[&a, &b]).simple())
}

/// Applies a function of two floats to each pair of elements. Integers are converted to floats wide
/// enough for them.
pub(crate) fn join_floats(left: &Value, right: &Value, of: fn(f64, f64) -> f64, span: Span) -> EvalResult<Value> {
    let (a, b, dtype, shape) = pair(left, right, span)?;
    let dtype = if dtype.is_float() { dtype } else { float_for(dtype) };
    let made = Array::from_fn(dtype, shape, |i| Imm::Float(of(float(a.values[i]), float(b.values[i]))));
    Ok(made.laid_out_as(&[&a, &b]).simple())
}

/// `np.clip(x, low, high)`: Python numbers adapt to the types of the other operands. `None` means
/// no limit.
pub(crate) fn clip(x: &Array, limits: [Option<Value>; 2], span: Span) -> EvalResult<Value> {
    let mut dtype = x.dtype;
    let is_weak = |v: &Value| matches!(v, Value::Int(_) | Value::Float(_) | Value::Bool(_));
    for limit in limits.iter().flatten().filter(|v| !is_weak(v)) {
        dtype = common(dtype, Array::from_value(limit, None, span)?.dtype, span)?;
    }
    for limit in limits.iter().flatten().filter(|v| is_weak(v)) {
        dtype = common(dtype, beside(limit, dtype), span)?;
    }
    let mut value = x.astype(dtype).value();
    for (limit, of) in limits.into_iter().zip([super::maximum, super::minimum]) {
        let Some(limit) = limit else { continue };
        if let Value::Int(n) = limit {
            dtype.check(n, span)?;
        }
        value = join(&value, &Array::from_value(&limit, None, span)?.astype(dtype).value(), of, span)?;
    }
    Ok(value)
}

/// `np.concatenate(arrays, axis)`.
pub(crate) fn concatenate(parts: &[Array], axis: i64, span: Span) -> EvalResult<Value> {
    let Some(first) = parts.first() else { return Err(wrong("np.concatenate of no arrays", span)) };
    let n = first.shape.len() as i64;
    let at = if axis < 0 { axis + n } else { axis };
    let fits = |p: &Array| {
        p.shape.len() == first.shape.len()
            && (0..first.shape.len()).all(|i| i as i64 == at || p.shape[i] == first.shape[i])
    };
    if !(0..n).contains(&at) || !parts.iter().all(fits) {
        return Err(wrong("np.concatenate: the arrays differ in shape outside of this axis", span));
    }
    let at = at as usize;
    let mut shape = first.shape.clone();
    shape[at] = parts.iter().map(|p| p.shape[at]).sum();
    let mut dtype = first.dtype;
    for p in parts {
        dtype = common(dtype, p.dtype, span)?;
    }
    let outer = product(&first.shape[..at]);
    let mut values = Vec::new();
    for i in 0..outer {
        for p in parts {
            let run = product(&p.shape[at..]);
            values.extend(p.values[i * run..(i + 1) * run].iter().map(|v| dtype.fit(*v)));
        }
    }
    Ok(Array::new(dtype, shape, values).laid_out_as(&parts.iter().collect::<Vec<_>>()).value())
}
