//! Stores that overwrite part of earlier stores to an output, with other values.

use std::cell::OnceCell;

use nki_isa::inst::Footprint;
use nki_isa::names::OobMode;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Fault, Inst, Program, TensorId, View};
use rustc_hash::FxHashSet;

use super::findings::Place;
use super::interpreter::Interpreter;
use crate::lint::overlap::address;
use crate::memory::access::Access;

/// Values with a smaller relative difference are attributed to another order of the same computation.
const SAME: f32 = 0.01;

/// The outputs whose stores are checked: those that the program only writes. Tensors that are read back may be overwritten. With two cores, nothing
/// is checked: `shared-memory-race` covers their stores.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// Outputs that are not inputs.
    all: FxHashSet<TensorId>,
    /// Tensors that instructions read, collected at the first comparison of a store.
    read: OnceCell<FxHashSet<TensorId>>,
}

impl Outputs {
    pub(super) fn of(program: &Program) -> Self {
        if program.cores.len() != 1 {
            return Outputs::default();
        }
        let inputs: FxHashSet<TensorId> = program.inputs.iter().map(|i| i.tensor).collect();
        let all = program.outputs.iter().map(|o| o.tensor);
        let all = all.filter(|t| !inputs.contains(t) && program.tensor(*t).data.is_none()).collect();
        Outputs { all, read: OnceCell::new() }
    }

    fn is_read(&self, program: &Program, tensor: TensorId) -> bool {
        let read = self.read.get_or_init(|| {
            let mut read = FxHashSet::default();
            program.visit(&mut |node| {
                if let NodeKind::Inst(inst) = &node.kind {
                    let mut footprint = Footprint::default();
                    inst.footprint(&mut footprint);
                    read.extend(footprint.reads.iter().map(|view| view.tensor));
                }
            });
            read
        });
        read.contains(&tensor)
    }
}

/// A partly written destination, before the instruction.
pub(super) struct Before<'p> {
    view: &'p View,
    access: Access,
    unwritten: Vec<bool>,
    bytes: Vec<u8>,
}

/// The elements that a store has overwritten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Overwritten {
    /// Number of changed elements.
    pub(super) elements: usize,
    /// The first of them, by position in the view.
    pub(super) first: usize,
    /// Its value before and after.
    pub(super) values: (f32, f32),
}

impl<'p> Interpreter<'p> {
    /// Executes an instruction, and reports outputs that it partly overwrites while it also stores new elements.
    ///
    /// # Errors
    /// Those of the instruction.
    pub(super) fn execute_storing(
        &mut self,
        node: &'p Node,
        inst: &'p Inst,
        footprint: &Footprint<'p>,
    ) -> Result<(), Fault> {
        let mut watched = Vec::new();
        for &view in &footprint.writes {
            let is_reported = self.findings.has_overlapping_store(self.program, node, view.tensor);
            if self.stored.all.contains(&view.tensor) && !is_reported {
                watched.extend(self.before_store(view)?);
            }
        }
        inst.execute(self)?;
        for before in watched {
            self.flush();
            let mut now = vec![0; before.bytes.len()];
            self.memory().gather(&before.access, &mut now);
            if let Some(found) = compare(&before, &now) {
                let earlier = self.earlier_store(before.view, found.first);
                let total = before.access.elements();
                let at = Place { program: self.program, node, loops: &self.core.loops };
                self.findings.overlapping_store(at, before.view, (found, total), earlier);
            }
        }
        Ok(())
    }

    /// The content of a destination, if it is partly written.
    fn before_store(&mut self, view: &'p View) -> Result<Option<Before<'p>>, Fault> {
        if view.dtype.is_packed() {
            return Ok(None);
        }
        let Some(access) = self.locate(view, OobMode::Skip)? else { return Ok(None) };
        let account = self.deferred.account();
        if account.is_fresh(&access) {
            return Ok(None);
        }
        let mixed = account.find_unwritten(&access).is_some_and(|gap| gap.elements < access.elements());
        if !mixed || self.stored.is_read(self.program, view.tensor) {
            return Ok(None);
        }
        let unwritten = account.unwritten_elements(&access);
        self.flush();
        let mut bytes = vec![0; access.elements() * access.codec.size()];
        self.memory().gather(&access, &mut bytes);
        Ok(Some(Before { view, access, unwritten, bytes }))
    }

    /// The last statement before the current one that stored this element, for static addresses.
    fn earlier_store(&self, view: &View, element: usize) -> Option<&'p Node> {
        if view.indirect.is_some() {
            return None;
        }
        let (_, at) = address(view, element);
        let stores = |node: &&'p Node| {
            let NodeKind::Inst(inst) = &node.kind else { return false };
            let mut footprint = Footprint::default();
            inst.footprint(&mut footprint);
            footprint.writes.iter().any(|w| {
                w.tensor == view.tensor
                    && w.dtype == view.dtype
                    && w.indirect.is_none()
                    && (0..w.elements()).any(|e| address(w, e).1 == at)
            })
        };
        self.core.statements_before().find(stores)
    }
}

fn compare(before: &Before<'_>, now: &[u8]) -> Option<Overwritten> {
    let codec = before.access.codec;
    let numbers = |bytes: &[u8]| {
        let mut out = vec![0.0; before.access.elements()];
        codec.to_f32(bytes, &mut out);
        out
    };
    let (old, new) = (numbers(&before.bytes), numbers(now));
    let same = |a: f32, b: f32| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= SAME * a.abs().max(b.abs());
    let mut found: Option<Overwritten> = None;
    let mut is_default = true;
    let all = old.iter().zip(&new).zip(&before.unwritten).enumerate();
    for (first, ((&a, &b), _)) in all.filter(|(_, ((a, b), unwritten))| !**unwritten && !same(**a, **b)) {
        let found = found.get_or_insert(Overwritten { elements: 0, first, values: (a, b) });
        found.elements += 1;
        is_default &= a == found.values.0;
    }
    // Several elements of one value are a default that is replaced.
    found.filter(|found| !is_default || found.elements == 1)
}
