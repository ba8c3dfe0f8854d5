//! Times a recorded instruction stream: the machine and its laws without the compiler.
//!
//! The recording defines the contents and order of each queue, and the dependences of each operation. An operation costs the same as the same
//! work in a simulated kernel; the caller marks work that no law covers, which takes its recorded time.

use std::sync::Arc;

use nki_isa::names::Engine;
use nki_isa::program::Statements;
use nki_isa::work::Work;
use rustc_hash::FxHashMap;

use super::cost::{Cost, CostKind, CostModel, Costs, DmaCost, Limiter, MachineConstants, Place, Ports};
use super::fixed::Thousandths;
use super::limiter;
use super::lower::{ENGINES, Graph, Lowered, Op, OpKind, queue_of};
use super::machine;
use super::order::Order;
use super::params::Confidence;
use super::record::{Observer, Started};
use crate::deps::{Dep, Deps, Hazard, Subject};
use crate::timeline::{Cause, PhaseKind, Ps};
use crate::trace::{CoreId, NodeIndex};

/// A recorded operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The engine whose queue it used, one of [`Engine::QUEUES`]. A queue holds its operations in stream order.
    pub queue: Engine,
    /// Its work.
    pub kind: RecordedKind,
    /// The operations of the same core, by position in the stream, that it depended on.
    pub waits: Vec<u32>,
}

/// The work of a recorded operation.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedKind {
    /// Work that a law covers.
    Work {
        /// The work.
        work: Box<Work>,
        /// First partition of the on-chip side of a DMA.
        partition: Option<u32>,
        /// Whether a matmul loads its weights, according to the recording.
        loads_weights: bool,
    },
    /// The load of a function table. The recording contains all loads: other operations load none.
    TableLoad,
    /// Work that no law covers: the engine is busy for a given time, and its results are available after a given time.
    Known {
        /// From its start until the engine can start another.
        busy: Ps,
        /// From its start until its results are available.
        complete: Ps,
    },
}

/// The simulated times of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replayed {
    /// The engine issues it, including its weights, if it loads some.
    pub issue: Ps,
    /// It starts; columns move.
    pub start: Ps,
    /// The engine is done with it.
    pub end: Ps,
    /// Its results are available; for a transfer, the semaphore is visible.
    pub complete: Ps,
    /// Times when a transfer reaches the DMA engines, and when its last byte has left them.
    pub payload: Option<(Ps, Ps)>,
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// By core and operation.
    pub cores: Vec<Vec<Replayed>>,
    /// By core: times when the power limiter changes the tensor engine's rate, and whether to the full rate.
    pub limiter: Vec<Vec<(Ps, bool)>>,
    /// From the start of the profile to its end.
    pub elapsed: Ps,
}

/// The recorded dependences have a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("operation {op} of core {core} waits for something that comes after it")]
pub struct Stuck {
    /// The core.
    pub core: usize,
    /// The first of its operations that never starts, by position in the stream.
    pub op: usize,
}

/// The cost of a recorded operation.
pub fn cost(recorded: &Recorded, core: usize, model: &dyn CostModel) -> Cost {
    let known = |busy: Ps, complete: Ps| Cost {
        engine: recorded.queue,
        kind: CostKind::Compute {
            occupancy: busy.max(1),
            complete: complete.max(busy).max(1),
            table: None,
            ports: Ports::default(),
        },
        confidence: Confidence::Measured,
    };
    match &recorded.kind {
        RecordedKind::Known { busy, complete } => known(*busy, *complete),
        RecordedKind::TableLoad => known(model.machine().table_load, model.machine().table_load),
        RecordedKind::Work { work, partition, loads_weights } => {
            let place = Place { partition: *partition, core: core as u32, ..Place::default() };
            let mut cost = model.cost(work, place);
            match &mut cost.kind {
                CostKind::Matmul { weights, stationary, .. } => {
                    *stationary = None;
                    if !loads_weights {
                        *weights = 0;
                    }
                }
                CostKind::Compute { table, .. } => *table = None,
                CostKind::Dma(_) | CostKind::Collective { .. } | CostKind::Free => {}
            }
            cost
        }
    }
}

/// Runs recorded streams, one per core. `grid` is the start of some period of the power limiter in the recording: the phase of the
/// periods is not a property of the program. By default, the first period starts with the profile. `start` is the time when the
/// program began, which depends on runtime and profiler; by default, the head of the model.
///
/// # Errors
/// If operations wait for each other.
pub fn replay(
    cores: &[Vec<Recorded>],
    model: &dyn CostModel,
    grid: Option<Ps>,
    start: Option<Ps>,
) -> Result<Replay, Stuck> {
    let machine = model.machine();
    // The clock starts at a period boundary, so all times are late by this shift.
    let period = machine.limiter.period;
    let shift = grid.map_or(0, |g| (period - g % period) % period);
    let machine = MachineConstants { head: start.unwrap_or(machine.head) + shift, ..machine.clone() };
    let mut lowered = Vec::with_capacity(cores.len());
    for (core, stream) in cores.iter().enumerate() {
        lowered.push((CoreId { rank: 0, core: core as u32 }, lower(stream, core, model)));
    }
    let orders: Vec<Order> = lowered.iter().map(|(_, low)| Order::of_program(low)).collect();
    let finished = machine::run(&lowered, &orders, &machine, |i| TimeRecorder::new(cores[i].len()));
    let end = finished.iter().map(|f| f.end).fold(machine.head, Ps::max) + machine.tail;
    let mut out = Replay { cores: Vec::new(), limiter: Vec::new(), elapsed: end - shift };
    for (core, finished) in finished.into_iter().enumerate() {
        let TimeRecorder { ops, passes, .. } = finished.observer;
        if let Some(op) = ops.iter().position(|r| r.complete == 0) {
            return Err(Stuck { core, op });
        }
        let steps = transitions(&passes, machine.limiter, end);
        // A period that begins before the profile has the limited rate, like the first.
        out.limiter.push(steps.into_iter().filter(|(t, _)| *t >= shift).map(|(t, full)| (t - shift, full)).collect());
        out.cores.push(ops.into_iter().map(|r| r.earlier(shift)).collect());
    }
    Ok(out)
}

