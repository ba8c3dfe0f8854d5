//! Rules that many instructions share.
//!
//! Sources: trainium_inferentia2_arch ("Data Movement", start partitions and access patterns; VectorE, ScalarE "Layout & Tile Size").

use super::{Footprint, Instruction};
use crate::arch::Arch;
use crate::arg::{Arg, ScalarOperand};
use crate::dtype::DType;
use crate::machine::Context;
use crate::names::{AluOp, Engine};
use crate::view::{Space, View};
use crate::violation::Violation;

/// Rules of every view of an instruction: partition count and start, bounds of the tensor, and for instructions of the compute
/// engines the limits of an access pattern.
///
/// # Errors
/// The first broken rule.
pub fn views<I: Instruction>(inst: &I, context: &Context<'_>) -> Result<(), Violation> {
    let mut footprint = Footprint::default();
    inst.operand_footprint(&mut footprint);
    // What the Sync engine can issue is carried out by DMA or by its sequencer, which have no access patterns of this kind.
    let compute = !I::SCHEMA.engines.contains(&Engine::Sync);
    for view in footprint.reads.iter().chain(&footprint.writes) {
        let own = !I::OWN_LAYOUT.is_empty() && I::OWN_LAYOUT.contains(&operand_of(inst, view));
        let result = view_bounds(view, context)
            .and_then(|()| packed(inst, view))
            .and_then(|()| if compute && !own && view.space.is_on_chip() { access(view, context) } else { Ok(()) });
        if let Err(mut violation) = result {
            violation.operand = operand_of(inst, view);
            return Err(violation);
        }
    }
    Ok(())
}

/// A packed dtype where the instruction takes one.
fn packed<I: Instruction>(inst: &I, view: &View) -> Result<(), Violation> {
    if !view.dtype.is_packed() {
        return Ok(());
    }
    let name = operand_of(inst, view);
    if I::PACKED.contains(&name) {
        return Ok(());
    }
    let message =
        format!("`{name}` is {}; an element of it is four numbers, which {} does not take", view.dtype, I::SCHEMA.name);
    Err(Violation::new("operand-dtype", name, message).help(
        "packed types are for nc_matmul_mx, quantize_mx, memset with 0, tensor_copy, dma_copy and dma_transpose; \
         look at the bits with `.view(nl.uint32)` (`nl.uint16` for float4_e2m1fn_x4)",
    ))
}

/// Packed dtypes are copied as they are: both sides have the same.
///
/// # Errors
/// `dtype-mismatch`.
pub fn packed_copy(dst: Named<'_>, src: Named<'_>) -> Result<(), Violation> {
    if dst.1.dtype == src.1.dtype || !(dst.1.dtype.is_packed() || src.1.dtype.is_packed()) {
        return Ok(());
    }
    Err(Violation::new(
        "dtype-mismatch",
        dst.0,
        format!(
            "`{}` is {}, `{}` is {}: packed elements are copied, not converted",
            dst.0, dst.1.dtype, src.0, src.1.dtype
        ),
    )
    .help("make both sides the same with `.view(dtype)`"))
}

/// The keyword of the operand that holds `view`; empty if it is only part of one (an index).
fn operand_of<I: Instruction>(inst: &I, view: &View) -> &'static str {
    let args = inst.args();
    let named = I::SCHEMA.operands.iter().zip(&args);
    named.into_iter().find(|(_, a)| matches!(a, Arg::View(v) if v == view)).map_or("", |(o, _)| o.name)
}

