//! Addresses in SBUF: the compiler assigns them on its schedule's clock.
//!
//! The order of instructions is fixed first, on a clock with the compiler's estimates. On that clock, a tensor's lifetime is from the start of
//! the first instruction that uses it to the completion of the last. Parts of a tensor that are never accessed together are placed separately.
//! Addresses rotate through the memory used so far; a tensor that does not fit there extends it. If the machine is slower than
//! the clock, bytes are reused earlier than ideal, and a load waits for a matmul.
//!
//! Evidence: on hardware, blocked matmuls of small blocks wait although memory is free (docs/accuracy.md).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nki_isa::ids::Address;
use nki_isa::inst::Footprint;
use nki_isa::program::NodeKind;
use nki_isa::{Arch, Program, Space, TensorId, View};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::Clock;
use crate::place::{ALIGN, Free, Part, Placement, Rule};
use crate::timeline::Ps;
use crate::timing::lower::Lowered;

/// The lifetime of a part of a tensor, on the clock.
#[derive(Debug, Clone, Copy)]
struct Use {
    tensor: TensorId,
    /// Its bytes in the tensor.
    bytes: (i64, i64),
    /// The first and the last position in issue order.
    first: u32,
    last: u32,
    /// Completion of its last use.
    until: Ps,
}

/// `placement` with addresses chosen on the clock for the SBUF tensors of core `core`. `None` if they do not change: no tensor may move, or they do
/// not fit that way.
pub(crate) fn on_clock(
    program: &Program,
    core: u32,
    placement: &Placement,
    low: &Lowered<'_>,
    clock: &Clock,
) -> Option<Placement> {
    if !placement.over_capacity.is_empty() {
        return None;
    }
    // A tensor with an explicit address, or used by another core, keeps its bytes throughout.
    let is_free = |id: TensorId| {
        let t = program.tensor(id);
        let foreign = placement.lifetimes[id.0 as usize].is_none_or(|l| l.last == u32::MAX);
        t.space == Space::Sbuf && t.core == core && t.address.is_none() && !foreign
    };
    let mut reserved: Vec<(u32, u32)> = Vec::new();
    for (i, t) in program.tensors.iter().enumerate() {
        let id = TensorId(i as u32);
        if t.space == Space::Sbuf && t.core == core && !is_free(id) && placement.lifetimes[i].is_some() {
            let at = placement.address(id)?.byte;
            reserved.push((at, at.checked_add(taken(t.bytes() as i64)?)?));
        }
    }
    reserved.sort_unstable();
    let mut free = Free::new(Arch::of(program.target).sbuf_bytes - placement.reserved, &reserved, Rule::Within);
    let mut dying: BinaryHeap<Reverse<(Ps, u32, u32, u32)>> = BinaryHeap::new();
    let mut addresses = placement.addresses.clone();
    let mut parts: FxHashMap<TensorId, Vec<Part>> = FxHashMap::default();
    let mut any = false;
    for u in uses(program, low, clock, is_free) {
        let now = clock.times[clock.taken[u.first as usize] as usize].0;
        while let Some(&Reverse((until, last, at, length))) = dying.peek()
            && until <= now
            && last < u.first
        {
            dying.pop();
            free.give(at, length);
        }
        let (start, end) = u.bytes;
        let length = taken(end - start)?;
        let at = free.take(length, ALIGN, |_| None)?;
        dying.push(Reverse((u.until, u.last, at, length)));
        if end - start == program.tensor(u.tensor).bytes() as i64 {
            addresses[u.tensor.0 as usize] = Some(Address { partition: 0, byte: at });
        } else {
            parts.entry(u.tensor).or_default().push(Part { start, end, at });
        }
        any = true;
    }
    any.then(|| Placement { addresses, parts, ..Placement::default() })
}

fn taken(bytes: i64) -> Option<u32> {
    u32::try_from(bytes.max(1)).ok()?.checked_next_multiple_of(ALIGN)
}

