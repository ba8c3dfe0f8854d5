//! Dicts and their keys.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::set::SetTable;
use super::value::{Instance, Value};

/// The form in which keys are compared and hashed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Key {
    None,
    /// Ints, bools and floats with an integer value.
    Int(i64),
    Float(u64),
    Str(Rc<str>),
    Tuple(Box<[Key]>),
    /// The sorted keys of a frozenset.
    Set(Box<[Key]>),
    /// Types, functions and objects, compared by identity.
    Identity(usize),
    /// Functions, types and objects that are identified by a name.
    Name(String),
}

/// A dict in insertion order, or a set.
#[derive(Default, Clone)]
pub(crate) struct Dict {
    entries: Vec<(Key, Value, Value)>,
    /// Built when the ninth entry is added.
    index: FxHashMap<Key, usize>,
    /// Whether this is a `frozenset`, which never changes.
    pub(crate) is_frozen: bool,
    /// The factory of a `defaultdict`.
    pub(crate) factory: Option<Value>,
    /// Of a set: CPython's hash table, which defines the iteration order.
    pub(super) table: Option<Box<SetTable>>,
    /// The owner of this dict, if it is an object's `__dict__`.
    pub(crate) owner: Owner,
}

/// The object whose attributes a dict holds. A copy of the dict has no owner.
#[derive(Default)]
pub(crate) struct Owner(pub(crate) Option<Rc<Instance>>);

impl Clone for Owner {
    fn clone(&self) -> Self {
        Owner(None)
    }
}

const SMALL: usize = 8;

impl Dict {
    /// The empty set, or frozenset.
    pub(crate) fn empty_set(is_frozen: bool) -> Self {
        Dict { is_frozen, table: Some(Box::default()), ..Dict::default() }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn position(&self, key: &Key) -> Option<usize> {
        if self.entries.len() <= SMALL {
            self.entries.iter().position(|e| e.0 == *key)
        } else {
            self.index.get(key).copied()
        }
    }

    /// The value for a key.
    pub(crate) fn get(&self, key: &Key) -> Option<&Value> {
        self.position(key).map(|i| &self.entries[i].2)
    }

    /// The original value of a key.
    pub(super) fn item(&self, key: &Key) -> Option<&Value> {
        self.position(key).map(|i| &self.entries[i].1)
    }

    /// Sets a key. `original` is the value from which the key was made.
    pub(crate) fn set(&mut self, key: Key, original: Value, value: Value) {
        match self.position(&key) {
            Some(index) => self.entries[index].2 = value,
            None => {
                if self.entries.len() >= SMALL {
                    if self.entries.len() == SMALL {
                        self.reindex();
                    }
                    self.index.insert(key.clone(), self.entries.len());
                }
                self.note_added(&key);
                self.entries.push((key, original, value));
            }
        }
    }

    /// The values, mutably.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.entries.iter_mut().map(|(_, _, value)| value)
    }

    /// Sets a string key.
    pub(crate) fn set_str(&mut self, key: &Rc<str>, value: Value) {
        self.set(Key::Str(key.clone()), Value::Str(key.clone()), value);
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Value> {
        let index = self.position(key)?;
        self.note_removed(key);
        if self.table.is_none() {
            let entry = self.entries.remove(index);
            self.reindex();
            return Some(entry.2);
        }
        // The table defines the order, so the last entry may move here.
        let entry = self.entries.swap_remove(index);
        self.index.remove(key);
        match self.entries.get(index) {
            Some((moved, ..)) if self.entries.len() > SMALL => drop(self.index.insert(moved.clone(), index)),
            _ if self.entries.len() == SMALL => self.reindex(),
            _ => {}
        }
        Some(entry.2)
    }

    /// Removes the last entry.
    pub(crate) fn pop_last(&mut self) -> Option<(Value, Value)> {
        let (key, original, value) = self.entries.pop()?;
        self.index.remove(&key);
        Some((original, value))
    }

    fn reindex(&mut self) {
        self.index.clear();
        if self.entries.len() >= SMALL {
            self.index.extend(self.entries.iter().enumerate().map(|(i, e)| (e.0.clone(), i)));
        }
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.index.clear();
        self.note_cleared();
    }

    /// Hashed key, key and value: of a dict in insertion order, of a set in its iteration order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&Key, &Value, &Value)> {
        let order = self.order();
        (0..self.entries.len()).map(move |i| {
            let (key, original, value) = &self.entries[order.map_or(i, |order| order[i])];
            (key, original, value)
        })
    }

    /// The same in insertion order, unless an entry was removed.
    pub(super) fn iter_added(&self) -> impl Iterator<Item = (&Key, &Value, &Value)> {
        self.entries.iter().map(|e| (&e.0, &e.1, &e.2))
    }

    /// The key and value at a position.
    pub(crate) fn entry(&self, position: usize) -> Option<(&Value, &Value)> {
        let position = self.order().map_or(Some(position), |order| order.get(position).copied())?;
        self.entries.get(position).map(|(_, key, value)| (key, value))
    }

    /// The keys.
    pub(crate) fn keys(&self) -> Vec<Value> {
        self.iter().map(|(_, key, _)| key.clone()).collect()
    }
}
