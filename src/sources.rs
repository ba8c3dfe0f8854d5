//! Source files from disk, with optional replacements of the kernel's text or of constants.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nki_frontend::{HostArray, Loader, constants};

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

/// Whether the text has a top-level constant of this name that a sweep can set.
///
/// # Errors
/// If a later statement binds the name again: the value would have no effect.
pub(crate) fn has_constant(text: &str, name: &str) -> Result<bool, String> {
    let Some(found) = constants(text).into_iter().find(|c| c.name == name) else { return Ok(false) };
    match found.bound_again {
        None => Ok(true),
        Some(line) => Err(format!(
            "{name}: line {line} assigns the constant again, so another value at its first line would have no effect; give the second one another name"
        )),
    }
}

/// The text with a constant's value replaced. Line numbers do not change.
pub(crate) fn with_constant(text: &str, name: &str, value: &str) -> String {
    let mut out = text.to_owned();
    if let Some(constant) = constants(text).into_iter().find(|c| c.name == name) {
        out.replace_range(constant.value, value);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_replaced_in_their_line() {
        let text = "import nki\nBLOCK_SIZE = 3\nBLOCK: int = 2; N = 1  # tiles\n\ndef f():\n    BLOCK = 9\n    return BLOCK == 1\n";
        let changed = with_constant(text, "BLOCK", "4");
        assert_eq!(changed, text.replace("BLOCK: int = 2;", "BLOCK: int = 4;"));
        assert_eq!(with_constant(text, "BLOC", "4"), text);
    }

    #[test]
    fn a_constant_that_is_assigned_twice_is_an_error() {
        assert_eq!(has_constant("W = 1\n", "W"), Ok(true));
        assert_eq!(has_constant("W = 1\n", "V"), Ok(false));
        assert!(has_constant("W = 1\nW = min(W, 2)\n", "W").unwrap_err().starts_with("W: line 2 assigns"));
    }
}
