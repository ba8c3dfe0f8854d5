//! One number of all elements, accumulated in the precision and order of NumPy.

use std::ops::Add;

use nki_diag::Span;
use nki_isa::{DType, Imm};

use super::{Array, float, scalar, wrong};
use crate::eval::error::EvalResult;
use crate::eval::value::Value;
use crate::host::HostDtype;

/// Elements that NumPy converts at once.
const BUFFER: usize = 8192;

/// NumPy's sum of floats: eight partial sums of up to 128 elements, and the sums of halves of more.
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

/// The same in pieces that fit into NumPy's buffer, where it converts the elements.
fn buffered<T: Copy + Default + Add<Output = T>>(values: &[T]) -> T {
    values.chunks(BUFFER).fold(T::default(), |sum, piece| sum + pairwise(piece))
}

/// The smaller of two numbers; NaN if one is.
pub(crate) fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

/// The larger of two numbers; NaN if one is.
pub(crate) fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

impl Array {
    fn floats(&self) -> Vec<f64> {
        self.values.iter().map(|v| float(*v)).collect()
    }

    fn singles(&self) -> Vec<f32> {
        self.values.iter().map(|v| float(*v) as f32).collect()
    }

    /// A number as one of the array's type.
    fn rounded(&self, x: f64) -> f64 {
        float(self.dtype.fit(Imm::Float(x)))
    }

    fn float_sum(&self) -> f64 {
        match self.dtype {
            HostDtype::Device(DType::F32) => f64::from(pairwise(&self.singles())),
            HostDtype::Device(DType::F16) => self.rounded(f64::from(pairwise(&self.singles()))),
            // Other types of floats are rounded after each element.
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

    /// One number of all elements: `sum`, `min`, `max`, `mean`, `prod`, `any`, `all`.
    pub(crate) fn total(&self, what: &str, span: Span) -> EvalResult<Value> {
        let extremum = |of: fn(f64, f64) -> f64, of_ints: fn(i64, i64) -> i64| {
            let found = if self.dtype.is_float() {
                self.floats().into_iter().reduce(of).map(Imm::Float)
            } else {
                self.values.iter().filter_map(|v| v.as_i64()).reduce(of_ints).map(Imm::Int)
            };
            let found = found.ok_or_else(|| wrong(format!("{what} of an array without elements"), span))?;
            Ok(scalar(self.dtype, found))
        };
        let ints = || self.values.iter().map(|v| HostDtype::I64.fit(*v).as_i64().unwrap_or(0));
        match what {
            "sum" if self.dtype.is_float() => Ok(Value::Float(self.float_sum())),
            "sum" => Ok(Value::Int(ints().fold(0, i64::wrapping_add))),
            "prod" if self.dtype.is_float() => {
                Ok(Value::Float(self.floats().into_iter().fold(1.0, |product, x| self.rounded(product * x))))
            }
            "prod" => Ok(Value::Int(ints().fold(1, i64::wrapping_mul))),
            "mean" => Ok(Value::Float(self.mean())),
            "min" => extremum(minimum, i64::min),
            "max" => extremum(maximum, i64::max),
            "any" => Ok(Value::Bool(self.values.iter().any(|v| float(*v) != 0.0))),
            _ => Ok(Value::Bool(self.values.iter().all(|v| float(*v) != 0.0))),
        }
    }
}
