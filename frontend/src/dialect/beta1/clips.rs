//! The parts of tiles, of views of them, and of the results of reductions that masks leave.

use nki_diag::Span;
use nki_isa::{Dim, Index, Indirect};
use smallvec::SmallVec;

use crate::build::tensor::{Tensor, tuple_text};
use crate::dialect::common::clip::Clip;
use crate::eval::error::{EvalResult, Raise};

/// The axis of a tile for an axis of a mask. Axes are aligned from the end, axis 0 with axis 0: `None` if the tile has fewer.
fn axis_of(at: usize, mask_rank: usize, rank: usize) -> Option<usize> {
    // Free axes are never partitions, so a tile that lacks an axis is not masked along another one.
    if at == 0 { Some(0) } else { (rank + at).checked_sub(mask_rank).filter(|&axis| axis > 0) }
}

/// The axes of a frame that a clip restricts, each with the remaining part.
pub(super) fn restrictions<'c>(
    clip: &'c Clip,
    frame: &[u32],
    about: &Tensor,
    span: Span,
) -> EvalResult<Vec<(usize, &'c (u32, u32))>> {
    let is_column = frame.iter().skip(1).all(|&n| n == 1);
    let mut out = Vec::new();
    for (at, kept) in clip.kept.iter().enumerate() {
        let count = clip.frame[at];
        if *kept == (0, count) {
            continue;
        }
        match axis_of(at, clip.frame.len(), frame.len()).and_then(|a| frame.get(a).map(|&n| (a, n))) {
            Some((axis, n)) if n == count => out.push((axis, kept)),
            // Elements repeated along the axis are unaffected.
            Some((_, 1)) => {}
            None if is_column => {}
            _ => {
                let message = format!(
                    "mask= restricts an axis of length {count}, but `{}` of shape {} has no such axis",
                    about.storage.name,
                    tuple_text(frame.iter().map(|&n| i64::from(n)))
                );
                return Err(Raise::at("bad-mask", message, span, "here")
                    .help("build the mask from the index tiles of the operands, or from tiles of their shape"));
            }
        }
    }
    Ok(out)
}

pub(super) fn counts(t: &Tensor) -> SmallVec<[u32; 4]> {
    t.view.dims.iter().map(|d| d.count).collect()
}

/// The clip without the axes that a tile lacks: for results that have only some of the axes of the operands.
pub(super) fn of_axes(t: &Tensor, clip: &Clip) -> Clip {
    let mut clip = clip.clone();
    for at in 0..clip.frame.len() {
        let dim = axis_of(at, clip.frame.len(), t.ndim()).and_then(|a| t.view.dims.get(a));
        if dim.is_none_or(|d| d.count != clip.frame[at]) {
            clip.kept[at] = (0, clip.frame[at]);
        }
    }
    clip
}

/// The part that a clip leaves of a tile that shares only the partitions with the masked one.
pub(super) fn of_partitions(t: &Tensor, clip: &Clip) -> Clip {
    let frame = counts(t);
    let mut kept: SmallVec<[(u32, u32); 4]> = frame.iter().map(|&n| (0, n)).collect();
    if let (Some(rows), Some(part), true) = (kept.first_mut(), clip.kept.first(), frame.first() == clip.frame.first()) {
        *rows = *part;
    }
    Clip { frame, kept }
}

/// The part that a clip leaves of the result of a reduction of `data` over `axes`: the part along the axes that are not reduced.
pub(super) fn of_reduction(clip: &Clip, data: &Tensor, axes: &[i64], result: &Tensor, span: Span) -> EvalResult<Clip> {
    if clip.is_empty() {
        return Ok(clip.clone());
    }
    let shape = counts(data);
    let mut parts: Vec<(u32, u32)> = shape.iter().map(|&n| (0, n)).collect();
    for (axis, &part) in restrictions(clip, &shape, data, span)? {
        parts[axis] = part;
    }
    let frame = counts(result);
    let rank = shape.len() as i64;
    let is_reduced = |d: i64| axes.iter().any(|&a| a == d || a + rank == d);
    // Kept dimensions retain their positions, or come last after an axis in the middle has been moved.
    let in_place = frame.len() == shape.len() && (0..).zip(&frame).all(|(d, &n)| !is_reduced(d) || n == 1);
    let mut kept: SmallVec<[(u32, u32); 4]> = if in_place {
        (0..).zip(parts).map(|(d, part)| if is_reduced(d) { (0, 1) } else { part }).collect()
    } else {
        (0..).zip(parts).filter(|(d, _)| !is_reduced(*d)).map(|(_, part)| part).collect()
    };
    kept.resize(frame.len(), (0, 1));
    Ok(Clip { frame, kept })
}

