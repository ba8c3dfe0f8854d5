//! Invariants of every kernel and every program, however faulty: shared by the property tests here
//! and the fuzz targets of fuzz/.

use std::path::{Path, PathBuf};

use nki_diag::memory::Limit;
use nki_diag::{ColorChoice, Diagnostic, SourceMap, render_all};
use nki_frontend::{Arg, Loader, Options};
use nki_isa::DType::{self, F32, I32};
use nki_isa::{Program, text};
use nki_sim::session::{Compilation, Session, Stop};
use nki_sim_core::HostTensor;
use nki_sim_core::exec::trace_only;

/// Steps after which a program is aborted: a random program may never end.
const STEPS: u64 = 20_000;

/// One file from memory, all others from disk.
pub(crate) struct Text<'a>(pub(crate) &'a Path, pub(crate) String);

impl Loader for Text<'_> {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        if path == self.0 { Ok(self.1.clone()) } else { std::fs::read_to_string(path) }
    }
}

/// Checks that an error has a message and a position.
fn told(diagnostics: &[Diagnostic], sources: &SourceMap) {
    let error = diagnostics.iter().find(|d| d.is_error()).expect("a kernel that does not run has an error");
    assert!(!error.message.is_empty());
    if let Some((_, line, column)) = error.location(sources) {
        assert!(line >= 1 && column >= 1, "{error:?}");
    }
    assert!(!render_all(diagnostics, sources, ColorChoice::Plain).is_empty());
}

/// Small integers, a wave, or one byte for all other types.
fn input(name: &str, shape: &[usize], dtype: DType) -> HostTensor {
    let count: usize = shape.iter().product();
    let data = match dtype {
        I32 => (0..count as i32).flat_map(|i| (i % 7).to_le_bytes()).collect(),
        F32 => (0..count).flat_map(|i| (i as f32 * 0.37).sin().to_le_bytes()).collect(),
        _ => vec![0x3f; count * dtype.size()],
    };
    HostTensor { name: name.into(), shape: shape.to_vec(), dtype, data: Vec::into(data) }
}

/// Checks that a kernel compiles and its program runs as far as possible, or that there is an error
/// with a position.
///
/// # Panics
/// If the check fails.
pub(crate) fn kernel(file: &str, source: String, args: &[(String, Arg)], options: Options) {
    let path = PathBuf::from(file);
    let options = Options { step_limit: 100_000, ..options };
    let compiled = nki_frontend::compile(&path, &Text(&path, source), args, &options);
    match compiled.program {
        None => told(&compiled.diagnostics, &compiled.sources),
        Some(program) => {
            if let Err(refused) = run(program) {
                told(&refused, &compiled.sources);
            }
        }
    }
}

/// Compiles and runs each kernel of a source as far as possible, with a tile for each parameter.
///
/// # Panics
/// If a check fails.
pub(crate) fn source(source: &str) {
    const FILE: &str = "fuzzed.py";
    let path = Path::new(FILE);
    for kernel in nki_frontend::kernels(path, &Text(path, source.into()), None, Limit::NONE).kernels {
        let needed = kernel.params.iter().filter(|p| p.default.is_none());
        let tile = || Arg::Tensor { shape: vec![128, 64], dtype: F32 };
        let args: Vec<(String, Arg)> = needed.map(|p| (p.name.clone(), tile())).collect();
        self::kernel(FILE, source.into(), &args, Options { kernel: Some(kernel.name), ..Options::default() });
    }
}

/// Checks that a text that parses as a program satisfies every rule of its instructions or is
/// rejected, and otherwise runs as far as possible.
///
/// # Panics
/// If the check fails.
pub(crate) fn program_text(source: &str) {
    let Ok(program) = text::parse_file("fuzzed.nkir", source) else { return };
    // Skip programs that would only be slow.
    let bytes: usize = program.tensors.iter().map(|t| t.bytes()).sum();
    if bytes <= 1 << 26 && program.validate().is_empty() {
        let _ = run(program);
    }
}

/// Checks that the program survives printing and parsing, gives the same results twice, and has a
/// consistent timeline.
///
/// # Errors
/// If the program cannot be placed.
fn run(program: Program) -> Result<(), Vec<Diagnostic>> {
    let printed = text::print(&program);
    assert_eq!(text::parse(&printed).expect("printed programs parse"), program);

    let session = Session { max_steps: Some(STEPS), ..Session::default() };
    let kernel = match session.place(&mut Compilation::of(program)) {
        Ok(kernel) => kernel,
        Err(Stop::Kernel(fault)) => return Err(fault.found()),
        Err(Stop::Call(message)) => panic!("{message}"),
    };
    let inputs = || {
        let tensors = kernel.program.inputs.iter().map(|i| (&i.name, kernel.program.tensor(i.tensor)));
        let shape = |dims: &[u32]| dims.iter().map(|&n| n as usize).collect::<Vec<_>>();
        tensors.map(|(name, t)| input(name, &shape(&t.shape), t.dtype).into()).collect::<Vec<_>>()
    };
    let Ok((ran, timeline)) = session.run_alone_timed(&kernel, inputs()) else { return Ok(()) };
    let (again, later) = session.run_alone_timed(&kernel, inputs()).expect("it ran before");
    assert!(ran.outputs.iter().zip(&again.outputs).all(|(a, b)| a.data == b.data), "two runs differ");
    if let Ok(trace) = trace_only(&kernel.program) {
        assert_eq!(trace, *ran.trace, "numerics change what is executed");
    }
    for row in &timeline.rows {
        let sum: u64 = row.spans.iter().map(|s| s.end - s.start).sum();
        assert_eq!(sum, timeline.elapsed, "{:?}", row.kind);
    }
    assert_eq!(timeline, later);
    Ok(())
}
