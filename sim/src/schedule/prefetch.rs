//! Transfers that the compiler starts just in time, and that come late.

use std::collections::VecDeque;

use nki_isa::names::Engine;
use rustc_hash::FxHashMap;

use super::Compiler;
use crate::deps::Dep;
use crate::timeline::{Hazard, Ps, Subject};
use crate::timing::cost::MachineConstants;
use crate::timing::dispatch::{Hold, Matmul};
use crate::timing::lower::Lowered;

/// A transfer that a matmul was the first to wait for.
#[derive(Debug, Clone, Copy)]
struct Wait {
    at: Ps,
    /// For how long it occupies the busiest DMA engine.
    engines: Ps,
    /// How long it takes to issue it.
    issue: Ps,
    /// For how long it held the matmul back because it came late.
    held: Ps,
}

/// Transfers that an instruction is the first of its engine to wait for.
#[derive(Debug, Clone, Copy)]
struct FirstWaits {
    /// How many.
    count: u32,
    /// The one that completed last.
    last: Dep,
    /// When it did.
    complete: Ps,
    /// For how long they occupy the busiest DMA engine.
    engines: Ps,
    /// How long it takes to issue them.
    issue: Ps,
    /// How late they would be, together, if the transfers into each tensor started when the first of them is needed.
    exposed: Ps,
}

/// What matmuls have waited for so far.
pub(super) struct Prefetches<'a> {
    low: &'a Lowered<'a>,
    machine: &'a MachineConstants,
    compiler: Compiler,
    /// By operation: when the results of a transfer are there.
    complete: Vec<Ps>,
    /// Transfers that an engine has waited for, by operation: a bit for each engine.
    waited: Vec<u8>,
    /// How many of the transfers into a tensor were waited for.
    arrived: FxHashMap<Subject, u32>,
    /// The last few waits.
    waits: VecDeque<Wait>,
}

impl<'a> Prefetches<'a> {
    pub(super) fn new(low: &'a Lowered<'a>, machine: &'a MachineConstants, compiler: &Compiler) -> Self {
        let n = low.ops.len();
        Prefetches {
            low,
            machine,
            compiler: *compiler,
            complete: vec![0; n],
            waited: vec![0; n],
            arrived: FxHashMap::default(),
            waits: VecDeque::new(),
        }
    }

    pub(super) fn transferred(&mut self, op: u32, complete: Ps) {
        self.complete[op as usize] = complete;
    }

    /// How late the transfers come, on average, that a matmul is the first to wait for, and one of them.
    ///
    /// The compiler starts a transfer just in time, and its queue is then busy with issuing another one for the share of time that issuing takes.
    /// Of those that find it busy, a fixed share starts only when the engine already waits: the engine sees all of the transfer, and its
    /// power limiter engages again. Further ones into the same tensor are issued right behind the first, faster than one for each matmul:
    /// so they are less late. Where DMA engines or queue have no time to spare, or the transfer can only just be there when the array is free, it
    /// starts as soon as it can, and what delays it is simulated.
    pub(super) fn hold(&mut self, matmul: Matmul) -> Option<Hold> {
        let FirstWaits { count, last, complete, engines, issue, exposed } = self.first_waits(matmul)?;
        let waits = &mut self.waits;
        let sum = |part: fn(&Wait) -> Ps| waits.iter().map(part).sum::<Ps>() as f64;
        let (issued, moved, held) = (sum(|w| w.issue), sum(|w| w.engines), sum(|w| w.held));
        // The time that the engine would have taken if all had come in time.
        let time = waits.front().map_or(0, |w| matmul.now.saturating_sub(w.at)) as f64 - held;
        let mut late = 0;
        if time > 0.0 {
            let busy = (issued / time).min(1.0);
            let spare = f64::from(count) * (time - issued.max(moved)) / waits.len() as f64;
            late = (self.compiler.late_share * busy * exposed as f64).min(spare).max(0.0) as Ps;
            late = late.min(matmul.free.saturating_sub(complete));
        }
        let each = Ps::from(count);
        let wait = Wait { at: matmul.now, engines: engines / each, issue: issue / each, held: late / each };
        waits.extend(std::iter::repeat_n(wait, count as usize));
        waits.drain(..waits.len().saturating_sub(self.compiler.late_waits));
        Some(Hold { time: late, on: last })
    }

    /// The transfers that a matmul is the first instruction of its engine to wait for, if the compiler chose when they start: into a tensor that was
    /// read before, a transfer starts when the program lets it.
    fn first_waits(&mut self, matmul: Matmul) -> Option<FirstWaits> {
        let mut found: Option<FirstWaits> = None;
        for dep in self.low.deps.of(matmul.op as usize) {
            let Some((queue, cost)) = self.low.dma(dep.on) else { continue };
            let waited = &mut self.waited[dep.on as usize];
            if dep.hazard != Hazard::Raw || *waited >> matmul.queue & 1 == 1 {
                continue;
            }
            *waited |= 1 << matmul.queue;
            let reused = |d: &Dep| d.hazard == Hazard::War && d.subject == dep.subject;
            if self.low.deps.of(dep.on as usize).iter().any(reused) {
                continue;
            }
            let complete = self.complete[dep.on as usize];
            let issue = if Engine::QUEUES[queue] == Engine::GpSimd { cost.software.1 } else { cost.hardware.1 };
            let before = self.arrived.entry(dep.subject).or_default();
            let gained = Ps::from(*before) * matmul.moving.saturating_sub(issue);
            *before += 1;
            let new = FirstWaits { count: 0, last: *dep, complete: 0, engines: 0, issue: 0, exposed: 0 };
            let waits = found.get_or_insert(new);
            waits.count += 1;
            waits.engines += cost.longest();
            waits.issue += issue;
            waits.exposed += (cost.alone(issue) + self.machine.limiter.cold_start()).saturating_sub(gained);
            if complete >= waits.complete {
                waits.last = *dep;
                waits.complete = complete;
            }
        }
        found
    }
}
