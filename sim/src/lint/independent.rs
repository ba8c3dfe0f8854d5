//! Iterations of a loop that the kernel calls independent, and that read what an earlier iteration has written.
//!
//! An instruction that reads and writes one tensor is not reported: a sum, product or maximum over the iterations is allowed (manual,
//! `nl.affine_range`: "associative reductions are not considered loop carried dependencies"). Addresses that depend on data are left out.

use nki_isa::ids::{Loc, TrailId};
use nki_isa::inst::Footprint;
use nki_isa::program::{Node, NodeKind, Step};
use nki_isa::{Inst, Program, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::around;
use crate::deps::{self, Index, Region, Subject};
use crate::place::Placement;
use crate::trace::index_nodes;

/// An instruction that reads what another iteration has written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dependent<'p> {
    /// The instruction that reads.
    pub(super) reader: &'p Node,
    /// The one that has written.
    pub(super) writer: &'p Node,
    /// What it reads.
    pub(super) tensor: TensorId,
    /// The iteration of the loop in which it reads.
    pub(super) read_in: &'p Step,
    /// That in which it was written.
    pub(super) written_in: &'p Step,
}

/// All such instructions of a program, each line and tensor once.
pub(super) fn dependent(program: &Program) -> Vec<Dependent<'_>> {
    if !program.trails.iter().any(|trail| is_independent(&trail.step)) {
        return Vec::new();
    }
    let (mut seen, mut found) = (FxHashSet::default(), Vec::new());
    for stream in &program.cores {
        let placement = Placement::default();
        let mut watch = Watch { program, placement, written: FxHashMap::default(), writers: Vec::new(), seen, found };
        for node in index_nodes(stream) {
            if let NodeKind::Inst(inst) = &node.kind {
                watch.instruction(node, inst);
            }
        }
        Watch { seen, found, .. } = watch;
    }
    found
}

/// The instructions of a core in program order.
struct Watch<'p> {
    program: &'p Program,
    /// Without addresses: bytes are counted from the beginning of their tensor.
    placement: Placement,
    /// What was written last, by tensor.
    written: FxHashMap<TensorId, Index>,
    /// The instructions that write, by the number that they have in `written`.
    writers: Vec<&'p Node>,
    /// The lines that read, with those that make what they read.
    seen: FxHashSet<(Loc, Loc)>,
    found: Vec<Dependent<'p>>,
}

impl<'p> Watch<'p> {
    fn instruction(&mut self, node: &'p Node, inst: &'p Inst) {
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        for view in &footprint.reads {
            if view.indirect.is_none() && !footprint.writes.iter().any(|written| written.tensor == view.tensor) {
                self.read(node, view);
            }
        }
        for view in footprint.writes.iter().filter(|view| view.indirect.is_none()) {
            self.write(view);
        }
        self.writers.push(node);
    }

    fn read(&mut self, node: &'p Node, view: &View) {
        let (program, tensor) = (self.program, self.program.tensor(view.tensor));
        let Some(index) = self.written.get_mut(&view.tensor) else { return };
        if self.seen.contains(&(node.loc, tensor.loc)) {
            return;
        }
        let writers = &self.writers;
        let mut found = None;
        index.retain(&region(program, &self.placement, view), |op, _| {
            let writer = writers[op as usize];
            if found.is_none() {
                let crossed = crossed(program, tensor.trail, [writer.trail, node.trail]);
                found = crossed.map(|[written_in, read_in]| (writer, written_in, read_in));
            }
            true
        });
        if let Some((writer, written_in, read_in)) = found {
            self.seen.insert((node.loc, tensor.loc));
            self.found.push(Dependent { reader: node, writer, tensor: view.tensor, read_in, written_in });
        }
    }

    fn write(&mut self, view: &View) {
        let tensor = self.program.tensor(view.tensor);
        let index = self.written.entry(view.tensor).or_insert_with(|| Index::new(tensor.bytes() as u64));
        let new = region(self.program, &self.placement, view);
        let mut rest: SmallVec<[(Region, u32); 4]> = SmallVec::new();
        index.retain(&new, |op, earlier| {
            // What a few rectangles cannot describe is forgotten: the analysis errs towards silence.
            rest.extend(earlier.minus(&new).into_iter().flatten().map(|left| (left, op)));
            false
        });
        rest.push((new, self.writers.len() as u32));
        for (region, op) in rest {
            index.push(region, op, Subject::Tensor(view.tensor));
        }
    }
}

/// The bytes of a view without an index.
fn region(program: &Program, placement: &Placement, view: &View) -> Region {
    let mut found = None;
    deps::regions(program, placement, view, None, &mut |region| found = Some(region));
    found.expect("a view without an index has one region")
}

fn is_independent(step: &Step) -> bool {
    matches!(step, Step::Iteration { independent: true, .. })
}

/// The two iterations, if what surrounds `a` and `b` differs first in the iteration of a loop whose iterations are independent, and a tensor
/// that is made at `made` is made outside of it.
fn crossed(program: &Program, made: TrailId, [a, b]: [TrailId; 2]) -> Option<[&Step; 2]> {
    if a == b {
        return None;
    }
    let path = |id| -> SmallVec<[TrailId; 8]> { around(program, id).collect() };
    let (made, a, b) = (path(made), path(a), path(b));
    let (a, b) = a.iter().rev().zip(b.iter().rev()).find(|(a, b)| a != b)?;
    if made.contains(a) || made.contains(b) {
        return None;
    }
    let (a, b) = (&program.trails.get(a.0 as usize)?.step, &program.trails.get(b.0 as usize)?.step);
    let is_same_loop = match (a, b) {
        (Step::Iteration { loc: a, value: i, .. }, Step::Iteration { loc: b, value: k, .. }) => a == b && i != k,
        _ => false,
    };
    (is_same_loop && is_independent(a)).then_some([a, b])
}
