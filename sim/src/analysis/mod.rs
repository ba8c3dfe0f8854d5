//! Analyses a timeline: critical path, stalls by cause, bottleneck, most expensive lines.

pub mod counters;
pub mod error_bar;
pub mod memory;
mod path;
pub mod remedies;
pub mod roofline;
mod run;
pub mod sensitivity;
#[cfg(test)]
mod tests;
mod verdict;

use nki_isa::Space;
use nki_isa::ids::Loc;
use nki_isa::schema::Confidence;

use crate::timeline::{Cause, EventId, Hazard, Ps, RowId, RowKind, State, Subject, Timeline};

pub use path::{Step, critical_path};
pub use run::Analysis;
pub use verdict::{Bound, Resource, Share, Verdict, verdict};

/// Stalls of one row with the same kind of cause; semaphores by the row waited for and the hazard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    /// The row.
    pub row: RowId,
    /// Its stalled time.
    pub time: Ps,
    /// The longest single stall, and its cause.
    pub worst: (Ps, Cause),
}

/// The name of the row of the event waited for.
pub(crate) fn waited_for(timeline: &Timeline, from: EventId) -> &'static str {
    let e = timeline.event(from);
    timeline.rows[e.origin.queue.unwrap_or(e.origin.row).0 as usize].kind.name()
}

/// Whether a wait on `subject` is for a PSUM bank that is still in use.
pub(crate) fn is_bank(timeline: &Timeline, hazard: Hazard, subject: Subject) -> bool {
    let Subject::Tensor(t) = subject else { return false };
    hazard != Hazard::Raw && timeline.names.spaces.get(t.0 as usize) == Some(&Space::Psum)
}

/// The kind of a cause, from a closed list, for sums and comparisons.
pub fn cause_kind(timeline: &Timeline, cause: Cause) -> &'static str {
    match cause {
        Cause::Semaphore { hazard, subject, .. } if is_bank(timeline, hazard, subject) => "bank",
        other => other.name(),
    }
}

/// The key by which stalls are summed: the kind, the queue waited for and the hazard.
pub(crate) fn cause_key(timeline: &Timeline, cause: Cause) -> (&'static str, &'static str, &'static str) {
    match cause {
        Cause::Semaphore { from, hazard, .. } => {
            (cause_kind(timeline, cause), waited_for(timeline, from), hazard.name())
        }
        other => (other.name(), "", ""),
    }
}

/// The instruction responsible for a cause.
pub fn cause_event(cause: Cause) -> Option<EventId> {
    match cause {
        Cause::Semaphore { from, .. } => Some(from),
        Cause::EngineOrder(e) | Cause::Port(e) => Some(e),
        _ => None,
    }
}

/// The wait of an instruction on its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// All stalls between the previous instruction and this one, and its own slowdown by the power limiter.
    pub time: Ps,
    /// The longest of these stalls, and its cause.
    pub worst: (Ps, Cause),
}

/// By event: its wait on its engine's row.
pub fn waits(timeline: &Timeline) -> Vec<Option<Wait>> {
    let mut out: Vec<Option<Wait>> = vec![None; timeline.events.len()];
    let mut add = |e: EventId, time: Ps, cause: Cause| {
        let wait = out[e.0 as usize].get_or_insert(Wait { time: 0, worst: (0, cause) });
        wait.time += time;
        if time > wait.worst.0 {
            wait.worst = (time, cause);
        }
    };
    for row in timeline.rows.iter().filter(|r| matches!(r.kind, RowKind::Engine(_))) {
        let mut open: Vec<(Ps, Cause)> = Vec::new();
        let mut before = None;
        for span in &row.spans {
            let time = span.end - span.start;
            match (span.state, before) {
                (State::Busy(e), _) => {
                    open.drain(..).for_each(|(time, cause)| add(e, time, cause));
                    before = Some(e);
                }
                (State::Stalled(Cause::Limiter), Some(e)) => add(e, time, Cause::Limiter),
                // The first instruction has not waited for the kernel's start-up.
                (State::Stalled(Cause::StartUp), _) => {}
                (State::Stalled(cause), _) => open.push((time, cause)),
            }
        }
    }
    out
}

/// Stalls by row and cause, longest first within a row.
pub fn stalls(timeline: &Timeline) -> Vec<Stall> {
    let mut out: Vec<Stall> = Vec::new();
    for (i, row) in timeline.rows.iter().enumerate() {
        let mut of_row: Vec<Stall> = Vec::new();
        // Kernels repeat few causes; semaphores are grouped before formatting their text.
        let mut keys: Vec<(&'static str, &'static str, &'static str, usize)> = Vec::new();
        for span in &row.spans {
            let State::Stalled(cause) = span.state else { continue };
            let key = cause_key(timeline, cause);
            let time = span.end - span.start;
            let at = match keys.iter().find(|k| (k.0, k.1, k.2) == key) {
                Some(k) => k.3,
                None => {
                    of_row.push(Stall { row: RowId(i as u32), time: 0, worst: (0, cause) });
                    keys.push((key.0, key.1, key.2, of_row.len() - 1));
                    of_row.len() - 1
                }
            };
            let stall = &mut of_row[at];
            stall.time += time;
            if time > stall.worst.0 {
                stall.worst = (time, cause);
            }
        }
        of_row.sort_by_key(|s| {
            let key = cause_key(timeline, s.worst.1);
            (std::cmp::Reverse(s.time), key.0 != "bank", key)
        });
        out.extend(of_row);
    }
    out
}

/// The cost of one source line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The location of its first instruction on the path.
    pub loc: Loc,
    /// NKI's name of the instruction.
    pub label: &'static str,
    /// Time on the critical path.
    pub critical: Ps,
    /// Instructions on the critical path.
    pub steps: u64,
}

/// Source lines by time on the critical path, longest first.
pub fn lines(timeline: &Timeline, path: &[Step]) -> Vec<Line> {
    let mut by: std::collections::BTreeMap<(u32, u32, &'static str), Line> = std::collections::BTreeMap::new();
    for step in path {
        let e = timeline.event(step.event);
        let line = by.entry((e.origin.loc.file, e.origin.loc.line, e.origin.label)).or_insert(Line {
            loc: e.origin.loc,
            label: e.origin.label,
            critical: 0,
            steps: 0,
        });
        line.critical += step.to - step.from;
        line.steps += 1;
    }
    let mut out: Vec<Line> = by.into_values().collect();
    out.sort_by_key(|l| std::cmp::Reverse(l.critical));
    out
}

/// The latency by confidence of the underlying parameters, in [`Confidence::ALL`] order: the critical path `path`, head and tail.
pub fn confidence(timeline: &Timeline, path: &[Step]) -> [Ps; 4] {
    let mut out = [0; 4];
    let slot = |c: Confidence| Confidence::ALL.iter().position(|x| *x == c).unwrap_or(3);
    for step in path {
        let event = timeline.event(step.event);
        out[slot(event.origin.confidence)] += step.to - step.from;
    }
    let sum: Ps = out.iter().sum();
    out[slot(timeline.fixed)] += timeline.elapsed - sum;
    out
}
