//! Iteration over a range whose loop runs on the device.

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;

use super::active::of_number;
use super::handles::Handle;
use super::values::to_python;

/// The single traced iteration of a loop that runs on the device.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug)]
pub(super) struct DeviceLoopIterator {
    handle: Handle,
    /// The position of the loop among the currently traced ones, and whether the body has ended.
    begun: std::sync::Mutex<Option<(usize, bool)>>,
}

impl DeviceLoopIterator {
    /// The iterator of a range whose loop runs on the device.
    pub(super) fn new(handle: Handle) -> Self {
        DeviceLoopIterator { handle, begun: std::sync::Mutex::new(None) }
    }
}

#[pymethods]
impl DeviceLoopIterator {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (tracing, range) = self.handle.open(py)?;
        let mut begun = self.begun.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match *begun {
            None => {
                let made = tracing.operate(py, |t, span| {
                    let span = t.iterated_at(span);
                    t.begin_loop(&range, span)
                })?;
                let Some(made) = made else { return Err(PyStopIteration::new_err(())) };
                let variable = to_python(py, &tracing, &made.variable)?;
                let mut loops = tracing.loops.borrow_mut();
                *begun = Some((loops.len(), false));
                loops.push(made);
                Ok(variable)
            }
            Some((position, false)) => {
                // A nested loop that was left early has recorded a fault.
                tracing.check_fault(py)?;
                let this = tracing.loops.borrow_mut().drain(position..).next();
                let Some(this) = this else { return Err(PyStopIteration::new_err(())) };
                let again = tracing.operate(py, |t, _| t.next_iteration(&this));
                let variable = this.variable.clone();
                tracing.loops.borrow_mut().push(this);
                if again? {
                    return to_python(py, &tracing, &variable);
                }
                *begun = Some((position, true));
                drop(begun);
                let ended = tracing.loops.borrow_mut().drain(position..).next();
                if let Some(ended) = ended {
                    tracing.with(|t| t.end_loop(&ended, true))?;
                }
                Err(PyStopIteration::new_err(()))
            }
            Some(_) => Err(PyStopIteration::new_err(())),
        }
    }
}

impl Drop for DeviceLoopIterator {
    fn drop(&mut self) {
        let begun = *self.begun.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (Some((position, false)), Some(tracing)) = (begun, of_number(self.handle.trace)) else { return };
        let ended = tracing.loops.borrow_mut().drain(position..).next();
        let Some(ended) = ended else { return };
        // An exception that propagates ends the loop as it ends the kernel; otherwise this is `break` or `return`.
        let raising = Python::attach(PyErr::occurred);
        let _ = tracing.with(|t| t.end_loop(&ended, false));
        if !raising {
            *tracing.fault.borrow_mut() = Some(ended.left_early());
        }
    }
}
