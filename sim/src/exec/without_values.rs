//! The findings of a run that need no values, from the trace alone: reads of unwritten bytes, or of bytes overwritten through another
//! tensor, outputs that nothing writes, races.
//!
//! The same accounting as in a run, without bytes, and the same reporting functions. Findings that depend on values are left out: a write by one
//! core over bytes that the other has read or written may leave them unchanged, which is not a race, so the only races reported are reads of
//! bytes that the other core writes.

use nki_diag::Diagnostic;
use nki_isa::inst::Footprint;
use nki_isa::program::Statements;
use nki_isa::{Program, TensorId, View};

use super::findings::{Findings, Place};
use super::interpreter::by_last_use;
use super::loop_local::LoopLocalTensors;
use super::races::Races;
use super::unlinked::Unlinked;
use crate::deps::Hazard;
use crate::lint::walk::{Step, Visitor, walk};
use crate::memory::Memory;
use crate::memory::access::{Shift, Unwritten};
use crate::place::Placement;
use crate::trace::{NodeIndex, Resolved, Trace};

/// The findings of a run that need no values. `trace` is that of the whole program.
pub(crate) fn without_values(program: &Program, placement: &Placement, trace: &Trace) -> Vec<Diagnostic> {
    let mut account = Account {
        program,
        memory: Memory::without_data(program, placement),
        findings: Findings::starting_with(&placement.over_capacity),
        races: Races::new(program),
        unlinked: Unlinked::new(program),
        cores: program
            .cores
            .iter()
            .enumerate()
            .map(|(core, stream)| {
                let dying = by_last_use(program, placement, core as u32);
                Core { dying, dead: 0, loop_local: LoopLocalTensors::new(program, &Statements::of(stream)) }
            })
            .collect(),
    };
    walk(program, trace, &mut account);
    account.findings.outputs(&mut account.memory, program);
    account.findings.uneven_trips(program, trace);
    account.findings.list
}

/// The outputs that no instruction of the program writes: their elements are unwritten in every execution.
pub(crate) fn never_written(program: &Program) -> Vec<Diagnostic> {
    let written = crate::deps::written_tensors(program);
    let mut findings = Findings::default();
    for (i, output) in program.outputs.iter().enumerate() {
        let tensor = output.tensor;
        let is_input = program.inputs.iter().any(|i| i.tensor == tensor);
        let again = program.outputs[..i].iter().any(|o| o.tensor == tensor);
        let t = program.tensor(tensor);
        if !is_input && !again && t.data.is_none() && written.get(tensor.0 as usize) == Some(&false) {
            let all = Unwritten { elements: t.elements(), row: 0, element: 0 };
            findings.unwritten_output(program, &output.name, tensor, all);
        }
    }
    findings.list
}

/// The memories of a run without their bytes.
struct Account<'p> {
    program: &'p Program,
    memory: Memory<'p>,
    findings: Findings,
    races: Races<'p>,
    unlinked: Unlinked<'p>,
    cores: Vec<Core>,
}

/// See [`super::interpreter::CoreState`].
struct Core {
    dying: Vec<(u32, TensorId)>,
    dead: usize,
    loop_local: LoopLocalTensors,
}

impl<'p> Account<'p> {
    fn release_before(&mut self, core: u32, at: NodeIndex) {
        let core = &mut self.cores[core as usize];
        while let Some(&(last, tensor)) = core.dying.get(core.dead)
            && last < at.0
        {
            self.memory.release(tensor);
            core.dead += 1;
        }
    }

    fn resolve(&mut self, view: &View, dynamic: Option<&Resolved>) -> Option<crate::memory::access::Access> {
        let shift = match dynamic {
            None if view.indirect.is_some() => return None,
            None => Shift::Offset(0),
            Some(Resolved::Offset(by)) => Shift::Offset(*by),
            Some(Resolved::Rows(_) | Resolved::Skipped) => return None,
        };
        self.memory.resolve(view, &shift).ok()
    }
}

impl<'p> Visitor<'p> for Account<'p> {
    fn instruction(&mut self, step: &Step<'p, '_>, footprint: &Footprint<'p>) {
        if step.loops.is_empty() {
            self.release_before(step.core, step.at);
        }
        self.memory.account().executes(step.node);
        let at = Place { program: self.program, node: step.node, loops: step.loops };
        if self.races.is_on() {
            let placement = self.memory.placement();
            let conflicts =
                self.races.note((self.program, placement), (step.core, step.node), footprint, step.resolved);
            let this = (step.core, step.node);
            if let Some(crossing) = self.unlinked.note((self.program, placement), this, footprint, step.resolved) {
                self.findings.unlinked((step.core, at), &crossing);
            }
            for c in conflicts.iter().filter(|c| c.hazard == Hazard::Raw) {
                self.races.report(&mut self.findings, step.core, at, c);
            }
        }
        let resolved = step.resolved.unwrap_or(&[]);
        if resolved.iter().any(|r| matches!(r, Resolved::Skipped)) {
            return;
        }
        let mut resolved = resolved.iter();
        let mut dynamic = |view: &View| view.indirect.as_ref().and_then(|_| resolved.next());
        let accumulation = step.inst.accumulation(self.memory.arch());
        for &view in &footprint.reads {
            let d = dynamic(view);
            // The accumulation target is checked together with the destination.
            if accumulation.is_some_and(|(dst, _)| std::ptr::eq(dst, view)) {
                continue;
            }
            if let Some(access) = self.resolve(view, d) {
                let access = match step.inst.partitions_read(view) {
                    Some(rows) => {
                        access.only(|e| rows.binary_search(&((e / view.free_elements().max(1)) as u32)).is_ok())
                    }
                    None => access,
                };
                self.findings.check_read(&mut self.memory.account(), at, view, &access);
            }
        }
        for &view in &footprint.writes {
            let d = dynamic(view);
            let Some(access) = self.resolve(view, d) else { continue };
            if let Some((dst, mode)) = accumulation
                && std::ptr::eq(dst, view)
            {
                let what = self.memory.begin_accumulate(&access, mode);
                self.findings.check_accumulation(&self.memory.account(), at, view, &access, what);
                if what.add {
                    self.findings.check_read(&mut self.memory.account(), at, view, &access);
                }
            }
            self.memory.mark_written(&access);
        }
    }

    fn iteration(&mut self, core: u32, at: NodeIndex) {
        self.cores[core as usize].loop_local.begin(at.0, &mut self.memory.account());
    }

    fn met(&mut self) {
        self.races.forget();
    }
}
