//! The stages of a run, and the whole run, in wall-clock time: `cargo bench`. The figures are comparable on
//! one machine only. `benches/ratio.py` compares with NumPy.

use std::hint::black_box;
use std::path::Path;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use nki_frontend::{Arg, Loader, Options};
use nki_isa::{DType, Program};
use nki_sim_core::exec::{self, ExecOptions};
use nki_sim_core::simulate::simulate;
use nki_sim_core::timing::Params;
use nki_sim_core::{Buffer, HostTensor, place, report};

struct Disk;

impl Loader for Disk {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
    }
}

type Args = Vec<(String, Arg)>;

fn tensor(name: &str, shape: &[usize], dtype: DType) -> (String, Arg) {
    (name.into(), Arg::Tensor { shape: shape.to_vec(), dtype })
}

fn compile(file: &str, args: &Args) -> Program {
    let compiled = nki_frontend::compile(Path::new(file), &Disk, args, &Options::default());
    compiled.program.unwrap_or_else(|| panic!("{file}: {:#?}", compiled.diagnostics))
}

fn zeros(program: &Program) -> Vec<HostTensor> {
    program
        .inputs
        .iter()
        .map(|i| {
            let t = program.tensor(i.tensor);
            HostTensor {
                name: i.name.clone(),
                shape: t.shape.iter().map(|&d| d as usize).collect(),
                dtype: t.dtype,
                data: Buffer::zeroed(t.bytes()),
            }
        })
        .collect()
}

fn softmax(rows: usize, dtype: DType) -> Args {
    vec![tensor("x", &[rows, 512], dtype)]
}

fn matmul(n: usize) -> Args {
    vec![tensor("a_t", &[n, n], DType::F32), tensor("b", &[n, n], DType::F32)]
}

/// About 100,000 instructions: 5 for each 128 rows.
const MANY_ROWS: usize = 128 * 16_000;

fn stages(c: &mut Criterion) {
    let mut group = c.benchmark_group("stages");
    group.sample_size(10);
    let many = softmax(MANY_ROWS, DType::F32);
    group.bench_function("specialise 100k instructions", |b| {
        b.iter(|| compile("examples/softmax.py", black_box(&many)))
    });
    let program = compile("examples/softmax.py", &many);
    group.bench_function("place and time 100k instructions", |b| {
        b.iter(|| {
            let placement = place::place(&program).expect("fits");
            let trace = exec::trace_only(&program).expect("static");
            simulate(&program, &placement, &trace, &Params::of(program.target)).expect("parameters").elapsed
        });
    });
    group.finish();
}

fn numerics(c: &mut Criterion) {
    let mut group = c.benchmark_group("numerics");
    group.sample_size(10);
    let cases = [
        ("softmax 4096x512 float32", "examples/softmax.py", softmax(4096, DType::F32)),
        ("softmax 4096x512 bfloat16", "examples/softmax.py", softmax(4096, DType::BF16)),
        ("matmul 1024 cubed float32", "examples/matmul_blocked.py", matmul(1024)),
    ];
    for (name, file, args) in cases {
        let program = compile(file, &args);
        let placement = place::place(&program).expect("fits");
        group.bench_function(name, |b| {
            b.iter_batched(
                || zeros(&program),
                |inputs| exec::run(&program, &placement, inputs, &ExecOptions::default()).expect("runs").outputs,
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn end_to_end(c: &mut Criterion) {
    let args = softmax(256, DType::F32);
    c.bench_function("small kernel end to end", |b| {
        b.iter(|| {
            let program = compile("examples/softmax.py", &args);
            let placement = place::place(&program).expect("fits");
            let ran = exec::run(&program, &placement, zeros(&program), &ExecOptions::default()).expect("runs");
            let timeline = simulate(&program, &placement, &ran.trace, &Params::of(program.target)).expect("parameters");
            report::table(&timeline, None)
        });
    });
}

criterion_group!(benches, stages, numerics, end_to_end);
criterion_main!(benches);
