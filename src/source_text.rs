//! Python source files as text, decoded as in Python.

use std::collections::BTreeMap;
use std::io::{self, Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::memory::read_source;

/// Texts of pipes and devices, which can be read only once.
static STREAMS: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// Reads a source file; a pipe or device only once per process, since it is empty afterwards. Line ends are Python's; a carriage return alone becomes
/// a line feed, which has the same length.
///
/// # Errors
/// If the file cannot be read, has a NUL byte, or does not have its declared encoding (UTF-8 by default).
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let from_disk = || decode(read_source(path)?).map_err(|problem| Error::new(ErrorKind::InvalidData, problem));
    if std::fs::metadata(path).is_ok_and(|file| file.is_file()) {
        return from_disk();
    }
    let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = streams.get(path) {
        return Ok(text.clone());
    }
    let text = from_disk()?;
    streams.insert(path.to_path_buf(), text.clone());
    Ok(text)
}

fn decode(bytes: Vec<u8>) -> Result<String, String> {
    if let Some(at) = bytes.iter().position(|&b| b == 0) {
        return Err(format!("line {} has a NUL byte, which Python source must not contain", line_of(&bytes, at)));
    }
    let text = match declared(&bytes).as_deref() {
        None | Some("utf-8" | "utf8" | "utf-8-sig" | "u8") => String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            let (byte, line) = (e.as_bytes()[at], line_of(e.as_bytes(), at));
            format!("byte 0x{byte:02x} in line {line} is not UTF-8; save the file as UTF-8, or declare its encoding in the first line: # -*- coding: latin-1 -*-")
        })?,
        Some("latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1") => bytes.into_iter().map(char::from).collect(),
        Some(name @ ("ascii" | "us-ascii")) => match bytes.iter().position(|b| !b.is_ascii()) {
            Some(at) => {
                return Err(format!("byte 0x{:02x} in line {} is not {name}, the declared encoding", bytes[at], line_of(&bytes, at)));
            }
            None => bytes.into_iter().map(char::from).collect(),
        },
        Some(name) => return Err(format!("the file declares the encoding `{name}`; it must be UTF-8, Latin-1 or ASCII")),
    };
    Ok(if text.contains('\r') { unix_ends(&text) } else { text })
}

/// The encoding declared in one of the first two lines (PEP 263), in Python's normalised form.
fn declared(bytes: &[u8]) -> Option<String> {
    declaration(&String::from_utf8_lossy(bytes)).map(|name| name.to_ascii_lowercase().replace('_', "-"))
}

/// The text with its declared encoding, if any, changed to UTF-8.
pub(crate) fn as_utf8(text: &str) -> String {
    let Some(name) = declaration(text).filter(|name| !name.to_ascii_lowercase().starts_with("utf")) else {
        return text.to_owned();
    };
    let at = name.as_ptr() as usize - text.as_ptr() as usize;
    [&text[..at], "utf-8", &text[at + name.len()..]].concat()
}

/// The name of an encoding declared in one of the first two lines (PEP 263), as written.
fn declaration(text: &str) -> Option<&str> {
    for line in text.split(['\n', '\r']).filter(|line| !line.is_empty()).take(2) {
        let line = line.trim_start_matches('\u{feff}').trim_start_matches([' ', '\t', '\u{c}']);
        // A line of code ends the search.
        let comment = line.strip_prefix('#')?;
        let mut rest = comment;
        while let Some(at) = rest.find("coding") {
            rest = &rest[at + "coding".len()..];
            let Some(name) = rest.strip_prefix([':', '=']) else { continue };
            let name = name.trim_start_matches([' ', '\t']);
            let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(name.len());
            if end > 0 {
                return Some(&name[..end]);
            }
        }
    }
    None
}

/// The line, from 1, of a byte.
fn line_of(bytes: &[u8], at: usize) -> usize {
    let before = &bytes[..at];
    1 + (0..at).filter(|&i| before[i] == b'\n' || before[i] == b'\r' && bytes.get(i + 1) != Some(&b'\n')).count()
}

/// Converts single carriage returns to line feeds. CRLF pairs are kept, so that positions do not change.
fn unix_ends(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        out.push(if c == '\r' && characters.peek() != Some(&'\n') { '\n' } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String, String> {
        decode(bytes.to_vec())
    }

    #[test]
    fn line_ends_are_those_of_python() {
        assert_eq!(text(b"a\rb\r\nc\n\rd"), Ok("a\nb\r\nc\n\nd".into()));
        assert_eq!(text(b""), Ok(String::new()));
    }

    #[test]
    fn encodings_are_those_that_are_declared() {
        assert_eq!(text(b"# -*- coding: latin-1 -*-\n# caf\xe9"), Ok("# -*- coding: latin-1 -*-\n# caf\u{e9}".into()));
        assert_eq!(
            text(b"#!/usr/bin/python\n# vim: set fileencoding=ISO_8859-1 :\n'\xe9'").map(|t| t.ends_with("'\u{e9}'")),
            Ok(true)
        );
        assert!(text(b"x = 1\n# coding: latin-1\n'\xe9'").unwrap_err().starts_with("byte 0xe9 in line 3 is not UTF-8"));
        assert!(text(b"# coding: ascii\n'\xe9'").unwrap_err().contains("line 2 is not ascii"));
        assert!(text(b"# coding: koi8-r\n").unwrap_err().contains("`koi8-r`"));
        assert_eq!(
            text("\u{feff}# coding: utf-8\n# \u{e9}".as_bytes()),
            Ok("\u{feff}# coding: utf-8\n# \u{e9}".into())
        );
        // Text that only resembles a declaration.
        assert!(text(b"# the coding is plain\n").is_ok());
    }

    #[test]
    fn a_declaration_becomes_utf8() {
        assert_eq!(as_utf8("#!x\r\n# coding=latin_1 \u{e9}\r\n"), "#!x\r\n# coding=utf-8 \u{e9}\r\n");
        for same in ["# coding: utf8\n", "x = 'coding: latin-1'\n", ""] {
            assert_eq!(as_utf8(same), same);
        }
    }

    #[test]
    fn nul_bytes_have_a_line() {
        assert_eq!(text(b"a\r\nb\rc\n\0"), Err("line 4 has a NUL byte, which Python source must not contain".into()));
    }
}
