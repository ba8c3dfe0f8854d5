//! The order in which the engines of one core take their operations, made before anything runs.

use super::lower::{ENGINES, Lowered};

/// By engine queue, every operation of that queue.
///
/// No operation is on another side of a barrier than in the trace, and rendezvous are in the order of the trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Order {
    pub(crate) queues: [Vec<u32>; ENGINES],
}

impl Order {
    /// The program's own order on every queue.
    pub(crate) fn of_program(lowered: &Lowered<'_>) -> Self {
        Order { queues: lowered.queues.clone() }
    }
}
