//! Tables with one row: Summary and Metadata.

use std::path::Path;

use nki_isa::{Arch, Engine};
use nki_sim_core::report;
use nki_sim_core::timeline::{Ps, RowKind};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::RowAccessor as _;

use super::table::{self, Values, bools, floats, ints, texts};
use super::{Profile, active, covered, ns, numbers, percent, schema, traffic, transfers};
use crate::VERSION;

/// Common prefix of NKI's activation instructions.
const ACTIVATION: &str = "activat";

fn seconds(time: Ps) -> f64 {
    time as f64 / 1e12
}

/// Table Summary.
pub(super) fn summary(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let (t, a) = (p.timeline, p.run.analysis);
    let known = report::summary_columns(a, &p.run.kernel.changes);
    let elapsed = t.elapsed as f64;
    let (mut starts, mut ends) = (Ps::MAX, 0);
    for e in &t.events {
        starts = starts.min(e.start);
        ends = ends.max(e.complete);
    }
    let clock = p.run.kernel.params.vector.clock_ghz.value;
    let moves = |wanted: &dyn Fn(&str) -> bool| {
        covered(p.transfers.iter().filter(|x| wanted(x.queue_type)).map(|x| (x.start, x.end)).collect())
    };
    let all_active = || {
        let engines = t.rows.iter().filter(|r| matches!(r.kind, RowKind::Engine(_))).flat_map(active);
        covered(engines.chain(p.transfers.iter().map(|x| (x.start, x.end))).collect())
    };
    let psum_to_sbuf: Vec<u64> = t
        .events
        .iter()
        .map(|e| a.counters(e))
        .filter(|c| c.psum_read > 0 && c.sbuf_write > 0)
        .map(|c| c.psum_read)
        .collect();
    let adjusted_transposes = || -> u64 {
        let of = |e| a.counters(e);
        t.events.iter().map(of).filter(|c| c.transpose_flops > 0).map(|c| c.adjusted_flops_x2 / 2).sum()
    };
    let collectives = traffic::collective_spans(p);
    let activations = || t.events.iter().filter(|e| e.origin.label.starts_with(ACTIVATION));
    let queue_bytes = |kind: &str| transfers::packets_of(p, |queue_type| queue_type == kind).1 as f64;
    let inputs = || -> f64 { a.program.inputs.iter().map(|i| a.program.tensor(i.tensor).bytes() as f64).sum() };
    numbers(&schema::SUMMARY, |column| {
        Some(match column {
            "neuroncore_cycle_count" => elapsed / 1e3 * clock,
            "adjusted_transpose_flops" => adjusted_transposes() as f64,
            "trace_count" => (t.events.len() + p.transfers.len()) as f64,
            "dma_packet_time" => seconds(transfers::packet_time(p)),
            "dma_queue_count" => {
                t.rows.iter().filter(|r| r.count > 0 && matches!(r.kind, RowKind::DmaQueue(_))).count() as f64
            }
            "inputs_and_weights_size_bytes" => inputs(),
            "mbu_min_read_util_percent" => percent(inputs(), a.roofline.hbm_bytes * elapsed / 1e3),
            "psum_read_sbuf_write_count" => psum_to_sbuf.len() as f64,
            "psum_read_sbuf_write_bytes" => psum_to_sbuf.iter().sum::<u64>() as f64,
            "activate_instruction_time" => seconds(activations().map(|e| e.end - e.start).sum()),
            "activate_instruction_count" => activations().count() as f64,
            "cc_op_time" => seconds(collectives.iter().map(|(start, end)| end - start).sum()),
            "cc_op_active_time" => seconds(covered(collectives.clone())),
            "cc_op_active_time_percent" => percent(covered(collectives.clone()) as f64, elapsed),
            "cc_op_count" => collectives.len() as f64,
            "input_queue_bytes" => queue_bytes("input"),
            "output_queue_bytes" => queue_bytes("output"),
            "total_exec_time" => seconds(ends.saturating_sub(starts)),
            "total_active_time" => seconds(all_active()),
            "total_active_time_percent" => percent(all_active() as f64, elapsed),
            _ => match (known.get(column), column.split_once("_engine_instruction_time")) {
                (Some(x), _) => *x,
                (None, Some((name, _))) => instruction_time(p, name),
                (None, None) => {
                    let (kind, what) = column.split_once("dma_")?;
                    let wanted = |queue_type: &str| is_of(kind, queue_type);
                    let (packets, bytes) = transfers::packets_of(p, wanted);
                    let (all_packets, all_bytes) = transfers::packets_of(p, |_| true);
                    match what {
                        "active_time" => seconds(moves(&wanted)),
                        "active_time_percent" => percent(moves(&wanted) as f64, elapsed),
                        "packet_count" => packets as f64,
                        "packet_percent" => percent(packets as f64, all_packets as f64),
                        "size" => bytes as f64,
                        "size_percent" => percent(bytes as f64, all_bytes as f64),
                        _ => return None,
                    }
                }
            },
        })
    })
}

