//! `t[...]`: the forms of an index.

use nki_diag::Span;
use nki_isa::Violation;

use crate::build::scalar::Scalar;
use crate::build::tensor::{Key, Tensor};
use crate::dialect::common::errors::raise;
use crate::dialect::common::handles::Ds;
use crate::dialect::common::registers::Register;
use crate::dialect::common::strict::reject;
use crate::dialect::common::tensor::wrap;
use crate::dialect::common::values::{index as run_time, is_run_time};
use crate::eval::Interp;
use crate::eval::convert::{int, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::value::Value;

/// `t[key]`.
pub(super) fn index(interp: &mut Interp<'_>, t: &Tensor, key: &Value, span: Span) -> EvalResult<Value> {
    let mut keys: smallvec::SmallVec<[Key; 6]> = smallvec::SmallVec::new();
    match key {
        Value::Tuple(items) if items.iter().any(Value::is_none) => return with_new_dims(interp, t, items, span),
        Value::None => return with_new_dims(interp, t, std::slice::from_ref(key), span),
        Value::Tuple(items) => {
            for item in items.iter() {
                keys.push(one_key(t, item, span)?);
            }
        }
        other => keys.push(one_key(t, other, span)?),
    }
    wrap(t, t.plain("a slice").and_then(|()| t.index(&keys)), span)
}

/// `t[:, None]`: a new dimension of size 1 for each None, as in NumPy.
fn with_new_dims(interp: &mut Interp<'_>, t: &Tensor, items: &[Value], span: Span) -> EvalResult<Value> {
    reject(interp, span, "`None` in an index", "write .expand_dim(dim)");
    let rest: Vec<Value> = items.iter().filter(|v| !v.is_none()).cloned().collect();
    let whole = Value::tuple(if rest.is_empty() { vec![Value::Ellipsis] } else { rest });
    let indexed = index(interp, t, &whole, span)?;
    let Some(tensor) = indexed.downcast::<Tensor>() else { return Ok(indexed) };
    let mut out = tensor.clone();
    // On chip an int keeps the partition dimension; elsewhere it removes its own.
    let kept = |at: usize, v: &Value| {
        !(matches!(v, Value::Int(_)) || v.downcast::<Register>().is_some() || v.downcast::<Scalar>().is_some())
            || (at == 0 && t.on_chip())
    };
    let spelled = items.iter().filter(|v| !v.is_none() && !matches!(v, Value::Ellipsis)).count();
    let mut dim = 0;
    let mut read = 0;
    for item in items {
        match item {
            Value::None => {
                out = out.expand_dim(dim).map_err(|v| raise("", &v, span, &[&t.storage]))?;
                dim += 1;
            }
            Value::Ellipsis => {
                let skipped = t.ndim().saturating_sub(spelled);
                dim += skipped as i64;
                read += skipped;
            }
            other => {
                dim += i64::from(kept(read, other));
                read += 1;
            }
        }
    }
    Ok(Value::object(out))
}

fn one_key(t: &Tensor, value: &Value, span: Span) -> EvalResult<Key> {
    let refuse = |slug: &'static str, message: String, help: &str| {
        Err(raise("", &Violation::new(slug, "", message).help(help), span, &[&t.storage]))
    };
    let bound = |v: &Value| -> EvalResult<Option<i64>> {
        match v {
            Value::None => Ok(None),
            v if is_run_time(v) => Err(Raise::at(
                "bad-index",
                format!("a bound of a slice of `{}` is known only at run time", t.storage.name),
                span,
                "here",
            )
            .help("use nl.ds(start, size): the start may be a register, the size is an int")),
            other => int(other, format_args!("a slice of `{}`", t.storage.name), span).map(Some),
        }
    };
    Ok(match value {
        Value::Int(i) => Key::At(*i),
        Value::Bool(b) => Key::At(i64::from(*b)),
        Value::Slice(s) => Key::Slice(bound(&s.start)?, bound(&s.stop)?, bound(&s.step)?),
        Value::Ellipsis => Key::Ellipsis,
        Value::Object(_) if is_run_time(value) => {
            Key::Dynamic(run_time(t, value, format_args!("an index of `{}`", t.storage.name), span)?)
        }
        Value::Object(_) if let Some(Ds { start, size }) = value.downcast() => match start {
            Value::Int(start) => Key::Span(*start, *size),
            start => Key::DynamicSpan(run_time(t, start, "nl.ds: start", span)?, *size),
        },
        Value::List(_) | Value::Tuple(_) => {
            return refuse(
                "bad-index",
                format!("a list in an index of `{}`: nested indexing was removed after Beta 1", t.storage.name),
                "use slices, or .ap(pattern) for strided access and .vector_select for gathers",
            );
        }
        // The newest frontend accepts `t[nl.affine_range(n)]` as the slice of the same numbers.
        Value::Range(r) if r.step > 0 && r.start >= 0 => Key::Slice(Some(r.start), Some(r.stop), Some(r.step)),
        Value::Range(_) => {
            return refuse(
                "bad-index",
                format!("a range that runs backwards or from below 0 in an index of `{}`", t.storage.name),
                "write a slice: start:stop:step with a positive step",
            );
        }
        Value::Float(x) => {
            return refuse(
                "bad-index",
                format!("index {x:?} of `{}` is a float", t.storage.name),
                "use `//` for whole divisions",
            );
        }
        other => {
            return Err(wrong(
                format_args!("an index of `{}`", t.storage.name),
                "ints, slices, nl.ds(...) or `...`",
                other,
                span,
            ));
        }
    })
}
