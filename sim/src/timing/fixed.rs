//! Fixed-point numbers: exact, so that a timeline is the same on every machine.

use crate::timeline::Ps;

/// A share of a whole in `1 / WHOLE` parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fixed<const WHOLE: u64>(u64);

/// In millionths, for rates.
pub type Millionths = Fixed<1_000_000>;

/// In thousandths, for the use of the tensor engine.
pub type Thousandths = Fixed<1_000>;

impl<const WHOLE: u64> Fixed<WHOLE> {
    /// All of it.
    pub const FULL: Self = Fixed(WHOLE);

    /// From a ratio of 0 to 1, rounded down.
    pub fn new(ratio: f64) -> Self {
        Fixed((ratio * WHOLE as f64) as u64)
    }

    /// From a number of parts.
    pub fn from_parts(parts: u64) -> Self {
        Fixed(parts)
    }

    /// The number of parts.
    pub const fn parts(self) -> u64 {
        self.0
    }

    /// Clamped to at least one part and at most the whole.
    pub fn clamped(self) -> Self {
        Fixed(self.0.clamp(1, WHOLE))
    }

    /// Work done at this rate in `time`, as time at the full rate.
    pub fn done_in(self, time: Ps) -> Ps {
        (u128::from(time) * u128::from(self.0) / u128::from(WHOLE)) as Ps
    }

    /// Time at this rate for work that takes `time` at the full rate.
    pub fn stretched(self, time: Ps) -> Ps {
        if self.0 >= WHOLE { time } else { (u128::from(time) * u128::from(WHOLE)).div_ceil(u128::from(self.0)) as Ps }
    }
}
