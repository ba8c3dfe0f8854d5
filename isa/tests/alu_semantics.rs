//! The ALU's operators and reductions by their definitions.

use nki_isa::DType;
use nki_isa::inst::math::alu::{self, Rhs};
use nki_isa::inst::math::integer::{self, Widths};
use nki_isa::inst::math::reduce;
use nki_isa::names::{AluOp, Named};

#[test]
fn operators_on_fp32() {
    let nan = f32::NAN;
    let inf = f32::INFINITY;
    // (operator, x, y, x op y)
    let table = [
        (AluOp::Bypass, 3.0, 9.0, 3.0),
        (AluOp::Add, 1.0, 2.0, 3.0),
        (AluOp::Subtract, 1.0, 2.5, -1.5),
        (AluOp::Multiply, 3.0, -2.0, -6.0),
        (AluOp::Divide, 1.0, 4.0, 0.25),
        (AluOp::Divide, 1.0, 0.0, inf),
        (AluOp::Max, 1.0, 2.0, 2.0),
        (AluOp::Max, nan, 2.0, nan),
        (AluOp::Max, 2.0, nan, nan),
        (AluOp::Min, 1.0, 2.0, 1.0),
        (AluOp::Min, nan, 2.0, nan),
        (AluOp::Min, 2.0, nan, nan),
        // The manual's examples: the sign is kept and ties give y.
        (AluOp::AbsMax, -5.0, 3.0, -5.0),
        (AluOp::AbsMax, 1.0, -1.0, -1.0),
        // The manual's rule, also for NaN: y, unless |x| > |y| (or |x| < |y|).
        (AluOp::AbsMax, nan, 2.0, 2.0),
        (AluOp::AbsMax, 2.0, nan, nan),
        (AluOp::AbsMin, nan, 2.0, 2.0),
        (AluOp::AbsMin, 2.0, nan, nan),
        (AluOp::AbsMin, 5.0, -3.0, -3.0),
        (AluOp::AbsMin, 1.0, -1.0, -1.0),
        (AluOp::Power, 2.0, 10.0, 1024.0),
        (AluOp::Power, 4.0, -0.5, 0.5),
        (AluOp::Power, -2.0, 3.0, -8.0),
        (AluOp::Power, -2.0, 2.0, 4.0),
        (AluOp::Power, -2.0, 0.5, nan),
        (AluOp::Power, 0.0, 0.0, 1.0),
        (AluOp::Power, nan, 0.0, 1.0),
        (AluOp::Power, 1.0, nan, 1.0),
        (AluOp::Power, 0.0, -1.0, inf),
        (AluOp::Power, -0.0, -1.0, -inf),
        (AluOp::Power, 0.0, 2.0, 0.0),
        (AluOp::Power, inf, -1.0, 0.0),
        (AluOp::Power, -inf, 3.0, -inf),
        (AluOp::Power, 0.5, inf, 0.0),
        (AluOp::Power, 0.5, -inf, inf),
        (AluOp::Power, -1.0, inf, 1.0),
        (AluOp::Power, 1e30, 2.0, inf),
        (AluOp::Mod, 5.5, 2.0, 1.5),
        (AluOp::Mod, -5.5, 2.0, 0.5),
        (AluOp::Mod, 5.5, -2.0, -0.5),
        (AluOp::Fmod, -5.5, 2.0, -1.5),
        (AluOp::Fmod, 5.5, -2.0, 1.5),
        (AluOp::Equal, 1.0, 1.0, 1.0),
        (AluOp::Equal, nan, nan, 0.0),
        (AluOp::NotEqual, 1.0, 2.0, 1.0),
        (AluOp::Greater, 2.0, 1.0, 1.0),
        (AluOp::GreaterEqual, 1.0, 1.0, 1.0),
        (AluOp::Less, 2.0, 1.0, 0.0),
        (AluOp::LessEqual, 2.0, 2.0, 1.0),
        (AluOp::LogicalAnd, 2.0, -1.0, 1.0),
        (AluOp::LogicalAnd, 2.0, 0.0, 0.0),
        (AluOp::LogicalOr, 0.0, -0.0, 0.0),
        (AluOp::LogicalOr, 0.0, 0.1, 1.0),
        (AluOp::LogicalXor, 3.0, 2.0, 0.0),
        (AluOp::LogicalNot, 0.0, 0.0, 1.0),
        (AluOp::Rsqrt, 16.0, 0.0, 0.25),
        (AluOp::Abs, -2.0, 0.0, 2.0),
        (AluOp::Square, -3.0, 0.0, 9.0),
        (AluOp::Relu, -3.0, 0.0, 0.0),
        (AluOp::Relu, nan, 0.0, nan),
        (AluOp::Reciprocal, -4.0, 0.0, -0.25),
    ];
    for (op, x, y, want) in table {
        let got = alu::scalar(op, x, y);
        assert!(got == want || (got.is_nan() && want.is_nan()), "{x} {} {y} = {got}, want {want}", op.name());
    }
}

