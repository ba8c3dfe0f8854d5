//! `nki-sim batch JOBS.jsonl`: one result per job, in the order of the jobs.

mod places;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::Failure;
use crate::cli::BatchArgs;
use crate::jobs::pool::{INTERVAL, Launcher, Limits, WorkerSlot, cores};
use crate::jobs::work::{ProtectedFile, Reply, Status, Task};
use crate::jobs::{self, Job};
use crate::output::{NewFile, print};
use crate::places::{Inputs, check_places};
use places::Places;

/// Maximum number of jobs read before the result of the first of them is written.
const WINDOW: u64 = 1024;
/// Number of cached results, for repeated jobs.
const KEPT: usize = 4096;
/// Maximum bytes of a line.
const LONGEST: u64 = 64 << 20;

/// Runs all jobs.
pub(crate) fn run(args: &BatchArgs) -> Result<(), Failure> {
    let stream = args.jobs_file == Path::new("-");
    let mut inputs = Inputs::default();
    if !stream {
        inputs.add("the file of jobs", &args.jobs_file);
    }
    args.parent.into_iter().for_each(end_with);
    check_places(&[("--json-lines", args.json_lines.as_deref())], &inputs)?;
    let cores = cores();
    let workers = args.limits.jobs.map_or(cores, |n| n as usize);
    let limits = Limits::of_run(&args.limits, workers)?;
    let launcher = Launcher::new(cores / workers)?;
    let mut reader: Box<dyn BufRead + Send> = if stream {
        Box::new(BufReader::new(io::stdin()))
    } else {
        let file =
            File::open(&args.jobs_file).map_err(|e| format!("cannot read `{}`: {e}", args.jobs_file.display()))?;
        Box::new(BufReader::new(file))
    };
    // An existing file in its place may be an input of a later job.
    let mut writer = args.json_lines.as_deref().map(NewFile::create).transpose()?;
    let scheduler = Arc::new(Scheduler::default());
    scheduler.lock().places = Places::of(args);
    let entrance = scheduler.clone();
    // Not a scoped thread: it may block on input that is no longer needed.
    std::thread::spawn(move || {
        let ended = entrance.read(&mut *reader, limits);
        entrance.close(ended.err());
    });
    let mut all_passed = true;
    std::thread::scope(|scope| -> Result<(), Failure> {
        for _ in 0..workers {
            scope.spawn(|| scheduler.work(WorkerSlot::new(launcher.clone())));
        }
        while let Some(answer) = scheduler.next() {
            all_passed &= answer.passed;
            let done = match &mut writer {
                None => {
                    print(&answer.line);
                    Ok(())
                }
                Some(file) => answer.check_inputs(args).and_then(|()| file.write(answer.line.as_bytes())),
            };
            if let Err(why) = done {
                scheduler.abandon();
                return Err(why.into());
            }
        }
        Ok(())
    })?;
    writer.map_or(Ok(()), NewFile::finish)?;
    if let Some(why) = scheduler.lock().failure.take() {
        return Err(Failure::Call(why));
    }
    if all_passed { Ok(()) } else { Err(Failure::Kernel) }
}

/// Ends this process soon after its parent, the only consumer of the results. The workers end with it.
fn end_with(parent: u32) {
    #[cfg(unix)]
    std::thread::spawn(move || {
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(INTERVAL);
        }
        std::process::exit(0);
    });
    #[cfg(not(unix))]
    let _ = parent;
}

/// A line of the output.
struct ResultLine {
    /// The job's line.
    number: u64,
    line: String,
    passed: bool,
    /// Files that the job read.
    read: Vec<PathBuf>,
}

impl ResultLine {
    /// Checks that the job read no file that the results will replace.
    fn check_inputs(&self, args: &BatchArgs) -> Result<(), String> {
        let mut inputs = Inputs::default();
        for path in &self.read {
            inputs.add(&format!("`{}`, which the job of line {} reads", path.display(), self.number), path);
        }
        args.json_lines.as_ref().map_or(Ok(()), |path| inputs.check("--json-lines", path))
    }
}

