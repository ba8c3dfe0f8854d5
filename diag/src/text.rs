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

/// One diagnostic, with its source lines; does not end with a line end.
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
        for (index, label) in ordered.iter().enumerate() {
            // Two operands of one tensor have the same label, and so have the levels of a recursion.
            if ordered[..index].contains(label) {
                continue;
            }
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

/// Maximum number of diagnostics in [`render_all`]: longer lists are not read, and each takes time in proportion to its file.
const SHOWN: usize = 100;

/// The first diagnostics, errors before others if not all are shown, separated by empty lines and with a line end after the last. A last
/// line counts the omitted ones.
pub fn render_all(diagnostics: &[Diagnostic], map: &SourceMap, color: ColorChoice) -> String {
    let errors = diagnostics.iter().filter(|d| d.is_error()).count();
    let mut left = [errors.min(SHOWN), SHOWN.saturating_sub(errors)];
    let mut hidden = [0, 0];
    let mut out = String::new();
    for diagnostic in diagnostics {
        let kind = usize::from(!diagnostic.is_error());
        if left[kind] == 0 {
            hidden[kind] += 1;
            continue;
        }
        left[kind] -= 1;
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&render(diagnostic, map, color));
        out.push('\n');
    }
    let count = |n: usize, what: &str| (n > 0).then(|| format!("{n} more {what}{}", if n == 1 { "" } else { "s" }));
    let more: Vec<String> = [count(hidden[0], "error"), count(hidden[1], "finding")].into_iter().flatten().collect();
    if !more.is_empty() {
        out.push_str(&format!("\n... and {}\n", more.join(", ")));
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
    fn equal_labels_are_shown_once() {
        let (map, f) = map();
        let allocated = Span::new(f, 4, 24);
        let d = Diagnostic::error("partition-size", "too many")
            .at(Span::new(f, 31, 37), "here")
            .with(allocated, "`a` is allocated here")
            .with(allocated, "`a` is allocated here")
            .with(allocated, "in this call");
        let text = render(&d, &map, ColorChoice::Plain);
        assert_eq!(text.matches("allocated").count(), 1, "{text}");
        assert_eq!(text.matches("in this call").count(), 1, "{text}");
    }

    #[test]
    fn of_many_the_first_are_shown_and_errors_before_warnings() {
        let (map, _) = map();
        let mut many: Vec<Diagnostic> = (0..150).map(|i| Diagnostic::warning("step-limit", format!("w{i}."))).collect();
        many.extend((0..30).map(|i| Diagnostic::error("step-limit", format!("e{i}."))));
        let text = render_all(&many, &map, ColorChoice::Plain);
        assert!(text.contains("w69.") && !text.contains("w70.") && text.contains("e29."), "{text}");
        assert!(text.ends_with("\n... and 80 more findings\n"), "{text}");
        assert_eq!(text.matches("[step-limit]").count(), 100);
    }

    #[test]
    fn long_texts_are_cut() {
        let d = Diagnostic::error("step-limit", "ä".repeat(100_000)).note("x".repeat(100_000));
        assert!(d.message.ends_with("... (196000 more bytes)"), "{}", &d.message[3990..]);
        assert!(d.notes[0].len() < 4100);
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
