//! Strided elements of a byte buffer: gather, scatter, conversion.

use std::borrow::Cow;

use arrayvec::ArrayVec;
use ndarray::ArrayView2;
use nki_isa::DType;
use nki_isa::dtype::{bits_to_i64, decode_f32, decode_i64, encode_f32, encode_i64, read_bits};
use nki_isa::transpose::{Rows, transpose};
use nki_isa::view::MAX_DIMS;

/// One step of a pattern in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    /// Bytes between neighbours.
    pub(crate) stride: isize,
    /// Number of elements along this dimension.
    pub(crate) count: usize,
}

/// Steps, outermost first.
pub(crate) type Steps = ArrayVec<Step, { MAX_DIMS + 2 }>;

/// Copies bytes in blocks. One call for many kilobytes would use `rep movsb`, which is ten times slower than a loop on processors
/// if source and destination have different offsets in their cache lines (measured on AMD EPYC).
pub(crate) fn copy_bytes(to: &mut [u8], from: &[u8]) {
    const BLOCK: usize = 1024;
    for (to, from) in to.chunks_mut(BLOCK).zip(from.chunks(BLOCK)) {
        to.copy_from_slice(from);
    }
}

/// Writes the bytes of one element (1, 2, 4 or 8 of them) everywhere.
pub(crate) fn fill(to: &mut [u8], one: &[u8]) {
    match *one {
        [a] => to.fill(a),
        [a, b] => to.as_chunks_mut().0.fill([a, b]),
        [a, b, c, d] => to.as_chunks_mut().0.fill([a, b, c, d]),
        [a, b, c, d, e, f, g, h] => to.as_chunks_mut().0.fill([a, b, c, d, e, f, g, h]),
        _ => {}
    }
}

/// Elements of `size` bytes (1, 2 or 4) as bits, zero-extended.
pub(crate) fn to_bits(bytes: &[u8], size: usize) -> Vec<u32> {
    match size {
        1 => bytes.iter().map(|&b| u32::from(b)).collect(),
        2 => bytes.as_chunks().0.iter().map(|b| u32::from(u16::from_le_bytes(*b))).collect(),
        _ => bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect(),
    }
}

/// Bits as elements of `size` bytes (1, 2 or 4).
pub(crate) fn from_bits(bits: &[u32], size: usize) -> Vec<u8> {
    match size {
        1 => bits.iter().map(|&b| b as u8).collect(),
        2 => bits.iter().map(|&b| (b as u16).to_le_bytes()).collect::<Vec<_>>().into_flattened(),
        _ => bits.iter().map(|b| b.to_le_bytes()).collect::<Vec<_>>().into_flattened(),
    }
}

