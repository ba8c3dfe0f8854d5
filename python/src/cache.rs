//! Compiled programs, and the checks whether they are still valid.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nki_diag::{ColorChoice, Diagnostic, render_all};
use nki_frontend::{Arg, GridAxis, Options, Returned};
use nki_isa::inst::{Footprint, REGISTRY};
use nki_isa::program::{NodeKind, Output};
use nki_isa::{Program, Target, TensorId};
use nki_sim::session::{Compilation, Kernel, Session, Stop};
use nki_sim_core::exec::LITTLE;
use nki_sim_core::place::Capacity;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use rustc_hash::FxHashSet;

use crate::arrays::Array;
use crate::convert::{Conversion, helpers, tracer};
use crate::errors::{as_json, call_error, kernel_error, value_error};
use crate::host::{Live, Read, Table, same};
use crate::levels::Judge;
use crate::run::{Outcome, shaped};
use crate::threads::detached;
use crate::trace::{Mode, Place, Run};
use crate::values::Wanted;
use crate::{capacity_named, named_target};

/// Maximum number of programs cached per kernel; the least recently used is evicted.
const MOST: usize = 64;

/// The next program's number.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// The parameters of a compilation, except the host's state.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    target: Target,
    lnc: u32,
    strict: bool,
    schedule: Vec<(String, String)>,
    /// `compile_config` and `specialization_config`.
    config: [Arg; 2],
    capacity: Capacity,
    settings: Vec<(String, String)>,
    grid: Vec<GridAxis>,
    /// Whether files that import both languages have the older one.
    older_of_both: bool,
    as_written: bool,
    static_descriptors: bool,
    /// Whether Python executes the kernel instead of the evaluator.
    traced: bool,
    /// Whether the kernel is wrong, and the program ends at the error.
    up_to_error: bool,
}

/// A program that is ready to run.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) kernel: Kernel,
    /// The compilation, without the program.
    pub(crate) compiled: Compilation,
    /// Number of outputs that the kernel returns; the following ones are inputs that it writes.
    pub(crate) outputs: usize,
    /// Positions of written inputs, with the positions of their outputs.
    pub(crate) written: Vec<(usize, usize)>,
    /// Whether a run is too short to be interrupted.
    pub(crate) brief: bool,
    serial: u64,
    key: Key,
    live: Live,
    reads: Vec<Read>,
    /// The state on which a traced kernel depends (`nki_sim._trace.Snapshot`).
    snapshot: Option<Py<PyAny>>,
    args: Vec<(String, Arg)>,
}

impl Ready {
    /// A program in text form, whose first `outputs` outputs are results.
    ///
    /// # Errors
    /// If the text or a timing parameter in `settings` is invalid, or the program exceeds the memory limit.
    pub(crate) fn parse(
        py: Python<'_>,
        (label, text): (&str, &str),
        outputs: usize,
        older_compiler: bool,
        settings: Vec<(String, String)>,
        judge: &Judge,
    ) -> PyResult<Self> {
        // The middle end has already changed the program.
        let mut compiled = Compilation::parse(label, text, true).map_err(value_error)?;
        compiled.older_compiler = older_compiler;
        compiled.returned = Returned::Tuple((0..outputs).map(Returned::Output).collect());
        let most = compiled.program.as_ref().map_or(0, |program| program.outputs.len());
        if outputs > most {
            return Err(value_error(format!("`{label}` has {most} outputs, not {outputs}")));
        }
        let key = Key {
            target: compiled.target,
            lnc: compiled.program.as_ref().map_or(1, |program| program.cores.len() as u32),
            strict: false,
            schedule: Vec::new(),
            config: [Arg::None, Arg::None],
            capacity: nki_sim::settings::capacity(None).map_err(value_error)?,
            settings,
            grid: Vec::new(),
            older_of_both: false,
            as_written: true,
            static_descriptors: false,
            traced: false,
            up_to_error: false,
        };
        let mut session = Session::of_call(judge.0.clone(), key.capacity).map_err(value_error)?;
        session.params.set = key.settings.clone();
        Self::new(py, &session, compiled, outputs, key)
    }

