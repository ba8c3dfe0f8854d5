//! NKI since Beta 2 (`import nki`): the names in its modules, and its rules for tensors.

mod alloc;
pub(crate) mod collectives;
mod enums;
mod grids;
mod index;
mod instruction;
mod language;
mod loops;
pub(crate) mod names;
mod operators;
pub mod reference;
mod region;
pub(crate) mod removed;
mod strict;

use nki_diag::{Diagnostic, Span};
use nki_isa::inst::REGISTRY;
use nki_isa::names::Named;
use nki_isa::{Arch, DType};

use self::enums::VOCABULARIES;
use self::language::FUNCTIONS;
use super::common::config::{self, ConfigType, RotationEnum};
use super::common::enums::{ApiEnum, EnumClass, MEMORY, NlOp};
use super::common::handles::{ApiClass, NkiObject, NotYet};
use super::common::kernel;
use super::common::registers::Register;
use super::common::scalars;
use super::common::state::arch;
use super::common::strict::reject;
use super::common::unrolled::Unrolled;
use super::common::values;
use crate::build::ops::OPS;
use crate::build::scalar::Scalar;
use crate::build::tensor::Tensor;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::{Acts, Iterations, Object};
use crate::eval::language::{Construct, Dialect, Hint};
use crate::eval::native::{CallArgs, Native, NativeFn};
use crate::eval::stdlib::dtype;
use crate::eval::value::Value;
use crate::syntax::{BinOp, CmpOp, UnaryOp, sym};

/// The dialect of NKI since Beta 2.
pub(crate) struct Beta2;

