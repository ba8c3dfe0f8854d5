//! The result of timing: rows of busy and stalled intervals.
