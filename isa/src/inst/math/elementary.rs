//! Elementary functions on lanes: branch-free, so that loops over them vectorise.
//!
//! Frequently called functions are computed in fp32 with an error of at most 2 units in the last place, the others in double precision
//! with a relative error around 1e-10, so that their fp32 result is almost always correctly rounded. The polynomials are
//! Chebyshev fits of the functions named beside them. Tests check the bounds against references.

/// Adding and subtracting this rounds a small float to an integer (nearest even); the sum has the integer in its low bits.
const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23
const ROUND64: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

#[inline(always)]
fn horner32<const N: usize>(x: f32, c: [f32; N]) -> f32 {
    let mut i = N - 1;
    let mut acc = c[i];
    while i > 0 {
        i -= 1;
        acc = acc.mul_add(x, c[i]);
    }
    acc
}

#[inline(always)]
fn horner64<const N: usize>(x: f64, c: [f64; N]) -> f64 {
    let mut i = N - 1;
    let mut acc = c[i];
    while i > 0 {
        i -= 1;
        acc = acc.mul_add(x, c[i]);
    }
    acc
}

/// `e^x`: at most 1.1 ulp, subnormal results included; exact at 0, 0 at -inf, inf at inf.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let k = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    // ln 2 in two parts; the first has trailing zeros, so that the product with n is exact.
    let r = n.mul_add(-0.693_145_75, x);
    let r = n.mul_add(-1.428_606_8e-6, r);
    let q = horner32(r, [0.5, 1.666_657_7e-1, 4.166_655_5e-2, 8.363_179e-3, 1.392_618_4e-3]);
    let p = (q * r).mul_add(r, r) + 1.0;
    // 2^k in two steps: k ranges from -150 to 128.
    let half = k >> 1;
    p * pow2(half) * pow2(k - half)
}

#[inline(always)]
fn pow2(k: i32) -> f32 {
    f32::from_bits(((k + 127) << 23) as u32)
}

/// `1 / (1 + e^-x)`: at most 3 ulp, small results included.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let z = exp(-x.abs());
    let n = if x < 0.0 { z } else { 1.0 };
    // A NaN reaches z, whatever the result of the comparison.
    n / (1.0 + z)
}

/// `tanh x`: at most 2 ulp.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let w = x * x;
    let q = horner32(w, [-3.333_332_8e-1, 1.333_266e-1, -5.383_479_6e-2, 2.092_258_9e-2, -5.990_799e-3]);
    let small = (w * x).mul_add(q, x);
    let large = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
    // The polynomial loses the sign of -0.
    (if a < 0.625 { small } else { large }).copysign(x)
}

/// `ln x`: at most 2 ulp; -inf at 0, NaN below, subnormals included.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    ln64(f64::from(x)) as f32
}

/// `1 / sqrt(x)`: at most 1 ulp.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// `e^x` in double precision: relative error below 1e-13 where the result is a normal double above 2^-1000; 0 or inf beyond.
#[inline(always)]
pub fn exp64(x: f64) -> f64 {
    let x = if x > 700.0 { 700.0 } else { x };
    let x = if x < -690.0 { -690.0 } else { x };
    let shifted = x.mul_add(std::f64::consts::LOG2_E, ROUND64);
    let n = shifted - ROUND64;
    let r = n.mul_add(-6.931_471_803_691_238e-1, x);
    let r = n.mul_add(-1.908_214_929_270_587_7e-10, r);
    let q = horner64(
        r,
        [
            1.000_000_000_000_001,
            5.000_000_000_000_001e-1,
            1.666_666_666_661_560_6e-1,
            4.166_666_666_662_413e-2,
            8.333_333_367_332_008e-3,
            1.388_888_891_721_371_7e-3,
            1.984_119_061_583_585e-4,
            2.480_152_129_595_437_5e-5,
            2.763_265_575_933_203e-6,
            2.762_008_844_540_975e-7,
        ],
    );
    let p = q.mul_add(r, 1.0);
    // 2^n: the integer is in the low bits of the shifted value.
    let scale = shifted.to_bits().wrapping_add(1023) << 52;
    p * f64::from_bits(scale)
}

