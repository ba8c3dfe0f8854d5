//! Work away from the interpreter's lock, on threads that this process has.
//!
//! rayon's pool belongs to the process that made it. In a child made by `fork` (`multiprocessing` on Linux, torch's data loaders) its threads
//! are gone, and what is given to it waits for ever. So a child gets a pool of its own.

use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The process that loaded the library.
static HOME: OnceLock<u32> = OnceLock::new();
/// The pool of a child.
static CHILD: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Notes which process has rayon's own pool.
pub(crate) fn at_home() {
    HOME.get_or_init(process::id);
}

/// Runs `work` without the interpreter's lock.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    py.detach(|| in_this_process(work))
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
    pool.install(work)
}
