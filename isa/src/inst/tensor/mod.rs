//! Instructions of the tensor engine.

mod array_tile;
mod matmul_rules;
pub mod nc_matmul;
pub mod nc_matmul_mx;
pub mod nc_transpose;
