//! Tables of traffic over time, and of rendezvous of cores and ranks: DmaUsage, HbmUsage, PendingDma, CcOp, CoreBarriers.

use nki_isa::inst::Footprint;
use nki_isa::machine::Context;
use nki_isa::names::Named as _;
use nki_isa::program::{Node, NodeKind};
use nki_isa::work::{RendezvousWork, WorkKind};
use nki_isa::{Arch, Arg, Inst, View};
use nki_sim_core::timeline::{Event, Ps};
use nki_sim_core::trace::index_nodes;

use super::table::{self, floats, ints, some_texts, texts};
use super::transfers::{Transfer, moving};
use super::{Profile, engine, ns, schema};

/// The traffic of a core from this time on.
struct Sample {
    time: Ps,
    core: u32,
    /// Bytes per second from now on.
    rate: f64,
    /// Bytes until now.
    total: u64,
}

/// The traffic at the start and end of each transfer, whose bytes are spread evenly over its duration.
fn samples(p: &Profile<'_>, bytes: impl Fn(&Transfer<'_>) -> u64) -> Vec<Sample> {
    let mut out = Vec::new();
    for core in 0..p.run.analysis.program.cores.len() as u32 {
        let of_core = |t: &&Transfer<'_>| p.timeline.events[t.event].origin.core == core && bytes(t) > 0;
        // Time, change of the rate in bytes per second, completed bytes: fractions of bytes are kept out of the sum.
        let mut edges: Vec<(Ps, f64, u64)> = Vec::new();
        for t in p.transfers.iter().filter(of_core) {
            let (amount, time) = (bytes(t), t.end.saturating_sub(t.start).max(1));
            let rate = amount as f64 * 1e12 / time as f64;
            edges.extend([(t.start, rate, 0), (t.start + time, -rate, amount)]);
        }
        edges.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (mut rate, mut under_way, mut done) = (0.0f64, 0u32, 0u64);
        // Bytes moved so far by the transfers in flight.
        let (mut partly, mut before) = (0.0f64, 0);
        for (time, change, complete) in edges {
            partly += rate * (time - before) as f64 / 1e12;
            before = time;
            rate += change;
            under_way = if change > 0.0 { under_way + 1 } else { under_way.saturating_sub(1) };
            done += complete;
            partly -= complete as f64;
            if under_way == 0 {
                // Sums of fractions may miss 0 by rounding.
                (rate, partly) = (0.0, 0.0);
            }
            let total = done + partly.max(0.0).round() as u64;
            match out.last_mut() {
                Some(last @ Sample { .. }) if (last.time, last.core) == (time, core) => {
                    *last = Sample { time, core, rate, total }
                }
                _ => out.push(Sample { time, core, rate, total }),
            }
        }
    }
    out
}

fn usage(table: &schema::Table, rows: &[Sample]) -> Result<Vec<u8>, String> {
    table::write(table, rows.len(), |column| {
        Some(match column {
            "timestamp" => ints(rows.iter().map(|s| ns(s.time))),
            "current_throughput" => floats(rows.iter().map(|s| s.rate)),
            "total_transfer_bytes" => ints(rows.iter().map(|s| s.total)),
            "pcore_idx" => ints(rows.iter().map(|s| s.core)),
            _ => return None,
        })
    })
}

/// Table DmaUsage.
pub(super) fn dma(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    usage(&schema::DMA_USAGE, &samples(p, |t| t.bytes))
}

/// Table HbmUsage.
pub(super) fn hbm(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    usage(&schema::HBM_USAGE, &samples(p, |t| p.run.analysis.counters(&p.timeline.events[t.event]).hbm()))
}

/// Table PendingDma.
pub(super) fn pending(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let mut rows: Vec<(Ps, u32, i64)> = Vec::new();
    for core in 0..p.run.analysis.program.cores.len() as u32 {
        let mut edges: Vec<(Ps, i64)> = Vec::new();
        for t in p.transfers.iter().filter(|t| p.timeline.events[t.event].origin.core == core) {
            let triggered = p.timeline.events[t.event].end;
            edges.extend([(triggered.min(t.end), 1), (t.end, -1)]);
        }
        edges.sort_unstable();
        let mut now = 0;
        for (time, change) in edges {
            now += change;
            match rows.last_mut() {
                Some(last) if (last.0, last.1) == (time, core) => last.2 = now,
                _ => rows.push((time, core, now)),
            }
        }
    }
    table::write(&schema::PENDING_DMA, rows.len(), |column| {
        Some(match column {
            "timestamp" => ints(rows.iter().map(|r| ns(r.0))),
            "value" => ints(rows.iter().map(|r| r.2)),
            "pcore_idx" => ints(rows.iter().map(|r| r.1)),
            _ => return None,
        })
    })
}

/// `AllReduce` for `all_reduce`.
fn camel(name: &str) -> String {
    let upper = |word: &str| word.get(..1).map_or_else(String::new, |first| first.to_uppercase() + &word[1..]);
    name.split('_').map(upper).collect()
}

/// The groups of ranks in a collective's operands, as nested lists.
fn replica_group(inst: &Inst) -> Option<String> {
    fn text(arg: &Arg) -> Option<String> {
        match arg {
            Arg::Int(rank) => Some(rank.to_string()),
            Arg::List(items) => Some(format!("[{}]", items.iter().map(text).collect::<Option<Vec<_>>>()?.join(", "))),
            _ => None,
        }
    }
    let operands = inst.schema().operands;
    let at = operands.iter().position(|o| o.name == "replica_group")?;
    text(inst.args().get(at)?)
}

