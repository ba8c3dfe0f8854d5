//! Transposing gathers that skip a part of a group of rows (`mixed-skip`).

use nki_diag::Diagnostic;
use nki_isa::ids::Loc;
use nki_isa::inst::Footprint;
use nki_isa::machine::Context;
use nki_isa::work::WorkKind;
use nki_isa::{Arch, Inst, Program};
use rustc_hash::FxHashSet;

use super::walk::{Step, Visitor};
use super::words;
use crate::trace::Resolved;

/// Rows that the DMA transposes at a time. If some of them are skipped and others are not, hardware aborts the transfer (aws-neuron-sdk,
/// issue 1390, on trn2 and trn3).
pub(super) const GROUP: usize = 16;

/// Finds such gathers, one per line.
pub(super) struct Skips<'p> {
    program: &'p Program,
    seen: FxHashSet<Loc>,
    pub(super) list: Vec<Diagnostic>,
}

impl<'p> Skips<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        Skips { program, seen: FxHashSet::default(), list: Vec::new() }
    }
}

impl<'p> Visitor<'p> for Skips<'p> {
    fn instruction(&mut self, step: &Step<'p, '_>, footprint: &Footprint<'p>) {
        let Some(resolved) = step.resolved else { return };
        let indexed = footprint.reads.iter().chain(&footprint.writes).filter(|view| view.indirect.is_some());
        let found = indexed.zip(resolved).find_map(|(view, dynamic)| Some((*view, mixed(dynamic)?)));
        if let Some((view, entries)) = found
            && transposes(self.program, step.inst)
            && self.seen.insert(step.node.loc)
        {
            self.list.push(words::mixed_skip(self.program, step, view, entries));
        }
    }
}

fn transposes(program: &Program, inst: &Inst) -> bool {
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    matches!(inst.work(&context).kind, WorkKind::Dma(dma) if dma.transpose)
}

/// An entry of the index whose row is skipped, and one of the same group whose row is not.
fn mixed(dynamic: &Resolved) -> Option<(usize, usize)> {
    let Resolved::Rows(rows) = dynamic else { return None };
    (0..).step_by(GROUP).zip(rows.chunks(GROUP)).find_map(|(first, group)| {
        let skipped = group.iter().position(Option::is_none)?;
        let moved = group.iter().position(Option::is_some)?;
        Some((first + skipped, first + moved))
    })
}
