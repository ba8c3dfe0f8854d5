//! Allocation of tensors: `nl.ndarray` and its relatives.

use std::cell::RefCell;
use std::rc::Rc;

use nki_diag::Span;
use nki_isa::{DType, Imm, Space};
use rustc_hash::FxHashMap;

use super::access::Place;
use super::alloc::{Placement, buffer};
use super::blocks::{Blocks, Table};
use crate::build::builder::{Request, Sharing};
use crate::build::lower::{Lower, extents};
use crate::build::tensor::Tensor;
use crate::dialect::common::errors::raise;
use crate::dialect::common::state::{site, state, target_name};
use crate::eval::Interp;
use crate::eval::convert::{flag, given, int, number, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::stdlib::dtype::dtype as to_dtype;
use crate::eval::value::Value;

/// `nl.par_dim(n)`: the dimension of a shape that counts partitions.
#[derive(Debug)]
struct ParDim(i64);

impl Object for ParDim {
    fn type_name(&self) -> &'static str {
        "nl.par_dim"
    }

    fn is_inert(&self) -> bool {
        true
    }
}

pub(super) fn par_dim(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [n] = args.bind(interp, "nl.par_dim", ["value"], 1)?;
    Ok(Value::object(ParDim(int(&n.unwrap_or(Value::None), "nl.par_dim", span)?)))
}

/// Extents, with the index of the partition dimension if the shape has a `par_dim`.
pub(super) fn shape(value: &Value, what: &str, span: Span) -> EvalResult<(Vec<i64>, Option<usize>)> {
    let items = value.sequence().unwrap_or_else(|| vec![value.clone()]);
    let mut partitions = None;
    let mut extents = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        match item.downcast::<ParDim>() {
            Some(ParDim(n)) => {
                if partitions.replace(at).is_some() {
                    return Err(Raise::at(
                        "bad-shape",
                        format!("{what}: a shape can have only one nl.par_dim"),
                        span,
                        "here",
                    ));
                }
                extents.push(*n);
            }
            None => extents.push(int(item, format_args!("{what}: shape"), span)?),
        }
    }
    Ok((extents, partitions))
}

/// The common arguments.
struct TileRequest {
    shape: Vec<i64>,
    partitions: Option<usize>,
    dtype: DType,
    space: Space,
    placement: Placement,
    name: Option<Rc<str>>,
    fill: Option<Imm>,
}

fn allocate(interp: &mut Interp<'_>, wanted: TileRequest, what: &str, span: Span) -> EvalResult<Value> {
    let name: Rc<str> = match wanted.name {
        Some(name) => name,
        None => (&*target_name(interp, span)).into(),
    };
    if wanted.fill.is_some() && !wanted.space.is_on_chip() {
        let message = format!("{what} in {}: a tensor in HBM has no initial value", wanted.space);
        return Err(Raise::at("operand-memory", message, span, "here").help(
            "allocate it with nl.ndarray, fill a tile with nl.zeros or nl.full, and store the tile with nl.store",
        ));
    }
    let blocks = if wanted.space.is_on_chip() { wanted.partitions.unwrap_or(0) } else { 0 };
    if let Some(n) = wanted.shape[..blocks].iter().find(|n| **n < 1) {
        return Err(Raise::at("bad-shape", format!("{what}: a block dimension of {n}"), span, "at least 1"));
    }
    let mut tile_shape = wanted.shape[blocks..].to_vec();
    // A vector on chip is a column, like the results of loads and reductions of one dimension.
    if let (true, [_]) = (wanted.space.is_on_chip(), &tile_shape[..]) {
        tile_shape.push(1);
    }
    let table = Table {
        name,
        counts: wanted.shape[..blocks].to_vec(),
        tile: tile_shape,
        dtype: wanted.dtype,
        space: wanted.space,
        fill: wanted.fill,
        placement: wanted.placement,
        span,
        tiles: RefCell::new(FxHashMap::default()),
    };
    if blocks > 0 { Ok(Blocks::all(table)) } else { tile(interp, &table, &[]).map(Value::object) }
}

/// Allocates the tile of a table at a block index.
pub(super) fn tile(interp: &mut Interp<'_>, table: &Table, index: &[i64]) -> EvalResult<Tensor> {
    let span = table.span;
    let bytes = table.tile.iter().skip(1).product::<i64>().saturating_mul(table.dtype.size() as i64);
    let size = (table.tile.first().copied().unwrap_or(1), bytes);
    let address =
        table.placement.address(interp, table.space, index, size, span)?.map(|(partition, byte)| [partition, byte]);
    let site = site(interp, span);
    let request = Request {
        name: &table.name,
        sharing: Sharing::Order,
        space: table.space,
        shape: &table.tile,
        dtype: table.dtype,
        address: address.as_ref().map(|at| &at[..]),
        data: None,
    };
    let made = state(interp).builder.alloc(&request, site).map_err(|v| raise("", &v, span, &[]))?;
    if table.space == Space::Psum {
        // Zeros need no instruction if matmuls accumulate.
        let zero = table.fill.is_some_and(|v| v.as_f32() == 0.0);
        state(interp).builder.follow(&made, zero, site);
        if zero {
            return Ok(made);
        }
    }
    if let Some(value) = table.fill {
        let mut lower = Lower { builder: &mut state(interp).builder, site, name: &table.name };
        lower.fill(&made, value).map_err(|v| raise("", &v, span, &[]))?;
    }
    Ok(made)
}

const NAMES: [&str; 5] = ["shape", "dtype", "buffer", "name", "lazy_initialization"];

