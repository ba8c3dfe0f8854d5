//! Indexing: `t[...]`, `slice`, `select`, `vector_select`.

use nki_isa::view::MAX_DIMS;
use nki_isa::{Dim, Index, Indirect, View, Violation};
use smallvec::SmallVec;

use super::Tensor;
use crate::build::Result;

/// One entry of an index expression.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    /// `i`
    At(i64),
    /// `start:stop:step`
    Slice(Option<i64>, Option<i64>, Option<i64>),
    /// `nl.ds(start, size)`
    Span(i64, i64),
    /// A register or a `(1, 1)` tensor.
    Dynamic(Index),
    /// `nl.ds(register, size)`
    DynamicSpan(Index, i64),
    /// `...`
    Ellipsis,
}

impl Tensor {
    /// Restricts dimension `d` to `count` steps of `step` from `start`.
    fn narrow(view: &mut View, d: usize, start: i64, count: u32, step: i64) {
        let dim = &mut view.dims[d];
        let moved = start * dim.stride;
        // The step of a single element is meaningless, and may be huge.
        *dim = Dim { stride: if count == 1 { dim.stride } else { dim.stride * step }, count };
        if d == 0 && view.space.is_on_chip() {
            view.partition += moved as u32;
        } else {
            view.offset += moved;
        }
    }