/// The core's uses of the SBUF tensors for which `is_free` holds, by first use.
fn uses(program: &Program, low: &Lowered<'_>, clock: &Clock, is_free: impl Fn(TensorId) -> bool) -> Vec<Use> {
    let free: Vec<bool> = (0..program.tensors.len() as u32).map(|id| is_free(TensorId(id))).collect();
    let whole = |id: TensorId| (0, program.tensor(id).bytes() as i64);
    let bytes = |view: &View| if view.indirect.is_some() { whole(view.tensor) } else { view.byte_span() };
    // By tensor: the byte ranges of its parts, in order; and its uses as a whole.
    let mut parts: Vec<SmallVec<[(i64, i64); 1]>> = vec![SmallVec::new(); free.len()];
    let mut uses = Uses::default();
    let mut slots = vec![u32::MAX; free.len()];
    visit(low, clock, |position, until, view| {
        let tensor = view.tensor.0 as usize;
        if free[tensor] {
            join(&mut parts[tensor], bytes(view));
            uses.add(&mut slots[tensor], position, until, || (view.tensor, whole(view.tensor)));
        }
    });
    if parts.iter().all(|p| p.len() <= 1) {
        return uses.0;
    }
    let mut uses = Uses::default();
    let mut slots: Vec<SmallVec<[u32; 1]>> = parts.iter().map(|p| smallvec![u32::MAX; p.len()]).collect();
    visit(low, clock, |position, until, view| {
        let tensor = view.tensor.0 as usize;
        if free[tensor] {
            let parts = &parts[tensor];
            let (start, _) = bytes(view);
            let part = parts.partition_point(|p| p.1 <= start);
            let of = || (view.tensor, if parts.len() == 1 { whole(view.tensor) } else { parts[part] });
            uses.add(&mut slots[tensor][part], position, until, of);
        }
    });
    uses.0
}

/// The uses of a tensor, ordered by first use.
#[derive(Default)]
struct Uses(Vec<Use>);

impl Uses {
    /// Records a use of the part in `slot`: its index here, or `u32::MAX` before its first use.
    fn add(&mut self, slot: &mut u32, position: u32, until: Ps, of: impl FnOnce() -> (TensorId, (i64, i64))) {
        if *slot == u32::MAX {
            *slot = self.0.len() as u32;
            let (tensor, bytes) = of();
            self.0.push(Use { tensor, bytes, first: position, last: position, until });
        }
        let u = &mut self.0[*slot as usize];
        u.last = position;
        u.until = u.until.max(until);
    }
}

/// Merges `new` with all parts that it overlaps.
fn join(parts: &mut SmallVec<[(i64, i64); 1]>, new: (i64, i64)) {
    let from = parts.partition_point(|p| p.1 <= new.0);
    let to = parts.partition_point(|p| p.0 < new.1);
    if from < to {
        let joined = (new.0.min(parts[from].0), new.1.max(parts[to - 1].1));
        parts[from] = joined;
        parts.drain(from + 1..to);
    } else {
        parts.insert(from, new);
    }
}

/// Calls `of` for all views of the scheduled operations, with position and completion.
fn visit(low: &Lowered<'_>, clock: &Clock, mut of: impl FnMut(u32, Ps, &View)) {
    let mut footprint = Footprint::default();
    for (position, &op) in (0..).zip(&clock.taken) {
        let Some(NodeKind::Inst(inst)) = low.node(op).map(|node| &node.kind) else { continue };
        footprint.clear();
        inst.footprint(&mut footprint);
        for view in footprint.reads.iter().chain(&footprint.writes) {
            of(position, clock.times[op as usize].1, view);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Bytes belong to the same part exactly if a chain of overlapping accesses connects them.
        #[test]
        fn parts_are_what_overlapping_accesses_join(accesses in prop::collection::vec((0i64..40, 1i64..8), 1..20)) {
            let mut parts = SmallVec::new();
            let mut part: Vec<usize> = (0..48).collect();
            for &(start, length) in &accesses {
                join(&mut parts, (start, start + length));
                let touched: Vec<usize> = (start..start + length).map(|byte| part[byte as usize]).collect();
                for p in part.iter_mut().filter(|p| touched.contains(p)) {
                    *p = touched[0];
                }
            }
            prop_assert!(parts.windows(2).all(|w| w[0].1 <= w[1].0));
            let used = |byte: i64| accesses.iter().any(|a| a.0 <= byte && byte < a.0 + a.1);
            let of = |byte: i64| parts.iter().position(|p| p.0 <= byte && byte < p.1);
            for a in 0..47 {
                prop_assert_eq!(used(a), of(a).is_some());
                let together = used(a) && used(a + 1) && part[a as usize] == part[a as usize + 1];
                prop_assert_eq!(together, of(a).is_some() && of(a) == of(a + 1));
            }
        }
    }
}
