//! Records the machine's events and converts them to a timeline.

use std::sync::Arc;

use nki_isa::Program;
use nki_isa::names::Engine;
use nki_isa::program::NodeKind;
use nki_isa::schema::Confidence;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::cost::{Cost, CostKind, DmaCost, MachineConstants};
use super::lower::{ENGINES, Lowered, Op};
use super::machine::{Finished, elapsed};
use super::renumber::{Renumber, hand_over};
use crate::timeline::{
    Cause, DmaStats, Event, EventId, Lane, Names, Origin, Phase, PhaseKind, Phases, Ps, Release, Row, RowId, RowKind,
    State, Timeline, Transfer, dma_spans, union,
};

/// An operation that has started on its engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) start: Ps,
    /// The engine is done with it.
    pub(crate) end: Ps,
    /// Its results are available; 0 for a transfer, which completes later.
    pub(crate) complete: Ps,
    /// The engine can start another.
    pub(crate) free: Ps,
    /// The last event that it waited for.
    pub(crate) released: Release,
}

/// Observes one core without influence on it.
pub(crate) trait Observer {
    /// The engine of `queue` waits until then.
    fn stall(&mut self, queue: usize, until: Ps, cause: Cause);
    /// The engine of `queue` works on `op` until then.
    fn busy(&mut self, queue: usize, until: Ps, op: u32);
    /// A phase of the operation that is about to start.
    fn phase(&mut self, kind: PhaseKind, start: Ps, end: Ps);
    /// An operation has started.
    fn started(&mut self, op: u32, queue: usize, cost: &Cost, started: Started);
    /// The transfer that has just started will reach the DMA engines at `arrive`.
    fn triggered(&mut self, op: u32, queue: usize, arrive: Ps);
    /// The payload of a transfer ends at `end`, and its completion is visible at `complete`.
    fn moved(&mut self, op: u32, queue: usize, cost: &DmaCost, end: Ps, complete: Ps);
    /// `op` waited for operation `its` of core `core` in the list.
    fn met(&mut self, op: u32, core: usize, its: u32);
}

/// Records nothing, for callers that only need the end time.
pub(super) struct Unobserved;

impl Observer for Unobserved {
    fn stall(&mut self, _: usize, _: Ps, _: Cause) {}
    fn busy(&mut self, _: usize, _: Ps, _: u32) {}
    fn phase(&mut self, _: PhaseKind, _: Ps, _: Ps) {}
    fn started(&mut self, _: u32, _: usize, _: &Cost, _: Started) {}
    fn triggered(&mut self, _: u32, _: usize, _: Ps) {}
    fn moved(&mut self, _: u32, _: usize, _: &DmaCost, _: Ps, _: Ps) {}
    fn met(&mut self, _: u32, _: usize, _: u32) {}
}

/// Records everything for the timeline.
pub(super) struct Recorder<'a> {
    low: &'a Lowered<'a>,
    core: u32,
    row_base: u32,
    /// Phases of the operation that is about to start.
    phases: SmallVec<[Phase; 4]>,
    /// Origins of events so far.
    origins: FxHashSet<Arc<Origin>>,
    /// By operation: its number among the transfers of its queue.
    transfer_of: Vec<u32>,
    record: Record,
}

/// The recorded activity of one core.
pub(super) struct Record {
    lanes: [Lane; ENGINES],
    /// By operation; `None` for barriers.
    events: Vec<Option<Event>>,
    /// By engine queue: instructions started.
    counts: [u64; ENGINES],
    /// Bytes of all transfers.
    bytes: u64,
    transfers: [Vec<Transfer>; ENGINES],
    met: Vec<(u32, usize, u32)>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(low: &'a Lowered<'a>, core: u32, head: Ps) -> Self {
        let n = low.ops.len();
        // The lanes of a long kernel are many pages, which a growing vector would copy.
        let lane = |queue: usize| {
            let mut lane = Lane::with_capacity(2 * low.queues[queue].len() + 2);
            lane.stall(head, Cause::StartUp);
            lane
        };
        Recorder {
            low,
            core,
            row_base: core * 2 * ENGINES as u32,
            phases: SmallVec::new(),
            origins: FxHashSet::default(),
            transfer_of: vec![0; n],
            record: Record {
                lanes: std::array::from_fn(lane),
                events: vec![None; n],
                counts: [0; ENGINES],
                bytes: 0,
                transfers: std::array::from_fn(|queue| {
                    let is_transfer = |op: &&u32| low.is_dma(**op);
                    Vec::with_capacity(low.queues[queue].iter().filter(is_transfer).count())
                }),
                met: Vec::new(),
            },
        }
    }

    /// The record, without the recorder's working data.
    pub(super) fn into_record(self) -> Record {
        self.record
    }
}

fn execution(start: Ps, end: Ps) -> Phase {
    Phase { kind: PhaseKind::Execute, start, end }
}

