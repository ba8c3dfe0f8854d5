//! Builds programs: storage, views of it, instructions, and operations of `nki.language` that require several instructions.
//!
//! The builder uses tensors and numbers and no values of the evaluator, so that a tracer in Python can drive it too. A broken
//! rule is a [`Violation`], to which the caller adds a location.

pub(crate) mod builder;
pub(crate) mod grid;
pub(crate) mod lower;
pub(crate) mod ops;
pub(crate) mod scalar;
pub(crate) mod tensor;

use nki_isa::Violation;

/// The result of building, or the broken rule.
pub(crate) type Result<T> = std::result::Result<T, Violation>;
