//! Laws of causes, on random kernels.

use nki_isa::{DType, Space, Target};
use proptest::prelude::*;

use super::*;
use crate::testing::{Builder, dma, pattern};
use crate::timeline::Release;
use crate::timing::Params;
use crate::timing::tests::laws::{build, kernel};
use crate::timing::tests::{time, time_with};

/// The closed list of docs/report.md.
const KINDS: [&str; 11] = [
    "semaphore",
    "bank",
    "engine-order",
    "dma-bandwidth",
    "dma-latency",
    "limiter",
    "table-load",
    "port",
    "barrier",
    "start-up",
    "finished",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn each_row_is_busy_or_stalled_for_a_named_cause(choices in kernel(), loops: bool) {
        let t = time_with(&build(&choices, loops), &Params::of(Target::Trn2)).0;
        let all = stalls(&t);
        for (i, row) in t.rows.iter().enumerate() {
            let stalled: Ps = all.iter().filter(|s| s.row.0 as usize == i).map(|s| s.time).sum();
            prop_assert_eq!(row.busy() + stalled, t.elapsed);
            for (n, span) in row.spans.iter().enumerate() {
                let State::Stalled(cause) = span.state else { continue };
                prop_assert!(KINDS.contains(&cause_kind(&t, cause)));
                // The generic causes appear only where necessary.
                prop_assert!(cause != Cause::Finished || n + 1 == row.spans.len());
                prop_assert!(cause != Cause::StartUp || span.start < t.head.max(1), "{:?} {span:?}", row.kind);
            }
        }
    }

    /// The waits of instructions, and the ends of the rows, are all the stalls of the engines.
    #[test]
    fn waits_of_instructions_are_the_stalls_before_them(choices in kernel(), loops: bool) {
        let t = time_with(&build(&choices, loops), &Params::of(Target::Trn2)).0;
        let waits = waits(&t);
        for (i, row) in t.rows.iter().enumerate().filter(|(_, r)| matches!(r.kind, RowKind::Engine(_))) {
            let last = row.spans.iter().rposition(|s| matches!(s.state, State::Busy(_)));
            let end = last.map_or(0, |n| n + 1);
            let tail: Ps = row.spans[end..]
                .iter()
                .filter(|s| s.state != State::Stalled(Cause::Limiter) || last.is_none())
                .map(|s| s.end - s.start)
                .sum();
            let waited: Ps = t
                .events
                .iter()
                .zip(&waits)
                .filter(|(e, _)| e.origin.row.0 as usize == i)
                .filter_map(|(_, w)| w.map(|w| w.time))
                .sum();
            let start = |s: &&crate::timeline::Span| s.state == State::Stalled(Cause::StartUp);
            let start: Ps = row.spans[..end].iter().filter(start).map(|s| s.end - s.start).sum();
            prop_assert_eq!(start + row.busy() + waited + tail, t.elapsed, "{:?}", row.kind);
        }
    }
}

/// The simulator's timelines have no such links; the analysis must terminate nevertheless.
#[test]
fn a_critical_path_ends_where_links_go_in_a_circle() {
    let mut t = crate::timing::tests::time(&crate::timing::tests::tensor_add());
    let last = EventId(t.events.len() as u32 - 1);
    t.events[0].released = Release::Peer(last);
    let path = critical_path(&t);
    assert_eq!(path.len(), path.iter().map(|s| s.event.0).collect::<std::collections::BTreeSet<_>>().len());
    assert_eq!(path[0].from, t.head);
    assert!(path.windows(2).all(|w| w[0].to == w[1].from));
    assert_eq!(path[path.len() - 1].to, t.elapsed - t.tail);
}

/// Eight tiles of 1 MB are triggered at once, and move one after the other: the last was late because of the bytes of the others, not
/// because of triggers.
#[test]
fn a_critical_path_follows_the_bytes_of_a_queue() {
    let mut b = Builder::new();
    let x = b.input("x", &[8, 128, 2048], DType::F32);
    for i in 0..8 {
        let tile = b.tensor("t", Space::Sbuf, &[128, 2048], DType::F32);
        let (src, dst) = (pattern(b.whole(x), 0, i * 128 * 2048, &[(2048, 128), (1, 2048)]), b.whole(tile));
        b.push(dma(dst, src));
    }
    let t = time(&b.program);
    let path = critical_path(&t);
    assert_eq!(path.len(), 8);
    assert_eq!(path[0].via, Release::Start);
    for (before, step) in path.iter().zip(&path[1..]) {
        assert_eq!(step.via, Release::Transfer(before.event));
    }
    let moving = |s: &Share| if s.resource == Resource::DmaBandwidth { s.time } else { 0 };
    let bandwidth: Ps = verdict(&t, &path).shares.iter().map(moving).sum();
    assert!(bandwidth >= t.dma.active && bandwidth > t.elapsed / 2, "{bandwidth} of {}", t.elapsed);
}
