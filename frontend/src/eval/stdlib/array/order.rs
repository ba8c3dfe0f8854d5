//! Orders and running sums along an axis, and rows that a list of positions picks.

use std::cmp::Ordering;

use nki_diag::Span;
use nki_isa::{DType, Imm};

use super::{Array, float, product, wrong};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;
use crate::host::HostDtype;

/// Ascending, with NaN last.
fn order(a: Imm, b: Imm) -> Ordering {
    match (a, b) {
        (Imm::Int(a), Imm::Int(b)) => a.cmp(&b),
        (a, b) => {
            let (a, b) = (float(a), float(b));
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
    }
}

impl Array {
    /// The array with each line along an axis replaced by what `of` makes of it.
    fn along(&self, axis: usize, dtype: HostDtype, mut of: impl FnMut(&[Imm]) -> Vec<Imm>) -> Array {
        let stride = product(&self.shape[axis + 1..]);
        let count = self.shape[axis];
        let mut values = self.values.clone();
        for outer in 0..product(&self.shape[..axis]) {
            for inner in 0..stride {
                let at = |i: usize| (outer * count + i) * stride + inner;
                let line: Vec<Imm> = (0..count).map(|i| self.values[at(i)]).collect();
                for (i, value) in of(&line).into_iter().enumerate() {
                    values[at(i)] = value;
                }
            }
        }
        Array::new(dtype, self.shape.clone(), values)
    }

    /// The array to work on and its axis: without an axis, all elements in a row.
    fn by_axis(&self, axis: Option<Value>, span: Span) -> EvalResult<(Array, usize)> {
        let n = self.shape.len() as i64;
        match axis {
            None | Some(Value::None) => Ok((self.flat(), 0)),
            Some(value) => match value.as_int().filter(|a| (-n..n).contains(a)) {
                Some(axis) => Ok((self.clone(), axis.rem_euclid(n) as usize)),
                None => Err(wrong(format!("axis {value:?} of an array of {n} dimensions"), span)),
            },
        }
    }

    /// `argsort(axis=-1, kind=None, order=None, stable=None)`
    pub(super) fn argsort(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let [axis, kind, field, stable] = args.bind(interp, "argsort", ["axis", "kind", "order", "stable"], 0)?;
        if field.is_some_and(|v| !v.is_none()) {
            return Err(wrong("argsort(order=...), which is for arrays of records", span));
        }
        let stable = stable.is_some_and(|v| matches!(v, Value::Bool(true)))
            || matches!(&kind, Some(Value::Str(kind)) if matches!(&**kind, "stable" | "mergesort"));
        let (array, axis) = self.by_axis(axis.or(Some(Value::Int(-1))), span)?;
        let mut ties = false;
        let sorted = array.along(axis, HostDtype::I64, |line| {
            let mut at: Vec<usize> = (0..line.len()).collect();
            at.sort_by(|&a, &b| order(line[a], line[b]));
            ties |= at.windows(2).any(|pair| order(line[pair[0]], line[pair[1]]) == Ordering::Equal);
            at.into_iter().map(|i| Imm::Int(i as i64)).collect()
        });
        if ties && !stable {
            let message = "np.argsort of equal elements, whose order NumPy does not define";
            return Err(Raise::at("value-error", message, span, "here").help("pass kind=\"stable\""));
        }
        Ok(sorted.value())
    }

    /// `cumsum(axis=None, dtype=None)`: each sum is rounded to the type of the result.
    pub(super) fn cumsum(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let [axis, dtype] = args.bind(interp, "cumsum", ["axis", "dtype"], 0)?;
        let dtype = match dtype.filter(|v| !v.is_none()) {
            Some(dtype) => super::dtype_of(&dtype, "cumsum", span)?,
            None => match self.dtype {
                HostDtype::Device(DType::U8 | DType::U16 | DType::U32) | HostDtype::U64 => HostDtype::U64,
                of if of.is_float() => of,
                _ => HostDtype::I64,
            },
        };
        let (array, axis) = self.astype(dtype).by_axis(axis, span)?;
        let summed = array.along(axis, dtype, |line| {
            let mut sum: Option<Imm> = None;
            let mut next = |x: Imm| {
                let new = match (sum, x) {
                    (None, x) => x,
                    (Some(Imm::Int(a)), Imm::Int(b)) => Imm::Int(a.wrapping_add(b)),
                    (Some(a), b) => Imm::Float(float(a) + float(b)),
                };
                *sum.insert(dtype.fit(new))
            };
            line.iter().map(|x| next(*x)).collect()
        });
        Ok(summed.laid_out_as(&[&array]).value())
    }
}
