//! Fits a program into PSUM: matmuls wait for a bank, and complete results leave PSUM.

use std::collections::BTreeSet;
use std::sync::Arc;

use nki_isa::inst::Action;
use nki_isa::machine::Context;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Arch, Inst, Loc, Program, Space, Tensor, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};

use super::uses::{Uses, each_view, is_whole};
use super::{ChangeKind, Changes, added, has_fixed_order, inst, leaves_values, overflows_of};

/// Alignment of small tiles that share a PSUM bank, as in the placement.
const SHARED: u32 = 32;

/// Makes the live PSUM tiles fit. An instruction whose result finds no free bank waits, together with all instructions that depend on it, until
/// the last read of an earlier tile; independent instructions are issued first. If all wait, the complete result with the furthest next
/// use is copied to SBUF, as are all results of the statement that produced it as soon as they are complete: those that stayed would
/// occupy the banks of later matmuls. Tiles occupy whole banks; if that fails, they share banks. The program is unchanged if
/// both fail, or if its cores wait for each other. If tiles that begin early occupy all banks and nothing can be issued, banks are assigned in
/// program order.
///
/// Evidence: kda's `matmul_v2_b16` accumulates into 16 banks in one loop. Beyond its result and its source's loads it stored 55 MB and read 1309 MB,
/// 24 times these: each matrix was loaded once, so the loop over the 16 was split while all tiles of the other matrix stayed in SBUF.
/// A published report (junjietang.dev, flash-attention-trainium-llm-kernel-generation) has attention `v7` of nki-samples at 400 us for 4,096 columns
/// of scores, which fit into PSUM, and at 6,236 us for 16,384, which do not: 16 times as long, in proportion to the work. With the minimum number of
/// copies, the prediction is 62% too slow, with all of them 14% (and 8% for 4,096 columns).
pub(super) fn fit_psum(program: &mut Program, changes: &mut Changes) {
    if has_fixed_order(program) {
        return;
    }
    let bank = Arch::of(program.target).psum_bank_bytes;
    for (align, policy) in [
        (bank, BankPolicy::Ready),
        (bank, BankPolicy::Program),
        (SHARED, BankPolicy::Ready),
        (SHARED, BankPolicy::Program),
    ] {
        let mut made = Changes::default();
        let Some(fitted) = fitted(program, align, policy, &mut made) else { continue };
        if !overflows_of(&fitted).psum {
            *program = fitted;
            changes.0.append(&mut made.0);
            return;
        }
    }
}

/// The program with its live tiles limited to PSUM's capacity; `None` if all remaining instructions wait for each other.
fn fitted(program: &Program, align: u32, policy: BankPolicy, changes: &mut Changes) -> Option<Program> {
    let mut tensors = program.tensors.clone();
    let mut cores = Vec::new();
    for core in 0..program.cores.len() {
        let mut banks = Banks::new(program, core, (align, policy), &mut tensors, changes);
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

/// The assignment of free banks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BankPolicy {
    /// To the first instruction that is ready.
    Ready,
    /// To the first ready instruction in program order. Otherwise the sums of a later loop could occupy all banks while their summands
    /// wait for one.
    Program,
}

/// The dependences of a waiting instruction.
#[derive(Default)]
struct WaitingTile {
    /// Number of waiting instructions on which it depends.
    blockers: usize,
    dependents: Vec<u32>,
}

/// An access of a waiting instruction to a tensor.
struct Access<'p> {
    at: u32,
    view: &'p View,
    writes: bool,
}

struct Banks<'p> {
    program: &'p Program,
    core: usize,
    align: usize,
    policy: BankPolicy,
    uses: Uses,
    tensors: &'p mut Vec<Tensor>,
    changes: &'p mut Changes,
    /// Whether some instructions leave a value in an engine's accumulators: then all that use accumulators keep their order.
    accumulates: bool,
    /// By position: whether the instruction has been issued to the stream.
    issued: Vec<bool>,
    /// By tensor: uses that have not been issued.
    left: Vec<u32>,
    /// Free bytes of PSUM.
    free: usize,
    /// Tiles in PSUM.
    alive: BTreeSet<TensorId>,
    /// Waiting instructions, by position.
    waiting: FxHashMap<u32, WaitingTile>,
    /// Instructions that wait only for space.
    for_room: BTreeSet<u32>,
    /// Waiting instructions that are the first to use a PSUM tile, if banks are assigned in program order.
    begins: BTreeSet<u32>,
    /// Instructions that no longer wait.
    ready: BTreeSet<u32>,
    /// By tensor: accesses of waiting instructions, in program order.
    pending: FxHashMap<TensorId, Vec<Access<'p>>>,
    /// Waiting instructions that keep their order.
    sequence: BTreeSet<u32>,
    /// The SBUF copy of a result.
    copied: FxHashMap<TensorId, TensorId>,
    /// Statements whose tiles leave PSUM as soon as they are complete.
    leaving: FxHashSet<Loc>,
    stream: Vec<Node>,
}

