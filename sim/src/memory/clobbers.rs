//! Values that are overwritten through another tensor while they are still needed.
//!
//! Tensors with explicit addresses may share bytes. This is valid if a value is not read after another is written over it, and if one
//! tensor is only an alias of another. The error found here: bytes are written through `a`, then through `b`, and then read through
//! `a`. Writing them through `a` again makes them valid again.
//! Only tensors whose bytes and lifetimes overlap those of another are watched, so a program without such tensors has no overhead.

use std::ops::Range;

use nki_isa::program::Node;
use nki_isa::{Program, TensorId};
use rustc_hash::FxHashMap;

use super::access::Access;
use super::elements;
use crate::place::Placement;

/// A clobbered read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clobbered<'p> {
    /// The tensor whose write overwrote the value.
    pub(crate) by: TensorId,
    /// The overwriting statement.
    pub(crate) node: &'p Node,
}

/// One watched tensor. Bytes are relative to its own rows and columns.
#[derive(Debug)]
struct Watched<'p> {
    partners: Vec<TensorId>,
    columns: usize,
    /// Bytes written through it, and the subset overwritten since through another tensor; one bit each.
    written: Vec<u64>,
    stale: Vec<u64>,
    /// Writes over it, as (tensor, statement, rows and byte ranges in the storage).
    over: Vec<(TensorId, &'p Node, Runs)>,
}

/// Rows of a storage, and bytes in them.
type Runs = Vec<(usize, Range<usize>)>;

/// All watched tensors.
#[derive(Debug, Default)]
pub(crate) struct Clobbers<'p> {
    tensors: FxHashMap<TensorId, Watched<'p>>,
    /// The statement being executed.
    pub(crate) now: Option<&'p Node>,
}

impl<'p> Clobbers<'p> {
    /// Watches the tensors whose explicit addresses overlap while both are alive.
    pub(crate) fn new(program: &'p Program, placement: &Placement) -> Self {
        let mut out = Clobbers::default();
        for (a, b) in placement.overlaps.iter().copied() {
            for (one, other) in [(a, b), (b, a)] {
                let t = program.tensor(one);
                let rows = t.shape.first().map_or(1, |&n| n as usize);
                let columns = t.bytes();
                let words = (rows * columns).div_ceil(64);
                let watched = out.tensors.entry(one).or_insert_with(|| Watched {
                    partners: Vec::new(),
                    columns,
                    written: vec![0; words],
                    stale: vec![0; words],
                    over: Vec::new(),
                });
                watched.partners.push(other);
            }
        }
        out
    }

    /// Whether nothing is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Records a write. `homes` gives row and column of a tensor in its storage.
    pub(crate) fn write(&mut self, access: &Access, homes: impl Fn(TensorId) -> Option<(usize, usize)>) {
        let Some(watched) = self.tensors.get_mut(&access.tensor) else { return };
        let runs = runs(access);
        let home = (access.home.row(), access.home.column());
        for (row, bytes) in &runs {
            watched.bits(home, *row, bytes, |written, stale, mask| {
                *written |= mask;
                *stale &= !mask;
            });
        }
        let Some(node) = self.now else { return };
        for partner in watched.partners.clone() {
            let (Some(home), Some(other)) = (homes(partner), self.tensors.get_mut(&partner)) else { continue };
            let mut hit = false;
            for (row, bytes) in &runs {
                other.bits(home, *row, bytes, |written, stale, mask| {
                    hit |= *written & mask != 0;
                    *stale |= *written & mask;
                });
            }
            if hit {
                // In a loop, the same statement executes again.
                other.over.retain(|(t, n, r)| !(*t == access.tensor && std::ptr::eq(*n, node) && *r == runs));
                other.over.push((access.tensor, node, runs.clone()));
            }
        }
    }

    /// Checks a read; returns the write that clobbered its bytes, if any.
    pub(crate) fn read(&mut self, access: &Access) -> Option<Clobbered<'p>> {
        let watched = self.tensors.get_mut(&access.tensor)?;
        let home = (access.home.row(), access.home.column());
        for (row, bytes) in runs(access) {
            let mut stale_here = false;
            watched.bits(home, row, &bytes, |_, stale, mask| stale_here |= *stale & mask != 0);
            if stale_here {
                let overlaps =
                    |runs: &Runs| runs.iter().any(|(r, b)| *r == row && b.start < bytes.end && bytes.start < b.end);
                let last = watched.over.iter().rev().find(|(.., runs)| overlaps(runs));
                return last.map(|&(by, node, _)| Clobbered { by, node });
            }
        }
        None
    }
}

impl Watched<'_> {
    /// Calls `f(written, stale, mask)` for each of this tensor's words that contain the given bytes of a storage row.
    fn bits(
        &mut self,
        home: (usize, usize),
        row: usize,
        bytes: &Range<usize>,
        mut f: impl FnMut(&mut u64, &mut u64, u64),
    ) {
        let Some(row) = row.checked_sub(home.0) else { return };
        let start = bytes.start.max(home.1) - home.1;
        let end = (bytes.end.max(home.1) - home.1).min(self.columns);
        let (mut at, end) = (row * self.columns + start, row * self.columns + end);
        while at < end {
            let upto = ((at / 64 + 1) * 64).min(end);
            let mask = (!0_u64 >> (64 - (upto - at))) << (at % 64);
            let (Some(written), Some(stale)) = (self.written.get_mut(at / 64), self.stale.get_mut(at / 64)) else {
                return;
            };
            f(written, stale, mask);
            at = upto;
        }
    }
}

/// The rows and byte ranges of an access.
fn runs(access: &Access) -> Runs {
    let size = access.codec.dtype.size();
    let mut out = Vec::new();
    for i in 0..access.rows {
        let Some((row, start)) = access.start(i) else { continue };
        if access.is_dense() {
            out.push((row, start..start + access.per_row * size));
            continue;
        }
        elements::each_run(start, &access.inner, size, &mut |at, step| {
            if step.stride == size as isize {
                out.push((row, at..at + step.count * size));
            } else {
                let mut at = at;
                for _ in 0..step.count {
                    out.push((row, at..at + size));
                    at = at.wrapping_add_signed(step.stride);
                }
            }
        });
    }
    out
}
