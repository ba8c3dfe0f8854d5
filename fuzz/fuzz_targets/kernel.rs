//! Source text of a kernel: it yields an outcome or a diagnostic, whatever it is.
#![no_main]

#[path = "../../tests/oracle/mod.rs"]
#[allow(dead_code, reason = "each target has its own oracle")]
mod oracle;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| oracle::source(source));
