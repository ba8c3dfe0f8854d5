//! Calls: arguments, functions, methods, attributes.

use std::cell::RefCell;
use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use smallvec::SmallVec;

use super::error::{EvalResult, Raise};
use super::exec::Flow;
use super::expr::nearest;
use super::language::{Construct, Hint};
use super::native::{CallArgs, count};
use super::stdlib::array;
use super::value::{Class, Descriptor, Dict, Function, Super, Value};
use super::{Frame, Interp, PendingStep};
use crate::syntax::*;

/// Limit of the depth of active calls.
const MAX_CALLS: usize = 1000;
/// Bytes of stack that evaluation may use, out of the [`STACK`](super::STACK) available.
const MAX_STACK: usize = super::STACK - (32 << 20);

impl Interp<'_> {
    /// A call expression.
    pub(crate) fn eval_call(
        &mut self,
        frame: &Frame<'_>,
        callee: &Expr,
        arguments: &[Argument],
        span: Span,
    ) -> EvalResult<Value> {
        if let ExprKind::Attr(base, name) = &callee.kind {
            let base = self.eval(frame, base)?;
            // A function of a module is not a method.
            if matches!(base, Value::NativeModule(_) | Value::Module(_)) {
                let function = self.get_attr(&base, *name, callee.span)?;
                let args = self.eval_arguments(frame, arguments, span)?;
                return self.call(&function, args);
            }
            let args = self.eval_arguments(frame, arguments, span)?;
            return self.call_method(&base, *name, args);
        }
        let function = self.eval(frame, callee)?;
        if let (Value::Type(super::value::BuiltinType::Object), ExprKind::Name(sym::super_, _)) =
            (&function, &callee.kind)
        {
            return self.make_super(frame, span);
        }
        let args = self.eval_arguments(frame, arguments, span)?;
        self.call(&function, args)
    }

    fn make_super(&mut self, frame: &Frame<'_>, span: Span) -> EvalResult<Value> {
        let class = frame.function.and_then(|f| f.class.borrow().as_ref().and_then(std::rc::Weak::upgrade));
        let receiver = match self.stack.get(frame.base) {
            Some(Value::Cell(cell)) => cell.borrow().clone(),
            Some(value) => value.clone(),
            None => Value::Unset,
        };
        match class {
            Some(class) => Ok(Value::Super(Rc::new(Super { class, receiver }))),
            None => Err(Raise::at("unsupported-syntax", "super() outside a method", span, "no class around it")),
        }
    }

    fn eval_arguments(&mut self, frame: &Frame<'_>, arguments: &[Argument], span: Span) -> EvalResult<CallArgs> {
        let mut args = CallArgs::none(span);
        for argument in arguments {
            match argument {
                Argument::Positional(expr) => args.positional.push(self.eval(frame, expr)?),
                Argument::Keyword(name, expr) => {
                    let value = self.eval(frame, expr)?;
                    if args.keyword.iter().any(|(n, _)| n == name) {
                        let text = format!("`{}` is given twice", self.name(*name));
                        return Err(Raise::at("arguments", text, expr.span, "the second time"));
                    }
                    args.keyword.push((*name, value));
                }
                Argument::Star(expr) => {
                    let value = self.eval(frame, expr)?;
                    args.positional.extend(self.iterate(&value, expr.span)?);
                }
                Argument::DoubleStar(expr) => {
                    match self.eval(frame, expr).and_then(|dict| self.as_dict(dict, expr.span))? {
                        Value::Dict(ref dict) => {
                            for (_, key, value) in dict.borrow().iter() {
                                let Value::Str(name) = key else {
                                    return Err(Raise::at(
                                        "arguments",
                                        "`**` needs string keys",
                                        expr.span,
                                        "in this call",
                                    ));
                                };
                                let name = self.names.intern(name);
                                if args.keyword.iter().any(|(n, _)| *n == name) {
                                    let text = format!("`{}` is given twice", self.name(name));
                                    return Err(Raise::at("arguments", text, expr.span, "the second time"));
                                }
                                args.keyword.push((name, value.clone()));
                            }
                        }
                        Value::Host(_) if !self.in_kernel => {}
                        other => {
                            return Err(Raise::at(
                                "type-error",
                                format!("`**` needs a dict, not {}", other.a_type()),
                                expr.span,
                                "here",
                            ));
                        }
                    }
                }
            }
        }
        Ok(args)
    }

    /// Calls a value.
    pub(crate) fn call(&mut self, callee: &Value, mut args: CallArgs) -> EvalResult<Value> {
        self.check_strictly(Construct::Call(callee, args.span));
        if let Some(function) = self.array_function(callee, &args) {
            return self.call(&function, args);
        }
        match callee {
            Value::Function(function) => self.call_function(function, None, args),
            Value::Native(native) => {
                if self.absorbs(native, &args) {
                    return Ok(Value::Poison);
                }
                args.data = native.data;
                if args.has_members() && self.is_of_dialect(native) {
                    args.take_plain_values();
                }
                let span = args.span;
                let is_of_host = !self.is_of_dialect(native) && self.has_host_value(args.values());
                let tensor = native.name.starts_with("numpy.").then(|| args.device_data().map(Value::a_type)).flatten();
                match (native.func)(self, args) {
                    Err(raise)
                        if let Some(tensor) = tensor
                            && !raise.fatal =>
                    {
                        Err(self.values_unknown(&tensor, span))
                    }
                    Err(raise) if is_of_host && !raise.fatal => Ok(self.host(format!("{}(...)", native.name), span)),
                    Err(raise) if self.is_of_dialect(native) => self.recover(raise),
                    Ok(value) => array::charged(self, value, span),
                    error => error,
                }
            }
            Value::Cached(cached) => self.call_cached(cached, args),
            Value::Class(class) => self.construct(class, args),
            Value::BoundMethod(bound) => self.call_with(&bound.function, bound.receiver.clone(), args),
            Value::BoundBuiltin(bound) => self.call_method(&bound.0, bound.1, args),
            Value::Kernel(kernel) => {
                if !self.in_kernel {
                    // The host program launches the kernel on tensors that the simulator does not
                    // have.
                    return Ok(self.host("the result of a kernel".into(), args.span));
                }
                if kernel.has_grid {
                    return Err(Self::nested_grid(args.span));
                }
                self.dialect.nested_kernel(self, &kernel.compile_config, args.span)?;
                self.call(&kernel.function, args)
            }
            Value::Partial(partial) => {
                let mut all = CallArgs::of(partial.positional.iter().cloned(), args.span);
                all.positional.extend(args.positional);
                all.keyword
                    .extend(partial.keyword.iter().filter(|(n, _)| !args.keyword.iter().any(|(m, _)| m == n)).cloned());
                all.keyword.extend(args.keyword);
                self.call(&partial.function, all)
            }
            Value::Type(_) if args.positional.first().is_some_and(|v| matches!(v, Value::Poison)) => Ok(Value::Poison),
            Value::Type(kind) => self.call_type(*kind, args),
            Value::ExceptionClass(name) => Ok(Value::exception(*name, args.positional.to_vec())),
            Value::Instance(instance) => match instance.class.lookup(sym::call) {
                Some(method) => self.call_with(&method, callee.clone(), args),
                None => Err(self.not_callable(callee, args.span)),
            },
            Value::Descriptor(descriptor) => match &**descriptor {
                Descriptor::Static(function) | Descriptor::Method(function) => self.call(function, args),
                _ => Err(self.not_callable(callee, args.span)),
            },
            Value::Host(host) if let Some(default) = self.unset_variable(host, &args) => Ok(default),
            Value::Host(host) if !self.in_kernel => Ok(self.host_part(host, format!("{}(...)", host.path), args.span)),
            Value::Host(host) => match args.device_data() {
                Some(tensor) if host.path.starts_with("numpy.") => {
                    Err(self.values_unknown(&tensor.a_type(), args.span))
                }
                _ => Err(self.host_error(host, args.span)),
            },
            Value::Poison => Ok(Value::Poison),
            Value::Object(object) => {
                if self.absorbs_method(callee, &args) {
                    return Ok(Value::Poison);
                }
                if !object.knows_scalars() {
                    args.take_numbers();
                }
                object.call(self, args).or_else(|raise| self.recover(raise))
            }
            _ => Err(self.not_callable(callee, args.span)),
        }
    }

    /// The function of this dialect that replaces a NumPy function called with tensors.
    fn array_function(&mut self, callee: &Value, args: &CallArgs) -> Option<Value> {
        let path = match callee {
            Value::Native(native) => &*native.name,
            Value::Host(host) => &*host.path,
            _ => return None,
        };
        let name = path.strip_prefix("numpy.")?;
        // The dialect's functions return a new tile, so they cannot replace a call with `out=`.
        let has_out = args.keyword.iter().any(|(keyword, _)| &*self.name(*keyword) == "out");
        let (dialect, name) = (self.dialect, name.to_owned());
        (args.device_data().is_some() && !has_out).then(|| dialect.array_function(self, &name)).flatten()
    }

    /// For host code that needs the values of `what`, data on the device.
    pub(crate) fn values_unknown(&self, what: &str, span: Span) -> Box<Raise> {
        let message = format!("the contents of {what} are not known when the kernel is specialised");
        Raise::at("type-error", message, span, "Python needs them here").help(self.dialect.hint(Hint::DeviceValues))
    }

    fn not_callable(&self, callee: &Value, span: Span) -> Box<Raise> {
        Raise::at("type-error", format!("{} cannot be called", callee.a_type()), span, callee.a_type())
    }

    /// Calls a value found in a class, with its receiver.
    pub(crate) fn call_with(&mut self, function: &Value, receiver: Value, mut args: CallArgs) -> EvalResult<Value> {
        match function {
            Value::Function(function) => self.call_function(function, Some(receiver), args),
            Value::Descriptor(descriptor) => match &**descriptor {
                Descriptor::Static(function) => self.call(function, args),
                Descriptor::Class(function) => {
                    let class = match &receiver {
                        Value::Instance(instance) => Value::Class(instance.class.clone()),
                        other => other.clone(),
                    };
                    self.call_with(function, class, args)
                }
                Descriptor::Method(function) => {
                    args.positional.insert(0, receiver);
                    self.call(function, args)
                }
                Descriptor::Property { get, .. } | Descriptor::CachedProperty(get) => {
                    let value = self.call_with(get, receiver, CallArgs::none(args.span))?;
                    self.call(&value, args)
                }
            },
            Value::Native(_)
            | Value::Partial(_)
            | Value::Kernel(_)
            | Value::Cached(_)
            | Value::Instance(_)
            | Value::Class(_) => {
                if let Value::Kernel(_) | Value::Cached(_) = function {
                    args.positional.insert(0, receiver);
                }
                self.call(function, args)
            }
            other => self.call(other, args),
        }
    }

    /// `base.name(...)`
    pub(crate) fn call_method(&mut self, base: &Value, name: Symbol, args: CallArgs) -> EvalResult<Value> {
        match base {
            Value::Poison => Ok(Value::Poison),
            // Files that the older compiler writes end with `kernel.specialize(...)`; a call specialises a kernel here.
            Value::Kernel(kernel) if kernel.is_older() && &*self.name(name) == "specialize" => Ok(base.clone()),
            Value::Object(object) => {
                if self.absorbs_method(base, &args) {
                    return Ok(Value::Poison);
                }
                self.call_object_method(base, &**object, name, args).or_else(|raise| self.recover(raise))
            }
            Value::Instance(instance) => {
                let own = instance.attrs.borrow().get(name).cloned();
                if let Some(function) = own {
                    return self.call(&function, args);
                }
                if let Some(function) = instance.class.lookup(name).filter(|f| !f.is_cached_property()) {
                    return self.call_with(&function, base.clone(), args);
                }
                if let Some(result) = self.synthesized_method(base, name, &args)? {
                    return Ok(result);
                }
                let function = self.get_attr(base, name, args.span)?;
                self.call(&function, args)
            }
            Value::List(_)
            | Value::Dict(_)
            | Value::Str(_)
            | Value::Tuple(_)
            | Value::Set(_)
            | Value::Range(_)
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Slice(_) => {
                if self.absorbs_method(base, &args) {
                    return Ok(Value::Poison);
                }
                self.call_builtin_method(base, name, args)
            }
            Value::Iterator(iterator) => self.iterator_method(iterator, name, args),
            Value::Super(sup) if name == sym::init => {
                let bases = self.mro_after(sup);
                self.init_of(&bases, &sup.receiver, args)
            }
            // `Base.__init__(self, ...)`
            Value::Class(class)
                if name == sym::init
                    && let [this @ Value::Instance(instance), ..] = &args.positional[..]
                    && instance.class.order().any(|base| Rc::ptr_eq(base, class)) =>
            {
                let (bases, this): (Vec<_>, _) = (class.order().cloned().collect(), this.clone());
                let mut args = args;
                args.positional.remove(0);
                self.init_of(&bases, &this, args)
            }
            Value::Super(sup) => {
                let function = self.super_lookup(sup, name);
                match function {
                    Some(function) => self.call_with(&function, sup.receiver.clone(), args),
                    None if name == sym::post_init => Ok(Value::None),
                    // Default behaviour of `object`.
                    None if name == sym::init_subclass => super::stdlib::object_init_subclass(self, args),
                    None if name == sym::setattr => {
                        let mut args = args;
                        args.positional.insert(0, sup.receiver.clone());
                        super::stdlib::object_setattr(self, args)
                    }
                    None => {
                        let text = format!("no base class of {} has `{}`", sup.class.name, self.name(name));
                        Err(Raise::at("no-attribute", text, args.span, "here"))
                    }
                }
            }
            _ => {
                if let Value::Kernel(_) = base {
                    let text = self.name(name);
                    if let Some(result) = self.dialect.method(self, base, &text, &args)? {
                        return Ok(result);
                    }
                }
                let function = self.get_attr(base, name, args.span)?;
                self.call(&function, args)
            }
        }
    }

    pub(crate) fn super_lookup(&self, sup: &Super, name: Symbol) -> Option<Value> {
        self.mro_after(sup).iter().find_map(|c| c.attrs.borrow().get(name).cloned())
    }

    /// The classes after `sup.class` in the receiver's resolution order.
    pub(crate) fn mro_after(&self, sup: &Super) -> Vec<Rc<Class>> {
        let start = match &sup.receiver {
            Value::Instance(instance) => instance.class.clone(),
            Value::Class(class) => class.clone(),
            _ => sup.class.clone(),
        };
        let mro = start.mro.get().cloned().unwrap_or_default();
        let at = mro.iter().position(|c| Rc::ptr_eq(c, &sup.class)).map_or(0, |i| i + 1);
        mro[at..].to_vec()
    }

    /// Creates a function value: evaluates the defaults and captures cells.
    pub(crate) fn make_function(&mut self, frame: &Frame<'_>, def: &Rc<FuncDef>) -> EvalResult<Value> {
        let mut defaults = Vec::with_capacity(def.params.len());
        for param in &def.params {
            defaults.push(match &param.default {
                Some(expr) => self.eval(frame, expr)?,
                None => Value::Unset,
            });
        }
        let captures = self.capture(frame, &def.scope);
        Ok(Value::Function(Rc::new(Function {
            def: def.clone(),
            defaults: defaults.into(),
            captures,
            module: frame.module.clone(),
            class: RefCell::new(None),
            context: false,
            wrapped: RefCell::new(None),
            attrs: RefCell::default(),
            live: None,
        })))
    }

    /// The cells that a nested scope captures.
    pub(crate) fn capture(&self, frame: &Frame<'_>, scope: &Scope) -> Rc<[Value]> {
        let cell = |capture: &Capture| match capture {
            Capture::Slot(slot) => self.stack[frame.base + *slot as usize].clone(),
            Capture::Free(index) => frame.captures[*index as usize].clone(),
        };
        scope.captures.iter().map(cell).collect()
    }

    /// Calls a function.
    pub(crate) fn call_function(
        &mut self,
        function: &Rc<Function>,
        receiver: Option<Value>,
        args: CallArgs,
    ) -> EvalResult<Value> {
        let def = &*function.def;
        let span = args.span;
        self.step(span)?;
        self.check_depth(def.name, span)?;
        if def.is_async {
            let what = Unsupported { construct: "an async function", instead: "define it with plain `def`" };
            return Err(super::exec::unsupported(what, def.name_span));
        }
        self.check_strictly(Construct::Function(function));
        let base = self.stack.len();
        self.stack.resize(base + def.scope.slots as usize, Value::Unset);
        let simple = args.keyword.is_empty()
            && args.positional.len() + usize::from(receiver.is_some()) == def.positional
            && def.positional == def.params.len();
        if simple {
            let values = receiver.into_iter().chain(args.positional);
            for (slot, value) in self.stack[base..].iter_mut().zip(values) {
                *slot = value;
            }
        } else if let Err(raise) = self.bind_arguments(function, base, receiver, args) {
            self.stack.truncate(base);
            return Err(raise);
        }
        self.make_cells(base, &def.scope);
        if def.is_generator {
            return self.make_generator(function, base, span);
        }
        let step_depth = self.steps.len();
        if self.in_kernel && !self.calls.is_empty() {
            self.steps.push((PendingStep::Call { function: def.name, span }, None));
        }
        self.calls.push((def.name, span));
        let frame = Frame {
            base,
            captures: &function.captures,
            module: &function.module,
            function: Some(function),
            names: &def.scope.names,
        };
        let outer = std::mem::replace(&mut self.dialect, function.module.dialect.get());
        let result = self.exec_block(&frame, &def.body);
        self.dialect = outer;
        self.calls.pop();
        self.stack.truncate(base);
        self.pop_steps(step_depth);
        match result {
            Ok(Flow::Return(value)) => Ok(value),
            Ok(_) => Ok(Value::None),
            Err(mut raise) => {
                if raise.frames.len() < 64 {
                    raise.frames.push((self.name(def.name).to_string(), span));
                }
                Err(raise)
            }
        }
    }

    /// Rejects a call of this function that is nested too deeply.
    pub(crate) fn check_depth(&mut self, function: Symbol, span: Span) -> EvalResult<()> {
        if self.calls.len() < MAX_CALLS && self.stack_used() <= MAX_STACK {
            return Ok(());
        }
        let message = format!("`{}` is called more than {MAX_CALLS} levels deep", self.name(function));
        let mut raise = Raise::at("recursion-limit", message, span, "this call is one too many")
            .help("recursion must end at specialisation: use a loop, or give it a condition that ends it");
        raise.fatal = true;
        Err(raise)
    }

    /// Rejects iterators over iterators that are nested too deeply.
    pub(crate) fn check_stack(&mut self, span: Span) -> EvalResult<()> {
        if self.stack_used() <= MAX_STACK {
            return Ok(());
        }
        let mut raise =
            Raise::at("recursion-limit", "iterators are nested too deeply", span, "an item is requested here")
                .help("convert an intermediate iterator to a list with list()");
        raise.fatal = true;
        Err(raise)
    }

    fn bind_arguments(
        &mut self,
        function: &Rc<Function>,
        base: usize,
        receiver: Option<Value>,
        args: CallArgs,
    ) -> EvalResult<()> {
        let def = &*function.def;
        let span = args.span;
        let given = args.positional.len() + usize::from(receiver.is_some());
        let mut rest: Vec<Value> = Vec::new();
        for (index, value) in receiver.into_iter().chain(args.positional).enumerate() {
            if index < def.positional {
                self.stack[base + index] = value;
            } else {
                rest.push(value);
            }
        }
        if !rest.is_empty() && !def.has_star {
            return Err(self.bad_call(
                function,
                format!(
                    "takes {} but {given} {} given",
                    count(def.positional, "positional argument"),
                    if given == 1 { "was" } else { "were" }
                ),
                span,
            ));
        }
        let named = def.params.len() - usize::from(def.has_star) - usize::from(def.has_double_star);
        let mut extra: SmallVec<[(Symbol, Value); 4]> = SmallVec::new();
        for (name, value) in args.keyword {
            let index = def.params[..named].iter().position(|p| p.name == name && p.kind != ParamKind::PositionalOnly);
            match index {
                Some(index) if matches!(self.stack[base + index], Value::Unset) => self.stack[base + index] = value,
                Some(_) => {
                    let text = format!("got `{}` by position and by name", self.name(name));
                    return Err(self.bad_call(function, text, span));
                }
                None if def.has_double_star => extra.push((name, value)),
                None => {
                    let text = self.name(name);
                    let names: Vec<Rc<str>> = def.params[..named].iter().map(|p| self.name(p.name)).collect();
                    let mut raise = self.bad_call(function, format!("has no parameter `{text}`"), span);
                    if let Some(near) = nearest(&text, names.iter().map(|n| &**n)) {
                        raise = raise.help(format!("did you mean `{near}`?"));
                    }
                    return Err(raise);
                }
            }
        }
        let mut missing = Vec::new();
        for index in 0..named {
            if matches!(self.stack[base + index], Value::Unset) {
                match &function.defaults[index] {
                    Value::Unset => missing.push(format!("`{}`", self.name(def.params[index].name))),
                    value => self.stack[base + index] = value.clone(),
                }
            }
        }
        if !missing.is_empty() {
            let text = format!(
                "is missing {} {}",
                if missing.len() == 1 { "argument" } else { "arguments" },
                missing.join(", ")
            );
            return Err(self.bad_call(function, text, span));
        }
        if def.has_star {
            self.stack[base + named] = Value::tuple(rest);
        }
        if def.has_double_star {
            let mut dict = Dict::default();
            for (name, value) in extra {
                dict.set_str(&self.name(name), value);
            }
            self.stack[base + def.params.len() - 1] = Value::dict(dict);
        }
        Ok(())
    }

    fn bad_call(&self, function: &Function, text: String, span: Span) -> Box<Raise> {
        let name = self.name(function.def.name);
        Raise::new(
            Diagnostic::error("arguments", format!("{name}() {text}"))
                .at(span, "in this call")
                .with(function.def.name_span, format!("{name}{}", self.signature(&function.def))),
        )
    }

    /// The signature as written in the source: `(a, b=1, *, c)`.
    pub(crate) fn signature(&self, def: &FuncDef) -> String {
        let mut parts = Vec::new();
        let mut keyword_only = def.has_star;
        let star = def.params.iter().find(|p| p.kind == ParamKind::Star);
        for param in &def.params {
            match param.kind {
                ParamKind::Star => continue,
                ParamKind::KeywordOnly if !keyword_only => {
                    keyword_only = true;
                    parts.push("*".to_owned());
                }
                ParamKind::KeywordOnly if parts.iter().all(|p| !p.starts_with('*')) => {
                    parts.extend(star.map(|s| format!("*{}", self.name(s.name))));
                }
                _ => {}
            }
            let prefix = if param.kind == ParamKind::DoubleStar { "**" } else { "" };
            let default = param.default.as_ref().map(|d| format!("={}", self.source_text(d.span))).unwrap_or_default();
            parts.push(format!("{prefix}{}{default}", self.name(param.name)));
        }
        if let Some(star) = star
            && parts.iter().all(|p| !p.starts_with('*') || p.starts_with("**"))
        {
            parts.push(format!("*{}", self.name(star.name)));
        }
        format!("({})", parts.join(", "))
    }

    /// The source text of a span.
    pub(crate) fn source_text(&self, span: Span) -> String {
        self.sources
            .text(span.file)
            .and_then(|t| t.get(span.start as usize..span.end as usize))
            .unwrap_or("")
            .to_owned()
    }
}
