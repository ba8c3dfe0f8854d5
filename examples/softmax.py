"""Softmax over the rows of a matrix, in float32 or bfloat16."""

import nki
import nki.isa as nisa
import nki.language as nl


# nki-sim: x=float32[256,512]
@nki.jit
def softmax_rows(x):
    """out[r, :] = softmax(x[r, :]); the number of rows is a multiple of 128.

    One instruction of the scalar engine computes the exponential and its row sum; its bias subtracts the maximum.
    """
    rows, columns = x.shape
    tile = nl.tile_size.pmax
    assert rows % tile == 0, f"{rows} rows are not a multiple of {tile}"
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for r in nl.affine_range(rows // tile):
        here = nl.ds(r * tile, tile)
        data = nl.ndarray((tile, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=data, src=x[here, :])

        negative_max = nl.ndarray((tile, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=negative_max, op=nl.maximum, data=data, axis=1, negate=True)

        exponential = nl.ndarray((tile, columns), dtype=x.dtype, buffer=nl.sbuf)
        total = nl.ndarray((tile, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(
            dst=exponential, op=nl.exp, data=data, bias=negative_max, reduce_op=nl.add, reduce_res=total
        )

        inverse = nl.ndarray((tile, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=total)
        result = nl.ndarray((tile, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=exponential, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[here, :], src=result)
    return out
