//! Beta 1 (`neuronxcc.nki`): instructions return tiles, index tiles, masks, block dimensions, direct allocation.
//!
//! Source: the AWS manual at SDK 2.26.1, the last that documents it.

mod access;
mod affine;
mod alloc;
mod arithmetic;
mod assign;
mod blocks;
mod calls;
mod clips;
mod enums;
mod index;
pub(crate) mod instruction;
mod language;
mod make;
mod mask;
mod matmul;
mod memory;
mod methods;
mod mgrid;
pub(crate) mod names;
mod operands;
pub(crate) mod ops;
mod programs;
mod selection;

use std::borrow::Cow;
use std::rc::Rc;

use nki_diag::Span;
use nki_isa::inst::REGISTRY;
use nki_isa::names::{AluOp, Named};
use nki_isa::{DType, Space};

use self::affine::Moved;
use self::enums::VOCABULARIES;
use self::language::FUNCTIONS;
use self::mgrid::Mgrid;
use super::beta2::Beta2;
use super::common::enums::{ApiEnum, EnumClass, NlOp};
use super::common::handles::ApiClass;
use super::common::kernel;
use crate::build::ops::OPS;
use crate::build::tensor::Tensor;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::{Object, unsupported};
use crate::eval::language::{Annotated, Construct, Dialect, Hint, Outputs};
use crate::eval::native::{CallArgs, NativeFn};
use crate::eval::stdlib::dtype;
use crate::eval::value::Value;
use crate::syntax::{BinOp, CmpOp, Expr, ExprKind, Param, UnaryOp};

/// The dialect of `neuronxcc.nki`.
pub(crate) struct Beta1;

