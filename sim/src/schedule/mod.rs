//! The compiler's part: in which order the engines take their instructions.
//!
//! A pure function of what the cores executed (operations with costs and dependences), the machine's constants and a [`Policy`] gives one order for
//! each engine queue. The machine ([`crate::timing`]) follows it and decides nothing.
//!
//! The list scheduler ([`list`]) needs to know when things happen: it takes the time from the machine itself, run without a record, and decides
//! as a [`Dispatch`](crate::timing::dispatch::Dispatch) what each queue takes next. What it decided is the order.
//!
//! `priority`: what comes first of several instructions that can start. `prefetch`: transfers that start so late that they hold matmuls back.

mod list;
mod prefetch;
mod priority;
#[cfg(test)]
mod tests;

use nki_isa::schema::Confidence;

use self::list::ListScheduler;
use crate::timing::Params;
use crate::timing::cost::MachineConstants;
use crate::timing::dispatch::Order;
use crate::timing::lower::Lowered;
use crate::timing::machine;
use crate::trace::CoreId;

/// Whose order of instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// The program's, on every queue.
    Program,
    /// The compiler's.
    Compiler(Compiler),
}

/// The compiler's list scheduler: each engine takes first what can start first, and of several the most urgent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compiler {
    /// How far ahead of the first waiting instruction of a queue it looks for one that can start, in operations of the program; more than 1.
    pub window: u32,
    /// Of the transfers that are started just in time and find their queue busy, the share that comes late, 0 to 1.
    pub late_share: f64,
    /// Over how many transfers the time between them is averaged.
    pub late_waits: usize,
    /// How well `late_share` is founded.
    pub confidence: Confidence,
}

impl Policy {
    /// The policy that the parameters `compiler.*` describe: a window of 1 is the program's order.
    pub fn of(params: &Params) -> Self {
        let compiler = &params.compiler;
        match (compiler.window.value as u32).max(1) {
            1 => Policy::Program,
            window => Policy::Compiler(Compiler {
                window,
                late_share: compiler.late_share.value.clamp(0.0, 1.0),
                late_waits: (compiler.late_waits.value as usize).max(1),
                confidence: compiler.late_share.confidence,
            }),
        }
    }

    /// An order puts no instruction ahead of another of its queue that is this many operations before it, or more.
    pub(crate) fn reach(&self) -> u32 {
        match self {
            Policy::Program => 1,
            Policy::Compiler(compiler) => compiler.window,
        }
    }
}

/// The orders of all cores, in the order of `lowered`.
pub(crate) fn orders(lowered: &[(CoreId, Lowered<'_>)], machine: &MachineConstants, policy: &Policy) -> Vec<Order> {
    match policy {
        Policy::Program => lowered.iter().map(|(_, low)| Order::of_program(low)).collect(),
        Policy::Compiler(compiler) => {
            let scheduler = |i: usize| ListScheduler::new(&lowered[i].1, machine, compiler);
            let finished = machine::run(lowered, machine, |i| (scheduler(i), ()));
            finished.into_iter().map(|core| core.dispatch.into_order()).collect()
        }
    }
}
