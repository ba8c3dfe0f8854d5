//! Instructions of the vector engine.

pub mod tensor_tensor;
