//! The kernels of a module, and the evaluation of a kernel for its arguments.

use std::path::Path;
use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use nki_isa::{Program, Target, TensorId};
use rustc_hash::FxHashSet;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::language::{Construct, Dialect, Edge, Hint};
use super::native::CallArgs;
use super::value::*;
use crate::syntax::*;
use crate::{Arg, KernelInfo, Returned};

/// A function that can be compiled as a kernel.
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) function: Rc<Function>,
    /// Its [`Kernel::schedule`].
    pub(crate) schedule: Rc<[Edge]>,
    /// The target that its decorator names.
    pub(crate) target: Option<Target>,
    /// See [`Kernel::as_written`].
    pub(crate) as_written: bool,
    /// Its [`Kernel::compile_config`] and [`Kernel::specialization_config`].
    pub(crate) config: (Value, Value),
    /// Whether a decorator makes it a kernel.
    pub(crate) decorated: bool,
}

/// Selects the kernels among the functions of a file: those with a decorator. If there are none,
/// the functions that no other one calls, restricted to those that use the device if any does. If
/// all are called, all.
fn kernels_among(functions: &[Candidate]) -> Vec<bool> {
    if functions.iter().any(|c| c.decorated) {
        return functions.iter().map(|c| c.decorated).collect();
    }
    let defs = || functions.iter().map(|c| &c.function.def);
    let calls: Vec<_> = defs().map(|def| (def.name, def.calls())).collect();
    let is_called = |name| calls.iter().any(|(caller, called)| *caller != name && called.contains(&name));
    let free: Vec<bool> = defs().map(|def| !is_called(def.name)).collect();
    if !free.contains(&true) {
        return vec![true; functions.len()];
    }
    let mut of_device: FxHashSet<Symbol> =
        functions.iter().filter(|c| names_the_api(c)).map(|c| c.function.def.name).collect();
    while let Some((caller, _)) =
        calls.iter().find(|(caller, called)| !of_device.contains(caller) && !called.is_disjoint(&of_device))
    {
        of_device.insert(*caller);
    }
    let both: Vec<bool> = free.iter().zip(defs()).map(|(free, def)| *free && of_device.contains(&def.name)).collect();
    if both.contains(&true) { both } else { free }
}

/// Whether a function refers to `nki.language`, `nki.isa`, a member of them, or a function of
/// another file, which may use them.
fn names_the_api(candidate: &Candidate) -> bool {
    let module = &candidate.function.module;
    let named = candidate.function.def.names();
    let is_of_api = |path: &str| [".language", ".isa"].iter().any(|part| path.contains(part));
    module.symbols.borrow().iter().zip(module.globals.borrow().iter()).any(|(symbol, value)| {
        named.contains(symbol)
            && match value {
                Value::NativeModule(module) => module.dialect.is_some() && is_of_api(&module.path),
                Value::Native(native) => is_of_api(&native.name),
                Value::Function(function) => !Rc::ptr_eq(&function.module, module),
                _ => false,
            }
    })
}

