//! The comparison as text, as annotations of GitHub Actions, and as JUnit's XML.

use std::fmt::Write as _;

use super::{Change, Checked, Difference};
use crate::markup::{Spot, annotation, xml};

fn percent(c: &Change) -> String {
    let p = c.percent();
    if p.is_infinite() { "new".into() } else { format!("{p:+.2}%") }
}

/// Integers unchanged, other numbers with about four digits.
fn plain(x: f64) -> String {
    if x == x.trunc() && x.abs() < 1e15 {
        return format!("{x}");
    }
    let digits = 3 - x.abs().log10().floor() as i32;
    if (0..=9).contains(&digits) { format!("{x:.*}", digits as usize) } else { format!("{x:.3e}") }
}

/// The two numbers of a metric, in a suitable unit.
fn readable(c: &Change) -> (String, String) {
    let largest = c.before.abs().max(c.after.abs());
    // Neuron Explorer's times are in seconds.
    let (seconds, name) = match c.name.as_str() {
        n if n.ends_with("_us") => (1e-6, n),
        n => (1.0, n),
    };
    let time = name.ends_with("_time") || name.ends_with("_us");
    if !time || largest == 0.0 {
        return (plain(c.before), plain(c.after));
    }
    let (unit, factor) = match largest * seconds {
        s if s >= 1.0 => ("s", 1.0),
        s if s >= 1e-3 => ("ms", 1e3),
        s if s >= 1e-6 => ("us", 1e6),
        _ => ("ns", 1e9),
    };
    let show = |x: f64| format!("{:.2} {unit}", x * seconds * factor);
    (show(c.before), show(c.after))
}

/// The latency before and after, each marked if it is not valid.
fn latency(r: &Difference, c: &Change) -> String {
    let mark = |valid: bool| if valid { "" } else { " (not valid)" };
    let (before, after) = (mark(r.latency_valid.0), mark(r.latency_valid.1));
    format!("latency {:.2} us{before} -> {:.2} us{after} ({})", c.before, c.after, percent(c))
}

/// Tables, largest change first.
pub(super) fn text(r: &Difference, top: usize) -> String {
    let mut out = format!("before: {}\nafter:  {}\n", r.files.0, r.files.1);
    for note in &r.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let latency =
        r.metrics.iter().find(|c| c.name == "latency_us").or_else(|| r.metrics.iter().find(|c| c.name == "span_us"));
    if let Some(c) = latency {
        let _ = match c.name.as_str() {
            "latency_us" => writeln!(out, "\n{}", self::latency(r, c)),
            _ => writeln!(out, "\nfirst to last instruction {:.2} us -> {:.2} us ({})", c.before, c.after, percent(c)),
        };
    }
    section(&mut out, &format!("by line, us of {}", r.lines_are), &r.lines, top, true);
    section(&mut out, "by engine, us active", &r.engines, top, true);
    section(&mut out, "by cause, us stalled", &r.causes, top, true);
    section(&mut out, "by instruction, us", &r.opcodes, top, true);
    section(&mut out, "by instruction, number", &r.counts, top, false);
    let mut metrics: Vec<Change> =
        r.metrics.iter().filter(|c| latency.is_none_or(|l| l.name != c.name)).cloned().collect();
    metrics.sort_by(|a, b| b.percent().abs().total_cmp(&a.percent().abs()).then_with(|| a.name.cmp(&b.name)));
    section(&mut out, "other", &metrics, top, false);
    findings(&mut out, r, top);
    if !r.fail_if.is_empty() {
        out.push('\n');
    }
    for c in &r.fail_if {
        let _ = writeln!(
            out,
            "{}: {}{} ({})",
            if c.failed { "FAILED" } else { "passed" },
            c.condition,
            if c.failed { "" } else { " does not hold" },
            values(c)
        );
    }
    out
}

/// New findings of the later run, and the number of common ones.
fn findings(out: &mut String, r: &Difference, top: usize) {
    let Some(found) = r.findings.as_ref().filter(|f| !f.is_empty()) else { return };
    let new: Vec<_> = found.iter().filter(|f| f.new).collect();
    let _ = writeln!(out, "\nfindings of the run after: {}, {} new", found.len(), new.len());
    for f in new.iter().take(top) {
        let _ = writeln!(out, "  new: {}", f.text());
    }
    if new.len() > top {
        let _ = writeln!(out, "  ... and {} more new ones (--top)", new.len() - top);
    }
    for d in &r.denied {
        let _ = writeln!(out, "  denied: {d}");
    }
}

fn values(c: &Checked) -> String {
    let (before, after) = readable(&c.change);
    format!("{before} -> {after}, {}", percent(&c.change))
}

