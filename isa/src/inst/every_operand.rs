//! Rules for the operands of every instruction: the schema, bounds, and the limits of an access pattern.
//!
//! Sources: trainium_inferentia2_arch ("Data Movement", start partitions and access patterns; VectorE, ScalarE "Layout & Tile Size").

use super::Instruction;
use super::doubt::{overflows, vanishes};
use crate::arch::Arch;
use crate::dtype::DType;
use crate::machine::Context;
use crate::names::{Engine, Space};
use crate::schema::{OperandSchema, Rule, Schema};
use crate::view::{Dim, Index, View};
use crate::violation::Violation;

/// Rules for the operands of every instruction.
///
/// For each rule, tests/refused/every_operand.py has a call that breaks it.
pub const COMMON_RULES: &[Rule] = &[
    Rule { id: "required", text: "every operand without a default is given" },
    Rule { id: "kind", text: "an operand is of the kind in the table" },
    Rule { id: "memory", text: "a tile is in one of the memories in the table; GpSimd and DMA never reach PSUM" },
    Rule { id: "dtype", text: "a tile has one of the dtypes in the table, or any dtype if the table names none" },
    Rule {
        id: "packed",
        text: "only nc_matmul_mx, quantize_mx, memset, tensor_copy, dma_copy, dma_transpose and sendrecv take packed dtypes",
    },
    Rule { id: "int64", text: "only dma_copy, scalar_load and scalar_store take int64 tensors" },
    Rule { id: "generation", text: "the target supports the instruction" },
    Rule { id: "engine", text: "`engine=` names an engine that supports the instruction on this target" },
    Rule { id: "partitions", text: "a tile spans at most 128 partitions" },
    Rule {
        id: "partition-start",
        text: "a compute engine's access of up to 32 partitions starts at partition 0, 32, 64 or 96, one of up to 64 at 0 or 64, \
               a larger one at 0",
    },
    Rule { id: "partition-stride", text: "a compute engine accesses neighbouring partitions" },
    Rule {
        id: "elements",
        text: "a compute engine accesses at most 65536 elements per partition, and at most 4096 distinct ones in PSUM",
    },
    Rule {
        id: "dimensions",
        text: "a compute engine's access pattern has at most 4 free dimensions that do not merge",
    },
    Rule { id: "bounds", text: "a view stays inside its tensor" },
];

/// Checks the generation and element types against the schema, and the rules of every view: partition count and start, bounds
/// of the tensor, and for instructions of the compute engines the limits of an access pattern.
///
/// # Errors
/// The first broken rule.
pub fn check<I: Instruction>(inst: &I, context: &Context<'_>) -> Result<(), Violation> {
    generation(&I::SCHEMA, context.arch)?;
    // The Sync engine's instructions run on DMA or on its sequencer, which have no access patterns of this kind.
    let compute = !I::SCHEMA.runs_on(Engine::Sync);
    let place = |name: &'static str, view: &View| {
        let own = I::OWN_LAYOUT.contains(&name);
        let anywhere = view.partitions() == 1 && I::ANY_PARTITION.contains(&name);
        view_bounds(view, context)
            .and_then(|()| match compute && !own && view.space.is_on_chip() {
                true => access(view, anywhere, context),
                false => Ok(()),
            })
            .map_err(|violation| Violation { operand: name, ..violation })
    };
    let mut result = Ok(());
    inst.each_view(&mut |operand, view| {
        if result.is_err() {
            return;
        }
        let types = || {
            packed::<I>(operand.name, view)
                .and_then(|()| wide::<I>(operand.name, view))
                .and_then(|()| dtype(operand, view))
        };
        result = place(operand.name, view).and_then(|()| types()).and_then(|()| {
            match view.indirect.as_deref().map(|i| &i.index) {
                Some(Index::Scalar(index) | Index::Vector(index) | Index::Columns(index)) => place("", index),
                _ => Ok(()),
            }
        });
    });
    result
}

/// A number that fp32, in which the engines compute, holds neither exactly nor nearly: it becomes infinite, or 0. Infinities of the kernel are
/// intended.
pub(super) fn doubt<I: Instruction>(inst: &I) -> Option<Violation> {
    let mut found = None;
    inst.each_number(&mut |name, number| {
        if found.is_none() {
            found = overflows(name, number, DType::F32).or_else(|| vanishes(name, number));
        }
    });
    found
}

/// Only some operands may have a packed dtype.
fn packed<I: Instruction>(name: &'static str, view: &View) -> Result<(), Violation> {
    if !view.dtype.is_packed() || I::PACKED.contains(&name) {
        return Ok(());
    }
    let message =
        format!("`{name}` is {}; each element holds four numbers, which {} does not take", view.dtype, I::SCHEMA.name);
    Err(Violation::new("operand-dtype", name, message).help(
        "packed types are for nc_matmul_mx, quantize_mx, memset with 0, tensor_copy, dma_copy, dma_transpose and sendrecv; \
         reinterpret the bits with `.view(nl.uint32)` (`nl.uint16` for float4_e2m1fn_x4)",
    ))
}

