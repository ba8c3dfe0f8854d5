//! Grids as values: `nl.tiles`, `nl.blocks`, `nl.alloc_tiles`, `nl.alloc_blocks`, and `nl.empty_like` of a grid.

use std::sync::Arc;

use nki_diag::{Diagnostic, Span};
use nki_isa::{DType, Space};

use super::alloc::{self, address, name_of, named, space_of};
use crate::build::builder::Sharing;
use crate::build::grid::{Grid, GridKey, GridRequest};
use crate::build::tensor::{Tensor, tuple_text};
use crate::dialect::common::enums::ApiEnum;
use crate::dialect::common::errors::raise;
use crate::dialect::common::handles::ApiClass;
use crate::dialect::common::state::{site, state};
use crate::dialect::common::values;
use crate::eval::Interp;
use crate::eval::convert::{given, int, wrong};
use crate::eval::error::{EvalResult, Raise, closest};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::stdlib::dtype;
use crate::eval::value::Value;

const ATTRIBUTES: &[&str] = &[
    "shape",
    "tile_shape",
    "element_shape",
    "dtype",
    "buffer",
    "data",
    "is_data_representable",
    "is_remainder",
    "index_step_elements",
];

fn tuple(items: Vec<i64>) -> Value {
    Value::tuple(items.into_iter().map(Value::Int).collect::<Vec<_>>())
}

impl Object for Grid {
    fn type_name(&self) -> &'static str {
        if self.is_of_blocks() { "NkiBlockGrid" } else { "NkiTileGrid" }
    }

    fn class(&self) -> Option<Value> {
        ApiClass::of(self)
    }

    fn repr(&self) -> String {
        let shape = |of: Vec<i64>| tuple_text(of.into_iter());
        let tile = shape(self.tile_shape());
        let name = &self.source().storage.name;
        format!("<{} {} of tiles {tile} over {name}>", self.type_name(), shape(self.shape()))
    }

    fn is_device_data(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        let blocks = self.is_of_blocks().then_some("block_shape");
        ATTRIBUTES.iter().copied().chain(blocks).collect()
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        Some(match name {
            "shape" => tuple(self.shape()),
            "tile_shape" => tuple(self.tile_shape()),
            "block_shape" if self.is_of_blocks() => tuple(self.block_shape()),
            "element_shape" => tuple(self.element_shape()),
            "index_step_elements" => tuple(self.index_step()),
            "is_remainder" => Value::Bool(self.is_remainder()),
            "is_data_representable" => Value::Bool(self.data().is_ok()),
            "dtype" => dtype::value(self.source().view.dtype),
            "buffer" => values::memory_value(self.source().view.space),
            "data" => Value::object(self.data().ok()?),
            _ => return None,
        })
    }

    fn no_attribute(&self, _interp: &Interp<'_>, name: &str, span: Span) -> Box<Raise> {
        if name == "data"
            && let Err(violation) = self.data()
        {
            return raise("", &violation, span, &[&self.source().storage]);
        }
        let message = format!("a {} has no attribute `{name}`", self.type_name());
        let finding = Diagnostic::error("unknown-attribute", message).at(span, "here");
        Raise::new(match closest(name, self.attributes()) {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None => finding.help("a grid has only coordinates; the tensor of its cells is `.data`"),
        })
    }

    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        let items = match index {
            Value::Tuple(items) => items.to_vec(),
            one => vec![one.clone()],
        };
        let keys = items.iter().map(|item| key(item, span)).collect::<EvalResult<Vec<_>>>()?;
        match self.index(&keys) {
            Ok(grid) => Ok(Value::object(grid)),
            Err(violation) => Err(raise("", &violation, span, &[&self.source().storage])),
        }
    }
}

