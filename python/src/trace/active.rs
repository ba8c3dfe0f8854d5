//! The traces of a thread, innermost last, and how Python code that runs inside of one gets back to it.
//!
//! The frontend holds the evaluation while the kernel runs, and lends it: each operation of the kernel borrows it through the address that
//! [`Tracing::lend`] leaves here, for as long as it takes.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use nki_diag::{Diagnostic, Span};
use nki_frontend::trace::{DynamicLoop, Failure, Item, Name, Trace};
use nki_isa::Target;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rustc_hash::FxHashMap;

use super::follow::Link;
use super::places::Places;
use crate::errors::raised;
use crate::host::Table;

thread_local! {
    static TRACES: RefCell<Vec<Rc<Tracing>>> = const { RefCell::new(Vec::new()) };
}

/// The number of the next trace.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// A trace that is running on this thread.
#[derive(Debug)]
pub(crate) struct Tracing {
    /// Different for each trace of the process.
    pub(crate) id: u64,
    /// The machine that the kernel is compiled for.
    pub(crate) target: Target,
    /// Values that Python has handles of.
    slab: RefCell<Slab>,
    /// Where the kernel is.
    pub(crate) places: RefCell<Places>,
    /// The evaluation, while nothing works on it.
    lent: Cell<Option<NonNull<Trace<'static, 'static>>>>,
    /// Names of the API by the address of the Python objects that represent them, which live as long as the process.
    pub(super) api: RefCell<FxHashMap<usize, Item>>,
    /// Interned names by the address of the string.
    names: RefCell<FxHashMap<usize, (Py<PyString>, Name)>>,
    /// What a function of Python that the frontend called raised.
    pub(super) raised_outside: RefCell<Option<PyErr>>,
    /// Diagnostics of the exceptions made so far.
    pub(super) raised: RefCell<Vec<Diagnostic>>,
    /// Those of them that are no exceptions of Python: the number of each in `raised`.
    pub(super) refused: RefCell<Vec<usize>>,
    /// Dynamic loops whose bodies are being traced.
    pub(super) loops: RefCell<Vec<DynamicLoop>>,
    /// What went wrong where nothing can be raised; the next operation raises it.
    pub(super) fault: RefCell<Option<Diagnostic>>,
    /// Objects that constants were converted from.
    pub(super) table: Table,
    /// The run that executes each instruction as it is called.
    pub(super) run: RefCell<Option<Rc<Link>>>,
}

#[derive(Debug, Default)]
struct Slab {
    items: Vec<Option<Item>>,
    free: Vec<u32>,
}

/// Ends the trace of this thread that began last, also by a panic.
#[derive(Debug)]
pub(crate) struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        let ended = TRACES.with_borrow_mut(Vec::pop);
        // Values may hold Python functions.
        drop(ended);
    }
}

/// The trace that runs on this thread.
pub(crate) fn active() -> Option<Rc<Tracing>> {
    TRACES.with_borrow(|traces| traces.last().cloned())
}

/// The trace of this number, if it runs on this thread.
pub(super) fn of_number(id: u64) -> Option<Rc<Tracing>> {
    // A handle may die with its thread.
    TRACES.try_with(|traces| traces.try_borrow().ok()?.iter().find(|t| t.id == id).cloned()).ok().flatten()
}

/// Begins a trace on this thread.
pub(crate) fn begin(target: Target, places: Places) -> (Rc<Tracing>, Ended) {
    let tracing = Rc::new(Tracing {
        id: SERIAL.fetch_add(1, Ordering::Relaxed),
        target,
        slab: RefCell::default(),
        places: RefCell::new(places),
        lent: Cell::new(None),
        api: RefCell::default(),
        names: RefCell::default(),
        raised_outside: RefCell::default(),
        raised: RefCell::default(),
        refused: RefCell::default(),
        loops: RefCell::default(),
        fault: RefCell::default(),
        table: Table::default(),
        run: RefCell::default(),
    });
    TRACES.with_borrow_mut(|traces| traces.push(tracing.clone()));
    (tracing, Ended)
}

