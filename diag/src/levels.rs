//! Levels of findings: whether they are dropped, reported as warnings, or fail the run.
//!
//! A finding is a diagnostic with severity [`Severity::Warning`]; errors and remarks have no level. The level of a finding follows
//! from its slug, the slug's [`Class`], and the sources. [`Levels`] holds the sources from the strongest to the weakest;
//! [`Levels::apply`] is called once for each run, after all stages.
//!
//! Within one source a slug beats a class, and both beat `warnings`. The strongest source that names the slug or its class decides;
//! a finding that is then at [`Level::Warn`] is subject to `warnings` of a stronger source.

use std::fmt;

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Severity};
use crate::slugs::{self, Class, Slug};

/// The treatment of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// It is dropped.
    Allow,
    /// It is reported as a warning.
    Warn,
    /// It is reported as an error and fails the run.
    Deny,
}

impl Level {
    /// All levels, the mildest first.
    pub const ALL: [Level; 3] = [Level::Allow, Level::Warn, Level::Deny];

    /// `allow`, `warn` or `deny`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Allow => "allow",
            Level::Warn => "warn",
            Level::Deny => "deny",
        }
    }
}

/// The findings selected by an entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Selector {
    /// One kind of diagnostic.
    Slug(&'static str),
    /// All findings of a class.
    Class(Class),
    /// `warnings`: all findings that would otherwise be at level warn.
    Warnings,
}

/// The name of [`Selector::Warnings`].
const WARNINGS: &str = "warnings";

impl Selector {
    /// Reads a slug, a class (`bug`, `suspicious`, `strict`) or `warnings`.
    ///
    /// # Errors
    /// For any other word, with the nearest one that exists.
    pub fn parse(word: &str) -> Result<Selector, String> {
        if word == WARNINGS {
            return Ok(Selector::Warnings);
        }
        if word == Class::Error.name() {
            return Err("errors have no level: they always fail the run".into());
        }
        if let Some(class) = Class::ALL.into_iter().find(|c| c.name() == word) {
            return Ok(Selector::Class(class));
        }
        if let Some(slug) = slugs::find(word) {
            return Ok(Selector::Slug(slug.id));
        }
        let names = Class::FINDINGS.iter().map(|c| c.name()).chain([WARNINGS]).chain(slugs::all().map(|s| s.id));
        let hint = slugs::nearest_of(word, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let classes: Vec<&str> = Class::FINDINGS.iter().map(|c| c.name()).collect();
        Err(format!(
            "`{word}` is neither the slug of a diagnostic nor a class ({}) nor `{WARNINGS}`{hint}",
            classes.join(", ")
        ))
    }

    /// The word that [`Selector::parse`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Selector::Slug(slug) => slug,
            Selector::Class(class) => class.name(),
            Selector::Warnings => WARNINGS,
        }
    }

    /// Specificity for the slug: 1 for the slug itself, 0 for its class; `None` if the selector does not include it.
    fn names(self, slug: &Slug) -> Option<u8> {
        match self {
            Selector::Slug(id) => (id == slug.id).then_some(1),
            Selector::Class(class) => (class == slug.class).then_some(0),
            Selector::Warnings => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Rule {
    selector: Selector,
    level: Level,
    /// See [`by`].
    by: String,
}

/// The lists of one source: the flags of a command line, the environment, a project file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Source {
    rules: Vec<Rule>,
}

impl Source {
    /// Adds the words of one list. `list` is the user-visible name of the list: `--deny`, `NKI_SIM_DENY`.
    ///
    /// # Errors
    /// For an unknown word, for an error that is allowed or warned of, and for a word that is in a list of another level.
    pub fn add(
        &mut self,
        level: Level,
        list: &str,
        words: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), String> {
        for word in words {
            let word = word.as_ref().trim();
            let selector = Selector::parse(word).map_err(|e| format!("{list}: {e}"))?;
            if let Selector::Slug(id) = selector
                && slugs::find(id).is_some_and(|s| s.class == Class::Error)
            {
                if level == Level::Deny {
                    continue;
                }
                return Err(format!(
                    "{list}: `{id}` is an error, which no level changes: the kernel cannot run with it"
                ));
            }
            match self.rules.iter().find(|r| r.selector == selector) {
                Some(known) if known.level != level => {
                    return Err(format!("{list}: `{word}` is given twice, also as {}", known.by));
                }
                Some(_) => {}
                None => self.rules.push(Rule { selector, level, by: by(list, word) }),
            }
        }
        Ok(())
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    fn warnings(&self) -> Option<&Rule> {
        self.rules.iter().find(|r| r.selector == Selector::Warnings)
    }

    fn rule(&self, slug: &Slug) -> Option<&Rule> {
        self.rules.iter().filter_map(|r| Some((r.selector.names(slug)?, r))).max_by_key(|(n, _)| *n).map(|(_, r)| r)
    }
}

/// The description of a list entry in a note: `--deny bug`, `NKI_SIM_DENY: bug`.
fn by(list: &str, word: &str) -> String {
    if list.starts_with("--") { format!("{list} {word}") } else { format!("{list}: {word}") }
}

/// The way in which the kernel is run; it determines the default levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `nki-sim run`, with `--ranks` too, and `whatif`.
    Run,
    /// `nki-sim check`.
    Check,
    /// `nki-sim compare`.
    Compare,
    /// `nki-sim sweep` and `nki_sim.sweep`.
    Sweep,
    /// A call in Python, `nki_sim.profile`, and a script.
    Call,
    /// `nki_sim.assert_close`.
    AssertClose,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 6] = [Mode::Run, Mode::Check, Mode::Sweep, Mode::Compare, Mode::Call, Mode::AssertClose];

    /// The user-visible name.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Run => "run",
            Mode::Check => "check",
            Mode::Sweep => "sweep",
            Mode::Compare => "compare",
            Mode::Call => "a call in Python",
            Mode::AssertClose => "assert_close",
        }
    }

    /// A way to turn findings of this slug into warnings in this mode.
    fn lower(self, id: &str) -> String {
        match self {
            Mode::Run | Mode::Check | Mode::Sweep | Mode::Compare => format!("--warn {id} reports it as a warning"),
            Mode::Call | Mode::AssertClose => format!("nki.simulate(kernel, warn=\"{id}\") reports it as a warning"),
        }
    }

    /// The level of a class that no source names. `strict` is whether strict findings are requested.
    pub fn default_level(self, class: Class, strict: bool) -> Level {
        match (class, self) {
            (Class::Error, _) => Level::Deny,
            (Class::Bug, Mode::Check | Mode::Sweep | Mode::AssertClose) => Level::Deny,
            (Class::Strict, _) if !strict => Level::Allow,
            (Class::Bug | Class::Suspicious | Class::Strict, _) => Level::Warn,
        }
    }
}

