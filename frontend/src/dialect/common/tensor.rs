//! Tensors as values: attributes and methods. Indices and operators are defined by the dialect.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};

use super::errors::raise;
use super::handles::ApiClass;
use super::values::{self, index, is_run_time};
use crate::build;
use crate::build::tensor::{DynamicOffset, Tensor};
use crate::eval::Interp;
use crate::eval::convert::{flag, int, ints, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::{Object, unknown_among};
use crate::eval::native::CallArgs;
use crate::eval::stdlib::dtype;
use crate::eval::value::{Key, Value};

/// Methods of a tensor.
pub(crate) const METHODS: &[&str] = &[
    "permute",
    "broadcast",
    "broadcast_to",
    "expand_dim",
    "squeeze_dim",
    "reshape_dim",
    "flatten_dims",
    "reshape",
    "rearrange",
    "slice",
    "select",
    "vector_select",
    "view",
    "reinterpret_cast",
    "ap",
    "get_pattern",
    "_get_pattern_and_offset",
    "is_hbm",
    "is_contiguous",
    "is_indirect",
    "indirect",
];

/// Attributes of a tensor. `base_tensor` is not documented: nki-library's MX kernels read it from tensors and from views.
pub(crate) const ATTRIBUTES: &[&str] = &[
    "shape",
    "strides",
    "offset",
    "name",
    "dtype",
    "buffer",
    "ndim",
    "size",
    "address",
    "itemsize",
    "base_tensor",
    "data",
];

fn tuple(items: impl Iterator<Item = i64>) -> Value {
    Value::tuple(items.map(Value::Int).collect::<Vec<_>>())
}

impl Object for Tensor {
    fn type_name(&self) -> &'static str {
        "tensor"
    }

    fn class(&self) -> Option<Value> {
        ApiClass::of(self)
    }

    fn repr(&self) -> String {
        format!("<tensor {} {} {} {}>", self.storage.name, self.shape_text(), self.view.dtype, self.view.space)
    }

    fn no_attribute(&self, interp: &Interp<'_>, name: &str, span: Span) -> Box<Raise> {
        // What arrays of the host have.
        let instead = match name {
            "T" | "transpose" | "swapaxes" => {
                "nisa.nc_transpose swaps partitions and elements; `permute` reorders the other dimensions"
            }
            "astype" | "to" | "type" | "float" | "half" | "bfloat16" => {
                "a tile keeps its dtype: allocate one of the other dtype with nl.ndarray, and nisa.tensor_copy(dst=new, src=old) converts"
            }
            "sum" | "mean" | "max" | "min" => "nisa.tensor_reduce reduces the last dimensions of a tile",
            "copy" | "clone" => "allocate another tile with nl.ndarray, and copy with nisa.tensor_copy",
            _ => {
                return unknown_among(self, METHODS.iter().chain(interp.dialect.tensor_methods()).copied(), name, span);
            }
        };
        let message = format!("a tensor has no attribute `{name}`");
        Raise::at("unknown-attribute", message, span, "here").help(instead)
    }

    /// Tensors are compared by identity.
    fn hash_key(&self) -> Option<Key> {
        Some(Key::Identity(std::ptr::from_ref(self) as usize))
    }

    fn is_device_data(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        ATTRIBUTES.to_vec()
    }

    fn methods(&self) -> &'static [&'static str] {
        METHODS
    }

    fn has_method(&self, interp: &Interp<'_>, name: &str) -> bool {
        METHODS.contains(&name) || interp.dialect.tensor_methods().contains(&name)
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        Some(match name {
            "shape" => tuple(self.view.dims.iter().map(|d| i64::from(d.count))),
            "dtype" => dtype::value(self.view.dtype),
            "strides" => tuple(self.strides().iter().copied()),
            "offset" => Value::Int(self.offset()),
            "name" => Value::str(&*self.storage.name),
            "buffer" => values::memory_value(self.view.space),
            "ndim" => Value::Int(self.ndim() as i64),
            "size" => Value::Int(self.view.elements() as i64),
            "itemsize" => Value::Int(self.view.dtype.size() as i64),
            // As for a grid, so that a kernel can accept either.
            "data" => Value::object(self.clone()),
            "base_tensor" => Value::object(Tensor::whole(self.storage.clone())),
            "address" => match self.storage.address {
                Some(a) => tuple([i64::from(a.partition), i64::from(a.byte)].into_iter()),
                None => Value::None,
            },
            _ => return None,
        })
    }

    fn call_method(&self, interp: &mut Interp<'_>, this: &Value, name: &str, args: CallArgs) -> EvalResult<Value> {
        match interp.dialect.method(interp, this, name, &args)? {
            Some(value) => Ok(value),
            None => method(interp, self, name, args),
        }
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
        match value {
            Value::Poison => Ok(()),
            _ => interp.dialect.assign(interp, this, index, value, span),
        }
    }

    fn follows_dialect(&self) -> bool {
        true
    }

    fn truth(&self, interp: &mut Interp<'_>, this: &Value, span: Span) -> EvalResult<bool> {
        Ok(interp.dialect.truth(interp, this, span)?.unwrap_or(true))
    }

    fn len(&self, _span: Span) -> EvalResult<i64> {
        Ok(i64::from(self.view.dims[0].count))
    }

    fn iterate(&self, span: Span) -> EvalResult<Vec<Value>> {
        let name = &self.storage.name;
        Err(Raise::at("not-iterable", format!("tensor `{name}` cannot be iterated over"), span, "here")
            .help(format!("loop over indices: for i in range({name}.shape[0]): {name}[i, ...]")))
    }
}

