//! The functions of `nki.language`.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use nki_isa::{Arg, DType, Imm};

use super::index::index as index_of;
use super::{alloc, grids, loops, region};
use crate::build::lower::{Lower, Operand};
use crate::build::ops::{Op, OpKind};
use crate::build::tensor::{Storage, Tensor};
use crate::dialect::common::errors::{raise, span_of};
use crate::dialect::common::handles::{Ds, Handle};
use crate::dialect::common::state::{site, state, target_name};
use crate::dialect::common::tensor::option;
use crate::dialect::common::values;
use crate::eval::Interp;
use crate::eval::convert::{given, int, ints, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::{Acts, Object};
use crate::eval::native::{CallArgs, Native, NativeFn};
use crate::eval::stdlib::dtype::dtype as to_dtype;
use crate::eval::value::{Range, Value};

/// Functions that are not operators.
pub(super) static FUNCTIONS: &[(&str, NativeFn)] = &[
    ("ndarray", alloc::ndarray),
    ("zeros", alloc::zeros),
    ("ones", alloc::ones),
    ("full", alloc::full),
    ("zeros_like", alloc::zeros_like),
    ("empty_like", alloc::empty_like),
    ("tiles", grids::tiles),
    ("blocks", grids::blocks),
    ("alloc_tiles", grids::alloc_tiles),
    ("alloc_blocks", grids::alloc_blocks),
    ("shared_constant", alloc::shared_constant),
    ("shared_identity_matrix", alloc::shared_identity_matrix),
    ("ds", ds),
    ("affine_range", static_range),
    ("sequential_range", static_range),
    ("static_range", static_range),
    ("dynamic_range", loops::dynamic_range),
    ("fori_loop", loops::fori_loop),
    ("while_loop", loops::while_loop),
    ("no_reorder", no_reorder),
    ("program_id", program_id),
    ("num_programs", num_programs),
    ("program_ndim", program_ndim),
    ("is_hbm", |i, a| memory_test(i, a, "nl.is_hbm", nki_isa::Space::is_hbm)),
    ("is_on_chip", |i, a| memory_test(i, a, "nl.is_on_chip", nki_isa::Space::is_on_chip)),
    ("is_psum", |i, a| memory_test(i, a, "nl.is_psum", |s| s == nki_isa::Space::Psum)),
    ("is_sbuf", |i, a| memory_test(i, a, "nl.is_sbuf", |s| s == nki_isa::Space::Sbuf)),
    ("load", load),
    ("store", store),
    ("device_print", device_print),
    ("sum", |i, a| reduce(i, a, "sum")),
    ("max", |i, a| reduce(i, a, "max")),
    ("min", |i, a| reduce(i, a, "min")),
    ("mean", |i, a| reduce(i, a, "mean")),
    ("prod", |i, a| reduce(i, a, "prod")),
    ("var", |i, a| reduce(i, a, "var")),
    ("all", |i, a| reduce(i, a, "all")),
    ("softmax", softmax),
    ("rms_norm", rms_norm),
    ("where", select),
    ("transpose", transpose),
    ("matmul", matmul),
    ("broadcast_to", broadcast_to),
    ("expand_dims", expand_dims),
    ("load_transpose2d", load_transpose2d),
    ("gather_flattened", gather_flattened),
    ("dropout", dropout),
    ("rand", alloc::rand),
    ("random_seed", random_seed),
];

/// The effect of a function of `nl` that only returns a slice or a range.
pub(super) fn acts(function: &Native) -> Option<Acts> {
    let is = |func: NativeFn| std::ptr::fn_addr_eq(function.func, func);
    match () {
        () if is(ds) => Some(Acts::Slices),
        () if is(static_range) => Some(Acts::Computes),
        () => None,
    }
}

/// Runs a lowering at the location of the call; `about` are the tensors that an error probably concerns.
fn lower(
    interp: &mut Interp<'_>,
    what: &str,
    span: Span,
    about: &[&Storage],
    run: impl FnOnce(&mut Lower<'_>) -> crate::build::Result<Tensor>,
) -> EvalResult<Value> {
    let name = target_name(interp, span);
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: &name };
    match run(&mut lower) {
        Ok(t) => Ok(Value::object(t)),
        Err(v) => Err(raise(what, &v, span, about)),
    }
}

fn opt_dtype(value: Option<Value>, what: &str, span: Span) -> EvalResult<Option<DType>> {
    given(value).map(|v| to_dtype(&v, format_args!("{what}: dtype"), span)).transpose()
}

fn operand(value: &Value, what: &str, span: Span) -> EvalResult<Operand> {
    if let Some(t) = value.downcast::<Tensor>() {
        values::not_empty(t, what, span)?;
        return Ok(Operand::Tile(t.clone()));
    }
    match value {
        Value::Float(x) => Ok(Operand::Number(Imm::Float(*x))),
        other => match other.as_int() {
            Some(i) => Ok(Operand::Number(Imm::Int(i))),
            None => Err(wrong(what, "a tile or a number", other, span)),
        },
    }
}

fn tile(value: Option<Value>, what: &str, span: Span) -> EvalResult<Rc<Tensor>> {
    let value = value.unwrap_or(Value::None);
    match value.downcast_rc::<Tensor>() {
        Some(t) => {
            values::not_empty(&t, what, span)?;
            Ok(t)
        }
        None => Err(wrong(what, "a tile", &value, span)),
    }
}

fn no_mask(interp: &Interp<'_>, args: &CallArgs, what: &str) -> EvalResult<()> {
    if !args.keyword.iter().any(|(k, _)| &*interp.name(*k) == "mask") {
        return Ok(());
    }
    Err(Raise::new(
        Diagnostic::error("removed-mask", format!("{what}: `mask=` was removed")).at(args.span, "in this call").help(
            "bound the index instead: end = min(size, start + tile); use t[start:end], so that the last tile is smaller",
        ),
    ))
}

/// `nl.add(...)` and all other called operators.
pub(super) fn call_op(interp: &mut Interp<'_>, op: &'static Op, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = format!("nl.{}", op.name);
    no_mask(interp, &args, &what)?;
    match op.kind {
        OpKind::Binary(alu) => {
            let [x, y, d] = args.bind(interp, &what, ["x", "y", "dtype"], 2)?;
            let (x, y) =
                (operand(&x.unwrap_or(Value::None), &what, span)?, operand(&y.unwrap_or(Value::None), &what, span)?);
            let dtype = opt_dtype(d, &what, span)?;
            let about: Vec<&Storage> = [&x, &y]
                .into_iter()
                .filter_map(|o| match o {
                    Operand::Tile(t) => Some(&*t.storage),
                    Operand::Number(_) => None,
                })
                .collect();
            lower(interp, &what, span, &about, |l| l.binary(op.name, alu, &x, &y, dtype))
        }
        OpKind::Unary => {
            let [x, d] = args.bind(interp, &what, ["x", "dtype"], 1)?;
            let x = tile(x, &what, span)?;
            let dtype = opt_dtype(d, &what, span)?;
            lower(interp, &what, span, &[&x.storage], |l| {
                if op.name == "copy" { l.copy(&x, dtype) } else { l.unary(op.name, &x, dtype) }
            })
        }
        OpKind::Name => Err(Raise::at(
            "unsupported-api",
            format!("{what} is a name for op= arguments and cannot be called"),
            span,
            "in this call",
        )),
    }
}

fn ds(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [start, size] = args.bind(interp, "nl.ds", ["start", "size"], 2)?;
    let start = match start.unwrap_or(Value::None) {
        v if values::is_run_time(&v) => v,
        v => Value::Int(int(&v, "nl.ds: start", span)?),
    };
    let size = int(&size.unwrap_or(Value::None), "nl.ds: size", span)?;
    // A size of 0 is rejected by the index that uses it: kernels create slices for tiles that do not exist in the end.
    if size < 0 {
        let message = format!("nl.ds of size {size}");
        return Err(Raise::at("empty-slice", message, span, "a slice has at least one element"));
    }
    Ok(Value::object(Ds { start, size }))
}

fn static_range(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "a range that is unrolled";
    let [start, stop, step] = args.bind(interp, "nl.static_range", ["start", "stop", "step"], 1)?;
    let start = start.unwrap_or(Value::None);
    let bound = |v: &Value| match v {
        v if values::is_run_time(v) => Err(wrong(what, "ints that are known at specialisation", v, span)
            .help("use nl.dynamic_range or nl.fori_loop for bounds that only the device knows")),
        v => int(v, what, span),
    };
    let (start, stop) = match given(stop) {
        None => (0, bound(&start)?),
        Some(stop) => (bound(&start)?, bound(&stop)?),
    };
    let step = given(step).map_or(Ok(1), |s| bound(&s))?;
    if step == 0 {
        return Err(Raise::at("arguments", "a range with step 0", span, "in this call"));
    }
    Ok(Value::Range(Rc::new(Range { start, stop, step })))
}

fn no_reorder(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "nl.no_reorder", 0, 0)?;
    Ok(Value::object(NoReorder))
}

