//! Classes: plain classes, records, dataclasses, Enums, NamedTuples and exceptions.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use nki_diag::Span;

use super::error::{EvalResult, Raise};
use super::inheritance;
use super::language::{Construct, Hint};
use super::native::{CallArgs, count};
use super::value::*;
use super::{Frame, Interp};
use crate::syntax::*;

/// What initialises objects.
enum Init {
    /// The `__init__` of a class.
    Defined(Value),
    /// An `__init__` generated from the fields of this class.
    Generated(Rc<Class>),
}

impl Init {
    /// That of the first of these classes which has one. The root of all records makes one for `class`, the class of the object.
    fn of<'c>(order: impl Iterator<Item = &'c Rc<Class>>, class: &Rc<Class>) -> Option<Self> {
        let mut is_record = false;
        for one in order {
            if let Some(init) = one.attrs.borrow().get(sym::init) {
                return Some(Init::Defined(init.clone()));
            }
            match one.kind.get() {
                ClassKind::Record => is_record = true,
                kind if kind.makes_init() => return Some(Init::Generated(one.clone())),
                _ => {}
            }
        }
        is_record.then(|| Init::Generated(class.clone()))
    }
}

impl Interp<'_> {
    /// Runs a class body and creates the class.
    pub(crate) fn make_class(&mut self, frame: &Frame<'_>, def: &Rc<ClassDef>) -> EvalResult<Value> {
        let mut kind = ClassKind::Plain;
        // `int` in `class Color(int, Enum)`.
        let mut mixin = None;
        // `dict` in `class Table(dict)`.
        let mut builtin = None;
        let mut lenient = false;
        let mut bases: Vec<Rc<Class>> = Vec::new();
        for base in &def.bases {
            match self.eval(frame, base)? {
                Value::Class(ref class) => {
                    if kind == ClassKind::Plain {
                        kind = match class.kind.get() {
                            ClassKind::Dataclass(_) => ClassKind::Plain,
                            other => other,
                        };
                    }
                    lenient |= class.lenient;
                    bases.push(class.clone());
                }
                Value::Object(ref object) if object.is_record_base() => {
                    kind = ClassKind::Record;
                    lenient = true;
                }
                Value::Type(
                    base @ (BuiltinType::Int
                    | BuiltinType::Str
                    | BuiltinType::Float
                    | BuiltinType::List
                    | BuiltinType::Dict
                    | BuiltinType::Set
                    | BuiltinType::Tuple),
                ) => (mixin, builtin) = (Some(base), Some(base)),
                Value::Type(BuiltinType::FrozenSet) => {
                    let message = "a class cannot derive from frozenset here";
                    return Err(
                        Raise::at("type-error", message, def.name_span, "this class").help("derive it from set")
                    );
                }
                Value::Type(base) if let Some(found) = EnumKind::of_base(base) => kind = ClassKind::Enum(found),
                Value::Type(BuiltinType::NamedTuple) => kind = ClassKind::NamedTuple,
                Value::ExceptionClass(base) => kind = ClassKind::Exception(base),
                // `Generic[T]`, `ABC`, host classes: they add nothing that a kernel can use.
                _ => {}
            }
        }
        if let (Some(base), ClassKind::Plain) = (builtin, kind) {
            bases.extend(self.class_for_base(base, def.name_span)?);
        }
        if let ClassKind::Enum(found) = &mut kind {
            found.mixin = mixin.or(found.mixin);
        }
        let attrs = self.class_body(frame, def, kind, &bases)?;
        let class = Rc::new(Class {
            name: self.name(def.name),
            kind: Cell::new(kind),
            mro: OnceCell::new(),
            attrs: RefCell::new(attrs),
            fields: RefCell::new(Vec::new()),
            members: RefCell::new(Vec::new()),
            combinations: RefCell::new(Vec::new()),
            lenient,
            def: Some(def.clone()),
            span: def.name_span,
        });
        self.order_bases(&class, &bases, def.name_span)?;
        self.check_class(&class, &bases, def.name_span)?;
        inheritance::adopt_functions(&class, &class.attrs);
        self.make_fields(def, &class);
        if let ClassKind::Enum(_) = kind {
            self.make_members(&class, &bases, def.name_span)?;
        }
        self.announce_class(frame, def, &class)?;
        Ok(Value::Class(class))
    }

    /// The names that a class body binds, in order.
    fn class_body(
        &mut self,
        frame: &Frame<'_>,
        def: &ClassDef,
        kind: ClassKind,
        bases: &[Rc<Class>],
    ) -> EvalResult<AttrMap> {
        let base = self.stack.len();
        let captures = self.capture(frame, &def.scope);
        self.stack.resize(base + def.scope.slots as usize, Value::Unset);
        self.make_cells(base, &def.scope);
        let inner = Frame {
            base,
            captures: &captures,
            module: frame.module,
            function: frame.function,
            names: &def.scope.names,
        };
        let result = match kind {
            ClassKind::Enum(kind) => self.enum_body(&inner, def, kind, bases),
            _ => self.exec_block(&inner, &def.body).map(|_| ()),
        };
        let mut attrs = AttrMap::default();
        for (slot, name) in def.scope.names.iter().enumerate() {
            let value = match &self.stack[base + slot] {
                Value::Cell(cell) => cell.borrow().clone(),
                value => value.clone(),
            };
            if *name != sym::empty && !matches!(value, Value::Unset) {
                attrs.set(*name, value);
            }
        }
        self.stack.truncate(base);
        result?;
        Ok(attrs)
    }

    /// Collects the annotated names as fields, inherited fields first.
    fn make_fields(&mut self, def: &ClassDef, class: &Rc<Class>) {
        let mut fields = class.inherited_fields();
        if class.kind.get() == ClassKind::NamedTuple && !fields.is_empty() {
            // A class that derives from a named tuple has its fields.
            *class.fields.borrow_mut() = fields;
            return;
        }
        let (mut kw_only, mut init_only) = (false, false);
        for stmt in &def.body {
            if let StmtKind::AnnAssign(_, annotation, _) = &stmt.kind {
                let text = self.source_text(annotation.span);
                let named = |name: &str| {
                    text.split('[').next().is_some_and(|t| t.trim_matches('"').rsplit('.').next() == Some(name))
                };
                if named("KW_ONLY") {
                    kw_only = true;
                    continue;
                }
                init_only = named("InitVar");
            }
            let target = match &stmt.kind {
                StmtKind::AnnAssign(target, annotation, _)
                    if !self.source_text(annotation.span).contains("ClassVar") =>
                {
                    target
                }
                // In a record, plain assignments are fields, too.
                StmtKind::Assign(targets, _) if class.kind.get() == ClassKind::Record && targets.len() == 1 => {
                    &targets[0]
                }
                _ => continue,
            };
            let ExprKind::Name(name, _) = target.kind else { continue };
            let value = class.attrs.borrow().get(name).cloned();
            let mut field = match value {
                None => Field::new(name, FieldDefault::Required),
                Some(Value::FieldSpec(ref spec)) => {
                    // As in dataclasses, the class attribute becomes the default value itself.
                    match &spec.default {
                        FieldDefault::Value(value) => class.attrs.borrow_mut().set(name, value.clone()),
                        _ => {
                            class.attrs.borrow_mut().remove(name);
                        }
                    }
                    let FieldSpec { init, kw_only, compare, hash, repr, .. } = **spec;
                    Field { name, default: spec.default.clone(), init, kw_only, compare, hash, repr, init_only: false }
                }
                Some(value) => Field::new(name, FieldDefault::Value(value)),
            };
            field.kw_only |= kw_only;
            if init_only {
                (field.init_only, field.compare, field.repr) = (true, false, false);
            }
            // A redeclared field keeps its position.
            match fields.iter_mut().find(|f| f.name == name) {
                Some(old) => *old = field,
                None => fields.push(field),
            }
        }
        *class.fields.borrow_mut() = fields;
    }

    /// `Class(...)`
    pub(crate) fn construct(&mut self, class: &Rc<Class>, mut args: CallArgs) -> EvalResult<Value> {
        if let Some(def) = &class.def {
            self.check_strictly(Construct::Class(def));
        }
        if class.enum_kind().is_some() {
            return self.member_of(class, args);
        }
        self.check_protocol(class, args.span)?;
        self.check_abstract(class, args.span)?;
        let instance = Rc::new(Instance {
            class: class.clone(),
            attrs: RefCell::new(AttrMap::default()),
            frozen: Cell::new(false),
        });
        let value = Value::Instance(instance.clone());
        if class.exception_base().is_some() {
            instance.attrs.borrow_mut().set(sym::args, Value::tuple(args.positional.to_vec()));
        }
        let span = args.span;
        // Like `__new__`, independently of what `__init__` does with the arguments.
        if let Some(base) = class.builtin_base()
            && base.is_immutable()
        {
            let made = self.call(&Value::Type(base), CallArgs::of(args.positional.iter().cloned(), span))?;
            instance.attrs.borrow_mut().set(sym::base_value, made.plain_value());
        }
        match Init::of(class.order(), class) {
            Some(Init::Defined(init)) => {
                let result = self.call_with(&init, value.clone(), args)?;
                self.check_init(&result, span)?;
                return Ok(value);
            }
            Some(Init::Generated(maker)) => {
                self.initialise(&instance, &maker, &mut args)?;
                instance.frozen.set(class.is_frozen());
                return Ok(value);
            }
            None => {}
        }
        if class.exception_base().is_none() && (!args.positional.is_empty() || !args.keyword.is_empty()) {
            return Err(Raise::at("arguments", format!("{}() takes no arguments", class.name), span, "in this call")
                .help(self.dialect.hint(Hint::Constructor)));
        }
        Ok(value)
    }

    /// The `__init__` generated for `maker`, a class of the object or one of its bases.
    fn initialise(&mut self, instance: &Rc<Instance>, maker: &Rc<Class>, args: &mut CallArgs) -> EvalResult<()> {
        let fields = maker.declared_fields();
        let given = self.fill_fields(instance, &fields, args)?;
        if maker.lookup(sym::post_init).is_some()
            && let Some(post) = instance.class.lookup(sym::post_init)
        {
            self.call_with(&post, Value::Instance(instance.clone()), CallArgs::of(given, args.span))?;
        }
        Ok(())
    }

    /// Sets the fields from the arguments of a generated `__init__`. Returns the values for `__post_init__`.
    fn fill_fields(
        &mut self,
        instance: &Rc<Instance>,
        fields: &[Field],
        args: &mut CallArgs,
    ) -> EvalResult<Vec<Value>> {
        let class = &instance.class;
        let span = args.span;
        let mut values: Vec<Option<Value>> = vec![None; fields.len()];
        let mut slots = fields.iter().enumerate().filter(|(_, f)| f.init && !f.kw_only).map(|(i, _)| i);
        let given = args.positional.len();
        for value in args.positional.drain(..) {
            match slots.next() {
                Some(index) => values[index] = Some(value),
                None => {
                    let takes = fields.iter().filter(|f| f.init && !f.kw_only).count();
                    let text = format!(
                        "{}() takes {} but {given} were given",
                        class.name,
                        count(takes, "positional argument")
                    );
                    return Err(Raise::at("arguments", text, span, "in this call"));
                }
            }
        }
        for (name, value) in args.keyword.drain(..) {
            match fields.iter().position(|f| f.name == name && f.init) {
                Some(index) if values[index].is_none() => values[index] = Some(value),
                Some(_) => {
                    let text = format!("{}() got `{}` twice", class.name, self.name(name));
                    return Err(Raise::at("arguments", text, span, "in this call"));
                }
                // A record's constructor also sets class attributes that have no annotation.
                None if class.lenient
                    && class.lookup(name).is_some_and(|v| !matches!(v, Value::Function(_) | Value::Descriptor(_))) =>
                {
                    instance.attrs.borrow_mut().set(name, value);
                }
                None => {
                    let names: Vec<Rc<str>> = fields.iter().map(|f| self.name(f.name)).collect();
                    let raise = Raise::at(
                        "arguments",
                        format!("{}() has no field `{}`", class.name, self.name(name)),
                        span,
                        "in this call",
                    );
                    return Err(match super::expr::nearest(&self.name(name), names.iter().map(|n| &**n)) {
                        Some(near) => raise.help(format!("did you mean `{near}`?")),
                        None => raise,
                    });
                }
            }
        }
        let mut init_only = Vec::new();
        for (field, value) in fields.iter().zip(values) {
            let value = match (value, &field.default) {
                (Some(value), _) => value,
                (None, FieldDefault::Value(value)) => value.clone(),
                (None, FieldDefault::Factory(factory)) => self.call(&factory.clone(), CallArgs::none(span))?,
                // A record's field without a default is None.
                (None, FieldDefault::Required) if class.lenient => Value::None,
                (None, FieldDefault::Required) if !field.init => continue,
                (None, FieldDefault::Required) => {
                    let text = format!("{}() is missing its field `{}`", class.name, self.name(field.name));
                    return Err(Raise::at("arguments", text, span, "in this call"));
                }
            };
            if field.init_only {
                init_only.push(value);
            } else {
                instance.attrs.borrow_mut().set(field.name, value);
            }
        }
        Ok(init_only)
    }

    /// `super().__init__(...)` of the object `this`, with the bases that may have one in resolution order.
    pub(crate) fn init_of(&mut self, bases: &[Rc<Class>], this: &Value, mut args: CallArgs) -> EvalResult<Value> {
        let class = match this {
            Value::Instance(instance) => &instance.class,
            Value::Class(class) => class,
            _ => return Ok(Value::None),
        };
        let init = Init::of(bases.iter().filter(|base| base.kind.get() != ClassKind::NamedTuple), class);
        if let Some(Init::Defined(init)) = init {
            return self.call_with(&init, this.clone(), args);
        }
        let Value::Instance(instance) = this else { return Ok(Value::None) };
        if let Some(Init::Generated(maker)) = init {
            self.initialise(instance, &maker, &mut args)?;
        }
        if instance.class.exception_base().is_some() {
            instance.attrs.borrow_mut().set(sym::args, Value::tuple(args.positional.to_vec()));
        }
        Ok(Value::None)
    }

    /// Generated methods: `_replace` and `_asdict` of a NamedTuple, and explicit calls of
    /// `__init__` and `__post_init__`.
    pub(crate) fn synthesized_method(
        &mut self,
        base: &Value,
        name: Symbol,
        args: &CallArgs,
    ) -> EvalResult<Option<Value>> {
        let Value::Instance(instance) = base else { return Ok(None) };
        match name {
            sym::asdict => {
                let mut dict = Dict::default();
                for field in &instance.class.declared_fields() {
                    if let Some(value) = instance.attrs.borrow().get(field.name) {
                        dict.set_str(self.names.name(field.name), value.clone());
                    }
                }
                Ok(Some(Value::dict(dict)))
            }
            sym::replace => self.replace_fields(instance, &args.keyword, args.span).map(Some),
            sym::repr | sym::str_ => Ok(Some(Value::str(self.repr(base)?))),
            sym::eq => match args.positional.first() {
                Some(other) => Ok(Some(Value::Bool(self.equals(base, other)))),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// A copy with some fields replaced (`dataclasses.replace`, `_replace`).
    pub(crate) fn replace_fields(
        &mut self,
        instance: &Rc<Instance>,
        changes: &[(Symbol, Value)],
        span: Span,
    ) -> EvalResult<Value> {
        let fields = instance.class.declared_fields();
        if let Some(field) = fields.iter().find(|f| f.init_only) {
            let message =
                format!("replace() of a {} with the InitVar `{}`", instance.class.name, self.name(field.name));
            return Err(Raise::at("unsupported-syntax", message, span, "in this call")
                .help("call the class itself, or run the kernel through Python"));
        }
        let attrs = instance.attrs.borrow().clone();
        let copy =
            Rc::new(Instance { class: instance.class.clone(), attrs: RefCell::new(attrs), frozen: Cell::new(false) });
        for (name, value) in changes {
            if !fields.iter().any(|f| f.name == *name) {
                let text = format!("{} has no field `{}`", instance.class.name, self.name(*name));
                return Err(Raise::at("arguments", text, span, "in this call"));
            }
            copy.attrs.borrow_mut().set(*name, value.clone());
        }
        let value = Value::Instance(copy.clone());
        if let Some(post) = copy.class.lookup(sym::post_init) {
            self.call_with(&post, value.clone(), CallArgs::none(span))?;
        }
        copy.frozen.set(instance.frozen.get());
        Ok(value)
    }

    /// The items of a NamedTuple.
    pub(crate) fn named_tuple_items(&self, value: &Value) -> Option<Vec<Value>> {
        let Value::Instance(instance) = value else { return None };
        if instance.class.kind.get() != ClassKind::NamedTuple {
            return None;
        }
        let attrs = instance.attrs.borrow();
        Some(instance.class.fields.borrow().iter().filter_map(|f| attrs.get(f.name).cloned()).collect())
    }
}
