//! The summary at the end of a run: dominant costs and possible gains.

use std::fmt::Write as _;

use nki_isa::schema::Confidence;

use super::detail::{gain_percent, iteration, lines, row_name};
use super::vocabulary::{released, remedy, roofline};
use crate::analysis::{Analysis, confidence};

/// Remedies with smaller gains are not reported.
const LEAST_GAIN_PERCENT: f64 = 0.5;

/// Dominant costs, possible gains, the roofline, and the confidence of the figures.
pub fn advice(a: &Analysis<'_>) -> String {
    let t = a.timeline;
    let mut out = String::new();
    let mut lines = lines(a);
    lines.retain(|l| l.critical_us > 0.0);
    if !lines.is_empty() {
        let _ = writeln!(out, "\nLines that cost most (time on the critical path):");
    }
    for l in lines.iter().take(3) {
        let place = if l.line > 0 { format!("{}:{}", l.file, l.line) } else { "unknown line".into() };
        let wait = if l.wait_us >= 0.01 && !l.wait_cause.is_empty() {
            format!(", waits {:.2} us: {}", l.wait_us, l.wait_cause)
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "  {:>5.1}% {:>10.2} us  {place} {} ({} x{wait})",
            l.critical_percent, l.critical_us, l.instruction, l.count
        );
    }
    let worth: Vec<_> =
        a.remedies.tried.iter().filter(|r| gain_percent(r.gain, t.elapsed) >= LEAST_GAIN_PERCENT).collect();
    if worth.is_empty() {
        if !a.remedies.tried.is_empty() {
            let kinds: Vec<&str> = a.remedies.tried.iter().map(|r| r.change.kind()).collect();
            let _ = writeln!(
                out,
                "No known remedy gains {LEAST_GAIN_PERCENT}% or more (timed again with each of: {}).",
                kinds.join(", ")
            );
        }
    } else {
        let _ = writeln!(out, "What could be gained (the kernel timed again with each change alone):");
    }
    for r in worth {
        let at: Vec<String> = r.lines.iter().take(3).map(|l| t.place(*l)).filter(|p| !p.is_empty()).collect();
        let more = if r.lines.len() > 3 { ", ..." } else { "" };
        let at = if at.is_empty() { String::new() } else { format!(" [{}{more}]", at.join(", ")) };
        let _ = writeln!(
            out,
            "  {:>5.1}% {:>10.2} us  {}{at}",
            gain_percent(r.gain, t.elapsed),
            r.gain as f64 / 1e6,
            remedy(t, r)
        );
    }
    if !a.remedies.left_out.is_empty() {
        let _ = writeln!(out, "Not tried, because the kernel is long: {}.", a.remedies.left_out.join(", "));
    }
    let _ = writeln!(out, "Roofline: {}.", roofline(&a.roofline));
    let shares: Vec<String> = Confidence::ALL
        .iter()
        .zip(confidence(t, &a.path))
        .filter(|(_, time)| *time > 0)
        .map(|(c, time)| format!("{} {:.0}%", c.name(), time as f64 * 100.0 / t.elapsed.max(1) as f64))
        .collect();
    let _ = writeln!(out, "Confidence of the parameters, by share of the latency: {}.", shares.join(", "));
    out
}

/// The critical path, one line per instruction; consecutive executions of the same instruction in a source line are merged.
pub fn critical_path(a: &Analysis<'_>) -> String {
    let t = a.timeline;
    let us = |ps: u64| ps as f64 / 1e6;
    let mut out = format!(
        "\nCritical path:\n{:>11} {:>11} {:>10}  what, where, iteration, waited for\n",
        "from us", "to us", "us"
    );
    let _ = writeln!(out, "{:>11.3} {:>11.3} {:>10.3}  start-up", 0.0, us(t.head), us(t.head));
    let mut i = 0;
    while i < a.path.len() {
        let step = &a.path[i];
        let e = t.event(step.event);
        let mut j = i + 1;
        while j < a.path.len() && {
            let n = t.event(a.path[j].event);
            (n.origin.loc.file, n.origin.loc.line, n.origin.label)
                == (e.origin.loc.file, e.origin.loc.line, e.origin.label)
        } {
            j += 1;
        }
        let last = &a.path[j - 1];
        let (first, end) = (iteration(a, e), iteration(a, t.event(last.event)));
        let iteration = match (first.is_empty(), j - i) {
            (true, _) => String::new(),
            (false, 1) => format!(" [{first}]"),
            (false, _) => format!(" [{first} .. {end}]"),
        };
        let many = if j - i > 1 { format!(" x{}", j - i) } else { String::new() };
        let place = t.place(e.origin.loc);
        let _ = writeln!(
            out,
            "{:>11.3} {:>11.3} {:>10.3}  {}{many} on {} at {place}{iteration}, after {}",
            us(step.from),
            us(last.to),
            us(last.to - step.from),
            e.origin.label,
            row_name(t, e.origin.row),
            released(t, step.via)
        );
        i = j;
    }
    let end = t.elapsed - t.tail;
    let _ = writeln!(out, "{:>11.3} {:>11.3} {:>10.3}  end", us(end), us(t.elapsed), us(t.tail));
    out
}
