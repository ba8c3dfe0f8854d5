//! Imports of the simulator's own modules, neighbouring files, and host modules.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nki_diag::Span;
use rustc_hash::FxHashMap;

use super::error::{EvalResult, Raise};
use super::exec::Flow;
use super::expr::nearest;
use super::language::Dialect;
use super::native::Native;
use super::value::*;
use super::{Frame, Interp, stdlib};
use crate::syntax::parse::parse;
use crate::syntax::{resolve, *};

/// Modules that are never searched for in neighbouring files.
const HOST: &[&str] = &[
    "torch",
    "torch_xla",
    "torch_neuronx",
    "jax",
    "jax_neuronx",
    "os",
    "sys",
    "re",
    "time",
    "random",
    "json",
    "pathlib",
    "logging",
    "warnings",
    "pytest",
    "neuronx_distributed",
    "argparse",
    "subprocess",
    "inspect",
    "unittest",
    "scipy",
    "pandas",
    "tqdm",
    "einops",
    "klr",
];

impl Interp<'_> {
    /// Whether the simulator provides a module with this dotted name.
    pub(crate) fn is_native(&self, path: &str) -> bool {
        stdlib::MODULES.contains(&path) || self.dialect.has_module(path)
    }

    /// A module of the standard library or of the current dialect, or a package of modules.
    pub(crate) fn native_module(&mut self, path: &str) -> Value {
        let library = stdlib::MODULES.contains(&path);
        let dialect = (!library && self.dialect.has_module(path)).then_some(self.dialect);
        let same = |module: &NativeModule| {
            module.path == path && module.dialect.map(Dialect::name) == dialect.map(Dialect::name)
        };
        if let Some(module) = self.native_modules.iter().find(|m| same(m)) {
            return Value::NativeModule(module.clone());
        }
        let attrs = RefCell::new(AttrMap::default());
        let module = Rc::new(NativeModule { path: path.to_owned(), dialect, attrs });
        self.native_modules.push(module.clone());
        Value::NativeModule(module)
    }

    /// The first lookup of an attribute of a native module.
    pub(crate) fn native_attr(&mut self, module: &NativeModule, name: Symbol, span: Span) -> Option<Value> {
        let (path, text) = (&*module.path, self.name(name));
        if stdlib::MODULES.contains(&path) {
            return stdlib::attr(self, path, &text, span);
        }
        let dialect = module.dialect?;
        let child = format!("{path}.{text}");
        if dialect.has_module(&child) {
            return Some(self.native_module(&child));
        }
        dialect.attribute(self, path, &text, span)
    }

    /// Whether a function belongs to the dialect rather than to Python.
    pub(crate) fn is_of_dialect(&self, native: &Native) -> bool {
        let package = native.name.split_once('.').map(|(package, _)| package);
        package.is_some_and(|package| self.dialect.packages().contains(&package))
    }

    /// `module.name` where the module has no such global: a submodule, or `None`.
    pub(crate) fn submodule(&mut self, module: &Rc<Module>, name: Symbol, span: Span) -> EvalResult<Option<Value>> {
        if module.live.is_some() {
            return self.host_global(module, name, span);
        }
        let text = self.name(name);
        match &*text {
            "__name__" => return Ok(Some(Value::str(&module.name))),
            "__file__" => return Ok(Some(Value::str(module.path.to_string_lossy()))),
            _ => {}
        }
        if module.path.file_name().is_some_and(|f| f == "__init__.py")
            && let Some(dir) = module.path.parent()
            && let Some(found) = self.load_in(dir, &text)?
        {
            return Ok(Some(found));
        }
        let stars = module.stars.borrow().clone();
        for from in stars.iter().rev().filter(|_| !text.starts_with('_')) {
            if let Some(found) = self.find_attr(from, name, span)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// `import path [as ...]`
    pub(crate) fn import_module(
        &mut self,
        frame: &Frame<'_>,
        path: &str,
        whole: bool,
        span: Span,
    ) -> EvalResult<Value> {
        let root = path.split('.').next().unwrap_or(path);
        if whole {
            return self.find_module(frame, path, span);
        }
        if frame.module.live.is_some() {
            self.find_module(frame, path, span)?;
            return self.find_module(frame, root, span);
        }
        if self.is_native(root) || !path.contains('.') || HOST.contains(&root) {
            // Submodules are found on first use.
            return self.find_module(frame, root, span);
        }
        // `import a.b.c` binds `a`: create a chain of namespaces that leads to the module.
        let mut value = self.find_module(frame, path, span)?;
        // A package with an `__init__.py` finds its submodules itself.
        if let package @ Value::Module(_) = self.find_module(frame, root, span)? {
            return Ok(package);
        }
        let parts: Vec<&str> = path.split('.').collect();
        for depth in (1..parts.len()).rev() {
            let outer = self.native_module(&format!("package {}", parts[..depth].join(".")));
            let name = self.sym(parts[depth]);
            if let Value::NativeModule(module) = &outer {
                module.attrs.borrow_mut().set(name, value);
            }
            value = outer;
        }
        Ok(value)
    }

    /// The module with a dotted name; unknown ones are host modules.
    fn find_module(&mut self, frame: &Frame<'_>, path: &str, span: Span) -> EvalResult<Value> {
        let root = path.split('.').next().unwrap_or(path);
        if self.is_native(path) {
            return Ok(self.native_module(path));
        }
        if let Some(found) = self.host_import(frame.module, path, span)? {
            return Ok(found);
        }
        if self.dialect.packages().contains(&root) {
            let reason = format!("there is no module `{path}` in the simulator");
            return Ok(Value::Host(Rc::new(Host { path: path.to_owned(), reason: Some(reason), span: Some(span) })));
        }
        if !HOST.contains(&root) {
            let mut dir = frame.module.path.parent().map(Path::to_path_buf);
            // Search the directory of the file, then its ancestors, as if a package root were on
            // Python's path.
            for _ in 0..8 {
                let Some(at) = dir else { break };
                if let Some(found) = self.load_in(&at, path)? {
                    return Ok(found);
                }
                dir = at.parent().map(Path::to_path_buf);
            }
        }
        self.assume_import(root, span);
        let reason = (!HOST.contains(&root)).then(|| {
            format!(
                "no file of module `{path}` is next to this file or in a folder above it; with Python as the frontend, installed packages are found too"
            )
        });
        Ok(Value::Host(Rc::new(Host { path: path.to_owned(), reason, span: Some(span) })))
    }

    /// Loads `dotted` from a directory: `a/b.py` or `a/b/__init__.py`.
    fn load_in(&mut self, dir: &Path, dotted: &str) -> EvalResult<Option<Value>> {
        let mut file = dir.to_path_buf();
        file.extend(dotted.split('.'));
        let package = file.join("__init__.py");
        file.set_extension("py");
        for path in [file, package] {
            if let Some(module) = self.load_file(&path, dotted)? {
                return Ok(Some(Value::Module(module)));
            }
        }
        Ok(None)
    }

    /// Loads and runs a file once. `None` if it cannot be read.
    pub(crate) fn load_file(&mut self, path: &Path, name: &str) -> EvalResult<Option<Rc<Module>>> {
        if let Some((_, module)) = self.modules.iter().find(|(p, _)| p == path) {
            return Ok(module.clone());
        }
        let Ok(text) = self.loader.read(path) else {
            self.modules.push((path.to_path_buf(), None));
            return Ok(None);
        };
        self.load_text(path, name, &text, &[]).map(Some)
    }

    /// Runs a source text as a module in which these names are bound.
    pub(crate) fn load_text(
        &mut self,
        path: &Path,
        name: &str,
        text: &str,
        bound: &[(&str, Value)],
    ) -> EvalResult<Rc<Module>> {
        let file = self.sources.add(path.to_string_lossy(), text);
        let (mut ast, errors) = parse(file, text, &mut self.names);
        self.diagnostics.extend(errors);
        let named = self.dialect_of(&ast);
        resolve::resolve(&mut ast);
        let mut globals = Vec::with_capacity(ast.globals.len());
        let mut index = FxHashMap::default();
        for (i, symbol) in ast.globals.iter().enumerate() {
            let text = self.name(*symbol);
            let value = match *symbol {
                sym::name => Value::str(name),
                sym::file => Value::str(path.to_string_lossy()),
                _ => match bound.iter().find(|(name, _)| *name == &*text) {
                    Some((_, value)) => value.clone(),
                    None => self.builtin(&text).unwrap_or(Value::Unset),
                },
            };
            globals.push(value);
            index.insert(*symbol, i as u32);
        }
        let module = Rc::new(Module {
            name: name.to_owned(),
            path: path.to_path_buf(),
            globals: RefCell::new(globals),
            index: RefCell::new(index),
            symbols: RefCell::new(ast.globals.clone()),
            live: None,
            dialect: Cell::new(named.unwrap_or_else(|| self.dialect_by(&[]))),
            unnamed: Cell::new(named.is_none()),
            stars: RefCell::default(),
            guesses: RefCell::default(),
        });
        // Registered before it runs, so that circular imports terminate.
        self.modules.push((path.to_path_buf(), Some(module.clone())));
        self.run_module(&module, &ast)?;
        Ok(module)
    }

    fn run_module(&mut self, module: &Rc<Module>, ast: &ModuleAst) -> EvalResult<()> {
        if self.stack_used() > super::STACK / 2 {
            return Err(Raise::at("recursion-limit", "imports are nested too deeply", Span::default(), "here"));
        }
        let outer = std::mem::replace(&mut self.in_kernel, false);
        let guessed = self.guessed.take();
        let dialect = std::mem::replace(&mut self.dialect, module.dialect.get());
        self.loading.push(module.clone());
        // The kernel may need only a part of an imported module: a failure matters only where its
        // result is used.
        let lenient = self.modules.len() > 1;
        let base = self.stack.len();
        self.stack.resize(base + ast.scope.slots as usize, Value::Unset);
        self.make_cells(base, &ast.scope);
        let frame = Frame { base, captures: &[], module, function: None, names: &ast.scope.names };
        let mut result = Ok(());
        for stmt in &ast.body {
            let (depth, trail) = (self.stack.len(), self.steps.len());
            let flow = self.exec(&frame, stmt);
            self.mark_guessed(module, stmt);
            match flow {
                Ok(Flow::Next) => {}
                Ok(_) => {
                    result = Err(Raise::at(
                        "syntax-error",
                        "`return`, `break` or `continue` outside a function or loop",
                        stmt.span,
                        "here",
                    ));
                    break;
                }
                // A failure of host-only code is harmless unless a kernel uses a name that it
                // should have defined.
                Err(raise)
                    if !raise.fatal
                        && raise.diagnostic.id != "import-cycle"
                        && (lenient || matches!(raise.diagnostic.id, "unsupported-syntax" | "host-value")) =>
                {
                    self.stack.truncate(depth);
                    self.pop_steps(trail);
                    let mut names = Vec::new();
                    resolve::bound_names(stmt, &mut names);
                    for name in names {
                        let index = module.index.borrow().get(&name).copied();
                        if let Some(index) = index {
                            let reason = format!(
                                "it is not set, because the statement that sets it could not be run: {}",
                                raise.diagnostic.message
                            );
                            let host =
                                Host { path: self.name(name).to_string(), reason: Some(reason), span: Some(stmt.span) };
                            module.globals.borrow_mut()[index as usize] = Value::Host(Rc::new(host));
                        }
                    }
                }
                Err(raise) => {
                    result = Err(raise);
                    break;
                }
            }
        }
        self.stack.truncate(base);
        self.in_kernel = outer;
        self.guessed = guessed;
        self.dialect = dialect;
        self.loading.pop();
        result
    }

    /// `from ... import ...`
    pub(crate) fn import_from(&mut self, frame: &Frame<'_>, import: &ImportFrom, span: Span) -> EvalResult<()> {
        if import.path == "__future__" {
            return Ok(());
        }
        if import.level > 0 && frame.module.live.is_some() {
            let path = format!("{}{}", ".".repeat(import.level as usize), import.path);
            let module = self.host_import(frame.module, &path, span)?;
            return self.import_names(frame, import, module, None, span);
        }
        if import.level > 0 {
            let mut dir = frame.module.path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
            for _ in 1..import.level {
                dir = match dir.parent() {
                    Some(parent) if dir != Path::new("..") && !dir.ends_with("..") => parent.to_path_buf(),
                    _ => dir.join(".."),
                };
            }
            let module = if import.path.is_empty() {
                self.load_file(&dir.join("__init__.py"), "__init__")?.map(Value::Module)
            } else {
                self.load_in(&dir, &import.path)?
            };
            let folder = if import.path.is_empty() { dir } else { dir.join(import.path.replace('.', "/")) };
            return self.import_names(frame, import, module, Some(&folder), span);
        }
        let module = self.find_module(frame, &import.path, span)?;
        let folder = match &module {
            Value::Module(module) => module.path.parent().map(Path::to_path_buf),
            _ => None,
        };
        self.import_names(frame, import, Some(module), folder.as_deref(), span)
    }

    fn import_names(
        &mut self,
        frame: &Frame<'_>,
        import: &ImportFrom,
        module: Option<Value>,
        folder: Option<&Path>,
        span: Span,
    ) -> EvalResult<()> {
        if import.star
            && let Some(module) = &module
        {
            self.import_star(frame, module, span)?;
        }
        for (name, bind) in &import.names {
            let mut value = match &module {
                Some(module @ (Value::Module(_) | Value::NativeModule(_))) => self.find_attr(module, *name, span)?,
                _ => None,
            };
            let text = self.name(*name);
            if value.is_none()
                && let Some(folder) = folder
                && !HOST.contains(&import.path.split('.').next().unwrap_or(""))
            {
                value = self.load_in(folder, &text)?;
            }
            // A submodule that has not been imported yet.
            if value.is_none()
                && let Some(Value::Module(parent)) = &module
                && parent.live.is_some()
                && let Some(found @ Value::Module(_)) =
                    self.host_import(&parent.clone(), &format!("{}.{text}", parent.name), span)?
            {
                value = Some(found);
            }
            // A folder without `__init__.py` is not a module, but its files are.
            if value.is_none()
                && import.level == 0
                && frame.module.live.is_none()
                && matches!(module, Some(Value::Host(_)))
                && let found @ Value::Module(_) = self.find_module(frame, &format!("{}.{text}", import.path), span)?
            {
                value = Some(found);
            }
            let value = match (value, &module) {
                (Some(value), _) => value,
                (None, Some(Value::Host(host))) => self.host_part(host, format!("{}.{text}", host.path), span),
                (None, Some(Value::NativeModule(module))) if module.dialect.is_some() => {
                    let raise =
                        Raise::at("import-error", format!("`{}` has no `{text}`", module.path), bind.span, "not there");
                    return Err(match meant_in(module, &text) {
                        _ if matches!(&*text, "float64" | "double") => raise.help(stdlib::dtype::NO_FLOAT64),
                        Some(meant) => raise.help(format!("did you mean `{meant}`?")),
                        None => raise,
                    });
                }
                (None, Some(Value::NativeModule(module))) => self.host(format!("{}.{text}", module.path), span),
                (None, Some(other)) => {
                    let Value::Module(module) = other else { continue };
                    if module.path.file_name().is_some_and(|f| f == "__init__.py") {
                        // A package may contain modules that are not Python source.
                        let reason = format!("it could not be imported: {} has no `{text}`", module.path.display());
                        let host = Host { path: text.to_string(), reason: Some(reason), span: Some(span) };
                        self.assign(frame, bind, Value::Host(Rc::new(host)))?;
                        continue;
                    }
                    if self.loading.iter().any(|m| Rc::ptr_eq(m, module)) {
                        let message = format!(
                            "`{text}` cannot be imported from {}, which is still being imported",
                            module.path.display()
                        );
                        return Err(Raise::at("import-cycle", message, bind.span, "not there yet")
                            .help("the two files import each other: move what both need to a third one"));
                    }
                    let raise = Raise::at(
                        "import-error",
                        format!("`{}` has no `{text}`", module.path.display()),
                        bind.span,
                        "not there",
                    );
                    return Err(raise);
                }
                (None, None) => {
                    let tried = folder.map(|f| format!("{}.py", f.display())).unwrap_or_default();
                    let reason = format!("it could not be imported: there is no {tried}");
                    Value::Host(Rc::new(Host { path: text.to_string(), reason: Some(reason), span: Some(span) }))
                }
            };
            self.adopt_dialect(frame.module, &value);
            self.assign(frame, bind, value)?;
            if let Some(Value::Module(from)) = &module {
                self.copy_guess(from, *name, frame, bind);
            }
        }
        Ok(())
    }

    /// `from module import *`: of a file, all public names; of the simulator's modules, the names
    /// used here and, later, those that others use from here.
    fn import_star(&mut self, frame: &Frame<'_>, module: &Value, span: Span) -> EvalResult<()> {
        let own = Value::Module(frame.module.clone());
        if let Value::Module(source) = module {
            let listed = self.listed(source);
            if listed.is_none() {
                let stars = source.stars.borrow().clone();
                stars.iter().try_for_each(|from| self.import_star(frame, from, span))?;
            }
            let names: Vec<Symbol> = match &listed {
                Some(all) => all.iter().map(|name| self.sym(name)).collect(),
                None => source.symbols.borrow().clone(),
            };
            for name in names {
                let text = self.name(name);
                let at = source.index.borrow().get(&name).copied();
                let found = match at.map(|i| source.globals.borrow()[i as usize].clone()) {
                    Some(Value::Unset) | None if listed.is_some() => self.find_attr(module, name, span)?,
                    // A name that the file only uses refers to the built-in.
                    Some(value) if self.builtin(&text).is_some_and(|known| self.equals(&known, &value)) => None,
                    Some(Value::Unset) | None => None,
                    Some(_) if listed.is_none() && text.starts_with('_') => None,
                    value => value,
                };
                if let Some(value) = found {
                    self.adopt_dialect(frame.module, &value);
                    self.set_attr(&own, name, value, span)?;
                }
            }
            return Ok(());
        }
        if !matches!(module, Value::NativeModule(_)) {
            return Ok(());
        }
        self.adopt_dialect(frame.module, module);
        frame.module.stars.borrow_mut().push(module.clone());
        let wanted: Vec<(Symbol, bool)> = {
            let (symbols, globals) = (frame.module.symbols.borrow(), frame.module.globals.borrow());
            symbols.iter().zip(globals.iter()).map(|(name, value)| (*name, !matches!(value, Value::Unset))).collect()
        };
        for (name, bound) in wanted {
            let text = self.name(name);
            if text.starts_with('_') {
                continue;
            }
            match self.find_attr(module, name, span)? {
                // `typing` is assumed to have every name, so it does not replace names that are
                // bound.
                Some(Value::Host(_)) if bound => {}
                Some(value) => self.set_attr(&own, name, value, span)?,
                None => {}
            }
        }
        Ok(())
    }

    /// The names in the module's `__all__`, if any.
    fn listed(&mut self, module: &Module) -> Option<Vec<String>> {
        let name = self.sym("__all__");
        let at = module.index.borrow().get(&name).copied()?;
        let items = match &module.globals.borrow()[at as usize] {
            Value::List(list) => list.items.borrow().clone(),
            Value::Tuple(items) => items.to_vec(),
            _ => return None,
        };
        let text = |item: Value| if let Value::Str(s) = &item { Some(s.to_string()) } else { None };
        Some(items.into_iter().filter_map(text).collect())
    }
}

impl Interp<'_> {
    /// The dialect of a file, by its imports, including those in functions, classes and branches.
    /// The handlers of a `try` are ignored, because it is known which packages can be imported.
    /// Imports of single names from a module below a package (`from nki.language import uint8`)
    /// count only if the file imports nothing else of a dialect. `None` if it imports nothing of
    /// any dialect.
    pub(crate) fn dialect_of(&self, ast: &ModuleAst) -> Option<&'static dyn Dialect> {
        let mut imports = Imports::default();
        collect_imports(&ast.body, &mut imports);
        self.dialect_named_by(&imports.modules).or_else(|| self.dialect_named_by(&imports.of_names))
    }

    /// Resolves a dotted API name in the dialect that owns its package, whatever the dialect of the
    /// running code.
    pub(crate) fn in_dialect_of<T>(&mut self, path: &str, resolve: impl FnOnce(&mut Self) -> T) -> T {
        let Some(owner) = self.dialect_named_by(&[path]) else { return resolve(self) };
        let outer = std::mem::replace(&mut self.dialect, owner);
        let resolved = resolve(self);
        self.dialect = outer;
        resolved
    }

    /// The dialect of a file that imports these modules.
    pub(crate) fn dialect_by(&self, imports: &[&str]) -> &'static dyn Dialect {
        (self.dialect_of)(self.options, imports)
    }

    /// The same, but `None` if no dialect provides any of them.
    pub(crate) fn dialect_named_by(&self, imports: &[&str]) -> Option<&'static dyn Dialect> {
        let dialect = self.dialect_by(imports);
        let is_provided = |path: &&str| path.split('.').next().is_some_and(|root| dialect.packages().contains(&root));
        let named = dialect.name() != self.dialect_by(&[]).name() || imports.iter().any(is_provided);
        named.then_some(dialect)
    }

    /// A module that imports no dialect's package adopts the dialect of the first dialect value
    /// that it receives from another file.
    pub(crate) fn adopt_dialect(&mut self, module: &Module, value: &Value) {
        if !module.unnamed.get() {
            return;
        }
        let found = match value {
            Value::NativeModule(native) => native.dialect,
            Value::Native(native) => self.dialect_named_by(&[&*native.name]),
            Value::Module(other) if !other.unnamed.get() => Some(other.dialect.get()),
            _ => None,
        };
        if let Some(dialect) = found {
            module.unnamed.set(false);
            module.dialect.set(dialect);
            self.dialect = dialect;
        }
    }
}

