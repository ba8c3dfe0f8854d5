//! Holds the activation functions against double-precision references computed another way.

use nki_isa::inst::math::activation::{ActFn, apply};
use nki_isa::names::Named;

/// `erfc` by series below 2.5 and by continued fraction above: slow, accurate to about 1e-15.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - std::f64::consts::FRAC_2_SQRT_PI * sum;
    }
    let mut f = 0.0;
    for n in (1..200).rev() {
        f = f64::from(n) / 2.0 / (x + f);
    }
    (-x * x).exp() / ((x + f) * std::f64::consts::PI.sqrt())
}

fn erf(x: f64) -> f64 {
    if x.abs() < 0.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return std::f64::consts::FRAC_2_SQRT_PI * sum;
    }
    1.0 - erfc(x)
}

fn cdf(x: f64) -> f64 {
    0.5 * erfc(-x / 2.0f64.sqrt())
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn reference(f: ActFn, x: f64) -> f64 {
    let phi = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let swish_dx = |k: f64| sigmoid(k * x) * (1.0 + k * x * sigmoid(-k * x));
    match f {
        ActFn::Copy => x,
        ActFn::Square => x * x,
        ActFn::Sigmoid => sigmoid(x),
        ActFn::Relu => x.max(0.0),
        ActFn::Prelu => x.max(0.25 * x),
        ActFn::Gelu => x * cdf(x),
        ActFn::GeluDx => cdf(x) + x * phi,
        ActFn::GeluApprxTanh => x * sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)),
        ActFn::GeluApprxSigmoid => x * sigmoid(1.702 * x),
        ActFn::GeluApprxSigmoidDx => swish_dx(1.702),
        ActFn::Silu => x * sigmoid(x),
        ActFn::SiluDx => swish_dx(1.0),
        ActFn::Tanh => x.tanh(),
        ActFn::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        ActFn::Mish => x * (x.max(0.0) + (-x.abs()).exp().ln_1p()).tanh(),
        ActFn::Erf => erf(x),
        ActFn::ErfDx => std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp(),
        ActFn::Exp => x.exp(),
        ActFn::Log => x.ln(),
        ActFn::Sin => x.sin(),
        ActFn::Arctan => x.atan(),
        ActFn::Sqrt => x.sqrt(),
        ActFn::Rsqrt => 1.0 / x.sqrt(),
        ActFn::Reciprocal => 1.0 / x,
        ActFn::Sign => f64::from(u8::from(x > 0.0)) - f64::from(u8::from(x < 0.0)),
        ActFn::Abs => x.abs(),
    }
}

/// Distance in units of the last place of the reference, subnormals having the smallest.
fn ulps(got: f32, want: f64) -> f64 {
    if f64::from(got) == want || (got.is_nan() && want.is_nan()) || got == want as f32 {
        return (f64::from(got) - want).abs().min(f64::from(u8::from(!want.is_finite()))) / ulp(want);
    }
    (f64::from(got) - want).abs() / ulp(want)
}

fn ulp(x: f64) -> f64 {
    let exponent = if x == 0.0 { -126 } else { (x.abs().log2().floor() as i32).max(-126) };
    2f64.powi(exponent - 23)
}

/// Dense and sparse arguments: a grid over `[-range, range]` and random bit patterns of magnitude at most `range`.
fn arguments(low: f32, high: f32) -> Vec<f32> {
    let mut out = Vec::new();
    let mut state = 1u64;
    for i in 0..100_000 {
        let t = i as f32 / 99_999.0;
        out.push(low + (high - low) * t);
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = f32::from_bits((state >> 32) as u32);
        if x >= low && x <= high {
            out.push(x);
        }
    }
    out
}

/// `(function, lowest argument, highest argument, bound in ulp)`.
const BOUNDS: &[(ActFn, f32, f32, f64)] = &[
    (ActFn::Copy, -1e38, 1e38, 0.0),
    (ActFn::Square, -1e18, 1e18, 0.5),
    (ActFn::Sigmoid, -80.0, 80.0, 2.5),
    (ActFn::Relu, -1e38, 1e38, 0.0),
    (ActFn::Gelu, -12.0, 1e6, 0.51),
    (ActFn::GeluApprxTanh, -8.0, 1e6, 0.51),
    (ActFn::GeluApprxSigmoid, -30.0, 1e6, 40.0),
    (ActFn::Silu, -70.0, 1e6, 3.0),
    (ActFn::Tanh, -1e6, 1e6, 2.0),
    (ActFn::Softplus, -80.0, 1e6, 0.51),
    (ActFn::Mish, -80.0, 1e6, 0.51),
    (ActFn::Erf, -1e6, 1e6, 0.51),
    (ActFn::ErfDx, -9.0, 9.0, 0.51),
    (ActFn::Exp, -104.0, 88.8, 1.1),
    (ActFn::Log, 0.0, 3e38, 0.51),
    (ActFn::Sin, -3.1415925, 3.1415925, 0.6),
    (ActFn::Arctan, -1e6, 1e6, 0.55),
    (ActFn::Sqrt, 0.0, 3e38, 0.5),
    (ActFn::Rsqrt, 1e-38, 3e38, 1.5),
    (ActFn::Reciprocal, 1e-37, 1e37, 0.5),
    (ActFn::Sign, -1e38, 1e38, 0.0),
    (ActFn::Abs, -1e38, 1e38, 0.0),
];

