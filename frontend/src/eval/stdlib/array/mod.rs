//! Arrays of the host: NumPy's, as far as a kernel needs constants.
//!
//! They are values of the meta-program, such as lists are. The machine sees one when `nl.shared_constant` puts it into HBM.

mod arithmetic;
mod dtype;
mod layout;
mod object;
mod order;
mod places;
mod reduce;

use std::fmt;
use std::sync::Arc;

use nki_diag::Span;
use nki_isa::dtype::{bits_to_f32, bits_to_i64, encode_f32, encode_i64, read_bits};
use nki_isa::{DType, Imm};

use self::arithmetic::float_for;
pub(crate) use self::arithmetic::{broadcast, choose, compare, concatenate, join, matmul, operate};
use self::dtype::default_dtype;
pub(crate) use self::dtype::{device_dtype, dtype_of};
use self::layout::Layout;
pub(crate) use self::object::{NdArray, charged};
pub(crate) use self::order::{axis_of, order};
use self::places::{Dim, gather};
pub(crate) use self::reduce::{maximum, minimum};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::value::Value;
use crate::host::{HostArray, HostDtype};

/// Elements up to which an array has a value here.
pub(crate) const MOST_ELEMENTS: usize = HostArray::MOST_ELEMENTS;

/// The elements of an array at one time: row-major.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) dtype: HostDtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<Imm>,
    /// How its value lies in memory.
    layout: Layout,
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array({}, {:?})", self.dtype, self.shape)
    }
}

/// The elements of the array that a value is.
pub(crate) fn of(value: &Value) -> Option<Array> {
    value.downcast().map(NdArray::elements)
}

/// Whether a value is an array.
pub(crate) fn is(value: &Value) -> bool {
    value.downcast::<NdArray>().is_some()
}

fn product(shape: &[usize]) -> usize {
    shape.iter().fold(1, |n, d| n.saturating_mul(*d))
}

/// Refuses a result that is too large for a constant.
pub(crate) fn bounded(shape: &[usize], span: Span) -> EvalResult<()> {
    if product(shape) <= MOST_ELEMENTS {
        return Ok(());
    }
    let message = format!("an array of shape {} is too large for a constant ({MOST_ELEMENTS} elements)", text(shape));
    Err(wrong(message, span))
}

fn text(shape: &[usize]) -> String {
    let one = if shape.len() == 1 { "," } else { "" };
    let items: Vec<String> = shape.iter().map(|d| (*d as i64).to_string()).collect();
    format!("({}{one})", items.join(", "))
}

fn wrong(message: impl Into<String>, span: Span) -> Box<Raise> {
    Raise::at("value-error", message.into(), span, "here")
}

impl Array {
    pub(crate) fn new(dtype: HostDtype, shape: Vec<usize>, values: Vec<Imm>) -> Array {
        Array { dtype, shape, values, layout: Layout::default() }
    }

    pub(crate) fn value(self) -> Value {
        Value::object(NdArray::new(self))
    }

    pub(crate) fn filled(dtype: HostDtype, shape: Vec<usize>, value: Imm) -> Array {
        let n = product(&shape);
        Array::new(dtype, shape, vec![dtype.fit(value); n])
    }

    /// Each element from its position.
    pub(crate) fn from_fn(dtype: HostDtype, shape: Vec<usize>, mut of: impl FnMut(usize) -> Imm) -> Array {
        let n = product(&shape);
        Array::new(dtype, shape, (0..n).map(|i| dtype.fit(of(i))).collect())
    }

    /// What the host hands over.
    pub(crate) fn from_host(array: &HostArray) -> Array {
        let size = array.dtype.size();
        let values = array.data.chunks_exact(size.max(1)).map(|b| {
            let wide = || <[u8; 8]>::try_from(b).unwrap_or_default();
            match array.dtype {
                HostDtype::F64 => Imm::Float(f64::from_le_bytes(wide())),
                HostDtype::I64 | HostDtype::U64 => Imm::Int(i64::from_le_bytes(wide())),
                HostDtype::Device(d) if d.is_float() => Imm::Float(f64::from(bits_to_f32(d, read_bits(b)))),
                HostDtype::Device(d) => Imm::Int(bits_to_i64(d, read_bits(b))),
            }
        });
        Array::new(array.dtype, array.shape.clone(), values.collect())
    }

