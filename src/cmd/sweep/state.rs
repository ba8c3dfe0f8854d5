//! Finished points in a file, a line of JSON each. A line is written in one piece; a line that was cut off is dropped.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::cli::SweepArgs;
use crate::row::Row;
use crate::session::Session;
use crate::sources::{hash, hash_of};

#[derive(Serialize, Deserialize)]
struct Line {
    /// The request.
    key: String,
    /// The sources that were read, each with a hash of its text on disk.
    files: Vec<(String, u64)>,
    row: Row,
}

/// The state of a sweep.
pub(super) struct State {
    path: PathBuf,
    file: Mutex<File>,
    known: HashMap<String, Row>,
}

/// All that a result depends on, besides the sources.
pub(super) fn key(args: &SweepArgs, session: &Session, point: &[(String, String)]) -> Result<String, String> {
    let k = &args.kernel;
    // A file that is an argument counts with its length and time: only its shape and control values matter.
    let mut parts: Vec<String> = Vec::new();
    for (name, value) in &k.args {
        let file = value.rsplit_once(':').map_or(value.as_str(), |x| x.0);
        let stamp = std::fs::metadata(file).ok().map(|m| (m.len(), m.modified().ok()));
        parts.push(format!("{name}={value}{}", stamp.map_or(String::new(), |s| format!("@{s:?}"))));
    }
    let stamp = |(name, file): &(String, String)| (name.clone(), file.clone(), hash_of(file.as_ref()));
    let expected: Vec<_> = args.expect.iter().map(stamp).collect();
    let expected = (!expected.is_empty()).then_some((expected, args.rtol, args.atol));
    let params = args.timing.params.as_ref().and_then(|p| std::fs::read(p).ok()).map(|bytes| hash(&bytes));
    Ok(format!(
        "{} {} {:?} {:?} {} {:?} {:?} {parts:?} {:?} {} {params:?} {} {:?} {point:?} {:?} {:?} {expected:?}",
        env!("CARGO_PKG_VERSION"),
        k.file.display(),
        k.kernel,
        crate::settings::target(k.target)?.to_string(),
        k.lnc,
        k.programs,
        k.max_steps,
        args.timing.set,
        args.timing.schedule,
        session.precise,
        session.judge.levels(),
        session.capacity,
        k.max_memory
    ))
}

impl State {
    /// Opens or makes the file, and drops a last line that is not whole.
    pub(super) fn open(path: &Path) -> Result<State, String> {
        let fail = |e: std::io::Error| format!("--state `{}`: {e}", path.display());
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(fail)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(fail)?;
        let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        file.set_len(whole as u64).map_err(fail)?;
        file.seek(SeekFrom::End(0)).map_err(fail)?;
        let mut known = HashMap::new();
        let mut hashes: HashMap<String, Option<u64>> = HashMap::new();
        for (i, line) in text[..whole].split(|b| *b == b'\n').enumerate().filter(|(_, l)| !l.is_empty()) {
            let line: Line = serde_json::from_slice(line).map_err(|e| {
                format!("--state `{}`: line {} is not of a sweep ({e}); give another file", path.display(), i + 1)
            })?;
            let same = line
                .files
                .iter()
                .all(|(f, h)| *hashes.entry(f.clone()).or_insert_with(|| hash_of(f.as_ref())) == Some(*h));
            if same {
                known.insert(line.key, line.row);
            }
        }
        Ok(State { path: path.to_path_buf(), file: Mutex::new(file), known })
    }

    /// The result of an earlier call, if its sources are the same still.
    pub(super) fn finished(&self, key: &str) -> Option<Row> {
        self.known.get(key).cloned()
    }

    /// Keeps a result.
    pub(super) fn add(&self, key: &str, files: &[String], row: &Row) -> Result<(), String> {
        let fail = |e: &dyn std::fmt::Display| format!("--state `{}`: {e}", self.path.display());
        let files = files.iter().filter_map(|f| Some((f.clone(), hash_of(f.as_ref())?))).collect();
        let mut text =
            serde_json::to_vec(&Line { key: key.to_string(), files, row: row.clone() }).map_err(|e| fail(&e))?;
        text.push(b'\n');
        let mut file = self.file.lock().map_err(|e| fail(&e))?;
        file.write_all(&text).and_then(|()| file.flush()).map_err(|e| fail(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(latency: f64) -> Row {
        Row { point: vec![("n".into(), "1".into())], latency_us: Some(latency), ..Row::default() }
    }

    #[test]
    fn a_cut_line_is_dropped_and_a_changed_source_counts_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, source) = (folder.path().join("s"), folder.path().join("k.py"));
        std::fs::write(&source, "a").unwrap();
        let files = [source.display().to_string()];
        let s = State::open(&path).unwrap();
        s.add("one", &files, &row(1.5)).unwrap();
        s.add("two", &files, &row(2.5)).unwrap();
        drop(s);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();
        let s = State::open(&path).unwrap();
        assert_eq!(s.finished("one"), Some(row(1.5)));
        assert_eq!(s.finished("two"), None);
        s.add("two", &files, &row(2.5)).unwrap();
        drop(s);
        assert_eq!(State::open(&path).unwrap().finished("two"), Some(row(2.5)));
        std::fs::write(&source, "b").unwrap();
        assert_eq!(State::open(&path).unwrap().finished("one"), None);
        std::fs::write(&path, "{}\n").unwrap();
        assert!(State::open(&path).is_err());
    }
}
