//! The pipeline, once for every command and for Python: compile, place, execute, time, judge.
//!
//! A [`Session`] has the settings; a [`Compilation`] is the result of compiling; a [`Kernel`] is placed and can run repeatedly; a [`Ran`] is the
//! result of one rank. A run of one rank is a run of several with N = 1.

use std::borrow::Cow;
use std::sync::OnceLock;

use nki_diag::memory::Limit;
use nki_diag::{Diagnostic, SourceMap};
use nki_frontend::{Options, Returned};
use nki_isa::{Program, Target};
use nki_sim_core::HostTensor;
use nki_sim_core::analysis::Analysis;
use nki_sim_core::analysis::error_bar::{ErrorBar, error_bar};
use nki_sim_core::analysis::remedies::Case;
use nki_sim_core::exec::{self, ExecOptions, NeedsData, Observer, UnwrittenValue};
use nki_sim_core::labels::Labels;
use nki_sim_core::lint;
use nki_sim_core::middle_end::descriptors::{self, Descriptors};
use nki_sim_core::middle_end::{self, Change, Passes, RESERVED};
use nki_sim_core::place::{self, Capacity, Placement};
use nki_sim_core::schedule::Policy;
use nki_sim_core::simulate::{RankTrace, simulate_ranks};
use nki_sim_core::timeline::Timeline;
use nki_sim_core::timing::{Laws, Params};
use nki_sim_core::trace::Trace;

use crate::findings::Judge;
use crate::inputs::{Given, in_order};
use crate::settings::ParamChanges;
use crate::{memory, settings, stage};

/// The purpose for which values are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numerics {
    /// For the outputs, and for findings that depend on values.
    Computed,
    /// For the trace, if control flow or an address depends on them.
    IfNeeded,
    /// Never computed: nothing runs, and only findings are reported.
    Never,
}

/// Settings for compiling and running kernels and for their findings. Every mode of the command and of the Python package creates one.
#[derive(Debug, Clone)]
pub struct Session {
    /// Levels of findings.
    pub judge: Judge,
    /// Memory limit of specialisation, and of a run with all its ranks.
    pub memory: Limit,
    /// Whether reports will list every executed statement.
    pub reported: bool,
    /// Handling of an SBUF or PSUM that is too small.
    pub capacity: Capacity,
    /// The purpose for which values are computed.
    pub numerics: Numerics,
    /// Whether descriptors are built before the run if the kernel leaves the choice open.
    pub static_descriptors: bool,
    /// Whether computed values are rounded to their dtype at each write.
    pub precise: bool,
    /// The value of unwritten memory.
    pub unwritten: UnwrittenValue,
    /// Limit of specialisation steps, and of statements executed in dynamic loops.
    pub max_steps: Option<u64>,
    /// Changes of the timing parameters.
    pub params: ParamChanges,
}

impl Default for Session {
    /// The defaults of `nki-sim run`, independent of the environment, without limits.
    fn default() -> Self {
        Session {
            judge: Judge::default(),
            memory: Limit::NONE,
            reported: false,
            capacity: Capacity::Error,
            numerics: Numerics::Computed,
            static_descriptors: false,
            precise: true,
            unwritten: UnwrittenValue::default(),
            max_steps: None,
            params: ParamChanges::default(),
        }
    }
}

/// The result of compiling a kernel.
#[derive(Debug)]
pub struct Compilation {
    /// The kernel's name.
    pub name: String,
    /// The target machine.
    pub target: Target,
    /// The program, until it is placed; `None` if the kernel is wrong.
    pub program: Option<Program>,
    /// Sources, for rendering diagnostics.
    pub sources: SourceMap,
    /// The compiler's findings, before levels are applied.
    pub diagnostics: Vec<Diagnostic>,
    /// Lines printed at specialisation.
    pub prints: Vec<String>,
    /// The structure of the kernel's return value.
    pub returned: Returned,
    /// Whether the older compiler compiles it, and whether its middle end leaves it unchanged.
    pub older_compiler: bool,
    /// See `older_compiler`.
    pub as_written: bool,
}

/// Rules that a program in text form breaks; the frontend has checked compiled programs.
fn violations(program: &Program) -> Vec<Diagnostic> {
    program
        .validate()
        .into_iter()
        .map(|(violation, loc, _)| {
            let d = Diagnostic::error(violation.id, violation.to_string()).at_source(loc, "");
            if violation.help.is_empty() { d } else { d.help(violation.help) }
        })
        .collect()
}

