"""Operands without effect"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def reduction_left_idle(x):
    """`reduce_res` gets nothing: the default of `reduce_cmd` is idle."""
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
    """`reduce_cmd` resets and reduces, but nothing says with which operator."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.square, data=tile, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # plant: inert-operand
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