fn program_id(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [axis] = args.bind(interp, "nl.program_id", ["axis"], 0)?;
    let axis = axis.map_or(Ok(0), |v| int(&v, "nl.program_id: axis", span))?;
    if axis != 0 {
        return Err(Raise::at(
            "arguments",
            format!("nl.program_id: axis {axis}; the launch grid has one axis"),
            span,
            "here",
        ));
    }
    Ok(Value::Int(i64::from(state(interp).builder.core())))
}

fn num_programs(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let _: [Option<Value>; 1] = args.bind(interp, "nl.num_programs", ["axes"], 0)?;
    Ok(Value::Int(i64::from(state(interp).builder.cores())))
}

fn program_ndim(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "nl.program_ndim", 0, 0)?;
    // Without a grid there is none.
    Ok(Value::Int(i64::from(state(interp).builder.cores() > 1)))
}

fn memory_test(
    interp: &mut Interp<'_>,
    args: CallArgs,
    what: &str,
    test: impl Fn(nki_isa::Space) -> bool,
) -> EvalResult<Value> {
    let span = args.span;
    let [buffer] = args.bind(interp, what, ["buffer"], 1)?;
    Ok(Value::Bool(test(region::memory(&buffer.unwrap_or(Value::None), what, span)?)))
}

fn load(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    no_mask(interp, &args, "nl.load")?;
    let [src, d] = args.bind(interp, "nl.load", ["src", "dtype"], 1)?;
    let src = tile(src, "nl.load", span)?;
    let dtype = opt_dtype(d, "nl.load", span)?;
    lower(interp, "nl.load", span, &[&src.storage], |l| l.load(&src, dtype))
}

