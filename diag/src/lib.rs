//! Reports to the user about a kernel: one [`Diagnostic`] value, many renderers.
//!
//! A diagnostic is data. It is created where a rule is checked, refers to source locations by
//! byte spans, and is rendered once, at the edge (`text`, `json`). Every diagnostic has a slug from
//! [`slugs`]; `nki-sim explain SLUG` prints the page of a slug.
//!
//! Invariants: this crate reads no files and prints nothing; rendering is a pure function of the
//! diagnostics and the [`SourceMap`].

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod diagnostic;
mod json;
pub mod levels;
pub mod memory;
pub mod progress;
pub mod slugs;
mod source;
pub mod stop;
mod text;

pub use diagnostic::{Advice, Diagnostic, Label, Place, Severity};
pub use json::{JsonDiagnostic, JsonLabel, to_json};
pub use levels::{Applied, Denied, Level, Levels, Mode, Selector};
pub use slugs::{Class, Slug, explain};
pub use source::{FileId, SourceMap, Span};
pub use text::{ColorChoice, render, render_all};
