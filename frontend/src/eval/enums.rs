//! Enums: members, members that are also strings or numbers, and flags that combine.

use std::cell::RefCell;
use std::rc::Rc;

use nki_diag::Span;

use super::error::{EvalResult, Raise};
use super::native::CallArgs;
use super::object::EnumKind;
use super::value::*;
use super::{Frame, Interp};
use crate::syntax::*;

impl EnumMember {
    /// The kind of the member's class.
    pub(crate) fn kind(&self) -> EnumKind {
        self.class.enum_kind().unwrap_or_default()
    }

    /// The member's value as an integer, if members of its class combine with `|`.
    fn flags(&self) -> Option<i64> {
        self.value.as_int().filter(|_| self.kind().flag)
    }
}

impl Class {
    /// The kind of an Enum; `None` for other classes.
    pub(crate) fn enum_kind(&self) -> Option<EnumKind> {
        match self.kind.get() {
            ClassKind::Enum(kind) => Some(kind),
            _ => None,
        }
    }

    /// The members, including declared and computed combinations of flags.
    pub(super) fn all_members(&self) -> Vec<Rc<EnumMember>> {
        [&self.members, &self.combinations].iter().flat_map(|m| m.borrow().clone()).collect()
    }

    /// The members by name, including aliases and combinations.
    pub(crate) fn named_members(&self) -> Vec<(Symbol, Rc<EnumMember>)> {
        let own = |value: &Value| match value {
            Value::EnumMember(member) if std::ptr::eq(&*member.class, self) => Some(member.clone()),
            _ => None,
        };
        self.attrs.borrow().iter().filter_map(|(name, value)| Some((name, own(value)?))).collect()
    }

    /// The bits of all flags, and those of the single-bit flags.
    fn masks(&self) -> (i64, i64) {
        let bits = |members: Vec<Rc<EnumMember>>| members.iter().filter_map(|m| m.value.as_int()).fold(0, |a, b| a | b);
        let named = self.named_members().into_iter().map(|(_, member)| member).collect();
        (bits(named), bits(self.members.borrow().clone()))
    }
}

impl Value {
    /// The string or number that an Enum member is, if its class derives from such a type;
    /// otherwise the value itself.
    pub(crate) fn plain(&self) -> &Value {
        match self {
            Value::EnumMember(member) if member.kind().mixin.is_some() => &member.value,
            other => other,
        }
    }
}

