//! Values of a live host: see [`crate::host`].

mod class;

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use rustc_hash::FxHashMap;

use super::Interp;
use super::cached::Cached;
use super::error::{EvalResult, Raise};
use super::language::Dialect;
use super::native::CallArgs;
use super::stdlib::array::{self, Array, host_array};
use super::stdlib::dtype;
use super::value::{Host as HostValue, *};
use crate::host::*;
use crate::syntax::parse::parse;
use crate::syntax::{resolve, *};

/// Values taken over from the host so far.
#[derive(Default)]
pub(crate) struct Live {
    /// Functions, classes and modules.
    objects: FxHashMap<u64, Value>,
    /// Mutable values by identity.
    shared: FxHashMap<u64, Value>,
    /// By scope and file: code of one file may run with the globals of another.
    modules: FxHashMap<(u64, PathBuf), Rc<Module>>,
    files: FxHashMap<PathBuf, Option<Rc<ModuleAst>>>,
}

/// The reason why the definition of a host function is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unlocated {
    /// The source has no such function at this position.
    Absent,
    /// The source has several such functions at this position, with different code.
    Ambiguous,
}

impl Unlocated {
    fn raise(self, function: &HostFunction, span: Span) -> Box<Raise> {
        let HostFunction { name, file, line, .. } = function;
        match self {
            Unlocated::Absent => Raise::at(
                "stale-source",
                format!("`{name}` is not at {file}:{line}: the file was changed after Python loaded it"),
                span,
                "",
            )
            .help("restart Python, or reload the module"),
            Unlocated::Ambiguous => Raise::at(
                "ambiguous-lambda",
                format!("{file}:{line} has several lambdas with the same parameters, and Python does not record which of them this is"),
                span,
                "",
            )
            .help("write each lambda on a line of its own, or use Python 3.11 or later, which records columns"),
        }
    }
}

