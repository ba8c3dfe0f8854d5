//! Python objects for device values, and for names of the API.

use std::rc::Rc;

use nki_frontend::trace::{Item, Operator};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::active::{Tracing, active, of_number};
use super::functions::call;
use super::numpy;
use super::turns::DeviceLoopIterator;
use super::values::{arguments, item_of, to_python};
use crate::convert::class_of_value;
use crate::errors::ours;

/// A device value in the traced kernel. Tensors, registers, grids and results of instructions are objects of the classes of the API, which
/// derive from it.
#[pyclass(frozen, subclass, module = "nki_sim._native")]
#[derive(Debug)]
pub(crate) struct Handle {
    /// The number of its trace.
    pub(super) trace: u64,
    /// Its number within the trace.
    pub(super) index: u32,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(tracing) = of_number(self.trace) {
            tracing.release(self.index);
        }
    }
}

impl Handle {
    pub(super) fn new(tracing: &Tracing, item: Item) -> Self {
        Handle { trace: tracing.id, index: tracing.keep(item) }
    }

    /// A Python object for a device value, of the class of the API for its type.
    pub(super) fn object(py: Python<'_>, tracing: &Tracing, item: Item) -> PyResult<Py<PyAny>> {
        let class = item.type_name().map(|name| class_of_value(py, name)).transpose()?.flatten();
        let Some(class) = class else { return Ok(Bound::new(py, Handle::new(tracing, item))?.into_any().unbind()) };
        let made = class.call_method1(intern!(py, "__new__"), (&class, tracing.id, tracing.keep(item)))?;
        Ok(made.unbind())
    }

    /// Its value and its trace, which must be the active one.
    pub(super) fn open(&self, py: Python<'_>) -> PyResult<(Rc<Tracing>, Item)> {
        match active() {
            Some(tracing) if tracing.id == self.trace => {
                let item = tracing.kept(self.index);
                Ok((tracing, item))
            }
            now => Err(self.escaped(py, now.is_some())),
        }
    }

    fn escaped(&self, py: Python<'_>, inside: bool) -> PyErr {
        let message = match (inside, of_number(self.trace).is_some()) {
            (true, true) => {
                "a tensor or register of one kernel is used in another one that is specialised inside of it; call the inner kernel itself, \
                 which is inlined"
            }
            _ => {
                "a tensor, register or instruction of a kernel is used outside of the kernel: it has a meaning only while the kernel is \
                 specialised; keep its shape or dtype instead, or return the tensor"
            }
        };
        ours(py, "OutsideKernelError", message)
    }

    fn binary(&self, operator: Operator, other: &Bound<'_, PyAny>, reflected: bool) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let (tracing, this) = self.open(py)?;
        let other = item_of(&tracing, other)?;
        let (left, right) = if reflected { (other, this) } else { (this, other) };
        let made = tracing.operate_as(py, Some("TypeError"), |t, span| t.operate(operator, &left, &right, span))?;
        to_python(py, &tracing, &made)
    }

    /// The content of the variable after `this operator= other`, which may be `this`.
    fn in_place(&self, operator: Operator, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let (tracing, this) = self.open(py)?;
        let other = item_of(&tracing, other)?;
        let made = tracing.operate_as(py, Some("TypeError"), |t, span| t.in_place(operator, &this, &other, span))?;
        to_python(py, &tracing, &made)
    }

    /// Installs the methods `_iadd` etc. as the operators: a PyO3 method `__iadd__` cannot return another object.
    pub(crate) fn complete(py: Python<'_>) -> PyResult<()> {
        let class = py.get_type::<Handle>();
        for operator in IN_PLACE {
            class.setattr(format!("__{operator}__"), class.getattr(format!("_{operator}"))?)?;
        }
        Ok(())
    }

    fn unary(&self, py: Python<'_>, operator: char) -> PyResult<Py<PyAny>> {
        let (tracing, this) = self.open(py)?;
        let made = tracing.operate_as(py, Some("TypeError"), |t, span| t.unary(operator, &this, span))?;
        to_python(py, &tracing, &made)
    }

