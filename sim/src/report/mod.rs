//! What a user sees of a timeline: tables, JSON, Perfetto. Observers only; nothing here changes a time.

mod detail;
mod html;
mod perfetto;
mod summary;
mod table;
mod text;
mod words;

pub use detail::{
    Analysis, Detail, LineSummary, OpcodeSummary, RemedySummary, RooflineSummary, Traffic, detail, row_name,
};
pub use html::{Finding, Page, Source, html, html_ranks};
pub use perfetto::{perfetto, perfetto_ranks};
pub use summary::{DmaSummary, EngineSummary, Engines, Memory, Part, PathStep, StallSummary, Summary, summary};
pub use table::{csv, csv_ranks};
pub use text::{events, table, timeline, validity};
pub use words::{advice, critical_path};

use crate::timeline::Ps;

/// The version, which every report carries.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Microseconds with three decimals.
fn us(time: Ps) -> String {
    let ns = (time + 500) / 1000;
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
