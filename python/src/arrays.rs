//! The memory of arrays. Like `xla`, this file uses `unsafe`: it converts an array's address to a slice.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use nki_frontend::{HostArray, HostDtype};
use nki_isa::DType;
use nki_isa::names::Named;
use nki_isa::shape::tuple_text;
use nki_sim_core::{Buffer, ForeignBytes};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyTuple};
use rustc_hash::FxHashMap;

use crate::convert::{helpers, is_ndarray};
use crate::errors::{ours, value_error};

/// Location of an array's values.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// One block of memory at this address, which the simulator reads in place.
    Block(usize),
    /// Strided elements in this address range: a run works on a copy.
    Strided { low: usize, high: usize, overlaps_itself: bool },
    /// Memory of another device, fetched for a run: `owner` is a `DeviceTensor`.
    Device,
    /// Shape and dtype only: a program can be compiled for the array, but not run on it.
    Nowhere,
}

/// An array whose values the simulator may read.
#[derive(Debug)]
pub(crate) struct Array {
    /// The NumPy array, which owns the memory.
    owner: Py<PyAny>,
    /// The object that the caller passed (for example a torch tensor), returned if the kernel returns its input.
    pub(crate) original: Py<PyAny>,
    place: Place,
    length: usize,
    /// Whether the caller allows writes.
    pub(crate) writable: bool,
    /// The caller's type is immutable, but a new object can be returned: a jax array.
    pub(crate) immutable: bool,
}

impl Array {
    /// Whether it has only a shape and a dtype, but no values.
    pub(crate) fn valueless(&self) -> bool {
        matches!(self.place, Place::Nowhere)
    }

    /// Whether elements share memory (a stride of 0), so that it cannot be written.
    pub(crate) fn overlaps_itself(&self) -> bool {
        matches!(self.place, Place::Strided { overlaps_itself: true, .. })
    }

    /// The array as an input of the simulator: in place if it is one block of memory, else copied now. Writes always go to a copy
    /// (see [`ForeignBytes`]), so that a failure leaves the caller's array unchanged.
    pub(crate) fn buffer(&self, py: Python<'_>) -> PyResult<Buffer> {
        let block = match self.place {
            Place::Block(address) => Block { _owner: self.owner.clone_ref(py), address, length: self.length },
            _ => Block::copied(py, &self.owner, self.length)?,
        };
        Ok(Buffer::foreign(Box::new(block)))
    }

    /// Writes the result of a run into the caller's array, which has the same number of bytes.
    pub(crate) fn write(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        debug_assert_eq!(bytes.len(), self.length);
        let Place::Block(address) = self.place else {
            let bytes = PyBytes::new(py, bytes);
            return helpers(py)?.bind(py).getattr("put_back")?.call1((&self.owner, bytes)).map(drop);
        };
        // Unwritten results are still the caller's own memory.
        if bytes.as_ptr() as usize == address {
            return Ok(());
        }
        // SAFETY: the owner is alive, `take` has checked that its memory is one writable block of `length` bytes, and the caller holds the
        // GIL. `bytes` is memory of the simulator or of an argument, and may overlap it.
        unsafe { std::ptr::copy(bytes.as_ptr(), address as *mut u8, self.length.min(bytes.len())) }
        Ok(())
    }

    /// Whether the two are one object, or the same block of memory.
    pub(crate) fn is_same(&self, other: &Array) -> bool {
        let same_block = match (self.place, other.place) {
            (Place::Block(address), Place::Block(other_address)) => {
                address == other_address && self.length == other.length
            }
            _ => false,
        };
        same_block || self.original.is(&other.original)
    }

    /// Whether the two share memory.
    pub(crate) fn overlaps(&self, py: Python<'_>, other: &Array) -> PyResult<bool> {
        let (Some((low, high)), Some((other_low, other_high))) = (self.range(), other.range()) else {
            return Ok(self.original.is(&other.original) && !self.valueless());
        };
        if low >= other_high || other_low >= high {
            return Ok(false);
        }
        if let (Place::Block(_), Place::Block(_)) = (self.place, other.place) {
            return Ok(true);
        }
        helpers(py)?.bind(py).getattr("share_memory")?.call1((&self.owner, &other.owner))?.extract()
    }

    /// The address range of its elements, if they are in host memory.
    fn range(&self) -> Option<(usize, usize)> {
        match self.place {
            Place::Block(address) => Some((address, address + self.length)),
            Place::Strided { low, high, .. } => Some((low, high)),
            Place::Device | Place::Nowhere => None,
        }
    }
}

