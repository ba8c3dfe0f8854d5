//! The comparison as text, as annotations of GitHub Actions, and as JUnit's XML.

use std::fmt::Write as _;

use super::{Change, Checked, Difference};

fn percent(c: &Change) -> String {
    let p = c.percent();
    if p.is_infinite() { "new".into() } else { format!("{p:+.2}%") }
}

fn plain(x: f64) -> String {
    if x == x.trunc() && x.abs() < 1e15 { format!("{x}") } else { format!("{x:.3}") }
}

/// Tables, largest change first.
pub(super) fn text(r: &Difference, top: usize) -> String {
    let mut out = format!("before: {}\nafter:  {}\n", r.files.0, r.files.1);
    let latency =
        r.metrics.iter().find(|c| c.name == "latency_us").or_else(|| r.metrics.iter().find(|c| c.name == "span_us"));
    if let Some(c) = latency {
        let what = if c.name == "latency_us" { "latency" } else { "first to last instruction" };
        let _ = writeln!(out, "\n{what} {:.2} us -> {:.2} us ({})", c.before, c.after, percent(c));
    }
    section(&mut out, &format!("by line, us of {}", r.lines_are), &r.lines, top, true);
    section(&mut out, "by engine, us active", &r.engines, top, true);
    section(&mut out, "by cause, us stalled", &r.causes, top, true);
    let mut metrics: Vec<Change> =
        r.metrics.iter().filter(|c| latency.is_none_or(|l| l.name != c.name)).cloned().collect();
    metrics.sort_by(|a, b| b.percent().abs().total_cmp(&a.percent().abs()).then_with(|| a.name.cmp(&b.name)));
    section(&mut out, "other", &metrics, top, false);
    if !r.fail_if.is_empty() {
        out.push('\n');
    }
    for c in &r.fail_if {
        let _ = writeln!(out, "{}: fail if {} ({})", if c.failed { "FAILED" } else { "ok" }, c.condition, values(c));
    }
    out
}

fn values(c: &Checked) -> String {
    format!("{} -> {}, {}", plain(c.change.before), plain(c.change.after), percent(&c.change))
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
        let number = |x: f64| if fixed { format!("{x:.2}") } else { plain(x) };
        let delta = if fixed { format!("{:+.2}", c.delta()) } else { String::new() };
        let _ = writeln!(
            out,
            "  {:<wide$} {:>12} -> {:>12} {delta:>10} {:>9}",
            c.name,
            number(c.before),
            number(c.after),
            percent(c)
        );
    }
    if changed.len() > top {
        let _ = writeln!(out, "  ... and {} more (--top)", changed.len() - top);
    }
}

/// The property and message escapes of workflow commands.
fn github_escape(text: &str, property: bool) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    if property { text.replace(':', "%3A").replace(',', "%2C") } else { text }
}

/// One annotation for each condition, one for the latency, and one for each of the lines that lost most.
pub(super) fn github(r: &Difference) -> String {
    let mut out = String::new();
    let mut say = |kind: &str, place: Option<(&str, &str)>, title: &str, message: &str| {
        let at = place.map_or(String::new(), |(f, l)| {
            format!("file={},line={},", github_escape(f, true), github_escape(l, true))
        });
        let _ = writeln!(out, "::{kind} {at}title={}::{}", github_escape(title, true), github_escape(message, false));
    };
    if let Some(c) = r.metrics.iter().find(|c| c.name == "latency_us") {
        let message = format!("latency {:.2} us -> {:.2} us ({})", c.before, c.after, percent(c));
        say("notice", None, "nki-sim", &message);
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

fn xml(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '&' => "&amp;".to_string(),
            '<' => "&lt;".to_string(),
            '>' => "&gt;".to_string(),
            '"' => "&quot;".to_string(),
            c if c.is_control() => " ".to_string(),
            c => c.to_string(),
        })
        .collect()
}

/// A suite with a case for each condition; without any, one case that holds the comparison.
pub(super) fn junit(r: &Difference) -> String {
    let failures = r.fail_if.iter().filter(|c| c.failed).count();
    let tests = r.fail_if.len().max(1);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites tests=\"{tests}\" failures=\"{failures}\">");
    let _ = writeln!(out, "  <testsuite name=\"nki-sim compare\" tests=\"{tests}\" failures=\"{failures}\">");
    for c in &r.fail_if {
        let name = xml(&format!("not {}", c.condition));
        if c.failed {
            let message = xml(&format!("{}: {}", c.change.name, values(c)));
            let _ = writeln!(out, "    <testcase classname=\"nki-sim\" name=\"{name}\">");
            let _ = writeln!(
                out,
                "      <failure message=\"{message}\">{}</failure>",
                xml(&text(r, 8)).replace("&#10;", "\n")
            );
            out += "    </testcase>\n";
        } else {
            let _ = writeln!(out, "    <testcase classname=\"nki-sim\" name=\"{name}\"/>");
        }
    }
    if r.fail_if.is_empty() {
        out += "    <testcase classname=\"nki-sim\" name=\"compare\"/>\n";
    }
    out += "  </testsuite>\n</testsuites>\n";
    out
}
