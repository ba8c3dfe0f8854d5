//! From the command line to a compiled kernel: shared by all commands that take a kernel.

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

use nki_diag::{Applied, Diagnostic, Mode, SourceMap, render_all, slugs};
use nki_frontend::{Arg, Arguments, GridAxis, HostArray, HostDtype, KernelInfo, Loader, Options, Refused};
use nki_isa::{DType, Program, Target};

use crate::cli::{KernelArgs, TimingArgs};
use crate::findings::{Judge, denied_text};
use crate::inputs::Given;
use crate::npy::{self, Elem, shape_text};
use crate::output::{color, eprint, print, write_file};
use crate::places::{Inputs, note_constant};
use crate::report::{self, Checked};
use crate::session::{Compilation, Numerics, Session};
use crate::settings::ParamChanges;
use crate::value::{self, Value};
use crate::{Failure, inputs, memory, other_file, python, run_line, settings, shell_word, source_text};

/// Reads source files from disk.
pub(crate) struct Disk;

impl Loader for Disk {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        source_text::read(path)
    }

    fn array(&self, path: &Path) -> Result<HostArray, String> {
        let file = std::fs::metadata(path).map_err(|e| format!("cannot read `{}`: {e}", path.display()))?;
        if !file.is_file() {
            return Err(format!("`{}` is not a regular file", path.display()));
        }
        note_constant(path);
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

/// The physical cores on which a kernel runs: those of its launch grid, of the option, or of the environment.
///
/// # Errors
/// If the variable that decides is neither 1 nor 2.
pub(crate) fn physical_cores(args: &KernelArgs) -> Result<u32, String> {
    match &args.programs {
        Some(grid) => Ok(grid.cores()),
        None => args.lnc.map_or_else(settings::logical_cores, Ok),
    }
}

/// The session for these options. `timing` are the options of commands that time a kernel.
pub(crate) fn session(
    args: &KernelArgs,
    mode: Mode,
    numerics: Numerics,
    timing: Option<&TimingArgs>,
) -> Result<Session, Failure> {
    Ok(Session {
        judge: Judge::new(mode, args.strict, vec![args.levels.source()?], Some(&args.file))?,
        memory: memory::limit(args.max_memory.as_deref())?,
        reported: false,
        capacity: settings::capacity(args.capacity)?,
        numerics,
        static_descriptors: args.disable_dge,
        precise: numerics == Numerics::Never || settings::precise_fp()?,
        unwritten: settings::unwritten()?,
        max_steps: args.max_steps,
        params: timing.map(ParamChanges::from).unwrap_or_default(),
    })
}

/// A kernel's arguments from the command line.
pub(crate) struct CommandArguments {
    parsed: Vec<(String, Value)>,
    /// Filled on the frontend's request: a value may have to be read from a file.
    resolved: OnceLock<Resolved>,
}

/// Values of arguments.
struct Resolved {
    /// The frontend's arguments: for tensors, shape and dtype.
    values: Vec<(String, Arg)>,
    /// The tensors among them.
    tensors: Vec<Given>,
}

impl CommandArguments {
    /// Parses the `--arg` options.
    pub(crate) fn parse(args: &[(String, String)]) -> Result<Self, Failure> {
        let mut parsed: Vec<(String, Value)> = Vec::new();
        for (name, text) in args {
            if parsed.iter().any(|(n, _)| n == name) {
                return Err(Failure::Call(format!("--arg {name} is given twice")));
            }
            let value = value::parse(text).map_err(|e| Failure::Call(format!("--arg {name}={text}: {e}")))?;
            parsed.push((name.clone(), value));
        }
        Ok(CommandArguments { parsed, resolved: OnceLock::new() })
    }

    fn resolve(&self) -> Result<&Resolved, String> {
        if let Some(known) = self.resolved.get() {
            return Ok(known);
        }
        let (mut values, mut tensors) = (Vec::new(), Vec::new());
        for (position, (name, value)) in self.parsed.iter().enumerate() {
            values.push((name.clone(), inputs::resolve(name, value, position, &mut tensors)?));
        }
        Ok(self.resolved.get_or_init(|| Resolved { values, tensors }))
    }

    /// The tensors among the arguments.
    pub(crate) fn into_tensors(self) -> Vec<Given> {
        self.resolved.into_inner().map(|r| r.tensors).unwrap_or_default()
    }
}

impl Arguments for CommandArguments {
    fn names(&self) -> Vec<&str> {
        self.parsed.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn values(&self) -> Result<Cow<'_, [(String, Arg)]>, String> {
        Ok(Cow::Borrowed(&self.resolve()?.values))
    }
}

/// Applies the levels to all findings, and shows the remaining ones on standard error.
pub(crate) fn conclude(session: &Session, found: Vec<Diagnostic>, sources: &SourceMap) -> Applied {
    let applied = session.judge.judge(found);
    show(&applied, sources);
    applied
}

/// Shows findings on standard error.
pub(crate) fn show(applied: &Applied, sources: &SourceMap) {
    eprint(&render_all(&applied.diagnostics, sources, color()));
}

/// Ends a command: prints denied findings, and fails if an error was reported.
pub(crate) fn finish(applied: &Applied) -> Result<(), Failure> {
    eprint(&denied_text(&applied.denied));
    if applied.diagnostics.iter().any(Diagnostic::is_error) { Err(Failure::Kernel) } else { Ok(()) }
}

/// Destination of a kernel's findings in addition to standard error.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sink<'a> {
    /// The file of `--json`.
    pub(crate) json: Option<&'a Path>,
}

