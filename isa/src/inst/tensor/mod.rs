//! Instructions of the tensor engine.

pub mod nc_matmul;
pub mod nc_transpose;
