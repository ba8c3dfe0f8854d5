//! Builds rows whose spans tile the elapsed time.

use super::{Cause, EventId, Ps, Span, State};

/// A row under construction: spans are added in order of time and never overlap.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    spans: Vec<Span>,
}

impl Lane {
    /// Where the last span ends.
    pub(crate) fn end(&self) -> Ps {
        self.spans.last().map_or(0, |s| s.end)
    }

    /// Fills up to `until` with `state`; the part before the last span's end is dropped.
    pub(crate) fn fill(&mut self, until: Ps, state: State) {
        let start = self.end();
        if until <= start {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.state == state => last.end = until,
            _ => self.spans.push(Span { start, end: until, state }),
        }
    }

    /// Fills up to `until` with a stall.
    pub(crate) fn stall(&mut self, until: Ps, cause: Cause) {
        self.fill(until, State::Stalled(cause));
    }

    /// The finished row.
    pub(crate) fn into_spans(mut self, elapsed: Ps) -> Vec<Span> {
        self.stall(elapsed, Cause::Finished);
        self.spans
    }
}

/// One transfer of a DMA queue, for [`dma_spans`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) event: EventId,
    pub(crate) issue: (Ps, Ps),
    pub(crate) payload: Ps,
    /// End of the payload if nothing shared its engines.
    pub(crate) unloaded: Ps,
    pub(crate) payload_end: Ps,
    pub(crate) complete: Ps,
    /// Why the queue had nothing to do before this transfer.
    pub(crate) before: Cause,
}

/// The spans of a DMA queue. At each moment, the first that applies: busy if some transfer is being issued or moves bytes at the rate it would
/// have alone; waiting for bandwidth; waiting for latency; waiting for the next trigger.
pub(crate) fn dma_spans(transfers: &[Transfer], head: Ps, elapsed: Ps) -> Vec<Span> {
    // Per rank the intervals in order; transfers are in order of issue, but payloads may overtake each other.
    let mut edges: Vec<(Ps, i32, u8, u32)> = Vec::with_capacity(transfers.len() * 8);
    for (i, t) in transfers.iter().enumerate() {
        let i = i as u32;
        for (from, to, rank) in [
            (t.issue.0, t.issue.1, 0),
            (t.payload, t.unloaded.min(t.payload_end), 0),
            (t.unloaded, t.payload_end, 1),
            (t.issue.1, t.payload, 2),
            (t.payload_end, t.complete, 2),
        ] {
            if from < to {
                edges.push((from, 1, rank, i));
                edges.push((to, -1, rank, i));
            }
        }
    }
    edges.sort_unstable();
    let mut lane = Lane::default();
    lane.stall(head, Cause::StartUp);
    let mut open: [std::collections::BTreeSet<u32>; 3] = Default::default();
    let mut at = 0;
    let mut next = 0; // the first transfer not yet issued
    while at < edges.len() {
        let now = edges[at].0;
        let state = if let Some(&i) = open[0].first() {
            State::Busy(transfers[i as usize].event)
        } else if !open[1].is_empty() {
            State::Stalled(Cause::DmaBandwidth)
        } else if !open[2].is_empty() {
            State::Stalled(Cause::DmaLatency)
        } else {
            State::Stalled(transfers.get(next).map_or(Cause::Finished, |t| t.before))
        };
        lane.fill(now, state);
        while at < edges.len() && edges[at].0 == now {
            let (_, step, rank, i) = edges[at];
            // An interval may end and begin twice for the same rank (payload after issue), but never overlaps itself.
            if step > 0 {
                open[rank as usize].insert(i);
                next = next.max(i as usize + 1);
            } else {
                open[rank as usize].remove(&i);
            }
            at += 1;
        }
    }
    lane.into_spans(elapsed)
}

/// The total length of the union of intervals.
pub(crate) fn union(mut intervals: Vec<(Ps, Ps)>) -> Ps {
    intervals.sort_unstable();
    let (mut total, mut end) = (0, 0);
    for (a, b) in intervals {
        if b > end {
            total += b - a.max(end);
            end = b;
        }
    }
    total
}
