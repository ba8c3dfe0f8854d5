//! Sets in CPython's iteration order, which is determined by its hash table.
//!
//! The order is reproduced for items whose hash is the same in every run: numbers, and tuples and
//! frozensets of them. A set with other items, such as strings, iterates in insertion order,
//! because their hashes vary between runs.

use std::cell::OnceCell;

use super::dict::{Dict, Key};
use super::hash::{hash_float, hash_int, hash_of_items, hash_of_set};
use super::value::Value;

/// Slots of an empty table.
const SMALLEST: usize = 8;
/// Neighbours of a slot that are probed before the next jump.
const LINEAR_PROBES: usize = 9;
const PERTURB_SHIFT: u32 = 5;

/// A slot of the table.
#[derive(Clone)]
enum Slot {
    Empty,
    /// Its item was removed.
    Dummy,
    Full(u64, Key),
}

/// CPython's hash table of a set.
#[derive(Clone)]
pub(super) struct SetTable {
    slots: Vec<Slot>,
    /// Slots that are not empty.
    fill: usize,
    used: usize,
    /// Where `pop` starts to search.
    finger: usize,
    /// The indices of the items in the set's entries, in table order.
    order: OnceCell<Vec<usize>>,
}

impl Default for SetTable {
    fn default() -> Self {
        SetTable { slots: vec![Slot::Empty; SMALLEST], fill: 0, used: 0, finger: 0, order: OnceCell::new() }
    }
}

impl Key {
    /// CPython's hash, if it is the same in every run.
    fn stable_hash(&self) -> Option<i64> {
        match self {
            Key::Int(n) => Some(hash_int(*n)),
            Key::Float(bits) => Some(f64::from_bits(*bits)).filter(|x| !x.is_nan()).map(hash_float),
            Key::Tuple(items) => Some(hash_of_items(items.iter().map(Key::stable_hash).collect::<Option<Vec<_>>>()?)),
            Key::Set(items) => Some(hash_of_set(items.iter().map(Key::stable_hash).collect::<Option<Vec<_>>>()?)),
            Key::None | Key::Str(_) | Key::Identity(_) | Key::Name(_) => None,
        }
    }
}

impl SetTable {
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    /// The first slot in the probe sequence of a hash for which `ends` holds.
    fn probe(&self, hash: u64, mut ends: impl FnMut(usize, &Slot) -> bool) -> usize {
        let mask = self.mask();
        let (mut perturb, mut at) = (hash, hash as usize & mask);
        loop {
            let last = if at + LINEAR_PROBES <= mask { at + LINEAR_PROBES } else { at };
            if let Some(found) = (at..=last).find(|&slot| ends(slot, &self.slots[slot])) {
                return found;
            }
            perturb >>= PERTURB_SHIFT;
            at = at.wrapping_mul(5).wrapping_add(1).wrapping_add(perturb as usize) & mask;
        }
    }

    /// Stores a new item in the first empty slot.
    fn place(&mut self, hash: u64, key: Key) {
        let at = self.probe(hash, |_, slot| matches!(slot, Slot::Empty));
        self.slots[at] = Slot::Full(hash, key);
        self.fill += 1;
        self.used += 1;
        self.order.take();
    }

    /// Adds a new item: in the last slot of a removed item in its probe sequence, or else in the
    /// empty slot at its end.
    fn add(&mut self, hash: u64, key: Key) {
        let mut free = None;
        self.probe(hash, |at, slot| {
            if matches!(slot, Slot::Dummy) {
                free = Some(at);
            }
            matches!(slot, Slot::Empty)
        });
        if let Some(at) = free {
            self.slots[at] = Slot::Full(hash, key);
            self.used += 1;
            self.order.take();
            return;
        }
        self.place(hash, key);
        if self.fill * 5 >= self.mask() * 3 {
            self.grow();
        }
    }

    fn grow(&mut self) {
        self.resize(if self.used > 50_000 { self.used * 2 } else { self.used * 4 });
    }

    /// Rebuilds the table with more than `least` slots, without those of removed items.
    fn resize(&mut self, least: usize) {
        let mut size = SMALLEST;
        while size <= least {
            size *= 2;
        }
        let old = std::mem::replace(&mut self.slots, vec![Slot::Empty; size]);
        (self.fill, self.used) = (0, 0);
        for slot in old {
            if let Slot::Full(hash, key) = slot {
                self.place(hash, key);
            }
        }
    }

    /// Reserves space for `items` additional items.
    fn reserve(&mut self, items: usize) {
        if (self.fill + items) * 5 >= self.mask() * 3 {
            self.resize((self.used + items) * 2);
        }
    }

    fn remove(&mut self, hash: u64, key: &Key) {
        let at = self.probe(hash, |_, slot| match slot {
            Slot::Empty => true,
            Slot::Dummy => false,
            Slot::Full(own, item) => *own == hash && item == key,
        });
        self.take(at);
    }

    fn take(&mut self, at: usize) -> Option<Key> {
        if !matches!(self.slots[at], Slot::Full(..)) {
            return None;
        }
        self.used -= 1;
        self.order.take();
        match std::mem::replace(&mut self.slots[at], Slot::Dummy) {
            Slot::Full(_, key) => Some(key),
            _ => None,
        }
    }

    /// Removes and returns the item for `pop`.
    fn pop(&mut self) -> Option<Key> {
        let (start, mask) = (self.finger & self.mask(), self.mask());
        let slots = (start..=mask).chain(0..start);
        let at = slots.into_iter().find(|&at| matches!(self.slots[at], Slot::Full(..)))?;
        self.finger = at + 1;
        self.take(at)
    }

