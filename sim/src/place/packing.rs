//! Partition packing: tiles of at most 64 partitions in halves of the partitions, for programs that do not fit otherwise.
//!
//! By default, a tensor occupies its bytes in all partitions. One with at most 64 partitions needs them only in half of the partitions, so that two
//! tensors can have the same bytes: one in partitions 0 to 63, one from 64. An instruction reads its operands from the same partitions, so tensors
//! that are read together stay in the same half.
//!
//! Tensors that share an address ([`super::reuse`]) form one tile here. nki-library's RoPE of 512 heads (`test_rope_manual`) only fits with both.

use std::cmp::Reverse;

use nki_isa::inst::{Footprint, Placing};
use nki_isa::program::NodeKind;
use nki_isa::{Inst, Program, TensorId};
use rustc_hash::FxHashMap;

use super::Item;
use super::reuse::Shared;
use crate::trace::index_nodes;

/// Partitions of a half.
pub(super) const HALF: u32 = 64;
/// Smaller tensors are not packed.
const LEAST_BYTES: u32 = 1024;
/// Maximum number of tensors, the largest ones, and of groups: every distribution of the groups is tried.
const MOST: usize = 500;
const MOST_GROUPS: usize = 10;

/// The partitions that a tensor occupies: bit 0 for the lower half, bit 1 for the upper.
pub(super) type Halves = u8;
pub(super) const LOWER: Halves = 1;
pub(super) const UPPER: Halves = 2;
pub(super) const BOTH: Halves = 3;

/// The halves of each item of `shared`, which consists of the items `tensors`, with the lowest possible peak. `None` if no item can be in
/// the upper half.
pub(super) fn choose_halves(program: &Program, core: u32, tensors: &[Item], shared: &Shared) -> Option<Vec<Halves>> {
    let items = &shared.items;
    let mut of: FxHashMap<TensorId, usize> = FxHashMap::default();
    of.extend(tensors.iter().zip(&shared.place).map(|(tensor, &place)| (tensor.id, place)));
    let mut groups = Groups { leader: (0..items.len()).collect(), fixed: vec![false; items.len()], of };
    let mut footprint = Footprint::default();
    for (other, stream) in program.cores.iter().enumerate() {
        for node in index_nodes(stream) {
            let NodeKind::Inst(inst) = &node.kind else { continue };
            footprint.clear();
            inst.footprint(&mut footprint);
            groups.instruction(inst, &footprint, other as u32 != core);
        }
    }
    let mut narrow = vec![true; items.len()];
    for (tensor, &place) in tensors.iter().zip(&shared.place) {
        narrow[place] &= program.tensor(tensor.id).shape.first().is_some_and(|&p| p <= HALF);
    }
    for (i, narrow) in narrow.iter().enumerate() {
        if !narrow {
            let leader = groups.leader(i);
            groups.fixed[leader] = true;
        }
    }
    let leaders: Vec<usize> = (0..items.len()).map(|i| groups.leader(i)).collect();
    let mut bytes: FxHashMap<usize, u64> = FxHashMap::default();
    let mut largest: Vec<usize> = (0..items.len()).filter(|&i| items[i].taken >= LEAST_BYTES).collect();
    largest.sort_by_key(|&i| (Reverse(items[i].taken), i));
    largest.truncate(MOST);
    for &i in largest.iter().filter(|&&i| !groups.fixed[leaders[i]]) {
        *bytes.entry(leaders[i]).or_default() += u64::from(items[i].taken);
    }
    let mut movable: Vec<usize> = bytes.keys().copied().collect();
    movable.sort_by_key(|l| (Reverse(bytes[l]), *l));
    movable.truncate(MOST_GROUPS);
    if movable.is_empty() {
        return None;
    }
    let in_half = |i: usize, choice: u32| match movable.iter().position(|&l| l == leaders[i]) {
        Some(group) if choice >> group & 1 == 1 => UPPER,
        _ if narrow[i] => LOWER,
        _ => BOTH,
    };
    let peak = |choice: u32| {
        let alive = |half: Halves, at: u32| {
            let there = largest.iter().filter(|&&i| items[i].life.first <= at && at <= items[i].life.last);
            there.filter(|&&i| in_half(i, choice) & half != 0).map(|&i| u64::from(items[i].taken)).sum::<u64>()
        };
        let starts = largest.iter().map(|&i| items[i].life.first);
        starts.map(|at| alive(LOWER, at).max(alive(UPPER, at))).max()
    };
    let best = (0..1u32 << movable.len()).min_by_key(|&choice| (peak(choice), choice))?;
    (best != 0).then(|| (0..items.len()).map(|i| in_half(i, best)).collect())
}

/// Groups of tensors in the same half, as disjoint sets over the indices of the items.
struct Groups {
    leader: Vec<usize>,
    /// By leader: whether the group must stay in the lower half.
    fixed: Vec<bool>,
    of: FxHashMap<TensorId, usize>,
}

impl Groups {
    fn leader(&mut self, mut i: usize) -> usize {
        while self.leader[i] != i {
            self.leader[i] = self.leader[self.leader[i]];
            i = self.leader[i];
        }
        i
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.leader(a), self.leader(b));
        self.leader[b] = a;
        self.fixed[a] |= self.fixed[b];
    }

    fn instruction(&mut self, inst: &Inst, footprint: &Footprint<'_>, of_another_core: bool) {
        let placing = if of_another_core { Placing::Fixed } else { inst.placing() };
        let read: Vec<usize> = footprint.reads.iter().filter_map(|v| self.of.get(&v.tensor).copied()).collect();
        match placing {
            Placing::Fixed => {
                let written = footprint.writes.iter().filter_map(|v| self.of.get(&v.tensor).copied());
                for i in read.iter().copied().chain(written).collect::<Vec<_>>() {
                    let leader = self.leader(i);
                    self.fixed[leader] = true;
                }
            }
            Placing::AnyPartition => {}
            Placing::SamePartition | Placing::InPlace => {
                for pair in read.windows(2) {
                    self.join(pair[0], pair[1]);
                }
            }
        }
    }
}
