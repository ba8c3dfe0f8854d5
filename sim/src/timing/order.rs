//! The order in which the engines of one core take their operations, fixed before the run.

use super::lower::{ENGINES, Lowered};

/// By engine queue, every operation of that queue.
///
/// No operation crosses a barrier of the trace, and rendezvous keep the order of the trace.
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
