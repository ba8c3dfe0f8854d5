//! The entry of the crate: from a file, or a function of a live host, to a program.
//!
//! A compilation has one entry: it evaluates the file, chooses the kernel, checks its argument names, requests the values and specialises it.

use std::borrow::Cow;
use std::path::Path;

use nki_diag::memory::Limit;
use nki_diag::{Diagnostic, SourceMap, Span, stop};
use nki_isa::{Program, Target};

use crate::dialect;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::kernel::Candidate;
use crate::eval::value::Value;
use crate::eval::{Interp, STACK, nearest};
use crate::syntax::sym;
use crate::{Arg, Host, Loader, Options};

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Source text of its default.
    pub default: Option<String>,
    /// Source text of its annotation.
    pub annotation: Option<String>,
}

/// A kernel of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// Its parameters with one value each, without `*args` and `**kwargs`.
    pub params: Vec<Param>,
    /// Its name and parameters, without annotations: `k(x, n=2)`.
    pub signature: String,
    /// Its name in the source.
    pub span: Span,
    /// The machine of its decorator: `@nki.jit(platform_target="trn1")`.
    pub target: Option<Target>,
    /// Whether the older compiler, that of `neuronxcc.nki`, compiles it.
    pub older_compiler: bool,
    /// Whether the middle end of that compiler is disabled for it.
    pub as_written: bool,
    /// Whether a decorator declares it as a kernel; in a file without such decorators, undecorated functions count as kernels.
    pub decorated: bool,
}

impl KernelInfo {
    /// Checks that each of the given names is a parameter, and that no parameter without a default is missing.
    ///
    /// # Errors
    /// [`Refused::Arguments`].
    pub fn check(&self, given: &[&str]) -> Result<(), Refused> {
        let unknown: Vec<String> =
            given.iter().filter(|n| !self.params.iter().any(|p| p.name == **n)).map(|n| (*n).to_owned()).collect();
        let missing: Vec<String> = self
            .params
            .iter()
            .filter(|p| p.default.is_none() && !given.contains(&p.name.as_str()))
            .map(|p| p.name.clone())
            .collect();
        if unknown.is_empty() && missing.is_empty() {
            return Ok(());
        }
        Err(Refused::Arguments { kernel: Box::new(self.clone()), unknown, missing })
    }
}

/// The kernels of a file.
#[derive(Debug, Default)]
pub struct Listing {
    /// In source order.
    pub kernels: Vec<KernelInfo>,
    /// Problems of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// Files read.
    pub sources: SourceMap,
}

impl Listing {
    /// The kernel of this name; without a name, the only one.
    ///
    /// # Errors
    /// If there is no such kernel, or there are several to choose from.
    pub fn choose(&self, wanted: Option<&str>) -> Result<&KernelInfo, Refused> {
        choose(&self.kernels, wanted).map(|at| &self.kernels[at])
    }
}

/// The reason why a call fits no kernel. The file itself is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The file has no kernel.
    NoKernel,
    /// It has several, and no name was given.
    SeveralKernels(Vec<KernelInfo>),
    /// It has none of this name.
    UnknownKernel {
        /// The name.
        wanted: String,
        /// The kernels that it has.
        kernels: Vec<KernelInfo>,
    },
    /// The names of the arguments are not those of the parameters.
    Arguments {
        /// The kernel.
        kernel: Box<KernelInfo>,
        /// Names without a parameter.
        unknown: Vec<String>,
        /// Parameters without a default or a value.
        missing: Vec<String>,
    },
    /// The caller has no value for an argument, for this reason ([`Arguments::values`]).
    Value(String),
}

