//! Trip counts of device loops. The cores of a logical core meet in each iteration, so both must iterate equally often.

use nki_isa::ids::Loc;
use rustc_hash::FxHashMap;

use super::interpreter::Interpreter;

/// Iterations of the device loops of a core, by the loop's location, over all times that it is entered.
#[derive(Debug, Default)]
pub(super) struct Trips(FxHashMap<Loc, u64>);

impl Trips {
    /// Adds the iterations of a loop that ends.
    pub(super) fn add(&mut self, loop_: Loc, iterations: u32) {
        *self.0.entry(loop_).or_default() += u64::from(iterations);
    }

    fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl Interpreter<'_> {
    /// Reports the first loop that the two cores iterate unequally often, unless they iterate equally often over all loops: the cores may
    /// have loops of their own.
    pub(super) fn compare_trips(&mut self) {
        if self.program.cores.len() != 2 {
            return;
        }
        let [first, second] = [0, 1].map(|core| std::mem::take(&mut self.state_mut(core).trips));
        if first.total() == second.total() {
            return;
        }
        let counts = |loc: &Loc| [&first, &second].map(|trips| trips.0.get(loc).copied().unwrap_or(0));
        let all = first.0.keys().chain(second.0.keys()).filter(|loc| counts(loc)[0] != counts(loc)[1]);
        if let Some(loc) = all.min_by_key(|loc| (loc.file, loc.line, loc.column)) {
            self.findings.uneven_trips(*loc, counts(loc));
        }
    }
}
