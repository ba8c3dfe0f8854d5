//! From the command line to a program: what `run`, `check` and `lower` share.

use std::path::Path;

use nki_diag::memory::Limit;
use nki_diag::{Applied, Diagnostic, FileId, Mode, SourceMap, Span, render_all};
use nki_frontend::{Arg, HostArray, HostDtype, KernelInfo, Loader, Options};
use nki_isa::{DType, Program, Target};
use nki_sim_core::place::Capacity;

use crate::cli::KernelArgs;
use crate::findings::{Judge, denied_text};
use crate::inputs::Given;
use crate::npy::{self, Elem, shape_text};
use crate::output::{color, eprint, print};
use crate::value::{self, Value};
use crate::{Failure, inputs, memory, settings, shell_word};

/// Reads source files from disk.
pub(crate) struct Disk;

impl Loader for Disk {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        memory::read_text(path)
    }

    fn array(&self, path: &Path) -> Result<HostArray, String> {
        let file = std::fs::metadata(path).map_err(|e| format!("cannot read `{}`: {e}", path.display()))?;
        if !file.is_file() {
            return Err(format!("`{}` is not a regular file", path.display()));
        }
        let array = npy::read(path)?;
        let dtype = match array.elem {
            Elem::Device(d) => HostDtype::Device(d),
            Elem::F64 => HostDtype::F64,
            Elem::I64 => HostDtype::I64,
            Elem::U64 => HostDtype::U64,
            Elem::Void2 => HostDtype::Device(DType::BF16),
            elem @ (Elem::Void1 | Elem::Packed(_)) => {
                return Err(format!("`{}` holds {elem}; save the integers that hold its bits", path.display()));
            }
        };
        Ok(HostArray { dtype, shape: array.shape, data: array.data.to_vec().into() })
    }
}

/// A kernel that may have been compiled, and what is known about it.
pub(crate) struct Prepared {
    /// The kernel's name.
    pub(crate) name: String,
    /// The machine.
    pub(crate) target: Target,
    /// The program, unless the kernel is wrong.
    pub(crate) program: Option<Program>,
    /// Sources, for rendering diagnostics.
    pub(crate) sources: SourceMap,
    /// What the frontend found.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Lines printed at specialisation.
    pub(crate) prints: Vec<String>,
    /// Tensors given as arguments, by input name.
    pub(crate) tensors: Vec<Given>,
    /// Memory that a run may use.
    pub(crate) memory: Limit,
    /// What happens where SBUF or PSUM is too small.
    pub(crate) capacity: Capacity,
    /// Levels of findings.
    pub(crate) judge: Judge,
}

impl Prepared {
    /// Applies the levels to everything that was found, and shows what is left on standard error.
    pub(crate) fn conclude(&self, found: Vec<Diagnostic>) -> Applied {
        let applied = self.judge.judge(found);
        self.show(&applied.diagnostics);
        applied
    }

    /// Shows diagnostics on standard error.
    pub(crate) fn show(&self, diagnostics: &[Diagnostic]) {
        eprint(&render_all(diagnostics, &self.sources, color()));
    }
}

/// Ends a command: says what was denied, and fails if anything that was reported is an error.
pub(crate) fn finish(applied: &Applied) -> Result<(), Failure> {
    eprint(&denied_text(&applied.denied));
    if any_error(&applied.diagnostics) { Err(Failure::Kernel) } else { Ok(()) }
}

/// Whether any diagnostic makes the kernel wrong.
pub(crate) fn any_error(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}

/// Reads the arguments and compiles the kernel (or reads a lowered one); what it prints goes to standard output. Diagnostics are not shown yet.
pub(crate) fn prepare(command: &str, args: &KernelArgs, mode: Mode) -> Result<Prepared, Failure> {
    let prepared = prepare_with(command, args, judge_of(args, mode)?, &Disk, 1)?;
    for line in &prepared.prints {
        print(&format!("{line}\n"));
    }
    Ok(prepared)
}

/// The levels of findings for this call.
pub(crate) fn judge_of(args: &KernelArgs, mode: Mode) -> Result<Judge, Failure> {
    Ok(Judge::new(mode, args.strict, vec![args.levels.source()?], Some(&args.file))?)
}

