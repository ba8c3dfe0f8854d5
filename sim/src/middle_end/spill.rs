//! Fits a program into SBUF: tiles are spilled and loaded again before their next use.

use std::collections::BinaryHeap;
use std::sync::Arc;

use nki_isa::ids::Loc;
use nki_isa::inst::Action;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Arch, Inst, Program, Space, Tensor, TensorId, View};
use rustc_hash::FxHashMap;

use super::uses::{Use, Uses, each_view, is_whole};
use super::{ChangeKind, Changes, RESERVED, STAYING, added, fits, inst};

/// Shares of SBUF for the tiles, tried in this order until the placement succeeds. Smaller shares help against fragmentation,
/// the largest one is for instructions that need it.
const SHARES: [f64; 4] = [STAYING, 0.8, 0.65, 1.0];

/// Alignment of tiles, as in the placement.
const ALIGN: usize = 32;

/// Makes the live SBUF tiles fit. If a tile needs space, the tile with the furthest next use is evicted: a tile that
/// holds unchanged bytes of HBM is dropped and loaded again, others are stored first. The program is unchanged if no
/// share of SBUF succeeds.
///
/// Evidence: NKIBench's matmul reads 9.06 GB although its source loads 1.26 GB, and has no additional stores; bmm stores 12.6 MB beside its result.
pub(super) fn fit_sbuf(program: &mut Program, changes: &mut Changes) {
    let capacity = Arch::of(program.target).sbuf_bytes.saturating_sub(RESERVED) as usize;
    for share in SHARES {
        let mut made = Changes::default();
        let budget = (capacity as f64 * share) as usize;
        let Some(fitted) = fitted(program, budget, &mut made) else { continue };
        if fits(&fitted).is_ok() {
            *program = fitted;
            changes.0.append(&mut made.0);
            return;
        }
    }
}

/// The program with at most `budget` bytes per partition of live tiles; `None` if one instruction needs more.
fn fitted(program: &Program, budget: usize, changes: &mut Changes) -> Option<Program> {
    let mut out = Program { cores: Vec::new(), ..program.clone() };
    for core in 0..program.cores.len() {
        let mut residents = Residents::new(program, core, budget, &mut out.tensors, changes);
        for (at, node) in (0..).zip(&program.cores[core]) {
            residents.step(at, node)?;
        }
        let stream = residents.finish();
        out.cores.push(stream);
    }
    Some(out)
}

/// The source from which an evicted tile is restored.
#[derive(Clone)]
enum Origin {
    /// The load that filled it, if its source does not change as long as it is needed.
    Load(Inst, Loc),
    /// The HBM tensor that it was stored to; valid until the tile is written again.
    Stored(TensorId),
}

/// A tile of the program.
#[derive(Clone, Default)]
struct Tile {
    /// The tensor that currently holds it; `None` while it is not in SBUF.
    tensor: Option<TensorId>,
    /// Whether it has been in SBUF.
    made: bool,
    origin: Option<Origin>,
    /// Number of elements written, at most all: a store must read only written bytes.
    written: usize,
    /// Number of statements of the new stream up to its last write.
    complete: usize,
    /// Index of the next use in its list of uses.
    next: usize,
}

struct Residents<'p> {
    program: &'p Program,
    core: u32,
    budget: usize,
    uses: Uses,
    tensors: &'p mut Vec<Tensor>,
    changes: &'p mut Changes,
    tiles: Vec<Tile>,
    /// Next use and tile, furthest first; entries of tiles that were used since are stale.
    by_next_use: BinaryHeap<(u32, TensorId)>,
    bytes: usize,
    stream: Vec<Node>,
    /// Stores of evicted tiles, with a position in `stream`: as soon as the tile is complete, so that the tile that reuses its
    /// space need not wait for the store.
    stores: Vec<(usize, Node)>,
}

