//! Allocation of tensors: `nl.ndarray` and its relatives.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use nki_diag::Span;
use nki_isa::{DType, Imm, Space};

use super::{grids, region};
use crate::build::builder::{Request, Sharing};
use crate::build::grid::Grid;
use crate::build::lower::{Lower, extents};
use crate::build::tensor::{Tensor, tuple_text};
use crate::dialect::common::errors::raise;
use crate::dialect::common::repeat;
use crate::dialect::common::state::{site, state, target_name};
use crate::dialect::common::strict::reject;
use crate::dialect::common::values;
use crate::eval::Interp;
use crate::eval::convert::{given, int, ints, number, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::stdlib::array::{self, Array};
use crate::eval::stdlib::dtype::dtype as to_dtype;
use crate::eval::value::Value;
use crate::host::HostDtype;

/// The common arguments.
struct AllocRequest {
    shape: Vec<i64>,
    dtype: DType,
    space: Space,
    name: Option<Rc<str>>,
    address: Option<Vec<i64>>,
}

/// The initial contents of a tensor.
enum Fill {
    Nothing,
    Number(Imm),
    Random,
}

fn allocate(interp: &mut Interp<'_>, wanted: &AllocRequest, fill: Fill, span: Span) -> EvalResult<Value> {
    if let Some([partition, _]) = wanted.address.as_deref()
        && !matches!(partition, 0 | 32 | 64 | 96)
    {
        let text = format!("an address that starts at partition {partition}");
        reject(interp, span, &text, "start at partition 0, 32, 64 or 96");
    }
    if wanted.space.is_on_chip() && wanted.shape == [1] {
        reject(interp, span, "a tensor of one dimension on chip", "write the shape (1, 1)");
    }
    if wanted.shape.len() > 5 {
        reject(interp, span, "a tensor of more than 5 dimensions", "reshape it");
    }
    let site = site(interp, span);
    let (name, sharing) = name_of(interp, wanted.name.as_deref(), span);
    let request = Request {
        name: &name,
        sharing,
        space: wanted.space,
        shape: &wanted.shape,
        dtype: wanted.dtype,
        address: wanted.address.as_deref(),
        data: None,
    };
    let tensor = state(interp).builder.alloc(&request, site).map_err(|v| raise("", &v, span, &[]))?;
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: &name };
    match fill {
        Fill::Nothing => Ok(()),
        Fill::Number(value) => lower.fill(&tensor, value),
        Fill::Random => lower.rand(&tensor),
    }
    .map_err(|v| raise("", &v, span, &[]))?;
    Ok(Value::object(tensor))
}

/// The name of a tensor, `name=` or that of the variable, and what it means for the other core.
pub(super) fn name_of(interp: &mut Interp<'_>, given: Option<&str>, span: Span) -> (Arc<str>, Sharing) {
    match given {
        Some(name) => (name.into(), Sharing::Name),
        None => (target_name(interp, span), Sharing::Unnamed),
    }
}

pub(super) fn named(value: Option<Value>, what: &str, span: Span) -> EvalResult<Option<Rc<str>>> {
    match &given(value) {
        None => Ok(None),
        Some(Value::Str(s)) if s.is_empty() => Ok(None),
        Some(Value::Str(s)) => Ok(Some(s.clone())),
        Some(other) => Err(wrong(format_args!("{what}: name"), "a string", other, span)),
    }
}

pub(super) fn space_of(
    interp: &mut Interp<'_>,
    value: Option<Value>,
    what: &str,
    default: Space,
    span: Span,
) -> EvalResult<Space> {
    let Some(value) = given(value) else {
        return Ok(default);
    };
    if let Value::Str(_) = value {
        reject(interp, span, "a buffer given as a string", "write nl.sbuf, nl.psum or nl.shared_hbm");
    }
    region::memory(&value, format_args!("{what}: buffer"), span)
}