/// The same with sources from `loader`, and nothing printed. The memory is shared with as many kernels as are prepared `at_once`.
pub(crate) fn prepare_with(
    command: &str,
    args: &KernelArgs,
    judge: Judge,
    loader: &dyn Loader,
    at_once: usize,
) -> Result<Prepared, Failure> {
    let memory = memory::limit(args.max_memory.as_deref())?.shared_by(at_once);
    let capacity = settings::capacity(args.capacity.as_deref())?;
    if args.file.is_dir() {
        return Err(Failure::Call(format!("`{}` is a directory; expected a .py or .nkir file", args.file.display())));
    }
    let text = memory::read_text(&args.file)
        .map_err(|e| Failure::Call(format!("cannot read `{}`: {e}", args.file.display())))?;
    let mut parsed: Vec<(String, Value)> = Vec::new();
    for (name, text) in &args.args {
        if parsed.iter().any(|(n, _)| n == name) {
            return Err(Failure::Call(format!("--arg {name} is given twice")));
        }
        let value = value::parse(text).map_err(|e| Failure::Call(format!("--arg {name}={text}: {e}")))?;
        parsed.push((name.clone(), value));
    }
    if args.file.extension().is_some_and(|e| e == "nkir") {
        return lowered(args, &text, &parsed, memory, capacity, judge);
    }

    let listing = nki_frontend::kernels_within(&args.file, loader, memory);
    if any_error(&listing.diagnostics) {
        return Ok(Prepared {
            name: args.kernel.clone().unwrap_or_default(),
            target: settings::target(args.target)?,
            program: None,
            sources: listing.sources,
            diagnostics: listing.diagnostics,
            prints: Vec::new(),
            tensors: Vec::new(),
            memory,
            capacity,
            judge,
        });
    }
    let kernel = choose(args, &listing.kernels)?;
    let target = settings::target(args.target.or(kernel.target))?;
    check_names(command, args, kernel, &parsed)?;
    let mut tensors = Vec::new();
    let mut arguments: Vec<(String, Arg)> = Vec::new();
    for (position, (name, value)) in parsed.iter().enumerate() {
        arguments.push((name.clone(), inputs::resolve(name, value, position, &mut tensors)?));
    }
    let mut options = Options {
        kernel: Some(kernel.name.clone()),
        target,
        lnc: args.lnc,
        strict: judge.wants_strict(),
        ..Options::default()
    };
    if let Some(steps) = args.max_steps {
        options.step_limit = steps;
    }
    options.memory = memory;
    options.over_capacity = capacity == Capacity::Warn;
    let compiled = nki_frontend::compile(&args.file, loader, &arguments, &options);
    Ok(Prepared {
        name: kernel.name.clone(),
        target,
        program: compiled.program,
        sources: compiled.sources,
        diagnostics: compiled.diagnostics,
        prints: compiled.prints,
        tensors,
        memory,
        capacity,
        judge,
    })
}

/// A program in text form. The files it was compiled from are read if they are still there, to show their lines.
fn lowered(
    args: &KernelArgs,
    text: &str,
    parsed: &[(String, Value)],
    memory: Limit,
    capacity: Capacity,
    judge: Judge,
) -> Result<Prepared, Failure> {
    let file = args.file.display();
    let program = nki_isa::text::parse_file(&file.to_string(), text).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(|e| format!("{file}:{e}")).collect();
        Failure::Call(format!("`{file}` is not a valid program:\n  {}", lines.join("\n  ")))
    })?;
    if let Some(wanted) = args.target
        && wanted != program.target
    {
        return Err(Failure::Call(format!(
            "`{file}` was compiled for {}; compile the kernel again for {wanted}",
            program.target
        )));
    }
    let mut tensors = Vec::new();
    for (position, (name, value)) in parsed.iter().enumerate() {
        inputs::resolve(name, value, position, &mut tensors)?;
    }
    for tensor in &tensors {
        if !program.inputs.iter().any(|i| *i.name == *tensor.name()) {
            return Err(Failure::Call(format!(
                "`{file}` has no input called `{}`{}",
                tensor.name(),
                listing(&program)
            )));
        }
    }
    for input in &program.inputs {
        let wanted = program.tensor(input.tensor);
        let Some(given) = tensors.iter().find(|t| *t.name() == *input.name) else {
            return Err(Failure::Call(format!("`{file}` needs input `{}`{}", input.name, listing(&program))));
        };
        let shape: Vec<usize> = wanted.shape.iter().map(|&d| d as usize).collect();
        if given.shape() != shape || given.dtype() != wanted.dtype {
            return Err(Failure::Call(format!(
                "input `{}` is {} {}, `{file}` was compiled for {} {}",
                input.name,
                given.dtype(),
                shape_text(given.shape()),
                wanted.dtype,
                shape_text(&shape)
            )));
        }
    }
    let mut sources = SourceMap::new();
    for path in &program.files {
        match std::fs::read_to_string(&**path) {
            Ok(text) => sources.add(&**path, text),
            Err(_) => sources.add_name(&**path),
        };
    }
    let diagnostics = violations(&program);
    Ok(Prepared {
        name: program.name.to_string(),
        target: program.target,
        program: Some(program),
        sources,
        diagnostics,
        prints: Vec::new(),
        tensors,
        memory,
        capacity,
        judge,
    })
}

