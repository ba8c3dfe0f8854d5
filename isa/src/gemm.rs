//! The matrix multiplication behind the numerics of the tensor engine.
//!
//! A tile of the tensor engine is small (at most 128 x 128 by 512), so packing its operands in the order of the inner loop is an eighth
//! of the work. Packed operands are separate values ([`Packed`]) in memory of the caller: a machine may keep them until the bytes
//! change, and multiply a chain of them into one result at once ([`accumulate`]).
//!
//! Order of sums: each product of a chain is a sum over its rows in order with fused multiply-adds, starting at zero. The products are added
//! to the result one after the other. The bits are the same on every CPU, for every tiling and number of threads, chained or not.

use std::cell::RefCell;
use std::ops::Range;

use crate::dtype::DType;
use crate::share::{share, threads};
use bytemuck::{Pod, Zeroable};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, CowArray, Ix2};
use prefetch_index::prefetch_index;
use pulp::Simd;

/// An operand as the engine reads it: tfloat32 keeps 10 bits of mantissa.
pub(crate) fn tensor_operand(tile: ArrayView2<'_, f32>, dtype: DType) -> CowArray<'_, f32, Ix2> {
    if dtype == DType::TF32 { CowArray::from(tile.mapv(round_tf32)) } else { CowArray::from(tile) }
}

/// Rounds to 10 mantissa bits, ties to even.
fn round_tf32(x: f32) -> f32 {
    const DROPPED: u32 = 13;
    if !x.is_finite() {
        return x;
    }
    let bits = x.to_bits();
    let half = (1 << (DROPPED - 1)) - 1 + ((bits >> DROPPED) & 1);
    f32::from_bits((bits + half) & !((1 << DROPPED) - 1))
}

/// The product `stationary.T @ moving` as a new array.
pub(crate) fn product(stationary: ArrayView2<'_, f32>, moving: ArrayView2<'_, f32>) -> Array2<f32> {
    let mut out = Array2::zeros((stationary.ncols(), moving.ncols()));
    multiply(stationary, moving, false, out.view_mut());
    out
}

/// `out = stationary.T @ moving`, or `out +=` it. Each element's sum starts at zero and is added to `out` at the end.
pub fn multiply(stationary: ArrayView2<'_, f32>, moving: ArrayView2<'_, f32>, add: bool, out: ArrayViewMut2<'_, f32>) {
    multiply_on(threads(), stationary, moving, add, out);
}

thread_local! {
    /// Memory for the packed operands of [`multiply`].
    static SCRATCH: RefCell<[Vec<Line>; 2]> = RefCell::default();
}

fn multiply_on(
    threads: usize,
    stationary: ArrayView2<'_, f32>,
    moving: ArrayView2<'_, f32>,
    add: bool,
    out: ArrayViewMut2<'_, f32>,
) {
    // Taken, not borrowed: while this thread waits for another, it may execute a second multiplication.
    let [mut left, mut right] = SCRATCH.take();
    let layouts = (Layout::new(Side::Stationary, stationary.dim()), Layout::new(Side::Moving, moving.dim()));
    let (left_floats, right_floats) = (floats_of(&mut left, layouts.0), floats_of(&mut right, layouts.1));
    let work = stationary.len() * moving.ncols();
    let threads = threads.min(1 + work / SPLIT_ABOVE);
    let mut tasks = layouts.0.tasks(left_floats, threads, |c| columns(stationary, c));
    tasks.extend(layouts.1.tasks(right_floats, PIECES * threads, |c| columns(moving, c)));
    share(threads, tasks, |(part, view)| part.pack(view));
    accumulate_on(threads, &[(layouts.0.packed(left_floats), layouts.1.packed(right_floats))], add, out);
    SCRATCH.set([left, right]);
}

/// Scratch memory, extended to the size of an operand.
fn floats_of(lines: &mut Vec<Line>, layout: Layout) -> &mut [f32] {
    let count = layout.bytes() / size_of::<Line>();
    if lines.len() < count {
        lines.resize(count, Line::zeroed());
    }
    bytemuck::cast_slice_mut(&mut lines[..count])
}

/// Some columns of a matrix.
pub fn columns(view: ArrayView2<'_, f32>, columns: Range<usize>) -> ArrayView2<'_, f32> {
    view.split_at(Axis(1), columns.end).0.split_at(Axis(1), columns.start).1
}

/// Which operand of a multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Its columns are the rows of the result.
    Stationary,
    /// Its columns are the columns of the result.
    Moving,
}

impl Side {
    /// Columns of a panel.
    fn width(self) -> usize {
        let Shape { rows, width } = pulp::Arch::new().dispatch(FindShape);
        if self == Side::Stationary { rows } else { width }
    }
}

/// Layout of a packed operand `[k, columns]`: panels of the columns that the inner loop processes at once, each panel `[k][width]`. The padding
/// of the last panel has arbitrary values. Valid only on the CPU that packed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    k: usize,
    columns: usize,
    /// Columns of a panel.
    width: usize,
}

