//! Rules that many instructions share.

use super::{Footprint, Operands};
use crate::machine::Context;
use crate::view::{Space, View};
use crate::violation::Violation;

/// Rules of every view of an instruction: partition count and start, bounds of the tensor, PSUM and SBUF access limits.
///
/// # Errors
/// The first broken rule.
pub fn views<I: Operands>(inst: &I, context: &Context<'_>) -> Result<(), Violation> {
    let mut footprint = Footprint::default();
    inst.operand_footprint(&mut footprint);
    for view in footprint.reads.iter().chain(&footprint.writes) {
        view_bounds(view, context)?;
    }
    Ok(())
}

/// `view` stays inside its tensor and, on chip, inside the partitions.
///
/// # Errors
/// `out-of-bounds`, `partition-size`.
pub fn view_bounds(view: &View, context: &Context<'_>) -> Result<(), Violation> {
    let tensor = &context.tensors[view.tensor.0 as usize];
    let size = view.dtype.size() as i64;
    if view.space.is_on_chip() && view.partitions() > context.arch.partitions {
        return Err(Violation::new(
            "partition-size",
            "",
            format!(
                "`{}` spans {} partitions, the memory has {}",
                tensor.name,
                view.partitions(),
                context.arch.partitions
            ),
        ));
    }
    let dims = if view.space.is_on_chip() { view.free_dims() } else { &view.dims[..] };
    let (lo, hi) = View::span(dims);
    let last = (view.offset + hi + 1) * size;
    if view.indirect.is_none() && (view.offset + lo < 0 || last > tensor.bytes() as i64) {
        return Err(Violation::new(
            "out-of-bounds",
            "",
            format!(
                "view of `{}` reaches byte {last}{}, the tensor has {}",
                tensor.name,
                if view.space.is_on_chip() { " of each partition" } else { "" },
                tensor.bytes()
            ),
        ));
    }
    Ok(())
}

/// The views have the same number of partitions.
///
/// # Errors
/// `partition-mismatch`.
pub fn same_partitions(a: (&'static str, &View), b: (&'static str, &View)) -> Result<(), Violation> {
    if a.1.partitions() == b.1.partitions() {
        return Ok(());
    }
    Err(Violation::new(
        "partition-mismatch",
        b.0,
        format!("`{}` has {} partitions, `{}` has {}", b.0, b.1.partitions(), a.0, a.1.partitions()),
    ))
}

/// The views have the same number of elements per partition.
///
/// # Errors
/// `shape-mismatch`.
pub fn same_free(a: (&'static str, &View), b: (&'static str, &View)) -> Result<(), Violation> {
    if a.1.free_elements() == b.1.free_elements() {
        return Ok(());
    }
    Err(Violation::new(
        "shape-mismatch",
        b.0,
        format!(
            "`{}` has {:?} = {} elements per partition, `{}` has {:?} = {}",
            b.0,
            b.1.shape(),
            b.1.free_elements(),
            a.0,
            a.1.shape(),
            a.1.free_elements()
        ),
    ))
}

/// Whether the view lies in PSUM.
pub fn in_psum(view: &View) -> bool {
    view.space == Space::Psum
}
