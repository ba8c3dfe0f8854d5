//! Sorting and cumulative sums along an axis, and selection of rows by index.

use std::cmp::Ordering;

use nki_diag::Span;
use nki_isa::{DType, Imm};

use super::{Array, float, product, wrong};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;
use crate::host::HostDtype;

/// Ascending order, with NaN last.
pub(crate) fn order(a: Imm, b: Imm) -> Ordering {
    match (a, b) {
        (Imm::Int(a), Imm::Int(b)) => a.cmp(&b),
        (a, b) => {
            let (a, b) = (float(a), float(b));
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
    }
}

/// The index of an axis of an array of `n` dimensions, where negative numbers count from the end;
/// otherwise an error message.
pub(crate) fn axis_of(value: &Value, n: usize) -> Result<usize, String> {
    let n = n as i64;
    let axis = value.as_int().filter(|axis| (-n..n).contains(axis));
    let axis = axis.ok_or_else(|| format!("axis {value:?} of an array of {n} dimensions"))?;
    Ok(axis.rem_euclid(n) as usize)
}

/// The type in which NumPy sums.
pub(super) fn sum_type(dtype: HostDtype) -> HostDtype {
    match dtype {
        HostDtype::Device(DType::U8 | DType::U16 | DType::U32) | HostDtype::U64 => HostDtype::U64,
        of if of.is_float() => of,
        _ => HostDtype::I64,
    }
}

impl Array {
    /// Replaces each line along an axis with the result of `of`.
    pub(crate) fn along(&self, axis: usize, dtype: HostDtype, mut of: impl FnMut(&[Imm]) -> Vec<Imm>) -> Array {
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

    /// Replaces each line along an axis with a number.
    fn reduced(
        &self,
        axis: usize,
        keeps: bool,
        dtype: HostDtype,
        mut of: impl FnMut(&[Imm]) -> EvalResult<Imm>,
    ) -> EvalResult<Array> {
        let stride = product(&self.shape[axis + 1..]);
        let count = self.shape[axis];
        let mut values = Vec::new();
        for outer in 0..product(&self.shape[..axis]) {
            for inner in 0..stride {
                let line: Vec<Imm> = (0..count).map(|i| self.values[(outer * count + i) * stride + inner]).collect();
                values.push(dtype.fit(of(&line)?));
            }
        }
        let mut shape = self.shape.clone();
        match keeps {
            true => shape[axis] = 1,
            false => drop(shape.remove(axis)),
        }
        Ok(Array::new(dtype, shape, values))
    }

    /// `sum`, `prod`, `mean`, `min`, `max`, `any`, `all` `(axis=None, keepdims=False)`
    pub(super) fn reduce(&self, interp: &mut Interp<'_>, what: &str, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let [axis, keeps] = args.bind(interp, what, ["axis", "keepdims"], 0)?;
        let keeps = keeps.map_or(Ok(false), |keeps| interp.truth(&keeps, span))?;
        let Some(axis) = axis.filter(|axis| !axis.is_none()) else {
            let total = self.total(what, span)?;
            return match keeps {
                true => {
                    let one = Array::from_value(&total, None, span)?;
                    Ok(Array::new(one.dtype, vec![1; self.shape.len()], one.values).value())
                }
                false => Ok(total),
            };
        };
        let (array, axis) = self.by_axis(Some(axis), span)?;
        let dtype = match what {
            "any" | "all" => HostDtype::Device(DType::Bool),
            "sum" | "prod" => sum_type(self.dtype),
            "mean" if !self.dtype.is_float() => HostDtype::F64,
            _ => self.dtype,
        };
        // NumPy sums floats pairwise along the last axis, and sequentially along other axes.
        let in_pairs = axis + 1 == array.shape.len();
        let made = array.reduced(axis, keeps, dtype, |line| {
            let line = Array::new(self.dtype, vec![line.len()], line.to_vec());
            if self.dtype.is_float() && !in_pairs && matches!(what, "sum" | "mean") {
                let half = what == "mean" && self.dtype == HostDtype::Device(DType::F16);
                let within = if half { HostDtype::Device(DType::F32) } else { dtype };
                let sum = line.values.iter().fold(0.0, |sum, x| float(within.fit(Imm::Float(sum + float(*x)))));
                return Ok(Imm::Float(if what == "mean" { sum / line.values.len() as f64 } else { sum }));
            }
            Ok(Array::from_value(&line.total(what, span)?, None, span)?.values[0])
        })?;
        Ok(made.simple())
    }

    /// `argmax(axis=None, keepdims=False)` and `argmin`: the first of equal elements; NaN counts as
    /// the extreme.
    pub(super) fn extreme_place(&self, interp: &mut Interp<'_>, what: &str, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let [axis, keeps] = args.bind(interp, what, ["axis", "keepdims"], 0)?;
        let keeps = keeps.map_or(Ok(false), |keeps| interp.truth(&keeps, span))?;
        let (array, axis) = self.by_axis(axis, span)?;
        let beats = |new: Imm, old: Imm| match (float(new).is_nan(), float(old).is_nan()) {
            (_, true) => false,
            (true, false) => true,
            _ if what == "argmax" => order(new, old).is_gt(),
            _ => order(new, old).is_lt(),
        };
        let made = array.reduced(axis, keeps, HostDtype::I64, |line| {
            let places = (0..line.len()).reduce(|best, i| if beats(line[i], line[best]) { i } else { best });
            places
                .map(|place| Imm::Int(place as i64))
                .ok_or_else(|| wrong(format!("{what} of an array without elements"), span))
        })?;
        Ok(made.simple())
    }

    /// The array to process and its axis. Without an axis, all elements form one dimension.
    fn by_axis(&self, axis: Option<Value>, span: Span) -> EvalResult<(Array, usize)> {
        match axis {
            None | Some(Value::None) => Ok((self.flat(), 0)),
            Some(value) => match axis_of(&value, self.shape.len()) {
                Ok(axis) => Ok((self.clone(), axis)),
                Err(message) => Err(wrong(message, span)),
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
            None => sum_type(self.dtype),
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
