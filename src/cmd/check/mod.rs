//! `nki-sim check FILE`: specialise, validate and place, without running.

mod formats;

use nki_diag::{Applied, Diagnostic, Mode};
use serde::Serialize;

use crate::cli::{CheckArgs, CheckFormat, KernelArgs};
use crate::kernel::{Disk, finish, session, show};
use crate::measure::{check, with_run_line};
use crate::output::{eprint, is_stdout, print, print_document, write_file};
use crate::places::{Inputs, check_places};
use crate::report::{self, Checked};
use crate::session::{Compilation, Kernel, Numerics, Session};
use crate::{Failure, VERSION, count, run_line};

/// What other programs learn of a kernel.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Outcome {
    /// It was checked.
    Checked(Checked),
    /// It could not be checked, because the call is wrong.
    Refused(Refused),
}

/// A kernel that could not be checked. Field order is the order in the file.
#[derive(Debug, Serialize)]
struct Refused {
    nki_sim_version: &'static str,
    /// The kernel, if it was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// What is wrong with the call.
    error: String,
}

impl Outcome {
    fn refused(args: &KernelArgs, message: &str) -> Self {
        let (kernel, error) = (args.kernel.clone(), message.to_owned());
        Outcome::Refused(Refused { nki_sim_version: VERSION, kernel, error })
    }

    /// The name of the kernel, empty if it is not known.
    fn kernel(&self) -> &str {
        match self {
            Outcome::Checked(checked) => &checked.kernel,
            Outcome::Refused(refused) => refused.kernel.as_deref().unwrap_or_default(),
        }
    }
}

/// Compiles the kernel, or each kernel with a run line, and says what is wrong with it.
pub(crate) fn run(args: CheckArgs) -> Result<(), Failure> {
    if args.format != CheckFormat::Text && args.json.as_deref().is_some_and(is_stdout) {
        return Err(Failure::Call("--json and --format both write to standard output; give --json a file".into()));
    }
    let done = check_chosen(&args);
    if let Err(Failure::Call(message)) = &done {
        let kernel = &args.kernel;
        write(args.format, &kernel.file.to_string_lossy(), &[Outcome::refused(kernel, message)])?;
    }
    match done? {
        Failed::None => Ok(()),
        Failed::Kernel => Err(Failure::Kernel),
        Failed::Call(message) => Err(Failure::Call(message)),
    }
}

/// What failed, once the outcomes have been written.
enum Failed {
    None,
    Kernel,
    Call(String),
}

/// Checks the kernels one after the other and writes all outcomes. The error is a call that is wrong for all of them.
fn check_chosen(args: &CheckArgs) -> Result<Failed, Failure> {
    let session = session(&args.kernel, Mode::Check, Numerics::Never, None)?;
    let kernels = chosen(&args.kernel, &session);
    let mut outcomes = Vec::new();
    let (mut refused, mut wrong) = (Vec::new(), false);
    for kernel in &kernels {
        match one(args, kernel, &session) {
            Ok(examined) => {
                wrong |= examined.wrong;
                outcomes.push(Outcome::Checked(examined.checked));
                if kernels.len() == 1 {
                    // The process ends: to free every instruction takes longer than the system does.
                    std::mem::forget(examined.kernel);
                }
            }
            Err(Failure::Call(message)) if kernels.len() > 1 => {
                outcomes.push(Outcome::refused(kernel, &message));
                refused.push(message);
            }
            Err(failure) => return Err(failure),
        }
    }
    if let Some(path) = &args.json {
        write_file(path, &[&json(&outcomes)?])?;
    }
    write(args.format, &args.kernel.file.to_string_lossy(), &outcomes)?;
    Ok(match (refused.is_empty(), wrong) {
        (false, _) => Failed::Call(refused.join("\nerror: ")),
        (true, true) => Failed::Kernel,
        (true, false) => Failed::None,
    })
}

/// The kernels to check: without a choice, those that have a run line, if the file has several kernels.
fn chosen(args: &KernelArgs, session: &Session) -> Vec<KernelArgs> {
    let (with, without) = run_line::kernels_of(args, session, &Disk);
    if with.is_empty() {
        return vec![args.clone()];
    }
    if !without.is_empty() {
        eprint(&format!("{}: not checked, without a run line: {}\n", args.file.display(), without.join(", ")));
    }
    with.into_iter().map(|name| KernelArgs { kernel: Some(name), ..args.clone() }).collect()
}

/// A kernel that was checked.
struct Examined {
    checked: Checked,
    /// An error or a denied finding was reported.
    wrong: bool,
    kernel: Option<Kernel>,
}

impl Examined {
    fn new(compiled: &Compilation, applied: &Applied, kernel: Option<Kernel>) -> Self {
        show(applied, &compiled.sources);
        let wrong = finish(applied).is_err() || kernel.is_none();
        Examined { checked: Checked::new(compiled, applied), wrong, kernel }
    }
}

/// Checks one kernel and reports it as text.
fn one(args: &CheckArgs, kernel: &KernelArgs, session: &Session) -> Result<Examined, Failure> {
    // Other programs read standard output if it has a format.
    let tell = if args.format == CheckFormat::Text { print } else { eprint };
    let places = |inputs: &Inputs| check_places(&[("--json", args.json.as_deref())], inputs);
    places(&Inputs::of_kernel(kernel))?;
    let kernel = match with_run_line(session, kernel.clone(), &Disk)? {
        Ok(kernel) => kernel,
        Err(wrong) => return Ok(Examined::new(&wrong.compiled, &wrong.applied, None)),
    };
    places(&Inputs::of_kernel(&kernel))?;
    let (compiled, kernel, applied) = check(session, &kernel, &Disk)?;
    compiled.prints.iter().for_each(|line| tell(&format!("{line}\n")));
    places(&Inputs::of_sources(&compiled.sources))?;
    let examined = Examined::new(&compiled, &applied, kernel);
    if let Some(kernel) = examined.kernel.as_ref().filter(|_| !examined.wrong) {
        tell(&summary(&compiled, kernel, &applied.diagnostics));
    }
    Ok(examined)
}

/// The lines about a kernel without errors.
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

/// The outcome as JSON; several are a list.
fn json(outcomes: &[Outcome]) -> Result<Vec<u8>, String> {
    match outcomes {
        [one] => report::json(one),
        several => report::json(&several),
    }
}

/// Writes the outcomes to standard output.
fn write(format: CheckFormat, file: &str, outcomes: &[Outcome]) -> Result<(), String> {
    let text = match format {
        CheckFormat::Text => return Ok(()),
        CheckFormat::Json => json(outcomes)?,
        CheckFormat::Sarif => report::json(&formats::sarif(file, outcomes))?,
        CheckFormat::Github => formats::github(file, outcomes).into_bytes(),
        CheckFormat::Junit => formats::junit(file, outcomes).into_bytes(),
    };
    print_document(&String::from_utf8_lossy(&text));
    Ok(())
}