impl Interp<'_> {
    /// Loads and runs the file of the kernel; `None` after errors, which are reported.
    pub(crate) fn load_main(&mut self, path: &Path) -> Option<Rc<Module>> {
        let name = path.file_stem().map_or_else(|| "kernel".into(), |s| s.to_string_lossy().into_owned());
        match self.load_file(path, &name) {
            Ok(Some(module)) => (!self.diagnostics.iter().any(Diagnostic::is_error)).then_some(module),
            Ok(None) => {
                let why = self.loader.read(path).err().map_or_else(String::new, |e| format!(": {e}"));
                self.report(Diagnostic::error("file-unreadable", format!("{} cannot be read{why}", path.display())));
                None
            }
            Err(raise) if raise.reported => None,
            Err(raise) => {
                self.report(raise.into_diagnostic());
                None
            }
        }
    }

    /// The kernels of a file in source order: the functions that it defines and decorates as
    /// kernels. If it decorates none, those that no other function in it calls. The function named
    /// `wanted` is always included.
    pub(crate) fn candidates(&self, module: &Rc<Module>, wanted: Option<&str>) -> Vec<Candidate> {
        let mut found = Vec::new();
        let mut seen: Vec<&Rc<Kernel>> = Vec::new();
        let globals = module.globals.borrow();
        for (symbol, value) in module.symbols.borrow().iter().zip(globals.iter()) {
            let (function, kernel) = match value {
                Value::Function(function) => (function.clone(), None),
                // Another name of a kernel.
                Value::Kernel(kernel)
                    if seen.iter().any(|k| Rc::ptr_eq(k, kernel)) && wanted != Some(&*self.name(*symbol)) =>
                {
                    continue;
                }
                // The grid of `four = inner[4]` applies to the host's call: the kernel is `inner`.
                Value::Kernel(kernel) if !kernel.has_grid => match &kernel.function {
                    Value::Function(function) => (function.clone(), Some(kernel)),
                    _ => continue,
                },
                _ => continue,
            };
            if Rc::ptr_eq(&function.module, module) {
                seen.extend(kernel);
                let name = self.name(*symbol).to_string();
                let no_config = || (Value::None, Value::None);
                let candidate = Candidate {
                    name,
                    function,
                    schedule: kernel.map_or_else(Rc::default, |k| k.schedule.clone()),
                    target: kernel.and_then(|k| k.target),
                    as_written: self.options.as_written || kernel.is_some_and(|k| k.as_written),
                    config: kernel
                        .map_or_else(no_config, |k| (k.compile_config.clone(), k.specialization_config.clone())),
                    decorated: kernel.is_some(),
                };
                found.push(candidate);
            }
        }
        found.sort_by_key(|c| (c.function.def.name_span.start, !c.decorated));
        let is_kernel = kernels_among(&found);
        let is_wanted = |name: &str| wanted == Some(name);
        let kept = found.into_iter().zip(is_kernel).filter(|(c, is_kernel)| *is_kernel || is_wanted(&c.name));
        kept.map(|(c, _)| c).collect()
    }

    /// The description of a kernel for callers.
    pub(crate) fn describe(&self, candidate: &Candidate) -> KernelInfo {
        let def = &candidate.function.def;
        let params = def
            .named_params()
            .map(|p| crate::Param {
                name: self.name(p.name).to_string(),
                default: p.default.as_ref().map(|d| self.source_text(d.span)),
                annotation: p.annotation.map(|span| self.source_text(span)),
            })
            .collect();
        let signature = format!("{}{}", candidate.name, self.signature(def));
        KernelInfo {
            name: candidate.name.clone(),
            params,
            signature,
            span: def.name_span,
            target: candidate.target,
            older_compiler: candidate.function.module.dialect.get().is_older(),
            as_written: candidate.as_written,
            decorated: candidate.decorated,
        }
    }

    /// Specialises a kernel for each core and builds the program. The arguments have the names of
    /// the parameters, and none is missing.
    pub(crate) fn run_kernel(
        &mut self,
        candidate: &Candidate,
        args: &[(String, Arg)],
    ) -> EvalResult<(Program, Returned)> {
        let def = candidate.function.def.clone();
        let span = def.name_span;
        let mut returned = Returned::None;
        self.outer_config = candidate.config.clone();
        self.check_launch(span)?;
        let mut first = true;
        for core in 0..self.options.lnc.max(1) {
            self.begin_core(&candidate.name, core, &candidate.schedule);
            for (index, at) in (0..).zip(crate::programs_of(&self.options.grid, core)) {
                self.begin_program(&at, index);
                let result = self.run_program(candidate, args)?;
                if std::mem::take(&mut first) {
                    let names = std::mem::take(&mut self.returned);
                    let dialect = candidate.function.module.dialect.get();
                    returned = self.take_result(&result, &names, dialect, &def.params, span)?;
                } else if index == 0 {
                    self.compare_result(&result, core, span)?;
                }
            }
        }
        Ok((self.finish(span)?, returned))
    }

    /// Checks that the launch grid of the kernel at `span` matches its cores.
    ///
    /// # Errors
    /// `launch-grid`
    pub(crate) fn check_launch(&self, span: Span) -> EvalResult<()> {
        let cores: u32 = self.options.grid.iter().map(|axis| axis.cores).product();
        let launched = self.options.lnc.max(1);
        if self.options.grid.is_empty() || cores == launched {
            return Ok(());
        }
        let message = format!("a grid over {cores} cores is launched on {launched}");
        Err(Raise::at("launch-grid", message, span, "this kernel").help(self.dialect.hint(Hint::LaunchGrid)))
    }

    /// Specialises a kernel for one core and one program of its grid; returns its result.
    fn run_program(&mut self, candidate: &Candidate, args: &[(String, Arg)]) -> EvalResult<Value> {
        let def = candidate.function.def.clone();
        let mut call = CallArgs::none(def.name_span);
        // API names among the arguments are resolved in the kernel's language.
        self.dialect = candidate.function.module.dialect.get();
        for (at, param) in def.params.iter().enumerate() {
            let name = self.name(param.name);
            let by_position = param.kind == ParamKind::PositionalOnly;
            if param.kind.takes_rest() {
                continue;
            }
            if let Some((_, arg)) = args.iter().find(|(n, _)| **n == *name) {
                self.check_argument(arg, param.span);
                let value = match self.enum_argument(&candidate.function, param, arg) {
                    Some(member) => member,
                    None => self.take_over(arg, Some(&name), param.span)?,
                };
                // The caller names all arguments, even if the kernel's own language does not allow
                // it.
                if by_position {
                    call.positional.push(value);
                } else {
                    call.keyword.push((param.name, value));
                }
            } else if by_position
                && let Some(default) = candidate.function.defaults.get(at)
                && !matches!(default, Value::Unset)
            {
                call.positional.push(default.clone());
            }
        }
        // A host wrapper shows the parameters of the function that it wraps.
        let by_name = def.params.iter().any(|p| p.kind == ParamKind::DoubleStar);
        let is_rest = |name: &str| !def.named_params().any(|p| *name == **self.names.name(p.name));
        let rest: Vec<&(String, Arg)> = args.iter().filter(|(name, _)| is_rest(name)).collect();
        for (name, arg) in rest {
            self.check_argument(arg, def.name_span);
            let value = self.take_over(arg, Some(name), def.name_span)?;
            match by_name {
                true => call.keyword.push((self.sym(name), value)),
                false => call.positional.push(value),
            }
        }
        self.returned.clear();
        self.kernel_depth = self.calls.len() + 1;
        let result = self.call_function(&candidate.function, None, call);
        self.kernel_depth = usize::MAX;
        let result = result.map_err(|mut raise| {
            // The kernel's own frame has no call site.
            raise.frames.pop();
            raise
        })?;
        // The other cores run the same code, and there is no program to build.
        if self.has_recovered() { Err(Raise::reported()) } else { Ok(result) }
    }

    /// Reports, in a kernel compiled with [`crate::Options::strict`], an argument that the official compiler rejects.
    pub(crate) fn check_argument(&mut self, arg: &Arg, span: Span) {
        if matches!(arg, Arg::List(_)) || matches!(arg, Arg::Shared(_, a) if matches!(**a, Arg::List(_))) {
            self.check_strictly(Construct::ListArgument(span));
        }
    }

    /// Prepares for the evaluation of a kernel for this core.
    pub(crate) fn begin_core(&mut self, kernel: &str, core: u32, schedule: &[Edge]) {
        self.in_kernel = true;
        self.backend.begin_core(kernel, core, schedule);
    }

    /// Prepares for a program of the launch grid, the `index`th of its core: see [`super::language::Backend::begin_program`].
    /// Only the first program of a core prints.
    pub(crate) fn begin_program(&mut self, at: &[u32], index: u32) {
        let counts: Vec<u32> = self.options.grid.iter().map(|axis| axis.count()).collect();
        self.quiet = index > 0;
        self.backend.begin_program(&counts, at, index);
        self.forget_shared();
    }

    /// Makes the return value of a kernel of this dialect at `span`, with these parameters, its
    /// outputs. `names` are the names in its `return`.
    pub(crate) fn take_result(
        &mut self,
        result: &Value,
        names: &[Option<String>],
        dialect: &dyn Dialect,
        params: &[Param],
        span: Span,
    ) -> EvalResult<Returned> {
        let mut outputs = Vec::new();
        let returned = self.collect_outputs(result, names, span, &mut outputs)?;
        self.first_result = outputs.iter().map(|(_, value)| self.backend.tensor(value)).collect();
        let allowed = dialect.outputs();
        if allowed.arguments {
            let written = self.backend.written_inputs();
            if outputs.is_empty() {
                outputs = written;
            } else {
                dialect.check_written(self, params, &written, &outputs);
            }
        }
        for (name, value) in &mut outputs {
            *value = dialect.output(self, name, value, span)?;
        }
        self.take_outputs(&outputs, allowed, span)?;
        Ok(returned)
    }

    /// Reports other tensors than those of the first core in the return value of a later one, which the caller does not get. A core may return
    /// nothing.
    pub(crate) fn compare_result(&mut self, result: &Value, core: u32, span: Span) -> EvalResult<()> {
        let mut outputs = Vec::new();
        self.collect_outputs(result, &[], span, &mut outputs)?;
        let own: Vec<_> = outputs.iter().map(|(_, value)| self.backend.tensor(value)).collect();
        let ids =
            |list: &[Option<(TensorId, String)>]| -> Vec<_> { list.iter().map(|t| t.as_ref().map(|t| t.0)).collect() };
        if own.is_empty() || ids(&own) == ids(&self.first_result) {
            return Ok(());
        }
        let names = |list: &[Option<(TensorId, String)>]| -> String {
            let each = list.iter().map(|t| t.as_ref().map_or("a value".to_owned(), |(_, name)| format!("`{name}`")));
            each.collect::<Vec<_>>().join(", ")
        };
        let (own, first) = (names(&own), names(&self.first_result));
        let first = if first.is_empty() { "nothing".to_owned() } else { first };
        self.report(
            Diagnostic::warning("kernel-output", format!("core {core} returns {own}, core 0 returns {first}"))
                .at(span, "this kernel")
                .help("return the same tensors on all cores: the caller gets those of core 0"),
        );
        Ok(())
    }

    /// The member named by a string, for a parameter annotated with an Enum.
    fn enum_argument(&self, function: &Function, param: &Param, arg: &Arg) -> Option<Value> {
        let Arg::Str(text) = arg else { return None };
        if self.host.is_some() {
            return None;
        }
        let annotation = self.source_text(param.annotation?);
        let class = annotation.trim_start_matches("Optional[").trim_end_matches(']').trim_end_matches("| None").trim();
        let index = function.module.index.borrow().get(&self.names.find(class)?).copied()?;
        let Value::Class(class) = &function.module.globals.borrow()[index as usize] else { return None };
        let wanted = self.names.find(text.rsplit('.').next().unwrap_or(text))?;
        class.members.borrow().iter().find(|m| m.name == wanted).cloned().map(Value::EnumMember)
    }

    /// Records the names in the `return` of the kernel.
    pub(crate) fn note_return(&mut self, value: Option<&Expr>) {
        self.returned = value.map_or_else(Vec::new, |value| self.names_in(value));
    }

    /// The names of the returned variables and attributes; `None` for other values.
    pub(crate) fn names_in(&self, returned: &Expr) -> Vec<Option<String>> {
        match &returned.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().flat_map(|e| self.names_in(e)).collect(),
            ExprKind::Name(name, _) | ExprKind::Attr(_, name) => vec![Some(self.name(*name).to_string())],
            _ => vec![None],
        }
    }

    fn collect_outputs(
        &mut self,
        result: &Value,
        names: &[Option<String>],
        span: Span,
        outputs: &mut Vec<(String, Value)>,
    ) -> EvalResult<Returned> {
        let mut flat: Vec<(Option<String>, Value)> = Vec::new();
        let returned = self.flatten(result, None, span, &mut flat, 0)?;
        let aligned = names.len() == flat.len();
        let mut taken: FxHashSet<String> = outputs.iter().map(|(name, _)| name.clone()).collect();
        for (index, (key, value)) in flat.into_iter().enumerate() {
            let name = key
                .or_else(|| names.get(index).filter(|_| aligned).cloned().flatten())
                .unwrap_or_else(|| format!("output{index}"));
            let name = if taken.contains(&name) {
                (1..).map(|i| format!("{name}_{i}")).find(|n| !taken.contains(n)).unwrap_or(name)
            } else {
                name
            };
            taken.insert(name.clone());
            outputs.push((name, value));
        }
        Ok(returned)
    }

    fn flatten(
        &mut self,
        value: &Value,
        key: Option<String>,
        span: Span,
        out: &mut Vec<(Option<String>, Value)>,
        depth: u32,
    ) -> EvalResult<Returned> {
        let sequence = match value {
            Value::Tuple(_) | Value::List(_) => value.sequence(),
            _ => self.named_tuple_items(value),
        };
        if let Some(sequence) = sequence
            && depth < 8
        {
            let mut items = Vec::new();
            for item in sequence {
                items.push(self.flatten(&item, None, span, out, depth + 1)?);
            }
            return Ok(if matches!(value, Value::List(_)) { Returned::List(items) } else { Returned::Tuple(items) });
        }
        Ok(match value {
            Value::None => Returned::None,
            Value::Object(object) if object.is_device_data() => {
                out.push((key, value.clone()));
                Returned::Output(out.len() - 1)
            }
            Value::Dict(dict) if depth < 8 => {
                let entries: Vec<(Value, Value)> =
                    dict.borrow().iter().map(|(_, k, v)| (k.clone(), v.clone())).collect();
                let mut items = Vec::new();
                for (key, value) in entries {
                    let key = self.str(&key)?;
                    items.push((key.clone(), self.flatten(&value, Some(key), span, out, depth + 1)?));
                }
                Returned::Dict(items)
            }
            other => {
                return Err(Raise::at(
                    "kernel-output",
                    format!("a kernel returns tensors, not {}", other.a_type()),
                    span,
                    "this kernel",
                )
                .help("return the output tensors (one, or a tuple, list or dict of them)"));
            }
        })
    }
}
