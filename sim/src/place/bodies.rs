//! Shorter lifetimes for tiles that one dynamic loop has for itself.
//!
//! What is used inside of a dynamic loop is alive for the whole of it, for any iteration may come again. But a tile that only this loop uses, always the
//! same bytes of it, and in every iteration, needs its bytes from its first to its last use in the body only: what an iteration reads of it, that
//! iteration has written, as the first one had to. nki-library's mixture-of-experts kernels do not fit otherwise.

use nki_isa::inst::Footprint;
use nki_isa::program::{Bound, Control, NodeKind, Statement, around, statements};
use nki_isa::{Program, TensorId};
use rustc_hash::FxHashMap;

use super::{Item, Lifetime};

/// A use of a tile: its position, and the positions of the dynamic loops around it, outermost first.
struct Use {
    position: u32,
    loops: Vec<u32>,
}

/// Shortens lifetimes of automatic items of a core where that is safe, and says whether there were any.
pub(super) fn shorten(program: &Program, core: u32, items: &mut [Item]) -> bool {
    let Some(stream) = program.cores.get(core as usize) else { return false };
    let all = statements(stream);
    // What another core uses is alive throughout.
    let own = items.iter().filter(|i| i.life.last != u32::MAX);
    // The uses of each item; `None` if one of them need not be the same in every iteration.
    let mut uses: FxHashMap<TensorId, Option<Vec<Use>>> = own.map(|i| (i.id, Some(Vec::new()))).collect();
    let mut footprint = Footprint::default();
    for (position, statement) in all.iter().enumerate() {
        let NodeKind::Inst(inst) = &statement.node.kind else { continue };
        let position = position as u32;
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
    // Addresses are given in the order of first use.
    items.sort_by_key(|i| (i.life.first, i.id));
    any
}

/// From the first to the last use in the body of the innermost loop that has all uses; `None` without one.
fn life(uses: &[Use], all: &[Statement<'_>]) -> Option<Lifetime> {
    let outer = &uses.first()?.loops;
    let shared = |u: &Use| outer.iter().zip(&u.loops).take_while(|(a, b)| a == b).count();
    let depth = uses.iter().map(shared).min()?;
    if depth == 0 {
        return None;
    }
    // A use inside of a loop further in counts for the whole of that.
    let span = |u: &Use| u.loops.get(depth).map_or((u.position, u.position), |&at| (at, all[at as usize].end - 1));
    let first = uses.iter().map(|u| span(u).0).min()?;
    let last = uses.iter().map(|u| span(u).1).max()?;
    Some(Lifetime { first, last })
}

/// The dynamic loops around a statement, outermost first. `None` if an iteration of the outermost may leave the statement out: because of a branch, or of
/// a loop that may run no iteration.
fn sure_loops(all: &[Statement<'_>], position: u32) -> Option<Vec<u32>> {
    let mut loops: Vec<u32> = around(all, position).collect();
    loops.reverse();
    let sure = |(n, &at): (usize, &u32)| match all[at as usize].node.kind.control() {
        Some(Control::For { lower: Bound::Static(lower), upper: Bound::Static(upper), .. }) => n == 0 || lower < upper,
        Some(Control::For { .. } | Control::While { .. }) => n == 0,
        Some(Control::If { .. }) | None => false,
    };
    loops.iter().enumerate().all(sure).then_some(loops)
}
