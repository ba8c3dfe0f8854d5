//! The part of XLA's foreign function interface that a handler needs.
//!
//! The structs repeat the layout of the public header `xla/ffi/api/c_api.h`, version 0.3 (jaxlib ships it under `jax.ffi.include_dir()`).
//! The header guarantees that a layout changes only with the major version, so a handler registers for the version in the installed
//! header ([`ffi_handler`]), if its major version is ours, and the size of every struct is checked before it is read.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use nki_isa::DType;
use nki_sim_core::{Buffer, ForeignBytes};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::value_error;
use crate::served;

/// The major version whose layout this file uses.
const MAJOR: c_int = 0;
/// The minor version to register for: that of the installed header.
static MINOR: AtomicI32 = AtomicI32::new(0);

const EXTENSION_METADATA: c_int = 1;
const STAGE_EXECUTE: c_int = 3;
const BUFFER: c_int = 1;
const ATTRIBUTE_STRING: c_int = 4;
const INVALID_ARGUMENT: c_int = 3;

#[repr(C)]
struct Extension {
    struct_size: usize,
    kind: c_int,
    next: *mut Extension,
}

#[repr(C)]
struct Version {
    struct_size: usize,
    extension: *mut Extension,
    major: c_int,
    minor: c_int,
}

#[repr(C)]
struct ErrorArgs {
    struct_size: usize,
    extension: *mut Extension,
    message: *const c_char,
    code: c_int,
}

/// The start of the function table.
#[repr(C)]
struct Api {
    struct_size: usize,
    extension: *mut Extension,
    version: Version,
    internal: *const c_void,
    error_create: Option<unsafe extern "C" fn(*mut ErrorArgs) -> *mut c_void>,
}

#[repr(C)]
struct RawBuffer {
    struct_size: usize,
    extension: *mut Extension,
    dtype: c_int,
    data: *mut c_void,
    rank: i64,
    dims: *const i64,
}

/// Arguments or results.
#[repr(C)]
struct List {
    struct_size: usize,
    extension: *mut Extension,
    size: i64,
    kinds: *const c_int,
    items: *const *const c_void,
}

#[repr(C)]
struct Attributes {
    struct_size: usize,
    extension: *mut Extension,
    size: i64,
    kinds: *const c_int,
    names: *const *const Span,
    items: *const *const c_void,
}

/// A string without a terminating null.
#[repr(C)]
struct Span {
    start: *const u8,
    length: usize,
}

/// Up to the attributes, where older versions end.
#[repr(C)]
struct Frame {
    struct_size: usize,
    extension: *mut Extension,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    arguments: List,
    results: List,
    attributes: Attributes,
}

#[repr(C)]
struct Metadata {
    struct_size: usize,
    version: Version,
    traits: u32,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

/// A call of the handler.
pub(crate) struct Call<'a> {
    attributes: Vec<(&'a str, &'a str)>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) results: Vec<HostBuffer<'a>>,
}

impl<'a> Call<'a> {
    /// The text attribute of this name.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
    }
}

/// An argument: XLA's memory, borrowed for the duration of the call.
pub(crate) struct Argument {
    pub(crate) dtype: c_int,
    pub(crate) dims: Vec<usize>,
    lent: Lent,
}

impl Argument {
    /// The argument as an input of the simulator, which writes to a copy.
    pub(crate) fn buffer(self) -> Buffer {
        Buffer::foreign(Box::new(self.lent))
    }
}

/// A result: memory to be filled.
pub(crate) struct HostBuffer<'a> {
    pub(crate) dtype: c_int,
    pub(crate) dims: Vec<usize>,
    pub(crate) bytes: &'a mut [u8],
}

struct Lent {
    address: usize,
    length: usize,
    /// Counts the owners of the memory.
    _lender: Arc<()>,
}

impl ForeignBytes for Lent {
    fn bytes(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: XLA keeps an argument alive and unchanged until the handler returns, and `run` does not return before this is dropped.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.length) }
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        None
    }
}