/// The elements of a matrix, row by row.
pub(crate) fn dense<T: Copy + Default>(matrix: ArrayView2<'_, T>) -> Cow<'_, [T]> {
    if let Some(elements) = matrix.to_slice() {
        return Cow::Borrowed(elements);
    }
    let (rows, columns) = matrix.dim();
    let Some(across) = matrix.reversed_axes().to_slice() else { return matrix.iter().copied().collect() };
    let mut out = vec![T::default(); across.len()];
    let to = Rows { elements: &mut out[..], pitch: columns };
    transpose(Rows { elements: across, pitch: rows }, to, columns, rows);
    Cow::Owned(out)
}

/// Number of elements.
pub(crate) fn count(steps: &[Step]) -> usize {
    steps.iter().map(|s| s.count).product()
}

/// Merges neighbours that form one regular run and drops steps of one element.
pub(crate) fn merge(steps: impl IntoIterator<Item = Step>) -> Steps {
    let mut out = Steps::new();
    for s in steps {
        if s.count == 1 {
            continue;
        }
        match out.last_mut() {
            Some(last) if last.stride == s.stride * s.count as isize => {
                *last = Step { stride: s.stride, count: last.count * s.count };
            }
            _ => out.push(s),
        }
    }
    out
}

/// Calls `f` with the position of each innermost run, and the step inside it.
pub(crate) fn each_run(base: usize, steps: &[Step], size: usize, f: &mut impl FnMut(usize, Step)) {
    match steps {
        [] => f(base, Step { stride: size as isize, count: 1 }),
        [inner] => f(base, *inner),
        [outer, rest @ ..] => {
            let mut at = base;
            for _ in 0..outer.count {
                each_run(at, rest, size, f);
                at = at.wrapping_add_signed(outer.stride);
            }
        }
    }
}

/// Copies the elements of `S` bytes selected by `steps` in `from` densely to `out`.
fn gather_sized<const S: usize>(from: &[u8], base: usize, steps: &[Step], out: &mut [u8]) {
    let mut done = 0;
    each_run(base, steps, S, &mut |at, step| {
        let n = step.count * S;
        let out = &mut out[done..done + n];
        done += n;
        if step.stride == S as isize {
            copy_bytes(out, &from[at..at + n]);
        } else if step.stride > S as isize {
            let stride = step.stride as usize;
            let from = &from[at..at + (step.count - 1) * stride + S];
            for (o, i) in out.chunks_exact_mut(S).zip(from.chunks(stride)) {
                o.copy_from_slice(&i[..S]);
            }
        } else {
            let mut at = at;
            for o in out.chunks_exact_mut(S) {
                o.copy_from_slice(&from[at..at + S]);
                at = at.wrapping_add_signed(step.stride);
            }
        }
    });
}

/// Copies dense elements of `S` bytes to the positions of `steps`.
fn scatter_sized<const S: usize>(to: &mut [u8], base: usize, steps: &[Step], values: &[u8]) {
    let mut done = 0;
    each_run(base, steps, S, &mut |at, step| {
        let n = step.count * S;
        let values = &values[done..done + n];
        done += n;
        if step.stride == S as isize {
            copy_bytes(&mut to[at..at + n], values);
        } else if step.stride > S as isize {
            let stride = step.stride as usize;
            let to = &mut to[at..at + (step.count - 1) * stride + S];
            for (v, o) in values.chunks_exact(S).zip(to.chunks_mut(stride)) {
                o[..S].copy_from_slice(v);
            }
        } else {
            let mut at = at;
            for v in values.chunks_exact(S) {
                to[at..at + S].copy_from_slice(v);
                at = at.wrapping_add_signed(step.stride);
            }
        }
    });
}

/// Copies the elements of `size` bytes (1, 2, 4 or 8) selected by `steps` in `from` densely to `out`.
pub(crate) fn gather(from: &[u8], base: usize, steps: &[Step], size: usize, out: &mut [u8]) {
    match size {
        1 => gather_sized::<1>(from, base, steps, out),
        2 => gather_sized::<2>(from, base, steps, out),
        8 => gather_sized::<8>(from, base, steps, out),
        _ => gather_sized::<4>(from, base, steps, out),
    }
}

/// Copies dense elements of `size` bytes (1, 2, 4 or 8) to the positions of `steps`. Of elements at one address, the last one wins.
pub(crate) fn scatter(to: &mut [u8], base: usize, steps: &[Step], size: usize, values: &[u8]) {
    match size {
        1 => scatter_sized::<1>(to, base, steps, values),
        2 => scatter_sized::<2>(to, base, steps, values),
        8 => scatter_sized::<8>(to, base, steps, values),
        _ => scatter_sized::<4>(to, base, steps, values),
    }
}

/// The layout of elements of a type in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Codec {
    /// The element type in the program.
    pub(crate) dtype: DType,
    /// Every element is kept in 32 bits: floats as fp32, integers extended, int64 unchanged (`NKI_PRECISE_FP=0`).
    pub(crate) wide: bool,
}

impl Codec {
    /// Bytes of one element in memory.
    pub(crate) fn size(self) -> usize {
        if self.wide && self.dtype != DType::I64 { 4 } else { self.dtype.size() }
    }

    /// Whether memory holds plain fp32.
    pub(crate) fn is_f32(self) -> bool {
        self.dtype == DType::F32 || (self.wide && self.dtype.is_float())
    }

    fn stored(self) -> DType {
        match self.dtype {
            d if !self.wide => d,
            d if d.is_float() => DType::F32,
            DType::I64 => DType::I64,
            DType::I8 | DType::I16 | DType::I32 => DType::I32,
            _ => DType::U32,
        }
    }

