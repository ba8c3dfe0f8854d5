//! The project file: settings beside the kernels, in `nki-sim.toml` or under `[tool.nki-sim]` of `pyproject.toml`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nki_diag::Level;
use nki_diag::levels::Source;
use toml::{Table, Value};

use crate::findings::Lists;

/// A separate file; in the same directory it takes precedence over [`PYPROJECT`].
const OWN: &str = "nki-sim.toml";

/// Python's project file, which may contain our table.
const PYPROJECT: &str = "pyproject.toml";

/// The levels in the nearest project file at or above the directory of `file`; none if there is no such file.
///
/// # Errors
/// If that file cannot be read, is not valid TOML, or has an unknown key or word.
pub(crate) fn levels_for(file: &Path) -> Result<Source, String> {
    match find(file)? {
        Some((path, table)) => levels_of(&table, &path),
        None => Ok(Source::default()),
    }
}

/// Candidates for the project file of `file`, nearest first.
pub(crate) fn candidates(file: &Path) -> Vec<PathBuf> {
    directory_of(file).iter().flat_map(|d| d.ancestors().flat_map(|a| [a.join(OWN), a.join(PYPROJECT)])).collect()
}

/// The directory of a file, without `..` and links, which would mislead the search.
fn directory_of(file: &Path) -> Option<PathBuf> {
    let parent = match file.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    std::fs::canonicalize(parent).ok()
}

/// The nearest project file and its settings.
fn find(file: &Path) -> Result<Option<(PathBuf, Table)>, String> {
    let Some(directory) = directory_of(file) else { return Ok(None) };
    for directory in directory.ancestors() {
        let own = directory.join(OWN);
        if let Some(text) = read(&own)? {
            let table = text.parse().map_err(|e| format!("`{}`: {e}", own.display()))?;
            return Ok(Some((own, table)));
        }
        let shared = directory.join(PYPROJECT);
        // Ignore a file without our table, even if it is invalid.
        if let Some(text) = read(&shared)?.filter(|text| text.contains("nki-sim")) {
            let table: Table = text.parse().map_err(|e| format!("`{}`: {e}", shared.display()))?;
            match table.get("tool").and_then(|tool| tool.get("nki-sim")) {
                Some(Value::Table(ours)) => return Ok(Some((shared, ours.clone()))),
                Some(_) => return Err(format!("`{}`: tool.nki-sim is not a table", shared.display())),
                None => {}
            }
        }
    }
    Ok(None)
}

fn read(path: &Path) -> Result<Option<String>, String> {
    match crate::memory::read_text(path) {
        Ok(text) => Ok(Some(text)),
        // A directory of that name is not a project file; neither is a path below a file.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        // The user may have no permission to read the directories above home.
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(None),
        Err(e) => Err(format!("cannot read `{}`: {e}", path.display())),
    }
}

fn levels_of(table: &Table, path: &Path) -> Result<Source, String> {
    let mut lists = Lists::default();
    for (key, value) in table {
        let list = match key.as_str() {
            "deny" => &mut lists.deny,
            "warn" => &mut lists.warn,
            "allow" => &mut lists.allow,
            _ => return Err(format!("`{}`: unknown key `{key}`; deny, warn and allow are known", path.display())),
        };
        *list = strings(value).ok_or_else(|| {
            format!(
                "`{}`: {key} is not a list of strings, e.g. {key} = [\"bug\", \"overlapping-write\"]",
                path.display()
            )
        })?;
    }
    lists.source(|level: Level| format!("{} of {}", level.name(), path.display()))
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(folder: &Path, files: &[(&str, &str)]) -> Result<Source, String> {
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        levels_for(&folder.join("a/b/../b/k.py"))
    }

    #[test]
    fn the_nearest_file_with_settings_counts() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        assert!(found(folder.path(), &[]).unwrap().is_empty());
        let outer = found(folder.path(), &[("pyproject.toml", "[tool.nki-sim]\ndeny = [\"bug\"]\n")]).unwrap();
        assert!(!outer.is_empty());
        // A file without our table, valid or not, is skipped.
        assert_eq!(found(folder.path(), &[("a/b/pyproject.toml", "[tool.ruff]\nline-length = 1\n")]).unwrap(), outer);
        assert_eq!(found(folder.path(), &[("a/b/pyproject.toml", "= broken")]).unwrap(), outer);
        let own = found(folder.path(), &[("a/nki-sim.toml", "allow = [\"bug\"]\nwarn = []\n")]).unwrap();
        assert_ne!(own, outer);
        let beside = [("a/pyproject.toml", "[tool.nki-sim]\ndeny = [\"strict\"]\n")];
        assert_eq!(found(folder.path(), &beside).unwrap(), own);
    }

    #[test]
    fn what_is_wrong_names_the_file() {
        for (text, says) in [
            ("denny = []", "nki-sim.toml`: unknown key `denny`; deny, warn and allow are known"),
            ("deny = \"bug\"", "deny is not a list of strings"),
            ("deny = [1]", "deny is not a list of strings"),
            ("deny = [\"bugs\"]", "did you mean `bug`?"),
            ("deny = [\"bug\"]\nallow = [\"bug\"]", "`bug` is given twice"),
            ("deny = [", "nki-sim.toml`: "),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
            let error = found(folder.path(), &[("nki-sim.toml", text)]).unwrap_err();
            assert!(error.contains(says) && error.contains("nki-sim.toml"), "{text}: {error}");
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        let error = found(folder.path(), &[("pyproject.toml", "[tool]\nnki-sim = 3")]).unwrap_err();
        assert!(error.contains("tool.nki-sim is not a table"), "{error}");
    }
}
