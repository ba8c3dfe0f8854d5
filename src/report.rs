//! The JSON report: the simulator's summary, combined with information that only the command has.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use nki_diag::{Applied, Denied, Diagnostic, JsonDiagnostic, SourceMap, to_json};
use nki_isa::Program;
use nki_sim_core::analysis::Analysis;
use nki_sim_core::analysis::error_bar::ErrorBar;
use nki_sim_core::middle_end::Change;
use nki_sim_core::report::{self, Detail, Finding, Page, Source, Summary};
use nki_sim_core::timeline::Timeline;
use serde::Serialize;

use crate::VERSION;
use crate::compare::Comparison;
use crate::intermediates::Departure;
use crate::session::{Compilation, Kernel};
use crate::tables;

/// An output, without its values.
#[derive(Debug, Serialize)]
pub(crate) struct OutputInfo {
    /// Its name.
    pub(crate) name: String,
    /// Extents.
    pub(crate) shape: Vec<usize>,
    /// Element type.
    pub(crate) dtype: String,
}

/// A change of the compiler's middle end at one line.
#[derive(Debug, Serialize)]
pub(crate) struct CompilerChange {
    /// Source file.
    file: String,
    /// Line of the dropped instruction, or of the tile that moved or whose values have places of their own.
    line: u32,
    /// The change, in words.
    what: String,
    /// Instructions or values.
    count: u32,
    /// Bytes that the instructions moved, or would have moved.
    bytes: u64,
}

fn compiler_changes(kernel: &Kernel) -> Vec<CompilerChange> {
    let file = |index: u32| kernel.program.files.get(index as usize).map(|f| f.to_string()).unwrap_or_default();
    let change = |c: &Change| CompilerChange {
        file: file(c.loc.file),
        line: c.loc.line,
        what: c.what.text(c.count),
        count: c.count,
        bytes: c.bytes,
    };
    kernel.changes.iter().map(change).collect()
}

/// The changed timing parameters, and the changes of the compiler's middle end, those with the most bytes first, as text; empty if there are none.
pub fn changes_text(kernel: &Kernel) -> String {
    /// Maximum number of printed lines; a report file has all.
    const MOST: usize = 5;
    let mut out = parameters_text(kernel);
    let mut changes = compiler_changes(kernel);
    if changes.is_empty() {
        return out;
    }
    changes.sort_by_key(|c| std::cmp::Reverse(c.bytes));
    out.push_str("\nChanges of the compiler (--as-written leaves the kernel as it is):\n");
    for c in changes.iter().take(MOST) {
        let _ = write!(out, "  {}:{}: {}", c.file, c.line, c.what);
        let _ = if c.bytes > 0 { writeln!(out, " ({} bytes)", c.bytes) } else { writeln!(out) };
    }
    if changes.len() > MOST {
        let _ = writeln!(out, "  and {} more", changes.len() - MOST);
    }
    out
}

/// The timing parameters that differ from the defaults.
fn parameters(kernel: &Kernel) -> BTreeMap<String, toml::Value> {
    kernel.changed_params().into_iter().map(|(name, value, _)| (name, value)).collect()
}

/// The timing parameters that differ from the defaults, as a line of text; empty if there are none.
fn parameters_text(kernel: &Kernel) -> String {
    const MOST: usize = 6;
    let changed = kernel.changed_params();
    let mut shown: Vec<String> = changed
        .iter()
        .take(MOST)
        .map(|(name, value, default)| format!("{name} = {value} (default {default})"))
        .collect();
    if changed.len() > MOST {
        shown.push(format!("and {} more", changed.len() - MOST));
    }
    if shown.is_empty() { String::new() } else { format!("Changed timing parameters: {}.\n", shown.join(", ")) }
}

