//! Chunks of tensors along a dimension, as elements in row-major order.

fn outer_inner(shape: &[u32], dim: usize) -> (usize, usize) {
    let product = |s: &[u32]| s.iter().map(|&n| n as usize).product::<usize>();
    (product(&shape[..dim.min(shape.len())]), product(&shape[dim.min(shape.len())..]))
}

/// Chunk `i` of `n` along `dim` of a tensor of this shape.
pub(crate) fn chunk(elements: &[u32], shape: &[u32], dim: usize, n: usize, i: usize) -> Vec<u32> {
    let (outer, inner) = outer_inner(shape, dim);
    let part = inner / n.max(1);
    (0..outer).flat_map(|o| elements[o * inner + i * part..o * inner + (i + 1) * part].iter().copied()).collect()
}

/// Concatenates tensors of one shape along `dim`.
pub(crate) fn join(parts: &[Vec<u32>], shape: &[u32], dim: usize) -> Vec<u32> {
    let (outer, inner) = outer_inner(shape, dim);
    (0..outer).flat_map(|o| parts.iter().flat_map(move |p| p[o * inner..(o + 1) * inner].iter().copied())).collect()
}