impl Observer for Recorder<'_> {
    fn stall(&mut self, queue: usize, until: Ps, cause: Cause) {
        self.record.lanes[queue].stall(until, cause);
    }

    fn busy(&mut self, queue: usize, until: Ps, op: u32) {
        self.record.lanes[queue].fill(until, State::Busy(EventId(op)));
    }

    fn phase(&mut self, kind: PhaseKind, start: Ps, end: Ps) {
        self.phases.push(Phase { kind, start, end });
    }

    fn started(&mut self, op: u32, queue: usize, cost: &Cost, started: Started) {
        let Op { trace, node, .. } = self.low.ops[op as usize];
        let Some(n) = self.low.node(op) else { return };
        let label = match &n.kind {
            NodeKind::Inst(inst) => inst.schema().name,
            _ => "",
        };
        let dma = match &cost.kind {
            CostKind::Dma(d) => Some(d.bytes),
            _ => None,
        };
        self.record.counts[queue] += 1;
        self.record.bytes += dma.unwrap_or(0);
        let origin = Origin {
            core: self.core,
            loc: n.loc,
            label,
            row: RowId(self.row_base + queue as u32),
            queue: dma.map(|_| RowId(self.row_base + (ENGINES + queue) as u32)),
            bytes: dma.unwrap_or(0),
            confidence: if dma.is_some() { cost.confidence } else { cost.confidence.max(Confidence::Documented) },
        };
        let Started { start, end, complete, released, .. } = started;
        let phases = match &self.phases[..] {
            [execute, drain]
                if *execute == execution(start, end) && drain.kind == PhaseKind::Drain && drain.start == end =>
            {
                Phases::Pass { drained: drain.end }
            }
            // The other times are known after the transfer has moved.
            [] if dma.is_some() => Phases::Transfer { arrive: end, alone: end, moved: end },
            listed => Phases::Listed(listed.into()),
        };
        self.phases.clear();
        let origin = match self.origins.get(&origin) {
            Some(known) => known.clone(),
            None => {
                let new = Arc::new(origin);
                self.origins.insert(new.clone());
                new
            }
        };
        self.record.events[op as usize] =
            Some(Event { origin, trace, node, trail: n.trail, tag: n.tag, start, end, complete, phases, released });
    }

    fn triggered(&mut self, op: u32, queue: usize, arrive: Ps) {
        let Some(event) = &mut self.record.events[op as usize] else { return };
        let (start, end) = (event.start, event.end);
        let before = match event.released {
            Release::Semaphore { from, hazard, subject } => Cause::Semaphore { from, hazard, subject },
            Release::Engine(e) => Cause::EngineOrder(e),
            Release::Barrier(_) => Cause::Barrier,
            _ => Cause::StartUp,
        };
        let transfers = &mut self.record.transfers[queue];
        self.transfer_of[op as usize] = transfers.len() as u32;
        transfers.push(Transfer {
            event: EventId(op),
            issue: (start, end),
            payload: arrive,
            unloaded: arrive,
            payload_end: arrive,
            complete: arrive,
            before,
        });
    }

    fn moved(&mut self, op: u32, queue: usize, cost: &DmaCost, end: Ps, complete: Ps) {
        let alone = cost.longest();
        let transfer = &mut self.record.transfers[queue][self.transfer_of[op as usize] as usize];
        transfer.payload_end = end;
        transfer.unloaded = (transfer.payload + alone + cost.payload).min(end);
        transfer.complete = complete;
        let t = *transfer;
        let Some(event) = &mut self.record.events[op as usize] else { return };
        event.complete = complete;
        event.phases = Phases::Transfer { arrive: t.payload, alone: t.unloaded, moved: end };
    }

    fn met(&mut self, op: u32, core: usize, its: u32) {
        self.record.met.push((op, core, its));
    }
}

/// The timeline of one rank, from the records of its cores. Its first core has index `base` among all cores.
pub(super) fn timeline(
    program: &Program,
    cores: Vec<Finished<Record>>,
    base: usize,
    machine: &MachineConstants,
) -> Timeline {
    let elapsed = elapsed(&cores, machine);
    let mut rows = Vec::new();
    let mut events = Vec::new();
    let mut records: Vec<Record> = cores.into_iter().map(|c| c.observer).collect();
    let renumbers: Vec<Renumber> =
        records.iter_mut().map(|r| hand_over(std::mem::take(&mut r.events), &mut events)).collect();
    for (own, record) in renumbers.iter().zip(&records) {
        for &(op, core, its) in &record.met {
            let event: &mut Event = &mut events[own.event(EventId(op)).0 as usize];
            event.released = Release::Peer(renumbers[core - base].event(EventId(its)));
        }
    }
    let mut dma = DmaStats::default();
    let mut moving = Vec::new();
    for (c, (record, renumber)) in records.into_iter().zip(&renumbers).enumerate() {
        dma.bytes += record.bytes;
        for ((lane, count), engine) in record.lanes.into_iter().zip(record.counts).zip(Engine::QUEUES) {
            let spans = lane.into_spans(elapsed).into_iter().map(|s| renumber.span(s)).collect();
            rows.push(Row { core: c as u32, kind: RowKind::Engine(engine), count, spans });
        }
        for (transfers, engine) in record.transfers.into_iter().zip(Engine::QUEUES) {
            let spans = dma_spans(&transfers, machine.head, elapsed).into_iter().map(|s| renumber.span(s)).collect();
            let count = transfers.len() as u64;
            dma.transfers += count;
            moving.extend(transfers.iter().map(|t| (t.payload, t.payload_end)));
            rows.push(Row { core: c as u32, kind: RowKind::DmaQueue(engine), count, spans });
        }
    }
    dma.active = union(moving);
    Timeline {
        kernel: program.name.clone(),
        elapsed,
        rows,
        events,
        dma,
        head: machine.head,
        tail: machine.tail,
        fixed: machine.fixed,
        over_capacity: false,
        names: Names::of(program),
    }
}
