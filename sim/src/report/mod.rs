//! What a user sees of a timeline: tables, JSON, Perfetto. Observers only; nothing here changes a time.

mod perfetto;
mod summary;
mod text;

pub use perfetto::perfetto;
pub use summary::{DmaSummary, EngineSummary, Engines, Memory, Part, PathStep, StallSummary, Summary, summary};
pub use text::{events, table, timeline};

use crate::timeline::Ps;

/// Microseconds with three decimals.
fn us(time: Ps) -> String {
    let ns = (time + 500) / 1000;
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
