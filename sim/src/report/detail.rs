//! The parts of the JSON report that need more than the timeline: source lines, traffic, roofline, remedies, and every interval.

use std::collections::BTreeMap;

use nki_isa::Program;
use nki_isa::inst::Footprint;
use nki_isa::inst::values::Feeds;
use nki_isa::names::Engine;
use nki_isa::program::{Node, NodeKind};
use serde::Serialize;
use serde_json::value::RawValue;

use super::summary::{percent, us};
use super::vocabulary::{released, remedy, short_cause};
use crate::analysis::counters::Counters;
use crate::analysis::roofline::Roofline;
use crate::analysis::{Analysis, Step, cause_event, cause_key};
use crate::middle_end::{Change, spilled_bytes};
use crate::timeline::{Cause, Event, PhaseKind, Ps, RowId, RowKind, State, Timeline};
use crate::trace::index_nodes;

/// The iterations around an event: `i=3, j=0`.
pub(super) fn iteration(a: &Analysis<'_>, e: &Event) -> String {
    let steps = a.program.iterations(e.trail);
    let steps: Vec<String> = steps.iter().map(|(variable, value)| format!("{variable}={value}")).collect();
    steps.join(", ")
}

fn file(timeline: &Timeline, file: u32) -> &str {
    timeline.names.files.get(file as usize).map_or("", |f| f)
}

/// The name of a row; with several cores, including the core: `vector/1`.
pub fn row_name(timeline: &Timeline, row: RowId) -> String {
    let r = &timeline.rows[row.0 as usize];
    let several = timeline.rows.iter().any(|r| r.core > 0);
    if several { format!("{}/{}", r.kind.name(), r.core) } else { r.kind.name().to_string() }
}

/// The extended report. Times are microseconds where the name ends in `us`; other names and units are Neuron Explorer's.
#[derive(Debug, Serialize)]
pub struct Detail {
    /// The row of Neuron Explorer's table Summary, as far as the simulator has the values.
    pub summary: BTreeMap<&'static str, f64>,
    /// The kernel under its roofline.
    pub roofline: RooflineSummary,
    /// Bytes from and to HBM, compared with the minimum for the result.
    pub traffic: Traffic,
    /// Every source line with executed instructions.
    pub lines: Vec<LineSummary>,
    /// By engine and instruction: Neuron Explorer's table OpcodeSummary.
    pub opcodes: Vec<OpcodeSummary>,
    /// Remedies tried, best first.
    pub remedies: Vec<RemedySummary>,
    /// Remedies that were skipped because the kernel is long.
    pub remedies_left_out: Vec<&'static str>,
    /// Each instruction on the critical path, in chronological order.
    pub critical_path: Box<RawValue>,
    /// Every interval of every row: `[start_us, end_us, "busy" or cause, event worked on or waited for, its line]`.
    pub intervals: Box<RawValue>,
}

/// See [`Roofline`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RooflineSummary {
    pub flops_per_byte: f64,
    pub ridge_flops_per_byte: f64,
    pub achieved_tflops: f64,
    pub attainable_tflops: f64,
    pub peak_tflops: f64,
    pub achieved_gbytes_per_s: f64,
    pub peak_gbytes_per_s: f64,
    pub hbm_stack_gbytes_per_s: f64,
    pub bound: &'static str,
}

/// HBM traffic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Traffic {
    pub hbm_read_bytes: u64,
    pub hbm_write_bytes: u64,
    pub minimum_read_bytes: u64,
    pub minimum_write_bytes: u64,
    pub times_minimum: f64,
}

/// The cost of one source line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LineSummary {
    /// Source file.
    pub file: String,
    /// 1-based line; 0 when unknown.
    pub line: u32,
    /// NKI's name of the instruction.
    pub instruction: &'static str,
    /// The statement's source text, if the caller provides it: the simulator has only positions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Number of executions.
    pub count: u64,
    /// Time on the critical path.
    pub critical_us: f64,
    /// Share of the latency.
    pub critical_percent: f64,
    /// Time that it occupied its engine.
    pub engine_us: f64,
    /// Total time of its transfers from issue to completion.
    pub transfer_us: f64,
    /// Time that its engine waited before it.
    pub wait_us: f64,
    /// The main cause of these waits.
    pub wait_cause: String,
    /// Bytes from HBM.
    pub hbm_read_bytes: u64,
    /// Bytes to HBM.
    pub hbm_write_bytes: u64,
    /// Tensor operations.
    pub flops: u64,
}

