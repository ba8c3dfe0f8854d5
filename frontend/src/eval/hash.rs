//! Keys of dicts and sets, and `hash()`.

use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::language::Construct;
use super::native::CallArgs;
use super::value::*;
use crate::syntax::*;

/// CPython's hashes of numbers are remainders modulo this prime.
const MODULUS: u64 = (1 << 61) - 1;

/// How objects of a class are hashed.
enum Hashing {
    Identity,
    /// By the fields that are compared.
    Fields,
    /// By a `__hash__`.
    Method(Value),
    /// Objects are unhashable.
    Refused,
}

impl Class {
    /// Whether objects are hashed by the built-in value from which they derive: no class in the
    /// kernel's source defines a hash or equality.
    fn hashes_as_base(&self) -> bool {
        let defines = |class: &Rc<Class>| {
            let attrs = class.attrs.borrow();
            attrs.get(sym::hash).is_some() || attrs.get(sym::eq).is_some()
        };
        self.order().find(|class| defines(class)).is_none_or(|class| class.is_of_library())
    }

    /// Whether its objects are unhashable.
    pub(super) fn is_unhashable(&self) -> bool {
        matches!(self.hashing(), Hashing::Refused)
    }

    fn hashing(&self) -> Hashing {
        for class in self.order() {
            let (hash, eq) = {
                let attrs = class.attrs.borrow();
                (attrs.get(sym::hash).cloned(), attrs.get(sym::eq).is_some())
            };
            match (hash, class.kind.get()) {
                (Some(Value::None), _) => return Hashing::Refused,
                (Some(method), _) => return Hashing::Method(method),
                (None, ClassKind::Dataclass(DataclassKind { eq: true, frozen, unsafe_hash, .. })) => {
                    return if frozen || unsafe_hash { Hashing::Fields } else { Hashing::Refused };
                }
                (None, _) if eq => return Hashing::Refused,
                (None, ClassKind::NamedTuple | ClassKind::Record) => return Hashing::Fields,
                (None, _) => {}
            }
        }
        Hashing::Identity
    }
}