/// `ln x` in double precision for fp32 arguments (zero, negative, infinite and NaN included): relative error below 1e-13.
#[inline(always)]
pub fn ln64(x: f64) -> f64 {
    // x = m * 2^k with m in [sqrt(1/2), sqrt(2)); fp32 subnormals are normal doubles. AVX2 has only logical shifts.
    let bits = x.to_bits();
    let e = bits.wrapping_add(0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(e << 52).wrapping_add(1023 << 52));
    let s = (m - 1.0) / (m + 1.0);
    let w = s * s;
    let q = horner64(
        w,
        [
            1.0,
            3.333_333_333_333_382_4e-1,
            1.999_999_999_965_024_6e-1,
            1.428_571_438_053_016e-1,
            1.111_109_850_600_098e-1,
            9.091_817_056_154_376e-2,
            7.656_231_514_787_075e-2,
            7.405_195_608_157_301e-2,
        ],
    );
    // k as a double, again without an instruction that AVX2 lacks.
    let kf = f64::from_bits(ROUND64.to_bits().wrapping_add(e)) - (ROUND64 + 1023.0);
    let log = kf.mul_add(std::f64::consts::LN_2, 2.0 * s * q);
    let log = if x == f64::INFINITY { x } else { log };
    let log = if x == 0.0 { f64::NEG_INFINITY } else { log };
    if (x < 0.0) | x.is_nan() { f64::NAN } else { log }
}

/// `ln(1 + z)` for `z` in `[0, 1]`: relative error below 1e-8.
#[inline(always)]
pub fn ln_1p64(z: f64) -> f64 {
    let small = z * (1.0 - 0.5 * z);
    let large = ln64(1.0 + z);
    if z < 1e-5 { small } else { large }
}

/// `erfc(t)` for `t >= 0` in double precision: relative error below 1e-10 up to `t = 11`.
#[inline(always)]
fn erfc_positive(t: f64) -> f64 {
    let t = if t > 11.0 { 11.0 } else { t };
    let u = (t - 3.75) / (t + 3.75);
    // e^(t^2) erfc(t) (1 + 2 t)
    let q = horner64(
        u,
        [
            1.237_512_630_840_536_7,
            -1.402_405_986_177_508e-1,
            3.585_414_857_898_62e-3,
            8.227_674_063_016_855e-2,
            -1.088_039_052_278_708_8e-1,
            9.230_429_159_918_347e-2,
            -5.869_377_579_339_249e-2,
            2.836_226_494_726_896_3e-2,
            -9.743_980_820_407_37e-3,
            1.757_879_962_465_031e-3,
            2.860_844_807_637_441e-4,
            -3.028_556_660_458_75e-4,
            5.549_489_995_502_327e-5,
            4.325_498_938_077_703e-5,
            3.014_604_359_361_197e-6,
        ],
    );
    exp64(-t * t) * q / 2.0f64.mul_add(t, 1.0)
}

/// `erf(x)` in double precision: relative error below 1e-9.
#[inline(always)]
pub fn erf64(x: f64) -> f64 {
    let a = x.abs();
    let w = x * x;
    let q = horner64(
        w,
        [
            1.128_379_167_095_511_6,
            -3.761_263_890_313_715e-1,
            1.128_379_166_718_697e-1,
            -2.686_616_948_335_699_3e-2,
            5.223_960_011_746_48e-3,
            -8.546_873_696_317_953e-4,
            1.198_861_887_257_341_5e-4,
            -1.331_428_862_226_306_5e-5,
        ],
    );
    let large = (1.0 - erfc_positive(a)).copysign(x);
    if a < 0.5 { x * q } else { large }
}

/// `Phi(x) = erfc(-x / sqrt 2) / 2` in double precision, the left tail relatively accurate down to x = -15.
#[inline(always)]
pub fn normal_cdf64(x: f64) -> f64 {
    let half = 0.5 * erfc_positive(x.abs() * std::f64::consts::FRAC_1_SQRT_2);
    if x < 0.0 { half } else { 1.0 - half }
}

