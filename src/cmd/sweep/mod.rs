//! `nki-sim sweep FILE --grid NAME=V1,V2`: times every combination, or those selected by a search, fastest first.

mod grid;
pub(crate) mod pareto;
mod render;
mod search;
mod state;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

use nki_diag::{Diagnostic, FileId, Mode};
use nki_frontend::Loader as _;
use rayon::prelude::*;
use serde::Serialize;

use crate::cli::{Frontend, KernelArgs, SweepArgs};
use crate::expected::{self, Expected};
use crate::jobs::pool::cores;
use crate::kernel::{finish, no_axis, refusal, session, show};
use crate::measure::{Measured, RunRequest, measure, with_run_line};
use crate::output::{Progress, eprint, print, write_file};
use crate::places::{Inputs, check_places};
use crate::row::{self, DeniedRow, Rank, Row};
use crate::session::{Compilation, Numerics, Session};
use crate::sources::{self, Sources};
use crate::{Failure, VERSION};
use grid::{Axis, Point};
use state::State;

/// The points of a sweep. Field order is the order in the file.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    nki_sim_version: &'static str,
    file: String,
    axes: Vec<Axis>,
    /// The rows, fastest first.
    rows: Vec<Row>,
    /// Positions of the Pareto-optimal rows.
    front: Vec<usize>,
    denied: Vec<DeniedRow>,
    /// Number of rows from the state file.
    #[serde(skip)]
    kept: usize,
}

impl Table {
    fn new(args: &SweepArgs, axes: Vec<Axis>, mut rows: Vec<Row>, kept: usize) -> Self {
        row::sort(&mut rows);
        let (front, denied) = (pareto::front(&rows), row::all_denied(&rows));
        let file = args.kernel.file.display().to_string();
        Table { nki_sim_version: VERSION, file, axes, rows, front, denied, kept }
    }

    /// Whether a point ranks, and no user list denies one. Points that the defaults deny are treated like failed ones: part of any search.
    pub(crate) fn passes(&self) -> bool {
        self.denied.iter().all(|d| d.default) && self.rows.iter().any(|r| r.rank() <= Rank::DoesNotFit)
    }
}

/// Runs the sweep.
pub(crate) fn run(args: SweepArgs) -> Result<(), Failure> {
    let inputs = Inputs::of_kernel(&args.kernel).and_timing(&args.timing).and_expected(&args.expected.expect);
    let progress = Progress::new("points");
    let swept = sweep(args.clone(), None, &inputs, &|done, of, note| progress.show(done, of, note))?;
    progress.clear();
    let table = match swept {
        Ok(table) => table,
        Err(wrong) => {
            show(&wrong.applied, &wrong.compiled.sources);
            return Err(finish(&wrong.applied).err().unwrap_or(Failure::Kernel));
        }
    };
    if let Some(path) = &args.json {
        write_file(path, &[&crate::report::json(&table)?])?;
    }
    if let Some(path) = &args.csv {
        write_file(path, &[render::csv(&table.axes, &table.rows).as_bytes()])?;
    }
    if let Some(path) = &args.plot {
        write_file(path, &[pareto::svg(&table.rows).as_bytes()])?;
    }
    if table.kept > 0 {
        eprint(&format!("{} taken from the state file\n", crate::count(table.kept, "finished point")));
    }
    print(&render::text(&table.axes, &table.rows, &table.front, args.top));
    for d in &table.denied {
        eprint(&format!("denied: {} ({}) by {}\n", d.id, d.count, d.by));
    }
    if table.passes() { Ok(()) } else { Err(Failure::Kernel) }
}

/// Reports progress of a sweep: finished points, all points, and a note.
type Tell<'a> = &'a (dyn Fn(usize, usize, &str) + Sync);

/// Times all points, or those of a search. `text` is the kernel's file if it is not on disk. The inner error is an invalid file.
pub(crate) fn sweep(
    mut args: SweepArgs,
    text: Option<&str>,
    inputs: &Inputs,
    tell: Tell<'_>,
) -> Result<Result<Table, Box<Measured>>, Failure> {
    if args.kernel.frontend == Frontend::Python {
        let why = "--frontend python: a sweep changes constants in the source text, which the built-in evaluator reads; in Python, nki_sim.sweep calls the kernel";
        return Err(Failure::Call(why.into()));
    }
    args.kernel.frontend = Frontend::Builtin;
    let numerics = if args.expected.expect.is_empty() { Numerics::IfNeeded } else { Numerics::Computed };
    let mut session = session(&args.kernel, Mode::Sweep, numerics, Some(&args.timing))?;
    let path = args.kernel.file.clone();
    let sources = Sources::new(&path, text);
    let axes = match axes(&args, &session, &sources)? {
        Ok(axes) => axes,
        Err(wrong) => return Ok(Err(wrong)),
    };
    args.kernel = match with_run_line(&session, args.kernel.clone(), &sources)? {
        Ok(kernel) => kernel,
        Err(wrong) => return Ok(Err(wrong)),
    };
    // --grid overrides a run line; --arg together with --grid has been rejected.
    args.kernel.args.retain(|(name, _)| !axes.iter().any(|a| a.name == *name));
    let inputs = axes
        .iter()
        .fold(inputs.clone(), |inputs, axis| inputs.and_values(&format!("--grid {}", axis.name), &axis.values));
    check_places(&reports_of(&args), &inputs)?;
    if let Some(path) = args.plot.as_deref().filter(|p| p.extension().is_some_and(|e| !e.eq_ignore_ascii_case("svg"))) {
        let text = format!("--plot {}: a plot is an SVG file; give a name that ends in .svg", path.display());
        return Err(Failure::Call(text));
    }
    if args.search {
        let rows = search::rows(&args, &axes)?;
        return Ok(Ok(Table::new(&args, axes, rows, 0)));
    }
    let points = grid::points(&axes)?;
    let expected = expected::read(&args.expected.expect)?;
    let state = match &args.state {
        Some(path) => Some(State::open(path, &state::settings(&args, &session)?)?),
        None => None,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.jobs.map_or_else(cores, |n| n as usize).min(points.len().max(1)))
        .build()
        .map_err(|e| format!("cannot start the threads: {e}"))?;
    // Concurrent points share the memory limit.
    session.memory = session.memory.shared_by(pool.current_num_threads());
    let seen: Mutex<(usize, f64)> = Mutex::new((0, f64::INFINITY));
    let told = |row: &Row| {
        let Ok(mut seen) = seen.lock() else { return };
        seen.0 += 1;
        seen.1 = row.latency_us.filter(|_| row.rank() == Rank::Good).unwrap_or(f64::INFINITY).min(seen.1);
        let note = if seen.1.is_finite() { format!("(best {:.2} us)", seen.1) } else { String::new() };
        tell(seen.0, points.len(), &note);
    };
    let results: Vec<Result<(Row, bool), Failure>> = pool.install(|| {
        points
            .par_iter()
            .map(|point| {
                let (row, old) = one(&args, &session, &axes, text, &expected, point, state.as_ref())?;
                told(&row);
                Ok((row, old))
            })
            .collect()
    });
    let results: Vec<(Row, bool)> = results.into_iter().collect::<Result<_, _>>()?;
    let kept = results.iter().filter(|r| r.1).count();
    let rows = results.into_iter().map(|r| r.0).collect();
    Ok(Ok(Table::new(&args, axes, rows, kept)))
}