impl Dialect for Beta2 {
    fn name(&self) -> &'static str {
        "beta2"
    }

    fn base(&self) -> &'static dyn Dialect {
        &Beta2
    }

    fn packages(&self) -> &'static [&'static str] {
        &["nki", "neuronxcc"]
    }

    fn has_module(&self, path: &str) -> bool {
        has_module(path)
    }

    fn attribute(&self, _interp: &mut Interp<'_>, module: &str, name: &str, _span: Span) -> Option<Value> {
        attribute(module, name)
    }

    fn names(&self, module: &str) -> Vec<&'static str> {
        module_names(module)
    }

    /// A memory, in kernels of the early releases.
    fn undefined(&self, interp: &mut Interp<'_>, name: &str, span: Span) -> Option<Value> {
        region::named(interp, name, span)
    }

    fn iterations(&self, interp: &mut Interp<'_>) -> Option<Box<dyn Iterations>> {
        Unrolled::of(interp)
    }

    fn acts(&self, function: &Native) -> Option<Acts> {
        let is = |func: NativeFn| std::ptr::fn_addr_eq(function.func, func);
        if is(instruction::call) {
            return Some(Acts::Emits);
        }
        if [alloc::ndarray, alloc::zeros, alloc::ones, alloc::full].into_iter().any(|f: NativeFn| is(f)) {
            return Some(Acts::Makes);
        }
        language::acts(function)
    }

    fn is_tensor(&self, value: &Value) -> bool {
        value.downcast::<Tensor>().is_some()
    }

    fn index(&self, interp: &mut Interp<'_>, base: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        index::index(interp, values::tensor(base, "an index", span)?, index, span)
    }

    fn assign(
        &self,
        interp: &mut Interp<'_>,
        base: &Value,
        index: &Value,
        value: &Value,
        span: Span,
    ) -> EvalResult<()> {
        language::assign(interp, values::tensor(base, "an assignment", span)?, index, value, span)
    }

    fn binary(
        &self,
        _interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        Err(operators::arithmetic(op.text(), left, right, span))
    }

    fn unary(&self, _interp: &mut Interp<'_>, op: UnaryOp, value: &Value, span: Span) -> EvalResult<Value> {
        operators::unary(op, value, span)
    }

    fn compare(
        &self,
        interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        operators::compare(interp, op, left, right, span)
    }

    /// `if bias:` for an optional tensor: an object without its own truth value is true. On chip, where a tensor is more often a value than
    /// an argument, that is worth a finding.
    fn truth(&self, interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<Option<bool>> {
        if let Some(t) = value.downcast::<Tensor>()
            && t.on_chip()
        {
            let message = format!("tensor `{}` as a condition is always true", t.storage.name);
            let finding = Diagnostic::warning("tensor-condition", message)
                .at(span, "its values are not known when the kernel is specialised")
                .help("test `t is not None` for an optional tensor; for control flow on the device load the value into a register: nisa.register_load");
            interp.report_once(finding, span);
        }
        Ok(None)
    }

    fn is_other_storage(&self, old: &Value, now: &Value) -> bool {
        if let (Some(old), Some(now)) = (old.downcast::<Tensor>(), now.downcast::<Tensor>()) {
            return old.storage.id != now.storage.id;
        }
        if let (Some(old), Some(now)) = (old.downcast::<Scalar>(), now.downcast::<Scalar>()) {
            return old.id != now.id;
        }
        matches!((old.downcast::<Register>(), now.downcast::<Register>()), (Some(old), Some(now)) if old.id != now.id)
    }

    fn method(&self, interp: &mut Interp<'_>, base: &Value, name: &str, args: &CallArgs) -> EvalResult<Option<Value>> {
        if name == "with_schedule"
            && let Value::Kernel(kernel) = base
        {
            return kernel::with_schedule(interp, kernel, args.clone()).map(Some);
        }
        if name == "ap"
            && let Some(t) = base.downcast::<Tensor>()
            && !t.is_whole()
        {
            let what = format!("`ap` of a view of `{}`", t.storage.name);
            let instead = "call it on the tensor itself: `ap` addresses the whole storage";
            reject(interp, args.span, &what, instead);
        }
        Ok(None)
    }

    fn nested_kernel(&self, interp: &mut Interp<'_>, config: &Value, span: Span) -> EvalResult<()> {
        config::nested(interp, config, span)
    }

    fn check_strictly(&self, interp: &mut Interp<'_>, construct: &Construct<'_>) {
        strict::check(interp, construct);
    }

    fn hint(&self, hint: Hint) -> &'static str {
        match hint {
            Hint::Constructor => {
                "give the class an `__init__`, or declare its fields and derive it from `nl.NKIObject`"
            }
            Hint::Context => {
                "contexts are nl.no_reorder(), objects whose class has `__enter__` and `__exit__`, and what a function decorated with contextlib.contextmanager returns"
            }
            Hint::DeviceMath => {
                "this runs at specialisation, where tensors have no values; use an `nl.*` or `nisa.*` operation"
            }
            Hint::DeviceValues => {
                "compute with instructions of the device, nisa.* and nl.*: nl.exp for np.exp, nisa.tensor_reduce for a sum"
            }
            Hint::LaunchGrid => "nl.nc(2) spreads an axis over two cores: compile for two cores",
            Hint::DeviceRange => "use `nl.dynamic_range` or `nl.fori_loop` for bounds that the device computes",
            Hint::HostValue => {
                "pass what the kernel needs from it as an argument, or compute it with `nki.language` or `math`"
            }
            Hint::LoopCarried => {
                "the device repeats the instructions of the first iteration: update a tensor in place, or count in a register (nisa.register_alloc)"
            }
            Hint::UnusedFunction => {
                "call it, or delete the statement: a statement runs on the device only if it is an instruction (nisa.*, nl.*)"
            }
        }
    }
}

/// `nl.tile_size`
#[derive(Debug)]
struct TileSize;

impl Object for TileSize {
    fn type_name(&self) -> &'static str {
        "nl.tile_size"
    }

    fn attributes(&self) -> Vec<&'static str> {
        TILE_SIZES.to_vec()
    }

    fn attribute(&self, interp: &Interp<'_>, name: &str) -> Option<Value> {
        tile_size_of(arch(interp), name).map(Value::Int)
    }
}

/// Modules of the dialect.
const MODULES: &[&str] = &[
    "nki",
    "nki.language",
    "nki.isa",
    "nki.isa.constants",
    "nki.typing",
    "nki.collectives",
    "nki.compiler",
    "nki.experimental",
    "neuronxcc",
    "neuronxcc.nki",
    "neuronxcc.nki.language",
    "neuronxcc.nki.isa",
    "neuronxcc.nki.typing",
    "neuronxcc.nki.compiler",
];