/// A run. Field order is the order in the file.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The simulator's version.
    pub(crate) nki_sim_version: &'static str,
    /// The kernel's name.
    pub(crate) kernel: String,
    /// The machine.
    pub(crate) target: String,
    /// Physical cores per logical core.
    pub(crate) lnc: usize,
    /// Names, shapes and dtypes.
    pub(crate) outputs: Vec<OutputInfo>,
    /// The timeline in numbers.
    #[serde(flatten)]
    pub(crate) summary: Summary,
    /// The timing parameters that differ from the defaults, by name; omitted if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) parameters: BTreeMap<String, toml::Value>,
    /// Changes of the compiler's middle end; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) compiler_changes: Vec<CompilerChange>,
    /// Lines, traffic, roofline, remedies, intervals; `None` if not requested.
    #[serde(flatten)]
    pub(crate) detail: Option<Detail>,
    /// The findings.
    pub(crate) findings: Vec<JsonDiagnostic>,
    /// The denied findings.
    pub(crate) denied: Vec<Denied>,
    /// Outputs compared with arrays.
    pub(crate) expected: Vec<Comparison>,
    /// If an output differs, the first instruction whose values depart from an fp32 run.
    #[serde(rename = "first_departure", skip_serializing_if = "Option::is_none")]
    pub(crate) departure: Option<Departure>,
}

impl Report {
    /// The report of a run, without comparisons.
    pub(crate) fn new(
        kernel: &Kernel,
        timeline: &Timeline,
        analysis: Option<&Analysis<'_>>,
        applied: &Applied,
        sources: &SourceMap,
    ) -> Result<Self, String> {
        let error = analysis.map_or_else(|| kernel.error_bar(timeline), |a| a.error.clone());
        Ok(Report {
            nki_sim_version: VERSION,
            kernel: kernel.program.name.to_string(),
            target: kernel.program.target.to_string(),
            lnc: kernel.program.cores.len(),
            outputs: outputs_of(&kernel.program),
            summary: report::summary(timeline, &kernel.placement, error),
            parameters: parameters(kernel),
            compiler_changes: compiler_changes(kernel),
            detail: analysis.map(|a| detail(kernel, a, sources)).transpose()?,
            findings: findings(&applied.diagnostics, sources),
            denied: applied.denied.clone(),
            expected: Vec::new(),
            departure: None,
        })
    }
}

/// The report of a run, as written by `nki-sim run --json`; without an analysis, the summary alone.
///
/// # Errors
/// If a number has no JSON representation.
pub fn run_json(
    kernel: &Kernel,
    timeline: &Timeline,
    analysis: Option<&Analysis<'_>>,
    applied: &Applied,
    sources: &SourceMap,
) -> Result<String, String> {
    let text = json(&Report::new(kernel, timeline, analysis, applied, sources)?)?;
    String::from_utf8(text).map_err(|e| e.to_string())
}

/// The page of a run, as written by `nki-sim run --html`.
///
/// # Errors
/// If a number has no JSON representation.
pub fn run_html(
    kernel: &Kernel,
    analysis: &Analysis<'_>,
    applied: &Applied,
    sources: &SourceMap,
) -> Result<String, String> {
    report::html(analysis, &page(kernel, applied, sources)).map_err(|e| e.to_string())
}

/// Writes the tables of a run to a directory, as `nki-sim run --parquet` does.
///
/// # Errors
/// If the directory contains a profile that is not simulated, or a file cannot be written.
pub fn run_parquet(
    directory: &Path,
    kernel: &Kernel,
    analysis: &Analysis<'_>,
    applied: &Applied,
    sources: &SourceMap,
) -> Result<(), String> {
    let findings = findings(&applied.diagnostics, sources);
    tables::write(directory, &tables::Run { kernel, analysis, findings: &findings })
}

/// A kernel that was checked, or whose run ended early. Field order is the order in the file.
#[derive(Debug, Serialize)]
pub(crate) struct Checked {
    /// The simulator's version.
    nki_sim_version: &'static str,
    /// The kernel's name.
    pub(crate) kernel: String,
    /// The machine.
    pub(crate) target: String,
    /// The findings.
    pub(crate) findings: Vec<JsonDiagnostic>,
    /// The denied findings.
    denied: Vec<Denied>,
}

impl Checked {
    /// The report of a kernel with its findings.
    pub(crate) fn new(compiled: &Compilation, applied: &Applied) -> Self {
        Checked {
            nki_sim_version: VERSION,
            kernel: compiled.name.clone(),
            target: compiled.target.to_string(),
            findings: findings(&applied.diagnostics, &compiled.sources),
            denied: applied.denied.clone(),
        }
    }
}

/// Known without a run, so `--no-numerics` has them, too.
pub(crate) fn outputs_of(program: &Program) -> Vec<OutputInfo> {
    program
        .outputs
        .iter()
        .map(|o| {
            let tensor = program.tensor(o.tensor);
            OutputInfo {
                name: o.name.to_string(),
                shape: tensor.shape.iter().map(|&d| d as usize).collect(),
                dtype: tensor.dtype.to_string(),
            }
        })
        .collect()
}

