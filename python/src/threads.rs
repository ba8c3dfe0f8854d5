//! Runs work without the GIL, on threads of this process, interruptible by Ctrl-C.
//!
//! rayon's pool belongs to the process that created it. In a child created by `fork` (`multiprocessing` on Linux, torch's data loaders) its threads
//! do not exist, and work submitted to it waits forever. A child therefore gets its own pool.
//!
//! Python handles signals only on its main thread, while that holds the GIL. The main thread therefore waits and checks for signals while a worker
//! thread runs: the same one for all calls, because a call of a small kernel takes less time than starting a thread.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use std::{io, process, thread};

use nki_diag::stop::{self, Stop, Stopped, stoppable};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyModule;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Interval between checks for Python's signals.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Work handed over by the main thread.
type Job = Box<dyn FnOnce() + Send>;
/// Stack size of the worker thread in bytes, as for a main thread.
const STACK: usize = 8 << 20;

/// The process that loaded the library.
static OWNER_PROCESS: OnceLock<u32> = OnceLock::new();
/// The worker thread for the main thread of a process: its job queue.
static WORKER: Mutex<Option<(u32, Sender<Job>)>> = Mutex::new(None);
/// The pool of a child.
static CHILD: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

thread_local! {
    /// The exception raised by a signal handler while this thread worked.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Records the process that owns rayon's own pool.
pub(crate) fn record_owner_process() {
    OWNER_PROCESS.get_or_init(process::id);
}

/// Runs `work` without the GIL, on another thread if this is Python's main thread.
///
/// # Errors
/// The exception of a signal handler (`KeyboardInterrupt`): the work ends early and leaves no result.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    if !hears_signals(py) {
        return Ok(py.detach(|| in_this_process(work)));
    }
    let stop = Stop::default();
    let own = stop.clone();
    let work = move || stoppable(&own, || in_this_process(work));
    let outcome = py
        .detach(|| on_worker(work, || signal_raised().then(|| stop.stop())))
        .map_err(|e| PyRuntimeError::new_err(format!("no thread to run the kernel on: {e}")))?;
    outcome.unwrap_or_else(|panic| resume_unwind(panic)).map_err(interruption)
}

/// Runs `work` on the worker thread and calls `listen` periodically, until it returns a value. Returns a panic of `work` as an error.
fn on_worker<R: Send>(
    work: impl FnOnce() -> R + Send,
    mut listen: impl FnMut() -> Option<()>,
) -> io::Result<thread::Result<R>> {
    let (done, waiting) = mpsc::channel();
    let job = move || {
        // `work` and its borrows are dropped before anything is sent.
        let outcome = catch_unwind(AssertUnwindSafe(work));
        // The main thread waits for it.
        let _ = done.send(outcome);
    };
    let job: Box<dyn FnOnce() + Send + '_> = Box::new(job);
    let _end = End(&waiting);
    // SAFETY: the borrows of `job` live until this function returns or panics, and `_end` is dropped before: it waits until `job`, which owns the
    // only sender, has ended or has been dropped without a call.
    let job: Job = unsafe { std::mem::transmute(job) };
    hand_over(job)?;
    loop {
        match waiting.recv_timeout(SIGNAL_CHECK_INTERVAL) {
            Ok(outcome) => return Ok(outcome),
            Err(RecvTimeoutError::Timeout) if listen().is_none() => {}
            _ => break,
        }
    }
    waiting.recv().map_err(|_| io::Error::other("the working thread has ended"))
}

/// Waits until all senders are gone, on drop.
struct End<'a, T>(&'a Receiver<T>);

impl<T> Drop for End<'_, T> {
    fn drop(&mut self) {
        while self.0.recv().is_ok() {}
    }
}

/// Sends a job to the worker thread of this process, starting one if necessary.
fn hand_over(job: Job) -> io::Result<()> {
    let mut worker = WORKER.lock().unwrap_or_else(PoisonError::into_inner);
    let process = process::id();
    let job = match &*worker {
        Some((of, jobs)) if *of == process => match jobs.send(job) {
            Ok(()) => return Ok(()),
            Err(SendError(job)) => job,
        },
        _ => job,
    };
    let (jobs, waiting) = mpsc::channel::<Job>();
    let work = move || waiting.into_iter().for_each(|job| job());
    thread::Builder::new().name("nki-sim".into()).stack_size(STACK).spawn(work)?;
    jobs.send(job).map_err(|_| io::Error::other("the working thread has ended"))?;
    *worker = Some((process, jobs));
    Ok(())
}

/// Lets Python handle its signals, and returns whether that raised an exception, which is kept.
fn signal_raised() -> bool {
    Python::attach(|py| py.check_signals()).is_err_and(|error| {
        RAISED.set(Some(error));
        true
    })
}

fn interruption(_: Stopped) -> PyErr {
    RAISED.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}

/// Whether this is the thread on which Python handles signals.
fn hears_signals(py: Python<'_>) -> bool {
    let same = || -> PyResult<bool> {
        let threading = PyModule::import(py, "threading")?;
        Ok(threading.call_method0("main_thread")?.is(&threading.call_method0("current_thread")?))
    };
    same().unwrap_or(false)
}

/// Runs `work` on a pool whose threads exist.
pub(crate) fn in_this_process<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let process = process::id();
    if OWNER_PROCESS.get() == Some(&process) {
        return work();
    }
    let known = CHILD.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let pool = match known {
        Some((of, pool)) if of == process => Some(pool),
        _ => ThreadPoolBuilder::new().build().ok().map(Arc::new),
    };
    // Without threads, try the work on this thread.
    let Some(pool) = pool else { return work() };
    *CHILD.lock().unwrap_or_else(PoisonError::into_inner) = Some((process, pool.clone()));
    let listening = stop::current();
    pool.install(|| stop::within(listening, work))
}
