//! Infinities and NaNs that arise in matmuls, and in instructions that compute whole tiles.

use ndarray::{Array2, ArrayView2, Axis};
use nki_isa::DType;
use nki_isa::ids::Loc;
use nki_isa::inst::math::extent::{self, INFINITE, NewNonFinite, magnitude};
use nki_isa::inst::values::Feeds;
use nki_isa::inst::{Footprint, Inst};
use nki_isa::program::{Node, NodeKind};
use nki_isa::view::View;
use smallvec::{SmallVec, smallvec};

use super::deferred::Source;
use super::interpreter::Interpreter;
use super::value_findings::ValueSite;
use super::values::{Limit, NonFiniteElement};
use crate::memory::access::Access;

/// A matmul of a chain.
#[derive(Debug)]
pub(super) struct Product<'p> {
    node: &'p Node,
    loops: SmallVec<[(Loc, u32); 2]>,
    operands: [Access; 2],
    /// Where their elements are in memory.
    sources: [Source; 2],
}

/// Maximum number of elements of a result that are checked individually: previous contents of PSUM may make all of them infinite.
const CANDIDATES: usize = 64;

/// The largest magnitude of each column.
fn column_covers(tile: ArrayView2<'_, f32>) -> Vec<u32> {
    let mut cover = vec![0; tile.ncols()];
    for row in tile.outer_iter() {
        match row.to_slice() {
            Some(row) => extent::raise_to(&mut cover, row),
            None => cover.iter_mut().zip(row).for_each(|(c, &x)| *c = (*c).max(magnitude(x))),
        }
    }
    cover
}

/// The element of a column that has the largest magnitude.
fn largest(tile: ArrayView2<'_, f32>, column: usize) -> f32 {
    tile.index_axis(Axis(1), column).iter().copied().max_by_key(|&x| magnitude(x)).unwrap_or(0.0)
}

/// The sum of the products of two columns, in the order of the engine.
fn dot(left: ArrayView2<'_, f32>, m: usize, right: ArrayView2<'_, f32>, n: usize, start: f32) -> f32 {
    let (a, b) = (left.index_axis(Axis(1), m), right.index_axis(Axis(1), n));
    start + a.iter().zip(b).fold(0.0, |sum: f32, (&x, &y)| x.mul_add(y, sum))
}

