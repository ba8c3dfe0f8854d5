//! Output folders of jobs: distinct, and without overwriting a file that the call or another job reads.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::{line, without_mark};
use crate::cli::BatchArgs;
use crate::jobs::work::ProtectedFile;
use crate::jobs::{self, Job};
use crate::places::{Inputs, resolved};

/// The files read by the jobs of a call, and the folders that they write to.
#[derive(Default)]
pub(super) struct Places {
    inputs: Inputs,
    /// Files that were added.
    seen: HashSet<PathBuf>,
    /// The line of the job that writes to each folder.
    folders: HashMap<PathBuf, u64>,
    /// Files of the call itself, which may not exist.
    own: Vec<ProtectedFile>,
    /// Whether all jobs were read in advance.
    complete: bool,
}

impl Places {
    /// The files of a call. A regular job file is read in advance, so that no job replaces an input of a later one.
    pub(super) fn of(args: &BatchArgs) -> Self {
        let mut out = Places::default();
        let files = [("the file of jobs", Some(&args.jobs_file)), ("--json-lines", args.json_lines.as_ref())];
        for (what, path) in files {
            if let Some(path) = path.filter(|path| *path != Path::new("-")) {
                out.own.push(ProtectedFile { what: what.into(), path: path.clone() });
            }
        }
        out.complete = fs::metadata(&args.jobs_file).is_ok_and(|m| m.is_file());
        // An unreadable file is reported when the jobs are performed.
        if let Some(file) = out.complete.then(|| File::open(&args.jobs_file).ok()).flatten() {
            let (mut reader, mut number) = (BufReader::new(file), 0);
            while let Ok(Some(text)) = line(&mut reader) {
                number += 1;
                if let Some(job) = text.ok().and_then(|text| jobs::read::<Job>(&without_mark(number, text)).ok()) {
                    out.add(number, &job);
                }
            }
        }
        out
    }

    /// Adds the files that a job reads.
    fn add(&mut self, number: u64, job: &Job) {
        for path in job.files() {
            if !self.seen.contains(&path) {
                self.inputs.add(&format!("`{}`, which the job of line {number} reads", path.display()), &path);
                self.seen.insert(path);
            }
        }
    }

    /// The files that a job must not replace. Reserves its output folder.
    ///
    /// # Errors
    /// If an earlier job writes to the same folder.
    pub(super) fn take(&mut self, number: u64, job: &Job) -> Result<Vec<ProtectedFile>, String> {
        if !self.complete {
            self.add(number, job);
        }
        let Some(out) = &job.out else { return Ok(Vec::new()) };
        let first = *self.folders.entry(resolved(Path::new(out))).or_insert(number);
        if first != number {
            return Err(format!("`out`: the job of line {first} also writes to `{out}`"));
        }
        let mut kept = self.own.clone();
        for entry in fs::read_dir(out).into_iter().flatten().flatten() {
            let path = entry.path();
            // Outputs are files of this kind.
            if path.extension().is_some_and(|e| e == "npy")
                && let Some(what) = self.inputs.find(&path)
            {
                kept.push(ProtectedFile { what: what.to_owned(), path });
            }
        }
        Ok(kept)
    }
}
