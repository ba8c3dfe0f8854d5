//! `nki-sim sweep FILE --grid NAME=V1,V2`: every combination timed, best first.

mod grid;
mod state;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

use nki_diag::to_json;
use nki_frontend::{HostArray, Loader};
use nki_sim_core::analysis::{critical_path, verdict};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::cli::{KernelArgs, SweepArgs};
use crate::kernel::{Disk, choose, prepare_with};
use crate::output::{Progress, check_places, eprint, print, write_file};
use crate::timed::{Stop, time};
use grid::{Axis, Point};
use state::State;

/// What came of one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The values, by axis.
    pub(crate) point: Vec<(String, String)>,
    /// The latency; `None` where the kernel is wrong.
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
    /// Why the point failed: the first diagnostic.
    pub(crate) error: Option<String>,
}

/// Follows what bounds a point whose latency is not valid.
const NOT_VALID: &str = " (latency not valid: does not fit into SBUF or PSUM)";

/// Points of older state files fit.
fn valid() -> bool {
    true
}

#[derive(Debug, Serialize)]
struct Table<'a> {
    file: String,
    axes: Vec<&'a Axis>,
    rows: &'a [Row],
}

/// Runs the sweep.
pub(crate) fn run(args: &SweepArgs) -> Result<(), Failure> {
    check_places(&[
        ("--state", args.state.as_deref()),
        ("--json", args.json.as_deref()),
        ("--csv", args.csv.as_deref()),
    ])?;
    let axes = axes(args)?;
    let points = grid::points(&axes)?;
    let state = match &args.state {
        Some(path) => Some(State::open(path)?),
        None => None,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.jobs.map_or(0, |n| n as usize))
        .build()
        .map_err(|e| format!("cannot start the threads: {e}"))?;
    let progress = Progress::new("points");
    let seen: Mutex<(usize, f64)> = Mutex::new((0, f64::INFINITY));
    let tell = |row: &Row| {
        let Ok(mut seen) = seen.lock() else { return };
        seen.0 += 1;
        seen.1 = row.latency_us.filter(|_| row.latency_valid).unwrap_or(f64::INFINITY).min(seen.1);
        let note = if seen.1.is_finite() { format!("(best {:.2} us)", seen.1) } else { String::new() };
        progress.show(seen.0, points.len(), &note);
    };
    let results: Vec<Result<(Row, bool), Failure>> = pool.install(|| {
        points
            .par_iter()
            .map(|point| {
                let (row, old) = one(args, &axes, point, state.as_ref())?;
                tell(&row);
                Ok((row, old))
            })
            .collect()
    });
    progress.clear();
    let results: Vec<(Row, bool)> = results.into_iter().collect::<Result<_, _>>()?;
    let kept = results.iter().filter(|r| r.1).count();
    let mut rows: Vec<Row> = results.into_iter().map(|r| r.0).collect();
    // Stable: equal latencies stay in the order of the grid; points that do not fit come after those that do, failed ones last.
    let rank = |r: &Row| (r.latency_us.is_none(), !r.latency_valid);
    let time = |r: &Row| r.latency_us.unwrap_or(f64::INFINITY);
    rows.sort_by(|a, b| rank(a).cmp(&rank(b)).then(time(a).total_cmp(&time(b))));
    if let Some(path) = &args.json {
        let table = Table { file: args.kernel.file.display().to_string(), axes: axes.iter().collect(), rows: &rows };
        write_file(path, &[&crate::report::json(&table)?])?;
    }
    if let Some(path) = &args.csv {
        write_file(path, &[csv(&axes, &rows).as_bytes()])?;
    }
    if kept > 0 {
        eprint(&format!("{} taken from the state file\n", crate::count(kept, "finished point")));
    }
    print(&text(&axes, &rows, args.top));
    if rows.iter().any(|r| r.latency_us.is_some()) { Ok(()) } else { Err(Failure::Kernel) }
}

/// The axes: each is a parameter of the kernel, or else a constant at the top of the file.
fn axes(args: &SweepArgs) -> Result<Vec<Axis>, Failure> {
    let file = &args.kernel.file;
    if file.extension().is_some_and(|e| e == "nkir") {
        return Err(Failure::Call(format!(
            "`{}` is a lowered kernel: its arguments are fixed; sweep the Python source",
            file.display()
        )));
    }
    let text = std::fs::read_to_string(file).map_err(|e| format!("cannot read `{}`: {e}", file.display()))?;
    let memory = crate::memory::limit(args.kernel.max_memory.as_deref())?;
    let listing = nki_frontend::kernels_within(file, &Disk, memory);
    if crate::kernel::any_error(&listing.diagnostics) {
        eprint(&nki_diag::render_all(&listing.diagnostics, &listing.sources, crate::output::color()));
        return Err(Failure::Kernel);
    }
    let kernel = choose(&args.kernel, &listing.kernels)?;
    let mut out: Vec<Axis> = Vec::new();
    for (name, values) in &args.grid {
        if out.iter().any(|a| a.name == *name) {
            return Err(Failure::Call(format!("--grid {name} is given twice; list all values in one")));
        }
        if args.kernel.args.iter().any(|(a, _)| a == name) {
            return Err(Failure::Call(format!("{name} is given with --arg and with --grid; --grid alone sets it")));
        }
        let constant = !kernel.params.iter().any(|p| p.name == *name);
        if constant && grid::constant_line(&text, name).is_none() {
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

/// Reads from disk; the kernel's file with other constants.
struct Changed<'a> {
    file: &'a Path,
    constants: Vec<(&'a str, &'a str)>,
}

impl Loader for Changed<'_> {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        let mut text = std::fs::read_to_string(path)?;
        if path == self.file {
            for (name, value) in &self.constants {
                text = grid::with_constant(&text, name, value);
            }
        }
        Ok(text)
    }

    fn array(&self, path: &Path) -> Result<HostArray, String> {
        Disk.array(path)
    }
}

