//! Findings about values do not depend on the number of threads, and do not affect the outputs.

use nki_isa::inst::vector::nc_match_replace8::NcMatchReplace8;
use nki_isa::{DType, Imm, Space};

use super::*;
use crate::place::place;
use crate::testing::*;

/// Sums that overflow in some rows, computed by several threads, in a sequence of instructions.
fn overflowing(dtype: DType) -> Program {
    let shape = [128, 2048];
    let mut b = Builder::new();
    let x = b.input("x", &shape, DType::F32);
    let out = b.output("out", &shape, DType::F32);
    let [t, u, v] = ["t", "u", "v"].map(|n| b.tensor(n, Space::Sbuf, &shape, dtype));
    b.push(dma(b.whole(t), b.whole(x)));
    b.push(add(b.whole(u), b.whole(t), b.whole(t)));
    b.push(add(b.whole(v), b.whole(u), b.whole(u)));
    b.push(dma(b.whole(out), b.whole(v)));
    b.program
}

/// Zeros except 1e38 at one position (four times that is infinite) and 3e38 at another (twice that is).
fn peaks(first: usize, second: usize) -> HostTensor {
    let mut x = vec![0.0_f32; 128 * 2048];
    x[first] = 1e38;
    x[second] = 3e38;
    host_f32("x", &[128, 2048], &x)
}

fn run_with(threads: usize, program: &Program, input: &HostTensor, checks: Checks) -> ExecResult {
    let placement = place(program).expect("fits");
    let options = ExecOptions { checks, ..ExecOptions::default() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| run(program, &placement, vec![input.clone()], &options).expect("runs"))
}

#[test]
fn findings_do_not_depend_on_threads_and_change_nothing() {
    for dtype in [DType::F32, DType::BF16] {
        let program = overflowing(dtype);
        for (first, second) in [(5 * 2048 + 17, 100 * 2048 + 3), (127 * 2048, 7), (3000, 2999)] {
            let input = peaks(first, second);
            let none = run_with(1, &program, &input, Checks::NONE);
            assert!(none.findings.is_empty());
            let one = run_with(1, &program, &input, Checks::ALL);
            assert_eq!(one.outputs, none.outputs);
            let messages: Vec<&str> = one.findings.iter().map(|d| d.message.as_str()).collect();
            assert_eq!(messages.len(), 2, "{messages:?}");
            let at = |n: usize| format!("partition {}, element {}", n / 2048, n % 2048);
            assert!(messages[0].contains(&at(second)), "{messages:?}");
            assert!(messages[1].contains(&at(first)), "{messages:?}");
            for threads in [2, 3, 4] {
                let many = run_with(threads, &program, &input, Checks::ALL);
                assert_eq!((&many.findings, &many.outputs), (&one.findings, &one.outputs), "{threads} threads");
            }
        }
    }
}

#[test]
fn a_line_has_one_finding_however_often_it_runs() {
    let mut program = overflowing(DType::F32);
    let again = program.cores[0][1].clone();
    program.cores[0].insert(2, again.clone());
    program.cores[0].insert(2, again);
    let found = run_with(2, &program, &peaks(5, 9), Checks::ALL).findings;
    assert_eq!(found.iter().map(|d| d.id).collect::<Vec<_>>(), ["non-finite", "non-finite"]);
    let only = Checks::wanted(|slug| slug == "saturated-store");
    assert!(run_with(2, &program, &peaks(5, 9), only).findings.is_empty());
}

#[test]
fn floats_kept_as_fp32_overflow_as_fp32_only() {
    let narrow = {
        let shape = [128, 2048];
        let mut b = Builder::new();
        let x = b.input("x", &shape, DType::F32);
        let out = b.output("out", &shape, DType::F32);
        let t = b.tensor("t", Space::Sbuf, &shape, DType::F16);
        b.push(dma(b.whole(t), b.whole(x)));
        b.push(dma(b.whole(out), b.whole(t)));
        b.program
    };
    let placement = place(&narrow).expect("fits");
    for (precise, count) in [(true, 1), (false, 0)] {
        let options = ExecOptions { precise, ..ExecOptions::default() };
        let found = run(&narrow, &placement, vec![peaks(1, 2)], &options).expect("runs").findings;
        assert_eq!(found.len(), count, "{found:?}");
    }
}

#[test]
fn data_beside_an_index_of_absent_values_is_clipped() {
    let mut b = Builder::new();
    let (x, y) = (b.input("x", &[1, 8], DType::F32), b.input("y", &[1, 8], DType::F32));
    let out = b.output("out", &[1, 8], DType::I8);
    let [data, vals] = ["data", "vals"].map(|n| b.tensor(n, Space::Sbuf, &[1, 8], DType::F32));
    let dst = b.tensor("dst", Space::Sbuf, &[1, 8], DType::I8);
    let index = b.tensor("index", Space::Sbuf, &[1, 8], DType::U16);
    b.push(dma(b.whole(data), b.whole(x)));
    b.push(dma(b.whole(vals), b.whole(y)));
    let (dst_view, dst_idx) = (b.whole(dst), Some(b.whole(index)));
    let (data, vals) = (b.whole(data), b.whole(vals));
    b.push(NcMatchReplace8 { dst: dst_view, data, vals, imm: Imm::Int(0), dst_idx });
    b.push(dma(b.whole(out), b.whole(dst)));
    let found = |x: [f32; 8]| {
        let inputs = vec![host_f32("x", &[1, 8], &x), host_f32("y", &[1, 8], &[9.0; 8])];
        let placement = place(&b.program).expect("fits");
        let options = ExecOptions { checks: Checks::ALL, ..ExecOptions::default() };
        let findings = run(&b.program, &placement, inputs, &options).expect("runs").findings;
        findings.iter().map(|d| d.id).collect::<Vec<_>>()
    };
    assert_eq!(found([1e6, 300.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), ["saturated-store"]);
    // No value is found: all indices are all ones, which is not a loss.
    assert!(found([1.0; 8]).is_empty());
}

#[test]
fn a_clipped_integer_is_shown_to_its_last_digit() {
    use super::value_findings::show_integer;
    let shown = [2_147_483_648.0, -2_147_483_648.0, 4_294_967_296.0, 300.5, f32::INFINITY, 1e30].map(show_integer);
    assert_eq!(shown, ["2147483648", "-2147483648", "4294967296", "300.5", "inf", "1e30"]);
}
