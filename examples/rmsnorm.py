"""Root-mean-square normalisation with a learned weight per column."""

import nki
import nki.isa as nisa
import nki.language as nl


# nki-sim: x=float32[200,768] weight=float32[1,768]
@nki.jit
def rmsnorm(x, weight, epsilon=1e-5):
    """out = x / sqrt(mean(x^2, axis=1) + epsilon) * weight, for x[N, D] and weight[1, D]."""
    rows, width = x.shape
    assert weight.shape == (1, width), f"weight is {weight.shape}, expected (1, {width})"
    pmax = nl.tile_size.pmax
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

    # The same row of weights in every partition: a partition stride of 0.
    scale = nl.ndarray((pmax, width), dtype=weight.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=scale, src=weight.ap(pattern=[[0, pmax], [1, width]], offset=0))
    shift = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=shift, value=epsilon)

    for t in nl.affine_range((rows + pmax - 1) // pmax):
        first = t * pmax
        count = min(pmax, rows - first)
        data = nl.ndarray((count, width), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=data, src=x[first : first + count, :])
        squares = nl.ndarray((count, width), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(dst=squares, op=nl.square, data=data, reduce_op=nl.add, reduce_res=total)
        factor = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=factor, op=nl.rsqrt, data=total, scale=1.0 / width, bias=shift[0:count, :])
        result = nl.ndarray((count, width), dtype=x.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=result, data=data, op0=nl.multiply, operand0=factor, op1=nl.multiply, operand1=scale[0:count, :]
        )
        nisa.dma_copy(dst=out[first : first + count, :], src=result)
    return out