/// A new tensor value, or the diagnostic of the broken rule.
pub(crate) fn wrap(from: &Tensor, made: build::Result<Tensor>, span: Span) -> EvalResult<Value> {
    match made {
        Ok(t) => Ok(Value::object(t)),
        Err(v) => Err(raise("", &v, span, &[&from.storage])),
    }
}

/// `t.name(...)`.
fn method(interp: &mut Interp<'_>, t: &Tensor, name: &str, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    if let Some(answer) = answer(t, name) {
        args.positional_only(interp, name, 0, 0)?;
        return Ok(Value::Bool(answer));
    }
    if let Err(violation) = t.plain(name) {
        return wrap(t, Err(violation), span);
    }
    let made = match name {
        "permute" => {
            // permute(0, 2, 1) is accepted for permute((0, 2, 1)).
            let order = if args.positional.len() > 1 && args.keyword.is_empty() {
                args.positional.iter().map(|v| int(v, "permute", span)).collect::<EvalResult<Vec<_>>>()?
            } else {
                let [dims] = args.bind(interp, "permute", ["dims"], 1)?;
                ints(&dims.unwrap_or(Value::None), "permute", span)?
            };
            t.permute(&order)
        }
        "broadcast" => {
            let [dim, size] = args.bind(interp, "broadcast", ["dim", "size"], 2)?;
            t.broadcast(need(dim, "broadcast: dim", span)?, need(size, "broadcast: size", span)?)
        }
        "broadcast_to" => {
            let [shape] = args.bind(interp, "broadcast_to", ["shape"], 1)?;
            t.broadcast_to(&ints(&shape.unwrap_or(Value::None), "broadcast_to: shape", span)?)
        }
        "expand_dim" => {
            let [dim] = args.bind(interp, "expand_dim", ["dim"], 1)?;
            t.expand_dim(need(dim, "expand_dim: dim", span)?)
        }
        "squeeze_dim" => {
            let [dim] = args.bind(interp, "squeeze_dim", ["dim"], 1)?;
            t.squeeze_dim(need(dim, "squeeze_dim: dim", span)?)
        }
        "reshape_dim" => {
            let [dim, shape] = args.bind(interp, "reshape_dim", ["dim", "shape"], 2)?;
            let shape = ints(&shape.unwrap_or(Value::None), "reshape_dim: shape", span)?;
            t.reshape_dim(need(dim, "reshape_dim: dim", span)?, &shape)
        }
        "flatten_dims" => {
            let [a, b] = args.bind(interp, "flatten_dims", ["start_dim", "end_dim"], 2)?;
            t.flatten_dims(need(a, "flatten_dims: start_dim", span)?, need(b, "flatten_dims: end_dim", span)?)
        }
        "reshape" => {
            let shape = if args.positional.len() > 1 && args.keyword.is_empty() {
                args.positional.iter().map(|v| int(v, "reshape", span)).collect::<EvalResult<Vec<_>>>()?
            } else {
                let [shape] = args.bind(interp, "reshape", ["shape"], 1)?;
                ints(&shape.unwrap_or(Value::None), "reshape: shape", span)?
            };
            t.reshape(&shape)
        }
        "rearrange" => rearrange(interp, t, args)?,
        "slice" => {
            let [dim, start, end, step] = args.bind(interp, "slice", ["dim", "start", "end", "step"], 3)?;
            let step = step.map_or(Ok(1), |s| int(&s, "slice: step", span))?;
            t.slice(
                need(dim, "slice: dim", span)?,
                need(start, "slice: start", span)?,
                need(end, "slice: end", span)?,
                step,
            )
        }
        "select" => {
            let [dim, at] = args.bind(interp, "select", ["dim", "index"], 2)?;
            let dim = need(dim, "select: dim", span)?;
            match at.unwrap_or(Value::None) {
                v if is_run_time(&v) => t.select_dynamic(dim, &index(t, &v, "select: index", span)?),
                v => t.select(dim, int(&v, "select: index", span)?),
            }
        }
        "vector_select" => {
            let [dim, offsets] = args.bind(interp, "vector_select", ["dim", "vector_offset"], 2)?;
            let offsets = offsets.unwrap_or(Value::None);
            let offsets = values::tensor(&offsets, "vector_select: vector_offset", span)?;
            t.vector_select(need(dim, "vector_select: dim", span)?, &offsets.view)
        }
        "view" | "reinterpret_cast" => {
            let [dtype] = args.bind(interp, name, ["dtype"], 1)?;
            t.view_as(dtype::dtype(&dtype.unwrap_or(Value::None), "view: dtype", span)?)
        }
        "ap" => ap(interp, t, args)?,
        "get_pattern" => {
            args.positional_only(interp, name, 0, 0)?;
            return Ok(pattern(t));
        }
        // Not documented. nki-library calls it (SDK 2.33).
        "_get_pattern_and_offset" => {
            args.positional_only(interp, name, 0, 0)?;
            return Ok(Value::tuple(vec![pattern(t), Value::Int(t.offset())]));
        }
        "indirect" => {
            let [index, count] = args.bind(interp, "indirect", ["index", "num_elem"], 1)?;
            let index = index.unwrap_or(Value::None);
            let index = values::tensor(&index, "indirect: index", span)?;
            let count = count.filter(|c| !c.is_none()).map(|c| int(&c, "indirect: num_elem", span)).transpose()?;
            t.indirect(&index.view, count)
        }
        _ => return Err(t.no_attribute(interp, name, span)),
    };
    wrap(t, made, span)
}

