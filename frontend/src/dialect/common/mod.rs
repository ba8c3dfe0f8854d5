//! Code shared by the dialects: values of tensors, registers and enums, and calls of instructions bound by their schemas.

pub(crate) mod bind;
pub(crate) mod clip;
pub(crate) mod config;
pub(crate) mod enums;
pub(crate) mod errors;
pub(crate) mod handles;
pub(crate) mod kernel;
pub(crate) mod launch;
pub(crate) mod registers;
pub(crate) mod repeat;
pub(crate) mod scalars;
pub(crate) mod state;
pub(crate) mod strict;
pub(crate) mod tensor;
pub(crate) mod unrolled;
pub(crate) mod values;
