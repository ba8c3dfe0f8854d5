//! Iterations of a loop that the kernel declares independent, but that read data written by an earlier iteration.
//!
//! An instruction that reads elements that it writes is not reported: a sum, product or maximum over the iterations is allowed (manual,
//! `nl.affine_range`: "associative reductions are not considered loop carried dependencies"). But it is if an earlier iteration uses the sum so far.
//! Data-dependent addresses are excluded.

use nki_isa::ids::{Loc, TrailId};
use nki_isa::inst::Footprint;
use nki_isa::program::{Node, NodeKind, Step};
use nki_isa::{Arch, Inst, Program, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::around;
use crate::deps::{self, Index, Region, Subject};
use crate::place::Placement;
use crate::trace::index_nodes;

/// An instruction that reads data written by another iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dependent<'p> {
    /// The instruction that reads.
    pub(super) reader: &'p Node,
    /// The instruction that wrote.
    pub(super) writer: &'p Node,
    /// The tensor that it reads.
    pub(super) tensor: TensorId,
    /// The iteration of the loop that reads.
    pub(super) read_in: &'p Step,
    /// The iteration that wrote.
    pub(super) written_in: &'p Step,
}

/// All such instructions of a program, one per line and tensor.
pub(super) fn dependent(program: &Program) -> Vec<Dependent<'_>> {
    if !program.trails.iter().any(|trail| is_independent(&trail.step)) {
        return Vec::new();
    }
    let (mut seen, mut found) = (FxHashSet::default(), Vec::new());
    for stream in &program.cores {
        let placement = Placement::default();
        let (written, readers) = (FxHashMap::default(), FxHashMap::default());
        let mut watch = Watch { program, placement, written, writers: Vec::new(), readers, seen, found };
        for node in index_nodes(stream) {
            if let NodeKind::Inst(inst) = &node.kind {
                watch.instruction(node, inst);
            }
        }
        Watch { seen, found, .. } = watch;
    }
    found
}

/// State of the walk over a core's instructions in program order.
struct Watch<'p> {
    program: &'p Program,
    /// No addresses: bytes are relative to their tensor.
    placement: Placement,
    /// The last writes, by tensor.
    written: FxHashMap<TensorId, Index>,
    /// The writing instructions, indexed by the numbers in `written`.
    writers: Vec<&'p Node>,
    /// By tensor, the last instruction that reads and does not write it.
    readers: FxHashMap<TensorId, &'p Node>,
    /// Reported pairs: the line that reads, and the line that declares the tensor.
    seen: FxHashSet<(Loc, Loc)>,
    found: Vec<Dependent<'p>>,
}

impl<'p> Watch<'p> {
    fn instruction(&mut self, node: &'p Node, inst: &'p Inst) {
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        // A matmul that continues a sum reads it.
        let sum = inst.accumulation(Arch::of(self.program.target)).filter(|(_, accumulate)| *accumulate != Some(false));
        for view in footprint.reads.iter().copied().chain(sum.map(|(dst, _)| dst)) {
            let updates = footprint.writes.iter().any(|written| {
                let is_dynamic = written.indirect.is_some() || view.indirect.is_some();
                let region = |view| region(self.program, &self.placement, view);
                written.tensor == view.tensor && (is_dynamic || region(written).overlaps(&region(view)))
            });
            let trail = self.program.tensor(view.tensor).trail;
            let is_used = |reader: &&Node| crossed(self.program, trail, [reader.trail, node.trail]).is_some();
            if view.indirect.is_none() && (!updates || self.readers.get(&view.tensor).is_some_and(is_used)) {
                self.read(node, view);
            }
            if !updates {
                self.readers.insert(view.tensor, node);
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
            // A remainder that a few rectangles cannot describe is dropped: the analysis errs on the side of false negatives.
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

/// The two iterations, if the first difference between the surroundings of `a` and `b` is the iteration of a loop with independent iterations, and
/// a tensor declared at `made` is declared outside of that loop.
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
