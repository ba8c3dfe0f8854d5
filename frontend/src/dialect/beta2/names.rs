//! The public names of the dialect with their kinds, for a host that provides them outside of kernels.

use nki_isa::DType;
use nki_isa::inst::REGISTRY;
use nki_isa::names::Named;

use super::enums::VOCABULARIES;
use super::language::FUNCTIONS;
use super::reference::CLASSES;
use super::{TILE_SIZES, collectives};
use crate::build::ops::OPS;
use crate::dialect::common::enums::MEMORY;

/// The kind of a name of the API.
#[derive(Debug, Clone, PartialEq)]
pub enum ApiKind {
    /// A function or instruction.
    Function,
    /// An operation that is a function and an `op=` argument.
    Operator,
    /// An element type.
    Dtype(DType),
    /// An enum: members and values.
    Enum(Vec<(&'static str, i64)>),
    /// A member of an enum, by its class (a name of the same module) and name.
    Member(&'static str, &'static str),
    /// A class, for annotations and `isinstance`.
    Class,
    /// `nl.tile_size`: its attributes.
    TileSize(&'static [&'static str]),
    /// `nl.fp32`: its lowest finite number, the attribute `min`.
    Lowest(f64),
}

/// A public name: module, name, kind.
pub type ApiName = (&'static str, &'static str, ApiKind);

/// All public names of `nki.language`, `nki.collectives` and `nki.isa`, enums before their members.
pub(crate) fn api_names() -> Vec<ApiName> {
    let mut out: Vec<ApiName> = Vec::new();
    for class in VOCABULARIES {
        out.push((class.module, class.name, ApiKind::Enum(class.members.to_vec())));
    }
    let mut language = |name, kind| out.push(("nki.language", name, kind));
    let memory = MEMORY.name;
    for member in ["sbuf", "psum", "private_hbm", "shared_hbm"] {
        language(member, ApiKind::Member(memory, member));
    }
    language("hbm", ApiKind::Member(memory, "private_hbm"));
    OPS.iter().for_each(|op| language(op.name, ApiKind::Operator));
    FUNCTIONS.iter().for_each(|f| language(f.0, ApiKind::Function));
    for dtype in DType::ALL {
        language(dtype.name(), ApiKind::Dtype(*dtype));
    }
    language("bool_", ApiKind::Dtype(DType::Bool));
    language("tile_size", ApiKind::TileSize(TILE_SIZES));
    language("tensor", ApiKind::Class);
    for class in CLASSES.iter().filter(|c| c.module == "nki.language") {
        language(class.name, ApiKind::Class);
    }
    let mut collective = |name| out.push(("nki.collectives", name, ApiKind::Function));
    REGISTRY.iter().filter(|e| e.collective).for_each(|e| collective(e.schema.name));
    ["rank_id", collectives::PROCESSING].into_iter().for_each(collective);
    let mut isa = |name, kind| out.push(("nki.isa", name, kind));
    REGISTRY.iter().filter(|e| !e.collective && e.public).for_each(|e| isa(e.schema.name, ApiKind::Function));
    for name in ["register_alloc", "get_nc_version", "get_nc_sub_version"] {
        isa(name, ApiKind::Function);
    }
    for (name, member) in [
        ("tensor_engine", "tensor"),
        ("vector_engine", "vector"),
        ("scalar_engine", "scalar"),
        ("gpsimd_engine", "gpsimd"),
        ("unknown_engine", "unknown"),
    ] {
        isa(name, ApiKind::Member("engine", member));
    }
    for class in CLASSES.iter().filter(|c| c.module == "nki.isa") {
        isa(class.name, ApiKind::Class);
    }
    isa("NkiValidationError", ApiKind::Class);
    out
}

/// The value of an attribute of `nl.tile_size` on a target.
pub fn tile_size(target: nki_isa::Target, name: &str) -> Option<i64> {
    super::tile_size_of(nki_isa::Arch::of(target), name)
}