impl Refused {
    /// The error as a diagnostic about `file`. It names no option of a command, since these differ between callers.
    fn diagnostic(&self, file: &Path) -> Diagnostic {
        let file = file.display();
        let names = |kernels: &[KernelInfo]| kernels.iter().map(|k| &*k.name).collect::<Vec<_>>().join(", ");
        match self {
            Refused::NoKernel => Diagnostic::error("no-kernel", format!("{file} defines no kernel"))
                .help("decorate the kernel function with `@nki.jit`"),
            Refused::SeveralKernels(kernels) => {
                let text = format!("{file} has {} kernels: which one?", kernels.len());
                let first = kernels.iter().take(6);
                first
                    .fold(Diagnostic::error("which-kernel", text), |d, kernel| d.with(kernel.span, "this one?"))
                    .help(format!("choose one of {}", names(kernels)))
            }
            Refused::UnknownKernel { wanted, kernels } => {
                let diagnostic = Diagnostic::error("unknown-kernel", format!("{file} has no function `{wanted}`"));
                match nearest(wanted, kernels.iter().map(|k| &*k.name)) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help(format!("it has: {}", names(kernels))),
                }
            }
            Refused::Arguments { kernel, unknown, missing } => {
                let name = &kernel.name;
                let Some(first) = unknown.first() else {
                    let what = if missing.len() == 1 { "a value for its argument" } else { "values for its arguments" };
                    let list: Vec<String> = missing.iter().map(|n| format!("`{n}`")).collect();
                    let text = format!("kernel `{name}` needs {what} {}", list.join(", "));
                    return Diagnostic::error("missing-argument", text).at(kernel.span, &*kernel.signature);
                };
                let text = format!("kernel `{name}` has no parameter `{first}`");
                let diagnostic = Diagnostic::error("unknown-argument", text).at(kernel.span, &*kernel.signature);
                match nearest(first, kernel.params.iter().map(|p| &*p.name)) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic,
                }
            }
            Refused::Value(why) => Diagnostic::error("missing-argument", why.clone()),
        }
    }
}

/// The arguments of a kernel. Their names are checked first: a value may have to be read from a file.
pub trait Arguments: Sync {
    /// Their names.
    fn names(&self) -> Vec<&str>;

    /// Names and values.
    ///
    /// # Errors
    /// For a value that is not available.
    fn values(&self) -> Result<Cow<'_, [(String, Arg)]>, String>;
}

impl<T: AsRef<[(String, Arg)]> + Sync + ?Sized> Arguments for T {
    fn names(&self) -> Vec<&str> {
        self.as_ref().iter().map(|(name, _)| name.as_str()).collect()
    }

    fn values(&self) -> Result<Cow<'_, [(String, Arg)]>, String> {
        Ok(Cow::Borrowed(self.as_ref()))
    }
}

/// The outcome of a compilation.
#[derive(Debug)]
pub struct Compiled {
    /// The kernel; none if the file cannot be evaluated, or has no such kernel.
    pub kernel: Option<KernelInfo>,
    /// The target of the evaluation.
    pub target: Target,
    /// The program, unless there were errors.
    pub program: Option<Program>,
    /// The reason if the call fits no kernel: the last of the diagnostics, as data.
    pub refused: Option<Refused>,
    /// Findings.
    pub diagnostics: Vec<Diagnostic>,
    /// Files read.
    pub sources: SourceMap,
    /// Lines printed at specialisation.
    pub prints: Vec<String>,
    /// The structure of the kernel's return value.
    pub returned: Returned,
}

/// The shape of a kernel's result around its output tensors.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Returned {
    /// `None`
    #[default]
    None,
    /// An output, by its position in [`Program::outputs`].
    Output(usize),
    /// A tuple.
    Tuple(Vec<Returned>),
    /// A list.
    List(Vec<Returned>),
    /// A dict with the printed keys.
    Dict(Vec<(String, Returned)>),
}