/// `view` stays inside its tensor and, on chip, inside the partitions.
///
/// # Errors
/// `out-of-bounds`, `partition-size`.
pub fn view_bounds(view: &View, context: &Context<'_>) -> Result<(), Violation> {
    let tensor = &context.tensors[view.tensor.0 as usize];
    let size = view.dtype.size() as i64;
    if view.space.is_on_chip() {
        if view.partitions() > context.arch.partitions {
            return Err(Violation::new(
                "partition-size",
                "",
                format!(
                    "`{}` spans {} partitions, the memory has {}",
                    tensor.name,
                    view.partitions(),
                    context.arch.partitions
                ),
            )
            .help("tile the partition dimension (dimension 0) by 128"));
        }
        let (first, end) = view.partition_span();
        let have = i64::from(tensor.shape.first().copied().unwrap_or(1));
        if view.indirect.is_none() && (first < 0 || end > have) {
            return Err(Violation::new(
                "out-of-bounds",
                "",
                format!(
                    "view of `{}` reaches partition {}, the tensor has {have} (0 to {})",
                    tensor.name,
                    end - 1,
                    have - 1
                ),
            ));
        }
    }
    let dims = if view.space.is_on_chip() { view.free_dims() } else { &view.dims[..] };
    let (lo, hi) = View::span(dims);
    let last = (view.offset + hi + 1) * size;
    if view.indirect.is_none() && (view.offset + lo < 0 || last > tensor.bytes() as i64) {
        let (what, at) =
            if view.offset + lo < 0 { ("starts at byte", (view.offset + lo) * size) } else { ("reaches byte", last) };
        return Err(Violation::new(
            "out-of-bounds",
            "",
            format!(
                "view of `{}` {what} {at}{}, the tensor has {}",
                tensor.name,
                if view.space.is_on_chip() { " of each partition" } else { "" },
                tensor.bytes()
            ),
        ));
    }
    Ok(())
}

/// Rules of a compute engine's access to SBUF or PSUM: start partition, neighbouring partitions, number of free dimensions and of
/// elements per partition.
///
/// # Errors
/// `partition-start`, `partition-stride`, `access-pattern`, `free-size`.
pub fn access(view: &View, context: &Context<'_>) -> Result<(), Violation> {
    let tensor = &context.tensors[view.tensor.0 as usize];
    let partitions = view.partitions();
    // Tensors without an address are placed at a partition that satisfies the rule for the whole tensor.
    let start = tensor.address.map_or(0, |a| a.partition) + view.partition;
    let step = start_step(partitions);
    if !start.is_multiple_of(step) || start >= context.arch.partitions {
        let allowed: Vec<_> = (0..context.arch.partitions).step_by(step as usize).map(|p| p.to_string()).collect();
        return Err(Violation::new(
            "partition-start",
            "",
            format!(
                "access to {partitions} partitions of `{}` starts at partition {start}; it must start at {}",
                tensor.name,
                allowed.join(", ")
            ),
        )
        .help(
            "an access of up to 32 partitions starts at 0, 32, 64 or 96, one of up to 64 at 0 or 64, a larger one at 0",
        ));
    }
    if let Some(d) = view.dims.first()
        && d.count > 1
        && d.stride != 1
    {
        return Err(Violation::new(
            "partition-stride",
            "",
            format!(
                "`{}` is accessed with a partition stride of {}; engines access neighbouring partitions",
                tensor.name, d.stride
            ),
        )
        .help("copy the partitions together with nisa.dma_copy first"));
    }
    let free = view.free_elements();
    let arch = context.arch;
    let limit = if view.space == Space::Psum { arch.psum_access_max } else { arch.sbuf_access_max };
    if free > limit as usize {
        return Err(Violation::new(
            "free-size",
            "",
            format!(
                "`{}` has {free} elements per partition; an instruction takes at most {limit} in {}",
                tensor.name, view.space
            ),
        ));
    }
    let dims = View::merged(view.free_dims());
    if dims.len() > arch.free_dims_max as usize {
        return Err(Violation::new(
            "access-pattern",
            "",
            format!(
                "`{}` is accessed with {} free dimensions that do not merge; an access pattern has at most {}",
                tensor.name,
                dims.len(),
                arch.free_dims_max
            ),
        ));
    }
    Ok(())
}

/// An access of this many partitions starts at a multiple of the result.
fn start_step(partitions: u32) -> u32 {
    match partitions {
        0..=32 => 32,
        33..=64 => 64,
        _ => 128,
    }
}

/// A named operand, for messages.
pub type Named<'a> = (&'static str, &'a View);