impl<'p> Residents<'p> {
    fn new(
        program: &'p Program,
        core: usize,
        budget: usize,
        tensors: &'p mut Vec<Tensor>,
        changes: &'p mut Changes,
    ) -> Self {
        Residents {
            program,
            core: core as u32,
            budget,
            uses: Uses::of(program, core),
            tensors,
            changes,
            tiles: vec![Tile::default(); program.tensors.len()],
            by_next_use: BinaryHeap::new(),
            bytes: 0,
            stream: Vec::with_capacity(program.cores[core].len()),
            stores: Vec::new(),
        }
    }

    /// The new stream.
    fn finish(mut self) -> Vec<Node> {
        self.stores.sort_by_key(|(behind, _)| *behind);
        let mut stores = self.stores.into_iter().peekable();
        let mut out = Vec::with_capacity(self.stream.len() + stores.len());
        for (at, node) in self.stream.into_iter().enumerate() {
            while let Some((_, store)) = stores.next_if(|(behind, _)| *behind <= at) {
                out.push(store);
            }
            out.push(node);
        }
        out
    }

    fn is_tile(&self, tensor: TensorId) -> bool {
        let tensor = self.program.tensor(tensor);
        tensor.space == Space::Sbuf && tensor.core == self.core
    }

    fn size(&self, tile: TensorId) -> usize {
        self.program.tensor(tile).bytes().max(1).next_multiple_of(ALIGN)
    }

    /// Restores the tiles that the instruction uses, appends it, and releases tiles without later uses.
    fn step(&mut self, at: u32, node: &Node) -> Option<()> {
        let mut used: Vec<TensorId> = Vec::new();
        each_view(node, &mut |view, _| {
            if self.is_tile(view.tensor) && !used.contains(&view.tensor) {
                used.push(view.tensor);
            }
        });
        for &tile in &used {
            self.make_resident(tile, node, &used)?;
        }
        self.stream.push(self.renamed(node)?);
        self.note_writes(at, node);
        for &tile in &used {
            let entry = &mut self.tiles[tile.0 as usize];
            entry.next += 1;
            match self.uses.of_tensor(tile).get(entry.next) {
                Some(next) => self.by_next_use.push((next.at, tile)),
                None => {
                    entry.tensor = None;
                    self.bytes -= self.size(tile);
                }
            }
        }
        Some(())
    }

    /// Makes a tile resident in SBUF.
    fn make_resident(&mut self, tile: TensorId, node: &Node, used: &[TensorId]) -> Option<()> {
        if self.tiles[tile.0 as usize].tensor.is_some() {
            return Some(());
        }
        let size = self.size(tile);
        while self.bytes + size > self.budget {
            self.evict(node, used)?;
        }
        self.bytes += size;
        if !std::mem::replace(&mut self.tiles[tile.0 as usize].made, true) {
            self.tiles[tile.0 as usize].tensor = Some(tile);
            return Some(());
        }
        let mut copy = self.program.tensor(tile).clone();
        copy.loc = node.loc;
        let tensor = self.add_tensor(copy);
        let bytes = self.program.tensor(tile).elements() * self.program.tensor(tile).dtype.size();
        let load = match self.tiles[tile.0 as usize].origin.clone()? {
            Origin::Load(load, loc) => {
                self.changes.add(ChangeKind::Reloaded, loc, bytes);
                load.with_views(&mut |view| {
                    if view.tensor == tile {
                        view.tensor = tensor;
                    }
                })?
            }
            Origin::Stored(hbm) => {
                self.changes.add(ChangeKind::Restored, self.program.tensor(tile).loc, bytes);
                Inst::transfer(
                    View::whole(tensor, &self.tensors[tensor.0 as usize]),
                    View::whole(hbm, &self.tensors[hbm.0 as usize]),
                )
            }
        };
        self.stream.push(added(load, node));
        self.tiles[tile.0 as usize].tensor = Some(tensor);
        Some(())
    }

