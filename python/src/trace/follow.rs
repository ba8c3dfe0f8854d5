//! Executes each instruction of a kernel when Python calls it.
//!
//! The kernel has been specialised, so its program is known. Python calls its function again, and in parallel, on another thread, the executor runs
//! the program ([`Stops`], an observer): after each operation that emits instructions, the function waits until the run has executed them, and the
//! run then pauses until the next one. Values are therefore those of any other run, other cores and ranks advance as usual, and each core is stepped
//! through in a separate run. The body of a dynamic loop is traced in each iteration of the run, and its instructions are discarded before the next
//! iteration. The function should call the same instructions as before; otherwise values are unknown.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nki_diag::FileId;
use nki_diag::stop::{self, Stop as Cancel, stoppable};
use nki_frontend::trace::{Failure, Follower, Held, Trace};
use nki_isa::inst::Action;
use nki_isa::names::{Engine, Named};
use nki_isa::program::{NodeKind, Statement, Statements};
use nki_isa::{Fault, Inst, Node, RegId, View};
use nki_sim::inputs::Given;
use nki_sim::session::{Kernel, Launch, Session, Stop};
use nki_sim_core::exec::{Inspect, Moment, Observed, Observer, Reached};
use nki_sim_core::{Buffer, exec::Extent};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyModule};
use rayon::ThreadPoolBuilder;

use super::active::Tracing;
use crate::arrays::Memory;
use crate::errors::value_error;

/// Interval between checks for Python's signals.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Stack size in bytes of the thread that runs the program.
const STACK: usize = 8 << 20;

/// Requests from Python to the run.
enum Request {
    /// Execute these instructions, the last of which is at this position, and pause.
    Execute(Vec<Node>, u32),
    /// Continue to the next iteration of this loop, or to its end.
    NextIteration(u32),
    /// Read a view.
    View(Box<View>),
    /// Read a register.
    Register(RegId),
}

/// Responses of the run.
enum Response {
    /// The run is paused.
    Reached,
    /// The run has not moved, because its program has other instructions there.
    Departed,
    /// Another iteration starts (true), or the loop has ended.
    NextIteration(bool),
    View(Result<Option<Observed>, Fault>),
    Register(Option<i64>),
    /// The run has ended with an error.
    Failed(Box<Stop>),
}

/// The place up to which the run continues.
#[derive(Debug, Clone, Copy)]
enum Goal {
    Execute(u32),
    NextIteration(u32),
}

/// Pauses the run of a core on request.
struct Stops<'p> {
    core: u32,
    statements: Statements<'p>,
    goal: Option<Goal>,
    asks: Receiver<Request>,
    answers: Sender<Response>,
    /// No more requests are expected.
    free: bool,
}

impl Stops<'_> {
    /// The response at this place for the current goal.
    fn answer(&self, place: Reached) -> Option<Response> {
        match (self.goal, place) {
            (None, _) => Some(Response::Reached),
            (Some(Goal::NextIteration(loop_)), Reached::Iteration { header, .. }) if header == loop_ => {
                Some(Response::NextIteration(true))
            }
            (Some(Goal::NextIteration(loop_)), Reached::Exit { header, .. }) if header == loop_ => {
                Some(Response::NextIteration(false))
            }
            // A place that has been passed will not be reached again.
            (Some(Goal::Execute(to)), Reached::After(at)) if at >= to => Some(Response::Reached),
            (Some(Goal::Execute(to)), Reached::Exit { end, .. }) if end > to => Some(Response::Reached),
            _ => None,
        }
    }

    /// Whether the program has these instructions, ending at this position.
    fn has(&self, nodes: &[Node], last: u32) -> bool {
        let end = last + 1;
        let known = end.checked_sub(nodes.len() as u32).filter(|_| end <= self.statements.len());
        let same = |known: Statement<'_>, node: &Node| match (&known.node.kind, &node.kind) {
            (NodeKind::Inst(known), NodeKind::Inst(inst)) => is_made_of(known, inst),
            _ => false,
        };
        known.is_some_and(|first| self.statements.range(first..end).zip(nodes).all(|(k, n)| same(k, n)))
    }
}

