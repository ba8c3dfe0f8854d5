//! The programs of a launch grid.

/// A launch grid, and the program of it that is being specialised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Programs along each axis; empty without a grid.
    pub(crate) counts: Vec<i64>,
    /// The program's position.
    pub(crate) at: Vec<i64>,
}