/// A packed operand.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    layout: Layout,
    floats: &'a [f32],
}

/// Elements of a cache line.
const LINE: usize = 16;

/// A cache line, so that no vector spans two.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// Neighbouring panels of an operand, to be filled.
#[derive(Debug)]
pub struct Part<'a> {
    width: usize,
    panels: &'a mut [f32],
}

impl Layout {
    /// The layout of an operand of shape `(k, columns)`.
    pub fn new(side: Side, (k, columns): (usize, usize)) -> Self {
        Layout { k, columns, width: side.width() }
    }

    /// Bytes of memory: whole cache lines.
    pub fn bytes(self) -> usize {
        (self.columns.next_multiple_of(self.width) * self.k * size_of::<f32>()).next_multiple_of(size_of::<Line>())
    }

    /// Splits the operand's memory, of at least [`Layout::bytes`], into up to `parts` parts, each with the value of `source` for its columns. The
    /// inner loop is fastest if the memory starts at a cache line.
    pub fn tasks<T>(self, memory: &mut [f32], parts: usize, source: impl Fn(Range<usize>) -> T) -> Vec<(Part<'_>, T)> {
        let Layout { k, columns, width } = self;
        let panels = columns.div_ceil(width);
        let each = panels.div_ceil(parts.max(1)).max(1);
        let size = (each * width * k).max(1);
        (0..panels)
            .step_by(each)
            .zip(memory.chunks_mut(size))
            .map(|(first, chunk)| {
                let range = first * width..((first + each) * width).min(columns);
                (Part { width, panels: chunk }, source(range))
            })
            .collect()
    }

    /// The operand that is packed in this memory.
    pub fn packed(self, memory: &[f32]) -> Packed<'_> {
        Packed { layout: self, floats: &memory[..self.columns.next_multiple_of(self.width) * self.k] }
    }
}

impl<'a> Packed<'a> {
    fn panel(&self, i: usize) -> &'a [f32] {
        let size = self.layout.k * self.layout.width;
        &self.floats[i * size..(i + 1) * size]
    }

    fn panels(&self) -> std::slice::ChunksExact<'a, f32> {
        self.floats.chunks_exact((self.layout.k * self.layout.width).max(1))
    }
}

