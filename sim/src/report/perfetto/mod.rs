//! Perfetto traces: a row for each engine and each DMA queue, each with a row of stalls below, counters, and arrows from producers of data to
//! consumers.

mod counters;
mod flows;
mod proto;
mod writer;

use nki_isa::Program;

use super::vocabulary;
use crate::analysis::cause_kind;
use crate::analysis::counters::Facts;
use crate::analysis::memory::{Life, lives};
use crate::timeline::{Event, Ps, RowKind, State, Timeline};
use flows::Flows;
use proto::DebugAnnotation;
use writer::{Writer, interned};

/// Names of debug annotations; their interned id is the position plus one.
const ANNOTATIONS: [&str; 8] =
    ["source", "iteration", "bytes", "waited for", "waited us", "complete us", "cause", "confidence"];

/// The timeline in the Perfetto format (protobuf, nanoseconds).
pub fn perfetto(timeline: &Timeline, program: &Program) -> Vec<u8> {
    perfetto_ranks(&[(timeline, program)])
}

/// The timelines of all ranks, from 0, on one clock: a process for each core of each rank.
pub fn perfetto_ranks(ranks: &[(&Timeline, &Program)]) -> Vec<u8> {
    let mut w = Writer::default();
    w.interned(Vec::new(), ANNOTATIONS.iter().enumerate().map(|(i, n)| interned(i as u64 + 1, n)).collect());
    for (rank, (timeline, program)) in ranks.iter().enumerate() {
        let of_rank = if ranks.len() > 1 { format!(" of rank {rank}") } else { String::new() };
        write_rank(&mut w, timeline, program, &of_rank);
    }
    w.out
}

fn write_rank(w: &mut Writer, timeline: &Timeline, program: &Program, of_rank: &str) {
    let by_row = rows(timeline);
    let flows = Flows::of(timeline, program, w.flows);
    w.flows += flows.count();
    let facts = Facts::of(program);
    let lives = lives(timeline, program);
    let waits = waits(timeline);
    let mut core = None;
    let mut process = 0;
    for (r, row) in timeline.rows.iter().enumerate() {
        if core != Some(row.core) {
            core = Some(row.core);
            let validity = super::validity(timeline);
            process = w.process(&format!("{} on NeuronCore {}{of_rank}{validity}", timeline.kernel, row.core));
            write_counters(w, process, timeline, program, (&facts, &lives), row.core);
        }
        let is_queue = matches!(row.kind, RowKind::DmaQueue(_));
        if is_queue && row.count == 0 {
            continue;
        }
        let name = row.kind.name();
        let main = w.thread(process, r as i32, name);
        let mut lanes: Vec<(u64, Ps)> = vec![(main, 0)];
        for &i in &by_row[r] {
            let e = &timeline.events[i as usize];
            let (start, end) = if is_queue { transfer(e) } else { (e.start, e.end) };
            let track = match lanes.iter_mut().find(|l| l.1 <= start) {
                Some(lane) => {
                    lane.1 = end;
                    lane.0
                }
                None => {
                    let track = w.child(main, &format!("{name} (overlapping {})", lanes.len()));
                    lanes.push((track, end));
                    track
                }
            };
            let is_dma = e.origin.queue.is_some();
            let mut annotations = source(timeline, program, e);
            if !is_queue && let Some((cause, time)) = &waits[i as usize] {
                annotations.push(text(4, cause));
                annotations.push(number(5, *time as f64 / 1e6));
            }
            annotations.push(number(6, e.complete as f64 / 1e6));
            annotations.push(text(8, e.origin.confidence.name()));
            // An arrow starts where the result is produced, and ends where the wait was.
            let leaves = if is_dma == is_queue { flows.from(i) } else { Vec::new() };
            let arrives = if is_queue { Vec::new() } else { flows.to(i) };
            w.begin(track, start, &timeline.label(e), annotations, leaves, arrives);
            if is_queue {
                for p in e.phases().iter().filter(|p| p.end > p.start) {
                    w.begin(track, p.start, p.kind.name(), Vec::new(), Vec::new(), Vec::new());
                    w.end(track, p.end);
                }
            }
            w.end(track, end);
        }
        let stalls = w.child(main, &format!("{name} stalls"));
        for span in &row.spans {
            let State::Stalled(cause) = span.state else { continue };
            w.begin(
                stalls,
                span.start,
                cause_kind(timeline, cause),
                vec![text(7, &vocabulary::cause(timeline, cause))],
                Vec::new(),
                Vec::new(),
            );
            w.end(stalls, span.end);
        }
    }
}

