//! Instructions of the tensor engine.

pub mod gemm;
pub mod nc_matmul;
pub mod nc_matmul_mx;
pub mod nc_transpose;
