//! Instructions of the vector engine.

pub mod bn_aggr;
pub mod bn_stats;
pub mod dropout;
pub mod exponential;
pub mod max8;
pub mod memset;
pub mod nc_find_index8;
pub mod nc_match_replace8;
pub mod nc_stream_shuffle;
pub mod quantize_mx;
pub mod rand2;
pub mod range_select;
pub mod reciprocal;
pub mod rng;
pub mod scalar_tensor_tensor;
pub mod select_reduce;
pub mod set_rng_seed;
pub mod tensor_copy;
pub mod tensor_copy_predicated;
pub mod tensor_reduce;
pub mod tensor_scalar;
pub mod tensor_scalar_cumulative;
pub mod tensor_scalar_reduce;
pub mod tensor_tensor;
pub mod tensor_tensor_scan;