    /// The elements as the machine stores them.
    pub(crate) fn bytes(&self, dtype: DType) -> Arc<[u8]> {
        let mut out = vec![0; self.values.len() * dtype.size()];
        if dtype.is_float() {
            let floats: Vec<f32> = self.values.iter().map(|v| v.as_f32()).collect();
            encode_f32(dtype, &floats, &mut out);
        } else {
            let fitted = |v: &Imm| match HostDtype::Device(dtype).fit(*v) {
                Imm::Int(i) => i,
                Imm::Float(x) => x as i64,
            };
            let ints: Vec<i64> = self.values.iter().map(fitted).collect();
            encode_i64(dtype, &ints, &mut out);
        }
        out.into()
    }

    /// From numbers, arrays and sequences of them.
    pub(crate) fn from_value(value: &Value, dtype: Option<HostDtype>, span: Span) -> EvalResult<Array> {
        if let Some(array) = of(value) {
            return Ok(match dtype {
                Some(dtype) => array.astype(dtype),
                None => array,
            });
        }
        let (mut shape, mut numbers) = (Vec::new(), Vec::new());
        let mut inner = None;
        if !flatten(value, 0, &mut shape, &mut numbers, &mut inner) {
            if numbers.len() >= MOST_ELEMENTS {
                let message = format!("nested lists of more than {MOST_ELEMENTS} numbers are too large for a constant");
                return Err(wrong(message, span));
            }
            let message =
                format!("{} is no array: it must be nested lists of numbers, all rows of one length", value.a_type());
            return Err(wrong(message, span));
        }
        let dtype = dtype.or(inner).unwrap_or_else(|| default_dtype(&numbers));
        let values = numbers.iter().map(|n| dtype.fit(imm(n).unwrap_or(Imm::Int(0)))).collect();
        Ok(Array::new(dtype, shape, values))
    }

    pub(crate) fn astype(&self, dtype: HostDtype) -> Array {
        let values = self.values.iter().map(|v| dtype.fit(*v)).collect();
        Array { layout: self.layout.clone(), ..Array::new(dtype, self.shape.clone(), values) }
    }

    /// A number or an array.
    pub(crate) fn simple(self) -> Value {
        match (self.shape.is_empty(), self.values.first()) {
            (true, Some(&v)) => scalar(self.dtype, v),
            _ => self.value(),
        }
    }

    fn strides(&self) -> Vec<i64> {
        let mut strides = vec![1; self.shape.len()];
        for i in (1..self.shape.len()).rev() {
            strides[i - 1] = strides[i] * self.shape[i] as i64;
        }
        strides
    }

    /// This array as NumPy lays out what it computes from others.
    pub(crate) fn laid_out_as(self, operands: &[&Array]) -> Array {
        let layout = Layout::of_result(operands, self.shape.len());
        Array { layout, ..self }
    }

    /// Extent and stride of each dimension.
    fn dims(&self) -> Vec<Dim> {
        self.shape.iter().copied().zip(self.strides()).collect()
    }

    /// Broadcast to a shape that fits.
    pub(crate) fn spread(&self, shape: &[usize]) -> Array {
        let (own, missing) = (self.dims(), shape.len() - self.shape.len());
        let source = |i: usize| i.checked_sub(missing).filter(|&i| own[i].0 != 1);
        let dims: Vec<Dim> = (0..shape.len()).map(|i| (shape[i], source(i).map_or(0, |i| own[i].1))).collect();
        let layout = self.layout.spread((0..shape.len()).map(source));
        Array { layout, ..Array::new(self.dtype, shape.to_vec(), gather(&self.values, 0, &dims)) }
    }