fn write_counters(
    w: &mut Writer,
    process: u64,
    timeline: &Timeline,
    program: &Program,
    (facts, lives): (&Facts, &[Option<Life>]),
    core: u32,
) {
    for counter in counters::counters(timeline, program, facts, lives, core) {
        let track = w.counter(process, &counter.name, counter.unit);
        for (time, value) in counter.steps {
            w.value(track, time, value);
        }
    }
}

/// Events of each row, ordered by their start there.
fn rows(timeline: &Timeline) -> Vec<Vec<u32>> {
    let mut out: Vec<Vec<u32>> = vec![Vec::new(); timeline.rows.len()];
    for (i, e) in timeline.events.iter().enumerate() {
        out[e.origin.row.0 as usize].push(i as u32);
        if let Some(q) = e.origin.queue {
            out[q.0 as usize].push(i as u32);
        }
    }
    for (row, list) in timeline.rows.iter().zip(&mut out) {
        let is_queue = matches!(row.kind, RowKind::DmaQueue(_));
        list.sort_by_key(|i| {
            let e = &timeline.events[*i as usize];
            (if is_queue { transfer(e).0 } else { e.start }, *i)
        });
    }
    out
}

/// From the issue of a transfer to its completion.
fn transfer(e: &Event) -> (Ps, Ps) {
    let start = e.phases().iter().map(|p| p.start).min().unwrap_or(e.start);
    let end = e.phases().iter().map(|p| p.end).max().unwrap_or(e.end);
    (start, end)
}

/// For each event, the stall of its engine just before it: cause and duration.
fn waits(timeline: &Timeline) -> Vec<Option<(String, Ps)>> {
    let mut out = vec![None; timeline.events.len()];
    for row in &timeline.rows {
        if matches!(row.kind, RowKind::DmaQueue(_)) {
            continue;
        }
        for pair in row.spans.windows(2) {
            if let (State::Stalled(cause), State::Busy(e)) = (pair[0].state, pair[1].state) {
                out[e.0 as usize] = Some((vocabulary::cause(timeline, cause), pair[0].end - pair[0].start));
            }
        }
    }
    out
}

fn source(timeline: &Timeline, program: &Program, e: &Event) -> Vec<DebugAnnotation> {
    let mut out = Vec::with_capacity(6);
    let place = timeline.place(e.origin.loc);
    if !place.is_empty() {
        out.push(text(1, &place));
    }
    let iterations: Vec<String> =
        program.iterations(e.trail).iter().map(|(variable, value)| format!("{variable}={value}")).collect();
    if !iterations.is_empty() {
        out.push(text(2, &iterations.join(", ")));
    }
    if e.origin.bytes > 0 {
        out.push(DebugAnnotation { name_iid: Some(3), uint_value: Some(e.origin.bytes), ..DebugAnnotation::default() });
    }
    out
}

fn text(name: u64, value: &str) -> DebugAnnotation {
    DebugAnnotation { name_iid: Some(name), string_value: Some(value.to_string()), ..DebugAnnotation::default() }
}

fn number(name: u64, value: f64) -> DebugAnnotation {
    DebugAnnotation { name_iid: Some(name), double_value: Some(value), ..DebugAnnotation::default() }
}

#[cfg(test)]
mod tests {
    use super::proto::{TracePacket, TrackEvent};
    use super::writer::{BEGIN, COUNTER, SEQUENCE};
    use super::*;
    use crate::timing::tests::{tensor_add, time};
    use prost::Message as _;
    use rustc_hash::FxHashMap;
    use std::collections::BTreeMap;

