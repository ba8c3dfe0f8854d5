//! A run as the Parquet tables of Neuron Explorer's profile schema, for scripts that query hardware profiles.
//!
//! Every table that the simulator can fill is written, even if empty, so that a directory never mixes two runs. Times are whole nanoseconds from
//! the start of the kernel.

mod instructions;
mod machine;
pub(crate) mod read;
mod schema;
mod source;
mod summary;
mod table;
mod traffic;
mod transfers;
mod usage;

use std::path::{Path, PathBuf};

use nki_diag::JsonDiagnostic;
use nki_sim_core::analysis::Analysis;
use nki_sim_core::report;
use nki_sim_core::timeline::{Ps, RowKind, Timeline};

use crate::output::write_file;
use crate::places::Inputs;
use crate::session::Kernel;
use table::{floats, ints, some_texts, texts};
use transfers::Transfer;

/// A completed run.
pub(crate) struct Run<'a> {
    /// The kernel.
    pub(crate) kernel: &'a Kernel,
    /// The analysis of the run.
    pub(crate) analysis: &'a Analysis<'a>,
    /// The findings.
    pub(crate) findings: &'a [JsonDiagnostic],
}

/// The page of a table, of a column `Table.column`, or of all columns with a name.
pub(crate) fn explain(name: &str) -> Option<String> {
    let (table, column) = match name.split_once('.') {
        Some((table, column)) => (Some(table), Some(column)),
        None => (None, None),
    };
    let mut out = format!("# {name}\n\n");
    let empty = out.len();
    let kind = |c: &schema::Column| format!("{:?}", c.kind).to_lowercase();
    for t in schema::ALL {
        let whole = t.name == name;
        if whole {
            out += &format!("Table of `run --parquet`. {}\n\n", t.about);
        }
        let fits = |c: &&schema::Column| {
            whole || column.map_or(c.name == name, |column| c.name == column && table == Some(t.name))
        };
        for c in t.columns.iter().filter(fits) {
            let unit = if c.unit.is_empty() { String::new() } else { format!(", {}", c.unit) };
            let about = c.about.unwrap_or("Null in a simulated profile.");
            out += &format!("{}.{} ({}{unit}): {about}\n", t.name, c.name, kind(c));
        }
    }
    (out.len() > empty).then_some(out)
}

/// The names of all tables and columns.
pub(crate) fn names() -> Vec<String> {
    let columns = |t: &schema::Table| t.columns.iter().map(|c| format!("{}.{}", t.name, c.name)).collect::<Vec<_>>();
    schema::ALL.iter().flat_map(|t| columns(t).into_iter().chain([t.name.to_owned()])).collect()
}

/// Data shared by several tables.
struct Profile<'a> {
    run: &'a Run<'a>,
    timeline: &'a Timeline,
    /// Texts of the operands, by core and statement.
    operands: Vec<Vec<String>>,
    /// The transfers, in the order of their events.
    transfers: Vec<Transfer<'a>>,
    /// By event: its position in `transfers`.
    transfer_of: Vec<Option<u32>>,
}

/// Checks that no table of the directory is one of the command's input files.
///
/// # Errors
/// If one is.
pub(crate) fn check_inputs(directory: &Path, inputs: &Inputs) -> Result<(), String> {
    files(directory).try_for_each(|path| inputs.check("--parquet", &path))
}

/// The files of a profile in a directory.
pub(crate) fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    schema::ALL.iter().map(|table| path(directory, table.name))
}

fn path(directory: &Path, table: &str) -> PathBuf {
    directory.join(format!("{table}.parquet"))
}

/// Writes the tables of a run to a directory, which is created if necessary.
///
/// # Errors
/// If the directory contains a profile that is not simulated, or a file cannot be written.
pub(crate) fn write(directory: &Path, run: &Run<'_>) -> Result<(), String> {
    check(directory)?;
    // All tables are built before the first is written.
    let tables = tables(run)?;
    std::fs::create_dir_all(directory).map_err(|e| format!("cannot make directory `{}`: {e}", directory.display()))?;
    tables.iter().try_for_each(|(name, bytes)| write_file(&path(directory, name), &[bytes]))
}

