//! `nki-sim sweep FILE --grid NAME=V1,V2`: times every combination, fastest first.

mod grid;
mod render;
mod state;

use std::path::Path;
use std::sync::Mutex;

use nki_diag::{Diagnostic, FileId, Mode};
use rayon::prelude::*;
use serde::Serialize;

use crate::cli::{Frontend, KernelArgs, SweepArgs};
use crate::expected::{self, Expected, Tolerances};
use crate::kernel::{Disk, Sink, add_run_line, conclude, finish, refusal, session};
use crate::measure::{Measured, Wanted, measure};
use crate::output::{Progress, eprint, print, write_file};
use crate::places::{Inputs, check_places};
use crate::row::{self, DeniedHere, Row};
use crate::session::{Numerics, Session};
use crate::sources::{self, Sources};
use crate::{Failure, VERSION};
use grid::{Axis, Point};
use state::State;

#[derive(Debug, Serialize)]
struct Table<'a> {
    nki_sim_version: &'static str,
    file: String,
    axes: Vec<&'a Axis>,
    rows: &'a [Row],
    denied: &'a [DeniedHere],
}

/// Runs the sweep.
pub(crate) fn run(mut args: SweepArgs) -> Result<(), Failure> {
    if args.kernel.frontend == Frontend::Python {
        let why = "--frontend python: a sweep changes constants in the source text, which the built-in evaluator reads; in Python, nki_sim.sweep calls the kernel";
        return Err(Failure::Call(why.into()));
    }
    args.kernel.frontend = Frontend::Builtin;
    let numerics = if args.expect.is_empty() { Numerics::IfNeeded } else { Numerics::Computed };
    let mut session = session(&args.kernel, Mode::Sweep, numerics, Some(&args.timing))?;
    let axes = axes(&args, &session)?;
    add_run_line(&session, &mut args.kernel, Sink::default())?;
    // --grid replaces what a run line says; --arg beside it was refused.
    args.kernel.args.retain(|(name, _)| !axes.iter().any(|a| a.name == *name));
    check_places(
        &reports_of(&args),
        &Inputs::of_kernel(&args.kernel).and_timing(&args.timing).and_expected(&args.expect),
    )?;
    let points = grid::points(&axes)?;
    let expected = expected::read(&args.expect)?;
    let state = match &args.state {
        Some(path) => Some(State::open(path)?),
        None => None,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.jobs.map_or(0, |n| n as usize))
        .build()
        .map_err(|e| format!("cannot start the threads: {e}"))?;
    // Points that run at the same time share the memory.
    session.memory = session.memory.shared_by(pool.current_num_threads());
    let progress = Progress::new("points");
    let seen: Mutex<(usize, f64)> = Mutex::new((0, f64::INFINITY));
    let tell = |row: &Row| {
        let Ok(mut seen) = seen.lock() else { return };
        seen.0 += 1;
        seen.1 = row.latency_us.filter(|_| row.rank() == 0).unwrap_or(f64::INFINITY).min(seen.1);
        let note = if seen.1.is_finite() { format!("(best {:.2} us)", seen.1) } else { String::new() };
        progress.show(seen.0, points.len(), &note);
    };
    let results: Vec<Result<(Row, bool), Failure>> = pool.install(|| {
        points
            .par_iter()
            .map(|point| {
                let (row, old) = one(&args, &session, &axes, &expected, point, state.as_ref())?;
                tell(&row);
                Ok((row, old))
            })
            .collect()
    });
    progress.clear();
    let results: Vec<(Row, bool)> = results.into_iter().collect::<Result<_, _>>()?;
    let kept = results.iter().filter(|r| r.1).count();
    let mut rows: Vec<Row> = results.into_iter().map(|r| r.0).collect();
    row::sort(&mut rows);
    let denied = row::all_denied(&rows);
    if let Some(path) = &args.json {
        let table = Table {
            nki_sim_version: VERSION,
            file: args.kernel.file.display().to_string(),
            axes: axes.iter().collect(),
            rows: &rows,
            denied: &denied,
        };
        write_file(path, &[&crate::report::json(&table)?])?;
    }
    if let Some(path) = &args.csv {
        write_file(path, &[render::csv(&axes, &rows).as_bytes()])?;
    }
    if kept > 0 {
        eprint(&format!("{} taken from the state file\n", crate::count(kept, "finished point")));
    }
    print(&render::text(&axes, &rows, args.top));
    for d in &denied {
        eprint(&format!("denied: {} ({}) by {}\n", d.id, d.count, d.by));
    }
    // Points that the defaults deny are like those that fail: part of any search. A list of the user is meant to fail the call.
    let chosen = denied.iter().any(|d| !d.default);
    if !chosen && rows.iter().any(|r| r.rank() < 2) { Ok(()) } else { Err(Failure::Kernel) }
}

