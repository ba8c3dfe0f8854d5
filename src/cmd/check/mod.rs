//! `nki-sim check FILE...`: specialise, validate and place, without running.

mod files;
mod formats;

use std::collections::HashSet;

use nki_diag::memory::Limit;
use nki_diag::{Applied, Diagnostic, JsonDiagnostic, Mode, Severity, SourceMap, render_all};
use serde::Serialize;

use crate::cli::{CheckArgs, CheckFormat, KernelArgs};
use crate::kernel::{Disk, finish, session};
use crate::measure::{check, with_run_line};
use crate::output::{color, eprint, is_stdout, print, print_document, write_file};
use crate::places::{Inputs, check_places};
use crate::report::{self, Checked};
use crate::session::{Compilation, Kernel, Numerics, Session};
use crate::{Failure, VERSION, count, memory, run_line};
use files::{Content, Files};

/// The machine-readable result for a kernel. Field order is the order in the file.
#[derive(Debug, Serialize)]
struct Outcome {
    /// The file, for a call with several files.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(flatten)]
    result: CheckResult,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum CheckResult {
    /// It was checked.
    Checked(Checked),
    /// It could not be checked, because the call is invalid.
    Refused(Refused),
}

/// A kernel that could not be checked. Field order is the order in the file.
#[derive(Debug, Serialize)]
struct Refused {
    nki_sim_version: &'static str,
    /// The kernel, if selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// The error in the call.
    error: String,
}

impl Outcome {
    fn refused(file: Option<String>, args: &KernelArgs, message: &str) -> Self {
        let (kernel, error) = (args.kernel.clone(), message.to_owned());
        Outcome { file, result: CheckResult::Refused(Refused { nki_sim_version: VERSION, kernel, error }) }
    }

    /// The name of the kernel; empty if unknown.
    fn kernel(&self) -> &str {
        match &self.result {
            CheckResult::Checked(checked) => &checked.kernel,
            CheckResult::Refused(refused) => refused.kernel.as_deref().unwrap_or_default(),
        }
    }

    /// The findings in the kernel.
    fn findings(&self) -> &[JsonDiagnostic] {
        match &self.result {
            CheckResult::Checked(checked) => &checked.findings,
            CheckResult::Refused(_) => &[],
        }
    }
}

/// Identity of a finding across kernels: slug, message, file, line and column.
type Same = (&'static str, String, Option<String>, Option<u32>, Option<u32>);

/// Reported findings: kernels that share a function share its findings.
#[derive(Default)]
struct Reported(HashSet<Same>);

impl Reported {
    /// Whether a finding is reported for the first time.
    fn is_new(&mut self, finding: &JsonDiagnostic) -> bool {
        self.0.insert((finding.id, finding.message.clone(), finding.file.clone(), finding.line, finding.column))
    }
}

/// Compiles the kernels of each file (all with a run line, if there are several), and reports their findings.
pub(crate) fn run(args: CheckArgs) -> Result<(), Failure> {
    if args.format != CheckFormat::Text && args.json.as_deref().is_some_and(is_stdout) {
        return Err(Failure::Call("--json and --format both write to standard output; give --json a file".into()));
    }
    let done = Checking::of(&args).and_then(Checking::finish);
    if let Err(Failure::Call(message)) = &done {
        let file = &args.kernel.file;
        let files = Files { paths: vec![file.clone()], several: false, root: file.clone() };
        write(args.format, &files, &[Outcome::refused(None, &args.kernel, message)], "")?;
    }
    match done? {
        Failed::None => Ok(()),
        Failed::Kernel => Err(Failure::Kernel),
        Failed::Call(message) => Err(Failure::Call(message)),
    }
}

/// The kind of failure after the outcomes have been written.
enum Failed {
    None,
    Kernel,
    Call(String),
}

/// State of checking the kernels of a call one after the other.
struct Checking<'a> {
    args: &'a CheckArgs,
    files: Files,
    /// Files that were read, and which reports must not replace.
    inputs: Inputs,
    outcomes: Vec<Outcome>,
    reported: Reported,
    /// Messages about invalid calls.
    refused: Vec<String>,
    /// Whether a kernel has an error or a denied finding.
    wrong: bool,
    files_without_kernel: usize,
    kernels_without_run_line: usize,
}

impl<'a> Checking<'a> {
    /// Checks all kernels. The error is a call that is invalid for all of them.
    fn of(args: &'a CheckArgs) -> Result<Self, Failure> {
        let files = Files::of(args)?;
        let mut inputs = Inputs::default();
        for path in &files.paths {
            inputs = inputs.and_kernel(&KernelArgs { file: path.clone(), ..args.kernel.clone() });
        }
        check_places(&[("--json", args.json.as_deref())], &inputs)?;
        let mut out = Checking {
            args,
            files,
            inputs,
            outcomes: Vec::new(),
            reported: Reported::default(),
            refused: Vec::new(),
            wrong: false,
            files_without_kernel: 0,
            kernels_without_run_line: 0,
        };
        for path in out.files.paths.clone() {
            let file = KernelArgs { file: path, ..args.kernel.clone() };
            match session(&file, Mode::Check, Numerics::Never, None) {
                Ok(session) => out.file(&file, &session)?,
                Err(failure) => out.refuse(&file, failure)?,
            }
        }
        Ok(out)
    }

