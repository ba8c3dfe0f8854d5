//! Builds programs: storage, views of it, instructions, and operations of `nki.language` that take several instructions.
//!
//! It takes tensors and numbers and knows no value of the evaluator, so that a tracer in Python can drive it as well. A broken
//! rule is a [`Violation`] that the caller gives a place.

pub(crate) mod builder;
pub(crate) mod grid;
pub(crate) mod lower;
pub(crate) mod ops;
pub(crate) mod scalar;
pub(crate) mod tensor;

use nki_isa::Violation;

/// What building gives, or the rule that it breaks.
pub(crate) type Result<T> = std::result::Result<T, Violation>;