/// The report files of the command.
fn reports_of(args: &SweepArgs) -> [(&'static str, Option<&Path>); 4] {
    [
        ("--state", args.state.as_deref()),
        ("--json", args.json.as_deref()),
        ("--csv", args.csv.as_deref()),
        ("--plot", args.plot.as_deref()),
    ]
}

/// The axes: each is a parameter of the kernel, or else a top-level constant of the file.
fn axes(
    args: &SweepArgs,
    session: &Session,
    sources: &Sources<'_>,
) -> Result<Result<Vec<Axis>, Box<Measured>>, Failure> {
    let file = &args.kernel.file;
    if file.extension().is_some_and(|e| e == "nkir") {
        return Err(Failure::Call(format!(
            "`{}` is a lowered kernel: its arguments are fixed; sweep the Python source",
            file.display()
        )));
    }
    if let Some(what) = crate::other_file::describe(file) {
        return Err(Failure::Call(what));
    }
    let text = sources.read(file).map_err(|e| format!("cannot read `{}`: {e}", file.display()))?;
    let listing = nki_frontend::kernels(file, sources, args.kernel.kernel.as_deref(), session.memory);
    check_places(&reports_of(args), &Inputs::of_sources(&listing.sources))?;
    if listing.diagnostics.iter().any(Diagnostic::is_error) {
        let target = crate::settings::target(args.kernel.target)?;
        let wrong = Compilation { sources: listing.sources, ..Compilation::wrong(target, listing.diagnostics) };
        return Ok(Err(Box::new(Measured::wrong(session, Vec::new(), wrong, Vec::new()))));
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
        if constant && !sources::has_constant(&text, name).map_err(|e| Failure::Call(format!("--grid {e}")))? {
            return Err(Failure::Call(format!("--grid {}", no_axis(name, kernel, file, &text))));
        }
        let mut values = grid::split(values).map_err(|e| format!("--grid {name}: {e}"))?;
        // Duplicate values are one point.
        let mut seen = BTreeSet::new();
        values.retain(|v| seen.insert(v.trim().to_owned()));
        if !constant {
            for v in &values {
                crate::value::parse(v).map_err(|e| Failure::Call(format!("--grid {name}={v}: {e}")))?;
            }
        }
        out.push(Axis { name: name.clone(), values, constant });
    }
    Ok(Ok(out))
}

/// One point: from the state file, or timed.
fn one(
    args: &SweepArgs,
    session: &Session,
    axes: &[Axis],
    text: Option<&str>,
    expected: &[Expected],
    point: &Point,
    state: Option<&State>,
) -> Result<(Row, bool), Failure> {
    let named: Vec<(String, String)> = axes.iter().zip(point).map(|(a, v)| (a.name.clone(), v.clone())).collect();
    if let Some(row) = state.and_then(|s| s.finished(&named)) {
        return Ok((row, true));
    }
    let mut kernel: KernelArgs = args.kernel.clone();
    let mut sources = Sources::new(&args.kernel.file, text);
    for (axis, value) in axes.iter().zip(point) {
        if axis.constant {
            sources.set(&axis.name, value);
        } else {
            kernel.args.retain(|(n, _)| *n != axis.name);
            kernel.args.push((axis.name.clone(), value.clone()));
        }
    }
    let tolerances = args.expected.tolerances();
    let wanted = RunRequest { expected, tolerances, inspect: &|_| Ok(()) };
    let Measured { compiled, row, .. } = measure("sweep", session, &kernel, &sources, named.clone(), &wanted)?;
    if let Some(state) = state {
        let sources = &compiled.sources;
        let files: Vec<String> = (0..sources.len() as u32).map(|i| sources.path(FileId(i)).to_string()).collect();
        state.add(&named, &files, &row)?;
    }
    Ok((row, false))
}