/// Whether an instruction of a placed program corresponds to this one of the kernel: the descriptor mode of a transfer may have been selected
/// meanwhile.
fn is_made_of(placed: &Inst, written: &Inst) -> bool {
    // NaN operands compare equal here.
    let same = |inst: &Inst| placed == inst || format!("{placed:?}") == format!("{inst:?}");
    let chosen = || match placed.action() {
        Action::Transfers(transfer) => {
            let engine = match written.action() {
                Action::Transfers(open) if open.engine == transfer.engine => Engine::Unknown,
                _ => transfer.engine,
            };
            written.with_descriptors(transfer.dge_mode, engine)
        }
        _ => None,
    };
    same(written) || chosen().is_some_and(|inst| same(&inst))
}

impl Observer for Stops<'_> {
    fn wants(&mut self, _: &Moment<'_>) -> Option<Extent> {
        None
    }

    fn value(&mut self, _: &Moment<'_>, _: Observed) {}

    fn inspects(&self) -> bool {
        !self.free
    }

    fn reached(&mut self, core: u32, place: Reached, look: &mut dyn Inspect) {
        if core != self.core {
            return;
        }
        let Some(mut answer) = self.answer(place) else { return };
        loop {
            let asked = self.answers.send(answer).is_ok().then(|| self.asks.recv().ok()).flatten();
            answer = match asked {
                None => {
                    self.free = true;
                    return;
                }
                Some(Request::Execute(nodes, last)) if self.has(&nodes, last) => {
                    self.goal = Some(Goal::Execute(last));
                    return;
                }
                Some(Request::Execute(..)) => Response::Departed,
                Some(Request::NextIteration(header)) => {
                    self.goal = Some(Goal::NextIteration(header));
                    return;
                }
                Some(Request::View(view)) => Response::View(look.view(&view)),
                Some(Request::Register(register)) => Response::Register(look.register(register)),
            };
        }
    }
}

/// Creates the exception for a failed run.
type Explain = Rc<dyn Fn(Python<'_>, Stop) -> PyErr>;

/// Runs of the programs of all ranks in parallel with calling one rank's kernel.
pub(crate) struct Run<'a> {
    pub(crate) session: &'a Session,
    /// The kernel of each rank.
    pub(crate) kernels: Vec<&'a Kernel>,
    /// The rank whose kernel is called.
    pub(crate) rank: usize,
    /// Creates the inputs of all ranks anew for each run.
    pub(crate) inputs: &'a dyn Fn(Python<'_>) -> PyResult<Vec<Vec<Given>>>,
    /// The exception that the kernel raises if the run fails; `None` for a program that ends at the kernel's own error.
    pub(crate) explain: Option<Explain>,
    /// The location of the first difference to the previous call.
    pub(crate) departed: Place,
}

/// The location where a kernel departed from its program, if it did.
pub(crate) type Place = Rc<RefCell<Option<String>>>;

/// Ends the parallel run when the kernel has returned, also on a panic.
struct Ending<'a>(&'a Tracing, &'a Cancel);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        // The rest of the run has no observer, so it is cancelled.
        self.1.stop();
        self.0.run.borrow_mut().take();
    }
}

impl Run<'_> {
    /// Calls the kernel for a core in parallel with a run.
    pub(super) fn beside<R, E: From<PyErr>>(
        &self,
        py: Python<'_>,
        tracing: &Rc<Tracing>,
        trace: &mut Trace<'_, '_>,
        core: u32,
        work: impl FnOnce(&mut Trace<'_, '_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let inputs = (self.inputs)(py)?;
        let (asks, asked) = channel();
        let (answers, answered) = channel();
        let kernels = self.kernels.clone();
        let Some(stream) = kernels[self.rank].program.cores.get(core as usize) else { return work(trace) };
        let mut stops = Stops {
            core,
            statements: Statements::of(stream),
            goal: None,
            asks: asked,
            answers: answers.clone(),
            free: false,
        };
        // A separate pool: this thread pauses, which would block a thread of the common pool.
        let pool = ThreadPoolBuilder::new().num_threads(1).stack_size(STACK).build();
        let pool = pool.map_err(|e| PyRuntimeError::new_err(format!("no thread to run the kernel on: {e}")))?;
        let cancel = Cancel::default();
        thread::scope(|scope| {
            let (own, session, rank) = (cancel.clone(), self.session, self.rank);
            let run = move || {
                let mut launches: Vec<_> = kernels.into_iter().zip(inputs).map(|(k, i)| Launch::new(k, i)).collect();
                let observed = launches.remove(rank).observed(&mut stops);
                launches.insert(rank, observed);
                session.run(launches).map(drop)
            };
            let work_of_thread = move || {
                let run = || {
                    let listening = stop::current();
                    pool.install(|| stop::within(listening, run))
                };
                if let Ok(Err(why)) = stoppable(&own, run) {
                    // The receiver may be gone.
                    let _ = answers.send(Response::Failed(Box::new(why)));
                }
            };
            let started = thread::Builder::new().spawn_scoped(scope, work_of_thread);
            started.map_err(|e| PyRuntimeError::new_err(format!("no thread to run the kernel on: {e}")))?;
            let link = Rc::new(Link::new(asks, answered, self.explain.clone(), self.departed.clone()));
            *tracing.run.borrow_mut() = Some(link.clone());
            let _ending = Ending(tracing, &cancel);
            trace.follow(Rc::new(Loops(Rc::downgrade(tracing))));
            link.begin(py)?;
            drop(link);
            work(trace)
        })
    }
}

