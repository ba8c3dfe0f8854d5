//! Perfetto traces: a row for each engine and each DMA queue, a row of stalls under each, arrows along the dependences.

mod proto;

use nki_isa::Program;
use prost::Message;
use rustc_hash::FxHashMap;

use super::vocabulary;
use crate::analysis::cause_kind;
use crate::timeline::{Event, Ps, Release, RowKind, State, Timeline};
use proto::{
    DebugAnnotation, Interned, InternedData, ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor,
    TrackEvent,
};

/// The one writer of the trace.
const SEQUENCE: u32 = 1;
const CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;
const BEGIN: i32 = 1;
const END: i32 = 2;

/// Names of debug annotations; their interned id is the position plus one.
const ANNOTATIONS: [&str; 8] =
    ["source", "iteration", "bytes", "waited for", "waited us", "complete us", "cause", "confidence"];

/// The timeline in the Perfetto format (protobuf, nanoseconds).
pub fn perfetto(timeline: &Timeline, program: &Program) -> Vec<u8> {
    perfetto_ranks(&[(timeline, program)])
}

/// The timelines of all ranks, from 0, on one clock: a process for each core of each rank.
pub fn perfetto_ranks(ranks: &[(&Timeline, &Program)]) -> Vec<u8> {
    let mut w =
        Writer { out: Vec::new(), names: FxHashMap::default(), tracks: 0, processes: 0, flows: 0, cleared: false };
    w.interned(Vec::new(), ANNOTATIONS.iter().enumerate().map(|(i, n)| interned(i as u64 + 1, n)).collect());
    for (rank, (timeline, program)) in ranks.iter().enumerate() {
        let of_rank = if ranks.len() > 1 { format!(" of rank {rank}") } else { String::new() };
        write_rank(&mut w, timeline, program, &of_rank);
    }
    w.out
}

