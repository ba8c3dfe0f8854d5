//! NumPy functions that search, sort and rearrange the elements of arrays.

use std::cmp::Ordering;
use std::rc::Rc;

use nki_diag::Span;
use nki_isa::Imm;

use super::super::Interp;
use super::super::error::EvalResult;
use super::super::native::{CallArgs, NativeFn};
use super::super::value::*;
use super::array::{self, Array};
use super::numpy::bounded;
use super::numpy_functions::{array_of, axis_of, by_axis, count, given, lines, picked, some, wrong};
use crate::host::HostDtype;

/// The function with this name.
pub(super) fn function(name: &str) -> Option<NativeFn> {
    Some(match name {
        "nonzero" => nonzero,
        "flatnonzero" => flatnonzero,
        "argwhere" => argwhere,
        "count_nonzero" => count_nonzero,
        "sort" => sort,
        "unique" => unique,
        "take" => take,
        "diff" => diff,
        "roll" => roll,
        "flip" => |i, a| flip(i, a, "flip", None),
        "flipud" => |i, a| flip(i, a, "flipud", Some(0)),
        "fliplr" => |i, a| flip(i, a, "fliplr", Some(1)),
        "pad" => pad,
        "split" => |i, a| split(i, a, "split"),
        "array_split" => |i, a| split(i, a, "array_split"),
        "append" => append,
        _ => return None,
    })
}

/// An array of positions.
fn positions(places: Vec<usize>, shape: Vec<usize>) -> Array {
    Array::new(HostDtype::I64, shape, places.into_iter().map(|i| Imm::Int(i as i64)).collect())
}

fn is_set(value: Imm) -> bool {
    match value {
        Imm::Int(n) => n != 0,
        other => array::float(other) != 0.0,
    }
}

/// The positions of the nonzero elements, in order.
fn found(x: &Array) -> Vec<usize> {
    (0..x.values.len()).filter(|&i| is_set(x.values[i])).collect()
}

/// The indices of these elements along each axis.
fn indices(x: &Array, elements: &[usize]) -> Vec<Vec<usize>> {
    let stride = |axis: usize| x.shape[axis + 1..].iter().product::<usize>();
    let along = |axis: usize| elements.iter().map(|at| at / stride(axis) % x.shape[axis]).collect();
    (0..x.shape.len()).map(along).collect()
}

/// `np.nonzero(a)` and `np.where(condition)`: an array of indices for each axis.
pub(super) fn nonzero(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = given!(interp, args, "nonzero", ["a"], 1);
    let x = array_of(x, span)?;
    if x.shape.is_empty() {
        return Err(wrong("np.nonzero of a number: give an array of at least one dimension", span));
    }
    let elements = found(&x);
    let axes = indices(&x, &elements).into_iter().map(|places| positions(places, vec![elements.len()]).value());
    Ok(Value::tuple(axes.collect::<Vec<_>>()))
}

/// `np.flatnonzero(a)`
fn flatnonzero(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = given!(interp, args, "flatnonzero", ["a"], 1);
    let elements = found(&array_of(x, span)?);
    let count = elements.len();
    Ok(positions(elements, vec![count]).value())
}

/// `np.argwhere(a)`: a row for each nonzero element.
fn argwhere(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = given!(interp, args, "argwhere", ["a"], 1);
    let x = array_of(x, span)?;
    let elements = found(&x);
    let axes = indices(&x, &elements);
    let rows = (0..elements.len()).flat_map(|row| axes.iter().map(move |axis| axis[row])).collect();
    Ok(positions(rows, vec![elements.len(), x.shape.len()]).value())
}

/// `np.count_nonzero(a)`
fn count_nonzero(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = given!(interp, args, "count_nonzero", ["a"], 1);
    Ok(super::scalar::value(HostDtype::I64, Imm::Int(found(&array_of(x, span)?).len() as i64)))
}

/// `np.sort(a, axis=-1)`
fn sort(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, axis, _kind] = given!(interp, args, "sort", ["a", "axis", "kind"], 1);
    let (x, axis) = by_axis(array_of(x, span)?, axis.or(Some(Value::Int(-1))), "sort", span)?;
    let sorted = x.along(axis, x.dtype, |line| {
        let mut line = line.to_vec();
        line.sort_by(|a, b| array::order(*a, *b));
        line
    });
    array::charged(interp, sorted.value(), span)
}

