//! Manual timings: `cargo test --release -p nki-sim-core speed -- --ignored --nocapture --test-threads=1`.

use std::time::Instant;

use nki_isa::{DType, Space};

use super::*;
use crate::Buffer;
use crate::place::place;
use crate::testing::*;

fn time(name: &str, mut f: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        f();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    #[allow(clippy::print_stderr, reason = "a benchmark")]
    {
        eprintln!("{name}: {best:.2} ms");
    }
}

/// A^T B on [2048, 2048] fp32, blocks of 512 columns.
fn blocked_matmul(n: u32, dtype: DType) -> Program {
    let mut b = Builder::new();
    let a = b.input("a", &[n, n], dtype);
    let c = b.input("b", &[n, n], dtype);
    let out = b.output("out", &[n, n], dtype);
    let tiles = n / 128;
    let w = i64::from(n);
    let mut left = Vec::new();
    for k in 0..tiles {
        let t = b.tensor("left", Space::Sbuf, &[128, n], dtype);
        b.push(dma(b.whole(t), pattern(b.whole(a), 0, i64::from(k) * 128 * w, &[(w, 128), (1, n)])));
        left.push(t);
    }
    for j in 0..n / 512 {
        let mut right = Vec::new();
        for k in 0..tiles {
            let t = b.tensor("right", Space::Sbuf, &[128, 512], dtype);
            let at = i64::from(k) * 128 * w + i64::from(j) * 512;
            b.push(dma(b.whole(t), pattern(b.whole(c), 0, at, &[(w, 128), (1, 512)])));
            right.push(t);
        }
        for i in 0..tiles {
            let p = b.tensor("psum", Space::Psum, &[128, 512], DType::F32);
            for k in 0..tiles as usize {
                let l = pattern(b.whole(left[k]), 0, i64::from(i) * 128, &[(1, 128), (1, 128)]);
                b.push(matmul(b.whole(p), l, b.whole(right[k]), None));
            }
            let t = b.tensor("t", Space::Sbuf, &[128, 512], dtype);
            b.push(dma(b.whole(t), b.whole(p)));
            let at = i64::from(i) * 128 * w + i64::from(j) * 512;
            b.push(dma(pattern(b.whole(out), 0, at, &[(w, 128), (1, 512)]), b.whole(t)));
        }
    }
    b.program
}

#[test]
#[ignore = "a benchmark"]
fn speed_matmul() {
    for dtype in [DType::F32, DType::BF16] {
        let program = blocked_matmul(2048, dtype);
        let placement = place(&program).expect("fits");
        let host = |name: &str| HostTensor {
            name: name.into(),
            shape: vec![2048, 2048],
            dtype,
            data: Buffer::zeroed(2048 * 2048 * dtype.size()),
        };
        let input = host("a");
        let inputs: Vec<Vec<HostTensor>> = (0..5).map(|_| vec![input.clone(), input.clone()]).collect();
        let mut inputs = inputs.into_iter();
        time(&format!("matmul 2048 {dtype}"), || {
            let r = run(&program, &placement, inputs.next().expect("five"), &ExecOptions::default()).expect("runs");
            assert!(r.findings.is_empty());
        });
        time("place", || {
            place(&program).expect("fits");
        });
        time("trace only", || {
            trace_only(&program).expect("static");
        });
    }
}

#[test]
#[ignore = "a benchmark"]
fn speed_rows() {
    for dtype in [DType::F32, DType::BF16] {
        for (rows, columns) in [(128, 64), (128, 128), (128, 256), (128, 512), (128, 2048)] {
            let mut b = Builder::new();
            let x = b.input("x", &[rows, columns], dtype);
            let [t, u] = ["t", "u"].map(|n| b.tensor(n, Space::Sbuf, &[rows, columns], dtype));
            b.push(dma(b.whole(t), b.whole(x)));
            b.push(dma(b.whole(u), b.whole(x)));
            for _ in 0..500 {
                b.push(add(b.whole(u), b.whole(t), b.whole(t)));
                b.push(add(b.whole(u), b.whole(u), b.whole(t)));
            }
            let placement = place(&b.program).expect("fits");
            let host = HostTensor {
                name: "x".into(),
                shape: vec![rows as usize, columns as usize],
                dtype,
                data: Buffer::zeroed((rows * columns) as usize * dtype.size()),
            };
            time(&format!("1000 tensor_tensor {dtype}[{rows}, {columns}]"), || {
                run(&b.program, &placement, vec![host.clone()], &ExecOptions::default()).expect("runs");
            });
            let mut b = Builder::new();
            let x = b.input("x", &[rows, columns], dtype);
            let [t, u] = ["t", "u"].map(|n| b.tensor(n, Space::Sbuf, &[rows, columns], dtype));
            for _ in 0..500 {
                b.push(dma(b.whole(t), b.whole(x)));
                b.push(dma(b.whole(u), b.whole(t)));
            }
            let placement = place(&b.program).expect("fits");
            time(&format!("1000 copies {dtype}[{rows}, {columns}]"), || {
                run(&b.program, &placement, vec![host.clone()], &ExecOptions::default()).expect("runs");
            });
        }
    }
}
