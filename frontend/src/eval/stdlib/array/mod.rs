//! Arrays of the host: NumPy's, as far as a kernel needs constants.
//!
//! They are values of the meta-program, such as lists are. The machine sees one when `nl.shared_constant` puts it into HBM.

mod arithmetic;
mod order;
mod reduce;

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use nki_diag::{Diagnostic, Span};
use nki_isa::dtype::{bits_to_f32, bits_to_i64, encode_f32, encode_i64, f32_to_bits, read_bits};
use nki_isa::{DType, Imm};

use self::arithmetic::{binary, compare, float_for, unary};
pub(crate) use self::arithmetic::{choose, concatenate, join};
pub(crate) use self::reduce::{maximum, minimum};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::value::{BuiltinType, Host, Value};
use crate::eval::{convert, stdlib::dtype};
use crate::host::{HostArray, HostDtype};
use crate::syntax::{BinOp, CmpOp, UnaryOp};

/// Elements up to which an array has a value here.
pub(crate) const MOST_ELEMENTS: usize = HostArray::MOST_ELEMENTS;

/// An array: row-major.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) dtype: HostDtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<Imm>,
    /// Whether another array may share its elements in NumPy, which is a copy here: its elements cannot change.
    shared: Cell<bool>,
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array({}, {:?})", self.dtype, self.shape)
    }
}

impl Object for Array {
    fn type_name(&self) -> &'static str {
        "array"
    }

    fn repr(&self) -> String {
        format!("<array of {} with shape {:?}>", self.dtype, self.shape)
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["shape", "dtype", "ndim", "size", "itemsize", "T"]
    }

    fn methods(&self) -> &'static [&'static str] {
        METHODS
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        Some(match name {
            "shape" => Value::tuple(self.shape.iter().map(|d| Value::Int(*d as i64)).collect::<Vec<_>>()),
            "dtype" => match self.dtype {
                HostDtype::Device(d) => dtype::value(d),
                // As `np.float64` and `np.int64` are here.
                HostDtype::F64 => Value::Type(BuiltinType::Float),
                HostDtype::I64 | HostDtype::U64 => Value::Type(BuiltinType::Int),
            },
            "ndim" => Value::Int(self.shape.len() as i64),
            "size" => Value::Int(self.values.len() as i64),
            "itemsize" => Value::Int(self.dtype.size() as i64),
            "T" => self.transpose(None, Span::default()).ok()?.value(),
            _ => return None,
        })
    }

    fn call_method(&self, interp: &mut Interp<'_>, _this: &Value, name: &str, args: CallArgs) -> EvalResult<Value> {
        method(interp, self, name, args)
    }

    fn item(&self, interp: &mut Interp<'_>, _this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        getitem(interp, self, index, span)
    }

    fn set_item(
        &self,
        _interp: &mut Interp<'_>,
        _this: &Value,
        _index: &Value,
        _value: &Value,
        span: Span,
    ) -> EvalResult<()> {
        Err(Raise::at("unsupported-operator", "assignment to an element of an array", span, "here")
            .help("the built-in frontend changes the elements of an array only while one name holds it and nothing has been taken out of it: make it in one piece, with np.where or from a list, or let Python execute the kernel"))
    }

    fn binary(
        &self,
        interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        if !involved(left, right) {
            return Ok(None);
        }
        match host_of(left, right) {
            Some(host) => interp.host_value(host, span),
            None => binary(op, left, right, span),
        }
        .map(Some)
    }

    fn unary(&self, _interp: &mut Interp<'_>, op: UnaryOp, _this: &Value, span: Span) -> EvalResult<Value> {
        unary(op, self, span)
    }

    fn compare(
        &self,
        _interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        involved(left, right).then(|| compare(op, left, right, span)).transpose()
    }

    fn truth(&self, _interp: &mut Interp<'_>, _this: &Value, span: Span) -> EvalResult<bool> {
        match self.values.as_slice() {
            [one] => Ok(float(*one) != 0.0),
            _ => Err(wrong(
                format!("the truth of an array of shape {} is not one thing: use .any() or .all()", text(&self.shape)),
                span,
            )),
        }
    }

    fn len(&self, span: Span) -> EvalResult<i64> {
        self.shape
            .first()
            .map(|d| *d as i64)
            .ok_or_else(|| Raise::at("type-error", "an array of no dimensions has no len()", span, "here"))
    }

    fn iterate(&self, span: Span) -> EvalResult<Vec<Value>> {
        self.len(span)?;
        Ok(self.rows().map(Array::simple).collect())
    }
}

