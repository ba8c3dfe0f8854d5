//! The cost of the findings about values: the numerics of examples with all of them, with each alone and
//! with none, measured alternately.
//!
//!     cargo bench --bench findings [NAME]
//!
//! `FINDINGS_ONCE=SIDE` (`none`, `all`, or a slug) runs each kernel once with that side, to count
//! instructions without noise (`valgrind --tool=callgrind`).
//!
//! A figure is the time with findings divided by the time without: the median over rounds that measure both
//! consecutively, and the ratio of the best times. No test depends on it; the target is 1.10 for all findings
//! together.

#![allow(clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use nki_frontend::{Arg, Loader, Options};
use nki_isa::dtype::encode_f32;
use nki_isa::{DType, Program};
use nki_sim_core::exec::{self, Checks, ExecOptions, ExecResult};
use nki_sim_core::{Buffer, HostTensor, place};

const ROUNDS: usize = 31;

struct Disk;

impl Loader for Disk {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
    }
}

type Args = Vec<(String, Arg)>;

fn tensors(all: &[(&str, &[usize])], dtype: DType) -> Args {
    all.iter().map(|(name, shape)| ((*name).into(), Arg::Tensor { shape: shape.to_vec(), dtype })).collect()
}

fn compile(file: &str, args: &Args) -> Program {
    let compiled = nki_frontend::compile(Path::new(file), &Disk, args, &Options::default());
    compiled.program.unwrap_or_else(|| panic!("{file}: {:#?}", compiled.diagnostics))
}

/// Numbers between -1 and 1.
fn inputs(program: &Program) -> Vec<HostTensor> {
    let input = |i: &nki_isa::program::Input| {
        let t = program.tensor(i.tensor);
        let values: Vec<f32> = (0..t.elements()).map(|i| ((i * 7919) % 2003) as f32 / 1001.5 - 1.0).collect();
        let mut data = Buffer::zeroed(t.bytes());
        encode_f32(t.dtype, &values, data.bytes_mut());
        let shape = t.shape.iter().map(|&d| d as usize).collect();
        HostTensor { name: i.name.clone(), shape, dtype: t.dtype, data }
    };
    program.inputs.iter().map(input).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let wide: &[usize] = &[4096, 512];
    let square: &[usize] = &[1024, 1024];
    let (q, v): (&[usize], &[usize]) = (&[128, 1024], &[1024, 128]);
    let cases = [
        ("elementwise float32", "examples/elementwise.py", tensors(&[("a", wide), ("b", wide)], DType::F32)),
        ("elementwise bfloat16", "examples/elementwise.py", tensors(&[("a", wide), ("b", wide)], DType::BF16)),
        ("softmax float32", "examples/softmax.py", tensors(&[("x", wide)], DType::F32)),
        ("softmax bfloat16", "examples/softmax.py", tensors(&[("x", wide)], DType::BF16)),
        ("rmsnorm float32", "examples/rmsnorm.py", tensors(&[("x", wide), ("weight", &[1, 512])], DType::F32)),
        ("matmul_tiled", "examples/matmul_tiled.py", tensors(&[("a_t", square), ("b", square)], DType::F32)),
        ("matmul_blocked", "examples/matmul_blocked.py", tensors(&[("a_t", square), ("b", square)], DType::F32)),
        ("flash_attention", "examples/flash_attention.py", tensors(&[("q_t", q), ("k_t", q), ("v", v)], DType::F32)),
    ];
    let only = |set: fn(&mut Checks)| {
        let mut checks = Checks::NONE;
        set(&mut checks);
        checks
    };
    let sides = [
        ("none", Checks::NONE),
        ("all", Checks::ALL),
        ("non-finite", only(|c| c.non_finite = true)),
        ("saturated-store", only(|c| c.saturated_store = true)),
        ("inexact-integer", only(|c| c.inexact_integer = true)),
        ("wrapped-integer", only(|c| c.wrapped_integer = true)),
        ("activation-range", only(|c| c.activation_range = true)),
        ("uninitialized-output", only(|c| c.uninitialized_output = true)),
    ];
    let chosen = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    println!("{:22} {:>9}  {:22} {:>7} {:>7}", "kernel", "ms", "findings", "median", "best");
    for (name, file, args) in cases.iter().filter(|(name, ..)| name.contains(&chosen)) {
        let program = compile(file, args);
        let placement = place::place(&program).expect("fits");
        let given = inputs(&program);
        let run = |checks: Checks| -> (f64, ExecResult) {
            let options = ExecOptions { checks, ..ExecOptions::default() };
            let given = given.clone();
            let start = Instant::now();
            let result = exec::run(&program, &placement, given, &options).expect("runs");
            (start.elapsed().as_secs_f64(), result)
        };
        let mut times = vec![Vec::new(); sides.len()];
        if let Ok(once) = std::env::var("FINDINGS_ONCE") {
            let (_, checks) = sides.iter().find(|(side, _)| *side == once).expect("FINDINGS_ONCE names a side");
            run(*checks);
            continue;
        }
        let outputs = run(Checks::NONE).1.outputs;
        for _ in 0..ROUNDS {
            for ((side, checks), times) in sides.iter().zip(&mut times) {
                let (time, result) = run(*checks);
                assert!(result.outputs == outputs, "{name}: `{side}` changes the outputs");
                times.push(time);
            }
        }
        let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
        for ((side, _), with) in sides.iter().zip(&times).skip(1) {
            let ratios = with.iter().zip(&times[0]).map(|(a, b)| a / b).collect();
            let (median, ratio) = (median(ratios), best(with) / best(&times[0]));
            println!("{name:22} {:9.3}  {side:22} {median:7.3} {ratio:7.3}", best(&times[0]) * 1e3);
        }
    }
}
