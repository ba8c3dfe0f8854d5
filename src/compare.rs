//! `--expect`: an output against an array, element by element.

use nki_isa::dtype::DType;
use nki_isa::shape::coordinates;
use rayon::prelude::*;
use serde::Serialize;

use crate::codec;
use crate::npy::{Array, Elem, shape_text};

/// The tolerance of a comparison: `|got - expected| <= atol + rtol * |expected|`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Tolerance {
    /// Relative.
    pub(crate) rtol: f64,
    /// Absolute.
    pub(crate) atol: f64,
}

impl Tolerance {
    /// Whether the difference exceeds the tolerance. Two NaN are equal, as are two infinities of the same sign.
    pub(crate) fn differs(self, got: f64, expected: f64) -> bool {
        if got == expected || (got.is_nan() && expected.is_nan()) {
            return false;
        }
        let difference = (got - expected).abs();
        // No tolerance covers NaN or infinity on one side only.
        !(difference <= self.atol + self.rtol * expected.abs() && difference.is_finite())
    }

    /// The default tolerance: a few roundings of the type, enough for sums in another order, but too little for a wrong formula.
    pub(crate) fn of(dtype: DType) -> Self {
        let (rtol, atol) = match dtype {
            DType::F32 => (1e-5, 1e-5),
            DType::TF32 | DType::F16 => (2e-3, 2e-3),
            DType::BF16 => (2e-2, 2e-2),
            DType::F8E4M3 | DType::F8E4M3FN => (0.1, 0.1),
            DType::F8E5M2 => (0.2, 0.2),
            DType::F8E4M3FNX4 => (0.1, 0.1),
            DType::F8E5M2X4 => (0.2, 0.2),
            _ => (0.0, 0.0),
        };
        Tolerance { rtol, atol }
    }
}

/// The first element that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Mismatch {
    /// Its index.
    pub(crate) index: Vec<usize>,
    /// The simulator's value.
    pub(crate) got: f64,
    /// The expected value.
    pub(crate) expected: f64,
}

/// An output compared with an array of the same shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// The output's name.
    pub(crate) name: String,
    /// The array's file.
    pub(crate) file: String,
    /// Largest difference: infinite if only one value is infinite, NaN (null in JSON) if only one is NaN.
    pub(crate) max_abs_error: f64,
    /// Largest difference relative to a non-zero expected magnitude; NaN (null in JSON) if only one value is NaN.
    pub(crate) max_rel_error: f64,
    /// Number of elements that are NaN on one side only.
    pub(crate) nan_mismatches: usize,
    /// Tolerances used.
    #[serde(flatten)]
    pub(crate) tolerance: Tolerance,
    /// Elements.
    pub(crate) elements: usize,
    /// Elements outside the tolerance.
    pub(crate) mismatches: usize,
    /// The first mismatch in row-major order.
    pub(crate) first_mismatch: Option<Mismatch>,
    /// Whether all elements are within the tolerance.
    pub(crate) passed: bool,
}

#[derive(Clone, Copy)]
struct Part {
    abs: f64,
    rel: f64,
    mismatches: usize,
    nans: usize,
    first: usize,
}

impl Part {
    const NOTHING: Part = Part { abs: 0.0, rel: 0.0, mismatches: 0, nans: 0, first: usize::MAX };
}

const CHUNK: usize = 1 << 16;

/// Compares `got`, whose elements are `dtype`, with `expected`.
pub(crate) fn compare(
    name: &str,
    file: &str,
    got: &Array,
    dtype: DType,
    expected: &Array,
    tolerance: Tolerance,
) -> Result<Comparison, String> {
    if got.shape != expected.shape {
        return Err(format!(
            "output `{name}` has shape {}, `{file}` has {}",
            shape_text(&got.shape),
            shape_text(&expected.shape)
        ));
    }
    let packed = dtype.is_packed() || matches!(expected.elem, Elem::Packed(_));
    let differs = if packed {
        !dtype.is_packed() || expected.elem.size() != dtype.size()
    } else {
        expected.elem == Elem::Void1 && dtype.size() != 1
    };
    if differs {
        return Err(format!("output `{name}` is {dtype}, `{file}` holds {}", expected.elem));
    }
    // In a packed array each of an element's four numbers counts.
    let width = codec::width(dtype);
    let n = got.len() * width;
    let part = |c: usize| {
        let mut p = Part::NOTHING;
        let from = c * CHUNK;
        let mut left = vec![0.0; CHUNK.min(n - from)];
        let mut right = left.clone();
        codec::numbers(got, dtype, from / width, &mut left);
        codec::numbers(expected, dtype, from / width, &mut right);
        for (i, (a, b)) in (from..).zip(left.into_iter().zip(right)) {
            if a == b || (a.is_nan() && b.is_nan()) {
                continue;
            }
            let difference = (a - b).abs();
            if tolerance.differs(a, b) {
                p.mismatches += 1;
                p.first = p.first.min(i);
            }
            if a.is_nan() || b.is_nan() {
                p.nans += 1;
            }
            if !difference.is_nan() {
                p.abs = p.abs.max(difference);
                if b != 0.0 && b.is_finite() {
                    p.rel = p.rel.max(difference / b.abs());
                }
            }
        }
        p
    };
    let total = (0..n.div_ceil(CHUNK)).into_par_iter().map(part).reduce(
        || Part::NOTHING,
        |x, y| Part {
            abs: x.abs.max(y.abs),
            rel: x.rel.max(y.rel),
            mismatches: x.mismatches + y.mismatches,
            nans: x.nans + y.nans,
            first: x.first.min(y.first),
        },
    );
    let first_mismatch = (total.first < n).then(|| {
        let inner = (width > 1).then_some(width);
        let shape = got.shape.iter().copied().chain(inner);
        Mismatch {
            index: coordinates(shape, total.first).to_vec(),
            got: codec::number(got, total.first, dtype),
            expected: codec::number(expected, total.first, dtype),
        }
    });
    Ok(Comparison {
        name: name.into(),
        file: file.into(),
        // The distance of a NaN is not a number.
        max_abs_error: if total.nans > 0 { f64::NAN } else { total.abs },
        max_rel_error: if total.nans > 0 { f64::NAN } else { total.rel },
        nan_mismatches: total.nans,
        tolerance,
        elements: n,
        mismatches: total.mismatches,
        first_mismatch,
        passed: total.mismatches == 0,
    })
}