/// `np.unique(ar)`: the distinct elements in ascending order.
fn unique(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x] = given!(interp, args, "unique", ["ar"], 1);
    let x = array_of(x, span)?;
    let mut values = x.values;
    values.sort_by(|a, b| array::order(*a, *b));
    values.dedup_by(|a, b| array::order(*a, *b) == Ordering::Equal);
    let made = Array::new(x.dtype, vec![values.len()], values);
    array::charged(interp, made.value(), span)
}

/// `np.take(a, indices, axis=None)`
fn take(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, places, axis] = given!(interp, args, "take", ["a", "indices", "axis"], 2);
    let (x, axis) = by_axis(array_of(x, span)?, axis, "take", span)?;
    let places = array_of(places, span)?;
    let extent = x.shape[axis] as i64;
    let mut sources = Vec::with_capacity(places.values.len());
    for place in &places.values {
        let Imm::Int(at) = place else { return Err(wrong("np.take: the indices must be ints", span)) };
        if !(-extent..extent).contains(at) {
            let message = format!("np.take: index {at} of an axis of extent {extent}");
            return Err(super::super::error::Raise::at("index-out-of-range", message, span, "here"));
        }
        sources.push(at.rem_euclid(extent) as usize);
    }
    let mut shape = x.shape[..axis].to_vec();
    shape.extend(&places.shape);
    shape.extend(&x.shape[axis + 1..]);
    if let Err(done) = bounded(interp, &shape, "take", span) {
        return done;
    }
    let made = picked(&x, axis, &sources);
    array::charged(interp, Array::new(x.dtype, shape, made.values).simple(), span)
}

/// `np.diff(a, n=1, axis=-1)`
fn diff(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, n, axis] = given!(interp, args, "diff", ["a", "n", "axis"], 1);
    let mut x = array_of(x, span)?;
    if x.shape.is_empty() || x.dtype == HostDtype::Device(nki_isa::DType::Bool) {
        return Err(wrong("np.diff needs an array of numbers with at least one dimension", span));
    }
    let axis = axis_of(&axis.unwrap_or(Value::Int(-1)), x.shape.len(), "diff", span)?;
    for _ in 0..n.map_or(Ok(1), |n| count(&n, "diff", span))?.min(x.shape[axis]) {
        let extent = x.shape[axis];
        let later = picked(&x, axis, &(1..extent).collect::<Vec<_>>()).value();
        let earlier = picked(&x, axis, &(0..extent.saturating_sub(1)).collect::<Vec<_>>()).value();
        let made = array::operate(crate::syntax::BinOp::Sub, &later, &earlier, span)?;
        x = Array::from_value(&made, None, span)?;
    }
    array::charged(interp, x.value(), span)
}

/// `np.roll(a, shift, axis=None)`
fn roll(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, shift, axis] = given!(interp, args, "roll", ["a", "shift", "axis"], 2);
    let mut x = array_of(x, span)?;
    let shape = x.shape.clone();
    let list = |value: &Value| value.sequence().map_or_else(|| vec![value.clone()], |items| items.to_vec());
    let shifts = list(&shift.unwrap_or(Value::None));
    let axes = match some(axis) {
        Some(axes) => list(&axes),
        None => {
            x = x.flat();
            vec![Value::Int(0)]
        }
    };
    if shifts.len() != axes.len() && shifts.len() != 1 && axes.len() != 1 {
        return Err(wrong(format!("np.roll: {} shifts of {} axes", shifts.len(), axes.len()), span));
    }
    // Without shifts or axes nothing moves.
    let rolls = if shifts.is_empty() || axes.is_empty() { 0 } else { shifts.len().max(axes.len()) };
    for i in 0..rolls {
        let (shift, axis) = (&shifts[i.min(shifts.len() - 1)], &axes[i.min(axes.len() - 1)]);
        let Some(shift) = shift.as_int() else { return Err(wrong("np.roll: a shift must be an int", span)) };
        let axis = axis_of(axis, x.shape.len(), "roll", span)?;
        let extent = x.shape[axis] as i64;
        let sources: Vec<usize> = (0..extent).map(|i| (i - shift % extent).rem_euclid(extent) as usize).collect();
        x = picked(&x, axis, &sources);
    }
    array::charged(interp, Array::new(x.dtype, shape, x.values).value(), span)
}

