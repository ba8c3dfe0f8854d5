//! Sentences shared by the documentation of several instructions.

/// Numerics of the element-wise arithmetic.
pub(crate) const FP32: &str = "Operands are converted to fp32, each operator rounds in fp32, and the result is rounded once to the dtype of `dst` \
                               (to the nearest, ties to even; floats to integers saturate).";
