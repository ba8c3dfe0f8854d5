//! What an operand of an instruction names: a tile, an access by index tiles that a mask may still clip, or a table of tiles.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use nki_isa::view::Dims;
use nki_isa::{Dim, Index, Indirect, View, Violation};
use smallvec::SmallVec;

use super::affine::{IndexTile, Mask, clip_of, common_frame};
use super::blocks::Blocks;
use crate::build;
use crate::build::tensor::{Tensor, shape_text};
use crate::dialect::common::clip::Clip;
use crate::dialect::common::errors::raise;
use crate::eval::convert::wrong;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::value::Value;
use crate::eval::{Interp, stdlib::dtype};

/// `t[...]` by index tiles, of which a part is outside of `t`: legal where a mask leaves only what is inside.
#[derive(Debug, Clone)]
pub(super) struct Access {
    /// What is indexed.
    pub(super) base: Tensor,
    /// An index of each dimension, all in one frame.
    pub(super) entries: Vec<IndexTile>,
    /// Extents of the frame.
    pub(super) frame: SmallVec<[u32; 4]>,
    /// The dimension to whose index the device adds its own numbers, and these.
    pub(super) picked: Option<(usize, Tensor)>,
}

impl Access {
    /// The elements that a clip leaves.
    pub(super) fn clipped(&self, clip: &Clip, span: Span) -> EvalResult<Tensor> {
        let mut entries = self.entries.clone();
        let (mut frame, mut picked) = (self.frame.clone(), self.picked.clone());
        for (axis, &(from, to)) in restrictions(clip, &self.frame, &self.base, span)? {
            if let Some((_, offsets)) = &mut picked
                && axis == 0
                && offsets.view.partitions() > 1
            {
                // The rows picked are those of the indices that are left.
                let left = offsets.slice(0, i64::from(from), i64::from(to), 1);
                *offsets = left.map_err(|v| raise("", &v, span, &[&self.base.storage]))?;
            }
            frame[axis] = to - from;
            entries.iter_mut().for_each(|entry| entry.restrict(&[(axis, &(from, to))]));
        }
        let clipped = Access { base: self.base.clone(), entries, frame, picked };
        match clipped.outside() {
            Some(violation) => Err(raise("", &violation, span, &[&self.base.storage])),
            None => clipped.view().map_err(|v| raise("", &v, span, &[&self.base.storage])),
        }
    }

    /// The first dimension that an index leaves.
    pub(super) fn outside(&self) -> Option<Violation> {
        for (d, entry) in self.entries.iter().enumerate() {
            let (low, high) = entry.range();
            if low >= 0 && self.picked.as_ref().is_some_and(|(picked, _)| *picked == d) {
                continue;
            }
            let size = i64::from(self.base.view.dims[d].count);
            if low < 0 || high >= size {
                let message = format!(
                    "index {low} to {high} is out of bounds for dimension {d} of `{}`, shape {}",
                    self.base.storage.name,
                    self.base.shape_text()
                );
                let help = "restrict the access with mask=, for example mask=index < size";
                return Some(Violation::new("out-of-bounds", "", message).help(help));
            }
        }
        None
    }

