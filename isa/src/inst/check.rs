//! Rules shared by several instructions: consistency of operands, and limits of engines and operators. Instructions call them.

use crate::arch::Arch;
use crate::arg::{Imm, ScalarOperand};
use crate::dtype::DType;
use crate::machine::Context;
use crate::names::{AluOp, Engine, Space};
use crate::schema::Schema;
use crate::view::View;
use crate::violation::Violation;

/// A named operand, for messages.
pub type Named<'a> = (&'static str, &'a View);

/// Copies do not convert packed dtypes: both sides must have the same.
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

/// The views have the same number of partitions.
///
/// # Errors
/// `partition-mismatch`.
pub fn same_partitions(a: Named<'_>, b: Named<'_>) -> Result<(), Violation> {
    if a.1.partitions() == b.1.partitions() {
        return Ok(());
    }
    let (here, there) = (b.1.partitions(), a.1.partitions());
    let plural = if here == 1 { "" } else { "s" };
    let message = format!("`{}` has {here} partition{plural}, `{}` has {there}", b.0, a.0);
    let wrong = Violation::new("partition-mismatch", b.0, message);
    if here == 1 && b.0 != "dst" {
        let columns = b.1.free_elements();
        return Err(wrong.help(format!(
            "a single partition is not broadcast: load the row into all partitions, with a stride of 0 over the source, \
             for example nisa.dma_copy(dst=tile, src=row.ap([[0, {there}], [1, {columns}]]))"
        )));
    }
    Err(wrong)
}

/// The views have the same number of elements per partition.
///
/// # Errors
/// `shape-mismatch`.
pub fn same_free(a: Named<'_>, b: Named<'_>) -> Result<(), Violation> {
    if a.1.free_elements() == b.1.free_elements() {
        return Ok(());
    }
    let wrong = Violation::new(
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
    );
    if b.0 != "dst" && b.1.shape().len() == 2 && b.1.free_elements() == 1 {
        let columns = a.1.free_elements();
        return Err(wrong.help(format!(
            "a single element is not broadcast along its partition: pass the view `.broadcast(1, {columns})`, or use nisa.tensor_scalar, which takes a \
             column as operand0"
        )));
    }
    Err(wrong)
}

/// The views have the same dtype: the instruction does not convert.
///
/// # Errors
/// `operand-dtype`.
pub fn same_dtype(a: Named<'_>, b: Named<'_>) -> Result<(), Violation> {
    if a.1.dtype == b.1.dtype {
        return Ok(());
    }
    Err(Violation::new(
        "operand-dtype",
        b.0,
        format!("`{}` is {}, `{}` is {}; they must have the same dtype", b.0, b.1.dtype, a.0, a.1.dtype),
    )
    .help("nisa.tensor_copy converts"))
}

/// The operand has at most `most` dimensions, the partition dimension included.
///
/// # Errors
/// `access-pattern`.
pub(crate) fn rank(name: &'static str, view: &View, most: usize) -> Result<(), Violation> {
    let dims = view.dims.len();
    if dims <= most {
        return Ok(());
    }
    Err(Violation::new(
        "access-pattern",
        name,
        format!("`{name}` has {dims} dimensions {:?}, but can have at most {most}", view.shape()),
    )
    .help("merge free dimensions with `.reshape(...)` or an access pattern"))
}

/// Two tiles in SBUF start on the same partition. A tile whose partition is still open can be placed to fit the other.
///
/// Source: published kernels copy one half of a tile for this reason (RoPE of nki-library: "required for tensor_tensor base partition alignment";
/// rope_single_freq_apply of AccelOpt); the manual does not say so.
///
/// # Errors
/// `partition-start`.
pub(crate) fn same_start(context: &Context<'_>, a: Named<'_>, b: Named<'_>) -> Result<(), Violation> {
    if a.1.space != Space::Sbuf || b.1.space != Space::Sbuf {
        return Ok(());
    }
    let tensor = |view: &View| &context.tensors[view.tensor.0 as usize];
    let is_open = |view: &View| {
        let tensor = tensor(view);
        tensor.address.is_none() && tensor.shape.first().is_none_or(|&count| 2 * count <= context.arch.partitions)
    };
    let (from, to) = (tensor(a.1).start_partition(a.1), tensor(b.1).start_partition(b.1));
    if from == to || a.1.tensor != b.1.tensor && (is_open(a.1) || is_open(b.1)) {
        return Ok(());
    }
    let message = format!(
        "`{}` starts on partition {from}, `{}` on partition {to}: two tiles in SBUF start on the same one",
        a.0, b.0
    );
    Err(Violation::new("partition-start", b.0, message).help(format!(
        "copy one of them to another tile (nisa.tensor_copy) from partition {} on; `dst` may start elsewhere",
        from.min(to)
    )))
}

/// The views have the same number of partitions and of elements per partition, so that element-wise operations are possible.
///
/// # Errors
/// `partition-mismatch`, `shape-mismatch`.
pub fn same_shape(a: Named<'_>, b: Named<'_>) -> Result<(), Violation> {
    same_partitions(a, b)?;
    same_free(a, b)
}