/// The rendezvous events of cores or ranks, with their statements.
fn rendezvous<'a>(p: &Profile<'a>) -> Vec<(usize, &'a Event, &'a Node, RendezvousWork)> {
    let program = p.run.analysis.program;
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    let work = |node: &'a Node| {
        let NodeKind::Inst(inst) = &node.kind else { return None };
        match inst.work(&context).kind {
            WorkKind::Rendezvous(work) => Some((node, work)),
            _ => None,
        }
    };
    let of = |stream: &'a [Node]| index_nodes(stream).into_iter().map(work).collect::<Vec<_>>();
    let nodes: Vec<_> = program.cores.iter().map(|stream| of(stream)).collect();
    let events = p.timeline.events.iter().enumerate();
    let found = events
        .filter_map(|(id, e)| nodes[e.origin.core as usize][e.node.0 as usize].map(|(node, work)| (id, e, node, work)));
    found.collect()
}

/// A collective, with the size of its data.
struct Collective<'a> {
    event: &'a Event,
    id: usize,
    elements: u64,
    dtype: &'static str,
    input: u64,
    output: u64,
    groups: Option<String>,
}

/// The intervals in which the bytes of each collective move.
pub(super) fn collective_spans(p: &Profile<'_>) -> Vec<(Ps, Ps)> {
    let all = rendezvous(p).into_iter().filter(|r| matches!(r.3, RendezvousWork::Collective(_)));
    all.map(|r| moving(r.1)).collect()
}

/// Table CcOp.
pub(super) fn collectives<'a>(p: &Profile<'a>) -> Result<Vec<u8>, String> {
    let of = |(id, event, node, work): (usize, &'a Event, &'a Node, RendezvousWork)| {
        let (NodeKind::Inst(inst), RendezvousWork::Collective(_)) = (&node.kind, work) else { return None };
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        let bytes = |views: &[&View]| views.iter().map(|v| v.bytes() as u64).sum::<u64>();
        let dtype = footprint.writes.first()?.dtype.name();
        let elements = footprint.writes.iter().map(|v| v.elements() as u64).sum();
        let (input, output) = (bytes(&footprint.reads), bytes(&footprint.writes));
        Some(Collective { event, id, elements, dtype, input, output, groups: replica_group(inst) })
    };
    let rows: Vec<Collective<'_>> = rendezvous(p).into_iter().filter_map(of).collect();
    let seconds = |e: &Event| {
        let (start, end) = moving(e);
        (end - start).max(1) as f64 / 1e12
    };
    table::write(&schema::CC_OP, rows.len(), |column| {
        Some(match column {
            "start_ts" => ints(rows.iter().map(|r| ns(moving(r.event).0))),
            "end_ts" => ints(rows.iter().map(|r| ns(moving(r.event).1))),
            "duration_ns" => ints(rows.iter().map(|r| ns(moving(r.event).1) - ns(moving(r.event).0))),
            "operation" => texts(rows.iter().map(|r| camel(r.event.origin.label))),
            "algorithm" => texts(rows.iter().map(|_| "simulated")),
            "num_elements" => ints(rows.iter().map(|r| r.elements)),
            "dtype" => texts(rows.iter().map(|r| r.dtype)),
            "op_id" => ints(rows.iter().map(|r| r.id)),
            "stream_id" | "stream_index" => ints(rows.iter().map(|r| r.event.origin.core)),
            "trigger_engine" => texts(rows.iter().map(|r| engine(p.timeline, r.event.origin.row))),
            "input_size" => ints(rows.iter().map(|r| r.input)),
            "output_size" => ints(rows.iter().map(|r| r.output)),
            "algorithm_bandwidth" => floats(rows.iter().map(|r| r.input.max(r.output) as f64 / seconds(r.event))),
            "trigger_start_ts" => ints(rows.iter().map(|r| ns(r.event.start))),
            "cc_trigger_start_delay" => {
                ints(rows.iter().map(|r| ns(moving(r.event).0).saturating_sub(ns(r.event.start))))
            }
            "replica_group" => some_texts(rows.iter().map(|r| r.groups.as_ref())),
            _ => return None,
        })
    })
}

/// Table CoreBarriers.
pub(super) fn barriers(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let barriers = rendezvous(p).into_iter().filter(|r| r.3 == RendezvousWork::Barrier);
    let rows: Vec<(usize, &Event)> = barriers.map(|r| (r.0, r.1)).collect();
    table::write(&schema::CORE_BARRIERS, rows.len(), |column| {
        Some(match column {
            "start_ts" => ints(rows.iter().map(|r| ns(r.1.start))),
            "end_ts" => ints(rows.iter().map(|r| ns(r.1.end))),
            "duration_ns" => ints(rows.iter().map(|r| ns(r.1.end) - ns(r.1.start))),
            "engine_name" => texts(rows.iter().map(|r| engine(p.timeline, r.1.origin.row))),
            "id" => ints(rows.iter().map(|r| r.0)),
            "semaphore" => ints(rows.iter().map(|_| 0)),
            "compiler_pc" => ints(rows.iter().map(|r| r.1.node.0)),
            "compiler_opcode" => texts(rows.iter().map(|r| r.1.origin.label)),
            "compiler_operands" => {
                texts(rows.iter().map(|r| &p.operands[r.1.origin.core as usize][r.1.node.0 as usize]))
            }
            "pcore_idx" => ints(rows.iter().map(|r| r.1.origin.core)),
            _ => return None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_collectives() {
        assert_eq!(camel("all_gather_v"), "AllGatherV");
        assert_eq!(camel("reduce_scatter"), "ReduceScatter");
    }
}
