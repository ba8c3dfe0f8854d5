//! Identifiers within a program: tensors, registers, source locations, loop iterations. Independent of the rest of the crate.

/// Index of a tensor in [`crate::Program::tensors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub u32);

/// A virtual register: 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegId(pub u32);

/// A source location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Loc {
    /// Index into [`crate::Program::files`].
    pub file: u32,
    /// 1-based line; 0 when unknown.
    pub line: u32,
    /// 1-based column in characters.
    pub column: u32,
    /// Byte offset of the first byte in the file.
    pub start: u32,
    /// Byte offset after the last byte.
    pub end: u32,
}

/// Index into [`crate::Program::trails`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrailId(pub u32);

impl TrailId {
    /// The trail of the kernel's own body, outside every loop.
    pub const ROOT: TrailId = TrailId(0);
}

/// Index into [`crate::Program::tags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TagId(pub u32);

/// Explicit placement of an on-chip tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// First partition.
    pub partition: u32,
    /// First byte inside each partition.
    pub byte: u32,
}
