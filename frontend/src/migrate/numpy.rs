//! NumPy's functions on tiles, which Beta 1 treats as those of the language. They are renamed before the file is migrated, so that
//! all other code handles functions of the language only.

use std::ops::Range;

use nki_diag::FileId;

use super::flow::Flow;
use super::kinds::children;
use super::{Api, Change, Edit, Migration, Pass, by_hand, one_line};
use crate::dialect::beta1::ops::function as of_numpy;
use crate::syntax::{self, Argument, Expr, ExprKind, Interner};

/// Maximum number of rounds of renaming: each finds calls that depend on results of the previous one.
const ROUNDS: usize = 100;

/// A file in which calls with tiles use functions of the language.
pub(super) struct Renamed {
    pub(super) text: String,
    /// Of the original text.
    edits: Vec<Edit>,
}

impl Renamed {
    /// Renames the calls that a reading of the file finds, until there are no more.
    pub(super) fn of(file: FileId, text: &str, api: Api) -> Self {
        let mut renamed = Self { text: text.to_owned(), edits: Vec::new() };
        // Files without NumPy are not read again.
        if !text.contains("numpy") {
            return renamed;
        }
        for _ in 0..ROUNDS {
            let mut names = Interner::new();
            let (mut module, errors) = syntax::parse::parse(file, &renamed.text, &mut names);
            if !errors.is_empty() {
                break;
            }
            syntax::resolve::resolve(&mut module);
            let flow = Flow::of(&renamed.text, &module.body, &names, api);
            let found = Pass::over(&renamed.text, &module.body, &names, flow, api).of_numpy;
            if found.is_empty() || !renamed.apply(found) {
                break;
            }
        }
        renamed
    }

    /// Replaces spans of the current text. Returns false if there is nothing new.
    fn apply(&mut self, mut found: Vec<Edit>) -> bool {
        found.sort_by_key(|edit| edit.span.start);
        found.dedup_by_key(|edit| edit.span.start);
        let originals: Vec<Edit> =
            found.iter().map(|e| Edit { span: self.original(&e.span), text: e.text.clone() }).collect();
        for Edit { span, text } in found.iter().rev() {
            self.text.replace_range(span.clone(), text);
        }
        self.edits.extend(originals);
        self.edits.sort_by_key(|edit| edit.span.start);
        !found.is_empty()
    }

    /// The span of the original text for a span of the current one.
    fn original(&self, span: &Range<usize>) -> Range<usize> {
        let place = |at: usize| {
            let mut moved = 0isize;
            for Edit { span, text } in &self.edits {
                let start = span.start.wrapping_add_signed(moved);
                if at <= start {
                    break;
                }
                if at < start + text.len() {
                    return span.start;
                }
                moved += text.len() as isize - span.len() as isize;
            }
            at.wrapping_add_signed(-moved)
        };
        place(span.start)..place(span.end)
    }

    /// A migration of the renamed text as one of the original text.
    pub(super) fn of_original(self, original: &str, migration: Migration) -> Migration {
        if self.edits.is_empty() {
            return migration;
        }
        let changes: Vec<Change> = migration
            .changes
            .iter()
            .map(|change| {
                let span = self.original(&change.span);
                let old = if change.rewritten { one_line(&original[span.clone()]) } else { change.old.clone() };
                Change { span, old, ..change.clone() }
            })
            .collect();
        let is_within = |edit: &Edit| {
            changes.iter().any(|c| c.rewritten && c.span.start <= edit.span.start && edit.span.end <= c.span.end)
        };
        let alone = self.edits.iter().filter(|edit| !is_within(edit)).map(|edit| Change {
            span: edit.span.clone(),
            old: original[edit.span.clone()].to_owned(),
            new: edit.text.clone(),
            rewritten: true,
        });
        let mut all: Vec<Change> = alone.collect();
        all.extend(changes);
        all.sort_by_key(|change| change.span.start);
        Migration { changes: all, ..migration }
    }
}

impl Pass<'_> {
    /// Records the calls of NumPy's functions with tiles in an expression.
    pub(super) fn note_numpy(&mut self, expr: &Expr) {
        for child in children(expr) {
            self.note_numpy(child);
        }
        let ExprKind::Call(callee, args) = &expr.kind else { return };
        let Some(name) = self.kinds.path(callee).and_then(|path| path.strip_prefix("numpy.").map(ToOwned::to_owned))
        else {
            return;
        };
        let of_tile = args.iter().any(|arg| match arg {
            Argument::Positional(e) | Argument::Keyword(_, e) => self.tile(e).is_some(),
            _ => false,
        });
        if !of_tile || matches!(&*name, "shape" | "ndim" | "size") {
            return;
        }
        let language = self.kinds.imported.iter().find(|(_, path)| *path == "nki.language").map(|(name, _)| *name);
        match (of_numpy(&name), language) {
            (Some(function), Some(language)) => {
                let text = format!("{}.{function}", self.kinds.names.name(language));
                self.of_numpy.push(Edit { span: callee.span.start as usize..callee.span.end as usize, text });
            }
            (Some(function), None) => {
                let instead = format!("import nki.language as nl, and nl.{function}");
                self.report(by_hand(callee.span, &format!("np.{name} of a tile"), &instead));
            }
            (None, _) => {
                let construct = format!("np.{name} of a tile");
                self.report(by_hand(callee.span, &construct, "functions of nki.language or instructions of nki.isa"));
            }
        }
    }
}