impl<'p> Banks<'p> {
    fn new(
        program: &'p Program,
        core: usize,
        (align, policy): (u32, BankPolicy),
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
            policy,
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

    /// Whether a tensor occupies PSUM: a PSUM tile of this core that was not copied to SBUF.
    fn in_psum(&self, tensor: TensorId) -> bool {
        let t = self.program.tensor(tensor);
        t.space == Space::Psum && t.core as usize == self.core && !self.copied.contains_key(&tensor)
    }

    fn size(&self, tile: TensorId) -> usize {
        self.program.tensor(tile).bytes().max(1).next_multiple_of(self.align)
    }

    /// Processes the next instruction of the program.
    fn step(&mut self, at: u32) -> Option<()> {
        let blockers = self.blockers(at);
        if blockers.is_empty() && self.take_room(at) {
            self.issue(at)?;
            return self.resume();
        }
        if blockers.is_empty() {
            self.for_room.insert(at);
            self.changes.add(ChangeKind::Delayed, self.node(at).loc, 0);
        }
        self.waiting.insert(at, WaitingTile { blockers: blockers.len(), dependents: Vec::new() });
        for on in blockers {
            self.waiting.get_mut(&on)?.dependents.push(at);
        }
        each_view(self.node(at), &mut |view, writes| {
            self.pending.entry(view.tensor).or_default().push(Access { at, view, writes });
        });
        if self.keeps_order(at) {
            self.sequence.insert(at);
        }
        if self.policy == BankPolicy::Program && self.begins_tile(at) {
            self.begins.insert(at);
        }
        Some(())
    }

    /// The waiting instructions that this one depends on.
    fn blockers(&self, at: u32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        each_view(self.node(at), &mut |view, writes| {
            for access in self.pending.get(&view.tensor).into_iter().flatten().rev() {
                if (writes || access.writes) && access.view.intersects(view) {
                    found.insert(access.at);
                    // This instruction transitively depends on accesses before a write of the same bytes.
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

    /// Whether it is the first use of a PSUM tile.
    fn begins_tile(&self, at: u32) -> bool {
        let mut begins = false;
        each_view(self.node(at), &mut |view, _| {
            begins |= self.in_psum(view.tensor) && self.uses.of_tensor(view.tensor).first().is_some_and(|u| u.at == at);
        });
        begins
    }

    /// Whether it has ordering constraints other than its operands.
    fn keeps_order(&self, at: u32) -> bool {
        inst(self.node(at)).is_some_and(|inst| {
            inst.action() == Action::Sequenced || self.accumulates && inst.values().registers.is_some()
        })
    }

    /// Allocates space for the tiles that an instruction uses first; false if there is too little.
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

    /// Issues the instructions that no longer wait, in program order.
    fn resume(&mut self) -> Option<()> {
        loop {
            if let Some(at) = self.ready.pop_first() {
                if self.take_room(at) {
                    self.issue(at)?;
                } else {
                    self.for_room.insert(at);
                    self.changes.add(ChangeKind::Delayed, self.node(at).loc, 0);
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

    /// Appends an instruction to the stream, and releases its dependents.
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

    /// The next read of a result, if it will only be read from now on.
    fn next_read(&self, tile: TensorId) -> Option<u32> {
        let mut left = self.uses.of_tensor(tile).iter().filter(|u| !self.issued[u.at as usize]);
        let next = left.next()?;
        (!next.writes && left.all(|u| !u.writes) && self.is_written(tile)).then_some(next.at)
    }

    /// Copies a complete result to SBUF: the one with the furthest next use, together with all other complete results of the same
    /// statement. `None` if there is none.
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

    /// Copies those of `tiles` to SBUF that are now complete and belong to a leaving statement.
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

    /// Copies a complete result to SBUF; false if one of its later readers cannot read SBUF.
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
        self.changes.add(ChangeKind::Evicted, tensor.loc, tensor.elements() * tensor.dtype.size());
        self.alive.remove(&bank);
        self.free += self.size(bank);
        self.copied.insert(bank, tile);
        true
    }

    /// Whether an issued instruction has written the whole tile.
    fn is_written(&self, tile: TensorId) -> bool {
        self.uses.of_tensor(tile).iter().filter(|u| u.writes && self.issued[u.at as usize]).any(|u| {
            let mut whole = false;
            each_view(self.node(u.at), &mut |view, writes| {
                whole |= writes && view.tensor == tile && is_whole(view, self.program);
            });
            whole
        })
    }

    /// Whether all remaining readers of a result can read it in SBUF.
    fn can_read(&self, bank: TensorId, tile: TensorId) -> bool {
        let context = Context { arch: Arch::of(self.program.target), tensors: self.tensors };
        let mut left = self.uses.of_tensor(bank).iter().filter(|u| !self.issued[u.at as usize]);
        left.all(|u| {
            let new = inst(self.node(u.at)).and_then(|inst| self.reading_copies(inst, Some((bank, tile))));
            new.is_some_and(|new| new.validate(&context).is_ok())
        })
    }

    /// The instruction, reading the SBUF copies of results that have left PSUM.
    fn renamed(&self, node: &Node) -> Option<Node> {
        let mut moved = false;
        each_view(node, &mut |view, _| moved |= self.copied.contains_key(&view.tensor));
        if !moved {
            return Some(node.clone());
        }
        let inst = self.reading_copies(inst(node)?, None)?;
        Some(Node { kind: NodeKind::Inst(inst), ..node.clone() })
    }

    /// The instruction, reading SBUF copies, including one `more`: a PSUM tile and its copy.
    fn reading_copies(&self, inst: &Inst, more: Option<(TensorId, TensorId)>) -> Option<Inst> {
        inst.with_views(&mut |view| {
            let new = more.filter(|(bank, _)| *bank == view.tensor).map(|(_, tile)| tile);
            if let Some(tile) = new.or_else(|| self.copied.get(&view.tensor).copied()) {
                (view.tensor, view.space) = (tile, Space::Sbuf);
            }
        })
    }
}
