//! Compiles, runs, times and judges a kernel without printing: a point of a sweep, a job of a batch, a tool call.

use nki_diag::{Applied, Diagnostic};
use nki_frontend::Loader;
use nki_sim_core::timeline::Timeline;

use crate::cli::KernelArgs;
use crate::expected::{self, Expected, Tolerances};
use crate::kernel::compile_from;
use crate::row::Row;
use crate::session::{Compilation, Kernel, Ran, Session};
use crate::{Failure, run_line, settings};

/// The processing of a completed run.
pub(crate) struct RunRequest<'a> {
    /// Expected values of its outputs.
    pub(crate) expected: &'a [Expected],
    /// The tolerances of the comparison.
    pub(crate) tolerances: Tolerances,
    /// Called with the completed run.
    pub(crate) inspect: &'a dyn Fn(&TimedRun<'_>) -> Result<(), Failure>,
}

/// A completed run.
pub(crate) struct TimedRun<'a> {
    /// The kernel.
    pub(crate) kernel: &'a Kernel,
    /// Its outputs, trace and findings.
    pub(crate) ran: &'a Ran<'a>,
    /// Its timeline.
    pub(crate) timeline: &'a Timeline,
    /// The findings, after levels are applied.
    pub(crate) applied: &'a Applied,
    /// Its compilation.
    pub(crate) compiled: &'a Compilation,
}

/// A kernel that was measured, or is wrong.
pub(crate) struct Measured {
    /// The compilation.
    pub(crate) compiled: Compilation,
    /// The findings, after levels are applied.
    pub(crate) applied: Applied,
    /// The figures.
    pub(crate) row: Row,
    /// Lines printed during compilation and during the run.
    pub(crate) prints: Vec<String>,
}

impl Measured {
    /// A kernel that is wrong.
    pub(crate) fn wrong(
        session: &Session,
        point: Vec<(String, String)>,
        compiled: Compilation,
        found: Vec<Diagnostic>,
    ) -> Self {
        let applied = session.judge.judge(compiled.with(found));
        let row = Row::new(point, &applied, &compiled.sources, None);
        let prints = compiled.prints.clone();
        Measured { compiled, applied, row, prints }
    }
}

/// Adds the arguments from run lines if `args` has none.
///
/// # Errors
/// The kernel is wrong because its run lines are invalid.
pub(crate) fn with_run_line(
    session: &Session,
    mut args: KernelArgs,
    loader: &dyn Loader,
) -> Result<Result<KernelArgs, Box<Measured>>, Failure> {
    match run_line::arguments(&args, session, loader) {
        Ok(supplied) => {
            args.args.extend(supplied);
            Ok(Ok(args))
        }
        Err(wrong) => {
            let program = wrong.program(settings::target(args.target)?);
            Ok(Err(Box::new(Measured::wrong(session, Vec::new(), program, Vec::new()))))
        }
    }
}

/// Compiles the kernel and reports findings that need no values. Returns the placed kernel, unless it is wrong, and all findings.
pub(crate) fn check(
    session: &Session,
    args: &KernelArgs,
    loader: &dyn Loader,
) -> Result<(Compilation, Option<Kernel>, Applied), Failure> {
    let (mut compiled, _) = compile_from("check", session, args, loader)?;
    let kernel = match session.place(&mut compiled) {
        Ok(kernel) => kernel,
        Err(stop) => {
            let applied = session.judge.judge(compiled.with(stop.found()?));
            return Ok((compiled, None, applied));
        }
    };
    match session.run_alone(&kernel, Vec::new()) {
        Ok(ran) => {
            let applied = session.judge.judge(compiled.with(ran.findings));
            Ok((compiled, Some(kernel), applied))
        }
        Err(stop) => {
            let applied = session.judge.judge(compiled.with(stop.found()?));
            Ok((compiled, None, applied))
        }
    }
}

/// Compiles the kernel, runs it and compares its outputs. `point` identifies it within a sweep.
pub(crate) fn measure(
    command: &str,
    session: &Session,
    args: &KernelArgs,
    loader: &dyn Loader,
    point: Vec<(String, String)>,
    wanted: &RunRequest<'_>,
) -> Result<Measured, Failure> {
    let (mut compiled, arguments) = compile_from(command, session, args, loader)?;
    let kernel = match session.place(&mut compiled) {
        Ok(kernel) => kernel,
        Err(stop) => return Ok(Measured::wrong(session, point, compiled, stop.found()?)),
    };
    expected::check_names(&kernel.program, wanted.expected)?;
    let (mut ran, timeline) = match session.run_alone_timed(&kernel, arguments.into_tensors()) {
        Ok(done) => done,
        Err(stop) => return Ok(Measured::wrong(session, point, compiled, stop.found()?)),
    };
    let applied = session.judge.judge(compiled.with(std::mem::take(&mut ran.findings)));
    (wanted.inspect)(&TimedRun {
        kernel: &kernel,
        ran: &ran,
        timeline: &timeline,
        applied: &applied,
        compiled: &compiled,
    })?;
    let mut row = Row::new(point, &applied, &compiled.sources, Some((&kernel, &timeline)));
    row.compared(&expected::compare(ran.outputs, wanted.expected, wanted.tolerances));
    let mut prints = compiled.prints.clone();
    prints.extend(ran.prints);
    Ok(Measured { compiled, applied, row, prints })
}