/// The level of every finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Levels {
    mode: Mode,
    strict: bool,
    /// The strongest first.
    sources: Vec<Source>,
}

impl Levels {
    /// The default levels. `strict` requests strict findings, as `--strict` does.
    pub fn new(mode: Mode, strict: bool) -> Self {
        Levels { mode, strict, sources: Vec::new() }
    }

    /// Adds a source that is weaker than the existing ones.
    pub fn push(&mut self, source: Source) {
        if !source.is_empty() {
            self.sources.push(source);
        }
    }

    /// The level of findings with this slug. Of an unknown slug, and of an error, [`Level::Deny`].
    pub fn level(&self, id: &str) -> Level {
        slugs::find(id).map_or(Level::Deny, |slug| self.decide(slug, false).0)
    }

    /// Whether a source names this slug or its class, so that the level is not a default.
    pub fn is_chosen(&self, id: &str) -> bool {
        slugs::find(id).is_some_and(|slug| self.decide(slug, true).1.is_some())
    }

    /// Whether any strict finding is warned of or denied, so that the check for it is necessary.
    pub fn includes_strict(&self) -> bool {
        slugs::all().any(|s| s.class == Class::Strict && self.decide(s, false).0 != Level::Allow)
    }

    /// The level, and the rule that determines it: `None` is the default of the mode. A warning whose slug is that of an error is at level warn
    /// unless `warnings` says otherwise.
    fn decide(&self, slug: &Slug, warned: bool) -> (Level, Option<&Rule>) {
        let mut warnings = None;
        let mut found = None;
        for source in &self.sources {
            found = source.rule(slug);
            if found.is_some() {
                break;
            }
            warnings = warnings.or(source.warnings());
        }
        let level = match found {
            Some(rule) => rule.level,
            None if warned && slug.class == Class::Error => Level::Warn,
            None => self.mode.default_level(slug.class, self.strict),
        };
        match (level, warnings) {
            (Level::Warn, Some(rule)) => (rule.level, Some(rule)),
            _ => (level, found),
        }
    }

    /// Applies the levels: allowed findings are dropped, denied ones become errors with a note that names the rule. Errors and
    /// remarks are unchanged.
    pub fn apply(&self, diagnostics: Vec<Diagnostic>) -> Applied {
        let mut out = Applied::default();
        for diagnostic in diagnostics {
            let Some(slug) = slugs::find(diagnostic.id).filter(|_| diagnostic.severity == Severity::Warning) else {
                out.diagnostics.push(diagnostic);
                continue;
            };
            let (level, rule) = self.decide(slug, true);
            match level {
                Level::Allow => out.allowed += 1,
                Level::Warn => out.diagnostics.push(diagnostic),
                Level::Deny => {
                    let by = rule.map_or_else(|| format!("default in {}", self.mode.name()), |r| r.by.clone());
                    let mut error =
                        Diagnostic { severity: Severity::Error, ..diagnostic }.note(format!("denied by {by}"));
                    if rule.is_none() {
                        error = error.help(self.mode.lower(slug.id));
                    }
                    match out.denied.iter_mut().find(|d| d.id == slug.id) {
                        Some(known) => known.count += 1,
                        None => out.denied.push(Denied { id: slug.id, count: 1, by, default: rule.is_none() }),
                    }
                    out.diagnostics.push(error);
                }
            }
        }
        out
    }
}

/// Diagnostics at their levels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Reported diagnostics, in the order in which they were found.
    pub diagnostics: Vec<Diagnostic>,
    /// Denied findings, in the order of the first finding of each slug.
    pub denied: Vec<Denied>,
    /// Findings that were dropped.
    pub allowed: usize,
}

/// Findings of one slug that were denied. Field order is the order in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denied {
    /// The slug.
    pub id: &'static str,
    /// Number of findings.
    pub count: usize,
    /// The rule that denies them: `--deny bug`, `default in check`.
    pub by: String,
    /// Whether they are denied by a default of the mode, and not by a list of the user.
    pub default: bool,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}) by {}", self.id, self.count, self.by)
    }
}

#[cfg(test)]
mod tests;
