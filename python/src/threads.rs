//! Work away from the interpreter's lock, on threads that this process has, which Ctrl-C ends.
//!
//! rayon's pool belongs to the process that made it. In a child made by `fork` (`multiprocessing` on Linux, torch's data loaders) its threads
//! are gone, and what is given to it waits forever. So a child gets a pool of its own.
//!
//! Python's signals are heard on its main thread only, while that holds the lock. So the main thread waits and listens while another one works.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
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
/// Bytes of the working thread's stack: as a main thread has.
const STACK: usize = 8 << 20;

/// The process that loaded the library.
static HOME: OnceLock<u32> = OnceLock::new();
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
    py.detach(|| {
        let (done, waiting) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let own = stop.clone();
            let work = move || {
                // Dropped at the end, also by a panic: then nobody waits any more.
                let _done = done;
                stoppable(&own, || in_this_process(work))
            };
            let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work)?;
            while waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                if asked() {
                    stop.stop();
                    break;
                }
            }
            Ok(worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })
    })
    .map_err(|e: io::Error| PyRuntimeError::new_err(format!("no thread to run the kernel on: {e}")))?
    .map_err(interruption)
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