impl Part<'_> {
    /// Copies the columns of the part, `[k, columns]`, to the panels.
    pub fn pack(self, view: ArrayView2<'_, f32>) {
        match self.width {
            // Constant widths: copies without a call.
            5 => self.pack_by::<5>(view),
            8 => self.pack_by::<8>(view),
            16 => self.pack_by::<16>(view),
            32 => self.pack_by::<32>(view),
            _ => self.pack_by::<2>(view),
        }
    }

    fn pack_by<const W: usize>(self, view: ArrayView2<'_, f32>) {
        let (k, columns) = view.dim();
        let is_turned = k > 1 && columns > 1 && view.strides()[0] == 1;
        if is_turned {
            return pulp::Arch::new().dispatch(PackColumns::<W> { panels: self.panels, view });
        }
        for (i, row) in view.rows().into_iter().enumerate() {
            let at = |panel: usize| (panel * k + i) * W;
            let Some(row) = row.as_slice() else {
                for (column, &x) in row.iter().enumerate() {
                    self.panels[at(column / W) + column % W] = x;
                }
                continue;
            };
            let (whole, rest) = row.as_chunks::<W>();
            for (panel, chunk) in whole.iter().enumerate() {
                if let Some(to) = self.panels[at(panel)..].first_chunk_mut::<W>() {
                    *to = *chunk;
                }
            }
            if !rest.is_empty() {
                let start = at(whole.len());
                self.panels[start..start + rest.len()].copy_from_slice(rest);
            }
        }
    }
}

/// Packs an operand whose columns are contiguous, compiled for each instruction set.
struct PackColumns<'a, const W: usize> {
    panels: &'a mut [f32],
    view: ArrayView2<'a, f32>,
}

impl<const W: usize> pulp::WithSimd for PackColumns<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let PackColumns { panels, view } = self;
        let (k, columns) = view.dim();
        for (first, panel) in (0..columns).step_by(W).zip(panels.chunks_exact_mut(k * W)) {
            // The padding columns of the last panel belong to no result.
            let column = |j: usize| view.index_axis_move(Axis(1), (first + j).min(columns - 1)).to_slice();
            let lines: [&[f32]; W] = std::array::from_fn(|j| column(j).unwrap_or_default());
            let (rows, _) = panel.as_chunks_mut::<W>();
            for (start, rows) in (0..k).step_by(LINE).zip(rows.chunks_mut(LINE)) {
                if let Ok(rows) = <&mut [[f32; W]; LINE]>::try_from(&mut *rows) {
                    let squares: [&[f32]; W] = std::array::from_fn(|j| &lines[j][start..start + LINE]);
                    for (i, row) in rows.iter_mut().enumerate() {
                        *row = std::array::from_fn(|j| squares[j][i]);
                    }
                } else {
                    for (i, row) in rows.iter_mut().enumerate() {
                        *row = std::array::from_fn(|j| lines[j][start + i]);
                    }
                }
            }
        }
    }
}

/// Adds the products of a chain of (stationary, moving) to `out`, one after the other; without `add` the first overwrites it.
pub fn accumulate(chain: &[(Packed<'_>, Packed<'_>)], add: bool, out: ArrayViewMut2<'_, f32>) {
    accumulate_on(threads(), chain, add, out);
}

/// Below this many multiply-adds, the overhead of another thread exceeds the gain.
pub const SPLIT_ABOVE: usize = 1 << 20;

/// Small pieces of a multiplication for each thread.
const PIECES: usize = 4;

fn accumulate_on(threads: usize, chain: &[(Packed<'_>, Packed<'_>)], add: bool, out: ArrayViewMut2<'_, f32>) {
    let work: usize = chain.iter().map(|(s, m)| s.layout.k * s.layout.columns * m.layout.columns).sum();
    let threads = threads.min(1 + work / SPLIT_ABOVE);
    share(threads, split(threads, chain, add, out), |piece| pulp::Arch::new().dispatch(piece));
}

/// Splits the columns of the result, by whole panels, into pieces for these threads. All pieces but the last two have twice their size: each piece
/// reads the stationary operands anew, and the threads are to finish together.
fn split<'a>(
    threads: usize,
    chain: &'a [(Packed<'a>, Packed<'a>)],
    add: bool,
    out: ArrayViewMut2<'a, f32>,
) -> Vec<Share<'a>> {
    let panels = chain.iter().map(|(_, m)| m.layout.columns.div_ceil(m.layout.width)).min().unwrap_or(0);
    let width = chain.first().map_or(1, |(_, m)| m.layout.width);
    let small = if threads > 1 { PIECES * threads } else { 1 };
    let last = small.saturating_sub(2);
    let ends = (2..=last).step_by(2).chain(last + 1..=small);
    let mut rest = out;
    let mut pieces = Vec::new();
    let mut first = 0;
    for end in ends {
        let panels = first..panels * end / small;
        first = panels.end;
        let columns = if end == small { rest.ncols() } else { panels.len() * width };
        let (out, others) = rest.split_at(Axis(1), columns);
        rest = others;
        if !panels.is_empty() {
            pieces.push(Share { chain, panels, add, out });
        }
    }
    pieces
}

