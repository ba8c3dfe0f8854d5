//! Source files from disk, with optional replacements of the kernel's text or of constants.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nki_frontend::{HostArray, Loader};

use crate::kernel::Disk;

/// Reads from disk, and records the files read.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    /// The kernel's file.
    file: &'a Path,
    /// Its text, if not from disk.
    text: Option<&'a str>,
    /// Top-level constants with replaced values.
    constants: Vec<(&'a str, &'a str)>,
    /// The paths read from disk, each with a hash of its contents if it existed.
    read: Mutex<BTreeMap<PathBuf, Option<u64>>>,
}

impl<'a> Sources<'a> {
    /// The sources of a kernel's file. With a text, the file need not exist.
    pub(crate) fn new(file: &'a Path, text: Option<&'a str>) -> Self {
        Sources { file, text, constants: Vec::new(), read: Mutex::default() }
    }

    /// Replaces the value of a constant.
    pub(crate) fn set(&mut self, name: &'a str, value: &'a str) {
        self.constants.push((name, value));
    }

    /// The paths read, with hashes of their contents.
    pub(crate) fn into_read(self) -> BTreeMap<PathBuf, Option<u64>> {
        self.read.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, path: &Path, hash: Option<u64>) {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_path_buf(), hash);
    }
}

impl Loader for Sources<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        let own = path == self.file;
        let mut text = match self.text.filter(|_| own) {
            Some(text) => text.to_owned(),
            None => {
                let text = Disk.read(path);
                self.note(path, text.as_ref().ok().map(|text| hash(text.as_bytes())));
                text?
            }
        };
        for (name, value) in self.constants.iter().filter(|_| own) {
            text = with_constant(&text, name, value);
        }
        Ok(text)
    }

    fn array(&self, path: &Path) -> Result<HostArray, String> {
        self.note(path, hash_of(path));
        Disk.array(path)
    }
}

/// FNV-1a: stable across releases, unlike the standard library's hash.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// A hash of a regular file's contents, if it can be read. A pipe can be read only once, and a device may be endless.
pub(crate) fn hash_of(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    std::fs::read(path).ok().map(|bytes| hash(&bytes))
}

/// The number of a top-level line `NAME = value` that does not continue on the next line.
pub(crate) fn constant_line(text: &str, name: &str) -> Option<usize> {
    text.lines().position(|line| {
        let Some(rest) = line.strip_prefix(name) else { return false };
        let rest = rest.trim_start();
        let value = match rest.strip_prefix(':') {
            // An annotation.
            Some(annotated) => annotated.split_once('=').map(|x| x.1),
            None => rest.strip_prefix('='),
        };
        let Some(value) = value else { return false };
        let value = value.split('#').next().unwrap_or_default().trim();
        !value.is_empty() && !value.starts_with('=') && !value.ends_with(['\\', '(', '[', '{', ','])
    })
}

/// The names of the top-level constants, as found by [`constant_line`].
pub(crate) fn constants(text: &str) -> Vec<&str> {
    let name = |line: &'_ str| line.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(line.len());
    let names = text.lines().map(|line| &line[..name(line)]);
    names.filter(|name| !name.is_empty() && constant_line(text, name).is_some()).collect()
}

/// The text with a constant's value replaced. Line numbers do not change.
pub(crate) fn with_constant(text: &str, name: &str, value: &str) -> String {
    let Some(at) = constant_line(text, name) else { return text.to_string() };
    let mut out = String::with_capacity(text.len());
    for (i, line) in text.split_inclusive('\n').enumerate() {
        if i == at {
            out += &format!("{name} = {value}{}", if line.ends_with('\n') { "\n" } else { "" });
        } else {
            out += line;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_replaced_in_their_line() {
        let text =
            "import nki\nBLOCK_SIZE = 3\nBLOCK: int = 2  # tiles\n\ndef f():\n    BLOCK = 9\n    return BLOCK == 1\n";
        let changed = with_constant(text, "BLOCK", "4");
        assert!(changed.contains("BLOCK_SIZE = 3\nBLOCK = 4\n\n") && changed.contains("    BLOCK = 9"));
        assert_eq!(constant_line("X == 3\nY = (\n 1)\n", "X"), None);
        assert_eq!(constant_line("X == 3\nY = (\n 1)\n", "Y"), None);
        assert_eq!(constants(text), ["BLOCK_SIZE", "BLOCK"]);
    }
}
