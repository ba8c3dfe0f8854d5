//! Merges the operations of loop iterations on adjacent tiles: copies out of PSUM, and transfers.

use std::collections::BTreeMap;

use nki_isa::ids::Loc;
use nki_isa::inst::Action;
use nki_isa::machine::Context;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Arch, Dim, Inst, Program, Space, TensorId, View};
use rustc_hash::FxHashMap;

use super::uses::{Uses, each_view, is_whole};
use super::{ChangeKind, Changes, fits, has_fixed_order, hbm_and_tile, inst, remove, transfer};

/// Maximum bytes of a merged transfer. Evidence: see [`merge_transfers`].
const MOST_BYTES: usize = 512 << 10;

/// Merges the copies by which a line, in successive iterations, writes whole PSUM tiles to adjacent columns of one SBUF tile, as far as the PSUM
/// tiles fit into one bank, which they then share. The merged copy replaces the last one. No instruction in between uses the written
/// columns, and none writes a PSUM tile after its copy.
///
/// Evidence: in all eight public profiles of attention on trn2 groups of four transposes of 128 columns share a bank (fp32), and one copy of
/// 512 columns moves each group out, with or without type conversion: 5 copies instead of the 24 in the fused kernel's source for S = 512.
pub(super) fn merge_evictions(program: &mut Program, changes: &mut Changes) {
    merge(program, changes, ChangeKind::MergedCopy, |program, uses, at, node| {
        let Action::Copies(dst, src) = inst(node)?.action() else { return None };
        let bank = Arch::of(program.target).psum_bank_bytes as usize;
        let evicts = src.space == Space::Psum && dst.space == Space::Sbuf && is_row(dst) && dst.indirect.is_none();
        let tile = Part { at, tile: src.tensor, other: dst.clone(), most: bank, last: true };
        (evicts && is_whole(src, program) && !uses.written_between(src.tensor, at, u32::MAX)).then_some(tile)
    });
}

/// Merges the loads by which a line reads successive rows of a tensor in HBM into whole tiles, and stores of such tiles, up to 512 KiB
/// together. Vectors, with one element per partition, are not merged. The tiles become one. A merged load replaces the first
/// one, a merged store the last; no instruction in between has conflicting accesses to the bytes in HBM.
///
/// Evidence: the public profiles of attention on trn2. Stores of 64 KiB are merged by four or eight, loads and stores of 256 KiB by two, those of
/// 512 KiB are not. CS149's addition on trn1 takes 53 us for 300 transfers of tiles of two columns (0.14 us each), and 206 for 600 of one (0.33 us).
pub(super) fn merge_transfers(program: &mut Program, changes: &mut Changes) {
    // If the cores synchronise, another one may use the bytes in between.
    if program.cores.len() > 1 && has_fixed_order(program) {
        return;
    }
    merge(program, changes, ChangeKind::MergedTransfer, |program, uses, at, node| {
        let transfer = transfer(node)?;
        let (hbm, tile) = hbm_and_tile(&transfer)?;
        let loads = transfer.src.space.is_hbm();
        let most = MOST_BYTES / tile.partitions().max(1) as usize;
        let rows = hbm.indirect.is_none() && tile.free_elements() > 1;
        // The first dimension of the rows is the partition dimension: the data after it belongs to the next tile.
        let along = hbm.dims.len() >= 2 && hbm.dims[0].count == tile.partitions();
        let once = match loads {
            true => uses.of_tensor(tile.tensor).iter().all(|u| u.at == at || !u.writes && u.at > at),
            false => !uses.written_between(tile.tensor, at, u32::MAX),
        };
        let part = Part { at, tile: tile.tensor, other: hbm.clone(), most, last: !loads };
        (rows && along && once && is_whole(tile, program)).then_some(part)
    });
}

/// A candidate for merging.
struct Part {
    at: u32,
    /// The tile that becomes part of a merged tile.
    tile: TensorId,
    /// The operand that is adjacent to the next part's.
    other: View,
    /// Maximum total bytes per partition of the tiles.
    most: usize,
    /// Whether the merged instruction replaces the last part rather than the first.
    last: bool,
}

/// Whether the elements of each partition are one run.
fn is_row(view: &View) -> bool {
    let free = View::merged(view.free_dims());
    free.len() == 1 && free[0].stride == 1 && view.dims[0].stride == 1
}

