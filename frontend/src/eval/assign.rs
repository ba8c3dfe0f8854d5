//! Assignment to names, attributes, items and patterns of them.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};

use super::error::{EvalResult, Raise};
use super::foreign::article;
use super::native::CallArgs;
use super::set::Operand;
use super::set_methods::change_set;
use super::value::{ClassKind, Descriptor, Value};
use super::{Frame, Interp};
use crate::syntax::*;

impl Interp<'_> {
    /// Lets the dialect compare a value with the annotation of its variable. Python does not
    /// evaluate such annotations, so one that cannot be evaluated is ignored.
    pub(super) fn check_annotation(
        &mut self,
        frame: &Frame<'_>,
        annotation: &Annotation,
        value: &Value,
    ) -> EvalResult<()> {
        let Some(check) = self.dialect.annotated() else { return Ok(()) };
        let Some(Expr { kind: ExprKind::Subscript(class, index), .. }) = &annotation.item else { return Ok(()) };
        let is_name = |e: &Expr| matches!(e.kind, ExprKind::Name(..) | ExprKind::Attr(..));
        if !is_name(class) {
            return Ok(());
        }
        let (Ok(class), Ok(index)) = (self.eval(frame, class), self.eval(frame, index)) else { return Ok(()) };
        check(self, &class, &index, value, annotation.span)
    }

    /// Assigns to a target.
    pub(crate) fn assign(&mut self, frame: &Frame<'_>, target: &Expr, value: Value) -> EvalResult<()> {
        match &target.kind {
            ExprKind::Name(_, slot) => {
                let value = match &value {
                    Value::Object(object) => match object.replacement() {
                        Some(replacement) => replacement.replace(self, &self.held(frame, *slot), target.span)?,
                        None => value,
                    },
                    _ => value,
                };
                self.store(frame, *slot, value);
                Ok(())
            }
            ExprKind::Attr(base, name) => {
                let base = self.eval(frame, base)?;
                self.set_attr(&base, *name, value, target.span)
            }
            ExprKind::Subscript(base, index) => {
                let base_value = self.eval(frame, base)?;
                let index = self.eval(frame, index)?;
                self.set_item(&base_value, &index, value, target.span)
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => self.unpack(frame, items, value, target.span),
            ExprKind::Starred(inner) => self.assign(frame, inner, value),
            _ => Err(Raise::at(
                "unsupported-syntax",
                "this cannot be assigned to",
                target.span,
                "not a variable, attribute or item",
            )),
        }
    }

    /// The value of a slot.
    pub(super) fn held(&self, frame: &Frame<'_>, slot: Slot) -> Value {
        let place = match slot {
            Slot::Local(index) | Slot::Class(index, _) => self.stack[frame.base + index as usize].clone(),
            Slot::Free(index) => frame.captures[index as usize].clone(),
            Slot::Global(index) => frame.module.globals.borrow()[index as usize].clone(),
            Slot::Unresolved => Value::Unset,
        };
        if let Value::Cell(cell) = &place { cell.borrow().clone() } else { place }
    }

    /// Stores into a slot.
    pub(crate) fn store(&mut self, frame: &Frame<'_>, slot: Slot, value: Value) {
        match slot {
            Slot::Local(index) | Slot::Class(index, _) => {
                let place = &mut self.stack[frame.base + index as usize];
                if let Value::Cell(cell) = place {
                    *cell.borrow_mut() = value;
                } else {
                    *place = value;
                }
            }
            Slot::Free(index) => {
                if let Value::Cell(cell) = &frame.captures[index as usize] {
                    *cell.borrow_mut() = value;
                }
            }
            Slot::Global(index) => frame.module.globals.borrow_mut()[index as usize] = value,
            Slot::Unresolved => {}
        }
    }

    fn unpack(&mut self, frame: &Frame<'_>, targets: &[Expr], value: Value, span: Span) -> EvalResult<()> {
        let items = match &value {
            Value::Tuple(items) => items.clone(),
            Value::Poison => return targets.iter().try_for_each(|t| self.assign(frame, t, Value::Poison)),
            // Reading one item more than there are names detects excess items.
            Value::Iterator(iterator) if !targets.iter().any(|t| matches!(t.kind, ExprKind::Starred(_))) => {
                let mut items = Vec::new();
                while items.len() <= targets.len()
                    && let Some(item) = self.next(iterator, span)?
                {
                    items.push(item);
                }
                items.into()
            }
            other => {
                if !matches!(
                    other,
                    Value::List(_)
                        | Value::Range(_)
                        | Value::Iterator(_)
                        | Value::Dict(_)
                        | Value::Str(_)
                        | Value::Instance(_)
                        | Value::Set(_)
                        | Value::Object(_)
                ) {
                    if let Value::Host(_) = other
                        && !self.in_kernel
                    {
                        return targets.iter().try_for_each(|t| self.assign(frame, t, value.clone()));
                    }
                    return Err(Raise::at(
                        "type-error",
                        format!("cannot unpack {} into {} names", other.a_type(), targets.len()),
                        span,
                        "unpacked here",
                    ));
                }
                self.iterate(other, span)?.into()
            }
        };
        let star = targets.iter().position(|t| matches!(t.kind, ExprKind::Starred(_)));
        let fits = if star.is_some() { items.len() + 1 >= targets.len() } else { items.len() == targets.len() };
        if !fits {
            let at_least = if star.is_some() { "at least " } else { "" };
            let wanted = targets.len() - usize::from(star.is_some());
            return Err(Raise::at(
                "unpack-mismatch",
                format!("{} values cannot be unpacked into {at_least}{wanted} names", items.len()),
                span,
                format!("{at_least}{wanted} names, {} values", items.len()),
            ));
        }
        let Some(star) = star else {
            for (target, item) in targets.iter().zip(items.iter()) {
                self.assign(frame, target, item.clone())?;
            }
            return Ok(());
        };
        let after = targets.len() - star - 1;
        let rest = items.len() - after;
        for (target, item) in targets[..star].iter().zip(items.iter()) {
            self.assign(frame, target, item.clone())?;
        }
        self.assign(frame, &targets[star], Value::list(items[star..rest].to_vec()))?;
        for (target, item) in targets[star + 1..].iter().zip(items[rest..].iter()) {
            self.assign(frame, target, item.clone())?;
        }
        Ok(())
    }

    /// `target op= value`
    pub(crate) fn aug_assign(
        &mut self,
        frame: &Frame<'_>,
        target: &Expr,
        op: BinOp,
        value: &Expr,
        span: Span,
    ) -> EvalResult<()> {
        match &target.kind {
            ExprKind::Name(..) => {
                let old = self.eval(frame, target)?;
                let value = self.eval(frame, value)?;
                let new = self.in_place(op, &old, &value, span)?;
                self.assign(frame, target, new)
            }
            ExprKind::Attr(base, name) => {
                let base = self.eval(frame, base)?;
                let old = self.get_attr(&base, *name, target.span)?;
                let value = self.eval(frame, value)?;
                let new = self.in_place(op, &old, &value, span)?;
                self.set_attr(&base, *name, new, target.span)
            }
            ExprKind::Subscript(base, index) => {
                let held = self.eval(frame, base)?;
                let index = self.eval(frame, index)?;
                let old = self.get_item(&held, &index, target.span)?;
                let value = self.eval(frame, value)?;
                let new = self.in_place(op, &old, &value, span)?;
                self.set_item(&held, &index, new, target.span)
            }
            _ => Err(Raise::at(
                "unsupported-syntax",
                "this cannot be assigned to",
                target.span,
                "not a variable, attribute or item",
            )),
        }
    }

    /// `old op= value`: the new value of the target.
    pub(crate) fn in_place(&mut self, op: BinOp, old: &Value, value: &Value, span: Span) -> EvalResult<Value> {
        match (old, op) {
            (Value::List(list), BinOp::Add) => {
                let mut items = self.iterate(value, span)?;
                self.charge_items(list.items.borrow().len() + items.len(), span)?;
                list.items.borrow_mut().append(&mut items);
                return Ok(old.clone());
            }
            (Value::Set(set), _) if set.borrow().is_frozen => {}
            (Value::Set(set), BinOp::BitOr | BinOp::BitAnd | BinOp::BitXor | BinOp::Sub)
                if let Value::Set(other) = value =>
            {
                self.charge_items(4 * (set.borrow().len() + other.borrow().len()), span)?;
                change_set(set, op, other, Operand::Set);
                return Ok(old.clone());
            }
            // All names of the dict or set see the change.
            (Value::Dict(dict) | Value::Set(dict), BinOp::BitOr | BinOp::BitAnd | BinOp::BitXor | BinOp::Sub) => {
                let value = match (old, value, op) {
                    // Like `update`, which also accepts pairs.
                    (Value::Dict(_), Value::List(_) | Value::Tuple(_) | Value::Iterator(_), BinOp::BitOr) => {
                        Value::dict(self.make_dict(CallArgs::of([value.clone()], span))?)
                    }
                    _ => value.clone(),
                };
                match &self.binary(op, old, &value, span)? {
                    Value::Dict(new) | Value::Set(new) => {
                        let new = new.borrow().clone();
                        *dict.borrow_mut() = new;
                    }
                    other => return Ok(other.clone()),
                }
                return Ok(old.clone());
            }
            (Value::Instance(instance), _) => {
                if let Some(method) = instance.class.lookup(op.methods().2) {
                    let kept = self.call_with(&method, old.clone(), CallArgs::of([value.clone()], span))?;
                    if !matches!(kept, Value::NotImplemented) {
                        return Ok(kept);
                    }
                }
            }
            (_, _) if matches!(value, Value::Poison) => {}
            (Value::Object(object), _) => {
                if let Some(kept) = object.in_place(self, op, old, value.beside(old), span)? {
                    return Ok(kept);
                }
            }
            _ => {}
        }
        self.binary(op, old, value, span)
    }

    /// `base.name = value`
    pub(crate) fn set_attr(&mut self, base: &Value, name: Symbol, value: Value, span: Span) -> EvalResult<()> {
        match base {
            Value::Instance(instance) => {
                if self.set_by_protocol(instance, name, &value, span)? {
                    return Ok(());
                }
                let kind = instance.class.kind.get();
                if instance.is_fixed(name) {
                    return Err(Raise::at(
                        "frozen-object",
                        format!("`{}` of {} cannot be changed", self.name(name), base.a_type()),
                        span,
                        "assigned here",
                    )
                    .help(if kind == ClassKind::NamedTuple {
                        "a NamedTuple is immutable: make a new one"
                    } else {
                        "the class is frozen: make a new object"
                    }));
                }
                if let Some(Value::Descriptor(descriptor)) = &instance.class.lookup(name)
                    && let Descriptor::Property { set, .. } = &**descriptor
                {
                    let Some(setter) = set else {
                        return Err(Raise::at(
                            "no-attribute",
                            format!("the property `{}` has no setter", self.name(name)),
                            span,
                            "assigned here",
                        ));
                    };
                    self.call(setter, CallArgs::of([base.clone(), value], span))?;
                    return Ok(());
                }
                if let (sym::dict, Value::Dict(dict)) = (name, &value) {
                    self.set_attributes(instance, &dict.borrow());
                    return Ok(());
                }
                self.check_slot(instance, name, span)?;
                instance.attrs.borrow_mut().set(name, value);
                Ok(())
            }
            Value::Class(class) => {
                self.check_class_attribute(class, name, span)?;
                class.attrs.borrow_mut().set(name, value);
                Ok(())
            }
            Value::EnumMember(member) if !matches!(name, sym::value | sym::plain_name) => {
                if matches!(&*self.name(name), "_value_" | "_name_") {
                    let message = format!("`{}` of an Enum member cannot be assigned", self.name(name));
                    return Err(Raise::at("unsupported-syntax", message, span, "assigned here")
                        .help("give the member its value in the body of the class, or run the kernel through Python"));
                }
                member.attrs.borrow_mut().set(name, value);
                Ok(())
            }
            Value::Module(module) => {
                let index = module.index.borrow().get(&name).copied();
                match index {
                    Some(index) => module.globals.borrow_mut()[index as usize] = value,
                    None => {
                        module.index.borrow_mut().insert(name, module.symbols.borrow().len() as u32);
                        module.symbols.borrow_mut().push(name);
                        module.globals.borrow_mut().push(value);
                    }
                }
                Ok(())
            }
            Value::Function(function) => {
                function.attrs.borrow_mut().set(name, value);
                Ok(())
            }
            Value::Exception(exception) => {
                exception.2.borrow_mut().set(name, value);
                Ok(())
            }
            Value::Kernel(kernel) => self.set_attr(&kernel.function, name, value, span),
            Value::Host(_) if !self.in_kernel => Ok(()),
            Value::Host(host) => Err(self.host_error(host, span)),
            Value::Poison => Ok(()),
            Value::Object(object) => {
                let text = self.name(name);
                object.set_attribute(&text, span).or_else(|raise| self.recover(raise).map(drop))
            }
            other => {
                let text = format!("{} has no attribute `{}` to assign to", other.a_type(), self.name(name));
                Err(Raise::at("no-attribute", text, span, "assigned here"))
            }
        }
    }

    /// `base[index] = value`
    pub(crate) fn set_item(&mut self, base: &Value, index: &Value, value: Value, span: Span) -> EvalResult<()> {
        if self.absorbs_index(base, index) {
            return Ok(());
        }
        match base {
            Value::List(list) => {
                if let Value::Slice(slice) = index {
                    let new = self.iterate(&value, span)?;
                    let len = list.items.borrow().len();
                    let (start, stop, step) = self.slice_bounds(slice, len, span)?;
                    if step != 1 {
                        let at = self.slice_indices(slice, len, span)?;
                        if at.len() != new.len() {
                            let message = format!(
                                "attempt to assign sequence of size {} to extended slice of size {}",
                                new.len(),
                                at.len()
                            );
                            return Err(Raise::at("value-error", message, span, "assigned here"));
                        }
                        let mut items = list.items.borrow_mut();
                        at.into_iter().zip(new).for_each(|(i, value)| items[i] = value);
                        return Ok(());
                    }
                    let stop = stop.max(start);
                    list.items.borrow_mut().splice(start as usize..stop as usize, new);
                    return Ok(());
                }
                let len = list.items.borrow().len();
                let at = self.index(index, len, "list", span)?;
                list.items.borrow_mut()[at] = value;
                Ok(())
            }
            Value::Dict(dict) => {
                let key = self.new_key(index, span)?;
                self.change_dict(dict, |_| {
                    dict.borrow_mut().set(key, index.clone(), value);
                    Ok(())
                })
            }
            Value::Instance(instance) => match instance.class.lookup(sym::setitem) {
                Some(method) => {
                    self.call_with(&method, base.clone(), CallArgs::of([index.clone(), value], span))?;
                    Ok(())
                }
                None => Err(self.no_item(base, "assigned to", span)),
            },
            Value::Host(_) if !self.in_kernel => Ok(()),
            Value::Host(host) => Err(self.host_error(host, span)),
            Value::Object(_) if matches!(value, Value::Poison) => Ok(()),
            Value::Object(object) => {
                let index = index.index_of(&**object);
                object
                    .set_item(self, base, &index, value.beside(base), span)
                    .or_else(|raise| self.recover(raise).map(drop))
            }
            Value::Tuple(_) => {
                Err(Raise::at("type-error", "items of a tuple cannot be assigned", span, "this is a tuple")
                    .help("make it a list, or build a new tuple"))
            }
            _ => Err(self.no_item(base, "assigned to", span)),
        }
    }

    pub(crate) fn no_item(&self, base: &Value, what: &str, span: Span) -> Box<Raise> {
        Raise::at("type-error", format!("{} has no items that can be {what}", base.a_type()), span, base.a_type())
    }

    /// `del target`
    pub(crate) fn delete(&mut self, frame: &Frame<'_>, target: &Expr) -> EvalResult<()> {
        match &target.kind {
            ExprKind::Name(_, slot) => {
                self.eval(frame, target)?;
                self.store(frame, *slot, Value::Unset);
                Ok(())
            }
            ExprKind::Tuple(items) => items.iter().try_for_each(|t| self.delete(frame, t)),
            ExprKind::Attr(base, name) => {
                let base = self.eval(frame, base)?;
                if let Value::Instance(instance) = &base
                    && let Some(Value::Descriptor(descriptor)) = &instance.class.lookup(*name)
                    && let Descriptor::Property { delete, .. } = &**descriptor
                {
                    let Some(delete) = delete else {
                        let message = format!("the property `{}` has no deleter", self.name(*name));
                        return Err(Raise::at("no-attribute", message, target.span, "here"));
                    };
                    self.call(delete, CallArgs::of([base.clone()], target.span))?;
                    return Ok(());
                }
                let removed = match &base {
                    Value::Instance(instance) if instance.is_fixed(*name) => {
                        let message = format!("`{}` of {} cannot be deleted", self.name(*name), base.a_type());
                        return Err(Raise::at("frozen-object", message, target.span, "here").help("make a new object"));
                    }
                    Value::Instance(instance) => instance.attrs.borrow_mut().remove(*name),
                    _ => None,
                };
                match removed {
                    Some(_) => Ok(()),
                    None => Err(Raise::at(
                        "no-attribute",
                        format!("no attribute `{}` to delete", self.name(*name)),
                        target.span,
                        "here",
                    )),
                }
            }
            ExprKind::Subscript(base, index) => {
                let base = self.eval(frame, base)?;
                let index = self.eval(frame, index)?;
                match &base {
                    Value::Dict(dict) => {
                        let key = self.key(&index, target.span)?;
                        self.change_dict(dict, |interp| match dict.borrow_mut().remove(&key) {
                            Some(_) => Ok(()),
                            None => Err(interp.missing_key(&index, None, target.span)),
                        })
                    }
                    Value::List(list) => {
                        let len = list.items.borrow().len();
                        if let Value::Slice(slice) = &index {
                            let (start, stop, step) = self.slice_bounds(slice, len, target.span)?;
                            if step == 1 {
                                list.items.borrow_mut().drain(start as usize..stop.max(start) as usize);
                                return Ok(());
                            }
                            let gone = self.slice_indices(slice, len, target.span)?;
                            let mut at = 0..;
                            list.items.borrow_mut().retain(|_| !at.next().is_some_and(|i| gone.contains(&i)));
                            return Ok(());
                        }
                        let at = self.index(&index, len, "list", target.span)?;
                        list.items.borrow_mut().remove(at);
                        Ok(())
                    }
                    Value::Instance(instance) if let Some(method) = instance.class.lookup(sym::delitem) => {
                        self.call_with(&method, base.clone(), CallArgs::of([index], target.span)).map(drop)
                    }
                    _ => Err(self.no_item(&base, "deleted", target.span)),
                }
            }
            _ => Err(Raise::at("unsupported-syntax", "this cannot be deleted", target.span, "here")),
        }
    }

    /// A position in a sequence of `len` items; negative indices count from the end.
    pub(crate) fn index(&mut self, index: &Value, len: usize, what: &str, span: Span) -> EvalResult<usize> {
        let Some(position) = self.position_of(index, span)? else {
            return Err(Raise::at(
                "type-error",
                format!("{} index must be an int or a slice, not {}", article(what), index.a_type()),
                span,
                format!("indexed with {}", index.a_type()),
            ));
        };
        let at = if position < 0 { position.checked_add(len as i64) } else { Some(position) };
        match at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < len) {
            Some(at) => Ok(at),
            None => Err(Raise::at(
                "index-out-of-range",
                format!("index {position} is out of range: the {what} has {}", super::native::count(len, "item")),
                span,
                format!("index {position}, length {len}"),
            )),
        }
    }

    /// The integer that Python would use as an index, including by `__index__`.
    pub(crate) fn position_of(&mut self, value: &Value, span: Span) -> EvalResult<Option<i64>> {
        if let Value::Instance(instance) = value
            && instance.base_int().is_none()
            && let Some(method) = instance.class.lookup(sym::index)
        {
            let index = self.call_with(&method, value.clone(), CallArgs::none(span))?;
            return match index.as_int() {
                Some(index) => Ok(Some(index)),
                None => {
                    let message = format!("__index__ returned a non-int (type {})", index.type_name());
                    Err(Raise::at("type-error", message, span, "used as an index"))
                }
            };
        }
        Ok(self.as_index(value))
    }

    /// The integer value of an index: an int, or a member of an IntEnum.
    pub(crate) fn as_index(&self, value: &Value) -> Option<i64> {
        value.plain().as_int()
    }

    /// The error of a failed dict lookup.
    pub(crate) fn missing_key(&mut self, key: &Value, dict: Option<&Value>, span: Span) -> Box<Raise> {
        let text = self.repr(key).unwrap_or_default();
        let mut diagnostic =
            Diagnostic::error("missing-key", format!("the dict has no key {text}")).at(span, format!("key {text}"));
        if let Some(Value::Dict(dict)) = dict {
            let keys: Vec<Value> = dict.borrow().keys().into_iter().take(12).collect();
            let keys: Vec<String> = keys.iter().filter_map(|k| self.repr(k).ok()).collect();
            diagnostic = diagnostic.help(if keys.is_empty() {
                "the dict is empty".into()
            } else {
                format!("it has: {}", keys.join(", "))
            });
        }
        let mut raise = Raise::new(diagnostic);
        raise.exception = Some(Value::exception(self.sym("KeyError"), vec![key.clone()]));
        raise
    }

    /// Wraps the locals that inner functions capture in cells.
    pub(crate) fn make_cells(&mut self, base: usize, scope: &Scope) {
        for &slot in &scope.cells {
            let place = &mut self.stack[base + slot as usize];
            let value = std::mem::replace(place, Value::Unset);
            *place = Value::Cell(Rc::new(std::cell::RefCell::new(value)));
        }
    }
}
