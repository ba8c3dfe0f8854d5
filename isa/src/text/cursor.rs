//! Reads the tokens of one line.

use std::fmt::Display;

use super::{is_name_char, is_word_char, is_word_start};

/// An error message and its byte position in the line.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) at: usize,
    pub(super) message: String,
}

pub(super) type Parsed<T> = Result<T, Problem>;

#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Cursor { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Position of the next token, for [`Self::problem_at`].
    pub(super) fn mark(&mut self) -> usize {
        self.space();
        self.at
    }

    pub(super) fn problem<T>(&mut self, message: impl Into<String>) -> Parsed<T> {
        let at = self.mark();
        self.problem_at(at, message)
    }

    pub(super) fn problem_at<T>(&self, at: usize, message: impl Into<String>) -> Parsed<T> {
        Err(Problem { at, message: message.into() })
    }

    /// The text at the cursor, for messages.
    fn found(&mut self) -> String {
        self.space();
        let rest = self.rest();
        let word: String = rest.chars().take_while(|&c| is_word_char(c) || c == '%').take(30).collect();
        match rest.chars().next() {
            None => "the end of the line".into(),
            Some(_) if !word.is_empty() => format!("`{word}`"),
            Some(c) => format!("`{c}`"),
        }
    }

    pub(super) fn expected<T>(&mut self, what: impl Display) -> Parsed<T> {
        let found = self.found();
        self.problem(format!("expected {what}, found {found}"))
    }

    /// Takes a symbol if it is next.
    pub(super) fn take(&mut self, symbol: &str) -> bool {
        self.space();
        let taken = self.rest().starts_with(symbol);
        if taken {
            self.at += symbol.len();
        }
        taken
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.take(symbol) { Ok(()) } else { self.expected(format_args!("`{symbol}`")) }
    }

    /// Takes a keyword if it is next as a whole word.
    pub(super) fn keyword(&mut self, word: &str) -> bool {
        let taken = self.peek_word() == word;
        if taken {
            self.at += word.len();
        }
        taken
    }

    /// The name at the cursor, possibly empty.
    pub(super) fn peek_word(&mut self) -> &'a str {
        self.space();
        let rest = self.rest();
        let end =
            if rest.starts_with(is_word_start) { rest.find(|c| !is_word_char(c)).unwrap_or(rest.len()) } else { 0 };
        &rest[..end]
    }

    /// A plain word.
    pub(super) fn word(&mut self, what: &str) -> Parsed<&'a str> {
        let word = self.peek_word();
        if word.is_empty() {
            return self.expected(what);
        }
        self.at += word.len();
        Ok(word)
    }

    /// A name (possibly with dots) or a quoted string.
    pub(super) fn name(&mut self, what: &str) -> Parsed<String> {
        if self.is_string() {
            return self.string();
        }
        let rest = self.rest();
        if !rest.starts_with(is_word_start) {
            return self.expected(what);
        }
        let end = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
        self.at += end;
        Ok(rest[..end].to_owned())
    }

    pub(super) fn is_string(&mut self) -> bool {
        self.space();
        self.rest().starts_with('"')
    }

    /// A quoted string.
    pub(super) fn string(&mut self) -> Parsed<String> {
        let start = self.mark();
        self.expect("\"")?;
        let mut out = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(out);
                }
                '\\' => {
                    let escape = chars.next().map(|(_, c)| c);
                    out.push(match escape {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some(c @ ('"' | '\\')) => c,
                        Some('u') => {
                            let digits: String = chars
                                .by_ref()
                                .map(|(_, c)| c)
                                .skip_while(|&c| c == '{')
                                .take_while(|&c| c != '}')
                                .collect();
                            match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                                Some(c) => c,
                                None => {
                                    return self
                                        .problem_at(self.at + at, "`\\u{...}` takes a character's hexadecimal number");
                                }
                            }
                        }
                        _ => {
                            return self
                                .problem_at(self.at + at, "unknown escape: use \\n, \\t, \\\", \\\\ or \\u{...}");
                        }
                    });
                }
                c => out.push(c),
            }
        }
        self.problem_at(start, "the string is not closed")
    }

    /// The text of a quoted string without escapes, as used for data.
    pub(super) fn raw_string(&mut self) -> Parsed<(usize, &'a str)> {
        let start = self.mark();
        self.expect("\"")?;
        let Some(end) = self.rest().find('"') else {
            return self.problem_at(start, "the string is not closed");
        };
        let text = &self.rest()[..end];
        self.at += end + 1;
        Ok((start + 1, text))
    }

    /// The number text (sign, digits, point, exponent) at the cursor.
    fn peek_number(&mut self) -> &'a str {
        self.space();
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut end = usize::from(bytes.first() == Some(&b'-'));
        while let Some(&b) = bytes.get(end) {
            let after_exponent = end > 0 && matches!(bytes[end - 1], b'e' | b'E');
            // A second point belongs to a range: `0..4`.
            let point = b == b'.' && bytes.get(end + 1) != Some(&b'.') && !rest[..end].contains('.');
            let exponent = matches!(b, b'e' | b'E') && end > 0 && bytes[end - 1].is_ascii_digit();
            if !(b.is_ascii_digit() || point || exponent || (after_exponent && matches!(b, b'-' | b'+'))) {
                break;
            }
            end += 1;
        }
        &rest[..end]
    }

    /// An integer of some width.
    pub(super) fn int<T: std::str::FromStr>(&mut self, what: &str) -> Parsed<T> {
        self.space();
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let end = sign + rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if end == sign {
            return self.expected(what);
        }
        let text = &rest[..end];
        match text.parse() {
            Ok(value) => {
                self.at += end;
                Ok(value)
            }
            Err(_) => self.problem(format!("{text} is out of range for {what}")),
        }
    }

    /// A number: an integer unless it has a point or an exponent.
    pub(super) fn number(&mut self) -> Parsed<crate::arg::Imm> {
        let text = self.peek_number();
        if text.contains(['.', 'e', 'E']) {
            return match text.parse() {
                Ok(value) => {
                    self.at += text.len();
                    Ok(crate::arg::Imm::Float(value))
                }
                Err(_) => self.problem(format!("`{text}` is not a number")),
            };
        }
        self.int("a 64-bit integer").map(crate::arg::Imm::Int)
    }

    /// Whether a number is next.
    pub(super) fn is_number(&mut self) -> bool {
        self.space();
        let rest = self.rest().strip_prefix('-').unwrap_or(self.rest());
        rest.starts_with(|c: char| c.is_ascii_digit())
    }

    pub(super) fn is_end(&mut self) -> bool {
        self.space();
        self.rest().is_empty()
    }
}
