//! Shared code for the costs of streaming instructions.

use crate::names::{AluOp, Engine};
use crate::view::View;
use crate::work::{Cycles, Issue, Law, Operand, Stream, VectorLaw, Work, WorkKind};

/// A pass with the same cycles per element in every performance mode: rows of `vector.cycles` and of `vector.fixed_ns`.
pub(crate) const fn rows(cycles: &'static str, fixed: &'static str) -> Law {
    modes(Cycles::all(cycles), fixed)
}

/// A pass whose cycles depend on the performance mode.
pub(crate) const fn modes(cycles: Cycles, fixed: &'static str) -> Law {
    Law::Vector(VectorLaw { cycles, fixed, scalar: None, issue: Issue::Usual })
}

/// One tile in, one out.
pub(crate) const ONE_TILE: Cycles = Cycles {
    general: "copy",
    narrow: "copy_16bit",
    narrow_strided: "copy_16bit_strided",
    widening: "copy",
    psum: "copy_psum",
    psum_narrow: "copy_psum_16bit",
};

/// [`ONE_TILE`] of a copy, whose fast mode is slower from 16 to 32 bits (measured for `tensor_copy` alone).
pub(crate) const COPY: Cycles = Cycles { widening: "copy_widening", ..ONE_TILE };

/// A scan, which may begin with a column of numbers.
pub(crate) const SCAN: Law = with_scalar(Cycles::all("scan"), "scan");

/// Transposes of blocks of 32 x 32.
pub(crate) const TRANSPOSE: Law = Law::Vector(VectorLaw {
    cycles: Cycles::all("transpose"),
    fixed: "transpose",
    scalar: None,
    issue: Issue::BlockTranspose,
});

/// Operators of a tile and scalars, which may be columns.
pub(crate) const TILE_AND_SCALARS: Law = with_scalar(ONE_TILE, "tensor_scalar");

const fn with_scalar(cycles: Cycles, fixed: &'static str) -> Law {
    Law::Vector(VectorLaw { cycles, fixed, scalar: Some("vector_operand"), issue: Issue::Usual })
}

/// Two tiles in, one out. Only `simple` operators have the fast mode of narrow operands. `product`: the tiles are multiplied, or an operation
/// with a scalar comes first.
///
/// There is no fast mode for strided operands: a lane reads two words of 4 bytes per cycle, one of each tile, and with a stride each word has
/// only one useful element. The manual names no such condition; Tilebench's 2d_max_pooling, which reads every second element, takes as long per
/// element in 16-bit types as in float32.
pub(crate) const fn two_tiles(simple: bool, product: bool) -> Cycles {
    let general = if product { "tensor_product" } else { "tensor_tensor" };
    let narrow = if simple { "tensor_tensor_16bit" } else { general };
    let psum = "tensor_tensor_psum";
    Cycles { general, narrow, narrow_strided: general, widening: general, psum, psum_narrow: psum }
}

/// A pass over `inputs` to `outputs`, as long as the longest of them, without scalars from memory and accumulators.
pub(crate) fn stream(law: Law, inputs: &[&View], outputs: &[&View]) -> Stream {
    // Outputs count only if there are no inputs: a reduction or a search is as long as its input.
    let measured = if inputs.is_empty() { outputs } else { inputs };
    let longest = measured.iter().map(|v| v.free_elements() as u32).max();
    Stream {
        law,
        elements: longest.unwrap_or(1),
        partitions: inputs.iter().chain(outputs).map(|v| v.partitions()).max().unwrap_or(1),
        inputs: inputs.iter().map(|v| Operand::of(v)).collect(),
        outputs: outputs.iter().map(|v| Operand::of(v)).collect(),
        scalar_reads: 0,
        accumulator_read: false,
    }
}

/// `stream` as the work of `engine`.
pub(crate) fn on(engine: Engine, stream: Stream) -> Work {
    Work { engine, kind: WorkKind::Stream(stream) }
}

/// The `nki.isa` name of the instruction that a hardware opcode executes; `transpose` for a matmul that transposes. `None` if a
/// kernel has no such instruction, or several.
pub fn name_of_opcode(opcode: &str, transpose: bool) -> Option<&'static str> {
    Some(match opcode {
        "MATMUL" if transpose => "nc_transpose",
        "MATMUL" => "nc_matmul",
        "COPY" | "CAST" => "tensor_copy",
        "ACTIVATE" => "activation",
        dma if dma.starts_with("DMA_") => "dma_copy",
        _ => return None,
    })
}

/// The cost function of a hardware opcode, as named in profiles, for a pass through the vector engine or any streaming engine.
/// The function of an `ACTIVATE` decides its cost and is not part of the opcode. `op`: its operator, if known.
pub fn law_of_opcode(opcode: &str, op: Option<AluOp>) -> Option<Law> {
    Some(match opcode {
        "COPY" | "CAST" => modes(COPY, "copy"),
        "TENSOR_SCALAR" => TILE_AND_SCALARS,
        "TENSOR_TENSOR" | "SCALAR_TENSOR_TENSOR" => {
            let product = op == Some(AluOp::Multiply) || opcode == "SCALAR_TENSOR_TENSOR";
            modes(two_tiles(op.is_some_and(AluOp::is_simple), product), "tensor_tensor")
        }
        "TENSOR_REDUCE" => rows("reduce", "reduce"),
        "TENSOR_TENSOR_SCAN" => SCAN,
        "RECIPROCAL" => rows("reciprocal", "reciprocal"),
        "MEMSET" => rows("memset", "memset"),
        "TRANSPOSE" => TRANSPOSE,
        "SELECT" | "COPY_PREDICATED" => rows("predicated", "predicated"),
        "BN_STATS" => rows("bn_stats", "typical"),
        "BN_AGGR" => rows("bn_aggr", "typical"),
        "MAX8" => rows("max8", "typical"),
        "IOTA" | "AFFINE_SELECT" => Law::GpSimd,
        _ => return None,
    })
}
