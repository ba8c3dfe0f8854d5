//! A blocked matmul as an instruction stream, in the shape of the calibration rows.

use nki_isa::arg::{Imm, Ints};
use nki_isa::inst::tensor::nc_matmul::NcMatmul;
use nki_isa::inst::vector::memset::Memset;
use nki_isa::names::{Engine, PerfMode};
use nki_isa::{DType, Inst, Program, Space, TensorId, View};

use crate::testing::{Builder, add, dma, pattern};
use crate::timeline::{RowKind, Span, State};

pub(crate) fn nc_matmul(dst: View, stationary: View, moving: View) -> Inst {
    NcMatmul {
        dst,
        stationary,
        moving,
        is_stationary_onezero: false,
        is_moving_onezero: false,
        is_transpose: false,
        accumulate: None,
        tile_position: Ints(Vec::new()),
        tile_size: Ints(Vec::new()),
        perf_mode: PerfMode::None,
    }
    .into()
}

/// `[m, n] = [k, m].T @ [k, n]` with blocks of `tiles` (m, n, k): operand blocks loaded when needed, products accumulated in SBUF.
pub(crate) fn blocked(dtype: DType, (k, m, n): (u32, u32, u32), (bm, bn, bk): (u32, u32, u32)) -> Program {
    let mut b = Builder::new();
    let (lhs, rhs) = (b.input("lhsT", &[k, m], dtype), b.input("rhs", &[k, n], dtype));
    let out = b.output("result", &[m, n], dtype);
    let rect = |b: &Builder, t: TensorId, row: u32, column: u32, width: u32, columns: u32| {
        let offset = i64::from(row) * i64::from(width) + i64::from(column);
        pattern(b.whole(t), 0, offset, &[(i64::from(width), 128), (1, columns)])
    };
    let part = |b: &Builder, t: TensorId, offset: u32, count: u32| {
        let partition = b.whole(t).dims[0];
        pattern(b.whole(t), 0, i64::from(offset), &[(partition.stride, 128), (1, count)])
    };
    for nb in 0..n / (512 * bn) {
        let column = nb * 512 * bn;
        let sums: Vec<TensorId> = (0..m / 128)
            .map(|_| {
                let t = b.tensor("result_m_tile", Space::Sbuf, &[128, bn, 512], dtype);
                let dst = part(&b, t, 0, bn * 512);
                b.push(Memset { dst, value: Imm::Float(0.0), engine: Engine::Unknown });
                t
            })
            .collect();
        for kb in 0..k / (128 * bk) {
            let right = b.tensor("rhs_tiles", Space::Sbuf, &[128, bk, 512 * bn], dtype);
            for kt in 0..bk {
                let dst = part(&b, right, kt * 512 * bn, 512 * bn);
                let src = rect(&b, rhs, (kb * bk + kt) * 128, column, n, 512 * bn);
                b.push(dma(dst, src));
            }
            for mb in 0..m / (128 * bm) {
                let left = b.tensor("lhsT_tiles", Space::Sbuf, &[128, bk, 128 * bm], dtype);
                for kt in 0..bk {
                    let dst = part(&b, left, kt * 128 * bm, 128 * bm);
                    let src = rect(&b, lhs, (kb * bk + kt) * 128, mb * 128 * bm, m, 128 * bm);
                    b.push(dma(dst, src));
                }
                for nt in 0..bn {
                    for mt in 0..bm {
                        let psum = b.tensor("result_tile", Space::Psum, &[128, 512], DType::F32);
                        for kt in 0..bk {
                            let dst = part(&b, psum, 0, 512);
                            let stationary = part(&b, left, kt * 128 * bm + mt * 128, 128);
                            let moving = part(&b, right, kt * 512 * bn + nt * 512, 512);
                            b.push(nc_matmul(dst, stationary, moving));
                        }
                        let sum = sums[(mb * bm + mt) as usize];
                        let sum = part(&b, sum, nt * 512, 512);
                        let product = part(&b, psum, 0, 512);
                        b.push(add(sum.clone(), sum, product));
                    }
                }
            }
        }
        for (i, sum) in sums.iter().enumerate() {
            let src = part(&b, *sum, 0, 512 * bn);
            let dst = rect(&b, out, i as u32 * 128, column, n, 512 * bn);
            b.push(dma(dst, src));
        }
    }
    b.program
}