    /// (name, begin, end)
    type Slice = (String, u64, u64);

    /// Decodes a trace: the name of each track and its slices, nested ones included.
    fn slices(bytes: &[u8]) -> Vec<(String, Vec<Slice>)> {
        let trace = proto::Trace::decode(bytes).unwrap();
        let mut names: FxHashMap<u64, String> = FxHashMap::default();
        let mut tracks: Vec<(u64, String, Vec<Slice>)> = Vec::new();
        let mut open: FxHashMap<u64, Vec<(String, u64)>> = FxHashMap::default();
        let mut last: FxHashMap<u64, u64> = FxHashMap::default();
        for p in trace.packet {
            assert_eq!(p.trusted_packet_sequence_id, Some(SEQUENCE));
            for n in p.interned_data.iter().flat_map(|d| &d.event_names) {
                assert!(names.insert(n.iid.unwrap(), n.name.clone().unwrap()).is_none());
            }
            if let Some(d) = p.track_descriptor {
                let name = d.name.or(d.process.and_then(|p| p.process_name)).unwrap();
                tracks.push((d.uuid.unwrap(), name, Vec::new()));
            }
            if let Some(e) = p.track_event.filter(|e| e.kind != Some(COUNTER)) {
                let (track, time) = (e.track_uuid.unwrap(), p.timestamp.unwrap());
                assert!(time >= last.insert(track, time).unwrap_or(0), "time runs back");
                if e.kind == Some(BEGIN) {
                    open.entry(track).or_default().push((names[&e.name_iid.unwrap()].clone(), time));
                } else {
                    let (name, begin) = open.get_mut(&track).unwrap().pop().unwrap();
                    tracks.iter_mut().find(|t| t.0 == track).unwrap().2.push((name, begin, time));
                }
            }
        }
        assert!(open.values().all(Vec::is_empty));
        tracks.into_iter().map(|t| (t.1, t.2)).collect()
    }

    #[test]
    fn a_trace_reads_back() {
        let program = tensor_add();
        let t = time(&program);
        let tracks = slices(&perfetto(&t, &program));
        let of = |name: &str| &tracks.iter().find(|t| t.0 == name).unwrap().1;
        assert_eq!(of("vector").len(), 1);
        assert_eq!(of("gpsimd").len(), 3);
        assert_eq!(of("vector")[0].0, "tensor_tensor");
        let stalled: u64 = of("vector stalls").iter().map(|s| s.2 - s.1).sum();
        let busy: u64 = of("vector").iter().map(|s| s.2 - s.1).sum();
        assert!((stalled + busy).abs_diff(t.elapsed / 1000) <= 2);
        assert!(tracks.iter().any(|t| t.0 == "dma-gpsimd" && t.1.iter().any(|s| s.0 == "dma_copy")));
    }

    #[test]
    fn every_process_names_the_version() {
        let program = tensor_add();
        let trace = proto::Trace::decode(&*perfetto(&time(&program), &program)).unwrap();
        let processes: Vec<_> =
            trace.packet.iter().filter_map(|p| p.track_descriptor.as_ref()?.process.as_ref()).collect();
        assert!(!processes.is_empty());
        for process in processes {
            assert_eq!(process.process_labels, [format!("nki-sim {}", crate::report::VERSION)]);
        }
    }

    #[test]
    fn ranks_have_processes_of_their_own() {
        let program = tensor_add();
        let t = time(&program);
        let bytes = perfetto_ranks(&[(&t, &program), (&t, &program)]);
        let tracks = slices(&bytes);
        let count = |name: &str| tracks.iter().filter(|t| t.0 == name).count();
        assert_eq!(count("vector"), 2);
        let names: Vec<&str> =
            tracks.iter().map(|t| t.0.as_str()).filter(|n| n.contains("NeuronCore 0 of rank")).collect();
        assert_eq!(names.len(), 2);
        let trace = proto::Trace::decode(&*bytes).unwrap();
        let mut flows: Vec<u64> =
            trace.packet.iter().filter_map(|p| p.track_event.as_ref()).flat_map(|e| e.flow_ids.clone()).collect();
        let all = flows.len();
        flows.sort_unstable();
        flows.dedup();
        assert!(all > 0 && flows.len() == all, "an arrow joins events of two ranks");
    }

