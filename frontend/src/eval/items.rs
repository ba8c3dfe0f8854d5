//! Items of objects that the body of a device loop changes: the body is evaluated once, so that the change does not accumulate.

use nki_diag::Span;

use super::value::{Function, Key, Value};
use super::{Frame, Interp};
use crate::syntax::*;

impl Interp<'_> {
    /// The items that the body of a loop carries, with their values before the loop.
    pub(super) fn items_before(&self, frame: &Frame<'_>, body: &[Stmt]) -> Vec<(CarriedItem, Value)> {
        let before = |carried: CarriedItem| {
            let value = item_in(&self.held(frame, carried.0.slot), &carried.0.key);
            (carried, value)
        };
        carried_items(body).into_iter().map(before).collect()
    }

    /// Called after a loop that runs on the device: reports the items that the next iteration would find changed.
    pub(super) fn end_items(&mut self, frame: &Frame<'_>, before: &[(CarriedItem, Value)], iterable: Span) {
        for (carried, old) in before {
            let now = item_in(&self.held(frame, carried.0.slot), &carried.0.key);
            self.end_item(carried, old, &now, iterable);
        }
    }

    /// Reports an item that the next iteration would find changed.
    pub(crate) fn end_item(&mut self, carried: &CarriedItem, old: &Value, now: &Value, iterable: Span) {
        if self.is_carried(old, now) {
            let text = self.item_text(&carried.0);
            self.report_carried_as(
                &text,
                carried.1,
                "is assigned in a loop that reads its value from the previous iteration",
                iterable,
            );
        }
    }

    /// An item as source text.
    pub(crate) fn item_text(&self, item: &ItemPath) -> String {
        let base = self.name(item.base);
        match &item.key {
            ItemKey::Attr(name) => format!("{base}.{}", self.name(*name)),
            ItemKey::Index(index) => format!("{base}[{index}]"),
            ItemKey::Key(key) => {
                let key = key.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
                format!("{base}['{key}']")
            }
        }
    }

    /// The items of objects outside a function that it carries from one call to the next, as text, with their present values.
    pub(crate) fn items_of_function(&self, function: &Value) -> Vec<(String, Value)> {
        match function {
            Value::Function(function) => self.items_of(function, None),
            Value::BoundMethod(bound) => match &bound.function {
                Value::Function(function) => self.items_of(function, Some(&bound.receiver)),
                _ => Vec::new(),
            },
            Value::Object(object) => object.carried_items(self),
            _ => Vec::new(),
        }
    }

    fn items_of(&self, function: &Function, receiver: Option<&Value>) -> Vec<(String, Value)> {
        let held = |slot: Slot| match slot {
            Slot::Free(index) => function.captures.get(index as usize).cloned(),
            Slot::Global(index) => function.module.globals.borrow().get(index as usize).cloned(),
            Slot::Local(0) if receiver.is_some() => receiver.cloned(),
            Slot::Local(index) => function.defaults.get(index as usize).cloned(),
            _ => None,
        };
        let with_value = |(item, _): CarriedItem| {
            let base = match held(item.slot).unwrap_or(Value::Unset) {
                Value::Cell(ref cell) => cell.borrow().clone(),
                value => value,
            };
            (self.item_text(&item), item_in(&base, &item.key))
        };
        carried_items(&function.def.body).into_iter().map(with_value).collect()
    }
}

/// The value of an item; `Unset` if there is none.
fn item_in(base: &Value, key: &ItemKey) -> Value {
    let found = match (base, key) {
        (Value::List(list), ItemKey::Index(index)) => {
            let items = list.items.borrow();
            let at = if *index < 0 { index + items.len() as i64 } else { *index };
            usize::try_from(at).ok().and_then(|at| items.get(at).cloned())
        }
        (Value::Dict(dict), ItemKey::Index(index)) => dict.borrow().get(&Key::Int(*index)).cloned(),
        (Value::Dict(dict), ItemKey::Key(key)) => dict.borrow().get(&Key::Str(key.clone())).cloned(),
        (Value::Instance(instance), ItemKey::Attr(name)) => instance.attrs.borrow().get(*name).cloned(),
        (Value::Class(class), ItemKey::Attr(name)) => class.attrs.borrow().get(*name).cloned(),
        (Value::Function(function), ItemKey::Attr(name)) => function.attrs.borrow().get(*name).cloned(),
        _ => None,
    };
    found.unwrap_or(Value::Unset)
}