/// The state of a run that pauses for Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The run is in step with the kernel.
    Live,
    /// The kernel has called other instructions than before.
    Departed,
    /// The run has ended.
    Over,
}

/// Python's side of a run.
pub(crate) struct Link {
    asks: Sender<Request>,
    answers: Mutex<Receiver<Response>>,
    state: Cell<State>,
    /// Number of statements that the run has been requested to execute, by position.
    done: Cell<u64>,
    /// The loop whose body is traced although it has no iterations.
    skipping: Cell<Option<u64>>,
    departed: Place,
    explain: Option<Explain>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("state", &self.state).field("done", &self.done).finish_non_exhaustive()
    }
}

impl Link {
    fn new(asks: Sender<Request>, answers: Receiver<Response>, explain: Option<Explain>, departed: Place) -> Self {
        Link {
            asks,
            answers: Mutex::new(answers),
            state: Cell::new(State::Live),
            done: Cell::new(0),
            skipping: Cell::new(None),
            departed,
            explain,
        }
    }

    /// Waits until the core is about to execute its first statement.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        self.answer(py).map(drop)
    }

    /// The next response of the run; `None` if it has ended.
    ///
    /// # Errors
    /// The run has ended with an error, or a signal handler has raised an exception.
    fn answer(&self, py: Python<'_>) -> PyResult<Option<Response>> {
        loop {
            let answers = &self.answers;
            let next = py
                .detach(|| answers.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SIGNAL_CHECK_INTERVAL));
            match next {
                Ok(Response::Failed(why)) => {
                    self.state.set(State::Over);
                    return self.explain.as_ref().map_or(Ok(None), |explain| Err(explain(py, *why)));
                }
                Ok(answer) => return Ok(Some(answer)),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    self.state.set(State::Over);
                    return Ok(None);
                }
            }
        }
    }

    fn ask(&self, py: Python<'_>, ask: Request) -> PyResult<Option<Response>> {
        // If the receiver is gone, there will be no response.
        let _ = self.asks.send(ask);
        self.answer(py)
    }

    /// Whether the run is at the kernel's position.
    fn follows(&self) -> bool {
        self.state.get() == State::Live && self.skipping.get().is_none()
    }

    /// Lets the run execute the emitted instructions.
    pub(super) fn advance(&self, py: Python<'_>, trace: &mut Trace<'_, '_>) -> PyResult<()> {
        let position = trace.position();
        if !self.follows() || position <= self.done.get() {
            return Ok(());
        }
        let new = (position - self.done.replace(position)) as usize;
        let nodes = trace.last_statements(new).to_vec();
        let place = nodes.first().map(|node| node.loc);
        if let Some(Response::Departed) = self.ask(py, Request::Execute(nodes, position as u32 - 1))? {
            self.state.set(State::Departed);
            if let Some(loc) = place {
                let place = format!("{}:{}", trace.sources().path(FileId(loc.file)), loc.line);
                self.departed.borrow_mut().get_or_insert(place);
            }
        }
        Ok(())
    }

    fn begin_loop(&self, py: Python<'_>, trace: &mut Trace<'_, '_>, header: u64) -> PyResult<()> {
        self.advance(py, trace)?;
        if self.follows() {
            self.turn(py, header)?;
        }
        Ok(())
    }

    fn next_iteration(&self, py: Python<'_>, trace: &mut Trace<'_, '_>, header: u64) -> PyResult<bool> {
        if self.skipping.get() == Some(header) {
            self.skipping.set(None);
            self.done.set(trace.position());
            return Ok(false);
        }
        self.advance(py, trace)?;
        if !self.follows() {
            return Ok(false);
        }
        let position = trace.position();
        let again = self.turn(py, header)?;
        if !again {
            self.skipping.set(None);
            self.done.set(position);
        }
        Ok(again)
    }

    /// Continues to the next iteration of a loop; false if there is none.
    fn turn(&self, py: Python<'_>, header: u64) -> PyResult<bool> {
        let again = matches!(self.ask(py, Request::NextIteration(header as u32))?, Some(Response::NextIteration(true)));
        if again {
            self.done.set(header + 1);
        } else {
            self.skipping.set(Some(header));
        }
        Ok(again)
    }

    /// The value of a tensor or register for Python: an array, an int, or None.
    pub(super) fn value(&self, py: Python<'_>, held: Held) -> PyResult<Py<PyAny>> {
        let refuse = |why: &str| Err(value_error(format!("the value is not known: {why}")));
        match (self.state.get(), held) {
            (State::Departed, _) => refuse(&self.departure()),
            (State::Over, _) => refuse("the run has ended"),
            (State::Live, Held::Register(register)) => match self.ask(py, Request::Register(register))? {
                Some(Response::Register(value)) => Ok(value.into_pyobject(py)?.unbind()),
                _ => refuse("the run has ended"),
            },
            (State::Live, Held::Tensor(view)) => match self.ask(py, Request::View(Box::new(view)))? {
                Some(Response::View(Ok(Some(seen)))) => array(py, seen),
                Some(Response::View(Ok(None))) => refuse("the elements are outside of the tensor"),
                Some(Response::View(Err(fault))) => refuse(&fault.message),
                _ => refuse("the run has ended"),
            },
        }
    }

    /// The text of a device value, followed by its value.
    pub(super) fn shown(&self, py: Python<'_>, text: &str, held: Held) -> PyResult<String> {
        match self.value(py, held) {
            Ok(value) => debug(py)?.getattr("shown")?.call1((text, value))?.extract(),
            Err(why) => Ok(format!("{text}: {}", why.value(py))),
        }
    }

    fn departure(&self) -> String {
        let place = self.departed.borrow().clone().unwrap_or_default();
        format!("at {place} the kernel called a different instruction than when it was specialised")
    }
}