impl Compilation {
    /// A program without sources, for example read from its text form.
    pub fn of(program: Program) -> Self {
        Compilation {
            name: program.name.to_string(),
            target: program.target,
            program: Some(program),
            sources: SourceMap::new(),
            diagnostics: Vec::new(),
            prints: Vec::new(),
            returned: Returned::None,
            older_compiler: false,
            as_written: false,
        }
    }

    /// A program in text form; `label` names it in messages. The middle end leaves it as it is if `as_written` is set. Its source files are
    /// read, if they still exist, to show their lines.
    ///
    /// # Errors
    /// What is wrong with the text, a line for each problem.
    pub fn parse(label: &str, text: &str, as_written: bool) -> Result<Self, String> {
        let program = nki_isa::text::parse_file(label, text).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(|e| format!("{label}:{e}")).collect();
            format!("`{label}` is not a valid program:\n  {}", lines.join("\n  "))
        })?;
        let mut sources = SourceMap::new();
        for path in &program.files {
            match std::fs::read_to_string(&**path) {
                Ok(text) => sources.add(&**path, text),
                Err(_) => sources.add_name(&**path),
            };
        }
        let diagnostics = violations(&program);
        Ok(Compilation { sources, diagnostics, as_written, ..Compilation::of(program) })
    }

    /// A kernel that is wrong before compilation.
    pub(crate) fn wrong(target: Target, diagnostics: Vec<Diagnostic>) -> Self {
        Compilation {
            name: String::new(),
            target,
            program: None,
            sources: SourceMap::new(),
            diagnostics,
            prints: Vec::new(),
            returned: Returned::None,
            older_compiler: false,
            as_written: false,
        }
    }

    /// Whether the compiler found that the kernel is wrong.
    pub fn is_wrong(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// All findings: the compiler's, followed by `more`.
    pub fn with(&self, more: impl IntoIterator<Item = Diagnostic>) -> Vec<Diagnostic> {
        self.diagnostics.iter().cloned().chain(more).collect()
    }
}

impl From<nki_frontend::Compiled> for Compilation {
    fn from(compiled: nki_frontend::Compiled) -> Self {
        let mut diagnostics = compiled.diagnostics;
        let older_compiler = compiled.kernel.as_ref().is_some_and(|k| k.older_compiler);
        diagnostics.extend(compiled.program.iter().flat_map(lint::dependent_iterations));
        if !older_compiler {
            diagnostics.extend(compiled.program.iter().flat_map(lint::continued_sums));
        }
        Compilation {
            older_compiler,
            as_written: compiled.kernel.as_ref().is_some_and(|k| k.as_written),
            name: compiled.kernel.map(|k| k.name).unwrap_or_default(),
            target: compiled.target,
            program: compiled.program,
            sources: compiled.sources,
            diagnostics,
            prints: compiled.prints,
            returned: compiled.returned,
        }
    }
}

/// A program with its placement, ready to run.
#[derive(Debug)]
pub struct Kernel {
    /// The program.
    pub program: Program,
    /// Where its tensors are.
    pub placement: Placement,
    /// The timing parameters of its target.
    pub params: Params,
    /// The changes of its compiler's middle end, by line.
    pub changes: Vec<Change>,
    /// It is for `neuronxcc.nki`.
    older_compiler: bool,
    /// Its trace, or why that depends on values; not computed if values are computed anyway.
    traced: Option<Result<Trace, NeedsData>>,
    /// Findings about accesses, if every run has the same ones.
    accesses: OnceLock<Vec<Diagnostic>>,
}

impl Kernel {
    /// Why the executed instructions are known only after a run; `None` if they are known before, or if values are computed anyway.
    pub fn needs_data(&self) -> Option<&NeedsData> {
        self.traced.as_ref()?.as_ref().err()
    }

    /// Analyses a run's time and possible gains: remedies are tried by timing at most `budget` instructions again.
    pub fn analyse<'a>(&'a self, trace: &'a Trace, timeline: &'a Timeline, budget: usize) -> Analysis<'a> {
        Analysis::new(self.case(trace, timeline), budget)
    }

    /// The expected range of a run's latency on hardware; `None` if unknown.
    pub(crate) fn error_bar(&self, timeline: &Timeline) -> Option<ErrorBar> {
        error_bar(&self.program, &self.params, timeline)
    }

    /// The timing parameters whose values differ from the defaults, by name, each with its value and the default.
    pub(crate) fn changed_params(&self) -> Vec<(String, toml::Value, toml::Value)> {
        let default = Params::of(self.params.target());
        self.params.differences(&if self.older_compiler { default.for_neuronxcc() } else { default })
    }

    /// A timed run, for timing again with changes.
    pub(crate) fn case<'a>(&'a self, trace: &'a Trace, timeline: &'a Timeline) -> Case<'a> {
        Case { program: &self.program, placement: &self.placement, trace, params: &self.params, timeline, known: None }
    }
}