impl<'a> Sink<'a> {
    /// An optional file.
    pub(crate) fn file(json: Option<&'a Path>) -> Self {
        Sink { json }
    }

    /// Writes the findings, unless that would overwrite one of the kernel's sources.
    pub(crate) fn write(self, compiled: &Compilation, applied: &Applied) -> Result<(), String> {
        if let Some(path) = self.json {
            Inputs::of_sources(&compiled.sources).check("--json", path)?;
            write_file(path, &[&report::json(&Checked::new(compiled, applied))?])?;
        }
        Ok(())
    }
}

/// Ends a command with a wrong kernel: all findings go to standard error and to the sink.
pub(crate) fn fail(session: &Session, compiled: &Compilation, sink: Sink<'_>, found: Vec<Diagnostic>) -> Failure {
    let applied = conclude(session, found, &compiled.sources);
    match sink.write(compiled, &applied) {
        Ok(()) => finish(&applied).err().unwrap_or(Failure::Kernel),
        Err(message) => Failure::Call(message),
    }
}

/// Adds the arguments from run lines to `args` if the call has none. Invalid run lines end the command like a wrong kernel.
pub(crate) fn add_run_line(session: &Session, args: &mut KernelArgs, sink: Sink<'_>) -> Result<(), Failure> {
    match run_line::arguments(args, session, &Disk) {
        Ok(supplied) => {
            args.args.extend(supplied);
            Ok(())
        }
        Err(wrong) => {
            let program = wrong.program(settings::target(args.target)?);
            Err(fail(session, &program, sink, program.with([])))
        }
    }
}

/// Reads the arguments and compiles the kernel (or reads a lowered one); the kernel's prints go to standard output. Diagnostics are not shown yet.
pub(crate) fn compile(
    command: &str,
    session: &Session,
    args: &KernelArgs,
) -> Result<(Compilation, CommandArguments), Failure> {
    let out = compile_from(command, session, args, &Disk)?;
    for line in &out.0.prints {
        print(&format!("{line}\n"));
    }
    Ok(out)
}

