//! Work away from the interpreter's lock, on threads that this process has, which Ctrl-C ends.
//!
//! rayon's pool belongs to the process that made it. In a child made by `fork` (`multiprocessing` on Linux, torch's data loaders) its threads
//! are gone, and what is given to it waits forever. So a child gets a pool of its own.
//!
//! Python's signals are heard on its main thread only, while that holds the lock. So the main thread waits and listens while another one works: the
//! same one for all calls, because a call of a small kernel takes less time than to start a thread.

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

/// Time between two looks at Python's signals.
const PATIENCE: Duration = Duration::from_millis(50);
/// What the main thread hands over.
type Job = Box<dyn FnOnce() + Send>;
/// Bytes of the working thread's stack: as a main thread has.
const STACK: usize = 8 << 20;

/// The process that loaded the library.
static HOME: OnceLock<u32> = OnceLock::new();
/// The thread that works for the main thread of a process: where it takes its jobs from.
static WORKER: Mutex<Option<(u32, Sender<Job>)>> = Mutex::new(None);
/// The pool of a child.
static CHILD: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

thread_local! {
    /// What a signal handler raised while this thread worked.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Notes which process has rayon's own pool.
pub(crate) fn at_home() {
    HOME.get_or_init(process::id);
}

/// Runs `work` without the interpreter's lock, on another thread if this is Python's main thread.
///
/// # Errors
/// What a signal handler raises meanwhile (`KeyboardInterrupt`): the work ends early, and nothing of it is left.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    if !hears_signals(py) {
        return Ok(py.detach(|| in_this_process(work)));
    }
    let stop = Stop::default();
    let own = stop.clone();
    let work = move || stoppable(&own, || in_this_process(work));
    let outcome = py
        .detach(|| on_worker(work, || asked().then(|| stop.stop())))
        .map_err(|e| PyRuntimeError::new_err(format!("no thread to run the kernel on: {e}")))?;
    outcome.unwrap_or_else(|panic| resume_unwind(panic)).map_err(interruption)
}

/// Does `work` on the working thread and calls `listen` now and then, until that gives something. Gives what a panic of `work` carries as an error.
fn on_worker<R: Send>(
    work: impl FnOnce() -> R + Send,
    mut listen: impl FnMut() -> Option<()>,
) -> io::Result<thread::Result<R>> {
    let (done, waiting) = mpsc::channel();
    let job = move || {
        // `work` and what it borrows are gone before anything is sent.
        let outcome = catch_unwind(AssertUnwindSafe(work));
        // The main thread waits for it.
        let _ = done.send(outcome);
    };
    let job: Box<dyn FnOnce() + Send + '_> = Box::new(job);
    let _end = End(&waiting);
    // SAFETY: what `job` borrows lives until this function returns or panics, and `_end` is dropped before: it waits until `job`, which holds the
    // only sender, has ended or has been dropped without a call.
    let job: Job = unsafe { std::mem::transmute(job) };
    hand_over(job)?;
    loop {
        match waiting.recv_timeout(PATIENCE) {
            Ok(outcome) => return Ok(outcome),
            Err(RecvTimeoutError::Timeout) if listen().is_none() => {}
            _ => break,
        }
    }
    waiting.recv().map_err(|_| io::Error::other("the working thread has ended"))
}

/// Waits until all senders are gone, when it is dropped.
struct End<'a, T>(&'a Receiver<T>);

impl<T> Drop for End<'_, T> {
    fn drop(&mut self) {
        while self.0.recv().is_ok() {}
    }
}

/// Gives a job to the working thread of this process, which is started if there is none.
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

/// Lets Python handle its signals, and says whether that raised something, which is kept.
fn asked() -> bool {
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

/// Runs `work` on a pool that is alive.
pub(crate) fn in_this_process<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let process = process::id();
    if HOME.get() == Some(&process) {
        return work();
    }
    let known = CHILD.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let pool = match known {
        Some((of, pool)) if of == process => Some(pool),
        _ => ThreadPoolBuilder::new().build().ok().map(Arc::new),
    };
    // Without threads the work is tried where it is.
    let Some(pool) = pool else { return work() };
    *CHILD.lock().unwrap_or_else(PoisonError::into_inner) = Some((process, pool.clone()));
    let listening = stop::current();
    pool.install(|| stop::within(listening, work))
}