/// Diagnostics with their places resolved.
pub(crate) fn findings(diagnostics: &[Diagnostic], sources: &SourceMap) -> Vec<JsonDiagnostic> {
    diagnostics.iter().map(|d| to_json(d, sources)).collect()
}

/// The details with the text of each line's statement, by which `compare` recognises moved lines.
fn detail(kernel: &Kernel, analysis: &Analysis<'_>, sources: &SourceMap) -> Result<Detail, String> {
    let mut detail = report::detail(analysis, &kernel.changes).map_err(|e| format!("cannot write the report: {e}"))?;
    let mut files: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for line in &mut detail.lines {
        let text = |name: &str| sources.find(name).and_then(|f| sources.text(f));
        let lines = files.entry(line.file.clone()).or_insert_with(|| text(&line.file).unwrap_or("").lines().collect());
        line.text = (line.line as usize).checked_sub(1).and_then(|at| statement(lines.get(at..)?));
    }
    Ok(detail)
}

/// The statement that starts in the first of these lines, on one line, including its bracketed continuation lines.
fn statement(lines: &[&str]) -> Option<String> {
    /// Longer statements are identified by their first line and their order.
    const MOST: usize = 20;
    let mut out = String::new();
    let mut open = 0i32;
    for line in lines.iter().take(MOST) {
        let code = line.split(" #").next().unwrap_or_default().trim();
        if !out.is_empty() && !code.is_empty() {
            out.push(' ');
        }
        out.push_str(code);
        open += code.chars().map(|c| i32::from("([{".contains(c)) - i32::from(")]}".contains(c))).sum::<i32>();
        if open <= 0 {
            break;
        }
    }
    (!lines.is_empty()).then_some(out)
}

/// The page's content in addition to the analysis.
pub(crate) fn page(kernel: &Kernel, applied: &Applied, sources: &SourceMap) -> Page {
    let findings = findings(&applied.diagnostics, sources);
    let sources = kernel
        .program
        .files
        .iter()
        .map(|name| {
            let text = sources.find(name).and_then(|f| sources.text(f));
            Source { name: name.to_string(), text: text.map(String::from) }
        })
        .collect();
    let findings = findings
        .into_iter()
        .map(|f| Finding {
            severity: f.severity.name().to_string(),
            id: f.id.to_string(),
            message: f.message,
            file: f.file.unwrap_or_default(),
            line: f.line.unwrap_or(0),
        })
        .collect();
    let changed: Vec<String> =
        kernel.changed_params().iter().map(|(name, value, _)| format!("{name} = {value}")).collect();
    let target = match changed.is_empty() {
        true => kernel.program.target.to_string(),
        false => format!("{} with {}", kernel.program.target, changed.join(", ")),
    };
    Page { target, sources, findings }
}

/// The content of a JSON file.
pub(crate) fn json(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| format!("cannot write the report: {e}"))?;
    text.push(b'\n');
    Ok(text)
}

/// A run of several ranks. Field order is the order in the file.
#[derive(Debug, Serialize)]
pub(crate) struct RanksReport {
    /// The simulator's version.
    pub(crate) nki_sim_version: &'static str,
    /// The kernel's name.
    pub(crate) kernel: String,
    /// The machine.
    pub(crate) target: String,
    /// The time until the last rank ends.
    pub(crate) latency_us: f64,
    /// Whether the latency is meaningful: not if the kernel of a rank does not fit into SBUF or PSUM.
    pub(crate) latency_valid: bool,
    /// The expected range of the latency on hardware, for the rank that ends last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency_error: Option<ErrorBar>,
    /// The timing parameters that differ from the defaults, by name; omitted if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) parameters: BTreeMap<String, toml::Value>,
    /// The reports, by rank.
    pub(crate) ranks: Vec<RankReport>,
    /// Findings of all ranks.
    pub(crate) findings: Vec<JsonDiagnostic>,
    /// The denied findings.
    pub(crate) denied: Vec<Denied>,
}

/// One rank of a run.
#[derive(Debug, Serialize)]
pub(crate) struct RankReport {
    /// Its number.
    pub(crate) rank: usize,
    /// Physical cores per logical core.
    pub(crate) lnc: usize,
    /// Names, shapes and dtypes.
    pub(crate) outputs: Vec<OutputInfo>,
    /// The timeline in numbers.
    #[serde(flatten)]
    pub(crate) summary: Summary,
    /// Outputs compared with arrays.
    pub(crate) expected: Vec<Comparison>,
}

