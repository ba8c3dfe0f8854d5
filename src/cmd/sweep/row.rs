//! One point of a sweep: what was set, what came out, what was found.

use nki_diag::{Denied, Diagnostic, JsonDiagnostic};
use nki_sim_core::analysis::{critical_path, verdict};
use nki_sim_core::report;
use nki_sim_core::timeline::Timeline;
use serde::{Deserialize, Serialize};

use crate::session::{Compilation, Kernel, Session};

/// What came of one point. Field order is the order in the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The values, by axis.
    pub(crate) point: Vec<(String, String)>,
    /// The latency; `None` where the kernel is wrong or a finding is denied.
    pub(crate) latency_us: Option<f64>,
    /// Whether the latency means anything: not if the kernel does not fit into SBUF or PSUM.
    #[serde(default = "valid")]
    pub(crate) latency_valid: bool,
    /// What bounds the kernel.
    pub(crate) bound: String,
    /// Bytes moved by DMA.
    pub(crate) dma_bytes: u64,
    /// Transfers.
    pub(crate) dma_transfers: u64,
    /// Most SBUF in use.
    pub(crate) sbuf_peak_bytes_per_partition: u32,
    /// Most PSUM in use.
    pub(crate) psum_peak_banks: u32,
    /// Why the point failed: the first error.
    pub(crate) error: Option<String>,
    /// What was found, after levels.
    #[serde(default)]
    pub(crate) findings: Vec<Found>,
    /// Which findings were denied.
    #[serde(default)]
    pub(crate) denied: Vec<DeniedHere>,
}

/// Points of older state files fit.
fn valid() -> bool {
    true
}

/// A finding of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
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

impl Found {
    fn new(d: JsonDiagnostic) -> Self {
        let (id, severity) = (d.id.to_owned(), d.severity.name().to_owned());
        Found { id, severity, message: d.message, file: d.file, line: d.line }
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

/// [`Denied`] as a state file can hold it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeniedHere {
    /// The slug.
    pub(crate) id: String,
    /// How many findings.
    pub(crate) count: usize,
    /// What denies them.
    pub(crate) by: String,
    /// A default denies them, and no list of the user.
    pub(crate) default: bool,
}

impl DeniedHere {
    fn new(d: &Denied) -> Self {
        DeniedHere { id: d.id.to_owned(), count: d.count, by: d.by.clone(), default: d.default }
    }
}

impl Row {
    /// A point at which the kernel was compiled, with or without a timeline. `found` is what its run found.
    pub(crate) fn new(
        point: Vec<(String, String)>,
        session: &Session,
        compiled: &Compilation,
        found: Vec<Diagnostic>,
        timed: Option<(&Kernel, &Timeline)>,
    ) -> Self {
        let applied = session.judge.judge(compiled.with(found));
        let findings: Vec<Found> =
            crate::report::findings(&applied.diagnostics, &compiled.sources).into_iter().map(Found::new).collect();
        let denied: Vec<DeniedHere> = applied.denied.iter().map(DeniedHere::new).collect();
        let mut row = Row { point, findings, denied, latency_valid: true, ..Row::default() };
        row.error = row.findings.iter().find(|f| f.severity == "error").map(Found::text);
        let Some((kernel, t)) = timed else {
            if row.error.is_none() {
                row.error = Some("no program".to_owned());
            }
            return row;
        };
        if row.error.is_none() {
            row.latency_us = Some(t.elapsed as f64 / 1e6);
        }
        row.latency_valid = !t.over_capacity;
        row.bound = report::verdict_sentence(t, &verdict(t, &critical_path(t)));
        (row.dma_bytes, row.dma_transfers) = (t.dma.bytes, t.dma.transfers);
        row.sbuf_peak_bytes_per_partition = kernel.placement.sbuf_peak_bytes;
        row.psum_peak_banks = kernel.placement.psum_peak_banks;
        row
    }

    /// Findings that are warnings.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &Found> {
        self.findings.iter().filter(|f| f.severity == "warning")
    }

    /// The values of the axes as they are printed.
    pub(crate) fn place(&self) -> String {
        self.point.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ")
    }
}

/// What was denied at all points together, by slug and what denies it.
pub(crate) fn all_denied(rows: &[Row]) -> Vec<DeniedHere> {
    let mut out: Vec<DeniedHere> = Vec::new();
    for d in rows.iter().flat_map(|r| &r.denied) {
        match out.iter_mut().find(|known| known.id == d.id && known.by == d.by) {
            Some(known) => known.count += d.count,
            None => out.push(d.clone()),
        }
    }
    out
}
