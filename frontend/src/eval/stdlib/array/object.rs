//! Arrays as values. As in NumPy, views share the elements of the array from which they are taken.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use nki_diag::Span;
use nki_isa::{DType, Imm};

use super::arithmetic::{binary, broadcast, compare, operate, unary};
use super::layout::Layout;
use super::places::{Dim, Picked, gather, is_contiguous, new_shape, pick, positions, reshaped, shape_of};
use super::{Array, MOST_ELEMENTS, dtype_of, float, is, product, python_number, show, text, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::stdlib::{self, dtype, scalar};
use crate::eval::value::{Host, Value};
use crate::eval::{Interp, convert};
use crate::host::HostDtype;
use crate::syntax::{BinOp, CmpOp, UnaryOp};

/// An array: the positions of its elements in a buffer that its views share.
#[derive(Clone)]
pub(crate) struct NdArray {
    dtype: HostDtype,
    buffer: Rc<RefCell<Vec<Imm>>>,
    offset: i64,
    dims: Vec<Dim>,
    writable: bool,
}

impl fmt::Debug for NdArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array({}, {:?})", self.dtype, self.shape())
    }
}

impl NdArray {
    pub(crate) fn new(array: Array) -> NdArray {
        let (own, dtype) = (array.dims(), array.dtype);
        let dims = array.layout.dims(&array.shape);
        let mut elements = array.values;
        if dims != own {
            let old = elements.clone();
            positions(0, &dims).zip(old).for_each(|(at, value)| elements[at] = value);
        }
        NdArray { dtype, dims, buffer: Rc::new(RefCell::new(elements)), offset: 0, writable: true }
    }

    /// An array whose original belongs to the host: a write to it here would be lost there.
    pub(super) fn read_only(self) -> NdArray {
        NdArray { writable: false, ..self }
    }

    pub(crate) fn dtype(&self) -> HostDtype {
        self.dtype
    }

    fn shape(&self) -> Vec<usize> {
        shape_of(&self.dims)
    }

    fn size(&self) -> usize {
        product(&self.shape())
    }

    /// The current elements.
    pub(super) fn elements(&self) -> Array {
        let values = gather(&self.buffer.borrow(), self.offset, &self.dims);
        Array { layout: Layout::of_dims(&self.dims), ..Array::new(self.dtype, self.shape(), values) }
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        is_contiguous(&self.dims)
    }

    /// A row-major copy.
    pub(crate) fn copy(&self) -> Value {
        Array::new(self.dtype, self.shape(), self.elements().values).value()
    }

    /// A view of some elements; a scalar if it has no dimensions.
    fn view(&self, offset: i64, dims: Vec<Dim>) -> Value {
        if dims.is_empty() {
            return scalar::value(self.dtype, self.buffer.borrow()[offset as usize]);
        }
        Value::object(NdArray { offset, dims, ..self.clone() })
    }

    fn reshape(&self, wanted: &[i64], span: Span) -> EvalResult<Value> {
        let shape = new_shape(&self.dims, wanted, span)?;
        Ok(match reshaped(&self.dims, &shape) {
            Some(dims) => Value::object(NdArray { dims, ..self.clone() }),
            None => Array::new(self.dtype, shape, self.elements().values).value(),
        })
    }

    fn transpose(&self, axes: &[i64], span: Span) -> EvalResult<Value> {
        let n = self.dims.len();
        let order: Vec<usize> = match axes {
            [] => (0..n).rev().collect(),
            axes => axes.iter().map(|a| a.rem_euclid(n.max(1) as i64) as usize).collect(),
        };
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted != (0..n).collect::<Vec<_>>() {
            let message = format!("{axes:?} are not the axes of an array of shape {}", text(&self.shape()));
            return Err(wrong(message, span));
        }
        let dims = order.iter().map(|&a| self.dims[a]).collect();
        Ok(Value::object(NdArray { dims, ..self.clone() }))
    }

    /// Writes elements of any type to their positions in the buffer.
    fn write(&self, places: &[usize], new: &Array, span: Span) -> EvalResult<()> {
        if !self.writable {
            let message =
                "this array belongs to the program around the kernel: the kernel's writes to it would be lost";
            return Err(Raise::at("frozen-object", message, span, "written here")
                .help("change a copy: `own = array.copy()`, or let Python execute the kernel"));
        }
        let mut buffer = self.buffer.borrow_mut();
        for (&place, &value) in places.iter().zip(&new.values) {
            buffer[place] = self.dtype.fit(value);
        }
        Ok(())
    }

