//! Tensor handles: a view over a storage, and the view methods of `NkiTensor`.
//!
//! Sources: the `NkiTensor` docstrings of `nki.language` and the language guide, "Tensor Values" and "Tensor Indexing"
//! (SDK 2.32). A broken rule is a [`Violation`], to which the caller adds a location.

mod index;
mod indirect;
mod pattern;
mod reshape;
#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) use nki_isa::shape::tuple_text;
use nki_isa::view::{Dims, MAX_DIMS};
use nki_isa::{DType, Declaration, Dim, Index, Indirect, TensorId, View, Violation};
use smallvec::SmallVec;

pub(crate) use self::index::Key;
pub(crate) use self::pattern::DynamicOffset;
use crate::build::Result;

/// Maximum elements of a tensor or view: far more than any memory holds, few enough to compute with.
pub(crate) const MAX_ELEMENTS: u64 = 1 << 40;

/// The storage of a handle. Shared by all views of a tensor. Dereferences to its declaration.
#[derive(Debug)]
pub(crate) struct Storage {
    /// The tensor of the program.
    pub(crate) id: TensorId,
    /// Name, memory, element type, extents and location: shared by the tensors that the iterations of a loop allocate.
    pub(crate) declaration: Arc<Declaration>,
}

impl Deref for Storage {
    type Target = Declaration;

    fn deref(&self) -> &Declaration {
        &self.declaration
    }
}

impl Storage {
    /// Elements of `dtype` in one partition (on chip) or in total (HBM), if they fit evenly.
    pub(crate) fn row(&self, dtype: DType) -> Option<i64> {
        let skip = usize::from(self.space.is_on_chip());
        let bytes = self.shape.iter().skip(skip).map(|&n| i64::from(n)).product::<i64>() * self.dtype.size() as i64;
        (bytes % dtype.size() as i64 == 0).then(|| bytes / dtype.size() as i64)
    }
}

/// A tensor value of the language.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    /// Its elements.
    pub(crate) view: View,
    /// Their storage.
    pub(crate) storage: Rc<Storage>,
}

impl Tensor {
    /// The whole of a storage, row-major.
    pub(crate) fn whole(storage: Rc<Storage>) -> Tensor {
        let mut dims = Dims::new();
        let mut stride = 1;
        for (i, &count) in storage.shape.iter().enumerate().rev() {
            // On chip the first dimension counts partitions.
            let on_partitions = i == 0 && storage.space.is_on_chip();
            dims.push(Dim { stride: if on_partitions { 1 } else { stride }, count });
            stride *= i64::from(count);
        }
        dims.reverse();
        let view = View {
            tensor: storage.id,
            space: storage.space,
            dtype: storage.dtype,
            partition: 0,
            offset: 0,
            dims,
            indirect: None,
        };
        Tensor { view, storage }
    }

    /// Whether it is the whole of its storage, in the original shape.
    pub(crate) fn is_whole(&self) -> bool {
        self.view == Tensor::whole(self.storage.clone()).view
    }

    /// Another view of the same storage.
    pub(crate) fn with_view(&self, view: View) -> Tensor {
        Tensor { view, storage: self.storage.clone() }
    }

    /// Number of dimensions.
    pub(crate) fn ndim(&self) -> usize {
        self.view.dims.len()
    }

    /// Whether dimension 0 is fixed: partitions, or rows selected by a vector of indices.
    pub(crate) fn first_is_fixed(&self) -> bool {
        self.on_chip() || self.is_vector()
    }

    /// SBUF or PSUM.
    pub(crate) fn on_chip(&self) -> bool {
        self.view.space.is_on_chip()
    }

    fn is_vector(&self) -> bool {
        matches!(self.view.indirect.as_deref(), Some(Indirect { index: Index::Vector(_), .. }))
    }

    /// `NkiTensor.strides`: elements; on chip dimension 0 counts the storage's elements per partition.
    pub(crate) fn strides(&self) -> SmallVec<[i64; MAX_DIMS]> {
        let mut out: SmallVec<[i64; MAX_DIMS]> = self.view.dims.iter().map(|d| d.stride).collect();
        if self.on_chip() {
            out[0] *= self.row();
        }
        out
    }

    /// `NkiTensor.offset`: elements from the start of the storage.
    pub(crate) fn offset(&self) -> i64 {
        i64::from(self.view.partition) * if self.on_chip() { self.row() } else { 0 } + self.view.offset
    }

    /// Elements (of the view's dtype) of the storage in one partition, in total for HBM.
    pub(crate) fn row(&self) -> i64 {
        self.storage.row(self.view.dtype).unwrap_or(1)
    }