/// The files that are written.
fn reports_of(args: &SweepArgs) -> [(&'static str, Option<&Path>); 3] {
    [("--state", args.state.as_deref()), ("--json", args.json.as_deref()), ("--csv", args.csv.as_deref())]
}

/// The axes: each is a parameter of the kernel, or else a constant at the top of the file.
fn axes(args: &SweepArgs, session: &Session) -> Result<Vec<Axis>, Failure> {
    let file = &args.kernel.file;
    if file.extension().is_some_and(|e| e == "nkir") {
        return Err(Failure::Call(format!(
            "`{}` is a lowered kernel: its arguments are fixed; sweep the Python source",
            file.display()
        )));
    }
    let text = std::fs::read_to_string(file).map_err(|e| format!("cannot read `{}`: {e}", file.display()))?;
    let listing = nki_frontend::kernels(file, &Disk, session.memory);
    check_places(&reports_of(args), &Inputs::of_sources(&listing.sources))?;
    if listing.diagnostics.iter().any(Diagnostic::is_error) {
        let applied = conclude(session, listing.diagnostics, &listing.sources);
        return Err(finish(&applied).err().unwrap_or(Failure::Kernel));
    }
    let kernel = listing.choose(args.kernel.kernel.as_deref()).map_err(|r| refusal("sweep", &args.kernel, r))?;
    let mut out: Vec<Axis> = Vec::new();
    for (name, values) in &args.grid {
        if out.iter().any(|a| a.name == *name) {
            return Err(Failure::Call(format!("--grid {name} is given twice; list all values in one")));
        }
        if args.kernel.args.iter().any(|(a, _)| a == name) {
            return Err(Failure::Call(format!("{name} is given with --arg and with --grid; --grid alone sets it")));
        }
        let constant = !kernel.params.iter().any(|p| p.name == *name);
        if constant && sources::constant_line(&text, name).is_none() {
            let params: Vec<&str> = kernel.params.iter().map(|p| p.name.as_str()).collect();
            return Err(Failure::Call(format!(
                "--grid {name}: neither a parameter of kernel `{}` ({}) nor a constant assigned in one line at the top level of `{}`",
                kernel.name,
                params.join(", "),
                file.display()
            )));
        }
        let values = grid::split(values).map_err(|e| format!("--grid {name}: {e}"))?;
        if !constant {
            for v in &values {
                crate::value::parse(v).map_err(|e| Failure::Call(format!("--grid {name}={v}: {e}")))?;
            }
        }
        out.push(Axis { name: name.clone(), values, constant });
    }
    Ok(out)
}

/// One point: from the state file, or timed.
fn one(
    args: &SweepArgs,
    session: &Session,
    axes: &[Axis],
    expected: &[Expected],
    point: &Point,
    state: Option<&State>,
) -> Result<(Row, bool), Failure> {
    let named: Vec<(String, String)> = axes.iter().zip(point).map(|(a, v)| (a.name.clone(), v.clone())).collect();
    let key = state::key(args, session, &named)?;
    if let Some(row) = state.and_then(|s| s.finished(&key)) {
        return Ok((row, true));
    }
    let mut kernel: KernelArgs = args.kernel.clone();
    let mut sources = Sources::new(&args.kernel.file, None);
    for (axis, value) in axes.iter().zip(point) {
        if axis.constant {
            sources.set(&axis.name, value);
        } else {
            kernel.args.retain(|(n, _)| *n != axis.name);
            kernel.args.push((axis.name.clone(), value.clone()));
        }
    }
    let tolerances = Tolerances { rtol: args.rtol, atol: args.atol };
    let wanted = Wanted { expected, tolerances, inspect: &|_| Ok(()) };
    let Measured { compiled, row, .. } = measure("sweep", session, &kernel, &sources, named, &wanted)?;
    if let Some(state) = state {
        let sources = &compiled.sources;
        let files: Vec<String> = (0..sources.len() as u32).map(|i| sources.path(FileId(i)).to_string()).collect();
        state.add(&key, &files, &row)?;
    }
    Ok((row, false))
}