    /// Start and count of `start:stop:step` in dimension `d`; NKI requires it to be in bounds and not empty.
    fn bounds(&self, d: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<(i64, u32)> {
        let n = i64::from(self.view.dims[d].count);
        let name = &self.storage.name;
        if step < 1 {
            return Err(Violation::new(
                "bad-index",
                "",
                format!("the step of a slice of `{name}` must be a positive int, got {step}"),
            )
            .help("use an access pattern to go backwards: tile.ap(pattern=[..., [-1, n]], offset=n - 1)"));
        }
        let from_end = |i: i64| if i < 0 { i + n } else { i };
        let (a, b) = (start.map_or(0, from_end), stop.map_or(n, from_end));
        if a >= 0 && a < b && b <= n {
            return Ok((a, ((b - a - 1) / step + 1) as u32));
        }
        let text = format!(
            "{}:{}",
            start.map_or(String::new(), |s| s.to_string()),
            stop.map_or(String::new(), |s| s.to_string())
        );
        let whole = format!("dimension {d} of `{name}`, shape {}", self.shape_text());
        // Python would clamp. NKI's `slice` requires 0 <= start < end <= size (NkiTensor.slice), and the migration guide
        // recommends bounding slices with min() where masks were used.
        if b > n || a < 0 || a > n {
            let help = if b > n {
                format!(
                    "bound the end of the slice, for example `min(stop, {n})`; NKI does not clamp slices as Python does"
                )
            } else {
                "NKI does not clamp slices as Python does".into()
            };
            return Err(
                Violation::new("out-of-bounds", "", format!("slice {text} is out of bounds for {whole}")).help(help)
            );
        }
        Err(Violation::new("empty-slice", "", format!("slice {text} of {whole} is empty"))
            .help("skip the instruction when there is nothing to do: an access pattern has at least one element"))
    }

    fn position(&self, d: usize, i: i64) -> Result<i64> {
        let n = i64::from(self.view.dims[d].count);
        if (-n..n).contains(&i) {
            return Ok(if i < 0 { i + n } else { i });
        }
        Err(Violation::new(
            "out-of-bounds",
            "",
            format!(
                "index {i} is out of bounds for dimension {d} of `{}`, shape {}",
                self.storage.name,
                self.shape_text()
            ),
        ))
    }

    fn set_dynamic(&self, view: &mut View, d: usize, index: &Index, bound: u32) -> Result<()> {
        if view.indirect.is_some() {
            return Err(Violation::new(
                "indirect-view",
                "",
                format!("`{}` is already indexed at run time; a view can have one dynamic index", self.storage.name),
            )
            .help("combine the indices in one register or tensor first"));
        }
        if d == 0 && self.on_chip() {
            return Err(Violation::new(
                "partition-dimension",
                "",
                format!("`{}` is on chip: its partition dimension cannot be indexed at run time", self.storage.name),
            )
            .help("keep the dynamic dimension in the free dimensions, or index the HBM tensor in nisa.dma_copy"));
        }
        let stride = view.dims[d].stride;
        view.indirect = Some(Box::new(Indirect { index: index.clone(), stride, bound }));
        Ok(())
    }

    /// `t[keys]`.
    pub(crate) fn index(&self, keys: &[Key]) -> Result<Tensor> {
        let given = keys.iter().filter(|k| !matches!(k, Key::Ellipsis)).count();
        if given > self.ndim() || keys.len() > given + 1 {
            let message = if given > self.ndim() {
                format!("{given} indices for `{}`, which has shape {}", self.storage.name, self.shape_text())
            } else {
                format!("more than one `...` in an index of `{}`", self.storage.name)
            };
            return Err(Violation::new("bad-index", "", message));
        }
        let mut view = self.view.clone();
        // Dimensions to drop afterwards.
        let mut drop: SmallVec<[usize; MAX_DIMS]> = SmallVec::new();
        let mut d = 0;
        for key in keys {
            let fixed = d == 0 && self.is_vector();
            if fixed && !matches!(key, Key::Ellipsis | Key::Slice(None | Some(0), None, None | Some(1))) {
                self.refuse_first("index", 0)?;
            }
            match key {
                Key::Ellipsis => {
                    d += self.ndim() - given;
                    continue;
                }
                Key::Slice(None, None, None) => {}
                Key::Slice(start, stop, step) => {
                    let step = step.unwrap_or(1);
                    let (start, count) = self.bounds(d, *start, *stop, step)?;
                    Self::narrow(&mut view, d, start, count, step);
                }
                Key::Span(start, size) => {
                    // The share of an idle core: kernels create the view and never use it.
                    let empty = *size == 0 && (0..=i64::from(view.dims[d].count)).contains(start);
                    let (start, count) = match empty {
                        true => (*start, 0),
                        false => self.bounds(d, Some(*start), Some(start.saturating_add(*size)), 1)?,
                    };
                    Self::narrow(&mut view, d, start, count, 1);
                }
                Key::At(i) => {
                    let start = self.position(d, *i)?;
                    Self::narrow(&mut view, d, start, 1, 1);
                    drop.push(d);
                }
                Key::Dynamic(index) => {
                    let bound = view.dims[d].count;
                    self.set_dynamic(&mut view, d, index, bound)?;
                    view.dims[d].count = 1;
                    drop.push(d);
                }
                Key::DynamicSpan(index, size) => {
                    let (_, count) = self.bounds(d, Some(0), Some(*size), 1)?;
                    let bound = view.dims[d].count - count + 1;
                    self.set_dynamic(&mut view, d, index, bound)?;
                    view.dims[d].count = count;
                }
            }
            d += 1;
        }
        self.drop_dims(&mut view, &drop);
        Ok(self.with_view(view))
    }

    /// Removes indexed dimensions, last first: the partition dimension stays, and on chip two dimensions, in HBM one.
    fn drop_dims(&self, view: &mut View, drop: &[usize]) {
        let (first, least) = if self.on_chip() { (1, 2) } else { (0, 1) };
        // The guide keeps the *last* free dimension if all are indexed, so drop from the front.
        let mut gone = 0;
        for &d in drop {
            if d >= first && view.dims.len() > least {
                let at = d - gone;
                view.dims.remove(at);
                gone += 1;
            }
        }
    }

    /// `NkiTensor.slice`.
    pub(crate) fn slice(&self, dim: i64, start: i64, end: i64, step: i64) -> Result<Tensor> {
        let d = self.dim("slice", dim, 0)?;
        if self.is_vector() {
            self.refuse_first("slice", d)?;
        }
        let mut view = self.view.clone();
        let (start, count) = self.bounds(d, Some(start), Some(end), step)?;
        Self::narrow(&mut view, d, start, count, step);
        Ok(self.with_view(view))
    }

    /// `NkiTensor.select` with a static index.
    pub(crate) fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        let d = self.dim("select", dim, 0)?;
        if self.is_vector() {
            self.refuse_first("select", d)?;
        }
        let mut view = self.view.clone();
        let start = self.position(d, index)?;
        Self::narrow(&mut view, d, start, 1, 1);
        self.drop_dims(&mut view, &[d]);
        Ok(self.with_view(view))
    }

    /// `NkiTensor.select` with an index known at run time.
    pub(crate) fn select_dynamic(&self, dim: i64, index: &Index) -> Result<Tensor> {
        let d = self.dim("select", dim, 0)?;
        let mut view = self.view.clone();
        let bound = view.dims[d].count;
        self.set_dynamic(&mut view, d, index, bound)?;
        view.dims[d].count = 1;
        self.drop_dims(&mut view, &[d]);
        Ok(self.with_view(view))
    }

    /// `NkiTensor.vector_select`.
    pub(crate) fn vector_select(&self, dim: i64, offsets: &View) -> Result<Tensor> {
        let d = self.dim("vector_select", dim, 0)?;
        if d != 0 || self.on_chip() {
            return Err(Violation::new(
                "indirect-view",
                "",
                format!(
                    "vector_select selects rows (dimension 0) of an HBM tensor, got dimension {d} of `{}` in {}",
                    self.storage.name, self.view.space
                ),
            ));
        }
        let mut view = self.view.clone();
        let bound = view.dims[0].count;
        self.set_dynamic(&mut view, 0, &Index::Vector(offsets.clone()), bound)?;
        view.dims[0].count = offsets.partitions();
        Ok(self.with_view(view))
    }
}
