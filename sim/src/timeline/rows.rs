//! Builds rows whose spans partition the elapsed time.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{Cause, EventId, Ps, Span, State};

/// A row under construction: spans are added in chronological order and never overlap.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    spans: Vec<Span>,
}

impl Lane {
    /// A row with capacity for this number of spans.
    pub(crate) fn with_capacity(spans: usize) -> Self {
        Lane { spans: Vec::with_capacity(spans) }
    }

    /// Where the last span ends.
    pub(crate) fn end(&self) -> Ps {
        self.spans.last().map_or(0, |s| s.end)
    }

    /// Fills up to `until` with `state`; a part before the last span's end is dropped.
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
    /// End of the payload without shared engines.
    pub(crate) unloaded: Ps,
    pub(crate) payload_end: Ps,
    pub(crate) complete: Ps,
    /// The reason why the queue was idle before this transfer.
    pub(crate) before: Cause,
}

/// The spans of a DMA queue. At each time, the first applicable state: busy if a transfer is being issued or moves bytes at its unshared rate;
/// waiting for bandwidth; waiting for latency; waiting for the next trigger.
pub(crate) fn dma_spans(transfers: &[Transfer], head: Ps, elapsed: Ps) -> Vec<Span> {
    // The ends of intervals, by rank, in chronological order. Transfers are in issue order, which is the order of the starts of their first
    // intervals, but payloads may overtake each other: issued but incomplete transfers are in a heap.
    let mut edges: BinaryHeap<Reverse<Edge>> = BinaryHeap::new();
    let mut not_issued = (0..).zip(transfers).peekable();
    debug_assert!(transfers.is_sorted_by_key(|t| t.issue.0), "transfers are in the order of issue");
    let mut lane = Lane::default();
    lane.stall(head, Cause::StartUp);
    let mut busy = BTreeSet::new();
    let mut waiting = [0u32; 2];
    let mut next = 0; // the first transfer not yet issued
    loop {
        let is_next =
            |t: &Transfer, edges: &BinaryHeap<Reverse<Edge>>| edges.peek().is_none_or(|first| t.issue.0 <= first.0.0);
        while let Some((i, t)) = not_issued.next_if(|(_, t)| is_next(t, &edges)) {
            edges.extend(
                intervals_of(t).flat_map(|(from, to, rank)| [(from, 1, rank, i), (to, -1, rank, i)]).map(Reverse),
            );
        }
        let Some(&Reverse((now, ..))) = edges.peek() else { break };
        let state = if let Some(&i) = busy.first() {
            State::Busy(transfers[i as usize].event)
        } else if waiting[0] > 0 {
            State::Stalled(Cause::DmaBandwidth)
        } else if waiting[1] > 0 {
            State::Stalled(Cause::DmaLatency)
        } else {
            State::Stalled(transfers.get(next).map_or(Cause::Finished, |t| t.before))
        };
        lane.fill(now, state);
        while let Some(&Reverse((time, step, rank, i))) = edges.peek()
            && time == now
        {
            edges.pop();
            // Intervals of one rank may follow each other (payload after issue), but never overlap.
            let waiting = rank.checked_sub(1).map(|rank| &mut waiting[usize::from(rank)]);
            match (waiting, step > 0) {
                (Some(waiting), true) => *waiting += 1,
                (Some(waiting), false) => *waiting -= 1,
                (None, true) => _ = busy.insert(i),
                (None, false) => _ = busy.remove(&i),
            }
            if step > 0 {
                next = next.max(i as usize + 1);
            }
        }
    }
    lane.into_spans(elapsed)
}

/// A time, whether an interval starts (1) or ends (-1) there, the interval's rank and its transfer.
type Edge = (Ps, i32, u8, u32);

/// The intervals of a transfer, with rank: 0 while it keeps the queue busy, 1 while it waits for bandwidth, 2 for latency.
fn intervals_of(t: &Transfer) -> impl Iterator<Item = (Ps, Ps, u8)> {
    let all = [
        (t.issue.0, t.issue.1, 0),
        (t.payload, t.unloaded.min(t.payload_end), 0),
        (t.unloaded, t.payload_end, 1),
        (t.issue.1, t.payload, 2),
        (t.payload_end, t.complete, 2),
    ];
    all.into_iter().filter(|(from, to, _)| from < to)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The state at a given time, searched in all transfers.
    fn state_at(transfers: &[Transfer], now: Ps, head: Ps, elapsed: Ps) -> State {
        let open = |rank: u8| {
            transfers.iter().position(|t| intervals_of(t).any(|(from, to, r)| r == rank && (from..to).contains(&now)))
        };
        let issued = transfers.iter().rposition(|t| intervals_of(t).any(|(from, ..)| from <= now)).map_or(0, |i| i + 1);
        match (open(0), open(1), open(2)) {
            _ if now >= elapsed => State::Stalled(Cause::Finished),
            _ if now < head => State::Stalled(Cause::StartUp),
            (Some(i), ..) => State::Busy(transfers[i].event),
            (_, Some(_), _) => State::Stalled(Cause::DmaBandwidth),
            (_, _, Some(_)) => State::Stalled(Cause::DmaLatency),
            _ => State::Stalled(transfers.get(issued).map_or(Cause::Finished, |t| t.before)),
        }
    }

    /// The durations of a transfer's phases. A transfer without any duration would have no visible state.
    fn durations() -> impl Strategy<Value = [u64; 5]> {
        prop::array::uniform5(0..6_u64).prop_filter("takes time", |phases| phases.iter().any(|&p| p > 0))
    }

    /// Transfers of a queue, from the gaps before them and the durations of their phases.
    fn transfers(drawn: &[(u64, [u64; 5])], head: Ps) -> Vec<Transfer> {
        let mut free = head;
        let mut out = Vec::new();
        for (i, &(gap, [issue, wait, alone, more, receipt])) in drawn.iter().enumerate() {
            let start = free + gap;
            free = start + issue;
            let payload = free + wait;
            let payload_end = payload + alone + more;
            out.push(Transfer {
                event: EventId(i as u32),
                issue: (start, free),
                payload,
                unloaded: payload + alone,
                payload_end,
                complete: payload_end + receipt,
                before: if i % 2 == 0 { Cause::Finished } else { Cause::DmaLatency },
            });
        }
        out
    }

    proptest! {
        #[test]
        fn a_dma_row_says_what_its_transfers_do(
            drawn in prop::collection::vec((0..6_u64, durations()), 0..12),
            head in 0..4_u64,
        ) {
            let all = transfers(&drawn, head);
            let elapsed = all.iter().map(|t| t.complete).max().unwrap_or(head) + 3;
            let spans = dma_spans(&all, head, elapsed);
            for now in 0..elapsed {
                let span = spans.iter().find(|s| (s.start..s.end).contains(&now));
                prop_assert_eq!(span.map(|s| s.state), Some(state_at(&all, now, head, elapsed)), "at {}", now);
            }
        }
    }
}
