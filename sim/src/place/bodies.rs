//! Shorter lifetimes for tiles that are private to a dynamic loop.
//!
//! A tile used inside a dynamic loop is alive for the whole loop, because an iteration may read values of an earlier one. But if only this loop uses
//! the tile, with the same bytes in every iteration, it is alive only from its first to its last use in the body: every iteration writes all bytes
//! that it reads, as the first one had to. nki-library's mixture-of-experts kernels do not fit otherwise.

use nki_isa::inst::Footprint;
use nki_isa::program::{Bound, Control, NodeKind, Statements};
use nki_isa::{Program, TensorId};
use rustc_hash::FxHashMap;

use super::{Item, Lifetime};

/// A use of a tile: its position, and the positions of the enclosing dynamic loops, outermost first.
struct Use {
    position: u32,
    loops: Vec<u32>,
}

/// Shortens lifetimes of a core's automatic items where that is safe, and returns whether there were any.
pub(super) fn shorten(program: &Program, core: u32, items: &mut [Item]) -> bool {
    let Some(stream) = program.cores.get(core as usize) else { return false };
    let all = Statements::of(stream);
    // A tensor used by another core is alive throughout.
    let own = items.iter().filter(|i| i.life.last != u32::MAX);
    // The uses of each item; `None` if one of them may differ between iterations.
    let mut uses: FxHashMap<TensorId, Option<Vec<Use>>> = own.map(|i| (i.id, Some(Vec::new()))).collect();
    let mut footprint = Footprint::default();
    for (position, statement) in (0..).zip(all.iter()) {
        let NodeKind::Inst(inst) = &statement.node.kind else { continue };
        footprint.clear();
        inst.footprint(&mut footprint);
        let mut loops = None;
        for view in footprint.reads.iter().chain(&footprint.writes) {
            let Some(uses) = uses.get_mut(&view.tensor) else { continue };
            let loops = loops.get_or_insert_with(|| sure_loops(&all, position));
            match (uses.as_mut(), loops) {
                (Some(list), Some(loops)) if view.indirect.is_none() => {
                    list.push(Use { position, loops: loops.clone() });
                }
                _ => *uses = None,
            }
        }
    }
    let mut any = false;
    for item in items.iter_mut() {
        let Some(uses) = uses.get(&item.id).and_then(Option::as_ref) else { continue };
        if let Some(life) = life(uses, &all)
            && life != item.life
        {
            item.life = life;
            any = true;
        }
    }
    // Addresses are assigned in the order of first use.
    items.sort_by_key(|i| (i.life.first, i.id));
    any
}

/// From the first to the last use in the body of the innermost loop that contains all uses; `None` if there is none.
fn life(uses: &[Use], all: &Statements<'_>) -> Option<Lifetime> {
    let outer = &uses.first()?.loops;
    let shared = |u: &Use| outer.iter().zip(&u.loops).take_while(|(a, b)| a == b).count();
    let depth = uses.iter().map(shared).min()?;
    if depth == 0 {
        return None;
    }
    // A use inside a nested loop counts for all of that loop.
    let span = |u: &Use| {
        u.loops.get(depth).map_or((u.position, u.position), |&at| (at, all.get(at).map_or(at, |s| s.end - 1)))
    };
    let first = uses.iter().map(|u| span(u).0).min()?;
    let last = uses.iter().map(|u| span(u).1).max()?;
    Some(Lifetime { first, last })
}

/// The dynamic loops around a statement, outermost first. `None` if an iteration of the outermost may skip the statement: because of a branch, or
/// a loop that may have no iterations.
fn sure_loops(all: &Statements<'_>, position: u32) -> Option<Vec<u32>> {
    let mut loops: Vec<u32> = all.around(position).collect();
    loops.reverse();
    let sure = |(n, &at): (usize, &u32)| match all.node(at).and_then(|node| node.kind.control()) {
        Some(Control::For { lower: Bound::Static(lower), upper: Bound::Static(upper), .. }) => n == 0 || lower < upper,
        Some(Control::For { .. } | Control::While { .. }) => n == 0,
        Some(Control::If { .. }) | None => false,
    };
    loops.iter().enumerate().all(sure).then_some(loops)
}