/// A row of Neuron Explorer's table OpcodeSummary.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names are Neuron Explorer's")]
pub struct OpcodeSummary {
    pub engine: &'static str,
    pub opcode: &'static str,
    pub instruction_count: u64,
    pub instruction_time_ns: u64,
}

/// A remedy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemedySummary {
    /// Its kind.
    pub kind: &'static str,
    /// The recommended change, in words.
    pub what: String,
    /// `file:line` of each changed line.
    pub lines: Vec<String>,
    /// Simulated latency with the change.
    pub latency_us: f64,
    /// Time saved; negative if it is slower.
    pub gain_us: f64,
    /// Share of the latency.
    pub gain_percent: f64,
}

/// A step of the critical path.
#[derive(Serialize)]
struct PathRow<'a> {
    start_us: f64,
    end_us: f64,
    event: u32,
    row: &'static str,
    core: u32,
    instruction: &'static str,
    file: &'a str,
    line: u32,
    iteration: String,
    waited_for: String,
}

/// From issue to completion of a transfer.
pub(super) fn transfer(e: &Event) -> Option<(Ps, Ps)> {
    e.origin.queue?;
    let start = e.phases().iter().find(|p| p.kind == PhaseKind::Issue).map_or(e.start, |p| p.start);
    Some((start, e.complete))
}

/// The extended report of a run; `changes` are those of the compiler's middle end.
///
/// # Errors
/// If a number has no JSON representation.
pub fn detail(a: &Analysis<'_>, changes: &[Change]) -> Result<Detail, serde_json::Error> {
    let r = &a.roofline;
    let t = a.timeline;
    Ok(Detail {
        summary: summary_columns(a, changes),
        roofline: roofline_summary(r),
        traffic: Traffic {
            hbm_read_bytes: a.total.hbm_read,
            hbm_write_bytes: a.total.hbm_write,
            minimum_read_bytes: r.minimum_read,
            minimum_write_bytes: r.minimum_write,
            times_minimum: r.excess(),
        },
        lines: lines(a),
        opcodes: opcodes(t),
        remedies: a
            .remedies
            .tried
            .iter()
            .map(|m| RemedySummary {
                kind: m.change.kind(),
                what: remedy(t, m),
                lines: m.lines.iter().map(|l| t.place(*l)).collect(),
                latency_us: us(m.elapsed),
                gain_us: m.gain as f64 / 1e6,
                gain_percent: gain_percent(m.gain, t.elapsed),
            })
            .collect(),
        remedies_left_out: a.remedies.left_out.clone(),
        critical_path: path(a)?,
        intervals: intervals(t)?,
    })
}

pub(super) fn roofline_summary(r: &Roofline) -> RooflineSummary {
    RooflineSummary {
        flops_per_byte: r.intensity,
        ridge_flops_per_byte: r.ridge,
        achieved_tflops: r.achieved_flops / 1e3,
        attainable_tflops: r.attainable_flops / 1e3,
        peak_tflops: r.peak_flops / 1e3,
        achieved_gbytes_per_s: r.achieved_bytes,
        peak_gbytes_per_s: r.peak_bytes,
        hbm_stack_gbytes_per_s: r.hbm_bytes,
        bound: if r.intensity < r.ridge { "memory" } else { "compute" },
    }
}

pub(super) fn gain_percent(gain: i64, elapsed: Ps) -> f64 {
    if elapsed == 0 { 0.0 } else { (gain as f64 * 1e4 / elapsed as f64).round() / 100.0 }
}

