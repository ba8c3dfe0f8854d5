//! Diagnostics for a terminal.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::source::{FileId, SourceMap, floor_char};

/// Whether to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorChoice {
    /// Escape codes.
    Color,
    /// Plain text.
    Plain,
}

/// One diagnostic, with the source lines it is about; ends without a line end.
pub fn render(diagnostic: &Diagnostic, map: &SourceMap, color: ColorChoice) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.id);
    let mut group = Group::with_title(title);
    // One snippet per file, files in order of first mention, the primary one first.
    let mut shown: Vec<FileId> = Vec::new();
    let mut ordered: Vec<&Label> = diagnostic.labels.iter().collect();
    ordered.sort_by_key(|l| !l.primary);
    for label in &ordered {
        let (path, line, column) = label.place.resolve(map);
        let Some(underlined) = label.place.underline(map) else {
            let mut origin = Origin::path(path.to_string());
            if line > 0 {
                origin = origin.line(line as usize);
                if column > 0 {
                    origin = origin.char_column(column as usize);
                }
            }
            group = group.element(origin);
            if !label.text.is_empty() {
                let text = format!("line {line}: {}", label.text);
                group = group.element(Level::NOTE.message(text));
            }
            continue;
        };
        if shown.contains(&underlined.file) {
            continue;
        }
        shown.push(underlined.file);
        let source = map.text(underlined.file).unwrap_or("");
        let mut snippet = Snippet::source(source).path(path.to_string()).fold(true);
        for label in &ordered {
            if label.place.file(map) != Some(underlined.file) {
                continue;
            }
            let Some(span) = label.place.underline(map) else {
                continue;
            };
            let start = floor_char(source, span.start as usize);
            let end = floor_char(source, (span.end as usize).max(start));
            let kind = if label.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
            let mut annotation = kind.span(start..end);
            if !label.text.is_empty() {
                annotation = annotation.label(label.text.as_str());
            }
            snippet = snippet.annotation(annotation);
        }
        group = group.element(snippet);
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = match color {
        ColorChoice::Color => Renderer::styled(),
        ColorChoice::Plain => Renderer::plain(),
    };
    renderer.render(&[group])
}

/// All diagnostics, with an empty line between them and a line end after the last.
pub fn render_all(diagnostics: &[Diagnostic], map: &SourceMap, color: ColorChoice) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&render(diagnostic, map, color));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Span;

    fn map() -> (SourceMap, FileId) {
        let mut map = SourceMap::new();
        let f = map.add("k.py", "a = nl.ndarray((200, 4))\nb = 1\nnisa.memset(a, 0.0)\n");
        (map, f)
    }

    #[test]
    fn shows_both_places_note_and_help() {
        let (map, f) = map();
        let d = Diagnostic::error("uninitialized-read", "dst: 200 partitions, limit 128")
            .at(Span::new(f, 31 + 12, 31 + 13), "this operand")
            .with(Span::new(f, 4, 24), "made here")
            .note("the first dimension is the partition")
            .help("split it into tiles of 128");
        assert_eq!(
            render(&d, &map, ColorChoice::Plain),
            "\
error[uninitialized-read]: dst: 200 partitions, limit 128
 --> k.py:3:13
  |
1 | a = nl.ndarray((200, 4))
  |     -------------------- made here
2 | b = 1
3 | nisa.memset(a, 0.0)
  |             ^ this operand
  |
  = note: the first dimension is the partition
  = help: split it into tiles of 128"
        );
    }

    #[test]
    fn without_text_the_line_is_named() {
        let mut map = SourceMap::new();
        let f = map.add_name("gone.py");
        let d = Diagnostic::warning("uninitialized-read", "t was never written").at_loc(
            Span::new(f, 10, 12),
            7,
            3,
            "read here",
        );
        assert_eq!(
            render(&d, &map, ColorChoice::Plain),
            "\
warning[uninitialized-read]: t was never written
--> gone.py:7:3
 = note: line 7: read here"
        );
    }

    #[test]
    fn spans_outside_the_text_do_not_panic() {
        let (map, f) = map();
        for (start, end) in [(0, 0), (50, 10), (60, 900), (900, 901)] {
            let d = Diagnostic::info("uninitialized-read", "x").at(Span::new(f, start, end), "here");
            assert!(render(&d, &map, ColorChoice::Plain).contains("k.py"));
        }
    }
}