/// The block of the result that the inner loop holds in registers on this CPU.
struct Shape {
    /// Rows of the result.
    rows: usize,
    /// Columns of the result.
    width: usize,
}

struct FindShape;

impl pulp::WithSimd for FindShape {
    type Output = Shape;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Shape {
        Shape { rows: if many_registers::<S>() { MANY_ROWS } else { ROWS }, width: WIDTH * S::F32_LANES }
    }
}

#[inline(always)]
fn many_registers<S: Simd>() -> bool {
    S::REGISTER_COUNT >= 32 && !S::IS_SCALAR
}

/// Result rows that the inner loop holds in registers: 5 x 2 sums, 2 operands and a broadcast fit the 16 registers of AVX2, hide the latency
/// of the multiply-adds, and divide 128 with a small remainder.
const ROWS: usize = 5;
/// The same for 32 registers (AVX-512, NEON): divides 128.
const MANY_ROWS: usize = 8;
/// Rows of the operands between two prefetches.
const STEPS: usize = 4;
/// Registers per row.
const WIDTH: usize = 2;

/// The multiplication for one part of the columns, compiled for each instruction set.
struct Share<'a> {
    chain: &'a [(Packed<'a>, Packed<'a>)],
    panels: Range<usize>,
    add: bool,
    out: ArrayViewMut2<'a, f32>,
}

impl pulp::WithSimd for Share<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if many_registers::<S>() { self.run::<S, MANY_ROWS>(simd) } else { self.run::<S, ROWS>(simd) }
    }
}

impl Share<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize>(self, simd: S) {
        let Share { chain, panels, mut add, mut out } = self;
        let width = WIDTH * S::F32_LANES;
        for (at, (stationary, moving)) in chain.iter().enumerate() {
            let (next_stationary, next_moving) = chain.get(at + 1).unwrap_or(&chain[at]);
            let blocks = stationary.layout.columns.div_ceil(R).max(1);
            let mut of_stationary = shares_of(next_stationary.floats, blocks * panels.len());
            for (i, first) in panels.clone().zip((0..out.ncols()).step_by(width)) {
                let panel = moving.panel(i);
                // Each block prefetches its share of the next panel and of the next stationary operand. All at once would stall the first block.
                let next = if i + 1 < panels.end { moving.panel(i + 1) } else { next_moving.panel(panels.start) };
                let mut of_moving = shares_of(next, blocks);
                let columns = width.min(out.ncols() - first);
                for (stationary, out) in stationary.panels().zip(out.axis_chunks_iter_mut(Axis(0), R)) {
                    let ahead = [&mut of_moving, &mut of_stationary].map(|shares| shares.next().unwrap_or(stationary));
                    let sums = inner::<S, R>(simd, stationary, panel, ahead);
                    put(simd, &sums, add, out, first..first + columns);
                }
            }
            add = true;
        }
    }
}

/// Splits what is to be prefetched into this many shares of whole cache lines.
fn shares_of(floats: &[f32], count: usize) -> std::slice::Chunks<'_, f32> {
    floats.chunks(floats.len().div_ceil(count.max(1)).next_multiple_of(LINE).max(LINE))
}

/// Writes or adds a block of sums to these columns of the result, which may have fewer rows.
#[inline(always)]
fn put<S: Simd>(simd: S, sums: &[[S::f32s; WIDTH]], add: bool, mut out: ArrayViewMut2<'_, f32>, columns: Range<usize>) {
    for (mut target, sum) in out.outer_iter_mut().zip(sums) {
        let Some(target) = target.as_slice_mut() else {
            let mut whole = [0.0; 64];
            let part = &mut whole[..columns.len()];
            store(simd, sum, false, part);
            for (j, &x) in columns.clone().zip(part.iter()) {
                target[j] = if add { target[j] + x } else { x };
            }
            continue;
        };
        store(simd, sum, add, &mut target[columns.clone()]);
    }
}

