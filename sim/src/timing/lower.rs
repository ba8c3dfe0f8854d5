//! Lowers a core's trace to the operations that the scheduler orders and the machine runs.

use std::sync::{Arc, Mutex, PoisonError};

use nki_isa::ids::RegId;
use nki_isa::inst::Footprint;
use nki_isa::machine::Context;
use nki_isa::names::Engine;
use nki_isa::program::{Bound, Control, Node, NodeKind, Statements};
use nki_isa::{Arch, Program};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::cost::{Cost, CostKind, CostModel, Costs, DmaCost, MachineConstants, OpenQueue, Place};
use super::dma::Classes;
use crate::deps::{self, Deps, Hazard, Reach};
use crate::place::Placement;
use crate::timeline::Ps;
use crate::trace::{CoreTrace, EventKind, NodeIndex, Resolved};

/// Engine queues come first, then the DMA queues that they trigger.
pub(crate) const ENGINES: usize = Engine::QUEUES.len();

/// Statements per unit of work of a thread that computes costs.
const SHARE: u32 = 2048;

/// One operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Op {
    /// Position in the core's trace.
    pub(crate) trace: u32,
    pub(crate) node: NodeIndex,
    pub(crate) kind: OpKind,
}

// Each executed instruction has an `Op` and several dependences (docs/performance.md, memory of an instruction).
const _: () = assert!(size_of::<Op>() <= 24 && size_of::<deps::Dep>() <= 12);

impl Op {
    pub(crate) fn is_barrier(&self) -> bool {
        matches!(self.kind, OpKind::Barrier(_))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum OpKind {
    /// An instruction, by engine queue.
    Inst { queue: u8 },
    /// All queues wait for each other; the time of the barrier.
    Barrier(Ps),
}

/// An operation that waits for other cores (see [`crate::trace::Rendezvous`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rendezvous {
    pub(crate) op: u32,
    pub(crate) number: u32,
    pub(crate) posted: bool,
}

/// The operations between two barriers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    /// The operation after its last one: a barrier, or the end.
    pub(crate) end: u32,
    /// Instructions in it.
    pub(crate) count: u32,
    /// By engine queue: the queue's instructions in this and all earlier segments.
    pub(crate) taken: [u32; ENGINES],
    /// Time of the barrier at its end.
    pub(crate) barrier: Ps,
}

/// Dependences between operations, in both directions.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) deps: Deps,
    /// The operations that depend on each operation, concatenated.
    waiters: Vec<u32>,
    waiters_of: Vec<u32>,
}

impl Graph {
    pub(super) fn new(deps: Deps, n: usize) -> Self {
        let mut waiters_of = vec![0u32; n + 1];
        for d in (0..n).flat_map(|i| deps.of(i)) {
            waiters_of[d.on as usize + 1] += 1;
        }
        for i in 0..n {
            waiters_of[i + 1] += waiters_of[i];
        }
        let mut fill = waiters_of.clone();
        let mut waiters = vec![0; deps.len()];
        for i in 0..n {
            for d in deps.of(i) {
                let slot = &mut fill[d.on as usize];
                waiters[*slot as usize] = i as u32;
                *slot += 1;
            }
        }
        Graph { deps, waiters, waiters_of }
    }
}

/// The dependences of one trace, cached for further timing: they depend on the queues of its operations, not on their costs.
#[derive(Debug, Default)]
pub struct Dependences(Mutex<Vec<CachedGraph>>);

#[derive(Debug)]
struct CachedGraph {
    core: usize,
    reach: Reach,
    queues: Vec<u8>,
    graph: Arc<Graph>,
}

impl Dependences {
    /// Maximum number of cached variants: two cores, with a few choices of queues and windows.
    const MOST: usize = 8;

    fn get(&self, core: usize, reach: &Reach, queues: Vec<u8>, find: impl FnOnce() -> Graph) -> Arc<Graph> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |k: &&CachedGraph| k.core == core && k.reach == *reach && k.queues == queues;
        if let Some(known) = lock().iter().find(same) {
            return known.graph.clone();
        }
        let graph = Arc::new(find());
        let mut all = lock();
        if all.len() < Self::MOST {
            all.push(CachedGraph { core, reach: *reach, queues, graph: graph.clone() });
        }
        graph
    }
}

