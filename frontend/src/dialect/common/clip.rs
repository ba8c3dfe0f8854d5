//! The part of a tile left by a mask.

use smallvec::SmallVec;

/// The part of a frame left by a mask: a half-open range along each axis that it restricts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clip {
    pub(crate) frame: SmallVec<[u32; 4]>,
    pub(crate) kept: SmallVec<[(u32, u32); 4]>,
}

impl Clip {
    /// Whether a part of an axis is left out.
    pub(crate) fn restricts(&self) -> bool {
        self.kept.iter().zip(&self.frame).any(|(kept, &n)| *kept != (0, n))
    }

    /// The clip of the transposed tile.
    pub(crate) fn reversed(&self) -> Self {
        let mut out = self.clone();
        out.frame.reverse();
        out.kept.reverse();
        out
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.iter().any(|(from, to)| from >= to)
    }
}