/// A job in the queue.
struct QueuedJob {
    /// Its position among the results, from 1.
    place: u64,
    /// Its line.
    number: u64,
    id: Option<Value>,
    job: Job,
    /// The job without its id: equal jobs have equal results.
    key: String,
    limits: Limits,
    /// Files that its outputs must not replace.
    kept: Vec<ProtectedFile>,
}

/// The jobs in progress, and the results that cannot be written yet.
#[derive(Default)]
struct Scheduler {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of jobs read.
    read: u64,
    /// Number of results written.
    written: u64,
    /// Whether the input has ended.
    closed: bool,
    /// The error that ended reading early.
    failure: Option<String>,
    queue: VecDeque<QueuedJob>,
    /// Jobs that wait for the result of an equal job.
    duplicates: HashMap<String, Vec<QueuedJob>>,
    answers: BTreeMap<u64, ResultLine>,
    known: Known,
    places: Places,
}

/// Cached results by job; the oldest are evicted.
#[derive(Default)]
struct Known {
    replies: HashMap<String, Reply>,
    order: VecDeque<String>,
}

impl Known {
    fn keep(&mut self, key: &str, reply: &Reply) {
        if self.replies.insert(key.to_owned(), reply.clone()).is_none() {
            self.order.push_back(key.to_owned());
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.replies.remove(&oldest);
        }
    }
}

impl Scheduler {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads jobs, at most [`WINDOW`] ahead of the written results.
    fn read(&self, from: &mut dyn BufRead, limits: Limits) -> Result<(), String> {
        let mut number = 0;
        loop {
            let mut state = self.lock();
            while state.read >= state.written + WINDOW && !state.closed {
                state = self.wait(state);
            }
            if state.closed {
                return Ok(());
            }
            drop(state);
            let Some(line) = line(from).map_err(|e| format!("cannot read the jobs: {e}"))? else { return Ok(()) };
            number += 1;
            let line = line.map(|text| without_mark(number, text));
            let text = match &line {
                Ok(text) if text.trim().is_empty() => continue,
                Ok(text) => Ok(text.as_str()),
                Err(why) => Err((None, why.clone())),
            };
            let place = {
                let mut state = self.lock();
                state.read += 1;
                state.read
            };
            let job = text.and_then(|text| jobs::read::<Job>(text).map_err(|why| (id_of(text), why)));
            self.take(place, number, job, limits);
            self.changed.notify_all();
        }
    }

    /// Accepts a job: its result is cached, or an equal job is in progress, or it enters the queue.
    fn take(&self, place: u64, number: u64, job: Result<Job, (Option<Value>, String)>, limits: Limits) {
        let head = |id: &Option<Value>| Head { number, id: id.clone() };
        let refused = |id: &Option<Value>, why: String| {
            let reply = Reply::without(Status::Refused, why);
            self.lock().answers.insert(place, head(id).answer(&reply));
        };
        let mut job = match job {
            Ok(job) => job,
            Err((id, why)) => return refused(&id, why),
        };
        let id = job.id.take();
        let limits = match limits.for_job(job.limits()) {
            Ok(limits) => limits,
            Err(why) => return refused(&id, why),
        };
        job.max_memory = Some(limits.memory.to_string());
        job.max_seconds = Some(limits.seconds);
        let mut state = self.lock();
        let kept = match state.places.take(number, &job) {
            Ok(kept) => kept,
            Err(why) => {
                drop(state);
                return refused(&id, why);
            }
        };
        let key = serde_json::to_string(&job).unwrap_or_default();
        if let Some(reply) = state.known.replies.get(&key).cloned() {
            drop(state);
            // Reads files, so the lock is not held.
            if reply.is_current() {
                self.lock().answers.insert(place, head(&id).answer(&reply));
                return;
            }
            state = self.lock();
        }
        let waiting = QueuedJob { place, number, id, job, key, limits, kept };
        match state.duplicates.get_mut(&waiting.key) {
            Some(duplicates) => duplicates.push(waiting),
            None => {
                state.duplicates.insert(waiting.key.clone(), Vec::new());
                state.queue.push_back(waiting);
            }
        }
    }

