//! Arithmetic of numbers as CPython and NumPy define it, where it differs from Rust's.

use std::cmp::Ordering;

/// Floor division and its remainder, step by step as CPython's `float_divmod` and NumPy's `npy_divmod` compute them: the
/// floor of the rounded quotient `a / b` can be one too large (`1.0 // 0.1` is 9).
macro_rules! divmod {
    ($name:ident, $float:ty) => {
        pub(crate) fn $name(a: $float, b: $float) -> ($float, $float) {
            let mut rest = a % b;
            if b == 0.0 {
                return (a / b, rest);
            }
            let mut quotient = (a - rest) / b;
            if rest == 0.0 {
                rest = (0.0 as $float).copysign(b);
            } else if (rest < 0.0) != (b < 0.0) {
                rest += b;
                quotient -= 1.0;
            }
            if quotient == 0.0 {
                return ((0.0 as $float).copysign(a / b), rest);
            }
            let floor = quotient.floor();
            (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest)
        }
    };
}

divmod!(divmod_f64, f64);
divmod!(divmod_f32, f32);

/// `a / b` of integers with a single rounding: converting the operands to floats would round, too.
/// `b` is not 0.
pub(crate) fn true_divide(a: i64, b: i64) -> f64 {
    const EXACT: u64 = 1 << 53;
    let (n, d) = (a.unsigned_abs(), b.unsigned_abs());
    if n <= EXACT && d <= EXACT {
        return a as f64 / b as f64;
    }
    if n == 0 {
        return 0.0;
    }
    // The quotient has at least 64 bits. Its last bit is sticky: it is set if any remainder is
    // left.
    let shift = u128::from(n).leading_zeros();
    let n = u128::from(n) << shift;
    let quotient = (n / u128::from(d)) | u128::from(n % u128::from(d) != 0);
    let magnitude = quotient as f64 * 0.5f64.powi(shift as i32);
    if (a < 0) == (b < 0) { magnitude } else { -magnitude }
}

/// Compares an integer and a float by their exact values; `None` for NaN.
pub(crate) fn compare_int_float(a: i64, b: f64) -> Option<Ordering> {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if b.is_nan() {
        None
    } else if b >= BOUND {
        Some(Ordering::Less)
    } else if b < -BOUND {
        Some(Ordering::Greater)
    } else {
        Some(a.cmp(&(b as i64)).then(0.0.partial_cmp(&b.fract())?))
    }
}

/// `round(x, -places)` of an integer, half to even; `None` if it does not fit in 64 bits.
pub(crate) fn round_int(x: i64, places: u32) -> Option<i64> {
    // Half of 10^20 exceeds every 64-bit integer.
    if places > 19 {
        return Some(0);
    }
    let (x, unit) = (i128::from(x), 10i128.pow(places));
    let (quotient, rest) = (x.div_euclid(unit), x.rem_euclid(unit));
    let up = match (2 * rest).cmp(&unit) {
        Ordering::Less => false,
        Ordering::Equal => quotient % 2 != 0,
        Ordering::Greater => true,
    };
    i64::try_from((quotient + i128::from(up)) * unit).ok()
}

/// `round(x, -places)` of a float, half to even; infinite if the result is too large. Formatting
/// rounds the exact value.
pub(crate) fn round_float(x: f64, places: u32) -> f64 {
    if !x.is_finite() {
        return x;
    }
    let number = |text: String| text.parse().unwrap_or(f64::INFINITY);
    let magnitude = x.abs();
    let digits = format!("{:.0}", magnitude.trunc()).len();
    let rounded = match digits.checked_sub(places as usize) {
        None => 0.0,
        Some(0) if magnitude > number(format!("5e{}", digits - 1)) => number(format!("1e{digits}")),
        Some(0) => 0.0,
        Some(kept) => number(format!("{magnitude:.*e}", kept - 1)),
    };
    rounded.copysign(x)
}

/// `pow(x, n, m)`. The result has the sign of `m`, which is not 0.
pub(crate) fn power_modulo(x: i64, mut n: u64, m: i64) -> i64 {
    let m = i128::from(m);
    let (mut result, mut square) = (1i128.rem_euclid(m), i128::from(x).rem_euclid(m));
    while n > 0 {
        if n & 1 == 1 {
            result = (result * square).rem_euclid(m);
        }
        square = (square * square).rem_euclid(m);
        n >>= 1;
    }
    (if m < 0 && result != 0 { result + m } else { result }) as i64
}

/// The number whose product with `x` is 1 modulo `m`, which is not 0; `None` if they have a common factor.
pub(crate) fn inverse_modulo(x: i64, m: i64) -> Option<i64> {
    let m = i128::from(m).abs();
    let (mut rest, mut next) = (m, i128::from(x).rem_euclid(m));
    let (mut inverse, mut other) = (0, 1);
    while next != 0 {
        let quotient = rest / next;
        (rest, next) = (next, rest - quotient * next);
        (inverse, other) = (other, inverse - quotient * other);
    }
    (rest == 1).then(|| inverse.rem_euclid(m) as i64)
}
