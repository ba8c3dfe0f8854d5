"""Loops that run on the device: register bounds, register conditions, loop functions."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def static_bounds(x):
    """Adds 1 to x ten times in a device loop with static bounds."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    for _ in nl.dynamic_range(10):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def register_bounds(x, bound):
    """Adds 1 to x for i = 5, 7, 9, ... below the value of `bound`."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    tensor = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tensor, src=bound)
    upper_bound = nisa.register_alloc()
    nisa.register_load(upper_bound, tensor)
    for i in nl.dynamic_range(5, upper_bound, 2):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def register_while(x):
    """Doubles x while a register counts down from 5."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    cond = nl.ndarray((1, 1), buffer=nl.sbuf, dtype=nl.int32)
    reg = nisa.register_alloc(5)
    while reg:
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        nisa.register_store(cond, reg)
        nisa.tensor_scalar(cond, cond, nl.add, -1)
        nisa.register_load(reg, cond)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def loop_functions(x):
    """The same rows moved by fori_loop, one row tile per iteration."""
    tiles, rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)

    def body(i):
        nisa.dma_copy(dst=t, src=x.ap([[width, rows], [1, width]], 0, scalar_offset=i, indirect_dim=0))
        nisa.dma_copy(dst=out.ap([[width, rows], [1, width]], 0, scalar_offset=i, indirect_dim=0), src=t)

    nl.fori_loop(0, tiles, body)
    return out