/// A block of memory that a NumPy array keeps alive.
#[derive(Debug)]
struct Block {
    _owner: Py<PyAny>,
    address: usize,
    length: usize,
}

impl Block {
    /// A contiguous copy of an array that is strided or on another device.
    fn copied(py: Python<'_>, owner: &Py<PyAny>, length: usize) -> PyResult<Block> {
        let copy = helpers(py)?.bind(py).getattr("contiguous")?.call1((owner,))?;
        match layout(&copy)? {
            Some(Layout { address, contiguous: true, .. }) if copy.getattr("nbytes")?.extract::<usize>()? == length => {
                Ok(Block { _owner: copy.unbind(), address, length })
            }
            _ => Err(value_error("the copy of an argument has another size than the argument")),
        }
    }
}

impl ForeignBytes for Block {
    fn bytes(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: the owner keeps the memory alive; `take` and `copied` have checked that it is one block of `length` bytes. As in NumPy
        // itself, the result is unspecified if a thread writes to an array while a kernel reads it.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.length) }
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        None
    }
}

/// The memory layout of an array in NumPy's array interface (`PyArrayInterface` in its C interface).
#[repr(C)]
struct Interface {
    two: c_int,
    dimensions: c_int,
    kind: c_char,
    item_size: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *const c_void,
    description: *const c_void,
}

impl Interface {
    const CONTIGUOUS: c_int = 0x1;
    const WRITEABLE: c_int = 0x400;
}

/// The memory layout of an array's elements.
struct Layout {
    /// Address of the first element.
    address: usize,
    /// Whether they form one block in row-major order.
    contiguous: bool,
    writable: bool,
    /// Byte strides by axis.
    strides: Vec<isize>,
}

/// The layout of an array; `None` for an object without host memory (`TensorSpec`).
fn layout(array: &Bound<'_, PyAny>) -> PyResult<Option<Layout>> {
    let Some(capsule) = array.getattr_opt(intern!(array.py(), "__array_struct__"))? else { return Ok(None) };
    let capsule: Bound<'_, PyCapsule> = capsule.cast_into()?;
    let interface = capsule.pointer_checked(None)?.cast::<Interface>();
    // SAFETY: by the array interface the capsule contains such a structure during its lifetime, with one stride per dimension; the value of `two`
    // identifies it.
    unsafe {
        let interface = interface.as_ref();
        if interface.two != 2 || interface.data.is_null() {
            return Err(value_error("an array without memory"));
        }
        let strides = match usize::try_from(interface.dimensions) {
            Ok(dimensions) if !interface.strides.is_null() => {
                std::slice::from_raw_parts(interface.strides, dimensions).to_vec()
            }
            _ => Vec::new(),
        };
        let (contiguous, writable) = if interface.kind as u8 == b'V' {
            // NumPy clears the flags of structured arrays, such as packed elements (`array_struct_get` in getset.c masks them with
            // NPY_ARR_HAS_DESCR). For the other types of this kind, such as bfloat16, the flags are the same in Python.
            let flags = array.getattr("flags")?;
            (flags.getattr("c_contiguous")?.extract()?, flags.getattr("writeable")?.extract()?)
        } else {
            (interface.flags & Interface::CONTIGUOUS != 0, interface.flags & Interface::WRITEABLE != 0)
        };
        Ok(Some(Layout { address: interface.data as usize, contiguous, writable, strides }))
    }
}

/// The address range of elements of `size` bytes that start at `address`. Arrays with nested strides (each stride at least as long as the extent of
/// the smaller ones) have distinct elements; all others are assumed to overlap themselves.
fn strided(address: usize, shape: &[usize], strides: &[isize], size: usize) -> Place {
    let (mut low, mut high) = (address, address + size);
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (&extent, &stride) in shape.iter().zip(strides) {
        let span = stride.unsigned_abs() * (extent - 1);
        if stride < 0 {
            low -= span;
        } else {
            high += span;
        }
        if extent > 1 {
            spans.push((stride.unsigned_abs(), span));
        }
    }
    spans.sort_unstable();
    let mut inner = size;
    let apart = spans.iter().all(|(stride, span)| {
        let apart = *stride >= inner;
        inner += span;
        apart
    });
    Place::Strided { low, high, overlaps_itself: !apart }
}

