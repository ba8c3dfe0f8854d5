//! Levels of findings: from the command line, Python, the environment and the project file to the findings reported and the ones that fail a run.
//!
//! Every command and the Python package apply levels through [`Judge`], once per run, after all stages. Sources, in descending
//! precedence: flags or arguments of a call, Python configuration, the environment, the project file, the defaults of the mode.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use nki_diag::levels::Source;
use nki_diag::{Advice, Applied, Denied, Diagnostic, Level, Levels, Mode};
use nki_sim_core::exec::Checks;

use crate::{memory, project, settings};

/// Environment variables with comma lists, by level.
const VARIABLES: [(Level, &str); 3] =
    [(Level::Deny, "NKI_SIM_DENY"), (Level::Warn, "NKI_SIM_WARN"), (Level::Allow, "NKI_SIM_ALLOW")];

/// The lists of one source; each item is a slug, a class, `warnings`, or several of these separated by commas.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Lists {
    /// Findings that fail the run.
    pub deny: Vec<String>,
    /// Findings that are warnings.
    pub warn: Vec<String>,
    /// Findings that are dropped.
    pub allow: Vec<String>,
}

impl Lists {
    /// The source. `named` returns the user-visible name of a level's list: `--deny`.
    ///
    /// # Errors
    /// For an unknown word, an error that is to be allowed, or a word in two lists.
    pub fn source(&self, named: impl Fn(Level) -> String) -> Result<Source, String> {
        let mut source = Source::default();
        for (level, list) in [(Level::Deny, &self.deny), (Level::Warn, &self.warn), (Level::Allow, &self.allow)] {
            source.add(level, &named(level), list.iter().flat_map(|item| item.split(',')))?;
        }
        Ok(source)
    }
}

/// Applies levels to findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judge {
    /// Shared: each Python call of a kernel has a judge.
    levels: Arc<Levels>,
    /// Derived from the levels.
    includes_strict: bool,
    checks: Checks,
}

impl Default for Judge {
    /// The default levels of `nki-sim run`, independent of the environment and the project file.
    fn default() -> Self {
        static DEFAULT: LazyLock<Judge> = LazyLock::new(|| Judge::of(Levels::new(Mode::Run, false)));
        DEFAULT.clone()
    }
}

impl Judge {
    /// The levels for a kernel of `file`. `given` are the sources above the environment, in descending precedence; `strict` requests strict
    /// findings. Reads the environment and the project file.
    ///
    /// # Errors
    /// If a variable or the project file is invalid.
    pub fn new(mode: Mode, strict: bool, given: Vec<Source>, file: Option<&Path>) -> Result<Judge, String> {
        let mut levels = Levels::new(mode, strict);
        given.into_iter().for_each(|source| levels.push(source));
        levels.push(environment()?);
        if let Some(file) = file {
            levels.push(project::levels_for(file)?);
        }
        Ok(Judge::of(levels))
    }

    fn of(levels: Levels) -> Judge {
        let checks = Checks::wanted(|slug| levels.level(slug) != Level::Allow);
        Judge { includes_strict: levels.includes_strict(), checks, levels: Arc::new(levels) }
    }

    /// The levels themselves.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Whether strict findings are needed.
    pub fn includes_strict(&self) -> bool {
        self.includes_strict
    }

    /// The findings about values that a run has to check: those that are not allowed.
    pub fn checks(&self) -> Checks {
        self.checks
    }

    /// Applies the levels to all findings of a run, and phrases the advice for the user.
    pub fn judge(&self, mut diagnostics: Vec<Diagnostic>) -> Applied {
        diagnostics.iter_mut().for_each(advise);
        self.levels.apply(diagnostics)
    }
}

/// Phrases a finding's advice for the user.
pub fn advise(d: &mut Diagnostic) {
    let advice = d.advice.take().or((d.id == "unsupported-on-target").then_some(Advice::OtherTarget));
    d.help.extend(advice.map(|advice| in_words(advice).to_owned()));
}

/// The change to make in the call, with the options of the command and of Python.
fn in_words(advice: Advice) -> &'static str {
    match advice {
        Advice::MoreRanks => "run more ranks (--ranks N), or name only ranks that exist",
        Advice::TwoCores => "launch the kernel on two cores: kernel[2](...), or --lnc 2",
        Advice::OtherTarget => {
            "choose the target: --target, or platform_target= or NEURON_PLATFORM_TARGET_OVERRIDE in Python"
        }
        Advice::MoreSteps => {
            "if the loop does end, raise the limit: --max-steps N, or nki_sim.configure(max_steps=N) in Python"
        }
        Advice::MoreMemory => memory::ADVICE,
    }
}

fn environment() -> Result<Source, String> {
    let mut source = Source::default();
    for (level, name) in VARIABLES {
        if let Some(text) = settings::variable(name)? {
            let words = text.split(',').filter(|word| !word.trim().is_empty());
            source.add(level, name, words).map_err(|e| format!("environment variable {e}"))?;
        }
    }
    Ok(source)
}

/// The denied findings for the end of the output, one line per slug; empty if there are none.
pub fn denied_text(denied: &[Denied]) -> String {
    denied.iter().map(|d| format!("denied: {d}\n")).collect()
}
