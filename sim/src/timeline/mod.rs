//! The timeline of a run: rows of busy and stalled intervals, and one event for each executed instruction.
//!
//! For every row, [`Row::spans`] partition `0..elapsed`: each is busy or stalled for one named cause.

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

/// The timeline of one run of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// The kernel's name.
    pub kernel: Arc<str>,
    /// From the first fetch to the end.
    pub elapsed: Ps,
    /// Per core: the five engines in [`Engine::QUEUES`] order, then its DMA queues.
    pub rows: Vec<Row>,
    /// Executed instructions: by core, then in program order. Instructions without cost are omitted.
    pub events: Vec<Event>,
    /// All transfers together.
    pub dma: DmaStats,
    /// Fixed time before the first instruction.
    pub head: Ps,
    /// Fixed time after the last completion.
    pub tail: Ps,
    /// The confidence of head and tail.
    pub fixed: Confidence,
    /// The kernel exceeds its memories but was run anyway: its times are meaningless.
    pub over_capacity: bool,
    /// Names of tensors and files, for reports.
    pub names: Names,
}

/// Names that reports print.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Names {
    /// Names of the tensors, by id.
    pub tensors: Vec<Arc<str>>,
    /// Memories of the tensors, by id.
    pub spaces: Vec<Space>,
    /// Paths of the source files, by index.
    pub files: Vec<Arc<str>>,
    /// Names of instructions by tag; empty if the kernel defines none.
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

/// The time of an engine or a DMA queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The core.
    pub core: u32,
    /// The engine or queue.
    pub kind: RowKind,
    /// Instructions run (engines) or transfers carried (queues).
    pub count: u64,
    /// Contiguous intervals that cover `0..elapsed`.
    pub spans: Vec<Span>,
}

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowKind {
    /// An engine's instruction queue.
    Engine(Engine),
    /// The DMA queue triggered by an engine.
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

    /// Busy time of an engine, including slowdown by the power limiter.
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

/// The state of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Works on this event.
    Busy(EventId),
    /// Waits.
    Stalled(Cause),
}

/// The cause of a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The kernel is being set up.
    StartUp,
    /// It has no more work.
    Finished,
    /// The next instruction depends on an earlier one of another queue (or on its result, in the same engine).
    Semaphore {
        /// The instruction waited for.
        from: EventId,
        /// The kind of the dependence.
        hazard: Hazard,
        /// The subject of the dependence.
        subject: Subject,
    },
    /// The engine that triggers it is at an earlier instruction.
    EngineOrder(EventId),
    /// The DMA engines are shared with other transfers.
    DmaBandwidth,
    /// A transfer is in flight: dispatched but not yet moving, or moved but not yet signalled.
    DmaLatency,
    /// The power limiter slows the tensor engine.
    Limiter,
    /// A function table is loaded.
    TableLoad,
    /// The memory port shared by the vector engine and GpSimd is in use by this event.
    Port(EventId),
    /// A dynamic loop or branch: all engines wait for each other.
    Barrier,
    /// Wait for this last member of a `core_barrier`, `sendrecv` or collective.
    Peer(Peer),
}

/// The last member to arrive at a rendezvous.
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
    /// The name of the variant, without its fields.
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

/// The common data of an unrolled loop's repeated instructions, stored once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The core.
    pub core: u32,
    /// Its place in the source.
    pub loc: Loc,
    /// NKI's name of the instruction.
    pub label: &'static str,
    /// The row of the issuing engine.
    pub row: RowId,
    /// The DMA queue row, for transfers.
    pub queue: Option<RowId>,
    /// Bytes moved by DMA.
    pub bytes: u64,
    /// The lowest confidence among the parameters of its cost.
    pub confidence: Confidence,
}

/// An executed instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Data shared with other events.
    pub origin: Arc<Origin>,
    /// Position in that core's trace.
    pub trace: u32,
    /// The statement.
    pub node: NodeIndex,
    /// The iterations around it.
    pub trail: TrailId,
    /// Its tag, which may have a name from the kernel (see [`Timeline::label`]).
    pub tag: Option<TagId>,
    /// Start on the engine.
    pub start: Ps,
    /// The engine is free for the next instruction.
    pub end: Ps,
    /// Its results are available to others (before the semaphore's own latency).
    pub complete: Ps,
    /// See [`Event::phases`].
    pub(crate) phases: Phases,
    /// The last event that it waited for.
    pub released: Release,
}

// There is one per executed instruction (docs/performance.md, memory of an instruction).
const _: () = assert!(size_of::<Event>() <= 104 && size_of::<Span>() <= 32);

/// The phases of an event, without those implied by its start, end and completion.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Phases {
    /// It executed from its start to its end, followed by draining.
    Pass {
        /// Time when its results were in memory.
        drained: Ps,
    },
    /// It was issued from its start to its end, followed by a transfer.
    Transfer {
        /// Arrival at the DMA engines.
        arrive: Ps,
        /// End of the payload in the absence of other transfers.
        alone: Ps,
        /// Time when its payload was moved.
        moved: Ps,
    },
    /// Any other sequence of phases.
    Listed(Box<[Phase]>),
}

impl Event {
    /// Its phases, which may overlap those of adjacent events.
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

    /// Whether it is a transfer whose bytes took longer than they would alone.
    pub(crate) fn is_delayed(&self) -> bool {
        matches!(self.phases, Phases::Transfer { alone, moved, .. } if alone < moved)
    }

    /// For a transfer, the times of its arrival at the DMA engines and of its last byte.
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
    /// Its kind.
    pub kind: PhaseKind,
    /// Start.
    pub start: Ps,
    /// End.
    pub end: Ps,
}

/// A phase of an event.
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
    /// The engine builds descriptors, or triggers the hardware to build them.
    Issue,
    /// The transfer is on its way to the DMA engines.
    Dispatch,
    /// Bytes move.
    Payload,
    /// Additional transfer time because the engines are shared.
    Bandwidth,
    /// The completion is on its way back.
    Notify,
    /// The ranks of a collective exchange data.
    Collective,
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
            PhaseKind::Collective => "collective",
        }
    }
}

/// The last event that an event waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Nothing: the kernel's start.
    Start,
    /// The previous instruction of its engine.
    Engine(EventId),
    /// A dependence.
    Semaphore {
        /// The instruction waited for.
        from: EventId,
        /// The kind of the dependence.
        hazard: Hazard,
        /// The subject of the dependence.
        subject: Subject,
    },
    /// The shared memory port.
    Port(EventId),
    /// A barrier whose last arrival was this event.
    Barrier(Option<EventId>),
    /// A rendezvous of cores whose last arrival was this event.
    Peer(EventId),
    /// The previous transfer in its DMA queue, whose bytes were still moving. Only on the critical path: the transfer had been triggered before.
    Transfer(EventId),
}

impl Timeline {
    /// The event with this id.
    pub fn event(&self, id: EventId) -> &Event {
        &self.events[id.0 as usize]
    }

    /// The name of the object of a dependence.
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

    /// NKI's name of the instruction, with the kernel's name for it, if any: "dma_copy `weights`".
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