    /// Checks the kernels of a file.
    fn file(&mut self, file: &KernelArgs, session: &Session) -> Result<(), Failure> {
        let Some(kernels) = self.chosen(file, session) else {
            self.files_without_kernel += 1;
            return Ok(());
        };
        let is_only = !self.files.several && kernels.len() == 1;
        for kernel in &kernels {
            match self.one(kernel, session) {
                Ok(examined) => {
                    self.wrong |= examined.wrong;
                    let result = CheckResult::Checked(examined.checked);
                    self.outcomes.push(Outcome { file: self.name_of(file), result });
                    if is_only {
                        // The process ends: freeing every instruction would take longer than leaving it to the system.
                        std::mem::forget(examined.kernel);
                    }
                }
                Err(failure) => self.refuse(kernel, failure)?,
            }
        }
        Ok(())
    }

    /// Records a kernel whose call is invalid, and lets the check continue.
    fn refuse(&mut self, kernel: &KernelArgs, failure: Failure) -> Result<(), Failure> {
        let Failure::Call(message) = failure else { return Err(failure) };
        // Its sources count as read, too.
        let limit = memory::limit(kernel.max_memory.as_deref()).unwrap_or(Limit::NONE);
        let listing = nki_frontend::kernels(&kernel.file, &Disk, kernel.kernel.as_deref(), limit);
        self.add_sources(&listing.sources);
        self.outcomes.push(Outcome::refused(self.name_of(kernel), kernel, &message));
        self.refused.push(message);
        Ok(())
    }

    /// The file of an outcome, for a call with several files.
    fn name_of(&self, kernel: &KernelArgs) -> Option<String> {
        self.files.several.then(|| kernel.file.display().to_string())
    }

    /// The kernels to check: by default, those with a run line, if the file or the call has several. `None` if the file is skipped.
    fn chosen(&mut self, file: &KernelArgs, session: &Session) -> Option<Vec<KernelArgs>> {
        let (with, without) = if self.files.several {
            match Content::of(&file.file, session) {
                Content::NoKernel => return None,
                Content::Broken => return Some(vec![file.clone()]),
                Content::Kernels { callable, others } => (callable, others),
            }
        } else {
            let (with, without) = run_line::kernels_of(file, session, &Disk);
            if with.is_empty() {
                return Some(vec![file.clone()]);
            }
            (with, without)
        };
        if !without.is_empty() {
            self.kernels_without_run_line += without.len();
            eprint(&format!("{}: not checked, without a run line: {}\n", file.file.display(), without.join(", ")));
        }
        Some(with.into_iter().map(|name| KernelArgs { kernel: Some(name), ..file.clone() }).collect())
    }

    /// Checks one kernel and reports it as text.
    fn one(&mut self, kernel: &KernelArgs, session: &Session) -> Result<CheckedKernel, Failure> {
        let kernel = match with_run_line(session, kernel.clone(), &Disk)? {
            Ok(kernel) => kernel,
            Err(wrong) => return Ok(self.examined(&wrong.compiled, &wrong.applied, None)),
        };
        let (compiled, kernel, applied) = check(session, &kernel, &Disk)?;
        compiled.prints.iter().for_each(|line| self.tell(&format!("{line}\n")));
        let examined = self.examined(&compiled, &applied, kernel);
        if let Some(kernel) = examined.kernel.as_ref().filter(|_| !examined.wrong) {
            self.tell(&summary(&compiled, kernel, &applied.diagnostics));
        }
        Ok(examined)
    }

    /// Shows the findings of a kernel that were not found in an earlier one.
    fn examined(&mut self, compiled: &Compilation, applied: &Applied, kernel: Option<Kernel>) -> CheckedKernel {
        self.add_sources(&compiled.sources);
        let checked = Checked::new(compiled, applied);
        let is_new: Vec<bool> = checked.findings.iter().map(|finding| self.reported.is_new(finding)).collect();
        let new = applied.diagnostics.iter().zip(is_new).filter(|(_, new)| *new).map(|(d, _)| d.clone());
        eprint(&render_all(&new.collect::<Vec<_>>(), &compiled.sources, color()));
        let wrong = finish(applied).is_err() || kernel.is_none();
        CheckedKernel { checked, wrong, kernel }
    }

