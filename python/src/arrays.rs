//! The memory of arrays. With `xla`, the only file with `unsafe`: it turns the address that an array gives of its memory into a slice.

#![allow(unsafe_code)]

use nki_frontend::{HostArray, HostDtype};
use nki_isa::DType;
use nki_isa::names::Named;
use nki_sim_core::{Buffer, ForeignBytes};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::convert::helpers;
use crate::errors::{ours, value_error};

/// An array whose memory the simulator may read.
#[derive(Debug)]
pub(crate) struct Array {
    /// The NumPy array; its memory lives as long as this.
    owner: Py<PyAny>,
    /// What the caller passed (a torch tensor, say), returned where the kernel returns its input.
    pub(crate) original: Py<PyAny>,
    address: usize,
    length: usize,
    /// Whether the caller lets it be written.
    pub(crate) writable: bool,
    /// The caller's kind cannot be written, but a new one returned: a jax array.
    pub(crate) immutable: bool,
    /// Shape and dtype only: a program can be compiled for it, but not run on it.
    pub(crate) valueless: bool,
}

impl Array {
    /// Another handle of the same array.
    pub(crate) fn again(&self, py: Python<'_>) -> Array {
        Array { owner: self.owner.clone_ref(py), original: self.original.clone_ref(py), ..*self }
    }

    /// The array for the simulator to read. Writes go to a copy (see [`ForeignBytes`]), so that a failure leaves the caller's array as it was.
    pub(crate) fn buffer(&self, py: Python<'_>) -> Buffer {
        Buffer::foreign(Box::new(self.again(py)))
    }

    /// Writes the result of a run into the caller's memory. The bytes are as many as the array has.
    pub(crate) fn write(&self, bytes: &[u8]) {
        debug_assert_eq!(bytes.len(), self.length);
        // SAFETY: the owner is alive, `take` has checked that its memory is one block of `length` bytes and writable, the caller holds the
        // GIL, and `bytes` is memory of the simulator, which cannot overlap it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address as *mut u8, self.length.min(bytes.len())) }
    }

    /// Whether the two share memory.
    pub(crate) fn overlaps(&self, other: &Array) -> bool {
        !self.valueless && self.address < other.address + other.length && other.address < self.address + self.length
    }
}

impl ForeignBytes for Array {
    fn bytes(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: the owner keeps the memory alive; `take` has checked that it is one block of `length` bytes. As with NumPy itself, a
        // thread that writes to an array while a kernel reads it gets what it asks for.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.length) }
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        None
    }
}

