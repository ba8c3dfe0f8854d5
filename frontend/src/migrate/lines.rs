//! Replacements for statements, and lines shared by several statements.

use std::ops::Range;

use nki_diag::{FileId, Place, Span};

use super::{Edit, Outcome, Pass, by_hand};
use crate::syntax::{Interner, Stmt, StmtKind, parse};

/// Keywords of the heads of statements with a body.
const HEADS: &[&str] =
    &["async", "case", "class", "def", "elif", "else", "except", "finally", "for", "if", "try", "while", "with"];

/// A line with several statements, or with the body of a compound statement.
pub(super) struct Line {
    /// Number of statements of the block on it.
    pub(super) statements: usize,
    /// The text before the statements: line breaks if each gets a separate line.
    gaps: Vec<Range<usize>>,
    /// The indentation of each statement in that case.
    indent: String,
    /// Whether one of them becomes several lines.
    is_split: bool,
}

impl Pass<'_> {
    /// The text of the line before a statement.
    fn before_on_line(&self, span: Span) -> &str {
        let start = self.text[..span.start as usize].rfind('\n').map_or(0, |at| at + 1);
        &self.text[start..span.start as usize]
    }

    /// The line of the first statement of a block, if it shares the line.
    pub(super) fn shared_line(&self, body: &[Stmt]) -> Option<Line> {
        let first = body.first()?;
        let before = self.before_on_line(first.span);
        let blank = &before[..before.len() - before.trim_start().len()];
        let mut gaps = Vec::new();
        let mut indent = blank.to_owned();
        if blank.len() < before.len() {
            let head = before.trim_end();
            let word = before.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            if !head.ends_with(':') || !HEADS.contains(&word) {
                return None;
            }
            let start = first.span.start as usize;
            gaps.push(start - (before.len() - head.len())..start);
            indent += "    ";
        }
        let mut statements = 1;
        for pair in body.windows(2) {
            let gap = pair[0].span.end as usize..pair[1].span.start as usize;
            if self.text[gap.clone()].trim() != ";" || self.text[gap.clone()].contains('\n') {
                break;
            }
            gaps.push(gap);
            statements += 1;
        }
        // Those with a body start a line, so the others have none.
        let is_simple = |s: &Stmt| !matches!(s.kind, StmtKind::Def(..) | StmtKind::Class(..));
        (!gaps.is_empty() && is_simple(first)).then_some(Line { statements, gaps, indent, is_split: false })
    }

    /// The statements of a line: each gets a separate line if one becomes several lines.
    pub(super) fn on_one_line(&mut self, stmts: &[Stmt], line: Line) {
        self.line = Some(line);
        for stmt in stmts {
            self.stmt(stmt);
        }
        let Some(line) = self.line.take().filter(|l| l.is_split) else { return };
        for span in line.gaps {
            self.edits.push(Edit { span, text: format!("\n{}", line.indent) });
        }
    }

    /// The lines that replace a statement, with its indentation.
    pub(super) fn joined(&mut self, span: Span, lines: &[String]) -> Outcome<String> {
        let indent = match &self.line {
            Some(line) => line.indent.clone(),
            None => self.before_on_line(span).to_owned(),
        };
        let text = match lines {
            [line] => line.clone(),
            _ if indent.chars().all(char::is_whitespace) => lines.join(&format!("\n{indent}")),
            _ => {
                return Err(by_hand(span, "several statements on a line", "write each statement on a line of its own"));
            }
        };
        self.parses(span, &indent, &text)?;
        if let Some(line) = &mut self.line {
            line.is_split |= lines.len() > 1;
        }
        Ok(text)
    }

    /// Rejects new text that is not valid Python.
    fn parses(&self, span: Span, indent: &str, text: &str) -> Outcome<()> {
        let indent = &indent[..indent.len() - indent.trim_start().len()];
        let whole = if indent.is_empty() { text.to_owned() } else { format!("def f():\n{indent}{text}\n") };
        let (_, errors) = parse::parse(span.file, &whole, &mut Interner::new());
        if errors.is_empty() {
            return Ok(());
        }
        let old: Vec<&str> = self.kinds.source(span).split_whitespace().collect();
        Err(by_hand(span, &old.join(" "), "statements of the current language: no replacement is known"))
    }

    /// The text with all edits.
    pub(super) fn edited(&self) -> String {
        let mut text = String::new();
        let mut at = 0;
        for edit in &self.edits {
            debug_assert!(edit.span.start >= at, "edits overlap at {}: {:?}", at, edit);
            text += &self.text[at..edit.span.start];
            text += &edit.text;
            at = edit.span.end;
        }
        text + &self.text[at..]
    }

    /// The last edit before the first syntax error of the new text; the first one if all are after it.
    pub(super) fn faulty(&self, file: FileId, text: &str) -> Option<usize> {
        let (_, errors) = parse::parse(file, text, &mut Interner::new());
        let error = errors.first()?;
        let at = match error.labels.first().map(|label| &label.place) {
            Some(Place::Span(span) | Place::Loc { span, .. }) => span.start as usize,
            _ => 0,
        };
        let (mut new, mut old, mut last) = (0, 0, 0);
        for (index, edit) in self.edits.iter().enumerate() {
            new += edit.span.start - old;
            if new > at {
                break;
            }
            last = index;
            new += edit.text.len();
            old = edit.span.end;
        }
        (!self.edits.is_empty()).then_some(last)
    }
}
