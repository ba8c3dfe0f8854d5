//! Fits a program into PSUM: matmuls wait for a bank, and results that nothing adds to any more leave PSUM.

use std::collections::BTreeSet;
use std::sync::Arc;

use nki_isa::inst::Action;
use nki_isa::machine::Context;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Arch, Inst, Loc, Program, Space, Tensor, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};

use super::uses::{Uses, each_view, is_whole};
use super::{Changes, What, added, has_fixed_order, inst, leaves_values, overflows_of};

/// Bytes of PSUM that small tiles share, as in the placement.
const SHARED: u32 = 32;

/// Makes the tiles that are in PSUM at one time fit. An instruction whose result finds no bank waits, and with it all that depends on it, until an
/// earlier tile has been read for the last time; instructions that depend on nothing that waits go first. Where all wait, the complete result whose next
/// use is furthest away is copied to SBUF, and all results of the statement that made it are, as soon as they are complete: those that stayed would
/// leave the matmuls after them no bank. Tiles take whole banks, or share them if that does not work out. Leaves the program as it is if
/// neither does, and if its cores wait for each other. If tiles that are begun early take all banks and nothing can go on, banks are given in the
/// order of the program.
///
/// Evidence: kda's `matmul_v2_b16` adds up 16 banks in one loop. It stored 55 MB beside its result and read 1309 MB, these 24 times, beside what its
/// source loads: each matrix was loaded once, so that the loop over the 16 was divided while all tiles of the other matrix stayed in SBUF.
/// A published report (junjietang.dev, flash-attention-trainium-llm-kernel-generation) has attention `v7` of nki-samples at 400 us for 4,096 columns of
/// scores, which fit into PSUM, and at 6,236 us for 16,384, which do not: 16 times as long, as the work is. With only as many copies as it takes to go
/// on, this is predicted 62% too slow, with all of them 14% (and 4,096 columns 8%).
pub(super) fn fit_psum(program: &mut Program, changes: &mut Changes) {
    if has_fixed_order(program) {
        return;
    }
    let bank = Arch::of(program.target).psum_bank_bytes;
    for (align, turns) in
        [(bank, Turns::Ready), (bank, Turns::Program), (SHARED, Turns::Ready), (SHARED, Turns::Program)]
    {
        let mut made = Changes::default();
        let Some(fitted) = fitted(program, align, turns, &mut made) else { continue };
        if !overflows_of(&fitted).psum {
            *program = fitted;
            changes.0.append(&mut made.0);
            return;
        }
    }
}

/// The program with as many tiles in PSUM at one time as there is room for; `None` if all instructions that are left wait for each other.
fn fitted(program: &Program, align: u32, turns: Turns, changes: &mut Changes) -> Option<Program> {
    let mut tensors = program.tensors.clone();
    let mut cores = Vec::new();
    for core in 0..program.cores.len() {
        let mut banks = Banks::new(program, core, (align, turns), &mut tensors, changes);
        for at in 0..program.cores[core].len() as u32 {
            banks.step(at)?;
        }
        while banks.is_waiting() {
            banks.evict()?;
            banks.resume()?;
        }
        cores.push(banks.stream);
    }
    Some(Program { cores, tensors, ..program.clone() })
}

/// Who gets a bank that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turns {
    /// The first that is ready.
    Ready,
    /// The first in the program of those that are ready. The sums of a later loop could otherwise take all banks while what they add up
    /// waits for one.
    Program,
}

/// An instruction that waits.
#[derive(Default)]
struct Waiting {
    /// Instructions before it that wait and that it depends on.
    blockers: usize,
    dependents: Vec<u32>,
}

/// What an instruction that waits does with a tensor.
struct Access<'p> {
    at: u32,
    view: &'p View,
    writes: bool,
}