/// Rows and scalars, in place or not, reversed or not, of any length: all give what single elements give.
#[test]
fn forms_agree() {
    let x: Vec<f32> = (0..301).map(|i| (i as f32 - 150.0) * 0.25).collect();
    let y: Vec<f32> = (0..301).map(|i| ((i * 7) % 23) as f32 - 11.0).collect();
    let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    for &op in AluOp::ALL {
        if op.is_bitvec() {
            continue;
        }
        for reverse in [false, true] {
            let one = |x, y| if reverse && !op.is_unary() { alu::scalar(op, y, x) } else { alu::scalar(op, x, y) };
            let mut out = vec![0.0; x.len()];
            alu::apply(op, reverse, &x, Rhs::Row(&y), &mut out);
            let mut placed = x.clone();
            alu::apply_in_place(op, reverse, &mut placed, Rhs::Row(&y));
            for i in 0..x.len() {
                assert!(same(out[i], one(x[i], y[i])), "{} {reverse} {i}", op.name());
                assert!(same(placed[i], out[i]), "{} {reverse} {i} in place", op.name());
            }
            alu::apply(op, reverse, &x, Rhs::One(1.5), &mut out);
            let mut placed = x.clone();
            alu::apply_in_place(op, reverse, &mut placed, Rhs::One(1.5));
            for i in 0..x.len() {
                assert!(same(out[i], one(x[i], 1.5)), "{} {reverse} {i} scalar", op.name());
                assert!(same(placed[i], out[i]), "{} {reverse} {i} scalar in place", op.name());
            }
        }
    }
}

/// Against the system's `powf`, which is good to one unit in the last place.
#[test]
fn power_is_accurate() {
    for i in 1..400 {
        for j in -60..60 {
            let (x, y) = (i as f32 * 0.11, j as f32 * 0.23);
            let (got, want) = (alu::scalar(AluOp::Power, x, y), f64::from(x).powf(f64::from(y)));
            let error = (f64::from(got) - want).abs() / want;
            assert!(error < 6.1e-8 || !(1e-38..=3.4e38).contains(&want), "{x} ** {y} = {got}, want {want}");
        }
    }
}

