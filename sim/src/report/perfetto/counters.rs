//! Counters of a core over time: bandwidth, occupancy, rate and queue depth.

use nki_isa::{Program, Space};

use super::transfer;
use crate::analysis::counters::Facts;
use crate::analysis::memory::{Life, occupancy};
use crate::timeline::{Event, PhaseKind, Ps, RowId, RowKind, Timeline};

/// A step function of time.
pub(super) struct Counter {
    pub(super) name: String,
    pub(super) unit: &'static str,
    /// The value from each time on; times ascend.
    pub(super) steps: Vec<(Ps, f64)>,
}

/// The counters of a core, without those that are always zero.
pub(super) fn counters(
    timeline: &Timeline,
    program: &Program,
    facts: &Facts,
    lives: &[Option<Life>],
    core: u32,
) -> Vec<Counter> {
    let of = |e: &Event| facts.of_event(e);
    let own = || timeline.events.iter().filter(move |e| e.origin.core == core);
    let moving = own().filter(|e| e.origin.queue.is_some()).map(|e| {
        let (from, to) = payload(e);
        (from, to, rate(of(e).hbm(), from, to))
    });
    let multiplying = own().map(|e| (e.start, e.end, rate(of(e).flops, e.start, e.end) / 1e3));
    let in_use =
        |space| occupancy(program, lives, core, space).into_iter().map(|(t, bytes)| (t, bytes as f64)).collect();
    let mut out = vec![
        Counter { name: "HBM bandwidth".into(), unit: "GB/s", steps: steps(moving) },
        Counter { name: "SBUF in use".into(), unit: "bytes/partition", steps: in_use(Space::Sbuf) },
        Counter { name: "PSUM in use".into(), unit: "bytes/partition", steps: in_use(Space::Psum) },
        Counter { name: "tensor engine".into(), unit: "TFLOP/s", steps: steps(multiplying) },
    ];
    for (r, row) in timeline.rows.iter().enumerate() {
        if row.core == core && matches!(row.kind, RowKind::DmaQueue(_)) {
            let queue = Some(RowId(r as u32));
            let under_way = own().filter(|e| e.origin.queue == queue).map(|e| {
                let (from, to) = transfer(e);
                (from, to, 1.0)
            });
            let name = format!("{} depth", row.kind.name());
            out.push(Counter { name, unit: "transfers", steps: steps(under_way) });
        }
    }
    out.retain(|c| c.steps.iter().any(|s| s.1 > 0.0));
    out
}

/// The interval in which a transfer's bytes move.
fn payload(e: &Event) -> (Ps, Ps) {
    let start = |kind| e.phases().iter().find(|p| p.kind == kind).map(|p| p.start);
    (start(PhaseKind::Payload).unwrap_or(e.start), start(PhaseKind::Notify).unwrap_or(e.complete))
}

/// An amount per nanosecond of an interval; an empty interval counts as one picosecond.
fn rate(amount: u64, from: Ps, to: Ps) -> f64 {
    amount as f64 * 1e3 / (to.saturating_sub(from)).max(1) as f64
}

/// The sum of values with limited durations.
fn steps(values: impl Iterator<Item = (Ps, Ps, f64)>) -> Vec<(Ps, f64)> {
    let mut edges: Vec<(Ps, i64, f64)> = Vec::new();
    for (from, to, value) in values.filter(|v| v.2 > 0.0) {
        edges.push((from, 1, value));
        edges.push((to.max(from + 1), -1, -value));
    }
    edges.sort_by(|x, y| (x.0, x.1).cmp(&(y.0, y.1)).then(x.2.total_cmp(&y.2)));
    let mut out: Vec<(Ps, f64)> = vec![(0, 0.0)];
    let (mut now, mut open) = (0.0, 0);
    for (time, change, value) in edges {
        open += change;
        // Discard the rounding error of an empty sum.
        now = if open == 0 { 0.0 } else { now + value };
        match out.last_mut() {
            Some(last) if last.0 == time => last.1 = now,
            _ => out.push((time, now)),
        }
    }
    out.dedup_by(|next, before| next.1 == before.1);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_overlap_add_up() {
        let sum = steps([(5, 15, 2.0), (10, 20, 0.1), (20, 30, 0.1), (40, 40, 7.0)].into_iter());
        assert_eq!(sum, [(0, 0.0), (5, 2.0), (10, 2.1), (15, 2.1 - 2.0), (20, 0.1), (30, 0.0), (40, 7.0), (41, 0.0)]);
        assert_eq!(steps(std::iter::empty()), [(0, 0.0)]);
    }
}
