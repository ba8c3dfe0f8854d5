//! Tables of DMA: DmaPacket, DmaPacketAggregated, and TensorInfo, which sums the loads of inputs.

use nki_isa::inst::Footprint;
use nki_isa::machine::Context;
use nki_isa::names::DgeMode;
use nki_isa::program::NodeKind;
use nki_isa::work::{Dma, WorkKind};
use nki_isa::{Arch, Engine, Program, Space, TensorId, View};
use nki_sim_core::timeline::{Event, PhaseKind, Ps, RowId, RowKind, Timeline};
use nki_sim_core::timing::cost::engine_shares;
use nki_sim_core::trace::index_nodes;

use super::table::{self, bools, floats, ints, texts};
use super::{Profile, Run, ns, schema};

/// An executed transfer.
pub(super) struct Transfer<'a> {
    /// Its event.
    pub(super) event: usize,
    /// Time when its first byte moves.
    pub(super) start: Ps,
    /// Time when its last byte has moved.
    pub(super) end: Ps,
    /// Its data; `None` for a transfer that is not a DMA instruction of the program.
    moved: Option<Moved<'a>>,
    /// Bytes at the destination.
    pub(super) bytes: u64,
    /// The descriptor generator, as named in the schema.
    pub(super) queue_type: &'static str,
}

/// The work and the operands of a DMA instruction.
#[derive(Clone)]
struct Moved<'a> {
    dma: Dma,
    src: Option<&'a View>,
    dst: Option<&'a View>,
}

impl Transfer<'_> {
    /// Bytes of the source, which differ from those of the destination if the dtype changes.
    fn read_bytes(&self) -> u64 {
        self.moved.as_ref().and_then(|m| m.src).map_or(self.bytes, |v| v.bytes() as u64)
    }

    /// Bytes per second.
    fn throughput(&self) -> f64 {
        let seconds = (self.end - self.start) as f64 / 1e12;
        if seconds > 0.0 { self.bytes as f64 / seconds } else { 0.0 }
    }

    /// The HBM tensor, or else the destination.
    fn tensor(&self) -> Option<TensorId> {
        let m = self.moved.as_ref()?;
        let hbm = [m.src, m.dst].into_iter().flatten().find(|v| v.space.is_hbm());
        hbm.or(m.dst).map(|v| v.tensor)
    }
}

/// The interval from a transfer's first byte to its last.
pub(super) fn moving(e: &Event) -> (Ps, Ps) {
    let phases = e.phases();
    let moves = || phases.iter().filter(|p| matches!(p.kind, PhaseKind::Payload | PhaseKind::Bandwidth));
    let start = moves().map(|p| p.start).min().unwrap_or(e.start);
    (start, moves().map(|p| p.end).max().unwrap_or(e.complete).max(start))
}

/// The transfers of a run.
pub(super) fn all<'a>(run: &Run<'a>) -> Vec<Transfer<'a>> {
    let program = run.analysis.program;
    let nodes: Vec<Vec<Option<Moved<'a>>>> = program.cores.iter().map(|stream| statements(program, stream)).collect();
    let timeline = run.analysis.timeline;
    let queued = timeline.events.iter().enumerate().filter_map(|(i, e)| Some((i, e, e.origin.queue?)));
    queued
        .map(|(event, e, queue)| {
            let (start, end) = moving(e);
            let moved = nodes[e.origin.core as usize][e.node.0 as usize].clone();
            let queue_type = queue_type(program, timeline, queue, moved.as_ref());
            Transfer { event, start, end, moved, bytes: e.origin.bytes, queue_type }
        })
        .collect()
}

/// The data that each statement moves, by number.
fn statements<'a>(program: &'a Program, stream: &'a [nki_isa::Node]) -> Vec<Option<Moved<'a>>> {
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    let of = |node: &'a nki_isa::Node| {
        let NodeKind::Inst(inst) = &node.kind else { return None };
        let WorkKind::Dma(dma) = inst.work(&context).kind else { return None };
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        // The largest view on each side, because the others are indices.
        let largest = |views: &[&'a View]| views.iter().copied().max_by_key(|v| v.bytes());
        Some(Moved { src: largest(&footprint.reads), dst: largest(&footprint.writes), dma })
    };
    index_nodes(stream).into_iter().map(of).collect()
}

