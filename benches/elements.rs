//! The numerics of one instruction of each kind, per element of its largest operand: `cargo bench --bench elements`.
//!
//! The first figure of each group is a plain copy of as many bytes in memory; element-wise instructions are to stay within four times that.
//! Tiles are [128, 512], and an instruction runs 64 times from tiles that stay in SBUF, as in a kernel that is not waiting for DMA.

use std::hint::black_box;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use nki_frontend::{Arg, Loader, Options};
use nki_isa::DType;
use nki_sim_core::exec::{self, ExecOptions};
use nki_sim_core::{Buffer, HostTensor, place};

const ROWS: usize = 128;
const COLUMNS: usize = 512;
const REPEAT: usize = 64;

/// Name, and the call: from `a` and `b` (the input's type) and the fp32 column `c` to `d`.
const INSTRUCTIONS: &[(&str, &str)] = &[
    ("tensor_copy", "nisa.tensor_copy(dst=d, src=a)"),
    ("memset", "nisa.memset(dst=d, value=1.0)"),
    ("tensor_tensor add", "nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.add)"),
    ("tensor_tensor divide", "nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.divide)"),
    ("tensor_tensor maximum", "nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.maximum)"),
    ("tensor_tensor less", "nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.less)"),
    ("tensor_scalar one", "nisa.tensor_scalar(dst=d, data=a, op0=nl.multiply, operand0=2.0)"),
    (
        "tensor_scalar two",
        "nisa.tensor_scalar(dst=d, data=a, op0=nl.subtract, operand0=c, op1=nl.multiply, operand1=c)",
    ),
    (
        "scalar_tensor_tensor",
        "nisa.scalar_tensor_tensor(dst=d, data=a, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=b)",
    ),
    ("reciprocal", "nisa.reciprocal(dst=d, data=a)"),
    ("activation copy", "nisa.activation(dst=d, op=nl.copy, data=a)"),
    ("activation relu", "nisa.activation(dst=d, op=nl.relu, data=a)"),
    ("activation exp", "nisa.activation(dst=d, op=nl.exp, data=a)"),
    ("activation tanh", "nisa.activation(dst=d, op=nl.tanh, data=a)"),
    ("activation sigmoid", "nisa.activation(dst=d, op=nl.sigmoid, data=a)"),
    ("activation gelu", "nisa.activation(dst=d, op=nl.gelu, data=a)"),
    ("activation rsqrt", "nisa.activation(dst=d, op=nl.rsqrt, data=a)"),
    ("activation_reduce exp add", "nisa.activation_reduce(dst=d, op=nl.exp, data=a, reduce_op=nl.add, reduce_res=c)"),
    ("tensor_reduce add", "nisa.tensor_reduce(dst=c, op=nl.add, data=a, axis=1)"),
    ("tensor_reduce maximum", "nisa.tensor_reduce(dst=c, op=nl.maximum, data=a, axis=1)"),
    ("bn_stats", "nisa.bn_stats(dst=s, data=a)"),
    (
        "tensor_tensor_scan",
        "nisa.tensor_tensor_scan(dst=d, data0=a, data1=b, initial=0.0, op0=nl.multiply, op1=nl.add)",
    ),
    ("max8", "nisa.max8(dst=m, src=a)"),
    ("dma_copy", "nisa.dma_copy(dst=d, src=a)"),
];

/// A source in memory.
struct Text(String);

impl Loader for Text {
    fn read(&self, _: &Path) -> std::io::Result<String> {
        Ok(self.0.clone())
    }
}

fn kernel(call: &str) -> Text {
    Text(format!(
        "
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    a, b, d = [nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf) for _ in range(3)]
    c = nl.ndarray(({ROWS}, 1), dtype=nl.float32, buffer=nl.sbuf)
    s = nl.ndarray(({ROWS}, 6), dtype=nl.float32, buffer=nl.sbuf)
    m = nl.ndarray(({ROWS}, 8), dtype=x.dtype, buffer=nl.sbuf)
    for tile in (a, b, d):
        nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=c, value=1.5)
    for _ in range({REPEAT}):
        {call}
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=d)
    return out
"
    ))
}

/// Numbers from 0.5 to 1.5, so that no function meets anything special.
fn input(dtype: DType) -> Buffer {
    let values: Vec<f32> = (0..ROWS * COLUMNS).map(|i| 0.5 + (i % 257) as f32 / 257.0).collect();
    let mut bytes = Buffer::zeroed(values.len() * dtype.size());
    nki_isa::dtype::encode_f32(dtype, &values, bytes.bytes_mut());
    bytes
}

fn elements(c: &mut Criterion) {
    let shape = vec![ROWS, COLUMNS];
    for dtype in [DType::F32, DType::BF16] {
        let mut group = c.benchmark_group(dtype.to_string());
        group.sample_size(10).throughput(Throughput::Elements((ROWS * COLUMNS * REPEAT) as u64));
        let (from, mut to) = (input(dtype), input(dtype));
        group.bench_function("a plain copy", |b| {
            b.iter(|| {
                for _ in 0..REPEAT {
                    to.bytes_mut().copy_from_slice(black_box(&from));
                }
            });
        });
        for (name, call) in INSTRUCTIONS {
            let args = [("x".to_owned(), Arg::Tensor { shape: shape.clone(), dtype })];
            let compiled = nki_frontend::compile(Path::new("k.py"), &kernel(call), &args, &Options::default());
            let program = compiled.program.unwrap_or_else(|| panic!("{name}: {:#?}", compiled.diagnostics));
            let placement = place::place(&program).expect("fits");
            let inputs = || vec![HostTensor { name: "x".into(), shape: shape.clone(), dtype, data: input(dtype) }];
            group.bench_function(*name, |b| {
                b.iter_batched(
                    inputs,
                    |inputs| exec::run(&program, &placement, inputs, &ExecOptions::default()).expect("runs").outputs,
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, elements);
criterion_main!(benches);
