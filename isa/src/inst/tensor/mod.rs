//! Instructions of the tensor engine.

mod array_tile;
pub mod gemm;
mod matmul_rules;
pub mod nc_matmul;
pub mod nc_matmul_mx;
pub mod nc_transpose;
