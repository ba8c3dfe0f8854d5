//! Tables of on-chip memory: SbufUsage, PsumUsage, SbufAllocation.

use nki_isa::{Arch, Space};
use nki_sim_core::analysis::memory::Allocation;
use nki_sim_core::timeline::Ps;

use super::table::{self, floats, ints, some_ints, some_texts, texts};
use super::{Profile, instructions, ns, schema};

/// The partitions that the schema samples.
const SAMPLED: [u32; 4] = [0, 32, 64, 96];

/// The occupancy of a memory from this time on.
struct Sample {
    time: Ps,
    core: u32,
    /// Occupancy of the whole memory, in percent.
    average: f64,
    /// Occupancy of each part, in percent.
    parts: Vec<f64>,
}

/// The occupancy of a memory at the start and end of each allocation. `weight` returns the fractions of each part and of the whole
/// that an allocation occupies. Tensors that share bytes count at most once.
fn samples(p: &Profile<'_>, space: Space, weight: impl Fn(&Allocation) -> (f64, Vec<f64>)) -> Vec<Sample> {
    let mut out: Vec<Sample> = Vec::new();
    for core in 0..p.run.analysis.program.cores.len() as u32 {
        let all = p.run.analysis.allocations().iter().filter(|a| a.space == space && a.core == core);
        let mut edges: Vec<(Ps, f64, usize)> = Vec::new();
        let weights: Vec<(f64, Vec<f64>)> = all.clone().map(&weight).collect();
        for (i, a) in all.enumerate() {
            edges.push((a.start, 1.0, i));
            edges.push((a.end, -1.0, i));
        }
        edges.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut now = (0.0, vec![0.0; weights.first().map_or(0, |w| w.1.len())]);
        for (time, sign, i) in edges {
            now.0 += sign * weights[i].0;
            now.1.iter_mut().zip(&weights[i].1).for_each(|(sum, part)| *sum += sign * part);
            // Sums of fractions may miss 0 by rounding.
            let shown = |x: f64| (x * 1e4).round().clamp(0.0, 1e4) / 1e2;
            let sample = Sample { time, core, average: shown(now.0), parts: now.1.iter().map(|x| shown(*x)).collect() };
            match out.last_mut() {
                Some(last) if (last.time, last.core) == (time, core) => *last = sample,
                _ => out.push(sample),
            }
        }
    }
    out
}

/// Table SbufUsage.
pub(super) fn sbuf(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let arch = Arch::of(p.run.analysis.program.target);
    let rows = samples(p, Space::Sbuf, |a| {
        let depth = f64::from(a.bytes) / f64::from(arch.sbuf_bytes);
        let whole = depth * f64::from(a.partitions) / f64::from(arch.partitions);
        (whole, SAMPLED.iter().map(|at| if covers(a, *at) { depth } else { 0.0 }).collect())
    });
    table::write(&schema::SBUF_USAGE, rows.len(), |column| {
        let part = |i: usize| floats(rows.iter().map(|s| s.parts[i]));
        Some(match column {
            "timestamp" => ints(rows.iter().map(|s| ns(s.time))),
            "avg_util_percent" => floats(rows.iter().map(|s| s.average)),
            "partition_0_util_percent" => part(0),
            "partition_32_util_percent" => part(1),
            "partition_64_util_percent" => part(2),
            "partition_96_util_percent" => part(3),
            "pcore_idx" => ints(rows.iter().map(|s| s.core)),
            _ => return None,
        })
    })
}

fn covers(a: &Allocation, partition: u32) -> bool {
    (a.partition..a.partition + a.partitions).contains(&partition)
}

/// Table PsumUsage.
pub(super) fn psum(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let arch = Arch::of(p.run.analysis.program.target);
    let rows = samples(p, Space::Psum, |a| {
        let width = f64::from(a.partitions) / f64::from(arch.partitions);
        let bank = |bank: u32| {
            let (from, to) = (bank * arch.psum_bank_bytes, (bank + 1) * arch.psum_bank_bytes);
            let inside = (a.byte + a.bytes).min(to).saturating_sub(a.byte.max(from));
            width * f64::from(inside) / f64::from(arch.psum_bank_bytes)
        };
        let banks: Vec<f64> = (0..8).map(bank).collect();
        (width * f64::from(a.bytes) / f64::from(arch.psum_bytes()), banks)
    });
    table::write(&schema::PSUM_USAGE, rows.len(), |column| {
        Some(match column {
            "timestamp" => ints(rows.iter().map(|s| ns(s.time))),
            "avg_util_percent" => floats(rows.iter().map(|s| s.average)),
            "pcore_idx" => ints(rows.iter().map(|s| s.core)),
            bank => {
                let bank: usize = bank.strip_prefix("bank_")?.strip_suffix("_util_percent")?.parse().ok()?;
                floats(rows.iter().map(|s| s.parts[bank]))
            }
        })
    })
}

/// Table SbufAllocation.
pub(super) fn allocations(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let program = p.run.analysis.program;
    let all = p.run.analysis.allocations().iter().filter(|a| a.space == Space::Sbuf);
    let rows: Vec<(&Allocation, u32)> =
        all.flat_map(|a| SAMPLED.into_iter().filter(move |at| covers(a, *at)).map(move |at| (a, at))).collect();
    let first = |a: &Allocation| p.timeline.event(a.first);
    let by_dma = |a: &Allocation| first(a).origin.queue.is_some();
    let only = |dma: bool, a: &Allocation| by_dma(a) == dma;
    table::write(&schema::SBUF_ALLOCATION, rows.len(), |column| {
        Some(match column {
            "start_ts" => ints(rows.iter().map(|r| ns(r.0.start))),
            "end_ts" => ints(rows.iter().map(|r| ns(r.0.end))),
            "start_address" => ints(rows.iter().map(|r| r.0.byte)),
            "end_address" => ints(rows.iter().map(|r| r.0.byte + r.0.bytes.saturating_sub(1))),
            "partition" => ints(rows.iter().map(|r| r.1)),
            "op_source_type" => texts(rows.iter().map(|r| if by_dma(r.0) { "dma" } else { "instruction" })),
            "opcode" => some_texts(
                rows.iter().map(|r| only(false, r.0).then(|| instructions::opcode_of(p, r.0.first.0 as usize))),
            ),
            "operands" => some_texts(rows.iter().map(|r| {
                let e = first(r.0);
                only(false, r.0).then(|| &p.operands[e.origin.core as usize][e.node.0 as usize])
            })),
            "queue_name" => some_texts(
                rows.iter().map(|r| first(r.0).origin.queue.map(|q| p.timeline.rows[q.0 as usize].kind.name())),
            ),
            "block_id" => some_ints(rows.iter().map(|r| only(true, r.0).then(|| first(r.0).node.0))),
            "tensor_name" => texts(rows.iter().map(|r| &program.tensor(r.0.tensor).name)),
            "pcore_idx" => ints(rows.iter().map(|r| r.0.core)),
            _ => return None,
        })
    })
}