struct Banks<'p> {
    program: &'p Program,
    core: usize,
    align: usize,
    turns: Turns,
    uses: Uses,
    tensors: &'p mut Vec<Tensor>,
    changes: &'p mut Changes,
    /// Instructions that leave a value in the accumulators of an engine are among them: then all that use accumulators keep their order.
    accumulates: bool,
    /// By position: whether the instruction is in the stream.
    issued: Vec<bool>,
    /// By tensor: uses that are not in the stream yet.
    left: Vec<u32>,
    /// Bytes of PSUM that no tile has.
    free: usize,
    /// Tiles in PSUM.
    alive: BTreeSet<TensorId>,
    /// By position.
    waiting: FxHashMap<u32, Waiting>,
    /// Instructions that wait for nothing but room.
    for_room: BTreeSet<u32>,
    /// Instructions that wait and use a tile in PSUM first, if banks are given in the order of the program.
    begins: BTreeSet<u32>,
    /// Instructions that wait no longer.
    ready: BTreeSet<u32>,
    /// By tensor that instructions write: what those that wait do with it, in program order.
    pending: FxHashMap<TensorId, Vec<Access<'p>>>,
    /// Instructions that wait and keep their order.
    sequence: BTreeSet<u32>,
    /// The tile in SBUF that a result was copied to.
    copied: FxHashMap<TensorId, TensorId>,
    /// Statements whose tiles leave PSUM as soon as they are complete.
    leaving: FxHashSet<Loc>,
    stream: Vec<Node>,
}

impl<'p> Banks<'p> {
    fn new(
        program: &'p Program,
        core: usize,
        (align, turns): (u32, Turns),
        tensors: &'p mut Vec<Tensor>,
        changes: &'p mut Changes,
    ) -> Self {
        let stream = &program.cores[core];
        let uses = Uses::of(program, core);
        let left = (0..program.tensors.len() as u32).map(|id| uses.of_tensor(TensorId(id)).len() as u32).collect();
        let accumulates = stream.iter().filter_map(inst).any(leaves_values);
        Banks {
            program,
            core,
            align: align as usize,
            turns,
            uses,
            tensors,
            changes,
            accumulates,
            issued: vec![false; stream.len()],
            left,
            free: Arch::of(program.target).psum_bytes() as usize,
            alive: BTreeSet::new(),
            waiting: FxHashMap::default(),
            for_room: BTreeSet::new(),
            begins: BTreeSet::new(),
            ready: BTreeSet::new(),
            pending: FxHashMap::default(),
            sequence: BTreeSet::new(),
            copied: FxHashMap::default(),
            leaving: FxHashSet::default(),
            stream: Vec::with_capacity(stream.len()),
        }
    }

    fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn node(&self, at: u32) -> &'p Node {
        &self.program.cores[self.core][at as usize]
    }

    /// Whether a tensor takes room: a tile of this core in PSUM, which was not copied to SBUF.
    fn in_psum(&self, tensor: TensorId) -> bool {
        let t = self.program.tensor(tensor);
        t.space == Space::Psum && t.core as usize == self.core && !self.copied.contains_key(&tensor)
    }

    fn size(&self, tile: TensorId) -> usize {
        self.program.tensor(tile).bytes().max(1).next_multiple_of(self.align)
    }

    /// Takes the next instruction of the program.
    fn step(&mut self, at: u32) -> Option<()> {
        let blockers = self.blockers(at);
        if blockers.is_empty() && self.take_room(at) {
            self.issue(at)?;
            return self.resume();
        }
        if blockers.is_empty() {
            self.for_room.insert(at);
            self.changes.add(What::Delayed, self.node(at).loc, 0);
        }
        self.waiting.insert(at, Waiting { blockers: blockers.len(), dependents: Vec::new() });
        for on in blockers {
            self.waiting.get_mut(&on)?.dependents.push(at);
        }
        each_view(self.node(at), &mut |view, writes| {
            self.pending.entry(view.tensor).or_default().push(Access { at, view, writes });
        });
        if self.keeps_order(at) {
            self.sequence.insert(at);
        }
        if self.turns == Turns::Program && self.begins_tile(at) {
            self.begins.insert(at);
        }
        Some(())
    }

    /// The instructions that wait and that this one has to follow.
    fn blockers(&self, at: u32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        each_view(self.node(at), &mut |view, writes| {
            for access in self.pending.get(&view.tensor).into_iter().flatten().rev() {
                if (writes || access.writes) && access.view.intersects(view) {
                    found.insert(access.at);
                    // What was before a write of the same bytes is before this, too.
                    let same =
                        |a: &View, b: &View| (a.partition, a.offset, a.dtype) == (b.partition, b.offset, b.dtype);
                    if access.writes && same(access.view, view) && access.view.dims == view.dims {
                        break;
                    }
                }
            }
        });
        if self.keeps_order(at) {
            found.extend(self.sequence.last());
        }
        found
    }

    /// Whether it is the first to use a tile in PSUM.
    fn begins_tile(&self, at: u32) -> bool {
        let mut begins = false;
        each_view(self.node(at), &mut |view, _| {
            begins |= self.in_psum(view.tensor) && self.uses.of_tensor(view.tensor).first().is_some_and(|u| u.at == at);
        });
        begins
    }

    /// Whether its place among other instructions matters beside its operands.
    fn keeps_order(&self, at: u32) -> bool {
        inst(self.node(at)).is_some_and(|inst| {
            inst.action() == Action::Sequenced || self.accumulates && inst.values().registers.is_some()
        })
    }

    /// Gives room to the tiles that an instruction uses first; false if there is too little.
    fn take_room(&mut self, at: u32) -> bool {
        let mut new: BTreeSet<TensorId> = BTreeSet::new();
        each_view(self.node(at), &mut |view, _| {
            if self.in_psum(view.tensor) && !self.alive.contains(&view.tensor) {
                new.insert(view.tensor);
            }
        });
        let bytes: usize = new.iter().map(|tile| self.size(*tile)).sum();
        let is_early = bytes > 0 && self.begins.first().is_some_and(|first| *first < at);
        let there = bytes <= self.free && !is_early;
        if there {
            self.free -= bytes;
            self.alive.extend(new);
        }
        there
    }

    /// Adds the instructions that wait no longer, in program order.
    fn resume(&mut self) -> Option<()> {
        loop {
            if let Some(at) = self.ready.pop_first() {
                if self.take_room(at) {
                    self.issue(at)?;
                } else {
                    self.for_room.insert(at);
                    self.changes.add(What::Delayed, self.node(at).loc, 0);
                }
                continue;
            }
            let Some(&at) = self.for_room.first() else { return Some(()) };
            if self.free == 0 || !self.take_room(at) {
                return Some(());
            }
            self.for_room.remove(&at);
            self.issue(at)?;
        }
    }

    /// Adds an instruction to the stream, and releases what waits for it.
    fn issue(&mut self, at: u32) -> Option<()> {
        let node = self.node(at);
        self.stream.push(self.renamed(node)?);
        self.issued[at as usize] = true;
        self.begins.remove(&at);
        let waited = self.waiting.remove(&at);
        let mut used: BTreeSet<TensorId> = BTreeSet::new();
        each_view(node, &mut |view, _| {
            used.insert(view.tensor);
        });
        for &tensor in &used {
            if waited.is_some()
                && let Some(pending) = self.pending.get_mut(&tensor)
            {
                pending.retain(|access| access.at != at);
            }
            self.left[tensor.0 as usize] -= 1;
            if self.left[tensor.0 as usize] == 0 && self.alive.remove(&tensor) {
                self.free += self.size(tensor);
            }
        }
        if !self.leaving.is_empty() {
            self.copy_out_leaving(&used);
        }
        self.sequence.remove(&at);
        for dependent in waited.into_iter().flat_map(|w| w.dependents) {
            let entry = self.waiting.get_mut(&dependent)?;
            entry.blockers -= 1;
            if entry.blockers == 0 {
                self.ready.insert(dependent);
            }
        }
        Some(())
    }

    /// Where a result is read next, if it is only read from now on.
    fn next_read(&self, tile: TensorId) -> Option<u32> {
        let mut left = self.uses.of_tensor(tile).iter().filter(|u| !self.issued[u.at as usize]);
        let next = left.next()?;
        (!next.writes && left.all(|u| !u.writes) && self.is_written(tile)).then_some(next.at)
    }

    /// Copies a result to SBUF that is read only from now on: the one whose next use is furthest away, and with it all others that the same statement
    /// makes. `None` if there is none.
    fn evict(&mut self) -> Option<()> {
        let mut complete: Vec<(u32, TensorId)> =
            self.alive.iter().filter_map(|&tile| Some((self.next_read(tile)?, tile))).collect();
        complete.sort_unstable();
        let &(_, first) = complete.iter().rev().find(|&&(next, bank)| self.copy_out(bank, next))?;
        let loc = self.program.tensor(first).loc;
        self.leaving.insert(loc);
        for (next, bank) in complete {
            if bank != first && self.program.tensor(bank).loc == loc {
                self.copy_out(bank, next);
            }
        }
        Some(())
    }

    /// Copies those of `tiles` to SBUF that are complete now and made by a statement whose tiles leave.
    fn copy_out_leaving(&mut self, tiles: &BTreeSet<TensorId>) {
        for &tile in tiles {
            if self.alive.contains(&tile)
                && self.leaving.contains(&self.program.tensor(tile).loc)
                && let Some(next) = self.next_read(tile)
            {
                self.copy_out(tile, next);
            }
        }
    }

    /// Copies a complete result to SBUF; false if what reads it next, or later, cannot read SBUF.
    fn copy_out(&mut self, bank: TensorId, next: u32) -> bool {
        let mut copy = self.program.tensor(bank).clone();
        copy.space = Space::Sbuf;
        copy.name = Arc::from(format!("{} (in SBUF)", copy.name));
        let tile = TensorId(self.tensors.len() as u32);
        self.tensors.push(copy);
        if !self.can_read(bank, tile) {
            self.tensors.pop();
            return false;
        }
        let whole = |id: TensorId| View::whole(id, &self.tensors[id.0 as usize]);
        let copy = added(Inst::copy(whole(tile), whole(bank)), self.node(next));
        self.stream.push(copy);
        let tensor = self.program.tensor(bank);
        self.changes.add(What::Evicted, tensor.loc, tensor.elements() * tensor.dtype.size());
        self.alive.remove(&bank);
        self.free += self.size(bank);
        self.copied.insert(bank, tile);
        true
    }

    /// Whether one of the instructions so far has written the whole tile.
    fn is_written(&self, tile: TensorId) -> bool {
        self.uses.of_tensor(tile).iter().filter(|u| u.writes && self.issued[u.at as usize]).any(|u| {
            let mut whole = false;
            each_view(self.node(u.at), &mut |view, writes| {
                whole |= writes && view.tensor == tile && is_whole(view, self.program);
            });
            whole
        })
    }

    /// Whether all instructions that read a result from now on may read it in SBUF.
    fn can_read(&self, bank: TensorId, tile: TensorId) -> bool {
        let context = Context { arch: Arch::of(self.program.target), tensors: self.tensors };
        let mut left = self.uses.of_tensor(bank).iter().filter(|u| !self.issued[u.at as usize]);
        left.all(|u| {
            let new = inst(self.node(u.at)).and_then(|inst| self.reading_copies(inst, Some((bank, tile))));
            new.is_some_and(|new| new.validate(&context).is_ok())
        })
    }

    /// The instruction with the copies of results that are no longer in PSUM.
    fn renamed(&self, node: &Node) -> Option<Node> {
        let mut moved = false;
        each_view(node, &mut |view, _| moved |= self.copied.contains_key(&view.tensor));
        if !moved {
            return Some(node.clone());
        }
        let inst = self.reading_copies(inst(node)?, None)?;
        Some(Node { kind: NodeKind::Inst(inst), ..node.clone() })
    }

    /// The instruction with operands in SBUF for results that were copied there, and for one `more`: its tile in PSUM and the copy.
    fn reading_copies(&self, inst: &Inst, more: Option<(TensorId, TensorId)>) -> Option<Inst> {
        inst.with_views(&mut |view| {
            let new = more.filter(|(bank, _)| *bank == view.tensor).map(|(_, tile)| tile);
            if let Some(tile) = new.or_else(|| self.copied.get(&view.tensor).copied()) {
                (view.tensor, view.space) = (tile, Space::Sbuf);
            }
        })
    }
}
