//! Values exchanged by a driver and the trace.

use std::fmt;
use std::path::Path;
use std::rc::Rc;

use nki_diag::Span;
use nki_isa::DType;
use nki_isa::names::Named;

use super::{Failure, Name, Trace};
use crate::dialect::common::enums::{ApiEnum, EnumClass, NlOp};
use crate::eval::Interp;
use crate::eval::error::EvalResult;
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::stdlib::dtype;
use crate::eval::value::{Dict, Host, Key, Range, Slice, Value};
use crate::syntax::{ItemKey, ItemPath, carried_items};

/// A value of the trace. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Item(pub(super) Value);

/// The content of an [`Item`].
#[derive(Debug)]
pub enum Content {
    /// `None`
    None,
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(Rc<str>),
    /// `...`
    Ellipsis,
    /// A tuple.
    Tuple(Vec<Item>),
    /// A list.
    List(Vec<Item>),
    /// A dict.
    Dict(Vec<(Item, Item)>),
    /// `range(start, stop, step)`
    Range([i64; 3]),
    /// `slice(start, stop, step)`
    Slice(Box<[Item; 3]>),
    /// An element type.
    Dtype(DType),
    /// A name of the API, such as `nki.isa.engine.vector`.
    Api(String),
    /// A value of the device, or another value of the dialect.
    Object,
}

/// A function of the driver, called by the trace: the body of a dynamic loop, an address function.
pub trait Callable {
    /// Calls it.
    ///
    /// # Errors
    /// [`Failure::of_driver`] if it raised an exception.
    fn call(&self, trace: &mut Trace<'_, '_>, args: Vec<Item>, keywords: Vec<(String, Item)>) -> Result<Item, Failure>;

    /// The variables of enclosing functions that it uses, and their numbers.
    fn captured_numbers(&self) -> Vec<(String, Option<f64>)>;

    /// Where it is defined, if it is a function of Python.
    fn located(&self) -> Option<Located>;

    /// The present values of items of objects that it uses; `None` for values that are neither plain nor the device's, and for missing
    /// ones.
    fn items(&self, wanted: &[Selected]) -> Vec<Option<Item>>;
}

/// The place of the definition of a function of the driver.
#[derive(Debug)]
pub struct Located {
    /// The name of its file, as given to the trace.
    pub file: String,
    /// Its name.
    pub name: String,
    /// The line of its first decorator or of `def`, from 1.
    pub line: u32,
    /// The names of its parameters.
    pub parameters: Vec<String>,
}

/// An item or attribute of the object that a name of a function holds.
#[derive(Debug)]
pub struct Selected {
    /// The name.
    pub base: String,
    /// The item.
    pub by: Selector,
}

/// The constant that selects an item or attribute.
#[derive(Debug)]
pub enum Selector {
    /// `base.name`
    Attribute(String),
    /// `base[3]`
    Index(i64),
    /// `base['key']`
    Key(String),
}

/// The arguments of a call.
#[derive(Debug)]
pub struct Args(CallArgs);

impl Default for Args {
    fn default() -> Self {
        Args(CallArgs::none(Span::default()))
    }
}

impl Args {
    /// Adds a positional argument.
    pub fn push(&mut self, item: Item) {
        self.0.positional.push(item.0);
    }

    /// Adds a keyword argument, whose name is new.
    pub fn set(&mut self, name: Name, item: Item) {
        self.0.keyword.push((name.0, item.0));
    }

    pub(super) fn at(mut self, span: Span) -> CallArgs {
        self.0.span = span;
        self.0
    }
}

impl Item {
    /// `None`
    pub fn none() -> Self {
        Item(Value::None)
    }

    /// A bool.
    pub fn bool(value: bool) -> Self {
        Item(Value::Bool(value))
    }

    /// An int.
    pub fn int(value: i64) -> Self {
        Item(Value::Int(value))
    }

    /// A float.
    pub fn float(value: f64) -> Self {
        Item(Value::Float(value))
    }

    /// A string.
    pub fn text(text: &str) -> Self {
        Item(Value::str(text))
    }

    /// `...`
    pub fn ellipsis() -> Self {
        Item(Value::Ellipsis)
    }

    /// A tuple.
    pub fn tuple(items: Vec<Item>) -> Self {
        Item(Value::tuple(items.into_iter().map(|item| item.0).collect::<Vec<_>>()))
    }

    /// A list.
    pub fn list(items: Vec<Item>) -> Self {
        Item(Value::list(items.into_iter().map(|item| item.0).collect()))
    }

    /// A dict with these keys as strings.
    pub fn dict(items: Vec<(String, Item)>) -> Self {
        let mut dict = Dict::default();
        items.into_iter().for_each(|(key, value)| dict.set_str(&key.as_str().into(), value.0));
        Item(Value::dict(dict))
    }

    /// `slice(start, stop, step)`
    pub fn slice(start: Item, stop: Item, step: Item) -> Self {
        Item(Value::Slice(Rc::new(Slice { start: start.0, stop: stop.0, step: step.0 })))
    }

