//! What happened when: rows of busy and stalled intervals, and one event for each executed instruction.
//!
//! For every row, [`Row::spans`] tile `0..elapsed` without a gap: each is busy or stalled for one named cause.

mod rows;

use std::borrow::Cow;
use std::sync::Arc;

use nki_isa::ids::{Loc, TagId, TrailId};
use nki_isa::names::Engine;
use nki_isa::{Program, Space};
use smallvec::SmallVec;

pub use crate::deps::{Hazard, Subject};
use crate::trace::NodeIndex;
use nki_isa::schema::Confidence;

pub(crate) use rows::{Lane, Transfer, dma_spans, union};

/// Picoseconds from the start of the kernel.
pub type Ps = u64;

/// An event by position in [`Timeline::events`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub u32);

/// A row by position in [`Timeline::rows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub u32);

/// One run of a kernel in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// The kernel's name.
    pub kernel: Arc<str>,
    /// From the first fetch to the end.
    pub elapsed: Ps,
    /// Per core: the five engines in [`Engine::QUEUES`] order, then its DMA queues.
    pub rows: Vec<Row>,
    /// Executed instructions: by core, then in program order. Instructions without cost are left out.
    pub events: Vec<Event>,
    /// All transfers together.
    pub dma: DmaStats,
    /// Fixed time before the first instruction.
    pub head: Ps,
    /// Fixed time after the last completion.
    pub tail: Ps,
    /// How well head and tail are founded.
    pub fixed: Confidence,
    /// The kernel does not fit into the memories, and was run all the same: its times mean nothing.
    pub over_capacity: bool,
    /// Names of tensors and files, for reports.
    pub names: Names,
}

/// Names that reports print.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Names {
    /// By tensor id.
    pub tensors: Vec<Arc<str>>,
    /// By tensor id.
    pub spaces: Vec<Space>,
    /// By file index.
    pub files: Vec<Arc<str>>,
    /// Names of instructions by tag; empty where the kernel gives none.
    pub tags: Vec<Arc<str>>,
}

impl Names {
    /// The names in a program.
    pub fn of(program: &Program) -> Self {
        Names {
            tensors: program.tensors.iter().map(|t| t.name.clone()).collect(),
            spaces: program.tensors.iter().map(|t| t.space).collect(),
            files: program.files.clone(),
            tags: program.tags.iter().map(|t| t.name.clone()).collect(),
        }
    }
}

/// DMA totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DmaStats {
    /// Bytes moved, counted at the destination.
    pub bytes: u64,
    /// DMA instructions executed.
    pub transfers: u64,
    /// Time in which at least one transfer moved bytes.
    pub active: Ps,
}

/// An engine's or a DMA queue's time.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The core.
    pub core: u32,
    /// What it is.
    pub kind: RowKind,
    /// Instructions run (engines) or transfers carried (queues).
    pub count: u64,
    /// Tiles `0..elapsed`.
    pub spans: Vec<Span>,
}

/// What a row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowKind {
    /// An engine's instruction queue.
    Engine(Engine),
    /// The DMA queue that an engine triggers.
    DmaQueue(Engine),
}

impl RowKind {
    /// `tensor`, `vector`, ..., `dma-sync`, ...
    pub fn name(self) -> &'static str {
        match self {
            RowKind::Engine(Engine::Tensor) => "tensor",
            RowKind::Engine(Engine::Vector) => "vector",
            RowKind::Engine(Engine::Scalar) => "scalar",
            RowKind::Engine(Engine::GpSimd) => "gpsimd",
            RowKind::Engine(_) => "sync",
            RowKind::DmaQueue(Engine::Tensor) => "dma-tensor",
            RowKind::DmaQueue(Engine::Vector) => "dma-vector",
            RowKind::DmaQueue(Engine::Scalar) => "dma-scalar",
            RowKind::DmaQueue(Engine::GpSimd) => "dma-gpsimd",
            RowKind::DmaQueue(_) => "dma-sync",
        }
    }
}

impl Row {
    /// Time in busy spans.
    pub fn busy(&self) -> Ps {
        self.spans.iter().filter(|s| matches!(s.state, State::Busy(_))).map(|s| s.end - s.start).sum()
    }

    /// Time in which an engine works: busy, or slowed by the power limiter.
    pub fn active(&self) -> Ps {
        let works = |s: &&Span| matches!(s.state, State::Busy(_) | State::Stalled(Cause::Limiter));
        self.spans.iter().filter(works).map(|s| s.end - s.start).sum()
    }
}

