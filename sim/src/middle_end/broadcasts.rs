//! Drops repeated broadcasts of a row.

use nki_isa::inst::{Action, Footprint};
use nki_isa::program::Node;
use nki_isa::view::Dims;
use nki_isa::{Arch, Arg, DType, Imm, Program, Space, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};

use super::reloads::{replace, stays};
use super::room::Room;
use super::uses::{Uses, is_whole};
use super::{ChangeKind, Changes, RESERVED, STAYING, inst};

/// Drops each broadcast of a row over the partitions (ones times the row, and the copies of the products to a tile) that the same line
/// has computed before, if the row has not been written since and the tile is still in use or can be kept: its limit is [`STAYING`], as for a
/// tile that is the same in all iterations of a loop. The readers of the second tile read the first one.
///
/// Evidence: the assignment kernel of flashlib's k-means on trn2 broadcasts the norms of 512 centroids for each 128 points. Each time,
/// hardware takes 1.91 to 1.93 us for 128, 256 and 512 features and for 4096 and 16384 centroids, which is what the vector engine
/// needs for its three passes over 512 elements. The products of the broadcasts would take another 1.46 us of the tensor engine, which needs 0.4 to
/// 1.5 us for the scores. NKIBench's mamba loads its rows in the loop: there, the scalar engine is active for as long as the copies of all
/// broadcasts take (538 us; simulated 533). Fused products with an activation (trainium-kernel-fusion, 512 x 1024 x 2048) load theirs in the loop,
/// too: without their broadcasts they would be predicted 9% and 10% too fast instead of 3% and 5% too slow.
pub(super) fn drop_repeated(program: &mut Program, changes: &mut Changes) {
    for core in 0..program.cores.len() {
        let uses = Uses::of(program, core);
        let found = broadcasts(program, core, &uses);
        if found.len() < 2 {
            continue;
        }
        let mut room = Room::of(program, core, &uses);
        let limit = (f64::from(Arch::of(program.target).sbuf_bytes.saturating_sub(RESERVED)) * STAYING) as i64;
        let mut known: FxHashMap<Key, (u32, TensorId)> = FxHashMap::default();
        let mut instead: FxHashMap<TensorId, TensorId> = FxHashMap::default();
        let mut last: FxHashMap<TensorId, u32> = FxHashMap::default();
        let mut dropped: Vec<u32> = Vec::new();
        for Broadcast { tile, parts } in found {
            let at = parts[0].product;
            let end = uses.of_tensor(tile).last().map_or(at, |u| u.at);
            let key = Key::of(program, core, tile, &parts);
            if let Some(&(before, first)) = known.get(&key)
                && parts.iter().all(|p| !uses.written_between(p.row.tensor, before, p.product))
                && stays(&mut room, program, (first, last[&first]), (tile, parts[0].copy, end), limit)
            {
                let node = &program.cores[core][at as usize];
                changes.add(
                    ChangeKind::DroppedBroadcast,
                    node.loc,
                    program.tensor(tile).elements() * program.tensor(tile).dtype.size(),
                );
                instead.insert(tile, first);
                last.entry(first).and_modify(|l| *l = (*l).max(end));
                dropped.extend(parts.iter().flat_map(|p| [p.product, p.copy]));
                continue;
            }
            last.insert(tile, end);
            known.insert(key, (at, tile));
        }
        dropped.extend(unused(program, core, &uses, &dropped));
        dropped.sort_unstable();
        replace(&mut program.cores[core], &dropped, &instead);
    }
}

/// A tile whose partitions hold the same row.
struct Broadcast {
    tile: TensorId,
    parts: Vec<Part>,
}

/// Columns of the tile: ones times a part of the row, copied from PSUM.
struct Part {
    product: u32,
    copy: u32,
    row: View,
    columns: Columns,
}

/// Partition, offset and dimensions of the columns that a copy writes, and the type of the product.
type Columns = (u32, i64, Dims, DType);

/// What makes two broadcasts equal.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    at: (u32, u32, u32),
    kind: (Vec<u32>, DType),
    parts: Vec<(View, Columns)>,
}