/// Whether a dotted module is provided.
fn has_module(module: &str) -> bool {
    MODULES.contains(&module)
}

/// `nki.jit` and the decorators of older releases.
fn jit(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let target = interp.sym("platform_target");
    if interp.options.strict && args.keyword.iter().any(|(name, _)| *name == target) {
        let finding = Diagnostic::warning("strict-language", "`platform_target=` of nki.jit is an error since NKI 0.3")
            .at(args.span, "the simulator accepts it")
            .help("set NEURON_PLATFORM_TARGET_OVERRIDE instead");
        interp.report_once(finding, args.span);
    }
    kernel::jit(interp, args)
}

fn object(value: impl Object) -> Option<Value> {
    Some(Value::object(value))
}

/// `module.attr`; `None` if there is no such name.
fn attribute(module: &str, attr: &str) -> Option<Value> {
    if attr == "NKIObject" && module.starts_with("nki") {
        return object(NkiObject);
    }
    match module {
        "nki" | "neuronxcc.nki" if matches!(attr, "jit" | "baremetal" | "benchmark" | "profile") => {
            Some(Value::native(format!("nki.{attr}"), jit, 0))
        }
        "nki" => match attr {
            "simulate" => Some(Value::native("nki.simulate", simulate, 0)),
            "simulate_kernel" | "trace" => removed::name("nki", attr),
            _ => None,
        },
        "nki.language" => language_attr(attr),
        "nki.isa" | "nki.isa.constants" => isa_attr(attr),
        "nki.typing" if attr == "tensor" => object(ApiClass("tensor")),
        "nki.experimental" if matches!(attr, "fori_loop" | "while_loop") => language_attr(attr),
        "nki.collectives" => collectives::attr(attr),
        "nki.compiler" if let Some(value) = compiler_attr(attr) => Some(value),
        "nki.compiler" | "nki.experimental" if !attr.starts_with('_') => object(NotYet(format!("{module}.{attr}"))),
        m if m.starts_with("neuronxcc.nki") && !has_module(&format!("{m}.{attr}")) => removed::name(m, attr),
        _ => None,
    }
}

/// `nki.compiler.<attr>`
fn compiler_attr(attr: &str) -> Option<Value> {
    match attr {
        "CompileConfig" => object(ConfigType(&config::COMPILE)),
        "SpecializationConfig" => object(ConfigType(&config::SPECIALIZATION)),
        "AddressRotation" => object(RotationEnum),
        _ => None,
    }
}

/// Names for "did you mean".
fn module_names(module: &str) -> Vec<&'static str> {
    match module {
        "nki" => vec!["jit", "simulate", "language", "isa", "typing"],
        "nki.language" => OPS
            .iter()
            .map(|o| o.name)
            .chain(FUNCTIONS.iter().map(|f| f.0))
            .chain(DType::ALL.iter().map(|d| d.name()))
            .chain(["sbuf", "psum", "hbm", "private_hbm", "shared_hbm", "tile_size", "NKIObject", "bool_"])
            .collect(),
        "nki.collectives" => collectives::names(),
        "nki.isa" | "nki.isa.constants" => REGISTRY
            .iter()
            .filter(|e| !e.collective && e.public)
            .map(|e| e.schema.name)
            .chain(VOCABULARIES.iter().filter(|v| v.module == "nki.isa").map(|v| v.name))
            .chain(["register_alloc", "get_nc_version", "VirtualRegister", "NkiScalar", "NkiValidationError"])
            .collect(),
        _ => Vec::new(),
    }
}

fn language_attr(attr: &str) -> Option<Value> {
    if let Some(op) = NlOp::find(attr, language::call_op) {
        return object(op);
    }
    if let Some(memory) = ApiEnum::memory(attr) {
        return object(memory);
    }
    if let Some(dtype) = DType::from_name(attr) {
        return Some(dtype::value(dtype));
    }
    if let Some((name, func)) = FUNCTIONS.iter().find(|f| f.0 == attr) {
        return Some(Value::native(format!("nki.language.{name}"), *func, 0));
    }
    match attr {
        "tile_size" => object(TileSize),
        "NkiTensor" | "tensor" => object(ApiClass("tensor")),
        "NkiGrid" => object(ApiClass("NkiGrid")),
        "NkiTileGrid" => object(ApiClass("NkiTileGrid")),
        "NkiBlockGrid" => object(ApiClass("NkiBlockGrid")),
        "MemoryRegion" => object(EnumClass(&MEMORY)),
        "dtype" | "DType" => object(ApiClass("dtype")),
        "range" => language_attr("static_range"),
        _ => removed::language(attr),
    }
}

