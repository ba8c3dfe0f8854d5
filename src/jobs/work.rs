//! Performs jobs, in a worker process.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Parser;
use nki_diag::{Applied, ColorChoice, Diagnostic, FileId, Mode, render_all};
use nki_sim_core::analysis::remedies;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{CheckJob, CompareJob, ExplainJob, Job, Side, SweepJob, messages, text};
use crate::cli::{Cli, Command, KernelArgs, RunArgs};
use crate::cmd::compare::{self, Difference};
use crate::cmd::explain;
use crate::cmd::sweep::{self, Table};
use crate::expected;
use crate::kernel::{no_axis, session};
use crate::measure::{self, Measured, RunRequest, TimedRun, measure, with_run_line};
use crate::output::{write_file, write_outputs};
use crate::places::Inputs;
use crate::report::{self, Checked, OutputInfo, Report, outputs_of};
use crate::row::Row;
use crate::session::{Compilation, Numerics, Session};
use crate::sources::{Sources, has_constant, hash_of};
use crate::value;
use crate::{Failure, VERSION, project, run_line};

/// What a worker does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    /// Runs a kernel; its outputs must not replace these files.
    Run(Box<Job>, Vec<ProtectedFile>),
    /// Checks one.
    Check(Box<CheckJob>),
    /// Times a kernel at the points of a grid.
    Sweep(Box<SweepJob>),
    /// Compares two runs.
    Compare(Box<CompareJob>),
    /// Explains a name.
    Explain(ExplainJob),
}

/// A file that no output of a job may replace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProtectedFile {
    /// What it is, in words.
    pub(crate) what: String,
    /// The path, which may not exist.
    pub(crate) path: PathBuf,
}

/// What came of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// Files that the result depends on, each with a hash of its contents if it existed.
    pub(crate) read: BTreeMap<PathBuf, Option<u64>>,
    /// A JSON object.
    pub(crate) result: Box<RawValue>,
    /// How the job ended.
    pub(crate) status: Status,
    /// Whether the same job would have the same result.
    pub(crate) is_cacheable: bool,
}

impl Reply {
    /// A result that depends on no file.
    pub(crate) fn new(result: &impl Serialize, status: Status) -> Self {
        let result = serde_json::value::to_raw_value(result).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Reply {
            read: BTreeMap::new(),
            result,
            status,
            is_cacheable: !matches!(status, Status::Limit | Status::Crashed),
        }
    }

    /// A job without a result.
    pub(crate) fn without(status: Status, error: String) -> Self {
        Reply::new(&Refusal { status, error }, status)
    }

    /// The reply to a cancelled request.
    pub(crate) fn cancelled() -> Self {
        let reply = Reply::without(Status::Refused, "the request was cancelled".into());
        Reply { is_cacheable: false, ..reply }
    }

    /// Whether the files are unchanged.
    pub(crate) fn is_current(&self) -> bool {
        self.read.iter().all(|(path, hash)| hash_of(path) == *hash)
    }
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The kernel ran, and its outputs have their expected values.
    Passed,
    /// The kernel is wrong, or a finding is denied.
    Failed,
    /// An output differs from its expected value.
    Differs,
    /// The job is wrong.
    Refused,
    /// The job exceeded its time or memory limit.
    Limit,
    /// The simulator failed: a bug.
    Crashed,
}

impl Status {
    /// Whether the job has no result. A wrong kernel is a result.
    pub(crate) fn is_failure(self) -> bool {
        match self {
            Status::Passed | Status::Failed | Status::Differs => false,
            Status::Refused | Status::Limit | Status::Crashed => true,
        }
    }
}

/// A job without a result.
#[derive(Serialize)]
struct Refusal {
    status: Status,
    error: String,
}

/// The result of a kernel. Field order is the order in the line.
#[derive(Serialize)]
struct Outcome {
    status: Status,
    nki_sim_version: &'static str,
    kernel: String,
    target: String,
    #[serde(flatten)]
    row: Row,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<OutputInfo>,
    /// Files that the kernel was compiled from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prints: Vec<String>,
    /// All findings in the command's text format.
    #[serde(skip_serializing_if = "String::is_empty")]
    diagnostics: String,
}

