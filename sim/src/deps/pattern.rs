//! Strided byte patterns, and an exact test whether two of them share a byte.

use arrayvec::ArrayVec;
use nki_isa::view::Dim;

/// Maximum dimensions of a pattern: those of a view and one for its rows.
const MAX: usize = nki_isa::view::MAX_DIMS + 1;

/// The bytes `base + i0*s0 + i1*s1 + ... + [0, width)`, with positive strides in descending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    base: i64,
    width: i64,
    dims: ArrayVec<(i64, i64), MAX>,
}

impl Pattern {
    /// The bytes of `dims` (in elements of `size` bytes) from element `offset` on.
    pub(crate) fn new(dims: &[Dim], offset: i64, size: i64, base: i64) -> Self {
        let mut base = base + offset * size;
        let mut out: ArrayVec<(i64, i64), MAX> = ArrayVec::new();
        for d in dims {
            let (mut stride, count) = (d.stride * size, i64::from(d.count));
            if stride == 0 || count <= 1 {
                continue;
            }
            if stride < 0 {
                base += stride * (count - 1);
                stride = -stride;
            }
            out.push((stride, count));
        }
        out.sort_unstable_by(|a, b| b.cmp(a));
        // From the innermost outwards: touching or overlapping runs widen the run, regular nests become one dimension.
        let mut width = size;
        let mut dims: ArrayVec<(i64, i64), MAX> = ArrayVec::new();
        for &(stride, count) in out.iter().rev() {
            if dims.is_empty() && stride <= width {
                width += stride * (count - 1);
            } else if let Some(last) = dims.last_mut()
                && stride == last.0 * last.1
            {
                last.1 *= count;
            } else {
                dims.push((stride, count));
            }
        }
        dims.reverse();
        Pattern { base, width, dims }
    }

    /// Bytes `lo..hi`.
    pub(crate) fn run(lo: i64, hi: i64) -> Self {
        Pattern { base: lo, width: hi - lo, dims: ArrayVec::new() }
    }

    /// The smallest interval that contains all bytes.
    pub(crate) fn bounds(&self) -> (i64, i64) {
        let reach: i64 = self.dims.iter().map(|&(s, c)| s * (c - 1)).sum();
        (self.base, self.base + reach + self.width)
    }

    /// Whether every byte of the bounds is in the pattern.
    pub(crate) fn is_dense(&self) -> bool {
        self.dims.is_empty()
    }

    /// Whether the patterns share a byte.
    ///
    /// They do if a difference of two starts is in `(-self.width, other.width)`. The differences form a pattern with the
    /// dimensions of both; equal strides become one dimension of `c1 + c2 - 1` steps.
    pub(crate) fn intersects(&self, other: &Pattern) -> bool {
        let (lo, hi) = (1 - self.width, other.width - 1);
        if self.dims.is_empty() && other.dims.is_empty() {
            let d = self.base - other.base;
            return lo <= d && d <= hi;
        }
        let mut base = self.base - other.base;
        let mut dims: ArrayVec<(i64, i64), { 2 * MAX }> = self.dims.iter().copied().collect();
        for &(s, c) in &other.dims {
            base -= s * (c - 1);
            match dims.iter_mut().find(|d| d.0 == s) {
                Some(d) => d.1 += c - 1,
                None => dims.push((s, c)),
            }
        }
        dims.sort_unstable_by(|a, b| b.cmp(a));
        let (lo, hi) = (lo - base, hi - base);
        let g = dims.iter().fold(0, |g, d| gcd(g, d.0));
        if g > 1 && hi.div_euclid(g) * g < lo {
            return false;
        }
        let mut reach: ArrayVec<i64, { 2 * MAX + 1 }> = ArrayVec::new();
        reach.push(0);
        for d in dims.iter().rev() {
            reach.push(reach[reach.len() - 1] + d.0 * (d.1 - 1));
        }
        reach.reverse();
        hits(&dims, &reach, lo, hi)
    }
}

/// Whether `lo <= sum of i_k * s_k <= hi` has a solution with `0 <= i_k < c_k`. `reach[k]` is the largest sum of `dims[k..]`.
fn hits(dims: &[(i64, i64)], reach: &[i64], lo: i64, hi: i64) -> bool {
    if lo > hi || hi < 0 || lo > reach[0] {
        return false;
    }
    let Some(&(stride, count)) = dims.first() else { return true };
    let rest = &dims[1..];
    let first = (-(reach[1] - lo).div_euclid(stride)).max(0);
    let last = hi.div_euclid(stride).min(count - 1);
    if first > last {
        return false;
    }
    // If no dimension's step exceeds the window plus the extent of the dimensions below, the sums leave no gaps.
    let window = hi - lo + 1;
    if rest.iter().zip(&reach[2..]).all(|(d, below)| d.0 <= window + below) {
        return true;
    }
    (first..=last).any(|i| hits(rest, &reach[1..], lo - i * stride, hi - i * stride))
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn bytes(dims: &[Dim], offset: i64, size: i64) -> BTreeSet<i64> {
        let mut starts = vec![offset];
        for d in dims {
            starts = starts.iter().flat_map(|s| (0..i64::from(d.count)).map(move |i| s + i * d.stride)).collect();
        }
        starts.iter().flat_map(|s| (0..size).map(move |b| s * size + b)).collect()
    }

    fn dims() -> impl Strategy<Value = Vec<Dim>> {
        prop::collection::vec((-9i64..24, 1u32..5).prop_map(|(stride, count)| Dim { stride, count }), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn agrees_with_byte_sets(a in dims(), b in dims(), oa in 0i64..60, ob in 0i64..60, sa in prop::sample::select(vec![1i64, 2, 4]), sb in prop::sample::select(vec![1i64, 2, 4])) {
            let (pa, pb) = (Pattern::new(&a, oa, sa, 0), Pattern::new(&b, ob, sb, 0));
            let (xa, xb) = (bytes(&a, oa, sa), bytes(&b, ob, sb));
            prop_assert_eq!(pa.bounds(), (*xa.first().unwrap(), *xa.last().unwrap() + 1));
            prop_assert!(!pa.is_dense() || xa.len() as i64 == pa.width);
            prop_assert_eq!(pa.intersects(&pb), !xa.is_disjoint(&xb));
        }
    }

    #[test]
    fn interleaved_columns_do_not_meet() {
        let even = Pattern::new(&[Dim { stride: 2, count: 2048 }], 0, 4, 0);
        let odd = Pattern::new(&[Dim { stride: 2, count: 2048 }], 1, 4, 0);
        assert!(!even.intersects(&odd));
        assert!(even.intersects(&even));
    }
}