    /// Dense memory bytes to fp32.
    pub(crate) fn to_f32(self, bytes: &[u8], out: &mut [f32]) {
        if self.is_f32() {
            copy_bytes(bytemuck::cast_slice_mut::<f32, u8>(out), bytes);
        } else {
            decode_f32(self.stored(), bytes, out);
        }
    }

    /// fp32 to dense memory bytes.
    pub(crate) fn write_f32(self, values: &[f32], out: &mut [u8]) {
        if self.is_f32() {
            copy_bytes(out, bytemuck::cast_slice(values));
        } else if self.wide {
            let mut narrow = vec![0; values.len() * self.dtype.size()];
            encode_f32(self.dtype, values, &mut narrow);
            self.widen(&narrow, out);
        } else {
            encode_f32(self.dtype, values, out);
        }
    }

    /// Dense memory bytes to integers, sign- or zero-extended.
    pub(crate) fn to_i64(self, bytes: &[u8], out: &mut [i64]) {
        decode_i64(self.stored(), bytes, out);
    }

    /// Integers, wrapped to the element type, to dense memory bytes. Through fp32 for float types.
    pub(crate) fn write_i64(self, values: &[i64], out: &mut [u8]) {
        if self.wide && self.dtype.is_float() {
            encode_i64(DType::F32, values, out);
        } else if self.wide {
            let mut narrow = vec![0; values.len() * self.dtype.size()];
            encode_i64(self.dtype, values, &mut narrow);
            self.widen(&narrow, out);
        } else {
            encode_i64(self.dtype, values, out);
        }
    }

    /// Elements in the host's format to memory bytes.
    pub(crate) fn widen(self, host: &[u8], out: &mut [u8]) {
        if !self.wide || self.dtype == DType::I64 {
            out.copy_from_slice(host);
        } else if self.dtype.is_float() {
            let mut values = vec![0.0; host.len() / self.dtype.size()];
            decode_f32(self.dtype, host, &mut values);
            out.copy_from_slice(bytemuck::cast_slice(&values));
        } else {
            for (o, b) in out.chunks_exact_mut(4).zip(host.chunks_exact(self.dtype.size())) {
                o.copy_from_slice(&(bits_to_i64(self.dtype, read_bits(b)) as i32).to_le_bytes());
            }
        }
    }

    /// Memory bytes to elements in the host's format.
    pub(crate) fn narrow(self, bytes: &[u8], host: &mut [u8]) {
        if !self.wide || self.dtype == DType::I64 {
            host.copy_from_slice(bytes);
        } else if self.dtype.is_float() {
            let mut values = vec![0.0; bytes.len() / 4];
            self.to_f32(bytes, &mut values);
            encode_f32(self.dtype, &values, host);
        } else {
            let size = self.dtype.size();
            for (o, b) in host.chunks_exact_mut(size).zip(bytes.chunks_exact(4)) {
                o.copy_from_slice(&b[..size]);
            }
        }
    }

    /// The value of uninitialized memory, little-endian and zero-extended.
    pub(crate) fn poison(self) -> [u8; 8] {
        u64::from(self.stored().uninitialized_bits()).to_le_bytes()
    }
}

/// Whether the elements are contiguous bytes.
pub(crate) fn is_dense(steps: &Steps, codec: Codec) -> bool {
    match steps[..] {
        [] => true,
        [s] => s.stride == codec.size() as isize,
        _ => false,
    }
}

/// The contiguous bytes of `count` elements of a row: in place, or in `packed`.
fn run_of<'a>(
    bytes: &'a [u8],
    at: usize,
    steps: &Steps,
    codec: Codec,
    count: usize,
    packed: &'a mut Vec<u8>,
) -> &'a [u8] {
    let length = count * codec.size();
    if is_dense(steps, codec) {
        return &bytes[at..at + length];
    }
    packed.resize(length, 0);
    gather(bytes, at, steps, codec.size(), packed);
    packed
}

