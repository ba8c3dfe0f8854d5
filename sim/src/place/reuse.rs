//! Reuse of bytes by several tensors, including in-place reuse where an instruction allows it, for programs that do not fit otherwise.
//!
//! A tensor is alive from its first to its last use, but its lifetime has gaps: a value ends at its last use before the whole tensor is
//! overwritten. Tensors of equal size whose values are never alive together can share an address. A value may end at the same instruction
//! at which the other begins, if that is element-wise: `exp(chunk)` may overwrite `chunk`.
//!
//! Published kernels rely on this: nki-library's cross entropy has two tiles of 65535 bfloat16 numbers, 262140 bytes in a partition of 229376.

use nki_isa::inst::{Footprint, Placing};
use nki_isa::program::{Node, NodeKind, Statements};
use nki_isa::{Inst, Program, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Item, Lifetime};
use crate::trace::index_nodes;

/// Smaller tensors are not considered.
const LEAST_BYTES: u32 = 1024;
/// Maximum number of tensors, the largest ones: all pairs are compared.
const MOST: usize = 500;

/// Items with one address each, for one or several tensors.
pub(super) struct Shared {
    /// One per address, alive as long as any of its tensors.
    pub(super) items: Vec<Item>,
    /// By original item: its index among `items`.
    pub(super) place: Vec<usize>,
}

/// The items, with those that can share an address merged. `None` if nothing can be shared.
pub(super) fn share(program: &Program, core: u32, items: &[Item]) -> Option<Shared> {
    let mut order: Vec<usize> = (0..items.len()).filter(|&i| items[i].taken >= LEAST_BYTES).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(items[i].taken), items[i].life.first, items[i].id));
    order.truncate(MOST);
    let mut wanted: FxHashMap<TensorId, usize> = FxHashMap::default();
    wanted.extend(order.iter().map(|&i| (items[i].id, i)));
    let values = Walk::over(program, core, &wanted);
    // Groups of items, by index.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &i in &order {
        let fits = |group: &&mut Vec<usize>| {
            items[group[0]].taken == items[i].taken
                // Items that are never alive together need no sharing.
                && group.iter().any(|&g| items[g].life.overlaps(&items[i].life))
                && group.iter().all(|&g| values.apart(items[g].id, items[i].id))
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    if groups.iter().all(|g| g.len() == 1) {
        return None;
    }
    let mut leader: Vec<usize> = (0..items.len()).collect();
    for group in &groups {
        let first = group.iter().copied().min_by_key(|&i| (items[i].life.first, items[i].id)).unwrap_or(group[0]);
        for &i in group {
            leader[i] = first;
        }
    }
    let mut shared: Vec<Item> = Vec::new();
    let mut place = vec![0; items.len()];
    // Items are in order of first use, and so are the leaders.
    for i in 0..items.len() {
        let l = leader[i];
        if l == i {
            place[i] = shared.len();
            shared.push(items[i]);
        }
    }
    for i in 0..items.len() {
        place[i] = place[leader[i]];
        let life = &mut shared[place[i]].life;
        life.last = life.last.max(items[i].life.last);
    }
    Some(Shared { items: shared, place })
}

/// The lifetimes of the values in tensors.
#[derive(Default)]
struct Values {
    /// By tensor, in order. A tensor used by a dynamic loop or a branch has no entry: it is alive throughout.
    of: FxHashMap<TensorId, Vec<Lifetime>>,
    /// Position, tensor with its last read, tensor that overwrites it.
    in_place: FxHashSet<(u32, TensorId, TensorId)>,
}

impl Values {
    /// Whether the tensors never hold a value at the same time.
    fn apart(&self, a: TensorId, b: TensorId) -> bool {
        let (Some(mine), Some(theirs)) = (self.of.get(&a), self.of.get(&b)) else { return false };
        let (mut i, mut j) = (0, 0);
        while let (Some(x), Some(y)) = (mine.get(i), theirs.get(j)) {
            let handed = |first: &Lifetime, from, second: &Lifetime, to| {
                first.last == second.first
                    && first.first < second.first
                    && self.in_place.contains(&(first.last, from, to))
            };
            if x.overlaps(y) && !handed(x, a, y, b) && !handed(y, b, x, a) {
                return false;
            }
            if x.last <= y.last {
                i += 1;
            } else {
                j += 1;
            }
        }
        true
    }
}