/// The input of one rank. Ranks may share a kernel.
pub struct Launch<'k: 'o, 'o> {
    /// The kernel.
    kernel: &'k Kernel,
    /// Its inputs, by name.
    inputs: Vec<Given>,
    /// Observes the values that its instructions write.
    observer: Option<&'o mut dyn Observer>,
}

impl<'k: 'o, 'o> Launch<'k, 'o> {
    /// A kernel with its inputs, by name.
    pub fn new(kernel: &'k Kernel, inputs: Vec<Given>) -> Self {
        Launch { kernel, inputs, observer: None }
    }

    /// Adds an observer of the values that its instructions write. Instructions are then computed one by one, and values are computed even if they
    /// are not
    /// needed.
    #[must_use]
    pub fn observed(self, observer: &'o mut dyn Observer) -> Self {
        Launch { observer: Some(observer), ..self }
    }
}

/// The results of one rank.
#[derive(Debug)]
pub struct Ran<'k> {
    /// In the program's order; empty if no values were computed.
    pub outputs: Vec<HostTensor>,
    /// Lines that the kernel printed on the device.
    pub prints: Vec<String>,
    /// The executed instructions; empty if they depend on values, and none were computed.
    pub trace: Cow<'k, Trace>,
    /// Findings, before levels are applied.
    pub findings: Vec<Diagnostic>,
}

/// The error of a kernel that cannot be placed, or that faulted.
#[derive(Debug, Default)]
pub struct Faulted {
    /// The first rank with an error.
    pub rank: usize,
    /// The findings until then.
    pub findings: Vec<Diagnostic>,
    /// The errors; empty if the compiler has reported them.
    pub errors: Vec<Diagnostic>,
    /// Lines printed until then.
    pub prints: Vec<String>,
}

impl Faulted {
    fn because(rank: usize, error: Diagnostic) -> Self {
        Faulted { rank, errors: vec![error], ..Faulted::default() }
    }

    /// All findings of the run, before levels are applied.
    pub fn found(self) -> Vec<Diagnostic> {
        let mut all = self.findings;
        all.extend(self.errors);
        all
    }

    /// The same for a run of several ranks: the errors name the rank.
    pub fn found_on_rank(mut self) -> Vec<Diagnostic> {
        let note = format!("on rank {}", self.rank);
        self.errors.iter_mut().for_each(|d| d.notes.push(note.clone()));
        self.found()
    }
}

/// The reason why a stage has no result.
#[derive(Debug)]
pub enum Stop {
    /// The kernel is wrong.
    Kernel(Box<Faulted>),
    /// The call is wrong.
    Call(String),
}

impl From<Faulted> for Stop {
    fn from(fault: Faulted) -> Self {
        Stop::Kernel(Box::new(fault))
    }
}

impl Session {
    /// A session for Python calls: values are computed, and the environment provides defaults for missing arguments.
    ///
    /// # Errors
    /// If a variable is invalid.
    pub fn of_call(judge: Judge, capacity: Capacity) -> Result<Self, String> {
        let (memory, precise, unwritten) = (memory::limit(None)?, settings::precise_fp()?, settings::unwritten()?);
        let max_steps = settings::max_steps();
        Ok(Session { judge, memory, capacity, precise, unwritten, max_steps, ..Session::default() })
    }

    /// The frontend's options, apart from the kernel and its machine.
    pub fn options(&self) -> Options {
        let defaults = Options::default();
        Options {
            strict: self.judge.includes_strict(),
            step_limit: self.max_steps.unwrap_or(defaults.step_limit),
            memory: self.memory,
            over_capacity: self.capacity == Capacity::Warn,
            ..defaults
        }
    }

    /// The execution options for the ranks that run these kernels.
    fn exec_options(&self, kernels: &[&Kernel]) -> ExecOptions {
        ExecOptions {
            precise: self.precise,
            step_limit: self.step_limit(),
            memory: self.memory.shared_by(kernels.len()),
            reported: self.reported,
            checks: self.judge.checks(),
            unwritten: self.unwritten,
            // Values read by one rank may reach the results of another, where taint is not tracked.
            reads_without_effect: !matches!(kernels, [kernel] if kernel.older_compiler),
        }
    }

    /// Maximum number of statements executed in dynamic loops.
    fn step_limit(&self) -> u64 {
        self.max_steps.unwrap_or(ExecOptions::default().step_limit)
    }

