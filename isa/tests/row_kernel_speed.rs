//! Prints the time per element of the row kernels: `cargo test --release -p nki-isa --test row_kernel_speed -- --ignored --nocapture`.
#![allow(clippy::print_stdout, reason = "the figures are the point")]

use std::hint::black_box;
use std::time::Instant;

use nki_isa::DType;
use nki_isa::dtype::{decode_f32, encode_f32};
use nki_isa::inst::math::activation::{self, ActFn};
use nki_isa::inst::math::alu::{self, Rhs};
use nki_isa::inst::math::reduce::reduce;
use nki_isa::names::{AluOp, Named};

const N: usize = 512;

fn time(name: &str, mut f: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        for _ in 0..500 {
            f();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / (500 * N) as f64);
    }
    println!("{name:28} {best:.3} ns/element");
}

#[test]
#[ignore = "a measurement"]
fn row_kernels() {
    let x: Vec<f32> = (0..N).map(|i| (i as f32 - 256.0) * 0.03 + 0.01).collect();
    let y: Vec<f32> = x.iter().map(|x| x.abs() + 0.5).collect();
    let mut out = vec![0.0f32; N];
    for &f in ActFn::ALL {
        time(f.name(), || {
            out.copy_from_slice(&y);
            activation::apply(f, 0.0, black_box(&mut out));
        });
    }
    for &op in AluOp::ALL {
        if !op.is_bitvec() {
            time(&format!("row {} row", op.name()), || {
                alu::apply(op, false, black_box(&x), Rhs::Row(black_box(&y)), black_box(&mut out));
            });
        }
    }
    for op in [AluOp::Add, AluOp::Multiply, AluOp::Power, AluOp::Max] {
        time(&format!("row {} scalar", op.name()), || {
            alu::apply(op, false, black_box(&y), Rhs::One(1.5), black_box(&mut out));
        });
    }
    for op in [AluOp::Add, AluOp::Max, AluOp::Multiply] {
        time(&format!("row {} scalar, in place", op.name()), || {
            alu::apply_in_place(op, false, black_box(&mut out), Rhs::One(1.0));
        });
        time(&format!("row {} row, in place", op.name()), || {
            alu::apply_in_place(op, false, black_box(&mut out), Rhs::Row(black_box(&y)));
        });
    }
    time("scale and bias", || alu::affine(black_box(&x), 2.0, 1.0, black_box(&mut out)));
    for op in [AluOp::Add, AluOp::Max, AluOp::Min, AluOp::Multiply, AluOp::Subtract] {
        time(&format!("reduce {}", op.name()), || {
            black_box(reduce(op, black_box(&x)));
        });
    }
    for &dtype in DType::ALL {
        let mut bytes = vec![0u8; N * dtype.size()];
        time(&format!("encode {dtype}"), || encode_f32(dtype, black_box(&x), black_box(&mut bytes)));
        time(&format!("decode {dtype}"), || decode_f32(dtype, black_box(&bytes), black_box(&mut out)));
    }
}
