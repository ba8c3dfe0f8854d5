//! The public names of the dialect with their kinds, for a host that provides them outside of kernels.

use nki_isa::DType;
use nki_isa::inst::REGISTRY;
use nki_isa::names::Named;

use super::enums::VOCABULARIES;
use super::{LOWEST, instruction, language};
use crate::build::ops::OPS;
use crate::dialect::beta2::TILE_SIZES;
use crate::dialect::beta2::names::{ApiKind, ApiName};

/// All public names of `neuronxcc.nki.language` and `neuronxcc.nki.isa`, enums before their members. Memories and element types are those of
/// the current language, and not included.
pub(crate) fn api_names() -> Vec<ApiName> {
    let mut out: Vec<ApiName> = Vec::new();
    for class in VOCABULARIES {
        out.push((class.module, class.name, ApiKind::Enum(class.members.to_vec())));
    }
    let mut language = |name, kind| out.push(("neuronxcc.nki.language", name, kind));
    OPS.iter().for_each(|op| language(op.name, ApiKind::Operator));
    language::FUNCTIONS.iter().for_each(|f| language(f.0, ApiKind::Function));
    for name in ["ds", "no_reorder", "shared_constant", "shared_identity_matrix", "par_dim", "all_reduce"] {
        if !language::FUNCTIONS.iter().any(|f| f.0 == name) {
            language(name, ApiKind::Function);
        }
    }
    for dtype in DType::ALL {
        language(dtype.name(), ApiKind::Dtype(*dtype));
    }
    language("bool_", ApiKind::Dtype(DType::Bool));
    language("tile_size", ApiKind::TileSize(TILE_SIZES));
    language("mgrid", ApiKind::Class);
    for (name, lowest) in LOWEST {
        language(name, ApiKind::Lowest(lowest));
    }
    let mut isa = |name, kind| out.push(("neuronxcc.nki.isa", name, kind));
    isa(LOWEST[0].0, ApiKind::Lowest(LOWEST[0].1));
    let instructions =
        REGISTRY.iter().filter(|e| !e.collective && instruction::exists(e.schema)).map(|e| e.schema.name);
    let functions = instruction::FUNCTIONS.iter().map(|f| f.0).chain(["get_nc_version", "builtin_custom_op"]);
    let mut known: Vec<&str> = Vec::new();
    for name in functions.chain(instructions) {
        if !known.contains(&name) {
            known.push(name);
            isa(name, ApiKind::Function);
        }
    }
    for (name, member) in [
        ("tensor_engine", "tensor"),
        ("vector_engine", "vector"),
        ("scalar_engine", "scalar"),
        ("gpsimd_engine", "gpsimd"),
        ("dma_engine", "dma"),
        ("unknown_engine", "unknown"),
    ] {
        isa(name, ApiKind::Member("engine", member));
    }
    out
}