    /// Places a compiled program, which is moved out of `compiled`.
    ///
    /// # Errors
    /// If the kernel is wrong or exceeds the memory limit, or if a timing parameter is invalid.
    pub fn place(&self, compiled: &mut Compilation) -> Result<Kernel, Stop> {
        let wrong = compiled.is_wrong();
        let Some(mut program) = compiled.program.take().filter(|_| !wrong) else {
            return Err(Faulted::default().into());
        };
        let mut changes = Vec::new();
        let mut params = self.params.params(program.target).map_err(Stop::Call)?;
        if compiled.older_compiler {
            params = params.for_neuronxcc();
            let laws = laws(&params)?.expected_by_compiler();
            let passes = if compiled.as_written { Passes::AS_WRITTEN } else { Passes::ALL };
            (program, changes) = stage("middle end", || middle_end::rewrite(&program, passes, &laws));
        } else if !compiled.as_written
            && let Some(rewritten) = stage("middle end", || middle_end::as_compiled(&program))
        {
            (program, changes) = rewritten;
        }
        let usual = if compiled.older_compiler { Descriptors::Older } else { Descriptors::Current };
        let descriptors = if self.static_descriptors { Descriptors::Static } else { usual };
        descriptors::choose(&mut program, descriptors);
        let reserved = if compiled.older_compiler { RESERVED } else { 0 };
        let (placed, traced) = rayon::join(
            || stage("place", || place::place_with(&program, self.capacity, reserved)),
            || (self.numerics != Numerics::Computed).then(|| exec::trace_within(&program, self.step_limit())),
        );
        match placed {
            Ok(placement) => {
                let older_compiler = compiled.older_compiler;
                Ok(Kernel { program, placement, params, changes, older_compiler, traced, accesses: OnceLock::new() })
            }
            Err(errors) => Err(Faulted { errors, ..Faulted::default() }.into()),
        }
    }

    /// Runs all ranks, from 0, concurrently, and collects all findings.
    ///
    /// # Errors
    /// If an input does not match, the kernel faults or its ranks deadlock.
    pub fn run<'k>(&self, launches: Vec<Launch<'k, '_>>) -> Result<Vec<Ran<'k>>, Stop> {
        self.run_with(launches, None, &mut |_| ()).map(|(all, _)| all)
    }

    /// Runs all ranks, from 0, and times them on one clock: one timeline per rank. `executed` is called in between: it can take the
    /// outputs, so that they are not in memory together with the data for timing.
    ///
    /// # Errors
    /// As [`Session::run`]; also if there is no rank, or a timing parameter is invalid.
    pub fn run_timed<'k>(
        &self,
        launches: Vec<Launch<'k, '_>>,
        executed: &mut dyn FnMut(&mut [Ran<'k>]),
    ) -> Result<(Vec<Ran<'k>>, Vec<Timeline>), Stop> {
        let first = launches.first().ok_or_else(|| Stop::Call("there is no rank to run".into()))?;
        let laws = laws(&first.kernel.params)?;
        let policy = Policy::of(&first.kernel.params);
        self.run_with(launches, Some((&laws, policy)), executed)
    }

    /// [`Session::run`] with one rank.
    ///
    /// # Errors
    /// As there.
    pub fn run_alone<'k>(&self, kernel: &'k Kernel, inputs: Vec<Given>) -> Result<Ran<'k>, Stop> {
        Ok(self.run(vec![Launch::new(kernel, inputs)])?.swap_remove(0))
    }

    /// [`Session::run_timed`] with one rank.
    ///
    /// # Errors
    /// As there.
    pub fn run_alone_timed<'k>(&self, kernel: &'k Kernel, inputs: Vec<Given>) -> Result<(Ran<'k>, Timeline), Stop> {
        let (mut all, mut timelines) = self.run_timed(vec![Launch::new(kernel, inputs)], &mut |_| ())?;
        Ok((all.swap_remove(0), timelines.swap_remove(0)))
    }

    /// Runs all ranks, and times them if there are a cost model and a policy.
    fn run_with<'k>(
        &self,
        launches: Vec<Launch<'k, '_>>,
        timing: Option<(&Laws<'_>, Policy)>,
        then: &mut dyn FnMut(&mut [Ran<'k>]),
    ) -> Result<(Vec<Ran<'k>>, Vec<Timeline>), Stop> {
        let kernels: Vec<&Kernel> = launches.iter().map(|l| l.kernel).collect();
        let options = self.exec_options(&kernels);
        let (mut all, executed) = match self.traced(&launches, &options) {
            Some(traced) => (vec![traced?], false),
            None => (execute(launches, &options)?, true),
        };
        then(&mut all);
        let traces: Vec<RankTrace<'_>> = kernels
            .iter()
            .zip(&all)
            .map(|(k, ran)| RankTrace { program: &k.program, placement: &k.placement, trace: &ran.trace })
            .collect();
        let find = || kernels.iter().zip(&all).map(|(k, ran)| found(k, ran, executed)).collect::<Vec<_>>();
        let find = || stage("findings", find);
        let (timelines, found) = match timing {
            Some((laws, policy)) => rayon::join(|| stage("time", || simulate_ranks(&traces, laws, &policy)), find),
            None => (Vec::new(), find()),
        };
        for (ran, found) in all.iter_mut().zip(found) {
            ran.findings.extend(found);
        }
        Ok((all, timelines))
    }

    /// A run without values; `None` if values have to be computed.
    fn traced<'k>(&self, launches: &[Launch<'k, '_>], options: &ExecOptions) -> Option<Result<Ran<'k>, Faulted>> {
        let [Launch { kernel, observer: None, .. }] = launches else { return None };
        let trace = match kernel.traced.as_ref()? {
            Ok(trace) => Cow::Borrowed(trace),
            Err(_) if self.numerics == Numerics::Never => Cow::Owned(Trace::default()),
            Err(_) => return None,
        };
        // A trace that is not timed may have any length.
        let too_long = (self.numerics != Numerics::Never).then(|| exec::check_trace(&trace, options)).flatten();
        Some(match too_long.or_else(|| exec::check_rendezvous(&kernel.program, &trace)) {
            Some(error) => Err(Faulted::because(0, error)),
            None => Ok(Ran { outputs: Vec::new(), prints: Vec::new(), trace, findings: Vec::new() }),
        })
    }
}

/// The laws of time.
fn laws(params: &Params) -> Result<Laws<'_>, Stop> {
    Laws::new(params).map_err(|e| Stop::Call(e.to_string()))
}

