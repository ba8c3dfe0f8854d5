//! NKI source to a program: parse, specialise, and report diagnostics.
//!
//! This crate does not compute tensor values or access files (a [`Loader`] does), and does not fail: every entry returns a value and
//! diagnostics.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod build;
mod constants;
mod dialect;
mod entry;
mod eval;
mod host;
mod main_block;
mod migrate;
mod syntax;
pub mod trace;

use std::path::Path;

use nki_isa::Target;

pub use constants::{Constant, constants};
pub use dialect::beta2::collectives::partition;
pub use dialect::beta2::names::{ApiKind, ApiName, tile_size};
pub use dialect::beta2::reference;
pub use dialect::common::kernel::unknown_option;
pub use dialect::{api_names, usual_import};
pub use entry::{Arguments, Compiled, KernelInfo, Listing, Param, Refused, Returned, compile, compile_live, kernels};
pub use host::{
    Arg, Host, HostArray, HostAttribute, HostClass, HostClassKind, HostDataclass, HostDefault, HostDtype, HostEnum,
    HostField, HostFunction, HostMixin, HostObject, Identity,
};
pub use main_block::has_main_block;
pub use migrate::{Api, Change, Migration, migrate};

/// Reads source files.
pub trait Loader: Sync {
    /// The text of a file.
    fn read(&self, path: &Path) -> std::io::Result<String>;
    /// The array in a `.npy` file, for `nl.shared_constant("file.npy")`.
    ///
    /// # Errors
    /// If it cannot be read.
    fn array(&self, path: &Path) -> Result<HostArray, String> {
        Err(format!("`{}`: arrays are not read here", path.display()))
    }
}

/// An axis of a launch grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridAxis {
    /// Programs that a core runs one after the other.
    pub sequential: u32,
    /// Cores of the axis: 1, or the cores of the logical core (`nl.nc(2)`).
    pub cores: u32,
    /// Whether neighbouring programs run on one core (`nl.nc(2) * n`) or on different ones (`n * nl.nc(2)`).
    pub cores_outside: bool,
}

impl GridAxis {
    /// Programs along the axis.
    pub fn count(self) -> u32 {
        self.sequential * self.cores
    }

    /// Position of the `step`-th program of a core.
    fn position(self, core: u32, step: u32) -> u32 {
        if self.cores == 1 {
            step
        } else if self.cores_outside {
            core * self.sequential + step
        } else {
            step * self.cores + core
        }
    }
}

/// The programs of a grid that a core runs, in order, each as its position along the axes. Without a grid there is one program.
fn programs_of(grid: &[GridAxis], core: u32) -> Vec<Vec<u32>> {
    let mut found = vec![Vec::new()];
    for axis in grid {
        let along = |before: Vec<u32>| {
            (0..axis.sequential).map(move |step| [&before[..], &[axis.position(core, step)]].concat())
        };
        found = found.into_iter().flat_map(along).collect();
    }
    found
}

/// Options of a compilation.
#[derive(Debug, Clone)]
pub struct Options {
    /// The kernel's name; required if the file has several.
    pub kernel: Option<String>,
    /// The machine.
    pub target: Target,
    /// Whether the target of a kernel's decorator (`@nki.jit(platform_target="trn1")`) has precedence.
    pub decorated_target: bool,
    /// Physical cores per logical core: 1 or 2.
    pub lnc: u32,
    /// The launch grid of a kernel for Beta 1: the programs along each axis. Empty without one.
    pub grid: Vec<GridAxis>,
    /// Whether files are written for Beta 1 (`neuronxcc.nki`), regardless of their imports.
    pub beta1: bool,
    /// Whether files that import both languages have the older one.
    pub older_of_both: bool,
    /// Whether the middle end of the kernel's compiler is disabled, if its dialect has one.
    pub as_written: bool,
    /// Whether to report code that the official compiler would reject.
    pub strict: bool,
    /// Pairs of a later and an earlier instruction, both by name: the argument of `with_schedule` of a live kernel.
    pub schedule: Vec<(String, String)>,
    /// `compile_config` and `specialization_config` of a live kernel.
    pub config: [Arg; 2],
    /// Maximum number of statements, iterations and calls of an evaluation.
    pub step_limit: u64,
    /// Memory that specialisation may use.
    pub memory: nki_diag::memory::Limit,
    /// Whether a tensor larger than SBUF or PSUM is a warning.
    pub over_capacity: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kernel: None,
            target: Target::DEFAULT,
            decorated_target: false,
            lnc: 1,
            grid: Vec::new(),
            beta1: false,
            older_of_both: false,
            as_written: false,
            strict: false,
            schedule: Vec::new(),
            config: [Arg::None, Arg::None],
            step_limit: 50_000_000,
            memory: nki_diag::memory::Limit::NONE,
            over_capacity: false,
        }
    }
}

/// Python's exception class for a diagnostic of the evaluator.
pub fn exception_class(slug: &str) -> &'static str {
    eval::exception_class(slug)
}

/// Modules of Python's library, and NumPy, whose names used in kernels are supported.
pub fn python_modules() -> &'static [&'static str] {
    eval::PYTHON_MODULES
}
