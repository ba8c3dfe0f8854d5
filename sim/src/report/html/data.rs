//! The data of a page: words and sums as JSON, per-instruction, per-tensor and per-stall data as columns.

use std::collections::HashMap;

use nki_isa::inst::Footprint;
use nki_isa::names::Named as _;
use nki_isa::program::{NodeKind, Step};
use nki_isa::schema::Confidence;
use nki_isa::{Arch, Program, Space, TensorId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::columns::{Columns, Head};
use super::{Finding, Page};
use crate::analysis::counters::Counters;
use crate::analysis::{Analysis, cause_event, cause_kind};
use crate::report::RooflineSummary;
use crate::report::detail::{gain_percent, roofline_summary, row_name};
use crate::report::summary::us;
use crate::report::table::operands;
use crate::report::vocabulary::{
    error_sentence_readable, released, remedy, resource, roofline, short_cause, verdict_sentence,
};
use crate::timeline::{EventId, Ps, Release, Row, RowId, RowKind, State, Timeline};
use crate::trace::{NodeIndex, index_nodes};

/// A row of the timeline.
#[derive(Serialize)]
struct RowHead {
    name: String,
    core: u32,
    engine: bool,
    count: u64,
    /// As in the terminal's table: busy time, and its share of the latency.
    active_us: f64,
    active_percent: f64,
}

/// An on-chip memory.
#[derive(Serialize)]
struct MemoryHead {
    name: String,
    core: u32,
    /// `sbuf` or `psum`, as in the column `tensor.space`.
    space: &'static str,
    capacity: u64,
}

/// All data except the columns. Times are microseconds if the name ends in `us`, else nanoseconds.
#[derive(Serialize)]
pub(super) struct Data<'a> {
    kernel: &'a str,
    target: &'a str,
    version: &'static str,
    /// Suffix of the latency if it is not valid.
    validity: &'static str,
    /// The error bar in words, or empty.
    error: String,
    /// The ends of the error bar in microseconds.
    error_us: Option<(f64, f64)>,
    elapsed: i64,
    head: i64,
    tail: i64,
    verdict: String,
    shares: Vec<(&'static str, f64)>,
    confidence: Vec<(&'static str, f64)>,
    roofline: RooflineSummary,
    roofline_text: String,
    /// Description, gain in microseconds and percent, locations.
    remedies: Vec<(String, f64, f64, Vec<String>)>,
    remedies_left_out: &'a [&'static str],
    findings: &'a [Finding],
    files: Vec<(String, Option<Vec<&'a str>>)>,
    strings: Vec<String>,
    /// By string: the kind of cause that it names, or empty.
    kinds: Vec<&'static str>,
    rows: Vec<RowHead>,
    memories: Vec<MemoryHead>,
    columns: Vec<Head>,
}

/// Strings by number; string 0 is empty.
struct Strings {
    index: HashMap<String, u32>,
    strings: Vec<String>,
}

impl Strings {
    fn new() -> Self {
        Strings { index: HashMap::from([(String::new(), 0)]), strings: vec![String::new()] }
    }

    fn of(&mut self, text: &str) -> u32 {
        if let Some(i) = self.index.get(text) {
            return *i;
        }
        let i = self.strings.len() as u32;
        self.strings.push(text.to_string());
        self.index.insert(text.to_string(), i);
        i
    }
}

fn ns(time: Ps) -> i64 {
    ((time + 500) / 1000) as i64
}

/// The data of a page, and its columns as text.
///
/// # Errors
/// If the columns cannot be written.
pub(super) fn data<'a>(a: &'a Analysis<'_>, page: &'a Page) -> std::io::Result<(Data<'a>, String)> {
    let t = a.timeline;
    let mut strings = Strings::new();
    let mut columns = Columns::default();
    let accesses = statements(a, &mut strings, &mut columns);
    events(a, &accesses, &mut strings, &mut columns);
    transfers(t, &mut columns);
    path(a, &mut columns);
    let kinds = stalls(t, &mut strings, &mut columns);
    tensors(a, &mut strings, &mut columns);
    trails(a.program, &mut strings, &mut columns);
    let (columns, text) = columns.finish()?;
    let data = Data {
        kernel: &t.kernel,
        target: &page.target,
        version: crate::report::VERSION,
        validity: crate::report::validity(t),
        error: a.error.as_ref().map_or_else(String::new, error_sentence_readable),
        error_us: a.error.as_ref().map(|e| (e.low_us, e.high_us)),
        elapsed: ns(t.elapsed),
        head: ns(t.head),
        tail: ns(t.tail),
        verdict: verdict_sentence(t, &a.verdict),
        shares: a.verdict.shares.iter().map(|s| (resource(s.resource), us(s.time))).collect(),
        confidence: Confidence::ALL
            .iter()
            .zip(crate::analysis::confidence(t, &a.path))
            .map(|(c, time)| (c.name(), us(time)))
            .collect(),
        roofline: roofline_summary(&a.roofline),
        roofline_text: roofline(&a.roofline),
        remedies: remedies(a),
        remedies_left_out: &a.remedies.left_out,
        findings: &page.findings,
        files: files(t, page),
        kinds: (0..strings.strings.len() as u32).map(|i| kinds.get(&i).copied().unwrap_or("")).collect(),
        strings: strings.strings,
        rows: t.rows.iter().enumerate().map(|(i, row)| row_head(t, RowId(i as u32), row)).collect(),
        memories: memories(a),
        columns,
    };
    Ok((data, text))
}

fn remedies(a: &Analysis<'_>) -> Vec<(String, f64, f64, Vec<String>)> {
    let t = a.timeline;
    let of = |r: &crate::analysis::remedies::Remedy| {
        let at = r.lines.iter().map(|l| t.place(*l)).filter(|p| !p.is_empty()).collect();
        (remedy(t, r), r.gain as f64 / 1e6, gain_percent(r.gain, t.elapsed), at)
    };
    a.remedies.tried.iter().map(of).collect()
}

fn files<'a>(t: &Timeline, page: &'a Page) -> Vec<(String, Option<Vec<&'a str>>)> {
    let of = |name: &std::sync::Arc<str>| {
        let text = page.sources.iter().find(|s| s.name == **name).and_then(|s| s.text.as_deref());
        (name.to_string(), text.map(|text| text.lines().collect()))
    };
    t.names.files.iter().map(of).collect()
}

