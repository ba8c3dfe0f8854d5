//! Finished points in a file, one line of JSON each. Lines are written atomically; a truncated line is dropped.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::cli::SweepArgs;
use crate::row::Row;
use crate::session::Session;
use crate::sources::{hash, hash_of};

#[derive(Serialize, Deserialize)]
struct Line {
    /// The key of the result.
    key: String,
    /// The sources that were read, each with a hash of its contents on disk.
    files: Vec<(String, u64)>,
    row: Row,
}

/// The first bytes of each line.
const START: &[u8] = br#"{"key":""#;

fn not_of_a_sweep(path: &Path, line: usize, why: &str) -> String {
    format!("--state `{}`: line {line} was not written by a sweep ({why}); give another file", path.display())
}

/// The state of a sweep.
#[derive(Debug)]
pub(super) struct State {
    path: PathBuf,
    file: Mutex<File>,
    /// The start of the keys of this sweep.
    settings: String,
    known: HashMap<String, Row>,
}

/// Everything that the results of a sweep depend on, except the sources and the points: all options, and the contents of all files that they
/// name.
pub(super) fn settings(args: &SweepArgs, session: &Session) -> Result<String, String> {
    // These decide which points are timed and what is shown, not the result of a point.
    let options = SweepArgs {
        grid: Vec::new(),
        plot: None,
        state: None,
        jobs: None,
        top: 0,
        json: None,
        csv: None,
        ..args.clone()
    };
    let named = args.kernel.args.iter().chain(&args.expected.expect);
    let files = named.map(|(_, value)| value.rsplit_once(':').map_or(&**value, |x| x.0)).map(Path::new);
    let contents: Vec<Option<u64>> = files.chain(args.timing.changes.params.as_deref()).map(hash_of).collect();
    let Session { judge, capacity, static_descriptors, precise, unwritten, max_steps, .. } = session;
    let target = crate::settings::target(args.kernel.target)?;
    let cores = crate::kernel::physical_cores(&args.kernel)?;
    let environment = (target, cores, judge.levels(), capacity, static_descriptors, precise, unwritten, max_steps);
    Ok(format!("{} {options:?} {contents:?} {environment:?}", env!("CARGO_PKG_VERSION")))
}

impl State {
    /// Opens or creates the file with an exclusive lock, and drops a truncated last line. Files of other formats are not modified.
    /// Results belong to a sweep with the same [`settings`].
    pub(super) fn open(path: &Path, settings: &str) -> Result<State, String> {
        let fail = |e: std::io::Error| format!("--state `{}`: {e}", path.display());
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(fail)?;
        if !file.metadata().map_err(fail)?.is_file() {
            return Err(format!("--state `{}`: it is not a regular file", path.display()));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "--state `{}`: another sweep writes to it; wait for it, or give another file",
                    path.display()
                ));
            }
            // A file system without locks.
            Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => return Err(fail(e)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(fail)?;
        let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        let cut = &text[whole..];
        if !cut.starts_with(START) && !START.starts_with(cut) {
            let number = text[..whole].iter().filter(|b| **b == b'\n').count() + 1;
            return Err(not_of_a_sweep(path, number, "it starts differently"));
        }
        let mut known = HashMap::new();
        let mut hashes: HashMap<String, Option<u64>> = HashMap::new();
        for (i, line) in text[..whole].split(|b| *b == b'\n').enumerate().filter(|(_, l)| !l.is_empty()) {
            let line: Line = serde_json::from_slice(line).map_err(|e| not_of_a_sweep(path, i + 1, &e.to_string()))?;
            let same = line
                .files
                .iter()
                .all(|(f, h)| *hashes.entry(f.clone()).or_insert_with(|| hash_of(f.as_ref())) == Some(*h));
            if same {
                known.insert(line.key, line.row);
            }
        }
        file.set_len(whole as u64).map_err(fail)?;
        file.seek(SeekFrom::End(0)).map_err(fail)?;
        let settings = format!("{:016x}", hash(settings.as_bytes()));
        Ok(State { path: path.to_path_buf(), file: Mutex::new(file), settings, known })
    }

    fn key(&self, point: &[(String, String)]) -> String {
        format!("{} {point:?}", self.settings)
    }

    /// The result of an earlier call, if its sources have not changed.
    pub(super) fn finished(&self, point: &[(String, String)]) -> Option<Row> {
        self.known.get(&self.key(point)).cloned()
    }

    /// Keeps a result.
    pub(super) fn add(&self, point: &[(String, String)], files: &[String], row: &Row) -> Result<(), String> {
        let fail = |e: &dyn std::fmt::Display| format!("--state `{}`: {e}", self.path.display());
        let files = files.iter().filter_map(|f| Some((f.clone(), hash_of(f.as_ref())?))).collect();
        let line = Line { key: self.key(point), files, row: row.clone() };
        let mut text = serde_json::to_vec(&line).map_err(|e| fail(&e))?;
        text.push(b'\n');
        let mut file = self.file.lock().map_err(|e| fail(&e))?;
        file.write_all(&text).and_then(|()| file.flush()).map_err(|e| fail(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(value: &str) -> Vec<(String, String)> {
        vec![("n".into(), value.into())]
    }

    fn row(latency: f64) -> Row {
        Row { point: vec![("n".into(), "1".into())], latency_us: Some(latency), ..Row::default() }
    }

    #[test]
    fn a_cut_line_is_dropped_and_a_changed_source_counts_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, source) = (folder.path().join("s"), folder.path().join("k.py"));
        std::fs::write(&source, "a").unwrap();
        let files = [source.display().to_string()];
        let s = State::open(&path, "").unwrap();
        s.add(&point("one"), &files, &row(1.5)).unwrap();
        s.add(&point("two"), &files, &row(2.5)).unwrap();
        drop(s);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();
        let s = State::open(&path, "").unwrap();
        assert_eq!(s.finished(&point("one")), Some(row(1.5)));
        assert_eq!(s.finished(&point("two")), None);
        s.add(&point("two"), &files, &row(2.5)).unwrap();
        drop(s);
        assert_eq!(State::open(&path, "").unwrap().finished(&point("two")), Some(row(2.5)));
        std::fs::write(&source, "b").unwrap();
        assert_eq!(State::open(&path, "").unwrap().finished(&point("one")), None);
    }

    #[test]
    fn a_file_of_something_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        for text in ["{}\n", "no line end", "a\nb", "{\"keys\": 1"] {
            std::fs::write(&path, text).unwrap();
            assert!(State::open(&path, "").unwrap_err().contains("was not written by a sweep"), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let latency = |n: u32| f64::from(n).sqrt() * 1e3 / 7.0;
        let s = State::open(&path, "").unwrap();
        for n in 1..1000 {
            s.add(&point(&n.to_string()), &[], &row(latency(n))).unwrap();
        }
        drop(s);
        let s = State::open(&path, "").unwrap();
        for n in 1..1000 {
            assert_eq!(s.finished(&point(&n.to_string())), Some(row(latency(n))));
        }
    }

    #[test]
    fn a_state_is_of_one_sweep() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let first = State::open(&path, "").unwrap();
        assert!(State::open(&path, "").unwrap_err().contains("another sweep writes to it"));
        drop(first);
        State::open(&path, "").unwrap();
    }
}