/// A part of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Start.
    pub start: Ps,
    /// End, exclusive; after `start`.
    pub end: Ps,
    /// Busy or stalled.
    pub state: State,
}

/// What a row does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Works on this event.
    Busy(EventId),
    /// Waits.
    Stalled(Cause),
}

/// Why a row waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The kernel is being set up.
    StartUp,
    /// Nothing is left for it to do.
    Finished,
    /// The next instruction needs an earlier one of another queue (or, in the same engine, its result).
    Semaphore {
        /// The instruction waited for.
        from: EventId,
        /// Why.
        hazard: Hazard,
        /// Through what.
        subject: Subject,
    },
    /// The engine that feeds it is at an earlier instruction.
    EngineOrder(EventId),
    /// The DMA engines are shared with other transfers.
    DmaBandwidth,
    /// A transfer is on its way: dispatched but not yet moving, or moved but not yet announced.
    DmaLatency,
    /// The power limiter slows the tensor engine.
    Limiter,
    /// A function table is loaded.
    TableLoad,
    /// The memory port that vector and GpSimd engine share is taken by this event.
    Port(EventId),
    /// A dynamic loop or branch: all engines wait for each other.
    Barrier,
    /// A `core_barrier`, `sendrecv` or collective: this one comes last.
    Peer(Peer),
}

/// Who is waited for at a rendezvous of cores or ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Peer {
    /// The other core of the logical core.
    Core(u32),
    /// Another rank.
    Rank(u32),
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Core(n) => write!(f, "core {n}"),
            Peer::Rank(n) => write!(f, "rank {n}"),
        }
    }
}

impl Cause {
    /// A short name without its parameters.
    pub fn name(self) -> &'static str {
        match self {
            Cause::StartUp => "start-up",
            Cause::Finished => "finished",
            Cause::Semaphore { .. } => "semaphore",
            Cause::EngineOrder(_) => "engine-order",
            Cause::DmaBandwidth => "dma-bandwidth",
            Cause::DmaLatency => "dma-latency",
            Cause::Limiter => "limiter",
            Cause::TableLoad => "table-load",
            Cause::Port(_) => "port",
            Cause::Barrier => "barrier",
            Cause::Peer(_) => "peer",
        }
    }
}

/// What the instructions that an unrolled loop repeats have in common: it is kept once for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The core.
    pub core: u32,
    /// Its place in the source.
    pub loc: Loc,
    /// NKI's name of the instruction.
    pub label: &'static str,
    /// The engine row it is issued on.
    pub row: RowId,
    /// The DMA queue row, for transfers.
    pub queue: Option<RowId>,
    /// Bytes moved by DMA.
    pub bytes: u64,
    /// The weakest parameter in its cost.
    pub confidence: Confidence,
}

/// An executed instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What it has in common with others.
    pub origin: Arc<Origin>,
    /// Position in that core's trace.
    pub trace: u32,
    /// The statement.
    pub node: NodeIndex,
    /// The iterations around it.
    pub trail: TrailId,
    /// Its tag, which may have a name that the kernel gave (see [`Timeline::label`]).
    pub tag: Option<TagId>,
    /// Start on the engine.
    pub start: Ps,
    /// The engine is free for the next instruction.
    pub end: Ps,
    /// Its results are there for others (before the semaphore's own latency).
    pub complete: Ps,
    /// See [`Event::phases`].
    pub(crate) phases: Phases,
    /// What let it start.
    pub released: Release,
}

// Each executed instruction has one (docs/performance.md, memory of an instruction).
const _: () = assert!(size_of::<Event>() <= 104 && size_of::<Span>() <= 32);

/// What an event spent its time on, without what follows from its start, its end and its completion.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Phases {
    /// It executed from its start to its end, and its results drained.
    Pass {
        /// Until when.
        drained: Ps,
    },
    /// It was issued from its start to its end, and then a transfer.
    Transfer {
        /// When it reached the DMA engines.
        arrive: Ps,
        /// When its payload would have been moved without others.
        alone: Ps,
        /// When its payload was moved.
        moved: Ps,
    },
    /// Anything else.
    Listed(Box<[Phase]>),
}