/// The array that a value is.
pub(crate) fn of(value: &Value) -> Option<&Array> {
    value.downcast()
}

impl HostDtype {
    /// What an element of this type makes of a number, as `astype` does: floats are cut to integers, integers wrap.
    pub(crate) fn fit(self, value: Imm) -> Imm {
        let integer = match value {
            Imm::Int(i) => i,
            Imm::Float(x) => x as i64,
        };
        let float = match value {
            Imm::Int(i) => i as f64,
            Imm::Float(x) => x,
        };
        match self {
            HostDtype::F64 => Imm::Float(float),
            HostDtype::I64 | HostDtype::U64 => Imm::Int(integer),
            HostDtype::Device(DType::Bool) => Imm::Int(i64::from(float != 0.0)),
            HostDtype::Device(d) if d.is_float() => {
                let single = if d == DType::F16 { round_to_odd(float) } else { float as f32 };
                Imm::Float(f64::from(bits_to_f32(d, f32_to_bits(d, single))))
            }
            HostDtype::Device(d) => Imm::Int(bits_to_i64(d, (integer & wrap_mask(d)) as u32)),
        }
    }
}

/// To float32 so that rounding the result to float16 is as rounding once.
fn round_to_odd(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    if back == x || !near.is_finite() {
        return near;
    }
    // The neighbour whose last bit is 1: of the two around `x`, it is not on a boundary of float16.
    let towards_zero = near.to_bits() - u32::from(back.abs() > x.abs());
    f32::from_bits(towards_zero | 1)
}

fn wrap_mask(dtype: DType) -> i64 {
    (1i64 << (8 * dtype.size())) - 1
}

/// The type of what Python numbers make: bool, int64 or float64.
fn default_dtype(values: &[Value]) -> HostDtype {
    if values.iter().any(|v| matches!(v, Value::Float(_))) {
        HostDtype::F64
    } else if !values.is_empty() && values.iter().all(|v| matches!(v, Value::Bool(_))) {
        HostDtype::Device(DType::Bool)
    } else {
        HostDtype::I64
    }
}

/// The dtype that NumPy's names and codes of native byte order mean.
fn named(name: &str) -> Option<HostDtype> {
    let device = match name.strip_prefix(['<', '=', '|']).unwrap_or(name) {
        "float64" | "double" | "float" | "f8" | "d" => return Some(HostDtype::F64),
        "int64" | "int" | "i8" | "l" | "q" => return Some(HostDtype::I64),
        "uint64" | "uint" | "u8" | "L" | "Q" => return Some(HostDtype::U64),
        "f4" | "f" | "single" => DType::F32,
        "f2" | "e" | "half" => DType::F16,
        "i4" | "i" => DType::I32,
        "i2" | "h" => DType::I16,
        "i1" | "b" => DType::I8,
        "u4" | "I" => DType::U32,
        "u2" | "H" => DType::U16,
        "u1" | "B" => DType::U8,
        "b1" | "?" => DType::Bool,
        _ => return None,
    };
    Some(HostDtype::Device(device))
}

/// A dtype argument: `np.float32`, `float`, `'int8'`, `'f4'`.
pub(crate) fn dtype_of(value: &Value, what: &str, span: Span) -> EvalResult<HostDtype> {
    match value {
        Value::Type(BuiltinType::Float) => Ok(HostDtype::F64),
        Value::Type(BuiltinType::Int) => Ok(HostDtype::I64),
        Value::Str(s) if let Some(dtype) = named(s) => Ok(dtype),
        other => dtype::dtype(other, format_args!("{what}: dtype"), span).map(HostDtype::Device),
    }
}

