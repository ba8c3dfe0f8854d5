//! NumPy functions and operators on device values.

use std::rc::Rc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::active::Tracing;
use super::functions::call;
use super::handles::Handle;

/// The result of NumPy's function `name` as the language's function on device values; `None` if the dialect has no such
/// function, or the result is to be written to an array.
/// function, or the result is to be written to an array.
pub(super) fn of_language(
    tracing: &Rc<Tracing>,
    name: &str,
    args: &Bound<'_, PyTuple>,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<Option<Py<PyAny>>> {
    let py = args.py();
    if keywords.contains("out")? {
        return Ok(None);
    }
    let function = tracing.operate(py, |t, span| t.array_function(name, span))?;
    function.map(|function| call(py, tracing, &function, args, Some(keywords))).transpose()
}

/// The right operand's method for an operator whose left operand is a NumPy number or array, which calls the ufunc `name` for it.
pub(super) fn reflected(
    name: &str,
    method: &str,
    inputs: &Bound<'_, PyTuple>,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<Option<&'static str>> {
    let operator = method == "__call__" && keywords.is_empty() && inputs.len() == 2;
    if !operator || inputs.get_item(0)?.is_instance_of::<Handle>() {
        return Ok(None);
    }
    Ok(Some(match name {
        "add" => "__radd__",
        "subtract" => "__rsub__",
        "multiply" => "__rmul__",
        "matmul" => "__rmatmul__",
        "divide" | "true_divide" => "__rtruediv__",
        "floor_divide" => "__rfloordiv__",
        "remainder" => "__rmod__",
        "power" => "__rpow__",
        "left_shift" => "__rlshift__",
        "right_shift" => "__rrshift__",
        "bitwise_and" => "__rand__",
        "bitwise_or" => "__ror__",
        "bitwise_xor" => "__rxor__",
        "equal" => "__eq__",
        "not_equal" => "__ne__",
        "less" => "__gt__",
        "less_equal" => "__ge__",
        "greater" => "__lt__",
        "greater_equal" => "__le__",
        _ => return Ok(None),
    }))
}