/// Whether a queue belongs to the group at the start of a column's name.
fn is_of(kind: &str, queue_type: &str) -> bool {
    match kind {
        "software_dynamic_" | "hardware_dynamic_" => queue_type == kind.trim_end_matches('_'),
        "dynamic_" => queue_type.ends_with("_dynamic"),
        _ => !queue_type.ends_with("_dynamic"),
    }
}

/// The total length of an engine's instructions, in seconds.
fn instruction_time(p: &Profile<'_>, name: &str) -> f64 {
    let is = |row: u32| matches!(p.timeline.rows[row as usize].kind, kind @ RowKind::Engine(_) if kind.name() == name);
    seconds(p.timeline.events.iter().filter(|e| is(e.origin.row.0)).map(|e| e.end - e.start).sum())
}

/// Table Metadata.
pub(super) fn metadata(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let program = p.run.analysis.program;
    let params = &p.run.kernel.params;
    let arch = Arch::of(program.target);
    let one = |x: f64| floats(std::iter::once(x));
    let int = |x: u64| ints(std::iter::once(x));
    let text = |x: String| texts(std::iter::once(x));
    let engine_clock = |engine: Engine| match engine {
        Engine::Tensor => params.tensor.clock_ghz.value,
        Engine::Scalar => params.scalar.clock_ghz.value,
        Engine::GpSimd => params.gpsimd.clock_ghz.value,
        _ => params.vector.clock_ghz.value,
    };
    let elapsed = ns(p.timeline.elapsed);
    table::write(&schema::METADATA, 1, |column| {
        Some(match column {
            "profile_schema_version" => text(schema::VERSION.into()),
            "ntff_version" | "first_hw_timestamp" => int(0),
            "num_physical_cores" => int(program.cores.len() as u64),
            "vnc_enabled" => bools(std::iter::once(program.cores.len() > 1)),
            "last_hw_timestamp" => int(elapsed),
            "first_ts" => text(clock_time(0)),
            "last_ts" => text(clock_time(elapsed)),
            "dma_ddr_bandwidth" => one(params.dma.engines.value * params.dma.bytes_per_ns.value * 1e9),
            "num_dma_engines_per_neuroncore" => int(params.dma.engines.value as u64),
            "hbm_ddr_bandwidth" => one(p.run.analysis.roofline.hbm_bytes * 1e9),
            "tensor_engine_num_rows" => int(u64::from(arch.partitions)),
            "tensor_engine_num_cols" => int(u64::from(arch.stationary_free_max)),
            "tensor_engine_clock_freq" => one(engine_clock(Engine::Tensor)),
            "vector_engine_clock_freq" | "neuroncore_clock_freq" => one(engine_clock(Engine::Vector)),
            "scalar_engine_clock_freq" => one(engine_clock(Engine::Scalar)),
            "gpsimd_engine_clock_freq" => one(engine_clock(Engine::GpSimd)),
            "vector_engine_num_channels" | "scalar_engine_num_channels" | "gpsimd_engine_num_channels" => {
                int(u64::from(arch.partitions))
            }
            "ticks_per_nanosec" => int(1),
            "instance_type" => text(program.target.to_string()),
            "explorer_version" | "compiler_version" => text(format!("nki-sim {VERSION}")),
            "profile_name" => text(program.name.to_string()),
            "is_simulation" => Values::Bool(vec![Some(true)]),
            _ => return None,
        })
    })
}

/// The Unix epoch plus this many nanoseconds. Kernels longer than a minute show their seconds.
fn clock_time(ns: u64) -> String {
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("1970-01-01 {hours:02}:{minutes:02}:{:02}.{fraction:09}+00:00", seconds % 60)
}

/// Whether the profile in a directory is marked as simulated.
pub(super) fn is_simulated(directory: &Path) -> bool {
    let Ok(file) = std::fs::File::open(directory.join(format!("{}.parquet", schema::METADATA.name))) else {
        return false;
    };
    let Ok(reader) = SerializedFileReader::new(file) else { return false };
    let Ok(mut rows) = reader.get_row_iter(None) else { return false };
    let Some(Ok(row)) = rows.next() else { return false };
    let at = row.get_column_iter().position(|(name, _)| name == "is_simulation");
    at.is_some_and(|at| row.get_bool(at).unwrap_or(false))
}