/// Executes all ranks.
fn execute<'k>(launches: Vec<Launch<'k, '_>>, options: &ExecOptions) -> Result<Vec<Ran<'k>>, Faulted> {
    let mut ready = Vec::with_capacity(launches.len());
    for (rank, Launch { kernel, inputs, observer }) in launches.into_iter().enumerate() {
        let Kernel { program, placement, .. } = kernel;
        // Check memory before generating inputs.
        if let Some(error) = exec::check_memory(program, placement, options) {
            return Err(Faulted::because(rank, error));
        }
        ready.push(exec::Rank { program, placement, inputs: in_order(program, inputs), observer });
    }
    match stage("execute", || exec::run_ranks(ready, options)) {
        Ok(results) => Ok(results
            .into_iter()
            .map(|r| Ran { outputs: r.outputs, prints: r.prints, trace: Cow::Owned(r.trace), findings: r.findings })
            .collect()),
        Err(failed) => {
            let exec::RanksFailure { rank, failure } = *failed;
            Err(Faulted { rank, findings: failure.findings, errors: failure.errors, prints: failure.prints })
        }
    }
}

/// Findings in addition to those of the execution.
fn found(kernel: &Kernel, ran: &Ran<'_>, executed: bool) -> Vec<Diagnostic> {
    let Kernel { program, changes, .. } = kernel;
    let mut found = found_in(kernel, ran, executed);
    if changes.iter().any(|change| change.what.is_spill()) {
        // Their tiles are not those of the source: a seemingly lost result was spilled or is loaded again.
        found.retain(|d| !matches!(d.id, "dead-load" | "dead-store" | "overwritten-before-read"));
        found.extend(middle_end::thrashes(program, changes));
    }
    found
}

fn found_in(kernel: &Kernel, ran: &Ran<'_>, executed: bool) -> Vec<Diagnostic> {
    let Kernel { program, placement, .. } = kernel;
    match kernel.needs_data() {
        _ if executed && lint::is_always_traced_alike(program, &ran.trace) => {
            kernel.accesses.get_or_init(|| lint::accesses(program, placement, &ran.trace)).clone()
        }
        _ if executed => lint::accesses(program, placement, &ran.trace),
        None => lint::without_run(program, placement, &ran.trace),
        Some(_) => lint::without_trace(program, placement),
    }
}

/// The findings of all ranks, before levels are applied, without repeats: ranks run one kernel and usually have the same findings.
pub fn findings_of(ranks: &[Ran<'_>]) -> Vec<Diagnostic> {
    let mut out: Vec<Diagnostic> = Vec::new();
    for ran in ranks {
        let known = out.len();
        for found in &ran.findings {
            if !out[..known].contains(found) {
                out.push(found.clone());
            }
        }
    }
    out
}