/// The modules that a file imports.
#[derive(Default)]
struct Imports<'a> {
    modules: Vec<&'a str>,
    /// Modules below a package of which only names are imported.
    of_names: Vec<&'a str>,
}

/// Collects the modules that statements import, including those in their bodies.
fn collect_imports<'a>(body: &'a [Stmt], imports: &mut Imports<'a>) {
    for stmt in body {
        let mut within = |body: &'a [Stmt]| collect_imports(body, imports);
        match &stmt.kind {
            StmtKind::Import(names) => imports.modules.extend(names.iter().map(|n| &*n.path)),
            StmtKind::ImportFrom(import) if import.level == 0 => {
                let is_below = [".language", ".isa"].iter().any(|part| import.path.contains(part));
                let of_names = is_below && !import.star;
                if of_names { &mut imports.of_names } else { &mut imports.modules }.push(&*import.path);
            }
            StmtKind::Try(t) => [&t.body, &t.orelse, &t.finally].into_iter().for_each(|body| within(body)),
            StmtKind::If(branches, otherwise) => {
                branches.iter().for_each(|(_, body)| within(body));
                within(otherwise);
            }
            StmtKind::For(repeated) => [&repeated.body, &repeated.orelse].into_iter().for_each(|body| within(body)),
            StmtKind::While(_, body, orelse) => [body, orelse].into_iter().for_each(|body| within(body)),
            StmtKind::With(_, body) => within(body),
            StmtKind::Match(choice) => choice.cases.iter().for_each(|case| within(&case.body)),
            StmtKind::Def(def, _) => within(&def.body),
            StmtKind::Class(class, _) => within(&class.body),
            _ => {}
        }
    }
}

/// Names of a native module, for "did you mean".
fn native_names(module: &NativeModule) -> Vec<String> {
    module.dialect.map_or_else(Vec::new, |d| d.names(&module.path)).iter().map(|n| (*n).to_owned()).collect()
}

/// The probable intention behind a name that a module lacks: the same name in another module of its
/// package, or a similar name in this one.
pub(super) fn meant_in(module: &NativeModule, name: &str) -> Option<String> {
    let like = || nearest(name, native_names(module).iter().map(String::as_str)).map(str::to_owned);
    home_of(module, name).or_else(like)
}

/// The name in the other module of the package that has it: `nki.isa.tensor_copy` for
/// `nki.language.tensor_copy`.
fn home_of(module: &NativeModule, name: &str) -> Option<String> {
    const MODULES: [&str; 3] = ["language", "isa", "collectives"];
    let package = match module.path.rsplit_once('.') {
        Some((package, last)) if MODULES.contains(&last) => package,
        _ => &*module.path,
    };
    let homes = MODULES.iter().map(|part| format!("{package}.{part}"));
    let has = |home: &String| module.dialect.is_some_and(|d| d.names(home).contains(&name));
    homes.filter(|home| *home != module.path).find(has).map(|home| format!("{home}.{name}"))
}
