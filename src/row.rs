//! The result of one measured kernel, such as a point of a sweep: settings, measurements, findings.

use nki_diag::{Applied, Denied, JsonDiagnostic, SourceMap};
use nki_sim_core::analysis::error_bar::ErrorBar;
use nki_sim_core::analysis::{critical_path, verdict};
use nki_sim_core::report;
use nki_sim_core::timeline::Timeline;
use serde::{Deserialize, Serialize};

use crate::compare::Comparison;
use crate::expected::Comparisons;
use crate::session::Kernel;

/// The result of one kernel. Field order is the order in the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The settings, by axis of a sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) point: Vec<(String, String)>,
    /// The latency; `None` if the kernel is wrong or a finding is denied.
    pub(crate) latency_us: Option<f64>,
    /// Whether the latency is meaningful: not if the kernel does not fit into SBUF or PSUM.
    #[serde(default = "valid")]
    pub(crate) latency_valid: bool,
    /// Elements of an output are never written, so the latency is that of incomplete work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) incomplete: bool,
    /// The expected range of the latency on hardware; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latency_error: Option<Interval>,
    /// The bottleneck.
    pub(crate) bound: String,
    /// Bytes moved by DMA.
    pub(crate) dma_bytes: u64,
    /// Transfers.
    pub(crate) dma_transfers: u64,
    /// Peak SBUF usage.
    pub(crate) sbuf_peak_bytes_per_partition: u32,
    /// Peak PSUM usage.
    pub(crate) psum_peak_banks: u32,
    /// The first error, if the point failed.
    pub(crate) error: Option<String>,
    /// Comparisons of outputs with expected values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) expected: Vec<Compared>,
    /// A search skipped computing its values, because a correct point is as good in latency and SBUF.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pruned: bool,
    /// The findings, after levels are applied.
    #[serde(default)]
    pub(crate) findings: Vec<RowFinding>,
    /// Which findings were denied.
    #[serde(default)]
    pub(crate) denied: Vec<DeniedRow>,
}

/// Findings of a kernel that skips work: a sweep must not prefer it to one that does all work.
const SKIPS_WORK: [&str; 2] = ["output-not-written", "output-partly-written"];

/// The default for points of older state files.
fn valid() -> bool {
    true
}

/// The interval that contains the latency on hardware with a probability of 90%.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Interval {
    /// The most similar group of measured kernels; `None` if no group is similar.
    pub(crate) group: Option<String>,
    /// Lower end.
    pub(crate) low_us: f64,
    /// Upper end.
    pub(crate) high_us: f64,
}

impl From<ErrorBar> for Interval {
    fn from(bar: ErrorBar) -> Self {
        Interval { group: bar.group, low_us: bar.low_us, high_us: bar.high_us }
    }
}

/// An output compared with an array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compared {
    /// The output.
    pub(crate) name: String,
    /// Whether all elements are within the tolerance.
    pub(crate) passed: bool,
    /// Largest difference; `None` if it is infinite or NaN.
    pub(crate) max_abs_error: Option<f64>,
    /// Largest difference relative to the expected magnitude; `None` if it is infinite or NaN.
    pub(crate) max_rel_error: Option<f64>,
    /// Elements outside the tolerance.
    pub(crate) mismatches: usize,
    /// Elements.
    pub(crate) elements: usize,
}

impl From<&Comparison> for Compared {
    fn from(c: &Comparison) -> Self {
        let finite = |x: f64| Some(x).filter(|x| x.is_finite());
        Compared {
            name: c.name.clone(),
            passed: c.passed,
            max_abs_error: finite(c.max_abs_error),
            max_rel_error: finite(c.max_rel_error),
            mismatches: c.mismatches,
            elements: c.elements,
        }
    }
}

/// A finding of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RowFinding {
    /// Slug.
    pub(crate) id: String,
    /// `error`, `warning` or `info`.
    pub(crate) severity: String,
    /// One sentence.
    pub(crate) message: String,
    /// File it is about.
    pub(crate) file: Option<String>,
    /// 1-based line.
    pub(crate) line: Option<u32>,
}

impl RowFinding {
    fn new(d: JsonDiagnostic) -> Self {
        let (id, severity) = (d.id.to_owned(), d.severity.name().to_owned());
        RowFinding { id, severity, message: d.message, file: d.file, line: d.line }
    }

    /// `[slug] message (file:line)`
    pub(crate) fn text(&self) -> String {
        let at = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!(" ({file}:{line})"),
            _ => String::new(),
        };
        format!("[{}] {}{at}", self.id, self.message)
    }
}

/// [`Denied`] in the form of a state file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeniedRow {
    /// The slug.
    pub(crate) id: String,
    /// The number of findings.
    pub(crate) count: usize,
    /// The option or default that denies them.
    pub(crate) by: String,
    /// Whether a default denies them rather than a list of the user.
    pub(crate) default: bool,
}

