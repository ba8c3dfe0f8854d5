//! Views that split and merge dimensions: `reshape`, `reshape_dim`, `flatten_dims`, `rearrange`.

use nki_isa::view::Dims;
use nki_isa::{Dim, Violation};

use super::{Tensor, positive, tuple_text};
use crate::build::Result;

/// A dimension of a `rearrange` pattern: one name, or a group of names in brackets.
pub(crate) type Group<'a> = Vec<&'a str>;

impl Tensor {
    /// `NkiTensor.reshape`. One entry may be -1.
    pub(crate) fn reshape(&self, shape: &[i64]) -> Result<Tensor> {
        let total = self.view.elements() as i64;
        let counts = self.infer("reshape", shape, total)?;
        self.room(counts.len())?;
        let fixed = self.first_is_fixed();
        if fixed && counts.first() != self.view.dims.first().map(|d| &d.count) {
            return Err(Violation::new(
                "partition-dimension",
                "",
                format!(
                    "reshape of `{}` from {} to {}: dimension 0 must stay {}",
                    self.storage.name,
                    self.shape_text(),
                    tuple_text(shape.iter().copied()),
                    self.view.dims[0].count
                ),
            )
            .help("an on-chip tensor's dimension 0 is its partitions; only the dimensions after it can be reshaped"));
        }
        if self.on_chip() && counts.len() < 2 {
            return Err(Violation::new(
                "partition-dimension",
                "",
                format!("reshape of `{}` to one dimension: an on-chip tensor has at least two", self.storage.name),
            ));
        }
        let first = usize::from(fixed);
        let mut dims = Dims::new();
        dims.extend(self.view.dims[..first].iter().copied());
        let Some(rest) = regroup(&self.view.dims[first..], &counts[first..]) else {
            return Err(
                self.not_contiguous(&format!("reshape to {}", tuple_text(counts.iter().map(|&n| i64::from(n)))))
            );
        };
        dims.extend(rest);
        let mut view = self.view.clone();
        view.dims = dims;
        Ok(self.with_view(view))
    }

    /// `NkiTensor.reshape_dim`.
    pub(crate) fn reshape_dim(&self, dim: i64, shape: &[i64]) -> Result<Tensor> {
        let d = self.dim("reshape_dim", dim, 0)?;
        let old = self.view.dims[d];
        let counts = self.infer("reshape_dim", shape, i64::from(old.count))?;
        if d == 0 && self.first_is_fixed() && counts.len() != 1 {
            return Err(Violation::new(
                "partition-dimension",
                "",
                format!("reshape_dim of `{}`: dimension 0 cannot be split", self.storage.name),
            ));
        }
        self.room(self.ndim() - 1 + counts.len())?;
        let mut dims = Dims::new();
        dims.extend(self.view.dims[..d].iter().copied());
        let mut stride = old.stride * i64::from(old.count);
        for &count in &counts {
            stride /= i64::from(count);
            dims.push(Dim { stride, count });
        }
        dims.extend(self.view.dims[d + 1..].iter().copied());
        let mut view = self.view.clone();
        view.dims = dims;
        Ok(self.with_view(view))
    }

    /// `NkiTensor.flatten_dims`: `start` to `end`, both inclusive.
    pub(crate) fn flatten_dims(&self, start: i64, end: i64) -> Result<Tensor> {
        let (a, b) = (self.dim("flatten_dims", start, 0)?, self.dim("flatten_dims", end, 0)?);
        if a > b {
            return Err(Violation::new(
                "bad-dimension",
                "",
                format!("flatten_dims({start}, {end}) of `{}`: the start is after the end", self.storage.name),
            ));
        }
        if a == b {
            return Ok(self.clone());
        }
        if a == 0 && self.first_is_fixed() {
            return Err(Violation::new(
                "partition-dimension",
                "",
                format!("flatten_dims of `{}`: dimension 0 cannot be merged with others", self.storage.name),
            ));
        }
        let count = self.view.dims[a..=b].iter().map(|d| d.count).product();
        let Some(merged) = regroup(&self.view.dims[a..=b], &[count]) else {
            return Err(self.not_contiguous(&format!("flatten_dims({start}, {end})")));
        };
        let mut view = self.view.clone();
        view.dims.drain(a + 1..=b);
        view.dims[a] = merged[0];
        Ok(self.with_view(view))
    }

    /// `NkiTensor.rearrange`: split by `src`, reorder, merge by `dst`.
    pub(crate) fn rearrange(&self, src: &[Group<'_>], dst: &[Group<'_>], sizes: &[(&str, i64)]) -> Result<Tensor> {
        self.rearranged(src, dst, sizes).map_err(|mut violation| {
            // Error messages must not name the steps, which the user has not written.
            for step in ["flatten_dims", "reshape_dim", "permute", "squeeze_dim", "expand_dim"] {
                if let Some(rest) = violation.message.strip_prefix(step) {
                    let rest = match rest.split_once(')') {
                        Some((_, after)) if rest.starts_with('(') => after,
                        _ => rest,
                    };
                    violation.message = format!("rearrange{rest}");
                }
            }
            violation
        })
    }