/// Calls `fill` to write the contiguous bytes of `count` elements of a row. `packed` is scratch.
fn fill_run(
    bytes: &mut [u8],
    at: usize,
    steps: &Steps,
    codec: Codec,
    count: usize,
    packed: &mut Vec<u8>,
    fill: impl FnOnce(&mut [u8]),
) {
    let length = count * codec.size();
    if is_dense(steps, codec) {
        return fill(&mut bytes[at..at + length]);
    }
    packed.resize(length, 0);
    fill(packed);
    scatter(bytes, at, steps, codec.size(), packed);
}

/// The bits of `out.len()` elements (of at most 4 bytes) of a row, zero-extended: in place, or in `out`. `packed` is scratch.
pub(crate) fn read_row_bits<'a>(
    bytes: &'a [u8],
    at: usize,
    steps: &Steps,
    codec: Codec,
    packed: &mut Vec<u8>,
    out: &'a mut [u32],
) -> &'a [u32] {
    let size = codec.size();
    if size == 4 {
        let dense = is_dense(steps, codec).then(|| &bytes[at..at + size_of_val(out)]);
        if let Some(words) = dense.and_then(|words| bytemuck::try_cast_slice(words).ok()) {
            return words;
        }
        gather(bytes, at, steps, size, bytemuck::cast_slice_mut(out));
        return out;
    }
    let narrow = run_of(bytes, at, steps, codec, out.len(), packed);
    match size {
        1 => out.iter_mut().zip(narrow).for_each(|(o, &b)| *o = b.into()),
        _ => out.iter_mut().zip(narrow.as_chunks().0).for_each(|(o, b)| *o = u16::from_le_bytes(*b).into()),
    }
    out
}

/// Writes the low bits of `bits` to the elements (of at most 4 bytes) of a row. `packed` is scratch.
pub(crate) fn write_row_bits(
    bytes: &mut [u8],
    at: usize,
    steps: &Steps,
    codec: Codec,
    packed: &mut Vec<u8>,
    bits: &[u32],
) {
    if codec.size() == 4 {
        return scatter(bytes, at, steps, 4, bytemuck::cast_slice(bits));
    }
    fill_run(bytes, at, steps, codec, bits.len(), packed, |narrow| match codec.size() {
        1 => narrow.iter_mut().zip(bits).for_each(|(o, &b)| *o = b as u8),
        _ => narrow.as_chunks_mut().0.iter_mut().zip(bits).for_each(|(o, &b)| *o = (b as u16).to_le_bytes()),
    });
}

/// Reads `out.len()` elements of a row as fp32. `packed` is scratch.
pub(crate) fn read_f32(bytes: &[u8], at: usize, steps: &Steps, codec: Codec, packed: &mut Vec<u8>, out: &mut [f32]) {
    if codec.is_f32() && !is_dense(steps, codec) {
        return gather(bytes, at, steps, codec.size(), bytemuck::cast_slice_mut(out));
    }
    codec.to_f32(run_of(bytes, at, steps, codec, out.len(), packed), out);
}

/// Writes fp32 values to the elements of a row. `packed` is scratch.
pub(crate) fn write_f32(
    bytes: &mut [u8],
    at: usize,
    steps: &Steps,
    codec: Codec,
    packed: &mut Vec<u8>,
    values: &[f32],
) {
    if codec.is_f32() && !is_dense(steps, codec) {
        return scatter(bytes, at, steps, codec.size(), bytemuck::cast_slice(values));
    }
    fill_run(bytes, at, steps, codec, values.len(), packed, |run| codec.write_f32(values, run));
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_matrix_by_columns_becomes_one_by_rows(rows in 0..40_usize, columns in 0..40_usize) {
            let across = Array2::from_shape_fn((columns, rows), |(c, r)| c * rows + r);
            let expected: Vec<usize> = (0..rows).flat_map(|r| (0..columns).map(move |c| c * rows + r)).collect();
            prop_assert_eq!(dense(across.t()).into_owned(), expected);
        }

        #[test]
        fn bits_are_bytes(bits in prop::collection::vec(any::<u32>(), 0..9)) {
            for size in [1, 2, 4] {
                let kept: Vec<u32> = bits.iter().map(|b| if size == 4 { *b } else { b & ((1 << (8 * size)) - 1) }).collect();
                prop_assert_eq!(to_bits(&from_bits(&bits, size), size), kept);
            }
        }
    }
}
