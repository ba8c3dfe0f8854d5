//! The files of `nki-sim check`: the named ones, and the Python files in folders.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use nki_diag::Diagnostic;
use nki_frontend::{KernelInfo, Loader as _, kernels};

use crate::cli::CheckArgs;
use crate::kernel::Disk;
use crate::places::resolved;
use crate::run_line;
use crate::session::Session;

/// The files to check.
pub(super) struct Files {
    /// In the order of the call; those of a folder sorted by name.
    pub(super) paths: Vec<PathBuf>,
    /// Several paths or a folder were given, so files without a kernel are skipped.
    pub(super) several: bool,
    /// The common path prefix, as a name for all of them.
    pub(super) root: PathBuf,
}

impl Files {
    /// Finds the files of a call, without duplicates.
    ///
    /// # Errors
    /// If single-kernel options are given with several files, or a folder cannot be read or has no Python file.
    pub(super) fn of(args: &CheckArgs) -> Result<Self, String> {
        let given: Vec<&Path> = args.paths().collect();
        if given.len() == 1 && !given[0].is_dir() {
            return Ok(Files { paths: vec![given[0].to_path_buf()], several: false, root: given[0].to_path_buf() });
        }
        let option = if args.kernel.kernel.is_some() { Some("--kernel") } else { None };
        if let Some(option) = option.or(if args.kernel.args.is_empty() { None } else { Some("--arg") }) {
            return Err(format!(
                "{option} is for one file; several files take their arguments from comments such as `# nki-sim: x=float32[128,512]` above each kernel"
            ));
        }
        let (mut paths, mut seen) = (Vec::new(), HashSet::new());
        for path in &given {
            let mut found = Vec::new();
            if path.is_dir() {
                below(path, &mut found)?;
                if found.is_empty() {
                    return Err(format!("there is no .py file in `{}` or below it", path.display()));
                }
            } else {
                found.push(path.to_path_buf());
            }
            paths.extend(found.into_iter().map(plain).filter(|file| seen.insert(resolved(file))));
        }
        Ok(Files { paths, several: true, root: plain(common(&given)) })
    }
}

/// Adds the Python files below a folder, sorted by name. Skips folders whose names begin with a dot, `__pycache__` and links to folders.
fn below(folder: &Path, out: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |e| format!("cannot read directory `{}`: {e}", folder.display());
    let mut entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            if !name.to_string_lossy().starts_with('.') && name != "__pycache__" {
                below(&path, out)?;
            }
        } else if path.extension().is_some_and(|e| e == "py") && path.is_file() {
            out.push(path);
        }
    }
    Ok(())
}

/// A path without a leading `./`.
fn plain(path: PathBuf) -> PathBuf {
    path.strip_prefix(".").map_or_else(|_| path.clone(), Path::to_path_buf)
}

/// The deepest folder that contains all paths, as written.
fn common(paths: &[&Path]) -> PathBuf {
    let Some((first, others)) = paths.split_first() else { return PathBuf::new() };
    if others.is_empty() {
        return first.to_path_buf();
    }
    let mut root = first.parent().map(Path::to_path_buf).unwrap_or_default();
    while !others.iter().all(|path| path.starts_with(&root)) {
        if !root.pop() {
            // Absolute and relative paths have no common folder.
            return PathBuf::new();
        }
    }
    root
}

/// The kernels to check in one of several files.
pub(super) enum Content {
    /// The file defines no kernel.
    NoKernel,
    /// The file cannot be evaluated or read; compiling it reports the reason.
    Broken,
    /// Its kernels.
    Kernels {
        /// Kernels with a run line, or without required arguments.
        callable: Vec<String>,
        /// The others.
        others: Vec<String>,
    },
}

impl Content {
    /// The content of a file. A missing file is broken if it was named, not found in a folder.
    pub(super) fn of(file: &Path, session: &Session) -> Self {
        if file.extension().is_some_and(|e| e == "nkir") {
            return Content::Broken;
        }
        let Ok(text) = Disk.read(file) else { return Content::Broken };
        if !text.contains("nki") {
            return Content::NoKernel;
        }
        let listing = kernels(file, &Disk, None, session.memory);
        let marked = |kernel: &KernelInfo| {
            listing.sources.text(kernel.span.file).is_some_and(|text| run_line::is_above(kernel, text))
        };
        let is_kernel = |kernel: &&KernelInfo| kernel.decorated || marked(kernel);
        let (callable, others): (Vec<_>, Vec<_>) =
            listing.kernels.iter().filter(is_kernel).partition(|k| marked(k) || k.check(&[]).is_ok());
        if callable.is_empty() && others.is_empty() {
            // A file without kernels may use Python features that the evaluator does not support.
            let is_invalid = |d: &Diagnostic| d.is_error() && (d.id == "syntax-error" || text.contains("jit"));
            return if listing.diagnostics.iter().any(is_invalid) { Content::Broken } else { Content::NoKernel };
        }
        let names = |list: Vec<&KernelInfo>| list.into_iter().map(|k| k.name.clone()).collect();
        Content::Kernels { callable: names(callable), others: names(others) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_a_folder_in_common() {
        let of = |paths: &[&str]| common(&paths.iter().map(Path::new).collect::<Vec<_>>());
        assert_eq!(of(&["a/b"]), Path::new("a/b"));
        assert_eq!(of(&["a/b.py", "a/c/d.py"]), Path::new("a"));
        assert_eq!(of(&["a/b.py", "ab/c.py"]), Path::new(""));
        assert_eq!(of(&["/a/b.py", "/c.py"]), Path::new("/"));
        assert_eq!(of(&["/a/b.py", "c.py"]), Path::new(""));
        assert_eq!((plain("./a/b.py".into()), plain(".".into())), ("a/b.py".into(), "".into()));
        assert_eq!((plain("../a.py".into()), plain("/a.py".into())), ("../a.py".into(), "/a.py".into()));
    }
}