/// Distance of a part from the next one: the columns of a tile, or the rows of a tensor in HBM.
fn step(other: &View) -> i64 {
    let dim = other.dims[0];
    if other.space.is_on_chip() { other.free_elements() as i64 } else { dim.stride * i64::from(dim.count) }
}

/// Merges the parts that `part` selects, if the program then fits into memory: a merged tile leaves SBUF as a whole.
fn merge(
    program: &mut Program,
    changes: &mut Changes,
    what: ChangeKind,
    part: impl Fn(&Program, &Uses, u32, &Node) -> Option<Part>,
) {
    let mut changed = program.clone();
    let mut made = Changes::default();
    for core in 0..program.cores.len() {
        let uses = Uses::of(&changed, core);
        let groups = groups(&changed, core, &uses, &part);
        let mut joined = Joined::default();
        for group in &groups {
            joined.merge(&mut changed, core, &uses, group, (&mut made, what));
        }
        joined.apply(&mut changed, core);
    }
    if made.0.is_empty() {
        return;
    }
    if fits(&changed).is_ok() {
        *program = changed;
        changes.0.append(&mut made.0);
    }
}

/// Runs of at least two mergeable instructions, in the order of their last ones.
fn groups(
    program: &Program,
    core: usize,
    uses: &Uses,
    part: &impl Fn(&Program, &Uses, u32, &Node) -> Option<Part>,
) -> Vec<Vec<Part>> {
    let mut found: Vec<Vec<Part>> = Vec::new();
    // By line: the run that the next instruction may extend.
    let mut open: BTreeMap<(u32, u32, u32), Vec<Part>> = BTreeMap::new();
    for (at, node) in (0..).zip(&program.cores[core]) {
        let Some(next) = part(program, uses, at, node).filter(|_| node.tag.is_none()) else { continue };
        let Loc { file, line, column, .. } = node.loc;
        let run = open.entry((file, line, column)).or_default();
        if !continues(program, core, uses, run, &next) {
            found.extend(Some(std::mem::take(run)).filter(|run| run.len() > 1));
        }
        run.push(next);
    }
    found.extend(open.into_values().filter(|run| run.len() > 1));
    found
}

/// Whether an instruction extends a run.
fn continues(program: &Program, core: usize, uses: &Uses, run: &[Part], next: &Part) -> bool {
    let Some(previous) = run.last() else { return true };
    let stream = &program.cores[core];
    let (first, other) = (&run[0], &previous.other);
    let (old, new) = (program.tensor(first.tile), program.tensor(next.tile));
    let alike = (&old.shape, old.dtype) == (&new.shape, new.dtype) && old.data.is_none() && new.data.is_none();
    let adjacent = View { offset: other.offset + step(other), ..other.clone() } == next.other;
    let fits = (run.len() + 1) * new.bytes() <= next.most;
    if !(alike && adjacent && fits) || run.iter().any(|p| p.tile == next.tile) {
        return false;
    }
    let (Some(a), Some(b)) = (inst(&stream[first.at as usize]), inst(&stream[next.at as usize])) else { return false };
    // The instructions must be equal except for their tiles and positions.
    let same = b.with_views(&mut |view| match view.tensor == next.tile {
        true => view.tensor = first.tile,
        false => view.offset = first.other.offset,
    });
    if same.as_ref() != Some(a) {
        return false;
    }
    // The access that moves across the instructions in between: previous parts move down, or the next one moves up.
    let (from, moved) = match next.last {
        true => (previous.at, extended(&first.other, run.len() as u32)),
        false => (first.at, next.other.clone()),
    };
    let between = uses.between(next.other.tensor, from, next.at).iter().filter(|u| next.last || u.writes);
    !between.filter(|u| run.binary_search_by_key(&u.at, |p| p.at).is_err()).any(|u| {
        let mut disturbs = false;
        each_view(&stream[u.at as usize], &mut |view, writes| {
            disturbs |= (next.last || writes) && view.tensor == moved.tensor && view.intersects(&moved);
        });
        disturbs
    })
}

/// The operand extended to `count` parts, in the element order of the merged tile.
fn extended(other: &View, count: u32) -> View {
    let mut out = other.clone();
    if other.space.is_on_chip() {
        out.dims.truncate(1);
        out.dims.push(Dim { stride: 1, count: count * other.free_elements() as u32 });
    } else {
        out.dims.insert(1, Dim { stride: step(other), count });
    }
    out
}

