//! Measurements in profiles: recorded durations and gaps, each with the corresponding quantity of the model.

use std::collections::BTreeMap;

use nki_isa::names::{DgeMode, Engine, Named, Space};
use nki_isa::work::{Dma, DmaSide, Work, WorkKind};
use nki_sim_core::timing::cost::{CostKind, CostModel};
use nki_sim_core::timing::fixed::Millionths;
use nki_sim_core::timing::replay::{Recorded, RecordedKind, cost};
use nki_sim_core::timing::{Laws, Params};

use crate::profile::{Core, HardwareProfile, Mapped, Ns, PacketKind, Part, Role};

/// A quantity of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Quantity {
    /// From the start of an instruction until its engine can start another.
    Occupancy(Recorded),
    /// From the start of an instruction until its results are available.
    Completion(Recorded),
    /// From the start of a matmul to that of the next, at the full or the limited rate.
    Pass(Recorded, bool),
    /// From the start of a matmul until its results are available.
    Matmul(Recorded, bool),
    /// Time that a trigger occupies its engine.
    Trigger(Recorded),
    /// From the start of a trigger to the first packet.
    Arrival(Recorded),
    /// From the earliest start of a trigger until its transfer is visible. The flag is the dependence that determined that start: a transfer (true),
    /// or an engine.
    Transfer(Recorded, Option<bool>),
    /// From the first packet of an isolated transfer to the end of the last.
    Payload(Recorded),
    /// From the end of the last packet until the semaphore is visible.
    Notification(Recorded),
    /// From one packet of this size to the next on a DMA engine.
    Packet(u64),
    /// From a completion until a dependent instruction of this engine starts.
    Semaphore(Engine),
    /// The same from the completion of a transfer.
    DmaSemaphore(Engine),
    /// The load of a function table.
    TableLoad,
    /// From the start of the profile to the first instructions of the program.
    Head,
    /// From the last completion to the end of the profile.
    Tail,
    /// A number of periods of the power limiter.
    Periods(u32),
}

impl Quantity {
    /// The value predicted by the laws, ns.
    pub(super) fn predicted(&self, laws: &Laws<'_>) -> f64 {
        let machine = laws.machine();
        let ps = match self {
            Quantity::Occupancy(r) | Quantity::Completion(r) => match cost(r, 0, laws).kind {
                CostKind::Compute { occupancy, .. } if matches!(self, Quantity::Occupancy(_)) => occupancy,
                CostKind::Compute { complete, .. } => complete,
                _ => 0,
            },
            Quantity::Pass(r, full) | Quantity::Matmul(r, full) => match cost(r, 0, laws).kind {
                CostKind::Matmul { moving, least, drain, .. } => {
                    let rate = if *full { Millionths::FULL } else { machine.limiter.rate };
                    let drain = if matches!(self, Quantity::Matmul(..)) { drain } else { 0 };
                    rate.stretched(moving).max(least) + drain
                }
                _ => 0,
            },
            Quantity::Trigger(r)
            | Quantity::Arrival(r)
            | Quantity::Transfer(r, _)
            | Quantity::Payload(r)
            | Quantity::Notification(r) => {
                let CostKind::Dma(dma) = cost(r, 0, laws).kind else { return 0.0 };
                let trigger = if r.queue == Engine::GpSimd { dma.software } else { dma.hardware };
                let arrival = trigger.occupancy + trigger.dispatch;
                let payload = dma.longest() + dma.payload;
                match self {
                    Quantity::Trigger(_) => trigger.occupancy,
                    Quantity::Arrival(_) => arrival,
                    Quantity::Transfer(_, held_by) => {
                        let semaphore = match held_by {
                            Some(true) => machine.dma_semaphore[queue(r.queue)],
                            Some(false) => machine.semaphore[queue(r.queue)],
                            None => 0,
                        };
                        semaphore + arrival + payload + dma.notify
                    }
                    Quantity::Payload(_) => payload,
                    _ => dma.notify,
                }
            }
            Quantity::Packet(bytes) => match cost(&packet(*bytes), 0, laws).kind {
                CostKind::Dma(dma) => dma.engines.iter().map(|e| e.1).sum(),
                _ => 0,
            },
            Quantity::Semaphore(e) => machine.semaphore[queue(*e)],
            Quantity::DmaSemaphore(e) => machine.dma_semaphore[queue(*e)],
            Quantity::TableLoad => machine.table_load,
            Quantity::Head => machine.head,
            Quantity::Tail => machine.tail,
            Quantity::Periods(n) => machine.limiter.period * u64::from(*n),
        };
        ps as f64 / 1e3
    }
}

