//! Attribute access.

use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::expr::nearest;
use super::modules::meant_in;
use super::native::CallArgs;
use super::stdlib::dtype;
use super::value::{BoundMethod, BuiltinType, Class, ClassKind, Descriptor, Dict, Function, Value};
use crate::syntax::*;

impl Interp<'_> {
    /// `base.name`
    pub(crate) fn get_attr(&mut self, base: &Value, name: Symbol, span: Span) -> EvalResult<Value> {
        match self.find_attr(base, name, span) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => {
                let raise = self.no_attribute(base, name, span);
                match base {
                    // A missing name of a module may be an instruction, whose result is not needed;
                    // a missing name of the package itself is not.
                    Value::NativeModule(module) if module.dialect.is_some() && module.path.contains('.') => {
                        self.recover(raise)
                    }
                    _ => Err(raise),
                }
            }
            Err(raise) if matches!(base, Value::Object(_)) => self.recover(raise),
            Err(raise) => Err(raise),
        }
    }

    /// An attribute of a function. A wrapper has the name and the module of the function that it
    /// wraps.
    fn attr_of_function(&self, function: &Function, name: Symbol) -> Option<Value> {
        if let Some(value) = function.attrs.borrow().get(name) {
            return Some(value.clone());
        }
        let wrapped = function.wrapped.borrow();
        Some(match (name, &*wrapped) {
            (sym::name | sym::qualname, Some(wrapped)) => wrapped.name.clone(),
            (sym::name | sym::qualname, None) => Value::Str(self.name(function.def.name)),
            (sym::doc, _) => match function.def.body.first().map(|stmt| &stmt.kind) {
                Some(StmtKind::Expr(Expr { kind: ExprKind::Str(text), .. })) => Value::Str(text.clone()),
                _ => Value::None,
            },
            (sym::module, Some(wrapped)) => wrapped.module.clone(),
            (sym::module, None) => Value::str(&function.module.name),
            (sym::wrapped, Some(wrapped)) => wrapped.function.clone(),
            _ => return None,
        })
    }

    /// `base.name`, or `None` if there is no such attribute (objects report this error themselves).
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of value")]
    pub(crate) fn find_attr(&mut self, base: &Value, name: Symbol, span: Span) -> EvalResult<Option<Value>> {
        Ok(Some(match base {
            Value::NativeModule(module) => {
                if let Some(value) = module.attrs.borrow().get(name) {
                    return Ok(Some(value.clone()));
                }
                let Some(value) = self.native_attr(module, name, span) else { return Ok(None) };
                module.attrs.borrow_mut().set(name, value.clone());
                value
            }
            Value::Poison => Value::Poison,
            Value::Object(object) => self.object_attribute(base, &**object, name, span)?,
            Value::Instance(instance) => {
                if let Some(value) = instance.attrs.borrow().get(name)
                    && !self.is_data_descriptor(instance, name)
                {
                    return Ok(Some(value.clone()));
                }
                if let Some(value) = instance.class.lookup(name) {
                    let bound = self.bind(value.clone(), base, &instance.class, span)?;
                    if value.is_cached_property() {
                        instance.attrs.borrow_mut().set(name, bound.clone());
                    }
                    return Ok(Some(bound));
                }
                match name {
                    sym::class => Value::Class(instance.class.clone()),
                    sym::dict if self.has_dict(&instance.class, span)? => self.dict_of(instance),
                    sym::asdict | sym::replace => Value::BoundBuiltin(Rc::new((base.clone(), name))),
                    sym::fields if instance.class.kind.get() == ClassKind::NamedTuple => {
                        return self.find_attr(&Value::Class(instance.class.clone()), name, span);
                    }
                    _ if instance.class.exception_base().is_some()
                        && let Some(value) = self.attr_of_exception(base, name) =>
                    {
                        value
                    }
                    _ => match instance.class.lookup(sym::getattr) {
                        Some(method) => {
                            self.call_with(&method, base.clone(), CallArgs::of([Value::Str(self.name(name))], span))?
                        }
                        None => return Ok(None),
                    },
                }
            }
            Value::Class(class) => match class.lookup(name) {
                Some(Value::Descriptor(ref descriptor)) => match &**descriptor {
                    Descriptor::Static(function) => function.clone(),
                    Descriptor::Class(function) => {
                        Value::BoundMethod(Rc::new(BoundMethod { receiver: base.clone(), function: function.clone() }))
                    }
                    Descriptor::Method(function) => function.clone(),
                    Descriptor::Property { .. } | Descriptor::CachedProperty(_) => {
                        Value::Descriptor(descriptor.clone())
                    }
                },
                Some(value) => value,
                None => match name {
                    sym::name | sym::qualname => Value::Str(class.name.clone()),
                    sym::members if class.enum_kind().is_some() => {
                        let mut dict = Dict::default();
                        for (name, member) in class.named_members() {
                            dict.set_str(self.names.name(name), Value::EnumMember(member));
                        }
                        Value::dict(dict)
                    }
                    sym::fields => Value::tuple(
                        class.declared_fields().iter().map(|f| Value::Str(self.name(f.name))).collect::<Vec<_>>(),
                    ),
                    sym::module => Value::str(""),
                    sym::mro => match self.mro_of(class) {
                        Some(classes) => Value::tuple(classes),
                        None => return Ok(None),
                    },
                    _ => return Ok(None),
                },
            },
            Value::Module(module) => {
                let value = module.index.borrow().get(&name).map(|i| module.globals.borrow()[*i as usize].clone());
                match value {
                    Some(Value::Unset) | None => return self.submodule(&module.clone(), name, span),
                    Some(value) => {
                        if !module.guesses.borrow().is_empty()
                            && let Some(at) = module.index.borrow().get(&name)
                        {
                            self.tell_guess(module, *at, &value, span);
                        }
                        value
                    }
                }
            }
            Value::EnumMember(member) => match name {
                sym::value => member.value.clone(),
                sym::plain_name if member.name == sym::empty => Value::None,
                sym::plain_name => Value::Str(self.name(member.name)),
                sym::class => Value::Class(member.class.clone()),
                _ if let Some(value) = member.attrs.borrow().get(name) => value.clone(),
                _ => match member.class.lookup(name) {
                    Some(value) => {
                        let cached = value.is_cached_property();
                        let bound = self.bind(value, base, &member.class.clone(), span)?;
                        if cached {
                            member.attrs.borrow_mut().set(name, bound.clone());
                        }
                        bound
                    }
                    None => match &*self.name(name) {
                        "_value_" => member.value.clone(),
                        "_name_" => return self.find_attr(base, sym::plain_name, span),
                        _ if member.kind().mixin.is_some() => return self.find_attr(&member.value, name, span),
                        _ => return Ok(None),
                    },
                },
            },
            Value::Function(function) => match self.host_attr(function, name, span)? {
                Some(value) => value,
                None => return Ok(self.attr_of_function(function, name)),
            },
            Value::Kernel(kernel) => match name {
                sym::func | sym::wrapped => kernel.function.clone(),
                _ => self.get_attr(&kernel.function.clone(), name, span)?,
            },
            Value::Partial(partial) => match &*self.name(name) {
                "func" => partial.function.clone(),
                "args" => Value::tuple(partial.positional.clone()),
                "keywords" => {
                    let mut dict = Dict::default();
                    for (name, value) in &partial.keyword {
                        dict.set_str(self.names.name(*name), value.clone());
                    }
                    Value::dict(dict)
                }
                _ => return Ok(None),
            },
            Value::Cached(cached) => return self.cached_attr(&cached.clone(), name, span),
            Value::Native(native) if native.name == "itertools.chain" && &*self.name(name) == "from_iterable" => {
                Value::native("itertools.chain.from_iterable", super::stdlib::chain_from, 0)
            }
            Value::Native(native) if matches!(name, sym::name | sym::qualname) => {
                Value::str(native.name.rsplit('.').next().unwrap_or_default())
            }
            Value::Type(kind) => match name {
                sym::name | sym::qualname => Value::str(kind.name()),
                _ => return self.type_attr(*kind, name),
            },
            Value::Slice(slice) => match name {
                sym::start => slice.start.clone(),
                sym::stop => slice.stop.clone(),
                sym::step => slice.step.clone(),
                _ if super::methods::exists(base, &self.name(name)) => {
                    Value::BoundBuiltin(Rc::new((base.clone(), name)))
                }
                _ => return Ok(None),
            },
            Value::Range(range) if matches!(name, sym::start | sym::stop | sym::step) => Value::Int(match name {
                sym::start => range.start,
                sym::stop => range.stop,
                _ => range.step,
            }),
            Value::Exception(exception) if let Some(value) = exception.2.borrow().get(name) => value.clone(),
            Value::Exception(exception) => match name {
                sym::args => Value::tuple(exception.1.clone()),
                sym::value if exception.0 == sym::stop_iteration => exception.1.first().cloned().unwrap_or(Value::None),
                _ => return Ok(self.attr_of_exception(base, name)),
            },
            Value::ExceptionClass(class) => match name {
                sym::name => Value::Str(self.name(*class)),
                _ => return Ok(None),
            },
            Value::Super(sup) => match self.super_lookup(sup, name) {
                Some(value) => self.bind(value, &sup.receiver.clone(), &sup.class.clone(), span)?,
                None => return Ok(None),
            },
            Value::Descriptor(descriptor) => match (&**descriptor, &*self.name(name)) {
                (Descriptor::Property { .. }, part @ ("setter" | "getter" | "deleter")) => {
                    self.property_with(base, part)
                }
                _ => return Ok(None),
            },
            Value::BoundMethod(bound) => return self.find_attr(&bound.function.clone(), name, span),
            Value::Host(host) if self.in_kernel && is_log(&host.path, &self.name(name)) => {
                Value::native("log", |_, _| Ok(Value::None), 0)
            }
            Value::Host(host) => {
                if self.in_kernel {
                    return Err(self.host_error(host, span));
                }
                self.host_part(host, format!("{}.{}", host.path, self.name(name)), span)
            }
            other => {
                let text = self.name(name);
                if super::methods::exists(other, &text) {
                    Value::BoundBuiltin(Rc::new((other.clone(), name)))
                } else {
                    return Ok(None);
                }
            }
        }))
    }

    /// Applies the descriptor protocol to a value found in a class.
    fn bind(&mut self, value: Value, receiver: &Value, class: &Rc<Class>, span: Span) -> EvalResult<Value> {
        Ok(match &value {
            Value::Function(_) | Value::Kernel(_) | Value::Cached(_) => {
                Value::BoundMethod(Rc::new(BoundMethod { receiver: receiver.clone(), function: value }))
            }
            Value::Descriptor(descriptor) => match &**descriptor {
                Descriptor::Static(function) => function.clone(),
                Descriptor::Class(function) => {
                    let receiver = Value::Class(class.clone());
                    Value::BoundMethod(Rc::new(BoundMethod { receiver, function: function.clone() }))
                }
                Descriptor::Method(_) => {
                    Value::BoundMethod(Rc::new(BoundMethod { receiver: receiver.clone(), function: value.clone() }))
                }
                Descriptor::Property { get, .. } | Descriptor::CachedProperty(get) => {
                    return self.call_with(&get.clone(), receiver.clone(), CallArgs::none(span));
                }
            },
            Value::Instance(_) => match self.ask_descriptor(&value, receiver, class, span)? {
                Some(made) => made,
                None => value,
            },
            _ => value,
        })
    }

    fn no_attribute(&mut self, base: &Value, name: Symbol, span: Span) -> Box<Raise> {
        let text = self.name(name);
        let mut candidates: Vec<String> = Vec::new();
        let (subject, label) = match base {
            Value::NativeModule(module) => (format!("`{}` has no `{text}`", module.path), "not there".to_owned()),
            Value::Module(module) => {
                candidates.extend(module.symbols.borrow().iter().map(|s| self.name(*s).to_string()));
                (format!("module `{}` has no `{text}`", module.name), "not there".to_owned())
            }
            Value::Class(class) => {
                candidates.extend(class.attrs.borrow().iter().map(|(n, _)| self.name(n).to_string()));
                (format!("class `{}` has no attribute `{text}`", class.name), "not there".to_owned())
            }
            other => {
                if let Value::Instance(instance) = other {
                    candidates.extend(instance.attrs.borrow().iter().map(|(n, _)| self.name(n).to_string()));
                    for class in instance.class.order() {
                        candidates.extend(class.attrs.borrow().iter().map(|(n, _)| self.name(n).to_string()));
                    }
                }
                (format!("{} has no attribute `{text}`", other.a_type()), other.a_type())
            }
        };
        let raise = Raise::at("no-attribute", subject, span, label);
        if let Value::NativeModule(module) = base
            && module.dialect.is_some()
            && matches!(&*text, "float64" | "double")
        {
            return raise.help(dtype::NO_FLOAT64);
        }
        let meant = match base {
            Value::NativeModule(module) => meant_in(module, &text),
            _ => nearest(&text, candidates.iter().map(String::as_str)).map(str::to_owned),
        };
        match meant {
            Some(meant) => raise.help(format!("did you mean `{meant}`?")),
            None => raise,
        }
    }
}

/// Whether the name is that of a function which only writes a message: of `logging`, one of its
/// loggers, or `warnings`.
fn is_log(path: &str, name: &str) -> bool {
    match name {
        "debug" | "info" | "warning" | "error" | "critical" | "exception" | "log" => {
            path == "logging" || path.starts_with("logging.getLogger(...)") || path == "Logger object"
        }
        "warn" => path == "warnings",
        _ => false,
    }
}

impl Interp<'_> {
    /// `cls.__mro__`; `None` for a class with a standard-library base such as `ABC`, which the
    /// evaluator does not record as a base.
    pub(super) fn mro_of(&self, class: &Class) -> Option<Vec<Value>> {
        let classes = class.mro.get()?;
        let is_known = |base: &Expr| match &base.kind {
            ExprKind::Name(name, _) | ExprKind::Attr(_, name) => {
                let name = &*self.name(*name);
                name == "object" || classes.iter().any(|class| &*class.name == name)
            }
            _ => false,
        };
        let all_known =
            classes.iter().all(|class| class.def.as_ref().is_some_and(|def| def.bases.iter().all(is_known)));
        let own = classes.iter().cloned().map(Value::Class);
        all_known.then(|| own.chain([Value::Type(BuiltinType::Object)]).collect())
    }
}