/// The answer of a method that asks about a tensor, indirect ones included.
fn answer(t: &Tensor, name: &str) -> Option<bool> {
    match name {
        "is_contiguous" => Some(t.is_contiguous()),
        "is_indirect" => Some(t.view.indirect.is_some()),
        // Not documented. nki-library calls it (SDK 2.33).
        "is_hbm" => Some(t.view.space.is_hbm()),
        _ => None,
    }
}

/// The `[stride, count]` pairs of a tensor.
fn pattern(t: &Tensor) -> Value {
    let pairs = t.pattern().into_iter().map(|(s, c)| Value::list(vec![Value::Int(s), Value::Int(c)]));
    Value::list(pairs.collect())
}

fn need(value: Option<Value>, what: &str, span: Span) -> EvalResult<i64> {
    int(&value.unwrap_or(Value::None), what, span)
}

fn rearrange(interp: &mut Interp<'_>, t: &Tensor, args: CallArgs) -> EvalResult<build::Result<Tensor>> {
    let span = args.span;
    let [src, dst, sizes] = args.bind(interp, "rearrange", ["src_pattern", "dst_pattern", "fixed_sizes"], 2)?;
    let (src, dst) = (pattern_names(&src, span)?, pattern_names(&dst, span)?);
    let mut fixed: Vec<(Rc<str>, i64)> = Vec::new();
    match &sizes {
        None | Some(Value::None) => {}
        Some(Value::Dict(d)) => {
            for (_, k, v) in d.borrow().iter() {
                let Value::Str(k) = k else {
                    return Err(wrong("rearrange: a key of fixed_sizes", "a string", k, span));
                };
                fixed.push((k.clone(), int(v, "rearrange: a size", span)?));
            }
        }
        Some(other) => return Err(wrong("rearrange: fixed_sizes", "a dict", other, span)),
    }
    let src: Vec<Vec<&str>> = src.iter().map(|v| v.iter().map(|s| &**s).collect()).collect();
    let dst: Vec<Vec<&str>> = dst.iter().map(|v| v.iter().map(|s| &**s).collect()).collect();
    let fixed: Vec<(&str, i64)> = fixed.iter().map(|(k, v)| (&**k, *v)).collect();
    Ok(t.rearrange(&src, &dst, &fixed))
}