fn row_head(t: &Timeline, id: RowId, row: &Row) -> RowHead {
    let engine = matches!(row.kind, RowKind::Engine(_));
    let active = if engine { row.active() } else { row.busy() };
    RowHead {
        name: row_name(t, id),
        core: row.core,
        engine,
        count: row.count,
        active_us: us(active),
        active_percent: if t.elapsed == 0 { 0.0 } else { active as f64 * 100.0 / t.elapsed as f64 },
    }
}

fn memories(a: &Analysis<'_>) -> Vec<MemoryHead> {
    let arch = Arch::of(a.program.target);
    let several = a.program.cores.len() > 1;
    let mut out = Vec::new();
    for core in 0..a.program.cores.len() as u32 {
        for (space, name, capacity) in
            [(Space::Sbuf, "SBUF", arch.sbuf_bytes), (Space::Psum, "PSUM", arch.psum_bytes())]
        {
            if a.allocations().iter().any(|x| x.core == core && x.space == space) {
                let name = if several { format!("{name}/{core}") } else { name.to_string() };
                out.push(MemoryHead { name, core, space: space.name(), capacity: u64::from(capacity) });
            }
        }
    }
    out
}

/// The statement of each node by core, and the accesses of each node: twice the tensor's number, plus one for a write.
struct Accesses {
    statement: Vec<Vec<u32>>,
    first: Vec<Vec<usize>>,
    all: Vec<u32>,
}