/// `np.flip(m, axis=None)`, `np.flipud(m)` and `np.fliplr(m)`
fn flip(interp: &mut Interp<'_>, args: CallArgs, what: &str, own: Option<usize>) -> EvalResult<Value> {
    let span = args.span;
    let [x, axis] = given!(interp, args, what, ["m", "axis"], 1);
    let shared = shared(x, span)?;
    let dims = array_of(Some(shared.clone()), span)?.shape.len();
    let axes: Vec<usize> = match (own, some(axis)) {
        (Some(own), None) if own < dims => vec![own],
        (Some(own), _) => {
            return Err(wrong(format!("np.{what} takes one array of at least {} dimensions", own + 1), span));
        }
        (None, None) => (0..dims).collect(),
        (None, Some(axes)) => {
            let axes = axes.sequence().map_or_else(|| vec![axes.clone()], |items| items.to_vec());
            axes.iter().map(|axis| axis_of(axis, dims, what, span)).collect::<EvalResult<_>>()?
        }
    };
    let reversed = |axis: usize| part(None, None, axes.contains(&axis).then_some(-1));
    let index = Value::tuple((0..dims).map(reversed).collect::<Vec<_>>());
    interp.get_item(&shared, &index, span)
}

/// The slice `start:stop:step`.
fn part(start: Option<usize>, stop: Option<usize>, step: Option<i64>) -> Value {
    let place = |at: Option<usize>| at.map_or(Value::None, |at| Value::Int(at as i64));
    Value::Slice(Rc::new(Slice { start: place(start), stop: place(stop), step: step.map_or(Value::None, Value::Int) }))
}

/// An array that shares its elements with parts taken from it: the given one, or a new one made
/// from a list.
fn shared(value: Option<Value>, span: Span) -> EvalResult<Value> {
    match value {
        Some(value) if array::is(&value) => Ok(value),
        value => Ok(array_of(value, span)?.value()),
    }
}

/// The padding before and after each axis, from a number, a pair, or a pair for each axis.
fn widths(value: &Value, dims: usize, span: Span) -> EvalResult<Vec<(usize, usize)>> {
    let given = array_of(Some(value.clone()), span)?;
    let numbers: Option<Vec<usize>> =
        given.values.iter().map(|v| v.as_i64().and_then(|n| usize::try_from(n).ok())).collect();
    match numbers.as_deref() {
        Some(&[both]) => Ok(vec![(both, both); dims]),
        Some(&[before, behind]) if given.shape.last() == Some(&2) => Ok(vec![(before, behind); dims]),
        Some(pairs) if given.shape == [dims, 2] => Ok(pairs.chunks(2).map(|pair| (pair[0], pair[1])).collect()),
        Some(each) if given.shape == [dims, 1] => Ok(each.iter().map(|n| (*n, *n)).collect()),
        _ => Err(wrong("np.pad: pad_width is an int, a pair of ints, or a pair for each axis", span)),
    }
}

