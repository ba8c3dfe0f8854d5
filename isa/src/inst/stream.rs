//! What the streaming instructions share when they say what they cost.

use crate::names::Engine;
use crate::view::View;
use crate::work::{Operand, Stream, StreamClass, Work, WorkKind};

/// A pass over `inputs` that gives `outputs`, as long as the longest of them, without scalars from memory and accumulators.
pub(crate) fn stream(class: StreamClass, inputs: &[&View], outputs: &[&View]) -> Stream {
    // Outputs count only where nothing is read: a reduction or a search is as long as its input.
    let measured = if inputs.is_empty() { outputs } else { inputs };
    let longest = measured.iter().map(|v| v.free_elements() as u32).max();
    Stream {
        class,
        elements: longest.unwrap_or(1),
        partitions: inputs.iter().chain(outputs).map(|v| v.partitions()).max().unwrap_or(1),
        inputs: inputs.iter().map(|v| Operand::of(v)).collect(),
        outputs: outputs.iter().map(|v| Operand::of(v)).collect(),
        scalar_reads: 0,
        accumulator_read: false,
        simple_op: false,
    }
}

/// `stream` as the work of `engine`.
pub(crate) fn on(engine: Engine, stream: Stream) -> Work {
    Work { engine, kind: WorkKind::Stream(stream) }
}
