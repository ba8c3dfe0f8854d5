//! Intermediate values: `--dump`, and the first instruction whose result departs from an fp32 run.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use nki_isa::Program;
use nki_isa::inst::Footprint;
use nki_isa::program::{Node, NodeKind};
use nki_sim_core::exec::{Extent, Moment, Observed, Observer};
use nki_sim_core::report::all_operands;
use rayon::ThreadPoolBuilder;
use serde::Serialize;

use crate::cli::RunArgs;
use crate::compare::Tolerance;
use crate::inputs::Given;
use crate::npy;
use crate::output::write_file;
use crate::session::{Kernel, Launch, Session, Stop};

/// `NAME@[FILE:]LINE[:ITERATION]=FILE.npy`: a tensor after an execution of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dump {
    /// The option's value before `=`, for messages.
    spec: String,
    /// The tensor.
    name: String,
    /// The end of the source file's path, if given.
    source: Option<String>,
    line: u32,
    /// The execution of the line, from 0; by default the last.
    iteration: Option<u64>,
    /// The path of the output array.
    pub(crate) path: PathBuf,
}

impl Dump {
    /// Parses the two sides of the option.
    ///
    /// # Errors
    /// If the place is invalid.
    pub(crate) fn parse(spec: &str, path: &str) -> Result<Self, String> {
        let wrong = || format!("--dump {spec}={path}: expected NAME@LINE[:ITERATION]=FILE.npy, or NAME@FILE:LINE");
        let (name, place) = spec.rsplit_once('@').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        let (source, line, iteration) = file_and_line(place).ok_or_else(wrong)?;
        if path.is_empty() || line == 0 {
            return Err(wrong());
        }
        Ok(Dump { spec: spec.into(), name: name.into(), source, line, iteration, path: path.into() })
    }

    fn is_at(&self, program: &Program, node: &Node) -> bool {
        let file = || program.files.get(node.loc.file as usize).map_or("", |f| &**f);
        node.loc.line == self.line && self.source.as_ref().is_none_or(|s| Path::new(file()).ends_with(s))
    }

    /// Checks that an instruction of the program writes the tensor at this place.
    fn check(&self, program: &Program) -> Result<(), String> {
        let mut written: Vec<String> = Vec::new();
        program.visit(&mut |node| {
            let NodeKind::Inst(inst) = &node.kind else { return };
            if self.is_at(program, node) {
                let mut footprint = Footprint::default();
                inst.footprint(&mut footprint);
                written.extend(footprint.writes.iter().map(|v| program.tensor(v.tensor).name.to_string()));
            }
        });
        written.sort();
        written.dedup();
        if written.contains(&self.name) {
            return Ok(());
        }
        let known = match written.as_slice() {
            [] => format!("no instruction at line {} writes a tensor", self.line),
            names => {
                let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
                format!("line {} writes {}", self.line, names.join(", "))
            }
        };
        Err(format!("--dump {}: no instruction writes `{}` there; {known}", self.spec, self.name))
    }
}

/// Observes the tensors to be dumped.
pub(crate) struct Dumps<'a> {
    program: &'a Program,
    wanted: Vec<Requested<'a>>,
}

struct Requested<'a> {
    dump: &'a Dump,
    /// Executions so far.
    seen: u64,
    /// The value after the requested or the last execution.
    value: Option<Observed>,
}

impl<'a> Dumps<'a> {
    /// For a run of a program.
    ///
    /// # Errors
    /// If no instruction writes a tensor at its place.
    pub(crate) fn new(program: &'a Program, dumps: &'a [Dump]) -> Result<Self, String> {
        dumps.iter().try_for_each(|dump| dump.check(program))?;
        let wanted = dumps.iter().map(|dump| Requested { dump, seen: 0, value: None }).collect();
        Ok(Dumps { program, wanted })
    }

    /// Writes the files.
    ///
    /// # Errors
    /// If an execution was not reached, or a file cannot be written.
    pub(crate) fn write(self) -> Result<(), String> {
        for Requested { dump, seen, value } in &self.wanted {
            if value.is_none() {
                return Err(match seen {
                    0 => format!("--dump {}: the line is not executed", dump.spec),
                    1 => format!("--dump {}: the line writes `{}` once; the only iteration is 0", dump.spec, dump.name),
                    n => format!(
                        "--dump {}: the line writes `{}` {n} times; iterations are 0 to {}",
                        dump.spec,
                        dump.name,
                        n - 1
                    ),
                });
            }
        }
        for (dump, value) in self.wanted.into_iter().filter_map(|w| Some((w.dump, w.value?))) {
            let header = npy::header(value.dtype(), &value.shape);
            write_file(&dump.path, &[&header, &value.bytes()])?;
        }
        Ok(())
    }