impl Outcome {
    fn new(measured: Measured, outputs: Vec<OutputInfo>) -> Self {
        let Measured { compiled, applied, row, prints } = measured;
        let too_much = row.findings.iter().any(|f| f.id == "memory-limit");
        let status = match row.latency_us {
            _ if !row.is_correct() => Status::Differs,
            Some(_) if row.error.is_none() => Status::Passed,
            _ if too_much => Status::Limit,
            _ => Status::Failed,
        };
        Outcome {
            status,
            nki_sim_version: VERSION,
            diagnostics: render_all(&applied.diagnostics, &compiled.sources, ColorChoice::Plain),
            sources: (0..compiled.sources.len() as u32).map(|i| compiled.sources.path(FileId(i)).to_string()).collect(),
            kernel: compiled.name,
            target: compiled.target.to_string(),
            row: Row { error: row.error.clone().or_else(|| row.difference()), ..row },
            outputs,
            prints,
        }
    }
}

/// The page of a name.
#[derive(Serialize)]
struct ExplainReply {
    status: Status,
    text: String,
}

/// A kernel that was checked.
#[derive(Serialize)]
struct CheckReply {
    status: Status,
    #[serde(flatten)]
    checked: Checked,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prints: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    diagnostics: String,
}

impl CheckReply {
    fn reply(compiled: &Compilation, applied: &Applied, fine: bool) -> Reply {
        let passed = fine && !applied.diagnostics.iter().any(Diagnostic::is_error);
        let status = if passed { Status::Passed } else { Status::Failed };
        let examined = CheckReply {
            status,
            checked: Checked::new(compiled, applied),
            prints: compiled.prints.clone(),
            diagnostics: render_all(&applied.diagnostics, &compiled.sources, ColorChoice::Plain),
        };
        Reply::new(&examined, status)
    }
}

/// A sweep.
#[derive(Serialize)]
struct SweepReply {
    status: Status,
    #[serde(flatten)]
    table: Table,
}

/// A comparison.
#[derive(Serialize)]
struct CompareReply {
    status: Status,
    #[serde(flatten)]
    difference: Difference,
}

/// Performs a task.
pub(crate) fn perform(task: &Task) -> Reply {
    let mut read = BTreeMap::new();
    let done = match task {
        Task::Run(job, kept) => run(job, kept, &mut read),
        Task::Check(job) => check(job),
        Task::Sweep(job) => sweep(job),
        Task::Compare(job) => compare(job),
        Task::Explain(job) => explain::text(job.name.as_deref()).map(|text| {
            let status = Status::Passed;
            Reply::new(&ExplainReply { status, text }, status)
        }),
    };
    let mut reply = match done {
        Ok(reply) => reply,
        Err(Failure::Call(message)) => Reply::without(Status::Refused, messages::with_fields(&message)),
        Err(Failure::Kernel) => Reply::without(Status::Failed, "the kernel is wrong".into()),
    };
    reply.read = read;
    reply
}

/// Parses the options of a job with the grammar of its command.
pub(crate) fn command(words: Vec<String>) -> Result<Command, String> {
    match Cli::try_parse_from(words) {
        Ok(mut cli) => {
            if let Some(kernel) = cli.command.kernel_mut() {
                kernel.of_job = true;
            }
            Ok(cli.command)
        }
        // The first paragraph is the error; the others refer to the command line.
        Err(wrong) => {
            let text = wrong.to_string();
            let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
            Err(lines.join(" ").trim_start_matches("error: ").to_owned())
        }
    }
}

/// Checks a kernel.
fn check(job: &CheckJob) -> Result<Reply, Failure> {
    let Command::Check(args) = command(job.words()?)? else { return Err("not a check".to_owned().into()) };
    let session = session(&args.kernel, Mode::Check, Numerics::Never, None)?;
    let sources = Sources::new(&args.kernel.file, job.source.as_deref());
    let kernel = match with_run_line(&session, args.kernel.clone(), &sources)? {
        Ok(kernel) => kernel,
        Err(wrong) => return Ok(CheckReply::reply(&wrong.compiled, &wrong.applied, false)),
    };
    let (compiled, placed, applied) = measure::check(&session, &kernel, &sources)?;
    Ok(CheckReply::reply(&compiled, &applied, placed.is_some()))
}

/// Times a kernel at the points of a grid.
fn sweep(job: &SweepJob) -> Result<Reply, Failure> {
    let Command::Sweep(args) = command(job.words()?)? else { return Err("not a sweep".to_owned().into()) };
    match sweep::sweep(*args, job.source.as_deref(), &Inputs::default(), &|_, _, _| ())? {
        Ok(table) => {
            let passed = table.passes();
            let status = if passed { Status::Passed } else { Status::Failed };
            Ok(Reply::new(&SweepReply { status, table }, status))
        }
        Err(wrong) => Ok(CheckReply::reply(&wrong.compiled, &wrong.applied, false)),
    }
}