    fn number(&self, py: Python<'_>) -> PyResult<i64> {
        let (tracing, this) = self.open(py)?;
        tracing.operate_as(py, Some("TypeError"), |t, span| t.number(&this, span))
    }
}

/// The error for a Python function that needs a number known to Python.
fn of_a_number(function: &str, instead: &str) -> PyErr {
    PyTypeError::new_err(format!("{function}() takes a number that is known before the kernel runs; {instead}"))
}

/// Operators that change the content of a variable.
const IN_PLACE: [&str; 13] = [
    "iadd",
    "isub",
    "imul",
    "imatmul",
    "itruediv",
    "ifloordiv",
    "imod",
    "ilshift",
    "irshift",
    "iand",
    "ior",
    "ixor",
    "ipow",
];

#[pymethods]
impl Handle {
    #[new]
    fn new_in(trace: u64, index: u32) -> Self {
        Handle { trace, index }
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Add, other, false)
    }
    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Add, other, true)
    }
    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Sub, other, false)
    }
    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Sub, other, true)
    }
    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Mul, other, false)
    }
    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Mul, other, true)
    }
    fn __matmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::MatMul, other, false)
    }
    fn __rmatmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::MatMul, other, true)
    }
    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Div, other, false)
    }
    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Div, other, true)
    }
    fn __floordiv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::FloorDiv, other, false)
    }
    fn __rfloordiv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::FloorDiv, other, true)
    }
    fn __mod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Mod, other, false)
    }
    fn __rmod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Mod, other, true)
    }
    fn __lshift__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::LShift, other, false)
    }
    fn __rlshift__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::LShift, other, true)
    }
    fn __rshift__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::RShift, other, false)
    }
    fn __rrshift__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::RShift, other, true)
    }
    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::BitAnd, other, false)
    }
    fn __rand__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::BitAnd, other, true)
    }
    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::BitOr, other, false)
    }
    fn __ror__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::BitOr, other, true)
    }
    fn __xor__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::BitXor, other, false)
    }
    fn __rxor__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::BitXor, other, true)
    }

    fn __pow__(&self, other: &Bound<'_, PyAny>, _modulo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Pow, other, false)
    }
    fn __rpow__(&self, other: &Bound<'_, PyAny>, _modulo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.binary(Operator::Pow, other, true)
    }

    fn _iadd(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::Add, other)
    }
    fn _isub(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::Sub, other)
    }
    fn _imul(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::Mul, other)
    }
    fn _imatmul(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::MatMul, other)
    }
    fn _itruediv(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::Div, other)
    }
    fn _ifloordiv(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::FloorDiv, other)
    }
    fn _imod(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::Mod, other)
    }
    fn _ilshift(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::LShift, other)
    }
    fn _irshift(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::RShift, other)
    }
    fn _iand(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::BitAnd, other)
    }
    fn _ior(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::BitOr, other)
    }
    fn _ixor(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::BitXor, other)
    }
    fn _ipow(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.in_place(Operator::Pow, other)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.unary(py, '-')
    }
    fn __pos__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.unary(py, '+')
    }
    fn __invert__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.unary(py, '~')
    }

    fn __abs__(&self) -> PyResult<()> {
        Err(of_a_number("abs", "nl.abs(tile) computes it on the device"))
    }
    #[pyo3(signature = (_digits = None))]
    fn __round__(&self, _digits: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        Err(of_a_number("round", "a tile is rounded by a copy to an integer type, or by nl.floor(tile + 0.5)"))
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        self.binary(
            match op {
                CompareOp::Eq => Operator::Eq,
                CompareOp::Ne => Operator::Ne,
                CompareOp::Lt => Operator::Lt,
                CompareOp::Le => Operator::Le,
                CompareOp::Gt => Operator::Gt,
                CompareOp::Ge => Operator::Ge,
            },
            other,
            false,
        )
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.open(py)?.1.identity())
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let (tracing, this) = self.open(py)?;
        tracing.operate_as(py, Some("TypeError"), |t, span| t.truth(&this, span))
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<i64> {
        self.number(py)
    }
    fn __index__(&self, py: Python<'_>) -> PyResult<i64> {
        self.number(py)
    }
    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        let (tracing, this) = self.open(py)?;
        tracing.operate_as(py, Some("TypeError"), |t, span| t.float(&this, span))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let (tracing, this) = self.open(py)?;
        let n = tracing.operate_as(py, Some("TypeError"), |t, span| t.len(&this, span))?;
        Ok(usize::try_from(n).unwrap_or(0))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (tracing, this) = self.open(py)?;
        if tracing.with(|t| t.is_counted(&this))? {
            let turns = DeviceLoopIterator::new(Handle::new(&tracing, this));
            return Ok(Bound::new(py, turns)?.into_any().unbind());
        }
        let items = tracing.operate_as(py, Some("TypeError"), |t, span| t.iterate(&this, span))?;
        let items: Vec<_> = items.iter().map(|item| to_python(py, &tracing, item)).collect::<PyResult<_>>()?;
        Ok(PyTuple::new(py, items)?.try_iter()?.into_any().unbind())
    }

    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = index.py();
        let (tracing, this) = self.open(py)?;
        let index = item_of(&tracing, index)?;
        let made = tracing.operate(py, |t, span| t.item(&this, &index, span))?;
        to_python(py, &tracing, &made)
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = index.py();
        let (tracing, this) = self.open(py)?;
        let (index, value) = (item_of(&tracing, index)?, item_of(&tracing, value)?);
        tracing.operate(py, |t, span| t.set_item(&this, &index, value, span))
    }

    fn __getattribute__(this: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<Py<PyAny>> {
        if name.to_string_lossy().starts_with("__") { generic(this.as_any(), name) } else { lookup(this, name) }
    }

    /// Called if the other one fails: its error would be lost.
    fn __getattr__(this: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<Py<PyAny>> {
        Self::__getattribute__(this, name)
    }

    fn __setattr__(&self, name: &Bound<'_, PyString>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let (tracing, this) = self.open(py)?;
        let value = item_of(&tracing, value)?;
        tracing.operate_as(py, Some("AttributeError"), |t, span| {
            let name = tracing.name(t, name);
            t.set_attribute(&this, name, value, span)
        })
    }

    fn __dir__(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        let (tracing, this) = self.open(py)?;
        tracing.with(|t| t.attributes(&this))
    }

    #[pyo3(signature = (*args, **keywords))]
    fn __call__(&self, args: &Bound<'_, PyTuple>, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let py = args.py();
        let (tracing, this) = self.open(py)?;
        call(py, &tracing, &this, args, keywords)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (tracing, this) = self.open(py)?;
        let made = tracing.operate_as(py, Some("TypeError"), |t, span| t.enter(&this, span))?;
        to_python(py, &tracing, &made)
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let (tracing, this) = self.open(py)?;
        tracing.with(|t| t.exit(&this))?;
        Ok(false)
    }

    /// A handle is a single value: a copy is the same object.
    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }
    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// NumPy ufuncs on a handle, and operators of NumPy numbers and arrays with one.
    #[pyo3(signature = (ufunc, method, *inputs, **keywords))]
    fn __array_ufunc__(
        this: &Bound<'_, Self>,
        ufunc: &Bound<'_, PyAny>,
        method: &str,
        inputs: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = this.py();
        let name: String = ufunc.getattr("__name__")?.extract()?;
        let keywords = keywords.cloned().unwrap_or_else(|| PyDict::new(py));
        if let Some(operator) = numpy::reflected(&name, method, inputs, &keywords)? {
            return Ok(inputs.get_item(1)?.call_method1(operator, (inputs.get_item(0)?,))?.unbind());
        }
        let (tracing, value) = this.get().open(py)?;
        if method == "__call__"
            && let Some(made) = numpy::of_language(&tracing, &name, inputs, &keywords)?
        {
            return Ok(made);
        }
        tracing.operate_as(py, Some("TypeError"), |t, span| t.contents(&value, span))
    }

    /// Other NumPy functions on a handle.
    fn __array_function__(
        &self,
        function: &Bound<'_, PyAny>,
        _types: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        keywords: &Bound<'_, PyDict>,
    ) -> PyResult<Py<PyAny>> {
        let (tracing, _) = self.open(args.py())?;
        let name: String = function.getattr("__name__")?.extract()?;
        match numpy::of_language(&tracing, &name, args, keywords)? {
            Some(made) => Ok(made),
            None => Ok(function.getattr("_implementation")?.call(args, Some(keywords))?.unbind()),
        }
    }

    #[pyo3(signature = (*_args, **_keywords))]
    fn __array__(
        &self,
        py: Python<'_>,
        _args: &Bound<'_, PyTuple>,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (tracing, this) = self.open(py)?;
        if let Some(value) = value_of(py, &tracing, &this)? {
            return Ok(value);
        }
        tracing.operate_as(py, Some("TypeError"), |t, span| t.contents(&this, span))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        match self.open(py) {
            Ok((tracing, this)) => {
                let (text, held) = tracing.with(|t| (t.repr(&this).unwrap_or_default(), t.held(&this)))?;
                match (held, tracing.followed()) {
                    (Some(held), Some(run)) => run.shown(py, &text, held),
                    _ => Ok(text),
                }
            }
            Err(_) => Ok("<a value of a kernel that has been specialised>".to_owned()),
        }
    }
}

