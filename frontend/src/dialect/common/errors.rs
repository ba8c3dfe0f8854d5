//! Conversion of broken rules to diagnostics with locations.

use std::borrow::Cow;

use nki_diag::{Diagnostic, Span};
use nki_isa::{Loc, Violation};

use crate::build::tensor::Storage;
use crate::eval::error::Raise;

/// The span of a location.
pub(crate) fn span_of(loc: Loc) -> Span {
    Span { file: nki_diag::FileId(loc.file), start: loc.start, end: loc.end }
}

/// An error in a call of `what` at `span`; `made` are the related tensors.
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
            let shape = crate::build::tensor::tuple_text(storage.shape.iter().map(|&n| i64::from(n)));
            let text = format!("`{}` is allocated here: {shape} {} in {}", storage.name, storage.dtype, storage.space);
            diagnostic = diagnostic.with(span_of(storage.loc), text);
        }
    }
    if !violation.help.is_empty() {
        diagnostic = diagnostic.help(violation.help.as_str());
    }
    Raise::new(diagnostic)
}