/// Rules that a program in text form breaks; a compiled one has been checked by the frontend.
fn violations(program: &Program) -> Vec<Diagnostic> {
    program
        .validate()
        .into_iter()
        .map(|(violation, loc, _)| {
            let span = Span::new(FileId(loc.file), loc.start, loc.end);
            let d = Diagnostic::error(violation.id, violation.to_string()).at_loc(span, loc.line, loc.column, "");
            if violation.help.is_empty() { d } else { d.help(violation.help) }
        })
        .collect()
}

/// The inputs of a program as `--arg` would make them.
fn listing(program: &Program) -> String {
    let inputs: Vec<String> = program
        .inputs
        .iter()
        .map(|i| {
            let tensor = program.tensor(i.tensor);
            let dims: Vec<String> = tensor.shape.iter().map(u32::to_string).collect();
            format!("\n  --arg '{}={}[{}]'", i.name, tensor.dtype, dims.join(","))
        })
        .collect();
    if inputs.is_empty() { "; it has none".into() } else { format!("; its inputs are{}", inputs.concat()) }
}

pub(crate) fn choose<'a>(args: &KernelArgs, kernels: &'a [KernelInfo]) -> Result<&'a KernelInfo, Failure> {
    let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
    let file = args.file.display();
    match (&args.kernel, kernels) {
        (_, []) => Err(Failure::Call(format!("`{file}` has no kernel: no function is decorated with @nki.jit"))),
        (None, [one]) => Ok(one),
        (None, _) => Err(Failure::Call(format!(
            "`{file}` has {} kernels; choose one with --kernel: {}",
            names.len(),
            names.join(", ")
        ))),
        (Some(wanted), _) => kernels.iter().find(|k| k.name == *wanted).ok_or_else(|| {
            Failure::Call(format!("`{file}` has no kernel called `{wanted}`; it has {}", names.join(", ")))
        }),
    }
}

/// Unknown and missing arguments, with the signature and a command that would work.
fn check_names(
    command: &str,
    args: &KernelArgs,
    kernel: &KernelInfo,
    parsed: &[(String, Value)],
) -> Result<(), Failure> {
    let unknown: Vec<&str> =
        parsed.iter().map(|(n, _)| n.as_str()).filter(|n| !kernel.params.iter().any(|p| p.name == *n)).collect();
    let missing: Vec<&str> = kernel
        .params
        .iter()
        .filter(|p| p.default.is_none() && !parsed.iter().any(|(n, _)| *n == p.name))
        .map(|p| p.name.as_str())
        .collect();
    if unknown.is_empty() && missing.is_empty() {
        return Ok(());
    }
    let mut message = String::new();
    if !unknown.is_empty() {
        message += &format!("kernel `{}` has no parameter called {}", kernel.name, quoted(&unknown));
    }
    if !missing.is_empty() {
        if !message.is_empty() {
            message += "\nerror: ";
        }
        let s = if missing.len() == 1 { "" } else { "s" };
        message += &format!("kernel `{}` needs argument{s} {}", kernel.name, quoted(&missing));
    }
    message += &format!("\n  signature: {}", signature(kernel));
    message += &format!("\n  example:   {}", example(command, args, kernel));
    message +=
        "\n  a value is FILE.npy, dtype[d0,d1,...][:normal|uniform|zeros|ones|arange][:SEED], or a Python literal";
    Err(Failure::Call(message))
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

fn signature(kernel: &KernelInfo) -> String {
    let params: Vec<String> = kernel
        .params
        .iter()
        .map(|p| {
            let annotation = p.annotation.as_ref().map(|a| format!(": {a}")).unwrap_or_default();
            let default = match (&p.default, annotation.is_empty()) {
                (None, _) => String::new(),
                (Some(d), true) => format!("={d}"),
                (Some(d), false) => format!(" = {d}"),
            };
            format!("{}{annotation}{default}", p.name)
        })
        .collect();
    format!("{}({})", kernel.name, params.join(", "))
}

fn example(command: &str, args: &KernelArgs, kernel: &KernelInfo) -> String {
    let mut words = vec!["nki-sim".to_string(), command.into(), args.file.display().to_string()];
    if let Some(name) = &args.kernel {
        words.extend(["--kernel".into(), name.clone()]);
    }
    for p in &kernel.params {
        let given = args.args.iter().find(|(n, _)| *n == p.name).map(|(_, v)| v.as_str());
        let value = match (given, &p.default) {
            (Some(v), _) => v,
            (None, Some(_)) => continue,
            (None, None) => match p.annotation.as_deref() {
                Some("int") => "1",
                Some("float") => "1.0",
                Some("bool") => "True",
                Some("str") => "'text'",
                _ => "float32[128,512]",
            },
        };
        words.extend(["--arg".into(), format!("{}={value}", p.name)]);
    }
    words.iter().map(|w| shell_word(w)).collect::<Vec<_>>().join(" ")
}