/// Checks that writing a profile to this directory does not mix it with another: existing tables must be those of a simulated profile.
///
/// # Errors
/// If they are not.
pub(crate) fn check(directory: &Path) -> Result<(), String> {
    let Ok(files) = std::fs::read_dir(directory) else { return Ok(()) };
    let is_table = |path: &Path| path.extension().is_some_and(|e| e == "parquet");
    let names: Vec<_> = files.flatten().map(|f| f.path()).filter(|p| is_table(p)).collect();
    let ours = |path: &Path| schema::ALL.iter().any(|table| path.file_stem().is_some_and(|stem| stem == table.name));
    match names.iter().find(|path| !ours(path)) {
        Some(foreign) => Err(format!(
            "--parquet {}: the directory holds {}, which nki-sim does not write; give another directory",
            directory.display(),
            foreign.file_name().unwrap_or_default().display()
        )),
        None if !names.is_empty() && !summary::is_simulated(directory) => Err(format!(
            "--parquet {}: the directory holds a profile that is not simulated; give another directory",
            directory.display()
        )),
        None => Ok(()),
    }
}

/// Name and file of each table.
fn tables(run: &Run<'_>) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    let timeline = run.analysis.timeline;
    let transfers = transfers::all(run);
    let mut transfer_of = vec![None; timeline.events.len()];
    for (i, transfer) in transfers.iter().enumerate() {
        transfer_of[transfer.event] = Some(i as u32);
    }
    let operands = report::all_operands(run.analysis.program);
    let p = Profile { run, timeline, operands, transfers, transfer_of };
    Ok(vec![
        (schema::ACTIVE_TIME.name, active_time(&p)?),
        (schema::CC_OP.name, traffic::collectives(&p)?),
        (schema::CORE_BARRIERS.name, traffic::barriers(&p)?),
        (schema::DMA_PACKET.name, transfers::packets(&p)?),
        (schema::DMA_PACKET_AGGREGATED.name, transfers::aggregated(&p)?),
        (schema::DMA_QUEUES_INFO.name, machine::queues(&p)?),
        (schema::DMA_USAGE.name, traffic::dma(&p)?),
        (schema::EXECUTION_INFO.name, machine::execution(&p)?),
        (schema::FLOW.name, instructions::flow(&p)?),
        (schema::HBM_USAGE.name, traffic::hbm(&p)?),
        (schema::INSTRUCTION.name, instructions::instructions(&p)?),
        (schema::KERNEL_INSTRUCTIONS.name, source::statements(&p)?),
        (schema::KERNEL_ITERATION_VARIABLES.name, source::iterations(&p)?),
        (schema::KERNEL_STACK_FRAMES.name, source::frames(&p)?),
        (schema::METADATA.name, summary::metadata(&p)?),
        (schema::NEFF_HEADER.name, machine::neff(&p)?),
        (schema::OPCODE_SUMMARY.name, instructions::opcodes(&p)?),
        (schema::PENDING_DMA.name, traffic::pending(&p)?),
        (schema::PSUM_USAGE.name, usage::psum(&p)?),
        (schema::SBUF_ALLOCATION.name, usage::allocations(&p)?),
        (schema::SBUF_USAGE.name, usage::sbuf(&p)?),
        (schema::SCHEMA_FIELDS.name, schema_fields()?),
        (schema::SEMAPHORE_UPDATE.name, machine::semaphores(&p)?),
        (schema::SUMMARY.name, summary::summary(&p)?),
        (schema::TENSOR_INFO.name, transfers::tensors(&p)?),
        (schema::THROTTLE.name, machine::throttle(&p)?),
        (schema::THROTTLE_SUMMARY.name, machine::throttle_summary(&p)?),
        (schema::WARNING.name, warnings(run.findings)?),
    ])
}

/// Whole nanoseconds.
fn ns(time: Ps) -> u64 {
    (time + 500) / 1000
}

/// The engine of a row, as named in table Instruction.
fn engine(timeline: &Timeline, row: nki_sim_core::timeline::RowId) -> &'static str {
    use nki_isa::Engine;
    match timeline.rows[row.0 as usize].kind {
        RowKind::Engine(Engine::Tensor) | RowKind::DmaQueue(Engine::Tensor) => "Tensor",
        RowKind::Engine(Engine::Vector) | RowKind::DmaQueue(Engine::Vector) => "Vector",
        RowKind::Engine(Engine::Scalar) | RowKind::DmaQueue(Engine::Scalar) => "Scalar",
        RowKind::Engine(Engine::GpSimd) | RowKind::DmaQueue(Engine::GpSimd) => "GpSimd",
        _ => "Sync",
    }
}