/// Compares two runs.
fn compare(job: &CompareJob) -> Result<Reply, Failure> {
    let folder = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let mut files = Vec::new();
    for (name, side) in [("before", &job.before), ("after", &job.after)] {
        match side {
            Side::File(file) if file.is_empty() => return Err(format!("`{name}` is missing").into()),
            Side::File(file) => files.push(file.clone()),
            Side::Job(job) => {
                let file = folder.path().join(format!("{name}.json"));
                let outcome = run_reported(job, &[], &mut BTreeMap::new(), Some(&file))?;
                // Without a report, there is nothing to compare.
                if !file.exists() {
                    return Ok(Reply::new(&outcome, outcome.status));
                }
                files.push(file.to_string_lossy().into_owned());
            }
        }
    }
    let mut words = vec!["nki-sim".to_owned(), "compare".to_owned()];
    words.extend(job.fail_if.iter().map(|condition| format!("--fail-if={condition}")));
    words.push("--".into());
    words.extend(files);
    let Command::Compare(args) = command(words)? else { return Err("not a comparison".to_owned().into()) };
    let mut difference = compare::difference(&args)?;
    for (shown, side, name) in
        [(&mut difference.files.0, &job.before, "before"), (&mut difference.files.1, &job.after, "after")]
    {
        if let Side::Job(job) = side {
            *shown = job.file().map_or_else(|_| name.to_owned(), ToOwned::to_owned);
            // Both jobs may have the same file, and the job's report is unknown to its sender.
            let report = folder.path().join(format!("{name}.json")).display().to_string();
            for note in &mut difference.notes {
                *note = note.replace(&report, name);
            }
        }
    }
    let passed = !difference.fails();
    let status = if passed { Status::Passed } else { Status::Failed };
    Ok(Reply::new(&CompareReply { status, difference }, status))
}

/// Runs a kernel.
fn run(job: &Job, kept: &[ProtectedFile], read: &mut BTreeMap<PathBuf, Option<u64>>) -> Result<Reply, Failure> {
    let outcome = run_reported(job, kept, read, None)?;
    Ok(Reply::new(&outcome, outcome.status))
}

/// Runs a kernel, and writes the complete report to a file.
fn run_reported(
    job: &Job,
    kept: &[ProtectedFile],
    read: &mut BTreeMap<PathBuf, Option<u64>>,
    report: Option<&Path>,
) -> Result<Outcome, Failure> {
    let Command::Run(mut args) = command(job.words()?)? else { return Err("not a run".to_owned().into()) };
    args.json = report.map(Path::to_path_buf);
    let mut sources = Sources::new(&args.kernel.file, job.source.as_deref());
    let point: Vec<(String, String)> =
        job.point.0.iter().map(|(n, v)| Ok((n.clone(), text(v)?))).collect::<Result<_, String>>()?;
    let done = run_at(&args, kept, &mut sources, &point, read);
    read.extend(sources.into_read());
    let (measured, outputs) = done?;
    Ok(Outcome::new(measured, outputs))
}

