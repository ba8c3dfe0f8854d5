//! What the machine executes: an order of operations for each engine queue, and the interface through which it takes the next one.

use nki_isa::schema::Confidence;
use rustc_hash::FxHashMap;

use super::lower::{ENGINES, Lowered};
use crate::deps::Dep;
use crate::timeline::Ps;

/// The order in which the engines of one core take their operations, made before anything runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Order {
    /// By engine queue, every operation of that queue. No operation stands on another side of a barrier than in the trace.
    pub(crate) queues: [Vec<u32>; ENGINES],
    /// Matmuls that are held back although their operands and the array are ready.
    pub(crate) holds: FxHashMap<u32, Hold>,
    /// How well the times of `holds` are founded.
    pub(crate) confidence: Confidence,
}

/// For how long a matmul is held back, counted from when the array is free, and the transfer that comes so late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) time: Ps,
    pub(crate) on: Dep,
}

/// What the machine knows of a matmul that is about to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matmul {
    pub(crate) queue: usize,
    pub(crate) op: u32,
    pub(crate) now: Ps,
    /// When the cells of the array that it needs are free.
    pub(crate) free: Ps,
    /// For how long its columns move at the full rate.
    pub(crate) moving: Ps,
}

/// What is known of when an operation can start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// Dependences not yet resolved.
    pub(crate) pending: u32,
    /// When the resolved ones allow it to start.
    pub(crate) ready: Ps,
    /// The one that decides `ready`.
    pub(crate) last: Option<Dep>,
}

/// Decides which operation an engine queue takes next. [`InOrder`] follows an [`Order`]; a list scheduler makes one while the machine runs.
///
/// The machine asks for a queue only inside a segment (between two barriers), and never for more operations than the segment has.
pub(crate) trait Dispatch {
    /// Queue `queue` is in the segment whose operations come before operation `end`.
    fn enter(&mut self, queue: usize, end: u32);

    /// Everything that `op` waits for is known.
    fn released(&mut self, queue: usize, op: u32);

    /// The results of a transfer are there at `complete`.
    fn transferred(&mut self, op: u32, complete: Ps);

    /// When an operation of `queue` can start at the earliest; `None` if nothing is known of any.
    fn earliest(&mut self, queue: usize, progress: &[Progress]) -> Option<Ps>;

    /// Takes the operation that `queue` starts at `now`, which is not before [`Dispatch::earliest`].
    fn take(&mut self, queue: usize, now: Ps) -> Option<u32>;

    /// How long a matmul is held back.
    fn hold(&mut self, matmul: Matmul) -> Option<Hold>;
}

/// Each queue strictly in the order made beforehand.
#[derive(Debug)]
pub(crate) struct InOrder<'a> {
    order: &'a Order,
    next: [usize; ENGINES],
}

impl<'a> InOrder<'a> {
    pub(crate) fn new(order: &'a Order) -> Self {
        InOrder { order, next: [0; ENGINES] }
    }
}

impl Dispatch for InOrder<'_> {
    fn enter(&mut self, _: usize, _: u32) {}

    fn released(&mut self, _: usize, _: u32) {}

    fn transferred(&mut self, _: u32, _: Ps) {}

    fn earliest(&mut self, queue: usize, progress: &[Progress]) -> Option<Ps> {
        let op = *self.order.queues[queue].get(self.next[queue])?;
        let progress = &progress[op as usize];
        (progress.pending == 0).then_some(progress.ready)
    }

    fn take(&mut self, queue: usize, _: Ps) -> Option<u32> {
        let op = *self.order.queues[queue].get(self.next[queue])?;
        self.next[queue] += 1;
        Some(op)
    }

    fn hold(&mut self, matmul: Matmul) -> Option<Hold> {
        if self.order.holds.is_empty() { None } else { self.order.holds.get(&matmul.op).copied() }
    }
}

impl Order {
    /// The program's own order on every queue, and nothing held back.
    pub(crate) fn of_program(lowered: &Lowered<'_>) -> Self {
        Order { queues: lowered.queues.clone(), holds: FxHashMap::default(), confidence: Confidence::Documented }
    }
}
