//! The ISA of a NeuronCore: data types, views, instructions and programs.
//!
//! Invariants of this crate:
//! - No Python, no files, no cycles. [`work::Work`] counts rows, columns, elements and bytes; other crates convert them to time.
//! - An instruction is one file under `inst/` that defines seven things: schema, validation, footprint, numerics, work, values, placing.
//! - Nothing outside the registry in [`inst`] lists instructions.
//! - [`ids`] does not depend on the rest of the crate; [`tensor`] and [`view`] do not depend on programs and instructions.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod arch;
pub mod arg;
pub mod dtype;
pub mod gemm;
pub mod ids;
pub mod inst;
pub mod machine;
pub mod names;
pub mod program;
pub mod reference;
pub mod rendezvous;
pub mod schema;
pub mod shape;
pub mod share;
pub mod tensor;
pub mod testing;
pub mod text;
pub mod transpose;
pub mod view;
pub mod violation;
pub mod work;

pub use arch::{Arch, Target};
pub use arg::{Arg, Imm, ScalarOperand};
pub use dtype::DType;
pub use ids::{Loc, RegId, TensorId};
pub use inst::{Inst, Instruction};
pub use machine::{Fault, Machine};
pub use names::{Engine, Space};
pub use program::{Node, Program};
pub use rendezvous::{Contribution, Participants};
pub use tensor::{Declaration, Tensor};
pub use view::{Dim, Index, Indirect, View};
pub use violation::Violation;
pub use work::Work;
