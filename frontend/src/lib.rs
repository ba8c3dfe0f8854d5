//! NKI source to a program: parse, specialise, and report what is wrong on the way.
//!
//! Nothing here computes tensor values, touches files (a [`Loader`] does) or fails: every entry returns a value and
//! diagnostics.

mod api;
mod eval;
mod parse;
mod syntax;

use std::path::Path;

use nki_diag::{Diagnostic, SourceMap, Span};
use nki_isa::{DType, Program, Target};

/// Reads source files.
pub trait Loader: Sync {
    /// The text of a file.
    fn read(&self, path: &Path) -> std::io::Result<String>;
}

/// An argument of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// A tensor in HBM; its contents do not matter here.
    Tensor {
        /// Extents.
        shape: Vec<usize>,
        /// Element type.
        dtype: DType,
    },
    /// `None`
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(String),
    /// A tuple.
    Tuple(Vec<Arg>),
    /// A list.
    List(Vec<Arg>),
    /// A dict with string keys.
    Dict(Vec<(String, Arg)>),
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
    /// Statements, iterations and calls after which evaluation is given up.
    pub step_limit: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { kernel: None, target: Target::Trn2, lnc: 1, strict: false, step_limit: 50_000_000 }
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
}

/// Finds the kernels of a file: functions decorated with `nki.jit`, or every top-level function if there are none.
pub fn kernels(path: &Path, loader: &dyn Loader) -> Listing {
    eval::kernel::list(path, loader)
}

/// Specialises a kernel for these arguments.
pub fn compile(path: &Path, loader: &dyn Loader, args: &[(String, Arg)], options: &Options) -> Compiled {
    eval::kernel::compile(path, loader, args, options)
}
