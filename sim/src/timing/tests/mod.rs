//! Whole programs through placement, trace and timing.

mod collectives;
mod device;
mod forms;
pub(crate) mod laws;
pub(crate) mod matmul;
mod ports;
mod published;

use nki_isa::{DType, Program, Space, Target};

use crate::exec::trace_only;
use crate::place::{Placement, place};
use crate::report;
use crate::simulate::simulate;
use crate::testing::{Builder, add, dma, pattern};
use crate::timeline::{Cause, State, Timeline};
use crate::timing::Params;

pub(crate) fn time_with(program: &Program, params: &Params) -> (Timeline, Placement) {
    let placement = place(program).unwrap();
    let trace = trace_only(program).unwrap();
    (simulate(program, &placement, &trace, params).unwrap(), placement)
}

pub(crate) fn time(program: &Program) -> Timeline {
    let timeline = time_with(program, &Params::of(Target::Trn2)).0;
    check(&timeline);
    timeline
}

/// Checks the properties of every timeline.
pub(crate) fn check(timeline: &Timeline) {
    for row in &timeline.rows {
        let mut at = 0;
        for span in &row.spans {
            assert_eq!(span.start, at, "{:?}", row.kind);
            assert!(span.end > span.start);
            at = span.end;
        }
        assert_eq!(at, timeline.elapsed, "{:?}", row.kind);
    }
    let path = crate::analysis::critical_path(timeline);
    let on_path: u64 = path.iter().map(|s| s.to - s.from).sum();
    if !path.is_empty() {
        assert_eq!(on_path + timeline.head + timeline.tail, timeline.elapsed, "{path:?}");
    }
    assert_eq!(crate::analysis::confidence(timeline, &path).iter().sum::<u64>(), timeline.elapsed);
    let verdict = crate::analysis::verdict(timeline, &path);
    assert_eq!(verdict.shares.iter().map(|s| s.time).sum::<u64>(), timeline.elapsed);
}

/// Loads two tiles, adds them, stores the sum.
pub(crate) fn tensor_add() -> Program {
    let mut b = Builder::new();
    let (x, y) = (b.input("x", &[128, 512], DType::F32), b.input("y", &[128, 512], DType::F32));
    let z = b.output("z", &[128, 512], DType::F32);
    let [a, c, d] = ["a", "c", "d"].map(|n| b.tensor(n, Space::Sbuf, &[128, 512], DType::F32));
    let [x, y, z, a, c, d] = [x, y, z, a, c, d].map(|t| b.whole(t));
    b.push(dma(a.clone(), x));
    b.push(dma(c.clone(), y));
    b.push(add(d.clone(), a, c));
    b.push(dma(z, d));
    b.program
}

/// The migrated blocks example: eight tiles in and out, through separate buffers or a single one.
fn blocks(one_buffer: bool) -> Program {
    let mut b = Builder::new();
    let x = b.input("inp", &[8, 128, 512], DType::F32);
    let y = b.output("res", &[8, 128, 512], DType::F32);
    let shared = b.tensor("add_buf", Space::Sbuf, &[128, 512], DType::F32);
    for i in 0..8 {
        let buf = if one_buffer { shared } else { b.tensor("add_buf", Space::Sbuf, &[128, 512], DType::F32) };
        let tile = |v| pattern(v, 0, i * 128 * 512, &[(512, 128), (1, 512)]);
        let (src, dst, buf) = (tile(b.whole(x)), tile(b.whole(y)), b.whole(buf));
        b.push(dma(buf.clone(), src));
        b.push(dma(dst, buf));
    }
    b.program
}

#[test]
fn tensor_add_in_text() {
    let t = time(&tensor_add());
    insta::assert_snapshot!(report::timeline(&t));
    insta::assert_snapshot!(report::table(&t, None));
}

#[test]
fn migrated_blocks_overlap_and_the_incorrect_twin_is_serialised() {
    let (good, bad) = (time(&blocks(false)), time(&blocks(true)));
    let inner = |t: &Timeline| t.elapsed - t.head - t.tail;
    assert!(inner(&bad) > 2 * inner(&good), "{} {}", inner(&bad), inner(&good));
    let war = |t: &Timeline| {
        t.rows
            .iter()
            .flat_map(|r| &r.spans)
            .filter(|s| matches!(s.state, State::Stalled(Cause::Semaphore { hazard: crate::deps::Hazard::War, .. })))
            .map(|s| s.end - s.start)
            .sum::<u64>()
    };
    assert_eq!(war(&good), 0);
    assert!(war(&bad) > inner(&bad) / 4);
}