    /// `array op= value`, visible through all names of the array. The result keeps the array's
    /// shape and type, so its type must not be of a greater kind (bool, unsigned, signed, float;
    /// the casting rule "same_kind" in NumPy's manual).
    fn change(&self, op: BinOp, this: &Value, value: &Value, span: Span) -> EvalResult<()> {
        let kind = |dtype: HostDtype| match dtype {
            HostDtype::Device(DType::Bool) => 0,
            HostDtype::U64 | HostDtype::Device(DType::U8 | DType::U16 | DType::U32) => 1,
            dtype if !dtype.is_float() => 2,
            _ => 3,
        };
        let new = binary(op, this, value, span)?;
        if kind(new.dtype) > kind(self.dtype) {
            let message = format!("`{}=` gives {}, which an array of {} cannot hold", op.text(), new.dtype, self.dtype);
            return Err(Raise::at("type-error", message, span, "here")
                .help(format!("make a new array: `a = a {} b`", op.text())));
        }
        let shape = self.shape();
        if new.shape != shape {
            let message =
                format!("`{}=` gives shape {} for an array of shape {}", op.text(), text(&new.shape), text(&shape));
            return Err(wrong(message, span));
        }
        self.write(&positions(self.offset, &self.dims).collect::<Vec<_>>(), &new, span)
    }
}

impl Object for NdArray {
    fn type_name(&self) -> &'static str {
        "array"
    }

    fn repr(&self) -> String {
        show::repr(&self.elements())
    }

    fn text(&self) -> Option<String> {
        Some(show::text(&self.elements()))
    }

    fn class(&self) -> Option<Value> {
        Some(stdlib::array_class())
    }

    fn knows_scalars(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["shape", "dtype", "ndim", "size", "itemsize", "nbytes", "T"]
    }

    fn methods(&self) -> &'static [&'static str] {
        METHODS
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        Some(match name {
            "shape" => Value::tuple(self.dims.iter().map(|d| Value::Int(d.0 as i64)).collect::<Vec<_>>()),
            "dtype" => dtype::element(self.dtype),
            "ndim" => Value::Int(self.dims.len() as i64),
            "size" => Value::Int(self.size() as i64),
            "itemsize" => Value::Int(self.dtype.size() as i64),
            "nbytes" => Value::Int((self.dtype.size() * self.size()) as i64),
            "T" => self.transpose(&[], Span::default()).ok()?,
            _ => return None,
        })
    }

    fn call_method(&self, interp: &mut Interp<'_>, _this: &Value, name: &str, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        if interp.has_host_value(args.values()) {
            return Ok(interp.host(format!("array.{name}(...)"), span));
        }
        // Arguments of `reshape(2, 3)` or `reshape((2, 3))`.
        let ints = |args: &CallArgs| -> EvalResult<Vec<i64>> {
            match args.positional.as_slice() {
                [one] if one.sequence().is_some() => convert::ints(one, name, span),
                many => many.iter().map(|v| convert::int(v, name, span)).collect(),
            }
        };
        let made = match name {
            "reshape" => return self.reshape(&ints(&args)?, span),
            "transpose" => return self.transpose(&ints(&args)?, span),
            "ravel" if self.is_contiguous() => return self.reshape(&[-1], span),
            "ravel" => self.elements().flat().value(),
            "copy" => self.copy(),
            name => method(interp, &self.elements(), name, args)?,
        };
        charged(interp, made, span)
    }

    fn item(&self, interp: &mut Interp<'_>, _this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        Ok(match pick(interp, self.offset, &self.dims, index, span)? {
            Picked::View(offset, dims) => self.view(offset, dims),
            Picked::Elements(places, shape) => {
                let elements = places.into_iter().map(|at| self.buffer.borrow()[at]).collect();
                charged(interp, Array::new(self.dtype, shape, elements).simple(), span)?
            }
        })
    }

    fn set_item(
        &self,
        interp: &mut Interp<'_>,
        _this: &Value,
        index: &Value,
        value: &Value,
        span: Span,
    ) -> EvalResult<()> {
        let (places, shape) = match pick(interp, self.offset, &self.dims, index, span)? {
            Picked::View(offset, dims) => (positions(offset, &dims).collect(), shape_of(&dims)),
            Picked::Elements(places, shape) => (places, shape),
        };
        match value {
            Value::Int(n) => self.dtype.check(*n, span)?,
            Value::Float(x)
                if !x.is_finite() && !self.dtype.is_float() && self.dtype != HostDtype::Device(DType::Bool) =>
            {
                return Err(Raise::at(
                    "value-error",
                    format!("{x} is not a value of {}", self.dtype),
                    span,
                    "assigned here",
                ));
            }
            _ => {}
        }
        let mut new = Array::from_value(value, None, span)?;
        let missing = new.shape.len().saturating_sub(shape.len());
        let fits = new.shape[..missing].iter().all(|d| *d == 1)
            && new.shape[missing..].iter().rev().zip(shape.iter().rev()).all(|(d, count)| *d == 1 || d == count);
        if !fits {
            let message = format!("an array of shape {} does not fit into {}", text(&new.shape), text(&shape));
            return Err(wrong(message, span));
        }
        new.shape.drain(..missing);
        self.write(&places, &new.spread(&shape), span)
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
        let value = match host_of(left, right) {
            Some(host) => interp.host_value(host, span),
            None if !interp.in_kernel && is_large(left, right) => Ok(interp.host("an array".into(), span)),
            None => operate(op, left, right, span).and_then(|made| charged(interp, made, span)),
        };
        value.map(Some)
    }

    fn in_place(
        &self,
        _interp: &mut Interp<'_>,
        op: BinOp,
        this: &Value,
        value: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        if !involved(this, value) || matches!(value, Value::Host(_)) {
            return Ok(None);
        }
        self.change(op, this, value, span)?;
        Ok(Some(this.clone()))
    }

    fn unary(&self, interp: &mut Interp<'_>, op: UnaryOp, _this: &Value, span: Span) -> EvalResult<Value> {
        charged(interp, unary(op, &self.elements(), span)?, span)
    }

    fn compare(
        &self,
        interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        if !interp.in_kernel && is_large(left, right) {
            return Ok(Some(interp.host("an array".into(), span)));
        }
        if !involved(left, right) {
            return Ok(None);
        }
        charged(interp, compare(op, left, right, span)?, span).map(Some)
    }

    fn truth(&self, _interp: &mut Interp<'_>, _this: &Value, span: Span) -> EvalResult<bool> {
        match self.elements().values.as_slice() {
            [one] => Ok(float(*one) != 0.0),
            _ => Err(wrong(
                format!(
                    "the truth value of an array of shape {} is ambiguous: use .any() or .all()",
                    text(&self.shape())
                ),
                span,
            )),
        }
    }

    fn len(&self, span: Span) -> EvalResult<i64> {
        self.dims
            .first()
            .map(|d| d.0 as i64)
            .ok_or_else(|| Raise::at("type-error", "an array of no dimensions has no len()", span, "here"))
    }

    fn iterate(&self, span: Span) -> EvalResult<Vec<Value>> {
        let count = self.len(span)?;
        let (stride, inner) = (self.dims[0].1, &self.dims[1..]);
        Ok((0..count).map(|i| self.view(self.offset + i * stride, inner.to_vec())).collect())
    }
}