/// Adds a row for each distinct statement: the same instruction of one line on operands of one name and shape is one statement, in all
/// iterations of a loop.
fn statements(a: &Analysis<'_>, strings: &mut Strings, columns: &mut Columns) -> Accesses {
    type Key = (u32, u32, u32, u32, u32, Counters);
    let mut index: FxHashMap<Key, u32> = FxHashMap::default();
    let mut rows: Vec<Key> = Vec::new();
    let mut out = Accesses { statement: Vec::new(), first: Vec::new(), all: Vec::new() };
    let mut footprint = Footprint::default();
    for (core, stream) in a.program.cores.iter().enumerate() {
        let (mut statement, mut first) = (Vec::new(), Vec::new());
        for (n, node) in index_nodes(stream).into_iter().enumerate() {
            first.push(out.all.len());
            let NodeKind::Inst(inst) = &node.kind else {
                statement.push(u32::MAX);
                continue;
            };
            let opcode = strings.of(inst.schema().name);
            let name = strings.of(a.program.name_of(node));
            let operands = strings.of(&operands(a.program, inst));
            let key = (
                opcode,
                name,
                operands,
                node.loc.file,
                node.loc.line,
                *a.facts.counters(core as u32, NodeIndex(n as u32)),
            );
            statement.push(*index.entry(key).or_insert_with(|| {
                rows.push(key);
                rows.len() as u32 - 1
            }));
            footprint.clear();
            inst.footprint(&mut footprint);
            let own = out.all.len();
            let accesses = footprint.reads.iter().map(|v| (v, 0)).chain(footprint.writes.iter().map(|v| (v, 1)));
            for (view, write) in accesses {
                let access = view.tensor.0 << 1 | write;
                if !out.all[own..].contains(&access) {
                    out.all.push(access);
                }
            }
        }
        first.push(out.all.len());
        out.statement.push(statement);
        out.first.push(first);
    }
    columns.plain("statement.opcode", rows.iter().map(|r| i64::from(r.0)));
    columns.plain("statement.name", rows.iter().map(|r| i64::from(r.1)));
    columns.plain("statement.operands", rows.iter().map(|r| i64::from(r.2)));
    columns.plain("statement.file", rows.iter().map(|r| i64::from(r.3)));
    columns.near("statement.line", rows.iter().map(|r| i64::from(r.4)));
    type Count = fn(&Counters) -> u64;
    let counters: [(&str, Count); 7] = [
        ("statement.flops", |c| c.flops),
        ("statement.hbm_read", |c| c.hbm_read),
        ("statement.hbm_write", |c| c.hbm_write),
        ("statement.sbuf_read", |c| c.sbuf_read),
        ("statement.sbuf_write", |c| c.sbuf_write),
        ("statement.psum_read", |c| c.psum_read),
        ("statement.psum_write", |c| c.psum_write),
    ];
    for (name, of) in counters {
        columns.plain(name, rows.iter().map(|r| of(&r.5) as i64));
    }
    out
}

fn events(a: &Analysis<'_>, accesses: &Accesses, strings: &mut Strings, columns: &mut Columns) {
    let t = a.timeline;
    let events = || t.events.iter();
    columns.plain("event.row", events().map(|e| i64::from(e.origin.row.0)));
    columns.near("event.start", events().map(|e| ns(e.start)));
    columns.plain("event.time", events().map(|e| ns(e.end) - ns(e.start)));
    columns.plain("event.complete", events().map(|e| ns(e.complete) - ns(e.end)));
    let statement = |core: u32, node: u32| i64::from(accesses.statement[core as usize][node as usize]);
    columns.near("event.statement", events().map(|e| statement(e.origin.core, e.node.0)));
    columns.near("event.trail", events().map(|e| i64::from(e.trail.0)));
    // Distance back to the event that released it; 0 for none.
    let back =
        |(i, e): (usize, &crate::timeline::Event)| released_by(e.released).map_or(0, |p| i as i64 - i64::from(p.0));
    columns.plain("event.back", events().enumerate().map(back));
    columns.plain("event.via", events().map(|e| i64::from(strings.of(&released(t, e.released)))));
    columns.plain("event.bytes", events().map(|e| e.origin.bytes as i64));
    let of = |e: &crate::timeline::Event| {
        let first = &accesses.first[e.origin.core as usize];
        &accesses.all[first[e.node.0 as usize]..first[e.node.0 as usize + 1]]
    };
    columns.plain("event.accesses", events().map(|e| of(e).len() as i64));
    columns.near("access", events().flat_map(|e| of(e).iter().map(|x| i64::from(*x))));
}

/// The event that released another.
fn released_by(released: Release) -> Option<EventId> {
    match released {
        Release::Start | Release::Barrier(None) => None,
        Release::Engine(p) | Release::Port(p) | Release::Barrier(Some(p)) | Release::Peer(p) | Release::Transfer(p) => {
            Some(p)
        }
        Release::Semaphore { from, .. } => Some(from),
    }
}

/// A row for each transfer: the queue, and the times of its issue, its first byte and its last byte.
fn transfers(t: &Timeline, columns: &mut Columns) {
    let mut rows = Vec::new();
    for (i, e) in t.events.iter().enumerate() {
        let (Some(queue), Some((arrive, moved))) = (e.origin.queue, e.moving()) else { continue };
        rows.push((i as i64, i64::from(queue.0), ns(e.start), ns(arrive), ns(moved)));
    }
    columns.near("transfer.event", rows.iter().map(|r| r.0));
    columns.plain("transfer.row", rows.iter().map(|r| r.1));
    columns.near("transfer.issue", rows.iter().map(|r| r.2));
    columns.plain("transfer.wait", rows.iter().map(|r| r.3 - r.2));
    columns.plain("transfer.time", rows.iter().map(|r| r.4 - r.3));
}

