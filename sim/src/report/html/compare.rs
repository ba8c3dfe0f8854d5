//! A page that shows two runs on one time axis, and their differences.

use serde::Serialize;

use super::columns::{Columns, Head};
use super::{SHARED, assemble};

/// An interval of activity of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// Start in nanoseconds.
    pub start: i64,
    /// End in nanoseconds.
    pub end: i64,
    /// Name of the instruction or cause, by position in [`Tracks::names`].
    pub name: u32,
    /// Source line, by position in [`Tracks::places`].
    pub place: u32,
    /// A wait; `name` is the cause.
    pub stalled: bool,
}

/// A row of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Track {
    /// `vector`, or `vector/1` for the second core.
    pub name: String,
    /// In chronological order.
    pub spans: Vec<Busy>,
}

/// The activity of a run over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracks {
    /// Names of instructions and causes.
    pub names: Vec<String>,
    /// `file.py:12`, or empty for spans without a line.
    pub places: Vec<String>,
    /// Rows; empty if the file contains only sums.
    pub rows: Vec<Track>,
}

/// One of the two runs.
#[derive(Debug, Clone)]
pub struct Side {
    /// The file that it was read from.
    pub file: String,
    /// Latency in nanoseconds; 0 if the file has none.
    pub latency: i64,
    /// Its activity over time.
    pub tracks: Tracks,
}

#[derive(Serialize)]
struct SideData<'a> {
    file: &'a str,
    latency: i64,
    names: &'a [String],
    places: &'a [String],
    rows: Vec<&'a str>,
    columns: Vec<Head>,
}

#[derive(Serialize)]
struct Data<'a, T> {
    sides: Vec<SideData<'a>>,
    difference: &'a T,
}

/// The page as text. `difference` is written as JSON for the tables: `metrics`, `engines`, `causes` and `lines` are lists of `name`, `before` and
/// `after`; `places` has the locations of each of `lines` in the two runs.
///
/// # Errors
/// If the data cannot be written.
pub fn html_compare(sides: &[Side; 2], difference: &impl Serialize) -> std::io::Result<String> {
    let mut out = Vec::new();
    let mut texts = Vec::new();
    for side in sides {
        let (columns, text) = columns(&side.tracks)?;
        texts.push(text);
        out.push(SideData {
            file: &side.file,
            latency: side.latency,
            names: &side.tracks.names,
            places: &side.tracks.places,
            rows: side.tracks.rows.iter().map(|r| &*r.name).collect(),
            columns,
        });
    }
    let title = format!("{} and {}", sides[0].file, sides[1].file);
    let data = serde_json::to_string(&Data { sides: out, difference })?;
    let scripts = [&SHARED[..], &[include_str!("compare.js")]].concat();
    Ok(assemble(include_str!("compare.html"), &title, &data, &texts, &scripts))
}

fn columns(tracks: &Tracks) -> std::io::Result<(Vec<Head>, String)> {
    let mut out = Columns::default();
    let spans = || tracks.rows.iter().enumerate().flat_map(|(r, row)| row.spans.iter().map(move |s| (r, s)));
    out.near("span.row", spans().map(|(r, _)| r as i64));
    out.near("span.start", spans().map(|(_, s)| s.start));
    out.plain("span.time", spans().map(|(_, s)| s.end - s.start));
    out.plain("span.name", spans().map(|(_, s)| i64::from(s.name)));
    out.plain("span.place", spans().map(|(_, s)| i64::from(s.place)));
    out.plain("span.stalled", spans().map(|(_, s)| i64::from(s.stalled)));
    out.finish()
}
