//! User-facing reports of a timeline: tables, JSON, Perfetto. They observe only and never change a time.

mod advice;
mod causes;
mod detail;
mod figures;
mod html;
mod perfetto;
mod summary;
mod table;
mod text;
mod vocabulary;

pub use advice::{advice, critical_path};
pub use causes::{CAUSES, CauseKind};
pub use detail::{
    Detail, LineSummary, OpcodeSummary, RemedySummary, RooflineSummary, Traffic, detail, row_name, summary_columns,
};
pub use figures::{FIGURES, Figure, REMEDIES};
pub use html::{Busy, Finding, Page, Side, Source, Track, Tracks, html, html_compare, html_ranks};
pub use perfetto::{perfetto, perfetto_ranks};
pub use summary::{DmaSummary, EngineSummary, Engines, Memory, Part, PathStep, StallSummary, Summary, summary};
pub use table::{all_operands, csv, csv_ranks};
pub use text::{events, table, timeline, validity};
pub use vocabulary::verdict_sentence;

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::timeline::Ps;

/// The version in every report.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Microseconds with three decimals.
fn us(time: Ps) -> String {
    let ns = (time + 500) / 1000;
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// Compresses a file (RFC 1952). The result does not depend on the time of the call.
///
/// # Errors
/// If the bytes cannot be compressed.
pub fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), Compression::new(5));
    packed.write_all(bytes)?;
    packed.finish()
}
