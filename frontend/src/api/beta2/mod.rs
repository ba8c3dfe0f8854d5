//! The bindings of the current dialect (`import nki`): which names its modules have and what they are.
//!
//! All that is particular to this dialect is in this folder, so that another one (Beta 1, `import neuronxcc.nki`) can
//! stand beside it. `nki.jit` and `NKIObject` are the evaluator's.

mod alloc;
mod collectives;
mod language;
pub(crate) mod names;
pub(crate) mod region;
mod removed;

use std::any::Any;
use std::rc::Rc;

use nki_isa::inst::REGISTRY;
use nki_isa::names::Named;
use nki_isa::{Arch, DType};

pub(crate) use self::collectives::ReplicaGroup;
use self::language::FUNCTIONS;
pub(super) use self::language::{assign, call_op};
use super::builder::NodeAt;
use super::vocab::{ApiEnum, NlOp, OPS, VOCABULARIES};
use super::{bind, dynamic};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::{CallArgs, NativeFn};
use crate::eval::value::{Object, Value};
use crate::syntax::sym;

/// What an instruction returns: a handle with `depends_on`.
#[derive(Debug)]
pub(crate) struct Handle(pub(crate) NodeAt);

/// `nl.ds(start, size)`
#[derive(Debug)]
pub(crate) struct Ds {
    /// An int, a register or a tensor of one element.
    pub(crate) start: Value,
    /// Number of elements.
    pub(crate) size: i64,
}

/// `nl.tile_size`
#[derive(Debug)]
pub(crate) struct TileSize;

/// `nl.no_reorder()`
#[derive(Debug)]
pub(crate) struct NoReorder;

/// A class of the API, for annotations and `isinstance`.
#[derive(Debug)]
pub(crate) struct ApiClass(pub(crate) &'static str);

/// An enum class, such as `nisa.engine`: an index into [`VOCABULARIES`].
#[derive(Debug)]
pub(crate) struct EnumClass(pub(crate) u8);

/// A name that Beta 1 had (`nl.mgrid`): any use is an error.
#[derive(Debug)]
pub(crate) struct Removed(pub(crate) &'static str);

/// A documented function that is not there yet: it can be imported, not used.
#[derive(Debug)]
pub(crate) struct NotYet(pub(crate) String);

macro_rules! object {
    ($($Name:ident: |$it:ident| $text:expr;)*) => {
        $(impl Object for $Name {
            fn type_name(&self) -> &'static str {
                let $it = self;
                $text
            }
            fn as_any(&self) -> &dyn Any {
                self
            }
        })*
    };
}

object! {
    Handle: |_it| "NkiInstruction";
    Ds: |_it| "nl.ds";
    TileSize: |_it| "nl.tile_size";
    NoReorder: |_it| "nl.no_reorder";
    ApiClass: |it| it.0;
    EnumClass: |it| VOCABULARIES[usize::from(it.0)].name;
    Removed: |it| it.0;
    NotYet: |_it| "function";
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
pub(crate) fn has_module(module: &str) -> bool {
    MODULES.contains(&module)
}

fn object(value: impl Object + 'static) -> Option<Value> {
    Some(Value::Object(Rc::new(value)))
}

/// `module.attr`; `None` if there is no such name.
pub(crate) fn module_attr(module: &str, attr: &str) -> Option<Value> {
    match module {
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
        "nki.compiler" | "nki.experimental" if !attr.starts_with('_') => object(NotYet(format!("{module}.{attr}"))),
        m if m.starts_with("neuronxcc.nki") && !has_module(&format!("{m}.{attr}")) => removed::name(m, attr),
        _ => None,
    }
}

/// Names for "did you mean".
pub(crate) fn module_names(module: &str) -> Vec<&'static str> {
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
            .filter(|e| !e.collective)
            .map(|e| e.schema.name)
            .chain(VOCABULARIES.iter().filter(|v| v.module == "nki.isa").map(|v| v.name))
            .chain(["register_alloc", "get_nc_version", "VirtualRegister", "NkiValidationError"])
            .collect(),
        _ => Vec::new(),
    }
}

fn language_attr(attr: &str) -> Option<Value> {
    if let Some(op) = NlOp::find(attr) {
        return Some(Value::NlOp(op));
    }
    if let Some(memory) = ApiEnum::memory(attr) {
        return Some(Value::ApiEnum(memory));
    }
    if let Some(dtype) = DType::from_name(attr) {
        return Some(Value::Dtype(dtype));
    }
    if let Some((name, func)) = FUNCTIONS.iter().find(|f| f.0 == attr) {
        return Some(Value::native(format!("nki.language.{name}"), *func, 0));
    }
    match attr {
        "tile_size" => object(TileSize),
        "NkiTensor" | "tensor" => object(ApiClass("tensor")),
        "MemoryRegion" => object(EnumClass(super::vocab::MEMORY)),
        "dtype" | "DType" => object(ApiClass("dtype")),
        "range" => language_attr("static_range"),
        _ => removed::language(attr),
    }
}

fn isa_attr(attr: &str) -> Option<Value> {
    if let Some(index) = REGISTRY.iter().position(|e| e.schema.name == attr && !e.collective) {
        return Some(Value::native(format!("nki.isa.{attr}"), bind::call, index as u32));
    }
    if let Some(class) = VOCABULARIES.iter().position(|v| v.name == attr && v.module == "nki.isa") {
        return object(EnumClass(class as u8));
    }
    // vector_engine and the like (deprecated spellings), and pe_engine, act_engine, ... of older kernels.
    if let Some(engine) = attr.strip_suffix("_engine").and_then(ApiEnum::engine) {
        return Some(Value::ApiEnum(engine));
    }
    let native = |func: NativeFn| Some(Value::native(format!("nki.isa.{attr}"), func, 0));
    match attr {
        "register_alloc" => native(dynamic::register_alloc),
        "get_nc_version" => native(|interp, args| {
            args.positional_only(interp, "nisa.get_nc_version", 0, 0)?;
            Ok(Value::ApiEnum(ApiEnum::nc_version(interp.options.target)))
        }),
        "get_nc_sub_version" => native(|_, _| Ok(Value::Int(0))),
        "VirtualRegister" => object(ApiClass("register")),
        "NkiInstruction" => object(ApiClass("NkiInstruction")),
        "NkiValidationError" => Some(Value::ExceptionClass(sym::nki_validation_error)),
        "tensor_copy_dynamic_src" | "tensor_copy_dynamic_dst" => removed::name("nki.isa", attr),
        _ => None,
    }
}

/// `nki.simulate(kernel)`: calling it is the host's business.
fn simulate(_interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional
        .into_iter()
        .next()
        .ok_or_else(|| Raise::at("arguments", "nki.simulate() misses its argument `kernel`", args.span, "in this call"))
}

/// An attribute of `nl.tile_size`. Source: `_TileSize` in `nki.language` and the architecture guides.
pub(crate) fn tile_size(interp: &Interp<'_>, name: &str) -> Option<Value> {
    tile_size_of(interp.api.builder.arch(), name).map(Value::Int)
}

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

/// The error of using a removed name.
pub(super) fn removed_use(interp: &Interp<'_>, removed: &Removed, span: nki_diag::Span) -> Box<Raise> {
    removed::raise(&interp.sources, removed.0, span)
}