    #[test]
    fn field_numbers_are_those_of_the_format() {
        // The start of a slice on track 7 named by iid 1 at 5 ns, encoded by hand from the public definitions.
        let packet = TracePacket {
            timestamp: Some(5),
            trusted_packet_sequence_id: Some(1),
            track_event: Some(TrackEvent {
                kind: Some(BEGIN),
                name_iid: Some(1),
                track_uuid: Some(7),
                ..TrackEvent::default()
            }),
            ..TracePacket::default()
        };
        assert_eq!(packet.encode_to_vec(), [0x40, 5, 0x50, 1, 0x5a, 6, 0x48, 1, 0x50, 1, 0x58, 7]);
    }

    /// The values of each counter, by its name and unit.
    fn counters_of(bytes: &[u8]) -> BTreeMap<(String, String), Vec<(u64, f64)>> {
        let trace = proto::Trace::decode(bytes).unwrap();
        let mut names = FxHashMap::default();
        let mut out: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for p in trace.packet {
            if let Some(d) = p.track_descriptor
                && let Some(c) = d.counter
            {
                names.insert(d.uuid.unwrap(), (d.name.unwrap(), c.unit_name.unwrap()));
            }
            if let Some(e) = p.track_event.filter(|e| e.kind == Some(COUNTER)) {
                let name: &(String, String) = &names[&e.track_uuid.unwrap()];
                out.entry(name.clone()).or_default().push((p.timestamp.unwrap(), e.double_counter_value.unwrap()));
            }
        }
        out
    }

    #[test]
    fn counters_hold_every_byte() {
        let program = tensor_add();
        let t = time(&program);
        let counters = counters_of(&perfetto(&t, &program));
        let of = |name: &str, unit: &str| &counters[&(name.to_string(), unit.to_string())];
        // Two tiles are read and one is written; the integral of the bandwidth equals the bytes moved.
        let hbm = of("HBM bandwidth", "GB/s");
        let moved: f64 = hbm.windows(2).map(|w| w[0].1 * (w[1].0 - w[0].0) as f64).sum();
        let expected = 3.0 * 128.0 * 512.0 * 4.0;
        assert!((moved / expected - 1.0).abs() < 0.01, "{moved} of {expected}");
        let sbuf = of("SBUF in use", "bytes/partition");
        assert_eq!(sbuf.iter().map(|s| s.1).fold(0.0, f64::max), 3.0 * 512.0 * 4.0);
        assert!(of("dma-gpsimd depth", "transfers").iter().any(|s| s.1 == 2.0));
        for steps in counters.values() {
            assert_eq!(steps.last().unwrap().1, 0.0);
            assert!(steps.is_sorted_by_key(|s| s.0));
        }
        // Unused resources have no track.
        assert!(!counters.keys().any(|k| k.0 == "PSUM in use" || k.0 == "tensor engine"));
    }

    #[test]
    fn arrows_lead_from_each_load_to_the_sum_and_from_there_to_the_store() {
        let program = tensor_add();
        let t = time(&program);
        let trace = proto::Trace::decode(&*perfetto(&t, &program)).unwrap();
        let ids = |of: fn(&TrackEvent) -> &Vec<u64>| {
            let mut all: Vec<u64> =
                trace.packet.iter().filter_map(|p| p.track_event.as_ref()).flat_map(|e| of(e).clone()).collect();
            all.sort_unstable();
            all
        };
        let (from, to) = (ids(|e| &e.flow_ids), ids(|e| &e.terminating_flow_ids));
        assert_eq!(from, to);
        assert_eq!(from.len(), 3);
    }
}
