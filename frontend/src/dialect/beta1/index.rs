//! `t[...]`: ints, slices, `nl.ds`, index tiles, and a column of indices.

use nki_diag::Span;
use nki_isa::Violation;
use smallvec::SmallVec;

use super::access::{Access, access, gathered};
use super::affine::{Axis, IndexTile, Moved};
use super::blocks::Blocks;
use super::matmul::MaskedOperand;
use super::mgrid::MgridTiles;
use crate::build::tensor::{Key, Tensor};
use crate::dialect::common::errors::raise;
use crate::dialect::common::handles::Ds;
use crate::dialect::common::registers::Register;
use crate::dialect::common::values::{index as run_time, is_run_time, tensor};
use crate::eval::Interp;
use crate::eval::convert::{int, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::value::Value;

/// `base[index]`: a tile, an access that needs a mask, or a smaller table.
pub(super) fn index(interp: &mut Interp<'_>, base: &Value, index: &Value, span: Span) -> EvalResult<Value> {
    let keys = match index {
        Value::Tuple(items) => items.to_vec(),
        other => match other.downcast::<MgridTiles>() {
            // `t[nl.mgrid[0:128, 0:512]]`: a tile for each dimension.
            Some(tiles) => tiles.0.iter().cloned().map(Value::object).collect(),
            None => vec![other.clone()],
        },
    };
    if let Some(masked) = MaskedOperand::of(base, index, span)? {
        return Ok(masked);
    }
    if let Some(blocks) = base.downcast::<Blocks>() {
        let (value, rest) = blocks.clone().pick(interp, &keys, span)?;
        if rest.is_empty() {
            return Ok(value);
        }
        return of_tensor(tensor(&value, "an index", span)?, &rest, span);
    }
    of_tensor(tensor(base, "an index", span)?, &keys, span)
}

fn refuse(t: &Tensor, id: &'static str, message: String, help: &str, span: Span) -> Box<Raise> {
    raise("", &Violation::new(id, "", message).help(help), span, &[&t.storage])
}

fn of_tensor(t: &Tensor, keys: &[Value], span: Span) -> EvalResult<Value> {
    if let Err(violation) = t.plain("an index") {
        return Err(raise("", &violation, span, &[&t.storage]));
    }
    if keys.iter().any(|k| k.downcast::<IndexTile>().is_some() || k.downcast::<Moved>().is_some()) {
        return by_tiles(t, keys, span);
    }
    if keys.iter().any(Value::is_none) {
        return Err(refuse(
            t,
            "bad-index",
            format!("None in an index of `{}`", t.storage.name),
            "None adds an axis only to an index tile: nl.arange(n)[:, None]; reshape a tensor with .reshape or .expand_dims",
            span,
        ));
    }
    if let Some(at) = keys.iter().position(|k| k.downcast::<Tensor>().is_some()) {
        return by_numbers(t, keys, at, span);
    }
    let keys = keys.iter().map(|k| one_key(t, k, span)).collect::<EvalResult<SmallVec<[Key; 6]>>>()?;
    match t.index(&keys) {
        Ok(made) => Ok(Value::object(made)),
        Err(v) if v.id == "out-of-bounds" => match slices(t, &keys) {
            Some(outside) => Ok(Value::object(outside)),
            None => Err(raise("", &v, span, &[&t.storage])),
        },
        Err(v) => Err(raise("", &v, span, &[&t.storage])),
    }
}

/// An index of a tensor by ints, slices and registers.
fn one_key(t: &Tensor, value: &Value, span: Span) -> EvalResult<Key> {
    let what = || format!("an index of `{}`", t.storage.name);
    let bound = |v: &Value| if v.is_none() { Ok(None) } else { int(v, what(), span).map(Some) };
    Ok(match value {
        Value::Ellipsis => Key::Ellipsis,
        Value::Slice(s) => Key::Slice(bound(&s.start)?, bound(&s.stop)?, bound(&s.step)?),
        Value::Object(_) if let Some(Ds { start, size }) = value.downcast() => match start {
            Value::Int(start) => Key::Span(*start, *size),
            start => Key::DynamicSpan(run_time(t, start, "nl.ds: start", span)?, *size),
        },
        Value::Object(_) if is_run_time(value) => Key::Dynamic(run_time(t, value, what(), span)?),
        other => match other.as_int() {
            Some(i) => Key::At(i),
            None => return Err(wrong(what(), "ints, slices, nl.ds(...), index tiles or `...`", other, span)),
        },
    })
}

/// Slices beyond the tensor, as an access that a mask may clip.
fn slices(t: &Tensor, keys: &[Key]) -> Option<Access> {
    let given = keys.iter().filter(|k| !matches!(k, Key::Ellipsis)).count();
    let mut lines: Vec<(i64, Option<(u32, i64)>)> = Vec::new();
    for key in keys {
        let size = |d: usize| t.view.dims.get(d).map(|d| i64::from(d.count));
        match key {
            Key::Ellipsis => {
                for _ in given..t.ndim() {
                    lines.push((0, Some((size(lines.len())? as u32, 1))));
                }
            }
            Key::At(i) => lines.push((*i, None)),
            Key::Span(start, count) => lines.push((*start, Some((u32::try_from(*count).ok()?, 1)))),
            Key::Slice(start, stop, step) => {
                let (start, step) = (start.unwrap_or(0), step.unwrap_or(1));
                let stop = stop.unwrap_or(size(lines.len())?);
                if start < 0 || step < 1 || stop <= start {
                    return None;
                }
                lines.push((start, Some((u32::try_from((stop - start - 1) / step + 1).ok()?, step))));
            }
            Key::Dynamic(_) | Key::DynamicSpan(..) => return None,
        }
    }
    for d in lines.len()..t.ndim() {
        lines.push((0, Some((t.view.dims[d].count, 1))));
    }
    if t.on_chip()
        && let Some(first @ (_, None)) = lines.first_mut()
    {
        first.1 = Some((1, 1));
    }
    let frame: SmallVec<[u32; 4]> = lines.iter().filter_map(|l| l.1.map(|(count, _)| count)).collect();
    let mut axis = 0;
    let entries = lines
        .iter()
        .map(|&(constant, along)| {
            let mut axes: SmallVec<[Axis; 4]> = frame.iter().map(|&count| Axis { count, coefficient: 0 }).collect();
            if let Some((_, step)) = along {
                axes[axis].coefficient = step;
                axis += 1;
            }
            IndexTile { constant, axes }
        })
        .collect();
    Some(Access { base: t.clone(), entries, frame, picked: None })
}

/// The run-time offsets of an index, and the index tile added to them.
fn of_device(key: &Value) -> Option<(&Tensor, IndexTile)> {
    match key.downcast::<Moved>() {
        Some(moved) => Some((&moved.by, moved.tile.clone())),
        None => key.downcast::<Tensor>().map(|offsets| (offsets, IndexTile::constant(0))),
    }
}

/// `t[i_p, i_f]`: index tiles and ints, one for each dimension, and a column of indices.
fn by_tiles(t: &Tensor, keys: &[Value], span: Span) -> EvalResult<Value> {
    if keys.len() != t.ndim() {
        let message = format!("{} indices for `{}`, which has shape {}", keys.len(), t.storage.name, t.shape_text());
        return Err(refuse(t, "bad-index", message, "with index tiles each dimension needs an index", span));
    }
    let mut entries = Vec::with_capacity(keys.len());
    let mut numbers = None;
    for (d, key) in keys.iter().enumerate() {
        if let Some(tile) = IndexTile::of(key) {
            if tile.axes.len() == 1 {
                let message = format!("an index tile of one dimension in an index of `{}`", t.storage.name);
                let help = "say which axis of the result it is: nl.arange(n)[:, None] for partitions, nl.arange(n)[None, :] for free elements";
                return Err(refuse(t, "bad-index", message, help, span));
            }
            // Counted from the end, as in Python.
            let from_end = tile.axes.is_empty() && tile.constant < 0;
            let constant = if from_end { tile.constant + i64::from(t.view.dims[d].count) } else { tile.constant };
            entries.push(IndexTile { constant, ..tile });
        } else if let Some((offsets, tile)) = of_device(key) {
            if numbers.replace((d, offsets.clone())).is_some() {
                let message = format!("two tensors in an index of `{}`", t.storage.name);
                return Err(refuse(t, "indirect-view", message, "an access can have only one run-time index", span));
            }
            entries.push(tile);
        } else if key.downcast::<Register>().is_some() {
            let message = format!("a register and index tiles in one index of `{}`", t.storage.name);
            return Err(refuse(t, "bad-index", message, "use slices with nl.ds(register, size)", span));
        } else {
            let message = format!("{} and index tiles in one index of `{}`", key.a_type(), t.storage.name);
            let help = "slices and index tiles cannot be mixed: write nl.arange(n)[None, :] for the slice";
            return Err(refuse(t, "bad-index", message, help, span));
        }
    }
    access(t, &entries, numbers, span)
}

/// `data[idx, ...]`: a column of indices in addition to ints and slices.
fn by_numbers(t: &Tensor, keys: &[Value], at: usize, span: Span) -> EvalResult<Value> {
    let offsets = tensor(&keys[at], "an index", span)?.clone();
    let mut others = Vec::with_capacity(keys.len());
    for (d, key) in keys.iter().enumerate() {
        let column = d == at && offsets.view.elements() > 1;
        others.push(match (d == at, column) {
            (true, true) => Key::Span(0, 1),
            (true, false) => Key::At(0),
            _ => one_key(t, key, span)?,
        });
    }
    if keys.iter().take(at).any(|k| matches!(k, Value::Ellipsis)) || others.iter().any(|k| matches!(k, Key::Dynamic(_)))
    {
        let message = format!("a tensor of indices and `...` or another tensor in one index of `{}`", t.storage.name);
        return Err(refuse(t, "indirect-view", message, "write an index for each dimension before it", span));
    }
    t.index(&others)
        .and_then(|rest| gathered(t, at, &offsets, rest, 0))
        .map(Value::object)
        .map_err(|v| raise("", &v, span, &[&t.storage]))
}