/// Tiles merged into others, and the resulting changes of a stream.
#[derive(Default)]
struct Joined {
    /// By tile: the merged tile, and the start within it, in bytes of a partition.
    parts: FxHashMap<TensorId, (TensorId, usize)>,
    /// By position.
    replaced: BTreeMap<u32, Inst>,
    dropped: Vec<u32>,
}

impl Joined {
    /// Merges the tiles of a run, if every instruction that uses one of them can use a part of the new tile.
    fn merge(
        &mut self,
        program: &mut Program,
        core: usize,
        uses: &Uses,
        run: &[Part],
        changes: (&mut Changes, ChangeKind),
    ) {
        let stays = run.last().filter(|p| p.last).unwrap_or(&run[0]);
        let first = program.tensor(run[0].tile).clone();
        let bytes = first.bytes();
        let tiles: Vec<TensorId> = run.iter().map(|p| p.tile).collect();
        let Some(whole) = self.whole(program, &tiles) else { return };
        let old = self.parts.clone();
        self.parts.extend(run.iter().enumerate().map(|(i, p)| (p.tile, (whole, i * bytes))));
        let merged = inst(&program.cores[core][stays.at as usize]).and_then(|inst| {
            inst.with_views(&mut |view| {
                *view = match view.tensor == stays.tile {
                    true => View::whole(whole, program.tensor(whole)),
                    false => extended(&run[0].other, run.len() as u32),
                }
            })
        });
        let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
        let valid = |inst: &Inst| inst.validate(&context).is_ok();
        let users = run.iter().flat_map(|p| uses.of_tensor(p.tile)).filter(|u| run.iter().all(|p| p.at != u.at));
        let allowed = users.clone().all(|u| {
            let changed = inst(&program.cores[core][u.at as usize]).and_then(|inst| self.renamed(inst));
            changed.as_ref().is_some_and(valid)
        });
        let Some(merged) = merged.filter(|inst| allowed && valid(inst)) else {
            self.parts = old;
            return;
        };
        self.replaced.insert(stays.at, merged);
        self.dropped.extend(run.iter().map(|p| p.at).filter(|at| *at != stays.at));
        let loc = program.cores[core][stays.at as usize].loc;
        changes.0.add_many(changes.1, loc, run.len() - 1, run.len() * bytes * first.shape[0] as usize);
    }

    /// The merged tile of these tiles: a new one, or that of another run. `None` if some are part of a different tile.
    fn whole(&self, program: &mut Program, tiles: &[TensorId]) -> Option<TensorId> {
        let first = program.tensor(tiles[0]);
        let bytes = first.bytes();
        if let Some((whole, 0)) = self.parts.get(&tiles[0]) {
            let same = tiles.iter().enumerate().all(|(i, t)| self.parts.get(t) == Some(&(*whole, i * bytes)));
            return (same && program.tensor(*whole).bytes() == tiles.len() * bytes).then_some(*whole);
        }
        if tiles.iter().any(|t| self.parts.contains_key(t)) {
            return None;
        }
        let mut tensor = first.clone();
        tensor.shape.truncate(1);
        tensor.shape.push((tiles.len() * bytes / first.dtype.size()) as u32);
        program.tensors.push(tensor);
        Some(TensorId(program.tensors.len() as u32 - 1))
    }

    /// The instruction with parts in place of the tiles; `None` if a part does not start at an element boundary of a view.
    fn renamed(&self, inst: &Inst) -> Option<Inst> {
        let mut whole = true;
        let new = inst.with_views(&mut |view| {
            if let Some((tile, begin)) = self.parts.get(&view.tensor) {
                whole &= begin.is_multiple_of(view.dtype.size()) && view.indirect.is_none();
                view.tensor = *tile;
                view.offset += (begin / view.dtype.size()) as i64;
            }
        });
        new.filter(|_| whole)
    }

    /// Changes the stream.
    fn apply(mut self, program: &mut Program, core: usize) {
        let mut stream = std::mem::take(&mut program.cores[core]);
        for (at, node) in (0..).zip(&mut stream) {
            if let Some(merged) = self.replaced.remove(&at) {
                node.kind = NodeKind::Inst(merged);
                continue;
            }
            let mut moved = false;
            each_view(node, &mut |view, _| moved |= self.parts.contains_key(&view.tensor));
            if moved && let Some(new) = inst(node).and_then(|inst| self.renamed(inst)) {
                node.kind = NodeKind::Inst(new);
            }
        }
        self.dropped.sort_unstable();
        remove(&mut stream, &self.dropped);
        program.cores[core] = stream;
    }
}