fn queue(engine: Engine) -> usize {
    Engine::QUEUES.iter().position(|e| *e == engine).unwrap_or(0)
}

/// A transfer of one packet.
fn packet(bytes: u64) -> Recorded {
    let run_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let side = |space| DmaSide { space, partitions: (0, 1), run_bytes, runs: 1, stride_bytes: 0 };
    let dma = Dma {
        src: side(Space::Hbm),
        dst: side(Space::Sbuf),
        bytes,
        elements: bytes,
        dge: DgeMode::HwDge,
        dynamic: false,
        indexed: false,
        indirect: false,
        transpose: false,
        cast: false,
    };
    let work = Work { engine: Engine::Sync, kind: WorkKind::Dma(dma) };
    Recorded {
        queue: Engine::Sync,
        kind: RecordedKind::Work { work: Box::new(work), partition: Some(0), loads_weights: false },
        waits: Vec::new(),
    }
}

/// All measurements of one quantity.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) quantity: Quantity,
    /// ns.
    pub(super) measured: Vec<f64>,
}

/// Measurements by description of their class.
pub(super) type Classes = BTreeMap<String, Class>;

/// A start that is later than this after the semaphore has another cause, ns.
const LONGEST_SEMAPHORE: Ns = 300;

/// Adds the measurements in a profile; `start` are the parameters before the fit.
pub(super) fn add(profile: &HardwareProfile, start: &Params, classes: &mut Classes) {
    let mut last = None;
    for (_, core) in profile.busy_cores() {
        let mapped = Mapped::of(core);
        let longest = core.packets.iter().map(|p| p.end - p.start).max().unwrap_or(0);
        let mut of = Collector { core, mapped: &mapped, classes, total: profile.total, longest };
        of.engines();
        of.transfers();
        of.limiter(start.tensor.limiter_period_ns.value);
        last = last.max(mapped.ops.iter().map(|o| o.complete).max());
    }
    if let Some(last) = last
        && last < profile.total
    {
        note(classes, "end".into(), Quantity::Tail, (profile.total - last) as f64);
    }
}

fn note(classes: &mut Classes, name: String, quantity: Quantity, measured: f64) {
    classes.entry(name).or_insert_with(|| Class { quantity, measured: Vec::new() }).measured.push(measured);
}

struct Collector<'a> {
    core: &'a Core,
    mapped: &'a Mapped,
    classes: &'a mut Classes,
    total: Ns,
    /// The longest packet.
    longest: Ns,
}