    /// The elements, which may lie outside of the tensor.
    pub(super) fn view(&self) -> build::Result<Tensor> {
        let t = &self.base;
        let on_chip = t.on_chip();
        let name = &t.storage.name;
        let mut view = t.view.clone();
        let mut dims: Dims = self.frame.iter().map(|&count| Dim { stride: 0, count }).collect();
        for (d, entry) in self.entries.iter().enumerate() {
            let of = t.view.dims[d];
            let partition = on_chip && d == 0;
            if partition {
                view.partition =
                    u32::try_from((i64::from(view.partition) + entry.constant * of.stride).max(0)).unwrap_or(u32::MAX);
            } else {
                view.offset += entry.constant * of.stride;
            }
            for (axis, a) in entry.axes.iter().enumerate() {
                let moves = a.coefficient != 0 && a.count > 1;
                if on_chip && moves && partition != (axis == 0) {
                    let message = if partition {
                        format!("axis {axis} of the index walks the partitions of `{name}`: only the first axis can")
                    } else {
                        format!(
                            "the first axis of the index walks dimension {d} of `{name}`: on chip it walks partitions only"
                        )
                    };
                    return Err(Violation::new("partition-dimension", "", message).help(
                        "the partition index is nl.arange(n)[:, None], free indices are nl.arange(m)[None, :]; transpose with nisa.nc_transpose",
                    ));
                }
                dims[axis].stride += a.coefficient * of.stride;
            }
        }
        if on_chip && dims[0].count > 1 && dims[0].stride == 0 {
            let message = format!("the index reads one partition of `{name}` {} times", dims[0].count);
            return Err(Violation::new("partition-dimension", "", message)
                .help("partitions are repeated by nl.broadcast_to or .broadcast_to((128, n))"));
        }
        if on_chip && dims[0].count == 1 {
            dims[0].stride = 1;
        }
        if on_chip && dims.len() == 1 {
            dims.push(Dim { stride: 1, count: 1 });
        }
        if dims.is_empty() {
            dims.push(Dim { stride: 1, count: 1 });
        }
        t.room(dims.len())?;
        view.dims = dims;
        match &self.picked {
            None => Ok(t.with_view(view)),
            Some((d, offsets)) => gathered(t, *d, offsets, t.with_view(view), self.entries[*d].range().1),
        }
    }
}

impl Object for Access {
    fn type_name(&self) -> &'static str {
        "tensor"
    }

    fn is_device_data(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["shape", "dtype", "ndim"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        Some(match name {
            "shape" => Value::tuple(self.frame.iter().map(|&n| Value::Int(i64::from(n))).collect::<Vec<_>>()),
            "dtype" => dtype::value(self.base.view.dtype),
            "ndim" => Value::Int(self.frame.len() as i64),
            _ => return None,
        })
    }

    fn item(&self, _interp: &mut Interp<'_>, this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        match MaskedOperand::of(this, index, span)? {
            Some(masked) => Ok(masked),
            None => Err(self.refuse(span)),
        }
    }
}

impl Access {
    fn refuse(&self, span: Span) -> Box<Raise> {
        match self.outside() {
            Some(violation) => raise("", &violation, span, &[&self.base.storage]),
            None => Raise::at("out-of-bounds", "an index out of bounds", span, "here"),
        }
    }
}

/// The axis of a tile that an axis of a mask is. Axes are aligned from the end, axis 0 with axis 0: `None` where the tile has fewer.
fn axis_of(at: usize, mask_rank: usize, rank: usize) -> Option<usize> {
    // Free axes are never partitions, so a tile that lacks an axis is not masked along another one.
    if at == 0 { Some(0) } else { (rank + at).checked_sub(mask_rank).filter(|&axis| axis > 0) }
}

/// The axes of a frame that a clip restricts, each with what it leaves.
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
            // What repeats along the axis stays as it is.
            Some((_, 1)) => {}
            None if is_column => {}
            _ => {
                let message = format!(
                    "mask= restricts an axis of length {count}, `{}` of shape {} has no such axis",
                    about.storage.name,
                    shape_text(frame.iter().map(|&n| i64::from(n)))
                );
                return Err(Raise::at("bad-mask", message, span, "here")
                    .help("build the mask from the index tiles of the operands, or from tiles of their shape"));
            }
        }
    }
    Ok(out)
}

fn counts(t: &Tensor) -> SmallVec<[u32; 4]> {
    t.view.dims.iter().map(|d| d.count).collect()
}

/// The clip without the axes that a tile does not have: for results that have only some of the axes of the operands.
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

