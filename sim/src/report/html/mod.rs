//! One self-contained page: timeline, source, memory, roofline, verdict. No network, no framework; the assets beside this file are our own.

use std::collections::HashMap;

use nki_isa::schema::Confidence;
use nki_isa::{Arch, Space};
use serde::Serialize;

use super::detail::{gain_percent, iteration};
use super::summary::us;
use super::table::all_operands;
use super::vocabulary::{error_sentence, released, remedy, resource, roofline, short_cause, verdict_sentence};
use crate::analysis::memory::occupancy;
use crate::analysis::{Analysis, cause_event, cause_kind, confidence};
use crate::timeline::{PhaseKind, Ps, Release, RowId, RowKind, State, Timeline};

/// A source file; without text its lines are not shown.
#[derive(Debug, Clone)]
pub struct Source {
    /// As [`crate::timeline::Names::files`] has it.
    pub name: String,
    /// Its text.
    pub text: Option<String>,
}

/// A diagnostic.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// `error`, `warning` or `info`.
    pub severity: String,
    /// Its slug.
    pub id: String,
    /// What is wrong.
    pub message: String,
    /// File, or empty.
    pub file: String,
    /// 1-based line; 0 when unknown.
    pub line: u32,
}

/// What the page shows beside the analysis.
#[derive(Debug, Clone)]
pub struct Page {
    /// The machine.
    pub target: String,
    /// Sources, by file index.
    pub sources: Vec<Source>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// Strings by number.
#[derive(Default)]
struct Table {
    index: HashMap<String, u32>,
    strings: Vec<String>,
}

impl Table {
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

/// Columns of equal length, an entry for each event. Times are nanoseconds.
#[derive(Default, Serialize)]
struct Events {
    row: Vec<u32>,
    start: Vec<u64>,
    end: Vec<u64>,
    done: Vec<u64>,
    label: Vec<u32>,
    file: Vec<u32>,
    line: Vec<u32>,
    trail: Vec<u32>,
    operands: Vec<u32>,
    wait: Vec<u64>,
    cause: Vec<u32>,
    /// What let it start: the event (-1 for none), and in words.
    from: Vec<i64>,
    via: Vec<u32>,
    bytes: Vec<u64>,
    critical: Vec<u64>,
}

/// Columns, an entry for each transfer.
#[derive(Default, Serialize)]
struct Transfers {
    event: Vec<u32>,
    row: Vec<u32>,
    issue: Vec<u64>,
    payload: Vec<u64>,
    payload_end: Vec<u64>,
    done: Vec<u64>,
}

#[derive(Default, Serialize)]
struct Row {
    name: String,
    engine: bool,
    count: u64,
    busy_percent: f64,
    /// Stalls: start, end, cause, event waited for or -1.
    start: Vec<u64>,
    end: Vec<u64>,
    cause: Vec<u32>,
    event: Vec<i64>,
}

type Stay = (u32, u64, u64, u32, u32, u32, u32, u32);

#[derive(Serialize)]
struct Occupancy {
    name: String,
    core: u32,
    capacity: u64,
    points: Vec<(u64, u64)>,
    /// name, start, end, first byte, bytes, file, line, shape
    tensors: Vec<Stay>,
    /// Smaller tensors that are not in the list.
    left_out: usize,
}

#[derive(Serialize)]
struct Data<'a> {
    kernel: &'a str,
    target: &'a str,
    /// Follows the latency where it is not valid.
    validity: &'static str,
    /// The error bar in words; empty without.
    error: String,
    elapsed: u64,
    head: u64,
    tail: u64,
    verdict: String,
    shares: Vec<(&'static str, f64)>,
    confidence: Vec<(&'static str, f64)>,
    roofline: super::RooflineSummary,
    roofline_text: String,
    lines: Vec<super::LineSummary>,
    remedies: Vec<(String, f64, f64, Vec<String>)>,
    findings: &'a [Finding],
    files: Vec<(String, Option<Vec<&'a str>>)>,
    strings: Vec<String>,
    kinds: Vec<&'static str>,
    rows: Vec<Row>,
    events: Events,
    transfers: Transfers,
    memory: Vec<Occupancy>,
}

fn ns(time: Ps) -> u64 {
    (time + 500) / 1000
}

/// The page as text.
///
/// # Errors
/// If the data cannot be written as JSON.
pub fn html(a: &Analysis<'_>, page: &Page) -> Result<String, serde_json::Error> {
    Ok(whole(&format!("{} on", a.timeline.kernel), page, serde_json::to_string(&data(a, page)?)?))
}

/// A page with all ranks, from 0: one is shown at a time, as the reader chooses.
///
/// # Errors
/// If the data cannot be written as JSON.
pub fn html_ranks(ranks: &[Analysis<'_>], page: &Page) -> Result<String, serde_json::Error> {
    let all = ranks.iter().map(|a| data(a, page)).collect::<Result<Vec<_>, _>>()?;
    let kernel = ranks.first().map_or("", |a| &*a.timeline.kernel);
    Ok(whole(&format!("{kernel} on {} ranks,", ranks.len()), page, serde_json::to_string(&all)?))
}

fn whole(what: &str, page: &Page, data: String) -> String {
    // Inside of a script element only `<` could end it or begin a comment.
    let data = data.replace('<', "\\u003c");
    let title = escape(&format!("{what} {}", page.target));
    let mut out = String::with_capacity(data.len() + 64 * 1024);
    for (i, part) in include_str!("page.html").split("@@").enumerate() {
        match (i % 2, part) {
            (1, "TITLE") => out.push_str(&title),
            (1, "VERSION") => out.push_str(super::VERSION),
            (1, "STYLE") => out.push_str(include_str!("style.css")),
            (1, "DATA") => out.push_str(&data),
            (1, "SCRIPT") => {
                for script in [include_str!("model.js"), include_str!("timeline.js"), include_str!("panels.js")] {
                    out.push_str(script);
                }
            }
            _ => out.push_str(part),
        }
    }
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn data<'a>(a: &'a Analysis<'_>, page: &'a Page) -> Result<Data<'a>, serde_json::Error> {
    let t = a.timeline;
    let detail = super::detail::detail(a)?;
    let mut table = Table::default();
    // String 0 is empty.
    table.of("");
    let mut kinds: HashMap<u32, &'static str> = HashMap::new();
    let rows = rows(t, &mut table, &mut kinds);
    let (events, transfers) = events(a, &mut table, &mut kinds);
    let memory = memory(a, &mut table);
    let files = t
        .names
        .files
        .iter()
        .map(|name| {
            let text = page.sources.iter().find(|s| s.name == **name).and_then(|s| s.text.as_deref());
            (name.to_string(), text.map(|text| text.lines().collect()))
        })
        .collect();
    Ok(Data {
        kernel: &t.kernel,
        target: &page.target,
        validity: super::validity(t),
        error: a.error.as_ref().map_or_else(String::new, error_sentence),
        elapsed: ns(t.elapsed),
        head: ns(t.head),
        tail: ns(t.tail),
        verdict: verdict_sentence(t, &a.verdict),
        shares: a.verdict.shares.iter().map(|s| (resource(s.resource), us(s.time))).collect(),
        confidence: Confidence::ALL.iter().zip(confidence(t, &a.path)).map(|(c, time)| (c.name(), us(time))).collect(),
        roofline: detail.roofline,
        roofline_text: roofline(&a.roofline),
        lines: detail.lines,
        remedies: a
            .remedies
            .tried
            .iter()
            .map(|r| {
                let at = r.lines.iter().map(|l| t.place(*l)).filter(|p| !p.is_empty()).collect();
                (remedy(t, r), r.gain as f64 / 1e6, gain_percent(r.gain, t.elapsed), at)
            })
            .collect(),
        findings: &page.findings,
        files,
        kinds: (0..table.strings.len() as u32).map(|i| kinds.get(&i).copied().unwrap_or("")).collect(),
        strings: table.strings,
        rows,
        events,
        transfers,
        memory,
    })
}

fn rows(t: &Timeline, table: &mut Table, kinds: &mut HashMap<u32, &'static str>) -> Vec<Row> {
    t.rows
        .iter()
        .enumerate()
        .map(|(i, row)| {
            let mut out = Row {
                name: super::row_name(t, RowId(i as u32)),
                engine: matches!(row.kind, RowKind::Engine(_)),
                count: row.count,
                busy_percent: if t.elapsed == 0 { 0.0 } else { row.busy() as f64 * 100.0 / t.elapsed as f64 },
                ..Row::default()
            };
            for span in &row.spans {
                let State::Stalled(cause) = span.state else { continue };
                let text = table.of(&short_cause(t, cause));
                kinds.insert(text, cause_kind(t, cause));
                out.start.push(ns(span.start));
                out.end.push(ns(span.end));
                out.cause.push(text);
                out.event.push(cause_event(cause).map_or(-1, |e| i64::from(e.0)));
            }
            out
        })
        .collect()
}

fn events(a: &Analysis<'_>, table: &mut Table, kinds: &mut HashMap<u32, &'static str>) -> (Events, Transfers) {
    let t = a.timeline;
    let operands = all_operands(a.program);
    let mut out = Events::default();
    let mut transfers = Transfers::default();
    let mut critical: Vec<Ps> = vec![0; t.events.len()];
    for step in &a.path {
        critical[step.event.0 as usize] += step.to - step.from;
    }
    for (i, e) in t.events.iter().enumerate() {
        out.row.push(e.row.0);
        out.start.push(ns(e.start));
        out.end.push(ns(e.end));
        out.done.push(ns(e.complete));
        out.label.push(table.of(e.label));
        out.file.push(e.loc.file);
        out.line.push(e.loc.line);
        out.trail.push(table.of(&iteration(a, e)));
        out.operands.push(table.of(&operands[e.core as usize][e.node.0 as usize]));
        let wait = a.waits()[i];
        out.wait.push(wait.map_or(0, |w| ns(w.time)));
        out.cause.push(wait.map_or(0, |w| {
            let text = table.of(&short_cause(t, w.worst.1));
            kinds.insert(text, cause_kind(t, w.worst.1));
            text
        }));
        let from = match e.released {
            Release::Start | Release::Barrier(None) => None,
            Release::Engine(p) | Release::Port(p) | Release::Barrier(Some(p)) | Release::Peer(p) => Some(p),
            Release::Semaphore { from, .. } => Some(from),
        };
        out.from.push(from.map_or(-1, |p| i64::from(p.0)));
        out.via.push(table.of(&released(t, e.released)));
        out.bytes.push(e.bytes);
        out.critical.push(ns(critical[i]));
        if let Some(queue) = e.queue {
            let phase = |kind| e.phases.iter().find(|p| p.kind == kind);
            let issue = phase(PhaseKind::Issue).map_or(e.start, |p| p.start);
            let payload = phase(PhaseKind::Payload).map_or(issue, |p| p.start);
            let moved = phase(PhaseKind::Notify).map_or(e.complete, |p| p.start);
            transfers.event.push(i as u32);
            transfers.row.push(queue.0);
            transfers.issue.push(ns(issue));
            transfers.payload.push(ns(payload));
            transfers.payload_end.push(ns(moved));
            transfers.done.push(ns(e.complete));
        }
    }
    (out, transfers)
}

/// Tensors drawn for each memory; the largest are kept.
const MOST_TENSORS: usize = 100_000;

fn memory(a: &Analysis<'_>, table: &mut Table) -> Vec<Occupancy> {
    let arch = Arch::of(a.program.target);
    let several = a.program.cores.len() > 1;
    let mut out = Vec::new();
    for core in 0..a.program.cores.len() as u32 {
        for (space, name, capacity) in
            [(Space::Sbuf, "SBUF", arch.sbuf_bytes), (Space::Psum, "PSUM", arch.psum_bytes())]
        {
            let mut here: Vec<_> = a.allocations().iter().filter(|x| x.core == core && x.space == space).collect();
            if here.is_empty() {
                continue;
            }
            here.sort_by_key(|x| (std::cmp::Reverse(x.bytes), x.start, x.tensor));
            let left_out = here.len().saturating_sub(MOST_TENSORS);
            here.truncate(MOST_TENSORS);
            here.sort_by_key(|x| (x.start, x.tensor));
            let points = occupancy(a.allocations(), core, space).into_iter().map(|(time, n)| (ns(time), n)).collect();
            let tensors = here
                .into_iter()
                .map(|x| {
                    let tensor = a.program.tensor(x.tensor);
                    let shape: Vec<String> = tensor.shape.iter().map(u32::to_string).collect();
                    let shape = table.of(&format!("[{}] {}", shape.join(", "), tensor.dtype));
                    let name = table.of(&tensor.name);
                    (name, ns(x.start), ns(x.end), x.byte, x.bytes, tensor.loc.file, tensor.loc.line, shape)
                })
                .collect();
            let name = if several { format!("{name}/{core}") } else { name.to_string() };
            out.push(Occupancy { name, core, capacity: u64::from(capacity), points, tensors, left_out });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::counters::Facts;
    use crate::analysis::remedies::{Case, THOROUGH};
    use crate::exec::trace_only;
    use crate::place::place;
    use crate::timing::Params;
    use crate::timing::tests::{tensor_add, time};
    use nki_isa::Target;

    #[test]
    fn nothing_in_the_source_can_end_the_script() {
        let program = tensor_add();
        let (t, params) = (time(&program), Params::of(Target::Trn2));
        let (placement, trace) = (place(&program).unwrap(), trace_only(&program).unwrap());
        let case = Case { program: &program, placement: &placement, trace: &trace, params: &params, timeline: &t };
        let a = Analysis::new(case, Facts::of(&program), THOROUGH);
        let evil = "x = '</script><script>alert(1)</script><!--' # \u{2028} @@DATA@@\n";
        let page = Page {
            target: "trn2".into(),
            sources: vec![Source { name: "kernel.py".into(), text: Some(evil.into()) }],
            findings: Vec::new(),
        };
        let text = html(&a, &page).unwrap();
        assert!(!text.contains("alert(1)</script>"));
        // One element for the data, one for the program.
        assert_eq!(text.matches("<script").count(), 2);
        assert_eq!(text.matches("</script>").count(), 2);
        let start = text.find("id=\"data\">").unwrap() + 10;
        let json = &text[start..start + text[start..].find("</script>").unwrap()];
        let data: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(data["files"][0][1][0].as_str(), Some(evil.trim_end()));
        assert_eq!(data["events"]["start"].as_array().map(Vec::len), Some(t.events.len()));
        for loads in ["http://", "https://", " src=\"", "<link", "<img", "@import", "url("] {
            assert!(!text.contains(loads), "{loads}");
        }
    }
}
