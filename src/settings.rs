//! Settings from flags and from the environment variables that NKI users already set. Flags take precedence.

use std::env::{self, VarError};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use nki_isa::arch::Target;
use nki_isa::names::Named;
use nki_sim_core::exec::UnwrittenValue;
use nki_sim_core::place::Capacity;
use nki_sim_core::timing::Params;

/// Variables that name the target; the first one that is set wins.
const TARGET_VARIABLES: [&str; 2] = ["NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION"];

/// `NKI_PRECISE_FP=0` computes in fp32 throughout.
const PRECISE: &str = "NKI_PRECISE_FP";

/// With `zero`, unwritten memory reads as zero.
const UNWRITTEN: &str = "NKI_SIM_UNWRITTEN";

/// With `warn`, a kernel that does not fit into SBUF or PSUM is only a warning.
const CAPACITY: &str = "NKI_SIM_CAPACITY";

/// Physical cores per logical core, if a Python call does not specify them.
const LOGICAL_CORES: &str = "NEURON_LOGICAL_NC_CONFIG";

pub(crate) fn variable(name: &str) -> Result<Option<String>, String> {
    match env::var(name) {
        Ok(v) if v.trim().is_empty() => Ok(None),
        Ok(v) => Ok(Some(v)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("environment variable {name} is not UTF-8")),
    }
}

/// The target: the flag, else a variable, else trn2.
pub fn target(flag: Option<Target>) -> Result<Target, String> {
    if let Some(target) = flag {
        return Ok(target);
    }
    for name in TARGET_VARIABLES {
        if let Some(value) = variable(name)? {
            return Target::from_name(value.trim()).ok_or_else(|| {
                format!("environment variable {name}: `{value}` is not a target; the targets are {}", Target::NAMES)
            });
        }
    }
    Ok(Target::DEFAULT)
}

/// Whether values are rounded to their dtype at each write.
pub fn precise_fp() -> Result<bool, String> {
    match variable(PRECISE)?.as_deref().map(str::trim) {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(other) => Err(format!("environment variable {PRECISE}: `{other}` is neither 0 nor 1")),
    }
}

/// The value of unwritten memory.
pub fn unwritten() -> Result<UnwrittenValue, String> {
    match variable(UNWRITTEN)?.as_deref().map(str::trim) {
        None | Some("nan") => Ok(UnwrittenValue::Sentinel),
        Some("zero") => Ok(UnwrittenValue::Zero),
        Some(other) => Err(format!("environment variable {UNWRITTEN}: `{other}` is neither nan nor zero")),
    }
}

/// Physical cores per logical core: from a variable, else 1.
///
/// # Errors
/// If the variable is neither 1 nor 2.
pub fn logical_cores() -> Result<u32, String> {
    match variable(LOGICAL_CORES)?.as_deref().map(str::trim) {
        None | Some("1") => Ok(1),
        Some("2") => Ok(2),
        Some(other) => Err(format!("{LOGICAL_CORES}='{other}': a logical core has 1 or 2 physical cores")),
    }
}

/// The setting of a caller of the library.
static CAPACITY_CONFIGURED: Mutex<Option<Capacity>> = Mutex::new(None);

/// Sets for this process the handling of an SBUF or PSUM that is too small; `None` resets it.
pub fn configure_capacity(capacity: Option<Capacity>) {
    *CAPACITY_CONFIGURED.lock().unwrap_or_else(PoisonError::into_inner) = capacity;
}

/// The handling of an SBUF or PSUM that is too small: the option, else the value of [`configure_capacity`], else a variable, else an error.
///
/// # Errors
/// If the variable has an invalid value.
pub fn capacity(option: Option<Capacity>) -> Result<Capacity, String> {
    let configured = *CAPACITY_CONFIGURED.lock().unwrap_or_else(PoisonError::into_inner);
    match (option.or(configured), variable(CAPACITY)) {
        (Some(set), _) => Ok(set),
        (None, Ok(Some(word))) => word.parse().map_err(|e| format!("environment variable {CAPACITY}: {e}")),
        (None, Ok(None)) => Ok(Capacity::Error),
        (None, Err(wrong)) => Err(wrong),
    }
}

/// The step limit set by a caller of the library.
static MAX_STEPS: Mutex<Option<u64>> = Mutex::new(None);

/// Sets the step limit of kernels for this process; `None` resets it.
pub fn configure_max_steps(steps: Option<u64>) {
    *MAX_STEPS.lock().unwrap_or_else(PoisonError::into_inner) = steps;
}

/// The limit set by [`configure_max_steps`].
pub fn max_steps() -> Option<u64> {
    *MAX_STEPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes of timing parameters.
#[derive(Debug, Clone, Default)]
pub struct ParamChanges {
    /// Instructions stay in program order (`--schedule program`).
    pub program_order: bool,
    /// The definition of the latency (`--measure`): `profile` or `device`.
    pub measure: Option<String>,
    /// A TOML file with parameters (`--params`).
    pub file: Option<PathBuf>,
    /// Names and values (`--set`).
    pub set: Vec<(String, String)>,
}

impl ParamChanges {
    /// The timing parameters of `target` with these changes: first those of the file, then each of `set`.
    ///
    /// # Errors
    /// If the file cannot be read, or a name or a value is invalid; with the option.
    pub fn params(&self, target: Target) -> Result<Params, String> {
        let mut params = Params::of(target);
        if let Some(path) = &self.file {
            let text = crate::memory::read_text(path).map_err(|e| match e.kind() {
                ErrorKind::InvalidData => format!("--params `{}`: the file is not UTF-8 text", path.display()),
                _ => format!("--params `{}`: {e}", path.display()),
            })?;
            params.overlay(&text).map_err(|e| format!("--params `{}`: {e}", path.display()))?;
        }
        if self.program_order {
            params.set("compiler.tensor_window", 1.0).map_err(|e| format!("--schedule program: {e}"))?;
        }
        if let Some(measure) = &self.measure {
            params.set_text("kernel.measure", measure).map_err(|e| format!("--measure {measure}: {e}"))?;
        }
        for (at, (name, value)) in self.set.iter().enumerate() {
            if self.set[..at].iter().any(|(known, _)| known == name) {
                return Err(format!("--set {name} is given twice"));
            }
            params.set_text(name, value).map_err(|e| format!("--set {name}: {e}"))?;
        }
        Ok(params)
    }
}