/// What a clip leaves of a tile that shares only the partitions with the masked one.
pub(super) fn of_partitions(t: &Tensor, clip: &Clip) -> Clip {
    let frame = counts(t);
    let mut kept: SmallVec<[(u32, u32); 4]> = frame.iter().map(|&n| (0, n)).collect();
    if let (Some(rows), Some(part), true) = (kept.first_mut(), clip.kept.first(), frame.first() == clip.frame.first()) {
        *rows = *part;
    }
    Clip { frame, kept }
}

/// What a clip leaves of the result of a reduction of `data` over `axes`: the part along the axes that are not reduced.
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
    // Dimensions that are kept stay where they are, or come last after an axis in the middle has been moved.
    let in_place = frame.len() == shape.len() && (0..).zip(&frame).all(|(d, &n)| !is_reduced(d) || n == 1);
    let mut kept: SmallVec<[(u32, u32); 4]> = if in_place {
        (0..).zip(parts).map(|(d, part)| if is_reduced(d) { (0, 1) } else { part }).collect()
    } else {
        (0..).zip(parts).filter(|(d, _)| !is_reduced(*d)).map(|(_, part)| part).collect()
    };
    kept.resize(frame.len(), (0, 1));
    Ok(Clip { frame, kept })
}

/// The clip without the axes that an operand of `rank` lacks, which an operand of `widest` axes has: it repeats along them.
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