fn path(a: &Analysis<'_>, columns: &mut Columns) {
    columns.near("path.event", a.path.iter().map(|s| i64::from(s.event.0)));
    columns.near("path.from", a.path.iter().map(|s| ns(s.from)));
    columns.plain("path.time", a.path.iter().map(|s| ns(s.to) - ns(s.from)));
}

/// A row for each stall, by row in chronological order. Returns the kinds of the causes by string.
fn stalls(t: &Timeline, strings: &mut Strings, columns: &mut Columns) -> FxHashMap<u32, &'static str> {
    let mut kinds = FxHashMap::default();
    let mut rows = Vec::new();
    for (r, row) in t.rows.iter().enumerate() {
        for span in &row.spans {
            let State::Stalled(cause) = span.state else { continue };
            let text = strings.of(&short_cause(t, cause));
            kinds.insert(text, cause_kind(t, cause));
            let event = cause_event(cause).map_or(-1, |e| i64::from(e.0));
            rows.push((r as i64, ns(span.start), ns(span.end), i64::from(text), event));
        }
    }
    columns.near("stall.row", rows.iter().map(|r| r.0));
    columns.near("stall.start", rows.iter().map(|r| r.1));
    columns.plain("stall.time", rows.iter().map(|r| r.2 - r.1));
    columns.plain("stall.cause", rows.iter().map(|r| r.3));
    columns.near("stall.event", rows.iter().map(|r| r.4));
    kinds
}

/// A row for each tensor. The first byte is -1 outside SBUF and PSUM, and for tensors that no instruction accesses.
fn tensors(a: &Analysis<'_>, strings: &mut Strings, columns: &mut Columns) {
    let p = a.program;
    let mut place = vec![(-1, 0, 0); p.tensors.len()];
    for x in a.allocations() {
        place[x.tensor.0 as usize] = (i64::from(x.byte), i64::from(x.partition), i64::from(x.partitions));
    }
    let mut role = vec![0; p.tensors.len()];
    for input in &p.inputs {
        role[input.tensor.0 as usize] |= 1;
    }
    for output in &p.outputs {
        role[output.tensor.0 as usize] |= 2;
    }
    let tensors = || (0..p.tensors.len() as u32).map(|i| p.tensor(TensorId(i)));
    columns.plain("tensor.name", tensors().map(|x| i64::from(strings.of(&x.name))));
    let shape = |x: &nki_isa::Tensor| {
        let shape: Vec<String> = x.shape.iter().map(u32::to_string).collect();
        format!("[{}] {}", shape.join(", "), x.dtype)
    };
    columns.plain("tensor.type", tensors().map(|x| i64::from(strings.of(&shape(x)))));
    columns.plain("tensor.space", tensors().map(|x| i64::from(strings.of(x.space.name()))));
    columns.plain("tensor.core", tensors().map(|x| i64::from(x.core)));
    columns.plain("tensor.file", tensors().map(|x| i64::from(x.loc.file)));
    columns.near("tensor.line", tensors().map(|x| i64::from(x.loc.line)));
    columns.near("tensor.trail", tensors().map(|x| i64::from(x.trail.0)));
    columns.plain("tensor.bytes", tensors().map(|x| x.bytes() as i64));
    columns.near("tensor.byte", place.iter().map(|x| x.0));
    columns.plain("tensor.partition", place.iter().map(|x| x.1));
    columns.plain("tensor.partitions", place.iter().map(|x| x.2));
    columns.plain("tensor.role", role);
}

/// A row for each loop iteration or call: the enclosing one, and the loop variable with its value. A call has no variable.
fn trails(p: &Program, strings: &mut Strings, columns: &mut Columns) {
    let parent = |(i, trail): (usize, &nki_isa::program::Trail)| trail.parent.map_or(0, |x| i as i64 - i64::from(x.0));
    columns.plain("trail.back", p.trails.iter().enumerate().map(parent));
    let mut step = |trail: &nki_isa::program::Trail| match &trail.step {
        Step::Iteration { variable, value, .. } => (i64::from(strings.of(variable)), *value),
        Step::Root | Step::Call { .. } => (0, 0),
    };
    let steps: Vec<(i64, i64)> = p.trails.iter().map(&mut step).collect();
    columns.plain("trail.variable", steps.iter().map(|s| s.0));
    columns.near("trail.value", steps.iter().map(|s| s.1));
}
