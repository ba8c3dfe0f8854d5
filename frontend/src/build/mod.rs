//! Builds programs: storage, views of it, instructions, and operations of `nki.language` that take several instructions.
//!
//! It knows no value of an interpreter: whoever specialises a kernel calls it with tensors and numbers. The evaluator of this
//! crate does so for files, the Python package for kernels that CPython executes. A broken rule is a [`Violation`] that the
//! caller gives a place.

pub(crate) mod builder;
pub(crate) mod lower;
pub(crate) mod ops;
pub(crate) mod tensor;

use nki_isa::Violation;

/// What building gives, or the rule that it breaks.
pub(crate) type Result<T> = std::result::Result<T, Violation>;
