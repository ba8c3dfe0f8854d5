//! Names of Beta 1 that are gone, and what to write instead (migration guide of the SDK's manual).

use nki_diag::{Diagnostic, Span};

use super::Removed;
use crate::eval::error::Raise;
use crate::eval::value::Value;

/// Feature, its full name, and what to write instead.
const TABLE: &[(&str, &str, &str)] = &[
    (
        "nl.arange",
        "arange",
        "index with slices: t[start:stop:step]; for other patterns use t.ap(pattern=[[stride, count], ...])",
    ),
    ("nl.mgrid", "mgrid", "index with slices: t[0:128, 0:512] instead of i, j = nl.mgrid[0:128, 0:512]; t[i, j]"),
    (
        "nl.par_dim",
        "par_dim",
        "the partition dimension is always the first: move block dimensions into a list of tensors, or into the free dimensions: nl.ndarray((128, 8, 512), ...)",
    ),
    ("nl.spmd_dim", "spmd_dim", "launch with kernel[lnc](...)"),
    ("nl.nc", "nc", "launch with kernel[lnc](...)"),
    ("nl.loop_reduce", "loop_reduce", "accumulate in a tensor made before the loop"),
    ("nl.static_cast", "static_cast", "nisa.tensor_copy to a tensor of the other dtype"),
    ("nl.instruction_wrapper", "instruction_wrapper", "call nki.isa directly"),
    ("nl.atomic_rmw", "atomic_rmw", "nisa.dma_compute(dst, [src, dst], reduce_op=nl.add)"),
    ("nl.all_reduce", "all_reduce", "nisa.tensor_partition_reduce, or a matmul with ones, over partitions"),
    ("nl.simulate_kernel", "simulate_kernel", "nki-sim run FILE.py"),
    ("nki.trace", "trace", "decorate the kernel with @nki.jit, helpers not at all"),
    ("nki.simulate_kernel", "simulate_kernel", "nki-sim run FILE.py"),
    (
        "nisa.tensor_copy_dynamic_src",
        "tensor_copy_dynamic_src",
        "nisa.tensor_copy with src.ap(..., scalar_offset=index)",
    ),
    (
        "nisa.tensor_copy_dynamic_dst",
        "tensor_copy_dynamic_dst",
        "nisa.tensor_copy with dst.ap(..., scalar_offset=index)",
    ),
];

fn find(feature: &str) -> Option<Value> {
    let found = TABLE.iter().find(|r| r.0 == feature)?;
    Some(Value::Object(std::rc::Rc::new(Removed(found.0))))
}

/// A removed name of `nki.language`.
pub(super) fn language(attr: &str) -> Option<Value> {
    find(&format!("nl.{attr}"))
}

/// A removed name of another module.
pub(super) fn name(module: &str, attr: &str) -> Option<Value> {
    if module.starts_with("neuronxcc") {
        return Some(Value::Object(std::rc::Rc::new(Removed("neuronxcc.nki"))));
    }
    let prefix = if module == "nki.isa" { "nisa" } else { module };
    find(&format!("{prefix}.{attr}"))
}

/// The error of using a removed name.
pub(in crate::api) fn raise(feature: &'static str, span: Span) -> Box<Raise> {
    let (message, help) = match TABLE.iter().find(|r| r.0 == feature) {
        Some(r) => (format!("`{feature}` was removed after Beta 1"), r.2),
        None => (
            "`neuronxcc.nki` is the Beta 1 interface, which is not supported".to_owned(),
            "import nki, nki.language as nl and nki.isa as nisa; instructions then take dst= as their first argument",
        ),
    };
    Raise::new(Diagnostic::error("removed-beta1", message).at(span, "here").help(help))
}
