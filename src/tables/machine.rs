//! Tables of the machine's state: SemaphoreUpdate, Throttle, ThrottleSummary, DmaQueuesInfo; and substitutes for the compiled file: NeffHeader,
//! ExecutionInfo.

use std::collections::{BTreeMap, BTreeSet};

use nki_sim_core::report::row_name;
use nki_sim_core::timeline::{PhaseKind, Ps};

use super::table::{self, floats, ints, texts};
use super::{Profile, covered, engine, ns, percent, schema, transfers, union};

/// Table SemaphoreUpdate: the model signals each completion, and counts the completions of a queue.
pub(super) fn semaphores(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let mut events: Vec<_> = p.timeline.events.iter().enumerate().collect();
    events.sort_by_key(|(i, e)| (e.complete, *i));
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    let rows: Vec<_> = events
        .into_iter()
        .map(|(_, e)| {
            let count = counts.entry(e.origin.queue.unwrap_or(e.origin.row).0).or_insert(0);
            *count += 1;
            (e, *count)
        })
        .collect();
    table::write(&schema::SEMAPHORE_UPDATE, rows.len(), |column| {
        Some(match column {
            "timestamp" => ints(rows.iter().map(|r| ns(r.0.complete))),
            "id" => texts(rows.iter().map(|r| row_name(p.timeline, r.0.origin.queue.unwrap_or(r.0.origin.row)))),
            "value" => ints(rows.iter().map(|r| r.1)),
            "update_source" => texts(
                rows.iter()
                    .map(|r| if r.0.origin.queue.is_some() { "AXI" } else { engine(p.timeline, r.0.origin.row) }),
            ),
            "update_operation_type" => texts(rows.iter().map(|_| "sem_inc")),
            "update_trigger_timing" => texts(rows.iter().map(|_| "complete")),
            "pcore_idx" => ints(rows.iter().map(|r| r.0.origin.core)),
            _ => return None,
        })
    })
}

/// By core: the intervals in which the power limiter holds the busy tensor engine at its lower rate.
fn throttled(p: &Profile<'_>) -> Vec<(u32, Vec<(Ps, Ps)>)> {
    let of = |core: u32| {
        let matmuls = p.timeline.events.iter().filter(|e| e.origin.core == core);
        let slow = matmuls.filter_map(|e| {
            let phases = e.phases();
            let find = |kind: PhaseKind| phases.iter().find(|phase| phase.kind == kind);
            Some((find(PhaseKind::Execute)?.start, find(PhaseKind::Limiter)?.end))
        });
        (core, union(slow.collect()))
    };
    (0..p.run.analysis.program.cores.len() as u32).map(of).collect()
}

/// The limiter's lower rate as a fraction with a small denominator.
fn limit(rate: f64) -> (u32, u32) {
    let whole = |n: u32| (rate * f64::from(n) - (rate * f64::from(n)).round()).abs() < 1e-6;
    let n = (1..=1000).find(|n| whole(*n)).unwrap_or(1000);
    ((rate * f64::from(n)).round() as u32, n)
}

/// Table Throttle.
pub(super) fn throttle(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let of_core = |(core, spans): (u32, Vec<(Ps, Ps)>)| spans.into_iter().map(move |span| (core, span));
    let rows: Vec<_> = throttled(p).into_iter().flat_map(of_core).collect();
    let (k, n) = limit(p.run.kernel.params.tensor.limiter_rate.value);
    table::write(&schema::THROTTLE, rows.len(), |column| {
        Some(match column {
            "timestamp" => ints(rows.iter().map(|r| ns(r.1.0))),
            "duration" => ints(rows.iter().map(|r| ns(r.1.1) - ns(r.1.0))),
            "k" => ints(rows.iter().map(|_| k)),
            "n" => ints(rows.iter().map(|_| n)),
            "type" => texts(rows.iter().map(|_| "activity_0")),
            "pcore_idx" => ints(rows.iter().map(|r| r.0)),
            _ => return None,
        })
    })
}

/// Table ThrottleSummary.
pub(super) fn throttle_summary(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let rows: Vec<(u32, Ps)> = throttled(p).into_iter().map(|(core, spans)| (core, covered(spans))).collect();
    let (k, n) = limit(p.run.kernel.params.tensor.limiter_rate.value);
    let most = |time: Ps| if time > 0 { f64::from(k) / f64::from(n) } else { 1.0 };
    table::write(&schema::THROTTLE_SUMMARY, rows.len(), |column| {
        Some(match column {
            "nc_idx" => ints(rows.iter().map(|r| r.0)),
            "throttle_type" => texts(rows.iter().map(|_| "all")),
            "throttle_active_time_ns" => ints(rows.iter().map(|r| ns(r.1))),
            "throttle_active_time_percent" => {
                floats(rows.iter().map(|r| percent(r.1 as f64, p.timeline.elapsed as f64)))
            }
            "max_achievable_util_with_throttling_percent" => floats(rows.iter().map(|r| most(r.1))),
            _ => return None,
        })
    })
}

/// Table DmaQueuesInfo: the queues of DmaPacket, on each DMA engine that carries their packets.
pub(super) fn queues(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let rows: BTreeSet<transfers::Queue> = transfers::queues(p).collect();
    table::write(&schema::DMA_QUEUES_INFO, rows.len(), |column| {
        Some(match column {
            "name" => texts(rows.iter().map(|q| q.name)),
            "type" => texts(rows.iter().map(|q| q.kind)),
            "pcore_idx" => ints(rows.iter().map(|q| q.core)),
            "idx" => ints(rows.iter().map(|q| q.number)),
            "engine_idx" => ints(rows.iter().map(|q| q.engine)),
            "axi_port" | "dram_channel" => ints(rows.iter().map(|_| 0)),
            _ => return None,
        })
    })
}

/// Table NeffHeader: the program in place of a compiled file.
pub(super) fn neff(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let program = p.run.analysis.program;
    table::write(&schema::NEFF_HEADER, 1, |column| {
        Some(match column {
            "network_name" => texts(std::iter::once(&program.name)),
            "logical_neuroncore_count" => ints(std::iter::once(1)),
            "neuroncore_count" | "pcore_count_per_lnc" => ints(std::iter::once(program.cores.len())),
            _ => return None,
        })
    })
}

/// Table ExecutionInfo: a simulated profile has one execution.
pub(super) fn execution(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    table::write(&schema::EXECUTION_INFO, 1, |column| {
        Some(match column {
            "execution_index" | "execution_start_ts" => ints(std::iter::once(0)),
            "execution_end_ts" => ints(std::iter::once(ns(p.timeline.elapsed))),
            "num_subgraphs" => ints(std::iter::once(p.run.analysis.program.cores.len())),
            _ => return None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::limit;

    #[test]
    fn rates_are_fractions() {
        assert_eq!(limit(0.5), (1, 2));
        assert_eq!(limit(0.385), (77, 200));
        assert_eq!(limit(1.0), (1, 1));
        assert_eq!(limit(1.0 / 3.0), (1, 3));
    }
}