    fn rearranged(&self, src: &[Group<'_>], dst: &[Group<'_>], sizes: &[(&str, i64)]) -> Result<Tensor> {
        let refuse = |why: String| {
            Violation::new("bad-dimension", "", format!("rearrange of `{}`: {why}", self.storage.name))
                .help("for example t.rearrange(('b', ('h', 'w')), ('b', 'w', 'h'), {'h': 4})")
        };
        if src.len() != self.ndim() {
            return Err(refuse(format!(
                "the source pattern has {} dimensions, but the tensor has {} (shape {})",
                src.len(),
                self.ndim(),
                self.shape_text()
            )));
        }
        let names: Vec<&str> = src.iter().flatten().copied().collect();
        let wanted: Vec<&str> = dst.iter().flatten().copied().collect();
        for (i, n) in names.iter().enumerate() {
            if names[..i].contains(n) || wanted.iter().filter(|w| *w == n).count() != 1 {
                return Err(refuse(format!("`{n}` must appear once in each pattern")));
            }
        }
        if let Some(w) = wanted.iter().find(|w| !names.contains(w)) {
            return Err(refuse(format!("`{w}` is not in the source pattern")));
        }
        if let Some((n, _)) = sizes.iter().find(|(n, _)| !names.contains(n)) {
            return Err(refuse(format!("a size is given for `{n}`, which is not in the pattern")));
        }
        let size_of = |n: &str| sizes.iter().find(|(k, _)| *k == n).map_or(-1, |&(_, s)| s);
        let mut out = self.clone();
        let mut at = 0;
        for group in src {
            if group.len() != 1 {
                let shape: Vec<i64> = group.iter().map(|n| size_of(n)).collect();
                out = if shape.is_empty() { out.squeeze_dim(at)? } else { out.reshape_dim(at, &shape)? };
            } else if size_of(group[0]) != -1 && size_of(group[0]) != i64::from(out.view.dims[at as usize].count) {
                let got = out.view.dims[at as usize].count;
                return Err(refuse(format!(
                    "`{}` is given as {}, but the dimension has size {got}",
                    group[0],
                    size_of(group[0])
                )));
            }
            at += group.len() as i64;
        }
        let order: Vec<i64> =
            wanted.iter().filter_map(|w| names.iter().position(|n| n == w)).map(|i| i as i64).collect();
        if !order.is_empty() {
            out = out.permute(&order)?;
        }
        for (at, group) in (0..).zip(dst) {
            if group.is_empty() {
                out = out.expand_dim(at)?;
            } else {
                out = out.flatten_dims(at, at + group.len() as i64 - 1)?;
            }
        }
        Ok(out)
    }

    /// Sizes with one -1 filled in; their product must be `total`.
    fn infer(&self, what: &str, shape: &[i64], total: i64) -> Result<Vec<u32>> {
        let known: i64 = shape.iter().filter(|&&n| n != -1).try_fold(1i64, |p, &n| p.checked_mul(n)).unwrap_or(0);
        let open = shape.iter().filter(|&&n| n == -1).count();
        let fits = match open {
            0 => known == total,
            1 => known > 0 && total % known == 0,
            _ => false,
        };
        if !fits {
            return Err(Violation::new(
                "shape-mismatch",
                "",
                format!(
                    "{what} of `{}` to {}: the sizes must multiply to {total} (its shape is {})",
                    self.storage.name,
                    tuple_text(shape.iter().copied()),
                    self.shape_text()
                ),
            ));
        }
        shape.iter().map(|&n| positive(what, if n == -1 { total / known } else { n })).collect()
    }

    fn not_contiguous(&self, what: &str) -> Violation {
        Violation::new(
            "not-contiguous",
            "",
            format!(
                "{what} of `{}`: its dimensions, shape {} with strides {}, are not contiguous",
                self.storage.name,
                self.shape_text(),
                tuple_text(self.strides().iter().copied())
            ),
        )
        .help("reshape before slicing or permuting, or copy to a new tensor first")
    }
}

/// The same elements in the same order with other extents, if strides can express that. Products must be equal.
fn regroup(old: &[Dim], counts: &[u32]) -> Option<Dims> {
    let mut old = old.iter().filter(|d| d.count != 1).copied().peekable();
    let mut out = Dims::new();
    let mut i = 0;
    while i < counts.len() {
        if counts[i] == 1 {
            // The stride of a size-1 dimension is filled in below.
            out.push(Dim { stride: -1, count: 1 });
            i += 1;
            continue;
        }
        // Advance in both old and new dimensions until their products agree.
        let start = i;
        let mut new_product = i64::from(counts[i]);
        i += 1;
        let mut run = old.next()?;
        let mut old_product = i64::from(run.count);
        while new_product != old_product {
            if new_product < old_product {
                new_product *= i64::from(*counts.get(i)?);
                i += 1;
            } else {
                let next = old.next()?;
                if run.stride != next.stride * i64::from(next.count) {
                    return None;
                }
                old_product *= i64::from(next.count);
                run = next;
            }
        }
        let mut stride = run.stride;
        let mut group = Dims::new();
        for &count in counts[start..i].iter().rev() {
            group.push(Dim { stride, count });
            stride *= i64::from(count);
        }
        out.extend(group.into_iter().rev());
    }
    for i in (0..out.len()).rev() {
        if out[i].stride == -1 {
            out[i].stride = out.get(i + 1).map_or(1, |n| n.stride * i64::from(n.count));
        }
    }
    Some(out)
}
