"""rmsnorm(x) @ w in fp32: rows are normalised and turned on the tensor engine, a block of rows at a time.

The original leaves the engine of scalings and copies open. The vector engine was hardly active: the scalar engine had them.
"""

import nki
import nki.isa as nisa
import nki.language as nl

HALF = 512  # columns that one instruction computes
TURN = 128  # columns that one transpose turns


def normalise(tile, rows, factor, zero):
    """factor[p] = 1 / sqrt(mean of the squares of row p), for one tile of rows in HBM."""
    partitions, width = rows.shape
    nisa.dma_copy(dst=tile, src=rows)
    sums = nl.ndarray((partitions, width // HALF), dtype=nl.float32, buffer=nl.sbuf)
    for half in nl.affine_range(width // HALF):
        squares = nl.ndarray((partitions, HALF), dtype=nl.float32, buffer=nl.sbuf)
        shares = nl.ndarray((partitions, HALF), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=squares, op=nl.square, data=tile[:, nl.ds(half * HALF, HALF)], bias=zero)
        nisa.tensor_scalar(dst=shares, data=squares, op0=nl.multiply, operand0=1.0 / width, engine=nisa.engine.scalar)
        nisa.tensor_reduce(dst=sums[:, nl.ds(half, 1)], op=nl.add, data=shares, axis=1)
    mean = nl.ndarray((partitions, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=mean, op=nl.add, data=sums, axis=1)
    nisa.activation(dst=factor, op=nl.rsqrt, data=mean, bias=zero)


@nki.jit
def rmsnorm_matmul(x, w, block=8, columns=1024):
    """out[t, p, n] = sum over k of x[t, p, k] * rsqrt(mean(x[t, p]^2)) * w[k, n].

    x[tiles, 128, k], w[k / 128, 128, n]. `block` tiles of rows share a load of w, which comes in parts of `columns` columns.
    """
    tiles, partitions, width = x.shape
    slices, _, n = w.shape
    assert slices * partitions == width and tiles % block == 0 and n % columns == 0 and columns % HALF == 0
    out = nl.ndarray((tiles, partitions, n), dtype=x.dtype, buffer=nl.shared_hbm)
    zero = nl.ndarray((partitions, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=zero, value=0.0)
    for b in nl.affine_range(tiles // block):
        turned = []
        for t in nl.affine_range(block):
            rows = x[b * block + t]
            # The rows come twice: once for their norm, once to be scaled by it.
            data = nl.ndarray((partitions, width), dtype=x.dtype, buffer=nl.sbuf)
            factor = nl.ndarray((partitions, 1), dtype=nl.float32, buffer=nl.sbuf)
            normalise(data, rows, factor, zero)
            again = nl.ndarray((partitions, width), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=again, src=rows)
            tile_t = nl.ndarray((partitions, slices, partitions), dtype=x.dtype, buffer=nl.sbuf)
            for half in nl.affine_range(width // HALF):
                scaled = nl.ndarray((partitions, HALF), dtype=x.dtype, buffer=nl.sbuf)
                nisa.tensor_scalar(
                    dst=scaled, data=again[:, nl.ds(half * HALF, HALF)], op0=nl.multiply, operand0=factor,
                    engine=nisa.engine.scalar,
                )
                for part in nl.affine_range(HALF // TURN):
                    product = nl.ndarray((partitions, TURN), dtype=x.dtype, buffer=nl.psum)
                    nisa.nc_transpose(dst=product, data=scaled[:, nl.ds(part * TURN, TURN)])
                    nisa.activation(dst=tile_t[:, half * (HALF // TURN) + part, :], op=nl.copy, data=product)
            turned.append(tile_t)
        for part in nl.affine_range(n // columns):
            weights = []
            for k in nl.affine_range(slices):
                weight = nl.ndarray((partitions, columns), dtype=w.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=weight, src=w[k, :, nl.ds(part * columns, columns)])
                weights.append(weight)
            for t in nl.affine_range(block):
                result = nl.ndarray((partitions, columns), dtype=x.dtype, buffer=nl.sbuf)
                for half in nl.affine_range(columns // HALF):
                    here = nl.ds(half * HALF, HALF)
                    sums = nl.ndarray((partitions, HALF), dtype=nl.float32, buffer=nl.psum)
                    for k in nl.affine_range(slices):
                        nisa.nc_matmul(dst=sums, stationary=turned[t][:, k, :], moving=weights[k][:, here])
                    nisa.activation(dst=result[:, here], op=nl.copy, data=sums)
                nisa.dma_copy(dst=out[b * block + t, :, nl.ds(part * columns, columns)], src=result)
    return out
