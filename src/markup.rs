//! Text for continuous integration: GitHub workflow commands, JUnit XML.

use std::fmt::Write as _;

/// A location in a file, for an annotation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot<'a> {
    /// The file as the user named it.
    pub(crate) file: &'a str,
    /// 1-based line, as text.
    pub(crate) line: &'a str,
    /// 1-based column, if known.
    pub(crate) column: Option<u32>,
}

/// A workflow command that annotates a line: `kind` is `error`, `warning` or `notice`.
pub(crate) fn annotation(kind: &str, spot: Option<Spot<'_>>, title: &str, message: &str) -> String {
    let mut at = String::new();
    if let Some(Spot { file, line, column }) = spot {
        let _ = write!(at, "file={},line={},", property(file), property(line));
        if let Some(column) = column {
            let _ = write!(at, "col={column},");
        }
    }
    format!("::{kind} {at}title={}::{}\n", property(title), data(message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Escapes text for XML content or attributes. Control characters, which XML 1.0 does not allow, become blanks; with `lines`, line ends are kept.
pub(crate) fn xml(text: &str, lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' if lines => out.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_command_is_escaped() {
        let spot = Spot { file: "a,b:c.py", line: "3", column: Some(5) };
        let text = annotation("error", Some(spot), "50%: x", "one\ntwo: 5%");
        assert_eq!(text, "::error file=a%2Cb%3Ac.py,line=3,col=5,title=50%25%3A x::one%0Atwo: 5%25\n");
        assert_eq!(annotation("notice", None, "t", "m"), "::notice title=t::m\n");
    }

    #[test]
    fn text_of_xml_has_no_markup_and_no_control_characters() {
        assert_eq!(xml("a<b> & \"c\"\u{1b}[1m\n", false), "a&lt;b&gt; &amp; &quot;c&quot; [1m ");
        assert_eq!(xml("a\nb\r\n", true), "a\nb \n");
    }
}