/// XLA's number of an element type; `None` if XLA does not have it.
pub(crate) fn dtype_number(dtype: DType) -> Option<c_int> {
    use nki_isa::names::Named;
    Some(match dtype.name() {
        "bool" => 1,
        "int8" => 2,
        "int16" => 3,
        "int32" => 4,
        "uint8" => 6,
        "uint16" => 7,
        "uint32" => 8,
        "float16" => 10,
        "float32" | "tfloat32" => 11,
        "bfloat16" => 16,
        "float8_e5m2" => 19,
        "float8_e4m3fn" => 20,
        "float8_e4m3" => 28,
        "float8_e8m0fnu" => 33,
        _ => return None,
    })
}

/// Bytes per element of a type in the numbering of [`dtype_number`].
fn size_of_number(number: c_int) -> Option<usize> {
    Some(match number {
        1 | 2 | 6 | 19 | 20 | 28 | 33 => 1,
        3 | 7 | 10 | 16 => 2,
        4 | 8 | 11 => 4,
        _ => return None,
    })
}

/// The handler as a capsule, for `jax.ffi.register_ffi_target`. `major` and `minor` are the version of the installed header.
#[pyfunction]
pub(crate) fn ffi_handler(py: Python<'_>, major: c_int, minor: c_int) -> PyResult<Bound<'_, PyCapsule>> {
    if major != MAJOR {
        return Err(value_error(format!(
            "this jax has version {major}.{minor} of XLA's foreign function interface, but nki-sim supports versions {MAJOR}.x; \
             install an older jax or a newer nki-sim"
        )));
    }
    MINOR.store(minor, Ordering::Relaxed);
    let pointer = NonNull::new(handler as *mut c_void).ok_or_else(|| value_error("no handler"))?;
    // SAFETY: a function lives as long as the library, which is never unloaded.
    unsafe { PyCapsule::new_with_pointer(py, pointer, c"xla._CUSTOM_CALL_TARGET") }
}

/// The custom call in graphs that the Neuron compiler replaces, as a capsule for `jax.ffi.register_ffi_target` (version 0, untyped).
/// On the CPU it does nothing: the call after it, which [`ffi_handler`] serves, computes the results.
#[pyfunction]
pub(crate) fn documented_call(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    let pointer = NonNull::new(nothing as *mut c_void).ok_or_else(|| value_error("no handler"))?;
    // SAFETY: a function lives as long as the library, which is never unloaded.
    unsafe { PyCapsule::new_with_pointer(py, pointer, c"xla._CUSTOM_CALL_TARGET") }
}

/// Leaves its results as they are, and its status a success.
extern "C" fn nothing(_results: *mut c_void, _operands: *const *const c_void, _status: *mut c_void) {}

/// XLA's entry point: with a metadata extension it queries the version, else it runs a program.
extern "C" fn handler(frame: *mut Frame) -> *mut c_void {
    // SAFETY: XLA passes a call frame that lives until this returns. Nothing beyond its stated sizes is read.
    unsafe {
        if describe((*frame).extension) {
            return ptr::null_mut();
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| run(frame)));
        let message = match outcome {
            Ok(Ok(())) => return ptr::null_mut(),
            Ok(Err(message)) => message,
            Err(_) => "a bug of nki-sim: the simulator panicked; the lines above say where".to_owned(),
        };
        error((*frame).api, message)
    }
}

/// Answers a version query.
///
/// # Safety
/// `extension` is null or a valid pointer from XLA.
unsafe fn describe(extension: *mut Extension) -> bool {
    // SAFETY: the kind identifies the extension; the metadata are XLA's, to be filled in.
    unsafe {
        if extension.is_null() || (*extension).kind != EXTENSION_METADATA {
            return false;
        }
        let metadata = (*extension.cast::<MetadataExtension>()).metadata;
        (*metadata).version.major = MAJOR;
        (*metadata).version.minor = MINOR.load(Ordering::Relaxed);
        (*metadata).traits = 0;
        true
    }
}

