//! The text form of a program (`.nkir`): prints and parses back to the same value.
//!
//! One statement per line. `//` starts a comment line; `# line:column start..end tN` after a statement is its source location
//! (`# file:line:column` for any but file 0; `start..end` are bytes of that file; `tN` is the trail, left out for the root).
//! A statement without a location is located in the `.nkir` itself, if the file is known ([`parse_file`]).
//!
//! ```text
//! nkir 1
//! kernel add
//! target trn2
//! file 0 "kernel.py"
//! trail 1 < 0 i = 0                                  # 4:5 80..140
//! tag 0 "first copy"
//! tag 1 "" after 0
//! tensor %0 a: hbm float32[128, 512]
//! tensor %1 a_tile: sbuf float32[128, 512] @(0, 4096) # 5:9 97..120 t1
//! input a %0
//! output c %2
//! registers 2
//! core {
//!   dma_copy(dst=%1, src=%0) !0                      # 6:9 121..140 t1
//!   for r0 in 0..r1 step 2 {
//!     iota(dst=%1[p 0..64; +8; 1x16], pattern=[[1, 16]])
//!   }
//! }
//! ```
//!
//! A tag is the name that the kernel gave an instruction, with the tags that must complete before it (`after`) or be issued before it
//! (`issued after`); `!1` attaches tag 1.
//!
//! A view is `%tensor`, or `%tensor:dtype[...]` with the parts that differ from all of the tensor: on chip
//! `p first..end` (or `p first+STRIDExCOUNT`); `+offset`; the dimensions `STRIDExCOUNT`, outermost first, in elements; and
//! `by r0 xSTRIDE < BOUND` (or `by scalar %7 ...`, `by vector %7 ...`) for a dynamic part.
//!
//! Operands with their default value are omitted. The instructions' schemas determine how operands are read and written; this module
//! has no code for particular instructions.

mod base64;
mod cursor;
mod parse;
mod print;

pub use parse::{ParseError, parse, parse_file};
pub use print::print;

/// Version of the form, in its first line.
const VERSION: i64 = 1;

/// Names that are printed without quotes.
fn is_plain_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(is_word_start) && chars.all(is_name_char)
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Names of tensors and parameters may have dots: `weights.0`.
fn is_name_char(c: char) -> bool {
    is_word_char(c) || c == '.'
}

#[cfg(test)]
mod tests;
