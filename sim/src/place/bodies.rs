//! Shorter lifetimes for tiles that one dynamic loop has for itself.
//!
//! What is used inside of a dynamic loop is alive for the whole of it, for any iteration may come again. But a tile that only this loop uses, always the
//! same bytes of it, and in every iteration, needs its bytes from its first to its last use in the body only: what an iteration reads of it, that
//! iteration has written, as the first one had to. nki-library's mixture-of-experts kernels do not fit otherwise.

use nki_isa::inst::Footprint;
use nki_isa::program::{Bound, Node, NodeKind};
use nki_isa::{Program, TensorId};
use rustc_hash::FxHashMap;

use super::{Item, Lifetime};

/// A use of a tile: its position, and the dynamic loops around it, outermost first, by number.
struct Use {
    position: u32,
    loops: Vec<usize>,
}

struct Walk<'p> {
    /// The uses of each item; `None` if one of them need not be the same in every iteration.
    uses: FxHashMap<TensorId, Option<Vec<Use>>>,
    position: u32,
    /// The first and last position of each dynamic loop.
    spans: Vec<(u32, u32)>,
    /// Those around the current position, by number.
    loops: Vec<usize>,
    /// How many branches and loops that may run no iteration are around the current position, the outermost loop not counted.
    doubts: u32,
    footprint: Footprint<'p>,
}

/// Shortens lifetimes of automatic items of a core where that is safe, and says whether there were any.
pub(super) fn shorten(program: &Program, core: u32, items: &mut [Item]) -> bool {
    let Some(stream) = program.cores.get(core as usize) else { return false };
    let mut walk = Walk {
        // What another core uses is alive throughout.
        uses: items.iter().filter(|i| i.life.last != u32::MAX).map(|i| (i.id, Some(Vec::new()))).collect(),
        position: 0,
        spans: Vec::new(),
        loops: Vec::new(),
        doubts: 0,
        footprint: Footprint::default(),
    };
    walk.nodes(stream);
    let mut any = false;
    for item in items.iter_mut() {
        let Some(uses) = walk.uses.get(&item.id).and_then(Option::as_ref) else { continue };
        if let Some(life) = life(uses, &walk.spans)
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
fn life(uses: &[Use], spans: &[(u32, u32)]) -> Option<Lifetime> {
    let outer = &uses.first()?.loops;
    let shared = |u: &Use| outer.iter().zip(&u.loops).take_while(|(a, b)| a == b).count();
    let depth = uses.iter().map(shared).min()?;
    if depth == 0 {
        return None;
    }
    // A use inside of a loop further in counts for the whole of that.
    let span = |u: &Use| u.loops.get(depth).map_or((u.position, u.position), |&number| spans[number]);
    let first = uses.iter().map(|u| span(u).0).min()?;
    let last = uses.iter().map(|u| span(u).1).max()?;
    Some(Lifetime { first, last })
}

impl<'p> Walk<'p> {
    fn nodes(&mut self, nodes: &'p [Node]) {
        for node in nodes {
            let here = self.position;
            self.position += 1;
            match &node.kind {
                NodeKind::Inst(inst) => {
                    self.footprint.clear();
                    inst.footprint(&mut self.footprint);
                    for view in self.footprint.reads.iter().chain(&self.footprint.writes) {
                        let Some(uses) = self.uses.get_mut(&view.tensor) else { continue };
                        match uses {
                            Some(list) if self.doubts == 0 && view.indirect.is_none() => {
                                list.push(Use { position: here, loops: self.loops.clone() });
                            }
                            _ => *uses = None,
                        }
                    }
                }
                NodeKind::For { lower, upper, body, .. } => {
                    let sure = matches!((lower, upper), (Bound::Static(a), Bound::Static(b)) if a < b);
                    self.repeat(here, body, sure);
                }
                NodeKind::While { body, .. } => self.repeat(here, body, false),
                NodeKind::If { then, otherwise, .. } => {
                    self.doubts += 1;
                    self.nodes(then);
                    self.nodes(otherwise);
                    self.doubts -= 1;
                }
            }
        }
    }

    fn repeat(&mut self, here: u32, body: &'p [Node], sure: bool) {
        let doubt = u32::from(!sure && !self.loops.is_empty());
        self.doubts += doubt;
        let number = self.spans.len();
        self.spans.push((here, here));
        self.loops.push(number);
        self.nodes(body);
        self.loops.pop();
        self.spans[number].1 = self.position - 1;
        self.doubts -= doubt;
    }
}
