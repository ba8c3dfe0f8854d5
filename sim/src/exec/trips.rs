//! Trip counts of device loops. The cores of a logical core meet in each iteration, so both must iterate equally often.

use nki_isa::Program;
use nki_isa::ids::Loc;
use nki_isa::program::{Node, Statements};
use rustc_hash::FxHashMap;

use crate::trace::{CoreTrace, EventKind, Trace};

/// Iterations of the device loops of a core, by the loop's location, over all times that it is entered.
type Iterations = FxHashMap<Loc, u64>;

/// The first loop that the two cores iterate unequally often, with the iterations of each core. `None` if they iterate equally often over
/// all loops: the cores may have loops of their own.
pub(super) fn uneven(program: &Program, trace: &Trace) -> Option<(Loc, [u64; 2])> {
    let ([a, b], [of_a, of_b]) = (&program.cores[..], &trace.cores[..]) else { return None };
    let both = [iterations(a, of_a), iterations(b, of_b)];
    let [first, second] = both.each_ref().map(|core| core.values().sum::<u64>());
    if first == second {
        return None;
    }
    let counts = |loc: &Loc| both.each_ref().map(|core| core.get(loc).copied().unwrap_or(0));
    let uneven = both.iter().flat_map(FxHashMap::keys).filter(|loc| counts(loc)[0] != counts(loc)[1]);
    uneven.min_by_key(|loc| (loc.file, loc.line, loc.column)).map(|loc| (*loc, counts(loc)))
}

fn iterations(stream: &[Node], trace: &CoreTrace) -> Iterations {
    let all = Statements::of(stream);
    let mut found = Iterations::default();
    for event in trace.events.iter().filter(|event| matches!(event.kind, EventKind::LoopIteration(_))) {
        if let Some(node) = all.node(event.node.0) {
            *found.entry(node.loc).or_default() += 1;
        }
    }
    found
}
