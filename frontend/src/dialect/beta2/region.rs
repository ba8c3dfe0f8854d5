//! Memory regions, as the early releases of Beta 2 have them: the names `sbuf`, `psum` and `hbm`, which need no import.
//!
//! A region is a rectangle of partitions and bytes. Slicing gives a smaller one, `view` allocates a tensor in it:
//! `sbuf.view(nl.float32, (128, 512))` has the address that the compiler chooses, `sbuf[0:64, 0:1024].view(...)` has this one.
//! A program that binds the name itself does not use this module.
//!
//! Source: github.com/leanprover/KLR, `KLR/Trace/Term.lean` (`pointerAccess`, `builtin.pointer.view`) and its tests of memory;
//! github.com/aws-neuron/nkipy, `tests/unit/test_nki.py`.

use std::fmt::Display;
use std::rc::Rc;

use nki_diag::Span;
use nki_isa::Space;

use super::alloc;
use crate::dialect::common::state::arch;
use crate::dialect::common::strict::reject;
use crate::dialect::common::values;
use crate::eval::Interp;
use crate::eval::convert::{int, ints, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::stdlib::dtype::dtype as to_dtype;
use crate::eval::value::Value;

const WHAT: [&str; 2] = ["partition", "byte"];

/// A part of a memory. Partitions first, bytes in each partition second.
#[derive(Debug, Clone)]
struct Region {
    name: Rc<str>,
    space: Space,
    /// Its start; `None` if the compiler chooses.
    start: [Option<i64>; 2],
    size: [i64; 2],
}

impl Object for Region {
    fn type_name(&self) -> &'static str {
        "memory region"
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["name", "start", "size"]
    }

    fn methods(&self) -> &'static [&'static str] {
        &["ptr", "view"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        let number = |n: Option<i64>| n.map_or(Value::None, Value::Int);
        match name {
            "name" => Some(Value::str(&*self.name)),
            "start" => Some(Value::tuple(self.start.map(number).to_vec())),
            "size" => Some(Value::tuple(self.size.map(Value::Int).to_vec())),
            _ => None,
        }
    }

    fn call_method(&self, interp: &mut Interp<'_>, _this: &Value, name: &str, args: CallArgs) -> EvalResult<Value> {
        if name == "view" { self.view(interp, args) } else { self.ptr(interp, args) }
    }

    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        self.part(index, span)
    }
}

/// The whole memory of that name.
pub(super) fn named(interp: &mut Interp<'_>, name: &str, span: Span) -> Option<Value> {
    let arch = arch(interp);
    let partitions = i64::from(arch.partitions);
    let (space, size, instead) = match name {
        "sbuf" => (Space::Sbuf, [partitions, i64::from(arch.sbuf_bytes)], "nl.sbuf"),
        "psum" => (Space::Psum, [partitions, i64::from(arch.psum_banks * arch.psum_bank_bytes)], "nl.psum"),
        // Kernels return tensors in `hbm`, so it is the returnable kind.
        "hbm" => (Space::SharedHbm, [i64::from(u32::MAX); 2], "nl.shared_hbm"),
        _ => return None,
    };
    let help = format!("write nl.ndarray(shape, dtype, buffer={instead})");
    reject(interp, span, &format!("the name `{name}` without a module"), &help);
    Some(value(Region { name: name.into(), space, start: [None; 2], size }))
}

/// A memory: `nl.sbuf`, or the whole memory that contains a region.
pub(super) fn memory(value: &Value, what: impl Display, span: Span) -> EvalResult<Space> {
    match value.downcast::<Region>() {
        Some(region) => Ok(region.space),
        None => values::memory(value, what, span),
    }
}

fn value(region: Region) -> Value {
    Value::object(region)
}

fn refuse(message: String, span: Span) -> Box<Raise> {
    Raise::at("bad-address", message, span, "here")
}