impl<'p> Interpreter<'p> {
    /// The operands of a matmul whose values are watched, for a later check.
    pub(super) fn watch_product(
        &self,
        to: &Access,
        operands: &[Access; 2],
        sources: &[Source; 2],
    ) -> Option<Product<'p>> {
        let node = self.core.node?;
        let watched = self.values.wants_non_finite(node.loc, self.program.tensor(to.tensor).loc);
        watched.then(|| Product {
            node,
            loops: self.core.loops.iter().copied().collect(),
            operands: operands.clone(),
            sources: sources.clone(),
        })
    }

    /// Checks the results of a chain of matmuls. Their operands are still in memory.
    pub(super) fn inspect_products(&mut self, to: &Access, add: bool, products: &[Product<'_>]) {
        let memory = self.memory_of_products();
        let Some((base, row, _)) = memory.layout(to) else { return };
        let words: Option<&[f32]> = bytemuck::try_cast_slice(memory.storages[to.storage].bytes()).ok();
        let Some(words) = words else { return };
        let line = |m: usize| &words[base + m * row..][..to.per_row];
        if (0..to.rows).all(|m| extent::max_magnitude(line(m)) < INFINITE) {
            return;
        }
        let tile = |source: &Source| {
            let access = &source.access;
            let tile = Array2::from_shape_vec((access.rows, access.per_row), memory.tile(access)).unwrap_or_default();
            if source.transposed { tile.reversed_axes() } else { tile }
        };
        let tiles: Vec<_> = products.iter().map(|p| p.sources.each_ref().map(tile)).collect();
        let mut covers = (vec![0; to.rows], vec![0; to.per_row]);
        for [left, right] in &tiles {
            for (cover, tile) in [(&mut covers.0, left), (&mut covers.1, right)] {
                cover.iter_mut().zip(column_covers(tile.view())).for_each(|(c, m)| *c = (*c).max(m));
            }
        }
        let new = NewNonFinite { limit: INFINITE, arises: true };
        let mut candidates = 0;
        let mut found = None;
        'rows: for m in 0..to.rows {
            for (n, &x) in line(m).iter().enumerate() {
                let cover = covers.0[m].max(covers.1[n]);
                if magnitude(x) < INFINITE || !new.is_new(x, cover) {
                    continue;
                }
                let mut sum = 0.0;
                let last = products.len() - 1;
                let at = tiles.iter().position(|[left, right]| {
                    sum = dot(left.view(), m, right.view(), n, sum);
                    !sum.is_finite()
                });
                candidates += 1;
                match at {
                    Some(k) => found = Some((k, m, n, x, cover)),
                    // The rounding differs, or the previous contents are not finite.
                    None if !add => found = Some((last, m, n, x, cover)),
                    None if candidates < CANDIDATES => continue,
                    None => {}
                }
                break 'rows;
            }
        }
        let Some((k, row, element, value, cover)) = found else { return };
        let (product, [left, right]) = (&products[k], &tiles[k]);
        let operands = smallvec![(0, largest(left.view(), row)), (1, largest(right.view(), element))];
        let at = ValueSite {
            node: product.node,
            loops: &product.loops,
            to: std::slice::from_ref(to),
            from: &product.operands,
        };
        let from_infinite = cover >= INFINITE;
        self.report_non_finite(&at, &NonFiniteElement { row, element, output: 0, value, operands, from_infinite });
    }

    /// Checks a tile before the current instruction writes it, while its operands are in memory.
    pub(super) fn inspect_tile(&mut self, to: &Access, values: &[f32]) {
        let Some(node) = self.core.node else { return };
        let NodeKind::Inst(inst) = &node.kind else { return };
        match Limit::of(to.codec) {
            Limit::Magnitude(limit) if extent::max_magnitude(values) >= limit => {
                self.inspect_excess(node, inst, to, values, limit)
            }
            Limit::Between(low, high) if extent::any_outside(values, low, high) => {
                if let Some(at) = values.iter().position(|&x| x < low || x >= high) {
                    self.report_clipped_tile(node, to, at, values[at]);
                }
            }
            _ => {}
        }
    }

    /// The largest relevant magnitude of an MX operand: that of NaN if it contains infinity or NaN, else 0.
    fn most_of_mx(&mut self, access: &Access) -> u32 {
        let mut bytes = vec![0; access.elements() * access.codec.size()];
        self.memory().gather(access, &mut bytes);
        let special: fn(u8) -> bool = match access.codec.dtype {
            DType::F8E4M3FNX4 => |b| b & 0x7f == 0x7f,
            DType::F8E5M2X4 => |b| b & 0x7c == 0x7c,
            // All 4-bit codes are finite.
            DType::F4E2M1FNX4 => |_| false,
            _ => |scale| scale == 0xff,
        };
        if bytes.iter().any(|&b| special(b)) { u32::MAX } else { 0 }
    }

    fn inspect_excess(&mut self, node: &'p Node, inst: &'p Inst, to: &Access, values: &[f32], limit: u32) {
        if !self.values.wants_non_finite(node.loc, self.program.tensor(to.tensor).loc) {
            return;
        }
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        let facts = inst.values();
        // Operands of MX types: packed elements, and their scales.
        let packed = footprint.reads.iter().any(|v| v.dtype.is_packed());
        let mut views: SmallVec<[&View; 4]> = footprint.reads.clone();
        // An accumulating matmul reads its destination.
        views.extend(footprint.writes.iter().copied().filter(|v| v.tensor == to.tensor));
        let mut from: SmallVec<[Access; 4]> = SmallVec::new();
        let mut cover = vec![0; values.len()];
        let mut every = 0;
        for view in views {
            let Ok(Some(access)) = self.locate(view, nki_isa::names::OobMode::Skip) else { continue };
            if self.deferred.account().find_unwritten(&access).is_some() {
                if view.tensor != to.tensor {
                    // Unwritten elements read as NaN, which may affect any element of the result.
                    return;
                }
                // For example, of an instruction that overwrites its destination.
                continue;
            }
            if packed && access.tensor != to.tensor {
                every = every.max(self.most_of_mx(&access));
                from.push(access);
                continue;
            }
            let tile = self.memory().tile(&access);
            match facts.feeds {
                Feeds::Elements if tile.len() == values.len() => extent::raise_to(&mut cover, &tile),
                Feeds::Columns if to.elements() == access.per_row => {
                    tile.chunks_exact(access.per_row.max(1)).for_each(|row| extent::raise_to(&mut cover, row));
                }
                _ => every = every.max(extent::max_magnitude(&tile)),
            }
            from.push(access);
        }
        for tile in self.contributed.iter().flat_map(|c| &c.tiles) {
            every = tile.iter().fold(every, |most, &bits| most.max(bits & 0x7fff_ffff));
        }
        cover.iter_mut().for_each(|c| *c = (*c).max(every));
        let new = NewNonFinite { limit, arises: facts.arises[0] };
        let Some(at) = extent::first_new_non_finite(values, &cover, new) else { return };
        let (row, element) = (at / to.width().max(1), at % to.width().max(1));
        let from_infinite = cover[at] >= INFINITE;
        let found =
            NonFiniteElement { row, element, output: 0, value: values[at], operands: SmallVec::new(), from_infinite };
        let loops = self.core.loops.clone();
        self.report_non_finite(&ValueSite { node, loops: &loops, to: std::slice::from_ref(to), from: &from }, &found);
    }
}