impl Replayed {
    fn earlier(self, shift: Ps) -> Self {
        Replayed {
            issue: self.issue - shift,
            start: self.start - shift,
            end: self.end - shift,
            complete: self.complete - shift,
            payload: self.payload.map(|(a, b)| (a - shift, b - shift)),
        }
    }
}

fn lower(stream: &[Recorded], core: usize, model: &dyn CostModel) -> Lowered<'static> {
    let costs: Costs = stream.iter().map(|r| Some(cost(r, core, model))).collect();
    let op = |(i, r): (usize, &Recorded)| Op {
        trace: i as u32,
        node: NodeIndex(i as u32),
        kind: OpKind::Inst { queue: queue_of(r.queue) },
    };
    let ops: Vec<Op> = stream.iter().enumerate().map(op).collect();
    let edges = |r: &Recorded| {
        let dep = |&on: &u32| Dep::new(on, Hazard::Raw, Subject::Tensor(nki_isa::TensorId(0)));
        r.waits.iter().filter(|on| (**on as usize) < stream.len()).map(dep).collect()
    };
    let graph = Graph::new(Deps::known(stream.iter().map(edges).collect()), stream.len());
    Lowered::new(
        Statements::default(),
        ops,
        costs,
        Arc::new(graph),
        Vec::new(),
        FxHashMap::default(),
        model.machine().dma_engines,
    )
}

/// A pass of the tensor engine: start, end, time at the full rate, share of rows in use.
type Pass = (Ps, Ps, Ps, Thousandths);

/// Records the times of each operation.
struct TimeRecorder {
    ops: Vec<Replayed>,
    passes: Vec<Pass>,
    /// Start of the weight load of the operation that is about to start.
    weights: Option<Ps>,
}

impl TimeRecorder {
    fn new(n: usize) -> Self {
        TimeRecorder { ops: vec![Replayed::default(); n], passes: Vec::new(), weights: None }
    }
}

impl Observer for TimeRecorder {
    fn stall(&mut self, _: usize, _: Ps, _: Cause) {}

    fn busy(&mut self, _: usize, _: Ps, _: u32) {}

    fn phase(&mut self, kind: PhaseKind, start: Ps, _: Ps) {
        if kind == PhaseKind::Weights {
            self.weights = Some(start);
        }
    }

    fn started(&mut self, op: u32, queue: usize, cost: &Cost, started: Started) {
        let own = &mut self.ops[op as usize];
        let Started { start, end, complete, .. } = started;
        *own = Replayed { issue: self.weights.take().unwrap_or(start), start, end, complete, payload: None };
        debug_assert!(queue < ENGINES);
        if let CostKind::Matmul { moving, load, .. } = &cost.kind {
            // `free` is the start of the pass, after the weights.
            self.passes.push((started.free, end, *moving, *load));
            own.start = started.free;
        }
    }

    fn triggered(&mut self, op: u32, _: usize, arrive: Ps) {
        self.ops[op as usize].payload = Some((arrive, arrive));
    }

    fn moved(&mut self, op: u32, _: usize, cost: &DmaCost, end: Ps, complete: Ps) {
        let own = &mut self.ops[op as usize];
        own.complete = complete;
        own.payload = own.payload.map(|(arrive, _)| (arrive, end - cost.payload));
    }

    fn met(&mut self, _: u32, _: usize, _: u32) {}
}

/// The limiter's rate changes, from the passes in order.
fn transitions(passes: &[Pass], law: Limiter, end: Ps) -> Vec<(Ps, bool)> {
    let mut state = limiter::State::new(law);
    let mut out = Vec::new();
    let mut full = false;
    let mut period = 0;
    let mut until = |state: &mut limiter::State, time: Ps, worked: Ps| {
        while (period + 1) * law.period <= time {
            period += 1;
            // The rate is limited from the period after the next on, without work.
            if period * law.period > worked + 2 * law.period {
                period = time / law.period;
            }
            let now = state.rate(period * law.period) > law.rate;
            if now != full {
                out.push((period * law.period, now));
                full = now;
            }
        }
    };
    let mut worked = 0;
    for &(start, stop, moving, load) in passes {
        until(&mut state, start, worked);
        state.used(start, stop, moving, load);
        worked = worked.max(stop);
    }
    until(&mut state, end, worked);
    out
}
