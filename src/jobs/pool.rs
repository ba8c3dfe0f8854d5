//! Worker processes: each performs one task after the other, and is replaced when it exceeds its limits or dies.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nki_diag::memory::size;

use super::JobLimits;
use super::work::{Reply, Status, Task};
use crate::cli::LimitArgs;
use crate::{memory, python};

/// Interval for checking a worker's memory, and whether its task has been cancelled.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);
/// Memory of a worker in addition to its task's limit: the program itself, parsing, temporary copies.
const BESIDE: u64 = 256 << 20;
/// Number of characters of a dying worker's output that are reported.
const LAST_WORDS: u64 = 2000;

/// Limits of one job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    /// Wall-clock time.
    pub(crate) seconds: f64,
    /// Bytes.
    pub(crate) memory: u64,
}

impl Limits {
    /// The limits of a run with this number of concurrent workers. By default, they share the memory limit of kernels.
    ///
    /// # Errors
    /// If the option is not a valid size.
    pub(crate) fn of_run(args: &LimitArgs, workers: usize) -> Result<Limits, String> {
        let limit = memory::limit(args.max_memory.as_deref())?;
        let limit = if args.max_memory.is_none() { limit.shared_by(workers) } else { limit };
        Ok(Limits { seconds: args.max_seconds, memory: limit.bytes })
    }

    /// The limits of a job, which must not exceed those of the run.
    ///
    /// # Errors
    /// If they exceed them, or are invalid.
    pub(crate) fn for_job(self, wanted: JobLimits<'_>) -> Result<Limits, String> {
        let mut limits = self;
        if let Some(seconds) = wanted.seconds {
            if !(seconds > 0.0 && seconds.is_finite()) {
                return Err(format!("`max_seconds`: {seconds} is not a number of seconds above 0"));
            }
            if seconds > self.seconds {
                return Err(format!("`max_seconds`: {seconds} is more than the {} of the run", self.seconds));
            }
            limits.seconds = seconds;
        }
        if let Some(text) = wanted.memory {
            let bytes = memory::parse(text).map_err(|e| format!("`max_memory`: {e}"))?;
            if bytes > self.memory {
                return Err(format!("`max_memory`: {text} is more than the {} of the run", size(self.memory)));
            }
            limits.memory = bytes;
        }
        Ok(limits)
    }

    /// Memory at which the worker is killed, because its task has exceeded its own limit unnoticed.
    fn most_resident(self) -> u64 {
        self.memory.saturating_add(self.memory / 4).saturating_add(BESIDE)
    }
}

/// Processors of the machine.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Starts workers.
#[derive(Debug, Clone)]
pub(crate) struct Launcher {
    program: OsString,
    words: Vec<OsString>,
    /// Threads of each worker.
    threads: usize,
}

impl Launcher {
    /// Starts workers of this command with this number of threads each.
    ///
    /// # Errors
    /// If the system does not report this program's path.
    pub(crate) fn new(threads: usize) -> Result<Self, String> {
        let (program, mut words) = python::own_command()?;
        words.push("worker".into());
        Ok(Launcher { program, words, threads: threads.max(1) })
    }

    fn start(&self) -> Result<Worker, String> {
        let fail = |e: io::Error| format!("cannot start a worker: {e}");
        let errors = tempfile::tempfile().map_err(fail)?;
        let mut child = Command::new(&self.program)
            .args(&self.words)
            .env("RAYON_NUM_THREADS", self.threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(errors.try_clone().map_err(fail)?))
            .spawn()
            .map_err(fail)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("cannot start a worker: it has no pipes".into());
        };
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let failed = line.is_err();
                if send.send(line).is_err() || failed {
                    break;
                }
            }
        });
        Ok(Worker { child, stdin, lines, errors })
    }
}

