//! Text for terminals and golden tests.

use std::fmt::Write as _;

use super::us;
use super::vocabulary::{cause, error_sentence, short_cause, verdict_sentence};
use crate::analysis::error_bar::ErrorBar;
use crate::analysis::{critical_path, stalls, verdict};
use crate::timeline::{Cause, Release, RowKind, State, Timeline};

/// The table of engines (instructions, active time, stalls by cause), the latency with its error bar, and the verdict.
pub fn table(timeline: &Timeline, error: Option<&ErrorBar>) -> String {
    let mut out = String::new();
    let stalls = stalls(timeline);
    let cores = timeline.rows.iter().map(|r| r.core).max().unwrap_or(0);
    let _ = writeln!(out, "{:<12} {:>12} {:>12} {:>7}   stalled by (us)", "engine", "instructions", "active us", "%");
    for (i, row) in timeline.rows.iter().enumerate() {
        let is_queue = matches!(row.kind, RowKind::DmaQueue(_));
        if is_queue && row.count == 0 {
            continue;
        }
        let name = if cores > 0 { format!("{}/{}", row.kind.name(), row.core) } else { row.kind.name().to_string() };
        let active = if is_queue { row.busy() } else { row.active() };
        let percent = if timeline.elapsed == 0 { 0.0 } else { active as f64 * 100.0 / timeline.elapsed as f64 };
        let causes: Vec<String> = stalls
            .iter()
            .filter(|s| s.row.0 as usize == i && s.worst.1 != Cause::Finished && s.worst.1 != Cause::StartUp)
            .take(3)
            .map(|s| format!("{} {:.2}", short_cause(timeline, s.worst.1), s.time as f64 / 1e6))
            .collect();
        let line = format!(
            "{name:<12} {:>12} {:>12.2} {percent:>6.1}%   {}",
            row.count,
            active as f64 / 1e6,
            causes.join(", ")
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let d = &timeline.dma;
    let _ = writeln!(
        out,
        "\n{:.2} us{}; DMA: {} bytes in {} transfers, active {:.2} us ({:.1}%)",
        timeline.elapsed as f64 / 1e6,
        validity(timeline),
        d.bytes,
        d.transfers,
        d.active as f64 / 1e6,
        if timeline.elapsed == 0 { 0.0 } else { d.active as f64 * 100.0 / timeline.elapsed as f64 }
    );
    if let Some(bar) = error {
        let _ = writeln!(out, "{}", error_sentence(bar));
    }
    let verdict = verdict(timeline, &critical_path(timeline));
    let _ = writeln!(out, "{}", verdict_sentence(timeline, &verdict));
    out
}

/// The suffix of an invalid latency; empty otherwise.
pub fn validity(timeline: &Timeline) -> &'static str {
    if timeline.over_capacity { " (not valid: the kernel does not fit into SBUF or PSUM)" } else { "" }
}

/// Every row's spans, one per line: for golden tests and short kernels.
pub fn timeline(timeline: &Timeline) -> String {
    let mut out = format!("{} {} us{}\n", timeline.kernel, us(timeline.elapsed), validity(timeline));
    for row in &timeline.rows {
        if row.count == 0 {
            continue;
        }
        let _ = writeln!(out, "{} core {}", row.kind.name(), row.core);
        for span in &row.spans {
            let what = match span.state {
                State::Busy(e) => {
                    let e = timeline.event(e);
                    format!("{} line {}", timeline.label(e), e.origin.loc.line)
                }
                State::Stalled(c) => format!("- {}", cause(timeline, c)),
            };
            let _ = writeln!(out, "  {:>9} {:>9}  {what}", us(span.start), us(span.end));
        }
    }
    out
}

/// Every event, one per line, in program order.
pub fn events(timeline: &Timeline) -> String {
    let mut out = String::new();
    for e in &timeline.events {
        let row = timeline.rows[e.origin.row.0 as usize].kind.name();
        let released = match e.released {
            Release::Start => "start".to_string(),
            Release::Engine(p) => format!("engine after {}", p.0),
            Release::Semaphore { from, hazard, subject } => {
                format!("{} {} after {}", hazard.name(), timeline.subject(subject), from.0)
            }
            Release::Port(p) => format!("port after {}", p.0),
            Release::Barrier(_) => "barrier".to_string(),
            Release::Peer(p) => format!("meeting with {}", p.0),
            Release::Transfer(p) => format!("queue after {}", p.0),
        };
        let _ = writeln!(
            out,
            "{:<8} {:<22} line {:>4}  {:>9} {:>9} {:>9}  {released}",
            row,
            timeline.label(e),
            e.origin.loc.line,
            us(e.start),
            us(e.end),
            us(e.complete)
        );
    }
    out
}
