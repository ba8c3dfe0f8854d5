//! Tables of executed instructions: Instruction, OpcodeSummary, Flow.

use std::collections::BTreeMap;

use nki_isa::inst::values::Feeds;
use nki_isa::program::NodeKind;
use nki_sim_core::analysis::counters::Counters;
use nki_sim_core::report::row_name;
use nki_sim_core::timeline::{Cause, Event, Hazard, Ps, Release};
use nki_sim_core::trace::index_nodes;

use super::table::{self, Values, floats, ints, some_ints, some_texts, texts};
use super::{Profile, covered, engine, ns, percent, schema, source};

/// By core and statement: whether it is a product of the tensor engine.
fn products(p: &Profile<'_>) -> Vec<Vec<bool>> {
    let is_product = |kind: &NodeKind| matches!(kind, NodeKind::Inst(i) if i.values().feeds == Feeds::Product);
    let of = |stream| index_nodes(stream).iter().map(|n| is_product(&n.kind)).collect();
    p.run.analysis.program.cores.iter().map(|stream| of(stream)).collect()
}

/// The name of all tensor-engine products, including transposes.
const PRODUCT: &str = "MATMUL";

/// The name of an instruction in the hardware's style.
fn opcode(e: &Event, product: bool) -> String {
    if product { PRODUCT.into() } else { e.origin.label.strip_prefix("nc_").unwrap_or(e.origin.label).to_uppercase() }
}

/// By event.
fn opcodes_of(p: &Profile<'_>) -> Vec<String> {
    let products = products(p);
    let product =
        |e: &Event| products[e.origin.core as usize][e.node.0 as usize] || p.run.analysis.counters(e).flops > 0;
    p.timeline.events.iter().map(|e| opcode(e, product(e))).collect()
}

/// The opcode of one event.
pub(super) fn opcode_of(p: &Profile<'_>, event: usize) -> String {
    let e = &p.timeline.events[event];
    opcode(e, p.run.analysis.counters(e).flops > 0)
}

/// Table Instruction.
pub(super) fn instructions(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let (t, a) = (p.timeline, p.run.analysis);
    let events = &t.events;
    let opcodes = opcodes_of(p);
    let program = a.program;
    let mut counts = vec![0u64; t.rows.len()];
    let pcs: Vec<u64> = events
        .iter()
        .map(|e| {
            let count = &mut counts[e.origin.row.0 as usize];
            *count += 1;
            *count - 1
        })
        .collect();
    let counters = |get: fn(&Counters) -> u64| ints(events.iter().map(|e| get(a.counters(e))));
    let transfer = |get: fn(&Event, (Ps, Ps)) -> u64| some_ints(events.iter().map(|e| span(e).map(|s| get(e, s))));
    let place = |e: &Event| Some(t.place(e.origin.loc)).filter(|place| !place.is_empty());
    let products: Vec<bool> = opcodes.iter().map(|o| o == PRODUCT).collect();
    // Of products alone.
    let flops = |get: fn(&Counters) -> u64| -> Values {
        some_ints(events.iter().zip(&products).map(|(e, product)| product.then(|| get(a.counters(e)))))
    };
    table::write(&schema::INSTRUCTION, events.len(), |column| {
        Some(match column {
            "start_ts" => ints(events.iter().map(|e| ns(e.start))),
            "end_ts" => ints(events.iter().map(|e| ns(e.end))),
            "duration_ns" => ints(events.iter().map(|e| ns(e.end) - ns(e.start))),
            "engine" => texts(events.iter().map(|e| engine(t, e.origin.row))),
            "timeline_track" => texts(events.iter().map(|e| row_name(t, e.origin.queue.unwrap_or(e.origin.row)))),
            "pcore_idx" => ints(events.iter().map(|e| e.origin.core)),
            "opcode" => texts(opcodes.iter()),
            "operands" => texts(events.iter().map(|e| &p.operands[e.origin.core as usize][e.node.0 as usize])),
            "compiler_opcode" => texts(events.iter().map(|e| e.origin.label)),
            "id" => ints(0..events.len()),
            "pc" => ints(pcs.iter().copied()),
            "compiler_pc" => ints(events.iter().map(|e| e.node.0)),
            "bir_id" => texts(events.iter().map(|e| format!("{}:{}", e.origin.core, e.node.0))),
            "bir_instruction_name" => texts(events.iter().map(|e| {
                let given = e.tag.map(|tag| &*program.tags[tag.0 as usize].name).filter(|name| !name.is_empty());
                given.map_or_else(|| format!("I-{}", e.node.0), str::to_owned)
            })),
            "kernel_instruction_name" => texts(events.iter().map(|e| source::name(e.node.0))),
            "evt_wait_time_ns" => ints(a.waits().iter().map(|wait| match wait {
                // The other causes (limiter, port, table) are not events.
                Some(w) if matches!(w.worst.1, Cause::Semaphore { .. } | Cause::Barrier | Cause::Peer(_)) => ns(w.time),
                _ => 0,
            })),
            "stack_frame_ids" => texts(events.iter().map(|e| format!("[{}]", source::frame(program, e.trail)))),
            "nki_source_location" | "bir_debug_info_source_location" => some_texts(events.iter().map(place)),
            "dma_trigger_start_ts" => transfer(|_, (from, _)| ns(from)),
            "dma_trigger_end_ts" => transfer(|_, (_, to)| ns(to)),
            "dma_wait_time_ns" => transfer(|e, (from, _)| ns(from).saturating_sub(ns(e.end))),
            "hbm_read_bytes" => counters(|c| c.hbm_read),
            "hbm_write_bytes" => counters(|c| c.hbm_write),
            "sbuf_read_bytes" => counters(|c| c.sbuf_read),
            "sbuf_write_bytes" => counters(|c| c.sbuf_write),
            "psum_read_bytes" => counters(|c| c.psum_read),
            "psum_write_bytes" => counters(|c| c.psum_write),
            "psum_read_sbuf_write_bytes" => counters(|c| if c.sbuf_write > 0 { c.psum_read } else { 0 }),
            "spill_save_bytes" | "spill_reload_bytes" => ints(events.iter().map(|_| 0)),
            "tensor_instruction_type" => some_texts(events.iter().zip(&products).map(|(e, product)| {
                let transposes = a.counters(e).transpose_flops > 0;
                product.then_some(if transposes { "TRANSPOSE" } else { "REGULAR" })
            })),
            "raw_flops" => flops(|c| c.flops),
            "adjusted_flops" => flops(|c| c.adjusted_flops_x2 / 2),
            "flops_transpose" => flops(|c| c.transpose_flops),
            "adjusted_flops_transpose" => flops(|c| if c.transpose_flops > 0 { c.adjusted_flops_x2 / 2 } else { 0 }),
            _ => return None,
        })
    })
}