    /// `NkiTensor.is_contiguous`.
    pub(crate) fn is_contiguous(&self) -> bool {
        let dims = if self.on_chip() { self.view.free_dims() } else { &self.view.dims[..] };
        let mut expect = 1;
        for d in dims.iter().rev() {
            if d.count != 1 {
                if d.stride != expect {
                    return false;
                }
                expect *= i64::from(d.count);
            }
        }
        true
    }

    /// `(128, 64)` for messages.
    pub(crate) fn shape_text(&self) -> String {
        tuple_text(self.view.dims.iter().map(|d| i64::from(d.count)))
    }

    /// A dimension argument, negative ones counted from the end.
    pub(crate) fn dim(&self, what: &str, dim: i64, extra: usize) -> Result<usize> {
        let n = (self.ndim() + extra) as i64;
        let at = if dim < 0 { dim + n } else { dim };
        if (0..n).contains(&at) {
            return Ok(at as usize);
        }
        Err(Violation::new(
            "bad-dimension",
            "",
            format!("{what}: dimension {dim} of `{}`, which has shape {}", self.storage.name, self.shape_text()),
        ))
    }

    fn refuse_first(&self, what: &str, dim: usize) -> Result<()> {
        if dim != 0 || !self.first_is_fixed() {
            return Ok(());
        }
        let why = if self.on_chip() {
            "dimension 0 of an on-chip tensor is the partition dimension and cannot be changed"
        } else {
            "dimension 0 is selected by a vector of indices and cannot be changed"
        };
        Err(Violation::new("partition-dimension", "", format!("{what} of `{}`: {why}", self.storage.name))
            .help("views are free only within a partition; to move data between partitions use nisa.nc_transpose or nisa.dma_copy"))
    }

    /// Whether it has no element: `t[nl.ds(start, 0)]`.
    pub(crate) fn is_empty(&self) -> bool {
        self.view.dims.iter().any(|d| d.count == 0)
    }

    /// The violation for an empty view.
    pub(crate) fn nothing(&self, what: &str) -> Violation {
        let message = format!(
            "{what} of `{}[nl.ds(..., 0)]`, shape {}: it has no elements",
            self.storage.name,
            self.shape_text()
        );
        Violation::new("empty-slice", "", message).help("skip the instruction when there is nothing to do")
    }

    /// `NkiTensor.permute`.
    pub(crate) fn permute(&self, order: &[i64]) -> Result<Tensor> {
        let mut seen = [false; MAX_DIMS];
        let mut dims = Dims::new();
        let mut ok = order.len() == self.ndim();
        for &o in order {
            let at = if o < 0 { o + self.ndim() as i64 } else { o };
            match usize::try_from(at).ok().filter(|&a| a < self.ndim() && !seen[a]) {
                Some(a) if ok => {
                    seen[a] = true;
                    dims.push(self.view.dims[a]);
                }
                _ => ok = false,
            }
        }
        if !ok {
            let message = format!(
                "permute{} of `{}`: expected a permutation of the {} dimensions of shape {}",
                tuple_text(order.iter().copied()),
                self.storage.name,
                self.ndim(),
                self.shape_text()
            );
            return Err(Violation::new("bad-dimension", "", message));
        }
        if order[0] != 0 && order[0] != -(self.ndim() as i64) {
            self.refuse_first("permute", 0)?;
        }
        let mut view = self.view.clone();
        view.dims = dims;
        Ok(self.with_view(view))
    }

    /// `NkiTensor.broadcast`.
    pub(crate) fn broadcast(&self, dim: i64, size: i64) -> Result<Tensor> {
        let d = self.dim("broadcast", dim, 0)?;
        self.refuse_first("broadcast", d)?;
        let got = self.view.dims[d].count;
        let count = positive("broadcast", size)?;
        if got != 1 {
            return Err(Violation::new(
                "bad-dimension",
                "",
                format!(
                    "broadcast repeats a dimension of size 1; dimension {d} of `{}` has size {got} (shape {})",
                    self.storage.name,
                    self.shape_text()
                ),
            )
            .help(format!("add a dimension first: .expand_dim({d}).broadcast({d}, {size})")));
        }
        let mut view = self.view.clone();
        view.dims[d] = Dim { stride: 0, count };
        let total = view.dims.iter().try_fold(1u64, |n, d| n.checked_mul(u64::from(d.count)));
        if total.is_none_or(|n| n > MAX_ELEMENTS) {
            return Err(Violation::new(
                "bad-dimension",
                "",
                format!("broadcast of `{}` to {size}: the view would have more than 2**40 elements", self.storage.name),
            ));
        }
        Ok(self.with_view(view))
    }