impl Dialect for Beta1 {
    fn name(&self) -> &'static str {
        "beta1"
    }

    fn base(&self) -> &'static dyn Dialect {
        &Beta2
    }

    fn packages(&self) -> &'static [&'static str] {
        &["neuronxcc", "nki"]
    }

    fn has_module(&self, path: &str) -> bool {
        MODULES.contains(&&*in_package(path))
    }

    fn attribute(&self, interp: &mut Interp<'_>, module: &str, name: &str, _span: Span) -> Option<Value> {
        attribute(interp, &in_package(module), name)
    }

    fn names(&self, module: &str) -> Vec<&'static str> {
        names(&in_package(module))
    }

    fn array_function(&self, interp: &mut Interp<'_>, name: &str) -> Option<Value> {
        language_name(interp, "neuronxcc.nki.language", ops::function(name)?)
    }

    fn undefined(&self, _interp: &mut Interp<'_>, _name: &str, _span: Span) -> Option<Value> {
        None
    }

    fn index(&self, interp: &mut Interp<'_>, base: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        index::index(interp, base, index, span)
    }

    fn assign(
        &self,
        interp: &mut Interp<'_>,
        base: &Value,
        index: &Value,
        value: &Value,
        span: Span,
    ) -> EvalResult<()> {
        assign::assign(interp, base, index, value, span)
    }

    fn binary(
        &self,
        interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        if let Some(moved) = Moved::of(op, left, right, span)? {
            return Ok(Some(moved));
        }
        let alu = match op {
            BinOp::Add => AluOp::Add,
            BinOp::Sub => AluOp::Subtract,
            BinOp::Mul => AluOp::Multiply,
            BinOp::Div => AluOp::Divide,
            BinOp::Pow => AluOp::Power,
            BinOp::Mod => AluOp::Mod,
            BinOp::BitAnd => AluOp::BitwiseAnd,
            BinOp::BitOr => AluOp::BitwiseOr,
            BinOp::BitXor => AluOp::BitwiseXor,
            BinOp::LShift => AluOp::LeftShift,
            BinOp::RShift => AluOp::RightShift,
            _ => {
                return Err(unsupported(op.text(), left, right, span)
                    .help("use nl.matmul, nl.divide or another function of nl"));
            }
        };
        arithmetic::operator(interp, alu, left, right, span).map(Some)
    }

    fn in_place(
        &self,
        interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        assign::in_place(interp, op, left, right, span)
    }

    fn unary(&self, interp: &mut Interp<'_>, op: UnaryOp, value: &Value, span: Span) -> EvalResult<Value> {
        match op {
            UnaryOp::Neg => arithmetic::unary(interp, "negative", value, span),
            UnaryOp::Invert => arithmetic::unary(interp, "invert", value, span),
            UnaryOp::Pos => Ok(value.clone()),
            UnaryOp::Not => Err(unsupported(op.text(), value, &Value::None, span)),
        }
    }

    /// `==` of tensors is a tile, except with None and other values that are not tiles.
    fn compare(
        &self,
        interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        let Some(alu) = arithmetic::relation(op) else { return Ok(None) };
        let number = |v: &Value| {
            matches!(v, Value::Int(_) | Value::Float(_) | Value::Bool(_)) || v.downcast::<Tensor>().is_some()
        };
        if matches!(op, CmpOp::Eq | CmpOp::Ne) && !(number(left) && number(right)) {
            return Ok(None);
        }
        arithmetic::operator(interp, alu, left, right, span).map(Some)
    }

    fn truth(&self, _interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<Option<bool>> {
        match value.downcast::<Tensor>() {
            Some(t) => {
                let what = if t.on_chip() { "tile" } else { "tensor" };
                let message =
                    format!("{what} `{}` as a condition: its values are known only on the device", t.storage.name);
                Err(Raise::at("tile-condition", message, span, "here")
                    .help("test `t is not None` for an optional tensor; select elements with nl.where"))
            }
            None => Ok(None),
        }
    }

    fn method(&self, interp: &mut Interp<'_>, base: &Value, name: &str, args: &CallArgs) -> EvalResult<Option<Value>> {
        match base.downcast::<Tensor>() {
            Some(t) => methods::method(interp, base, t, name, args),
            None => Ok(None),
        }
    }

    fn tensor_methods(&self) -> &'static [&'static str] {
        methods::METHODS
    }

    /// Up to SDK 2.20 outputs were arguments.
    fn outputs(&self) -> Outputs {
        Outputs { arguments: true, private: true }
    }

    fn output(&self, interp: &mut Interp<'_>, name: &str, value: &Value, span: Span) -> EvalResult<Value> {
        memory::stored(interp, name, value, span)
    }

    /// The loops that the old compiler unrolled itself, or not at all.
    fn reads_body_once(&self, interp: &Interp<'_>, iterable: &Expr) -> bool {
        called(interp, iterable).is_some_and(|name| matches!(&*name, "affine_range" | "sequential_range"))
    }

    /// The manual (`nl.affine_range`): without a dependence from one iteration to the next, sums excepted.
    fn is_independent(&self, interp: &Interp<'_>, iterable: &Expr) -> bool {
        called(interp, iterable).is_some_and(|name| &*name == "affine_range")
    }

    /// The manual's list of errors (SDK 2.20 to 2.26.1, err_local_variable_used_out_of_scope): `data = data + x` in a loop creates a new
    /// tensor, local to the body, and a warning.
    fn is_other_storage(&self, old: &Value, now: &Value) -> bool {
        match (old.downcast::<Tensor>(), now.downcast::<Tensor>()) {
            (Some(old), Some(now)) => old.on_chip() && old.storage.id != now.storage.id,
            _ => false,
        }
    }

    fn check_written(
        &self,
        interp: &mut Interp<'_>,
        params: &[Param],
        written: &[(String, Value)],
        outputs: &[(String, Value)],
    ) {
        memory::check_written(interp, params, written, outputs);
    }

    fn annotated(&self) -> Option<Annotated> {
        Some(methods::check_annotation)
    }

    fn is_older(&self) -> bool {
        true
    }

    fn check_strictly(&self, _interp: &mut Interp<'_>, _construct: &Construct<'_>) {}

    fn hint(&self, hint: Hint) -> &'static str {
        match hint {
            Hint::Context => {
                "the only context managers of this language are nki.compiler.no_reorder() and its variants"
            }
            Hint::DeviceRange => "use nl.affine_range or nl.sequential_range, whose bounds are ints",
            Hint::LoopCarried => {
                "to update a tile write t[...] = t + x, in a loop over nl.sequential_range if iterations depend on each other; loops over nl.static_range are unrolled, and their assignments carry over"
            }
            other => Beta2.hint(other),
        }
    }
}