struct Walk<'a> {
    program: &'a Program,
    wanted: &'a FxHashMap<TensorId, usize>,
    values: Values,
}

impl<'a> Walk<'a> {
    fn over(program: &'a Program, core: u32, wanted: &'a FxHashMap<TensorId, usize>) -> Values {
        let mut walk = Walk { program, wanted, values: Values::default() };
        let mut whole_life: Vec<TensorId> = Vec::new();
        for (other, stream) in program.cores.iter().enumerate() {
            if other as u32 == core {
                walk.stream(stream, &mut whole_life);
            } else {
                // A tensor used by another core is alive throughout.
                mentioned(stream, wanted, &mut whole_life);
            }
        }
        for tensor in whole_life {
            walk.values.of.remove(&tensor);
        }
        walk.values
    }

    fn stream(&mut self, stream: &'a [Node], whole_life: &mut Vec<TensorId>) {
        let mut footprint = Footprint::default();
        for (at, statement) in (0..).zip(Statements::of(stream).iter()) {
            let NodeKind::Inst(inst) = &statement.node.kind else { continue };
            footprint.clear();
            inst.footprint(&mut footprint);
            self.instruction(at, inst, &footprint);
            if statement.parent.is_some() {
                let all = footprint.reads.iter().chain(&footprint.writes).map(|v| v.tensor);
                whole_life.extend(all.filter(|t| self.wanted.contains_key(t)));
            }
        }
    }

    fn instruction(&mut self, at: u32, inst: &Inst, footprint: &Footprint<'_>) {
        let dynamic = footprint.reads.iter().chain(&footprint.writes).any(|v| v.indirect.is_some());
        for view in footprint.reads.iter().filter(|v| self.wanted.contains_key(&v.tensor)) {
            self.touch(view.tensor, at);
        }
        for view in footprint.writes.iter().filter(|v| self.wanted.contains_key(&v.tensor)) {
            let reads_it = footprint.reads.iter().any(|r| r.tensor == view.tensor);
            if dynamic || reads_it || !self.is_whole(view) {
                self.touch(view.tensor, at);
                continue;
            }
            self.values.of.entry(view.tensor).or_default().push(Lifetime { first: at, last: at });
            if inst.placing() == Placing::InPlace {
                let same = |r: &View| r.dims == view.dims && r.dtype.size() == view.dtype.size() && self.is_whole(r);
                // A tensor that is also read in another way must outlive the instruction.
                let given = |t: TensorId| footprint.reads.iter().filter(|r| r.tensor == t).all(|r| same(r));
                let given: Vec<TensorId> = footprint.reads.iter().map(|r| r.tensor).filter(|t| given(*t)).collect();
                self.values.in_place.extend(given.into_iter().map(|from| (at, from, view.tensor)));
            }
        }
    }

    fn touch(&mut self, tensor: TensorId, at: u32) {
        let values = self.values.of.entry(tensor).or_default();
        match values.last_mut() {
            Some(value) => value.last = at,
            None => values.push(Lifetime { first: at, last: at }),
        }
    }

    fn is_whole(&self, view: &View) -> bool {
        let tensor = self.program.tensor(view.tensor);
        view.indirect.is_none()
            && view.partition == 0
            && view.offset == 0
            && view.is_contiguous()
            && Some(&view.partitions()) == tensor.shape.first()
            && view.free_elements() * view.dtype.size() == tensor.bytes()
    }
}

fn mentioned(stream: &[Node], wanted: &FxHashMap<TensorId, usize>, out: &mut Vec<TensorId>) {
    let mut footprint = Footprint::default();
    for node in index_nodes(stream) {
        let NodeKind::Inst(inst) = &node.kind else { continue };
        footprint.clear();
        inst.footprint(&mut footprint);
        let all = footprint.reads.iter().chain(&footprint.writes).map(|v| v.tensor);
        out.extend(all.filter(|t| wanted.contains_key(t)));
    }
}