/// The descriptor generator; for prebuilt descriptors, the kind of data.
fn queue_type(program: &Program, timeline: &Timeline, queue: RowId, moved: Option<&Moved<'_>>) -> &'static str {
    const SOFTWARE: &str = "software_dynamic";
    const HARDWARE: &str = "hardware_dynamic";
    let by_gpsimd = timeline.rows[queue.0 as usize].kind == RowKind::DmaQueue(Engine::GpSimd);
    match moved.map_or(DgeMode::Unknown, |m| m.dma.dge) {
        DgeMode::SwDge => SOFTWARE,
        DgeMode::HwDge => HARDWARE,
        DgeMode::Unknown if by_gpsimd => SOFTWARE,
        DgeMode::Unknown if Arch::of(program.target).hwdge => HARDWARE,
        _ => {
            let tensor = |view: Option<&View>| view.map(|v| v.tensor);
            let (src, dst) = moved.map_or((None, None), |m| (tensor(m.src), tensor(m.dst)));
            if program.outputs.iter().any(|o| Some(o.tensor) == dst) {
                "output"
            } else if program.inputs.iter().any(|i| Some(i.tensor) == src) {
                "input"
            } else {
                "data"
            }
        }
    }
}

/// The rows of DmaPacket with descriptors of this kind: count and bytes.
pub(super) fn packets_of(p: &Profile<'_>, wanted: impl Fn(&str) -> bool) -> (u64, u64) {
    let of = p.transfers.iter().filter(|t| wanted(t.queue_type));
    of.fold((0, 0), |(count, bytes), t| (count + shares(p, t).len() as u64, bytes + t.bytes))
}

/// The DMA engines that carry a transfer, each with its share, as in the model.
fn shares(p: &Profile<'_>, t: &Transfer<'_>) -> Vec<(u64, u64)> {
    let Some(m) = &t.moved else { return vec![(0, 1)] };
    let view = if m.dma.dst.space.is_on_chip() { m.dst } else { m.src };
    let partition = view.and_then(|v| p.run.kernel.placement.address(v.tensor)).map_or(0, |a| a.partition);
    let shares = engine_shares(&p.run.kernel.params, &m.dma, partition);
    shares.into_iter().map(|(engine, share)| (u64::from(engine), share)).collect()
}

/// A row of DmaPacket.
struct Packet {
    transfer: usize,
    number: u64,
    engine: u64,
    read: u64,
    written: u64,
}

/// The rows of DmaPacket: bytes are split without changing the transfer's sum.
fn split(p: &Profile<'_>) -> Vec<Packet> {
    let mut out = Vec::new();
    for (transfer, t) in p.transfers.iter().enumerate() {
        let shares = shares(p, t);
        let whole: u64 = shares.iter().map(|s| s.1).sum();
        let part = |bytes: u64, upto: u64| (u128::from(bytes) * u128::from(upto) / u128::from(whole.max(1))) as u64;
        let (read, mut before) = (t.read_bytes(), 0);
        for (number, (engine, share)) in shares.into_iter().enumerate() {
            let of = |bytes| part(bytes, before + share) - part(bytes, before);
            out.push(Packet { transfer, number: number as u64, engine, read: of(read), written: of(t.bytes) });
            before += share;
        }
    }
    out
}

/// A queue on a DMA engine.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Queue {
    pub(super) core: u32,
    /// Its number on its core.
    pub(super) number: usize,
    pub(super) name: &'static str,
    /// See [`Transfer::queue_type`].
    pub(super) kind: &'static str,
    /// The DMA engine.
    pub(super) engine: u64,
}

/// The queue of each row of DmaPacket.
pub(super) fn queues(p: &Profile<'_>) -> impl Iterator<Item = Queue> {
    split(p).into_iter().map(move |packet| {
        let t = &p.transfers[packet.transfer];
        let (name, number) = queue(p, t);
        Queue { core: p.timeline.events[t.event].origin.core, number, name, kind: t.queue_type, engine: packet.engine }
    })
}

/// Total time of all rows of DmaPacket.
pub(super) fn packet_time(p: &Profile<'_>) -> Ps {
    p.transfers.iter().map(|t| (t.end - t.start) * shares(p, t).len() as u64).sum()
}