pub(super) fn address(value: Option<Value>, what: &str, span: Span) -> EvalResult<Option<Vec<i64>>> {
    let Some(value) = given(value) else {
        return Ok(None);
    };
    let what = format!("{what}: address");
    match value.sequence().as_deref() {
        Some(items @ ([_] | [_, _])) => items.iter().map(|i| int(i, &what, span)).collect::<EvalResult<_>>().map(Some),
        _ => Err(wrong(&what, "a tuple (partition, byte), in HBM (byte,)", &value, span)),
    }
}

/// The shape; a block dimension written with par_dim is rejected earlier.
fn shape(value: Option<Value>, what: &str, span: Span) -> EvalResult<Vec<i64>> {
    ints(&value.unwrap_or(Value::None), format_args!("{what}: shape"), span)
}

pub(super) fn dtype(value: Option<Value>, what: &str, span: Span) -> EvalResult<DType> {
    let value = value.unwrap_or(Value::None);
    to_dtype(&value, format_args!("{what}: dtype"), span).map_err(|raise| match value {
        Value::Int(_) => raise.help(format!("the shape is one tuple: {what}((128, 512), dtype=nl.float32)")),
        _ => raise,
    })
}

/// A tensor in a region of a memory, with name and address in `place`.
pub(super) fn tensor(
    interp: &mut Interp<'_>,
    shape: Vec<i64>,
    dtype: DType,
    space: Space,
    place: (Option<Value>, Option<Vec<i64>>),
    span: Span,
) -> EvalResult<Value> {
    let (name, address) = place;
    let wanted = AllocRequest { shape, dtype, space, name: named(name, "view", span)?, address };
    allocate(interp, &wanted, Fill::Nothing, span)
}

/// `nl.ndarray(shape, dtype, buffer=sbuf, name='', address=None)`
pub(super) fn ndarray(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    if let Some(again) = repeat::tensor(interp, &args) {
        return Ok(again);
    }
    let kept = repeat::wants_tensor(interp, &args).then(|| args.clone());
    let tensor = made(interp, args, "nl.ndarray", Fill::Nothing)?;
    if let Some(args) = kept {
        repeat::learn_tensor(interp, args, &tensor);
    }
    Ok(tensor)
}

/// A tensor from the common arguments of `nl.ndarray`, `nl.zeros` and `nl.ones`.
fn made(interp: &mut Interp<'_>, args: CallArgs, what: &'static str, fill: Fill) -> EvalResult<Value> {
    let span = args.span;
    let [s, d, buffer, name, at] = args.bind(interp, what, ["shape", "dtype", "buffer", "name", "address"], 2)?;
    let wanted = AllocRequest {
        shape: shape(s, what, span)?,
        dtype: dtype(d, what, span)?,
        space: space_of(interp, buffer, what, Space::Sbuf, span)?,
        name: named(name, what, span)?,
        address: address(at, what, span)?,
    };
    allocate(interp, &wanted, fill, span)
}

/// `nl.zeros(shape, dtype, buffer=sbuf, name='')`
pub(super) fn zeros(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    made(interp, args, "nl.zeros", Fill::Number(Imm::Int(0)))
}

/// `nl.ones(shape, dtype, buffer=sbuf, name='')`
pub(super) fn ones(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    made(interp, args, "nl.ones", Fill::Number(Imm::Int(1)))
}

/// `nl.full(shape, fill_value, dtype, buffer=sbuf, name='')`
pub(super) fn full(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.full";
    let [s, v, d, buffer, name] = args.bind(interp, what, ["shape", "fill_value", "dtype", "buffer", "name"], 3)?;
    let value = number(&v.unwrap_or(Value::None), "nl.full: fill_value", span)?;
    let wanted = AllocRequest {
        shape: shape(s, what, span)?,
        dtype: dtype(d, what, span)?,
        space: space_of(interp, buffer, what, Space::Sbuf, span)?,
        name: named(name, what, span)?,
        address: None,
    };
    allocate(interp, &wanted, Fill::Number(value), span)
}