fn store(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    no_mask(interp, &args, "nl.store")?;
    let [dst, value] = args.bind(interp, "nl.store", ["dst", "value"], 1)?;
    let Some(value) = value else {
        return Err(Raise::at("missing-dst", "nl.store is missing `value`", span, "in this call")
            .help("write nl.store(dst, value): dst is an HBM tensor, for example nl.ndarray(shape, dtype, buffer=nl.shared_hbm)"));
    };
    let (dst, value) = (tile(dst, "nl.store: dst", span)?, tile(Some(value), "nl.store: value", span)?);
    lower(interp, "nl.store", span, &[&dst.storage, &value.storage], |l| {
        l.store(&dst, &value).map(|()| (*dst).clone())
    })?;
    Ok(Value::None)
}

/// `nl.no_reorder()`: the instructions of a queue keep their order.
#[derive(Debug)]
struct NoReorder;

impl Object for NoReorder {
    fn type_name(&self) -> &'static str {
        "nl.no_reorder"
    }

    fn enter(&self, interp: &mut Interp<'_>, _span: Span) -> EvalResult<Value> {
        let state = state(interp);
        state.no_reorder.push(state.builder.next_node());
        Ok(Value::None)
    }

    fn exit(&self, interp: &mut Interp<'_>) {
        let state = state(interp);
        // A block inside of another adds nothing.
        if let Some(from) = state.no_reorder.pop()
            && state.no_reorder.is_empty()
        {
            state.builder.keep_order(from);
        }
    }
}

/// `dst = value` where `dst` is an index of a tensor.
fn copy_to(interp: &mut Interp<'_>, dst: &Tensor, value: &Tensor, span: Span) -> EvalResult<()> {
    for (tensor, what) in [(dst, "the target of an assignment"), (value, "an assigned value")] {
        values::not_empty(tensor, what, span)?;
    }
    lower(interp, "assignment", span, &[&dst.storage, &value.storage], |l| l.assign(dst, value).map(|()| dst.clone()))?;
    Ok(())
}

