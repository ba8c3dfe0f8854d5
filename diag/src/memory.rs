//! Limits of memory use.
//!
//! Work that grows with its input (values of the meta-program, instructions, device tensors, the trace) charges an [`Account`] before it
//! allocates. Charges are never returned, since dropped values are not reported. When the charges reach the limit, the account reads from its
//! meter how much memory the process has gained since the account was opened, and uses the smaller of the two. Thus a kernel is rejected
//! neither for garbage that it has created nor for the memory of another kernel in the same process.

/// The maximum memory use of a piece of work, and its measurement.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// In bytes.
    pub bytes: u64,
    /// Bytes of memory that the process occupies now; `None` if the system does not report them. Then only single requests are limited.
    pub resident: fn() -> Option<u64>,
}

impl Limit {
    /// No limit.
    pub const NONE: Limit = Limit { bytes: u64::MAX, resident: || None };

    /// The share of each of `n` pieces of work that run at the same time.
    #[must_use]
    pub fn shared_by(self, n: usize) -> Limit {
        if self.bytes == u64::MAX { self } else { Limit { bytes: self.bytes / n.max(1) as u64, ..self } }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Limit::NONE
    }
}

impl PartialEq for Limit {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Limit {}

/// A charge exceeded the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Bytes that would be in use.
    pub needed: u64,
    /// Bytes allowed.
    pub limit: u64,
}

/// Maximum number of bytes charged before the meter is read again.
const UNREAD: u64 = 64 << 20;

/// The memory of one piece of work.
#[derive(Debug)]
pub struct Account {
    limit: Limit,
    /// The meter's value when the account was opened.
    before: u64,
    charged: u64,
    committed: u64,
    /// The value of `charged` at which the meter is read again.
    next: u64,
}

impl Account {
    /// An account without charges.
    pub fn new(limit: Limit) -> Self {
        let bounded = limit.bytes != u64::MAX;
        Account {
            limit,
            before: if bounded { (limit.resident)().unwrap_or(0) } else { 0 },
            charged: 0,
            committed: 0,
            next: if bounded { UNREAD.min(limit.bytes / 8) } else { u64::MAX },
        }
    }

    /// Charges a coming allocation, which may be freed at any time.
    ///
    /// # Errors
    /// If it exceeds the limit. Nothing should be allocated then.
    #[inline]
    pub fn charge(&mut self, bytes: u64) -> Result<(), Exceeded> {
        self.charged = self.charged.saturating_add(bytes);
        if self.charged < self.next { Ok(()) } else { self.read(bytes) }
    }

    /// Charges memory that remains in use to the end, or that later work will need.
    ///
    /// # Errors
    /// Like [`Self::charge`].
    pub fn commit(&mut self, bytes: u64) -> Result<(), Exceeded> {
        self.committed = self.committed.saturating_add(bytes);
        if self.committed <= self.limit.bytes {
            return Ok(());
        }
        Err(Exceeded { needed: self.committed, limit: self.limit.bytes })
    }

    fn read(&mut self, request: u64) -> Result<(), Exceeded> {
        let gained = (self.limit.resident)().map_or(0, |now| now.saturating_sub(self.before));
        let alive = gained.min(self.charged - request).max(self.committed);
        let needed = alive.saturating_add(request);
        if needed > self.limit.bytes {
            return Err(Exceeded { needed, limit: self.limit.bytes });
        }
        self.next = self.charged.saturating_add(UNREAD.min(self.limit.bytes / 8).max(1));
        Ok(())
    }
}

/// Two human-readable numbers of bytes, with as many decimals as needed to distinguish them.
pub fn sizes(a: u64, b: u64) -> (String, String) {
    if a == b {
        return (size(a), size(b));
    }
    let texts = (1..=MOST_DECIMALS).map(|decimals| (rounded(a, decimals), rounded(b, decimals)));
    texts.into_iter().find(|(a, b)| a != b).unwrap_or_else(|| (format!("{a} bytes"), format!("{b} bytes")))
}

/// Decimals beyond which bytes are more readable.
const MOST_DECIMALS: usize = 3;

/// A human-readable number of bytes: `768 bytes`, `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    rounded(bytes, 1)
}

fn rounded(bytes: u64, decimals: usize) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.decimals$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_differ_look_different() {
        let text = |a, b| {
            let (a, b) = sizes(a, b);
            format!("{a}, {b}")
        };
        assert_eq!(text(10 << 20, 12 << 20), "10.0 MiB, 12.0 MiB");
        assert_eq!(text((10 << 20) + 20_000, 10 << 20), "10.02 MiB, 10.00 MiB");
        assert_eq!(text((10 << 20) + 1, 10 << 20), "10485761 bytes, 10485760 bytes");
        assert_eq!(text(1 << 30, 1 << 30), "1.0 GiB, 1.0 GiB");
    }

    #[test]
    fn garbage_does_not_count_where_it_is_measured() {
        let mut account = Account::new(Limit { bytes: 1000, resident: || Some(500) });
        for _ in 0..100 {
            assert_eq!(account.charge(100), Ok(()));
        }
        assert_eq!(account.charge(1001), Err(Exceeded { needed: 1001, limit: 1000 }));
    }

    #[test]
    fn what_is_alive_counts() {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NOW: AtomicU64 = AtomicU64::new(0);
        let mut account = Account::new(Limit { bytes: 1000, resident: || Some(NOW.load(Ordering::Relaxed)) });
        let mut outcome = Ok(());
        let mut charged = 0;
        while outcome.is_ok() {
            outcome = account.charge(100);
            charged += 100;
            NOW.store(charged, Ordering::Relaxed);
        }
        // The meter is read once per eighth of the limit.
        assert_eq!((charged, outcome), (1200, Err(Exceeded { needed: 1200, limit: 1000 })));
    }

    #[test]
    fn the_memory_of_others_does_not_count() {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NOW: AtomicU64 = AtomicU64::new(0);
        let mut account = Account::new(Limit { bytes: 1000, resident: || Some(NOW.load(Ordering::Relaxed)) });
        NOW.store(1 << 40, Ordering::Relaxed);
        assert_eq!(account.charge(900), Ok(()));
        assert!(account.charge(200).is_err());
    }

    #[test]
    fn committed_memory_is_never_given_back() {
        let mut account = Account::new(Limit { bytes: 1000, resident: || Some(0) });
        assert_eq!(account.commit(600), Ok(()));
        assert_eq!(account.charge(300), Ok(()));
        assert!(account.charge(500).is_err());
        assert_eq!(account.commit(600), Err(Exceeded { needed: 1200, limit: 1000 }));
        assert_eq!(Account::new(Limit::NONE).charge(u64::MAX), Ok(()));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!([size(768), size(1536), size(8 << 30)], ["768 bytes", "1.5 KiB", "8.0 GiB"]);
        assert_eq!([size((1 << 20) - 1), size(u64::MAX)], ["1.0 MiB", "16.0 EiB"]);
    }
}