/// From the first byte of a transfer (as in [`super::transfers`]) to its completion.
fn span(e: &Event) -> Option<(Ps, Ps)> {
    e.origin.queue?;
    Some((super::transfers::moving(e).0, e.complete))
}

/// Table OpcodeSummary.
pub(super) fn opcodes(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let mut by: BTreeMap<(&'static str, String), Vec<(Ps, Ps)>> = BTreeMap::new();
    for (e, opcode) in p.timeline.events.iter().zip(opcodes_of(p)) {
        by.entry((engine(p.timeline, e.origin.row), opcode)).or_default().push((e.start, e.end));
    }
    let active: Vec<Ps> = by.values().map(|spans| covered(spans.clone())).collect();
    let elapsed = p.timeline.elapsed as f64;
    table::write(&schema::OPCODE_SUMMARY, by.len(), |column| {
        Some(match column {
            "engine" => texts(by.keys().map(|k| k.0)),
            "opcode" => texts(by.keys().map(|k| &k.1)),
            "instruction_count" => ints(by.values().map(Vec::len)),
            "instruction_time_ns" => ints(by.values().map(|s| ns(s.iter().map(|(a, b)| b - a).sum()))),
            "active_time_ns" => ints(active.iter().map(|t| ns(*t))),
            "active_time_percent" => floats(active.iter().map(|t| percent(*t as f64, elapsed))),
            _ => return None,
        })
    })
}

/// A row of table Flow.
struct Arrow {
    from: (u64, &'static str),
    to: (u64, &'static str),
    kind: &'static str,
    gap: u64,
}

const INSTRUCTION: &str = "instruction";
const DMA_BLOCK: &str = "dma_block";

/// Table Flow.
pub(super) fn flow(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let mut arrows = Vec::new();
    for (i, e) in p.timeline.events.iter().enumerate() {
        if let Release::Semaphore { from, hazard, .. } = e.released {
            let cause = p.timeline.event(from);
            let by = match p.transfer_of[from.0 as usize] {
                Some(transfer) => (u64::from(transfer), DMA_BLOCK),
                None => (u64::from(from.0), INSTRUCTION),
            };
            let kind = match hazard {
                Hazard::Raw => "FLOW_DEPENDENCE",
                Hazard::War => "ANTI_DEPENDENCE",
                Hazard::Waw => "OUTPUT_DEPENDENCE",
                Hazard::Order => "ORDER_DEPENDENCE",
            };
            let gap = ns(e.start).saturating_sub(ns(cause.complete));
            arrows.push(Arrow { from: by, to: (i as u64, INSTRUCTION), kind, gap });
        }
        if let Some(transfer) = p.transfer_of[i] {
            let gap = ns(p.transfers[transfer as usize].start).saturating_sub(ns(e.end));
            let to = (u64::from(transfer), DMA_BLOCK);
            arrows.push(Arrow { from: (i as u64, INSTRUCTION), to, kind: "DMA_TRIGGER", gap });
        }
    }
    table::write(&schema::FLOW, arrows.len(), |column| {
        Some(match column {
            "in_id" => ints(arrows.iter().map(|a| a.from.0)),
            "out_id" => ints(arrows.iter().map(|a| a.to.0)),
            "in_table" => texts(arrows.iter().map(|a| a.from.1)),
            "out_table" => texts(arrows.iter().map(|a| a.to.1)),
            "dependency_type" => texts(arrows.iter().map(|a| a.kind)),
            "gap_time" => ints(arrows.iter().map(|a| a.gap)),
            _ => return None,
        })
    })
}
