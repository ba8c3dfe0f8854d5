//! `NkiTensor.ap` and `get_pattern`: access patterns by hand.
//!
//! The SDK's documents disagree about what an explicit `offset=` means on a view that has an offset itself:
//! - language guide, "Low-level raw access pattern": None inherits the view's storage offset, an int "overrides" it;
//! - deep dive "NKI Access Patterns": elements "from the beginning of the tensor", yet None inherits the view's offset;
//! - docstring of `NkiTensor.ap`: "element offset added to the view's base storage offset ... offset=0 keeps the base".
//!
//! The docstring is the most precise and closest to the code, so it is followed here: the offset is *added*. On a base
//! tensor, where nearly all kernels call `.ap`, the three agree. For the same reason `indirect_dim` is a dimension of
//! the view's own `shape`, whose stride scales the index; on a base tensor this is the deep dive's
//! `prod(shape[indirect_dim + 1:])`.
//!
//! The first pair of an on-chip pattern counts partitions. The hardware has no stride between partitions (deep dive, "Restriction on
//! SBUF/PSUM Tensors"), so the pair's stride only identifies the tensor that the author assumed: the storage, or the view on which `.ap` is
//! called, whose rows may be shorter. Both are accepted if they select the same elements ([`Tensor::walks_own_rows`]); the second is a
//! finding, since the deep dive documents the first only. nki-library's MLP for token generation relies on it.

use nki_isa::view::Dims;
use nki_isa::{DType, Dim, Index, Indirect, View, Violation};

use super::{MAX_ELEMENTS, Tensor, positive};
use crate::build::Result;

/// A dynamic offset of `.ap`.
#[derive(Debug, Clone)]
pub(crate) enum DynamicOffset {
    /// `scalar_offset=`
    Scalar(Index),
    /// `vector_offset=`
    Vector(View),
}

