//! Copies between views of any memories.

use arrayvec::ArrayVec;
use bytemuck::Pod;
use nki_isa::share::{share, threads};
use nki_isa::transpose::{Rows, transpose};
use nki_isa::view::MAX_DIMS;

use super::Memory;
use super::access::Access;
use super::elements::{self, Step};

/// One dimension of a copy: the strides of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    count: usize,
    from: isize,
    to: isize,
}

type Pairs = ArrayVec<Pair, { 2 * (MAX_DIMS + 2) }>;

/// Common steps of two patterns with the same number of elements, outermost first; none if their shapes do not divide each other.
fn pair(from: &[Step], to: &[Step]) -> Option<Pairs> {
    let mut out = Pairs::new();
    let mut sides = (from.iter().rev().copied(), to.iter().rev().copied());
    let mut heads = (sides.0.next(), sides.1.next());
    loop {
        let (a, b) = match heads {
            (Some(a), Some(b)) => (a, b),
            (None, None) => break,
            _ => return None,
        };
        let count = a.count.min(b.count);
        if count == 0 || a.count % count != 0 || b.count % count != 0 {
            return None;
        }
        let new = Pair { count, from: a.stride, to: b.stride };
        match out.last_mut() {
            // Innermost first here: the last one is inside the new one.
            Some(p) if p.from * p.count as isize == new.from && p.to * p.count as isize == new.to => p.count *= count,
            _ => out.push(new),
        }
        let rest =
            |s: Step| (s.count > count).then_some(Step { stride: s.stride * count as isize, count: s.count / count });
        heads = (rest(a).or_else(|| sides.0.next()), rest(b).or_else(|| sides.1.next()));
    }
    out.reverse();
    Some(out)
}

fn copy_pairs<const S: usize>(to: &mut [u8], to_at: usize, from: &[u8], from_at: usize, pairs: &[Pair]) {
    match pairs {
        [] => to[to_at..to_at + S].copy_from_slice(&from[from_at..from_at + S]),
        [p] if p.from == S as isize && p.to == S as isize => {
            let bytes = p.count * S;
            elements::copy_bytes(&mut to[to_at..to_at + bytes], &from[from_at..from_at + bytes]);
        }
        [p, rest @ ..] => {
            let (mut to_at, mut from_at) = (to_at, from_at);
            for _ in 0..p.count {
                copy_pairs::<S>(to, to_at, from, from_at, rest);
                to_at = to_at.wrapping_add_signed(p.to);
                from_at = from_at.wrapping_add_signed(p.from);
            }
        }
    }
}

/// Bytes of a copy per piece that threads share: for smaller pieces the overhead exceeds the gain.
const PIECE: usize = 128 * 1024;

/// As [`copy_pairs`], shared between threads where parts of the destination are disjoint.
fn copy_shared<const S: usize>(to: &mut [u8], to_at: usize, from: &[u8], from_at: usize, pairs: &Pairs) {
    let bytes: usize = S * pairs.iter().map(|p| p.count).product::<usize>();
    let threads = if bytes < 4 * PIECE { 1 } else { threads() };
    let outer = pairs.split_first().filter(|(outer, inner)| {
        let span: isize = S as isize + inner.iter().map(|p| p.to * (p.count as isize - 1)).sum::<isize>();
        threads > 1 && outer.count > 1 && outer.to >= span && inner.iter().all(|p| p.to >= 0)
    });
    let Some((outer, _)) = outer else { return copy_pairs::<S>(to, to_at, from, from_at, pairs) };
    let pieces = outer.count.min(bytes / PIECE);
    let step = outer.to.unsigned_abs();
    let mut rest = &mut to[to_at..];
    let piece = |k: usize| {
        let (first, end) = (outer.count * k / pieces, outer.count * (k + 1) / pieces);
        let whole = std::mem::take(&mut rest);
        // The last piece ends with its elements, not a whole step later.
        let (part, others) = whole.split_at_mut(if k + 1 < pieces { (end - first) * step } else { whole.len() });
        rest = others;
        let mut pairs = pairs.clone();
        pairs[0].count = end - first;
        (part, from_at.wrapping_add_signed(outer.from * first as isize), pairs)
    };
    share(threads, (0..pieces).map(piece).collect(), |(to, from_at, pairs): (&mut [u8], usize, Pairs)| {
        copy_pairs::<S>(to, 0, from, from_at, &pairs);
    });
}

