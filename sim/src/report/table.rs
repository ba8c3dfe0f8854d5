//! The run as a table: one line for each executed instruction, in the columns of Neuron Explorer's table Instruction.

use std::fmt::Write as _;

use nki_isa::arg::Arg;
use nki_isa::names::Named as _;
use nki_isa::program::NodeKind;
use nki_isa::{Inst, Program, View};

use super::VERSION;
use super::detail::{iteration, row_name, transfer};
use super::vocabulary::short_cause;
use crate::analysis::{Analysis, cause_kind};
use crate::timeline::{Cause, Ps};
use crate::trace::index_nodes;

/// Columns: Neuron Explorer's, then after `completion_ts` the simulator's own.
const COLUMNS: &str = "id,start_ts,end_ts,duration_ns,engine,timeline_track,pcore_idx,opcode,operands,pc,nki_source_location,\
evt_wait_time_ns,dma_trigger_start_ts,dma_trigger_end_ts,dma_wait_time_ns,hbm_read_bytes,hbm_write_bytes,sbuf_read_bytes,sbuf_write_bytes,\
psum_read_bytes,psum_write_bytes,raw_flops,adjusted_flops,flops_transpose,completion_ts,iteration,wait_kind,wait_cause,critical_path_ns,nki_sim_version,target";

/// The table as CSV (RFC 4180, line feeds). Times are whole nanoseconds from the start of the kernel. If they are not valid, there is a final
/// column `latency_valid`.
pub fn csv(a: &Analysis<'_>) -> String {
    let valid = !a.timeline.over_capacity;
    let mut out = format!("{COLUMNS}{}\n", if valid { "" } else { ",latency_valid" });
    write_rows(a, if valid { "" } else { ",false" }, &mut out);
    out
}

/// The combined tables of all ranks, from 0, with a final column `rank`.
pub fn csv_ranks(ranks: &[Analysis<'_>]) -> String {
    let valid = ranks.iter().all(|a| !a.timeline.over_capacity);
    let mut out = format!("{COLUMNS},rank{}\n", if valid { "" } else { ",latency_valid" });
    for (rank, a) in ranks.iter().enumerate() {
        let validity = if valid { String::new() } else { format!(",{}", !a.timeline.over_capacity) };
        write_rows(a, &format!(",{rank}{validity}"), &mut out);
    }
    out
}

/// `last` ends each line.
fn write_rows(a: &Analysis<'_>, last: &str, out: &mut String) {
    let t = a.timeline;
    let ns = |ps: Ps| (ps + 500) / 1000;
    let operands = all_operands(a.program);
    let mut critical: Vec<Ps> = vec![0; t.events.len()];
    for step in &a.path {
        critical[step.event.0 as usize] += step.to - step.from;
    }
    let mut pcs: Vec<u64> = vec![0; t.rows.len()];
    out.reserve(t.events.len() * 160);
    for (i, e) in t.events.iter().enumerate() {
        let row = e.origin.row.0 as usize;
        let c = a.counters(e);
        let (start, end) = (ns(e.start), ns(e.end));
        let wait = a.waits()[i];
        // Waits for semaphores, banks and barriers are event waits; the others (limiter, port, tables) are not.
        let event_wait = wait.map_or(0, |w| match w.worst.1 {
            Cause::Semaphore { .. } | Cause::Barrier | Cause::Peer(_) => w.time,
            _ => 0,
        });
        let (from, to, gap) = match transfer(e) {
            Some((from, to)) => (ns(from).to_string(), ns(to).to_string(), ns(from).saturating_sub(end).to_string()),
            None => Default::default(),
        };
        let _ = write!(
            out,
            "{i},{start},{end},{},{},{},{},{},{},{},{},{},{from},{to},{gap},",
            end - start,
            t.rows[row].kind.name(),
            quoted(&row_name(t, e.origin.queue.unwrap_or(e.origin.row))),
            e.origin.core,
            e.origin.label,
            quoted(&operands[e.origin.core as usize][e.node.0 as usize]),
            pcs[row],
            quoted(&t.place(e.origin.loc)),
            ns(event_wait)
        );
        pcs[row] += 1;
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{VERSION},{}{last}",
            c.hbm_read,
            c.hbm_write,
            c.sbuf_read,
            c.sbuf_write,
            c.psum_read,
            c.psum_write,
            c.flops,
            c.adjusted_flops_x2 / 2,
            c.transpose_flops,
            ns(e.complete),
            quoted(&iteration(a, e)),
            wait.map_or("", |w| cause_kind(t, w.worst.1)),
            quoted(&wait.map_or_else(String::new, |w| short_cause(t, w.worst.1))),
            ns(critical[i]),
            a.program.target
        );
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

/// Operands of every statement, by core and number.
pub fn all_operands(program: &Program) -> Vec<Vec<String>> {
    let of = |stream| {
        index_nodes(stream)
            .into_iter()
            .map(|node| match &node.kind {
                NodeKind::Inst(inst) => operands(program, inst),
                _ => String::new(),
            })
            .collect()
    };
    program.cores.iter().map(|stream| of(stream)).collect()
}

/// `dst=t[128x512] float32 sbuf op=add`: operands that differ from their defaults.
pub(super) fn operands(program: &Program, inst: &Inst) -> String {
    let mut out = String::new();
    for (schema, arg) in inst.schema().operands.iter().zip(inst.args()) {
        if schema.default.is_some_and(|d| d() == arg) || arg == Arg::None {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        let _ = write!(out, "{}=", schema.name);
        write_arg(program, &arg, &mut out);
    }
    out
}

fn write_arg(program: &Program, arg: &Arg, out: &mut String) {
    let _ = match arg {
        Arg::View(v) => {
            write_view(program, v, out);
            Ok(())
        }
        Arg::Name(n) | Arg::Text(n) => write!(out, "{n}"),
        Arg::Bool(b) => write!(out, "{b}"),
        Arg::Int(i) => write!(out, "{i}"),
        Arg::Float(x) => write!(out, "{x}"),
        Arg::DType(d) => write!(out, "{d}"),
        Arg::Register(r) => write!(out, "r{}", r.0),
        Arg::None => write!(out, "None"),
        Arg::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                write_arg(program, item, out);
            }
            write!(out, "]")
        }
    };
}

fn write_view(program: &Program, v: &View, out: &mut String) {
    let shape: Vec<String> = v.shape().iter().map(u32::to_string).collect();
    let at = if v.indirect.is_some() { "@index" } else { "" };
    let _ = write!(out, "{}[{}]{at} {} {}", program.tensor(v.tensor).name, shape.join("x"), v.dtype, v.space.name());
}
