//! The elements of an operand of an instruction: a tile, an access by index tiles that a mask may still clip, or a table of tiles.

use std::rc::Rc;

use nki_diag::Span;
use nki_isa::view::Dims;
use nki_isa::{Dim, Index, Indirect, View, Violation};
use smallvec::SmallVec;

use super::affine::{IndexTile, common_frame};
use super::blocks::Blocks;
use super::clips::{narrowed, restrictions};
use super::matmul::MaskedOperand;
use crate::build;
use crate::build::tensor::Tensor;
use crate::dialect::common::clip::Clip;
use crate::dialect::common::errors::raise;
use crate::eval::convert::wrong;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::{Object, unknown_attribute};
use crate::eval::value::Value;
use crate::eval::{Interp, stdlib::dtype};

/// `t[...]` by index tiles, partly outside of `t`: legal if a mask leaves only elements inside.
#[derive(Debug, Clone)]
pub(super) struct Access {
    /// What is indexed.
    pub(super) base: Tensor,
    /// An index for each dimension, all in one frame.
    pub(super) entries: Vec<IndexTile>,
    /// Extents of the frame.
    pub(super) frame: SmallVec<[u32; 4]>,
    /// The dimension to whose index the device adds values at run time, and these values.
    pub(super) picked: Option<(usize, Tensor)>,
}

impl Access {
    /// The elements left by a clip.
    pub(super) fn clipped(&self, clip: &Clip, span: Span) -> EvalResult<Tensor> {
        let mut entries = self.entries.clone();
        let (mut frame, mut picked) = (self.frame.clone(), self.picked.clone());
        for (axis, &(from, to)) in restrictions(clip, &self.frame, &self.base, span)? {
            if let Some((_, offsets)) = &mut picked
                && axis == 0
                && offsets.view.partitions() > 1
            {
                // The selected rows are those of the remaining indices.
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

    /// Whether an index that moves along this axis of the frame goes beyond its dimension.
    fn leaves_along(&self, axis: usize) -> bool {
        let leaves = |(entry, dim): (&IndexTile, &Dim)| {
            let (low, high) = entry.range();
            let moves = entry.axes.get(axis).is_some_and(|a| a.coefficient != 0);
            moves && (low < 0 || high >= i64::from(dim.count))
        };
        self.entries.iter().zip(&self.base.view.dims).any(leaves)
    }

    /// The first dimension whose index is out of bounds.
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

    /// The elements, which may be outside the tensor.
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
                        format!(
                            "axis {axis} of the index steps over the partitions of `{name}`: only the first axis can"
                        )
                    } else {
                        format!(
                            "the first axis of the index steps over dimension {d} of `{name}`: on chip it can only step over partitions"
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

    /// Views of an access out of bounds do not exist.
    fn no_attribute(&self, interp: &Interp<'_>, name: &str, span: Span) -> Box<Raise> {
        if self.base.has_method(interp, name) { self.refuse(span) } else { unknown_attribute(self, name, span) }
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

/// An operand: the whole of it, and the part left by a clip.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Tile(Tensor),
    Access(Rc<Access>),
}

impl Place {
    /// The tile, access or single tile of a table as an operand; `None` for other values.
    pub(super) fn of(value: &Value, what: &str, span: Span) -> EvalResult<Option<Place>> {
        if let Some(t) = value.downcast::<Tensor>() {
            return Ok(Some(Place::Tile(t.clone())));
        }
        if let Some(access) = value.downcast_rc::<Access>() {
            return Ok(Some(Place::Access(access)));
        }
        if let Some(masked) = value.downcast::<MaskedOperand>() {
            let name = &masked.place.outline(span)?.storage.name;
            let message =
                format!("{what} does not accept a mask as an index: only matmuls take `{name}[mask]` as an operand");
            return Err(Raise::at("bad-mask", message, span, "here").help("pass mask= to the operation"));
        }
        match value.downcast::<Blocks>() {
            Some(blocks) => Err(blocks.whole(what, span)),
            None => Ok(None),
        }
    }

    /// The operand; an error for other values.
    pub(super) fn need(value: &Value, what: &str, span: Span) -> EvalResult<Place> {
        Place::of(value, what, span)?.ok_or_else(|| wrong(what, "a tile", value, span))
    }

    /// Whether the operand indexes beyond its tensor along this axis, so that it needs a mask there.
    pub(super) fn leaves_tensor_along(&self, axis: usize) -> bool {
        match self {
            Place::Tile(_) => false,
            Place::Access(access) => access.leaves_along(axis),
        }
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

/// `t[entries]`, with an index for each dimension; to that of `picked` the device adds its values.
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

/// `t[offsets, ...]`: rows of an HBM tensor, selected by a column of numbers in SBUF; from each of them `rest` extends up to `reach` further.
pub(super) fn gathered(t: &Tensor, dim: usize, offsets: &Tensor, rest: Tensor, reach: i64) -> build::Result<Tensor> {
    let refuse = |message: String, help: &str| Err(Violation::new("indirect-view", "", message).help(help));
    if !offsets.view.dtype.is_int() {
        return refuse(
            format!("`{}` is {} and cannot index `{}`", offsets.storage.name, offsets.view.dtype, t.storage.name),
            "indices are int32 or uint32: copy it to a tile of integers, nl.copy(index, dtype=nl.int32)",
        );
    }
    let mut view: View = rest.view;
    let of = t.view.dims[dim];
    let index = if offsets.view.elements() == 1 {
        Index::Scalar(offsets.view.clone())
    } else {
        if t.on_chip() {
            return refuse(
                format!(
                    "`{}` is on chip: it can be indexed by one element only, got {}",
                    t.storage.name,
                    offsets.shape_text()
                ),
                "gather from HBM, or use nl.gather_flattened",
            );
        }
        if offsets.view.free_elements() != 1 {
            return refuse(
                format!("`{}` of shape {} cannot be an index", offsets.storage.name, offsets.shape_text()),
                "an index has one element in each partition: idx[i_p, 0] with i_p = nl.arange(128)[:, None] (tiles of nl.mgrid have all elements)",
            );
        }
        if view.dims[0].stride != 0 && view.dims[0].count > 1 {
            // Each row has a separate offset, from which the access continues along the other axes.
            return refuse(
                format!(
                    "the first axis of an index of `{}` selects from dimension {dim} by `{}` and also steps over another dimension",
                    t.storage.name, offsets.storage.name
                ),
                "a tile of indices selects whole rows: data[idx[i_p, 0], i_f]; select elements of a row with nl.gather_flattened",
            );
        }
        view.dims[0] = Dim { stride: 0, count: offsets.view.partitions() };
        Index::Vector(offsets.view.clone())
    };
    let bound = u32::try_from(i64::from(of.count) - reach).unwrap_or(0);
    view.indirect = Some(Box::new(Indirect { index, stride: of.stride, bound }));
    Ok(t.with_view(view))
}