/// A core's operations in program order, their costs and dependences.
pub(crate) struct Lowered<'p> {
    nodes: Statements<'p>,
    pub(crate) ops: Vec<Op>,
    pub(crate) costs: Costs,
    pub(crate) graph: Arc<Graph>,
    /// By engine queue: its instructions.
    pub(crate) queues: [Vec<u32>; ENGINES],
    /// At least one segment.
    pub(crate) segments: Vec<Segment>,
    /// The operations that wait for other cores, in program order.
    pub(crate) rendezvous: Vec<Rendezvous>,
    /// The DMA engines grouped by equal loads.
    pub(super) classes: Classes,
    /// Costs of transfers that skip some or all rows in this run.
    skipping: FxHashMap<u32, Cost>,
}

impl<'p> Lowered<'p> {
    pub(super) fn new(
        nodes: Statements<'p>,
        ops: Vec<Op>,
        costs: Costs,
        graph: Arc<Graph>,
        rendezvous: Vec<Rendezvous>,
        skipping: FxHashMap<u32, Cost>,
        dma_engines: u32,
    ) -> Self {
        let n = ops.len();
        let mut queues: [Vec<u32>; ENGINES] = Default::default();
        let mut segments = Vec::new();
        let mut segment = Segment { end: 0, count: 0, taken: [0; ENGINES], barrier: 0 };
        for (i, op) in ops.iter().enumerate() {
            match op.kind {
                OpKind::Inst { queue } => {
                    queues[queue as usize].push(i as u32);
                    segment.taken[queue as usize] += 1;
                    segment.count += 1;
                }
                OpKind::Barrier(barrier) => {
                    segments.push(Segment { end: i as u32, barrier, ..segment });
                    segment.count = 0;
                }
            }
        }
        segments.push(Segment { end: n as u32, ..segment });
        let dma_costs = costs.distinct().iter().chain(skipping.values()).filter_map(|c| match &c.kind {
            CostKind::Dma(d) => Some(&**d),
            _ => None,
        });
        let classes = Classes::new(dma_engines, dma_costs);
        Lowered { nodes, ops, costs, graph, queues, segments, rendezvous, classes, skipping }
    }

    /// The statement of an operation.
    pub(crate) fn node(&self, op: u32) -> Option<&'p Node> {
        self.nodes.node(self.ops.get(op as usize)?.node.0)
    }

    /// The cost of an operation in this run.
    pub(crate) fn cost(&self, op: u32) -> Option<&Cost> {
        self.skipping.get(&op).or_else(|| self.planned(op))
    }

    /// The cost that the compiler assumes: no row is skipped.
    pub(crate) fn planned(&self, op: u32) -> Option<&Cost> {
        self.costs.of(self.ops[op as usize].node)
    }

    /// The queue and the cost of a transfer; `None` for other operations.
    pub(crate) fn dma(&self, op: u32) -> Option<(usize, &DmaCost)> {
        let OpKind::Inst { queue } = self.ops[op as usize].kind else { return None };
        match &self.cost(op)?.kind {
            CostKind::Dma(d) => Some((queue as usize, d)),
            _ => None,
        }
    }

    /// The queue of an instruction; `None` for a barrier.
    pub(crate) fn queue(&self, op: u32) -> Option<usize> {
        match self.ops[op as usize].kind {
            OpKind::Inst { queue } => Some(usize::from(queue)),
            OpKind::Barrier(_) => None,
        }
    }

    pub(crate) fn is_dma(&self, op: u32) -> bool {
        matches!(self.cost(op), Some(Cost { kind: CostKind::Dma(_), .. }))
    }

    /// Delay from the completion of `op` until a dependent operation can start. `None` if the order of their engine alone guarantees the dependence.
    pub(crate) fn wait(&self, op: u32, waiter: u32, hazard: Hazard, machine: &MachineConstants) -> Option<Ps> {
        let (Some(here), Some(there)) = (self.queue(op), self.queue(waiter)) else { return Some(0) };
        if self.is_dma(op) {
            return Some(machine.dma_semaphore[there]);
        }
        let ordered = here == there && deps::orders(Engine::QUEUES[here], hazard) && !self.is_dma(waiter);
        (!ordered).then_some(machine.semaphore[there])
    }

    /// The operations that depend on `op`, each with the position of the edge in its list of dependences. An operation that lists `op` several times
    /// appears as often, always with the first of these edges.
    pub(crate) fn waiters(&self, op: u32) -> impl Iterator<Item = (u32, u32)> {
        let Graph { deps, waiters, waiters_of } = &*self.graph;
        let waiters = &waiters[waiters_of[op as usize] as usize..waiters_of[op as usize + 1] as usize];
        let edge = move |waiter: u32| deps.of(waiter as usize).partition_point(|d| d.on < op) as u32;
        waiters.iter().map(move |&waiter| (waiter, edge(waiter)))
    }

    /// The segment of an instruction.
    pub(super) fn segment_of(&self, op: u32) -> usize {
        self.segments.partition_point(|s| s.end < op)
    }
}