/// Modules of the dialect.
const MODULES: &[&str] = &[
    "neuronxcc",
    "neuronxcc.nki",
    "neuronxcc.nki.language",
    "neuronxcc.nki.language.constants",
    "neuronxcc.nki.isa",
    "neuronxcc.nki.isa.constants",
    "neuronxcc.nki.typing",
    "neuronxcc.nki.compiler",
    "neuronxcc.nki.compiler.sbuf",
    "neuronxcc.nki.compiler.psum",
];

/// The module of a path in a file that is evaluated as Beta 1 although it imports `nki` ([`crate::Options::beta1`]).
fn in_package(path: &str) -> Cow<'_, str> {
    let is_current = path == "nki" || path.starts_with("nki.");
    if is_current { format!("neuronxcc.{path}").into() } else { path.into() }
}

fn object(value: impl Object) -> Option<Value> {
    Some(Value::object(value))
}

fn native(module: &str, name: &str, func: NativeFn) -> Option<Value> {
    Some(Value::native(format!("{module}.{name}"), func, 0))
}

/// `module.name`; `None` if there is no such name.
fn attribute(interp: &mut Interp<'_>, module: &str, name: &str) -> Option<Value> {
    match module {
        "neuronxcc.nki" => match name {
            "jit" | "trace" | "baremetal" | "benchmark" | "profile" => native(module, name, kernel::jit),
            "simulate_kernel" => native(module, name, launched),
            "tensor" => object(ApiClass("tensor")),
            "FrameworkKernel" => object(ApiClass("FrameworkKernel")),
            _ => None,
        },
        "neuronxcc.nki.language" => language_name(interp, module, name),
        "neuronxcc.nki.language.constants" if name == "sizeinbytes" => native(module, name, size_in_bytes),
        "neuronxcc.nki.isa" | "neuronxcc.nki.isa.constants" => isa_name(module, name),
        "neuronxcc.nki.typing" => match name {
            "tensor" | "mutable_tensor" => object(ApiClass("tensor")),
            "scalar" => native(module, name, scalar),
            // `nt.tensor[nt.mutable]` is `nt.mutable_tensor`.
            "mutable" => object(ApiClass("mutable")),
            _ => None,
        },
        "neuronxcc.nki.compiler" => match name {
            "skip_middle_end_transformations" => native(module, name, kernel::as_written),
            "enable_stack_allocator" | "force_auto_alloc" => native(module, name, kernel::jit),
            "no_reorder" | "multi_buffer" => native(module, name, |_, _| Ok(Value::object(Directive))),
            _ => None,
        },
        "neuronxcc.nki.compiler.sbuf" => alloc::attribute(Space::Sbuf, name),
        "neuronxcc.nki.compiler.psum" => alloc::attribute(Space::Psum, name),
        _ => None,
    }
}

/// `nt.scalar(tile)`: the bound of a loop on the device.
fn scalar(_interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let message = "nt.scalar: loops whose length only the device knows are not supported for kernels of neuronxcc.nki";
    Err(Raise::at("unsupported-api", message, args.span, "in this call")
        .help("pass the number of iterations to the kernel as an int; the current language has nl.dynamic_range"))
}

fn language_name(interp: &mut Interp<'_>, module: &str, name: &str) -> Option<Value> {
    if let Some(op) = NlOp::find(name, arithmetic::call_op) {
        return object(op);
    }
    if let Some(memory) = ApiEnum::memory(name) {
        return object(memory);
    }
    if let Some(dtype) = DType::from_name(name) {
        return Some(dtype::value(dtype));
    }
    if let Some((name, func)) = FUNCTIONS.iter().find(|f| f.0 == name) {
        return native(module, name, *func);
    }
    match name {
        "mgrid" => object(Mgrid),
        "fp32" | "bfp16" => lowest(name),
        "nc" | "spmd_dim" => native(module, name, programs::extent),
        "all_reduce" => native(module, name, programs::all_reduce),
        // The same in both languages.
        "ds" | "tile_size" | "shared_constant" | "no_reorder" => {
            Beta2.attribute(interp, "nki.language", name, Span::default())
        }
        "shared_identity_matrix" => native(module, name, make::shared_identity_matrix),
        _ => None,
    }
}