/// One point: from the state file, or timed.
fn one(args: &SweepArgs, axes: &[Axis], point: &Point, state: Option<&State>) -> Result<(Row, bool), Failure> {
    let named: Vec<(String, String)> = axes.iter().zip(point).map(|(a, v)| (a.name.clone(), v.clone())).collect();
    let key = state::key(args, &named);
    if let Some(row) = state.and_then(|s| s.finished(&key)) {
        return Ok((row, true));
    }
    let mut kernel: KernelArgs = args.kernel.clone();
    let mut loader = Changed { file: &args.kernel.file, constants: Vec::new() };
    for (axis, value) in axes.iter().zip(point) {
        if axis.constant {
            loader.constants.push((&axis.name, value));
        } else {
            kernel.args.retain(|(n, _)| *n != axis.name);
            kernel.args.push((axis.name.clone(), value.clone()));
        }
    }
    let mut prepared = prepare_with("sweep", &kernel, &loader, rayon::current_num_threads())?;
    let files: Vec<String> =
        (0..prepared.sources.len() as u32).map(|i| prepared.sources.path(nki_diag::FileId(i)).to_string()).collect();
    let mut row = Row {
        point: named,
        latency_us: None,
        latency_valid: true,
        bound: String::new(),
        dma_bytes: 0,
        dma_transfers: 0,
        sbuf_peak_bytes_per_partition: 0,
        psum_peak_banks: 0,
        error: None,
    };
    match time(&mut prepared, &args.timing, args.kernel.max_steps)? {
        Ok(timed) => {
            let t = &timed.timeline;
            row.latency_us = Some(t.elapsed as f64 / 1e6);
            row.latency_valid = !t.over_capacity;
            row.bound = verdict(t, &critical_path(t)).sentence;
            (row.dma_bytes, row.dma_transfers) = (t.dma.bytes, t.dma.transfers);
            row.sbuf_peak_bytes_per_partition = timed.placement.sbuf_peak_bytes;
            row.psum_peak_banks = timed.placement.psum_peak_banks;
        }
        Err(Stop(findings)) => {
            let first = findings.iter().find(|d| d.is_error()).or(findings.first());
            row.error = Some(first.map_or_else(
                || "no program".to_string(),
                |d| {
                    let j = to_json(d, &prepared.sources);
                    let at = match (&j.file, j.line) {
                        (Some(file), Some(line)) => format!(" ({file}:{line})"),
                        _ => String::new(),
                    };
                    format!("[{}] {}{at}", j.id, j.message)
                },
            ));
        }
    }
    if let Some(state) = state {
        state.add(&key, &files, &row)?;
    }
    Ok((row, false))
}

fn text(axes: &[Axis], rows: &[Row], top: usize) -> String {
    let mut heads: Vec<String> = axes.iter().map(|a| a.name.clone()).collect();
    heads.extend(["latency us", "of best", "DMA bytes", "SBUF peak", "bound"].map(String::from));
    let good: Vec<&Row> = rows.iter().filter(|r| r.latency_us.is_some()).collect();
    let best = good.first().and_then(|r| r.latency_us).unwrap_or(0.0);
    let mut lines = vec![heads];
    for r in good.iter().take(top) {
        let latency = r.latency_us.unwrap_or(0.0);
        let mut cells: Vec<String> = r.point.iter().map(|p| p.1.clone()).collect();
        cells.extend([
            format!("{latency:.2}"),
            format!("{:.3}x", latency / best.max(f64::MIN_POSITIVE)),
            r.dma_bytes.to_string(),
            r.sbuf_peak_bytes_per_partition.to_string(),
            r.bound.split(':').next().unwrap_or_default().to_string() + if r.latency_valid { "" } else { NOT_VALID },
        ]);
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
    let failed: Vec<&Row> = rows.iter().filter(|r| r.error.is_some()).collect();
    if !failed.is_empty() {
        let _ = writeln!(out, "\n{} failed:", crate::count(failed.len(), "point"));
    }
    for r in failed {
        let point: Vec<String> = r.point.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let _ = writeln!(out, "  {}: {}", point.join(" "), r.error.as_deref().unwrap_or_default());
    }
    out
}

fn csv(axes: &[Axis], rows: &[Row]) -> String {
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
            "error",
        ]
        .map(String::from),
    );
    let mut out = heads.join(",") + "\n";
    for r in rows {
        let mut cells: Vec<String> = r.point.iter().map(|p| quoted(&p.1)).collect();
        cells.extend([
            r.latency_us.map_or_else(String::new, |x| x.to_string()),
            r.latency_us.map_or_else(String::new, |_| r.latency_valid.to_string()),
            quoted(&r.bound),
            r.dma_bytes.to_string(),
            r.dma_transfers.to_string(),
            r.sbuf_peak_bytes_per_partition.to_string(),
            r.psum_peak_banks.to_string(),
            quoted(r.error.as_deref().unwrap_or_default()),
        ]);
        out += &(cells.join(",") + "\n");
    }
    out
}