fn write_rank(w: &mut Writer, timeline: &Timeline, program: &Program, of_rank: &str) {
    let by_row = rows(timeline);
    let first_flow = w.flows;
    w.flows += timeline.events.len() as u64;
    // What each event lets go: arrows start at the event waited for and end at the one that waited.
    let mut flows: Vec<Vec<u64>> = vec![Vec::new(); timeline.events.len()];
    for (i, e) in timeline.events.iter().enumerate() {
        if let Release::Semaphore { from, .. } = e.released {
            flows[from.0 as usize].push(first_flow + i as u64 + 1);
        }
    }
    let waits = waits(timeline);
    let mut core = None;
    let mut process = 0;
    for (r, row) in timeline.rows.iter().enumerate() {
        if core != Some(row.core) {
            core = Some(row.core);
            let validity = super::validity(timeline);
            process = w.process(&format!("{} on NeuronCore {}{of_rank}{validity}", timeline.kernel, row.core));
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
            let is_dma = e.queue.is_some();
            let mut annotations = source(timeline, program, e);
            if !is_queue && let Some((cause, time)) = &waits[i as usize] {
                annotations.push(text(4, cause));
                annotations.push(number(5, *time as f64 / 1e6));
            }
            annotations.push(number(6, e.complete as f64 / 1e6));
            annotations.push(text(8, e.confidence.name()));
            // An arrow leaves from where the result is made, and arrives where the wait was.
            let leaves = if is_dma == is_queue { std::mem::take(&mut flows[i as usize]) } else { Vec::new() };
            let arrives = if !is_queue && matches!(e.released, Release::Semaphore { .. }) {
                vec![first_flow + u64::from(i) + 1]
            } else {
                Vec::new()
            };
            w.begin(track, start, &timeline.label(e), annotations, leaves, arrives);
            if is_queue {
                for p in e.phases.iter().filter(|p| p.end > p.start) {
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

/// Events of each row in order of their start there.
fn rows(timeline: &Timeline) -> Vec<Vec<u32>> {
    let mut out: Vec<Vec<u32>> = vec![Vec::new(); timeline.rows.len()];
    for (i, e) in timeline.events.iter().enumerate() {
        out[e.row.0 as usize].push(i as u32);
        if let Some(q) = e.queue {
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
    let start = e.phases.iter().map(|p| p.start).min().unwrap_or(e.start);
    let end = e.phases.iter().map(|p| p.end).max().unwrap_or(e.end);
    (start, end)
}

/// For each event the stall of its engine just before it: what for and how long.
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
    let place = timeline.place(e.loc);
    if !place.is_empty() {
        out.push(text(1, &place));
    }
    let iterations: Vec<String> =
        program.iterations(e.trail).iter().map(|(variable, value)| format!("{variable}={value}")).collect();
    if !iterations.is_empty() {
        out.push(text(2, &iterations.join(", ")));
    }
    if e.bytes > 0 {
        out.push(DebugAnnotation { name_iid: Some(3), uint_value: Some(e.bytes), ..DebugAnnotation::default() });
    }
    out
}

fn text(name: u64, value: &str) -> DebugAnnotation {
    DebugAnnotation { name_iid: Some(name), string_value: Some(value.to_string()), ..DebugAnnotation::default() }
}

fn number(name: u64, value: f64) -> DebugAnnotation {
    DebugAnnotation { name_iid: Some(name), double_value: Some(value), ..DebugAnnotation::default() }
}

fn interned(iid: u64, name: &str) -> Interned {
    Interned { iid: Some(iid), name: Some(name.to_string()) }
}

/// The number of a process, which stands for a core. The viewer takes the thread whose number is the process's for its main thread, wherever it is, so
/// processes and threads have numbers of their own.
fn pid(process: i32) -> i32 {
    process * 1000
}

struct Writer {
    out: Vec<u8>,
    names: FxHashMap<Box<str>, u64>,
    tracks: u64,
    /// Processes so far; the last is the one being written.
    processes: i32,
    /// Arrows so far, of the ranks before.
    flows: u64,
    cleared: bool,
}

impl Writer {
    fn packet(&mut self, mut packet: TracePacket) {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        packet.sequence_flags = Some(if self.cleared { NEEDS_STATE } else { CLEARED });
        self.cleared = true;
        // Field 1 of the trace, length-delimited: packets can be appended one by one.
        self.out.push(1 << 3 | 2);
        // Writing to a vector cannot run out of space.
        if packet.encode_length_delimited(&mut self.out).is_err() {
            debug_assert!(false, "a vector grows");
        }
    }

    fn interned(&mut self, event_names: Vec<Interned>, debug_annotation_names: Vec<Interned>) {
        let interned_data = Some(InternedData { event_names, debug_annotation_names });
        self.packet(TracePacket { interned_data, ..TracePacket::default() });
    }

    fn track(&mut self, mut descriptor: TrackDescriptor) -> u64 {
        self.tracks += 1;
        descriptor.uuid = Some(self.tracks);
        self.packet(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() });
        self.tracks
    }

    fn process(&mut self, name: &str) -> u64 {
        self.processes += 1;
        let process = Some(ProcessDescriptor {
            pid: Some(pid(self.processes)),
            process_name: Some(name.to_string()),
            process_labels: vec![format!("nki-sim {}", super::VERSION)],
        });
        self.track(TrackDescriptor { process, ..TrackDescriptor::default() })
    }

    fn thread(&mut self, process: u64, row: i32, name: &str) -> u64 {
        let pid = pid(self.processes);
        let tid = pid + row + 1;
        let thread = Some(ThreadDescriptor { pid: Some(pid), tid: Some(tid), thread_name: Some(name.to_string()) });
        self.track(TrackDescriptor {
            thread,
            parent_uuid: Some(process),
            name: Some(name.to_string()),
            ..TrackDescriptor::default()
        })
    }

    fn child(&mut self, parent: u64, name: &str) -> u64 {
        self.track(TrackDescriptor {
            parent_uuid: Some(parent),
            name: Some(name.to_string()),
            ..TrackDescriptor::default()
        })
    }

    fn begin(
        &mut self,
        track: u64,
        time: Ps,
        name: &str,
        debug_annotations: Vec<DebugAnnotation>,
        flow_ids: Vec<u64>,
        terminating_flow_ids: Vec<u64>,
    ) {
        let iid = match self.names.get(name) {
            Some(iid) => *iid,
            None => {
                let iid = self.names.len() as u64 + 1;
                self.names.insert(name.into(), iid);
                self.interned(vec![interned(iid, name)], Vec::new());
                iid
            }
        };
        self.packet(TracePacket {
            timestamp: Some(time / 1000),
            track_event: Some(TrackEvent {
                kind: Some(BEGIN),
                name_iid: Some(iid),
                track_uuid: Some(track),
                debug_annotations,
                flow_ids,
                terminating_flow_ids,
            }),
            ..TracePacket::default()
        });
    }

    fn end(&mut self, track: u64, time: Ps) {
        self.packet(TracePacket {
            timestamp: Some(time / 1000),
            track_event: Some(TrackEvent { kind: Some(END), track_uuid: Some(track), ..TrackEvent::default() }),
            ..TracePacket::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::tests::{tensor_add, time};

    /// (name, begin, end)
    type Slice = (String, u64, u64);

    /// Reads a trace back: per track its name and its slices, nested ones included.
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
            if let Some(e) = p.track_event {
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
        // A slice begin on track 7 named by iid 1 at 5 ns, encoded by hand from the public definitions.
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
}