/// Table DmaPacket.
pub(super) fn packets(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let rows = split(p);
    let of = |row: &Packet| &p.transfers[row.transfer];
    let event = |row: &Packet| &p.timeline.events[of(row).event];
    table::write(&schema::DMA_PACKET, rows.len(), |column| {
        Some(match column {
            "start_ts" => ints(rows.iter().map(|r| ns(of(r).start))),
            "end_ts" => ints(rows.iter().map(|r| ns(of(r).end))),
            "duration_ns" => ints(rows.iter().map(|r| ns(of(r).end) - ns(of(r).start))),
            "pcore_idx" => ints(rows.iter().map(|r| event(r).origin.core)),
            "id" => ints(0..rows.len()),
            "packet_idx" => ints(rows.iter().map(|r| r.number)),
            "packet_aggregation_id" => ints(rows.iter().map(|r| r.transfer)),
            "engine_idx" => ints(rows.iter().map(|r| r.engine)),
            "read_bytes" => ints(rows.iter().map(|r| r.read)),
            "write_bytes" | "transfer_bytes" => ints(rows.iter().map(|r| r.written)),
            "throughput" => floats(rows.iter().map(|r| {
                let t = of(r);
                t.throughput() * (r.written as f64 / t.bytes.max(1) as f64)
            })),
            "queue_type" => texts(rows.iter().map(|r| of(r).queue_type)),
            "variable" => texts(rows.iter().map(|r| variable(p, of(r)))),
            "queue_name" => texts(rows.iter().map(|r| queue(p, of(r)).0)),
            "queue_idx" => ints(rows.iter().map(|r| queue(p, of(r)).1)),
            "crc" => ints(rows.iter().map(|_| 0)),
            _ => return None,
        })
    })
}

fn variable<'a>(p: &'a Profile<'_>, t: &Transfer<'_>) -> &'a str {
    t.tensor().map_or("", |id| &p.run.analysis.program.tensor(id).name)
}

/// The queue of a transfer: its name, and its number on its core.
fn queue(p: &Profile<'_>, t: &Transfer<'_>) -> (&'static str, usize) {
    let e = &p.timeline.events[t.event];
    let Some(row) = e.origin.queue else { return ("", 0) };
    let first = p.timeline.rows.iter().position(|r| r.core == e.origin.core && matches!(r.kind, RowKind::DmaQueue(_)));
    let kind = p.timeline.rows[row.0 as usize].kind;
    (kind.name(), (row.0 as usize).saturating_sub(first.unwrap_or_default()))
}

/// A list in the schema's syntax: `[1024, 512]`.
fn list<T: ToString>(items: impl Iterator<Item = T>) -> String {
    format!("[{}]", items.map(|i| i.to_string()).collect::<Vec<_>>().join(", "))
}

/// One side of a transfer in the schema's terms.
struct Side {
    memory: &'static str,
    partitions: String,
    count: u64,
    shape: String,
    offset: String,
    steps: String,
}

fn side(p: &Profile<'_>, view: Option<&View>) -> Side {
    let Some(v) = view else {
        let none = String::new;
        return Side { memory: "", partitions: none(), count: 0, shape: none(), offset: none(), steps: none() };
    };
    let program = p.run.analysis.program;
    let memory = match v.space {
        Space::Sbuf => "[SB]",
        Space::Psum => "[PSUM]",
        _ if program.outputs.iter().any(|o| o.tensor == v.tensor) => "[OUTPUT]",
        _ if program.inputs.iter().any(|i| i.tensor == v.tensor) => "[INPUT]",
        _ => "[HBM]",
    };
    let in_sbuf = v.space == Space::Sbuf;
    let base = p.run.kernel.placement.address(v.tensor).map_or(0, |a| a.partition);
    let (first, count) = (base + v.partition, v.partitions());
    let last = first + count.saturating_sub(1);
    let partitions = if first == last { first.to_string() } else { format!("{first}-{last}") };
    Side {
        memory,
        partitions: if in_sbuf { partitions } else { String::new() },
        count: if in_sbuf { u64::from(count) } else { 0 },
        shape: list(v.shape().iter()),
        offset: format!("[{:#x}]", v.offset.max(0) as u64 * v.dtype.size() as u64),
        steps: list(v.dims.iter().map(|d| d.stride)),
    }
}