    /// A program without dependences on Python objects; its first `outputs` outputs are results.
    fn new(py: Python<'_>, session: &Session, mut compiled: Compilation, outputs: usize, key: Key) -> PyResult<Self> {
        let written = compiled.program.as_mut().map_or_else(Vec::new, written_inputs);
        let kernel = placed(py, session, &mut compiled)?;
        Ok(Ready {
            brief: is_brief(&kernel.program),
            kernel,
            compiled,
            outputs,
            written,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            key,
            live: Live::default(),
            reads: Vec::new(),
            snapshot: None,
            args: Vec::new(),
        })
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.live.table.traverse(visit)?;
        visit.call(&self.snapshot)
    }

    /// Names of the inputs that the program writes.
    pub(crate) fn written_names(&self) -> Vec<String> {
        let inputs = &self.kernel.program.inputs;
        self.written.iter().map(|(i, _)| inputs[*i].name.to_string()).collect()
    }

    /// Whether a later call may reuse it: not if the kernel changes its own dependences.
    fn is_reusable(&self, py: Python<'_>) -> PyResult<bool> {
        self.snapshot.as_ref().map_or(Ok(true), |snapshot| snapshot.bind(py).getattr("reusable")?.is_truthy())
    }

    /// Whether it is the program for these arguments, given as Python objects. Also collects the arrays.
    fn fits(
        &self,
        key: &Key,
        args: &[(String, Bound<'_, PyAny>)],
        given: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Vec<(String, Array)>>> {
        let py = given.py();
        if *key != self.key || args.len() != self.args.len() {
            return Ok(None);
        }
        let table = &self.live.table;
        let mut arrays = Vec::new();
        for ((name, value), (known_name, known)) in args.iter().zip(&self.args) {
            if name != known_name {
                return Ok(None);
            }
            let mut conversion = Conversion::of_argument(table, std::mem::take(&mut arrays));
            let arg = conversion.value(value, name)?;
            arrays = conversion.arrays.unwrap_or_default();
            if !same(Some(&arg), Some(known)) {
                return Ok(None);
            }
        }
        let mut good = self.reads.iter().all(|read| read.still_holds(py, table));
        if let Some(snapshot) = &self.snapshot {
            good = good && snapshot.bind(py).call_method1(intern!(py, "holds"), (given,))?.is_truthy()?;
        }
        table.release();
        Ok(good.then_some(arrays))
    }
}

/// The compiled programs of one kernel.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug, Default)]
pub(crate) struct Cache {
    programs: Mutex<Vec<Arc<Ready>>>,
}

/// A program and the arrays to run it on.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) ready: Arc<Ready>,
    pub(crate) arrays: Vec<(String, Array)>,
    /// Levels for the findings: they belong to the call, not to the program, which several calls share.
    pub(crate) judge: nki_sim::findings::Judge,
}

#[pymethods]
impl Cache {
    #[new]
    fn new() -> Self {
        Cache::default()
    }

    /// Lets Python collect a kernel whose programs are all that refers to it: a program keeps the objects that it depends on, its function among
    /// them. A program that others use, too, is not visited: its references would be counted twice.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(programs) = self.programs.try_lock() else { return Ok(()) };
        programs.iter().filter(|ready| Arc::strong_count(ready) == 1).try_for_each(|ready| ready.traverse(&visit))
    }

    /// See [`Self::__traverse__`].
    fn __clear__(&self) {
        self.clear();
    }

    /// Number of programs kept.
    fn __len__(&self) -> usize {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Drops all programs.
    fn clear(&self) {
        let programs = std::mem::take(&mut *self.programs.lock().unwrap_or_else(PoisonError::into_inner));
        drop(programs);
    }

    /// The program of `function` for these arguments (name and value, in the order of the parameters).
    /// The default of `lnc` comes from the environment. `settings` are timing parameters by name, `grid` the axes of a launch grid: programs per
    /// core, cores, and whether neighbouring programs run on one core. With `older_of_both`, files that import both languages have the older one.
    /// `as_written` disables the middle end of the kernel's compiler; with `static_descriptors` descriptors are built before the run. `config` are its `compile_config` and `specialization_config`. `up_to_error`
    /// compiles the part of a traced kernel before its first error, for stepping through it; such a program is not cached. With `known` nothing is
    /// compiled: None if there is no program yet.
    #[pyo3(signature = (function, args, target, lnc, judge, schedule=Vec::new(), config=None, capacity=None, settings=Vec::new(), traced=false, grid=Vec::new(), older_of_both=false, as_written=false, static_descriptors=false, up_to_error=false, known=false))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn compile(
        &self,
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        args: Bound<'_, PyAny>,
        target: Option<&str>,
        lnc: Option<u32>,
        judge: &Judge,
        schedule: Vec<(String, String)>,
        config: Option<[Bound<'_, PyAny>; 2]>,
        capacity: Option<&str>,
        settings: Vec<(String, String)>,
        traced: bool,
        grid: Vec<(u32, u32, bool)>,
        older_of_both: bool,
        as_written: bool,
        static_descriptors: bool,
        up_to_error: bool,
        known: bool,
    ) -> PyResult<Option<Compiled>> {
        let given = args;
        let args: Vec<(String, Bound<'_, PyAny>)> = given.extract()?;
        let capacity = nki_sim::settings::capacity(capacity_named(capacity)?).map_err(value_error)?;
        let judge = judge.0.clone();
        let strict = judge.includes_strict();
        let axis = |(sequential, cores, cores_outside)| GridAxis { sequential, cores, cores_outside };
        let grid = grid.into_iter().map(axis).collect();
        let target = named_target(target)?;
        let table = Table::default();
        let config = match config {
            Some([compile, specialization]) => [
                Conversion::new(&table).value(&compile, "compile_config")?,
                Conversion::new(&table).value(&specialization, "specialization_config")?,
            ],
            None => [Arg::None, Arg::None],
        };
        let key = Key {
            target,
            lnc: lnc.map_or_else(nki_sim::settings::logical_cores, Ok).map_err(value_error)?,
            strict,
            schedule,
            config,
            capacity,
            settings,
            grid,
            older_of_both,
            as_written,
            static_descriptors,
            traced,
            up_to_error,
        };
        let kept: Vec<Arc<Ready>> =
            self.programs.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect();
        for ready in kept {
            if let Some(arrays) = ready.fits(&key, &args, &given)? {
                self.used(&ready);
                return Ok(Some(Compiled { ready, arrays, judge }));
            }
        }
        if known {
            return Ok(None);
        }
        let mut session = Session::of_call(judge.clone(), capacity).map_err(value_error)?;
        session.params.set = key.settings.clone();
        session.static_descriptors = static_descriptors;
        let mode = if up_to_error { Mode::UpToError } else { Mode::Whole };
        let (ready, arrays) = compile(py, function, &args, key, &session, mode)?;
        let ready = Arc::new(ready);
        if up_to_error || !ready.is_reusable(py)? {
            return Ok(Some(Compiled { ready, arrays, judge }));
        }
        let forgotten = {
            let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
            programs.push(ready.clone());
            if programs.len() > MOST { Some(programs.remove(0)) } else { None }
        };
        drop(forgotten);
        Ok(Some(Compiled { ready, arrays, judge }))
    }
}

impl Cache {
    /// Makes a program the most recently used one.
    fn used(&self, ready: &Arc<Ready>) {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = programs.iter().position(|known| Arc::ptr_eq(known, ready)) {
            programs[at..].rotate_left(1);
        }
    }
}

impl Compiled {
    /// The session of a new run.
    pub(crate) fn session(&self) -> PyResult<Session> {
        Session::of_call(self.judge.clone(), self.ready.key.capacity).map_err(value_error)
    }
}

#[pymethods]
impl Compiled {
    /// The program in text form.
    fn text(&self) -> String {
        nki_isa::text::print(&self.ready.kernel.program)
    }

    /// Names, shapes and dtypes of the returned tensors.
    fn outputs(&self) -> Vec<(String, Vec<usize>, &'static str)> {
        use nki_isa::names::Named;
        let program = &self.ready.kernel.program;
        program.outputs[..self.ready.outputs]
            .iter()
            .map(|o| {
                let tensor = program.tensor(o.tensor);
                (o.name.to_string(), tensor.shape.iter().map(|&d| d as usize).collect(), tensor.dtype.name())
            })
            .collect()
    }

    /// Whether the kernel is for the older compiler (`neuronxcc.nki`).
    fn older_compiler(&self) -> bool {
        self.ready.compiled.older_compiler
    }

    /// A number that is unique among the programs of this process.
    fn serial(&self) -> u64 {
        self.ready.serial
    }

    /// The object that the caller passed for each input, in the order of the program.
    fn operands(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        Ok(self.in_order()?.iter().map(|array| array.original.clone_ref(py)).collect())
    }

    /// Whether a tensor among the arguments has no values (yet), so that the program cannot run.
    fn valueless(&self) -> bool {
        self.arrays.iter().any(|(_, array)| array.valueless())
    }

    /// The structure of the kernel's return value: `("output", index, input)`, where `input` is the position of an input returned unchanged,
    /// or None; `("tuple", [...])`, `("list", [...])`, `("dict", {...})`, or None.
    fn returned(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let program = &self.ready.kernel.program;
        let leaf = |index: usize| {
            let tensor = program.outputs[index].tensor;
            let input = program.inputs.iter().position(|i| i.tensor == tensor);
            let input = input.filter(|input| !self.ready.written.iter().any(|(i, _)| i == input));
            Ok(("output", index, input).into_pyobject(py)?.into_any().unbind())
        };
        shaped(py, &self.ready.compiled.returned, &mut { leaf })
    }

    /// Whether the kernel uses a collective of several ranks.
    fn has_collectives(&self) -> bool {
        let mut found = false;
        self.ready.kernel.program.visit(&mut |node| {
            if let NodeKind::Inst(inst) = &node.kind {
                found |= REGISTRY.iter().any(|e| e.collective && e.schema.name == inst.schema().name);
            }
        });
        found
    }

    /// Names of the tensors among the arguments, in the order of the program.
    fn inputs(&self) -> Vec<String> {
        self.ready.kernel.program.inputs.iter().map(|i| i.name.to_string()).collect()
    }

    /// Names of the arguments that the kernel writes to.
    fn written(&self) -> Vec<String> {
        self.ready.written_names()
    }

    /// Names of the arguments that the kernel writes to and does not return.
    fn unreturned(&self) -> Vec<String> {
        let inputs = &self.ready.kernel.program.inputs;
        let unreturned = self.ready.written.iter().filter(|(_, output)| *output >= self.ready.outputs);
        unreturned.map(|(i, _)| inputs[*i].name.to_string()).collect()
    }

    /// Names of the arguments that the kernel writes to and never reads.
    fn only_written(&self) -> Vec<String> {
        let program = &self.ready.kernel.program;
        let [read, _] = touched(program);
        let written = self.ready.written.iter().map(|(i, _)| &program.inputs[*i]);
        written.filter(|input| !read.contains(&input.tensor)).map(|input| input.name.to_string()).collect()
    }

    /// The compiler's findings that are not errors: rendered, and as JSON. A denied finding is raised.
    fn warnings(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let ready = &self.ready;
        let applied = self.judge.judge(ready.compiled.diagnostics.clone());
        if applied.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(kernel_error(py, applied, &ready.compiled.sources));
        }
        Ok((
            render_all(&applied.diagnostics, &ready.compiled.sources, ColorChoice::Plain),
            as_json(&applied.diagnostics, &ready.compiled.sources)?,
        ))
    }

    /// The reason why the kernel cannot be stepped through, if any.
    fn unsteppable(&self) -> Option<&'static str> {
        if !self.ready.key.traced {
            return Some(
                "the built-in evaluator executes it, not Python: it uses sbuf, psum or hbm without an import (write nl.sbuf), loops with `while` on a register (write nl.while_loop), joins masks with `and` (write &), or returns from within a loop that is read once (return behind it)",
            );
        }
        let rewritten =
            "its compiler (neuronxcc) rewrites it after Python has executed it; look at values with nki-sim run --dump";
        let compiled = &self.ready.compiled;
        (compiled.older_compiler && !compiled.as_written).then_some(rewritten)
    }

    /// Whether the compiler model has changed the program, so that its instructions differ from the kernel's.
    fn rewritten(&self) -> bool {
        !self.ready.kernel.changes.is_empty()
    }

    /// Calls the traced kernel's function again, for these arguments, in step with a run of the program: each instruction is executed when it is
    /// called. `ranks` are the programs of all ranks, of which this one is number `rank`. Returns the newly recorded program, and the location of its
    /// first difference to this one, if any.
    fn step(
        &self,
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        args: Vec<(String, Bound<'_, PyAny>)>,
        ranks: Vec<Py<Compiled>>,
        rank: usize,
    ) -> PyResult<(Compiled, Option<String>)> {
        let mut session = self.session()?;
        session.params.set = self.ready.key.settings.clone();
        session.static_descriptors = self.ready.key.static_descriptors;
        let all: Vec<&Compiled> = ranks.iter().map(Py::get).collect();
        let inputs = |py: Python<'_>| all.iter().map(|rank| rank.inputs_of(py, &rank.in_order()?)).collect();
        let programs: Vec<_> = all.iter().map(|rank| (rank.judge.clone(), rank.ready.clone())).collect();
        let explain = move |py: Python<'_>, why: Stop| match why {
            Stop::Call(message) => call_error(message),
            Stop::Kernel(fault) => {
                let (judge, ready) = &programs[fault.rank];
                let found = if programs.len() > 1 { fault.found_on_rank() } else { fault.found() };
                kernel_error(py, judge.judge(found), &ready.compiled.sources)
            }
        };
        let departed = Place::default();
        let run = Run {
            session: &session,
            kernels: all.iter().map(|rank| &rank.ready.kernel).collect(),
            rank,
            inputs: &inputs,
            explain: (!self.ready.key.up_to_error).then(|| Rc::new(explain) as _),
            departed: departed.clone(),
        };
        let key = Key {
            up_to_error: false,
            as_written: self.ready.key.as_written || self.ready.key.up_to_error,
            ..self.ready.key.clone()
        };
        let (ready, arrays) = compile(py, function, &args, key, &session, Mode::Beside(&run))?;
        let compiled = Compiled { ready: Arc::new(ready), arrays, judge: self.judge.clone() };
        Ok((compiled, departed.take()))
    }

    /// Runs the program, and keeps the requested intermediate values. Written arrays are updated after the run has completed.
    #[pyo3(signature = (timed=false, wanted=None))]
    fn run(&self, py: Python<'_>, timed: bool, wanted: Option<Wanted>) -> PyResult<Outcome> {
        self.execute(py, timed, wanted.as_ref())
    }

    /// Lines that the kernel printed during compilation.
    fn prints(&self) -> Vec<String> {
        self.ready.compiled.prints.clone()
    }
}

fn compile(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    args: &[(String, Bound<'_, PyAny>)],
    key: Key,
    session: &Session,
    mode: Mode<'_>,
) -> PyResult<(Ready, Vec<(String, Array)>)> {
    let live = Live::default();
    let mut arrays = Vec::new();
    let mut converted = Vec::with_capacity(args.len());
    for (name, value) in args {
        let mut conversion = Conversion::of_argument(&live.table, std::mem::take(&mut arrays));
        converted.push((name.clone(), conversion.value(value, name)?));
        arrays = conversion.arrays.unwrap_or_default();
    }
    let options = Options {
        target: key.target,
        lnc: key.lnc,
        grid: key.grid.clone(),
        older_of_both: key.older_of_both,
        as_written: key.as_written || key.up_to_error,
        schedule: key.schedule.clone(),
        config: key.config.clone(),
        ..session.options()
    };
    let mut snapshot = None;
    let done = if key.traced {
        let (done, met) = crate::trace::specialise(py, function.cast()?, args, &converted, &options, &live, mode)?;
        if matches!(mode, Mode::Whole) {
            let roots = (function, args.to_vec(), met);
            snapshot = Some(tracer(py)?.getattr("Snapshot")?.call1(roots)?.unbind());
        }
        done
    } else {
        let kernel = Arg::Object(live.table.id(function));
        detached(py, || nki_frontend::compile_live(&live, &kernel, &converted, &options))?
    };
    let compiled = Compilation::from(done);
    let Some(program) = &compiled.program else {
        // The kernel's prints before the error help to find it.
        helpers(py)?.bind(py).getattr("show")?.call1((compiled.prints,))?;
        return Err(kernel_error(py, session.judge.judge(compiled.diagnostics), &compiled.sources));
    };
    let outputs = program.outputs.len();
    let ready = Ready::new(py, session, compiled, outputs, key)?;
    live.table.finish();
    let reads = std::mem::take(&mut *live.reads.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((Ready { live, reads, snapshot, args: converted, ..ready }, arrays))
}

fn placed(py: Python<'_>, session: &Session, compiled: &mut Compilation) -> PyResult<Kernel> {
    detached(py, || session.place(compiled))?.map_err(|stop| match stop {
        Stop::Kernel(fault) => kernel_error(py, session.judge.judge(compiled.with(fault.found())), &compiled.sources),
        Stop::Call(message) => call_error(message),
    })
}

/// The tensors that instructions read, and those that they write.
fn touched(program: &Program) -> [FxHashSet<TensorId>; 2] {
    let mut touched = [FxHashSet::default(), FxHashSet::default()];
    program.visit(&mut |node| {
        if let NodeKind::Inst(inst) = &node.kind {
            let mut footprint = Footprint::default();
            inst.footprint(&mut footprint);
            touched[0].extend(footprint.reads.iter().map(|v| v.tensor));
            touched[1].extend(footprint.writes.iter().map(|v| v.tensor));
        }
    });
    touched
}

/// Finds the inputs that the program writes and makes each an output, so that a run returns its contents.
fn written_inputs(program: &mut Program) -> Vec<(usize, usize)> {
    let [_, touched] = touched(program);
    let mut written = Vec::new();
    for (position, input) in program.inputs.clone().into_iter().enumerate() {
        if !touched.contains(&input.tensor) {
            continue;
        }
        let known = program.outputs.iter().position(|o| o.tensor == input.tensor);
        let output = known.unwrap_or_else(|| {
            program.outputs.push(Output { name: input.name.clone(), tensor: input.tensor });
            program.outputs.len() - 1
        });
        written.push((position, output));
    }
    written
}

/// Maximum number of instructions in a brief program.
const BRIEF: usize = 200;

/// Whether the program ends within some milliseconds: a few instructions, each executed once, on data too small to be shared between threads.
fn is_brief(program: &Program) -> bool {
    let mut elements = program.tensors.iter().map(|tensor| tensor.elements());
    elements.try_fold(0_usize, |sum, of| sum.checked_add(of).filter(|sum| *sum <= LITTLE)).is_some()
        && program.cores.iter().map(Vec::len).sum::<usize>() <= BRIEF
        && program.cores.iter().flatten().all(|node| matches!(node.kind, NodeKind::Inst(_)))
}