impl Key {
    fn of(program: &Program, core: usize, tile: TensorId, parts: &[Part]) -> Self {
        let (loc, tile) = (program.cores[core][parts[0].product as usize].loc, program.tensor(tile));
        Key {
            at: (loc.file, loc.line, loc.column),
            kind: (tile.shape.to_vec(), tile.dtype),
            parts: parts.iter().map(|p| (p.row.clone(), p.columns.clone())).collect(),
        }
    }
}

/// The broadcasts of a core in program order.
fn broadcasts(program: &Program, core: usize, uses: &Uses) -> Vec<Broadcast> {
    let mut found: Vec<Broadcast> = Vec::new();
    let mut index: FxHashMap<TensorId, usize> = FxHashMap::default();
    for (at, node) in (0..).zip(&program.cores[core]) {
        let Some((tile, part)) = part(program, core, uses, at, node) else { continue };
        let slot = *index.entry(tile).or_insert_with(|| {
            found.push(Broadcast { tile, parts: Vec::new() });
            found.len() - 1
        });
        found[slot].parts.push(part);
    }
    // Nothing else writes the tile.
    found.retain(|b| uses.of_tensor(b.tile).iter().filter(|u| u.writes).count() == b.parts.len());
    found
}

/// The tile and the columns that a matmul of ones and a row fills, by way of one copy.
fn part(program: &Program, core: usize, uses: &Uses, at: u32, node: &Node) -> Option<(TensorId, Part)> {
    let matmul = inst(node)?;
    matmul.accumulation(Arch::of(program.target))?;
    // In transpose mode the bits of the ones move.
    let transposes = matmul.schema().position("is_transpose").is_some_and(|i| matmul.args()[i] != Arg::Bool(false));
    if transposes || node.tag.is_some() {
        return None;
    }
    let mut footprint = Footprint::default();
    matmul.footprint(&mut footprint);
    let ([ones, row], [bank]) = (&footprint.reads[..], &footprint.writes[..]) else { return None };
    let (ones, row, bank) = (*ones, *row, *bank);
    let stream = &program.cores[core];
    let [fill, ..] = uses.of_tensor(ones.tensor) else { return None };
    let constant = is_ones(&stream[fill.at as usize], program) && !uses.written_between(ones.tensor, fill.at, u32::MAX);
    if !constant || ones.dims[0].count != 1 || row.indirect.is_some() || !is_whole(bank, program) {
        return None;
    }
    let [_, read] = uses.of_tensor(bank.tensor) else { return None };
    let copy = &stream[read.at as usize];
    let Action::Copies(dst, src) = inst(copy)?.action() else { return None };
    let copies = src.tensor == bank.tensor && is_whole(src, program) && dst.space == Space::Sbuf;
    let plain = copies && copy.tag.is_none() && dst.indirect.is_none() && dst.dtype == program.tensor(dst.tensor).dtype;
    let columns = (dst.partition, dst.offset, dst.dims.clone(), src.dtype);
    plain.then(|| (dst.tensor, Part { product: at, copy: read.at, row: row.clone(), columns }))
}

/// Whether an instruction fills a whole tile with ones.
fn is_ones(node: &Node, program: &Program) -> bool {
    let mut footprint = Footprint::default();
    inst(node).is_some_and(|fill| {
        fill.footprint(&mut footprint);
        matches!(fill.action(), Action::Fills(Imm::Float(1.0))) && footprint.writes.iter().all(|v| is_whole(v, program))
    })
}

/// The instructions that fill a tile of ones which only dropped matmuls read.
fn unused(program: &Program, core: usize, uses: &Uses, dropped: &[u32]) -> Vec<u32> {
    let gone: FxHashSet<u32> = dropped.iter().copied().collect();
    let stream = &program.cores[core];
    let fills = (0..).zip(stream).filter_map(|(at, node)| {
        let inst = inst(node)?;
        let Action::Fills(_) = inst.action() else { return None };
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        let [_, readers @ ..] = uses.of_tensor(footprint.writes.first()?.tensor) else { return None };
        let only = !readers.is_empty() && readers.iter().all(|u| gone.contains(&u.at));
        (only && node.tag.is_none()).then_some(at)
    });
    fills.collect()
}
