//! Accumulators of an engine that go into a result before anything has set them.

use nki_diag::Diagnostic;
use nki_isa::ids::Loc;
use nki_isa::inst::Footprint;
use nki_isa::names::Engine;
use nki_isa::program::{Node, NodeKind, statements};
use nki_isa::{Program, View};
use rustc_hash::{FxHashMap, FxHashSet};

use super::walk::{Step, Visitor};
use super::words;

/// Watches the accumulators of all cores.
pub(super) struct Unset<'p> {
    program: &'p Program,
    /// The partitions whose accumulators are set, by core, one bit each.
    set: FxHashMap<(u32, Engine), u128>,
    /// The instruction that may have left anything in them since.
    spoiled: FxHashMap<(u32, Engine), &'p Node>,
    seen: FxHashSet<Loc>,
    pub(super) list: Vec<Diagnostic>,
}

impl<'p> Unset<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        Unset {
            program,
            set: FxHashMap::default(),
            spoiled: FxHashMap::default(),
            seen: FxHashSet::default(),
            list: Vec::new(),
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
        if use_.sets {
            self.set.insert(place, set | own);
            self.spoiled.remove(&place);
        }
        if use_.spoils {
            self.set.remove(&place);
            self.spoiled.insert(place, step.node);
        }
    }
}

/// Of a program whose trace is unknown: instructions that read accumulators which no instruction of their core sets without reading them. Whatever is
/// executed, the first such instruction reads what nothing has set.
pub(super) fn never_set(program: &Program) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    let mut seen = FxHashSet::default();
    for (core, stream) in program.cores.iter().enumerate() {
        let all: Vec<_> = statements(stream)
            .into_iter()
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