/// Table DmaPacketAggregated.
pub(super) fn aggregated(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let rows = &p.transfers;
    let event = |t: &Transfer<'_>| &p.timeline.events[t.event];
    let dma = |t: &Transfer<'_>| t.moved.as_ref().map(|m| m.dma.clone());
    let read = |t: &Transfer<'_>| side(p, t.moved.as_ref().and_then(|m| m.src));
    let write = |t: &Transfer<'_>| side(p, t.moved.as_ref().and_then(|m| m.dst));
    table::write(&schema::DMA_PACKET_AGGREGATED, rows.len(), |column| {
        Some(match column {
            "start_ts" => ints(rows.iter().map(|t| ns(t.start))),
            "end_ts" => ints(rows.iter().map(|t| ns(t.end))),
            "duration_ns" => ints(rows.iter().map(|t| ns(t.end) - ns(t.start))),
            "id" => ints(0..rows.len()),
            "pcore_idx" => ints(rows.iter().map(|t| event(t).origin.core)),
            "block_id" => ints(rows.iter().map(|t| event(t).node.0)),
            "queue_idx" => ints(rows.iter().map(|t| queue(p, t).1)),
            "queue_name" => texts(rows.iter().map(|t| queue(p, t).0)),
            "queue_type" => texts(rows.iter().map(|t| t.queue_type)),
            "op" => {
                texts(rows.iter().map(|t| if dma(t).is_some_and(|d| d.dst.space.is_hbm()) { "write" } else { "read" }))
            }
            "variable" => texts(rows.iter().map(|t| variable(p, t))),
            "read_bytes" => ints(rows.iter().map(Transfer::read_bytes)),
            "write_bytes" | "transfer_bytes" => ints(rows.iter().map(|t| t.bytes)),
            "throughput" => floats(rows.iter().map(Transfer::throughput)),
            "source" => texts(rows.iter().map(|t| read(t).memory)),
            "dest" => texts(rows.iter().map(|t| write(t).memory)),
            "semaphore_id" => texts(rows.iter().map(|_| "")),
            "read_sbuf_partitions" => texts(rows.iter().map(|t| read(t).partitions)),
            "read_num_sbuf_partitions" => ints(rows.iter().map(|t| read(t).count)),
            "read_shape" => texts(rows.iter().map(|t| read(t).shape)),
            "read_offset" => texts(rows.iter().map(|t| read(t).offset)),
            "read_steps" => texts(rows.iter().map(|t| read(t).steps)),
            "write_sbuf_partitions" => texts(rows.iter().map(|t| write(t).partitions)),
            "write_num_sbuf_partitions" => ints(rows.iter().map(|t| write(t).count)),
            "write_shape" => texts(rows.iter().map(|t| write(t).shape)),
            "write_offset" => texts(rows.iter().map(|t| write(t).offset)),
            "write_steps" => texts(rows.iter().map(|t| write(t).steps)),
            "is_transpose_mode" => bools(rows.iter().map(|t| dma(t).is_some_and(|d| d.transpose))),
            "trigger" => ints(rows.iter().map(|t| ns(event(t).start))),
            "completion" => ints(rows.iter().map(|t| ns(event(t).end))),
            _ => return None,
        })
    })
}

/// Table TensorInfo.
pub(super) fn tensors(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let program = p.run.analysis.program;
    let inputs = program.inputs.iter().map(|i| (&i.name, "IN", i.tensor));
    let outputs = program.outputs.iter().map(|o| (&o.name, "OUT", o.tensor));
    let rows: Vec<_> = inputs.chain(outputs).collect();
    // Transfers to SBUF and their bytes.
    let loads = |tensor: TensorId| {
        let moved = p.transfers.iter().filter(|t| {
            let Some(m) = &t.moved else { return false };
            m.dma.dst.space == Space::Sbuf && m.src.is_some_and(|v| v.tensor == tensor)
        });
        moved.fold((0u64, 0u64), |(count, bytes), t| (count + 1, bytes + t.read_bytes()))
    };
    let loads: Vec<(u64, u64)> = rows.iter().map(|r| loads(r.2)).collect();
    let size = |tensor: TensorId| program.tensor(tensor).bytes() as u64;
    table::write(&schema::TENSOR_INFO, rows.len(), |column| {
        Some(match column {
            "variable_name" => texts(rows.iter().map(|r| r.0)),
            "type" => texts(rows.iter().map(|r| r.1)),
            "shape" => texts(
                rows.iter().map(|r| program.tensor(r.2).shape.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")),
            ),
            "size" => ints(rows.iter().map(|r| size(r.2))),
            "node" => ints(rows.iter().map(|_| 0)),
            "load_to_sbuf_avg_size_bytes" => ints(loads.iter().map(|l| l.1.checked_div(l.0).unwrap_or(0))),
            "load_to_sbuf_total_size_bytes" => ints(loads.iter().map(|l| l.1)),
            "load_to_sbuf_dma_count" => ints(loads.iter().map(|l| l.0)),
            "load_to_sbuf_repeat_factor" => {
                floats(rows.iter().zip(&loads).map(|(r, l)| l.1 as f64 / size(r.2).max(1) as f64))
            }
            _ => return None,
        })
    })
}