/// `nl.rand(shape, dtype, buffer=sbuf, name='')`
pub(super) fn rand(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.rand";
    let [s, d, buffer, name] = args.bind(interp, what, ["shape", "dtype", "buffer", "name"], 2)?;
    let wanted = AllocRequest {
        shape: shape(s, what, span)?,
        dtype: dtype(d, what, span)?,
        space: space_of(interp, buffer, what, Space::Sbuf, span)?,
        name: named(name, what, span)?,
        address: None,
    };
    allocate(interp, &wanted, Fill::Random, span)
}

/// `nl.zeros_like(x, dtype=None, buffer=None, name='')`. The memory "defaults to sbuf" (docstring), not to that of `x`.
pub(super) fn zeros_like(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (span, what) = (args.span, "nl.zeros_like");
    let [x, d, buffer, name] = args.bind(interp, what, ["x", "dtype", "buffer", "name"], 1)?;
    let x = x.unwrap_or(Value::None);
    let x = values::tensor(&x, what, span)?;
    let wanted = AllocRequest {
        shape: extents(x),
        dtype: given(d).map_or(Ok(x.view.dtype), |v| to_dtype(&v, format_args!("{what}: dtype"), span))?,
        space: space_of(interp, buffer, what, Space::Sbuf, span)?,
        name: named(name, what, span)?,
        address: None,
    };
    allocate(interp, &wanted, Fill::Number(Imm::Int(0)), span)
}

/// `nl.empty_like(x, dtype=None, buffer=None, name='', *, transpose_axes=None, address=None)`: of a tensor or a grid. With
/// `transpose_axes`, the result is the destination of a later `nisa.dma_transpose`.
pub(super) fn empty_like(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.empty_like";
    args.at_most_positional(what, 4)?;
    let names = ["x", "dtype", "buffer", "name", "transpose_axes", "address"];
    let [x, d, buffer, name, axes, at] = args.bind(interp, what, names, 1)?;
    let x = x.unwrap_or(Value::None);
    let grid = x.downcast::<Grid>();
    let source = match grid {
        Some(grid) => grid.source(),
        None => values::tensor(&x, what, span)?,
    };
    let dtype = given(d).map_or(Ok(source.view.dtype), |v| to_dtype(&v, format_args!("{what}: dtype"), span))?;
    let order = given(axes).map(|a| transpose_axes(&a, span)).transpose()?;
    let space = match order {
        None => space_of(interp, buffer, what, source.view.space, span)?,
        Some(_) => space_of(interp, buffer, what, Space::Sbuf, span)?,
    };
    if order.is_some() && space != Space::Sbuf {
        let message = format!("{what}: transpose_axes makes a tensor in sbuf, but buffer is {space}");
        return Err(Raise::at("value-error", message, span, "here"));
    }
    let address = address(at, what, span)?;
    let name = named(name, what, span)?;
    let Some(grid) = grid else {
        let shape = match &order {
            Some(order) => grids::transposed(source, order, span)?,
            None => extents(source),
        };
        return allocate(interp, &AllocRequest { shape, dtype, space, name, address }, Fill::Nothing, span);
    };
    let (name, sharing) = name_of(interp, name.as_deref(), span);
    grids::empty_like(interp, grid, &grids::Like { dtype, space, name, sharing, address, order }, span)
}

/// The supported orders of DMA transposes.
fn transpose_axes(value: &Value, span: Span) -> EvalResult<Vec<usize>> {
    let what = "nl.empty_like: transpose_axes";
    match ints(value, what, span)?.as_slice() {
        [1, 0] => Ok(vec![1, 0]),
        [2, 1, 0] => Ok(vec![2, 1, 0]),
        [3, 1, 2, 0] => Ok(vec![3, 1, 2, 0]),
        other => {
            let message = format!("{what} is {}", tuple_text(other.iter().copied()));
            Err(Raise::at("value-error", message, span, "here")
                .help("the orders are (1, 0), (2, 1, 0) and (3, 1, 2, 0)"))
        }
    }
}