impl Collector<'_> {
    fn note(&mut self, name: String, quantity: Quantity, measured: Ns) {
        note(self.classes, name, quantity, measured as f64);
    }

    /// The parts of an operation that are timed: all except weight loads.
    fn parts(&self, op: usize) -> impl Iterator<Item = &Part> {
        self.mapped.ops[op].parts.iter().filter(|p| !matches!(p.role, Role::Weights(_)))
    }

    fn start(&self, op: usize) -> Ns {
        self.parts(op).map(|p| self.core.instructions[p.instruction].start).min().unwrap_or(0)
    }

    fn end(&self, op: usize) -> Ns {
        self.parts(op).map(|p| self.core.instructions[p.instruction].end).max().unwrap_or(0)
    }

    /// The start of its first instruction.
    fn issue(&self, op: usize) -> Ns {
        self.mapped.issue(self.core, op)
    }

    /// Completion of all its dependences.
    fn ready(&self, op: usize) -> Option<Ns> {
        self.mapped.stream[op].waits.iter().map(|w| self.mapped.ops[*w as usize].complete).max()
    }

    /// The name of its class.
    fn name(&self, op: usize, what: &str) -> String {
        let o = &self.mapped.ops[op];
        let scalars = match self.work(op) {
            Some(WorkKind::Stream(s)) => s.scalar_reads,
            _ => 0,
        };
        let opcode = self.parts(op).next().map_or("", |p| &self.core.instructions[p.instruction].opcode);
        let function = self.parts(op).next().map_or("", |p| &self.core.instructions[p.instruction].function);
        format!("{what}: {} {opcode} {function} {} {scalars}", self.mapped.stream[op].queue.name(), o.shape)
    }

    /// The operation without its waits, independent of its position.
    fn recorded(&self, op: usize) -> Recorded {
        Recorded { waits: Vec::new(), ..self.mapped.stream[op].clone() }
    }

    fn work(&self, op: usize) -> Option<&WorkKind> {
        match &self.mapped.stream[op].kind {
            RecordedKind::Work { work, .. } => Some(&work.kind),
            _ => None,
        }
    }

    fn queue(&self, engine: Engine) -> Vec<usize> {
        (0..self.mapped.ops.len()).filter(|o| self.mapped.stream[*o].queue == engine).collect()
    }

    fn engines(&mut self) {
        for engine in Engine::QUEUES {
            let queue = self.queue(engine);
            for (n, &op) in queue.iter().enumerate() {
                let before = n.checked_sub(1).map(|n| queue[n]);
                self.semaphore(engine, op, before);
                let next = queue.get(n + 1).copied().filter(|next| self.unblocked(*next, op));
                match &self.mapped.stream[op].kind {
                    RecordedKind::TableLoad => {
                        self.note("table load".into(), Quantity::TableLoad, self.end(op) - self.start(op));
                    }
                    RecordedKind::Work { work, .. } => match work.kind {
                        WorkKind::Matmul(_) => self.matmul(op, next),
                        WorkKind::Stream(_) => self.pass(op, next),
                        _ => {}
                    },
                    RecordedKind::Known { .. } => {}
                }
            }
            if let Some(first) = self.mapped.first(engine) {
                self.note("start".into(), Quantity::Head, self.issue(first));
            }
        }
    }

    /// Whether the dependences of `op` had completed when the previous operation started.
    fn unblocked(&self, op: usize, before: usize) -> bool {
        self.ready(op).is_none_or(|ready| ready <= self.start(before))
    }

    fn pass(&mut self, op: usize, next: Option<usize>) {
        let name = self.name(op, "completion");
        self.note(name, Quantity::Completion(self.recorded(op)), self.end(op) - self.start(op));
        // Triggers and waits do not use the data path: they start while it is still busy.
        if let Some(next) = next.filter(|n| self.work(*n).is_some_and(|k| matches!(k, WorkKind::Stream(_)))) {
            let name = self.name(op, "occupancy");
            self.note(name, Quantity::Occupancy(self.recorded(op)), self.issue(next) - self.start(op));
        }
    }

    fn matmul(&mut self, op: usize, next: Option<usize>) {
        let Some(full) = self.rate(self.start(op), self.end(op)) else { return };
        let what = |what: &str| format!("{what} at the {} rate", if full { "full" } else { "limited" });
        let name = self.name(op, &what("matmul"));
        self.note(name, Quantity::Matmul(self.recorded(op), full), self.end(op) - self.start(op));
        if let Some(next) = next.filter(|n| self.work(*n).is_some_and(|k| matches!(k, WorkKind::Matmul(_)))) {
            let name = self.name(op, &what("pass"));
            self.note(name, Quantity::Pass(self.recorded(op), full), self.start(next) - self.start(op));
        }
    }

    /// Whether the tensor engine had its full rate during the whole interval; `None` if the rate changed or is unknown.
    fn rate(&self, from: Ns, to: Ns) -> Option<bool> {
        let limiter = &self.core.limiter;
        let first = limiter.first()?;
        if to <= first.0 {
            // Before the first record the rate is the opposite: the engine starts with the limited rate.
            return first.2.then_some(false);
        }
        limiter.iter().find(|(at, length, _)| *at <= from && to <= at + length).map(|l| l.2)
    }

    /// Records a start that only a semaphore delayed.
    fn semaphore(&mut self, engine: Engine, op: usize, before: Option<usize>) {
        let by_software = engine == Engine::GpSimd && self.mapped.is_dma(op);
        let Some(ready) = self.ready(op).filter(|_| !by_software) else { return };
        let late = self.issue(op) - ready;
        let idle = before.is_none_or(|b| self.end(b) < ready);
        if !idle || !(1..=LONGEST_SEMAPHORE).contains(&late) {
            return;
        }
        let name = engine.name();
        match self.last_waits(op, ready)[..] {
            [true] => self.note(format!("DMA semaphore to {name}"), Quantity::DmaSemaphore(engine), late),
            [false] => self.note(format!("semaphore to {name}"), Quantity::Semaphore(engine), late),
            _ => {}
        }
    }

    fn transfers(&mut self) {
        for engine in Engine::QUEUES {
            let queue = self.queue(engine);
            let mut busy_until = 0;
            let mut first_before = None;
            for (n, &op) in queue.iter().enumerate() {
                if !self.mapped.is_dma(op) {
                    continue;
                }
                let before = n.checked_sub(1).map(|n| queue[n]);
                if engine != Engine::GpSimd {
                    let name = self.name(op, "trigger");
                    self.note(name, Quantity::Trigger(self.recorded(op)), self.end(op) - self.start(op));
                }
                let Some(number) = self.mapped.ops[op].transfer else { continue };
                let Some((first, last)) = self.mapped.transfers[number].span() else { continue };
                let free = before.filter(|b| self.mapped.is_dma(*b) && self.unblocked(op, *b));
                if let (Engine::GpSimd, Some(before), Some(step)) = (engine, free, first_before.map(|f| first - f)) {
                    // The record of a trigger has only the end of GpSimd's work: the time from transfer to transfer is its full duration.
                    let name = self.name(before, "trigger");
                    self.note(name, Quantity::Trigger(self.recorded(before)), step);
                }
                first_before = Some(first);
                if busy_until <= self.start(op) {
                    self.arrival(op, first);
                }
                busy_until = busy_until.max(last);
                // Software descriptors reach the DMA engines one by one, so the first packets wait for the rest.
                if engine != Engine::GpSimd && self.alone(first, last, self.mapped.transfers[number].packets.len()) {
                    let name = self.name(op, "payload");
                    self.note(name, Quantity::Payload(self.recorded(op)), last - first);
                }
                let visible = self.mapped.ops[op].complete;
                if visible > last {
                    let name = self.name(op, "notification");
                    self.note(name, Quantity::Notification(self.recorded(op)), visible - last);
                }
            }
        }
        self.packets();
    }

    /// Records the time from the earliest start of a trigger: with hardware descriptors, to the first packet. Software descriptors reach the DMA
    /// engines one by one, so the first packet is not meaningful; the time until the data is visible is used instead.
    fn arrival(&mut self, op: usize, first: Ns) {
        let instruction = self.mapped.ops[op].first_instruction();
        let own = &self.core.instructions[instruction];
        if own.engine != Engine::GpSimd {
            if own.start < first {
                let name = self.name(op, "arrival");
                self.note(name, Quantity::Arrival(self.recorded(op)), first - own.start);
            }
            return;
        }
        let before = self.core.instructions[..instruction].iter().rev().find(|i| i.engine == own.engine).map(|b| b.end);
        let (ready, visible) = (self.ready(op), self.mapped.ops[op].complete);
        let Some(from) = ready.into_iter().chain(before).max().filter(|from| *from < visible) else { return };
        let held_by = match ready.filter(|ready| before.is_none_or(|b| b < *ready)) {
            None => None,
            Some(ready) => match self.last_waits(op, ready)[..] {
                [is_dma] => Some(is_dma),
                _ => return,
            },
        };
        let what = match held_by {
            None => "transfer",
            Some(true) => "transfer behind a transfer",
            Some(false) => "transfer behind an engine",
        };
        let name = self.name(op, what);
        self.note(name, Quantity::Transfer(self.recorded(op), held_by), visible - from);
    }

    /// For the dependences of `op` that completed at `ready`: whether each is a transfer.
    fn last_waits(&self, op: usize, ready: Ns) -> Vec<bool> {
        let last = self.mapped.stream[op].waits.iter().filter(|w| self.mapped.ops[**w as usize].complete == ready);
        last.map(|w| self.mapped.is_dma(*w as usize)).collect()
    }

    /// Whether only this number of packets moved in an interval.
    fn alone(&self, first: Ns, last: Ns, packets: usize) -> bool {
        let list = &self.core.packets;
        // Sorted by start; no packet is longer than the longest.
        let near = &list[list.partition_point(|p| p.start < first - self.longest)..];
        near.iter().take_while(|p| p.start < last).filter(|p| p.is_data() && p.end > first).count() == packets
    }

    /// Records the times from packet to packet on an engine, as long as it serves one queue.
    fn packets(&mut self) {
        let mut last: BTreeMap<u32, (Ns, u32, u64)> = BTreeMap::new();
        let mut found = Vec::new();
        for p in &self.core.packets {
            if let Some((start, queue, bytes)) = last.insert(p.engine, (p.start, p.queue, p.bytes))
                && queue == p.queue
                && bytes == p.bytes
                && p.is_data()
                // A software descriptor's packet may contain several rows.
                && p.kind == PacketKind::Hardware
            {
                found.push((p.bytes, p.start - start));
            }
        }
        for (bytes, step) in found {
            self.note(format!("packet of {bytes} bytes"), Quantity::Packet(bytes), step);
        }
    }

    /// Records complete states of the limiter: whole numbers of periods of about `period` nanoseconds.
    fn limiter(&mut self, period: f64) {
        let ended: Vec<Ns> =
            self.core.limiter.windows(2).filter(|w| w[0].0 + w[0].1 < self.total).map(|w| w[1].0 - w[0].0).collect();
        for length in ended {
            let n = (length as f64 / period).round() as u32;
            if n > 0 {
                self.note(format!("{n} periods of the limiter"), Quantity::Periods(n), length);
            }
        }
    }
}
