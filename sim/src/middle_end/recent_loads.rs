//! Drops loads of recently loaded bytes, as the current compiler does.

use nki_isa::inst::Transfer;
use nki_isa::{Arch, Program, Space, Tensor, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::reloads::{Key, load, replace, stays};
use super::room::Room;
use super::uses::{Uses, each_view};
use super::{ChangeKind, Changes, has_one_partition, transfer};

/// Drops each repeated load of a two-dimensional tile: the same bytes into a tile of the same kind, neither written since, and with at
/// most half of SBUF loaded per partition since, dropped loads included. The readers of the second tile read the first
/// one. The distance counts from the last executed load of these bytes: a tile that every iteration loads is loaded again from time
/// to time.
///
/// A load of a tile of one partition from an argument or a result is a barrier: earlier loads are not reused after it. A store of such a tile is
/// none: a convolution of neuron-agentic-development (`conv2d_scaling_min`, `v1`) executes 16 of 72 loads of its weights, with 496 stores of rows in between.
///
/// Evidence: the transfers in public profiles of trn2, against those in the source (in parentheses: by this rule). The tiled matmul of the tutorial,
/// 2048 rows: 1600 of 2112 (1600). nki-moe-megakernel: attention prefill `v4a` 950 of 1990 (950), `v3a` 938 of 2190 (1130), `v0` 1946 of 4136 (2028),
/// decode `v1` 404 of 572 (404); `v0`, `v2` and `v3` of decode execute all but 6 to 14 of 684 to 1068, and these are the ones with transfers of one
/// partition. The loads of the blocked matmuls go to parts of three-dimensional tensors: all of 400 to 1584 are executed, though they repeat after 36
/// to 44 KiB. The tutorial with hoisted loads repeats after 136 KiB, and executes all. Limits from 93 to 119 KiB explain the first three.
///
/// Returns the changed program; `None` if nothing is dropped.
pub(super) fn drop_near(program: &Program, changes: &mut Changes) -> Option<Program> {
    if !repeats(program) {
        return None;
    }
    let mut left = program.clone();
    drop_repeated(&mut left, changes);
    (!changes.0.is_empty()).then_some(left)
}

fn drop_repeated(program: &mut Program, changes: &mut Changes) {
    let visible = program.visible();
    for core in 0..program.cores.len() {
        let uses = Uses::of(program, core);
        let mut room = Room::of(program, core, &uses);
        let sbuf = i64::from(Arch::of(program.target).sbuf_bytes);
        let others = written_by_others(program, core);
        let mut loaded = 0;
        let mut known: FxHashMap<Key, Known> = FxHashMap::default();
        let mut instead: FxHashMap<TensorId, TensorId> = FxHashMap::default();
        let mut dropped: Vec<u32> = Vec::new();
        for (at, node) in (0..).zip(&program.cores[core]) {
            let Some(transfer) = transfer(node) else { continue };
            if loads_row_of_argument(&transfer, &visible, &program.tensors) {
                known.clear();
            }
            let before = loaded;
            loaded += bytes_of_load(&transfer);
            let Some((key, tile)) = load(program, &uses, at, node) else { continue };
            let kind = program.tensor(tile);
            let end = uses.of_tensor(tile).last().map_or(at, |u| u.at);
            // Dropping the load would lose the finding that its tile is never read.
            if kind.shape.len() != 2 || others.contains(&key.tensor) || end == at {
                continue;
            }
            if let Some(first) = known.get_mut(&key)
                && !uses.written_between(key.tensor, first.at, at)
                && before - first.loaded <= sbuf / 2
                && stays(&mut room, program, (first.tile, first.last), (tile, at, end), sbuf)
            {
                first.last = first.last.max(end);
                instead.insert(tile, first.tile);
                dropped.push(at);
                changes.add(ChangeKind::DroppedLoad, node.loc, kind.elements() * key.dtype.size());
            } else {
                known.insert(key, Known { at, loaded: before, tile, last: end });
            }
        }
        replace(&mut program.cores[core], &dropped, &instead);
    }
}

/// Whether any load of the program is repeated, at any distance: a quick test before the program is copied.
fn repeats(program: &Program) -> bool {
    program.cores.iter().any(|stream| {
        let mut seen = FxHashSet::default();
        stream.iter().filter_map(transfer).any(|t| bytes_of_load(&t) > 0 && !seen.insert(t.src))
    })
}

/// The tensors that the other cores write, at unknown times.
fn written_by_others(program: &Program, core: usize) -> FxHashSet<TensorId> {
    let mut written = FxHashSet::default();
    let others = program.cores.iter().enumerate().filter(|(other, _)| *other != core);
    for node in others.flat_map(|(_, stream)| stream) {
        each_view(node, &mut |view, writes| {
            if writes {
                written.insert(view.tensor);
            }
        });
    }
    written
}

/// An executed load.
struct Known {
    at: u32,
    /// Bytes per partition loaded before it.
    loaded: i64,
    tile: TensorId,
    /// The last use of its tile and of the tiles that it replaces.
    last: u32,
}

/// Bytes loaded into each partition of SBUF; 0 if the transfer is not a load.
fn bytes_of_load(transfer: &Transfer<'_>) -> i64 {
    let (dst, src) = (transfer.dst, transfer.src);
    if dst.space != Space::Sbuf || !src.space.is_hbm() {
        return 0;
    }
    (dst.free_elements() * dst.dtype.size()) as i64
}

/// Whether the transfer loads a tile of one partition from an argument or a result.
fn loads_row_of_argument(transfer: &Transfer<'_>, visible: &[bool], tensors: &[Tensor]) -> bool {
    let (dst, src) = (transfer.dst, transfer.src);
    let loads = src.space.is_hbm() && dst.space == Space::Sbuf;
    loads && has_one_partition(dst, tensors) && visible[src.tensor.0 as usize]
}