/// `nl.shared_identity_matrix(n, dtype=uint8, dst=None)`
pub(super) fn shared_identity_matrix(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.shared_identity_matrix";
    let [n, d, dst] = args.bind(interp, what, ["n", "dtype", "dst"], 1)?;
    let n = int(&n.unwrap_or(Value::None), "nl.shared_identity_matrix: n", span)?;
    let dtype = given(d).map_or(Ok(DType::U8), |v| to_dtype(&v, what, span))?;
    let dst = given(dst);
    let dst = dst.as_ref().map(|v| values::tensor(v, what, span)).transpose()?;
    let name = target_name(interp, span);
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: &name };
    match lower.identity(n, dtype, dst) {
        Ok(t) => Ok(Value::object(t)),
        Err(v) => Err(raise(what, &v, span, &[])),
    }
}

/// `nl.shared_constant(constant)`: an array, or the path of a `.npy` file; lists of numbers, too. Older releases have a `dtype`.
pub(super) fn shared_constant(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.shared_constant";
    let [constant, d] = args.bind(interp, what, ["constant", "dtype"], 1)?;
    let constant = constant.unwrap_or(Value::None);
    let file;
    let array = match &constant {
        Value::Str(path) => {
            let read = match interp.host {
                Some(host) => host.array(path),
                None => interp.loader.array(Path::new(&**path)),
            };
            let read = read.map_err(|why| Raise::at("unreadable-constant", format!("{what}: {why}"), span, "here"))?;
            // Elements take more memory as values.
            interp.charge(read.data.len().saturating_mul(5), span)?;
            file = array::host_array(interp, &read);
            &file
        }
        other => other,
    };
    let array = match array {
        Value::Host(host) => return Err(interp.host_error(host, span)),
        other if let Some(t) = other.downcast::<Tensor>() => {
            let message = format!(
                "{what} of the tensor `{}`: a constant must be known when the kernel is compiled",
                t.storage.name
            );
            return Err(
                Raise::at("operand-kind", message, span, "here").help("an argument of the kernel is in HBM already")
            );
        }
        other => match array::of(other) {
            Some(array) => array,
            // Lists of Python numbers have no element type.
            None => {
                let array = Array::from_value(other, None, span)?;
                let narrow = match array.dtype {
                    HostDtype::F64 => DType::F32,
                    HostDtype::Device(d) => d,
                    HostDtype::I64 | HostDtype::U64 => DType::I32,
                };
                array.astype(HostDtype::Device(narrow))
            }
        },
    };
    let dtype = match given(d) {
        Some(d) => to_dtype(&d, what, span)?,
        None => array::device_dtype(&array, span)?,
    };
    if dtype.is_packed() {
        let message = format!("{what} of {dtype}: each element holds four numbers");
        return Err(Raise::at("unsupported-dtype", message, span, "here")
            .help("make it from the integers that hold the bits, and reinterpret it with .view(...)"));
    }
    if array.shape.is_empty() || array.values.is_empty() {
        let message = format!(
            "{what} of an array of shape {}: it needs at least one dimension and one element",
            tuple_text(array.shape.iter().map(|d| *d as i64))
        );
        return Err(Raise::at("bad-shape", message, span, "here"));
    }
    let name = target_name(interp, span);
    let site = site(interp, span);
    let shape: Vec<i64> = array.shape.iter().map(|d| *d as i64).collect();
    let request = Request {
        name: &name,
        sharing: Sharing::Order,
        space: Space::SharedHbm,
        shape: &shape,
        dtype,
        address: None,
        data: Some(array.bytes(dtype)),
    };
    let tensor = state(interp).builder.constant(&request, site).map_err(|v| raise(what, &v, span, &[]))?;
    Ok(Value::object(tensor))
}