fn product(shape: &[usize]) -> usize {
    shape.iter().fold(1, |n, d| n.saturating_mul(*d))
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
        Array { dtype, shape, values, shared: Cell::new(false) }
    }

    /// This array, which in NumPy is a view of `other`. A single element is none.
    fn sharing(self, other: &Array) -> Array {
        if !self.shape.is_empty() {
            self.shared.set(true);
            other.share();
        }
        self
    }

    /// Another array may share its elements from now on.
    pub(crate) fn share(&self) {
        self.shared.set(true);
    }

    /// `look` at the array, of which nothing is left that would share its elements.
    pub(crate) fn without_sharing<T>(&self, look: impl FnOnce() -> T) -> T {
        let before = self.shared.get();
        let found = look();
        self.shared.set(before);
        found
    }

    /// The array after `array[index] = value`, of which it is the only holder. `None` if other arrays may share its elements, or the index is no
    /// position or slice.
    pub(crate) fn with_item(
        &self,
        interp: &mut Interp<'_>,
        index: &Value,
        value: &Value,
        span: Span,
    ) -> EvalResult<Option<Array>> {
        let plain = |key: &Value| matches!(key, Value::Int(_) | Value::Slice(_) | Value::Ellipsis | Value::None);
        let is_plain = match index {
            Value::Tuple(keys) => keys.iter().all(plain),
            key => plain(key),
        };
        if self.shared.get() || !is_plain {
            return Ok(None);
        }
        let (offset, dims) = self.places(interp, index, span)?;
        let new = Array::from_value(value, None, span)?;
        let whole = HostDtype::Device(DType::Bool) != self.dtype && !self.dtype.is_float();
        if let (Value::Int(given), true) = (value, whole)
            && self.dtype.fit(Imm::Int(*given)) != Imm::Int(*given)
        {
            return Err(Raise::at(
                "integer-overflow",
                format!("{given} is out of bounds for {}", self.dtype),
                span,
                "assigned here",
            ));
        }
        // Broadcast from the last dimension, of which those of extent 1 in front may be left out.
        let missing = new.shape.len().saturating_sub(dims.len());
        let strides = new.strides();
        let fits = new.shape[..missing].iter().all(|d| *d == 1)
            && new.shape[missing..].iter().rev().zip(dims.iter().rev()).all(|(d, (count, _))| *d == 1 || d == count);
        if !fits {
            let target: Vec<usize> = dims.iter().map(|d| d.0).collect();
            let message = format!("an array of shape {} does not fit into {}", text(&new.shape), text(&target));
            return Err(wrong(message, span));
        }
        let mut values = self.values.clone();
        for i in 0..product(&dims.iter().map(|d| d.0).collect::<Vec<_>>()) {
            let (mut rest, mut at, mut from) = (i, offset, 0);
            for (k, &(count, stride)) in dims.iter().rev().enumerate() {
                let position = rest % count;
                rest /= count;
                at += position as i64 * stride;
                if let Some(axis) = new.shape.len().checked_sub(k + 1)
                    && new.shape[axis] > 1
                {
                    from += position * strides[axis];
                }
            }
            values[at as usize] = self.dtype.fit(new.values[from]);
        }
        Ok(Some(Array::new(self.dtype, self.shape.clone(), values)))
    }

    pub(crate) fn value(self) -> Value {
        Value::object(self)
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
            return Ok(array.astype(dtype.unwrap_or(array.dtype)));
        }
        let (mut shape, mut numbers) = (Vec::new(), Vec::new());
        let mut inner = None;
        if !flatten(value, 0, &mut shape, &mut numbers, &mut inner) {
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
        Array::new(dtype, self.shape.clone(), values)
    }

    /// A number or an array.
    pub(crate) fn simple(self) -> Value {
        match (self.shape.is_empty(), self.values.first()) {
            (true, Some(&v)) => scalar(self.dtype, v),
            _ => self.value(),
        }
    }

    fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.shape.len()];
        for i in (1..self.shape.len()).rev() {
            strides[i - 1] = strides[i] * self.shape[i];
        }
        strides
    }

    /// The elements at `offset + sum(index * stride)`.
    fn strided(&self, offset: i64, dims: &[(usize, i64)]) -> Array {
        let shape: Vec<usize> = dims.iter().map(|d| d.0).collect();
        let mut values = Vec::with_capacity(product(&shape));
        for i in 0..product(&shape) {
            let (mut rest, mut at) = (i, offset);
            for &(count, stride) in dims.iter().rev() {
                at += (rest % count) as i64 * stride;
                rest /= count;
            }
            values.push(self.values[at as usize]);
        }
        Array::new(self.dtype, shape, values).sharing(self)
    }

    fn reshape(&self, wanted: &[i64], span: Span) -> EvalResult<Array> {
        let known: usize = wanted.iter().filter(|d| **d >= 0).map(|d| *d as usize).product();
        let mut shape = Vec::new();
        for &d in wanted {
            shape.push(if d >= 0 { d as usize } else { self.values.len() / known.max(1) });
        }
        if product(&shape) != self.values.len() || wanted.iter().filter(|d| **d < 0).count() > 1 {
            return Err(wrong(
                format!("an array of shape {} cannot be reshaped to {}", text(&self.shape), text(&shape)),
                span,
            ));
        }
        Ok(Array { shape, ..self.clone() }.sharing(self))
    }

    fn transpose(&self, axes: Option<Vec<i64>>, span: Span) -> EvalResult<Array> {
        let n = self.shape.len();
        let axes = axes.unwrap_or_else(|| (0..n as i64).rev().collect());
        let order: Vec<usize> = axes.iter().map(|a| a.rem_euclid(n.max(1) as i64) as usize).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted != (0..n).collect::<Vec<_>>() {
            return Err(wrong(format!("{axes:?} are not the axes of an array of shape {}", text(&self.shape)), span));
        }
        let strides = self.strides();
        let dims: Vec<_> = order.iter().map(|&a| (self.shape[a], strides[a] as i64)).collect();
        Ok(self.strided(0, &dims))
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
            let row = Array::new(self.dtype, inner.clone(), values);
            if inner.is_empty() { row } else { row.sharing(self) }
        })
    }

    /// A function of floats on each element. Integers become floats of a width that holds them, as NumPy's functions do.
    pub(crate) fn map(&self, of: impl Fn(f64) -> f64) -> Array {
        let dtype = if self.dtype.is_float() { self.dtype } else { float_for(self.dtype) };
        Array::from_fn(dtype, self.shape.clone(), |i| Imm::Float(of(float(self.values[i]))))
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
        (None, Some(array)) => return flatten(&array.clone().simple(), depth, shape, out, dtype),
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
    if depth != shape.len() || imm(value).is_none() {
        return false;
    }
    out.push(value.clone());
    true
}

