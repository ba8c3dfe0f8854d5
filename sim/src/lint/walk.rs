//! Visits the executed instructions of all cores in execution order.

use nki_isa::ids::Loc;
use nki_isa::inst::{Action, Footprint};
use nki_isa::program::{Node, NodeKind, Statements};
use nki_isa::{Inst, Participants, Program};

use crate::trace::{CoreTrace, EventKind, NodeIndex, Resolved, Trace};

/// One executed instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'p, 's> {
    /// The core that executed it.
    pub(crate) core: u32,
    /// The position of its statement.
    pub(crate) at: NodeIndex,
    /// Its statement.
    pub(crate) node: &'p Node,
    /// The instruction of the statement.
    pub(crate) inst: &'p Inst,
    /// Its dynamic addresses (see [`EventKind::Inst`]).
    pub(crate) resolved: Option<&'s [Resolved]>,
    /// The dynamic loops around it, with the iteration of each.
    pub(crate) loops: &'s [(Loc, u32)],
}

/// An observer of the executed instructions.
pub(crate) trait Visitor<'p> {
    /// An instruction was executed.
    fn instruction(&mut self, step: &Step<'p, '_>, footprint: &Footprint<'p>);
    /// A dynamic loop starts another iteration.
    fn iteration(&mut self, _core: u32, _at: NodeIndex) {}
    /// The cores have synchronised: all previous accesses precede all later ones.
    fn met(&mut self) {}
}

/// The position of one core in its events.
struct Cursor<'p, 't> {
    core: u32,
    nodes: Statements<'p>,
    trace: &'t CoreTrace,
    /// Number of events visited.
    visited: usize,
    loops: Vec<(Loc, u32)>,
}

/// Visits all events that `trace` has of `program`. A core runs until it must wait for the other one, as in [`crate::exec`].
pub(crate) fn walk<'p>(program: &'p Program, trace: &Trace, visitor: &mut impl Visitor<'p>) {
    let mut footprint = Footprint::default();
    let mut cursors: Vec<Cursor<'p, '_>> = program
        .cores
        .iter()
        .zip(&trace.cores)
        .enumerate()
        .map(|(core, (stream, trace))| Cursor {
            core: core as u32,
            nodes: Statements::of(stream),
            trace,
            visited: 0,
            loops: Vec::new(),
        })
        .collect();
    let several = cursors.len() > 1;
    loop {
        let mut waiting = Vec::new();
        for cursor in &mut cursors {
            waiting.push(cursor.advance(several, &mut footprint, visitor));
        }
        if waiting.iter().all(Option::is_none) {
            return;
        }
        for (cursor, event) in cursors.iter().zip(&waiting) {
            if let Some(event) = event {
                cursor.visit(event, &mut footprint, visitor);
            }
        }
        visitor.met();
    }
}

/// Whether an instruction waits for the other core.
fn waits(inst: &Inst) -> bool {
    match inst.participants() {
        Some(Participants::Cores(cores)) => cores.len() > 1,
        Some(participants @ (Participants::Group { .. } | Participants::Pairs { .. })) => {
            participants.is_of_whole_cores()
        }
        Some(Participants::Exchange { .. }) => true,
        None => false,
    }
}

impl<'p, 't> Cursor<'p, 't> {
    /// Visits all events up to an instruction that waits for the other core, and returns that.
    fn advance(
        &mut self,
        several: bool,
        footprint: &mut Footprint<'p>,
        visitor: &mut impl Visitor<'p>,
    ) -> Option<&'t crate::trace::Event> {
        loop {
            let event = self.trace.events.get(self.visited)?;
            self.visited += 1;
            match event.kind {
                EventKind::Inst { .. } => {
                    if several
                        && let Some(Node { kind: NodeKind::Inst(inst), .. }) = self.nodes.node(event.node.0)
                        && waits(inst)
                    {
                        return Some(event);
                    }
                    self.visit(event, footprint, visitor);
                }
                EventKind::LoopEnter => {
                    let loc = self.nodes.node(event.node.0).map(|n| n.loc).unwrap_or_default();
                    self.loops.push((loc, 0));
                }
                EventKind::LoopIteration(i) => {
                    if let Some(last) = self.loops.last_mut() {
                        last.1 = i;
                    }
                    visitor.iteration(self.core, event.node);
                }
                EventKind::LoopExit => {
                    self.loops.pop();
                }
                EventKind::Branch(_) => {}
            }
        }
    }

    fn visit(&self, event: &crate::trace::Event, footprint: &mut Footprint<'p>, visitor: &mut impl Visitor<'p>) {
        let Some(node) = self.nodes.node(event.node.0) else { return };
        let (NodeKind::Inst(inst), EventKind::Inst { .. }) = (&node.kind, event.kind) else { return };
        // It orders the cores and moves no data, although its footprint names a tensor.
        if inst.action() == Action::Orders {
            return;
        }
        footprint.clear();
        inst.footprint(footprint);
        let resolved = self.trace.resolved(event);
        let step = Step { core: self.core, at: event.node, node, inst, resolved, loops: &self.loops };
        visitor.instruction(&step, footprint);
    }
}
