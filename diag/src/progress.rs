//! Progress of long work, for a line on a terminal.
//!
//! Stages report what they count and how much of it is done. There is one display per process, which shows the stage that started last; it should
//! not be shown if several kernels run at the same time. Nothing else depends on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

static WHAT: Mutex<&str> = Mutex::new("");
static DONE: AtomicU64 = AtomicU64::new(0);
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Number of items that a stage should process between two calls of [`reach`].
pub const STEP: u64 = 4096;

/// Starts a stage that processes `total` items: "statements compiled". A total of 0 is unknown.
pub fn begin(what: &'static str, total: u64) {
    *WHAT.lock().unwrap_or_else(PoisonError::into_inner) = what;
    DONE.store(0, Ordering::Relaxed);
    TOTAL.store(total, Ordering::Relaxed);
}

/// Reports the number of processed items.
pub fn reach(done: u64) {
    DONE.store(done, Ordering::Relaxed);
}

/// `4096 of 10000 statements timed`; empty if no stage has processed anything.
pub fn text() -> String {
    let what = *WHAT.lock().unwrap_or_else(PoisonError::into_inner);
    match (DONE.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed)) {
        (0, _) => String::new(),
        (done, 0) => format!("{done} {what}"),
        (done, total) => format!("{done} of {total} {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_says_how_far_it_is() {
        begin("statements compiled", 0);
        assert_eq!(text(), "");
        reach(4096);
        assert_eq!(text(), "4096 statements compiled");
        begin("statements timed", 10_000);
        reach(8192);
        assert_eq!(text(), "8192 of 10000 statements timed");
    }
}