    /// After many removals, drops their slots.
    fn tidy(&mut self) {
        if self.fill - self.used > self.mask() / 4 {
            self.grow();
        }
    }

    fn keys(&self) -> impl Iterator<Item = (u64, &Key)> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Full(hash, key) => Some((*hash, key)),
            Slot::Empty | Slot::Dummy => None,
        })
    }
}

/// The kind of a set method's other operand, which decides how CPython iterates over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A set.
    Set,
    /// A dict, whose keys are used.
    Dict,
    /// Another iterable.
    Items,
}

impl Dict {
    /// The iteration order as indices of entries; `None` if it is insertion order.
    pub(super) fn order(&self) -> Option<&[usize]> {
        let table = self.table.as_ref()?;
        Some(table.order.get_or_init(|| table.keys().filter_map(|(_, key)| self.position(key)).collect()))
    }

    /// Records that an item was added.
    pub(super) fn note_added(&mut self, key: &Key) {
        let Some(table) = &mut self.table else { return };
        match key.stable_hash() {
            Some(hash) => table.add(hash as u64, key.clone()),
            None => self.table = None,
        }
    }

    /// Records that an item was removed.
    pub(super) fn note_removed(&mut self, key: &Key) {
        if let (Some(table), Some(hash)) = (&mut self.table, key.stable_hash()) {
            table.remove(hash as u64, key);
        }
    }

    /// Records that all items were removed.
    pub(super) fn note_cleared(&mut self) {
        if let Some(table) = &mut self.table {
            let finger = table.finger;
            **table = SetTable { finger, ..SetTable::default() };
        }
    }

    /// Keeps the insertion order, which is the host's order, if it differs from the table's.
    pub(crate) fn keep_order(&mut self) {
        if self.order().is_some_and(|order| !order.is_sorted()) {
            self.table = None;
        }
    }

    /// Adds an item.
    pub(crate) fn add(&mut self, key: &Key, item: &Value) {
        if self.get(key).is_none() {
            self.set(key.clone(), item.clone(), Value::None);
        }
    }

    /// Removes and returns an item.
    pub(crate) fn pop(&mut self) -> Option<Value> {
        let key = match &mut self.table {
            Some(table) => table.pop()?,
            None => self.iter().next().map(|(key, ..)| key.clone())?,
        };
        let item = self.item(&key).cloned();
        self.remove(&key);
        item
    }

    /// Adds the items of another container.
    pub(crate) fn update(&mut self, other: &Dict, operand: Operand) {
        if other.len() == 0 {
            return;
        }
        if operand != Operand::Items
            && let Some(table) = &mut self.table
        {
            table.reserve(other.len());
        }
        // As in CPython, an empty set copies the table of another set if both tables have the same size.
        let copied = match (&self.table, &other.table, operand) {
            (Some(own), Some(table), Operand::Set)
                if own.fill == 0 && own.mask() == table.mask() && table.fill == table.used =>
            {
                let finger = own.finger;
                Some(Box::new(SetTable { finger, ..(**table).clone() }))
            }
            _ => None,
        };
        if let Some(table) = copied {
            self.table = None;
            other.iter_added().for_each(|(key, item, _)| self.add(key, item));
            self.table = Some(table);
            return;
        }
        other.iter().for_each(|(key, item, _)| self.add(key, item));
    }

    /// A copy without the slots of removed items, as in CPython.
    pub(crate) fn copy_set(&self, is_frozen: bool) -> Dict {
        let mut copy = Dict::empty_set(is_frozen);
        copy.update(self, Operand::Set);
        copy
    }

    /// The intersection with another container.
    pub(crate) fn intersection(&self, other: &Dict, operand: Operand) -> Dict {
        let mut common = Dict::empty_set(self.is_frozen);
        // For two sets, the items of the smaller one are looked up in the larger one.
        let (within, items) =
            if operand == Operand::Set && other.len() > self.len() { (other, self) } else { (self, other) };
        for (key, item, _) in items.iter().filter(|(key, ..)| within.get(key).is_some()) {
            common.add(key, item);
        }
        common
    }

    /// The difference with another container.
    pub(crate) fn difference(&self, other: &Dict, operand: Operand) -> Dict {
        if operand == Operand::Items || self.len() >> 2 > other.len() {
            let mut rest = self.copy_set(self.is_frozen);
            rest.subtract(other);
            return rest;
        }
        let mut rest = Dict::empty_set(self.is_frozen);
        for (key, item, _) in self.iter().filter(|(key, ..)| other.get(key).is_none()) {
            rest.add(key, item);
        }
        rest
    }

    /// Removes the items that are in another container.
    pub(crate) fn subtract(&mut self, other: &Dict) {
        for (key, ..) in other.iter() {
            self.remove(key);
        }
        if let Some(table) = &mut self.table {
            table.tidy();
        }
    }

    /// Replaces the set by its symmetric difference with another container.
    pub(crate) fn toggle(&mut self, other: &Dict) {
        for (key, item, _) in other.iter() {
            if self.remove(key).is_none() {
                self.add(key, item);
            }
        }
    }

    /// The symmetric difference of two containers.
    pub(crate) fn symmetric_difference(&self, other: &Dict, operand: Operand) -> Dict {
        let mut one = Dict::empty_set(self.is_frozen);
        one.update(other, operand);
        one.toggle(self);
        one
    }
}
