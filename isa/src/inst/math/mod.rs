//! Arithmetic shared by several instructions: row kernels over fp32 and exact integers.
//!
//! Results do not depend on the CPU. The kernels are plain Rust loops compiled twice, for AVX2 with FMA and for the baseline, and selected at
//! run time ([`simd`]). Rust never contracts `a * b + c`, every `mul_add` is a correctly rounded fused operation on both paths
//! (slow without hardware support, but with equal results), and reductions have a fixed number of lanes ([`reduce`]).

pub mod activation;
pub mod alu;
pub mod elementary;
pub mod extent;
pub mod integer;
pub mod moves;
pub mod reduce;
pub mod scan;
pub mod search;
pub mod simd;
pub mod xorwow;