/// Only some operands may be int64.
fn wide<I: Instruction>(name: &'static str, view: &View) -> Result<(), Violation> {
    if view.dtype != DType::I64 || I::WIDE.contains(&name) {
        return Ok(());
    }
    let message = format!("`{name}` is int64, which {} does not take", I::SCHEMA.name);
    Err(Violation::new("operand-dtype", name, message)
        .help("int64 tensors are for dma_copy, scalar_load and scalar_store; engines compute with int32"))
}

/// The target has an engine for the instruction.
///
/// # Errors
/// `unsupported-on-target`.
fn generation(schema: &Schema, arch: &Arch) -> Result<(), Violation> {
    let since = schema.since();
    if schema.exists_on(arch) {
        return Ok(());
    }
    let message = format!("{} needs {} (target is {})", schema.name, since.or_later(), arch.target);
    Err(Violation::new("unsupported-on-target", "", message).help(schema.instead))
}

/// The view has one of the element types in the schema.
///
/// # Errors
/// `operand-dtype`.
fn dtype(operand: &OperandSchema, view: &View) -> Result<(), Violation> {
    if operand.dtypes.is_empty() || operand.dtypes.contains(&view.dtype) {
        return Ok(());
    }
    let names: Vec<_> = operand.dtypes.iter().map(DType::to_string).collect();
    let allowed = match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    };
    let message = format!("`{}` is {}; it must be {allowed}", operand.name, view.dtype);
    Err(Violation::new("operand-dtype", operand.name, message)
        .help("copy it to a tile of that dtype with nisa.tensor_copy, which converts, or allocate it with that dtype"))
}

/// `view` stays inside its tensor and, on chip, inside the partitions.
///
/// # Errors
/// `out-of-bounds`, `partition-size`, `partition-dimension`.
fn view_bounds(view: &View, context: &Context<'_>) -> Result<(), Violation> {
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
        if let Some(Index::Vector(_)) = view.indirect.as_deref().map(|i| &i.index) {
            let message =
                format!("`{}` is on chip: its partition dimension cannot be indexed at run time", tensor.name);
            return Err(Violation::new("partition-dimension", "", message)
                .help("give indirect_dim= a free dimension, or gather from HBM"));
        }
        let (first, end) = view.partition_span();
        let have = i64::from(tensor.shape.first().copied().unwrap_or(1));
        if view.indirect.is_none() && (first < 0 || end > have) {
            return Err(Violation::new(
                "out-of-bounds",
                "",
                format!(
                    "view of `{}` reaches partition {}, but the tensor has {have} (0 to {})",
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
                "view of `{}` {what} {at}{}, but the tensor has {}",
                tensor.name,
                if view.space.is_on_chip() { " of each partition" } else { "" },
                tensor.bytes()
            ),
        ));
    }
    Ok(())
}

/// Rules of a compute engine's access to SBUF or PSUM: start partition, adjacent partitions, number of free dimensions and of
/// elements per partition.
///
/// # Errors
/// `partition-start`, `partition-stride`, `access-pattern`, `free-size`.
fn access(view: &View, anywhere: bool, context: &Context<'_>) -> Result<(), Violation> {
    let tensor = &context.tensors[view.tensor.0 as usize];
    let partitions = view.partitions();
    // A tensor without an address is placed at a partition that satisfies the rule for the whole tensor.
    let start = tensor.start_partition(view);
    let step = start_step(partitions);
    if !anywhere && !start.is_multiple_of(step) || start >= context.arch.partitions {
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
        let stride = d.stride;
        return Err(Violation::new(
            "partition-stride",
            "",
            format!(
                "`{}` is accessed with a partition stride of {stride}; engines access neighbouring partitions",
                tensor.name
            ),
        )
        .help("copy the partitions together with nisa.dma_copy first"));
    }
    let arch = context.arch;
    // The manual's 4096 elements are all of PSUM in 4-byte elements. Elements repeated by a broadcast count once: nki-library's
    // layer norm reads 320 sums per partition 24 times each, on trn2.
    let repeated = |d: &Dim| d.stride == 0 && view.space == Space::Psum;
    let different = view.free_dims().iter().filter(|d| !repeated(d)).map(|d| d.count as usize).product::<usize>();
    let all = view.free_elements();
    let (free, limit) = if view.space == Space::Psum && different > arch.psum_access_max as usize {
        (different, arch.psum_access_max)
    } else {
        (all, arch.sbuf_access_max)
    };
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

/// The start partition of an access to this many partitions is a multiple of the result.
fn start_step(partitions: u32) -> u32 {
    match partitions {
        0..=32 => 32,
        33..=64 => 64,
        _ => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::inst::vector::reciprocal::Reciprocal;
    use crate::testing::TestMachine;

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
        assert!(check(&m, &wide).unwrap_err().contains("byte 20 of each partition, but the tensor has 16"));
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