impl Region {
    /// `region.view(dtype, shape, name=None)`: a tensor in it.
    fn view(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let [dtype, shape, name, _] = args.bind(interp, "view", ["dtype", "shape", "name", "address_rotation"], 2)?;
        let dtype = to_dtype(&dtype.unwrap_or(Value::None), "view: dtype", span)?;
        let shape = ints(&shape.unwrap_or(Value::None), "view: shape", span)?;
        let elements = |of: &[i64]| of.iter().fold(1i64, |n, &x| n.saturating_mul(x));
        let takes = [
            elements(shape.get(..1).unwrap_or_default()),
            elements(shape.get(1..).unwrap_or_default()).saturating_mul(dtype.size() as i64),
        ];
        for (axis, what) in WHAT.iter().enumerate() {
            if self.space.is_on_chip() && takes[axis] > self.size[axis] {
                let (takes, has) = (takes[axis], self.size[axis]);
                let message = format!("view of {takes} {what}s in a region of `{}` that has {has}", self.name);
                return Err(refuse(message, span).help("make the region larger or the shape smaller"));
            }
        }
        let address = match self.start {
            [Some(partition), Some(byte)] if self.space.is_on_chip() => Some(vec![partition, byte]),
            _ => None,
        };
        alloc::tensor(interp, shape, dtype, self.space, (name, address), span)
    }

    /// `region.ptr(size, offset=None, name=None)`: another part of the same memory.
    fn ptr(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let [size, offset, name] = args.bind(interp, "ptr", ["size", "offset", "name"], 1)?;
        let pair = |v: &Value, what: &str| -> EvalResult<[i64; 2]> {
            match v.sequence().as_deref() {
                Some([p, b]) => Ok([int(p, what, span)?, int(b, what, span)?]),
                _ => Err(wrong(what, "a tuple (partition, byte)", v, span)),
            }
        };
        let size = pair(&size.unwrap_or(Value::None), "ptr: size")?;
        let start = match offset.filter(|v| !v.is_none()) {
            None => [None; 2],
            Some(v) => pair(&v, "ptr: offset")?.map(Some),
        };
        let name = match &name {
            Some(Value::Str(name)) => name.clone(),
            _ => self.name.clone(),
        };
        Ok(value(Region { name, space: self.space, start, size }))
    }

    /// `region[partitions, bytes]`
    fn part(&self, index: &Value, span: Span) -> EvalResult<Value> {
        let keys = index.sequence().unwrap_or_else(|| vec![index.clone()]);
        let [partitions, bytes] = keys.as_slice() else {
            let message =
                format!("a region of `{}` takes two indices, partitions and bytes, got {}", self.name, keys.len());
            return Err(refuse(message, span));
        };
        let mut part = self.clone();
        for (axis, key) in [partitions, bytes].into_iter().enumerate() {
            let (start, stop) = self.range(key, axis, span)?;
            let from = self.start[axis].unwrap_or(0) + start;
            // The start partitions of the engines, and the granularity of a partition's memory.
            if axis == 0 && !matches!(from, 0 | 32 | 64 | 96) && self.space.is_on_chip() {
                let message = format!("a region of `{}` starts at partition {from}", self.name);
                return Err(refuse(message, span).help("start at partition 0, 32, 64 or 96"));
            }
            if axis == 1 && (from % 2 != 0 || stop % 2 != 0) {
                let message = format!("a region of `{}` takes bytes {from} to {stop}: both must be even", self.name);
                return Err(refuse(message, span));
            }
            part.start[axis] = Some(from);
            part.size[axis] = stop - start;
        }
        Ok(value(part))
    }

    fn range(&self, key: &Value, axis: usize, span: Span) -> EvalResult<(i64, i64)> {
        let (what, size) = (WHAT[axis], self.size[axis]);
        let (start, stop) = match key {
            Value::None | Value::Ellipsis => (0, size),
            Value::Slice(slice) => {
                let bound = |v: &Value, default: i64| if v.is_none() { Ok(default) } else { int(v, "region", span) };
                if bound(&slice.step, 1)? != 1 {
                    return Err(refuse(format!("a region of `{}` has no steps", self.name), span));
                }
                (bound(&slice.start, 0)?, bound(&slice.stop, size)?)
            }
            one => {
                let at = int(one, "region", span)?;
                (at, at.saturating_add(if axis == 0 { 1 } else { 2 }))
            }
        };
        if start < 0 || start >= stop || stop > size {
            let message = format!("{what}s {start} to {stop} of a region of `{}` that has {size}", self.name);
            return Err(refuse(message, span));
        }
        Ok((start, stop))
    }
}