/// `R` rows of sums over all of `k`. Also prefetches `ahead`.
#[inline(always)]
fn inner<S: Simd, const R: usize>(
    simd: S,
    stationary: &[f32],
    panel: &[f32],
    ahead: [&[f32]; 2],
) -> [[S::f32s; WIDTH]; R] {
    let mut sums = [[simd.splat_f32s(0.0); WIDTH]; R];
    let (panel, _) = S::as_simd_f32s(panel);
    let (panel, _) = panel.as_chunks::<WIDTH>();
    let (stationary, _) = stationary.as_chunks::<R>();
    let (panel, last_of_panel) = panel.as_chunks::<STEPS>();
    let (stationary, last_of_stationary) = stationary.as_chunks::<STEPS>();
    // Floats from one prefetch of each slice to the next: at most a line.
    let strides = ahead.map(|slice| slice.len().div_ceil(panel.len().max(1)).min(LINE));
    let mut at = [0; 2];
    for (panel, stationary) in panel.iter().zip(stationary) {
        for ((slice, at), stride) in ahead.iter().zip(&mut at).zip(strides) {
            prefetch_index(slice, *at);
            *at += stride;
        }
        add_products(simd, &mut sums, panel, stationary);
    }
    add_products(simd, &mut sums, last_of_panel, last_of_stationary);
    sums
}

/// Adds the products of some rows of the operands.
#[inline(always)]
fn add_products<S: Simd, const R: usize>(
    simd: S,
    sums: &mut [[S::f32s; WIDTH]; R],
    panel: &[[S::f32s; WIDTH]],
    stationary: &[[f32; R]],
) {
    for (moving, column) in panel.iter().zip(stationary) {
        for (sum, &x) in sums.iter_mut().zip(column) {
            let x = simd.splat_f32s(x);
            for (s, &m) in sum.iter_mut().zip(moving) {
                *s = simd.mul_add_f32s(x, m, *s);
            }
        }
    }
}