fn key(item: &Value, span: Span) -> EvalResult<GridKey> {
    let what = "an index of a grid";
    let bound = |v: &Value| if v.is_none() { Ok(None) } else { int(v, what, span).map(Some) };
    Ok(match item {
        Value::Int(i) => GridKey::At(*i),
        Value::Ellipsis => GridKey::Ellipsis,
        Value::Slice(s) => GridKey::Slice(bound(&s.start)?, bound(&s.stop)?, bound(&s.step)?.unwrap_or(1)),
        other => {
            let refused = wrong(what, "ints and slices", other, span);
            return Err(match values::is_run_time(other) {
                true => refused.help(
                    "cells are selected when the kernel is specialised: for a run-time index, index the tensor itself",
                ),
                false => refused,
            });
        }
    })
}

/// A tuple of ints, each exactly an int.
fn shape(value: Option<Value>, what: &str, name: &str, span: Span) -> EvalResult<Vec<i64>> {
    let value = value.unwrap_or(Value::None);
    let ints = match &value {
        Value::Tuple(items) => items.iter().map(|i| if let Value::Int(i) = i { Some(*i) } else { None }).collect(),
        _ => None,
    };
    ints.ok_or_else(|| {
        let message = format!("{what}: {name} takes a tuple of ints, got {}", value.a_type());
        Raise::at("type-error", message, span, "here")
    })
}

/// The source of tiles and blocks: the tensor's or the grid's tiles.
fn source_tiles(what: &str, source: &Value, tile_shape: Option<Value>, span: Span) -> EvalResult<Grid> {
    let tile_shape = given(tile_shape).map(|s| shape(Some(s), what, "tile_shape", span)).transpose()?;
    if let Some(grid) = source.downcast::<Grid>() {
        return match tile_shape {
            Some(tile_shape) if tile_shape != grid.tile_shape() => {
                let message = format!(
                    "{what}: tile_shape is {}, but the tiles of the grid are {}",
                    tuple_text(tile_shape.into_iter()),
                    tuple_text(grid.tile_shape().into_iter())
                );
                Err(Raise::at("value-error", message, span, "here")
                    .help("leave it out: the tiles of a grid stay as they are"))
            }
            _ => Ok(grid.clone()),
        };
    }
    let t = values::tensor(source, format_args!("{what}: source"), span)?;
    let Some(tile_shape) = tile_shape else {
        let message = format!("{what} of the tensor `{}` is missing `tile_shape`", t.storage.name);
        return Err(Raise::at("arguments", message, span, "in this call"));
    };
    Grid::of_tensor(what, t, &tile_shape).map_err(|v| raise("", &v, span, &[&t.storage]))
}

/// `nl.tiles(source, *, tile_shape=None)`
pub(super) fn tiles(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.tiles";
    args.at_most_positional(what, 1)?;
    let [source, tile_shape] = args.bind(interp, what, ["source", "tile_shape"], 1)?;
    let grid = source_tiles(what, &source.unwrap_or(Value::None), tile_shape, span)?;
    Ok(Value::object(grid.tiles()))
}

/// `nl.blocks(source, *, tile_shape=None, block_shape)`
pub(super) fn blocks(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.blocks";
    args.at_most_positional(what, 1)?;
    let [source, block_shape, tile_shape] = args.bind(interp, what, ["source", "block_shape", "tile_shape"], 2)?;
    let block_shape = shape(block_shape, what, "block_shape", span)?;
    let tiles = source_tiles(what, &source.unwrap_or(Value::None), tile_shape, span)?;
    match tiles.blocks(what, &block_shape) {
        Ok(grid) => Ok(Value::object(grid)),
        Err(violation) => Err(raise("", &violation, span, &[&tiles.source().storage])),
    }
}

/// `nl.alloc_tiles(*, tile_shape, element_shape, buffer, dtype, address=None, name='')`
pub(super) fn alloc_tiles(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let what = "nl.alloc_tiles";
    args.at_most_positional(what, 0)?;
    let span = args.span;
    let names = ["tile_shape", "element_shape", "buffer", "dtype", "address", "name"];
    let [tile, elements, buffer, d, at, name] = args.bind(interp, what, names, 4)?;
    alloc(interp, what, [tile, None, elements, buffer, d, at, name], span)
}

