//! Text of a program: read and run as far as it goes, or refused.
#![no_main]

#[path = "../../tests/oracle/mod.rs"]
#[allow(dead_code, reason = "each target has its own oracle")]
mod oracle;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| oracle::program_text(source));
