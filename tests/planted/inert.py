"""Operands without effect"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def reduction_left_idle(x):
    """`reduce_res` receives nothing: the default of `reduce_cmd` is idle."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=total, value=0.0)
    nisa.activation(dst=tile, op=nl.exp, data=tile, reduce_op=nl.add, reduce_res=total)  # plant: inert-operand
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def reduction_left_idle_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(
        dst=tile,
        op=nl.exp,
        data=tile,
        reduce_op=nl.add,
        reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def reduction_without_operator(x):
    """`reduce_cmd` resets and reduces, but no operator is given."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.square, data=tile, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # plant: missing-operand
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def reduction_without_operator_fixed(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.square, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def decorator_as_a_statement(x):
    """`nki.jit` is called instead of `nisa.dma_copy`: nothing is loaded."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nki.jit(dst=tile, src=x)  # plant: type-error
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def decorator_as_a_statement_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def view_that_nobody_takes(x):
    """`permute` returns a view and changes nothing in place; the tile is stored unchanged."""
    out = nl.ndarray((128, 8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 8, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x.reshape((128, 8, 8)))
    tile.permute((0, 2, 1))  # plant: inert-operand
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def view_that_nobody_takes_fixed(x):
    out = nl.ndarray((128, 8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 8, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x.reshape((128, 8, 8)))
    turned = tile.permute((0, 2, 1))
    nisa.dma_copy(dst=out, src=turned)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def second_operand_without_operator(x):
    """`operand1` is given without `op1`: the shift is not added."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0, operand1=0.5)  # plant: missing-operand
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def second_operand_without_operator_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=0.5)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def initial_value_ignored(x):
    """A running sum should start at 5, but `reduce_cmd` resets the accumulators by default."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar_cumulative(dst=result, src=tile, op0=nl.multiply, op1=nl.add, imm0=1.0, imm1=5.0)  # plant: inert-operand
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def initial_value_ignored_fixed(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for i in range(2):
        # A reset does not use `imm1`, which belongs to the second half.
        half = slice(i * 32, (i + 1) * 32)
        command = nisa.reduce_cmd.load_reduce if i == 1 else nisa.reduce_cmd.reset_reduce
        nisa.tensor_scalar_cumulative(
            dst=result[:, half], src=tile[:, half], op0=nl.multiply, op1=nl.add, imm0=1.0, imm1=5.0, reduce_cmd=command
        )
    nisa.dma_copy(dst=out, src=result)
    return out