/// Writes or adds a row of sums, up to the number of elements.
#[inline(always)]
fn store<S: Simd>(simd: S, sums: &[S::f32s; WIDTH], add: bool, target: &mut [f32]) {
    let (whole, rest) = S::as_mut_simd_f32s(target);
    if let (Some(whole), true) = (whole.first_chunk_mut::<WIDTH>(), rest.is_empty()) {
        for (t, &s) in whole.iter_mut().zip(sums) {
            *t = if add { simd.add_f32s(*t, s) } else { s };
        }
        return;
    }
    let sums = bytemuck::cast_slice::<S::f32s, f32>(sums);
    for (t, &s) in target.iter_mut().zip(sums) {
        *t = if add { *t + s } else { s };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values that need all 24 bits, so that the order of summation is visible.
    fn noise(shape: (usize, usize), seed: u32) -> Array2<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
        Array2::from_shape_simple_fn(shape, || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state as f32 / u32::MAX as f32 - 0.5) * 4.0
        })
    }

    /// The sums by their definition.
    fn reference(stationary: &Array2<f32>, moving: &Array2<f32>, start: Option<&Array2<f32>>) -> Array2<f32> {
        Array2::from_shape_fn((stationary.ncols(), moving.ncols()), |(i, j)| {
            let rows = stationary.column(i).into_iter().zip(moving.column(j));
            let sum = rows.fold(0.0, |sum: f32, (&s, &m)| s.mul_add(m, sum));
            start.map_or(sum, |c| c[[i, j]] + sum)
        })
    }

    fn packed<'a>(side: Side, a: &Array2<f32>, memory: &'a mut Vec<Line>) -> Packed<'a> {
        let layout = Layout::new(side, a.dim());
        let floats = floats_of(memory, layout);
        layout.tasks(floats, 3, |c| columns(a.view(), c)).into_iter().for_each(|(part, view)| part.pack(view));
        layout.packed(floats)
    }

    fn same_bits(a: &Array2<f32>, b: &Array2<f32>) -> bool {
        a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()))
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let s = noise((128, 128), 1);
        let x = noise((128, 500), 2);
        for add in [false, true] {
            let start = noise((128, 500), 3);
            let want = reference(&s, &x, add.then_some(&start));
            for threads in 1..5 {
                let mut out = start.clone();
                multiply_on(threads, s.view(), x.view(), add, out.view_mut());
                assert!(same_bits(&out, &want), "{threads} threads, add {add}");
            }
        }
    }

    #[test]
    fn a_chain_is_its_products_one_after_the_other() {
        for (k, m, n) in [(128, 128, 512), (3, 7, 45), (1, 1, 1), (64, 33, 97)] {
            let operands: Vec<_> = (0..5).map(|i| (noise((k, m), i), noise((k, n), i + 77))).collect();
            let mut memory: Vec<[Vec<Line>; 2]> = vec![Default::default(); operands.len()];
            let chain: Vec<(Packed<'_>, Packed<'_>)> = operands
                .iter()
                .zip(&mut memory)
                .map(|((s, x), [left, right])| (packed(Side::Stationary, s, left), packed(Side::Moving, x, right)))
                .collect();
            for add in [false, true] {
                let start = noise((m, n), 9);
                let want = operands
                    .iter()
                    .enumerate()
                    .fold(start.clone(), |sum, (i, (s, x))| reference(s, x, (add || i > 0).then_some(&sum)));
                for threads in 1..5 {
                    let mut out = start.clone();
                    accumulate_on(threads, &chain, add, out.view_mut());
                    assert!(same_bits(&out, &want), "{k} {m} {n}, {threads} threads, add {add}");
                }
            }
        }
    }

    #[test]
    fn what_a_panel_held_before_does_not_leak() {
        let s = noise((3, 2), 1);
        let mut x = noise((3, 67), 2);
        x.column_mut(66).fill(0.0);
        x.column_mut(0).fill(f32::NAN);
        let out = product(s.view(), x.view());
        assert_eq!(out.column(66).to_vec(), [0.0, 0.0]);
        assert!(out.column(0).iter().all(|x| x.is_nan()));
    }

    #[test]
    fn tfloat32_rounds_to_ten_bits() {
        let ulp = 1.0 / 1024.0;
        assert_eq!(round_tf32(1.0 + ulp / 2.0), 1.0);
        assert_eq!(round_tf32(1.0 + ulp * 1.5), 1.0 + 2.0 * ulp);
        assert_eq!(round_tf32(-1.0 - ulp * 0.51), -1.0 - ulp);
        assert_eq!(round_tf32(f32::MAX), f32::INFINITY);
        assert!(round_tf32(f32::from_bits(0x7F80_0001)).is_nan());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Equals the definition bit for bit, for all shapes and layouts.
        #[test]
        fn is_the_definition(
            k in 1usize..20, m in 1usize..20, n in 1usize..90, add in any::<bool>(), layout in 0u8..8, seed in any::<u32>(),
        ) {
            // The other memory order, by transposing the transpose's copy.
            let other = |a: &Array2<f32>, flip: bool| {
                if flip { a.t().as_standard_layout().into_owned().reversed_axes() } else { a.clone() }
            };
            let s = other(&noise((k, m), seed), layout & 1 != 0);
            let x = other(&noise((k, n), seed ^ 5), layout & 2 != 0);
            let start = noise((m, n), seed ^ 9);
            let mut out = other(&start, layout & 4 != 0);
            multiply(s.view(), x.view(), add, out.view_mut());
            let want = reference(&s, &x, add.then_some(&start));
            prop_assert!(same_bits(&out, &want), "{out} {want}");
        }
    }
}