/// `t[index] = value`: a tensor is copied there, as in the migration guide's kernels (`NkiTensor.__setitem__`).
pub(super) fn assign(interp: &mut Interp<'_>, t: &Tensor, index: &Value, value: &Value, span: Span) -> EvalResult<()> {
    let (slug, help) = match value {
        other if let Some(value) = other.downcast::<Tensor>() => {
            let dst = index_of(interp, t, index, span)?;
            return match dst.downcast::<Tensor>() {
                Some(dst) => copy_to(interp, dst, value, span),
                None => Ok(()),
            };
        }
        other if other.downcast::<Handle>().is_some() => (
            "missing-dst",
            "since Beta 2 instructions write to dst=..., which is their first argument: nisa.op(dst=t[...], ...)",
        ),
        _ if t.on_chip() => ("tensor-assignment", "fill with nisa.memset(dst=t[...], value=...)"),
        _ => (
            "tensor-assignment",
            "fill a tile in SBUF with nisa.memset(dst=tile, value=...) and copy it: nisa.dma_copy(dst=t[...], src=tile)",
        ),
    };
    let message = format!("`{}[...] = ...`: only a tensor can be assigned to a tensor", t.storage.name);
    Err(Raise::new(
        Diagnostic::error(slug, message)
            .at(span, "here")
            .with(span_of(t.storage.loc), format!("`{}` is allocated here", t.storage.name))
            .help(help),
    ))
}

fn load_transpose2d(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.load_transpose2d";
    no_mask(interp, &args, what)?;
    let [src, d] = args.bind(interp, what, ["src", "dtype"], 1)?;
    let src = tile(src, what, span)?;
    let dtype = opt_dtype(d, what, span)?;
    lower(interp, what, span, &[&src.storage], |l| l.load_transpose2d(&src, dtype))
}

fn gather_flattened(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.gather_flattened";
    let [data, indices, axis, d] = args.bind(interp, what, ["data", "indices", "axis", "dtype"], 2)?;
    let (data, indices) = (tile(data, what, span)?, tile(indices, what, span)?);
    // The docstring gives the axis no meaning: all free dimensions are one.
    let axis = given(axis).map_or(Ok(0), |v| int(&v, "nl.gather_flattened: axis", span))?;
    if axis != 0 {
        let message = format!("nl.gather_flattened: axis {axis}; the free dimensions are flattened into one, axis 0");
        return Err(Raise::at("bad-dimension", message, span, "here")
            .help("gather from a view that holds only the dimension to index: data[:, i, :]"));
    }
    let dtype = opt_dtype(d, what, span)?;
    lower(interp, what, span, &[&data.storage, &indices.storage], |l| l.gather_flattened(&data, &indices, dtype))
}

fn dropout(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.dropout";
    let [x, rate, d] = args.bind(interp, what, ["x", "rate", "dtype"], 2)?;
    let x = tile(x, what, span)?;
    let rate = operand(&rate.unwrap_or(Value::None), "nl.dropout: rate", span)?;
    let dtype = opt_dtype(d, what, span)?;
    lower(interp, what, span, &[&x.storage], |l| l.dropout(&x, &rate, dtype))
}

fn random_seed(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.random_seed";
    let [seed] = args.bind(interp, what, ["seed"], 1)?;
    let seed = seed.unwrap_or(Value::None);
    let Some(seed) = seed.downcast_rc::<Tensor>() else {
        return Err(wrong("nl.random_seed: seed", "a tensor of shape (1, 1)", &seed, span)
            .help("nl.random_seed(nl.full((1, 1), 42, dtype=nl.int32))"));
    };
    lower(interp, what, span, &[&seed.storage], |l| l.random_seed(&seed).map(|()| (*seed).clone()))?;
    Ok(Value::None)
}

fn device_print(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [prefix, tensor] = args.bind(interp, "nl.device_print", ["print_prefix", "tensor"], 2)?;
    let prefix = match prefix.unwrap_or(Value::None) {
        Value::Str(ref s) => s.clone(),
        other => return Err(wrong("nl.device_print: print_prefix", "a string", &other, span)),
    };
    let tensor = tile(tensor, "nl.device_print: tensor", span)?;
    lower(interp, "nl.device_print", span, &[&tensor.storage], |l| {
        let operands = [("print_prefix", Arg::Text((&*prefix).into())), ("tensor", Arg::View(tensor.view.clone()))];
        l.emit("device_print", &operands).map(|()| (*tensor).clone())
    })?;
    Ok(Value::None)
}

