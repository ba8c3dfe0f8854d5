//! The points of a sweep as text and as CSV.

use std::fmt::Write as _;

use super::grid::Axis;
use crate::row::{Rank, Row, RowFinding};
use crate::{VERSION, count};

/// Suffix of the bottleneck of a point with an invalid latency.
const NOT_VALID: &str = " (latency not valid: does not fit into SBUF or PSUM)";

/// Suffix of the bottleneck of a point that skips work.
const INCOMPLETE: &str = " (not ranked: elements of an output are never written)";

/// The ranking, followed by the points with warnings, the denied and the failed ones.
pub(super) fn text(axes: &[Axis], rows: &[Row], front: &[usize], top: usize) -> String {
    let good: Vec<&Row> = rows.iter().filter(|r| r.rank() < Rank::Wrong).collect();
    let mut out = ranking(axes, &good, front, top);
    let warned: Vec<&Row> = good.iter().copied().filter(|r| r.warnings().next().is_some()).collect();
    section(&mut out, &warned, "with warnings", top, |r| {
        let more = r.warnings().count() - 1;
        let first = r.warnings().next().map(RowFinding::text).unwrap_or_default();
        if more == 0 { first } else { format!("{first}, and {more} more") }
    });
    let wrong: Vec<&Row> = rows.iter().filter(|r| r.rank() == Rank::Wrong && !r.pruned).collect();
    section(&mut out, &wrong, "with wrong outputs, not ranked", top, |r| r.difference().unwrap_or_default());
    let pruned: Vec<&Row> = rows.iter().filter(|r| r.rank() == Rank::Wrong && r.pruned).collect();
    section(&mut out, &pruned, "without values, not ranked", top, |r| {
        format!("{:.2} us; a correct point is as good in latency and SBUF", r.latency_us.unwrap_or(0.0))
    });
    let failed: Vec<&Row> = rows.iter().filter(|r| r.error.is_some() && r.denied.is_empty()).collect();
    let denied: Vec<&Row> = rows.iter().filter(|r| !r.denied.is_empty()).collect();
    let error = |r: &Row| r.error.clone().unwrap_or_default();
    section(&mut out, &denied, "denied, not ranked", usize::MAX, |r| {
        let by: Vec<String> = r.denied.iter().map(|d| format!("{} ({}) by {}", d.id, d.count, d.by)).collect();
        format!("{}: {}", by.join(", "), error(r))
    });
    section(&mut out, &failed, "failed", usize::MAX, error);
    out
}

fn section(out: &mut String, rows: &[&Row], what: &str, top: usize, say: impl Fn(&Row) -> String) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{} {what}:", count(rows.len(), "point"));
    for r in rows.iter().take(top) {
        let _ = writeln!(out, "  {}: {}", r.place(), say(r));
    }
    if rows.len() > top {
        let _ = writeln!(out, "  ... and {} more (--top)", rows.len() - top);
    }
}

fn ranking(axes: &[Axis], good: &[&Row], front: &[usize], top: usize) -> String {
    let mut heads: Vec<String> = axes.iter().map(|a| a.name.clone()).collect();
    heads.extend(["latency us", "of best", "DMA bytes", "SBUF peak"].map(String::from));
    let marked = good.iter().any(|r| r.warnings().next().is_some());
    let compared = good.iter().any(|r| !r.expected.is_empty());
    if compared {
        heads.push("max error".into());
    }
    if marked {
        heads.push("warnings".into());
    }
    heads.extend(["front", "bound"].map(String::from));
    let best = good.first().and_then(|r| r.latency_us).unwrap_or(0.0);
    let mut lines = vec![heads];
    for (at, r) in good.iter().take(top).enumerate() {
        let latency = r.latency_us.unwrap_or(0.0);
        let mut cells: Vec<String> = r.point.iter().map(|p| p.1.clone()).collect();
        cells.extend([
            format!("{latency:.2}"),
            if r.incomplete { "-".into() } else { format!("{:.3}x", latency / best.max(f64::MIN_POSITIVE)) },
            r.dma_bytes.to_string(),
            r.sbuf_peak_bytes_per_partition.to_string(),
        ]);
        if compared {
            cells.push(r.max_error().map_or("-".into(), |e| format!("{e:.3e}")));
        }
        if marked {
            cells.push(match r.warnings().count() {
                0 => "-".into(),
                n => n.to_string(),
            });
        }
        // Ranked rows are the first of the table.
        cells.push(if front.contains(&at) { "*" } else { "" }.into());
        let remark = match r.rank() {
            Rank::Incomplete => INCOMPLETE,
            Rank::DoesNotFit => NOT_VALID,
            _ => "",
        };
        cells.push(r.bound.split(':').next().unwrap_or_default().to_string() + remark);
        lines.push(cells);
    }
    let wide: Vec<usize> =
        (0..lines[0].len()).map(|i| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for l in &lines {
        let last = l.len() - 1;
        let cells: Vec<String> = l
            .iter()
            .enumerate()
            .map(|(i, c)| if i == last { c.clone() } else { format!("{c:>w$}", w = wide[i]) })
            .collect();
        let _ = writeln!(out, "{}", cells.join("  "));
    }
    if good.len() > top {
        let _ = writeln!(out, "... and {} more (--top)", good.len() - top);
    }
    out
}

/// A line for each point.
pub(super) fn csv(axes: &[Axis], rows: &[Row]) -> String {
    let quoted = |t: &str| {
        if t.contains([',', '"', '\n', '\r']) { format!("\"{}\"", t.replace('"', "\"\"")) } else { t.to_string() }
    };
    let mut heads: Vec<String> = axes.iter().map(|a| quoted(&a.name)).collect();
    heads.extend(
        [
            "latency_us",
            "latency_valid",
            "bound",
            "dma_bytes",
            "dma_transfers",
            "sbuf_peak_bytes_per_partition",
            "psum_peak_banks",
            "correct",
            "max_abs_error",
            "error",
            "warnings",
            "denied",
            "nki_sim_version",
        ]
        .map(String::from),
    );
    let mut out = heads.join(",") + "\n";
    for r in rows {
        let mut cells: Vec<String> = r.point.iter().map(|p| quoted(&p.1)).collect();
        let mut warnings: Vec<&str> = r.warnings().map(|f| f.id.as_str()).collect();
        warnings.dedup();
        let denied: Vec<&str> = r.denied.iter().map(|d| d.id.as_str()).collect();
        cells.extend([
            r.latency_us.map_or_else(String::new, |x| x.to_string()),
            r.latency_us.map_or_else(String::new, |_| r.latency_valid.to_string()),
            quoted(&r.bound),
            r.dma_bytes.to_string(),
            r.dma_transfers.to_string(),
            r.sbuf_peak_bytes_per_partition.to_string(),
            r.psum_peak_banks.to_string(),
            if r.expected.is_empty() { String::new() } else { r.is_correct().to_string() },
            r.max_error().map_or_else(String::new, |e| e.to_string()),
            quoted(r.error.as_deref().unwrap_or_default()),
            warnings.join(" "),
            denied.join(" "),
            VERSION.to_string(),
        ]);
        out += &(cells.join(",") + "\n");
    }
    out
}