/// Finds the kernels of a file: functions decorated with `nki.jit`, or, if there are none, the functions that no other function of the file calls;
/// and the function `wanted`. `memory` limits the memory of the code at its top level.
pub fn kernels(path: &Path, loader: &dyn Loader, wanted: Option<&str>, memory: Limit) -> Listing {
    let options = Options { memory, ..Options::default() };
    let listing = on_big_stack(|| {
        let mut interp = dialect::evaluation(loader, &options);
        let found = interp.load_main(path).map(|module| interp.candidates(&module, wanted)).unwrap_or_default();
        let kernels = found.iter().map(|c| interp.describe(c)).collect();
        Listing { kernels, diagnostics: interp.diagnostics, sources: interp.sources }
    });
    listing.unwrap_or_else(|| Listing { diagnostics: vec![no_thread()], ..Listing::default() })
}

/// Specialises a kernel of a file for these arguments.
pub fn compile(path: &Path, loader: &dyn Loader, args: &(impl Arguments + ?Sized), options: &Options) -> Compiled {
    let compiled = on_big_stack(|| {
        evaluate(path, loader, args, options).unwrap_or_else(|Retarget(target)| {
            let options = Options { target, decorated_target: false, ..options.clone() };
            evaluate(path, loader, args, &options).unwrap_or_else(|_| no_compilation(&options))
        })
    });
    compiled.unwrap_or_else(|| no_compilation(options))
}

/// The kernel's decorator names another machine. The top level of the file may depend on the machine, so it has to be evaluated again for it.
struct Retarget(Target);

/// Evaluates a file and specialises its kernel.
fn evaluate(
    path: &Path,
    loader: &dyn Loader,
    args: &(impl Arguments + ?Sized),
    options: &Options,
) -> Result<Compiled, Retarget> {
    let mut interp = dialect::evaluation(loader, options);
    let Some(module) = interp.load_main(path) else { return Ok(ended(interp, None, Ok(None))) };
    let candidates = interp.candidates(&module, options.kernel.as_deref());
    let kernels: Vec<KernelInfo> = candidates.iter().map(|c| interp.describe(c)).collect();
    let at = match choose(&kernels, options.kernel.as_deref()) {
        Ok(at) => at,
        Err(refused) => return Ok(refusing(interp, None, refused, path)),
    };
    match kernels[at].target {
        Some(named) if options.decorated_target && named != options.target => Err(Retarget(named)),
        _ => Ok(specialise(interp, &candidates[at], args, path)),
    }
}

/// Specialises a function of a live host for these arguments. `options.kernel` and a decorator's target are ignored.
pub fn compile_live(host: &dyn Host, function: &Arg, args: &[(String, Arg)], options: &Options) -> Compiled {
    let compiled = on_big_stack(|| {
        let mut interp = dialect::evaluation(&NoFiles, options);
        interp.host = Some(host);
        let found = live_kernel(&mut interp, function, options);
        match found {
            Ok(candidate) => {
                let file = candidate.function.module.path.clone();
                specialise(interp, &candidate, args, &file)
            }
            Err(raise) => ended(interp, None, Err(raise)),
        }
    });
    compiled.unwrap_or_else(|| no_compilation(options))
}

/// The host's kernel function, with the schedule of the caller.
fn live_kernel(interp: &mut Interp<'_>, function: &Arg, options: &Options) -> EvalResult<Candidate> {
    let function = match interp.take_over(function, None, Span::default())? {
        Value::Kernel(ref kernel) => kernel.function.clone(),
        other => other,
    };
    match &function {
        Value::Function(function) => {
            let edges =
                options.schedule.iter().map(|(later, earlier)| (later.as_str().into(), earlier.as_str().into()));
            let name = match interp.host_attr(function, sym::name, function.def.name_span)? {
                Some(Value::Str(ref name)) => name.to_string(),
                _ => interp.name(function.def.name).to_string(),
            };
            let config = interp.take_config(&options.config, function.def.name_span)?;
            Ok(Candidate {
                name,
                function: function.clone(),
                schedule: edges.collect(),
                target: None,
                config,
                as_written: options.as_written,
                decorated: true,
            })
        }
        Value::Host(host) => Err(interp.host_error(host, Span::default())),
        other => {
            let text = format!("a kernel is a function, not {}", other.a_type());
            Err(Raise::new(Diagnostic::error("type-error", text)))
        }
    }
}