/// Python's default attribute lookup.
fn generic(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<Py<PyAny>> {
    Ok(object.py().get_type::<PyAny>().getattr("__getattribute__")?.call1((object, name))?.unbind())
}

/// An attribute or method of a device value.
fn lookup(this: &Bound<'_, Handle>, name: &Bound<'_, PyString>) -> PyResult<Py<PyAny>> {
    let py = this.py();
    let (tracing, item) = this.get().open(py)?;
    let (symbol, is_method) = tracing.with(|t| {
        let symbol = tracing.name(t, name);
        (symbol, t.has_method(&item, symbol))
    })?;
    if is_method {
        let method = Method { base: this.clone().unbind(), name: name.clone().unbind() };
        return Ok(Bound::new(py, method)?.into_any().unbind());
    }
    if name == "value"
        && let Some(value) = value_of(py, &tracing, &item)?
    {
        return Ok(value);
    }
    let made = tracing.operate_as(py, Some("AttributeError"), |t, span| t.attribute(&item, symbol, span))?;
    to_python(py, &tracing, &made)
}

/// The content of a device value, if a run executes the kernel's instructions when they are called.
fn value_of(py: Python<'_>, tracing: &Tracing, item: &Item) -> PyResult<Option<Py<PyAny>>> {
    let (Some(run), Some(held)) = (tracing.followed(), tracing.with(|t| t.held(item))?) else { return Ok(None) };
    run.value(py, held).map(Some)
}

/// A method of a [`Handle`].
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug)]
pub(crate) struct Method {
    base: Py<Handle>,
    name: Py<PyString>,
}

#[pymethods]
impl Method {
    #[pyo3(signature = (*args, **keywords))]
    fn __call__(&self, args: &Bound<'_, PyTuple>, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let py = args.py();
        let (tracing, this) = self.base.get().open(py)?;
        let args = arguments(&tracing, args, keywords)?;
        let made = tracing.operate(py, |t, span| {
            let name = tracing.name(t, self.name.bind(py));
            t.call_method(&this, name, args, span)
        })?;
        to_python(py, &tracing, &made)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<method {}>", self.name.bind(py))
    }
}