    /// Worker loop: performs jobs until there are no more.
    fn work(&self, mut slot: WorkerSlot) {
        loop {
            let mut state = self.lock();
            let waiting = loop {
                match state.queue.pop_front() {
                    Some(waiting) => break waiting,
                    None if state.closed && state.duplicates.is_empty() => return,
                    None => state = self.wait(state),
                }
            };
            drop(state);
            let QueuedJob { place, number, id, job, key, limits, kept } = waiting;
            let keeps = job.out.is_none();
            let reply = slot.perform(&Task::Run(Box::new(job), kept), limits);
            let mut state = self.lock();
            if reply.is_cacheable && keeps {
                state.known.keep(&key, &reply);
            }
            state.answers.insert(place, Head { number, id }.answer(&reply));
            let duplicates = state.duplicates.remove(&key).unwrap_or_default();
            if !duplicates.is_empty() {
                // Reads files, so the lock is not held.
                drop(state);
                let current = reply.is_cacheable && reply.is_current();
                state = self.lock();
                Self::settle(&mut state, &key, &reply, current, duplicates);
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Answers the waiting jobs with this result if their files have not changed; otherwise the next of them is queued.
    fn settle(state: &mut State, key: &str, reply: &Reply, current: bool, mut duplicates: Vec<QueuedJob>) {
        if current {
            for f in duplicates {
                state.answers.insert(f.place, Head { number: f.number, id: f.id }.answer(reply));
            }
            return;
        }
        match state.duplicates.get_mut(key) {
            // Another equal job has arrived meanwhile.
            Some(waiting) => waiting.append(&mut duplicates),
            None => {
                let next = duplicates.remove(0);
                state.duplicates.insert(key.to_owned(), duplicates);
                state.queue.push_back(next);
            }
        }
    }

    /// The next result; `None` after the last one.
    fn next(&self) -> Option<ResultLine> {
        let mut state = self.lock();
        loop {
            let place = state.written + 1;
            if let Some(answer) = state.answers.remove(&place) {
                state.written = place;
                drop(state);
                self.changed.notify_all();
                return Some(answer);
            }
            if state.closed && state.written == state.read {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// Marks the end of the input.
    fn close(&self, failure: Option<String>) {
        let mut state = self.lock();
        state.closed = true;
        state.failure = failure;
        drop(state);
        self.changed.notify_all();
    }

    /// The results cannot be written: stops all work.
    fn abandon(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.queue.clear();
        state.duplicates.clear();
        drop(state);
        self.changed.notify_all();
    }
}

/// The line without the byte order mark that some editors insert before the first line.
fn without_mark(number: u64, text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) if number == 1 => rest.to_owned(),
        _ => text,
    }
}

/// The `id` of an object that is not a valid job.
fn id_of(text: &str) -> Option<Value> {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(text).ok()?;
    fields.remove("id")
}

/// The identification of a result.
struct Head {
    number: u64,
    id: Option<Value>,
}

impl Head {
    /// The line with the result.
    fn answer(self, reply: &Reply) -> ResultLine {
        let id = self.id.map_or_else(String::new, |id| format!("\"id\":{id},"));
        let result = reply.result.get();
        let rest = result.strip_prefix('{').unwrap_or(result);
        ResultLine {
            number: self.number,
            line: format!("{{\"line\":{},{id}{rest}\n", self.number),
            passed: reply.status == Status::Passed,
            read: reply.read.keys().cloned().collect(),
        }
    }
}

/// The next line; `None` at the end. The inner error is a line that cannot be a job.
pub(super) fn line(from: &mut dyn BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut bytes = Vec::new();
    if from.take(LONGEST).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() as u64 == LONGEST && bytes.last() != Some(&b'\n') {
        // The rest of the line.
        while !bytes.ends_with(b"\n") {
            bytes.clear();
            if from.take(LONGEST).read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
        }
        return Ok(Some(Err(format!("the line has more than {}", nki_diag::memory::size(LONGEST)))));
    }
    Ok(Some(String::from_utf8(bytes).map_err(|_| "the line is not UTF-8".into())))
}