/// Merges touching or overlapping intervals, sorted by start.
fn union(mut intervals: Vec<(Ps, Ps)>) -> Vec<(Ps, Ps)> {
    intervals.sort_unstable();
    let mut out: Vec<(Ps, Ps)> = Vec::new();
    for (start, end) in intervals.into_iter().filter(|(start, end)| start < end) {
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}

/// Time covered by intervals.
fn covered(intervals: Vec<(Ps, Ps)>) -> Ps {
    union(intervals).iter().map(|(start, end)| end - start).sum()
}

/// The intervals in which a row is busy.
fn active(row: &nki_sim_core::timeline::Row) -> Vec<(Ps, Ps)> {
    use nki_sim_core::timeline::{Cause, State};
    let works = |state| matches!(state, State::Busy(_) | State::Stalled(Cause::Limiter));
    union(row.spans.iter().filter(|s| works(s.state)).map(|s| (s.start, s.end)).collect())
}

fn active_time(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let engines = p.timeline.rows.iter().filter(|r| matches!(r.kind, RowKind::Engine(_)));
    let rows: Vec<_> = engines.flat_map(|row| active(row).into_iter().map(move |span| (row, span))).collect();
    table::write(&schema::ACTIVE_TIME, rows.len(), |column| {
        Some(match column {
            "start_ts" => ints(rows.iter().map(|r| ns(r.1.0))),
            "end_ts" => ints(rows.iter().map(|r| ns(r.1.1))),
            "engine" => texts(rows.iter().map(|r| r.0.kind.name())),
            "pcore_idx" => ints(rows.iter().map(|r| r.0.core)),
            "duration_ns" => ints(rows.iter().map(|r| ns(r.1.1) - ns(r.1.0))),
            _ => return None,
        })
    })
}

fn warnings(findings: &[JsonDiagnostic]) -> Result<Vec<u8>, String> {
    let place = |d: &JsonDiagnostic| match (&d.file, d.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        _ => String::new(),
    };
    table::write(&schema::WARNING, findings.len(), |column| {
        Some(match column {
            "message" => texts(findings.iter().map(|d| format!("{}{}", d.message, place(d)))),
            "category" => texts(findings.iter().map(|d| d.id)),
            _ => return None,
        })
    })
}

fn schema_fields() -> Result<Vec<u8>, String> {
    use schema::Kind;
    let rows: Vec<_> = schema::ALL.iter().flat_map(|t| t.columns.iter().map(move |c| (*t, c))).collect();
    let kind = |kind: Kind| match kind {
        Kind::Int32 => ("integer", Some("int32")),
        Kind::Int64 => ("integer", Some("int64")),
        Kind::Float => ("number", Some("double")),
        Kind::Text => ("string", None),
        Kind::Bool => ("boolean", None),
    };
    table::write(&schema::SCHEMA_FIELDS, rows.len(), |column| {
        Some(match column {
            "table_name" => texts(rows.iter().map(|r| r.0.name)),
            "table_description" => texts(rows.iter().map(|r| r.0.about)),
            "field_name" => texts(rows.iter().map(|r| r.1.name)),
            "field_description" => texts(rows.iter().map(|r| r.1.about.unwrap_or("Null in a simulated profile."))),
            "field_type" => texts(rows.iter().map(|r| kind(r.1.kind).0)),
            "field_required" => table::bools(rows.iter().map(|r| r.1.required)),
            "field_format" => some_texts(rows.iter().map(|r| kind(r.1.kind).1)),
            "field_unit" => some_texts(rows.iter().map(|r| Some(r.1.unit).filter(|u| !u.is_empty()))),
            _ => return None,
        })
    })
}

/// The share of a part in a whole, in percent.
fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part * 100.0 / whole } else { 0.0 }
}

/// A single row of numbers by name.
fn numbers(table: &schema::Table, mut number: impl FnMut(&'static str) -> Option<f64>) -> Result<Vec<u8>, String> {
    let kind = |name: &str| table.columns.iter().find(|c| c.name == name).map(|c| c.kind);
    table::write(table, 1, |column| {
        let x = number(column)?;
        Some(match kind(column)? {
            schema::Kind::Float => floats(std::iter::once(x)),
            _ => ints(std::iter::once(x as i64)),
        })
    })
}
