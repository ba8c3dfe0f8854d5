//! Arithmetic that several instructions share.