/// `('b', ('h', 'w'))`.
fn pattern_names(value: &Option<Value>, span: Span) -> EvalResult<Vec<Vec<Rc<str>>>> {
    let expected = "a tuple of names and tuples of names";
    let value = value.clone().unwrap_or(Value::None);
    let Some(items) = value.sequence() else {
        let raise = wrong("rearrange: a pattern", expected, &value, span);
        return Err(match value {
            Value::Str(_) => raise.help(
                "the pattern `b (h w) -> b w h` of einops is written as two tuples: \
                 t.rearrange(('b', ('h', 'w')), ('b', 'w', 'h'), {'h': 4})",
            ),
            _ => raise,
        });
    };
    items
        .iter()
        .map(|item| match item {
            Value::Str(s) => Ok(vec![s.clone()]),
            other => match other.sequence() {
                Some(group) => group
                    .iter()
                    .map(|v| match v {
                        Value::Str(s) => Ok(s.clone()),
                        other => Err(wrong("rearrange: a pattern", expected, other, span)),
                    })
                    .collect(),
                None => Err(wrong("rearrange: a pattern", expected, other, span)),
            },
        })
        .collect()
}

fn ap(interp: &mut Interp<'_>, t: &Tensor, args: CallArgs) -> EvalResult<build::Result<Tensor>> {
    let span = args.span;
    let [pattern, offset, scalar, vector, dim, dtype] =
        args.bind(interp, "ap", ["pattern", "offset", "scalar_offset", "vector_offset", "indirect_dim", "dtype"], 1)?;
    let value = pattern.unwrap_or(Value::None);
    let pair = |v: &Value| -> Option<(i64, i64)> {
        match v.sequence()?.as_slice() {
            [a, b] => Some((a.as_int()?, b.as_int()?)),
            _ => None,
        }
    };
    let Some(items) = value.sequence() else {
        return Err(wrong("ap: pattern", "a list of [stride, count] pairs of ints", &value, span));
    };
    let mut pairs = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let what = format!("ap: entry {place} of pattern");
        pairs.push(pair(item).ok_or_else(|| wrong(&what, "a [stride, count] pair of ints", item, span))?);
    }
    let given = |v: Option<Value>| v.filter(|v| !v.is_none());
    let offset = given(offset);
    if offset.as_ref().is_some_and(is_run_time) {
        return Err(Raise::at("operand-kind", "ap: offset takes an int that is known at specialisation", span, "here")
            .help("pass a register or tensor as scalar_offset="));
    }
    let mut offset = offset.map(|v| int(&v, "ap: offset", span)).transpose()?;
    let dim = given(dim).map_or(Ok(0), |v| int(&v, "ap: indirect_dim", span))?;
    let mut scalar = given(scalar);
    if let Some(Value::Int(i)) = scalar {
        // A constant index: rows of the view, as on the device.
        let d = match t.dim("ap: indirect_dim", dim, 0) {
            Ok(d) => d,
            Err(v) => return Ok(Err(v)),
        };
        offset = Some(offset.unwrap_or(0).saturating_add(i.saturating_mul(t.strides()[d])));
        scalar = None;
    }
    let dynamic = match (scalar, given(vector)) {
        (Some(_), Some(_)) => {
            let message = "ap takes scalar_offset or vector_offset, not both";
            return Err(Raise::at("access-pattern", message, span, "here"));
        }
        (Some(s), None) => Some(DynamicOffset::Scalar(index(t, &s, "ap: scalar_offset", span)?)),
        (None, Some(v)) => Some(DynamicOffset::Vector(values::tensor(&v, "ap: vector_offset", span)?.view.clone())),
        (None, None) => None,
    };
    let dtype = given(dtype).map(|v| dtype::dtype(&v, "ap: dtype", span)).transpose()?;
    let made = t.ap(&pairs, offset, dynamic, dim, dtype);
    let row = t.storage.row(dtype.unwrap_or(t.view.dtype)).unwrap_or(1);
    if let (Ok(_), true, Some(&(stride, count))) = (&made, t.on_chip(), pairs.first())
        && stride != row
        && count != 1
    {
        let name = &t.storage.name;
        let message = format!(
            "the first pair [{stride}, {count}] of an access pattern of a view of `{name}` steps by the view's {stride} elements per \
             partition, but `{name}` has {row}"
        );
        interp.report_once(
            Diagnostic::warning("view-stride", message).at(span, "treated as consecutive partitions").help(format!(
                "the manual documents only the tensor's elements per partition: write [[{row}, {count}], ...]"
            )),
            span,
        );
    }
    Ok(made)
}

/// A bool option.
pub(crate) fn option(
    value: Option<Value>,
    what: impl std::fmt::Display,
    default: bool,
    span: Span,
) -> EvalResult<bool> {
    value.map_or(Ok(default), |v| flag(&v, what, span))
}