/// The same with sources from `loader`, and without printing.
pub(crate) fn compile_from(
    command: &str,
    session: &Session,
    args: &KernelArgs,
    loader: &dyn Loader,
) -> Result<(Compilation, CommandArguments), Failure> {
    if args.file.is_dir() {
        return Err(Failure::Call(format!("`{}` is a directory; expected a .py or .nkir file", args.file.display())));
    }
    if let Some(what) = other_file::describe(&args.file) {
        return Err(Failure::Call(what));
    }
    let text =
        loader.read(&args.file).map_err(|e| Failure::Call(format!("cannot read `{}`: {e}", args.file.display())))?;
    let arguments = CommandArguments::parse(&args.args)?;
    if args.file.extension().is_some_and(|e| e == "nkir") {
        // The text of a program does not say which compiler it is for.
        let compilation = Compilation { older_compiler: args.beta1, ..lowered(args, &text, &arguments)? };
        return Ok((compilation, arguments));
    }
    // A decorator that names a target takes precedence over a variable, which is then not read.
    let chosen = settings::target(args.target);
    let options = Options {
        kernel: args.kernel.clone(),
        target: chosen.as_ref().copied().unwrap_or(Target::DEFAULT),
        decorated_target: args.target.is_none(),
        beta1: args.beta1,
        as_written: args.as_written,
        lnc: physical_cores(args)?,
        grid: args.programs.as_ref().map_or_else(Vec::new, |grid| grid.0.clone()),
        ..session.options()
    };
    let compiled = match python::tracer(args) {
        Some(tracer) => tracer.compile(&args.file, &text, &arguments, &options)?,
        None => nki_frontend::compile(&args.file, loader, &arguments, &options),
    };
    if compiled.kernel.as_ref().is_none_or(|k| k.target.is_none()) {
        chosen?;
    }
    if compiled.kernel.as_ref().is_some_and(|k| !k.older_compiler) {
        check_grid(args)?;
    }
    if let Some(refused) = compiled.refused {
        return Err(refusal(command, args, refused));
    }
    let evaluated = compiled.kernel.is_some();
    let mut compilation = Compilation::from(compiled);
    if !evaluated {
        compilation.name = args.kernel.clone().unwrap_or_default();
        compilation.prints.clear();
    }
    Ok((compilation, arguments))
}

/// Checks that the launch grid suits a kernel of the current language, `kernel[1]` or `kernel[2]` in Python: the cores of a logical core.
fn check_grid(args: &KernelArgs) -> Result<(), Failure> {
    match args.programs.as_ref().map(|grid| &*grid.0) {
        None | Some([GridAxis { sequential: 1, .. }]) => Ok(()),
        Some(_) => Err(Failure::Call(
            "--programs is for kernels of neuronxcc.nki: a kernel of the current language runs on 1 or 2 physical cores (--lnc), and loops over \
             everything else itself"
                .into(),
        )),
    }
}