impl Event {
    /// What it spent its time on. May overlap the phases of its neighbours.
    pub fn phases(&self) -> SmallVec<[Phase; 5]> {
        let phase = |kind, start, end| Phase { kind, start, end };
        match &self.phases {
            Phases::Pass { drained } => SmallVec::from_slice(&[
                phase(PhaseKind::Execute, self.start, self.end),
                phase(PhaseKind::Drain, self.end, *drained),
            ]),
            &Phases::Transfer { arrive, alone, moved } => {
                let mut out = SmallVec::from_slice(&[
                    phase(PhaseKind::Issue, self.start, self.end),
                    phase(PhaseKind::Dispatch, self.end, arrive),
                    phase(PhaseKind::Payload, arrive, alone),
                ]);
                if moved > alone {
                    out.push(phase(PhaseKind::Bandwidth, alone, moved));
                }
                out.push(phase(PhaseKind::Notify, moved, self.complete));
                out
            }
            Phases::Listed(all) => SmallVec::from_slice(all),
        }
    }

    /// When a transfer reached the DMA engines, and when its bytes had moved.
    pub(crate) fn moving(&self) -> Option<(Ps, Ps)> {
        match self.phases {
            Phases::Transfer { arrive, moved, .. } => Some((arrive, moved)),
            _ => None,
        }
    }
}

/// A part of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// What.
    pub kind: PhaseKind,
    /// Start.
    pub start: Ps,
    /// End.
    pub end: Ps,
}

/// What an event spends time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PhaseKind {
    /// A function table is loaded before it.
    TableLoad,
    /// Weights are loaded into the tensor engine.
    Weights,
    /// Elements stream through the engine.
    Execute,
    /// The power limiter stretches it.
    Limiter,
    /// Results drain into memory.
    Drain,
    /// The engine makes descriptors, or has the hardware make them.
    Issue,
    /// The transfer travels to the DMA engines.
    Dispatch,
    /// Bytes move.
    Payload,
    /// Bytes move more slowly than alone: the engines are shared.
    Bandwidth,
    /// The completion travels back.
    Notify,
}

impl PhaseKind {
    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            PhaseKind::TableLoad => "table-load",
            PhaseKind::Weights => "weights",
            PhaseKind::Execute => "execute",
            PhaseKind::Limiter => "limiter",
            PhaseKind::Drain => "drain",
            PhaseKind::Issue => "issue",
            PhaseKind::Dispatch => "dispatch",
            PhaseKind::Payload => "payload",
            PhaseKind::Bandwidth => "bandwidth",
            PhaseKind::Notify => "notify",
        }
    }
}

/// The last thing that an event waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Nothing: the kernel's start.
    Start,
    /// The instruction before it on its engine.
    Engine(EventId),
    /// A dependence.
    Semaphore {
        /// The instruction waited for.
        from: EventId,
        /// Why.
        hazard: Hazard,
        /// Through what.
        subject: Subject,
    },
    /// The shared memory port.
    Port(EventId),
    /// A barrier, whose last arrival was this event.
    Barrier(Option<EventId>),
    /// A rendezvous of cores to which this event came last.
    Peer(EventId),
    /// The transfer before it in its DMA queue, whose bytes were still moving. Only on the critical path: the transfer was triggered before that.
    Transfer(EventId),
}

impl Timeline {
    /// The event with this id.
    pub fn event(&self, id: EventId) -> &Event {
        &self.events[id.0 as usize]
    }

    /// The name of what a dependence goes through.
    pub fn subject(&self, subject: Subject) -> String {
        match subject {
            Subject::Tensor(t) => {
                self.names.tensors.get(t.0 as usize).map_or_else(|| format!("tensor {}", t.0), |n| n.to_string())
            }
            Subject::Register(r) => format!("register {}", r.0),
            Subject::Tag(t) => match self.names.tags.get(t.0 as usize) {
                Some(name) if !name.is_empty() => format!("`{name}`"),
                _ => "depends_on".to_owned(),
            },
        }
    }

    /// NKI's name of the instruction, with the one that the kernel gave it, if any: "dma_copy `weights`".
    pub fn label(&self, event: &Event) -> Cow<'static, str> {
        match event.tag.and_then(|t| self.names.tags.get(t.0 as usize)) {
            Some(name) if !name.is_empty() => format!("{} `{name}`", event.origin.label).into(),
            _ => event.origin.label.into(),
        }
    }

    /// `file.py:12`, or an empty string.
    pub fn place(&self, loc: Loc) -> String {
        match self.names.files.get(loc.file as usize) {
            Some(file) if loc.line > 0 => format!("{file}:{}", loc.line),
            _ if loc.line > 0 => format!("line {}", loc.line),
            _ => String::new(),
        }
    }
}
