//! `NkiTensor.indirect`: views whose columns are selected by offsets in memory (Trn3).
//!
//! The docstring gives an index of `(P, K)` for a tensor of `P` partitions, and offset `i` as `index[i % G, i // G]` with groups of `G`
//! partitions. Here each group has its own `G` rows of the index; otherwise all rows after the first `G` would be unused. If all
//! groups have the same offsets, there is no difference. `num_elem` defaults to `index.size`, as documented, which is the right number
//! for one group.

use nki_isa::{Dim, Index, Indirect, View, Violation};

use super::{Tensor, positive};
use crate::build::Result;

impl Tensor {
    /// `NkiTensor.indirect`: columns selected by the offsets in `index`, `count` of them (all by default).
    pub(crate) fn indirect(&self, index: &View, count: Option<i64>) -> Result<Tensor> {
        let name = &self.storage.name;
        let refuse = |message: String| Err(Violation::new("indirect-view", "", message));
        if !self.on_chip() {
            return refuse(format!(
                "indirect selects columns of on-chip tensors, but `{name}` is in {}",
                self.view.space
            ));
        }
        if self.ndim() != 2 {
            return refuse(format!("indirect of `{name}`: its shape {} must have two dimensions", self.shape_text()));
        }
        if self.view.indirect.is_some() {
            return refuse(format!("`{name}` is already indexed at run time; a view can have one dynamic index"));
        }
        if index.partitions() != self.view.partitions() {
            return Err(Violation::new(
                "shape-mismatch",
                "",
                format!(
                    "indirect of `{name}`: the index has {} partitions, the tensor {}",
                    index.partitions(),
                    self.view.partitions()
                ),
            ));
        }
        let count = positive("indirect: num_elem", count.unwrap_or(index.elements() as i64))?;
        let mut view = self.view.clone();
        let Dim { stride, count: bound } = view.dims[1];
        view.dims[1] = Dim { stride: 1, count };
        view.indirect = Some(Box::new(Indirect { index: Index::Columns(index.clone()), stride, bound }));
        Ok(self.with_view(view))
    }

    /// Rejects a further view of one whose columns are selected by offsets.
    pub(crate) fn plain(&self, what: &str) -> Result<()> {
        if self.is_empty() {
            return Err(self.nothing(what));
        }
        if self.view.indirect.as_deref().and_then(Indirect::columns).is_none() {
            return Ok(());
        }
        let message = format!("{what} of `{}`, whose columns are selected by `.indirect()`", self.storage.name);
        Err(Violation::new("indirect-view", "", message).help("slice or reshape first, and call `.indirect()` last"))
    }
}