    fn add_sources(&mut self, sources: &SourceMap) {
        self.inputs = std::mem::take(&mut self.inputs).and_sources(sources);
    }

    /// With a machine-readable format, other output goes to standard error.
    fn tell(&self, text: &str) {
        if self.args.format == CheckFormat::Text { print(text) } else { eprint(text) }
    }

    /// Writes the outcomes.
    fn finish(self) -> Result<Failed, Failure> {
        check_places(&[("--json", self.args.json.as_deref())], &self.inputs)?;
        if let Some(path) = &self.args.json {
            write_file(path, &[&json(&self.files, &self.outcomes)?])?;
        }
        let total = if self.files.several { self.total() } else { String::new() };
        write(self.args.format, &self.files, &self.outcomes, &total)?;
        if self.files.several {
            self.tell(&format!("{total}\n"));
        }
        Ok(match (self.refused.is_empty(), self.wrong) {
            (false, _) => Failed::Call(self.refused.join("\nerror: ")),
            (true, true) => Failed::Kernel,
            (true, false) => Failed::None,
        })
    }

    /// The result of all files on one line.
    fn total(&self) -> String {
        let (mut reported, mut errors, mut warnings) = (Reported::default(), 0, 0);
        for finding in self.outcomes.iter().flat_map(Outcome::findings).filter(|finding| reported.is_new(finding)) {
            *(if finding.severity == Severity::Error { &mut errors } else { &mut warnings }) += 1;
        }
        let checked = self.outcomes.iter().filter(|o| matches!(o.result, CheckResult::Checked(_)));
        let files: HashSet<_> = checked.filter_map(|o| o.file.as_deref()).collect();
        let mut parts = vec![format!(
            "{} in {} checked: {}, {}",
            count(self.outcomes.len() - self.refused.len(), "kernel"),
            count(files.len(), "file"),
            if errors == 0 { "no errors".to_owned() } else { count(errors, "error") },
            count(warnings, "warning")
        )];
        let skipped = [
            (self.refused.len(), "kernel", " with invalid arguments, or in an unreadable file"),
            (self.files_without_kernel, "file", " without a kernel"),
            (self.kernels_without_run_line, "kernel", " without a run line"),
        ];
        let skipped: Vec<String> =
            skipped.iter().filter(|(n, ..)| *n > 0).map(|(n, what, why)| count(*n, what) + why).collect();
        if !skipped.is_empty() {
            parts.push(format!("not checked: {}", skipped.join(", ")));
        }
        parts.join("; ")
    }
}

/// A kernel that was checked.
struct CheckedKernel {
    checked: Checked,
    /// Whether an error or a denied finding was reported.
    wrong: bool,
    kernel: Option<Kernel>,
}

/// A summary of a kernel without errors.
fn summary(compiled: &Compilation, kernel: &Kernel, found: &[Diagnostic]) -> String {
    let statements: usize = kernel.program.cores.iter().map(Vec::len).sum();
    let mut out = String::new();
    if let Some(needs) = kernel.needs_data() {
        out = format!(
            "{}: what it executes depends on values ({}), so only `run` finds reads of unwritten or overwritten bytes, races, partly written outputs and lost results\n",
            compiled.name, needs.what
        );
    }
    out + &format!(
        "{}: no errors ({}, {} on {})\n",
        compiled.name,
        count(found.len(), "warning"),
        count(statements, "statement"),
        compiled.target
    )
}

/// The outcomes as JSON: an object for one file with one kernel, else a list.
fn json(files: &Files, outcomes: &[Outcome]) -> Result<Vec<u8>, String> {
    match outcomes {
        [one] if !files.several => report::json(one),
        several => report::json(&several),
    }
}

/// Writes the outcomes to standard output. `total` is the result of several files.
fn write(format: CheckFormat, files: &Files, outcomes: &[Outcome], total: &str) -> Result<(), String> {
    let root = files.root.to_string_lossy();
    let text = match format {
        CheckFormat::Text => return Ok(()),
        CheckFormat::Json => json(files, outcomes)?,
        CheckFormat::Sarif if files.several => report::json(&formats::sarif_of_files(&root, outcomes))?,
        CheckFormat::Sarif => report::json(&formats::sarif(&root, outcomes))?,
        CheckFormat::Github => formats::github(&root, outcomes, total).into_bytes(),
        CheckFormat::Junit => formats::junit(&root, outcomes).into_bytes(),
    };
    print_document(&String::from_utf8_lossy(&text));
    Ok(())
}
