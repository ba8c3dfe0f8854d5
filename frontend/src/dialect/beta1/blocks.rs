//! Tables of tiles: tensors with block dimensions, `nl.ndarray((4, 8, nl.par_dim(128), 512), ...)`.
//!
//! The dimensions before `nl.par_dim` count independent tiles. Each is allocated when it is first indexed, so that only
//! the tiles in use take memory.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use nki_diag::Span;
use nki_isa::names::Named;
use nki_isa::{DType, Imm, Space};
use rustc_hash::FxHashMap;

use super::alloc::Placement;
use super::make;
use crate::build::tensor::{Tensor, tuple_text};
use crate::dialect::common::values::memory_value;
use crate::eval::Interp;
use crate::eval::convert::int;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::stdlib::dtype;
use crate::eval::value::Value;

/// The shared state of all parts of a table.
pub(super) struct Table {
    pub(super) name: Rc<str>,
    /// Extents of the block dimensions.
    pub(super) counts: Vec<i64>,
    /// Extents of a tile.
    pub(super) tile: Vec<i64>,
    pub(super) dtype: DType,
    pub(super) space: Space,
    pub(super) fill: Option<Imm>,
    pub(super) placement: Placement,
    /// The call that created it.
    pub(super) span: Span,
    /// The tiles allocated so far, by the position of their index.
    pub(super) tiles: RefCell<FxHashMap<i64, Tensor>>,
}

/// A table of tiles, or the part of one selected by leading indices.
#[derive(Clone)]
pub(super) struct Blocks {
    pub(super) table: Rc<Table>,
    /// Leading block indices.
    first: Vec<i64>,
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<table {} {}>", self.table.name, self.shape_text())
    }
}

impl Blocks {
    /// All of a table.
    pub(super) fn all(table: Table) -> Value {
        Value::object(Blocks { table: Rc::new(table), first: Vec::new() })
    }

    pub(super) fn shape(&self) -> Vec<i64> {
        self.table.counts[self.first.len()..].iter().chain(&self.table.tile).copied().collect()
    }

    fn shape_text(&self) -> String {
        tuple_text(self.shape().into_iter())
    }

    /// The error for a table used as a tile.
    pub(super) fn whole(&self, what: &str, span: Span) -> Box<Raise> {
        let message = format!("{what}: `{}` of shape {} has block dimensions", self.table.name, self.shape_text());
        let open = self.table.counts.len() - self.first.len();
        Raise::at("block-dimension", message, span, "a table of tiles").help(format!(
            "index its first {open} dimension{} with ints: an instruction works on one tile",
            if open == 1 { "" } else { "s" }
        ))
    }

    /// Consumes leading block indices of the keys: the tile with the other keys, or a smaller table.
    pub(super) fn pick(&self, interp: &mut Interp<'_>, keys: &[Value], span: Span) -> EvalResult<(Value, Vec<Value>)> {
        let mut first = self.first.clone();
        let mut rest = keys.iter();
        while first.len() < self.table.counts.len() {
            let Some(key) = rest.clone().next() else { break };
            let count = self.table.counts[first.len()];
            let at = match key {
                Value::Ellipsis => break,
                Value::Slice(s) if count == 1 && s.start.is_none() && s.stop.is_none() => 0,
                Value::Slice(s) if s.start.is_none() && s.stop.is_none() && rest.len() == 1 => break,
                Value::Slice(_) => {
                    let message = format!("a slice of block dimension {} of `{}`", first.len(), self.table.name);
                    return Err(Raise::at("block-dimension", message, span, "here")
                        .help("block dimensions take ints: loop over them"));
                }
                other => match super::affine::IndexTile::of(other) {
                    Some(tile) if tile.axes.iter().all(|a| a.coefficient == 0 || a.count == 1) => tile.constant,
                    Some(_) => {
                        let message =
                            format!("an index tile for block dimension {} of `{}`", first.len(), self.table.name);
                        return Err(Raise::at("block-dimension", message, span, "here")
                            .help("block dimensions take ints: an instruction works on one tile"));
                    }
                    None => int(other, format_args!("a block index of `{}`", self.table.name), span)?,
                },
            };
            let wrapped = if at < 0 { at + count } else { at };
            if !(0..count).contains(&wrapped) {
                let message = format!(
                    "index {at} is out of bounds for block dimension {} of `{}`, shape {}",
                    first.len(),
                    self.table.name,
                    self.shape_text()
                );
                return Err(Raise::at("out-of-bounds", message, span, "here"));
            }
            first.push(wrapped);
            rest.next();
        }
        let rest: Vec<Value> = rest.cloned().collect();
        if first.len() < self.table.counts.len() {
            return Ok((Value::object(Blocks { table: self.table.clone(), first }), Vec::new()));
        }
        Ok((Value::object(self.tile(interp, &first)?), rest))
    }

    fn tile(&self, interp: &mut Interp<'_>, index: &[i64]) -> EvalResult<Tensor> {
        let position = index.iter().zip(&self.table.counts).fold(0, |at, (i, n)| at * n + i);
        if let Some(tile) = self.table.tiles.borrow().get(&position) {
            return Ok(tile.clone());
        }
        let made = make::tile(interp, &self.table, index)?;
        self.table.tiles.borrow_mut().insert(position, made.clone());
        Ok(made)
    }
}

impl Object for Blocks {
    fn type_name(&self) -> &'static str {
        "tensor"
    }

    fn is_device_data(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["shape", "dtype", "ndim", "name", "buffer", "itemsize"]
    }

    fn methods(&self) -> &'static [&'static str] {
        &["assert_shape"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        let shape = self.shape();
        Some(match name {
            "shape" => Value::tuple(shape.into_iter().map(Value::Int).collect::<Vec<_>>()),
            "dtype" => dtype::value(self.table.dtype),
            "ndim" => Value::Int(shape.len() as i64),
            "name" => Value::str(&*self.table.name),
            "buffer" => memory_value(self.table.space),
            "itemsize" => Value::Int(self.table.dtype.size() as i64),
            _ => return None,
        })
    }

    fn call_method(&self, interp: &mut Interp<'_>, this: &Value, _name: &str, args: CallArgs) -> EvalResult<Value> {
        super::methods::assert_shape(interp, this, &self.shape(), args)
    }

    fn item(&self, interp: &mut Interp<'_>, this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        interp.dialect.index(interp, this, index, span)
    }

    fn set_item(
        &self,
        interp: &mut Interp<'_>,
        this: &Value,
        index: &Value,
        value: &Value,
        span: Span,
    ) -> EvalResult<()> {
        interp.dialect.assign(interp, this, index, value, span)
    }

    fn len(&self, _span: Span) -> EvalResult<i64> {
        Ok(self.shape().first().copied().unwrap_or(0))
    }

    fn no_attribute(&self, _interp: &Interp<'_>, name: &str, span: Span) -> Box<Raise> {
        let message = format!(
            "a tensor with block dimensions has no attribute `{name}` ({} in {})",
            self.table.name,
            self.table.space.name()
        );
        Raise::at("unknown-attribute", message, span, "here").help("index its block dimensions first")
    }
}