    /// The dumps that match an execution, each with whether its value is requested.
    fn matching(&mut self, moment: &Moment<'_>) -> impl Iterator<Item = &mut Requested<'a>> {
        let program = self.program;
        let name = &program.tensor(moment.tensor).name;
        let node = moment.node;
        self.wanted.iter_mut().filter(move |w| *w.dump.name == **name && w.dump.is_at(program, node))
    }
}

impl Observer for Dumps<'_> {
    fn wants(&mut self, moment: &Moment<'_>) -> Option<Extent> {
        let mut any = false;
        for w in self.matching(moment) {
            any |= w.dump.iteration.is_none_or(|wanted| wanted == w.seen);
            w.seen += 1;
        }
        any.then_some(Extent::Tensor)
    }

    fn value(&mut self, moment: &Moment<'_>, value: Observed) {
        for w in self.matching(moment) {
            if w.dump.iteration.is_none_or(|wanted| wanted + 1 == w.seen) {
                w.value = Some(value.clone());
            }
        }
    }
}

/// The first instruction whose result in the device's precision departs from the fp32 result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Departure {
    /// Source file.
    pub(crate) file: String,
    /// 1-based line; 0 if unknown.
    pub(crate) line: u32,
    /// NKI's name of the instruction.
    pub(crate) instruction: String,
    /// The iterations around it: `i=3, j=0`.
    pub(crate) iteration: String,
    /// The tensor that it writes.
    pub(crate) tensor: String,
    /// Element type.
    pub(crate) dtype: String,
    /// The operands of the instruction.
    pub(crate) operands: String,
    /// Elements outside the tolerance.
    pub(crate) mismatches: usize,
    /// Elements written.
    pub(crate) elements: usize,
    /// Index of the first mismatch, in write order.
    pub(crate) element: usize,
    /// Its value.
    pub(crate) got: f32,
    /// The value in fp32.
    pub(crate) fp32: f32,
    /// The tolerance of the comparison.
    #[serde(flatten)]
    pub(crate) tolerance: Tolerance,
}

impl Departure {
    /// Two lines for the terminal.
    pub(crate) fn text(&self) -> String {
        let iteration = if self.iteration.is_empty() { String::new() } else { format!(" ({})", self.iteration) };
        format!(
            "first departs from fp32 at {}:{}{iteration}: {} writes `{}` ({}), where {} of {} elements differ by more than rtol {:e}, atol {:e}\n  element {}: {:?}, in fp32 {:?}; {}",
            self.file,
            self.line,
            self.instruction,
            self.tensor,
            self.dtype,
            self.mismatches,
            self.elements,
            self.tolerance.rtol,
            self.tolerance.atol,
            self.element,
            self.got,
            self.fp32,
            self.operands
        )
    }
}

/// A result of one of the two runs.
struct Written {
    core: u32,
    position: u32,
    operand: usize,
    values: Vec<f32>,
}

fn place(moment: &Moment<'_>) -> (u32, u32, usize) {
    (moment.core, moment.position, moment.operand)
}

/// Sends all results until the receiver is closed.
struct Sender {
    to: Option<SyncSender<Written>>,
}

impl Observer for Sender {
    fn wants(&mut self, _: &Moment<'_>) -> Option<Extent> {
        self.to.as_ref().map(|_| Extent::Written)
    }

    fn value(&mut self, moment: &Moment<'_>, value: Observed) {
        let (core, position, operand) = place(moment);
        let Some(values) = value.numbers() else { return };
        let sent = self.to.as_ref().map(|to| to.send(Written { core, position, operand, values }));
        if !matches!(sent, Some(Ok(()))) {
            self.to = None;
        }
    }
}

/// Compares its fp32 results with the received ones, up to the first departure.
struct Comparer<'a> {
    program: &'a Program,
    from: Option<Receiver<Written>>,
    tolerance: Tolerance,
    found: Option<(u32, u32, Departure)>,
}

impl Observer for Comparer<'_> {
    fn wants(&mut self, _: &Moment<'_>) -> Option<Extent> {
        self.from.as_ref().map(|_| Extent::Written)
    }

    fn value(&mut self, moment: &Moment<'_>, value: Observed) {
        let (Some(fp32), Some(from)) = (value.numbers(), &self.from) else { return };
        // After the runs take different paths, or one has ended, there is nothing to compare.
        let other = from.recv().ok().filter(|w| (w.core, w.position, w.operand) == place(moment));
        let Some(Written { values, .. }) = other.filter(|w| w.values.len() == fp32.len()) else {
            self.from = None;
            return;
        };
        let differs = |(got, fp32): (&f32, &f32)| self.tolerance.differs(f64::from(*got), f64::from(*fp32));
        let pairs = || values.iter().zip(&fp32);
        let Some(element) = pairs().position(differs) else { return };
        let mismatches = pairs().filter(|pair| differs(*pair)).count();
        let (program, node) = (self.program, moment.node);
        let NodeKind::Inst(inst) = &node.kind else { return };
        let steps = program.iterations(node.trail).into_iter().map(|(variable, value)| format!("{variable}={value}"));
        let loops = moment.loops.iter().map(|(loc, iteration)| format!("iteration {iteration} of line {}", loc.line));
        let departure = Departure {
            file: program.files.get(node.loc.file as usize).map_or_else(String::new, |f| f.to_string()),
            line: node.loc.line,
            instruction: inst.schema().name.into(),
            iteration: steps.chain(loops).collect::<Vec<_>>().join(", "),
            tensor: program.tensor(moment.tensor).name.to_string(),
            dtype: value.dtype().to_string(),
            operands: String::new(),
            mismatches,
            elements: values.len(),
            element,
            got: values[element],
            fp32: fp32[element],
            tolerance: self.tolerance,
        };
        self.found = Some((moment.core, moment.position, departure));
        self.from = None;
    }
}

