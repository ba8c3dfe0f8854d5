//! Drops a load of bytes that a live tile holds.

use nki_isa::inst::Action;
use nki_isa::program::NodeKind;
use nki_isa::{Program, TensorId, View};
use rustc_hash::FxHashMap;

use super::uses::{Uses, is_whole};
use super::{Changes, What, inst, remove};

/// A load that fills a whole tile which nothing else writes.
struct Load {
    at: u32,
    tile: TensorId,
}

/// Drops each load of which an earlier load made a tile of the same kind, if that tile is used at or after the second load and neither the
/// tile nor the source has been written since. The readers of the second tile read the first one.
///
/// Evidence: three kda kernels whose profiles read less than the source loads are those that repeat a load while its tile is alive.
pub(super) fn drop_repeated(program: &mut Program, changes: &mut Changes) {
    for core in 0..program.cores.len() {
        let uses = Uses::of(program, core);
        let mut known: FxHashMap<Key, Load> = FxHashMap::default();
        // By tensor: the tile that replaces it. Found in program order, so that a replacement is never replaced itself.
        let mut instead: FxHashMap<TensorId, TensorId> = FxHashMap::default();
        let mut dropped: Vec<u32> = Vec::new();
        // The last use of a tile, with those of the tiles that it replaces.
        let mut last: FxHashMap<TensorId, u32> = FxHashMap::default();
        for (at, node) in (0..).zip(&program.cores[core]) {
            let Some((key, tile)) = load(program, &uses, at, node) else { continue };
            let end = uses.of_tensor(tile).last().map_or(at, |u| u.at);
            if let Some(first) = known.get(&key)
                && last[&first.tile] >= at
                && !uses.written_between(key.tensor, first.at, at)
            {
                instead.insert(tile, first.tile);
                dropped.push(at);
                changes.add(What::DroppedLoad, node.loc, program.tensor(tile).elements() * key.dtype.size());
                last.entry(first.tile).and_modify(|l| *l = (*l).max(end));
                continue;
            }
            last.insert(tile, end);
            known.insert(key, Load { at, tile });
        }
        if dropped.is_empty() {
            continue;
        }
        remove(&mut program.cores[core], &dropped);
        for node in &mut program.cores[core] {
            let NodeKind::Inst(inst) = &mut node.kind else { continue };
            let mut found = false;
            let changed = inst.with_views(&mut |view| {
                if let Some(tile) = instead.get(&view.tensor) {
                    (view.tensor, found) = (*tile, true);
                }
            });
            if let (true, Some(changed)) = (found, changed) {
                *inst = changed;
            }
        }
    }
}

/// What a load reads and what kind of tile it makes.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    tensor: TensorId,
    dtype: nki_isa::DType,
    offset: i64,
    dims: nki_isa::view::Dims,
    shape: Vec<u32>,
    into: nki_isa::DType,
}

/// The key and the tile of an instruction that loads a whole tile, the only one that writes it.
fn load(program: &Program, uses: &Uses, at: u32, node: &nki_isa::program::Node) -> Option<(Key, TensorId)> {
    let Action::Transfers(copy) = inst(node)?.action() else { return None };
    let (dst, src): (&View, &View) = (copy.dst, copy.src);
    let tile = program.tensor(dst.tensor);
    let plain = src.space.is_hbm() && dst.space.is_on_chip() && src.indirect.is_none() && is_whole(dst, program);
    let only = uses.of_tensor(dst.tensor).iter().all(|u| u.at == at || !u.writes);
    // A name or an order of the kernel would be lost with the instruction.
    if !plain || !only || node.tag.is_some() {
        return None;
    }
    let key = Key {
        tensor: src.tensor,
        dtype: src.dtype,
        offset: src.offset,
        dims: src.dims.clone(),
        shape: tile.shape.to_vec(),
        into: tile.dtype,
    };
    Some((key, dst.tensor))
}
