//! From a broken rule to a diagnostic with places.

use std::borrow::Cow;

use nki_diag::{Diagnostic, Span};
use nki_isa::{Loc, Violation};

use super::view::Storage;
use crate::eval::error::Raise;

/// The span of a location.
pub(crate) fn span_of(loc: Loc) -> Span {
    Span { file: nki_diag::FileId(loc.file), start: loc.start, end: loc.end }
}

/// An error in a call of `what` at `span`; `made` are the tensors it is about.
pub(crate) fn raise(what: &str, violation: &Violation, span: Span, made: &[&Storage]) -> Box<Raise> {
    let subject: Cow<'_, str> = if what.is_empty() || violation.message.contains(what) {
        violation.message.as_str().into()
    } else {
        format!("{what}: {}", violation.message).into()
    };
    let label = if violation.operand.is_empty() { "here".to_owned() } else { format!("`{}`", violation.operand) };
    let mut diagnostic = Diagnostic::error(violation.id, subject).at(span, label);
    for storage in made {
        if storage.loc.line > 0 {
            let shape = super::view::shape_text(storage.shape.iter().map(|&n| i64::from(n)));
            let text = format!("`{}` is made here: {shape} {} in {}", storage.name, storage.dtype, storage.space);
            diagnostic = diagnostic.with(span_of(storage.loc), text);
        }
    }
    if !violation.help.is_empty() {
        diagnostic = diagnostic.help(violation.help.as_str());
    }
    Raise::new(diagnostic)
}

/// The candidate most like `word`, for "did you mean".
pub(crate) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| (distance(word, c), c))
        .filter(|&(d, c)| d <= (c.len().max(word.len()) / 3).max(1))
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

/// Edit distance over bytes; swapping neighbours counts once.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let width = b.len() + 1;
    let mut table: Vec<usize> = (0..(a.len() + 1) * width).map(|k| if k < width { k } else { 0 }).collect();
    for i in 1..=a.len() {
        table[i * width] = i;
        for j in 1..=b.len() {
            let at = i * width + j;
            let replace = table[at - width - 1] + usize::from(a[i - 1] != b[j - 1]);
            table[at] = replace.min(table[at - 1] + 1).min(table[at - width] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                table[at] = table[at].min(table[at - 2 * width - 2] + 1);
            }
        }
    }
    table[a.len() * width + b.len()]
}