impl Interp<'_> {
    /// Converts the values in the body of an Enum to members.
    pub(super) fn make_members(&mut self, class: &Rc<Class>, bases: &[Rc<Class>], span: Span) -> EvalResult<()> {
        *class.members.borrow_mut() = bases.iter().flat_map(|b| b.members.borrow().clone()).collect();
        let kind = class.enum_kind().unwrap_or_default();
        if class.attrs.borrow().get(sym::new).is_some() {
            let message = format!("the Enum {} has a `__new__` of its own, which is not supported", class.name);
            return Err(Raise::at("unsupported-syntax", message, span, "this class")
                .help("give the members their values directly"));
        }
        let attrs: Vec<(Symbol, Value)> = class.attrs.borrow().iter().map(|(n, v)| (n, v.clone())).collect();
        for (name, value) in attrs {
            let text = self.name(name);
            if !names_member(&text, &value) {
                continue;
            }
            let value = self.mix_in(kind, value, span)?;
            if kind.flag && value.as_int().is_some_and(|bits| bits < 0) {
                let message = format!("the flag {text} of {} is negative, which is not supported", class.name);
                return Err(Raise::at("unsupported-syntax", message, span, "this class").help("write its bits: 0xff"));
            }
            // A second name for a value is an alias.
            let members = class.members.borrow().clone();
            let known = members.iter().find(|m| self.equals(&m.value, &value)).cloned();
            let member = known.unwrap_or_else(|| {
                let combined = kind.flag && value.as_int().is_some_and(|v| v.count_ones() != 1);
                let member = Rc::new(EnumMember { class: class.clone(), name, value, attrs: RefCell::default() });
                let list = if combined { &class.combinations } else { &class.members };
                list.borrow_mut().push(member.clone());
                member
            });
            self.init_member(class, &member, span)?;
            class.attrs.borrow_mut().set(name, Value::EnumMember(member));
        }
        Ok(())
    }

    /// Calls the `__init__` of an Enum for a new member, with its value, or with the items if the
    /// value is a tuple.
    fn init_member(&mut self, class: &Class, member: &Rc<EnumMember>, span: Span) -> EvalResult<()> {
        let Some(init) = class.lookup(sym::init) else { return Ok(()) };
        if member.kind().mixin.is_some() && matches!(member.value, Value::Tuple(_)) {
            let message = format!("the Enum {} derives from a data type and has an `__init__`", class.name);
            return Err(Raise::at("unsupported-syntax", message, span, "this class")
                .help("derive it from Enum alone, or run the kernel through Python"));
        }
        let items = match &member.value {
            Value::Tuple(items) => items.to_vec(),
            other => vec![other.clone()],
        };
        self.call_with(&init, Value::EnumMember(member.clone()), CallArgs::of(items, span)).map(drop)
    }

    /// Runs the body of an Enum. An `auto()` is replaced by its value on assignment, so that later
    /// lines can use it.
    pub(super) fn enum_body(
        &mut self,
        frame: &Frame<'_>,
        def: &ClassDef,
        kind: EnumKind,
        bases: &[Rc<Class>],
    ) -> EvalResult<()> {
        let generate = self.sym("_generate_next_value_");
        for stmt in &def.body {
            self.exec_block(frame, std::slice::from_ref(stmt))?;
            let mut given = Vec::new();
            for (slot, name) in def.scope.names.iter().enumerate() {
                let value = self.load_slot(frame.base + slot);
                let text = self.name(*name);
                if *name == sym::empty || !names_member(&text, &value) {
                    continue;
                }
                let value = match &value {
                    Value::Native(native) if native.name == "enum.auto" => {
                        let own = def.scope.names.iter().position(|name| *name == generate);
                        let own = own.map(|slot| self.load_slot(frame.base + slot));
                        let make = own
                            .filter(|value| !matches!(value, Value::Unset))
                            .or_else(|| bases.iter().find_map(|base| base.lookup(generate)));
                        let enumeration = (&*self.name(def.name), kind, make);
                        let made = self.next_member_value(enumeration, &text, &given, def.name_span)?;
                        match &mut self.stack[frame.base + slot] {
                            Value::Cell(cell) => *cell.borrow_mut() = made.clone(),
                            value => *value = made.clone(),
                        }
                        made
                    }
                    _ => value,
                };
                given.push(value);
            }
        }
        Ok(())
    }

    /// The value of a stack slot.
    fn load_slot(&self, at: usize) -> Value {
        match &self.stack[at] {
            Value::Cell(cell) => cell.borrow().clone(),
            value => value.clone(),
        }
    }

    /// The value of `auto()` after the values `given` so far, in an Enum with this name, kind and
    /// `_generate_next_value_`.
    fn next_member_value(
        &mut self,
        (class, kind, generate): (&str, EnumKind, Option<Value>),
        name: &str,
        given: &[Value],
        span: Span,
    ) -> EvalResult<Value> {
        if let Some(make) = generate {
            let make = match &make {
                Value::Descriptor(descriptor) => match &**descriptor {
                    Descriptor::Static(function) => function.clone(),
                    _ => make.clone(),
                },
                _ => make,
            };
            let count = Value::Int(given.len() as i64);
            let args = [Value::str(name), Value::Int(1), count, Value::list(given.to_vec())];
            return self.call(&make, CallArgs::of(args, span));
        }
        if kind.mixin == Some(BuiltinType::Str) && kind.shows_value {
            return Ok(Value::str(name.to_lowercase()));
        }
        let ints: Option<Vec<i64>> = given.iter().map(|v| v.plain().as_int()).collect();
        let next = match ints.map(|ints| ints.into_iter().max()) {
            Some(None) => Some(1),
            Some(Some(last)) if kind.flag && last > 0 => 2i64.checked_pow(last.ilog2() + 1),
            Some(Some(0)) if kind.flag => Some(1),
            Some(Some(last)) if !kind.flag => last.checked_add(1),
            _ => None,
        };
        next.map(Value::Int).ok_or_else(|| {
            let message = format!("auto() of {class} follows a value that it cannot increment");
            Raise::at("type-error", message, span, "this class").help("give each member its value")
        })
    }

    /// Converts the value of a member to the type from which the Enum derives.
    fn mix_in(&mut self, kind: EnumKind, value: Value, span: Span) -> EvalResult<Value> {
        match (kind.mixin, &value) {
            (Some(BuiltinType::Str), Value::Str(_))
            | (Some(BuiltinType::Int), Value::Int(_))
            | (Some(BuiltinType::Float), Value::Float(_))
            | (None, _) => Ok(value),
            (Some(BuiltinType::Str), other) if kind.shows_value => {
                let text = self.repr(other)?;
                Err(Raise::at("type-error", format!("{text} is not a string"), span, "in this StrEnum"))
            }
            (Some(mixin), _) => self.call_type(mixin, CallArgs::of([value], span)),
        }
    }

    /// `Color(value)`
    pub(super) fn member_of(&mut self, class: &Rc<Class>, mut args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        // `Color(name="red", value=1)` also names the member.
        let name = args.take_keyword(sym::plain_name);
        let value = args.take_keyword(sym::value);
        args.positional.extend(value);
        let [wanted] = args.positional.as_slice() else {
            return Err(Raise::at("arguments", format!("{}() takes one value", class.name), span, "in this call"));
        };
        let is_it = |m: &Rc<EnumMember>| match wanted {
            Value::EnumMember(w) if Rc::ptr_eq(w, m) => true,
            other => self.equals(&m.value, other),
        };
        let found = class.all_members().into_iter().find(is_it).filter(|m| match &name {
            Some(Value::Str(name)) => **name == *self.name(m.name),
            _ => true,
        });
        if let Some(member) = found {
            return Ok(Value::EnumMember(member));
        }
        if let (true, Some(bits)) = (class.enum_kind().is_some_and(|k| k.flag), wanted.plain().as_int()) {
            return self.flag_of(class, bits, span);
        }
        if let Some(missing) = class.lookup(sym::missing) {
            let found = self.call_with(&missing, Value::Class(class.clone()), CallArgs::of([wanted.clone()], span))?;
            if !found.is_none() {
                return Ok(found);
            }
        }
        let text = self.repr(wanted)?;
        Err(Raise::at("value-error", format!("{text} is not a valid {}", class.name), span, "in this call"))
    }

    /// The member with these bits, created if none is declared.
    fn flag_of(&mut self, class: &Rc<Class>, bits: i64, span: Span) -> EvalResult<Value> {
        let (mask, singles) = class.masks();
        let keep = class.enum_kind().is_some_and(|k| k.mixin.is_some());
        let all = match mask {
            1.. => i64::MAX >> (i64::from(mask.leading_zeros()) - 1),
            _ => 0,
        };
        let refused = || {
            let message = format!("{bits} is not a combination of flags of {}", class.name);
            Err(Raise::at("value-error", message, span, "in this expression"))
        };
        let mut value = bits;
        if value < !all || value > all || value & (all ^ mask) != 0 {
            if !keep {
                return refused();
            }
            if value < 0 {
                let Some(top) = 1i64.checked_shl(64 - value.unsigned_abs().leading_zeros()).filter(|top| *top > 0)
                else {
                    return refused();
                };
                value += top.max(all + 1);
            }
        }
        if value < 0 {
            value = if keep { all + 1 + value } else { singles & value };
        }
        if let Some(member) = class.all_members().into_iter().find(|m| m.value.as_int() == Some(value)) {
            return Ok(Value::EnumMember(member));
        }
        let mut names = Vec::new();
        let mut covered = 0;
        let members = class.members.borrow().clone();
        let singly = members.into_iter().filter(|m| m.value.as_int().is_some_and(|v| v & value == v && v != 0));
        let named = class.named_members();
        let aliases = named.into_iter().map(|(_, m)| m).filter(|m| {
            value & !singles != 0 && m.value.as_int().is_some_and(|v| v.count_ones() > 1 && v & value == v)
        });
        for member in singly.chain(aliases) {
            names.push(self.name(member.name).to_string());
            covered |= member.value.as_int().unwrap_or(0);
        }
        if covered != 0 && value & !covered != 0 {
            if !keep {
                return refused();
            }
            names.push((value & !covered).to_string());
        }
        let name = if covered == 0 { sym::empty } else { self.sym(&names.join("|")) };
        let attrs = RefCell::default();
        let member = Rc::new(EnumMember { class: class.clone(), name, value: Value::Int(value), attrs });
        class.combinations.borrow_mut().push(member.clone());
        Ok(Value::EnumMember(member))
    }

    /// `left op right` of flags; `None` if flags do not support the operation.
    pub(super) fn flag_operation(
        &mut self,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let bits = |class: &Rc<Class>, value: &Value| match value {
            Value::EnumMember(member) if Rc::ptr_eq(&member.class, class) => member.flags(),
            other if class.enum_kind().is_some_and(|k| k.mixin.is_some()) => other.plain().as_int(),
            _ => None,
        };
        for (own, other) in [(left, right), (right, left)] {
            let Value::EnumMember(member) = own else { continue };
            let (Some(a), Some(b)) = (member.flags(), bits(&member.class, other)) else { continue };
            let value = match op {
                BinOp::BitAnd => a & b,
                BinOp::BitOr => a | b,
                BinOp::BitXor => a ^ b,
                _ => return Ok(None),
            };
            return self.flag_of(&member.class, value, span).map(Some);
        }
        Ok(None)
    }

    /// `~value` of a flag.
    pub(super) fn invert_flag(&mut self, member: &EnumMember, span: Span) -> EvalResult<Option<Value>> {
        let Some(bits) = member.flags() else { return Ok(None) };
        let value = if member.kind().mixin.is_some() { !bits } else { member.class.masks().1 & !bits };
        self.flag_of(&member.class, value, span).map(Some)
    }

    /// The flags that make up a combination.
    pub(super) fn flags_in(&self, member: &EnumMember) -> Option<Vec<Value>> {
        let bits = member.flags()?;
        let members = member.class.members.borrow();
        let within = members.iter().filter(|m| m.value.as_int().is_some_and(|v| v & bits == v && v != 0));
        Some(within.cloned().map(Value::EnumMember).collect())
    }

    /// `item in container`, where the container is an Enum member.
    pub(super) fn member_contains(&mut self, container: &Value, item: &Value, span: Span) -> EvalResult<bool> {
        match (container, item) {
            (Value::EnumMember(a), Value::EnumMember(b)) if a.flags().is_some() && Rc::ptr_eq(&a.class, &b.class) => {
                let (all, part) = (a.flags().unwrap_or(0), b.flags().unwrap_or(0));
                Ok(all & part == part)
            }
            (Value::EnumMember(a), _) if a.flags().is_some() => Err(self.bad_operands("in", item, container, span)),
            _ => self.contains(container.plain(), item, span),
        }
    }

    /// `str(member)`
    pub(super) fn member_text(&mut self, value: &Value, member: &Rc<EnumMember>) -> EvalResult<String> {
        if let Some(method) = member.class.lookup(sym::str_) {
            let text = self.call_with(&method, value.clone(), CallArgs::none(member.class.span))?;
            return self.str(&text);
        }
        if member.kind().shows_value {
            return self.str(&member.value);
        }
        if member.name == sym::empty {
            let bits = self.repr(&member.value)?;
            return Ok(format!("{}({bits})", member.class.name));
        }
        Ok(format!("{}.{}", member.class.name, self.name(member.name)))
    }
}

/// Whether a name with this value in the body of an Enum is a member.
fn names_member(name: &str, value: &Value) -> bool {
    let sunder = name.starts_with('_') && name.ends_with('_');
    !sunder
        && !name.starts_with("__")
        && !matches!(value, Value::Function(_) | Value::Descriptor(_) | Value::Class(_) | Value::Unset)
}

/// `@unique`: rejects two names for one value.
pub(super) fn unique(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "unique", 1, 1)?;
    if let Value::Class(class) = &args.positional[0] {
        let alias = class.named_members().into_iter().find(|(name, member)| *name != member.name);
        if let Some((name, member)) = alias {
            let (name, original) = (interp.name(name), interp.name(member.name));
            let message = format!("duplicate values found in {}: {name} -> {original}", class.name);
            return Err(Raise::at("value-error", message, class.span, "this class is `@unique`"));
        }
    }
    Ok(args.positional[0].clone())
}
