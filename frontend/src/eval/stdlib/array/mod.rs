//! NumPy arrays of the host, to the extent that kernels need constants.
//!
//! Arrays are values of the meta-program, like lists. The machine receives one when
//! `nl.shared_constant` stores it in HBM.

mod arithmetic;
mod dtype;
mod layout;
mod object;
mod order;
mod places;
mod reduce;
pub(super) mod show;

use std::fmt;
use std::sync::Arc;

use nki_diag::Span;
use nki_isa::dtype::{bits_to_f32, bits_to_i64, encode_f32, encode_i64, read_bits};
use nki_isa::{DType, Imm};

use self::arithmetic::float_for;
pub(crate) use self::arithmetic::{
    broadcast, choose, clip, common, compare, concatenate, join, join_floats, matmul, operate, unary,
};
pub(crate) use self::dtype::{device_dtype, dtype_of};
use self::layout::Layout;
pub(crate) use self::object::{NdArray, charged};
pub(crate) use self::order::{axis_of, order};
use self::places::{Dim, gather};
pub(crate) use self::reduce::{maximum, minimum};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::stdlib::scalar;
use crate::eval::value::Value;
use crate::host::{HostArray, HostDtype};

/// Maximum number of elements of an array that has a value here.
pub(crate) const MOST_ELEMENTS: usize = HostArray::MOST_ELEMENTS;

/// A snapshot of the elements of an array in row-major order.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) dtype: HostDtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<Imm>,
    /// The layout of the array in memory.
    layout: Layout,
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array({}, {:?})", self.dtype, self.shape)
    }
}

/// The elements of an array value.
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