/// Methods of an array.
const METHODS: &[&str] = &[
    "astype",
    "reshape",
    "transpose",
    "flatten",
    "ravel",
    "copy",
    "tolist",
    "item",
    "sum",
    "prod",
    "mean",
    "min",
    "max",
    "any",
    "all",
    "argsort",
    "cumsum",
];

/// `array.name(...)`.
pub(crate) fn method(interp: &mut Interp<'_>, array: &Array, name: &str, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    // Of `reshape(2, 3)` and `reshape((2, 3))`.
    let ints = |args: &CallArgs| -> EvalResult<Vec<i64>> {
        match args.positional.as_slice() {
            [one] if one.sequence().is_some() => convert::ints(one, name, span),
            many => many.iter().map(|v| convert::int(v, name, span)).collect(),
        }
    };
    match name {
        "astype" => {
            let [dtype] = args.bind(interp, "astype", ["dtype"], 1)?;
            Ok(array.astype(dtype_of(&dtype.unwrap_or(Value::None), "astype", span)?).value())
        }
        "reshape" => Ok(array.reshape(&ints(&args)?, span)?.value()),
        "transpose" => {
            let axes = ints(&args)?;
            Ok(array.transpose((!axes.is_empty()).then_some(axes), span)?.value())
        }
        "flatten" | "ravel" => Ok(array.reshape(&[-1], span)?.value()),
        "copy" => Ok(array.astype(array.dtype).value()),
        "tolist" => Ok(array.to_list()),
        "item" if array.values.len() == 1 => Ok(scalar(array.dtype, array.values[0])),
        "item" => Err(wrong(format!("item() of an array of shape {}: it needs one element", text(&array.shape)), span)),
        "argsort" => array.argsort(interp, args),
        "cumsum" => array.cumsum(interp, args),
        total => {
            args.positional_only(interp, total, 0, 0).map_err(|e| e.help("axes are not supported here"))?;
            array.total(total, span)
        }
    }
}

