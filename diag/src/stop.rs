//! Cooperative cancellation, for example by Ctrl-C in a Python process.
//!
//! A command can be killed; the work of a library must end by itself. Loops whose duration has no bound (statements of the
//! meta-program, executed instructions, events of the timeline) call [`check`], which reads one thread-local flag. Cancelled work
//! unwinds to [`stoppable`], so that no caller sees a partial result and cancellation needs no explicit propagation.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that cancels work, from any thread.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

/// The work was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

impl Stop {
    /// Requests cancellation.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// The flag that the work on this thread polls; pass it to another thread with [`within`].
pub fn current() -> Option<Stop> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work`, which polls `stop`.
pub fn within<R>(stop: Option<Stop>, work: impl FnOnce() -> R) -> R {
    struct Before(Option<Stop>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.replace(self.0.take());
        }
    }
    let _before = Before(CURRENT.replace(stop));
    work()
}

/// Runs `work` to its end or until it is cancelled.
///
/// # Errors
/// If it was cancelled.
pub fn stoppable<R>(stop: &Stop, work: impl FnOnce() -> R) -> Result<R, Stopped> {
    // Unwinding drops partial results.
    catch_unwind(AssertUnwindSafe(|| within(Some(stop.clone()), work)))
        .or_else(|payload| if payload.is::<Stopped>() { Err(Stopped) } else { resume_unwind(payload) })
}

/// Unwinds if the work of this thread was cancelled.
pub fn check() {
    if CURRENT.with_borrow(|stop| stop.as_ref().is_some_and(|s| s.0.load(Ordering::Relaxed))) {
        resume_unwind(Box::new(Stopped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_where_it_is_asked_to() {
        let stop = Stop::default();
        let mut steps = 0;
        let ended = stoppable(&stop, || {
            loop {
                check();
                steps += 1;
                if steps == 3 {
                    stop.stop();
                }
            }
        });
        assert_eq!((ended, steps), (Err::<(), _>(Stopped), 3));
        assert_eq!(stoppable(&Stop::default(), || 5), Ok(5));
        check();
    }

    #[test]
    fn another_thread_listens_if_told() {
        let stop = Stop::default();
        stop.stop();
        let ended = stoppable(&stop, || {
            let handed_on = current();
            let elsewhere = std::thread::spawn(move || within(handed_on, check)).join();
            elsewhere.unwrap_or_else(|payload| resume_unwind(payload));
        });
        assert_eq!(ended, Err(Stopped));
    }

    #[test]
    fn other_panics_go_on() {
        let outcome = catch_unwind(|| stoppable(&Stop::default(), || panic!("as intended")));
        assert!(outcome.is_err());
    }
}