impl Interp<'_> {
    /// The key of a new dict entry. Compilers before 0.7 accepted only strings.
    pub(crate) fn new_key(&mut self, value: &Value, span: Span) -> EvalResult<Key> {
        let key = self.key(value, span)?;
        if !matches!(key, Key::Str(_)) {
            self.check_strictly(Construct::DictKey(&value.type_name(), span));
        }
        Ok(key)
    }

    /// The key for a dict lookup.
    pub(crate) fn key(&mut self, value: &Value, span: Span) -> EvalResult<Key> {
        if let Value::Str(text) = value.plain() {
            return Ok(Key::Str(text.clone()));
        }
        if matches!(value, Value::Poison) {
            return Err(Raise::reported());
        }
        self.hash_key(value, span)
    }

    /// The hashable form of a value.
    pub(crate) fn hash_key(&mut self, value: &Value, span: Span) -> EvalResult<Key> {
        self.hash_key_of(value, span, 0)
    }

    fn hash_keys_of(&mut self, values: &[Value], span: Span, depth: u32) -> EvalResult<Vec<Key>> {
        values.iter().map(|value| self.hash_key_of(value, span, depth + 1)).collect()
    }

    fn hash_key_of(&mut self, value: &Value, span: Span, depth: u32) -> EvalResult<Key> {
        if depth > 0 {
            self.is_too_deep(depth);
            self.count_steps(1);
            self.check_steps(span)?;
            self.charge(2 * size_of::<Key>(), span)?;
        }
        Ok(match value {
            Value::Poison => return Err(Raise::reported()),
            Value::None => Key::None,
            Value::Str(text) => Key::Str(text.clone()),
            Value::Int(_) | Value::Bool(_) => Key::Int(value.as_int().unwrap_or(0)),
            Value::Float(x) if x.fract() == 0.0 && x.abs() < 9e15 => Key::Int(*x as i64),
            Value::Float(x) => Key::Float(x.to_bits()),
            Value::Tuple(items) => Key::Tuple(self.hash_keys_of(items, span, depth)?.into()),
            Value::Set(set) if set.borrow().is_frozen => {
                let mut keys: Vec<Key> = set.borrow().iter().map(|(key, ..)| key.clone()).collect();
                self.charge(keys.len() * size_of::<Key>(), span)?;
                keys.sort_unstable();
                Key::Set(keys.into())
            }
            Value::EnumMember(member) if member.kind().mixin.is_some() => {
                return self.hash_key_of(&member.value, span, depth);
            }
            Value::EnumMember(member) => Key::Identity(Rc::as_ptr(member) as usize),
            Value::Class(class) => Key::Identity(Rc::as_ptr(class) as usize),
            Value::Iterator(iterator) => Key::Identity(Rc::as_ptr(iterator) as usize),
            Value::Function(function) => Key::Identity(Rc::as_ptr(function) as usize),
            Value::Cached(cached) => Key::Identity(Rc::as_ptr(cached) as usize),
            Value::Instance(instance)
                if let Some(base) = instance.base_value()
                    && instance.class.hashes_as_base() =>
            {
                return self.hash_key_of(&base, span, depth);
            }
            Value::Instance(instance) => match instance.class.hashing() {
                Hashing::Identity => Key::Identity(Rc::as_ptr(instance) as usize),
                Hashing::Refused => return Err(unhashable(value, span)),
                Hashing::Method(method) => {
                    let hash = self.call_hash(&method, value, span)?;
                    return self.key_of_equal(value, hash, span);
                }
                Hashing::Fields => {
                    let values = self.hashed_fields(instance).unwrap_or_default();
                    let mut keys = self.hash_keys_of(&values, span, depth)?;
                    // A named tuple equals a tuple; objects of other classes equal only objects of
                    // the same class.
                    if self.named_tuple_items(value).is_none() {
                        keys.push(Key::Identity(Rc::as_ptr(&instance.class) as usize));
                    }
                    Key::Tuple(keys.into())
                }
            },
            Value::Native(native) => Key::Name(native.name.clone()),
            Value::Type(kind) => Key::Name(kind.name().to_owned()),
            Value::ExceptionClass(class) => Key::Name(self.name(*class).to_string()),
            Value::Host(host) => {
                // `torch.float32` is a single object; the result of a call or an element may equal
                // another key.
                if host.path.ends_with([')', ']']) {
                    self.guess_false(span);
                }
                Key::Name(host.path.clone())
            }
            other if let Some(number) = other.number() => return self.hash_key_of(number, span, depth),
            other => {
                if let Value::Object(object) = other
                    && let Some(key) = object.hash_key()
                {
                    return Ok(key);
                }
                return Err(unhashable(other, span));
            }
        })
    }

    fn call_hash(&mut self, method: &Value, value: &Value, span: Span) -> EvalResult<i64> {
        match self.call_with(method, value.clone(), CallArgs::none(span))? {
            Value::Int(hash) => Ok(if hash == -1 { -2 } else { hash }),
            Value::Bool(hash) => Ok(i64::from(hash)),
            _ => Err(Raise::at("type-error", "__hash__() must return an int", span, "hashed here")),
        }
    }

    /// The key of an object with a `__hash__`: that of the first equal object with this hash.
    fn key_of_equal(&mut self, value: &Value, hash: i64, span: Span) -> EvalResult<Key> {
        let known = self.hashed.get(&hash).cloned().unwrap_or_default();
        let mut found = None;
        for candidate in &known {
            if self.equal(candidate, value, span)? {
                found = Some(candidate.clone());
                break;
            }
        }
        let first = match found {
            Some(first) => first,
            None => {
                self.charge_items(4, span)?;
                self.hashed.entry(hash).or_default().push(value.clone());
                value.clone()
            }
        };
        match &first {
            Value::Instance(instance) => Ok(Key::Identity(Rc::as_ptr(instance) as usize)),
            _ => Err(unhashable(value, span)),
        }
    }

    /// `hash(value)`. Hashes that vary between runs in CPython (strings, identities) are the same
    /// in all runs here.
    pub(crate) fn hash_of(&mut self, value: &Value, span: Span) -> EvalResult<i64> {
        // Rejects unhashable values at any depth.
        let key = self.hash_key(value, span)?;
        Ok(match value {
            Value::None => 0xfca8_6420,
            Value::Int(_) | Value::Bool(_) => hash_int(value.as_int().unwrap_or(0)),
            Value::Float(x) => hash_float(*x),
            Value::Tuple(items) => self.hash_items(items, span)?,
            Value::Set(set) => {
                let items = set.borrow().keys();
                self.hash_set(&items, span)?
            }
            Value::EnumMember(member) if member.kind().mixin.is_some() => self.hash_of(&member.value, span)?,
            other if let Some(number) = other.number() => self.hash_of(number, span)?,
            Value::Instance(instance) => match instance.class.hashing() {
                Hashing::Method(method) => self.call_hash(&method, value, span)?,
                Hashing::Fields => {
                    let values = self.hashed_fields(instance).unwrap_or_default();
                    self.hash_items(&values, span)?
                }
                _ => self.number_of(value) >> 4,
            },
            _ => match key {
                Key::Identity(_) => self.number_of(value) >> 4,
                other => fold(&format!("{other:?}")),
            },
        })
    }

    fn hash_items(&mut self, items: &[Value], span: Span) -> EvalResult<i64> {
        items.iter().map(|item| self.hash_of(item, span)).collect::<EvalResult<Vec<_>>>().map(hash_of_items)
    }

    fn hash_set(&mut self, items: &[Value], span: Span) -> EvalResult<i64> {
        items.iter().map(|item| self.hash_of(item, span)).collect::<EvalResult<Vec<_>>>().map(hash_of_set)
    }

    /// The number of an object. Addresses vary between runs, so objects are numbered in the order
    /// of the requests.
    pub(crate) fn number_of(&mut self, value: &Value) -> i64 {
        let same = |a: &Value, b: &Value| match (a, b) {
            (Value::List(_) | Value::Dict(_) | Value::Instance(_), _) => a.is_same(b),
            (a, b) => self.equals(a, b),
        };
        let known = self.ids.iter().position(|v| same(v, value));
        let index = known.unwrap_or(self.ids.len());
        if known.is_none() {
            self.ids.push(value.clone());
        }
        0x1000 + 16 * index as i64
    }
}