/// `nl.alloc_blocks(*, tile_shape, block_shape, element_shape, buffer, dtype, address=None, name='')`
pub(super) fn alloc_blocks(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let what = "nl.alloc_blocks";
    args.at_most_positional(what, 0)?;
    let span = args.span;
    let names = ["tile_shape", "block_shape", "element_shape", "buffer", "dtype", "address", "name"];
    let given = args.bind(interp, what, names, 5)?;
    alloc(interp, what, given, span)
}

fn alloc(interp: &mut Interp<'_>, what: &'static str, given: [Option<Value>; 7], span: Span) -> EvalResult<Value> {
    let [tile, block, elements, buffer, d, at, name] = given;
    let tile_shape = shape(tile, what, "tile_shape", span)?;
    let block_shape = block.map(|b| shape(Some(b), what, "block_shape", span)).transpose()?;
    let element_shape = shape(elements, what, "element_shape", span)?;
    let buffer = buffer.unwrap_or(Value::None);
    if buffer.downcast::<ApiEnum>().is_none_or(|e| !e.is_memory()) {
        let message = format!("{what}: buffer takes nl.sbuf, nl.psum or an HBM region, got {}", buffer.a_type());
        return Err(Raise::at("type-error", message, span, "here"));
    }
    let space = space_of(interp, Some(buffer), what, Space::Sbuf, span)?;
    let dtype = alloc::dtype(d, what, span)?;
    let address = address(at, what, span)?;
    let name = named(name, what, span)?;
    let (name, sharing) = name_of(interp, name.as_deref(), span);
    let site = site(interp, span);
    let request = GridRequest {
        name: &name,
        sharing,
        space,
        dtype,
        tile_shape: &tile_shape,
        block_shape: block_shape.as_deref(),
        element_shape: &element_shape,
        address: address.as_deref(),
    };
    match Grid::alloc(&mut state(interp).builder, what, &request, site) {
        Ok(grid) => Ok(Value::object(grid)),
        Err(violation) => Err(raise("", &violation, span, &[])),
    }
}

/// The arguments of `nl.empty_like`.
pub(super) struct Like {
    /// `dtype=`
    pub(super) dtype: DType,
    /// `buffer=`
    pub(super) space: Space,
    /// `name=`, else the variable's.
    pub(super) name: Arc<str>,
    /// Whether `name=` is given.
    pub(super) sharing: Sharing,
    /// `address=`
    pub(super) address: Option<Vec<i64>>,
    /// `transpose_axes=`
    pub(super) order: Option<Vec<usize>>,
}

/// `nl.empty_like(grid, ...)`
pub(super) fn empty_like(interp: &mut Interp<'_>, grid: &Grid, like: &Like, span: Span) -> EvalResult<Value> {
    let site = site(interp, span);
    let what = (&*like.name, like.sharing, like.space, like.dtype);
    let builder = &mut state(interp).builder;
    match grid.empty_like(builder, what, like.order.as_deref(), like.address.as_deref(), site) {
        Ok(made) => Ok(Value::object(made)),
        Err(violation) => Err(raise("", &violation, span, &[])),
    }
}

/// The extents of the SBUF tensor that receives a transpose of `t`.
pub(super) fn transposed(t: &Tensor, order: &[usize], span: Span) -> EvalResult<Vec<i64>> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted != (0..t.ndim()).collect::<Vec<_>>() {
        let message = format!(
            "nl.empty_like: transpose_axes must permute the {} dimensions of `{}`, shape {}",
            t.ndim(),
            t.storage.name,
            t.shape_text()
        );
        return Err(Raise::at("value-error", message, span, "here"));
    }
    Ok(order.iter().map(|&d| i64::from(t.view.dims[d].count)).collect())
}