/// A NumPy array as an input: `owner` is the array, `original` what it was made from, `device` its element type
/// if NumPy's does not say it. `name` is for messages.
pub(crate) fn take(
    array: &Bound<'_, PyAny>,
    original: &Bound<'_, PyAny>,
    immutable: bool,
    device: Option<DType>,
    name: &str,
) -> PyResult<(Array, Vec<usize>, DType)> {
    let py = array.py();
    let fail = |class: &str, what: String| Err(ours(py, class, &format!("argument `{name}` {what}")));
    let shape = array.getattr("shape")?;
    let Ok(shape) = shape.extract::<Vec<usize>>() else {
        return fail(
            "ArgumentError",
            format!("has shape {}; a kernel is compiled for one shape, in numbers", shape.str()?),
        );
    };
    let dtype = array.getattr("dtype")?;
    let device = match device {
        Some(device) => Some(device),
        None => device_dtype(&dtype)?,
    };
    let Some(device) = device else {
        let text: String = dtype.str()?.extract()?;
        let instead = match &*text {
            "float64" => "; pass x.astype(np.float32)",
            "int64" | "uint64" => "; pass x.astype(np.int32)",
            "complex64" | "complex128" => "; pass its real and imaginary parts as two arrays",
            _ => "",
        };
        return fail("ArgumentTypeError", format!("has dtype {text}, which is not a device type{instead}"));
    };
    if array.hasattr("_mask")? {
        return fail("ArgumentTypeError", "is a masked array, and kernels know no masks; pass x.filled(value)".into());
    }
    if shape.is_empty() {
        let instead = "is an array without dimensions; pass a number, or an array of shape (1, 1)";
        return fail("ArgumentError", instead.into());
    }
    if shape.contains(&0) {
        return fail("ArgumentError", format!("has shape {}: it is empty", tuple_text(&shape)));
    }
    let length = shape.iter().product::<usize>() * device.size();
    let mut taken = Array {
        owner: array.clone().unbind(),
        original: original.clone().unbind(),
        address: 0,
        length,
        writable: true,
        immutable,
        valueless: true,
    };
    if !array.hasattr("__array_interface__")? {
        return Ok((taken, shape, device));
    }
    let flags = array.getattr("flags")?;
    if !flags.get_item("C_CONTIGUOUS")?.extract::<bool>()? {
        let strides: Vec<isize> = array.getattr("strides")?.extract()?;
        let strides = strides.iter().map(isize::to_string).collect::<Vec<_>>().join(", ");
        let shape = tuple_text(&shape);
        return fail(
            "ArgumentError",
            format!(
                "is not contiguous (shape {shape}, strides ({strides}) bytes); pass np.ascontiguousarray(x), or x.contiguous() in torch"
            ),
        );
    }
    let interface: Bound<'_, PyDict> = array.getattr("__array_interface__")?.extract()?;
    let data = interface.get_item("data")?.ok_or_else(|| value_error(format!("argument `{name}` has no memory")))?;
    let (address, read_only): (usize, bool) = data.extract()?;
    (taken.address, taken.writable, taken.valueless) = (address, !read_only, false);
    Ok((taken, shape, device))
}

/// A NumPy array as a constant of a kernel: a copy. `None` if its element type has no meaning there.
pub(crate) fn constant(array: &Bound<'_, PyAny>) -> PyResult<Option<HostArray>> {
    let dtype = array.getattr("dtype")?;
    let name: String = dtype.getattr("name")?.extract()?;
    let dtype = match &*name {
        "float64" => HostDtype::F64,
        "int64" => HostDtype::I64,
        "uint64" => HostDtype::U64,
        _ => match device_dtype(&dtype)? {
            Some(dtype) => HostDtype::Device(dtype),
            None => return Ok(None),
        },
    };
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    // Row-major, whatever the strides are.
    let bytes: Bound<'_, PyBytes> = array.call_method0("tobytes")?.cast_into()?;
    Ok(Some(HostArray { dtype, shape, data: bytes.as_bytes().into() }))
}

fn tuple_text(shape: &[usize]) -> String {
    let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("({}{})", dims.join(", "), if dims.len() == 1 { "," } else { "" })
}

/// The device type of a NumPy dtype, if there is one.
pub(crate) fn device_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let mut name: String = dtype.getattr("name")?.extract()?;
    if name.starts_with("void") {
        let packed = helpers(dtype.py())?.bind(dtype.py()).getattr("packed_name")?.call1((dtype,))?;
        match packed.extract()? {
            Some(packed) => name = packed,
            None => return Ok(None),
        }
    }
    let order: String = dtype.getattr("byteorder")?.extract()?;
    if order == ">" {
        return Ok(None);
    }
    Ok(DType::from_name(&name))
}

/// Memory that the simulator made, for NumPy to keep: `numpy.asarray(memory)` is an array of bytes on it.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug)]
pub(crate) struct Memory(pub(crate) Buffer);

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("shape", PyTuple::new(py, [self.0.len()])?)?;
        dict.set_item("typestr", "|u1")?;
        // The buffer was the simulator's own and belongs to this object alone now: it is never read or written in Rust again.
        dict.set_item("data", (self.0.as_ptr() as usize, false))?;
        dict.set_item("version", 3)?;
        Ok(dict)
    }
}