    /// NumPy's broadcasting to a shape of the same rank.
    pub(crate) fn broadcast_to(&self, shape: &[i64]) -> Result<Tensor> {
        let fits = shape.len() == self.ndim()
            && shape.iter().zip(&self.view.dims).all(|(&s, d)| s == i64::from(d.count) || (d.count == 1 && s > 0));
        if !fits {
            return Err(Violation::new(
                "shape-mismatch",
                "",
                format!(
                    "`{}` of shape {} cannot be broadcast to {}: the ranks must be equal and only dimensions of size 1 repeat",
                    self.storage.name,
                    self.shape_text(),
                    tuple_text(shape.iter().copied())
                ),
            ));
        }
        let mut out = self.clone();
        for (d, &s) in shape.iter().enumerate() {
            if s != i64::from(self.view.dims[d].count) {
                out = out.broadcast(d as i64, s)?;
            }
        }
        Ok(out)
    }

    /// `NkiTensor.expand_dim`.
    pub(crate) fn expand_dim(&self, dim: i64) -> Result<Tensor> {
        let d = self.dim("expand_dim", dim, 1)?;
        self.refuse_first("expand_dim", d)?;
        self.room(self.ndim() + 1)?;
        let mut view = self.view.clone();
        let stride = view.dims.get(d).map_or(1, |n| n.stride * i64::from(n.count));
        view.dims.insert(d, Dim { stride, count: 1 });
        Ok(self.with_view(view))
    }

    /// `NkiTensor.squeeze_dim`.
    pub(crate) fn squeeze_dim(&self, dim: i64) -> Result<Tensor> {
        let d = self.dim("squeeze_dim", dim, 0)?;
        self.refuse_first("squeeze_dim", d)?;
        let least = if self.on_chip() { 2 } else { 1 };
        let got = self.view.dims[d].count;
        if got != 1 || self.ndim() <= least {
            let message = if got != 1 {
                format!(
                    "squeeze_dim removes a dimension of size 1; dimension {d} of `{}` has size {got}",
                    self.storage.name
                )
            } else {
                format!("`{}` of shape {} must keep at least {least} dimensions", self.storage.name, self.shape_text())
            };
            return Err(Violation::new("bad-dimension", "", message));
        }
        let mut view = self.view.clone();
        view.dims.remove(d);
        Ok(self.with_view(view))
    }

    /// `NkiTensor.view`: the same bytes as elements of another dtype.
    pub(crate) fn view_as(&self, dtype: DType) -> Result<Tensor> {
        let (old, new) = (self.view.dtype.size() as i64, dtype.size() as i64);
        let mut view = self.view.clone();
        view.dtype = dtype;
        if old == new {
            return Ok(self.with_view(view));
        }
        let refuse = |why: String| {
            let message = format!("`{}` of {} cannot be viewed as {dtype}: {why}", self.storage.name, self.view.dtype);
            Err(Violation::new("dtype-view", "", message))
        };
        if view.indirect.is_some() {
            return refuse("it is indexed at run time".into());
        }
        let on_chip = self.on_chip();
        let last = view.dims.len() - 1;
        let Dim { stride, count } = view.dims[last];
        if count != 1 && stride != 1 {
            return refuse(format!("its last dimension has stride {stride}, not 1"));
        }
        let scale = |x: i64| (x * old % new == 0).then(|| x * old / new);
        let bytes = i64::from(view.dims[last].count) * old;
        if bytes % new != 0 || self.storage.row(dtype).is_none() {
            return refuse(format!("its last dimension holds {bytes} bytes, but {dtype} takes {new}"));
        }
        let Some(offset) = scale(view.offset) else {
            return refuse(format!(
                "it starts at byte {}, which is not a multiple of the size of {dtype}",
                view.offset * old
            ));
        };
        view.offset = offset;
        let first = usize::from(on_chip);
        for d in first..last {
            // No access uses the step of a dimension of size 1.
            if view.dims[d].count == 1 {
                view.dims[d].stride = view.dims[d].stride * old / new;
                continue;
            }
            let Some(stride) = scale(view.dims[d].stride) else {
                return refuse(format!("dimension {d} steps by {} bytes", view.dims[d].stride * old));
            };
            view.dims[d].stride = stride;
        }
        view.dims[last] = Dim { stride: 1, count: (bytes / new) as u32 };
        Ok(self.with_view(view))
    }

    /// A view can have at most [`MAX_DIMS`] dimensions.
    pub(crate) fn room(&self, ndim: usize) -> Result<()> {
        if ndim <= MAX_DIMS {
            return Ok(());
        }
        Err(Violation::new(
            "bad-dimension",
            "",
            format!("a view of `{}` with {ndim} dimensions; at most {MAX_DIMS} are possible", self.storage.name),
        ))
    }
}

/// A size argument as a count.
pub(crate) fn positive(what: &str, size: i64) -> Result<u32> {
    u32::try_from(size).ok().filter(|&n| n > 0).ok_or_else(|| {
        Violation::new("bad-dimension", "", format!("{what}: a size must be a positive int, got {size}"))
    })
}