/// The position of the kernel of this name; without a name, of the only one.
fn choose(kernels: &[KernelInfo], wanted: Option<&str>) -> Result<usize, Refused> {
    match (wanted, kernels) {
        (_, []) => Err(Refused::NoKernel),
        (None, [_]) => Ok(0),
        (None, _) => Err(Refused::SeveralKernels(kernels.to_vec())),
        (Some(wanted), _) => kernels
            .iter()
            .position(|k| k.name == wanted)
            .ok_or_else(|| Refused::UnknownKernel { wanted: wanted.to_owned(), kernels: kernels.to_vec() }),
    }
}

/// Checks the arguments of the chosen kernel and specialises it.
fn specialise(
    mut interp: Interp<'_>,
    candidate: &Candidate,
    args: &(impl Arguments + ?Sized),
    file: &Path,
) -> Compiled {
    let kernel = interp.describe(candidate);
    let mut names = args.names();
    if interp.host.is_some() && candidate.function.def.takes_rest() {
        names.retain(|name| kernel.params.iter().any(|p| p.name == *name));
    }
    let values = kernel.check(&names).and_then(|()| args.values().map_err(Refused::Value));
    match values {
        Ok(values) => {
            let outcome = interp.run_kernel(candidate, &values).map(Some);
            ended(interp, Some(kernel), outcome)
        }
        Err(refused) => refusing(interp, Some(kernel), refused, file),
    }
}

/// The outcome of a finished evaluation.
fn ended(
    mut interp: Interp<'_>,
    kernel: Option<KernelInfo>,
    outcome: EvalResult<Option<(Program, Returned)>>,
) -> Compiled {
    let (mut program, mut returned) = (None, Returned::None);
    match outcome {
        Ok(Some((done, shape))) => (program, returned) = (Some(done), shape),
        Ok(None) => {}
        Err(raise) if raise.reported => {}
        Err(raise) => interp.diagnostics.push(raise.into_diagnostic()),
    }
    if interp.diagnostics.iter().any(Diagnostic::is_error) {
        program = None;
    }
    let prints = interp.take_prints();
    Compiled {
        kernel,
        target: interp.options.target,
        program,
        refused: None,
        diagnostics: interp.diagnostics,
        sources: interp.sources,
        prints,
        returned,
    }
}

/// The outcome of a call that fits no kernel.
fn refusing(mut interp: Interp<'_>, kernel: Option<KernelInfo>, refused: Refused, file: &Path) -> Compiled {
    interp.diagnostics.push(refused.diagnostic(file));
    Compiled { refused: Some(refused), ..ended(interp, kernel, Ok(None)) }
}

/// The loader of a live host's kernels, which read everything from the host.
struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        Err(std::io::Error::new(std::io::ErrorKind::NotFound, path.display().to_string()))
    }
}

