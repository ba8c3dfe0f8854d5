//! The summary that `--json` writes.

use nki_isa::names::Engine;
use nki_isa::schema::Confidence;
use serde::Serialize;

use super::vocabulary::{resource, short_cause, verdict_sentence};
use crate::analysis::error_bar::ErrorBar;
use crate::analysis::{cause_kind, confidence, critical_path, stalls, verdict};
use crate::place::Placement;
use crate::timeline::{Ps, Row, RowKind, Timeline};

/// One run in numbers. Times are microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The latency of the kernel.
    pub latency_us: f64,
    /// Whether the latency is meaningful: not if the kernel does not fit into SBUF or PSUM (`--capacity warn`).
    pub latency_valid: bool,
    /// The expected range of the latency on hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_error: Option<ErrorBar>,
    /// By engine, over all cores.
    pub engines: Engines,
    /// By core, for several cores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<CoreSummary>,
    /// Transfers.
    pub dma: DmaSummary,
    /// Peak memory usage.
    pub memory: Memory,
    /// By engine or DMA queue and cause, longest first within a row; together with the active time they add up to the latency.
    pub stalls: Vec<StallSummary>,
    /// The bottleneck, in words.
    pub verdict: String,
    /// The critical path by resource; adds up to the latency.
    pub critical_resources: Vec<Part>,
    /// The critical path by source line, most expensive first.
    pub critical_lines: Vec<PathStep>,
    /// Time on the critical path by the confidence of the underlying parameters; adds up to the latency.
    pub confidence: Vec<Part>,
}

/// One core of a logical core.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoreSummary {
    /// Its number.
    pub core: u32,
    /// Completion of its last instruction.
    pub end_us: f64,
    /// Its engines.
    pub engines: Engines,
}

/// The five engines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Engines {
    /// Tensor engine.
    pub tensor: EngineSummary,
    /// Vector engine.
    pub vector: EngineSummary,
    /// Scalar engine.
    pub scalar: EngineSummary,
    /// GpSimd engine.
    pub gpsimd: EngineSummary,
    /// Sync engine.
    pub sync: EngineSummary,
}

/// One engine. With several cores, times are those of the busiest core, and instructions are summed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct EngineSummary {
    /// Busy time (stretched by the power limiter where it applies).
    pub active_us: f64,
    /// Share of the latency.
    pub active_percent: f64,
    /// Instructions run, triggered transfers included.
    pub instructions: u64,
}

/// All transfers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DmaSummary {
    /// Bytes moved, counted at the destination.
    pub bytes: u64,
    /// Transfers.
    pub transfers: u64,
    /// Time with bytes in flight.
    pub active_us: f64,
    /// Share of the latency.
    pub active_percent: f64,
}

/// On-chip memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// SBUF bytes in each partition.
    pub sbuf_peak_bytes_per_partition: u32,
    /// PSUM banks.
    pub psum_peak_banks: u32,
}

/// Stalled time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StallSummary {
    /// The core.
    pub core: u32,
    /// The engine or DMA queue.
    pub engine: &'static str,
    /// `semaphore`, `bank`, `engine-order`, `port`, `limiter`, `table-load`, `dma-bandwidth`, `dma-latency`, `barrier`,
    /// `start-up` or `finished`.
    pub kind: &'static str,
    /// The cause, in words.
    pub cause: String,
    /// The duration.
    pub us: f64,
}

/// A named part of a sum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Its time.
    pub us: f64,
}

/// A source line's share of the critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathStep {
    /// Source file.
    pub file: String,
    /// 1-based line; 0 when unknown.
    pub line: u32,
    /// NKI's name of the instruction.
    pub instruction: &'static str,
    /// Its time.
    pub us: f64,
    /// Instructions on the path.
    pub count: u64,
}

/// Microseconds, exact to the picosecond.
pub(super) fn us(time: Ps) -> f64 {
    time as f64 / 1e6
}

pub(super) fn percent(time: Ps, of: Ps) -> f64 {
    if of == 0 { 0.0 } else { (time as f64 * 1e4 / of as f64).round() / 100.0 }
}

/// Summarises a timeline.
pub fn summary(timeline: &Timeline, placement: &Placement, error: Option<ErrorBar>) -> Summary {
    let engines = |core: Option<u32>| {
        let engine = |engine: Engine| {
            let own = move |r: &&Row| r.kind == RowKind::Engine(engine) && core.is_none_or(|c| r.core == c);
            let time = timeline.rows.iter().filter(own).map(Row::active).max().unwrap_or(0);
            EngineSummary {
                active_us: us(time),
                active_percent: percent(time, timeline.elapsed),
                instructions: timeline.rows.iter().filter(own).map(|r| r.count).sum(),
            }
        };
        Engines {
            tensor: engine(Engine::Tensor),
            vector: engine(Engine::Vector),
            scalar: engine(Engine::Scalar),
            gpsimd: engine(Engine::GpSimd),
            sync: engine(Engine::Sync),
        }
    };
    let last = timeline.rows.iter().map(|r| r.core).max().unwrap_or(0);
    let cores = (0..=last).filter(|_| last > 0).map(|core| {
        let end = timeline.events.iter().filter(|e| e.origin.core == core).map(|e| e.complete).max().unwrap_or(0);
        CoreSummary { core, end_us: us(end), engines: engines(Some(core)) }
    });
    let path = critical_path(timeline);
    let verdict = verdict(timeline, &path);
    Summary {
        latency_us: us(timeline.elapsed),
        latency_valid: !timeline.over_capacity,
        latency_error: error,
        engines: engines(None),
        cores: cores.collect(),
        dma: DmaSummary {
            bytes: timeline.dma.bytes,
            transfers: timeline.dma.transfers,
            active_us: us(timeline.dma.active),
            active_percent: percent(timeline.dma.active, timeline.elapsed),
        },
        memory: Memory {
            sbuf_peak_bytes_per_partition: placement.sbuf_peak_bytes,
            psum_peak_banks: placement.psum_peak_banks,
        },
        stalls: stalls(timeline)
            .into_iter()
            .map(|s| {
                let row = &timeline.rows[s.row.0 as usize];
                let kind = cause_kind(timeline, s.worst.1);
                StallSummary {
                    core: row.core,
                    engine: row.kind.name(),
                    kind,
                    cause: short_cause(timeline, s.worst.1),
                    us: us(s.time),
                }
            })
            .collect(),
        verdict: verdict_sentence(timeline, &verdict),
        critical_resources: verdict
            .shares
            .iter()
            .map(|s| Part { name: resource(s.resource), us: us(s.time) })
            .collect(),
        critical_lines: verdict
            .lines
            .iter()
            .take(20)
            .map(|l| PathStep {
                file: timeline.names.files.get(l.loc.file as usize).map_or_else(String::new, |f| f.to_string()),
                line: l.loc.line,
                instruction: l.label,
                us: us(l.critical),
                count: l.steps,
            })
            .collect(),
        confidence: Confidence::ALL
            .iter()
            .zip(confidence(timeline, &path))
            .map(|(c, t)| Part { name: c.name(), us: us(t) })
            .collect(),
    }
}
