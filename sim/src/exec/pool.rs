//! Threads that stay awake between instructions.
//!
//! An instruction is shared between threads for some ten to a hundred microseconds; waking a sleeping thread costs as much. So while a program
//! runs, the pool's other threads look for work instead of sleeping, and begin to doze only after a pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nki_diag::stop;

/// Looks for work this often before dozing: a tenth of a millisecond.
const EAGER: u32 = 2_000;
/// Length of a doze: a tenth of the pause so far, within these limits. In a program whose instructions are too small to share, the others sleep
/// most of the time; when an instruction is large after all, at most a tenth is lost.
const DOZE: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
/// Elements of all tensors below which a program ends before other threads are awake.
pub const LITTLE: usize = 256 * 1024;
/// Most threads kept awake: a tile is not shared between more.
const HELPERS: usize = 7;

/// Runs `work` on `elements` elements on a thread of rayon's pool while the others stay awake. A little work just runs where it is; and inside
/// the pool (a sweep, say), where the others have work of their own, any work does.
pub(super) fn with_threads_awake<R: Send>(elements: usize, work: impl FnOnce() -> R + Send) -> R {
    let threads = rayon::current_num_threads();
    if threads == 1 || elements < LITTLE || rayon::current_thread_index().is_some() {
        return work();
    }
    let done = &AtomicBool::new(false);
    let stop = stop::current();
    rayon::scope(|scope| {
        let own = rayon::current_thread_index();
        for _ in 0..HELPERS.min(threads - 1) {
            scope.spawn(move |_| {
                // The working thread itself may find this while it waits for a share of an instruction: it must not get stuck in it.
                if rayon::current_thread_index() != own {
                    look_for_work(done);
                }
            });
        }
        let _end = End(done);
        stop::within(stop, work)
    })
}

/// Ends the search for work, also when the work panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn look_for_work(done: &AtomicBool) {
    let mut idle = 0;
    let mut dozing_since = None;
    while !done.load(Ordering::Relaxed) {
        if rayon::yield_now() == Some(rayon::Yield::Executed) {
            idle = 0;
            dozing_since = None;
        } else if idle < EAGER {
            idle += 1;
            std::hint::spin_loop();
        } else {
            let pause = dozing_since.get_or_insert_with(Instant::now).elapsed();
            std::thread::sleep((pause / 10).clamp(DOZE.0, DOZE.1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_waits_for_its_shares_ends() {
        for round in 0..200 {
            let sum = with_threads_awake(LITTLE, || {
                let (a, b) = rayon::join(|| round, || (0..1000).sum::<u64>());
                a + b
            });
            assert_eq!(sum, round + 499_500);
        }
    }

    #[test]
    fn a_panic_ends_the_search() {
        let outcome = std::panic::catch_unwind(|| with_threads_awake(LITTLE, || panic!("as intended")));
        assert!(outcome.is_err());
    }
}