/// `nki_sim._debug`
fn debug(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    PyModule::import(py, "nki_sim._debug")
}

fn array(py: Python<'_>, seen: Observed) -> PyResult<Py<PyAny>> {
    let unwritten: Vec<u8> = seen.unwritten.iter().map(|&missing| u8::from(missing)).collect();
    let memory = Py::new(py, Memory(Buffer::from(seen.bytes())))?;
    let (shape, dtype) = (seen.shape.clone(), seen.dtype().name());
    Ok(debug(py)?.getattr("array")?.call1((memory, shape, dtype, PyBytes::new(py, &unwritten)))?.unbind())
}

impl Tracing {
    /// The run that executes each instruction when it is called, if any.
    pub(super) fn followed(&self) -> Option<Rc<Link>> {
        self.run.borrow().clone()
    }
}

/// Reports iterations of dynamic loops to the trace.
struct Loops(Weak<Tracing>);

impl Loops {
    fn with<R: Default>(&self, work: impl FnOnce(Python<'_>, &Link) -> PyResult<R>) -> Result<R, Failure> {
        let Some(tracing) = self.0.upgrade() else { return Ok(R::default()) };
        let Some(link) = tracing.followed() else { return Ok(R::default()) };
        Python::attach(|py| work(py, &link)).map_err(|error| {
            *tracing.raised_outside.borrow_mut() = Some(error);
            Failure::of_driver()
        })
    }
}

impl Follower for Loops {
    fn begin_loop(&self, trace: &mut Trace<'_, '_>, header: u64) -> Result<(), Failure> {
        self.with(|py, link| link.begin_loop(py, trace, header))
    }

    fn next_iteration(&self, trace: &mut Trace<'_, '_>, header: u64) -> Result<bool, Failure> {
        self.with(|py, link| link.next_iteration(py, trace, header))
    }
}
