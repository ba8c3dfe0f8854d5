//! Direct allocation: `nki.compiler.sbuf.alloc`, `mod_alloc` and their relatives in PSUM.
//!
//! A rule maps the block index of each tile of a tensor to its address. Source: guide "NKI Direct Allocation", SDK 2.26.

use std::rc::Rc;

use nki_diag::Span;
use nki_isa::Space;
use nki_isa::names::Named;

use crate::dialect::common::state::arch;
use crate::dialect::common::values::memory;
use crate::eval::Interp;
use crate::eval::convert::{int, ints, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

/// The placement of the tiles of a tensor.
#[derive(Debug, Clone)]
pub(super) enum Placement {
    /// Chosen by the placement pass.
    Automatic,
    /// By a rule.
    Rule(Rc<Rule>),
}

/// A mapping from a block index to an address.
#[derive(Debug)]
pub(super) enum Rule {
    /// `func(idx, pdim_size, fdim_size)` returns partition and byte, in PSUM with the bank first.
    Function(Value),
    /// Numbers of tiles, after which addresses repeat.
    Modulo {
        /// Bank, partition and byte of the first tile.
        base: [i64; 3],
        /// Tiles along banks, partitions and bytes, for each block dimension; empty for one.
        tiles: [Vec<i64>; 3],
    },
}

/// `buffer=`: a memory, and a rule for addresses in it.
#[derive(Debug)]
struct Buffer {
    space: Space,
    placement: Placement,
}

impl Object for Buffer {
    fn type_name(&self) -> &'static str {
        "buffer"
    }

    fn is_inert(&self) -> bool {
        true
    }
}

/// The memory and the rule of a `buffer=` argument.
pub(super) fn buffer(value: &Value, what: &str, span: Span) -> EvalResult<(Space, Placement)> {
    match value.downcast::<Buffer>() {
        Some(buffer) => Ok((buffer.space, buffer.placement.clone())),
        None => Ok((memory(value, what, span)?, Placement::Automatic)),
    }
}

fn rule(space: Space, rule: Rule) -> Value {
    Value::object(Buffer { space, placement: Placement::Rule(Rc::new(rule)) })
}

/// A name of `nki.compiler.sbuf` or `nki.compiler.psum`.
pub(super) fn attribute(space: Space, name: &str) -> Option<Value> {
    let full = format!("neuronxcc.nki.compiler.{}.{name}", space.name());
    let data = u32::from(space == Space::Psum);
    Some(match name {
        "alloc" => Value::native(full, alloc, data),
        "mod_alloc" => Value::native(full, mod_alloc, data),
        "auto_alloc" => Value::native(full, auto_alloc, data),
        _ => return None,
    })
}

fn space(args: &CallArgs) -> Space {
    if args.data == 1 { Space::Psum } else { Space::Sbuf }
}

fn auto_alloc(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "auto_alloc", 0, 0)?;
    Ok(Value::object(Buffer { space: space(&args), placement: Placement::Automatic }))
}

fn alloc(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let space = space(&args);
    let [func] = args.bind(interp, "alloc", ["func"], 1)?;
    Ok(rule(space, Rule::Function(func.unwrap_or(Value::None))))
}

fn mod_alloc(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let (space, span) = (space(&args), args.span);
    let names = ["base_addr", "base_bank", "base_partition", "num_bank_tiles", "num_par_tiles", "num_free_tiles"];
    let [byte, bank, partition, banks, partitions, bytes] = args.bind(interp, "mod_alloc", names, 0)?;
    if byte.is_none() && space == Space::Sbuf {
        return Err(Raise::at("arguments", "mod_alloc() is missing its argument `base_addr`", span, "in this call"));
    }
    let number = |v: Option<Value>, what: &str| v.map_or(Ok(0), |v| int(&v, what, span));
    let list =
        |v: Option<Value>, what: &str| v.filter(|v| !v.is_none()).map_or(Ok(Vec::new()), |v| ints(&v, what, span));
    let base = [
        number(bank, "mod_alloc: base_bank")?,
        number(partition, "mod_alloc: base_partition")?,
        number(byte, "mod_alloc: base_addr")?,
    ];
    let tiles = [
        list(banks, "mod_alloc: num_bank_tiles")?,
        list(partitions, "mod_alloc: num_par_tiles")?,
        list(bytes, "mod_alloc: num_free_tiles")?,
    ];
    if let Some(n) = tiles.iter().flatten().find(|n| **n < 1) {
        return Err(Raise::at("bad-address", format!("mod_alloc of {n} tiles"), span, "at least one"));
    }
    Ok(rule(space, Rule::Modulo { base, tiles }))
}

/// Calls an address function: by the documented names of its parameters, or by position if it has other names.
fn address(interp: &mut Interp<'_>, func: &Value, values: [Value; 3], span: Span) -> EvalResult<Value> {
    let mut named = CallArgs::none(span);
    for (name, value) in ["idx", "pdim_size", "fdim_size"].into_iter().zip(&values) {
        named.keyword.push((interp.sym(name), value.clone()));
    }
    match interp.call(func, named) {
        Err(raise) if raise.diagnostic.id == "arguments" => interp.call(func, CallArgs::of(values, span)),
        found => found,
    }
}

impl Placement {
    /// Partition and byte of the tile at a block index, which has the given number of partitions and bytes per partition.
    pub(super) fn address(
        &self,
        interp: &mut Interp<'_>,
        space: Space,
        index: &[i64],
        size: (i64, i64),
        span: Span,
    ) -> EvalResult<Option<(i64, i64)>> {
        let Placement::Rule(rule) = self else { return Ok(None) };
        let bank_bytes = i64::from(arch(interp).psum_bank_bytes);
        let [bank, partition, byte] = match &**rule {
            Rule::Modulo { base, tiles } => {
                let mut at = *base;
                for (part, scale) in [(0, 1), (1, size.0), (2, size.1)] {
                    let counts = &tiles[part];
                    if !counts.is_empty() && counts.len() < index.len() {
                        let message = format!(
                            "mod_alloc has tiles for {} block dimensions, but the tensor has {}",
                            counts.len(),
                            index.len()
                        );
                        return Err(Raise::at("bad-address", message, span, "here")
                            .help("give a number of tiles for each block dimension, or none"));
                    }
                    // A tensor with fewer block dimensions is at 0 along the others.
                    let own = counts.iter().skip(counts.len().saturating_sub(index.len()));
                    let linear = own.zip(index).fold(0, |n, (count, i)| n * count + i % count);
                    at[part] += linear * scale;
                }
                at
            }
            Rule::Function(func) => {
                let index = Value::tuple(index.iter().copied().map(Value::Int).collect::<Vec<_>>());
                let found = address(interp, func, [index, Value::Int(size.0), Value::Int(size.1)], span)?;
                let numbers = ints(&found, "the address that the function of alloc returns", span)?;
                match (space, &numbers[..]) {
                    (Space::Psum, &[bank, partition, byte]) => [bank, partition, byte],
                    (Space::Sbuf, &[partition, byte]) => [0, partition, byte],
                    _ => {
                        let expected =
                            if space == Space::Psum { "(bank, partition, byte)" } else { "(partition, byte)" };
                        return Err(wrong("the function of alloc", expected, &found, span));
                    }
                }
            }
        };
        Ok(Some((partition, bank * bank_bytes + byte)))
    }
}