/// Charges the memory of a new array, and rejects uint64 numbers that are stored as negative ones.
pub(crate) fn charged(interp: &mut Interp<'_>, made: Value, span: Span) -> EvalResult<Value> {
    let is_huge = |dtype: HostDtype, number: Imm| dtype == HostDtype::U64 && matches!(number, Imm::Int(..0));
    let mut overflows = false;
    if let Some(array) = made.downcast::<NdArray>() {
        interp.charge(array.size() * size_of::<Imm>(), span)?;
        overflows = array.dtype == HostDtype::U64 && array.elements().values.iter().any(|n| is_huge(array.dtype, *n));
    } else if let (Some(dtype), Some(number)) = (scalar::dtype_of(&made), made.as_int()) {
        overflows = is_huge(dtype, Imm::Int(number));
    }
    if overflows {
        let message = "a number of uint64 above 2^63 - 1, which the evaluator does not hold";
        return Err(Raise::at("integer-overflow", message, span, "here").help("compute with int64, or in Python"));
    }
    Ok(made)
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
    "argmax",
    "argmin",
    "argsort",
    "cumsum",
];

/// `array.name(...)` for the methods that do not return a view.
fn method(interp: &mut Interp<'_>, array: &Array, name: &str, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    match name {
        "astype" => {
            let [dtype] = args.bind(interp, "astype", ["dtype"], 1)?;
            let dtype = dtype_of(&dtype.unwrap_or(Value::None), "astype", span)?;
            array.converted(dtype, span).map(Array::value)
        }
        "flatten" => Ok(array.flat().value()),
        "tolist" => Ok(array.to_list()),
        "item" if array.values.len() == 1 => Ok(python_number(array.dtype, array.values[0])),
        "item" => Err(wrong(format!("item() of an array of shape {}: it needs one element", text(&array.shape)), span)),
        "argsort" => array.argsort(interp, args),
        "cumsum" => array.cumsum(interp, args),
        "argmax" | "argmin" => array.extreme_place(interp, name, args),
        total => array.reduce(interp, total, args),
    }
}

/// Whether an operator is NumPy's: one operand is an array, the other an array, a number or a list
/// of numbers.
fn involved(left: &Value, right: &Value) -> bool {
    let fits = |v: &Value| match v {
        Value::Host(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::List(_) | Value::Tuple(_) => true,
        other => is(other) || scalar::dtype_of(other).is_some(),
    };
    (is(left) || is(right)) && fits(left) && fits(right)
}

/// Whether the result for two arrays is too large for a constant. Outside kernels, such results are
/// left to the host.
fn is_large(left: &Value, right: &Value) -> bool {
    let shape = |v: &Value| v.downcast().map(NdArray::shape).unwrap_or_default();
    broadcast(&shape(left), &shape(right)).is_some_and(|shape| product(&shape) > MOST_ELEMENTS)
}

fn host_of<'a>(left: &'a Value, right: &'a Value) -> Option<&'a Host> {
    match (left, right) {
        (Value::Host(host), _) | (_, Value::Host(host)) => Some(host),
        _ => None,
    }
}
