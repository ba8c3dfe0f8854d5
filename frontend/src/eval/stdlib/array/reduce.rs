//! Reductions to a single number, with the precision and order of NumPy.

use std::ops::Add;

use nki_diag::Span;
use nki_isa::{DType, Imm};

use super::order::sum_type;
use super::{Array, float, wrong};
use crate::eval::error::EvalResult;
use crate::eval::stdlib::scalar;
use crate::eval::value::Value;
use crate::host::HostDtype;

/// The number of elements that NumPy converts at a time.
const BUFFER: usize = 8192;

/// NumPy's pairwise sum of floats: eight partial sums for up to 128 elements, and recursive halving
/// above that.
fn pairwise<T: Copy + Default + Add<Output = T>>(values: &[T]) -> T {
    let n = values.len();
    if n < 8 {
        return values.iter().fold(T::default(), |sum, x| sum + *x);
    }
    if n > 128 {
        let half = n / 2 - n / 2 % 8;
        return pairwise(&values[..half]) + pairwise(&values[half..]);
    }
    let blocks = values.chunks_exact(8);
    let rest = blocks.remainder();
    let mut r = [T::default(); 8];
    for (index, block) in blocks.enumerate() {
        for (sum, x) in r.iter_mut().zip(block) {
            *sum = if index == 0 { *x } else { *sum + *x };
        }
    }
    let sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    rest.iter().fold(sum, |sum, x| sum + *x)
}

/// The same in pieces of the size of NumPy's buffer, for elements that it converts.
fn buffered<T: Copy + Default + Add<Output = T>>(values: &[T]) -> T {
    values.chunks(BUFFER).fold(T::default(), |sum, piece| sum + pairwise(piece))
}

/// The smaller of two numbers; NaN if either is NaN.
pub(crate) fn minimum(a: Imm, b: Imm) -> Imm {
    match (a, b) {
        (Imm::Int(a), Imm::Int(b)) => Imm::Int(a.min(b)),
        (a, b) if float(a).is_nan() || float(b).is_nan() => Imm::Float(f64::NAN),
        (a, b) => Imm::Float(float(a).min(float(b))),
    }
}

/// The larger of two numbers; NaN if either is NaN.
pub(crate) fn maximum(a: Imm, b: Imm) -> Imm {
    match (a, b) {
        (Imm::Int(a), Imm::Int(b)) => Imm::Int(a.max(b)),
        (a, b) if float(a).is_nan() || float(b).is_nan() => Imm::Float(f64::NAN),
        (a, b) => Imm::Float(float(a).max(float(b))),
    }
}

impl Array {
    fn floats(&self) -> Vec<f64> {
        self.values.iter().map(|v| float(*v)).collect()
    }

    fn singles(&self) -> Vec<f32> {
        self.values.iter().map(|v| float(*v) as f32).collect()
    }

    /// Rounds a number to the array's type.
    fn rounded(&self, x: f64) -> f64 {
        float(self.dtype.fit(Imm::Float(x)))
    }

    fn float_sum(&self) -> f64 {
        match self.dtype {
            HostDtype::Device(DType::F32) => f64::from(pairwise(&self.singles())),
            HostDtype::Device(DType::F16) => self.rounded(f64::from(pairwise(&self.singles()))),
            // Other floating-point types are rounded after each element.
            HostDtype::Device(_) => self.floats().into_iter().fold(0.0, |sum, x| self.rounded(sum + x)),
            _ => pairwise(&self.floats()),
        }
    }

    fn mean(&self) -> f64 {
        let n = self.values.len() as f64;
        match self.dtype {
            HostDtype::Device(DType::F16) => self.rounded(f64::from(buffered(&self.singles())) / n),
            dtype if dtype.is_float() => self.rounded(self.float_sum() / n),
            _ => buffered(&self.floats()) / n,
        }
    }

    /// Reduces all elements to a number: `sum`, `min`, `max`, `mean`, `prod`, `any`, `all`.
    pub(crate) fn total(&self, what: &str, span: Span) -> EvalResult<Value> {
        let extremum = |of: fn(Imm, Imm) -> Imm| {
            let found = self.values.iter().copied().reduce(of);
            found.ok_or_else(|| wrong(format!("{what} of an array without elements"), span))
        };
        let sum_type = sum_type(self.dtype);
        let bool_type = HostDtype::Device(DType::Bool);
        let ints = || self.values.iter().map(|v| HostDtype::I64.fit(*v).as_i64().unwrap_or(0));
        let (dtype, total) = match what {
            "sum" if self.dtype.is_float() => (self.dtype, Imm::Float(self.float_sum())),
            "sum" => (sum_type, Imm::Int(ints().fold(0, i64::wrapping_add))),
            "prod" if self.dtype.is_float() => {
                let product = self.floats().into_iter().fold(1.0, |product, x| self.rounded(product * x));
                (self.dtype, Imm::Float(product))
            }
            "prod" => (sum_type, Imm::Int(ints().fold(1, i64::wrapping_mul))),
            "mean" => (if self.dtype.is_float() { self.dtype } else { HostDtype::F64 }, Imm::Float(self.mean())),
            "min" => (self.dtype, extremum(minimum)?),
            "max" => (self.dtype, extremum(maximum)?),
            "any" => (bool_type, Imm::Int(i64::from(self.values.iter().any(|v| float(*v) != 0.0)))),
            _ => (bool_type, Imm::Int(i64::from(self.values.iter().all(|v| float(*v) != 0.0)))),
        };
        Ok(scalar::value(dtype, total))
    }
}