/// Runs on a thread with a stack large enough for deep recursion; `None` if the thread does not start.
fn on_big_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    let stop = stop::current();
    let run = || stop::within(stop, run);
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("frontend".into()).stack_size(STACK).spawn_scoped(scope, run).ok()?;
        match thread.join() {
            Ok(value) => Some(value),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn no_thread() -> Diagnostic {
    Diagnostic::error("no-thread", "no thread could be started for the evaluation")
}

fn no_compilation(options: &Options) -> Compiled {
    Compiled {
        kernel: None,
        target: options.target,
        program: None,
        refused: None,
        diagnostics: vec![no_thread()],
        sources: SourceMap::new(),
        prints: Vec::new(),
        returned: Returned::None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// One file in memory, which counts how often it is read.
    struct Counted(&'static str, AtomicUsize);

    impl Loader for Counted {
        fn read(&self, path: &Path) -> std::io::Result<String> {
            if path != Path::new("k.py") {
                return Err(std::io::ErrorKind::NotFound.into());
            }
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(self.0.to_owned())
        }
    }

    const SOURCE: &str = "\
import nki
import nki.isa as nisa
VERSION = nisa.get_nc_version()
@nki.jit(platform_target='trn1')
def old(x, n=2):
    print(VERSION == nisa.nc_version.gen2, n)
@nki.jit
def new(x):
    print(VERSION == nisa.nc_version.gen2)
";

    fn compiled(kernel: &str, args: &[(String, Arg)], decorated_target: bool) -> (Compiled, usize) {
        let file = Counted(SOURCE, AtomicUsize::new(0));
        let options = Options { kernel: Some(kernel.into()), decorated_target, ..Options::default() };
        let compiled = compile(Path::new("k.py"), &file, args, &options);
        (compiled, file.1.into_inner())
    }

    #[test]
    fn a_file_is_evaluated_once() {
        let x = [("x".to_owned(), Arg::None)];
        let (new, reads) = compiled("new", &x, true);
        assert_eq!((reads, &*new.prints, new.target), (1, &["False".to_owned()][..], Target::DEFAULT));
        // It is evaluated again for another machine.
        let (old, reads) = compiled("old", &x, true);
        assert_eq!((reads, &*old.prints, old.target), (2, &["True 2".to_owned()][..], Target::OLDEST));
        let (old, reads) = compiled("old", &x, false);
        assert_eq!((reads, &*old.prints, old.target), (1, &["False 2".to_owned()][..], Target::DEFAULT));
    }

    #[test]
    fn a_call_that_fits_no_kernel_is_refused_as_data() {
        let refused = |kernel: &str, args: &[(String, Arg)]| compiled(kernel, args, false).0.refused;
        match refused("old", &[("m".to_owned(), Arg::None)]) {
            Some(Refused::Arguments { kernel, unknown, missing }) => {
                assert_eq!((&*kernel.signature, unknown, missing), ("old(x, n=2)", vec!["m".into()], vec!["x".into()]));
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(refused("older", &[]), Some(Refused::UnknownKernel { kernels, .. }) if kernels.len() == 2));
        let file = Counted(SOURCE, AtomicUsize::new(0));
        let listing = kernels(Path::new("k.py"), &file, None, Limit::NONE);
        assert!(matches!(listing.choose(None), Err(Refused::SeveralKernels(_))));
        assert_eq!(listing.choose(Some("new")).map(|k| k.name.as_str()), Ok("new"));
    }

    #[test]
    fn a_kernel_with_a_grid_is_no_kernel_of_its_own() {
        let source = "import neuronxcc.nki as nki\n@nki.jit\ndef inner(x):\n    return x\nfour = inner[4]\n";
        let listing = kernels(Path::new("k.py"), &Counted(source, AtomicUsize::new(0)), None, Limit::NONE);
        assert_eq!(listing.choose(None).map(|k| k.name.as_str()), Ok("inner"));
        assert!(matches!(listing.choose(Some("four")), Err(Refused::UnknownKernel { .. })));
    }

    /// Arguments whose values are unavailable.
    struct Unreadable;

    impl Arguments for Unreadable {
        fn names(&self) -> Vec<&str> {
            vec!["x"]
        }

        fn values(&self) -> Result<Cow<'_, [(String, Arg)]>, String> {
            Err("x.npy is not there".into())
        }
    }

    #[test]
    fn values_are_asked_for_once_the_names_fit() {
        let file = Counted("def k(x): pass\n", AtomicUsize::new(0));
        let compiled = compile(Path::new("k.py"), &file, &Unreadable, &Options::default());
        assert_eq!(compiled.refused, Some(Refused::Value("x.npy is not there".into())));
        let file = Counted("def k(y): pass\n", AtomicUsize::new(0));
        let compiled = compile(Path::new("k.py"), &file, &Unreadable, &Options::default());
        assert!(matches!(compiled.refused, Some(Refused::Arguments { .. })));
    }
}