/// A process that performs tasks.
struct Worker {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<io::Result<String>>,
    errors: File,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The reason why a worker did not reply.
enum Ended {
    Cancelled,
    Time,
    Memory(u64),
    Died(String),
}

impl Worker {
    fn perform(&mut self, task: &str, limits: Limits, cancelled: &AtomicBool) -> Result<Reply, Ended> {
        let start = Instant::now();
        let sent = self.stdin.write_all(task.as_bytes()).and_then(|()| self.stdin.write_all(b"\n"));
        if sent.and_then(|()| self.stdin.flush()).is_err() {
            return Err(self.died());
        }
        loop {
            let left = Duration::try_from_secs_f64(limits.seconds)
                .unwrap_or(Duration::MAX)
                .checked_sub(start.elapsed())
                .ok_or(Ended::Time)?;
            match self.lines.recv_timeout(left.min(INTERVAL)) {
                Ok(Ok(line)) => {
                    return serde_json::from_str(&line)
                        .map_err(|e| Ended::Died(format!("a worker wrote something that is not a reply ({e})")));
                }
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(self.died()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if cancelled.load(Ordering::Relaxed) {
                return Err(Ended::Cancelled);
            }
            if let Some(now) = memory::resident_of(self.child.id()).filter(|now| *now > limits.most_resident()) {
                return Err(Ended::Memory(now));
            }
        }
    }

    /// The worker's exit status, with the end of its output.
    fn died(&mut self) -> Ended {
        let how = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        let mut last = Vec::new();
        let length = self.errors.metadata().map_or(0, |m| m.len());
        let read = self.errors.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS)));
        let _ = read.and_then(|_| self.errors.read_to_end(&mut last));
        let last = String::from_utf8_lossy(&last).trim().to_owned();
        let last = if last.is_empty() { last } else { format!(": {last}") };
        Ended::Died(format!("the worker process ended ({how}){last}"))
    }
}

/// A slot for a worker; a worker that ended is replaced for the next task.
pub(crate) struct WorkerSlot {
    launcher: Launcher,
    worker: Option<Worker>,
}

impl WorkerSlot {
    /// A place without a worker.
    pub(crate) fn new(launcher: Launcher) -> Self {
        WorkerSlot { launcher, worker: None }
    }

    /// Performs a task within the limits; a failure of the worker is a result, too.
    pub(crate) fn perform(&mut self, task: &Task, limits: Limits) -> Reply {
        self.perform_unless(task, limits, &AtomicBool::new(false))
    }

    /// The same, but cancellable: cancelling kills the worker.
    pub(crate) fn perform_unless(&mut self, task: &Task, limits: Limits, cancelled: &AtomicBool) -> Reply {
        if cancelled.load(Ordering::Relaxed) {
            return Reply::cancelled();
        }
        let text = match serde_json::to_string(task) {
            Ok(text) => text,
            Err(e) => return Reply::without(Status::Refused, e.to_string()),
        };
        let mut worker = match self.worker.take().map_or_else(|| self.launcher.start(), Ok) {
            Ok(worker) => worker,
            Err(why) => return Reply::without(Status::Crashed, why),
        };
        match worker.perform(&text, limits, cancelled) {
            Ok(reply) => {
                let grown = memory::resident_of(worker.child.id()).is_some_and(|now| now > BESIDE);
                // Memory retained from a large task would count for the next one.
                if !grown && reply.is_cacheable {
                    self.worker = Some(worker);
                }
                reply
            }
            Err(Ended::Cancelled) => Reply::cancelled(),
            Err(Ended::Time) => {
                let s = if limits.seconds == 1.0 { "" } else { "s" };
                Reply::without(Status::Limit, format!("not finished within {} second{s}", limits.seconds))
            }
            Err(Ended::Memory(now)) => Reply::without(
                Status::Limit,
                format!("the worker occupied {}, the limit of the job is {}", size(now), size(limits.memory)),
            ),
            Err(Ended::Died(how)) => Reply::without(
                Status::Crashed,
                format!("this is a bug in nki-sim {}; please report it with the job: {how}", crate::VERSION),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Limits = Limits { seconds: 10.0, memory: 1 << 30 };

    #[test]
    fn a_job_may_lower_the_limits_of_the_run() {
        let wanted = |seconds, memory| RUN.for_job(JobLimits { seconds, memory });
        assert_eq!(wanted(None, None), Ok(RUN));
        assert_eq!(wanted(Some(0.5), Some("64MiB")), Ok(Limits { seconds: 0.5, memory: 64 << 20 }));
        for (seconds, memory, why) in [
            (Some(11.0), None, "more than the 10 of the run"),
            (Some(0.0), None, "above 0"),
            (Some(f64::NAN), None, "above 0"),
            (Some(-1.0), None, "above 0"),
            (None, Some("2GiB"), "more than the 1.0 GiB of the run"),
            (None, Some("much"), "not a size"),
        ] {
            let e = wanted(seconds, memory).unwrap_err();
            assert!(e.contains(why), "{e}");
        }
    }
}