#[test]
fn operators_on_integers() {
    let table = [
        (AluOp::BitwiseAnd, 32, 12, 10, 8),
        (AluOp::BitwiseOr, 32, 12, 10, 14),
        (AluOp::BitwiseXor, 32, 12, 10, 6),
        (AluOp::Invert, 32, 0, 0, -1),
        (AluOp::LeftShift, 32, 1, 31, 1 << 31),
        (AluOp::LeftShift, 32, 1, 32, 0),
        (AluOp::LeftShift, 32, 1, -1, 0),
        (AluOp::RightShift, 32, -1, 28, 15),
        (AluOp::RightShift, 8, -1, 4, 15),
        (AluOp::RightShift, 32, 5, 40, 0),
        (AluOp::ArithmeticRightShift, 32, -16, 2, -4),
        (AluOp::ArithmeticRightShift, 8, 0x80, 7, -1),
        (AluOp::ArithmeticRightShift, 32, -16, 99, -1),
        (AluOp::Add, 32, i64::from(i32::MAX), 1, 1 << 31),
        (AluOp::Multiply, 32, 1 << 20, 3, 3 << 20),
        (AluOp::Divide, 32, -7, 2, -3),
        (AluOp::Divide, 32, 7, 0, 0),
        (AluOp::Mod, 32, -7, 3, 2),
        (AluOp::Fmod, 32, -7, 3, -1),
        (AluOp::Mod, 32, 7, 0, 0),
        (AluOp::Max, 32, -5, 3, 3),
        (AluOp::AbsMax, 32, -5, 3, -5),
        (AluOp::Power, 32, 3, 4, 81),
        (AluOp::Power, 32, 3, -1, 0),
        (AluOp::Equal, 32, 16_777_217, 16_777_216, 0),
        (AluOp::LogicalNot, 32, 5, 0, 0),
        (AluOp::Abs, 32, -5, 0, 5),
        (AluOp::Relu, 32, -5, 0, 0),
    ];
    let of = |bits| if bits == 8 { Widths::of(DType::I8, DType::I8) } else { Widths::of(DType::I32, DType::I32) };
    for (op, bits, x, y, want) in table {
        assert_eq!(integer::scalar(op, of(bits), x, y), want, "{x} {} {y}", op.name());
    }
    let mut out = [0; 2];
    integer::apply(AluOp::Subtract, true, of(32), &[1, 2], Rhs::One(10), &mut out);
    assert_eq!(out, [9, 8]);
    integer::apply(AluOp::Invert, true, of(32), &[1, 2], Rhs::One(10), &mut out);
    assert_eq!(out, [-2, -3]);
}

#[test]
fn reductions() {
    let row: Vec<f32> = (1..=100).map(|i| i as f32).collect();
    assert_eq!(reduce::reduce(AluOp::Add, &row), 5050.0);
    assert_eq!(reduce::reduce(AluOp::Max, &row), 100.0);
    assert_eq!(reduce::reduce(AluOp::Min, &row), 1.0);
    assert_eq!(reduce::reduce(AluOp::Subtract, &row), 1.0 - 5049.0);
    assert_eq!(reduce::reduce(AluOp::Multiply, &row[..10]), 3_628_800.0);
    assert_eq!(reduce::reduce(AluOp::LogicalAnd, &[1.0, 0.0]), 0.0);
    assert_eq!(reduce::reduce(AluOp::LogicalOr, &[0.0, 2.0]), 1.0);
    assert_eq!(reduce::reduce(AluOp::LogicalXor, &[3.0, 2.0, 1.0]), 1.0);
    assert_eq!(reduce::reduce(AluOp::Max, &[]), f32::NEG_INFINITY);
    for length in [1, 31, 32, 33, 64, 100] {
        for at in 0..length {
            let mut row = vec![1.0; length];
            row[at] = f32::NAN;
            for op in [AluOp::Add, AluOp::Max, AluOp::Min, AluOp::Multiply] {
                assert!(reduce::reduce(op, &row).is_nan(), "{} loses NaN at {at} of {length}", op.name());
            }
        }
    }
    assert_eq!(integer::reduce(AluOp::BitwiseAnd, &[7, 14]), 6);
    assert_eq!(integer::reduce(AluOp::BitwiseOr, &[1, 2, 4]), 7);
    assert_eq!(integer::reduce(AluOp::BitwiseXor, &[1, 3]), 2);
}

/// The documented order: element `i` in lane `i % 32`, lanes combined in halves.
#[test]
fn sums_have_a_fixed_order() {
    let row: Vec<f32> = (0..517).map(|i| ((i * 2_654_435_761u64) % 1000) as f32 * 0.001 - 0.5).collect();
    let mut lanes = [0.0f32; 32];
    for (i, x) in row.iter().enumerate() {
        lanes[i % 32] += x;
    }
    for width in [16, 8, 4, 2, 1] {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
    }
    assert_eq!(reduce::reduce(AluOp::Add, &row).to_bits(), lanes[0].to_bits());
}