/// `array[index]`.
fn getitem(interp: &mut Interp<'_>, array: &Array, index: &Value, span: Span) -> EvalResult<Value> {
    if let Some(rows) = array.picked(interp, index, span)? {
        return Ok(rows);
    }
    let (offset, dims) = array.places(interp, index, span)?;
    Ok(array.strided(offset, &dims).simple())
}

impl Array {
    /// Where the elements of `array[index]` are: the first one, and extent and stride of each dimension.
    fn places(&self, interp: &mut Interp<'_>, index: &Value, span: Span) -> EvalResult<(i64, Vec<(usize, i64)>)> {
        let keys = match index {
            Value::Tuple(items) => items.to_vec(),
            one => vec![one.clone()],
        };
        let named = keys.iter().filter(|k| !k.is_none() && !matches!(k, Value::Ellipsis)).count();
        if named > self.shape.len() {
            let message = format!("{named} indices for an array of shape {}", text(&self.shape));
            return Err(Raise::at("index-out-of-range", message, span, "here"));
        }
        let strides = self.strides();
        let (mut offset, mut dims, mut axis) = (0, Vec::new(), 0);
        let mut rest = self.shape.len() - named;
        for key in keys.iter().chain([&Value::Ellipsis]) {
            match key {
                Value::None => dims.push((1, 0)),
                Value::Ellipsis => {
                    for _ in 0..std::mem::take(&mut rest) {
                        dims.push((self.shape[axis], strides[axis] as i64));
                        axis += 1;
                    }
                }
                Value::Slice(slice) => {
                    let (start, stop, step) = interp.slice_bounds(slice, self.shape[axis], span)?;
                    let range = crate::eval::value::Range { start, stop, step };
                    offset += start * strides[axis] as i64;
                    dims.push((range.len().max(0) as usize, step * strides[axis] as i64));
                    axis += 1;
                }
                other => {
                    let at = interp.index(other, self.shape[axis], "array axis", span)?;
                    offset += (at * strides[axis]) as i64;
                    axis += 1;
                }
            }
        }
        Ok((offset, dims))
    }
}

/// The device's type of a constant in HBM.
pub(crate) fn device_dtype(array: &Array, span: Span) -> EvalResult<DType> {
    match array.dtype {
        HostDtype::Device(d) => Ok(d),
        wide => {
            let instead = if wide.is_float() { "float32" } else { "int32" };
            Err(Raise::new(
                Diagnostic::error("unsupported-dtype", format!("a constant of {wide}: the machine has no such type"))
                    .at(span, "here")
                    .help(format!("say which type it shall have: array.astype(np.{instead})")),
            ))
        }
    }
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
    Array::from_host(array).value()
}

/// Whether an operator is NumPy's: one side is an array, the other an array, a number or a list of them.
fn involved(left: &Value, right: &Value) -> bool {
    let fits = |v: &Value| match v {
        Value::Host(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::List(_) | Value::Tuple(_) => true,
        other => of(other).is_some(),
    };
    (of(left).is_some() || of(right).is_some()) && fits(left) && fits(right)
}

fn host_of<'a>(left: &'a Value, right: &'a Value) -> Option<&'a Host> {
    match (left, right) {
        (Value::Host(host), _) | (_, Value::Host(host)) => Some(host),
        _ => None,
    }
}
