//! The active traces of a thread, innermost last, and the access of Python code to them.
//!
//! The frontend owns the evaluation while the kernel runs, and lends it: each operation of the kernel borrows it through the address that
//! [`Tracing::lend`] stores here, for the duration of the operation.

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

/// An active trace on this thread.
#[derive(Debug)]
pub(crate) struct Tracing {
    /// Unique among the traces of the process.
    pub(crate) id: u64,
    /// The target machine of the compilation.
    pub(crate) target: Target,
    /// Values with handles in Python.
    slab: RefCell<Slab>,
    /// Where the kernel is.
    pub(crate) places: RefCell<Places>,
    /// The evaluation, while no operation uses it.
    lent: Cell<Option<NonNull<Trace<'static, 'static>>>>,
    /// Items of the API by address of the representing Python objects, which live as long as the process.
    pub(super) api: RefCell<FxHashMap<usize, Item>>,
    /// Interned names by the address of the string.
    names: RefCell<FxHashMap<usize, (Py<PyString>, Name)>>,
    /// The exception of a Python function called by the frontend.
    pub(super) raised_outside: RefCell<Option<PyErr>>,
    /// Diagnostics of the exceptions created so far.
    pub(super) raised: RefCell<Vec<Diagnostic>>,
    /// Indexes in `raised` of those that have no corresponding Python exception class.
    pub(super) refused: RefCell<Vec<usize>>,
    /// Dynamic loops whose bodies are currently traced.
    pub(super) loops: RefCell<Vec<DynamicLoop>>,
    /// An error that could not be raised; the next operation raises it.
    pub(super) fault: RefCell<Option<Diagnostic>>,
    /// The original objects of converted constants.
    pub(super) table: Table,
    /// The run that executes each instruction when it is called.
    pub(super) run: RefCell<Option<Rc<Link>>>,
}

#[derive(Debug, Default)]
struct Slab {
    items: Vec<Option<Item>>,
    free: Vec<u32>,
}

/// Ends the innermost trace of this thread, also on a panic.
#[derive(Debug)]
pub(crate) struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        let ended = TRACES.with_borrow_mut(Vec::pop);
        // Values may hold Python functions.
        drop(ended);
    }
}

/// The innermost active trace of this thread.
pub(crate) fn active() -> Option<Rc<Tracing>> {
    TRACES.with_borrow(|traces| traces.last().cloned())
}

/// The trace with this number, if it is active on this thread.
pub(super) fn of_number(id: u64) -> Option<Rc<Tracing>> {
    // A handle may be dropped during the thread's destruction.
    TRACES.try_with(|traces| traces.try_borrow().ok()?.iter().find(|t| t.id == id).cloned()).ok().flatten()
}

/// Starts a trace on this thread.
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

    /// Borrows the evaluation.
    ///
    /// # Errors
    /// The evaluation is already borrowed, by Python code that runs in the middle of an operation.
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
        // (`lent` is thread-local). There is no other use: the address was taken out of `lent`, and `lend` creates a new borrow from this one.
        Ok(work(unsafe { lent.as_mut() }))
    }

    /// Runs an operation of the kernel at Python's current location.
    pub(super) fn operate<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Trace<'_, '_>, Span) -> Result<R, Failure>,
    ) -> PyResult<R> {
        self.operate_as(py, None, work)
    }

    /// The same; a failure without a Python class of its own becomes one of `class`.
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

    /// Raises a deferred error.
    pub(crate) fn check_fault(&self, py: Python<'_>) -> PyResult<()> {
        let Some(diagnostic) = self.fault.borrow_mut().take() else { return Ok(()) };
        self.with(|trace| Err(self.exception(py, trace, diagnostic.into(), None)))?
    }

    /// The exception for a rejected operation.
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
        // The exception of a failed attribute lookup on a handle is discarded, so a failure to mark it does not matter.
        let _ = error.value(py).setattr("_raised", (self.id, known.len()));
        if matches!(class, "RuntimeError" | "NkiValidationError") {
            self.refused.borrow_mut().push(known.len());
        }
        known.push(diagnostic);
        error
    }

    /// Warns of rejections that the kernel caught: all except the one that ends it.
    pub(super) fn report_caught(&self, trace: &mut Trace<'_, '_>, end: Option<usize>) {
        let known = self.raised.borrow();
        for index in self.refused.borrow_mut().drain(..).filter(|index| Some(*index) != end) {
            trace.report_caught(&known[index]);
        }
    }

    /// Stores a value for a Python handle.
    pub(super) fn keep(&self, item: Item) -> u32 {
        let mut slab = self.slab.borrow_mut();
        if let Some(index) = slab.free.pop() {
            slab.items[index as usize] = Some(item);
            return index;
        }
        slab.items.push(Some(item));
        slab.items.len() as u32 - 1
    }

    /// Releases the value of a dropped handle.
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
