//! Reads of an engine's accumulators before anything sets them, and sums in accumulators that nothing reads.

use std::collections::hash_map::Entry;

use nki_diag::Diagnostic;
use nki_isa::ids::Loc;
use nki_isa::inst::Footprint;
use nki_isa::names::Engine;
use nki_isa::program::{Node, NodeKind, Statements};
use nki_isa::{Program, View};
use rustc_hash::{FxHashMap, FxHashSet};

use super::walk::{Step, Visitor};
use super::words;

/// Tracks the accumulators of all cores.
pub(super) struct Unset<'p> {
    program: &'p Program,
    /// The partitions whose accumulators are set, by core, one bit each.
    set: FxHashMap<(u32, Engine), u128>,
    /// The last instruction that left unspecified values in them.
    spoiled: FxHashMap<(u32, Engine), &'p Node>,
    /// The first instruction that contributed to an unread sum, with the dynamic loops around it.
    unread: FxHashMap<(u32, Engine), Unread<'p>>,
    seen: FxHashSet<Loc>,
    list: Vec<Diagnostic>,
}

/// A sum in accumulators that nothing has read out.
struct Unread<'p> {
    node: &'p Node,
    /// The partitions whose sums have not been read, one bit each.
    partitions: u128,
    loops: Box<[(Loc, u32)]>,
}

impl<'p> Unset<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        Unset {
            program,
            set: FxHashMap::default(),
            spoiled: FxHashMap::default(),
            unread: FxHashMap::default(),
            seen: FxHashSet::default(),
            list: Vec::new(),
        }
    }

    /// All findings. Sums left in the accumulators when the kernel ends are lost.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        let mut rest: Vec<_> = std::mem::take(&mut self.unread).into_iter().collect();
        rest.sort_by_key(|((core, engine), _)| (*core, *engine as u32));
        for (place, unread) in rest {
            self.lost(place, &unread, None);
        }
        self.list
    }

    fn lost(&mut self, (core, engine): (u32, Engine), unread: &Unread<'p>, over: Option<&'p Node>) {
        if self.seen.insert(unread.node.loc) {
            let cores = (core, self.program.cores.len());
            let found = words::lost_sum(self.program, (unread.node, over), &unread.loops, engine, cores);
            self.list.push(found);
        }
    }
}

/// The partitions of a tile, one bit each.
fn partitions(view: &View) -> u128 {
    let count = view.partitions();
    let bits = if count >= u128::BITS { u128::MAX } else { (1 << count) - 1 };
    bits.checked_shl(view.partition).unwrap_or_default()
}

impl<'p> Visitor<'p> for Unset<'p> {
    fn instruction(&mut self, step: &Step<'p, '_>, footprint: &Footprint<'p>) {
        let Some(use_) = step.inst.accumulators() else { return };
        let place = (step.core, use_.engine);
        let own = footprint.writes.first().map_or(u128::MAX, |dst| partitions(dst));
        let set = self.set.get(&place).copied().unwrap_or_default();
        let unset = own & !set;
        if use_.reads && unset != 0 && self.seen.insert(step.node.loc) {
            let cores = (step.core, self.program.cores.len());
            let by = self.spoiled.get(&place).copied();
            let part = (unset != own).then(|| (unset.count_ones(), unset.trailing_zeros()));
            let found =
                words::unset_accumulators(self.program, (step.node, by), step.loops, (use_.engine, part), cores);
            self.list.push(found);
        }
        if use_.resets
            && self.unread.get(&place).is_some_and(|unread| unread.partitions & own != 0)
            && let Some(unread) = self.unread.remove(&place)
        {
            self.lost(place, &unread, Some(step.node));
        }
        if use_.reduces {
            let new = || Unread { node: step.node, partitions: 0, loops: step.loops.into() };
            self.unread.entry(place).or_insert_with(new).partitions |= own;
        }
        if use_.reads_out
            && let Entry::Occupied(mut unread) = self.unread.entry(place)
        {
            unread.get_mut().partitions &= !own;
            if unread.get().partitions == 0 {
                unread.remove();
            }
        }
        if use_.sets {
            self.set.insert(place, set | own);
            self.spoiled.remove(&place);
        }
        if use_.clobbers {
            self.set.remove(&place);
            self.spoiled.insert(place, step.node);
        }
    }
}

/// For a program without a known trace: instructions that read accumulators which no instruction of their core sets without reading them.
/// In every execution, the first such instruction reads unset accumulators.
pub(super) fn never_set(program: &Program) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    let mut seen = FxHashSet::default();
    for (core, stream) in program.cores.iter().enumerate() {
        let all: Vec<_> = Statements::of(stream)
            .iter()
            .filter_map(|s| match &s.node.kind {
                NodeKind::Inst(inst) => Some((s.node, inst.accumulators()?)),
                NodeKind::Control(_) => None,
            })
            .collect();
        let begun: FxHashSet<Engine> = all.iter().filter(|(_, u)| u.sets && !u.reads).map(|(_, u)| u.engine).collect();
        for (node, use_) in all.iter().filter(|(_, u)| u.reads && !begun.contains(&u.engine)) {
            if seen.insert(node.loc) {
                let cores = (core as u32, program.cores.len());
                out.push(words::unset_accumulators(program, (node, None), &[], (use_.engine, None), cores));
            }
        }
    }
    out
}