impl Comparison {
    /// One line for the terminal, two after a failure.
    pub(crate) fn text(&self) -> String {
        let Tolerance { rtol, atol } = self.tolerance;
        let number = |x: f64| if x.is_nan() { "nan".to_owned() } else { format!("{x:.3e}") };
        let head = format!(
            "{}: max abs error {}, max rel error {} (rtol {rtol:e}, atol {atol:e})",
            self.name,
            number(self.max_abs_error),
            number(self.max_rel_error)
        );
        let nans = match self.nan_mismatches {
            0 => String::new(),
            n => format!(" ({n} are NaN on one side only)"),
        };
        match &self.first_mismatch {
            None => format!("{head}: matches {}", self.file),
            Some(m) => {
                let index: Vec<String> = m.index.iter().map(usize::to_string).collect();
                format!(
                    "{head}: {} of {} elements differ from {}{nans}\n  first at [{}]: got {}, expected {}",
                    self.mismatches,
                    self.elements,
                    self.file,
                    index.join(", "),
                    m.got,
                    m.expected
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(xs: &[f32]) -> Array {
        Array {
            elem: Elem::Device(DType::F32),
            shape: vec![xs.len()],
            data: xs.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>().into(),
        }
    }

    fn run(got: &[f32], expected: &[f32]) -> Comparison {
        let t = Tolerance { rtol: 0.0, atol: 0.1 };
        compare("o", "e.npy", &array(got), DType::F32, &array(expected), t).unwrap()
    }

    #[test]
    fn errors_and_first_mismatch() {
        let c = run(&[1.0, 2.0, 3.5], &[1.0, 2.05, 3.0]);
        assert_eq!((c.mismatches, c.passed), (1, false));
        assert!((c.max_abs_error - 0.5).abs() < 1e-6);
        assert_eq!(c.first_mismatch.unwrap().index, [2]);
        assert!(run(&[1.0], &[1.05]).passed);
    }

    #[test]
    fn nan_and_infinity() {
        assert!(run(&[f32::NAN, f32::INFINITY], &[f32::NAN, f32::INFINITY]).passed);
        let all = run(&[f32::NAN, f32::NAN], &[1.0, 2.0]);
        assert_eq!((all.mismatches, all.nan_mismatches, all.passed), (2, 2, false));
        assert!(all.max_abs_error.is_nan() && all.max_rel_error.is_nan());
        assert!(all.text().contains("max abs error nan, max rel error nan"), "{}", all.text());
        assert!(
            all.text().contains("2 of 2 elements differ from e.npy (2 are NaN on one side only)"),
            "{}",
            all.text()
        );
        assert!(serde_json::to_string(&all).unwrap().contains("\"max_abs_error\":null"));
        assert_eq!(run(&[1.0], &[f32::NAN]).mismatches, 1);
        assert_eq!(run(&[1.0], &[f32::INFINITY]).mismatches, 1);
        let t = Tolerance { rtol: 1.0, atol: 0.0 };
        let c = compare("o", "e", &array(&[1.0]), DType::F32, &array(&[f32::INFINITY]), t).unwrap();
        assert!(!c.passed, "an infinite expectation must not allow anything");
    }

    #[test]
    fn packed_elements_are_four_numbers() {
        let packed = |codes: [u8; 4], elem| Array { elem, shape: vec![1], data: codes.to_vec().into() };
        let got = packed([0x38, 0x40, 0x44, 0x48], Elem::Device(DType::F8E4M3FNX4));
        let close = packed([0x38, 0x41, 0x44, 0x00], Elem::Device(DType::U32));
        let t = Tolerance { rtol: 0.2, atol: 0.0 };
        let c = compare("o", "e", &got, DType::F8E4M3FNX4, &close, t).unwrap();
        assert_eq!((c.elements, c.mismatches), (4, 1));
        let m = c.first_mismatch.unwrap();
        assert_eq!((m.index, m.got, m.expected), (vec![0, 3], 4.0, 0.0));
        let wrong = packed([0; 4], Elem::Packed(4));
        assert!(compare("o", "e", &array(&[1.0]), DType::F32, &wrong, t).unwrap_err().contains("packed"));
    }

    #[test]
    fn shapes_must_agree() {
        let t = Tolerance::of(DType::F32);
        let e = compare("o", "e.npy", &array(&[1.0]), DType::F32, &array(&[1.0, 2.0]), t).unwrap_err();
        assert_eq!(e, "output `o` has shape (1,), `e.npy` has (2,)");
    }
}