impl Tensor {
    /// `NkiTensor.ap`: `pattern` holds `(stride, count)` pairs in elements of `dtype`.
    #[expect(clippy::too_many_lines, reason = "the rules of one call, in the order in which it applies them")]
    pub(crate) fn ap(
        &self,
        pattern: &[(i64, i64)],
        offset: Option<i64>,
        dynamic: Option<DynamicOffset>,
        indirect_dim: i64,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        let name = &self.storage.name;
        let refuse = |message: String| Violation::new("access-pattern", "", message);
        let dtype = dtype.unwrap_or(self.view.dtype);
        self.room(pattern.len())?;
        let on_chip = self.on_chip();
        if pattern.len() < if on_chip { 2 } else { 1 } {
            return Err(refuse(format!(
                "an access pattern of `{name}` needs at least {} pairs",
                if on_chip { 2 } else { 1 }
            )));
        }
        let Some(row) = self.storage.row(dtype) else {
            return Err(refuse(format!("`{name}` does not hold a whole number of {dtype} elements")));
        };
        let mut dims = Dims::new();
        let reach = MAX_ELEMENTS as i64;
        let mut total = Some(1u64);
        for &(stride, count) in pattern {
            total = u64::try_from(count).ok().and_then(|c| total?.checked_mul(c)).filter(|&n| n <= MAX_ELEMENTS);
            if stride.unsigned_abs() > MAX_ELEMENTS || (count > 0 && total.is_none()) {
                return Err(refuse(format!("pair [{stride}, {count}] of an access pattern of `{name}` is too large")));
            }
            dims.push(Dim { stride, count: positive(".ap pattern", count)? });
        }
        let (old, new) = (self.view.dtype.size() as i64, dtype.size() as i64);
        // Offset of the view in new elements.
        let scaled = |elements: i64| {
            let bytes = elements * old;
            if bytes % new == 0 {
                Ok(bytes / new)
            } else {
                Err(refuse(format!("`{name}` starts at byte {bytes}, which is not a whole number of {dtype} elements")))
            }
        };
        let base = scaled(self.offset())? + offset.unwrap_or(0).clamp(-reach, reach);
        let (mut partition, mut start) = (0, base);
        if on_chip {
            let Dim { stride, count } = dims[0];
            if stride != row && count != 1 && !self.walks_own_rows(&dims, offset.unwrap_or(0), dtype) {
                return Err(refuse(format!(
                    "the first pair [{stride}, {count}] of an access pattern of `{name}` steps over partitions: its stride must be the \
                     storage's {row} elements per partition"
                ))
                .help(format!("write [[{row}, {count}], ...]")));
            }
            dims[0].stride = 1;
            partition = base.div_euclid(row);
            start = base.rem_euclid(row);
            // Beyond the last partition it is rejected at its use, as below; no address can be that far off.
            if !(0..1 << 20).contains(&partition) {
                return Err(Violation::new(
                    "out-of-bounds",
                    "",
                    format!(
                        "access pattern of `{name}` starts at partition {partition}, but the tensor has {}",
                        self.storage.shape[0]
                    ),
                ));
            }
        }
        // A pattern "replaces shape and strides" (manual, `ap`): it would drop the index.
        if self.view.indirect.is_some() {
            let message = match dynamic {
                Some(_) => format!("`{name}` is already indexed at run time; a view can have one dynamic index"),
                None => format!("`{name}` is indexed at run time, and an access pattern would drop the index"),
            };
            let help = "call `.ap` on the tensor itself, with scalar_offset= or vector_offset=";
            return Err(Violation::new("indirect-view", "", message).help(help));
        }
        let indirect = match dynamic {
            None => None,
            Some(dynamic) => {
                let d = self.dim("ap: indirect_dim", indirect_dim, 0)?;
                // A vector of them is rejected at its use (`view_bounds`): a pattern by itself has no effect.
                if on_chip && d == 0 && matches!(dynamic, DynamicOffset::Scalar(_)) {
                    return Err(Violation::new(
                        "partition-dimension",
                        "",
                        format!("`{name}` is on chip: its partition dimension cannot be indexed at run time"),
                    )
                    .help("give indirect_dim= a free dimension"));
                }
                let of = self.view.dims[d];
                let stride = scaled(of.stride)?;
                let index = match dynamic {
                    DynamicOffset::Scalar(index) => index,
                    DynamicOffset::Vector(view) => {
                        if d != 0 {
                            return Err(refuse(format!("vector_offset works on indirect_dim=0 only, got {d}")));
                        }
                        // The instruction checks how many more are allowed.
                        if view.elements() < dims[0].count as usize {
                            return Err(Violation::new(
                                "shape-mismatch",
                                "",
                                format!(
                                    "vector_offset has {} indices, but the pattern's first pair counts {}",
                                    view.elements(),
                                    dims[0].count
                                ),
                            ));
                        }
                        Index::Vector(view)
                    }
                };
                Some(Box::new(Indirect { index, stride, bound: self.steps_of(d) }))
            }
        };
        // The bounds of the pattern are checked when an instruction uses it: kernels create patterns for
        // tiles that do not exist in the end.
        let view = View { dtype, partition: partition as u32, offset: start, dims, indirect, ..self.view.clone() };
        Ok(self.with_view(view))
    }

    /// The number of values of an index that moves by the stride of dimension `d`: its extent. A dimension of extent 1 may be used for another one
    /// of the same stride, as do libraries that search for a dimension by its stride (nki-library's `TensorView.select`).
    fn steps_of(&self, d: usize) -> u32 {
        let of = self.view.dims[d];
        if of.count > 1 {
            return of.count;
        }
        let free = usize::from(self.on_chip());
        self.view.dims[free..]
            .iter()
            .filter(|other| other.stride == of.stride)
            .map(|other| other.count)
            .max()
            .unwrap_or(1)
    }

    /// Whether an on-chip pattern that starts `offset` elements into this view stays within the view, if the view is treated as a separate
    /// tensor: the first pair steps by the view's elements per partition, which are adjacent, and all elements are inside.
    fn walks_own_rows(&self, dims: &[Dim], offset: i64, dtype: DType) -> bool {
        let partitions = self.view.dims[0];
        let bytes = self.view.free_elements() * self.view.dtype.size();
        if self.view.indirect.is_some()
            || partitions.stride != 1
            || !self.view.is_contiguous()
            || !bytes.is_multiple_of(dtype.size())
        {
            return false;
        }
        let row = (bytes / dtype.size()) as i64;
        let (first, last) = View::span(&dims[1..]);
        let inside =
            offset.checked_add(first).is_some_and(|at| at >= 0) && offset.checked_add(last).is_some_and(|at| at < row);
        dims[0].stride == row && dims[0].count <= partitions.count && inside
    }

    /// `NkiTensor.get_pattern`: `(stride, count)` pairs that `.ap` accepts.
    pub(crate) fn pattern(&self) -> Vec<(i64, i64)> {
        self.strides().iter().zip(&self.view.dims).map(|(&s, d)| (s, i64::from(d.count))).collect()
    }
}