/// Like [`transpose`], in memory that may be unaligned; none if it is not aligned for the elements.
fn transpose_words<T: Pod>(from: Rows<&[u8]>, to: Rows<&mut [u8]>, (rows, columns): (usize, usize)) -> Option<()> {
    let words = |bytes: usize| bytes / size_of::<T>() * size_of::<T>();
    let source = &from.elements[..words(from.elements.len())];
    let length = words(to.elements.len());
    let source = Rows { elements: bytemuck::try_cast_slice(source).ok()?, pitch: from.pitch };
    let target = Rows { elements: bytemuck::try_cast_slice_mut(&mut to.elements[..length]).ok()?, pitch: to.pitch };
    transpose::<T>(source, target, rows, columns);
    Some(())
}

impl Memory<'_> {
    /// Copies the elements of `from` to `to` in order. Both have the same number of elements; rows that an index vector skips on
    /// either side stay unchanged.
    pub(crate) fn copy(&mut self, to: &Access, from: &Access) {
        if from.starts.is_some() || to.starts.is_some() {
            return self.copy_rows(to, from);
        }
        if to.storage != from.storage && to.codec == from.codec && self.copy_direct(to, from) {
            return;
        }
        if to.storage != from.storage && to.rows == from.rows && to.per_row == from.per_row {
            return self.copy_converted(to, from);
        }
        let mut dense = vec![0; from.elements() * from.codec.size()];
        self.gather(from, &mut dense);
        let converted = convert(from, to, dense);
        self.scatter(to, &converted);
    }

    /// A copy between types, row by row through fp32.
    fn copy_converted(&mut self, to: &Access, from: &Access) {
        let mut data = self.storages[to.storage].take();
        let source = self.storages[from.storage].bytes();
        let (from_steps, to_steps) = (self.steps(from), self.steps(to));
        let mut values = vec![0.0; from.per_row];
        let mut packed = Vec::new();
        for i in 0..to.rows {
            if let (Some(at), Some(to_at)) = (self.position(from, i), self.position(to, i)) {
                elements::read_f32(source, at, &from_steps, from.codec, &mut packed, &mut values);
                elements::write_f32(data.bytes_mut(), to_at, &to_steps, to.codec, &mut packed, &values);
            }
        }
        self.storages[to.storage].put(data);
    }

    fn copy_direct(&mut self, to: &Access, from: &Access) -> bool {
        let (Some(from_steps), Some(to_steps)) = (self.all_steps(from), self.all_steps(to)) else { return false };
        let (Some(from_at), Some(to_at)) = (self.position(from, 0), self.position(to, 0)) else { return false };
        let Some(pairs) = pair(&from_steps, &to_steps) else { return false };
        let mut data = self.storages[to.storage].take();
        let source = self.storages[from.storage].bytes();
        let size = to.codec.size();
        match size {
            1 => copy_shared::<1>(data.bytes_mut(), to_at, source, from_at, &pairs),
            2 => copy_shared::<2>(data.bytes_mut(), to_at, source, from_at, &pairs),
            _ => copy_shared::<4>(data.bytes_mut(), to_at, source, from_at, &pairs),
        }
        self.storages[to.storage].put(data);
        true
    }

    /// Copies element `j` of partition `i` of `from` to element `i` of partition `j` of `to`. Both have elements of one size.
    pub(crate) fn transpose(&mut self, to: &Access, from: &Access) {
        if self.transpose_direct(to, from) {
            return;
        }
        let size = from.codec.size();
        let mut dense = vec![0; from.elements() * size];
        self.gather(from, &mut dense);
        let mut turned = vec![0; dense.len()];
        let shape = (from.partitions(), from.width());
        let source = Rows { elements: &dense[..], pitch: shape.1 };
        let target = Rows { elements: &mut turned[..], pitch: shape.0 };
        match size {
            1 => transpose_words::<u8>(source, target, shape),
            2 => transpose_words::<[u8; 2]>(source, target, shape),
            _ => transpose_words::<[u8; 4]>(source, target, shape),
        };
        self.scatter(to, &turned);
    }

    /// Like [`Memory::transpose`], from one storage to another without an intermediate copy; returns whether the layouts allow it: both are dense
    /// matrices of one type, and each has as many rows as the other has elements per row.
    fn transpose_direct(&mut self, to: &Access, from: &Access) -> bool {
        let regular = |a: &Access| a.starts.is_none() && elements::is_dense(&self.steps(a), a.codec);
        let fits = (to.rows, to.per_row) == (from.per_row, from.rows) && to.codec == from.codec;
        if !fits || to.storage == from.storage || !regular(to) || !regular(from) {
            return false;
        }
        let size = to.codec.size();
        let pitch = |a: &Access| {
            let row = a.row_step * self.storages[a.storage].pitch as isize + a.column_step * self.scale as isize;
            usize::try_from(row).ok().filter(|row| row % size == 0).map(|row| row / size)
        };
        let (Some(to_pitch), Some(from_pitch)) = (pitch(to), pitch(from)) else { return false };
        let (Some(to_at), Some(from_at)) = (self.position(to, 0), self.position(from, 0)) else { return false };
        if to_pitch < to.per_row && to.rows > 1 {
            return false;
        }
        let mut data = self.storages[to.storage].take();
        let source = Rows { elements: &self.storages[from.storage].bytes()[from_at..], pitch: from_pitch };
        let target = Rows { elements: &mut data.bytes_mut()[to_at..], pitch: to_pitch };
        let shape = (from.rows, from.per_row);
        let done = match size {
            1 => transpose_words::<u8>(source, target, shape),
            2 => transpose_words::<u16>(source, target, shape),
            4 => transpose_words::<u32>(source, target, shape),
            _ => None,
        };
        self.storages[to.storage].put(data);
        done.is_some()
    }

    /// A copy with skipped rows: element by element of the common row structure.
    fn copy_rows(&mut self, to: &Access, from: &Access) {
        let mut dense = vec![0; from.elements() * from.codec.size()];
        self.gather(from, &mut dense);
        let converted = convert(from, to, dense);
        let size = to.codec.size();
        // Only elements that exist on both sides move.
        let here = |a: &Access, e: usize| a.start(e / a.per_row.max(1)).is_some();
        if (0..from.rows).all(|i| from.start(i).is_some()) {
            return self.scatter(to, &converted);
        }
        let steps = self.steps(to);
        if to.per_row == from.per_row {
            for i in 0..to.rows {
                if let (Some(_), Some(at)) = (from.start(i), self.position(to, i)) {
                    let row = &converted[i * to.per_row * size..(i + 1) * to.per_row * size];
                    elements::scatter(self.storages[to.storage].bytes_mut(), at, &steps, size, row);
                }
            }
            return;
        }
        let mut e = 0;
        for i in 0..to.rows {
            let Some(base) = self.position(to, i) else {
                e += to.per_row;
                continue;
            };
            let data = self.storages[to.storage].bytes_mut();
            elements::each_run(base, &steps, size, &mut |at, step| {
                let mut at = at;
                for _ in 0..step.count {
                    if here(from, e) {
                        data[at..at + size].copy_from_slice(&converted[e * size..(e + 1) * size]);
                    }
                    e += 1;
                    at = at.wrapping_add_signed(step.stride);
                }
            });
        }
    }
}

/// Dense elements from one side's type to the other's, through fp32 unless the types are equal.
fn convert(from: &Access, to: &Access, dense: Vec<u8>) -> Vec<u8> {
    if from.codec == to.codec {
        return dense;
    }
    let n = dense.len() / from.codec.size();
    let mut values = vec![0.0; n];
    from.codec.to_f32(&dense, &mut values);
    let mut out = vec![0; n * to.codec.size()];
    to.codec.write_f32(&values, &mut out);
    out
}
