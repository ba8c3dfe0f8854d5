//! The compiler's scheduling: the order in which the engines take their instructions.
//!
//! A pure function maps a core's executed operations (with costs and dependences), the machine's constants and a [`Policy`] to an order for
//! each engine queue, before anything runs, and to the clock of that order, which determines addresses. The machine
//! ([`crate::timing`]) follows the order and makes no decisions.
//!
//! `list`: the list scheduler, with its own clock. `loads`: the trigger order of transfers. `addresses`: the placement of tensors, by that
//! clock.

mod addresses;
mod list;
mod loads;
#[cfg(test)]
mod tests;

pub(crate) use addresses::on_clock;
use nki_isa::names::Engine;
use rayon::prelude::*;

use crate::deps::{IN_ORDER, Reach};
use crate::timeline::Ps;
use crate::timing::Params;
use crate::timing::cost::MachineConstants;
use crate::timing::lower::{ENGINES, Lowered};
use crate::timing::order::Order;
use crate::trace::CoreId;

/// The source of the order of instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// The program's order, on every queue.
    Program,
    /// The order of the compiler's scheduler.
    Compiler(Compiler),
}

/// The compiler's scheduling parameters. Source: measured orders of the blocked matmuls, attention and MoE kernels (docs/accuracy.md).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compiler {
    /// Lookahead of the tensor engine past the first waiting matmul, in operations of the program.
    pub tensor_window: u32,
    /// The same for the other compute engines, in instructions of the engine; 1 means program order.
    pub compute_window: u32,
    /// Number of next instructions from which an engine selects one while the first waits only for the latency of the engine's own results.
    pub latency_window: u32,
    /// Computation of an engine that waits, and that a transfer of the engine overtakes.
    pub trigger_window: u32,
    /// Number of an engine's next transfers of a class from which one is triggered while earlier ones wait for data.
    pub transfer_window: u32,
    /// Maximum distance of a transfer ahead of another one, in operations of the program.
    pub dma_window: u32,
    /// The compiler's estimate of the trigger time, in thousandths of the machine's.
    pub trigger_estimate: u64,
    /// The compiler's addition to the machine's latency of a transfer.
    pub dma_latency: Ps,
    /// The compiler's estimate of the time of an fp32 matmul, in thousandths of the machine's.
    pub fp32_estimate: u64,
}

impl Policy {
    /// The policy for the parameters `compiler.*`: a tensor window of 1 means program order.
    pub fn of(params: &Params) -> Self {
        let compiler = &params.compiler;
        let window = |value: f64| (value as u32).max(1);
        match window(compiler.tensor_window.value) {
            1 => Policy::Program,
            tensor_window => Policy::Compiler(Compiler {
                tensor_window,
                compute_window: window(compiler.compute_window.value),
                latency_window: window(compiler.latency_window.value),
                trigger_window: window(compiler.trigger_window.value),
                transfer_window: window(compiler.transfer_window.value),
                dma_window: window(compiler.dma_window.value),
                trigger_estimate: (compiler.trigger_estimate.value * 1e3).round() as u64,
                dma_latency: (compiler.dma_latency_us.value * 1e6).round() as Ps,
                fp32_estimate: (compiler.fp32_estimate.value * 1e3).round() as u64,
            }),
        }
    }

    /// The distance by which each queue's order may depart from the program's.
    pub(crate) fn reach(&self) -> Reach {
        let mut reach = IN_ORDER;
        if let Policy::Compiler(compiler) = self {
            for (queue, engine) in Engine::QUEUES.iter().enumerate() {
                reach[queue] = match (engine, compiler.compute_window) {
                    (Engine::Tensor, _) => compiler.tensor_window,
                    (_, 1) => 1,
                    // The window counts instructions of the engine.
                    _ => compiler.tensor_window,
                };
                // Once for its place among the loads, once for transfers that wait for data.
                reach[ENGINES + queue] = compiler.dma_window.saturating_mul(2);
            }
        }
        reach
    }
}

/// The compiler's schedule of one core's operations.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) order: Order,
    /// `None` for the program's own order.
    pub(crate) clock: Option<Clock>,
}

/// The clock of the compiler's order.
#[derive(Debug)]
pub(crate) struct Clock {
    /// All operations except barriers, in issue order.
    pub(crate) taken: Vec<u32>,
    /// By operation: when it starts and when it is complete.
    pub(crate) times: Vec<(Ps, Ps)>,
}

/// The schedules of all cores, in the order of `lowered`. The cores of a program are scheduled independently.
pub(crate) fn schedules(
    lowered: &[(CoreId, Lowered<'_>)],
    machine: &MachineConstants,
    policy: &Policy,
) -> Vec<Schedule> {
    let schedule = |(_, low): &(CoreId, Lowered<'_>)| match policy {
        Policy::Program => Schedule { order: Order::of_program(low), clock: None },
        Policy::Compiler(compiler) => list::schedule(low, machine, compiler),
    };
    lowered.par_iter().map(schedule).collect()
}