/// `1 / (1 + e^-x)` in double precision.
#[inline(always)]
pub fn sigmoid64(x: f64) -> f64 {
    let z = exp64(-x.abs());
    (if x < 0.0 { z } else { 1.0 }) / (1.0 + z)
}

/// `sin(r)` for `|r| <= pi/2`.
#[inline(always)]
fn sin_reduced(r: f64) -> f64 {
    let q = horner64(
        r * r,
        [
            9.999_999_999_999_496e-1,
            -1.666_666_666_646_667_2e-1,
            8.333_333_320_358_348e-3,
            -1.984_126_668_313_067_3e-4,
            2.755_695_291_285_805e-6,
            -2.503_026_818_882_279e-8,
            1.541_121_974_664_89e-10,
        ],
    );
    r * q
}

/// `sin(x)` on `[-pi, pi]`. Beyond, the scalar engine does not reduce its argument but extrapolates a cubic, so that
/// `sin(9.0)` is 27.65 (manual, `nki-act-func`). The cubic is the Taylor polynomial at pi, `d^3/6 - d`, which has that value.
#[inline(always)]
pub fn sin_engine(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let d = a - std::f64::consts::PI;
    let folded = if a > std::f64::consts::FRAC_PI_2 { -d } else { a };
    let inside = sin_reduced(folded);
    let outside = d * (d * d / 6.0 - 1.0);
    let value = if d > 0.0 { outside } else { inside } as f32;
    // copysign would discard the sign of the cubic.
    if x.is_sign_negative() { -value } else { value }
}

/// `arctan(x)`.
#[inline(always)]
pub fn arctan(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let inverted = a > 1.0;
    let z = if inverted { 1.0 / a } else { a };
    let q = horner64(
        z * z,
        [
            9.999_999_999_981_967e-1,
            -3.333_333_326_247_97e-1,
            1.999_999_534_038_506_2e-1,
            -1.428_559_239_428_252_8e-1,
            1.110_942_836_433_050_6e-1,
            -9.076_798_876_650_477e-2,
            7.614_250_190_003_12e-2,
            -6.366_092_236_096_827e-2,
            5.045_557_752_841_614_3e-2,
            -3.526_772_086_942_244e-2,
            1.993_743_684_285_617_3e-2,
            -8.241_899_893_996_813e-3,
            2.162_794_422_156_479e-3,
            -2.666_019_671_926_742_3e-4,
        ],
    );
    let t = z * q;
    let t = if inverted { std::f64::consts::FRAC_PI_2 - t } else { t };
    (t as f32).copysign(x)
}

/// `x^y` with the special cases of C's `pow`, through double precision: correctly rounded except for ties at the 1e-11 level.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let ax = f64::from(x.abs());
    let yd = f64::from(y);
    let magnitude = exp64(yd * ln64(ax)) as f32;
    // exp64 clamps, so handle the limits exactly: 0^y, inf^y.
    let zero_or_inf = (ax == 0.0) | (ax == f64::INFINITY);
    let grows = (ax > 1.0) == (y > 0.0);
    let magnitude = if zero_or_inf { if grows { f32::INFINITY } else { 0.0 } } else { magnitude };
    let y_infinite = y.abs() == f32::INFINITY;
    let magnitude = if y_infinite { if grows { f32::INFINITY } else { 0.0 } } else { magnitude };
    let rounded = (y + ROUND) - ROUND;
    let whole = (y.abs() >= 8_388_608.0) | (rounded == y);
    let half = 0.5 * y;
    let even = (half.abs() >= 8_388_608.0) | (((half + ROUND) - ROUND) == half);
    let negative = x.is_sign_negative() & whole & !even;
    let value = if negative { -magnitude } else { magnitude };
    let value = if (x < 0.0) & !whole & (x != f32::NEG_INFINITY) { f32::NAN } else { value };
    let value = if x.is_nan() | y.is_nan() { f32::NAN } else { value };
    let one = (y == 0.0) | (x == 1.0) | ((x == -1.0) & y_infinite);
    if one { 1.0 } else { value }
}
