//! A replay in text.

use std::fmt::Write as _;

use nki_isa::Target;

use super::figures::{Coverage, Figures, Pair, Tally};

fn percent(p: &Pair) -> String {
    p.error_percent.map_or("-".into(), |e| format!("{e:+.1}%"))
}

/// Human-readable tables with at most `top` rows each.
pub(super) fn text(f: &Figures, target: Target, top: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "total {:.2} us recorded, {:.2} us replayed as {target} ({})",
        f.total_us.recorded,
        f.total_us.replayed,
        percent(&f.total_us)
    );
    let d = &f.drift;
    let _ = writeln!(
        out,
        "starts of {} instructions: off by {:.2} us in the median ({:.2}% of the total), {:.2} us at worst ({:.2}%); bias {:+.2} us",
        d.instructions, d.median_us, d.median_percent, d.worst_us, d.worst_percent, d.bias_us
    );
    coverage(&mut out, &f.coverage);
    let _ = writeln!(
        out,
        "\nengine          instructions  active us: recorded  replayed    error   start: median  worst us"
    );
    for e in &f.engines {
        let _ = writeln!(
            out,
            "{:<8} core {} {:>12} {:>20.2} {:>9.2} {:>8} {:>15.2} {:>9.2}",
            e.engine,
            e.core,
            e.drift.instructions,
            e.active_us.recorded,
            e.active_us.replayed,
            percent(&e.active_us),
            e.drift.median_us,
            e.drift.worst_us
        );
    }
    let mut kinds: Vec<_> = f.opcodes.iter().collect();
    let weight =
        |k: &super::figures::KindFigures| (k.duration_ns.replayed - k.duration_ns.recorded).abs() * k.count as f64;
    kinds.sort_by(|a, b| {
        weight(b).total_cmp(&weight(a)).then_with(|| (&a.opcode, &a.shape).cmp(&(&b.opcode, &b.shape)))
    });
    let _ = writeln!(out, "\nduration in ns, median; what matters most first");
    for k in kinds.iter().take(top) {
        let what = format!("{} {} {}", k.engine, k.opcode, k.shape);
        let (r, p) = (k.duration_ns.recorded, k.duration_ns.replayed);
        let _ = writeln!(out, "  {what:<56} {:>5} x {r:>8.0} -> {p:>8.0} {:>8}", k.count, percent(&k.duration_ns));
    }
    more(&mut out, kinds.len(), top);
    if !f.transfers.is_empty() {
        let _ = writeln!(
            out,
            "\ntransfers, medians in ns: trigger to first packet, first packet to visible, a packet on its engine"
        );
    }
    for t in f.transfers.iter().take(top) {
        let what = format!("{} {}", t.engine, t.shape);
        let show = |p: &Pair| format!("{:>6.0} -> {:<6.0}", p.recorded, p.replayed);
        let _ = writeln!(
            out,
            "  {what:<40} {:>4} x {} {} {}",
            t.count,
            show(&t.trigger_to_packet_ns),
            show(&t.packet_to_visible_ns),
            show(&t.packet_ns)
        );
    }
    more(&mut out, f.transfers.len(), top);
    for l in &f.limiter {
        let list = |list: &[(f64, bool)]| {
            let list: Vec<String> =
                list.iter().map(|(t, full)| format!("{t:.2} {}", if *full { "full" } else { "half" })).collect();
            if list.is_empty() { "none".to_string() } else { list.join(", ") }
        };
        let _ = writeln!(
            out,
            "\npower limiter of core {}, us: recorded {}\n                           replayed {}",
            l.core,
            list(&l.recorded_us),
            list(&l.replayed_us)
        );
    }
    for note in &f.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn more(out: &mut String, n: usize, top: usize) {
    if n > top {
        let _ = writeln!(out, "  ... and {} more (--top)", n - top);
    }
}

fn coverage(out: &mut String, c: &Coverage) {
    let list = |list: &[Tally]| {
        let list: Vec<String> = list.iter().map(|t| format!("{} {} {}", t.count, t.engine, t.opcode)).collect();
        list.join(", ")
    };
    let share = |n: usize| if c.instructions == 0 { 0.0 } else { n as f64 * 100.0 / c.instructions as f64 };
    let _ = writeln!(
        out,
        "{} of {} instructions of the program timed by the laws ({:.1}%); {} of the runtime left to start-up and end",
        c.by_law,
        c.instructions,
        share(c.by_law),
        c.of_runtime
    );
    if !c.as_recorded.is_empty() {
        let n: usize = c.as_recorded.iter().map(|t| t.count).sum();
        let _ = writeln!(out, "  no law, so they take the recorded time ({:.1}%): {}", share(n), list(&c.as_recorded));
    }
    if c.unmet_waits > 0 {
        let _ = writeln!(out, "  {} left out: nothing in the profile meets them", crate::count(c.unmet_waits, "wait"));
    }
}
