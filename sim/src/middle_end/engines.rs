//! Selects the vector or the scalar engine for instructions that both can run, where the kernel leaves the choice open.

use nki_isa::machine::Context;
use nki_isa::names::Engine;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Arch, Inst, Program, View};
use smallvec::SmallVec;

use super::uses::each_view;
use super::{ChangeKind, Changes};
use crate::timeline::Ps;
use crate::timing::cost::{CostKind, CostModel, Direction, Place};
use crate::trace::NodeIndex;

/// Assigns each copy, and each product or sum with a scalar, to the engine that completes it first: on the compiler's own clock, where
/// an instruction starts as soon as its operands are available and its engine can accept it.
///
/// Evidence (active time of the engines): on trn1, whose scalar engine is faster, it runs all copies out of PSUM of the NKIBench
/// matmuls (the vector engine works 4e-8 of the time), and all eight such instructions of a tile of adamw and both of silu, while the
/// vector engine is busy with instructions that only it can run; in the public profiles of attention on trn2 copies go to both, the first to the
/// scalar engine.
pub(super) fn choose(program: &mut Program, model: &dyn CostModel, changes: &mut Changes) {
    for core in 0..program.cores.len() {
        let mut stream = std::mem::take(&mut program.cores[core]);
        let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
        let mut clock = Clock::new(program.tensors.len(), core as u32, context, model);
        for node in &mut stream {
            clock.step(node, changes);
        }
        program.cores[core] = stream;
    }
}

/// Times when engines become free and tensors available.
struct Clock<'p> {
    core: u32,
    context: Context<'p>,
    model: &'p dyn CostModel,
    /// By queue: the time when its engine is free.
    engines: [Ps; Engine::QUEUES.len()],
    /// The DMA engines, separately for loads and stores: a store that waits for its data does not delay loads.
    transfers: [Ps; 2],
    /// By tensor: its last writers.
    written: Vec<Accesses>,
    /// By tensor: its readers since the last write.
    read: Vec<Accesses>,
}

impl<'p> Clock<'p> {
    fn new(tensors: usize, core: u32, context: Context<'p>, model: &'p dyn CostModel) -> Self {
        Clock {
            core,
            context,
            model,
            engines: Default::default(),
            transfers: [0; 2],
            written: vec![Accesses::default(); tensors],
            read: vec![Accesses::default(); tensors],
        }
    }

    /// Selects the engine of an instruction, and runs it on the clock.
    fn step(&mut self, node: &mut Node, changes: &mut Changes) {
        let NodeKind::Inst(original) = &node.kind else { return };
        let on =
            |engine| original.with_engine(engine).filter(|new| self.allows(new)).map(|new| (self.run(&new, node), new));
        let (run, moved) = match [Engine::Vector, Engine::Scalar].map(on) {
            [Some((vector, _)), Some((scalar, new))] if scalar.done < vector.done => (scalar, Some(new)),
            _ => (self.run(original, node), None),
        };
        match run.queue {
            Some(queue) => self.engines[queue] = run.free,
            None => self.transfers[usize::from(run.stores)] = run.free,
        }
        self.note(node, run);
        if let Some(new) = moved {
            changes.add(ChangeKind::OnScalar, node.loc, 0);
            node.kind = NodeKind::Inst(new);
        }
    }

    /// Whether an engine can run the instruction. On trn1 a scalar-engine copy is an activation, which has another name in the language.
    fn allows(&self, inst: &Inst) -> bool {
        inst.validate(&self.context).map_or_else(|violation| violation.id == "unsupported-on-target", |()| true)
    }

    /// Time when the operands are available and the results may be overwritten. An engine that writes the same bytes again does not wait for its own
    /// earlier write: sums in PSUM follow each other.
    fn ready(&self, node: &Node, queue: Option<usize>) -> Ps {
        let mut ready = 0;
        each_view(node, &mut |view, writes| {
            let at = view.tensor.0 as usize;
            let part = part(view);
            let written = self.written[at].iter().filter(|a| !writes || queue.is_none() || a.queue != queue);
            // WAR hazards exist on chip only: different parts of an HBM tensor are taken as independent.
            let read = self.read[at].iter().filter(|_| writes && view.space.is_on_chip());
            ready = written.chain(read).filter(|a| a.overlaps(part)).map(|a| a.done).fold(ready, Ps::max);
        });
        ready
    }

