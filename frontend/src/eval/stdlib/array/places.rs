//! The positions of the elements that an index or a new shape selects.

use nki_diag::Span;
use nki_isa::{DType, Imm};

use super::{Array, bounded, is, product, text, wrong};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::value::{Range, Value};
use crate::host::HostDtype;

/// Extent and stride of a dimension, in elements.
pub(super) type Dim = (usize, i64);

/// The elements that an index selects.
pub(super) enum Picked {
    /// A view: its first element and its dimensions.
    View(i64, Vec<Dim>),
    /// Individual elements, and the shape of the result.
    Elements(Vec<usize>, Vec<usize>),
}

pub(super) fn shape_of(dims: &[Dim]) -> Vec<usize> {
    dims.iter().map(|d| d.0).collect()
}

/// The positions `offset + sum(index * stride)`, the last dimension fastest.
pub(super) fn positions(offset: i64, dims: &[Dim]) -> impl Iterator<Item = usize> + '_ {
    (0..product(&shape_of(dims))).map(move |i| {
        let (mut rest, mut at) = (i, offset);
        for &(count, stride) in dims.iter().rev() {
            at += (rest % count) as i64 * stride;
            rest /= count;
        }
        at as usize
    })
}

/// Whether the elements of these dimensions are contiguous and in order.
pub(super) fn is_contiguous(dims: &[Dim]) -> bool {
    let mut next = 1;
    dims.iter().rev().filter(|d| d.0 != 1).all(|&(count, stride)| {
        let fits = stride == next;
        next *= count as i64;
        fits
    })
}

/// The elements at these positions.
pub(super) fn gather(elements: &[Imm], offset: i64, dims: &[Dim]) -> Vec<Imm> {
    let count = product(&shape_of(dims));
    if count > 0 && is_contiguous(dims) {
        return elements[offset as usize..offset as usize + count].to_vec();
    }
    positions(offset, dims).map(|at| elements[at]).collect()
}

/// The elements that `array[index]` selects, where `offset` is the position of the array's first
/// element.
pub(super) fn pick(
    interp: &mut Interp<'_>,
    offset: i64,
    dims: &[Dim],
    index: &Value,
    span: Span,
) -> EvalResult<Picked> {
    if is(index) || matches!(index, Value::List(_)) {
        let picks = Array::from_value(index, None, span)?;
        return match picks.dtype {
            HostDtype::Device(DType::Bool) => masked(offset, dims, &picks, span),
            dtype if dtype.is_float() => {
                Err(Raise::at("type-error", "floats cannot index an array", span, "used as an index here"))
            }
            _ => rows(interp, offset, dims, &picks, span),
        };
    }
    let (offset, dims) = places(interp, offset, dims, index, span)?;
    Ok(Picked::View(offset, dims))
}

/// `array[mask]`: the elements or rows for which the mask is true.
fn masked(offset: i64, dims: &[Dim], mask: &Array, span: Span) -> EvalResult<Picked> {
    let shape = shape_of(dims);
    if mask.shape.is_empty() || !shape.starts_with(&mask.shape) {
        let message = format!("a mask of shape {} for an array of shape {}", text(&mask.shape), text(&shape));
        return Err(Raise::at("index-out-of-range", message, span, "here"));
    }
    let (outer, inner) = dims.split_at(mask.shape.len());
    let chosen: Vec<i64> = positions(offset, outer)
        .zip(&mask.values)
        .filter(|(_, holds)| **holds != Imm::Int(0))
        .map(|(at, _)| at as i64)
        .collect();
    let shape = [&[chosen.len()], &shape[mask.shape.len()..]].concat();
    Ok(Picked::Elements(chosen.into_iter().flat_map(|at| positions(at, inner)).collect(), shape))
}

/// `array[numbers]`: rows in the order of the numbers.
fn rows(interp: &mut Interp<'_>, offset: i64, dims: &[Dim], numbers: &Array, span: Span) -> EvalResult<Picked> {
    let Some((&(count, stride), inner)) = dims.split_first() else {
        return Err(Raise::at("index-out-of-range", "an index for an array of no dimensions", span, "here"));
    };
    let shape = [&numbers.shape[..], &shape_of(inner)].concat();
    bounded(&shape, span)?;
    let mut found = Vec::new();
    for number in &numbers.values {
        let at = interp.index(&Value::Int(number.as_i64().unwrap_or(0)), count, "array axis", span)?;
        found.extend(positions(offset + at as i64 * stride, inner));
    }
    Ok(Picked::Elements(found, shape))
}