/// A NumPy array as an input: `owner` is the array, `original` its source, `device` its element type
/// if NumPy's does not determine it. `name` is for messages.
pub(crate) fn take(
    array: &Bound<'_, PyAny>,
    original: &Bound<'_, PyAny>,
    immutable: bool,
    device: Option<DType>,
    name: &str,
) -> PyResult<(Array, Vec<usize>, DType)> {
    let py = array.py();
    let fail = |class: &str, what: String| Err(ours(py, class, &format!("argument `{name}` {what}")));
    let shape = array.getattr(intern!(py, "shape"))?;
    let Ok(shape) = shape.extract::<Vec<usize>>() else {
        return fail(
            "ArgumentError",
            format!("has shape {}; a kernel is compiled for one shape, in numbers", shape.str()?),
        );
    };
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let device = match device {
        Some(device) => Some(device),
        None => device_dtype(&dtype)?,
    };
    if shape.is_empty() {
        let instead = "is an array without dimensions; pass a number, or an array of shape (1, 1)";
        return fail("ArgumentError", instead.into());
    }
    let Some(device) = device else {
        let text: String = dtype.str()?.extract()?;
        let instead = match &*text {
            "float64" => "; pass x.astype(np.float32)",
            "int64" | "uint64" => "; pass x.astype(np.int32)",
            "complex64" | "complex128" => "; pass its real and imaginary parts as two arrays",
            swapped if swapped.starts_with('>') => "; pass x.astype(x.dtype.newbyteorder(\"=\"))",
            _ => "",
        };
        return fail("ArgumentTypeError", format!("has dtype {text}, which is not a device type{instead}"));
    };
    // Looking up a missing attribute takes longer than everything else here.
    if !is_ndarray(array)? && array.hasattr("_mask")? {
        return fail(
            "ArgumentTypeError",
            "is a masked array, but kernels do not support masks; pass x.filled(value)".into(),
        );
    }
    if shape.contains(&0) {
        return fail("ArgumentError", format!("has shape {}: it is empty", tuple_text(shape.iter())));
    }
    let length = shape.iter().product::<usize>() * device.size();
    let mut taken = Array {
        owner: array.clone().unbind(),
        original: original.clone().unbind(),
        place: Place::Nowhere,
        length,
        writable: true,
        immutable,
    };
    let Some(memory) = layout(array)? else {
        if array.hasattr("fetch")? {
            taken.place = Place::Device;
        }
        return Ok((taken, shape, device));
    };
    taken.writable = memory.writable;
    taken.place = if memory.contiguous {
        Place::Block(memory.address)
    } else {
        strided(memory.address, &shape, &memory.strides, device.size())
    };
    Ok((taken, shape, device))
}

/// A copy of a NumPy array as a constant of a kernel. `None` if its element type is not supported there.
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

/// A dtype of NumPy and its device type.
type Known = (Py<PyAny>, Option<DType>);
/// Known dtypes by address of the object, which is kept alive: NumPy builds the string of a name on every request.
static DTYPES: Mutex<Option<FxHashMap<usize, Known>>> = Mutex::new(None);
/// Maximum number of cached dtypes: there are a few dozen, unless a program creates more.
const MOST_DTYPES: usize = 256;

/// The device type of a NumPy dtype, if any.
pub(crate) fn device_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let address = dtype.as_ptr() as usize;
    let kept = DTYPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, device)) = kept.as_ref().and_then(|kept| kept.get(&address)) {
        return Ok(*device);
    }
    drop(kept);
    let mut name: String = dtype.getattr("name")?.extract()?;
    // Field names of a structured dtype can change.
    let structure = name.starts_with("void");
    if structure {
        let packed = helpers(dtype.py())?.bind(dtype.py()).getattr("packed_name")?.call1((dtype,))?;
        match packed.extract()? {
            Some(packed) => name = packed,
            None => return Ok(None),
        }
    }
    let order: String = dtype.getattr("byteorder")?.extract()?;
    let device = if order == ">" { None } else { DType::from_name(&name) };
    if !structure {
        let mut kept = DTYPES.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get_or_insert_default();
        if kept.len() < MOST_DTYPES {
            kept.insert(address, (dtype.clone().unbind(), device));
        }
    }
    Ok(device)
}

/// Memory allocated by the simulator and owned by NumPy: `numpy.asarray(memory)` is an array of its bytes.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug)]
pub(crate) struct Memory(pub(crate) Buffer);

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "shape"), PyTuple::new(py, [self.0.len()])?)?;
        dict.set_item(intern!(py, "typestr"), intern!(py, "|u1"))?;
        // The simulator's own buffer now belongs to this object alone: Rust never reads or writes it again.
        dict.set_item(intern!(py, "data"), (self.0.as_ptr() as usize, false))?;
        dict.set_item(intern!(py, "version"), 3)?;
        Ok(dict)
    }
}
