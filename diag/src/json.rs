//! Diagnostics as JSON.

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Severity};
use crate::slugs::{self, Class};
use crate::source::SourceMap;

/// A label with its place resolved.
#[derive(Debug, Clone, Serialize)]
pub struct JsonLabel {
    /// The file's name.
    pub file: String,
    /// 1-based line; 0 when unknown.
    pub line: u32,
    /// 1-based column in characters; 0 when unknown.
    pub column: u32,
    /// Description.
    pub text: String,
    /// Whether this is the diagnostic's primary place.
    pub primary: bool,
}

/// A diagnostic with its places resolved; field order is the order in the file.
#[derive(Debug, Clone, Serialize)]
pub struct JsonDiagnostic {
    /// Slug.
    pub id: &'static str,
    /// Class of the slug: `error`, `bug`, `suspicious` or `strict`.
    pub class: &'static str,
    /// `error`, `warning` or `info`.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// File of the primary place.
    pub file: Option<String>,
    /// 1-based line of the primary place.
    pub line: Option<u32>,
    /// 1-based column of the primary place, in characters.
    pub column: Option<u32>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// Possible fixes.
    pub help: Vec<String>,
    /// All places.
    pub labels: Vec<JsonLabel>,
}

/// Resolves the places of a diagnostic for serialisation.
pub fn to_json(diagnostic: &Diagnostic, map: &SourceMap) -> JsonDiagnostic {
    let at = diagnostic.location(map);
    JsonDiagnostic {
        id: diagnostic.id,
        class: slugs::find(diagnostic.id).map_or(Class::Error, |s| s.class).name(),
        severity: diagnostic.severity,
        message: diagnostic.message.clone(),
        file: at.map(|(file, _, _)| file.to_string()),
        line: at.map(|(_, line, _)| line).filter(|&n| n > 0),
        column: at.map(|(_, _, column)| column).filter(|&n| n > 0),
        notes: diagnostic.notes.clone(),
        help: diagnostic.help.clone(),
        labels: diagnostic
            .labels
            .iter()
            .map(|l| {
                let (file, line, column) = l.place.resolve(map);
                JsonLabel { file: file.to_string(), line, column, text: l.text.clone(), primary: l.primary }
            })
            .collect(),
    }
}