    /// All elements in a row.
    pub(crate) fn flat(&self) -> Array {
        Array::new(self.dtype, vec![self.values.len()], self.values.clone())
    }

    /// Nested lists.
    fn to_list(&self) -> Value {
        if self.shape.is_empty() {
            return self.clone().simple();
        }
        Value::list(self.rows().map(|row| row.to_list()).collect())
    }

    fn rows(&self) -> impl Iterator<Item = Array> + '_ {
        let inner: Vec<usize> = self.shape.get(1..).unwrap_or(&[]).to_vec();
        let size = product(&inner);
        (0..self.shape.first().copied().unwrap_or(0)).map(move |i| {
            let values = self.values[i * size..(i + 1) * size].to_vec();
            Array::new(self.dtype, inner.clone(), values)
        })
    }

    /// A function of floats on each element. Integers become floats of a width that holds them, as NumPy's functions do.
    pub(crate) fn map(&self, of: impl Fn(f64) -> f64) -> Array {
        let dtype = if self.dtype.is_float() { self.dtype } else { float_for(self.dtype) };
        self.each(dtype, |x| Imm::Float(of(float(x))))
    }

    /// An array of this shape and layout.
    pub(crate) fn each(&self, dtype: HostDtype, of: impl Fn(Imm) -> Imm) -> Array {
        Array::from_fn(dtype, self.shape.clone(), |i| of(self.values[i])).laid_out_as(&[self])
    }
}

pub(crate) fn float(v: Imm) -> f64 {
    match v {
        Imm::Int(i) => i as f64,
        Imm::Float(x) => x,
    }
}

/// The Python number of an element.
pub(crate) fn scalar(dtype: HostDtype, v: Imm) -> Value {
    match v {
        Imm::Int(i) if dtype == HostDtype::Device(DType::Bool) => Value::Bool(i != 0),
        Imm::Int(i) => Value::Int(i),
        Imm::Float(x) => Value::Float(x),
    }
}

fn imm(value: &Value) -> Option<Imm> {
    match value {
        Value::Float(x) => Some(Imm::Float(*x)),
        other => other.as_int().map(Imm::Int),
    }
}

fn flatten(
    value: &Value,
    depth: usize,
    shape: &mut Vec<usize>,
    out: &mut Vec<Value>,
    dtype: &mut Option<HostDtype>,
) -> bool {
    let items = match (value.sequence(), of(value)) {
        (Some(items), _) => Some(items),
        (None, Some(array)) if !array.shape.is_empty() => {
            *dtype = Some(array.dtype);
            array.rows().map(|r| r.simple()).collect::<Vec<_>>().into()
        }
        (None, Some(array)) => return flatten(&array.simple(), depth, shape, out, dtype),
        (None, None) => match value {
            Value::Range(range) if range.len() <= MOST_ELEMENTS as i64 => {
                Some((0..range.len()).map(|i| Value::Int(range.at(i))).collect())
            }
            _ => None,
        },
    };
    if let Some(items) = items {
        match shape.get(depth) {
            Some(&known) if known != items.len() => return false,
            Some(_) => {}
            None if out.is_empty() => shape.push(items.len()),
            None => return false,
        }
        return items.iter().all(|v| flatten(v, depth + 1, shape, out, dtype));
    }
    if depth != shape.len() || imm(value).is_none() || out.len() >= MOST_ELEMENTS {
        return false;
    }
    out.push(value.clone());
    true
}

/// An array of the host, unless it is too large for a constant.
pub(crate) fn host_array(interp: &Interp<'_>, array: &HostArray) -> Value {
    let n = array.shape.iter().product::<usize>();
    if n > MOST_ELEMENTS {
        return interp.opaque(
            "an array",
            Some(&format!("with {n} elements it is too large for a constant of a kernel: make it an argument")),
        );
    }
    Value::object(NdArray::new(Array::from_host(array)).read_only())
}
