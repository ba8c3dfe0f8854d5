//! Which executed instruction must wait for which, by exact bytes.
