"""Activation functions outside their range"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[128,64]:uniform
# seen-by: run
@nki.jit
def log_of_tiny_numbers(x):
    """Probabilities around 1e-30 are outside the range of the log table, 2^-64 to 2^64."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=0.5, op1=nl.multiply, operand1=1e-30)
    nisa.activation(dst=tile, op=nl.log, data=tile)  # plant: activation-range
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def log_of_tiny_numbers_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=0.5)
    nisa.activation(dst=tile, op=nl.log, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def rsqrt_of_a_tiny_sum(x):
    """A norm whose sum of squares underflows below 2^-87, without epsilon."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    squares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1e-16)
    nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total)
    nisa.activation(dst=total, op=nl.rsqrt, data=total)  # plant: activation-range
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def rsqrt_of_a_tiny_sum_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    squares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1e-16)
    nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total)
    nisa.tensor_scalar(dst=total, data=total, op0=nl.add, operand0=1e-12)
    nisa.activation(dst=total, op=nl.rsqrt, data=total)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def arctan_of_slopes(x):
    """Slopes beyond pi/2 are outside the range of the arctan table."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.arctan, data=tile, scale=10.0)  # plant: activation-range
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def arctan_of_slopes_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.arctan, data=tile, scale=0.25)
    nisa.dma_copy(dst=out, src=tile)
    return out
