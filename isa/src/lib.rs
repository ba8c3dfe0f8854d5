//! What a NeuronCore can be instructed to do: data types, views, instructions and the program that holds them.
//!
//! Invariants of this crate:
//! - It knows no Python, no files and no cycles. [`work::Work`] counts rows, columns, elements and bytes; other crates turn it into time.
//! - An instruction is one file under `inst/` that gives seven answers: schema, validation, footprint, numerics, work, values, placing.
//! - Nothing outside the registry in [`inst`] lists instructions.
//! - [`ids`] knows nothing of the crate; [`tensor`] and [`view`] know nothing of programs and instructions.

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
