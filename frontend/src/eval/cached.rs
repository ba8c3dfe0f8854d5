//! `functools.cache` and `functools.lru_cache`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nki_diag::Span;
use rustc_hash::FxHashMap;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::native::CallArgs;
use super::value::{Key, Partial, Value};
use crate::syntax::Symbol;

/// A function that caches its results.
pub(crate) struct Cached {
    pub(crate) function: Value,
    /// The maximum number of cached results.
    limit: Option<usize>,
    /// Whether equal arguments of different types have separate entries.
    typed: bool,
    results: RefCell<FxHashMap<Key, Entry>>,
    hits: Cell<i64>,
    misses: Cell<i64>,
    /// Logical clock of uses, for the least-recently-used order.
    time: Cell<u64>,
}

struct Entry {
    result: Value,
    last_use: u64,
    /// Keeps the objects alive whose addresses are in the key.
    _arguments: CallArgs,
}

impl Cached {
    /// Wraps a function to cache its results.
    pub(super) fn of(function: Value, limit: Option<usize>, typed: bool) -> Value {
        Value::Cached(Rc::new(Self {
            function,
            limit,
            typed,
            results: RefCell::default(),
            hits: Cell::new(0),
            misses: Cell::new(0),
            time: Cell::new(0),
        }))
    }

    fn tick(&self) -> u64 {
        self.time.set(self.time.get() + 1);
        self.time.get()
    }

    fn find(&self, key: &Key) -> Option<Value> {
        let mut results = self.results.borrow_mut();
        let entry = results.get_mut(key)?;
        entry.last_use = self.tick();
        Some(entry.result.clone())
    }

    fn keep(&self, key: Key, entry: Entry) {
        let mut results = self.results.borrow_mut();
        if self.limit.is_some_and(|limit| results.len() >= limit)
            && let Some(oldest) = results.iter().min_by_key(|(_, entry)| entry.last_use).map(|(key, _)| key.clone())
        {
            results.remove(&oldest);
        }
        results.insert(key, entry);
    }
}

impl Interp<'_> {
    /// Calls a function that caches its results.
    pub(crate) fn call_cached(&mut self, cached: &Rc<Cached>, args: CallArgs) -> EvalResult<Value> {
        let count = |counter: &Cell<i64>| counter.set(counter.get().saturating_add(1));
        if cached.limit == Some(0) {
            count(&cached.misses);
            return self.call(&cached.function, args);
        }
        let key = self.key_of_arguments(cached, &args)?;
        if let Some(result) = cached.find(&key) {
            count(&cached.hits);
            return Ok(result);
        }
        count(&cached.misses);
        let result = self.call(&cached.function, args.clone())?;
        self.charge_items(8 + 4 * args.positional.len(), args.span)?;
        // A recursive call may have cached the same arguments already.
        if cached.find(&key).is_none() {
            let entry = Entry { result: result.clone(), last_use: cached.tick(), _arguments: args };
            cached.keep(key, entry);
        }
        Ok(result)
    }

    fn key_of_arguments(&mut self, cached: &Cached, args: &CallArgs) -> EvalResult<Key> {
        // As in CPython, a single int or string has a different key than an equal number of another
        // type.
        if let ([only @ (Value::Int(_) | Value::Str(_))], true, false) =
            (&args.positional[..], args.keyword.is_empty(), cached.typed)
        {
            return self.hash_key(only, args.span);
        }
        let mut keys = Vec::with_capacity(args.positional.len() + 1);
        for value in &args.positional {
            keys.push(self.hash_key(value, args.span)?);
        }
        for (name, value) in &args.keyword {
            keys.push(Key::Name(self.name(*name).to_string()));
            keys.push(self.hash_key(value, args.span)?);
        }
        if cached.typed {
            for value in args.positional.iter().chain(args.keyword.iter().map(|(_, value)| value)) {
                let class = self.type_of(value, args.span);
                keys.push(self.hash_key(&class, args.span)?);
            }
        }
        Ok(Key::Tuple(keys.into()))
    }

    /// An attribute of a function that caches its results.
    pub(crate) fn cached_attr(&mut self, cached: &Rc<Cached>, name: Symbol, span: Span) -> EvalResult<Option<Value>> {
        let method = |name: &str, func| {
            let function = Value::native(format!("functools.{name}"), func, 0);
            let positional = vec![Value::Cached(cached.clone())];
            Value::Partial(Rc::new(Partial { function, positional, keyword: Vec::new() }))
        };
        Ok(Some(match &*self.name(name) {
            "cache_clear" => method("cache_clear", clear),
            "cache_info" => method("cache_info", info),
            "__wrapped__" => cached.function.clone(),
            _ => return self.find_attr(&cached.function.clone(), name, span),
        }))
    }
}

fn receiver(args: &CallArgs) -> EvalResult<Rc<Cached>> {
    match &args.positional[..] {
        [Value::Cached(cached)] if args.keyword.is_empty() => Ok(cached.clone()),
        _ => Err(Raise::at("arguments", "this method takes no arguments", args.span, "in this call")),
    }
}

fn clear(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let cached = receiver(&args)?;
    cached.results.borrow_mut().clear();
    cached.hits.set(0);
    cached.misses.set(0);
    Ok(Value::None)
}

fn info(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let cached = receiver(&args)?;
    let limit = cached.limit.map_or(Value::None, |limit| Value::Int(limit as i64));
    let size = cached.results.borrow().len() as i64;
    let names = "hits misses maxsize currsize";
    let class =
        super::stdlib::namedtuple(interp, CallArgs::of([Value::str("CacheInfo"), Value::str(names)], args.span))?;
    let values = [Value::Int(cached.hits.get()), Value::Int(cached.misses.get()), limit, Value::Int(size)];
    interp.call(&class, CallArgs::of(values, args.span))
}

/// `@cache`
pub(super) fn cache(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "cache", 1, 1)?;
    Ok(Cached::of(args.positional[0].clone(), None, false))
}

/// `@lru_cache` and `@lru_cache(maxsize=None)`
pub(super) fn lru_cache(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [limit, typed] = args.bind(interp, "lru_cache", ["maxsize", "typed"], 0)?;
    let typed = typed.map_or(Ok(false), |typed| interp.truth(&typed, span))?;
    let limit = match limit {
        None => Some(128),
        Some(Value::None) => None,
        Some(Value::Int(limit)) => Some(usize::try_from(limit).unwrap_or(0)),
        Some(function @ (Value::Function(_) | Value::Partial(_) | Value::Cached(_) | Value::Descriptor(_))) => {
            return Ok(Cached::of(function, Some(128), typed));
        }
        Some(other) => {
            let message = format!("lru_cache() takes maxsize as an int or None, not {}", other.a_type());
            return Err(Raise::at("type-error", message, span, "in this call"));
        }
    };
    // Return the decorator with its arguments bound.
    let limit = limit.map_or(Value::None, |limit| Value::Int(limit as i64));
    let function = Value::native("functools.lru_cache", decorate, 0);
    Ok(Value::Partial(Rc::new(Partial { function, positional: vec![limit, Value::Bool(typed)], keyword: Vec::new() })))
}

fn decorate(_: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    match &args.positional[..] {
        [limit, Value::Bool(typed), function] => {
            let limit = limit.as_int().and_then(|limit| usize::try_from(limit).ok());
            Ok(Cached::of(function.clone(), limit, *typed))
        }
        _ => Err(Raise::at("arguments", "lru_cache() decorates one function", args.span, "in this call")),
    }
}
