//! Instructions of the scalar engine.

mod activate;
pub mod activation;
pub mod activation_reduce;