impl RankReport {
    /// The report of one rank, without comparisons.
    fn new(rank: usize, view: RankView<'_>) -> Self {
        RankReport {
            rank,
            lnc: view.kernel.program.cores.len(),
            outputs: outputs_of(&view.kernel.program),
            summary: report::summary(view.timeline, &view.kernel.placement, view.kernel.error_bar(view.timeline)),
            expected: Vec::new(),
        }
    }

    /// The reports of all ranks, from 0, without comparisons.
    pub(crate) fn all(ranks: &[RankView<'_>]) -> Vec<Self> {
        ranks.iter().enumerate().map(|(rank, view)| RankReport::new(rank, *view)).collect()
    }
}

impl RanksReport {
    /// All ranks of a run of `kernel`.
    pub(crate) fn new(
        kernel: &Kernel,
        ranks: Vec<RankReport>,
        findings: Vec<JsonDiagnostic>,
        denied: Vec<Denied>,
    ) -> Self {
        let program = &kernel.program;
        let last = ranks.iter().rev().map(|r| &r.summary).max_by(|a, b| a.latency_us.total_cmp(&b.latency_us));
        RanksReport {
            nki_sim_version: VERSION,
            kernel: program.name.to_string(),
            target: program.target.to_string(),
            latency_us: last.map_or(0.0, |s| s.latency_us),
            latency_valid: ranks.iter().all(|r| r.summary.latency_valid),
            latency_error: last.and_then(|s| s.latency_error.clone()),
            parameters: parameters(kernel),
            ranks,
            findings,
            denied,
        }
    }
}

/// A rank of a completed run.
#[derive(Debug, Clone, Copy)]
pub struct RankView<'a> {
    /// The kernel that it ran.
    pub kernel: &'a Kernel,
    /// Its timeline.
    pub timeline: &'a Timeline,
}

/// The report of several ranks, from 0, as written by `nki-sim run --ranks N --json`.
///
/// # Errors
/// If there is no rank, or a number has no JSON representation.
pub fn ranks_json(
    ranks: &[RankView<'_>],
    findings: Vec<JsonDiagnostic>,
    denied: Vec<Denied>,
) -> Result<String, String> {
    let first = ranks.first().ok_or("there is no rank")?;
    let whole = RanksReport::new(first.kernel, RankReport::all(ranks), findings, denied);
    String::from_utf8(json(&whole)?).map_err(|e| e.to_string())
}

/// A line for each rank, from 0, and the table of engines of the slowest.
pub fn ranks_text(ranks: &[RankView<'_>]) -> String {
    let mut out = String::new();
    for r in RankReport::all(ranks) {
        let validity = if r.summary.latency_valid { "" } else { " (not valid)" };
        let _ = writeln!(out, "rank {:<4} {:>10.2} us{validity}  {}", r.rank, r.summary.latency_us, r.summary.verdict);
    }
    let slowest = slowest(ranks);
    if let Some(view) = ranks.get(slowest) {
        let _ = write!(
            out,
            "\nrank {slowest}:\n{}{}",
            report::table(view.timeline, view.kernel.error_bar(view.timeline).as_ref()),
            parameters_text(view.kernel)
        );
    }
    out
}

/// The file content of a Perfetto trace: compressed if the name ends in `.gz`. Perfetto reads both.
pub(crate) fn trace_file(path: &Path, trace: Vec<u8>) -> Result<Vec<u8>, String> {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz")) {
        return report::gzip(&trace).map_err(|e| format!("cannot compress `{}`: {e}", path.display()));
    }
    Ok(trace)
}

/// The timelines of all ranks, from 0, as one Perfetto trace.
pub fn ranks_trace(ranks: &[RankView<'_>]) -> Vec<u8> {
    let pairs: Vec<_> = ranks.iter().map(|v| (v.timeline, &v.kernel.program)).collect();
    report::perfetto_ranks(&pairs)
}

/// The rank that ends last; the first one of several.
pub(crate) fn slowest(ranks: &[RankView<'_>]) -> usize {
    (0..ranks.len()).max_by_key(|&r| (ranks[r].timeline.elapsed, std::cmp::Reverse(r))).unwrap_or(0)
}