impl DeniedRow {
    fn new(d: &Denied) -> Self {
        DeniedRow { id: d.id.to_owned(), count: d.count, by: d.by.clone(), default: d.default }
    }
}

impl Row {
    /// A compiled kernel, with or without a timeline, and its findings.
    pub(crate) fn new(
        point: Vec<(String, String)>,
        applied: &Applied,
        sources: &SourceMap,
        timed: Option<(&Kernel, &Timeline)>,
    ) -> Self {
        let findings: Vec<RowFinding> =
            crate::report::findings(&applied.diagnostics, sources).into_iter().map(RowFinding::new).collect();
        let denied: Vec<DeniedRow> = applied.denied.iter().map(DeniedRow::new).collect();
        let mut row = Row { point, findings, denied, ..Row::default() };
        row.error = row.findings.iter().find(|f| f.severity == "error").map(RowFinding::text);
        let Some((kernel, t)) = timed else {
            if row.error.is_none() {
                row.error = Some("no program".to_owned());
            }
            return row;
        };
        if row.error.is_none() {
            row.latency_us = Some(t.elapsed as f64 / 1e6);
            row.latency_error = kernel.error_bar(t).map(Interval::from);
        }
        row.latency_valid = row.latency_us.is_some() && !t.over_capacity;
        row.incomplete = row.findings.iter().any(|f| SKIPS_WORK.contains(&f.id.as_str()));
        row.bound = report::verdict_sentence(t, &verdict(t, &critical_path(t)));
        (row.dma_bytes, row.dma_transfers) = (t.dma.bytes, t.dma.transfers);
        row.sbuf_peak_bytes_per_partition = kernel.placement.sbuf_peak_bytes;
        row.psum_peak_banks = kernel.placement.psum_peak_banks;
        row
    }

    /// Adds the comparisons of its outputs.
    pub(crate) fn compared(&mut self, comparisons: &Comparisons) {
        self.expected = comparisons.done.iter().map(Compared::from).collect();
        if let Some(problem) = comparisons.problems.first() {
            self.error.get_or_insert_with(|| problem.clone());
        }
    }

    /// Whether the outputs have their expected values.
    pub(crate) fn is_correct(&self) -> bool {
        self.expected.iter().all(|c| c.passed)
    }

    /// The largest absolute error of all outputs; `None` if nothing was compared, or the error is not finite.
    pub(crate) fn max_error(&self) -> Option<f64> {
        let errors: Option<Vec<f64>> = self.expected.iter().map(|c| c.max_abs_error).collect();
        errors?.into_iter().reduce(f64::max)
    }

    /// The order of a table.
    pub(crate) fn rank(&self) -> Rank {
        match self.latency_us {
            None => Rank::Failed,
            Some(_) if self.pruned || !self.is_correct() => Rank::Wrong,
            Some(_) if self.error.is_some() => Rank::Failed,
            Some(_) if self.incomplete => Rank::Incomplete,
            Some(_) if !self.latency_valid => Rank::DoesNotFit,
            Some(_) => Rank::Good,
        }
    }

    /// Description of the first output that differs.
    pub(crate) fn difference(&self) -> Option<String> {
        let wrong = self.expected.iter().find(|c| !c.passed)?;
        let largest = wrong.max_abs_error.map_or("not finite".to_owned(), |e| format!("{e:.3e}"));
        let Compared { name, mismatches, elements, .. } = wrong;
        Some(format!("output `{name}`: {mismatches} of {elements} elements differ, max abs error {largest}"))
    }

    /// Findings that are warnings.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &RowFinding> {
        self.findings.iter().filter(|f| f.severity == "warning")
    }

    /// The values of the axes in printed form.
    pub(crate) fn place(&self) -> String {
        self.point.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ")
    }
}

/// Groups of a table, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Fits and is correct, as far as outputs were compared.
    Good,
    /// Does not fit into SBUF or PSUM.
    DoesNotFit,
    /// Leaves elements of an output unwritten.
    Incomplete,
    /// Has wrong or unknown outputs.
    Wrong,
    /// Has an error: a wrong kernel, or an incomparable output.
    Failed,
}

/// Sorts a table by rank and latency. The sort is stable.
pub(crate) fn sort(rows: &mut [Row]) {
    let time = |r: &Row| r.latency_us.unwrap_or(f64::INFINITY);
    rows.sort_by(|a, b| a.rank().cmp(&b.rank()).then(time(a).total_cmp(&time(b))));
}

/// All denied findings of all points, by slug and source.
pub(crate) fn all_denied(rows: &[Row]) -> Vec<DeniedRow> {
    let mut out: Vec<DeniedRow> = Vec::new();
    for d in rows.iter().flat_map(|r| &r.denied) {
        match out.iter_mut().find(|known| known.id == d.id && known.by == d.by) {
            Some(known) => known.count += d.count,
            None => out.push(d.clone()),
        }
    }
    out
}