fn made(interp: &mut Interp<'_>, args: CallArgs, what: &'static str, fill: Option<Imm>) -> EvalResult<Value> {
    let span = args.span;
    let [s, d, b, name, lazy] = args.bind(interp, what, NAMES, 1)?;
    lazy.map_or(Ok(false), |v| flag(&v, format_args!("{what}: lazy_initialization"), span))?;
    let (shape, partitions) = shape(&s.unwrap_or(Value::None), what, span)?;
    let Some(d) = given(d) else {
        return Err(Raise::at("arguments", format!("{what}() is missing its argument `dtype`"), span, "in this call"));
    };
    let (space, placement) = place(b, what, span)?;
    let dtype = to_dtype(&d, format_args!("{what}: dtype"), span)?;
    let name = named(name, what, span)?;
    allocate(interp, TileRequest { shape, partitions, dtype, space, placement, name, fill }, what, span)
}

fn place(value: Option<Value>, what: &str, span: Span) -> EvalResult<(Space, Placement)> {
    match given(value) {
        None => Ok((Space::Sbuf, Placement::Automatic)),
        Some(value) => buffer(&value, &format!("{what}: buffer"), span),
    }
}

fn named(value: Option<Value>, what: &str, span: Span) -> EvalResult<Option<Rc<str>>> {
    match &given(value) {
        None => Ok(None),
        Some(Value::Str(s)) => Ok((!s.is_empty()).then(|| s.clone())),
        Some(other) => Err(wrong(format_args!("{what}: name"), "a string", other, span)),
    }
}

/// `nl.ndarray(shape, dtype, buffer=sbuf, name="", lazy_initialization=False)`
pub(super) fn ndarray(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    made(interp, args, "nl.ndarray", None)
}

/// `nl.zeros(shape, dtype, ...)`
pub(super) fn zeros(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    made(interp, args, "nl.zeros", Some(Imm::Int(0)))
}

/// `nl.ones(shape, dtype, ...)`
pub(super) fn ones(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    made(interp, args, "nl.ones", Some(Imm::Int(1)))
}

/// `nl.full(shape, fill_value, dtype, ...)`
pub(super) fn full(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (span, what) = (args.span, "nl.full");
    let names = ["shape", "fill_value", "dtype", "buffer", "name", "lazy_initialization"];
    let [s, v, d, b, name, _lazy] = args.bind(interp, what, names, 3)?;
    let (shape, partitions) = shape(&s.unwrap_or(Value::None), what, span)?;
    let fill = Some(number(&v.unwrap_or(Value::None), "nl.full: fill_value", span)?);
    let (space, placement) = place(b, what, span)?;
    let dtype = to_dtype(&d.unwrap_or(Value::None), "nl.full: dtype", span)?;
    let name = named(name, what, span)?;
    allocate(interp, TileRequest { shape, partitions, dtype, space, placement, name, fill }, what, span)
}

fn like(interp: &mut Interp<'_>, args: CallArgs, what: &'static str, fill: Option<Imm>) -> EvalResult<Value> {
    let span = args.span;
    let [x, d, b, name] = args.bind(interp, what, ["a", "dtype", "buffer", "name"], 1)?;
    let x = x.unwrap_or(Value::None);
    let of = Place::need(&x, what, span)?.outline(span)?;
    let (space, placement) = match given(b) {
        None => (of.view.space, Placement::Automatic),
        Some(value) => buffer(&value, &format!("{what}: buffer"), span)?,
    };
    let dtype = given(d).map_or(Ok(of.view.dtype), |v| to_dtype(&v, format_args!("{what}: dtype"), span))?;
    let name = named(name, what, span)?;
    allocate(
        interp,
        TileRequest { shape: extents(&of), partitions: None, dtype, space, placement, name, fill },
        what,
        span,
    )
}

/// `nl.zeros_like(a, dtype=None, buffer=None, name="")`
pub(super) fn zeros_like(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    like(interp, args, "nl.zeros_like", Some(Imm::Int(0)))
}

/// `nl.empty_like(a, dtype=None, buffer=None, name="")`
pub(super) fn empty_like(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    like(interp, args, "nl.empty_like", None)
}

/// `nl.rand(shape, dtype=float32)`: a tile of random numbers in [0, 1).
pub(super) fn rand(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (span, what) = (args.span, "nl.rand");
    let [s, d] = args.bind(interp, what, ["shape", "dtype"], 1)?;
    let (shape, _) = shape(&s.unwrap_or(Value::None), what, span)?;
    let dtype = given(d).map_or(Ok(DType::F32), |v| to_dtype(&v, "nl.rand: dtype", span))?;
    let name = target_name(interp, span);
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: &name };
    let made = lower.tile(&shape, dtype, Space::Sbuf).and_then(|t| lower.rand(&t).map(|()| t));
    made.map(Value::object).map_err(|v| raise(what, &v, span, &[]))
}

/// `nl.shared_identity_matrix(n, dtype=uint8)`: a constant in HBM, to be loaded.
pub(super) fn shared_identity_matrix(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (span, what) = (args.span, "nl.shared_identity_matrix");
    let [n, d, name] = args.bind(interp, what, ["n", "dtype", "name"], 1)?;
    let n = int(&n.unwrap_or(Value::None), "nl.shared_identity_matrix: n", span)?;
    let dtype = given(d).map_or(Ok(DType::U8), |v| to_dtype(&v, what, span))?;
    named(name, what, span)?;
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: "identity" };
    lower.identity_constant(n, dtype).map(Value::object).map_err(|v| raise(what, &v, span, &[]))
}
