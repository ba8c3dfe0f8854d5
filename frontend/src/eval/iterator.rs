//! Iterators: the results of `iter`, generators, and Python's lazy functions. Each item is computed
//! on request.

use std::cell::RefCell;
use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::generator::{Coroutine, Resumed, Sent};
use super::native::CallArgs;
use super::value::*;
use super::view::{Part, View, Walk};
use crate::syntax::*;

/// An iterator.
pub(crate) struct Iter {
    /// Python's name of its type.
    pub(crate) name: &'static str,
    source: RefCell<Source>,
}

/// Where the items of an iterator come from.
pub(crate) enum Source {
    /// No items are left.
    Ended,
    /// The next item is being computed.
    Running,
    /// The numbers of a range from a position.
    Range(Range, i64),
    /// The items from a position.
    Items(Rc<[Value]>, usize),
    /// The items of a list, which may change during iteration.
    List(Rc<List>, usize),
    /// The entries of a dict or set.
    Dict(Walk),
    /// An object with `__next__`.
    Object(Value),
    /// An object with `__getitem__`, and the next index.
    Indexed(Value, i64),
    /// A function that is called until it returns the value.
    Until(Value, Value),
    /// `zip`, and whether all iterators must have the same number of items.
    Zip(Vec<Rc<Iter>>, bool),
    /// `zip_longest`, and the fill value.
    ZipLongest(Vec<Option<Rc<Iter>>>, Value),
    /// `enumerate` with the next number.
    Enumerate(Rc<Iter>, i64),
    /// `map`
    Map(Value, Vec<Rc<Iter>>),
    /// `starmap`
    Starmap(Value, Rc<Iter>),
    /// `filter` (true) and `filterfalse`; the predicate may be None.
    Filter(Value, Rc<Iter>, bool),
    /// `takewhile`
    Takewhile(Value, Rc<Iter>),
    /// `dropwhile`, until the first item is not dropped.
    Dropwhile(Value, Rc<Iter>),
    /// `accumulate`: function, total so far, items.
    Accumulate(Option<Value>, Option<Value>, Rc<Iter>),
    /// `chain`: the iterables, and the iterator over the current one.
    Chain(Rc<Iter>, Option<Rc<Iter>>),
    /// `islice`: items to skip, items left up to the end (before the step is applied), step.
    Slice { items: Rc<Iter>, skip: u64, left: Option<u64>, step: u64 },
    /// `count`: next number and step.
    Count(Value, Value),
    /// `repeat`: the value and the number of repetitions.
    Repeat(Value, Option<u64>),
    /// `cycle`: the iterator, the items seen, and the position after all have been seen.
    Cycle(Rc<Iter>, Vec<Value>, Option<usize>),
    /// `pairwise` with the previous item.
    Pairwise(Rc<Iter>, Option<Value>),
    /// A generator.
    Generator(Box<Coroutine>),
}

impl Iter {
    /// An iterator as a value.
    pub(crate) fn value(name: &'static str, source: Source) -> Value {
        Value::Iterator(Self::new(name, source))
    }

    pub(super) fn new(name: &'static str, source: Source) -> Rc<Self> {
        Rc::new(Self { name, source: RefCell::new(source) })
    }

    /// An iterator of these items.
    pub(crate) fn of(name: &'static str, items: Vec<Value>) -> Value {
        Self::value(name, Source::Items(items.into(), 0))
    }

    /// Takes the source out while the next item is computed.
    pub(super) fn take(&self) -> Source {
        self.source.replace(Source::Running)
    }

    /// Puts the source back.
    pub(super) fn put(&self, source: Source) {
        *self.source.borrow_mut() = source;
    }

    /// Whether it is a generator that has not ended.
    pub(crate) fn is_open_generator(&self) -> bool {
        matches!(&*self.source.borrow(), Source::Generator(_))
    }

    /// Whether it is a generator that may catch an exception thrown into it.
    pub(super) fn may_catch(&self) -> bool {
        matches!(&*self.source.borrow(), Source::Generator(coroutine) if coroutine.may_catch())
    }