impl Interp<'_> {
    /// The value of an argument, or of another object that the host passes. Tensors become inputs
    /// called `name`, and `name.0` or `name.key` inside containers. Without a name (outside
    /// arguments), there are no tensors.
    pub(crate) fn take_over(&mut self, arg: &Arg, name: Option<&str>, span: Span) -> EvalResult<Value> {
        self.convert_arg(arg, name, span, &mut Vec::new())
    }

    /// The `compile_config` and `specialization_config` of a host kernel.
    pub(crate) fn take_config(&mut self, config: &[Arg; 2], span: Span) -> EvalResult<(Value, Value)> {
        Ok((self.take_over(&config[0], None, span)?, self.take_over(&config[1], None, span)?))
    }

    /// Forgets the identities of mutable values, so that they are created anew.
    pub(crate) fn forget_shared(&mut self) {
        self.live.shared.clear();
    }

    fn convert_args(
        &mut self,
        items: &[Arg],
        name: Option<&str>,
        span: Span,
        seen: &mut Vec<Value>,
    ) -> EvalResult<Vec<Value>> {
        let mut out = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            out.push(self.convert_member(item, name, &index.to_string(), span, seen)?);
        }
        Ok(out)
    }

    fn convert_member(
        &mut self,
        item: &Arg,
        name: Option<&str>,
        member: &str,
        span: Span,
        seen: &mut Vec<Value>,
    ) -> EvalResult<Value> {
        match name {
            Some(name) => self.convert_arg(item, Some(&format!("{name}.{member}")), span, seen),
            None => self.convert_arg(item, None, span, seen),
        }
    }

    /// `seen` has the shared values of the whole argument so far, in order.
    fn convert_arg(&mut self, arg: &Arg, name: Option<&str>, span: Span, seen: &mut Vec<Value>) -> EvalResult<Value> {
        Ok(match arg {
            Arg::None => Value::None,
            Arg::Bool(value) => Value::Bool(*value),
            Arg::Int(value) => Value::Int(*value),
            Arg::Float(value) => Value::Float(*value),
            Arg::Str(text) => Value::str(text),
            Arg::Ellipsis => Value::Ellipsis,
            Arg::Dtype(dtype) => dtype::value(*dtype),
            Arg::Tuple(items) => Value::tuple(self.convert_args(items, name, span, seen)?),
            Arg::Range([start, stop, step]) => {
                Value::Range(Rc::new(Range { start: *start, stop: *stop, step: if *step == 0 { 1 } else { *step } }))
            }
            Arg::Slice(parts) => {
                let mut part = |i: usize| self.convert_arg(&parts[i], None, span, seen);
                Value::Slice(Rc::new(Slice { start: part(0)?, stop: part(1)?, step: part(2)? }))
            }
            Arg::Array(array) => host_array(self, array),
            Arg::Scalar(array) => {
                let value = host_array(self, array);
                array::of(&value).map_or(value, Array::simple)
            }
            Arg::Tensor { shape, dtype } => match name {
                Some(name) => {
                    let loc = self.loc(span);
                    return self.backend.input(name, shape, *dtype, loc, span);
                }
                None => self.opaque(
                    "an array",
                    Some("pass arrays as arguments of the kernel: it is compiled without their contents"),
                ),
            },
            Arg::Api(path) => self.in_dialect_of(path, |interp| interp.api_value(path, span))?,
            Arg::Call { function, positional } => {
                let function = self.in_dialect_of(function, |interp| interp.api_value(function, span))?;
                let positional = self.convert_args(positional, None, span, seen)?;
                match function {
                    Value::Host(_) => function,
                    function => self.call(&function, CallArgs::of(positional, span))?,
                }
            }
            Arg::Object(id) => self.host_object(*id, span)?,
            Arg::Member { class, name } => {
                let class = self.convert_arg(class, None, span, seen)?;
                let symbol = self.sym(name);
                let member = match &class {
                    Value::Class(class) => class.lookup(symbol),
                    _ => None,
                };
                member.unwrap_or_else(|| self.opaque(name, None))
            }
            Arg::Method { receiver, function } => {
                let receiver = self.convert_arg(receiver, name, span, seen)?;
                let function = self.convert_arg(function, None, span, seen)?;
                Value::BoundMethod(Rc::new(BoundMethod { receiver, function }))
            }
            Arg::Partial { function, positional, keyword } => {
                let function = self.convert_arg(function, None, span, seen)?;
                let positional = self.convert_args(positional, None, span, seen)?;
                let mut named = Vec::with_capacity(keyword.len());
                for (key, value) in keyword {
                    let value = self.convert_arg(value, None, span, seen)?;
                    named.push((self.sym(key), value));
                }
                Value::Partial(Rc::new(Partial { function, positional, keyword: named }))
            }
            Arg::Opaque { path, reason } => self.opaque(path, reason.as_deref()),
            Arg::Again(_, index) => seen.get(*index).cloned().unwrap_or(Value::None),
            Arg::Shared(identity, inner) => return self.shared_value(*identity, inner, name, span, seen),
            // Containers from the command line have no identity.
            Arg::List(_)
            | Arg::Dict(_)
            | Arg::DefaultDict { .. }
            | Arg::Set(_)
            | Arg::FrozenSet(_)
            | Arg::Instance { .. } => {
                let value = self.empty_of(arg, span)?;
                self.fill(&value, arg, name, span, seen)?;
                value
            }
        })
    }

    fn shared_value(
        &mut self,
        identity: Identity,
        inner: &Arg,
        name: Option<&str>,
        span: Span,
        seen: &mut Vec<Value>,
    ) -> EvalResult<Value> {
        if let Some(known) = self.live.shared.get(&identity.0).cloned() {
            seen.push(known.clone());
            // The contents count for the numbering of shared values, too.
            let shadow = self.empty_of(inner, span)?;
            self.fill(&shadow, inner, name, span, seen)?;
            return Ok(known);
        }
        let value = self.empty_of(inner, span)?;
        self.live.shared.insert(identity.0, value.clone());
        seen.push(value.clone());
        self.fill(&value, inner, name, span, seen)?;
        Ok(value)
    }

    /// Creates the container without its contents, which may refer to it.
    fn empty_of(&mut self, arg: &Arg, span: Span) -> EvalResult<Value> {
        Ok(match arg {
            Arg::List(_) => Value::list(Vec::new()),
            Arg::Dict(_) | Arg::DefaultDict { .. } => Value::dict(Dict::default()),
            Arg::Set(_) | Arg::FrozenSet(_) => {
                let is_frozen = matches!(arg, Arg::FrozenSet(_));
                Value::Set(Rc::new(RefCell::new(Dict::empty_set(is_frozen))))
            }
            Arg::Instance { class, .. } => match self.convert_arg(class, None, span, &mut Vec::new())? {
                Value::Class(ref class) => Value::Instance(Rc::new(Instance {
                    class: class.clone(),
                    attrs: RefCell::new(AttrMap::default()),
                    frozen: Cell::new(false),
                })),
                Value::Host(ref host) => {
                    let path = format!("an object of {}", host.path);
                    self.opaque(&path, host.reason.as_deref())
                }
                other => self.opaque(&format!("an object of {}", other.type_name()), None),
            },
            other => self.convert_arg(other, None, span, &mut Vec::new())?,
        })
    }

    fn fill(
        &mut self,
        value: &Value,
        arg: &Arg,
        name: Option<&str>,
        span: Span,
        seen: &mut Vec<Value>,
    ) -> EvalResult<()> {
        match (value, arg) {
            (Value::List(list), Arg::List(items)) => {
                let items = self.convert_args(items, name, span, seen)?;
                *list.items.borrow_mut() = items;
            }
            (Value::Set(set), Arg::Set(items) | Arg::FrozenSet(items)) => {
                for item in self.convert_args(items, None, span, seen)? {
                    let key = self.hash_key(&item, span)?;
                    set.borrow_mut().set(key, item, Value::None);
                }
                set.borrow_mut().keep_order();
            }
            (Value::Dict(dict), Arg::Dict(entries) | Arg::DefaultDict { entries, .. }) => {
                if let Arg::DefaultDict { factory, .. } = arg {
                    let factory = self.convert_arg(factory, None, span, seen)?;
                    dict.borrow_mut().factory = Some(factory);
                }
                for (key, item) in entries {
                    let key = self.convert_arg(key, None, span, seen)?;
                    let label = self.str(&key)?;
                    let item = self.convert_member(item, name, &label, span, seen)?;
                    let hashed = self.hash_key(&key, span)?;
                    dict.borrow_mut().set(hashed, key, item);
                }
            }
            (Value::Instance(instance), Arg::Instance { fields, .. }) => {
                for (key, item) in fields {
                    let item = self.convert_member(item, name, key, span, seen)?;
                    let symbol = self.sym(key);
                    instance.attrs.borrow_mut().set(symbol, item);
                }
                instance.frozen.set(instance.class.is_frozen());
            }
            _ => {}
        }
        Ok(())
    }

    /// A value that has no meaning in kernels.
    pub(crate) fn opaque(&self, path: &str, reason: Option<&str>) -> Value {
        Value::Host(Rc::new(HostValue { path: path.to_owned(), reason: reason.map(str::to_owned), span: None }))
    }

    /// The simulator's object with this dotted name.
    fn api_value(&mut self, path: &str, span: Span) -> EvalResult<Value> {
        if let Some(name) = path.strip_prefix("builtins.") {
            self.sym(name);
            return Ok(self.builtin(name).unwrap_or_else(|| self.opaque(name, None)));
        }
        let mut parts = path.split('.');
        let root = parts.next().unwrap_or(path);
        if !self.is_native(root) {
            return Ok(self.opaque(path, None));
        }
        let (mut value, mut known) = (self.native_module(root), root.to_owned());
        for part in parts {
            known = format!("{known}.{part}");
            if self.is_native(&known) {
                value = self.native_module(&known);
                continue;
            }
            let name = self.sym(part);
            value = match self.find_attr(&value, name, span)? {
                Some(value) => value,
                None => return Ok(self.opaque(path, None)),
            };
        }
        Ok(value)
    }

    fn host_object(&mut self, id: u64, span: Span) -> EvalResult<Value> {
        if let Some(known) = self.live.objects.get(&id) {
            return Ok(known.clone());
        }
        let Some(host) = self.host else { return Ok(Value::None) };
        match host.describe(id) {
            HostObject::Function(function) => self.host_function(id, &function, span),
            HostObject::Class(class) => self.host_class(id, &class, span),
            HostObject::Cached { function, limit, typed } => {
                let function = self.take_over(&function, None, span)?;
                // A function that captures itself through its cached version has been registered
                // already.
                let made = || Cached::of(function, limit, typed);
                Ok(self.live.objects.entry(id).or_insert_with(made).clone())
            }
            HostObject::Module { name, file, scope } => {
                let module = Value::Module(self.host_module(scope, Path::new(&file), &name));
                self.live.objects.insert(id, module.clone());
                Ok(module)
            }
            HostObject::Opaque { path, reason } => Ok(self.opaque(&path, reason.as_deref())),
        }
    }

    /// The dialect of a host module that does not import a dialect's package itself.
    fn dialect_of_scope(&self, scope: u64) -> &'static dyn Dialect {
        let modules = self.host.map(|host| host.modules(scope)).unwrap_or_default();
        let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
        self.dialect_by(&modules)
    }

    /// A module without contents: names are looked up in the host on use.
    fn host_module(&mut self, scope: u64, file: &Path, name: &str) -> Rc<Module> {
        let ast = self.live.files.get(file).cloned().flatten();
        let dialect = ast
            .as_ref()
            .map_or(self.dialect, |ast| self.dialect_of(ast).unwrap_or_else(|| self.dialect_of_scope(scope)));
        let symbols = ast.map(|ast| ast.globals.clone()).unwrap_or_default();
        if let Some(known) = self.live.modules.get(&(scope, file.to_path_buf())) {
            if known.symbols.borrow().len() < symbols.len() {
                // The module was imported before any of its functions was used, so its file is read
                // only now.
                *known.globals.borrow_mut() = vec![Value::Unset; symbols.len()];
                *known.index.borrow_mut() = symbols.iter().enumerate().map(|(i, s)| (*s, i as u32)).collect();
                *known.symbols.borrow_mut() = symbols;
                known.dialect.set(dialect);
            }
            return known.clone();
        }
        let module = Rc::new(Module {
            name: name.to_owned(),
            path: file.to_path_buf(),
            globals: RefCell::new(vec![Value::Unset; symbols.len()]),
            index: RefCell::new(symbols.iter().enumerate().map(|(i, s)| (*s, i as u32)).collect()),
            symbols: RefCell::new(symbols),
            live: Some(scope),
            dialect: Cell::new(dialect),
            unnamed: Cell::new(false),
            stars: RefCell::default(),
            guesses: RefCell::default(),
        });
        self.live.modules.insert((scope, file.to_path_buf()), module.clone());
        module
    }

    /// The syntax tree of a host file; `None` if its text is not available.
    fn host_file(&mut self, file: &Path) -> Option<Rc<ModuleAst>> {
        if let Some(known) = self.live.files.get(file) {
            return known.clone();
        }
        match self.host.and_then(|h| h.source(&file.to_string_lossy())) {
            Some(text) => {
                let (ast, errors) = self.take_file(file, &text);
                self.diagnostics.extend(errors);
                Some(ast)
            }
            None => {
                self.live.files.insert(file.to_path_buf(), None);
                None
            }
        }
    }

    /// Takes over a host file: its syntax tree and its errors.
    pub(crate) fn take_file(&mut self, file: &Path, text: &str) -> (Rc<ModuleAst>, Vec<Diagnostic>) {
        let id = self.sources.add(file.to_string_lossy(), text);
        let (mut ast, errors) = parse(id, text, &mut self.names);
        resolve::resolve(&mut ast);
        let ast = Rc::new(ast);
        self.live.files.insert(file.to_path_buf(), Some(ast.clone()));
        (ast, errors)
    }

    /// The syntax tree of a file taken over earlier.
    pub(crate) fn known_file(&self, file: &Path) -> Option<Rc<ModuleAst>> {
        self.live.files.get(file).cloned().flatten()
    }

    /// Finds the definition at a line, possibly after decorators. `body` is where the code of a
    /// lambda begins.
    ///
    /// # Errors
    /// If there is none, or several that these criteria cannot distinguish.
    pub(crate) fn find_definition(
        &self,
        ast: &ModuleAst,
        wanted: &str,
        line: u32,
        params: &[String],
        body: Option<(u32, u32)>,
    ) -> Result<Rc<FuncDef>, Unlocated> {
        let found = ast.functions.iter().filter(|def| {
            let name = if def.name == sym::lambda { "<lambda>" } else { &**self.names.name(def.name) };
            let first = def.decorators.first().map_or(def.name_span, |d| d.span);
            name == wanted
                && [first, def.name_span].iter().any(|s| self.sources.line_col(*s).0 == line)
                && def.params.len() == params.len()
                && def.params.iter().all(|p| params.iter().any(|n| **n == **self.names.name(p.name)))
        });
        let found: Vec<&Rc<FuncDef>> = found.collect();
        let Some((&first, others)) = found.split_first() else { return Err(Unlocated::Absent) };
        if others.is_empty() {
            return Ok(first.clone());
        }
        let offset = body.and_then(|(line, column)| self.sources.offset(first.name_span.file, line, column));
        let holds = |def: &FuncDef| {
            let span = def.body.first().map(|s| s.span);
            span.zip(offset).is_some_and(|(span, at)| (span.start..span.end).contains(&at))
        };
        // Lambdas may be nested: the innermost begins last.
        let innermost = found.iter().filter(|def| holds(def)).max_by_key(|def| def.name_span.start);
        match innermost {
            Some(&def) => Ok(def.clone()),
            None if others.iter().all(|other| self.is_same_lambda(first, other)) => Ok(first.clone()),
            None => Err(Unlocated::Ambiguous),
        }
    }

    /// Whether two definitions are lambdas that compute the same function of the same variables.
    /// The values of defaults and captured variables come from the host.
    fn is_same_lambda(&self, a: &FuncDef, b: &FuncDef) -> bool {
        a.name == sym::lambda
            && a.scope.captured == b.scope.captured
            && self.source_text(a.name_span) == self.source_text(b.name_span)
    }

    fn host_function(&mut self, id: u64, function: &HostFunction, span: Span) -> EvalResult<Value> {
        let file = Path::new(&function.file);
        let Some(ast) = self.host_file(file) else {
            let mut reason = format!("its source is not available ({})", function.file);
            if function.file.starts_with('<') {
                reason += ": define it in a file, or register the text that exec() gets in linecache";
            }
            return Ok(self.opaque(&function.name, Some(&reason)));
        };
        let HostFunction { name, line, params, body, .. } = function;
        let def = self.find_definition(&ast, name, *line, params, *body).map_err(|why| why.raise(function, span))?;
        let module = self.host_module(function.scope, file, "");
        // API names among the defaults are resolved in the function's language.
        let outer = std::mem::replace(&mut self.dialect, module.dialect.get());
        let defaults = self.host_defaults(function, &def, span);
        self.dialect = outer;
        let defaults = defaults?;
        let cells: Vec<Rc<RefCell<Value>>> =
            def.scope.captured.iter().map(|_| Rc::new(RefCell::new(Value::Unset))).collect();
        let made = Value::Function(Rc::new(Function {
            def: def.clone(),
            defaults: defaults.into(),
            captures: cells.iter().map(|c| Value::Cell(c.clone())).collect(),
            module,
            class: RefCell::new(None),
            context: false,
            wrapped: RefCell::new(None),
            attrs: RefCell::default(),
            live: Some(id),
        }));
        let made = match &function.kernel {
            Some(config) => {
                let (compile_config, specialization_config) = self.take_config(config, span)?;
                Value::Kernel(Rc::new(Kernel {
                    function: made,
                    schedule: Rc::default(),
                    target: None,
                    as_written: false,
                    compile_config,
                    specialization_config,
                    has_grid: function.has_grid,
                }))
            }
            None => made,
        };
        // Registered before its captured variables: a recursive closure captures itself.
        self.live.objects.insert(id, made.clone());
        for (name, cell) in def.scope.captured.iter().zip(cells) {
            let name = self.name(*name);
            if let Some((_, Some(arg))) = function.closure.iter().find(|(n, _)| **n == *name) {
                let value = self.take_over(arg, None, span)?;
                *cell.borrow_mut() = value;
            }
        }
        Ok(made)
    }

    /// The defaults of a function's parameters.
    fn host_defaults(&mut self, function: &HostFunction, def: &FuncDef, span: Span) -> EvalResult<Vec<Value>> {
        let default = |param: &Param| {
            let name = self.name(param.name);
            match function.defaults.iter().find(|(n, _)| **n == *name) {
                Some((_, arg)) => self.take_over(arg, None, span),
                None => Ok(Value::Unset),
            }
        };
        def.params.iter().map(default).collect()
    }

    /// A global of a host module; `None` if it is not a host module or has no such name.
    pub(crate) fn host_global(&mut self, module: &Module, name: Symbol, span: Span) -> EvalResult<Option<Value>> {
        let (Some(scope), Some(host)) = (module.live, self.host) else { return Ok(None) };
        let text = self.name(name);
        let value = match host.global(scope, &text) {
            Some(arg) => Some(self.take_over(&arg, None, span)?),
            None => self.builtin(&text),
        };
        if let Some(value) = &value {
            let index = module.index.borrow().get(&name).copied();
            if let Some(index) = index {
                module.globals.borrow_mut()[index as usize] = value.clone();
            }
        }
        Ok(value)
    }

    /// An attribute that a function has in the host: one set by a decorator, or its assigned name.
    pub(crate) fn host_attr(&mut self, function: &Function, name: Symbol, span: Span) -> EvalResult<Option<Value>> {
        let (Some(id), Some(host)) = (function.live, self.host) else { return Ok(None) };
        let text = self.name(name);
        let special = matches!(name, sym::name | sym::qualname | sym::doc | sym::module | sym::wrapped);
        if text.starts_with("__") && !special || function.attrs.borrow().get(name).is_some() {
            return Ok(None);
        }
        host.global(id, &text).map(|arg| self.take_over(&arg, None, span)).transpose()
    }

    /// `import path` in code of the host.
    pub(crate) fn host_import(&mut self, module: &Module, path: &str, span: Span) -> EvalResult<Option<Value>> {
        let (Some(scope), Some(host)) = (module.live, self.host) else { return Ok(None) };
        match host.import(scope, path) {
            Some(arg) => self.take_over(&arg, None, span).map(Some),
            None => Ok(Some(self.opaque(path, Some("it could not be imported")))),
        }
    }
}