/// Integer indices and slices.
fn places(
    interp: &mut Interp<'_>,
    mut offset: i64,
    own: &[Dim],
    index: &Value,
    span: Span,
) -> EvalResult<(i64, Vec<Dim>)> {
    let keys = match index {
        Value::Tuple(items) => items.to_vec(),
        one => vec![one.clone()],
    };
    let named = keys.iter().filter(|k| !k.is_none() && !matches!(k, Value::Ellipsis)).count();
    if named > own.len() {
        let message = format!("{named} indices for an array of shape {}", text(&shape_of(own)));
        return Err(Raise::at("index-out-of-range", message, span, "here"));
    }
    let (mut dims, mut axis, mut rest) = (Vec::new(), 0, own.len() - named);
    for key in keys.iter().chain([&Value::Ellipsis]) {
        match key {
            Value::None => dims.push((1, 0)),
            Value::Ellipsis => {
                let all = std::mem::take(&mut rest);
                dims.extend_from_slice(&own[axis..axis + all]);
                axis += all;
            }
            Value::Slice(slice) => {
                let (count, stride) = own[axis];
                let (start, stop, step) = interp.slice_bounds(slice, count, span)?;
                offset += start * stride;
                dims.push((Range { start, stop, step }.len().max(0) as usize, step * stride));
                axis += 1;
            }
            Value::Bool(_) => {
                let message = "a bool as an index of an array, which NumPy takes for a mask of all elements";
                return Err(Raise::at("type-error", message, span, "here").help("convert it: int(x)"));
            }
            other => {
                let (count, stride) = own[axis];
                offset += interp.index(other, count, "array axis", span)? as i64 * stride;
                axis += 1;
            }
        }
    }
    Ok((offset, dims))
}

/// The shape requested from `reshape`, with -1 replaced.
pub(super) fn new_shape(own: &[Dim], wanted: &[i64], span: Span) -> EvalResult<Vec<usize>> {
    let elements = product(&shape_of(own));
    let known = product(&wanted.iter().filter(|d| **d >= 0).map(|d| *d as usize).collect::<Vec<_>>());
    let shape: Vec<usize> = wanted.iter().map(|&d| if d >= 0 { d as usize } else { elements / known.max(1) }).collect();
    if product(&shape) != elements || wanted.iter().filter(|d| **d < 0).count() > 1 {
        let message = format!("an array of shape {} cannot be reshaped to {}", text(&shape_of(own)), text(&shape));
        return Err(wrong(message, span));
    }
    Ok(shape)
}

/// The dimensions of a view with another shape and the same number of elements; `None` if NumPy has
/// to copy.
///
/// Takes dimensions from both shapes until their products are equal. The old dimensions taken must
/// be contiguous.
pub(super) fn reshaped(own: &[Dim], shape: &[usize]) -> Option<Vec<Dim>> {
    if product(shape) == 0 {
        return None;
    }
    let own: Vec<Dim> = own.iter().copied().filter(|d| d.0 != 1).collect();
    let mut old = own.iter();
    let (mut dims, mut new) = (Vec::new(), shape.iter().copied().peekable());
    while let Some(first) = new.next() {
        if first == 1 {
            dims.push((1, 0));
            continue;
        }
        let mut taken = vec![first];
        let mut last = *old.next()?;
        let mut count = last.0;
        while product(&taken) != count {
            if product(&taken) < count {
                taken.push(new.next()?);
            } else {
                let &(extent, stride) = old.next()?;
                if last.1 != stride * extent as i64 {
                    return None;
                }
                (last, count) = ((extent, stride), count * extent);
            }
        }
        let mut stride = last.1 * count as i64;
        for extent in taken {
            stride /= extent as i64;
            dims.push((extent, stride));
        }
    }
    Some(dims)
}
