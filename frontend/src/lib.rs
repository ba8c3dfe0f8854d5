//! NKI source to program.
mod parse; mod syntax;