/// The views have the same number of partitions.
///
/// # Errors
/// `partition-mismatch`.
pub fn same_partitions(a: Named<'_>, b: Named<'_>) -> Result<(), Violation> {
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
pub fn same_free(a: Named<'_>, b: Named<'_>) -> Result<(), Violation> {
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

/// Both of the above: the views can be worked on element by element.
///
/// # Errors
/// `partition-mismatch`, `shape-mismatch`.
pub fn same_shape(a: Named<'_>, b: Named<'_>) -> Result<(), Violation> {
    same_partitions(a, b)?;
    same_free(a, b)
}

/// A `(P, 1)` view beside a tile.
///
/// # Errors
/// `partition-mismatch`, `shape-mismatch`.
pub fn per_partition(tile: Named<'_>, vector: Named<'_>) -> Result<(), Violation> {
    same_partitions(tile, vector)?;
    if vector.1.free_elements() == 1 {
        return Ok(());
    }
    Err(Violation::new(
        "shape-mismatch",
        vector.0,
        format!(
            "`{}` has shape {:?}; it must have one element per partition: ({}, 1)",
            vector.0,
            vector.1.shape(),
            tile.1.partitions()
        ),
    ))
}

/// As [`per_partition`] for a scalar operand that is a view.
///
/// # Errors
/// `partition-mismatch`, `shape-mismatch`.
pub fn scalar_operand(tile: Named<'_>, name: &'static str, operand: &ScalarOperand) -> Result<(), Violation> {
    operand.view().map_or(Ok(()), |v| per_partition(tile, (name, v)))
}

/// Whether the view lies in PSUM.
pub fn in_psum(view: &View) -> bool {
    view.space == Space::Psum
}

/// Two tensor inputs of the vector engine cannot both come from PSUM.
///
/// # Errors
/// `psum-operands`.
pub fn not_both_psum(a: Named<'_>, b: Named<'_>) -> Result<(), Violation> {
    if in_psum(a.1) && in_psum(b.1) {
        return Err(Violation::new(
            "psum-operands",
            b.0,
            format!("`{}` and `{}` are both in PSUM; at most one of them can be", a.0, b.0),
        )
        .help("copy one of them to SBUF with nisa.tensor_copy"));
    }
    Ok(())
}

/// The GpSimd engine has no access to PSUM.
///
/// # Errors
/// `psum-gpsimd`.
pub fn gpsimd_psum(engine: Engine, operands: &[Named<'_>]) -> Result<(), Violation> {
    match operands.iter().find(|o| engine == Engine::GpSimd && in_psum(o.1)) {
        Some((name, _)) => Err(Violation::new(
            "psum-gpsimd",
            name,
            format!("`{name}` is in PSUM, which the GpSimd engine cannot access"),
        )
        .help("run it on the vector engine, or copy the tile to SBUF first")),
        None => Ok(()),
    }
}

/// The engine asked for is one that the instruction runs on.
///
/// # Errors
/// `engine-unsupported`.
pub fn engine_allowed(asked: Engine, allowed: &[Engine]) -> Result<(), Violation> {
    if asked == Engine::Unknown || allowed.contains(&asked) {
        return Ok(());
    }
    let names: Vec<_> = allowed.iter().map(|e| e.to_string()).collect();
    Err(Violation::new("engine-unsupported", "engine", format!("it runs on {}, not on {asked}", names.join(" or "))))
}

/// A bitvec operator works on integers only.
///
/// # Errors
/// `bitvec-dtype`.
pub fn bitvec_dtypes(op: AluOp, operands: &[Named<'_>]) -> Result<(), Violation> {
    if !op.is_bitvec() {
        return Ok(());
    }
    match operands.iter().find(|o| !o.1.dtype.is_int()) {
        Some((name, view)) => Err(Violation::new(
            "bitvec-dtype",
            name,
            format!("`{op}` works on the bits of integers, but `{name}` is {}", view.dtype),
        )
        .help("use `.view(dtype)` to look at a float's bits as an integer")),
        None => Ok(()),
    }
}

/// Whether this operator exists on this generation.
///
/// # Errors
/// `op-unsupported`.
pub fn op_on_target(name: &'static str, op: AluOp, arch: &Arch) -> Result<(), Violation> {
    if matches!(op, AluOp::AbsMax | AluOp::AbsMin) && arch.target != crate::Target::Trn3 {
        return Err(Violation::new(
            "op-unsupported",
            name,
            format!("`{op}` needs trn3, the target is {}", arch.target),
        ));
    }
    Ok(())
}

/// Whether all views hold 32-bit integers.
pub fn all_int32<'a>(mut views: impl Iterator<Item = &'a View>) -> bool {
    views.all(|v| matches!(v.dtype, DType::I32 | DType::U32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::inst::vector::reciprocal::Reciprocal;
    use crate::testing::TestMachine;
    use crate::view::Dim;

    fn part(view: &View, partition: u32, count: u32) -> View {
        let mut v = view.clone();
        v.partition = partition;
        v.dims[0].count = count;
        v
    }

    fn check(m: &TestMachine, v: &View) -> Result<(), String> {
        m.check(Reciprocal { dst: v.clone(), data: v.clone() })
    }

    #[test]
    fn partition_starts() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor("a", Space::Sbuf, DType::F32, &[128, 4]);
        for (partition, count, ok) in [
            (0, 128, true),
            (0, 65, true),
            (32, 65, false),
            (64, 64, true),
            (32, 64, false),
            (64, 33, true),
            (96, 32, true),
            (32, 32, true),
            (33, 1, false),
            (16, 16, false),
        ] {
            let got = check(&m, &part(&a, partition, count));
            assert_eq!(got.is_ok(), ok, "{partition} {count}: {got:?}");
        }
        assert!(check(&m, &part(&a, 16, 16)).unwrap_err().contains("must start at 0, 32, 64, 96"));
    }

    #[test]
    fn bounds() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor("a", Space::Sbuf, DType::F32, &[64, 4]);
        assert!(check(&m, &part(&a, 0, 65)).unwrap_err().contains("reaches partition 64"));
        assert!(check(&m, &part(&a, 0, 200)).unwrap_err().contains("200 partitions, the memory has 128"));
        let mut wide = a;
        wide.dims[1].count = 5;
        assert!(check(&m, &wide).unwrap_err().contains("byte 20 of each partition, the tensor has 16"));
        wide.offset = -1;
        assert!(check(&m, &wide).unwrap_err().contains("starts at byte -4"));
        let got = check(&m, &wide).unwrap_err();
        assert!(got.starts_with("data: ") || got.starts_with("dst: "), "{got}");
    }

    #[test]
    fn access_patterns() {
        let mut m = TestMachine::new(Target::Trn2);
        let a = m.tensor("a", Space::Sbuf, DType::U8, &[128, 70_000]);
        let view = |dims: &[(i64, u32)]| {
            let mut v = a.clone();
            v.dims.truncate(1);
            v.dims.extend(dims.iter().map(|&(stride, count)| Dim { stride, count }));
            v
        };
        assert!(check(&m, &view(&[(1, 65_536)])).is_ok());
        assert!(check(&m, &view(&[(1, 65_537)])).unwrap_err().contains("at most 65536"));
        assert!(check(&m, &view(&[(1000, 2), (100, 2), (20, 2), (4, 2)])).is_ok());
        assert!(
            check(&m, &view(&[(1000, 2), (100, 2), (20, 2), (4, 2), (1, 2)]))
                .unwrap_err()
                .contains("5 free dimensions")
        );
        assert!(check(&m, &view(&[(2000, 2), (1000, 2), (100, 2), (20, 2), (4, 2)])).is_ok(), "two of them merge");
        let mut strided = part(&a, 0, 2);
        strided.dims[0].stride = 2;
        assert!(check(&m, &strided).unwrap_err().contains("partition stride of 2"));
        let p = m.tensor("p", Space::Psum, DType::BF16, &[128, 8192]);
        assert!(check(&m, &p).unwrap_err().contains("at most 4096 in psum"));
    }
}