/// A block of all of K and M leaves no room for the next one. Groups that advance together release its operands one after the other.
#[test]
fn a_block_that_fills_the_memory_is_replaced_while_it_is_used() {
    let program = blocked(DType::F32, (2048, 2048, 1024), (16, 1, 16));
    let t = super::time(&program);
    let row = t.rows.iter().find(|r| r.kind == RowKind::Engine(Engine::Tensor)).unwrap();
    let busy = |s: &&Span| matches!(s.state, State::Busy(_));
    let (first, last) = (row.spans.iter().find(busy).unwrap(), row.spans.iter().rfind(busy).unwrap());
    let idle = last.end - first.start - row.busy();
    assert!(idle < (last.end - first.start) / 50, "{idle} ps of {}", last.end - first.start);
}

#[test]
#[ignore = "prints predictions beside measurements"]
fn against_measurements() {
    // (m, n, k tiles), measured us, tensor active fraction, dma active fraction.
    let rows = [
        ((1, 1, 1), 1209.3, 0.814, 0.573),
        ((1, 1, 2), 1118.1, 0.845, 0.605),
        ((1, 1, 16), 1036.8, 0.899, 0.650),
        ((1, 2, 1), 1074.9, 0.870, 0.349),
        ((1, 4, 1), 931.2, 0.954, 0.252),
        ((2, 1, 1), 969.1, 0.928, 0.498),
        ((2, 2, 1), 929.0, 0.958, 0.317),
        ((4, 1, 4), 913.5, 0.968, 0.392),
        ((4, 4, 1), 932.7, 0.953, 0.189),
        ((4, 4, 4), 907.0, 0.974, 0.183),
        ((8, 2, 4), 904.8, 0.976, 0.235),
        ((8, 4, 2), 924.2, 0.958, 0.166),
        ((16, 1, 1), 911.9, 0.970, 0.374),
        ((16, 1, 16), 907.0, 0.975, 0.338),
        ((16, 4, 1), 952.7, 0.930, 0.150),
        ((16, 4, 4), 919.8, 0.960, 0.150),
    ];
    let mut params = crate::timing::Params::of(nki_isa::Target::Trn2);
    // For trials: NKI_TRY="dma.software_trigger_ns=700;..."
    for change in std::env::var("NKI_TRY").unwrap_or_default().split(';') {
        if let Some((name, value)) = change.split_once('=') {
            params.set_text(name, value).unwrap();
        }
    }
    for (tiles, us, tensor, dma) in rows {
        let program = blocked(DType::F32, (2048, 2048, 2048), tiles);
        let t = super::time_with(&program, &params).0;
        let s = crate::report::summary(&t, &crate::place::place(&program).unwrap(), None);
        println!(
            "{tiles:?}: {:.1} of {us} ({:+.1}%) tensor {:.3} of {tensor} dma {:.3} of {dma} {} bytes {} transfers | {}",
            s.latency_us,
            (s.latency_us / us - 1.0) * 100.0,
            s.engines.tensor.active_percent / 100.0,
            s.dma.active_percent / 100.0,
            s.dma.bytes,
            s.dma.transfers,
            s.verdict
        );
    }
}

#[test]
#[ignore = "prints times"]
fn speed() {
    let program = blocked(DType::F32, (8192, 4096, 8192), (4, 1, 4));
    let placement = crate::place::place(&program).unwrap();
    let trace = crate::exec::trace_only(&program).unwrap();
    let params = crate::timing::Params::of(program.target);
    let at = std::time::Instant::now();
    let t = crate::simulate::simulate(&program, &placement, &trace, &params).unwrap();
    println!("{} events in {:?}", t.events.len(), at.elapsed());
    let at = std::time::Instant::now();
    crate::report::summary(&t, &placement, None);
    println!("summary in {:?}", at.elapsed());
}

#[test]
#[ignore = "prints times"]
fn speed_of_parts() {
    let program = blocked(DType::F32, (8192, 4096, 8192), (4, 1, 4));
    let placement = crate::place::place(&program).unwrap();
    let trace = crate::exec::trace_only(&program).unwrap();
    let params = crate::timing::Params::of(program.target);
    let laws = crate::timing::Laws::new(&params).unwrap();
    for _ in 0..3 {
        let at = std::time::Instant::now();
        let (low, _) = crate::timing::lower::lower(
            &program,
            0,
            &placement,
            &trace.cores[0],
            &laws,
            &crate::schedule::Policy::of(&params).reach(),
            None,
        );
        println!("lower {:?} {} edges", at.elapsed(), low.graph.deps.len());
        let at = std::time::Instant::now();
        let t = crate::simulate::simulate(&program, &placement, &trace, &params).unwrap();
        println!("all {:?}", at.elapsed());
        let at = std::time::Instant::now();
        crate::analysis::critical_path(&t);
        println!("path {:?}", at.elapsed());
    }
}
