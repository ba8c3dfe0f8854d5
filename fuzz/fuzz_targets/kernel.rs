//! Source text of a kernel: answered with an outcome or a diagnostic, whatever it is.
#![no_main]

#[path = "../../tests/oracle/mod.rs"]
#[allow(dead_code, reason = "each target has its own oracle")]
mod oracle;

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use nki_frontend::{Arg, Options};
use nki_isa::DType;

const FILE: &str = "fuzzed.py";

fuzz_target!(|source: &str| {
    let path = Path::new(FILE);
    for kernel in nki_frontend::kernels(path, &oracle::Text(path, source.into()), nki_diag::memory::Limit::NONE).kernels {
        let needed = kernel.params.iter().filter(|p| p.default.is_none());
        let tile = || Arg::Tensor { shape: vec![128, 64], dtype: DType::F32 };
        let args: Vec<(String, Arg)> = needed.map(|p| (p.name.clone(), tile())).collect();
        oracle::kernel(FILE, source.into(), &args, Options { kernel: Some(kernel.name), ..Options::default() });
    }
});