impl Tracing {
    /// Runs Python code that may use the evaluation.
    pub(crate) fn lend<R>(&self, trace: &mut Trace<'_, '_>, work: impl FnOnce() -> R) -> R {
        struct Returned<'a>(&'a Cell<Option<NonNull<Trace<'static, 'static>>>>);
        impl Drop for Returned<'_> {
            fn drop(&mut self) {
                self.0.set(None);
            }
        }
        self.lent.set(Some(NonNull::from(trace).cast()));
        let _returned = Returned(&self.lent);
        work()
    }

    /// Works on the evaluation.
    ///
    /// # Errors
    /// Something is working on it: Python code that runs in the middle of an operation.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Trace<'_, '_>) -> R) -> PyResult<R> {
        struct Kept<'a>(&'a Cell<Option<NonNull<Trace<'static, 'static>>>>, NonNull<Trace<'static, 'static>>);
        impl Drop for Kept<'_> {
            fn drop(&mut self) {
                self.0.set(Some(self.1));
            }
        }
        let Some(mut lent) = self.lent.take() else {
            return Err(PyRuntimeError::new_err("an operation of the kernel is used while another one runs"));
        };
        let _kept = Kept(&self.lent, lent);
        // SAFETY: the address is that of a borrow that `lend` holds until its `work` returns, and this runs within it, on the same thread
        // (`lent` is thread-local). Nothing else uses it: it was taken out of `lent`, and `lend` begins a new borrow from this one.
        Ok(work(unsafe { lent.as_mut() }))
    }

    /// Runs an operation of the kernel at the place where Python is.
    pub(super) fn operate<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Trace<'_, '_>, Span) -> Result<R, Failure>,
    ) -> PyResult<R> {
        self.operate_as(py, None, work)
    }

    /// The same; a failure that has no class of its own in Python is one of `class`.
    pub(super) fn operate_as<R>(
        &self,
        py: Python<'_>,
        class: Option<&'static str>,
        work: impl FnOnce(&mut Trace<'_, '_>, Span) -> Result<R, Failure>,
    ) -> PyResult<R> {
        self.check_fault(py)?;
        self.with(|trace| {
            let span = self.places.borrow_mut().here(py, trace)?;
            let made = work(trace, span).map_err(|failure| self.exception(py, trace, failure, class))?;
            if let Some(run) = self.followed() {
                run.advance(py, trace)?;
            }
            Ok(made)
        })?
    }

    /// Raises what went wrong where nothing could be raised.
    pub(crate) fn check_fault(&self, py: Python<'_>) -> PyResult<()> {
        let Some(diagnostic) = self.fault.borrow_mut().take() else { return Ok(()) };
        self.with(|trace| Err(self.exception(py, trace, diagnostic.into(), None)))?
    }

    /// The exception for an operation that was refused.
    pub(super) fn exception(
        &self,
        py: Python<'_>,
        trace: &Trace<'_, '_>,
        failure: Failure,
        class: Option<&'static str>,
    ) -> PyErr {
        if let Some(error) = self.raised_outside.borrow_mut().take() {
            return error;
        }
        let class = match (failure.class(), class) {
            ("RuntimeError", Some(class)) => class,
            (class, _) => class,
        };
        let diagnostic = failure.into_diagnostic();
        let error = raised(py, std::slice::from_ref(&diagnostic), class, trace.sources());
        let mut known = self.raised.borrow_mut();
        // That of a handle's attribute that is looked for is not raised: nobody can see a failure to mark it.
        let _ = error.value(py).setattr("_raised", (self.id, known.len()));
        if matches!(class, "RuntimeError" | "NkiValidationError") {
            self.refused.borrow_mut().push(known.len());
        }
        known.push(diagnostic);
        error
    }

    /// Warns of the refusals that the kernel caught: all but the one that ends it.
    pub(super) fn report_caught(&self, trace: &mut Trace<'_, '_>, end: Option<usize>) {
        let known = self.raised.borrow();
        for index in self.refused.borrow_mut().drain(..).filter(|index| Some(*index) != end) {
            trace.report_caught(&known[index]);
        }
    }

    /// Keeps a value that Python gets a handle of.
    pub(super) fn keep(&self, item: Item) -> u32 {
        let mut slab = self.slab.borrow_mut();
        if let Some(index) = slab.free.pop() {
            slab.items[index as usize] = Some(item);
            return index;
        }
        slab.items.push(Some(item));
        slab.items.len() as u32 - 1
    }

    /// Lets go of a value whose handle is gone.
    pub(super) fn release(&self, index: u32) {
        let item = self.slab.try_borrow_mut().ok().and_then(|mut slab| {
            let item = slab.items.get_mut(index as usize)?.take();
            slab.free.push(index);
            item
        });
        drop(item);
    }

    /// The value of a handle.
    pub(super) fn kept(&self, index: u32) -> Item {
        self.slab.borrow().items.get(index as usize).cloned().flatten().unwrap_or_else(Item::none)
    }

    /// The interned name of a string.
    pub(super) fn name(&self, trace: &mut Trace<'_, '_>, text: &Bound<'_, PyString>) -> Name {
        let address = text.as_ptr() as usize;
        if let Some((_, name)) = self.names.borrow().get(&address) {
            return *name;
        }
        let name = trace.name(&text.to_string_lossy());
        self.names.borrow_mut().insert(address, (text.clone().unbind(), name));
        name
    }
}