/// The clip without the axes that an operand of `rank` lacks compared with one of `widest` axes: it repeats along them.
pub(super) fn of_rank(clip: &Clip, rank: usize, widest: usize) -> Clip {
    let mut clip = clip.clone();
    let of_mask = clip.frame.len();
    if of_mask <= widest {
        for at in (0..of_mask).filter(|&at| axis_of(at, of_mask, rank).is_none()) {
            clip.kept[at] = (0, clip.frame[at]);
        }
    }
    clip
}

/// The part that a clip of a whole tile leaves of a view of it: rectangles of the view.
pub(super) fn parts_of_view(view: &Tensor, clip: &Clip, span: Span) -> EvalResult<Vec<Clip>> {
    let whole = Tensor::whole(view.storage.clone());
    let frame = counts(view);
    if clip.is_empty() {
        return Ok(Vec::new());
    }
    if view.view.dtype != whole.view.dtype || view.view.indirect.is_some() {
        // Elements of another type do not correspond to those of the mask.
        let kept = frame.iter().map(|&n| (0, n)).collect();
        return Ok(vec![Clip { frame, kept }]);
    }
    let of_whole = counts(&whole);
    let mut rows = (0, of_whole[0]);
    let mut free: SmallVec<[(u32, u32); 4]> = of_whole[1..].iter().map(|&n| (0, n)).collect();
    for (axis, &part) in restrictions(clip, &of_whole, &whole, span)? {
        if axis == 0 { rows = part } else { free[axis - 1] = part }
    }
    let is_kept = |mut offset: i64| {
        whole.view.dims[1..].iter().zip(&free).all(|(dim, &(from, to))| {
            let at = offset / dim.stride;
            offset %= dim.stride;
            i64::from(from) <= at && at < i64::from(to)
        })
    };
    let first = view.view.dims[0];
    let is_kept_row = |i: &u32| {
        let row = i64::from(view.view.partition) + first.stride * i64::from(*i);
        i64::from(rows.0) <= row && row < i64::from(rows.1)
    };
    let mut inside = (0..first.count).filter(is_kept_row);
    let Some(start) = inside.next() else { return Ok(Vec::new()) };
    let part = (start, inside.next_back().unwrap_or(start) + 1);
    let rectangles = rectangles(&view.view.dims[1..], view.view.offset, &is_kept);
    let part = |free: Rectangle| Clip { frame: frame.clone(), kept: [&[part], &free[..]].concat().into() };
    Ok(rectangles.into_iter().map(part).collect())
}

/// A part of each of several dimensions, as half-open ranges.
type Rectangle = Vec<(u32, u32)>;

/// The rectangles of `dims` whose elements have an offset with `is_kept`: neighbours with the same parts are merged.
fn rectangles(dims: &[Dim], offset: i64, is_kept: &impl Fn(i64) -> bool) -> Vec<Rectangle> {
    let Some((dim, rest)) = dims.split_first() else {
        return if is_kept(offset) { vec![Vec::new()] } else { Vec::new() };
    };
    let mut out = Vec::new();
    let mut run: Option<(u32, Vec<Rectangle>)> = None;
    let mut close = |run: Option<(u32, Vec<Rectangle>)>, end: u32| {
        for inner in run.into_iter().flat_map(|(start, inner)| inner.into_iter().map(move |i| (start, i))) {
            out.push([&[(inner.0, end)], &inner.1[..]].concat());
        }
    };
    for i in 0..dim.count {
        let inner = rectangles(rest, offset + dim.stride * i64::from(i), is_kept);
        if run.as_ref().is_none_or(|(_, parts)| *parts != inner) {
            close(run.replace((i, inner)), i);
        }
    }
    close(run, dim.count);
    out
}

/// The part that a clip leaves of a tile.
pub(super) fn narrowed(t: &Tensor, clip: &Clip, span: Span) -> EvalResult<Tensor> {
    let frame = counts(t);
    let mut view = t.view.clone();
    for (axis, &(from, to)) in restrictions(clip, &frame, t, span)? {
        let dim = &mut view.dims[axis];
        let moved = i64::from(from) * dim.stride;
        dim.count = to - from;
        let vector = match view.indirect.as_deref_mut() {
            Some(Indirect { index: Index::Vector(index), .. }) if axis == 0 => Some(index),
            _ => None,
        };
        if let Some(index) = vector {
            // The selected rows are those of the remaining indices.
            index.dims[0].count = to - from;
            let step = i64::from(from) * index.dims[0].stride;
            if index.space.is_on_chip() { index.partition += step as u32 } else { index.offset += step }
        } else if axis == 0 && view.space.is_on_chip() {
            view.partition += moved as u32;
        } else {
            view.offset += moved;
        }
    }
    Ok(t.with_view(view))
}
