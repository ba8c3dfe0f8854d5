//! From a core's trace to the operations that the scheduler runs.

use nki_isa::ids::RegId;
use nki_isa::inst::Footprint;
use nki_isa::machine::Context;
use nki_isa::names::Engine;
use nki_isa::program::{Bound, Node, NodeKind};
use nki_isa::{Arch, Program};
use rayon::prelude::*;

use super::cost::{Cost, CostKind, CostModel, Direction, Machine, Place};
use crate::deps::{self, Deps};
use crate::place::Placement;
use crate::trace::{CoreTrace, EventKind, NodeIndex, index_nodes};

/// Engine queues come first, then the DMA queues that they trigger.
pub(super) const ENGINES: usize = Engine::QUEUES.len();

/// Statements that one thread looks at before another may take a share: shorter work is not worth handing over.
const SHARE: usize = 2048;

/// One operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    /// Position in the core's trace.
    pub(super) trace: u32,
    pub(super) node: NodeIndex,
    pub(super) kind: OpKind,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum OpKind {
    /// An instruction, by engine queue.
    Inst { queue: u8 },
    /// All queues meet; the time that this costs.
    Barrier(u64),
}

/// A core's operations, costs and dependences.
pub(super) struct Lowered<'p> {
    pub(super) nodes: Vec<&'p Node>,
    pub(super) ops: Vec<Op>,
    /// By node.
    pub(super) costs: Vec<Option<Cost>>,
    pub(super) deps: Deps,
}

fn queue_of(engine: Engine) -> u8 {
    Engine::QUEUES.iter().position(|e| *e == engine).unwrap_or(ENGINES - 1) as u8
}

/// Lowers what core `core` executed.
pub(super) fn lower<'p>(
    program: &'p Program,
    core: usize,
    placement: &Placement,
    trace: &CoreTrace,
    model: &dyn CostModel,
    written: &[bool],
) -> Lowered<'p> {
    let nodes = index_nodes(&program.cores[core]);
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    let machine = model.machine();
    let cost = |(i, node): (usize, &&Node)| {
        let NodeKind::Inst(inst) = &node.kind else { return None };
        let work = inst.work(&context);
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        let on_chip = footprint.writes.iter().chain(&footprint.reads).find(|v| v.space.is_on_chip());
        let partition = on_chip.and_then(|v| placement.address(v.tensor)).map(|a| a.partition);
        Some(model.cost(&work, Place { partition, core: core as u32, node: NodeIndex(i as u32) }))
    };
    let costs: Vec<Option<Cost>> = nodes.par_iter().with_min_len(SHARE).enumerate().map(cost).collect();
    let mut ops = Vec::with_capacity(trace.events.len());
    let mut seen = Vec::with_capacity(trace.events.len());
    let mut turn = [0usize; 3];
    let mut looped = false;
    // Until the barrier after its first iteration, what runs in a loop waits for the registers that decide whether it is entered.
    let mut control = [None; 2];
    for (i, event) in trace.events.iter().enumerate() {
        let Some(&node) = nodes.get(event.node.0 as usize) else { continue };
        let barrier = deps::Op { node, resolved: None, queue: 0, engine: None, control };
        let mut push = |kind, op| {
            ops.push(Op { trace: i as u32, node: event.node, kind });
            seen.push(op);
            if let OpKind::Barrier(_) = kind {
                control = [None; 2];
            }
        };
        match &event.kind {
            EventKind::Inst { resolved } => {
                let Some(cost) = &costs[event.node.0 as usize] else { continue };
                let engine = match (&cost.kind, cost.engine) {
                    (CostKind::Free, _) => continue,
                    (CostKind::Dma(dma), Engine::Unknown | Engine::Dma) => {
                        default_queue(machine, dma.direction, &mut turn)
                    }
                    (_, engine) => engine,
                };
                let queue = queue_of(engine);
                let is_dma = matches!(cost.kind, CostKind::Dma(_));
                push(
                    OpKind::Inst { queue },
                    deps::Op {
                        node,
                        resolved: resolved.as_deref(),
                        queue: if is_dma { queue + ENGINES as u8 } else { queue },
                        engine: (!is_dma).then_some(engine),
                        ..barrier
                    },
                );
            }
            EventKind::LoopEnter => {
                looped = false;
                control = deciding(node);
            }
            EventKind::LoopIteration(k) => {
                if *k > 0 {
                    push(OpKind::Barrier(machine.loop_iteration), barrier);
                }
                looped = true;
            }
            EventKind::LoopExit => {
                if looped {
                    push(OpKind::Barrier(machine.loop_iteration), barrier);
                }
                looped = true;
            }
            EventKind::Branch(_) => push(OpKind::Barrier(machine.branch), barrier),
        }
    }
    let deps = deps::analyze(program, placement, &seen, written, machine.window);
    Lowered { nodes, ops, costs, deps }
}

/// The registers that decide whether a dynamic loop is entered.
fn deciding(node: &Node) -> [Option<RegId>; 2] {
    let register = |bound: &Bound| match bound {
        Bound::Register(r) => Some(*r),
        Bound::Static(_) => None,
    };
    match &node.kind {
        NodeKind::For { lower, upper, .. } => [register(lower), register(upper)],
        NodeKind::While { condition, .. } => [Some(*condition), None],
        _ => [None; 2],
    }
}

/// The queue of a transfer whose engine the program leaves open: those listed for its direction in turn.
fn default_queue(machine: &Machine, direction: Direction, turn: &mut [usize; 3]) -> Engine {
    let d = match direction {
        Direction::Load => 0,
        Direction::Store => 1,
        Direction::Other => 2,
    };
    let list = &machine.queues[d];
    let engine = list[turn[d] % list.len()];
    turn[d] += 1;
    engine
}