/// A program in text form. Its source files are read, if they still exist, to show their lines.
fn lowered(args: &KernelArgs, text: &str, arguments: &CommandArguments) -> Result<Compilation, Failure> {
    let file = args.file.display();
    let compilation = Compilation::parse(&file.to_string(), text, args.as_written).map_err(Failure::Call)?;
    let Some(program) = &compilation.program else { return Ok(compilation) };
    if let Some(wanted) = args.target
        && wanted != program.target
    {
        return Err(Failure::Call(format!(
            "`{file}` was compiled for {}; compile the kernel again for {wanted}",
            program.target
        )));
    }
    let tensors = &arguments.resolve()?.tensors;
    for tensor in tensors {
        if !program.inputs.iter().any(|i| *i.name == *tensor.name()) {
            return Err(Failure::Call(format!("`{file}` has no input called `{}`{}", tensor.name(), listing(program))));
        }
    }
    for input in &program.inputs {
        let wanted = program.tensor(input.tensor);
        let Some(given) = tensors.iter().find(|t| *t.name() == *input.name) else {
            return Err(Failure::Call(format!("`{file}` needs input `{}`{}", input.name, listing(program))));
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
    Ok(compilation)
}

/// The inputs of a program in the syntax of `--arg`.
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

/// The error for a call that matches no kernel of the file, in terms of the command line.
pub(crate) fn refusal(command: &str, args: &KernelArgs, refused: Refused) -> Failure {
    let file = args.file.display();
    let names = |kernels: &[KernelInfo]| kernels.iter().map(|k| &*k.name).collect::<Vec<_>>().join(", ");
    Failure::Call(match refused {
        Refused::NoKernel => format!(
            "`{file}` has no kernel: it defines no function; a script that calls kernels runs with `python {file}`, \
             or here if its calls are under `if __name__ == \"__main__\":`"
        ),
        Refused::SeveralKernels(kernels) => {
            let option = if args.of_job { "`kernel`" } else { "--kernel" };
            format!("`{file}` has {} kernels; choose one with {option}: {}", kernels.len(), names(&kernels))
        }
        Refused::UnknownKernel { wanted, kernels } => {
            let why = match std::fs::read_to_string(&args.file).is_ok_and(|text| is_inside(&text, &wanted)) {
                true => "; a function or class of the file defines it, so call it from Python".to_owned(),
                false => suggestion(&wanted, kernels.iter().map(|k| &*k.name)),
            };
            format!("`{file}` has no kernel called `{wanted}`; it has {}{why}", names(&kernels))
        }
        Refused::Arguments { kernel, unknown, missing } => misfit(command, args, &kernel, &unknown, &missing),
        Refused::Value(why) => why,
    })
}

/// Whether the text defines a function of this name, but not at its top level.
fn is_inside(text: &str, name: &str) -> bool {
    let defines = |line: &str| line.strip_prefix("def ").is_some_and(|rest| rest.split('(').next() == Some(name));
    text.lines().any(|line| line.starts_with([' ', '\t']) && defines(line.trim_start()))
}

/// The error for a sweep name that is neither a parameter nor a constant.
pub(crate) fn no_axis(name: &str, kernel: &KernelInfo, file: &Path, text: &str) -> String {
    let params: Vec<&str> = kernel.params.iter().map(|p| p.name.as_str()).collect();
    let constants = nki_frontend::constants(text);
    let known = params.iter().copied().chain(constants.iter().map(|c| c.name.as_str()));
    format!(
        "{name}: neither a parameter of kernel `{}` ({}) nor a constant assigned in one line at the top level of `{}`{}",
        kernel.name,
        params.join(", "),
        file.display(),
        suggestion(name, known)
    )
}

/// `; did you mean ...?` if one of the names is similar.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    slugs::nearest_of(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Unknown and missing arguments, with the signature and an example of a valid command.
fn misfit(command: &str, args: &KernelArgs, kernel: &KernelInfo, unknown: &[String], missing: &[String]) -> String {
    let mut message = String::new();
    if !unknown.is_empty() {
        message += &format!("kernel `{}` has no parameter called {}", kernel.name, quoted(unknown));
        let free = kernel.params.iter().map(|p| &*p.name).filter(|p| args.args.iter().all(|(given, _)| given != p));
        let of_rank = unknown[0].split_once('@').filter(|(name, _)| kernel.params.iter().any(|p| p.name == *name));
        if of_rank.is_some() && !args.of_job {
            message += "; NAME@RANK is the argument of one rank, and needs --ranks";
        } else if let Some(near) = slugs::nearest_of(&unknown[0], free) {
            message += &format!("; did you mean `{near}`?");
        }
    }
    if !missing.is_empty() {
        if !message.is_empty() {
            message += if args.of_job { "; " } else { "\nerror: " };
        }
        let s = if missing.len() == 1 { "" } else { "s" };
        message += &format!("kernel `{}` needs argument{s} {}", kernel.name, quoted(missing));
    }
    if args.of_job {
        return message + &format!("; its signature is {}", signature(kernel));
    }
    message += &format!("\n  signature: {}", signature(kernel));
    let text = Disk.read(&args.file).unwrap_or_default();
    let lines_above = run_line::is_above(kernel, &text);
    message += &format!("\n  example:   {}", example(command, args, kernel, &run_line::supplied(kernel, &text)));
    message += if lines_above {
        "\n  the `# nki-sim:` comment above the kernel counts only without --arg: repeat what it supplies"
    } else {
        "\n  or, above the kernel, a comment such as `# nki-sim: x=float32[128,512]`, for every call without --arg"
    };
    message +=
        "\n  a value is FILE.npy, dtype[d0,d1,...][:normal|uniform|zeros|ones|arange][:SEED], or a Python literal";
    message
}

fn quoted(names: &[String]) -> String {
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

/// A call with all arguments: from the command line, else from the run lines, else generated.
fn example(command: &str, args: &KernelArgs, kernel: &KernelInfo, supplied: &[(String, String)]) -> String {
    let mut words = vec!["nki-sim".to_string(), command.into(), args.file.display().to_string()];
    if let Some(name) = &args.kernel {
        words.extend(["--kernel".into(), name.clone()]);
    }
    for p in &kernel.params {
        let given = args.args.iter().chain(supplied).find(|(n, _)| *n == p.name).map(|(_, v)| v.as_str());
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
