//! Classes of a live host.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use nki_diag::Span;

use super::super::Interp;
use super::super::error::EvalResult;
use super::super::native::CallArgs;
use super::super::stdlib::ordering::total_ordering;
use super::super::value::*;
use crate::host::*;

impl Interp<'_> {
    /// A class of the host, with its attributes.
    pub(super) fn host_class(&mut self, id: u64, class: &HostClass, span: Span) -> EvalResult<Value> {
        let made = Rc::new(Class {
            name: class.name.as_str().into(),
            kind: Cell::new(match class.kind {
                HostClassKind::Plain => ClassKind::Plain,
                HostClassKind::Record => ClassKind::Record,
                HostClassKind::Dataclass(told) => {
                    let HostDataclass { init, repr, eq, order, unsafe_hash, frozen } = told;
                    ClassKind::Dataclass(DataclassKind { frozen, eq, order, unsafe_hash, init, repr })
                }
                HostClassKind::Enum(HostEnum { mixin, flag, shows_value }) => {
                    let mixin = mixin.map(|mixin| match mixin {
                        HostMixin::Int => BuiltinType::Int,
                        HostMixin::Str => BuiltinType::Str,
                        HostMixin::Float => BuiltinType::Float,
                    });
                    ClassKind::Enum(EnumKind { mixin, flag, shows_value })
                }
                HostClassKind::NamedTuple => ClassKind::NamedTuple,
                HostClassKind::Exception => ClassKind::Exception(self.sym("Exception")),
            }),
            mro: OnceCell::new(),
            attrs: RefCell::new(AttrMap::default()),
            fields: RefCell::new(Vec::new()),
            members: RefCell::new(Vec::new()),
            combinations: RefCell::new(Vec::new()),
            lenient: class.record,
            def: None,
            span: Span::default(),
        });
        self.live.objects.insert(id, Value::Class(made.clone()));
        let mut mro = vec![made.clone()];
        for base in &class.bases {
            if let Value::Class(base) = &self.take_over(base, None, span)? {
                mro.push(base.clone());
            }
        }
        let _ = made.mro.set(mro);
        for (name, canonical, value) in &class.members {
            let name = self.sym(name);
            let member = if canonical == &*self.name(name) {
                let value = self.take_over(value, None, span)?;
                let member = Rc::new(EnumMember { class: made.clone(), name, value, attrs: RefCell::default() });
                let flag = made.enum_kind().is_some_and(|kind| kind.flag);
                let combined = flag && member.value.as_int().is_some_and(|v| v.count_ones() != 1);
                let list = if combined { &made.combinations } else { &made.members };
                list.borrow_mut().push(member.clone());
                Some(Value::EnumMember(member))
            } else {
                let canonical = self.sym(canonical);
                made.attrs.borrow().get(canonical).cloned()
            };
            if let Some(member) = member {
                made.attrs.borrow_mut().set(name, member);
            }
        }
        for (name, attribute) in &class.attributes {
            let mut method = |arg: &Arg| -> EvalResult<Value> {
                let value = self.take_over(arg, None, span)?;
                let function = match &value {
                    Value::Cached(cached) => &cached.function,
                    other => other,
                };
                if let Value::Function(function) = function {
                    function.class.borrow_mut().get_or_insert(Rc::downgrade(&made));
                }
                Ok(value)
            };
            let value = match attribute {
                HostAttribute::Plain(arg) => method(arg)?,
                HostAttribute::Static(arg) => Value::Descriptor(Rc::new(Descriptor::Static(method(arg)?))),
                HostAttribute::Class(arg) => Value::Descriptor(Rc::new(Descriptor::Class(method(arg)?))),
                HostAttribute::Property { get, set, delete } => {
                    let get = method(get)?;
                    let (set, delete) =
                        (set.as_ref().map(&mut method).transpose()?, delete.as_ref().map(&mut method).transpose()?);
                    Value::Descriptor(Rc::new(Descriptor::Property { get, set, delete }))
                }
                HostAttribute::CachedProperty(arg) => {
                    Value::Descriptor(Rc::new(Descriptor::CachedProperty(method(arg)?)))
                }
            };
            let name = self.sym(name);
            made.attrs.borrow_mut().set(name, value);
        }
        if class.total_ordering {
            total_ordering(self, CallArgs::of([Value::Class(made.clone())], span))?;
        }
        self.note_class(&made);
        for field in &class.fields {
            let default = match &field.default {
                HostDefault::Required => FieldDefault::Required,
                HostDefault::Value(arg) => FieldDefault::Value(self.take_over(arg, None, span)?),
                HostDefault::Factory(arg) => FieldDefault::Factory(self.take_over(arg, None, span)?),
            };
            let name = self.sym(&field.name);
            let HostField { init, kw_only, compare, repr, init_only, .. } = *field;
            let field = Field { name, default, init, kw_only, compare, hash: None, repr, init_only };
            made.fields.borrow_mut().push(field);
        }
        Ok(Value::Class(made))
    }
}
