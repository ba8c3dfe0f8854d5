//! Sharing of small pieces of work between threads.
//!
//! Sharing pays off for instructions of ten to a hundred microseconds. On a busy machine the operating system may preempt a thread for longer
//! than that, so pieces are not assigned in advance: each thread takes the next piece from a queue. Work does not wait for a thread that has
//! not started.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The number of threads that may share this thread's work: those of rayon's pool if this is one of its threads, else 1. Waking a pool for one
/// instruction costs more than the instruction.
pub fn threads() -> usize {
    if rayon::current_thread_index().is_some() { rayon::current_num_threads() } else { 1 }
}

/// Number of spins on other threads' pieces before the thread gives up its processor, some ten microseconds in total. A thread that
/// yields to another process gets its processor back only milliseconds later.
const SPINS: u32 = 2_000;

/// Runs `work` for each of `pieces`, on at most `threads` threads of rayon's pool, in no particular order. There should be several pieces of
/// about equal size for each thread.
pub fn share<T: Send>(threads: usize, pieces: Vec<T>, work: impl Fn(T) + Sync + Send) {
    let threads = threads.min(pieces.len());
    if threads <= 1 {
        return pieces.into_iter().for_each(work);
    }
    let queue = Mutex::new(pieces.into_iter());
    let busy = AtomicUsize::new(0);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    fan(threads, &busy, &|| {
        let _busy = Busy::new(&busy);
        while let Some(piece) = next() {
            work(piece);
        }
    });
}

/// Runs `work` on up to `threads` threads, including this one.
fn fan(threads: usize, busy: &AtomicUsize, work: &(impl Fn() + Sync)) {
    if threads <= 1 {
        return work();
    }
    rayon::join(
        || {
            work();
            // The queue is empty: threads that have not started will find no piece. Only wait for the busy ones.
            let mut spins = SPINS;
            while spins > 0 && busy.load(Ordering::Relaxed) > 0 {
                spins -= 1;
                std::hint::spin_loop();
            }
        },
        || fan(threads - 1, busy, work),
    );
}

/// A busy thread. The guard decrements the count even if a piece panics.
struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    fn new(busy: &'a AtomicUsize) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Busy(busy)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once() {
        for threads in 0..5 {
            for pieces in [0, 1, 2, 7, 100] {
                let mut done = vec![0; pieces];
                share(threads, done.iter_mut().collect(), |d: &mut i32| *d += 1);
                assert!(done.iter().all(|&d| d == 1), "{threads} threads, {pieces} pieces");
            }
        }
    }

    #[test]
    fn a_piece_may_share_its_own_work() {
        let sum = AtomicUsize::new(0);
        share(4, (0..20).collect(), |i: usize| {
            share(4, (0..i).collect(), |_| {
                sum.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 190);
    }

    #[test]
    fn a_panic_goes_to_who_shares() {
        for bad in [0, 19] {
            let work = |i: i32| assert_ne!(i, bad, "as intended");
            assert!(std::panic::catch_unwind(|| share(2, (0..20).collect(), work)).is_err());
        }
    }
}
