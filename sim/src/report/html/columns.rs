//! Columns of integers in a page: variable-length, compressed, as base64.
//!
//! A kernel of a million instructions has thirty million numbers; as JSON they would take some hundred megabytes, in this format about ten.
//! `decode.js` decodes them.

use serde::Serialize;

/// The position of a column in the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Head {
    /// The name of the column: `event.start`.
    name: &'static str,
    /// The number of values.
    count: usize,
    /// Each is the difference from the previous one.
    delta: bool,
}

/// Columns by name, in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Columns {
    heads: Vec<Head>,
    bytes: Vec<u8>,
}

impl Columns {
    /// Adds numbers that are unrelated to their neighbours.
    pub(super) fn plain(&mut self, name: &'static str, values: impl IntoIterator<Item = i64>) {
        let mut count = 0;
        for value in values {
            self.number(value);
            count += 1;
        }
        self.heads.push(Head { name, count, delta: false });
    }

    /// Adds numbers that are close to their neighbours, such as times.
    pub(super) fn near(&mut self, name: &'static str, values: impl IntoIterator<Item = i64>) {
        let (mut count, mut before) = (0, 0);
        for value in values {
            self.number(value - before);
            before = value;
            count += 1;
        }
        self.heads.push(Head { name, count, delta: true });
    }

    /// Seven bits per byte, lowest first; the sign is the lowest bit of all.
    fn number(&mut self, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)) as u64;
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    /// Names and counts, and the bytes as text.
    ///
    /// # Errors
    /// If the bytes cannot be compressed.
    pub(super) fn finish(self) -> std::io::Result<(Vec<Head>, String)> {
        Ok((self.heads, base64(&crate::report::gzip(&self.bytes)?)))
    }
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, b| bits << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let six = (bits >> (18 - 6 * digit)) as usize & 63;
            out.push(if digit <= group.len() { DIGITS[six] as char } else { '=' });
        }
    }
    out
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read as _;

    /// Decodes columns, as `decode.js` does.
    pub(in super::super) fn decode(heads: &serde_json::Value, text: &str) -> BTreeMap<String, Vec<i64>> {
        let digit = |c: u8| match c {
            b'A'..=b'Z' => u32::from(c - b'A'),
            b'a'..=b'z' => u32::from(c - b'a') + 26,
            b'0'..=b'9' => u32::from(c - b'0') + 52,
            b'+' => 62,
            b'/' => 63,
            _ => 0,
        };
        let mut packed = Vec::new();
        for group in text.as_bytes().chunks(4) {
            let bits = group.iter().fold(0u32, |bits, c| bits << 6 | digit(*c));
            let padding = group.iter().filter(|c| **c == b'=').count();
            packed.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
        }
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&*packed).read_to_end(&mut bytes).expect("gzip");
        let mut at = bytes.into_iter();
        let mut number = || {
            let (mut value, mut shift) = (0u64, 0);
            loop {
                let byte = at.next().expect("a number");
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return (value >> 1) as i64 ^ -((value & 1) as i64);
                }
            }
        };
        let mut out = BTreeMap::new();
        for head in heads.as_array().expect("heads") {
            let (count, delta) = (head["count"].as_u64().expect("count"), head["delta"] == true);
            let mut before = 0;
            let mut column = Vec::new();
            for _ in 0..count {
                before = if delta { before + number() } else { number() };
                column.push(before);
            }
            out.insert(head["name"].as_str().expect("name").to_string(), column);
        }
        assert_eq!(at.next(), None, "bytes after the last column");
        out
    }

    #[test]
    fn columns_read_back() {
        let near = vec![0, 5, 1_000_000_000_000, 4, -3, i64::from(u32::MAX)];
        let plain = vec![-1, 0, 1, 63, 64, -64, -65, 1 << 40, 127, 128];
        let mut columns = Columns::default();
        columns.near("near", near.clone());
        columns.plain("none", []);
        columns.plain("plain", plain.clone());
        let (heads, text) = columns.finish().unwrap();
        let read = decode(&serde_json::to_value(&heads).unwrap(), &text);
        assert_eq!(read["near"], near);
        assert_eq!(read["plain"], plain);
        assert!(read["none"].is_empty());
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        let of = |text: &str| base64(text.as_bytes());
        assert_eq!([of(""), of("f"), of("fo"), of("foo"), of("foobar")], ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYmFy"]);
    }
}
