//! Instructions of the scalar engine.

mod activate;
pub mod activate2;
pub mod activation;
pub mod activation_reduce;