/// `np.pad(array, pad_width, mode="constant", constant_values=0)`
fn pad(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, width, mode, fill] = given!(interp, args, "pad", ["array", "pad_width", "mode", "constant_values"], 2);
    let mut x = array_of(x, span)?;
    let widths = widths(&width.unwrap_or(Value::None), x.shape.len(), span)?;
    let edge = match &mode {
        None => false,
        Some(Value::Str(mode)) if &**mode == "constant" => false,
        Some(Value::Str(mode)) if &**mode == "edge" && fill.is_none() => true,
        _ => {
            return Err(wrong(
                "np.pad: the modes are \"constant\" and \"edge\", whose values are those of the edge",
                span,
            ));
        }
    };
    let fill = match fill.map(|fill| array_of(Some(fill), span)).transpose()? {
        None => x.dtype.fit(Imm::Int(0)),
        Some(fill) if fill.values.len() == 1 => fill.astype(x.dtype).values[0],
        Some(_) => return Err(wrong("np.pad: constant_values must be one number", span)),
    };
    let shape: Vec<usize> =
        x.shape.iter().zip(&widths).map(|(n, (a, b))| n.saturating_add(*a).saturating_add(*b)).collect();
    if let Err(done) = bounded(interp, &shape, "pad", span) {
        return done;
    }
    for (axis, (before, behind)) in widths.into_iter().enumerate() {
        let (outer, extent, inner) = lines(&x, axis);
        if edge && extent == 0 && before + behind > 0 {
            return Err(wrong("np.pad: an axis without elements has no edge", span));
        }
        let mut values = Vec::with_capacity(outer * (before + extent + behind) * inner);
        for o in 0..outer {
            for i in 0..before + extent + behind {
                let source = i.clamp(before, before + extent.saturating_sub(1)) - before;
                if edge || (before..before + extent).contains(&i) {
                    let start = (o * extent + source) * inner;
                    values.extend_from_slice(&x.values[start..start + inner]);
                } else {
                    values.extend(std::iter::repeat_n(fill, inner));
                }
            }
        }
        let mut shape = x.shape;
        shape[axis] = before + extent + behind;
        x = Array::new(x.dtype, shape, values);
    }
    array::charged(interp, x.value(), span)
}

/// `np.split(ary, indices_or_sections, axis=0)` and `np.array_split`
fn split(interp: &mut Interp<'_>, args: CallArgs, what: &str) -> EvalResult<Value> {
    let span = args.span;
    let [x, sections, axis] = given!(interp, args, what, ["ary", "indices_or_sections", "axis"], 2);
    let shared = shared(x, span)?;
    let shape = array_of(Some(shared.clone()), span)?.shape;
    let axis = axis_of(&axis.unwrap_or(Value::Int(0)), shape.len(), what, span)?;
    let extent = shape[axis];
    let sections = sections.unwrap_or(Value::None);
    let bounds: Vec<(usize, usize)> = if let Some(parts) = sections.as_int() {
        let parts = usize::try_from(parts).ok().filter(|n| *n > 0);
        let parts = parts.ok_or_else(|| wrong(format!("np.{what}: the number of parts must be above 0"), span))?;
        if what == "split" && extent % parts != 0 {
            return Err(wrong(format!("np.split: an axis of extent {extent} has no {parts} equal parts"), span));
        }
        array::bounded(&[parts], span)?;
        let (size, larger) = (extent / parts, extent % parts);
        let start = |i: usize| i * size + i.min(larger);
        (0..parts).map(|i| (start(i), start(i + 1))).collect()
    } else {
        let places = array_of(Some(sections), span)?;
        let place = |v: &Imm| match v {
            Imm::Int(n) if *n < 0 => Some((extent as i64 + n).max(0) as usize),
            Imm::Int(n) => Some((*n as usize).min(extent)),
            _ => None,
        };
        let places: Option<Vec<usize>> = places.values.iter().map(place).collect();
        let places = places.ok_or_else(|| wrong(format!("np.{what}: the places to split at must be ints"), span))?;
        let starts = [0].into_iter().chain(places.iter().copied());
        starts.zip(places.iter().copied().chain([extent])).collect()
    };
    let mut parts = Vec::with_capacity(bounds.len());
    for (start, stop) in bounds {
        let mut index = vec![part(None, None, None); axis];
        index.push(part(Some(start), Some(stop.max(start)), None));
        parts.push(interp.get_item(&shared, &Value::tuple(index), span)?);
    }
    Ok(Value::list(parts))
}

/// `np.append(arr, values, axis=None)`
fn append(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, values, axis] = given!(interp, args, "append", ["arr", "values", "axis"], 2);
    let (x, values) = (array_of(x, span)?, array_of(values, span)?);
    let made = match some(axis) {
        None => array::concatenate(&[x.flat(), values.flat()], 0, span)?,
        Some(axis) => {
            let axis = axis_of(&axis, x.shape.len(), "append", span)?;
            array::concatenate(&[x, values], axis as i64, span)?
        }
    };
    array::charged(interp, made, span)
}