fn reduce(interp: &mut Interp<'_>, args: CallArgs, name: &'static str) -> EvalResult<Value> {
    let span = args.span;
    let what = format!("nl.{name}");
    no_mask(interp, &args, &what)?;
    let [x, axis, d, keepdims] = args.bind(interp, &what, ["x", "axis", "dtype", "keepdims"], 2)?;
    let x = tile(x, &what, span)?;
    let axis = ints(&axis.unwrap_or(Value::None), format_args!("{what}: axis"), span)?;
    let dtype = opt_dtype(d, &what, span)?;
    // The result of nl.var "always has keepdims=True shape" (docstring).
    let keepdims = option(keepdims, format_args!("{what}: keepdims"), false, span)? || name == "var";
    lower(interp, &what, span, &[&x.storage], |l| l.reduce(name, &x, &axis, dtype, keepdims))
}

fn softmax(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.softmax";
    let [x, axis, d] = args.bind(interp, what, ["x", "axis", "dtype"], 1)?;
    let x = tile(x, what, span)?;
    let axis = axis.map_or(Ok(vec![-1]), |v| ints(&v, "nl.softmax: axis", span))?;
    let dtype = opt_dtype(d, what, span)?;
    lower(interp, what, span, &[&x.storage], |l| l.softmax(&x, &axis, dtype))
}

fn rms_norm(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.rms_norm";
    let [x, w, axis, n, epsilon, d, computed] =
        args.bind(interp, what, ["x", "w", "axis", "n", "epsilon", "dtype", "compute_dtype"], 4)?;
    let (x, w) = (tile(x, what, span)?, tile(w, what, span)?);
    let axis = ints(&axis.unwrap_or(Value::None), "nl.rms_norm: axis", span)?;
    let float = |v: Option<Value>, default: f64| match given(v) {
        None => Ok(default),
        Some(v) => v.as_float().ok_or_else(|| wrong(what, "a number", &v, span)),
    };
    let (n, epsilon) = (float(n, 1.0)?, float(epsilon, 1e-6)?);
    let dtype = opt_dtype(d, what, span)?;
    if let Some(computed) = opt_dtype(computed, what, span)?.filter(|d| *d != DType::F32) {
        let message = format!("{what}: compute_dtype is {computed}, but the simulator computes in float32");
        let finding = Diagnostic::warning("inert-operand", message).at(span, "has no effect here");
        interp.report_once(finding.help("leave it out, or expect less precise results on the device"), span);
    }
    lower(interp, what, span, &[&x.storage, &w.storage], |l| l.rms_norm(&x, &w, &axis, n, epsilon, dtype))
}

fn select(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.where";
    let [condition, x, y, d] = args.bind(interp, what, ["condition", "x", "y", "dtype"], 3)?;
    let condition = tile(condition, "nl.where: condition", span)?;
    let (x, y) = (operand(&x.unwrap_or(Value::None), what, span)?, operand(&y.unwrap_or(Value::None), what, span)?);
    let dtype = opt_dtype(d, what, span)?;
    lower(interp, what, span, &[&condition.storage], |l| l.select(&condition, &x, &y, dtype))
}

fn transpose(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, d] = args.bind(interp, "nl.transpose", ["x", "dtype"], 1)?;
    let x = tile(x, "nl.transpose", span)?;
    let dtype = opt_dtype(d, "nl.transpose", span)?;
    lower(interp, "nl.transpose", span, &[&x.storage], |l| l.transpose(&x, dtype))
}

fn matmul(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    no_mask(interp, &args, "nl.matmul")?;
    let [x, y, turned] = args.bind(interp, "nl.matmul", ["x", "y", "transpose_x"], 2)?;
    let (x, y) = (tile(x, "nl.matmul", span)?, tile(y, "nl.matmul", span)?);
    let turned = option(turned, "nl.matmul: transpose_x", false, span)?;
    lower(interp, "nl.matmul", span, &[&x.storage, &y.storage], |l| l.matmul(&x, &y, turned))
}

fn broadcast_to(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.broadcast_to";
    let [x, shape, d] = args.bind(interp, what, ["x", "shape", "dtype"], 2)?;
    let x = tile(x, what, span)?;
    let shape = ints(&shape.unwrap_or(Value::None), "nl.broadcast_to: shape", span)?;
    let dtype = opt_dtype(d, what, span)?;
    lower(interp, what, span, &[&x.storage], |l| l.broadcast_to(&x, &shape, dtype))
}

fn expand_dims(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [x, axis] = args.bind(interp, "nl.expand_dims", ["x", "axis"], 2)?;
    let x = tile(x, "nl.expand_dims", span)?;
    let axis = int(&axis.unwrap_or(Value::None), "nl.expand_dims: axis", span)?;
    crate::dialect::common::tensor::wrap(&x, x.expand_dim(axis), span)
}
