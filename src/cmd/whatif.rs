//! `nki-sim whatif FILE`: ranks timing parameters by their effect on the latency.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use nki_diag::{Denied, JsonDiagnostic, Mode};
use nki_sim_core::analysis::sensitivity::{Sensitivity, sensitivities};
use nki_sim_core::report;
use nki_sim_core::timeline::Ps;
use serde::Serialize;

use crate::cli::WhatifArgs;
use crate::kernel::{Sink, add_run_line, compile, conclude, fail, finish, session};
use crate::output::{Progress, print, write_file};
use crate::places::{Inputs, check_places};
use crate::session::Numerics;
use crate::{Failure, VERSION};

/// A parameter in the output of `--json`.
#[derive(Debug, Serialize)]
struct Row {
    parameter: String,
    value: f64,
    unit: String,
    confidence: &'static str,
    low: Option<f64>,
    low_latency_us: Option<f64>,
    high: Option<f64>,
    high_latency_us: Option<f64>,
    effect_percent: f64,
}

#[derive(Debug, Serialize)]
struct Table {
    nki_sim_version: &'static str,
    kernel: String,
    target: String,
    latency_us: f64,
    latency_valid: bool,
    step_percent: f64,
    findings: Vec<JsonDiagnostic>,
    denied: Vec<Denied>,
    parameters: Vec<Row>,
}

/// Times the kernel, first unchanged, then with each parameter changed.
pub(crate) fn run(mut args: WhatifArgs) -> Result<(), Failure> {
    let session = session(&args.kernel, Mode::Run, Numerics::IfNeeded, Some(&args.timing))?;
    add_run_line(&session, &mut args.kernel, Sink::default())?;
    let inputs = Inputs::of_kernel(&args.kernel).and_timing(&args.timing);
    check_places(&[("--json", args.json.as_deref())], &inputs)?;
    let (mut compiled, arguments) = compile("whatif", &session, &args.kernel)?;
    check_places(&[("--json", args.json.as_deref())], &Inputs::of_sources(&compiled.sources))?;
    let kernel = match session.place(&mut compiled) {
        Ok(kernel) => kernel,
        Err(stop) => return Err(fail(&session, &compiled, Sink::default(), compiled.with(stop.found()?))),
    };
    let (ran, timeline) = match session.run_alone_timed(&kernel, arguments.into_tensors()) {
        Ok(done) => done,
        Err(stop) => return Err(fail(&session, &compiled, Sink::default(), compiled.with(stop.found()?))),
    };
    let applied = conclude(&session, compiled.with(ran.findings), &compiled.sources);
    let progress = Progress::new("parameters");
    let finished = AtomicUsize::new(0);
    let case = kernel.case(&ran.trace, &timeline);
    let found = sensitivities(&case, args.step / 100.0, &|total| {
        progress.show(finished.fetch_add(1, Ordering::Relaxed) + 1, total, "");
    });
    progress.clear();
    let elapsed = timeline.elapsed;
    if let Some(path) = &args.json {
        let table = Table {
            nki_sim_version: VERSION,
            kernel: compiled.name.clone(),
            target: compiled.target.to_string(),
            latency_us: us(elapsed),
            latency_valid: !timeline.over_capacity,
            step_percent: args.step,
            findings: crate::report::findings(&applied.diagnostics, &compiled.sources),
            denied: applied.denied.clone(),
            parameters: found.iter().map(|s| row(s, elapsed)).collect(),
        };
        write_file(path, &[&crate::report::json(&table)?])?;
    }
    print(&text(&found, elapsed, report::validity(&timeline), &args));
    finish(&applied)
}

fn us(time: Ps) -> f64 {
    time as f64 / 1e6
}

fn change(new: Ps, elapsed: Ps) -> f64 {
    (new as f64 - elapsed as f64) * 100.0 / elapsed.max(1) as f64
}

fn row(s: &Sensitivity, elapsed: Ps) -> Row {
    Row {
        parameter: s.name.clone(),
        value: s.value,
        unit: s.unit.clone(),
        confidence: s.confidence.name(),
        low: s.low.map(|l| l.0),
        low_latency_us: s.low.map(|l| us(l.1)),
        high: s.high.map(|h| h.0),
        high_latency_us: s.high.map(|h| us(h.1)),
        effect_percent: s.effect(elapsed) as f64 * 100.0 / elapsed.max(1) as f64,
    }
}

fn text(found: &[Sensitivity], elapsed: Ps, validity: &str, args: &WhatifArgs) -> String {
    let (step, top) = (args.step, args.top);
    let mut out = format!("{:.2} us{validity}; each parameter {step}% lower and higher:\n\n", us(elapsed));
    let moving: Vec<&Sensitivity> = found.iter().filter(|s| s.effect(elapsed) > 0).collect();
    if moving.is_empty() {
        out += "no parameter has an effect on the latency\n";
        return out;
    }
    let wide = moving.iter().take(top).map(|s| s.name.len()).max().unwrap_or(0).max(9);
    let _ = writeln!(
        out,
        "{:<wide$} {:>12} {:<15} {:<10} {:>9} {:>9}",
        "parameter", "value", "unit", "confidence", "lower", "higher"
    );
    for s in moving.iter().take(top) {
        let side = |x: Option<(f64, Ps)>| x.map_or("-".to_string(), |(_, t)| format!("{:+.2}%", change(t, elapsed)));
        let _ = writeln!(
            out,
            "{:<wide$} {:>12} {:<15} {:<10} {:>9} {:>9}",
            s.name,
            s.value,
            s.unit,
            s.confidence.name(),
            side(s.low),
            side(s.high)
        );
    }
    let rest = moving.len().saturating_sub(top);
    if rest > 0 {
        let _ = writeln!(out, "... and {rest} more with a smaller effect (--top)");
    }
    let _ =
        writeln!(out, "\n{} of {} parameters have no effect on the latency.", found.len() - moving.len(), found.len());
    out
}