/// The vector is a `(P, 1)` view that matches the tile.
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

/// The result of a reduction of the tile is exactly `(P, 1)`, as the manual requires.
///
/// # Errors
/// As [`per_partition`].
pub fn reduction_result(tile: Named<'_>, result: Named<'_>) -> Result<(), Violation> {
    per_partition(tile, result)?;
    let shape = result.1.shape();
    if shape.len() == 2 {
        return Ok(());
    }
    let message = format!("`{}` has shape {shape:?}; it must have two dimensions: ({}, 1)", result.0, shape[0]);
    Err(Violation::new("shape-mismatch", result.0, message).help("index the dimensions of size 1 away: t[:, 0, :]"))
}

/// As [`per_partition`] for a scalar operand that is a view.
///
/// # Errors
/// `partition-mismatch`, `shape-mismatch`.
pub fn scalar_operand(tile: Named<'_>, name: &'static str, operand: &ScalarOperand) -> Result<(), Violation> {
    operand.view().map_or(Ok(()), |v| per_partition(tile, (name, v)))
}

/// The scalar of an operator: required if the operator takes two operands, else omitted or 0.
///
/// # Errors
/// `missing-operand`, `operand-value`.
pub fn scalar_of(
    op: (&'static str, AluOp),
    name: &'static str,
    operand: Option<&ScalarOperand>,
) -> Result<(), Violation> {
    let (op_name, op) = op;
    let Some(operand) = operand else {
        if op.is_unary() {
            return Ok(());
        }
        return Err(Violation::new("missing-operand", name, format!("`{op_name}={op}` needs `{name}`")));
    };
    let got = match operand {
        // Bypass returns its left operand, whatever the right one is.
        _ if !op.is_unary() || op == AluOp::Bypass => return Ok(()),
        ScalarOperand::Imm(x) if x.as_f32() == 0.0 => return Ok(()),
        ScalarOperand::Imm(Imm::Int(i)) => i.to_string(),
        ScalarOperand::Imm(Imm::Float(x)) => format!("{x:?}"),
        ScalarOperand::Register(_) => "a register".into(),
        ScalarOperand::View(_) => "a tile".into(),
    };
    Err(Violation::new(
        "operand-value",
        name,
        format!("`{op_name}={op}` takes one operand: `{name}` is {got}; it must be None or 0"),
    ))
}

/// Whether the view is in PSUM.
pub fn in_psum(view: &View) -> bool {
    view.space == Space::Psum
}

/// At most one tensor input of a vector-engine instruction is in PSUM.
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

/// The instruction runs on the requested engine.
///
/// # Errors
/// `engine-unsupported`, `unsupported-on-target`.
pub fn engine_allowed(requested: Engine, schema: &Schema, arch: &Arch) -> Result<(), Violation> {
    let runs = || schema.engines.iter().filter(|e| e.since <= arch.target);
    if requested == Engine::Unknown || runs().any(|e| e.on == requested) {
        return Ok(());
    }
    let names: Vec<_> = runs().map(|e| e.on.to_string()).collect();
    let names = names.join(" or ");
    match schema.engines.iter().find(|e| e.on == requested) {
        Some(later) => Err(Violation::new(
            "unsupported-on-target",
            "engine",
            format!(
                "{} on the {requested} engine needs {} (target is {})",
                schema.name,
                later.since.or_later(),
                arch.target
            ),
        )
        .help(format!("here it runs on {names}"))),
        None => Err(Violation::new("engine-unsupported", "engine", format!("it runs on {names}, not on {requested}"))),
    }
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

/// An integer tile takes a number that it holds, also as a bit pattern, which may be written as signed or unsigned.
///
/// Since NKI 0.3 it takes integers only. AWS's own library of 0.6 still writes `value=0.0` there, so whole floats are accepted; a float tile
/// takes whole numbers, because Python's `0` is usual there.
///
/// # Errors
/// `memset-value`.
pub fn constant(name: &'static str, value: Imm, dtype: DType) -> Result<(), Violation> {
    let Some((low, high)) = dtype.int_range() else { return Ok(()) };
    match value {
        Imm::Float(x) if x.fract() != 0.0 || !(low as f64..=high as f64).contains(&x) => {
            let message = format!("`dst` is {dtype}, `{name}` is {x:?}, which is not an integer from {low} to {high}");
            let help = "write an integer: the value must match the dtype of `dst`";
            Err(Violation::new("memset-value", name, message).help(help))
        }
        Imm::Int(i) if i < low.min(-(high + 1) / 2) || i > high.max(-2 * low - 1) => {
            let message = format!("`dst` is {dtype}, `{name}` is {i}, which is not an integer from {low} to {high}");
            Err(Violation::new("memset-value", name, message))
        }
        Imm::Float(_) | Imm::Int(_) => Ok(()),
    }
}

/// Whether this operator exists on this generation.
///
/// # Errors
/// `op-unsupported`.
pub fn op_on_target(name: &'static str, op: AluOp, arch: &Arch) -> Result<(), Violation> {
    if matches!(op, AluOp::AbsMax | AluOp::AbsMin) && !arch.abs_max {
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
