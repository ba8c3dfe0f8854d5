//! Writes the packets of a trace sequentially.

use prost::Message as _;
use rustc_hash::FxHashMap;

use super::proto::{
    CounterDescriptor, DebugAnnotation, Interned, InternedData, ProcessDescriptor, ThreadDescriptor, TracePacket,
    TrackDescriptor, TrackEvent,
};
use crate::timeline::Ps;

/// The id of the trace's only writer.
pub(super) const SEQUENCE: u32 = 1;
const CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;
pub(super) const BEGIN: i32 = 1;
pub(super) const END: i32 = 2;
pub(super) const COUNTER: i32 = 4;

pub(super) fn interned(iid: u64, name: &str) -> Interned {
    Interned { iid: Some(iid), name: Some(name.to_string()) }
}

/// The process id of a core. The viewer treats a thread whose id equals a process id as that process's main thread, wherever it is, so
/// processes and threads have distinct ids.
fn pid(process: i32) -> i32 {
    process * 1000
}

/// Writes packets.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) out: Vec<u8>,
    names: FxHashMap<Box<str>, u64>,
    tracks: u64,
    /// Number of processes; the last is the current one.
    processes: i32,
    /// Arrows so far.
    pub(super) flows: u64,
    cleared: bool,
}

impl Writer {
    fn packet(&mut self, mut packet: TracePacket) {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        packet.sequence_flags = Some(if self.cleared { NEEDS_STATE } else { CLEARED });
        self.cleared = true;
        // Field 1 of the trace, length-delimited: packets can be appended one by one.
        self.out.push(1 << 3 | 2);
        // Writing to a vector cannot fail for lack of space.
        if packet.encode_length_delimited(&mut self.out).is_err() {
            debug_assert!(false, "a vector grows");
        }
    }

    pub(super) fn interned(&mut self, event_names: Vec<Interned>, debug_annotation_names: Vec<Interned>) {
        let interned_data = Some(InternedData { event_names, debug_annotation_names });
        self.packet(TracePacket { interned_data, ..TracePacket::default() });
    }

    fn track(&mut self, mut descriptor: TrackDescriptor) -> u64 {
        self.tracks += 1;
        descriptor.uuid = Some(self.tracks);
        self.packet(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() });
        self.tracks
    }

    pub(super) fn process(&mut self, name: &str) -> u64 {
        self.processes += 1;
        let process = Some(ProcessDescriptor {
            pid: Some(pid(self.processes)),
            process_name: Some(name.to_string()),
            process_labels: vec![format!("nki-sim {}", crate::report::VERSION)],
        });
        self.track(TrackDescriptor { process, ..TrackDescriptor::default() })
    }

    pub(super) fn thread(&mut self, process: u64, row: i32, name: &str) -> u64 {
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

    pub(super) fn child(&mut self, parent: u64, name: &str) -> u64 {
        self.track(TrackDescriptor {
            parent_uuid: Some(parent),
            name: Some(name.to_string()),
            ..TrackDescriptor::default()
        })
    }

    pub(super) fn begin(
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
                ..TrackEvent::default()
            }),
            ..TracePacket::default()
        });
    }

    pub(super) fn end(&mut self, track: u64, time: Ps) {
        self.packet(TracePacket {
            timestamp: Some(time / 1000),
            track_event: Some(TrackEvent { kind: Some(END), track_uuid: Some(track), ..TrackEvent::default() }),
            ..TracePacket::default()
        });
    }

    /// A track of values below a process.
    pub(super) fn counter(&mut self, process: u64, name: &str, unit: &str) -> u64 {
        self.track(TrackDescriptor {
            parent_uuid: Some(process),
            name: Some(name.to_string()),
            counter: Some(CounterDescriptor { unit_name: Some(unit.to_string()) }),
            ..TrackDescriptor::default()
        })
    }

    /// The value of a counter from this time on.
    pub(super) fn value(&mut self, track: u64, time: Ps, value: f64) {
        self.packet(TracePacket {
            timestamp: Some(time / 1000),
            track_event: Some(TrackEvent {
                kind: Some(COUNTER),
                track_uuid: Some(track),
                double_counter_value: Some(value),
                ..TrackEvent::default()
            }),
            ..TracePacket::default()
        });
    }
}
