//! The scheduler: engine queues, DMA queues and semaphores over one heap of moments.
//!
//! `core`: the state of one core, and who waits for what. `engine`: the heads of the engine queues. `array`: the tensor engine.
//! `transfer`: the DMA queues. `renumber`: from operations to events.

mod array;
mod core;
mod engine;
mod renumber;
mod transfer;

use nki_isa::Program;
use nki_isa::names::Engine;

use self::core::Core;
use super::cost::CostModel;
use super::lower::{ENGINES, lower};
use crate::deps;
use crate::place::Placement;
use crate::timeline::{DmaStats, Event, Names, Row, RowId, RowKind, Timeline, dma_spans, union};
use crate::trace::Trace;

/// Simulates all cores. They run independently.
pub(super) fn run(program: &Program, placement: &Placement, trace: &Trace, model: &dyn CostModel) -> Timeline {
    let machine = model.machine();
    let written = deps::written_tensors(program);
    let mut rows = Vec::new();
    let mut events = Vec::new();
    let mut lanes = Vec::new();
    let mut end = machine.head;
    for (c, core_trace) in trace.cores.iter().enumerate().take(program.cores.len()) {
        let low = lower(program, c, placement, core_trace, model, &written);
        let mut core = Core::new(&low, machine, c as u32, (c * 2 * ENGINES) as u32, events.len() as u32);
        core.run();
        end = end.max(core.end);
        let renumber = core.finish(&mut events);
        lanes.push((core.queues, core.dma, renumber));
    }
    let elapsed = end + machine.tail;
    let mut dma = DmaStats::default();
    let mut moving = Vec::new();
    for (c, (queues, dma_queues, renumber)) in lanes.into_iter().enumerate() {
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
    let mut timeline = Timeline {
        kernel: program.name.clone(),
        elapsed,
        rows,
        events,
        dma,
        head: machine.head,
        tail: machine.tail,
        confidence: [0; 4],
        names: Names::of(program),
    };
    timeline.confidence = crate::analysis::confidence(&timeline, machine.fixed);
    timeline
}
