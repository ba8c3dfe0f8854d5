//! Runs a program on a model of the NeuronCore: outputs, timeline, findings.
//!
//! Invariants of this crate:
//! - It has no access to source text; locations are [`nki_isa::Loc`]s of instructions.
//! - [`exec`] never reads timing; [`timing`] only consumes the [`trace::Trace`] and never reads tensor values.
//! - Time is integer picoseconds. Equal input and parameters lead to byte-identical output.
//! - All user-visible output is an observer of the [`timeline::Timeline`]; observers cannot change time.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod analysis;
mod buffer;
pub mod deps;
pub mod exec;
pub mod generate;
pub mod labels;
pub mod lint;
pub mod memory;
pub mod middle_end;
pub mod place;
pub mod report;
pub mod schedule;
pub mod simulate;
#[cfg(test)]
pub(crate) mod testing;
pub mod timeline;
pub mod timing;
pub mod trace;

use std::sync::Arc;

pub use buffer::{Buffer, ForeignBytes};
use nki_isa::DType;

/// A tensor in host memory: little-endian elements, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    /// The kernel's name for it.
    pub name: Arc<str>,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Element type.
    pub dtype: DType,
    /// Element bytes.
    pub data: Buffer,
}