fn section(out: &mut String, title: &str, rows: &[Change], top: usize, fixed: bool) {
    let changed: Vec<&Change> = rows.iter().filter(|c| c.delta().abs() > 1e-9).collect();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    if changed.is_empty() {
        let _ = writeln!(out, "  no change");
        return;
    }
    let wide = changed.iter().take(top).map(|c| c.name.chars().count()).max().unwrap_or(0);
    for c in changed.iter().take(top) {
        let (before, after) = if fixed { (format!("{:.2}", c.before), format!("{:.2}", c.after)) } else { readable(c) };
        let delta = if fixed { format!("{:+.2}", c.delta()) } else { String::new() };
        let _ = writeln!(out, "  {:<wide$} {:>12} -> {:>12} {delta:>10} {:>9}", c.name, before, after, percent(c));
    }
    if changed.len() > top {
        let _ = writeln!(out, "  ... and {} more (--top)", changed.len() - top);
    }
}

/// One annotation per condition, one for the latency, one per note, and one for each of the lines that slowed down most.
pub(super) fn github(r: &Difference) -> String {
    let mut out = String::new();
    let mut say = |kind: &str, place: Option<(&str, &str)>, title: &str, message: &str| {
        let path = |file| r.paths.get(super::profile::base(file)).map_or(file, String::as_str);
        let spot = place.map(|(file, line)| Spot { file: path(file), line, column: None });
        out += &annotation(kind, spot, title, message);
    };
    if let Some(c) = r.metrics.iter().find(|c| c.name == "latency_us") {
        say("notice", None, "nki-sim", &latency(r, c));
    }
    for note in &r.notes {
        say("warning", None, "nki-sim: note", note);
    }
    for c in &r.fail_if {
        let place = c.condition.trim().strip_prefix("line.").and_then(|l| {
            let (file, rest) = l.split_once(':')?;
            let digits = rest.split(|d: char| !d.is_ascii_digit()).next()?;
            Some((file, digits))
        });
        let (kind, what) = if c.failed { ("error", "failed") } else { ("notice", "holds") };
        say(kind, place, &format!("nki-sim: limit {what}"), &format!("fail if {}: {}", c.condition, values(c)));
    }
    for f in r.findings.iter().flatten().filter(|f| f.new || f.severity == "error") {
        let line = f.line.map(|l| l.to_string());
        let place = f.file.as_deref().zip(line.as_deref());
        let kind = if f.severity == "error" { "error" } else { "warning" };
        let what = if f.new { "new finding" } else { "finding" };
        say(kind, place, &format!("nki-sim: {what} {}", f.id), &f.message);
    }
    let total = r.metrics.iter().find(|c| c.name == "latency_us").map_or(0.0, |c| c.before);
    for c in r.lines.iter().filter(|c| c.delta() > total * 0.01 && c.delta() > 0.0).take(5) {
        let place = c.name.split(' ').next().and_then(|p| p.rsplit_once(':'));
        let message = format!(
            "{} took {:.2} us more of the {} ({:.2} -> {:.2})",
            c.name,
            c.delta(),
            r.lines_are,
            c.before,
            c.after
        );
        say("warning", place, "nki-sim: slower line", &message);
    }
    out
}

/// A suite with a case per condition; without conditions, a single case for the comparison.
pub(super) fn junit(r: &Difference) -> String {
    let failures = r.fail_if.iter().filter(|c| c.failed).count() + r.denied.len();
    let tests = (r.fail_if.len() + r.denied.len()).max(1);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites tests=\"{tests}\" failures=\"{failures}\">");
    let _ = writeln!(out, "  <testsuite name=\"nki-sim compare\" tests=\"{tests}\" failures=\"{failures}\">");
    for c in &r.fail_if {
        let name = xml(&format!("not {}", c.condition), false);
        if c.failed {
            let message = xml(&format!("{}: {}", c.change.name, values(c)), false);
            let _ = writeln!(out, "    <testcase classname=\"nki-sim\" name=\"{name}\">");
            let _ = writeln!(out, "      <failure message=\"{message}\">{}</failure>", xml(&text(r, 8), true));
            out += "    </testcase>\n";
        } else {
            let _ = writeln!(out, "    <testcase classname=\"nki-sim\" name=\"{name}\"/>");
        }
    }
    for d in &r.denied {
        let _ = writeln!(out, "    <testcase classname=\"nki-sim\" name=\"no {}\">", xml(d.id, false));
        let _ = writeln!(out, "      <failure message=\"{}\"/>", xml(&format!("denied: {d}"), false));
        out += "    </testcase>\n";
    }
    if r.fail_if.is_empty() && r.denied.is_empty() {
        out += "    <testcase classname=\"nki-sim\" name=\"compare\"/>\n";
    }
    out += "  </testsuite>\n</testsuites>\n";
    out
}
