//! The scheduler: engine queues, DMA queues and semaphores over one heap of moments.
//!
//! `core`: the state of one core, and who waits for what. `engine`: the heads of the engine queues. `array`: the tensor engine.
//! `transfer`: the DMA queues. `peers`: cores side by side. `renumber`: from operations to events.

mod array;
mod core;
mod engine;
mod peers;
mod renumber;
mod transfer;

use nki_isa::Program;
use nki_isa::names::Engine;

use self::core::Core;
use self::renumber::Renumber;
use super::cost::{CostModel, Machine};
use super::lower::{ENGINES, Lowered, lower};
use super::{RankTrace, meetings};
use crate::actors::Actor;
use crate::deps;
use crate::timeline::{DmaStats, Event, Names, Release, Row, RowId, RowKind, Timeline, dma_spans, union};
use peers::Attendance;

/// Simulates the cores of all ranks on one clock; one timeline for each rank.
pub(super) fn run(ranks: &[RankTrace<'_>], model: &dyn CostModel) -> Vec<Timeline> {
    let mut lowered: Vec<(Actor, Lowered<'_>)> = Vec::new();
    for (rank, r) in ranks.iter().enumerate() {
        let written = deps::written_tensors(r.program);
        for (c, trace) in r.trace.cores.iter().enumerate().take(r.program.cores.len()) {
            let low = lower(r.program, c, r.placement, trace, model, &written);
            lowered.push((Actor { rank, core: c as u32 }, low));
        }
    }
    let mut meetings = meetings::pair(&lowered);
    let attended: Vec<Attendance> = std::mem::take(&mut meetings.of)
        .into_iter()
        .zip(std::mem::take(&mut meetings.posted))
        .map(|(of, posted)| Attendance::new(of, posted))
        .collect();
    let actors: Vec<Actor> = lowered.iter().map(|(a, _)| *a).collect();
    let mut cores: Vec<Core<'_>> = lowered
        .iter()
        .zip(attended)
        .map(|((a, low), attendance)| Core::new(low, model.machine(), a.core, a.core * 2 * ENGINES as u32, attendance))
        .collect();
    peers::run(&mut cores, &actors, meetings);
    let mut cores = cores.into_iter().enumerate().peekable();
    ranks
        .iter()
        .enumerate()
        .map(|(rank, r)| {
            let mut own = Vec::new();
            while let Some((_, core)) = cores.next_if(|(i, _)| actors[*i].rank == rank) {
                own.push(core);
            }
            let base = actors.iter().position(|a| a.rank == rank).unwrap_or(0);
            let over_capacity = !r.placement.over_capacity.is_empty();
            Timeline { over_capacity, ..timeline(r.program, own, base, model.machine()) }
        })
        .collect()
}

/// The timeline of one rank. Its first core is number `base` of all.
fn timeline(program: &Program, cores: Vec<Core<'_>>, base: usize, machine: &Machine) -> Timeline {
    let mut rows = Vec::new();
    let mut events = Vec::new();
    let mut lanes = Vec::new();
    let mut renumbers = Vec::new();
    let mut waited = Vec::new();
    let mut end = machine.head;
    for mut core in cores {
        end = end.max(core.end);
        renumbers.push(core.finish(&mut events));
        waited.push(std::mem::take(&mut core.attendance.waited));
        lanes.push((core.queues, core.dma));
    }
    for (own, waited) in renumbers.iter().zip(&waited) {
        for (event, release) in peers::link(waited, own, &renumbers, base) {
            let event: &mut Event = &mut events[event.0 as usize];
            // A transfer that then waited in its queue was let go by that.
            if !matches!(event.released, Release::DmaQueue(_)) {
                event.released = release;
            }
        }
    }
    let elapsed = end + machine.tail;
    let mut dma = DmaStats::default();
    let mut moving = Vec::new();
    for (c, ((queues, dma_queues), renumber)) in lanes.into_iter().zip(renumbers).enumerate() {
        for (queue, engine) in queues.into_iter().zip(Engine::QUEUES) {
            let spans = queue.lane.into_spans(elapsed).into_iter().map(|s| renumber.span(s)).collect();
            let row = RowId(rows.len() as u32);
            let count = events.iter().filter(|e: &&Event| e.row == row).count() as u64;
            rows.push(Row { core: c as u32, kind: RowKind::Engine(engine), count, spans });
        }
        for (queue, engine) in dma_queues.into_iter().zip(Engine::QUEUES) {
            let spans =
                dma_spans(&queue.transfers, machine.head, elapsed).into_iter().map(|s| renumber.span(s)).collect();
            dma.transfers += queue.transfers.len() as u64;
            moving.extend(queue.transfers.iter().map(|t| (t.payload, t.payload_end)));
            rows.push(Row {
                core: c as u32,
                kind: RowKind::DmaQueue(engine),
                count: queue.transfers.len() as u64,
                spans,
            });
        }
    }
    dma.bytes = events.iter().map(|e| e.bytes).sum();
    dma.active = union(moving);
    Timeline {
        kernel: program.name.clone(),
        elapsed,
        rows,
        events,
        dma,
        head: machine.head,
        tail: machine.tail,
        fixed: machine.fixed,
        holding: machine.late_confidence,
        over_capacity: false,
        names: Names::of(program),
    }
}
