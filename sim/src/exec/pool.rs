//! Worker threads that stay awake between instructions.
//!
//! A shared instruction takes ten to a hundred microseconds; waking a sleeping thread costs as much. While a program
//! runs, the pool's other threads therefore spin for work instead of sleeping, and start to doze only after a pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nki_diag::stop;

/// Number of spins before dozing: a tenth of a millisecond.
const EAGER: u32 = 2_000;
/// Length of a doze: a tenth of the pause so far, within these limits. In a program whose instructions are too small to share, the workers
/// sleep most of the time; for a large instruction, the delay is at most a tenth of the pause.
const DOZE: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
/// Programs with fewer elements in all tensors end before other threads are awake.
pub const LITTLE: usize = 256 * 1024;
/// Maximum number of threads kept awake: a tile is not shared between more.
const HELPERS: usize = 7;

/// Runs `work` on `elements` elements on a thread of rayon's pool while the other threads stay awake. Small work runs on the current thread, as
/// does any work inside the pool (for example a sweep), where the other threads are busy.
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
                // The working thread may run this task itself while it waits for a share of an instruction, and must not loop in it.
                if rayon::current_thread_index() != own {
                    look_for_work(done);
                }
            });
        }
        let _end = End(done);
        stop::within(stop, work)
    })
}

/// Ends the spinning, even if the work panics.
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