#[test]
fn errors_stay_within_the_stated_bounds() {
    let mut failed = Vec::new();
    for &(f, low, high, bound) in BOUNDS {
        let xs = arguments(low, high);
        let mut ys = xs.clone();
        apply(f, 0.0, &mut ys);
        let (x, worst) = xs
            .iter()
            .zip(&ys)
            .map(|(&x, &y)| (x, ulps(y, reference(f, f64::from(x)))))
            .fold((0.0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
        if worst > bound || worst.is_nan() {
            failed.push(format!("{}: {worst:.3} ulp at {x:?}, bound {bound}", f.name()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// These cross zero, so their error is bounded in absolute terms.
#[test]
fn derivatives_are_absolutely_accurate() {
    for f in [ActFn::GeluDx, ActFn::SiluDx, ActFn::GeluApprxSigmoidDx] {
        let xs = arguments(-100.0, 100.0);
        let mut ys = xs.clone();
        apply(f, 0.0, &mut ys);
        for (&x, &y) in xs.iter().zip(&ys) {
            let want = reference(f, f64::from(x));
            assert!((f64::from(y) - want).abs() < 7e-8, "{} at {x}: {y}, want {want}", f.name());
        }
    }
}

fn one(f: ActFn, x: f32) -> f32 {
    let mut row = [x];
    apply(f, 0.25, &mut row);
    row[0]
}

#[test]
fn ends_and_specials() {
    let inf = f32::INFINITY;
    let table = [
        (ActFn::Exp, 0.0, 1.0),
        (ActFn::Exp, inf, inf),
        (ActFn::Exp, -inf, 0.0),
        (ActFn::Exp, 88.8, inf),
        (ActFn::Exp, -104.0, 0.0),
        (ActFn::Exp, -103.0, 1e-45),
        (ActFn::Log, 1.0, 0.0),
        (ActFn::Log, 0.0, -inf),
        (ActFn::Log, inf, inf),
        (ActFn::Tanh, inf, 1.0),
        (ActFn::Tanh, -inf, -1.0),
        (ActFn::Sigmoid, inf, 1.0),
        (ActFn::Sigmoid, -inf, 0.0),
        (ActFn::Sigmoid, 0.0, 0.5),
        (ActFn::Gelu, inf, inf),
        (ActFn::Gelu, -inf, 0.0),
        (ActFn::GeluDx, inf, 1.0),
        (ActFn::GeluDx, -inf, 0.0),
        (ActFn::GeluApprxTanh, inf, inf),
        (ActFn::GeluApprxTanh, -inf, 0.0),
        (ActFn::GeluApprxSigmoid, inf, inf),
        (ActFn::GeluApprxSigmoid, -inf, 0.0),
        (ActFn::GeluApprxSigmoidDx, inf, 1.0),
        (ActFn::GeluApprxSigmoidDx, -inf, 0.0),
        (ActFn::Silu, inf, inf),
        (ActFn::Silu, -inf, 0.0),
        (ActFn::SiluDx, inf, 1.0),
        (ActFn::SiluDx, -inf, 0.0),
        (ActFn::Softplus, inf, inf),
        (ActFn::Softplus, -inf, 0.0),
        (ActFn::Softplus, 0.0, std::f32::consts::LN_2),
        (ActFn::Mish, inf, inf),
        (ActFn::Mish, -inf, 0.0),
        (ActFn::Erf, inf, 1.0),
        (ActFn::Erf, -inf, -1.0),
        (ActFn::ErfDx, inf, 0.0),
        (ActFn::Arctan, inf, std::f32::consts::FRAC_PI_2),
        (ActFn::Rsqrt, 0.0, inf),
        (ActFn::Rsqrt, 4.0, 0.5),
        (ActFn::Reciprocal, 0.0, inf),
        (ActFn::Relu, -3.0, 0.0),
        (ActFn::Prelu, -4.0, -1.0),
        (ActFn::Prelu, 4.0, 4.0),
        (ActFn::Sign, -0.5, -1.0),
        (ActFn::Square, -3.0, 9.0),
    ];
    for (f, x, want) in table {
        assert_eq!(one(f, x), want, "{} at {x}", f.name());
    }
    assert!(one(ActFn::Log, -1.0).is_nan());
    assert!(one(ActFn::Sqrt, -1.0).is_nan());
    for &f in ActFn::ALL {
        assert!(one(f, f32::NAN).is_nan(), "{} loses NaN", f.name());
    }
}

/// The manual gives this value: the engine does not reduce its argument.
#[test]
fn sine_extrapolates_as_the_engine() {
    assert!((one(ActFn::Sin, 9.0) - 27.65).abs() < 0.005);
    assert!((one(ActFn::Sin, -9.0) + 27.65).abs() < 0.005);
}

/// A row gives the same bits as its elements one at a time: no value depends on its place or on the vector width.
#[test]
fn rows_equal_single_elements() {
    let row: Vec<f32> = (0..67).map(|i| (i as f32 - 33.0) * 0.37).collect();
    for &f in ActFn::ALL {
        let mut out = row.clone();
        apply(f, 0.25, &mut out);
        for (&x, &y) in row.iter().zip(&out) {
            assert_eq!(y.to_bits(), one(f, x).to_bits(), "{} at {x}", f.name());
        }
    }
}