/// Runs a kernel twice concurrently, in the device's precision and in fp32, and finds the first instruction whose results differ by more than a
/// tolerance; `None` if there is none before the end, or before the two runs take different paths.
///
/// # Errors
/// If a run fails.
pub(crate) fn departure(
    session: &Session,
    kernel: &Kernel,
    inputs: impl Fn() -> Result<Vec<Given>, String>,
    tolerance: Tolerance,
) -> Result<Option<Departure>, String> {
    let program = &kernel.program;
    let session = |precise| Session { precise, memory: session.memory.shared_by(2), ..session.clone() };
    // Results that may be buffered for the other run.
    let (to, from) = sync_channel(4);
    let mut sender = Sender { to: Some(to) };
    let mut judge = Comparer { program, from: Some(from), tolerance, found: None };
    let (precise, shadow) = (session(true), session(false));
    let (left, right) = (inputs()?, inputs()?);
    // Separate pools: in a shared one, a thread of the sending run could pick up the receiving run and block.
    let pool = || ThreadPoolBuilder::new().num_threads(1).build().map_err(|e| format!("cannot start a thread: {e}"));
    let (one, two) = (pool()?, pool()?);
    let (left, right) = std::thread::scope(|scope| {
        let one = scope.spawn(|| {
            let done = one.install(|| precise.run(vec![Launch::new(kernel, left).observed(&mut sender)]).map(drop));
            // Closes the channel, so that the other run does not wait.
            sender.to = None;
            done
        });
        let right = two.install(|| shadow.run(vec![Launch::new(kernel, right).observed(&mut judge)]).map(drop));
        judge.from = None;
        (one.join(), right)
    });
    let failed = |stop| match stop {
        Stop::Call(why) => why,
        Stop::Kernel(_) => "the kernel fails when it is run again to find where its values depart".to_owned(),
    };
    if judge.found.is_none() {
        left.map_err(|_| "the run in the device's precision has been cancelled".to_owned())?.map_err(failed)?;
        right.map_err(failed)?;
    }
    let Some((core, position, found)) = judge.found else { return Ok(None) };
    let operands = all_operands(program);
    Ok(Some(Departure { operands: operands[core as usize][position as usize].clone(), ..found }))
}

/// The dumps of a run.
///
/// # Errors
/// If one cannot be understood.
pub(crate) fn dumps_of(args: &RunArgs) -> Result<Vec<Dump>, String> {
    args.dump.iter().map(|(spec, path)| Dump::parse(spec, path)).collect()
}

/// `LINE`, `LINE:ITERATION`, `FILE:LINE` or `FILE:LINE:ITERATION`.
pub(crate) fn file_and_line(place: &str) -> Option<(Option<String>, u32, Option<u64>)> {
    let parts: Vec<&str> = place.split(':').collect();
    match parts.as_slice() {
        [line] => Some((None, line.parse().ok()?, None)),
        [first, second] => match first.parse() {
            Ok(line) => Some((None, line, Some(second.parse().ok()?))),
            Err(_) => Some((Some((*first).to_owned()), second.parse().ok()?, None)),
        },
        [file, line, iteration] => Some((Some((*file).to_owned()), line.parse().ok()?, Some(iteration.parse().ok()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_line_with_file_and_iteration() {
        let dump = |spec| Dump::parse(spec, "t.npy").map(|d| (d.name, d.source, d.line, d.iteration));
        assert_eq!(dump("t@12"), Ok(("t".into(), None, 12, None)));
        assert_eq!(dump("t@12:3"), Ok(("t".into(), None, 12, Some(3))));
        assert_eq!(dump("t@a/k.py:12"), Ok(("t".into(), Some("a/k.py".into()), 12, None)));
        assert_eq!(dump("t@k.py:12:0"), Ok(("t".into(), Some("k.py".into()), 12, Some(0))));
        for wrong in ["t", "@12", "t@", "t@0", "t@x", "t@1:x", "t@k.py:1:2:3"] {
            assert!(dump(wrong).unwrap_err().contains("expected NAME@LINE"), "{wrong}");
        }
    }
}
