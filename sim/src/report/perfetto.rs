//! Perfetto traces.

use crate::timeline::Timeline;

/// The timeline as a Perfetto trace.
pub fn perfetto(_timeline: &Timeline) -> Vec<u8> {
    Vec::new()
}