/// What a clip of a whole tile leaves of a view of it: rectangles of the view.
pub(super) fn parts_of_view(view: &Tensor, clip: &Clip, span: Span) -> EvalResult<Vec<Clip>> {
    let whole = Tensor::whole(view.storage.clone());
    let frame = counts(view);
    if clip.is_empty() {
        return Ok(Vec::new());
    }
    if view.view.dtype != whole.view.dtype || view.view.indirect.is_some() {
        // Elements of another type are no elements of the mask's.
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
    let part = |free: Vec<(u32, u32)>| Clip { frame: frame.clone(), kept: [&[part], &free[..]].concat().into() };
    Ok(rectangles.into_iter().map(part).collect())
}

/// The rectangles of `dims` that hold the elements where `is_kept` is true of the offset: neighbours with the same parts are one.
fn rectangles(dims: &[Dim], offset: i64, is_kept: &impl Fn(i64) -> bool) -> Vec<Vec<(u32, u32)>> {
    let Some((dim, rest)) = dims.split_first() else {
        return if is_kept(offset) { vec![Vec::new()] } else { Vec::new() };
    };
    let mut out = Vec::new();
    let mut run: Option<(u32, Vec<Vec<(u32, u32)>>)> = None;
    let mut close = |run: Option<(u32, Vec<Vec<(u32, u32)>>)>, end: u32| {
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

/// What a clip leaves of a tile.
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
            // The rows picked are those of the indices that are left.
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

/// An operand: all of it, and what a clip leaves of it.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Tile(Tensor),
    Access(Rc<Access>),
}

impl Place {
    /// The tile, access or single tile of a table that a value is; `None` for other values.
    pub(super) fn of(value: &Value, what: &str, span: Span) -> EvalResult<Option<Place>> {
        if let Some(t) = value.downcast::<Tensor>() {
            return Ok(Some(Place::Tile(t.clone())));
        }
        if let Some(access) = value.downcast_rc::<Access>() {
            return Ok(Some(Place::Access(access)));
        }
        if let Some(masked) = value.downcast::<MaskedOperand>() {
            let name = &masked.place.outline(span)?.storage.name;
            let message = format!("{what} takes no mask as an index: `{name}[mask]` is an operand of matmuls only");
            return Err(Raise::at("bad-mask", message, span, "here").help("pass mask= to the operation"));
        }
        match value.downcast::<Blocks>() {
            Some(blocks) => Err(blocks.whole(what, span)),
            None => Ok(None),
        }
    }

    /// The operand, which must be one.
    pub(super) fn need(value: &Value, what: &str, span: Span) -> EvalResult<Place> {
        Place::of(value, what, span)?.ok_or_else(|| wrong(what, "a tile", value, span))
    }

    pub(super) fn rank(&self) -> usize {
        match self {
            Place::Tile(t) => t.ndim(),
            Place::Access(access) => access.frame.len(),
        }
    }

    /// Its shape, type and memory as a tensor, whose elements are those of an instruction only without a mask.
    pub(super) fn outline(&self, span: Span) -> EvalResult<Tensor> {
        match self {
            Place::Tile(t) => Ok(t.clone()),
            Place::Access(access) => access.view().map_err(|v| raise("", &v, span, &[&access.base.storage])),
        }
    }

    /// The elements that an instruction uses.
    pub(super) fn tensor(&self, clip: Option<&Clip>, span: Span) -> EvalResult<Tensor> {
        match (self, clip) {
            (Place::Tile(t), None) => Ok(t.clone()),
            (Place::Tile(t), Some(clip)) => narrowed(t, clip, span),
            (Place::Access(access), Some(clip)) => access.clipped(clip, span),
            (Place::Access(access), None) => Err(access.refuse(span)),
        }
    }
}

/// `x[mask]`: an operand of a matmul, of which a mask leaves a part. The product has all rows and columns; those that are left are computed.
#[derive(Debug, Clone)]
pub(super) struct MaskedOperand {
    pub(super) place: Place,
    pub(super) clip: Clip,
}

impl MaskedOperand {
    /// `base[mask]`; `None` if the index is no mask.
    pub(super) fn of(base: &Value, index: &Value, span: Span) -> EvalResult<Option<Value>> {
        if index.downcast::<Mask>().is_none() {
            return Ok(None);
        }
        let (Some(place), Some(clip)) = (Place::of(base, "an index", span)?, clip_of(Some(index), span)?) else {
            return Ok(None);
        };
        Ok(Some(Value::object(MaskedOperand { place, clip })))
    }

    /// An operand of a matmul, and the mask that it has.
    pub(super) fn parts(value: &Value, what: &str, span: Span) -> EvalResult<(Place, Option<Clip>)> {
        match value.downcast::<MaskedOperand>() {
            Some(masked) => Ok((masked.place.clone(), Some(masked.clip.clone()))),
            None => Ok((Place::need(value, what, span)?, None)),
        }
    }
}

impl Object for MaskedOperand {
    fn type_name(&self) -> &'static str {
        "masked operand"
    }

    fn is_device_data(&self) -> bool {
        true
    }
}

/// What masks leave of a matmul: of its first operand, its second and its product.
pub(super) struct MatmulClips {
    pub(super) first: Clip,
    pub(super) second: Clip,
    pub(super) product: Clip,
    /// What to say where `mask=` has more than one meaning.
    pub(super) ambiguous: Option<String>,
}

/// The extents of a matmul and what is left of each: of the rows of the product, its columns, and the contraction.
struct MatmulParts {
    rows: (u32, u32),
    columns: (u32, u32),
    contracted: (u32, u32),
}

impl MatmulClips {
    /// The parts of operands with masks of their own, and of `mask=`; `rows` is the axis of the first that the rows of the product `whole`
    /// are. What one operand leaves out of the contraction the other leaves out, too.
    pub(super) fn new(
        first: &(Place, Option<Clip>),
        second: &(Place, Option<Clip>),
        rows: usize,
        whole: &Tensor,
        mask: Option<&Clip>,
        span: Span,
    ) -> EvalResult<Self> {
        let (of_rows, of_columns) = (whole.view.partitions(), whole.view.free_elements() as u32);
        let inner = second.0.outline(span)?.view.partitions();
        let mut first_frame = [inner; 2];
        first_frame[rows] = of_rows;
        let second_frame = [inner, of_columns];
        let outer = own_parts(first, first_frame, span)?;
        let own = own_parts(second, second_frame, span)?;
        let mut parts = MatmulParts { rows: outer[rows], columns: own[1], contracted: common(outer[1 - rows], own[0]) };
        let mut ambiguous = None;
        if let Some(mask) = mask {
            ambiguous = parts.restrict(mask, [first_frame, second_frame], rows, span)?;
        }
        if [parts.rows, parts.columns, parts.contracted].iter().any(|(from, to)| from >= to) {
            (parts.rows, parts.columns) = ((0, 0), (0, 0));
        }
        let mut kept = [parts.contracted; 2];
        kept[rows] = parts.rows;
        let clip = |frame: [u32; 2], kept: [(u32, u32); 2]| Clip {
            frame: frame.into_iter().collect(),
            kept: kept.into_iter().collect(),
        };
        Ok(MatmulClips {
            first: clip(first_frame, kept),
            second: clip(second_frame, [parts.contracted, parts.columns]),
            product: clip([of_rows, of_columns], [parts.rows, parts.columns]),
            ambiguous,
        })
    }

    /// Reports that `mask=` may mean something else.
    pub(super) fn report(&self, interp: &mut Interp<'_>, span: Span) {
        if let Some(message) = &self.ambiguous {
            let finding = Diagnostic::warning("matmul-mask", message.clone())
                .at(span, "in this call")
                .help("write x[i_p < n] for the operand that is meant: its rows are the contraction, its columns are in the product");
            interp.report_once(finding, span);
        }
    }
}

impl MatmulParts {
    /// Applies `mask=`, whose axes are those of the operands: the first is their partitions, the second the free axis that has its length.
    /// Returns what the first may mean besides, if it may.
    fn restrict(
        &mut self,
        mask: &Clip,
        [first, second]: [[u32; 2]; 2],
        rows: usize,
        span: Span,
    ) -> EvalResult<Option<String>> {
        let refuse = |n: u32| {
            let message = format!(
                "mask= restricts an axis of length {n}, the operands of the matmul have shapes ({}, {}) and ({}, {})",
                first[0], first[1], second[0], second[1]
            );
            Err(Raise::at("bad-mask", message, span, "here")
                .help("give the operands masks of their own: x[i_p < n], or slice them"))
        };
        if mask.is_empty() {
            self.contracted = (0, 0);
            return Ok(None);
        }
        let mut ambiguous = None;
        let last = mask.frame.len().saturating_sub(1);
        for (axis, (&n, &part)) in mask.frame.iter().zip(&mask.kept).enumerate() {
            if part == (0, n) {
                continue;
            }
            // The free axis of the first operand is the other one than its partitions.
            let (of_first, is_rows) = if axis == 0 { (first[0], rows == 0) } else { (first[1], rows == 1) };
            if axis == 0 && of_first == n && is_rows {
                self.rows = common(self.rows, part);
            } else if axis == 0 && second[0] == n {
                self.contracted = common(self.contracted, part);
                if first[rows] == n {
                    let message = format!(
                        "mask= restricts the first axis of a matmul, of length {n}: the contraction, which is the partitions of both operands, not the rows of the product"
                    );
                    ambiguous = Some(message);
                }
            } else if axis == 0 && first[rows] == n {
                self.rows = common(self.rows, part);
            } else if axis == last && axis > 0 && second[1] == n {
                self.columns = common(self.columns, part);
            } else if axis == last && axis > 0 && of_first == n {
                let own = if is_rows { &mut self.rows } else { &mut self.contracted };
                *own = common(*own, part);
            } else {
                return refuse(n);
            }
        }
        Ok(ambiguous)
    }
}

fn common(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    (a.0.max(b.0), a.1.min(b.1))
}

/// The parts of both axes of a matmul's operand that a mask of its own leaves.
fn own_parts((place, clip): &(Place, Option<Clip>), frame: [u32; 2], span: Span) -> EvalResult<[(u32, u32); 2]> {
    let mut kept = frame.map(|n| (0, n));
    if let Some(clip) = clip {
        let outline = place.outline(span)?;
        if outline.ndim() != 2 {
            let message = format!(
                "a mask as an index of `{}` of shape {}, which has not two dimensions",
                outline.storage.name,
                outline.shape_text()
            );
            return Err(Raise::at("bad-mask", message, span, "here").help("slice the operand instead"));
        }
        for (axis, &part) in restrictions(clip, &counts(&outline), &outline, span)? {
            kept[axis] = part;
        }
    }
    Ok(kept)
}

/// `t[entries]`, with an index for each dimension; to that of `picked` the device adds its own numbers.
pub(super) fn access(
    t: &Tensor,
    entries: &[IndexTile],
    picked: Option<(usize, Tensor)>,
    span: Span,
) -> EvalResult<Value> {
    let tiles: Vec<&IndexTile> = entries.iter().collect();
    let mut frame = common_frame(&tiles, span)?;
    if let (Some((_, offsets)), Some(rows)) = (&picked, frame.first_mut())
        && *rows == 1
        && !t.on_chip()
    {
        *rows = offsets.view.partitions();
    }
    let entries: Vec<IndexTile> = entries.iter().filter_map(|e| e.spread(&frame)).collect();
    let access = Access { base: t.clone(), entries, frame, picked };
    match access.view() {
        Err(v) => Err(raise("", &v, span, &[&t.storage])),
        Ok(_) if access.outside().is_some() => Ok(Value::object(access)),
        Ok(made) => Ok(Value::object(made)),
    }
}

/// `t[offsets, ...]`: rows of an HBM tensor, picked by a column of numbers in SBUF, from each of which `rest` goes up to `reach` further.
pub(super) fn gathered(t: &Tensor, dim: usize, offsets: &Tensor, rest: Tensor, reach: i64) -> build::Result<Tensor> {
    let refuse = |message: String, help: &str| Err(Violation::new("indirect-view", "", message).help(help));
    if !offsets.view.dtype.is_int() {
        return refuse(
            format!("`{}` of {} as an index of `{}`", offsets.storage.name, offsets.view.dtype, t.storage.name),
            "indices are int32 or uint32",
        );
    }
    let mut view: View = rest.view;
    let of = t.view.dims[dim];
    let index = if offsets.view.elements() == 1 && (t.on_chip() || view.dims[0].count == 1) {
        Index::Scalar(offsets.view.clone())
    } else {
        if t.on_chip() {
            return refuse(
                format!(
                    "`{}` is on chip: only one element can pick from it, got {}",
                    t.storage.name,
                    offsets.shape_text()
                ),
                "gather from HBM, or use nl.gather_flattened",
            );
        }
        if offsets.view.free_elements() != 1 {
            return refuse(
                format!("`{}` of shape {} as an index", offsets.storage.name, offsets.shape_text()),
                "an index has one element in each partition: idx[i_p, 0]",
            );
        }
        if view.dims[0].stride != 0 && view.dims[0].count > 1 {
            // Each row has an offset of its own, from which the access goes on along the other axes.
            return refuse(
                format!(
                    "the first axis of an index of `{}` picks from dimension {dim} by `{}` and walks another dimension, too",
                    t.storage.name, offsets.storage.name
                ),
                "indices in a tile stand for whole rows: data[idx[i_p, 0], i_f]; pick elements of a row with nl.gather_flattened",
            );
        }
        view.dims[0] = Dim { stride: 0, count: offsets.view.partitions() };
        Index::Vector(offsets.view.clone())
    };
    let bound = u32::try_from(i64::from(of.count) - reach).unwrap_or(0);
    view.indirect = Some(Box::new(Indirect { index, stride: of.stride, bound }));
    Ok(t.with_view(view))
}