/// Neuron Explorer's Summary columns. Times are seconds there. `changes` are those of the compiler's middle end.
pub fn summary_columns(a: &Analysis<'_>, changes: &[Change]) -> BTreeMap<&'static str, f64> {
    let (t, r, c) = (a.timeline, &a.roofline, &a.total);
    let seconds = |ps: Ps| ps as f64 / 1e12;
    let cores = a.program.cores.len().max(1) as f64;
    let (spilled, restored) = spilled_bytes(changes);
    let mut out = BTreeMap::from([
        ("total_time", seconds(t.elapsed)),
        ("hardware_flops", c.flops as f64),
        ("transpose_flops", c.transpose_flops as f64),
        ("adjusted_hardware_flops", c.adjusted_flops_x2 as f64 / 2.0),
        ("mm_arithmetic_intensity", r.intensity),
        ("peak_flops_bandwidth_ratio", r.peak_flops / r.hbm_bytes),
        ("mfu_estimated_percent", r.mfu_percent),
        ("mfu_inst_estimated_percent", r.mfu_percent),
        ("hfu_estimated_percent", r.hfu_percent),
        ("mfu_inst_max_achievable_estimated_percent", 100.0 * (r.intensity / (r.peak_flops / r.hbm_bytes)).min(1.0)),
        ("mbu_estimated_percent", r.mbu_percent),
        ("dma_active_time", seconds(t.dma.active)),
        ("dma_active_time_percent", percent(t.dma.active, t.elapsed)),
        ("dma_transfer_count", t.dma.transfers as f64),
        ("dma_transfer_total_bytes", t.dma.bytes as f64),
        ("dma_transfer_average_bytes", t.dma.bytes as f64 / (t.dma.transfers.max(1)) as f64),
        ("dma_transfer_time", seconds(t.events.iter().filter_map(transfer).map(|(from, to)| to - from).sum())),
        ("inputs_outputs_weights_size_bytes", arguments_bytes(a.program) as f64),
        ("hbm_read_bytes", c.hbm_read as f64),
        ("hbm_write_bytes", c.hbm_write as f64),
        ("sbuf_read_bytes", c.sbuf_read as f64),
        ("sbuf_write_bytes", c.sbuf_write as f64),
        ("psum_read_bytes", c.psum_read as f64),
        ("psum_write_bytes", c.psum_write as f64),
        ("matmul_instruction_count", matmuls(a) as f64),
        ("spill_save_bytes", spilled as f64),
        ("spill_reload_bytes", restored as f64),
    ]);
    const NAMES: [(Engine, &str, &str, &str); 5] = [
        (
            Engine::Tensor,
            "tensor_engine_active_time",
            "tensor_engine_active_time_percent",
            "tensor_engine_instruction_count",
        ),
        (
            Engine::Vector,
            "vector_engine_active_time",
            "vector_engine_active_time_percent",
            "vector_engine_instruction_count",
        ),
        (
            Engine::Scalar,
            "scalar_engine_active_time",
            "scalar_engine_active_time_percent",
            "scalar_engine_instruction_count",
        ),
        (
            Engine::GpSimd,
            "gpsimd_engine_active_time",
            "gpsimd_engine_active_time_percent",
            "gpsimd_engine_instruction_count",
        ),
        (Engine::Sync, "sync_engine_active_time", "sync_engine_active_time_percent", "sync_engine_instruction_count"),
    ];
    for (engine, time, share, count) in NAMES {
        let rows = || t.rows.iter().filter(move |r| r.kind == RowKind::Engine(engine));
        let active: Ps = rows().map(crate::timeline::Row::active).sum();
        out.insert(time, seconds(active) / cores);
        out.insert(share, percent((active as f64 / cores) as Ps, t.elapsed));
        out.insert(count, rows().map(|r| r.count).sum::<u64>() as f64);
    }
    out
}

/// Bytes of all inputs and outputs.
fn arguments_bytes(program: &Program) -> u64 {
    let tensors = program.inputs.iter().map(|i| i.tensor).chain(program.outputs.iter().map(|o| o.tensor));
    tensors.map(|tensor| program.tensor(tensor).bytes() as u64).sum()
}

/// The number of executed matmuls, excluding those of MX types, with the transposes of the tensor engine, which are matmuls, too.
fn matmuls(a: &Analysis<'_>) -> usize {
    let is_matmul = |node: &&Node| {
        let NodeKind::Inst(inst) = &node.kind else { return false };
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        inst.values().feeds == Feeds::Product && !footprint.reads.iter().any(|v| v.dtype.is_packed())
    };
    let of = |stream| index_nodes(stream).iter().map(is_matmul).collect();
    let nodes: Vec<Vec<bool>> = a.program.cores.iter().map(|stream| of(stream)).collect();
    let is_product =
        |e: &Event| nodes.get(e.origin.core as usize).and_then(|n| n.get(e.node.0 as usize)) == Some(&true);
    let counts = |e: &&Event| is_product(e) || a.counters(e).transpose_flops > 0;
    a.timeline.events.iter().filter(counts).count()
}

/// Source lines, most expensive on the critical path first, then by engine time.
pub(super) fn lines(a: &Analysis<'_>) -> Vec<LineSummary> {
    #[derive(Default)]
    struct Sum {
        count: u64,
        critical: Ps,
        engine: Ps,
        transfer: Ps,
        wait: Ps,
        /// By cause, with an example of the merged causes.
        waits: BTreeMap<(&'static str, &'static str, &'static str), (Ps, Cause)>,
        counters: Counters,
    }
    let mut by: BTreeMap<(u32, u32, &'static str), Sum> = BTreeMap::new();
    for (i, e) in a.timeline.events.iter().enumerate() {
        let sum = by.entry((e.origin.loc.file, e.origin.loc.line, e.origin.label)).or_default();
        sum.count += 1;
        sum.engine += e.end - e.start;
        sum.transfer += transfer(e).map_or(0, |(from, to)| to - from);
        sum.counters.add(a.counters(e));
        if let Some(wait) = a.waits()[i] {
            sum.wait += wait.time;
            let cause = wait.worst.1;
            sum.waits.entry(cause_key(a.timeline, cause)).or_insert((0, cause)).0 += wait.time;
        }
    }
    for step in &a.path {
        let e = a.timeline.event(step.event);
        by.entry((e.origin.loc.file, e.origin.loc.line, e.origin.label)).or_default().critical += step.to - step.from;
    }
    let mut sums: Vec<_> = by.into_iter().collect();
    sums.sort_by_key(|(key, s)| (std::cmp::Reverse((s.critical, s.engine)), *key));
    sums.into_iter()
        .map(|((file, line, instruction), s)| LineSummary {
            file: self::file(a.timeline, file).to_string(),
            line,
            instruction,
            text: None,
            count: s.count,
            critical_us: us(s.critical),
            critical_percent: percent(s.critical, a.timeline.elapsed),
            engine_us: us(s.engine),
            transfer_us: us(s.transfer),
            wait_us: us(s.wait),
            wait_cause: longest(a.timeline, s.waits.into_values()),
            hbm_read_bytes: s.counters.hbm_read,
            hbm_write_bytes: s.counters.hbm_write,
            flops: s.counters.flops,
        })
        .collect()
}

/// The cause of the longest wait; empty if there is none.
fn longest(t: &Timeline, waits: impl Iterator<Item = (Ps, Cause)>) -> String {
    waits.max_by_key(|(time, _)| *time).map_or_else(String::new, |(_, cause)| short_cause(t, cause))
}

fn opcodes(t: &Timeline) -> Vec<OpcodeSummary> {
    let mut by: BTreeMap<(&'static str, &'static str), (u64, Ps)> = BTreeMap::new();
    for e in &t.events {
        let sum = by.entry((t.rows[e.origin.row.0 as usize].kind.name(), e.origin.label)).or_default();
        sum.0 += 1;
        sum.1 += e.end - e.start;
    }
    by.into_iter()
        .map(|((engine, opcode), (count, time))| OpcodeSummary {
            engine,
            opcode,
            instruction_count: count,
            instruction_time_ns: time / 1000,
        })
        .collect()
}

fn raw(lines: Vec<String>) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(format!("[\n{}\n  ]", lines.join(",\n")))
}

fn path(a: &Analysis<'_>) -> Result<Box<RawValue>, serde_json::Error> {
    let row = |step: &Step| {
        let e = a.timeline.event(step.event);
        let row = &a.timeline.rows[e.origin.row.0 as usize];
        serde_json::to_string(&PathRow {
            start_us: us(step.from),
            end_us: us(step.to),
            event: step.event.0,
            row: row.kind.name(),
            core: row.core,
            instruction: e.origin.label,
            file: file(a.timeline, e.origin.loc.file),
            line: e.origin.loc.line,
            iteration: iteration(a, e),
            waited_for: released(a.timeline, step.via),
        })
        .map(|text| format!("    {text}"))
    };
    raw(a.path.iter().map(row).collect::<Result<_, _>>()?)
}

fn intervals(t: &Timeline) -> Result<Box<RawValue>, serde_json::Error> {
    let mut rows = Vec::new();
    for row in t.rows.iter().filter(|r| r.count > 0 || matches!(r.kind, RowKind::Engine(_))) {
        let mut spans = Vec::with_capacity(row.spans.len());
        for s in &row.spans {
            let (what, event) = match s.state {
                State::Busy(e) => ("busy".to_string(), Some(e)),
                State::Stalled(c) => (short_cause(t, c), cause_event(c)),
            };
            let line = event.map(|e| t.event(e).origin.loc.line);
            spans.push(serde_json::to_string(&(us(s.start), us(s.end), what, event.map(|e| e.0), line))?);
        }
        rows.push(format!(
            "    {{\"core\": {}, \"row\": \"{}\", \"intervals\": [\n      {}]}}",
            row.core,
            row.kind.name(),
            spans.join(",\n      ")
        ));
    }
    raw(rows)
}
