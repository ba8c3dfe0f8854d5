//! The part of a tile that a mask leaves.

use smallvec::SmallVec;

/// The part of a frame that a mask leaves: from, and to the one after the last, along each axis that it restricts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clip {
    pub(crate) frame: SmallVec<[u32; 4]>,
    pub(crate) kept: SmallVec<[(u32, u32); 4]>,
}

impl Clip {
    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.iter().any(|(from, to)| from >= to)
    }
}
