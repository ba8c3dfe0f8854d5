//! Findings of the two runs: which are new, and which of the later run are denied.

use nki_diag::{Denied, Diagnostic, Level};
use serde::Serialize;
use serde_json::Value;

use crate::findings::Judge;

/// A finding in a run's file. Field order is the order in the file of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Known {
    /// Slug.
    pub(crate) id: String,
    /// `error`, `warning` or `info`.
    pub(crate) severity: String,
    /// One sentence.
    pub(crate) message: String,
    /// File it is about.
    pub(crate) file: Option<String>,
    /// 1-based line.
    pub(crate) line: Option<u64>,
    /// Whether the earlier run does not have it.
    pub(crate) new: bool,
}

impl Known {
    /// The findings in a run's file; `None` if it has no list of findings.
    pub(super) fn read(json: &Value) -> Option<Vec<Known>> {
        let text = |v: &Value| v.as_str().map(str::to_owned);
        let one = |f: &Value| {
            Some(Known {
                id: text(&f["id"])?,
                severity: text(&f["severity"])?,
                message: text(&f["message"]).unwrap_or_default(),
                file: text(&f["file"]),
                line: f["line"].as_u64(),
                new: true,
            })
        };
        Some(json["findings"].as_array()?.iter().filter_map(one).collect())
    }

    /// `warning[slug]: message (file:line)`
    pub(super) fn text(&self) -> String {
        let at = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!(" ({file}:{line})"),
            _ => String::new(),
        };
        format!("{}[{}]: {}{at}", self.severity, self.id, self.message)
    }
}

/// Marks the findings that the earlier run also has. Moved lines and changed numbers in messages do not make a finding new: findings with the same
/// slug and file are counted.
pub(super) fn mark_new(before: &[Known], after: &mut [Known]) {
    let base = |k: &Known| k.file.as_deref().map(|f| super::profile::base(f).to_owned());
    let mut left: Vec<&Known> = before.iter().collect();
    // Match equal messages first, so that the rest are really new.
    for same_message in [true, false] {
        for k in after.iter_mut().filter(|k| k.new) {
            let same = |b: &&Known| b.id == k.id && base(b) == base(k) && (!same_message || b.message == k.message);
            if let Some(at) = left.iter().position(same) {
                left.remove(at);
                k.new = false;
            }
        }
    }
}

/// Applies levels to the findings of the later run. A finding that was denied in its run stays denied, unless a list of this call names it.
pub(super) fn apply(judge: &Judge, found: Vec<Known>) -> (Vec<Known>, Vec<Denied>) {
    let mut out = Vec::new();
    let mut denied: Vec<Denied> = Vec::new();
    for mut known in found {
        let Some(slug) = nki_diag::slugs::find(&known.id) else {
            out.push(known);
            continue;
        };
        if known.severity == "info" || slug.class == nki_diag::Class::Error {
            out.push(known);
            continue;
        }
        let applied = judge.judge(vec![Diagnostic::warning(slug.id, known.message.clone())]);
        let earlier = known.severity == "error" && !judge.levels().is_chosen(slug.id);
        let by = match applied.denied.into_iter().next() {
            Some(d) => Some((d.by, d.default)),
            None if earlier => Some(("the run itself".to_owned(), true)),
            None if judge.levels().level(slug.id) == Level::Allow => continue,
            None => None,
        };
        known.severity = if by.is_some() { "error" } else { "warning" }.to_owned();
        if let Some((by, default)) = by {
            match denied.iter_mut().find(|d| d.id == slug.id && d.by == by) {
                Some(d) => d.count += 1,
                None => denied.push(Denied { id: slug.id, count: 1, by, default }),
            }
        }
        out.push(known);
    }
    (out, denied)
}