    /// The run of an instruction on the clock, without recording it.
    fn run(&self, inst: &Inst, node: &Node) -> Run {
        let place = Place { core: self.core, node: NodeIndex(u32::MAX), ..Place::default() };
        let cost = self.model.cost(&inst.work(&self.context), place);
        let queue = Engine::QUEUES.iter().position(|e| *e == cost.engine);
        let free = queue.map_or(0, |queue| self.engines[queue]);
        let ready = self.ready(node, queue);
        let begin = ready.max(free);
        match cost.kind {
            CostKind::Compute { occupancy, complete, .. } => Run::on(queue, begin + occupancy, begin + complete),
            CostKind::Matmul { weights, moving, least, drain, .. } => {
                let end = begin + weights + moving.max(least);
                Run::on(queue, end, end + drain)
            }
            CostKind::Dma(dma) => {
                let stores = dma.direction == Direction::Store;
                let free = ready.max(self.transfers[usize::from(stores)]) + dma.longest();
                let trigger = dma.hardware;
                let latency = trigger.occupancy + trigger.dispatch + dma.payload + dma.notify;
                Run { queue: None, stores, free, done: free + latency }
            }
            CostKind::Collective { trigger, time } => Run::on(queue, begin + trigger, begin + trigger + time),
            CostKind::Free => Run::on(queue, free, ready),
        }
    }

    fn note(&mut self, node: &Node, run: Run) {
        each_view(node, &mut |view, writes| {
            let at = view.tensor.0 as usize;
            let new = Access { bytes: part(view), queue: run.queue, done: run.done };
            if writes {
                self.read[at].retain(|old| !old.is_within(new.bytes));
            }
            add(if writes { &mut self.written[at] } else { &mut self.read[at] }, new);
        });
    }
}

/// An access to a part of a tensor.
#[derive(Debug, Clone, Copy)]
struct Access {
    /// Its first byte in a partition, and the byte after the last.
    bytes: (i64, i64),
    /// The queue of the engine; `None` for a transfer.
    queue: Option<usize>,
    /// Time when it completes.
    done: Ps,
}

impl Access {
    fn overlaps(&self, (start, end): (i64, i64)) -> bool {
        self.bytes.0 < end && start < self.bytes.1
    }

    fn is_within(&self, (start, end): (i64, i64)) -> bool {
        start <= self.bytes.0 && self.bytes.1 <= end
    }
}

/// The bytes by which accesses to a tensor are distinguished: exact on chip, the whole tensor in HBM.
fn part(view: &View) -> (i64, i64) {
    if view.space.is_on_chip() { view.byte_span() } else { (0, i64::MAX) }
}

/// Accesses to one tensor.
type Accesses = SmallVec<[Access; 1]>;

/// Maximum number of accesses per tensor. Beyond it, they are merged into one that ends with the last of them.
const APART: usize = 64;

/// Adds an access, which replaces those within its bytes.
fn add(accesses: &mut Accesses, mut new: Access) {
    accesses.retain(|old| {
        let is_replaced = old.is_within(new.bytes);
        if is_replaced {
            new.done = new.done.max(old.done);
        }
        !is_replaced
    });
    accesses.push(new);
    if accesses.len() > APART {
        let all = accesses.drain(..).reduce(|a, b| Access {
            bytes: (a.bytes.0.min(b.bytes.0), a.bytes.1.max(b.bytes.1)),
            queue: a.queue.filter(|_| a.queue == b.queue),
            done: a.done.max(b.done),
        });
        accesses.extend(all);
    }
}

/// A run of an instruction on the clock.
#[derive(Clone, Copy)]
struct Run {
    /// The queue of its engine; `None` for a transfer.
    queue: Option<usize>,
    stores: bool,
    /// Time when the engine can start the next instruction.
    free: Ps,
    /// Time when its results are available.
    done: Ps,
}

impl Run {
    fn on(queue: Option<usize>, free: Ps, done: Ps) -> Self {
        Run { queue, stores: false, free, done }
    }
}