    /// `range(start, stop, step)`
    pub fn range(start: i64, stop: i64, step: i64) -> Self {
        Item(Value::Range(Rc::new(Range { start, stop, step })))
    }

    /// A function of the driver.
    pub fn callable(function: Box<dyn Callable>) -> Self {
        Item(Value::object(Outside(function)))
    }

    /// A value without meaning on the device, described by `path`; `reason` is the explanation.
    pub fn opaque(path: String, reason: Option<String>) -> Self {
        Item(Value::Host(Rc::new(Host { path, reason, span: None })))
    }

    /// Whether it is a Python range.
    pub fn is_range(&self) -> bool {
        matches!(self.0, Value::Range(_))
    }

    /// Its content.
    pub fn content(&self) -> Content {
        let items = |values: &[Value]| values.iter().cloned().map(Item).collect();
        match &self.0 {
            Value::Bool(value) => Content::Bool(*value),
            Value::Int(value) => Content::Int(*value),
            Value::Float(value) => Content::Float(*value),
            Value::Str(text) => Content::Str(text.clone()),
            Value::Ellipsis => Content::Ellipsis,
            Value::Tuple(values) => Content::Tuple(items(values)),
            Value::List(list) => Content::List(items(&list.items.borrow())),
            Value::Dict(dict) => {
                Content::Dict(dict.borrow().iter().map(|(_, k, v)| (Item(k.clone()), Item(v.clone()))).collect())
            }
            Value::Range(range) => Content::Range([range.start, range.stop, range.step]),
            Value::Slice(slice) => {
                Content::Slice(Box::new([&slice.start, &slice.stop, &slice.step].map(|v| Item(v.clone()))))
            }
            Value::Native(native) => Content::Api(native.name.clone()),
            Value::None | Value::Unset | Value::Poison => Content::None,
            value => self.named().map_or(Content::Object, |named| match dtype::of(value) {
                Some(dtype) => Content::Dtype(dtype),
                None => Content::Api(named),
            }),
        }
    }

    /// The dotted name of an object that is a name of the API.
    fn named(&self) -> Option<String> {
        if let Some(dtype) = dtype::of(&self.0) {
            return Some(dtype.name().to_owned());
        }
        if let Some(member) = self.0.downcast::<ApiEnum>() {
            return Some(format!("{}.{}.{}", member.class.module, member.class.name, member.name()));
        }
        if let Some(class) = self.0.downcast::<EnumClass>() {
            return Some(format!("{}.{}", class.0.module, class.0.name));
        }
        self.0.downcast::<NlOp>().map(|op| format!("nki.language.{}", op.op().name))
    }

    /// The name of the type of an object.
    pub fn type_name(&self) -> Option<&'static str> {
        match &self.0 {
            Value::Object(object) => Some(object.type_name()),
            _ => None,
        }
    }

    /// A number that is equal for two items if they are one object.
    pub fn identity(&self) -> u64 {
        let Value::Object(object) = &self.0 else { return 0 };
        match object.hash_key() {
            // Registers are equal by their numbers.
            Some(Key::Name(name)) => name.bytes().fold(7, |hash, byte| hash * 31 + u64::from(byte)),
            _ => Rc::as_ptr(object).cast::<()>() as u64,
        }
    }
}

/// A function of the driver as a value.
struct Outside(Box<dyn Callable>);

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<function>")
    }
}

impl Object for Outside {
    fn type_name(&self) -> &'static str {
        "function"
    }

    fn is_callable(&self) -> bool {
        true
    }

    fn call(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let items = args.positional.into_iter().map(Item).collect();
        let keywords = args.keyword.into_iter().map(|(name, value)| (interp.name(name).to_string(), Item(value)));
        let keywords = keywords.collect();
        self.0.call(&mut Trace { interp }, items, keywords).map(|item| item.0).map_err(|failure| failure.0)
    }

    fn captured_numbers(&self) -> Vec<(String, Option<f64>)> {
        self.0.captured_numbers()
    }

    fn carried_items(&self, interp: &Interp<'_>) -> Vec<(String, Value)> {
        let found = self.0.located().and_then(|at| {
            let tree = interp.known_file(Path::new(&at.file))?;
            interp.find_definition(&tree, &at.name, at.line, &at.parameters, None).ok()
        });
        let Some(def) = found else { return Vec::new() };
        let items: Vec<_> = carried_items(&def.body).into_iter().map(|(item, _)| item).collect();
        let select = |item: &ItemPath| Selected {
            base: interp.name(item.base).to_string(),
            by: match &item.key {
                ItemKey::Attr(name) => Selector::Attribute(interp.name(*name).to_string()),
                ItemKey::Index(index) => Selector::Index(*index),
                ItemKey::Key(key) => Selector::Key(key.to_string()),
            },
        };
        let wanted: Vec<Selected> = items.iter().map(select).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let values = self.0.items(&wanted).into_iter().map(|value| value.map_or(Value::Unset, |value| value.0));
        items.iter().map(|item| interp.item_text(item)).zip(values).collect()
    }
}