/// Rejects a result that is too large for a constant.
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

    /// An array in which each element is computed from its index.
    pub(crate) fn from_fn(dtype: HostDtype, shape: Vec<usize>, mut of: impl FnMut(usize) -> Imm) -> Array {
        let n = product(&shape);
        Array::new(dtype, shape, (0..n).map(|i| dtype.fit(of(i))).collect())
    }

    /// An array received from the host.
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

    /// The elements in the machine's storage format.
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

    /// An array from a number, an array, or nested sequences of them.
    pub(crate) fn from_value(value: &Value, dtype: Option<HostDtype>, span: Span) -> EvalResult<Array> {
        if let Some(array) = of(value) {
            return Ok(match dtype {
                Some(dtype) => array.astype(dtype),
                None => array,
            });
        }
        let mut nested = Nested { shape: Vec::new(), numbers: Vec::new(), dtype: None, wanted: dtype, span };
        if !nested.add(value, 0)? {
            if nested.numbers.len() >= MOST_ELEMENTS {
                let message = format!("nested lists of more than {MOST_ELEMENTS} numbers are too large for a constant");
                return Err(wrong(message, span));
            }
            let message =
                format!("{} is not an array: write nested lists of numbers with rows of equal length", value.a_type());
            return Err(wrong(message, span));
        }
        // NumPy's type for an empty array is float64.
        let own = nested.dtype.unwrap_or(HostDtype::F64);
        let values = nested.numbers.iter().map(|n| own.fit(*n)).collect();
        Array::new(own, nested.shape, values).converted(dtype.unwrap_or(own), span)
    }

    /// The program's `astype`. If a float does not fit an integer type, NumPy's result depends on
    /// the machine, so the conversion is an error.
    pub(crate) fn converted(&self, dtype: HostDtype, span: Span) -> EvalResult<Array> {
        let limit = match dtype {
            _ if dtype.is_float() || dtype == HostDtype::Device(DType::Bool) => return Ok(self.astype(dtype)),
            HostDtype::I64 | HostDtype::U64 | HostDtype::Device(DType::U32) => 2f64.powi(63),
            _ => 2f64.powi(31),
        };
        let fits = |v: &Imm| match v {
            Imm::Int(_) => true,
            Imm::Float(x) => -limit <= x.trunc() && x.trunc() < limit,
        };
        match self.values.iter().find(|v| !fits(v)) {
            None => Ok(self.astype(dtype)),
            Some(v) => {
                let message = format!("{} is out of bounds for {dtype}", float(*v));
                Err(Raise::at("integer-overflow", message, span, "NumPy's result depends on the machine"))
            }
        }
    }

    pub(crate) fn astype(&self, dtype: HostDtype) -> Array {
        let values = self.values.iter().map(|v| dtype.fit(*v)).collect();
        Array { layout: self.layout.clone(), ..Array::new(dtype, self.shape.clone(), values) }
    }

    /// A scalar if there are no dimensions, otherwise an array.
    pub(crate) fn simple(self) -> Value {
        match (self.shape.is_empty(), self.values.first()) {
            (true, Some(&v)) => scalar::value(self.dtype, v),
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

    /// This array with the layout that NumPy uses for results computed from the operands.
    pub(crate) fn laid_out_as(self, operands: &[&Array]) -> Array {
        let layout = Layout::of_result(operands, self.shape.len());
        Array { layout, ..self }
    }

    /// The extent and stride of each dimension.
    fn dims(&self) -> Vec<Dim> {
        self.shape.iter().copied().zip(self.strides()).collect()
    }

    /// Broadcasts to a compatible shape.
    pub(crate) fn spread(&self, shape: &[usize]) -> Array {
        let (own, missing) = (self.dims(), shape.len() - self.shape.len());
        let source = |i: usize| i.checked_sub(missing).filter(|&i| own[i].0 != 1);
        let dims: Vec<Dim> = (0..shape.len()).map(|i| (shape[i], source(i).map_or(0, |i| own[i].1))).collect();
        let layout = self.layout.spread((0..shape.len()).map(source));
        Array { layout, ..Array::new(self.dtype, shape.to_vec(), gather(&self.values, 0, &dims)) }
    }

    /// All elements as one dimension.
    pub(crate) fn flat(&self) -> Array {
        Array::new(self.dtype, vec![self.values.len()], self.values.clone())
    }

    /// Converts to nested lists.
    fn to_list(&self) -> Value {
        if let (true, Some(&v)) = (self.shape.is_empty(), self.values.first()) {
            return python_number(self.dtype, v);
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

    /// Applies a function of floats to each element. Integers are converted to floats wide enough
    /// for them, as in NumPy's functions.
    pub(crate) fn map(&self, of: impl Fn(f64) -> f64) -> Array {
        let dtype = if self.dtype.is_float() { self.dtype } else { float_for(self.dtype) };
        self.each(dtype, |x| Imm::Float(of(float(x))))
    }

    /// Applies a function to each element; the result has this shape and layout.
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
pub(crate) fn python_number(dtype: HostDtype, v: Imm) -> Value {
    match v {
        Imm::Int(i) if dtype == HostDtype::Device(DType::Bool) => Value::Bool(i != 0),
        Imm::Int(i) => Value::Int(i),
        Imm::Float(x) => Value::Float(x),
    }
}

/// The number in a value, and its type: bool, int64 or float64 for Python's types.
fn imm(value: &Value) -> Option<(Imm, HostDtype)> {
    Some(match value {
        Value::Float(x) => (Imm::Float(*x), HostDtype::F64),
        Value::Bool(b) => (Imm::Int(i64::from(*b)), HostDtype::Device(DType::Bool)),
        other => match scalar::array_of(other) {
            Some(array) => (*array.values.first()?, array.dtype),
            None => (Imm::Int(other.as_int()?), HostDtype::I64),
        },
    })
}

/// Nested sequences being converted to an array.
struct Nested {
    shape: Vec<usize>,
    numbers: Vec<Imm>,
    /// The common type of the numbers so far.
    dtype: Option<HostDtype>,
    /// The requested type. It must be able to represent the Python integers.
    wanted: Option<HostDtype>,
    span: Span,
}

impl Nested {
    /// Adds the value at this depth. Returns false if its shape does not match.
    fn add(&mut self, value: &Value, depth: usize) -> EvalResult<bool> {
        let items = match (value.sequence(), of(value)) {
            (Some(items), _) => Some(items),
            (None, Some(array)) if !array.shape.is_empty() => {
                array.rows().map(|r| r.simple()).collect::<Vec<_>>().into()
            }
            (None, Some(array)) => return self.add(&array.simple(), depth),
            (None, None) => match value {
                Value::Range(range) if range.len() <= MOST_ELEMENTS as i64 => {
                    Some((0..range.len()).map(|i| Value::Int(range.at(i))).collect())
                }
                _ => None,
            },
        };
        if let Some(items) = items {
            match self.shape.get(depth) {
                Some(&known) if known != items.len() => return Ok(false),
                Some(_) => {}
                None if self.numbers.is_empty() => self.shape.push(items.len()),
                None => return Ok(false),
            }
            for item in &items {
                if !self.add(item, depth + 1)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let Some((number, dtype)) = imm(value) else { return Ok(false) };
        if depth != self.shape.len() || self.numbers.len() >= MOST_ELEMENTS {
            return Ok(false);
        }
        if let (Some(wanted), Value::Int(n)) = (self.wanted, value) {
            wanted.check(*n, self.span)?;
        }
        self.dtype = Some(match self.dtype {
            Some(known) => common(known, dtype, self.span)?,
            None => dtype,
        });
        self.numbers.push(number);
        Ok(true)
    }
}

/// An array of the host, or an opaque host value if the evaluator cannot hold it: if it is too large
/// for a constant, or has uint64 numbers above 2^63 - 1.
pub(crate) fn host_array(interp: &Interp<'_>, array: &HostArray) -> Value {
    let n = array.shape.iter().product::<usize>();
    if array.dtype == HostDtype::U64 && array.data.chunks_exact(8).any(|bytes| bytes[7] >= 0x80) {
        return interp.opaque("an array", Some("it has numbers of uint64 above 2^63 - 1"));
    }
    if n > MOST_ELEMENTS {
        return interp.opaque(
            "an array",
            Some(&format!("with {n} elements it is too large for a constant of a kernel: make it an argument")),
        );
    }
    Value::object(NdArray::new(Array::from_host(array)).read_only())
}