    /// Evicts the tile with the furthest next use; `None` if the instruction uses all of them.
    fn evict(&mut self, node: &Node, used: &[TensorId]) -> Option<()> {
        let mut kept = Vec::new();
        let found = loop {
            let (at, tile) = self.by_next_use.pop()?;
            let entry = &self.tiles[tile.0 as usize];
            let next = self.uses.of_tensor(tile).get(entry.next).map(|u| u.at);
            if entry.tensor.is_none() || next != Some(at) {
                continue;
            }
            // A store of a partially written tile would read unwritten bytes.
            if used.contains(&tile) || (entry.origin.is_none() && entry.written < self.program.tensor(tile).elements())
            {
                kept.push((at, tile));
                continue;
            }
            break tile;
        };
        self.by_next_use.extend(kept);
        let (index, size) = (found.0 as usize, self.size(found));
        let tensor = self.tiles[index].tensor.take()?;
        if self.tiles[index].origin.is_none() {
            let mut copy = self.program.tensor(found).clone();
            (copy.space, copy.name) = (Space::Hbm, Arc::from(format!("{} (spilled)", copy.name)));
            let hbm = self.add_tensor(copy);
            let all = |id: TensorId| View::whole(id, &self.tensors[id.0 as usize]);
            let store = Inst::transfer(all(hbm), all(tensor));
            let complete = self.tiles[index].complete;
            let writer = complete.checked_sub(1).map_or(node, |at| &self.stream[at]);
            self.stores.push((complete, added(store, writer)));
            let whole = self.program.tensor(found);
            self.changes.add(ChangeKind::Spilled, whole.loc, whole.elements() * whole.dtype.size());
            self.tiles[index].origin = Some(Origin::Stored(hbm));
        }
        self.bytes -= size;
        Some(())
    }

    fn add_tensor(&mut self, tensor: Tensor) -> TensorId {
        self.tensors.push(tensor);
        TensorId(self.tensors.len() as u32 - 1)
    }

    /// The instruction with the tensors that currently hold its tiles.
    fn renamed(&self, node: &Node) -> Option<Node> {
        let mut names: FxHashMap<TensorId, TensorId> = FxHashMap::default();
        each_view(node, &mut |view, _| {
            if let Some(now) = self.tiles[view.tensor.0 as usize].tensor
                && now != view.tensor
            {
                names.insert(view.tensor, now);
            }
        });
        if names.is_empty() {
            return Some(node.clone());
        }
        let inst = inst(node)?.with_views(&mut |view| {
            if let Some(now) = names.get(&view.tensor) {
                view.tensor = *now;
            }
        })?;
        Some(Node { kind: NodeKind::Inst(inst), ..node.clone() })
    }

    /// Records the origin of the tiles that the instruction writes.
    fn note_writes(&mut self, at: u32, node: &Node) {
        let load = inst(node).and_then(|inst| self.repeatable(at, inst));
        let mut written: Vec<(TensorId, usize)> = Vec::new();
        each_view(node, &mut |view, writes| {
            if writes && self.is_tile(view.tensor) {
                written.push((view.tensor, view.elements()));
            }
        });
        for (tile, elements) in written {
            let entry = &mut self.tiles[tile.0 as usize];
            entry.written = entry.written.saturating_add(elements);
            entry.complete = self.stream.len();
            entry.origin = match &load {
                Some(load) if self.program.tensor(tile).space == Space::Sbuf => {
                    Some(Origin::Load(load.clone(), node.loc))
                }
                _ => None,
            };
        }
    }

    /// The instruction, if it loads a whole tile and its source is not written while the tile is used.
    fn repeatable(&self, at: u32, inst: &Inst) -> Option<Inst> {
        let Action::Transfers(copy) = inst.action() else { return None };
        let tile = copy.dst.tensor;
        let last: &Use = self.uses.of_tensor(tile).last()?;
        let constant = !self.uses.written_between(copy.src.tensor, at, last.at + 1);
        // Another core may write it at any time.
        let alone = self.program.cores.len() == 1 || self.program.inputs.iter().any(|i| i.tensor == copy.src.tensor);
        let whole = copy.src.space.is_hbm() && copy.src.indirect.is_none() && is_whole(copy.dst, self.program);
        (constant && alone && whole && self.is_tile(tile)).then(|| inst.clone())
    }
}