fn isa_name(module: &str, name: &str) -> Option<Value> {
    if let Some((name, func)) = instruction::FUNCTIONS.iter().find(|f| f.0 == name) {
        return native(module, name, *func);
    }
    if let Some(index) =
        REGISTRY.iter().position(|e| e.schema.name == name && !e.collective && instruction::exists(e.schema))
    {
        return Some(Value::native(format!("{module}.{name}"), instruction::call, index as u32));
    }
    if let Some(class) = VOCABULARIES.iter().find(|v| v.name == name) {
        return object(EnumClass(class));
    }
    if let Some(engine) = name.strip_suffix("_engine").and_then(enums::engine) {
        return object(engine);
    }
    match name {
        "get_nc_version" => native(module, name, |interp, args| {
            args.positional_only(interp, "nisa.get_nc_version", 0, 0)?;
            Ok(enums::nc_version(interp.options.target).map_or(Value::None, Value::object))
        }),
        "fp32" => lowest(name),
        "builtin_custom_op" => native(module, name, |_, args| {
            let message =
                "nisa.builtin_custom_op runs a library compiled for the GpSimd engine, which only hardware executes";
            Err(Raise::at("unsupported-api", message, args.span, "in this call")
                .help("write the operation with nl.* or nisa.*"))
        }),
        _ => None,
    }
}

/// Names for "did you mean".
fn names(module: &str) -> Vec<&'static str> {
    match module {
        "neuronxcc.nki" => vec![
            "jit",
            "trace",
            "baremetal",
            "benchmark",
            "profile",
            "simulate_kernel",
            "language",
            "isa",
            "compiler",
            "typing",
        ],
        "neuronxcc.nki.language" => OPS
            .iter()
            .map(|o| o.name)
            .chain(FUNCTIONS.iter().map(|f| f.0))
            .chain(DType::ALL.iter().map(|d| d.name()))
            .chain(["sbuf", "psum", "hbm", "private_hbm", "shared_hbm", "mgrid", "tile_size", "ds", "shared_constant"])
            .collect(),
        "neuronxcc.nki.isa" => REGISTRY
            .iter()
            .filter(|e| !e.collective && instruction::exists(e.schema))
            .map(|e| e.schema.name)
            .chain(instruction::FUNCTIONS.iter().map(|f| f.0))
            .chain(VOCABULARIES.iter().map(|v| v.name))
            .collect(),
        "neuronxcc.nki.compiler" => {
            vec!["sbuf", "psum", "skip_middle_end_transformations", "enable_stack_allocator", "force_auto_alloc"]
        }
        "neuronxcc.nki.compiler.sbuf" | "neuronxcc.nki.compiler.psum" => vec!["alloc", "mod_alloc", "auto_alloc"],
        _ => Vec::new(),
    }
}

/// The name of the function called by an expression.
fn called(interp: &Interp<'_>, expr: &Expr) -> Option<Rc<str>> {
    let ExprKind::Call(function, _) = &expr.kind else { return None };
    match &function.kind {
        ExprKind::Attr(_, name) | ExprKind::Name(name, _) => Some(interp.name(*name)),
        _ => None,
    }
}

/// `sizeinbytes(dtype)`: bytes of an element.
fn size_in_bytes(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [d] = args.bind(interp, "sizeinbytes", ["dtype"], 1)?;
    let d = dtype::dtype(&d.unwrap_or(Value::None), "sizeinbytes: dtype", span)?;
    Ok(Value::Int(d.size() as i64))
}

/// `nki.simulate_kernel(kernel, *args)`: the host calls kernels.
fn launched(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    Ok(interp.host("the result of a kernel".into(), args.span))
}

/// Formats and their lowest finite numbers.
const LOWEST: [(&str, f64); 2] = [("fp32", f32::MIN as f64), ("bfp16", f32::from_bits(0xff7f_0000) as f64)];

fn lowest(name: &str) -> Option<Value> {
    LOWEST.iter().find(|(format, _)| *format == name).and_then(|&(_, lowest)| object(Lowest(lowest)))
}

/// `nl.fp32`: its lowest finite number.
#[derive(Debug)]
struct Lowest(f64);

impl Object for Lowest {
    fn type_name(&self) -> &'static str {
        "nl.fp32"
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["min"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        (name == "min").then_some(Value::Float(self.0))
    }
}

/// Advice for the old compiler's scheduler, also as a context: it has no effect on results.
#[derive(Debug)]
struct Directive;

impl Object for Directive {
    fn type_name(&self) -> &'static str {
        "directive"
    }

    fn enter(&self, _interp: &mut Interp<'_>, _span: Span) -> EvalResult<Value> {
        Ok(Value::None)
    }
}