/// An error for XLA, which destroys it.
///
/// # Safety
/// `api` is a valid pointer from XLA.
unsafe fn error(api: *const Api, message: String) -> *mut c_void {
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let mut arguments = ErrorArgs {
        // The header's size ends with the last field, without padding.
        struct_size: std::mem::offset_of!(ErrorArgs, code) + size_of::<c_int>(),
        extension: ptr::null_mut(),
        message: message.as_ptr(),
        code: INVALID_ARGUMENT,
    };
    // SAFETY: the function copies the message.
    unsafe { (*api).error_create.map_or(ptr::null_mut(), |create| create(&raw mut arguments)) }
}

/// Runs the program named by the call.
///
/// # Safety
/// `frame` is a valid pointer from XLA.
unsafe fn run(frame: *mut Frame) -> Result<(), String> {
    // SAFETY: the frame states its size, which depends on its version; it is not read if that differs from ours.
    let frame = unsafe {
        if (*frame).struct_size < size_of::<Frame>() || (*(*frame).api).version.major != MAJOR {
            return Err("this version of XLA uses a calling convention that nki-sim does not support".into());
        }
        &*frame
    };
    if frame.stage != STAGE_EXECUTE {
        return Ok(());
    }
    let lender = Arc::new(());
    // SAFETY: lists and buffers have their stated lengths.
    let call = unsafe {
        Call {
            attributes: attributes(&frame.attributes),
            arguments: buffers(&frame.arguments)?
                .into_iter()
                .map(|(buffer, dims, length)| Argument {
                    dtype: buffer.dtype,
                    dims,
                    lent: Lent { address: buffer.data as usize, length, _lender: lender.clone() },
                })
                .collect(),
            results: buffers(&frame.results)?
                .into_iter()
                .map(|(buffer, dims, length)| {
                    let start = if length == 0 { NonNull::dangling().as_ptr() } else { buffer.data.cast::<u8>() };
                    HostBuffer { dtype: buffer.dtype, dims, bytes: std::slice::from_raw_parts_mut(start, length) }
                })
                .collect(),
        }
    };
    let outcome = served::run(call);
    if Arc::strong_count(&lender) != 1 {
        // Continuing would leave the simulator with memory that XLA reclaims.
        std::process::abort();
    }
    outcome
}

/// The text attributes.
///
/// # Safety
/// `list` is valid and lives for `'a`.
unsafe fn attributes<'a>(list: &'a Attributes) -> Vec<(&'a str, &'a str)> {
    // SAFETY: there are `size` kinds, names and items; an item of kind string is a span, valid unless it is empty.
    let text = |span: *const Span| unsafe {
        let span: &'a Span = &*span;
        if span.length == 0 {
            // The pointer of an empty text may be null.
            return "";
        }
        std::str::from_utf8(std::slice::from_raw_parts(span.start, span.length)).unwrap_or_default()
    };
    (0..list.size as usize)
        // SAFETY: as above.
        .filter(|&i| unsafe { *list.kinds.add(i) } == ATTRIBUTE_STRING)
        // SAFETY: as above.
        .map(|i| unsafe { (text(*list.names.add(i)), text((*list.items.add(i)).cast())) })
        .collect()
}

/// A buffer with its shape and its number of bytes.
type Shaped<'a> = (&'a RawBuffer, Vec<usize>, usize);

/// The buffers of a list.
///
/// # Safety
/// `list` is a valid list from XLA.
unsafe fn buffers(list: &List) -> Result<Vec<Shaped<'_>>, String> {
    (0..list.size as usize)
        .map(|i| {
            // SAFETY: there are `size` kinds and items; an item of kind buffer is a buffer with `rank` extents.
            let (buffer, dims) = unsafe {
                if *list.kinds.add(i) != BUFFER {
                    return Err(format!("operand {i} of the custom call is not a tensor"));
                }
                let buffer = &*(*list.items.add(i)).cast::<RawBuffer>();
                let dims =
                    if buffer.rank == 0 { &[] } else { std::slice::from_raw_parts(buffer.dims, buffer.rank as usize) };
                (buffer, dims)
            };
            let dims: Vec<usize> = dims.iter().map(|&d| d as usize).collect();
            let size = size_of_number(buffer.dtype)
                .ok_or_else(|| format!("operand {i} of the custom call has an element type that no kernel takes"))?;
            let length = dims.iter().product::<usize>() * size;
            Ok((buffer, dims, length))
        })
        .collect()
}
