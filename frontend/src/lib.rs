//! NKI source to a program: parse, specialise, and report what is wrong on the way.
//!
//! Nothing here computes tensor values, touches files (a [`Loader`] does) or fails: every entry returns a value and
//! diagnostics.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod api;
mod eval;
mod host;
mod parse;
mod syntax;

use std::path::Path;

use nki_diag::{Diagnostic, SourceMap, Span};
use nki_isa::{Program, Target};

pub use api::beta2::names::{ApiKind, ApiName, api_names, tile_size};
pub use host::{
    Arg, Host, HostArray, HostAttribute, HostClass, HostClassKind, HostDefault, HostDtype, HostField, HostFunction,
    HostObject, Identity,
};

/// Reads source files.
pub trait Loader: Sync {
    /// The text of a file.
    fn read(&self, path: &Path) -> std::io::Result<String>;
    /// The array in a `.npy` file, for `nl.shared_constant("file.npy")`.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn array(&self, path: &Path) -> Result<HostArray, String> {
        Err(format!("`{}`: arrays are not read here", path.display()))
    }
}

/// What to compile and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The kernel's name; needed when the file has several.
    pub kernel: Option<String>,
    /// The machine.
    pub target: Target,
    /// Physical cores per logical core: 1 or 2.
    pub lnc: u32,
    /// Report what the official compiler would reject.
    pub strict: bool,
    /// Instructions that wait for others, both by name: what `with_schedule` of a live kernel was given.
    pub schedule: Vec<(String, String)>,
    /// Statements, iterations and calls after which evaluation is given up.
    pub step_limit: u64,
    /// Memory that specialisation may use.
    pub memory: nki_diag::memory::Limit,
    /// A tensor that is larger than SBUF or PSUM is a warning.
    pub over_capacity: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kernel: None,
            target: Target::DEFAULT,
            lnc: 1,
            strict: false,
            schedule: Vec::new(),
            step_limit: 50_000_000,
            memory: nki_diag::memory::Limit::NONE,
            over_capacity: false,
        }
    }
}

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
    /// Its parameters.
    pub params: Vec<Param>,
    /// Its name in the source.
    pub span: Span,
    /// What its decorator says: `@nki.jit(platform_target="trn1")`.
    pub target: Option<Target>,
}

/// The kernels of a file.
#[derive(Debug)]
pub struct Listing {
    /// In source order.
    pub kernels: Vec<KernelInfo>,
    /// What is wrong with the file.
    pub diagnostics: Vec<Diagnostic>,
    /// Files read.
    pub sources: SourceMap,
}

/// The outcome of a compilation.
#[derive(Debug)]
pub struct Compiled {
    /// The program, unless there were errors.
    pub program: Option<Program>,
    /// Findings.
    pub diagnostics: Vec<Diagnostic>,
    /// Files read.
    pub sources: SourceMap,
    /// Lines printed at specialisation.
    pub prints: Vec<String>,
    /// What the kernel returned.
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

/// Finds the kernels of a file: functions decorated with `nki.jit`, or every top-level function if there are none.
pub fn kernels(path: &Path, loader: &dyn Loader) -> Listing {
    kernels_within(path, loader, nki_diag::memory::Limit::NONE)
}

/// As [`kernels`]; the code at the top level of the file may use so much memory.
pub fn kernels_within(path: &Path, loader: &dyn Loader, memory: nki_diag::memory::Limit) -> Listing {
    eval::kernel::list(path, loader, memory)
}

/// Specialises a kernel for these arguments.
pub fn compile(path: &Path, loader: &dyn Loader, args: &[(String, Arg)], options: &Options) -> Compiled {
    eval::kernel::compile(path, loader, args, options)
}

/// Specialises a function of a live host for these arguments. `options.kernel` is not looked at.
pub fn compile_live(host: &dyn Host, function: &Arg, args: &[(String, Arg)], options: &Options) -> Compiled {
    eval::kernel::compile_live(host, function, args, options)
}

/// Python's name of the exception class that a diagnostic of the evaluator corresponds to.
pub fn exception_class(slug: &str) -> &'static str {
    eval::exception_class(slug)
}

/// Modules of Python's library, and NumPy, of which the evaluator knows the names that kernels use.
pub fn python_modules() -> &'static [&'static str] {
    eval::PYTHON_MODULES
}
