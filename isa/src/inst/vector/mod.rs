//! Instructions of the vector engine.

pub mod bn_aggr;
pub mod bn_stats;
pub mod memset;
pub mod reciprocal;
pub mod scalar_tensor_tensor;
pub mod tensor_copy;
pub mod tensor_copy_predicated;
pub mod tensor_reduce;
pub mod tensor_scalar;
pub mod tensor_scalar_cumulative;
pub mod tensor_scalar_reduce;
pub mod tensor_tensor;
pub mod tensor_tensor_scan;