fn run_at<'a>(
    args: &'a RunArgs,
    kept: &[ProtectedFile],
    sources: &mut Sources<'a>,
    point: &'a [(String, String)],
    read: &mut BTreeMap<PathBuf, Option<u64>>,
) -> Result<(Measured, Vec<OutputInfo>), Failure> {
    let numerics = if args.no_numerics { Numerics::IfNeeded } else { Numerics::Computed };
    // Recorded before the run reads them: changes during the run count.
    note_files(&args.kernel, &args.expected.expect, args.timing.changes.params.as_deref(), read);
    let session = session(&args.kernel, Mode::Sweep, numerics, Some(&args.timing))?;
    let expected = expected::read(&args.expected.expect)?;
    let mut kernel = match with_run_line(&session, args.kernel.clone(), sources)? {
        Ok(kernel) => kernel,
        Err(wrong) => return Ok((*wrong, Vec::new())),
    };
    for (name, value) in point {
        if is_constant(&session, args, sources, name)? {
            sources.set(name, value);
        } else {
            kernel.args.retain(|(known, _)| known != name);
            kernel.args.push((name.clone(), value.clone()));
        }
    }
    note_files(&kernel, &[], None, read);
    let inputs = Inputs::of_kernel(&kernel).and_timing(&args.timing).and_expected(&args.expected.expect);
    let outputs = std::cell::RefCell::new(Vec::new());
    let inspect = |timed: &TimedRun<'_>| -> Result<(), Failure> {
        *outputs.borrow_mut() = outputs_of(&timed.kernel.program);
        if let Some(path) = &args.json {
            let TimedRun { kernel, ran, timeline, applied, compiled } = timed;
            let analysis = kernel.analyse(&ran.trace, timeline, remedies::QUICK);
            let whole = Report::new(kernel, timeline, Some(&analysis), applied, &compiled.sources)?;
            write_file(path, &[&report::json(&whole)?])?;
        }
        match &args.out {
            Some(directory) => {
                let mut inputs = inputs.clone().and_sources(&timed.compiled.sources);
                kept.iter().for_each(|file| inputs.add_place(&file.what, &file.path));
                Ok(write_outputs(&inputs, directory, &timed.ran.outputs)?)
            }
            None => Ok(()),
        }
    };
    let tolerances = args.expected.tolerances();
    let wanted = RunRequest { expected: &expected, tolerances, inspect: &inspect };
    let measured = measure("run", &session, &kernel, sources, point.to_vec(), &wanted)?;
    Ok((measured, outputs.into_inner()))
}

/// Whether a name is a constant of the file instead of a parameter of the kernel.
fn is_constant(session: &Session, args: &RunArgs, sources: &Sources<'_>, name: &str) -> Result<bool, Failure> {
    use nki_frontend::Loader as _;
    let file = &args.kernel.file;
    let listing = nki_frontend::kernels(file, sources, args.kernel.kernel.as_deref(), session.memory);
    if listing.diagnostics.iter().any(Diagnostic::is_error) {
        // The compilation reports it.
        return Ok(true);
    }
    let kernel = listing
        .choose(args.kernel.kernel.as_deref())
        .map_err(|refused| crate::kernel::refusal("run", &args.kernel, refused))?;
    if kernel.params.iter().any(|p| p.name == name) {
        return Ok(false);
    }
    let text = sources.read(file).map_err(|e| format!("cannot read `{}`: {e}", file.display()))?;
    if has_constant(&text, name)? { Ok(true) } else { Err(no_axis(name, kernel, file, &text).into()) }
}

/// Records the files that are read in addition to the sources.
fn note_files(
    args: &KernelArgs,
    expect: &[(String, String)],
    params: Option<&Path>,
    read: &mut BTreeMap<PathBuf, Option<u64>>,
) {
    let mut note = |path: &Path| {
        read.entry(path.to_path_buf()).or_insert_with(|| hash_of(path));
    };
    for (_, text) in args.args.iter().chain(expect) {
        match value::parse(text) {
            Ok(value) => value.files(&mut note),
            // Whatever its name.
            Err(_) => note(text.as_ref()),
        }
    }
    params.into_iter().for_each(&mut note);
    project::candidates(&args.file).iter().for_each(|path| note(path));
}

impl Job {
    /// The arrays in the run lines of the job's text, or of its file if that is a regular one.
    fn run_line_files(&self, file: &Path) -> Vec<PathBuf> {
        let is_source = || file.extension().is_none_or(|e| e != "nkir") && file.is_file();
        let text = match &self.source {
            Some(text) => Some(Cow::Borrowed(text.as_str())),
            None => is_source()
                .then(|| std::fs::read(file).ok())
                .flatten()
                .map(|b| Cow::Owned(String::from_utf8_lossy(&b).into_owned())),
        };
        text.map(|text| run_line::files(&text, file.parent().unwrap_or(Path::new("")))).unwrap_or_default()
    }

    /// The files named by the job or by its kernel's run lines: its source and arrays, and its timing parameters.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut out: Vec<PathBuf> = Vec::new();
        out.extend(self.file.iter().filter(|_| self.source.is_none()).chain(&self.params).map(PathBuf::from));
        for (_, value) in self.args.0.iter().chain(&self.point.0).chain(&self.expect.0) {
            // An invalid value is reported when the job is performed.
            if let Some(value) = text(value).ok().and_then(|text| value::parse(&text).ok()) {
                value.files(&mut |path| out.push(path.to_path_buf()));
            }
        }
        if let (true, Some(file)) = (self.args.0.is_empty(), self.file.as_ref().map(Path::new)) {
            out.extend(self.run_line_files(file));
        }
        out
    }
}