    /// The next item, if computing it runs no code.
    fn next_at_once(&self) -> Option<Option<Value>> {
        Some(match &mut *self.source.borrow_mut() {
            Source::Ended => None,
            Source::Range(range, at) => {
                *at += 1;
                (*at <= range.len()).then(|| Value::Int(range.at(*at - 1)))
            }
            Source::Items(items, at) => {
                *at += 1;
                items.get(*at - 1).cloned()
            }
            Source::List(list, at) => {
                *at += 1;
                list.items.borrow().get(*at - 1).cloned()
            }
            _ => return None,
        })
    }
}

impl Interp<'_> {
    /// `iter(value)`
    pub(crate) fn iter(&mut self, value: &Value, span: Span) -> EvalResult<Rc<Iter>> {
        Ok(match value {
            Value::Iterator(iterator) => iterator.clone(),
            Value::Range(range) => Iter::new("range_iterator", Source::Range(**range, 0)),
            Value::Tuple(items) => Iter::new("tuple_iterator", Source::Items(items.clone(), 0)),
            Value::List(list) => Iter::new("list_iterator", Source::List(list.clone(), 0)),
            Value::Dict(dict) => Walk::start(dict, Part::Keys, "dictionary"),
            Value::Set(set) => Walk::start(set, Part::Keys, "set"),
            other if let Some(view) = other.downcast::<View>() => view.iter(),
            Value::Instance(instance) if self.named_tuple_items(value).is_none() => {
                if let Some(method) = instance.class.lookup(sym::iter) {
                    return match self.call_with(&method, value.clone(), CallArgs::none(span))? {
                        object @ Value::Instance(_) => Ok(Iter::new("iterator", Source::Object(object))),
                        // A list is accepted as an iterator, for classes written for earlier
                        // frontends.
                        other => self.iter(&other, span),
                    };
                }
                match instance.class.lookup(sym::getitem) {
                    Some(_) => Iter::new("iterator", Source::Indexed(value.clone(), 0)),
                    None => return Err(self.not_iterable(value, span)),
                }
            }
            other => Iter::new("iterator", Source::Items(self.iterate(other, span)?.into(), 0)),
        })
    }

    /// The next item of an iterator; `None` if none is left.
    pub(crate) fn next(&mut self, iterator: &Iter, span: Span) -> EvalResult<Option<Value>> {
        if let Some(item) = iterator.next_at_once() {
            return Ok(item);
        }
        self.step(span)?;
        self.check_stack(span)?;
        let mut source = iterator.take();
        let item = match &mut source {
            Source::Running => {
                // Taken by a call that is still running.
                return Err(Raise::at("value-error", format!("{} already executing", iterator.name), span, "here"));
            }
            Source::Generator(_) => {
                iterator.put(source);
                return match self.resume(iterator, Sent::Value(Value::None), span)? {
                    Resumed::Yielded(value) => Ok(Some(value)),
                    Resumed::Returned(_) => Ok(None),
                };
            }
            source => self.item_of(source, span),
        };
        match &item {
            Ok(None) if !matches!(source, Source::Object(_)) => iterator.put(Source::Ended),
            _ => iterator.put(source),
        }
        item
    }

    /// The next item of an iterator over other iterators.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind")]
    fn item_of(&mut self, source: &mut Source, span: Span) -> EvalResult<Option<Value>> {
        Ok(match source {
            Source::Dict(walk) => walk.step(span)?,
            Source::Object(object) => {
                let object = object.clone();
                match self.handling_errors(|interp| interp.call_method(&object, sym::next_, CallArgs::none(span))) {
                    Ok(item) => Some(item),
                    Err(raise) if self.is_stop(&raise).is_some() => None,
                    Err(raise) => return Err(raise),
                }
            }
            Source::Indexed(object, index) => {
                let (object, at) = (object.clone(), Value::Int(*index));
                *index += 1;
                match self.handling_errors(|interp| interp.get_item(&object, &at, span)) {
                    Ok(item) => Some(item),
                    Err(raise) if !raise.fatal && self.is_index_error(&raise) => None,
                    Err(raise) => return Err(raise),
                }
            }
            Source::Until(function, end) => {
                let item = self.call(&function.clone(), CallArgs::none(span))?;
                if self.equal(&item, end, span)? { None } else { Some(item) }
            }
            Source::Zip(columns, strict) => {
                let mut row = Vec::with_capacity(columns.len());
                for (index, column) in columns.iter().enumerate() {
                    match self.next(column, span)? {
                        Some(item) => row.push(item),
                        None if *strict => return self.end_of_strict_zip(columns, index, span),
                        None => return Ok(None),
                    }
                }
                if row.is_empty() { None } else { Some(Value::tuple(row)) }
            }
            Source::ZipLongest(columns, fill) => {
                let (mut row, mut any) = (Vec::with_capacity(columns.len()), false);
                for column in columns.iter_mut() {
                    let item = match column {
                        Some(items) => self.next(items, span)?,
                        None => None,
                    };
                    any |= item.is_some();
                    if item.is_none() {
                        *column = None;
                    }
                    row.push(item.unwrap_or_else(|| fill.clone()));
                }
                any.then(|| Value::tuple(row))
            }
            Source::Enumerate(items, number) => match self.next(items, span)? {
                Some(item) => {
                    *number = number.saturating_add(1);
                    Some(Value::tuple(vec![Value::Int(*number - 1), item]))
                }
                None => None,
            },
            Source::Map(function, columns) => {
                let mut row = Vec::with_capacity(columns.len());
                for column in columns.iter() {
                    match self.next(column, span)? {
                        Some(item) => row.push(item),
                        None => return Ok(None),
                    }
                }
                Some(self.call(function, CallArgs::of(row, span))?)
            }
            Source::Starmap(function, items) => match self.next(items, span)? {
                Some(row) => {
                    let row = self.iterate(&row, span)?;
                    Some(self.call(function, CallArgs::of(row, span))?)
                }
                None => None,
            },
            Source::Filter(predicate, items, wanted) => loop {
                let Some(item) = self.next(items, span)? else { break None };
                self.step(span)?;
                if self.holds(predicate, &item, span)? == *wanted {
                    break Some(item);
                }
            },
            Source::Takewhile(predicate, items) => match self.next(items, span)? {
                Some(item) if self.holds(predicate, &item, span)? => Some(item),
                _ => None,
            },
            Source::Dropwhile(predicate, items) => loop {
                let Some(item) = self.next(items, span)? else { break None };
                self.step(span)?;
                if !self.holds(predicate, &item, span)? {
                    *source = Source::Chain(Iter::new("", Source::Ended), Some(items.clone()));
                    break Some(item);
                }
            },
            Source::Accumulate(function, total, items) => {
                let next = match total.take() {
                    None => self.next(items, span)?,
                    Some(so_far) => match (self.next(items, span)?, function) {
                        (None, _) => None,
                        (Some(item), Some(f)) => Some(self.call(f, CallArgs::of([so_far, item], span))?),
                        (Some(item), None) => Some(self.binary(BinOp::Add, &so_far, &item, span)?),
                    },
                };
                total.clone_from(&next);
                next
            }
            Source::Chain(iterables, current) => loop {
                self.step(span)?;
                if let Some(items) = current
                    && let Some(item) = self.next(items, span)?
                {
                    break Some(item);
                }
                match self.next(iterables, span)? {
                    Some(iterable) => *current = Some(self.iter(&iterable, span)?),
                    None => break None,
                }
            },
            Source::Slice { items, skip, left, step } => {
                if left.is_some_and(|left| left <= *skip) {
                    return Ok(None);
                }
                for _ in 0..*skip {
                    self.step(span)?;
                    if self.next(items, span)?.is_none() {
                        return Ok(None);
                    }
                }
                *left = left.map(|left| left - *skip - 1);
                *skip = *step - 1;
                self.next(items, span)?
            }
            Source::Count(next, step) => {
                let item = next.clone();
                *next = self.binary(BinOp::Add, &item, step, span)?;
                Some(item)
            }
            Source::Repeat(value, times) => match times {
                Some(0) => None,
                Some(times) => {
                    *times -= 1;
                    Some(value.clone())
                }
                None => Some(value.clone()),
            },
            Source::Cycle(items, seen, at) => match at {
                None => match self.next(items, span)? {
                    Some(item) => {
                        self.charge_items(1, span)?;
                        seen.push(item.clone());
                        Some(item)
                    }
                    None => {
                        *at = Some(1);
                        seen.first().cloned()
                    }
                },
                Some(next) => {
                    let item = seen.get(*next % seen.len().max(1)).cloned();
                    *next = (*next + 1) % seen.len().max(1);
                    item
                }
            },
            Source::Pairwise(items, last) => {
                let first = match last.take() {
                    Some(item) => Some(item),
                    None => self.next(items, span)?,
                };
                match (first, self.next(items, span)?) {
                    (Some(first), Some(second)) => {
                        *last = Some(second.clone());
                        Some(Value::tuple(vec![first, second]))
                    }
                    _ => None,
                }
            }
            // The caller handles these.
            Source::Ended | Source::Running | Source::Range(..) | Source::Items(..) | Source::List(..) => None,
            Source::Generator(_) => None,
        })
    }

    fn end_of_strict_zip(&mut self, columns: &[Rc<Iter>], ended: usize, span: Span) -> EvalResult<Option<Value>> {
        let argument = match ended {
            0 => {
                let mut longer = None;
                for (index, column) in columns.iter().enumerate().skip(1) {
                    if self.next(column, span)?.is_some() {
                        longer = Some(index);
                        break;
                    }
                }
                match longer {
                    Some(index) => format!("argument {} is longer", index + 1),
                    None => return Ok(None),
                }
            }
            index => format!("argument {} is shorter", index + 1),
        };
        Err(Raise::at("value-error", format!("zip() {argument} than the others"), span, "in this call"))
    }

    /// Whether a predicate holds; None tests the item itself.
    fn holds(&mut self, predicate: &Value, item: &Value, span: Span) -> EvalResult<bool> {
        let answer = match predicate {
            Value::None => item.clone(),
            function => self.call(function, CallArgs::of([item.clone()], span))?,
        };
        self.truth(&answer, span)
    }

    fn is_index_error(&mut self, raise: &Raise) -> bool {
        let thrown = match &raise.exception {
            Some(value) => value.clone(),
            None => self.exception_of(raise),
        };
        let name = self.names.intern("IndexError");
        matches!(&thrown, Value::Exception(e) if e.0 == name)
    }

    /// The remaining items.
    pub(crate) fn drain(&mut self, iterator: &Iter, span: Span) -> EvalResult<Vec<Value>> {
        let mut items = Vec::new();
        while let Some(item) = self.next(iterator, span)? {
            self.step(span)?;
            items.push(item);
        }
        Ok(items)
    }

    /// This value as an iterator, for `next`.
    pub(crate) fn as_iterator(&mut self, value: &Value, span: Span) -> EvalResult<Rc<Iter>> {
        match value {
            Value::Iterator(iterator) => Ok(iterator.clone()),
            Value::Instance(instance) if instance.class.lookup(sym::next_).is_some() => {
                Ok(Iter::new("iterator", Source::Object(value.clone())))
            }
            other => {
                let message = format!("{} is not an iterator", other.a_type());
                Err(Raise::at("type-error", message, span, "in this call").help("make one with iter()"))
            }
        }
    }

    /// The iterators over several values.
    pub(crate) fn iterators(&mut self, values: &[Value], span: Span) -> EvalResult<Vec<Rc<Iter>>> {
        values.iter().map(|value| self.iter(value, span)).collect()
    }
}