fn isa_attr(attr: &str) -> Option<Value> {
    match attr {
        "scalar_load" => return Some(Value::native("nki.isa.scalar_load", scalars::scalar_load, 0)),
        "scalar_store" => return Some(Value::native("nki.isa.scalar_store", scalars::scalar_store, 0)),
        _ => {}
    }
    if let Some(index) = REGISTRY.iter().position(|e| e.schema.name == attr && !e.collective && e.public) {
        return Some(Value::native(format!("nki.isa.{attr}"), instruction::call, index as u32));
    }
    if let Some(class) = VOCABULARIES.iter().find(|v| v.name == attr && v.module == "nki.isa") {
        return object(EnumClass(class));
    }
    // vector_engine and the like (deprecated spellings), and pe_engine, act_engine, ... of older kernels.
    if let Some(engine) = attr.strip_suffix("_engine").and_then(enums::engine) {
        return object(engine);
    }
    let native = |func: NativeFn| Some(Value::native(format!("nki.isa.{attr}"), func, 0));
    match attr {
        "register_alloc" => native(loops::register_alloc),
        "get_nc_version" => native(|interp, args| {
            args.positional_only(interp, "nisa.get_nc_version", 0, 0)?;
            Ok(Value::object(enums::nc_version(interp.options.target)))
        }),
        "get_nc_sub_version" => native(|_, _| Ok(Value::Int(0))),
        "VirtualRegister" => object(ApiClass("register")),
        "NkiScalar" => object(ApiClass("NkiScalar")),
        "NkiInstruction" => object(ApiClass("NkiInstruction")),
        "NkiValidationError" => Some(Value::ExceptionClass(sym::nki_validation_error)),
        "tensor_copy_dynamic_src" | "tensor_copy_dynamic_dst" => removed::name("nki.isa", attr),
        _ => None,
    }
}

/// `nki.simulate(kernel)`: the host calls it.
fn simulate(_interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional.into_iter().next().ok_or_else(|| {
        Raise::at("arguments", "nki.simulate() is missing its argument `kernel`", args.span, "in this call")
    })
}

/// An attribute of `nl.tile_size`. Source: `_TileSize` in `nki.language` and the architecture guides.
fn tile_size_of(arch: &Arch, name: &str) -> Option<i64> {
    let n = match name {
        "pmax" => arch.partitions,
        // fp32 elements of a PSUM bank; psum_fmax is its deprecated name.
        "psum_fmax" | "psum_bank_fmax" => arch.psum_bank_bytes / 4,
        "psum_bank_fmax_bytes" => arch.psum_bank_bytes,
        "gemm_stationary_fmax" => arch.stationary_free_max,
        "gemm_moving_fmax" => 512.min(arch.moving_free_max),
        "bn_stats_fmax" => 512,
        "psum_min_align" => 4,
        "sbuf_min_align" => 1,
        "psum_num_banks" => arch.psum_banks,
        "sbuf_size_bytes" => arch.sbuf_bytes * arch.partitions,
        "sbuf_fmax" => arch.sbuf_bytes / 4,
        "sbuf_fmax_bytes" | "total_available_sbuf_size" => arch.sbuf_bytes,
        _ => return None,
    };
    Some(i64::from(n))
}

/// Attributes of `nl.tile_size`.
pub(crate) const TILE_SIZES: &[&str] = &[
    "pmax",
    "psum_fmax",
    "psum_bank_fmax",
    "psum_bank_fmax_bytes",
    "gemm_stationary_fmax",
    "gemm_moving_fmax",
    "bn_stats_fmax",
    "psum_min_align",
    "sbuf_min_align",
    "psum_num_banks",
    "sbuf_size_bytes",
    "sbuf_fmax",
    "sbuf_fmax_bytes",
    "total_available_sbuf_size",
];