fn unhashable(value: &Value, span: Span) -> Box<Raise> {
    let text = format!("{} cannot be a dict key or a set item", value.a_type());
    Raise::at("dict-key", text, span, "used as a key").help("use a string, a number or a tuple of them")
}

/// CPython's hash of a tuple from the hashes of its items: a variant of xxHash.
pub(super) fn hash_of_items(hashes: Vec<i64>) -> i64 {
    const PRIMES: [u64; 3] = [11_400_714_785_074_694_791, 14_029_467_366_897_019_727, 2_870_177_450_012_600_261];
    let mut sum = PRIMES[2];
    for hash in &hashes {
        sum = sum.wrapping_add((*hash as u64).wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0]);
    }
    sum = sum.wrapping_add(hashes.len() as u64 ^ (PRIMES[2] ^ 3_527_539));
    if sum == u64::MAX { 1_546_275_796 } else { sum as i64 }
}

/// CPython's hash of a frozenset from the hashes of its items; independent of their order.
pub(super) fn hash_of_set(hashes: Vec<i64>) -> i64 {
    let shuffled = |hash: u64| ((hash ^ 89_869_747) ^ (hash << 16)).wrapping_mul(3_644_798_167);
    let mut sum = hashes.iter().fold(0, |sum, hash| sum ^ shuffled(*hash as u64));
    sum ^= (hashes.len() as u64 + 1).wrapping_mul(1_927_868_237);
    sum ^= (sum >> 11) ^ (sum >> 25);
    sum = sum.wrapping_mul(69_069).wrapping_add(907_133_923);
    if sum == u64::MAX { 590_923_713 } else { sum as i64 }
}

/// CPython's hash of an int.
pub(super) fn hash_int(value: i64) -> i64 {
    let hash = (value.unsigned_abs() % MODULUS) as i64 * value.signum();
    if hash == -1 { -2 } else { hash }
}

/// CPython's hash of a float.
pub(super) fn hash_float(value: f64) -> i64 {
    if !value.is_finite() {
        return if value.is_nan() { 0 } else { 314_159 * value.signum() as i64 };
    }
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
    let (mantissa, power) = match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, exponent as i64 - 1075),
    };
    // Doubling a number modulo 2^61 - 1 rotates its bits by one.
    let turn = power.rem_euclid(61) as u32;
    let hash = if turn == 0 { mantissa } else { ((mantissa << turn) & MODULUS) | (mantissa >> (61 - turn)) };
    let hash = (hash % MODULUS) as i64 * if value < 0.0 { -1 } else { 1 };
    if hash == -1 { -2 } else { hash }
}

fn fold(text: &str) -> i64 {
    text.bytes().fold(17i64, |h, b| (h.wrapping_mul(31).wrapping_add(i64::from(b))) & 0x7fff_ffff)
}
