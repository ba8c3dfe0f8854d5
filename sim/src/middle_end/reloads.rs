//! Drops loads of bytes that a live tile holds.

use nki_isa::program::{Node, NodeKind};
use nki_isa::{Arch, Program, TensorId, View};
use rustc_hash::FxHashMap;

use super::room::Room;
use super::uses::{Uses, is_whole};
use super::{ChangeKind, Changes, RESERVED, STAYING, remove, transfer};

/// A load of a whole tile that nothing else writes.
struct Load {
    at: u32,
    tile: TensorId,
}

/// Drops each load whose bytes an earlier load moved to a tile of the same kind, if neither the tile nor the source has been written since and the
/// tile is still in use at the second load or can be kept until then: the data loaded since its last use fits into the compiler's share of
/// SBUF, and together with the tiles alive in between it takes at most half of that, the other half being for the tiles of the next iteration.
/// A tile that the load itself creates (`w = nl.load(...)`), unlike one from a tensor with blocks, is the same in all iterations of the loop: its
/// limit is [`STAYING`]. The readers of the second tile read the first one.
///
/// Evidence: NKIBench's rmsnorm_matmul loads its activations twice and its weights four times, 64 tiles of 512 KiB: hardware read each activation
/// once and 43 tiles of weights, 40 by this rule. Its matmul_add_rmsnorm loads its 16.8 MB of weights, 128 KiB of 192 in each partition, in each of
/// 32 iterations: hardware read 98 MB, 92 by this rule, and 376 if their limit were half of SBUF, too. kda's `matmul_v2_b2` and `_b4`, which
/// iterate over weights that exceed SBUF, read all of them again.
pub(super) fn drop_repeated(program: &mut Program, changes: &mut Changes) {
    for core in 0..program.cores.len() {
        let uses = Uses::of(program, core);
        let mut room = Room::of(program, core, &uses);
        let left = i64::from(Arch::of(program.target).sbuf_bytes.saturating_sub(RESERVED));
        let staying = (left as f64 * STAYING) as i64;
        let loaded = loaded(program, core, &uses);
        let mut known: FxHashMap<Key, Load> = FxHashMap::default();
        // By tensor: the tile that replaces it. Determined in program order, so a replacement is never replaced itself.
        let mut instead: FxHashMap<TensorId, TensorId> = FxHashMap::default();
        let mut dropped: Vec<u32> = Vec::new();
        // The last use of a tile and of the tiles that it replaces.
        let mut last: FxHashMap<TensorId, u32> = FxHashMap::default();
        for (at, node) in (0..).zip(&program.cores[core]) {
            let Some((key, tile)) = load(program, &uses, at, node) else { continue };
            let end = uses.of_tensor(tile).last().map_or(at, |u| u.at);
            let limit = if program.tensor(tile).loc == node.loc { staying } else { left / 2 };
            if let Some(first) = known.get(&key)
                && !uses.written_between(key.tensor, first.at, at)
                && loaded[at as usize] - loaded[last[&first.tile].min(at) as usize] <= left
                && stays(&mut room, program, (first.tile, last[&first.tile]), (tile, at, end), limit)
            {
                instead.insert(tile, first.tile);
                dropped.push(at);
                changes.add(ChangeKind::DroppedLoad, node.loc, program.tensor(tile).elements() * key.dtype.size());
                last.entry(first.tile).and_modify(|l| *l = (*l).max(end));
                continue;
            }
            last.insert(tile, end);
            known.insert(key, Load { at, tile });
        }
        replace(&mut program.cores[core], &dropped, &instead);
    }
}

/// Drops loads, and redirects the readers of their tiles.
pub(super) fn replace(stream: &mut Vec<Node>, dropped: &[u32], instead: &FxHashMap<TensorId, TensorId>) {
    if dropped.is_empty() {
        return;
    }
    remove(stream, dropped);
    for node in stream {
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

/// By position: bytes per partition of the tiles loaded before it.
fn loaded(program: &Program, core: usize, uses: &Uses) -> Vec<i64> {
    let mut sum = 0;
    let before = (0..).zip(&program.cores[core]).map(|(at, node)| {
        let bytes = load(program, uses, at, node).map_or(0, |(_, tile)| program.tensor(tile).bytes() as i64);
        sum += bytes;
        sum - bytes
    });
    before.collect()
}

/// Whether `tile` can stay from its last use until the end of the last use of `other`, which it replaces and which is loaded at a later position.
/// If so, records the longer lifetime.
pub(super) fn stays(
    room: &mut Room,
    program: &Program,
    tile: (TensorId, u32),
    other: (TensorId, u32, u32),
    limit: i64,
) -> bool {
    let ((tile, last), (other, at, end)) = (tile, other);
    let (bytes, saved) = (program.tensor(tile).bytes() as i64, program.tensor(other).bytes() as i64);
    if last < at && room.most(last + 1, at) + bytes > limit {
        return false;
    }
    room.change(at, end + 1, -saved);
    room.change(last + 1, end + 1, bytes);
    true
}

/// The source of a load and the kind of its tile.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) tensor: TensorId,
    pub(super) dtype: nki_isa::DType,
    offset: i64,
    dims: nki_isa::view::Dims,
    shape: Vec<u32>,
    into: nki_isa::DType,
}

/// The key and the tile of an instruction that loads a whole tile, the only one that writes it.
pub(super) fn load(program: &Program, uses: &Uses, at: u32, node: &Node) -> Option<(Key, TensorId)> {
    let copy = transfer(node)?;
    let (dst, src): (&View, &View) = (copy.dst, copy.src);
    let tile = program.tensor(dst.tensor);
    let plain = src.space.is_hbm() && dst.space.is_on_chip() && src.indirect.is_none() && is_whole(dst, program);
    let only = uses.of_tensor(dst.tensor).iter().all(|u| u.at == at || !u.writes);
    // Dropping the instruction would lose its name or ordering constraints.
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