/// The number of an engine's queue.
pub(super) fn queue_of(engine: Engine) -> u8 {
    Engine::QUEUES.iter().position(|e| *e == engine).unwrap_or(ENGINES - 1) as u8
}

/// Operations as input of the dependence analysis.
pub(crate) struct DepInputs<'p> {
    ops: Vec<deps::Op<'p>>,
    /// By tensor: whether an instruction writes it.
    written: Vec<bool>,
}

/// Lowers the instructions executed by core `core`. `reach` limits how far the order of a queue may depart from the program's;
/// `known` belongs to this trace and placement.
pub(crate) fn lower<'p>(
    program: &'p Program,
    core: usize,
    placement: &Placement,
    trace: &'p CoreTrace,
    model: &dyn CostModel,
    reach: &Reach,
    known: Option<&Dependences>,
) -> (Lowered<'p>, DepInputs<'p>) {
    let nodes = Statements::of(&program.cores[core]);
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    let machine = model.machine();
    let cost = |at: u32, node: &Node| {
        let NodeKind::Inst(inst) = &node.kind else { return None };
        let work = inst.work(&context);
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        let on_chip = footprint.writes.iter().chain(&footprint.reads).find(|v| v.space.is_on_chip());
        let partition = on_chip.and_then(|v| placement.address(v.tensor)).map(|a| a.partition);
        Some(model.cost(&work, Place { partition, core: core as u32, node: NodeIndex(at) }))
    };
    let of_part = |part: u32| -> Costs {
        let (first, end) = (part * SHARE, ((part + 1) * SHARE).min(nodes.len()));
        (first..).zip(nodes.range(first..end)).map(|(at, statement)| cost(at, statement.node)).collect()
    };
    let costs = Costs::joined((0..nodes.len().div_ceil(SHARE)).into_par_iter().map(of_part).collect());
    let mut ops = Vec::with_capacity(trace.events.len());
    let mut seen = Vec::with_capacity(trace.events.len());
    let mut skipping = FxHashMap::default();
    let mut used = [0usize; OpenQueue::COUNT];
    let mut looped = false;
    // Until the barrier after the first iteration, instructions in a loop depend on the registers that decide whether it is entered.
    let mut control = [None; 2];
    for (i, event) in trace.events.iter().enumerate() {
        let Some(node) = nodes.node(event.node.0) else { continue };
        let barrier = deps::Op { node, resolved: None, queue: 0, engine: None, control };
        let mut push = |kind, op| {
            ops.push(Op { trace: i as u32, node: event.node, kind });
            seen.push(op);
            if let OpKind::Barrier(_) = kind {
                control = [None; 2];
            }
        };
        match &event.kind {
            EventKind::Inst { .. } => {
                let Some(cost) = costs.of(event.node) else { continue };
                let engine = match (&cost.kind, cost.engine) {
                    (CostKind::Free, _) => continue,
                    (CostKind::Dma(dma), Engine::Unknown | Engine::Dma) => default_queue(machine, dma.open, &mut used),
                    (_, engine) => engine,
                };
                let queue = queue_of(engine);
                let is_dma = matches!(cost.kind, CostKind::Dma(_));
                push(
                    OpKind::Inst { queue },
                    deps::Op {
                        node,
                        resolved: trace.resolved(event),
                        queue: if is_dma { queue + ENGINES as u8 } else { queue },
                        engine: (!is_dma).then_some(engine),
                        ..barrier
                    },
                );
                if let Some(share) = trace.resolved(event).and_then(kept) {
                    skipping.extend(cost.of_share(share).map(|cost| (ops.len() as u32 - 1, cost)));
                }
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
    let written = deps::written_tensors(program);
    let find = || Graph::new(deps::analyze(program, placement, &seen, &written, reach), ops.len());
    let graph = match known {
        Some(known) => known.get(core, reach, seen.iter().map(|op| op.queue).collect(), find),
        None => Arc::new(find()),
    };
    let rendezvous = trace.rendezvous.iter().filter_map(|r| {
        let op = ops.binary_search_by_key(&r.event, |op| op.trace).ok()? as u32;
        Some(Rendezvous { op, number: r.number, posted: r.posted })
    });
    let rendezvous = rendezvous.collect();
    (
        Lowered::new(nodes, ops, costs, graph, rendezvous, skipping, machine.dma_engines),
        DepInputs { ops: seen, written },
    )
}

/// The share of its rows that a transfer moved; `None` if it moved all.
fn kept(resolved: &[Resolved]) -> Option<f64> {
    let of_view = |resolved: &Resolved| match resolved {
        Resolved::Offset(_) => 1.0,
        Resolved::Skipped => 0.0,
        Resolved::Rows(rows) => rows.iter().flatten().count() as f64 / rows.len().max(1) as f64,
    };
    let least = resolved.iter().map(of_view).fold(1.0, f64::min);
    (least < 1.0).then_some(least)
}

/// The dependences of operations issued in the order `taken` (all except the barriers), by operation, with the addresses of `placement`.
pub(crate) fn graph_in_order(
    program: &Program,
    placement: &Placement,
    low: &Lowered<'_>,
    seen: DepInputs<'_>,
    taken: &[u32],
) -> Graph {
    let n = low.ops.len();
    let mut order = Vec::with_capacity(n);
    let mut rest = taken;
    for segment in &low.segments {
        let (part, behind) = rest.split_at(segment.count as usize);
        order.extend_from_slice(part);
        rest = behind;
        if (segment.end as usize) < n {
            order.push(segment.end);
        }
    }
    let ops: Vec<deps::Op<'_>> = order.iter().map(|op| seen.ops[*op as usize]).collect();
    drop(seen.ops);
    let deps = deps::analyze(program, placement, &ops, &seen.written, &deps::IN_ORDER);
    Graph::new(deps.renumbered(&order), n)
}

/// The registers that decide whether a dynamic loop is entered.
fn deciding(node: &Node) -> [Option<RegId>; 2] {
    let register = |bound: &Bound| match bound {
        Bound::Register(r) => Some(*r),
        Bound::Static(_) => None,
    };
    match node.kind.control() {
        Some(Control::For { lower, upper, .. }) => [register(lower), register(upper)],
        Some(Control::While { condition, .. }) => [Some(*condition), None],
        _ => [None; 2],
    }
}

/// The queue of a transfer whose engine the program leaves open: round-robin over the queues for its kind.
fn default_queue(machine: &MachineConstants, open: OpenQueue, used: &mut [usize; OpenQueue::COUNT]) -> Engine {
    let kind = open as usize;
    let list = &machine.queues[kind];
    let engine = list[used[kind] % list.len()];
    used[kind] += 1;
    engine
}
